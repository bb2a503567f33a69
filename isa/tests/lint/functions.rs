//! Functions that call each other: each is checked by itself, under the convention of LLVM's AMDGPU functions.

use super::list;
use proptest::prelude::*;
use zrt_isa::decode;
use zrt_isa::lint::{Entry, Finding, Function, Program, Rule, check};

/// s_nop 0.
const NOP: u32 = 0xbf80_0000;
/// s_endpgm.
const END: u32 = 0xbfb0_0000;
/// s_setpc_b64 s[30:31].
const RETURN: u32 = 0xbe80_481e;
/// s_swappc_b64 s[30:31], s[8:9], whose address no code here computes.
const CALL: u32 = 0xbe9e_4908;
/// s_wait_loadcnt_dscnt 0x0; s_wait_kmcnt 0x0.
const ENTRY_WAITS: [u32; 2] = [0xbfc8_0000, 0xbfc7_0000];

/// Four functions and a kernel from clang 22 (-O2). `twice` calls `leaf` twice by the address in s[0:1] and keeps
/// v4 to v6 and s2 across the calls, though the convention lets a callee change them all: the compiler knew that
/// this callee does not. `last` ends in a jump to `put`. `k` calls a pointer.
const COMPILED: &[u32] = &[
    // leaf, at dword 0x0
    0xbfc80000, // s_wait_loadcnt_dscnt 0x0
    0xbfc40000, // s_wait_expcnt 0x0
    0xbfc20000, // s_wait_samplecnt 0x0
    0xbfc30000, // s_wait_bvhcnt 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0x360600ff, 0x000000ff, // v_and_b32_e32 v3, 0xff, v0
    0xbf870091, // s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)
    0x30060682, // v_lshlrev_b32_e32 v3, 2, v3
    0xd7006a01, 0x00020701, // v_add_co_u32 v1, vcc_lo, v1, v3
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0xd5207c02, 0x01aa0480, // v_add_co_ci_u32_e64 v2, null, 0, v2, vcc_lo
    0xee05007c, 0x00000001, 0x00000001, // global_load_b32 v1, v[1:2], off
    0xbfc00000, // s_wait_loadcnt 0x0
    0x4a000101, // v_add_nc_u32_e32 v0, v1, v0
    0xbe80481e, // s_setpc_b64 s[30:31]
    // twice, at dword 0x14
    0xbfc80000, // s_wait_loadcnt_dscnt 0x0
    0xbfc40000, // s_wait_expcnt 0x0
    0xbfc20000, // s_wait_samplecnt 0x0
    0xbfc30000, // s_wait_bvhcnt 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xbe820021, // s_mov_b32 s2, s33
    0xbea10020, // s_mov_b32 s33, s32
    0xbe8024c1, // s_xor_saveexec_b32 s0, -1
    0xed068021, 0x04000000, 0x00000000, // scratch_store_b32 off, v8, s33
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbefe0000, // s_mov_b32 exec_lo, s0
    0xd7610008, 0x0001001e, // v_writelane_b32 v8, s30, 0
    0x81209020, // s_add_co_i32 s32, s32, 16
    0xbe804700, // s_getpc_b64 s[0:1]
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe810f01, // s_sext_i32_i16 s1, s1
    0x8000ff00, 0xffffff6c, // s_add_co_u32 s0, s0, 0xffffff6c
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0x8201ff01, 0xffffffff, // s_add_co_ci_u32 s1, s1, 0xffffffff
    0xca100102, 0x04040101, // v_dual_mov_b32 v4, v2 :: v_dual_mov_b32 v5, v1
    0xd7610008, 0x0001021f, // v_writelane_b32 v8, s31, 1
    0x7e0c0300, // v_mov_b32_e32 v6, v0
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe9e4900, // s_swappc_b64 s[30:31], s[0:1]
    0xbf8700c1, // s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_3) | instid1(VALU_DEP_1)
    0xca200100, 0x07000c81, // v_dual_mov_b32 v7, v0 :: v_dual_add_nc_u32 v0, 1, v6
    0xca100105, 0x01020104, // v_dual_mov_b32 v1, v5 :: v_dual_mov_b32 v2, v4
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe9e4900, // s_swappc_b64 s[30:31], s[0:1]
    0xd6fe7c00, 0x04010707, // v_mad_co_u64_u32 v[0:1], null, v7, 3, v[0:1]
    0xd760001f, 0x00010308, // v_readlane_b32 s31, v8, 1
    0xd760001e, 0x00010108, // v_readlane_b32 s30, v8, 0
    0xbea00021, // s_mov_b32 s32, s33
    0xbe8024c1, // s_xor_saveexec_b32 s0, -1
    0xed050021, 0x00000008, 0x00000000, // scratch_load_b32 v8, off, s33
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbefe0000, // s_mov_b32 exec_lo, s0
    0xbea10002, // s_mov_b32 s33, s2
    0xbfc00000, // s_wait_loadcnt 0x0
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe80481e, // s_setpc_b64 s[30:31]
    // put, at dword 0x4b
    0xbfc80000, // s_wait_loadcnt_dscnt 0x0
    0xbfc40000, // s_wait_expcnt 0x0
    0xbfc20000, // s_wait_samplecnt 0x0
    0xbfc30000, // s_wait_bvhcnt 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xee05007c, 0x00000003, 0x00000403, // global_load_b32 v3, v[3:4], off offset:4
    0xbfc00000, // s_wait_loadcnt 0x0
    0x4a040503, // v_add_nc_u32_e32 v2, v3, v2
    0xee06807c, 0x01000000, 0x00000000, // global_store_b32 v[0:1], v2, off
    0xbe80481e, // s_setpc_b64 s[30:31]
    // last, at dword 0x59
    0xbfc80000, // s_wait_loadcnt_dscnt 0x0
    0xbfc40000, // s_wait_expcnt 0x0
    0xbfc20000, // s_wait_samplecnt 0x0
    0xbfc30000, // s_wait_bvhcnt 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xee05007c, 0x00000005, 0x00000c03, // global_load_b32 v5, v[3:4], off offset:12
    0xd7006a00, 0x00010900, // v_add_co_u32 v0, vcc_lo, v0, 4
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0xd5207c01, 0x01aa0280, // v_add_co_ci_u32_e64 v1, null, 0, v1, vcc_lo
    0xbe804700, // s_getpc_b64 s[0:1]
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe810f01, // s_sext_i32_i16 s1, s1
    0x8000ff00, 0xffffff90, // s_add_co_u32 s0, s0, 0xffffff90
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0x8201ff01, 0xffffffff, // s_add_co_ci_u32 s1, s1, 0xffffffff
    0xbfc00000, // s_wait_loadcnt 0x0
    0xd72c0002, 0x00020505, // v_mul_lo_u32 v2, v5, v2
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe804800, // s_setpc_b64 s[0:1]
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    0xbf800000, // s_nop 0
    // k, at dword 0x80
    0xf4006c02, 0xf8000000, // s_load_b256 s[48:55], s[4:5], 0x0
    0x7e3e0300, // v_mov_b32_e32 v31, v0
    0xbe8c0100, // s_mov_b64 s[12:13], s[0:1]
    0xbe804700, // s_getpc_b64 s[0:1]
    0xbe810f01, // s_sext_i32_i16 s1, s1
    0x8000ff00, 0xfffffe3c, // s_add_co_u32 s0, s0, 0xfffffe3c
    0x8201ff01, 0xffffffff, // s_add_co_ci_u32 s1, s1, 0xffffffff
    0xbea00080, // s_mov_b32 s32, 0
    0xbe8a0106, // s_mov_b64 s[10:11], s[6:7]
    0xbe860102, // s_mov_b64 s[6:7], s[2:3]
    0xbfc70000, // s_wait_kmcnt 0x0
    0xca100080, 0x01020033, // v_dual_mov_b32 v1, 0 :: v_dual_mov_b32 v2, s51
    0x36003eff, 0x000003ff, // v_and_b32_e32 v0, 0x3ff, v31
    0xbf870091, // s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)
    0xd6460000, 0x04010c75, // v_lshl_add_u32 v0, ttmp9, 6, v0
    0x3e520082, // v_lshlrev_b64_e32 v[41:42], 2, v[0:1]
    0xbf870091, // s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)
    0xd7006a00, 0x00025230, // v_add_co_u32 v0, vcc_lo, s48, v41
    0xd5207c01, 0x01aa5431, // v_add_co_ci_u32_e64 v1, null, s49, v42, vcc_lo
    0xee05007c, 0x00000000, 0x00000000, // global_load_b32 v0, v[0:1], off
    0x7e020232, // v_mov_b32_e32 v1, s50
    0xbe9e4900, // s_swappc_b64 s[30:31], s[0:1]
    0x7e500300, // v_mov_b32_e32 v40, v0
    0xd7006a00, 0x00025232, // v_add_co_u32 v0, vcc_lo, s50, v41
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0xd5207c01, 0x01aa5433, // v_add_co_ci_u32_e64 v1, null, s51, v42, vcc_lo
    0xa988a004, // s_add_nc_u64 s[8:9], s[4:5], 32
    0xbe84010c, // s_mov_b64 s[4:5], s[12:13]
    0xee05007c, 0x00000000, 0x00000000, // global_load_b32 v0, v[0:1], off
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe9e4936, // s_swappc_b64 s[30:31], s[54:55]
    0xd7006a03, 0x00025234, // v_add_co_u32 v3, vcc_lo, s52, v41
    0xbf88ff9d, // s_wait_alu depctr_va_vcc(0)
    0xd5207c01, 0x01aa5435, // v_add_co_ci_u32_e64 v1, null, s53, v42, vcc_lo
    0x4a045100, // v_add_nc_u32_e32 v2, v0, v40
    0xbf870003, // s_delay_alu instid0(VALU_DEP_3)
    0xca100103, 0x00020032, // v_dual_mov_b32 v0, v3 :: v_dual_mov_b32 v3, s50
    0x7e080233, // v_mov_b32_e32 v4, s51
    0xbe804700, // s_getpc_b64 s[0:1]
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe810f01, // s_sext_i32_i16 s1, s1
    0x8000ff00, 0xfffffe84, // s_add_co_u32 s0, s0, 0xfffffe84
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0x8201ff01, 0xffffffff, // s_add_co_ci_u32 s1, s1, 0xffffffff
    0xbf88ff9e, // s_wait_alu depctr_sa_sdst(0)
    0xbe9e4900, // s_swappc_b64 s[30:31], s[0:1]
    0xbfb00000, // s_endpgm
];
/// First and end dword.
const LEAF: (usize, usize) = (0x0, 0x14);
const TWICE: (usize, usize) = (0x14, 0x4b);
const PUT: (usize, usize) = (0x4b, 0x59);
const LAST: (usize, usize) = (0x59, 0x73);
const KERNEL: (usize, usize) = (0x80, 0xc2);
const PLACES: [(usize, usize); 5] = [LEAF, TWICE, PUT, LAST, KERNEL];

fn function((dword, end): (usize, usize), is_called: bool) -> Function {
    Function { entry: Entry { is_called, ..Entry::at(dword) }, end }
}

/// Findings in each function; the last one is the kernel.
fn findings(code: &[u32], places: &[(usize, usize)]) -> Vec<Finding> {
    let last = places.len() - 1;
    let functions = places.iter().enumerate().map(|(index, place)| function(*place, index != last));
    let functions: Vec<Function> = functions.collect();
    let program = Program::new(code, &functions, true);
    places.iter().flat_map(|(dword, _)| program.check(*dword)).collect()
}

/// The findings about undefined registers.
fn undefined(code: &[u32], places: &[(usize, usize)]) -> Vec<Finding> {
    let mut found = findings(code, places);
    found.retain(|finding| finding.rule == Rule::Unwritten);
    found
}

/// Checks one kernel alone.
fn kernel(code: &[u32]) -> Vec<Finding> {
    findings(code, &[(0, code.len())])
}

/// Checks one function that is called.
fn called(code: &[u32]) -> Vec<Finding> {
    Program::new(code, &[function((0, code.len()), true)], true).check(0)
}

#[test]
fn compiled_functions_are_clean_and_each_wait_is_needed() {
    let clean = findings(COMPILED, &PLACES);
    assert!(clean.is_empty(), "{}", list(&clean));
    let (mut count, mut superfluous) = (0, Vec::new());
    for place in PLACES {
        let mut dword = place.0;
        while dword < place.1 {
            let instruction = decode(&COMPILED[dword..]).unwrap();
            let text = instruction.to_string();
            // No register of such code waits for these counters.
            let is_other = ["expcnt", "samplecnt", "bvhcnt"].iter().any(|counter| text.contains(counter));
            if text.starts_with("s_wait_") && !is_other {
                let mut without = COMPILED.to_vec();
                without[dword] = NOP;
                let found = findings(&without, &PLACES);
                let is_here = |finding: &Finding| (place.0..place.1).contains(&finding.dword);
                assert!(found.iter().all(is_here), "{text} at {dword:#x}{}", list(&found));
                if found.is_empty() {
                    superfluous.push(dword);
                }
                count += 1;
            }
            dword += instruction.dword_count as usize;
        }
    }
    // Between the calls of `twice`, only the call writes a scalar register, and after it everything is done.
    assert_eq!((count, superfluous), (31, vec![0x38]));
}

#[test]
fn a_caller_is_told_of_what_its_callee_changes() {
    // In `leaf`, s_wait_samplecnt becomes s_mov_b32 s0, 0: the second call of `twice` goes by s[0:1].
    let mut code = COMPILED.to_vec();
    code[2] = 0xbe80_0080;
    let found = undefined(&code, &PLACES);
    assert_eq!(found.len(), 1, "{}", list(&found));
    assert_eq!((found[0].rule, found[0].dword, found[0].cause), (Rule::Unwritten, 0x39, Some(0x32)));
    assert!(found[0].remedy.contains("the call may have changed it"), "{}", found[0]);
    // If `leaf` calls by a pointer (s[4:5] from v0), it changes everything that a function may.
    let mut code = COMPILED.to_vec();
    code[2..5].copy_from_slice(&[0x7e08_0500, 0x7e0a_0500, 0xbe9e_4904]);
    let found = undefined(&code, &PLACES);
    let second = found.iter().find(|finding| finding.dword == 0x39);
    assert_eq!(second.map(|finding| finding.cause), Some(Some(0x32)), "{}", list(&found));
    // If it writes a register by an index, that may be any register from the first: s_movreld_b32 s0, s4.
    let mut code = COMPILED.to_vec();
    code[2] = 0xbe80_4204;
    let found = undefined(&code, &PLACES);
    let second = found.iter().find(|finding| finding.dword == 0x39);
    assert_eq!(second.map(|finding| finding.cause), Some(Some(0x32)), "{}", list(&found));
    // In unlinked code, it is unknown which function it is.
    let functions = PLACES.map(|place| function(place, place != KERNEL));
    let unlinked = Program::new(&code, &functions, false).check(TWICE.0);
    assert!(unlinked.is_empty(), "{}", list(&unlinked));
    // A callee of a callee counts as well: s20 is written in `put`, which `last` tail-calls, and read in the
    // kernel.
    let mut code = COMPILED.to_vec();
    code[0x4b + 2] = 0xbe94_0080; // s_mov_b32 s20, 0
    code[0xc1] = 0xee06_8014; // global_store_b32 v0, v0, s[20:21]
    code.extend([0, 0, END]);
    let store = undefined(&code, &[LEAF, TWICE, PUT, LAST, (0x80, code.len())]);
    assert_eq!(store.len(), 1, "{}", list(&store));
    assert_eq!((store[0].dword, store[0].cause), (0xc1, Some(0xc0)));
    assert_eq!(store[0].registers.unwrap().to_string(), "s20", "s21 may be what the pointer's function left");
}

#[test]
fn an_entry_has_arguments_and_what_its_caller_left() {
    // global_store_b32 v0, v31, s[28:29]; s_setpc
    let store = [0xee06_801c, 0x0f80_0000, 0x0000_0000, RETURN];
    let with_waits = [&ENTRY_WAITS[..], &store].concat();
    assert!(called(&with_waits).is_empty());
    // Each counter is reported once, for the first use that it guards; nothing is left to report at the return.
    let found = called(&store);
    let told: Vec<_> = found.iter().map(|finding| (finding.dword, finding.remedy.clone())).collect();
    let remedy =
        |wait: &str| format!("needs {wait} 0x0 before this read: the caller may have left loads under way");
    let expected = ["s_wait_kmcnt", "s_wait_loadcnt", "s_wait_dscnt"].map(|wait| (0, remedy(wait)));
    for one in &expected {
        assert!(told.contains(one), "{one:?}{}", list(&found));
    }
    assert_eq!(told.len(), 3, "{}", list(&found));
    // A function that uses nothing must still return with everything done.
    let found = called(&[NOP, RETURN]);
    assert_eq!(found.len(), 3, "{}", list(&found));
    // v32 and s33 are no arguments. global_store_b32 v0, v32, s[6:7]
    let found = called(&[&ENTRY_WAITS[..], &[0xee06_8006, 0x1000_0000, 0, RETURN]].concat());
    assert_eq!((found.len(), found[0].rule, found[0].dword), (1, Rule::Unwritten, 2), "{}", list(&found));
    // A kernel has only s0 to s15 and v0, and nothing outstanding. global_store_b32 v0, v1, s[20:21]
    let found = kernel(&[0xee06_8014, 0x0080_0000, 0, END]);
    assert!(found.iter().all(|finding| finding.rule == Rule::Unwritten), "{}", list(&found));
    assert_eq!(found.len(), 2);
}

/// A caller's outstanding results do not affect scc. s_cmp_eq_u32 s0, 0; s_cbranch_scc1 0
#[test]
fn no_load_of_a_caller_reaches_scc() {
    let mut found = called(&[ENTRY_WAITS[1], 0xbf06_8000, 0xbfa2_0000, ENTRY_WAITS[0], RETURN]);
    found.retain(|finding| finding.rule == Rule::MemoryWait);
    assert!(found.is_empty(), "{}", list(&found));
}

/// A caller's scalar loads can write vcc, but no vector register.
#[test]
fn each_counter_guards_its_own_registers() {
    // s_wait_loadcnt_dscnt 0x0; s_mov_b32 vcc_hi, 0 or v_mov_b32 v1, v0; s_wait_kmcnt 0x0
    let function = |word| {
        let mut found = called(&[ENTRY_WAITS[0], word, ENTRY_WAITS[1], RETURN]);
        found.retain(|finding| finding.rule == Rule::MemoryWait);
        found
    };
    let found = function(0xbeeb_0080);
    assert_eq!((found.len(), found[0].dword), (1, 1), "{}", list(&found));
    assert_eq!(found[0].registers.unwrap().to_string(), "vcc_hi");
    assert!(function(0x7e02_0300).is_empty(), "{}", list(&function(0x7e02_0300)));
}

#[test]
fn what_a_return_leaves_under_way_is_told() {
    // global_load_b32 v1, v0, s[4:5]; ds_store_b32 v0, v0; s_load_b32 s4, s[4:5], 0x0
    let (load, store, scalar) = ([0xee05_0004, 1, 0], [0xd834_0000, 0], [0xf400_0102, 0xf800_0000]);
    for (work, rule, remedy) in [
        (&load[..], Rule::MemoryWait, "needs s_wait_loadcnt 0x0 before this return"),
        (&store[..], Rule::BarrierWait, "needs s_wait_dscnt 0x0 before this return"),
        (&scalar[..], Rule::MemoryWait, "needs s_wait_kmcnt 0x0 before this return"),
    ] {
        let found = called(&[&ENTRY_WAITS[..], work, &[RETURN]].concat());
        assert_eq!(found.len(), 1, "{}", list(&found));
        assert_eq!((found[0].rule, found[0].remedy.as_str(), found[0].cause), (rule, remedy, Some(2)));
        // A jump to another function is no return: the other function waits.
        let tail = [&ENTRY_WAITS[..], work, &[0xbe80_4808]].concat();
        assert!(called(&tail).is_empty(), "{}", list(&called(&tail)));
    }
}

#[test]
fn a_pointers_callee_changes_all_that_it_may() {
    // v_mov_b32 v32, 0; v_mov_b32 v40, 0; the call; global_store_b32 v0, v32, s[6:7]; global_store_b32 v0, v40,
    // s[34:35]
    let call = |address: &[u32]| {
        let before = [0x7e40_0280, 0x7e50_0280, 0xbea2_0106]; // and s_mov_b64 s[34:35], s[6:7]
        let after = [0xee06_8006, 0x1000_0000, 0, 0xee06_8022, 0x1400_0000, 0, END];
        [&before[..], address, &after].concat()
    };
    // v_readfirstlane_b32 s4, v0; v_readfirstlane_b32 s5, v0; s_swappc_b64 s[30:31], s[4:5]
    let found = kernel(&call(&[0x7e08_0500, 0x7e0a_0500, 0xbe9e_4904]));
    let told: Vec<_> =
        found.iter().map(|finding| (finding.dword, finding.registers.unwrap().to_string())).collect();
    let expected = [(6, "s[6:7]".to_string()), (6, "v32".to_string())];
    assert_eq!(told, expected, "{}", list(&found));
    assert!(found.iter().all(|finding| finding.cause == Some(5)), "{}", list(&found));
    // If an address comes from elsewhere, a compiler may have known more.
    let found = kernel(&call(&[CALL]));
    assert!(found.is_empty(), "{}", list(&found));
    // What it preserves is as undefined as before.
    let mut never = call(&[CALL]);
    never[1] = NOP;
    let found = kernel(&never);
    let told: Vec<_> = found.iter().map(|finding| (finding.rule, finding.registers, finding.cause)).collect();
    let [(Rule::Unwritten, Some(registers), None)] = told.as_slice() else { panic!("{}", list(&found)) };
    assert_eq!(registers.to_string(), "v40");
}

#[test]
fn code_without_functions_has_no_convention() {
    // global_load_b32 v1, v0, s[4:5]; s_swappc; v_mov_b32 v3, v1
    let code = [0xee05_0004, 1, 0, CALL, 0x7e06_0301, END];
    let found = check(&code, 0);
    assert_eq!((found.len(), found[0].rule, found[0].dword), (1, Rule::MemoryWait, 4), "{}", list(&found));
    assert!(kernel(&code).is_empty(), "a callee waits at its entry");
}

#[test]
fn a_functions_code_ends_where_its_neighbours_begins() {
    // v_mov_b32 v1, v4 off the end of the first function.
    let code = [0x7e02_0300, 0xbfc8_0000, 0xbfc7_0000, RETURN, END];
    let places = [(1, 4), (0, 1)];
    let found = findings(&code, &places);
    assert_eq!((found.len(), found[0].rule, found[0].dword), (1, Rule::End, 0), "{}", list(&found));
    // After a call that does not return, and after a trap, there need not be any code.
    for last in [CALL, 0xbf90_0002] {
        let code = [last, 0xbfc8_0000, 0xbfc7_0000, RETURN, END];
        let found = findings(&code, &places);
        assert!(found.is_empty(), "{}", list(&found));
    }
    // A size that extends into the next function is cut.
    let found = findings(&code, &[(1, 4), (0, 5)]);
    assert_eq!((found.len(), found[0].rule), (1, Rule::End), "{}", list(&found));
}

#[test]
fn far_jumps_are_followed() {
    // s_getpc_b64 s[8:9]; s_add_co_u32 s8, s8, 20; s_add_co_ci_u32 s9, s9, 0; s_setpc_b64 s[8:9]; two words that are no
    // instructions; global_load_b32 v1, v0, s[4:5]; v_mov_b32 v3, v1
    let code =
        [0xbe88_4700, 0x8008_9408, 0x8209_8009, 0xbe80_4808, !0, !0, 0xee05_0004, 1, 0, 0x7e06_0301, END];
    for found in [check(&code, 0), kernel(&code)] {
        assert_eq!(
            (found.len(), found[0].rule, found[0].dword),
            (1, Rule::MemoryWait, 9),
            "{}",
            list(&found)
        );
    }
    // A sum with an unknown carry is no address.
    let mut other = code;
    other[1] = NOP;
    assert!(check(&other, 0).iter().all(|finding| finding.rule == Rule::Unwritten), "the carry");
}

#[test]
fn functions_that_share_too_much_are_not_checked() {
    // Each of 100 functions jumps to the same 1000 instructions, which belong to none of them.
    let mut code: Vec<u32> = (0..100).map(|index| 0xbfa0_0000 | (99 - index)).collect();
    code.extend([NOP; 1000]);
    code.push(RETURN);
    let functions: Vec<Function> = (0..100).map(|dword| function((dword, dword + 1), true)).collect();
    let program = Program::new(&code, &functions, true);
    let left_out = (0..100).filter(|dword| {
        program
            .check(*dword)
            .iter()
            .any(|finding| finding.rule == Rule::NotAnalysed && finding.dword == *dword)
    });
    assert_eq!(left_out.count(), 100 - 18, "more than 16 times 1101 instructions");
}

/// Registers that m0 selects: the first, and those outstanding with it.
#[test]
fn a_relative_move_uses_its_first_register() {
    // s_mov_b32 m0, s4; global_load_b64 v[4:5], v0, s[4:5]; a wait; a move; global_store_b32 v0, v8, s[4:5]
    for relative in [0x7e10_8704, 0x7e08_8500] {
        let code = |wait| {
            let load = [0xbefd_0004, 0xee05_4004, 0x0000_0004, 0x0000_0000, wait, relative];
            [&load[..], &[0x7e10_0280, 0xee06_8004, 0x0400_0000, 0, END]].concat()
        };
        let found = check(&code(0xbfc0_0001), 0);
        assert_eq!(
            (found.len(), found[0].rule, found[0].dword),
            (1, Rule::MemoryWait, 5),
            "{}",
            list(&found)
        );
        assert_eq!(found[0].registers.unwrap().to_string(), "v[4:5]");
        assert!(check(&code(0xbfc0_0000), 0).is_empty());
    }
    // v_movreld_b32 v4, v0 may write v7 and cannot write v3: global_store_b32 v0, v7 (v3), s[4:5]
    let store = |data: u32| [0xbefd_0004, 0x7e08_8500, 0xee06_8004, data << 23, 0, END];
    assert!(check(&store(7), 0).is_empty());
    assert_eq!(check(&store(3), 0)[0].rule, Rule::Unwritten);
}

/// Jumps, calls, returns, relative moves of the first and the last registers.
const WORDS: &[u32] = &[
    0xbe88_4700, // s_getpc_b64 s[8:9]
    0x8008_9408, // s_add_co_u32 s8, s8, 20
    0x8209_8009, // s_add_co_ci_u32 s9, s9, 0
    0xbe80_4808, // s_setpc_b64 s[8:9]
    0xbe9e_4908, // s_swappc_b64 s[30:31], s[8:9]
    0xba88_0003, // s_call_b64 s[8:9], 3
    0xbe80_481e, // s_setpc_b64 s[30:31]
    0xbfa0_fffa, // s_branch -6
    0xbfa2_0004, // s_cbranch_scc1 4
    0xbfb0_0000, // s_endpgm
    0xbf90_0002, // s_trap 2
    0xbeef_4200, // s_movreld_b32 ttmp3, s0
    0xbefd_4200, // s_movreld_b32 m0, s0
    0xbeea_4300, // s_movreld_b64 vcc, s[0:1]
    0xbe80_406f, // s_movrels_b32 s0, ttmp3
    0x7ffe_8500, // v_movreld_b32 v255, v0
    0x7ffe_d1fe, // v_swaprel_b32 v255, v254
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any words and any functions lead to findings or none, each of them within the code.
    #[test]
    fn arbitrary_functions_end(
        code in prop::collection::vec(prop_oneof![4 => prop::sample::select(WORDS), 1 => any::<u32>()], 1..40),
        places in prop::collection::vec((0usize..40, 0usize..50, any::<bool>()), 1..8),
        has_addresses: bool,
    ) {
        let places = places.into_iter().map(|(dword, end, is_called)| function((dword % code.len(), end), is_called));
        let program = Program::new(&code, &places.collect::<Vec<_>>(), has_addresses);
        for function in program.functions() {
            for finding in program.check(function.entry.dword) {
                prop_assert!(finding.dword <= code.len(), "{finding}");
            }
        }
    }
}
