//! Whole runs of `cargo xtask test` on a made-up machine: cargo, compilers and test binaries are scripts that write
//! down how they were started. The command runs in a process of its own, since it reads the process's environment.

use super::left_out::LEFT_OUT;
use super::passes::{PASSES, REST};
use super::*;
use clap::Parser;
use std::collections::BTreeSet;
use zrt_needs::TemporaryFolder;

/// The case that is the command.
const COMMAND: &str = "test::tests::the_command";
/// Its environment variable: the arguments, with blanks between them.
const ARGUMENTS: &str = "ZRT_MADE_UP_ARGUMENTS";

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    test: TestArguments,
}

#[test]
#[ignore = "started by the other cases, on their machines"]
fn the_command() {
    let Ok(words) = std::env::var(ARGUMENTS) else { return };
    let words = Words::parse_from(std::iter::once("test").chain(words.split_ascii_whitespace()));
    // The harness has begun a line.
    println!();
    match run(&words.test) {
        Ok(()) => println!("ended well"),
        Err(error) => println!("ended: {error}"),
    }
}

/// Where every program that the command starts is a script.
struct Machine(TemporaryFolder);

/// What a run did.
#[derive(Debug)]
struct Ran {
    /// The error; empty if there is none.
    error: String,
    /// What it printed before.
    printed: String,
    /// The programs that it started, in order, with their arguments.
    started: Vec<String>,
}

impl Ran {
    /// What was started by this name.
    fn of(&self, name: &str) -> Vec<&str> {
        let with_name = |line: &&str| line.split(' ').next() == Some(name);
        self.started.iter().map(String::as_str).filter(with_name).collect()
    }

    /// What it skipped, with the reasons.
    fn skipped(&self) -> Vec<&str> {
        self.printed.lines().filter_map(|line| line.strip_prefix("   skipped: ")).collect()
    }

    /// The test binaries, which run side by side, with their arguments.
    fn tests(&self) -> BTreeSet<String> {
        self.of("test").iter().map(|line| line["test ".len()..].trim_end().to_owned()).collect()
    }
}

/// Cargo compiles what lies there.
const CARGO: &str = r#"case "$*" in
  *--no-run*--benches) /bin/cat benches ;;
  *--no-run*--lib*) /bin/cat libraries ;;
  *--no-run*) /bin/cat tests ;;
esac"#;
/// A nightly with Miri, and the oldest toolchain.
const RUSTUP: &str = r#"case "$*" in
  *"rustc -vV") /bin/cat oldest ;;
  *"miri test"*) echo "test result: ok. 2 passed; 0 failed" ;;
esac"#;
const RUSTC: &str = "/bin/cat FOLDER/default";
/// A test binary lists its cases, or skips what it is told to.
const TEST: &str = r#"name=${0##*/}
case "$1" in
  --list) exec /bin/cat FOLDER/cases/$name ;;
esac
echo "test $name $*${ZRT_VIRTUAL_FILL:+ filled $ZRT_VIRTUAL_FILL}" >> FOLDER/log
test ! -e FOLDER/skips || /bin/cat FOLDER/skips >> "$ZRT_SKIPS""#;

impl Machine {
    /// With all tests that any table names, and these programs beside cargo, rustup and rustc.
    fn new(tools: &[&str]) -> Machine {
        let machine = Machine(TemporaryFolder::new("machine"));
        for folder in ["bin", "debug/deps", "cases", "crates"] {
            std::fs::create_dir_all(machine.0.join(folder)).unwrap();
        }
        machine.put("oldest", "1.1");
        machine.put("default", "1.2");
        for tool in tools.iter().chain(&["mkfifo"]) {
            machine.program(&format!("bin/{tool}"), ":");
        }
        machine.program("bin/cargo", &with_record("cargo", CARGO));
        machine.program("bin/rustup", &with_record("rustup", RUSTUP));
        machine.program("bin/rustc", RUSTC);
        machine.program("debug/zrt", &with_record("zrt", ":"));
        machine.program("test", TEST);
        let targets: Vec<(String, Vec<&str>)> = targets().into_iter().collect();
        let tests = targets.iter().map(|(target, cases)| machine.compiled(target, "test", cases));
        machine.put("tests", &tests.collect::<Vec<_>>().concat());
        let library = machine.compiled("mem/zrt_mem", "lib", &["a_case"]);
        machine.put("benches", &(machine.compiled("mem/copies", "bench", &[]) + &library));
        machine.put("libraries", &library);
        machine
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// Puts a script there.
    fn program(&self, name: &str, script: &str) {
        self.0.program(name, &script.replace("FOLDER", self.0.to_str().unwrap()));
    }

    /// Cargo's message about a test target with these cases.
    fn compiled(&self, name: &str, kind: &str, cases: &[&str]) -> String {
        let (krate, target) = name.split_once('/').unwrap();
        let own = format!("{krate}-{target}");
        let executable = self.0.join("debug/deps").join(&own);
        std::fs::create_dir_all(self.0.join("crates").join(krate)).unwrap();
        if !executable.exists() {
            std::os::unix::fs::symlink(self.0.join("test"), &executable).unwrap();
            let listed: Vec<String> = cases.iter().map(|case| format!("{case}: test\n")).collect();
            self.put(&format!("cases/{own}"), &listed.concat());
        }
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": self.0.join("crates").join(krate).join("Cargo.toml"),
            "target": { "kind": [kind], "name": target },
            "profile": { "test": true },
            "executable": executable,
        });
        format!("{message}\n")
    }

    /// Runs the command with these arguments and variables.
    fn run(&self, words: &str, variables: &[(&str, &str)]) -> Ran {
        std::fs::write(self.0.join("log"), "").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", COMMAND, "--ignored", "--nocapture", "--test-threads", "1"])
            .current_dir(&*self.0);
        for name in [REQUIRE_LLVM, "ZRT_REQUIRE_MIRI", "ZRT_SKIPS", "ZRT_VIRTUAL_FILL", "RUSTDOCFLAGS"] {
            command.env_remove(name);
        }
        command.env("PATH", self.0.join("bin")).env("CARGO", self.0.join("bin/cargo")).env(ARGUMENTS, words);
        let output =
            command.env("CARGO_TARGET_DIR", "target").envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (printed, error) = match said.split_once("\nended well\n") {
            Some((printed, _)) => (printed, ""),
            None => said.split_once("\nended: ").unwrap_or_else(|| panic!("{said}")),
        };
        let error =
            error.split("\nok\n").next().unwrap_or(error).split("\ntest ").next().unwrap_or(error).trim_end();
        let started = std::fs::read_to_string(self.0.join("log")).unwrap();
        let started = started.lines().map(str::to_owned).collect();
        Ran { error: error.to_owned(), printed: printed.to_owned(), started }
    }
}

/// A script that writes its command line down.
fn with_record(name: &str, script: &str) -> String {
    format!("cd FOLDER\necho \"{name} $*${{RUSTDOCFLAGS:+ with $RUSTDOCFLAGS}}\" >> log\n{script}")
}

/// All targets that a table names, with cases for all filters of the tables and one more.
fn targets() -> std::collections::BTreeMap<String, Vec<&'static str>> {
    let mut targets = std::collections::BTreeMap::new();
    let mut add = |target: &str, names: &[&'static str]| {
        let cases = targets.entry(target.to_owned()).or_insert_with(|| vec!["a_case"]);
        cases.extend(names.iter().filter(|name| !name.starts_with("--")));
    };
    LEFT_OUT.iter().for_each(|row| add(row.target, row.names));
    for pass in PASSES.iter().chain(REST) {
        if let Does::Again { targets, .. } = &pass.does {
            targets.iter().for_each(|(target, arguments)| add(target, arguments));
        }
    }
    LONG_TARGETS.iter().for_each(|target| add(target, &[]));
    targets
}

/// What the log has of a target that a run starts with these arguments.
fn line(target: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|one| format!(" {one}")).collect();
    target.replace('/', "-") + &arguments.concat()
}

/// Every test, without what is left out.
fn short_run() -> BTreeSet<String> {
    targets().keys().map(|target| line(target, &Part::Short.arguments(target))).collect()
}

const COMPILING: &str = "cargo test --locked --no-run --quiet --message-format=json-render-diagnostics";
const TOOLS: &[&str] = &["cargo-deny", "llvm-mc-19", "clang-19", "clang-22"];

#[test]
fn a_run_has_all_stages_in_their_order() {
    let ran = Machine::new(TOOLS).run("", &[]);
    assert_eq!(ran.error, "", "{}", ran.printed);
    let compiling = format!("{COMPILING} --workspace");
    let cargo = [
        "cargo fmt --all --check",
        "cargo xtask tidy",
        "cargo clippy --locked --workspace --all-targets --quiet -- -D warnings",
        "cargo doc --locked --workspace --no-deps --quiet with -D warnings",
        "cargo deny --locked --offline check --hide-inclusion-graph bans licenses sources",
        "cargo xtask asm --check",
        compiling.as_str(),
        "cargo test --locked --workspace --doc --quiet",
    ];
    assert_eq!(ran.of("cargo"), cargo);
    assert_eq!(ran.tests(), short_run());
    assert_eq!(ran.started.last().unwrap(), "zrt pm4-test --device virtual");
    assert_eq!(ran.started.len(), cargo.len() + short_run().len() + 1);
    let left_out: usize = LEFT_OUT.iter().map(|row| row.names.len()).sum();
    let end = format!("   left to `cargo xtask test --long`: {left_out} cases\n== skipped: 0");
    assert!(ran.printed.ends_with(&end), "{}", ran.printed);
}

#[test]
fn a_run_of_the_tests_alone_tells_what_they_took_and_skipped() {
    let machine = Machine::new(&[]);
    machine.put("skips", "a_case\tno model\n");
    let ran = machine.run("--only-tests", &[]);
    assert_eq!((ran.error.as_str(), ran.tests()), ("", short_run()));
    let compiling = format!("{COMPILING} --workspace");
    let cargo = [compiling.as_str(), "cargo test --locked --workspace --doc --quiet"];
    assert_eq!(ran.of("cargo"), cargo);
    assert!(ran.of("zrt").is_empty());
    let skipped: Vec<String> = targets().keys().map(|target| format!("{target}::a_case: no model")).collect();
    assert_eq!(ran.skipped(), skipped);
    let took = ran.printed.lines().find_map(|line| line.strip_prefix("   compiling took ")).unwrap();
    let (clock, processors) = took.strip_suffix(" s of processor time").unwrap().split_once(" s, ").unwrap();
    assert!([clock, processors].iter().all(|seconds| seconds.parse::<f64>().is_ok()), "{took}");
    assert!(machine.0.join("target/passes/output/engine-gguf.txt").is_file());
}

#[test]
fn what_is_not_installed_is_skipped_or_fails_if_it_is_promised() {
    let machine = Machine::new(&[]);
    let ran = machine.run("", &[]);
    assert_eq!(ran.error, "");
    let lacks = ["dependencies: cargo-deny is not installed", "kernel drift: llvm-mc-19 is not installed"];
    assert_eq!(ran.skipped(), lacks);
    assert!(!ran.started.iter().any(|line| line.starts_with("cargo xtask asm")));
    let ran = machine.run("", &[(REQUIRE_LLVM, "1")]);
    assert_eq!(ran.error, "kernel drift: llvm-mc-19 is not installed, and ZRT_REQUIRE_LLVM asks for it");
    assert_eq!(ran.tests(), BTreeSet::new());
}

#[test]
fn the_first_failure_ends_the_run() {
    let machine = Machine::new(&[]);
    let failing = |command: &str| {
        let script = format!("case \"$*\" in \"{command}\"*) exit 3 ;; esac\n{CARGO}");
        machine.program("bin/cargo", &with_record("cargo", &script));
        let ran = machine.run("", &[]);
        assert!(ran.started.last().unwrap().starts_with(&format!("cargo {command}")), "{ran:?}");
        ran.error
    };
    assert_eq!(failing("fmt"), "format failed (exit status: 3)");
    assert_eq!(failing("xtask tidy"), "tidy failed (exit status: 3)");
    assert_eq!(failing("test --locked --no-run"), "the tests do not compile (exit status: 3)");
    machine.put("tests", "");
    machine.program("bin/cargo", &with_record("cargo", CARGO));
    let error = machine.run("", &[]).error;
    assert_eq!(error, "cargo named no test binary: the form of its messages has changed");
}

#[test]
fn a_pass_alone_runs_its_targets_in_its_environment() {
    let machine = Machine::new(&[]);
    let ran = machine.run("--pass fill", &[]);
    assert_eq!(ran.error, "", "{}", ran.printed);
    assert_eq!(ran.of("cargo"), [format!("{COMPILING} --workspace")]);
    let tests = [
        "bringup-zrt_bringup --skip each_planted_fault filled 00000001".to_owned(),
        "tests-sessions filled 00000001".to_owned(),
    ];
    let blank = |line: String| line.replace("  ", " ");
    assert_eq!(ran.tests().into_iter().map(blank).collect::<Vec<_>>(), tests);
    assert!(machine.0.join("target/passes/fill/output/tests-sessions.txt").is_file());
    machine.put("cases/bringup-zrt_bringup", "another: test\n");
    let none = "pass fill: no case of bringup/zrt_bringup has each_planted_fault in its name";
    assert_eq!(machine.run("--pass fill", &[]).error, none);
    let messages = std::fs::read_to_string(machine.0.join("tests")).unwrap();
    let others: Vec<&str> = messages.lines().filter(|line| !line.contains("zrt_bringup")).collect();
    machine.put("tests", &others.join("\n"));
    assert_eq!(
        machine.run("--pass fill", &[]).error,
        "pass fill: there is no test target bringup/zrt_bringup"
    );
    let unknown = machine.run("--pass unheard-of", &[]).error;
    assert!(unknown.starts_with("no pass is called unheard-of; the passes are: bare, fill, "), "{unknown}");
}

#[test]
fn benchmarks_and_optimised_libraries_are_compiled_apart_and_run() {
    let machine = Machine::new(&[]);
    machine.put("skips", "a_case\tno model\n");
    let ran = machine.run("--pass benches", &[]);
    assert_eq!(
        (ran.error.as_str(), ran.of("cargo")),
        ("", vec![format!("{COMPILING} --workspace --benches").as_str()])
    );
    assert_eq!(ran.of("test"), ["test mem-copies --test"]);
    assert_eq!(ran.skipped(), ["mem/copies::a_case: no model"]);
    let ran = machine.run("--pass release", &[]);
    let cargo = ran.of("cargo").concat();
    assert!(cargo.starts_with(&format!("{COMPILING} --lib --package ")), "{cargo}");
    assert!(cargo.contains(" --config profile.dev.package.zrt-mem.overflow-checks=false"), "{cargo}");
    assert_eq!((ran.error.as_str(), ran.of("test")), ("", vec!["test mem-zrt_mem "]));
    assert_eq!(ran.skipped(), ["mem/zrt_mem::a_case: no model"]);
    machine.put("benches", &std::fs::read_to_string(machine.0.join("libraries")).unwrap());
    let none = "cargo named no benchmark: the form of its messages has changed";
    assert_eq!(machine.run("--pass benches", &[]).error, none);
}

/// The version in this workspace's manifest, with which the toolchain is named.
fn oldest() -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let named = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    format!("{}.0", named.trim_matches('"'))
}

#[test]
fn the_oldest_compiler_has_a_folder_of_its_own_unless_it_is_in_use() {
    let machine = Machine::new(&[]);
    let check = format!("rustup run {} cargo check --locked --workspace --quiet", oldest());
    let apart = format!(
        "{check} --config profile.dev.package.\"*\".opt-level=0 --target-dir {}",
        std::fs::canonicalize(&machine.0).unwrap().join("target/minimum-rust").display()
    );
    let ran = machine.run("--pass minimum-rust", &[]);
    assert_eq!((ran.error.as_str(), ran.started.last()), ("", Some(&apart)));
    machine.put("default", "1.1");
    let ran = machine.run("--pass minimum-rust", &[]);
    assert_eq!((ran.error.as_str(), ran.started.last()), ("", Some(&check)));
    // Neither tells its version.
    machine.program("bin/rustc", "exit 1");
    machine.program("bin/rustup", &with_record("rustup", "case \"$*\" in *-vV) exit 1 ;; esac"));
    assert_eq!(machine.run("--pass minimum-rust", &[]).started.last(), Some(&apart));
    machine.program("bin/rustup", "case \"$*\" in *check*) exit 3 ;; esac");
    let failed = format!("Rust {} does not compile the workspace (exit status: 3)", oldest());
    assert_eq!(machine.run("--pass minimum-rust", &[]).error, failed);
    machine.program("bin/rustup", &with_record("rustup", "exit 1"));
    let ran = machine.run("--pass minimum-rust", &[]);
    let absent = format!(
        "minimum-rust: rustup has no toolchain {0}: `rustup toolchain install {0} --profile minimal`",
        oldest()
    );
    assert_eq!((ran.error.as_str(), ran.skipped()), ("", vec![absent.as_str()]));
    assert_eq!(ran.started.len(), 1);
}

/// Rows of the subset; the harness's arguments are the table's.
fn is_miri_of_both(started: &[&str]) -> bool {
    let run = |package: &str| {
        format!("rustup run nightly cargo miri test --quiet --locked --package {package} --lib -- ")
    };
    let is_once = |package| started.iter().filter(|line| line.starts_with(&run(package))).count() == 1;
    let tests = started.iter().filter(|line| line.contains("miri test")).count();
    is_once("zrt-mem") && is_once("zrt-kmd") && tests == 2
}

#[test]
fn the_pass_of_miri_runs_its_subset() {
    let ran = Machine::new(&[]).run("--pass miri", &[]);
    assert_eq!(ran.error, "");
    assert!(is_miri_of_both(&ran.of("rustup")), "{ran:?}");
}

#[test]
fn all_passes_follow_the_suite_or_run_beside_it() {
    let ran = Machine::new(TOOLS).run("--only-tests --all-passes", &[]);
    assert_eq!(ran.error, "", "{}", ran.printed);
    assert!(ran.tests().is_superset(&short_run()), "{ran:?}");
    for pass in PASSES {
        assert!(ran.printed.contains(&format!("== pass {}: {}\n", pass.name, pass.about)), "{}", pass.name);
    }
    assert!(is_miri_of_both(&ran.of("rustup")), "{ran:?}");
    let compiled = ran.of("cargo").iter().filter(|line| line.contains("--no-run")).count();
    assert_eq!(compiled, 3, "the tests once, benchmarks and libraries");
    // Of one target: the suite, and the passes `bare`, `fill` and those of three kernels.
    assert_eq!(ran.of("test").iter().filter(|line| line.contains("bringup-zrt_bringup")).count(), 6);
    assert_eq!(ran.skipped(), ["fuzz: no C++ compiler (c++), which libFuzzer is built with"]);
}

#[test]
fn a_long_run_ends_with_what_takes_hours() {
    let ran = Machine::new(TOOLS).run("--long", &[]);
    assert_eq!(ran.error, "", "{}", ran.printed);
    let long: BTreeSet<String> = LEFT_OUT.iter().map(|row| line(row.target, row.names)).collect();
    assert!(ran.tests().is_superset(&long) && ran.tests().is_superset(&short_run()), "{ran:?}");
    for pass in PASSES.iter().chain(REST) {
        assert!(ran.printed.contains(&format!("== pass {}: {}\n", pass.name, pass.about)), "{}", pass.name);
    }
    let campaign = "cargo run --locked --quiet --release --package zrt-differential --";
    let last = [
        format!("{campaign} --check --clang both --programs 2000 --inputs 256 --seed 100001"),
        format!("{campaign} --mutants 240 --seed 500"),
        "test vgpu-zrt_vgpu switched_off --ignored --nocapture".to_owned(),
        "cargo xtask mutants".to_owned(),
    ];
    assert_eq!(ran.started[ran.started.len() - 4..], last);
    assert!(!ran.printed.contains("left to `cargo xtask test --long`"), "{}", ran.printed);
}

#[test]
fn a_long_run_without_a_compiler_skips_its_campaigns() {
    let machine = Machine::new(&["cargo-deny", "llvm-mc-19", "clang-19"]);
    let failing = TEST.replace("case \"$1\" in", "case \"$1\" in\n  switched_off) exit 7 ;;");
    machine.program("test", &failing);
    let ran = machine.run("--long", &[]);
    assert_eq!(ran.error, "vgpu/zrt_vgpu: exit status: 7");
    let absent =
        ["correct", "mutated"].map(|of| format!("differential, {of} programs: clang-22 is not installed"));
    let skipped = ran.skipped();
    assert!(absent.iter().all(|line| skipped.contains(&line.as_str())), "{skipped:?}");
    assert!(
        ran.of("cargo").iter().all(|line| !line.contains("zrt-differential") && !line.contains("mutants"))
    );
}
