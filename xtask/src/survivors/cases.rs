//! The cases of the tests, and which mutants each of them comes by.
//!
//! Contract: a case is run alone, in a process of its own with one thread, so that what the process comes by is what
//! the case comes by. A case that does not pass without a mutant, or not in time, is not used and is told.

use crate::mirror;
use crate::process::{self, Ended, Limits};
use crate::test::{self, TestBinary};
use crate::workers;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest that a test binary may take to list its cases.
const LIST_LIMIT: Duration = Duration::from_secs(60);
/// Longest that a case may take without a mutant. Longer ones are not used.
const CASE_LIMIT: Duration = Duration::from_secs(60);
/// Most memory that a test process may have.
const MEMORY_MAX_BYTES: u64 = 5 << 30;
/// Cases of no use that are named.
const NAMED_MAX: usize = 20;

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Index of its test binary.
    pub binary: usize,
    /// As the harness calls it.
    pub name: String,
    /// What it takes alone.
    pub time: Duration,
    /// Without a mutant. One that did not pass is of no use.
    pub verdict: Verdict,
    /// The mutants that it comes by.
    pub reached: Vec<u32>,
}

/// All cases of some test binaries.
pub struct Cases {
    pub binaries: Vec<TestBinary>,
    pub cases: Vec<Case>,
}

/// How a test process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    /// It did not end in time, or had too much memory.
    TookTooMuch,
}

/// What the switch of a test process does.
#[derive(Clone, Copy, Debug)]
pub enum Switch<'a> {
    /// No mutant is chosen.
    Off,
    /// This mutant is chosen.
    Chosen(u32),
    /// What the process comes by is appended to this file.
    Recorded(&'a Path),
}

impl Cases {
    /// Lists the cases and runs each once. `output` is a folder for what is recorded.
    pub fn record(binaries: Vec<TestBinary>, workers: usize, output: &Path) -> Result<Cases, Box<dyn Error>> {
        let mut found = Cases { binaries, cases: Vec::new() };
        let mut names = Vec::new();
        for (index, binary) in found.binaries.iter().enumerate() {
            names.extend(list(binary, output)?.into_iter().map(|name| (index, name)));
        }
        println!("== {} cases of {} test binaries, one at a time", names.len(), found.binaries.len());
        let bar = super::progress(names.len(), "cases");
        let record = |number: usize| {
            bar.inc(1);
            let (binary, name) = &names[number];
            let path = output.join(format!("reached-{number}"));
            found.recorded(*binary, name, &path).map_err(|error| format!("{name}: {error}"))
        };
        found.cases = workers::each(workers, names.len(), record)?;
        bar.finish_and_clear();
        print!("{}", found.useless());
        Ok(found)
    }

    /// Runs cases of one binary with one thread.
    pub fn run(
        &self,
        binary: usize,
        names: &[&str],
        switch: Switch<'_>,
        limit: Duration,
    ) -> std::io::Result<Verdict> {
        let mut command = self.binaries[binary].command();
        command.arg("--exact").args(names).args(["--test-threads", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        set(&mut command, switch);
        Ok(match process::wait_group(&mut command, Limits { time: limit, memory_bytes: MEMORY_MAX_BYTES })? {
            Ended::Itself(status) if status.success() => Verdict::Passed,
            Ended::Itself(_) => Verdict::Failed,
            Ended::TookTooLong(_) | Ended::TookTooMuch(_) => Verdict::TookTooMuch,
        })
    }

    fn recorded(&self, binary: usize, name: &str, path: &Path) -> std::io::Result<Case> {
        // What an earlier run has left would be appended to.
        fs::remove_file(path).or_else(unless_absent)?;
        let started = Instant::now();
        let mut verdict = self.run(binary, &[name], Switch::Recorded(path), CASE_LIMIT)?;
        let time = started.elapsed();
        // A process that comes by no mutant makes no file.
        let reached = reached(&fs::read(path).or_else(|error| unless_absent(error).map(|()| Vec::new()))?);
        fs::remove_file(path).or_else(unless_absent)?;
        if verdict == Verdict::Failed {
            // Recording allocates and opens a file, which a case may forbid.
            verdict = self.run(binary, &[name], Switch::Off, CASE_LIMIT)?;
        }
        Ok(Case { binary, name: name.to_owned(), time, verdict, reached })
    }

    /// What is said of the cases that are of no use; nothing if there are none.
    fn useless(&self) -> String {
        let useless: Vec<&Case> = self.cases.iter().filter(|case| case.verdict != Verdict::Passed).collect();
        let line = |case: &&Case| {
            let (binary, seconds) = (self.binaries[case.binary].name(), case.time.as_secs_f64());
            format!("   {binary} {} ({seconds:.1} s)\n", case.name)
        };
        let lines: String = useless.iter().take(NAMED_MAX).map(line).collect();
        match useless.len() {
            0 => lines,
            count => format!(
                "   {count} cases fail without a mutant, or take too long, and are not used:\n{lines}"
            ),
        }
    }
}

/// The cases of a binary, without those that are ignored; none of one that has no harness.
fn list(binary: &TestBinary, output: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let ask = |further: &[&str]| -> Result<Option<String>, Box<dyn Error>> {
        let mut command = binary.command();
        set(command.args(["--list", "--format", "terse"]).args(further), Switch::Off);
        let limits = Limits { time: LIST_LIMIT, memory_bytes: MEMORY_MAX_BYTES };
        let said = process::listen(&mut command, &output.join("cases"), limits)?;
        Ok(said.ended.failure().is_none().then_some(said.output))
    };
    let (Some(all), Some(ignored)) = (ask(&[])?, ask(&["--ignored"])?) else {
        println!("   {} lists no cases and is not used", binary.name());
        return Ok(Vec::new());
    };
    let ignored: BTreeSet<&str> = test::cases(&ignored).collect();
    Ok(test::cases(&all).filter(|case| !ignored.contains(case)).map(str::to_owned).collect())
}

/// The numbers in a record of the switch, each of four bytes.
pub fn reached(record: &[u8]) -> Vec<u32> {
    let numbers = record.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    numbers.collect::<BTreeSet<u32>>().into_iter().collect()
}

fn set(command: &mut Command, switch: Switch<'_>) {
    mirror::without_shrinking(command);
    command.env_remove("ZRT_SWITCH_RECORD").env("ZRT_SWITCH", "0");
    match switch {
        Switch::Off => command,
        Switch::Chosen(number) => command.env("ZRT_SWITCH", number.to_string()),
        Switch::Recorded(path) => command.env("ZRT_SWITCH_RECORD", path),
    };
}

fn unless_absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::Value;
    use std::io::ErrorKind;

    /// What cargo says of a test binary of a crate in `folder`: `binary`, also there.
    pub fn artifact(folder: &Path) -> Value {
        serde_json::json!({
            "reason": "compiler-artifact", "profile": { "test": true }, "executable": folder.join("binary"),
            "manifest_path": folder.join("Cargo.toml"), "target": { "name": "made_up", "kind": ["test"] },
        })
    }

    /// A test binary that is a shell script.
    pub fn script(folder: &Path, text: &str) -> TestBinary {
        zrt_needs::write_program(&folder.join("binary"), text);
        TestBinary::from_message(&artifact(folder)).unwrap()
    }

    #[test]
    fn a_record_has_each_number_once() {
        let record: Vec<u8> = [7_u32, 300, 7].iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(reached(&record), [7, 300]);
        assert_eq!(reached(&record[..6]), [7]);
    }

    #[test]
    fn cases_are_listed_and_recorded_and_those_that_fail_are_not_used() {
        let folder = zrt_needs::TemporaryFolder::new("cases");
        let binary = script(
            &folder,
            r#"case "$*" in
               *--ignored*) echo "ignored: test";;
               *--list*) printf 'good: test\nbad: test\nshy: test\nignored: test\nmeasured: benchmark\n';;
               "--exact good --test-threads 1") printf '\007\0\0\0' >> "$ZRT_SWITCH_RECORD";;
               "--exact shy --test-threads 1") test -z "$ZRT_SWITCH_RECORD";;
               *) exit 1;;
            esac"#,
        );
        let cases = Cases::record(vec![binary], 2, &folder).unwrap().cases;
        let found: Vec<_> =
            cases.iter().map(|case| (case.name.as_str(), case.verdict, case.reached.as_slice())).collect();
        let expected: [(&str, Verdict, &[u32]); 3] =
            [("good", Verdict::Passed, &[7]), ("bad", Verdict::Failed, &[]), ("shy", Verdict::Passed, &[])];
        assert_eq!(found, expected);
    }

    #[test]
    fn cases_that_do_not_pass_are_told_and_twenty_of_them_named() {
        let binary = TestBinary::from_message(&artifact(Path::new("/r/mem"))).unwrap();
        let case = |name: &str, verdict, ms| Case {
            binary: 0,
            name: name.into(),
            time: Duration::from_millis(ms),
            verdict,
            reached: Vec::new(),
        };
        let told = |cases| Cases { binaries: vec![binary.clone()], cases }.useless();
        assert_eq!(told(vec![case("good", Verdict::Passed, 100)]), "");
        let cases = vec![
            case("bad", Verdict::Failed, 100),
            case("good", Verdict::Passed, 200),
            case("slow", Verdict::TookTooMuch, 60_000),
        ];
        let text = "   2 cases fail without a mutant, or take too long, and are not used:\n   \
                    mem/made_up bad (0.1 s)\n   \
                    mem/made_up slow (60.0 s)\n";
        assert_eq!(told(cases), text);
        let many = told(vec![case("bad", Verdict::Failed, 100); 25]);
        assert!(many.starts_with("   25 cases ") && many.lines().count() == 1 + 20, "{many}");
    }

    #[test]
    fn a_file_may_be_absent_and_another_error_counts() {
        unless_absent(ErrorKind::NotFound.into()).unwrap();
        let error = unless_absent(ErrorKind::PermissionDenied.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_process_gets_its_mutant_and_no_other_ends_it() {
        let folder = zrt_needs::TemporaryFolder::new("switch");
        let binary = script(&folder, r#"test "$ZRT_SWITCH" = 5 && exec sleep 60; test "$ZRT_SWITCH" = 0"#);
        let cases = Cases { binaries: vec![binary], cases: Vec::new() };
        let run = |switch| cases.run(0, &["a"], switch, Duration::from_secs(1)).unwrap();
        assert_eq!(run(Switch::Off), Verdict::Passed);
        assert_eq!(run(Switch::Chosen(3)), Verdict::Failed);
        assert_eq!(run(Switch::Chosen(5)), Verdict::TookTooMuch);
    }
}
