//! Control flow, its unknowns, and that the lint terminates on any words.

use super::{check, compare, list};
use proptest::prelude::*;
use zrt_isa::lint::{Finding, Rule, check_kernel};
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::{Kernel, Line};

twins! {
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
    // Words after the end are not checked.
    assert!(check(&[0xbfb00000, 0xffff_ffff], 0).is_empty());
}

#[test]
fn what_cannot_be_told_is_said() {
    // export mrt0 v0, v0, v0, v0; s_endpgm
    let found = check(&[0xf800000f, 0x00000000, 0xbfb00000], 0);
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

/// A container's entry and line table are in bytes; positions of findings are in dwords.
#[test]
fn a_finding_in_a_kernel_names_its_line() {
    // What precedes the entry is no instruction. s_nop 0; global_load_b32 v1, v0, s[4:5]; v_mov_b32 v3, v1; s_endpgm
    let words: Vec<u32> = [&[!0; 64][..], &[0xbf800000, 0xee050004, 1, 0, 0x7e060301, 0xbfb00000]].concat();
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let line = |dword: u32, file, line| Line { code_offset: 4 * dword, file, line };
    let kernel = Kernel {
        name: "late",
        code: &code,
        entry: 256,
        rsrc1: 0,
        rsrc2: 0,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 6,
        vgprs: 8,
        sgprs: 8,
        workgroup: [32, 1, 1],
        lds_bytes: 0,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 1,
        parameter_bytes: 4,
        files: vec!["late.s", "body.inc"],
        lines: vec![line(0, 0, 1), line(64, 0, 10), line(68, 1, 20), line(69, 0, 11)],
        constants: Vec::new(),
    };
    let found = check_kernel(&kernel, false);
    assert_eq!(found.len(), 1, "{}", list(&found));
    assert_eq!((found[0].rule, found[0].dword), (Rule::MemoryWait, 68));
    assert_eq!(found[0].source, Some(("body.inc".into(), 20)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any words lead to findings or none, and the lint terminates.
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
