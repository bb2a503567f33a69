//! Cases of copies that are older than the data: caches of a compute unit, and what the host cannot see yet.

use crate::case::{Case, GROUP, PAIR, WAVE, handover};

pub const CASES: &[Case] = &[
    Case {
        name: "no_acquire",
        rule: "visibility",
        received: Some([0, 4]),
        wrong: handover!(complete, ""),
        right: handover!(
            complete,
            "
    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0"
        ),
        ..PAIR
    },
    Case {
        name: "acquire_of_too_small_a_scope",
        rule: "visibility",
        received: Some([0, 4]),
        wrong: handover!(
            complete,
            "
    global_inv scope:SCOPE_SE
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
    Case {
        name: "line_for_the_host_not_written_back",
        rule: "visibility",
        wrong: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_mov_b32 exec_lo, 1
    global_store_b32 v4, v5, s[6:7] offset:60
    s_wait_storecnt 0x0
    global_store_b32 v4, v5, s[6:7] scope:SCOPE_SYS  // caught lane 0 at output+0x0",
        right: "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_mov_b32 exec_lo, 1
    global_store_b32 v4, v5, s[6:7] offset:60
    global_wb scope:SCOPE_SYS
    s_wait_storecnt 0x0
    global_store_b32 v4, v5, s[6:7] scope:SCOPE_SYS",
        ..WAVE
    },
    Case {
        name: "line_for_the_host_not_stored_through",
        rule: "visibility",
        wrong: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_mov_b32_e32 v4, 0
    s_mov_b32 exec_lo, 1
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    global_store_b32 v4, v4, s[6:7] scope:SCOPE_SYS  // caught lane 0 at output+0x0
.Lother:",
        right: "
    global_store_b32 v1, v1, s[6:7] scope:SCOPE_SYS
    s_wait_storecnt 0x0
    s_barrier_signal -1
    s_barrier_wait -1
    v_mov_b32_e32 v4, 0
    s_mov_b32 exec_lo, 1
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    global_store_b32 v4, v4, s[6:7] scope:SCOPE_SYS
.Lother:",
        ..GROUP
    },
];
