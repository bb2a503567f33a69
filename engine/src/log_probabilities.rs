//! Log-probabilities of a token and of the most likely ones, from what SAMPLE records.
//!
//! Contract: of the raw distribution, before biases, penalties, temperature and filters (`docs/arithmetic.md`, SAMPLE).
//! What SAMPLE records is defined to the bit; the logarithm of its sum is the host's, in f64, and each result is
//! rounded to f32 once. Plain values; nothing allocates.

use zrt_protocol::{TOPS_MAX, TopTokens};

/// The weight of the most likely token; weights are whole numbers.
const WEIGHT_MAX: u64 = 1 << 40;

/// A token with its log-probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LogProbability {
    /// The token.
    pub token: u32,
    /// Natural logarithm of its probability: 0 or less.
    pub value: f32,
}

/// The log-probabilities of a token and of the tokens that were most likely instead of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogProbabilities {
    chosen: LogProbability,
    count: usize,
    top: [LogProbability; TOPS_MAX],
}

impl LogProbabilities {
    /// Those of a token and what was recorded with it; `None` if no SAMPLE records such a sum or such differences.
    pub fn new(token: u32, tops: &TopTokens) -> Option<LogProbabilities> {
        let sum = u64::from(tops.sum_low) | u64::from(tops.sum_high) << 32;
        let count = tops.count as usize;
        // The most likely token is part of the sum, and no token is more likely.
        let is_more_likely = |difference: u32| f32::from_bits(difference) > 0.0;
        let mut differences = tops.top.iter().take(count).map(|one| one.difference).chain([tops.difference]);
        let is_sum = if sum == 0 { count == 0 } else { sum >= WEIGHT_MAX };
        if count > TOPS_MAX || !is_sum || differences.any(is_more_likely) {
            return None;
        }
        let log_sum = (sum as f64 / WEIGHT_MAX as f64).ln();
        let log_probability = |token: u32, difference: u32| {
            let difference = f32::from_bits(difference);
            // Nothing is likely where no logit is above -inf.
            let value = if sum == 0 { f32::NEG_INFINITY } else { (f64::from(difference) - log_sum) as f32 };
            LogProbability { token, value }
        };
        let mut top = [LogProbability::default(); TOPS_MAX];
        for (place, one) in top.iter_mut().zip(&tops.top[..count]) {
            *place = log_probability(one.token, one.difference);
        }
        Some(LogProbabilities { chosen: log_probability(token, tops.difference), count, top })
    }

    /// The token that was chosen.
    pub fn chosen(&self) -> LogProbability {
        self.chosen
    }

    /// The most likely tokens, in order; equally likely ones by id.
    pub fn top(&self) -> &[LogProbability] {
        &self.top[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_protocol::TopToken;

    /// Weights of 1, 1/2 and 1/4 of the greatest: probabilities of 4, 2 and 1 of 7.
    #[test]
    fn probabilities_are_shares_of_the_sum() {
        let sum = (7u64 << 40) / 4;
        let half = -std::f32::consts::LN_2;
        let mut top = [TopToken { token: 99, difference: 99 }; TOPS_MAX];
        top[0] = TopToken { token: 5, difference: 0 };
        top[1] = TopToken { token: 3, difference: half.to_bits() };
        let tops = TopTokens {
            count: 2,
            difference: (2.0 * half).to_bits(),
            sum_low: sum as u32,
            sum_high: (sum >> 32) as u32,
            top,
            reserved: [0; 4],
        };
        let found = LogProbabilities::new(8, &tops).unwrap();
        assert_eq!(found.chosen().token, 8);
        assert_eq!(found.top().iter().map(|one| one.token).collect::<Vec<_>>(), [5, 3]);
        // ln(1/7), ln(4/7), ln(2/7).
        for (value, expected) in [
            (found.chosen().value, -1.945_910_1_f32),
            (found.top()[0].value, -0.559_615_8),
            (found.top()[1].value, -1.252_763),
        ] {
            assert!((value - expected).abs() < 2e-7, "{value} {expected}");
        }
    }

    #[test]
    fn what_no_kernel_records_is_none() {
        let nothing = TopTokens { difference: f32::NEG_INFINITY.to_bits(), ..TopTokens::default() };
        let found = LogProbabilities::new(0, &nothing).unwrap();
        assert_eq!((found.chosen().value, found.top().len()), (f32::NEG_INFINITY, 0));
        let too_many = TopTokens { count: TOPS_MAX as u32 + 1, sum_high: 256, ..TopTokens::default() };
        assert_eq!(LogProbabilities::new(0, &too_many), None);
        assert_eq!(LogProbabilities::new(0, &TopTokens { count: 1, ..nothing }), None);
        let certain = TopTokens { sum_high: 256, ..TopTokens::default() };
        assert_eq!(LogProbabilities::new(0, &certain).unwrap().chosen().value, 0.0);
        for wrong in [
            TopTokens { sum_high: 255, sum_low: u32::MAX, ..certain },
            TopTokens { difference: f32::MIN_POSITIVE.to_bits(), ..certain },
        ] {
            assert_eq!(LogProbabilities::new(0, &wrong), None);
        }
    }

    /// ln(1 + x) by its series, for a token that is all but certain: the logarithms of the sum and of 2^40, taken
    /// apart, would lose its last digits.
    #[test]
    fn the_logarithm_is_of_the_share() {
        let sum = (1u64 << 40) + 105_706;
        let tops = TopTokens { sum_low: sum as u32, sum_high: (sum >> 32) as u32, ..TopTokens::default() };
        let x = 105_706.0 / (1u64 << 40) as f64;
        let series = x - x * x / 2.0 + x * x * x / 3.0;
        assert_eq!(LogProbabilities::new(0, &tops).unwrap().chosen().value, -series as f32);
    }
}
