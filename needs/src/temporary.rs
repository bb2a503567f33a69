//! A folder for the files of one test case.
//!
//! Contract: no other case has the same one, of this process or of another; it and what is in it are removed when the
//! value is dropped, also where the case fails. For tests only.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder in the place for temporary files. It stands for its path.
#[derive(Debug)]
#[must_use = "it is removed when it is dropped"]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// An empty folder whose name has `name` in it.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(name: &str) -> TemporaryFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("zrt-{name}-{}-{number}", std::process::id()));
        // What a killed process of the same number left.
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        TemporaryFolder(path)
    }

    /// Puts a program there, or in a folder of it: see [`write_program`].
    pub fn program(&self, name: &str, script: &str) {
        write_program(&self.0.join(name), script);
    }
}

impl Deref for TemporaryFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for TemporaryFolder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Best effort: a case may have removed it.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Writes a program: a script for the shell. Another process writes it: what this one has open for writing, a process
/// that another case starts at the same time holds too, and a program that somebody has open for writing cannot be
/// started.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(path: &Path, script: &str) {
    let text = format!("#!/bin/sh\n{script}\n");
    let write = "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let status = Command::new("sh").args(["-c", write, "sh", &text]).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be written", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_empty_of_its_own_and_gone_after_a_failure() {
        let [one, other] = [0, 1].map(|_| TemporaryFolder::new("folder"));
        assert_ne!(one.to_path_buf(), other.to_path_buf());
        assert_eq!(std::fs::read_dir(&one).unwrap().count(), 0);
        let path = one.to_path_buf();
        let failed = std::thread::spawn(move || {
            std::fs::create_dir(one.join("in")).unwrap();
            std::fs::write(one.join("in/file"), "kept by nobody").unwrap();
            panic!("a case that fails");
        });
        assert!(failed.join().is_err());
        assert!(!path.exists() && other.exists());
    }

    #[test]
    fn a_program_runs_its_script_with_the_arguments_it_is_given() {
        let folder = TemporaryFolder::new("program");
        folder.program("made-up", "echo \"$#: $*\"\nexit 3");
        let output = Command::new(folder.join("made-up")).args(["one", "two three"]).output().unwrap();
        assert_eq!(
            (output.stdout.as_slice(), output.status.code()),
            (b"2: one two three\n".as_slice(), Some(3))
        );
        assert!(std::panic::catch_unwind(|| folder.program("no/such/folder", "")).is_err());
    }
}
