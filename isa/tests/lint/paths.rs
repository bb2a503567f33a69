//! What one of several paths contributes is kept at the join, whichever path is visited first.

use super::{findings, list};
use zrt_isa::lint::{Entry, Finding, Rule};

/// s_cmp_eq_u32 s4, 0.
const COMPARE: u32 = 0xbf06_8004;
/// s_endpgm.
const END: u32 = 0xbfb0_0000;
/// v_permlane16_b32 v1, v0, s4, s5.
const PERMLANE: [u32; 2] = [0xd65b_0001, 0x0014_0900];
/// v_cmpx_eq_u32_e32 1, v0.
const COMPARE_LANES: u32 = 0x7d94_0081;
/// v_mov_b32_e32 v2, v0.
const MOVE: u32 = 0x7e04_0300;
/// v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0; the same to v[20:27]; from v[4:7] to v[12:19].
const MATRIX: [u32; 2] = [0xcc40_4004, 0x1a02_0100];
const MATRIX_ELSEWHERE: [u32; 2] = [0xcc40_4014, 0x1a02_0100];
const MATRIX_OF_RESULT: [u32; 2] = [0xcc40_400c, 0x1a02_0104];

/// `first` if s4 is not 0, else `second`, then `end`.
fn either(first: &[u32], second: &[u32], end: &[u32]) -> Vec<u32> {
    // s_cbranch_scc1 over `first` and its s_branch over `second`.
    let mut code = vec![COMPARE, 0xbfa2_0000 | (first.len() as u32 + 1)];
    code.extend_from_slice(first);
    code.push(0xbfa0_0000 | second.len() as u32);
    code.extend_from_slice(second);
    code.extend_from_slice(end);
    code.push(END);
    code
}

/// `body` repeated until s4 is not 0.
fn repeated(body: &[u32]) -> Vec<u32> {
    let mut code = body.to_vec();
    let back = -(body.len() as i32 + 2);
    code.extend([COMPARE, 0xbfa2_0000 | u32::from(back as i16 as u16), END]);
    code
}

/// `body` at dword 2, repeated behind a block that only tests s4.
fn around(body: &[u32]) -> Vec<u32> {
    let back = -(body.len() as i32 + 3);
    let mut code = vec![COMPARE, 0xbfa2_0000 | (body.len() as u32 + 1)];
    code.extend_from_slice(body);
    code.extend([0xbfa0_0000 | u32::from(back as i16 as u16), END]);
    code
}

/// The findings of one rule.
fn of(rule: Rule, code: &[u32], change: impl FnOnce(&mut Entry)) -> Vec<Finding> {
    findings(code, change).into_iter().filter(|finding| finding.rule == rule).collect()
}

/// One finding of the rule at `dword`, from `cause`.
fn once(rule: Rule, code: &[u32], change: impl FnOnce(&mut Entry), dword: usize, cause: usize) {
    let found = of(rule, code, change);
    assert_eq!(found.len(), 1, "{}", list(&found));
    assert_eq!((found[0].dword, found[0].cause), (dword, Some(cause)));
}

#[test]
fn an_exchange_behind_a_compare_on_one_path() {
    let rule = Rule::LaneExchange;
    once(rule, &either(&[COMPARE_LANES], &[], &PERMLANE), |_| (), 4, 2);
    once(rule, &either(&[], &[COMPARE_LANES], &PERMLANE), |_| (), 4, 3);
    let both = either(&[COMPARE_LANES, MOVE], &[COMPARE_LANES, MOVE], &PERMLANE);
    assert!(of(rule, &both, |_| ()).is_empty());
    let body = [PERMLANE[0], PERMLANE[1], COMPARE_LANES];
    once(rule, &repeated(&body), |_| (), 0, 2);
    let again = [&body[..], &[END]].concat();
    assert!(of(rule, &again, |_| ()).is_empty());
    once(rule, &again, |entry| entry.runs_again = true, 0, 2);
}

#[test]
fn a_factor_from_one_path() {
    let rule = Rule::MatrixOverlap;
    once(rule, &either(&MATRIX, &MATRIX_ELSEWHERE, &MATRIX_OF_RESULT), |_| (), 7, 2);
    once(rule, &either(&MATRIX_ELSEWHERE, &MATRIX, &MATRIX_OF_RESULT), |_| (), 7, 5);
    once(rule, &either(&[], &MATRIX, &MATRIX_OF_RESULT), |_| (), 5, 3);
    assert!(of(rule, &either(&MATRIX_ELSEWHERE, &[], &MATRIX_OF_RESULT), |_| ()).is_empty());
    let body = [MATRIX_OF_RESULT, MATRIX].concat();
    once(rule, &repeated(&body), |_| (), 0, 2);
    let again = [&body[..], &[END]].concat();
    assert!(of(rule, &again, |_| ()).is_empty());
    once(rule, &again, |entry| entry.runs_again = true, 0, 2);
}

/// A write on only one of two paths, and an older one there.
#[test]
fn a_scalar_write_on_one_path() {
    let rule = Rule::ScalarHazard;
    // v_mov_b32_e32 v1, s8; s_mov_b32 s8, 1; v_mov_b32_e32 v3, s8
    let (track, write, read) = (0x7e02_0208, 0xbe88_0081, 0x7e06_0208);
    for (first, second, cause) in [(&[track, write][..], &[][..], 3), (&[], &[track, write], 4)] {
        once(rule, &either(first, second, &[read]), |_| (), 5, cause);
    }
    // Eleven s_mov_b32 s20, 1, after which the write is visible.
    let old = [&[track, write][..], &[0xbe94_0081; 11]].concat();
    let young = [track, write];
    assert!(of(rule, &either(&old, &old, &[read]), |_| ()).is_empty());
    once(rule, &either(&old, &young, &[read]), |_| (), 18, 17);
    once(rule, &either(&young, &old, &[read]), |_| (), 18, 3);
    once(rule, &repeated(&[read, write]), |_| (), 0, 1);
    // Of two writes that are not yet visible, the younger one counts: nine instructions and five are too many for
    // the other.
    let older = [&[track, write][..], &[0xbe94_0081; 9]].concat();
    let end = [&[0xbe94_0081; 5][..], &[read]].concat();
    once(rule, &either(&older, &young, &end), |_| (), 21, 15);
    once(rule, &either(&young, &older, &end), |_| (), 21, 3);
}

/// The head of the loop is known before its body has been seen, and must be looked at again after that.
#[test]
fn what_comes_around_a_loop_passes_its_head() {
    once(Rule::LaneExchange, &around(&[PERMLANE[0], PERMLANE[1], COMPARE_LANES]), |_| (), 2, 4);
    once(Rule::MatrixOverlap, &around(&[MATRIX_OF_RESULT, MATRIX].concat()), |_| (), 2, 4);
    // v_mov_b32_e32 v3, s8; s_mov_b32 s8, 1
    once(Rule::ScalarHazard, &around(&[0x7e06_0208, 0xbe88_0081]), |_| (), 2, 3);
    // v_mov_b32_e32 v3, v1; global_load_b32 v1, v0, s[4:5]
    once(Rule::MemoryWait, &around(&[0x7e06_0301, 0xee05_0004, 1, 0]), |_| (), 2, 3);
}

/// A load under way at the end is so at the beginning of the next run; what the first run has not written is
/// undefined for all that later runs would find.
#[test]
fn loads_and_registers_from_one_run_to_the_next() {
    // v_mov_b32_e32 v3, v1; global_load_b32 v1, v0, s[4:5]
    let code = [0x7e06_0301, 0xee05_0004, 1, 0, END];
    assert!(findings(&code, |_| ()).is_empty());
    once(Rule::MemoryWait, &code, |entry| entry.runs_again = true, 0, 1);
    // global_store_b32 v0, v1, s[4:5]; v_mov_b32_e32 v1, 0
    let code = [0xee06_8004, 0x0080_0000, 0, 0x7e02_0280, END];
    let found = findings(&code, |entry| entry.runs_again = true);
    assert_eq!((found.len(), found[0].rule, found[0].dword), (1, Rule::Unwritten, 0), "{}", list(&found));
}

/// An address computed from s_getpc_b64 at dword 2, minus 8 bytes, and copied: the jump leads to dword 1, which is
/// no instruction. An address that is no multiple of 4 has no known target.
#[test]
fn a_computed_address_is_followed_through_constants_and_copies() {
    // s_branch 1; no instruction; s_getpc_b64 s[8:9]; ...
    let code = |rest: &[u32]| [&[0xbfa0_0001, 0xffff_ffff, 0xbe88_4700], rest].concat();
    let followed =
        |rest: &[u32]| of(Rule::Undecodable, &code(rest), |_| ()).iter().any(|found| found.dword == 1);
    // s_add_co_u32 s8, s8, -8; the same with -7; s_add_co_ci_u32 s9, s9, -1
    let (less_8, less_7, carry) = (0x8008_c808, 0x8008_c708, 0x8209_c109);
    // s_setpc_b64 s[8:9]; s_setpc_b64 s[12:13]
    let (jump, jump_by_copy) = (0xbe80_4808, 0xbe80_480c);
    assert!(followed(&[less_8, carry, jump]));
    assert!(!followed(&[less_7, carry, jump]), "not at a dword");
    // s_add_co_ci_u32 s9, s9, 0: without the borrow the high half is 1.
    assert!(!followed(&[less_8, 0x8209_8009, jump]), "out of the code");
    // s_mov_b64 s[12:13], s[8:9]; s_mov_b32 s12, s8; s_mov_b32 s13, s9
    assert!(followed(&[less_8, carry, 0xbe8c_0108, jump_by_copy]));
    assert!(followed(&[less_8, carry, 0xbe8c_0008, 0xbe8d_0009, jump_by_copy]));
    assert!(!followed(&[less_8, carry, 0xbe8c_0008, jump_by_copy]), "half of a copy");
}
