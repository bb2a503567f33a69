//! Requests of a lost session: what is left of them, and how they go on in the next one.
//!
//! Contract: [`Session::unfinished`] names every request that has not ended, with every token that is known.
//! [`Session::resubmit`] lets it go on from there: no token is told again, none is left out. Draws are keyed by (seed, index
//! of the token), so the rest is what the lost session would have told. Both allocate; neither is on the way of a token.

use super::request::{Leaving, Place};
use super::{Handle, Session, SessionError};
use crate::sampling::Sampling;
use zrt_protocol::FinishReason;

/// What is left of a request after its session was lost: what to submit to the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// Its handle in the lost session.
    pub handle: Handle,
    /// Every token that was known: the prompt, and what was told.
    pub tokens: Vec<u32>,
    /// Tokens of the prompt: 1 to all.
    pub prompt_length: usize,
    /// Tokens that may still be generated.
    pub tokens_left: u32,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Tokens that end the sequence.
    pub stops: Vec<u32>,
    /// The user has cancelled it, and was not told its end yet.
    pub is_cancelled: bool,
    /// It was held back.
    pub is_held: bool,
    /// It was parked, or was to be.
    pub is_parked: bool,
}

impl Unfinished {
    /// Why nothing is left to generate; `None` where something is. The lost session owes the user the end only.
    fn end(&self) -> Option<FinishReason> {
        let generated = &self.tokens[self.prompt_length.min(self.tokens.len())..];
        if generated.last().is_some_and(|last| self.stops.contains(last)) {
            return Some(FinishReason::Stop);
        }
        if self.tokens_left == 0 {
            return Some(FinishReason::Length);
        }
        self.is_cancelled.then_some(FinishReason::Cancelled)
    }
}

impl Session {
    /// Requests that have not ended, with what is needed to go on elsewhere, the oldest first. Allocates.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let mut left: Vec<_> = self.records.iter().filter(|record| record.place != Place::Nowhere).collect();
        left.sort_by_key(|record| record.age);
        let one = |record: &&super::request::Record| Unfinished {
            handle: Handle(record.handle),
            tokens: record.tokens.clone(),
            prompt_length: record.prompt_length as usize,
            tokens_left: record.limit - record.tokens.len() as u32,
            sampling: record.sampling,
            stops: record.stops.iter().copied().filter(|stop| *stop != u32::MAX).collect(),
            is_cancelled: record.leaving == Leaving::Cancelled,
            is_held: record.is_held,
            is_parked: record.parks_at_once
                || record.leaving == Leaving::Parking
                || matches!(record.place, Place::Parked { .. }),
        };
        left.iter().map(one).collect()
    }

    /// Lets a request of a lost session go on in this one, from its last known token. Where it had come to its end and only
    /// the [`Finished`](super::Event::Finished) was missing, that event is all that follows. One that was held is held
    /// again; one that was parked is parked as soon as it has a slot, which [`Parked`](super::Event::Parked) tells. What no
    /// session of this model can have left is refused.
    pub fn resubmit(&mut self, left: &Unfinished) -> Result<Handle, SessionError> {
        let (known, prompt) = (left.tokens.len(), left.prompt_length);
        if !(1..=known).contains(&prompt) {
            return Err(SessionError::PromptLength { prompt, tokens: known });
        }
        self.check_stops(&left.stops)?;
        let end = left.end();
        let limit = (left.tokens.len() as u32).saturating_add(left.tokens_left);
        // Of one that is complete nothing is computed: it fits every session of the model.
        if end.is_some() {
            let trained = self.resident.plan.config.context;
            if known > trained as usize {
                return Err(SessionError::Complete { tokens: known, trained });
            }
            self.check_vocabulary(&left.tokens)?;
        } else {
            self.check_tokens(&left.tokens)?;
            let context = self.options.context;
            if limit > context {
                return Err(SessionError::Context { needed: limit, context });
            }
            self.check_pages(limit)?;
        }
        let index = self.enqueue(&left.tokens, left.prompt_length, limit, left.sampling, &left.stops)?;
        let record = &mut self.records[index];
        let handle = record.handle;
        (record.is_held, record.parks_at_once) = (left.is_held, left.is_parked);
        if let Some(reason) = end {
            record.leaving = Leaving::Complete(reason);
        }
        self.admit()?;
        Ok(Handle(handle))
    }
}
