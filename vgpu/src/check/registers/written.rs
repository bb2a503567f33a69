//! Registers that are used before anything has written them (instruction set reference §3).
//!
//! Contract: scalar registers as a whole, vector registers by lane. The launch writes the user SGPRs, ttmp8, ttmp9 and
//! ttmp7 where RSRC2 enables workgroup ids in them, and v0 in the lanes that it starts. A result counts from when its
//! instruction runs: that it is still under way is another rule. A result narrower than its register, or one that keeps a
//! half, counts as the whole of it. What is reported is taken as written, so it is said once.
//! Cost: two tests of sets where everything is written.

use zrt_isa::effects::{Registers, SCC, VECTOR_FIRST};

use super::bits::{Bits, runs};
use super::finding::{Defect, RegisterFinding, Remedy};
use super::lanes::Lanes;
use super::note::Note;
use super::{LaunchState, View};

/// Codes of the trap temporaries that the launch writes.
const TTMP7: usize = 115;
const TTMP8: usize = 116;
const TTMP9: usize = 117;

/// What is written of one wave's registers.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Registers with something unwritten: vector registers count lanes that have been active.
    incomplete: Bits,
    /// Written lanes, by vector register.
    lanes: Box<[u64; 256]>,
    /// Lanes that have been active so far.
    seen_lanes: u64,
}

impl Written {
    pub(super) fn new() -> Self {
        Self { incomplete: Bits::default(), lanes: Box::new([0; 256]), seen_lanes: 0 }
    }

    pub(super) fn begin(&mut self, launch: &LaunchState) {
        let user_sgprs = usize::from(launch.user_sgprs);
        self.incomplete = Bits::below(SCC + 1);
        for register in (0..user_sgprs).chain([TTMP8, VECTOR_FIRST]) {
            self.incomplete.remove(register);
        }
        // Y and Z share a register: with one of them, the other half is zero.
        let [has_x, has_y, has_z] = launch.has_group_id;
        for (register, is_written) in [(TTMP9, has_x), (TTMP7, has_y || has_z)] {
            if is_written {
                self.incomplete.remove(register);
            }
        }
        self.lanes.fill(0);
        self.lanes[0] = launch.lanes_mask;
        self.seen_lanes = launch.lanes_mask;
    }

    #[inline]
    pub(super) fn step(
        &mut self,
        note: &Note,
        pc: u64,
        exec: u64,
        view: &View<'_>,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        if exec & !self.seen_lanes != 0 {
            self.see(exec);
        }
        if note.touched.meets(&self.incomplete) {
            self.look(note, pc, exec, view, report);
        }
    }

    /// Lanes that have not been active before.
    #[cold]
    fn see(&mut self, exec: u64) {
        self.seen_lanes |= exec;
        for (number, lanes) in self.lanes.iter().enumerate() {
            if self.seen_lanes & !lanes != 0 {
                self.incomplete.insert(VECTOR_FIRST + number);
            }
        }
    }

    fn look(
        &mut self,
        note: &Note,
        pc: u64,
        exec: u64,
        view: &View<'_>,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        let lanes = match note.lane_rule.as_deref() {
            Some(rule) => rule.lanes(exec, note.lane_count.into(), view),
            None => Lanes { source: exec, written: exec },
        };
        for read in &note.read_list {
            // A lane that is not written needs no other operand either.
            let needed = if read.is_gathered { lanes.source } else { lanes.written & exec } & read.lanes;
            if read.registers.range().start < VECTOR_FIRST || read.registers.range().start >= SCC {
                self.scalar(read.registers, pc, report);
            } else {
                self.vector(read.registers, needed, pc, report);
            }
        }
        for &registers in &note.write_list {
            self.write(registers, lanes.written);
        }
    }

    fn scalar(&mut self, registers: Registers, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        if !registers.range().any(|register| self.incomplete.contains(register)) {
            return;
        }
        let incomplete = self.incomplete;
        runs(
            registers,
            |register| incomplete.contains(register),
            |hit| {
                report(RegisterFinding {
                    registers: Some(hit),
                    ..RegisterFinding::at(pc, Defect::Unwritten, Remedy::Write)
                });
                hit.range().for_each(|register| self.incomplete.remove(register));
            },
        );
    }

    fn vector(
        &mut self,
        registers: Registers,
        needed: u64,
        pc: u64,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        let range = registers.range();
        let lanes = &self.lanes[range.start - VECTOR_FIRST..range.end - VECTOR_FIRST];
        if lanes.iter().all(|lanes| needed & !lanes == 0) {
            return;
        }
        let missing: Bits = registers.range().fold(Bits::default(), |mut missing, register| {
            if needed & !self.lanes[register - VECTOR_FIRST] != 0 {
                missing.insert(register);
            }
            missing
        });
        runs(
            registers,
            |register| missing.contains(register),
            |hit| {
                let first = needed & !self.lanes[hit.range().start - VECTOR_FIRST];
                report(RegisterFinding {
                    registers: Some(hit),
                    lane: Some(first.trailing_zeros()),
                    ..RegisterFinding::at(pc, Defect::Unwritten, Remedy::Write)
                });
                self.write(hit, needed);
            },
        );
    }

    fn write(&mut self, registers: Registers, lanes: u64) {
        for register in registers.range() {
            let is_vector = (VECTOR_FIRST..SCC).contains(&register);
            let is_complete = !is_vector || {
                let written = &mut self.lanes[register - VECTOR_FIRST];
                *written |= lanes;
                self.seen_lanes & !*written == 0
            };
            if is_complete {
                self.incomplete.remove(register);
            }
        }
    }
}
