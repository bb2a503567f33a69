//! Control flow, its unknowns, and that the lint terminates on any words.

use super::{check, compare};
use proptest::prelude::*;
use zrt_isa::lint::{Finding, Rule};

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
