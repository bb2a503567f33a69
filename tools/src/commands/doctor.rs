//! `zrt doctor`.

use super::{write_document, write_text};
use crate::doctor::{examine, isa};
use crate::error::ToolError;
use clap::Args;
use zrt_kmd::LinuxSyscalls;

/// Reports what this machine has for running models, and how to get what is missing
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Report the instruction set instead: which operations are decoded, and which the virtual card executes
    #[arg(long)]
    pub isa: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    if arguments.isa {
        let report = isa::examine(zrt_vgpu::coverage::opcode_coverage());
        return if arguments.json { write_document(&report) } else { write_text(&report.to_string()) }
            .map(|()| true);
    }
    let report = examine(&LinuxSyscalls::new());
    if arguments.json {
        write_document(&report)?;
    } else {
        write_text(&report.to_string())?;
    }
    Ok(true)
}
