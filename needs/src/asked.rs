//! Tests of what a case is given in a made-up environment, asked in a process of its own: the public functions read the
//! environment of the process.

use crate::TemporaryFolder;
use std::path::Path;
use std::process::Command;

/// The case that asks.
const ASKING: &str = "asked::everything_is_asked_for";

/// Prints what is given, a line for each question.
#[test]
#[ignore = "run by the other cases, in their environments"]
fn everything_is_asked_for() {
    // The harness has begun a line.
    println!("\nmodels {:?}", crate::models());
    println!("smollm2 {:?}", crate::smollm2());
    println!("headers {:?}", crate::headers());
    println!("model {:?}", crate::model("a.gguf"));
    println!("programs {:?}", crate::programs(&["zrt-made-up"]));
    println!("nightly {:?}", crate::nightly_core());
    crate::refused_by_the_system("it says no");
}

/// What the asking case says with these variables beside a path of just `folder`, and the record of what it lacks.
fn ask(folder: &Path, variables: &[(&str, &str)]) -> (Vec<String>, String) {
    let record = folder.join("record");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", ASKING, "--ignored", "--nocapture", "--test-threads", "1"]);
    for name in [crate::MODELS, crate::HEADERS, crate::SMOLLM2, crate::REQUIRE_LLVM] {
        command.env_remove(name);
    }
    command.env("PATH", folder).env(crate::SKIPS, &record).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let answers = ["models ", "smollm2 ", "headers ", "model ", "programs ", "nightly "];
    let is_answer = |line: &&str| answers.iter().any(|answer| line.starts_with(answer));
    (said.lines().filter(is_answer).map(str::to_owned).collect(), std::fs::read_to_string(record).unwrap())
}

/// A variable that is empty is as good as none.
#[test]
fn a_bare_environment_gives_nothing_and_each_lack_is_recorded() {
    let folder = TemporaryFolder::new("bare");
    for variables in [&[][..], &[(crate::MODELS, ""), (crate::HEADERS, ""), (crate::REQUIRE_LLVM, "")]] {
        std::fs::remove_file(folder.join("record")).ok();
        let (given, record) = ask(&folder, variables);
        let nothing =
            ["models None", "smollm2 None", "headers None", "model None", "programs false", "nightly false"];
        assert_eq!(given, nothing);
        let lacks = [
            "ZRT_MODELS names no folder of further models",
            "ZRT_SMOLLM2 names no file",
            "ZRT_UAPI names no folder of kernel headers",
            "a.gguf is not in the repository, and ZRT_MODELS is not set",
            "not installed: zrt-made-up",
            "not installed: a nightly Rust with rust-src",
            "it says no",
        ];
        assert_eq!(record, lacks.map(|lack| format!("{ASKING}\t{lack}\n")).concat());
    }
}

#[test]
fn an_environment_with_everything_gives_it() {
    let folder = TemporaryFolder::new("full");
    let path = folder.to_str().unwrap();
    let model = format!("{path}/a.gguf");
    std::fs::write(&model, "").unwrap();
    folder.program("zrt-made-up", "test \"$*\" = --version");
    folder.program("rustc", &format!("test \"$*\" = '+nightly --print sysroot' && echo {path}"));
    let fetched = format!(
        "+nightly fetch --locked --quiet --manifest-path {path}/lib/rustlib/src/rust/library/Cargo.toml"
    );
    folder.program("cargo", &format!("test \"$*\" = '{fetched}'"));
    let variables =
        [(crate::MODELS, path), (crate::HEADERS, path), (crate::SMOLLM2, &model), (crate::REQUIRE_LLVM, "1")];
    let expected = |nightly| {
        [
            format!("models Some({path:?})"),
            format!("smollm2 Some({model:?})"),
            format!("headers Some({path:?})"),
            format!("model Some({model:?})"),
            "programs true".to_owned(),
            format!("nightly {nightly}"),
        ]
    };
    // The nightly is there without its sources.
    let (given, record) = ask(&folder, &variables);
    assert_eq!(given, expected(false));
    assert!(record.contains("not installed: a nightly Rust with rust-src\n"), "{record}");
    let core = folder.join("lib/rustlib/src/rust/library/core/src");
    std::fs::create_dir_all(&core).unwrap();
    std::fs::write(core.join("lib.rs"), "").unwrap();
    std::fs::remove_file(folder.join("record")).unwrap();
    let (given, record) = ask(&folder, &variables);
    assert_eq!(given, expected(true));
    assert_eq!(record, format!("{ASKING}\tit says no\n"));
    folder.program("cargo", "exit 1");
    let (given, record) = ask(&folder, &variables);
    assert_eq!(given, expected(false));
    assert!(record.contains("cargo cannot fetch what the nightly's sources"), "{record}");
}
