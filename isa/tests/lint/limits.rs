//! Code that is too large, or whose paths meet too often, is said to be so; it is never passed over.

use super::{findings, list};
use zrt_isa::lint::{Entry, Finding, Function, Program, Rule};

/// s_nop 0.
const NOP: u32 = 0xbf80_0000;
/// s_cmp_eq_u32 s4, 0.
const COMPARE: u32 = 0xbf06_8004;
/// s_cbranch_scc0 and s_branch to the next dword.
const BRANCH: u32 = 0xbfa1_0000;
const JUMP: u32 = 0xbfa0_0000;
/// ds_load_b32 v0, v0, without the result's number in bits 63:56 of it.
const LOAD: u32 = 0xd8d8_0000;
/// s_endpgm.
const END: u32 = 0xbfb0_0000;

/// The finding at the entry that says so; there is no other.
fn is_cut(found: &[Finding], what: &str) -> bool {
    matches!(found, [one] if (one.rule, one.dword) == (Rule::NotAnalysed, 0) && one.remedy.contains(what))
}

#[test]
fn of_an_entry_131072_instructions_are_followed() {
    let code = |instructions: usize| [&vec![NOP; instructions - 1][..], &[END]].concat();
    let found = findings(&code(131_072), |_| {});
    assert!(found.is_empty(), "{}", list(&found));
    let found = findings(&code(131_073), |_| {});
    assert!(is_cut(&found, "more than 131072 instructions"), "{}", list(&found));
}

/// Each branch ends a block, wherever it goes to: the next dword, or all to one place.
#[test]
fn of_an_entry_8192_blocks_are_followed() {
    let to_the_next = |branches: usize| [&[COMPARE][..], &vec![BRANCH; branches], &[END]].concat();
    let to_the_end = |branches: usize| {
        let branch = |index: usize| BRANCH + (branches - 1 - index) as u32;
        [&[COMPARE][..], &(0..branches).map(branch).collect::<Vec<_>>(), &[END]].concat()
    };
    // The comparison is in the block of the first branch, and the end is one of its own.
    for code in [to_the_next(8191), to_the_end(8191)] {
        let found = findings(&code, |_| {});
        assert!(found.is_empty(), "{}", list(&found));
    }
    for code in [to_the_next(8192), to_the_end(8192)] {
        let found = findings(&code, |_| {});
        assert!(is_cut(&found, "8192 blocks"), "{}", list(&found));
    }
}

/// Branches to blocks that each load to another register and go back to the first branch, so that every block brings
/// another fact to all branches.
fn facts(blocks: usize) -> Vec<u32> {
    let branches = 2 * blocks;
    let target = |branch: usize| branches + 3 * (branch % blocks);
    let branch = |branch: usize| BRANCH + (target(branch) - branch - 1) as u32;
    let mut code: Vec<u32> = (0..branches).map(branch).collect();
    for block in 0..blocks {
        code.extend([LOAD, (block as u32 + 2) << 24]);
        code.push(JUMP | (code.len() as u32 + 1).wrapping_neg() & 0xffff);
    }
    code.push(END);
    code
}

#[test]
fn paths_are_followed_until_an_instruction_was_stepped_over_64_times_on_average() {
    let is_cut = |blocks| {
        let found = findings(&facts(blocks), |_| {});
        found.iter().any(|one| one.rule == Rule::NotAnalysed && one.remedy.contains("64 passes"))
    };
    assert_eq!([8, 40, 120, 250].map(is_cut), [false, false, true, true]);
}

/// What it writes is not known then, and its caller is judged as by the convention.
#[test]
fn a_function_that_is_too_large_is_said_to_be_so_and_others_are_checked() {
    // s_setpc_b64 s[30:31].
    let large = [&[NOP; 131_072][..], &[0xbe80_481e]].concat();
    let (start, end) = (large.len(), large.len() + 1);
    let code = [&large[..], &[END]].concat();
    let entry = |dword, is_called| Entry { is_called, ..Entry::at(dword) };
    let functions =
        [Function { entry: entry(0, true), end: start }, Function { entry: entry(start, false), end }];
    let program = Program::new(&code, &functions, true);
    let found = program.check(0);
    assert!(is_cut(&found, "too large"), "{}", list(&found));
    assert_eq!(program.check(start), []);
}

/// Each of the functions is cut, after it was decoded up to the limit: the last one is not reached in time.
#[test]
fn functions_that_are_too_large_count_where_functions_share_code() {
    let last = |shared: usize| {
        let jumps = (0..shared).map(|index| JUMP | (shared - 1 - index) as u32);
        let body = std::iter::repeat_n(NOP, 131_072);
        let code: Vec<u32> = jumps.chain(body).chain([END, END]).collect();
        let function =
            |dword: usize| Function { entry: Entry { is_called: true, ..Entry::at(dword) }, end: dword + 1 };
        let functions: Vec<Function> = (0..shared).chain([code.len() - 1]).map(function).collect();
        Program::new(&code, &functions, true).check(code.len() - 1)
    };
    assert_eq!(last(15), []);
    let found = last(18);
    assert!(matches!(&found[..], [one] if one.rule == Rule::NotAnalysed), "{}", list(&found));
}
