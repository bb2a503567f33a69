//! Reports undefined registers where they matter: no path from the entry has written them (instruction set
//! reference §3).
//!
//! Contract: only certain cases. The launch writes the user SGPRs, ttmp and v0; exec is out of scope. A write of
//! any width or lane counts, even while still outstanding. A copy of an undefined value, and a number computed from
//! it, is undefined too. It is reported if it decides something (an address, a branch, exec, a lane) or is stored
//! to memory that others can see. Results that may be defined nevertheless (bit operations, selections, halves,
//! matrices) count as written, and the last dwords of a store of more than 64 bits may be padding.
//!
//! Functions ([`super::convention`]): at the entry the argument registers are written. A call leaves undefined what
//! its callee writes and what is no result. A compiler may know what a callee preserves; so if the callee cannot be
//! determined, only a call by pointer is assumed to change all that the convention allows.

use super::analysis::{Analysis, Call, Dword};
use super::changes::Changes;
use super::convention::{self, SCALAR_ARGUMENTS, VECTOR_ARGUMENTS};
use super::effects::{LDS, REGISTER_COUNT, Read, Registers, Role, SCC, Unit, VECTOR_FIRST, runs};
use super::entry::{Entry, USER_SGPRS_MAX};
use super::finding::{Finding, Rule};
use super::step::{Callee, Step};
use crate::encoding::Encoding;
use crate::instruction::{LaneSelect, Operand};
use crate::opcode::{DataType, Opcode, RegisterFile};
use alloc::format;
use alloc::string::String;
use core::num::NonZeroU16;

/// Codes of ttmp0 to ttmp15.
const TRAP_TEMPORARIES: core::ops::RangeInclusive<usize> = 108..=123;
/// Codes below are scalar registers and vcc.
const TRACKED_SCALARS: usize = 108;
/// Codes of exec_lo and exec_hi.
const EXEC: core::ops::RangeInclusive<u8> = 126..=127;
/// Stored data of at most this many dwords has no padding.
const UNPADDED_DWORDS_MAX: usize = 2;

pub(super) struct Unwritten<'a> {
    pub(super) entry: Entry,
    /// The registers that functions write.
    pub(super) changes: &'a Changes,
}

/// The origin of an undefined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The register's number and 1: the absence of an origin then takes no room of its own.
    register_from_1: NonZeroU16,
    /// The call that left it undefined; `None` if no path has written it.
    call: Option<Dword>,
}

impl Origin {
    fn new(register: usize, call: Option<Dword>) -> Self {
        Self { register_from_1: NonZeroU16::MIN.saturating_add(register as u16), call }
    }

    fn register(self) -> usize {
        usize::from(self.register_from_1.get()) - 1
    }
}

/// By register; `None` if it may be written.
type Origins = [Option<Origin>; REGISTER_COUNT];

impl Analysis for Unwritten<'_> {
    type State = Origins;

    fn entry_state(&self) -> Origins {
        let nothing = |register| Some(Origin::new(register, None));
        let mut origins: Origins = core::array::from_fn(nothing);
        if self.entry.is_called {
            origins[SCALAR_ARGUMENTS].fill(None);
            origins[VECTOR_ARGUMENTS].fill(None);
        } else {
            origins[..self.entry.user_sgprs.min(USER_SGPRS_MAX).into()].fill(None);
            origins[VECTOR_FIRST] = None;
        }
        origins[TRAP_TEMPORARIES].fill(None);
        origins[LDS] = None;
        origins
    }

    fn is_kept_at_end(&self) -> bool {
        // The first run is the one that finds nothing written.
        false
    }

    fn after_call(&self, origins: &mut Origins, call: &Call) {
        if call.callee == Callee::Free {
            return origins.fill(None);
        }
        let changes = match call.callee {
            Callee::Function(dword) => self.changes.of(dword),
            _ => None,
        };
        for (register, origin) in origins.iter_mut().enumerate() {
            // Preserved registers are as defined as before.
            let is_written = match (call.callee, changes) {
                _ if convention::is_kept(register) => continue,
                (Callee::Pointer, _) => convention::is_changed(register),
                (_, Some(changes)) if !changes.contains(register) => continue,
                (_, Some(_)) => !convention::is_result(register) && register != LDS,
                (_, None) => false,
            };
            *origin = is_written.then(|| Origin::new(register, Some(Dword::new(call.dword))));
        }
    }

    fn step(&self, origins: &mut Origins, step: &Step, report: &mut dyn FnMut(Finding)) {
        for read in &step.effects.reads {
            if matters(read, origins, step) {
                let undefined = |register: usize| origins[register].is_some();
                runs(read.registers, undefined, |hit| {
                    let origin = origins[hit.range().start];
                    let cause = origin.and_then(|origin| origin.call).map(Dword::number);
                    report(step.finding(Rule::Unwritten, Some(hit), cause, remedy(hit, origin)));
                });
                // Reported only once.
                origins[read.registers.range()].fill(None);
            }
        }
        let undefined = step.effects.reads.iter().copied().find_map(|read| first(read, origins));
        let carried = undefined.filter(|_| carries(step));
        for (index, &registers) in step.effects.writes.iter().enumerate() {
            match (copy(step, index), carried) {
                (Some(source), _) => {
                    let values: [Option<Origin>; 2] = core::array::from_fn(|at| {
                        source.range().nth(at).and_then(|register| origins[register])
                    });
                    registers.range().zip(values).for_each(|(register, origin)| origins[register] = origin);
                }
                (None, origin) => origins[registers.range()].fill(origin),
            }
        }
        // Any one of the registers that m0 selects may be written.
        if let Some(registers) = step.effects.relative.and_then(|relative| relative.destination) {
            let first = registers.range().start;
            let end = if first < VECTOR_FIRST { TRACKED_SCALARS } else { SCC };
            // m0 and the trap handler's registers are numbered after those that are followed.
            origins[first..end.max(first)].fill(None);
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

fn first(read: Read, origins: &Origins) -> Option<Origin> {
    read.registers.range().find_map(|register| origins[register])
}

fn remedy(hit: Registers, origin: Option<Origin>) -> String {
    let Some(origin) = origin else { return String::new() };
    let why = match origin.call {
        Some(_) => "a call may have changed, and which is not a result: keep it elsewhere across the call",
        None => "nothing on any path has written",
    };
    if origin.register() != hit.range().start {
        return format!("it is computed from {}, which {why}", Registers::new(origin.register(), 1));
    }
    match origin.call {
        Some(_) => {
            "the call may have changed it, and it is not a result: keep it elsewhere across the call".into()
        }
        None => "nothing on any path has written it".into(),
    }
}

/// Whether an undefined part of a read has a visible effect here.
fn matters(read: &Read, origins: &Origins, step: &Step) -> bool {
    let undefined = |register: usize| origins[register].is_some();
    let mut registers = read.registers.range();
    match read.role {
        Role::Control => registers.any(undefined),
        Role::Value => registers.any(undefined) && writes_exec(step),
        // Private memory keeps undefined values as registers do; the target of flat instructions is not known.
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
        && !selects.iter().any(|part| mnemonic.contains(part))
}
