//! Outstanding results, by counter (instruction set reference §4.1).
//!
//! Contract: each counter holds its outstanding operations in order of issue, and for each register the youngest
//! one that delivers to it. A wait for `n` completes all but the `n` youngest; for KMcnt, whose operations return
//! in any order, only a wait for 0 completes anything. A flat load is in two counters, in the order of each. An
//! operation beyond a counter's maximum stalls until the oldest is complete, and is modelled that way. Memory
//! operations have sequence numbers from 1. A load or store of one half of a register waits for that half alone;
//! every other use waits for both.
//! Cost: a wait visits the registers of its counter; everything else is one set test.
//! Cost: a wait visits the registers of its counter; everything else is one set test.

use std::collections::VecDeque;

use zrt_isa::effects::{Counter, Part, REGISTER_COUNT, Registers, Role, SCC};

use super::bits::{Bits, runs};
use super::finding::{Defect, RegisterFinding, Remedy};
use super::note::{Note, QUEUES, STORE_QUEUE};

/// Most operations that a counter can count, by queue: LOADcnt, DScnt, KMcnt, EXPcnt, STOREcnt.
const LIMITS: [usize; QUEUES] = [63, 63, 31, 7, 63];

/// Deliveries to the low or the high halves of registers.
#[derive(Clone, Debug)]
struct Deliveries {
    /// Registers to be delivered.
    pending: Bits,
    /// By register, valid where pending: the youngest operation that delivers to it.
    youngest: Box<[u32; REGISTER_COUNT]>,
}

#[derive(Clone, Debug)]
struct Queue {
    /// Sequence numbers and addresses, oldest first.
    operations: VecDeque<(u32, u64)>,
    /// The counter's results return in any order.
    is_unordered: bool,
    halves: [Deliveries; 2],
    /// If the order is unknown: the address of the youngest operation, by register, valid where pending. Otherwise
    /// `operations` has it.
    causes: Vec<u64>,
}

/// The counters of one wave.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    queues: [Queue; QUEUES],
    /// Pending in any of the queues.
    any: Bits,
    issued: u32,
}

impl Queue {
    fn new(is_unordered: bool) -> Self {
        let nothing = || Deliveries { pending: Bits::default(), youngest: Box::new([0; REGISTER_COUNT]) };
        let causes = vec![0; if is_unordered { REGISTER_COUNT } else { 0 }];
        Self { operations: VecDeque::with_capacity(64), is_unordered, halves: [nothing(), nothing()], causes }
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.halves.iter_mut().for_each(|half| half.pending = Bits::default());
    }

    /// All operations up to `sequence` are complete.
    fn complete(&mut self, sequence: u32) {
        for Deliveries { pending, youngest } in &mut self.halves {
            pending.retain(|register| youngest[register] > sequence);
        }
    }

    /// The youngest operation that delivers to a part of a register.
    fn youngest(&self, register: usize, part: Part) -> Option<u32> {
        let halves = self.halves[part.halves()].iter().filter(|half| half.pending.contains(register));
        halves.map(|half| half.youngest[register]).max()
    }

    /// The wait count that completes an operation.
    fn needed(&self, sequence: u32) -> u8 {
        if self.is_unordered {
            return 0;
        }
        let older = self.operations.partition_point(|&(one, _)| one <= sequence);
        (self.operations.len() - older) as u8
    }

    /// The address of the youngest operation that delivers to a part of a register.
    fn cause(&self, register: usize, part: Part) -> Option<u64> {
        if self.is_unordered {
            return self.causes.get(register).copied();
        }
        let sequence = self.youngest(register, part)?;
        let found = self.operations.binary_search_by_key(&sequence, |&(one, _)| one).ok()?;
        Some(self.operations[found].1)
    }
}

impl Outstanding {
    pub(super) fn new() -> Self {
        let queues = std::array::from_fn(|index| Queue::new(index == Counter::Km as usize));
        Self { queues, any: Bits::default(), issued: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.queues.iter_mut().for_each(Queue::clear);
        self.any = Bits::default();
        self.issued = 0;
    }

    /// Registers with an outstanding result.
    #[inline]
    pub(super) fn any(&self) -> &Bits {
        &self.any
    }

    pub(super) fn issued(&self) -> u32 {
        self.issued
    }

    /// The sequence number up to which all operations of the queue are complete.
    pub(super) fn completed(&self, queue: usize) -> u32 {
        self.queues[queue].operations.front().map_or(self.issued, |(oldest, _)| oldest - 1)
    }

    pub(super) fn count(&self, queue: usize) -> usize {
        self.queues[queue].operations.len()
    }

    /// Reports what the instruction uses too early, and treats it as complete.
    #[inline]
    pub(super) fn check(&mut self, note: &Note, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        if note.touched.meets(&self.any) {
            self.demand(note, pc, report);
        }
    }

    fn demand(&mut self, note: &Note, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        for read in &note.read_list {
            let part = if read.role == Role::Data { note.moved } else { Part::Whole };
            self.demand_one(read.registers, part, None, pc, report);
            self.forget(read.registers, part);
        }
        for &registers in &note.write_list {
            // An outstanding result for a flag is overwritten by the delivery, not by a compare.
            if registers.range().start < SCC {
                self.demand_one(registers, note.moved, Some(note), pc, report);
                self.forget(registers, note.moved);
            }
        }
        self.unite();
    }

    /// `part`: the used part of each register. `writer`: the instruction that overwrites them; `None` for a read.
    fn demand_one(
        &self,
        registers: Registers,
        part: Part,
        writer: Option<&Note>,
        pc: u64,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        for counter in Counter::ALL {
            let queue = &self.queues[counter as usize];
            // Results return in order: the later one remains.
            if writer.is_some_and(|note| note.ordered == Some(counter)) {
                continue;
            }
            runs(
                registers,
                |register| queue.youngest(register, part).is_some(),
                |hit| {
                    let operations = || hit.range().filter_map(|register| queue.youngest(register, part));
                    let count = operations().map(|sequence| queue.needed(sequence)).min().unwrap_or(0);
                    let defect = match writer {
                        None => Defect::ReadOutstanding(counter),
                        Some(_) => Defect::OverwriteOutstanding(counter),
                    };
                    report(RegisterFinding {
                        cause_pc: queue.cause(hit.range().start, part),
                        registers: Some(hit),
                        ..RegisterFinding::at(pc, defect, Remedy::Wait(counter, count))
                    });
                },
            );
        }
    }

    fn forget(&mut self, registers: Registers, part: Part) {
        for half in self.queues.iter_mut().flat_map(|queue| &mut queue.halves[part.halves()]) {
            registers.range().for_each(|register| half.pending.remove(register));
        }
    }

    fn unite(&mut self) {
        self.any = Bits::default();
        for half in self.queues.iter().flat_map(|queue| &queue.halves) {
            self.any.add(&half.pending);
        }
    }

    /// Whether a wait leaves open which of several scalar loads are complete.
    pub(super) fn is_partial_scalar_wait(&self, waits: &[u8; QUEUES]) -> bool {
        let km = Counter::Km as usize;
        waits[km] > 0 && self.queues[km].operations.len() > usize::from(waits[km])
    }

    /// Waits for the counts of `waits`; [`super::note::NO_WAIT`] means no wait.
    pub(super) fn wait(&mut self, waits: &[u8; QUEUES]) {
        for (queue, &count) in self.queues.iter_mut().zip(waits) {
            let count = usize::from(count);
            if count == 0 {
                queue.clear();
            } else if !queue.is_unordered && queue.operations.len() > count {
                let done = queue.operations.len() - count;
                let (last, _) = queue.operations[done - 1];
                queue.operations.drain(..done);
                queue.complete(last);
            }
        }
        self.unite();
    }

    /// Records that the instruction is issued.
    pub(super) fn raise(&mut self, note: &Note, pc: u64) {
        self.issued += 1;
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if note.raises >> index & 1 == 0 {
                continue;
            }
            if queue.operations.len() >= LIMITS[index] {
                if queue.is_unordered {
                    // One of them is complete, but it is unknown which.
                    queue.operations.remove(1);
                } else if let Some((oldest, _)) = queue.operations.pop_front() {
                    queue.complete(oldest);
                }
            }
            queue.operations.push_back((self.issued, pc));
            if index == STORE_QUEUE {
                continue;
            }
            if queue.is_unordered {
                note.write_list.iter().for_each(|registers| queue.causes[registers.range()].fill(pc));
            }
            for half in &mut queue.halves[note.moved.halves()] {
                for register in note.write_list.iter().flat_map(|registers| registers.range()) {
                    half.pending.insert(register);
                    half.youngest[register] = self.issued;
                }
            }
            self.any.add(&note.writes);
        }
    }
}
