//! How the next token is chosen: a user's options, checked and turned into the fields that SAMPLE reads.
//!
//! Contract: [`SamplingOptions::validate`] is the only way to make a [`Sampling`] from numbers, and nothing else sets
//! its fields, so what reaches a slot is in range. The conversion is exactly as documented at each field, and the same
//! on every host. SAMPLE in `docs/arithmetic.md` defines what the fields do.

use thiserror::Error;
use zrt_protocol::Draws;

/// Minimum temperature above 0: at a thousandth the second logit has to be within 0.03 of the first to be drawn at all.
pub const TEMPERATURE_MIN: f32 = 0.001;
/// Maximum temperature: logits that differ by 10 get weights that differ by 1%.
pub const TEMPERATURE_MAX: f32 = 1000.0;
/// Minimum repetition penalty.
pub const PENALTY_MIN: f32 = 0.01;
/// Maximum repetition penalty.
pub const PENALTY_MAX: f32 = 100.0;
/// Units of `top_p` in 1.
const TOP_P_UNITS: f64 = 4_294_967_296.0;

/// Options as the user gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingOptions {
    /// 0 always chooses the most likely token; otherwise [`TEMPERATURE_MIN`]..=[`TEMPERATURE_MAX`].
    pub temperature: f32,
    /// Only this many of the most likely tokens may be drawn; 0: all.
    pub top_k: u32,
    /// Share of the probability that is kept, above 0 and at most 1 (all).
    pub top_p: f32,
    /// [`PENALTY_MIN`]..=[`PENALTY_MAX`]; 1: none. Above 1, recent tokens become less likely.
    pub repetition_penalty: f32,
    /// How many of the last tokens, prompt included, are penalised.
    pub penalty_window: u32,
    /// The same seed, prompt and options give the same tokens.
    pub seed: u64,
}

impl Default for SamplingOptions {
    /// Greedy.
    fn default() -> SamplingOptions {
        SamplingOptions {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            repetition_penalty: 1.0,
            penalty_window: 0,
            seed: 0,
        }
    }
}

/// An option that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[allow(missing_docs)]
pub enum SamplingError {
    #[error("temperature {0} is neither 0 nor from {TEMPERATURE_MIN} to {TEMPERATURE_MAX}")]
    Temperature(f32),
    #[error("top-p {0} is not above 0 and at most 1")]
    TopP(f32),
    #[error("repetition penalty {0} is not from {PENALTY_MIN} to {PENALTY_MAX}")]
    Penalty(f32),
}

/// The parameters of SAMPLE, as a slot holds them: always in range. [`SamplingOptions::validate`] makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 1/temperature, rounded once; 0: greedy.
    pub(crate) inverse_temperature: f32,
    /// Maximum number of tokens kept; 0: all.
    pub(crate) top_k: u32,
    /// Share kept in units of 2^-32; 0: all.
    pub(crate) top_p: u32,
    /// Factor of penalised logits that are not positive.
    pub(crate) penalty: f32,
    /// Factor of penalised logits that are positive: 1/penalty, rounded once.
    pub(crate) inverse_penalty: f32,
    /// Last known tokens that are penalised.
    pub(crate) penalty_window: u32,
    /// Key of the random numbers.
    pub(crate) seed: u64,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Sampling {
        Sampling {
            inverse_temperature: 0.0,
            top_k: 0,
            top_p: 0,
            penalty: 1.0,
            inverse_penalty: 1.0,
            penalty_window: 0,
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Checks the ranges (NaN is in none) and converts.
    pub fn validate(&self) -> Result<Sampling, SamplingError> {
        let SamplingOptions { temperature, top_k, top_p, repetition_penalty, penalty_window, seed } = *self;
        let inverse_temperature = match temperature {
            0.0 => 0.0,
            _ if (TEMPERATURE_MIN..=TEMPERATURE_MAX).contains(&temperature) => 1.0 / temperature,
            _ => return Err(SamplingError::Temperature(temperature)),
        };
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(SamplingError::TopP(top_p));
        }
        if !(PENALTY_MIN..=PENALTY_MAX).contains(&repetition_penalty) {
            return Err(SamplingError::Penalty(repetition_penalty));
        }
        Ok(Sampling {
            inverse_temperature,
            top_k,
            top_p: top_p_units(top_p),
            penalty: repetition_penalty,
            inverse_penalty: 1.0 / repetition_penalty,
            // A factor of 1 changes nothing, and without a window no token is looked up.
            penalty_window: if repetition_penalty == 1.0 { 0 } else { penalty_window },
            seed,
        })
    }
}

/// A share above 0 and up to 1 in units of 2^-32, rounded to the nearest, at least one; 1 becomes 0 (all).
fn top_p_units(top_p: f32) -> u32 {
    if top_p == 1.0 {
        return 0;
    }
    // The product is exact in f64. The largest f32 below 1 gives 2^32 - 256, so no share rounds up to 1.
    ((f64::from(top_p) * TOP_P_UNITS).round() as u32).max(1)
}

impl Sampling {
    /// The same parameters, in the form that a command and a slot hold.
    pub fn draws(&self) -> Draws {
        Draws {
            seed: self.seed,
            inverse_temperature: self.inverse_temperature.to_bits(),
            top_k: self.top_k,
            top_p: self.top_p,
            penalty: self.penalty.to_bits(),
            inverse_penalty: self.inverse_penalty.to_bits(),
            penalty_window: self.penalty_window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_greedy() {
        assert_eq!(SamplingOptions::default().validate(), Ok(Sampling::default()));
    }

    #[test]
    fn fields_are_converted_as_written() {
        let options = SamplingOptions {
            temperature: 0.75,
            top_k: 40,
            top_p: 0.5,
            repetition_penalty: 1.25,
            penalty_window: 64,
            seed: 0x0123_4567_89AB_CDEF,
        };
        let sampling = options.validate().unwrap();
        assert_eq!(sampling.inverse_temperature.to_bits(), 0x3FAA_AAAB, "4/3, rounded up");
        assert_eq!((sampling.top_k, sampling.top_p), (40, 0x8000_0000));
        assert_eq!((sampling.penalty, sampling.inverse_penalty), (1.25, 0.8));
        assert_eq!(sampling.penalty_window, 64);
        let draws = Draws {
            seed: 0x0123_4567_89AB_CDEF,
            inverse_temperature: 0x3FAA_AAAB,
            top_k: 40,
            top_p: 0x8000_0000,
            penalty: 1.25f32.to_bits(),
            inverse_penalty: 0.8f32.to_bits(),
            penalty_window: 64,
        };
        assert_eq!(sampling.draws(), draws);
        let free = SamplingOptions { repetition_penalty: 1.0, ..options }.validate().unwrap();
        assert_eq!(free.penalty_window, 0);
    }

    #[test]
    fn shares_in_units() {
        assert_eq!(top_p_units(1.0), 0);
        assert_eq!(top_p_units(0.25), 1 << 30);
        assert_eq!(top_p_units(f32::from_bits(0x3F7F_FFFF)), u32::MAX - 255);
        // 0.9f32 is 15099494 * 2^-24.
        assert_eq!(top_p_units(0.9), 15_099_494 * 256);
        assert_eq!(top_p_units(1e-30), 1);
        // 1.5 * 2^-32: away from zero.
        assert_eq!(top_p_units(1.5 / 4_294_967_296.0), 2);
    }

    #[test]
    fn ranges_are_kept() {
        let base = SamplingOptions::default();
        for temperature in [-1.0, 0.0009, 1000.1, f32::NAN, f32::INFINITY, -0.1, 1e-40] {
            let error = SamplingOptions { temperature, ..base }.validate().unwrap_err();
            assert!(matches!(error, SamplingError::Temperature(_)), "{temperature}");
        }
        for top_p in [0.0, -0.5, 1.0001, f32::NAN] {
            let error = SamplingOptions { top_p, ..base }.validate().unwrap_err();
            assert!(matches!(error, SamplingError::TopP(_)), "{top_p}");
        }
        for repetition_penalty in [0.0, 0.009, 101.0, f32::NAN, -1.0] {
            let error = SamplingOptions { repetition_penalty, ..base }.validate().unwrap_err();
            assert!(matches!(error, SamplingError::Penalty(_)), "{repetition_penalty}");
        }
        for temperature in [0.0, -0.0, TEMPERATURE_MIN, TEMPERATURE_MAX] {
            let sampling = SamplingOptions { temperature, ..base }.validate().unwrap();
            assert!(
                sampling.inverse_temperature.is_sign_positive() && sampling.inverse_temperature.is_finite()
            );
        }
        let text = SamplingError::TopP(1.5).to_string();
        assert_eq!(text, "top-p 1.5 is not above 0 and at most 1");
    }
}
