//! `cargo xtask pm4-test`: builds `zrt` and runs its `pm4-test`.
//!
//! Contract: the test itself is `zrt_tools::commands::pm4_test`; arguments are passed on as they are.

use crate::process;
use clap::Args;
use std::error::Error;
use std::ffi::OsString;

/// Arguments of cargo that run the packet test; what follows them is for the test.
pub const ARGUMENTS_OF_CARGO: &[&str] =
    &["run", "--locked", "--quiet", "--package", "zrt-tools", "--bin", "zrt", "--", "pm4-test"];

/// Arguments of `cargo xtask pm4-test`.
#[derive(Args, Debug)]
pub struct Pm4TestArguments {
    /// Arguments of `zrt pm4-test`; `-- --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs it.
pub fn run(arguments: &Pm4TestArguments) -> Result<(), Box<dyn Error>> {
    let status = process::cargo().args(ARGUMENTS_OF_CARGO).args(&arguments.arguments).status()?;
    if !status.success() {
        return Err(format!("zrt pm4-test failed ({status})").into());
    }
    Ok(())
}
