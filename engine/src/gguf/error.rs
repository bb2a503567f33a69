//! Everything that can be wrong with a model file, with its location.
//!
//! Contract: each text is a sentence fragment; names from the file are quoted and escaped.

use std::path::PathBuf;
use thiserror::Error;

/// Why a model file was refused. Offsets are bytes from the start of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be opened or mapped.
    #[error("{} cannot be opened as a model file", path.display())]
    Open {
        /// The requested path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it starts with {found:02x?}, not \"GGUF\"")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The version's bytes are reversed.
    #[error("a big-endian GGUF file (version field {found:#010x}); convert it to little endian")]
    BigEndian {
        /// The field as read in little endian.
        found: u32,
    },
    /// A version other than 2 and 3.
    #[error("GGUF version {found} at byte 4, where 2 or 3 is read")]
    Version {
        /// The version found.
        found: u32,
    },
    /// The file, or the byte limit of its header, ends inside an item.
    #[error("the file ends inside {what} at byte {offset}: {wanted} bytes wanted, {available} left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// Bytes it needs at least.
        wanted: u64,
        /// Bytes that remain.
        available: u64,
    },
    /// There is no memory for a part of the header.
    #[error("there is no memory for {what}, which takes {bytes} bytes")]
    Memory {
        /// The part.
        what: &'static str,
        /// Bytes it needs.
        bytes: u64,
    },
    /// A count or length above the limit of [`super::limits`].
    #[error("{what} at byte {offset} is {found}; at most {limit} is accepted")]
    Limit {
        /// What was counted.
        what: &'static str,
        /// Offset of the number.
        offset: u64,
        /// The number.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A key, name or value that must be UTF-8 is not.
    #[error("{what} at byte {offset} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        what: &'static str,
        /// Where its text starts.
        offset: u64,
    },
    /// An empty key or tensor name.
    #[error("{what} at byte {offset} is empty")]
    Empty {
        /// What was being read.
        what: &'static str,
        /// Where its text would start.
        offset: u64,
    },
    /// A value type that GGUF does not define.
    #[error("metadata key {key:?} has the unknown value type {found} at byte {offset}")]
    ValueType {
        /// The key.
        key: Box<str>,
        /// The type number.
        found: u32,
        /// Its offset.
        offset: u64,
    },
    /// A boolean that is neither 0 nor 1.
    #[error("metadata key {key:?} holds the boolean {found} at byte {offset}; 0 or 1 is meant")]
    Boolean {
        /// The key.
        key: Box<str>,
        /// The byte found.
        found: u8,
        /// Its offset.
        offset: u64,
    },
    /// Two metadata pairs with the same key.
    #[error("metadata key {key:?} occurs twice, the second time at byte {offset}")]
    DuplicateKey {
        /// The key.
        key: Box<str>,
        /// Where the second one starts.
        offset: u64,
    },
    /// `general.alignment` is not a power of two.
    #[error("general.alignment is {found}, which is not a power of two")]
    Alignment {
        /// The value.
        found: u32,
    },
    /// Two tensors with the same name.
    #[error("tensor {name:?} occurs twice, the second time at byte {offset}")]
    DuplicateTensor {
        /// The name.
        name: Box<str>,
        /// Where the second entry starts.
        offset: u64,
    },
    /// No dimensions, too many, a zero among them, or a product that overflows.
    #[error("tensor {name:?} has impossible dimensions {dimensions:?} (entry at byte {offset})")]
    Dimensions {
        /// The tensor.
        name: Box<str>,
        /// Its dimensions.
        dimensions: Vec<u64>,
        /// Where the entry starts.
        offset: u64,
    },
    /// An unknown tensor type.
    #[error("tensor {name:?} has the unknown type {found} at byte {offset}")]
    TensorKind {
        /// The tensor.
        name: Box<str>,
        /// The type number.
        found: u32,
        /// Its offset.
        offset: u64,
    },
    /// A row is not a whole number of blocks.
    #[error(
        "tensor {name:?} has rows of {columns} elements, not a multiple of the {block} of its type {kind}"
    )]
    PartialBlock {
        /// The tensor.
        name: Box<str>,
        /// Its storage type.
        kind: super::TensorKind,
        /// Elements of a row.
        columns: u64,
        /// Elements of a block.
        block: u64,
    },
    /// The data offset is not a multiple of the alignment.
    #[error(
        "tensor {name:?} starts at offset {offset} of the data, not a multiple of the alignment {alignment}"
    )]
    Misaligned {
        /// The tensor.
        name: Box<str>,
        /// Its offset from the start of the tensor data.
        offset: u64,
        /// The file's alignment.
        alignment: u32,
    },
    /// The data does not lie inside the file.
    #[error("tensor {name:?} needs {bytes} bytes from byte {begin} on, but the file has {file_bytes}")]
    Outside {
        /// The tensor.
        name: Box<str>,
        /// First byte.
        begin: u64,
        /// Length.
        bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// Two tensors share bytes.
    #[error("tensors {first:?} and {second:?} overlap at byte {offset}")]
    Overlap {
        /// The one that starts first.
        first: Box<str>,
        /// The other.
        second: Box<str>,
        /// Start of the second.
        offset: u64,
    },
    /// A required key is absent.
    #[error("the model has no metadata key {key:?}")]
    MissingKey {
        /// The key.
        key: Box<str>,
    },
    /// A key's value has the wrong type or is outside the expected range.
    #[error("metadata key {key:?} holds {found}, but {wanted} is needed")]
    WrongType {
        /// The key.
        key: Box<str>,
        /// What the file has.
        found: &'static str,
        /// What was expected.
        wanted: &'static str,
    },
    /// A byte range that is not inside the tensor.
    #[error("bytes {begin}..{end} of tensor {name:?} do not exist: it has {bytes}")]
    RangeOutsideTensor {
        /// The tensor.
        name: Box<str>,
        /// First requested byte.
        begin: u64,
        /// End of the requested range.
        end: u64,
        /// Length of the tensor.
        bytes: u64,
    },
    /// A tensor that is made of another format's cannot be made.
    #[error("tensor {name:?} cannot be made of what the folder has")]
    Made {
        /// The tensor.
        name: Box<str>,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A folder is not a model that can be read.
    #[error(transparent)]
    Folder(Box<dyn std::error::Error + Send + Sync>),
}
