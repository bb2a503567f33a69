//! `zrt step`: walks a wave of a kernel on the virtual device.
//!
//! Contract: commands come from standard input, answers go to standard output; at the end of the input the kernel runs
//! to its end. Outputs are written as `zrt launch` writes them.

use super::launch::{KernelArguments, Prepared};
use crate::error::ToolError;
use crate::launch::{self, LaunchError};
use crate::step::{SourceLines, Stepper};
use clap::Args;
use std::io::{BufReader, stdin, stdout};
use std::time::Duration;
use zrt_device::{DeviceChoice, DeviceError, OpenOptions, VirtualOptions, virtual_config};
use zrt_vgpu::VirtualGpu;

/// How long somebody may sit at the prompt.
const DEADLINE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Walks a wave of a kernel instruction by instruction; `help` lists its commands
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub kernel: KernelArguments,
    /// Schedule of the waves
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let prepared = Prepared::new(&arguments.kernel)?;
    let mut request = prepared.request();
    request.deadline = DEADLINE;
    let kernel = launch::check(&request)?;
    let table = prepared.request().program.lines();
    let lines: SourceLines = table
        .rows()
        .iter()
        .filter(|row| row.offset >= kernel.entry_offset)
        .map(|row| {
            let file = table.files().get(row.file as usize).cloned().unwrap_or_default();
            (row.offset - kernel.entry_offset, file, row.line)
        })
        .collect();
    let virtual_device = VirtualOptions { scheduler_seed: Some(arguments.seed), ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, ..OpenOptions::default() };
    let stepper = Stepper::new(BufReader::new(stdin()), stdout(), lines);
    let gpu = VirtualGpu::with_debugger(virtual_config(&options), Box::new(stepper)).map_err(|errno| {
        let source = Box::new(DeviceError::VirtualDevice { errno });
        LaunchError::Open { choice: "virtual", source }
    })?;
    let report = launch::run_over(&request, DeviceChoice::Virtual, gpu, &options)?;
    prepared.write_outputs(&report)?;
    Ok(true)
}
