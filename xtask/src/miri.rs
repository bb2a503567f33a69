//! `cargo xtask miri`: the tests that need no system calls, run by Miri, which sees undefined behaviour that they reach.
//!
//! Contract: runs the rows of [`RUNS`], all of them or those of the subset, and stops at the first that fails. Miri comes with
//! nightly Rust. Where it is absent the command says what to install and does nothing; with `ZRT_REQUIRE_MIRI` set it fails
//! instead. Cases that make system calls say so where they stand (`cfg_attr(miri, ignore = …)`). What Miri does not see is in
//! docs/decisions, "Shared memory is not Rust's". Cost: a minute or two a row.

use clap::Args;
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Options of `xtask miri`.
#[derive(Args)]
pub struct MiriArguments {
    /// Only what is quick and near `unsafe`: what every change can afford.
    #[arg(long)]
    subset: bool,
}

/// Tests of one crate.
struct Run {
    package: &'static str,
    /// Targets, and behind `--` the names of tests; all where there are none.
    arguments: &'static [&'static str],
    is_in_subset: bool,
}

const RUNS: &[Run] = &[
    Run { package: "zrt-mem", arguments: &["--lib"], is_in_subset: true },
    // The driver's tests map memory, all of them.
    Run { package: "zrt-kmd", arguments: &["--lib", "--", "--skip", "driver_tests"], is_in_subset: true },
    Run { package: "zrt-ring", arguments: &["--lib"], is_in_subset: false },
];

/// The toolchain that has Miri.
const TOOLCHAIN: &str = "nightly";
/// Environment variable that turns an absent Miri into a failure.
const REQUIRE_MIRI: &str = "ZRT_REQUIRE_MIRI";
/// What the tests need of Miri: files of the repository, and addresses that come back from numbers. Its store buffers have no
/// place for bytes that are stored in one width and loaded in another, and the interpreter panics on them (Rust 1.97,
/// `weak_memory.rs`); races are looked for all the same.
const FLAGS: &str =
    "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-disable-weak-memory-emulation";
/// Random cases of each property: Miri is some hundred times slower than the processor.
const RANDOM_CASES: &str = "4";

/// Runs the table.
pub fn run(arguments: &MiriArguments) -> Result<(), Box<dyn Error>> {
    if !is_present() {
        let remedy = "rustup toolchain install nightly --component miri --component rust-src";
        if std::env::var_os(REQUIRE_MIRI).is_some() {
            return Err(format!("Miri is not installed, and {REQUIRE_MIRI} asks for it: {remedy}").into());
        }
        println!("== miri: not run, it is not installed: {remedy}");
        return Ok(());
    }
    for run in RUNS.iter().filter(|run| run.is_in_subset || !arguments.subset) {
        println!("== miri: {} {}", run.package, run.arguments.join(" "));
        let started = Instant::now();
        let status = cargo()
            .args(["miri", "test", "--quiet", "--package", run.package])
            .args(run.arguments)
            .env("MIRIFLAGS", FLAGS)
            .env("PROPTEST_CASES", RANDOM_CASES)
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
            .status()?;
        if !status.success() {
            return Err(format!("Miri on {} failed ({status})", run.package).into());
        }
        println!("   took {:.1} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The toolchain's cargo. What the one that runs us has set would lead it astray.
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
