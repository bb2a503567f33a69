//! The choice and the record of a case, by full sorts and 128-bit sums: written from `docs/arithmetic.md` alone.

use super::Case;
use crate::support::reference as cpu;
use zrt_protocol::{BIASES_MAX, Bias, Extras, TOPS_MAX, TopToken, TopTokens};

/// What few requests ask for.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    pub min_p: u32,
    pub typical_p: u32,
    pub presence: f32,
    pub frequency: f32,
    pub biases: Vec<(u32, f32)>,
    /// How many biases the host says there are, if that is not their number.
    pub said_biases: Option<u32>,
    pub tops: Option<u32>,
}

impl Extra {
    /// Whether logits are adjusted.
    pub fn adjusts(&self) -> bool {
        self.presence != 0.0 || self.frequency != 0.0 || !self.biases.is_empty()
    }

    /// The flags of the slot.
    pub fn flags(&self) -> u32 {
        let adjusts = self.adjusts();
        let filters = self.min_p != 0 || self.typical_p != 0;
        u32::from(adjusts) + 2 * u32::from(filters) + 4 * u32::from(self.tops.is_some())
    }

    /// What the host writes. Biases that do not count would ban the first token.
    pub fn written(&self) -> Extras {
        let mut bias = [Bias { token: 0, value: f32::NEG_INFINITY.to_bits() }; BIASES_MAX];
        for (place, (token, value)) in bias.iter_mut().zip(&self.biases) {
            *place = Bias { token: *token, value: value.to_bits() };
        }
        Extras {
            min_p: self.min_p,
            typical_p: self.typical_p,
            presence: self.presence.to_bits(),
            frequency: self.frequency.to_bits(),
            tops: self.tops.unwrap_or(17),
            biases: self.said_biases.unwrap_or(self.biases.len() as u32),
            reserved: [0; 2],
            bias,
        }
    }
}

/// Words 0 and 1 of Philox4x32-10 with the counter (known, 0, 0, 0).
fn random_number(known: u32, seed: u64) -> u64 {
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    let (mut x0, mut x1, mut x2, mut x3) = (known, 0u32, 0u32, 0u32);
    for _ in 0..10 {
        let a = 0xD251_1F53u64 * u64::from(x0);
        let b = 0xCD9E_8D57u64 * u64::from(x2);
        let high = |product: u64| (product >> 32) as u32;
        (x0, x1, x2, x3) = (high(b) ^ x1 ^ k0, b as u32, high(a) ^ x3 ^ k1, a as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    u64::from(x0) + (u64::from(x1) << 32)
}

/// The logits with biases and penalties.
fn adjusted(case: &Case) -> Vec<f32> {
    let known = case.tokens.len();
    let recent = &case.tokens[known - known.min(case.window as usize)..];
    let adjust = |(id, logit): (usize, &f32)| {
        let bias = case.extra.biases.iter().find(|(token, _)| *token as usize == id);
        let logit = bias.map_or(*logit, |(_, value)| logit + value);
        let count = recent.iter().filter(|token| **token as usize == id).count();
        if count == 0 {
            return logit;
        }
        let logit = if logit > 0.0 { logit * (1.0 / case.penalty) } else { logit * case.penalty };
        // Both factors have 24 bits: the product is exact in f64.
        let subtracted = f64::from(case.extra.frequency) * count as f64;
        logit - cpu::sum_rounded_once(subtracted, f64::from(case.extra.presence))
    };
    case.logits.iter().enumerate().map(adjust).collect()
}

/// (score, id) of all tokens, in order. Scores are f32 values, whatever type holds them.
fn order(logits: &[f32], inverse_temperature: f32) -> Vec<(f64, usize)> {
    let scores = logits.iter().map(|logit| match logit.is_nan() {
        true => f64::NEG_INFINITY,
        false => f64::from(logit * inverse_temperature).min(f64::from(f32::MAX)),
    });
    let mut order: Vec<(f64, usize)> = scores.zip(0..).collect();
    order.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("no NaN").then(a.1.cmp(&b.1)));
    order
}

/// The difference of two scores is one of f32.
fn weight(score: f64, largest: f64) -> u128 {
    units(cpu::exp(score as f32 - largest as f32))
}

/// Whole units of 2^-40.
fn units(value: f32) -> u128 {
    (f64::from(value) * 2f64.powi(40)).floor() as u128
}

/// How many of these weights reach a share, in units of 2^-32, of their sum.
fn reaching(weights: &[u128], share: u32) -> usize {
    let least = weights.iter().sum::<u128>() * u128::from(share);
    let mut sum = 0;
    let reaches = weights.iter().position(|weight| {
        sum += weight;
        sum << 32 >= least
    });
    reaches.expect("all of it is enough") + 1
}

/// What typical-p keeps of tokens in order, in that order.
fn typical(kept: Vec<(f64, usize)>, share: u32) -> Vec<(f64, usize)> {
    let largest = kept[0].0;
    let weights: Vec<u128> = kept.iter().map(|(score, _)| weight(*score, largest)).collect();
    let below = |score: f64| largest as f32 - score as f32;
    let moments = kept.iter().zip(&weights).map(|((score, _), weight)| match weight {
        0 => 0,
        _ => units(cpu::exp(-below(*score)) * below(*score)),
    });
    let mean = (moments.sum::<u128>() << 20) / weights.iter().sum::<u128>();
    let mean = (mean as f64 / f64::from(1 << 20)) as f32;
    let mut places: Vec<usize> = (0..kept.len()).collect();
    let distance = |place: usize| (mean - below(kept[place].0)).abs();
    places.sort_by(|a, b| {
        distance(*a).partial_cmp(&distance(*b)).expect("no NaN").then(kept[*a].1.cmp(&kept[*b].1))
    });
    let ordered: Vec<u128> = places.iter().map(|place| weights[*place]).collect();
    places.truncate(reaching(&ordered, share));
    places.sort();
    places.into_iter().map(|place| kept[place]).collect()
}

/// The choice.
pub fn expected(case: &Case) -> u32 {
    let logits = adjusted(case);
    if case.temperature == 0.0 {
        return cpu::argmax(&logits);
    }
    let mut kept = order(&logits, case.inverse_temperature());
    if kept[0].0 == f64::NEG_INFINITY {
        return 0;
    }
    if case.top_k > 0 {
        kept.truncate(case.top_k as usize);
    }
    if case.extra.typical_p > 0 {
        kept = typical(kept, case.extra.typical_p);
    }
    let largest = kept[0].0;
    let mut kept: Vec<(u128, usize)> =
        kept.into_iter().map(|(score, id)| (weight(score, largest), id)).collect();
    if case.top_p > 0 {
        let weights: Vec<u128> = kept.iter().map(|(weight, _)| *weight).collect();
        kept.truncate(reaching(&weights, case.top_p));
    }
    let least = u128::from(case.extra.min_p) << 40;
    let count = kept.iter().take_while(|(weight, _)| *weight << 32 >= least).count();
    kept.truncate(count);
    let sum: u128 = kept.iter().map(|(weight, _)| weight).sum();
    let mut target = (u128::from(random_number(case.tokens.len() as u32, case.seed)) * sum) >> 64;
    let chosen = kept.iter().find(|(weight, _)| match target < *weight {
        true => true,
        false => {
            target -= weight;
            false
        }
    });
    chosen.expect("the target is below the sum").1 as u32
}

/// The record that a case leaves, if it asks for one.
pub fn expected_tops(case: &Case, choice: u32, before: TopTokens) -> Option<TopTokens> {
    let asked = case.extra.tops?;
    let order = order(&case.logits, 1.0);
    let largest = order[0].0;
    let nothing = largest == f64::NEG_INFINITY;
    let below = |score: f64| if nothing { f32::NEG_INFINITY } else { score as f32 - largest as f32 };
    let count = if nothing { 0 } else { (asked as usize).min(TOPS_MAX).min(order.len()) };
    let sum = match nothing {
        true => 0,
        false => order.iter().map(|(score, _)| weight(*score, largest)).sum::<u128>() as u64,
    };
    let mut top = [TopToken::default(); TOPS_MAX];
    for (place, (score, id)) in top.iter_mut().zip(&order[..count]) {
        *place = TopToken { token: *id as u32, difference: below(*score).to_bits() };
    }
    let chosen = order.iter().find(|(_, id)| *id == choice as usize).expect("a token");
    Some(TopTokens {
        count: count as u32,
        difference: below(chosen.0).to_bits(),
        sum_low: sum as u32,
        sum_high: (sum >> 32) as u32,
        top,
        reserved: before.reserved,
    })
}
