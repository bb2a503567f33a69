//! Names out of hostile files: shared by all places that mention them, and bounded before they are kept.
//!
//! Contract: a name is read up to [`NAME_BYTES_MAX`] and no further. All names that are kept have together at most
//! [`NAMES_BYTES_MORE`] more bytes than the file, whatever they share in it. The clone of a [`Name`] is a counter.

use super::CodeError;
use serde::{Serialize, Serializer};
use std::ffi::CStr;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Longest name of a symbol in code or of a section with code, in bytes: the loader's limit.
pub const NAME_BYTES_MAX: usize = 4096;
/// Bytes that all names together may have beyond the file's own, because names share their endings: the loader's
/// allowance.
pub const NAMES_BYTES_MORE: u64 = 1 << 20;

/// A name that many places share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Arc<str>);

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text.into())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// What is left for names.
pub(super) struct NamesBudget {
    bytes: u64,
    limit: u64,
}

impl NamesBudget {
    /// The budget of a file.
    pub fn new(file_bytes: usize) -> NamesBudget {
        NamesBudget { bytes: 0, limit: file_bytes as u64 + NAMES_BYTES_MORE }
    }

    /// Takes a name into account, before it is kept. `what` and its number say whose it is.
    pub fn take(&mut self, name: &[u8], what: &'static str, index: usize) -> Result<(), CodeError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(CodeError::LongName { what, index });
        }
        self.bytes += name.len() as u64;
        match self.bytes > self.limit {
            true => {
                let (bytes, limit) = (self.bytes, self.limit);
                Err(CodeError::TooLarge { what: "the list of symbol names", bytes, limit })
            }
            false => Ok(()),
        }
    }
}

/// The text from an offset up to its NUL; if it exceeds `bytes_max`, one byte more than that. `None` if the strings
/// end first.
pub(super) fn name_at(strings: &[u8], offset: u32, bytes_max: usize) -> Option<&[u8]> {
    let rest = strings.get(offset as usize..)?;
    let reach = rest.get(..bytes_max + 1).unwrap_or(rest);
    let name = CStr::from_bytes_until_nul(reach).map_or(reach, CStr::to_bytes);
    (name.len() < rest.len()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_nul_or_one_byte_after_the_limit() {
        for (strings, offset, bytes_max, expected) in [
            (&b"ab\0cd\0"[..], 0, 2, Some(&b"ab"[..])),
            (b"ab\0cd\0", 3, 9, Some(b"cd")),
            (b"ab\0cd\0", 5, 9, Some(b"")),
            (b"ab\0cd\0", 6, 9, None),
            (b"ab\0cd\0", u32::MAX, 9, None),
            (b"abcdef\0", 0, 2, Some(b"abc")),
            (b"abcdef\0", 0, 6, Some(b"abcdef")),
            (b"ab", 0, 2, None),
            (b"ab", 0, 9, None),
        ] {
            let name = name_at(strings, offset, bytes_max);
            assert_eq!(name, expected, "{strings:?} from {offset}, at most {bytes_max}");
        }
    }

    /// A file of 10 bytes may have names of 10 bytes and a mebibyte.
    #[test]
    fn names_are_counted_before_they_are_kept() {
        let mut budget = NamesBudget::new(10);
        for index in 0..256 {
            assert!(budget.take(&[b'n'; 4096], "symbol", index).is_ok(), "{index}");
        }
        assert!(budget.take(&[b'n'; 10], "symbol", 256).is_ok());
        let error = budget.take(b"n", "symbol", 257).unwrap_err().to_string();
        let expected =
            "the list of symbol names has 1048587 bytes, but at most 1048586 are read; strip or split it";
        assert_eq!(error, expected);
        let error = NamesBudget::new(9999).take(&[b'n'; 4097], "section", 3).unwrap_err().to_string();
        assert_eq!(
            error,
            "the name of section 3 has more than 4096 bytes, and at most 4096 are read; rename it"
        );
    }
}
