//! Lanes: EXEC, comparisons, DPP, permutations, pairs, moves by m0.

use crate::shader::valu::testing::{Random, assert_same, code, run, run_all, wave};
use crate::shader::wave::{LANES, Wave};
use crate::simd::Level;

/// v1 = lane number + 100, v2 = lane number * 3.
fn numbered() -> Wave {
    let mut wave = wave();
    for lane in 0..LANES {
        wave.vector[1].0[lane] = 100 + lane as u32;
        wave.vector[2].0[lane] = 3 * lane as u32;
    }
    wave
}

/// Runs on `numbered` with the given EXEC and compares v0: `Some(value)` means written, `None` preserved.
fn check(text: &str, words: &[u32], exec: u32, expected: impl Fn(u32) -> Option<u32>) {
    let mut start = numbered();
    start.scalar[126] = exec;
    let end = run_all(&start, words);
    for lane in 0..LANES {
        let kept = start.vector[0].0[lane];
        assert_eq!(end.vector[0].0[lane], expected(lane as u32).unwrap_or(kept), "{text}: lane {lane}");
    }
}

const ALL: u32 = u32::MAX;

#[test]
fn dpp16_moves_lanes() {
    check(
        "v_mov_b32_dpp v0, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF001B01],
        ALL,
        |lane| Some(100 + (lane ^ 3)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:5 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF016501],
        ALL,
        |lane| Some(100 + (lane ^ 5)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_share:6 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF015601],
        ALL,
        |lane| Some(100 + (lane & 16) + 6),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF014001],
        ALL,
        |lane| Some(100 + (lane ^ 15)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF014101],
        ALL,
        |lane| Some(100 + (lane ^ 7)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_ror:3 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF012301],
        ALL,
        |lane| Some(100 + (lane & 16) + (lane + 13) % 16),
    );
    // A source outside the row: the lane is not written, or with bound_ctrl it reads zero.
    check(
        "v_mov_b32_dpp v0, v1 row_shl:2 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF010201],
        ALL,
        |lane| (lane % 16 < 14).then_some(100 + lane + 2),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        &[0x7E0002FA, 0xFF091101],
        ALL,
        |lane| Some(if lane % 16 == 0 { 0 } else { 100 + lane - 1 }),
    );
}

#[test]
fn dpp16_masks_gate_writes() {
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0x2 bank_mask:0xf",
        &[0x7E0002FA, 0x2F016101],
        ALL,
        |lane| (lane >= 16).then_some(100 + (lane ^ 1)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0x5",
        &[0x7E0002FA, 0xF5016101],
        ALL,
        |lane| (lane % 16 / 4 % 2 == 0).then_some(100 + (lane ^ 1)),
    );
    // The masks also decide which bits a comparison can set.
    let start = numbered();
    let words = code(
        "v_cmp_lt_u32_dpp vcc_lo, v2, v1 row_xmask:0 row_mask:0x1 bank_mask:0xf",
        &[0x7C9202FA, 0x1F016002],
    );
    assert_eq!(run_all(&start, words).scalar[106], 0xFFFF);
}

#[test]
fn dpp16_and_inactive_lanes() {
    // Even lanes are active; each reads its odd neighbour.
    let even = 0x5555_5555;
    let active = |lane: u32| lane.is_multiple_of(2);
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF016101],
        even,
        |_| None,
    );
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
        &[0x7E0002FA, 0xFF096101],
        even,
        |lane| active(lane).then_some(0),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf fi:1",
        &[0x7E0002FA, 0xFF056101],
        even,
        |lane| active(lane).then_some(100 + (lane ^ 1)),
    );
    check(
        "v_mov_b32_dpp v0, v1 row_xmask:2 row_mask:0xf bank_mask:0xf",
        &[0x7E0002FA, 0xFF016201],
        even,
        |lane| active(lane).then_some(100 + (lane ^ 2)),
    );
}

#[test]
fn dpp8_moves_lanes_in_groups_of_eight() {
    let select = [7, 6, 5, 4, 0, 0, 2, 1];
    check("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,0,0,2,1]", &[0x7E0002E9, 0x28097701], ALL, |lane| {
        Some(100 + (lane & !7) + select[lane as usize % 8])
    });
    let low_half_of_groups = 0x0F0F_0F0F;
    check(
        "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,0,0,2,1]",
        &[0x7E0002E9, 0x28097701],
        low_half_of_groups,
        |lane| (lane % 8 < 4).then_some(0),
    );
    check(
        "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,0,0,2,1] fi:1",
        &[0x7E0002EA, 0x28097701],
        low_half_of_groups,
        |lane| (lane % 8 < 4).then_some(100 + (lane & !7) + select[lane as usize % 8]),
    );
}

/// The lane select applies to source 0 only, and a destination may be its own source.
#[test]
fn dpp_operations_gather_before_they_write() {
    check(
        "v_sub_nc_u32_dpp v0, v1, v2 row_ror:1 row_mask:0xf bank_mask:0xf",
        &[0x4C0004FA, 0xFF012101],
        ALL,
        |lane| Some((100 + (lane & 16) + (lane + 15) % 16).wrapping_sub(3 * lane)),
    );
    let start = numbered();
    let words =
        code("v_add_nc_u32_dpp v1, v1, v1 row_xmask:1 row_mask:0xf bank_mask:0xf", &[0x4A0202FA, 0xFF016101]);
    let end = run_all(&start, words);
    for lane in 0..LANES as u32 {
        assert_eq!(end.vector[1].0[lane as usize], 100 + lane + 100 + (lane ^ 1));
    }
    // The long encoding with modifiers on both sources.
    let mut start = numbered();
    for lane in 0..LANES {
        start.vector[1].0[lane] = (lane as f32).to_bits();
        start.vector[2].0[lane] = (-2.0 - lane as f32).to_bits();
    }
    let words = code(
        "v_mul_f32_e64_dpp v0, -v1, |v2| row_xmask:8 row_mask:0xf bank_mask:0xf",
        &[0xD5080200, 0x200204FA, 0xFF016801],
    );
    let end = run_all(&start, words);
    for lane in 0..LANES {
        assert_eq!(f32::from_bits(end.vector[0].0[lane]), -((lane ^ 8) as f32) * (2.0 + lane as f32));
    }
}

#[test]
fn a_full_reduction_adds_every_lane() {
    let mut start = numbered();
    for lane in 0..LANES {
        start.vector[3].0[lane] = 1 << (lane % 16);
    }
    start.scalar[10] = 0x7654_3210;
    start.scalar[11] = 0xFEDC_BA98;
    let words = code(
        "v_add_nc_u32_dpp v3, v3, v3 row_xmask:1 row_mask:0xf bank_mask:0xf; v_add_nc_u32_dpp v3, v3, v3 row_xmask:2 row_mask:0xf bank_mask:0xf; v_add_nc_u32_dpp v3, v3, v3 row_xmask:4 row_mask:0xf bank_mask:0xf; v_add_nc_u32_dpp v3, v3, v3 row_xmask:8 row_mask:0xf bank_mask:0xf; v_permlanex16_b32 v4, v3, s10, s11; v_add_nc_u32_e32 v3, v3, v4",
        &[
            0x4A0606FA, 0xFF016103, 0x4A0606FA, 0xFF016203, 0x4A0606FA, 0xFF016403, 0x4A0606FA, 0xFF016803,
            0xD65C0004, 0x002C1503, 0x4A060903,
        ],
    );
    let end = run_all(&start, words);
    assert_eq!(end.vector[3].0, [2 * 0xFFFF; LANES]);
}

#[test]
fn permlanes() {
    let mut start = numbered();
    start.scalar[10] = 0x7654_3210;
    start.scalar[11] = 0x0000_0FFF;
    let place = |lane: usize| [0, 1, 2, 3, 4, 5, 6, 7, 15, 15, 15, 0, 0, 0, 0, 0][lane % 16];
    let end = run_all(&start, code("v_permlane16_b32 v0, v1, s10, s11", &[0xD65B0000, 0x002C1501]));
    for lane in 0..LANES {
        assert_eq!(end.vector[0].0[lane], 100 + (lane & 16) as u32 + place(lane));
    }
    let end = run_all(&start, code("v_permlanex16_b32 v0, v1, s10, s11", &[0xD65C0000, 0x002C1501]));
    for lane in 0..LANES {
        assert_eq!(end.vector[0].0[lane], 100 + (lane & 16 ^ 16) as u32 + place(lane));
    }
    // Only the low row is active: the other row's sources are not readable.
    start.scalar[126] = 0xFFFF;
    let end = run_all(&start, code("v_permlanex16_b32 v0, v1, s10, s11", &[0xD65C0000, 0x002C1501]));
    assert_eq!(end.vector[0], start.vector[0]);
    let end =
        run_all(&start, code("v_permlanex16_b32 v0, v1, s10, s11 op_sel:[0,1]", &[0xD65C1000, 0x002C1501]));
    assert_eq!(end.vector[0].0[..16], [0; 16]);
    assert_eq!(end.vector[0].0[16..], start.vector[0].0[16..]);
    let end =
        run_all(&start, code("v_permlanex16_b32 v0, v1, s10, s11 op_sel:[1,0]", &[0xD65C0800, 0x002C1501]));
    for lane in 0..16 {
        assert_eq!(end.vector[0].0[lane], 116 + place(lane));
    }
    // Selectors from a vector register: 3 · lane mod 16.
    start.scalar[126] = ALL;
    let end = run_all(&start, code("v_permlane16_var_b32 v0, v1, v2", &[0xD70F0000, 0x00020501]));
    for lane in 0..LANES {
        assert_eq!(end.vector[0].0[lane], 100 + (lane & 16) as u32 + 3 * lane as u32 % 16);
    }
    let end = run_all(&start, code("v_permlanex16_var_b32 v0, v1, v2", &[0xD7100000, 0x00020501]));
    for lane in 0..LANES {
        assert_eq!(end.vector[0].0[lane], 100 + (lane & 16 ^ 16) as u32 + 3 * lane as u32 % 16);
    }
    let end = run_all(&start, code("v_permlane64_b32_e32 v0, v1", &[0x7E00CF01]));
    assert_same(&end, &start, "v_permlane64 does nothing in wave32");
}

#[test]
fn lanes_to_and_from_scalars() {
    let mut start = numbered();
    start.scalar[10] = 37;
    start.scalar[126] = 0xFFFF_FF00;
    assert_eq!(run_all(&start, code("v_readfirstlane_b32 s4, v1", &[0x7E080501])).scalar[4], 108);
    assert_eq!(
        run_all(&start, code("v_readlane_b32 s4, v1, 3", &[0xD7600004, 0x00010701])).scalar[4],
        103,
        "readlane ignores EXEC"
    );
    assert_eq!(
        run_all(&start, code("v_readlane_b32 s4, v1, s10", &[0xD7600004, 0x00001501])).scalar[4],
        105,
        "the lane number is modulo 32"
    );
    let end = run_all(&start, code("v_writelane_b32 v1, s10, 2", &[0xD7610001, 0x0001040A]));
    let mut expected = start.vector[1];
    expected.0[2] = 37;
    assert_eq!(end.vector[1], expected);
    let end = run_all(&start, code("v_writelane_b32 v1, -5, m0", &[0xD7610001, 0x0000FAC5]));
    assert_eq!(end.vector[1].0[0], -5i32 as u32);
    start.scalar[126] = 0;
    assert_eq!(
        run_all(&start, code("v_readfirstlane_b32 s4, v1", &[0x7E080501])).scalar[4],
        100,
        "no lane active: lane 0"
    );
}

#[test]
fn comparisons_write_active_bits() {
    let mut start = numbered();
    let words = code("v_cmp_gt_u32_e32 vcc_lo, 30, v2", &[0x7C98049E]);
    assert_eq!(run_all(&start, words).scalar[106], 0x3FF);
    start.scalar[126] = 0x0000_F0F0;
    assert_eq!(run_all(&start, words).scalar[106], 0x0F0 & 0x3FF);
    assert_eq!(
        run_all(&start, code("v_cmp_lt_u32_e64 s8, v2, v1", &[0xD4490008, 0x00020302])).scalar[8],
        0xF0F0
    );
    assert_eq!(
        run_all(&start, code("v_cmp_eq_u32_e64 null, v1, v1", &[0xD44A007C, 0x00020301])).scalar[124],
        0,
        "null stays zero"
    );
    let end = run_all(&start, code("v_cmpx_gt_u32_e32 19, v2", &[0x7D980493]));
    assert_eq!(end.scalar[126], 0x70 & 0xF0F0);
    assert_eq!(end.scalar[106], start.scalar[106], "cmpx writes EXEC only");
    let end = run_all(&start, code("v_cmpx_le_i32_e64 v1, v1", &[0xD4C3007E, 0x00020301]));
    assert_eq!(end.scalar[126], 0xF0F0);
}

#[test]
fn float_comparisons_know_nan() {
    let mut start = wave();
    let nan = f32::NAN.to_bits();
    let (one, two) = (1.0f32.to_bits(), 2.0f32.to_bits());
    // Lanes: less, equal, greater, unordered, and -0 against +0.
    start.vector[1].0[..5].copy_from_slice(&[one, one, two, nan, 0x8000_0000]);
    start.vector[2].0[..5].copy_from_slice(&[two, one, one, one, 0]);
    start.scalar[126] = 0x1F;
    let cases: [(&str, &[u32], u32); 16] = [
        ("v_cmp_lt_f32_e32 vcc_lo, v1, v2", &[0x7C220501], 0b00001),
        ("v_cmp_eq_f32_e32 vcc_lo, v1, v2", &[0x7C240501], 0b10010),
        ("v_cmp_le_f32_e32 vcc_lo, v1, v2", &[0x7C260501], 0b10011),
        ("v_cmp_gt_f32_e32 vcc_lo, v1, v2", &[0x7C280501], 0b00100),
        ("v_cmp_lg_f32_e32 vcc_lo, v1, v2", &[0x7C2A0501], 0b00101),
        ("v_cmp_ge_f32_e32 vcc_lo, v1, v2", &[0x7C2C0501], 0b10110),
        ("v_cmp_o_f32_e32 vcc_lo, v1, v2", &[0x7C2E0501], 0b10111),
        ("v_cmp_u_f32_e32 vcc_lo, v1, v2", &[0x7C300501], 0b01000),
        ("v_cmp_nge_f32_e32 vcc_lo, v1, v2", &[0x7C320501], 0b01001),
        ("v_cmp_nlg_f32_e32 vcc_lo, v1, v2", &[0x7C340501], 0b11010),
        ("v_cmp_ngt_f32_e32 vcc_lo, v1, v2", &[0x7C360501], 0b11011),
        ("v_cmp_nle_f32_e32 vcc_lo, v1, v2", &[0x7C380501], 0b01100),
        ("v_cmp_neq_f32_e32 vcc_lo, v1, v2", &[0x7C3A0501], 0b01101),
        ("v_cmp_nlt_f32_e32 vcc_lo, v1, v2", &[0x7C3C0501], 0b11110),
        ("v_cmp_lt_f32_e64 vcc_lo, v1, -v2", &[0xD411006A, 0x40020501], 0b00000),
        ("v_cmp_gt_f32_e64 vcc_lo, |v1|, -v2", &[0xD414016A, 0x40020501], 0b00111),
    ];
    for (text, words, expected) in cases {
        assert_eq!(run_all(&start, words).scalar[106], expected, "{text}");
    }
}

#[test]
fn classes() {
    let mut start = wave();
    let values = [
        0x7F80_0001,
        0x7FC0_0000,
        0xFF80_0000,
        0xBF80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        1,
        0x3F80_0000,
        0x7F80_0000,
    ];
    start.vector[1].0[..10].copy_from_slice(&values);
    start.scalar[126] = 0x3FF;
    for class in 0..10u32 {
        start.scalar[4] = 1 << class;
        let end = run_all(&start, code("v_cmp_class_f32_e64 vcc_lo, v1, s4", &[0xD47E006A, 0x00000901]));
        assert_eq!(end.scalar[106], 1 << class, "class {class}");
        // Flushing denormal sources does not hide them from the class test.
        start.mode = 0;
        let end = run_all(&start, code("v_cmp_class_f32_e64 vcc_lo, v1, s4", &[0xD47E006A, 0x00000901]));
        assert_eq!(end.scalar[106], 1 << class, "class {class}");
        start.mode = 0xF0;
    }
    let halves = [0x7C01, 0x7E00, 0xFC00, 0xBC00, 0x8001, 0x8000, 0, 1, 0x3C00, 0x7C00];
    start.vector[1].0[..10].copy_from_slice(&halves);
    start.scalar[4] = 0x3FF;
    assert_eq!(
        run_all(&start, code("v_cmp_class_f16_e64 vcc_lo, v1, s4", &[0xD47D006A, 0x00000901])).scalar[106],
        0x3FF
    );
    start.scalar[4] = 0b11 << 6;
    assert_eq!(
        run_all(&start, code("v_cmp_class_f16_e64 vcc_lo, v1, s4", &[0xD47D006A, 0x00000901])).scalar[106],
        0b11 << 6
    );
}

#[test]
fn pairs_read_before_they_write() {
    let mut start = wave();
    let mut random = Random::new(23);
    for register in 0..8 {
        for lane in 0..LANES {
            start.vector[register].0[lane] = (random.next() as i32 as f32).to_bits();
        }
    }
    start.scalar[126] = random.next();
    start.scalar[106] = random.next();
    let value = |register: usize, lane: usize| f32::from_bits(start.vector[register].0[lane]);
    // v0 and v3 are exchanged, with additions at the same time.
    let check = |text: &str, words: &[u32], x: &dyn Fn(usize) -> u32, y: &dyn Fn(usize) -> u32| {
        let end = run_all(&start, words);
        for lane in 0..LANES {
            let active = start.scalar[126] >> lane & 1 != 0;
            let kept = (start.vector[0].0[lane], start.vector[3].0[lane]);
            let expected = if active { (x(lane), y(lane)) } else { kept };
            assert_eq!((end.vector[0].0[lane], end.vector[3].0[lane]), expected, "{text} lane {lane}");
        }
    };
    check(
        "v_dual_add_f32 v0, v3, v1 :: v_dual_sub_f32 v3, v0, v2",
        &[0xC90A0303, 0x00020500],
        &|lane| (value(3, lane) + value(1, lane)).to_bits(),
        &|lane| (value(0, lane) - value(2, lane)).to_bits(),
    );
    check(
        "v_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5",
        &[0xC8060501, 0x00020B04],
        &|lane| value(1, lane).mul_add(value(2, lane), value(0, lane)).to_bits(),
        &|lane| (value(4, lane) * value(5, lane)).to_bits(),
    );
    check(
        "v_dual_fmaak_f32 v0, v1, v2, 0x40490fdb :: v_dual_fmamk_f32 v3, v4, 0x40490fdb, v5",
        &[0xC8440501, 0x00020B04, 0x40490FDB],
        &|lane| value(1, lane).mul_add(value(2, lane), core::f32::consts::PI).to_bits(),
        &|lane| value(4, lane).mul_add(core::f32::consts::PI, value(5, lane)).to_bits(),
    );
    check(
        "v_dual_mov_b32 v0, s5 :: v_dual_cndmask_b32 v3, v0, v1",
        &[0xCA120005, 0x00020300],
        &|_| start.scalar[5],
        &|lane| start.vector[if start.scalar[106] >> lane & 1 != 0 { 1 } else { 0 }].0[lane],
    );
    check(
        "v_dual_max_num_f32 v0, v1, v2 :: v_dual_min_num_f32 v3, v4, v5",
        &[0xCA960501, 0x00020B04],
        &|lane| value(1, lane).max(value(2, lane)).to_bits(),
        &|lane| value(4, lane).min(value(5, lane)).to_bits(),
    );
    check(
        "v_dual_subrev_f32 v0, v1, v2 :: v_dual_lshlrev_b32 v3, 3, v5",
        &[0xC9A20501, 0x00020A83],
        &|lane| (value(2, lane) - value(1, lane)).to_bits(),
        &|lane| start.vector[5].0[lane] << 3,
    );
    check(
        "v_dual_mul_dx9_zero_f32 v0, 0, v2 :: v_dual_and_b32 v3, 0xff00ff, v5",
        &[0xC9E40480, 0x00020AFF, 0x00FF00FF],
        &|_| 0,
        &|lane| start.vector[5].0[lane] & 0xFF00FF,
    );
    check(
        "v_dual_mov_b32 v0, 1.0 :: v_dual_add_nc_u32 v3, v4, v5",
        &[0xCA2000F2, 0x00020B04],
        &|_| 0x3F80_0000,
        &|lane| start.vector[4].0[lane].wrapping_add(start.vector[5].0[lane]),
    );
    // A flushing mode uses the exact models, with the same result: nothing here is denormal.
    let words = code("v_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5", &[0xC8060501, 0x00020B04]);
    let usual = run_all(&start, words);
    let mut flushing = start.clone();
    flushing.mode = 0xC0;
    assert_same(&run_all(&flushing, words), &usual, "v_dual in a flushing mode");
}

#[test]
fn swaps_and_relative_moves() {
    let mut start = numbered();
    start.scalar[126] = 0x0000_FFFF;
    let end = run_all(&start, code("v_swap_b32 v1, v2", &[0x7E02CB02]));
    for lane in 0..LANES as u32 {
        let swapped = if lane < 16 { (3 * lane, 100 + lane) } else { (100 + lane, 3 * lane) };
        assert_eq!((end.vector[1].0[lane as usize], end.vector[2].0[lane as usize]), swapped);
    }
    start.vector[1].0[3] = 0x1111_2222;
    start.vector[2].0[3] = 0x3333_4444;
    start.vector[2].0[20] = 0x3333_4444;
    for (word, left, right) in [
        (0x7F02_CD02_u32, 0x4444_2222, 0x3333_1111), // v_swap_b16 v1.h, v2.l
        (0x7E02_CD82, 0x1111_3333, 0x2222_4444),     // v_swap_b16 v1.l, v2.h
        (0x7E02_CD81, 0x2222_1111, 0x3333_4444),     // v_swap_b16 v1.l, v1.h
    ] {
        let end = run_all(&start, &[word]);
        assert_eq!((end.vector[1].0[3], end.vector[2].0[3]), (left, right), "{word:#x}");
        assert_eq!(end.vector[2].0[20], 0x3333_4444);
    }
    start = numbered();
    start.scalar[126] = ALL;
    start.scalar[125] = 3;
    assert_eq!(run_all(&start, code("v_movrels_b32_e32 v10, v1", &[0x7E148701])).vector[10], start.vector[4]);
    assert_eq!(run_all(&start, code("v_movreld_b32_e32 v10, v1", &[0x7E148501])).vector[13], start.vector[1]);
    assert_eq!(
        run_all(&start, code("v_movrelsd_b32_e32 v10, v1", &[0x7E148901])).vector[13],
        start.vector[4]
    );
    start.scalar[125] = 5 << 16 | 2;
    assert_eq!(
        run_all(&start, code("v_movrelsd_2_b32_e32 v10, v1", &[0x7E149101])).vector[15],
        start.vector[3]
    );
    let end = run_all(&start, code("v_swaprel_b32 v10, v1", &[0x7E14D101]));
    assert_eq!((end.vector[15], end.vector[3]), (start.vector[3], start.vector[15]));
    // Beyond the allocation: v0 is read, nothing is written.
    start.vector_count = 16;
    start.scalar[125] = 100;
    assert_eq!(run_all(&start, code("v_movrels_b32_e32 v10, v1", &[0x7E148701])).vector[10], start.vector[0]);
    assert_same(
        &run_all(&start, code("v_movreld_b32_e32 v10, v1", &[0x7E148501])),
        &start,
        "v_movreld beyond the allocation",
    );
}

#[test]
fn computed_scalar_sources() {
    let mut start = numbered();
    start.scc = true;
    let read = |wave: &Wave, words: &[u32]| run_all(wave, words).vector[0].0[7];
    assert_eq!(read(&start, code("v_mov_b32_e32 v0, src_scc", &[0x7E0002FD])), 1);
    assert_eq!(read(&start, code("v_add_nc_u32_e32 v0, src_scc, v2", &[0x4A0004FD])), 22);
    start.scalar[106] = 4;
    start.scc = false;
    assert_eq!(read(&start, code("v_add_nc_u32_e32 v0, src_scc, v2", &[0x4A0004FD])), 21);
    assert_eq!(read(&start, code("v_mov_b32_e32 v0, null", &[0x7E00027C])), 0);
    let mut direct = start.clone();
    run(&mut direct, code("v_mov_b32_e32 v0, vcc_lo", &[0x7E00026A]), Level::BASELINE);
    assert_eq!(direct.vector[0].0, [4; LANES]);
}
