//! `zrt pm4-test`: every packet that we use, on a card or on the virtual device.
//!
//! Contract: opens the device without its self-test, runs the whole of it in the order of a first boot, prints what
//! each case observed and, for one that failed, what is new in it; fails if any case failed or was not run, or if
//! something could not be released. What a hung queue leaves behind does not hide the case. This is what someone with a
//! card runs first. If the reader of the output goes away, the test continues.

pub(crate) mod error;
mod probe;
mod report;

pub use error::Pm4TestError;

use crate::commands::error_document::ErrorReport;
use crate::commands::launch::outputs::{self, OutputFile};
use crate::commands::{write_document, write_text};
use crate::error::ToolError;
use report::{Report, Secrets};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use zrt_bringup::probe::Answer;
use zrt_bringup::selftest::{self, CaseReport, Extent, Outcome};
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions, PlantedFault, VirtualOptions};
use zrt_device::{Device, RING_BYTES_DEFAULT};
use zrt_mem::ByteLen;

/// Sends every packet that zrt uses to a device, and reports what it observes
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Device to test: virtual or kfd
    #[arg(long, default_value = "virtual")]
    pub device: DeviceChoice,
    /// Also ask the device what no document says, and print the answers (docs/probes.md)
    #[arg(long)]
    pub probe: bool,
    /// Write a Markdown report to attach to an issue; --probe always writes one [default with --probe: a name made from
    /// the device]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Length of the command ring in bytes
    #[arg(long, value_name = "BYTES", default_value_t = RING_BYTES_DEFAULT.0)]
    pub ring_bytes: u64,
    /// Keep everything in system memory: no code, packets, parameters or data in VRAM
    #[arg(long)]
    pub gtt_only: bool,
    /// Virtual device: make only a small part of VRAM visible to the CPU
    #[arg(long)]
    pub small_bar: bool,
    /// Virtual device: run waves one after another, in an order drawn from this seed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Virtual device: break one part of it; an unknown name lists all parts
    #[arg(long, value_name = "NAME")]
    pub plant: Option<PlantedFault>,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct Summary<'a> {
    error: Option<ErrorReport>,
    #[serde(flatten)]
    conformance: &'a Value,
    probes: &'a [Answer],
    report: Option<&'a PathBuf>,
}

/// Where text goes: to standard output as it comes, or nowhere if a document follows. The first error is kept, so that
/// the test continues.
struct Telling {
    is_silent: bool,
    outcome: Result<(), ToolError>,
}

impl Telling {
    fn text(&mut self, text: &str) {
        if !self.is_silent && self.outcome.is_ok() {
            self.outcome = write_text(text);
        }
    }
}

impl Arguments {
    /// Refuses options that the device would silently ignore.
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

    fn options(&self) -> OpenOptions {
        OpenOptions {
            ring_bytes: ByteLen(self.ring_bytes),
            gtt_only: self.gtt_only,
            // The whole self-test follows.
            self_test: false,
            virtual_device: VirtualOptions {
                small_bar: self.small_bar,
                scheduler_seed: self.seed,
                planted: self.plant,
                ..VirtualOptions::default()
            },
        }
    }
}

/// The files that a report may go to, and whether each is for the virtual device; none if there is no report.
fn planned(arguments: &Arguments) -> Result<Vec<(bool, OutputFile)>, ToolError> {
    let (virtual_path, card_path) = match (&arguments.report, arguments.probe) {
        (None, false) => return Ok(Vec::new()),
        (None, true) => (report::default_path(true), report::default_path(false)),
        (Some(path), _) => (path.clone(), path.clone()),
    };
    let plan = |(is_virtual, path): (bool, PathBuf)| {
        let files = outputs::plan(std::iter::once(path.as_path()))?;
        Ok(files.into_iter().map(move |file| (is_virtual, file)))
    };
    let files = [(true, virtual_path), (false, card_path)].into_iter().map(plan);
    Ok(files.collect::<Result<Vec<_>, ToolError>>()?.into_iter().flatten().collect())
}

/// Writes the report to a file.
fn write_report(
    device: &Device,
    conformance: &Value,
    answers: &[Answer],
    file: &OutputFile,
) -> Result<(), ToolError> {
    let environment = zrt_bringup::probe::environment(device);
    let secrets = Secrets::of_this_machine();
    let report = Report::new(environment, conformance.clone(), answers.to_vec(), &secrets);
    let text = report.and_then(|report| report.checked_text()).map_err(Pm4TestError::from)?;
    outputs::write(&[(file, [text.as_bytes(), &[]])])
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    arguments.check()?;
    let planned = planned(arguments)?;
    let mut device = zrt_bringup::open(arguments.device, &arguments.options()).map_err(Pm4TestError::from)?;
    let mut telling = Telling { is_silent: arguments.json, outcome: Ok(()) };
    telling.text(&headline(&device));
    let is_virtual = device.is_virtual();
    let reports = selftest::run_each(&mut device, Extent::Full, &mut |report| {
        telling.text(&case_text(report, is_virtual));
    });
    let conformance = to_json(&device, &reports);
    let answers = if arguments.probe { ask(&mut device, &mut telling) } else { Vec::new() };
    let file = planned.iter().find(|(for_virtual, _)| *for_virtual == is_virtual).map(|(_, file)| file);
    let written = file.map_or(Ok(()), |file| {
        write_report(&device, &conformance, &answers, file)?;
        telling.text(&format!("report written to {}\n", file.path.display()));
        Ok(())
    });
    let closed = device.close();
    if let Err(error) = &closed {
        telling.text(&format!("{error}\n"));
    }
    let judged = judge(&reports);
    if let Ok(text) = &judged {
        telling.text(text);
    }
    // What failed first, before what went wrong while reporting it.
    let failed = judged.err().map(ToolError::from);
    let failure = failed.or(written.err()).or(closed.err().map(|error| Pm4TestError::from(error).into()));
    if arguments.json {
        let error = failure.as_ref().map(ErrorReport::of);
        let report = file.map(|file| &file.path);
        write_document(&Summary { error, conformance: &conformance, probes: &answers, report })?;
    }
    match failure {
        Some(error) => Err(untold(error, arguments.json)),
        None => telling.outcome.map(|()| true),
    }
}

/// An error, marked as told if the document has told it.
fn untold(error: ToolError, is_in_document: bool) -> ToolError {
    match is_in_document {
        true => ToolError::Told(Box::new(error)),
        false => error,
    }
}

/// Asks all questions, and prints each answer under its model.
fn ask(device: &mut Device, telling: &mut Telling) -> Vec<Answer> {
    telling.text(&probe::headline(device.is_virtual()));
    let answers = zrt_bringup::probe::run(device);
    answers.iter().for_each(|answer| telling.text(&probe::answer_text(answer)));
    answers
}

/// How many cases have an outcome of this word.
fn count(reports: &[CaseReport], word: &str) -> usize {
    reports.iter().filter(|report| report.outcome.word() == word).count()
}

/// The last line, if no case failed.
fn judge(reports: &[CaseReport]) -> Result<String, Pm4TestError> {
    let (all, not_run) = (reports.len(), count(reports, Outcome::NotRun.word()));
    let failed: Vec<&CaseReport> =
        reports.iter().filter(|report| report.outcome.failure().is_some()).collect();
    if let Some(first) = failed.first() {
        let (failed, suspect, first) = (failed.len(), first.suspect, first.case);
        return Err(Pm4TestError::Cases { failed, all, not_run, first, suspect });
    }
    let (passed, noted, skipped) =
        (count(reports, "passed"), count(reports, "noted"), count(reports, "skipped"));
    Ok(format!("{passed} of {all} cases passed, none failed; {noted} noted, {skipped} skipped\n"))
}

fn headline(device: &Device) -> String {
    let info = device.info();
    let played = device.virtual_kernel().map(|kernel| format!(" (rules of kernel {kernel})"));
    format!(
        "{}: gpu_id {}, {} compute units, {} MiB of VRAM, {} BAR, KFD {}.{}{}, MEC firmware {}, ring of {} bytes{}\n",
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

fn case_text(report: &CaseReport, is_virtual: bool) -> String {
    let word = match &report.outcome {
        Outcome::Passed(_) => "ok",
        Outcome::Failed(_) => "FAILED",
        other => other.word(),
    };
    let mut text = format!("{word:>7}  {:<28} {}\n", report.case, report.outcome.text());
    if matches!(report.outcome, Outcome::Failed(_) | Outcome::Noted(_)) {
        text.push_str(&format!("{:38}new in this case: {}\n", "", report.suspect));
    }
    for timing in &report.timings {
        let whose = if is_virtual { " (virtual device: no speed of a card)" } else { "" };
        text.push_str(&format!("{:38}{}: {:.2} µs{whose}\n", "", timing.name, timing.nanoseconds / 1e3));
    }
    text
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
        "virtual": device.is_virtual(),
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
        arguments: Arguments,
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

    fn case(case: &'static str, outcome: Outcome, timings: Vec<selftest::Timing>) -> CaseReport {
        CaseReport { case, suspect: "all", outcome, duration: std::time::Duration::ZERO, timings }
    }

    /// What is new in a case is told where it failed or is worth knowing; times of the virtual device are marked.
    #[test]
    fn a_case_is_a_line_and_what_belongs_to_it() {
        let blanks = " ".repeat(38);
        for (outcome, expected) in [
            (
                Outcome::Passed("it came".to_owned()),
                "     ok  fence                        it came\n".to_owned(),
            ),
            (
                Outcome::Failed("it did not".to_owned()),
                format!(" FAILED  fence                        it did not\n{blanks}new in this case: all\n"),
            ),
            (
                Outcome::Noted("late".to_owned()),
                format!("  noted  fence                        late\n{blanks}new in this case: all\n"),
            ),
            (Outcome::Skipped("no BAR"), "skipped  fence                        no BAR\n".to_owned()),
        ] {
            assert_eq!(case_text(&case("fence", outcome, Vec::new()), true), expected);
        }
        let timing = selftest::Timing { name: "round trip", nanoseconds: 12_345.0 };
        let timed = case("fence", Outcome::Passed("yes".to_owned()), vec![timing]);
        let line = "     ok  fence                        yes\n";
        assert_eq!(case_text(&timed, false), format!("{line}{blanks}round trip: 12.35 µs\n"));
        let marked = format!("{line}{blanks}round trip: 12.35 µs (virtual device: no speed of a card)\n");
        assert_eq!(case_text(&timed, true), marked);
    }

    #[test]
    fn the_last_line_counts_outcomes_or_names_the_first_failure() {
        let passed = |name| case(name, Outcome::Passed(String::new()), Vec::new());
        let mut reports = vec![
            passed("a"),
            passed("b"),
            case("c", Outcome::Noted(String::new()), Vec::new()),
            case("d", Outcome::Skipped("no"), Vec::new()),
        ];
        let line = "2 of 4 cases passed, none failed; 1 noted, 1 skipped\n";
        assert_eq!(judge(&reports).map_err(|error| error.to_string()), Ok(line.to_owned()));
        reports.push(case("e", Outcome::Failed(String::new()), Vec::new()));
        reports.push(case("f", Outcome::Failed(String::new()), Vec::new()));
        reports.push(case("g", Outcome::NotRun, Vec::new()));
        let text = "2 of 7 cases failed and 1 were not run; first \"e\"; new in that case: all";
        assert_eq!(judge(&reports).map_err(|error| error.to_string()), Err(text.to_owned()));
    }

    /// What a document has told is not told again.
    #[test]
    fn an_error_is_told_once() {
        assert!(matches!(untold(ToolError::NothingToCompare, false), ToolError::NothingToCompare));
        let ToolError::Told(told) = untold(ToolError::NothingToCompare, true) else { panic!("not told") };
        assert!(matches!(*told, ToolError::NothingToCompare));
    }

    #[test]
    fn options_are_those_of_the_line() {
        let parse = |words: &[&str]| Line::try_parse_from([&["pm4-test"], words].concat()).unwrap().arguments;
        let default = parse(&[]).options();
        assert!(!default.self_test && !default.gtt_only && !default.virtual_device.small_bar);
        let all = parse(&["--gtt-only", "--small-bar", "--seed", "3", "--ring-bytes", "8192"]).options();
        assert!(all.gtt_only && all.virtual_device.small_bar);
        assert_eq!((all.virtual_device.scheduler_seed, all.ring_bytes), (Some(3), ByteLen(8192)));
        assert!(all.virtual_device.planted.is_none());
        let planted = parse(&["--plant", "end-of-pipe-never-writes"]).options().virtual_device.planted;
        assert_eq!(planted, "end-of-pipe-never-writes".parse().ok());
        assert!(planted.is_some());
        // A report goes where it is told, or under a name for each device if a probe needs one.
        let names = |words: &[&str]| -> Vec<_> {
            let files = planned(&parse(words)).unwrap();
            files
                .into_iter()
                .map(|(is_virtual, file)| (is_virtual, file.path.display().to_string()))
                .collect()
        };
        assert_eq!(names(&[]), []);
        let both = |card: &str, virtual_one: &str| [(true, virtual_one.to_owned()), (false, card.to_owned())];
        assert_eq!(names(&["--probe"]), both("zrt-report-kfd.md", "zrt-report-virtual.md"));
        assert_eq!(names(&["--probe", "--report", "r.md"]), both("r.md", "r.md"));
        assert_eq!(names(&["--report", "r.md"]), both("r.md", "r.md"));
    }
}
