//! Arguments with the files that their forms name, and the numbers beside them.
//!
//! Contract: [`load_argument`] reads the files. A file whose name ends in `.npy` is read and written as NumPy does, any
//! other as the bytes that it has.

use super::expect::Expectation;
use super::load;
use super::npy::{self, Array};
use crate::error::{ToolError, bad};
use crate::launch::{BUFFER_BYTES_MAX, LaunchArgument};
use std::path::Path;
use zrt_loader::{ARGUMENT_BYTES_MAX, ArgumentValue};
use zrt_script::{ArgumentSpec, ElementType, Size, content, value_of};

/// An argument with its files read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadedArgument {
    /// What the kernel gets.
    pub argument: LaunchArgument,
    /// What a file with its buffer begins with, if that is a `.npy`; empty for values.
    pub header: Vec<u8>,
    /// What its buffer is compared with, if anything.
    pub expectation: Option<Expectation>,
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

/// A number from a flag.
pub(super) fn number(text: Option<&str>, flag: &str, min: u32, max: u32) -> Result<Option<u32>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u32>() {
        Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
        _ => Err(bad(format!("{flag} is {text:?}, but must be a number from {min} to {max}"))),
    }
}

/// The argument with its file's bytes; a relative path is relative to `folder`.
pub(super) fn load_argument(spec: &ArgumentSpec, folder: &Path) -> Result<LoadedArgument, ToolError> {
    let with = |header, argument| LoadedArgument { argument, header, expectation: None };
    let sized = |size: &Size, argument| {
        let element = size.element.unwrap_or(ElementType::U8);
        with(npy::header(element, size.bytes / element.bytes() as u64), argument)
    };
    let plain = |argument| with(Vec::new(), argument);
    Ok(match spec {
        ArgumentSpec::In(path) => {
            let contents = Contents::read(&folder.join(path))?;
            with(contents.header, LaunchArgument::In(contents.bytes))
        }
        ArgumentSpec::InOut(path) => {
            let contents = Contents::read(&folder.join(path))?;
            with(contents.header, LaunchArgument::InOut(contents.bytes))
        }
        ArgumentSpec::Out(size, _) => sized(size, LaunchArgument::Out(size.bytes)),
        ArgumentSpec::Expect(path, tolerance) => {
            let contents = Contents::read(&folder.join(path))?;
            let argument = LaunchArgument::Out(contents.bytes.len() as u64);
            let header = contents.header.clone();
            let expectation = Some(contents.expected(path, *tolerance)?);
            LoadedArgument { expectation, ..with(header, argument) }
        }
        ArgumentSpec::Pattern(size, pattern) => {
            sized(size, LaunchArgument::Work(content::pattern(*size, pattern)))
        }
        ArgumentSpec::Random(size, seed) => sized(size, LaunchArgument::Work(content::random(*size, *seed))),
        ArgumentSpec::Number(_, bytes) => plain(LaunchArgument::Value(value_of(bytes))),
        ArgumentSpec::Bytes(bytes) => plain(LaunchArgument::Value(ArgumentValue::Bytes(bytes.to_vec()))),
        ArgumentSpec::ValueFile(path) => {
            let bytes = load::read(&folder.join(path), ARGUMENT_BYTES_MAX, "a value")?;
            plain(LaunchArgument::Value(ArgumentValue::Bytes(bytes)))
        }
    })
}

/// What a file provides for a buffer.
pub(super) struct Contents {
    pub bytes: Vec<u8>,
    pub header: Vec<u8>,
    pub element: Option<ElementType>,
}

impl Contents {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Contents, ToolError> {
        let mut bytes = load::read(path, BUFFER_BYTES_MAX, "a buffer")?;
        if !is_npy(path) {
            let header = npy::header(ElementType::U8, bytes.len() as u64);
            return Ok(Contents { bytes, header, element: None });
        }
        let array =
            Array::parse(&bytes).map_err(|why| bad(format!("{} cannot be read: {why}", path.display())))?;
        bytes.drain(..array.header.len());
        Ok(Contents { bytes, header: array.header, element: Some(array.element) })
    }
}

impl Contents {
    /// What a buffer must hold in order to equal the file at `path`.
    pub fn expected(self, path: &Path, tolerance: Option<f64>) -> Result<Expectation, ToolError> {
        let Contents { bytes, element, .. } = self;
        if tolerance.is_some() && element.is_none() {
            let name = path.display();
            return Err(bad(format!(
                "{name} is not a .npy file: its numbers have no type, and so no tolerance"
            )));
        }
        Ok(Expectation { bytes: bytes.into(), element, tolerance })
    }
}

/// Whether a file is one of NumPy's, by its name.
pub(super) fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_three_numbers_from_1_are_a_shape() {
        assert_eq!(three("--grid", "4,2").unwrap(), [4, 2, 1]);
        for text in ["", "0", "1,0,1", "1,2,3,4", "x", "4294967296", "-1"] {
            assert!(three("--grid", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shape_may_have_blanks_and_every_digit() {
        assert_eq!(three("--grid", "4294967295, 2 ,1").unwrap(), [u32::MAX, 2, 1]);
        assert_eq!(three("--grid", "7").unwrap(), [7, 1, 1]);
        let complaint = three("--block", "0").unwrap_err().to_string();
        assert!(
            complaint.contains("--block is \"0\", but must be one to three numbers from 1"),
            "{complaint}"
        );
    }

    #[test]
    fn numbers_of_flags_have_both_ends() {
        let of = |text| number(Some(text), "--seeds", 2, 5).ok();
        assert_eq!(
            ["1", "2", "5", "6", "x", ""].map(of),
            [None, Some(Some(2)), Some(Some(5)), None, None, None]
        );
        assert_eq!(number(None, "--seeds", 2, 5).unwrap(), None);
        let complaint = number(Some("9"), "--seeds", 2, 5).unwrap_err().to_string();
        assert!(complaint.contains("--seeds is \"9\", but must be a number from 2 to 5"), "{complaint}");
    }
}
