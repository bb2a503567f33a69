//! Counters (instruction set reference §4.1).

use super::*;

twins! {
    vector_load: "counters: pc 0xc: v2 is read while its result may still be under way, from pc 0x0; needs \
        s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0x7e060302, // v_mov_b32_e32 v3, v2
    ]
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060302, // v_mov_b32_e32 v3, v2
    ]

    the_first_of_two_loads: "counters: pc 0x18: v[2:3] is read while its result may still be under way, from pc \
        0x0; needs s_wait_loadcnt 0x1 before it";
    [
        0xee05407c, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v[0:1], off
        0xee05007c, 0x00000004, 0x00000000, // global_load_b32 v4, v[0:1], off
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]
    [
        0xee05407c, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v[0:1], off
        0xee05007c, 0x00000004, 0x00000000, // global_load_b32 v4, v[0:1], off
        0xbfc00001, // s_wait_loadcnt 0x1
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]

    the_second_of_two_loads: "counters: pc 0x1c: v4 is read while its result may still be under way, from pc \
        0xc; needs s_wait_loadcnt 0x0 before it";
    [
        0xee05407c, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v[0:1], off
        0xee05007c, 0x00000004, 0x00000000, // global_load_b32 v4, v[0:1], off
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e0a0304, // v_mov_b32_e32 v5, v4
    ]
    [
        0xee05407c, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v[0:1], off
        0xee05007c, 0x00000004, 0x00000000, // global_load_b32 v4, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e0a0304, // v_mov_b32_e32 v5, v4
    ]

    returning_atomic: "counters: pc 0xc: v2 is read while its result may still be under way, from pc 0x0; needs \
        s_wait_loadcnt 0x0 before it";
    [
        0xee0d407c, 0x01900002, 0x00000000, // global_atomic_add_u32 v2, v[0:1], v3, off th:TH_ATOMIC_RETURN
        0x7e080302, // v_mov_b32_e32 v4, v2
    ]
    [
        0xee0d407c, 0x01900002, 0x00000000, // global_atomic_add_u32 v2, v[0:1], v3, off th:TH_ATOMIC_RETURN
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e080302, // v_mov_b32_e32 v4, v2
    ]

    lds_load: "counters: pc 0x8: v[2:3] is read while its result may still be under way, from pc 0x0; needs \
        s_wait_dscnt 0x0 before it";
    [
        0xd8dc0100, 0x02000000, // ds_load_2addr_b32 v[2:3], v0 offset1:1
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]
    [
        0xd8dc0100, 0x02000000, // ds_load_2addr_b32 v[2:3], v0 offset1:1
        0xbfc83f00, // s_wait_loadcnt_dscnt 0x3f00
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]

    a_store_waits_for_its_half: "counters: pc 0x1c: v2 is read while its result may still be under way, from pc \
        0xc; needs s_wait_loadcnt 0x0 before it";
    [
        0xee08007c, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v[0:1], off
        0xee08c07c, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v[0:1], off offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0xee09407c, 0x01000000, 0x00000000, // global_store_d16_hi_b16 v[0:1], v2, off
    ]
    [
        0xee08007c, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v[0:1], off
        0xee08c07c, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v[0:1], off offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0xee06407c, 0x01000000, 0x00000000, // global_store_b16 v[0:1], v2, off
    ]

    arithmetic_waits_for_both_halves: "counters: pc 0x1c: v2 is read while its result may still be under way, \
        from pc 0xc; needs s_wait_loadcnt 0x0 before it";
    [
        0xee08007c, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v[0:1], off
        0xee08c07c, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v[0:1], off offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e063902, // v_mov_b16_e32 v3.l, v2.l
    ]
    [
        0xee08007c, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v[0:1], off
        0xee08c07c, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v[0:1], off offset:2
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e063902, // v_mov_b16_e32 v3.l, v2.l
    ]

    halves_by_two_counters: "counters: pc 0x8: v2 is overwritten while an earlier result may still arrive, from \
        pc 0x0; needs s_wait_dscnt 0x0 before it";
    [
        0xda9c0000, 0x02000000, // ds_load_u16_d16_hi v2, v0
        0xee08c07c, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v[0:1], off offset:2
    ]
    [
        0xda9c0000, 0x02000000, // ds_load_u16_d16_hi v2, v0
        0xee08007c, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v[0:1], off
    ]

    the_wrong_counter: "counters: pc 0xc: v2 is read while its result may still be under way, from pc 0x0; \
        needs s_wait_dscnt 0x0 before it";
    [
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060302, // v_mov_b32_e32 v3, v2
    ]
    [
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
        0xbfc93f00, // s_wait_storecnt_dscnt 0x3f00
        0x7e060302, // v_mov_b32_e32 v3, v2
    ]

    scalar_load: "counters: pc 0x8: s[4:5] is read while its result may still be under way, from pc 0x0; needs \
        s_wait_kmcnt 0x0 before it";
    [
        0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
        0xbe860104, // s_mov_b64 s[6:7], s[4:5]
    ]
    [
        0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe860104, // s_mov_b64 s[6:7], s[4:5]
    ]

    scalar_loads_return_in_any_order: "counters: pc 0x10: the wait covers only some of several scalar loads, \
        which return in any order: it guarantees none of them; needs s_wait_kmcnt 0x0 before it";
    [
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
        0xf4000140, 0xf8000040, // s_load_b32 s5, s[0:1], 0x40
        0xbfc70001, // s_wait_kmcnt 0x1
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe860004, // s_mov_b32 s6, s4
    ]
    [
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
        0xf4000140, 0xf8000040, // s_load_b32 s5, s[0:1], 0x40
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe860004, // s_mov_b32 s6, s4
    ]

    message: "counters: pc 0x4: s[4:5] is read while its result may still be under way, from pc 0x0; needs \
        s_wait_kmcnt 0x0 before it";
    [
        0xbe844d83, // s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
        0xbe860104, // s_mov_b64 s[6:7], s[4:5]
    ]
    [
        0xbe844d83, // s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
        0xbf8a0000, // s_wait_idle
        0xbe860104, // s_mov_b64 s[6:7], s[4:5]
    ]

    barrier_condition: "counters: pc 0x4: scc is read while its result may still be under way, from pc 0x0; \
        needs s_wait_kmcnt 0x0 before it";
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0x98040605, // s_cselect_b32 s4, s5, s6
    ]
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbfc70000, // s_wait_kmcnt 0x0
        0x98040605, // s_cselect_b32 s4, s5, s6
    ]

    overwritten_by_arithmetic: "counters: pc 0xc: v2 is overwritten while an earlier result may still arrive, \
        from pc 0x0; needs s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0x7e040280, // v_mov_b32_e32 v2, 0
    ]
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e040280, // v_mov_b32_e32 v2, 0
    ]

    overwritten_by_another_class: "counters: pc 0xc: v2 is overwritten while an earlier result may still \
        arrive, from pc 0x0; needs s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
    ]
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
    ]

    // Memory loads write registers in any order, LDS in its own order.
    overwritten_by_the_same_class: "counters: pc 0xc: v2 is overwritten while an earlier result may still \
        arrive, from pc 0x0; needs s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee05007c, 0x00000002, 0x00000400, // global_load_b32 v2, v[0:1], off offset:4
    ]
    [
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
        0xd8d80004, 0x02000000, // ds_load_b32 v2, v0 offset:4
    ]

    an_address_is_read_too: "counters: pc 0x8: s[4:5] is read while its result may still be under way, from pc \
        0x0; needs s_wait_kmcnt 0x0 before it";
    [
        0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
    ]
    [
        0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
        0xbfc70000, // s_wait_kmcnt 0x0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
    ]

    // A store's data may be overwritten at once.
    stored_data: "counters: pc 0xc: v2 is read while its result may still be under way, from pc 0x0; needs \
        s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee06807c, 0x01000000, 0x00000000, // global_store_b32 v[0:1], v2, off
    ]
    [
        0xee06807c, 0x01000000, 0x00000000, // global_store_b32 v[0:1], v2, off
        0x7e040280, // v_mov_b32_e32 v2, 0
        0xee05007c, 0x00000000, 0x00000000, // global_load_b32 v0, v[0:1], off
    ]

    direct_load: "counters: pc 0x4: v1 is read while its result may still be under way, from pc 0x0; needs \
        s_wait_expcnt 0x0 before it";
    [
        0xce9f0001, // ds_direct_load v1 wait_va_vdst:15 wait_vm_vsrc:1
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]
    [
        0xce9f0001, // ds_direct_load v1 wait_va_vdst:15 wait_vm_vsrc:1
        0xbfc40000, // s_wait_expcnt 0x0
        0x7e040301, // v_mov_b32_e32 v2, v1
    ]

    // The wait is for the younger of the two; the older one is named.
    two_loads_read_at_once: "counters: pc 0x18: v[2:3] is read while its result may still be under way, from pc \
        0x0; needs s_wait_loadcnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee05007c, 0x00000003, 0x00000000, // global_load_b32 v3, v[0:1], off
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee05007c, 0x00000003, 0x00000000, // global_load_b32 v3, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0x3e0c0481, // v_lshlrev_b64_e32 v[6:7], 1, v[2:3]
    ]

    // A wait for 1 says nothing if there are two, but is harmless if there is one.
    the_only_scalar_load: "counters: pc 0xc: s4 is read while its result may still be under way, from pc 0x0; \
        needs s_wait_kmcnt 0x0 before it";
    [
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
        0xbfc70001, // s_wait_kmcnt 0x1
        0xbe860004, // s_mov_b32 s6, s4
    ]
    // A flag is delivered when it is waited for: a compare in between is lost, and no hazard.
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfc70000, // s_wait_kmcnt 0x0
        0x98040605, // s_cselect_b32 s4, s5, s6
    ]

    fail_flag_of_a_buffer_load: "counters: pc 0xc: v3 is read while its result may still be under way, from pc \
        0x0; needs s_wait_loadcnt 0x0 before it";
    [
        0xc445007c, 0x40801002, 0x00000000, // buffer_load_b32 v[2:3], v0, s[8:11], null offen tfe
        0x7e080303, // v_mov_b32_e32 v4, v3
    ]
    [
        0xc405007c, 0x40801002, 0x00000000, // buffer_load_b32 v2, v0, s[8:11], null offen
        0x7e080303, // v_mov_b32_e32 v4, v3
    ]
}

#[test]
fn flat_loads_need_both_counters_in_order() {
    let load_twice = [
        0xec05007c, 0x00000002, 0x00000000, // flat_load_b32 v2, v[0:1]
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
    ];
    let read = [
        0x7e080302, // v_mov_b32_e32 v4, v2
    ];
    let waits: [(&[u32], usize); 5] = [
        (
            &[
                0xbfc80202, // s_wait_loadcnt_dscnt 0x202
            ],
            2,
        ),
        (
            &[
                0xbfc80101, // s_wait_loadcnt_dscnt 0x101
            ],
            0,
        ),
        (
            &[
                0xbfc00000, // s_wait_loadcnt 0x0
            ],
            1,
        ),
        (
            &[
                0xbfc60000, // s_wait_dscnt 0x0
            ],
            1,
        ),
        (
            &[
                0xbfc80000, // s_wait_loadcnt_dscnt 0x0
            ],
            0,
        ),
    ];
    for (wait, count) in waits {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(&load_twice);
        walk.run(wait);
        walk.run(&read);
        assert_eq!(walk.ordered().len(), count, "{:?}", walk.findings);
    }
}

#[test]
fn the_sixty_fourth_load_stalls_until_the_first_is_complete() {
    let first = [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
    ];
    let read = [
        0x7e900302, // v_mov_b32_e32 v72, v2
    ];
    for (others, count) in [(62, 1), (63, 0)] {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(&first);
        for destination in 3..3 + others {
            walk.run(&[
                0xee05007c,
                destination,
                0x00000000, // global_load_b32 v3, v[0:1], off
            ]);
        }
        walk.run(&read);
        assert_eq!(walk.ordered().len(), count);
    }
}

#[test]
fn too_many_scalar_loads_leave_all_of_them_open() {
    let first = [
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
    ];
    let other = [
        0xf4000140, 0xf8000040, // s_load_b32 s5, s[0:1], 0x40
    ];
    let wait = [
        0xbfc70000, // s_wait_kmcnt 0x0
    ];
    let read = [
        0xbe860004, // s_mov_b32 s6, s4
    ];
    for waits in [false, true] {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(&first);
        (0..40).for_each(|_| walk.run(&other));
        assert_eq!((walk.shadow.issued(), walk.shadow.completed_scalar()), (41, 0));
        walk.findings.clear();
        if waits {
            walk.run(&wait);
        }
        walk.run(&read);
        assert_eq!(walk.ordered().is_empty(), waits);
        let causes: Vec<u64> = walk.findings.iter().filter_map(|finding| finding.cause_pc).collect();
        assert_eq!(causes, if waits { vec![] } else { vec![0] });
    }
}

#[test]
fn sequence_numbers_tell_what_is_complete() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    let completed = |walk: &Walk| {
        let shadow = &walk.shadow;
        (
            shadow.issued(),
            shadow.completed_loads(),
            shadow.completed_stores(),
            shadow.completed_ds(),
            shadow.completed_scalar(),
        )
    };
    assert_eq!(completed(&walk), (0, 0, 0, 0, 0));
    walk.run(&[
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee06807c, 0x01800000, 0x00000000, // global_store_b32 v[0:1], v3, off
        0xd8340000, 0x00000300, // ds_store_b32 v0, v3
        0xee05007c, 0x00000004, 0x00000000, // global_load_b32 v4, v[0:1], off
        0xee06807c, 0x01800000, 0x00000000, // global_store_b32 v[0:1], v3, off
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
    ]);
    assert_eq!(completed(&walk), (6, 0, 1, 2, 5));
    walk.run(&[
        0xbfc00001, // s_wait_loadcnt 0x1
    ]);
    assert_eq!(completed(&walk), (6, 3, 1, 2, 5));
    walk.run(&[
        0xbfc90100, // s_wait_storecnt_dscnt 0x100
    ]);
    assert_eq!(completed(&walk), (6, 3, 4, 6, 5));
    walk.run(&[
        0xbf8a0000, // s_wait_idle
    ]);
    assert_eq!(completed(&walk), (6, 6, 6, 6, 6));
    // An instruction that no counter counts has no sequence number.
    walk.run(&[
        0xd8500000, 0x00000000, // ds_nop
        0xf404c000, 0xf8000000, // s_prefetch_data s[0:1], 0x0, null, 0
    ]);
    assert_eq!(completed(&walk), (6, 6, 6, 6, 6));
}

#[test]
fn the_end_of_the_program_waits_for_nothing() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&[
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xbfb00000, // s_endpgm
    ]);
    assert!(walk.findings.iter().all(|finding| finding.rule() != Rule::Counters));
}

#[test]
fn a_new_wave_has_nothing_under_way() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&[
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
        0x7e020208, // v_mov_b32_e32 v1, s8
        0xbe880081, // s_mov_b32 s8, 1
    ]);
    walk.shadow.begin(&launch(WaveSize::Wave32));
    walk.run(&[
        0xbe860004, // s_mov_b32 s6, s4
        0x7e020208, // v_mov_b32_e32 v1, s8
    ]);
    assert!(walk.findings.is_empty(), "{:?}", walk.findings);
    assert_eq!(walk.shadow.issued(), 0);
}
