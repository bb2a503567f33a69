//! A compiler's output in which every wait is needed.

use super::{check, list};
use zrt_isa::decode;

/// s_nop 0.
const NOP: u32 = 0xbf80_0000;

/// A loop with a condition per lane, as clang 22 compiles it for gfx1201 (-O1). It inserts the waits of the
/// instruction set reference §5.1 that it considers necessary, and no others. So the code is clean, and without any
/// one of its waits it is not.
const COMPILED: &[u32] = &[
    0xf400a100, 0xf8000008, // s_load_b96 s[4:6], s[0:1], 0x8
    0x30000082, // v_lshlrev_b32_e32 v0, 2, v0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xbf850001, // s_clause 0x1
    0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
    0xee050004, 0x00000003, 0x00008000, // global_load_b32 v3, v0, s[4:5] offset:128
    0xd7000200, 0x00020004, // v_add_co_u32 v0, s2, s4, v0
    0xbf870001, // s_delay_alu instid0(VALU_DEP_1)
    0xd5207c01, 0x00090005, // v_add_co_ci_u32_e64 v1, null, s5, 0, s2
    0xbf048106, // s_cmp_lt_i32 s6, 1
    0xbfa2002a, // s_cbranch_scc1 42
    0xf4002000, 0xf8000000, // s_load_b64 s[0:1], s[0:1], 0x0
    0xbe820080, // s_mov_b32 s2, 0
    0xbfa00013, // s_branch 19
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0x8c7e037e, // s_or_b32 exec_lo, exec_lo, s3
    0xbf870001, // s_delay_alu instid0(VALU_DEP_1)
    0x7c2204ff, 0x40400000, // v_cmp_lt_f32_e32 vcc_lo, 0x40400000, v2
    0x81028102, // s_add_co_i32 s2, s2, 1
    0xbfc70000, // s_wait_kmcnt 0x0
    0xa9808400, // s_add_nc_u64 s[0:1], s[0:1], 4
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbf070206, // s_cmp_lg_u32 s6, s2
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0x02060702, // v_cndmask_b32_e32 v3, v2, v3, vcc_lo
    0xbf870141, // s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_3) | instid1(VALU_DEP_2)
    0x060806f2, // v_add_f32_e32 v4, 1.0, v3
    0x080a0702, // v_sub_f32_e32 v5, v2, v3
    0x7c220503, // v_cmp_lt_f32_e32 vcc_lo, v3, v2
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0x02060905, // v_cndmask_b32_e32 v3, v5, v4, vcc_lo
    0xbfa10013, // s_cbranch_scc0 19
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe836502, // s_cvt_f32_u32 s3, s2
    0xbfc00000, // s_wait_loadcnt 0x0
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbf8700a9, // s_delay_alu instid0(SALU_CYCLE_1) | instskip(SKIP_1) | instid1(VALU_DEP_1)
    0x10080603, // v_mul_f32_e32 v4, s3, v3
    0xbe83007e, // s_mov_b32 s3, exec_lo
    0x7d220902, // v_cmpx_lt_f32_e32 v2, v4
    0xbfa5ffe4, // s_cbranch_execz 65508
    0xbfc70000, // s_wait_kmcnt 0x0
    0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xbe846404, // s_cvt_f32_i32 s4, s4
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbf87000a, // s_delay_alu instid0(SALU_CYCLE_2)
    0xd6130002, 0x0011e902, // v_fma_f32 v2, v2, 2.0, s4
    0xbfa0ffda, // s_branch 65498
    0xbfc00000, // s_wait_loadcnt 0x0
    0xbf870001, // s_delay_alu instid0(VALU_DEP_1)
    0x06040702, // v_add_f32_e32 v2, v2, v3
    0xee06807c, 0x01000000, 0x00000000, // global_store_b32 v[0:1], v2, off
    0xbfb00000, // s_endpgm
];

#[test]
fn a_compiler_that_knows_the_hazard_agrees() {
    let clean = check(COMPILED, 0);
    assert!(clean.is_empty(), "{}", list(&clean));
    let mut waits = 0;
    let mut dword = 0;
    while dword < COMPILED.len() {
        let instruction = decode(&COMPILED[dword..]).unwrap();
        if instruction.to_string().starts_with("s_wait_") {
            let mut without = COMPILED.to_vec();
            without[dword] = NOP;
            assert!(!check(&without, 0).is_empty(), "dword {dword:#x}: {instruction}");
            waits += 1;
        }
        dword += instruction.dword_count as usize;
    }
    assert_eq!(waits, 13);
}
