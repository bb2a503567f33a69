//! The mutants that cargo-mutants lists.

use crate::process::{self, Limits};
use serde::Deserialize;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longest that listing may take.
const LIST_LIMIT: Duration = Duration::from_secs(5 * 60);

/// What a mutant changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Genre {
    /// A function's body becomes a value.
    FnValue,
    /// An operator between two operands becomes another.
    BinaryOperator,
    /// An operator before its operand is left out.
    UnaryOperator,
    /// An arm of a `match` is left out.
    MatchArm,
    /// The guard of an arm becomes true or false.
    MatchArmGuard,
    /// A field of a structure that takes the others from a base is left out.
    StructField,
    /// One that this command does not know.
    #[serde(other)]
    Other,
}

/// A place in a file, from 1; columns are of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// What a mutant replaces.
#[derive(Clone, Debug, Deserialize)]
pub struct Extent {
    pub start: Position,
}

/// The function that a mutant is in.
#[derive(Clone, Debug, Deserialize)]
pub struct Function {
    #[serde(rename = "function_name")]
    pub name: String,
}

/// One mutant.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// `file:line:column: replace X with Y in function`.
    pub name: String,
    /// From the root of the repository.
    pub file: String,
    pub function: Option<Function>,
    pub genre: Genre,
    pub replacement: String,
    #[serde(rename = "span")]
    pub extent: Extent,
}

impl Mutant {
    /// The folder of its crate.
    pub fn folder(&self) -> &str {
        self.file.split('/').next().unwrap_or(&self.file)
    }
}

/// Asks cargo-mutants for the mutants of packages of the repository. `output` is a folder for what it says.
pub fn list(
    program: &Path,
    root: &Path,
    packages: &[&str],
    output: &Path,
) -> Result<Vec<Mutant>, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args(["mutants", "--list", "--json"]).current_dir(root).env("CARGO", crate::mirror::cargo());
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    let limits = Limits { time: LIST_LIMIT, memory_bytes: u64::MAX };
    let said = process::listen(&mut command, &output.join("list"), limits).map_err(|error| {
        let install = "`cargo install cargo-mutants@27.1.0`, or name it with --cargo-mutants";
        format!("{} cannot be started ({error}): {install}", program.display())
    })?;
    match said.ended.failure() {
        None => parse(&said.output),
        Some(reason) => Err(format!("cargo-mutants lists nothing ({reason}): {}", said.errors).into()),
    }
}

fn parse(text: &str) -> Result<Vec<Mutant>, Box<dyn Error>> {
    serde_json::from_str(text)
        .map_err(|error| format!("cargo-mutants 27.1 lists mutants in another form: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_new_genres_are_known_as_such() {
        let listed = |genre: &str| {
            format!(
                r#"[{{"name": "mem/src/a.rs:2:5: replace + with - in f", "package": "zrt-mem", "diff": "",
                    "file": "mem/src/a.rs", "function": {{"function_name": "f", "return_type": ""}},
                    "genre": "{genre}", "replacement": "-",
                    "span": {{"start": {{"line": 2, "column": 5}}, "end": {{"line": 2, "column": 6}}}}}}]"#
            )
        };
        let mutant = parse(&listed("BinaryOperator")).unwrap().remove(0);
        assert_eq!((mutant.folder(), mutant.genre), ("mem", Genre::BinaryOperator));
        assert_eq!(mutant.extent.start, Position { line: 2, column: 5 });
        assert_eq!(mutant.function.unwrap().name, "f");
        assert_eq!(parse(&listed("Unheard")).unwrap()[0].genre, Genre::Other);
        assert!(parse("{}").is_err());
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let folder = zrt_needs::TemporaryFolder::new("list");
        let error = list(Path::new("/no/such/program"), &folder, &[], &folder).unwrap_err().to_string();
        assert!(error.contains("/no/such/program") && error.contains("cargo install"), "{error}");
    }
}
