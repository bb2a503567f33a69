//! Files with values and with what buffers are checked against: read once, held until the script has run.
//!
//! Contract: whatever a loop asks for again is shared, not read and not copied. What is held has at most
//! [`HELD_BYTES_MAX`] bytes. Costs a look-up for each use.

use crate::commands::launch::arguments::Contents;
use crate::commands::launch::expect::Expectation;
use crate::commands::launch::load;
use crate::error::{ToolError, bad};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zrt_loader::ARGUMENT_BYTES_MAX;

/// Maximum number of bytes of all files together.
const HELD_BYTES_MAX: u64 = 4 << 30;

/// The files of a script.
pub(super) struct Held {
    folder: PathBuf,
    /// By path and the tolerance's bits: the same file may be compared in several ways.
    expectations: HashMap<(PathBuf, Option<u64>), Arc<Expectation>>,
    values: HashMap<PathBuf, Arc<Vec<u8>>>,
    bytes: u64,
}

impl Held {
    /// No files yet; relative paths are relative to `folder`.
    pub fn new(folder: PathBuf) -> Held {
        Held { folder, expectations: HashMap::new(), values: HashMap::new(), bytes: 0 }
    }

    /// What a buffer must hold that is compared with a file.
    pub fn expectation(
        &mut self,
        path: &Path,
        tolerance: Option<f64>,
    ) -> Result<Arc<Expectation>, ToolError> {
        if let Some(known) = self.expectations.get(&key(path, tolerance)) {
            return Ok(known.clone());
        }
        let read = Contents::read(&self.folder.join(path))?.expected(path, tolerance)?;
        self.keep(path, read)
    }

    /// Holds what was read for a buffer.
    pub fn keep(&mut self, path: &Path, read: Expectation) -> Result<Arc<Expectation>, ToolError> {
        if let Some(known) = self.expectations.get(&key(path, read.tolerance)) {
            return Ok(known.clone());
        }
        self.count(read.bytes.len())?;
        let read = Arc::new(read);
        self.expectations.insert(key(path, read.tolerance), read.clone());
        Ok(read)
    }

    /// The bytes of a file with a value.
    pub fn value(&mut self, path: &Path) -> Result<Arc<Vec<u8>>, ToolError> {
        if let Some(known) = self.values.get(path) {
            return Ok(known.clone());
        }
        let read = load::read(&self.folder.join(path), ARGUMENT_BYTES_MAX, "a value")?;
        self.count(read.len())?;
        let read = Arc::new(read);
        self.values.insert(path.to_owned(), read.clone());
        Ok(read)
    }

    fn count(&mut self, bytes: usize) -> Result<(), ToolError> {
        self.bytes += bytes as u64;
        if self.bytes > HELD_BYTES_MAX {
            return Err(bad(format!(
                "files with values and expectations have more than {HELD_BYTES_MAX} bytes together: compare less"
            )));
        }
        Ok(())
    }
}

fn key(path: &Path, tolerance: Option<f64>) -> (PathBuf, Option<u64>) {
    (path.to_owned(), tolerance.map(f64::to_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with `numbers.npy`, a file of four bytes and `value`.
    fn folder(name: &str) -> zrt_needs::TemporaryFolder {
        let folder = zrt_needs::TemporaryFolder::new(name);
        std::fs::write(folder.join("value"), [1, 2, 3]).unwrap();
        let header = crate::commands::launch::npy::header(zrt_script::ElementType::F32, 1);
        std::fs::write(folder.join("numbers.npy"), [&header[..], &1f32.to_le_bytes()].concat()).unwrap();
        folder
    }

    /// A loop of checks with two tolerances reads the file once for each, and all turns share the result.
    #[test]
    fn files_are_read_once_for_each_tolerance() {
        let folder = folder("once");
        let mut held = Held::new(folder.to_path_buf());
        let path = Path::new("numbers.npy");
        let first = [None, Some(0.5), Some(0.25)].map(|tolerance| held.expectation(path, tolerance).unwrap());
        let value = held.value(Path::new("value")).unwrap();
        drop(folder);
        for _ in 0..3 {
            for known in &first {
                let again = held.expectation(path, known.tolerance).unwrap();
                assert!(Arc::ptr_eq(known, &again), "{:?}", known.tolerance);
            }
            assert!(Arc::ptr_eq(&value, &held.value(Path::new("value")).unwrap()));
        }
        assert_eq!(held.bytes, 3 * 4 + 3);
        assert!(held.expectation(path, Some(1.0)).is_err(), "the file is gone");
    }

    #[test]
    fn what_is_held_is_limited() {
        let mut held = Held::new(PathBuf::new());
        held.bytes = HELD_BYTES_MAX - 4;
        let read = || Expectation { bytes: vec![0; 4].into(), element: None, tolerance: None };
        assert!(held.keep(Path::new("a"), read()).is_ok());
        let error = held.keep(Path::new("b"), read()).unwrap_err();
        assert!(error.to_string().contains("bytes together: compare less"), "{error}");
    }
}
