//! The VALU-read-SGPR hazard of gfx1201 (instruction set reference §5.1).
//!
//! Contract: a register pair is tracked from the first VALU read of one of its registers. A write to a tracked pair
//! leaves a hazard in the written registers until a wait, an SMEM or buffer instruction, or its expiry. vcc counts
//! as one register.
//!
//! Compilers differ in what they rely on. Without [`Entry::is_strict`], anything that one of them relies on is
//! trusted: a SALU read of a tracked ordinary register resolves all VALU writes of ordinary registers, a SALU read
//! of vcc resolves those of vcc (LLVM 22), and SALU writes expire (ACO). With it, a SALU read resolves only VALU
//! writes of the ordinary registers that it reads, vcc needs a wait, and nothing expires. In both modes, SOPP
//! instructions do not age a write, and `ds_nop` ends the tracking but not an existing hazard.

use super::analysis::{Analysis, Call, Dword};
use super::effects::{Read, Registers, TRACKED_REGISTERS, Unit, VCC_LO, runs};
use super::entry::Entry;
use super::finding::{Finding, Rule};
use super::step::Step;
use crate::encoding::Encoding;
use crate::opcode::Opcode;
use crate::resources::WaveSize;
use alloc::format;
use alloc::vec::Vec;

/// SALU instructions after which a SALU write is visible to a VALU read, and to a SALU read.
const EXPIRY_VALU: u8 = 11;
const EXPIRY_SALU: u8 = 10;

/// Fields of `s_wait_alu` (instruction set reference §4.1).
const SA_SDST: (u16, &str) = (1, "depctr_sa_sdst(0)");
const VA_VCC: (u16, &str) = (1 << 1, "depctr_va_vcc(0)");
const VA_SDST: (u16, &str) = (7 << 9, "depctr_va_sdst(0)");

pub(super) struct ScalarHazard {
    pub(super) entry: Entry,
}

/// A write that a read may miss.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Write {
    dword: Dword,
    /// SALU instructions since the write.
    age: u8,
}

#[derive(Clone)]
pub(super) struct State {
    /// One bit per pair that a VALU instruction has read.
    tracked: u64,
    salu: [Option<Write>; TRACKED_REGISTERS],
    valu: [Option<Write>; TRACKED_REGISTERS],
    /// Consecutive `ds_nop` instructions.
    idle: u8,
}

impl State {
    fn wait(&mut self, immediate: u16) {
        if immediate & SA_SDST.0 == 0 {
            self.salu = [None; TRACKED_REGISTERS];
        }
        if immediate & VA_SDST.0 == 0 {
            self.valu[..VCC_LO].fill(None);
        }
        if immediate & VA_VCC.0 == 0 {
            self.valu[VCC_LO..].fill(None);
        }
    }

    /// One read operand.
    fn read(
        &mut self,
        registers: Registers,
        unit: Unit,
        is_strict: bool,
        step: &Step,
        report: &mut dyn FnMut(Finding),
    ) {
        let registers = whole_vcc(registers);
        let (is_valu, expiry) = match unit {
            Unit::Valu => (true, EXPIRY_VALU),
            _ => (false, EXPIRY_SALU),
        };
        let missing = |register: usize| {
            let salu = self.salu[register].filter(|write| write.age < expiry);
            let valu = self.valu[register].filter(|_| is_valu || is_strict && register >= VCC_LO);
            [(salu, SA_SDST), (valu, if register >= VCC_LO { VA_VCC } else { VA_SDST })]
        };
        for kind in 0..2 {
            runs(
                registers,
                |register| missing(register)[kind].0.is_some(),
                |hit| {
                    let (write, field) = missing(hit.range().start)[kind];
                    let remedy = format!("needs s_wait_alu {} between the write and this read", field.1);
                    let cause = write.map(|write| write.dword.number());
                    report(step.finding(Rule::ScalarHazard, Some(hit), cause, remedy));
                },
            );
        }
        let is_tracked = registers.range().any(|register| self.tracked >> (register / 2) & 1 != 0);
        if !is_valu && !is_strict && is_tracked && registers.range().start < VCC_LO {
            self.valu[..VCC_LO].fill(None);
        }
        for register in registers.range() {
            self.salu[register] = self.salu[register].filter(|write| write.age >= expiry);
            self.valu[register] = None;
            if is_valu {
                self.tracked |= 1 << (register / 2);
            }
        }
    }

    fn write(&mut self, registers: Registers, unit: Unit, dword: usize) {
        for register in whole_vcc(registers).range() {
            if self.tracked >> (register / 2) & 1 == 0 {
                continue;
            }
            let write = Some(Write { dword: Dword::new(dword), age: 0 });
            match unit {
                Unit::Valu => self.valu[register] = write,
                _ => self.salu[register] = write,
            }
        }
    }

    fn grow_older(&mut self) {
        for slot in &mut self.salu {
            *slot = match *slot {
                Some(write) if write.age + 1 < EXPIRY_VALU => Some(Write { age: write.age + 1, ..write }),
                _ => None,
            };
        }
    }

    /// A jump out of the analysed code requires everything to be done.
    fn leave(&mut self, step: &Step, report: &mut dyn FnMut(Finding)) {
        let everything = Registers::new(0, TRACKED_REGISTERS);
        let fields = [(&self.salu, 0, SA_SDST), (&self.valu, 0, VA_SDST), (&self.valu, VCC_LO, VA_VCC)];
        for (writes, first, field) in fields {
            let last = if field == VA_SDST { VCC_LO } else { TRACKED_REGISTERS };
            let is_open = |register: usize| (first..last).contains(&register) && writes[register].is_some();
            runs(everything, is_open, |hit| {
                let cause = writes[hit.range().start].map(|write| write.dword.number());
                let remedy = format!("needs s_wait_alu {} before this jump", field.1);
                report(step.finding(Rule::ScalarHazard, Some(hit), cause, remedy));
            });
        }
        self.wait(0);
    }
}

/// The tracked part of a read or write, with both halves of vcc together.
fn whole_vcc(registers: Registers) -> Registers {
    let range = registers.range();
    match range.start {
        VCC_LO | 107 => Registers::new(VCC_LO, 2),
        start => Registers::new(start, range.end.min(TRACKED_REGISTERS).saturating_sub(start)),
    }
}

impl Analysis for ScalarHazard {
    type State = State;

    fn entry_state(&self) -> State {
        // A caller may have read any pair, but leaves no write pending.
        let tracked = if self.entry.is_called { u64::MAX } else { 0 };
        State { tracked, salu: [None; TRACKED_REGISTERS], valu: [None; TRACKED_REGISTERS], idle: 0 }
    }

    fn is_kept_at_end(&self) -> bool {
        true
    }

    fn after_call(&self, state: &mut State, _call: &Call) {
        state.wait(0);
        state.tracked = u64::MAX;
    }

    fn step(&self, state: &mut State, step: &Step, report: &mut dyn FnMut(Finding)) {
        if step.instruction.opcode == Opcode::DsNop {
            let enough = match self.entry.wave_size {
                WaveSize::Wave32 => 4,
                WaveSize::Wave64 => 8,
            };
            state.idle = (state.idle + 1).min(enough);
            if state.idle == enough {
                state.tracked = 0;
            }
            return;
        }
        state.idle = 0;
        let unit = step.effects.unit;
        match unit {
            Unit::ScalarMemory | Unit::Buffer => return state.wait(0),
            Unit::Valu | Unit::Salu => {}
            _ => return,
        }
        match step.instruction.opcode {
            Opcode::SWaitAlu => return state.wait(step.instruction.immediate as u16),
            Opcode::SSetpcB64 | Opcode::SSwappcB64 | Opcode::SCallB64 | Opcode::SRfeB64 => {
                state.leave(step, report);
            }
            _ => {}
        }
        let reads: Vec<Registers> = distinct(&step.effects.reads);
        for registers in reads {
            state.read(registers, unit, self.entry.is_strict, step, report);
        }
        let counts = unit == Unit::Salu && step.instruction.encoding != Encoding::Sopp;
        if counts && !self.entry.is_strict {
            state.grow_older();
        }
        for &registers in &step.effects.writes {
            state.write(registers, unit, step.dword);
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let mut has_grown = state.tracked | other.tracked != state.tracked || other.idle < state.idle;
        state.tracked |= other.tracked;
        state.idle = state.idle.min(other.idle);
        let slots = state.salu.iter_mut().zip(&other.salu).chain(state.valu.iter_mut().zip(&other.valu));
        for (slot, other) in slots {
            let is_younger = match (*slot, other) {
                (None, Some(_)) => true,
                (Some(known), Some(other)) => other.age < known.age,
                (_, None) => false,
            };
            if is_younger {
                *slot = *other;
                has_grown = true;
            }
        }
        has_grown
    }
}

/// Scalar operands without duplicates: an instruction may name one several times.
fn distinct(reads: &[Read]) -> Vec<Registers> {
    let mut distinct = Vec::new();
    for read in reads {
        if !distinct.contains(&read.registers) {
            distinct.push(read.registers);
        }
    }
    distinct
}
