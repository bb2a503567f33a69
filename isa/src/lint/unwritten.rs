//! Undefined registers where they matter: no path from the entry has written them (instruction set reference §3).
//!
//! Contract: only what is certain. The launch writes the user SGPRs, ttmp and v0; exec is outside. A write of any width or
//! lane counts, and so does one still under way. A copy of what is undefined, and a number that is computed with it, is
//! undefined too; it is reported where it decides something (an address, a branch, exec, a lane) or is stored to memory
//! that others can see. Whatever may come out defined nevertheless (bit operations, selections, halves, matrices) counts as
//! written, and the last dwords of a store of more than 64 bits may be padding.

use super::Entry;
use super::effects::{LDS, REGISTER_COUNT, Read, Registers, Role, Unit, VECTOR_FIRST, runs};
use super::finding::{Finding, Rule};
use super::graph::{Analysis, Step};
use crate::instruction::{Encoding, LaneSelect, Operand};
use crate::opcode::{DataType, Opcode, Properties, RegisterFile};
use alloc::format;
use alloc::string::String;

/// Codes of ttmp0 to ttmp15.
const TRAP_TEMPORARIES: core::ops::RangeInclusive<usize> = 108..=123;
/// Codes of exec_lo and exec_hi.
const EXEC: core::ops::RangeInclusive<u8> = 126..=127;
/// Data of at most this many dwords is stored without padding.
const UNPADDED_DWORDS_MAX: usize = 2;

pub(super) struct Unwritten {
    pub(super) entry: Entry,
}

/// By register: `None` where it may be written, otherwise the register that nothing has written and that it is made of.
type Origins = [Option<u16>; REGISTER_COUNT];

impl Analysis for Unwritten {
    type State = Origins;

    fn entry_state(&self) -> Origins {
        let mut origins: Origins = core::array::from_fn(|register| Some(register as u16));
        origins[..self.entry.user_sgprs.min(super::USER_SGPRS_MAX).into()].fill(None);
        origins[TRAP_TEMPORARIES].fill(None);
        origins[VECTOR_FIRST] = None;
        origins[LDS] = None;
        origins
    }

    fn is_kept_at_end(&self) -> bool {
        // The first run is the one that finds nothing written.
        false
    }

    fn after_call(&self, origins: &mut Origins) {
        origins.fill(None);
    }

    fn step(&self, origins: &mut Origins, step: &Step, report: &mut dyn FnMut(Finding)) {
        for read in &step.effects.reads {
            if matters(read, origins, step) {
                let undefined = |register: usize| origins[register].is_some();
                runs(read.registers, undefined, |hit| {
                    report(step.finding(Rule::Unwritten, Some(hit), None, remedy(hit, origins)));
                });
                // It is said once.
                origins[read.registers.range()].fill(None);
            }
        }
        let carried = if carries(step) {
            step.effects.reads.iter().copied().find_map(|read| first(read, origins))
        } else {
            None
        };
        for (index, &registers) in step.effects.writes.iter().enumerate() {
            match (copy(step, index), carried) {
                (Some(source), _) => {
                    let values: [Option<u16>; 2] = core::array::from_fn(|at| {
                        source.range().nth(at).and_then(|register| origins[register])
                    });
                    registers.range().zip(values).for_each(|(register, origin)| origins[register] = origin);
                }
                (None, origin) => origins[registers.range()].fill(origin),
            }
        }
    }

    fn join(&self, origins: &mut Origins, other: &Origins) -> bool {
        let mut has_grown = false;
        for (origin, other) in origins.iter_mut().zip(other) {
            if origin.is_some() && other.is_none() {
                *origin = None;
                has_grown = true;
            }
        }
        has_grown
    }
}

fn first(read: Read, origins: &Origins) -> Option<u16> {
    read.registers.range().find_map(|register| origins[register])
}

fn remedy(hit: Registers, origins: &Origins) -> String {
    let start = hit.range().start;
    match origins[start] {
        Some(origin) if usize::from(origin) != start => {
            format!(
                "it is made of {}, which nothing on any path has written",
                Registers::new(origin.into(), 1)
            )
        }
        _ => "nothing on any path has written it".into(),
    }
}

/// Whether something undefined in what is read shows here.
fn matters(read: &Read, origins: &Origins, step: &Step) -> bool {
    let undefined = |register: usize| origins[register].is_some();
    let mut registers = read.registers.range();
    match read.role {
        Role::Control => registers.any(undefined),
        Role::Value => writes_exec(step) && registers.any(undefined),
        // Private memory keeps undefined values as registers do; where flat instructions go is not known.
        Role::Data if matches!(step.instruction.encoding, Encoding::Vscratch | Encoding::Vflat) => false,
        Role::Data if registers.len() <= UNPADDED_DWORDS_MAX => registers.any(undefined),
        Role::Data => registers.next().is_some_and(undefined),
    }
}

fn writes_exec(step: &Step) -> bool {
    let info = step.instruction.opcode.operands();
    let mnemonic = step.instruction.opcode.mnemonic();
    info.destination.file == RegisterFile::Exec
        || matches!(step.instruction.destination, Operand::Scalar(code) if EXEC.contains(&code))
        || mnemonic.contains("_saveexec")
        || mnemonic.contains("_wrexec")
}

/// The source of a plain copy, register by register.
fn copy(step: &Step, index: usize) -> Option<Registers> {
    let is_copy = matches!(step.instruction.opcode, Opcode::VMovB32 | Opcode::SMovB32 | Opcode::SMovB64)
        && step.instruction.dual.is_none()
        && step.instruction.lanes == LaneSelect::None
        && index == 0;
    step.effects.reads.first().filter(|_| is_copy).map(|read| read.registers)
}

/// Whether every result is undefined once anything that the instruction reads is.
fn carries(step: &Step) -> bool {
    use DataType::{F32, F64, I32, I64, Mask, U32, U64};
    let instruction = &step.instruction;
    let info = instruction.opcode.operands();
    let mnemonic = instruction.opcode.mnemonic();
    let selects =
        ["cndmask", "cselect", "cmov", "_bfe", "_mad_co_", "_min", "_max", "_med3", "_div_", "mbcnt"];
    matches!(step.effects.unit, Unit::Valu | Unit::Salu)
        && instruction.encoding != Encoding::Vop3p
        && instruction.dual.is_none()
        && instruction.lanes == LaneSelect::None
        && (matches!(info.destination.data, F32 | F64 | I32 | I64 | U32 | U64 | Mask)
            || instruction.encoding == Encoding::Sopc)
        && !(info.properties.contains(Properties::ACCUMULATES) && step.effects.reads.len() < 2)
        && !selects.iter().any(|part| mnemonic.contains(part))
}
