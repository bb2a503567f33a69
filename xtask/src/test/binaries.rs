//! Test binaries: building them, and running them with the time that each took.
//!
//! Contract: [`build`] compiles the workspace's tests and says where they are; [`run`] runs some of them, a few at a
//! time, each in its crate's folder as `cargo test` does, and prints a line for each; it returns what they skipped.
//! Output is shown if a binary failed. A binary that runs longer than [`BINARY_LIMIT`] is killed and has failed.

use super::left_out::{self, Part};
use super::skips::{self, RanBinary};
use crate::process;
use crate::workers;
use serde_json::Value;
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest that a test binary may take.
const BINARY_LIMIT: Duration = Duration::from_secs(1800);
/// Binaries that run at the same time. Half of the cases wait for one thread, and some for a deadline, so that two
/// leave a part of two cores idle (474 s for the suite where three took 399 s). The threads of all of them together are
/// as many as cores, if there are as many.
const BINARIES_AT_A_TIME: usize = 3;
/// Environment variable that sets the test harness's number of threads.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Arguments of [`build`] for all tests of the workspace.
pub const ALL_TESTS: &[&str] = &["--workspace"];

/// A compiled test target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBinary {
    /// Folder of its crate in the repository: `engine`.
    pub folder: String,
    /// The target: a file or folder of `tests/`, or the library or program whose unit tests these are.
    pub target: String,
    /// A benchmark, which is not part of the tests.
    pub is_bench: bool,
    /// The unit tests of a library.
    pub is_library: bool,
    executable: PathBuf,
    /// Where it runs.
    directory: PathBuf,
}

/// The environment of one run of binaries.
pub struct Surroundings<'a> {
    /// Variables that are set, or removed if there is no value.
    pub environment: &'a [(&'static str, Option<OsString>)],
    /// What stands before the names of its binaries, if several environments share a run.
    pub label: &'static str,
    /// Where output is kept until it is known whether it is needed.
    pub output_folder: PathBuf,
    /// Which cases run, of those that the arguments choose.
    pub part: Part,
}

/// A binary that is to run.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The program.
    pub binary: &'a TestBinary,
    /// Arguments of its harness.
    pub arguments: &'a [&'a str],
    /// Where it runs.
    pub surroundings: &'a Surroundings<'a>,
}

impl TestBinary {
    /// The test binary of one of cargo's messages.
    pub fn from_message(message: &Value) -> Option<TestBinary> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some(TestBinary {
            folder: directory.file_name()?.to_str()?.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            is_bench: message["target"]["kind"][0] == "bench",
            is_library: message["target"]["kind"][0] == "lib",
            executable: PathBuf::from(message["executable"].as_str()?),
            directory,
        })
    }

    /// Whether a table's entry `folder/target` means this one.
    pub fn is(&self, name: &str) -> bool {
        name.split_once('/') == Some((self.folder.as_str(), self.target.as_str()))
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{}/{}", self.folder, self.target)
    }

    /// Its command line, where `cargo test` would run it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }
}

/// Compiles tests; `what` chooses: [`ALL_TESTS`], or other arguments of `cargo test`.
pub fn build(what: &[&str]) -> Result<Vec<TestBinary>, Box<dyn Error>> {
    let mut command = process::cargo();
    command.args(["test", "--locked", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]);
    let output = command.args(what).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the tests do not compile ({})", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut binaries: Vec<TestBinary> = text.lines().filter_map(parse_message).collect();
    if binaries.is_empty() {
        return Err("cargo named no test binary: the form of its messages has changed".into());
    }
    binaries.sort_by(|one, other| (&one.folder, &one.target).cmp(&(&other.folder, &other.target)));
    Ok(binaries)
}

/// A program of the workspace, which cargo compiles with its tests: two folders above them.
pub fn built_program(tests: &[TestBinary], name: &str) -> Result<String, String> {
    let folder = tests.first().and_then(|test| test.executable.ancestors().nth(2));
    let program = folder.ok_or("there are no tests")?.join(name);
    let text = program.to_str().filter(|_| program.is_file());
    text.map(str::to_owned).ok_or_else(|| format!("{}: not compiled with the tests", program.display()))
}

/// A test binary from a line that cargo wrote.
fn parse_message(line: &str) -> Option<TestBinary> {
    TestBinary::from_message(&serde_json::from_str(line).ok()?)
}

/// The names of the cases that a test binary lists (`--list --format terse`).
pub fn cases(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.strip_suffix(": test"))
}

/// Runs binaries in their order, [`BINARIES_AT_A_TIME`] at a time, and returns them in that order. After a failure no
/// further one is started.
pub fn run(jobs: &[Job<'_>]) -> Result<Vec<RanBinary>, Box<dyn Error>> {
    for job in jobs {
        std::fs::create_dir_all(&job.surroundings.output_folder)?;
    }
    Ok(workers::each(BINARIES_AT_A_TIME, jobs.len(), |index| run_one(&jobs[index]))?)
}

/// Runs one binary and prints its line; the error is what it wrote.
fn run_one(job: &Job<'_>) -> Result<RanBinary, String> {
    let Job { binary, arguments, surroundings } = *job;
    let name = binary.name();
    let shown = match surroundings.label {
        "" => name.clone(),
        label => format!("{label}: {name}"),
    };
    let base = surroundings.output_folder.join(format!("{}-{}", binary.folder, binary.target));
    let (output_path, skips_path) = (base.with_extension("txt"), base.with_extension("skips"));
    let started = Instant::now();
    let outcome = wait_for(job, &output_path, &skips_path);
    let seconds = started.elapsed().as_secs_f64();
    match outcome {
        Ok(None) => {
            println!("   {shown:<46} {seconds:>7.1} s");
            let skips = std::fs::read_to_string(&skips_path).map_err(|error| format!("{name}: {error}"))?;
            let is_whole = arguments.is_empty() && surroundings.part == Part::Short;
            let left_out = left_out::names(&name);
            Ok(RanBinary { name, is_whole, left_out, skips })
        }
        Ok(Some(reason)) => {
            println!("   {shown:<46} {seconds:>7.1} s  FAILED");
            let output = std::fs::read(&output_path).unwrap_or_default();
            Err(format!("{}\n{shown}: {reason}", String::from_utf8_lossy(&output)))
        }
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// `None` if the binary succeeded, else why not.
fn wait_for(job: &Job<'_>, output_path: &Path, skips_path: &Path) -> Result<Option<String>, std::io::Error> {
    let Job { binary, arguments, surroundings } = *job;
    File::create(skips_path)?;
    let output = File::create(output_path)?;
    let mut command = binary.command();
    command
        .args(arguments)
        .args(surroundings.part.arguments(&binary.name()))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    if std::env::var_os(TEST_THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        command.env(TEST_THREADS, test_threads(cores).to_string());
    }
    command.env(skips::VARIABLE, std::path::absolute(skips_path)?);
    for (variable, value) in surroundings.environment {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    Ok(process::wait(&mut command, BINARY_LIMIT)?.failure())
}

/// Threads of one binary's harness.
fn test_threads(cores: usize) -> usize {
    (cores / BINARIES_AT_A_TIME).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_test_is_a_binary_and_others_are_none() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/r/engine/Cargo.toml",
            "target":{"kind":["test"],"name":"gguf"},"profile":{"test":true},"executable":"/r/t/gguf-1"}"#;
        let message = message.replace('\n', "");
        let binary = parse_message(&message).unwrap();
        assert!(binary.is("engine/gguf") && !binary.is("engine/plan") && !binary.is("gguf"));
        assert_eq!(binary.directory, Path::new("/r/engine"));
        assert!(
            !binary.is_bench
                && parse_message(&message.replace("[\"test\"]", "[\"bench\"]")).unwrap().is_bench
        );
        assert_eq!(parse_message(&message.replace("\"test\":true", "\"test\":false")), None);
        assert_eq!(parse_message(&message.replace("\"/r/t/gguf-1\"", "null")), None);
        assert_eq!(parse_message("warning: not a message"), None);
    }

    /// A shell that stands for a test binary.
    fn made_up(name: &str) -> TestBinary {
        TestBinary {
            folder: "made-up".into(),
            target: name.into(),
            is_bench: false,
            is_library: false,
            executable: "/bin/sh".into(),
            directory: std::env::temp_dir(),
        }
    }

    fn run_part(name: &str, arguments: &[&str], part: Part) -> Result<RanBinary, Box<dyn Error>> {
        let folder = zrt_needs::TemporaryFolder::new("binaries");
        let environment = [("ZRT_ONE", Some("1".into())), ("HOME", None)];
        let output_folder = folder.join("output");
        let surroundings = Surroundings { environment: &environment, label: "", output_folder, part };
        let binary = made_up(name);
        let mut ran = run(&[Job { binary: &binary, arguments, surroundings: &surroundings }])?;
        Ok(ran.remove(0))
    }

    fn shell(name: &str, script: &str) -> Result<RanBinary, String> {
        run_part(name, &["-c", script], Part::Short).map_err(|error| error.to_string())
    }

    #[test]
    fn a_binary_is_whole_if_nothing_chose_among_its_cases() {
        let is_whole = |arguments: &[&str], part| run_part("whole", arguments, part).unwrap().is_whole;
        assert!(is_whole(&[], Part::Short));
        assert!(!is_whole(&["-c", ":"], Part::Short));
        assert!(!is_whole(&[], Part::Long) && !is_whole(&["-c", ":"], Part::Long));
    }

    #[test]
    fn the_names_of_cases_are_read_from_the_list_of_a_binary() {
        let listed =
            "module::first: test\nmodule::measured: benchmark\nsecond: test\n\n2 tests, 1 benchmark\n";
        assert!(cases(listed).eq(["module::first", "second"]));
    }

    /// Less by less than one thread for each binary, except that each has one.
    #[test]
    fn all_binaries_at_a_time_have_as_many_threads_as_there_are_cores() {
        for (cores, threads) in [(1, 1), (2, 1), (3, 1), (5, 1), (6, 2), (12, 4), (16, 5), (128, 42)] {
            assert_eq!(test_threads(cores), threads, "{cores}");
        }
    }

    #[test]
    fn a_program_lies_two_folders_above_the_tests() {
        let folder = zrt_needs::TemporaryFolder::new("program");
        let program = folder.join("zrt");
        let tests = [TestBinary { executable: folder.join("deps/gguf-1"), ..made_up("gguf") }];
        let missing = format!("{}: not compiled with the tests", program.display());
        assert_eq!(built_program(&tests, "zrt"), Err(missing));
        std::fs::write(&program, "").unwrap();
        assert_eq!(built_program(&tests, "zrt").as_deref(), Ok(program.to_str().unwrap()));
        assert_eq!(built_program(&[], "zrt"), Err("there are no tests".to_owned()));
    }

    #[test]
    fn a_binary_runs_in_the_surroundings_it_is_given_and_its_failure_shows_what_it_said() {
        shell("right", "test \"$ZRT_ONE\" = 1 && test -z \"$HOME\"").unwrap();
        let failure = shell("wrong", "echo said; exit 3").unwrap_err();
        assert!(failure.contains("said") && failure.contains("made-up/wrong"), "{failure}");
    }

    #[test]
    fn what_a_binary_skips_is_given_back_each_time_anew() {
        for _ in 0..2 {
            let ran = shell("skipping", "printf 'case\\treason\\n' >> \"$ZRT_SKIPS\"").unwrap();
            assert_eq!((ran.name.as_str(), ran.skips.as_str()), ("made-up/skipping", "case\treason\n"));
        }
        assert_eq!(shell("running", "true").unwrap().skips, "");
    }
}
