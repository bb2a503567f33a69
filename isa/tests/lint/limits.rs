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
/// v_mov_b32_e32 v2, v1.
const USE: u32 = 0x7e04_0301;
/// v_wmma_f32_16x16x16_f16 v[4:11], v[0:3], v[0:3], 0.
const MATRIX: [u32; 2] = [0xcc40_4004, 0x1a02_0100];
/// s_endpgm.
const END: u32 = 0xbfb0_0000;

/// The finding at the entry that says so; there is no other.
fn is_cut(found: &[Finding], what: &str) -> bool {
    matches!(found, [one] if (one.rule, one.dword) == (Rule::NotAnalysed, 0) && one.remedy.contains(what))
}

/// `opcode` from one dword to another.
fn jump(opcode: u32, from: usize, to: usize) -> u32 {
    opcode | (to.wrapping_sub(from + 1) & 0xffff) as u32
}

#[test]
fn of_an_entry_131072_instructions_are_followed() {
    let code = |instructions: usize| [&vec![NOP; instructions - 1][..], &[END]].concat();
    let found = findings(&code(131_072), |_| {});
    assert!(found.is_empty(), "{}", list(&found));
    let found = findings(&code(131_073), |_| {});
    assert!(is_cut(&found, "more than 131072 instructions"), "{}", list(&found));
}

/// So many places where two paths meet again.
fn meetings(count: usize) -> Vec<u32> {
    [BRANCH + 1, NOP].repeat(count)
}

/// A state of the largest rule has 3 KiB; the most places that were measured are 298.
#[test]
fn what_is_known_where_paths_meet_has_16_mebibytes() {
    let code = |count: usize| [&[COMPARE][..], &meetings(count), &[END]].concat();
    let found = findings(&code(5000), |_| {});
    assert!(found.is_empty(), "{}", list(&found));
    let found = findings(&code(6000), |_| {});
    assert!(is_cut(&found, "more than 16777216 bytes"), "{}", list(&found));
}

/// Branches to many places, then loads, then the places: what is known there is little first, and grows.
#[test]
fn what_is_known_counts_as_it_grows() {
    let code = |places: usize, loads: u32| {
        let second = 1 + places + 2 * loads as usize;
        let branches = (0..places).map(|index| jump(BRANCH, 1 + index, second + index));
        let loads = (0..loads).flat_map(|index| [LOAD, (index + 2) << 24]);
        let all = [COMPARE].into_iter().chain(branches).chain(loads);
        all.chain(vec![NOP; places]).chain([END]).collect::<Vec<u32>>()
    };
    let found = findings(&code(3000, 1), |_| {});
    assert!(found.is_empty(), "{}", list(&found));
    let found = findings(&code(3000, 250), |_| {});
    assert!(is_cut(&found, "more than 16777216 bytes"), "{}", list(&found));
}

/// Blocks that each load to another register, do so many no-ops and may go back to the one before: what a later one
/// brings goes back by one block in each pass.
fn ladder(blocks: usize, nops: usize) -> Vec<u32> {
    let mut code = vec![COMPARE];
    for block in 0..blocks {
        code.extend([LOAD, (block as u32 + 2) << 24]);
        code.extend(vec![NOP; nops]);
        code.push(jump(BRANCH, code.len(), (3 + nops) * block.saturating_sub(1) + 1));
    }
    code.push(END);
    code
}

/// With eight no-ops in each of 157 blocks, states alone would take less.
#[test]
fn following_paths_takes_512_times_the_code() {
    for (is_whole, code) in
        [(true, ladder(40, 0)), (false, ladder(250, 0)), (true, ladder(145, 8)), (false, ladder(157, 8))]
    {
        let found = findings(&code, |_| {});
        let is_as_expected = if is_whole { found.is_empty() } else { is_cut(&found, "512 times the code") };
        assert!(is_as_expected, "{} dwords: {}", code.len(), list(&found));
    }
}

/// A caller may have left any register outstanding: what is known of all takes 30 KB, for one instruction.
#[test]
fn the_shortest_loop_of_a_function_is_checked_whole() {
    // s_branch to itself.
    let found = Program::new(&[JUMP | 0xffff], &[function(0, true, 1)], true).check(0);
    assert!(found.is_empty(), "{}", list(&found));
}

/// Those of another rule have room of their own.
#[test]
fn of_an_entry_32768_findings_of_a_kind_are_listed() {
    // The last address is v9.
    let code = |count: usize| [&[LOAD, 1 << 24, USE].repeat(count)[..], &[LOAD, 1 << 24 | 9, END]].concat();
    let all = findings(&code(32_768), |_| {});
    let count = |rule| all.iter().filter(|one| one.rule == rule).count();
    assert_eq!((all.len(), count(Rule::MemoryWait), count(Rule::Unwritten)), (32_769, 32_768, 1));
    let mut found = findings(&code(32_769), |_| {});
    let said = found.remove(0);
    assert!(is_cut(std::slice::from_ref(&said), "more than 32768 findings"), "{said}");
    assert_eq!(found[..32_768], all[..32_768]);
    assert_eq!((found.len(), found[32_768].rule), (32_769, Rule::Unwritten));
}

/// A place has one of them for what they write, however many lead to it; otherwise this would be too much to keep.
#[test]
fn many_matrix_operations_may_lead_to_many_places() {
    let count = 1200;
    let mut code = vec![COMPARE];
    code.extend((0..count).map(|index| jump(BRANCH, index + 1, 1 + count + 3 * index)));
    for _ in 0..count {
        code.extend(MATRIX);
        code.push(jump(JUMP, code.len(), 1 + 4 * count));
    }
    code.extend(meetings(count));
    code.push(END);
    let found = findings(&code, |_| {});
    assert!(found.is_empty(), "{}", list(&found));
}

/// Loops in loops, whose bodies have so many branches past some instructions.
fn nested(code: &mut Vec<u32>, levels: usize, branches: usize) {
    let start = code.len();
    if levels == 0 {
        code.extend([&[NOP; 6][..], &[BRANCH + 4], &[NOP; 4]].concat().repeat(branches));
    } else {
        (0..3).for_each(|_| nested(code, levels - 1, branches));
        code.extend([COMPARE, jump(BRANCH, code.len() + 1, start)]);
    }
}

/// Four times as many instructions and ten times as many branches as the largest kernel that was measured.
#[test]
fn a_large_program_is_checked_whole() {
    let mut code = vec![COMPARE];
    (0..3).for_each(|_| nested(&mut code, 3, 40));
    let at = code.len() + 2;
    code.extend([LOAD, 1 << 24, USE, END]);
    assert!(code.len() > 4 * 8800, "{}", code.len());
    let found = findings(&code, |_| {});
    assert!(
        matches!(&found[..], [one] if (one.rule, one.dword) == (Rule::MemoryWait, at)),
        "{}",
        list(&found)
    );
}

fn function(dword: usize, is_called: bool, end: usize) -> Function {
    Function { entry: Entry { is_called, ..Entry::at(dword) }, end }
}

/// What it writes is not known then, and its caller is judged as by the convention.
#[test]
fn a_function_that_is_too_large_is_said_to_be_so_and_others_are_checked() {
    // s_setpc_b64 s[30:31].
    let large = [&[NOP; 131_072][..], &[0xbe80_481e]].concat();
    let (start, end) = (large.len(), large.len() + 1);
    let code = [&large[..], &[END]].concat();
    let program = Program::new(&code, &[function(0, true, start), function(start, false, end)], true);
    let found = program.check(0);
    assert!(is_cut(&found, "too large"), "{}", list(&found));
    assert_eq!(program.check(start), []);
}

/// Each of the functions is cut, after it was decoded up to the limit: the last one is not reached in time.
#[test]
fn functions_that_are_too_large_count_where_functions_share_code() {
    let last = |shared: usize| {
        let jumps = (0..shared).map(|from| jump(JUMP, from, shared));
        let body = std::iter::repeat_n(NOP, 131_072);
        let code: Vec<u32> = jumps.chain(body).chain([END, END]).collect();
        let starts = (0..shared).chain([code.len() - 1]);
        let functions: Vec<Function> = starts.map(|dword| function(dword, true, dword + 1)).collect();
        Program::new(&code, &functions, true).check(code.len() - 1)
    };
    assert_eq!(last(15), []);
    let found = last(18);
    assert!(matches!(&found[..], [one] if one.rule == Rule::NotAnalysed), "{}", list(&found));
}

/// What functions share is decoded again for each round of computed jumps.
#[test]
fn rounds_count_where_functions_share_code() {
    let last = |shared: usize, end: &[u32]| {
        let jumps = (0..shared).map(|from| jump(JUMP, from, shared));
        let code: Vec<u32> = jumps.chain(vec![NOP; 1000]).chain(end.iter().copied()).chain([END]).collect();
        let starts = (0..shared).chain([code.len() - 1]);
        let functions: Vec<Function> = starts.map(|dword| function(dword, true, dword + 1)).collect();
        Program::new(&code, &functions, true).check(code.len() - 1)
    };
    // s_getpc_b64 s[8:9]; s_add_co_u32 s8, s8, 16; s_add_co_ci_u32 s9, s9, 0; s_setpc_b64 s[8:9]
    let computed = [0xbe88_4700, 0x8008_9008, 0x8209_8009, 0xbe80_4808];
    assert_eq!(last(12, &[END]), []);
    assert_eq!(last(5, &computed), []);
    let found = last(12, &computed);
    assert!(matches!(&found[..], [one] if one.rule == Rule::NotAnalysed), "{}", list(&found));
}
