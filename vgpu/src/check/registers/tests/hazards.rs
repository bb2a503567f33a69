//! Hazards (instruction set reference §5), and operations that cannot issue as a pair (instruction set reference
//! §6).

use super::*;
use Defect::*;

twins! {
    salu_write_valu_read: "hazards: pc 0x8: s4 was read by the VALU, then written by the SALU; this read may \
        return the old value, from pc 0x4; needs s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]

    salu_write_salu_read: "hazards: pc 0x8: s4 was read by the VALU, then written by the SALU; this read may \
        return the old value, from pc 0x4; needs s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020205, // v_mov_b32_e32 v1, s5
        0xbe840081, // s_mov_b32 s4, 1
        0x81068104, // s_add_co_i32 s6, s4, 1
    ]
    [
        0x7e020206, // v_mov_b32_e32 v1, s6
        0xbe840081, // s_mov_b32 s4, 1
        0x81068104, // s_add_co_i32 s6, s4, 1
    ]

    valu_write_valu_read: "hazards: pc 0xc: s4 was read by the VALU, then written by the VALU; this read may \
        return the old value, from pc 0x4; needs s_wait_alu depctr_va_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xd44a0004, 0x00020300, // v_cmp_eq_u32_e64 s4, v0, v1
        0xd5010001, 0x00110300, // v_cndmask_b32_e64 v1, v0, 1, s4
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xd44a0004, 0x00020300, // v_cmp_eq_u32_e64 s4, v0, v1
        0xbf88f19f, // s_wait_alu depctr_va_sdst(0)
        0xd5010001, 0x00110300, // v_cndmask_b32_e64 v1, v0, 1, s4
    ]

    the_wrong_field: "hazards: pc 0xc: s4 was read by the VALU, then written by the VALU; this read may return \
        the old value, from pc 0x4; needs s_wait_alu depctr_va_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0x7e080500, // v_readfirstlane_b32 s4, v0
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]
    // A SALU read resolves the write of the registers that it reads.
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0x7e080500, // v_readfirstlane_b32 s4, v0
        0xbe860004, // s_mov_b32 s6, s4
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]

    vcc_chain: "hazards: pc 0xc: vcc was read by the VALU, then written by the VALU; this read may return the \
        old value, from pc 0x8; needs s_wait_alu depctr_va_vcc(0) before it";
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32_e32 vcc_lo, 2, v0
        0x02040300, // v_cndmask_b32_e32 v2, v0, v1, vcc_lo
    ]
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32_e32 vcc_lo, 2, v0
        0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
        0x02040300, // v_cndmask_b32_e32 v2, v0, v1, vcc_lo
    ]

    a_branch_reads_vcc: "hazards: pc 0xc: vcc was read by the VALU, then written by the VALU; this read may \
        return the old value, from pc 0x8; needs s_wait_alu depctr_va_vcc(0) before it";
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32_e32 vcc_lo, 2, v0
        0xbfa30000, // s_cbranch_vccz 0
    ]
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0xbfa30000, // s_cbranch_vccz 0
    ]

    vector_memory_does_not_clear: "hazards: pc 0x14: s4 was read by the VALU, then written by the SALU; this \
        read may return the old value, from pc 0x4; needs s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xee068008, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[8:9]
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xc406807c, 0x40801001, 0x00000000, // buffer_store_b32 v1, v0, s[8:11], null offen
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]

    scalar_memory_clears: "hazards: pc 0x8: s4 was read by the VALU, then written by the SALU; this read may \
        return the old value, from pc 0x4; needs s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xf4000500, 0xf8000000, // s_load_b32 s20, s[0:1], 0x0
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]

    idle_run: "hazards: pc 0x20: s4 was read by the VALU, then written by the SALU; this read may return the \
        old value, from pc 0x1c; needs s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32_e32 v2, s4
    ]

    jump_with_an_open_write: "hazards: pc 0x8: s4 has a write open at a jump to other code, from pc 0x4; needs \
        s_wait_alu depctr_sa_sdst(0) before it";
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe80481e, // s_setpc_b64 s[30:31]
    ]
    [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0xbe80481e, // s_setpc_b64 s[30:31]
    ]

    call_with_an_open_write: "hazards: pc 0xc: vcc has a write open at a jump to other code, from pc 0x8; needs \
        s_wait_alu depctr_va_vcc(0) before it";
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32_e32 vcc_lo, 2, v0
        0xbe9e4920, // s_swappc_b64 s[30:31], s[32:33]
    ]
    [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0xbe9e4920, // s_swappc_b64 s[30:31], s[32:33]
    ]

    matrix_result_as_a: "hazards: pc 0x8: v[16:19] is the result of a matrix operation and input A, B or index \
        of the next, from pc 0x0; needs a VALU instruction, such as v_nop, in between";
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0xcc404018, 0x1c220910, // v_wmma_f32_16x16x16_f16 v[24:31], v[16:19], v[4:7], v[8:15]
    ]
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0x7e000000, // v_nop
        0xcc404018, 0x1c220910, // v_wmma_f32_16x16x16_f16 v[24:31], v[16:19], v[4:7], v[8:15]
    ]

    matrix_result_as_b: "hazards: pc 0xc: v[20:23] is the result of a matrix operation and input A, B or index \
        of the next, from pc 0x0; needs a VALU instruction, such as v_nop, in between";
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0xbe840080, // s_mov_b32 s4, 0
        0xcc404018, 0x1c222900, // v_wmma_f32_16x16x16_f16 v[24:31], v[0:3], v[20:23], v[8:15]
    ]
    // The hardware interlocks the addend.
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0xcc404018, 0x1c420900, // v_wmma_f32_16x16x16_f16 v[24:31], v[0:3], v[4:7], v[16:23]
    ]

    matrix_result_as_index: "hazards: pc 0x8: v16 is the result of a matrix operation and input A, B or index \
        of the next, from pc 0x0; needs a VALU instruction, such as v_nop, in between";
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0xcc504018, 0x1c420900, // v_swmmac_f32_16x16x32_f16 v[24:31], v[0:3], v[4:11], v16
    ]
    [
        0xcc404010, 0x1c220900, // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        0xcc504010, 0x1c620900, // v_swmmac_f32_16x16x32_f16 v[16:23], v[0:3], v[4:11], v24
    ]

    exchange_after_compare: "hazards: pc 0x8: lanes are exchanged right after v_cmpx wrote EXEC, from pc 0x0; \
        needs a VALU instruction other than v_nop in between";
    [
        0x7d920083, // v_cmpx_lt_u32_e32 3, v0
        0x7e000000, // v_nop
        0xd65b0001, 0x000c0500, // v_permlane16_b32 v1, v0, s2, s3
    ]
    [
        0x7d920083, // v_cmpx_lt_u32_e32 3, v0
        0x7e040302, // v_mov_b32_e32 v2, v2
        0xd65b0001, 0x000c0500, // v_permlane16_b32 v1, v0, s2, s3
    ]

    system_store_after_a_load: "hazards: pc 0xc: a store of system scope while earlier accesses are \
        outstanding; needs s_wait_loadcnt 0x0, s_wait_kmcnt 0x0 and s_wait_storecnt 0x0 before it";
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xee06807c, 0x018c0000, 0x00000000, // global_store_b32 v[0:1], v3, off scope:SCOPE_SYS
    ]
    [
        0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        0xbfc00000, // s_wait_loadcnt 0x0
        0xee06807c, 0x018c0000, 0x00000000, // global_store_b32 v[0:1], v3, off scope:SCOPE_SYS
    ]

    system_store_after_a_store: "hazards: pc 0xc: a store of system scope while earlier accesses are \
        outstanding; needs s_wait_loadcnt 0x0, s_wait_kmcnt 0x0 and s_wait_storecnt 0x0 before it";
    [
        0xee06807c, 0x01800000, 0x00000000, // global_store_b32 v[0:1], v3, off
        0xec06807c, 0x018c0000, 0x00000000, // flat_store_b32 v[0:1], v3 scope:SCOPE_SYS
    ]
    // Atomics and narrower scopes are allowed.
    [
        0xee06807c, 0x01800000, 0x00000000, // global_store_b32 v[0:1], v3, off
        0xee0d407c, 0x018c0000, 0x00000000, // global_atomic_add_u32 v[0:1], v3, off scope:SCOPE_SYS
        0xee06807c, 0x01880000, 0x00000000, // global_store_b32 v[0:1], v3, off scope:SCOPE_DEV
        0xee0b007c, 0x000c0000, 0x00000000, // global_wb scope:SCOPE_SYS
    ]

    system_store_after_a_scalar_load: "hazards: pc 0x8: a store of system scope while earlier accesses are \
        outstanding; needs s_wait_loadcnt 0x0, s_wait_kmcnt 0x0 and s_wait_storecnt 0x0 before it";
    [
        0xf4000100, 0xf8000000, // s_load_b32 s4, s[0:1], 0x0
        0xee06807c, 0x018c0000, 0x00000000, // global_store_b32 v[0:1], v3, off scope:SCOPE_SYS
    ]
    // LDS is no memory that others see.
    [
        0xd8d80000, 0x02000000, // ds_load_b32 v2, v0
        0xee06807c, 0x018c0000, 0x00000000, // global_store_b32 v[0:1], v3, off scope:SCOPE_SYS
    ]

    // Assembled with other registers, then changed: src0 of the two halves is v4 and v8.
    dual_banks_of_source_0: "hazards: pc 0x0: both halves of a dual operation read the same register bank; use \
        vector registers whose numbers differ modulo 4";
    [
        0xc8c60b08, 0x01020d04, // v_dual_mul_f32 v1, v8, v5 :: v_dual_mul_f32 v2, v4, v6
    ]
    [
        0xc8c60b09, 0x01020d04, // v_dual_mul_f32 v1, v9, v5 :: v_dual_mul_f32 v2, v4, v6
    ]
}

/// Instruction sequences for which the compilers' scalar hazard rules differ from the strict one.
#[test]
fn compilers_trust_more() {
    let write = [
        0x7e020204, // v_mov_b32_e32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
    ];
    let other = [
        0xbe940081, // s_mov_b32 s20, 1
    ];
    let valu_read = [
        0x7e040204, // v_mov_b32_e32 v2, s4
    ];
    let salu_read = [
        0xbe950004, // s_mov_b32 s21, s4
    ];
    let cases: [(usize, &[u32], bool); 4] =
        [(10, &valu_read, true), (11, &valu_read, false), (9, &salu_read, true), (10, &salu_read, false)];
    for (others, read, is_found) in cases {
        for strictness in [Strictness::Strict, Strictness::Compiler] {
            let mut walk = Walk::new(&LaunchState { strictness, ..launch(WaveSize::Wave32) });
            walk.run(&write);
            (0..others).for_each(|_| walk.run(&other));
            walk.run(read);
            let expected = is_found || strictness == Strictness::Strict;
            assert_eq!(!walk.ordered().is_empty(), expected, "{others} {strictness:?}");
        }
    }
    // A SALU read of one tracked register resolves VALU writes of others.
    for (strictness, count) in [(Strictness::Strict, 1), (Strictness::Compiler, 0)] {
        let mut walk = Walk::new(&LaunchState { strictness, ..launch(WaveSize::Wave32) });
        walk.run(&[
            0x7e020204, // v_mov_b32_e32 v1, s4
            0x7e020206, // v_mov_b32_e32 v1, s6
            0x7e080500, // v_readfirstlane_b32 s4, v0
            0xbe940006, // s_mov_b32 s20, s6
            0x7e040204, // v_mov_b32_e32 v2, s4
        ]);
        assert_eq!(walk.ordered().len(), count);
    }
}

#[test]
fn a_wave64_mask_is_a_pair_and_needs_a_longer_idle_run() {
    let run = |idle: usize| {
        let mut walk = Walk::new(&launch(WaveSize::Wave64));
        walk.run(&[
            0xd5010001, 0x00110300, // v_cndmask_b32_e64 v1, v0, 1, s[4:5]
        ]);
        (0..idle).for_each(|_| {
            walk.run(&[
                0xd8500000, 0x00000000, // ds_nop
            ])
        });
        walk.run(&[
            0xbe850081, // s_mov_b32 s5, 1
            0xd5010001, 0x00110300, // v_cndmask_b32_e64 v1, v0, 1, s[4:5]
        ]);
        walk.ordered().iter().map(|finding| finding.registers.unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(run(7), ["s5"]);
    assert!(run(8).is_empty());
}

/// Adjacent vector registers, scalar values, and moves.
#[test]
fn dual_operations() {
    let defects = |words: &[u32]| {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(words);
        walk.ordered().iter().map(|finding| finding.defect).collect::<Vec<_>>()
    };
    assert!(
        defects(&[
            0xca100108, 0x01020104, // v_dual_mov_b32 v1, v8 :: v_dual_mov_b32 v2, v4
        ])
        .is_empty()
    );
    assert!(
        defects(&[
            0xc8c60a04, 0x01020c06, // v_dual_mul_f32 v1, s4, v5 :: v_dual_mul_f32 v2, s6, v6
        ])
        .is_empty()
    );
    assert!(
        defects(&[
            0xc8460aff, 0x01020c06,
            0x12345678, // v_dual_fmaak_f32 v1, 0x12345678, v5, 0x12345678 :: v_dual_mul_f32 v2, s6, v6
        ])
        .is_empty()
    );
    // v_dual_fmaak_f32 v1, s4, v5, 0x12345678 :: v_dual_mul_f32 v2, s6, v6: two registers and a literal
    assert_eq!(defects(&[0xc8460a04, 0x01020c06, 0x12345678]), [DualScalars]);
    // v_dual_mov_b32 v1, v8 :: v_dual_mul_f32 v2, v5, v10, the same in the other order, and both with v4 instead of v5,
    // which the assembler refuses: of two moves only, the second reads through another port.
    assert_eq!(defects(&[0xca060108, 0x01021505]), []);
    assert_eq!(defects(&[0xca060108, 0x01021504]), [DualBanks]);
    assert_eq!(defects(&[0xc8d01505, 0x02000108]), []);
    assert_eq!(defects(&[0xc8d01504, 0x02000108]), [DualBanks]);
    // v_dual_mul_f32 v1, v9, v6 :: v_dual_mul_f32 v2, v4, v10: the second sources
    assert_eq!(defects(&[0xc8c60d09, 0x01021504]), [DualBanks]);
}

/// FMAMK reads its addend through the port of FMAC's accumulator, not where other operations read their second
/// source.
#[test]
fn addends_of_dual_operations() {
    let defects = |words: &[u32]| {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(words);
        walk.ordered().iter().map(|finding| finding.defect).collect::<Vec<_>>()
    };
    let right: [&[u32]; 4] = [
        // As LLVM 19 writes it: v19 and v27 are in the same bank.
        &[0xc8a42702, 0x02243681, 0x20c90fdb], // v_dual_fmamk_f32 v2, v2, 0x20c90fdb, v19 :: v_dual_and_b32 v37, 1, v27
        &[0xc8802504, 0x02041306, 0x20c90fdb], // v_dual_fmamk_f32 v2, v4, 0x20c90fdb, v18 :: v_dual_fmac_f32 v5, v6, v9
        &[0xc8041306, 0x05022504, 0x20c90fdb], // v_dual_fmac_f32 v5, v6, v9 :: v_dual_fmamk_f32 v2, v4, 0x20c90fdb, v18
        &[0xc8842504, 0x02042b07, 0x20c90fdb], // v_dual_fmamk_f32 v2, v4, 0x20c90fdb, v18 :: v_dual_fmamk_f32 v5, v7, 0x20c90fdb, v21
    ];
    for words in right {
        assert_eq!(defects(words), [], "{words:x?}");
    }
    // The second, third and fourth with v19 instead of v18, which the assembler refuses.
    for words in [
        [0xc8802704, 0x02041306, 0x20c90fdb],
        [0xc8041306, 0x05022704, 0x20c90fdb],
        [0xc8842704, 0x02042b07, 0x20c90fdb],
    ] {
        assert_eq!(defects(&words), [DualAddends], "{words:x?}");
    }
}

/// A call writes the return address, which a vector operation has read before.
#[test]
fn compilers_trust_the_return_address_of_a_call() {
    let count = |strictness| {
        let mut walk = Walk::new(&LaunchState { strictness, ..launch(WaveSize::Wave32) });
        walk.run(&[
            0x7e02021e, // v_mov_b32_e32 v1, s30
            0xbe9e4900, // s_swappc_b64 s[30:31], s[0:1]
            0xbe80481e, // s_setpc_b64 s[30:31]
        ]);
        walk.ordered().len()
    };
    assert_eq!((count(Strictness::Strict), count(Strictness::Compiler)), (1, 0));
}

/// A matrix result in v[16:23], and inputs A that begin below, in and above it.
#[test]
fn matrix_inputs_that_share_a_register_with_the_result_are_found() {
    let result = [0xcc404010, 0x1c220900]; // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
    let found = |between: &[u32], first: u32| {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(&result);
        walk.run(between);
        walk.run(&[
            // v_wmma_f32_16x16x16_f16 v[32:39], v[first:first+3], v[4:7], v[8:15]
            0xcc404020,
            0x1c220900 | first,
        ]);
        walk.ordered().iter().map(|finding| finding.registers.unwrap().to_string()).collect::<Vec<_>>()
    };
    for (first, expected) in
        [(12, None), (13, Some("v[13:16]")), (18, Some("v[18:21]")), (23, Some("v[23:26]")), (24, None)]
    {
        assert_eq!(found(&[], first), expected.into_iter().collect::<Vec<_>>());
    }
    // Whatever VALU instruction comes between, it is enough; others are not.
    let between: [(&[u32], usize); 6] = [
        (&[0x7e000000], 0),             // v_nop
        (&[0x7d920083], 0),             // v_cmpx_lt_u32_e32 3, v0
        (&[0xd65b0001, 0x000c0500], 0), // v_permlane16_b32 v1, v0, s2, s3
        (&[0x7e040302], 0),             // v_mov_b32_e32 v2, v2
        (&[0xd8d80000, 0x28000000], 1), // ds_load_b32 v40, v0
        (&[0xbf800000], 1),             // s_nop 0
    ];
    for (words, count) in between {
        assert_eq!(found(words, 16).len(), count, "{words:x?}");
    }
}

#[test]
fn an_exchange_is_found_only_next_to_the_compare() {
    let compare: &[u32] = &[0x7d920083]; // v_cmpx_lt_u32_e32 3, v0
    let exchange: &[u32] = &[0xd65b0001, 0x000c0500]; // v_permlane16_b32 v1, v0, s2, s3
    let matrix: &[u32] = &[0xcc404010, 0x1c220900]; // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
    let scalar: &[u32] = &[0xbf800000]; // s_nop 0
    let cases: [(&[&[u32]], usize); 5] = [
        (&[compare, exchange, exchange], 1),
        (&[compare, scalar, exchange], 1),
        (&[compare, matrix, exchange], 0),
        (&[exchange, compare], 0),
        (&[compare, exchange, compare, exchange], 2),
    ];
    for (parts, count) in cases {
        let mut walk = Walk::new(&launch(WaveSize::Wave32));
        walk.run(&parts.concat());
        assert_eq!(walk.ordered().len(), count, "{parts:x?}");
    }
}
