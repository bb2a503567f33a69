//! MessagePack, as much of it as the metadata note uses.
//!
//! Contract: never panics; memory grows with the bytes read, never with a count that they state; nesting is limited.

/// Deepest nesting: the metadata has five levels.
const DEPTH_MAX: usize = 16;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// Nil, floats, binary and extension values, which the metadata does not use.
    Other,
    Bool(bool),
    /// Every integer of the format fits.
    Integer(i128),
    Text(&'a str),
    List(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Reads the first value of the bytes; `None` where they are no such thing.
    pub fn parse(bytes: &'a [u8]) -> Option<Value<'a>> {
        Reader { rest: bytes }.value(DEPTH_MAX)
    }

    /// The value of a key in a map.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        let Value::Map(entries) = self else { return None };
        entries.iter().find(|(found, _)| *found == Value::Text(key)).map(|(_, value)| value)
    }

    /// The text of a key in a map.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a key in a map, where it fits 32 bits.
    pub fn number(&self, key: &str) -> Option<u32> {
        self.get(key)?.to_u32()
    }

    /// The list of a key in a map; empty where there is none.
    pub fn list(&self, key: &str) -> &[Value<'a>] {
        match self.get(key) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// The number, where it is one of 32 bits.
    pub fn to_u32(&self) -> Option<u32> {
        match self {
            Value::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        }
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

    fn list(&mut self, count: usize, depth: usize) -> Option<Value<'a>> {
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(self.value(depth)?);
        }
        Some(Value::List(list))
    }

    fn map(&mut self, count: usize, depth: usize) -> Option<Value<'a>> {
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push((self.value(depth)?, self.value(depth)?));
        }
        Some(Value::Map(entries))
    }

    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        let depth = depth.checked_sub(1)?;
        let tag = self.unsigned(1)? as u8;
        match tag {
            0x00..=0x7F => Some(Value::Integer(tag.into())),
            0x80..=0x8F => self.map(usize::from(tag & 0xF), depth),
            0x90..=0x9F => self.list(usize::from(tag & 0xF), depth),
            0xA0..=0xBF => self.text(usize::from(tag & 0x1F)),
            0xC0 => Some(Value::Other),
            0xC1 => None,
            0xC2 | 0xC3 => Some(Value::Bool(tag & 1 != 0)),
            0xC4..=0xC6 => self.length(1 << (tag - 0xC4)).and_then(|length| self.skip(length)),
            // An extension has one byte of type before its data.
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
            0xDC | 0xDD => self.length(2 << (tag - 0xDC)).and_then(|count| self.list(count, depth)),
            0xDE | 0xDF => self.length(2 << (tag - 0xDE)).and_then(|count| self.map(count, depth)),
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
        check(&[0x93, 1, 0xC0, 2], Value::List(vec![Value::Integer(1), Value::Other, Value::Integer(2)]));
        check(&[0xDC, 0, 1, 5], Value::List(vec![Value::Integer(5)]));
        check(&[0xDF, 0, 0, 0, 1, 0xA1, b'x', 5], Value::Map(vec![(Value::Text("x"), Value::Integer(5))]));
        for (skipped, length) in [
            (&[0xC4, 1, 9][..], 3),
            (&[0xC7, 1, 7, 9], 4),
            (&[0xCA, 0, 0, 0, 0], 5),
            (&[0xCB, 0, 0, 0, 0, 0, 0, 0, 0], 9),
            (&[0xD5, 7, 1, 2], 4),
        ] {
            let mut reader = Reader { rest: skipped };
            assert_eq!((reader.value(1), skipped.len()), (Some(Value::Other), length));
            assert!(reader.rest.is_empty(), "{skipped:x?}");
        }
    }

    #[test]
    fn lies_about_lengths_and_depths_are_refused() {
        assert_eq!(Value::parse(&[0xDD, 0xFF, 0xFF, 0xFF, 0xFF, 1]), None);
        assert_eq!(Value::parse(&[0xDB, 0xFF, 0xFF, 0xFF, 0xFF, 1]), None);
        assert_eq!(Value::parse(&[0x91; 100_000]), None);
        assert_eq!(Value::parse(&[0xC1]), None);
        assert_eq!(Value::parse(&[0xA1, 0xFF]), None, "not UTF-8");
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Value::parse(&bytes);
        }
    }
}
