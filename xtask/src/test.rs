//! `cargo xtask test`: everything that must hold, in one command.
//!
//! Contract: runs format, lints, tidy, drift checks, the workspace's tests and the packet conformance run on the
//! virtual device, in that order, and stops at the first failure. A drift check whose tool is absent says so; with
//! `ZRT_REQUIRE_LLVM` set it fails instead, because a skipped case is not a passed one.

use clap::Args;
use std::error::Error;
use std::process::Command;
use std::time::Instant;

/// Options of `xtask test`.
#[derive(Args)]
pub struct TestArguments {
    /// Only the workspace's tests: no format, lint, drift or conformance run.
    #[arg(long)]
    only_tests: bool,
}

/// One step: what it is called and the command line.
struct Stage {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    /// A program without which the stage cannot run, where that is allowed.
    needs: Option<&'static str>,
}

/// Environment variable that turns absent tools into failures.
const REQUIRE_LLVM: &str = "ZRT_REQUIRE_LLVM";

/// Runs the stages.
pub fn run(arguments: &TestArguments) -> Result<(), Box<dyn Error>> {
    let tests = cargo("tests", &["test", "--workspace", "--quiet"]);
    if arguments.only_tests {
        return run_stage(&tests);
    }
    run_stage(&cargo("format", &["fmt", "--all", "--check"]))?;
    println!("== tidy");
    crate::tidy::run()?;
    run_stage(&cargo(
        "lints",
        &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    ))?;
    run_stage(&task("kernel drift", &["asm", "--check"], Some("llvm-mc-19")))?;
    if std::env::var_os("ZRT_UAPI").is_some() {
        run_stage(&task("binding drift", &["uapi", "--check"], None))?;
    } else {
        println!("== binding drift: not checked, ZRT_UAPI is not set");
    }
    run_stage(&tests)?;
    run_stage(&task("packet conformance", &["pm4-test", "--device", "virtual"], None))
}

fn cargo(name: &'static str, arguments: &[&str]) -> Stage {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    Stage { name, program, arguments: arguments.iter().map(|one| (*one).to_owned()).collect(), needs: None }
}

fn task(name: &'static str, arguments: &[&str], needs: Option<&'static str>) -> Stage {
    let mut stage = cargo(name, &["xtask"]);
    stage.arguments.extend(arguments.iter().map(|one| (*one).to_owned()));
    Stage { needs, ..stage }
}

fn run_stage(stage: &Stage) -> Result<(), Box<dyn Error>> {
    if let Some(tool) = stage.needs.filter(|tool| !is_present(tool)) {
        if std::env::var_os(REQUIRE_LLVM).is_some() {
            return Err(
                format!("{}: {tool} is not installed, and {REQUIRE_LLVM} asks for it", stage.name).into()
            );
        }
        println!("== {}: not checked, {tool} is not installed", stage.name);
        return Ok(());
    }
    println!("== {}", stage.name);
    let started = Instant::now();
    let status = Command::new(&stage.program).args(&stage.arguments).status()?;
    if !status.success() {
        return Err(format!("{} failed ({status})", stage.name).into());
    }
    println!("   {} took {:.1} s", stage.name, started.elapsed().as_secs_f64());
    Ok(())
}

fn is_present(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}
