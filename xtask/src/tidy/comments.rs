//! Comments and documentation in Rust are wrapped at one width.
//!
//! Contract: a line that is a comment has at most [`COLUMNS_MAX`] characters, in tests too. Tables and blocks of code
//! in documentation are as wide as they must be, and so is a line that cannot be broken, such as a link. Comments
//! behind code count with the code. Reads text, never files.

/// Longest line of a comment, in characters.
const COLUMNS_MAX: usize = 120;

/// Findings of one file.
pub fn check(path: &str, text: &str, findings: &mut Vec<String>) {
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        let Some(content) = content(line) else {
            in_code = false;
            continue;
        };
        let is_fence = content.starts_with("```");
        in_code ^= is_fence;
        let columns = line.chars().count();
        let is_table = content.starts_with('|');
        // A space between words, not behind the mark of a list's item.
        let can_be_broken = content.trim_start_matches("- ").contains(' ');
        if columns > COLUMNS_MAX && !in_code && !is_fence && !is_table && can_be_broken {
            findings
                .push(format!("{path}:{}: a comment of {columns} columns, at most {COLUMNS_MAX}", index + 1));
        }
    }
}

/// What a line says if it is a comment.
fn content(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check("a.rs", text, &mut findings);
        findings
    }

    #[test]
    fn comments_are_wrapped() {
        let words = "word ".repeat(22);
        for mark in ["//", "///", "//!", "    //", "    ///"] {
            let widest = format!("{mark} {words}{}", "x".repeat(COLUMNS_MAX - 111 - mark.len()));
            assert_eq!(widest.chars().count(), COLUMNS_MAX);
            assert_eq!(findings(&widest), [""; 0]);
            // Characters count, not bytes.
            assert_eq!(findings(&widest.replace('w', "§")), [""; 0]);
            let found = findings(&format!("fn f() {{}}\n{widest}x\n"));
            assert_eq!(found, ["a.rs:2: a comment of 121 columns, at most 120"]);
        }
    }

    #[test]
    fn what_is_no_prose_or_cannot_be_broken_may_be_wide() {
        let words = "word ".repeat(30);
        for text in [
            format!("let words = \"// {words}\";"),
            format!("let one = 1; // {words}"),
            format!("/// | {words}|"),
            format!("/// ```text\n/// {words}\n/// ```"),
            format!("//! https://{}", "x".repeat(COLUMNS_MAX)),
            format!("/// - [{}](a)", "x".repeat(COLUMNS_MAX)),
        ] {
            assert_eq!(findings(&text), [""; 0], "{text}");
        }
        // A block ends with its comment, and with its fence.
        assert_eq!(findings(&format!("/// ```\nfn f() {{}}\n// {words}")).len(), 1);
        assert_eq!(findings(&format!("/// ```\n/// ```\n/// {words}")).len(), 1);
    }
}
