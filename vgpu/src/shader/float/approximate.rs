//! Reciprocal, square roots, exponential, logarithm, sine and cosine: the operations whose exact bits AMD does not
//! document (instruction set reference §8.2).
//!
//! Contract: each function returns the correctly rounded result (for sine and cosine, of a value with about 50
//! correct bits), with denormals flushed as the reference says, and the same on every host. [`biased`] then moves
//! it by the device's configured error: no kernel may depend on it.
//! Cost: 2 to 40 ns per lane; one exponential or reciprocal root in a million takes the slow path (about 1 µs).

use super::{DOUBLE_NAN, HALF_NAN, SINGLE_NAN, double_to_half, half_to_single};

/// Bits of an f64 below the last place of an f32.
const TAIL_BITS: u32 = 29;
/// Estimates within this many units of the last place of f64 from the midpoint of two f32 are recomputed in double
/// length. The estimates are accurate to 16 units.
const GUARD: u64 = 64;
/// ln 2 as an unevaluated sum.
const LN_2: Pair = Pair(f64::from_bits(0x3FE6_2E42_FEFA_39EF), f64::from_bits(0x3C7A_BC9E_3B39_803F));
/// 2 / ln 2.
const TWO_OVER_LN_2: f64 = f64::from_bits(0x4007_1547_652B_82FE);

/// Moves an f32 result by `bias` units in the last place, if it stays a normal number.
#[inline(always)]
pub fn biased(bits: u32, bias: i32) -> u32 {
    let moved = bits.wrapping_add(bias as u32);
    let normal = |bits: u32| (bits >> 23 & 0xFF).wrapping_sub(1) < 254;
    if normal(bits) && normal(moved) { moved } else { bits }
}

/// Moves an f64 seed by `bias` · 2^28 units in the last place: the seeds are documented as accurate to about 2^29.
pub fn biased_double(bits: u64, bias: i32) -> u64 {
    let moved = bits.wrapping_add((bias as i64 * (1 << 28)) as u64);
    let normal = |bits: u64| (bits >> 52 & 0x7FF).wrapping_sub(1) < 2046;
    if normal(bits) && normal(moved) { moved } else { bits }
}

#[inline(always)]
fn flush(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
fn canonical(value: f32) -> u32 {
    if value.is_nan() { SINGLE_NAN } else { value.to_bits() }
}

/// 1 / x.
#[inline(always)]
pub fn reciprocal(x: u32) -> u32 {
    flush(canonical(1.0 / f32::from_bits(flush(x))))
}

/// √x.
#[inline(always)]
pub fn square_root(x: u32) -> u32 {
    canonical(f32::from_bits(flush(x)).sqrt())
}

/// 1 / √x.
#[inline(always)]
pub fn reciprocal_square_root<const N: usize>(x: [u32; N]) -> [u32; N] {
    let source = |x: u32| f64::from(f32::from_bits(flush(x)));
    let estimate = |x: u32| {
        let x = source(x);
        // The root of -0 is -0, and its reciprocal keeps that sign.
        1.0 / x.sqrt()
    };
    // The side of the midpoint m is the sign of m²x - 1. m² is exact, and the sign of fma is right.
    rows(x, estimate, |x, middle| (middle * middle).mul_add(source(x), -1.0) < 0.0)
}

/// 2^x.
#[inline(always)]
pub fn exponential<const N: usize>(x: [u32; N]) -> [u32; N] {
    // Adding 1.5 · 2^52 rounds to an integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let parts = |x: u32| {
        let x = f64::from(f32::from_bits(flush(x)));
        let x = if x > 200.0 { 200.0 } else { x };
        let x = if x < -200.0 { -200.0 } else { x };
        let rounded = x + ROUND;
        let power = f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52);
        (x - (rounded - ROUND), power)
    };
    let estimate = |x: u32| {
        let (fraction, power) = parts(x);
        two_to_the(fraction) * power
    };
    let mut result = rows(x, estimate, |x, middle| {
        let (fraction, power) = parts(x);
        let Pair(high, low) = two_to_the_pair(fraction);
        (high * power - middle) + low * power > 0.0
    });
    for value in &mut result {
        *value = flush(*value);
    }
    result
}

/// log2(x). No estimate needs a decision: its error is less than two units of the last place of f64, and no logarithm
/// of an f32 lies within 2.5 of the midpoint of two f32. Between √½ and √2 the error may be almost three units, and no
/// logarithm lies within 39. Both were found by trying all of them.
#[inline(always)]
pub fn logarithm<const N: usize>(mut x: [u32; N]) -> [u32; N] {
    let estimate = |x: u32| {
        let x = flush(x);
        let (exponent, mantissa) = split(f64::from(f32::from_bits(x)));
        let finite = exponent + log2_near_one(mantissa);
        let special = if x == 0x7F80_0000 { f64::INFINITY } else { f64::NAN };
        let positive = if x >= 0x7F80_0000 { special } else { finite };
        if x & 0x7FFF_FFFF == 0 { f64::NEG_INFINITY } else { positive }
    };
    for value in &mut x {
        *value = canonical(estimate(*value) as f32);
    }
    x
}

/// sin(2πx).
#[inline(always)]
pub fn sine(x: u32) -> u32 {
    flush(canonical(turn(f64::from(f32::from_bits(flush(x))), 0) as f32))
}

/// cos(2πx).
#[inline(always)]
pub fn cosine(x: u32) -> u32 {
    flush(canonical(turn(f64::from(f32::from_bits(flush(x))), 1) as f32))
}

/// f16 forms: computed in f64 and rounded once. Denormals are kept; the documented error is 0.51 units.
pub mod half {
    use super::*;

    fn source(x: u32) -> f64 {
        f64::from(f32::from_bits(half_to_single(x)))
    }

    fn result(value: f64) -> u32 {
        if value.is_nan() { HALF_NAN } else { double_to_half(value.to_bits()) }
    }

    /// 1 / x.
    pub fn reciprocal(x: u32) -> u32 {
        result(1.0 / source(x))
    }

    /// √x.
    pub fn square_root(x: u32) -> u32 {
        result(source(x).sqrt())
    }

    /// 1 / √x.
    pub fn reciprocal_square_root(x: u32) -> u32 {
        let x = source(x);
        result(if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() })
    }

    /// 2^x.
    pub fn exponential(x: u32) -> u32 {
        let x = source(x);
        if x.is_nan() {
            return HALF_NAN;
        }
        let x = x.clamp(-200.0, 200.0);
        let whole = x.round_ties_even();
        result(two_to_the(x - whole) * power_of_two(whole as i32))
    }

    /// log2(x).
    pub fn logarithm(x: u32) -> u32 {
        let x = source(x);
        if x == 0.0 {
            return 0xFC00;
        }
        if x.is_nan() || x < 0.0 {
            return HALF_NAN;
        }
        if x == f64::INFINITY {
            return 0x7C00;
        }
        let (exponent, mantissa) = split(x);
        result(exponent + log2_near_one(mantissa))
    }

    /// sin(2πx).
    pub fn sine(x: u32) -> u32 {
        result(turn(source(x), 0))
    }

    /// cos(2πx).
    pub fn cosine(x: u32) -> u32 {
        result(turn(source(x), 1))
    }
}

/// f64 seeds.
pub mod double {
    use super::DOUBLE_NAN;

    fn canonical(value: f64) -> u64 {
        if value.is_nan() { DOUBLE_NAN } else { value.to_bits() }
    }

    /// 1 / x.
    pub fn reciprocal(x: u64) -> u64 {
        canonical(1.0 / f64::from_bits(x))
    }

    /// √x.
    pub fn square_root(x: u64) -> u64 {
        canonical(f64::from_bits(x).sqrt())
    }

    /// 1 / √x; of -0 it is -∞.
    pub fn reciprocal_square_root(x: u64) -> u64 {
        let x = f64::from_bits(x);
        canonical(if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() })
    }
}

/// Rounds estimates to f32. For one too close to the midpoint of two, `beyond(x, middle)` returns whether the true
/// value lies farther from zero than that midpoint. NaN becomes the canonical one.
#[inline(always)]
fn rows<const N: usize>(
    x: [u32; N],
    estimate: impl Fn(u32) -> f64,
    beyond: impl Fn(u32, f64) -> bool,
) -> [u32; N] {
    let mut estimates = [0.0f64; N];
    let mut result = [0; N];
    for index in 0..N {
        estimates[index] = estimate(x[index]);
    }
    let mut doubtful = 0;
    for index in 0..N {
        result[index] = canonical(estimates[index] as f32);
        doubtful |= is_doubtful(estimates[index]) as u32;
    }
    if doubtful != 0 {
        for index in 0..N {
            if is_doubtful(estimates[index]) {
                result[index] = settle(estimates[index], |middle| beyond(x[index], middle)).to_bits();
            }
        }
    }
    result
}

/// True if an estimate is too close to the midpoint of two f32 to be rounded.
#[inline(always)]
fn is_doubtful(estimate: f64) -> bool {
    let tail = estimate.to_bits() & ((1 << TAIL_BITS) - 1);
    tail.wrapping_sub((1 << (TAIL_BITS - 1)) - GUARD) <= 2 * GUARD
}

#[cold]
#[inline(never)]
fn settle(estimate: f64, beyond: impl FnOnce(f64) -> bool) -> f32 {
    let below = estimate.to_bits() >> TAIL_BITS << TAIL_BITS;
    let middle = f64::from_bits(below | 1 << (TAIL_BITS - 1));
    let chosen = if beyond(middle) { below + (1 << TAIL_BITS) } else { below };
    f64::from_bits(chosen) as f32
}

/// 1 / k!.
const INVERSE_FACTORIAL: [f64; 19] = inverse_factorials();

const fn inverse_factorials() -> [f64; 19] {
    let mut table = [1.0; 19];
    let mut factorial = 1.0;
    let mut k = 1;
    while k < 19 {
        // Exact up to 18!.
        factorial *= k as f64;
        table[k] = 1.0 / factorial;
        k += 1;
    }
    table
}

/// 2^n for -1022 <= n <= 1023.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// 2^f for |f| <= 1/2.
#[inline(always)]
fn two_to_the(f: f64) -> f64 {
    // exp(f ln 2) by its power series: 0.347^14 / 14! < 2^-57.
    let t = f * LN_2.0;
    let mut sum = INVERSE_FACTORIAL[14];
    let mut k = 14;
    while k > 0 {
        k -= 1;
        sum = sum * t + INVERSE_FACTORIAL[k];
    }
    sum
}

/// x = m · 2^e with m between √½ and √2; x positive and normal.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let bits = x.to_bits();
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let large = mantissa > core::f64::consts::SQRT_2;
    let exponent = (bits >> 52 & 0x7FF) as i32 - 1023 + large as i32;
    (f64::from(exponent), if large { mantissa * 0.5 } else { mantissa })
}

/// 1 / (2k + 1).
const INVERSE_ODD: [f64; 12] = {
    let mut table = [1.0; 12];
    let mut k = 0;
    while k < 12 {
        table[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    table
};

/// log2(m) for m between √½ and √2.
#[inline(always)]
fn log2_near_one(m: f64) -> f64 {
    // 2/ln2 · artanh(s), s = (m-1)/(m+1), |s| < 0.172: s^24 < 2^-60.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = INVERSE_ODD[11];
    let mut k = 11;
    while k > 0 {
        k -= 1;
        sum = sum * square + INVERSE_ODD[k];
    }
    s * sum * TWO_OVER_LN_2
}

/// sin (quarter 0) or cos (quarter 1) of x turns.
#[inline(always)]
fn turn(x: f64, quarter: u64) -> f64 {
    // Adding 1.5 · 2^52 rounds to an integer and leaves it in the low bits. An f32 that is too large for that has no
    // fraction, and nothing is left of it.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let turns = x - ((x + ROUND) - ROUND);
    let nearest = turns * 4.0 + ROUND;
    let angle = (turns * 4.0 - (nearest - ROUND)) * core::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    // |angle| < 0.786: angle^18 / 18! < 2^-58.
    let (mut sine, mut cosine) = (0.0, INVERSE_FACTORIAL[18]);
    let mut k = 9;
    while k > 0 {
        k -= 1;
        sine = INVERSE_FACTORIAL[2 * k + 1] - square * sine;
        cosine = INVERSE_FACTORIAL[2 * k] - square * cosine;
    }
    let quarter = nearest.to_bits().wrapping_add(quarter) & 3;
    let chosen = if quarter & 1 == 0 { angle * sine } else { cosine };
    let signed = if quarter & 2 == 0 { chosen } else { -chosen };
    // The sine of -0 is -0; zeros at other multiples of half a turn are exact too, and positive.
    let zero = if x == 0.0 { x } else { 0.0 };
    if quarter & 1 == 0 && angle == 0.0 { zero } else { signed }
}

/// An unevaluated sum of two f64, the second at most half a unit of the first.
#[derive(Clone, Copy, Debug)]
struct Pair(f64, f64);

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

impl Pair {
    fn plus(self, other: Pair) -> Pair {
        let (sum, error) = two_sum(self.0, other.0);
        let (high, low) = two_sum(sum, error + (self.1 + other.1));
        Pair(high, low)
    }

    fn times(self, other: Pair) -> Pair {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product) + (self.0 * other.1 + self.1 * other.0);
        let (high, low) = two_sum(product, error);
        Pair(high, low)
    }

    fn over(self, divisor: f64) -> Pair {
        let quotient = self.0 / divisor;
        let rest = (-quotient).mul_add(divisor, self.0) + self.1;
        let (high, low) = two_sum(quotient, rest / divisor);
        Pair(high, low)
    }
}

/// 2^f for |f| <= 1/2, to about 100 bits.
fn two_to_the_pair(f: f64) -> Pair {
    let t = LN_2.times(Pair(f, 0.0));
    let mut sum = Pair(1.0, 0.0);
    for k in (1..=26).rev() {
        sum = Pair(1.0, 0.0).plus(t.times(sum).over(f64::from(k)));
    }
    sum
}

#[cfg(test)]
mod tests;
