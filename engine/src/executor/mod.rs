//! What runs a plan: the device, or the CPU oracle. Both are driven through [`Executor`].
//!
//! Contract: an executor keeps one sequence. [`Executor::begin`] sets the prompt; every [`Executor::step`] consumes the
//! token at the current position and, from the prompt's last token on, appends its choice. The trait is used with
//! static dispatch: no trait object is on the path of a token.

pub mod alone;
pub mod device;
pub mod layout;
pub mod lowering;
mod out_of_memory;
pub mod resident;
pub mod upload;

pub use out_of_memory::OutOfMemory;

use crate::graph::ValueId;
use crate::model::WeightId;
use crate::plan::ExecutionPlan;
use thiserror::Error;
use zrt_mem::ByteLen;

/// The step state as an executor sees it after a step (`docs/kernels.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSnapshot {
    /// Position that the next step consumes.
    pub position: u32,
    /// The last step's choice.
    pub last_token: u32,
    /// Steps taken since [`Executor::begin`].
    pub step_count: u32,
}

/// One of the two caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Keys.
    Key,
    /// Values.
    Value,
}

/// Runs the steps of one sequence.
pub trait Executor {
    /// The plan that it runs.
    fn plan(&self) -> &ExecutionPlan;

    /// Starts a sequence with these tokens (1 ..= context). Caches need no clearing: no step reads a position that
    /// the sequence has not written.
    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError>;

    /// Runs one whole step and returns its choice.
    fn step(&mut self) -> Result<u32, ExecutorError>;

    /// Runs a single instruction of the step and waits for it: for validation.
    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError>;

    /// Copies a value's elements. Later instructions of the step may have reused its memory.
    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError>;

    /// Copies the last step's logits into `logits` (vocabulary elements).
    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError>;

    /// One position's row of a layer's cache.
    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError>;

    /// The step state.
    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError>;

    /// The token at a position of the sequence.
    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError>;
}

/// Why an executor could not be made or a step could not run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ExecutorError {
    #[error(transparent)]
    Device(#[from] zrt_device::DeviceError),
    #[error("reading weight `{weight}` failed")]
    Weight { weight: WeightId, source: crate::gguf::GgufError },
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
    #[error("the model file could not be planned")]
    Graph(#[from] crate::graph::GraphError),
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
    #[error("{threads} threads cannot load weights: it takes 1 to {most}", most = upload::THREADS_MAX)]
    Threads { threads: usize },
    #[error("the system starts no thread to load weights")]
    NoThread { source: std::io::Error },
    #[error("the memory plan overflows: {what}")]
    Overflow { what: &'static str },
}

/// Checks a prompt against a plan, as every executor's [`Executor::begin`] does.
pub fn check_prompt(plan: &ExecutionPlan, prompt: &[u32]) -> Result<(), ExecutorError> {
    if prompt.is_empty() {
        return Err(ExecutorError::EmptyPrompt);
    }
    if prompt.len() > plan.context as usize {
        return Err(ExecutorError::Context { tokens: prompt.len(), context: plan.context });
    }
    let vocabulary = plan.config.vocabulary;
    match prompt.iter().find(|token| **token >= vocabulary) {
        Some(token) => Err(ExecutorError::Token { token: *token, vocabulary }),
        None => Ok(()),
    }
}
