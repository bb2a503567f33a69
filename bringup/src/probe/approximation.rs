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
    Ok(told(&tallies))
}

/// What was observed of all operations.
fn told(tallies: &[Tally]) -> Finding {
    let holds = OPERATIONS.iter().zip(tallies).all(|(operation, tally)| {
        operation.error_max.is_none_or(|most| {
            tally.largest <= most && tally.denormal_inputs_counted == 0 && tally.denormal_results_kept == 0
        })
    });
    let largest = |(operation, tally): (&Operation, &Tally)| format!("{} {}", operation.name, tally.largest);
    let words: Vec<String> = OPERATIONS.iter().zip(tallies).map(largest).collect();
    let summary = format!("largest error in units of the last place: {}", words.join(", "));
    let mut finding = Finding::of_model(holds, summary);
    for (operation, tally) in OPERATIONS.iter().zip(tallies) {
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
    finding
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

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;
    use std::collections::BTreeSet;

    /// In turns; exact results but that of 0 are left out, and large arguments.
    #[test]
    fn sines_and_cosines_are_those_of_turns() {
        let near = |seen: f64, expected: f64| (seen - expected).abs() < 1e-15;
        let (half, root) = (0.75_f64.sqrt(), 0.5_f64.sqrt());
        for (x, sine, cosine) in [
            (0.0, 0.0, 1.0),
            (0.125, root, root),
            (-0.125, -root, root),
            (1.0 / 12.0, 0.5, half),
            (255.875, -root, root),
            (-7.0 / 12.0, 0.5, -half),
        ] {
            assert!(near(turns(x, 0.0), sine) && near(turns(x, 0.25), cosine), "{x}");
        }
        // Near a quarter the cosine is small, and its digits count.
        for digits in [2.0_f64.powi(-26), -2.0_f64.powi(-26), 2.0_f64.powi(-50)] {
            let (seen, expected) = (turns(0.25 + digits, 0.25), -std::f64::consts::TAU * digits);
            assert!(((seen - expected) / expected).abs() < 1e-12, "{digits}: {seen} {expected}");
        }
        for x in [0.25, 0.5, -1.0, 3.75, 256.0, 256.125, -300.1] {
            assert!(turns(x, 0.0).is_nan() && turns(x, 0.25).is_nan(), "{x}");
        }
    }

    #[test]
    fn inputs_have_every_finite_exponent_and_are_dense_around_one() {
        let inputs = inputs();
        // 255 exponents of 48 inputs and 960 more, cut to whole waves of 32.
        assert_eq!(inputs.len(), 13_184);
        let (strata, dense) = inputs.split_at(255 * 48);
        let strata: BTreeSet<u32> = strata.iter().copied().collect();
        for exponent in 0..255 {
            for sign in [0, 1 << 31] {
                let start: u32 = sign + (exponent << 23);
                let of: Vec<u32> = strata.range(start..=start + 0x7f_ffff).copied().collect();
                assert_eq!((of.first(), of.last()), (Some(&start), Some(&(start + 0x7f_ffff))));
                assert!(of.len() > 20, "{start:#x}: {} fractions", of.len());
            }
        }
        assert!(strata.iter().all(|bits| f32::from_bits(*bits).is_finite()));
        let dense: Vec<f32> = dense.iter().map(|bits| f32::from_bits(*bits)).collect();
        assert!(dense.iter().all(|x| (0.25..4.0).contains(&x.abs())), "{dense:?}");
        for (least, most) in [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 4.0), (-4.0, -2.0), (-0.5, -0.25)] {
            assert!(dense.iter().filter(|x| (least..most).contains(*x)).count() > 50, "{least} to {most}");
        }
    }

    #[test]
    fn bits_grow_with_the_number() {
        let numbers = [-2.0, -1.0, -f32::from_bits(1), 0.0, f32::from_bits(1), 1.0, f32::INFINITY];
        assert!(numbers.is_sorted_by_key(|number| ordered(*number)));
        assert_eq!([-1.0, -0.0, 0.0, 1.0].map(ordered), [-0x3f80_0000, 0, 0, 0x3f80_0000]);
    }

    /// Counts of errors from -3 to 3, beyond, the largest; of denormal inputs flushed and counted, results flushed and
    /// kept.
    fn tally(of: usize, seen: &[(f32, f32)]) -> ([u64; 7], u64, i64, [u64; 4]) {
        let mut tally = Tally::default();
        seen.iter().for_each(|(x, seen)| tally.add(&OPERATIONS[of], *x, *seen));
        let Tally { denormal_inputs_flushed, denormal_inputs_counted, .. } = tally;
        let Tally { denormal_results_flushed, denormal_results_kept, .. } = tally;
        let denormals = [
            denormal_inputs_flushed,
            denormal_inputs_counted,
            denormal_results_flushed,
            denormal_results_kept,
        ];
        (tally.counts, tally.beyond, tally.largest, denormals)
    }

    #[test]
    fn errors_are_counted_in_units_of_the_last_place() {
        const RCP: usize = 0;
        let one = |by: i32| f32::from_bits(1f32.to_bits().wrapping_add_signed(by));
        assert_eq!(tally(RCP, &[(1.0, 1.0), (1.0, 1.0)]), ([0, 0, 0, 2, 0, 0, 0], 0, 0, [0; 4]));
        assert_eq!(tally(RCP, &[(1.0, one(1)), (1.0, one(-2))]), ([0, 1, 0, 0, 1, 0, 0], 0, 2, [0; 4]));
        assert_eq!(tally(RCP, &[(1.0, one(3)), (1.0, one(-3))]), ([1, 0, 0, 0, 0, 0, 1], 0, 3, [0; 4]));
        assert_eq!(tally(RCP, &[(1.0, one(4)), (1.0, one(-5))]), ([0; 7], 2, 5, [0; 4]));
        // Further from zero, a negative result is too small.
        assert_eq!(tally(RCP, &[(-1.0, -one(1))]), ([0, 0, 1, 0, 0, 0, 0], 0, 1, [0; 4]));
        // No result, and an infinite one, are left out.
        assert_eq!(tally(RCP, &[(0.0, f32::INFINITY), (f32::NAN, 1.0)]), ([0; 7], 0, 0, [0; 4]));
    }

    #[test]
    fn denormals_are_told_apart_where_they_make_a_difference() {
        const RCP: usize = 0;
        const SQRT: usize = 2;
        let none = ([0; 7], 0, 0);
        let denormals = |of, seen: &[(f32, f32)]| {
            let (counts, beyond, largest, denormals) = tally(of, seen);
            assert_eq!((counts, beyond, largest), none);
            denormals
        };
        let tiny = f32::from_bits(1 << (149 - 130));
        assert_eq!(denormals(SQRT, &[(tiny, 0.0), (tiny, 0.0), (tiny, 2f32.powi(-65))]), [2, 1, 0, 0]);
        assert_eq!(denormals(SQRT, &[(-tiny, -0.0), (-tiny, f32::NAN)]), [0; 4], "no square root");
        // 1 / 2^-149 is infinite, as 1 / 0 is; 1 / 2^-127 is not.
        assert_eq!(denormals(RCP, &[(f32::from_bits(1), f32::INFINITY)]), [0; 4]);
        let half = 2f32.powi(-127);
        assert_eq!(denormals(RCP, &[(half, f32::INFINITY), (half, 2f32.powi(127))]), [1, 1, 0, 0]);
        let large = 2f32.powi(127);
        assert_eq!(denormals(RCP, &[(large, 0.0), (large, half), (-large, -half)]), [0, 0, 1, 2]);
    }

    #[test]
    fn the_documented_operations_may_be_off_by_one_and_flush_denormals() {
        let verdict = |at: usize, change: fn(&mut Tally)| {
            let mut tallies: [Tally; 7] = Default::default();
            change(&mut tallies[at]);
            told(&tallies).verdict
        };
        use super::super::Verdict::{Confirms, Contradicts};
        assert_eq!(verdict(0, |_| ()), Confirms);
        for at in 0..7 {
            // Sine and cosine have no documented error.
            let judged = if at < 5 { Contradicts } else { Confirms };
            assert_eq!(verdict(at, |tally| tally.largest = 1), Confirms, "{at}");
            assert_eq!(verdict(at, |tally| tally.largest = 2), judged, "{at}");
            assert_eq!(verdict(at, |tally| tally.denormal_inputs_counted = 1), judged, "{at}");
            assert_eq!(verdict(at, |tally| tally.denormal_results_kept = 1), judged, "{at}");
        }
    }

    #[test]
    fn all_counts_are_told() {
        let mut tallies: [Tally; 7] = Default::default();
        tallies[6] = Tally {
            counts: [1, 2, 3, 4, 5, 6, 7],
            beyond: 8,
            largest: 9,
            denormal_inputs_flushed: 10,
            denormal_inputs_counted: 11,
            denormal_results_flushed: 12,
            denormal_results_kept: 13,
        };
        let text = lines(&told(&tallies));
        let head = "Confirms: largest error in units of the last place: rcp 0, rsq 0, sqrt 0, exp 0, log 0, sin 0, cos 9\n";
        assert!(text.starts_with(&format!("{head}rcp.error_-3 0 count\n")), "{text}");
        let cosine = "\ncos.error_-3 1 count\ncos.error_-2 2 count\ncos.error_-1 3 count\ncos.error_0 4 count\n\
                      cos.error_1 5 count\ncos.error_2 6 count\ncos.error_3 7 count\ncos.error_beyond 8 count\n\
                      cos.error_largest 9 ulp\ncos.denormal_inputs_flushed 10 count\n\
                      cos.denormal_inputs_counted 11 count\ncos.denormal_results_flushed 12 count\n\
                      cos.denormal_results_kept 13 count";
        assert!(text.ends_with(cosine), "{text}");
    }
}
