//! Comparisons: one bit per lane into a scalar register.

use core::marker::PhantomData;

use super::wide::{fetch_either, join};
use super::{ModeFields, Test, register, value};
use crate::shader::float::{Format, HALF, Mode, SINGLE};
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::access::sources;
use crate::shader::valu::operand::Parts;
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, collect};

/// [`Test`] of 32-bit sources without modifiers.
pub(in crate::shader::valu) struct PlainTest<T, const UNIFORM: u8>(PhantomData<T>);
/// [`Test`] with any operands and modifiers.
pub(in crate::shader::valu) struct GeneralTest<T>(PhantomData<T>);

fn test_mode(format: Option<Format>) -> ModeFields {
    match format {
        Some(SINGLE) => ModeFields::SINGLE,
        Some(_) => ModeFields::HALF,
        None => ModeFields::NONE,
    }
}

/// The function for a comparison of 32-bit values.
pub(in crate::shader::valu) fn test<T: Test>(parts: &Parts, level: Level) -> Option<Executor> {
    if T::WIDE[0] || !parts.modifiers.is_plain() || parts.reads_special() {
        return cold_test::<T>(parts, level);
    }
    match parts.uniform_mask() & 3 {
        0 => Some(level.bind_either::<PlainTest<T, 0>, GeneralTest<T>>()),
        1 => Some(level.bind_either::<PlainTest<T, 1>, GeneralTest<T>>()),
        2 => Some(level.bind_either::<PlainTest<T, 2>, GeneralTest<T>>()),
        _ => cold_test::<T>(parts, level),
    }
}

/// The function for any other comparison.
pub(in crate::shader::valu) fn cold_test<T: Test>(parts: &Parts, level: Level) -> Option<Executor> {
    (!parts.modifiers.clamp()).then(|| level.bind::<GeneralTest<T>>())
}

impl<T: Test, const UNIFORM: u8> Operation for PlainTest<T, UNIFORM> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if test_mode(T::FORMAT).deviates(wave.mode) {
            return exact_test::<T>(wave, op);
        }
        let mut flags = Row([0; LANES]);
        {
            let wave = &*wave;
            let uniform = |index: usize| UNIFORM >> index & 1 != 0;
            let (a, b) = (register(wave, op, 0), register(wave, op, 1));
            let same = |index: usize| if uniform(index) { value(wave, op, index) } else { 0 };
            let (same_a, same_b) = (same(0), same(1));
            for lane in 0..LANES {
                let a = if uniform(0) { same_a } else { a.0[lane] };
                let b = if uniform(1) { same_b } else { b.0[lane] };
                flags.0[lane] = if T::test(a as u64, b as u64) { u32::MAX } else { 0 };
            }
        }
        wave.scalar[op.destination as usize] = collect(flags) & wave.exec();
        Flow::Next
    }
}

impl<T: Test> Operation for GeneralTest<T> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if test_mode(T::FORMAT).deviates(wave.mode) {
            return exact_test::<T>(wave, op);
        }
        let mut flags = Row([0; LANES]);
        if T::WIDE == [false; 2] {
            let mut rooms = [Row([0; LANES]); 3];
            let [a, b, _] = sources(wave, op, 2, &mut rooms);
            for lane in 0..LANES {
                let is_true = T::test(a.0[lane] as u64, b.0[lane] as u64);
                flags.0[lane] = if is_true { u32::MAX } else { 0 };
            }
        } else {
            let [a, b] = [0, 1].map(|index| fetch_either(wave, op, &T::WIDE, index));
            for lane in 0..LANES {
                flags.0[lane] = if T::test(join(&a, lane), join(&b, lane)) { u32::MAX } else { 0 };
            }
        }
        wave.scalar[op.destination as usize] = collect(flags) & writable(wave, op);
        Flow::Next
    }
}

#[cold]
#[inline(never)]
fn exact_test<T: Test>(wave: &mut Wave, op: &MicroOp) -> Flow {
    let mode = Mode(wave.mode);
    let a = fetch_either(wave, op, &T::WIDE, 0);
    let b = fetch_either(wave, op, &T::WIDE, 1);
    let flush = |value: u64| match T::FORMAT {
        Some(SINGLE) => SINGLE.flush_source(value, mode.single()),
        Some(HALF) => HALF.flush_source(value, mode.half()),
        Some(format) => format.flush_source(value, mode.double()),
        None => value,
    };
    let mut mask = 0;
    for lane in 0..LANES {
        let passes = T::test(flush(join(&a, lane)), flush(join(&b, lane)));
        mask |= (passes as u32) << lane;
    }
    wave.scalar[op.destination as usize] = mask & writable(wave, op);
    Flow::Next
}
