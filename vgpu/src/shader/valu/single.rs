//! f32 operations.
//!
//! Contract: arithmetic rounds once, as in IEEE 754; a NaN result of arithmetic is the canonical one; minimum and
//! maximum return a source, quieted if the instruction set says so (instruction set reference §8.1).

use super::shell::Lane;
use crate::shader::float::{
    Environment, Round, SINGLE, SINGLE_NAN, add, multiply, multiply_add, round_to_integral, scale,
};

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7F80_0000;
const QUIET: u32 = 0x0040_0000;

/// The bits of a result, with NaN replaced by the canonical one.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u32 {
    if value.is_nan() { SINGLE_NAN } else { value.to_bits() }
}

#[inline(always)]
pub(crate) fn is_nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// Orders numbers as integers, -0 below +0.
#[inline(always)]
fn key(bits: u32) -> i32 {
    (bits ^ (((bits as i32) >> 31) as u32 >> 1)) as i32
}

/// The smaller number; a number if one source is NaN.
#[inline(always)]
pub(crate) fn minimum_number(a: u32, b: u32) -> u32 {
    number_of(a, b, if key(a) < key(b) { a } else { b })
}

/// The larger number; a number if one source is NaN.
#[inline(always)]
pub(crate) fn maximum_number(a: u32, b: u32) -> u32 {
    number_of(a, b, if key(a) > key(b) { a } else { b })
}

#[inline(always)]
fn number_of(a: u32, b: u32, chosen: u32) -> u32 {
    let with_a = if is_nan(b) { a } else { chosen };
    let without_a = if is_nan(b) { a | QUIET } else { b };
    if is_nan(a) { without_a } else { with_a }
}

/// The smaller; NaN if a source is NaN.
#[inline(always)]
pub(crate) fn minimum(a: u32, b: u32) -> u32 {
    nan_of(a, b, if key(a) < key(b) { a } else { b })
}

/// The larger; NaN if a source is NaN.
#[inline(always)]
pub(crate) fn maximum(a: u32, b: u32) -> u32 {
    nan_of(a, b, if key(a) > key(b) { a } else { b })
}

/// The first signalling NaN, else the first quiet one, quieted; else the chosen number.
#[inline(always)]
fn nan_of(a: u32, b: u32, chosen: u32) -> u32 {
    let signals = |bits: u32| is_nan(bits) && bits & QUIET == 0;
    let quiet = if is_nan(a) { a } else { b };
    let nan = if !signals(a) && signals(b) { b } else { quiet };
    if is_nan(a) || is_nan(b) { nan | QUIET } else { chosen }
}

/// The median; with a NaN source the smallest number (instruction set reference §8.1).
#[inline(always)]
fn median_number(a: u32, b: u32, c: u32) -> u32 {
    let largest = maximum_number(maximum_number(a, b), c);
    let is = |bits: u32| f32::from_bits(bits) == f32::from_bits(largest);
    let others = if is(b) { maximum_number(a, c) } else { maximum_number(a, b) };
    let median = if is(a) { maximum_number(b, c) } else { others };
    let smallest = minimum_number(minimum_number(a, b), c);
    if is_nan(a) || is_nan(b) || is_nan(c) { smallest } else { median }
}

/// a · 2^n, rounded once.
#[inline(always)]
fn load_exponent(a: u32, n: u32) -> u32 {
    // Every f32 times 2^±300 is exact in f64 and beyond the range of f32 in both directions.
    let n = (n as i32).clamp(-300, 300);
    let power = f64::from_bits(((n + 1023) as u64) << 52);
    canonical((f64::from(f32::from_bits(a)) * power) as f32)
}

/// x - floor(x); what rounds to 1 is the largest number below it.
#[inline(always)]
fn fraction_part(x: f32) -> f32 {
    let fraction = x - x.floor();
    if fraction < 1.0 || fraction.is_nan() { fraction } else { 1f32.next_down() }
}

/// 0.5 <= |m| < 1 with a = m · 2^e; infinities, NaN and zeros are returned unchanged.
#[inline(always)]
fn frexp_mantissa(a: u32) -> u32 {
    let special = a & !SIGN >= INFINITY;
    let scaled = normalised(a);
    let mantissa = scaled & 0x807F_FFFF | 126 << 23;
    if is_nan(a) {
        a | QUIET
    } else if special || a & !SIGN == 0 {
        a
    } else {
        mantissa
    }
}

#[inline(always)]
fn frexp_exponent(a: u32) -> u32 {
    let special = a & !SIGN >= INFINITY || a & !SIGN == 0;
    let denormal = a & INFINITY == 0;
    let field = (normalised(a) >> 23 & 0xFF) as i32;
    if special { 0 } else { (field - 126 - if denormal { 32 } else { 0 }) as u32 }
}

/// The value, times 2^32 if it is denormal.
#[inline(always)]
fn normalised(a: u32) -> u32 {
    let scaled = (f32::from_bits(a) * 4_294_967_296.0).to_bits();
    if a & INFINITY == 0 { scaled } else { a }
}

/// Products with a zero factor are +0, whatever the other factor.
#[inline(always)]
fn either_zero(a: u32, b: u32) -> bool {
    a & !SIGN == 0 || b & !SIGN == 0
}

/// Restores sign and special cases after a division by Newton steps; `a` is the quotient, `b` the denominator, `c` the
/// numerator.
#[inline(always)]
fn division_fixup(a: u32, b: u32, c: u32) -> u32 {
    let sign = (b ^ c) & SIGN;
    let (denominator, numerator) = (b & !SIGN, c & !SIGN);
    let exponent = |bits: u32| (bits >> 23) as i32;
    let undefined =
        (denominator == 0 && numerator == 0) || (denominator == INFINITY && numerator == INFINITY);
    if is_nan(c) {
        c | QUIET
    } else if is_nan(b) {
        b | QUIET
    } else if undefined {
        0xFFC0_0000
    } else if denominator == 0 || numerator == INFINITY {
        sign | INFINITY
    } else if denominator == INFINITY || numerator == 0 || exponent(numerator) - exponent(denominator) < -150
    {
        // The last condition is an underflow: it rounds to zero.
        sign
    } else if is_nan(a) {
        // The steps overflowed the largest number.
        sign | INFINITY
    } else {
        sign | a & !SIGN
    }
}

#[inline(always)]
fn cube_major(x: u32, y: u32, z: u32) -> (bool, bool) {
    let magnitude = |bits: u32| f32::from_bits(bits & !SIGN);
    let z_major = magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y);
    (z_major, magnitude(y) >= magnitude(x))
}

/// The coordinate of the largest magnitude.
#[inline(always)]
fn cube_axis(x: u32, y: u32, z: u32) -> u32 {
    let (z_major, y_major) = cube_major(x, y, z);
    if z_major {
        z
    } else if y_major {
        y
    } else {
        x
    }
}

#[inline(always)]
fn negative(bits: u32) -> bool {
    f32::from_bits(bits) < 0.0
}

#[inline(always)]
fn multiply_lit(a: u32, b: u32, c: u32) -> u32 {
    let lowest = f32::MIN.to_bits();
    let (y, z) = (f32::from_bits(b), f32::from_bits(c));
    let dark = b == lowest || b == INFINITY | SIGN || y.is_nan() || z.is_nan() || z <= 0.0;
    if dark { lowest } else { canonical(f32::from_bits(a) * y) }
}

type E = Environment;

fn negated(a: u64) -> u64 {
    a ^ SIGN as u64
}

fn exact_fraction(a: u64, m: E) -> u64 {
    let fraction = add(SINGLE, a, negated(round_to_integral(SINGLE, a, Round::Down, m)), m);
    if fraction == u64::from(f32::to_bits(1.0)) { fraction - 1 } else { fraction }
}

single_arithmetic! {
    hot 2 VAddF32 |x, y, _| x + y, |m, a, b, _| add(SINGLE, a, b, m);
    hot 2 VSubF32 |x, y, _| x - y, |m, a, b, _| add(SINGLE, a, negated(b), m);
    hot 2 VSubrevF32 |x, y, _| y - x, |m, a, b, _| add(SINGLE, b, negated(a), m);
    hot 2 VMulF32 |x, y, _| x * y, |m, a, b, _| multiply(SINGLE, a, b, m);
    hot 3 VFmaF32 |x, y, z| x.mul_add(y, z), |m, a, b, c| multiply_add(SINGLE, [a, b, c], m);
    hot 3 VFmacF32 |x, y, z| x.mul_add(y, z), |m, a, b, c| multiply_add(SINGLE, [a, b, c], m);
    hot 3 VFmaakF32 |x, y, z| x.mul_add(y, z), |m, a, b, c| multiply_add(SINGLE, [a, b, c], m);
    hot 3 VFmamkF32 |x, y, z| x.mul_add(y, z), |m, a, b, c| multiply_add(SINGLE, [a, b, c], m);
    cold 1 VFractF32 |x, _, _| fraction_part(x), |m, a, _, _| exact_fraction(a, m);
    cold 1 VTruncF32 |x, _, _| x.trunc(), |m, a, _, _| round_to_integral(SINGLE, a, Round::Zero, m);
    cold 1 VCeilF32 |x, _, _| x.ceil(), |m, a, _, _| round_to_integral(SINGLE, a, Round::Up, m);
    hot 1 VRndneF32 |x, _, _| x.round_ties_even(), |m, a, _, _| {
        round_to_integral(SINGLE, a, Round::NearestEven, m)
    };
    hot 1 VFloorF32 |x, _, _| x.floor(), |m, a, _, _| round_to_integral(SINGLE, a, Round::Down, m);
}

single_selection! {
    hot 2 VMinNumF32 |a, b, _| minimum_number(a, b);
    hot 2 VMaxNumF32 |a, b, _| maximum_number(a, b);
    cold 2 VMinimumF32 |a, b, _| minimum(a, b);
    cold 2 VMaximumF32 |a, b, _| maximum(a, b);
    cold 3 VMin3NumF32 |a, b, c| minimum_number(minimum_number(a, b), c);
    cold 3 VMax3NumF32 |a, b, c| maximum_number(maximum_number(a, b), c);
    cold 3 VMinimum3F32 |a, b, c| minimum(minimum(a, b), c);
    cold 3 VMaximum3F32 |a, b, c| maximum(maximum(a, b), c);
    cold 3 VMed3NumF32 |a, b, c| median_number(a, b, c);
    cold 3 VMinmaxNumF32 |a, b, c| maximum_number(minimum_number(a, b), c);
    cold 3 VMaxminNumF32 |a, b, c| minimum_number(maximum_number(a, b), c);
    cold 3 VMinimummaximumF32 |a, b, c| maximum(minimum(a, b), c);
    cold 3 VMaximumminimumF32 |a, b, c| minimum(maximum(a, b), c);
    cold 1 VFrexpMantF32 |a, _, _| frexp_mantissa(a);
    cold 3 VDivFixupF32 |a, b, c| division_fixup(a, b, c);
    cold 3 VCubeidF32 |x, y, z| {
        let (z_major, y_major) = cube_major(x, y, z);
        let face = if z_major {
            4.0 + negative(z) as u32 as f32
        } else if y_major {
            2.0 + negative(y) as u32 as f32
        } else {
            negative(x) as u32 as f32
        };
        face.to_bits()
    };
    cold 3 VCubescF32 |x, y, z| {
        let (z_major, y_major) = cube_major(x, y, z);
        if z_major {
            if negative(z) { x ^ SIGN } else { x }
        } else if y_major {
            x
        } else if negative(x) {
            z
        } else {
            z ^ SIGN
        }
    };
    cold 3 VCubetcF32 |x, y, z| {
        let (z_major, y_major) = cube_major(x, y, z);
        if !z_major && y_major { if negative(y) { z ^ SIGN } else { z } } else { y ^ SIGN }
    };
}

single_mixed! {
    hot 2 Single VLdexpF32 |a, b, _| load_exponent(a, b),
        |m, a, b, _| scale(SINGLE, a as u64, b as i32, m) as u32;
    cold 1 Bits VFrexpExpI32F32 |a, _, _| frexp_exponent(a),
        |m, a, _, _| frexp_exponent(SINGLE.flush_source(a as u64, m) as u32);
    cold 2 Single VMulDx9ZeroF32
        |a, b, _| if either_zero(a, b) { 0 } else { canonical(f32::from_bits(a) * f32::from_bits(b)) },
        |m, a, b, _| {
            let (a, b) = (SINGLE.flush_source(a as u64, m), SINGLE.flush_source(b as u64, m));
            if either_zero(a as u32, b as u32) { 0 } else { multiply(SINGLE, a, b, m) as u32 }
        };
    cold 3 Single VFmaDx9ZeroF32
        |a, b, c| {
            let sum = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            if either_zero(a, b) { c } else { canonical(sum) }
        },
        |m, a, b, c| {
            let (a, b) = (SINGLE.flush_source(a as u64, m), SINGLE.flush_source(b as u64, m));
            let c = SINGLE.flush_source(c as u64, m);
            if either_zero(a as u32, b as u32) { c as u32 } else { multiply_add(SINGLE, [a, b, c], m) as u32 }
        };
    cold 3 Single VCubemaF32
        |x, y, z| canonical(f32::from_bits(cube_axis(x, y, z)) * 2.0),
        |m, x, y, z| {
            let flushed = |bits: u32| SINGLE.flush_source(bits as u64, m) as u32;
            scale(SINGLE, cube_axis(flushed(x), flushed(y), flushed(z)) as u64, 1, m) as u32
        };
    cold 3 Single VMullitF32 |a, b, c| multiply_lit(a, b, c),
        |m, a, b, c| {
            let flushed = |bits: u32| SINGLE.flush_source(bits as u64, m) as u32;
            let usual = multiply_lit(flushed(a), flushed(b), flushed(c));
            let dark = usual == f32::MIN.to_bits();
            if dark { usual } else { multiply(SINGLE, a as u64, b as u64, m) as u32 }
        };
}
