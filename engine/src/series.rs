//! Exponential, logarithm, sine and cosine in f64, by series of our own.
//!
//! Contract: only IEEE operations in a fixed order, never the system's libm, so results are the same bits on every
//! machine. The relative error of each series is below 1e-15. Allocates nothing.

/// π/2 in three parts of 33, 33 and 53 bits, so that products with a small integer are exact (Cody and Waite).
const HALF_PI_PARTS: [f64; 3] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_7e-21];
/// ln 2 in two parts, the first with 32 significant bits.
const LN_2_PARTS: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// Terms of the exponential's series: 2^-1/2 range, 16 terms reach below 1e-17.
const EXP_TERMS: u32 = 16;

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

/// ln x for finite, normal x > 0: the binary exponent times ln 2, and a series for the mantissa.
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
pub(crate) fn sine_cosine(angle: f64) -> (f64, f64) {
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
