//! GGUF files, versions 2 and 3, little endian: metadata, tensor directory, tensor bytes.
//!
//! Contract: the bytes are untrusted. Whatever they hold, opening returns a value or a [`GgufError`] that says what is
//! wrong and where; it never panics. Its time is proportional to the length of the file, and its memory, together with
//! the tokenizer's, is at most eight times the file plus 16 MiB: every count is first checked against the bytes that
//! are really there (`tests/bounded.rs`). After opening, every tensor's range is known to lie inside the file, to be
//! aligned and of the exact size that its type and dimensions require, and to be disjoint from every other.
//!
//! Files are mapped read-only (`zrt_kmd::MappedFile`); a model embedded in the program is read in place. Cost of
//! opening: one pass over the header (a 150,000-token vocabulary takes tens of milliseconds); no tensor byte is
//! touched.
//!
//! Layout, from the GGUF specification of the ggml project: magic, version u32, tensor count u64, metadata count u64;
//! metadata pairs (key, value type u32, value); tensor infos (name, dimension count u32, dimensions u64, type u32,
//! offset u64); padding to `general.alignment` (32 if absent); tensor data.

pub mod codebooks;
mod error;
mod kind;
mod metadata;
mod parse;
mod source;

pub use error::GgufError;
pub use kind::TensorKind;
pub use metadata::{Array, Metadata, StringList, Value};
pub use source::Bytes;
pub(crate) use source::Made;

use source::Source;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// Upper limits on the contents of a header. Each is far above any known model and bounds the cost of a hostile file.
pub mod limits {
    /// Header bytes (metadata and tensor infos together).
    pub const HEADER_BYTES_MAX: u64 = 1 << 30;
    /// Metadata pairs.
    pub const METADATA_PAIRS_MAX: u64 = 1 << 16;
    /// Tensors.
    pub const TENSORS_MAX: u64 = 1 << 20;
    /// Bytes of a key; the specification's own limit.
    pub const KEY_BYTES_MAX: u64 = (1 << 16) - 1;
    /// Bytes of a tensor's name (the specification says 64; longer ones exist in the field).
    pub const NAME_BYTES_MAX: u64 = 256;
    /// Bytes of one string value (chat templates are the longest).
    pub const STRING_BYTES_MAX: u64 = 1 << 24;
    /// Elements of one array (vocabularies are the longest).
    pub const ARRAY_ELEMENTS_MAX: u64 = 1 << 26;
    /// Nesting depth of arrays.
    pub const ARRAY_NESTING_MAX: u32 = 4;
    /// Dimensions of a tensor (`GGML_MAX_DIMS`).
    pub const DIMENSIONS_MAX: u32 = 4;
    /// `general.alignment`, in bytes.
    pub const ALIGNMENT_MAX: u32 = 1 << 20;
}

/// An open model file: what its header says, and its tensors' bytes on demand.
pub struct Gguf {
    /// Format version: 2 or 3.
    pub version: u32,
    /// Alignment of tensor data in bytes, a power of two.
    pub alignment: u32,
    /// Key-value pairs of the header.
    pub metadata: Metadata,
    tensors: Vec<TensorInfo>,
    tensor_index: HashMap<Box<str>, usize>,
    source: Source,
}

/// One entry of the tensor directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The tensor's name, unique in the file.
    pub name: Box<str>,
    /// Dimensions in ggml's order: the contiguous one first, so a matrix is `[columns, rows]`. One to four, none zero.
    pub dimensions: Vec<u64>,
    /// Storage type of the elements.
    pub kind: TensorKind,
    /// First byte, counted from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// An empty vector with room for `count` values, which are part of `what`.
pub(crate) fn vec_of<T>(what: &'static str, count: u64) -> Result<Vec<T>, GgufError> {
    let memory = || GgufError::Memory { what, bytes: count.saturating_mul(size_of::<T>() as u64) };
    let mut values = Vec::new();
    values.try_reserve_exact(usize::try_from(count).map_err(|_| memory())?).map_err(|_| memory())?;
    Ok(values)
}

impl Gguf {
    /// Maps and reads the model file at `path`.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        parse::parse(Source::map(path)?)
    }

    /// The same of a file of which the header is there, and perhaps no more: one that is being downloaded. Weights that
    /// are not there cannot be read.
    pub fn open_beginning(path: &Path) -> Result<Gguf, GgufError> {
        parse::parse(Source::map_beginning(path)?)
    }

    /// Reads a model that is in memory already (`&'static [u8]`, `Arc<[u8]>` or `Vec<u8>`). Nothing is copied from a
    /// static slice or an `Arc`.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Gguf, GgufError> {
        parse::parse(Source::Memory(bytes.into()))
    }

    /// Reads the header of a file of `file_bytes` of which only the beginning is there: a model's shapes without its
    /// weights. What is not there reads as zeros.
    pub fn from_head(bytes: impl Into<Bytes>, file_bytes: u64) -> Result<Gguf, GgufError> {
        parse::parse(Source::Head { bytes: bytes.into(), file_bytes })
    }

    /// A model in another format: the header that a GGUF file would have, padded to where the data begins, and its
    /// data.
    pub(crate) fn from_made(head: Vec<u8>, data: Box<dyn Made>) -> Result<Gguf, GgufError> {
        parse::parse(Source::Made { head, data })
    }

    /// Whether it stands for a model in another format ([`crate::safetensors`]), so that it is no file.
    pub fn is_made(&self) -> bool {
        matches!(self.source, Source::Made { .. })
    }

    /// Size of the file in bytes: of what is there of it, where it was opened by its beginning.
    pub fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// All tensors in the order of the directory.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensor_index.get(name).map(|index| &self.tensors[*index])
    }

    /// Bytes of all tensors together, padding not counted.
    pub fn tensor_bytes_total(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).fold(0, u64::saturating_add)
    }

    /// Elements of all tensors together.
    pub fn element_count_total(&self) -> u64 {
        self.tensors.iter().map(TensorInfo::element_count).fold(0, u64::saturating_add)
    }

    /// Copies bytes `range` (counted from the start of the tensor) out of the file.
    pub fn read_tensor(&self, tensor: &TensorInfo, range: Range<u64>) -> Result<Vec<u8>, GgufError> {
        let outside = || GgufError::RangeOutsideTensor {
            name: tensor.name.clone(),
            begin: range.start,
            end: range.end,
            bytes: tensor.bytes,
        };
        let len = range.end.checked_sub(range.start).ok_or_else(outside)?;
        if range.end > tensor.bytes || self.source.len() < len {
            return Err(outside());
        }
        let mut destination = vec![0; usize::try_from(len).map_err(|_| outside())?];
        self.read_tensor_into(tensor, range.start, &mut destination)?;
        Ok(destination)
    }

    /// Fills `destination` with the tensor's bytes from `begin` on: [`Gguf::read_tensor`] without its allocation.
    pub fn read_tensor_into(
        &self,
        tensor: &TensorInfo,
        begin: u64,
        destination: &mut [u8],
    ) -> Result<(), GgufError> {
        let end = begin.checked_add(destination.len() as u64);
        let start = tensor.offset.checked_add(begin);
        let is_read = match (start, end) {
            (Some(start), Some(end)) if end <= tensor.bytes => {
                let read = self.source.read_data(start, destination);
                read.map_err(|source| GgufError::Made { name: tensor.name.clone(), source })?
            }
            _ => false,
        };
        if is_read {
            return Ok(());
        }
        Err(GgufError::RangeOutsideTensor {
            name: tensor.name.clone(),
            begin,
            end: end.unwrap_or(u64::MAX),
            bytes: tensor.bytes,
        })
    }
}

impl TensorInfo {
    /// Elements of the tensor: the product of its dimensions.
    pub fn element_count(&self) -> u64 {
        self.dimensions.iter().product()
    }

    /// Elements of one row: the first dimension.
    pub fn columns(&self) -> u64 {
        self.dimensions.first().copied().unwrap_or(1)
    }

    /// Rows: the product of all dimensions but the first.
    pub fn rows(&self) -> u64 {
        self.dimensions.iter().skip(1).product()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> u64 {
        self.columns() / self.kind.block_elements() * self.kind.block_bytes()
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Gguf")
            .field("version", &self.version)
            .field("alignment", &self.alignment)
            .field("metadata_pairs", &self.metadata.len())
            .field("tensors", &self.tensors.len())
            .field("file_bytes", &self.file_bytes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rather than an abort of the process: counts come from files.
    #[test]
    fn what_there_is_no_memory_for_is_an_error_that_says_how_much() {
        let words = |error: GgufError| error.to_string();
        let refused = "there is no memory for an array, which takes 18446744073709551615 bytes";
        assert_eq!(words(vec_of::<u64>("an array", u64::MAX / 4).unwrap_err()), refused);
        let refused = "there is no memory for an array, which takes 9223372036854775808 bytes";
        assert_eq!(words(vec_of::<u64>("an array", 1 << 60).unwrap_err()), refused);
        assert!(matches!(StringList::with_capacity(u64::MAX), Err(GgufError::Memory { .. })));
        assert!(matches!(Metadata::with_capacity(u64::MAX), Err(GgufError::Memory { .. })));
        assert!(vec_of::<u64>("an array", 5).is_ok_and(|values| values.is_empty() && values.capacity() >= 5));
    }
}
