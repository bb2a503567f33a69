//! Findings that are known: suppression files and baselines, for `zrt lint` and `zrt launch --check` alike.
//!
//! Contract: a suppression names a rule, a function and a place, and says why; one that covers nothing is reported. A
//! baseline is what was found at some time: the same findings again are silent, new ones are not. What is not a rule
//! that a line could name, such as `dropped`, is reported in any case. Both are text, read within named limits; an
//! error names file and line, and no baseline is written that could not be read. Cost: each finding is compared with
//! every suppression.

mod baseline;
mod rules;
mod subject;
mod text;

pub use rules::Unused;
pub use subject::Subject;
pub use text::SilenceError;

use crate::commands::launch::outputs::{self, OutputFile};
use crate::error::ToolError;
use baseline::Baseline;
use clap::Args;
use rules::Suppressions;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use text::read;

/// What is to be silent.
#[derive(Clone, Debug, Default, Args)]
pub struct SilenceOptions {
    /// Silence the findings that a file lists, in lines of RULE FUNCTION PLACE -- REASON (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// Silence the findings that a baseline file records
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    pub baseline: Option<PathBuf>,
    /// Write the findings to a baseline file, and do not fail for them
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
}

/// The counts of known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Silenced {
    /// Findings that suppressions cover.
    pub suppressed: u64,
    /// Findings that the baseline has, or that were written to one.
    pub in_baseline: u64,
    /// Findings of the baseline that no longer occur.
    pub gone_from_baseline: u64,
    /// Suppressions that cover nothing.
    pub unused_suppressions: Vec<Unused>,
}

impl fmt::Display for Silenced {
    /// Lines, each with its line end; nothing if there is nothing to say.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.suppressed > 0 {
            writeln!(formatter, "{} suppressed", self.suppressed)?;
        }
        if self.in_baseline > 0 {
            writeln!(formatter, "{} in the baseline", self.in_baseline)?;
        }
        if self.gone_from_baseline > 0 {
            let gone = self.gone_from_baseline;
            writeln!(formatter, "{gone} of the baseline gone: write it again with --write-baseline")?;
        }
        for Unused { file, line, text } in &self.unused_suppressions {
            writeln!(formatter, "{file}:{line}: this suppression covers nothing, remove it: {text}")?;
        }
        Ok(())
    }
}

/// Decides which findings are silent.
#[derive(Debug, Default)]
pub struct Filter {
    suppressions: Vec<Suppressions>,
    baseline: Option<Baseline>,
    /// The baseline that is made, and where it goes.
    made: Option<(Baseline, Vec<OutputFile>)>,
    suppressed: u64,
    in_baseline: u64,
}

impl SilenceOptions {
    /// Whether any option is given.
    pub fn is_given(&self) -> bool {
        !self.suppress.is_empty() || self.baseline.is_some() || self.write_baseline.is_some()
    }

    /// Reads the files, and checks the one that will be written.
    pub fn open(&self) -> Result<Filter, ToolError> {
        let mut filter = Filter::default();
        for path in &self.suppress {
            let name = path.display().to_string();
            filter.suppressions.push(Suppressions::parse(&name, &read(path)?)?);
        }
        if let Some(path) = &self.baseline {
            filter.baseline = Some(Baseline::parse(&path.display().to_string(), &read(path)?)?);
        }
        if let Some(path) = &self.write_baseline {
            let files = outputs::plan(std::iter::once(path.as_path()))?;
            filter.made = Some((Baseline::default(), files));
        }
        Ok(filter)
    }
}

impl Filter {
    /// Whether a finding is to be reported. Call it once for each finding.
    pub fn keeps(&mut self, subject: &Subject<'_>) -> bool {
        let mut is_covered = false;
        // Every one that covers it is used.
        for suppressions in &mut self.suppressions {
            is_covered |= suppressions.covers(subject);
        }
        if is_covered {
            self.suppressed += 1;
            return false;
        }
        if let Some((made, _)) = &mut self.made {
            let is_taken = made.add(subject);
            self.in_baseline += u64::from(is_taken);
            return !is_taken;
        }
        let is_known = self.baseline.as_mut().is_some_and(|baseline| baseline.take(subject));
        self.in_baseline += u64::from(is_known);
        !is_known
    }

    /// Writes the baseline if one is made; returns the counts.
    pub fn finish(self) -> Result<Silenced, ToolError> {
        if let Some((made, files)) = &self.made {
            let text = made.to_text()?;
            let contents: Vec<_> = files.iter().map(|file| (file, [text.as_bytes(), &b""[..]])).collect();
            outputs::write(&contents)?;
        }
        Ok(Silenced {
            suppressed: self.suppressed,
            in_baseline: self.in_baseline,
            gone_from_baseline: self.baseline.as_ref().map_or(0, Baseline::left),
            unused_suppressions: self.suppressions.iter().flat_map(Suppressions::unused).collect(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
