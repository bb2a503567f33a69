//! Passes that compile in another way than the suite.
//!
//! Contract: each builds `--locked` and records what it cannot do for lack of a toolchain.

use super::binaries::{self, Job, Surroundings, build};
use super::left_out::Part;
use super::skips::Skips;
use super::{scratch_folder, target_folder};
use std::error::Error;
use std::process::{Command, Stdio};

/// Crates whose unit tests run as delivered: those that compute or read formats. `vgpu` is not among them: it is
/// optimised in the first pass too, and takes two minutes of processor time to compile.
const RELEASE_CRATES: &[&str] = &["zrt-isa", "zrt-mem", "zrt-pm4", "zrt-loader", "zrt-engine"];
/// What the release profile has of its own, as far as one crate can have it. The profile itself would compile every
/// dependency once more; optimisation across crates (LTO) is what this pass does without.
const AS_DELIVERED: &[(&str, &str)] =
    &[("opt-level", "3"), ("overflow-checks", "false"), ("debug-assertions", "false")];

/// Linked only because the engine is, and not called by these unit tests: compiled quickly.
const UNUSED: &[&str] = &[
    "profile.dev.package.zrt-vgpu.opt-level=0",
    "profile.dev.package.zrt-vgpu.codegen-units=16",
    "profile.dev.package.zrt-device.opt-level=0",
];

/// Tests compiled as the delivered programs are.
pub fn release(skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let settings = RELEASE_CRATES.iter().flat_map(|name| {
        AS_DELIVERED
            .iter()
            .map(move |(setting, value)| format!("profile.dev.package.{name}.{setting}={value}"))
    });
    let settings: Vec<String> = settings.chain(UNUSED.iter().map(|setting| (*setting).to_owned())).collect();
    let packages = RELEASE_CRATES.iter().flat_map(|name| ["--package", name]);
    let configuration = settings.iter().flat_map(|setting| ["--config", setting]);
    let what: Vec<&str> = ["--lib"].into_iter().chain(packages).chain(configuration).collect();
    let tests = build(&what)?;
    let surroundings = surroundings("release");
    let job = |binary| Job { binary, arguments: &[], surroundings: &surroundings };
    let jobs: Vec<Job<'_>> = tests.iter().map(job).collect();
    skips.pass("release", &binaries::run(&jobs)?);
    Ok(())
}

/// Benchmarks, compiled as tests are and run once.
pub fn benches(skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let built = build(&["--workspace", "--benches"])?;
    let surroundings = surroundings("benches");
    let job = |binary| Job { binary, arguments: &["--test"], surroundings: &surroundings };
    let jobs: Vec<Job<'_>> = built.iter().filter(|one| one.is_bench).map(job).collect();
    if jobs.is_empty() {
        return Err("cargo named no benchmark: the form of its messages has changed".into());
    }
    skips.pass("benches", &binaries::run(&jobs)?);
    Ok(())
}

fn surroundings(pass: &str) -> Surroundings<'static> {
    Surroundings {
        environment: &[],
        label: "",
        output_folder: scratch_folder().join(pass),
        part: Part::Short,
    }
}

/// The toolchain of `rust-version` in Cargo.toml: its first release.
fn oldest_toolchain() -> String {
    let version = env!("CARGO_PKG_RUST_VERSION");
    if version.split('.').count() == 2 { format!("{version}.0") } else { version.to_owned() }
}

fn rustup_rustc(toolchain: &str) -> Command {
    let mut rustc = Command::new("rustup");
    rustc.args(["run", toolchain, "rustc"]);
    rustc
}

/// What a compiler says of itself: version, commit and host.
fn version_of(mut rustc: Command) -> Option<String> {
    let output = rustc.arg("-vV").output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Everything that is delivered is checked by the oldest compiler; what only tests use is not.
pub fn minimum_rust(skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    let toolchain = oldest_toolchain();
    let mut version = Command::new("rustup");
    version.args(["run", &toolchain, "cargo", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        let reason = format!(
            "rustup has no toolchain {toolchain}: `rustup toolchain install {toolchain} --profile minimal`"
        );
        skips.stage("minimum-rust", &reason);
        return Ok(());
    }
    let mut check = Command::new("rustup");
    check.args(["run", &toolchain, "cargo", "check", "--locked", "--workspace", "--quiet"]);
    let is_in_use = version_of(Command::new("rustc"))
        .is_some_and(|version| version_of(rustup_rustc(&toolchain)) == Some(version));
    // The compiler in use shares what the lints compile.
    if !is_in_use {
        // Of the compiled code only macros run.
        check.args(["--config", "profile.dev.package.\"*\".opt-level=0", "--target-dir"]);
        check.arg(target_folder().join("minimum-rust"));
    }
    // Set by the cargo that started us, and of another version.
    check.env_remove("RUSTC").env_remove("RUSTDOC").env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    let status = check.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("Rust {toolchain} does not compile the workspace ({status})").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_oldest_toolchain_is_the_first_of_its_version() {
        let manifest =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).unwrap();
        let named = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
        assert!(oldest_toolchain().starts_with(named.trim_matches('"')), "{named}");
        assert_eq!(oldest_toolchain().split('.').count(), 3);
    }
}
