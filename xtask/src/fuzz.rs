//! `cargo xtask fuzz`: builds the fuzz targets and runs them.
//!
//! Contract: the targets of `fuzz/` are compiled `--locked` as plain programs with coverage, so that cargo-fuzz is not
//! needed: by a nightly toolchain with AddressSanitizer if rustup has one, else by the default one without it. What is
//! missing is recorded in the suite's [`Skips`]. A run starts from the committed seeds and from what earlier runs found
//! in `target/fuzz/corpus`; an input that breaks a target is kept under `target/fuzz/artifacts`, and the error has the
//! command that repeats it.

pub mod seeds;

use crate::process::{self, Ended, Start};
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
    Target { name: "machine_code", input_bytes_max: 16 << 10 },
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

/// Runs the command; `start` starts the programs that the build needs.
pub fn run(start: Start<'_>, arguments: &FuzzArguments) -> Result<(), Box<dyn Error>> {
    let chosen = chosen(arguments.target.as_deref())?;
    let mut skips = Skips::default();
    let outcome = match build(start, &mut skips)? {
        Some(fuzzers) => fuzzers.run_all(&chosen, arguments.seconds, arguments.seed),
        None => Err("the targets cannot be built here".into()),
    };
    print!("{skips}");
    outcome
}

/// The target of this name, or all.
fn chosen(name: Option<&str>) -> Result<Vec<&'static Target>, String> {
    let is_chosen = |target: &&Target| name.is_none_or(|name| target.name == name);
    let chosen: Vec<&Target> = TARGETS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("there is no such target; the targets are: {}", names().join(", ")));
    }
    Ok(chosen)
}

/// All targets for `seconds` each, from a fixed seed: the pass of the suite.
pub fn pass(start: Start<'_>, seconds: u32, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let Some(fuzzers) = build(start, skips)? else { return Ok(()) };
    fuzzers.run_all(&TARGETS.iter().collect::<Vec<_>>(), seconds, 1)
}

fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

fn output_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz")
}

/// Builds the targets; `None` if something that the build needs is missing.
pub fn build(start: Start<'_>, skips: &mut Skips) -> Result<Option<Fuzzers>, Box<dyn Error>> {
    let is_present = |command: &mut Command| start(command).is_ok_and(|output| output.status.success());
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
    let host = host_triple(start)?;
    let output = output_folder();
    command.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/Cargo.toml"));
    // The target is named, so that build scripts do not get the flags.
    command.args(["--target", &host, "--target-dir"]).arg(&output).env("RUSTFLAGS", flags);
    let status = start(command.stdout(Stdio::inherit()).stderr(Stdio::inherit()))?.status;
    if !status.success() {
        return Err(format!("the fuzz targets do not compile ({status})").into());
    }
    Ok(Some(Fuzzers { folder: output.join(host).join("release"), kept: output }))
}

/// The host triple, as the compiler reports it.
fn host_triple(start: Start<'_>) -> Result<String, Box<dyn Error>> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = start(Command::new(rustc).arg("-vV"))?;
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
        command.arg(&corpus).arg(seeds::committed().join(name));
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
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};
    use zrt_needs::TemporaryFolder;

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

    /// Programs in place of targets.
    fn stand_ins(folder: &TemporaryFolder, scripts: &[(&Target, &str)]) -> Fuzzers {
        for (target, script) in scripts {
            folder.program(target.name, script);
        }
        Fuzzers { folder: folder.to_path_buf(), kept: folder.join("kept") }
    }

    #[test]
    fn a_run_is_counted_and_a_broken_one_says_how_to_repeat_it() {
        let folder = TemporaryFolder::new("fuzzed");
        let run = |script| {
            let fuzzers = stand_ins(&folder, &[(&TARGETS[0], script)]);
            fuzzers.run(&Run { target: &TARGETS[0], seconds: 1, seed: 7 }).unwrap()
        };
        let fine = run("test $1 = -seed=7 && echo 'stat::number_of_executed_units: 1234'");
        assert_eq!((fine.inputs, fine.failure), (1234, None));
        let place = folder.display();
        let broken = run("echo '; Test unit written to /some/where/crash-1'; exit 77").failure.unwrap();
        assert_eq!(
            broken,
            format!(
                "; Test unit written to /some/where/crash-1\nfuzz target chat, seed 7: exit status: 77\n\
                 again with: {place}/chat /some/where/crash-1"
            )
        );
        // The last 40 lines are shown.
        let long = run("n=0; while [ $n -lt 41 ]; do n=$((n+1)); echo $n; done; exit 1").failure.unwrap();
        let shown: String = (2..=41).map(|number| format!("{number}\n")).collect();
        assert_eq!(long, format!("{shown}fuzz target chat, seed 7: exit status: 1"));
    }

    #[test]
    fn all_targets_run_whichever_breaks() {
        let folder = TemporaryFolder::new("all");
        let targets = &TARGETS[..3];
        let scripts = ["echo one; exit 1", "exit 0", "echo three; exit 3"];
        let some: Vec<(&Target, &str)> = targets.iter().zip(scripts).collect();
        let fuzzers = stand_ins(&folder, &some);
        let all: Vec<&Target> = targets.iter().collect();
        let said = |targets: &[&Target]| fuzzers.run_all(targets, 1, 7).map_err(|error| error.to_string());
        assert_eq!(
            said(&all),
            Err("one\nfuzz target chat, seed 7: exit status: 1\n\
                 three\nfuzz target container, seed 7: exit status: 3"
                .to_owned())
        );
        assert_eq!(said(&all[1..2]), Ok(()));
    }

    /// What programs answer that a build starts: whether each is there and succeeds.
    struct Machine {
        has_compiler: bool,
        has_nightly: bool,
        compiles: bool,
    }

    /// What a build did there.
    struct Built {
        fuzzers: Result<Option<Fuzzers>, String>,
        skips: String,
        /// The command that compiles, and its flags.
        compiled: Option<(String, String)>,
    }

    fn build_on(machine: &Machine) -> Built {
        let compiled = RefCell::new(None);
        let start = |command: &mut Command| {
            let program = command.get_program().to_string_lossy().into_owned();
            let arguments: Vec<_> = command.get_args().map(|one| one.to_string_lossy()).collect();
            let line = arguments.join(" ");
            let is_there = match (program.as_str(), line.as_str()) {
                ("c++", "--version") => machine.has_compiler,
                ("rustup", "run nightly cargo --version") => machine.has_nightly,
                (_, "-vV") => true,
                _ => {
                    let (_, flags) = command.get_envs().find(|(name, _)| *name == "RUSTFLAGS").unwrap();
                    let flags = flags.unwrap().to_string_lossy().into_owned();
                    *compiled.borrow_mut() = Some((format!("{program} {line}"), flags));
                    machine.compiles
                }
            };
            let status = ExitStatus::from_raw(i32::from(!is_there) << 8);
            let stdout = b"rustc 1.99.0\nhost: made-up-triple\n".to_vec();
            Ok(Output { status, stdout, stderr: Vec::new() })
        };
        let mut skips = Skips::default();
        let fuzzers = build(&start, &mut skips).map_err(|error| error.to_string());
        Built { fuzzers, skips: skips.to_string(), compiled: compiled.into_inner() }
    }

    const FULL: Machine = Machine { has_compiler: true, has_nightly: true, compiles: true };

    #[test]
    fn targets_are_built_with_what_is_there() {
        let root = env!("CARGO_MANIFEST_DIR");
        let arguments = format!(
            "build --release --locked --quiet --manifest-path {root}/../fuzz/Cargo.toml \
             --target made-up-triple --target-dir {root}/../target/fuzz"
        );
        let kept = Path::new(root).join("../target/fuzz");
        let full = build_on(&FULL);
        let fuzzers = full.fuzzers.unwrap().unwrap();
        assert_eq!((fuzzers.folder, &fuzzers.kept), (kept.join("made-up-triple/release"), &kept));
        let command = format!("rustup run nightly cargo {arguments}");
        let flags = format!("{COVERAGE_FLAGS} -Zsanitizer=address");
        assert_eq!((full.skips.as_str(), full.compiled), ("== skipped: 0\n", Some((command, flags))));

        let stable = build_on(&Machine { has_nightly: false, ..FULL });
        assert!(stable.fuzzers.unwrap().is_some());
        let told = "   skipped: fuzz, AddressSanitizer: rustup has no nightly toolchain\n== skipped: 1\n";
        let command = format!("{} {arguments}", process::cargo_program());
        let flags = COVERAGE_FLAGS.to_owned();
        assert_eq!((stable.skips.as_str(), stable.compiled), (told, Some((command, flags))));

        let bare = build_on(&Machine { has_compiler: false, ..FULL });
        assert!(bare.fuzzers.unwrap().is_none());
        let told = "   skipped: fuzz: no C++ compiler (c++), which libFuzzer is built with\n== skipped: 1\n";
        assert_eq!((bare.skips.as_str(), bare.compiled), (told, None));

        let broken = build_on(&Machine { compiles: false, ..FULL });
        let error = broken.fuzzers.err().unwrap();
        assert_eq!(error, "the fuzz targets do not compile (exit status: 1)");
    }

    /// A machine on which no program starts.
    fn nothing_starts(_: &mut Command) -> std::io::Result<Output> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    #[test]
    fn a_command_without_a_compiler_fails_and_a_pass_records_it() {
        let said = |name: &str| {
            let arguments = FuzzArguments { seconds: 1, target: Some(name.into()), seed: 1 };
            run(&nothing_starts, &arguments).unwrap_err().to_string()
        };
        assert_eq!(said("gguf"), "the targets cannot be built here");
        let all = "chat, code_object, container, gguf, golden, isa_decode, machine_code, pm4_stream, print, program, \
                   safetensors, script, topology";
        assert_eq!(said("guff"), format!("there is no such target; the targets are: {all}"));
        let names =
            |name| chosen(name).unwrap().iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        assert_eq!((names(Some("gguf")).as_str(), names(None).as_str()), ("gguf", all));

        let mut skips = Skips::default();
        assert!(pass(&nothing_starts, 1, &mut skips).is_ok());
        assert!(skips.to_string().contains("skipped: fuzz: no C++ compiler"), "{skips}");
    }
}
