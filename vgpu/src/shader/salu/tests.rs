//! Scalar operations against formulas in wide integers, with SCC; the words are llvm-mc 19's.

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Encoding, Instruction, LaneSelect, Modifiers, Opcode, Operand};

use crate::shader::valu::testing::{Random, code, half_value, run_all, wave};
use crate::shader::wave::Wave;
use crate::simd::Level;

/// Destination s[16:17], sources s[4:5] and s[6:7]. The formula receives both as 64-bit values, the old destination
/// and SCC, and returns the result and the new SCC.
fn check(text: &str, words: &[u32], wide: bool, f: impl Fn(u64, u64, u64, bool) -> (u64, bool)) {
    let mut random = Random::new(words[0] as u64);
    for _ in 0..200 {
        let mut start = wave();
        for code in [4, 5, 6, 7, 16, 17] {
            start.scalar[code] = random.bits();
        }
        if random.next().is_multiple_of(4) {
            // Random sources are almost never equal by chance.
            start.scalar[6] = start.scalar[4];
            start.scalar[7] = start.scalar[5];
        }
        start.scc = random.next() & 1 != 0;
        start.scalar[126] = random.next(); // no influence
        let (a, b) = (start.scalar_pair(4), start.scalar_pair(6));
        let (value, scc) = f(a, b, start.scalar_pair(16), start.scc);
        let end = run_all(&start, words);
        let result = end.scalar_pair(16);
        let expected = if wide { value } else { value & 0xFFFF_FFFF | start.scalar_pair(16) >> 32 << 32 };
        assert_eq!(result, expected, "{text}: {a:#x} {b:#x}: {result:#x} {expected:#x}");
        assert_eq!(end.scc, scc, "{text}: scc of {a:#x} {b:#x}");
        let mut others = end.clone();
        others.scalar[16] = start.scalar[16];
        others.scalar[17] = start.scalar[17];
        assert_eq!(others.scalar[..128], start.scalar[..128], "{text} wrote another register");
    }
}

/// 32-bit form that sets SCC to "not zero".
fn nonzero(text: &str, words: &[u32], f: impl Fn(u32, u32) -> u32) {
    check(text, words, false, |a, b, _, _| {
        let value = f(a as u32, b as u32);
        (value as u64, value != 0)
    });
}

/// 32-bit form that preserves SCC.
fn keeps(text: &str, words: &[u32], f: impl Fn(u32, u32) -> u32) {
    check(text, words, false, |a, b, _, scc| (f(a as u32, b as u32) as u64, scc));
}

fn s(value: u64) -> i128 {
    value as u32 as i32 as i128
}

fn z(value: u64) -> i128 {
    value as u32 as i128
}

fn fits(value: i128) -> bool {
    i32::try_from(value).is_ok()
}

#[test]
fn sums_and_products() {
    check("s_add_co_u32 s16, s4, s6", &[0x80100604], false, |a, b, _, _| {
        ((z(a) + z(b)) as u64, z(a) + z(b) > u32::MAX as i128)
    });
    check("s_sub_co_u32 s16, s4, s6", &[0x80900604], false, |a, b, _, _| ((z(a) - z(b)) as u64, z(b) > z(a)));
    check("s_add_co_i32 s16, s4, s6", &[0x81100604], false, |a, b, _, _| {
        ((s(a) + s(b)) as u64, !fits(s(a) + s(b)))
    });
    check("s_sub_co_i32 s16, s4, s6", &[0x81900604], false, |a, b, _, _| {
        ((s(a) - s(b)) as u64, !fits(s(a) - s(b)))
    });
    check("s_add_co_ci_u32 s16, s4, s6", &[0x82100604], false, |a, b, _, scc| {
        let sum = z(a) + z(b) + scc as i128;
        (sum as u64, sum > u32::MAX as i128)
    });
    check("s_sub_co_ci_u32 s16, s4, s6", &[0x82900604], false, |a, b, _, scc| {
        let difference = z(a) - z(b) - scc as i128;
        (difference as u64, difference < 0)
    });
    check("s_addk_co_i32 s16, 0x8001", &[0xB7908001], false, |_, _, old, _| {
        ((s(old) - 0x7FFF) as u64, !fits(s(old) - 0x7FFF))
    });
    check("s_mulk_i32 s16, -3", &[0xB810FFFD], false, |_, _, old, scc| ((s(old) * -3) as u64, scc));
    keeps("s_mul_i32 s16, s4, s6", &[0x96100604], |a, b| a.wrapping_mul(b));
    keeps("s_mul_hi_u32 s16, s4, s6", &[0x96900604], |a, b| ((a as u64 * b as u64) >> 32) as u32);
    keeps("s_mul_hi_i32 s16, s4, s6", &[0x97100604], |a, b| {
        ((a as i32 as i128 * b as i32 as i128) >> 32) as u32
    });
    check("s_add_nc_u64 s[16:17], s[4:5], s[6:7]", &[0xA9900604], true, |a, b, _, scc| {
        (a.wrapping_add(b), scc)
    });
    check("s_sub_nc_u64 s[16:17], s[4:5], s[6:7]", &[0xAA100604], true, |a, b, _, scc| {
        (a.wrapping_sub(b), scc)
    });
    check("s_mul_u64 s[16:17], s[4:5], s[6:7]", &[0xAA900604], true, |a, b, _, scc| {
        ((a as u128 * b as u128) as u64, scc)
    });
    check("s_absdiff_i32 s16, s4, s6", &[0x83100604], false, |a, b, _, _| {
        // The difference wraps before its sign is taken.
        let value = (s(a) - s(b)) as i32;
        (value.unsigned_abs() as u64, value != 0)
    });
    nonzero("s_abs_i32 s16, s4", &[0xBE901504], |a, _| (a as i32).unsigned_abs());
    check("s_lshl1_add_u32 s16, s4, s6", &[0x87100604], false, |a, b, _, _| {
        ((z(a) * 2 + z(b)) as u64, (z(a) * 2 + z(b)) >> 32 != 0)
    });
    check("s_lshl4_add_u32 s16, s4, s6", &[0x88900604], false, |a, b, _, _| {
        ((z(a) * 16 + z(b)) as u64, (z(a) * 16 + z(b)) >> 32 != 0)
    });
    check("s_min_i32 s16, s4, s6", &[0x89100604], false, |a, b, _, _| (s(a).min(s(b)) as u64, s(a) < s(b)));
    check("s_min_u32 s16, s4, s6", &[0x89900604], false, |a, b, _, _| (z(a).min(z(b)) as u64, z(a) < z(b)));
    check("s_max_i32 s16, s4, s6", &[0x8A100604], false, |a, b, _, _| (s(a).max(s(b)) as u64, s(a) >= s(b)));
    check("s_max_u32 s16, s4, s6", &[0x8A900604], false, |a, b, _, _| (z(a).max(z(b)) as u64, z(a) >= z(b)));
}

#[test]
fn bits_and_shifts() {
    nonzero("s_and_b32 s16, s4, s6", &[0x8B100604], |a, b| a & b);
    nonzero("s_or_b32 s16, s4, s6", &[0x8C100604], |a, b| a | b);
    nonzero("s_xor_b32 s16, s4, s6", &[0x8D100604], |a, b| a ^ b);
    nonzero("s_nand_b32 s16, s4, s6", &[0x8E100604], |a, b| !a | !b);
    nonzero("s_nor_b32 s16, s4, s6", &[0x8F100604], |a, b| !a & !b);
    nonzero("s_xnor_b32 s16, s4, s6", &[0x90100604], |a, b| !a ^ b);
    nonzero("s_and_not1_b32 s16, s4, s6", &[0x91100604], |a, b| a & !b);
    nonzero("s_or_not1_b32 s16, s4, s6", &[0x92100604], |a, b| a | !b);
    nonzero("s_not_b32 s16, s4", &[0xBE901E04], |a, _| u32::MAX - a);
    check("s_and_b64 s[16:17], s[4:5], s[6:7]", &[0x8B900604], true, |a, b, _, _| (a & b, a & b != 0));
    check("s_or_not1_b64 s[16:17], s[4:5], s[6:7]", &[0x92900604], true, |a, b, _, _| (a | !b, a | !b != 0));
    check("s_not_b64 s[16:17], s[4:5]", &[0xBE901F04], true, |a, _, _, _| (!a, !a != 0));
    nonzero("s_lshl_b32 s16, s4, s6", &[0x84100604], |a, b| ((a as u64) << (b % 32)) as u32);
    nonzero("s_lshr_b32 s16, s4, s6", &[0x85100604], |a, b| (a as u64 >> (b % 32)) as u32);
    nonzero("s_ashr_i32 s16, s4, s6", &[0x86100604], |a, b| (a as i32 as i64 >> (b % 32)) as u32);
    check("s_lshl_b64 s[16:17], s[4:5], s6", &[0x84900604], true, |a, b, _, _| {
        (a << (b % 64), a << (b % 64) != 0)
    });
    check("s_lshr_b64 s[16:17], s[4:5], s6", &[0x85900604], true, |a, b, _, _| {
        (a >> (b % 64), a >> (b % 64) != 0)
    });
    check("s_ashr_i64 s[16:17], s[4:5], s6", &[0x86900604], true, |a, b, _, _| {
        let value = (a as i64 as i128 >> (b % 64)) as u64;
        (value, value != 0)
    });
    let field = |b: u32| (b & 31, b >> 16 & 127);
    nonzero("s_bfe_u32 s16, s4, s6", &[0x93100604], |a, b| {
        let (offset, width) = field(b);
        ((a as u128 >> offset) & ((1 << width.min(100)) - 1)) as u32
    });
    nonzero("s_bfe_i32 s16, s4, s6", &[0x93900604], |a, b| {
        let (offset, width) = field(b);
        let shifted = a as i32 as i128 >> offset;
        if width == 0 { 0 } else { (shifted << (128 - width.min(127)) >> (128 - width.min(127))) as u32 }
    });
    nonzero("s_bfe_u32 s16, s4, 0x40008", &[0x9310FF04, 0x00040008], |a, _| a / 256 % 16);
    check("s_bfe_u64 s[16:17], s[4:5], s6", &[0x94100604], true, |a, b, _, _| {
        let value = ((a as u128 >> (b % 64)) & ((1u128 << (b >> 16 & 127).min(100)) - 1)) as u64;
        (value, value != 0)
    });
    keeps("s_bfm_b32 s16, s4, s6", &[0x95100604], |a, b| (((1u64 << (a % 32)) - 1) << (b % 32)) as u32);
    check("s_bfm_b64 s[16:17], s4, s6", &[0x95900604], true, |a, b, _, scc| {
        ((((1u128 << (a % 64)) - 1) << (b % 64)) as u64, scc)
    });
    keeps("s_brev_b32 s16, s4", &[0xBE900404], |a, _| {
        (0..32).fold(0, |r, bit| r | (a >> bit & 1) << (31 - bit))
    });
    let find =
        |matches: &dyn Fn(u32) -> bool, bits: u32| (0..bits).find(|&bit| matches(bit)).unwrap_or(u32::MAX);
    keeps("s_ctz_i32_b32 s16, s4", &[0xBE900804], |a, _| find(&|bit| a >> bit & 1 == 1, 32));
    keeps("s_clz_i32_u32 s16, s4", &[0xBE900A04], |a, _| find(&|bit| a >> (31 - bit) & 1 == 1, 32));
    keeps("s_cls_i32 s16, s4", &[0xBE900C04], |a, _| find(&|bit| a >> (31 - bit) & 1 != a >> 31, 32));
    check("s_ctz_i32_b64 s16, s[4:5]", &[0xBE900904], false, |a, _, _, scc| {
        (find(&|bit| a >> bit & 1 == 1, 64) as u64, scc)
    });
    check("s_clz_i32_u64 s16, s[4:5]", &[0xBE900B04], false, |a, _, _, scc| {
        (find(&|bit| a >> (63 - bit) & 1 == 1, 64) as u64, scc)
    });
    check("s_cls_i32_i64 s16, s[4:5]", &[0xBE900D04], false, |a, _, _, scc| {
        (find(&|bit| a >> (63 - bit) & 1 != a >> 63, 64) as u64, scc)
    });
    nonzero("s_bcnt0_i32_b32 s16, s4", &[0xBE901604], |a, _| (0..32).map(|bit| 1 - (a >> bit & 1)).sum());
    nonzero("s_bcnt1_i32_b32 s16, s4", &[0xBE901804], |a, _| (0..32).map(|bit| a >> bit & 1).sum());
    check("s_bcnt1_i32_b64 s16, s[4:5]", &[0xBE901904], false, |a, _, _, _| {
        let count = (0..64).map(|bit| a >> bit & 1).sum();
        (count, count != 0)
    });
    keeps(
        "s_sext_i32_i8 s16, s4",
        &[0xBE900E04],
        |a, _| if a & 0x80 != 0 { a | 0xFFFF_FF00 } else { a & 0xFF },
    );
    keeps("s_sext_i32_i16 s16, s4", &[0xBE900F04], |a, _| {
        if a & 0x8000 != 0 { a | 0xFFFF_0000 } else { a & 0xFFFF }
    });
    check("s_bitset0_b32 s16, s4", &[0xBE901004], false, |a, _, old, scc| (old & !(1 << (a % 32)), scc));
    check("s_bitset1_b64 s[16:17], s4", &[0xBE901304], true, |a, _, old, scc| (old | 1 << (a % 64), scc));
    check("s_bitreplicate_b64_b32 s[16:17], s4", &[0xBE901404], true, |a, _, _, scc| {
        ((0..64).fold(0, |r, bit| r | (a >> (bit / 2) & 1) << bit), scc)
    });
    nonzero("s_quadmask_b32 s16, s4", &[0xBE901A04], |a, _| {
        (0..8).fold(0, |r, q| r | (((a >> (4 * q)) % 16 != 0) as u32 * (1 << q)))
    });
    nonzero("s_wqm_b32 s16, s4", &[0xBE901C04], |a, _| {
        (0..32).fold(0, |r, bit| r | (((a >> (bit / 4 * 4)) % 16 != 0) as u32 * (1 << bit)))
    });
    keeps("s_pack_ll_b32_b16 s16, s4, s6", &[0x99100604], |a, b| a % 65536 + b % 65536 * 65536);
    keeps("s_pack_lh_b32_b16 s16, s4, s6", &[0x99900604], |a, b| a % 65536 + b / 65536 * 65536);
    keeps("s_pack_hh_b32_b16 s16, s4, s6", &[0x9A100604], |a, b| a / 65536 + b / 65536 * 65536);
    keeps("s_pack_hl_b32_b16 s16, s4, s6", &[0x9A900604], |a, b| a / 65536 + b % 65536 * 65536);
}

#[test]
fn operations_on_pairs_see_all_64_bits() {
    type Logic = fn(u64, u64) -> u64;
    let logic: [(&str, &[u32], Logic); 6] = [
        ("s_or_b64 s[16:17], s[4:5], s[6:7]", &[0x8C900604], |a, b| a | b),
        ("s_xor_b64 s[16:17], s[4:5], s[6:7]", &[0x8D900604], |a, b| (a | b) & !(a & b)),
        ("s_nand_b64 s[16:17], s[4:5], s[6:7]", &[0x8E900604], |a, b| !a | !b),
        ("s_nor_b64 s[16:17], s[4:5], s[6:7]", &[0x8F900604], |a, b| !a & !b),
        ("s_xnor_b64 s[16:17], s[4:5], s[6:7]", &[0x90900604], |a, b| a & b | !a & !b),
        ("s_and_not1_b64 s[16:17], s[4:5], s[6:7]", &[0x91900604], |a, b| a & !b),
    ];
    for (text, words, f) in logic {
        check(text, words, true, |a, b, _, _| (f(a, b), f(a, b) != 0));
    }
    check("s_bfe_i64 s[16:17], s[4:5], s6", &[0x94900604], true, |a, b, _, _| {
        let (offset, width) = (b % 64, b >> 16 & 127);
        let field = (a as i64 as i128 >> offset) & ((1i128 << width.min(64)) - 1);
        let is_negative = width > 0 && (a as i64 as i128 >> offset) >> (width - 1) & 1 != 0;
        let value = if is_negative { field - (1i128 << width.min(64)) } else { field } as u64;
        (value, value != 0)
    });
    check("s_brev_b64 s[16:17], s[4:5]", &[0xBE900504], true, |a, _, _, scc| {
        ((0..64).fold(0, |r, bit| r | (a >> bit & 1) << (63 - bit)), scc)
    });
    check("s_bcnt0_i32_b64 s16, s[4:5]", &[0xBE901704], false, |a, _, _, _| {
        let count = (0..64).map(|bit| 1 - (a >> bit & 1)).sum();
        (count, count != 0)
    });
    check("s_bitset0_b64 s[16:17], s4", &[0xBE901104], true, |a, _, old, scc| (old & !(1 << (a % 64)), scc));
    check("s_bitset1_b32 s16, s4", &[0xBE901204], false, |a, _, old, scc| (old | 1 << (a % 32), scc));
    check("s_quadmask_b64 s[16:17], s[4:5]", &[0xBE901B04], true, |a, _, _, _| {
        let mask = (0..16).filter(|quad| (a >> (4 * quad)) % 16 != 0).map(|quad| 1 << quad).sum();
        (mask, mask != 0)
    });
    check("s_wqm_b64 s[16:17], s[4:5]", &[0xBE901D04], true, |a, _, _, _| {
        let mask = (0..64).filter(|bit| (a >> (bit / 4 * 4)) % 16 != 0).map(|bit| 1 << bit).sum();
        (mask, mask != 0)
    });
    for (text, words, amount) in
        [("s_lshl2_add_u32 s16, s4, s6", &[0x87900604], 4), ("s_lshl3_add_u32 s16, s4, s6", &[0x88100604], 8)]
    {
        check(text, words, false, |a, b, _, _| {
            let sum = z(a) * amount + z(b);
            (sum as u64, sum >> 32 != 0)
        });
    }
    check("s_bitcmp0_b64 s[4:5], s6", &[0xBF0E0604], true, |a, b, old, _| (old, a & 1 << (b % 64) == 0));
}

/// A 64-bit constant is extended by its sign; what is not a register has no upper half of its own.
#[test]
fn sources_of_64_bits_that_are_not_registers() {
    let sums: [(&str, &[u32], u64); 5] = [
        ("s_add_nc_u64 s[16:17], s[4:5], -16", &[0xA990D004], -16i64 as u64),
        ("s_add_nc_u64 s[16:17], s[4:5], 1.0", &[0xA990F204], 0x3FF0_0000_0000_0000),
        ("s_add_nc_u64 s[16:17], s[4:5], src_scc", &[0xA990FD04], 1),
        ("s_add_nc_u64 s[16:17], s[4:5], null", &[0xA9907C04], 0),
        ("s_add_nc_u64 s[16:17], s[4:5], vcc", &[0xA9906A04], 0x0123_4567_89AB_CDEF),
    ];
    let mut start = wave();
    start.scc = true;
    // Beside `null` and the codes of computed values there is something else.
    (start.scalar[125], start.scalar[254]) = (0x7777_7777, 0x7777_7777);
    start.set_scalar_pair(106, 0x0123_4567_89AB_CDEF);
    for (text, words, addend) in sums {
        let end = run_all(&start, words);
        assert_eq!(end.scalar_pair(16), start.scalar_pair(4).wrapping_add(addend), "{text}");
    }
}

#[test]
fn moves_and_selects() {
    keeps("s_mov_b32 s16, s4", &[0xBE900004], |a, _| a);
    keeps("s_mov_b32 s16, 0x12345678", &[0xBE9000FF, 0x12345678], |_, _| 0x1234_5678);
    keeps("s_mov_b32 s16, -0.5", &[0xBE9000F1], |_, _| (-0.5f32).to_bits());
    keeps("s_movk_i32 s16, 0x8000", &[0xB0108000], |_, _| 0xFFFF_8000);
    check("s_mov_b64 s[16:17], s[4:5]", &[0xBE900104], true, |a, _, _, scc| (a, scc));
    check("s_mov_b64 s[16:17], -1", &[0xBE9001C1], true, |_, _, _, scc| (u64::MAX, scc));
    check("s_mov_b64 s[16:17], 0x89abcdef", &[0xBE9001FF, 0x89ABCDEF], true, |_, _, _, scc| {
        (0x89AB_CDEF, scc)
    });
    check("s_cmov_b32 s16, s4", &[0xBE900204], false, |a, _, old, scc| (if scc { a } else { old }, scc));
    check("s_cmov_b64 s[16:17], s[4:5]", &[0xBE900304], true, |a, _, old, scc| {
        (if scc { a } else { old }, scc)
    });
    check("s_cmovk_i32 s16, -7", &[0xB110FFF9], false, |_, _, old, scc| {
        (if scc { -7i64 as u64 } else { old }, scc)
    });
    check("s_cselect_b32 s16, s4, s6", &[0x98100604], false, |a, b, _, scc| (if scc { a } else { b }, scc));
    check("s_cselect_b64 s[16:17], s[4:5], s[6:7]", &[0x98900604], true, |a, b, _, scc| {
        (if scc { a } else { b }, scc)
    });
    check("s_mov_b32 s16, src_scc", &[0xBE9000FD], false, |_, _, _, scc| (scc as u64, scc));
    check("s_mov_b32 s16, null", &[0xBE90007C], false, |_, _, _, scc| (0, scc));
}

// The negated comparisons are what is tested.
#[allow(clippy::neg_cmp_op_on_partial_ord)]
#[test]
fn comparisons() {
    // The destination is preserved; only SCC changes.
    let test = |text: &str, words: &[u32], f: &dyn Fn(u64, u64) -> bool| {
        check(text, words, true, |a, b, old, _| (old, f(a, b)));
    };
    test("s_cmp_eq_i32 s4, s6", &[0xBF000604], &|a, b| s(a) == s(b));
    test("s_cmp_lg_i32 s4, s6", &[0xBF010604], &|a, b| s(a) != s(b));
    test("s_cmp_gt_i32 s4, s6", &[0xBF020604], &|a, b| s(a) > s(b));
    test("s_cmp_ge_i32 s4, s6", &[0xBF030604], &|a, b| s(a) >= s(b));
    test("s_cmp_lt_i32 s4, s6", &[0xBF040604], &|a, b| s(a) < s(b));
    test("s_cmp_le_i32 s4, s6", &[0xBF050604], &|a, b| s(a) <= s(b));
    test("s_cmp_eq_u32 s4, s6", &[0xBF060604], &|a, b| z(a) == z(b));
    test("s_cmp_lg_u32 s4, s6", &[0xBF070604], &|a, b| z(a) != z(b));
    test("s_cmp_gt_u32 s4, s6", &[0xBF080604], &|a, b| z(a) > z(b));
    test("s_cmp_ge_u32 s4, s6", &[0xBF090604], &|a, b| z(a) >= z(b));
    test("s_cmp_lt_u32 s4, s6", &[0xBF0A0604], &|a, b| z(a) < z(b));
    test("s_cmp_le_u32 s4, s6", &[0xBF0B0604], &|a, b| z(a) <= z(b));
    test("s_cmp_eq_u64 s[4:5], s[6:7]", &[0xBF100604], &|a, b| a == b);
    test("s_cmp_lg_u64 s[4:5], s[6:7]", &[0xBF110604], &|a, b| a != b);
    test("s_bitcmp0_b32 s4, s6", &[0xBF0C0604], &|a, b| a as u32 & 1 << (b % 32) == 0);
    test("s_bitcmp1_b32 s4, s6", &[0xBF0D0604], &|a, b| a as u32 & 1 << (b % 32) != 0);
    test("s_bitcmp1_b64 s[4:5], s6", &[0xBF0F0604], &|a, b| a & 1 << (b % 64) != 0);
    let float = |value: u64| f32::from_bits(value as u32);
    test("s_cmp_lt_f32 s4, s6", &[0xBF410604], &|a, b| float(a) < float(b));
    test("s_cmp_lg_f32 s4, s6", &[0xBF450604], &|a, b| float(a) < float(b) || float(a) > float(b));
    test("s_cmp_o_f32 s4, s6", &[0xBF470604], &|a, b| !float(a).is_nan() && !float(b).is_nan());
    test("s_cmp_u_f32 s4, s6", &[0xBF480604], &|a, b| float(a).is_nan() || float(b).is_nan());
    test("s_cmp_nge_f32 s4, s6", &[0xBF490604], &|a, b| !(float(a) >= float(b)));
    test("s_cmp_neq_f32 s4, s6", &[0xBF4D0604], &|a, b| float(a) != float(b));
    let half = |value: u64| half_value(value as u16);
    test("s_cmp_gt_f16 s4, s6", &[0xBF540604], &|a, b| half(a) > half(b));
    test("s_cmp_nlt_f16 s4, s6", &[0xBF5E0604], &|a, b| !(half(a) < half(b)));
}

#[test]
fn floats() {
    let float = |text: &str, words: &[u32], f: &dyn Fn(f32, f32, f32) -> f32| {
        check(text, words, false, |a, b, old, scc| {
            let value = f(f32::from_bits(a as u32), f32::from_bits(b as u32), f32::from_bits(old as u32));
            (if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() } as u64, scc)
        });
    };
    float("s_add_f32 s16, s4, s6", &[0xA0100604], &|a, b, _| a + b);
    float("s_sub_f32 s16, s4, s6", &[0xA0900604], &|a, b, _| a - b);
    float("s_mul_f32 s16, s4, s6", &[0xA2100604], &|a, b, _| a * b);
    float("s_fmac_f32 s16, s4, s6", &[0xA3900604], &|a, b, old| a.mul_add(b, old));
    float("s_fmaak_f32 s16, s4, s6, 0x40490fdb", &[0xA2900604, 0x40490FDB], &|a, b, _| {
        a.mul_add(b, core::f32::consts::PI)
    });
    float("s_fmamk_f32 s16, s4, 0x40490fdb, s6", &[0xA3100604, 0x40490FDB], &|a, b, _| {
        a.mul_add(core::f32::consts::PI, b)
    });
    float("s_ceil_f32 s16, s4", &[0xBE906004], &|a, _, _| a.ceil());
    float("s_rndne_f32 s16, s4", &[0xBE906304], &|a, _, _| a.round_ties_even());
    keeps("s_cvt_f32_i32 s16, s4", &[0xBE906404], |a, _| (a as i32 as f32).to_bits());
    keeps("s_cvt_u32_f32 s16, s4", &[0xBE906704], |a, _| f32::from_bits(a) as u32);
    keeps("s_cvt_f32_f16 s16, s4", &[0xBE906904], |a, _| {
        let value = half_value(a as u16) as f32;
        if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() }
    });
    keeps("s_cvt_hi_f32_f16 s16, s4", &[0xBE906A04], |a, _| {
        let value = half_value((a >> 16) as u16) as f32;
        if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() }
    });
    let run = |values: [u32; 2], words: &[u32]| {
        let mut start = wave();
        [start.scalar[4], start.scalar[6]] = values;
        run_all(&start, words).scalar[16]
    };
    assert_eq!(
        run([0xFFFF_3C00, 0xFFFF_4000], code("s_add_f16 s16, s4, s6", &[0xA4900604])),
        0x4200,
        "the high half is zero"
    );
    assert_eq!(run([2.5f32.to_bits(), 0], code("s_cvt_f16_f32 s16, s4", &[0xBE906804])), 0x4100);
    assert_eq!(
        run([1.0f32.to_bits(), (-2.0f32).to_bits()], code("s_cvt_pk_rtz_f16_f32 s16, s4, s6", &[0xA4100604])),
        0xC000_3C00
    );
    assert_eq!(
        run([0x7FC0_0000, 1.0f32.to_bits()], code("s_min_num_f32 s16, s4, s6", &[0xA1100604])),
        1.0f32.to_bits()
    );
    assert_eq!(
        run([0x7FC0_0000, 1.0f32.to_bits()], code("s_minimum_f32 s16, s4, s6", &[0xA7900604])),
        0x7FC0_0000
    );
    assert_eq!(run([0x4100, 0], code("s_floor_f16 s16, s4", &[0xBE906C04])), 0x4000);
}

#[test]
fn masks_of_active_lanes() {
    let mut random = Random::new(5);
    for _ in 0..50 {
        let mut start = wave();
        let (source, exec) = (random.bits(), random.bits());
        start.scalar[4] = source;
        start.scalar[126] = exec;
        let cases: [(&str, &[u32], u32); 12] = [
            ("s_and_saveexec_b32 s16, s4", &[0xBE902004], source & exec),
            ("s_or_saveexec_b32 s16, s4", &[0xBE902204], source | exec),
            ("s_xor_saveexec_b32 s16, s4", &[0xBE902404], source ^ exec),
            ("s_nand_saveexec_b32 s16, s4", &[0xBE902604], !(source & exec)),
            ("s_nor_saveexec_b32 s16, s4", &[0xBE902804], !(source | exec)),
            ("s_xnor_saveexec_b32 s16, s4", &[0xBE902A04], !(source ^ exec)),
            ("s_and_not0_saveexec_b32 s16, s4", &[0xBE902C04], !source & exec),
            ("s_or_not0_saveexec_b32 s16, s4", &[0xBE902E04], !source | exec),
            ("s_and_not1_saveexec_b32 s16, s4", &[0xBE903004], source & !exec),
            ("s_or_not1_saveexec_b32 s16, s4", &[0xBE903204], source | !exec),
            ("s_and_not0_wrexec_b32 s16, s4", &[0xBE903404], !source & exec),
            ("s_and_not1_wrexec_b32 s16, s4", &[0xBE903604], source & !exec),
        ];
        for (text, words, expected) in cases {
            let end = run_all(&start, words);
            assert_eq!(end.scalar[126], expected, "{text}");
            assert_eq!(end.scalar[16], if text.contains("save") { exec } else { expected }, "{text}");
            assert_eq!(end.scc, expected != 0, "{text}");
        }
        // The saved EXEC may overwrite the source; the result goes to EXEC.
        let end = run_all(&start, code("s_and_saveexec_b32 s4, s4", &[0xBE842004]));
        assert_eq!((end.scalar[4], end.scalar[126]), (exec, source & exec));
    }
}

#[test]
fn masks_of_64_active_lanes() {
    let mut random = Random::new(6);
    for round in 0..50 {
        let mut start = wave();
        let mut pair = || u64::from(random.bits()) << 32 | u64::from(random.bits());
        // Masks that have lanes in one half only, and none.
        let kept = [u64::MAX, 0xFFFF_FFFF, !0xFFFF_FFFF, 0][round % 4];
        let (source, exec) = (pair(), pair() & kept);
        start.set_scalar_pair(4, source);
        start.set_scalar_pair(126, exec);
        let cases: [(&str, &[u32], u64); 12] = [
            ("s_and_saveexec_b64 s[16:17], s[4:5]", &[0xBE902104], source & exec),
            ("s_or_saveexec_b64 s[16:17], s[4:5]", &[0xBE902304], source | exec),
            ("s_xor_saveexec_b64 s[16:17], s[4:5]", &[0xBE902504], source ^ exec),
            ("s_nand_saveexec_b64 s[16:17], s[4:5]", &[0xBE902704], !(source & exec)),
            ("s_nor_saveexec_b64 s[16:17], s[4:5]", &[0xBE902904], !(source | exec)),
            ("s_xnor_saveexec_b64 s[16:17], s[4:5]", &[0xBE902B04], !(source ^ exec)),
            ("s_and_not0_saveexec_b64 s[16:17], s[4:5]", &[0xBE902D04], !source & exec),
            ("s_or_not0_saveexec_b64 s[16:17], s[4:5]", &[0xBE902F04], !source | exec),
            ("s_and_not1_saveexec_b64 s[16:17], s[4:5]", &[0xBE903104], source & !exec),
            ("s_or_not1_saveexec_b64 s[16:17], s[4:5]", &[0xBE903304], source | !exec),
            ("s_and_not0_wrexec_b64 s[16:17], s[4:5]", &[0xBE903504], !source & exec),
            ("s_and_not1_wrexec_b64 s[16:17], s[4:5]", &[0xBE903704], source & !exec),
        ];
        for (text, words, expected) in cases {
            let end = run_all(&start, words);
            assert_eq!(end.scalar_pair(126), expected, "{text}");
            assert_eq!(end.scalar_pair(16), if text.contains("save") { exec } else { expected }, "{text}");
            assert_eq!(end.scc, expected != 0, "{text}");
        }
    }
}

/// m0 is added to the numbers of registers, of which vcc_hi (107) is the last. A source beyond it is s0; a destination
/// beyond it is not written.
#[test]
fn relative_moves_end_at_vcc() {
    let run = |offset: u32, text: &str, words: &[u32]| {
        let mut start = wave();
        start.scalar[..108].iter_mut().zip(1000..).for_each(|(scalar, value)| *scalar = value);
        start.scalar[125] = offset;
        run_all(&start, code(text, words))
    };
    let written = |end: &Wave| {
        (0..108usize).filter(|code| end.scalar[*code] != 1000 + *code as u32).collect::<Vec<_>>()
    };
    let source = |offset| run(offset, "s_movrels_b32 s16, s4", &[0xBE904004]).scalar[16];
    assert_eq!([source(103), source(104), source(u32::MAX)], [1107, 1000, 1000]);
    let end = run(96, "s_movrels_b64 s[16:17], s[4:5]", &[0xBE904104]);
    assert_eq!([end.scalar[16], end.scalar[17]], [1100, 1101]);
    let end = run(91, "s_movreld_b32 s16, s4", &[0xBE904204]);
    assert_eq!((written(&end), end.scalar[107]), (vec![107], 1004));
    for offset in [92, u32::MAX] {
        assert_eq!(written(&run(offset, "s_movreld_b32 s16, s4", &[0xBE904204])), [0; 0], "{offset}");
    }
    let end = run(4, "s_movreld_b64 s[16:17], s[4:5]", &[0xBE904304]);
    assert_eq!((written(&end), end.scalar[20], end.scalar[21]), (vec![20, 21], 1004, 1005));
    // Ten bits for each register; what is between them counts for neither.
    let end = run(0xFC00_FC00 | 3 << 16 | 5, "s_movrelsd_2_b32 s16, s4", &[0xBE904404]);
    assert_eq!((written(&end), end.scalar[19]), (vec![19], 1009));
    assert_eq!(written(&run(0x200 << 16, "s_movrelsd_2_b32 s16, s4", &[0xBE904404])), [0; 0]);
    assert_eq!(run(0x200, "s_movrelsd_2_b32 s16, s4", &[0xBE904404]).scalar[16], 1000);
}

#[test]
fn relative_moves_and_null() {
    let mut start = wave();
    start.scalar[125] = 3;
    let end = run_all(&start, code("s_movrels_b32 s16, s4", &[0xBE904004]));
    assert_eq!(end.scalar[16], start.scalar[7]);
    let end = run_all(&start, code("s_movreld_b32 s16, s4", &[0xBE904204]));
    assert_eq!(end.scalar[19], start.scalar[4]);
    assert_eq!(end.scalar[16], start.scalar[16]);
    start.scalar[125] = 2 << 16 | 4;
    let end = run_all(&start, code("s_movrelsd_2_b32 s16, s4", &[0xBE904404]));
    assert_eq!(end.scalar[18], start.scalar[8]);
    let end = run_all(
        &start,
        code(
            "s_mov_b32 null, s4; s_mov_b64 null, s[4:5]; s_mov_b32 s16, null",
            &[0xBEFC0004, 0xBEFC0104, 0xBE90007C],
        ),
    );
    assert_eq!(end.scalar[124..127], start.scalar[124..127]);
    assert_eq!(end.scalar[16], 0);
}

#[test]
fn all_but_the_named_operations_are_executed() {
    let example = |opcode: Opcode| Instruction {
        encoding: opcode.encoding(),
        opcode,
        dword_count: 1,
        destination: Operand::Scalar(16),
        destination2: Operand::None,
        sources: [Operand::Scalar(4), Operand::Scalar(6), Operand::None],
        soffset: Operand::None,
        modifiers: Modifiers::default(),
        lanes: LaneSelect::None,
        immediate: 0,
        scope: 0,
        temporal_hint: 0,
        address_flags: 0,
        dual: None,
    };
    let missing: Vec<&str> = OPCODES
        .iter()
        .filter(|op| {
            matches!(op.encoding(), Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc)
        })
        .filter(|&&opcode| super::translate(&example(opcode), Level::BASELINE).is_none())
        .map(|opcode| opcode.mnemonic())
        .collect();
    // Control flow, messages, barriers and hardware registers belong to the engine.
    let named = [
        "s_getpc_b64",
        "s_setpc_b64",
        "s_swappc_b64",
        "s_rfe_b64",
        "s_sendmsg_rtn_b32",
        "s_sendmsg_rtn_b64",
        "s_barrier_signal",
        "s_barrier_signal_isfirst",
        "s_get_barrier_state",
        "s_barrier_init",
        "s_barrier_join",
        "s_wakeup_barrier",
        "s_sleep_var",
        "s_version",
        "s_getreg_b32",
        "s_setreg_b32",
        "s_setreg_imm32_b32",
        "s_call_b64",
    ];
    assert_eq!(missing, named);
}

#[test]
fn the_long_literal_feeds_both_kinds_of_operand() {
    let start: Wave = wave();
    let end = run_all(&start, code("s_add_nc_u64 s[16:17], s[4:5], 0x80000000", &[0xA990FF04, 0x80000000]));
    assert_eq!(end.scalar_pair(16), start.scalar_pair(4).wrapping_add(0x8000_0000));
    let end = run_all(&start, code("s_ashr_i64 s[16:17], 0x80000000, 4", &[0x869084FF, 0x80000000]));
    assert_eq!(end.scalar_pair(16), 0xFFFF_FFFF_F800_0000);
}
