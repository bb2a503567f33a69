//! Consecutive matrix operations (instruction set reference §5.2).

use super::{check, compare, list};
use zrt_isa::lint::Rule;

twins! {
    a_factor_from_the_operation_before: Rule::MatrixOverlap,
        "v_wmma_f32_16x16x16_f16 v[12:19], v[4:7], v[0:3], 0", "v[4:7]", "v_nop";
    [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060300, // v_mov_b32_e32 v3, v0
        0xcc404004, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0
        0xbf800000, // s_nop 0
        0xcc40400c, 0x1a020104, // v_wmma_f32_16x16x16_f16 v[12:19], v[4:7], v[0:3], 0
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060300, // v_mov_b32_e32 v3, v0
        0xcc404004, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0
        0x7e000000, // v_nop
        0xcc40400c, 0x1a020104, // v_wmma_f32_16x16x16_f16 v[12:19], v[4:7], v[0:3], 0
        0xbfb00000, // s_endpgm
    ]

    an_index_from_the_operation_before: Rule::MatrixOverlap,
        "v_swmmac_f16_16x16x32_f16 v[0:3], v[0:3], v[8:15], v4", "v4", "v_nop";
    [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060300, // v_mov_b32_e32 v3, v0
        0xcc404008, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[0:3], 0
        0xcc424004, 0x1a020100, // v_wmma_f16_16x16x16_f16 v[4:7], v[0:3], v[0:3], 0
        0xcc524000, 0x1c121100, // v_swmmac_f16_16x16x32_f16 v[0:3], v[0:3], v[8:15], v4
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060300, // v_mov_b32_e32 v3, v0
        0xcc424004, 0x1a020100, // v_wmma_f16_16x16x16_f16 v[4:7], v[0:3], v[0:3], 0
        0xcc404008, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[0:3], 0
        0x7e000000, // v_nop
        0xcc524000, 0x1c121100, // v_swmmac_f16_16x16x32_f16 v[0:3], v[0:3], v[8:15], v4
        0xbfb00000, // s_endpgm
    ]
}

#[test]
fn the_addend_may_be_the_result_before() {
    let code = [
        0x7e020300, // v_mov_b32_e32 v1, v0
        0x7e040300, // v_mov_b32_e32 v2, v0
        0x7e060300, // v_mov_b32_e32 v3, v0
        0xcc404004, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0
        0xcc40400c, 0x1c120100, // v_wmma_f32_16x16x16_f16 v[12:19], v[0:3], v[0:3], v[4:11]
        0xbfb00000, // s_endpgm
    ];
    let findings = check(&code, 0);
    assert!(findings.is_empty(), "{}", list(&findings));
}

/// What comes from the end of a loop reaches the operation behind the place where paths meet in it.
#[test]
fn an_operation_of_the_round_before_overlaps() {
    let code = |between: u32| {
        [
            0x7e020300, // v_mov_b32_e32 v1, v0
            0x7e040300, // v_mov_b32_e32 v2, v0
            0x7e060300, // v_mov_b32_e32 v3, v0
            0xbf068004, // s_cmp_eq_u32 s4, 0
            0xbfa10001, // s_cbranch_scc0 past the next
            0xbf800000, // s_nop 0
            0xcc40400c, 0x1a020104, // v_wmma_f32_16x16x16_f16 v[12:19], v[4:7], v[0:3], 0
            0xcc404004, 0x1a020100, // v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0
            between, 0xbfa1fff8, // and s_cbranch_scc0 to the first branch
            0xbfb00000, // s_endpgm
        ]
    };
    let findings = |between| {
        let mut found = check(&code(between), 0);
        found.retain(|one| one.rule == Rule::MatrixOverlap);
        found.iter().map(|one| (one.dword, one.cause)).collect::<Vec<_>>()
    };
    // s_nop 0; v_nop
    assert_eq!(findings(0xbf800000), [(6, Some(8))]);
    assert_eq!(findings(0x7e000000), []);
}
