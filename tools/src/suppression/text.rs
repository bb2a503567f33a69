//! Suppression files and baselines as text: limits, lines, and what is wrong with them.
//!
//! Contract: read within named limits; an error names file and line.

use crate::bounded_read::{self, ReadError};
use crate::error::ToolError;
use std::path::Path;
use thiserror::Error;

/// Longest suppression file or baseline, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 4096;
/// Maximum number of entries of a file.
pub(super) const ENTRIES_MAX: usize = 4096;

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

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SilenceError> {
    let file = path.display().to_string();
    bounded_read::read(path, FILE_BYTES_MAX).map_err(|error| match error {
        ReadError::System(error) => SilenceError::Read { file, why: error.to_string() },
        ReadError::TooLong => SilenceError::Size { file },
    })
}

/// The lines of a file that say something, with their numbers: no empty ones and none that begin with `#`.
pub(super) fn lines<'a>(file: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, SilenceError> {
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
