//! Every `§` names its document in a fixed form, and a section of ours exists.
//!
//! Contract: a section follows the name of its document at once, as in `hardware reference §4.6`, or follows another
//! section of it, as in `hardware reference §4.6, §5`. [`DOCUMENTS`] lists the names. A name is never followed by a
//! number without the sign. In one of our references a section without a name is its own. A section of ours must be a
//! heading there; of published documents nothing is known. Reads, never writes.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What texts call a document, in lower case, and where it is if it is ours. `#` stands for a version number.
const DOCUMENTS: &[(&str, Option<&str>)] = &[
    ("hardware reference", Some("docs/reference/hardware.md")),
    ("instruction set reference", Some("docs/reference/instruction-set.md")),
    ("rdna4 instruction set guide", None),
    ("ieee 754", None),
    ("dwarf #", None),
];
/// Kinds of files that are read.
const EXTENSIONS: &[&str] = &["rs", "md", "s", "inc", "toml", "c", "h", "cl", "hip", "yml"];
/// What precedes a comment's text, the longest first.
const COMMENT_MARKS: &[&str] = &["//!", "///", "//", "#"];
/// What may occur between two sections of one document, in this order, each part once.
const BETWEEN: &[&[&str]] = &[&[",", ";", "/"], &["and ", "or ", "to "]];
/// What names a place within a section; a number or a range of numbers follows.
const PLACES: &[&str] = &[", facts ", ", fact ", " facts ", " fact ", " steps ", " step "];
/// Words between a name and a number, where the sign belongs.
const NUMBER_WORDS: &[&str] = &["section ", "sections ", ", section ", ", sections "];

/// Headings of each of [`DOCUMENTS`]: the numbers; `None` for a document that is not ours.
type Headings = Vec<Option<Vec<String>>>;

/// A run of lines that are read as one text.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// Number of each line, and where it begins in the text.
    lines: Vec<(usize, usize)>,
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
    let own = DOCUMENTS.iter().position(|(_, document)| *document == Some(path));
    for paragraph in paragraphs(text, path.ends_with(".rs")) {
        let lower = paragraph.text.to_ascii_lowercase();
        let mut last: Option<(usize, usize)> = None;
        for (at, sign) in paragraph.text.match_indices('§') {
            let after = at + sign.len();
            let number = number_at(&lower[after..]);
            // A sign without a number is about the sign.
            if number.is_empty() {
                continue;
            }
            let continued =
                last.filter(|(end, _)| is_between(&lower[*end..at])).map(|(_, document)| document);
            let document = document_before(&lower[..at]).or(continued).or(own);
            last = document.map(|document| (after + number.len(), document));
            let line = paragraph.line(at);
            match document.map(|document| (&headings[document], DOCUMENTS[document].0)) {
                None => findings.push(format!("{path}:{line}: §{number} of which document?")),
                Some((Some(known), name)) if !known.iter().any(|one| one == number) => {
                    findings.push(format!("{path}:{line}: there is no §{number} in the {name}"));
                }
                Some(_) => (),
            }
        }
        findings.extend(
            unsigned(&lower)
                .map(|at| format!("{path}:{}: a section is written with its sign: §", paragraph.line(at))),
        );
    }
}

/// The number at the beginning of a text, `4.6`; empty if there is none.
fn number_at(text: &str) -> &str {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The document whose name ends a text.
fn document_before(text: &str) -> Option<usize> {
    let text = text.strip_suffix(' ')?;
    DOCUMENTS.iter().position(|(name, _)| match name.strip_suffix('#') {
        Some(name) => text.trim_end_matches(|one: char| one.is_ascii_digit()).ends_with(name),
        None => text.ends_with(name),
    })
}

/// Whether a text is nothing but what joins two sections: `, `, ` and `, ` fact 2, `.
fn is_between(text: &str) -> bool {
    let mut rest = text;
    if let Some(place) = PLACES.iter().find_map(|place| rest.strip_prefix(place)) {
        rest = place.trim_start_matches(|one: char| one.is_ascii_digit());
        let range = rest.strip_prefix(" to ").or(rest.strip_prefix(" and "));
        if let Some(range) = range.filter(|range| range.starts_with(|one: char| one.is_ascii_digit())) {
            rest = range.trim_start_matches(|one: char| one.is_ascii_digit());
        }
    }
    for part in BETWEEN {
        rest = rest.strip_prefix(' ').unwrap_or(rest);
        rest = part.iter().find_map(|one| rest.strip_prefix(one)).unwrap_or(rest);
    }
    text.len() > rest.len() && rest.trim().is_empty()
}

/// Places where one of our documents is named and a number follows without the sign.
fn unsigned(text: &str) -> impl Iterator<Item = usize> {
    let ours = DOCUMENTS.iter().filter(|(_, document)| document.is_some());
    ours.flat_map(move |(name, _)| text.match_indices(name)).filter_map(|(at, name)| {
        let rest = &text[at + name.len()..];
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        let rest = NUMBER_WORDS.iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
        rest.starts_with(|one: char| one.is_ascii_digit()).then_some(at)
    })
}

impl Paragraph {
    fn push(&mut self, number: usize, line: &str) {
        self.lines.push((number, self.text.len()));
        self.text.push_str(line);
        self.text.push(' ');
    }

    /// The number of the line that contains a place of the text.
    fn line(&self, place: usize) -> usize {
        let after = self.lines.partition_point(|(_, start)| *start <= place);
        self.lines[after.saturating_sub(1)].0
    }
}

/// Comments of one block are a paragraph, and so are lines of text; a line of Rust with code in it is one by itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let known = |numbers: &[&str]| Some(numbers.iter().map(|number| (*number).to_owned()).collect());
        let headings = vec![known(&["0", "2", "2.6"]), known(&["5", "5.1"]), None, None, None];
        let mut findings = Vec::new();
        check_file(path, text, &headings, &mut findings);
        findings
    }

    /// Writes a file below a folder.
    fn put(root: &Path, path: &str, text: &str) -> PathBuf {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// In texts of all kinds that are read; in other files, and in this one, it may be.
    #[test]
    fn headings_come_from_the_documents_and_files_are_read_by_their_kind() {
        let root = zrt_needs::TemporaryFolder::new("sections");
        let text = "// Hardware reference §2.6, §3\n";
        let files = [
            put(&root, "docs/reference/hardware.md", "# Hardware\n\n## 2 Queues\n\n### 2.6 Sizes\n"),
            put(&root, "docs/reference/instruction-set.md", ""),
            put(&root, "a/src/b.rs", text),
            put(&root, "a/kernel.s", text),
            put(&root, "a/data.bin", text),
            put(&root, "a/none", text),
            put(&root, "xtask/src/tidy/sections.rs", text),
        ];
        let told = ["a/src/b.rs", "a/kernel.s"]
            .map(|path| format!("{path}:1: there is no §3 in the hardware reference"));
        assert_eq!(check(&root, &files).unwrap(), told);
    }

    #[test]
    fn a_section_follows_its_document_or_another_section() {
        let right = [
            "/// Hardware reference §2.6, §2.\n",
            "/// The ring (hardware\n/// reference §2.6; §2).\n",
            "/// Hardware reference §2 and §2.6, or instruction set reference §5 to §5.1.\n",
            "/// Hardware reference §0, facts 1 to 5, §2.6; hardware reference §0 fact 2.\n",
            "/// IEEE 754 §6.3, the RDNA4 instruction set guide §8.5.1, §9, DWARF 5 §6.2.\n",
            "fn x() {} // Instruction set reference §5.1\n",
            "/// The sign § alone, and the hardware reference alone.\n",
        ];
        for text in right {
            assert_eq!(findings("a.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_section_without_its_document_is_a_finding() {
        let wrong = [
            ("/// §2.6, hardware reference.\n", "a.rs:1: §2.6 of which document?"),
            ("/// Hardware reference §2.\n\n/// §2.6\n", "a.rs:3: §2.6 of which document?"),
            ("/// Hardware reference §2: it is so. See §2.6\n", "a.rs:1: §2.6 of which document?"),
            ("//! Of the hardware reference.\n\n/// §2.6\n", "a.rs:3: §2.6 of which document?"),
            ("fn x() {} // Hardware reference §2\nfn y() {} // §2\n", "a.rs:2: §2 of which document?"),
            ("/// The manual §2.\n", "a.rs:1: §2 of which document?"),
            ("/// Instruction set guide §2.\n", "a.rs:1: §2 of which document?"),
            ("/// Hardware reference §2§2.6\n", "a.rs:1: §2.6 of which document?"),
            ("/// Hardware reference §2, see §2.6\n", "a.rs:1: §2.6 of which document?"),
            // Code, here of a text of several lines, ends what a comment says, and the other way round.
            ("// Hardware reference §2,\n§2.6\n", "a.rs:2: §2.6 of which document?"),
            ("fn x() {} // Hardware reference §2,\n// §2.6\n", "a.rs:2: §2.6 of which document?"),
        ];
        for (text, finding) in wrong {
            assert_eq!(findings("a.rs", text), [finding], "{text}");
        }
    }

    #[test]
    fn a_section_that_is_no_heading_is_a_finding() {
        let text = "/// a\n/// Hardware reference §2.6, §5.1.\n";
        assert_eq!(findings("a.rs", text), ["a.rs:2: there is no §5.1 in the hardware reference"]);
    }

    #[test]
    fn a_number_without_the_sign_is_a_finding() {
        for text in [
            "// The hazard (instruction set reference 5.1).\n",
            "// Hardware reference, sections 4 and 5.\n",
            "// Hardware reference section 4.\n",
        ] {
            assert_eq!(findings("a.inc", text), ["a.inc:1: a section is written with its sign: §"], "{text}");
        }
    }

    #[test]
    fn a_reference_speaks_of_itself() {
        assert_eq!(findings("docs/reference/hardware.md", "As §2.6 says.\n"), [""; 0]);
        assert_eq!(
            findings("docs/reference/hardware.md", "As §9 says.\n"),
            ["docs/reference/hardware.md:1: there is no §9 in the hardware reference"]
        );
        assert_eq!(findings("docs/reference/hardware.md", "Instruction set reference §5 says.\n"), [""; 0]);
    }

    #[test]
    fn headings_have_numbers() {
        assert_eq!(heading("### 2.6 Queue buffer sizes"), Some("2.6"));
        assert_eq!(heading("## 2. The KFD path"), Some("2"));
        assert_eq!(heading("## Rules"), None);
        assert_eq!(heading("## 2nd rule"), None);
        assert_eq!(heading("## .5 of it"), None);
        assert_eq!(heading("2.6 is no heading"), None);
    }
}
