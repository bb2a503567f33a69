//! Greedy generation over any executor, with the prompt's loss.
//!
//! Contract: prefill takes one step per prompt token. The loss uses the natural logarithm; it is summed in f64 on the
//! host, from logits read back, over the prompt's tokens after the first. Generic over the executor: no trait object is
//! on the path of a token.

use crate::executor::Executor;
use crate::executor_error::ExecutorError;
use std::ops::ControlFlow;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct GenerateOptions<'a> {
    /// Tokens to generate after the prompt.
    pub tokens_max: usize,
    /// Stop after any of these tokens.
    pub end_tokens: &'a [u32],
    /// Read the logits of each prompt position and compute the loss.
    pub with_loss: bool,
}

/// What was generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Greedy tokens, including the end token if it was reached.
    pub tokens: Vec<u32>,
    /// Mean loss of the prompt's tokens after the first; `None` if it was not requested or the prompt has one token, or
    /// if it was broken off in the prompt.
    pub prompt_loss_mean: Option<f64>,
    /// True if the caller broke it off.
    pub is_broken_off: bool,
}

/// Runs a prompt and generates. Calls `on_step` after every step, with the prompt tokens done or the generated token;
/// it may break off.
pub fn generate<E: Executor>(
    executor: &mut E,
    prompt: &[u32],
    options: GenerateOptions<'_>,
    mut on_step: impl FnMut(Step) -> ControlFlow<()>,
) -> Result<Generation, ExecutorError> {
    executor.begin(prompt)?;
    let mut logits =
        vec![0f32; if options.with_loss { executor.plan().config.vocabulary as usize } else { 0 }];
    let mut loss_sum = 0f64;
    let mut choice = 0;
    for (index, _) in prompt.iter().enumerate() {
        choice = executor.step()?;
        if let Some(next) = prompt.get(index + 1).filter(|_| options.with_loss) {
            executor.read_logits(&mut logits)?;
            loss_sum += loss(&logits, *next);
        }
        if on_step(Step::Prompt { done: index + 1, total: prompt.len() }).is_break() {
            return Ok(Generation { tokens: Vec::new(), prompt_loss_mean: None, is_broken_off: true });
        }
    }
    let mut is_broken_off = false;
    let mut tokens = Vec::with_capacity(options.tokens_max);
    while tokens.len() < options.tokens_max {
        tokens.push(choice);
        is_broken_off = on_step(Step::Token(choice)).is_break();
        if is_broken_off || options.end_tokens.contains(&choice) || tokens.len() == options.tokens_max {
            break;
        }
        choice = executor.step()?;
    }
    let counted = prompt.len() - 1;
    let prompt_loss_mean = (options.with_loss && counted > 0).then(|| loss_sum / counted as f64);
    Ok(Generation { tokens, prompt_loss_mean, is_broken_off })
}

/// Progress of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A prompt token was consumed.
    Prompt {
        /// Tokens done.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
    },
    /// A token was generated.
    Token(u32),
}

/// `-ln softmax(logits)[token]`, in f64.
pub fn loss(logits: &[f32], token: u32) -> f64 {
    let maximum = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - f64::from(maximum)).exp()).sum();
    sum.ln() - (f64::from(logits[token as usize]) - f64::from(maximum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_of_a_uniform_choice_is_the_logarithm_of_its_size() {
        assert!((loss(&[3.0; 8], 5) - 8f64.ln()).abs() < 1e-12);
        assert!(loss(&[0.0, 100.0], 1) < 1e-12);
        assert!((loss(&[0.0, 100.0], 0) - 100.0).abs() < 1e-9);
    }
}
