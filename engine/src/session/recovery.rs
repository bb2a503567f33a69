//! What is left of a request when its session is lost: what to submit to the next one.
//!
//! Contract: plain values. It holds every known token, so no token is reported twice or left out; draws are keyed by
//! (seed, index of the token), so the rest is what the lost session would have reported.

use super::request::Handle;
use crate::sampling::Sampling;
use zrt_protocol::FinishReason;

/// What is left of a request after its session was lost: what to submit to the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// Its handle in the lost session.
    pub handle: Handle,
    /// Every known token: the prompt, and what was reported.
    pub tokens: Vec<u32>,
    /// Tokens of the prompt: 1 to all.
    pub prompt_length: usize,
    /// Tokens that may still be generated.
    pub tokens_left: u32,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Tokens that end the sequence.
    pub stops: Vec<u32>,
    /// The user has cancelled it, and its end has not been reported yet.
    pub is_cancelled: bool,
    /// It was held back.
    pub is_held: bool,
    /// It was parked, or was to be.
    pub is_parked: bool,
}

impl Unfinished {
    /// Why nothing is left to generate, so that the lost session owes the user only the end; `None` if something is
    /// left.
    pub(super) fn end(&self) -> Option<FinishReason> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplingOptions;

    /// The prompt is [1, 2], and 2 ends the sequence.
    #[test]
    fn a_request_has_ended_by_its_last_choice_or_its_length_or_its_user() {
        let end = |tokens: &[u32], tokens_left, is_cancelled| {
            let left = Unfinished {
                handle: Handle(1),
                tokens: tokens.to_vec(),
                prompt_length: 2,
                tokens_left,
                sampling: SamplingOptions::default().validate().unwrap(),
                stops: vec![2, 7],
                is_cancelled,
                is_held: false,
                is_parked: false,
            };
            left.end()
        };
        let [stop, length, cancelled] =
            [FinishReason::Stop, FinishReason::Length, FinishReason::Cancelled].map(Some);
        for (tokens, tokens_left, is_cancelled, expected) in [
            (&[1, 2][..], 1, false, None),
            (&[1, 2], 0, false, length),
            (&[1, 2], 1, true, cancelled),
            (&[1, 2, 7], 1, false, stop),
            (&[1, 2, 2], 0, true, stop),
            (&[1, 2, 7, 3], 1, false, None),
            (&[1, 2, 7, 3], 0, true, length),
            // Shorter than its prompt: it is refused later.
            (&[2], 1, false, None),
        ] {
            assert_eq!(end(tokens, tokens_left, is_cancelled), expected, "{tokens:?} {tokens_left}");
        }
    }
}
