//! Findings that are known: suppression files and baselines, for `zrt lint` and `zrt launch --check` alike.
//!
//! Contract: a suppression names a rule, a function and a place, and says why; one that covers nothing is reported. A
//! baseline is what was found at some time: the same findings again are silent, new ones are not. What is not a rule
//! that a line could name, such as `dropped`, is reported in any case. Both are text, read within named limits; an
//! error names file and line, and no baseline is written that could not be read. Cost: each finding is compared with
//! every suppression.

mod baseline;
mod rules;

use crate::bounded_read::{self, ReadError};
use crate::commands::launch::outputs::{self, OutputFile};
use crate::error::ToolError;
use baseline::Baseline;
use clap::Args;
use rules::Suppressions;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use zrt_device::Place;

/// Longest suppression file or baseline, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of entries of a file.
const ENTRIES_MAX: usize = 4096;

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

/// What identifies a finding.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// The kernel or function; empty outside of them.
    pub function: &'a str,
    /// Bytes from its first instruction.
    pub offset: Option<u64>,
    /// The instruction's text.
    pub instruction: &'a str,
    /// File and line.
    pub source: Option<(&'a str, u32)>,
}

impl<'a> Subject<'a> {
    /// The subject of a finding of the checking mode.
    pub fn of(finding: &'a zrt_bringup::Finding) -> Subject<'a> {
        let place = finding.place.as_ref();
        let source = place.and_then(|place: &Place| place.source.as_ref());
        Subject {
            rule: &finding.rule,
            function: place.and_then(|place| place.kernel.as_deref()).unwrap_or_default(),
            offset: place.and_then(|place| place.offset),
            instruction: &finding.instruction,
            source: source.map(|(file, line)| (file.as_str(), *line)),
        }
    }
}

/// A suppression that covered no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unused {
    /// The suppression file.
    pub file: String,
    /// Its line.
    pub line: usize,
    /// Its text.
    pub text: String,
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

/// Why a suppression file or baseline cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SilenceError {
    /// The system could not read it.
    #[error("{file} cannot be read: {why}; check the path and its permissions")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        why: String,
    },
    /// It is too long.
    #[error("{file} has more than the {FILE_BYTES_MAX} bytes that are read; leave out what is not needed")]
    Size {
        /// The file.
        file: String,
    },
    /// A line is not understood.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The findings do not fit into a baseline.
    #[error(
        "the findings do not make a baseline that can be read, {why}; silence some of them with --suppress, where one \
         pattern covers many, or check fewer kernels at a time"
    )]
    Baseline {
        /// What its reader would say.
        why: String,
    },
}

impl From<SilenceError> for ToolError {
    fn from(error: SilenceError) -> ToolError {
        ToolError::BadInput { what: error.to_string() }
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

fn read(path: &Path) -> Result<Vec<u8>, SilenceError> {
    let file = path.display().to_string();
    bounded_read::read(path, FILE_BYTES_MAX).map_err(|error| match error {
        ReadError::System(error) => SilenceError::Read { file, why: error.to_string() },
        ReadError::TooLong => SilenceError::Size { file },
    })
}

/// The lines of a file that say something, with their numbers: no empty ones and none that begin with `#`.
fn lines<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, SilenceError> {
    let mut lines = Vec::new();
    for (index, bytes) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |what: String| SilenceError::Line { file: file.to_owned(), line: index + 1, what };
        if bytes.len() > LINE_BYTES_MAX {
            let what = format!("it has more than {LINE_BYTES_MAX} bytes: shorten it");
            return Err(wrong(what));
        }
        let text =
            std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8: save it as UTF-8".into()))?;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if lines.len() == ENTRIES_MAX {
            let what = format!("there are more than {ENTRIES_MAX} entries: use patterns, or several files");
            return Err(wrong(what));
        }
        lines.push((index + 1, text));
    }
    Ok(lines)
}

/// A rule's name, one of the lint or of the checking mode.
fn rule(name: &str) -> Option<&'static str> {
    let lint = zrt_isa::lint::Rule::ALL.map(zrt_isa::lint::Rule::name);
    let checking = zrt_vgpu::check::Rule::ALL.iter().map(|rule| rule.name());
    lint.into_iter().chain(checking).find(|known| *known == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
