//! The scalar hazard (instruction set reference §5.1).

use super::{compare, findings, list};
use zrt_isa::lint::{Entry, Rule};
use zrt_isa::resources::WaveSize;

twins! {
    salu_write_valu_read: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "sa_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    salu_write_salu_read: Rule::ScalarHazard, "s_add_co_i32 s6, s4, 1", "s4", "sa_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0x81068104, // s_add_co_i32 s6, s4, 1
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0x81068104, // s_add_co_i32 s6, s4, 1
        0xbfb00000, // s_endpgm
    ]

    the_other_half_of_a_pair_counts: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0x7e020205, // v_mov_b32 v1, s5
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020206, // v_mov_b32 v1, s6
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    valu_write_valu_read: Rule::ScalarHazard, "v_cndmask_b32_e64 v1, v0, 1, s4", "s4", "va_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xd44a0004, 0x00020300, // v_cmp_eq_u32 s4, v0, v1
        0xd5010001, 0x00110300, // v_cndmask_b32 v1, v0, 1, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xd44a0004, 0x00020300, // v_cmp_eq_u32 s4, v0, v1
        0xbf88f19f, // s_wait_alu depctr_va_sdst(0)
        0xd5010001, 0x00110300, // v_cndmask_b32 v1, v0, 1, s4
        0xbfb00000, // s_endpgm
    ]

    a_salu_read_resolves_a_valu_write: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "va_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0x7e080500, // v_readfirstlane_b32 s4, v0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0x7e080500, // v_readfirstlane_b32 s4, v0
        0xbe860004, // s_mov_b32 s6, s4
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    vcc_chain: Rule::ScalarHazard, "v_cndmask_b32_e32 v2, v0, v1, vcc_lo", "vcc", "va_vcc(0)";
    [
        0x7c940081, // v_cmp_eq_u32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32 vcc_lo, 2, v0
        0x02040300, // v_cndmask_b32 v2, v0, v1, vcc_lo
        0xbfb00000, // s_endpgm
    ]
    [
        0x7c940081, // v_cmp_eq_u32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32 v1, v0, v0, vcc_lo
        0x7c940082, // v_cmp_eq_u32 vcc_lo, 2, v0
        0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
        0x02040300, // v_cndmask_b32 v2, v0, v1, vcc_lo
        0xbfb00000, // s_endpgm
    ]

    carry_chain: Rule::ScalarHazard, "v_add_co_ci_u32_e32 v2, vcc_lo, v0, v0, vcc_lo", "vcc", "";
    [
        0xd7006a01, 0x00020100, // v_add_co_u32 v1, vcc_lo, v0, v0
        0x40040100, // v_add_co_ci_u32 v2, vcc_lo, v0, v0, vcc_lo
        0xd7006a01, 0x00020100, // v_add_co_u32 v1, vcc_lo, v0, v0
        0x40040100, // v_add_co_ci_u32 v2, vcc_lo, v0, v0, vcc_lo
        0xbfb00000, // s_endpgm
    ]
    [
        0xd7006a01, 0x00020100, // v_add_co_u32 v1, vcc_lo, v0, v0
        0xd5207c02, 0x01aa0100, // v_add_co_ci_u32 v2, null, v0, v0, vcc_lo
        0xd7000601, 0x00020100, // v_add_co_u32 v1, s6, v0, v0
        0xd5207c02, 0x001a0100, // v_add_co_ci_u32 v2, null, v0, v0, s6
        0xbfb00000, // s_endpgm
    ]

    division_reads_vcc: Rule::ScalarHazard, "v_div_fmas_f32 v2, v0, v0, v0", "vcc", "va_vcc(0)";
    [
        0x7c940081, // v_cmp_eq_u32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32 v1, v0, v0, vcc_lo
        0xd6fc6a01, 0x04020100, // v_div_scale_f32 v1, vcc_lo, v0, v0, v0
        0xd6370002, 0x04020100, // v_div_fmas_f32 v2, v0, v0, v0
        0xbfb00000, // s_endpgm
    ]
    [
        0xd44a0006, 0x00020081, // v_cmp_eq_u32 s6, 1, v0
        0xd5010001, 0x001a0100, // v_cndmask_b32 v1, v0, v0, s6
        0xd6fc6a01, 0x04020100, // v_div_scale_f32 v1, vcc_lo, v0, v0, v0
        0xd6370002, 0x04020100, // v_div_fmas_f32 v2, v0, v0, v0
        0xbfb00000, // s_endpgm
    ]

    a_pair_of_operations_reads_vcc: Rule::ScalarHazard, "v_dual_cndmask_b32 v2, v0, v1 :: v_dual_mov_b32 v3, 0", "vcc", "va_vcc(0)";
    [
        0x7c940081, // v_cmp_eq_u32 vcc_lo, 1, v0
        0xca500100, 0x01020080, // v_dual_cndmask_b32 v1, v0, v0 :: v_dual_mov_b32 v2, 0
        0x7c940082, // v_cmp_eq_u32 vcc_lo, 2, v0
        0xca500300, 0x02020080, // v_dual_cndmask_b32 v2, v0, v1 :: v_dual_mov_b32 v3, 0
        0xbfb00000, // s_endpgm
    ]
    [
        0x7c940081, // v_cmp_eq_u32 vcc_lo, 1, v0
        0xca500100, 0x01020080, // v_dual_cndmask_b32 v1, v0, v0 :: v_dual_mov_b32 v2, 0
        0x7c940082, // v_cmp_eq_u32 vcc_lo, 2, v0
        0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
        0xca500300, 0x02020080, // v_dual_cndmask_b32 v2, v0, v1 :: v_dual_mov_b32 v3, 0
        0xbfb00000, // s_endpgm
    ]

    a_lane_select_is_a_valu_read: Rule::ScalarHazard, "v_readlane_b32 s7, v0, s4", "s4", "sa_sdst(0)";
    [
        0xd7600006, 0x00000900, // v_readlane_b32 s6, v0, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xd7600007, 0x00000900, // v_readlane_b32 s7, v0, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0xd7600006, 0x00000900, // v_readlane_b32 s6, v0, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0xd7600007, 0x00000900, // v_readlane_b32 s7, v0, s4
        0xbfb00000, // s_endpgm
    ]

    a_wait_for_the_wrong_field: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "sa_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88f19f, // s_wait_alu depctr_va_sdst(0)
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf880000, // s_wait_alu 0x0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    a_loop_reads_before_it_writes: Rule::ScalarHazard, "v_mov_b32_e32 v1, s4", "s4", "sa_sdst(0)";
    [
        // again:
        0xbe840005, // s_mov_b32 s4, s5
        0x7e020204, // v_mov_b32 v1, s4
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fffc, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]
    [
        // again:
        0xbe840005, // s_mov_b32 s4, s5
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0x7e020204, // v_mov_b32 v1, s4
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fffb, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]

    one_of_two_paths: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 join
        0x7e020205, // v_mov_b32 v1, s5
        // join:
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 join
        0x7e020207, // v_mov_b32 v1, s7
        // join:
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    memory_that_clears: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xee050008, 0x00000003, 0x00000000, // global_load_b32 v3, v0, s[8:9]
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xf4000284, 0xf8000000, // s_load_b32 s10, s[8:9], 0x0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    idle_lds: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0x7e060280, // v_mov_b32 v3, 0
        0xd8500000, 0x00000000, // ds_nop
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xd8500000, 0x00000000, // ds_nop
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    expiry_for_a_valu_read: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbf800000, // s_nop 0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]

    expiry_for_a_salu_read: Rule::ScalarHazard, "s_mov_b32 s6, s4", "s4", "";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe860004, // s_mov_b32 s6, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, // s_mov_b32 s10, 0
        0xbe860004, // s_mov_b32 s6, s4
        0xbfb00000, // s_endpgm
    ]

    nothing_is_open_at_a_return: Rule::ScalarHazard, "s_setpc_b64 s[8:9]", "s4", "sa_sdst(0)";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe804808, // s_setpc_b64 s[8:9]
    ]
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
        0xbe804808, // s_setpc_b64 s[8:9]
    ]

    an_address_is_no_valu_read: Rule::ScalarHazard, "v_mov_b32_e32 v2, s4", "s4", "";
    [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xf4000182, 0xf8000000, // s_load_b32 s6, s[4:5], 0x0
        0xbe840081, // s_mov_b32 s4, 1
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ]
}

#[test]
fn what_the_end_leaves_meets_the_beginning_of_the_next_run() {
    let code = [
        0xbe840081, // s_mov_b32 s4, 1
        0x7e020204, // v_mov_b32 v1, s4
        0xbfb00000, // s_endpgm
    ];
    assert!(findings(&code, |_| ()).is_empty());
    let again = findings(&code, |entry| entry.runs_again = true);
    assert_eq!(again.len(), 1, "{}", list(&again));
    assert_eq!((again[0].rule, again[0].dword, again[0].cause), (Rule::ScalarHazard, 1, Some(0)));
}

#[test]
fn strict_checks_trust_no_expiry_and_no_reads_of_vcc() {
    let code = [
        0x7e020204, // v_mov_b32 v1, s4
        0xbe840081, // s_mov_b32 s4, 1
        0xbe8a0080, 0xbe8a0080, 0xbe8a0080, 0xbe8a0080, 0xbe8a0080, 0xbe8a0080, // s_mov_b32 s10, 0
        0xbe8a0080, 0xbe8a0080, 0xbe8a0080, 0xbe8a0080, 0xbe8a0080, // s_mov_b32 s10, 0
        0x7e040204, // v_mov_b32 v2, s4
        0xbfb00000, // s_endpgm
    ];
    assert!(findings(&code, |_| ()).is_empty());
    assert_eq!(findings(&code, |entry| entry.is_strict = true)[0].dword, 13);
    let code = [
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0x02020100, // v_cndmask_b32_e32 v1, v0, v0, vcc_lo
        0x7c940081, // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        0xbea0206a, // s_and_saveexec_b32 s32, vcc_lo
        0xbfb00000, // s_endpgm
    ];
    assert!(findings(&code, |_| ()).is_empty());
    assert_eq!(findings(&code, |entry| entry.is_strict = true)[0].dword, 3);
}

#[test]
fn wave64_needs_eight_idle_instructions_and_both_halves_of_a_mask() {
    let nop = [0xd8500000, 0x00000000]; // ds_nop
    let code = |nops: usize| {
        let mut code = vec![0x7e020204]; // v_mov_b32 v1, s4
        code.extend(nop.iter().cycle().take(nops * 2));
        // s_mov_b32 s4, 1; v_mov_b32 v2, s4; s_endpgm
        code.extend([0xbe840081, 0x7e040204, 0xbfb00000]);
        code
    };
    let wave64 = |entry: &mut Entry| entry.wave_size = WaveSize::Wave64;
    assert_eq!(findings(&code(7), wave64).len(), 1);
    assert!(findings(&code(8), wave64).is_empty());
    // s_mov_b32 vcc_lo, 0; s_cbranch_vccz 0; s_endpgm
    let code = [0xbeea0080, 0xbfa30000, 0xbfb00000];
    assert!(findings(&code, |_| {}).is_empty());
    let missing = findings(&code, |entry| entry.wave_size = WaveSize::Wave64);
    assert_eq!(missing[0].registers.unwrap().to_string(), "vcc_hi");
    assert_eq!(missing[0].instruction, "s_cbranch_vccz 0");
}

/// Code between a VALU write of s4 and its read by a VALU instruction. Only a SALU read of an ordinary register
/// that a VALU instruction has read before is trusted to wait for it, and in strict mode not even that.
#[test]
fn only_a_salu_read_of_a_tracked_register_waits() {
    let code = |before: &[u32], between: u32| {
        // v_mov_b32 v1, s4; v_readfirstlane_b32 s4, v0; ...; v_mov_b32 v2, s4; s_endpgm
        [before, &[0x7e020204, 0x7e080500, between, 0x7e040204, 0xbfb00000]].concat()
    };
    let found = |code: &[u32], is_strict| findings(code, |entry| entry.is_strict = is_strict).len();
    // v_mov_b32 v1, s8; v_cmp_eq_u32 vcc_lo, 1, v0 and v_cndmask_b32 v3, v0, v0, vcc_lo
    let (track, track_vcc) = ([0x7e020208], [0x7c940081, 0x02060100]);
    // s_mov_b32 s6, s8; v_mov_b32 v3, s8; s_mov_b32 s6, vcc_lo
    let (salu, valu, salu_vcc) = (0xbe860008, 0x7e060208, 0xbe86006a);
    assert_eq!([false, true].map(|is_strict| found(&code(&track, salu), is_strict)), [0, 1]);
    assert_eq!([false, true].map(|is_strict| found(&code(&[], salu), is_strict)), [1, 1]);
    assert_eq!([false, true].map(|is_strict| found(&code(&track, valu), is_strict)), [1, 1]);
    assert_eq!([false, true].map(|is_strict| found(&code(&track_vcc, salu_vcc), is_strict)), [1, 1]);
}

#[test]
fn a_write_is_told_once_and_grows_old_once() {
    // v_mov_b32 v1, s4; s_mov_b32 s4, 1; v_mov_b32 v2, s4; v_mov_b32 v3, s4; s_endpgm
    let found = findings(&[0x7e020204, 0xbe840081, 0x7e040204, 0x7e060204, 0xbfb00000], |_| ());
    assert_eq!(found.iter().map(|finding| finding.dword).collect::<Vec<_>>(), [2], "{}", list(&found));
    // v_mov_b32 v1, s4; s_mov_b32 s4, 1; many s_mov_b32 s20, 1; v_mov_b32 v2, s4; s_endpgm
    let code = [&[0x7e020204, 0xbe840081][..], &[0xbe940081; 600], &[0x7e040204, 0xbfb00000]].concat();
    assert!(findings(&code, |_| ()).is_empty());
}

#[test]
fn a_jump_out_of_sight_needs_a_wait_for_each_kind_of_write() {
    // v_mov_b32 v1, s4; v_cmp_eq_u32 vcc_lo, 1, v0; v_cndmask_b32 v3, v0, v0, vcc_lo; ...; s_setpc_b64 s[8:9]
    let left = |write: u32| {
        let found = findings(&[0x7e020204, 0x7c940081, 0x02060100, write, 0xbe804808], |_| ());
        assert_eq!(found.len(), 1, "{}", list(&found));
        let registers = found[0].registers.map(|registers| registers.to_string()).unwrap_or_default();
        let field = found[0].remedy.split_whitespace().nth(2).unwrap_or_default().to_owned();
        (found[0].dword, found[0].cause, registers, field)
    };
    let expected = |registers: &str, field: &str| (4, Some(3), registers.to_owned(), field.to_owned());
    // v_readfirstlane_b32 s4, v0; v_cmp_eq_u32 vcc_lo, 1, v0; s_mov_b32 s4, 1; s_mov_b32 vcc_lo, 1
    assert_eq!(left(0x7e080500), expected("s4", "depctr_va_sdst(0)"));
    assert_eq!(left(0x7c940081), expected("vcc", "depctr_va_vcc(0)"));
    assert_eq!(left(0xbe840081), expected("s4", "depctr_sa_sdst(0)"));
    assert_eq!(left(0xbeea0081), expected("vcc", "depctr_sa_sdst(0)"));
}

/// Eleven SALU instructions after it, a SALU write has arrived by itself, but not in strict mode.
#[test]
fn a_jump_out_of_sight_waits_for_no_write_that_has_expired() {
    let left = |count: usize, is_strict| {
        // v_mov_b32 v1, s4; s_mov_b32 s4, 1; s_mov_b32 s20, 1 ...; s_setpc_b64 s[8:9]
        let code = [&[0x7e020204, 0xbe840081][..], &vec![0xbe940081; count], &[0xbe804808]].concat();
        findings(&code, |entry| entry.is_strict = is_strict).len()
    };
    assert_eq!([10, 11].map(|count| left(count, false)), [1, 0]);
    assert_eq!([10, 11].map(|count| left(count, true)), [1, 1]);
}

/// Three ds_nop before a loop and one at its head clear the mark only in the first round: what comes from the end
/// of the loop has been idle once. So it is where paths meet again in the body.
#[test]
fn idle_instructions_of_one_path_do_not_count_on_another() {
    let (nop, write, read) = ([0xd8500000, 0x00000000], 0xbe840081, 0x7e040204);
    let code = |head: &[u32]| {
        // s_cbranch_scc0 past s_nop 0; s_cmp_eq_u32 s6, 0; s_cbranch_scc1 over the body
        let body = [head, &[0xbfa10001, 0xbf800000, 0xbf068006, 0xbfa20003, write, read]].concat();
        let back = -(body.len() as i32 + 1);
        // v_mov_b32 v1, s4; ds_nop three times; the body; s_branch to it; s_endpgm
        let end = [0xbfa00000 | u32::from(back as i16 as u16), 0xbfb00000];
        [&[0x7e020204][..], &nop.repeat(3), &body, &end].concat()
    };
    let found = findings(&code(&nop), |_| ());
    assert_eq!((found.len(), found[0].dword, found[0].cause), (1, 14, Some(13)), "{}", list(&found));
    assert!(findings(&code(&nop.repeat(4)), |_| ()).is_empty());
}

/// Every kind of write against every field of s_wait_alu.
#[test]
fn a_wait_resolves_the_writes_of_its_field() {
    let found = |write: u32, wait: u32, read: u32| {
        // v_mov_b32 v1, s4; v_cmp_eq_u32 vcc_lo, 1, v0; v_cndmask_b32 v3, v0, v0, vcc_lo; ...; s_endpgm
        findings(&[0x7e020204, 0x7c940081, 0x02060100, write, wait, read, 0xbfb00000], |_| ()).len()
    };
    // v_mov_b32 v2, s4; v_cndmask_b32 v3, v0, v0, vcc_lo
    let (read, read_vcc) = (0x7e040204, 0x02060100);
    for (wait, expected) in [
        (0xbf88ffff, [1, 1, 1, 1]), // s_wait_alu for nothing
        (0xbf88ff9e, [0, 0, 1, 1]), // s_wait_alu depctr_sa_sdst(0)
        (0xbf88f19f, [1, 1, 0, 1]), // s_wait_alu depctr_va_sdst(0)
        (0xbf88f39f, [1, 1, 1, 1]), // s_wait_alu depctr_va_sdst(1)
        (0xbf88ff9d, [1, 1, 1, 0]), // s_wait_alu depctr_va_vcc(0)
        (0xbf880f9f, [1, 1, 1, 1]), // s_wait_alu depctr_va_vdst(0)
        (0xbf88ff83, [1, 1, 1, 1]), // s_wait_alu depctr_vm_vsrc(0)
        (0xbf88f19c, [0, 0, 0, 0]), // s_wait_alu of the first three
    ] {
        let counts = [
            found(0xbe840081, wait, read),     // s_mov_b32 s4, 1
            found(0xbeea0081, wait, read_vcc), // s_mov_b32 vcc_lo, 1
            found(0x7e080500, wait, read),     // v_readfirstlane_b32 s4, v0
            found(0x7c940081, wait, read_vcc), // v_cmp_eq_u32_e32 vcc_lo, 1, v0
        ];
        assert_eq!(counts, expected, "{wait:#x}");
    }
}
