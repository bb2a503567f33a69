//! Why a session cannot do what is asked of it.

use crate::executor_error::ExecutorError;
use crate::sampling::SamplingError;
use std::time::Duration;
use thiserror::Error;
use zrt_mem::ByteLen;
use zrt_mem::pages::CountError;
use zrt_protocol::EventError;
use zrt_ring::token_ring::{ControlError, TakeError, TokenRingError};

/// Where a workgroup of the megakernel was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The workgroup.
    pub group: u32,
    /// The step.
    pub epoch: u32,
    /// The task.
    pub task: u32,
    /// Its kernel.
    pub kernel: &'static str,
}

/// Why a session cannot do what is asked of it.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum SessionError {
    #[error("{what} is {value}, and must be {range}")]
    Option { what: &'static str, value: u64, range: &'static str },
    #[error(
        "{groups} workgroups of the megakernel are more than the {resident} that are resident at once \
         ({per_unit} on each of {units} compute units); the others would take no part"
    )]
    Groups { groups: u32, resident: u32, per_unit: u32, units: u32 },
    #[error("none of the megakernel's {groups} workgroups has begun within {waited:?}")]
    NotStarted { waited: Duration, groups: u32 },
    #[error("every slot and all {waiting_max} places in the queue are taken; poll, then try again")]
    Full { waiting_max: u32 },
    #[error("the session is draining or stopped: it accepts no further requests")]
    Leaving,
    #[error("{live} requests have not ended; poll until they have, or stop the session first")]
    Live { live: usize },
    #[error("the megakernel has not ended after {waited:?}")]
    NotLeft { waited: Duration },
    #[error("the request needs {needed} tokens, but the session's context is {context}")]
    Context { needed: u32, context: u32 },
    #[error("there is no such request: it has ended, or it is another session's")]
    NoSuchRequest,
    #[error("the request has {tokens} tokens, but must have 1 to {max}: the context must hold one more")]
    Prompt { tokens: usize, max: u32 },
    #[error(
        "the request may need {needed} pages, but the cache has {pages}; ask for fewer tokens, or \
         open the session with more pages"
    )]
    Pages { needed: u32, pages: u32 },
    #[error("the context of {context} tokens is more than the {trained} that the model was trained for")]
    ModelContext { context: u32, trained: u32 },
    #[error(
        "a session with {slots} slots of context {context} needs {whole:?} of VRAM, and {least:?} with every matrix in \
         host memory, but the limit is {limit:?}: {instead}"
    )]
    VramLimit { slots: u32, context: u32, whole: ByteLen, least: ByteLen, limit: ByteLen, instead: String },
    #[error("the prompt length is {prompt}, but must be from 1 to the request's {tokens} tokens")]
    PromptLength { prompt: usize, tokens: usize },
    #[error("a complete request of {tokens} tokens cannot come from this model, whose context is {trained}")]
    Complete { tokens: usize, trained: u32 },
    #[error("{tokens} tokens to generate: at least 1 is needed")]
    TokensMax { tokens: u32 },
    #[error("{count} stop tokens are more than the {max} that a slot holds")]
    Stops { count: usize, max: usize },
    #[error("token {token} is outside the vocabulary of {vocabulary}")]
    Token { token: u32, vocabulary: u32 },
    #[error("the device reported slot {slot} and request {serial}, which the host does not have")]
    Protocol { slot: u32, serial: u32 },
    #[error("no progress for {waited:?} with {active} requests running: {}", standings(groups))]
    Hang { waited: Duration, active: u32, groups: Vec<Standing> },
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Device(#[from] zrt_device::DeviceError),
    #[error(transparent)]
    PageCount(#[from] CountError),
    #[error("entry {number} of the output ring: {error}")]
    Event { number: u64, error: EventError },
    #[error(transparent)]
    Ring(#[from] TokenRingError),
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl From<TakeError<EventError>> for SessionError {
    fn from(error: TakeError<EventError>) -> SessionError {
        match error {
            TakeError::Entry { number, error } => SessionError::Event { number, error },
            TakeError::Ring(error) => SessionError::Ring(error),
        }
    }
}

fn standings(groups: &[Standing]) -> String {
    if groups.is_empty() {
        return "no workgroup has left a trace".into();
    }
    let one = |one: &Standing| {
        format!("workgroup {} in task {} ({}) of step {}", one.group, one.task, one.kernel, one.epoch)
    };
    groups.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_says_where_each_workgroup_stands() {
        let hang = |groups| SessionError::Hang { waited: Duration::from_millis(1500), active: 2, groups };
        assert_eq!(
            hang(Vec::new()).to_string(),
            "no progress for 1.5s with 2 requests running: no workgroup has left a trace"
        );
        let standing = |group, task, kernel| Standing { group, epoch: 9, task, kernel };
        assert_eq!(
            hang(vec![standing(0, 7, "rms_norm"), standing(4, 12, "sample")]).to_string(),
            "no progress for 1.5s with 2 requests running: workgroup 0 in task 7 (rms_norm) of step 9; workgroup 4 in \
             task 12 (sample) of step 9"
        );
    }
}
