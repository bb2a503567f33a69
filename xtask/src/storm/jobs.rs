//! The jobs of a storm: how each is run from a seed, and what it says.
//!
//! Contract: a job is a program with a seed, a deadline and a file for its output. It passes, fails, is late if it has
//! not ended by the deadline, or is skipped if it says that something it needs is missing. A planted fault passes if
//! the conformance run detects it.

use crate::fuzz::{self, Fuzzers, Target};
use crate::process::{self, Ended};
use crate::test::skips::{self, Skips};
use crate::test::{TestBinary, build};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest that a job without a length of its own may take.
pub const JOB_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Seconds of a fuzz target.
const FUZZ_SECONDS: u64 = 60;
/// Requests of a stress run: `ZRT_STRESS_REQUESTS`.
const STRESS_REQUESTS: u64 = 500;
/// Programs of a differential run.
const PROGRAMS: u64 = 200;
/// The case that a stress run is, and the binary that has it.
const STRESS_CASE: &str = "a_random_workload_gives_everyone_the_tokens_of_the_oracle";
const STRESS_BINARY: &str = "tests/stress_unchecked";
/// The binary of sessions with planted faults.
const FAULTS_BINARY: &str = "tests/faults";
/// Arguments of `cargo test` that build both.
const TEST_TARGETS: &[&str] = &["--package", "zrt-tests", "--test", "stress_unchecked", "--test", "faults"];
/// What the conformance run's `--plant` takes. They are names here, so that this program compiles no simulator.
const PLANTED_FAULTS: [&str; 6] = [
    "queue-never-reads",
    "end-of-pipe-never-writes",
    "indirect-buffer-refused",
    "code-not-visible",
    "scalar-loads-zero",
    NO_ATOMICS,
];
/// The one that fails nothing: a root port without atomics is noted.
const NO_ATOMICS: &str = "no-pcie-atomics";
/// Exit status of `zrt-differential` if the comparison could not be made.
const NOT_COMPARED: i32 = 2;

/// One kind of job.
pub enum Job {
    /// A fuzz target.
    Fuzz(&'static Target),
    /// Sessions under a random load, every token compared with the oracle's.
    Stress,
    /// Random C programs, device against host, in waves of 32 or 64 lanes.
    Differential,
    /// Sessions with planted faults, each of which must be seen. Has no seed: real time passes in it.
    Faults,
    /// The packet conformance run, with waves interleaved by the seed.
    Conformance,
    /// The same on a device of which a part does not work.
    Plant(&'static str),
}

/// How a job ended.
pub struct Report {
    /// Inputs, requests, programs or cases.
    pub cases: u64,
    /// Whether it passed.
    pub verdict: Verdict,
    /// The command that repeats it.
    pub again: String,
}

/// Whether a job passed, or why not.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed(String),
    /// It did not end in its time: it hangs, or the machine has other work.
    Late(String),
    Skipped(String),
}

impl Verdict {
    /// Of a program that ended without success.
    fn broken(ended: Ended) -> Option<Verdict> {
        let reason = ended.failure()?;
        Some(match ended {
            Ended::TookTooLong(_) => Verdict::Late(reason),
            Ended::Itself(_) | Ended::TookTooMuch(_) => Verdict::Failed(reason),
        })
    }

    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Late(_) => "late",
            Verdict::Skipped(_) => "skipped",
        }
    }

    /// Why it did not pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Passed => None,
            Verdict::Failed(reason) | Verdict::Late(reason) | Verdict::Skipped(reason) => Some(reason),
        }
    }
}

/// The programs that the jobs start.
pub struct Programs {
    fuzzers: Option<Fuzzers>,
    tests: Vec<TestBinary>,
    differential: PathBuf,
    zrt: PathBuf,
}

impl Programs {
    /// Compiles all of them.
    pub fn build(skips: &mut Skips) -> Result<Programs, Box<dyn Error>> {
        build_programs(&mut process::cargo())?;
        let xtask = std::env::current_exe()?;
        let (differential, zrt) = (xtask.with_file_name("zrt-differential"), xtask.with_file_name("zrt"));
        Ok(Programs {
            fuzzers: fuzz::build(&Command::output, skips)?,
            tests: build(TEST_TARGETS)?,
            differential,
            zrt,
        })
    }

    /// The two programs of a folder, if it has them, and no others.
    #[cfg(test)]
    pub fn of(folder: &Path) -> Programs {
        let (differential, zrt) = (folder.join("zrt-differential"), folder.join("zrt"));
        Programs { fuzzers: None, tests: Vec::new(), differential, zrt }
    }

    fn test(&self, name: &str) -> Result<&TestBinary, String> {
        self.tests.iter().find(|test| test.is(name)).ok_or_else(|| format!("there is no test target {name}"))
    }
}

/// Has a cargo without arguments compile the programs that are no tests.
fn build_programs(cargo: &mut Command) -> Result<(), Box<dyn Error>> {
    cargo.args(["build", "--locked", "--quiet", "-p", "zrt-differential", "-p", "zrt-tools"]);
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("zrt-differential and zrt do not compile ({status})").into());
    }
    Ok(())
}

/// What a job's program left behind.
struct Left {
    ended: Ended,
    said: String,
    skips: String,
}

impl Job {
    /// One of each kind, in turn.
    pub fn all() -> Vec<Job> {
        let fuzzers = fuzz::TARGETS.iter().map(Job::Fuzz);
        let plants = PLANTED_FAULTS.into_iter().map(Job::Plant);
        let single = [Job::Stress, Job::Differential, Job::Faults, Job::Conformance];
        // Long and short ones side by side.
        single.into_iter().chain(fuzzers).chain(plants).collect()
    }

    /// Its name in the ledger.
    pub fn name(&self) -> String {
        match self {
            Job::Fuzz(target) => format!("fuzz/{}", target.name),
            Job::Stress => "stress".into(),
            Job::Differential => "differential".into(),
            Job::Faults => "faults".into(),
            Job::Conformance => "conformance".into(),
            Job::Plant(fault) => format!("plant/{fault}"),
        }
    }

    /// Runs it from a seed. `left` is the time of the storm that is left, `log` the file for its output.
    pub fn run(
        &self,
        programs: &Programs,
        seed: u32,
        left: Duration,
        log: &Path,
    ) -> Result<Report, Box<dyn Error>> {
        let again = self.again(seed);
        let (cases, verdict) = match self.attempt(programs, seed, left, log) {
            Ok(outcome) => outcome,
            Err(error) => (0, Verdict::Failed(error.to_string())),
        };
        Ok(Report { cases, verdict, again })
    }

    /// The command that repeats it, from the repository's root.
    fn again(&self, seed: u32) -> String {
        match self {
            Job::Fuzz(target) => {
                format!("cargo xtask fuzz --target {} --seconds {FUZZ_SECONDS} --seed {seed}", target.name)
            }
            Job::Stress => format!(
                "ZRT_STRESS_SEED={seed} ZRT_STRESS_REQUESTS={STRESS_REQUESTS} \
                 cargo test -p zrt-tests --test stress_unchecked -- --exact {STRESS_CASE}"
            ),
            Job::Differential => {
                format!("cargo run -p zrt-differential -- {}", differential_arguments(seed).join(" "))
            }
            Job::Faults => "cargo test -p zrt-tests --test faults".into(),
            Job::Conformance | Job::Plant(_) => {
                format!("cargo xtask pm4-test {}", self.pm4_arguments(seed).join(" "))
            }
        }
    }

    fn pm4_arguments(&self, seed: u32) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["--device", "virtual", "--seed", &seed.to_string()].map(str::to_owned).into();
        if let Job::Plant(fault) = self {
            arguments.extend(["--plant".into(), (*fault).to_owned()]);
        }
        arguments
    }

    fn attempt(
        &self,
        programs: &Programs,
        seed: u32,
        left: Duration,
        log: &Path,
    ) -> Result<(u64, Verdict), Box<dyn Error>> {
        match self {
            Job::Fuzz(target) => {
                let Some(fuzzers) = &programs.fuzzers else {
                    return Ok((0, Verdict::Skipped("the targets cannot be built here".into())));
                };
                let seconds = left.as_secs().clamp(1, FUZZ_SECONDS) as u32;
                let outcome = fuzzers.run(&fuzz::Run { target, seconds, seed })?;
                if let Some(failure) = &outcome.failure {
                    std::fs::write(log, failure)?;
                }
                Ok(judge_fuzz(outcome))
            }
            Job::Stress => {
                let mut command = programs.test(STRESS_BINARY)?.command();
                command.args(["--exact", STRESS_CASE]).env("ZRT_STRESS_SEED", seed.to_string());
                command.env("ZRT_STRESS_REQUESTS", STRESS_REQUESTS.to_string());
                let left = start(&mut command, log)?;
                Ok(judge_cases(&left, STRESS_REQUESTS))
            }
            Job::Differential => {
                let left =
                    start(Command::new(&programs.differential).args(differential_arguments(seed)), log)?;
                Ok(judge_differential(&left))
            }
            Job::Faults => {
                let left = start(&mut programs.test(FAULTS_BINARY)?.command(), log)?;
                Ok(judge_cases(&left, number_before(&left.said, " passed;")))
            }
            Job::Conformance | Job::Plant(_) => {
                let left =
                    start(Command::new(&programs.zrt).arg("pm4-test").args(self.pm4_arguments(seed)), log)?;
                Ok(judge_conformance(&left, self.must_fail()))
            }
        }
    }

    /// Whether the run succeeds by failing.
    fn must_fail(&self) -> bool {
        matches!(self, Job::Plant(fault) if *fault != NO_ATOMICS)
    }
}

/// Arguments of `zrt-differential`; an odd seed takes waves of 64 lanes.
fn differential_arguments(seed: u32) -> Vec<String> {
    let wave = if seed % 2 == 1 { "64" } else { "32" };
    let pairs = [("--programs", PROGRAMS.to_string()), ("--seed", seed.to_string()), ("--wave", wave.into())];
    pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

/// Runs a program to its end.
fn start(command: &mut Command, log_path: &Path) -> Result<Left, Box<dyn Error>> {
    let skips_path = log_path.with_extension("skips");
    File::create(&skips_path)?;
    let log = File::create(log_path)?;
    command.env(skips::VARIABLE, std::path::absolute(&skips_path)?);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let ended = process::wait(command, JOB_LIMIT)?;
    let skips = std::fs::read_to_string(&skips_path)?;
    std::fs::remove_file(&skips_path)?;
    Ok(Left { ended, said: String::from_utf8_lossy(&std::fs::read(log_path)?).into_owned(), skips })
}

fn judge_fuzz(outcome: fuzz::Outcome) -> (u64, Verdict) {
    let verdict = match outcome.failure {
        None => Verdict::Passed,
        Some(failure) if outcome.is_late => Verdict::Late(failure),
        Some(failure) => Verdict::Failed(failure),
    };
    (outcome.inputs, verdict)
}

/// Judges a binary of cases, of which `cases` ran if none was skipped.
fn judge_cases(left: &Left, cases: u64) -> (u64, Verdict) {
    if let Some(verdict) = Verdict::broken(left.ended) {
        return (cases, verdict);
    }
    match left.skips.lines().next() {
        Some(line) => (0, Verdict::Skipped(line.replace('\t', ": "))),
        None => (cases, Verdict::Passed),
    }
}

fn judge_differential(left: &Left) -> (u64, Verdict) {
    match left.ended {
        // The compiler is missing: nothing was compared, and nothing differs.
        Ended::Itself(status)
            if status.code() == Some(NOT_COMPARED) && left.said.contains("could not be started") =>
        {
            (0, Verdict::Skipped(left.said.trim().to_owned()))
        }
        ended => (PROGRAMS, Verdict::broken(ended).unwrap_or(Verdict::Passed)),
    }
}

/// Judges a conformance run, which must report a failure if a fault is planted.
fn judge_conformance(left: &Left, must_fail: bool) -> (u64, Verdict) {
    let (broken, sees) = (Verdict::broken(left.ended), left.said.contains(" cases failed and "));
    let cases = number_before(&left.said, " cases ");
    let by_itself = matches!(left.ended, Ended::Itself(status) if status.code() == Some(1));
    let verdict = match broken {
        None if must_fail => Verdict::Failed("the planted fault was not seen".into()),
        None => Verdict::Passed,
        Some(_) if must_fail && sees && by_itself => Verdict::Passed,
        Some(verdict) => verdict,
    };
    (cases, verdict)
}

/// The last number directly before `mark`; 0 if there is none.
fn number_before(text: &str, mark: &str) -> u64 {
    let numbers = text.match_indices(mark).filter_map(|(at, _)| {
        let digits = text[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
        text[at - digits..at].parse().ok()
    });
    numbers.last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_needs::write_program;

    fn left(script: &str) -> Left {
        let folder = zrt_needs::TemporaryFolder::new("storm-job");
        start(Command::new("sh").args(["-c", script]), &folder.join("log.txt")).unwrap()
    }

    #[test]
    fn every_fault_of_the_virtual_device_is_planted() {
        assert_eq!(PLANTED_FAULTS, zrt_bringup::PlantedFault::ALL.map(zrt_bringup::PlantedFault::name));
    }

    fn failed(reason: &str) -> Verdict {
        Verdict::Failed(reason.into())
    }

    #[test]
    fn cases_pass_fail_or_are_skipped() {
        assert_eq!(judge_cases(&left("true"), 5), (5, Verdict::Passed));
        assert_eq!(judge_cases(&left("exit 101"), 5), (5, failed("exit status: 101")));
        let skipped = left("printf 'case\\tno model\\n' >> \"$ZRT_SKIPS\"");
        assert_eq!(judge_cases(&skipped, 5), (0, Verdict::Skipped("case: no model".into())));
    }

    #[test]
    fn a_job_that_does_not_end_in_its_time_is_late() {
        let late = Left { ended: Ended::TookTooLong(JOB_LIMIT), said: String::new(), skips: String::new() };
        let verdict = || Verdict::Late("ended after 1200 s".into());
        assert_eq!(judge_cases(&late, 5), (5, verdict()));
        assert_eq!(judge_differential(&late), (PROGRAMS, verdict()));
        assert_eq!(
            [false, true].map(|must_fail| judge_conformance(&late, must_fail).1),
            [verdict(), verdict()]
        );
        let much = Left { ended: Ended::TookTooMuch(3 << 20), ..late };
        assert_eq!(judge_cases(&much, 5).1, failed("ended at 3 MiB"));
    }

    #[test]
    fn a_comparison_without_a_compiler_is_skipped() {
        assert_eq!(judge_differential(&left("true")), (PROGRAMS, Verdict::Passed));
        assert_eq!(judge_differential(&left("exit 1")).1, failed("exit status: 1"));
        assert_eq!(judge_differential(&left("exit 2 # other")).1, failed("exit status: 2"));
        let absent = judge_differential(&left("echo 'clang-22 could not be started'; exit 2"));
        assert_eq!(absent, (0, Verdict::Skipped("clang-22 could not be started".into())));
    }

    #[test]
    fn a_planted_fault_must_be_seen_in_words() {
        let sees = "echo 'error: 1 of 33 cases failed and 4 were not run'; exit 1";
        assert_eq!(judge_conformance(&left(sees), true), (33, Verdict::Passed));
        assert_eq!(judge_conformance(&left(sees), false).1, failed("exit status: 1"));
        let passes = "echo '33 of 33 cases passed, none failed'";
        assert_eq!(judge_conformance(&left(passes), true).1, failed("the planted fault was not seen"));
        assert_eq!(judge_conformance(&left(passes), false), (33, Verdict::Passed));
        assert_eq!(judge_conformance(&left("echo panicked; exit 1"), true).1, failed("exit status: 1"));
        let panics = "echo '1 of 33 cases failed and 4 were not run'; exit 101";
        assert_eq!(judge_conformance(&left(panics), true).1, failed("exit status: 101"));
    }

    #[test]
    fn each_job_has_a_name_of_its_own_and_can_be_repeated() {
        let names: std::collections::BTreeSet<String> = Job::all().iter().map(Job::name).collect();
        assert_eq!(names.len(), Job::all().len());
        for job in Job::all() {
            let again = job.again(77);
            assert!(again.starts_with("cargo ") || again.starts_with("ZRT_"), "{again}");
            assert!(again.contains("77") || matches!(job, Job::Faults), "{again}");
        }
        for (seed, lanes) in [(0, "32"), (1, "64"), (2, "32"), (3, "64"), (4, "32")] {
            assert_eq!(differential_arguments(seed).last().unwrap(), lanes, "{seed}");
        }
    }

    #[test]
    fn inputs_pass_fail_or_take_too_long() {
        let judged = |failure: Option<&str>, is_late| {
            judge_fuzz(fuzz::Outcome { inputs: 9, failure: failure.map(str::to_owned), is_late })
        };
        assert_eq!(judged(None, false), (9, Verdict::Passed));
        assert_eq!(judged(Some("crash"), false), (9, failed("crash")));
        assert_eq!(judged(Some("hangs"), true), (9, Verdict::Late("hangs".into())));
    }

    /// Of all jobs only these have a program here, which succeeds.
    #[test]
    fn a_conformance_run_must_succeed_and_one_with_a_planted_fault_fail_but_for_atomics() {
        let folder = zrt_needs::TemporaryFolder::new("storm-plants");
        write_program(&folder.join("zrt"), "echo '33 of 33 cases passed, none failed'");
        let programs = Programs::of(&folder);
        let report = |job: &Job| job.run(&programs, 1, Duration::ZERO, &folder.join("log.txt")).unwrap();
        let passes = |job: &Job| report(job).verdict == Verdict::Passed;
        let passed: Vec<String> = Job::all().iter().filter(|job| passes(job)).map(Job::name).collect();
        assert_eq!(passed, ["conformance", "plant/no-pcie-atomics"]);
    }

    #[test]
    fn programs_that_do_not_compile_are_told() {
        build_programs(&mut Command::new("true")).unwrap();
        let error = build_programs(&mut Command::new("false")).unwrap_err().to_string();
        assert_eq!(error, "zrt-differential and zrt do not compile (exit status: 1)");
    }
}
