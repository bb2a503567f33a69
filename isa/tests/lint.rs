//! The lint: one wrong kernel and its right twin per rule, assembled with llvm-mc 19 from the text beside the words, and a
//! compiler's output in which every wait is needed.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use proptest::prelude::*;
use zrt_isa::decode;
use zrt_isa::lint::{Entry, Finding, Rule, check, check_entry};
use zrt_isa::resources::WaveSize;

/// `wrong` breaks `rule` once, at the instruction `text` with `registers`; `right` breaks nothing.
fn compare(rule: Rule, text: &str, registers: &str, remedy: &str, wrong: &[u32], right: &[u32]) {
    let findings = check(wrong, 0);
    assert_eq!(findings.len(), 1, "{}", list(&findings));
    let finding = &findings[0];
    assert_eq!((finding.rule, finding.instruction.as_str()), (rule, text));
    assert_eq!(finding.registers.map(|registers| registers.to_string()).unwrap_or_default(), registers);
    assert!(finding.remedy.contains(remedy), "{finding}");
    assert_eq!(decode(&wrong[finding.dword..]).unwrap().to_string(), text);
    let findings = check(right, 0);
    assert!(findings.is_empty(), "{}", list(&findings));
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n{finding}")).collect()
}

macro_rules! twins {
    ($($name:ident: $rule:expr, $text:literal, $registers:literal, $remedy:literal; [$($wrong:tt)*] [$($right:tt)*])*) => {
        $(#[test]
        fn $name() {
            compare($rule, $text, $registers, $remedy, &[$($wrong)*], &[$($right)*]);
        })*
    };
}

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

    a_load_is_waited_for: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    loads_return_in_order: Rule::MemoryWait, "v_mov_b32_e32 v3, v2", "v2", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060302, // v_mov_b32 v3, v2
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    the_wait_says_how_many: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00002, // s_wait_loadcnt 0x2
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc8013f, // s_wait_loadcnt_dscnt 0x13f
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    stored_data_is_read: Rule::MemoryWait, "global_store_b32 v0, v1, s[6:7]", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee068006, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbf8a0000, // s_wait_idle
        0xee068006, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    part_of_a_wide_load: Rule::MemoryWait, "v_add_f32_e32 v6, v0, v4", "v4", "";
    [
        0xee05c004, 0x00000002, 0x00000000, // global_load_b128 v[2:5], v0, s[4:5]
        0x060c0900, // v_add_f32 v6, v0, v4
        0xbfb00000, // s_endpgm
    ]
    [
        0xee05c004, 0x00000002, 0x00000000, // global_load_b128 v[2:5], v0, s[4:5]
        0x060c0100, // v_add_f32 v6, v0, v0
        0xbfb00000, // s_endpgm
    ]

    overwriting_what_a_load_brings: Rule::MemoryWait, "v_mov_b32_e32 v1, 0", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x7e020280, // v_mov_b32 v1, 0
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e020280, // v_mov_b32 v1, 0
        0xbfb00000, // s_endpgm
    ]

    overwriting_by_another_counter: Rule::MemoryWait, "ds_load_b32 v1, v0", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfb00000, // s_endpgm
    ]

    atomics_that_return: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0xee0d4004, 0x00100001, 0x00000000, // global_atomic_add_u32 v1, v0, v0, s[4:5] th:TH_ATOMIC_RETURN
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee0d4004, 0x00800000, 0x00000000, // global_atomic_add_u32 v0, v1, s[4:5]
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    lds: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_dscnt 0x0";
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbfc60001, // s_wait_dscnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    flat_is_counted_twice: Rule::MemoryWait, "v_mov_b32_e32 v4, v3", "v3", "s_wait_dscnt 0x0";
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e080303, // v_mov_b32 v4, v3
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc80000, // s_wait_loadcnt_dscnt 0x0
        0x7e080303, // v_mov_b32 v4, v3
        0xbfb00000, // s_endpgm
    ]

    flat_breaks_the_order: Rule::MemoryWait, "v_mov_b32_e32 v4, v2", "v2", "s_wait_loadcnt 0x0";
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e080302, // v_mov_b32 v4, v2
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xee05007c, 0x00000003, 0x00000000, // global_load_b32 v3, v[0:1], off
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e080302, // v_mov_b32 v4, v2
        0xbfb00000, // s_endpgm
    ]

    scalar_loads_return_in_any_order: Rule::MemoryWait, "s_mov_b32 s10, s6", "s6", "s_wait_kmcnt 0x0";
    [
        0xf4000182, 0xf8000000, // s_load_b32 s6, s[4:5], 0x0
        0xf40001c2, 0xf8000040, // s_load_b32 s7, s[4:5], 0x40
        0xbfc70001, // s_wait_kmcnt 0x1
        0xbe8a0006, // s_mov_b32 s10, s6
        0xbfb00000, // s_endpgm
    ]
    [
        0xf4000182, 0xf8000000, // s_load_b32 s6, s[4:5], 0x0
        0xf40001c2, 0xf8000040, // s_load_b32 s7, s[4:5], 0x40
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe8a0006, // s_mov_b32 s10, s6
        0xbfb00000, // s_endpgm
    ]

    an_address_from_a_scalar_load: Rule::MemoryWait, "global_load_b32 v1, v0, s[6:7]", "s[6:7]", "s_wait_kmcnt 0x0";
    [
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xbfc70000, // s_wait_kmcnt 0x0
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    messages_return_by_kmcnt: Rule::MemoryWait, "s_mov_b32 s8, s6", "s6", "s_wait_kmcnt 0x0";
    [
        0xbe864d83, // s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)
        0xbe880006, // s_mov_b32 s8, s6
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe864d83, // s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe880006, // s_mov_b32 s8, s6
        0xbfb00000, // s_endpgm
    ]

    barriers_that_set_scc: Rule::MemoryWait, "s_cbranch_scc1 1", "scc", "s_wait_kmcnt 0x0";
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]

    a_load_in_one_arm: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20003, // s_cbranch_scc1 on
        0xee050004, 0x00000004, 0x00000000, // global_load_b32 v4, v0, s[4:5]
        // on:
        0xbfc00002, // s_wait_loadcnt 0x2
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20003, // s_cbranch_scc1 on
        0xee050004, 0x00000004, 0x00000000, // global_load_b32 v4, v0, s[4:5]
        // on:
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    a_load_from_the_round_before: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0x7e020280, // v_mov_b32 v1, 0
        // again:
        0x7e060301, // v_mov_b32 v3, v1
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fffa, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        // again:
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fff9, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]

    lds_stores_before_a_barrier: Rule::BarrierWait, "s_barrier_signal -1", "LDS", "s_wait_dscnt 0x0";
    [
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbe804ec1, // s_barrier_signal -1
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbfc60000, // s_wait_dscnt 0x0
        0xbe804ec1, // s_barrier_signal -1
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]

    exchange_after_compare: Rule::LaneExchange, "v_permlanex16_b32 v1, v0, s4, s5", "", "";
    [
        0x7d940081, // v_cmpx_eq_u32 1, v0
        0x7e000000, // v_nop
        0xbefe00c1, // s_mov_b32 exec_lo, -1
        0xd65c0001, 0x00140900, // v_permlanex16_b32 v1, v0, s4, s5
        0xbfb00000, // s_endpgm
    ]
    [
        0x7d940081, // v_cmpx_eq_u32 1, v0
        0x7e040300, // v_mov_b32 v2, v0
        0xbefe00c1, // s_mov_b32 exec_lo, -1
        0xd65c0001, 0x00140900, // v_permlanex16_b32 v1, v0, s4, s5
        0xbfb00000, // s_endpgm
    ]

    a_scalar_never_written: Rule::Unwritten, "s_mov_b32 s20, s21", "s21", "";
    [
        0xbe940015, // s_mov_b32 s20, s21
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe94000f, // s_mov_b32 s20, s15
        0xbe950075, // s_mov_b32 s21, ttmp9
        0xbe960014, // s_mov_b32 s22, s20
        0xbfb00000, // s_endpgm
    ]

    a_vector_never_written: Rule::Unwritten, "v_add_f32_e32 v1, v0, v5", "v5", "";
    [
        0x06020b00, // v_add_f32 v1, v0, v5
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e0a0280, // v_mov_b32 v5, 0
        0x06020b00, // v_add_f32 v1, v0, v5
        0xbfb00000, // s_endpgm
    ]

    written_on_one_path_is_written: Rule::Unwritten, "v_mov_b32_e32 v2, v1", "v1", "";
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 on
        0x7e060280, // v_mov_b32 v3, 0
        // on:
        0x7e040301, // v_mov_b32 v2, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 on
        0x7e020280, // v_mov_b32 v1, 0
        // on:
        0x7e040301, // v_mov_b32 v2, v1
        0xbfb00000, // s_endpgm
    ]

    a_sum_into_nothing: Rule::Unwritten, "v_fmac_f32_e32 v1, v0, v0", "v1", "";
    [
        0x56020100, // v_fmac_f32 v1, v0, v0
        0xbfb00000, // s_endpgm
    ]
    [
        0xd7610001, 0x00010004, // v_writelane_b32 v1, s4, 0
        0x56020100, // v_fmac_f32 v1, v0, v0
        0xbfb00000, // s_endpgm
    ]

    a_condition_nobody_made: Rule::Unwritten, "s_cbranch_scc1 1", "scc", "";
    [
        0xbe940080, // s_mov_b32 s20, 0
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbfb00000, // s_endpgm
    ]
    [
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbfb00000, // s_endpgm
    ]

    padding_is_no_end: Rule::End, "s_code_end", "", "";
    [
        0x7e020300, // v_mov_b32 v1, v0
        0xbf9f0000, // s_code_end
    ]
    [
        0x7e020300, // v_mov_b32 v1, v0
        0xbfb00000, // s_endpgm
        0xbf9f0000, // s_code_end
    ]
}

const NOP: u32 = 0xbf80_0000;

/// Findings of `code` entered at dword 0, as `change` says.
fn findings(code: &[u32], change: impl FnOnce(&mut Entry)) -> Vec<Finding> {
    let mut entry = Entry::at(0);
    change(&mut entry);
    check_entry(code, &entry)
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
    // v_cndmask_b32_e64 v1, v0, v0, s14 (wave64: s[14:15]); s_endpgm
    let code = [0xd5010001, 0x003a0100, 0xbfb00000];
    assert!(findings(&code, |entry| entry.user_sgprs = 15).is_empty());
    let missing = findings(&code, |entry| {
        entry.user_sgprs = 15;
        entry.wave_size = WaveSize::Wave64;
    });
    assert_eq!(missing[0].registers.unwrap().to_string(), "s15");
    assert_eq!(missing[0].instruction, "v_cndmask_b32_e64 v1, v0, v0, s[14:15]");
}

#[test]
fn user_sgprs_are_as_many_as_the_launch_writes() {
    // s_mov_b32 s20, s2; s_endpgm
    let code = [0xbe940002, 0xbfb00000];
    assert!(findings(&code, |entry| entry.user_sgprs = 3).is_empty());
    let missing = findings(&code, |entry| entry.user_sgprs = 2);
    assert_eq!((missing[0].rule, missing[0].dword), (Rule::Unwritten, 0));
}

#[test]
fn code_that_runs_away() {
    // v_mov_b32 v1, v0
    let code = [0x7e020300];
    assert_eq!((check(&code, 0)[0].rule, check(&code, 0)[0].dword), (Rule::End, 1));
    // s_cmp_eq_u32 s4, 0; s_cbranch_scc1 0x7fff; s_endpgm
    let code = [0xbf068004, 0xbfa27fff, 0xbfb00000];
    assert_eq!((check(&code, 0)[0].rule, check(&code, 0)[0].dword), (Rule::Target, 1));
    // s_cmp_eq_u32 s4, 0; s_cbranch_scc1 1 (into the literal); s_mov_b32 s5, 0xbfb00000; s_endpgm
    let code = [0xbf068004, 0xbfa20001, 0xbe8500ff, 0xbfb00000, 0xbfb00000];
    assert_eq!((check(&code, 0)[0].rule, check(&code, 0)[0].dword), (Rule::Target, 3));
    // No instruction; an entry beyond the code; the first half of an instruction.
    assert_eq!(check(&[0xffff_ffff], 0)[0].rule, Rule::Undecodable);
    assert_eq!(check(&[0xbfb00000], 1)[0].rule, Rule::Target);
    assert_eq!(check(&[0xf4004100], 0)[0].rule, Rule::Undecodable);
    // Words behind the end are not looked at.
    assert!(check(&[0xbfb00000, 0xffff_ffff], 0).is_empty());
}

#[test]
fn what_cannot_be_told_is_said() {
    // s_mov_b32 m0, 0; v_movrels_b32 v1, v0; s_endpgm
    let found = check(&[0xbefd0080, 0x7e028700, 0xbfb00000], 0);
    assert_eq!((found.len(), found[0].rule), (1, Rule::NotAnalysed));
}

#[test]
fn a_finding_is_one_line() {
    // v_mov_b32 v1, s4; s_mov_b32 s4, 1; v_mov_b32 v2, s4; s_endpgm
    let finding = &check(&[0x7e020204, 0xbe840081, 0x7e040204, 0xbfb00000], 0)[0];
    let line = "scalar-hazard: dword 0x2: v_mov_b32_e32 v2, s4: s4 from dword 0x1: \
                needs s_wait_alu depctr_sa_sdst(0) between the write and this read";
    assert_eq!(finding.to_string(), line);
    let finding = Finding { source: Some(("body/x.inc".into(), 7)), ..finding.clone() };
    assert_eq!(finding.to_string(), format!("body/x.inc:7: {line}"));
}

/// A loop with a condition per lane, as clang 22 compiles it for gfx1201 (-O1): it puts in the waits of §5.1 that it takes
/// to be needed, no others. So the code is clean, and without any one of its waits it is not.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any words end in findings or none.
    #[test]
    fn arbitrary_words_end(mut code in prop::collection::vec(any::<u32>(), 0..64), entry in 0usize..64, branches: [u8; 8]) {
        for (index, place) in branches.into_iter().enumerate() {
            // s_cbranch_scc1 by -8..8
            if let Some(word) = code.get_mut(place as usize % 64) {
                *word = 0xbfa2_0000 | (index as i16 * 2 - 8) as u16 as u32;
            }
        }
        check(&code, entry);
    }
}
