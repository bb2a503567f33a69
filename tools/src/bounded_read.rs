//! Files that are read whole, but never without a limit.
//!
//! Contract: at most one byte more than the limit is read, whatever length the system reports: a device node or a pipe
//! has none. A file whose reported length is beyond the limit is not read at all.

use std::fs::File;
use std::io::{Error, Read};
use std::path::Path;

/// Why a file was not read.
#[derive(Debug)]
pub enum ReadError {
    /// The system could not read it.
    System(Error),
    /// There are more than the limit.
    TooLong,
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::System(error)
    }
}

/// All bytes of a file, at most `limit`.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = File::open(path)?;
    let said = file.metadata()?.len();
    if said > limit {
        return Err(ReadError::TooLong);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(said as usize).map_err(Error::other)?;
    read_on(file, bytes, limit)
}

/// All bytes of what has no path, at most `limit`.
pub fn read_stream(stream: impl Read, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_on(stream, Vec::new(), limit)
}

fn read_on(stream: impl Read, mut bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, ReadError> {
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(ReadError::TooLong),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_for_what_has_no_length() {
        let zeros = Path::new("/dev/zero");
        assert!(matches!(read(zeros, 5000), Err(ReadError::TooLong)));
        let here = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let all = std::fs::read(here).unwrap();
        assert_eq!(read(here, all.len() as u64).unwrap(), all);
        assert!(matches!(read(here, all.len() as u64 - 1), Err(ReadError::TooLong)));
        assert!(matches!(read(Path::new("absent"), 1), Err(ReadError::System(_))));
        assert_eq!(read_stream(&b"four"[..], 4).unwrap(), b"four");
        assert!(matches!(read_stream(&b"fives"[..], 4), Err(ReadError::TooLong)));
    }
}
