//! Cases of one wave: counters, hazards, undefined registers.

use crate::case::{Case, WAVE};

pub const COUNTERS: &[Case] = &[
    Case {
        name: "load_without_wait",
        rule: "counters",
        wrong: "
    global_load_b32 v2, v1, s[4:5]
    v_add_nc_u32_e32 v3, v2, v2  // caught register v2
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5]
    s_wait_loadcnt 0x0
    v_add_nc_u32_e32 v3, v2, v2",
        ..WAVE
    },
    Case {
        name: "wait_for_the_wrong_load",
        rule: "counters",
        wrong: "
    global_load_b32 v2, v1, s[4:5]
    global_load_b32 v3, v1, s[6:7]
    s_wait_loadcnt 0x1
    v_add_nc_u32_e32 v4, v3, v1  // caught register v3
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5]
    global_load_b32 v3, v1, s[6:7]
    s_wait_loadcnt 0x1
    v_add_nc_u32_e32 v4, v2, v1
    s_wait_loadcnt 0x0",
        ..WAVE
    },
    Case {
        name: "overwritten_before_it_arrived",
        rule: "counters",
        lds_bytes: 512,
        wrong: "
    ds_store_b32 v1, v1
    global_load_b32 v2, v1, s[4:5]
    ds_load_b32 v2, v1  // caught register v2
    s_wait_dscnt 0x0
    s_wait_loadcnt 0x0",
        right: "
    ds_store_b32 v1, v1
    global_load_b32 v2, v1, s[4:5]
    s_wait_loadcnt 0x0
    ds_load_b32 v2, v1
    s_wait_dscnt 0x0",
        ..WAVE
    },
    Case {
        name: "valu_over_a_load",
        rule: "counters",
        wrong: "
    global_load_b32 v2, v1, s[4:5]
    v_mov_b32_e32 v2, 0  // caught register v2
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5]
    s_wait_loadcnt 0x0
    v_mov_b32_e32 v2, 0",
        ..WAVE
    },
    Case {
        name: "scalar_load_without_wait",
        rule: "counters",
        wrong: "
    s_load_b32 s20, s[4:5], 0x0
    s_add_co_u32 s21, s20, 1  // caught register s20
    s_wait_kmcnt 0x0",
        right: "
    s_load_b32 s20, s[4:5], 0x0
    s_wait_kmcnt 0x0
    s_add_co_u32 s21, s20, 1",
        ..WAVE
    },
    Case {
        name: "scalar_loads_counted_one_by_one",
        rule: "counters",
        wrong: "
    s_load_b32 s20, s[4:5], 0x0
    s_load_b32 s21, s[4:5], 0x40
    s_wait_kmcnt 0x1  // caught
    s_wait_kmcnt 0x0",
        right: "
    s_load_b32 s20, s[4:5], 0x0
    s_load_b32 s21, s[4:5], 0x40
    s_wait_kmcnt 0x0",
        ..WAVE
    },
    Case {
        name: "lds_load_without_wait",
        rule: "counters",
        lds_bytes: 512,
        wrong: "
    ds_store_b32 v1, v1
    ds_load_b32 v2, v1
    v_add_nc_u32_e32 v3, v2, v1  // caught register v2
    s_wait_dscnt 0x0",
        right: "
    ds_store_b32 v1, v1
    ds_load_b32 v2, v1
    s_wait_dscnt 0x0
    v_add_nc_u32_e32 v3, v2, v1",
        ..WAVE
    },
    Case {
        name: "atomic_result_without_wait",
        rule: "counters",
        wrong: "
    v_mov_b32_e32 v2, 1
    global_atomic_add_u32 v3, v1, v2, s[4:5] th:TH_ATOMIC_RETURN scope:SCOPE_DEV
    v_add_nc_u32_e32 v4, v3, v2  // caught register v3
    s_wait_loadcnt 0x0",
        right: "
    v_mov_b32_e32 v2, 1
    global_atomic_add_u32 v3, v1, v2, s[4:5] th:TH_ATOMIC_RETURN scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_add_nc_u32_e32 v4, v3, v2",
        ..WAVE
    },
];

pub const HAZARDS: &[Case] = &[
    Case {
        name: "salu_write_then_valu_read",
        rule: "hazard",
        wrong: "
    s_mov_b32 s20, 1
    v_add_nc_u32_e32 v2, s20, v1
    s_mov_b32 s20, 2
    v_add_nc_u32_e32 v3, s20, v1  // caught register s20",
        right: "
    s_mov_b32 s20, 1
    v_add_nc_u32_e32 v2, s20, v1
    s_mov_b32 s20, 2
    s_wait_alu depctr_sa_sdst(0)
    v_add_nc_u32_e32 v3, s20, v1",
        ..WAVE
    },
    Case {
        name: "salu_write_then_salu_read",
        rule: "hazard",
        wrong: "
    s_mov_b32 s20, 1
    v_add_nc_u32_e32 v2, s20, v1
    s_mov_b32 s20, 2
    s_add_co_u32 s22, s20, 1  // caught register s20",
        right: "
    s_mov_b32 s20, 1
    v_add_nc_u32_e32 v2, s20, v1
    s_mov_b32 s20, 2
    s_wait_alu depctr_sa_sdst(0)
    s_add_co_u32 s22, s20, 1",
        ..WAVE
    },
    Case {
        name: "hazard_around_a_loop",
        rule: "hazard",
        wrong: "
    s_mov_b32 s20, 0
    s_mov_b32 s30, 0
.Lagain:
    v_add_nc_u32_e32 v2, s20, v1  // caught register s20
    s_add_co_u32 s30, s30, 1
    s_mov_b32 s20, 5
    s_cmp_lt_u32 s30, 3
    s_cbranch_scc1 .Lagain",
        right: "
    s_mov_b32 s20, 0
    s_mov_b32 s30, 0
.Lagain:
    v_add_nc_u32_e32 v2, s20, v1
    s_add_co_u32 s30, s30, 1
    s_mov_b32 s20, 5
    s_wait_alu depctr_sa_sdst(0)
    s_cmp_lt_u32 s30, 3
    s_cbranch_scc1 .Lagain",
        ..WAVE
    },
    Case {
        name: "compare_and_select_again",
        rule: "hazard",
        wrong: "
    v_cmp_lt_u32_e32 vcc_lo, 8, v1
    s_wait_alu depctr_va_vcc(0)
    v_cndmask_b32_e32 v2, v1, v0, vcc_lo
    v_cmp_lt_u32_e32 vcc_lo, 16, v1
    v_cndmask_b32_e32 v3, v1, v0, vcc_lo  // caught register vcc",
        right: "
    v_cmp_lt_u32_e32 vcc_lo, 8, v1
    s_wait_alu depctr_va_vcc(0)
    v_cndmask_b32_e32 v2, v1, v0, vcc_lo
    v_cmp_lt_u32_e32 vcc_lo, 16, v1
    s_wait_alu depctr_va_vcc(0)
    v_cndmask_b32_e32 v3, v1, v0, vcc_lo",
        ..WAVE
    },
    Case {
        name: "mask_in_a_scalar_again",
        rule: "hazard",
        wrong: "
    v_cmp_lt_u32_e64 s20, 8, v1
    s_wait_alu depctr_va_sdst(0)
    v_cndmask_b32_e64 v2, v1, v0, s20
    v_cmp_lt_u32_e64 s20, 16, v1
    v_cndmask_b32_e64 v3, v1, v0, s20  // caught register s20",
        right: "
    v_cmp_lt_u32_e64 s20, 8, v1
    s_wait_alu depctr_va_sdst(0)
    v_cndmask_b32_e64 v2, v1, v0, s20
    v_cmp_lt_u32_e64 s20, 16, v1
    s_wait_alu depctr_va_sdst(0)
    v_cndmask_b32_e64 v3, v1, v0, s20",
        ..WAVE
    },
    Case {
        name: "exec_then_permlane",
        rule: "hazard",
        wrong: "
    s_mov_b32 s20, 0x76543210
    s_mov_b32 s21, 0xfedcba98
    v_mov_b32_e32 v2, v1
    v_cmpx_lt_u32_e32 8, v1
    v_permlane16_b32 v2, v1, s20, s21 op_sel:[1,1]  // caught",
        right: "
    s_mov_b32 s20, 0x76543210
    s_mov_b32 s21, 0xfedcba98
    v_mov_b32_e32 v2, v1
    v_cmpx_lt_u32_e32 8, v1
    v_mov_b32_e32 v1, v1
    v_permlane16_b32 v2, v1, s20, s21 op_sel:[1,1]",
        ..WAVE
    },
    Case {
        name: "matrix_result_feeds_the_next",
        rule: "hazard",
        wrong: "
    v_mov_b32_e32 v16, 0
    v_mov_b32_e32 v17, 0
    v_wmma_i32_16x16x16_iu8 v[20:27], v[16:17], v[16:17], 0
    v_wmma_i32_16x16x16_iu8 v[30:37], v[20:21], v[16:17], 0  // caught register v[20:21]",
        right: "
    v_mov_b32_e32 v16, 0
    v_mov_b32_e32 v17, 0
    v_wmma_i32_16x16x16_iu8 v[20:27], v[16:17], v[16:17], 0
    v_nop
    v_wmma_i32_16x16x16_iu8 v[30:37], v[20:21], v[16:17], 0",
        ..WAVE
    },
    Case {
        name: "system_store_before_the_loads",
        rule: "hazard",
        wrong: "
    global_load_b32 v2, v1, s[4:5]
    global_store_b32 v1, v1, s[6:7] scope:SCOPE_SYS  // caught
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5]
    s_wait_loadcnt 0x0
    s_wait_storecnt 0x0
    global_store_b32 v1, v1, s[6:7] scope:SCOPE_SYS",
        ..WAVE
    },
];

pub const UNINITIALISED: &[Case] = &[
    Case {
        name: "vector_register",
        rule: "uninitialised",
        wrong: "
    v_add_nc_u32_e32 v3, v2, v1
    global_store_b32 v1, v3, s[6:7]  // caught lane 0 register v3",
        right: "
    v_add_nc_u32_e32 v3, v2, v1
    v_mov_b32_e32 v2, 0
    v_add_nc_u32_e32 v3, v2, v1
    global_store_b32 v1, v3, s[6:7]",
        ..WAVE
    },
    Case {
        name: "lanes_of_a_vector_register",
        rule: "uninitialised",
        wrong: "
    s_mov_b32 s20, exec_lo
    s_mov_b32 exec_lo, 0xffff
    v_mov_b32_e32 v2, 0
    s_mov_b32 exec_lo, s20
    v_add_nc_u32_e32 v3, v2, v1
    global_store_b32 v1, v3, s[6:7]  // caught lane 16 register v3",
        right: "
    s_mov_b32 s20, exec_lo
    s_mov_b32 exec_lo, 0xffff
    v_mov_b32_e32 v2, 0
    v_add_nc_u32_e32 v3, v2, v1
    global_store_b32 v1, v3, s[6:7]
    s_mov_b32 exec_lo, s20
    v_add_nc_u32_e32 v3, v2, v1",
        ..WAVE
    },
    Case {
        name: "scalar_register",
        rule: "uninitialised",
        wrong: "
    s_add_co_u32 s21, s20, 1
    s_cmp_eq_u32 s21, 0
    s_cbranch_scc1 0  // caught register scc",
        right: "
    s_add_co_u32 s21, s20, 1
    s_mov_b32 s20, 0
    s_add_co_u32 s21, s20, 1
    s_cmp_eq_u32 s21, 0
    s_cbranch_scc1 0",
        ..WAVE
    },
    Case {
        name: "beyond_the_user_registers",
        rule: "uninitialised",
        wrong: "
    s_cmp_eq_u32 s3, 0
    s_cbranch_scc1 0  // caught register scc",
        right: "
    s_cmp_eq_u32 s1, 0
    s_cbranch_scc1 0",
        ..WAVE
    },
    Case {
        name: "workgroup_id_that_is_not_enabled",
        rule: "uninitialised",
        wrong: "
    s_cmp_eq_u32 ttmp7, 0
    s_cbranch_scc1 0  // caught register scc",
        right: "
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc1 0",
        ..WAVE
    },
    Case {
        name: "condition_code",
        rule: "uninitialised",
        wrong: "
    s_cbranch_scc1 0  // caught register scc",
        right: "
    s_cselect_b32 s20, 1, 2
    s_cmp_eq_u32 s4, 0
    s_cbranch_scc1 0",
        ..WAVE
    },
    Case {
        name: "vcc",
        rule: "uninitialised",
        wrong: "
    v_cndmask_b32_e64 v2, v1, 9, vcc_lo
    global_store_b32 v1, v2, s[6:7]  // caught lane 0 register v2",
        right: "
    v_cndmask_b32_e64 v2, v1, v1, vcc_lo
    global_store_b32 v1, v2, s[6:7]",
        ..WAVE
    },
    Case {
        name: "lanes_of_a_matrix_operation",
        rule: "uninitialised",
        wrong: "
    v_mov_b32_e32 v16, 0
    v_mov_b32_e32 v17, 0
    v_mov_b32_e32 v18, 0
    v_mov_b32_e32 v19, 0
    s_mov_b32 exec_lo, 0xffff
    v_wmma_f32_16x16x16_f16 v[20:27], v[16:19], v[16:19], 0  // caught lane 16",
        right: "
    v_mov_b32_e32 v16, 0
    v_mov_b32_e32 v17, 0
    v_mov_b32_e32 v18, 0
    v_mov_b32_e32 v19, 0
    v_wmma_f32_16x16x16_f16 v[20:27], v[16:19], v[16:19], 0",
        ..WAVE
    },
    Case {
        name: "m0",
        rule: "uninitialised",
        wrong: "
    s_mov_b32 s20, m0
    s_sleep_var m0  // caught register m0",
        right: "
    s_mov_b32 s20, m0
    s_mov_b32 m0, 0
    s_sleep_var m0",
        ..WAVE
    },
];
