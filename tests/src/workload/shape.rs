//! The requests of a workload: drawn from a seed, answered by the oracle.
//!
//! Contract: options lie in what a session accepts, and every option is met with other values than its default's.

use std::ops::RangeInclusive;
use zrt_engine::executor::Executor;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_needs::Random;

/// A request, and what it must produce.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Known tokens.
    pub prompt: Vec<u32>,
    /// Tokens to generate.
    pub tokens_max: u32,
    /// How they are drawn.
    pub sampling: SamplingOptions,
    /// The tokens that end it early.
    pub stops: Vec<u32>,
    /// The oracle's answer.
    pub expected: Vec<u32>,
}

/// Draws a shape: half are sampled, a third have stop tokens of which most are met. Short prompts are more frequent.
pub fn shape(
    random: &mut Random,
    oracle: &mut Oracle,
    prompt_max: u32,
    tokens: RangeInclusive<u32>,
) -> Shape {
    let vocabulary = oracle.plan().config.vocabulary;
    let longest = random.range(1, prompt_max);
    let prompt_length = random.range(1, longest);
    let prompt: Vec<u32> = (0..prompt_length).map(|_| known_token(random, vocabulary)).collect();
    let tokens_max = random.range(*tokens.start(), *tokens.end());
    let sampling = sampling(random, vocabulary);
    let checked = sampling.validate().expect("options are in range");
    let mut complete = |stops: &[u32]| {
        oracle.complete(&prompt, tokens_max, &checked, stops).expect("the oracle runs a request")
    };
    let mut expected = complete(&[]);
    let mut stops = Vec::new();
    if random.one_in(3) {
        stops = vec![
            expected[random.range(0, expected.len() as u32 - 1) as usize],
            known_token(random, vocabulary),
        ];
        expected = complete(&stops);
    }
    Shape { prompt, tokens_max, sampling, stops, expected }
}

/// Any token but 0.
fn known_token(random: &mut Random, vocabulary: u32) -> u32 {
    random.range(1, vocabulary - 1)
}

/// Greedy in one of two cases, else drawn.
fn sampling(random: &mut Random, vocabulary: u32) -> SamplingOptions {
    if random.one_in(2) {
        return SamplingOptions::default();
    }
    SamplingOptions {
        temperature: random.range(5, 15) as f32 / 10.0,
        top_k: random.range(0, 50),
        top_p: random.range(5, 10) as f32 / 10.0,
        repetition_penalty: random.range(8, 14) as f32 / 10.0,
        penalty_window: random.range(0, 32),
        seed: random.bits(),
        ..extras(random, vocabulary)
    }
}

/// What few requests ask for: nothing in two of three cases, else a bit of everything.
fn extras(random: &mut Random, vocabulary: u32) -> SamplingOptions {
    let none = SamplingOptions::default();
    if !random.one_in(3) {
        return none;
    }
    let bias = [(random.range(0, vocabulary - 1), random.range(0, 80) as f32 / 10.0 - 4.0)];
    SamplingOptions {
        min_p: random.range(0, 2) as f32 / 20.0,
        typical_p: random.range(7, 10) as f32 / 10.0,
        presence_penalty: random.range(0, 4) as f32 / 4.0,
        frequency_penalty: random.range(0, 4) as f32 / 4.0,
        logit_bias: LogitBias::new(&bias).expect("in range"),
        log_probabilities: random.one_in(2).then_some(random.range(0, 20)),
        ..none
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load, repository_model};
    use std::collections::BTreeSet;

    /// Least and largest of what was drawn, in hundredths.
    fn span(values: impl Iterator<Item = f32>) -> (i32, i32) {
        let hundredths: Vec<i32> = values.map(|value| (value * 100.0).round() as i32).collect();
        (*hundredths.iter().min().expect("drawn"), *hundredths.iter().max().expect("drawn"))
    }

    #[test]
    fn every_option_is_met_over_all_of_its_range() {
        let mut random = Random::new(1);
        let all: Vec<SamplingOptions> = (0..6000).map(|_| sampling(&mut random, 10)).collect();
        let (greedy, drawn): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| *one == SamplingOptions::default());
        assert!(greedy.len().abs_diff(drawn.len()) < 400, "{} greedy", greedy.len());
        let of = |field: fn(&SamplingOptions) -> f32| span(drawn.iter().map(field));
        assert_eq!(of(|one| one.temperature), (50, 150));
        assert_eq!(of(|one| one.top_k as f32), (0, 5000));
        assert_eq!(of(|one| one.top_p), (50, 100));
        assert_eq!(of(|one| one.repetition_penalty), (80, 140));
        assert_eq!(of(|one| one.penalty_window as f32), (0, 3200));
        assert_eq!(of(|one| one.min_p), (0, 10));
        assert_eq!(of(|one| one.typical_p), (70, 100));
        assert_eq!(of(|one| one.presence_penalty), (0, 100));
        assert_eq!(of(|one| one.frequency_penalty), (0, 100));
        assert_eq!(drawn.iter().map(|one| one.seed).collect::<BTreeSet<_>>().len(), drawn.len());
        let biases: Vec<(u32, f32)> =
            drawn.iter().flat_map(|one| one.logit_bias.entries()).copied().collect();
        assert!(biases.len().abs_diff(drawn.len() / 3) < 150, "{} with a bias", biases.len());
        assert_eq!(span(biases.iter().map(|(_, value)| *value)), (-400, 400));
        assert_eq!(span(biases.iter().map(|(token, _)| *token as f32)), (0, 900));
        let asked = drawn.iter().filter_map(|one| one.log_probabilities);
        assert_eq!(span(asked.map(|count| count as f32)), (0, 2000));
    }

    #[test]
    fn tokens_are_all_that_the_model_has_but_the_first() {
        let mut random = Random::new(1);
        let tokens: BTreeSet<u32> = (0..100).map(|_| known_token(&mut random, 4)).collect();
        assert_eq!(tokens, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn prompts_and_answers_have_every_length_and_stops_end_the_answer() {
        let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
        let mut oracle = Oracle::new(&model, 16).expect("the oracle takes the model");
        let vocabulary = oracle.plan().config.vocabulary;
        let mut random = Random::new(2);
        let shapes: Vec<Shape> = (0..40).map(|_| shape(&mut random, &mut oracle, 3, 1..=3)).collect();
        let lengths = |of: fn(&Shape) -> usize| shapes.iter().map(of).collect::<BTreeSet<_>>();
        assert_eq!(lengths(|shape| shape.prompt.len()), BTreeSet::from([1, 2, 3]));
        assert_eq!(lengths(|shape| shape.tokens_max as usize), BTreeSet::from([1, 2, 3]));
        assert!(shapes.iter().flat_map(|shape| &shape.prompt).all(|token| (1..vocabulary).contains(token)));
        let with_stops: Vec<&Shape> = shapes.iter().filter(|shape| !shape.stops.is_empty()).collect();
        assert!((6..=20).contains(&with_stops.len()), "{} with stops", with_stops.len());
        for shape in with_stops {
            // One of its own tokens is a stop token, so the answer ends at one, and at the first.
            let stop = shape.expected.iter().position(|token| shape.stops.contains(token));
            assert_eq!(stop, Some(shape.expected.len() - 1), "{shape:?}");
        }
        assert!(
            shapes
                .iter()
                .filter(|shape| shape.stops.is_empty())
                .all(|shape| { shape.expected.len() == shape.tokens_max as usize })
        );
    }
}
