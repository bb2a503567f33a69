//! Texts of a list, found by content: a hash table that holds only their numbers.
//!
//! Contract: the texts lie in a [`StringList`] that the caller passes each time. A look-up allocates nothing and
//! compares two texts on average, whatever the texts are: the hash has a key that no file can know. Memory: 5 to 12
//! bytes for each text.

use crate::gguf::{GgufError, StringList, vec_of};
use std::hash::{BuildHasher, RandomState};

/// A slot without a text.
const EMPTY: u32 = u32::MAX;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 8;

/// Numbers of texts by their hash.
pub(super) struct TextIndex {
    /// Their number is a power of two, and at least a quarter of them are empty.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl TextIndex {
    /// An empty index with room for `count` texts.
    pub(super) fn with_capacity(count: usize) -> Result<TextIndex, GgufError> {
        let slot_count = (count + count / 3).next_power_of_two().max(SLOTS_MIN);
        let mut slots = vec_of("the index of a vocabulary", slot_count as u64)?;
        slots.resize(slot_count, EMPTY);
        Ok(TextIndex { slots, hasher: RandomState::new() })
    }

    /// Adds text number `number` of the list; an equal text's number is replaced. The caller must not add more texts
    /// than there is room for.
    pub(super) fn insert(&mut self, texts: &StringList, number: u32) {
        let slot = self.slot(texts, texts.get(number as usize).unwrap_or_default());
        self.slots[slot] = number;
    }

    /// The number of a text.
    pub(super) fn get(&self, texts: &StringList, text: &str) -> Option<u32> {
        Some(self.slots[self.slot(texts, text)]).filter(|number| *number != EMPTY)
    }

    /// Where the text is, or would be.
    fn slot(&self, texts: &StringList, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while self.slots[slot] != EMPTY && texts.get(self.slots[slot] as usize) != Some(text) {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_text_is_found_and_no_other() {
        let words: Vec<String> = (0..1000).map(|one| format!("{}", one % 900)).collect();
        let texts: StringList = words.iter().map(String::as_str).collect();
        let mut index = TextIndex::with_capacity(texts.len()).unwrap();
        (0..1000).for_each(|number| index.insert(&texts, number));
        // The later of two equal texts counts, as in a map.
        let expected: HashMap<&str, u32> = texts.iter().zip(0..).collect();
        for (text, number) in &expected {
            assert_eq!(index.get(&texts, text), Some(*number), "{text}");
        }
        assert_eq!((index.get(&texts, "900"), index.get(&texts, "")), (None, None));
        assert_eq!(TextIndex::with_capacity(0).unwrap().get(&texts, "1"), None);
    }

    /// A full table would be searched for ever for a text that is not there.
    #[test]
    fn a_quarter_of_the_table_stays_empty_and_it_is_no_longer_than_it_must() {
        for count in (0..200).chain([1 << 14, 3 << 14, (3 << 14) + 1, 150_000]) {
            let slots = TextIndex::with_capacity(count).unwrap().slots.len();
            assert!(slots.is_power_of_two() && slots >= 8, "{count}: {slots}");
            assert!(count <= slots / 4 * 3, "{count}: {slots}");
            assert!(slots == 8 || count > slots / 8 * 3, "{count} are in half of {slots} too");
        }
    }
}
