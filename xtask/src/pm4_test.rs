//! `cargo xtask pm4-test`: every packet that we use, on a card or on the virtual device.
//!
//! Contract: opens the device without its self-test, runs the whole of it in the order of a first boot, prints what each
//! case observed and, of one that failed, what is new in it; fails where any case failed or was not run, or something
//! could not be given back. What a queue that hangs leaves behind does not hide the case. This is what someone with a
//! card runs first.

use crate::probe;
use crate::report::{self, Report, ReportError, Secrets};
use serde_json::{Value, json};
use std::path::PathBuf;
use zrt_device::selftest::{self, CaseReport, Extent, Outcome};
use zrt_device::{
    Device, DeviceChoice, DeviceError, OpenOptions, PlantedFault, RING_BYTES_DEFAULT, VirtualOptions,
};
use zrt_mem::ByteLen;

/// Arguments of `cargo xtask pm4-test`.
#[derive(clap::Args, Debug)]
pub struct Pm4TestArguments {
    /// Where: virtual or kfd.
    #[arg(long, default_value = "virtual")]
    pub device: DeviceChoice,
    /// Write the report as JSON to this file.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Ask besides what no document says, and print the answers (docs/probes.md).
    #[arg(long)]
    pub probe: bool,
    /// Write everything as one Markdown file: to be attached to an issue. With --probe it is written in any case, under a
    /// name by device.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Length of the command ring in bytes.
    #[arg(long, default_value_t = RING_BYTES_DEFAULT.0)]
    pub ring_bytes: u64,
    /// Everything in system memory: no code, packets, parameters or data in VRAM.
    #[arg(long)]
    pub gtt_only: bool,
    /// Virtual device: only a small part of VRAM is CPU-visible.
    #[arg(long)]
    pub small_bar: bool,
    /// Virtual device: run waves one after another in the order that this seed gives.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Virtual device: a part of it does not work; a wrong name lists them all.
    #[arg(long, value_name = "NAME")]
    pub plant: Option<PlantedFault>,
}

/// Why the test failed.
#[derive(Debug, thiserror::Error)]
pub enum Pm4TestError {
    /// An option that only the virtual device has.
    #[error(
        "{option} says how the virtual device is built; on \"{device}\" it would do nothing: leave it out, or use --device \
         virtual"
    )]
    VirtualOnly {
        /// Its name on the command line.
        option: &'static str,
        /// What was to be tested.
        device: DeviceChoice,
    },
    /// The device did not open.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Cases failed; the rest may not have run.
    #[error(
        "{failed} of {all} cases failed and {not_run} were not run; first \"{first}\", in which this is new: {suspect}"
    )]
    Cases {
        /// How many failed.
        failed: usize,
        /// How many there are.
        all: usize,
        /// How many were not run.
        not_run: usize,
        /// The first that failed.
        first: &'static str,
        /// What is new in it.
        suspect: &'static str,
    },
    /// The report could not be made.
    #[error(transparent)]
    Markdown(#[from] ReportError),
    /// The JSON could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Pm4TestArguments {
    /// Refuses what the device would silently not do.
    fn check(&self) -> Result<(), Pm4TestError> {
        let virtual_only = [
            ("--small-bar", self.small_bar),
            ("--seed", self.seed.is_some()),
            ("--plant", self.plant.is_some()),
        ];
        match virtual_only.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.device != DeviceChoice::Virtual => {
                Err(Pm4TestError::VirtualOnly { option, device: self.device })
            }
            _ => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Pm4TestArguments) -> Result<(), Pm4TestError> {
    arguments.check()?;
    let options = OpenOptions {
        ring_bytes: ByteLen(arguments.ring_bytes),
        gtt_only: arguments.gtt_only,
        virtual_device: VirtualOptions {
            small_bar: arguments.small_bar,
            scheduler_seed: arguments.seed,
            planted: arguments.plant,
            ..VirtualOptions::default()
        },
    };
    let mut device = Device::open_for_test(arguments.device, &options)?;
    println!("{}", headline(&device));
    let is_virtual = device.is_virtual();
    let reports = selftest::run_each(&mut device, Extent::Full, &mut |report| print_case(report, is_virtual));
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", to_json(&device, &reports));
        std::fs::write(path, text).map_err(|source| Pm4TestError::Report { path: path.clone(), source })?;
    }
    let answers = if arguments.probe { probe::run(&mut device) } else { Vec::new() };
    if arguments.probe || arguments.report.is_some() {
        let path = arguments.report.clone().unwrap_or_else(|| report::default_path(device.is_virtual()));
        let environment = zrt_device::probe::environment(&device);
        let cases = to_json(&device, &reports);
        Report::new(environment, cases, answers, &Secrets::of_this_machine()).write(&path)?;
        println!("report written to {}", path.display());
    }
    let closed = device.close();
    if let Err(error) = &closed {
        println!("{error}");
    }
    judge(&reports)?;
    Ok(closed?)
}

/// How many cases have an outcome of this word.
fn count(reports: &[CaseReport], word: &str) -> usize {
    reports.iter().filter(|report| report.outcome.word() == word).count()
}

fn judge(reports: &[CaseReport]) -> Result<(), Pm4TestError> {
    let (all, not_run) = (reports.len(), count(reports, Outcome::NotRun.word()));
    let failed: Vec<&CaseReport> =
        reports.iter().filter(|report| report.outcome.failure().is_some()).collect();
    if let Some(first) = failed.first() {
        let (failed, suspect, first) = (failed.len(), first.suspect, first.case);
        return Err(Pm4TestError::Cases { failed, all, not_run, first, suspect });
    }
    let (passed, noted, skipped) =
        (count(reports, "passed"), count(reports, "noted"), count(reports, "skipped"));
    println!("{passed} of {all} cases passed, none failed; {noted} noted, {skipped} skipped");
    Ok(())
}

fn headline(device: &Device) -> String {
    let info = device.info();
    let played = info.virtual_kernel.as_deref().map(|kernel| format!(" (rules of kernel {kernel})"));
    format!(
        "{}: gpu_id {}, {} compute units, {} MiB of VRAM, {} BAR, KFD {}.{}{}, MEC firmware {}, ring of {} bytes{}",
        info.name,
        info.gpu_id,
        info.compute_units,
        info.vram.0 >> 20,
        if info.has_large_bar { "large" } else { "small" },
        info.kfd_version.0,
        info.kfd_version.1,
        played.unwrap_or_default(),
        info.firmware,
        info.ring_bytes.0,
        if info.gtt_only { ", everything in system memory" } else { "" },
    )
}

fn print_case(report: &CaseReport, is_virtual: bool) {
    let word = match &report.outcome {
        Outcome::Passed(_) => "ok",
        Outcome::Failed(_) => "FAILED",
        other => other.word(),
    };
    println!("{word:>7}  {:<28} {}", report.case, report.outcome.text());
    if matches!(report.outcome, Outcome::Failed(_) | Outcome::Noted(_)) {
        println!("{:38}new in this case: {}", "", report.suspect);
    }
    for timing in &report.timings {
        let whose = if is_virtual { " (virtual device: no speed of a card)" } else { "" };
        println!("{:38}{}: {:.2} µs{whose}", "", timing.name, timing.nanoseconds / 1e3);
    }
}

fn to_json(device: &Device, reports: &[CaseReport]) -> Value {
    let info = device.info();
    let case = |report: &CaseReport| {
        let timings: serde_json::Map<String, Value> =
            report.timings.iter().map(|timing| (timing.name.into(), json!(timing.nanoseconds))).collect();
        json!({
            "case": report.case,
            "suspect": report.suspect,
            "outcome": report.outcome.word(),
            "observed": report.outcome.text(),
            "duration_us": report.duration.as_micros() as u64,
            "timings_ns": timings,
        })
    };
    json!({
        "device": info.name,
        "virtual": info.is_virtual,
        "gpu_id": info.gpu_id,
        "compute_units": info.compute_units,
        "vram_bytes": info.vram.0,
        "large_bar": info.has_large_bar,
        "kfd_version": format!("{}.{}", info.kfd_version.0, info.kfd_version.1),
        "mec_firmware": info.firmware,
        "ring_bytes": info.ring_bytes.0,
        "gtt_only": info.gtt_only,
        "cases_expected": selftest::case_count(Extent::Full),
        "cases": reports.iter().map(case).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Pm4TestArguments,
    }

    #[test]
    fn what_only_the_virtual_device_has_is_refused_for_others() {
        let run = |words: &[&str]| {
            let line = Line::try_parse_from(["pm4-test"].iter().chain(words)).unwrap();
            super::run(&line.arguments).err().map(|error| error.to_string())
        };
        for words in [&["--small-bar"][..], &["--seed", "3"], &["--plant", "end-of-pipe-never-writes"]] {
            let error = run(&[&["--device", "kfd"], words].concat()).unwrap();
            assert!(error.contains(words[0]) && error.contains("virtual device"), "{error}");
            let virtual_line = Line::try_parse_from([&["pm4-test"], words].concat()).unwrap();
            assert!(virtual_line.arguments.check().is_ok(), "{words:?}");
        }
    }
}
