//! SAMPLE of `docs/arithmetic.md`: biases and penalties, temperature, top-k, typical-p, top-p, min-p and the draw, by
//! actually sorting; and the record of the raw distribution.
//!
//! Contract: a pure function of logits, known tokens and parameters; the same bits on every host. Written
//! from the page alone. Costs a sort of the vocabulary.

use super::arithmetic::exponential;
pub use crate::sampling::Sampling;
use std::collections::{BTreeMap, BTreeSet};
use zrt_protocol::{TOPS_MAX, TopToken, TopTokens};

/// Rounds of Philox4x32-10.
const PHILOX_ROUNDS: u32 = 10;
/// Multipliers of its first and third counter word (Salmon et al. 2011, table 2).
const PHILOX_MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Increments of its key from round to round.
const PHILOX_KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// 2^32: weights are whole numbers of 2^-40, made in two steps that are exact in f32.
const TWO_TO_32: f32 = 4_294_967_296.0;
/// Bits of the fraction of typical-p's mean distance.
const CENTRE_FRACTION_BITS: u32 = 20;

/// A token that may be chosen.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    score: f32,
}

/// The token that follows `known_tokens`.
pub fn choose(logits: &[f32], known_tokens: &[u32], sampling: &Sampling) -> u32 {
    let adjusted = adjust(logits, known_tokens, sampling);
    if sampling.inverse_temperature == 0.0 {
        return largest(&adjusted);
    }
    let mut kept = order(&adjusted, sampling.inverse_temperature);
    if kept.first().is_none_or(|first| first.score == f32::NEG_INFINITY) {
        return 0;
    }
    if sampling.top_k > 0 {
        kept.truncate(sampling.top_k as usize);
    }
    if sampling.typical_p > 0 {
        keep_typical(&mut kept, sampling.typical_p);
    }
    let weights = weights(&kept);
    let weights = above_least(nucleus(&weights, sampling.top_p), sampling.min_p);
    let random = philox([known_tokens.len() as u32, 0, 0, 0], key(sampling.seed));
    kept[draw(weights, u64::from(random[0]) | u64::from(random[1]) << 32)].id
}

/// The place that a random number draws: of all numbers each place has the share of its weight.
fn draw(weights: &[u64], random: u64) -> usize {
    let sum: u64 = weights.iter().sum();
    let target = (u128::from(random) * u128::from(sum)) >> 64;
    prefix(weights, target + 1) - 1
}

/// The raw distribution: its `count` most likely tokens, and the choice's place below the first.
pub fn top_tokens(logits: &[f32], choice: u32, count: u32) -> TopTokens {
    let order = order(logits, 1.0);
    let greatest = order.first().map_or(f32::NEG_INFINITY, |first| first.score);
    // Nothing is above -inf: no weights, no list.
    let is_empty = greatest == f32::NEG_INFINITY;
    let count = if is_empty { 0 } else { (count as usize).min(TOPS_MAX).min(order.len()) };
    let sum: u64 = if is_empty { 0 } else { weights(&order).iter().sum() };
    let mut top = [TopToken::default(); TOPS_MAX];
    for (place, candidate) in top.iter_mut().zip(&order[..count]) {
        *place = TopToken { token: candidate.id, difference: (candidate.score - greatest).to_bits() };
    }
    let chosen = if is_empty { f32::NEG_INFINITY } else { score(&logits[choice as usize], 1.0) - greatest };
    TopTokens {
        count: count as u32,
        difference: chosen.to_bits(),
        sum_low: sum as u32,
        sum_high: (sum >> 32) as u32,
        top,
        reserved: [0; 4],
    }
}

/// l' of every token.
fn adjust(logits: &[f32], known_tokens: &[u32], sampling: &Sampling) -> Vec<f32> {
    let mut adjusted = logits.to_vec();
    for (token, value) in sampling.biases.entries() {
        if let Some(logit) = adjusted.get_mut(*token as usize) {
            *logit += value;
        }
    }
    let window = (sampling.penalty_window as usize).min(known_tokens.len());
    let mut counts = BTreeMap::<usize, u32>::new();
    for token in &known_tokens[known_tokens.len() - window..] {
        *counts.entry(*token as usize).or_default() += 1;
    }
    for (token, count) in counts {
        if let Some(logit) = adjusted.get_mut(token) {
            let factor = if *logit > 0.0 { sampling.inverse_penalty } else { sampling.penalty };
            *logit = *logit * factor - (count as f32).mul_add(sampling.frequency, sampling.presence);
        }
    }
    adjusted
}

/// The first of the largest logits; 0 if none is above -inf.
fn largest(logits: &[f32]) -> u32 {
    let above =
        |best: (f32, u32), (logit, id): (&f32, u32)| if *logit > best.0 { (*logit, id) } else { best };
    logits.iter().zip(0..).fold((f32::NEG_INFINITY, 0), above).1
}

/// All tokens, by score descending; equal scores by id, as the sort is stable.
fn order(logits: &[f32], inverse_temperature: f32) -> Vec<Candidate> {
    let candidate = |(logit, id)| Candidate { id, score: score(logit, inverse_temperature) };
    let mut order: Vec<Candidate> = logits.iter().zip(0..).map(candidate).collect();
    // No score is NaN, so any two compare; -0 and +0 are equal here.
    order.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// s of a logit.
fn score(logit: &f32, inverse_temperature: f32) -> f32 {
    if logit.is_nan() { f32::NEG_INFINITY } else { (logit * inverse_temperature).min(f32::MAX) }
}

/// Weights of candidates in order; at least one has a score above -inf.
fn weights(kept: &[Candidate]) -> Vec<u64> {
    kept.iter().map(|candidate| whole(exponential(candidate.score - kept[0].score))).collect()
}

/// floor(x * 2^40) of an x from 0 to 1.
fn whole(x: f32) -> u64 {
    // x * 2^8 has its integer part and its fraction exactly, and so has the fraction times 2^32.
    let high = x * 256.0;
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

/// Keeps the shortest prefix, by distance of the surprise from the entropy, that has the share; in the order it had.
fn keep_typical(kept: &mut Vec<Candidate>, typical_p: u32) {
    let greatest = kept[0].score;
    let weights = weights(kept);
    let total: u64 = weights.iter().sum();
    let mut moment = 0u64;
    for (candidate, _) in kept.iter().zip(&weights).filter(|(_, weight)| **weight > 0) {
        moment += whole(exponential(candidate.score - greatest) * (greatest - candidate.score));
    }
    // Below 16, so the quotient has 24 bits: exact in f32.
    let centre = (u128::from(moment) << CENTRE_FRACTION_BITS) / u128::from(total);
    let centre = centre as f32 / (1u32 << CENTRE_FRACTION_BITS) as f32;
    let distance = |candidate: &Candidate| (candidate.score - greatest + centre).abs();
    let mut typical: Vec<(f32, u32, u64)> =
        kept.iter().zip(weights).map(|(one, weight)| (distance(one), one.id, weight)).collect();
    typical.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let ordered: Vec<u64> = typical.iter().map(|(_, _, weight)| *weight).collect();
    let count = nucleus(&ordered, typical_p).len();
    let chosen: BTreeSet<u32> = typical[..count].iter().map(|(_, id, _)| *id).collect();
    kept.retain(|candidate| chosen.contains(&candidate.id));
}

/// The weights before the first that is below the least share of 2^40, the first's.
fn above_least(weights: &[u64], min_p: u32) -> &[u64] {
    let least = u64::from(min_p) << 8;
    let count = weights.iter().position(|weight| *weight < least);
    &weights[..count.unwrap_or(weights.len())]
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
