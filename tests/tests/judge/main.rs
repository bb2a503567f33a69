//! The checking mode judged: small wrong kernels that break one rule each, and right twins that break none.
//!
//! Every case runs under several schedules. The wrong kernel must be caught by exactly its rule, on the marked lines
//! and with what the marks say, each in at least one schedule; the right twin must not be flagged in any.

mod bounds;
mod case;
mod host;
mod host_writes;
mod launch;
mod mark;
mod prefetch;
mod progress;
mod registers;
mod shared;
mod visibility;

use case::Case;
use launch::{Launch, Outcome, code_of, source_of};
use mark::Mark;
use zrt_bringup::Finding;
use zrt_tests::assembly::has_tools;

/// Schedules of a case.
const SEEDS: u64 = 8;

/// Checks that the wrong kernel's findings are of its rule, and where and what the marks say. Returns the marked lines
/// that were caught.
fn judge(case: &Case, marks: &[Mark<'_>], wrong: &Outcome, seed: u64) -> Vec<u32> {
    let told = |finding: &Finding| format!("{}, wrong, seed {seed}: {finding}", case.name);
    let mut lines = Vec::new();
    for finding in &wrong.findings {
        assert_eq!(finding.rule, case.rule, "{}", told(finding));
        assert_eq!(finding.seed, seed, "{}: a finding names the seed that repeats it", case.name);
        assert!(!finding.remedy.is_empty() && !finding.what.is_empty(), "{}", told(finding));
        let place = finding.place.as_ref().expect("an instruction is to blame");
        assert_eq!(place.kernel.as_deref(), Some(case.name));
        let (_, line) = place.source.as_ref().expect("the line table knows all of the code");
        let mark = marks.iter().find(|mark| mark.line == *line);
        let mark = mark.unwrap_or_else(|| panic!("line {line} is not marked: {}", told(finding)));
        let differences = mark.differences(finding, &wrong.buffers);
        assert!(differences.is_empty(), "{}: {differences:#?}", told(finding));
        lines.push(*line);
    }
    lines
}

fn check(case: &Case) {
    let source = source_of(case.wrong);
    let marks = Mark::all(&source);
    let [wrong_code, right_code] = [case.wrong, case.right].map(code_of);
    let mut caught = Vec::new();
    for seed in 0..SEEDS {
        let wrong = Launch::new(case, &wrong_code, seed).finish();
        caught.extend(judge(case, &marks, &wrong, seed));
        let right = Launch::new(case, &right_code, seed).finish();
        assert!(right.findings.is_empty(), "{}, right, seed {seed}: {}", case.name, right.findings[0]);
        assert!(right.has_ended, "{}, right, seed {seed}: does not end", case.name);
        if let Some(expected) = case.received {
            assert_eq!([wrong.received, right.received], expected, "{}, seed {seed}", case.name);
        }
    }
    assert!(!marks.is_empty(), "{}: nothing is marked", case.name);
    for mark in &marks {
        assert!(mark.is_met(&marks, &caught), "{}: line {} is not caught", case.name, mark.line);
    }
}

fn check_all(cases: &[Case]) {
    if has_tools() {
        cases.iter().for_each(check);
    }
}

#[test]
fn counters() {
    check_all(registers::COUNTERS);
    check_all(shared::COUNTERS);
}

#[test]
fn hazards() {
    check_all(registers::HAZARDS);
}

#[test]
fn uninitialised() {
    check_all(registers::UNINITIALISED);
    check_all(shared::UNINITIALISED);
}

#[test]
fn races() {
    check_all(shared::RACES);
    check_all(shared::LANES);
}

#[test]
fn visibility() {
    check_all(visibility::CASES);
}

#[test]
fn bounds() {
    check_all(bounds::CASES);
    check_all(prefetch::BOUNDS);
}

#[test]
fn progress() {
    check_all(progress::CASES);
}

#[test]
fn advice() {
    check_all(prefetch::ADVICE);
}

/// A schedule that shows a race is found by its seed again, with the same findings.
#[test]
fn a_seed_repeats_its_findings() {
    if !has_tools() {
        return;
    }
    let case = &shared::RACES[0];
    let code = code_of(case.wrong);
    for seed in 0..4 {
        let [first, second] = [(); 2].map(|()| Launch::new(case, &code, seed).finish().findings);
        let shape = |findings: &[Finding]| {
            let key = |finding: &Finding| {
                let place = finding.place.as_ref().map(|place| place.offset);
                (finding.rule.clone(), place, finding.workgroup, finding.wave, finding.lane, finding.count)
            };
            findings.iter().map(key).collect::<Vec<_>>()
        };
        assert_eq!(shape(&first), shape(&second), "seed {seed}");
    }
}
