//! `cargo xtask test`: everything that must hold, in one command.
//!
//! Contract: runs format, lints, tidy, drift checks, the workspace's tests and the packet conformance run on the
//! virtual device, in that order, and stops at the first failure; with `--all-passes` the further passes of
//! [`passes`] follow. A drift check whose tool is absent says so; with `ZRT_REQUIRE_LLVM` set it fails instead, because
//! a skipped case is not a passed one.

mod binaries;
pub mod passes;

use binaries::{Surroundings, TestBinary};
use clap::Args;
use passes::Pass;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Options of `xtask test`.
#[derive(Args)]
pub struct TestArguments {
    /// Only the workspace's tests: no format, lint, drift or conformance run.
    #[arg(long)]
    only_tests: bool,
    /// Then the further passes: parts of the suite in other surroundings.
    #[arg(long)]
    all_passes: bool,
    /// Only this further pass.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["only_tests", "all_passes"])]
    pass: Option<String>,
}

/// One step: what it is called and the command line.
struct Stage {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    /// A program without which the stage cannot run, where that is allowed.
    needs: Option<&'static str>,
}

/// Environment variable that turns absent tools into failures.
const REQUIRE_LLVM: &str = "ZRT_REQUIRE_LLVM";

/// Test targets of the first pass that take longest, the longest first: started early, they leave no core idle at the
/// end. Seconds of processor time that were measured: 132, 49, 33, 28, 23, 22, 22, 21, 21, 18, 13, 13.
const LONG_TARGETS: &[&str] = &[
    "tests/golden_unchecked",
    "tests/serving_unchecked",
    "tests/stress_unchecked",
    "asm/sampling",
    "tests/faults",
    "tests/weight_bytes",
    "tests/soak_unchecked",
    "tests/megakernel",
    "tests/checked",
    "tests/sessions",
    "tests/judge",
    "differential/programs",
];

/// Runs the stages.
pub fn run(arguments: &TestArguments) -> Result<(), Box<dyn Error>> {
    if let Some(name) = &arguments.pass {
        return further_pass(passes::named(name)?, &binaries::build()?);
    }
    if !arguments.only_tests {
        static_checks()?;
    }
    println!("== tests, compiling");
    let started = Instant::now();
    let tests = binaries::build()?;
    println!("   compiling took {:.1} s", started.elapsed().as_secs_f64());
    whole_suite(&tests)?;
    run_stage(&cargo("examples in documentation", &["test", "--workspace", "--doc", "--quiet"]))?;
    if !arguments.only_tests {
        run_stage(&task("packet conformance", &["pm4-test", "--device", "virtual"], None))?;
    }
    if arguments.all_passes {
        passes::PASSES.iter().try_for_each(|pass| further_pass(pass, &tests))?;
    }
    Ok(())
}

/// What is checked without running anything of ours.
fn static_checks() -> Result<(), Box<dyn Error>> {
    run_stage(&cargo("format", &["fmt", "--all", "--check"]))?;
    println!("== tidy");
    crate::tidy::run()?;
    run_stage(&cargo(
        "lints",
        &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    ))?;
    run_stage(&task("kernel drift", &["asm", "--check"], Some("llvm-mc-19")))?;
    if std::env::var_os("ZRT_UAPI").is_some() {
        run_stage(&task("binding drift", &["uapi", "--check"], None))
    } else {
        println!("== binding drift: not checked, ZRT_UAPI is not set");
        Ok(())
    }
}

/// Every test binary in the environment as it is.
fn whole_suite(tests: &[TestBinary]) -> Result<(), Box<dyn Error>> {
    let rank = |test: &TestBinary| LONG_TARGETS.iter().position(|name| test.is(name)).unwrap_or(usize::MAX);
    let mut all: Vec<(&TestBinary, &[&str])> = tests.iter().map(|test| (test, [].as_slice())).collect();
    all.sort_by_key(|(test, _)| rank(test));
    run_binaries("tests", &all, &[])
}

/// The targets of a further pass in its surroundings.
fn further_pass(pass: &Pass, tests: &[TestBinary]) -> Result<(), Box<dyn Error>> {
    let found = pass.targets.iter().map(|(name, arguments)| {
        let test = tests.iter().find(|test| test.is(name));
        let test = test.ok_or_else(|| format!("pass {}: there is no test target {name}", pass.name))?;
        Ok((test, *arguments))
    });
    let chosen = found.collect::<Result<Vec<_>, String>>()?;
    let environment = pass.surroundings(&scratch_folder().join(pass.name))?;
    run_binaries(&format!("tests again, {}: {}", pass.name, pass.about), &chosen, &environment)
}

fn run_binaries(
    name: &str,
    chosen: &[(&TestBinary, &[&str])],
    environment: &[(&'static str, Option<std::ffi::OsString>)],
) -> Result<(), Box<dyn Error>> {
    println!("== {name}");
    let started = Instant::now();
    let output_folder = scratch_folder().join("output");
    binaries::run(chosen, &Surroundings { environment, output_folder })?;
    println!("   {} binaries took {:.1} s", chosen.len(), started.elapsed().as_secs_f64());
    Ok(())
}

/// Where the passes keep their files.
fn scratch_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/passes")
}

fn cargo(name: &'static str, arguments: &[&str]) -> Stage {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    Stage { name, program, arguments: arguments.iter().map(|one| (*one).to_owned()).collect(), needs: None }
}

fn task(name: &'static str, arguments: &[&str], needs: Option<&'static str>) -> Stage {
    let mut stage = cargo(name, &["xtask"]);
    stage.arguments.extend(arguments.iter().map(|one| (*one).to_owned()));
    Stage { needs, ..stage }
}

fn run_stage(stage: &Stage) -> Result<(), Box<dyn Error>> {
    if let Some(tool) = stage.needs.filter(|tool| !is_present(tool)) {
        if std::env::var_os(REQUIRE_LLVM).is_some() {
            return Err(
                format!("{}: {tool} is not installed, and {REQUIRE_LLVM} asks for it", stage.name).into()
            );
        }
        println!("== {}: not checked, {tool} is not installed", stage.name);
        return Ok(());
    }
    println!("== {}", stage.name);
    let started = Instant::now();
    let status = Command::new(&stage.program).args(&stage.arguments).status()?;
    if !status.success() {
        return Err(format!("{} failed ({status})", stage.name).into());
    }
    println!("   {} took {:.1} s", stage.name, started.elapsed().as_secs_f64());
    Ok(())
}

fn is_present(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}
