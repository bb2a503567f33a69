//! Why a file is not a model that can be run, and the limits that its metadata have to keep.
//!
//! Contract: each error names the key or the tensor at fault. The one about an architecture names those that run.

use crate::architecture::Architecture;
use crate::gguf::GgufError;
use thiserror::Error;

/// Largest number of layers accepted; a bound for loops over hostile metadata.
pub const LAYERS_MAX: u32 = 1024;
/// Largest row length accepted, in elements.
pub const COLUMNS_MAX: u32 = 1 << 20;

/// Why a file is not a model that can be run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ModelError {
    #[error("architecture `{0}` is not supported; this build runs {names}", names = architectures())]
    Architecture(String),
    #[error("the model's metadata is incomplete; convert the file again")]
    Metadata(#[from] GgufError),
    #[error("metadata key `{key}` is {value}, outside what can be run: {reason}")]
    Range { key: String, value: String, reason: &'static str },
    #[error("tensor `{0}` is missing from the file")]
    TensorMissing(String),
    #[error(
        "tensor `{0}` has no place in a model of this architecture; running without it would give other results"
    )]
    TensorUnknown(String),
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?} (columns, rows)")]
    Shape { name: String, found: Vec<u64>, expected: Vec<u64> },
    #[error(
        "the vocabulary has {tokens} tokens, but the embedding has {rows} rows: the file is damaged or cut"
    )]
    Vocabulary { tokens: usize, rows: u32 },
    #[error("tensor `{name}` divides a rotary frequency by {divisor}, which is no number from 1 on")]
    RopeDivisor { name: String, divisor: f32 },
    #[error("tensor `{name}` is of type {kind}, for which there is no kernel")]
    Kind { name: String, kind: String },
    #[error("tensor `{name}`: rows of {columns} elements do not divide into what type {kind} needs")]
    Columns { name: String, columns: u32, kind: String },
}

/// The names of the architectures that run, for a sentence.
fn architectures() -> String {
    let names: Vec<String> = Architecture::ALL.iter().map(|one| format!("`{}`", one.name())).collect();
    let (last, others) = names.split_last().unwrap_or((&names[0], &[]));
    format!("{} and {last}", others.join(", "))
}
