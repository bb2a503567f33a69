//! Orders of three values, 16-bit and packed forms, saturated sums.

use super::*;

/// The middle and the ends of three values, and bounds on both sides, for each signedness.
#[test]
fn orders_of_three_values() {
    let whole =
        |a, b, c, signed: bool| [a, b, c].map(|value| if signed { sx(value, 32) } else { zx(value, 32) });
    let smallest = |[a, b, c]: [i128; 3]| a.min(b).min(c);
    let largest = |[a, b, c]: [i128; 3]| a.max(b).max(c);
    check("v_min3_u32 v0, v1, v2, v3", &[0xD61B0000, 0x040E0501], |a, b, c, _| {
        low(smallest(whole(a, b, c, false)))
    });
    check("v_max3_i32 v0, v1, v2, v3", &[0xD61D0000, 0x040E0501], |a, b, c, _| {
        low(largest(whole(a, b, c, true)))
    });
    check("v_maxmin_u32 v0, v1, v2, v3", &[0xD6620000, 0x040E0501], |a, b, c, _| {
        let [a, b, c] = whole(a, b, c, false);
        low(a.max(b).min(c))
    });
    check("v_minmax_i32 v0, v1, v2, v3", &[0xD6650000, 0x040E0501], |a, b, c, _| {
        let [a, b, c] = whole(a, b, c, true);
        low(a.min(b).max(c))
    });
    let old = wave().vector[0];
    let keep_high = |value: i128, lane: u32| low(value) & 0xFFFF | old.0[lane as usize] & 0xFFFF_0000;
    let half =
        |a, b, c, signed: bool| [a, b, c].map(|value| if signed { sx(value, 16) } else { zx(value, 16) });
    let middle = |values: [i128; 3]| values.iter().sum::<i128>() - smallest(values) - largest(values);
    type Choice<'a> = &'a dyn Fn([i128; 3]) -> i128;
    let cases: [(&str, &[u32], bool, Choice<'_>); 7] = [
        ("v_min3_i16 v0, v1, v2, v3", &[0xD64A0000, 0x040E0501], true, &smallest),
        ("v_min3_u16 v0, v1, v2, v3", &[0xD64B0000, 0x040E0501], false, &smallest),
        ("v_max3_i16 v0, v1, v2, v3", &[0xD64D0000, 0x040E0501], true, &largest),
        ("v_max3_u16 v0, v1, v2, v3", &[0xD64E0000, 0x040E0501], false, &largest),
        ("v_med3_u16 v0, v1, v2, v3", &[0xD6510000, 0x040E0501], false, &middle),
        ("v_min_u16 v0, v1, v2", &[0xD70B0000, 0x00020501], false, &|[a, b, _]| a.min(b)),
        ("v_max_i16 v0, v1, v2", &[0xD70A0000, 0x00020501], true, &|[a, b, _]| a.max(b)),
    ];
    for (text, words, signed, choose) in cases {
        check(text, words, |a, b, c, lane| keep_high(choose(half(a, b, c, signed)), lane));
    }
}

#[test]
fn halves_of_registers() {
    let old = wave().vector[0];
    let mask = wave().scalar[30];
    let keep_high = |value: i128, lane: u32| low(value) & 0xFFFF | old.0[lane as usize] & 0xFFFF_0000;
    check("v_not_b16 v0, v1", &[0x7E00D301], |a, _, _, lane| keep_high(0xFFFF - zx(a, 16), lane));
    check("v_and_b16 v0, v1, v2", &[0xD7620000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(a, 16) & zx(b, 16), lane)
    });
    check("v_or_b16 v0, v1, v2", &[0xD7630000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(a, 16) | zx(b, 16), lane)
    });
    check("v_xor_b16 v0, v1, v2", &[0xD7640000, 0x00020501], |a, b, _, lane| {
        keep_high((zx(a, 16) | zx(b, 16)) - (zx(a, 16) & zx(b, 16)), lane)
    });
    check("v_cndmask_b16 v0, v1, v2, s30", &[0xD65D0000, 0x007A0501], |a, b, _, lane| {
        keep_high(zx(if mask >> lane & 1 != 0 { b } else { a }, 16), lane)
    });
    check("v_sub_nc_u16 v0, v1, v2", &[0xD7040000, 0x00020501], |a, b, _, lane| {
        keep_high(zx(a, 16) - zx(b, 16), lane)
    });
    check("v_sub_nc_u16 v0, v1, v2 clamp", &[0xD7048000, 0x00020501], |a, b, _, lane| {
        keep_high(saturate(zx(a, 16) - zx(b, 16), 16, false), lane)
    });
    check("v_add_nc_u16 v0, v1, v2 clamp", &[0xD7038000, 0x00020501], |a, b, _, lane| {
        keep_high(saturate(zx(a, 16) + zx(b, 16), 16, false), lane)
    });
    check("v_sub_nc_i16 v0, v1, v2 clamp", &[0xD70E8000, 0x00020501], |a, b, _, lane| {
        keep_high(saturate(sx(a, 16) - sx(b, 16), 16, true), lane)
    });
    check("v_mad_u16 v0, v1, v2, v3 clamp", &[0xD6418000, 0x040E0501], |a, b, c, lane| {
        keep_high(saturate(zx(a, 16) * zx(b, 16) + zx(c, 16), 16, false), lane)
    });
    check("v_mad_i16 v0, v1, v2, v3", &[0xD6530000, 0x040E0501], |a, b, c, lane| {
        keep_high(sx(a, 16) * sx(b, 16) + sx(c, 16), lane)
    });
}

/// The operations that clamp_saturates does not have; differences of bytes add up to small numbers, so that only a
/// large addend saturates.
#[test]
fn clamp_saturates_sums_of_products_and_differences() {
    check("v_add_nc_i32 v0, v1, v2", &[0xD7260000, 0x00020501], |a, b, _, _| low(sx(a, 32) + sx(b, 32)));
    check("v_sub_nc_i32 v0, v1, v2", &[0xD7250000, 0x00020501], |a, b, _, _| low(sx(a, 32) - sx(b, 32)));
    check("v_subrev_nc_u32_e64 v0, v1, v2 clamp", &[0xD5278000, 0x00020501], |a, b, _, _| {
        low(saturate(zx(b, 32) - zx(a, 32), 32, false))
    });
    check("v_mad_u32_u16 v0, v1, v2, v3 clamp", &[0xD6598000, 0x040E0501], |a, b, c, _| {
        low(saturate(zx(a, 16) * zx(b, 16) + zx(c, 32), 32, false))
    });
    check("v_mad_i32_i16 v0, v1, v2, v3 clamp", &[0xD65A8000, 0x040E0501], |a, b, c, _| {
        low(saturate(sx(a, 16) * sx(b, 16) + sx(c, 32), 32, true))
    });
    let difference = |a: u32, b: u32, bits: u32| {
        (0..32 / bits)
            .map(|index| (field(a, index, bits, false) - field(b, index, bits, false)).abs())
            .sum::<i128>()
    };
    let masked = |a: u32, b: u32| {
        let counts = |index: &u32| field(b, *index, 8, false) != 0;
        let term = |index| (field(a, index, 8, false) - field(b, index, 8, false)).abs();
        (0..4).filter(counts).map(term).sum::<i128>()
    };
    type Sum<'a> = &'a dyn Fn(u32, u32) -> i128;
    let cases: [(&str, [u32; 2], [u32; 2], Sum<'_>); 5] = [
        ("v_sad_u8", [0xD6228000, 0x040E0501], [0xD6228000, 0x03060501], &|a, b| difference(a, b, 8)),
        ("v_sad_hi_u8", [0xD6238000, 0x040E0501], [0xD6238000, 0x03060501], &|a, b| {
            difference(a, b, 8) << 16
        }),
        ("v_sad_u16", [0xD6248000, 0x040E0501], [0xD6248000, 0x03060501], &|a, b| difference(a, b, 16)),
        ("v_sad_u32", [0xD6258000, 0x040E0501], [0xD6258000, 0x03060501], &|a, b| difference(a, b, 32)),
        ("v_msad_u8", [0xD6398000, 0x040E0501], [0xD6398000, 0x03060501], &masked),
    ];
    for (text, words, with_minus_one, sum) in cases {
        check(text, &words, |a, b, c, _| low(saturate(sum(a, b) + zx(c, 32), 32, false)));
        check(text, &with_minus_one, |a, b, _, _| low(saturate(sum(a, b) + zx(u32::MAX, 32), 32, false)));
    }
    let dot = |a: u32, b: u32, signed: bool| {
        (0..8).map(|index| field(a, index, 4, signed) * field(b, index, 4, false)).sum::<i128>()
    };
    check("v_dot8_u32_u4 v0, v1, v2, v3 clamp", &[0xCC19C000, 0x1C0E0501], |a, b, c, _| {
        low(saturate(dot(a, b, false) + zx(c, 32), 32, false))
    });
    check("v_dot8_i32_iu4 v0, v1, v2, v3 neg_lo:[1,0,0] clamp", &[0xCC18C000, 0x3C0E0501], |a, b, c, _| {
        low(saturate(dot(a, b, true) + sx(c, 32), 32, true))
    });
}

#[test]
fn every_packed_integer_form() {
    type Half = fn(u32, u32, u32) -> i128;
    let cases: [(&str, &[u32], Half); 9] = [
        ("v_pk_lshrrev_b16 v0, v1, v2", &[0xCC054000, 0x18020501], |a, b, _| zx(b, 16) >> (a % 16)),
        ("v_pk_min_i16 v0, v1, v2", &[0xCC084000, 0x18020501], |a, b, _| sx(a, 16).min(sx(b, 16))),
        ("v_pk_max_u16 v0, v1, v2", &[0xCC0C4000, 0x18020501], |a, b, _| zx(a, 16).max(zx(b, 16))),
        ("v_pk_add_i16 v0, v1, v2", &[0xCC024000, 0x18020501], |a, b, _| sx(a, 16) + sx(b, 16)),
        ("v_pk_sub_u16 v0, v1, v2", &[0xCC0B4000, 0x18020501], |a, b, _| zx(a, 16) - zx(b, 16)),
        ("v_pk_mad_u16 v0, v1, v2, v3", &[0xCC094000, 0x1C0E0501], |a, b, c| {
            zx(a, 16) * zx(b, 16) + zx(c, 16)
        }),
        ("v_pk_add_i16 v0, v1, v2 clamp", &[0xCC02C000, 0x18020501], |a, b, _| {
            saturate(sx(a, 16) + sx(b, 16), 16, true)
        }),
        ("v_pk_sub_u16 v0, v1, v2 clamp", &[0xCC0BC000, 0x18020501], |a, b, _| {
            saturate(zx(a, 16) - zx(b, 16), 16, false)
        }),
        ("v_pk_mad_i16 v0, v1, v2, v3 clamp", &[0xCC00C000, 0x1C0E0501], |a, b, c| {
            saturate(sx(a, 16) * sx(b, 16) + sx(c, 16), 16, true)
        }),
    ];
    for (text, words, half) in cases {
        check(text, words, |a, b, c, _| halves([a, b, c], half));
    }
}
