//! A few programs on both sides, and an error planted into the device's code that must be found.
//!
//! Needs clang-22; without it the cases are recorded as skipped, or fail where ZRT_REQUIRE_LLVM is set.

use zrt_differential::batch::Verdict;
use zrt_differential::campaign::{Campaign, Report};
use zrt_differential::runner::Plant;
use zrt_differential::text::source;
use zrt_differential::toolchain::{Compiler, Shape};

/// Inputs of a program here.
const INPUTS: u32 = 256;

fn run(first_seed: u64, programs: u64, minimised_max: usize, plant: Option<Plant>) -> Option<Report> {
    if !zrt_needs::programs(&[Compiler::Clang22.program()]) {
        return None;
    }
    let shape = Shape::new(INPUTS, false).expect("a sound shape");
    let compilers = &[Compiler::Clang22];
    let campaign =
        Campaign { programs, first_seed, shape, compilers, schedules: 0, jobs: 2, minimised_max, plant };
    Some(campaign.run(&|_| {}).expect("the campaign runs"))
}

#[test]
fn device_and_host_agree() {
    let Some(report) = run(1, 24, 1, None) else { return };
    let told: Vec<String> = report
        .failures
        .iter()
        .map(|failure| {
            let smaller = failure.smaller.as_ref().map(|(program, _)| source(std::slice::from_ref(program)));
            format!("seed {}: {:?}\n{}", failure.program.seed, failure.verdict, smaller.unwrap_or_default())
        })
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert_eq!(report.counts.values().sum::<u64>(), 24);
    // Every optimisation level took part, with a line table and without.
    assert_eq!(report.counts.len(), 8);
}

/// The device takes v_xor_b32 for v_or_b32 where it is a VOP2 word (instruction set reference §6).
fn or_for_xor(words: &mut [u32]) {
    let mut at = 0;
    while at < words.len() {
        let length =
            zrt_isa::decode(&words[at..]).map_or(1, |instruction| usize::from(instruction.dword_count));
        let word = words[at];
        if word >> 25 == XOR_OPCODE {
            words[at] = OR_OPCODE << 25 | word & 0x01FF_FFFF;
        }
        at += length;
    }
}

/// VOP2 opcodes of v_or_b32 and v_xor_b32.
const OR_OPCODE: u32 = 28;
const XOR_OPCODE: u32 = 29;

#[test]
fn a_planted_error_is_found_and_made_small() {
    let Some(report) = run(1, 12, 1, Some(or_for_xor)) else { return };
    let failure = report.failures.iter().find(|failure| failure.smaller.is_some()).unwrap();
    assert!(matches!(failure.verdict, Verdict::Differs(_)), "{:?}", failure.verdict);
    let (smaller, verdict) = failure.smaller.as_ref().unwrap();
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    assert!(smaller.size() <= 12, "{} of {}:\n{smaller:?}", smaller.size(), failure.program.size());
}
