//! Registers that are never written, and lane exchanges that come too early (instruction set reference §3, §5.2).

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

    // A copy is no use, but an address is.
    a_scalar_never_written: Rule::Unwritten, "s_load_b32 s4, s[20:21], 0x0", "s[20:21]", "";
    [
        0xbe940116, // s_mov_b64 s[20:21], s[22:23]
        0xf400010a, 0xf8000000, // s_load_b32 s4, s[20:21], 0x0
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe94000f, // s_mov_b32 s20, s15
        0xbe950075, // s_mov_b32 s21, ttmp9
        0xf400010a, 0xf8000000, // s_load_b32 s4, s[20:21], 0x0
        0xbe960018, // s_mov_b32 s22, s24
        0xbfb00000, // s_endpgm
    ]

    a_vector_never_written: Rule::Unwritten, "global_store_b32 v0, v1, s[0:1]", "v1", "";
    [
        0x06020b00, // v_add_f32 v1, v0, v5
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e0a0280, // v_mov_b32 v5, 0
        0x06020b00, // v_add_f32 v1, v0, v5
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]

    written_on_one_path_is_written: Rule::Unwritten, "global_store_b32 v0, v1, s[0:1]", "v1", "";
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 on
        0x7e060280, // v_mov_b32 v3, 0
        // on:
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]
    [
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20001, // s_cbranch_scc1 on
        0x7e020280, // v_mov_b32 v1, 0
        // on:
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]

    a_sum_into_nothing: Rule::Unwritten, "global_store_b32 v0, v1, s[0:1]", "v1", "";
    [
        0x56020100, // v_fmac_f32 v1, v0, v0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]
    [
        0xd7610001, 0x00010004, // v_writelane_b32 v1, s4, 0
        0x56020100, // v_fmac_f32 v1, v0, v0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]

    // The only register read is the one added to.
    a_constant_added_to_nothing: Rule::Unwritten, "global_store_b32 v0, v0, s[20:21]", "s20", "";
    [
        0xbe950080, // s_mov_b32 s21, 0
        0xb7940001, // s_addk_co_i32 s20, 0x1
        0xee068014, 0x00000000, 0x00000000, // global_store_b32 v0, v0, s[20:21]
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe940084, // s_mov_b32 s20, 4
        0xbe950080, // s_mov_b32 s21, 0
        0xb7940001, // s_addk_co_i32 s20, 0x1
        0xee068014, 0x00000000, 0x00000000, // global_store_b32 v0, v0, s[20:21]
        0xbfb00000, // s_endpgm
    ]

    constants_added_to_nothing: Rule::Unwritten, "global_store_b32 v0, v1, s[0:1]", "v1", "";
    [
        0xd52b0001, 0x0001e8f2, // v_fmac_f32_e64 v1, 1.0, 2.0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xd52b0001, 0x0001e8f2, // v_fmac_f32_e64 v1, 1.0, 2.0
        0xee068000, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[0:1]
        0xbfb00000, // s_endpgm
    ]

    exec_from_nothing: Rule::Unwritten, "s_and_b32 exec_lo, exec_lo, s20", "s20", "";
    [
        0x8b7e147e, // s_and_b32 exec_lo, exec_lo, s20
        0xbfb00000, // s_endpgm
    ]
    [
        0x8b7e047e, // s_and_b32 exec_lo, exec_lo, s4
        0xbfb00000, // s_endpgm
    ]

    // Registers that a function preserves for its caller; the unneeded high half of a sum; the fourth dword of
    // three.
    half_of_data_of_two_dwords: Rule::Unwritten, "global_store_b64 v0, v[1:2], s[0:1]", "v2", "";
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee06c000, 0x00800000, 0x00000000, // global_store_b64 v0, v[1:2], s[0:1]
        0xbfb00000, // s_endpgm
    ]
    [
        0xed068000, 0x14000000, 0x00000000, // scratch_store_b32 off, v40, s0
        0x7e020280, // v_mov_b32 v1, 0
        0xd6fe6a02, 0x04040500, // v_mad_co_u64_u32 v[2:3], vcc_lo, v0, s2, v[1:2]
        0xee074000, 0x01000000, 0x00000000, // global_store_b128 v0, v[2:5], s[0:1]
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
    // s_cmp_eq_u32 s2, 0; s_cbranch_scc1 0; s_endpgm
    let code = [0xbf068002, 0xbfa20000, 0xbfb00000];
    assert!(findings(&code, |entry| entry.user_sgprs = 3).is_empty());
    let missing = findings(&code, |entry| entry.user_sgprs = 2);
    assert_eq!((missing[0].rule, missing[0].dword), (Rule::Unwritten, 1));
}

/// v5 is undefined, and stays so through a sum. A dot product, a sum with another lane's value and a dual sum may
/// be defined, as far as the lint knows.
#[test]
fn only_a_plain_sum_of_undefined_values_is_surely_undefined() {
    // global_store_b32 v0, v2, s[4:5]; s_endpgm
    let end = [0xee068004, 0x01000000, 0x00000000, 0xbfb00000];
    let found = |operation: &[u32]| super::findings(&[operation, &end].concat(), |_| ()).len();
    assert_eq!(found(&[0x06040b05]), 1, "v_add_f32_e32 v2, v5, v5");
    assert_eq!(found(&[0xcc134002, 0x1c160b05]), 0, "v_dot2_f32_f16 v2, v5, v5, v5");
    assert_eq!(found(&[0x06040afa, 0xff011105]), 0, "v_add_f32_dpp v2, v5, v5 row_shr:1");
    assert_eq!(found(&[0xc9100b05, 0x02020080]), 0, "v_dual_add_f32 v2, v5, v5 :: v_dual_mov_b32 v3, 0");
}

/// A move to a register that m0 selects may write any from the first one on, but none of the other file.
#[test]
fn a_relative_move_writes_in_its_own_file() {
    let found = |relative, store: [u32; 3]| {
        // s_mov_b32 m0, s4; the move; the store; s_endpgm
        let code = [&[0xbefd0004, relative][..], &store, &[0xbfb00000]].concat();
        findings(&code, |_| ()).iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    // global_store_b32 v0, v7, s[4:5]; global_store_b32 v0, v0, s[22:23]; global_store_b32 v0, v0, vcc
    let (vector, scalar) = ([0xee068004, 7 << 23, 0], [0xee068016, 0, 0]);
    let vcc = [0xee06806a, 0, 0];
    // s_movreld_b32 s20, s4; v_movreld_b32_e32 v0, v0
    let (to_scalar, to_vector) = (0xbe944204, 0x7e008500);
    assert_eq!(found(to_scalar, scalar), []);
    assert_eq!(found(to_scalar, vcc), []);
    assert_eq!(found(to_scalar, vector), [Rule::Unwritten]);
    assert_eq!(found(to_vector, vector), []);
    assert_eq!(found(to_vector, scalar), [Rule::Unwritten]);
}

/// The sum is in v2, the store's address; the register that no path has written is v5.
#[test]
fn the_register_that_an_undefined_value_comes_from_is_named() {
    // v_add_f32_e32 v2, v5, v5; global_store_b32 v2, v0, s[4:5]; s_endpgm
    let found = findings(&[0x06040b05, 0xee068004, 0x00000000, 0x00000002, 0xbfb00000], |_| ());
    let told: Vec<_> = found.iter().map(|one| (one.dword, one.remedy.as_str())).collect();
    assert_eq!(told, [(1, "it is computed from v5, which nothing on any path has written")]);
}
