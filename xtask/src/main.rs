//! The only build driver of the workspace. `cargo xtask help` lists what it does.
//!
//! Contract: every step of the project that is not `cargo build` is a subcommand here; each exits non-zero on any
//! failure and says in one sentence what to do.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod asm;
mod fuzz;
mod miri;
mod mirror;
mod mutants;
mod pm4_test;
mod process;
mod storm;
mod survivors;
mod test;
mod tidy;
mod uapi;
mod workers;

use clap::{Parser, Subcommand};
use std::process::{Command, ExitCode};

/// Build driver of zrt.
#[derive(Parser)]
#[command(name = "xtask", about, version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Assemble the gfx1201 kernels, or check the committed blobs for drift. Needs LLVM 19.
    Asm(asm::AsmArguments),
    /// Build the fuzz targets and run them.
    Fuzz(fuzz::FuzzArguments),
    /// Write the seeds of the fuzz targets, or check the committed ones for drift.
    FuzzSeeds(fuzz::seeds::SeedArguments),
    /// Run the tests that need no system calls under Miri. Needs nightly Rust with Miri.
    Miri(miri::MiriArguments),
    /// Plant mistakes in a copy of the repository, and report which of them the tests notice.
    Mutants(mutants::MutantsArguments),
    /// Send every packet that zrt uses to a device, virtual or real, and report what it observes.
    Pm4Test(pm4_test::Pm4TestArguments),
    /// Run all randomised tests for hours, each time from a new seed.
    Storm(storm::StormArguments),
    /// Run every mutant of whole crates, compiled together, and report those that no test notices. Needs cargo-mutants.
    Survivors(survivors::SurvivorsArguments),
    /// Run everything that must hold: format, tidy, lints, drift, tests, packet conformance.
    Test(test::TestArguments),
    /// Check the sources against the house rules.
    Tidy,
    /// Generate the kernel driver's structures from its headers (ZRT_UAPI), or check them for drift.
    Uapi(uapi::UapiArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome: Result<(), Box<dyn std::error::Error>> = match &arguments.task {
        Task::Asm(arguments) => asm::run(&asm::Tools::installed(), arguments).map_err(Into::into),
        Task::Fuzz(arguments) => fuzz::run(&Command::output, arguments),
        Task::FuzzSeeds(arguments) => fuzz::seeds::run(&fuzz::seeds::committed(), arguments),
        Task::Miri(arguments) => miri::run(arguments),
        Task::Mutants(arguments) => mutants::run(arguments),
        Task::Pm4Test(arguments) => pm4_test::run(arguments),
        Task::Storm(arguments) => storm::run(arguments),
        Task::Survivors(arguments) => survivors::run(arguments),
        Task::Test(arguments) => test::run(arguments),
        Task::Tidy => tidy::run(&tidy::repository()),
        Task::Uapi(arguments) => uapi::run(arguments).map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            let mut cause = error.source();
            while let Some(reason) = cause {
                eprintln!("  because: {reason}");
                cause = reason.source();
            }
            ExitCode::FAILURE
        }
    }
}
