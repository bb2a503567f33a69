//! A user's request, and the events that answer it.
//!
//! Contract: plain values; nothing allocates.

use crate::sampling::SamplingOptions;
use zrt_protocol::FinishReason;

/// What a user asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The known tokens: from 1 up to the context less 1.
    pub prompt: &'a [u32],
    /// Maximum number of tokens to generate; the context is a limit too.
    pub tokens_max: u32,
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// Tokens of the vocabulary that end the sequence; they are delivered too. At most 8.
    pub stops: &'a [u32],
}

/// A request of this session. Handles are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub(super) u64);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A token.
    Token {
        /// The request.
        handle: Handle,
        /// The token.
        token: u32,
        /// Its index in the sequence, prompt included.
        index: u32,
    },
    /// The request has ended: the last event of every request.
    Finished {
        /// The request.
        handle: Handle,
        /// Why it has ended.
        reason: FinishReason,
    },
    /// The request is parked, as requested.
    Parked {
        /// The request.
        handle: Handle,
    },
}

impl Default for Event {
    fn default() -> Event {
        Event::Parked { handle: Handle(0) }
    }
}
