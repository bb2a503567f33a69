//! The program as its users run it. Cargo, which it starts, is another program here: what it would do is not done.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use std::path::Path;
use std::process::{Command, Output};
use zrt_needs::TemporaryFolder;

/// The program with these arguments, where `cargo` takes the place of cargo.
fn xtask(cargo: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments).env("CARGO", cargo).env_remove("ZRT_UAPI").output().unwrap()
}

/// What it prints if it succeeds.
fn printed(cargo: &str, arguments: &[&str]) -> String {
    let output = xtask(cargo, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it prints if it fails.
fn complaint(cargo: &str, arguments: &[&str]) -> String {
    let output = xtask(cargo, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// An empty file, and its folder.
fn put(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
}

#[test]
fn the_packet_test_gets_its_arguments_as_they_are_and_its_failure_is_told() {
    let started = "run --locked --quiet --package zrt-tools --bin zrt -- pm4-test";
    assert_eq!(printed("echo", &["pm4-test"]), format!("{started}\n"));
    let further = ["pm4-test", "--device", "virtual", "--", "--help"];
    assert_eq!(printed("echo", &further), format!("{started} --device virtual -- --help\n"));
    assert_eq!(complaint("false", &["pm4-test"]), "xtask: zrt pm4-test failed (exit status: 1)\n");
}

#[test]
fn headers_that_are_not_there_are_told_before_anything_is_generated() {
    let folder = TemporaryFolder::new("headers");
    let told = "no kernel headers: set ZRT_UAPI to a folder with linux/kfd_ioctl.h and drm/amdgpu_drm.h";
    assert_eq!(complaint("true", &["uapi"]), format!("xtask: {told}\n"));
    for header in ["linux/kfd_ioctl.h", "drm/amdgpu_drm.h"] {
        let path = folder.join(header);
        let told = "does not exist: ZRT_UAPI must name the folder above linux/ and drm/";
        let found = complaint("true", &["uapi", "--check", "--headers", folder.to_str().unwrap()]);
        assert_eq!(found, format!("xtask: {} {told}\n", path.display()));
        put(&path);
    }
}

/// Without the feature the program runs again with it.
#[cfg(not(feature = "uapi"))]
#[test]
fn structures_are_generated_by_a_program_with_the_generator() {
    let folder = TemporaryFolder::new("uapi");
    ["linux/kfd_ioctl.h", "drm/amdgpu_drm.h"].iter().for_each(|header| put(&folder.join(header)));
    let headers = folder.to_str().unwrap();
    let started = format!("run --locked --quiet -p xtask --features uapi -- uapi --headers {headers}");
    assert_eq!(printed("echo", &["uapi", "--headers", headers]), format!("{started}\n"));
    assert_eq!(printed("echo", &["uapi", "--headers", headers, "--check"]), format!("{started} --check\n"));
    let failed = "xtask: `cargo run --package xtask --features uapi` failed\n";
    assert_eq!(complaint("false", &["uapi", "--headers", headers]), failed);
}

/// How `xtask miri` ends where rustup is this script: what it prints, and its complaint.
fn miri(script: &str, arguments: &[&str], required: Option<&str>) -> (String, String) {
    let folder = TemporaryFolder::new("rustup");
    folder.program("rustup", script);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("miri").args(arguments).env("PATH", &*folder).env_remove("ZRT_REQUIRE_MIRI");
    let output = command.envs(required.map(|value| ("ZRT_REQUIRE_MIRI", value))).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

const PASSED: &str = "case \"$*\" in *test*) echo 'test result: ok. 2 passed; 0 failed' ;; esac";

#[test]
fn miri_runs_every_row_or_the_subset() {
    let packages = |printed: &str| -> Vec<String> {
        printed
            .lines()
            .filter_map(|line| line.strip_prefix("   zrt-")?.split(' ').next().map(str::to_owned))
            .collect()
    };
    let (printed, complaint) = miri(PASSED, &[], None);
    assert_eq!(packages(&printed), ["mem", "kmd", "ring", "pm4", "isa", "loader"], "{complaint}");
    assert_eq!(printed.matches("   2 tests took ").count(), 6, "{printed}");
    assert!(printed.ends_with("== skipped: 0\n"), "{printed}");
    assert_eq!(packages(&miri(PASSED, &["--subset"], Some("1")).0), ["mem", "kmd"]);
}

#[test]
fn miri_fails_with_what_the_tests_said_and_where_none_ran() {
    let failed = "case \"$*\" in *test*) echo 'it is undefined'; exit 3 ;; esac";
    let said = "xtask: it is undefined\n\nMiri on zrt-mem failed (exit status: 3)\n";
    assert_eq!(miri(failed, &[], None).1, said);
    let none = "case \"$*\" in *test*) echo 'test result: ok. 0 passed; 0 failed' ;; esac";
    let said = "xtask: test result: ok. 0 passed; 0 failed\n\nMiri on zrt-mem: no test ran\n";
    assert_eq!(miri(none, &[], None).1, said);
}

#[test]
fn miri_that_is_absent_is_skipped_or_fails_if_it_is_promised() {
    let remedy = "`rustup toolchain install nightly --component miri --component rust-src`";
    let absent =
        format!("   skipped: miri: no nightly toolchain with Miri is installed: {remedy}\n== skipped: 1\n");
    assert_eq!(miri("exit 1", &[], None), (absent, String::new()));
    let promised = format!("xtask: Miri is not installed, and ZRT_REQUIRE_MIRI asks for it: {remedy}\n");
    assert_eq!(miri("exit 1", &[], Some("1")).1, promised);
}
