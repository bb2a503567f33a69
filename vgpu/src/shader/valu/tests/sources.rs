//! How operands reach the lanes and results the registers: halves, pairs, lane selects, clamps, and what is refused.

use zrt_isa::decode;

use super::arithmetic::{f, result, with};
use crate::shader::valu::access::raw_sources;
use crate::shader::valu::testing::{MODE_USUAL, Random, assert_same, code, run_all, translate, wave};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::Level;

/// The accumulator of v_fmac_f16 is the half that the result replaces, whatever halves the factors are.
#[test]
fn an_accumulator_is_the_half_that_is_replaced() {
    // Bits 11, 12 and 14 select the halves of the factors and of the destination in the long encoding.
    for select in 0..8u32 {
        let [high_a, high_b, high] = [select & 1, select >> 1 & 1, select >> 2];
        let words = [0xD536_0000 | high_a << 11 | high_b << 12 | high << 14, 0x0002_0501];
        // 2 or 3, times 4 or 5, plus 1 or 10.
        let mut start = with(&[0x4200_4000, 0x4500_4400]);
        start.vector[0].0[0] = 0x4900_3C00;
        let value =
            (2.0 + f64::from(high_a)) * (4.0 + f64::from(high_b)) + if high == 1 { 10.0 } else { 1.0 };
        let found = run_all(&start, &words).vector[0].0[0];
        let (half, kept) =
            if high == 1 { (found >> 16, found & 0xFFFF) } else { (found & 0xFFFF, found >> 16) };
        assert_eq!(crate::shader::valu::testing::half_value(half as u16), value, "{select}");
        assert_eq!(kept, if high == 1 { 0x3C00 } else { 0x4900 }, "{select}");
    }
    // In the short encoding bit 7 of the destination's number is the half.
    let mut start = with(&[0x4000, 0x4200]);
    start.vector[0].0[0] = 0x3C00_AAAA;
    let words = code("v_fmac_f16_e32 v0.h, v1.l, v2.l", &[0x6D00_0501]);
    assert_eq!(run_all(&start, words).vector[0].0[0], 0x4700_AAAA);
}

/// Each half of v_pk_fmac_f16 has its own accumulator.
#[test]
fn a_packed_sum_adds_to_both_halves() {
    let mut start = with(&[0x4200_4000, 0x4500_4400]);
    start.vector[0].0[0] = 0x4900_3C00;
    // 2 · 4 + 1 below, 3 · 5 + 10 above.
    assert_eq!(run_all(&start, code("v_pk_fmac_f16 v0, v1, v2", &[0x7800_0501])).vector[0].0[0], 0x4E40_4880);
}

/// Only general registers come in pairs: of what is computed, and of null, the high dword is zero.
#[test]
fn scalar_operands_of_64_bits() {
    let mut start = with(&[0, 0x89AB_CDEF, 0x4010_0000]);
    start.scc = true;
    start.scalar[125] = 0x5555_5555;
    (start.scalar[4], start.scalar[5]) = (0x1234_5678, 0x3FF0_0000);
    let wide = |words: &[u32]| {
        let end = run_all(&start, words);
        u64::from(end.vector[16].0[0]) | u64::from(end.vector[17].0[0]) << 32
    };
    let sum = |bits: u64| (f64::from_bits(bits) + f64::from_bits(0x4010_0000_89AB_CDEF)).to_bits();
    let pair = code("v_add_f64_e32 v[16:17], s[4:5], v[2:3]", &[0x04200404]);
    assert_eq!(wide(pair), sum(0x3FF0_0000_1234_5678));
    let null = code("v_add_f64_e64 v[16:17], null, v[2:3]", &[0xD5020010, 0x0002047C]);
    assert_eq!(wide(null), 0x4010_0000_89AB_CDEF);
    assert_eq!(wide(code("v_lshrrev_b64 v[16:17], v1, null", &[0xD73D0010, 0x0000F901])), 0);
    assert_eq!(wide(code("v_lshrrev_b64 v[16:17], v1, src_scc", &[0xD73D0010, 0x0001FB01])), 1);
}

/// A source lane off the row is none, whether inactive lanes may be read or not.
#[test]
fn lanes_without_a_source_in_the_row_are_not_written() {
    let mut start = wave();
    for exec in [u32::MAX, 0x7FFF_0F0F, 0x0000_C000] {
        start.scalar[126] = exec;
        // v_mov_b32_dpp v0, v1 row_shl:2, with fi (bit 18) and bound_ctrl (bit 19).
        for (fetches, bounds) in [(false, false), (true, false), (false, true), (true, true)] {
            let words = [0x7E00_02FA, 0xFF01_0201 | u32::from(fetches) << 18 | u32::from(bounds) << 19];
            let end = run_all(&start, &words);
            for lane in 0..LANES {
                let source = (lane % 16 < 14).then_some(lane + 2);
                let readable = source.filter(|source| fetches || exec >> source & 1 != 0);
                let value = match readable {
                    Some(source) => Some(start.vector[1].0[source]),
                    None => bounds.then_some(0),
                };
                let value = value.filter(|_| exec >> lane & 1 != 0).unwrap_or(start.vector[0].0[lane]);
                assert_eq!(end.vector[0].0[lane], value, "lane {lane} of {exec:#x}, {fetches} {bounds}");
            }
        }
    }
}

/// Selectors of 4 bits from scalars or lanes, of the own or the other row; op_sel 1 reads inactive lanes, op_sel 2
/// reads zero where it may not.
#[test]
fn permutations_of_rows_follow_exec() {
    let mut random = Random::new(89);
    let mut start = wave();
    for _ in 0..12 {
        start.vector[2] = random.row();
        (start.scalar[10], start.scalar[11]) = (random.next(), random.next());
        start.scalar[126] = random.next();
        let exec = start.scalar[126];
        for (opcode, other_row, from_lanes) in
            [(0xD65B, false, false), (0xD65C, true, false), (0xD70F, false, true), (0xD710, true, true)]
        {
            for select in 0..4u32 {
                let sources = if from_lanes { 0x0002_0501 } else { 0x002C_1501 };
                let end = run_all(&start, &[opcode << 16 | select << 11, sources]);
                for lane in 0..LANES {
                    let digits = u64::from(start.scalar[10]) | u64::from(start.scalar[11]) << 32;
                    let digit = if from_lanes {
                        start.vector[2].0[lane] % 16
                    } else {
                        (digits >> (4 * (lane % 16))) as u32 % 16
                    };
                    let row = if other_row { 1 - lane / 16 } else { lane / 16 };
                    let source = 16 * row + digit as usize;
                    let value = match (select & 1 != 0 || exec >> source & 1 != 0, select & 2 != 0) {
                        (true, _) => Some(start.vector[1].0[source]),
                        (false, zero) => zero.then_some(0),
                    };
                    let value = value.filter(|_| exec >> lane & 1 != 0).unwrap_or(start.vector[0].0[lane]);
                    assert_eq!(
                        end.vector[0].0[lane], value,
                        "{opcode:#x}, op_sel {select}, lane {lane} of {exec:#x}"
                    );
                }
            }
        }
    }
    // The lane number of v_writelane is modulo 32, and EXEC does not matter.
    (start.scalar[4], start.scalar[10], start.scalar[126]) = (77, 37, 0);
    let end = run_all(&start, code("v_writelane_b32 v1, s4, s10", &[0xD7610001, 0x00001404]));
    let mut expected = start.clone();
    expected.vector[1].0[5] = 77;
    assert_same(&end, &expected, "v_writelane_b32");
}

/// To 0 to 1: as the larger of +0 and the smaller of 1 and the value, so that -0 becomes +0, and NaN becomes 0.
#[test]
fn clamped_floats_lie_between_zero_and_one() {
    let single = code("v_max_num_f32_e64 v0, v1, v1 clamp", &[0xD5168000, 0x00020301]);
    for (value, clamped) in [
        (f(0.25), f(0.25)),
        (f(1.0), f(1.0)),
        (0x3F80_0001, f(1.0)),
        (0x3F7F_FFFF, 0x3F7F_FFFF),
        (0x8000_0000, 0),
        (1, 1),
        (0x8000_0001, 0),
        (0x7F80_0000, f(1.0)),
        (0xFF80_0000, 0),
        (0x7FC0_0000, 0),
    ] {
        assert_eq!(result(&[value], MODE_USUAL, single), clamped, "{value:#x}");
    }
    let half = code("v_max_num_f16_e64 v0, v1, v1 clamp", &[0xD5318000, 0x00020301]);
    let packed = code("v_pk_max_num_f16 v0, v1, v1 clamp", &[0xCC1CC000, 0x18020301]);
    for (value, clamped) in [
        (0x3400, 0x3400),
        (0x3C00, 0x3C00),
        (0x3C01, 0x3C00),
        (0x8000, 0),
        (1, 1),
        (0x8001, 0),
        (0x7C00, 0x3C00),
        (0xFC00, 0),
        (0x7E00, 0),
        (0xFE00, 0),
    ] {
        assert_eq!(result(&[value], MODE_USUAL, half) & 0xFFFF, clamped, "{value:#x}");
        assert_eq!(result(&[value << 16 | 0x3555], MODE_USUAL, packed), clamped << 16 | 0x3555, "{value:#x}");
    }
    let double = code("v_max_num_f64_e64 v[0:1], v[2:3], v[2:3] clamp", &[0xD50E8000, 0x00020502]);
    for (value, clamped) in [
        (f64::to_bits(0.25), f64::to_bits(0.25)),
        (f64::to_bits(1.0) + 1, f64::to_bits(1.0)),
        (f64::to_bits(1.0) - 1, f64::to_bits(1.0) - 1),
        (1 << 63, 0),
        (1, 1),
        (0x7FF0_0000_0000_0000, f64::to_bits(1.0)),
        (0x7FF8_0000_0000_0000, 0),
    ] {
        let end = run_all(&with(&[0, value as u32, (value >> 32) as u32]), double);
        let found = u64::from(end.vector[0].0[0]) | u64::from(end.vector[1].0[0]) << 32;
        assert_eq!(found, clamped, "{value:#x}");
    }
}

/// A modifier without a meaning is refused: nothing says what clamp does to a sum of 64 bits.
#[test]
fn clamps_without_a_meaning_are_refused() {
    for (text, words) in [
        ("v_mad_co_u64_u32 v[16:17], s20, v1, v2, v[4:5] clamp", [0xD6FE_9410, 0x0412_0501]),
        ("v_mad_co_i64_i32 v[16:17], s20, v1, v2, v[4:5] clamp", [0xD6FF_9410, 0x0412_0501]),
    ] {
        let instruction = decode(&words).unwrap();
        let is_refused = |level| translate(&instruction, level).is_none();
        assert!(Level::supported().into_iter().all(is_refused), "{text}");
    }
    // Without it, a sum of exactly zero has no sign.
    let mut start = with(&[2, -3i32 as u32, 0, 6, 0]);
    start.scalar[20] = u32::MAX;
    let end: Wave =
        run_all(&start, code("v_mad_co_i64_i32 v[16:17], s20, v1, v2, v[4:5]", &[0xD6FF1410, 0x04120501]));
    assert_eq!((end.vector[16].0[0], end.vector[17].0[0], end.scalar[20]), (0, 0, 0));
}

/// A source that an operation does not have is the first, and is not read.
#[test]
fn an_absent_source_is_the_first() {
    let start = with(&[5, 6, 7]);
    let words = code("v_fma_f32 v0, v1, v2, v3", &[0xD613_0000, 0x040E_0501]);
    let op = translate(&decode(words).unwrap(), Level::BASELINE).unwrap();
    for count in 1..=3 {
        let mut rooms = [Row([0; LANES]); 3];
        let found = raw_sources(&start, &op, count, &mut rooms).map(|row| row.0[0]);
        let expected =
            [1, 2, 3].map(|register: usize| start.vector[if register <= count { register } else { 1 }].0[0]);
        assert_eq!(found, expected, "{count}");
    }
}
