//! `zrt completions`: what a shell needs to complete the words of our command lines.
//!
//! Contract: writes the script to standard output and nothing else; README.md says where it goes.

use super::write_text;
use crate::error::ToolError;
use crate::program::Program;
use clap::Args;
use clap_complete::Shell;

/// Prints a shell completion script
#[derive(Debug, Args)]
pub struct Arguments {
    /// Shell to print it for
    pub shell: Shell,
    /// Program to complete
    #[arg(long, value_enum, default_value_t = Program::Zrt)]
    pub program: Program,
}

/// Runs the command. `command`: the command line of the program.
pub fn run(arguments: &Arguments, mut command: clap::Command) -> Result<bool, ToolError> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    write_text(&String::from_utf8_lossy(&script))?;
    Ok(true)
}
