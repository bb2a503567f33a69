//! Operations that move values between any two of the 64 lanes.
//!
//! Contract: executed once, with the banks in place; all sources are read before anything is written.

use zrt_isa::Instruction;

use crate::shader::address::vector_source;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::translate::translate as translate_wave32;
use crate::shader::valu::operand::read_scalar;
use crate::shader::wave::{EXEC_LO, LANES, Wave};
use crate::simd::{Executor, Level, Operation};

/// Lanes of a wave64.
const LANES_WHOLE: usize = 2 * LANES;

/// Whether this file implements the operation.
pub(super) fn is_whole(mnemonic: &str) -> bool {
    function(mnemonic).is_some()
}

fn function(mnemonic: &str) -> Option<Executor> {
    Some(match mnemonic {
        "v_readfirstlane_b32" => bind::<ReadFirstLane>(),
        "v_readlane_b32" => bind::<ReadLane>(),
        "v_writelane_b32" => bind::<WriteLane>(),
        "v_permlane64_b32" => bind::<ExchangeHalves>(),
        "ds_permute_b32" => bind::<Push>(),
        "ds_bpermute_b32" => bind::<Pull>(),
        _ => return None,
    })
}

fn bind<O: Operation>() -> Executor {
    Executor::baseline::<O>()
}

/// The micro operation: that of wave32 with the function for all lanes.
pub(super) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    let mut op = translate_wave32(instruction, level)?;
    op.executor = function(instruction.opcode.mnemonic())?;
    super::zero::test_both_halves(instruction, &mut op);
    Some(op)
}

/// Value of a source in one lane.
fn in_lane(wave: &Wave, source: Source, lane: usize) -> u32 {
    match source {
        Source::Constant(value) => value,
        Source::Scalar(code) => read_scalar(wave, code),
        Source::Vector(register) => wave.lane(register, lane % LANES_WHOLE),
    }
}

/// One register in all lanes.
fn row(wave: &Wave, source: Source) -> [u32; LANES_WHOLE] {
    std::array::from_fn(|lane| in_lane(wave, source, lane))
}

fn is_active(exec: u64, lane: usize) -> bool {
    exec >> lane & 1 != 0
}

/// Writes the active lanes of a register.
fn store(wave: &mut Wave, register: u8, values: &[u32; LANES_WHOLE]) {
    let exec = wave.scalar_pair(EXEC_LO);
    for (lane, value) in values.iter().enumerate() {
        if is_active(exec, lane) {
            wave.set_lane(register, lane, *value);
        }
    }
}

/// The lane that a byte address of `ds_permute` and `ds_bpermute` names.
fn addressed_lane(op: &MicroOp, address: u32) -> usize {
    address.wrapping_add(op.immediate as u32) as usize / 4 % LANES_WHOLE
}

struct ReadFirstLane;
impl Operation for ReadFirstLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        // If no lane is active, it is lane 0; 64 % 64 is 0.
        let lane = wave.scalar_pair(EXEC_LO).trailing_zeros() as usize;
        wave.scalar[op.destination as usize] = in_lane(wave, op.sources[0], lane);
        Flow::Next
    }
}

struct ReadLane;
impl Operation for ReadLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let lane = in_lane(wave, op.sources[1], 0) as usize;
        wave.scalar[op.destination as usize] = in_lane(wave, op.sources[0], lane);
        Flow::Next
    }
}

struct WriteLane;
impl Operation for WriteLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let value = in_lane(wave, op.sources[0], 0);
        let lane = in_lane(wave, op.sources[1], 0) as usize % LANES_WHOLE;
        wave.set_lane(op.destination, lane, value);
        Flow::Next
    }
}

/// v_permlane64: each lane receives the value of the lane 32 away, whether that lane is active or not.
struct ExchangeHalves;
impl Operation for ExchangeHalves {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut values = row(wave, op.sources[0]);
        values.rotate_left(LANES);
        store(wave, op.destination, &values);
        Flow::Next
    }
}

/// `ds_permute`: lanes send; the highest sender wins; lanes without a sender receive zero.
struct Push;
impl Operation for Push {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let exec = wave.scalar_pair(EXEC_LO);
        let (addresses, data) = (vector_row(wave, op, 0), vector_row(wave, op, 1));
        let mut values = [0; LANES_WHOLE];
        for lane in (0..LANES_WHOLE).filter(|lane| is_active(exec, *lane)) {
            values[addressed_lane(op, addresses[lane])] = data[lane];
        }
        store(wave, op.destination, &values);
        Flow::Next
    }
}

/// `ds_bpermute`: lanes fetch; an inactive source returns zero.
struct Pull;
impl Operation for Pull {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let exec = wave.scalar_pair(EXEC_LO);
        let (addresses, data) = (vector_row(wave, op, 0), vector_row(wave, op, 1));
        let values = addresses.map(|address| {
            let lane = addressed_lane(op, address);
            if is_active(exec, lane) { data[lane] } else { 0 }
        });
        store(wave, op.destination, &values);
        Flow::Next
    }
}

fn vector_row(wave: &Wave, op: &MicroOp, index: usize) -> [u32; LANES_WHOLE] {
    row(wave, Source::Vector(vector_source(op, index) as u8))
}
