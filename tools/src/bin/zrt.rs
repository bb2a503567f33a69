//! `zrt`: text from a model, and looking into what makes it.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use zrt_tools::commands::{self, disasm, doctor, generate, launch, lint, plan, run, step, validate};

/// LLM inference on AMD RDNA4 through the kernel driver alone, or on a virtual card
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Generate(generate::Arguments),
    Validate(validate::Arguments),
    Plan(plan::Arguments),
    Doctor(doctor::Arguments),
    Disasm(disasm::Arguments),
    Lint(lint::Arguments),
    Step(step::Arguments),
    Launch(launch::Arguments),
    Run(run::Arguments),
}

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return commands::refuse(&error),
    };
    let result = match command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Disasm(arguments) => disasm::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Step(arguments) => step::run(&arguments),
        Command::Launch(arguments) => launch::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
    };
    commands::finish(result, commands::wants_json())
}
