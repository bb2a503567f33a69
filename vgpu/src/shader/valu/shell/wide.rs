//! Operations with 64-bit operands.

use core::marker::PhantomData;

use super::{ResultKind, WideLane, finish, multiply_result};
use crate::shader::float::Mode;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::access::{
    Adjust, clamp_double_lane, commit_wide, fetch, fetch_wide, raw_wide_source,
};
use crate::shader::valu::operand::{Packed, Parts};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// [`WideLane`] with any operands and modifiers.
pub(in crate::shader::valu) struct Wide<L>(PhantomData<L>);

/// The function for 64-bit operands.
pub(in crate::shader::valu) fn wide<L: WideLane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<Wide<L>>())
}

/// A source of 64 bits, adjusted as it is read.
pub(in crate::shader::valu) struct WideSource<'a> {
    low: &'a Row,
    high: &'a Row,
    /// Of the high dword.
    adjust: Adjust,
}

impl<'a> WideSource<'a> {
    /// Source `index` of an operation.
    #[inline(always)]
    pub fn new(wave: &'a Wave, op: &MicroOp, index: usize, room: &'a mut [Row; 2]) -> Self {
        let [low, high] = raw_wide_source(wave, op, index, room);
        WideSource { low, high, adjust: Adjust::of_high_dword(Packed(op.modifiers), index) }
    }

    /// The value in one lane.
    #[inline(always)]
    pub fn get(&self, lane: usize) -> u64 {
        self.low.0[lane] as u64 | (self.adjust.apply(self.high.0[lane]) as u64) << 32
    }
}

/// All sources as two rows each; `widths` says which of them are 64 bits wide.
#[inline(never)]
fn fetch_all(wave: &Wave, op: &MicroOp, widths: &[bool]) -> [[Row; 2]; 3] {
    [0, 1, 2].map(|index| fetch_either(wave, op, widths, index))
}

/// A source as two rows; the high one is zero for a 32-bit source.
pub(in crate::shader::valu) fn fetch_either(
    wave: &Wave,
    op: &MicroOp,
    widths: &[bool],
    index: usize,
) -> [Row; 2] {
    match widths.get(index) {
        Some(true) => fetch_wide(wave, op, index),
        Some(false) => [fetch(wave, op, index), Row([0; LANES])],
        None => [Row([0; LANES]); 2],
    }
}

#[inline(always)]
pub(in crate::shader::valu) fn join(rows: &[Row; 2], lane: usize) -> u64 {
    rows[0].0[lane] as u64 | (rows[1].0[lane] as u64) << 32
}

impl<L: WideLane> Operation for Wide<L> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if L::MODE.deviates(wave.mode) {
            return wide_exactly::<L>(wave, op);
        }
        let mut result = [Row([0; LANES]); 2];
        let [a, b, c] = fetch_all(wave, op, L::SOURCES);
        for lane in 0..LANES {
            let value = L::compute(join(&a, lane), join(&b, lane), join(&c, lane));
            result[0].0[lane] = value as u32;
            result[1].0[lane] = (value >> 32) as u32;
        }
        finish_wide(wave, op, result, L::RESULT, L::WIDE_RESULT)
    }
}

#[cold]
#[inline(never)]
fn wide_exactly<L: WideLane>(wave: &mut Wave, op: &MicroOp) -> Flow {
    let mode = Mode(wave.mode);
    let [a, b, c] = fetch_all(wave, op, L::SOURCES);
    let mut result = [Row([0; LANES]); 2];
    for lane in 0..LANES {
        let value = L::exact(join(&a, lane), join(&b, lane), join(&c, lane), mode);
        let value = multiply_result(op, value, L::RESULT, mode);
        result[0].0[lane] = value as u32;
        result[1].0[lane] = (value >> 32) as u32;
    }
    finish_wide(wave, op, result, L::RESULT, L::WIDE_RESULT)
}

/// Clamps and writes a result of 64 bits, or of 32 in the first row.
#[inline(never)]
pub(in crate::shader::valu) fn finish_wide(
    wave: &mut Wave,
    op: &MicroOp,
    mut result: [Row; 2],
    kind: ResultKind,
    is_wide: bool,
) -> Flow {
    if !is_wide {
        return finish(wave, op, result[0], kind);
    }
    if kind == ResultKind::Double && Packed(op.modifiers).clamp() {
        for lane in 0..LANES {
            let value = clamp_double_lane(join(&result, lane));
            result[0].0[lane] = value as u32;
            result[1].0[lane] = (value >> 32) as u32;
        }
    }
    commit_wide(wave, op, &result);
    Flow::Next
}
