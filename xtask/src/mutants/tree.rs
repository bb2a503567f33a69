//! The copy of the repository that mutants are planted into.

use super::runs::{self, Outcome, Run};
use super::scratch_folder;
use super::table::Mutant;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of folders that are not copied, wherever they are: build outputs, version control, what fuzzers leave.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts"];

/// The copy.
pub struct Tree {
    /// The repository.
    root: PathBuf,
    /// The copy's root.
    copy: PathBuf,
    target: PathBuf,
    output: PathBuf,
}

/// `text` with the mutant in it; an error if the mutant's text is not there exactly once.
pub fn planted(text: &str, mutant: &Mutant) -> Result<String, String> {
    match text.matches(mutant.find).count() {
        1 => Ok(text.replacen(mutant.find, mutant.replace, 1)),
        count => Err(format!("{}: its text is {count} times in {}, not once", mutant.name, mutant.file)),
    }
}

/// What the assembler, and the rules around it, said of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembled {
    /// There are blobs.
    Taken,
    /// There are none.
    Refused,
    /// It did not end.
    TimedOut,
}

impl Tree {
    /// Makes the copy, or brings an existing one up to date.
    pub fn new(root: &Path) -> Result<Tree, Box<dyn Error>> {
        let root = root.canonicalize()?;
        let scratch = scratch_folder(&root);
        let tree = Tree {
            copy: scratch.join("tree"),
            target: scratch.join("target"),
            output: scratch.join("output"),
            root,
        };
        fs::create_dir_all(&tree.output)?;
        fs::create_dir_all(&tree.copy)?;
        tree.restore()?;
        Ok(tree)
    }

    /// Makes the copy equal to the repository. Files that are the same keep their times, so that little is rebuilt.
    pub fn restore(&self) -> Result<(), Box<dyn Error>> {
        self.mirror(Path::new(""))
    }

    fn mirror(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let (from, to) = (self.root.join(folder), self.copy.join(folder));
        fs::create_dir_all(&to)?;
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if SKIPPED.iter().any(|skipped| name == *skipped) || kind.is_symlink() {
                continue;
            }
            let path = folder.join(&name);
            if kind.is_dir() {
                self.mirror(&path)?;
            } else {
                let bytes = fs::read(entry.path())?;
                let copy = self.copy.join(&path);
                if fs::read(&copy).ok().as_ref() != Some(&bytes) {
                    fs::write(&copy, bytes)?;
                }
            }
            names.insert(name);
        }
        for entry in fs::read_dir(&to)? {
            let entry = entry?;
            if !names.contains(&entry.file_name()) {
                match entry.file_type()?.is_dir() {
                    true => fs::remove_dir_all(entry.path())?,
                    false => fs::remove_file(entry.path())?,
                }
            }
        }
        Ok(())
    }

    /// Plants a mutant into the copy.
    pub fn plant(&self, mutant: &Mutant) -> Result<(), Box<dyn Error>> {
        let path = self.copy.join(mutant.file);
        fs::write(&path, planted(&fs::read_to_string(&path)?, mutant)?)?;
        Ok(())
    }

    /// Assembles the copy's kernels.
    pub fn assemble(&self, name: &str) -> Result<Assembled, Box<dyn Error>> {
        let output = self.output.join(format!("{name}.asm.txt"));
        Ok(match runs::run(&mut self.cargo(&["xtask", "asm"]), &output)? {
            None => Assembled::TimedOut,
            Some(status) if status.success() => Assembled::Taken,
            Some(_) => Assembled::Refused,
        })
    }

    /// Compiles and runs `cargo test` with these arguments in the copy.
    pub fn test(&self, name: &str, arguments: &[&str]) -> Result<Run, Box<dyn Error>> {
        let output = self.output.join(format!("{name}.txt"));
        // What follows `--` is for the harness.
        let ours = arguments.split(|argument| *argument == "--").next().unwrap_or_default();
        let build = runs::run(self.cargo(&["test", "--no-run"]).args(ours), &output)?;
        if !build.is_some_and(|status| status.success()) {
            return Ok(Run { outcome: Outcome::DoesNotCompile, tests: 0 });
        }
        match runs::run(self.cargo(&["test"]).args(arguments), &output)? {
            Some(status) => Ok(runs::read(&runs::printed(&output)?, status.success())),
            None => Ok(Run { outcome: Outcome::TimedOut, tests: 0 }),
        }
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        command.args(arguments).current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.target);
        // A failure is wanted: shrinking it and its backtrace are not.
        command.env("RUST_BACKTRACE", "0").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::table::Expected;

    #[test]
    fn a_text_that_is_not_there_once_is_an_error() {
        let mutant =
            Mutant { name: "m", file: "f", find: "ab", replace: "x", test: &[], expected: Expected::Killed };
        assert_eq!(planted("-ab-", &mutant), Ok("-x-".to_owned()));
        for (text, count) in [("-a-b-", 0), ("ab ab", 2)] {
            let error = planted(text, &mutant).expect_err("not once");
            assert_eq!(error, format!("m: its text is {count} times in f, not once"));
        }
    }
}
