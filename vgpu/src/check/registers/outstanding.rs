//! Results under way, by counter (instruction set reference §4.1).
//!
//! Contract: each counter knows its outstanding operations in order of issue, and for each register the youngest that
//! delivers to it. A wait for `n` completes all but the `n` youngest; of KMcnt, whose operations return in any order, only a
//! wait for 0 completes anything. A flat load is in two counters, in the order of each. An operation beyond a counter's
//! maximum stalls until the oldest is complete, which is modelled as just that. Memory operations have sequence numbers
//! from 1.
//! Cost: a wait visits the registers of its counter; everything else is a look at a set.

use std::collections::VecDeque;

use zrt_isa::effects::{Counter, REGISTER_COUNT, Registers, SCC};

use super::bits::{Bits, runs};
use super::finding::{Defect, RegisterFinding, Remedy};
use super::note::{Note, QUEUES, STORE_QUEUE};

/// Most operations that a counter can count, by queue: LOADcnt, DScnt, KMcnt, EXPcnt, STOREcnt.
const LIMITS: [usize; QUEUES] = [63, 63, 31, 7, 63];

#[derive(Clone, Debug)]
struct Queue {
    /// Sequence numbers, oldest first.
    operations: VecDeque<u32>,
    /// What this counter counts returns in any order.
    is_unordered: bool,
    /// Registers to be delivered.
    pending: Bits,
    /// By register, valid where pending: the youngest operation that delivers to it, and its address.
    sequence: Box<[u32; REGISTER_COUNT]>,
    cause: Box<[u64; REGISTER_COUNT]>,
}

/// The counters of one wave.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    queues: [Queue; QUEUES],
    /// Pending in any of them.
    any: Bits,
    issued: u32,
}

impl Queue {
    fn new(is_unordered: bool) -> Self {
        Self {
            operations: VecDeque::with_capacity(64),
            is_unordered,
            pending: Bits::default(),
            sequence: Box::new([0; REGISTER_COUNT]),
            cause: Box::new([0; REGISTER_COUNT]),
        }
    }

    fn clear(&mut self) {
        self.operations.clear();
        self.pending = Bits::default();
    }

    /// All operations up to `sequence` are complete.
    fn complete(&mut self, sequence: u32) {
        let sequences = &self.sequence;
        self.pending.retain(|register| sequences[register] > sequence);
    }

    /// The wait that `register` needs.
    fn needed(&self, register: usize) -> u8 {
        if self.is_unordered {
            return 0;
        }
        let sequence = self.sequence[register];
        let older = self.operations.partition_point(|&one| one <= sequence);
        (self.operations.len() - older) as u8
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

    /// Registers with something under way.
    #[inline]
    pub(super) fn any(&self) -> &Bits {
        &self.any
    }

    pub(super) fn issued(&self) -> u32 {
        self.issued
    }

    /// All operations of the queue up to this number are complete.
    pub(super) fn completed(&self, queue: usize) -> u32 {
        self.queues[queue].operations.front().map_or(self.issued, |oldest| oldest - 1)
    }

    pub(super) fn count(&self, queue: usize) -> usize {
        self.queues[queue].operations.len()
    }

    /// Reports what the instruction uses too early, and takes it as done.
    #[inline]
    pub(super) fn check(&mut self, note: &Note, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        if note.touched.meets(&self.any) {
            self.demand(note, pc, report);
        }
    }

    fn demand(&mut self, note: &Note, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        for read in &note.read_list {
            self.demand_one(read.registers, None, pc, report);
            self.forget(read.registers);
        }
        for &registers in &note.write_list {
            // A flag under way is overwritten by what comes, not by a compare.
            if registers.range().start < SCC {
                self.demand_one(registers, Some(note), pc, report);
                self.forget(registers);
            }
        }
        self.unite();
    }

    /// `writer`: who overwrites them; `None` for a read.
    fn demand_one(
        &self,
        registers: Registers,
        writer: Option<&Note>,
        pc: u64,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        for counter in Counter::ALL {
            let queue = &self.queues[counter as usize];
            // One class returns in order, so its later result is the one that stays.
            if writer.is_some_and(|note| note.ordered == Some(counter)) && !queue.is_unordered {
                continue;
            }
            runs(
                registers,
                |register| queue.pending.contains(register),
                |hit| {
                    let count = hit.range().map(|register| queue.needed(register)).min().unwrap_or(0);
                    let defect = match writer {
                        None => Defect::ReadOutstanding(counter),
                        Some(_) => Defect::OverwriteOutstanding(counter),
                    };
                    report(RegisterFinding {
                        cause_pc: Some(queue.cause[hit.range().start]),
                        registers: Some(hit),
                        ..RegisterFinding::at(pc, defect, Remedy::Wait(counter, count))
                    });
                },
            );
        }
    }

    fn forget(&mut self, registers: Registers) {
        for queue in &mut self.queues {
            registers.range().for_each(|register| queue.pending.remove(register));
        }
    }

    fn unite(&mut self) {
        self.any = Bits::default();
        for queue in &self.queues {
            self.any.add(&queue.pending);
        }
    }

    /// Whether a wait leaves it open which of several scalar loads are complete.
    pub(super) fn is_partial_scalar_wait(&self, waits: &[u8; QUEUES]) -> bool {
        let km = Counter::Km as usize;
        waits[km] > 0 && self.queues[km].operations.len() > usize::from(waits[km])
    }

    /// Waits for the counts of `waits`; [`super::note::NO_WAIT`] waits for nothing.
    pub(super) fn wait(&mut self, waits: &[u8; QUEUES]) {
        for (queue, &count) in self.queues.iter_mut().zip(waits) {
            let count = usize::from(count);
            if count == 0 {
                queue.clear();
            } else if !queue.is_unordered && queue.operations.len() > count {
                let done = queue.operations.len() - count;
                let last = queue.operations[done - 1];
                queue.operations.drain(..done);
                queue.complete(last);
            }
        }
        self.unite();
    }

    /// The instruction is issued.
    pub(super) fn raise(&mut self, note: &Note, pc: u64) {
        self.issued += 1;
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if note.raises >> index & 1 == 0 {
                continue;
            }
            if queue.operations.len() >= LIMITS[index] {
                if queue.is_unordered {
                    // One of them is complete, nobody knows which.
                    queue.operations.remove(1);
                } else if let Some(oldest) = queue.operations.pop_front() {
                    queue.complete(oldest);
                }
            }
            queue.operations.push_back(self.issued);
            if index == STORE_QUEUE {
                continue;
            }
            for register in note.write_list.iter().flat_map(|registers| registers.range()) {
                queue.pending.insert(register);
                queue.sequence[register] = self.issued;
                queue.cause[register] = pc;
            }
            self.any.add(&note.writes);
        }
    }
}
