//! Every `§` says of which document it is, and a section of ours exists.
//!
//! Contract: the document of a `§2.6` is the last one that the same paragraph names before it. Where it names none, it is
//! the one that the module doc of the file names, if that names just one. In a reference itself it is that reference. A
//! section of our two references must be a heading there; of other documents nothing is known. Reads, never writes.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What texts call a document, in lower case, and where it is if it is ours.
const DOCUMENTS: &[(&str, Option<&str>)] = &[
    ("hardware reference", Some("docs/reference/hardware.md")),
    ("instruction set reference", Some("docs/reference/instruction-set.md")),
    ("instruction set guide", None),
    ("ieee 754", None),
    ("dwarf", None),
];
/// Kinds of files that are read.
const EXTENSIONS: &[&str] = &["rs", "md", "s", "toml"];
/// What stands before a comment's text, the longest first.
const COMMENT_MARKS: &[&str] = &["//!", "///", "//", "#"];

/// Headings of each of [`DOCUMENTS`]: the numbers; `None` for a document that is not ours.
type Headings = Vec<Option<Vec<String>>>;

/// A run of lines that are read as one text.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Number of each line, and where it begins in the text.
    lines: Vec<(usize, usize)>,
}

/// Something in a paragraph that matters here.
#[derive(Debug, PartialEq, Eq)]
enum Mention {
    Document(usize),
    Section(String),
}

/// Findings in all files of the tree.
pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut headings = Headings::new();
    for (_, document) in DOCUMENTS {
        let text = document.map(|path| fs::read_to_string(root.join(path))).transpose()?;
        headings.push(text.map(|text| text.lines().filter_map(heading).map(str::to_owned).collect()));
    }
    let mut findings = Vec::new();
    for file in files {
        let is_read = file.extension().is_some_and(|kind| EXTENSIONS.iter().any(|one| kind == *one));
        if !is_read {
            continue;
        }
        let path = file.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        let Ok(text) = fs::read_to_string(file) else { continue };
        // This file has wrong examples.
        if path != "xtask/src/tidy/sections.rs" {
            check_file(&path, &text, &headings, &mut findings);
        }
    }
    Ok(findings)
}

/// The number of a numbered heading: `2.6` of `### 2.6 Queue buffers`.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let number = title.trim_start().split(' ').next()?.trim_end_matches('.');
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|one| one.is_ascii_digit() || one == '.');
    (title.len() < line.len() && is_number).then_some(number)
}

fn check_file(path: &str, text: &str, headings: &Headings, findings: &mut Vec<String>) {
    let default = default_document(path, text);
    for paragraph in paragraphs(text, path.ends_with(".rs")) {
        let mut document = default;
        for (place, mention) in mentions(&paragraph.text) {
            let at = || format!("{path}:{}", paragraph.line(place.start));
            match (mention, document) {
                (Mention::Document(named), _) => document = Some(named),
                (Mention::Section(number), None) => {
                    findings.push(format!("{}: §{number} of which document?", at()));
                }
                (Mention::Section(number), Some(document)) => {
                    let exists = headings[document].as_ref().is_none_or(|known| known.contains(&number));
                    if !exists {
                        let name = DOCUMENTS[document].0;
                        findings.push(format!("{}: there is no §{number} in the {name}", at()));
                    }
                }
            }
        }
    }
}

/// The document of a `§` before which the paragraph names none.
fn default_document(path: &str, text: &str) -> Option<usize> {
    if let Some(own) = DOCUMENTS.iter().position(|(_, document)| *document == Some(path)) {
        return Some(own);
    }
    let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("//!"));
    let module_doc = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let mut named: Vec<usize> = (mentions(&module_doc).into_iter())
        .filter_map(|(_, mention)| match mention {
            Mention::Document(document) => Some(document),
            Mention::Section(_) => None,
        })
        .collect();
    named.sort_unstable();
    named.dedup();
    match named[..] {
        [document] => Some(document),
        _ => None,
    }
}

impl Paragraph {
    fn push(&mut self, number: usize, line: &str) {
        self.lines.push((number, self.text.len()));
        self.text.push_str(line);
        self.text.push(' ');
    }

    /// The number of the line that has a place of the text.
    fn line(&self, place: usize) -> usize {
        let after = self.lines.partition_point(|(_, start)| *start <= place);
        self.lines[after.saturating_sub(1)].0
    }
}

/// Comments of one block are a paragraph, and so are lines of text; a line of Rust with code in it stands by itself.
fn paragraphs(text: &str, is_rust: bool) -> Vec<Paragraph> {
    let mut paragraphs = vec![Paragraph::default()];
    let mut was_code = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let mark = COMMENT_MARKS.iter().find_map(|mark| line.strip_prefix(mark));
        let is_code = is_rust && mark.is_none();
        let line = mark.unwrap_or(line).trim();
        if is_code || was_code || line.is_empty() {
            paragraphs.push(Paragraph::default());
        }
        was_code = is_code;
        if let Some(last) = paragraphs.last_mut() {
            last.push(index + 1, line);
        }
    }
    paragraphs
}

/// Documents and sections in the order of the text.
fn mentions(text: &str) -> Vec<(Range<usize>, Mention)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (document, (name, _)) in DOCUMENTS.iter().enumerate() {
        let places = lower.match_indices(name);
        found.extend(places.map(|(at, name)| (at..at + name.len(), Mention::Document(document))));
    }
    for (at, sign) in text.match_indices('§') {
        let number = &text[at + sign.len()..];
        let end = number.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(number.len());
        let number = number[..end].trim_end_matches('.');
        // A sign without a number is about the sign.
        if !number.is_empty() {
            found.push((at..at + sign.len() + number.len(), Mention::Section(number.to_owned())));
        }
    }
    found.sort_by_key(|(place, _)| place.start);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let known = |numbers: &[&str]| Some(numbers.iter().map(|number| (*number).to_owned()).collect());
        let headings = vec![known(&["2", "2.6"]), known(&["5", "5.1"]), None, None, None];
        let mut findings = Vec::new();
        check_file(path, text, &headings, &mut findings);
        findings
    }

    #[test]
    fn the_document_is_named_before_the_section_in_its_paragraph() {
        let right = [
            "/// Hardware reference §2.6, §2.\n",
            "/// The ring (hardware\n/// reference §2.6).\n",
            "/// IEEE 754 §6.3, the RDNA4 instruction set guide §8.5.1.\n",
            "//! Fields are those of the instruction set reference.\n\n/// §5.1.\nfn x() {}\n",
            "fn x() {} // Instruction set reference §5.1\n",
        ];
        for text in right {
            assert_eq!(findings("a.rs", text), [""; 0], "{text}");
        }
        let wrong = [
            ("/// §2.6, hardware reference.\n", "a.rs:1: §2.6 of which document?"),
            ("/// Hardware reference §2.\n\n/// §2.6\n", "a.rs:3: §2.6 of which document?"),
            ("fn x() {} // Hardware reference §2\nfn y() {} // §2\n", "a.rs:2: §2 of which document?"),
            (
                "//! The hardware reference and the instruction set reference.\n\n/// §2.6\n",
                "a.rs:3: §2.6 of which document?",
            ),
            (
                "/// a\n/// Hardware reference §2.6, §5.1.\n",
                "a.rs:2: there is no §5.1 in the hardware reference",
            ),
        ];
        for (text, finding) in wrong {
            assert_eq!(findings("a.rs", text), [finding], "{text}");
        }
    }

    #[test]
    fn a_reference_speaks_of_itself() {
        assert_eq!(findings("docs/reference/hardware.md", "As §2.6 says.\n"), [""; 0]);
        assert_eq!(
            findings("docs/reference/hardware.md", "As §9 says.\n"),
            ["docs/reference/hardware.md:1: there is no §9 in the hardware reference"]
        );
    }

    #[test]
    fn headings_have_numbers() {
        assert_eq!(heading("### 2.6 Queue buffer sizes"), Some("2.6"));
        assert_eq!(heading("## 2. The KFD path"), Some("2"));
        assert_eq!(heading("## Rules"), None);
        assert_eq!(heading("2.6 is no heading"), None);
    }
}
