//! Names out of hostile files: shared by all places that mention them, and bounded before they are kept.
//!
//! Contract: a name is read up to [`SYMBOL_BYTES_MAX`] and no further. All names that are kept have together at most
//! [`SYMBOLS_BYTES_MORE`] more bytes than the file, whatever they share in it. The clone of a [`Name`] is a counter.

use super::CodeError;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use zrt_loader::{SYMBOL_BYTES_MAX, SYMBOLS_BYTES_MORE};

/// A name that many places share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name(Arc<str>);

impl Name {
    /// The name as text shows it: without control characters, and with at most so many characters.
    pub fn shown(&self, characters_max: usize) -> Cow<'_, str> {
        let is_cut = self.char_indices().nth(characters_max).is_some();
        if !is_cut && !self.contains(char::is_control) {
            return Cow::Borrowed(self);
        }
        let shown = self.chars().take(characters_max).map(|one| if one.is_control() { ' ' } else { one });
        Cow::Owned(shown.chain(is_cut.then_some('…')).collect())
    }
}

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
        NamesBudget { bytes: 0, limit: (file_bytes + SYMBOLS_BYTES_MORE) as u64 }
    }

    /// Takes a name into account, before it is kept. `what` and its number say whose it is.
    pub fn take(&mut self, name: &[u8], what: &'static str, index: usize) -> Result<(), CodeError> {
        if name.len() > SYMBOL_BYTES_MAX {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_control_characters_and_not_for_ever() {
        let shown = |name: &str, most| Name::from(name).shown(most).into_owned();
        assert_eq!(shown("k\x1b[1m\nv", 9), "k [1m v");
        assert_eq!([3, 2].map(|most| shown("éüx", most)), ["éüx", "éü…"]);
        assert_eq!(shown("\tab", 2), " a…");
        assert!(matches!(Name::from("kernel").shown(6), Cow::Borrowed("kernel")));
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
