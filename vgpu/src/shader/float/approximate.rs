//! Reciprocal, square roots, exponential, logarithm, sine and cosine: the operations whose exact bits AMD does not
//! document (instruction set reference §8.2).
//!
//! Contract: each function returns the correctly rounded result (for sine and cosine, of a value with about 50
//! correct bits), with denormals flushed as the reference says, and the same on every host. [`biased`] then moves
//! it by the device's configured error: no kernel may depend on it.
//! Cost: 2 to 40 ns per lane; one result in a million takes the slow path (about 1 µs).

use super::{DOUBLE_NAN, HALF_NAN, SINGLE_NAN, double_to_half, half_to_single};

/// Bits of an f64 below the last place of an f32.
const TAIL_BITS: u32 = 29;
/// Estimates within this many units of the last place of f64 from the midpoint of two f32 are recomputed in double
/// length. The estimates are accurate to 16 units.
const GUARD: u64 = 64;
/// ln 2 as an unevaluated sum.
const LN_2: Pair = Pair(f64::from_bits(0x3FE6_2E42_FEFA_39EF), f64::from_bits(0x3C7A_BC9E_3B39_803F));
/// 2 / ln 2 as an unevaluated sum.
const TWO_OVER_LN_2: Pair =
    Pair(f64::from_bits(0x4007_1547_652B_82FE), f64::from_bits(0x3C87_77D0_FFDA_0D24));

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

/// log2(x).
#[inline(always)]
pub fn logarithm<const N: usize>(x: [u32; N]) -> [u32; N] {
    let estimate = |x: u32| {
        let x = flush(x);
        let (exponent, mantissa) = split(f64::from(f32::from_bits(x)));
        let finite = exponent + log2_near_one(mantissa);
        let special = if x == 0x7F80_0000 { f64::INFINITY } else { f64::NAN };
        let positive = if x >= 0x7F80_0000 { special } else { finite };
        if x & 0x7FFF_FFFF == 0 { f64::NEG_INFINITY } else { positive }
    };
    rows(x, estimate, |x, middle| {
        let (exponent, mantissa) = split(f64::from(f32::from_bits(flush(x))));
        let Pair(high, low) = log2_near_one_pair(mantissa);
        let (sum, error) = two_sum(exponent, high);
        let beyond = (sum - middle) + (error + low);
        if middle < 0.0 { beyond < 0.0 } else { beyond > 0.0 }
    })
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
    s * sum * TWO_OVER_LN_2.0
}

/// sin (quarter 0) or cos (quarter 1) of x turns.
#[inline(always)]
fn turn(x: f64, quarter: u64) -> f64 {
    // Adding 1.5 · 2^52 rounds to an integer and leaves it in the low bits. An f32 beyond 2^51 has no fraction.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = if x.abs() < 1.0e15 { x } else { x * 0.0 };
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
    // A zero keeps the source's sign; zeros at other multiples of half a turn are exact too.
    if quarter & 1 == 0 && angle == 0.0 { x * 0.0 } else { signed }
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

/// log2(m) for m between √½ and √2, to about 100 bits.
fn log2_near_one_pair(m: f64) -> Pair {
    let s = Pair(m - 1.0, 0.0).over(m + 1.0);
    let square = s.times(s);
    let mut sum = Pair(0.0, 0.0);
    for k in (0..=22).rev() {
        sum = sum.times(square).plus(Pair(1.0, 0.0).over(f64::from(2 * k + 1)));
    }
    s.times(sum).times(TWO_OVER_LN_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::valu::testing::half_value;
    use zrt_needs::Random;

    fn exponential1(x: u32) -> u32 {
        exponential([x])[0]
    }

    fn logarithm1(x: u32) -> u32 {
        logarithm([x])[0]
    }

    fn reciprocal_square_root1(x: u32) -> u32 {
        reciprocal_square_root([x])[0]
    }

    /// True if `result` is the f32 nearest to `high + low`.
    fn is_nearest(result: u32, Pair(high, low): Pair) -> bool {
        let value = f32::from_bits(result);
        let distance = |candidate: f32| ((f64::from(candidate) - high) - low).abs();
        distance(value) <= distance(value.next_up()) && distance(value) <= distance(value.next_down())
    }

    #[test]
    fn the_double_length_series_invert_each_other() {
        // 2^(log2 m) = m: independent coefficients, 100 bits each.
        for m in [0.7109375, 0.9, 1.0001, 1.25, 1.41f32] {
            let m = f64::from(m);
            let Pair(log_high, log_low) = log2_near_one_pair(m);
            let Pair(high, low) = two_to_the_pair(log_high);
            // 2^(a + b) = 2^a (1 + b ln 2) for a tiny b.
            let rest = (high - m) + (low + high * log_low * LN_2.0);
            assert!(rest.abs() < 1e-30, "{m}: {rest:e}");
        }
    }

    #[test]
    fn reciprocal_and_roots_are_correctly_rounded() {
        let mut random = Random::new(1);
        for _ in 0..200_000 {
            let x = random.word() & 0x7FFF_FFFF;
            let value = f64::from(f32::from_bits(x));
            if !(f32::MIN_POSITIVE as f64..=2f64.powi(126)).contains(&value) {
                continue;
            }
            // The residual at the midpoints above and below decides, exactly in f64.
            let r = f32::from_bits(reciprocal_square_root1(x));
            let above = (f64::from(r) + f64::from(r.next_up())) / 2.0;
            let below = (f64::from(r) + f64::from(r.next_down())) / 2.0;
            assert!(
                (above * above).mul_add(value, -1.0) >= 0.0 && (below * below).mul_add(value, -1.0) <= 0.0
            );
            let r = f32::from_bits(square_root(x));
            let above = (f64::from(r) + f64::from(r.next_up())) / 2.0;
            let below = (f64::from(r) + f64::from(r.next_down())) / 2.0;
            assert!(above.mul_add(above, -value) >= 0.0 && below.mul_add(below, -value) <= 0.0);
            let r = f32::from_bits(reciprocal(x));
            let above = (f64::from(r) + f64::from(r.next_up())) / 2.0;
            let below = (f64::from(r) + f64::from(r.next_down())) / 2.0;
            assert!(above.mul_add(value, -1.0) >= 0.0 && below.mul_add(value, -1.0) <= 0.0);
        }
    }

    #[test]
    fn exponential_and_logarithm_are_correctly_rounded() {
        let mut random = Random::new(2);
        for _ in 0..20_000 {
            let x =
                f32::from_bits((random.word() & 0x8000_0000) | (random.word() % (24 << 23) + (108 << 23)));
            if x.abs() < 126.0 {
                let whole = f64::from(x).round_ties_even();
                let Pair(high, low) = two_to_the_pair(f64::from(x) - whole);
                let power = power_of_two(whole as i32);
                assert!(is_nearest(exponential1(x.to_bits()), Pair(high * power, low * power)), "{x}");
            }
            let (exponent, mantissa) = split(f64::from(x.abs()));
            let exact = Pair(exponent, 0.0).plus(log2_near_one_pair(mantissa));
            assert!(is_nearest(logarithm1(x.abs().to_bits()), exact), "{x}");
        }
    }

    #[test]
    fn the_slow_way_is_taken_and_agrees() {
        // Forcing the decision on every value must not change any of them.
        let mut random = Random::new(3);
        for _ in 0..2000 {
            let x = f64::from(random.word()) / 2f64.powi(32) - 0.5;
            let x = f64::from(x as f32);
            let Pair(high, low) = two_to_the_pair(x);
            let estimate = two_to_the(x);
            assert!((estimate - high - low).abs() < 16.0 * 2f64.powi(-53));
            let m = f64::from(1.0 + x as f32 * 0.5);
            let Pair(high, low) = log2_near_one_pair(m);
            assert!((log2_near_one(m) - high - low).abs() <= 16.0 * 2f64.powi(-53) * high.abs());
        }
    }

    #[test]
    fn special_values() {
        let bits = f32::to_bits;
        let denormal = 1u32;
        assert_eq!(reciprocal(bits(4.0)), bits(0.25));
        assert_eq!(reciprocal(bits(-0.0)), bits(f32::NEG_INFINITY));
        assert_eq!(reciprocal(denormal), bits(f32::INFINITY));
        assert_eq!(reciprocal(bits(2f32.powi(127))), 0, "a denormal result is flushed");
        assert_eq!(square_root(bits(-1.0)), SINGLE_NAN);
        assert_eq!(square_root(bits(-0.0)), bits(-0.0));
        assert_eq!(square_root(denormal), 0);
        assert_eq!(reciprocal_square_root1(bits(0.25)), bits(2.0));
        assert_eq!(reciprocal_square_root1(denormal | 1 << 31), bits(f32::NEG_INFINITY));
        assert_eq!(reciprocal_square_root1(bits(f32::INFINITY)), 0);
        assert_eq!(reciprocal_square_root1(bits(-4.0)), SINGLE_NAN);
        assert_eq!(exponential1(bits(10.0)), bits(1024.0));
        assert_eq!(exponential1(bits(-126.0)), bits(f32::MIN_POSITIVE));
        assert_eq!(exponential1(bits(-127.0)), 0);
        assert_eq!(exponential1(bits(128.0)), bits(f32::INFINITY));
        assert_eq!(exponential1(bits(f32::NEG_INFINITY)), 0);
        assert_eq!(logarithm1(bits(8.0)), bits(3.0));
        assert_eq!(logarithm1(bits(1.0)), 0);
        assert_eq!(logarithm1(denormal), bits(f32::NEG_INFINITY));
        assert_eq!(logarithm1(bits(-1.0)), SINGLE_NAN);
        assert_eq!(logarithm1(bits(f32::INFINITY)), bits(f32::INFINITY));
        for (x, sin, cos) in
            [(0.25, 1.0, 0.0), (0.5, 0.0, -1.0), (-0.25, -1.0, 0.0), (1.0, 0.0, 1.0), (1e9, 0.0, 1.0)]
        {
            assert_eq!(f32::from_bits(sine(bits(x))), sin, "sin {x}");
            assert_eq!(f32::from_bits(cosine(bits(x))), cos, "cos {x}");
        }
        // sin(30°), cos(60°), to one unit.
        assert!((f32::from_bits(sine(bits(1.0 / 12.0))) - 0.5).abs() < 6e-8);
        assert!((f32::from_bits(cosine(bits(1.0 / 6.0))) - 0.5).abs() < 6e-8);
        assert_eq!(sine(bits(f32::INFINITY)), SINGLE_NAN);
        assert_eq!(half::reciprocal(0x4000), 0x3800); // 1/2
        assert_eq!(half::exponential(0x4900), 0x6400); // 2^10
        assert_eq!(half::logarithm(0x0001), 0xCE00); // log2 of 2^-24
        assert_eq!(half::reciprocal_square_root(0x0001), 0x6C00); // 2^12
        assert_eq!(half::sine(0x3400), 0x3C00); // sin of a quarter turn
    }

    #[test]
    fn the_bias_moves_normal_results_only() {
        assert_eq!(biased(1.0f32.to_bits(), 1), 0x3F80_0001);
        assert_eq!(biased(1.0f32.to_bits(), -1), 0x3F7F_FFFF);
        for bits in [0, 1 << 31, 0x7F80_0000, SINGLE_NAN, 0xFF80_0000] {
            assert_eq!(biased(bits, 1), bits);
            assert_eq!(biased(bits, -1), bits);
        }
        assert_eq!(biased(0x7F7F_FFFF, 1), 0x7F7F_FFFF);
        assert_eq!(biased_double(1f64.to_bits(), -1), 1f64.to_bits() - (1 << 28));
    }

    /// Results from 200 bits of another program. Those of the first three lists are within 12 units of the last place
    /// of f64 from the midpoint of two f32, where an estimate alone may choose the wrong one.
    #[test]
    fn results_are_those_of_longer_arithmetic() {
        let check = |function: fn(u32) -> u32, cases: &[(u32, u32)]| {
            for (x, expected) in cases {
                assert_eq!(function(*x), *expected, "of {x:#010x}");
            }
        };
        check(logarithm1, &[(0x4020_7AB9, 0x3FA9_C25E)]);
        check(reciprocal_square_root1, &[(0x4009_F038, 0x3F2E_6055), (0x403A_18E3, 0x3F16_209E)]);
        check(
            exponential1,
            &[
                (0x3B42_9D37, 0x3F80_4385),
                (0x3C02_A9AD, 0x3F80_B5A3),
                (0xBCF3_A937, 0x3F7A_C6B1),
                (0x3DC9_ABE2, 0x3F89_0AB5),
                (0xBE1F_29DE, 0x3F65_DA56),
            ],
        );
        check(
            exponential1,
            &[
                (0x3DCC_CCCD, 0x3F89_2FDF),
                (0x3FC0_0000, 0x4035_04F3),
                (0xBF33_3333, 0x3F1D_9624),
                (0x42C8_8000, 0x7198_37F0),
                (0xC2C8_999A, 0x0D4F_EFA9),
                (0xC2FB_CCCD, 0x0089_2FD6),
                (0x418E_28F6, 0x485A_464C),
            ],
        );
        check(
            logarithm1,
            &[
                (0x3DCC_CCCD, 0xC054_9A78),
                // Both sides of the root of a half and of the root of two.
                (0x3F35_04F3, 0xBF00_0000),
                (0x3FB5_04F3, 0x3EFF_FFFF),
                (0x3FC0_0000, 0x3F15_C01A),
                (0x4049_0FD0, 0x3FD3_6430),
                (0x0208_1CEA, 0xC2F5_D29B),
                (0x7F61_B1E6, 0x42FF_A2EF),
                (0x3F80_0001, 0x3438_AA3A),
                (0x3F7F_FFFE, 0xB438_AA3C),
            ],
        );
        // 0.05, 0.1, 0.3, 0.62, 0.81, 1.26, -0.1, -3.3 and 1000.37 turns.
        let turns = [
            (0x3D4C_CCCD, 0x3E9E_377A, 0x3F73_7871),
            (0x3DCC_CCCD, 0x3F16_7918, 0x3F4F_1BBD),
            (0x3E99_999A, 0x3F73_7870, 0xBE9E_377C),
            (0x3F1E_B852, 0xBF2F_3E7B, 0xBF3A_9DB0),
            (0x3F4F_5C29, 0xBF6E_05D5, 0x3EBC_7AD3),
            (0x3FA1_47AE, 0x3F7F_7EAE, 0xBD80_9849),
            (0xBDCC_CCCD, 0xBF16_7918, 0x3F4F_1BBD),
            (0xC053_3333, 0xBF73_7872, 0xBE9E_3770),
            (0x447A_17AE, 0x3F3A_9F10, 0xBF2F_3D03),
        ];
        for (x, sin, cos) in turns {
            assert_eq!((sine(x), cosine(x)), (sin, cos), "of {x:#010x}");
        }
    }

    /// No other f16 is nearer to what the host's f64 functions return.
    #[test]
    fn every_half_has_the_nearest_results() {
        use core::f64::consts::TAU;
        // A whole number of quarter turns has an exact result.
        let turn = |x: f64, shift: f64| match ((x + shift) * 4.0).rem_euclid(4.0) {
            0.0 | 2.0 => 0.0,
            1.0 => 1.0,
            3.0 => -1.0,
            quarters => (quarters * TAU / 4.0).sin(),
        };
        type Case<'a> = (&'a str, fn(u32) -> u32, &'a dyn Fn(f64) -> f64);
        let cases: [Case<'_>; 7] = [
            ("reciprocal", half::reciprocal, &|x| 1.0 / x),
            ("square root", half::square_root, &f64::sqrt),
            ("reciprocal square root", half::reciprocal_square_root, &|x| {
                if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }
            }),
            ("exponential", half::exponential, &f64::exp2),
            ("logarithm", half::logarithm, &f64::log2),
            ("sine", half::sine, &|x| turn(x, 0.0)),
            ("cosine", half::cosine, &|x| turn(x, 0.25)),
        ];
        for (name, function, host) in cases {
            for bits in 0..0x1_0000 {
                let (x, result) = (half_value(bits as u16), function(bits));
                let exact = host(x);
                if exact.is_nan() {
                    assert_eq!(result, 0x7E00, "{name} of {bits:#06x}");
                    continue;
                }
                let infinite = exact.abs() >= 65520.0;
                let distance = |bits: u32| (half_value(bits as u16) - exact).abs();
                let is_nearest = [result.wrapping_sub(1), result + 1].into_iter().all(|other| {
                    let is_number = result & 0x7FFF != 0 || other & 0x7FFF == 1;
                    !is_number || other & 0x7FFF >= 0x7C00 || distance(result) <= distance(other)
                });
                let right = if infinite { result & 0x7FFF == 0x7C00 } else { is_nearest };
                assert!(
                    right && half_value(result as u16) * exact >= 0.0,
                    "{name} of {bits:#06x}: {result:#06x}"
                );
            }
        }
        // Zeros have the sign of the source, and their reciprocals that of the zero.
        assert_eq!(
            [half::sine(0x8000), half::square_root(0x8000), half::reciprocal(0x8000)],
            [0x8000, 0x8000, 0xFC00]
        );
        assert_eq!(half::reciprocal_square_root(0x8000), 0xFC00);
    }

    #[test]
    fn seeds_of_doubles_keep_signs_and_the_canonical_nan() {
        let bits = f64::to_bits;
        assert_eq!(double::reciprocal(bits(-0.25)), bits(-4.0));
        assert_eq!(double::reciprocal(bits(-0.0)), bits(f64::NEG_INFINITY));
        assert_eq!(double::reciprocal(0xFFF0_0000_0000_0001), DOUBLE_NAN);
        assert_eq!(double::square_root(bits(2.25)), bits(1.5));
        assert_eq!(double::square_root(bits(-1.0)), DOUBLE_NAN);
        assert_eq!(double::reciprocal_square_root(bits(0.0625)), bits(4.0));
        assert_eq!(double::reciprocal_square_root(bits(-0.0)), bits(f64::NEG_INFINITY));
        assert_eq!(double::reciprocal_square_root(bits(-4.0)), DOUBLE_NAN);
        // The error moves a normal result, and only if it stays one.
        let (step, largest, smallest) = (1 << 28, bits(f64::MAX), bits(f64::MIN_POSITIVE));
        assert_eq!(
            [biased_double(bits(-2.0), 1), biased_double(bits(-2.0), 0)],
            [bits(-2.0) + step, bits(-2.0)]
        );
        assert_eq!([biased_double(largest, 1), biased_double(largest, -1)], [largest, largest - step]);
        assert_eq!([biased_double(smallest, -1), biased_double(smallest, 1)], [smallest, smallest + step]);
        for bits in [0, 1 << 63, smallest - 1, bits(f64::INFINITY), DOUBLE_NAN] {
            assert_eq!([biased_double(bits, 1), biased_double(bits, -1)], [bits; 2], "{bits:#x}");
        }
        let (largest, smallest) = (f32::MAX.to_bits(), f32::MIN_POSITIVE.to_bits());
        assert_eq!(
            [biased(largest, -1), biased(smallest, 1), biased(smallest, -1)],
            [largest - 1, smallest + 1, smallest]
        );
        assert_eq!([biased(smallest - 1, 1), biased(smallest - 1, -1)], [smallest - 1; 2]);
    }
}
