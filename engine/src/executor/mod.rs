//! What runs a plan: the device, or the CPU oracle. Both are driven through [`Executor`].
//!
//! Contract: an executor keeps one sequence. [`Executor::begin`] sets the prompt; every [`Executor::step`] consumes the
//! token at the current position and, from the prompt's last token on, appends its choice. The trait is used with
//! static dispatch: no trait object is on the path of a token.

pub mod alone;
pub mod device;
pub mod lowering;
pub mod resident;
pub mod upload;

use crate::executor_error::ExecutorError;
use crate::graph::ValueId;
use crate::plan::ExecutionPlan;

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
