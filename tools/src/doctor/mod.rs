//! `zrt doctor`: what this machine has for running models, and how to get what is missing.
//!
//! Contract: reads files and opens devices through [`Syscalls`], so that tests can simulate a machine; changes nothing,
//! allocates no device memory, and never fails: what cannot be read is itself a finding.

mod card;
mod firmware;
mod host;
pub mod isa;
mod kernel;
mod record;
mod sharing;

pub use host::processor_name;

use serde::Serialize;
use std::fmt;
use zrt_kmd::Syscalls;

/// What a finding means for running on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Works, but not as well as it could, or with a known risk; or cannot be determined.
    Warn,
    /// The card cannot be used until this is fixed.
    Bad,
}

/// One thing that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was examined.
    pub subject: &'static str,
    /// What was found.
    pub found: String,
    /// What it means.
    pub verdict: Verdict,
    /// What to do about it, if something should be done.
    pub remedy: Option<String>,
}

/// Everything that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of examination.
    pub findings: Vec<Finding>,
    /// True if nothing is bad.
    pub card_is_usable: bool,
}

impl Finding {
    fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Ok, remedy: None }
    }

    fn warn(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Warn, remedy: Some(remedy.into()) }
    }

    fn bad(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Bad, remedy: Some(remedy.into()) }
    }
}

/// Examines the machine.
pub fn examine(syscalls: &dyn Syscalls) -> Report {
    let mut findings = host::examine(syscalls);
    findings.extend(card::examine(syscalls));
    let card_is_usable = findings.iter().all(|finding| finding.verdict != Verdict::Bad);
    Report { findings, card_is_usable }
}

/// The trimmed text of a small file; `None` if it cannot be read.
fn read_text(syscalls: &dyn Syscalls, path: &str) -> Option<String> {
    let bytes = syscalls.read_file(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
        for finding in &self.findings {
            let mark = match finding.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Bad => "BAD",
            };
            writeln!(formatter, "{mark:<6}{:<width$}  {}", finding.subject, finding.found)?;
            if let Some(remedy) = &finding.remedy {
                writeln!(formatter, "{:<6}{:<width$}  -> {remedy}", "", "")?;
            }
        }
        writeln!(formatter)?;
        if self.card_is_usable {
            writeln!(formatter, "The card can be used: `--device auto` takes it if it passes its self-test.")
        } else {
            writeln!(formatter, "The card cannot be used here yet; the virtual device and the CPU can.")
        }
    }
}

#[cfg(test)]
mod tests;
