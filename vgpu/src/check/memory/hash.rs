//! A hash for small trusted keys.
//!
//! Contract: keys are numbers that this process generated (pages, sites, waves); there is no defence against chosen
//! keys. Cost: one multiplication per word.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with [`WordHasher`].
pub(super) type FastMap<Key, Value> = HashMap<Key, Value, BuildHasherDefault<WordHasher>>;

/// 2^64 divided by the golden ratio, odd: spreads consecutive numbers.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies and folds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = (self.0.rotate_left(26) ^ word).wrapping_mul(MULTIPLIER);
        self.0 = product ^ (product >> 32);
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    fn hash(key: impl Hash) -> u64 {
        BuildHasherDefault::<WordHasher>::default().hash_one(key)
    }

    /// So that keys are spread whichever bits a table uses.
    #[test]
    fn hashes_of_keys_at_equal_distances_differ_in_their_lowest_and_highest_bits() {
        for distance in [1, 8, 64, 4096, 1 << 32] {
            let hashes = (0..1024_u64).map(|key| hash(key * distance));
            let (lowest, highest): (HashSet<_>, HashSet<_>) =
                hashes.map(|hash| (hash % 1024, hash >> 57)).unzip();
            assert!(lowest.len() >= 512 && highest.len() == 128, "{distance}: {} differ", lowest.len());
        }
    }

    /// Enumerations hash as `isize`, what they hold as its own type, and texts by bytes.
    #[test]
    fn all_kinds_of_words_count() {
        assert_ne!(hash(1_isize), hash(2_isize));
        assert_ne!(hash(1_u8), hash(2_u8));
        assert_ne!(hash("ab"), hash("ac"));
        assert_ne!(hash("a text of several words"), hash("a text of several parts"));
    }

    #[test]
    fn all_words_of_a_key_count() {
        let pairs = (0..64_u32).flat_map(|first| (0..64_u32).map(move |second| hash((first, second))));
        assert_eq!(pairs.collect::<HashSet<_>>().len(), 64 * 64);
    }
}
