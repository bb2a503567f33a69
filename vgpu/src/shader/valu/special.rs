//! Operations that need more than one lane's sources: masks in or out, carries, lane numbers, mixed widths, dot
//! products.
//!
//! Contract: masks are read before they are written; a mask result has zeros in inactive lanes.

use core::marker::PhantomData;

use zrt_isa::Opcode;

use super::access::{View, commit, commit_wide, fetch, fetch_wide, mask_source, raw_source, store};
use super::operand::{Packed, Parts};
use super::shell::{ModeFields, ResultKind, WideSource, finish, finish_wide, join, multiply_result};
use super::single::canonical;
use crate::shader::float::{
    DOUBLE, DOUBLE_NAN, Environment, HALF, Mode, SINGLE, SINGLE_NAN, approximate, convert, half_to_single,
    multiply_add, multiply_add_scaled, scale, single_to_half,
};
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, add_byte_products, blend, collect, merge_half, spread};

/// The functions of this file.
pub(super) fn bind(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
    use Opcode::*;
    let clamp = parts.modifiers.clamp();
    let is_as_computed = !clamp && parts.modifiers.omod() == 0;
    let executor = match opcode {
        VPipeflush => Executor::baseline::<Nothing>(),
        VCndmaskB32 if parts.modifiers.is_plain() => level.bind::<Select<true>>(),
        VCndmaskB32 | VCndmaskB16 => level.bind::<Select<false>>(),
        VAddCoU32 if !clamp => level.bind::<Carry<Add, false>>(),
        VSubCoU32 if !clamp => level.bind::<Carry<Subtract, false>>(),
        VSubrevCoU32 if !clamp => level.bind::<Carry<SubtractReversed, false>>(),
        VAddCoCiU32 if !clamp => level.bind::<Carry<Add, true>>(),
        VSubCoCiU32 if !clamp => level.bind::<Carry<Subtract, true>>(),
        VSubrevCoCiU32 if !clamp => level.bind::<Carry<SubtractReversed, true>>(),
        VMadCoU64U32 if !clamp => level.bind::<MultiplyAddWide<false>>(),
        VMadCoI64I32 if !clamp => level.bind::<MultiplyAddWide<true>>(),
        VDivScaleF32 if is_as_computed => level.bind::<DivisionScale>(),
        VDivScaleF64 if is_as_computed => Executor::baseline::<DivisionScaleWide>(),
        VDivFmasF32 => level.bind::<DivisionFmas>(),
        VDivFmasF64 => level.bind::<DivisionFmasWide>(),
        VMbcntLoU32B32 => level.bind::<MaskedBitCount<true>>(),
        VMbcntHiU32B32 => level.bind::<MaskedBitCount<false>>(),
        VFmaMixF32 => level.bind::<Mix<MIX_SINGLE>>(),
        VFmaMixloF16 => level.bind::<Mix<MIX_LOW>>(),
        VFmaMixhiF16 => level.bind::<Mix<MIX_HIGH>>(),
        VDot4I32Iu8 => level.bind::<Dot<8, true>>(),
        VDot4U32U8 => level.bind::<Dot<8, false>>(),
        VDot8I32Iu4 => level.bind::<Dot<4, true>>(),
        VDot8U32U4 => level.bind::<Dot<4, false>>(),
        VRcpF64 => level.bind::<Seed<RECIPROCAL>>(),
        VRsqF64 => level.bind::<Seed<RECIPROCAL_SQUARE_ROOT>>(),
        VSqrtF64 => level.bind::<Seed<SQUARE_ROOT>>(),
        _ => return None,
    };
    Some(executor)
}

struct Nothing;
impl Operation for Nothing {
    #[inline(always)]
    fn execute(_wave: &mut Wave, _op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        Flow::Next
    }
}

/// v_cndmask. `PLAIN`: no modifiers, a 32-bit result.
struct Select<const PLAIN: bool>;
impl<const PLAIN: bool> Operation for Select<PLAIN> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let mask = mask_source(wave, op, 2);
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            if PLAIN {
                let a = raw_source(wave, op, 0, &mut room_a);
                let b = raw_source(wave, op, 1, &mut room_b);
                result = blend(mask, b, a);
            } else {
                let a = View::new(wave, op, 0, &mut room_a);
                let b = View::new(wave, op, 1, &mut room_b);
                let chosen = spread(mask);
                for lane in 0..LANES {
                    result.0[lane] = b.get(lane) & chosen.0[lane] | a.get(lane) & !chosen.0[lane];
                }
            }
        }
        if PLAIN {
            store(wave, op.destination, &result);
        } else {
            commit(wave, op, &result);
        }
        Flow::Next
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Carries

trait CarryKind {
    /// The sum or difference and the carry or borrow, both 0 or 1.
    fn compute(a: u32, b: u32, carry: u32) -> (u32, u32);
}

struct Add;
impl CarryKind for Add {
    #[inline(always)]
    fn compute(a: u32, b: u32, carry: u32) -> (u32, u32) {
        let sum = a.wrapping_add(b).wrapping_add(carry);
        // It wrapped if the sum is below a, or equals a because b plus the carry is 2^32.
        (sum, (sum < a || (sum == a && carry == 1)) as u32)
    }
}

struct Subtract;
impl CarryKind for Subtract {
    #[inline(always)]
    fn compute(a: u32, b: u32, borrow: u32) -> (u32, u32) {
        (a.wrapping_sub(b).wrapping_sub(borrow), (a < b || (a == b && borrow == 1)) as u32)
    }
}

struct SubtractReversed;
impl CarryKind for SubtractReversed {
    #[inline(always)]
    fn compute(a: u32, b: u32, borrow: u32) -> (u32, u32) {
        Subtract::compute(b, a, borrow)
    }
}

struct Carry<C, const IN: bool>(PhantomData<C>);
impl<C: CarryKind, const IN: bool> Operation for Carry<C, IN> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (mut result, mut flags) = (Row([0; LANES]), Row([0; LANES]));
        {
            let wave = &*wave;
            let carries = spread(if IN { mask_source(wave, op, 2) } else { 0 });
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            for lane in 0..LANES {
                let carry = if IN { carries.0[lane] & 1 } else { 0 };
                let (sum, out) = C::compute(a.0[lane], b.0[lane], carry);
                result.0[lane] = sum;
                flags.0[lane] = out.wrapping_neg();
            }
        }
        let lanes = writable(wave, op);
        wave.scalar[op.destination2 as usize] = collect(flags) & lanes;
        commit(wave, op, &result);
        Flow::Next
    }
}

/// v_mad_co_u64_u32 and v_mad_co_i64_i32.
struct MultiplyAddWide<const SIGNED: bool>;
impl<const SIGNED: bool> Operation for MultiplyAddWide<SIGNED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (mut result, mut flags) = ([Row([0; LANES]); 2], Row([0; LANES]));
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let mut room_c = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = WideSource::new(wave, op, 2, &mut room_c);
            for lane in 0..LANES {
                let (x, y, z) = (a.0[lane], b.0[lane], c.get(lane));
                let (sum, carry) = if SIGNED {
                    // Bit 64 of the 65-bit sum is its true sign.
                    let (sum, wrapped) = (x as i32 as i64 * y as i32 as i64).overflowing_add(z as i64);
                    (sum as u64, (sum < 0) != wrapped)
                } else {
                    (x as u64 * y as u64).overflowing_add(z)
                };
                result[0].0[lane] = sum as u32;
                result[1].0[lane] = (sum >> 32) as u32;
                flags.0[lane] = if carry { u32::MAX } else { 0 };
            }
        }
        let lanes = writable(wave, op);
        wave.scalar[op.destination2 as usize] = collect(flags) & lanes;
        commit_wide(wave, op, &result);
        Flow::Next
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Division

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
        if unusual != 0 {
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
        result.0[lane] = if power == 0 { source(0) } else { scaled };
        mask |= (flag as u32) << lane;
    }
    let lanes = writable(wave, op);
    commit(wave, op, &result);
    wave.scalar[op.destination2 as usize] = mask & lanes;
    Flow::Next
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
            let quotient_is_denormal =
                d.is_finite() && quotient.abs() < f64::MIN_POSITIVE * 2f64.powi(200) && n.abs() < 1.0e300;
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
        result[0].0[lane] = value as u32;
        result[1].0[lane] = (value >> 32) as u32;
    }
    let lanes = writable(wave, op);
    commit_wide(wave, op, &result);
    wave.scalar[op.destination2 as usize] = mask & lanes;
    Flow::Next
}

/// v_div_fmas_f32: fma, scaled back by 2^±64 and rounded once, in the lanes of vcc. The sign of the scaling follows
/// the quotient: one of at least 2 was scaled down by v_div_scale. (The printed pseudocode has 2^32, which does not
/// undo v_div_scale.)
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
            let environment = Mode(wave.mode).single();
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
        let environment = Mode(wave.mode).double();
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

// ---------------------------------------------------------------------------------------------------------------------
// Lane numbers, mixed precision, dot products

/// v_mbcnt_lo and _hi: the number of mask bits set below the lane, added to source 1. No lane of a wave32 is above
/// bit 31 of the high mask.
struct MaskedBitCount<const LOW: bool>;
impl<const LOW: bool> Operation for MaskedBitCount<LOW> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            for lane in 0..LANES {
                let below = if LOW { a.0[lane] & ((1u32 << lane) - 1) } else { 0 };
                result.0[lane] = b.0[lane].wrapping_add(below.count_ones());
            }
        }
        commit(wave, op, &result);
        Flow::Next
    }
}

const MIX_SINGLE: u8 = 0;
const MIX_LOW: u8 = 1;
const MIX_HIGH: u8 = 2;

/// v_fma_mix: each source is f32, or, if op_sel_hi is set, the half that op_sel selects; the bits of neg_hi mean
/// abs.
struct Mix<const RESULT: u8>;

#[inline(always)]
fn mix_source(wave: &Wave, op: &MicroOp, index: usize) -> Row {
    let modifiers = Packed(op.modifiers);
    let mut room = Row([0; LANES]);
    let row = *raw_source(wave, op, index, &mut room);
    let mut result = row;
    if modifiers.high_selects_high(index) {
        let shift = if modifiers.selects_high(index) { 16 } else { 0 };
        for lane in 0..LANES {
            result.0[lane] = half_to_single(row.0[lane] >> shift);
        }
    }
    if modifiers.any_sign() {
        let clear = if modifiers.absolute(index) { 1u32 << 31 } else { 0 };
        let flip = if modifiers.negate(index) { 1u32 << 31 } else { 0 };
        for lane in 0..LANES {
            result.0[lane] = result.0[lane] & !clear ^ flip;
        }
    }
    result
}

impl<const RESULT: u8> Operation for Mix<RESULT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (a, b, c) = (mix_source(wave, op, 0), mix_source(wave, op, 1), mix_source(wave, op, 2));
        let mut result = Row([0; LANES]);
        if ModeFields::ALL.deviates(wave.mode) {
            exact_mix::<RESULT>(&[a, b, c], Mode(wave.mode), &mut result);
        } else {
            for lane in 0..LANES {
                let [a, b, c] = [a.0[lane], b.0[lane], c.0[lane]].map(f32::from_bits);
                let sum = canonical(a.mul_add(b, c));
                result.0[lane] = if RESULT == MIX_SINGLE { sum } else { single_to_half(sum) };
            }
        }
        mix_finish::<RESULT>(wave, op, result)
    }
}

#[cold]
#[inline(never)]
fn exact_mix<const RESULT: u8>(sources: &[Row; 3], mode: Mode, result: &mut Row) {
    for lane in 0..LANES {
        let values = [0, 1, 2].map(|index: usize| sources[index].0[lane] as u64);
        let sum = multiply_add(SINGLE, values, mode.single());
        let kept = Environment { flush_sources: false, ..mode.single() };
        result.0[lane] = if RESULT == MIX_SINGLE {
            sum as u32
        } else {
            convert(SINGLE, HALF, sum, kept, mode.half()) as u32
        };
    }
}

#[inline(always)]
fn mix_finish<const RESULT: u8>(wave: &mut Wave, op: &MicroOp, mut result: Row) -> Flow {
    if RESULT == MIX_SINGLE {
        if Packed(op.modifiers).clamp() {
            super::access::clamp_single(&mut result);
        }
    } else {
        if Packed(op.modifiers).clamp() {
            super::access::clamp_half(&mut result);
        }
        result = merge_half(&result, &wave.vector[op.destination as usize], RESULT == MIX_HIGH);
    }
    let lanes = writable(wave, op);
    let register = op.destination as usize;
    wave.vector[register] =
        if lanes == u32::MAX { result } else { blend(lanes, &result, &wave.vector[register]) };
    Flow::Next
}

/// Integer dot products of bytes or nibbles. `MIXED`: negate bits 0 and 1 select which side is signed, and the sum
/// is signed (instruction set reference §6). Clamp saturates the exact sum.
struct Dot<const BITS: u32, const MIXED: bool>;
impl<const BITS: u32, const MIXED: bool> Operation for Dot<BITS, MIXED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let is_signed = [0, 1].map(|source: usize| MIXED && modifiers.negate(source));
        let result = {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = raw_source(wave, op, 2, &mut room_c);
            let mut sums = [0; LANES];
            if BITS == 8 {
                add_byte_products(a, b, is_signed, &mut sums);
            } else {
                for shift in [0, 4] {
                    let (a, b) = (nibbles(a, shift, is_signed[0]), nibbles(b, shift, is_signed[1]));
                    add_byte_products(&a, &b, is_signed, &mut sums);
                }
            }
            let mut result = Row([0; LANES]);
            for (lane, &sum) in sums.iter().enumerate() {
                result.0[lane] = if !modifiers.clamp() {
                    c.0[lane].wrapping_add(sum as u32)
                } else if MIXED {
                    (c.0[lane] as i32).saturating_add(sum) as u32
                } else {
                    c.0[lane].saturating_add(sum as u32)
                };
            }
            result
        };
        commit(wave, op, &result);
        Flow::Next
    }
}

/// The nibbles at bit `shift` of every byte, as bytes.
#[inline(always)]
fn nibbles(row: &Row, shift: u32, is_signed: bool) -> Row {
    let signs = if is_signed { 0x0808_0808 } else { 0 };
    let mut bytes = Row([0; LANES]);
    for (bytes, nibbles) in bytes.0.iter_mut().zip(&row.0) {
        let nibbles = nibbles >> shift & 0x0F0F_0F0F;
        // 0xF0 is 30 times the sign bit.
        *bytes = nibbles | ((nibbles & signs) * 30);
    }
    bytes
}
