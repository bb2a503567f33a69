//! `zrt-bench`: the text that a model writes, and how fast.
#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;
use zrt_tools::command_line::ZrtBench;
use zrt_tools::commands::{finish, measure};

fn main() -> ExitCode {
    finish(measure::run(&ZrtBench::parse().arguments), false)
}
