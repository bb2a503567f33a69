//! A rotary embedding: base, rotated dimensions and scaling, and from them the frequency of each pair and the magnitude
//! of cos and sin.
//!
//! Contract: frequencies and magnitudes are f64, made with IEEE operations in a fixed order and the functions of
//! `series`, so they are the same bits on every machine. The meaning of each parameter is that of
//! llama.cpp, whose converters write the files: `rope_yarn` and `ggml_rope_yarn_corr_dims` in `ggml`, the metadata keys
//! in `llama-arch`. The formulas of YaRN are those of Peng, Quesnelle, Fan, Shippole: YaRN, 2023 ("NTK-by-parts" and
//! the scale of attention). Allocates the list of frequencies.

use crate::series::{exponential, natural_logarithm};

/// Smallest width of YaRN's ramp, in pairs; llama.cpp's guard against a division by zero.
const RAMP_PAIRS_MIN: f64 = 0.001;
/// What YaRN's attention scale grows by for each e-fold of the factor (equation 22 of the paper).
const MAGNITUDE_SLOPE: f64 = 0.1;

/// One rotary embedding of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base frequency, above 1.
    pub base: f64,
    /// Rotated elements per head, even.
    pub dimensions: u32,
    /// How frequencies differ from `base^(-2j/R)`.
    pub scaling: RopeScaling,
    /// Multiplies cos and sin, besides what the scaling itself says; 1 in nearly every file.
    pub attention_factor: f64,
}

/// How rotary pairs lie in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeLayout {
    /// Elements (2j, 2j + 1).
    Interleaved,
    /// Elements (j, j + R/2).
    Halves,
}

/// How a context longer than the trained one is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// As trained.
    None,
    /// Every frequency is divided.
    Linear {
        /// The divisor, at least 1.
        factor: f64,
    },
    /// Low frequencies are divided, high ones stay.
    Yarn(Yarn),
}

/// Parameters of YaRN.
#[derive(Clone, Debug, PartialEq)]
pub struct Yarn {
    /// The divisor of low frequencies, at least 1.
    pub factor: f64,
    /// Positions before the extension.
    pub original_context: u32,
    /// How much of the ramp applies: 0 is linear scaling, 1 is YaRN.
    pub extrapolation: f64,
    /// Turns within the original context from which on a frequency stays.
    pub beta_fast: f64,
    /// Turns up to which it is divided by the whole factor.
    pub beta_slow: f64,
    /// Slope of the part of the attention scale that the model's weights have already; 0 where they have none.
    pub log_multiplier: f64,
}

impl Rope {
    /// Rotation of each pair from one position to the next, in radians. A pair's frequency is first divided by its
    /// entry of `divisors`, unless that is empty.
    pub fn frequencies(&self, divisors: &[f32]) -> Vec<f64> {
        let log_base = natural_logarithm(self.base);
        let plain = (0..self.dimensions / 2).map(|pair| {
            let exponent = -(2.0 * f64::from(pair) / f64::from(self.dimensions)) * log_base;
            let divisor = divisors.get(pair as usize).map_or(1.0, |divisor| f64::from(*divisor));
            (f64::from(pair), exponential(exponent) / divisor)
        });
        match &self.scaling {
            RopeScaling::None => plain.map(|(_, frequency)| frequency).collect(),
            RopeScaling::Linear { factor } => plain.map(|(_, frequency)| frequency / factor).collect(),
            RopeScaling::Yarn(yarn) => {
                let ramp = yarn.ramp(self.dimensions, log_base);
                let mixed = |(pair, frequency): (f64, f64)| {
                    let kept = ramp.kept(pair) * yarn.extrapolation;
                    frequency / yarn.factor * (1.0 - kept) + frequency * kept
                };
                plain.map(mixed).collect()
            }
        }
    }

    /// What cos and sin are multiplied by.
    pub fn magnitude(&self) -> f64 {
        match &self.scaling {
            RopeScaling::Yarn(yarn) => self.attention_factor * yarn.magnitude(),
            _ => self.attention_factor,
        }
    }
}

/// The pairs between which YaRN goes over from kept to divided frequencies.
struct Ramp {
    low: f64,
    high: f64,
}

impl Ramp {
    /// The share of its frequency that a pair keeps, 0 to 1.
    fn kept(&self, pair: f64) -> f64 {
        1.0 - ((pair - self.low) / (self.high - self.low).max(RAMP_PAIRS_MIN)).clamp(0.0, 1.0)
    }
}

impl Yarn {
    fn ramp(&self, dimensions: u32, log_base: f64) -> Ramp {
        // The pair that turns `turns` times within the original context.
        let pair_of = |turns: f64| {
            let wavelength = f64::from(self.original_context) / (turns * std::f64::consts::TAU);
            f64::from(dimensions) * natural_logarithm(wavelength) / (2.0 * log_base)
        };
        Ramp {
            low: pair_of(self.beta_fast).floor().max(0.0),
            high: pair_of(self.beta_slow).ceil().min(f64::from(dimensions) - 1.0),
        }
    }

    fn magnitude(&self) -> f64 {
        if self.extrapolation == 0.0 {
            return 1.0;
        }
        let log_factor = natural_logarithm(self.factor);
        let scale = |slope: f64| 1.0 + MAGNITUDE_SLOPE * slope * log_factor;
        scale(1.0) / scale(self.log_multiplier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(base: f64, scaling: RopeScaling) -> Rope {
        Rope { base, dimensions: 128, scaling, attention_factor: 1.0 }
    }

    fn yarn(factor: f64, original_context: u32) -> Yarn {
        Yarn {
            factor,
            original_context,
            extrapolation: 1.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            log_multiplier: 0.0,
        }
    }

    fn close(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-14
    }

    /// Frequencies of Qwen2.5 with factor 4, from mpmath with 40 digits: pairs up to 23 stay, those from 40 on are
    /// divided by 4, and the ramp goes in equal steps between them.
    #[test]
    fn yarn_divides_low_frequencies_only() {
        let frequencies = rope(1e6, RopeScaling::Yarn(yarn(4.0, 32768))).frequencies(&[]);
        let expected = [
            (0, 1.0),
            (10, 0.115_478_198_468_945_82),
            (23, 0.006_978_305_848_598_663),
            (24, 0.005_375_321_490_790_102),
            (30, 0.001_064_360_981_247_001_8),
            (35, 0.000_246_258_406_908_938_7),
            (39, 0.000_064_903_943_208_370_29),
            (40, 0.000_044_456_985_250_973_07),
            (63, 3.102_344_401_879_299e-7),
        ];
        for (pair, frequency) in expected {
            assert!(close(frequencies[pair], frequency), "pair {pair}: {}", frequencies[pair]);
        }
    }

    /// A base so small that even the last pair turns often: the ramp ends at element 127, beyond every pair, as in the
    /// published code. `10^(-2p/128) (k + (1 - k) / 4)` with k = 1 - p / 127.
    #[test]
    fn a_ramp_ends_before_the_number_of_dimensions() {
        let all_turn = Yarn { beta_fast: 32768.0, ..yarn(4.0, 32768) };
        let frequencies = rope(10.0, RopeScaling::Yarn(all_turn)).frequencies(&[]);
        for (pair, frequency) in [(0, 1.0), (10, 0.656_620_117_250_031_8), (63, 0.065_095_650_427_485_36)] {
            assert!(close(frequencies[pair], frequency), "pair {pair}: {}", frequencies[pair]);
        }
    }

    /// 0.1 ln 4 + 1, and the ratio of two such scales for a model whose weights have a part of it (mpmath).
    #[test]
    fn yarn_enlarges_cos_and_sin() {
        let plain = rope(1e6, RopeScaling::Yarn(yarn(4.0, 32768)));
        assert!(close(plain.magnitude(), 1.138_629_436_111_989));
        let with_multiplier = Yarn { log_multiplier: 0.707, ..yarn(40.0, 4096) };
        assert!(close(rope(1e4, RopeScaling::Yarn(with_multiplier)).magnitude(), 1.085_726_399_256_135_7));
        let without_ramp = Rope {
            attention_factor: 0.5,
            ..rope(1e6, RopeScaling::Yarn(Yarn { extrapolation: 0.0, ..yarn(4.0, 32768) }))
        };
        assert_eq!(without_ramp.magnitude(), 0.5);
    }

    #[test]
    fn linear_scaling_and_yarn_without_a_ramp_divide_every_frequency() {
        let plain = rope(1e6, RopeScaling::None).frequencies(&[]);
        let linear = rope(1e6, RopeScaling::Linear { factor: 8.0 }).frequencies(&[]);
        assert!(plain.iter().zip(&linear).all(|(plain, linear)| *linear == plain / 8.0));
        let all = Yarn { extrapolation: 0.0, ..yarn(8.0, 32768) };
        assert_eq!(rope(1e6, RopeScaling::Yarn(all)).frequencies(&[]), linear);
    }

    /// Llama 3.1: the divisors that its published formula gives for factor 8, low and high frequency factors 1 and 4
    /// and 8192 positions, rounded to f32, and the frequencies that follow (mpmath).
    #[test]
    fn llama_3_divides_frequencies_by_a_tensor() {
        let ramp = [1.207_483_9f32, 1.553_414_6, 2.026_313_3, 2.694_529_8, 3.684_252_5, 5.257_326_6];
        let divisors = [vec![1.0; 29], ramp.to_vec(), vec![8.0; 29]].concat();
        let frequencies = rope(5e5, RopeScaling::None).frequencies(&divisors);
        let expected = [
            (28, 0.003_211_445_994_752_591),
            (29, 0.002_166_570_734_097_241_4),
            (31, 0.000_856_751_371_062_817_3),
            (34, 0.000_178_507_812_284_920_37),
            (35, 0.000_095_562_123_539_646_83),
            (63, 3.068_925_988_914_511e-7),
        ];
        for (pair, frequency) in expected {
            assert!(close(frequencies[pair], frequency), "pair {pair}: {}", frequencies[pair]);
        }
    }
}
