//! One run of tests and what it says.

use crate::process::{self, Ended, Limits};
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Longest that one command may take; a mutant that hangs is noticed by that.
const COMMAND_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Names of failed tests that are reported.
const NAMES_MAX: usize = 3;

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// These tests failed, or the binary ended without saying which.
    Killed(Vec<String>),
    /// The tests did not end in time.
    TimedOut,
    /// `cargo xtask asm` refuses the source.
    Refused,
    /// Every test passed.
    Survived,
    /// Those that ran passed; this one lacked what it needs, as it says.
    Skipped(String),
    /// It is not a valid mutant.
    DoesNotCompile,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub outcome: Outcome,
    /// Tests that ran.
    pub tests: u32,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Killed(names) if names.is_empty() => {
                write!(formatter, "killed: the tests did not end well")
            }
            Outcome::Killed(names) => {
                write!(formatter, "killed by {}", names[..names.len().min(NAMES_MAX)].join(", "))?;
                match names.len() {
                    ..=NAMES_MAX => Ok(()),
                    count => write!(formatter, " and {} more", count - NAMES_MAX),
                }
            }
            Outcome::TimedOut => write!(formatter, "killed: no end within {} s", COMMAND_LIMIT.as_secs()),
            Outcome::Refused => write!(formatter, "killed: the assembler's rules refuse it"),
            Outcome::Survived => write!(formatter, "survived"),
            Outcome::Skipped(case) => write!(formatter, "not held against all its tests: skipped: {case}"),
            Outcome::DoesNotCompile => write!(formatter, "does not compile"),
        }
    }
}

/// Reads what the test harness printed.
pub fn read(printed: &str, passed: bool) -> Run {
    let failed: Vec<String> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned))
        .collect();
    let numbers = |line: &str, word: &str| -> u32 {
        let before = line.split(word).next().unwrap_or("").trim_end();
        before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let results = printed.lines().filter(|line| line.starts_with("test result:"));
    let tests = results.map(|line| numbers(line, " passed") + numbers(line, " failed")).sum();
    let skipped = printed.lines().find_map(|line| line.strip_prefix("skipped: "));
    let outcome = match (passed, skipped) {
        (false, _) => Outcome::Killed(failed),
        (true, Some(case)) => Outcome::Skipped(case.to_owned()),
        (true, None) => Outcome::Survived,
    };
    Run { outcome, tests }
}

/// Runs `command` with its output in `output`. `None` if it did not end in time; it is killed then, with everything
/// that it has started.
pub fn run(command: &mut Command, output: &Path) -> Result<Option<ExitStatus>, Box<dyn Error>> {
    let file = File::create(output)?;
    let limits = Limits { time: COMMAND_LIMIT, memory_bytes: u64::MAX };
    match process::wait_group(command.stdout(file.try_clone()?).stderr(file), limits)? {
        Ended::Itself(status) => Ok(Some(status)),
        Ended::TookTooLong(_) | Ended::TookTooMuch(_) => Ok(None),
    }
}

/// What a command printed.
pub fn printed(output: &Path) -> Result<String, Box<dyn Error>> {
    Ok(String::from_utf8_lossy(&fs::read(output)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "running 3 tests\n\
        test one ... ok\n\
        test a::two ... FAILED\n\
        test three - should panic ... FAILED\n\
        test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s\n\
        test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

    #[test]
    fn failed_tests_are_named_and_all_are_counted() {
        let names = vec!["a::two".to_owned(), "three - should panic".to_owned()];
        assert_eq!(read(PRINTED, false), Run { outcome: Outcome::Killed(names), tests: 7 });
        assert_eq!(read("", true), Run { outcome: Outcome::Survived, tests: 0 });
        let skipped = format!("{PRINTED}skipped: two: no model\n");
        assert_eq!(read(&skipped, true).outcome, Outcome::Skipped("two: no model".to_owned()));
        assert!(matches!(read(&skipped, false).outcome, Outcome::Killed(_)));
    }

    #[test]
    fn each_outcome_is_said_and_of_many_failed_tests_three_are_named() {
        let killed = |names: &[&str]| Outcome::Killed(names.iter().map(|name| (*name).to_owned()).collect());
        for (outcome, said) in [
            (killed(&[]), "killed: the tests did not end well"),
            (killed(&["a"]), "killed by a"),
            (killed(&["a", "b", "c"]), "killed by a, b, c"),
            (killed(&["a", "b", "c", "d", "e"]), "killed by a, b, c and 2 more"),
            (Outcome::TimedOut, "killed: no end within 900 s"),
            (Outcome::Refused, "killed: the assembler's rules refuse it"),
            (Outcome::Survived, "survived"),
            (
                Outcome::Skipped("two: no model".to_owned()),
                "not held against all its tests: skipped: two: no model",
            ),
            (Outcome::DoesNotCompile, "does not compile"),
        ] {
            assert_eq!(outcome.to_string(), said);
        }
    }
}
