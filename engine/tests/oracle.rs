//! The oracle against a transformer in f64, written from the papers' formulas, and what it says of a sequence.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;
mod textbook;

use made::Made;
use std::ops::ControlFlow;
use textbook::{TOKENS, Textbook, gemma3, largest, llama, qwen2, qwen3};
use zrt_engine::activations::Activations;
use zrt_engine::executor::{Cache, Executor, StepSnapshot};
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::{LogitBias, Sampling, SamplingOptions};
use zrt_engine::weights::{WeightClass, WeightId};

/// Positions of the sequences below.
const CONTEXT: u32 = 10;

fn oracle(made: &Made, format: KvFormat, activations: Activations) -> Oracle {
    Oracle::new_with(&made.load().unwrap(), CONTEXT, format, activations).unwrap()
}

/// An oracle of a small llama.
fn small() -> Oracle {
    oracle(&llama(TensorKind::F32).made, KvFormat::F32, Activations::F32)
}

fn logits(oracle: &mut Oracle) -> Vec<f32> {
    let mut logits = vec![f32::NAN; oracle.plan().config.vocabulary as usize];
    oracle.read_logits(&mut logits).unwrap();
    logits
}

/// The choices of so many steps.
fn steps(oracle: &mut Oracle, count: u32) -> Vec<u32> {
    (0..count).map(|_| oracle.step().unwrap()).collect()
}

/// The greatest difference of a logit, as a share of the greatest logit.
fn error(textbook: &Textbook, format: KvFormat, activations: Activations) -> f64 {
    let expected = textbook.logits(&TOKENS);
    let mut oracle = oracle(&textbook.made, format, activations);
    oracle.begin(&TOKENS).unwrap();
    let (mut greatest, mut difference) = (0f64, 0f64);
    for expected in &expected {
        let choice = oracle.step().unwrap();
        let found = logits(&mut oracle);
        assert_eq!(choice as usize, largest(&found));
        for (found, expected) in found.iter().zip(expected) {
            greatest = greatest.max(expected.abs());
            difference = difference.max((f64::from(*found) - expected).abs());
        }
    }
    difference / greatest
}

/// Of two layers, the second of which sees what the first has kept of each position.
#[test]
fn every_architecture_computes_what_the_textbook_says() {
    for textbook in
        [llama(TensorKind::F32), qwen2(), qwen3(), gemma3(TensorKind::F32), llama(TensorKind::Q8_0)]
    {
        for activations in [Activations::F32, Activations::F16] {
            let error = error(&textbook, KvFormat::F32, activations);
            assert!(error < 1e-5, "{}: {error}", textbook.name);
        }
    }
}

/// Each is off by what it rounds, and by no more: the error of an activation or of an element of the cache is up to
/// 1/254 or 2^-11 of the greatest of its block. A mode that rounds nothing would be off by less.
#[test]
fn integers_and_formats_of_the_cache_round_as_much_as_they_say() {
    let textbook = llama(TensorKind::Q8_0);
    for (format, activations, low, high) in [
        (KvFormat::F32, Activations::A8, 1e-3, 3e-2),
        (KvFormat::F32, Activations::A16, 1e-6, 3e-4),
        (KvFormat::F16, Activations::F32, 1e-5, 1e-3),
        (KvFormat::Q8_0, Activations::F32, 1e-4, 1e-2),
    ] {
        let error = error(&textbook, format, activations);
        assert!((low..high).contains(&error), "{format:?}, {activations:?}: {error}");
    }
}

#[test]
fn a_prompt_has_a_token_at_least_fits_the_context_and_is_of_the_vocabulary() {
    let mut oracle = small();
    let mut said = |prompt: &[u32]| oracle.begin(prompt).err().map(|error| error.to_string());
    assert_eq!(said(&[]).unwrap(), "the prompt is empty; give at least one token");
    assert_eq!(said(&[0]), None);
    assert_eq!(said(&[15; CONTEXT as usize]), None);
    let long =
        "a sequence of 11 tokens does not fit the context of 10; ask for a larger context or less text";
    assert_eq!(said(&[15; CONTEXT as usize + 1]).unwrap(), long);
    assert_eq!(said(&[0, 16, 1]).unwrap(), "token 16 is outside the vocabulary of 16");
    assert_eq!(said(&[u32::MAX]).unwrap(), "token 4294967295 is outside the vocabulary of 16");
}

/// Choices follow the prompt as tokens, each at the position after the one of its step; the prompt stays.
#[test]
fn a_sequence_goes_on_with_its_choices_until_the_context_is_full() {
    let (mut oracle, prompt) = (small(), [3, 1, 4, 1]);
    // Choices of a longer sequence are there before, and count no more.
    oracle.begin(&TOKENS).unwrap();
    steps(&mut oracle, CONTEXT);
    oracle.begin(&prompt).unwrap();
    assert_eq!(oracle.read_state().unwrap(), StepSnapshot::default());
    let mut choices = Vec::new();
    for step in 1..=CONTEXT {
        let choice = oracle.step().unwrap();
        assert_eq!(choice as usize, largest(&logits(&mut oracle)));
        let state = StepSnapshot { position: step, last_token: choice, step_count: step };
        assert_eq!(oracle.read_state().unwrap(), state);
        choices.push(choice);
    }
    let tokens: Vec<u32> = (0..CONTEXT).map(|position| oracle.read_token(position).unwrap()).collect();
    assert_eq!(tokens, [&prompt[..], &choices[3..9]].concat());
    let full =
        "a sequence of 11 tokens does not fit the context of 10; ask for a larger context or less text";
    assert_eq!(oracle.step().unwrap_err().to_string(), full);
    assert_eq!(oracle.step_instruction(0).unwrap_err().to_string(), full);
}

/// Rows of the cache lie apart: each is what its own step has stored, and keys are no values.
#[test]
fn caches_keep_the_row_of_each_layer_and_position() {
    let mut oracle = small();
    // Different tokens: values of the first layer know no position.
    oracle.begin(&[3, 14, 1, 5, 9, 2, 6, 8, 7, 0]).unwrap();
    let mut rows = Vec::new();
    for position in 0..CONTEXT {
        oracle.step().unwrap();
        for (layer, cache) in [(0, Cache::Key), (0, Cache::Value), (1, Cache::Key), (1, Cache::Value)] {
            let row = oracle.read_cache_row(cache, layer, position).unwrap();
            assert_eq!(row.len(), 128);
            rows.push(((layer, cache, position), row));
        }
    }
    for (number, ((layer, cache, position), row)) in rows.iter().enumerate() {
        assert_eq!(oracle.read_cache_row(*cache, *layer, *position).unwrap(), *row);
        assert!(rows[..number].iter().all(|(_, earlier)| earlier != row), "{cache:?} {layer} {position}");
    }
}

#[test]
fn a_weight_can_be_changed_and_its_change_is_seen() {
    let mut oracle = small();
    let id = |class, layer| WeightId::new(class, layer);
    let lengths = [(WeightClass::OutputNorm, 0), (WeightClass::Key, 1), (WeightClass::QueryBias, 0)]
        .map(|(class, layer)| oracle.weight_mut(id(class, layer)).map(|weight| weight.len()));
    assert_eq!(lengths, [Some(256), Some(256 * 128), None]);
    oracle.weight_mut(id(WeightClass::OutputNorm, 0)).unwrap().fill(0.0);
    oracle.begin(&[3]).unwrap();
    assert_eq!(oracle.step().unwrap(), 0);
    assert_eq!(logits(&mut oracle), [0.0; 16]);
}

/// Adds to the logit of a token, so that it is chosen against what the model says.
fn biased(token: u32) -> Sampling {
    let logit_bias = LogitBias::new(&[(token, 1000.0)]).unwrap();
    SamplingOptions { logit_bias, ..SamplingOptions::default() }.validate().unwrap()
}

/// Greedily the tokens are those of single steps; a limit, a stop token or the end of the context ends them.
#[test]
fn a_completion_ends_at_its_limit_after_a_stop_token_or_with_the_context() {
    let (mut oracle, prompt, greedy) = (small(), [3, 1, 4, 1], Sampling::default());
    oracle.begin(&prompt).unwrap();
    let choices = steps(&mut oracle, CONTEXT)[3..].to_vec();
    let mut complete =
        |most, sampling: &Sampling, stops: &[u32]| oracle.complete(&prompt, most, sampling, stops).unwrap();
    for most in 0..10u32 {
        assert_eq!(complete(most, &greedy, &[]), choices[..most.min(6) as usize], "at most {most}");
    }
    // After the first of its kind.
    for stop in 0..16 {
        let kept = choices[..6].iter().position(|choice| *choice == stop).map_or(6, |at| at + 1);
        assert_eq!(complete(10, &greedy, &[99, stop]), choices[..kept], "stop {stop}");
    }
    assert_eq!(complete(10, &biased(7), &[8]), [7; 6]);
    assert_eq!(complete(10, &biased(7), &[7]), [7]);
}

/// What was chosen is what the next step reads: the logits after it are those of a prompt with the same tokens.
#[test]
fn a_completion_goes_on_with_the_tokens_that_it_chose() {
    let mut oracle = small();
    assert_eq!(oracle.complete(&[3, 1], 4, &biased(7), &[]).unwrap(), [7; 4]);
    let found = logits(&mut oracle);
    assert_eq!(oracle.read_state().unwrap().step_count, 5, "the last token is not computed with");
    oracle.begin(&[3, 1, 7, 7, 7]).unwrap();
    steps(&mut oracle, 5);
    assert_eq!(found, logits(&mut oracle));
}

/// Nothing after each token of the prompt, then each token, with log-probabilities where they are asked for; the
/// listener may end it at each of them.
#[test]
fn a_completion_is_told_step_by_step_and_can_be_broken_off() {
    let mut oracle = small();
    let tops =
        SamplingOptions { log_probabilities: Some(2), ..SamplingOptions::default() }.validate().unwrap();
    for (sampling, has_tops) in [(Sampling::default(), false), (tops, true)] {
        for last in 1..=5usize {
            let mut told = Vec::new();
            let was_broken_off = oracle.complete_with(&[3, 1], 3, &sampling, &[], |step| {
                told.push(step);
                if told.len() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert!(was_broken_off.unwrap(), "at {last}");
            assert_eq!(told.len(), last);
            for (number, step) in told.iter().enumerate() {
                let Some((token, values)) = step else {
                    assert!(number < 2, "a token of the prompt");
                    continue;
                };
                assert!(number >= 2 && values.is_some() == has_tops);
                if let Some(values) = values {
                    // Greedily the chosen one is the most likely.
                    assert_eq!((values.chosen().token, values.top().len()), (*token, 2));
                    assert_eq!(values.chosen(), values.top()[0]);
                }
            }
        }
        let was_broken_off =
            oracle.complete_with(&[3, 1], 3, &sampling, &[], |_| ControlFlow::Continue(())).unwrap();
        assert!(!was_broken_off);
    }
}

#[test]
fn a_bias_is_of_a_token_of_the_vocabulary() {
    let mut oracle = small();
    assert_eq!(oracle.complete(&[3], 1, &biased(15), &[]).unwrap(), [15]);
    let error = oracle.complete(&[3], 1, &biased(16), &[]).unwrap_err();
    assert!(matches!(error, ExecutorError::Token { token: 16, vocabulary: 16 }), "{error}");
}
