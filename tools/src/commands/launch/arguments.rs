//! The forms of `--arg`, and the numbers beside them.
//!
//! Contract: pure but for [`ArgumentSpec::read`], which reads the file of an input. Errors name the flag.

use crate::error::ToolError;
use crate::launch::{BUFFER_BYTES_MAX, LaunchArgument};
use std::path::{Path, PathBuf};
use zrt_loader::ArgumentValue;

/// One `--arg`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgumentSpec {
    /// `in:FILE`
    In(PathBuf),
    /// `out:BYTES:FILE`
    Out(u64, PathBuf),
    /// `inout:FILE`
    InOut(PathBuf),
    /// `u32:N`, `u64:N`, `f32:X`
    Value(ArgumentValue),
}

/// Bad input, in words.
pub(super) fn bad(what: String) -> ToolError {
    ToolError::BadInput { what }
}

/// Three numbers, the missing ones 1: `64`, `64,2`, `64,2,1`.
pub(super) fn three(flag: &str, text: &str) -> Result<[u32; 3], ToolError> {
    let mut sizes = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    let refuse = || bad(format!("{flag} is {text:?}, but must be one to three numbers from 1, as in 64,2,1"));
    if parts.len() > sizes.len() {
        return Err(refuse());
    }
    for (size, part) in sizes.iter_mut().zip(parts) {
        *size = part.trim().parse().map_err(|_| refuse())?;
        if *size == 0 {
            return Err(refuse());
        }
    }
    Ok(sizes)
}

impl ArgumentSpec {
    /// Reads the form of argument `index`.
    pub fn parse(index: usize, text: &str) -> Result<ArgumentSpec, ToolError> {
        let refuse = |wanted: &str| bad(format!("argument {index} is {text:?}, but must be {wanted}"));
        let forms = "in:FILE, out:BYTES:FILE, inout:FILE, u32:N, u64:N or f32:X";
        let (kind, rest) = text.split_once(':').ok_or_else(|| refuse(forms))?;
        let file = |path: &str, wanted: &str| match path {
            "" => Err(refuse(wanted)),
            path => Ok(PathBuf::from(path)),
        };
        Ok(match kind {
            "in" => ArgumentSpec::In(file(rest, "in:FILE")?),
            "inout" => ArgumentSpec::InOut(file(rest, "inout:FILE")?),
            "out" => {
                let wanted = format!("out:BYTES:FILE with 1 to {BUFFER_BYTES_MAX} bytes");
                let (bytes, path) = rest.split_once(':').ok_or_else(|| refuse(&wanted))?;
                let bytes = bytes.parse().ok().filter(|bytes| (1..=BUFFER_BYTES_MAX).contains(bytes));
                ArgumentSpec::Out(bytes.ok_or_else(|| refuse(&wanted))?, file(path, &wanted)?)
            }
            "u32" => {
                let value = integer(rest).and_then(|value| u32::try_from(value).ok());
                ArgumentSpec::Value(ArgumentValue::U32(value.ok_or_else(|| refuse("u32:N below 2^32"))?))
            }
            "u64" => ArgumentSpec::Value(ArgumentValue::U64(
                integer(rest).ok_or_else(|| refuse("u64:N below 2^64"))?,
            )),
            "f32" => {
                let value = rest.parse().map_err(|_| refuse("f32:X, as in f32:1.5"))?;
                ArgumentSpec::Value(ArgumentValue::F32(value))
            }
            _ => return Err(refuse(forms)),
        })
    }

    /// The argument with its file's bytes.
    pub fn read(&self) -> Result<LaunchArgument, ToolError> {
        Ok(match self {
            ArgumentSpec::In(path) => LaunchArgument::In(read(path)?),
            ArgumentSpec::InOut(path) => LaunchArgument::InOut(read(path)?),
            ArgumentSpec::Out(bytes, _) => LaunchArgument::Out(*bytes),
            ArgumentSpec::Value(value) => LaunchArgument::Value(value.clone()),
        })
    }

    /// Where its buffer is written to.
    pub fn output(&self) -> Option<&PathBuf> {
        match self {
            ArgumentSpec::Out(_, path) | ArgumentSpec::InOut(path) => Some(path),
            _ => None,
        }
    }
}

/// The bytes of a buffer.
fn read(path: &Path) -> Result<Vec<u8>, ToolError> {
    super::read(path, BUFFER_BYTES_MAX, "a buffer")
}

/// Decimal, or hexadecimal behind `0x`.
fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let parse = |text: &str| ArgumentSpec::parse(0, text).unwrap();
        assert_eq!(parse("in:a:b.raw"), ArgumentSpec::In("a:b.raw".into()));
        assert_eq!(parse("out:16:c.raw"), ArgumentSpec::Out(16, "c.raw".into()));
        assert_eq!(parse("inout:d"), ArgumentSpec::InOut("d".into()));
        assert_eq!(parse("u32:0xffffffff"), ArgumentSpec::Value(ArgumentValue::U32(u32::MAX)));
        assert_eq!(parse("u64:5000000000"), ArgumentSpec::Value(ArgumentValue::U64(5_000_000_000)));
        assert_eq!(parse("f32:-1.5"), ArgumentSpec::Value(ArgumentValue::F32(-1.5)));
    }

    #[test]
    fn other_forms_are_refused() {
        let wrong = [
            "",
            "in",
            "in:",
            "out:16",
            "out:x:f",
            "out:0:f",
            "out:99999999999:f",
            "out:4:",
            "u32:-1",
            "u32:4294967296",
            "u64:1.5",
            "f32:x",
            "i8:1",
        ];
        for text in wrong {
            assert!(matches!(ArgumentSpec::parse(0, text), Err(ToolError::BadInput { .. })), "{text}");
        }
        assert_eq!(three("--grid", "4,2").unwrap(), [4, 2, 1]);
        for text in ["", "0", "1,0,1", "1,2,3,4", "x", "4294967296", "-1"] {
            assert!(three("--grid", text).is_err(), "{text}");
        }
    }
}
