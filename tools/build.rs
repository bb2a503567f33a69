//! Puts the commit that is checked out, and its date, into the environment of the build: for `--version`, for reports
//! and for the records of `zrt-bench`.
//!
//! Contract: building needs nothing but Rust. The commit is read from the version-control files; its date, which they
//! hold compressed, comes from git if git is installed, and is left out otherwise. If there are no such files (a source
//! archive) the commit is `unknown`, even inside another repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Characters of a commit, as llama-bench shows it.
const COMMIT_CHARACTERS: usize = 8;
/// The name of an unknown commit.
const UNKNOWN: &str = "unknown";

/// Version-control files.
pub struct Repository {
    /// Those of this checkout.
    own: PathBuf,
    /// Those that several checkouts share; the same folder if there is only one checkout.
    shared: PathBuf,
}

fn main() {
    let checkout = Path::new("..");
    let repository = Repository::of(checkout);
    let commit = repository.as_ref().and_then(Repository::head);
    let date = commit.as_ref().and_then(|_| date_of_head(checkout));
    println!("cargo::rustc-env=ZRT_BUILD_COMMIT={}", commit.as_deref().unwrap_or(UNKNOWN));
    println!("cargo::rustc-env=ZRT_BUILD={}", build_text(commit.as_deref(), date.as_deref()));
    println!("cargo::rerun-if-changed=build.rs");
    for file in repository.iter().flat_map(Repository::files_of_head) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// The text after the version's number.
pub fn build_text(commit: Option<&str>, date: Option<&str>) -> String {
    match (commit, date) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(commit), None) => commit.to_owned(),
        (Some(commit), Some(date)) => format!("{commit} {date}"),
    }
}

impl Repository {
    /// The repository of a folder, if the folder is the root of a checkout. A further checkout of a repository has a
    /// file that names a folder, in which another file names the shared one.
    pub fn of(checkout: &Path) -> Option<Repository> {
        let place = checkout.join(".git");
        if place.is_dir() {
            return Some(Repository { own: place.clone(), shared: place });
        }
        let own = checkout.join(fs::read_to_string(place).ok()?.strip_prefix("gitdir: ")?.trim());
        let shared = match fs::read_to_string(own.join("commondir")) {
            Ok(folder) => own.join(folder.trim()),
            Err(_) => own.clone(),
        };
        Some(Repository { own, shared })
    }

    /// The commit that is checked out.
    pub fn head(&self) -> Option<String> {
        let head = fs::read_to_string(self.own.join("HEAD")).ok()?;
        let commit = match head.trim().strip_prefix("ref: ") {
            None => head.trim().to_owned(),
            Some(reference) => match fs::read_to_string(self.shared.join(reference)) {
                Ok(commit) => commit.trim().to_owned(),
                Err(_) => self.packed(reference)?,
            },
        };
        let is_commit =
            commit.len() >= COMMIT_CHARACTERS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_commit.then(|| commit[..COMMIT_CHARACTERS].to_owned())
    }

    fn packed(&self, reference: &str) -> Option<String> {
        let packed = fs::read_to_string(self.shared.join("packed-refs")).ok()?;
        packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').map(str::to_owned))
    }

    /// Files of which one changes when another commit is checked out. Only those that exist: cargo treats a missing one
    /// as changed.
    fn files_of_head(&self) -> Vec<PathBuf> {
        let head = fs::read_to_string(self.own.join("HEAD")).unwrap_or_default();
        let reference = head.trim().strip_prefix("ref: ").map(|reference| self.shared.join(reference));
        let others = [self.own.join("HEAD"), self.own.join("logs/HEAD"), self.shared.join("packed-refs")];
        others.into_iter().chain(reference).filter(|file| file.exists()).collect()
    }
}

/// The day of the commit, in UTC, according to git.
fn date_of_head(checkout: &Path) -> Option<String> {
    let mut git = Command::new("git");
    // Set inside of git's hooks, where it may name another repository.
    git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    git.arg("-C").arg(checkout).args(["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%cd"]);
    let output = git.env("TZ", "UTC0").output().ok().filter(|output| output.status.success())?;
    let date = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_date.then_some(date)
}
