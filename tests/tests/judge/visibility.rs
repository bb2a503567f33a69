//! Cases of copies that are older than the data: caches of a compute unit, and what the host cannot see yet.

use crate::case::{Case, GROUP, PAIR, WAVE};

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
    global_load_b32 v7, v1, s[6:7]  // caught group 1 lane 0 at output+0x0
    s_wait_loadcnt 0x0
    global_store_b32 v1, v7, s[10:11]"
        )
    };
}

pub const CASES: &[Case] = &[
    Case {
        name: "no_acquire",
        rule: "visibility",
        received: Some([0, 4]),
        wrong: handover!(""),
        right: handover!(
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
            "
    global_inv scope:SCOPE_SE
    s_wait_loadcnt 0x0"
        ),
        right: handover!(
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
