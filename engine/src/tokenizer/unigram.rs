//! SentencePiece's unigram model: GGUF's tokenizer kind `t5`.
//!
//! The text is normalised by the model's map, and its spaces as the model says: merged or not, one put first or not,
//! written `▁` (U+2581). Of all ways to cut the result into pieces the one with the largest sum of scores is taken. A
//! user-defined piece counts 0. A character that is no piece counts 10 less than the worst ordinary piece, and stands
//! for itself as the unknown token; neighbouring ones become one token.
//!
//! Contract: any text encodes. Sums are in f64, added from the text's beginning; of equal sums the one whose last piece
//! begins first is taken. Time: for each byte of the text, the pieces that begin there, of at most [`PIECE_BYTES_MAX`]
//! bytes each. Memory: 24 bytes for each byte of the normalised text. Replacements stop once that is [`GROWTH_MAX`]
//! times as long as the text, which no published map comes near.

use super::TokenizerError;
use super::charsmap::Charsmap;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::gguf::{Array, Metadata, Value};

/// Longest piece that counts as text: SentencePiece learns 16 characters at most unless told otherwise.
pub(super) const PIECE_BYTES_MAX: usize = 1024;
/// How much longer than a text its normalised form may become. Unicode's compatibility forms reach 11 (U+FDFA).
const GROWTH_MAX: usize = 16;
/// What an unknown character counts below the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;
/// What a space is written as.
const SPACE: &str = "\u{2581}";

pub(super) struct Unigram {
    scores: Vec<f32>,
    /// Pieces that a text may be cut into, in the order of their bytes.
    sorted: Vec<u32>,
    unknown_score: f64,
    charsmap: Charsmap,
    merges_spaces: bool,
    begins_with_space: bool,
}

/// The best way to cut the text up to some place.
#[derive(Clone, Copy)]
struct Cut {
    sum: f64,
    /// The last piece; `None`: an unknown character.
    token: Option<u32>,
    /// Where it begins.
    begin: u32,
}

impl Unigram {
    pub(super) fn new(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Unigram, TokenizerError> {
        const SCORES: &str = "tokenizer.ggml.scores";
        let scores = metadata.f32s(SCORES)?.to_vec();
        if scores.len() != vocabulary.len() {
            return Err(TokenizerError::Length {
                key: SCORES,
                found: scores.len(),
                tokens: vocabulary.len(),
            });
        }
        let is_piece = |id: &u32| {
            let kind = vocabulary.kind(*id);
            matches!(kind, Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused))
        };
        let mut sorted: Vec<u32> = (0..vocabulary.len() as u32).filter(is_piece).collect();
        let text = |id: u32| vocabulary.texts().get(id as usize).unwrap_or_default();
        if let Some(id) = sorted.iter().find(|id| text(**id).len() > PIECE_BYTES_MAX) {
            return Err(TokenizerError::PieceLength {
                id: *id,
                bytes: text(*id).len(),
                limit: PIECE_BYTES_MAX,
            });
        }
        sorted.retain(|id| !text(*id).is_empty());
        // Of equal texts the first counts: the order of ids stays.
        sorted.sort_by(|a, b| text(*a).cmp(text(*b)));
        sorted.dedup_by(|next, first| text(*next) == text(*first));
        let ordinary =
            (0..vocabulary.len()).filter(|id| vocabulary.kind(*id as u32) == Some(TokenKind::Normal));
        let worst = ordinary.map(|id| scores[id]).fold(f32::MAX, f32::min);
        Ok(Unigram {
            scores,
            sorted,
            unknown_score: f64::from(worst - UNKNOWN_PENALTY),
            charsmap: Charsmap::new(charsmap_bytes(metadata)?)?,
            merges_spaces: metadata.bool_or("tokenizer.ggml.remove_extra_whitespaces", false)?,
            begins_with_space: metadata.bool_or("tokenizer.ggml.add_space_prefix", false)?,
        })
    }

    /// Appends the tokens of `text`.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, tokens: &mut Vec<u32>) {
        let text = self.normalised(text);
        let cuts = self.cuts(vocabulary, &text);
        let (first, mut end) = (tokens.len(), text.len());
        let mut was_unknown = false;
        while end > 0 {
            let cut = cuts[end];
            let is_unknown = cut.token.is_none();
            if !(is_unknown && was_unknown) {
                tokens.extend(cut.token.or(vocabulary.special.unknown));
            }
            (was_unknown, end) = (is_unknown, cut.begin as usize);
        }
        tokens[first..].reverse();
    }

    fn normalised(&self, text: &str) -> String {
        let mut normalised = String::with_capacity(text.len() + SPACE.len());
        let (mut has_begun, mut is_in_word) = (false, false);
        let growth_max = GROWTH_MAX * text.len();
        let mut put = |normalised: &mut String, character: char| {
            if character == ' ' {
                is_in_word = false;
                if !self.merges_spaces {
                    normalised.push_str(SPACE);
                }
                return;
            }
            if !is_in_word {
                is_in_word = true;
                if self.begins_with_space && !has_begun || self.merges_spaces {
                    normalised.push_str(SPACE);
                    has_begun = true;
                }
            }
            normalised.push(character);
        };
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let is_short = normalised.len() < growth_max;
            match self.charsmap.replacement(rest).filter(|_| is_short) {
                Some((bytes, replacement)) => {
                    replacement.chars().for_each(|one| put(&mut normalised, one));
                    rest = &rest[bytes..];
                }
                None => {
                    put(&mut normalised, character);
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        normalised
    }

    /// The best cut up to each byte; places within characters are not reached.
    fn cuts(&self, vocabulary: &Vocabulary, text: &str) -> Vec<Cut> {
        let mut cuts = vec![Cut { sum: f64::MIN, token: None, begin: 0 }; text.len() + 1];
        cuts[0].sum = 0.0;
        for (begin, character) in text.char_indices() {
            let before = cuts[begin].sum;
            let mut consider = |end: usize, score: f64, token: Option<u32>| {
                let sum = before + score;
                if sum > cuts[end].sum {
                    cuts[end] = Cut { sum, token, begin: begin as u32 };
                }
            };
            let mut is_piece = false;
            self.each_piece(vocabulary, &text[begin..], |bytes, id| {
                is_piece |= bytes == character.len_utf8();
                let is_user_defined = vocabulary.kind(id) == Some(TokenKind::UserDefined);
                let score = if is_user_defined { 0.0 } else { f64::from(self.scores[id as usize]) };
                consider(begin + bytes, score, Some(id));
            });
            if !is_piece {
                consider(begin + character.len_utf8(), self.unknown_score, None);
            }
        }
        cuts
    }

    /// Every piece that `text` begins with, the shortest first.
    fn each_piece(&self, vocabulary: &Vocabulary, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes_of = |id: u32| vocabulary.texts().get(id as usize).unwrap_or_default().as_bytes();
        // Pieces that begin with the bytes so far; they are neighbours.
        let mut candidates = &self.sorted[..];
        for (at, byte) in text.bytes().enumerate() {
            // A piece that ends here is the first of them, and has been reported.
            let longer = candidates.partition_point(|id| bytes_of(*id).len() <= at);
            candidates = &candidates[longer..];
            let first = candidates.partition_point(|id| bytes_of(*id)[at] < byte);
            let count = candidates[first..].partition_point(|id| bytes_of(*id)[at] == byte);
            candidates = &candidates[first..first + count];
            match candidates.first() {
                None => return,
                Some(id) if bytes_of(*id).len() == at + 1 => found(at + 1, *id),
                Some(_) => {}
            }
        }
    }
}

/// The map's bytes, which converters store as signed or unsigned ones.
fn charsmap_bytes(metadata: &Metadata) -> Result<&[u8], TokenizerError> {
    const KEY: &str = "tokenizer.ggml.precompiled_charsmap";
    match metadata.get(KEY) {
        None => Ok(&[]),
        Some(Value::Array(Array::U8(bytes))) => Ok(bytes),
        Some(Value::Array(Array::I8(bytes))) => Ok(zerocopy::IntoBytes::as_bytes(&bytes[..])),
        Some(_) => Err(TokenizerError::Charsmap { why: "it is no array of bytes" }),
    }
}
