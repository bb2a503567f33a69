//! How an operation on lanes becomes a function on registers.
//!
//! An operation says what it computes in one lane ([`Lane`] and its relatives); the shells here loop over the lanes.
//! [`Plain`] reads registers in place and is specialised by which sources are uniform; [`General`] takes everything
//! else through `access`. Where MODE is not the usual one, both leave to the exact model.
//!
//! Contract: a shell writes active lanes only. The loops have constant bounds and no branches, so that the compiler
//! turns them into vector code of the level that the function is bound to.

use core::marker::PhantomData;

use super::access::{
    Adjust, View, clamp_double_lane, clamp_half, clamp_half_lane, clamp_single, clamp_single_lane, commit,
    commit_wide, fetch, fetch_wide, mask_source, raw_source, raw_wide_source, store,
};
use super::operand::{Packed, Parts};
use crate::shader::float::approximate;
use crate::shader::float::{DOUBLE, Environment, Format, HALF, MODE_FP16_OVERFLOW, Mode, SINGLE, scale};
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, collect};

/// Which fields of MODE an operation heeds.
#[derive(Clone, Copy)]
pub(crate) struct ModeFields(u32);

/// Rounding to nearest even, denormals kept.
const MODE_USUAL: u32 = 0xF0;

impl ModeFields {
    /// None: integers and bits.
    pub const NONE: Self = Self(0);
    /// Rounding and denormals of f32.
    pub const SINGLE: Self = Self(0x33);
    /// Rounding, denormals and overflow of f16.
    pub const HALF: Self = Self(0xCC | MODE_FP16_OVERFLOW);
    /// Rounding and denormals of f64.
    pub const DOUBLE: Self = Self(0xCC);
    /// All.
    pub const ALL: Self = Self(0xFF | MODE_FP16_OVERFLOW);

    /// Whether a field has another than the usual value.
    #[inline(always)]
    pub const fn deviates(self, mode: u32) -> bool {
        mode & self.0 != MODE_USUAL & self.0
    }
}

/// What clamp and omod do to a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// They do not apply.
    Bits,
    /// f32.
    Single,
    /// f16.
    Half,
    /// f64.
    Double,
}

/// A function of up to three 32-bit (or 16-bit, in the low half) values of one lane.
pub(crate) trait Lane {
    /// Number of sources.
    const SOURCES: usize;
    /// MODE fields heeded.
    const MODE: ModeFields;
    /// Kind of the result.
    const RESULT: ResultKind;
    /// The value where MODE is the usual one.
    fn compute(a: u32, b: u32, c: u32) -> u32;
    /// The value in any MODE.
    fn exact(a: u32, b: u32, c: u32, mode: Mode) -> u32;
}

/// A function of up to three values of one lane, some of 64 bits.
pub(crate) trait WideLane {
    /// Which sources there are and which are 64 bits wide.
    const SOURCES: &'static [bool];
    /// Whether the result is 64 bits wide.
    const WIDE_RESULT: bool;
    /// MODE fields heeded.
    const MODE: ModeFields;
    /// Kind of the result.
    const RESULT: ResultKind;
    /// The value where MODE is the usual one.
    fn compute(a: u64, b: u64, c: u64) -> u64;
    /// The value in any MODE.
    fn exact(a: u64, b: u64, c: u64, mode: Mode) -> u64;
}

/// A test of two values of one lane.
pub(crate) trait Test {
    /// Whether the first source is 64 bits wide.
    const WIDE: [bool; 2];
    /// The format whose denormal sources MODE may flush.
    const FORMAT: Option<Format>;
    /// The answer.
    fn test(a: u64, b: u64) -> bool;
}

/// An operation whose exact bits are not documented: see `float::approximate`.
pub(crate) trait Approximation {
    /// Kind of source and result.
    const RESULT: ResultKind;
    /// The correctly rounded values.
    fn compute<const N: usize>(x: [u32; N]) -> [u32; N];
}

// ---------------------------------------------------------------------------------------------------------------------
// Plain

/// [`Lane`] without modifiers; bit `i` of `UNIFORM` says that source `i` is the same in every lane.
pub(super) struct Plain<L, const UNIFORM: u8>(PhantomData<L>);

/// The register of a source that is known to be one.
#[inline(always)]
fn register<'a>(wave: &'a Wave, op: &MicroOp, index: usize) -> &'a Row {
    match op.sources[index] {
        Source::Vector(register) => &wave.vector[register as usize],
        // Not reached: the translator chose the function by the kinds of the sources.
        _ => &wave.vector[0],
    }
}

/// The value of a source that is known to be a scalar or a constant.
#[inline(always)]
fn value(wave: &Wave, op: &MicroOp, index: usize) -> u32 {
    match op.sources[index] {
        Source::Constant(value) => value,
        Source::Scalar(code) => wave.scalar[code as usize],
        Source::Vector(_) => 0,
    }
}

impl<L: Lane, const UNIFORM: u8> Operation for Plain<L, UNIFORM> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if L::MODE.deviates(wave.mode) {
            return exactly::<L>(wave, op);
        }
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let uniform = |index: usize| UNIFORM >> index & 1 != 0;
            let row = |index: usize| register(wave, op, if index < L::SOURCES { index } else { 0 });
            let same = |index: usize| if uniform(index) { value(wave, op, index) } else { 0 };
            let (a, b, c) = (row(0), row(1), row(2));
            let (same_a, same_b, same_c) = (same(0), same(1), same(2));
            for lane in 0..LANES {
                result.0[lane] = L::compute(
                    if uniform(0) { same_a } else { a.0[lane] },
                    if uniform(1) { same_b } else { b.0[lane] },
                    if uniform(2) { same_c } else { c.0[lane] },
                );
            }
        }
        store(wave, op.destination, &result);
        Flow::Next
    }
}

/// The function for one source.
pub(super) fn hot1<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if !is_plain::<L>(parts) {
        return cold::<L>(parts, level);
    }
    Some(match parts.uniform_mask() & 1 {
        0 => level.bind::<Plain<L, 0>>(),
        _ => level.bind::<Plain<L, 1>>(),
    })
}

/// The function for two sources.
pub(super) fn hot2<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if !is_plain::<L>(parts) {
        return cold::<L>(parts, level);
    }
    match parts.uniform_mask() & 3 {
        0 => Some(level.bind::<Plain<L, 0>>()),
        1 => Some(level.bind::<Plain<L, 1>>()),
        2 => Some(level.bind::<Plain<L, 2>>()),
        _ => cold::<L>(parts, level),
    }
}

/// The function for three sources.
pub(super) fn hot3<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if !is_plain::<L>(parts) {
        return cold::<L>(parts, level);
    }
    match parts.uniform_mask() {
        0 => Some(level.bind::<Plain<L, 0>>()),
        1 => Some(level.bind::<Plain<L, 1>>()),
        2 => Some(level.bind::<Plain<L, 2>>()),
        4 => Some(level.bind::<Plain<L, 4>>()),
        6 => Some(level.bind::<Plain<L, 6>>()),
        _ => cold::<L>(parts, level),
    }
}

fn is_plain<L: Lane>(parts: &Parts) -> bool {
    parts.modifiers.is_plain() && !parts.modifiers.half_result() && !parts.reads_special()
}

// ---------------------------------------------------------------------------------------------------------------------
// General

/// [`Lane`] with any operands and modifiers.
pub(super) struct General<L>(PhantomData<L>);

/// The function for any operands. `None`: clamp has no meaning for the operation.
pub(super) fn cold<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<General<L>>())
}

/// The function of a saturating form: clamp has been seen to by the choice of `L`.
pub(super) fn saturating<L: Lane>(_parts: &Parts, level: Level) -> Option<Executor> {
    Some(level.bind::<General<L>>())
}

#[inline(always)]
fn fetch_all<L: Lane>(wave: &Wave, op: &MicroOp) -> [Row; 3] {
    let a = fetch(wave, op, 0);
    let b = if L::SOURCES > 1 { fetch(wave, op, 1) } else { Row([0; LANES]) };
    let c = if L::SOURCES > 2 { fetch(wave, op, 2) } else { Row([0; LANES]) };
    [a, b, c]
}

/// Clamps and writes a result.
#[inline(always)]
pub(super) fn finish(wave: &mut Wave, op: &MicroOp, mut result: Row, kind: ResultKind) -> Flow {
    if Packed(op.modifiers).clamp() {
        match kind {
            ResultKind::Single => clamp_single(&mut result),
            ResultKind::Half => clamp_half(&mut result),
            ResultKind::Bits | ResultKind::Double => {}
        }
    }
    commit(wave, op, &result);
    Flow::Next
}

impl<L: Lane> Operation for General<L> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if L::MODE.deviates(wave.mode) {
            return exactly::<L>(wave, op);
        }
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = View::new(wave, op, 0, &mut room_a);
            let b = if L::SOURCES > 1 { View::new(wave, op, 1, &mut room_b) } else { a };
            let c = if L::SOURCES > 2 { View::new(wave, op, 2, &mut room_c) } else { a };
            for lane in 0..LANES {
                result.0[lane] = L::compute(a.get(lane), b.get(lane), c.get(lane));
            }
        }
        finish(wave, op, result, L::RESULT)
    }
}

/// [`Lane`] by its exact model.
#[cold]
#[inline(never)]
fn exactly<L: Lane>(wave: &mut Wave, op: &MicroOp) -> Flow {
    let mode = Mode(wave.mode);
    let [a, b, c] = fetch_all::<L>(wave, op);
    let mut result = Row([0; LANES]);
    for lane in 0..LANES {
        let value = L::exact(a.0[lane], b.0[lane], c.0[lane], mode);
        result.0[lane] = multiply_result(op, value as u64, L::RESULT, mode) as u32;
    }
    finish(wave, op, result, L::RESULT)
}

/// Output modifier: ×2, ×4 or ÷2, where denormal results are flushed; ignored elsewhere (instruction set reference §6).
pub(crate) fn multiply_result(op: &MicroOp, value: u64, kind: ResultKind, mode: Mode) -> u64 {
    let power = match Packed(op.modifiers).omod() {
        0 => return value,
        1 => 1,
        2 => 2,
        _ => -1,
    };
    let (format, environment): (Format, Environment) = match kind {
        ResultKind::Bits => return value,
        ResultKind::Single => (SINGLE, mode.single()),
        ResultKind::Half => (HALF, mode.half()),
        ResultKind::Double => (DOUBLE, mode.double()),
    };
    if environment.flush_results { scale(format, value, power, environment) } else { value }
}

// ---------------------------------------------------------------------------------------------------------------------
// Packed

/// A 16-bit [`Lane`] on both halves of its sources (VOP3P).
pub(super) struct Halves<L>(PhantomData<L>);

/// The function for packed operands.
pub(super) fn packed<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<Halves<L>>())
}

/// The packed function of a saturating form.
pub(super) fn saturating_halves<L: Lane>(level: Level) -> Executor {
    level.bind::<Halves<L>>()
}

impl<L: Lane> Operation for Halves<L> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = if L::SOURCES > 1 { raw_source(wave, op, 1, &mut room_b) } else { a };
            let c = if L::SOURCES > 2 { raw_source(wave, op, 2, &mut room_c) } else { a };
            let float = matches!(L::RESULT, ResultKind::Half);
            let adjust = |high: bool| [0, 1, 2].map(|index| Adjust::of_half(modifiers, index, high, float));
            let (low, high) = (adjust(false), adjust(true));
            if L::MODE.deviates(wave.mode) {
                exact_halves::<L>([a, b, c], low, high, Mode(wave.mode), &mut result);
            } else {
                // Two loops: the compiler vectorises each, and would not one of both.
                let mut upper = Row([0; LANES]);
                for lane in 0..LANES {
                    result.0[lane] =
                        L::compute(low[0].apply(a.0[lane]), low[1].apply(b.0[lane]), low[2].apply(c.0[lane]));
                }
                for lane in 0..LANES {
                    upper.0[lane] = L::compute(
                        high[0].apply(a.0[lane]),
                        high[1].apply(b.0[lane]),
                        high[2].apply(c.0[lane]),
                    );
                }
                for lane in 0..LANES {
                    result.0[lane] = result.0[lane] & 0xFFFF | upper.0[lane] << 16;
                }
            }
        }
        if modifiers.clamp() && L::RESULT == ResultKind::Half {
            for value in &mut result.0 {
                *value = clamp_half_lane(*value) | clamp_half_lane(*value >> 16) << 16;
            }
        }
        commit(wave, op, &result);
        Flow::Next
    }
}

#[cold]
#[inline(never)]
fn exact_halves<L: Lane>(
    sources: [&Row; 3],
    low: [Adjust; 3],
    high: [Adjust; 3],
    mode: Mode,
    result: &mut Row,
) {
    for lane in 0..LANES {
        let half = |adjust: [Adjust; 3]| {
            let source = |index: usize| adjust[index].apply(sources[index].0[lane]);
            L::exact(source(0), source(1), source(2), mode)
        };
        result.0[lane] = half(low) & 0xFFFF | half(high) << 16;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Wide

/// [`WideLane`] with any operands and modifiers.
pub(super) struct Wide<L>(PhantomData<L>);

/// The function for 64-bit operands.
pub(super) fn wide<L: WideLane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<Wide<L>>())
}

/// A source of 64 bits, of 32 bits, or absent.
pub(super) struct WideSource<'a> {
    low: &'a Row,
    high: Option<&'a Row>,
    adjust: Adjust,
    present: bool,
}

impl<'a> WideSource<'a> {
    /// Source `index` of an operation whose sources are 64 bits wide where `widths` says so.
    #[inline(always)]
    pub fn new(wave: &'a Wave, op: &MicroOp, widths: &[bool], index: usize, room: &'a mut [Row; 2]) -> Self {
        let modifiers = Packed(op.modifiers);
        match widths.get(index) {
            Some(true) => {
                let [low, high] = raw_wide_source(wave, op, index, room);
                WideSource {
                    low,
                    high: Some(high),
                    adjust: Adjust::of_high_dword(modifiers, index),
                    present: true,
                }
            }
            Some(false) => {
                let low = raw_source(wave, op, index, &mut room[0]);
                WideSource { low, high: None, adjust: Adjust::of(modifiers, index), present: true }
            }
            None => {
                WideSource { low: &room[0], high: None, adjust: Adjust::of(modifiers, 0), present: false }
            }
        }
    }

    /// The value in one lane.
    #[inline(always)]
    pub fn get(&self, lane: usize) -> u64 {
        match self.high {
            Some(high) => self.low.0[lane] as u64 | (self.adjust.apply(high.0[lane]) as u64) << 32,
            None if self.present => self.adjust.apply(self.low.0[lane]) as u64,
            None => 0,
        }
    }
}

/// A source as two rows; the high one is zero for a 32-bit source.
#[inline(always)]
pub(super) fn fetch_either(wave: &Wave, op: &MicroOp, sources: &[bool], index: usize) -> [Row; 2] {
    match sources.get(index) {
        Some(true) => fetch_wide(wave, op, index),
        Some(false) => [fetch(wave, op, index), Row([0; LANES])],
        None => [Row([0; LANES]); 2],
    }
}

#[inline(always)]
pub(super) fn join(rows: &[Row; 2], lane: usize) -> u64 {
    rows[0].0[lane] as u64 | (rows[1].0[lane] as u64) << 32
}

impl<L: WideLane> Operation for Wide<L> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if L::MODE.deviates(wave.mode) {
            return wide_exactly::<L>(wave, op);
        }
        let mut result = [Row([0; LANES]); 2];
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [[Row([0; LANES]); 2]; 3];
            let a = WideSource::new(wave, op, L::SOURCES, 0, &mut room_a);
            let b = WideSource::new(wave, op, L::SOURCES, 1, &mut room_b);
            let c = WideSource::new(wave, op, L::SOURCES, 2, &mut room_c);
            for lane in 0..LANES {
                let value = L::compute(a.get(lane), b.get(lane), c.get(lane));
                result[0].0[lane] = value as u32;
                result[1].0[lane] = (value >> 32) as u32;
            }
        }
        finish_wide(wave, op, result, L::RESULT, L::WIDE_RESULT)
    }
}

#[cold]
#[inline(never)]
fn wide_exactly<L: WideLane>(wave: &mut Wave, op: &MicroOp) -> Flow {
    let mode = Mode(wave.mode);
    let a = fetch_either(wave, op, L::SOURCES, 0);
    let b = fetch_either(wave, op, L::SOURCES, 1);
    let c = fetch_either(wave, op, L::SOURCES, 2);
    let mut result = [Row([0; LANES]); 2];
    for lane in 0..LANES {
        let value = L::exact(join(&a, lane), join(&b, lane), join(&c, lane), mode);
        let value = multiply_result(op, value, L::RESULT, mode);
        result[0].0[lane] = value as u32;
        result[1].0[lane] = (value >> 32) as u32;
    }
    finish_wide(wave, op, result, L::RESULT, L::WIDE_RESULT)
}

#[inline(always)]
fn finish_wide(wave: &mut Wave, op: &MicroOp, mut result: [Row; 2], kind: ResultKind, is_wide: bool) -> Flow {
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

// ---------------------------------------------------------------------------------------------------------------------
// Tests

/// [`Test`] of 32-bit sources without modifiers.
pub(super) struct PlainTest<T, const UNIFORM: u8>(PhantomData<T>);
/// [`Test`] with any operands and modifiers.
pub(super) struct GeneralTest<T>(PhantomData<T>);

fn test_mode(format: Option<Format>) -> ModeFields {
    match format {
        Some(SINGLE) => ModeFields::SINGLE,
        Some(_) => ModeFields::HALF,
        None => ModeFields::NONE,
    }
}

/// The function for a comparison of 32-bit values.
pub(super) fn test<T: Test>(parts: &Parts, level: Level) -> Option<Executor> {
    if T::WIDE[0] || !parts.modifiers.is_plain() || parts.reads_special() {
        return cold_test::<T>(parts, level);
    }
    match parts.uniform_mask() & 3 {
        0 => Some(level.bind::<PlainTest<T, 0>>()),
        1 => Some(level.bind::<PlainTest<T, 1>>()),
        2 => Some(level.bind::<PlainTest<T, 2>>()),
        _ => cold_test::<T>(parts, level),
    }
}

/// The function for any other comparison.
pub(super) fn cold_test<T: Test>(parts: &Parts, level: Level) -> Option<Executor> {
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
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [[Row([0; LANES]); 2]; 2];
            let a = WideSource::new(wave, op, &T::WIDE, 0, &mut room_a);
            let b = WideSource::new(wave, op, &T::WIDE, 1, &mut room_b);
            for lane in 0..LANES {
                flags.0[lane] = if T::test(a.get(lane), b.get(lane)) { u32::MAX } else { 0 };
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

// ---------------------------------------------------------------------------------------------------------------------
// Approximations

/// [`Approximation`] of a vector.
pub(super) struct Approximate<A>(PhantomData<A>);
/// [`Approximation`] of a scalar (`v_s_*`).
pub(super) struct ApproximateScalar<A>(PhantomData<A>);

impl<A: Approximation> Operation for Approximate<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let bias = if A::RESULT == ResultKind::Single { wave.approximation_bias } else { 0 };
        let mut result = Row([0; LANES]);
        {
            let mut room = Row([0; LANES]);
            let x = View::new(wave, op, 0, &mut room);
            for lane in 0..LANES {
                result.0[lane] = x.get(lane);
            }
        }
        result.0 = A::compute(result.0);
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

/// The function for an approximation.
pub(super) fn vector_approximation<A: Approximation>(_parts: &Parts, level: Level) -> Option<Executor> {
    Some(level.bind::<Approximate<A>>())
}

/// The function for an approximation of a scalar.
pub(super) fn scalar_approximation<A: Approximation>(_parts: &Parts, _level: Level) -> Option<Executor> {
    Some(Level::BASELINE.bind::<ApproximateScalar<A>>())
}
