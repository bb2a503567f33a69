//! Conversions between floats, integers, halves and bytes.

use super::arithmetic::{check_bits, f, result, with};
use crate::shader::float::HALF_NAN;
use crate::shader::valu::testing::{MODE_USUAL, code, run_all, wave};

#[test]
fn conversions_of_single() {
    check_bits("v_cvt_f32_i32_e32 v0, v1", &[0x7E000B01], |a, _, _| (a as i32 as f32).to_bits());
    check_bits("v_cvt_f32_u32_e32 v0, v1", &[0x7E000D01], |a, _, _| (a as f32).to_bits());
    check_bits("v_cvt_i32_f32_e32 v0, v1", &[0x7E001101], |a, _, _| f32::from_bits(a) as i32 as u32);
    check_bits("v_cvt_u32_f32_e32 v0, v1", &[0x7E000F01], |a, _, _| f32::from_bits(a) as u32);
    check_bits("v_cvt_nearest_i32_f32_e32 v0, v1", &[0x7E001901], |a, _, _| {
        (f32::from_bits(a) + 0.5).floor() as i32 as u32
    });
    check_bits("v_cvt_floor_i32_f32_e32 v0, v1", &[0x7E001B01], |a, _, _| {
        f32::from_bits(a).floor() as i32 as u32
    });
    check_bits("v_cvt_f32_ubyte0_e32 v0, v1", &[0x7E002301], |a, _, _| f(a.to_le_bytes()[0] as f32));
    check_bits("v_cvt_f32_ubyte1_e32 v0, v1", &[0x7E002501], |a, _, _| f(a.to_le_bytes()[1] as f32));
    check_bits("v_cvt_f32_ubyte2_e32 v0, v1", &[0x7E002701], |a, _, _| f(a.to_le_bytes()[2] as f32));
    check_bits("v_cvt_f32_ubyte3_e32 v0, v1", &[0x7E002901], |a, _, _| f(a.to_le_bytes()[3] as f32));
    check_bits("v_cvt_off_f32_i4_e32 v0, v1", &[0x7E001D01], |a, _, _| {
        f([
            0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, -0.5, -0.4375, -0.375, -0.3125, -0.25,
            -0.1875, -0.125, -0.0625,
        ][a as usize % 16])
    });
    let clamp =
        |value: u32, low: f64, high: f64| (f64::from(f32::from_bits(value)).max(low).min(high)) as i32 as u32;
    check_bits("v_cvt_pk_i16_f32 v0, v1, v2", &[0xD7060000, 0x00020501], |a, b, _| {
        let half = |value: u32| {
            if f32::from_bits(value).is_nan() { 0 } else { clamp(value, -32768.0, 32767.0) & 0xFFFF }
        };
        half(a) | half(b) << 16
    });
    check_bits("v_cvt_pk_u16_f32 v0, v1, v2", &[0xD7070000, 0x00020501], |a, b, _| {
        let half = |value: u32| if f32::from_bits(value).is_nan() { 0 } else { clamp(value, 0.0, 65535.0) };
        half(a) | half(b) << 16
    });
    for (value, signed, unsigned) in
        [(0.0, 0, 0), (1.0, 0x7FFF, 0xFFFF), (-1.0, 0x8001, 0), (0.5, 0x4000, 0x8000), (7.0, 0x7FFF, 0xFFFF)]
    {
        assert_eq!(
            result(
                &[f(value), 0],
                MODE_USUAL,
                code("v_cvt_pk_norm_i16_f32 v0, v1, v2", &[0xD7210000, 0x00020501])
            ),
            signed,
            "{value}"
        );
        assert_eq!(
            result(
                &[f(value), 0],
                MODE_USUAL,
                code("v_cvt_pk_norm_u16_f32 v0, v1, v2", &[0xD7220000, 0x00020501])
            ),
            unsigned,
            "{value}"
        );
    }
    assert_eq!(
        result(
            &[f(300.7), 2, 0x1122_3344],
            MODE_USUAL,
            code("v_cvt_pk_u8_f32 v0, v1, v2, v3", &[0xD6260000, 0x040E0501])
        ),
        0x11FF_3344
    );
    assert_eq!(
        result(
            &[f(9.9), 0, 0x1122_3344],
            MODE_USUAL,
            code("v_cvt_pk_u8_f32 v0, v1, v2, v3", &[0xD6260000, 0x040E0501])
        ),
        0x1122_3309
    );
}

#[test]
fn conversions_of_half() {
    let old = wave().vector[0].0[0];
    for (value, half) in [
        (1.0, 0x3C00),
        (-2.5, 0xC100),
        (65504.0, 0x7BFF),
        (65520.0, 0x7C00),
        (1e-7, 0x0002),
        (2f32.powi(-25), 0x0000),
        (2f32.powi(-24) * 1.5, 0x0002),
        (1.0 + 2f32.powi(-11), 0x3C00),
        (1.0 + 3.0 * 2f32.powi(-11), 0x3C02),
        (f32::INFINITY, 0x7C00),
        (f32::NAN, HALF_NAN),
    ] {
        let low = result(&[f(value)], MODE_USUAL, code("v_cvt_f16_f32_e32 v0, v1", &[0x7E001501]));
        assert_eq!(low, half | old & 0xFFFF_0000, "{value}");
    }
    assert_eq!(result(&[0x4200_3C00], MODE_USUAL, code("v_cvt_f32_f16_e32 v0, v1", &[0x7E001701])), f(1.0));
    assert_eq!(
        result(&[0x4200_3C00], MODE_USUAL, code("v_cvt_f32_f16_e64 v0, -v1", &[0xD58B0000, 0x20000101])),
        f(-1.0)
    );
    assert_eq!(
        result(&[f(-1e9), f(0.1)], MODE_USUAL, code("v_cvt_pk_rtz_f16_f32_e32 v0, v1, v2", &[0x5E000501])),
        0x2E66_FBFF
    );
    let low = |words: &[u32], value: u32| result(&[value], MODE_USUAL, words) & 0xFFFF;
    assert_eq!(low(code("v_cvt_f16_u16_e32 v0, v1", &[0x7E00A101]), 0xFFFF), 0x7C00);
    assert_eq!(low(code("v_cvt_f16_i16_e32 v0, v1", &[0x7E00A301]), 0xFFFF), 0xBC00);
    assert_eq!(low(code("v_cvt_u16_f16_e32 v0, v1", &[0x7E00A501]), 0x4100), 2);
    assert_eq!(low(code("v_cvt_i16_f16_e32 v0, v1", &[0x7E00A701]), 0xC100), 0xFFFE);
    assert_eq!(low(code("v_cvt_norm_i16_f16_e32 v0, v1", &[0x7E00C701]), 0xBC00), 0x8001);
    assert_eq!(result(&[0x8000], MODE_USUAL, code("v_cvt_i32_i16_e32 v0, v1", &[0x7E00D501])), 0xFFFF_8000);
    assert_eq!(result(&[0x1234_8000], MODE_USUAL, code("v_cvt_u32_u16_e32 v0, v1", &[0x7E00D701])), 0x8000);
    assert_eq!(
        result(
            &[0x4200_3C00, 0xBC00_4000],
            MODE_USUAL,
            code("v_pack_b32_f16 v0, v1, v2 op_sel:[1,1,0]", &[0xD7111800, 0x00020501])
        ),
        0xBC00_4200
    );
}

#[test]
fn conversions_of_bytes() {
    let bytes = 0x38_7E_01_B8; // fp8 1, 448, 2^-9, -1 from the top
    assert_eq!(result(&[bytes], MODE_USUAL, code("v_cvt_f32_fp8_e32 v0, v1", &[0x7E00D901])), f(-1.0));
    assert_eq!(
        result(&[bytes], MODE_USUAL, code("v_cvt_f32_fp8_e64 v0, v1 byte_sel:2", &[0xD5EC0800, 0x00000101])),
        f(448.0)
    );
    assert_eq!(
        result(&[bytes], MODE_USUAL, code("v_cvt_f32_fp8_e64 v0, v1 byte_sel:1", &[0xD5EC1000, 0x00000101])),
        f(2f32.powi(-9))
    );
    assert_eq!(
        result(&[bytes], MODE_USUAL, code("v_cvt_f32_fp8_e64 v0, v1 byte_sel:3", &[0xD5EC1800, 0x00000101])),
        f(1.0)
    );
    assert_eq!(result(&[0x7B], MODE_USUAL, code("v_cvt_f32_bf8_e32 v0, v1", &[0x7E00DB01])), f(57344.0));
    let end = run_all(&with(&[0, bytes]), code("v_cvt_pk_f32_fp8_e32 v[4:5], v2", &[0x7E08DD02]));
    assert_eq!((end.vector[4].0[0], end.vector[5].0[0]), (f(-1.0), f(2f32.powi(-9))));
    let old = wave().vector[0].0[0];
    let low = result(
        &[f(1.0), f(-448.0)],
        MODE_USUAL,
        code("v_cvt_pk_fp8_f32 v0, v1, v2", &[0xD7690000, 0x00020501]),
    );
    assert_eq!(low, old & 0xFFFF_0000 | 0xFE38);
    let high = result(
        &[f(1.0), f(-2.0)],
        MODE_USUAL,
        code("v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1]", &[0xD76A4000, 0x00020501]),
    );
    assert_eq!(high, old & 0xFFFF | 0xC03C_0000);
    // Only FP16_OVFL saturates what is too large; rounding (here of f16, toward zero) has no influence.
    let (usual, saturated) = ([0xFF38, 0xFC3C], [0xFE38, 0xFB3C]);
    for (mode, [fp8, bf8]) in
        [(0xF0, usual), (0xFC, usual), (0xF0 | 1 << 23, saturated), (0xFC | 1 << 23, saturated)]
    {
        let of = |words: &[u32]| result(&[f(1.0), f(-1e9)], mode, words) & 0xFFFF;
        assert_eq!(of(code("v_cvt_pk_fp8_f32 v0, v1, v2", &[0xD7690000, 0x00020501])), fp8, "{mode:#x}");
        assert_eq!(of(code("v_cvt_pk_bf8_f32 v0, v1, v2", &[0xD76A0000, 0x00020501])), bf8, "{mode:#x}");
    }
}
