//! `zrt run`: a script of launches over shared buffers.
//!
//! Contract: that of `zrt launch`, for several kernels: everything about the script is checked before the device is
//! opened, files are written whole or not at all when all has ended, bad input is one sentence with line and column and
//! exit code 2. Relative paths in a script are relative to the script's folder.

use super::launch::script::expand;
use super::launch::{LookArguments, deadline, explore};
use crate::bounded_read::{self, ReadError};
use crate::error::ToolError;
use clap::Args;
use std::path::PathBuf;
use zrt_script::{SCRIPT_BYTES_MAX, Script};

/// Runs a script: kernels over shared buffers, with loops and checks
#[derive(Debug, Args)]
pub struct Arguments {
    /// Script, in TOML
    pub script: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub look: LookArguments,
    /// Most seconds that all kernels may run together [default: 600]; the virtual device stops a kernel at once where
    /// it can show that it never ends
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub timeout: Option<String>,
}

/// Runs the command; returns false if a rule was broken, or if a buffer does not hold what the script says.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let schedules = arguments.look.validate()?;
    let deadline = deadline(arguments.timeout.as_deref())?;
    let path = &arguments.script;
    let bad = |what: String| ToolError::BadInput { what: format!("{}{what}", path.display()) };
    let bytes = bounded_read::read(path, SCRIPT_BYTES_MAX).map_err(|error| match error {
        ReadError::System(error) => bad(format!(" cannot be read: {error}")),
        ReadError::TooLong => {
            bad(format!(" has more than the {SCRIPT_BYTES_MAX} bytes that a script may have"))
        }
    })?;
    let text = String::from_utf8(bytes).map_err(|error| bad(format!(" is not text: {error}")))?;
    let script = Script::parse(&text).map_err(|error| bad(format!(":{error}")))?;
    let task = expand(&script, path, deadline).map_err(|error| bad(format!(":{error}")))?;
    explore(&task, &arguments.look, schedules)
}
