//! The rotary table: (cos, sin) of position × frequency, made once on the host in f64 by our own series
//! (`series`) and rounded once to f32.
//!
//! Contract: uses only IEEE operations in a fixed order, never the system's libm, so the table is the same bits on
//! every machine. It is an input to every executor. The relative error of each series is below 1e-15, far under half a
//! unit of f32. Allocates the table: context × R/2 × 8 bytes.

use crate::model::Model;
use crate::model_error::ModelError;
use crate::rope::Rope;
use crate::series::sine_cosine;

/// The table of a rotary embedding, (cos, sin) pairs by position then by pair; `divisors` as in [`Rope::frequencies`].
pub fn rope_table(context: u32, rope: &Rope, divisors: &[f32]) -> Vec<f32> {
    let frequencies = rope.frequencies(divisors);
    let magnitude = rope.magnitude();
    let mut table = Vec::with_capacity(context as usize * frequencies.len() * 2);
    for position in 0..context {
        for frequency in &frequencies {
            let (sine, cosine) = sine_cosine(f64::from(position) * frequency);
            table.push((cosine * magnitude) as f32);
            table.push((sine * magnitude) as f32);
        }
    }
    table
}

/// Bytes of a rotary embedding's table.
pub fn rope_table_bytes(context: u32, rope: &Rope) -> u64 {
    u64::from(context) * u64::from(rope.dimensions / 2) * 8
}

/// The tables of a model, one after the other. Fails if the file's divisors cannot be read.
pub fn rope_tables(model: &Model, context: u32) -> Result<Vec<f32>, ModelError> {
    let divisors = model.rope_divisors()?;
    Ok(model.config.ropes().flat_map(|rope| rope_table(context, rope, &divisors)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::{RopeScaling, Yarn};

    #[test]
    fn agrees_with_the_standard_library_to_an_ulp_of_f32() {
        let rope = Rope { base: 10_000.0, dimensions: 64, scaling: RopeScaling::None, attention_factor: 1.0 };
        let table = rope_table(4096, &rope, &[]);
        for position in (0..4096u32).step_by(37) {
            for pair in 0..32u32 {
                let angle = f64::from(position) * 10_000f64.powf(-2.0 * f64::from(pair) / 64.0);
                let at = (position as usize * 32 + pair as usize) * 2;
                assert!((f64::from(table[at]) - angle.cos()).abs() < 6.1e-8, "cos at {position}, {pair}");
                assert!((f64::from(table[at + 1]) - angle.sin()).abs() < 6.1e-8, "sin at {position}, {pair}");
            }
        }
    }

    /// Position 0 of a YaRN of factor 4: cos is the magnitude 0.1 ln 4 + 1 itself (mpmath), sin is 0. The first pair of
    /// position 1 has the angle 1, whose sine is 0.84147098.
    #[test]
    fn a_magnitude_multiplies_cos_and_sin() {
        let yarn = Yarn {
            factor: 4.0,
            original_context: 32768,
            extrapolation: 1.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            log_multiplier: 0.0,
        };
        let rope =
            Rope { base: 1e6, dimensions: 128, scaling: RopeScaling::Yarn(yarn), attention_factor: 1.0 };
        assert_eq!(rope_table(1, &rope, &[])[..2], [1.138_629_4, 0.0]);
        assert_eq!(rope_table(2, &rope, &[])[129], 0.958_123_6);
        // 64 pairs of 8 bytes for each position.
        assert_eq!([0, 1, 3].map(|context| rope_table_bytes(context, &rope)), [0, 512, 1536]);
        assert_eq!(rope_table_bytes(u32::MAX, &rope), u64::from(u32::MAX) * 512);
    }

    /// The sine of pair 34 at position 1, with the divisor that Llama 3.1 has for it (mpmath).
    #[test]
    fn divisors_reach_the_table() {
        let rope = Rope { base: 5e5, dimensions: 128, scaling: RopeScaling::None, attention_factor: 1.0 };
        let divisors = [vec![1.0; 34], vec![5.257_326_6], vec![8.0; 29]].concat();
        assert_eq!(rope_table(2, &rope, &divisors)[2 * (64 + 34) + 1], 0.000_178_507_8);
    }
}
