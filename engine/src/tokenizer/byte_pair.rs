//! Byte-pair encoding by ranked merges: GGUF's tokenizer kinds `gpt2`, of bytes, and `gemma4`, of characters.
//!
//! Text is cut into words ([`super::split`]). Of `gpt2` every byte of a word becomes one printable character (GPT-2's
//! alphabet); of `gemma4` a space is written `▁`, and characters are taken as they are. The ranked merges of the file
//! join them. A final symbol that is not in the vocabulary is split into its bytes (of `gemma4` the tokens `<0xNN>`); a
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
    spelling: Spelling,
    /// Texts of the symbols beyond the vocabulary: results of merges, and bytes, that are not tokens.
    extra_symbols: StringList,
}

/// What the merges begin with.
enum Spelling {
    /// The symbol of each byte.
    Bytes(Box<[u32; 256]>),
    /// Characters. One that neither is a token nor occurs in the merges has its code point, beyond all other symbols.
    Characters {
        /// Numbers of the symbols beyond the vocabulary.
        extra_ids: TextIndex,
        /// The token of each byte.
        byte_tokens: Box<[Option<u32>; 256]>,
        /// A text that does not follow ordinary text begins with a space.
        add_space_prefix: bool,
    },
}

/// What a space is written as where characters are spelled.
const SPACE: &str = "\u{2581}";

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
    /// Of bytes, in GPT-2's alphabet.
    pub(super) fn of_bytes(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
        splitter: Splitter,
    ) -> Result<BytePair, TokenizerError> {
        let mut symbols = Symbols::new(vocabulary)?;
        let mut byte_symbols = Box::new([0; 256]);
        for byte in 0..=255u8 {
            byte_symbols[usize::from(byte)] = symbols.number(byte_to_char(byte).encode_utf8(&mut [0; 4]))?;
        }
        let rules = symbols.merges(metadata)?;
        let spelling = Spelling::Bytes(byte_symbols);
        Ok(BytePair { splitter, rules, spelling, extra_symbols: symbols.extra })
    }

    /// Of characters.
    pub(super) fn of_characters(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
    ) -> Result<BytePair, TokenizerError> {
        let mut symbols = Symbols::new(vocabulary)?;
        let rules = symbols.merges(metadata)?;
        let byte_tokens = std::array::from_fn(|byte| vocabulary.id(&format!("<0x{byte:02X}>")));
        let spelling = Spelling::Characters {
            extra_ids: symbols.extra_ids,
            byte_tokens: Box::new(byte_tokens),
            add_space_prefix: metadata.bool_or("tokenizer.ggml.add_space_prefix", false)?,
        };
        Ok(BytePair { splitter: Splitter::LINES, rules, spelling, extra_symbols: symbols.extra })
    }

    /// Appends the tokens of `text`, which is not empty; `leads` if nothing or a special token precedes it.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, leads: bool, tokens: &mut Vec<u32>) {
        let mut merger = Merger::new();
        match &self.spelling {
            Spelling::Bytes(byte_symbols) => {
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
                    let symbols = word.bytes().map(|byte| byte_symbols[usize::from(byte)]);
                    merger.merge(&self.rules, symbols, |symbol| self.emit(vocabulary, symbol, tokens));
                });
            }
            Spelling::Characters { extra_ids, add_space_prefix, .. } => {
                let mut escaped = text.replace(' ', SPACE);
                if leads && *add_space_prefix {
                    escaped.insert_str(0, SPACE);
                }
                self.splitter.split(&escaped, |word| {
                    let symbols = word.chars().map(|char| self.symbol_of(vocabulary, extra_ids, char));
                    merger.merge(&self.rules, symbols, |symbol| self.emit(vocabulary, symbol, tokens));
                });
            }
        }
    }

    /// The symbol of a character.
    fn symbol_of(&self, vocabulary: &Vocabulary, extra_ids: &TextIndex, char: char) -> u32 {
        let mut utf8 = [0; 4];
        let text = &*char.encode_utf8(&mut utf8);
        // A vocabulary has at most 2^26 tokens, and a code point 21 bits.
        let beyond = vocabulary.len() as u32;
        let extra = || extra_ids.get(&self.extra_symbols, text).map(|extra| beyond + extra);
        let unknown = beyond + EXTRA_SYMBOLS_MAX as u32 + u32::from(char);
        vocabulary.id(text).or_else(extra).unwrap_or(unknown)
    }

    fn emit(&self, vocabulary: &Vocabulary, symbol: u32, tokens: &mut Vec<u32>) {
        let Some(beyond) = (symbol as usize).checked_sub(vocabulary.len()) else {
            tokens.push(symbol);
            return;
        };
        let single = beyond.checked_sub(EXTRA_SYMBOLS_MAX).and_then(|code| char::from_u32(code as u32));
        let text = self.extra_symbols.get(beyond).unwrap_or_default();
        let mut utf8 = [0; 4];
        for char in text.chars().chain(single) {
            let token = vocabulary.id(char.encode_utf8(&mut utf8));
            match &self.spelling {
                Spelling::Characters { byte_tokens, .. } if token.is_none() => {
                    let bytes = char.encode_utf8(&mut utf8).bytes();
                    let token = |byte: u8| byte_tokens[usize::from(byte)].or(vocabulary.special.unknown);
                    tokens.extend(bytes.filter_map(token));
                }
                _ => tokens.extend(token.or(vocabulary.special.unknown)),
            }
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

impl<'a> Symbols<'a> {
    fn new(vocabulary: &'a Vocabulary) -> Result<Symbols<'a>, TokenizerError> {
        let extra_ids = TextIndex::with_capacity(EXTRA_SYMBOLS_MAX)?;
        Ok(Symbols { vocabulary, extra_ids, extra: StringList::default() })
    }

    /// The merges of the file.
    fn merges(&mut self, metadata: &Metadata) -> Result<MergeTable, TokenizerError> {
        let mut text = String::new();
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
            let pair = (self.number(left)?, self.number(right)?);
            let joined = self.number(&text)?;
            pairs.entry(pair).or_insert((index as u32, joined)); // Arrays have fewer than 2^32 elements.
        }
        Ok(MergeTable { pairs })
    }

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
