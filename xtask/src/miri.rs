//! `cargo xtask miri`: the tests that need no system calls, run by Miri, which sees undefined behaviour that they
//! reach.
//!
//! Contract: runs the rows of [`RUNS`], or their subsets, and stops at the first that fails; a row that runs no test is
//! a failure too. Miri comes with nightly Rust. If it is absent the command says what to install and does nothing, and
//! the pass of the suite records that in its [`Skips`]; with `ZRT_REQUIRE_MIRI` set both fail instead. Cases that make
//! system calls are marked in place (`cfg_attr(miri, ignore = …)`). What Miri does not see is in docs/decisions,
//! "Shared memory is not Rust's". Cost: minutes a row; the subset is measured at its rows.

use crate::test::skips::Skips;
use clap::Args;
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Options of `xtask miri`.
#[derive(Args)]
pub struct MiriArguments {
    /// Run only the quick tests beside `unsafe` code.
    #[arg(long)]
    subset: bool,
}

/// Tests of one crate's library.
struct Run {
    package: &'static str,
    /// Arguments of the harness; all tests if there are none.
    harness: &'static [&'static str],
    /// The same in the subset, if it includes any.
    subset: Option<&'static [&'static str]>,
}

const RUNS: &[Run] = &[
    Run { package: "zrt-mem", harness: &[], subset: Some(MEM_SUBSET) },
    // The driver's tests map memory, all of them.
    Run { package: "zrt-kmd", harness: &["--skip", "driver_tests"], subset: Some(KMD_SUBSET) },
    Run { package: "zrt-ring", harness: &[], subset: None },
    // Without `unsafe` of their own: what they ask of their dependencies and of the standard library.
    Run { package: "zrt-pm4", harness: &[], subset: None },
    Run { package: "zrt-isa", harness: &[], subset: None },
    // Messages are printed by many thousands of steps, which take Miri minutes a test.
    Run { package: "zrt-loader", harness: &["--skip", "print::"], subset: None },
];

/// All tests of shared views except those that panic dozens of times: a panic takes Miri a second.
const MEM_SUBSET: &[&str] =
    &["shared::", "hdp::", "--skip", "held_against", "--skip", "one_misaligned", "--skip", "copies_outside"];
/// Tests that read bytes from a driver, a request or the kernel's text files.
const KMD_SUBSET: &[&str] =
    &["syscalls::", "ioctl::", "queue_size::", "topology::tests::an_r9700", "topology::tests::arbitrary"];

/// The toolchain that has Miri.
const TOOLCHAIN: &str = "nightly";
/// Environment variable that turns an absent Miri into a failure.
const REQUIRE_MIRI: &str = "ZRT_REQUIRE_MIRI";
/// What the tests need from Miri: files of the repository, and addresses that are made from numbers. Its store buffers
/// have no place for bytes that are stored in one width and loaded in another, and the interpreter panics on them (Rust
/// 1.97, `weak_memory.rs`); it still looks for races.
const FLAGS: &str =
    "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-disable-weak-memory-emulation";
/// Random cases of each property: Miri is some hundred times slower than the processor.
const RANDOM_CASES: &str = "4";

/// How to get it.
const REMEDY: &str = "rustup toolchain install nightly --component miri --component rust-src";

/// Runs the command.
pub fn run(arguments: &MiriArguments) -> Result<(), Box<dyn Error>> {
    let mut skips = Skips::default();
    let outcome = run_table(arguments.subset, is_present(), is_required(), &mut skips);
    print!("{skips}");
    outcome
}

/// The subset: the pass of the suite.
pub fn pass(skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    run_table(true, is_present(), is_required(), skips)
}

fn run_table(
    subset: bool,
    is_present: bool,
    is_required: bool,
    skips: &mut Skips,
) -> Result<(), Box<dyn Error>> {
    match (is_present, is_required) {
        (true, _) => RUNS.iter().try_for_each(|run| match subset {
            true => run.subset.map_or(Ok(()), |harness| run_one(run.package, harness)),
            false => run_one(run.package, run.harness),
        }),
        (false, true) => {
            Err(format!("Miri is not installed, and {REQUIRE_MIRI} asks for it: `{REMEDY}`").into())
        }
        (false, false) => {
            skips.stage("miri", &format!("no nightly toolchain with Miri is installed: `{REMEDY}`"));
            Ok(())
        }
    }
}

/// Runs tests of a library.
fn run_one(package: &str, harness: &[&str]) -> Result<(), Box<dyn Error>> {
    println!("   {package} {}", harness.join(" "));
    let started = Instant::now();
    let mut command = cargo();
    command.args(["miri", "test", "--quiet", "--locked", "--package", package, "--lib", "--"]).args(harness);
    command.env("MIRIFLAGS", FLAGS).env("PROPTEST_CASES", RANDOM_CASES);
    // Shrinking a failure would take hours, and its backtrace minutes.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    let output = command.env("RUST_BACKTRACE", "0").stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{said}\nMiri on {package} failed ({})", output.status).into());
    }
    let passed = passed(&said).filter(|passed| *passed > 0);
    let passed = passed.ok_or_else(|| format!("{said}\nMiri on {package}: no test ran"))?;
    println!("   {passed} tests took {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// How many tests passed, as the harness reports it.
fn passed(said: &str) -> Option<u32> {
    let summary = said.lines().find_map(|line| line.strip_prefix("test result: ok. "))?;
    summary.split(' ').next()?.parse().ok()
}

fn is_required() -> bool {
    std::env::var_os(REQUIRE_MIRI).is_some()
}

/// The toolchain's cargo, without the variables that the cargo that runs us has set.
fn cargo() -> Command {
    let mut command = Command::new("rustup");
    for inherited in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(inherited);
    }
    command.args(["run", TOOLCHAIN, "cargo"]);
    command
}

fn is_present() -> bool {
    let asked = cargo().args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_entered_and_what_is_required_fails() {
        let mut skips = Skips::default();
        assert!(run_table(true, false, false, &mut skips).is_ok());
        let text = skips.to_string();
        assert!(
            text.contains("skipped: miri: no nightly toolchain with Miri is installed: `rustup "),
            "{text}"
        );
        let error = run_table(true, false, true, &mut Skips::default()).unwrap_err().to_string();
        assert!(error.contains("ZRT_REQUIRE_MIRI asks for it: `rustup toolchain install nightly"), "{error}");
    }

    #[test]
    fn tests_that_passed_are_counted() {
        let said = "\nrunning 3 tests\ni..\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out\n";
        assert_eq!((passed(said), passed("")), (Some(2), None));
        assert_eq!(passed("test result: FAILED. 2 passed; 1 failed; 0 ignored"), None);
    }
}
