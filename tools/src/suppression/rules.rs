//! Suppression files.
//!
//! Contract: a line is `RULE FUNCTION PLACE -- REASON`. The rule is a name of docs/checking.md or of the lint; the
//! function and the file of a place are patterns, in which `*` stands for any characters and `?` for one. A place is
//! `*`, an offset `+0x48` in bytes, or `FILE:LINE` with a number or `*` as line, where the file may lack leading
//! folders. The reason is not empty. Cost of a match: at most the pattern's length times the text's.

use super::subject::{Subject, rule};
use super::text::{SilenceError, lines};
use serde::Serialize;

/// Separator between a place and its reason.
const REASON_MARK: &str = "--";
const FORM: &str =
    "a line is RULE FUNCTION PLACE -- REASON, as in: memory-wait leaf* kernel.c:12 -- its caller waits";

/// A suppression that covered no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unused {
    /// The suppression file.
    pub file: String,
    /// Its line.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// The suppressions of a file.
#[derive(Debug)]
pub(super) struct Suppressions {
    file: String,
    entries: Vec<Suppression>,
}

#[derive(Debug)]
struct Suppression {
    line: usize,
    text: String,
    rule: &'static str,
    function: String,
    place: PlacePattern,
    is_used: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum PlacePattern {
    Any,
    Offset(u64),
    /// A file's pattern, and a line unless any will do.
    Source(String, Option<u32>),
}

impl Suppressions {
    /// Reads the bytes of a file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Suppressions, SilenceError> {
        let entry = |(line, text): (usize, &str)| {
            let wrong = |what: String| SilenceError::Line { file: file.to_owned(), line, what };
            let mut words = text.split_whitespace();
            let (Some(name), Some(function), Some(place)) = (words.next(), words.next(), words.next()) else {
                return Err(wrong(FORM.into()));
            };
            let rule = rule(name).ok_or_else(|| wrong(format!("there is no rule {name:?}: {FORM}")))?;
            let place = PlacePattern::parse(place).map_err(wrong)?;
            if words.next() != Some(REASON_MARK) || words.next().is_none() {
                return Err(wrong(format!("it gives no reason: {FORM}")));
            }
            let (function, text) = (function.to_owned(), text.to_owned());
            Ok(Suppression { line, text, rule, function, place, is_used: false })
        };
        let entries = lines(file, bytes)?.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Suppressions { file: file.to_owned(), entries })
    }

    /// Whether a finding is suppressed. All entries that cover it count as used.
    pub fn covers(&mut self, subject: &Subject<'_>) -> bool {
        let mut is_covered = false;
        for entry in &mut self.entries {
            let covers = entry.rule == subject.rule
                && matches(&entry.function, subject.function)
                && entry.place.covers(subject);
            entry.is_used |= covers;
            is_covered |= covers;
        }
        is_covered
    }

    /// Those that have not covered anything.
    pub fn unused(&self) -> Vec<Unused> {
        let unused = self.entries.iter().filter(|entry| !entry.is_used);
        unused
            .map(|entry| Unused { file: self.file.clone(), line: entry.line, text: entry.text.clone() })
            .collect()
    }
}

impl PlacePattern {
    fn parse(text: &str) -> Result<PlacePattern, String> {
        if text == "*" {
            return Ok(PlacePattern::Any);
        }
        if let Some(offset) = text.strip_prefix('+') {
            let number = match offset.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => offset.parse(),
            };
            return number
                .map(PlacePattern::Offset)
                .map_err(|_| format!("{text:?} is not an offset: {FORM}"));
        }
        let wrong = || format!("{text:?} is not a place (*, +0x48 or FILE:LINE): {FORM}");
        let (file, line) = text.rsplit_once(':').filter(|(file, _)| !file.is_empty()).ok_or_else(wrong)?;
        let line = match line {
            "*" => None,
            number => Some(number.parse().ok().filter(|line| *line > 0).ok_or_else(wrong)?),
        };
        Ok(PlacePattern::Source(file.to_owned(), line))
    }

    fn covers(&self, subject: &Subject<'_>) -> bool {
        match self {
            PlacePattern::Any => true,
            PlacePattern::Offset(offset) => subject.offset == Some(*offset),
            PlacePattern::Source(pattern, line) => subject.source.is_some_and(|(file, here)| {
                line.is_none_or(|line| line == here)
                    && (matches(pattern, file)
                        || file.match_indices('/').any(|(at, _)| matches(pattern, &file[at + 1..])))
            }),
        }
    }
}

/// Whether a pattern with `*` and `?` covers a whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // The last `*`, and where its part of the text ends at present.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, end)) = star else { return false };
                (at, from) = (place, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_cover_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("leaf", "leaf", true),
            ("leaf", "leafs", false),
            ("leaf*", "leaf", true),
            ("*_end", "a_end_end", true),
            ("a*b*c", "a--b-c-b", false),
            ("a*b*c", "a--b-c-bc", true),
            ("l??f", "leaf", true),
            ("l?f", "leaf", false),
            ("?", "é", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn places_are_three_kinds() {
        let source = |file: &str, line| Ok(PlacePattern::Source(file.to_owned(), line));
        assert_eq!(PlacePattern::parse("*"), Ok(PlacePattern::Any));
        assert_eq!(PlacePattern::parse("+72"), Ok(PlacePattern::Offset(72)));
        assert_eq!(PlacePattern::parse("+0x48"), Ok(PlacePattern::Offset(72)));
        assert_eq!(PlacePattern::parse("a.c:12"), source("a.c", Some(12)));
        assert_eq!(PlacePattern::parse("C:/a.c:*"), source("C:/a.c", None));
        for text in ["+", "+0x", "+-1", "a.c", "a.c:", ":3", "a.c:0", "a.c:x", "a.c:4294967296"] {
            assert!(PlacePattern::parse(text).is_err(), "{text}");
        }
    }

    /// The same, by definition: every length is tried for a `*`.
    fn covers(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|taken| covers(rest, &text[taken..])),
            ([one, rest @ ..], [first, others @ ..]) => (*one == '?' || one == first) && covers(rest, others),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_do_what_they_are_defined_to(pattern in "[ab*?]{0,7}", text in "[ab]{0,7}") {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            prop_assert_eq!(matches(&pattern, &text), covers(&chars(&pattern), &chars(&text)));
        }
    }
}
