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

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_device::Counters;
    use zrt_loader::print::{PrintError, Printed};

    fn origin(step: &str, turns: &[u64]) -> Origin {
        Origin { step: step.to_owned(), line: 7, turns: turns.to_vec() }
    }

    #[test]
    fn steps_and_buffers_are_called_as_their_user_knows_them() {
        assert_eq!(origin("2", &[]).to_string(), "step 2 (line 7)");
        assert_eq!(origin("2.1.3", &[4, 0]).to_string(), "step 2.1.3 turn 4,0 (line 7)");
        assert_eq!(Of::Argument(3).to_string(), "argument 3");
        assert_eq!(Of::Buffer("b".to_owned(), None).to_string(), "buffer b");
        let of = Of::Buffer("b".to_owned(), Some(origin("1", &[2])));
        assert_eq!(of.to_string(), "step 1 turn 2 (line 7): buffer b");
        let script = Subject::Script("s".to_owned(), vec![None, Some(origin("1", &[]))]);
        assert_eq!(script.origin(Some(1)), Some(&origin("1", &[])));
        assert_eq!([None, Some(0), Some(2)].map(|action| script.origin(action)), [None; 3]);
        assert_eq!(Subject::Launch("k".to_owned()).origin(Some(1)), None);
    }

    fn purpose(action: usize, file: Option<usize>, is_compared: bool) -> Purpose {
        Purpose { action, of: Of::Argument(action), file, is_compared, expectation: None }
    }

    /// A task with a buffer for a file, one that is compared, one that must be `[1]`, and one that nobody needs.
    fn task(folder: &std::path::Path) -> Task<'static> {
        let expected = Expectation { bytes: Arc::new(vec![1]), element: None, tolerance: None };
        let expectation = Some(("one".to_owned(), Arc::new(expected)));
        let files = outputs::plan([folder.join("file").as_path()].into_iter()).unwrap_or_else(|_| panic!());
        Task {
            sequence: Sequence {
                programs: Vec::new(),
                buffers: Vec::new(),
                actions: Vec::new(),
                deadline: std::time::Duration::ZERO,
                pauses: None,
                placement: None,
            },
            subject: Subject::Launch("k".to_owned()),
            purposes: vec![
                purpose(0, Some(0), false),
                purpose(1, None, true),
                Purpose { expectation, ..purpose(2, None, false) },
                purpose(3, None, false),
            ],
            files: files.into_iter().map(|file| (file, b"head ".to_vec())).collect(),
            code: PathBuf::new(),
            trusts_compilers: false,
        }
    }

    /// What a schedule left whose buffers had these bytes.
    fn left(task: &Task<'_>, bytes: [&[u8]; 4], unprinted: Option<PrintError>) -> (String, Left) {
        let mut text = Vec::new();
        let (result, left) = task.carry_out(
            |piece| text.extend_from_slice(piece),
            |_, observe| {
                observe(Seen::Printed(b"before "));
                for (action, bytes) in bytes.into_iter().enumerate() {
                    observe(Seen::Read { action, bytes: bytes.to_vec() });
                }
                observe(Seen::Printed(b"after"));
                Ok(Report {
                    device: String::new(),
                    is_virtual: true,
                    counters: Counters::default(),
                    findings: Vec::new(),
                    profile: None,
                    printed: Printed::default(),
                    unprinted,
                })
            },
        );
        assert!(result.is_ok());
        (String::from_utf8(text).unwrap(), left)
    }

    #[test]
    fn bytes_are_kept_for_files_and_comparisons_alone() {
        let folder = zrt_needs::TemporaryFolder::new("task");
        let task = task(&folder);
        let (text, first) = left(&task, [b"a", b"b", &[1], b"d"], None);
        assert_eq!((text.as_str(), first.unexpected.len()), ("before after", 0));
        assert_eq!(first.bytes.keys().collect::<Vec<_>>(), [&0, &1]);
        let written: Vec<_> =
            task.written(&first).map(|(purpose, _, bytes)| (purpose.action, bytes)).collect();
        assert_eq!(written, [(0, &b"a"[..])]);
        task.write_files(&first).unwrap();
        assert_eq!(std::fs::read(folder.join("file")).unwrap(), b"head a");
        let (_, second) = left(&task, [b"other", b"b", &[2], b"other"], None);
        assert_eq!(
            second.unexpected,
            ["argument 2 is not one: 1 of 1 differ, first [0]: 0x02 where 0x01 is expected"]
        );
        let (_, third) = left(&task, [b"a", b"other", &[1], b"d"], Some(PrintError::Full { bytes: 9 }));
        let told = "what the kernels printed is not whole: the kernel printed more than the 9 bytes that the printf \
                    buffer holds: print less, or of fewer work-items";
        assert_eq!(third.unexpected, [told]);
        assert_eq!((task.is_same(&first, &second), task.is_same(&first, &third)), (true, false));
    }
}
