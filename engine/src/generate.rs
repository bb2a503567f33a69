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
    use crate::executor::{Cache, StepSnapshot};
    use crate::graph::{Graph, Operation, ValueId};
    use crate::plan::ExecutionPlan;
    use crate::weights::{WeightClass, WeightId};

    /// Chooses given tokens, one a step; after step n the logit of token n is ln 33, all others are 0.
    struct Script {
        plan: ExecutionPlan,
        choices: Vec<u32>,
        steps: usize,
    }

    fn script(choices: &[u32]) -> Script {
        let config = crate::graph::tests::config();
        let mut graph = Graph::default();
        let [hidden, logits] =
            [("hidden", 8), ("logits", 32)].map(|(name, elements)| graph.value(name, elements));
        let weight = WeightId::new(WeightClass::Embedding, 0);
        let activations = crate::activations::Activations::F32;
        graph.push(None, Operation::Embed { table: weight, output: hidden });
        graph.push(None, Operation::Matmul { weight, input: hidden, activations, output: logits });
        graph.push(None, Operation::Sample { logits });
        let plan = ExecutionPlan::new(&graph.verify(&config).unwrap(), config, 64, 1);
        Script { plan, choices: choices.to_vec(), steps: 0 }
    }

    impl Executor for Script {
        fn plan(&self) -> &ExecutionPlan {
            &self.plan
        }

        fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
            crate::executor::check_prompt(&self.plan, prompt)
        }

        fn step(&mut self) -> Result<u32, ExecutorError> {
            self.steps += 1;
            Ok(self.choices[self.steps - 1])
        }

        fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
            assert_eq!(logits.len(), 32);
            logits.fill(0.0);
            logits[self.steps] = 33f32.ln();
            Ok(())
        }

        fn step_instruction(&mut self, _: usize) -> Result<(), ExecutorError> {
            unreachable!()
        }

        fn read_value(&mut self, _: ValueId) -> Result<Vec<f32>, ExecutorError> {
            unreachable!()
        }

        fn read_cache_row(&mut self, _: Cache, _: u32, _: u32) -> Result<Vec<f32>, ExecutorError> {
            unreachable!()
        }

        fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
            unreachable!()
        }

        fn read_token(&mut self, _: u32) -> Result<u32, ExecutorError> {
            unreachable!()
        }
    }

    fn options(tokens_max: usize, end_tokens: &[u32], with_loss: bool) -> GenerateOptions<'_> {
        GenerateOptions { tokens_max, end_tokens, with_loss }
    }

    /// Tokens, and the steps that were taken: none more than are needed.
    #[test]
    fn generation_ends_with_its_length_or_a_token_that_ends_it() {
        for (tokens_max, end_tokens, tokens, steps) in [
            (0, &[][..], &[][..], 2),
            (1, &[], &[7], 2),
            (3, &[], &[7, 8, 9], 4),
            (3, &[8, 30], &[7, 8], 3),
            (3, &[6], &[7, 8, 9], 4),
            (3, &[9], &[7, 8, 9], 4),
        ] {
            let mut executor = script(&[6, 7, 8, 9, 10]);
            let mut heard = Vec::new();
            let on_step = |step| {
                heard.push(step);
                ControlFlow::Continue(())
            };
            let found =
                generate(&mut executor, &[1, 2], options(tokens_max, end_tokens, false), on_step).unwrap();
            let expected =
                Generation { tokens: tokens.to_vec(), prompt_loss_mean: None, is_broken_off: false };
            assert_eq!((found, executor.steps), (expected, steps), "{tokens_max} {end_tokens:?}");
            let of_prompt = [1, 2].map(|done| Step::Prompt { done, total: 2 });
            let of_tokens = tokens.iter().map(|token| Step::Token(*token));
            assert_eq!(heard, of_prompt.into_iter().chain(of_tokens).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_caller_may_break_it_off() {
        for (stop, tokens, steps) in
            [(Step::Prompt { done: 1, total: 2 }, &[][..], 1), (Step::Token(8), &[7, 8], 3)]
        {
            let mut executor = script(&[6, 7, 8, 9, 10]);
            let on_step =
                |step| if step == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            let found = generate(&mut executor, &[1, 2], options(4, &[], false), on_step).unwrap();
            assert!(found.is_broken_off, "{stop:?}");
            assert_eq!((&*found.tokens, executor.steps), (tokens, steps), "{stop:?}");
        }
    }

    /// Of a sum of 31 + 33 a prompt's next token has 33 where its logit is ln 33, else 1.
    #[test]
    fn the_loss_is_the_mean_over_what_follows_the_first_token() {
        let loss_of = |prompt: &[u32], with_loss| {
            let mut executor = script(&[6, 6, 6, 6]);
            let on_step = |_| ControlFlow::Continue(());
            generate(&mut executor, prompt, options(0, &[], with_loss), on_step).unwrap().prompt_loss_mean
        };
        let (likely, unlikely) = ((64.0 / 33.0f64).ln(), 64f64.ln());
        for (prompt, sum) in [
            (&[9, 1][..], likely),
            (&[1, 9], unlikely),
            (&[9, 1, 2], 2.0 * likely),
            (&[9, 1, 9], likely + unlikely),
            (&[9, 9, 2, 9], likely + 2.0 * unlikely),
        ] {
            let found = loss_of(prompt, true).unwrap();
            assert!((found - sum / (prompt.len() - 1) as f64).abs() < 1e-6, "{prompt:?}: {found}");
            assert_eq!(loss_of(prompt, false), None);
        }
        assert_eq!(loss_of(&[9], true), None);
    }

    #[test]
    fn loss_of_a_uniform_choice_is_the_logarithm_of_its_size() {
        assert!((loss(&[3.0; 8], 5) - 8f64.ln()).abs() < 1e-12);
        assert!(loss(&[0.0, 100.0], 1) < 1e-12);
        assert!((loss(&[0.0, 100.0], 0) - 100.0).abs() < 1e-9);
    }
}
