//! What an arithmetic mode costs in quality: two runs over the same text, compared by their predictions.
//!
//! Contract: every token of the text but the first is predicted from those before it. Probabilities are of the whole
//! vocabulary, in f64 from the logits. Costs: a step and two passes over the vocabulary for each token.

use crate::executor::Executor;
use crate::executor_error::ExecutorError;

/// What a model expects at each place of a text: log-probabilities of the whole vocabulary.
pub struct Expectations {
    vocabulary: usize,
    log_probabilities: Vec<f32>,
}

/// One run over a text, compared with another run over the same text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Tokens that were predicted.
    pub tokens: usize,
    /// Mean negative log-probability of the actual token (nats).
    pub loss: f64,
    /// Mean Kullback-Leibler divergence from the other run to this one (nats).
    pub divergence: f64,
    /// The divergence that one token in a hundred exceeds.
    pub divergence_p99: f64,
    /// Share of the places where both runs find the same token the most likely.
    pub same_best: f64,
}

impl Expectations {
    /// Runs a text. Calls `on_token` for each token.
    pub fn of<E: Executor>(
        executor: &mut E,
        text: &[u32],
        mut on_token: impl FnMut(u64),
    ) -> Result<Expectations, ExecutorError> {
        let vocabulary = executor.plan().config.vocabulary as usize;
        let mut log_probabilities = Vec::with_capacity(vocabulary * text.len());
        let mut logits = vec![0f32; vocabulary];
        executor.begin(text)?;
        for token in 1..text.len() {
            executor.step()?;
            executor.read_logits(&mut logits)?;
            log_probabilities.extend(log_softmax(&logits));
            on_token(token as u64);
        }
        Ok(Expectations { vocabulary, log_probabilities })
    }

    /// Those of a run of old: log-probabilities of `vocabulary` tokens for each predicted token. `None` if they are not
    /// a whole number of places.
    pub fn from_log_probabilities(vocabulary: usize, log_probabilities: Vec<f32>) -> Option<Expectations> {
        let is_whole = vocabulary > 0 && log_probabilities.len().is_multiple_of(vocabulary);
        is_whole.then_some(Expectations { vocabulary, log_probabilities })
    }

    /// Tokens of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Log-probabilities of the whole vocabulary for each predicted token, one after the other.
    pub fn log_probabilities(&self) -> &[f32] {
        &self.log_probabilities
    }

    /// Compares this run over `text` with `reference`, a run over the same text.
    pub fn against(&self, reference: &Expectations, text: &[u32]) -> Quality {
        let places = || self.log_probabilities.chunks_exact(self.vocabulary);
        let pairs = || places().zip(reference.log_probabilities.chunks_exact(self.vocabulary));
        let tokens = places().len();
        let mean = |sum: f64| sum / tokens.max(1) as f64;
        let loss = |(place, token): (&[f32], &u32)| -f64::from(place[*token as usize]);
        let mut divergences: Vec<f64> = pairs().map(|(own, other)| divergence(other, own)).collect();
        divergences.sort_by(f64::total_cmp);
        let same = pairs().filter(|(own, other)| best(own) == best(other)).count();
        Quality {
            tokens,
            loss: mean(places().zip(&text[text.len().min(1)..]).map(loss).sum()),
            divergence: mean(divergences.iter().sum()),
            divergence_p99: divergences.get(tokens * 99 / 100).copied().unwrap_or_default(),
            same_best: mean(same as f64),
        }
    }
}

fn log_softmax(logits: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - largest).exp()).sum();
    let offset = f64::from(largest) + sum.ln();
    logits.iter().map(move |logit| (f64::from(*logit) - offset) as f32)
}

/// Sum of `p · (ln p - ln q)`, from log-probabilities. Rounding may bring the sum slightly below 0, and a sum of
/// nothing is -0, so it is clamped.
fn divergence(p: &[f32], q: &[f32]) -> f64 {
    let term = |(p, q): (&f32, &f32)| f64::from(*p).exp() * (f64::from(*p) - f64::from(*q));
    let sum: f64 = p.iter().zip(q).map(term).sum();
    // Not `max`, which would turn a NaN into a perfect 0.
    if sum <= 0.0 { 0.0 } else { sum }
}

/// Index of the largest; the first of equals.
fn best(place: &[f32]) -> usize {
    place.iter().enumerate().fold(0, |best, (index, value)| if *value > place[best] { index } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectations(places: &[[f32; 2]]) -> Expectations {
        let log_probabilities = places.iter().flat_map(|place| place.map(f32::ln)).collect();
        Expectations { vocabulary: 2, log_probabilities }
    }

    /// By hand: two places, probabilities of two tokens.
    #[test]
    fn loss_and_divergence_are_those_of_the_formulas() {
        let own = expectations(&[[0.5, 0.5], [0.25, 0.75]]);
        let other = expectations(&[[0.75, 0.25], [0.25, 0.75]]);
        let quality = own.against(&other, &[1, 0, 1]);
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        close(quality.loss, (2f64.ln() + (4f64 / 3.0).ln()) / 2.0);
        let first = 0.75 * 1.5f64.ln() + 0.25 * 0.5f64.ln();
        close(quality.divergence, first / 2.0);
        close(quality.divergence_p99, first);
        // 0.5 and 0.5: the first of them is the best, as in the other run.
        assert_eq!((quality.tokens, quality.same_best), (2, 1.0));
        let itself = own.against(&own, &[1, 0, 1]);
        assert_eq!((itself.divergence, itself.divergence_p99, itself.same_best), (0.0, 0.0, 1.0));
    }

    /// What is no number is none in the result either; it would pass for a perfect 0.
    #[test]
    fn a_broken_run_has_no_divergence() {
        let (sound, broken) = (expectations(&[[0.5, 0.5]]), expectations(&[[f32::NAN, 0.5]]));
        assert!(broken.against(&sound, &[0, 1]).divergence.is_nan());
    }

    #[test]
    fn probabilities_add_up_to_one_whatever_the_size_of_the_logits() {
        for logits in [[1.0f32, 2.0, 3.0], [1000.0, 1001.0, 999.0], [-1e30, 0.0, -1e30]] {
            assert_eq!(log_softmax(&logits).count(), 3);
            let sum: f64 = log_softmax(&logits).map(|one| f64::from(one).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{logits:?}: {sum}");
        }
    }

    /// Of 200 places all but two are alike; 198 of 200 are not above the second largest divergence.
    #[test]
    fn one_place_in_a_hundred_may_diverge_more_than_the_99th_percentile() {
        let other = expectations(&[[0.5, 0.5]; 200]);
        let mut places = [[0.5, 0.5]; 200];
        (places[20], places[70]) = ([0.9, 0.1], [0.25, 0.75]);
        let quality = expectations(&places).against(&other, &[0; 201]);
        let expected = 0.5 * 2f64.ln() + 0.5 * (2.0 / 3.0f64).ln();
        assert!((quality.divergence_p99 - expected).abs() < 1e-6, "{quality:?}");
        // Of 0.5 and 0.5 the first counts as the best, and at one place this run prefers the second.
        assert_eq!(quality.same_best, 0.995);
    }

    #[test]
    fn a_run_of_old_has_whole_places() {
        let of = |vocabulary, count| Expectations::from_log_probabilities(vocabulary, vec![0.0; count]);
        assert!(of(0, 0).is_none() && of(0, 1).is_none() && of(2, 3).is_none());
        let two = of(2, 4).unwrap();
        assert_eq!((two.vocabulary(), two.log_probabilities()), (2, &[0.0; 4][..]));
        assert!(of(2, 0).is_some());
    }

    #[test]
    fn rounding_below_zero_is_no_divergence_and_the_best_is_the_first_of_the_largest() {
        for (p, q) in [(&[-1.0][..], &[-0.5][..]), (&[-1000.0], &[-1.0]), (&[], &[])] {
            assert_eq!(divergence(p, q).to_bits(), 0, "{p:?} {q:?}");
        }
        assert_eq!(best(&[-3.0, -1.0, -0.5, -0.5]), 2);
        assert_eq!(best(&[-0.5, -1.0, -0.5]), 0);
    }

    #[test]
    fn a_text_of_one_token_predicts_nothing() {
        let nothing = expectations(&[]);
        assert_eq!(nothing.against(&nothing, &[7]), Quality::default());
        assert_eq!(nothing.against(&nothing, &[]), Quality::default());
    }
}
