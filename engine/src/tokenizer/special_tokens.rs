//! Special tokens found in a text: where two compete, the longest wins, then the one with the lower id, then the
//! leftmost.
//!
//! Contract: one pass over the text, whatever the number of tokens. From each byte that begins a token, the text is
//! read for as long as some token continues the same way, at most [`SPECIAL_BYTES_MAX`] bytes. If two tokens compete, a
//! shorter one is searched for where the loser begins. Memory: a number for each token and, during a search, an entry
//! for each place where a token begins.

use super::TokenizerError;
use crate::gguf::{StringList, vec_of};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Longest text of a special token in bytes. Llama 3's have 30, the longest of the tested vocabularies.
const SPECIAL_BYTES_MAX: usize = 256;

/// The tokens that are searched for.
pub(super) struct SpecialTokens {
    /// Their ids in bytewise order of their texts; of equal texts, only those that can be chosen.
    ids: Vec<u32>,
    /// Index in `ids` of the first text that begins with each byte, and the end.
    starts: Box<[u32; 257]>,
}

/// A token in a text. The greatest is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    bytes: usize,
    id: Reverse<u32>,
    at: Reverse<usize>,
}

/// The tokens of a text that do not overlap: where each begins, and its id, in order.
pub(super) struct Occurrences {
    pub tokens: Vec<(usize, u32)>,
    /// Bytes of the text that were read, counted each time.
    #[cfg_attr(not(test), expect(dead_code, reason = "what the search costs is tested, not used"))]
    bytes_read: usize,
}

impl SpecialTokens {
    /// The tokens `ids`, in ascending order; none has an empty text. `is_always` says which are taken in every text.
    pub(super) fn new(
        texts: &StringList,
        mut ids: Vec<u32>,
        is_always: impl Fn(u32) -> bool,
    ) -> Result<SpecialTokens, TokenizerError> {
        for id in &ids {
            let bytes = text_of(texts, *id).len();
            if bytes > SPECIAL_BYTES_MAX {
                return Err(TokenizerError::SpecialLength { id: *id, bytes, limit: SPECIAL_BYTES_MAX });
            }
        }
        ids.sort_unstable_by_key(|id| (text_of(texts, *id), *id));
        // Of equal texts the first is kept and, if that one is not always taken, also the first that is.
        let mut last: Option<u32> = None;
        let mut is_last_always = false;
        ids.retain(|id| {
            let is_same = last.is_some_and(|last| text_of(texts, last) == text_of(texts, *id));
            let is_kept = !is_same || (!is_last_always && is_always(*id));
            if is_kept {
                is_last_always = is_always(*id);
                last = Some(*id);
            }
            is_kept
        });
        let mut kept = vec_of("the special tokens of a vocabulary", ids.len() as u64)?;
        kept.extend_from_slice(&ids);
        let mut starts = Box::new([0; 257]);
        for (first, start) in starts.iter_mut().enumerate() {
            *start = ids.partition_point(|id| usize::from(text_of(texts, *id).as_bytes()[0]) < first) as u32;
        }
        Ok(SpecialTokens { ids: kept, starts })
    }

    /// The tokens in `text` for which `is_taken` holds.
    pub(super) fn find(&self, texts: &StringList, text: &str, is_taken: impl Fn(u32) -> bool) -> Occurrences {
        let bytes = text.as_bytes();
        let mut search = Search { special: self, texts, is_taken, bytes_read: 0 };
        let mut queue: BinaryHeap<Found> =
            (0..bytes.len()).filter_map(|at| search.longest(bytes, at, bytes.len())).collect();
        // Beginnings and ends of the tokens that are taken.
        let mut taken: BTreeMap<usize, (usize, u32)> = BTreeMap::new();
        while let Some(found) = queue.pop() {
            let (at, end) = (found.at.0, found.at.0 + found.bytes);
            let is_covered = taken.range(..at).next_back().is_some_and(|(_, (end, _))| *end > at);
            let next = taken.range(at..).next().map_or(bytes.len(), |(next, _)| *next);
            if is_covered {
                continue;
            } else if end <= next {
                taken.insert(at, (end, found.id.0));
            } else {
                queue.extend(search.longest(bytes, at, next));
            }
        }
        let tokens = taken.into_iter().map(|(at, (_, id))| (at, id)).collect();
        Occurrences { tokens, bytes_read: search.bytes_read }
    }
}

/// One search.
struct Search<'a, F> {
    special: &'a SpecialTokens,
    texts: &'a StringList,
    is_taken: F,
    bytes_read: usize,
}

impl<F: Fn(u32) -> bool> Search<'_, F> {
    /// The longest token that begins at `at` and ends at `end` or before.
    fn longest(&mut self, text: &[u8], at: usize, end: usize) -> Option<Found> {
        let rest = &text[at..end];
        let first = usize::from(*rest.first()?);
        self.bytes_read += 1;
        let [low, high] = [first, first + 1].map(|byte| self.special.starts[byte] as usize);
        // Tokens that begin with the first `depth` bytes of the rest.
        let mut alike = &self.special.ids[low..high];
        let (mut found, mut depth) = (None, 1);
        while !alike.is_empty() {
            // Those that end here come first, by ascending id.
            let ended = alike.partition_point(|id| text_of(self.texts, *id).len() == depth);
            if let Some(id) = alike[..ended].iter().find(|id| (self.is_taken)(**id)) {
                found = Some(Found { bytes: depth, id: Reverse(*id), at: Reverse(at) });
            }
            let Some(byte) = rest.get(depth) else { break };
            self.bytes_read += 1;
            alike = &alike[ended..];
            let byte_of = |id: &u32| text_of(self.texts, *id).as_bytes()[depth];
            alike = &alike[alike.partition_point(|id| byte_of(id) < *byte)..];
            alike = &alike[..alike.partition_point(|id| byte_of(id) == *byte)];
            depth += 1;
        }
        found
    }
}

fn text_of(texts: &StringList, id: u32) -> &str {
    texts.get(id as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tokens and whether each is always taken.
    fn vocabulary(tokens: &[(String, bool)]) -> (StringList, SpecialTokens) {
        let texts: StringList = tokens.iter().map(|(text, _)| text.as_str()).collect();
        let ids = (0..tokens.len() as u32).collect();
        let special = SpecialTokens::new(&texts, ids, |id| tokens[id as usize].1).unwrap();
        (texts, special)
    }

    fn find(tokens: &[(String, bool)], text: &str, all: bool) -> Occurrences {
        let (texts, special) = vocabulary(tokens);
        special.find(&texts, text, |id| all || tokens[id as usize].1)
    }

    /// By the rule itself: token after token, the longest first, each cut out of what is left of the text.
    fn cut_one_after_another(tokens: &[(String, bool)], text: &str, all: bool) -> Vec<(usize, u32)> {
        let mut order: Vec<usize> = (0..tokens.len()).filter(|id| all || tokens[*id].1).collect();
        order.sort_by_key(|id| Reverse(tokens[*id].0.len()));
        let (mut left, mut found) = (vec![(0, text)], Vec::new());
        for id in order {
            let token = tokens[id].0.as_str();
            let mut still_left = Vec::new();
            for (mut at, part) in left {
                for (index, piece) in part.split(token).enumerate() {
                    if index > 0 {
                        found.push((at, id as u32));
                        at += token.len();
                    }
                    still_left.push((at, piece));
                    at += piece.len();
                }
            }
            left = still_left;
        }
        found.sort_unstable();
        found
    }

    fn of(tokens: &[&str]) -> Vec<(String, bool)> {
        tokens.iter().map(|text| ((*text).to_owned(), true)).collect()
    }

    #[test]
    fn the_longer_wins_though_it_begins_later() {
        assert_eq!(find(&of(&["abc", "bcde"]), "abcde", true).tokens, [(1, 1)]);
        assert_eq!(find(&of(&["ab", "bc", "c"]), "abc", true).tokens, [(0, 0), (2, 2)], "the lower id");
        assert_eq!(find(&of(&["bc", "ab", "a"]), "abc", true).tokens, [(0, 2), (1, 0)]);
        assert_eq!(find(&of(&["aa"]), "aaaaa", true).tokens, [(0, 0), (2, 0)], "from the left");
        let both = [("x".to_owned(), false), ("x".to_owned(), true), ("x".to_owned(), true)];
        assert_eq!(
            (find(&both, "x", true).tokens, find(&both, "x", false).tokens),
            (vec![(0, 0)], vec![(0, 1)])
        );
        assert_eq!(find(&of(&["é", "a"]), "éaè", true).tokens, [(0, 0), (2, 1)]);
        assert_eq!(find(&[], "text", true).tokens, []);
    }

    /// By hand: a sum of what is read from each byte on. The byte that ends a likeness or follows a token is read too.
    #[test]
    fn a_text_is_read_for_as_long_as_some_token_goes_on_the_same_way() {
        let tokens = of(&["abc", "bd", "c"]);
        for (text, bytes_read) in
            [("abx", 3 + 2 + 1), ("abc", 3 + 2 + 1), ("xxxx", 4), ("abdc", 3 + 3 + 1 + 1)]
        {
            assert_eq!(find(&tokens, text, true).bytes_read, bytes_read, "{text}");
        }
    }

    #[test]
    fn a_longer_text_than_any_vocabulary_has_is_refused() {
        let texts: StringList = ["a".repeat(256), "b".repeat(257)].iter().map(String::as_str).collect();
        assert!(SpecialTokens::new(&texts, vec![0], |_| true).is_ok());
        let error = SpecialTokens::new(&texts, vec![0, 1], |_| true).err().unwrap().to_string();
        assert_eq!(error, "special token 1 has a text of 257 bytes, and at most 256 are accepted");
    }

    /// Tokens as chat models have them, and runs of spaces.
    fn usual(count: usize) -> Vec<(String, bool)> {
        let named = (0..count).map(|number| (format!("<|reserved_special_token_{number}|>"), false));
        named.chain((2..32).map(|spaces| (" ".repeat(spaces), true))).collect()
    }

    #[test]
    fn the_work_does_not_grow_with_the_number_of_tokens() {
        let text = "Once upon a time <|reserved_special_token_7|> there was a  dog. ".repeat(100);
        let few = find(&usual(10), &text, true);
        let many = find(&usual(10_000), &text, true);
        let places = |found: &Occurrences| found.tokens.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        assert_eq!((few.tokens.len(), places(&few)), (200, places(&many)));
        assert!(many.bytes_read <= 2 * text.len(), "{} of {}", many.bytes_read, text.len());
        // Text in which no token begins is read once, byte by byte.
        let plain = "no-token-here.".repeat(1000);
        assert_eq!(find(&usual(10_000), &plain, true).bytes_read, plain.len());
    }

    #[test]
    fn the_work_grows_as_the_text_does() {
        // The most expensive texts for these vocabularies: beginnings of tokens, runs of all lengths, tokens that
        // compete.
        let nested: Vec<(String, bool)> = (1..=64).map(|bytes| ("a".repeat(bytes), true)).collect();
        let competing: Vec<(String, bool)> = (2..=64)
            .map(|bytes| (format!("{}b", "a".repeat(bytes - 1)), true))
            .chain(of(&["ba", "aaa"]))
            .collect();
        let cases = [
            (usual(1000), "<|reserved_special_token_".to_owned(), 31),
            (usual(1000), " ".repeat(33), 31),
            (nested.clone(), "a".to_owned(), 64),
            (nested, format!("{}b", "a".repeat(63)), 64),
            (competing, format!("{}b", "a".repeat(40)), 64),
        ];
        for (tokens, piece, longest) in cases {
            let read = |bytes: usize| find(&tokens, &piece.repeat(bytes / piece.len()), true).bytes_read;
            let (once, twice) = (read(10_000), read(20_000));
            assert!(twice <= 2 * once + 2 * longest * longest, "{piece:.40}: {once}, then {twice}");
            assert!(once <= 10_000 * (longest + 1), "{piece:.40}: {once}");
        }
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_one_token_after_another_finds(
            tokens in proptest::collection::vec(("[ab\u{e9}]{1,5}", any::<bool>()), 0..12),
            text in "[abc\u{e9}]{0,40}",
            all in any::<bool>(),
        ) {
            let expected = cut_one_after_another(&tokens, &text, all);
            prop_assert_eq!(find(&tokens, &text, all).tokens, expected);
        }
    }
}
