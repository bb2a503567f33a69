//! What divisions and square roots are made of: v_div_scale, v_div_fmas, and the seeds of f64.
//!
//! Contract: the sequences of instruction set reference §8.3 with these give the IEEE quotient. Results are multiplied
//! and clamped like those of any other operation; the mask of v_div_scale is not.

use zrt_isa::Opcode;

use super::access::{View, commit, fetch, fetch_wide};
use super::operand::Packed;
use super::shell::{ModeFields, ResultKind, finish, finish_wide, join, multiply_result};
use super::single::canonical;
use crate::shader::float::{
    DOUBLE, DOUBLE_NAN, Environment, Mode, SINGLE, SINGLE_NAN, approximate, multiply_add_scaled, scale,
};
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// The functions of this file.
pub(super) fn bind(opcode: Opcode, level: Level) -> Option<Executor> {
    use Opcode::*;
    let executor = match opcode {
        VDivScaleF32 => level.bind::<DivisionScale>(),
        VDivScaleF64 => Executor::baseline::<DivisionScaleWide>(),
        VDivFmasF32 => level.bind::<DivisionFmas>(),
        VDivFmasF64 => level.bind::<DivisionFmasWide>(),
        VRcpF64 => level.bind::<Seed<RECIPROCAL>>(),
        VRsqF64 => level.bind::<Seed<RECIPROCAL_SQUARE_ROOT>>(),
        VSqrtF64 => level.bind::<Seed<SQUARE_ROOT>>(),
        _ => return None,
    };
    Some(executor)
}

/// How v_div_scale scales its first source, as a power of two, and whether v_div_fmas must scale back.
///
/// The decisions follow the instruction set's text, with two interpretations without which the sequence does not
/// divide: "denormal" quotients and reciprocals are those of the operands' own format, and if both are denormal,
/// the denominator is scaled down (scaled up, it would overflow). `limit` is the exponent difference that brings
/// the quotient near overflow, `step` the scaling, `tiny` the exponent field of a numerator that needs it.
fn division_scaling(s: [Parts3; 3], limit: i32, step: i32, tiny: i32) -> (i32, bool) {
    let [source, denominator, numerator] = s;
    let is_denominator = source.bits == denominator.bits;
    let is_numerator = source.bits == numerator.bits;
    let reciprocal_is_denormal = denominator.reciprocal_is_denormal;
    let quotient_is_denormal = numerator.quotient_is_denormal;
    if numerator.exponent - denominator.exponent >= limit {
        (if is_denominator { step } else { 0 }, true)
    } else if denominator.is_denormal {
        (step, false)
    } else if reciprocal_is_denormal && quotient_is_denormal {
        (if is_denominator { -step } else { 0 }, true)
    } else if reciprocal_is_denormal {
        (-step, false)
    } else if quotient_is_denormal {
        (if is_numerator { step } else { 0 }, true)
    } else if numerator.exponent <= tiny {
        (step, false)
    } else {
        (0, false)
    }
}

/// The properties of a source that [`division_scaling`] uses.
#[derive(Clone, Copy)]
struct Parts3 {
    bits: u64,
    exponent: i32,
    is_denormal: bool,
    reciprocal_is_denormal: bool,
    quotient_is_denormal: bool,
}

struct DivisionScale;
impl Operation for DivisionScale {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (mut source, mut unusual) = (Row([0; LANES]), 0);
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = View::new(wave, op, 0, &mut room_a);
            let b = View::new(wave, op, 1, &mut room_b);
            let c = View::new(wave, op, 2, &mut room_c);
            // Most divisions need no scaling: both exponents far from the ends and from each other.
            for lane in 0..LANES {
                source.0[lane] = a.get(lane);
                let (d, n) = (b.get(lane) >> 23 & 0xFF, c.get(lane) >> 23 & 0xFF);
                let distance = n.wrapping_sub(d).wrapping_add(120);
                unusual |= (d.wrapping_sub(1) >= 251) as u32 | (n.wrapping_sub(24) >= 230) as u32;
                unusual |= (distance >= 216) as u32;
            }
        }
        let modifiers = Packed(op.modifiers);
        // The scaled source may be a denormal that MODE flushes. Output modifiers apply only where it
        // flushes denormal results.
        let flushes = ModeFields::SINGLE.deviates(wave.mode);
        if unusual != 0 || flushes || modifiers.clamp() {
            return division_scale(wave, op);
        }
        commit(wave, op, &source);
        wave.scalar[op.destination2 as usize] = 0;
        Flow::Next
    }
}

#[inline(never)]
fn division_scale(wave: &mut Wave, op: &MicroOp) -> Flow {
    let rows = [fetch(wave, op, 0), fetch(wave, op, 1), fetch(wave, op, 2)];
    let environment = Mode(wave.mode).single();
    let mut result = Row([0; LANES]);
    let mut mask = 0;
    for lane in 0..LANES {
        let source = |index: usize| SINGLE.flush_source(rows[index].0[lane] as u64, environment) as u32;
        let (denominator, numerator) = (source(1), source(2));
        let (n, d) = (f64::from(f32::from_bits(numerator)), f64::from(f32::from_bits(denominator)));
        if n == 0.0 || d == 0.0 {
            result.0[lane] = SINGLE_NAN;
            continue;
        }
        let smallest_normal = f64::from(f32::MIN_POSITIVE);
        let parts = |bits: u32| Parts3 {
            bits: bits as u64,
            exponent: (bits >> 23 & 0xFF) as i32,
            is_denormal: SINGLE.is_denormal(bits as u64),
            // Exact comparisons in f64; an infinite denominator has a zero reciprocal, not a denormal one.
            reciprocal_is_denormal: d.is_finite() && d.abs() * smallest_normal > 1.0,
            quotient_is_denormal: d.is_finite() && n.abs() < d.abs() * smallest_normal,
        };
        let (power, flag) =
            division_scaling([parts(source(0)), parts(denominator), parts(numerator)], 96, 64, 23);
        let scaled = scale(SINGLE, source(0) as u64, power, environment) as u32;
        let value = u64::from(if power == 0 { source(0) } else { scaled });
        result.0[lane] = multiply_result(op, value, ResultKind::Single, Mode(wave.mode)) as u32;
        mask |= (flag as u32) << lane;
    }
    mask &= writable(wave, op);
    let flow = finish(wave, op, result, ResultKind::Single);
    wave.scalar[op.destination2 as usize] = mask;
    flow
}

struct DivisionScaleWide;
impl Operation for DivisionScaleWide {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        division_scale_wide(wave, op)
    }
}

#[inline(never)]
fn division_scale_wide(wave: &mut Wave, op: &MicroOp) -> Flow {
    let rows = [fetch_wide(wave, op, 0), fetch_wide(wave, op, 1), fetch_wide(wave, op, 2)];
    let environment = Mode(wave.mode).double();
    let mut result = [Row([0; LANES]); 2];
    let mut mask = 0;
    for lane in 0..LANES {
        let source = |index: usize| DOUBLE.flush_source(join(&rows[index], lane), environment);
        let (denominator, numerator) = (source(1), source(2));
        let (n, d) = (f64::from_bits(numerator), f64::from_bits(denominator));
        let value = if n == 0.0 || d == 0.0 {
            DOUBLE_NAN
        } else {
            // Quotients of f64 do not fit f64 exactly: the comparison with 2^-1022 is made after raising both
            // exponents.
            let quotient = (n * 2f64.powi(200)) / d;
            let quotient_is_denormal = d.is_finite() && quotient.abs() < f64::MIN_POSITIVE * 2f64.powi(200);
            let parts = |bits: u64| Parts3 {
                bits,
                exponent: (bits >> 52 & 0x7FF) as i32,
                is_denormal: DOUBLE.is_denormal(bits),
                reciprocal_is_denormal: d.is_finite() && d.abs() > 2f64.powi(1022),
                quotient_is_denormal,
            };
            let (power, flag) =
                division_scaling([parts(source(0)), parts(denominator), parts(numerator)], 768, 128, 53);
            mask |= (flag as u32) << lane;
            if power == 0 { source(0) } else { scale(DOUBLE, source(0), power, environment) }
        };
        let value = multiply_result(op, value, ResultKind::Double, Mode(wave.mode));
        result[0].0[lane] = value as u32;
        result[1].0[lane] = (value >> 32) as u32;
    }
    mask &= writable(wave, op);
    let flow = finish_wide(wave, op, result, ResultKind::Double, true);
    wave.scalar[op.destination2 as usize] = mask;
    flow
}

/// v_div_fmas_f32: fma, scaled back by 2^±64 and rounded once, in the lanes of vcc. The sign of the scaling follows
/// the quotient: one of at least 2 was scaled down by v_div_scale. (The printed pseudocode has 2^32, which does not
/// undo v_div_scale.) Denormal sources are kept whatever MODE says.
struct DivisionFmas;
impl Operation for DivisionFmas {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let vcc = wave.scalar[op.destination2 as usize];
        let mut result = Row([0; LANES]);
        if vcc == 0 && !ModeFields::SINGLE.deviates(wave.mode) {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = View::new(wave, op, 0, &mut room_a);
            let b = View::new(wave, op, 1, &mut room_b);
            let c = View::new(wave, op, 2, &mut room_c);
            for lane in 0..LANES {
                let (a, b) = (f32::from_bits(a.get(lane)), f32::from_bits(b.get(lane)));
                result.0[lane] = canonical(a.mul_add(b, f32::from_bits(c.get(lane))));
            }
        } else {
            let rows = [fetch(wave, op, 0), fetch(wave, op, 1), fetch(wave, op, 2)];
            let environment = Environment { flush_sources: false, ..Mode(wave.mode).single() };
            for lane in 0..LANES {
                let sources = [0, 1, 2].map(|index: usize| rows[index].0[lane] as u64);
                let up = sources[2] >> 23 & 0xFF > 127;
                let power = if vcc >> lane & 1 == 0 {
                    0
                } else if up {
                    64
                } else {
                    -64
                };
                let value = multiply_add_scaled(SINGLE, sources, power, environment);
                result.0[lane] = multiply_result(op, value, ResultKind::Single, Mode(wave.mode)) as u32;
            }
        }
        finish(wave, op, result, ResultKind::Single)
    }
}

/// v_div_fmas_f64, with 2^±128.
struct DivisionFmasWide;
impl Operation for DivisionFmasWide {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let rows = [fetch_wide(wave, op, 0), fetch_wide(wave, op, 1), fetch_wide(wave, op, 2)];
        let vcc = wave.scalar[op.destination2 as usize];
        let environment = Environment { flush_sources: false, ..Mode(wave.mode).double() };
        let mut result = [Row([0; LANES]); 2];
        for lane in 0..LANES {
            let sources = [0, 1, 2].map(|index: usize| join(&rows[index], lane));
            let up = sources[2] >> 52 & 0x7FF > 1023;
            let power = if vcc >> lane & 1 == 0 {
                0
            } else if up {
                128
            } else {
                -128
            };
            let value = multiply_add_scaled(DOUBLE, sources, power, environment);
            let value = multiply_result(op, value, ResultKind::Double, Mode(wave.mode));
            result[0].0[lane] = value as u32;
            result[1].0[lane] = (value >> 32) as u32;
        }
        finish_wide(wave, op, result, ResultKind::Double, true)
    }
}

const RECIPROCAL: u8 = 0;
const RECIPROCAL_SQUARE_ROOT: u8 = 1;
const SQUARE_ROOT: u8 = 2;

/// v_rcp_f64, v_rsq_f64, v_sqrt_f64: seeds of these functions.
struct Seed<const FUNCTION: u8>;
impl<const FUNCTION: u8> Operation for Seed<FUNCTION> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let x = fetch_wide(wave, op, 0);
        let bias = wave.approximation_bias;
        let mut result = [Row([0; LANES]); 2];
        for lane in 0..LANES {
            let x = join(&x, lane);
            let value = match FUNCTION {
                RECIPROCAL => approximate::double::reciprocal(x),
                RECIPROCAL_SQUARE_ROOT => approximate::double::reciprocal_square_root(x),
                _ => approximate::double::square_root(x),
            };
            let value = approximate::biased_double(value, bias);
            let value = multiply_result(op, value, ResultKind::Double, Mode(wave.mode));
            result[0].0[lane] = value as u32;
            result[1].0[lane] = (value >> 32) as u32;
        }
        finish_wide(wave, op, result, ResultKind::Double, true)
    }
}
