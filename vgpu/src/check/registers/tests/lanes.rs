//! Unwritten values where lanes come and go, where data was loaded in that state, and where it once came from.

use super::undefined::{ALL, STORE_V1, STORE_V2, list, missing};
use super::*;
use crate::check::undefined::{LOAD_DWORDS_MAX, Origin, Source};
use zrt_isa::effects::VECTOR_FIRST;

/// v0..v2 in the active lanes.
const WRITE_V0: u32 = 0x7e000280; // v_mov_b32_e32 v0, 0
const WRITE_V1: u32 = 0x7e020280; // v_mov_b32_e32 v1, 0
const WRITE_V2: u32 = 0x7e040280; // v_mov_b32_e32 v2, 0
const COPY_V1_TO_V2: u32 = 0x7e040301; // v_mov_b32_e32 v2, v1
const CLEAR_V2_BY_V1: u32 = 0x36040280; // v_and_b32_e32 v2, 0, v1

/// A wave with two user SGPRs that starts with eight lanes.
fn eight_lanes() -> Walk {
    Walk::new(&LaunchState { user_sgprs: 2, lanes_mask: 0xff, ..launch(WaveSize::Wave32) })
}

/// A register that was complete lacks the new lanes, and nothing that it was computed from before counts any more.
#[test]
fn lanes_that_become_active_have_written_nothing() {
    let cases: [(&[u32], u64); 5] = [
        (&[WRITE_V2], 0x1ff),
        (&[WRITE_V2], 0xff00),
        (&[COPY_V1_TO_V2, WRITE_V2], 0x1ff),
        (&[CLEAR_V2_BY_V1], 0x1ff),
        (&[COPY_V1_TO_V2, CLEAR_V2_BY_V1], 0x1ff),
    ];
    for (words, exec) in cases {
        let mut walk = eight_lanes();
        walk.run(words);
        walk.exec = exec;
        walk.run(&[WRITE_V0]);
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), ["v2 lane 8"], "{words:x?} {exec:#x}");
    }
}

const WRITE_LANE_20: [u32; 2] = [0xd7610002, 0x00012800]; // v_writelane_b32 v2, s0, 20

/// A lane of a complete register that is written alone counts as written, and so does any other: nobody has read it.
#[test]
fn a_lane_may_be_written_before_it_is_active() {
    let none: &[u32] = &[];
    for (words, lane, expected) in
        [(none, 20, Some("v2 lane 20")), (&WRITE_LANE_20, 20, None), (&WRITE_LANE_20, 21, None)]
    {
        let mut walk = eight_lanes();
        walk.run(&[WRITE_V2]);
        walk.run(words);
        walk.exec = 1 << lane;
        walk.run(&[WRITE_V0]);
        walk.run(&STORE_V2);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

/// A register that was written in all active lanes stays complete while a lane is active that was written alone.
#[test]
fn a_lane_that_was_written_alone_leaves_its_register_complete() {
    let mut walk = eight_lanes();
    walk.run(&WRITE_LANE_20);
    walk.run(&[WRITE_V2]);
    walk.exec = 1 << 20;
    walk.run(&[WRITE_V0]);
    walk.run(&WRITE_LANE_20);
    walk.exec = 1 << 21;
    walk.run(&[WRITE_V0]);
    walk.run(&STORE_V2);
    assert_eq!(list(&walk), [""; 0]);
}

/// What is unwritten in other lanes is of no concern to an address.
#[test]
fn only_active_lanes_of_an_address_count() {
    const LOAD_AT_V1: [u32; 3] = [0xee050000, 0x00000002, 0x00000001]; // global_load_b32 v2, v1, s[0:1]
    for (exec, expected) in [(0x0f, None), (0x1f, Some("v1 lane 4"))] {
        let mut walk = eight_lanes();
        walk.exec = 0x0f;
        walk.run(&[WRITE_V1]);
        walk.exec = exec;
        walk.run(&LOAD_AT_V1);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

const LOAD_V1: [u32; 3] = [0xee050000, 0x00000001, 0x00000000]; // global_load_b32 v1, v0, s[0:1]

/// The short way is closed to an instruction that new lanes execute, and open as soon as nothing can be found.
#[test]
fn the_short_way_is_taken_where_nothing_can_be_found() {
    const READ_S0: u32 = 0x7e040200; // v_mov_b32_e32 v2, s0
    const WAIT: u32 = 0xbfc00000; // s_wait_loadcnt 0x0
    let mut walk = eight_lanes();
    assert_eq!(walk.run_shortly(&[WRITE_V2]), 0, "it completes the register");
    assert_eq!(walk.run_shortly(&[WRITE_V2, READ_S0]), 2);
    walk.exec = ALL;
    assert_eq!(walk.run_shortly(&[WRITE_V0, WRITE_V2]), 0);
    assert_eq!(walk.run_shortly(&[WRITE_V0, WRITE_V2]), 2);
    walk.run(&LOAD_V1);
    walk.run(&[WAIT]);
    assert_eq!(walk.run_shortly(&[COPY_V1_TO_V2]), 1);
    walk.run(&STORE_V2);
    assert_eq!(list(&walk), [""; 0]);
}

#[test]
fn the_short_way_is_closed_to_an_instruction_that_reads_what_is_on_its_way() {
    let mut walk = eight_lanes();
    walk.run(&[WRITE_V0, WRITE_V2]);
    walk.run(&LOAD_V1);
    assert_eq!(walk.run_shortly(&[COPY_V1_TO_V2]), 0);
    assert_eq!(walk.findings.len(), 1);
}

/// ttmp8 is always written, ttmp9 with the id X, and ttmp7 with Y or Z.
#[test]
fn temporaries_hold_the_ids_that_are_enabled() {
    // s_sleep_var ttmp7; s_sleep_var ttmp8; s_sleep_var ttmp9
    let words = [0xbe805873, 0xbe805874, 0xbe805875];
    for (has_group_id, expected) in [
        ([false, false, false], &["ttmp7", "ttmp9"][..]),
        ([true, false, false], &["ttmp7"]),
        ([false, true, false], &["ttmp9"]),
        ([false, false, true], &["ttmp9"]),
        ([true, true, true], &[]),
    ] {
        let mut walk = Walk::new(&LaunchState { has_group_id, ..launch(WaveSize::Wave32) });
        walk.run(&words);
        assert_eq!(list(&walk), expected);
    }
}

/// A scalar that was computed from another one, and defined in spite of it, is not that one's any more.
#[test]
fn a_scalar_that_gets_its_own_value_back_comes_from_nowhere() {
    let words = [
        0xbe850004, // s_mov_b32 s5, s4
        0x8b048006, // s_and_b32 s4, s6, 0
        0xbe840005, // s_mov_b32 s4, s5
        0xbe805804, // s_sleep_var s4
    ];
    assert_eq!(missing(WaveSize::Wave32, &words), ["s4"]);
}

/// Bit 0 of vcc is set. If it is defined, vcc is not zero, whatever the other bits are.
#[test]
fn a_branch_that_goes_one_way_only_uses_nothing() {
    // s_or_b32 vcc_lo, s2, 1; s_and_b32 vcc_lo, s2, 1
    for (word, expected) in [(0x8c6a8102, None), (0x8b6a8102, Some("vcc_lo of s2"))] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.scalar[106] = 1;
        walk.run(&[
            word, 0xbfa30000, // s_cbranch_vccz 0
        ]);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

/// The undefined bits of each lane go on to memory, once.
#[test]
fn a_store_hands_on_what_is_undefined() {
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
    walk.run(&[
        0x7e023880, // v_mov_b16_e32 v1.l, 0
    ]);
    walk.exec = 0x7fff_ffff;
    walk.run(&[WRITE_V1]);
    walk.exec = ALL;
    walk.run(&STORE_V1);
    let stored = walk.shadow.take_stored().unwrap();
    let origin = Origin { source: Source::Register((VECTOR_FIRST + 1) as u16), pc: 8 };
    assert_eq!((stored.elements.len(), stored.origin), (1, origin));
    let bits = [0, 15, 30, 31].map(|lane: usize| stored.elements[0][lane]);
    assert_eq!(bits, [[0; 4], [0; 4], [0; 4], [0xffff_0000, 0, 0, 0]]);
    assert!(walk.shadow.take_stored().is_none());
    walk.run(&STORE_V1);
    assert!(walk.shadow.take_stored().is_none(), "what was told counts as defined");
}

/// Loads v1 and the following registers in all lanes; of what lanes 3 and 5 load, these bits are undefined.
fn loaded(words: &[u32], bits: &[u32]) -> Walk {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(words);
    let transfer = Transfer::of(&decode_for(words, WaveSize::Wave32).unwrap()).unwrap();
    let of_lane = |lane: u32| {
        let mut all = [0; LOAD_DWORDS_MAX];
        all[..bits.len()].copy_from_slice(bits);
        let origin = Origin { source: Source::Memory(0x1000 + u64::from(lane)), pc: 0 };
        Loaded { lane, element: 0, bits: all, origin }
    };
    walk.shadow.load(&transfer, &[of_lane(3), of_lane(5)]);
    walk.run(&[
        0xbfc00000, // s_wait_loadcnt 0x0
    ]);
    walk
}

const LOAD_B32: [u32; 3] = [0xee050000, 0x00000001, 0x00000000]; // global_load_b32 v1, v0, s[0:1]
const LOAD_B64: [u32; 3] = [0xee054000, 0x00000001, 0x00000000]; // global_load_b64 v[1:2], v0, s[0:1]
const LOAD_B128: [u32; 3] = [0xee05c000, 0x00000001, 0x00000000]; // global_load_b128 v[1:4], v0, s[0:1]
const STORE_B64: [u32; 3] = [0xee06c000, 0x00800000, 0x00000000]; // global_store_b64 v0, v[1:2], s[0:1]
const STORE_B128: [u32; 3] = [0xee074000, 0x00800000, 0x00000000]; // global_store_b128 v0, v[1:4], s[0:1]

/// The register has one origin, that of the first lane.
#[test]
fn each_lane_knows_whether_it_has_loaded_undefined_data() {
    for (exec, expected) in [
        (1 << 3, Some("v1 lane 3 of memory at 0x1003")),
        (1 << 4, None),
        (1 << 5, Some("v1 lane 5 of memory at 0x1003")),
    ] {
        let mut walk = loaded(&LOAD_B32, &[u32::MAX]);
        walk.exec = exec;
        walk.run(&STORE_V1);
        assert_eq!(list(&walk), expected.into_iter().collect::<Vec<_>>());
    }
}

/// Copying a structure of which members were never written is allowed; two dwords may be one value.
#[test]
fn a_copy_of_what_was_loaded_is_a_structure_if_it_is_large_or_has_a_defined_part() {
    const NO: u32 = u32::MAX;
    for (load, store, bits, expected) in [
        (&LOAD_B64, &STORE_B64, &[NO, NO][..], "v[1:2] lane 3 of memory at 0x1003"),
        (&LOAD_B64, &STORE_B64, &[0, NO], "v[1:2] lane 3 in part"),
        (&LOAD_B64, &STORE_B64, &[NO, 0], "v[1:2] lane 3 in part"),
        (&LOAD_B128, &STORE_B128, &[NO; 4], "v[1:4] lane 3 in part"),
        (&LOAD_B128, &STORE_B128, &[NO, 0, NO, NO], "v[1:4] lane 3 in part"),
    ] {
        let mut walk = loaded(load, bits);
        walk.run(store);
        assert_eq!(list(&walk), [expected], "{bits:x?}");
    }
}

/// Lane 5 copies what it has loaded, although lane 3 has written something else since.
#[test]
fn what_one_lane_writes_is_still_a_copy_in_another() {
    let mut walk = loaded(&LOAD_B128, &[u32::MAX; 4]);
    walk.exec = 1 << 3;
    walk.run(&[WRITE_V1]);
    walk.exec = 1 << 5;
    walk.run(&STORE_B128);
    assert_eq!(list(&walk), ["v[1:4] lane 5 in part"]);
}
