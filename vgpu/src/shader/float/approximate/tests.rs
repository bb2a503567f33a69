//! Approximations against residuals, longer arithmetic and the host.

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

/// log2(m) for m between √½ and √2, to about 100 bits.
fn log2_near_one_pair(m: f64) -> Pair {
    // 2 / ln 2 as an unevaluated sum.
    let factor = Pair(TWO_OVER_LN_2, f64::from_bits(0x3C87_77D0_FFDA_0D24));
    let s = Pair(m - 1.0, 0.0).over(m + 1.0);
    let square = s.times(s);
    let mut sum = Pair(0.0, 0.0);
    for k in (0..=22).rev() {
        sum = sum.times(square).plus(Pair(1.0, 0.0).over(f64::from(2 * k + 1)));
    }
    s.times(sum).times(factor)
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
        assert!((above * above).mul_add(value, -1.0) >= 0.0 && (below * below).mul_add(value, -1.0) <= 0.0);
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

/// By their pairs, which are held against each other above.
#[test]
fn exponentials_and_logarithms_are_correctly_rounded() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let x = f32::from_bits((random.word() & 0x8000_0000) | (random.word() % (24 << 23) + (108 << 23)));
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

/// What [`GUARD`] is chosen for.
#[test]
fn estimates_of_powers_are_accurate_to_16_units() {
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let x = f64::from(random.word()) / 2f64.powi(32) - 0.5;
        let x = f64::from(x as f32);
        let Pair(high, low) = two_to_the_pair(x);
        let estimate = two_to_the(x);
        assert!((estimate - high - low).abs() < 16.0 * 2f64.powi(-53));
    }
}

/// How good estimates of logarithms are, in units of the last place of f64.
#[derive(Clone, Copy, Debug)]
struct Estimates {
    largest_error: f64,
    /// Of a logarithm from the midpoint of two f32.
    smallest_distance: f64,
}

impl Estimates {
    const NONE: Estimates = Estimates { largest_error: 0.0, smallest_distance: f64::INFINITY };

    fn add(&mut self, exponent: f64, estimate: f64, exact: Pair) {
        let Pair(high, low) = Pair(exponent, 0.0).plus(exact);
        let unit = high.abs().next_up() - high.abs();
        let middle = f64::from_bits(high.to_bits() >> TAIL_BITS << TAIL_BITS | 1 << (TAIL_BITS - 1));
        let distance = |from: f64| ((from - high) - low).abs() / unit;
        self.largest_error = self.largest_error.max(distance(exponent + estimate));
        self.smallest_distance = self.smallest_distance.min(distance(middle));
    }
}

/// Those of the numbers with these fractions and any exponent: of numbers between √½ and √2, and of all others.
fn estimates_of_logarithms(fractions: impl Iterator<Item = u32>) -> [Estimates; 2] {
    let [mut near_one, mut others] = [Estimates::NONE; 2];
    for fraction in fractions {
        let (exponent, mantissa) = split(f64::from(f32::from_bits(127 << 23 | fraction)));
        let (estimate, exact) = (log2_near_one(mantissa), log2_near_one_pair(mantissa));
        for power in -126..=127 {
            let exponent = exponent + f64::from(power);
            let kind = if exponent == 0.0 { &mut near_one } else { &mut others };
            kind.add(exponent, estimate, exact);
        }
    }
    [near_one, others]
}

/// As the documentation of [`logarithm`] says, so that it rounds each to the nearest f32.
fn assert_need_no_decision([near_one, others]: [Estimates; 2]) {
    assert!(near_one.largest_error < 3.0 && near_one.smallest_distance > 39.0, "{near_one:?}");
    assert!(others.largest_error < 2.0 && others.smallest_distance > 2.5, "{others:?}");
}

#[test]
fn estimates_of_logarithms_need_no_decision() {
    let mut random = Random::new(4);
    assert_need_no_decision(estimates_of_logarithms((0..20_000).map(|_| random.word() >> 9)));
}

/// Those of all positive normal numbers.
#[test]
fn no_estimate_of_any_logarithm_needs_a_decision() {
    assert_need_no_decision(estimates_of_logarithms(0..1 << 23));
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
    for beyond in [201.0, 1025.0, 1e4, f32::MAX] {
        assert_eq!([beyond, -beyond].map(|x| exponential1(bits(x))), [bits(f32::INFINITY), 0], "{beyond}");
    }
    assert_eq!(logarithm1(bits(8.0)), bits(3.0));
    assert_eq!(logarithm1(bits(1.0)), 0);
    assert_eq!(logarithm1(denormal), bits(f32::NEG_INFINITY));
    assert_eq!(logarithm1(bits(-1.0)), SINGLE_NAN);
    assert_eq!(logarithm1(bits(f32::INFINITY)), bits(f32::INFINITY));
    for (x, sin, cos) in [
        (0.25, 1.0, 0.0),
        (0.5, 0.0, -1.0),
        (-0.25, -1.0, 0.0),
        (1.0, 0.0, 1.0),
        (1e9, 0.0, 1.0),
        (2f32.powi(99), 0.0, 1.0),
        (-2f32.powi(100), 0.0, 1.0),
        (f32::MAX, 0.0, 1.0),
    ] {
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

/// Results from 200 bits of another program. Those of the first three lists are within 12 units of the last place of
/// f64 from the midpoint of two f32, unless they say more. Of the second and third, an estimate alone may be rounded to
/// the wrong one.
#[test]
fn results_are_those_of_longer_arithmetic() {
    let check = |function: fn(u32) -> u32, cases: &[(u32, u32)]| {
        for (x, expected) in cases {
            assert_eq!(function(*x), *expected, "of {x:#010x}");
        }
    };
    check(
        logarithm1,
        &[
            (0x4020_7AB9, 0x3FA9_C25E),
            (0x3EA0_7AB9, 0xBFD6_3DA2),
            (0x5F91_4A90, 0x4280_5D98),
            (0x0091_4A90, 0xC2FB_A268),
            (0x43FF_C006, 0x410F_FA3B),
            (0x0097_4467, 0xC2FB_84A1),
        ],
    );
    check(reciprocal_square_root1, &[(0x4009_F038, 0x3F2E_6055), (0x403A_18E3, 0x3F16_209E)]);
    check(
        exponential1,
        &[
            (0x3B42_9D37, 0x3F80_4385),
            (0x3C02_A9AD, 0x3F80_B5A3),
            (0xBCF3_A937, 0x3F7A_C6B1),
            (0x3DC9_ABE2, 0x3F89_0AB5),
            (0xBE1F_29DE, 0x3F65_DA56),
            (0x3687_9CF7, 0x3F80_0018),
            (0x3A07_857C, 0x3F80_0BBE),
            (0xB52D_1F9A, 0x3F7F_FFF8),
            (0xB8D3_D026, 0x3F7F_FB69),
            (0xBAEC_2B40, 0x3F7F_AE34),
            // Within 40 units, and not of the first binade.
            (0x3F47_46F3, 0x3FDB_8D9B),
            (0xBF34_B452, 0x3F1C_F226),
            (0xC1F9_96C7, 0x2FDF_12EE),
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
    assert_eq!([biased_double(bits(-2.0), 1), biased_double(bits(-2.0), 0)], [bits(-2.0) + step, bits(-2.0)]);
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

/// The tables of the series, against the factorials and the odd numbers themselves.
#[test]
fn series_have_the_reciprocals_of_factorials_and_odd_numbers() {
    const FACTORIALS: [u64; 19] = [
        1,
        1,
        2,
        6,
        24,
        120,
        720,
        5040,
        40_320,
        362_880,
        3_628_800,
        39_916_800,
        479_001_600,
        6_227_020_800,
        87_178_291_200,
        1_307_674_368_000,
        20_922_789_888_000,
        355_687_428_096_000,
        6_402_373_705_728_000,
    ];
    assert_eq!(inverse_factorials(), FACTORIALS.map(|factorial| 1.0 / factorial as f64));
    let odd = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23];
    assert_eq!(INVERSE_ODD, odd.map(|number| 1.0 / f64::from(number)));
}

/// On both sides of the midpoint, as far as the documentation says.
#[test]
fn estimates_near_a_midpoint_are_doubtful() {
    for value in [1.0, -1.5, 3e30, 7e-20f32] {
        // Halfway to the next f32.
        let middle = f64::from(value).to_bits() + (1 << 28);
        for (distance, doubtful) in
            [(0, true), (1, true), (GUARD, true), (GUARD + 1, false), (1 << 28, false)]
        {
            let estimates = [middle - distance, middle + distance];
            let found = estimates.map(|bits| is_doubtful(f64::from_bits(bits)));
            assert_eq!(found, [doubtful; 2], "{distance} from that above {value}");
        }
    }
}
