//! Cases of waves that wait forever.

use crate::case::{Case, GROUP, PAIR};

/// One group waits for the other's flag; the case says which. Each needs all LDS of the only compute unit.
macro_rules! waiting_group {
    ($waiting:literal, $poll:literal) => {
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
.Lconsumer:",
            $poll,
            "
    s_sleep 1  // caught among loop
    s_cmp_eq_u32 s20, 0  // caught among loop
    s_cbranch_scc1 .Lconsumer  // caught among loop"
        )
    };
}

/// Not a wait: it is long, loads often and stores nothing, but goes on to new lines.
const LONG_WORK: &str = "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 0
    s_mov_b32 exec_lo, 1
    s_mov_b32 s20, 0
.Lnext:
    global_load_b32 v6, v4, s[4:5]
    s_wait_loadcnt 0x0
    v_add_nc_u32_e32 v5, v5, v6
    v_add_nc_u32_e32 v4, 0x80, v4
    .fill 80, 4, 0xbf800000
    s_add_co_u32 s20, s20, 1
    s_cmp_lt_u32 s20, 0x2f00
    s_cbranch_scc1 .Lnext";

/// Right if the other group comes first; the other ways to poll are wrong then too.
const WAITS_FOR_THE_FIRST: &str = waiting_group!(
    "1",
    "
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6"
);

/// Two groups with room for one.
const CROWD: Case = Case { lds_bytes: 65_536, compute_units: 1, right: WAITS_FOR_THE_FIRST, ..PAIR };

pub const CASES: &[Case] = &[
    Case {
        name: "barrier_that_nobody_completes",
        rule: "progress",
        wrong: "
    s_cmp_eq_u32 s13, 0
    s_cbranch_scc0 .Lother
    s_barrier_signal -1
.Lother:
    s_barrier_wait -1  // caught",
        right: "
    s_barrier_signal -1
    s_barrier_wait -1",
        ..GROUP
    },
    Case {
        name: "spin_for_a_group_without_room",
        rule: "progress",
        wrong: waiting_group!(
            "0",
            "
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV  // caught among loop
    s_wait_loadcnt 0x0  // caught among loop
    v_readfirstlane_b32 s20, v6  // caught among loop"
        ),
        ..CROWD
    },
    Case {
        name: "spin_without_scope",
        rule: "progress",
        buffer_bytes: 0x20_0000,
        right: LONG_WORK,
        wrong: waiting_group!(
            "0",
            "
    global_load_b32 v6, v4, s[8:9]  // caught among loop
    s_wait_loadcnt 0x0  // caught among loop
    v_readfirstlane_b32 s20, v6  // caught among loop"
        ),
        ..CROWD
    },
    Case {
        name: "spin_by_scalar_loads",
        rule: "progress",
        wrong: waiting_group!(
            "0",
            "
    s_load_b32 s20, s[8:9], 0x0  // caught among loop
    s_wait_kmcnt 0x0  // caught among loop"
        ),
        ..CROWD
    },
    Case {
        name: "spin_by_atomics_without_effect",
        rule: "progress",
        wrong: waiting_group!(
            "0",
            "
    global_atomic_or_b32 v6, v4, v4, s[8:9] th:TH_ATOMIC_RETURN scope:SCOPE_DEV  // caught among loop
    s_wait_loadcnt 0x0  // caught among loop
    v_readfirstlane_b32 s20, v6  // caught among loop"
        ),
        ..CROWD
    },
    Case {
        name: "spin_over_two_flags",
        rule: "progress",
        wrong: waiting_group!(
            "0",
            "
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV  // caught among loop
    global_load_b32 v7, v4, s[8:9] offset:1024 scope:SCOPE_DEV  // caught among loop
    s_wait_loadcnt 0x0  // caught among loop
    v_or_b32_e32 v6, v6, v7  // caught among loop
    v_readfirstlane_b32 s20, v6  // caught among loop"
        ),
        ..CROWD
    },
];
