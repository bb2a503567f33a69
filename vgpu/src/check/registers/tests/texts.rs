//! The texts of findings, as a reader sees them.

use super::*;
use crate::check::undefined::{Origin, Source};

#[test]
fn a_finding_is_one_line() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&[
        0xee054000, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v0, s[0:1]
        0x7e080303, // v_mov_b32_e32 v4, v3
        0xee068000, 0x03000000, 0x00000000, // global_store_b32 v0, v6, s[0:1]
        0x7e0a0307, // v_mov_b32_e32 v5, v7
        0xee068000, 0x02800000, 0x00000000, // global_store_b32 v0, v5, s[0:1]
    ]);
    let texts: Vec<String> = walk.findings.iter().map(ToString::to_string).collect();
    let expected = [
        "counters: pc 0xc: v3 is read while its result may still be under way, from pc 0x0; needs \
         s_wait_loadcnt 0x0 before it",
        "uninitialised: pc 0x10: v6 (lane 0) is read, but nothing has written it; write it first",
        "uninitialised: pc 0x20: v5 (lane 0) is used, but was computed from v7, which nothing has written, from pc 0x1c; \
         write it first",
    ];
    assert_eq!(texts, expected);
    let names: Vec<&str> = walk.findings.iter().map(|finding| finding.defect.name()).collect();
    assert_eq!(names, ["read-outstanding", "unwritten", "undefined"]);
}

/// Texts of all findings of a program in a wave of `launch`, with these active lanes.
fn texts(launch: &LaunchState, exec: u64, words: &[u32]) -> Vec<String> {
    let mut walk = Walk::new(launch);
    walk.exec = exec;
    walk.run(words);
    walk.findings.iter().map(ToString::to_string).collect()
}

/// Those of the other rules have theirs beside the programs that break them.
#[test]
fn findings_about_lanes_pairs_and_private_memory_say_what_is_wrong() {
    let (wave, all) = (launch(WaveSize::Wave32), u64::MAX >> 32);
    let without = LaunchState { private_bytes: 0, ..wave };
    let cases: [(&LaunchState, u64, &[u32], &str); 7] = [
        (
            &wave,
            !0x180 & all,
            &[
                0xcc404010, 0x1a020900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], 0
            ],
            "uninitialised: pc 0x0: (lane 7) a matrix operation with lanes off; set all bits of EXEC first",
        ),
        (
            &without,
            all,
            &[
                0xed050000, 0x00000001, 0x00000000, // scratch_load_b32 v1, off, s0
            ],
            "uninitialised: pc 0x0: a scratch access in a launch without scratch memory; launch it with scratch \
             memory",
        ),
        (
            &wave,
            all,
            &[
                0x7e080280, // v_mov_b32_e32 v4, 0
                0x7e0a0280, // v_mov_b32_e32 v5, 0
                0x7e0c0280, // v_mov_b32_e32 v6, 0
                0xee074000, 0x02000000, 0x00000000, // global_store_b128 v0, v[4:7], s[0:1]
            ],
            "advice: pc 0xc: v[4:7] (lane 0) is stored, but nothing has written part of it: is that padding?; write it \
             first",
        ),
        (
            &wave,
            all,
            &[
                0xc8460a04, 0x01020c06,
                0x12345678, // v_dual_fmaak_f32 v1, s4, v5, 0x12345678 :: v_dual_mul_f32 v2, s6, v6
            ],
            "hazards: pc 0x0: a dual operation reads more than two scalar values; use two instructions, or fewer \
             scalar registers and literals",
        ),
        (
            &wave,
            all,
            &[
                // v_dual_fmamk_f32 v2, v4, 0x20c90fdb, v19 :: v_dual_fmac_f32 v5, v6, v9
                0xc8802704, 0x02041306, 0x20c90fdb,
            ],
            "hazards: pc 0x0: both halves of a dual operation add to registers of the same parity; add to one register \
             of even and one of odd number",
        ),
        (
            &wave,
            all,
            &[
                0xed050000, 0x00000002, 0x00000000, // scratch_load_b32 v2, off, s0
                0xbfc00000, // s_wait_loadcnt 0x0
                0xd8340000, 0x00000200, // ds_store_b32 v0, v2
            ],
            "uninitialised: pc 0x10: v2 (lane 0) is used, but was computed from byte 0 of private memory, which \
             nothing has written, from pc 0x0; write it first",
        ),
        (
            &LaunchState { user_sgprs: 2, ..wave },
            all,
            &[
                0xf4000101, 0xf8000000, // s_load_b32 s4, s[2:3], 0x0
            ],
            "uninitialised: pc 0x0: s[2:3] is read, but nothing has written it; write it first",
        ),
    ];
    for (launch, exec, words, text) in cases {
        assert_eq!(texts(launch, exec, words), [text]);
    }
}

#[test]
fn what_memory_returned_undefined_is_told_with_the_origin_of_the_first_lane() {
    let words = [0xee050000, 0x00000001, 0x00000000]; // global_load_b32 v1, v0, s[0:1]
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&words);
    let transfer = Transfer::of(&decode_for(&words, WaveSize::Wave32).unwrap()).unwrap();
    let of = |lane: u32, va| {
        let origin = Origin { source: Source::Memory(va), pc: 0 };
        Loaded { lane, element: 0, bits: [u32::MAX; 16], origin }
    };
    walk.shadow.load(&transfer, &[of(3, 0x1230), of(5, 0x4560)]);
    walk.run(&[
        0xbfc00000, // s_wait_loadcnt 0x0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
    ]);
    let text = "uninitialised: pc 0x10: v1 (lane 3) is used, but was computed from memory at 0x1230, which nothing has \
                written, from pc 0x0; write it first";
    assert_eq!(walk.findings.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
}
