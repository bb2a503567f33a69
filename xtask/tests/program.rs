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
