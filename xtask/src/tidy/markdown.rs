//! Markdown is wrapped at one width.
//!
//! Contract: a line of prose has at most [`COLUMNS_MAX`] characters. Tables, blocks of code and front matter are as
//! wide as they must be, and so is a line that cannot be broken: one word, one link, one code span, or a heading's
//! number with one of these. Reads text, never files.

/// Longest line of prose, in characters.
const COLUMNS_MAX: usize = 100;

/// Findings of one file.
pub fn check(path: &str, text: &str, findings: &mut Vec<String>) {
    let mut fence: Option<&str> = None;
    let mut in_front_matter = text.starts_with("---\n");
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let is_fence = content.starts_with("```");
        match fence {
            Some(_) if is_fence => fence = None,
            None if is_fence => fence = Some(content),
            _ => (),
        }
        if in_front_matter {
            in_front_matter = index == 0 || line != "---";
        } else if fence.is_none() && !is_fence && is_too_long(line) {
            let columns = line.chars().count();
            findings.push(format!("{path}:{}: {columns} columns, at most {COLUMNS_MAX}", index + 1));
        }
    }
}

/// Whether a line is longer than it may be and can be broken.
fn is_too_long(line: &str) -> bool {
    let is_table_or_code = line.trim_start().starts_with('|') || line.starts_with("    ");
    line.chars().count() > COLUMNS_MAX && !is_table_or_code && breaks(line) > 0
}

/// Places where a line can be broken: spaces between words, none of them in a code span or after a list's mark.
fn breaks(line: &str) -> usize {
    let content = line.trim_start();
    let mark = content.find(' ').filter(|at| is_mark(&content[..*at]));
    let content = mark.map_or(content, |at| content[at..].trim_start());
    let mut in_code = false;
    let separators = content.chars().filter(|one| {
        in_code ^= *one == '`';
        *one == ' ' && !in_code
    });
    separators.count()
}

/// The mark of a list's item or of a heading.
fn is_mark(word: &str) -> bool {
    let number = word.trim_end_matches('.');
    matches!(word, "-" | "*" | "+" | ">")
        || word.chars().all(|one| one == '#')
        || (number.len() < word.len() && number.chars().all(|one| one.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check("a.md", text, &mut findings);
        findings
    }

    #[test]
    fn prose_is_wrapped() {
        let words = "word ".repeat(20);
        let widest = format!("{}s", words.trim_end());
        assert_eq!(widest.chars().count(), COLUMNS_MAX);
        assert_eq!(findings(&widest), [""; 0]);
        assert_eq!(findings(&format!("a\n{widest}s\n")), ["a.md:2: 101 columns, at most 100"]);
        assert_eq!(findings(&format!("- {widest}\n")), ["a.md:1: 102 columns, at most 100"]);
        assert_eq!(findings(&format!("```text\n```\n{widest}s\n")), ["a.md:3: 101 columns, at most 100"]);
        // Characters count, not bytes.
        assert_eq!(findings(&widest.replacen('w', "§", 20)), [""; 0]);
    }

    #[test]
    fn what_cannot_be_broken_may_be_wide() {
        let long = "x".repeat(COLUMNS_MAX);
        let words = "word ".repeat(30);
        for text in [
            format!("| {words}|\n"),
            format!("```text\n{words}x\n```\n"),
            format!("    {words}x\n"),
            format!("---\nname: x\nabout: {words}x\n---\n"),
            format!("https://{long}\n"),
            format!("1. [{long}](a)\n"),
            format!("- `{words}x`\n"),
            format!("## {long}\n"),
            format!("12. {long}\n"),
        ] {
            assert_eq!(findings(&text), [""; 0], "{text}");
        }
        for (text, line) in [
            (format!("- `{words}x` and\n"), 1),
            // Front matter ends; a number needs its full stop, and a full stop its number.
            (format!("---\nname: x\n---\n{words}x\n"), 4),
            (format!("see {long}\n"), 1),
            (format!("12 {long}\n"), 1),
            (format!("see. {long}\n"), 1),
        ] {
            let found = findings(&text);
            assert!(found.len() == 1 && found[0].starts_with(&format!("a.md:{line}: ")), "{text}: {found:?}");
        }
    }
}
