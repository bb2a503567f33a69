//! Errors of the operations whose exact bits are not documented (instruction set reference §8.2).
//!
//! Contract: inputs are stratified: every exponent, both signs, extreme and random fractions. The reference is computed
//! in binary64 and rounded once, which is the correctly rounded result except for about one input in 2^28. Results that
//! are zero, denormal or not finite are left out of the histogram, and what happens to denormals is reported
//! separately.

use super::bench::{Bench, Stop};
use super::finding::Finding;
use super::kernels::APPROXIMATE;
use zrt_mem::Random;

/// Fractions per exponent and sign: the two extremes and random ones.
const FRACTIONS: usize = 24;
/// Dwords that the kernel stores per input.
const RESULTS: usize = 8;
/// Errors of up to this many units are counted one by one; larger ones together.
const ERROR_COUNTED_MAX: i64 = 3;
/// Largest input, in turns, for which sine and cosine are tested.
const TURNS_MAX: f64 = 256.0;

/// One operation.
struct Operation {
    name: &'static str,
    exact: fn(f64) -> f64,
    /// Largest documented error in units in the last place.
    error_max: Option<i64>,
}

const OPERATIONS: [Operation; 7] = [
    Operation { name: "rcp", exact: |x| 1.0 / x, error_max: Some(1) },
    Operation { name: "rsq", exact: |x| 1.0 / x.sqrt(), error_max: Some(1) },
    Operation { name: "sqrt", exact: f64::sqrt, error_max: Some(1) },
    Operation { name: "exp", exact: f64::exp2, error_max: Some(1) },
    Operation { name: "log", exact: f64::log2, error_max: Some(1) },
    Operation { name: "sin", exact: |x| turns(x, 0.0), error_max: None },
    Operation { name: "cos", exact: |x| turns(x, 0.25), error_max: None },
];

/// sin(2π(x + phase)); NaN, and so left out, if the result is exact for an x other than 0, or if x is beyond
/// [`TURNS_MAX`].
fn turns(x: f64, phase: f64) -> f64 {
    if x.abs() > TURNS_MAX || (x != 0.0 && (4.0 * x).fract() == 0.0) {
        return f64::NAN;
    }
    // Both differences are exact: x has 24 bits.
    let part = x - x.round();
    // cos(2πx) = sin(2π(1/4 - |x|)).
    let part = if phase == 0.0 { part } else { phase - part.abs() };
    (std::f64::consts::TAU * part).sin()
}

/// What was observed of one operation.
#[derive(Default)]
struct Tally {
    counts: [u64; 2 * ERROR_COUNTED_MAX as usize + 1],
    beyond: u64,
    largest: i64,
    denormal_inputs_flushed: u64,
    denormal_inputs_counted: u64,
    denormal_results_flushed: u64,
    denormal_results_kept: u64,
}

pub(super) fn errors(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let input = inputs();
    let output = bench.map(&APPROXIMATE, &input, RESULTS * input.len(), (input.len() / 32) as u32)?;
    let tallies: Vec<Tally> = OPERATIONS
        .iter()
        .enumerate()
        .map(|(column, operation)| {
            let mut tally = Tally::default();
            for (x, results) in input.iter().zip(output.chunks_exact(RESULTS)) {
                tally.add(operation, f32::from_bits(*x), f32::from_bits(results[column]));
            }
            tally
        })
        .collect();
    let holds = OPERATIONS.iter().zip(&tallies).all(|(operation, tally)| {
        operation.error_max.is_none_or(|most| {
            tally.largest <= most && tally.denormal_inputs_counted == 0 && tally.denormal_results_kept == 0
        })
    });
    let largest = |(operation, tally): (&Operation, &Tally)| format!("{} {}", operation.name, tally.largest);
    let words: Vec<String> = OPERATIONS.iter().zip(&tallies).map(largest).collect();
    let summary = format!("largest error in units of the last place: {}", words.join(", "));
    let mut finding = Finding::of_model(holds, summary);
    for (operation, tally) in OPERATIONS.iter().zip(&tallies) {
        let name = operation.name;
        for (at, count) in tally.counts.iter().enumerate() {
            let error = at as i64 - ERROR_COUNTED_MAX;
            finding.number(format!("{name}.error_{error}"), *count as f64, "count");
        }
        finding.number(format!("{name}.error_beyond"), tally.beyond as f64, "count");
        finding.number(format!("{name}.error_largest"), tally.largest as f64, "ulp");
        for (what, count) in [
            ("denormal_inputs_flushed", tally.denormal_inputs_flushed),
            ("denormal_inputs_counted", tally.denormal_inputs_counted),
            ("denormal_results_flushed", tally.denormal_results_flushed),
            ("denormal_results_kept", tally.denormal_results_kept),
        ] {
            finding.number(format!("{name}.{what}"), count as f64, "count");
        }
    }
    Ok(finding)
}

/// A multiple of 32 numbers: every finite exponent, denormals too.
fn inputs() -> Vec<u32> {
    let mut random = Random::new(24);
    let mut inputs = Vec::new();
    for exponent in 0..255u32 {
        for sign in [0, 1 << 31] {
            for at in 0..FRACTIONS {
                let fraction = match at {
                    0 => 0,
                    1 => 0x7f_ffff,
                    _ => random.word() & 0x7f_ffff,
                };
                inputs.push(sign | exponent << 23 | fraction);
            }
        }
    }
    // Around 1, where exponents and logarithms are dense.
    inputs.extend((0..960).map(|_| (random.word() & 0x81ff_ffff) + 0x3e80_0000));
    inputs.truncate(inputs.len() / 32 * 32);
    inputs
}

impl Tally {
    fn add(&mut self, operation: &Operation, x: f32, seen: f32) {
        let exact = (operation.exact)(f64::from(x));
        if x.is_subnormal() {
            let of_zero = (operation.exact)(f64::from(0f32.copysign(x))) as f32;
            let counted = exact as f32;
            // Results that do not tell the two apart are no evidence.
            if of_zero.to_bits() != counted.to_bits() && !exact.is_nan() {
                self.denormal_inputs_flushed += u64::from(seen.to_bits() == of_zero.to_bits());
                self.denormal_inputs_counted += u64::from(seen.to_bits() != of_zero.to_bits());
            }
            return;
        }
        let expected = exact as f32;
        if expected.is_subnormal() {
            self.denormal_results_flushed += u64::from(seen == 0.0);
            self.denormal_results_kept += u64::from(seen != 0.0);
            return;
        }
        if !expected.is_normal() {
            return;
        }
        let error = ordered(seen) - ordered(expected);
        self.largest = self.largest.max(error.abs());
        match self.counts.get_mut((error + ERROR_COUNTED_MAX) as usize) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }
}

/// Bits as an integer that grows with the number.
fn ordered(value: f32) -> i64 {
    let magnitude = i64::from(value.to_bits() & 0x7fff_ffff);
    if value.is_sign_negative() { -magnitude } else { magnitude }
}
