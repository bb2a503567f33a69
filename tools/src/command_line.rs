//! The command lines of both programs, for the programs themselves, for completions and for manual pages.
//!
//! Contract: everything that clap knows about them is in [`Program::command`].

use crate::VERSION;
use crate::commands::{
    chat, completions, disasm, doctor, generate, inspect, launch, lint, man, measure, perplexity, plan,
    pm4_test, run, step, validate,
};
use crate::error::ToolError;
use crate::program::Program;
use clap::{CommandFactory, Parser, Subcommand};

/// LLM inference on AMD RDNA4 through the kernel driver alone, or on a virtual card
#[derive(Debug, Parser)]
#[command(name = "zrt", version = VERSION, propagate_version = true)]
pub struct Zrt {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Generates text with a model, and measures the speed of prompts, generation and sessions
#[derive(Debug, Parser)]
#[command(name = "zrt-bench", version = VERSION)]
pub struct ZrtBench {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub arguments: measure::Arguments,
}

/// The subcommands of `zrt`, each described by its arguments.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)]
pub enum Command {
    Generate(generate::Arguments),
    Chat(chat::Arguments),
    Inspect(inspect::Arguments),
    Validate(validate::Arguments),
    Perplexity(perplexity::Arguments),
    Plan(plan::Arguments),
    Doctor(doctor::Arguments),
    Disasm(disasm::Arguments),
    Lint(lint::Arguments),
    Step(step::Arguments),
    Launch(launch::Arguments),
    Run(run::Arguments),
    Pm4Test(pm4_test::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Runs it: whether it succeeded in the sense of its purpose.
    ///
    /// # Errors
    /// Whatever ends the command.
    pub fn run(&self) -> Result<bool, ToolError> {
        match self {
            Command::Generate(arguments) => generate::run(arguments),
            Command::Chat(arguments) => chat::run(arguments),
            Command::Inspect(arguments) => inspect::run(arguments),
            Command::Validate(arguments) => validate::run(arguments),
            Command::Perplexity(arguments) => perplexity::run(arguments),
            Command::Plan(arguments) => plan::run(arguments),
            Command::Doctor(arguments) => doctor::run(arguments),
            Command::Disasm(arguments) => disasm::run(arguments),
            Command::Lint(arguments) => lint::run(arguments),
            Command::Step(arguments) => step::run(arguments),
            Command::Launch(arguments) => launch::run(arguments),
            Command::Run(arguments) => run::run(arguments),
            Command::Pm4Test(arguments) => pm4_test::run(arguments),
            Command::Completions(arguments) => completions::run(arguments, arguments.program.command()),
            Command::Man(arguments) => man::run(arguments, Program::ALL.map(Program::command)),
        }
    }
}

impl Program {
    /// Its command line.
    pub fn command(self) -> clap::Command {
        match self {
            Program::Zrt => Zrt::command(),
            Program::ZrtBench => ZrtBench::command(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_lines_hold_together() {
        Program::ALL.into_iter().for_each(|program| program.command().debug_assert());
    }
}
