//! What was found about a machine, and what to do about it.
//!
//! Contract: plain values.

use serde::Serialize;

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

impl Finding {
    pub(super) fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Ok, remedy: None }
    }

    pub(super) fn warn(
        subject: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Warn, remedy: Some(remedy.into()) }
    }

    pub(super) fn bad(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Bad, remedy: Some(remedy.into()) }
    }
}
