//! `zrt step`: walks a wave of a kernel on the virtual device.
//!
//! Contract: commands come from standard input, answers go to standard output; at the end of the input the kernel runs
//! to its end. No time passes at the prompt; between two stops the kernel has that of `--timeout`. A kernel that the
//! device knows never to end is reported as by `zrt launch`, and outputs are written as there. On the way to a finding
//! the kernel runs twice.

use super::launch::printed::Live;
use super::launch::{KernelArguments, Prepared, Task, waves};
use super::write_text;
use crate::error::ToolError;
use crate::launch::{self, LaunchError};
use crate::source_text::SourceText;
use crate::step::{CodeMap, Recorder, Stepper};
use clap::Args;
use std::io::{BufReader, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zrt_bringup::{DeviceChoice, OpenError, OpenOptions, VirtualOptions, virtual_config};
use zrt_vgpu::VirtualGpu;
use zrt_vgpu::check::debug::Debugger;

/// Steps through a wave of a kernel, instruction by instruction; type `help` for its commands
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub kernel: KernelArguments,
    /// Seed of the schedule of the waves
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Check the rules of docs/checking.md, and stop first at the instruction of this seed's finding NUMBER [default:
    /// 1]
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "1")]
    pub finding: Option<u32>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let prepared = Prepared::new(&arguments.kernel)?;
    let file = &arguments.kernel.file;
    let mut task = prepared.task()?;
    let request = prepared.request();
    let code = CodeMap::new(request.program, request.find_kernel()?, &request.geometry, file);
    let options = options(arguments, task.trusts_compilers);
    let instruction = match arguments.finding {
        Some(number) => Some(find(&task, arguments, number, &options)?),
        None => None,
    };
    let stepper = Stepper::new(BufReader::new(stdin()), stdout(), code, instruction);
    let attention = stepper.attention();
    let gpu = board(&options, Box::new(stepper))?;
    task.sequence.pauses = Some(&attention.prompts);
    task.sequence.placement = Some(&attention.placement);
    let mut live = Live::new(true);
    let (result, left) = task.carry_out(
        |text| live.write(text),
        |sequence, observe| {
            launch::run_sequence_over(sequence, DeviceChoice::Virtual, gpu, &options, observe)
        },
    );
    let shown = live.finish(&result);
    result.map_err(|mut error| {
        SourceText::of(file).fill_error(&mut error);
        // If these cannot be written, the error itself is more important.
        let _ = waves::show_before(&error);
        error
    })?;
    shown?;
    task.write_files(&left)?;
    if !attention.is_detached.load(Ordering::Acquire) {
        // A user who still has commands must learn why nobody reads them.
        write_text("no wave is left to follow: the kernel has ended\n")?;
    }
    left.unexpected.iter().try_for_each(|line| write_text(&format!("{line}\n")))?;
    Ok(left.unexpected.is_empty())
}

/// A virtual device with the schedule that was asked for, which checks rules where a finding is looked for.
fn options(arguments: &Arguments, trusts_compilers: bool) -> OpenOptions {
    let virtual_device = VirtualOptions {
        check: arguments.finding.is_some(),
        trusts_compilers,
        scheduler_seed: Some(arguments.seed),
        ..VirtualOptions::default()
    };
    OpenOptions { virtual_device, ..OpenOptions::default() }
}

/// A virtual board that a debugger looks into.
fn board(options: &OpenOptions, debugger: Box<dyn Debugger>) -> Result<Arc<VirtualGpu>, ToolError> {
    let gpu = VirtualGpu::with_debugger(virtual_config(options), debugger).map_err(|errno| {
        let source = Box::new(OpenError::VirtualDevice { errno });
        LaunchError::Open { choice: "virtual", source }
    })?;
    Ok(gpu)
}

/// Runs the kernel to its end and reports the finding of this number, counted from 1; returns the number of its
/// instruction.
fn find(
    task: &Task<'_>,
    arguments: &Arguments,
    number: u32,
    options: &OpenOptions,
) -> Result<u64, ToolError> {
    let recorder = Recorder::default();
    let record = recorder.record();
    let gpu = board(options, Box::new(recorder))?;
    let (result, _) = task.carry_out(
        |_| (),
        |sequence, observe| launch::run_sequence_over(sequence, DeviceChoice::Virtual, gpu, options, observe),
    );
    let findings = match result {
        Ok(report) => report.findings,
        Err(LaunchError::Device { findings, .. }) => findings,
        Err(error) => return Err(error.into()),
    };
    let index = (number as usize).checked_sub(1);
    let Some(located) = index.and_then(|index| findings.get(index)) else {
        return Err(ToolError::BadInput {
            what: format!(
                "--finding is {number}, but seed {} shows {} finding(s); zrt launch --seeds COUNT tries other seeds",
                arguments.seed,
                findings.len()
            ),
        });
    };
    let mut told = [located.finding.clone()];
    SourceText::of(&arguments.kernel.file).fill_all(&mut told);
    write_text(&format!("finding {number} of {}: {}\n\n", findings.len(), told[0]))?;
    Ok(record.instruction_of(located.number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// The schedule and the rules are those of the line; whose assumptions hold is known by the file.
    #[test]
    fn the_device_is_as_the_line_says() {
        for (words, trusts_compilers, expected) in [
            ("", true, (false, true, Some(0))),
            ("--seed 7", false, (false, false, Some(7))),
            ("--finding", true, (true, true, Some(0))),
            ("--finding 2 --seed 3", false, (true, false, Some(3))),
        ] {
            let words = ["step", "kernel.o", "--grid", "1"].into_iter().chain(words.split_whitespace());
            let line = Line::try_parse_from(words.clone()).unwrap();
            let found = options(&line.arguments, trusts_compilers).virtual_device;
            let found = (found.check, found.trusts_compilers, found.scheduler_seed);
            assert_eq!(found, expected, "{:?}", words.collect::<Vec<_>>());
        }
    }
}
