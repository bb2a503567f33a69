//! The exact models against the host, in directed rounding, and by hand.

use super::*;
use proptest::prelude::*;

const DEFAULT: Environment = Environment::DEFAULT;

fn same32(soft: u64, host: f32) -> bool {
    if host.is_nan() { soft == SINGLE_NAN as u64 } else { soft == host.to_bits() as u64 }
}

fn same64(soft: u64, host: f64) -> bool {
    if host.is_nan() { soft == DOUBLE_NAN } else { soft == host.to_bits() }
}

/// Random bits that include many boundary values.
fn bits32() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (any::<bool>(), 0u32..256, 0u32..4, any::<bool>()).prop_map(|(sign, exponent, low, top)| {
            let fraction = if top { 0x7F_FFFF - low } else { low };
            (sign as u32) << 31 | exponent << 23 | fraction
        }),
        // Close exponents, so that sums cancel.
        (any::<bool>(), 120u32..136, any::<u32>())
            .prop_map(|(sign, exponent, fraction)| (sign as u32) << 31 | exponent << 23 | fraction >> 9),
    ]
}

fn bits64() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<bool>(), 0u64..2048, 0u64..4, any::<bool>()).prop_map(|(sign, exponent, low, top)| {
            let fraction = if top { (1 << 52) - 1 - low } else { low };
            (sign as u64) << 63 | exponent << 52 | fraction
        }),
        (any::<bool>(), 1010u64..1036, any::<u64>())
            .prop_map(|(sign, exponent, fraction)| (sign as u64) << 63 | exponent << 52 | fraction >> 12),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn default_environment_agrees_with_the_host_in_single(a in bits32(), b in bits32(), c in bits32()) {
        let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        let (a, b, c) = (a as u64, b as u64, c as u64);
        prop_assert!(same32(add(SINGLE, a, b, DEFAULT), x + y));
        prop_assert!(same32(multiply(SINGLE, a, b, DEFAULT), x * y));
        prop_assert!(same32(multiply_add(SINGLE, [a, b, c], DEFAULT), x.mul_add(y, z)));
        prop_assert!(same32(round_to_integral(SINGLE, a, Round::NearestEven, DEFAULT), x.round_ties_even()));
        prop_assert!(same32(round_to_integral(SINGLE, a, Round::Down, DEFAULT), x.floor()));
        prop_assert!(same32(round_to_integral(SINGLE, a, Round::Up, DEFAULT), x.ceil()));
        prop_assert!(same32(round_to_integral(SINGLE, a, Round::Zero, DEFAULT), x.trunc()));
    }

    #[test]
    fn default_environment_agrees_with_the_host_in_double(a in bits64(), b in bits64(), c in bits64()) {
        let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        prop_assert!(same64(add(DOUBLE, a, b, DEFAULT), x + y));
        prop_assert!(same64(multiply(DOUBLE, a, b, DEFAULT), x * y));
        prop_assert!(same64(multiply_add(DOUBLE, [a, b, c], DEFAULT), x.mul_add(y, z)));
        prop_assert!(same32(convert(DOUBLE, SINGLE, a, DEFAULT, DEFAULT), x as f32));
    }

    #[test]
    fn integers_agree_with_the_host(a in any::<i32>(), b in any::<u32>(), c in any::<i64>()) {
        prop_assert!(same32(from_integer(SINGLE, a as i128, DEFAULT), a as f32));
        prop_assert!(same32(from_integer(SINGLE, b as i128, DEFAULT), b as f32));
        prop_assert!(same64(from_integer(DOUBLE, c as i128, DEFAULT), c as f64));
    }

    /// Directed results enclose the exact one: one step apart when inexact, equal when exact.
    #[test]
    fn directed_rounding_encloses(a in bits32(), b in bits32(), c in bits32()) {
        let with = |round| {
            let environment = Environment { round, ..DEFAULT };
            f32::from_bits(multiply_add(SINGLE, [a as u64, b as u64, c as u64], environment) as u32)
        };
        let (near, up, down, zero) =
            (with(Round::NearestEven), with(Round::Up), with(Round::Down), with(Round::Zero));
        if near.is_nan() {
            prop_assert!(up.is_nan() && down.is_nan() && zero.is_nan());
        } else {
            prop_assert!(down <= near && near <= up);
            prop_assert!(up == down || up == down.next_up());
            prop_assert!(near == up || near == down);
            let inward = if near > 0.0 || up > 0.0 { down } else { up };
            prop_assert!(zero == inward);
        }
    }

    #[test]
    fn fast_conversions_agree_with_the_model(a in bits32(), b in bits64()) {
        let toward_zero = Environment { round: Round::Zero, ..DEFAULT };
        prop_assert_eq!(single_to_half(a) as u64, convert(SINGLE, HALF, a as u64, DEFAULT, DEFAULT));
        prop_assert_eq!(
            single_to_half_toward_zero(a) as u64,
            convert(SINGLE, HALF, a as u64, DEFAULT, toward_zero)
        );
        prop_assert_eq!(double_to_half(b) as u64, convert(DOUBLE, HALF, b, DEFAULT, DEFAULT));
    }
}

#[test]
fn every_half_converts_exactly_and_back() {
    for half in 0..0x1_0000u32 {
        let single = half_to_single(half);
        assert_eq!(single as u64, convert(HALF, SINGLE, half as u64, DEFAULT, DEFAULT));
        if half & 0x7FFF <= 0x7C00 {
            assert_eq!(single_to_half(single), half);
            assert_eq!(single_to_half_toward_zero(single), half);
        }
    }
    // Values by hand: 1.0, the largest, the smallest denormal, -2.
    assert_eq!(half_to_single(0x3C00), 1.0f32.to_bits());
    assert_eq!(half_to_single(0x7BFF), 65504.0f32.to_bits());
    assert_eq!(half_to_single(0x0001), 2f32.powi(-24).to_bits());
    assert_eq!(half_to_single(0xC000), (-2.0f32).to_bits());
}

#[test]
fn halves_round_ties_to_even_and_overflow_by_mode() {
    let convert = |value: f32, round, saturate| {
        let environment = Environment { round, saturate, ..DEFAULT };
        super::convert(SINGLE, HALF, value.to_bits() as u64, DEFAULT, environment)
    };
    assert_eq!(convert(2049.0, Round::NearestEven, false), 0x6800); // 2048
    assert_eq!(convert(2051.0, Round::NearestEven, false), 0x6802); // 2052
    assert_eq!(convert(2049.0, Round::Up, false), 0x6801);
    assert_eq!(convert(65520.0, Round::NearestEven, false), 0x7C00);
    assert_eq!(convert(65519.0, Round::NearestEven, false), 0x7BFF);
    assert_eq!(convert(1e9, Round::Zero, false), 0x7BFF);
    assert_eq!(convert(1e9, Round::NearestEven, true), 0x7BFF);
    assert_eq!(convert(f32::INFINITY, Round::NearestEven, true), 0x7C00);
    assert_eq!(convert(-1e9, Round::Up, false), 0xFBFF);
    assert_eq!(convert(-1e9, Round::Down, false), 0xFC00);
}

#[test]
fn flushing_takes_each_side_by_itself() {
    let denormal = 1u64;
    let mode = |denorm: u32| Mode(denorm << 4).single();
    // denormal * 1.0
    let one = 1.0f32.to_bits() as u64;
    assert_eq!(multiply(SINGLE, denormal, one, mode(3)), 1);
    for denorm in 0..3 {
        assert_eq!(multiply(SINGLE, denormal | 1 << 31, one, mode(denorm)), 1 << 31, "mode {denorm}");
    }
    // A denormal source with a normal result (2^-149 * 2^100): kept by mode 1, flushed by mode 2.
    let large = 2f32.powi(100).to_bits() as u64;
    assert_eq!(multiply(SINGLE, denormal, large, mode(1)), 2f32.powi(-49).to_bits() as u64);
    assert_eq!(multiply(SINGLE, denormal, large, mode(2)), 0);
    // A denormal result of normal sources: kept by mode 2, flushed by mode 1.
    let small = 2f32.powi(-100).to_bits() as u64;
    let smaller = 2f32.powi(-40).to_bits() as u64;
    assert_eq!(multiply(SINGLE, small, smaller, mode(2)), 1 << 9);
    assert_eq!(multiply(SINGLE, small, smaller, mode(1)), 0);
}

#[test]
fn zero_sums_have_the_right_sign() {
    let one = 1.0f32.to_bits() as u64;
    let minus = (-1.0f32).to_bits() as u64;
    let down = Environment { round: Round::Down, ..DEFAULT };
    assert_eq!(add(SINGLE, one, minus, DEFAULT), 0);
    assert_eq!(add(SINGLE, one, minus, down), 1 << 31);
    assert_eq!(add(SINGLE, 1 << 31, 1 << 31, DEFAULT), 1 << 31);
    assert_eq!(add(SINGLE, 1 << 31, 0, DEFAULT), 0);
}

#[test]
fn fp8_and_bf8_match_the_published_values() {
    // OCP 8-bit formats: largest finite 448 and 57344, smallest denormals 2^-9 and 2^-16.
    for (value, code) in [(448.0, 0x7E), (1.0, 0x38), (2f32.powi(-9), 0x01), (-0.0, 0x80), (0.875, 0x36)] {
        assert_eq!(single_to_fp8(f32::to_bits(value), false), code, "{value}");
        assert_eq!(f32::from_bits(fp8_to_single(code)), value);
    }
    for (value, code) in [(57344.0, 0x7B), (1.0, 0x3C), (2f32.powi(-16), 0x01), (-2.0, 0xC0)] {
        assert_eq!(single_to_bf8(f32::to_bits(value), false), code, "{value}");
        assert_eq!(f32::from_bits(bf8_to_single(code)), value);
    }
    assert_eq!(single_to_fp8(1e6f32.to_bits(), false), 0x7F);
    assert_eq!(single_to_fp8((-1e6f32).to_bits(), true), 0xFE);
    assert_eq!(single_to_fp8(464f32.to_bits(), false), 0x7E); // tie between 448 and 480: even is 448
    assert_eq!(single_to_bf8(1e6f32.to_bits(), false), 0x7C);
    assert_eq!(single_to_bf8(1e6f32.to_bits(), true), 0x7B);
    for code in 0..256 {
        let value = fp8_to_single(code);
        if code & 0x7F != 0x7F {
            assert_eq!(single_to_fp8(value, false), code);
        }
    }
}

/// The value of an 8-bit float, from its fields.
fn byte_value(code: u32, exponent_bits: u32) -> f32 {
    let fraction_bits = 7 - exponent_bits;
    let (exponent, fraction) = ((code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1));
    let significand = if exponent == 0 { fraction } else { fraction | 1 << fraction_bits };
    let place = exponent.max(1) as i32 - (1 << (exponent_bits - 1)) + 1 - fraction_bits as i32;
    let magnitude = significand as f32 * 2f32.powi(place);
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

/// What lies between two neighbours rounds to the nearer one, and from the middle to the even one.
#[test]
fn bytes_round_to_the_nearest_value_for_every_pair_of_neighbours() {
    type Conversions = (u32, u32, fn(u32) -> u32, fn(u32, bool) -> u32);
    let formats: [Conversions; 2] =
        [(4, 0x7E, fp8_to_single, single_to_fp8), (5, 0x7B, bf8_to_single, single_to_bf8)];
    for (exponent_bits, largest, widen, narrow) in formats {
        for sign in [0, 0x80] {
            for code in 0..=largest {
                let value = byte_value(code | sign, exponent_bits);
                assert_eq!(widen(code | sign), value.to_bits(), "{code:#x}");
                if code == largest {
                    break;
                }
                let middle = (value + byte_value((code + 1) | sign, exponent_bits)) / 2.0;
                // The f32 next to the middle, toward zero and away from it.
                let (below, above) = (middle.to_bits() - 1, middle.to_bits() + 1);
                for saturate in [false, true] {
                    assert_eq!(narrow(below, saturate), code | sign, "below {middle}");
                    assert_eq!(narrow(middle.to_bits(), saturate), (code + (code & 1)) | sign, "{middle}");
                    assert_eq!(narrow(above, saturate), (code + 1) | sign, "above {middle}");
                }
            }
        }
    }
    // Half a place above the largest value is too large, except that E4M3's is a tie with an odd neighbour.
    for (value, saturate, fp8, bf8) in [
        (464.0, false, 0x7E, 0x5F),
        (464.000_03, false, 0x7F, 0x5F),
        (464.000_03, true, 0x7E, 0x5F),
        (61_439.0, false, 0x7F, 0x7B),
        (61_440.0, false, 0x7F, 0x7C),
        (61_440.0, true, 0x7E, 0x7B),
        (f32::INFINITY, false, 0x7F, 0x7C),
    ] {
        for sign in [0, 0x80] {
            let bits = f32::to_bits(value) | sign << 24;
            assert_eq!(single_to_fp8(bits, saturate), fp8 | sign, "{value}");
            assert_eq!(single_to_bf8(bits, saturate), bf8 | sign, "{value}");
        }
    }
    // NaN: E4M3 has one for each sign.
    assert_eq!([single_to_fp8(0x7F80_0001, true), single_to_fp8(0xFFC0_0000, false)], [0x7F, 0xFF]);
    assert_eq!([fp8_to_single(0x7F), fp8_to_single(0xFF)], [SINGLE_NAN; 2]);
    assert!([0x7D, 0x7E, 0x7F, 0xFD].iter().all(|code| f32::from_bits(bf8_to_single(*code)).is_nan()));
    assert_eq!([bf8_to_single(0x7C), bf8_to_single(0xFC)], [0x7F80_0000, 0xFF80_0000]);
}

#[test]
fn mode_has_fields_for_single_and_for_the_others() {
    let rounds = [Round::NearestEven, Round::Up, Round::Down, Round::Zero];
    for (number, round) in (0..).zip(rounds) {
        for (denormals, flush_sources, flush_results) in
            [(0, true, true), (1, false, true), (2, true, false), (3, false, false)]
        {
            let plain = Environment { round, flush_sources, flush_results, saturate: false };
            // The other fields have other values.
            let (single, other) = (number | denormals << 4, (number ^ 3) | (denormals ^ 3) << 4);
            assert_eq!(Mode(single | other << 2 | MODE_FP16_OVERFLOW).single(), plain);
            assert_eq!(Mode(single << 2 | other | MODE_FP16_OVERFLOW).double(), plain);
            assert_eq!(Mode(single << 2 | other).half(), plain);
            let saturating = Environment { saturate: true, ..plain };
            assert_eq!(Mode(single << 2 | other | 1 << 23).half(), saturating);
        }
    }
}

#[test]
fn scaling_by_a_power_of_two_rounds_once() {
    let scaled = |value: f32, power| scale(SINGLE, value.to_bits().into(), power, DEFAULT) as u32;
    for (value, power, expected) in [
        (1.5, 3, f32::to_bits(12.0)),
        (-1.0, -149, 0x8000_0001),
        // Half of the smallest number is a tie and becomes zero; more than half does not.
        (1.0, -150, 0),
        (-1.0, -150, 0x8000_0000),
        (1.000_000_1, -150, 1),
        (1.0, 127, 0x7F00_0000),
        (-1.0, 128, 0xFF80_0000),
        (f32::from_bits(1), 149, f32::to_bits(1.0)),
        (f32::from_bits(1), 277, 0x7F80_0000),
        (f32::from_bits(1), 276, 0x7F00_0000),
        (1.0, i32::MAX, 0x7F80_0000),
        (-1.0, i32::MIN, 0x8000_0000),
        (-0.0, i32::MAX, 0x8000_0000),
        (f32::NEG_INFINITY, i32::MIN, 0xFF80_0000),
        (f32::NAN, 0, SINGLE_NAN),
    ] {
        assert_eq!(scaled(value, power), expected, "{value} {power}");
    }
    let double = |value: f64, power| f64::from_bits(scale(DOUBLE, value.to_bits(), power, DEFAULT));
    assert_eq!(double(f64::from_bits(1), 2097), 2f64.powi(1023));
    assert_eq!(double(f64::from_bits(1), 2098), f64::INFINITY);
    assert_eq!(double(f64::MAX, -2098), f64::from_bits(1));
    assert_eq!(double(f64::MAX, -2099), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn doubles_become_integral_as_on_the_host(a in bits64()) {
        let x = f64::from_bits(a);
        let rounded = |round| round_to_integral(DOUBLE, a, round, DEFAULT);
        prop_assert!(same64(rounded(Round::NearestEven), x.round_ties_even()));
        prop_assert!(same64(rounded(Round::Down), x.floor()));
        prop_assert!(same64(rounded(Round::Up), x.ceil()));
        prop_assert!(same64(rounded(Round::Zero), x.trunc()));
    }

    /// As for f32: directed results of doubles are at most a step apart, on both sides of the nearest.
    #[test]
    fn directed_rounding_encloses_doubles(a in bits64(), b in bits64(), c in bits64()) {
        type Function = fn([u64; 3], Environment) -> u64;
        let functions: [Function; 3] = [
            |[a, b, _], e| add(DOUBLE, a, b, e),
            |[a, b, _], e| multiply(DOUBLE, a, b, e),
            |sources, e| multiply_add(DOUBLE, sources, e),
        ];
        for function in functions {
            let with = |round| f64::from_bits(function([a, b, c], Environment { round, ..DEFAULT }));
            let (near, up, down) = (with(Round::NearestEven), with(Round::Up), with(Round::Down));
            if near.is_nan() {
                prop_assert!(up.is_nan() && down.is_nan());
                continue;
            }
            prop_assert!(down <= near && near <= up && (near == up || near == down));
            prop_assert!(up == down || up == down.next_up());
            let inward = if near > 0.0 || up > 0.0 { down } else { up };
            prop_assert!(with(Round::Zero) == inward);
        }
    }
}

#[test]
fn formats_know_their_special_values() {
    for (format, sign, infinity, nan) in [
        (HALF, 0x8000, 0x7C00, HALF_NAN.into()),
        (SINGLE, 1 << 31, 0x7F80_0000, SINGLE_NAN.into()),
        (DOUBLE, 1 << 63, 0x7FF0_0000_0000_0000, DOUBLE_NAN),
        (BF8, 0x80, 0x7C, 0x7E),
    ] {
        assert_eq!((format.infinity(), format.nan()), (infinity, nan));
        assert_eq!(format.bits(), 64 - u64::leading_zeros(sign));
        let smallest_normal = infinity & !(infinity << 1);
        for (bits, is_nan, is_denormal) in [
            (0, false, false),
            (1, false, true),
            (smallest_normal - 1, false, true),
            (smallest_normal, false, false),
            (infinity, false, false),
            (infinity + 1, true, false),
            (nan, true, false),
        ] {
            for bits in [bits, bits | sign] {
                assert_eq!(
                    (format.is_nan(bits), format.is_denormal(bits)),
                    (is_nan, is_denormal),
                    "{bits:#x}"
                );
            }
        }
    }
}

/// What lies between two f16 rounds to one of them as the mode says, from f32 and from f64, for every pair of
/// neighbours; beyond the largest, infinity is the neighbour.
#[test]
fn halves_are_rounded_for_every_pair_of_neighbours() {
    // The magnitudes as multiples of 2^-24; of 0x7C00 that of 2^16.
    let units = |code: u32| match (code >> 10, u64::from(code & 0x3FF)) {
        (0, fraction) => fraction,
        (exponent, fraction) => (1024 + fraction) << (exponent - 1),
    };
    let value = |quarters: f64| quarters * 2f64.powi(-26);
    let wide = |bits: u64, round: Round| {
        convert(DOUBLE, HALF, bits, DEFAULT, Environment { round, ..DEFAULT }) as u32
    };
    let single = |bits: u32, round: Round| {
        convert(SINGLE, HALF, bits.into(), DEFAULT, Environment { round, ..DEFAULT }) as u32
    };
    for code in 0..0x7C00u32 {
        let (low, high) = (4.0 * units(code) as f64, 4.0 * units(code + 1) as f64);
        let even = code + (code & 1);
        // A quarter of the way, half of it, and on both sides of the half.
        let middle = value((low + high) / 2.0);
        let places = [
            (value((3.0 * low + high) / 4.0), code),
            (middle.next_down(), code),
            (middle, even),
            (middle.next_up(), code + 1),
        ];
        for ((value, nearest), sign) in places.into_iter().flat_map(|place| [(place, 0), (place, 0x8000)]) {
            let bits = value.to_bits() | u64::from(sign) << 48;
            let toward_zero = code | sign;
            // With the sign, away from zero is up or down.
            let (up, down) = if sign == 0 { (code + 1, code) } else { (code, code + 1) };
            assert_eq!(double_to_half(bits), nearest | sign, "{value:e}");
            assert_eq!(wide(bits, Round::NearestEven), nearest | sign, "{value:e}");
            assert_eq!(wide(bits, Round::Up), up | sign, "{value:e}");
            assert_eq!(wide(bits, Round::Down), down | sign, "{value:e}");
            assert_eq!(wide(bits, Round::Zero), toward_zero, "{value:e}");
            let narrow = (value as f32).to_bits() | sign << 16;
            if f64::from(value as f32) == value {
                assert_eq!(single_to_half(narrow), nearest | sign, "{value:e}");
                assert_eq!(single_to_half_toward_zero(narrow), toward_zero, "{value:e}");
            }
        }
        // The neighbours of the middle among f32.
        let bits = (middle as f32).to_bits();
        for (bits, nearest) in [(bits - 1, code), (bits, even), (bits + 1, code + 1)] {
            assert_eq!(single_to_half(bits), nearest, "{bits:#x}");
            assert_eq!(single_to_half(bits | 1 << 31), nearest | 0x8000, "{bits:#x}");
            assert_eq!(single(bits, Round::NearestEven), nearest, "{bits:#x}");
            assert_eq!(single_to_half_toward_zero(bits), code, "{bits:#x}");
        }
    }
    // Too large, infinite, NaN; a denormal of the wider format.
    for (value, nearest, toward_zero) in [
        (65536.0, 0x7C00, 0x7BFF),
        (1e9, 0x7C00, 0x7BFF),
        (f64::INFINITY, 0x7C00, 0x7C00),
        (-f64::INFINITY, 0xFC00, 0xFC00),
        (f64::NAN, HALF_NAN, HALF_NAN),
        (-0.0, 0x8000, 0x8000),
        (f64::from(f32::from_bits(1)), 0, 0),
    ] {
        let single = (value as f32).to_bits();
        assert_eq!([double_to_half(value.to_bits()), single_to_half(single)], [nearest; 2], "{value}");
        assert_eq!(single_to_half_toward_zero(single), toward_zero, "{value}");
    }
    assert_eq!(
        [double_to_half(1), double_to_half(1 << 63 | 1), double_to_half(0x7FF0_0000_0000_0001)],
        [0, 0x8000, HALF_NAN]
    );
}

/// A number that is too small to reach the last place still decides how a sum rounds, however small it is.
#[test]
fn what_lies_far_below_is_not_lost() {
    let one = f64::to_bits(1.0);
    let tie = f64::to_bits(2f64.powi(-53));
    for distance in [54, 55, 60, 100, 126, 127, 128, 129, 200, 1000, 1074] {
        let small =
            if distance > 1022 { 1u64 << (1074 - distance) } else { f64::to_bits(2f64.powi(-distance)) };
        for (round, plus, minus) in [
            (Round::NearestEven, one, one),
            (Round::Up, one + 1, one),
            (Round::Down, one, one - 1),
            (Round::Zero, one, one - 1),
        ] {
            let environment = Environment { round, ..DEFAULT };
            assert_eq!(add(DOUBLE, one, small, environment), plus, "{distance} {round:?}");
            assert_eq!(add(DOUBLE, small, one, environment), plus, "{distance} {round:?}");
            assert_eq!(add(DOUBLE, one, small | 1 << 63, environment), minus, "{distance} {round:?}");
            assert_eq!(
                multiply_add(DOUBLE, [one, one, small | 1 << 63], environment),
                minus,
                "{distance} {round:?}"
            );
        }
    }
    assert_eq!(add(DOUBLE, one, tie, DEFAULT), one, "a tie goes to the even one");
    assert_eq!(multiply_add(DOUBLE, [tie + 1, one, one], DEFAULT), one + 1, "just above the tie");
    assert_eq!(add(DOUBLE, one + 1, tie, DEFAULT), one + 2);
}

/// The last bit that stands for all that was lost is set if it is set already, too.
#[test]
fn a_sticky_bit_is_not_lost_where_a_number_ends() {
    let bits = |value: f32| u64::from(value.to_bits());
    // (1 + 2^-12)² is halfway between two f32; the addend reaches 125 places below, with its first bit only.
    let (factor, tie) = (1.0 + 2f32.powi(-12), 1.0 + 2f32.powi(-11));
    let addend = 2f32.powi(-125).next_up();
    for (sign, sum) in [(0, tie.next_up()), (1 << 31, tie)] {
        let sources = [bits(factor), bits(factor), bits(addend) | sign];
        assert_eq!(multiply_add(SINGLE, sources, DEFAULT), bits(sum), "{sign:#x}");
    }
    assert_eq!(multiply_add(SINGLE, [bits(factor), bits(factor), 0], DEFAULT), bits(tie), "to even");
    // A sum with a carry, all of which but the carry lies below the smallest number: 2.5, 2 and 1.5 times 2^-151.
    for (addend, expected) in [(1.5, 1), (1.0, 0), (0.5, 0)] {
        let sources = [2f32.powi(-87), 1.0, addend * 2f32.powi(-87)].map(bits);
        assert_eq!(multiply_add_scaled(SINGLE, sources, -64, DEFAULT), expected, "{addend}");
    }
}

#[test]
fn sums_of_infinities_depend_on_their_signs() {
    for format in [HALF, SINGLE, DOUBLE] {
        let (plus, sign) =
            (format.infinity(), format.infinity() + (format.infinity() & !(format.infinity() << 1)));
        let minus = plus | sign;
        for (a, b, sum) in [
            (plus, plus, plus),
            (minus, minus, minus),
            (plus, minus, format.nan()),
            (minus, plus, format.nan()),
        ] {
            assert_eq!(add(format, a, b, DEFAULT), sum, "{a:#x} {b:#x}");
        }
        assert_eq!([add(format, minus, 1, DEFAULT), add(format, sign, plus, DEFAULT)], [minus, plus]);
    }
}
