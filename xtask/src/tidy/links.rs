//! Relative links of Markdown files lead to something.
//!
//! Contract: a link is `](target)` outside of code. Targets with a scheme, and anchors alone, are not followed; of any
//! other target the path, without its anchor, is looked up beside the file. Reads, never writes.

use std::path::Path;

/// Findings of one file; `path` is its path from `root`.
pub fn check(root: &Path, path: &str, text: &str, findings: &mut Vec<String>) {
    let folder = root.join(path).parent().map(Path::to_owned).unwrap_or_default();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            for target in targets(line).filter(|target| !folder.join(target).exists()) {
                findings.push(format!("{path}:{}: a link to {target}, which does not exist", index + 1));
            }
        }
    }
}

/// Paths of the relative links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    // Every second part lies in a code span.
    let outside = line.split('`').step_by(2);
    let starts = outside.flat_map(|part| part.match_indices("](").map(|(at, mark)| &part[at + mark.len()..]));
    starts.filter_map(|rest| rest.split_once(')')).filter_map(|(target, _)| {
        let path = target.split('#').next().unwrap_or_default();
        (!path.is_empty() && !path.contains(':')).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut findings = Vec::new();
        check(root, "src/a.md", text, &mut findings);
        findings
    }

    #[test]
    fn a_link_leads_to_a_file_or_folder_beside_its_own() {
        for text in [
            "[a](main.rs) and [`b`](../Cargo.toml#name)",
            "[a](tidy)",
            "[a](#here) [b](https://example.org/none)",
            "`[a](none.md)`",
            "```text\n[a](none.md)\n```",
        ] {
            assert_eq!(findings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_link_to_nothing_is_a_finding() {
        for text in ["[a](none.md)", "[`a`](none.md#b)", "a [b](main.rs) [c](none.md)"] {
            assert_eq!(findings(text), ["src/a.md:1: a link to none.md, which does not exist"], "{text}");
        }
    }
}
