//! What cargo says when it compiles mutants.

use crate::process::{self, Ended, Limits};
use crate::test::TestBinary;
use serde_json::Value;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How a compilation ended.
pub struct Compiled {
    /// Why it did not succeed.
    pub failure: Option<String>,
    /// Whether it was ended because it took too long.
    pub took_too_long: bool,
    /// What cargo said, a message each.
    pub messages: Vec<Value>,
    /// What it said without that form.
    pub said: String,
}

impl Compiled {
    /// Runs this cargo, which writes its messages as JSON. What it says is kept at `output`.
    pub fn by(command: &mut Command, output: &Path, limit: Duration) -> Result<Compiled, Box<dyn Error>> {
        // What is denied elsewhere is common in mutants: unused brackets, code behind a return, overflows.
        command.env("RUSTFLAGS", "--cap-lints=warn").env_remove("CARGO_ENCODED_RUSTFLAGS");
        let said = process::listen(command, output, Limits { time: limit, memory_bytes: u64::MAX })?;
        let messages = said.output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let took_too_long = matches!(said.ended, Ended::TookTooLong(_));
        Ok(Compiled { failure: said.ended.failure(), took_too_long, messages, said: said.errors })
    }

    /// The compiler's errors.
    pub fn errors(&self) -> impl Iterator<Item = &Value> {
        let of_compiler = self.messages.iter().filter(|message| message["reason"] == "compiler-message");
        of_compiler.map(|message| &message["message"]).filter(|message| message["level"] == "error")
    }

    /// The compiled tests.
    pub fn binaries(&self) -> Vec<TestBinary> {
        self.messages.iter().filter_map(TestBinary::from_message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_compiler() {
        let message = |reason: &str, level: &str| serde_json::json!({ "reason": reason, "message": { "level": level } });
        let messages =
            [("compiler-message", "error"), ("compiler-message", "warning"), ("build-finished", "error")];
        let messages = messages.map(|(reason, level)| message(reason, level)).into();
        let compiled = Compiled { failure: None, took_too_long: false, messages, said: String::new() };
        assert_eq!(compiled.errors().count(), 1);
        assert!(compiled.binaries().is_empty());
    }

    #[test]
    fn a_compilation_has_a_limit() {
        let folder = zrt_needs::TemporaryFolder::new("compile-limit");
        let by = |script: &str, limit| {
            let mut command = Command::new("sh");
            Compiled::by(command.args(["-c", script]), &folder.join("output"), limit).unwrap()
        };
        let long = by("exec sleep 60", Duration::from_millis(100));
        assert!(long.took_too_long && long.failure.is_some());
        let short = by("echo '{}'; exit 1", Duration::from_secs(60));
        assert!(!short.took_too_long && short.failure.is_some() && short.messages.len() == 1);
    }
}
