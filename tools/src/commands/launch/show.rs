//! The report of `zrt launch` and `zrt run`: outputs, findings, profile; as text or as one JSON document.
//!
//! Contract: findings of several schedules are reported once each, with the first seed that shows them.

use super::task::{Left, Of, Origin, Subject, Task};
use super::{printed, waves};
use crate::commands::error_document::ErrorReport;
use crate::commands::{write_document, write_text};
use crate::error::ToolError;
use crate::launch::{KernelFault, Located, Report, Unfinished};
use crate::prediction::kernel::KernelPrediction;
use crate::prediction::launch::{FORMULA, of_launches};
use crate::profile::{LineCounts, Profile};
use crate::suppression::Silenced;
use crate::table::{Alignment, Table};
use serde::Serialize;
use std::collections::HashMap;
use zrt_bringup::Finding;
use zrt_device::{Place, Waves};
use zrt_loader::print::Printed;

/// Opcodes that the profile's table names.
const OPCODES_SHOWN: usize = 20;
/// Instructions and source lines, likewise.
const PLACES_SHOWN: usize = 20;

/// The format of the report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// As one JSON document.
    pub json: bool,
    /// Advice counts as a finding.
    pub strict: bool,
}

/// The result of all schedules.
#[derive(Default)]
pub(super) struct Outcome {
    /// The first schedule that ended, and what it left.
    pub report: Option<(Report, Left)>,
    pub findings: Vec<Located>,
    /// The index of each of them, until some are removed.
    known: HashMap<Key, usize>,
    /// Findings that are known and not among these.
    pub silenced: Silenced,
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
}

/// What a finding is in every schedule: rule, places, register and remedy. Addresses differ from device to device;
/// offsets in the kernel do not.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    rule: String,
    places: [Option<(Option<String>, Option<u64>)>; 2],
    register: Option<String>,
    remedy: String,
}

impl Key {
    fn of(finding: &Finding) -> Key {
        let offset = |place: &Option<Place>| place.as_ref().map(|place| (place.kernel.clone(), place.offset));
        Key {
            rule: finding.rule.clone(),
            places: [offset(&finding.place), offset(&finding.other)],
            register: finding.register.clone(),
            remedy: finding.remedy.clone(),
        }
    }
}

/// A schedule that did not end.
pub(super) struct Failure {
    seed: u64,
    /// Why, in a sentence.
    text: String,
    error: ErrorReport,
    /// The place of the fault, if it was one, and what may have led to it.
    fault: Option<(Place, Option<String>)>,
    /// What was printed until then.
    printed: String,
    /// True if no other schedule was run before.
    is_first: bool,
    /// Where the waves were.
    waves: Waves,
}

/// The JSON document.
#[derive(Serialize)]
struct Summary<'a> {
    error: Option<&'a ErrorReport>,
    device: Option<&'a str>,
    #[serde(flatten)]
    subject: SubjectSummary<'a>,
    dispatches: Option<u64>,
    packets: Option<u64>,
    submissions: Option<u64>,
    wave_instructions: Option<u64>,
    outputs: Vec<OutputSummary<'a>>,
    schedules: u64,
    failed_schedules: u64,
    skipped_schedules: u64,
    failed_seed: Option<u64>,
    failure: Option<&'a str>,
    differing_seed: Option<u64>,
    unexpected: &'a [String],
    printed: &'a str,
    findings: Vec<FindingSummary<'a>>,
    silenced: &'a Silenced,
    profile: Option<ProfileSummary<'a>>,
}

/// What ran.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum SubjectSummary<'a> {
    /// null if no schedule ended.
    Kernel(Option<&'a str>),
    Script(&'a str),
}

/// One output file.
#[derive(Serialize)]
#[serde(untagged)]
enum OutputSummary<'a> {
    Argument { argument: usize, path: String, bytes: usize },
    Buffer { buffer: &'a str, step: Option<&'a Origin>, path: String, bytes: usize },
}

/// A finding; for a script, with its step.
#[derive(Serialize)]
#[serde(untagged)]
enum FindingSummary<'a> {
    Launch(&'a Finding),
    Script {
        #[serde(flatten)]
        finding: &'a Finding,
        step: Option<&'a Origin>,
    },
}

/// Counts, and what they would mean on the card.
#[derive(Serialize)]
struct ProfileSummary<'a> {
    #[serde(flatten)]
    counts: &'a Profile,
    lines: Vec<LineCounts>,
    prediction: Option<KernelPrediction>,
    prediction_formula: &'static str,
}

impl Failure {
    /// The failure of a task on a schedule: what was running, and why it did not end.
    pub fn new(
        task: &Task<'_>,
        seed: u64,
        (work, why): (&str, &Unfinished),
        printed: &Printed,
        waves: Waves,
    ) -> Failure {
        let of = |fault: &KernelFault| Some((fault.fault.wave.as_ref()?.place.clone(), fault.remark.clone()));
        let fault = why.fault().and_then(of);
        let text = match task.subject {
            Subject::Launch(_) => why.to_string(),
            Subject::Script(..) => format!("{work}: {why}"),
        };
        let error = ErrorReport::of_schedule(text.clone(), why, &waves);
        Failure { seed, text, error, fault, printed: printed::text(printed), is_first: false, waves }
    }
}

impl Outcome {
    /// Adds a schedule that ended.
    pub fn add(&mut self, task: &Task<'_>, mut report: Report, mut left: Left, seed: Option<u64>) {
        self.ended += 1;
        self.add_findings(std::mem::take(&mut report.findings));
        self.add_unexpected(std::mem::take(&mut left.unexpected), seed);
        match &self.report {
            None => self.report = Some((report, left)),
            Some((_, first)) if !task.is_same(first, &left) && self.different.is_none() => {
                self.different = seed;
            }
            Some(_) => {}
        }
    }

    /// Adds a schedule that did not end; of several the first is reported, and `failure` is made for that one only.
    pub fn add_failed(
        &mut self,
        seed: u64,
        failure: impl FnOnce() -> Failure,
        findings: Vec<Located>,
        left: Left,
    ) {
        // The closure is called for the first that did not end.
        let is_first = self.ended == 0;
        self.failed += 1;
        self.add_unexpected(left.unexpected, Some(seed));
        self.failure.get_or_insert_with(|| Failure { is_first, ..failure() });
        self.add_findings(findings);
    }

    /// What was printed on the first schedule.
    fn printed(&self) -> String {
        match (&self.failure, &self.report) {
            (Some(failure), _) if failure.is_first => failure.printed.clone(),
            (_, Some((report, _))) => printed::text(&report.printed),
            (_, None) => String::new(),
        }
    }

    /// Whether every schedule ended, without a finding (advice counts if `strict`), with the same outputs and as
    /// expected.
    pub fn is_clean(&self, strict: bool) -> bool {
        self.findings.iter().all(|located| located.finding.is_advice() && !strict)
            && self.failed == 0
            && self.different.is_none()
            && self.unexpected.is_empty()
    }

    /// Adds what a schedule left that is not as expected; of several schedules the first is reported.
    fn add_unexpected(&mut self, lines: Vec<String>, seed: Option<u64>) {
        if self.unexpected.is_empty() {
            let with_seed = |line| match seed {
                Some(seed) => format!("{line} (--seed {seed})"),
                None => line,
            };
            self.unexpected = lines.into_iter().map(with_seed).collect();
        }
    }

    fn add_findings(&mut self, findings: Vec<Located>) {
        for located in findings {
            let index = *self.known.entry(Key::of(&located.finding)).or_insert(self.findings.len());
            match self.findings.get_mut(index) {
                Some(known) => known.finding.count += located.finding.count,
                None => self.findings.push(located),
            }
        }
    }

    /// Removes what `keeps` does not keep, after all schedules have run.
    pub fn filter(&mut self, mut keeps: impl FnMut(&Finding) -> bool) {
        self.known.clear();
        self.findings.retain(|located| keeps(&located.finding));
    }
}

/// Prints the report. `refused`: why the files could not be written.
pub(super) fn show(
    task: &Task<'_>,
    outcome: &Outcome,
    format: Format,
    refused: Option<&ErrorReport>,
) -> Result<(), ToolError> {
    let report = outcome.report.as_ref().map(|(report, _)| report);
    let written = outcome.report.iter().flat_map(|(_, left)| task.written(left));
    let outputs: Vec<Output<'_>> = written
        .map(|(purpose, file, bytes)| (&purpose.of, file.path.display().to_string(), bytes.len()))
        .collect();
    let profile = report.and_then(|report| report.profile.as_ref());
    if format.json {
        return write_document(&document(task, outcome, outputs, &outcome.printed(), refused));
    }
    let mut text = String::new();
    if let Some(report) = report {
        let instructions = match report.counters.wave_instructions {
            Some(count) => format!(", {count} wave instructions"),
            None => String::new(),
        };
        let name = match &task.subject {
            Subject::Launch(kernel) => kernel.clone(),
            Subject::Script(name, _) => format!("{name}: {} launch(es)", report.counters.dispatches),
        };
        text.push_str(&format!("{name} ran on {}{instructions}\n", report.device));
    }
    for (of, path, bytes) in &outputs {
        text.push_str(&format!("{of}: {bytes} bytes in {path}\n"));
    }
    text.push_str(&verdict(task, outcome, format.strict));
    if let Some(profile) = profile {
        text.push_str(&profile_text(profile, of_launches(profile, &task.sequence)));
    }
    write_text(&text)
}

/// What was written: the buffer, the path, how many bytes.
type Output<'a> = (&'a Of, String, usize);

/// The document. `printed`: the text; `refused`: why the files could not be written.
fn document<'a>(
    task: &'a Task<'_>,
    outcome: &'a Outcome,
    outputs: Vec<Output<'a>>,
    printed: &'a str,
    refused: Option<&'a ErrorReport>,
) -> Summary<'a> {
    let report = outcome.report.as_ref().map(|(report, _)| report);
    let counters = report.map(|report| &report.counters);
    let profile = report.and_then(|report| report.profile.as_ref());
    Summary {
        error: refused.or(outcome.failure.as_ref().map(|failure| &failure.error)),
        device: report.map(|report| report.device.as_str()),
        subject: match &task.subject {
            Subject::Launch(kernel) => SubjectSummary::Kernel(report.map(|_| kernel.as_str())),
            Subject::Script(name, _) => SubjectSummary::Script(name),
        },
        dispatches: counters.map(|counters| counters.dispatches),
        packets: counters.map(|counters| counters.packets),
        submissions: counters.map(|counters| counters.submissions),
        wave_instructions: counters.and_then(|counters| counters.wave_instructions),
        outputs: outputs.into_iter().map(output_summary).collect(),
        schedules: outcome.ended + outcome.failed,
        failed_schedules: outcome.failed,
        skipped_schedules: outcome.skipped,
        failed_seed: outcome.failure.as_ref().map(|failure| failure.seed),
        failure: outcome.failure.as_ref().map(|failure| failure.text.as_str()),
        differing_seed: outcome.different,
        unexpected: &outcome.unexpected,
        printed,
        findings: outcome.findings.iter().map(|located| finding_summary(task, located)).collect(),
        silenced: &outcome.silenced,
        profile: profile.map(|counts| ProfileSummary {
            counts,
            lines: counts.lines(),
            prediction: of_launches(counts, &task.sequence),
            prediction_formula: FORMULA,
        }),
    }
}

fn output_summary((of, path, bytes): Output<'_>) -> OutputSummary<'_> {
    match of {
        Of::Argument(argument) => OutputSummary::Argument { argument: *argument, path, bytes },
        Of::Buffer(buffer, step) => OutputSummary::Buffer { buffer, step: step.as_ref(), path, bytes },
    }
}

fn finding_summary<'a>(
    task: &'a Task<'_>,
    Located { finding, action, .. }: &'a Located,
) -> FindingSummary<'a> {
    match &task.subject {
        Subject::Launch(_) => FindingSummary::Launch(finding),
        subject @ Subject::Script(..) => FindingSummary::Script { finding, step: subject.origin(*action) },
    }
}

fn verdict(task: &Task<'_>, outcome: &Outcome, strict: bool) -> String {
    let mut text = String::new();
    for Located { finding, action, .. } in &outcome.findings {
        text.push_str(&format!("\n{finding}\n"));
        if let Some(origin) = task.subject.origin(*action) {
            text.push_str(&format!("    in {origin}\n"));
        }
    }
    if let Some(Failure { seed, text: why, fault, waves, .. }) = &outcome.failure {
        // A fault that is among the findings was reported with them.
        let told = |(at, remark): &(Place, Option<String>)| {
            let finding =
                outcome.findings.iter().map(|located| &located.finding).find(|one| tells(one, at))?;
            let remark = remark.as_ref().map(|remark| format!("; {remark}")).unwrap_or_default();
            Some(format!("the {} finding at {}{remark}", finding.rule, finding.place.as_ref()?))
        };
        let why = fault.as_ref().and_then(told).unwrap_or_else(|| why.clone());
        let failed = outcome.failed;
        text.push_str(&format!("\n{failed} schedule(s) did not end, first that of --seed {seed}: {why}\n"));
        text.push_str(&waves::text(waves));
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
    let advice = outcome.findings.iter().filter(|located| located.finding.is_advice()).count();
    match outcome.findings.len() - advice {
        0 => {}
        broken => text.push_str(&format!("\n{broken} finding(s)\n")),
    }
    if advice > 0 {
        let end = if strict { ", which --strict counts" } else { "; no rule is broken" };
        text.push_str(&format!("\n{advice} advice finding(s){end}\n"));
    }
    text.push_str(&outcome.silenced.to_string());
    text
}

/// Whether a finding reports the fault at a place. Advice reports no fault.
fn tells(finding: &Finding, fault: &Place) -> bool {
    !finding.is_advice() && finding.place.as_ref().is_some_and(|place| is_same_place(place, fault))
}

/// Whether two places are the same instruction. Addresses differ from device to device; offsets in a kernel do not.
fn is_same_place(one: &Place, other: &Place) -> bool {
    match (&one.kernel, one.offset) {
        (Some(_), Some(_)) => (&one.kernel, one.offset) == (&other.kernel, other.offset),
        _ => one.pc == other.pc,
    }
}

fn profile_text(profile: &Profile, prediction: Option<KernelPrediction>) -> String {
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
    let (left, right) = (Alignment::Left, Alignment::Right);
    let columns = |first, last| {
        let traffic = [("sectors", right), ("LDS passes", right), ("conflicts", right)];
        Table::new(
            &[&[(first, left), ("count", right), ("lanes", right)], &traffic[..], &[(last, left)]].concat(),
        )
    };
    let mut places = columns("place", "instruction");
    for counts in profile.places.iter().take(PLACES_SHOWN) {
        let place = counts.place.as_ref().map(Place::to_string).unwrap_or_default();
        let each = |total: Option<u64>| total.map_or_else(String::new, |total| mean(total, counts.count));
        // A bar would end the cell.
        let text = counts.instruction.replace('|', "\\|");
        places.row(vec![
            place,
            counts.count.to_string(),
            mean(counts.lanes, counts.count),
            each(counts.sectors),
            each(counts.lds_passes),
            each(counts.lds_conflicts),
            text,
        ]);
    }
    let lines = profile.lines();
    let mut sources = columns("line", "text");
    for line in lines.iter().take(PLACES_SHOWN) {
        let (file, number) = &line.source;
        let text = line.source_text.as_deref().unwrap_or_default().replace('|', "\\|");
        sources.row(vec![
            format!("{file}:{number}"),
            line.count.to_string(),
            mean(line.lanes, line.count),
            line.memory.map_or_else(String::new, |memory| mean(memory.sectors, memory.instructions)),
            line.lds.map_or_else(String::new, |lds| mean(lds.passes, lds.instructions)),
            line.lds.map_or_else(String::new, |lds| mean(lds.conflicts, lds.instructions)),
            text,
        ]);
    }
    let sources = if lines.is_empty() { String::new() } else { format!("\n{sources}") };
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
    let conflicts = profile.lds.cycles.saturating_sub(profile.lds.cycles_without_conflict);
    format!(
        "\n{counts}\n{places}{sources}\n{memory}\nLDS: {} accesses, {conflicts} conflict cycles of {}\n{}",
        profile.lds.accesses,
        profile.lds.cycles,
        prediction.as_ref().map_or_else(String::new, prediction_text),
    )
}

fn prediction_text(prediction: &KernelPrediction) -> String {
    let bounds = &prediction.bounds;
    format!(
        "\npredicted for an R9700, not measured: {:.3} .. {:.3} us, likeliest {:.3} us, bound by {}\n\
         issue {:.3}, lines {:.3}, LDS {:.3}, latency {:.3}, GL2 {:.3}, bandwidth {:.3} us; {:.1} waves of a SIMD, \
         {:.0} bytes in flight of a compute unit\n{FORMULA}\n",
        prediction.predicted_us_low,
        prediction.predicted_us_high,
        prediction.predicted_us,
        prediction.bound.name(),
        bounds.issue_us,
        bounds.lines_us,
        bounds.lds_us,
        bounds.latency_us,
        bounds.gl2_us,
        bounds.bandwidth_us,
        prediction.waves_per_simd,
        prediction.bytes_in_flight,
    )
}

/// The average per wave instruction.
fn mean(total: u64, count: u64) -> String {
    format!("{:.1}", total as f64 / count.max(1) as f64)
}

#[cfg(test)]
mod tests;
