//! Where the bytes of a model come from: a mapped file, memory, or another format.
//!
//! Contract: reads are bounds-checked and copy; they never block except for page faults of a mapped file.

use super::GgufError;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use zrt_kmd::MappedFile;

/// Model bytes that are in memory already.
#[derive(Clone)]
pub enum Bytes {
    /// Part of the program (`include_bytes!`).
    Static(&'static [u8]),
    /// Shared with other owners.
    Shared(Arc<[u8]>),
}

/// Tensor data that is made when it is asked for: of a model in another format.
pub(crate) trait Made: Send + Sync {
    /// Bytes of the data.
    fn len(&self) -> u64;

    /// Fills `destination` from byte `offset` of the data on, within one tensor; false if there is no such tensor.
    fn read_at(&self, offset: u64, destination: &mut [u8]) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

/// All bytes of one model file.
pub(super) enum Source {
    Mapped(MappedFile),
    Memory(Bytes),
    /// A file that need not be whole: tensors may end beyond it, and then cannot be read.
    Beginning(MappedFile),
    /// The beginning of a file of `file_bytes`; unlike with the others, the rest reads as zeros.
    Head {
        bytes: Bytes,
        file_bytes: u64,
    },
    /// A header in memory, padded to where the data begins, and the data.
    Made {
        head: Vec<u8>,
        data: Box<dyn Made>,
    },
}

impl Source {
    pub(super) fn map(path: &Path) -> Result<Source, GgufError> {
        match MappedFile::open(path) {
            Ok(file) => Ok(Source::Mapped(file)),
            Err(source) => Err(GgufError::Open { path: path.to_path_buf(), source }),
        }
    }

    pub(super) fn map_beginning(path: &Path) -> Result<Source, GgufError> {
        Source::map(path).map(|source| match source {
            Source::Mapped(file) => Source::Beginning(file),
            other => other,
        })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Source::Mapped(file) | Source::Beginning(file) => file.len(),
            Source::Memory(bytes) => bytes.as_slice().len() as u64,
            Source::Head { file_bytes, .. } => *file_bytes,
            Source::Made { head, data } => head.len() as u64 + data.len(),
        }
    }

    /// Where tensors must end.
    pub(super) fn end(&self) -> u64 {
        match self {
            Source::Beginning(_) => u64::MAX,
            _ => self.len(),
        }
    }

    /// The same as [`Source::read_at`] of a tensor's bytes, which may have to be made.
    pub(super) fn read_data(
        &self,
        offset: u64,
        destination: &mut [u8],
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        match self {
            Source::Made { head, data } => match offset.checked_sub(head.len() as u64) {
                Some(offset) => data.read_at(offset, destination),
                None => Ok(false),
            },
            _ => Ok(self.read_at(offset, destination)),
        }
    }

    /// Fills `destination` from byte `offset` on; returns false if the source is too short. Data that is made
    /// reads as zeros here.
    #[must_use]
    pub(super) fn read_at(&self, offset: u64, destination: &mut [u8]) -> bool {
        match self {
            Source::Mapped(file) | Source::Beginning(file) => file.read_at(offset, destination),
            Source::Head { bytes, file_bytes } => {
                let is_inside =
                    offset.checked_add(destination.len() as u64).is_some_and(|end| end <= *file_bytes);
                copy_and_fill(bytes.as_slice(), offset, destination);
                is_inside
            }
            Source::Memory(bytes) => {
                let part = usize::try_from(offset)
                    .ok()
                    .and_then(|begin| bytes.as_slice().get(begin..)?.get(..destination.len()));
                part.map(|part| destination.copy_from_slice(part)).is_some()
            }
            Source::Made { head, .. } => {
                copy_and_fill(head, offset, destination);
                true
            }
        }
    }
}

/// Fills `destination` from byte `offset` of `bytes` on, and with zeros where they have ended.
fn copy_and_fill(bytes: &[u8], offset: u64, destination: &mut [u8]) {
    let there = usize::try_from(offset).ok().and_then(|begin| bytes.get(begin..)).unwrap_or_default();
    let (begin, rest) = destination.split_at_mut(there.len().min(destination.len()));
    begin.copy_from_slice(&there[..begin.len()]);
    rest.fill(0);
}

impl Bytes {
    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Static(slice) => slice,
            Bytes::Shared(shared) => shared,
        }
    }
}

impl From<&'static [u8]> for Bytes {
    fn from(slice: &'static [u8]) -> Bytes {
        Bytes::Static(slice)
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(shared: Arc<[u8]>) -> Bytes {
        Bytes::Shared(shared)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(vector: Vec<u8>) -> Bytes {
        Bytes::Shared(vector.into())
    }
}
