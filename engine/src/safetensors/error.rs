//! Everything that can be wrong with a folder of safetensors, and where.
//!
//! Contract: each text is a sentence fragment; names from files are quoted and escaped. What is wrong inside a file is
//! the cause of [`SafetensorsError::InFile`], which names the file.

use super::json::JsonError;
use crate::gguf::GgufError;
use crate::model_error::ModelError;
use thiserror::Error;

/// Why a folder is not a model that can be run.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum SafetensorsError {
    #[error("the folder has no `{file}`")]
    FileMissing { file: String },
    #[error("`{file}` cannot be read")]
    Io { file: String, source: std::io::Error },
    #[error("`{file}` has {bytes} bytes; at most {limit} are accepted")]
    FileLength { file: String, bytes: u64, limit: u64 },
    #[error("`{file}` cannot be used")]
    InFile { file: String, source: Box<SafetensorsError> },
    #[error("it is not the JSON that is needed: {0}")]
    Json(#[from] JsonError),
    #[error("it is not JSON: {0}")]
    Config(#[from] serde_json::Error),
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("`{key}` is missing")]
    KeyMissing { key: String },
    #[error("`{key}` is {found}, but {wanted} is needed")]
    Key { key: String, found: String, wanted: String },
    #[error("it is cut: a header of {header} bytes does not fit into {bytes}")]
    Header { header: u64, bytes: u64 },
    #[error("the header's {header} bytes are above the limit of {limit}")]
    HeaderLimit { header: u64, limit: u64 },
    #[error("tensor {name:?} has no {part}")]
    EntryPart { name: String, part: &'static str },
    #[error("tensor {name:?} has the unknown type {found:?}")]
    Dtype { name: String, found: String },
    #[error("tensor {name:?} of shape {shape:?} has bytes {begin}..{end}, which is not its size")]
    Size { name: String, shape: Vec<u64>, begin: u64, end: u64 },
    #[error("tensor {name:?} ends at byte {end} of {bytes} bytes of data")]
    Outside { name: String, end: u64, bytes: u64 },
    #[error("tensors {first:?} and {second:?} share bytes")]
    Overlap { first: String, second: String },
    #[error("tensor {name:?} occurs twice")]
    DuplicateTensor { name: String },
    #[error("there are more than {limit} {what}")]
    Limit { what: &'static str, limit: u64 },
    #[error("{name:?} is no name of a file in the folder")]
    FileName { name: String },
    #[error("tensor {0:?} is missing")]
    TensorMissing(String),
    #[error(
        "tensor {0:?} has no place in a model of this architecture; running without it would give other results"
    )]
    TensorUnknown(String),
    #[error("tensor {name:?} is of type {dtype}, but {wanted} is needed")]
    TensorType { name: String, dtype: &'static str, wanted: &'static str },
    #[error("tensor {name:?} has shape {found:?}, but {wanted} is needed")]
    Shape { name: String, found: Vec<u64>, wanted: String },
    #[error("tensor {name:?} has a NaN in row {row}, column {column}")]
    Nan { name: String, row: u64, column: u64 },
    #[error("tensor {name:?} has the scale {scale}; a finite one of at most 2^96 is needed")]
    Scale { name: String, scale: f32 },
    #[error("tensor {name:?} ends before it is read: the file has changed")]
    Changed { name: String },
    #[error("this {what} is not built: {found}")]
    Tokenizer { what: &'static str, found: String },
    #[error("token {token:?} has the number {id}, but the embedding has {rows} rows")]
    TokenId { token: String, id: u64, rows: u64 },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("what the folder describes is refused")]
    Gguf(#[from] GgufError),
}

impl SafetensorsError {
    /// The error with the name of the file that it is in.
    pub(super) fn in_file(self, file: &str) -> SafetensorsError {
        SafetensorsError::InFile { file: file.to_owned(), source: Box::new(self) }
    }
}
