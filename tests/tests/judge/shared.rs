//! Cases of several waves: waits, uninitialised LDS, races.

use crate::case::{Case, GROUP, PAIR, WAVE, handover};

/// The dword at 0 is written, then both waves count in it; what comes between that and reading it is up to the case.
macro_rules! counted {
    ($wait:literal) => {
        concat!(
            "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    s_mov_b32 m0, 0
    ds_consume v2
",
            $wait,
            "
    s_barrier_signal -1
    s_barrier_wait -1
    ds_load_b32 v3, v1  // caught lane 0 at lds+0x0
    s_wait_dscnt 0x0"
        )
    };
}

pub const COUNTERS: &[Case] = &[
    Case {
        name: "barrier_without_lds_wait",
        rule: "counters",
        wrong: "
    ds_store_b32 v1, v1
    s_barrier_signal -1
    s_barrier_wait -1
    v_xor_b32_e32 v2, 0x80, v1
    ds_load_b32 v3, v2  // caught wave 0|1 lane 0 at lds+0x0|lds+0x80
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
    global_load_b32 v3, v2, s[6:7]  // caught wave 0|1 lane 0 at output+0x0|output+0x80
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
        name: "barrier_before_the_count_is_done",
        rule: "counters",
        wrong: counted!(""),
        right: counted!("    s_wait_dscnt 0x0"),
        ..GROUP
    },
    Case {
        name: "flag_before_the_data",
        rule: "counters",
        wrong: handover!(
            under_way,
            "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
        ),
        right: handover!(
            complete,
            "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
        ),
        ..PAIR
    },
    // The scope says how far a store reaches, and not when it arrives.
    Case {
        name: "flag_before_the_scoped_data",
        rule: "counters",
        wrong: handover!(
            under_way_with_scope,
            "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
        ),
        right: handover!(
            complete_with_scope,
            "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
        ),
        ..PAIR
    },
];

pub const UNINITIALISED: &[Case] = &[
    Case {
        name: "lds_never_written",
        rule: "uninitialised",
        wrong: "
    ds_load_b32 v2, v1  // caught wave 0|1 lane 0 at lds+0x0|lds+0x80
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    ds_load_b32 v2, v1
    s_wait_dscnt 0x0",
        ..GROUP
    },
    Case {
        name: "counted_from_nothing",
        rule: "uninitialised",
        work_items: 32,
        wrong: "
    s_mov_b32 m0, 64
    ds_append v2 offset:8  // caught lane 0 at lds+0x48
    s_wait_dscnt 0x0",
        right: "
    v_mov_b32_e32 v2, 0
    ds_store_b32 v2, v2 offset:72
    s_mov_b32 m0, 64
    ds_append v2 offset:8
    s_wait_dscnt 0x0",
        ..GROUP
    },
];

/// Lanes of one instruction.
pub const LANES: &[Case] = &[
    Case {
        name: "lanes_store_different_values",
        rule: "race",
        wrong: "
    v_mov_b32_e32 v4, 0
    global_store_b32 v4, v1, s[6:7]  // caught lane 1 at output+0x0",
        right: "
    v_mov_b32_e32 v4, 0
    global_store_b32 v4, v4, s[6:7]",
        ..WAVE
    },
    Case {
        name: "lanes_store_over_half_of_their_neighbour",
        rule: "race",
        wrong: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    global_store_b64 v1, v[4:5], s[6:7]  // caught lane 1 at output+0x4",
        right: "
    v_mov_b32_e32 v4, 1
    v_mov_b32_e32 v5, 1
    global_store_b64 v1, v[4:5], s[6:7]",
        ..WAVE
    },
    Case {
        name: "lanes_store_different_values_one_after_the_other",
        rule: "race",
        wrong: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    global_store_b32 v4, v5, s[6:7]
    global_store_b8 v4, v1, s[6:7]  // caught lane 1 at output+0x0",
        right: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    global_store_b32 v4, v5, s[6:7]
    global_store_b8 v4, v4, s[6:7]
    global_atomic_add_u32 v4, v1, s[8:9] scope:SCOPE_DEV
    global_store_b32 v4, v1, s[10:11] scope:SCOPE_DEV",
        ..WAVE
    },
    Case {
        name: "lanes_store_different_values_to_lds",
        rule: "race",
        lds_bytes: 512,
        wrong: "
    v_and_b32_e32 v4, 0x7c, v1
    v_lshrrev_b32_e32 v4, 1, v4
    v_and_b32_e32 v4, 0x3c, v4
    ds_store_b32 v4, v1  // caught lane 1 at lds+0x0",
        right: "
    v_and_b32_e32 v4, 0x7c, v1
    v_lshrrev_b32_e32 v4, 1, v4
    v_and_b32_e32 v4, 0x3c, v4
    ds_store_b32 v4, v4",
        ..WAVE
    },
    Case {
        name: "elements_of_two_lanes_in_lds",
        rule: "race",
        lds_bytes: 512,
        wrong: "
    v_mov_b32_e32 v4, 7
    ds_store_2addr_b32 v1, v4, v1 offset0:0 offset1:1  // caught lane 0 at lds+0x4",
        right: "
    v_mov_b32_e32 v4, 7
    ds_store_2addr_b32 v1, v4, v4 offset0:0 offset1:1",
        ..WAVE
    },
    Case {
        name: "flat_lanes_store_different_values_to_lds",
        rule: "race",
        lds_bytes: 512,
        wrong: "
    s_mov_b64 s[20:21], src_shared_base
    v_mov_b32_e32 v4, 16
    v_mov_b32_e32 v5, s21
    flat_store_b32 v[4:5], v1  // caught lane 1 at lds+0x10",
        right: "
    s_mov_b64 s[20:21], src_shared_base
    v_mov_b32_e32 v4, 16
    v_mov_b32_e32 v5, s21
    flat_store_b32 v[4:5], v4",
        ..WAVE
    },
];

pub const RACES: &[Case] = &[
    Case {
        name: "lds_without_barrier",
        rule: "race",
        wrong: "
    ds_store_b32 v1, v1
    v_mov_b32_e32 v4, 0
    ds_store_b32 v4, v4 offset:512  // caught wave 0|1 lane 0 at lds+0x200
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    v_lshlrev_b32_e32 v4, 2, v0
    ds_store_b32 v4, v1 offset:512
    s_wait_dscnt 0x0",
        ..GROUP
    },
    Case {
        name: "counted_while_the_other_stores",
        rule: "race",
        wrong: "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    s_mov_b32 m0, 0
    v_mov_b32_e32 v3, 0
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    ds_store_b32 v3, v3  // caught among two wave 0 lane 0 at lds+0x0
    s_wait_dscnt 0x0
    s_endpgm
.Lother:
    ds_append v2  // caught among two wave 1 lane 0 at lds+0x0
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    s_mov_b32 m0, 0
    v_mov_b32_e32 v3, 0
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    ds_store_b32 v3, v3
    s_wait_dscnt 0x0
    s_barrier_signal -1
    s_endpgm
.Lother:
    s_barrier_signal -1
    s_barrier_wait -1
    ds_append v2
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
    ds_load_b32 v3, v2  // caught wave 0|1 lane 0 at lds+0x0|lds+0x80
    s_wait_dscnt 0x0
    ds_store_b32 v1, v3  // caught wave 0|1 lane 0 at lds+0x0|lds+0x80
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
    global_store_b32 v1, v1, s[6:7]  // caught group 0|1 lane 0 at output+0x0",
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
    global_load_b32 v5, v4, s[8:9] scope:SCOPE_DEV  // caught group 0|1 lane 0 at flag+0x0
    s_wait_loadcnt 0x0
    v_add_nc_u32_e32 v5, 1, v5
    global_store_b32 v4, v5, s[8:9]  // caught group 0|1 lane 0 at flag+0x0",
        right: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV",
        ..PAIR
    },
];
