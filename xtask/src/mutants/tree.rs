//! The copy of the repository that mutants are planted into.

use super::runs::{self, Outcome, Run};
use super::scratch_folder;
use super::table::Mutant;
use crate::mirror::Mirror;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The copy.
pub struct Tree {
    mirror: Mirror,
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
    /// Makes the copy, in which this cargo runs, or brings an existing one up to date.
    pub fn new(root: &Path, cargo: String) -> Result<Tree, Box<dyn Error>> {
        let scratch = scratch_folder(root);
        let output = scratch.join("output");
        fs::create_dir_all(&output)?;
        let mut mirror = Mirror::new(root, &scratch)?;
        mirror.program = cargo;
        let tree = Tree { mirror, output };
        tree.restore()?;
        Ok(tree)
    }

    /// Makes the copy equal to the repository.
    pub fn restore(&self) -> Result<(), Box<dyn Error>> {
        self.mirror.update(&|_| false)
    }

    /// Plants a mutant into the copy.
    pub fn plant(&self, mutant: &Mutant) -> Result<(), Box<dyn Error>> {
        let path = self.mirror.copy.join(mutant.file);
        fs::write(&path, planted(&fs::read_to_string(&path)?, mutant)?)?;
        Ok(())
    }

    /// Assembles the copy's kernels.
    pub fn assemble(&self, name: &str) -> Result<Assembled, Box<dyn Error>> {
        let output = self.output.join(format!("{name}.asm.txt"));
        Ok(match runs::run(&mut self.mirror.cargo(&["xtask", "asm"]), &output)? {
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
        let build = runs::run(self.mirror.cargo(&["test", "--no-run"]).args(ours), &output)?;
        if !build.is_some_and(|status| status.success()) {
            return Ok(Run { outcome: Outcome::DoesNotCompile, tests: 0 });
        }
        match runs::run(self.mirror.cargo(&["test"]).args(arguments), &output)? {
            Some(status) => Ok(runs::read(&runs::printed(&output)?, status.success())),
            None => Ok(Run { outcome: Outcome::TimedOut, tests: 0 }),
        }
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
