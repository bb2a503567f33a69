//! Byte-level byte-pair encoding: GGUF's tokenizer kind `gpt2`.
//!
//! Text is cut into words ([`super::split`]); every byte of a word becomes one printable character (GPT-2's alphabet);
//! the ranked merges of the file join them. A final symbol that is not in the vocabulary is split into its bytes; a
//! byte without a token becomes the unknown token, or nothing if there is none (only a vocabulary without all 256 bytes
//! loses text this way).
//!
//! Contract: any text encodes; memory and time are as [`super::merge`] states them.

use super::TokenizerError;
use super::merge::{Merger, Rules};
use super::split::Splitter;
use super::text_index::TextIndex;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::gguf::{GgufError, Metadata, StringList};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of symbols that are not tokens: the published vocabularies have none, and one with a token for each
/// byte needs none.
const EXTRA_SYMBOLS_MAX: usize = 1 << 14;

pub(super) struct BytePair {
    splitter: Splitter,
    rules: MergeTable,
    /// Symbol of each single byte.
    byte_symbols: [u32; 256],
    /// Texts of the symbols beyond the vocabulary: results of merges, and bytes, that are not tokens.
    extra_symbols: StringList,
}

/// Merge rules by pair of symbols. A symbol below the vocabulary's size is the token of that id.
struct MergeTable {
    pairs: HashMap<(u32, u32), (u32, u32)>,
}

/// Assigns numbers to symbols while the tables are built.
struct Symbols<'a> {
    vocabulary: &'a Vocabulary,
    extra_ids: TextIndex,
    extra: StringList,
}

impl BytePair {
    pub(super) fn new(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
        splitter: Splitter,
    ) -> Result<BytePair, TokenizerError> {
        let extra_ids = TextIndex::with_capacity(EXTRA_SYMBOLS_MAX)?;
        let mut symbols = Symbols { vocabulary, extra_ids, extra: StringList::default() };
        let mut byte_symbols = [0; 256];
        let mut text = String::new();
        for byte in 0..=255u8 {
            text.clear();
            text.push(byte_to_char(byte));
            byte_symbols[usize::from(byte)] = symbols.number(&text)?;
        }
        let merges = metadata.strings("tokenizer.ggml.merges")?;
        let mut pairs: HashMap<(u32, u32), (u32, u32)> = HashMap::new();
        let bytes = merges.len() as u64 * size_of::<[u32; 4]>() as u64;
        let memory = |_| GgufError::Memory { what: "the merge rules", bytes };
        pairs.try_reserve(merges.len()).map_err(memory)?;
        for (index, merge) in merges.iter().enumerate() {
            // The first character of the left symbol may itself be a space; the separator comes later.
            let first = merge.chars().next().map_or(0, char::len_utf8);
            let space = merge[first..].find(' ').map(|at| first + at).filter(|at| at + 1 < merge.len());
            let Some(space) = space else {
                return Err(TokenizerError::Merge { index, text: merge.into() });
            };
            let (left, right) = (&merge[..space], &merge[space + 1..]);
            text.clear();
            text.push_str(left);
            text.push_str(right);
            let pair = (symbols.number(left)?, symbols.number(right)?);
            let joined = symbols.number(&text)?;
            pairs.entry(pair).or_insert((index as u32, joined)); // Arrays have fewer than 2^32 elements.
        }
        let extra_symbols = symbols.extra;
        Ok(BytePair { splitter, rules: MergeTable { pairs }, byte_symbols, extra_symbols })
    }

    /// Appends the tokens of `text`.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, tokens: &mut Vec<u32>) {
        let mut merger = Merger::new();
        let mut spelled = String::new();
        self.splitter.split(text, |word| {
            if self.splitter.whole_words_first {
                spelled.clear();
                spelled.extend(word.bytes().map(byte_to_char));
                if let Some(id) = vocabulary.id(&spelled) {
                    tokens.push(id);
                    return;
                }
            }
            let symbols = word.bytes().map(|byte| self.byte_symbols[usize::from(byte)]);
            merger.merge(&self.rules, symbols, |symbol| self.emit(vocabulary, symbol, tokens));
        });
    }

    fn emit(&self, vocabulary: &Vocabulary, symbol: u32, tokens: &mut Vec<u32>) {
        let Some(beyond) = (symbol as usize).checked_sub(vocabulary.len()) else {
            tokens.push(symbol);
            return;
        };
        let mut utf8 = [0; 4];
        for char in self.extra_symbols.get(beyond).unwrap_or_default().chars() {
            let token = vocabulary.id(char.encode_utf8(&mut utf8)).or(vocabulary.special.unknown);
            tokens.extend(token);
        }
    }
}

impl Rules for MergeTable {
    type Symbol = u32;
    type Urgency = Reverse<u32>;

    fn join(&self, left: u32, right: u32) -> Option<(Reverse<u32>, u32)> {
        self.pairs.get(&(left, right)).map(|(rank, joined)| (Reverse(*rank), *joined))
    }
}

impl Symbols<'_> {
    fn number(&mut self, text: &str) -> Result<u32, TokenizerError> {
        if let Some(token) = self.vocabulary.id(text) {
            return Ok(token);
        }
        let beyond = match self.extra_ids.get(&self.extra, text) {
            Some(known) => known,
            None if self.extra.len() == EXTRA_SYMBOLS_MAX => {
                return Err(TokenizerError::Symbols { limit: EXTRA_SYMBOLS_MAX });
            }
            None => {
                let number = self.extra.len() as u32; // Below EXTRA_SYMBOLS_MAX.
                self.extra.push(text)?;
                self.extra_ids.insert(&self.extra, number);
                number
            }
        };
        Ok(self.vocabulary.len() as u32 + beyond)
    }
}

/// Bytes that a token stands for: its characters by the alphabet; text of special tokens, and characters that are
/// not in the alphabet, as they are.
pub(super) fn piece(text: &str, kind: TokenKind, bytes: &mut Vec<u8>) {
    let spelled = matches!(kind, TokenKind::Normal | TokenKind::Unused | TokenKind::Byte);
    for char in text.chars() {
        match char_to_byte(char).filter(|_| spelled) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Bytes that stand for themselves in GPT-2's alphabet: the visible characters of Latin-1, soft hyphen excepted.
const fn is_visible(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The alphabet's character for each byte: itself if visible, else the next one from U+0100 on.
const ALPHABET: [char; 256] = {
    let mut alphabet = ['\0'; 256];
    let mut byte = 0;
    let mut hidden = 0;
    while byte < 256 {
        if is_visible(byte as u8) {
            alphabet[byte] = byte as u8 as char;
        } else {
            alphabet[byte] = match char::from_u32(0x100 + hidden) {
                Some(char) => char,
                None => panic!("U+0100..U+0144 are characters"),
            };
            hidden += 1;
        }
        byte += 1;
    }
    alphabet
};

fn byte_to_char(byte: u8) -> char {
    ALPHABET[usize::from(byte)]
}

fn char_to_byte(char: char) -> Option<u8> {
    match u32::from(char) {
        code @ 0..=0xff => Some(code as u8).filter(|byte| is_visible(*byte)),
        // The hidden bytes in order: 0x00..=0x20, 0x7f..=0xa0, 0xad.
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121) as u8 + 0x7f),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_gpt2s() {
        // Characters as in GPT-2's published vocabulary: space Ġ, line feed Ċ, tab ĉ, soft hyphen Ń.
        assert_eq!([b' ', b'\n', b'\t', 0xad, b'A', 0xc3].map(byte_to_char), ['Ġ', 'Ċ', 'ĉ', 'Ń', 'A', 'Ã']);
        for byte in 0..=255 {
            assert_eq!(char_to_byte(byte_to_char(byte)), Some(byte));
        }
        for char in ['\u{a0}', ' ', '\u{144}', '▁', '天'] {
            assert_eq!(char_to_byte(char), None);
        }
    }
}
