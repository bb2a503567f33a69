//! Mean and spread of timing samples, as llama-bench computes them.
//!
//! Contract: pure; empty input gives zeros, one sample a spread of zero.

/// Arithmetic mean.
pub fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// Standard deviation of a sample (divisor n - 1).
pub fn standard_deviation(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    let centre = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - centre).powi(2)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        assert_eq!(mean(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 5.0);
        // The squared deviations of that list sum to 32; 32 / 7.
        let deviation = standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((deviation - 2.138_089_935_299_395).abs() < 1e-12);
        assert_eq!((mean(&[]), standard_deviation(&[7.0])), (0.0, 0.0));
    }
}
