//! Registers that nothing has written (instruction set reference §3), and lanes that are off.

use super::*;

/// Registers and first lane of each finding of rule 3, after `words` with two user SGPRs in lanes `exec`.
fn missing(wave_size: WaveSize, exec: u64, words: &[u32]) -> Vec<(String, Option<u32>)> {
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(wave_size) });
    walk.exec = exec;
    walk.run(words);
    list(&walk)
}

fn list(walk: &Walk) -> Vec<(String, Option<u32>)> {
    let unwritten = walk.findings.iter().filter(|finding| finding.defect == Defect::Unwritten);
    unwritten.map(|finding| (finding.registers.unwrap().to_string(), finding.lane)).collect()
}

fn named(name: &str, lane: Option<u32>) -> Vec<(String, Option<u32>)> {
    vec![(name.to_string(), lane)]
}

const ALL: u64 = 0xffff_ffff;

macro_rules! missing {
    ($($name:ident: $expected:literal $lane:expr; [$($wrong:tt)*] [$($right:tt)*])*) => {
        $(#[test]
        fn $name() {
            assert_eq!(missing(WaveSize::Wave32, ALL, &[$($wrong)*]), named($expected, $lane));
            assert_eq!(missing(WaveSize::Wave32, ALL, &[$($right)*]), []);
        })*
    };
}

missing! {
    scalar_register: "s2" None;
    [
        0xbe840002, // s_mov_b32 s4, s2
    ]
    [
        0xbe840001, // s_mov_b32 s4, s1
    ]

    half_of_a_pair: "s3" None;
    [
        0xbe820080, // s_mov_b32 s2, 0
        0xbe840102, // s_mov_b64 s[4:5], s[2:3]
    ]
    [
        0xbe840100, // s_mov_b64 s[4:5], s[0:1]
    ]

    launch_temporaries: "ttmp6" None;
    [
        0xbe840072, // s_mov_b32 s4, ttmp6
    ]
    [
        0xbe840073, // s_mov_b32 s4, ttmp7
        0xbe840074, // s_mov_b32 s4, ttmp8
        0xbe840075, // s_mov_b32 s4, ttmp9
    ]

    vector_register: "v1" Some(0);
    [
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]
    [
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060302, // v_mov_b32_e32 v3, v2
    ]

    // It is said once.
    the_same_again: "v1" Some(0);
    [
        0x7e040301, // v_mov_b32_e32 v2, v1
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]
    [
        0xee050000, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[0:1]
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]

    condition_code: "scc" None;
    [
        0x96020100, // s_mul_i32 s2, s0, s1
        0x98040100, // s_cselect_b32 s4, s0, s1
    ]
    [
        0x80020100, // s_add_co_u32 s2, s0, s1
        0x98040100, // s_cselect_b32 s4, s0, s1
    ]

    vcc: "vcc_lo" None;
    [
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
    ]
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
    ]

    m0_of_an_lds_address: "m0" None;
    [
        0xdac40000, 0x01000000, // ds_load_addtid_b32 v1
    ]
    [
        0xbefd0080, // s_mov_b32 m0, 0
        0xdac40000, 0x01000000, // ds_load_addtid_b32 v1
    ]

    m0_of_a_message: "m0" None;
    [
        0xbfb60001, // s_sendmsg sendmsg(MSG_INTERRUPT)
    ]
    // Releasing the vector registers sends nothing.
    [
        0xbfb60003, // s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    ]

    data_of_a_store: "v[1:2]" Some(0);
    [
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0x7e040280, // v_mov_b32_e32 v2, 0
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
    ]

    accumulator: "v1" Some(0);
    [
        0x56020100, // v_fmac_f32_e32 v1, v0, v0
    ]
    [
        0x10020100, // v_mul_f32_e32 v1, v0, v0
        0x56020100, // v_fmac_f32_e32 v1, v0, v0
    ]

    // What keeps the other half writes the whole, for this rule.
    half_of_a_register: "v1" Some(0);
    [
        0x7e040301, // v_mov_b32_e32 v2, v1
        0xee080000, 0x00000001, 0x00000000, // global_load_d16_b16 v1, v0, s[0:1]
    ]
    [
        0xee080000, 0x00000001, 0x00000000, // global_load_d16_b16 v1, v0, s[0:1]
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]

    wide_scalar_load: "s8" None;
    [
        0xf4004100, 0xf8000000, // s_load_b128 s[4:7], s[0:1], 0x0
        0xbe890008, // s_mov_b32 s9, s8
    ]
    [
        0xf4004100, 0xf8000000, // s_load_b128 s[4:7], s[0:1], 0x0
        0xbe880106, // s_mov_b64 s[8:9], s[6:7]
    ]

    saved_exec: "s3" None;
    [
        0xbe822000, // s_and_saveexec_b32 s2, s0
        0x8c7e037e, // s_or_b32 exec_lo, exec_lo, s3
    ]
    [
        0xbe822000, // s_and_saveexec_b32 s2, s0
        0x8c7e027e, // s_or_b32 exec_lo, exec_lo, s2
    ]

    // Lane 3 alone is written, whatever EXEC says.
    one_lane: "v1" Some(0);
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0xd7600004, 0x00010701, // v_readlane_b32 s4, v1, 3
    ]

    another_lane: "v1" Some(4);
    [
        0xd7610001, 0x00010600, // v_writelane_b32 v1, s0, 3
        0xd7600004, 0x00010901, // v_readlane_b32 s4, v1, 4
    ]
    [
        0xd7610001, 0x00014600, // v_writelane_b32 v1, s0, 35
        0xd7600004, 0x00010701, // v_readlane_b32 s4, v1, 3
    ]

    exchanged: "v1" Some(0);
    [
        0x7e00cb01, // v_swap_b32 v0, v1
    ]
    [
        0x7e020280, // v_mov_b32_e32 v1, 0
        0x7e00cb01, // v_swap_b32 v0, v1
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]
}

#[test]
fn lanes_count_one_by_one() {
    let mut walk = Walk::new(&LaunchState { user_sgprs: 2, lanes_mask: 0xff, ..launch(WaveSize::Wave32) });
    walk.exec = 0x0f;
    walk.run(&[
        0x7e020280, // v_mov_b32_e32 v1, 0
    ]);
    walk.exec = 0x3c;
    walk.run(&[
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]);
    assert_eq!(list(&walk), named("v1", Some(4)));
    walk.findings.clear();
    walk.exec = 0xff;
    walk.run(&[
        0x7e040280, // v_mov_b32_e32 v2, 0
    ]);
    // Lanes that were not there at the start, and v0 is not written in them.
    walk.exec = 0x1ff;
    walk.run(&[
        0x7e040300, // v_mov_b32_e32 v2, v0
    ]);
    assert_eq!(list(&walk), named("v0", Some(8)));
}

#[test]
fn first_lane() {
    let prepare = [
        0x7e020280, // v_mov_b32_e32 v1, 0
    ];
    let read = [
        0x7e080501, // v_readfirstlane_b32 s4, v1
    ];
    for (written, exec, expected) in [(0x4, 0xc, None), (0x8, 0xc, Some(2)), (0x8, 0, Some(0)), (1, 0, None)]
    {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        walk.exec = written;
        walk.run(&prepare);
        walk.exec = exec;
        walk.run(&read);
        assert_eq!(
            list(&walk),
            expected.map(|lane| ("v1".into(), Some(lane))).into_iter().collect::<Vec<_>>()
        );
    }
}

/// Source lanes of DPP: what is not read need not be written, and what has no source stays unwritten.
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
        list(&walk)
    };
    let share = [
        0x7e0402fa, 0xff015501, // v_mov_b32_dpp v2, v1 row_share:5 row_mask:0xf bank_mask:0xf
        0x7e060302, // v_mov_b32_e32 v3, v2
    ];
    assert_eq!(walk(0x0020_0020, ALL, &share), []);
    assert_eq!(walk(0x0000_0020, ALL, &share), named("v1", Some(21)));
    // Lane 0 has nothing to its left, and keeps what it had: nothing.
    let shift = [
        0x7e0402fa, 0xff011101, // v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        0x7e060302, // v_mov_b32_e32 v3, v2
    ];
    assert_eq!(walk(ALL, ALL, &shift), named("v2", Some(0)));
    let shift_or_zero = [
        0x7e0402fa,
        0xff091101, // v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
        0x7e060302, // v_mov_b32_e32 v3, v2
    ];
    assert_eq!(walk(ALL, ALL, &shift_or_zero), []);
    assert_eq!(walk(0x7fff_7fff, ALL, &shift_or_zero), []);
    assert_eq!(walk(0x7fff_7ffe, ALL, &shift_or_zero), named("v1", Some(0)));
    // Rows that are masked are neither read nor written.
    let masked = [
        0x7e0402fa, 0x1f000001, // v_mov_b32_dpp v2, v1 quad_perm:[0,0,0,0] row_mask:0x1 bank_mask:0xf
        0x7e060302, // v_mov_b32_e32 v3, v2
    ];
    assert_eq!(walk(0x1111, ALL, &masked), named("v2", Some(16)));
    // Inactive lanes are read when it says so.
    let fetch = [
        0x7e0402fa,
        0xff04b101, // v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf fi:1
    ];
    assert_eq!(walk(0x1, 0x1, &fetch), named("v1", Some(1)));
    let eight = [
        0x7e0402e9, 0xffffff01, // v_mov_b32_dpp v2, v1 dpp8:[7,7,7,7,7,7,7,7]
    ];
    assert_eq!(walk(0x8080_8080, ALL, &eight), []);
    assert_eq!(walk(0x8000_8080, ALL, &eight), named("v1", Some(23)));
    // Inactive and not fetched: zero.
    assert_eq!(walk(0, 0x7f, &eight), []);
}

#[test]
fn selectors_in_scalar_registers() {
    let prepare = [
        0x7e020280, // v_mov_b32_e32 v1, 0
    ];
    let exchange = [
        0xd65c0002, 0x00040101, // v_permlanex16_b32 v2, v1, s0, s1
    ];
    let walk = |written: u64| {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        (walk.scalar[0], walk.scalar[1]) = (0x3333_3333, 0x3333_3333);
        walk.exec = written;
        walk.run(&prepare);
        // Only the lower row is active: the other is not read, and so nothing is written.
        walk.exec = 0xffff;
        walk.run(&exchange);
        walk.exec = ALL;
        walk.run(&exchange);
        list(&walk)
    };
    assert_eq!(walk(0x0008_0008), []);
    assert_eq!(walk(0x0008_0000), named("v1", Some(3)));
    // With FI the other row is read although it is inactive.
    let fetch = [
        0xd65c0802, 0x00040101, // v_permlanex16_b32 v2, v1, s0, s1 op_sel:[1,0]
    ];
    for (written, expected) in [(0x0008_0000, None), (0x0000_0008, Some(19))] {
        let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
        (walk.scalar[0], walk.scalar[1]) = (0x3333_3333, 0x3333_3333);
        walk.exec = written;
        walk.run(&prepare);
        walk.exec = 0xffff;
        walk.run(&fetch);
        let expected: Vec<_> = expected.map(|lane| ("v1".to_string(), Some(lane))).into_iter().collect();
        assert_eq!(list(&walk), expected);
    }
}

#[test]
fn registers_that_m0_selects() {
    let read = [
        0x7e048701, // v_movrels_b32_e32 v2, v1
    ];
    let write = [
        0x7e048500, // v_movreld_b32_e32 v2, v0
        0x7e060305, // v_mov_b32_e32 v3, v5
    ];
    let prepare = [
        0xbefd0083, // s_mov_b32 m0, 3
        0x7e080280, // v_mov_b32_e32 v4, 0
    ];
    for (m0, count) in [(3, 0), (2, 1)] {
        for words in [&read[..], &write[..]] {
            let mut walk = Walk::new(&LaunchState { user_sgprs: 2, ..launch(WaveSize::Wave32) });
            walk.run(&prepare);
            walk.scalar[M0] = m0;
            walk.run(words);
            assert_eq!(list(&walk).len(), count, "{m0}");
        }
    }
    // Out of the file: no register.
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&prepare);
    walk.scalar[M0] = u32::MAX;
    walk.run(&read);
    assert_eq!(list(&walk), []);
}

#[test]
fn wave64_masks_and_lanes() {
    let mask = [
        0xd5010001, 0x00020100, // v_cndmask_b32_e64 v1, v0, v0, s[0:1]
    ];
    assert_eq!(missing(WaveSize::Wave64, u64::MAX, &mask), []);
    let mask = [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0xd5010001, 0x000a0100, // v_cndmask_b32_e64 v1, v0, v0, s[2:3]
    ];
    assert_eq!(missing(WaveSize::Wave64, u64::MAX, &mask), named("s[2:3]", None));
    let upper = [
        0x7e020300, // v_mov_b32_e32 v1, v0
    ];
    let lower = [
        0x7e040301, // v_mov_b32_e32 v2, v1
    ];
    let mut walk = Walk::new(&launch(WaveSize::Wave64));
    walk.exec = ALL << 32;
    walk.run(&upper);
    walk.exec = u64::MAX;
    walk.run(&lower);
    assert_eq!(list(&walk), named("v1", Some(0)));
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
    for (has_scratch, count) in [(true, 0), (false, 1)] {
        let mut walk = Walk::new(&LaunchState { has_scratch, ..launch(WaveSize::Wave32) });
        walk.run(&load);
        assert_eq!(walk.findings.len(), count);
    }
}
