//! Operations whose exact bits are not documented, with the device's configured error.

use core::marker::PhantomData;

use super::{Approximation, ResultKind, finish, multiply_result};
use crate::shader::float::{Mode, approximate};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::access::{clamp_half_lane, clamp_single_lane, mask_source, source};
use crate::shader::valu::operand::{Packed, Parts};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// [`Approximation`] applied to a vector.
pub(in crate::shader::valu) struct Approximate<A>(PhantomData<A>);
/// [`Approximation`] applied to a scalar (`v_s_*`).
pub(in crate::shader::valu) struct ApproximateScalar<A>(PhantomData<A>);

impl<A: Approximation> Operation for Approximate<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let bias = if A::RESULT == ResultKind::Single { wave.approximation_bias } else { 0 };
        let mut room = Row([0; LANES]);
        let mut result = Row(A::compute(source(wave, op, 0, &mut room).0));
        for value in &mut result.0 {
            *value = approximate::biased(*value, bias);
        }
        if Packed(op.modifiers).omod() != 0 {
            let mode = Mode(wave.mode);
            for value in &mut result.0 {
                *value = multiply_result(op, *value as u64, A::RESULT, mode) as u32;
            }
        }
        finish(wave, op, result, A::RESULT)
    }
}

impl<A: Approximation> Operation for ApproximateScalar<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let mut x = mask_source(wave, op, 0);
        let mut sign = 1 << 31;
        if A::RESULT == ResultKind::Half {
            x = x >> if modifiers.selects_high(0) { 16 } else { 0 } & 0xFFFF;
            sign = 1 << 15;
        }
        x &= if modifiers.absolute(0) { !sign } else { u32::MAX };
        x ^= if modifiers.negate(0) { sign } else { 0 };
        let single = A::RESULT == ResultKind::Single;
        let bias = if single { wave.approximation_bias } else { 0 };
        let value = approximate::biased(A::compute([x])[0], bias);
        let value = multiply_result(op, value as u64, A::RESULT, Mode(wave.mode)) as u32;
        wave.scalar[op.destination as usize] = match (modifiers.clamp(), single) {
            (false, _) => value,
            (true, true) => clamp_single_lane(value),
            (true, false) => clamp_half_lane(value),
        };
        Flow::Next
    }
}

/// The function for an approximation of a vector.
pub(in crate::shader::valu) fn vector_approximation<A: Approximation>(
    _parts: &Parts,
    level: Level,
) -> Option<Executor> {
    Some(level.bind::<Approximate<A>>())
}

/// The function for an approximation of a scalar.
pub(in crate::shader::valu) fn scalar_approximation<A: Approximation>(
    _parts: &Parts,
    _level: Level,
) -> Option<Executor> {
    Some(Executor::baseline::<ApproximateScalar<A>>())
}
