//! A sequence, and what becomes of the buffers that are read back: files, comparisons, expectations.
//!
//! Contract: what `zrt launch`, `zrt run` and `zrt step` do is one of these. A [`Task`] can be carried out any number
//! of times. Bytes of a read are kept only if a file or the comparison of schedules needs them.

use super::expect::Expectation;
use super::outputs::{self, OutputFile};
use crate::error::ToolError;
use crate::launch::{LaunchError, Report, Seen, Sequence};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What is done, and why its buffers are read.
pub(in crate::commands) struct Task<'a> {
    /// What the device does.
    pub sequence: Sequence<'a>,
    /// What it is to the user.
    pub subject: Subject,
    /// Why buffers are read.
    pub purposes: Vec<Purpose>,
    /// The files that are written, and their headers.
    pub files: Vec<(OutputFile, Vec<u8>)>,
    /// The path of the code, to find source files.
    pub code: PathBuf,
    /// True if the assumptions of a single compiler are accepted.
    pub trusts_compilers: bool,
}

/// What a task is to its user.
pub(in crate::commands) enum Subject {
    /// A launch of the kernel with that name.
    Launch(String),
    /// A script: its name, and for each action the step that it comes from.
    Script(String, Vec<Option<Origin>>),
}

/// A step of a script, in a turn of its loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct Origin {
    /// Its number from 1, after those of the loops that it is in: `2.1`.
    pub step: String,
    /// The line that it begins on.
    pub line: usize,
    /// The turn of each loop from 0, the outermost first.
    pub turns: Vec<u64>,
}

/// Why a buffer is read.
pub(in crate::commands) struct Purpose {
    /// The action that reads it.
    pub action: usize,
    /// The buffer.
    pub of: Of,
    /// Index of the file that it is written to.
    pub file: Option<usize>,
    /// True if it must be the same in every schedule, or a difference is reported.
    pub is_compared: bool,
    /// What it must hold, and what that is called.
    pub expectation: Option<(String, Arc<Expectation>)>,
}

/// A buffer as its user knows it.
#[derive(Clone)]
pub(in crate::commands) enum Of {
    /// That of an argument.
    Argument(usize),
    /// One of a script, and the step that reads it; at the end without one.
    Buffer(String, Option<Origin>),
}

/// What one schedule left.
#[derive(Default)]
pub(in crate::commands) struct Left {
    /// Bytes that were read, by action.
    bytes: BTreeMap<usize, Vec<u8>>,
    /// A line for each buffer that does not hold what is expected, and for text that is incomplete.
    pub unexpected: Vec<String>,
}

impl Task<'_> {
    /// Carries the task out with `run`, which gets the sequence and a function for what is seen of it. `print` gets
    /// text as it is printed.
    pub fn carry_out(
        &self,
        mut print: impl FnMut(&[u8]),
        run: impl FnOnce(&Sequence<'_>, &mut dyn FnMut(Seen<'_>)) -> Result<Report, LaunchError>,
    ) -> (Result<Report, LaunchError>, Left) {
        let mut left = Left::default();
        let result = run(&self.sequence, &mut |seen| {
            let (action, bytes) = match seen {
                Seen::Read { action, bytes } => (action, bytes),
                Seen::Printed(text) => return print(text),
            };
            let purposes = || self.purposes.iter().filter(|purpose| purpose.action == action);
            for purpose in purposes() {
                let Some((name, expectation)) = &purpose.expectation else { continue };
                if let Some(difference) = expectation.compare(&bytes) {
                    left.unexpected.push(format!("{} is not {name}: {difference}", purpose.of));
                }
            }
            if purposes().any(|purpose| purpose.file.is_some() || purpose.is_compared) {
                left.bytes.insert(action, bytes);
            }
        });
        if let Ok(Report { unprinted: Some(error), .. }) = &result {
            left.unexpected.push(format!("what the kernels printed is not whole: {error}"));
        }
        (result, left)
    }

    /// Whether two schedules left the same in the buffers that are compared.
    pub fn is_same(&self, one: &Left, other: &Left) -> bool {
        let mut compared = self.purposes.iter().filter(|purpose| purpose.is_compared);
        compared.all(|purpose| one.bytes.get(&purpose.action) == other.bytes.get(&purpose.action))
    }

    /// The bytes for each purpose that has a file and bytes.
    pub fn written<'t>(
        &'t self,
        left: &'t Left,
    ) -> impl Iterator<Item = (&'t Purpose, &'t OutputFile, &'t [u8])> {
        self.purposes.iter().filter_map(|purpose| {
            let (file, _) = self.files.get(purpose.file?)?;
            Some((purpose, file, left.bytes.get(&purpose.action)?.as_slice()))
        })
    }

    /// Writes the files.
    pub fn write_files(&self, left: &Left) -> Result<(), ToolError> {
        let parts = self.files.iter().enumerate().map(|(index, (file, header))| {
            let purpose = self.purposes.iter().find(|purpose| purpose.file == Some(index));
            let bytes = purpose.and_then(|purpose| left.bytes.get(&purpose.action));
            (file, [header.as_slice(), bytes.map_or(&[][..], Vec::as_slice)])
        });
        outputs::write(&parts.collect::<Vec<_>>())
    }
}

impl Subject {
    /// The step of an action, in a script.
    pub fn origin(&self, action: Option<usize>) -> Option<&Origin> {
        match self {
            Subject::Launch(_) => None,
            Subject::Script(_, origins) => origins.get(action?)?.as_ref(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "step {}", self.step)?;
        for (index, turn) in self.turns.iter().enumerate() {
            write!(out, "{}{turn}", if index == 0 { " turn " } else { "," })?;
        }
        write!(out, " (line {})", self.line)
    }
}

impl fmt::Display for Of {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Of::Argument(number) => write!(out, "argument {number}"),
            Of::Buffer(name, None) => write!(out, "buffer {name}"),
            Of::Buffer(name, Some(origin)) => write!(out, "{origin}: buffer {name}"),
        }
    }
}
