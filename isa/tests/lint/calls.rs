//! What leaves a function or comes back to it: calls, tail calls, jumps out of sight; and which functions are reached.
//! Words are llvm-mc 19's for the text next to them.

use super::{check, list};
use std::collections::BTreeSet;
use zrt_isa::lint::{Entry, Finding, Function, Program, Rule};

/// s_nop 0.
const NOP: u32 = 0xbf80_0000;
/// s_endpgm.
const END: u32 = 0xbfb0_0000;
/// s_setpc_b64 s[30:31].
const RETURN: u32 = 0xbe80_481e;
/// s_wait_loadcnt_dscnt 0x0; s_wait_kmcnt 0x0.
const ENTRY_WAITS: [u32; 2] = [0xbfc8_0000, 0xbfc7_0000];

/// s_branch and s_call_b64 s[30:31] by a distance from the next dword.
fn branch(distance: i16) -> u32 {
    0xbfa0_0000 | u32::from(distance as u16)
}

fn call(distance: i16) -> u32 {
    0xba1e_0000 | u32::from(distance as u16)
}

/// Functions by their first and end dwords; the first is a kernel.
fn program<'a>(code: &'a [u32], places: &[(usize, usize)]) -> Program<'a> {
    let function = |(index, &(dword, end)): (usize, &(usize, usize))| Function {
        entry: Entry { is_called: index != 0, ..Entry::at(dword) },
        end,
    };
    Program::new(code, &places.iter().enumerate().map(function).collect::<Vec<_>>(), true)
}

fn places(findings: &[Finding]) -> Vec<(Rule, usize)> {
    findings.iter().map(|finding| (finding.rule, finding.dword)).collect()
}

/// A call to what is no function's beginning leads to a part of this code: the part is checked, and so is what
/// follows the call. A function's code is checked for itself, and has waited at its entry.
#[test]
fn a_call_goes_there_and_back() {
    let code = [call(1), !0, !0];
    assert_eq!(places(&check(&code, 0)), [(Rule::Undecodable, 1), (Rule::Undecodable, 2)]);
    // global_load_b32 v1, v0, s[4:5]; the call; v_mov_b32 v3, v1
    let kernel = [0xee05_0004, 1, 0, call(2), 0x7e06_0301, END];
    let code = [&kernel[..], &ENTRY_WAITS, &[RETURN]].concat();
    assert_eq!(places(&check(&code, 0)), [(Rule::MemoryWait, 4)]);
    let found = program(&code, &[(0, 6), (6, 9)]).check(0);
    assert!(found.is_empty(), "{}", list(&found));
}

/// s_rfe_b64 s[8:9] does not come back.
#[test]
fn nothing_follows_a_return_from_a_trap() {
    assert!(check(&[0xbe80_4a08, !0], 0).is_empty());
}

#[test]
fn a_branch_to_another_function_is_a_tail_call() {
    // v1 is an argument of the function, and undefined in the kernel: global_store_b32 v0, v1, s[6:7]
    let store = [0xee06_8006, 0x0080_0000, 0];
    let code = [&[branch(0)][..], &ENTRY_WAITS, &store, &[RETURN]].concat();
    let with_function = program(&code, &[(0, 1), (1, code.len())]);
    for dword in [0, 1] {
        let found = with_function.check(dword);
        assert!(found.is_empty(), "{}", list(&found));
    }
    // As a part of the kernel, it has neither the argument nor a return address.
    let without = program(&code, &[(0, code.len())]).check(0);
    assert_eq!(places(&without), [(Rule::Unwritten, 3), (Rule::Unwritten, 6)]);
    // A branch to its own beginning is a loop: v_mov_b32 v3, v1; global_load_b32 v1, v0, s[4:5]
    let code = [0x7e06_0301, 0xee05_0004, 1, 0, branch(-5)];
    let found = program(&code, &[(0, 5)]).check(0);
    assert_eq!(places(&found), [(Rule::MemoryWait, 0)], "{}", list(&found));
}

/// Code behind a function's end that is nobody's is followed like its own.
#[test]
fn a_function_may_go_on_behind_its_end() {
    let code = [branch(0), NOP, END];
    let found = program(&code, &[(0, 1)]).check(0);
    assert!(found.is_empty(), "{}", list(&found));
}

/// v5 of a kernel, which has not written it, is stored after the call of a function that has not written it either.
/// If that function calls or jumps to what is not known here, the result may be in v5.
#[test]
fn unseen_code_may_return_a_result() {
    let undefined = |function: &[u32], others: &[(usize, usize)]| {
        // s_mov_b64 s[34:35], s[6:7]; the call; global_store_b32 v0, v5, s[34:35]
        let kernel = [0xbea2_0106, call(4), 0xee06_8022, 0x0280_0000, 0, END];
        let code = [&kernel[..], function].concat();
        let end = others.first().map_or(code.len(), |(dword, _)| *dword);
        let mut found = program(&code, &[&[(0, 6), (6, end)], others].concat()).check(0);
        found.retain(|finding| finding.rule == Rule::Unwritten);
        found.iter().map(|finding| (finding.dword, finding.cause)).collect::<Vec<_>>()
    };
    assert_eq!(undefined(&[RETURN], &[]), [(2, None)]);
    // To a known function: by a call, by a tail call.
    assert_eq!(undefined(&[call(1), RETURN, RETURN], &[(8, 9)]), [(2, None)]);
    assert_eq!(undefined(&[branch(0), RETURN], &[(7, 8)]), [(2, None)]);
    // s_swappc_b64 s[30:31], s[8:9]
    assert_eq!(undefined(&[0xbe9e_4908, RETURN], &[]), []);
    // The same by s[4:5] from v_readfirstlane_b32 s4, v0 and s5, v0: a pointer.
    assert_eq!(undefined(&[0x7e08_0500, 0x7e0a_0500, 0xbe9e_4904, RETURN], &[]), []);
    // s_setpc_b64 s[8:9]; s_rfe_b64 s[8:9]
    assert_eq!(undefined(&[0xbe80_4808], &[]), []);
    assert_eq!(undefined(&[0xbe80_4a08], &[]), []);
    // The call of a function that does so.
    assert_eq!(undefined(&[call(1), RETURN, 0xbe80_4808], &[(8, 9)]), []);
}

#[test]
fn functions_are_reached_by_calls_and_tail_calls() {
    // 0 calls 2, which ends in a branch to 4, which ends in one to 2; 5 ends in one to 4.
    let code = [call(1), END, branch(1), NOP, branch(-3), branch(-2)];
    let program = program(&code, &[(0, 2), (2, 4), (4, 5), (5, 6)]);
    let reached = |from: &[usize]| program.reached_from(from.iter().copied());
    assert_eq!(reached(&[0]), BTreeSet::from([0, 2, 4]));
    assert_eq!(reached(&[5]), BTreeSet::from([2, 4, 5]));
    assert_eq!(reached(&[2]), BTreeSet::from([2, 4]));
    assert_eq!(reached(&[0, 5]), BTreeSet::from([0, 2, 4, 5]));
    assert_eq!(reached(&[]), BTreeSet::new());
    assert_eq!(reached(&[1, 3, 100]), BTreeSet::new(), "no function begins there");
}

/// 33 functions of two instructions, each of which ends in the same 30: the first 32 are 16 times all of the code,
/// which is the limit, and the last one is within it.
#[test]
fn functions_that_share_as_much_as_they_may_are_checked() {
    let mut code: Vec<u32> = (0..33).map(|index| branch(32 - index)).collect();
    code.extend([NOP; 30]);
    code.push(RETURN);
    assert_eq!(code.len() * 16, 32 * (1 + 30 + 1));
    let places: Vec<(usize, usize)> = (0..33).map(|dword| (dword, dword + 1)).collect();
    let program = program(&code, &places);
    for dword in 0..33 {
        let found = program.check(dword);
        let is_left_out = found.iter().any(|finding| finding.rule == Rule::NotAnalysed);
        assert!(!is_left_out, "{dword}{}", list(&found));
    }
}
