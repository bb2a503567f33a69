//! Puts the commit that is checked out into the environment of the build, for the records of `zrt-bench`.
//!
//! Reads the version-control files itself: building needs nothing but Rust. Where there are none (a source archive)
//! the commit is `unknown`.

use std::fs;
use std::path::Path;

/// Characters of a commit, as llama-bench shows it.
const COMMIT_CHARACTERS: usize = 8;

fn main() {
    let folder = Path::new("../.git");
    let commit = head_commit(folder).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ZRT_BUILD_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../.git/HEAD");
}

fn head_commit(folder: &Path) -> Option<String> {
    let head = fs::read_to_string(folder.join("HEAD")).ok()?;
    let head = head.trim();
    let commit = match head.strip_prefix("ref: ") {
        None => head.to_owned(),
        Some(reference) => {
            println!("cargo::rerun-if-changed=../.git/{reference}");
            match fs::read_to_string(folder.join(reference)) {
                Ok(commit) => commit.trim().to_owned(),
                Err(_) => packed_reference(folder, reference)?,
            }
        }
    };
    let is_commit = commit.len() >= COMMIT_CHARACTERS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| commit[..COMMIT_CHARACTERS].to_owned())
}

fn packed_reference(folder: &Path, reference: &str) -> Option<String> {
    let packed = fs::read_to_string(folder.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').map(str::to_owned))
}
