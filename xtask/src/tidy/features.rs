//! Features with which `cargo xtask` is compiled.
//!
//! Contract: cargo gives a dependency the features that the chosen packages ask for. [`check`] finds dependencies of
//! [`ALONE`] that have other features than in the whole workspace: they, and all crates of ours on them, would be
//! compiled twice. Where one is found, `[workspace.dependencies]` names the missing features. Read from `cargo tree`,
//! within a second.

use crate::process;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

/// The package that is compiled before the workspace and without it.
const ALONE: &str = "xtask";

/// A line for each dependency that is compiled twice.
pub fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let alone = tree(root, &["--package", ALONE, "--edges", "normal,build"])?;
    let all = tree(root, &["--workspace", "--edges", "normal,build,dev"])?;
    Ok(compare(&alone, &all))
}

fn compare(alone: &BTreeSet<String>, all: &BTreeSet<String>) -> Vec<String> {
    let different = alone.difference(all);
    different
        .map(|line| format!("Cargo.toml: {ALONE} alone has {line}, the workspace other features"))
        .collect()
}

/// Packages with version and features.
fn tree(root: &Path, which: &[&str]) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut command = process::cargo();
    command.args(["tree", "--locked", "--prefix", "none", "--no-dedupe", "--format", "{p} {f}"]).args(which);
    let output = command.current_dir(root).output()?;
    if !output.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(|line| line.trim_end().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_compiles_nothing_of_xtask_again() {
        assert_eq!(check(&super::super::repository()).unwrap(), [""; 0]);
    }

    #[test]
    fn other_features_are_told_and_more_packages_are_not() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let all: BTreeSet<String> = lines(&["a v1.0.0 one,two", "b v1.0.0 "]);
        assert_eq!(compare(&lines(&["a v1.0.0 one,two"]), &all), [""; 0]);
        let found = compare(&lines(&["a v1.0.0 one"]), &all);
        assert!(found.len() == 1 && found[0].contains("a v1.0.0 one"), "{found:?}");
    }
}
