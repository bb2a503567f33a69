//! The file of a base: what a model expected at each place of a text, for later runs to be compared with.
//!
//! Little-endian: `zrtbase1`, the vocabulary's size and the number of the text's tokens (u32 each), the tokens (u32
//! each), then for every token but the first the natural logarithms of the probabilities of the whole vocabulary (f32).
//!
//! Contract: a file that is not exactly so long as its head says, or that has a number that is no logarithm of a
//! probability, is refused. Memory: the file, and the same again as numbers.

use crate::bounded_read::{self, ReadError};
use crate::error::ToolError;
use std::io::{Error, ErrorKind, Write};
use std::path::Path;
use zrt_engine::quality::Expectations;

const MAGIC: &[u8; 8] = b"zrtbase1";
/// Magic and two counts.
const HEAD_BYTES: usize = 16;
/// Maximum number of probabilities that are kept of a pass: 512 MiB.
pub const PROBABILITIES_MAX: u64 = 1 << 27;
/// Bytes of the longest base: 16 and 8 for each probability, because a vocabulary has at least one token.
const BYTES_MAX: u64 = 1_073_741_840;
/// A log-probability is computed in f64 and rounded, so one of 1 may come out slightly above 0.
const LOG_PROBABILITY_MAX: f32 = 1e-3;

/// A text and what was expected of it.
pub struct Base {
    /// The tokens.
    pub text: Vec<u32>,
    /// What was expected in the place of each but the first.
    pub expectations: Expectations,
}

/// Writes a base.
pub fn write(output: &mut dyn Write, text: &[u32], expectations: &Expectations) -> Result<(), Error> {
    output.write_all(MAGIC)?;
    let counts = [expectations.vocabulary() as u32, text.len() as u32];
    counts.iter().chain(text).try_for_each(|number| output.write_all(&number.to_le_bytes()))?;
    expectations.log_probabilities().iter().try_for_each(|one| output.write_all(&one.to_le_bytes()))
}

/// Reads a base.
pub fn read(path: &Path) -> Result<Base, ToolError> {
    let refuse = |source| ToolError::Read { path: path.display().to_string(), source };
    let bytes = bounded_read::read(path, BYTES_MAX).map_err(|error| match error {
        ReadError::System(source) => refuse(source),
        ReadError::TooLong => refuse(Error::other(format!("it has more than {BYTES_MAX} bytes"))),
    })?;
    parse(&bytes).map_err(|what| refuse(Error::new(ErrorKind::InvalidData, what)))
}

fn parse(bytes: &[u8]) -> Result<Base, &'static str> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or("it is too short for a base")?;
    let dword = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if head[..8] != *MAGIC {
        return Err("it is no base that `zrt perplexity --save-base` wrote");
    }
    let (vocabulary, tokens) = (u64::from(dword(8)), u64::from(dword(12)));
    let places = tokens.saturating_sub(1).checked_mul(vocabulary).filter(|count| *count <= PROBABILITIES_MAX);
    let expected = places.map(|count| 4 * (count + tokens));
    if vocabulary == 0 || tokens < 2 || expected != Some(rest.len() as u64) {
        return Err("it is not as long as its head says: it may have been cut");
    }
    let (text, places) = rest.split_at(4 * tokens as usize);
    let text: Vec<u32> = text.as_chunks().0.iter().map(|token| u32::from_le_bytes(*token)).collect();
    let numbers: Vec<f32> = places.as_chunks().0.iter().map(|one| f32::from_le_bytes(*one)).collect();
    // What is no number is not below the limit either.
    if !numbers.iter().all(|number| *number <= LOG_PROBABILITY_MAX) {
        return Err("it holds what is no logarithm of a probability");
    }
    let expectations = Expectations::from_log_probabilities(vocabulary as usize, numbers)
        .ok_or("it is not as long as its head says: it may have been cut")?;
    Ok(Base { text, expectations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(vocabulary: u32, text: &[u32], numbers: &[f32]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let dwords = [vocabulary, text.len() as u32].into_iter().chain(text.iter().copied());
        dwords.for_each(|dword| bytes.extend(dword.to_le_bytes()));
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    #[test]
    fn a_base_is_read_as_it_was_written() {
        let folder = zrt_needs::TemporaryFolder::new("base");
        let path = folder.join("base");
        let numbers = vec![-1.5, -0.25, -3.0, -0.05, f32::NEG_INFINITY, 0.0];
        let expectations = Expectations::from_log_probabilities(3, numbers.clone()).expect("two places");
        let mut written = Vec::new();
        write(&mut written, &[7, 1, 2], &expectations).expect("there is room");
        std::fs::write(&path, written).expect("written");
        assert_eq!(std::fs::read(&path).expect("there"), bytes(3, &[7, 1, 2], &numbers));
        let base = read(&path).expect("as written");
        assert_eq!((base.text, base.expectations.vocabulary()), (vec![7, 1, 2], 3));
        assert_eq!(base.expectations.log_probabilities(), numbers);
    }

    /// The file has no bytes of its own on the disk.
    #[test]
    fn a_longer_file_than_any_base_is_not_read() {
        let folder = zrt_needs::TemporaryFolder::new("base-long");
        let path = folder.join("base");
        let longest = HEAD_BYTES as u64 + 8 * PROBABILITIES_MAX;
        std::fs::File::create(&path).expect("created").set_len(longest + 1).expect("sparse");
        let error = read(&path).map(|_| ()).expect_err("too long");
        let told = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(told, Some(format!("it has more than {longest} bytes")));
    }

    #[test]
    fn what_is_no_base_is_refused() {
        let right = bytes(2, &[7, 1], &[-0.7, -0.7]);
        parse(&right).expect("a base");
        let wrong_numbers = |number| bytes(2, &[7, 1], &[number, -0.7]);
        for (bytes, told) in [
            (right[..right.len() - 1].to_vec(), "cut"),
            ([&right[..], &[0]].concat(), "cut"),
            (right[..HEAD_BYTES].to_vec(), "cut"),
            (right[..HEAD_BYTES - 1].to_vec(), "too short"),
            (bytes(0, &[7, 1], &[]), "cut"),
            (bytes(2, &[7], &[]), "cut"),
            (bytes(u32::MAX, &[7, 1], &[-0.7]), "cut"),
            ([b"zrtbase2", &right[8..]].concat(), "--save-base"),
            (wrong_numbers(f32::NAN), "logarithm"),
            (wrong_numbers(1.0), "logarithm"),
        ] {
            let error = parse(&bytes).err().expect("no base");
            assert!(error.contains(told), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_base_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..80), has_magic: bool) {
            if has_magic && bytes.len() > 8 {
                bytes[..8].copy_from_slice(MAGIC);
                bytes[8] %= 4;
            }
            let _ = parse(&bytes);
        }
    }
}
