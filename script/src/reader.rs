//! Tables of TOML, read key by key, with the place of everything that is wrong.
//!
//! Contract: a caller that has read the keys it knows calls [`Fields::end`], which refuses the keys that are left.
//! Complaints name line and column of the key or value, from 1. Pure; each key is visited once.

use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place in the script, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Character in the line.
    pub column: usize,
}

/// What is wrong with a script, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The place.
    pub at: Position,
    /// What is wrong, and what to do.
    pub what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.at.line, self.at.column, self.what)
    }
}

/// Bytes of the script between two of the places at which its characters are counted.
const STRIDE_BYTES: usize = 64;

/// The script's text, for the places of bytes in it. Made in one pass over the text; a place then costs a binary search
/// and a scan of [`STRIDE_BYTES`] bytes.
pub(crate) struct Source<'t> {
    text: &'t [u8],
    /// Where each line begins.
    lines: Vec<usize>,
    /// Characters that begin before each multiple of [`STRIDE_BYTES`].
    characters: Vec<usize>,
}

/// A value and its place.
pub(crate) struct Field<'a> {
    pub value: &'a DeValue<'a>,
    pub at: Position,
    /// Its key, for complaints.
    pub key: String,
}

/// The keys of a table that are not read yet.
pub(crate) struct Fields<'a> {
    /// Each with the place of its key.
    left: Vec<(Position, Field<'a>)>,
    known: Vec<&'static str>,
    at: Position,
}

impl<'t> Source<'t> {
    /// The source of a text.
    pub fn new(text: &'t str) -> Source<'t> {
        let text = text.as_bytes();
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let counts = text.chunks(STRIDE_BYTES).scan(0, |count, chunk| {
            let before = *count;
            *count += characters(chunk);
            Some(before)
        });
        Source { text, lines: std::iter::once(0).chain(ends).collect(), characters: counts.collect() }
    }

    /// The place of a byte, or of the end if there is no such byte.
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= byte);
        let start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or_default();
        Position { line, column: self.characters_before(byte) - self.characters_before(start) + 1 }
    }

    fn characters_before(&self, byte: usize) -> usize {
        // After the last byte there may be no stride.
        let stride = (byte / STRIDE_BYTES).min(self.characters.len().saturating_sub(1));
        let before = self.characters.get(stride).copied().unwrap_or_default();
        before + characters(&self.text[stride * STRIDE_BYTES..byte])
    }
}

/// Characters of UTF-8 that begin in these bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

impl<'a> Fields<'a> {
    /// The keys of a table.
    pub fn new(source: &Source<'_>, table: &'a DeTable<'a>, at: Position) -> Fields<'a> {
        let field = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let key_at = source.position(key.span().start);
            let key: &std::borrow::Cow<'a, str> = key.get_ref();
            let field = Field {
                value: value.get_ref(),
                at: source.position(value.span().start),
                key: key.clone().into_owned(),
            };
            (key_at, field)
        };
        Fields { left: table.iter().map(field).collect(), known: Vec::new(), at }
    }

    /// The place of the table.
    pub fn at(&self) -> Position {
        self.at
    }

    /// The value of a key, if it is present.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.known.push(key);
        let index = self.left.iter().position(|(_, field)| field.key == key)?;
        Some(self.left.swap_remove(index).1)
    }

    /// The value of a key that must be there.
    pub fn need(&mut self, key: &'static str) -> Result<Field<'a>, ScriptError> {
        let at = self.at;
        self.take(key).ok_or_else(|| ScriptError { at, what: format!("{key} is missing") })
    }

    /// All that are left, with the places of their keys, in the order of the script.
    pub fn rest(&mut self) -> Vec<(Position, Field<'a>)> {
        let mut rest = std::mem::take(&mut self.left);
        rest.sort_by_key(|(at, _)| (at.line, at.column));
        rest
    }

    /// Refuses keys that were not read.
    pub fn end(self) -> Result<(), ScriptError> {
        let first = self.left.iter().min_by_key(|(at, _)| (at.line, at.column));
        first.map_or(Ok(()), |(at, field)| {
            let (key, known) = (&field.key, self.known.join(", "));
            Err(ScriptError {
                at: *at,
                what: format!("there is no key {key:?} here; those known are {known}"),
            })
        })
    }
}

impl<'a> Field<'a> {
    /// A complaint about the field.
    pub fn refuse(&self, wanted: &str) -> ScriptError {
        ScriptError { at: self.at, what: format!("{} must be {wanted}", self.key) }
    }

    pub fn text(&self) -> Result<&'a str, ScriptError> {
        self.value.as_str().ok_or_else(|| self.refuse("a text in quotes"))
    }

    pub fn flag(&self) -> Result<bool, ScriptError> {
        self.value.as_bool().ok_or_else(|| self.refuse("true or false"))
    }

    /// An integer in a range.
    pub fn number(&self, min: u64, max: u64) -> Result<u64, ScriptError> {
        let number = self.value.as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.refuse(&format!("a number from {min} to {max}")))
    }

    /// A number with or without a fraction, from 0.
    pub fn fraction(&self) -> Result<f64, ScriptError> {
        let number = match self.value {
            DeValue::Integer(number) => {
                u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number as f64)
            }
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|number| *number >= 0.0 && number.is_finite())
            .ok_or_else(|| self.refuse("a number from 0"))
    }

    /// A table's keys.
    pub fn fields(&self, source: &Source<'_>) -> Result<Fields<'a>, ScriptError> {
        let table = self.value.as_table().ok_or_else(|| self.refuse("a table"))?;
        Ok(Fields::new(source, table, self.at))
    }

    /// The items of an array, at most `limit`.
    pub fn items(&self, source: &Source<'_>, limit: usize) -> Result<Vec<Field<'a>>, ScriptError> {
        let array = self.value.as_array().ok_or_else(|| self.refuse("an array"))?;
        if array.len() > limit {
            return Err(self.refuse(&format!("an array of at most {limit}, and has {}", array.len())));
        }
        let item = |value: &'a Spanned<DeValue<'a>>| Field {
            value: value.get_ref(),
            at: source.position(value.span().start),
            key: format!("an item of {}", self.key),
        };
        Ok(array.iter().map(item).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as counting from the beginning.
        #[test]
        fn places_are_counted_in_lines_and_characters(text in "([a-zé€]{0,40}\n?){0,12}") {
            let source = Source::new(&text);
            let places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for at in places {
                let line = text[..at].split('\n').count();
                let column = text[..at].rsplit('\n').next().unwrap().chars().count() + 1;
                prop_assert_eq!(source.position(at), Position { line, column });
            }
            prop_assert_eq!(source.position(usize::MAX), source.position(text.len()));
        }
    }
}
