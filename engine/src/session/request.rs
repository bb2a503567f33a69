//! What the host keeps of each request: its tokens, and where it stands.
//!
//! Contract: all memory is reserved when the table is made. Nothing here allocates afterwards, but a complete request of a
//! session with a longer context, which is submitted again for its end only.

use crate::sampling::Sampling;
use zrt_protocol::{FinishReason, STOP_TOKENS_MAX};

/// What a user asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Tokens that are known: 1 up to the context less 1.
    pub prompt: &'a [u32],
    /// Tokens to generate at most; the context bounds them too.
    pub tokens_max: u32,
    /// How tokens are drawn.
    pub sampling: crate::sampling::SamplingOptions,
    /// Tokens of the vocabulary that end the sequence; they are delivered too. At most 8.
    pub stops: &'a [u32],
}

/// A request of this session. Handles are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub(super) u64);

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The record is free.
    Nowhere,
    /// It waits for a slot.
    Waiting,
    /// It holds a slot.
    Running { slot: u32 },
    /// It holds a slot and its pages, and takes no part.
    Parked { slot: u32 },
}

/// Why a running request leaves its slot before it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It does not.
    #[default]
    No,
    /// The user has cancelled it.
    Cancelled,
    /// It was asked to park.
    Parking,
    /// It gives its slot and pages back and waits again.
    Requeued,
    /// It had come to its end when it was submitted again.
    Complete(FinishReason),
}

/// One request.
#[derive(Debug)]
pub(super) struct Record {
    pub place: Place,
    pub leaving: Leaving,
    pub handle: u64,
    /// The request's number on the device; another one each time that it gets a slot.
    pub serial: u32,
    /// Every known token.
    pub tokens: Vec<u32>,
    pub prompt_length: u32,
    /// The sequence ends when this many tokens are known.
    pub limit: u32,
    pub sampling: Sampling,
    pub stops: [u32; STOP_TOKENS_MAX],
    /// Pages that it holds.
    pub pages: Vec<u32>,
    /// Order of admission: the youngest is the first to give its pages back.
    pub age: u64,
    /// No page was free for it.
    pub is_starved: bool,
    /// Its client is slow: it is to get no row.
    pub is_held: bool,
    /// It is to be parked as soon as it has a slot: it waited when this was asked, or was parked in a lost session.
    pub parks_at_once: bool,
    /// It is to go on as soon as it is parked and the device takes commands.
    pub resumes: bool,
    /// The position that the next row takes in, as the device told when the request was parked.
    pub parked_position: u32,
}

impl Record {
    pub(super) fn new(context: u32, pages_per_slot: u32) -> Record {
        Record {
            place: Place::Nowhere,
            leaving: Leaving::No,
            handle: 0,
            serial: 0,
            tokens: Vec::with_capacity(context as usize),
            prompt_length: 0,
            limit: 0,
            sampling: Sampling::default(),
            stops: [u32::MAX; STOP_TOKENS_MAX],
            pages: Vec::with_capacity(pages_per_slot as usize),
            age: 0,
            is_starved: false,
            is_held: false,
            parks_at_once: false,
            resumes: false,
            parked_position: 0,
        }
    }

    /// The slot that it holds.
    pub(super) fn slot(&self) -> Option<u32> {
        match self.place {
            Place::Running { slot } | Place::Parked { slot } => Some(slot),
            Place::Nowhere | Place::Waiting => None,
        }
    }
}
