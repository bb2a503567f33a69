//! The format strings in a code object: `amdhsa.printf` of its metadata.
//!
//! Contract: pure. A program has at most [`FORMATS_MAX`] of them. Source: LLVM's "User Guide for AMDGPU Backend",
//! code object metadata: `ID:N:S0:…:Sn-1:text`, which is a number, the argument count, and each argument's size in
//! the buffer. Clang writes two kinds. For OpenCL the numbers begin with 1, and control characters and colons of
//! the text are escaped (LLVM's `AMDGPUPrintfRuntimeBinding`). For HIP number and count are 0, and the text is the
//! low 64 bits of its MD5 as at most 16 digits, a comma, and the string itself (`AMDGPUEmitPrintf`).

use super::format::string_arguments;
use crate::elf::Value;
use crate::error::LoadError;
use std::collections::HashMap;

/// Unit of a printf buffer in bytes: the lengths of messages, and of their arguments, are padded to it.
pub(super) const UNIT_BYTES: usize = 4;
/// Most format strings of a program.
const FORMATS_MAX: usize = 1 << 15;
/// Most arguments of one format.
const ARGUMENTS_MAX: usize = 4096;

/// Format strings by the number or hash that names them in a printf buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintFormats {
    by_number: HashMap<u32, NumberedFormat>,
    by_hash: HashMap<u64, String>,
}

/// A format of OpenCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumberedFormat {
    /// The string, without escapes.
    pub text: Vec<u8>,
    /// Bytes of each argument in the buffer.
    pub sizes: Vec<u32>,
    /// Bytes of a message, its number included.
    pub length: usize,
    /// Indices of the string arguments of more than [`UNIT_BYTES`], in order: those that may lack a NUL.
    pub strings: Vec<usize>,
}

impl NumberedFormat {
    fn new(text: Vec<u8>, sizes: Vec<u32>) -> NumberedFormat {
        let whole = sizes.iter().map(|size| (*size as usize).next_multiple_of(UNIT_BYTES));
        let length = whole.fold(UNIT_BYTES, usize::saturating_add);
        let is_longer =
            |argument: &usize| sizes.get(*argument).is_some_and(|size| *size as usize > UNIT_BYTES);
        let strings = string_arguments(&text).into_iter().filter(is_longer).collect();
        NumberedFormat { text, sizes, length, strings }
    }
}

impl PrintFormats {
    /// True if messages begin with numbers (OpenCL) rather than control words (HIP).
    pub(super) fn has_numbers(&self) -> bool {
        !self.by_number.is_empty()
    }

    pub(super) fn of_number(&self, number: u32) -> Option<&NumberedFormat> {
        self.by_number.get(&number)
    }

    pub(super) fn of_hash(&self, hash: u64) -> Option<&str> {
        self.by_hash.get(&hash).map(String::as_str)
    }
}

/// Reads the list from the root of the metadata.
pub(crate) fn parse(root: &Value<'_>) -> Result<PrintFormats, LoadError> {
    let list = root.list("amdhsa.printf");
    if list.len() > FORMATS_MAX {
        let (bytes, limit) = (list.len() as u64, FORMATS_MAX as u64);
        return Err(LoadError::TooLarge { what: "the list of format strings", bytes, limit });
    }
    let mut formats = PrintFormats::default();
    for (index, entry) in list.enumerate() {
        let wrong = |why: &str| LoadError::Metadata { what: format!("its format string {index} {why}") };
        let Value::Text(entry) = entry else { return Err(wrong("is not text")) };
        let is_new = match read(entry).map_err(wrong)? {
            Entry::Numbered(number, format) => formats.by_number.insert(number, format).is_none(),
            Entry::Hashed(hash, text) => formats.by_hash.insert(hash, text).is_none_or(|other| {
                // Several translation units may use the same format.
                formats.by_hash.get(&hash) == Some(&other)
            }),
        };
        if !is_new {
            return Err(wrong("has the name of another one"));
        }
    }
    match formats.by_number.is_empty() || formats.by_hash.is_empty() {
        true => Ok(formats),
        false => Err(LoadError::Metadata { what: "it has format strings of OpenCL and of HIP".into() }),
    }
}

enum Entry {
    Numbered(u32, NumberedFormat),
    Hashed(u64, String),
}

fn read(entry: &str) -> Result<Entry, &'static str> {
    const FORM: &str = "is not of the form ID:N:S0:…:text";
    let (number, rest) = entry.split_once(':').ok_or(FORM)?;
    let (count, mut rest) = rest.split_once(':').ok_or(FORM)?;
    let number: u32 = number.parse().map_err(|_| FORM)?;
    let count: usize = count.parse().map_err(|_| FORM)?;
    if number == 0 {
        let (hash, text) = rest.split_once(',').ok_or("has no hash before a comma")?;
        let hash = u64::from_str_radix(hash, 16).map_err(|_| "has a hash that is no number")?;
        return Ok(Entry::Hashed(hash, text.into()));
    }
    if count > ARGUMENTS_MAX {
        return Err("has more than 4096 arguments");
    }
    let mut sizes = Vec::new();
    // Clang lists sizes only for arguments that have a conversion: the first part that is no number is text.
    while sizes.len() < count
        && let Some((size, behind)) = rest.split_once(':')
        && let Ok(size) = size.parse()
    {
        sizes.push(size);
        rest = behind;
    }
    Ok(Entry::Numbered(number, NumberedFormat::new(unescape(rest), sizes)))
}

/// Undoes LLVM's escapes. They are ambiguous: a backslash of the source is not escaped, so `\\n` in a source
/// becomes a new line, as it does with AMD's runtime.
fn unescape(text: &str) -> Vec<u8> {
    const ESCAPES: [(&str, u8); 7] =
        [("\\a", 7), ("\\b", 8), ("\\f", 12), ("\\n", b'\n'), ("\\r", b'\r'), ("\\v", 11), ("\\72", b':')];
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escape = ESCAPES.iter().find(|(name, _)| rest.starts_with(name.as_bytes()));
        let (byte, length) = escape.map_or((*first, 1), |(name, byte)| (*byte, name.len()));
        bytes.push(byte);
        rest = if length == 1 { behind } else { &rest[length..] };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clangs_two_kinds_are_read() {
        // As written by clang 22, from `llvm-readelf --notes`.
        let Ok(Entry::Numbered(1, format)) = read("1:3:4:8:4:a,b\\72c\tq\\ %5d %v3hd %f\\n") else {
            panic!("no entry")
        };
        assert_eq!(format.sizes, [4, 8, 4]);
        assert_eq!(format.text, b"a,b:c\tq\\ %5d %v3hd %f\n");
        let Ok(Entry::Hashed(hash, text)) = read("0:0:19db209c8e79270,hello: %d, %s %f\n") else {
            panic!("no entry")
        };
        assert_eq!((hash, text.as_str()), (0x19d_b209_c8e7_9270, "hello: %d, %s %f\n"));
        // An argument without a conversion has no size.
        let Ok(Entry::Numbered(2, format)) = read("2:2:4:%d 7") else { panic!("no entry") };
        assert_eq!((format.sizes, format.text), (vec![4], b"%d 7".to_vec()));
    }

    #[test]
    fn other_forms_are_refused() {
        for wrong in ["", "1", "1:0", "x:0:text", "1:y:text", "0:0:19db", "0:0:xyz,text", "1:4097:text"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_are_as_many_as_arguments() {
        // What follows the last size is text, even if it looks like one.
        let Ok(Entry::Numbered(1, format)) = read("1:1:4:8:%d") else { panic!("no entry") };
        assert_eq!((format.sizes, format.text), (vec![4], b"8:%d".to_vec()));
        let Ok(Entry::Numbered(1, format)) = read("1:0:4:text") else { panic!("no entry") };
        assert_eq!((format.sizes, format.text), (vec![], b"4:text".to_vec()));
        let most = format!("1:4096:{}%d", "4:".repeat(4096));
        let Ok(Entry::Numbered(1, format)) = read(&most) else { panic!("no entry") };
        assert_eq!((format.sizes.len(), format.length), (4096, 4 + 4096 * 4));
    }

    /// The formats of a note in MessagePack: a map of one list.
    fn parsed(entries: &[String]) -> Result<PrintFormats, LoadError> {
        let mut bytes = [b"\x81\xADamdhsa.printf\xDD", &(entries.len() as u32).to_be_bytes()[..]].concat();
        for entry in entries {
            bytes.push(0xD9);
            bytes.push(entry.len() as u8);
            bytes.extend_from_slice(entry.as_bytes());
        }
        parse(&Value::parse(&bytes).unwrap())
    }

    #[test]
    fn a_program_has_32768_formats_at_most() {
        let mut entries: Vec<String> = (1..=32_768).map(|number| format!("{number}:0:x")).collect();
        let formats = parsed(&entries).unwrap();
        assert_eq!(formats.of_number(32_768).map(|format| format.text.as_slice()), Some(&b"x"[..]));
        entries.push("32769:0:x".into());
        let what = "the list of format strings";
        assert_eq!(parsed(&entries), Err(LoadError::TooLarge { what, bytes: 32_769, limit: 32_768 }));
    }

    /// Several translation units may use the same format; a name has one meaning.
    #[test]
    fn a_name_has_one_format() {
        let parsed =
            |entries: &[&str]| parsed(&entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>());
        let twice = parsed(&["0:0:ab,text", "0:0:ab,text"]).unwrap();
        assert_eq!(twice.of_hash(0xAB), Some("text"));
        let metadata = |what: &str| Err(LoadError::Metadata { what: what.into() });
        let second = metadata("its format string 1 has the name of another one");
        assert_eq!(parsed(&["0:0:ab,text", "0:0:ab,other"]), second);
        assert_eq!(parsed(&["7:0:text", "7:0:text"]), second);
        assert_eq!(
            parsed(&["7:0:text", "0:0:ab,text"]),
            metadata("it has format strings of OpenCL and of HIP")
        );
    }
}
