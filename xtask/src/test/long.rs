//! `cargo xtask test --long`: what takes hours, after everything else.
//!
//! Contract: each stage of [`run`] runs once and may not fail; what it cannot run is recorded as skipped. The first one
//! is the cases that every other run leaves out ([`left_out`], [`passes::REST`]); the others run for longer, over
//! more inputs, or again for each planted mistake. Cost: about three hours on two cores.

use super::binaries::TestBinary;
use super::left_out::{self, Part};
use super::passes;
use super::skips::Skips;
use super::{Stage, cargo, compiled, further_passes, is_present, run_binaries, run_stage};
use crate::{fuzz, process};
use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

/// Seconds for each fuzz target; the pass `fuzz` has a fraction of them.
const FUZZ_SECONDS: u32 = 600;
/// Longest that the planted rule-breakers may take.
const RULE_BREAKERS_LIMIT: Duration = Duration::from_secs(7200);
/// The unit tests of the judge.
const JUDGE: &str = "vgpu/zrt_vgpu";
/// Of them the one that switches off each rule in turn.
const RULE_BREAKERS: &[&str] = &["switched_off", "--ignored", "--nocapture"];

/// Both campaigns draw the same programs at each run: a difference between two runs is a change of the code.
const CORRECT_PROGRAMS: &[&str] =
    &["--check", "--clang", "both", "--programs", "2000", "--inputs", "256", "--seed", "100001"];
const MUTATED_PROGRAMS: &[&str] = &["--mutants", "240", "--seed", "500"];

/// Runs all stages. `tests` are the workspace's; they are compiled if they are not yet.
pub fn run(tests: &mut Option<Vec<TestBinary>>, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    sweeps(compiled(tests)?, skips)?;
    further_passes(passes::REST, tests, skips)?;
    campaign("differential, correct programs", CORRECT_PROGRAMS, &["clang-19", "clang-22"], skips)?;
    campaign("differential, mutated programs", MUTATED_PROGRAMS, &["clang-22"], skips)?;
    rule_breakers(compiled(tests)?)?;
    run_stage(&cargo("planted mistakes", &["xtask", "mutants"]), skips)?;
    println!("== fuzz, {FUZZ_SECONDS} s for each target");
    fuzz::pass(&Command::output, FUZZ_SECONDS, skips)
}

/// The cases that are left out elsewhere.
fn sweeps(tests: &[TestBinary], skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    println!("== cases that the first pass leaves out");
    left_out::LEFT_OUT.iter().for_each(|row| println!("   {}: every run has {}", row.target, row.stays));
    run_binaries("left out", &left_out::targets(tests)?, Part::Long, skips)?;
    skips.left_out(0);
    Ok(())
}

/// Programs in C, the device against the host, by compilers that may be absent.
fn campaign(
    name: &'static str,
    arguments: &[&str],
    compilers: &[&'static str],
    skips: &mut Skips,
) -> Result<(), Box<dyn Error>> {
    let program = ["run", "--locked", "--quiet", "--release", "--package", "zrt-differential", "--"];
    let stage = cargo(name, &[&program, arguments].concat());
    let needs = compilers.iter().copied().find(|compiler| !is_present(compiler));
    run_stage(&Stage { needs, ..stage }, skips)
}

/// The judge's own tests, once for each rule that is switched off: each must be noticed.
fn rule_breakers(tests: &[TestBinary]) -> Result<(), Box<dyn Error>> {
    println!("== rules of the checking mode, switched off one by one");
    let started = Instant::now();
    let judge = tests.iter().find(|test| test.is(JUDGE));
    let judge = judge.ok_or_else(|| format!("there is no test target {JUDGE}"))?;
    let mut command = judge.command();
    if let Some(failure) = process::wait(command.args(RULE_BREAKERS), RULE_BREAKERS_LIMIT)?.failure() {
        return Err(format!("{JUDGE}: {failure}").into());
    }
    println!("   took {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A name that no case has would run nothing and succeed.
    #[test]
    fn the_rule_breakers_have_the_name_by_which_they_are_started() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vgpu/src/check/switch.rs");
        let text = std::fs::read_to_string(source).unwrap();
        let ignored = text.split("#[ignore").nth(1).unwrap();
        let name = ignored.lines().find_map(|line| line.trim().strip_prefix("fn ")).unwrap();
        assert!(name.contains(RULE_BREAKERS[0]), "{name}");
    }
}
