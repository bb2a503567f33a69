//! The mutants that cargo-mutants lists.

use crate::process::{self, Limits};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The version whose lists are read.
const VERSION: &str = "27.1.0";
/// What it may take to list.
const LIMITS: Limits = Limits { time: Duration::from_secs(300), memory_bytes: u64::MAX };

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

impl Position {
    /// The byte of a text; `None` if the text has no such place.
    fn byte(self, text: &str) -> Option<usize> {
        let mut lines = text.split_inclusive('\n');
        let before: usize = lines.by_ref().take(self.line.checked_sub(1)?).map(str::len).sum();
        let line = lines.next()?;
        let column = self.column.checked_sub(1)?;
        let ends = line.char_indices().map(|(byte, _)| byte).chain([line.len()]);
        Some(before + ends.into_iter().nth(column)?)
    }
}

/// What a mutant replaces.
#[derive(Clone, Debug, Deserialize)]
pub struct Extent {
    pub start: Position,
    /// Behind the last character.
    pub end: Position,
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

    /// The text of its file with the mutant in it, and blanks around that; `None` if the text has no such place.
    pub fn planted(&self, text: &str) -> Option<String> {
        let (start, end) = (self.extent.start.byte(text)?, self.extent.end.byte(text)?);
        text.get(start..end)?;
        Some(format!("{} {} {}", &text[..start], self.replacement, &text[end..]))
    }
}

/// Mutants that a text names, a line each, as the lists of survivors do: by their files and what they do. Where in a
/// file they are does not count, since it changes with what is written above.
pub struct Named(BTreeSet<(String, String)>);

impl Named {
    /// Reads the names of a text; its other lines, such as headings, name nothing.
    pub fn parse(text: &str) -> Named {
        let parted = text.lines().filter_map(without_place);
        Named(parted.map(|(file, change)| (file.to_owned(), change.to_owned())).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them does what the mutant of this name does, wherever it is.
    pub fn has(&self, name: &str) -> bool {
        without_place(name)
            .is_some_and(|(file, change)| self.0.contains(&(file.to_owned(), change.to_owned())))
    }
}

/// File and change of a name `file:line:column: change`.
pub fn without_place(name: &str) -> Option<(&str, &str)> {
    let (place, change) = name.split_once(": ")?;
    let mut parts = place.splitn(3, ':');
    let file = parts.next()?;
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    (parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number)).then_some((file, change))
}

/// Asks cargo-mutants for the mutants of packages of the repository. `output` is a folder for what it says.
pub fn list(
    program: &Path,
    root: &Path,
    packages: &[&str],
    output: &Path,
) -> Result<Vec<Mutant>, Box<dyn Error>> {
    check_version(program, output)?;
    let mut command = Command::new(program);
    command.args(["mutants", "--list", "--json"]).current_dir(root).env("CARGO", process::cargo_program());
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    let said = process::listen(&mut command, &output.join("list"), LIMITS)?;
    match said.ended.failure() {
        None => parse(&said.output),
        Some(reason) => Err(format!("cargo-mutants lists nothing ({reason}): {}", said.errors).into()),
    }
}

/// Refuses another version: which mutants there are, and what they are called, is its own.
fn check_version(program: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    let install = format!("`cargo install cargo-mutants@{VERSION}`, or name it with --cargo-mutants");
    let mut command = Command::new(program);
    command.args(["mutants", "--version"]);
    let said = process::listen(&mut command, &output.join("version"), LIMITS)
        .map_err(|error| format!("{} cannot be started ({error}): {install}", program.display()))?;
    if let Some(reason) = said.ended.failure() {
        return Err(format!("{} ({reason}): {}{install}", program.display(), said.errors).into());
    }
    match said.output.trim() {
        found if found == format!("cargo-mutants {VERSION}") => Ok(()),
        found => {
            let program = program.display();
            Err(format!("{program} says that it is {found:?}, not cargo-mutants {VERSION}: {install}").into())
        }
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
        assert_eq!(mutant.extent.end, Position { line: 2, column: 6 });
        assert_eq!(mutant.function.unwrap().name, "f");
        assert_eq!(parse(&listed("Unheard")).unwrap()[0].genre, Genre::Other);
        assert!(parse("{}").is_err());
    }

    #[test]
    fn a_mutant_takes_the_place_of_what_it_changes() {
        let planted = |text: &str, start: [usize; 2], end: [usize; 2]| {
            let place = |[line, column]: [usize; 2]| Position { line, column };
            let extent = Extent { start: place(start), end: place(end) };
            let mutant = super::super::rewrite::tests::mutant("+", Genre::BinaryOperator, "+", "-");
            Mutant { extent, ..mutant }.planted(text)
        };
        let text = "é\nö << ü\nlast";
        assert_eq!(planted(text, [2, 3], [2, 5]).as_deref(), Some("é\nö  -  ü\nlast"));
        assert_eq!(planted(text, [1, 1], [2, 2]).as_deref(), Some(" -  << ü\nlast"));
        assert_eq!(planted(text, [3, 1], [3, 5]).as_deref(), Some("é\nö << ü\n - "));
        for (start, end) in
            [([3, 1], [3, 6]), ([4, 1], [4, 1]), ([0, 1], [1, 1]), ([1, 0], [1, 1]), ([2, 3], [2, 1])]
        {
            assert_eq!(planted(text, start, end), None, "{start:?} {end:?}");
        }
    }

    #[test]
    fn a_mutant_is_named_wherever_it_is_in_its_file() {
        let named = Named::parse(
            "# survived: all tests that come by pass (1)\n\
             mem/src/a.rs:2:5: replace + with - in f\n\
             a test: it has failed\n",
        );
        assert!(named.has("mem/src/a.rs:2:5: replace + with - in f"));
        assert!(named.has("mem/src/a.rs:17:30: replace + with - in f"));
        assert!(!named.has("mem/src/a.rs:2:5: replace + with * in f"));
        assert!(!named.has("mem/src/b.rs:2:5: replace + with - in f"));
        assert!(!named.has("a test: it has failed"));
        // Places have two numbers.
        let parts = ["a:1:2: b", "a:x:2: b", "a:1:x: b", "a:1: b"].map(without_place);
        assert_eq!(parts, [Some(("a", "b")), None, None, None]);
    }

    #[test]
    fn another_version_is_refused_and_a_program_that_fails_is_heard() {
        let folder = zrt_needs::TemporaryFolder::new("list-version");
        // It looks for a script with that name.
        let error = list(Path::new("/bin/sh"), &folder, &[], &folder).unwrap_err().to_string();
        assert!(error.starts_with("/bin/sh (exit status: ") && error.contains("mutants: "), "{error}");
        folder.program("right", "case $2 in --version) echo cargo-mutants 27.1.0;; *) echo '[]';; esac");
        assert!(list(&folder.join("right"), &folder, &[], &folder).unwrap().is_empty());
        let error = list(Path::new("/bin/echo"), &folder, &[], &folder).unwrap_err().to_string();
        assert!(error.contains("\"mutants --version\", not cargo-mutants 27.1.0"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_do() {
        let folder = zrt_needs::TemporaryFolder::new("list");
        let error = list(Path::new("/no/such/program"), &folder, &[], &folder).unwrap_err().to_string();
        assert!(error.contains("/no/such/program") && error.contains("cargo install"), "{error}");
    }
}
