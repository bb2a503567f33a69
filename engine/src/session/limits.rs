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
