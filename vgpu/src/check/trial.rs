//! The effect of undefined bits on an instruction, found by running it.
//!
//! Contract: the current instruction runs on the wave itself with the undefined bits all clear and all set, then
//! with random values and their complements; afterwards registers, EXEC and the next address are restored. Only
//! instructions that access nothing but registers are run this way; the rules need no others. Cost: some
//! microseconds, twice that in a wave64.

use zrt_isa::effects::{Registers, SCC, VECTOR_FIRST};

use crate::check::registers::{LANES_MAX, Outcome, Subject, Undefined};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{EXEC_LO, LANES, Row, SCALAR_SLOTS, Wave};

/// Runs of an instruction. An effect on a result bit that appears for half of all values is missed once in 2^9.
const RUNS: u32 = 10;

/// A wave before an instruction.
pub(super) struct Trial<'a, 'm> {
    pub wave: &'a mut Wave,
    /// The operations of the instruction, and those after it.
    pub ops: &'a [MicroOp],
    pub machine: &'a mut Machine<'m>,
}

/// The state restored after each run.
struct Saved {
    scalar: [u32; SCALAR_SLOTS],
    condition: bool,
    mode: u32,
    next: u32,
    /// Number and rows of vector registers, with both halves in a wave64.
    rows: Vec<(u8, Row, Option<Row>)>,
}

/// The outcome of a run.
#[derive(PartialEq, Eq)]
struct Way {
    flow: Flow,
    /// Target of jumps.
    target: (u32, u64),
    exec: u64,
}

impl Subject for Trial<'_, '_> {
    fn exec(&self) -> u64 {
        self.wave.scalar_pair(EXEC_LO)
    }

    fn scalar(&self) -> &[u32] {
        &self.wave.scalar
    }

    fn vector(&self, register: u8, lane: u32) -> u32 {
        let bank = match (&self.wave.other_half, lane as usize / LANES) {
            (Some(other), 1) => other,
            _ => &self.wave.vector,
        };
        bank[usize::from(register)].0[lane as usize % LANES]
    }

    fn vary(&mut self, undefined: &[Undefined], written: &[Registers]) -> Option<Outcome> {
        if self.ops.is_empty() {
            return None;
        }
        let registers: Vec<usize> = written.iter().copied().flat_map(Registers::range).collect();
        let saved =
            self.save(undefined.iter().map(|undefined| undefined.register).chain(registers.iter().copied()));
        let mut first: Option<(Vec<[u32; LANES_MAX]>, Way)> = None;
        let empty = |&register: &usize| Undefined { register, bits: [0; LANES_MAX] };
        let mut outcome = Outcome { results: registers.iter().map(empty).collect(), steers: false };
        for run in 0..RUNS {
            undefined.iter().for_each(|undefined| self.fill(undefined, run));
            let way = self.run();
            let values: Vec<[u32; LANES_MAX]> =
                registers.iter().map(|&register| self.value(register)).collect();
            self.restore(&saved);
            let way = way?;
            match &first {
                None => first = Some((values, way)),
                Some((first_values, first_way)) => {
                    outcome.steers |= way != *first_way;
                    for ((result, value), first) in outcome.results.iter_mut().zip(values).zip(first_values) {
                        let differs = value.iter().zip(first).map(|(one, other)| one ^ other);
                        result.bits.iter_mut().zip(differs).for_each(|(bits, differs)| *bits |= differs);
                    }
                }
            }
        }
        Some(outcome)
    }
}

impl Trial<'_, '_> {
    fn save(&self, registers: impl Iterator<Item = usize>) -> Saved {
        let wave = &*self.wave;
        let mut vectors: Vec<u8> = registers
            .filter(|register| (VECTOR_FIRST..SCC).contains(register))
            .map(|register| (register - VECTOR_FIRST) as u8)
            .collect();
        vectors.sort_unstable();
        vectors.dedup();
        let other = |number: u8| wave.other_half.as_ref().map(|bank| bank[usize::from(number)]);
        let rows =
            vectors.into_iter().map(|number| (number, wave.vector[usize::from(number)], other(number)));
        Saved {
            scalar: wave.scalar,
            condition: wave.scc,
            mode: wave.mode,
            next: wave.next,
            rows: rows.collect(),
        }
    }

    fn restore(&mut self, saved: &Saved) {
        let wave = &mut *self.wave;
        wave.scalar = saved.scalar;
        wave.scc = saved.condition;
        wave.mode = saved.mode;
        wave.next = saved.next;
        for &(number, row, other) in &saved.rows {
            wave.vector[usize::from(number)] = row;
            if let (Some(bank), Some(other)) = (&mut wave.other_half, other) {
                bank[usize::from(number)] = other;
            }
        }
    }

    /// Sets the undefined bits to the values of a run.
    fn fill(&mut self, undefined: &Undefined, run: u32) {
        let Undefined { register, bits } = undefined;
        let wave = &mut *self.wave;
        let with = |value: u32, lane: usize| value & !bits[lane] | pattern(run, *register, lane) & bits[lane];
        match *register {
            SCC if bits[0] != 0 => wave.scc = pattern(run, SCC, 0) & 1 != 0,
            SCC => {}
            register if register < VECTOR_FIRST => wave.scalar[register] = with(wave.scalar[register], 0),
            register => {
                let number = register - VECTOR_FIRST;
                for (lane, value) in wave.vector[number].0.iter_mut().enumerate() {
                    *value = with(*value, lane);
                }
                if let Some(bank) = &mut wave.other_half {
                    for (lane, value) in bank[number].0.iter_mut().enumerate() {
                        *value = with(*value, LANES + lane);
                    }
                }
            }
        }
    }

    /// The lanes of a register; for a scalar register or the condition code, its value in the first entry.
    fn value(&self, register: usize) -> [u32; LANES_MAX] {
        let wave = &*self.wave;
        let mut value = [0; LANES_MAX];
        match register {
            SCC => value[0] = if wave.scc { u32::MAX } else { 0 },
            register if register < VECTOR_FIRST => value[0] = wave.scalar[register],
            register => {
                let number = register - VECTOR_FIRST;
                value[..LANES].copy_from_slice(&wave.vector[number].0);
                if let Some(bank) = &wave.other_half {
                    value[LANES..].copy_from_slice(&bank[number].0);
                }
            }
        }
        value
    }

    /// Runs the instruction; `None` if it faults.
    fn run(&mut self) -> Option<Way> {
        let mut flow = Flow::Next;
        let place = self.ops[0].code_dword;
        for op in self.ops.iter().take_while(|op| op.code_dword == place) {
            flow = op.executor.call(self.wave, op, self.machine);
            if flow == Flow::Fault {
                self.machine.stop = None;
                self.wave.put_halves_back();
                return None;
            }
        }
        let target = match flow {
            Flow::Jump => (self.wave.next, 0),
            Flow::Indirect => (0, self.machine.jump_va),
            _ => (0, 0),
        };
        Some(Way { flow, target, exec: self.wave.scalar_pair(EXEC_LO) })
    }
}

/// Bits of a run for a lane of a register: zeros or pseudo-random numbers (the finaliser of splitmix64), and in odd
/// runs the complement of the previous run.
fn pattern(run: u32, register: usize, lane: usize) -> u32 {
    let complement = if run % 2 == 0 { 0 } else { u32::MAX };
    let pair = run / 2;
    if pair == 0 {
        return complement;
    }
    let place = u64::from(pair) << 32 | (register as u64) << 8 | lane as u64;
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as u32 ^ complement
}
