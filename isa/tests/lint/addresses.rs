//! Addresses that code computes: which are followed, and what makes one unknown. Words are llvm-mc 19's for the text
//! next to them.

use super::{check, list};
use zrt_isa::lint::{Entry, Function, Program, Rule};

/// s_endpgm.
const END: u32 = 0xbfb0_0000;
/// s_getpc_b64 s[8:9].
const GET: u32 = 0xbe88_4700;
/// s_setpc_b64 s[8:9].
const JUMP: u32 = 0xbe80_4808;
/// s_mov_b32 s8, 4, the address of dword 1; s_mov_b32 s8, 8; s_mov_b32 s9, 0.
const LOW_4: u32 = 0xbe88_0084;
const LOW_8: u32 = 0xbe88_0088;
const HIGH_0: u32 = 0xbe89_0080;
/// s_add_co_u32 s8, s8, -8; s_add_co_ci_u32 s9, s9, -1; s_add_co_ci_u32 s9, s9, 0.
const LESS_8: u32 = 0x8008_c808;
const BORROW: u32 = 0x8209_c109;
const CARRY: u32 = 0x8209_8009;

/// Whether `rest`, which begins at dword 2, is seen to jump to dword 1, which holds no instruction.
fn is_followed(rest: &[u32]) -> bool {
    // s_branch 1 over dword 1
    let found = check(&[&[0xbfa0_0001, !0], rest].concat(), 0);
    found.iter().any(|finding| (finding.rule, finding.dword) == (Rule::Undecodable, 1))
}

/// What is known at the head of a loop in which `body` runs, after `start`: `end` follows the head.
fn looped(start: &[u32], body: &[u32], end: &[u32]) -> Vec<u32> {
    // s_cbranch_execz, which leaves scc alone, over `end` to the body; s_branch back to it
    let back = -(end.len() as i32 + body.len() as i32 + 2);
    let (over, back) = (0xbfa5_0000 | end.len() as u32, 0xbfa0_0000 | u32::from(back as i16 as u16));
    [start, &[over], end, body, &[back]].concat()
}

#[test]
fn an_inline_constant_of_64_bits_has_a_sign_and_a_literal_is_not_extended() {
    // s_mov_b64 s[8:9], 4
    assert!(is_followed(&[0xbe88_0184, JUMP]));
    // s_mov_b64 s[8:9], -4; s_add_co_u32 s8, s8, 8
    assert!(is_followed(&[0xbe88_01c4, 0x8008_8808, CARRY, JUMP]));
    // s_mov_b64 s[8:9], 0x4 as a literal; s_add_co_u32 s8, s8, 0; s_add_co_ci_u32 s9, s9, -4: 4 if the upper half is 4
    // too, which it is not.
    assert!(!is_followed(&[0xbe88_01ff, 0x0000_0004, 0x8008_8008, 0x8209_c409, JUMP]));
}

/// The carry of a sum reaches the next one unless scc is written in between, or other code has run.
#[test]
fn a_carry_is_kept_until_scc_changes() {
    // s_mov_b32 s20, 0 writes no scc; s_cmp_eq_u32 s4, 0 and s_and_b32 s20, s4, s5 do.
    for (between, expected) in [(0xbe94_0080, true), (0xbf06_8004, false), (0x8b14_0504, false)] {
        assert_eq!(is_followed(&[GET, LESS_8, between, BORROW, JUMP]), expected, "{between:#x}");
    }
    // The same by s[34:35], which a function preserves: s_getpc_b64; s_add_co_u32 s34, s34, -8; between;
    // s_add_co_ci_u32 s35, s35, -1; s_setpc_b64. Between: s_mov_b32 s20, 0; s_swappc_b64 s[30:31], s[40:41]
    for (between, expected) in [(0xbe94_0080, true), (0xbe9e_4928, false)] {
        let code = [0xbea2_4700, 0x8022_c822, between, 0x8223_c123, 0xbe80_4822];
        assert_eq!(is_followed(&code), expected, "{between:#x}");
    }
}

/// Both paths must agree, on registers and on the carry. In a loop, the jump is behind the head, which is first reached
/// without the loop's body.
#[test]
fn an_address_that_differs_at_a_join_is_unknown() {
    // s_cbranch_execz over one instruction
    assert!(is_followed(&[HIGH_0, LOW_4, 0xbfa5_0001, LOW_4, JUMP]));
    assert!(!is_followed(&[HIGH_0, LOW_4, 0xbfa5_0001, LOW_8, JUMP]));
    assert!(!is_followed(&[HIGH_0, LOW_8, 0xbfa5_0001, LOW_4, JUMP]));
    let start = [HIGH_0, LOW_4];
    assert!(is_followed(&looped(&start, &[LOW_4], &[JUMP])));
    assert!(!is_followed(&looped(&start, &[LOW_8], &[JUMP])));
    assert!(!is_followed(&looped(&[HIGH_0, LOW_8], &[LOW_4], &[JUMP])));
    // s_add_co_u32 s20, 0, 0; s_add_co_u32 s20, -1, 1, which carries; s_add_co_ci_u32 s9, 0, 0
    let (none, one, high) = (0x8014_8080, 0x8014_81c1, 0x8209_8080);
    assert!(is_followed(&looped(&[LOW_4, none], &[none], &[high, JUMP])));
    assert!(!is_followed(&looped(&[LOW_4, none], &[one], &[high, JUMP])));
    assert!(!is_followed(&looped(&[LOW_4, one], &[none], &[high, JUMP])));
}

/// Each round of following finds one jump more of a chain, and the number of rounds has a limit (six).
#[test]
fn a_chain_of_computed_jumps_is_followed_five_jumps_far_and_a_longer_one_is_said() {
    for jumps in [1, 2, 5, 6, 7, 100] {
        // s_getpc_b64 s[8:9]; s_add_co_u32 s8, s8, 16; s_add_co_ci_u32 s9, s9, 0; s_setpc_b64 s[8:9]; no instruction
        let code = [&[GET, 0x8008_9008, CARRY, JUMP, !0].repeat(jumps)[..], &[!0]].concat();
        let found = check(&code, 0);
        let has = |rule, dword| found.iter().any(|one| (one.rule, one.dword) == (rule, dword));
        let ends = [has(Rule::Undecodable, 5 * jumps), has(Rule::NotAnalysed, 0)];
        assert_eq!(ends, [jumps <= 5, jumps > 5], "{jumps}: {}", list(&found));
    }
}

/// A computed jump to what is neither in the function nor a function's beginning leaves it: nothing there is checked.
#[test]
fn a_computed_jump_out_of_a_function_is_not_followed() {
    let found = |code: &[u32], dword, end| {
        let entry = Entry::at(dword);
        Program::new(code, &[Function { entry, end }], true).check(dword)
    };
    // Before the function. Its s_getpc_b64 is at dword 1.
    let before = [!0, GET, LESS_8, BORROW, JUMP, END];
    assert!(found(&before, 1, 6).is_empty(), "{}", list(&found(&before, 1, 6)));
    // Right behind it. s_add_co_u32 s8, s8, 12
    let behind = [NOP, GET, 0x8008_8c08, CARRY, JUMP, !0];
    assert!(found(&behind, 1, 5).is_empty(), "{}", list(&found(&behind, 1, 5)));
    // In the function, that same place is checked.
    let inside = found(&behind, 1, 6);
    assert_eq!(
        (inside.len(), inside[0].rule, inside[0].dword),
        (1, Rule::Undecodable, 5),
        "{}",
        list(&inside)
    );
    // Outside of all code. s_mov_b64 s[8:9], -4
    assert!(check(&[0xbe88_01c4, JUMP], 0).is_empty());
}

/// s_nop 0.
const NOP: u32 = 0xbf80_0000;
