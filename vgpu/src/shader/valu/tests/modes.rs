//! Rounding and denormal modes, division sequences, approximations.

use super::arithmetic::{f, result, with};
use crate::shader::valu::shell::ModeFields;
use crate::shader::valu::testing::{MODE_USUAL, Random, code, run_all, wave};
use crate::shader::wave::{LANES, Wave};

/// Each rounding mode on values between two floats.
#[test]
fn rounding_modes_are_honoured() {
    let third = f(1.0 / 3.0);
    for (round, [sum, product, fused, integer, half]) in [
        // 1 + 2^-30; (1+e)²; -(1+e)² + 2^-60; 2^24 + 1; 1/3 to half
        (0, [f(1.0), 0x3F80_0002, 0xBF80_0002, f(16777216.0), 0x3555]),
        (1, [0x3F80_0001, 0x3F80_0003, 0xBF80_0002, f(16777218.0), 0x3556]),
        (2, [f(1.0), 0x3F80_0002, 0xBF80_0003, f(16777216.0), 0x3555]),
        (3, [f(1.0), 0x3F80_0002, 0xBF80_0002, f(16777216.0), 0x3555]),
    ] {
        let mode = MODE_USUAL | round | round << 2;
        let e = 0x3F80_0001;
        assert_eq!(
            result(&[f(1.0), f(2f32.powi(-30))], mode, code("v_add_f32_e32 v0, v1, v2", &[0x06000501])),
            sum,
            "{round}"
        );
        assert_eq!(
            result(&[e, e], mode, code("v_mul_f32_e32 v0, v1, v2", &[0x10000501])),
            product,
            "{round}"
        );
        assert_eq!(
            result(
                &[e, e, f(2f32.powi(-60))],
                mode,
                code("v_fma_f32 v0, -v1, v2, v3", &[0xD6130000, 0x240E0501])
            ),
            fused,
            "{round}"
        );
        assert_eq!(
            result(&[16777217], mode, code("v_cvt_f32_u32_e32 v0, v1", &[0x7E000D01])),
            integer,
            "{round}"
        );
        assert_eq!(
            result(&[third], mode, code("v_cvt_f16_f32_e32 v0, v1", &[0x7E001501])) & 0xFFFF,
            half,
            "{round}"
        );
    }
    // The two fields are separate: rounding f32 up does not affect f16, and the reverse.
    assert_eq!(
        result(&[third], MODE_USUAL | 1, code("v_cvt_f16_f32_e32 v0, v1", &[0x7E001501])) & 0xFFFF,
        0x3555
    );
    assert_eq!(
        result(
            &[f(1.0), f(2f32.powi(-30))],
            MODE_USUAL | 1 << 2,
            code("v_add_f32_e32 v0, v1, v2", &[0x06000501])
        ),
        f(1.0)
    );
    // FP16_OVFL.
    assert_eq!(
        result(&[f(1e9)], MODE_USUAL | 1 << 23, code("v_cvt_f16_f32_e32 v0, v1", &[0x7E001501])) & 0xFFFF,
        0x7BFF
    );
}

#[test]
fn denormal_modes_and_output_modifiers() {
    let denormal = 0x0040_0000; // 2^-127
    let words = code("v_add_f32_e64 v0, v1, v2", &[0xD5030000, 0x00020501]);
    assert_eq!(result(&[denormal, denormal], 0xF0, words), 0x0080_0000);
    assert_eq!(result(&[denormal, denormal], 0xC0, words), 0);
    assert_eq!(result(&[denormal, 0x8000_0001], 0xD0, words), 0, "mode 1 flushes results");
    assert_eq!(result(&[denormal, denormal], 0xD0, words), 0x0080_0000, "mode 1 keeps sources");
    assert_eq!(result(&[0x0080_0001, 0x8080_0000], 0xE0, words), 1, "mode 2 keeps results");
    assert_eq!(result(&[denormal, f(-0.0)], 0xE0, code("v_max_num_f32_e32 v0, v1, v2", &[0x2C000501])), 0);
    // Comparisons see flushed sources.
    let mut start = with(&[denormal, 0]);
    start.mode = 0xC0;
    assert_eq!(run_all(&start, code("v_cmp_eq_f32_e32 vcc_lo, v1, v2", &[0x7C240501])).scalar[106], 1);
    start.mode = 0xF0;
    assert_eq!(run_all(&start, code("v_cmp_eq_f32_e32 vcc_lo, v1, v2", &[0x7C240501])).scalar[106], 0);
    // Output modifiers apply only if results are flushed.
    for (mode, values) in [(0xF0, [3.0, 3.0, 3.0]), (0xC0, [6.0, 12.0, 1.5])] {
        assert_eq!(
            result(
                &[f(1.0), f(2.0)],
                mode,
                code("v_add_f32_e64 v0, v1, v2 mul:2", &[0xD5030000, 0x08020501])
            ),
            f(values[0])
        );
        assert_eq!(
            result(
                &[f(1.0), f(2.0)],
                mode,
                code("v_add_f32_e64 v0, v1, v2 mul:4", &[0xD5030000, 0x10020501])
            ),
            f(values[1])
        );
        assert_eq!(
            result(
                &[f(1.0), f(2.0)],
                mode,
                code("v_add_f32_e64 v0, v1, v2 div:2", &[0xD5030000, 0x18020501])
            ),
            f(values[2])
        );
    }
}

/// The compiler's division sequence returns the correctly rounded quotient (instruction set reference §8.3).
#[test]
fn the_division_sequence_divides() {
    // v1 / v2 with the seed in v5.
    let sequence = code(
        "v_div_scale_f32 v4, null, v2, v2, v1; v_rcp_f32_e32 v5, v4; v_fma_f32 v6, -v4, v5, 1.0; v_fma_f32 v5, v6, v5, v5; v_div_scale_f32 v6, vcc_lo, v1, v2, v1; v_mul_f32_e32 v7, v6, v5; v_fma_f32 v8, -v4, v7, v6; v_fma_f32 v7, v8, v5, v7; v_fma_f32 v4, -v4, v7, v6; v_div_fmas_f32 v4, v4, v5, v7; v_div_fixup_f32 v0, v4, v2, v1",
        &[
            0xD6FC7C04, 0x04060502, 0x7E0A5504, 0xD6130006, 0x23CA0B04, 0xD6130005, 0x04160B06, 0xD6FC6A06,
            0x04060501, 0x100E0B06, 0xD6130008, 0x241A0F04, 0xD6130007, 0x041E0B08, 0xD6130004, 0x241A0F04,
            0xD6370004, 0x041E0B04, 0xD6270000, 0x04060504,
        ],
    );
    let mut random = Random::new(41);
    let extremes = [
        1u32,
        0x0000_0100,
        0x007F_FFFF,
        0x0080_0000,
        0x0080_0001,
        0x0C00_0000,
        0x3F80_0000,
        0x7E80_0000,
        0x7EFF_FFFF,
        0x7F00_0001,
        0x7F7F_FFFF,
        0x7F80_0000,
        0x7FC0_0000,
        0,
        0x8000_0000,
        0xFF7F_FFFF,
        0x8000_0003,
    ];
    for round in 0..60 {
        let mut start = wave();
        for lane in 0..LANES {
            let index = round * LANES + lane;
            let pair = match index {
                0..289 => (extremes[index / 17], extremes[index % 17]),
                _ if round & 1 == 0 => (random.next(), random.next()),
                _ => (random.bits(), random.bits()),
            };
            (start.vector[1].0[lane], start.vector[2].0[lane]) = pair;
        }
        let end = run_all(&start, sequence);
        for lane in 0..LANES {
            let (n, d) = (f32::from_bits(start.vector[1].0[lane]), f32::from_bits(start.vector[2].0[lane]));
            let (quotient, result) = (n / d, f32::from_bits(end.vector[0].0[lane]));
            let right =
                if quotient.is_nan() { result.is_nan() } else { result.to_bits() == quotient.to_bits() };
            assert!(right, "{n:e} / {d:e}: {result:e}, not {quotient:e}");
        }
    }
}

#[test]
fn double_division_divides() {
    let sequence = code(
        "v_div_scale_f64 v[4:5], null, v[18:19], v[18:19], v[16:17]; v_rcp_f64_e32 v[6:7], v[4:5]; v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0; v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]; v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0; v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]; v_div_scale_f64 v[8:9], vcc_lo, v[16:17], v[18:19], v[16:17]; v_mul_f64_e32 v[10:11], v[8:9], v[6:7]; v_fma_f64 v[4:5], -v[4:5], v[10:11], v[8:9]; v_div_fmas_f64 v[4:5], v[4:5], v[6:7], v[10:11]; v_div_fixup_f64 v[0:1], v[4:5], v[18:19], v[16:17]",
        &[
            0xD6FD7C04, 0x04422512, 0x7E0C5F04, 0xD6140008, 0x23CA0D04, 0xD6140006, 0x041A1106, 0xD6140008,
            0x23CA0D04, 0xD6140006, 0x041A1106, 0xD6FD6A08, 0x04422510, 0x0C140D08, 0xD6140004, 0x24221504,
            0xD6380004, 0x042A0D04, 0xD6280000, 0x04422504,
        ],
    );
    let mut random = Random::new(43);
    for bias in [-1, 0, 1] {
        let mut start = wave();
        start.approximation_bias = bias;
        for lane in 0..LANES {
            // Ordinary numbers, and a few at the ends of the range.
            let mut exponent = |ends: u32| if lane < 8 { ends } else { 1000 + random.next() % 48 };
            let (n, d) = (exponent([1, 2046, 1023, 40][lane % 4]), exponent([2046, 1, 2045, 2000][lane % 4]));
            for (register, exponent) in [(16, n), (18, d)] {
                start.vector[register].0[lane] = random.next();
                start.vector[register + 1].0[lane] = exponent << 20 | random.next() >> 12;
            }
        }
        let end = run_all(&start, sequence);
        for lane in 0..LANES {
            let value = |wave: &Wave, register: usize| {
                let (low, high) = (wave.vector[register].0[lane], wave.vector[register + 1].0[lane]);
                f64::from_bits(low as u64 | (high as u64) << 32)
            };
            let (n, d) = (value(&start, 16), value(&start, 18));
            assert_eq!(value(&end, 0), n / d, "{n:e} / {d:e} with error {bias}");
        }
    }
}

/// The seed is off by the device's error, which does not affect the refinement of instruction set reference §8.4.
#[test]
fn approximations_carry_the_configured_error() {
    let seed = code("v_rcp_f32_e32 v0, v1", &[0x7E005501]);
    let mut start = with(&[f(3.0)]);
    let third = f(1.0 / 3.0);
    for (bias, expected) in [(-1, third - 1), (0, third), (1, third + 1)] {
        start.approximation_bias = bias;
        assert_eq!(run_all(&start, seed).vector[0].0[0], expected);
        assert_eq!(
            run_all(&start, code("v_rcp_f32_e64 v0, -v1", &[0xD5AA0000, 0x20000101])).vector[0].0[0],
            expected | 1 << 31
        );
        start.scalar[8] = f(3.0);
        assert_eq!(
            run_all(&start, code("v_s_rcp_f32 s4, s8", &[0xD6840004, 0x00000008])).scalar[4],
            expected
        );
        assert_eq!(
            run_all(&start, code("v_s_sqrt_f32 s4, 4.0", &[0xD6880004, 0x000000F6])).scalar[4],
            f(2.0).wrapping_add(bias as u32)
        );
        start.vector[1].0[0] = 0x4900;
        assert_eq!(
            run_all(&start, code("v_exp_f16_e32 v0, v1", &[0x7E00B101])).vector[0].0[0] & 0xFFFF,
            0x6400,
            "f16 has no room for it"
        );
        start.vector[1].0[0] = f(3.0);
    }
    let repair = code(
        "v_sqrt_f32_e32 v4, v1; v_add_nc_u32_e32 v5, -1, v4; v_add_nc_u32_e32 v6, 1, v4; v_fma_f32 v7, -v5, v4, v1; v_fma_f32 v8, -v6, v4, v1; v_cmp_ge_f32_e32 vcc_lo, 0, v7; v_cndmask_b32_e32 v0, v4, v5, vcc_lo; v_cmp_lt_f32_e32 vcc_lo, 0, v8; v_cndmask_b32_e32 v0, v0, v6, vcc_lo",
        &[
            0x7E086701, 0x4A0A08C1, 0x4A0C0881, 0xD6130007, 0x24060905, 0xD6130008, 0x24060906, 0x7C2C0E80,
            0x02000B04, 0x7C221080, 0x02000D00,
        ],
    );
    let mut random = Random::new(47);
    for bias in [-1, 0, 1] {
        let mut start = wave();
        start.approximation_bias = bias;
        for value in &mut start.vector[1].0 {
            *value = (random.next() & 0x00FF_FFFF) + (100 << 23);
        }
        let end = run_all(&start, repair);
        for lane in 0..LANES {
            let x = f32::from_bits(start.vector[1].0[lane]);
            assert_eq!(end.vector[0].0[lane], x.sqrt().to_bits(), "√{x} with error {bias}");
        }
    }
}

#[test]
fn other_approximations() {
    let of = |value: f32, words: &[u32]| f32::from_bits(result(&[f(value)], MODE_USUAL, words));
    assert_eq!(of(10.0, code("v_exp_f32_e32 v0, v1", &[0x7E004B01])), 1024.0);
    assert_eq!(of(1024.0, code("v_log_f32_e32 v0, v1", &[0x7E004F01])), 10.0);
    assert_eq!(of(0.25, code("v_rsq_f32_e32 v0, v1", &[0x7E005D01])), 2.0);
    assert_eq!(of(2.25, code("v_sqrt_f32_e32 v0, v1", &[0x7E006701])), 1.5);
    assert_eq!(of(0.25, code("v_sin_f32_e32 v0, v1", &[0x7E006B01])), 1.0);
    assert_eq!(of(0.5, code("v_cos_f32_e32 v0, v1", &[0x7E006D01])), -1.0);
    assert_eq!(of(-0.5, code("v_rcp_iflag_f32_e32 v0, v1", &[0x7E005701])), -2.0);
    assert_eq!(of(4.0, code("v_rcp_f32_e64 v0, v1 clamp", &[0xD5AA8000, 0x00000101])), 0.25);
    let low = |value: u32, words: &[u32]| result(&[value], MODE_USUAL, words) & 0xFFFF;
    assert_eq!(low(0x4400, code("v_sqrt_f16_e32 v0, v1", &[0x7E00AB01])), 0x4000);
    assert_eq!(low(0x4400, code("v_rsq_f16_e32 v0, v1", &[0x7E00AD01])), 0x3800);
    assert_eq!(low(0x4400, code("v_rcp_f16_e32 v0, v1", &[0x7E00A901])), 0x3400);
    assert_eq!(low(0x4400, code("v_log_f16_e32 v0, v1", &[0x7E00AF01])), 0x4000);
    assert_eq!(low(0x3400, code("v_sin_f16_e32 v0, v1", &[0x7E00C101])), 0x3C00);
    let end = run_all(
        &with(&[0, 0, 0x4010_0000]),
        code("v_sqrt_f64_e32 v[4:5], v[2:3]; v_rsq_f64_e32 v[6:7], v[2:3]", &[0x7E086902, 0x7E0C6302]),
    );
    assert_eq!((end.vector[4].0[0], end.vector[5].0[0]), (0, 0x4000_0000));
    assert_eq!((end.vector[6].0[0], end.vector[7].0[0]), (0, 0x3FE0_0000));
}

/// Signs, halves and output modifiers: of -4 and of 4, the reciprocals of x, -x, |x| and -|x|.
#[test]
fn approximations_have_modifiers() {
    let negate = 1 << 29;
    let modifiers = [[0, 0], [0, negate], [1 << 8, 0], [1 << 8, negate]];
    for (sign, negative) in [(0, [0, 1, 0, 1]), (1, [1, 0, 0, 1])] {
        for ([absolute, negated], negative) in modifiers.into_iter().zip(negative) {
            let scalar = |opcode: u32, source: u32, select: u32| {
                let mut start = wave();
                start.scalar[8] = source;
                run_all(&start, &[opcode | absolute | select, 8 | negated]).scalar[4]
            };
            let what = (sign, absolute, negated);
            // v_s_rcp_f32 s4, s8
            let single = f(4.0) | sign << 31;
            assert_eq!(scalar(0xD684_0004, single, 0), f(0.25) | negative << 31, "{what:?}");
            let vector = [0xD5AA_0000 | absolute, 0x101 | negated];
            assert_eq!(result(&[single], MODE_USUAL, &vector), f(0.25) | negative << 31, "{what:?}");
            // v_s_rcp_f16 s4, s8, of the lower and of the upper half; the other is 2.
            let half = 0x3400 | negative << 15;
            assert_eq!(scalar(0xD685_0004, 0x4000_4400 | sign << 15, 0), half, "{what:?}");
            assert_eq!(scalar(0xD685_0004, 0x4400_4000 | sign << 31, 1 << 11), half, "{what:?}");
        }
    }
    // Multiplied only if results are flushed.
    for (text, omod, factor) in [("mul:2", 1, 2.0), ("mul:4", 2, 4.0), ("div:2", 3, 0.5)] {
        let words = [0xD5AA_0000, 0x0000_0101 | omod << 27];
        let of = |mode: u32| f32::from_bits(result(&[f(4.0)], mode, &words));
        assert_eq!([0xF0, 0xC0].map(of), [0.25, 0.25 * factor], "v_rcp_f32 {text}");
    }
}

/// Bits 1:0 of MODE round f32, 3:2 f16 and f64; 5:4 and 7:6 are their denormals, all kept by 3; bit 23 is of f16.
#[test]
fn a_mode_deviates_in_the_fields_of_an_operation() {
    for number in 0..512u32 {
        let mode = number & 0xFF | number >> 8 << 23;
        let differs = |shift: u32| mode >> shift & 3 != 0 || mode >> (shift + 4) & 3 != 3;
        let (single, other, overflow) = (differs(0), differs(2), number >> 8 != 0);
        let fields =
            [ModeFields::NONE, ModeFields::SINGLE, ModeFields::HALF, ModeFields::DOUBLE, ModeFields::ALL];
        assert_eq!(
            fields.map(|fields| fields.deviates(mode)),
            [false, single, other || overflow, other, single || other || overflow],
            "{mode:#x}"
        );
    }
}

/// Results of 64 bits, and those of the operations around division, are modified like any other.
#[test]
fn clamp_and_output_modifiers_reach_the_rare_forms() {
    let pair = |mode: u32, sources: &[f64], words: &[u32]| {
        let mut start = with(&[]);
        start.mode = mode;
        start.scalar[106] = 0;
        for (index, value) in sources.iter().enumerate() {
            start.vector[2 + 2 * index].0[0] = value.to_bits() as u32;
            start.vector[3 + 2 * index].0[0] = (value.to_bits() >> 32) as u32;
        }
        let end = run_all(&start, words);
        f64::from_bits(u64::from(end.vector[0].0[0]) | u64::from(end.vector[1].0[0]) << 32)
    };
    let clamped = code("v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7] clamp", &[0xD6388000, 0x041A0902]);
    let doubled = code("v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7] mul:2", &[0xD6380000, 0x0C1A0902]);
    let seed_clamped = code("v_rcp_f64_e64 v[0:1], v[2:3] clamp", &[0xD5AF8000, 0x00000102]);
    let seed_doubled = code("v_rcp_f64_e64 v[0:1], v[2:3] mul:2", &[0xD5AF0000, 0x08000102]);
    assert_eq!(pair(MODE_USUAL, &[2.0, 3.0, 1.0], clamped), 1.0);
    assert_eq!(pair(MODE_USUAL, &[2.0, -3.0, 1.0], clamped), 0.0);
    assert_eq!(pair(MODE_USUAL, &[f64::NAN, 3.0, 1.0], clamped), 0.0);
    assert_eq!(pair(MODE_USUAL, &[0.5, 0.25, 0.125], clamped), 0.25);
    assert_eq!(pair(MODE_USUAL, &[0.5], seed_clamped), 1.0);
    assert_eq!(pair(MODE_USUAL, &[-2.0], seed_clamped), 0.0);
    // As for f32, multiplied only if results are flushed: the upper denormal field.
    assert_eq!([0xF0, 0x30].map(|mode| pair(mode, &[2.0, 3.0, 1.0], doubled)), [7.0, 14.0]);
    assert_eq!([0xF0, 0x30].map(|mode| pair(mode, &[0.25], seed_doubled)), [4.0, 8.0]);
    let doubled = code("v_div_fmas_f32 v0, v1, v2, v3 mul:2", &[0xD6370000, 0x0C0E0501]);
    let sources = [2.0, 3.0, 1.0].map(f);
    let of_single = |mode: u32| {
        let mut start = with(&sources);
        (start.mode, start.scalar[106]) = (mode, 0);
        run_all(&start, doubled).vector[0].0[0]
    };
    assert_eq!([0xF0, 0xC0].map(of_single), [7.0, 14.0].map(f));
    // fp8 2.0 and -1.0.
    let of_bytes = |mode: u32, words: &[u32]| {
        let end = run_all(&Wave { mode, ..with(&[0, 0xB840]) }, words);
        [4, 5].map(|register| f32::from_bits(end.vector[register].0[0]))
    };
    let clamped = code("v_cvt_pk_f32_fp8_e64 v[4:5], v2 clamp", &[0xD5EE8004, 0x00000102]);
    let doubled = code("v_cvt_pk_f32_fp8_e64 v[4:5], v2 mul:2", &[0xD5EE0004, 0x08000102]);
    assert_eq!(of_bytes(MODE_USUAL, clamped), [1.0, 0.0]);
    assert_eq!([0xF0, 0xC0].map(|mode| of_bytes(mode, doubled)), [[2.0, -1.0], [4.0, -2.0]]);
}

/// Compilers clamp v_div_scale where a program clamps it. The mask stays as it is: 2^-100 / 2 needs no scaling back,
/// and 2^100 / 2^-20 does.
#[test]
fn scaled_sources_of_a_division_are_clamped_and_multiplied() {
    let run = |mode: u32, [source, denominator, numerator]: [f32; 3], words: &[u32]| {
        let mut start = with(&[source, denominator, numerator].map(f));
        start.mode = mode;
        let end = run_all(&start, words);
        (f32::from_bits(end.vector[0].0[0]), end.scalar[106] & 1)
    };
    let clamped = code("v_div_scale_f32 v0, vcc_lo, v1, v2, v3 clamp", &[0xD6FCEA00, 0x040E0501]);
    let doubled = code("v_div_scale_f32 v0, vcc_lo, v1, v2, v3 mul:2", &[0xD6FC6A00, 0x0C0E0501]);
    let [small, large] = [2f32.powi(-20), 2f32.powi(100)];
    for (sources, plain, expected) in [
        ([0.5, 0.5, 3.0], 0.5, (0.5, 0)),
        ([3.0, 0.5, 3.0], 3.0, (1.0, 0)),
        ([-3.0, 0.5, -3.0], -3.0, (0.0, 0)),
        // The denominator is scaled up.
        ([small, small, large], 2f32.powi(44), (1.0, 1)),
        ([large, small, large], large, (1.0, 1)),
        ([f32::NAN, 0.0, 1.0], f32::NAN, (0.0, 0)),
    ] {
        assert_eq!(run(MODE_USUAL, sources, clamped), expected, "{sources:?}");
        let kept = run(0xF0, sources, doubled);
        let flushed = run(0xC0, sources, doubled);
        let are = |found: f32, value: f32| found == value || found.is_nan() && value.is_nan();
        assert!(are(kept.0, plain) && are(flushed.0, 2.0 * plain), "{sources:?}: {kept:?} {flushed:?}");
        assert_eq!([kept.1, flushed.1], [expected.1; 2], "{sources:?}");
    }
    let wide =
        code("v_div_scale_f64 v[0:1], vcc_lo, v[2:3], v[4:5], v[6:7] clamp", &[0xD6FDEA00, 0x041A0902]);
    for (source, expected) in [(0.5, 0.5), (3.0, 1.0), (-3.0, 0.0)] {
        let mut start = with(&[]);
        for (index, value) in [source, 0.5, 3.0f64].into_iter().enumerate() {
            start.vector[2 + 2 * index].0[0] = value.to_bits() as u32;
            start.vector[3 + 2 * index].0[0] = (value.to_bits() >> 32) as u32;
        }
        let end = run_all(&start, wide);
        let found = u64::from(end.vector[0].0[0]) | u64::from(end.vector[1].0[0]) << 32;
        assert_eq!(f64::from_bits(found), expected, "{source}");
    }
}

/// The cases of v_div_scale_f32, in the order of the reference's text: the value for the denominator, the one for the
/// numerator, and whether v_div_fmas scales back.
#[test]
fn division_is_scaled_at_the_ends_of_the_range() {
    let power = |exponent: i32| f(2f32.powi(exponent));
    let nan = 0x7FC0_0000;
    for (numerator, denominator, [scaled_denominator, scaled_numerator], flag) in [
        (f(3.0), f(7.0), [f(7.0), f(3.0)], false),
        (f(0.0), f(1.0), [nan; 2], false),
        (f(1.0), f(-0.0), [nan; 2], false),
        // The quotient would be near overflow: exponents 96 apart.
        (power(48), power(-48), [power(16), power(48)], true),
        (power(47), power(-48), [power(-48), power(47)], false),
        // A denormal denominator.
        (power(-100), power(-130), [power(-66), power(-36)], false),
        // Its reciprocal is a denormal; also the quotient.
        (power(100), power(127), [power(63), power(36)], false),
        (power(-1), power(127), [power(63), power(-1)], true),
        // Only the quotient.
        (power(-80), power(50), [power(50), power(-16)], true),
        (power(-76), power(50), [power(50), power(-76)], false),
        // A tiny numerator.
        (power(-104), power(-60), [power(4), power(-40)], false),
        (power(-103), power(-60), [power(-60), power(-103)], false),
    ] {
        for sign in [0, 1 << 31] {
            let mut start = with(&[numerator ^ sign, denominator]);
            start.scalar[106] = u32::MAX;
            let end = run_all(
                &start,
                code(
                    "v_div_scale_f32 v4, null, v2, v2, v1; v_div_scale_f32 v6, vcc_lo, v1, v2, v1",
                    &[0xD6FC7C04, 0x04060502, 0xD6FC6A06, 0x04060501],
                ),
            );
            let what = (f32::from_bits(numerator), f32::from_bits(denominator));
            let signed = if scaled_numerator == nan { nan } else { scaled_numerator ^ sign };
            assert_eq!([end.vector[4].0[0], end.vector[6].0[0]], [scaled_denominator, signed], "{what:?}");
            assert_eq!(end.scalar[106], u32::from(flag), "{what:?}");
        }
    }
}
