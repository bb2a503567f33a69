//! Errors, as the JSON documents report them.
//!
//! Contract: the message is the sentence of standard error; `docs/launch.schema.json` defines the form. With `--json`
//! standard output is one document whatever happens, even if the command line is not understood.

use crate::error::{ToolError, sentence};
use crate::launch::{LaunchError, Unfinished};
use serde::Serialize;
use zrt_device::{Place, Waves};

/// The `error` of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    kind: &'static str,
    message: String,
    exit_code: u8,
    fault: Option<FaultReport>,
    /// Where the virtual device's waves were; null if nothing is known about any.
    waves: Option<Waves>,
}

/// A document that has an error, what a kernel printed before it, and nothing else.
#[derive(Debug, Serialize)]
pub(super) struct ErrorDocument {
    pub error: ErrorReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
}

/// Where the virtual device stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FaultReport {
    what: String,
    place: Place,
    instruction: String,
    workgroup: [u32; 3],
    wave: u32,
    lane: Option<u32>,
    address: Option<u64>,
    remark: Option<String>,
}

impl ErrorReport {
    /// The report of a command that ended with an error.
    pub fn of(error: &ToolError) -> ErrorReport {
        let report = ErrorReport::new(error.exit_code(), sentence(error));
        match error.untold() {
            ToolError::Launch(LaunchError::Device { source, waves, .. }) => report.with(source, waves),
            _ => report,
        }
    }

    /// The error's sentence.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The report of a schedule that did not end, described by `message`.
    pub(super) fn of_schedule(message: String, unfinished: &Unfinished, waves: &Waves) -> ErrorReport {
        ErrorReport::new(1, message).with(unfinished, waves)
    }

    /// The report of a command line that is not understood: the first paragraph of the complaint.
    pub(super) fn of_command_line(complaint: &str) -> ErrorReport {
        let lines: Vec<&str> = complaint.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let text = lines.join(" ");
        ErrorReport::new(2, text.strip_prefix("error: ").unwrap_or(&text).to_owned())
    }

    fn new(exit_code: u8, message: String) -> ErrorReport {
        let kind = if exit_code == 2 { "input" } else { "failure" };
        ErrorReport { kind, message, exit_code, fault: None, waves: None }
    }

    /// The same for a kernel that did not end.
    fn with(self, unfinished: &Unfinished, waves: &Waves) -> ErrorReport {
        let waves = Some(waves.clone()).filter(|waves| !waves.is_empty());
        ErrorReport { fault: FaultReport::of(unfinished), waves, ..self }
    }
}

impl FaultReport {
    fn of(unfinished: &Unfinished) -> Option<FaultReport> {
        let fault = unfinished.fault()?;
        let wave = fault.fault.wave.clone()?;
        Some(FaultReport {
            what: fault.fault.what.clone(),
            place: wave.place,
            instruction: wave.instruction,
            workgroup: wave.workgroup,
            wave: wave.wave,
            lane: wave.lane,
            address: fault.fault.address,
            remark: fault.remark.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_of_several_lines_is_one_sentence() {
        let complaint = "error: these were not provided:\n  --grid <X,Y,Z>\n  <FILE>\n\nUsage: zrt launch\n";
        let report = ErrorReport::of_command_line(complaint);
        assert_eq!(report.message, "these were not provided: --grid <X,Y,Z> <FILE>");
        assert_eq!((report.kind, report.exit_code), ("input", 2));
    }

    /// The place of a fault, and waves if any are known; nothing of both for other errors.
    #[test]
    fn a_fault_is_told_with_its_place() {
        let place =
            Place { pc: 8, kernel: Some("k".to_owned()), offset: Some(4), source: None, source_text: None };
        let wave = zrt_bringup::FaultedWave {
            place: place.clone(),
            instruction: "s_trap 2".to_owned(),
            workgroup: [1, 2, 3],
            wave: 5,
            lane: Some(6),
            launched_at: None,
        };
        let fault = zrt_bringup::DeviceFault {
            what: "it stopped".to_owned(),
            address: Some(7),
            wave: Some(wave),
            place: String::new(),
            is_final: true,
        };
        let unfinished = |fault| {
            Unfinished::Fault(Box::new(crate::launch::KernelFault { fault, remark: Some("why".to_owned()) }))
        };
        let waves = Waves { more_waves: 2, ..Waves::default() };
        let report = ErrorReport::of_schedule("it failed".to_owned(), &unfinished(fault.clone()), &waves);
        let expected = FaultReport {
            what: "it stopped".to_owned(),
            place,
            instruction: "s_trap 2".to_owned(),
            workgroup: [1, 2, 3],
            wave: 5,
            lane: Some(6),
            address: Some(7),
            remark: Some("why".to_owned()),
        };
        assert_eq!((report.fault.as_ref(), report.waves.as_ref()), (Some(&expected), Some(&waves)));
        assert_eq!((report.kind, report.exit_code, report.message()), ("failure", 1, "it failed"));
        let elsewhere = zrt_bringup::DeviceFault { wave: None, ..fault };
        let report = ErrorReport::of_schedule(String::new(), &unfinished(elsewhere), &Waves::default());
        assert_eq!((report.fault, report.waves), (None, None));
        let bad = ErrorReport::of(&crate::error::bad("nonsense".to_owned()));
        assert_eq!((bad.kind, bad.exit_code, bad.message()), ("input", 2, "nonsense"));
    }
}
