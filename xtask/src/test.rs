//! `cargo xtask test`: everything that must hold, in one command.
//!
//! Contract: runs format, tidy, lints, documentation, drift checks, the workspace's tests and the packet conformance
//! run on the virtual device, in that order, and stops at the first failure. With `--all-passes` the further passes of
//! [`passes`] follow, except for some that run beside all of this ([`apart`]). With `--long` they do too, and what
//! takes hours follows them ([`long`]). The last lines name each case and stage that did not run, and why ([`skips`]).
//! With `ZRT_REQUIRE_LLVM` or `ZRT_MODELS` set, what they promise must be there: a skipped case is then a failed one.

mod apart;
mod binaries;
mod builds;
mod left_out;
mod long;
pub mod passes;
mod processor_time;
pub mod skips;
#[cfg(test)]
mod tests;

pub use binaries::{TestBinary, build, cases};

use crate::process;
use binaries::{ALL_TESTS, Job, Surroundings};
use clap::Args;
use left_out::Part;
use passes::{Does, Environment, Pass, Target};
use skips::Skips;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Options of `xtask test`.
#[derive(Args)]
pub struct TestArguments {
    /// Run only the workspace's tests: no format, lint, drift or conformance run.
    #[arg(long)]
    only_tests: bool,
    /// Also run the further passes: parts of the suite in other environments, and other compilers.
    #[arg(long)]
    all_passes: bool,
    /// Then run the further passes and what takes hours: campaigns of random programs, planted mistakes, long fuzzing.
    #[arg(long, conflicts_with = "only_tests")]
    long: bool,
    /// Run only this further pass.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["only_tests", "all_passes", "long"])]
    pass: Option<String>,
}

/// One step: its name and the command line.
struct Stage {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    /// Variables that are set.
    environment: &'static [(&'static str, &'static str)],
    /// A program without which the stage cannot run, if that is allowed.
    needs: Option<&'static str>,
}

/// Environment variable that turns absent tools into failures.
const REQUIRE_LLVM: &str = "ZRT_REQUIRE_LLVM";

/// Test targets of the first pass that take longest, the longest first: started early, they leave no core idle at the
/// end. Seconds by the clock that were measured, beside two others: 93, 66, 56, 52, 51, 47, 43, 38, 36, 34, 33, 31.
const LONG_TARGETS: &[&str] = &[
    "tests/judge",
    "asm/integers",
    "tests/megakernel",
    "tests/sampling_unchecked",
    "asm/sampling",
    "kmd/must_not_compile",
    "tests/stress_unchecked",
    "differential/programs",
    "tests/golden_unchecked",
    "tests/integers_unchecked",
    "asm/matmul",
    "tests/faults",
];

/// What a stage has taken until it is printed: by the clock, and of the processors.
struct Took {
    started: Instant,
    processors_before: Duration,
}

impl Took {
    fn begin() -> Took {
        Took { started: Instant::now(), processors_before: processor_time::of_children() }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processors = processor_time::of_children().saturating_sub(self.processors_before);
        let clock = self.started.elapsed().as_secs_f64();
        write!(formatter, "{clock:.1} s, {:.1} s of processor time", processors.as_secs_f64())
    }
}

/// Runs the stages.
pub fn run(arguments: &TestArguments) -> Result<(), Box<dyn Error>> {
    let mut skips = Skips::default();
    let outcome = run_stages(arguments, &mut skips);
    print!("{skips}");
    outcome
}

fn run_stages(arguments: &TestArguments, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    if let Some(name) = &arguments.pass {
        let pass = passes::named(name)?;
        return match &pass.does {
            Does::Apart(work) => apart::run(pass, *work, skips),
            _ => further_passes(std::slice::from_ref(pass), &mut None, skips),
        };
    }
    let mut tests = None;
    if arguments.all_passes || arguments.long {
        apart::beside(passes::PASSES, skips, |skips| {
            suite(arguments, &mut tests, skips)?;
            further_passes(passes::PASSES, &mut tests, skips)
        })?;
    } else {
        suite(arguments, &mut tests, skips)?;
    }
    if arguments.long {
        long::run(&mut tests, skips)?;
    }
    Ok(())
}

/// What every run has.
fn suite(
    arguments: &TestArguments,
    tests: &mut Option<Vec<TestBinary>>,
    skips: &mut Skips,
) -> Result<(), Box<dyn Error>> {
    if !arguments.only_tests {
        static_checks(skips)?;
    }
    whole_suite(compiled(tests)?, skips)?;
    let examples = ["test", "--locked", "--workspace", "--doc", "--quiet"];
    run_stage(&cargo("examples in documentation", &examples), skips)?;
    if !arguments.only_tests {
        // Compiled with the tests; cargo would compile it again, with the features that it has alone.
        let program = binaries::built_program(compiled(tests)?, "zrt")?;
        let arguments = ["pm4-test", "--device", "virtual"];
        run_stage(&Stage { program, ..cargo("packet conformance", &arguments) }, skips)?;
    }
    Ok(())
}

/// What is checked without running anything of ours.
fn static_checks(skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    run_stage(&cargo("format", &["fmt", "--all", "--check"]), skips)?;
    run_stage(&task("tidy", &["tidy"], None), skips)?;
    let lints = ["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run_stage(&cargo("lints", &lints), skips)?;
    let documentation = cargo("documentation", &["doc", "--locked", "--workspace", "--no-deps", "--quiet"]);
    run_stage(&Stage { environment: &[("RUSTDOCFLAGS", "-D warnings")], ..documentation }, skips)?;
    if is_present("cargo-deny") {
        let deny = [
            "deny",
            "--locked",
            "--offline",
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ];
        run_stage(&cargo("dependencies", &deny), skips)?;
    } else {
        skips.stage("dependencies", "cargo-deny is not installed");
    }
    run_stage(&task("kernel drift", &["asm", "--check"], Some("llvm-mc-19")), skips)?;
    Ok(())
}

/// The workspace's tests, compiled once.
fn compiled(tests: &mut Option<Vec<TestBinary>>) -> Result<&[TestBinary], Box<dyn Error>> {
    if tests.is_none() {
        println!("== tests, compiling");
        let took = Took::begin();
        *tests = Some(build(ALL_TESTS)?);
        println!("   compiling took {took}");
    }
    Ok(tests.as_deref().unwrap_or_default())
}

/// Every test binary in the environment as it is.
fn whole_suite(tests: &[TestBinary], skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let rank = |test: &TestBinary| LONG_TARGETS.iter().position(|name| test.is(name)).unwrap_or(usize::MAX);
    let mut all: Vec<&TestBinary> = tests.iter().collect();
    all.sort_by_key(|test| rank(test));
    println!("== tests");
    skips.left_out(left_out::count(tests)?);
    run_binaries("tests", &all, Part::Short, skips)
}

/// Further passes; `tests` are compiled if they need them and they are not compiled yet.
fn further_passes(
    passes: &'static [Pass],
    tests: &mut Option<Vec<TestBinary>>,
    skips: &mut Skips,
) -> Result<(), Box<dyn Error>> {
    let mut again = Vec::new();
    for pass in passes {
        if let Does::Again { environment, targets } = &pass.does {
            again.push(Again {
                pass,
                targets,
                environment: passes::surroundings(environment, &folder_of(pass))?,
            });
        }
    }
    if !again.is_empty() {
        run_again(&again, compiled(tests)?, skips)?;
    }
    for pass in passes {
        if let Does::Else(work) = &pass.does {
            println!("== pass {}: {}", pass.name, pass.about);
            let took = Took::begin();
            work(skips)?;
            println!("   {} took {took}", pass.name);
        }
    }
    Ok(())
}

/// A pass that runs parts of the suite again.
struct Again {
    pass: &'static Pass,
    targets: &'static [Target],
    environment: Environment,
}

/// Runs the binaries of all these passes side by side: most of them wait more than they compute, so that one pass after
/// the other would leave the processors idle.
fn run_again(passes: &[Again], tests: &[TestBinary], skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    passes.iter().for_each(|again| println!("== pass {}: {}", again.pass.name, again.pass.about));
    let took = Took::begin();
    let surroundings: Vec<Surroundings<'_>> = passes
        .iter()
        .map(|again| Surroundings {
            environment: &again.environment,
            label: again.pass.name,
            output_folder: folder_of(again.pass).join("output"),
            part: Part::Short,
        })
        .collect();
    let mut jobs = Vec::new();
    for (again, surroundings) in passes.iter().zip(&surroundings) {
        for (binary, arguments) in find(again.pass.name, again.targets, tests)? {
            left_out::check_filters(again.pass.name, binary, arguments)?;
            jobs.push(Job { binary, arguments, surroundings });
        }
    }
    let mut ran = binaries::run(&jobs)?.into_iter();
    for again in passes {
        skips.pass(again.pass.name, &ran.by_ref().take(again.targets.len()).collect::<Vec<_>>());
    }
    println!("   {} binaries took {took}", jobs.len());
    Ok(())
}

/// The binaries that a table names, with their arguments.
fn find<'a>(
    pass: &str,
    targets: &'a [(&'a str, &'a [&'a str])],
    tests: &'a [TestBinary],
) -> Result<Vec<(&'a TestBinary, &'a [&'a str])>, String> {
    let found = targets.iter().map(|(name, arguments)| {
        let test = tests.iter().find(|test| test.is(name));
        Ok((test.ok_or_else(|| format!("pass {pass}: there is no test target {name}"))?, *arguments))
    });
    found.collect()
}

/// Runs binaries and records what they skip.
fn run_binaries(
    pass: &str,
    chosen: &[&TestBinary],
    part: Part,
    skips: &mut Skips,
) -> Result<(), Box<dyn Error>> {
    let took = Took::begin();
    let output_folder = scratch_folder().join("output");
    let surroundings = Surroundings { environment: &[], label: "", output_folder, part };
    let job = |binary| Job { binary, arguments: &[], surroundings: &surroundings };
    let jobs: Vec<Job<'_>> = chosen.iter().copied().map(job).collect();
    skips.pass(pass, &binaries::run(&jobs)?);
    println!("   {} binaries took {took}", jobs.len());
    Ok(())
}

/// Where a pass keeps its files.
fn folder_of(pass: &Pass) -> PathBuf {
    scratch_folder().join(pass.name)
}

/// Where all passes keep their files.
fn scratch_folder() -> PathBuf {
    target_folder().join("passes")
}

/// Where cargo keeps what it compiles.
fn target_folder() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").and_then(|named| std::path::absolute(named).ok());
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
}

fn cargo(name: &'static str, arguments: &[&str]) -> Stage {
    let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
    Stage { name, program: process::cargo_program(), arguments, environment: &[], needs: None }
}

fn task(name: &'static str, arguments: &[&str], needs: Option<&'static str>) -> Stage {
    let mut stage = cargo(name, &["xtask"]);
    stage.arguments.extend(arguments.iter().map(|one| (*one).to_owned()));
    Stage { needs, ..stage }
}

fn run_stage(stage: &Stage, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    if let Some(tool) = stage.needs.filter(|tool| !is_present(tool)) {
        if std::env::var_os(REQUIRE_LLVM).is_some() {
            return Err(
                format!("{}: {tool} is not installed, and {REQUIRE_LLVM} asks for it", stage.name).into()
            );
        }
        skips.stage(stage.name, &format!("{tool} is not installed"));
        return Ok(());
    }
    println!("== {}", stage.name);
    let took = Took::begin();
    let mut command = Command::new(&stage.program);
    let status = command.args(&stage.arguments).envs(stage.environment.iter().copied()).status()?;
    if !status.success() {
        return Err(format!("{} failed ({status})", stage.name).into());
    }
    println!("   {} took {took}", stage.name);
    Ok(())
}

fn is_present(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}
