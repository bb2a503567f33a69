//! The tests of vcc and exec for zero, which refer to all 64 lanes.

use zrt_isa::Instruction;

use crate::shader::control;
use crate::shader::micro::{MicroOp, Source};
use crate::shader::valu::operand::{EXECZ, EXECZ_WAVE64, VCCZ, VCCZ_WAVE64};

/// vccz and execz refer to 64 lanes, as sources and as conditions of branches.
pub(super) fn test_both_halves(instruction: &Instruction, op: &mut MicroOp) {
    for source in &mut op.sources {
        *source = match *source {
            Source::Scalar(VCCZ) => Source::Scalar(VCCZ_WAVE64),
            Source::Scalar(EXECZ) => Source::Scalar(EXECZ_WAVE64),
            other => other,
        };
    }
    if let Some(executor) = control::wave64_branch(instruction.opcode) {
        op.executor = executor;
    }
}
