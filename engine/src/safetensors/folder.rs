//! The files of a model: a folder, or the same in memory.
//!
//! Contract: a name with a path in it is no file of the folder. Small files are read whole, up to a limit; files of
//! tensors are mapped.

use super::SafetensorsError;
use crate::gguf::Bytes;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use zrt_kmd::MappedFile;

/// Where files are looked for.
pub enum Folder {
    /// In the file system.
    Path(PathBuf),
    /// In memory, by name: for tests, and for programs that carry a model.
    Memory(BTreeMap<String, Bytes>),
}

/// The bytes of one file of tensors.
pub(super) enum Content {
    Mapped(MappedFile),
    Memory(Bytes),
}

impl Folder {
    /// All bytes of a file that may be missing.
    pub(super) fn read(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, SafetensorsError> {
        let content = match self.map(file) {
            Err(SafetensorsError::FileMissing { .. }) => return Ok(None),
            other => other?,
        };
        let bytes = content.len();
        if bytes > limit {
            return Err(SafetensorsError::FileLength { file: file.to_owned(), bytes, limit });
        }
        let mut whole = vec![0; bytes as usize]; // Limits are far below usize::MAX.
        let is_read = content.read_at(0, &mut whole);
        Ok(is_read.then_some(whole))
    }

    /// The same of a file that must be there.
    pub(super) fn need(&self, file: &str, limit: u64) -> Result<Vec<u8>, SafetensorsError> {
        self.read(file, limit)?.ok_or_else(|| SafetensorsError::FileMissing { file: file.to_owned() })
    }

    /// A file of tensors.
    pub(super) fn map(&self, file: &str) -> Result<Content, SafetensorsError> {
        let missing = || SafetensorsError::FileMissing { file: file.to_owned() };
        match self {
            Folder::Path(path) => match MappedFile::open(&path.join(file)) {
                Ok(mapped) => Ok(Content::Mapped(mapped)),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(missing()),
                Err(source) => Err(SafetensorsError::Io { file: file.to_owned(), source }),
            },
            Folder::Memory(files) => files.get(file).cloned().map(Content::Memory).ok_or_else(missing),
        }
    }
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        match self {
            Content::Mapped(file) => file.len(),
            Content::Memory(bytes) => bytes.as_slice().len() as u64,
        }
    }

    /// Fills `destination` from byte `offset` on; returns false if the file is too short.
    #[must_use]
    pub(super) fn read_at(&self, offset: u64, destination: &mut [u8]) -> bool {
        match self {
            Content::Mapped(file) => file.read_at(offset, destination),
            Content::Memory(bytes) => {
                let begin = usize::try_from(offset).ok();
                let part = begin.and_then(|begin| bytes.as_slice().get(begin..)?.get(..destination.len()));
                part.map(|part| destination.copy_from_slice(part)).is_some()
            }
        }
    }
}
