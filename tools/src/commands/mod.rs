//! The subcommands of `zrt`, one file each.
//!
//! Contract: a command writes its result to standard output and nothing else there; progress and remarks go to
//! standard error. It returns whether it succeeded in the sense of its purpose (`validate`: the two agree).

pub mod disasm;
pub mod doctor;
pub mod generate;
pub mod launch;
pub mod lint;
pub mod plan;
pub mod step;
pub mod validate;

use crate::error::ToolError;
use clap::ValueEnum;
use serde::Serialize;
use std::io::Write;
use zrt_isa::resources::WaveSize;

/// Lanes of a wave on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaveChoice {
    /// 32 lanes.
    #[value(name = "32")]
    Wave32,
    /// 64 lanes.
    #[value(name = "64")]
    Wave64,
}

impl From<WaveChoice> for WaveSize {
    fn from(choice: WaveChoice) -> WaveSize {
        match choice {
            WaveChoice::Wave32 => WaveSize::Wave32,
            WaveChoice::Wave64 => WaveSize::Wave64,
        }
    }
}

/// Writes a value as JSON on one line.
pub fn write_json(value: &impl Serialize) -> Result<(), ToolError> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer(&mut output, value)?;
    writeln!(output)?;
    Ok(output.flush()?)
}

/// Writes text.
pub fn write_text(text: &str) -> Result<(), ToolError> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}

/// Prints a failure and turns it into the exit code: 0 also where the reader of a pipe went away.
pub fn finish(result: Result<bool, ToolError>) -> std::process::ExitCode {
    match result {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) if error.is_closed_pipe() => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // Where even this cannot be written the exit code still tells.
            let _ = writeln!(std::io::stderr(), "error: {}", crate::error::sentence(&error));
            std::process::ExitCode::from(error.exit_code())
        }
    }
}
