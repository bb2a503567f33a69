//! Bytes as llvm-mc accepts them: `0x00,0x00,0xb0,0xbf`, one instruction a line.
//!
//! Contract: brackets, spaces and comments (`#`, `//`, `;`) are tolerated, lines without bytes yield nothing. Never
//! panics.

use thiserror::Error;

/// Bytes of a word; a line has whole words.
const BYTES_PER_WORD: usize = 4;
/// Maximum number of bytes of one line.
pub const BYTES_PER_LINE_MAX: usize = 4096;

/// Why a line is not bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// Something other than a byte.
    #[error("{found:?} is not a byte: write bytes as 0x00 to 0xff with commas between them")]
    Byte {
        /// What was found instead.
        found: String,
    },
    /// Not whole words.
    #[error("{bytes} bytes are not whole words: instructions are words of 4 bytes")]
    Length {
        /// Bytes of the line.
        bytes: usize,
    },
    /// More than any instruction has.
    #[error("the line has more than {BYTES_PER_LINE_MAX} bytes: write one instruction a line")]
    TooLong,
}

/// The words of a line, `None` if it has none.
pub fn words(line: &str) -> Result<Option<Vec<u32>>, LineError> {
    let mut bytes = Vec::new();
    let items = without_comment(line)
        .split(|one: char| one == ',' || one == '[' || one == ']' || one.is_whitespace());
    for item in items.filter(|item| !item.is_empty()) {
        let byte = byte(item).ok_or_else(|| LineError::Byte { found: item.chars().take(20).collect() })?;
        if bytes.len() == BYTES_PER_LINE_MAX {
            return Err(LineError::TooLong);
        }
        bytes.push(byte);
    }
    match bytes.len() {
        0 => Ok(None),
        count if count % BYTES_PER_WORD != 0 => Err(LineError::Length { bytes: count }),
        _ => Ok(Some(
            bytes
                .chunks_exact(BYTES_PER_WORD)
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect(),
        )),
    }
}

fn without_comment(line: &str) -> &str {
    let end = ["#", ";", "//"].iter().filter_map(|mark| line.find(mark)).min();
    &line[..end.unwrap_or(line.len())]
}

/// A number in C notation: hexadecimal with `0x`, else decimal.
fn byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u8::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_line() {
        let end = Ok(Some(vec![0xbfb0_0000]));
        for line in [
            "0x00,0x00,0xb0,0xbf",
            " [0x00, 0x00, 0xb0, 0xbf] # s_endpgm",
            "0x00 0x00 0xB0 0xbf // x",
            "0,0,176,191;0x12",
        ] {
            assert_eq!(words(line), end, "{line}");
        }
        assert_eq!(
            words("0xff,0x00,0x80,0xbe,0x78,0x56,0x34,0x12"),
            Ok(Some(vec![0xbe80_00ff, 0x1234_5678]))
        );
        for line in ["", "  ", "# 0x00", "// CHECK: x", "; y", "[]"] {
            assert_eq!(words(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn what_is_no_byte_is_said() {
        for (line, found) in
            [("0x100,0,0,0", "0x100"), ("s_endpgm", "s_endpgm"), ("0x,1,2,3", "0x"), ("-1,0", "-1")]
        {
            assert_eq!(words(line), Err(LineError::Byte { found: found.into() }));
        }
        assert_eq!(words("1,2,3"), Err(LineError::Length { bytes: 3 }));
        assert_eq!(words(&"0,".repeat(BYTES_PER_LINE_MAX + 1)), Err(LineError::TooLong));
    }

    /// As many bytes as a line may have are taken.
    #[test]
    fn a_line_has_at_most_so_many_bytes() {
        let most = words(&"0,".repeat(BYTES_PER_LINE_MAX));
        assert_eq!(most, Ok(Some(vec![0; BYTES_PER_LINE_MAX / 4])));
        for text in ["+1", "0x+1", "256", "0X100"] {
            assert_eq!(byte(text), None, "{text}");
        }
        assert_eq!((byte("0Xfe"), byte("255")), (Some(254), Some(255)));
    }
}
