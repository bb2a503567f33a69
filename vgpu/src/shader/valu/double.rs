//! 64-bit operations: f64, wide integers, and conversions to and from f64.
//!
//! Contract: as for f32; a 64-bit operand is a pair of registers, low dword first.

use crate::shader::float::{
    DOUBLE, DOUBLE_NAN, Environment, Mode, Round, SINGLE, add, convert, multiply, multiply_add,
    round_to_integral, scale,
};

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7FF0_0000_0000_0000;
const QUIET: u64 = 0x0008_0000_0000_0000;

#[inline(always)]
fn canonical(value: f64) -> u64 {
    if value.is_nan() { DOUBLE_NAN } else { value.to_bits() }
}

#[inline(always)]
fn float(a: u64) -> f64 {
    f64::from_bits(a)
}

#[inline(always)]
fn is_nan(bits: u64) -> bool {
    bits & !SIGN > INFINITY
}

#[inline(always)]
fn key(bits: u64) -> i64 {
    (bits ^ (((bits as i64) >> 63) as u64 >> 1)) as i64
}

fn choose_number(a: u64, b: u64, a_wins: bool) -> u64 {
    match (is_nan(a), is_nan(b)) {
        (true, true) => a | QUIET,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if a_wins {
                a
            } else {
                b
            }
        }
    }
}

fn choose_nan(a: u64, b: u64, a_wins: bool) -> u64 {
    let signals = |bits: u64| is_nan(bits) && bits & QUIET == 0;
    match (is_nan(a), is_nan(b)) {
        (false, false) => {
            if a_wins {
                a
            } else {
                b
            }
        }
        (true, _) if signals(a) || !signals(b) => a | QUIET,
        _ => b | QUIET,
    }
}

/// A selection among sources that are flushed according to MODE; the result is not (RDNA4 instruction set guide,
/// V_MIN_NUM_F64).
fn flushed(m: Mode, a: u64, b: u64, choose: fn(u64, u64) -> u64) -> u64 {
    let m = m.double();
    choose(DOUBLE.flush_source(a, m), DOUBLE.flush_source(b, m))
}

fn minimum_number(a: u64, b: u64) -> u64 {
    choose_number(a, b, key(a) < key(b))
}

fn maximum_number(a: u64, b: u64) -> u64 {
    choose_number(a, b, key(a) > key(b))
}

fn minimum(a: u64, b: u64) -> u64 {
    choose_nan(a, b, key(a) < key(b))
}

fn maximum(a: u64, b: u64) -> u64 {
    choose_nan(a, b, key(a) > key(b))
}

/// The value, times 2^64 if it is denormal.
fn normalised(a: u64) -> u64 {
    if a & INFINITY == 0 { (float(a) * 18_446_744_073_709_551_616.0).to_bits() } else { a }
}

fn frexp_mantissa(a: u64) -> u64 {
    if is_nan(a) {
        a | QUIET
    } else if a & !SIGN == 0 || a & !SIGN == INFINITY {
        a
    } else {
        normalised(a) & 0x800F_FFFF_FFFF_FFFF | 1022 << 52
    }
}

fn frexp_exponent(a: u64) -> u64 {
    if a & !SIGN == 0 || a & !SIGN >= INFINITY {
        return 0;
    }
    let field = (normalised(a) >> 52 & 0x7FF) as i32;
    (field - 1022 - if a & INFINITY == 0 { 64 } else { 0 }) as u32 as u64
}

fn division_fixup(a: u64, b: u64, c: u64) -> u64 {
    let sign = (b ^ c) & SIGN;
    let (denominator, numerator) = (b & !SIGN, c & !SIGN);
    let exponent = |bits: u64| (bits >> 52) as i32;
    let undefined =
        (denominator == 0 && numerator == 0) || (denominator == INFINITY && numerator == INFINITY);
    if is_nan(c) {
        c | QUIET
    } else if is_nan(b) {
        b | QUIET
    } else if undefined {
        0xFFF8_0000_0000_0000
    } else if denominator == 0 || numerator == INFINITY {
        sign | INFINITY
    } else if denominator == INFINITY || numerator == 0 || exponent(numerator) - exponent(denominator) < -1075
    {
        sign
    } else if is_nan(a) {
        // The steps overflowed the largest number.
        sign | INFINITY
    } else {
        sign | a & !SIGN
    }
}

fn flush1(m: Mode, a: u64, function: fn(u64) -> u64) -> u64 {
    function(DOUBLE.flush_source(a, m.double()))
}

/// a - floor(a); what rounds to 1 is the largest number below it.
fn fraction_part(m: Environment, a: u64) -> u64 {
    let fraction = add(DOUBLE, a, round_to_integral(DOUBLE, a, Round::Down, m) ^ SIGN, m);
    if fraction == f64::to_bits(1.0) { fraction - 1 } else { fraction }
}

wide_operations! {
    VAddF64 [true, true] true DOUBLE Double |a, b, _| canonical(float(a) + float(b)),
        |m, a, b, _| add(DOUBLE, a, b, m.double());
    VMulF64 [true, true] true DOUBLE Double |a, b, _| canonical(float(a) * float(b)),
        |m, a, b, _| multiply(DOUBLE, a, b, m.double());
    VFmaF64 [true, true, true] true DOUBLE Double
        |a, b, c| canonical(float(a).mul_add(float(b), float(c))),
        |m, a, b, c| multiply_add(DOUBLE, [a, b, c], m.double());
    VMinNumF64 [true, true] true DOUBLE Double |a, b, _| minimum_number(a, b),
        |m, a, b, _| flushed(m, a, b, minimum_number);
    VMaxNumF64 [true, true] true DOUBLE Double |a, b, _| maximum_number(a, b),
        |m, a, b, _| flushed(m, a, b, maximum_number);
    VMinimumF64 [true, true] true DOUBLE Double |a, b, _| minimum(a, b), |m, a, b, _| flushed(m, a, b, minimum);
    VMaximumF64 [true, true] true DOUBLE Double |a, b, _| maximum(a, b), |m, a, b, _| flushed(m, a, b, maximum);
    VTruncF64 [true] true DOUBLE Double |a, _, _| canonical(float(a).trunc()),
        |m, a, _, _| round_to_integral(DOUBLE, a, Round::Zero, m.double());
    VCeilF64 [true] true DOUBLE Double |a, _, _| canonical(float(a).ceil()),
        |m, a, _, _| round_to_integral(DOUBLE, a, Round::Up, m.double());
    VFloorF64 [true] true DOUBLE Double |a, _, _| canonical(float(a).floor()),
        |m, a, _, _| round_to_integral(DOUBLE, a, Round::Down, m.double());
    VRndneF64 [true] true DOUBLE Double |a, _, _| canonical(float(a).round_ties_even()),
        |m, a, _, _| round_to_integral(DOUBLE, a, Round::NearestEven, m.double());
    VFractF64 [true] true DOUBLE Double |a, _, _| fraction_part(Environment::DEFAULT, a),
        |m, a, _, _| fraction_part(m.double(), a);
    VLdexpF64 [true, false] true DOUBLE Double
        |a, b, _| scale(DOUBLE, a, b as u32 as i32, Environment::DEFAULT),
        |m, a, b, _| scale(DOUBLE, a, b as u32 as i32, m.double());
    VFrexpMantF64 [true] true DOUBLE Double |a, _, _| frexp_mantissa(a), |m, a, _, _| flush1(m, a, frexp_mantissa);
    VFrexpExpI32F64 [true] false DOUBLE Bits |a, _, _| frexp_exponent(a), |m, a, _, _| flush1(m, a, frexp_exponent);
    VDivFixupF64 [true, true, true] true NONE Double |a, b, c| division_fixup(a, b, c),
        |_, a, b, c| division_fixup(a, b, c);

    VCvtI32F64 [true] false NONE Bits |a, _, _| (float(a) as i32) as u32 as u64,
        |_, a, _, _| (float(a) as i32) as u32 as u64;
    VCvtU32F64 [true] false NONE Bits |a, _, _| (float(a) as u32) as u64, |_, a, _, _| (float(a) as u32) as u64;
    VCvtF64I32 [false] true NONE Double |a, _, _| f64::from(a as u32 as i32).to_bits(),
        |_, a, _, _| f64::from(a as u32 as i32).to_bits();
    VCvtF64U32 [false] true NONE Double |a, _, _| f64::from(a as u32).to_bits(),
        |_, a, _, _| f64::from(a as u32).to_bits();
    VCvtF32F64 [true] false ALL Single
        |a, _, _| u64::from(super::single::canonical(float(a) as f32)),
        |m, a, _, _| convert(DOUBLE, SINGLE, a, m.double(), m.single());
    VCvtF64F32 [false] true ALL Double |a, _, _| canonical(f64::from(f32::from_bits(a as u32))),
        |m, a, _, _| convert(SINGLE, DOUBLE, a, m.single(), m.double());

    VLshlrevB64 [false, true] true NONE Bits |a, b, _| b << (a & 63), |_, a, b, _| b << (a & 63);
    VLshrrevB64 [false, true] true NONE Bits |a, b, _| b >> (a & 63), |_, a, b, _| b >> (a & 63);
    VAshrrevI64 [false, true] true NONE Bits |a, b, _| ((b as i64) >> (a & 63)) as u64,
        |_, a, b, _| ((b as i64) >> (a & 63)) as u64;
}
