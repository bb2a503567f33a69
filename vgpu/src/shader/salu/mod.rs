//! Scalar ALU: SOP1, SOP2, SOPK and SOPC, without control flow, hardware registers and barriers.
//!
//! Contract: [`translate`] returns `None` for instructions outside this family. EXEC has no influence. SCC is set
//! by the operations that are documented to set it; otherwise it is preserved. Float operations are those of the
//! vector ALU on one lane.
//! Cost: 2 to 3 ns.

mod access;
mod bits;
mod float;
mod mask;

#[cfg(test)]
mod tests;

use zrt_isa::{Encoding, Instruction, Opcode};

use crate::shader::micro::{MicroOp, Source};
use crate::shader::valu::operand::Parts;
use crate::simd::{Executor, Level};

/// The micro operation of a scalar ALU instruction. The caller fills `code_dword` and `dword_count`.
pub fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    use Encoding::*;
    let opcode = instruction.opcode;
    let mut parts = Parts::new(instruction);
    match instruction.encoding {
        Sop1 | Sop2 | Sopc => {}
        // The 16-bit immediate is the source, sign-extended.
        Sopk => parts.sources[0] = Source::Constant(instruction.immediate as i16 as i32 as u32),
        _ => return None,
    }
    let executor = function(opcode, &parts, level)?;
    Some(parts.finish(executor))
}

fn function(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
    let special = parts.reads_special();
    TABLES.iter().find_map(|(_, bind)| bind(opcode, special, level))
}

/// A table of functions: returns an operation's function, or `None` for operations of other tables.
type Table = fn(Opcode, bool, Level) -> Option<Executor>;

/// All tables with their names. An operation is in only one (`shader::tests::binding`), so their order does not
/// matter.
const TABLES: &[(&str, Table)] = &[
    ("bits", |opcode, special, _| bits::bind(opcode, special)),
    ("mask", |opcode, special, _| mask::bind(opcode, special)),
    ("float", float::bind),
];

/// The tables that have the operation.
#[cfg(test)]
pub(crate) fn tables_with(opcode: Opcode) -> Vec<&'static str> {
    let has = |bind: &Table| bind(opcode, false, Level::BASELINE).is_some();
    TABLES.iter().filter(|(_, bind)| has(bind)).map(|(name, _)| *name).collect()
}
