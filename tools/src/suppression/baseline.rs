//! Baselines: how often each finding was there.
//!
//! Contract: a finding is its rule, its function and its instruction's text, so that edits elsewhere do not affect it;
//! of several equal ones, the last ones in the code count as new. The file begins with a line of its own, then has a
//! line `COUNT RULE FUNCTION INSTRUCTION` for each, in order. In a function's name blanks, control characters and `%`
//! are written `%XX`, the bytes of UTF-8 in hexadecimal digits; `-` stands for no function. What is written has been
//! read back.

use super::subject::{Subject, rule};
use super::text::{FILE_BYTES_MAX, SilenceError, lines};
use std::collections::BTreeMap;
use std::fmt;

/// The first line.
const HEADER: &str = "zrt-baseline 1";
/// Placeholder for no function.
const NO_FUNCTION: &str = "-";

/// Findings with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Baseline {
    counts: BTreeMap<Key, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rule: String,
    /// In its written form.
    function: String,
    instruction: String,
}

impl Key {
    fn of(subject: &Subject<'_>) -> Key {
        let words: Vec<&str> = subject.instruction.split_whitespace().collect();
        Key {
            rule: subject.rule.to_owned(),
            function: written(subject.function),
            instruction: words.join(" "),
        }
    }
}

impl Baseline {
    /// Reads the bytes of a file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Baseline, SilenceError> {
        let wrong = |line: usize, what: String| SilenceError::Line { file: file.to_owned(), line, what };
        let mut lines = lines(file, bytes)?.into_iter();
        match lines.next() {
            Some((_, HEADER)) => {}
            other => {
                let line = other.map_or(1, |(line, _)| line);
                let what = format!("it does not begin with {HEADER:?}: write it with --write-baseline");
                return Err(wrong(line, what));
            }
        }
        let mut baseline = Baseline::default();
        for (line, text) in lines {
            let form = || wrong(line, "a line is COUNT RULE FUNCTION INSTRUCTION: write it anew".into());
            let mut words = text.split_whitespace();
            let (Some(count), Some(name), Some(function)) = (words.next(), words.next(), words.next()) else {
                return Err(form());
            };
            let count: u64 = count.parse().ok().filter(|count| *count > 0).ok_or_else(form)?;
            let rule =
                rule(name).ok_or_else(|| wrong(line, format!("there is no rule {name:?}: write it anew")))?;
            let instruction = words.collect::<Vec<_>>().join(" ");
            let key = Key { rule: rule.to_owned(), function: function.to_owned(), instruction };
            let known = baseline.counts.entry(key).or_insert(0);
            *known = known.saturating_add(count);
        }
        Ok(baseline)
    }

    /// Adds a finding; returns false, and adds nothing, if a baseline cannot hold its rule.
    pub fn add(&mut self, subject: &Subject<'_>) -> bool {
        if rule(subject.rule).is_none() {
            return false;
        }
        let count = self.counts.entry(Key::of(subject)).or_insert(0);
        *count = count.saturating_add(1);
        true
    }

    /// The text of a file that [`Baseline::parse`] reads.
    ///
    /// # Errors
    /// [`SilenceError::Baseline`] if there are too many findings for one, or one of them is too long.
    pub fn to_text(&self) -> Result<String, SilenceError> {
        const NAME: &str = "the baseline";
        let text = self.to_string();
        let read = match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(SilenceError::Size { file: NAME.to_owned() }),
            false => Baseline::parse(NAME, text.as_bytes()),
        };
        match read {
            Ok(read) if read == *self => Ok(text),
            Ok(_) => Err(SilenceError::Baseline { why: "it would be read as another one".to_owned() }),
            Err(error) => Err(SilenceError::Baseline { why: error.to_string() }),
        }
    }

    /// Whether a finding is one of the baseline's, which then has one less of it.
    pub fn take(&mut self, subject: &Subject<'_>) -> bool {
        match self.counts.get_mut(&Key::of(subject)) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// How many findings it still has.
    pub fn left(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEADER}")?;
        writeln!(formatter, "# Findings that --baseline silences: count, rule, function, instruction.")?;
        for (Key { rule, function, instruction }, count) in &self.counts {
            writeln!(formatter, "{}", format!("{count} {rule} {function} {instruction}").trim_end())?;
        }
        Ok(())
    }
}

/// A function's name as one word.
fn written(name: &str) -> String {
    if name.is_empty() {
        return NO_FUNCTION.to_owned();
    }
    let mut text = String::new();
    for one in name.chars() {
        if one.is_whitespace() || one.is_control() || one == '%' || name == NO_FUNCTION {
            let mut buffer = [0; 4];
            one.encode_utf8(&mut buffer).bytes().for_each(|byte| text += &format!("%{byte:02X}"));
        } else {
            text.push(one);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name with a blank in it would be read as a name and the beginning of an instruction.
    #[test]
    fn what_would_be_read_as_something_else_is_not_written() {
        let of = |function: &str| {
            let key = Key { rule: "race".into(), function: function.into(), instruction: "v_nop".into() };
            Baseline { counts: BTreeMap::from([(key, 2)]) }.to_text()
        };
        assert!(of(&written("a b")).unwrap().ends_with("2 race a%20b v_nop\n"));
        let why = "it would be read as another one".to_owned();
        assert_eq!(of("a b"), Err(SilenceError::Baseline { why }));
    }
}
