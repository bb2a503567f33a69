//! `zrt step`: walks a wave of a kernel on the virtual device.
//!
//! Contract: commands come from standard input, answers go to standard output; at the end of the input the kernel runs
//! to its end. No time passes at the prompt; between two stops the kernel has that of `--timeout`. A kernel that the
//! device knows never to end is told as `zrt launch` tells it, and outputs are written as there.

use super::launch::{KernelArguments, Prepared};
use super::write_text;
use crate::error::ToolError;
use crate::launch::{self, LaunchError};
use crate::source_text::SourceText;
use crate::step::{SourceLines, Stepper};
use clap::Args;
use std::io::{BufReader, stdin, stdout};
use std::sync::atomic::Ordering;
use zrt_device::{DeviceChoice, DeviceError, OpenOptions, VirtualOptions, virtual_config};
use zrt_vgpu::VirtualGpu;

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
    let kernel = launch::check(&prepared.request())?;
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
    let attention = stepper.attention();
    let gpu = VirtualGpu::with_debugger(virtual_config(&options), Box::new(stepper)).map_err(|errno| {
        let source = Box::new(DeviceError::VirtualDevice { errno });
        LaunchError::Open { choice: "virtual", source }
    })?;
    let mut request = prepared.request();
    request.pauses = Some(&attention.prompts);
    let result = launch::run_over(&request, DeviceChoice::Virtual, gpu, &options);
    let report = result.map_err(|mut error| {
        SourceText::of(&arguments.kernel.file).fill_error(&mut error);
        error
    })?;
    prepared.write_outputs(&report)?;
    if !attention.is_detached.load(Ordering::Acquire) {
        // Whoever still has commands is told why nobody reads them.
        write_text("no wave is left to follow: the kernel has ended\n")?;
    }
    let unexpected = prepared.unexpected(&report);
    unexpected.iter().try_for_each(|line| write_text(&format!("{line}\n")))?;
    Ok(unexpected.is_empty())
}
