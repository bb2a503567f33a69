//! Why an executor could not be planned or made, or a step could not run.
//!
//! Contract: each error has what it is about as data, so that a caller can say what would help.

mod out_of_memory;

pub use out_of_memory::OutOfMemory;

use crate::gguf::GgufError;
use crate::graph::GraphError;
use crate::model_error::ModelError;
use crate::weights::WeightId;
use thiserror::Error;
use zrt_device::DeviceError;
use zrt_mem::ByteLen;

/// Why an executor could not be made or a step could not run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ExecutorError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("reading weight `{weight}` failed")]
    Weight { weight: WeightId, source: GgufError },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model file could not be planned")]
    Graph(#[from] GraphError),
    #[error("no {executor} adapter for `{operation}` on `{detail}`; this model cannot run there")]
    NoAdapter { executor: &'static str, operation: &'static str, detail: String },
    #[error("kernel `{kernel}` is not usable: {reason}")]
    Kernel { kernel: &'static str, reason: String },
    #[error(
        "a sequence of {tokens} tokens does not fit the context of {context}; ask for a larger context or less text"
    )]
    Context { tokens: usize, context: u32 },
    #[error("token {token} is outside the vocabulary of {vocabulary}")]
    Token { token: u32, vocabulary: u32 },
    #[error("the prompt is empty; give at least one token")]
    EmptyPrompt,
    #[error(
        "VRAM of {limit:?} is too little: a session of this size needs {whole:?}, and still {least:?} with every matrix \
         in host memory"
    )]
    VramLimit { limit: ByteLen, whole: ByteLen, least: ByteLen },
    #[error(transparent)]
    OutOfMemory(#[from] Box<OutOfMemory>),
    #[error("{threads} threads cannot load weights: it takes 1 to {most}")]
    Threads { threads: usize, most: usize },
    #[error("the system starts no thread to load weights")]
    NoThread { source: std::io::Error },
    #[error("the memory plan overflows: {what}")]
    Overflow { what: &'static str },
}
