//! `zrt`: text from a model, and looking into what makes it.
#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;
use zrt_tools::command_line::Zrt;
use zrt_tools::commands;

fn main() -> ExitCode {
    match Zrt::try_parse() {
        Ok(line) => commands::finish(line.command.run(), commands::wants_json()),
        Err(error) => commands::refuse(&error),
    }
}
