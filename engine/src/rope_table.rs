//! The rotary table: (cos, sin) of position × frequency, made once on the host in f64 by our own series and rounded
//! once to f32.
//! Contract: uses only IEEE operations in a fixed order, never the system's libm, so the table is the same bits on
//! every machine. It is an input to every executor. The relative error of each series is below 1e-15, far under half a
//! unit of f32. Allocates the table: context × R/2 × 8 bytes.

use crate::model::{Model, ModelError};
use crate::rope::Rope;

/// π/2 in three parts of 33, 33 and 53 bits, so that products with a small integer are exact (Cody and Waite).
const HALF_PI_PARTS: [f64; 3] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_7e-21];
/// ln 2 in two parts, the first with 32 significant bits.
const LN_2_PARTS: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// Terms of the exponential's series: 2^-1/2 range, 16 terms reach below 1e-17.
const EXP_TERMS: u32 = 16;

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

/// e^x for |x| up to 700.
pub(crate) fn exponential(x: f64) -> f64 {
    let exponent = (x * std::f64::consts::LOG2_E).round();
    let rest = (x - exponent * LN_2_PARTS[0]) - exponent * LN_2_PARTS[1];
    let mut sum = 1.0;
    for term in (1..=EXP_TERMS).rev() {
        sum = 1.0 + rest * sum / f64::from(term);
    }
    sum * power_of_two(exponent as i32)
}

/// ln x for finite x > 0, by Newton's method on the exponential from the binary exponent.
pub(crate) fn natural_logarithm(x: f64) -> f64 {
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let mantissa = x / power_of_two(exponent);
    // ln m = 2 artanh((m - 1)/(m + 1)); the quotient is at most 1/3, 18 odd terms reach below 1e-17.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let mut sum = 0.0;
    for term in (0..18).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    let exponent = f64::from(exponent);
    exponent * LN_2_PARTS[0] + (2.0 * ratio * sum + exponent * LN_2_PARTS[1])
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Sine and cosine of a non-negative angle up to 2^24.
fn sine_cosine(angle: f64) -> (f64, f64) {
    let quarter = (angle * std::f64::consts::FRAC_2_PI).round();
    let rest = HALF_PI_PARTS.iter().fold(angle, |rest, part| rest - quarter * part);
    let square = rest * rest;
    // |rest| <= π/4: ten terms of each series reach below 1e-18.
    let (mut sine, mut cosine) = (1.0, 1.0);
    for term in (1..=10).rev() {
        let even = f64::from(2 * term);
        sine = 1.0 - square * sine / (even * (even + 1.0));
        cosine = 1.0 - square * cosine / ((even - 1.0) * even);
    }
    let sine = rest * sine;
    match (quarter as i64) & 3 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::RopeScaling;

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

    #[test]
    fn long_contexts_and_large_bases_hold() {
        for (angle, base) in [(131_071.0f64, 1e6f64), (1_000_000.0, 5e5)] {
            let (sine, cosine) = sine_cosine(angle);
            assert!((sine - angle.sin()).abs() < 1e-11 && (cosine - angle.cos()).abs() < 1e-11);
            assert!((natural_logarithm(base) - base.ln()).abs() < 1e-14 * base.ln());
            assert!((exponential(-base.ln()) * base - 1.0).abs() < 1e-13);
        }
    }
}
