//! Cases of several waves and groups: LDS, memory, barriers.

use crate::Case;

/// Two waves of one group with LDS.
const GROUP: Case = Case {
    name: "",
    rule: "",
    work_items: 64,
    groups: 1,
    lds_bytes: 1024,
    compute_units: 64,
    wrong: "",
    right: "",
};
/// Two groups of one wave.
const PAIR: Case = Case {
    name: "",
    rule: "",
    work_items: 32,
    groups: 2,
    lds_bytes: 0,
    compute_units: 64,
    wrong: "",
    right: "",
};

pub const COUNTERS: &[Case] = &[
    Case {
        name: "barrier_without_lds_wait",
        rule: "counters",
        wrong: "
    ds_store_b32 v1, v1
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2
    s_wait_dscnt 0x0",
        ..GROUP
    },
    Case {
        name: "barrier_without_store_wait",
        rule: "counters",
        wrong: "
    global_store_b32 v1, v1, s[6:7]
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    global_load_b32 v3, v2, s[6:7]
    s_wait_loadcnt 0x0",
        right: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    global_load_b32 v3, v2, s[6:7]
    s_wait_loadcnt 0x0",
        ..GROUP
    },
    Case {
        name: "flag_before_the_data",
        rule: "counters",
        wrong: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc0 .Lconsumer
    global_store_b32 v1, v1, s[6:7]
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV
    s_endpgm
.Lconsumer:
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lconsumer
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    global_load_b32 v7, v1, s[6:7]
    s_wait_loadcnt 0x0",
        right: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc0 .Lconsumer
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV
    s_endpgm
.Lconsumer:
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lconsumer
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    global_load_b32 v7, v1, s[6:7]
    s_wait_loadcnt 0x0",
        ..PAIR
    },
];

pub const UNINITIALISED: &[Case] = &[Case {
    name: "lds_never_written",
    rule: "uninitialised",
    wrong: "
    ds_load_b32 v2, v1
    s_wait_dscnt 0x0",
    right: "
    ds_store_b32 v1, v1
    ds_load_b32 v2, v1
    s_wait_dscnt 0x0",
    ..GROUP
}];

pub const RACES: &[Case] = &[
    Case {
        name: "lds_without_barrier",
        rule: "race",
        wrong: "
    ds_store_b32 v1, v1
    v_mov_b32_e32 v4, 0
    ds_store_b32 v4, v1 offset:512
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    v_lshlrev_b32_e32 v4, 2, v0
    ds_store_b32 v4, v1 offset:512
    s_wait_dscnt 0x0",
        ..GROUP
    },
    Case {
        name: "read_while_the_other_writes",
        rule: "race",
        wrong: "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2
    s_wait_dscnt 0x0
    ds_store_b32 v1, v3
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    ds_store_b32 v1, v3
    s_wait_dscnt 0x0",
        ..GROUP
    },
    Case {
        name: "two_groups_store_one_dword",
        rule: "race",
        wrong: "
    global_store_b32 v1, v1, s[6:7]",
        right: "
    v_lshl_or_b32 v2, ttmp9, 7, v1
    global_store_b32 v2, v1, s[6:7]",
        ..PAIR
    },
    Case {
        name: "counted_without_an_atomic",
        rule: "race",
        wrong: "
    v_mov_b32_e32 v4, 0
    s_mov_b32 exec_lo, 1
    global_load_b32 v5, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_add_nc_u32_e32 v5, 1, v5
    global_store_b32 v4, v5, s[8:9]",
        right: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV",
        ..PAIR
    },
];

/// A producer and a consumer; what stands between flag and data is the case's.
macro_rules! handover {
    ($acquire:literal) => {
        concat!(
            "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc0 .Lconsumer
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV
    s_endpgm
.Lconsumer:
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lconsumer
",
            $acquire,
            "
    global_load_b32 v7, v1, s[6:7]
    s_wait_loadcnt 0x0"
        )
    };
}

pub const VISIBILITY: &[Case] = &[Case {
    name: "no_acquire",
    rule: "visibility",
    wrong: handover!(""),
    right: handover!(
        "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
    ),
    ..PAIR
}];

pub const BOUNDS: &[Case] = &[
    Case {
        name: "not_mapped",
        rule: "bounds",
        wrong: "
    v_mov_b32_e32 v2, 0x40000000
    global_load_b32 v3, v2, s[4:5]
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v3, v1, s[4:5]
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "past_the_buffer",
        rule: "bounds",
        wrong: "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v1, s[4:5] offset:4000
    s_wait_loadcnt 0x0",
        right: "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v1, s[4:5] offset:3996
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "lds_beyond_the_allocation",
        rule: "bounds",
        wrong: "
    ds_store_b32 v1, v1 offset:1024",
        right: "
    ds_store_b32 v1, v1 offset:512",
        ..GROUP
    },
    Case {
        name: "misaligned_load",
        rule: "bounds",
        wrong: "
    global_load_b32 v2, v1, s[4:5] offset:2
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5] offset:4
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "misaligned_lds",
        rule: "bounds",
        wrong: "
    v_lshlrev_b32_e32 v2, 3, v0
    ds_store_b64 v2, v[0:1] offset:4",
        right: "
    v_lshlrev_b32_e32 v2, 3, v0
    ds_store_b64 v2, v[0:1] offset:8",
        lds_bytes: 2048,
        ..GROUP
    },
    Case {
        name: "past_the_end",
        rule: "bounds",
        wrong: "
    s_branch .Lend
    s_endpgm
.Lend:
    .long 0xbf9f0000",
        right: "
    s_branch .Lend
    .long 0xbf9f0000
.Lend:",
        ..PAIR
    },
    Case {
        name: "scalar_load_of_stored_data",
        rule: "bounds",
        groups: 1,
        wrong: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_load_b32 s20, s[6:7], 0x0
    s_wait_kmcnt 0x0",
        right: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_load_b32 s20, s[4:5], 0x0
    s_wait_kmcnt 0x0",
        ..PAIR
    },
];

/// One group waits for the other's flag; the case says which. Each needs all LDS of the only compute unit.
macro_rules! waiting_group {
    ($waiting:literal) => {
        concat!(
            "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_mov_b32 exec_lo, 1
    s_cmp_eq_u32 ttmp9, ",
            $waiting,
            "
    s_cbranch_scc1 .Lconsumer
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV
    s_endpgm
.Lconsumer:
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lconsumer"
        )
    };
}

pub const PROGRESS: &[Case] = &[
    Case {
        name: "barrier_that_nobody_completes",
        rule: "progress",
        wrong: "
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    s_barrier_signal -1
.Lother:
    s_barrier_wait -1",
        right: "
    s_barrier_signal -1
    s_barrier_wait -1",
        ..GROUP
    },
    Case {
        name: "spin_for_a_group_without_room",
        rule: "progress",
        lds_bytes: 65_536,
        compute_units: 1,
        wrong: waiting_group!("0"),
        right: waiting_group!("1"),
        ..PAIR
    },
];
