//! SAMPLE of `docs/arithmetic.md`: penalty, temperature, top-k, top-p and the draw, by actually sorting.
//!
//! Contract: a pure function of logits, known tokens and parameters; the same bits on every host. Written
//! from the page alone. Costs a sort of the vocabulary.

use super::arithmetic::exponential;
pub use crate::sampling::Sampling;

/// Rounds of Philox4x32-10.
const PHILOX_ROUNDS: u32 = 10;
/// Multipliers of its first and third counter word (Salmon et al. 2011, table 2).
const PHILOX_MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increments of its key from round to round.
const PHILOX_KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// 2^32: weights are whole numbers of 2^-40, made in two steps that are exact in f32.
const TWO_TO_32: f32 = 4_294_967_296.0;

/// A token that may be chosen.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    score: f32,
}

/// The token that follows `known_tokens`.
pub fn choose(logits: &[f32], known_tokens: &[u32], sampling: &Sampling) -> u32 {
    let penalised = penalise(logits, known_tokens, sampling);
    if sampling.inverse_temperature == 0.0 {
        return largest(&penalised);
    }
    let order = order(&penalised, sampling.inverse_temperature);
    let Some(first) = order.first().filter(|first| first.score > f32::NEG_INFINITY) else { return 0 };
    let kept = match sampling.top_k as usize {
        0 => order.as_slice(),
        count => &order[..count.min(order.len())],
    };
    let weights: Vec<u64> = kept.iter().map(|candidate| weight(candidate.score - first.score)).collect();
    let weights = nucleus(&weights, sampling.top_p);
    let random = philox([known_tokens.len() as u32, 0, 0, 0], key(sampling.seed));
    let random = u64::from(random[0]) | u64::from(random[1]) << 32;
    let sum: u64 = weights.iter().sum();
    let target = (u128::from(random) * u128::from(sum)) >> 64;
    kept[prefix(weights, target + 1) - 1].id
}

/// l' of every token.
fn penalise(logits: &[f32], known_tokens: &[u32], sampling: &Sampling) -> Vec<f32> {
    let mut penalised = logits.to_vec();
    let window = (sampling.penalty_window as usize).min(known_tokens.len());
    for token in &known_tokens[known_tokens.len() - window..] {
        // Computed from the original logit: the penalty applies once, however often the token occurs.
        if let Some(logit) = logits.get(*token as usize) {
            let factor = if *logit > 0.0 { sampling.inverse_penalty } else { sampling.penalty };
            penalised[*token as usize] = logit * factor;
        }
    }
    penalised
}

/// The first of the largest logits; 0 if none is above -inf.
fn largest(logits: &[f32]) -> u32 {
    let above =
        |best: (f32, u32), (logit, id): (&f32, u32)| if *logit > best.0 { (*logit, id) } else { best };
    logits.iter().zip(0..).fold((f32::NEG_INFINITY, 0), above).1
}

/// All tokens, by score descending; equal scores by id, as the sort is stable.
fn order(penalised: &[f32], inverse_temperature: f32) -> Vec<Candidate> {
    let score = |logit: &f32| match logit.is_nan() {
        true => f32::NEG_INFINITY,
        false => (logit * inverse_temperature).min(f32::MAX),
    };
    let mut order: Vec<Candidate> =
        penalised.iter().zip(0..).map(|(logit, id)| Candidate { id, score: score(logit) }).collect();
    // No score is NaN, so any two compare; -0 and +0 are equal here.
    order.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// floor(exp(difference) * 2^40).
fn weight(difference: f32) -> u64 {
    // e <= 1, so e * 2^8 has its integer part and its fraction exactly, and so has the fraction times 2^32.
    let high = exponential(difference) * 256.0;
    let low = (high - high.trunc()) * TWO_TO_32;
    u64::from(high as u32) << 32 | u64::from(low as u32)
}

/// Length of the shortest prefix of the weights that sums to `need` or more.
fn prefix(weights: &[u64], need: u128) -> usize {
    let mut sum = 0u128;
    let reaches = weights.iter().position(|weight| {
        sum += u128::from(*weight);
        sum >= need
    });
    reaches.map_or(weights.len(), |last| last + 1)
}

/// The weights that top-p keeps.
fn nucleus(weights: &[u64], top_p: u32) -> &[u64] {
    if top_p == 0 {
        return weights;
    }
    let total: u64 = weights.iter().sum();
    let need = (u128::from(total) * u128::from(top_p)).div_ceil(1 << 32);
    &weights[..prefix(weights, need)]
}

/// Philox's key of a seed.
fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

/// Philox4x32-10.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..PHILOX_ROUNDS {
        if round > 0 {
            for (word, step) in key.iter_mut().zip(PHILOX_KEY_STEPS) {
                *word = word.wrapping_add(step);
            }
        }
        let a = u64::from(counter[0]) * u64::from(PHILOX_MULTIPLIERS[0]);
        let b = u64::from(counter[2]) * u64::from(PHILOX_MULTIPLIERS[1]);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
    }
    counter
}

#[cfg(test)]
mod tests;
