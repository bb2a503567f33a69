//! MessagePack, the subset that the metadata note uses.
//!
//! Contract: never panics and allocates nothing. A message is checked as a whole when it is opened; then its values
//! are read in place, each time they are requested. Nesting is walked with a counter, without recursion; a look-up
//! skips over the entries of the map it searches. Source: the MessagePack specification's table of formats.

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// Nil, floats, binary and extension values, which the metadata does not use.
    Other,
    Bool(bool),
    /// Every integer of the format fits.
    Integer(i128),
    Text(&'a str),
    List(Values<'a>),
    /// Alternating keys and values.
    Map(Values<'a>),
}

/// Consecutive values, not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values<'a> {
    left: u64,
    rest: &'a [u8],
}

impl<'a> Value<'a> {
    /// Reads the first value of the bytes; `None` if they are not valid.
    pub fn parse(bytes: &'a [u8]) -> Option<Value<'a>> {
        Reader { rest: bytes }.skip_value()?;
        Reader { rest: bytes }.value()
    }

    /// The value for a key of a map.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let Value::Map(mut entries) = *self else { return None };
        while let (Some(found), Some(value)) = (entries.next(), entries.next()) {
            if found == Value::Text(key) {
                return Some(value);
            }
        }
        None
    }

    /// The text for a key of a map.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number for a key of a map, if it fits 32 bits.
    pub fn number(&self, key: &str) -> Option<u32> {
        self.get(key)?.to_u32()
    }

    /// The list for a key of a map; empty if there is none.
    pub fn list(&self, key: &str) -> Values<'a> {
        match self.get(key) {
            Some(Value::List(list)) => list,
            _ => Values { left: 0, rest: &[] },
        }
    }

    /// The number, if it fits 32 bits.
    pub fn to_u32(self) -> Option<u32> {
        match self {
            Value::Integer(number) => u32::try_from(number).ok(),
            _ => None,
        }
    }
}

impl Values<'_> {
    /// Number of values. Each has at least one byte.
    pub fn len(&self) -> usize {
        self.left as usize // Checked against the bytes when the message was opened.
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader { rest: self.rest };
        reader.skip_value()?;
        let value = Reader { rest: self.rest }.value();
        self.rest = reader.rest;
        value
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// A big-endian number of 1, 2, 4 or 8 bytes.
    fn unsigned(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, bytes: usize) -> Option<i64> {
        let unused_bits = 64 - 8 * bytes as u32;
        Some((self.unsigned(bytes)? << unused_bits) as i64 >> unused_bits)
    }

    fn length(&mut self, bytes: usize) -> Option<usize> {
        usize::try_from(self.unsigned(bytes)?).ok()
    }

    fn text(&mut self, length: usize) -> Option<Value<'a>> {
        Some(Value::Text(core::str::from_utf8(self.take(length)?).ok()?))
    }

    fn skip(&mut self, length: usize) -> Option<Value<'a>> {
        self.take(length)?;
        Some(Value::Other)
    }

    /// The contents of a list or map, which begin here.
    fn values(&self, count: usize) -> Values<'a> {
        Values { left: count as u64, rest: self.rest }
    }

    /// Skips a value with everything in it. Counts that exceed the bytes are refused at once.
    fn skip_value(&mut self) -> Option<()> {
        let mut left = 1u64;
        while let Some(after) = left.checked_sub(1) {
            left = after;
            if let Value::List(values) | Value::Map(values) = self.value()? {
                left = left.checked_add(values.left)?;
            }
            if left > self.rest.len() as u64 {
                return None;
            }
        }
        Some(())
    }

    /// Reads a value; for a list or map, only its head.
    fn value(&mut self) -> Option<Value<'a>> {
        let tag = self.unsigned(1)? as u8;
        match tag {
            0x00..=0x7F => Some(Value::Integer(tag.into())),
            0x80..=0x8F => Some(Value::Map(self.values(2 * usize::from(tag & 0xF)))),
            0x90..=0x9F => Some(Value::List(self.values(usize::from(tag & 0xF)))),
            0xA0..=0xBF => self.text(usize::from(tag & 0x1F)),
            0xC0 => Some(Value::Other),
            0xC1 => None,
            0xC2 | 0xC3 => Some(Value::Bool(tag & 1 != 0)),
            0xC4..=0xC6 => self.length(1 << (tag - 0xC4)).and_then(|length| self.skip(length)),
            // An extension has one type byte before its data.
            0xC7..=0xC9 => {
                let length = self.length(1 << (tag - 0xC7))?;
                self.skip(length.checked_add(1)?)
            }
            0xCA => self.skip(4),
            0xCB => self.skip(8),
            0xCC..=0xCF => Some(Value::Integer(self.unsigned(1 << (tag - 0xCC))?.into())),
            0xD0..=0xD3 => Some(Value::Integer(self.signed(1 << (tag - 0xD0))?.into())),
            0xD4..=0xD8 => self.skip((1 << (tag - 0xD4)) + 1),
            0xD9..=0xDB => self.length(1 << (tag - 0xD9)).and_then(|length| self.text(length)),
            0xDC | 0xDD => self.length(2 << (tag - 0xDC)).map(|count| Value::List(self.values(count))),
            0xDE | 0xDF => {
                let count = self.length(2 << (tag - 0xDE))?.checked_mul(2)?;
                Some(Value::Map(self.values(count)))
            }
            0xE0..=0xFF => Some(Value::Integer((tag as i8).into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes are the examples of the MessagePack specification's format table.
    #[test]
    fn every_form_is_read() {
        let check =
            |bytes: &[u8], value: Value<'_>| assert_eq!(Value::parse(bytes), Some(value), "{bytes:x?}");
        check(&[0x7F], Value::Integer(127));
        check(&[0xFF], Value::Integer(-1));
        check(&[0xCC, 200], Value::Integer(200));
        check(&[0xCD, 1, 2], Value::Integer(258));
        check(&[0xCE, 0x80, 0, 0, 1], Value::Integer(0x8000_0001));
        check(&[0xCF, 0xFF, 0, 0, 0, 0, 0, 0, 0], Value::Integer(0xFF00_0000_0000_0000));
        check(&[0xD1, 0xFF, 0xFE], Value::Integer(-2));
        check(&[0xD3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFD], Value::Integer(-3));
        check(&[0xC2], Value::Bool(false));
        check(&[0xC3], Value::Bool(true));
        check(b"\xA3add", Value::Text("add"));
        check(b"\xD9\x03add", Value::Text("add"));
        check(b"\xDA\x00\x03add", Value::Text("add"));
        let values = |bytes: &'static [u8]| match Value::parse(bytes) {
            Some(Value::List(values) | Value::Map(values)) => (values.len(), values.collect::<Vec<_>>()),
            other => panic!("{other:?}"),
        };
        let numbers = vec![Value::Integer(1), Value::Other, Value::Integer(2)];
        assert_eq!(values(&[0x93, 1, 0xC0, 2]), (3, numbers));
        assert_eq!(values(&[0xDC, 0, 1, 5]), (1, vec![Value::Integer(5)]));
        assert_eq!(values(&[0xDD, 0, 0, 0, 1, 5]), (1, vec![Value::Integer(5)]));
        let entry = vec![Value::Text("x"), Value::Integer(5)];
        for map in
            [&[0x81, 0xA1, b'x', 5][..], &[0xDE, 0, 1, 0xA1, b'x', 5], &[0xDF, 0, 0, 0, 1, 0xA1, b'x', 5]]
        {
            assert_eq!(values(map), (2, entry.clone()));
        }
    }

    #[test]
    fn signed_numbers_keep_every_bit() {
        for (bytes, number) in [
            (&[0xE0][..], -32),
            (&[0xD0, 0x80], -128),
            (&[0xD0, 0x7F], 127),
            (&[0xD1, 0x80, 0x01], -0x7FFF),
            (&[0xD1, 0x7F, 0xFE], 0x7FFE),
            (&[0xD2, 0x80, 0, 0, 0x01], -0x7FFF_FFFF),
            (&[0xD2, 0x7F, 0xFF, 0xFF, 0xFE], 0x7FFF_FFFE),
            (&[0xD3, 0x80, 0, 0, 0, 0, 0, 0, 0x01], -0x7FFF_FFFF_FFFF_FFFF),
            (&[0xD3, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE], 0x7FFF_FFFF_FFFF_FFFE),
        ] {
            assert_eq!(Value::parse(bytes), Some(Value::Integer(number)), "{bytes:x?}");
        }
    }

    /// Nil, floats, binary and extensions: the head, the type of an extension, and the content.
    #[test]
    fn what_is_not_used_is_skipped_to_its_end() {
        for (head, content_bytes) in [
            (&[0xC0][..], 0),
            (&[0xC4, 3], 3),
            (&[0xC5, 1, 2], 0x102),
            (&[0xC6, 0, 0, 1, 2], 0x102),
            (&[0xC7, 3], 1 + 3),
            (&[0xC8, 1, 2], 1 + 0x102),
            (&[0xC9, 0, 0, 1, 2], 1 + 0x102),
            (&[0xCA], 4),
            (&[0xCB], 8),
            (&[0xD4], 1 + 1),
            (&[0xD5], 1 + 2),
            (&[0xD6], 1 + 4),
            (&[0xD7], 1 + 8),
            (&[0xD8], 1 + 16),
        ] {
            let bytes = [head, &vec![0xC1; content_bytes], &[7]].concat();
            let mut reader = Reader { rest: &bytes };
            assert_eq!((reader.value(), reader.rest), (Some(Value::Other), &[7][..]), "{head:x?}");
            let cut = &bytes[..bytes.len() - 2];
            assert_eq!(Value::parse(cut), None, "{head:x?} cut off");
        }
    }

    /// `{"a": [[7], {1: 2}], "b": {"c": 9}, "a": 0}` and one byte after it.
    #[test]
    fn look_ups_pass_over_what_is_nested() {
        let bytes = b"\x83\xA1a\x92\x91\x07\x81\x01\x02\xA1b\x81\xA1c\x09\xA1a\x00\xFF";
        let root = Value::parse(bytes).expect("a map");
        assert_eq!(root.get("b").and_then(|map| map.number("c")), Some(9));
        let first: Vec<usize> = root
            .list("a")
            .map(|value| match value {
                Value::List(values) | Value::Map(values) => values.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(first, [1, 2], "the first of two keys counts");
        assert_eq!((root.get("c"), root.list("b").len()), (None, 0));
    }

    #[test]
    fn lies_about_lengths_and_depths_are_refused() {
        assert_eq!(Value::parse(&[0xDD, 0xFF, 0xFF, 0xFF, 0xFF, 1]), None);
        assert_eq!(Value::parse(&[0xDB, 0xFF, 0xFF, 0xFF, 0xFF, 1]), None);
        assert_eq!(Value::parse(&[0x91; 100_000]), None);
        assert_eq!(Value::parse(&[0xDF, 0xFF, 0xFF, 0xFF, 0xFF, 1]), None);
        assert_eq!(Value::parse(&[0x92, 0x93, 1, 1]), None, "the inner list takes what the outer one lacks");
        assert_eq!(Value::parse(&[0xC1]), None);
        assert_eq!(Value::parse(&[0xA1, 0xFF]), None, "not UTF-8");
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(Value::List(values) | Value::Map(values)) = Value::parse(&bytes) {
                prop_assert_eq!(values.count(), values.len());
            }
        }
    }
}
