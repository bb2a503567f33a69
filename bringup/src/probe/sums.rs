//! Models of how a matrix or dot operation adds up, and which of them survive what a device returned.
//!
//! Contract: a model is a choice of order, grouping, width, rounding and denormals ([`Model`]); [`family`] lists all
//! that are tried. [`Case`] is one sum of products with the bits that came back. A model survives if it produces those
//! bits in every case. Host arithmetic here is exact in integers: no float operation of the host rounds. Products must
//! be exact in binary64, and normal or zero; of terms further than 2^120 apart the smaller is cut off.

/// Maximum number of products of a case.
pub(super) const TERMS_MAX: usize = 16;
/// Largest distance of a case's terms, in bits, for which the exact sum has room.
const SPAN_BITS_MAX: i32 = 120;

/// One product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Product {
    /// Its exact value.
    pub value: f64,
    /// Whether a factor is a denormal of its format.
    pub has_denormal: bool,
}

/// One sum: the products in ascending k, the addend, and the result that came back.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub products: Vec<Product>,
    pub addend: f32,
    pub seen: u32,
}

/// In which order products are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
    /// 0, 8, 1, 9 and so on.
    Interleaved,
    /// As two half-waves hold 16-bit elements: 0..4 and 8..12, then 4..8 and 12..16.
    Halves,
}

/// How the members of a group are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Exactly, together with the carried sum; one rounding.
    Exact,
    /// In pairs, each sum rounded; the group's sum is then added to the carried sum.
    Pairs,
    /// Aligned to the largest with this many bits below its last place, the rest cut off; one rounding.
    Aligned(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Zero,
}

/// How a sum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// Products that are taken at a time.
    pub group: usize,
    pub order: Order,
    pub inside: Inside,
    pub rounding: Rounding,
    /// The addend is the first carried sum; otherwise it is added last.
    pub addend_first: bool,
    /// Denormals of binary32 count as zero, in the addend and in each sum.
    pub flushes_sums: bool,
    /// Denormal factors count as zero.
    pub flushes_factors: bool,
}

/// The project's model (docs/arithmetic.md).
pub(super) const PROJECT: Model = Model {
    group: 1,
    order: Order::Ascending,
    inside: Inside::Exact,
    rounding: Rounding::Nearest,
    addend_first: true,
    flushes_sums: false,
    flushes_factors: false,
};

/// Every model that is tried for sums of `terms` products, without those that differ only in name.
pub(super) fn family(terms: usize) -> Vec<Model> {
    use Inside::{Aligned, Exact, Pairs};
    let groups = [1, 2, 4, 8, 16].into_iter().filter(|group| *group <= terms);
    let mut models = Vec::new();
    for group in groups {
        let orders = match (terms, group == terms) {
            (16, false) => &[Order::Ascending, Order::Descending, Order::Interleaved, Order::Halves][..],
            (_, false) => &[Order::Ascending, Order::Descending],
            (_, true) => &[Order::Ascending],
        };
        let insides = [Exact, Pairs, Aligned(0), Aligned(1), Aligned(2), Aligned(3), Aligned(4)];
        for (inside, order) in
            insides.iter().flat_map(|inside| orders.iter().map(move |order| (inside, order)))
        {
            // One product makes no pair.
            if (*inside, group) == (Pairs, 1) {
                continue;
            }
            for bits in 0..16 {
                // All in pairs and one addend: first or last is the same, and so are two halves with the addend last.
                if *inside == Pairs && bits & 2 != 0 && 2 * group >= terms {
                    continue;
                }
                models.push(Model {
                    group,
                    order: *order,
                    inside: *inside,
                    rounding: if bits & 1 == 0 { Rounding::Nearest } else { Rounding::Zero },
                    addend_first: bits & 2 == 0,
                    flushes_sums: bits & 4 != 0,
                    flushes_factors: bits & 8 != 0,
                });
            }
        }
    }
    models
}

/// The models that produce the observed bits in every case.
pub(super) fn survivors(models: Vec<Model>, cases: &[Case]) -> Vec<Model> {
    models.into_iter().filter(|model| cases.iter().all(|case| model.sum(case) == case.seen)).collect()
}

impl Model {
    /// In words.
    pub fn name(&self) -> String {
        let order = match self.order {
            Order::Ascending => "ascending",
            Order::Descending => "descending",
            Order::Interleaved => "interleaved",
            Order::Halves => "by half-waves",
        };
        let inside = match self.inside {
            Inside::Exact => "exact".into(),
            Inside::Pairs => "in pairs".into(),
            Inside::Aligned(bits) => format!("aligned with {bits} more bits"),
        };
        format!(
            "{} at a time, {order}, {inside}, {}, addend {}, denormal sums {}, denormal factors {}",
            self.group,
            if self.rounding == Rounding::Nearest { "to nearest even" } else { "towards zero" },
            if self.addend_first { "first" } else { "last" },
            if self.flushes_sums { "flushed" } else { "kept" },
            if self.flushes_factors { "flushed" } else { "kept" },
        )
    }

    /// The bits that this model produces.
    pub fn sum(&self, case: &Case) -> u32 {
        let mut terms = [0.0; TERMS_MAX];
        let count = case.products.len().min(TERMS_MAX);
        for (at, term) in terms[..count].iter_mut().enumerate() {
            let product = case.products[self.place(at, count)];
            *term = if self.flushes_factors && product.has_denormal { 0.0 } else { product.value };
        }
        let addend = self.kept(case.addend);
        let mut carried = if self.addend_first { addend } else { 0.0 };
        for group in terms[..count].chunks(self.group) {
            carried = match self.inside {
                Inside::Exact => self.round(&with(group, carried), None),
                Inside::Aligned(bits) => self.round(&with(group, carried), Some(bits)),
                Inside::Pairs => self.round(&[self.pairs(group), f64::from(carried)], None),
            };
        }
        if !self.addend_first {
            carried = self.round(&[f64::from(carried), f64::from(addend)], None);
        }
        carried.to_bits()
    }

    /// Which product is taken as number `at`.
    fn place(&self, at: usize, count: usize) -> usize {
        match self.order {
            Order::Ascending => at,
            Order::Descending => count - 1 - at,
            Order::Interleaved => at / 2 + at % 2 * (count / 2),
            Order::Halves => at / 8 * 4 + at % 8 / 4 * 8 + at % 4,
        }
    }

    /// The sum of a group, which has a member.
    fn pairs(&self, group: &[f64]) -> f64 {
        if let [one] = group {
            return *one;
        }
        let (low, high) = group.split_at(group.len().div_ceil(2));
        f64::from(self.round(&[self.pairs(low), self.pairs(high)], None))
    }

    fn kept(&self, value: f32) -> f32 {
        if self.flushes_sums && value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
    }

    /// The sum of the terms, rounded once to binary32. With `aligned`, terms are first cut off that many bits below the
    /// last place of the largest.
    fn round(&self, terms: &[f64], aligned: Option<u32>) -> f32 {
        let parts = || terms.iter().filter(|term| **term != 0.0).map(|term| split(*term));
        let Some(top) = parts().map(|(mantissa, exponent)| exponent + bits_of(mantissa) as i32).max() else {
            // A sum of zeros is -0 only if all are.
            let negative = terms.iter().all(|term| term.is_sign_negative());
            return if negative { -0.0 } else { 0.0 };
        };
        let cut = aligned.map(|bits| top - 24 - bits as i32);
        let lowest = parts().map(|(_, exponent)| exponent).min().unwrap_or(0);
        let unit = cut.map_or(lowest, |cut| cut.max(lowest)).max(top - SPAN_BITS_MAX);
        let sum: i128 = parts()
            .map(|(mantissa, exponent)| match exponent - unit {
                up if up >= 0 => mantissa << up,
                // Towards zero.
                down if down > -127 => mantissa / (1 << -down),
                _ => 0,
            })
            .sum();
        self.kept(round_to_single(sum, unit, self.rounding))
    }
}

/// The group's terms and the carried sum.
fn with(group: &[f64], carried: f32) -> Vec<f64> {
    group.iter().copied().chain([f64::from(carried)]).collect()
}

/// A normal number as an odd integer times a power of two.
fn split(value: f64) -> (i128, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1075;
    let mantissa = i128::from(bits & ((1 << 52) - 1)) + (1 << 52);
    let zeros = mantissa.trailing_zeros();
    let mantissa = mantissa >> zeros;
    (if value.is_sign_negative() { -mantissa } else { mantissa }, exponent + zeros as i32)
}

fn bits_of(mantissa: i128) -> u32 {
    128 - mantissa.unsigned_abs().leading_zeros()
}

/// `sum` · 2^`unit` as binary32.
fn round_to_single(sum: i128, unit: i32, rounding: Rounding) -> f32 {
    if sum == 0 {
        return 0.0;
    }
    let magnitude = sum.unsigned_abs();
    let quantum = (unit + bits_of(sum) as i32 - 24).max(-149);
    let shift = quantum - unit;
    let (kept, quantum) = if shift <= 0 {
        (magnitude, unit)
    } else if shift > 127 {
        (0, quantum)
    } else {
        let kept = magnitude >> shift;
        let rest = magnitude & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        let up = rounding == Rounding::Nearest && (rest > half || rest == half && kept & 1 == 1);
        (kept + u128::from(up), quantum)
    };
    // At most 24 bits times a power of two: exact in binary64, and in binary32 except for overflow.
    let value = kept as f64 * power_of_two(quantum);
    if sum < 0 { -value as f32 } else { value as f32 }
}

/// For exponents of sums of binary32, and a little beyond: the result is normal.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_mem::Random;

    fn products(values: &[f64]) -> Vec<Product> {
        values.iter().map(|value| Product { value: *value, has_denormal: false }).collect()
    }

    /// Integers below 2^22 times small powers of two: sums of them are exact in binary64.
    fn values(random: &mut Random, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| {
                let value = f64::from(random.below(1 << 22)) * f64::from(1 << random.below(12));
                if random.below(2) == 0 { value } else { -value }
            })
            .collect()
    }

    /// Cases of a device that adds as `device` says, which is written with the host's floats and shares nothing with
    /// the fit.
    fn cases(terms: usize, device: impl Fn(&[f64], f32) -> f32) -> Vec<Case> {
        let mut random = Random::new(1);
        (0..2000)
            .map(|_| {
                let values = values(&mut random, terms);
                let addend = values[0] as f32 * 3.0;
                Case { seen: device(&values, addend).to_bits(), products: products(&values), addend }
            })
            .collect()
    }

    #[test]
    fn a_sequential_device_is_found() {
        let device = |values: &[f64], addend: f32| {
            values.iter().fold(addend, |sum, value| (*value as f32).mul_add(1.0, sum))
        };
        let found = survivors(family(16), &cases(16, device));
        // Nothing was denormal, so that only these are left open.
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(found.contains(&PROJECT));
        let expected =
            |model: &Model| Model { flushes_sums: false, flushes_factors: false, ..*model } == PROJECT;
        assert!(found.iter().all(expected));
    }

    #[test]
    fn a_device_of_exact_groups_of_four_is_found() {
        let device = |values: &[f64], addend: f32| {
            // Four integers of 34 bits and the carried one of 24: the sum in binary64 is exact.
            values.chunks(4).fold(addend, |sum, four| (f64::from(sum) + four.iter().sum::<f64>()) as f32)
        };
        let found = survivors(family(16), &cases(16, device));
        assert!(!found.is_empty() && !found.contains(&PROJECT), "{found:#?}");
        for model in &found {
            assert_eq!((model.group, model.order, model.inside), (4, Order::Ascending, Inside::Exact));
            assert_eq!((model.rounding, model.addend_first), (Rounding::Nearest, true));
        }
    }

    #[test]
    fn a_device_that_adds_pairs_and_the_addend_last_is_found() {
        let device = |values: &[f64], addend: f32| {
            let pairs: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let mut level = pairs;
            while level.len() > 1 {
                level = level.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            }
            level[0] + addend
        };
        let found = survivors(family(16), &cases(16, device));
        assert!(!found.is_empty());
        for model in &found {
            assert_eq!((model.group, model.inside), (16, Inside::Pairs), "{found:#?}");
        }
    }

    #[test]
    fn a_device_that_cuts_off_is_found() {
        // 25 bits of room and cutting towards zero: by integers, without this file's rounding.
        let device = |values: &[f64], addend: f32| {
            let all: Vec<f64> = values.iter().copied().chain([f64::from(addend)]).collect();
            let largest = all.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let unit = 2f64.powi(largest.log2().floor() as i32 + 1 - 25);
            let sum: f64 = all.iter().map(|value| (value / unit).trunc() * unit).sum();
            let single = sum as f32;
            // Back towards zero if the conversion went beyond.
            if f64::from(single).abs() > sum.abs() { f32::from_bits(single.to_bits() - 1) } else { single }
        };
        let found = survivors(family(2), &cases(2, device));
        assert!(!found.is_empty());
        for model in &found {
            assert_eq!((model.group, model.inside), (2, Inside::Aligned(1)), "{found:#?}");
            assert_eq!(model.rounding, Rounding::Zero);
        }
    }

    /// All choices of four flags in each order, group and way to combine; a pair of one product and, where all is one
    /// sum of two, the place of the addend are no choice.
    #[test]
    fn the_family_has_each_model_once_and_ours_first() {
        // Groups of 1, of 2 and so on; 16 times orders times ways, and half of them where all is in pairs.
        let counts = [
            (2, 16 * 2 * 6 + (16 * 6 + 8)),
            (4, 16 * 2 * 6 + (16 * 2 * 6 + 8 * 2) + (16 * 6 + 8)),
            (16, 16 * 4 * 6 + 2 * (16 * 4 * 7) + (16 * 4 * 6 + 8 * 4) + (16 * 6 + 8)),
        ];
        for (terms, count) in counts {
            let models = family(terms);
            assert_eq!((models.len(), models[0]), (count, PROJECT), "{terms}");
            let names: std::collections::BTreeSet<String> = models.iter().map(Model::name).collect();
            assert_eq!(names.len(), count, "{terms}: each once");
            for model in &models {
                assert!(
                    model.group <= terms && (model.inside, model.group) != (Inside::Pairs, 1),
                    "{model:?}"
                );
                let is_symmetric = model.inside == Inside::Pairs && 2 * model.group >= terms;
                assert!(model.addend_first || !is_symmetric, "{model:?}");
            }
        }
    }

    #[test]
    fn orders_are_those_of_their_names() {
        let places = |order, count: usize| -> Vec<usize> {
            (0..count).map(|at| Model { order, ..PROJECT }.place(at, count)).collect()
        };
        assert_eq!(places(Order::Ascending, 4), [0, 1, 2, 3]);
        assert_eq!(places(Order::Descending, 4), [3, 2, 1, 0]);
        assert_eq!(places(Order::Interleaved, 16), [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]);
        assert_eq!(places(Order::Halves, 16), [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]);
    }

    /// Of terms too far apart to be added exactly, the smaller does not count; and what is far below the least denormal
    /// is zero, but for what is more than half of it.
    #[test]
    fn far_terms_and_tiny_sums_are_rounded_once() {
        let sum = |terms: &[f64]| PROJECT.round(terms, None);
        assert_eq!(sum(&[2f64.powi(120), 2f64.powi(-140)]), 2f32.powi(120));
        assert_eq!(sum(&[-(2f64.powi(120)), 2f64.powi(-260)]), -(2f32.powi(120)));
        let single = |sum, unit| round_to_single(sum, unit, Rounding::Nearest).to_bits();
        assert_eq!([single(0, 5), single(1, -300), single(-1, -300)], [0, 0, 1 << 31]);
        // 2^126 units of 2^-276 are half of 2^-149.
        assert_eq!([single(1 << 126, -276), single((1 << 126) + 1, -276)], [0, 1]);
        assert_eq!([single(3, -1), single(-3, 100)], [1.5f32.to_bits(), (-3.0 * 2f32.powi(100)).to_bits()]);
        // Half of a unit in the last place beyond the largest number is infinite.
        assert_eq!(single((1 << 25) - 1, 103), f32::INFINITY.to_bits());
        assert_eq!(single((1 << 24) - 1, 104), f32::MAX.to_bits());
    }

    #[test]
    fn numbers_are_split_into_odd_integers_and_powers_of_two() {
        assert_eq!([1.0, -6.0, 2f64.powi(-266), 0.15625].map(split), [(1, 0), (-3, 1), (1, -266), (5, -5)]);
        assert_eq!(split(f64::from_bits(0x3fff_ffff_ffff_ffff)), ((1 << 53) - 1, -52));
        assert_eq!([0, 1, -1, 255, 256].map(bits_of), [0, 1, 1, 8, 9]);
        assert_eq!([0, -149, 127].map(power_of_two), [1.0, 2f64.powi(-149), 2f64.powi(127)]);
    }

    #[test]
    fn denormals_and_halfway_cases() {
        let flushing = Model { flushes_sums: true, ..PROJECT };
        let factors = Model { flushes_factors: true, ..PROJECT };
        let tiny = f32::from_bits(5);
        let zero = Case { products: products(&[0.0, 0.0]), addend: tiny, seen: 0 };
        assert_eq!((PROJECT.sum(&zero), flushing.sum(&zero)), (5, 0));
        let small = Case {
            products: vec![Product { value: 2f64.powi(-48), has_denormal: true }],
            addend: 0.0,
            seen: 0,
        };
        assert_eq!((PROJECT.sum(&small), factors.sum(&small)), (2f32.powi(-48).to_bits(), 0));
        // 2^24 + 1 is a tie: down to even; towards zero likewise; 2^24 + 3 goes up or stays.
        let tie = |value: f64| Case { products: products(&[value]), addend: 16_777_216.0, seen: 0 };
        let cut = Model { rounding: Rounding::Zero, ..PROJECT };
        assert_eq!(PROJECT.sum(&tie(1.0)), 16_777_216f32.to_bits());
        assert_eq!(PROJECT.sum(&tie(3.0)), 16_777_220f32.to_bits());
        assert_eq!(cut.sum(&tie(3.0)), 16_777_218f32.to_bits());
        // 1.5 units of the smallest denormal go to 2, the even one.
        let half = Case { products: products(&[2f64.powi(-149) * 1.5]), addend: 0.0, seen: 0 };
        assert_eq!(PROJECT.sum(&half), 2);
    }
}
