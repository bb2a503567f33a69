//! JSON read once from front to back, without a tree.
//!
//! Contract: the text is untrusted. A reader calls for what it expects, an object's members one by one; what it does
//! not ask for is skipped. Nothing is allocated but strings with escapes, and recursion is at most [`NESTING_MAX`]
//! deep. Numbers are kept as text until they are asked for. Grammar: RFC 8259.

use std::borrow::Cow;
use thiserror::Error;

/// Nesting depth of arrays and objects.
pub const NESTING_MAX: u32 = 64;

/// Why a text is not the JSON that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonError {
    /// Another character than the grammar or the reader wants.
    #[error("at byte {offset} there is {found:?}, but {wanted} is needed")]
    Unexpected {
        /// Where.
        offset: usize,
        /// The character, if the text has not ended.
        found: Option<char>,
        /// What should be there.
        wanted: &'static str,
    },
    /// Arrays and objects within each other.
    #[error("at byte {offset} arrays and objects are nested more than {NESTING_MAX} deep")]
    Nesting {
        /// Where.
        offset: usize,
    },
    /// The bytes are no text.
    #[error("byte {offset} is not UTF-8")]
    NotUtf8 {
        /// The first such byte.
        offset: usize,
    },
}

/// What a value is, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
    Text,
    Number,
    True,
    False,
    Null,
}

/// A position in a text.
pub(super) struct Json<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

impl<'t> Json<'t> {
    /// The text of a file.
    pub(super) fn new(bytes: &'t [u8]) -> Result<Json<'t>, JsonError> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|error| JsonError::NotUtf8 { offset: error.valid_up_to() })?;
        Ok(Json { text, at: 0, depth: 0 })
    }

    /// What comes next.
    pub(super) fn shape(&mut self) -> Result<Shape, JsonError> {
        Ok(match self.peek() {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b'"') => Shape::Text,
            Some(b'-' | b'0'..=b'9') => Shape::Number,
            Some(b't') => Shape::True,
            Some(b'f') => Shape::False,
            Some(b'n') => Shape::Null,
            _ => return Err(self.unexpected("a value")),
        })
    }

    /// Calls `member` with the key of each member; it reads or skips the value.
    pub(super) fn object<E: From<JsonError>>(
        &mut self,
        mut member: impl FnMut(&mut Json<'t>, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'{', "an object")?;
        let mut is_first = true;
        while !self.leaves(b'}', &mut is_first)? {
            let key = self.text()?;
            self.take(b':', "a colon")?;
            member(self, &key)?;
        }
        Ok(())
    }

    /// Calls `element` for each element; it reads or skips it.
    pub(super) fn array<E: From<JsonError>>(
        &mut self,
        mut element: impl FnMut(&mut Json<'t>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'[', "an array")?;
        let mut is_first = true;
        while !self.leaves(b']', &mut is_first)? {
            element(self)?;
        }
        Ok(())
    }

    /// A string.
    pub(super) fn text(&mut self) -> Result<Cow<'t, str>, JsonError> {
        self.take(b'"', "a string")?;
        let begin = self.at;
        let mut made = String::new();
        let mut done = begin;
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    made.push_str(&self.text[done..self.at]);
                    made.push(self.escape()?);
                    done = self.at;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.unexpected("a character of a string")),
            }
        }
        let rest = &self.text[done..self.at];
        self.at += 1;
        if done == begin {
            return Ok(Cow::Borrowed(rest));
        }
        made.push_str(rest);
        Ok(Cow::Owned(made))
    }

    /// A number as written, by a grammar that is a little wider than JSON's.
    pub(super) fn number(&mut self) -> Result<&'t str, JsonError> {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.bytes().take_while(|byte| is_part(*byte)).count();
        if rest[..len].parse::<f64>().is_err() {
            return Err(self.unexpected("a number"));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// A whole number from 0 on.
    pub(super) fn whole(&mut self) -> Result<u64, JsonError> {
        let begin = self.at;
        let number = self.number()?;
        number.parse().map_err(|_| JsonError::Unexpected {
            offset: begin,
            found: number.chars().next(),
            wanted: "a whole number from 0 to 18446744073709551615",
        })
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool, JsonError> {
        let value = self.shape()? == Shape::True;
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// A string, or nothing for `null`.
    pub(super) fn text_or_null(&mut self) -> Result<Option<Cow<'t, str>>, JsonError> {
        if self.shape()? == Shape::Null {
            return self.word("null").map(|()| None);
        }
        self.text().map(Some)
    }

    /// Passes over a value of any shape.
    pub(super) fn skip(&mut self) -> Result<(), JsonError> {
        match self.shape()? {
            Shape::Object => self.object(|json, _| json.skip()),
            Shape::Array => self.array(Json::skip),
            Shape::Text => self.text().map(|_| ()),
            Shape::Number => self.number().map(|_| ()),
            Shape::True => self.word("true"),
            Shape::False => self.word("false"),
            Shape::Null => self.word("null"),
        }
    }

    /// After the last value: nothing but space may follow.
    pub(super) fn end(mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the file")),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8, wanted: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(wanted));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        self.peek();
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected(word));
        }
        self.at += word.len();
        Ok(())
    }

    fn enter(&mut self, byte: u8, wanted: &'static str) -> Result<(), JsonError> {
        self.take(byte, wanted)?;
        self.depth += 1;
        if self.depth > NESTING_MAX { Err(JsonError::Nesting { offset: self.at }) } else { Ok(()) }
    }

    /// Passes over a comma, or over the end of the array or object.
    fn leaves(&mut self, end: u8, is_first: &mut bool) -> Result<bool, JsonError> {
        let is_end = self.peek() == Some(end);
        if is_end {
            self.at += 1;
            self.depth -= 1;
        } else if !*is_first {
            self.take(b',', "a comma")?;
        }
        *is_first = false;
        Ok(is_end)
    }

    /// The character of an escape; the position is at its backslash.
    fn escape(&mut self) -> Result<char, JsonError> {
        let code = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 2;
        Ok(match code {
            Some(code @ (b'"' | b'\\' | b'/')) => code as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => self.code_point()?,
            _ => {
                self.at -= 1;
                return Err(self.unexpected("an escape"));
            }
        })
    }

    /// Four hexadecimal digits, or two times four for a pair of surrogates. A surrogate alone becomes U+FFFD.
    fn code_point(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with("\\u") {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        self.at += 2;
        let second = self.four_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            self.at = before;
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let joined = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let digit = |sum: Option<u32>, byte: &u8| Some(sum? * 16 + (*byte as char).to_digit(16)?);
        let value = digits.iter().fold(Some(0), digit).filter(|_| digits.len() == 4);
        let value = value.ok_or_else(|| self.unexpected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(value)
    }

    fn unexpected(&self, wanted: &'static str) -> JsonError {
        let offset = self.at.min(self.text.len());
        let found = self.text.get(offset..).and_then(|rest| rest.chars().next());
        JsonError::Unexpected { offset, found, wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A value as text of one form, by this reader.
    fn written(json: &mut Json<'_>, out: &mut String) -> Result<(), JsonError> {
        match json.shape()? {
            Shape::Object => {
                out.push('{');
                json.object(|json, key| {
                    out.push_str(&format!("{key:?}:"));
                    written(json, out)?;
                    out.push(',');
                    Ok::<(), JsonError>(())
                })?;
                out.push('}');
            }
            Shape::Array => {
                out.push('[');
                json.array(|json| {
                    written(json, out)?;
                    out.push(',');
                    Ok::<(), JsonError>(())
                })?;
                out.push(']');
            }
            Shape::Text => out.push_str(&format!("{:?}", json.text()?)),
            Shape::Number => out.push_str(&format!("{:?}", json.number()?.parse::<f64>().unwrap())),
            Shape::True | Shape::False => out.push_str(&json.boolean()?.to_string()),
            Shape::Null => {
                json.skip()?;
                out.push_str("null");
            }
        }
        Ok(())
    }

    /// The same by serde_json.
    fn expected(value: &serde_json::Value, out: &mut String) {
        match value {
            serde_json::Value::Object(members) => {
                out.push('{');
                for (key, value) in members {
                    out.push_str(&format!("{key:?}:"));
                    expected(value, out);
                    out.push(',');
                }
                out.push('}');
            }
            serde_json::Value::Array(elements) => {
                out.push('[');
                for element in elements {
                    expected(element, out);
                    out.push(',');
                }
                out.push(']');
            }
            serde_json::Value::String(text) => out.push_str(&format!("{text:?}")),
            serde_json::Value::Number(number) => out.push_str(&format!("{:?}", number.as_f64().unwrap())),
            serde_json::Value::Bool(flag) => out.push_str(&flag.to_string()),
            serde_json::Value::Null => out.push_str("null"),
        }
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<u64>().prop_map(Into::into),
            (-1e30f64..1e30).prop_map(Into::into),
            ".{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn texts_are_read_as_a_public_reader_reads_them(value in values(), is_wide: bool) {
            let text = if is_wide { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let (mut found, mut wanted) = (String::new(), String::new());
            let mut json = Json::new(text.as_bytes()).unwrap();
            written(&mut json, &mut found).unwrap();
            json.end().unwrap();
            expected(&value, &mut wanted);
            prop_assert_eq!(found, wanted);
            let mut json = Json::new(text.as_bytes()).unwrap();
            json.skip().unwrap();
            json.end().unwrap();
        }

        #[test]
        fn any_bytes_end_in_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(mut json) = Json::new(&bytes) {
                let _ = json.skip();
            }
        }

        /// What the public reader refuses is refused here, but for numbers with a leading zero or plus.
        #[test]
        fn broken_texts_are_refused(text in "[\\[\\]{}:,\"\\\\utfnrae1 -]{0,24}") {
            let mut json = Json::new(text.as_bytes()).unwrap();
            let is_read = json.skip().is_ok() && json.end().is_ok();
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert!(is_read, "{}", text);
            } else if !text.contains(['1', '-']) {
                prop_assert!(!is_read || text.contains("\\u"), "{}", text);
            }
        }
    }

    #[test]
    fn escapes_and_surrogates_become_characters() {
        let text = r#""a\"\\\/\b\f\n\r\t\u00e9\ud83e\udd99\ud800x""#;
        let found = Json::new(text.as_bytes()).unwrap().text().unwrap().into_owned();
        assert_eq!(found, "a\"\\/\u{8}\u{c}\n\r\té🦙\u{fffd}x");
    }

    #[test]
    fn what_is_wrong_is_found_at_its_byte() {
        let cases = [
            (r#"["a\qb"]"#, 4, Some('q'), "an escape"),
            (r#"["éé\"#, 7, None, "an escape"),
            ("[1 2]", 3, Some('2'), "a comma"),
        ];
        for (text, offset, found, wanted) in cases {
            let read = Json::new(text.as_bytes()).unwrap().skip();
            assert_eq!(read, Err(JsonError::Unexpected { offset, found, wanted }), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let skip = |text: String| Json::new(text.as_bytes()).unwrap().skip();
        assert_eq!(skip(deep(64)), Ok(()));
        assert_eq!(skip(deep(65)), Err(JsonError::Nesting { offset: 65 }));
        assert!(skip("[".repeat(1_000_000)).is_err());
    }
}
