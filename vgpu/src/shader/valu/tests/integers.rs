//! Integer, bit and packed integer operations against formulas in wide integers.

mod forms;

use crate::shader::valu::testing::{Random, relate, run_all, wave};
use crate::shader::wave::LANES;

/// Runs `v0 = f(v1, v2, v3)` on random sources, with all lanes and with some, and compares every lane.
fn check(text: &str, words: &[u32], expected: impl Fn(u32, u32, u32, u32) -> u32) {
    let mut random = Random::new(words[0] as u64);
    for round in 0..12 {
        let mut start = wave();
        for register in 1..4 {
            start.vector[register] = random.row();
        }
        relate(&mut start);
        if round & 1 != 0 {
            start.scalar[126] = random.next();
        }
        let end = run_all(&start, words);
        for lane in 0..LANES {
            let source = |register: usize| start.vector[register].0[lane];
            let active = start.scalar[126] >> lane & 1 != 0;
            let value = expected(source(1), source(2), source(3), lane as u32);
            let expected = if active { value } else { source(0) };
            let (a, b, c) = (source(1), source(2), source(3));
            assert_eq!(end.vector[0].0[lane], expected, "{text}: lane {lane}: {a:#x} {b:#x} {c:#x}");
        }
        assert_eq!(end.vector[1..], start.vector[1..], "{text} wrote another register");
    }
}

fn sx(value: u32, bits: u32) -> i128 {
    let value = value as i128 & ((1 << bits) - 1);
    if value >> (bits - 1) & 1 != 0 { value - (1 << bits) } else { value }
}

fn zx(value: u32, bits: u32) -> i128 {
    value as i128 & ((1 << bits) - 1)
}

fn low(value: i128) -> u32 {
    value.rem_euclid(1 << 32) as u32
}

fn saturate(value: i128, bits: u32, signed: bool) -> i128 {
    let (lowest, highest) =
        if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    value.max(lowest).min(highest)
}

fn field(value: u32, index: u32, bits: u32, signed: bool) -> i128 {
    let value = (value as u64 >> (index * bits)) as u32;
    if signed { sx(value, bits) } else { zx(value, bits) }
}

/// Combines halves: `f(low or high half of each source)`, for both.
fn halves(sources: [u32; 3], f: impl Fn(u32, u32, u32) -> i128) -> u32 {
    let half = |shift: u32| low(f(sources[0] >> shift, sources[1] >> shift, sources[2] >> shift)) & 0xFFFF;
    half(0) | half(16) << 16
}

#[test]
fn sums_and_products() {
    check("v_add_nc_u32_e32 v0, v1, v2", &[0x4A000501], |a, b, _, _| low(a as i128 + b as i128));
    check("v_sub_nc_u32_e32 v0, v1, v2", &[0x4C000501], |a, b, _, _| low(a as i128 - b as i128));
    check("v_subrev_nc_u32_e32 v0, v1, v2", &[0x4E000501], |a, b, _, _| low(b as i128 - a as i128));
    check("v_mul_lo_u32 v0, v1, v2", &[0xD72C0000, 0x00020501], |a, b, _, _| low(a as i128 * b as i128));
    check("v_mul_hi_u32 v0, v1, v2", &[0xD72D0000, 0x00020501], |a, b, _, _| {
        low((a as i128 * b as i128) >> 32)
    });
    check("v_mul_hi_i32 v0, v1, v2", &[0xD72E0000, 0x00020501], |a, b, _, _| {
        low((sx(a, 32) * sx(b, 32)) >> 32)
    });
    check("v_mul_i32_i24_e32 v0, v1, v2", &[0x12000501], |a, b, _, _| low(sx(a, 24) * sx(b, 24)));
    check("v_mul_hi_i32_i24_e32 v0, v1, v2", &[0x14000501], |a, b, _, _| low((sx(a, 24) * sx(b, 24)) >> 32));
    check("v_mul_u32_u24_e32 v0, v1, v2", &[0x16000501], |a, b, _, _| low(zx(a, 24) * zx(b, 24)));
    check("v_mul_hi_u32_u24_e32 v0, v1, v2", &[0x18000501], |a, b, _, _| low((zx(a, 24) * zx(b, 24)) >> 32));
    check("v_mad_u32_u24 v0, v1, v2, v3", &[0xD60B0000, 0x040E0501], |a, b, c, _| {
        low(zx(a, 24) * zx(b, 24) + c as i128)
    });
    check("v_mad_i32_i24 v0, v1, v2, v3", &[0xD60A0000, 0x040E0501], |a, b, c, _| {
        low(sx(a, 24) * sx(b, 24) + c as i128)
    });
    check("v_mad_u32_u16 v0, v1, v2, v3", &[0xD6590000, 0x040E0501], |a, b, c, _| {
        low(zx(a, 16) * zx(b, 16) + c as i128)
    });
    check("v_mad_i32_i16 v0, v1, v2, v3", &[0xD65A0000, 0x040E0501], |a, b, c, _| {
        low(sx(a, 16) * sx(b, 16) + c as i128)
    });
    check("v_mad_u32_u16 v0, v1, v2, v3 op_sel:[1,0,0,0]", &[0xD6590800, 0x040E0501], |a, b, c, _| {
        low(zx(a >> 16, 16) * zx(b, 16) + c as i128)
    });
    check("v_xad_u32 v0, v1, v2, v3", &[0xD6450000, 0x040E0501], |a, b, c, _| {
        low((a ^ b) as i128 + c as i128)
    });
    check("v_lshl_add_u32 v0, v1, v2, v3", &[0xD6460000, 0x040E0501], |a, b, c, _| {
        low(((a as i128) << (b % 32)) + c as i128)
    });
    check("v_add_lshl_u32 v0, v1, v2, v3", &[0xD6470000, 0x040E0501], |a, b, c, _| {
        low((a as i128 + b as i128) << (c % 32))
    });
    check("v_add3_u32 v0, v1, v2, v3", &[0xD6550000, 0x040E0501], |a, b, c, _| {
        low(a as i128 + b as i128 + c as i128)
    });
}

#[test]
fn bits_and_shifts() {
    check("v_lshlrev_b32_e32 v0, v1, v2", &[0x30000501], |a, b, _, _| low((b as i128) << (a % 32)));
    check("v_lshrrev_b32_e32 v0, v1, v2", &[0x32000501], |a, b, _, _| low(b as i128 >> (a % 32)));
    check("v_ashrrev_i32_e32 v0, v1, v2", &[0x34000501], |a, b, _, _| low(sx(b, 32) >> (a % 32)));
    check("v_lshrrev_b32_e32 v0, 4, v1", &[0x32000284], |a, _, _, _| a / 16);
    check("v_and_b32_e32 v0, v1, v2", &[0x36000501], |a, b, _, _| a & b);
    check("v_and_b32_e32 v0, 0xf0f0f0f, v1", &[0x360002FF, 0x0F0F0F0F], |a, _, _, _| a & 0x0F0F_0F0F);
    check("v_or_b32_e32 v0, v1, v2", &[0x38000501], |a, b, _, _| a | b);
    check("v_xor_b32_e32 v0, v1, v2", &[0x3A000501], |a, b, _, _| (a | b) & !(a & b));
    check("v_xnor_b32_e32 v0, v1, v2", &[0x3C000501], |a, b, _, _| (a & b) | (!a & !b));
    check("v_not_b32_e32 v0, v1", &[0x7E006F01], |a, _, _, _| u32::MAX - a);
    check("v_bfrev_b32_e32 v0, v1", &[0x7E007101], |a, _, _, _| {
        (0..32).fold(0, |result, bit| result | (a >> bit & 1) << (31 - bit))
    });
    let find = |matches: &dyn Fn(u32) -> bool| (0..32).find(|&bit| matches(bit)).unwrap_or(u32::MAX);
    check("v_clz_i32_u32_e32 v0, v1", &[0x7E007301], |a, _, _, _| find(&|bit| a >> (31 - bit) & 1 == 1));
    check("v_ctz_i32_b32_e32 v0, v1", &[0x7E007501], |a, _, _, _| find(&|bit| a >> bit & 1 == 1));
    check("v_cls_i32_e32 v0, v1", &[0x7E007701], |a, _, _, _| find(&|bit| a >> (31 - bit) & 1 != a >> 31));
    check("v_bfe_u32 v0, v1, v2, v3", &[0xD6100000, 0x040E0501], |a, b, c, _| {
        (a >> (b % 32)) & low((1i128 << (c % 32)) - 1)
    });
    check("v_bfe_u32 v0, v1, 8, 4", &[0xD6100000, 0x02111101], |a, _, _, _| a / 256 % 16);
    check("v_bfe_i32 v0, v1, v2, v3", &[0xD6110000, 0x040E0501], |a, b, c, _| match c % 32 {
        0 => 0,
        width => low(sx(low(sx(a, 32) >> (b % 32)), width)),
    });
    check("v_bfi_b32 v0, v1, v2, v3", &[0xD6120000, 0x040E0501], |a, b, c, _| {
        (0..32).fold(0, |result, bit| result | (if a >> bit & 1 == 1 { b } else { c }) & 1 << bit)
    });
    check("v_alignbit_b32 v0, v1, v2, v3", &[0xD6160000, 0x040E0501], |a, b, c, _| {
        low((((a as i128) << 32) | b as i128) >> (c % 32))
    });
    check("v_alignbyte_b32 v0, v1, v2, v3", &[0xD6170000, 0x040E0501], |a, b, c, _| {
        low((((a as i128) << 32) | b as i128) >> (c % 4 * 8))
    });
    check("v_xor3_b32 v0, v1, v2, v3", &[0xD6400000, 0x040E0501], |a, b, c, _| a ^ b ^ c);
    check("v_lshl_or_b32 v0, v1, v2, v3", &[0xD6560000, 0x040E0501], |a, b, c, _| {
        low((a as i128) << (b % 32)) | c
    });
    check("v_and_or_b32 v0, v1, v2, v3", &[0xD6570000, 0x040E0501], |a, b, c, _| (a & b) | c);
    check("v_or3_b32 v0, v1, v2, v3", &[0xD6580000, 0x040E0501], |a, b, c, _| a | b | c);
    check("v_bfm_b32 v0, v1, v2", &[0xD71D0000, 0x00020501], |a, b, _, _| {
        low(((1i128 << (a % 32)) - 1) << (b % 32))
    });
    check("v_bcnt_u32_b32 v0, v1, v2", &[0xD71E0000, 0x00020501], |a, b, _, _| {
        low((0..32).map(|bit| (a >> bit & 1) as i128).sum::<i128>() + b as i128)
    });
    check("v_mbcnt_lo_u32_b32 v0, v1, v2", &[0xD71F0000, 0x00020501], |a, b, _, lane| {
        low((0..lane).map(|bit| (a >> bit & 1) as i128).sum::<i128>() + b as i128)
    });
    check("v_mbcnt_hi_u32_b32 v0, v1, v2", &[0xD7200000, 0x00020501], |_, b, _, _| b);
}

#[test]
fn byte_operations() {
    let byte = |value: u32, index: u32| field(value, index, 8, false);
    let difference = |a: u32, b: u32, index: u32| (byte(a, index) - byte(b, index)).abs();
    let sad = |a: u32, b: u32| (0..4).map(|index| difference(a, b, index)).sum::<i128>();
    check("v_sad_u8 v0, v1, v2, v3", &[0xD6220000, 0x040E0501], |a, b, c, _| low(sad(a, b) + c as i128));
    check("v_sad_hi_u8 v0, v1, v2, v3", &[0xD6230000, 0x040E0501], |a, b, c, _| {
        low((sad(a, b) << 16) + c as i128)
    });
    check("v_sad_u16 v0, v1, v2, v3", &[0xD6240000, 0x040E0501], |a, b, c, _| {
        let term = |index| (field(a, index, 16, false) - field(b, index, 16, false)).abs();
        low(term(0) + term(1) + c as i128)
    });
    check("v_sad_u32 v0, v1, v2, v3", &[0xD6250000, 0x040E0501], |a, b, c, _| {
        low((a as i128 - b as i128).abs() + c as i128)
    });
    check("v_msad_u8 v0, v1, v2, v3", &[0xD6390000, 0x040E0501], |a, b, c, _| {
        let term = |index| if byte(b, index) == 0 { 0 } else { difference(a, b, index) };
        low((0..4).map(term).sum::<i128>() + c as i128)
    });
    check("v_lerp_u8 v0, v1, v2, v3", &[0xD6150000, 0x040E0501], |a, b, c, _| {
        (0..4).fold(0, |result, index| {
            let average = (byte(a, index) + byte(b, index) + byte(c, index) % 2) / 2;
            result | low(average) << (index * 8)
        })
    });
    check("v_perm_b32 v0, v1, v2, v3", &[0xD6440000, 0x040E0501], |a, b, c, _| {
        // {S0, S1} as bytes 7..4 and 3..0.
        let data: Vec<u8> = b.to_le_bytes().into_iter().chain(a.to_le_bytes()).collect();
        u32::from_le_bytes(c.to_le_bytes().map(|select| match select {
            0..=7 => data[select as usize],
            8..=11 => {
                if data[(select as usize - 8) * 2 + 1] >= 128 {
                    0xFF
                } else {
                    0
                }
            }
            12 => 0,
            _ => 0xFF,
        }))
    });
    // Selectors by hand.
    check("v_perm_b32 v0, v1, v2, 0x0c0b0704", &[0xD6440000, 0x03FE0501, 0x0C0B0704], |a, _, _, _| {
        (a & 0xFF) | (a >> 24) << 8 | (if a >> 31 != 0 { 0xFF } else { 0 }) << 16
    });
}

#[test]
fn minima_maxima_and_medians() {
    check("v_min_i32_e32 v0, v1, v2", &[0x22000501], |a, b, _, _| low(sx(a, 32).min(sx(b, 32))));
    check("v_max_i32_e32 v0, v1, v2", &[0x24000501], |a, b, _, _| low(sx(a, 32).max(sx(b, 32))));
    check("v_min_u32_e32 v0, v1, v2", &[0x26000501], |a, b, _, _| if a < b { a } else { b });
    check("v_max_u32_e32 v0, v1, v2", &[0x28000501], |a, b, _, _| if a < b { b } else { a });
    let sorted = |values: [u32; 3], signed: bool| {
        let mut values = values.map(|value| if signed { sx(value, 32) } else { zx(value, 32) });
        values.sort();
        values.map(low)
    };
    check("v_min3_i32 v0, v1, v2, v3", &[0xD61A0000, 0x040E0501], |a, b, c, _| sorted([a, b, c], true)[0]);
    check("v_max3_u32 v0, v1, v2, v3", &[0xD61E0000, 0x040E0501], |a, b, c, _| sorted([a, b, c], false)[2]);
    check("v_med3_i32 v0, v1, v2, v3", &[0xD6200000, 0x040E0501], |a, b, c, _| sorted([a, b, c], true)[1]);
    check("v_med3_u32 v0, v1, v2, v3", &[0xD6210000, 0x040E0501], |a, b, c, _| sorted([a, b, c], false)[1]);
    check("v_maxmin_i32 v0, v1, v2, v3", &[0xD6640000, 0x040E0501], |a, b, c, _| {
        low(sx(a, 32).max(sx(b, 32)).min(sx(c, 32)))
    });
    check("v_minmax_u32 v0, v1, v2, v3", &[0xD6630000, 0x040E0501], |a, b, c, _| {
        low(zx(a, 32).min(zx(b, 32)).max(zx(c, 32)))
    });
}

#[test]
fn clamp_saturates() {
    check("v_add_nc_u32_e64 v0, v1, v2 clamp", &[0xD5258000, 0x00020501], |a, b, _, _| {
        low(saturate(a as i128 + b as i128, 32, false))
    });
    check("v_sub_nc_u32_e64 v0, v1, v2 clamp", &[0xD5268000, 0x00020501], |a, b, _, _| {
        low(saturate(a as i128 - b as i128, 32, false))
    });
    check("v_sub_nc_i32 v0, v1, v2 clamp", &[0xD7258000, 0x00020501], |a, b, _, _| {
        low(saturate(sx(a, 32) - sx(b, 32), 32, true))
    });
    check("v_add_nc_i32 v0, v1, v2 clamp", &[0xD7268000, 0x00020501], |a, b, _, _| {
        low(saturate(sx(a, 32) + sx(b, 32), 32, true))
    });
    check("v_mad_u32_u24 v0, v1, v2, v3 clamp", &[0xD60B8000, 0x040E0501], |a, b, c, _| {
        low(saturate(zx(a, 24) * zx(b, 24) + c as i128, 32, false))
    });
    check("v_mad_i32_i24 v0, v1, v2, v3 clamp", &[0xD60A8000, 0x040E0501], |a, b, c, _| {
        low(saturate(sx(a, 24) * sx(b, 24) + sx(c, 32), 32, true))
    });
    check("v_cvt_pk_u16_u32 v0, v1, v2", &[0xD7230000, 0x00020501], |a, b, _, _| {
        a.min(0xFFFF) | b.min(0xFFFF) << 16
    });
    check("v_cvt_pk_i16_i32 v0, v1, v2", &[0xD7240000, 0x00020501], |a, b, _, _| {
        let half = |value| low(saturate(sx(value, 32), 16, true)) & 0xFFFF;
        half(a) | half(b) << 16
    });
}

/// The other half of the destination is preserved; op_sel selects halves.
#[test]
fn sixteen_bit_results_replace_one_half() {
    let old = wave().vector[0];
    let keep_high = |value: i128, lane: u32| low(value) & 0xFFFF | old.0[lane as usize] & 0xFFFF_0000;
    check("v_add_nc_u16 v0, v1, v2", &[0xD7030000, 0x00020501], |a, b, _, lane| {
        keep_high(a as i128 + b as i128, lane)
    });
    check("v_sub_nc_i16 v0, v1, v2 op_sel:[1,0,1]", &[0xD70E4800, 0x00020501], |a, b, _, lane| {
        let value = low((a >> 16) as i128 - b as i128) & 0xFFFF;
        value << 16 | old.0[lane as usize] & 0xFFFF
    });
    check("v_add_nc_i16 v0, v1, v2 clamp", &[0xD70D8000, 0x00020501], |a, b, _, lane| {
        keep_high(saturate(sx(a, 16) + sx(b, 16), 16, true), lane)
    });
    check("v_mul_lo_u16 v0, v1, v2", &[0xD7050000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(a, 16) * zx(b, 16), lane)
    });
    check("v_mad_u16 v0, v1, v2, v3", &[0xD6410000, 0x040E0501], |a, b, c, lane| {
        keep_high(zx(a, 16) * zx(b, 16) + zx(c, 16), lane)
    });
    check("v_mad_i16 v0, v1, v2, v3 clamp", &[0xD6538000, 0x040E0501], |a, b, c, lane| {
        keep_high(saturate(sx(a, 16) * sx(b, 16) + sx(c, 16), 16, true), lane)
    });
    check("v_min_i16 v0, v1, v2", &[0xD70C0000, 0x00020501], |a, b, _, lane| {
        keep_high(sx(a, 16).min(sx(b, 16)), lane)
    });
    check("v_max_u16 v0, v1, v2", &[0xD7090000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(a, 16).max(zx(b, 16)), lane)
    });
    check("v_lshlrev_b16 v0, v1, v2", &[0xD7380000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(b, 16) << (a % 16), lane)
    });
    check("v_lshrrev_b16 v0, v1, v2", &[0xD7390000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(b, 16) >> (a % 16), lane)
    });
    check("v_ashrrev_i16 v0, v1, v2", &[0xD73A0000, 0x00020501], |a, b, _, lane| {
        keep_high(sx(b, 16) >> (a % 16), lane)
    });
    check("v_med3_i16 v0, v1, v2, v3", &[0xD6500000, 0x040E0501], |a, b, c, lane| {
        let mut values = [sx(a, 16), sx(b, 16), sx(c, 16)];
        values.sort();
        keep_high(values[1], lane)
    });
    check("v_sat_pk_u8_i16_e32 v0, v1", &[0x7E00C501], |a, _, _, lane| {
        keep_high(saturate(sx(a, 16), 8, false) | saturate(sx(a >> 16, 16), 8, false) << 8, lane)
    });
    // A 16-bit instruction in the short encoding accesses the high half by bit 7 of the register number.
    check("v_mov_b16_e32 v0.l, v1.h", &[0x7E003981], |a, _, _, lane| keep_high((a >> 16) as i128, lane));
}

#[test]
fn packed_integers() {
    check("v_pk_add_u16 v0, v1, v2", &[0xCC0A4000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| zx(a, 16) + zx(b, 16))
    });
    check("v_pk_sub_i16 v0, v1, v2", &[0xCC034000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| sx(a, 16) - sx(b, 16))
    });
    check("v_pk_sub_i16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", &[0xCC034800, 0x10020501], |a, b, c, _| {
        halves([a.rotate_left(16), b, c], |a, b, _| sx(a, 16) - sx(b, 16))
    });
    check("v_pk_mad_i16 v0, v1, v2, v3", &[0xCC004000, 0x1C0E0501], |a, b, c, _| {
        halves([a, b, c], |a, b, c| sx(a, 16) * sx(b, 16) + sx(c, 16))
    });
    check("v_pk_mul_lo_u16 v0, v1, v2", &[0xCC014000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| zx(a, 16) * zx(b, 16))
    });
    check("v_pk_max_i16 v0, v1, v2", &[0xCC074000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| sx(a, 16).max(sx(b, 16)))
    });
    check("v_pk_min_u16 v0, v1, v2", &[0xCC0D4000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| zx(a, 16).min(zx(b, 16)))
    });
    check("v_pk_lshlrev_b16 v0, v1, v2", &[0xCC044000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| zx(b, 16) << (a % 16))
    });
    check("v_pk_ashrrev_i16 v0, v1, v2", &[0xCC064000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| sx(b, 16) >> (a % 16))
    });
    check("v_pk_add_u16 v0, v1, v2 clamp", &[0xCC0AC000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| saturate(zx(a, 16) + zx(b, 16), 16, false))
    });
    check("v_pk_sub_i16 v0, v1, v2 clamp", &[0xCC03C000, 0x18020501], |a, b, c, _| {
        halves([a, b, c], |a, b, _| saturate(sx(a, 16) - sx(b, 16), 16, true))
    });
    check("v_pk_mad_u16 v0, v1, v2, v3 clamp", &[0xCC09C000, 0x1C0E0501], |a, b, c, _| {
        halves([a, b, c], |a, b, c| saturate(zx(a, 16) * zx(b, 16) + zx(c, 16), 16, false))
    });
}

#[test]
fn dot_products() {
    let dot = |a: u32, b: u32, bits: u32, signed: [bool; 2]| {
        (0..32 / bits).map(|i| field(a, i, bits, signed[0]) * field(b, i, bits, signed[1])).sum::<i128>()
    };
    check("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]", &[0xCC164000, 0x7C0E0501], |a, b, c, _| {
        low(dot(a, b, 8, [true; 2]) + c as i128)
    });
    check("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[0,1,0]", &[0xCC164000, 0x5C0E0501], |a, b, c, _| {
        low(dot(a, b, 8, [false, true]) + c as i128)
    });
    check("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0] clamp", &[0xCC16C000, 0x3C0E0501], |a, b, c, _| {
        low(saturate(dot(a, b, 8, [true, false]) + sx(c, 32), 32, true))
    });
    check("v_dot4_u32_u8 v0, v1, v2, v3", &[0xCC174000, 0x1C0E0501], |a, b, c, _| {
        low(dot(a, b, 8, [false; 2]) + c as i128)
    });
    check("v_dot4_u32_u8 v0, v1, v2, v3 clamp", &[0xCC17C000, 0x1C0E0501], |a, b, c, _| {
        low(saturate(dot(a, b, 8, [false; 2]) + c as i128, 32, false))
    });
    check("v_dot8_i32_iu4 v0, v1, v2, v3 neg_lo:[1,1,0]", &[0xCC184000, 0x7C0E0501], |a, b, c, _| {
        low(dot(a, b, 4, [true; 2]) + c as i128)
    });
    check("v_dot8_i32_iu4 v0, v1, v2, v3", &[0xCC184000, 0x1C0E0501], |a, b, c, _| {
        low(dot(a, b, 4, [false; 2]) + c as i128)
    });
    check("v_dot8_u32_u4 v0, v1, v2, v3", &[0xCC194000, 0x1C0E0501], |a, b, c, _| {
        low(dot(a, b, 4, [false; 2]) + c as i128)
    });
}

/// Pairs of registers, masks in and out.
#[test]
fn wide_integers_and_carries() {
    let mut random = Random::new(17);
    for round in 0..12 {
        let mut start = wave();
        for register in 1..8 {
            start.vector[register] = random.row();
        }
        relate(&mut start);
        start.scalar[106] = random.next();
        start.scalar[30] = random.next();
        if round & 1 != 0 {
            start.scalar[126] = random.next();
        }
        let exec = start.scalar[126];
        let source = |register: usize, lane: usize| start.vector[register].0[lane] as u128;
        let pair = |register: usize, lane: usize| source(register, lane) | source(register + 1, lane) << 32;
        // v[16:17] or v16, and the mask register with its expected bit.
        let check = |text: &str,
                     words: &[u32],
                     wide: bool,
                     mask: Option<usize>,
                     f: &dyn Fn(usize) -> (u128, bool)| {
            let end = run_all(&start, words);
            let mut expected_mask = 0u32;
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
                let (value, bit) = f(lane);
                assert_eq!(end.vector[16].0[lane], value as u32, "{text} lane {lane}");
                if wide {
                    assert_eq!(end.vector[17].0[lane], (value >> 32) as u32, "{text} lane {lane}");
                }
                expected_mask |= (bit as u32) << lane;
            }
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 0) {
                assert_eq!(end.vector[16].0[lane], start.vector[16].0[lane], "{text} inactive lane {lane}");
                assert_eq!(end.vector[17].0[lane], start.vector[17].0[lane], "{text} inactive lane {lane}");
            }
            if let Some(mask) = mask {
                assert_eq!(end.scalar[mask], expected_mask, "{text}");
            }
        };
        let carry_in = |mask: usize, lane: usize| (start.scalar[mask] >> lane & 1) as u128;
        check("v_add_co_u32 v16, vcc_lo, v1, v2", &[0xD7006A10, 0x00020501], false, Some(106), &|lane| {
            let sum = source(1, lane) + source(2, lane);
            (sum, sum >> 32 != 0)
        });
        check("v_add_co_ci_u32_e32 v16, vcc_lo, v1, v2, vcc_lo", &[0x40200501], false, Some(106), &|lane| {
            let sum = source(1, lane) + source(2, lane) + carry_in(106, lane);
            (sum, sum >> 32 != 0)
        });
        check("v_sub_co_u32 v16, s20, v1, v2", &[0xD7011410, 0x00020501], false, Some(20), &|lane| {
            (source(1, lane).wrapping_sub(source(2, lane)), source(2, lane) > source(1, lane))
        });
        check("v_subrev_co_u32 v16, s20, v1, v2", &[0xD7021410, 0x00020501], false, Some(20), &|lane| {
            (source(2, lane).wrapping_sub(source(1, lane)), source(1, lane) > source(2, lane))
        });
        check(
            "v_sub_co_ci_u32_e64 v16, s20, v1, v2, s30",
            &[0xD5211410, 0x007A0501],
            false,
            Some(20),
            &|lane| {
                let taken = source(2, lane) + carry_in(30, lane);
                (source(1, lane).wrapping_sub(taken), taken > source(1, lane))
            },
        );
        check(
            "v_subrev_co_ci_u32_e32 v16, vcc_lo, v1, v2, vcc_lo",
            &[0x44200501],
            false,
            Some(106),
            &|lane| {
                let taken = source(1, lane) + carry_in(106, lane);
                (source(2, lane).wrapping_sub(taken), taken > source(2, lane))
            },
        );
        check(
            "v_mad_co_u64_u32 v[16:17], s20, v1, v2, v[4:5]",
            &[0xD6FE1410, 0x04120501],
            true,
            Some(20),
            &|lane| {
                let sum = source(1, lane) * source(2, lane) + pair(4, lane);
                (sum, sum >> 64 != 0)
            },
        );
        check(
            "v_mad_co_i64_i32 v[16:17], s20, v1, v2, v[4:5]",
            &[0xD6FF1410, 0x04120501],
            true,
            Some(20),
            &|lane| {
                let signed = |value: u128| value as u32 as i32 as i128;
                let sum =
                    signed(source(1, lane)) * signed(source(2, lane)) + pair(4, lane) as u64 as i64 as i128;
                (sum as u128, sum < 0)
            },
        );
        check("v_lshlrev_b64_e32 v[16:17], v1, v[4:5]", &[0x3E200901], true, None, &|lane| {
            (pair(4, lane) << (source(1, lane) % 64), false)
        });
        check("v_lshlrev_b64_e32 v[16:17], 3, v[4:5]", &[0x3E200883], true, None, &|lane| {
            (pair(4, lane) * 8, false)
        });
        check("v_lshrrev_b64 v[16:17], v1, v[4:5]", &[0xD73D0010, 0x00020901], true, None, &|lane| {
            (pair(4, lane) >> (source(1, lane) % 64), false)
        });
        check("v_ashrrev_i64 v[16:17], v1, v[4:5]", &[0xD73E0010, 0x00020901], true, None, &|lane| {
            let value = pair(4, lane) as u64 as i64;
            ((value as i128 >> (source(1, lane) % 64)) as u128, false)
        });
        check("v_lshrrev_b64 v[16:17], 4, s[30:31]", &[0xD73D0010, 0x00003C84], true, None, &|_| {
            ((start.scalar[30] as u128 | (start.scalar[31] as u128) << 32) >> 4, false)
        });
        check("v_cndmask_b32_e64 v16, v1, v2, s30", &[0xD5010010, 0x007A0501], false, None, &|lane| {
            (if carry_in(30, lane) != 0 { source(2, lane) } else { source(1, lane) }, false)
        });
        check("v_cndmask_b32_e32 v16, 7, v2, vcc_lo", &[0x02200487], false, None, &|lane| {
            (if carry_in(106, lane) != 0 { source(2, lane) } else { 7 }, false)
        });
        check("v_cndmask_b32_e64 v16, -v1, |v2|, s30", &[0xD5010210, 0x207A0501], false, None, &|lane| {
            let (negated, absolute) = (source(1, lane) ^ 1 << 31, source(2, lane) & !(1 << 31));
            (if carry_in(30, lane) != 0 { absolute } else { negated }, false)
        });
    }
}
