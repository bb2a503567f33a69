//! A set of registers.
//!
//! Contract: one bit per register number of the effects table below LDS. Cost: seven words; a test is seven ANDs.

use zrt_isa::effects::{LDS, Registers};

const WORDS: usize = LDS.div_ceil(64);

/// Registers, by their numbers in the effects table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    pub(super) fn insert(&mut self, register: usize) {
        if let Some(word) = self.0.get_mut(register / 64) {
            *word |= 1 << (register % 64);
        }
    }

    /// All registers below `end`.
    pub(super) fn below(end: usize) -> Self {
        let mut bits = Self::default();
        for (index, word) in bits.0.iter_mut().enumerate() {
            *word = match end.saturating_sub(index * 64) {
                0 => 0,
                count => u64::MAX >> (64 - count.min(64)),
            };
        }
        bits
    }

    pub(super) fn insert_all(&mut self, registers: Registers) {
        registers.range().for_each(|register| self.insert(register));
    }

    pub(super) fn remove(&mut self, register: usize) {
        if let Some(word) = self.0.get_mut(register / 64) {
            *word &= !(1 << (register % 64));
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(super) fn contains(&self, register: usize) -> bool {
        self.0.get(register / 64).is_some_and(|word| word >> (register % 64) & 1 != 0)
    }

    /// True if the two sets have a register in common.
    #[inline]
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |all, (one, other)| all | one & other) != 0
    }

    /// True if it has a register in common with either of two sets.
    #[inline]
    pub(super) fn meets_either(&self, one: &Self, other: &Self) -> bool {
        let others = one.0.iter().zip(&other.0);
        self.0.iter().zip(others).fold(0, |all, (own, (one, other))| all | own & (one | other)) != 0
    }

    /// Keeps the registers for which `is_kept` returns true.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        for (index, word) in self.0.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !is_kept(index * 64 + bit as usize) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

/// Calls `found` for each run of adjacent `registers` for which `is_hit` returns true.
pub(super) fn runs(registers: Registers, is_hit: impl Fn(usize) -> bool, mut found: impl FnMut(Registers)) {
    let range = registers.range();
    let mut first = range.start;
    while first < range.end {
        let count = (first..range.end).take_while(|&register| is_hit(register)).count();
        if count > 0 {
            found(Registers::new(first, count));
        }
        first += count.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn bits(numbers: &BTreeSet<usize>) -> Bits {
        let mut bits = Bits::default();
        numbers.iter().for_each(|&number| bits.insert(number));
        bits
    }

    fn numbers(bits: &Bits) -> BTreeSet<usize> {
        (0..WORDS * 64 + 70).filter(|&number| bits.contains(number)).collect()
    }

    /// Members in the same place of two words do not cancel out.
    #[test]
    fn sets_meet_however_many_members_they_share() {
        let both = bits(&BTreeSet::from([3, 67]));
        assert!(both.meets(&both) && both.meets_either(&both, &Bits::default()));
        assert!(both.meets_either(&both, &both), "in both");
        let next = bits(&BTreeSet::from([4, 68]));
        assert!(!both.meets(&next) && !both.meets_either(&next, &Bits::default()));
    }

    proptest! {
        #[test]
        fn a_set_is_that_of_its_numbers(
            one in btree_set(0..LDS, 0..12),
            two in btree_set(0..LDS, 0..12),
            three in btree_set(0..LDS, 0..12),
            (at, count) in (0..LDS - 16, 1..16usize),
            end in prop_oneof![0..LDS, (0..=WORDS).prop_map(|word| 64 * word)],
        ) {
            let sets = [&one, &two, &three].map(bits);
            prop_assert_eq!(numbers(&sets[0]), one.clone());
            let of_one = |other: &BTreeSet<usize>| !one.is_disjoint(other);
            prop_assert_eq!(sets[0].meets(&sets[1]), of_one(&two));
            prop_assert_eq!(sets[0].meets_either(&sets[1], &sets[2]), of_one(&two) || of_one(&three));
            let mut sum = sets[0];
            sum.add(&sets[1]);
            prop_assert_eq!(numbers(&sum), &one | &two);
            sum.retain(|number| two.contains(&number));
            prop_assert_eq!(numbers(&sum), two.clone());
            two.iter().for_each(|&number| sum.remove(number));
            prop_assert_eq!(sum, Bits::default());
            sum.insert_all(Registers::new(at, count));
            prop_assert_eq!(numbers(&sum), (at..at + count).collect::<BTreeSet<_>>());
            prop_assert_eq!(numbers(&Bits::below(end)), (0..end).collect::<BTreeSet<_>>());
            // Numbers beyond are no members, whatever is done.
            sum.insert(WORDS * 64);
            sum.remove(WORDS * 64 + 64);
            prop_assert_eq!(numbers(&sum), (at..at + count).collect::<BTreeSet<_>>());
        }

        /// Runs are those of a text of hits and misses, cut at the misses.
        #[test]
        fn runs_are_the_longest_ones(first in 0..300usize, hits in vec(any::<bool>(), 1..20)) {
            let mut found = Vec::new();
            let registers = Registers::new(first, hits.len());
            runs(registers, |register| hits[register - first], |run| found.push(run.range()));
            let mut expected = Vec::new();
            for (at, _) in hits.iter().enumerate().filter(|(_, is_hit)| **is_hit) {
                match expected.last_mut() {
                    Some(std::ops::Range { end, .. }) if *end == first + at => *end += 1,
                    _ => expected.push(first + at..first + at + 1),
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
