//! The self-test: does this device do what its packets say?
//!
//! Contract: the cases are in the order of a first boot (`order`): each adds one thing, its suspect, to what the cases
//! before it have shown to work, and its report names it. A queue is in order, so after a wait that ended at its
//! deadline everything else would wait too: the run stops there, and the rest is reported as not run. [`Extent::Short`]
//! is what every open does (a few milliseconds): a selection in the same order, which stops at the first failure.
//! [`Extent::Full`] is `zrt pm4-test`. Expected values are computed here, never by the device. Every wait has a
//! deadline, so a dead device fails one case and not the caller. Nothing is left allocated. No case has run on a card.

mod bench;
mod dispatch_cases;
mod first_dispatch_cases;
mod indirect_cases;
pub(crate) mod kernels;
mod order;
mod packet_cases;
mod queue_cases;
#[cfg(test)]
mod tests;

pub use bench::Timing;

use crate::error::OpenError;
use bench::{Bench, CASE_DEADLINE, Failure};
use order::{CASES, Case, Needs, Verdict};
use std::time::{Duration, Instant};
use zrt_device::Device;

/// How much to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What a device must pass to be opened.
    Short,
    /// Everything.
    Full,
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed; what was observed.
    Passed(String),
    /// The device does not do what it should; what was observed.
    Failed(String),
    /// Worth knowing about this machine, but nothing that runs needs it; what was observed.
    Noted(String),
    /// This machine, or the way it was opened, lacks what the case is about; why.
    Skipped(&'static str),
    /// An earlier case stopped the run.
    NotRun,
}

/// One case's outcome.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// The case.
    pub case: &'static str,
    /// What is new in it compared with the cases before: where to look when it is the first that failed.
    pub suspect: &'static str,
    /// Its outcome.
    pub outcome: Outcome,
    /// How long the case took.
    pub duration: Duration,
    /// What was measured, if a time means something.
    pub timings: Vec<Timing>,
}

impl Outcome {
    /// What was observed instead of what should be, if the device failed the case.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Outcome::Failed(observed) => Some(observed),
            _ => None,
        }
    }

    /// A word for a report: `passed`, `failed`, `noted`, `skipped` or `not run`.
    pub const fn word(&self) -> &'static str {
        match self {
            Outcome::Passed(_) => "passed",
            Outcome::Failed(_) => "failed",
            Outcome::Noted(_) => "noted",
            Outcome::Skipped(_) => "skipped",
            Outcome::NotRun => "not run",
        }
    }

    /// What was observed, or why nothing was.
    pub fn text(&self) -> &str {
        match self {
            Outcome::Passed(observed) | Outcome::Failed(observed) | Outcome::Noted(observed) => observed,
            Outcome::Skipped(reason) => reason,
            Outcome::NotRun => "a case before it stopped the run",
        }
    }
}

/// Runs the cases in order, and stops after the first whose wait ended at its deadline, or when the device is lost; the
/// short extent stops after any failure. There is a report for every case of the extent.
pub fn run(device: &mut Device, extent: Extent) -> Vec<CaseReport> {
    run_each(device, extent, &mut |_| {})
}

/// The same, but passes on each report as soon as there is one: a case may bring down the machine.
pub fn run_each(device: &mut Device, extent: Extent, tell: &mut dyn FnMut(&CaseReport)) -> Vec<CaseReport> {
    run_within(device, extent, CASE_DEADLINE, tell)
}

/// The same with another deadline for every wait.
pub(crate) fn run_within(
    device: &mut Device,
    extent: Extent,
    deadline: Duration,
    tell: &mut dyn FnMut(&CaseReport),
) -> Vec<CaseReport> {
    let mut reports = Vec::new();
    let mut is_stopped = false;
    for case in cases(extent) {
        let start = Instant::now();
        let mut timings = Vec::new();
        let outcome = if is_stopped {
            Outcome::NotRun
        } else if let Some(reason) = case.needs.lacking(device) {
            Outcome::Skipped(reason)
        } else {
            let ended =
                Bench::new(device, &mut timings, deadline).and_then(|mut bench| (case.test)(&mut bench));
            is_stopped = device.is_lost() || matches!(ended, Err(Failure { is_stop: true, .. }));
            case.judge(ended)
        };
        is_stopped |= extent == Extent::Short && outcome.failure().is_some();
        let (name, suspect) = (case.name, case.suspect);
        let report = CaseReport { case: name, suspect, outcome, duration: start.elapsed(), timings };
        tell(&report);
        reports.push(report);
    }
    reports
}

impl Case {
    fn judge(&self, ended: Result<String, Failure>) -> Outcome {
        match (ended, self.verdict) {
            (Ok(observed), _) => Outcome::Passed(observed),
            (Err(Failure { text, is_stop: false }), Verdict::Noted) => Outcome::Noted(text),
            (Err(Failure { text, .. }), _) => Outcome::Failed(text),
        }
    }
}

impl Needs {
    /// Why a device lacks what a case needs.
    fn lacking(self, device: &Device) -> Option<&'static str> {
        match self {
            Needs::Vram | Needs::VisibleVram if device.info().gtt_only => {
                Some("the device was opened with everything in system memory")
            }
            Needs::VisibleVram if !device.has_visible_vram() => {
                Some("the host sees no VRAM: a small BAR, or no page to flush writes through it")
            }
            _ => None,
        }
    }
}

/// The error of a device that failed a case.
pub(crate) fn refusal(device: &Device, reports: &[CaseReport]) -> Option<OpenError> {
    reports.iter().find_map(|report| {
        let observed = report.outcome.failure()?.to_owned();
        let (device, case, suspect) = (device.name().into(), report.case, report.suspect);
        Some(OpenError::SelfTest { device, case, suspect, observed })
    })
}

fn cases(extent: Extent) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| extent == Extent::Full || case.at_open)
}

/// Cases of an extent.
pub fn case_count(extent: Extent) -> usize {
    cases(extent).count()
}
