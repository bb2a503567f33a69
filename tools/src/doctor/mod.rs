//! `zrt doctor`: what this machine has for running models, and how to get what is missing.
//!
//! Contract: reads files and opens devices through [`Syscalls`], so that tests can simulate a machine; changes nothing,
//! allocates no device memory, and never fails: what cannot be read is itself a finding.

mod card;
mod finding;
mod firmware;
mod host;
pub mod isa;
mod kernel;
mod record;
mod sharing;
mod small_file;

pub use finding::{Finding, Verdict};
pub use host::processor_name;

use serde::Serialize;
use std::fmt;
use zrt_kmd::Syscalls;

/// Everything that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of examination.
    pub findings: Vec<Finding>,
    /// True if nothing is bad.
    pub card_is_usable: bool,
}

/// Examines the machine.
pub fn examine(syscalls: &dyn Syscalls) -> Report {
    let mut findings = host::examine(syscalls);
    findings.extend(card::examine(syscalls));
    let card_is_usable = findings.iter().all(|finding| finding.verdict != Verdict::Bad);
    Report { findings, card_is_usable }
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
