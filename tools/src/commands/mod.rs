//! The subcommands of `zrt`, one file or folder each, and `zrt-bench` (`measure`).
//!
//! Contract: a command writes its result to standard output and nothing else there; progress and remarks go to standard
//! error. It returns whether it achieved its purpose (`validate`: the two agree). With `--json` standard output is one
//! document, whatever happens.

pub mod chat;
pub mod completions;
pub mod disasm;
pub mod doctor;
pub mod error_document;
pub mod generate;
pub mod inspect;
pub mod launch;
pub mod lint;
pub mod man;
pub mod measure;
mod output;
pub mod perplexity;
pub mod plan;
pub mod pm4_test;
pub mod run;
pub mod step;
pub mod validate;

pub use output::{write_document, write_json, write_text};

use crate::error::ToolError;
use clap::ValueEnum;
use error_document::{ErrorDocument, ErrorReport};
use std::io::Write;
use zrt_engine::kv_format::KvFormat;
use zrt_isa::resources::WaveSize;

/// Lanes of a wave on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaveChoice {
    /// 32 lanes.
    #[value(name = "32")]
    Wave32,
    /// 64 lanes.
    #[value(name = "64")]
    Wave64,
}

impl From<WaveChoice> for WaveSize {
    fn from(choice: WaveChoice) -> WaveSize {
        match choice {
            WaveChoice::Wave32 => WaveSize::Wave32,
            WaveChoice::Wave64 => WaveSize::Wave64,
        }
    }
}

/// The format of keys and values of this name.
fn kv_format(name: &str) -> Result<KvFormat, String> {
    KvFormat::parse(name).ok_or_else(|| "there are f32, f16 and q8_0".to_owned())
}

/// Prints a failure and turns it into the exit code: also 0 if the reader of a pipe went away. `json`: with a document
/// of its own on standard output.
pub fn finish(result: Result<bool, ToolError>, json: bool) -> std::process::ExitCode {
    match result {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) if error.is_closed_pipe() => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // If even this cannot be written, the exit code still reports it.
            if json && !matches!(error, ToolError::Told(_)) {
                let _ = write_document(&ErrorDocument {
                    error: ErrorReport::of(&error),
                    printed: launch::printed::before(&error),
                });
            }
            let _ = writeln!(std::io::stderr(), "error: {}", crate::error::sentence(&error));
            std::process::ExitCode::from(error.exit_code())
        }
    }
}

/// Whether the command line asks for JSON, understood or not.
pub fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Ends a program whose command line is not understood, or asks for help: as clap does, and with a document if one was
/// requested.
pub fn refuse(error: &clap::Error) -> std::process::ExitCode {
    if error.use_stderr() && wants_json() {
        // If it cannot be written, the exit code still reports it.
        let _ = write_document(&ErrorDocument {
            error: ErrorReport::of_command_line(&error.render().to_string()),
            printed: None,
        });
    }
    let _ = error.print();
    std::process::ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_keys_and_values_have_names() {
        let found = ["f32", "f16", "q8_0"].map(kv_format);
        assert_eq!(found, [Ok(KvFormat::F32), Ok(KvFormat::F16), Ok(KvFormat::Q8_0)]);
        assert_eq!(kv_format("q4_0"), Err("there are f32, f16 and q8_0".to_owned()));
        assert_eq!(WaveSize::from(WaveChoice::Wave64), WaveSize::Wave64);
    }
}
