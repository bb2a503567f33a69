//! How an operation on lanes becomes a function on registers.
//!
//! An operation defines what it computes in one lane ([`Lane`] and its relatives); the shells here loop over the lanes.
//! [`Plain`] reads registers in place and is specialised by which sources are uniform; [`General`] handles everything
//! else through `access`, and all of it at the baseline. If MODE is not the usual one, both use the exact model.
//!
//! Contract: a shell writes active lanes only. The loops that compute have constant bounds and no branches, so that the
//! compiler turns them into vector code of the level that the function is bound to. General operations read and write
//! through functions that are compiled once.

mod approximation;
mod packed;
mod test;
mod wide;

use core::marker::PhantomData;

pub(super) use approximation::{scalar_approximation, vector_approximation};
pub(super) use packed::{packed, saturating_halves};
pub(super) use test::{cold_test, test};
pub(super) use wide::{WideSource, finish_wide, join, wide};

use super::access::{clamp_half, clamp_single, commit, sources, store};
use super::operand::{Packed, Parts};
use crate::shader::float::{DOUBLE, Environment, Format, HALF, MODE_FP16_OVERFLOW, Mode, SINGLE, scale};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// The fields of MODE that affect an operation.
#[derive(Clone, Copy)]
pub(crate) struct ModeFields(u32);

/// Rounding to nearest even, denormals kept.
const MODE_USUAL: u32 = 0xF0;

impl ModeFields {
    /// No field: integers and bits.
    pub const NONE: Self = Self(0);
    /// Rounding and denormals of f32.
    pub const SINGLE: Self = Self(0x33);
    /// Rounding, denormals and overflow of f16.
    pub const HALF: Self = Self(0xCC | MODE_FP16_OVERFLOW);
    /// Rounding and denormals of f64.
    pub const DOUBLE: Self = Self(0xCC);
    /// All fields.
    pub const ALL: Self = Self(0xFF | MODE_FP16_OVERFLOW);

    /// True if a field differs from its usual value.
    #[inline(always)]
    pub const fn deviates(self, mode: u32) -> bool {
        mode & self.0 != MODE_USUAL & self.0
    }
}

/// How clamp and omod apply to a result.
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
    /// MODE fields that affect it.
    const MODE: ModeFields;
    /// Kind of the result.
    const RESULT: ResultKind;
    /// The value under the usual MODE.
    fn compute(a: u32, b: u32, c: u32) -> u32;
    /// The value in any MODE.
    fn exact(a: u32, b: u32, c: u32, mode: Mode) -> u32;
}

/// A function of up to three values of one lane, some of 64 bits.
pub(crate) trait WideLane {
    /// The sources present, and whether each is 64 bits wide.
    const SOURCES: &'static [bool];
    /// Whether the result is 64 bits wide.
    const WIDE_RESULT: bool;
    /// MODE fields that affect it.
    const MODE: ModeFields;
    /// Kind of the result.
    const RESULT: ResultKind;
    /// The value under the usual MODE.
    fn compute(a: u64, b: u64, c: u64) -> u64;
    /// The value in any MODE.
    fn exact(a: u64, b: u64, c: u64, mode: Mode) -> u64;
}

/// A test of two values of one lane.
pub(crate) trait Test {
    /// Whether each source is 64 bits wide.
    const WIDE: [bool; 2];
    /// The format whose denormal sources MODE may flush.
    const FORMAT: Option<Format>;
    /// The result of the test.
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

/// [`Lane`] without modifiers; bit `i` of `UNIFORM` means that source `i` is the same in every lane.
pub(super) struct Plain<L, const UNIFORM: u8>(PhantomData<L>);

/// The register of a source that is known to be a vector register.
#[inline(always)]
fn register<'a>(wave: &'a Wave, op: &MicroOp, index: usize) -> &'a Row {
    match op.sources[index] {
        Source::Vector(register) => &wave.vector[register as usize],
        // Unreachable: the translator chose the function by the kinds of the sources.
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
    if !is_plain(parts) {
        return cold::<L>(parts, level);
    }
    Some(match parts.uniform_mask() & 1 {
        0 => level.bind_either::<Plain<L, 0>, General<L>>(),
        _ => level.bind_either::<Plain<L, 1>, General<L>>(),
    })
}

/// The function for two sources.
pub(super) fn hot2<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if !is_plain(parts) {
        return cold::<L>(parts, level);
    }
    match parts.uniform_mask() & 3 {
        0 => Some(level.bind_either::<Plain<L, 0>, General<L>>()),
        1 => Some(level.bind_either::<Plain<L, 1>, General<L>>()),
        2 => Some(level.bind_either::<Plain<L, 2>, General<L>>()),
        _ => cold::<L>(parts, level),
    }
}

/// The function for three sources.
pub(super) fn hot3<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if !is_plain(parts) {
        return cold::<L>(parts, level);
    }
    match parts.uniform_mask() {
        0 => Some(level.bind_either::<Plain<L, 0>, General<L>>()),
        1 => Some(level.bind_either::<Plain<L, 1>, General<L>>()),
        2 => Some(level.bind_either::<Plain<L, 2>, General<L>>()),
        4 => Some(level.bind_either::<Plain<L, 4>, General<L>>()),
        6 => Some(level.bind_either::<Plain<L, 6>, General<L>>()),
        _ => cold::<L>(parts, level),
    }
}

/// Whether the functions for plain operands do it. (No operation that has them returns 16 bits.)
fn is_plain(parts: &Parts) -> bool {
    parts.modifiers.is_plain() && !parts.reads_special()
}

// ---------------------------------------------------------------------------------------------------------------------
// General

/// [`Lane`] with any operands and modifiers.
pub(super) struct General<L>(PhantomData<L>);

/// The function for any operands. `None` if clamp has no meaning for the operation.
pub(super) fn cold<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<General<L>>())
}

/// The function of a saturating form: the choice of `L` implements clamp.
pub(super) fn saturating<L: Lane>(_parts: &Parts, level: Level) -> Option<Executor> {
    Some(level.bind::<General<L>>())
}

/// Clamps and writes a result.
#[inline(never)]
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
        let mut rooms = [Row([0; LANES]); 3];
        let [a, b, c] = sources(wave, op, L::SOURCES, &mut rooms);
        for lane in 0..LANES {
            result.0[lane] = L::compute(a.0[lane], b.0[lane], c.0[lane]);
        }
        finish(wave, op, result, L::RESULT)
    }
}

/// Executes [`Lane`] with its exact model.
#[cold]
#[inline(never)]
fn exactly<L: Lane>(wave: &mut Wave, op: &MicroOp) -> Flow {
    let mode = Mode(wave.mode);
    let mut rooms = [Row([0; LANES]); 3];
    let [a, b, c] = sources(wave, op, L::SOURCES, &mut rooms);
    let mut result = Row([0; LANES]);
    for lane in 0..LANES {
        let value = L::exact(a.0[lane], b.0[lane], c.0[lane], mode);
        result.0[lane] = multiply_result(op, value as u64, L::RESULT, mode) as u32;
    }
    finish(wave, op, result, L::RESULT)
}

/// Output modifier ×2, ×4 or ÷2: applies if denormal results are flushed, and is ignored otherwise (instruction set
/// reference §6).
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
