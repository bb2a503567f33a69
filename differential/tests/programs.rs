//! A few programs on both sides, with and without the checking mode, a few mutants, and errors planted into the
//! device's code that must be found.
//!
//! Needs clang-22, and clang-19 where both compile. Without them the cases are recorded as skipped, or fail if
//! ZRT_REQUIRE_LLVM is set.

use zrt_differential::alarms::Alarm;
use zrt_differential::batch::Verdict;
use zrt_differential::campaign::{Campaign, Failure, Report};
use zrt_differential::mutants::{Fate, MutantCampaign, MutantReport};
use zrt_differential::text::source;
use zrt_differential::toolchain::{Compiler, Shape};

/// Inputs per program here.
const INPUTS: u32 = 256;

/// Programs compiled by clang 22, without the checking mode.
fn compared() -> Campaign {
    Campaign {
        programs: 16,
        first_seed: 1,
        shape: Shape::new(INPUTS, false).expect("a sound shape"),
        compilers: &[Compiler::Clang22],
        schedules: 0,
        jobs: 2,
        minimised_max: 1,
        plant: None,
    }
}

fn run(campaign: Campaign) -> Option<Report> {
    let compilers: Vec<&str> = campaign.compilers.iter().map(|compiler| compiler.program()).collect();
    zrt_needs::programs(&compilers).then(|| campaign.run(&|_| {}).expect("the campaign runs"))
}

/// All failures, in full.
fn told(report: &Report) -> Vec<String> {
    let tell = |failure: &Failure| {
        let smaller = failure.smaller.as_ref().map(|(program, _)| source(std::slice::from_ref(program)));
        let (seed, build, verdict) = (failure.program.seed, failure.build, &failure.verdict);
        format!("seed {seed}, {build}: {verdict:?}\n{}", smaller.unwrap_or_default())
    };
    report.failures.iter().map(tell).collect()
}

#[test]
fn device_and_host_agree() {
    let Some(report) = run(compared()) else { return };
    assert!(report.failures.is_empty(), "{}", told(&report).join("\n"));
    assert_eq!(report.counts.values().sum::<u64>(), 16);
    // Every optimisation level took part, with a line table and without.
    assert_eq!(report.counts.len(), 8);
}

/// The device executes v_xor_b32 in place of v_or_b32 in VOP2 words (instruction set reference §6).
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
    let planted = Campaign { programs: 1, first_seed: 19, plant: Some(or_for_xor), ..compared() };
    let Some(report) = run(planted) else { return };
    let failure = report.failures.iter().find(|failure| failure.smaller.is_some()).unwrap();
    assert!(matches!(failure.verdict, Verdict::Differs(_)), "{:?}", failure.verdict);
    let (smaller, verdict) = failure.smaller.as_ref().unwrap();
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    assert!(smaller.size() <= 12, "{} of {}:\n{smaller:?}", smaller.size(), failure.program.size());
}

/// Correct programs have no findings except those with a row, and clang 19's code is recognised as such.
#[test]
fn correct_programs_break_no_rule() {
    let checked =
        Campaign { programs: 12, first_seed: 100, compilers: &Compiler::ALL, schedules: 2, ..compared() };
    let Some(report) = run(checked) else { return };
    assert!(report.failures.is_empty(), "{}", told(&report).join("\n"));
    assert_eq!(report.counts.values().sum::<u64>(), 24);
    let unaware = |compiler| report.alarms.get(&(compiler, Alarm::UnawareCompiler)).copied();
    assert_eq!(Compiler::ALL.map(unaware), [Some(12), None]);
}

/// Removes every barrier, so that no wave waits for others.
fn no_barriers(words: &mut [u32]) {
    for word in words.iter_mut().filter(|word| matches!(**word, BARRIER_SIGNAL | BARRIER_WAIT)) {
        *word = NOP;
    }
}

/// `s_barrier_signal -1`, `s_barrier_wait -1`, `s_nop 0` (llvm-mc 19).
const BARRIER_SIGNAL: u32 = 0xBE80_4EC1;
const BARRIER_WAIT: u32 = 0xBF94_FFFF;
const NOP: u32 = 0xBF80_0000;

/// Every program begins with an LDS store by all waves and a barrier. Without the barrier, waves that read
/// another's data race with its store, or read before it.
#[test]
fn a_broken_rule_is_a_failure_of_its_own_and_made_small() {
    let planted =
        Campaign { programs: 1, first_seed: 3, schedules: 1, plant: Some(no_barriers), ..compared() };
    let Some(report) = run(planted) else { return };
    let failure = report.failures.iter().find(|failure| failure.smaller.is_some()).unwrap();
    let (smaller, verdict) = failure.smaller.as_ref().unwrap();
    let Verdict::Breaks(breach) = verdict else { panic!("{verdict:?}") };
    assert!(matches!(breach.finding.rule.as_str(), "race" | "uninitialised"), "{breach}");
    let place = breach.finding.place.as_ref().unwrap();
    assert_eq!(place.kernel.as_deref(), Some("p0"));
    assert!(breach.finding.instruction.starts_with("ds_"), "{breach}");
    assert!(smaller.size() <= 12, "{} of {}:\n{smaller:?}", smaller.size(), failure.program.size());
    assert_ne!(failure.verdict.kind(), "different results");
}

fn run_mutants(campaign: &MutantCampaign) -> Option<MutantReport> {
    zrt_needs::programs(&[Compiler::Clang22.program()])
        .then(|| campaign.run(&|_| {}).expect("the campaign runs"))
}

fn few_mutants() -> MutantCampaign {
    MutantCampaign { mutants: 24, first_seed: 1, is_wave64: false, schedules: 2, jobs: 2, plant: None }
}

#[test]
fn no_mutant_is_missed() {
    let Some(report) = run_mutants(&few_mutants()) else { return };
    assert_eq!(report.judged.len(), 24);
    assert!(report.is_clean(), "{report:#?}");
    let caught = report.judged.iter().filter(|judged| matches!(judged.fate, Fate::Caught(_))).count();
    assert!(caught >= 12, "{:#?}", report.judged);
}

/// A mutant with wrong results that breaks no rule is a miss, reported with its position.
#[test]
fn a_difference_without_a_finding_is_missed() {
    let planted = MutantCampaign { mutants: 16, plant: Some(or_for_xor), ..few_mutants() };
    let Some(report) = run_mutants(&planted) else { return };
    let missed: Vec<_> =
        report.judged.iter().filter(|judged| matches!(judged.fate, Fate::Missed(_))).collect();
    assert!(!missed.is_empty(), "{:#?}", report.judged);
    assert!(missed.iter().all(|judged| judged.place.contains("(line ")), "{missed:#?}");
}
