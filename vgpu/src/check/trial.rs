//! The effect of undefined bits on an instruction, found by running it.
//!
//! Contract: the current instruction runs on the wave itself with the undefined bits all clear and all set, then
//! with random values and their complements; afterwards registers, EXEC and the next address are restored. Only
//! instructions that access nothing but registers are run this way; the rules need no others. Cost: some
//! microseconds, twice that in a wave64.

use zrt_isa::effects::{Registers, SCC, VECTOR_FIRST};

use crate::check::registers::{LANES_MAX, Outcome, Subject, Undefined};
use crate::shader::launch::mix;
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
    /// Target of indirect jumps; the others have but one.
    target_va: Option<u64>,
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
        let target_va = (flow == Flow::Indirect).then_some(self.machine.jump_va);
        Some(Way { flow, target_va, exec: self.wave.scalar_pair(EXEC_LO) })
    }
}

/// Bits of a run for a lane of a register: zeros or pseudo-random numbers, and in odd runs the complement of the
/// previous run.
fn pattern(run: u32, register: usize, lane: usize) -> u32 {
    let complement = if run % 2 == 0 { 0 } else { u32::MAX };
    let pair = run / 2;
    if pair == 0 {
        return complement;
    }
    let mut place = u64::from(pair) << 32 | (register as u64) << 8 | lane as u64;
    mix(&mut place) as u32 ^ complement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::machine::with_machine;
    use crate::shader::translate::translate;
    use crate::shader::wave::vector_bank;
    use crate::shader::wave64;
    use crate::simd::Level;
    use std::collections::HashSet;
    use zrt_isa::decode_for;
    use zrt_isa::resources::WaveSize;

    /// Each pair of runs has its own bits for every lane of every register, half of them set.
    #[test]
    fn patterns_are_zeros_and_ones_and_then_as_good_as_random() {
        let (mut seen, mut ones, mut count) = (HashSet::new(), [0_u32; 32], 0_u32);
        for register in [0, 1, 105, 128, 129, 383, SCC] {
            for lane in 0..LANES_MAX {
                assert_eq!((pattern(0, register, lane), pattern(1, register, lane)), (0, u32::MAX));
                for run in (2..RUNS).step_by(2) {
                    let value = pattern(run, register, lane);
                    assert_eq!(pattern(run + 1, register, lane), !value, "{run}, {register}, {lane}");
                    seen.insert(value);
                    count += 1;
                    (0..32).for_each(|bit| ones[bit] += value >> bit & 1);
                }
            }
        }
        // Of 1792 random words of 32 bits, hardly two are equal.
        assert!(seen.len() as u32 >= count - 1, "{} of {count}", seen.len());
        assert!(
            ones.iter().all(|ones| (count * 9 / 20..=count * 11 / 20).contains(ones)),
            "{ones:?} of {count}"
        );
    }

    fn undefined(register: usize, bits: [u32; LANES_MAX]) -> Undefined {
        Undefined { register, bits }
    }

    /// Bits of one lane; of a scalar register, in its first entry.
    fn in_lane(lane: usize, bits: u32) -> [u32; LANES_MAX] {
        let mut all = [0; LANES_MAX];
        all[lane] = bits;
        all
    }

    /// Varies an instruction (words of llvm-mc 19) in a wave whose v1 and s1 are 5, with all lanes on. Nothing may be
    /// left changed.
    fn vary(
        words: &[u32],
        wave_size: WaveSize,
        given: &[Undefined],
        written: &[(usize, usize)],
    ) -> Option<Outcome> {
        let instruction = decode_for(words, wave_size).unwrap();
        let ops = match wave_size {
            WaveSize::Wave32 => translate(&instruction, Level::BASELINE).into_iter().collect(),
            WaveSize::Wave64 => wave64::translate(&instruction, Level::BASELINE).unwrap(),
        };
        let mut wave = Wave { scc: true, mode: 0xF0, next: 77, ..Wave::new() };
        wave.other_half = (wave_size == WaveSize::Wave64).then(vector_bank);
        wave.set_scalar_pair(EXEC_LO, u64::MAX >> (64 - wave_size.lanes()));
        wave.scalar[1] = 5;
        (0..wave_size.lanes() as usize).for_each(|lane| wave.set_lane(1, lane, 5));
        let written: Vec<Registers> =
            written.iter().map(|(first, count)| Registers::new(*first, *count)).collect();
        let before = wave.clone();
        let outcome = with_machine(|machine| {
            let outcome = Trial { wave: &mut wave, ops: &ops, machine }.vary(given, &written);
            assert_eq!(machine.stop, None);
            outcome
        });
        assert_eq!(wave.vector, before.vector);
        assert_eq!(wave.other_half, before.other_half);
        assert_eq!(wave.scalar, before.scalar);
        assert_eq!((wave.scc, wave.mode, wave.next, wave.is_high), (true, 0xF0, 77, false));
        outcome
    }

    const V0: usize = VECTOR_FIRST;
    const V2: usize = VECTOR_FIRST + 2;

    /// The results that are undefined: register, lane, bits.
    fn results(outcome: &Outcome) -> Vec<(usize, usize, u32)> {
        let lanes = outcome.results.iter().flat_map(|result| {
            result.bits.iter().enumerate().map(|(lane, bits)| (result.register, lane, *bits))
        });
        lanes.filter(|(_, _, bits)| *bits != 0).collect()
    }

    #[test]
    fn results_are_undefined_where_they_depend_on_undefined_bits() {
        let and = [0x3604_0300]; // v_and_b32_e32 v2, v0, v1
        for wave_size in [WaveSize::Wave32, WaveSize::Wave64] {
            for lane in [0, 3, 31, 32, 63].into_iter().filter(|lane| *lane < wave_size.lanes() as usize) {
                let bits = in_lane(lane, 0xFFFF_FFFE);
                let outcome = vary(&and, wave_size, &[undefined(V0, bits)], &[(V2, 1)]).unwrap();
                assert_eq!(
                    results(&outcome),
                    [(V2, lane, 4)],
                    "five has two bits, and one of them is defined"
                );
                assert!(!outcome.steers);
            }
        }
        let add = [0x4A04_0300]; // v_add_nc_u32_e32 v2, v0, v1
        let outcome = vary(&add, WaveSize::Wave32, &[undefined(V0, in_lane(9, 1))], &[(V2, 1)]).unwrap();
        assert_eq!(results(&outcome), [(V2, 9, 3)], "5 or 6");
        let outcome = vary(&add, WaveSize::Wave32, &[], &[(V2, 1)]).unwrap();
        assert_eq!(results(&outcome), []);
        assert_eq!(outcome.results.len(), 1, "all results are listed");
    }

    #[test]
    fn scalar_results_and_the_condition_code_are_results_too() {
        let add = [0x8002_0100]; // s_add_co_u32 s2, s0, s1
        let outcome =
            vary(&add, WaveSize::Wave32, &[undefined(0, in_lane(0, 1))], &[(2, 1), (SCC, 1)]).unwrap();
        assert_eq!(results(&outcome), [(2, 0, 3)], "there is no carry");
        let high = in_lane(0, 0xFFFF_FFFF);
        let outcome = vary(&add, WaveSize::Wave32, &[undefined(0, high)], &[(SCC, 1)]).unwrap();
        assert_eq!(results(&outcome), [(SCC, 0, u32::MAX)]);
        let add_with_carry = [0x8202_8000]; // s_add_co_ci_u32 s2, s0, 0
        let given = [undefined(0, high), undefined(SCC, in_lane(0, 1))];
        let outcome = vary(&add_with_carry, WaveSize::Wave32, &given, &[(SCC, 1)]).unwrap();
        assert_eq!(results(&outcome), [(SCC, 0, u32::MAX)], "all ones may meet a carry");
        let select = [0x9802_0100]; // s_cselect_b32 s2, s0, s1
        let outcome = vary(&select, WaveSize::Wave32, &[undefined(SCC, in_lane(0, 1))], &[(2, 1)]).unwrap();
        assert_eq!(results(&outcome), [(2, 0, 5)]);
        let outcome = vary(&select, WaveSize::Wave32, &[undefined(SCC, [0; LANES_MAX])], &[(2, 1)]).unwrap();
        assert_eq!(results(&outcome), []);
        // v_cmp_eq_u32_e32 vcc_lo, v0, v1: a bit for each lane.
        let outcome =
            vary(&[0x7C94_0300], WaveSize::Wave32, &[undefined(V0, in_lane(9, 5))], &[(106, 1)]).unwrap();
        assert_eq!(results(&outcome), [(106, 0, 1 << 9)]);
    }

    #[test]
    fn what_steers_is_exec_or_the_next_address() {
        let bit = in_lane(0, 1);
        let five = in_lane(0, 5);
        for (words, given, steers) in [
            (&[0xBFA2_0002][..], undefined(SCC, bit), true), // s_cbranch_scc1 2
            (&[0xBFA2_0002], undefined(SCC, [0; LANES_MAX]), false),
            (&[0xBFA2_0002], undefined(0, bit), false),
            (&[0xBE80_4800], undefined(0, in_lane(0, 8)), true), // s_setpc_b64 s[0:1]
            (&[0xBE80_4800], undefined(2, in_lane(0, 8)), false),
            (&[0xBEFE_0000], undefined(0, bit), true), // s_mov_b32 exec_lo, s0
            (&[0xBEFE_0000], undefined(1, bit), false),
            (&[0x7D94_0300], undefined(V0, five), true), // v_cmpx_eq_u32_e32 v0, v1
            (&[0x7C94_0300], undefined(V0, five), false), // v_cmp_eq_u32_e32 vcc_lo, v0, v1
        ] {
            let outcome = vary(words, WaveSize::Wave32, std::slice::from_ref(&given), &[]).unwrap();
            assert_eq!(outcome.steers, steers, "{words:x?}, {}", given.register);
        }
    }

    #[test]
    fn what_faults_or_is_not_executed_has_no_outcome() {
        let bit = undefined(0, in_lane(0, 1));
        assert!(
            vary(&[0xBF90_0002], WaveSize::Wave32, std::slice::from_ref(&bit), &[]).is_none(),
            "s_trap 2"
        );
        let mut wave = Wave::new();
        let outcome =
            with_machine(|machine| Trial { wave: &mut wave, ops: &[], machine }.vary(&[bit], &[]).is_none());
        assert!(outcome);
    }

    #[test]
    fn the_rules_see_the_wave_as_it_is() {
        let mut wave = Wave { other_half: Some(vector_bank()), ..Wave::new() };
        wave.set_scalar_pair(EXEC_LO, 0x1234_5678_9ABC_DEF0);
        wave.scalar[7] = 70;
        wave.set_lane(9, 31, 931);
        wave.set_lane(9, 32, 932);
        wave.set_lane(9, 63, 963);
        with_machine(|machine| {
            let trial = Trial { wave: &mut wave, ops: &[], machine };
            assert_eq!(trial.exec(), 0x1234_5678_9ABC_DEF0);
            assert_eq!(trial.scalar()[7], 70);
            assert_eq!([31, 32, 63, 0].map(|lane| trial.vector(9, lane)), [931, 932, 963, 0]);
        });
    }
}
