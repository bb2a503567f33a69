//! Single sentences of AMD's instruction descriptions, each with examples by hand.

use super::arithmetic::{f, result, with};
use crate::shader::valu::testing::{MODE_USUAL, Random, assert_same, code, half_value, run_all, wave};
use crate::shader::wave::{LANES, Wave};

/// Lane 0 of a pair of registers.
fn pair(wave: &Wave, register: usize) -> u64 {
    u64::from(wave.vector[register].0[0]) | u64::from(wave.vector[register + 1].0[0]) << 32
}

fn set_pair(wave: &mut Wave, register: usize, bits: u64) {
    wave.vector[register].0[0] = bits as u32;
    wave.vector[register + 1].0[0] = (bits >> 32) as u32;
}

/// "Obey round mode, result clamped to 0x3f7fffff."
#[test]
fn fractions_are_below_one() {
    let single = code("v_fract_f32_e32 v0, v1", &[0x7E004101]);
    let half = code("v_fract_f16_e32 v0, v1", &[0x7E00BF01]);
    let double = code("v_fract_f64_e32 v[0:1], v[2:3]", &[0x7E007D02]);
    // To nearest, up, down and toward zero, for both widths.
    for mode in [0xF0, 0xF5, 0xFA, 0xFF] {
        for (value, fraction) in [
            (f(-1e-10), 0x3F7F_FFFF),
            (0x8000_0001, 0x3F7F_FFFF),
            (f(-0.25), f(0.75)),
            (f(-1.0), if mode == 0xFA { 0x8000_0000 } else { 0 }),
            (f(7.75), f(0.75)),
            (0x3F7F_FFFF, 0x3F7F_FFFF),
            (0x7F80_0000, 0x7FC0_0000),
            (0xFFC0_0001, 0x7FC0_0000),
        ] {
            assert_eq!(result(&[value], mode, single), fraction, "{value:#x}, mode {mode:#x}");
        }
        for (value, fraction) in
            [(0x8001, 0x3BFF), (0xB400, 0x3A00), (0x47C0, 0x3A00), (0x7C00, 0x7E00), (0xFE01, 0x7E00)]
        {
            assert_eq!(result(&[value], mode, half) & 0xFFFF, fraction, "{value:#x}, mode {mode:#x}");
        }
        for (value, fraction) in [
            (f64::to_bits(-1e-300), 0x3FEF_FFFF_FFFF_FFFF),
            (1 << 63 | 1, 0x3FEF_FFFF_FFFF_FFFF),
            (f64::to_bits(-0.25), f64::to_bits(0.75)),
            (f64::to_bits(7.75), f64::to_bits(0.75)),
            (0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000),
        ] {
            let mut start = with(&[]);
            start.mode = mode;
            set_pair(&mut start, 2, value);
            assert_eq!(pair(&run_all(&start, double), 0), fraction, "{value:#x}, mode {mode:#x}");
        }
    }
}

/// The examples of the descriptions: of a zero its own sign, of other multiples of half a turn +0.
#[test]
fn sines_and_cosines_of_the_examples() {
    let of = |value: u32, words: &[u32]| result(&[value], MODE_USUAL, words);
    let (sine, cosine) =
        (code("v_sin_f32_e32 v0, v1", &[0x7E006B01]), code("v_cos_f32_e32 v0, v1", &[0x7E006D01]));
    for (value, sin, cos) in [
        (0xFF7F_FFFF, 0, f(1.0)),
        (0x7F7F_FFFF, 0, f(1.0)),
        (0x8000_0000, 0x8000_0000, f(1.0)),
        (0, 0, f(1.0)),
        (f(0.25), f(1.0), 0),
        (f(-0.25), f(-1.0), 0),
        (f(-0.5), 0, f(-1.0)),
        (f(-3.0), 0, f(1.0)),
        (f(0.75), f(-1.0), 0),
    ] {
        assert_eq!((of(value, sine), of(value, cosine)), (sin, cos), "{value:#x}");
    }
    let (sine, cosine) =
        (code("v_sin_f16_e32 v0, v1", &[0x7E00C101]), code("v_cos_f16_e32 v0, v1", &[0x7E00C301]));
    for (value, sin, cos) in [
        (0xFBFF, 0, 0x3C00),
        (0x7BFF, 0, 0x3C00),
        (0x8000, 0x8000, 0x3C00),
        (0x3400, 0x3C00, 0),
        (0xFC00, 0x7E00, 0x7E00),
    ] {
        assert_eq!((of(value, sine) & 0xFFFF, of(value, cosine) & 0xFFFF), (sin, cos), "{value:#x}");
    }
}

/// "Supports saturation (unsigned 32-bit integer domain)": the mask still has the carry.
#[test]
fn sums_with_carries_saturate() {
    let mut random = Random::new(73);
    type Exact = fn(i64, i64, i64) -> i64;
    let cases: [(&str, [u32; 2], Exact); 6] = [
        ("v_add_co_u32 v16, s20, v1, v2 clamp", [0xD700_9410, 0x0002_0501], |a, b, _| a + b),
        ("v_sub_co_u32 v16, s20, v1, v2 clamp", [0xD701_9410, 0x0002_0501], |a, b, _| a - b),
        ("v_subrev_co_u32 v16, s20, v1, v2 clamp", [0xD702_9410, 0x0002_0501], |a, b, _| b - a),
        ("v_add_co_ci_u32_e64 v16, s20, v1, v2, s30 clamp", [0xD520_9410, 0x007A_0501], |a, b, c| a + b + c),
        ("v_sub_co_ci_u32_e64 v16, s20, v1, v2, s30 clamp", [0xD521_9410, 0x007A_0501], |a, b, c| a - b - c),
        ("v_subrev_co_ci_u32_e64 v16, s20, v1, v2, s30 clamp", [0xD522_9410, 0x007A_0501], |a, b, c| {
            b - a - c
        }),
    ];
    for round in 0..8 {
        let mut start = wave();
        (1..3).for_each(|register| start.vector[register] = random.row());
        for (lane, pair) in [(0, u32::MAX), (u32::MAX, 0), (7, 7), (u32::MAX, 1)].into_iter().enumerate() {
            (start.vector[1].0[lane], start.vector[2].0[lane]) = pair;
        }
        start.scalar[30] = random.next();
        if round % 2 != 0 {
            start.scalar[126] = random.next();
        }
        for (text, words, exact) in &cases {
            let end = run_all(&start, words);
            let mut mask = 0;
            for lane in 0..LANES {
                let [a, b] = [1, 2].map(|register: usize| i64::from(start.vector[register].0[lane]));
                let sum = exact(a, b, (start.scalar[30] >> lane & 1).into());
                let is_active = start.scalar[126] >> lane & 1 != 0;
                let is_outside = !(0..=i64::from(u32::MAX)).contains(&sum);
                mask |= u32::from(is_outside && is_active) << lane;
                let saturated = sum.clamp(0, u32::MAX.into()) as u32;
                let expected = if is_active { saturated } else { start.vector[16].0[lane] };
                assert_eq!(end.vector[16].0[lane], expected, "{text}: {a} {b}");
            }
            assert_eq!(end.scalar[20], mask, "{text}");
        }
    }
}

/// "Input denormals are not flushed but output flushing is allowed."
#[test]
fn the_last_step_of_a_division_keeps_denormal_sources() {
    let words = code("v_div_fmas_f32 v0, v1, v2, v3", &[0xD6370000, 0x040E0501]);
    // 2^-149 · 2^100 + 2^-49: a normal number of denormal factors. Flushed: the addend alone.
    for mode in [0xF0, 0x00, 0x50, 0xA0] {
        let mut start = with(&[1, f(2f32.powi(100)), f(2f32.powi(-49))]);
        (start.mode, start.scalar[106]) = (mode, 0);
        assert_eq!(run_all(&start, words).vector[0].0[0], f(2f32.powi(-48)), "mode {mode:#x}");
        // Scaled back by 2^-64 (the quotient is below 2): normal again.
        start.scalar[106] = 1;
        assert_eq!(run_all(&start, words).vector[0].0[0], f(2f32.powi(-112)), "mode {mode:#x}");
        // A quotient of at least 2 was scaled down.
        (start.vector[2].0[0], start.vector[3].0[0]) = (0, f(2.0));
        assert_eq!(run_all(&start, words).vector[0].0[0], f(2f32.powi(65)), "mode {mode:#x}");
        start.vector[3].0[0] = 0x3FFF_FFFF;
        assert_eq!(run_all(&start, words).vector[0].0[0], 0x3FFF_FFFF - (64 << 23), "mode {mode:#x}");
        // (1 + 2^-23)² is a little more than 1 + 2^-22: MODE rounds it, up for one.
        for (vcc, zero_bits) in [(0, 0), (1, 64 << 23)] {
            let mut start = with(&[0x3F80_0001, 0x3F80_0001, 0]);
            for (round, expected) in [(0, 0x3F80_0002), (1, 0x3F80_0003), (2, 0x3F80_0002)] {
                (start.mode, start.scalar[106]) = (mode | round, vcc);
                assert_eq!(
                    run_all(&start, words).vector[0].0[0],
                    expected - zero_bits,
                    "mode {mode:#x} {round}"
                );
            }
        }
        let wide = code("v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7]", &[0xD6380000, 0x041A0902]);
        let bits = |exponent| f64::to_bits(2f64.powi(exponent));
        for (vcc, addend, expected) in [
            (0, bits(-974), bits(-973)),
            // 2^-128 and 2^128.
            (1, bits(-100), bits(-228)),
            (1, bits(1), bits(129)),
            (1, 0x3FFF_FFFF_FFFF_FFFF, 0x3FFF_FFFF_FFFF_FFFF - (128 << 52)),
        ] {
            // 2^-1074 · 2^100, which the last three addends absorb.
            for (register, value) in [(2, 1), (4, bits(100)), (6, addend)] {
                set_pair(&mut start, register, value);
            }
            start.scalar[106] = vcc;
            assert_eq!(pair(&run_all(&start, wide), 0), expected, "mode {mode:#x}, {addend:#x}");
        }
    }
}

/// What the lanes beside it hold does not change a lane's result, though most divisions are scaled on a way of their
/// own.
#[test]
fn lanes_scale_their_divisions_by_themselves() {
    let words = code("v_div_scale_f32 v0, vcc_lo, v1, v2, v3", &[0xD6FC6A00, 0x040E0501]);
    let mut random = Random::new(79);
    for mode in [0xF0, 0xC0, 0xD0, 0xE0] {
        for round in 0..24 {
            let mut start = wave();
            start.mode = mode;
            start.scalar[126] = if round % 2 == 0 { u32::MAX } else { random.next() };
            for lane in 0..LANES {
                // Exponents around those at which scaling begins.
                let mut value = |exponents: [u32; 8]| {
                    exponents[random.next() as usize % 8] << 23 | random.next() & 0x807F_FFFF
                };
                let denominator = value([0, 1, 2, 100, 127, 250, 251, 252]);
                let numerator = value([0, 22, 23, 24, 25, 127, 200, 253]);
                let other = value([0, 0, 1, 64, 127, 128, 254, 255]);
                start.vector[1].0[lane] = [denominator, numerator, other][lane % 3];
                (start.vector[2].0[lane], start.vector[3].0[lane]) = (denominator, numerator);
            }
            let end = run_all(&start, words);
            assert_eq!(end.scalar[106] & !start.scalar[126], 0, "the mask is zero in inactive lanes");
            for lane in (0..LANES).filter(|lane| start.scalar[126] >> lane & 1 != 0) {
                let mut alone = start.clone();
                alone.scalar[126] = u32::MAX;
                for register in 1..4 {
                    alone.vector[register].0 = [start.vector[register].0[lane]; LANES];
                }
                let alone = run_all(&alone, words);
                let seen = (end.vector[0].0[lane], end.scalar[106] >> lane & 1);
                let sources = [1, 2, 3].map(|register: usize| start.vector[register].0[lane]);
                assert_eq!(
                    seen,
                    (alone.vector[0].0[lane], alone.scalar[106] & 1),
                    "{sources:x?}, mode {mode:#x}"
                );
            }
        }
    }
    // The reciprocal of 2^126 is no denormal, that of the next number is; an infinite denominator has neither a
    // denormal reciprocal nor a denormal quotient.
    let largest = f(2f32.powi(126));
    for (denominator, numerator, scaled) in [
        (largest, f(1.0), largest),
        (largest + 1, f(2.0), largest + 1 - (64 << 23)),
        (0x7F80_0000, f(1.0), 0x7F80_0000),
    ] {
        let mut start = with(&[denominator, denominator, numerator]);
        start.scalar[106] = u32::MAX;
        let end = run_all(&start, words);
        assert_eq!((end.vector[0].0[0], end.scalar[106]), (scaled, 0), "{denominator:#x}");
    }
    // A denormal that is neither the denominator nor the numerator is flushed by MODE.
    for (mode, expected) in [(0xF0, 3), (0xD0, 3), (0xC0, 0), (0xE0, 0)] {
        assert_eq!(result(&[3, f(2.0), f(1.0)], mode, words), expected, "mode {mode:#x}");
    }
}

/// The cases of v_div_scale_f64, in the order of the description: the value for the denominator, the one for the
/// numerator, and whether v_div_fmas scales back.
#[test]
fn wide_divisions_are_scaled_at_the_ends_of_the_range() {
    let words = code(
        "v_div_scale_f64 v[4:5], null, v[18:19], v[18:19], v[16:17]; v_div_scale_f64 v[6:7], vcc_lo, v[16:17], v[18:19], v[16:17]",
        &[0xD6FD7C04, 0x04422512, 0xD6FD6A06, 0x04422510],
    );
    let power = |exponent: i32| 2f64.powi(exponent);
    let nan = f64::NAN;
    let infinity = f64::INFINITY;
    let largest = f64::from_bits(2f64.powi(1023).to_bits() - 1);
    for (numerator, denominator, [scaled_denominator, scaled_numerator], flag) in [
        (3.0, 7.0, [7.0, 3.0], false),
        (0.0, 1.0, [nan; 2], false),
        (1.0, -0.0, [nan; 2], false),
        // The quotient would be near overflow: exponents 768 apart.
        (power(384), power(-384), [power(-256), power(384)], true),
        (power(383), power(-384), [power(-384), power(383)], false),
        // A denormal denominator.
        (power(-900), power(-1030), [power(-902), power(-772)], false),
        (power(-900), power(-1022), [power(-1022), power(-900)], false),
        // Its reciprocal is a denormal, which 2^-1022 is not; also the quotient.
        (power(100), power(1023), [power(895), power(-28)], false),
        (power(100), power(1022), [power(1022), power(100)], false),
        (
            power(100),
            f64::from_bits(power(1022).to_bits() + 1),
            [f64::from_bits(power(894).to_bits() + 1), power(-28)],
            false,
        ),
        (power(0), power(1023), [power(895), power(0)], true),
        // Only the quotient.
        (power(-500), power(600), [power(600), power(-372)], true),
        (power(-422), power(600), [power(600), power(-422)], false),
        (
            f64::from_bits(power(-422).to_bits() - 1),
            power(600),
            [power(600), f64::from_bits(power(-294).to_bits() - 1)],
            true,
        ),
        // A quotient of zero, and one that is far from it though its numerator is large.
        (power(-1074), power(1000), [power(1000), power(-946)], true),
        (largest, largest, [largest * power(-128), largest * power(-128)], false),
        // A tiny numerator.
        (power(-970), power(-960), [power(-832), power(-842)], false),
        (power(-969), power(-960), [power(-960), power(-969)], false),
        // An infinite denominator has no denormal reciprocal.
        (1.0, infinity, [infinity, 1.0], false),
    ] {
        for sign in [1.0, -1.0] {
            let mut start = with(&[]);
            // The other lanes hold the same, but are not active.
            for (register, value) in [(16, numerator * sign), (18, denominator)] {
                start.vector[register].0 = [value.to_bits() as u32; LANES];
                start.vector[register + 1].0 = [(value.to_bits() >> 32) as u32; LANES];
            }
            start.scalar[106] = u32::MAX;
            let end = run_all(&start, words);
            let same = |found: u64, value: f64| {
                found == value.to_bits() || value.is_nan() && f64::from_bits(found).is_nan()
            };
            let found = [pair(&end, 4), pair(&end, 6)];
            let right = same(found[0], scaled_denominator) && same(found[1], scaled_numerator * sign);
            assert!(right, "{numerator:e} / {denominator:e}: {found:x?}");
            assert_eq!(end.scalar[106], u32::from(flag), "{numerator:e} / {denominator:e}");
        }
    }
}

/// The register that m0 names is inside the allocation or it is not: its last register, and the next.
#[test]
fn relative_registers_end_with_the_allocation() {
    let movrels = code("v_movrels_b32_e32 v10, v1", &[0x7E148701]);
    let movreld = code("v_movreld_b32_e32 v10, v1", &[0x7E148501]);
    let constant = code("v_movreld_b32_e32 v10, 7", &[0x7E148487]);
    let split = code("v_movrelsd_2_b32_e32 v10, v1", &[0x7E149101]);
    let swap = code("v_swaprel_b32 v10, v1", &[0x7E14D101]);
    let mut start = wave();
    start.vector_count = 24;
    let run = |start: &Wave, m0: u32, words: &[u32]| {
        let mut start = start.clone();
        start.scalar[125] = m0;
        let mut end = run_all(&start, words);
        end.scalar[125] = 0;
        end
    };
    start.scalar[125] = 0;
    assert_eq!(run(&start, 22, movrels).vector[10], start.vector[23]);
    assert_eq!(run(&start, 23, movrels).vector[10], start.vector[0]);
    assert_eq!(run(&start, 13, movreld).vector[23], start.vector[1]);
    assert_same(&run(&start, 14, movreld), &start, "v_movreld");
    assert_eq!(run(&start, 13, constant).vector[23].0, [7; LANES]);
    // All of m0 counts, without wrapping.
    assert_same(&run(&start, u32::MAX - 8, movreld), &start, "v_movreld");
    assert_same(&run(&start, 1 << 8, movreld), &start, "v_movreld");
    // Ten bits each: what is above does not.
    assert_eq!(run(&start, 0xFC00_FC00 | 13 << 16 | 21, split).vector[23], start.vector[22]);
    assert_eq!(run(&start, 12 << 16 | 23, split).vector[22], start.vector[0]);
    assert_same(&run(&start, 14 << 16 | 3, split), &start, "v_movrelsd_2");
    let swapped = run(&start, 0xFC00_FC00 | 13 << 16 | 4, swap);
    assert_eq!((&swapped.vector[23], &swapped.vector[5]), (&start.vector[5], &start.vector[23]));
    for m0 in [14 << 16 | 4, 13 << 16 | 23, 0x200 << 16 | 4, 13 << 16 | 0x200] {
        assert_same(&run(&start, m0, swap), &start, "v_swaprel");
    }
}

/// f16 of a value that lies in its range, rounded as MODE says; the value is exact.
fn half_of(value: f64, round: u32) -> u32 {
    let negative = value.is_sign_negative();
    let magnitude = value.abs();
    // Multiples of the last place are exact in f64.
    let exponent = (magnitude.max(2f64.powi(-14)).to_bits() >> 52) as i32 - 1023;
    let place = 2f64.powi(exponent - 10);
    let units = magnitude / place;
    let up = match round {
        0 => units.round_ties_even() > units.floor(),
        1 => units > units.floor() && !negative,
        2 => units > units.floor() && negative,
        _ => false,
    };
    let units = units.floor() as u32 + u32::from(up);
    u32::from(negative) << 15 | ((exponent + 14) as u32 * 1024 + units)
}

/// f32 as well, of a normal number.
fn single_of(value: f64, round: u32) -> f32 {
    let nearest = value as f32;
    let [below, above] = match f64::from(nearest).total_cmp(&value) {
        std::cmp::Ordering::Less => [nearest, nearest.next_up()],
        std::cmp::Ordering::Equal => [nearest; 2],
        std::cmp::Ordering::Greater => [nearest.next_down(), nearest],
    };
    match round {
        0 => nearest,
        1 => above,
        2 => below,
        _ if value < 0.0 => above,
        _ => below,
    }
}

/// v_fma_mix: op_sel_hi makes a source an f16, op_sel says which half, abs (in neg_hi) comes before neg; the sum
/// is rounded to f32 by one field of MODE, then to f16 by the other.
#[test]
fn mixed_sums_have_every_form_of_source() {
    let mut random = Random::new(83);
    let mut start = wave();
    for form in (0..1u32 << 12).step_by(5) {
        // Rounding and result take turns.
        let [sel, sel_hi, neg, abs] = [form & 7, form >> 3 & 7, form >> 6 & 7, form >> 9];
        let (opcode, rounds) = (form % 3, form.wrapping_mul(0x9E37_79B9) >> 28);
        let words = [
            0xCC20_0000 | opcode << 16 | abs << 8 | sel << 11 | (sel_hi >> 2) << 14,
            neg << 29 | (sel_hi & 3) << 27 | 259 << 18 | 258 << 9 | 257,
        ];
        start.mode = MODE_USUAL | rounds;
        for register in 1..4 {
            for lane in 0..LANES {
                // Halves of moderate size, or an f32 of 12 bits: their sums are exact in f64.
                let mut half = || random.next() & 0x83FF | (12 + random.next() % 6) << 10;
                let bits = half() | half() << 16;
                let is_half = sel_hi >> (register - 1) & 1 != 0;
                let single = bits & 0x807F_F000 | (124 + (bits >> 20) % 6) << 23;
                start.vector[register].0[lane] = if is_half { bits } else { single };
            }
        }
        let end = run_all(&start, &words);
        for lane in 0..LANES {
            let value = |index: usize| {
                let bits = start.vector[1 + index].0[lane];
                let half = if sel >> index & 1 != 0 { bits >> 16 } else { bits & 0xFFFF };
                let value = if sel_hi >> index & 1 != 0 {
                    half_value(half as u16)
                } else {
                    f32::from_bits(bits).into()
                };
                let value = if abs >> index & 1 != 0 { value.abs() } else { value };
                if neg >> index & 1 != 0 { -value } else { value }
            };
            let exact = value(0) * value(1) + value(2);
            if exact == 0.0 {
                continue;
            }
            let sum = single_of(exact, rounds & 3);
            let half = half_of(sum.into(), rounds >> 2);
            let old = start.vector[0].0[lane];
            let expected =
                [sum.to_bits(), old & 0xFFFF_0000 | half, old & 0xFFFF | half << 16][opcode as usize];
            assert_eq!(end.vector[0].0[lane], expected, "{words:x?}, mode {:#x}, of {exact:e}", start.mode);
        }
    }
}

/// "OPSEL[2] controls which half of S2 is read and OPSEL[3] controls which half of D is written"; the others are
/// ignored.
#[test]
fn sixteen_bit_dot_products_have_halves_of_addend_and_result() {
    for select in 0..16u32 {
        let mut start = with(&[0x4200_4000, 0x4500_4400, 0x4900_3800]);
        start.vector[0].0[0] = 0xAAAA_5555;
        // 2·4 + 3·5, plus 0.5 or 10.
        let sum = if select & 4 != 0 { 0x5020 } else { 0x4DE0 };
        let expected = if select & 8 != 0 { sum << 16 | 0x5555 } else { 0xAAAA_0000 | sum };
        assert_eq!(
            run_all(&start, &[0xD666_0000 | select << 11, 0x040E_0501]).vector[0].0[0],
            expected,
            "{select}"
        );
        // The same in bfloat16.
        let mut start = with(&[0x4040_4000, 0x40A0_4080, 0x4120_3F00]);
        start.vector[0].0[0] = 0xAAAA_5555;
        let sum = if select & 4 != 0 { 0x4204 } else { 0x41BC };
        let expected = if select & 8 != 0 { sum << 16 | 0x5555 } else { 0xAAAA_0000 | sum };
        assert_eq!(
            run_all(&start, &[0xD667_0000 | select << 11, 0x040E_0501]).vector[0].0[0],
            expected,
            "{select}"
        );
    }
}

/// Every combination of signs: v_dot2_f32 has one for each half, the 16-bit results one for both, after abs.
#[test]
fn dot_products_have_signs_for_every_source() {
    let value = |bits: u32| f32::from_bits(bits << 16);
    // 3, -2; -5, 4; both halves as bfloat16.
    let (a, b) = (0xC000_4040_u32, 0x4080_C0A0_u32);
    for signs in 0..64u32 {
        let (neg_lo, neg_hi) = (signs & 7, signs >> 3);
        let signed = |value: f32, negative: bool| if negative { -value } else { value };
        let product = |neg: u32, shift: u32| {
            signed(value(a >> shift & 0xFFFF), neg & 1 != 0)
                * signed(value(b >> shift & 0xFFFF), neg & 2 != 0)
        };
        // The addend has the sign of neg_lo only.
        for addend in [16.0, -16.0] {
            let expected = product(neg_lo, 0) + product(neg_hi, 16) + signed(addend, neg_lo & 4 != 0);
            let words = [0xCC1A_4000 | neg_hi << 8, 0x1C0E_0501 | neg_lo << 29];
            let found = f32::from_bits(result(&[a, b, f(addend)], MODE_USUAL, &words));
            assert_eq!(found, expected, "{signs:#o} {addend}");
        }
        let modified = |value: f32, index: u32| {
            signed(if neg_hi >> index & 1 != 0 { value.abs() } else { value }, neg_lo >> index & 1 != 0)
        };
        let product =
            |shift: u32| modified(value(a >> shift & 0xFFFF), 0) * modified(value(b >> shift & 0xFFFF), 1);
        let expected = product(0) + product(16) + modified(-16.0, 2);
        let words = [0xD667_0000 | neg_hi << 8, 0x040E_0501 | neg_lo << 29];
        let found = result(&[a, b, 0xC180], MODE_USUAL, &words) & 0xFFFF;
        assert_eq!(value(found), expected, "{signs:#o}");
    }
}

/// The sum of a mix is not a source: a denormal f32 that is kept reaches the rounding to f16.
#[test]
fn sums_of_a_mix_are_rounded_to_halves_as_they_are() {
    let words = code("v_fma_mixlo_f16 v0, v1, v2, v3", &[0xCC210000, 0x040E0501]);
    // 2^-140, rounded up or to nearest; f32 denormals kept, kept in results only, flushed in results.
    let sources = [f(2f32.powi(-100)), f(2f32.powi(-40)), 0];
    for (mode, half) in [(0xF0, 0), (0xF4, 1), (0xE4, 1), (0xD4, 0), (0xC4, 0)] {
        assert_eq!(result(&sources, mode, words) & 0xFFFF, half, "mode {mode:#x}");
    }
}
