//! Floating point in the usual mode, against the host and by hand.

use crate::shader::float::{DOUBLE_NAN, SINGLE_NAN};
use crate::shader::valu::testing::{MODE_USUAL, Random, code, relate, run_all, wave};
use crate::shader::wave::{LANES, Wave};

/// Runs `v0 = f(v1, v2, v3)` on random f32 bits and compares with the host. NaN compares as the canonical one.
fn check(text: &str, words: &[u32], expected: impl Fn(f32, f32, f32) -> f32) {
    check_bits(text, words, |a, b, c| {
        let value = expected(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        if value.is_nan() { SINGLE_NAN } else { value.to_bits() }
    });
}

pub(super) fn check_bits(text: &str, words: &[u32], expected: impl Fn(u32, u32, u32) -> u32) {
    let mut random = Random::new(words[0] as u64);
    for round in 0..40 {
        let mut start = wave();
        for register in 1..4 {
            start.vector[register] = random.row();
        }
        relate(&mut start);
        if round % 4 == 3 {
            start.scalar[126] = random.next();
        }
        let end = run_all(&start, words);
        for lane in 0..LANES {
            let [a, b, c] = [1, 2, 3].map(|register: usize| start.vector[register].0[lane]);
            let active = start.scalar[126] >> lane & 1 != 0;
            let expected = if active { expected(a, b, c) } else { start.vector[0].0[lane] };
            let result = end.vector[0].0[lane];
            assert_eq!(result, expected, "{text}: {result:#x} {expected:#x} of {a:#x} {b:#x} {c:#x}");
        }
    }
}

/// A wave with the given bits in lane 0 of v1, v2, ... and that lane active.
pub(super) fn with(values: &[u32]) -> Wave {
    let mut wave = wave();
    for (index, &value) in values.iter().enumerate() {
        wave.vector[1 + index].0[0] = value;
    }
    wave.scalar[126] = 1;
    wave
}

/// Lane 0 of v0 after running the words on [`with`].
pub(super) fn result(values: &[u32], mode: u32, words: &[u32]) -> u32 {
    let mut start = with(values);
    start.mode = mode;
    run_all(&start, words).vector[0].0[0]
}

pub(super) fn f(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn single_arithmetic() {
    check("v_add_f32_e32 v0, v1, v2", &[0x06000501], |a, b, _| a + b);
    check("v_sub_f32_e32 v0, v1, v2", &[0x08000501], |a, b, _| a - b);
    check("v_subrev_f32_e32 v0, v1, v2", &[0x0A000501], |a, b, _| b - a);
    check("v_mul_f32_e32 v0, v1, v2", &[0x10000501], |a, b, _| a * b);
    check("v_fma_f32 v0, v1, v2, v3", &[0xD6130000, 0x040E0501], |a, b, c| a.mul_add(b, c));
    check("v_fma_f32 v0, v1, 2.0, v3", &[0xD6130000, 0x040DE901], |a, _, c| a.mul_add(2.0, c));
    check("v_fma_f32 v0, v1, v2, 1.0", &[0xD6130000, 0x03CA0501], |a, b, _| a.mul_add(b, 1.0));
    check("v_fma_f32 v0, v1, -4.0, 0.5", &[0xD6130000, 0x03C1EF01], |a, _, _| a.mul_add(-4.0, 0.5));
    check("v_fma_f32 v0, -v1, |v2|, -|v3|", &[0xD6130600, 0xA40E0501], |a, b, c| {
        (-a).mul_add(b.abs(), -c.abs())
    });
    check("v_fma_f32 v0, v1, v2, v3 clamp", &[0xD6138000, 0x040E0501], |a, b, c| {
        let value = a.mul_add(b, c);
        if value > 0.0 { value.min(1.0) } else { 0.0 }
    });
    check("v_fmaak_f32 v0, v1, v2, 0x40490fdb", &[0x5A000501, 0x40490FDB], |a, b, _| {
        a.mul_add(b, core::f32::consts::PI)
    });
    check("v_fmamk_f32 v0, v1, 0x40490fdb, v2", &[0x58000501, 0x40490FDB], |a, b, _| {
        a.mul_add(core::f32::consts::PI, b)
    });
    check("v_trunc_f32_e32 v0, v1", &[0x7E004301], |a, _, _| a.trunc());
    check("v_ceil_f32_e32 v0, v1", &[0x7E004501], |a, _, _| a.ceil());
    check("v_floor_f32_e32 v0, v1", &[0x7E004901], |a, _, _| a.floor());
    check("v_rndne_f32_e32 v0, v1", &[0x7E004701], |a, _, _| a.round_ties_even());
    check("v_fract_f32_e32 v0, v1", &[0x7E004101], |a, _, _| {
        let fraction = a - a.floor();
        if fraction == 1.0 { 1f32.next_down() } else { fraction }
    });
    check(
        "v_mul_dx9_zero_f32_e32 v0, v1, v2",
        &[0x0E000501],
        |a, b, _| if a == 0.0 || b == 0.0 { 0.0 } else { a * b },
    );
    // fmac: the destination is the addend. One lane of known values; the accumulator is preserved in inactive
    // lanes.
    let mut start = with(&[f(3.0), f(4.0)]);
    start.vector[0].0[0] = f(5.0);
    let end = run_all(
        &start,
        code("v_fmac_f32_e32 v0, v1, v2; v_fmac_f32_e64 v0, -v1, v2", &[0x56000501, 0xD52B0000, 0x20020501]),
    );
    assert_eq!(end.vector[0].0[0], f(5.0));
    assert_eq!(end.vector[0].0[1..], start.vector[0].0[1..]);
}

#[test]
fn minimum_and_maximum() {
    let order = |a: f32, b: f32| a.total_cmp(&b);
    let smaller = |a: f32, b: f32| match (a.is_nan(), b.is_nan()) {
        (true, true) => f32::from_bits(a.to_bits() | 0x40_0000),
        (true, false) => b,
        (false, true) => a,
        _ => {
            if order(a, b).is_lt() {
                a
            } else {
                b
            }
        }
    };
    let larger = |a: f32, b: f32| -smaller(-a, -b);
    let bits = |value: f32| value.to_bits();
    check_bits("v_min_num_f32_e32 v0, v1, v2", &[0x2A000501], |a, b, _| {
        bits(smaller(f32::from_bits(a), f32::from_bits(b)))
    });
    check_bits("v_max_num_f32_e32 v0, v1, v2", &[0x2C000501], |a, b, _| {
        bits(larger(f32::from_bits(a), f32::from_bits(b)))
    });
    check_bits("v_min3_num_f32 v0, v1, v2, v3", &[0xD6290000, 0x040E0501], |a, b, c| {
        bits(smaller(smaller(f32::from_bits(a), f32::from_bits(b)), f32::from_bits(c)))
    });
    check_bits("v_maxmin_num_f32 v0, v1, v2, v3", &[0xD6690000, 0x040E0501], |a, b, c| {
        bits(smaller(larger(f32::from_bits(a), f32::from_bits(b)), f32::from_bits(c)))
    });
    check_bits("v_med3_num_f32 v0, v1, v2, v3", &[0xD6310000, 0x040E0501], |a, b, c| {
        let values = [a, b, c].map(f32::from_bits);
        if values.iter().any(|value| value.is_nan()) {
            return bits(smaller(smaller(values[0], values[1]), values[2]));
        }
        // The order of the reference's text decides which zero is returned if both are present.
        let [a, b, c] = values;
        let largest = larger(larger(a, b), c);
        let others = if largest == b { larger(a, c) } else { larger(a, b) };
        bits(if largest == a { larger(b, c) } else { others })
    });
    for (a, b, minimum, maximum) in [
        (f(-0.0), f(0.0), f(-0.0), f(0.0)),
        (f(0.0), f(-0.0), f(-0.0), f(0.0)),
        (0x7FC0_0001, f(1.0), 0x7FC0_0001, 0x7FC0_0001),
        (f(1.0), 0xFF80_0001, 0xFFC0_0001, 0xFFC0_0001),
        (0x7FC0_0001, 0x7F80_0002, 0x7FC0_0002, 0x7FC0_0002),
        (f(2.0), f(1.0), f(1.0), f(2.0)),
    ] {
        assert_eq!(
            result(&[a, b], MODE_USUAL, code("v_minimum_f32 v0, v1, v2", &[0xD7650000, 0x00020501])),
            minimum
        );
        assert_eq!(
            result(&[a, b], MODE_USUAL, code("v_maximum_f32 v0, v1, v2", &[0xD7660000, 0x00020501])),
            maximum
        );
    }
    assert_eq!(
        result(
            &[f(1.0), f(3.0), f(2.0)],
            MODE_USUAL,
            code("v_minimummaximum_f32 v0, v1, v2, v3", &[0xD66C0000, 0x040E0501])
        ),
        f(2.0)
    );
    assert_eq!(
        result(
            &[f(1.0), f(3.0), SINGLE_NAN],
            MODE_USUAL,
            code("v_maximum3_f32 v0, v1, v2, v3", &[0xD62E0000, 0x040E0501])
        ),
        SINGLE_NAN
    );
}

#[test]
fn exponents_and_mantissas() {
    check("v_ldexp_f32 v0, v1, v2", &[0xD71C0000, 0x00020501], |a, b, _| {
        // Scaling by steps that are exact except the last.
        let n = (b.to_bits() as i32).clamp(-400, 400);
        let mut value = f64::from(a);
        for _ in 0..n.abs() {
            value *= if n > 0 { 2.0 } else { 0.5 };
        }
        value as f32
    });
    for (value, mantissa, exponent) in [
        (1.0, 0.5, 1),
        (-3.0, -0.75, 2),
        (0.1, 0.1 * 8.0, -3),
        (0.0, 0.0, 0),
        (-0.0, -0.0, 0),
        (f32::from_bits(1), 0.5, -148),
        (f32::INFINITY, f32::INFINITY, 0),
    ] {
        assert_eq!(
            result(&[f(value)], MODE_USUAL, code("v_frexp_mant_f32_e32 v0, v1", &[0x7E008101])),
            f(mantissa),
            "{value}"
        );
        assert_eq!(
            result(&[f(value)], MODE_USUAL, code("v_frexp_exp_i32_f32_e32 v0, v1", &[0x7E007F01])) as i32,
            exponent,
            "{value}"
        );
    }
}

#[test]
fn half_arithmetic() {
    // By hand; the low half of the destination.
    let old = wave().vector[0].0[0];
    let low = |words: &[u32], values: &[u32]| result(values, MODE_USUAL, words) & 0xFFFF;
    assert_eq!(low(code("v_add_f16_e32 v0, v1, v2", &[0x64000501]), &[0x3C00, 0x1000]), 0x3C00); // 1 + 2^-11: tie to even
    assert_eq!(low(code("v_add_f16_e32 v0, v1, v2", &[0x64000501]), &[0x3C01, 0x1000]), 0x3C02);
    assert_eq!(low(code("v_sub_f16_e32 v0, v1, v2", &[0x66000501]), &[0x7BFF, 0xFBFF]), 0x7C00);
    assert_eq!(low(code("v_subrev_f16_e32 v0, v1, v2", &[0x68000501]), &[0x3C00, 0x4200]), 0x4000);
    assert_eq!(low(code("v_mul_f16_e32 v0, v1, v2", &[0x6A000501]), &[0x0400, 0x3800]), 0x0200); // 2^-14 / 2 is denormal
    assert_eq!(
        low(code("v_fma_f16 v0, v1, v2, v3", &[0xD6480000, 0x040E0501]), &[0x3C01, 0x3C01, 0xBC02]),
        0x0010
    ); // (1+e)² - 1 - 2e = e² = 2^-20
    assert_eq!(
        low(code("v_fma_f16 v0, v1, v2, v3 clamp", &[0xD6488000, 0x040E0501]), &[0x4000, 0x4000, 0x4000]),
        0x3C00
    );
    assert_eq!(
        low(
            code("v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,0]", &[0xD6480800, 0x040E0501]),
            &[0x4000_0000, 0x4200, 0x3C00]
        ),
        0x4700
    );
    assert_eq!(low(code("v_max_num_f16_e32 v0, v1, v2", &[0x62000501]), &[0x8000, 0x0000]), 0x0000);
    assert_eq!(low(code("v_min_num_f16_e32 v0, v1, v2", &[0x60000501]), &[0x7E01, 0xC000]), 0xC000);
    assert_eq!(
        low(code("v_med3_num_f16 v0, v1, v2, v3", &[0xD6320000, 0x040E0501]), &[0x4200, 0x3C00, 0x4000]),
        0x4000
    );
    assert_eq!(low(code("v_rndne_f16_e32 v0, v1", &[0x7E00BD01]), &[0x4100]), 0x4000); // 2.5
    assert_eq!(low(code("v_ceil_f16_e32 v0.l, v1.h", &[0x7E00B981]), &[0x4100_0000]), 0x4200); // the high half, by register bit 7
    assert_eq!(
        result(&[0x4100], MODE_USUAL, code("v_ceil_f16_e32 v0.h, v1.l", &[0x7F00B901])),
        0x4200_0000 | old & 0xFFFF
    );
    assert_eq!(low(code("v_floor_f16_e32 v0, v1", &[0x7E00B701]), &[0xC100]), 0xC200); // -2.5
    assert_eq!(low(code("v_fract_f16_e32 v0, v1", &[0x7E00BF01]), &[0x4100]), 0x3800);
    assert_eq!(low(code("v_ldexp_f16_e32 v0, v1, v2", &[0x76000501]), &[0x3C00, 0xFFFF_FFF1]), 0x0200); // 2^-15
    assert_eq!(low(code("v_frexp_mant_f16_e32 v0, v1", &[0x7E00B301]), &[0x0001]), 0x3800);
    assert_eq!(
        low(code("v_frexp_exp_i16_f16_e32 v0, v1", &[0x7E00B501]), &[0x0001]),
        (-23i32 as u32) & 0xFFFF
    );
    let mut start = with(&[0x4000, 0x4200]);
    start.vector[0].0[0] = 0xAAAA_3C00;
    assert_eq!(run_all(&start, code("v_fmac_f16_e32 v0, v1, v2", &[0x6C000501])).vector[0].0[0], 0xAAAA_4700); // 2·3 + 1
    // Packed, with every modifier; 1.0 as an inline constant is in the low half only.
    let pk = |words: &[u32], values: &[u32]| result(values, MODE_USUAL, words);
    assert_eq!(
        pk(code("v_pk_add_f16 v0, v1, v2", &[0xCC0F4000, 0x18020501]), &[0x3C00_4000, 0x4200_3C00]),
        0x4400_4200
    );
    assert_eq!(
        pk(
            code("v_pk_add_f16 v0, v1, v2 neg_lo:[0,1] neg_hi:[1,0]", &[0xCC0F4100, 0x58020501]),
            &[0x3C00_4000, 0x4200_3C00]
        ),
        0x4000_3C00
    );
    assert_eq!(
        pk(
            code("v_pk_mul_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", &[0xCC104800, 0x10020501]),
            &[0x3C00_4000, 0x4200_4400]
        ),
        0x4600_4400
    );
    assert_eq!(
        pk(
            code("v_pk_fma_f16 v0, v1, v2, v3", &[0xCC0E4000, 0x1C0E0501]),
            &[0x4000_4200, 0x4000_4200, 0xC000_BC00]
        ),
        0x4000_4800
    );
    assert_eq!(pk(code("v_pk_add_f16 v0, v1, 1.0", &[0xCC0F4000, 0x1801E501]), &[0x3C00_3C00]), 0x3C00_4000);
    assert_eq!(
        pk(code("v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]", &[0xCC0F4000, 0x0801E501]), &[0x3C00_3C00]),
        0x4000_4000
    );
    assert_eq!(
        pk(code("v_pk_max_num_f16 v0, v1, v2", &[0xCC1C4000, 0x18020501]), &[0x3C00_C000, 0x7E00_4000]),
        0x3C00_4000
    );
    assert_eq!(
        pk(code("v_pk_minimum_f16 v0, v1, v2", &[0xCC1D4000, 0x18020501]), &[0x3C00_C000, 0x7E00_4000]),
        0x7E00_C000
    );
    assert_eq!(
        pk(code("v_pk_mul_f16 v0, v1, v2 clamp", &[0xCC10C000, 0x18020501]), &[0x4000_B800, 0x4000_4000]),
        0x3C00_0000
    );
}

#[test]
fn mixed_precision() {
    let mix = |words: &[u32]| result(&[0x4000_3C00, 0x4200_4400, f(10.0)], MODE_USUAL, words);
    assert_eq!(
        mix(code("v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,1,0]", &[0xCC200000, 0x1C0E0501])),
        f(14.0)
    ); // 1·4 + 10
    assert_eq!(
        mix(code("v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,1,0] op_sel_hi:[1,1,0]", &[0xCC201800, 0x1C0E0501])),
        f(16.0)
    ); // 2·3 + 10
    assert_eq!(
        mix(code("v_fma_mix_f32 v0, -v1, v2, |v3| op_sel_hi:[1,1,0]", &[0xCC200400, 0x3C0E0501])),
        f(6.0)
    );
    assert_eq!(
        mix(code("v_fma_mix_f32 v0, v3, v2, v3 op_sel_hi:[0,1,0]", &[0xCC200000, 0x140E0503])),
        f(50.0)
    );
    let old = wave().vector[0].0[0];
    assert_eq!(
        mix(code("v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]", &[0xCC210000, 0x1C0E0501])),
        0x4B00 | old & 0xFFFF_0000
    );
    assert_eq!(
        mix(code("v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,1,0]", &[0xCC220000, 0x1C0E0501])),
        0x4B00_0000 | old & 0xFFFF
    );
    assert_eq!(
        mix(code("v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,1,0] clamp", &[0xCC208000, 0x1C0E0501])),
        f(1.0)
    );
}

#[test]
fn double_arithmetic() {
    let mut random = Random::new(31);
    for round in 0..40 {
        let mut start = wave();
        for register in 1..8 {
            start.vector[register] = random.row();
        }
        relate(&mut start);
        if round & 1 != 0 {
            start.scalar[126] = random.next();
        }
        let value = |register: usize, lane: usize| {
            let (low, high) = (start.vector[register].0[lane], start.vector[register + 1].0[lane]);
            f64::from_bits(low as u64 | (high as u64) << 32)
        };
        let check = |text: &str, words: &[u32], f: &dyn Fn(f64, f64, f64) -> f64| {
            let end = run_all(&start, words);
            for lane in 0..LANES {
                let expected = f(value(2, lane), value(4, lane), value(6, lane));
                let mut expected = if expected.is_nan() { DOUBLE_NAN } else { expected.to_bits() };
                if start.scalar[126] >> lane & 1 == 0 {
                    expected = start.vector[16].0[lane] as u64 | (start.vector[17].0[lane] as u64) << 32;
                }
                let result = end.vector[16].0[lane] as u64 | (end.vector[17].0[lane] as u64) << 32;
                assert_eq!(result, expected, "{text} lane {lane}");
            }
        };
        check("v_add_f64_e32 v[16:17], v[2:3], v[4:5]", &[0x04200902], &|a, b, _| a + b);
        check("v_add_f64_e64 v[16:17], -v[2:3], |v[4:5]|", &[0xD5020210, 0x20020902], &|a, b, _| {
            -a + b.abs()
        });
        // Clamped to 0 .. 1, a NaN to 0.
        check("v_add_f64_e64 v[16:17], v[2:3], v[4:5] clamp", &[0xD5028010, 0x00020902], &|a, b, _| {
            if a + b > 0.0 { (a + b).min(1.0) } else { 0.0 }
        });
        check("v_mul_f64_e32 v[16:17], v[2:3], v[4:5]", &[0x0C200902], &|a, b, _| a * b);
        check("v_mul_f64_e32 v[16:17], 0.5, v[4:5]", &[0x0C2008F0], &|_, b, _| b * 0.5);
        check("v_fma_f64 v[16:17], v[2:3], v[4:5], v[6:7]", &[0xD6140010, 0x041A0902], &|a, b, c| {
            a.mul_add(b, c)
        });
        check("v_rndne_f64_e32 v[16:17], v[2:3]", &[0x7E203302], &|a, _, _| a.round_ties_even());
        check("v_floor_f64_e32 v[16:17], v[2:3]", &[0x7E203502], &|a, _, _| a.floor());
        check("v_fract_f64_e32 v[16:17], v[2:3]", &[0x7E207D02], &|a, _, _| {
            let fraction = a - a.floor();
            if fraction == 1.0 { 1f64.next_down() } else { fraction }
        });
        check("v_ldexp_f64 v[16:17], v[2:3], 5", &[0xD72B0010, 0x00010B02], &|a, _, _| a * 32.0);
        check("v_cvt_f64_i32_e32 v[16:17], v2", &[0x7E200902], &|a, _, _| {
            f64::from(a.to_bits() as u32 as i32)
        });
        check("v_cvt_f64_u32_e32 v[16:17], v2", &[0x7E202D02], &|a, _, _| f64::from(a.to_bits() as u32));
        check("v_cvt_f64_f32_e32 v[16:17], v2", &[0x7E202102], &|a, _, _| {
            f64::from(f32::from_bits(a.to_bits() as u32))
        });
        // Narrow results: the other register of the pair is preserved.
        let narrow = |words: &[u32], f: &dyn Fn(f64) -> u32| {
            let end = run_all(&start, words);
            for lane in (0..LANES).filter(|lane| start.scalar[126] >> lane & 1 != 0) {
                assert_eq!(end.vector[16].0[lane], f(value(2, lane)));
            }
            assert_eq!(end.vector[17], start.vector[17]);
        };
        let single = |value: f64| if value.is_nan() { SINGLE_NAN } else { (value as f32).to_bits() };
        narrow(code("v_cvt_f32_f64_e32 v16, v[2:3]", &[0x7E201F02]), &single);
        narrow(code("v_cvt_i32_f64_e32 v16, v[2:3]", &[0x7E200702]), &|a| a as i32 as u32);
        narrow(code("v_cvt_u32_f64_e32 v16, v[2:3]", &[0x7E202B02]), &|a| a as u32);
    }
}

#[test]
fn double_minimum_and_maximum() {
    let low = |register: usize, value: f64, start: &mut Wave| {
        start.vector[register].0[0] = value.to_bits() as u32;
        start.vector[register + 1].0[0] = (value.to_bits() >> 32) as u32;
    };
    let signalling = f64::from_bits(0x7FF0_0000_0000_0001);
    let quiet = f64::from_bits(0x7FF8_0000_0000_0002);
    let quieted = f64::from_bits(0x7FF8_0000_0000_0001);
    // Sources; v_min_num, v_max_num, v_minimum, v_maximum.
    for (a, b, expected) in [
        (1.0, -2.0, [-2.0, 1.0, -2.0, 1.0]),
        (0.0, -0.0, [-0.0, 0.0, -0.0, 0.0]),
        (-0.0, 0.0, [-0.0, 0.0, -0.0, 0.0]),
        (f64::NEG_INFINITY, 3.0, [f64::NEG_INFINITY, 3.0, f64::NEG_INFINITY, 3.0]),
        (quiet, 5.0, [5.0, 5.0, quiet, quiet]),
        (5.0, signalling, [5.0, 5.0, quieted, quieted]),
        (quiet, signalling, [quiet, quiet, quieted, quieted]),
    ] {
        let mut start = with(&[]);
        low(2, a, &mut start);
        low(4, b, &mut start);
        let end = run_all(
            &start,
            code(
                "v_min_num_f64_e32 v[16:17], v[2:3], v[4:5]; v_max_num_f64_e32 v[18:19], v[2:3], v[4:5]; v_minimum_f64 v[20:21], v[2:3], v[4:5]; v_maximum_f64 v[22:23], v[2:3], v[4:5]",
                &[0x1A200902, 0x1C240902, 0xD7410014, 0x00020902, 0xD7420016, 0x00020902],
            ),
        );
        for (index, expected) in expected.into_iter().enumerate() {
            let register = 16 + 2 * index;
            let bits = end.vector[register].0[0] as u64 | (end.vector[register + 1].0[0] as u64) << 32;
            assert_eq!(bits, expected.to_bits(), "{a} {b}: {index}");
        }
    }
    // 0.375 = 0.75 · 2^-1; the smallest denormal is 0.5 · 2^-1073.
    for (value, mantissa, exponent) in [(-0.375, -0.75, -1), (f64::from_bits(1), 0.5, -1073), (0.0, 0.0, 0)] {
        let mut start = with(&[]);
        low(2, value, &mut start);
        let end = run_all(
            &start,
            code(
                "v_frexp_mant_f64_e32 v[16:17], v[2:3]; v_frexp_exp_i32_f64_e32 v18, v[2:3]",
                &[0x7E207B02, 0x7E247902],
            ),
        );
        let bits = end.vector[16].0[0] as u64 | (end.vector[17].0[0] as u64) << 32;
        assert_eq!((bits, end.vector[18].0[0] as i32), (f64::to_bits(mantissa), exponent), "{value:e}");
    }
}
