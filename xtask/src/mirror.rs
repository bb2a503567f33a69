//! A copy of the repository that may be changed and compiled.
//!
//! Contract: [`Mirror::update`] makes the copy equal to the repository. Files that are the same keep their times, so
//! that little is rebuilt. The copy has its own build outputs.

use crate::process;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is not copied, wherever a path ends so: build outputs, version control, what fuzzers leave.
const SKIPPED: &[&str] = &["target", ".git", "fuzz/corpus", "fuzz/artifacts", "fuzz/coverage"];

/// The copy.
pub struct Mirror {
    /// The repository.
    pub root: PathBuf,
    /// The copy's root.
    pub copy: PathBuf,
    target: PathBuf,
    /// The cargo that runs in it.
    pub program: String,
}

impl Mirror {
    /// A copy of `root` in a folder of its own; nothing is copied yet.
    pub fn new(root: &Path, scratch: &Path) -> Result<Mirror, Box<dyn Error>> {
        fs::create_dir_all(scratch.join("tree"))?;
        let (root, scratch) = (root.canonicalize()?, scratch.canonicalize()?);
        let (copy, target) = (scratch.join("tree"), scratch.join("target"));
        Ok(Mirror { root, copy, target, program: process::cargo_program() })
    }

    /// Makes the copy equal to the repository, but for files of it that `stays` names: those are left as they are.
    pub fn update(&self, stays: &dyn Fn(&Path) -> bool) -> Result<(), Box<dyn Error>> {
        self.update_folder(Path::new(""), stays)
    }

    fn update_folder(&self, folder: &Path, stays: &dyn Fn(&Path) -> bool) -> Result<(), Box<dyn Error>> {
        let (from, to) = (self.root.join(folder), self.copy.join(folder));
        fs::create_dir_all(&to)?;
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if is_skipped(&entry)? {
                continue;
            }
            let path = folder.join(&name);
            if kind.is_dir() {
                self.update_folder(&path, stays)?;
            } else if !stays(&path) {
                write_if_new(&self.copy.join(&path), &fs::read(entry.path())?)?;
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

    /// Cargo with these arguments, in the copy.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.target);
        without_shrinking(&mut command);
        command
    }
}

/// The files below a folder that a copy has, in the order of their names.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            _ if is_skipped(&entry)? => {}
            true => found.extend(files(&entry.path())?),
            false => found.push(entry.path()),
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn is_skipped(entry: &fs::DirEntry) -> std::io::Result<bool> {
    let path = entry.path();
    Ok(SKIPPED.iter().any(|skipped| path.ends_with(skipped)) || entry.file_type()?.is_symlink())
}

/// For tests whose failure is wanted: shrinking it and its backtrace are not.
pub fn without_shrinking(command: &mut Command) {
    command.env("RUST_BACKTRACE", "0").env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
}

/// Writes a file, unless it has these bytes.
pub fn write_if_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) { Ok(()) } else { fs::write(path, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_needs::TemporaryFolder;

    #[test]
    fn cargo_runs_in_the_copy_with_its_own_outputs_and_without_what_failures_cost() {
        let folder = TemporaryFolder::new("mirror-cargo");
        let mirror = Mirror::new(&folder, &folder.join("scratch")).unwrap();
        let command = mirror.cargo(&["test", "--quiet"]);
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["test", "--quiet"]);
        assert_eq!(command.get_current_dir(), Some(mirror.copy.as_path()));
        let target = folder.canonicalize().unwrap().join("scratch/target").into_os_string();
        let variables: Vec<_> = command.get_envs().map(|(name, value)| (name.to_str(), value)).collect();
        let expected = [
            ("CARGO_TARGET_DIR", target.as_os_str()),
            ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1".as_ref()),
            ("PROPTEST_MAX_SHRINK_ITERS", "0".as_ref()),
            ("RUST_BACKTRACE", "0".as_ref()),
        ];
        assert_eq!(variables, expected.map(|(name, value)| (Some(name), Some(value))));
    }

    #[test]
    fn a_copy_becomes_equal_but_for_what_stays() {
        let folder = TemporaryFolder::new("mirror");
        let root = folder.join("root");
        for path in ["a/one.rs", "a/two.rs", "corpus/kept", "fuzz/corpus/left", "target/output", "top"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), path).unwrap();
        }
        let mirror = Mirror::new(&root, &folder.join("scratch")).unwrap();
        mirror.update(&|_| false).unwrap();
        let read = |path: &str| fs::read_to_string(mirror.copy.join(path)).ok();
        assert_eq!((read("a/one.rs").as_deref(), read("target/output")), (Some("a/one.rs"), None));
        assert_eq!((read("corpus/kept").is_some(), read("fuzz/corpus/left")), (true, None));
        let expected = ["a/one.rs", "a/two.rs", "corpus/kept", "top"].map(|path| root.join(path));
        assert_eq!(files(&root).unwrap(), expected);
        for path in ["a/one.rs", "a/two.rs", "a/extra", "b"] {
            fs::write(mirror.copy.join(path), "changed").unwrap();
        }
        let written = fs::metadata(mirror.copy.join("top")).unwrap().modified().unwrap();
        mirror.update(&|path| path == Path::new("a/two.rs")).unwrap();
        assert_eq!(read("a/one.rs").as_deref(), Some("a/one.rs"));
        assert_eq!(read("a/two.rs").as_deref(), Some("changed"));
        assert_eq!((read("a/extra"), read("b")), (None, None));
        assert_eq!(fs::metadata(mirror.copy.join("top")).unwrap().modified().unwrap(), written);
    }
}
