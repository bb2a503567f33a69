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
