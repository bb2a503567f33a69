//! `cargo xtask tidy`: reads the sources and refuses what reviewers should not have to look for.
//!
//! Contract: reads only files that version control covers (not `target`), never changes one, and names file and line of
//! every finding. The rules are the constants below and those of [`circles`], [`comments`], [`dependencies`],
//! [`features`], [`links`], [`markdown`], [`records`], [`rooms`], [`sections`] and [`unsafety`].

mod circles;
mod comments;
mod dependencies;
mod features;
mod links;
mod markdown;
mod records;
mod rooms;
mod sections;
mod unsafety;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Longest file, in lines; a longer one hides a second subject.
const FILE_LINES_MAX: usize = 900;
/// The same for test files, which are tables of cases.
const TEST_FILE_LINES_MAX: usize = 1000;
/// Longest line of source, in characters; comments are shorter. Test files may hold one case per line, however long.
const LINE_CHARACTERS_MAX: usize = 140;
/// Folders that are not sources of ours.
const SKIPPED: &[&str] = &["target", ".git", "models", "corpus", "artifacts"];
/// Generated files, exempt from the length rules.
const GENERATED: &[&str] = &["kmd/src/bindings/"];

/// The repository that this program was compiled in.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs every rule on the repository at `root`, and prints what they find.
pub fn run(root: &Path) -> Result<(), Box<dyn Error>> {
    let findings = findings(root)?;
    if findings.is_empty() {
        return Ok(());
    }
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    Err(format!("tidy: {} findings", findings.len()).into())
}

fn findings(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let (mut findings, mut sources) = (Vec::new(), Vec::new());
    for file in &files {
        let path = file.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        let Ok(text) = fs::read_to_string(file) else { continue };
        check_text(&path, &text, &mut findings);
        if path.ends_with(".rs") {
            check_rust(&path, &text, &mut findings);
            sources.push((path, text));
        } else if path.ends_with(".md") {
            markdown::check(&path, &text, &mut findings);
            links::check(root, &path, &text, &mut findings);
        }
    }
    unsafety::check_architecture(&fs::read_to_string(root.join("ARCHITECTURE.md"))?, &mut findings);
    findings.extend(circles::check(sources.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
    findings.extend(dependencies::check(root)?);
    findings.extend(features::check(root)?);
    findings.extend(rooms::check_lists(root)?);
    findings.extend(crate::test::passes::check(root)?);
    findings.extend(sections::check(root, &files)?);
    findings.extend(records::check(root)?);
    Ok(findings)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn check_text(path: &str, text: &str, findings: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let at = format!("{path}:{}", index + 1);
        if line.ends_with([' ', '\t']) && !path.ends_with(".json") {
            findings.push(format!("{at}: white space at the end of the line"));
        }
        // Assembled at run time so that this rule does not find itself.
        for machine_path in [["/", "work/"].concat(), ["/", "root/"].concat(), ["/", "home/"].concat()] {
            if line.contains(&machine_path) {
                findings.push(format!("{at}: a path of one machine ({machine_path})"));
            }
        }
    }
}

fn check_rust(path: &str, text: &str, findings: &mut Vec<String>) {
    let generated = GENERATED.iter().any(|prefix| path.starts_with(prefix));
    let lines = text.lines().count();
    let is_test = path.contains("tests/");
    let lines_max = if is_test { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
    if lines > lines_max && !generated {
        findings.push(format!("{path}: {lines} lines, at most {lines_max}"));
    }
    if !text.starts_with("//!") && !generated {
        findings.push(format!("{path}: no module documentation at the top"));
    }
    unsafety::check(path, text, findings);
    rooms::check(path, text, findings);
    if !generated {
        comments::check(path, text, findings);
    }
    for (index, line) in text.lines().enumerate() {
        let at = format!("{path}:{}", index + 1);
        if line.chars().count() > LINE_CHARACTERS_MAX && !generated && !is_test {
            findings.push(format!("{at}: {} characters", line.chars().count()));
        }
    }
}
