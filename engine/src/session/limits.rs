//! The checks that a request, or what is left of one, passes before anything else reads it.
//!
//! Contract: [`Limits`] are those of one session; what has passed their checks needs no later ones. Nothing allocates.

use super::error::SessionError;
use super::recovery::Unfinished;
use super::request::Request;
use crate::sampling::LogitBias;
use zrt_protocol::{FinishReason, PAGE_TOKENS, STOP_TOKENS_MAX};

/// Limits of a session's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum number of tokens of a sequence.
    pub context: u32,
    /// Tokens that the model was trained for.
    pub trained: u32,
    /// Tokens of the vocabulary.
    pub vocabulary: u32,
    /// Pages of the cache.
    pub pages: u32,
}

impl Limits {
    /// Checks a request; returns the number of known tokens at which it ends.
    pub fn check(&self, request: &Request<'_>) -> Result<u32, SessionError> {
        if request.tokens_max == 0 {
            return Err(SessionError::TokensMax { tokens: 0 });
        }
        self.check_stops(request.stops)?;
        self.check_biases(&request.sampling.logit_bias)?;
        self.check_tokens(request.prompt)?;
        let limit = (request.prompt.len() as u32).saturating_add(request.tokens_max).min(self.context);
        self.check_pages(limit)?;
        Ok(limit)
    }

    /// Checks what is left of a request of another session; returns the number of known tokens at which it ends. A
    /// request that has come to its `end` needs no computation: it fits every session of the model.
    pub fn check_unfinished(
        &self,
        left: &Unfinished,
        end: Option<FinishReason>,
    ) -> Result<u32, SessionError> {
        let (known, prompt) = (left.tokens.len(), left.prompt_length);
        if !(1..=known).contains(&prompt) {
            return Err(SessionError::PromptLength { prompt, tokens: known });
        }
        self.check_stops(&left.stops)?;
        self.check_biases(left.sampling.biases())?;
        let limit = (known as u32).saturating_add(left.tokens_left);
        if end.is_some() {
            if known > self.trained as usize {
                return Err(SessionError::Complete { tokens: known, trained: self.trained });
            }
            self.check_vocabulary(&left.tokens)?;
            return Ok(limit);
        }
        self.check_tokens(&left.tokens)?;
        if limit > self.context {
            return Err(SessionError::Context { needed: limit, context: self.context });
        }
        self.check_pages(limit)?;
        Ok(limit)
    }

    fn check_pages(&self, limit: u32) -> Result<(), SessionError> {
        let (needed, pages) = (limit.div_ceil(PAGE_TOKENS), self.pages);
        if needed > pages { Err(SessionError::Pages { needed, pages }) } else { Ok(()) }
    }

    fn check_stops(&self, stops: &[u32]) -> Result<(), SessionError> {
        match stops.len() {
            0..=STOP_TOKENS_MAX => self.check_vocabulary(stops),
            count => Err(SessionError::Stops { count, max: STOP_TOKENS_MAX }),
        }
    }

    fn check_biases(&self, biases: &LogitBias) -> Result<(), SessionError> {
        biases.entries().iter().try_for_each(|(token, _)| self.check_vocabulary(&[*token]))
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<(), SessionError> {
        let max = self.context - 1;
        if tokens.is_empty() || tokens.len() > max as usize {
            return Err(SessionError::Prompt { tokens: tokens.len(), max });
        }
        self.check_vocabulary(tokens)
    }

    fn check_vocabulary(&self, tokens: &[u32]) -> Result<(), SessionError> {
        let vocabulary = self.vocabulary;
        match tokens.iter().find(|token| **token >= vocabulary) {
            Some(token) => Err(SessionError::Token { token: *token, vocabulary }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplingOptions;
    use crate::session::request::Handle;

    /// Contexts of 40 of the 64 tokens that the model was trained for, and pages for 32.
    const LIMITS: Limits = Limits { context: 40, trained: 64, vocabulary: 16, pages: 2 };

    fn request<'a>(prompt: &'a [u32], tokens_max: u32, stops: &'a [u32]) -> Request<'a> {
        Request { prompt, tokens_max, sampling: SamplingOptions::default(), stops }
    }

    fn biased(tokens: &[u32]) -> LogitBias {
        let entries: Vec<(u32, f32)> = tokens.iter().map(|token| (*token, 1.0)).collect();
        LogitBias::new(&entries).unwrap()
    }

    /// The limit, or the text of the refusal.
    fn said(found: Result<u32, SessionError>) -> String {
        found.map_or_else(|error| error.to_string(), |limit| limit.to_string())
    }

    #[test]
    fn a_request_is_checked_to_the_edge_of_each_limit() {
        let roomy = Limits { pages: 3, ..LIMITS };
        let token = "token 16 is outside the vocabulary of 16";
        let length = |tokens| {
            format!("the request has {tokens} tokens, but must have 1 to 39: the context must hold one more")
        };
        let pages = "the request may need 3 pages, but the cache has 2; ask for fewer tokens, or open the session with \
                     more pages";
        for (limits, prompt, tokens_max, stops, expected) in [
            (LIMITS, &[15; 3][..], 1, &[15; 8][..], "4".into()),
            (LIMITS, &[1; 3], 29, &[], "32".into()),
            (LIMITS, &[1; 3], 30, &[], pages.to_owned()),
            (roomy, &[1; 3], 30, &[], "33".into()),
            // The context ends it earlier.
            (roomy, &[1; 39], 1, &[], "40".into()),
            (roomy, &[1; 39], u32::MAX, &[], "40".into()),
            (roomy, &[1; 40], 1, &[], length(40)),
            (roomy, &[1; 41], 1, &[], length(41)),
            (roomy, &[], 1, &[], length(0)),
            (roomy, &[1], 0, &[], "0 tokens to generate: at least 1 is needed".into()),
            (roomy, &[1, 16], 1, &[], token.into()),
            (roomy, &[1], 1, &[16], token.into()),
            (roomy, &[1], 1, &[1; 9], "9 stop tokens are more than the 8 that a slot holds".into()),
        ] {
            assert_eq!(
                said(limits.check(&request(prompt, tokens_max, stops))),
                expected,
                "{prompt:?} {tokens_max}"
            );
        }
        for (token, expected) in [(15, "2"), (16, token)] {
            let sampling = SamplingOptions { logit_bias: biased(&[1, token]), ..SamplingOptions::default() };
            assert_eq!(said(roomy.check(&Request { sampling, ..request(&[1], 1, &[]) })), expected);
        }
    }

    #[test]
    fn what_is_left_of_a_request_is_checked_to_the_edge_of_each_limit() {
        let roomy = Limits { pages: 3, ..LIMITS };
        let token = "token 16 is outside the vocabulary of 16";
        let left = |tokens: &[u32], prompt_length, tokens_left| Unfinished {
            handle: Handle(1),
            tokens: tokens.to_vec(),
            prompt_length,
            tokens_left,
            sampling: SamplingOptions::default().validate().unwrap(),
            stops: Vec::new(),
            is_cancelled: false,
            is_held: false,
            is_parked: false,
        };
        let prompt = |prompt, tokens| {
            format!("the prompt length is {prompt}, but must be from 1 to the request's {tokens} tokens")
        };
        let (open, ended) = (None, Some(FinishReason::Length));
        for (limits, left, end, expected) in [
            (LIMITS, left(&[15; 3], 3, 29), open, "32".to_owned()),
            (roomy, left(&[1; 39], 1, 1), open, "40".into()),
            (roomy, left(&[1; 3], 0, 1), open, prompt(0, 3)),
            (roomy, left(&[1; 3], 4, 1), open, prompt(4, 3)),
            (
                roomy,
                left(&[1; 39], 1, 2),
                open,
                "the request needs 41 tokens, but the session's context is 40".into(),
            ),
            (
                LIMITS,
                left(&[1; 3], 3, 30),
                open,
                "the request may need 3 pages, but the cache has 2; ask for fewer tokens, or open the session with \
                 more pages"
                    .into(),
            ),
            (roomy, left(&[16], 1, 1), open, token.into()),
            // Nothing of it is computed: what counts is that a session of this model can have left it.
            (LIMITS, left(&[1; 64], 1, 0), ended, "64".into()),
            (
                LIMITS,
                left(&[1; 65], 1, 0),
                ended,
                "a complete request of 65 tokens cannot come from this model, whose context is 64".into(),
            ),
            (LIMITS, left(&[1, 16], 1, 0), ended, token.into()),
            (LIMITS, left(&[1, 2], 1, u32::MAX), ended, u32::MAX.to_string()),
        ] {
            assert_eq!(said(limits.check_unfinished(&left, end)), expected, "{left:?}");
        }
        let stops = Unfinished { stops: vec![16], ..left(&[1], 1, 1) };
        assert_eq!(said(LIMITS.check_unfinished(&stops, None)), token);
        let sampling = SamplingOptions { logit_bias: biased(&[16]), ..SamplingOptions::default() };
        let biased = Unfinished { sampling: sampling.validate().unwrap(), ..left(&[1], 1, 1) };
        assert_eq!(said(LIMITS.check_unfinished(&biased, None)), token);
    }
}
