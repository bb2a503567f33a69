//! What `zrt launch` tells: outputs, findings, profile; as text or as one JSON document.
//!
//! Contract: findings of several schedules are told once each, with the first seed that shows them.

use super::outputs::OutputFile;
use super::printed;
use crate::commands::error_document::ErrorReport;
use crate::commands::{write_document, write_text};
use crate::error::ToolError;
use crate::launch::{KernelFault, LaunchReport, Unfinished};
use crate::roofline::{FORMULA, Prediction, Profile};
use crate::table::{Alignment, Table};
use serde::Serialize;
use zrt_device::{Finding, Place};
use zrt_loader::print::Printed;

/// Opcodes that the profile's table names.
const OPCODES_SHOWN: usize = 20;

/// How it is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// As one JSON document.
    pub json: bool,
    /// Advice counts as a finding.
    pub strict: bool,
}

/// What all schedules came to.
#[derive(Default)]
pub(super) struct Outcome {
    /// The first schedule that ended.
    pub report: Option<LaunchReport>,
    findings: Vec<Finding>,
    /// Schedules that ended.
    ended: u64,
    /// Schedules that did not.
    failed: u64,
    /// The first that did not.
    failure: Option<Failure>,
    /// Schedules that were not run, because one before them took all its time.
    pub skipped: u64,
    /// Seed of the first schedule whose outputs differ from the first one's.
    different: Option<u64>,
    /// What is not as expected, a line for each buffer.
    unexpected: Vec<String>,
    /// What the first schedule that did not end printed.
    printed_before_failure: String,
}

/// A schedule that did not end.
struct Failure {
    seed: u64,
    /// Why, in a sentence.
    text: String,
    error: ErrorReport,
    /// The instruction of the fault, where it was one, and what may have led to it.
    fault: Option<(u64, Option<String>)>,
}

/// The JSON document.
#[derive(Serialize)]
struct Summary<'a> {
    error: Option<&'a ErrorReport>,
    device: Option<&'a str>,
    kernel: Option<&'a str>,
    dispatches: Option<u64>,
    packets: Option<u64>,
    submissions: Option<u64>,
    wave_instructions: Option<u64>,
    outputs: Vec<OutputSummary>,
    schedules: u64,
    failed_schedules: u64,
    skipped_schedules: u64,
    failed_seed: Option<u64>,
    failure: Option<&'a str>,
    differing_seed: Option<u64>,
    unexpected: &'a [String],
    printed: &'a str,
    findings: &'a [Finding],
    profile: Option<ProfileSummary<'a>>,
}

/// One output file.
#[derive(Serialize)]
struct OutputSummary {
    argument: usize,
    path: String,
    bytes: usize,
}

/// Counts, and what they would mean on the card.
#[derive(Serialize)]
struct ProfileSummary<'a> {
    #[serde(flatten)]
    counts: &'a Profile,
    prediction: Prediction,
    prediction_formula: &'static str,
}

impl Outcome {
    /// A schedule that ended.
    pub fn add(&mut self, mut report: LaunchReport, seed: Option<u64>) {
        self.ended += 1;
        self.add_findings(std::mem::take(&mut report.findings));
        match &self.report {
            None => self.report = Some(report),
            Some(first) if first.outputs != report.outputs && self.different.is_none() => {
                self.different = seed;
            }
            Some(_) => {}
        }
    }

    /// A schedule that did not end.
    pub fn add_failed(&mut self, seed: u64, findings: Vec<Finding>, why: &Unfinished, printed: &Printed) {
        self.failed += 1;
        if self.failure.is_none() {
            self.printed_before_failure = printed::text(printed);
        }
        self.failure.get_or_insert_with(|| {
            let of = |fault: &KernelFault| Some((fault.fault.wave.as_ref()?.place.pc, fault.remark.clone()));
            let fault = why.fault().and_then(of);
            Failure { seed, text: why.to_string(), error: ErrorReport::of_schedule(why), fault }
        });
        self.add_findings(findings);
    }

    /// Whether every schedule ended, without a finding (advice counts where that is `strict`), with the same outputs and as
    /// expected.
    pub fn is_clean(&self, strict: bool) -> bool {
        self.findings.iter().all(|finding| finding.is_advice() && !strict)
            && self.failed == 0
            && self.different.is_none()
            && self.unexpected.is_empty()
    }

    /// What the kernel printed on the first schedule that ended, or where none did on the first.
    fn printed(&self) -> String {
        match &self.report {
            Some(report) => printed::text(&report.printed),
            None => self.printed_before_failure.clone(),
        }
    }

    /// What a schedule left that is not expected; of several schedules the first is told.
    pub fn add_unexpected(&mut self, lines: Vec<String>, seed: Option<u64>) {
        if self.unexpected.is_empty() {
            let with_seed = |line| match seed {
                Some(seed) => format!("{line} (--seed {seed})"),
                None => line,
            };
            self.unexpected = lines.into_iter().map(with_seed).collect();
        }
    }

    fn add_findings(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            // Addresses differ from device to device; offsets in the kernel do not.
            let key = |finding: &Finding| {
                let offset = |place: &Option<Place>| place.as_ref().and_then(|place| place.offset);
                let register = finding.register.clone();
                (
                    finding.rule.clone(),
                    offset(&finding.place),
                    offset(&finding.other),
                    register,
                    finding.remedy.clone(),
                )
            };
            let key_of_new = key(&finding);
            let same = self.findings.iter_mut().find(|known| key(known) == key_of_new);
            match same {
                Some(known) => known.count += finding.count,
                None => self.findings.push(finding),
            }
        }
    }
}

/// Prints it. `refused`: why the files could not be written.
pub(super) fn show(
    outcome: &Outcome,
    files: &[OutputFile],
    format: Format,
    refused: Option<&ErrorReport>,
) -> Result<(), ToolError> {
    let report = outcome.report.as_ref();
    let outputs: Vec<OutputSummary> = report
        .into_iter()
        .flat_map(|report| {
            files.iter().filter_map(|file| {
                let (argument, bytes) = (file.argument, report.buffer(file.argument)?.len());
                Some(OutputSummary { argument, path: file.path.display().to_string(), bytes })
            })
        })
        .collect();
    let profile = report.and_then(|report| report.profile.as_ref());
    if format.json {
        let counters = report.map(|report| &report.counters);
        return write_document(&Summary {
            error: refused.or(outcome.failure.as_ref().map(|failure| &failure.error)),
            device: report.map(|report| report.device.as_str()),
            kernel: report.map(|report| report.kernel.as_str()),
            dispatches: counters.map(|counters| counters.dispatches),
            packets: counters.map(|counters| counters.packets),
            submissions: counters.map(|counters| counters.submissions),
            wave_instructions: counters.and_then(|counters| counters.wave_instructions),
            outputs,
            schedules: outcome.ended + outcome.failed,
            failed_schedules: outcome.failed,
            skipped_schedules: outcome.skipped,
            failed_seed: outcome.failure.as_ref().map(|failure| failure.seed),
            failure: outcome.failure.as_ref().map(|failure| failure.text.as_str()),
            differing_seed: outcome.different,
            unexpected: &outcome.unexpected,
            printed: &outcome.printed(),
            findings: &outcome.findings,
            profile: profile.map(|counts| ProfileSummary {
                counts,
                prediction: counts.predict(),
                prediction_formula: FORMULA,
            }),
        });
    }
    let mut text = printed::lines(&outcome.printed());
    if let Some(report) = report {
        let instructions = match report.counters.wave_instructions {
            Some(count) => format!(", {count} wave instructions"),
            None => String::new(),
        };
        text.push_str(&format!("{} ran on {}{instructions}\n", report.kernel, report.device));
    }
    for output in &outputs {
        text.push_str(&format!("argument {}: {} bytes in {}\n", output.argument, output.bytes, output.path));
    }
    text.push_str(&verdict(outcome, format.strict));
    if let Some(profile) = profile {
        text.push_str(&profile_text(profile));
    }
    write_text(&text)
}

fn verdict(outcome: &Outcome, strict: bool) -> String {
    let mut text = String::new();
    for finding in &outcome.findings {
        text.push_str(&format!("\n{finding}\n"));
    }
    if let Some(Failure { seed, text: why, fault, .. }) = &outcome.failure {
        // A fault that is among the findings was told with them.
        let told = |(pc, remark): &(u64, Option<String>)| {
            let is_it = |finding: &&Finding| finding.place.as_ref().is_some_and(|place| place.pc == *pc);
            let finding = outcome.findings.iter().find(is_it)?;
            let remark = remark.as_ref().map(|remark| format!("; {remark}")).unwrap_or_default();
            Some(format!("the {} finding at {}{remark}", finding.rule, finding.place.as_ref()?))
        };
        let why = fault.as_ref().and_then(told).unwrap_or_else(|| why.clone());
        let failed = outcome.failed;
        text.push_str(&format!("\n{failed} schedule(s) did not end, first that of --seed {seed}: {why}\n"));
    }
    if outcome.skipped > 0 {
        text.push_str(&format!("{} further schedule(s) were not run\n", outcome.skipped));
    }
    if let Some(seed) = outcome.different {
        text.push_str(&format!("\nthe outputs depend on the schedule: --seed {seed} gives others\n"));
    }
    for line in &outcome.unexpected {
        text.push_str(&format!("\n{line}\n"));
    }
    let advice = outcome.findings.iter().filter(|finding| finding.is_advice()).count();
    match outcome.findings.len() - advice {
        0 => {}
        broken => text.push_str(&format!("\n{broken} finding(s)\n")),
    }
    if advice > 0 {
        let end = if strict { ", which --strict counts" } else { "; nothing is broken by it" };
        text.push_str(&format!("\n{advice} time(s) advice{end}\n"));
    }
    text
}

fn profile_text(profile: &Profile) -> String {
    let mut opcodes: Vec<(&String, &u64)> = profile.opcodes.iter().collect();
    opcodes.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    let mut counts = Table::new(&[("instruction", Alignment::Left), ("count", Alignment::Right)]);
    for (name, count) in opcodes.iter().take(OPCODES_SHOWN) {
        counts.row(vec![(*name).clone(), count.to_string()]);
    }
    if opcodes.len() > OPCODES_SHOWN {
        let rest: u64 = opcodes[OPCODES_SHOWN..].iter().map(|(_, count)| **count).sum();
        counts.row(vec![format!("{} others", opcodes.len() - OPCODES_SHOWN), rest.to_string()]);
    }
    let bytes = &profile.bytes;
    let mut memory = Table::new(&[("memory", Alignment::Left), ("bytes", Alignment::Right)]);
    for (name, value) in [
        ("vector loads", bytes.vector_load),
        ("vector stores", bytes.vector_store),
        ("atomics", bytes.atomic),
        ("scalar loads", bytes.scalar_load),
        ("scratch", bytes.scratch),
        ("LDS loads", bytes.lds_load),
        ("LDS stores and atomics", bytes.lds_store),
    ] {
        memory.row(vec![name.to_owned(), value.to_string()]);
    }
    let prediction = profile.predict();
    let conflicts = profile.lds.cycles.saturating_sub(profile.lds.cycles_without_conflict);
    format!(
        "\n{counts}\n{memory}\nLDS: {} accesses, {conflicts} conflict cycles of {}\n\n\
         prediction for the R9700, not a measurement: at least {:.3} us, bound by {} \
         (memory {:.3}, issue {:.3}, LDS {:.3} us; {:.3} wave instructions per byte)\n{FORMULA}\n",
        profile.lds.accesses,
        profile.lds.cycles,
        prediction.time_us(),
        prediction.bound(),
        prediction.memory_us,
        prediction.issue_us,
        prediction.lds_us,
        prediction.instructions_per_byte,
    )
}
