//! f16 operations on values in the low half of a lane. The packed forms use the same functions.
//!
//! Contract: as for f32. Sums and products are computed in f32 and rounded once more, which for a format of 24 bits
//! and one of 11 returns the correctly rounded result; the sum of fma is rounded to odd first.

use super::shell::Lane;
use crate::shader::float::{
    Environment, HALF, Round, add, double_to_half, half_to_single, multiply, multiply_add, round_to_integral,
    scale, single_to_half,
};

const SIGN: u32 = 0x8000;
const INFINITY: u32 = 0x7C00;
const QUIET: u32 = 0x0200;
const ONE: u32 = 0x3C00;

#[inline(always)]
fn single(a: u32) -> f32 {
    f32::from_bits(half_to_single(a))
}

#[inline(always)]
fn rounded(value: f32) -> u32 {
    single_to_half(value.to_bits())
}

#[inline(always)]
pub(crate) fn is_nan(bits: u32) -> bool {
    bits & 0x7FFF > INFINITY
}

/// Orders numbers as integers, -0 below +0.
#[inline(always)]
fn key(bits: u32) -> i32 {
    let signed = bits as i16 as i32;
    signed ^ (signed >> 31 & 0x7FFF)
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

#[inline(always)]
fn nan_of(a: u32, b: u32, chosen: u32) -> u32 {
    let signals = |bits: u32| is_nan(bits) && bits & QUIET == 0;
    let quiet = if is_nan(a) { a } else { b };
    let nan = if !signals(a) && signals(b) { b } else { quiet };
    if is_nan(a) || is_nan(b) { nan | QUIET } else { chosen }
}

#[inline(always)]
fn median_number(a: u32, b: u32, c: u32) -> u32 {
    let largest = maximum_number(maximum_number(a, b), c);
    let is = |bits: u32| single(bits) == single(largest);
    let others = if is(b) { maximum_number(a, c) } else { maximum_number(a, b) };
    let median = if is(a) { maximum_number(b, c) } else { others };
    let smallest = minimum_number(minimum_number(a, b), c);
    if is_nan(a) || is_nan(b) || is_nan(c) { smallest } else { median }
}

/// a · b + c, rounded once.
#[inline(always)]
pub(crate) fn fused(a: u32, b: u32, c: u32) -> u32 {
    // The product has 22 bits and is exact in f32. The sum is rounded to odd, which keeps what was lost as a last
    // bit; with 24 bits for 11, that makes the second rounding correct.
    let (product, c) = (single(a) * single(b), single(c));
    let sum = product + c;
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    let outward = (lost > 0.0) == (sum > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = lost != 0.0 && !lost.is_nan() && bits & 1 == 0;
    single_to_half(if inexact { odd } else { bits })
}

#[inline(always)]
fn frexp_mantissa(a: u32) -> u32 {
    let special = a & 0x7FFF >= INFINITY || a & 0x7FFF == 0;
    // Every f16 is a normal f32 or zero.
    let mantissa = half_to_single(a) & 0x807F_FFFF | 126 << 23;
    if is_nan(a) {
        a | QUIET
    } else if special {
        a
    } else {
        single_to_half(mantissa)
    }
}

#[inline(always)]
fn frexp_exponent(a: u32) -> u32 {
    let special = a & 0x7FFF >= INFINITY || a & 0x7FFF == 0;
    if special { 0 } else { (half_to_single(a) >> 23 & 0xFF).wrapping_sub(126) & 0xFFFF }
}

/// a · 2^n, n a signed 16-bit integer.
#[inline(always)]
fn load_exponent(a: u32, n: u32) -> u32 {
    let n = (n as i16 as i32).clamp(-100, 100);
    let power = f64::from_bits(((n + 1023) as u64) << 52);
    double_to_half((f64::from(single(a)) * power).to_bits())
}

#[inline(always)]
fn division_fixup(a: u32, b: u32, c: u32) -> u32 {
    let sign = (b ^ c) & SIGN;
    let (denominator, numerator) = (b & 0x7FFF, c & 0x7FFF);
    let undefined =
        (denominator == 0 && numerator == 0) || (denominator == INFINITY && numerator == INFINITY);
    if is_nan(c) {
        c | QUIET
    } else if is_nan(b) {
        b | QUIET
    } else if undefined {
        0xFE00
    } else if denominator == 0 || numerator == INFINITY {
        sign | INFINITY
    } else if denominator == INFINITY || numerator == 0 {
        sign
    } else {
        sign | a & 0x7FFF
    }
}

type E = Environment;

fn negated(a: u64) -> u64 {
    a ^ SIGN as u64
}

/// a - floor(a); what rounds to 1 is the largest number below it.
fn fraction_part(a: u32) -> u32 {
    let fraction = rounded(single(a) - single(a).floor());
    if fraction == ONE { ONE - 1 } else { fraction }
}

fn exact_fraction(a: u64, m: E) -> u64 {
    let fraction = add(HALF, a, negated(round_to_integral(HALF, a, Round::Down, m)), m);
    if fraction == u64::from(ONE) { fraction - 1 } else { fraction }
}

half_arithmetic! {
    cold 2 VAddF16 |a, b, _| rounded(single(a) + single(b)), |m, a, b, _| add(HALF, a, b, m);
    cold 2 VSubF16 |a, b, _| rounded(single(a) - single(b)), |m, a, b, _| add(HALF, a, negated(b), m);
    cold 2 VSubrevF16 |a, b, _| rounded(single(b) - single(a)), |m, a, b, _| add(HALF, b, negated(a), m);
    cold 2 VMulF16 |a, b, _| rounded(single(a) * single(b)), |m, a, b, _| multiply(HALF, a, b, m);
    cold 3 VFmaF16 |a, b, c| fused(a, b, c), |m, a, b, c| multiply_add(HALF, [a, b, c], m);
    cold 3 VFmacF16 |a, b, c| fused(a, b, c), |m, a, b, c| multiply_add(HALF, [a, b, c], m);
    cold 3 VFmaakF16 |a, b, c| fused(a, b, c), |m, a, b, c| multiply_add(HALF, [a, b, c], m);
    cold 3 VFmamkF16 |a, b, c| fused(a, b, c), |m, a, b, c| multiply_add(HALF, [a, b, c], m);
    cold 1 VFractF16 |a, _, _| fraction_part(a), |m, a, _, _| exact_fraction(a, m);
    cold 1 VTruncF16 |a, _, _| rounded(single(a).trunc()), |m, a, _, _| round_to_integral(HALF, a, Round::Zero, m);
    cold 1 VCeilF16 |a, _, _| rounded(single(a).ceil()), |m, a, _, _| round_to_integral(HALF, a, Round::Up, m);
    cold 1 VFloorF16 |a, _, _| rounded(single(a).floor()), |m, a, _, _| round_to_integral(HALF, a, Round::Down, m);
    cold 1 VRndneF16 |a, _, _| rounded(single(a).round_ties_even()),
        |m, a, _, _| round_to_integral(HALF, a, Round::NearestEven, m);
    cold 2 VLdexpF16 |a, b, _| load_exponent(a, b), |m, a, b, _| scale(HALF, a, b as i16 as i32, m);
}

half_selection! {
    cold 2 Half VMinNumF16 |a, b, _| minimum_number(a, b);
    cold 2 Half VMaxNumF16 |a, b, _| maximum_number(a, b);
    cold 2 Half VMinimumF16 |a, b, _| minimum(a, b);
    cold 2 Half VMaximumF16 |a, b, _| maximum(a, b);
    cold 3 Half VMin3NumF16 |a, b, c| minimum_number(minimum_number(a, b), c);
    cold 3 Half VMax3NumF16 |a, b, c| maximum_number(maximum_number(a, b), c);
    cold 3 Half VMinimum3F16 |a, b, c| minimum(minimum(a, b), c);
    cold 3 Half VMaximum3F16 |a, b, c| maximum(maximum(a, b), c);
    cold 3 Half VMed3NumF16 |a, b, c| median_number(a, b, c);
    cold 3 Half VMinmaxNumF16 |a, b, c| maximum_number(minimum_number(a, b), c);
    cold 3 Half VMaxminNumF16 |a, b, c| minimum_number(maximum_number(a, b), c);
    cold 3 Half VMinimummaximumF16 |a, b, c| maximum(minimum(a, b), c);
    cold 3 Half VMaximumminimumF16 |a, b, c| minimum(maximum(a, b), c);
    cold 1 Half VFrexpMantF16 |a, _, _| frexp_mantissa(a);
    cold 1 Bits VFrexpExpI16F16 |a, _, _| frexp_exponent(a);
    cold 3 Half VDivFixupF16 |a, b, c| division_fixup(a, b, c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fma_is_rounded_once() {
        let mut random = zrt_needs::Random::new(5);
        for _ in 0..500_000 {
            let bits = random.bits();
            let (a, b, c) = (bits >> 48, bits >> 32 & 0xFFFF, bits >> 16 & 0xFFFF);
            let expected = multiply_add(HALF, [a, b, c], Environment::DEFAULT);
            assert_eq!(fused(a as u32, b as u32, c as u32) as u64, expected, "{a:04x} {b:04x} {c:04x}");
        }
    }
}
