//! Unwritten values (instruction set reference §3), carried silently and reported where they matter; and disabled
//! lanes.

use super::*;
use crate::shader::address::PRIVATE_APERTURE_HIGH;
use zrt_isa::effects::Registers;

/// Registers, origin and first lane of each finding of rule 3, after `words` with two user SGPRs in all lanes.
pub(super) fn missing(wave_size: WaveSize, words: &[u32]) -> Vec<String> {
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(wave_size) });
    walk.run(words);
    list(&walk)
}

/// In the form `v2 lane 3 of v1`: v2 was computed from v1, which was never written.
pub(super) fn list(walk: &Walk) -> Vec<String> {
    let named = |finding: &RegisterFinding| {
        let registers = finding.registers.unwrap();
        let lane = finding.lane.map(|lane| format!(" lane {lane}")).unwrap_or_default();
        match finding.defect {
            Defect::Unwritten => Some(format!("{registers}{lane}")),
            Defect::Undefined(origin) => Some(format!("{registers}{lane} of {origin}")),
            Defect::PartlyUndefined => Some(format!("{registers}{lane} in part")),
            _ => None,
        }
    };
    walk.findings.iter().filter_map(named).collect()
}

pub(super) const ALL: u64 = 0xffff_ffff;
/// `global_store_b32 v0, v1, s[0:1]`, and so on.
pub(super) const STORE_V1: [u32; 3] = [0xee068000, 0x00800000, 0x00000000];
pub(super) const STORE_V2: [u32; 3] = [0xee068000, 0x01000000, 0x00000000];
const STORE_V3: [u32; 3] = [0xee068000, 0x01800000, 0x00000000];

macro_rules! missing {
    ($($name:ident: $expected:literal; [$($wrong:tt)*] [$($right:tt)*])*) => {
        $(#[test]
        fn $name() {
            assert_eq!(missing(WaveSize::Wave32, &[$($wrong)*]), [$expected]);
            assert_eq!(missing(WaveSize::Wave32, &[$($right)*]), [""; 0]);
        })*
    };
}

missing! {
    // A copy does not count as a use.
    address: "s[2:3]";
    [
        0xf4000101, 0xf8000000, // s_load_b32 s4, s[2:3], 0x0
    ]
    [
        0xbe840002, // s_mov_b32 s4, s2
        0xbe820100, // s_mov_b64 s[2:3], s[0:1]
        0xf4000101, 0xf8000000, // s_load_b32 s4, s[2:3], 0x0
    ]

    half_of_an_address: "s3";
    [
        0xbe820080, // s_mov_b32 s2, 0
        0xf4000101, 0xf8000000, // s_load_b32 s4, s[2:3], 0x0
    ]
    [
        0xbe820080, // s_mov_b32 s2, 0
        0xbe830080, // s_mov_b32 s3, 0
        0xf4000101, 0xf8000000, // s_load_b32 s4, s[2:3], 0x0
    ]

    launch_temporaries: "scc of ttmp6";
    [
        0xbe840072, // s_mov_b32 s4, ttmp6
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]
    [
        0x80047473, // s_add_co_u32 s4, ttmp7, ttmp8
        0x80047504, // s_add_co_u32 s4, s4, ttmp9
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]

    stored: "v1 lane 0";
    [
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]
    [
        0xee068000, 0x00000000, 0x00000000, // global_store_b32 v0, v0, s[0:1]
    ]

    stored_copy: "v2 lane 0 of v1";
    [
        0x7e040301, // v_mov_b32_e32 v2, v1
        0xee068000, 0x01000000, 0x00000000, // global_store_b32 v0, v2, s[0:1]
    ]
    [
        0x7e040301, // v_mov_b32_e32 v2, v1
        0x7e040300, // v_mov_b32_e32 v2, v0
        0xee068000, 0x01000000, 0x00000000, // global_store_b32 v0, v2, s[0:1]
    ]

    // Reported only once.
    the_same_again: "v1 lane 0";
    [
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]
    [
        0xee050000, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[0:1]
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]

    condition_code: "scc";
    [
        0x96020100, // s_mul_i32 s2, s0, s1
        0xbfa20000, // s_cbranch_scc1 0
    ]
    [
        0x80020100, // s_add_co_u32 s2, s0, s1
        0xbfa20000, // s_cbranch_scc1 0
    ]

    vcc: "vcc_lo";
    [
        0xbfa30000, // s_cbranch_vccz 0
    ]
    [
        0x7c940080, // v_cmp_eq_u32_e32 vcc_lo, 0, v0
        0xbfa30000, // s_cbranch_vccz 0
    ]

    comparison: "vcc_lo of v1";
    [
        0x7c940280, // v_cmp_eq_u32_e32 vcc_lo, 0, v1
        0xbfa30000, // s_cbranch_vccz 0
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0x7c940280, // v_cmp_eq_u32_e32 vcc_lo, 0, v1
        0xbfa30000, // s_cbranch_vccz 0
    ]

    lanes_switched_off: "s2";
    [
        0xbe842002, // s_and_saveexec_b32 s4, s2
    ]
    // All lanes, whatever their old values.
    [
        0xbe8422c1, // s_or_saveexec_b32 s4, -1
        0x8b040200, // s_and_b32 s4, s0, s2
    ]

    exec_of_a_comparison: "v1 lane 0";
    [
        0x7d940280, // v_cmpx_eq_u32_e32 0, v1
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0x7d940280, // v_cmpx_eq_u32_e32 0, v1
    ]

    number_of_a_lane: "s2";
    [
        0xd7600004, 0x00000500, // v_readlane_b32 s4, v0, s2
    ]
    [
        0xd7600004, 0x00000300, // v_readlane_b32 s4, v0, s1
    ]

    lanes_by_address: "v1 lane 0";
    [
        0xdacc0000, 0x02000001, // ds_bpermute_b32 v2, v1, v0
    ]
    [
        0xdacc0000, 0x02000100, // ds_bpermute_b32 v2, v0, v1
    ]

    sleep: "s2";
    [
        0xbe805802, // s_sleep_var s2
    ]
    [
        0xbe805801, // s_sleep_var s1
    ]

    jump: "s[2:3]";
    [
        0xbe804802, // s_setpc_b64 s[2:3]
    ]
    [
        0xbe804800, // s_setpc_b64 s[0:1]
    ]

    m0_of_an_lds_address: "m0";
    [
        0xdac40000, 0x01000000, // ds_load_addtid_b32 v1
    ]
    [
        0xbefd0080, // s_mov_b32 m0, 0
        0xdac40000, 0x01000000, // ds_load_addtid_b32 v1
    ]

    m0_of_a_message: "m0";
    [
        0xbfb60001, // s_sendmsg sendmsg(MSG_INTERRUPT)
    ]
    // Releasing the vector registers sends nothing.
    [
        0xbfb60003, // s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    ]

    address_in_lds: "v1 lane 0";
    [
        0xd8d80000, 0x02000001, // ds_load_b32 v2, v1
    ]
    [
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
        0xd8340000, 0x00000200, // ds_store_b32 v0, v2
    ]

    stored_to_lds: "v1 lane 0";
    [
        0xd8340000, 0x00000100, // ds_store_b32 v0, v1
    ]
    // Private memory is treated like registers: storing to it is no use.
    [
        0xed068000, 0x00800000, 0x00000000, // scratch_store_b32 off, v1, s0
        0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
    ]

    spilled: "v2 lane 0 of v1";
    [
        0xed068000, 0x00800000, 0x00000000, // scratch_store_b32 off, v1, s0
        0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
        0xd8340000, 0x00000200, // ds_store_b32 v0, v2
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0xed068000, 0x00800000, 0x00000000, // scratch_store_b32 off, v1, s0
        0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
        0xd8340000, 0x00000200, // ds_store_b32 v0, v2
    ]

    private_that_nothing_wrote: "v2 lane 0 of byte 0 of private memory";
    [
        0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
        0xd8340000, 0x00000200, // ds_store_b32 v0, v2
    ]
    [
        0xed068000, 0x00000000, 0x00000000, // scratch_store_b32 off, v0, s0
        0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
        0xd8340000, 0x00000200, // ds_store_b32 v0, v2
    ]

    added_to_memory: "v1 lane 0";
    [
        0xee0d4000, 0x00800000, 0x00000000, // global_atomic_add_u32 v0, v1, s[0:1]
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0xee0d4000, 0x00800000, 0x00000000, // global_atomic_add_u32 v0, v1, s[0:1]
    ]

    both_dwords: "v[1:2] lane 0";
    [
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0x7e040280, // v_mov_b32_e32 v2, 0
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
    ]

    one_of_two_dwords: "v2 lane 0";
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]

    // Three numbers in the place of four: perhaps unintended.
    padding: "v[4:7] lane 0 in part";
    [
        0x7e080280, // v_mov_b32_e32 v4, 0
        0x7e0a0280, // v_mov_b32_e32 v5, 0
        0x7e0c0280, // v_mov_b32_e32 v6, 0
        0xee074000, 0x02000000, 0x00000000, // global_store_b128 v0, v[4:7], s[0:1]
    ]
    [
        0x7e080280, // v_mov_b32_e32 v4, 0
        0x7e0a0280, // v_mov_b32_e32 v5, 0
        0x7e0c0280, // v_mov_b32_e32 v6, 0
        0xee070000, 0x02000000, 0x00000000, // global_store_b96 v0, v[4:6], s[0:1]
    ]

    accumulator: "v1 lane 0";
    [
        0x56020100, // v_fmac_f32_e32 v1, v0, v0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]
    [
        0x10020100, // v_mul_f32_e32 v1, v0, v0
        0x56020100, // v_fmac_f32_e32 v1, v0, v0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]

    // The low half of a multiply-add needs only the low half of the addend.
    high_half_of_a_sum: "v5 lane 0 of v3";
    [
        0x7e040280, // v_mov_b32_e32 v2, 0
        0xd6fe6a04, 0x040a0100, // v_mad_co_u64_u32 v[4:5], vcc_lo, v0, v0, v[2:3]
        0xee068000, 0x02800000, 0x00000000, // global_store_b32 v0, v5, s[0:1]
    ]
    [
        0x7e040280, // v_mov_b32_e32 v2, 0
        0xd6fe6a04, 0x040a0100, // v_mad_co_u64_u32 v[4:5], vcc_lo, v0, v0, v[2:3]
        0xee068000, 0x02000000, 0x00000000, // global_store_b32 v0, v4, s[0:1]
    ]

    other_half: "v3 lane 0 of v2";
    [
        0x7e043880, // v_mov_b16_e32 v2.l, 0
        0x32060490, // v_lshrrev_b32_e32 v3, 16, v2
        0xee068000, 0x01800000, 0x00000000, // global_store_b32 v0, v3, s[0:1]
    ]
    [
        0x7e043880, // v_mov_b16_e32 v2.l, 0
        0x360604ff, 0x0000ffff, // v_and_b32_e32 v3, 0xffff, v2
        0xee068000, 0x01800000, 0x00000000, // global_store_b32 v0, v3, s[0:1]
        0xee064000, 0x01000000, 0x00000000, // global_store_b16 v0, v2, s[0:1]
    ]

    half_that_is_stored: "v2 lane 0";
    [
        0x7e043880, // v_mov_b16_e32 v2.l, 0
        0xee094000, 0x01000000, 0x00000000, // global_store_d16_hi_b16 v0, v2, s[0:1]
    ]
    [
        0x7f043880, // v_mov_b16_e32 v2.h, 0
        0xee094000, 0x01000000, 0x00000000, // global_store_d16_hi_b16 v0, v2, s[0:1]
    ]

    half_that_is_loaded: "v2 lane 0 in part";
    [
        0xee080000, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[0:1]
        0xee068000, 0x01000000, 0x00000000, // global_store_b32 v0, v2, s[0:1]
    ]
    [
        0xee080000, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[0:1]
        0xee08c000, 0x00000002, 0x00000000, // global_load_d16_hi_b16 v2, v0, s[0:1]
        0xee068000, 0x01000000, 0x00000000, // global_store_b32 v0, v2, s[0:1]
    ]

    wide_scalar_load: "scc of s8";
    [
        0xf4004100, 0xf8000000, // s_load_b128 s[4:7], s[0:1], 0x0
        0xbf068008, // s_cmp_eq_u32 s8, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]
    [
        0xf4004100, 0xf8000000, // s_load_b128 s[4:7], s[0:1], 0x0
        0xbf068007, // s_cmp_eq_u32 s7, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]

    saved_exec: "s3";
    [
        0xbe822000, // s_and_saveexec_b32 s2, s0
        0x8b7e037e, // s_and_b32 exec_lo, exec_lo, s3
    ]
    [
        0xbe822000, // s_and_saveexec_b32 s2, s0
        0x8b7e027e, // s_and_b32 exec_lo, exec_lo, s2
    ]

    // Only lane 3 is written, whatever EXEC says.
    one_lane: "v1 lane 0";
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0xd7600004, 0x00010701, // v_readlane_b32 s4, v1, 3
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]

    another_lane: "scc of v1";
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0xd7600004, 0x00010901, // v_readlane_b32 s4, v1, 4
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]
    [
        0xd7610001, 0x00014600, // v_writelane_b32 v1, s0, 35
        0xd7600004, 0x00010701, // v_readlane_b32 s4, v1, 3
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ]

    exchanged: "v0 lane 0 of v1";
    [
        0x7e00cb01, // v_swap_b32 v0, v1
        0xee068000, 0x00000000, 0x00000000, // global_store_b32 v0, v0, s[0:1]
    ]
    [
        0x7e00cb01, // v_swap_b32 v0, v1
        0x7e00cb01, // v_swap_b32 v0, v1
        0xee068000, 0x00000000, 0x00000000, // global_store_b32 v0, v0, s[0:1]
    ]
}

#[test]
fn selected_by_lane() {
    let words = [
        0x02040300, // v_cndmask_b32_e32 v2, v0, v1, vcc_lo
    ];
    for (mask, expected) in [(0, None), (8, Some("v2 lane 3 of v1"))] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 106, ..launch(WaveSize::Wave32) });
        walk.scalar[106] = mask;
        walk.run(&[
            0xbeea0100, // s_mov_b64 vcc, s[0:1]
        ]);
        walk.run(&words);
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

/// A sum with an undefined value is undefined; a product with zero, or a masked value, is not.
#[test]
fn values_decide() {
    let cases: [(&str, &[u32], u32, bool); 4] = [
        ("v_add_nc_u32 v2, v1, v0", &[0x4a040101], 0, true),
        ("v_mul_lo_u32 v2, v1, v0", &[0xd72c0002, 0x00020101], 0, false),
        ("v_mul_lo_u32 v2, v1, v0", &[0xd72c0002, 0x00020101], 1, true),
        ("v_and_b32 v2, v1, v0", &[0x36040101], 0, false),
    ];
    for (text, words, value, is_undefined) in cases {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.set_vector(0, value);
        walk.run(words);
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), vec!["v2 lane 0 of v1"; usize::from(is_undefined)], "{text}, v0 = {value}");
    }
}

/// Flat stores go to private memory if the address selects it.
#[test]
fn flat_stores() {
    let words = [
        0x7e040280, // v_mov_b32_e32 v2, 0
        0x7e060280, // v_mov_b32_e32 v3, 0
        0xec06807c, 0x02000000, 0x00000002, // flat_store_b32 v[2:3], v4
    ];
    for (high, expected) in [(PRIVATE_APERTURE_HIGH, None), (1, Some("v4 lane 0"))] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.set_vector(3, high);
        walk.run(&words);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

/// The wave's registers are unchanged after an instruction has been tried.
#[test]
fn trials_leave_no_trace() {
    for wave_size in [WaveSize::Wave32, WaveSize::Wave64] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(wave_size) });
        (0..8).for_each(|number| walk.set_vector(number, 0x1234_5678 + number as u32));
        let before = walk.wave.clone();
        walk.run(&[
            0x7e040301, // v_mov_b32_e32 v2, v1
            0xd6fe6a04, 0x040a0100, // v_mad_co_u64_u32 v[4:5], vcc, v0, v0, v[2:3]
            0x7d940280, // v_cmpx_eq_u32_e32 0, v1
            0x80020302, // s_add_co_u32 s2, s2, s3
            0xbfa20010, // s_cbranch_scc1 16
        ]);
        let after = &walk.wave;
        assert!(after.vector == before.vector && after.other_half == before.other_half);
        assert_eq!((after.scalar[..126].to_vec(), after.scc), (before.scalar[..126].to_vec(), before.scc));
        assert_eq!((after.next, after.mode, after.is_high), (before.next, before.mode, before.is_high));
        assert_eq!(after.scalar_pair(EXEC_LO), walk.exec);
    }
}

/// A wave whose instructions cannot be tried: the results are entirely undefined in the active lanes.
#[test]
fn what_cannot_be_tried_is_undefined() {
    struct Untried {
        exec: u64,
        scalar: [u32; 128],
    }
    impl Subject for Untried {
        fn exec(&self) -> u64 {
            self.exec
        }

        fn scalar(&self) -> &[u32] {
            &self.scalar
        }

        fn vector(&self, _: u8, _: u32) -> u32 {
            0
        }

        fn vary(&mut self, _: &[Undefined], _: &[Registers]) -> Option<Outcome> {
            None
        }
    }
    let note = |word| Note::new(&decode_for(&[word], WaveSize::Wave32).unwrap(), WaveSize::Wave32);
    let add = note(0x4a040101); // v_add_nc_u32_e32 v2, v1, v0
    for (exec, expected) in [
        (0x0f, Some("v2 lane 0 of v1")),
        (0x0c, Some("v2 lane 2 of v1")),
        (0xf0, Some("v2 lane 4 of v1")),
        (0xe0, None),
    ] {
        let mut walk =
            Walk::new(&LaunchState { user_sgprs: 2, lanes_mask: 0xff, ..launch(WaveSize::Wave32) });
        walk.exec = 0xf2;
        walk.run(&[
            0x7e040280, // v_mov_b32_e32 v2, 0
        ]);
        let mut untried = Untried { exec: 0x11, scalar: [0; 128] };
        let findings = &mut walk.findings;
        walk.shadow.before(&add, 0, &mut untried, &mut |finding| findings.push(finding));
        walk.exec = exec;
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>(), "{exec:#x}");
    }
    // If it reads nothing undefined, it is taken for a definition of all that it writes.
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
    let mut untried = Untried { exec: ALL, scalar: [0; 128] };
    let half = note(0x7e043880); // v_mov_b16_e32 v2.l, 0
    walk.shadow.before(&half, 0, &mut untried, &mut |_| ());
    walk.run(&STORE_V2);
    assert_eq!(list(&walk), [""; 0]);
}

#[test]
fn lanes_count_one_by_one() {
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, lanes_mask: 0xff, ..launch(WaveSize::Wave32) });
    walk.exec = 0x0f;
    walk.run(&[
        0x7e020280, // v_mov_b32_e32 v1, 0
    ]);
    walk.exec = 0x3c;
    walk.run(&STORE_V1);
    assert_eq!(list(&walk), ["v1 lane 4"]);
    walk.findings.clear();
    // Lanes that were inactive at the start; v0 is not written in them.
    walk.exec = 0x1ff;
    walk.run(&[
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e000280, // v_mov_b32_e32 v0, 0
    ]);
    walk.run(&STORE_V2);
    assert_eq!(list(&walk), ["v2 lane 8 of v0"]);
}

#[test]
fn first_lane() {
    let prepare = [
        0x7e020280, // v_mov_b32_e32 v1, 0
    ];
    let read = [
        0x7e080501, // v_readfirstlane_b32 s4, v1
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20000, // s_cbranch_scc1 0
    ];
    for (written, exec, count) in [(0x4, 0xc, 0), (0x8, 0xc, 1), (0x8, 0, 1), (1, 0, 0)] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.exec = written;
        walk.run(&prepare);
        walk.exec = exec;
        walk.run(&read);
        assert_eq!(list(&walk), vec!["scc of v1"; count], "{written:#x} {exec:#x}");
    }
}

/// Source lanes of DPP: unread lanes need not be written, and lanes without a source stay unwritten.
#[test]
fn lanes_of_a_row() {
    let prepare = [
        0x7e020280, // v_mov_b32_e32 v1, 0
    ];
    let walk = |written: u64, exec: u64, words: &[u32]| {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.exec = written;
        walk.run(&prepare);
        walk.exec = exec;
        walk.run(words);
        walk.run(&STORE_V2);
        list(&walk)
    };
    let none = [""; 0];
    let share = [
        0x7e0402fa, 0xff015501, // v_mov_b32_dpp v2, v1 row_share:5 row_mask:0xf bank_mask:0xf
    ];
    assert_eq!(walk(0x0020_0020, ALL, &share), none);
    assert_eq!(walk(0x0000_0020, ALL, &share), ["v2 lane 16 of v1"]);
    // Lane 0 has nothing to its left and keeps its old value, which was never written.
    let shift = [
        0x7e0402fa, 0xff011101, // v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf
    ];
    assert_eq!(walk(ALL, ALL, &shift), ["v2 lane 0"]);
    let shift_or_zero = [
        0x7e0402fa, 0xff091101, // v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
    ];
    assert_eq!(walk(ALL, ALL, &shift_or_zero), none);
    assert_eq!(walk(0x7fff_7fff, ALL, &shift_or_zero), none);
    assert_eq!(walk(0x7fff_7ffe, ALL, &shift_or_zero), ["v2 lane 1 of v1"]);
    // Masked rows are neither read nor written.
    let masked = [
        0x7e0402fa, 0x1f000001, // v_mov_b32_dpp v2, v1 quad_perm:[0,0,0,0] row_mask:0x1 bank_mask:0xf
    ];
    assert_eq!(walk(ALL, ALL, &masked), ["v2 lane 16"]);
    // With fetch-inactive, inactive lanes are read; lanes that were never active are not known to be undefined.
    let fetch = [
        0x7e0402fa,
        0xff04b101, // v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf fi:1
    ];
    assert_eq!(walk(0x1, 0x1, &fetch), ["v2 lane 0 of v1"]);
    let eight = [
        0x7e0402e9, 0xffffff01, // v_mov_b32_dpp v2, v1 dpp8:[7,7,7,7,7,7,7,7]
    ];
    assert_eq!(walk(0x8080_8080, ALL, &eight), none);
    assert_eq!(walk(0x8000_8080, ALL, &eight), ["v2 lane 16 of v1"]);
    // Inactive and not fetched: zero.
    assert_eq!(walk(0, 0x7f, &eight), none);
}

#[test]
fn selectors_in_scalar_registers() {
    let prepare = [
        0x7e020280, // v_mov_b32_e32 v1, 0
    ];
    let walk = |written: u64, words: &[u32]| {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        (walk.scalar[0], walk.scalar[1]) = (0x3333_3333, 0x3333_3333);
        walk.exec = written;
        walk.run(&prepare);
        walk.exec = ALL;
        walk.run(words);
        walk.run(&STORE_V2);
        list(&walk)
    };
    let exchange = [
        0xd65c0002, 0x00040101, // v_permlanex16_b32 v2, v1, s0, s1
    ];
    assert_eq!(walk(0x0008_0008, &exchange), [""; 0]);
    // Lanes 16 to 31 read lane 3.
    assert_eq!(walk(0x0008_0000, &exchange), ["v2 lane 16 of v1"]);
    assert_eq!(walk(0x0000_0008, &exchange), ["v2 lane 0 of v1"]);
}

#[test]
fn registers_that_m0_selects() {
    let prepare = [
        0xbefd0083, // s_mov_b32 m0, 3
        0x7e080280, // v_mov_b32_e32 v4, 0
    ];
    let read: &[u32] = &[
        0x7e048701, // v_movrels_b32_e32 v2, v1
    ];
    let write: &[u32] = &[
        0x7e048500, // v_movreld_b32_e32 v2, v0
        0x7e040305, // v_mov_b32_e32 v2, v5
    ];
    let both: &[u32] = &[
        0x7e0c0307, // v_mov_b32_e32 v6, v7
        0x7e049101, // v_movrelsd_2_b32_e32 v2, v1
        0x7e040306, // v_mov_b32_e32 v2, v6
    ];
    for (m0, words, expected) in [
        (3, read, None),
        (2, read, Some("v2 lane 0 of v3")),
        (3, write, None),
        (2, write, Some("v2 lane 0 of v5")),
        // The last register of the file, and the one after it.
        (254, read, Some("v2 lane 0 of v255")),
        (255, read, None),
        // The source is at bits 9:0, the destination at bits 25:16.
        (0x0000_0002, both, Some("v2 lane 0 of v7")),
        (0x0004_0002, both, Some("v2 lane 0 of v3")),
        (0x0004_0003, both, None),
        (0xfc04_fc03, both, None),
        // Outside the register file: no register.
        (u32::MAX, read, None),
    ] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.run(&prepare);
        walk.scalar[M0] = m0;
        walk.run(words);
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>(), "{m0} {words:x?}");
    }
    // Without a known m0, nothing is known.
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
    walk.run(read);
    assert_eq!(list(&walk), ["m0"]);
}

#[test]
fn wave64_masks_and_lanes() {
    let select = [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0xd5010001, 0x000a0100, // v_cndmask_b32_e64 v1, v0, v0, s[2:3]
    ];
    // Both selections are the same.
    assert_eq!(missing(WaveSize::Wave64, &[&select[..], &STORE_V1].concat()), [""; 0]);
    let branch = [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0xd44a0004, 0x00020300, // v_cmp_eq_u32_e64 s[4:5], v0, v1
        0xbf108004, // s_cmp_eq_u64 s[4:5], 0
        0xbfa20000, // s_cbranch_scc1 0
    ];
    assert_eq!(missing(WaveSize::Wave64, &branch), [""; 0]);
    assert_eq!(missing(WaveSize::Wave64, &branch[1..]), ["scc of v1"]);
    let upper = [
        0x7e020300, // v_mov_b32_e32 v1, v0
    ];
    let mut walk = Walk::new(&launch(WaveSize::Wave64));
    walk.exec = ALL << 32;
    walk.run(&upper);
    walk.exec = u64::MAX;
    walk.run(&[
        0x7e060301, // v_mov_b32_e32 v3, v1
    ]);
    walk.exec = ALL << 32;
    walk.run(&STORE_V3);
    assert_eq!(list(&walk), [""; 0]);
    walk.exec = u64::MAX;
    walk.run(&STORE_V3);
    assert_eq!(list(&walk), ["v3 lane 0 of v1"]);
}

#[test]
fn matrix_operations_need_all_lanes() {
    let multiply = [
        0xcc404010, 0x1a020900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], 0
    ];
    for (exec, lane) in [(ALL, None), (ALL & !0x80, Some(7))] {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.exec = exec;
        walk.run(&multiply);
        let found: Vec<_> =
            walk.findings.iter().filter(|finding| finding.defect == Defect::MatrixLanes).collect();
        assert_eq!(found.first().and_then(|finding| finding.lane), lane);
    }
}

#[test]
fn scratch_needs_scratch_memory() {
    let load = [
        0xed050000, 0x00000001, 0x00000000, // scratch_load_b32 v1, off, s0
    ];
    for (private_bytes, count) in [(64, 0), (0, 1)] {
        let mut walk = Walk::new(&LaunchState { private_bytes, ..launch(WaveSize::Wave32) });
        walk.run(&load);
        assert_eq!(walk.findings.len(), count);
    }
}
