//! Registers that nothing writes, and lanes exchanged too early (instruction set reference §3, §5.2).

use super::{compare, findings};
use zrt_isa::lint::Rule;

twins! {
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
}

#[test]
fn user_sgprs_are_as_many_as_the_launch_writes() {
    // s_mov_b32 s20, s2; s_endpgm
    let code = [0xbe940002, 0xbfb00000];
    assert!(findings(&code, |entry| entry.user_sgprs = 3).is_empty());
    let missing = findings(&code, |entry| entry.user_sgprs = 2);
    assert_eq!((missing[0].rule, missing[0].dword), (Rule::Unwritten, 0));
}
