//! `cargo xtask fuzz`: builds the fuzz targets and runs them.
//!
//! Contract: the targets of `fuzz/` are compiled `--locked` as plain programs with coverage, so that cargo-fuzz is not
//! needed: by a nightly toolchain with AddressSanitizer if rustup has one, else by the default one without it. What is
//! missing is recorded in the suite's [`Skips`]. A run starts from the committed seeds and from what earlier runs found
//! in `target/fuzz/corpus`; an input that breaks a target is kept under `target/fuzz/artifacts`, and the error has the
//! command that repeats it.

pub mod seeds;

use crate::process::{self, Ended};
use crate::test::skips::Skips;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A fuzz target.
pub struct Target {
    /// Its program.
    pub name: &'static str,
    /// Longest input that is tried: more than every seed has.
    pub input_bytes_max: usize,
}

/// All of them: the files of `fuzz/fuzz_targets`.
pub const TARGETS: &[Target] = &[
    Target { name: "chat", input_bytes_max: 8 << 10 },
    Target { name: "code_object", input_bytes_max: 16 << 10 },
    Target { name: "container", input_bytes_max: 8 << 10 },
    Target { name: "gguf", input_bytes_max: 32 << 10 },
    Target { name: "golden", input_bytes_max: 8 << 10 },
    Target { name: "isa_decode", input_bytes_max: 4 << 10 },
    Target { name: "pm4_stream", input_bytes_max: 4 << 10 },
    Target { name: "print", input_bytes_max: 4 << 10 },
    Target { name: "program", input_bytes_max: 16 << 10 },
    Target { name: "safetensors", input_bytes_max: 40 << 10 },
    Target { name: "script", input_bytes_max: 8 << 10 },
    Target { name: "topology", input_bytes_max: 8 << 10 },
];

/// Flags by which the compiler instruments code for libFuzzer: passes of LLVM that stable toolchains have too.
const COVERAGE_FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Longest that one input may take, in seconds.
const INPUT_SECONDS_MAX: u32 = 10;
/// Maximum memory that a target may use, in MiB. With AddressSanitizer `gguf` used 462 after ten seconds.
const MEMORY_MIB_MAX: u32 = 2048;
/// How much longer than requested a run may take before it is ended: reading the corpus, and one slow input.
const RUN_GRACE: Duration = Duration::from_secs(120);
/// Targets that run at the same time.
const AT_A_TIME: usize = 2;
/// Lines of a failed run that are shown.
const SHOWN_LINES: usize = 40;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct FuzzArguments {
    /// Seconds to run each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run only this target
    #[arg(long)]
    target: Option<String>,
    /// Seed of the mutations
    #[arg(long, default_value_t = 1)]
    seed: u32,
}

/// The compiled targets.
pub struct Fuzzers {
    /// Where the programs are.
    folder: PathBuf,
    /// Where their corpora, and inputs that break them, are kept.
    kept: PathBuf,
}

/// One run of a target.
pub struct Run<'a> {
    pub target: &'a Target,
    /// Seconds to run.
    pub seconds: u32,
    /// Seed of the changes; not 0, for which libFuzzer takes the clock.
    pub seed: u32,
}

/// How a run ended.
pub struct Outcome {
    /// Inputs that were tried.
    pub inputs: u64,
    /// What broke, and how to repeat it.
    pub failure: Option<String>,
    /// Whether that is only that it did not end in its time.
    pub is_late: bool,
}

/// Runs the command.
pub fn run(arguments: &FuzzArguments) -> Result<(), Box<dyn Error>> {
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| arguments.target.as_deref().is_none_or(|name| target.name == name))
        .collect();
    if chosen.is_empty() {
        return Err(format!("there is no such target; the targets are: {}", names().join(", ")).into());
    }
    let mut skips = Skips::default();
    let outcome = match build(&mut skips)? {
        Some(fuzzers) => fuzzers.run_all(&chosen, arguments.seconds, arguments.seed),
        None => Err("the targets cannot be built here".into()),
    };
    print!("{skips}");
    outcome
}

/// All targets for `seconds` each, from a fixed seed: the pass of the suite.
pub fn pass(seconds: u32, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let Some(fuzzers) = build(skips)? else { return Ok(()) };
    fuzzers.run_all(&TARGETS.iter().collect::<Vec<_>>(), seconds, 1)
}

fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

fn output_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz")
}

/// Builds the targets; `None` if something that the build needs is missing.
pub fn build(skips: &mut Skips) -> Result<Option<Fuzzers>, Box<dyn Error>> {
    if !is_present(Command::new("c++").arg("--version")) {
        skips.stage("fuzz", "no C++ compiler (c++), which libFuzzer is built with");
        return Ok(None);
    }
    let has_nightly = is_present(Command::new("rustup").args(["run", "nightly", "cargo", "--version"]));
    let mut flags = COVERAGE_FLAGS.to_owned();
    let mut command = if has_nightly {
        flags.push_str(" -Zsanitizer=address");
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command
    } else {
        skips.stage("fuzz, AddressSanitizer", "rustup has no nightly toolchain");
        process::cargo()
    };
    let host = host_triple()?;
    let output = output_folder();
    command.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/Cargo.toml"));
    // The target is named, so that build scripts do not get the flags.
    command.args(["--target", &host, "--target-dir"]).arg(&output).env("RUSTFLAGS", flags);
    let status = command.status()?;
    if !status.success() {
        return Err(format!("the fuzz targets do not compile ({status})").into());
    }
    Ok(Some(Fuzzers { folder: output.join(host).join("release"), kept: output }))
}

fn is_present(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The host triple, as the compiler reports it.
fn host_triple() -> Result<String, Box<dyn Error>> {
    let output =
        Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

impl Fuzzers {
    /// Runs targets, [`AT_A_TIME`] at a time, and prints a line for each.
    fn run_all(&self, targets: &[&Target], seconds: u32, seed: u32) -> Result<(), Box<dyn Error>> {
        let mut failures = Vec::new();
        for some in targets.chunks(AT_A_TIME) {
            let outcomes: Vec<Result<Outcome, String>> = std::thread::scope(|scope| {
                let start = |target| {
                    scope.spawn(move || {
                        self.run(&Run { target, seconds, seed }).map_err(|error| error.to_string())
                    })
                };
                let running: Vec<_> = some.iter().map(|target| start(*target)).collect();
                running
                    .into_iter()
                    .map(|one| one.join().unwrap_or_else(|_| Err("its thread panicked".into())))
                    .collect()
            });
            for (target, outcome) in some.iter().zip(outcomes) {
                let outcome = outcome?;
                let word = if outcome.failure.is_some() { "FAILED" } else { "ok" };
                println!("   {:<12} {:>9} inputs in {seconds} s: {word}", target.name, outcome.inputs);
                failures.extend(outcome.failure);
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
    }

    /// Runs one target.
    pub fn run(&self, run: &Run<'_>) -> Result<Outcome, Box<dyn Error>> {
        let name = run.target.name;
        let corpus = self.kept.join("corpus").join(name);
        let artifacts = self.kept.join("artifacts").join(name);
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        let program = self.folder.join(name);
        let log_path = artifacts.join("log.txt");
        let log = File::create(&log_path)?;
        let mut command = Command::new(&program);
        command.args([
            format!("-seed={}", run.seed.max(1)),
            format!("-max_total_time={}", run.seconds),
            format!("-max_len={}", run.target.input_bytes_max),
            format!("-timeout={INPUT_SECONDS_MAX}"),
            format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".into(),
        ]);
        command.arg(&corpus).arg(seeds::folder(name));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let limit = Duration::from_secs(run.seconds.into()) + RUN_GRACE;
        let ended = process::wait(&mut command, limit)?;
        let said = String::from_utf8_lossy(&std::fs::read(&log_path)?).into_owned();
        let failure = ended.failure().map(|reason| {
            let artifact = said.lines().find_map(|line| line.split("Test unit written to ").nth(1));
            let again = artifact
                .map_or_else(String::new, |path| format!("\nagain with: {} {path}", program.display()));
            format!("{}\nfuzz target {name}, seed {}: {reason}{again}", last_lines(&said), run.seed)
        });
        Ok(Outcome { inputs: inputs(&said), failure, is_late: matches!(ended, Ended::TookTooLong(_)) })
    }
}

/// The number of inputs that libFuzzer says it tried.
fn inputs(said: &str) -> u64 {
    let number = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    number.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_the_programs_of_the_workspace() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let mut files: Vec<String> = std::fs::read_dir(folder.join("fuzz_targets"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, names());
        for name in names() {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            assert!(readme.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    /// A program in place of a target.
    fn stand_in(name: &str, script: &str) -> Outcome {
        use std::os::unix::fs::PermissionsExt;
        let folder = zrt_needs::TemporaryFolder::new(name);
        let target: &'static Target = &TARGETS[0];
        let program = folder.join(target.name);
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let fuzzers = Fuzzers { folder: folder.to_path_buf(), kept: folder.join("kept") };
        fuzzers.run(&Run { target, seconds: 1, seed: 7 }).unwrap()
    }

    #[test]
    fn a_run_is_counted_and_a_broken_one_says_how_to_repeat_it() {
        let fine = stand_in("fine", "test $1 = -seed=7 && echo 'stat::number_of_executed_units: 1234'");
        assert_eq!((fine.inputs, fine.failure), (1234, None));
        let broken = stand_in("broken", "echo '; Test unit written to /some/where/crash-1'; exit 77");
        let failure = broken.failure.unwrap();
        let again = format!("{} /some/where/crash-1", TARGETS[0].name);
        assert!(failure.contains(&again) && failure.contains("seed 7"), "{failure}");
    }
}
