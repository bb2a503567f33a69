//! How the next token is chosen: a user's options, checked and turned into the fields that SAMPLE reads.
//!
//! Contract: [`SamplingOptions::validate`] is the only way to make a [`Sampling`] from numbers, and nothing else sets
//! its fields, so what reaches a slot is in range. The conversion is exactly as documented at each field, and the same
//! on every host. SAMPLE in `docs/arithmetic.md` defines what the fields do.

use thiserror::Error;
use zrt_protocol::{
    BIASES_MAX, Bias, COUNTED_TOKENS_MAX, Draws, EXTRAS_ADJUST, EXTRAS_FILTER, EXTRAS_TOPS, Extras, TOPS_MAX,
};

/// Minimum temperature above 0: at a thousandth the second logit has to be within 0.03 of the first to be drawn at all.
pub const TEMPERATURE_MIN: f32 = 0.001;
/// Maximum temperature: logits that differ by 10 get weights that differ by 1%.
pub const TEMPERATURE_MAX: f32 = 1000.0;
/// Minimum repetition penalty.
pub const PENALTY_MIN: f32 = 0.01;
/// Maximum repetition penalty.
pub const PENALTY_MAX: f32 = 100.0;
/// Greatest magnitude of presence and frequency penalties.
pub const SUBTRACTED_MAX: f32 = 100.0;
/// Units of a share in 1.
const SHARE_UNITS: f64 = 4_294_967_296.0;

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
    /// How many of the last tokens, prompt included, are penalised, by all three penalties; at most 2^24 - 1 count.
    pub penalty_window: u32,
    /// Share of the most likely token's probability that a token needs, from 0 (no limit) to 1.
    pub min_p: f32,
    /// Share of the probability that the most typical tokens have together, above 0 and at most 1 (all).
    pub typical_p: f32,
    /// Subtracted once from the logit of a recent token; at most [`SUBTRACTED_MAX`], above 0 or below; 0: none.
    pub presence_penalty: f32,
    /// Subtracted from the logit of a recent token for each time that it occurs, likewise.
    pub frequency_penalty: f32,
    /// Values that are added to the logits of some tokens.
    pub logit_bias: LogitBias,
    /// How many of the most likely tokens come with each token, with log-probabilities, at most [`TOPS_MAX`]; with 0
    /// only the token's own. `None`: nothing.
    pub log_probabilities: Option<u32>,
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
            min_p: 0.0,
            typical_p: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: LogitBias::default(),
            log_probabilities: None,
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
    #[error("min-p {0} is not from 0 to 1")]
    MinP(f32),
    #[error("typical-p {0} is not above 0 and at most 1")]
    TypicalP(f32),
    #[error("presence penalty {0} is not from -{SUBTRACTED_MAX} to {SUBTRACTED_MAX}")]
    Presence(f32),
    #[error("frequency penalty {0} is not from -{SUBTRACTED_MAX} to {SUBTRACTED_MAX}")]
    Frequency(f32),
    #[error("{0} logit biases are more than {BIASES_MAX}")]
    Biases(usize),
    #[error("the logit bias of token {token} is {value}, which is neither finite nor -inf")]
    Bias { token: u32, value: f32 },
    #[error("token {0} has two logit biases")]
    BiasTwice(u32),
    #[error("{0} log-probabilities are more than {TOPS_MAX}")]
    LogProbabilities(u32),
}

/// Values that are added to logits: at most [`BIASES_MAX`], of different tokens, each finite or -inf. A token with -inf
/// is not chosen as long as the logit of another one is above -inf; where none is, token 0 is chosen, whatever its
/// bias. Nothing else can be in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogitBias {
    count: usize,
    /// Entries from `count` on are 0.
    entries: [(u32, f32); BIASES_MAX],
}

impl Default for LogitBias {
    /// None.
    fn default() -> LogitBias {
        LogitBias { count: 0, entries: [(0, 0.0); BIASES_MAX] }
    }
}

impl LogitBias {
    /// The values of these tokens. Ids beyond the vocabulary are refused by the session.
    pub fn new(biases: &[(u32, f32)]) -> Result<LogitBias, SamplingError> {
        let count = biases.len();
        let mut entries = [(0, 0.0); BIASES_MAX];
        let places = entries.get_mut(..count).ok_or(SamplingError::Biases(count))?;
        for (number, (token, value)) in biases.iter().copied().enumerate() {
            if value.is_nan() || value == f32::INFINITY {
                return Err(SamplingError::Bias { token, value });
            }
            if biases[..number].iter().any(|(earlier, _)| *earlier == token) {
                return Err(SamplingError::BiasTwice(token));
            }
            places[number] = (token, value);
        }
        Ok(LogitBias { count, entries })
    }

    /// Tokens with their values.
    pub fn entries(&self) -> &[(u32, f32)] {
        &self.entries[..self.count]
    }
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
    /// Share of the greatest weight in units of 2^-32; 0: no min-p.
    pub(crate) min_p: u32,
    /// Share kept in units of 2^-32; 0: all.
    pub(crate) typical_p: u32,
    /// Subtracted once from the logits of penalised tokens.
    pub(crate) presence: f32,
    /// Subtracted for each time that the token is among those.
    pub(crate) frequency: f32,
    /// Values that are added to logits.
    pub(crate) biases: LogitBias,
    /// Most likely tokens that come with each choice.
    pub(crate) tops: Option<u32>,
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
            min_p: 0,
            typical_p: 0,
            presence: 0.0,
            frequency: 0.0,
            biases: LogitBias::default(),
            tops: None,
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Checks the ranges (NaN is in none) and converts.
    pub fn validate(&self) -> Result<Sampling, SamplingError> {
        let SamplingOptions { temperature, top_k, top_p, repetition_penalty, penalty_window, seed, .. } =
            *self;
        let SamplingOptions { min_p, typical_p, presence_penalty, frequency_penalty, .. } = *self;
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
        if !(0.0..=1.0).contains(&min_p) {
            return Err(SamplingError::MinP(min_p));
        }
        if !(typical_p > 0.0 && typical_p <= 1.0) {
            return Err(SamplingError::TypicalP(typical_p));
        }
        if !(-SUBTRACTED_MAX..=SUBTRACTED_MAX).contains(&presence_penalty) {
            return Err(SamplingError::Presence(presence_penalty));
        }
        if !(-SUBTRACTED_MAX..=SUBTRACTED_MAX).contains(&frequency_penalty) {
            return Err(SamplingError::Frequency(frequency_penalty));
        }
        if let Some(count) = self.log_probabilities.filter(|count| *count as usize > TOPS_MAX) {
            return Err(SamplingError::LogProbabilities(count));
        }
        let penalises = repetition_penalty != 1.0 || presence_penalty != 0.0 || frequency_penalty != 0.0;
        Ok(Sampling {
            inverse_temperature,
            top_k,
            top_p: share_units(top_p),
            penalty: repetition_penalty,
            inverse_penalty: 1.0 / repetition_penalty,
            // Without a penalty nothing changes, and without a window no token is looked up.
            penalty_window: if penalises { penalty_window.min(COUNTED_TOKENS_MAX) } else { 0 },
            // The greatest number of units for 1: what is below it is at most 2^-24 less than 1.
            min_p: ((f64::from(min_p) * SHARE_UNITS).round() as u32).max(u32::from(min_p > 0.0)),
            typical_p: share_units(typical_p),
            presence: presence_penalty,
            frequency: frequency_penalty,
            biases: self.logit_bias,
            tops: self.log_probabilities,
            seed,
        })
    }
}

/// A share above 0 and up to 1 in units of 2^-32, rounded to the nearest, at least one; 1 becomes 0 (all).
fn share_units(share: f32) -> u32 {
    if share == 1.0 {
        return 0;
    }
    // The product is exact in f64. The largest f32 below 1 gives 2^32 - 256, so no share rounds up to 1.
    ((f64::from(share) * SHARE_UNITS).round() as u32).max(1)
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
            extras: self.flags(),
        }
    }

    /// What of [`extras`](Sampling::extras) counts.
    fn flags(&self) -> u32 {
        let subtracts = self.penalty_window > 0 && (self.presence != 0.0 || self.frequency != 0.0);
        let adjusts = subtracts || self.biases.count > 0;
        let filters = self.min_p > 0 || self.typical_p > 0;
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        flag(adjusts, EXTRAS_ADJUST) | flag(filters, EXTRAS_FILTER) | flag(self.tops.is_some(), EXTRAS_TOPS)
    }

    /// What few requests ask for, as SAMPLE reads it.
    pub fn extras(&self) -> Extras {
        let mut extras = Extras {
            min_p: self.min_p,
            typical_p: self.typical_p,
            presence: self.presence.to_bits(),
            frequency: self.frequency.to_bits(),
            tops: self.tops.unwrap_or(0),
            biases: self.biases.count as u32,
            ..Extras::default()
        };
        for (place, (token, value)) in extras.bias.iter_mut().zip(self.biases.entries()) {
            *place = Bias { token: *token, value: value.to_bits() };
        }
        extras
    }

    /// Values that are added to logits.
    pub fn biases(&self) -> &LogitBias {
        &self.biases
    }

    /// How many of the most likely tokens come with each choice; `None`: no log-probabilities.
    pub fn tops(&self) -> Option<u32> {
        self.tops
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
            ..SamplingOptions::default()
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
            extras: 0,
        };
        assert_eq!(sampling.draws(), draws);
        let free = SamplingOptions { repetition_penalty: 1.0, ..options }.validate().unwrap();
        assert_eq!(free.penalty_window, 0);
    }

    #[test]
    fn extras_are_converted_as_written() {
        let biases = [(7, f32::NEG_INFINITY), (3, 1.5)];
        let options = SamplingOptions {
            penalty_window: u32::MAX,
            min_p: 0.0625,
            typical_p: 0.75,
            presence_penalty: 1.5,
            frequency_penalty: -0.5,
            logit_bias: LogitBias::new(&biases).unwrap(),
            log_probabilities: Some(4),
            ..SamplingOptions::default()
        };
        let sampling = options.validate().unwrap();
        assert_eq!((sampling.tops(), sampling.biases().entries()), (Some(4), &biases[..]));
        assert_eq!(SamplingOptions::default().validate().unwrap().tops(), None);
        let extras = sampling.extras();
        assert_eq!((extras.min_p, extras.typical_p), (1 << 28, 3 << 30));
        assert_eq!((extras.presence, extras.frequency), (0x3FC0_0000, 0xBF00_0000));
        assert_eq!((extras.tops, extras.biases), (4, 2));
        assert_eq!(extras.bias[0], Bias { token: 7, value: 0xFF80_0000 });
        assert_eq!(extras.bias[1], Bias { token: 3, value: 0x3FC0_0000 });
        assert_eq!(extras.bias[2], Bias::default());
        assert_eq!((sampling.draws().extras, sampling.draws().penalty_window), (7, 0x00FF_FFFF));
        let flags = |options: SamplingOptions| options.validate().unwrap().draws().extras;
        let none = SamplingOptions::default();
        assert_eq!(flags(none), 0);
        assert_eq!(flags(SamplingOptions { repetition_penalty: 1.1, penalty_window: 9, ..none }), 0);
        assert_eq!(flags(SamplingOptions { presence_penalty: 1.0, ..none }), 0, "there is no window");
        assert_eq!(
            flags(SamplingOptions { presence_penalty: 1.0, penalty_window: 1, ..none }),
            EXTRAS_ADJUST
        );
        assert_eq!(
            flags(SamplingOptions { frequency_penalty: 1.0, penalty_window: 1, ..none }),
            EXTRAS_ADJUST
        );
        assert_eq!(flags(SamplingOptions { logit_bias: options.logit_bias, ..none }), EXTRAS_ADJUST);
        assert_eq!(flags(SamplingOptions { min_p: 1e-30, ..none }), EXTRAS_FILTER);
        assert_eq!(flags(SamplingOptions { typical_p: 0.5, ..none }), EXTRAS_FILTER);
        assert_eq!(flags(SamplingOptions { log_probabilities: Some(0), ..none }), EXTRAS_TOPS);
        let all = SamplingOptions { min_p: 1.0, ..none }.validate().unwrap();
        assert_eq!(all.extras().min_p, u32::MAX);
    }

    #[test]
    fn extras_out_of_range_are_refused() {
        let none = SamplingOptions::default();
        let refused = |options: SamplingOptions| options.validate().unwrap_err();
        for value in [-0.1, 1.1, f32::NAN] {
            let error = refused(SamplingOptions { min_p: value, ..none });
            assert!(matches!(error, SamplingError::MinP(_)), "{value}");
        }
        for value in [0.0, -0.1, 1.1, f32::NAN] {
            let error = refused(SamplingOptions { typical_p: value, ..none });
            assert!(matches!(error, SamplingError::TypicalP(_)), "{value}");
        }
        for value in [100.1, -100.1, f32::NAN, f32::INFINITY] {
            let error = refused(SamplingOptions { presence_penalty: value, ..none });
            assert!(matches!(error, SamplingError::Presence(_)), "{value}");
            let error = refused(SamplingOptions { frequency_penalty: value, ..none });
            assert!(matches!(error, SamplingError::Frequency(_)), "{value}");
        }
        let error = refused(SamplingOptions { log_probabilities: Some(21), ..none });
        assert_eq!(error, SamplingError::LogProbabilities(21));
        let edges = [0.0, 1.0].map(|min_p| SamplingOptions { min_p, ..none }.validate().is_ok());
        assert_eq!(edges, [true; 2]);
        let most = SamplingOptions { log_probabilities: Some(20), typical_p: 1.0, top_p: 1.0, ..none };
        assert_eq!(most.validate().unwrap().tops(), Some(20));
        let many: Vec<(u32, f32)> = (0..65).map(|token| (token, 1.0)).collect();
        assert_eq!(LogitBias::new(&many), Err(SamplingError::Biases(65)));
        assert_eq!(LogitBias::new(&many[..64]).unwrap().entries(), &many[..64]);
        assert_eq!(LogitBias::new(&[(1, 1.0), (2, 0.0), (1, 3.0)]), Err(SamplingError::BiasTwice(1)));
        for value in [f32::NAN, f32::INFINITY] {
            assert!(matches!(LogitBias::new(&[(1, value)]), Err(SamplingError::Bias { token: 1, .. })));
        }
    }

    #[test]
    fn shares_in_units() {
        assert_eq!(share_units(1.0), 0);
        assert_eq!(share_units(0.25), 1 << 30);
        assert_eq!(share_units(f32::from_bits(0x3F7F_FFFF)), u32::MAX - 255);
        // 0.9f32 is 15099494 * 2^-24.
        assert_eq!(share_units(0.9), 15_099_494 * 256);
        assert_eq!(share_units(1e-30), 1);
        // 1.5 * 2^-32: away from zero.
        assert_eq!(share_units(1.5 / 4_294_967_296.0), 2);
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
