//! SentencePiece with scores: GGUF's tokenizer kind `llama`.
//!
//! Spaces are written `▁` (U+2581); a text that does not follow ordinary text gets one in front if the model says so;
//! neighbours whose joined text is a token are joined, the best score first; what remains and is not a token becomes
//! its bytes `<0xNN>`, or the unknown token if the vocabulary has no such byte.
//!
//! Contract: any text encodes; memory and time are as [`super::merge`] states them, because a token has at most
//! [`PIECE_BYTES_MAX`] bytes.

use super::TokenizerError;
use super::merge::{Merger, Rules};
use super::unigram::PIECE_BYTES_MAX;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::gguf::Metadata;
use std::cmp::Ordering;

pub(super) struct SentencePiece {
    scores: Vec<f32>,
    byte_tokens: [Option<u32>; 256],
    add_space_prefix: bool,
}

/// What a space is written as.
const SPACE: &str = "\u{2581}";

/// Symbols are stretches of the text: begin and end in bytes.
struct Stretches<'a> {
    vocabulary: &'a Vocabulary,
    scores: &'a [f32],
    text: &'a str,
}

/// A score, ordered as `f32::total_cmp` does.
#[derive(Clone, Copy)]
struct Score(f32);

impl SentencePiece {
    pub(super) fn new(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<SentencePiece, TokenizerError> {
        const KEY: &str = "tokenizer.ggml.scores";
        let scores = metadata.f32s(KEY)?.to_vec();
        if scores.len() != vocabulary.len() {
            return Err(TokenizerError::Length { key: KEY, found: scores.len(), tokens: vocabulary.len() });
        }
        for id in 0..vocabulary.len() {
            let bytes = vocabulary.texts().get(id).unwrap_or_default().len();
            if bytes > PIECE_BYTES_MAX {
                return Err(TokenizerError::PieceLength { id: id as u32, bytes, limit: PIECE_BYTES_MAX });
            }
        }
        let byte_tokens = std::array::from_fn(|byte| vocabulary.id(&format!("<0x{byte:02X}>")));
        let add_space_prefix = metadata.bool_or("tokenizer.ggml.add_space_prefix", true)?;
        Ok(SentencePiece { scores, byte_tokens, add_space_prefix })
    }

    /// Appends the tokens of `text`, which is not empty; `leads` if nothing or a special token precedes it.
    pub(super) fn encode(&self, vocabulary: &Vocabulary, text: &str, leads: bool, tokens: &mut Vec<u32>) {
        let mut escaped = String::with_capacity(text.len() + SPACE.len());
        if leads && self.add_space_prefix {
            escaped.push_str(SPACE);
        }
        for (index, part) in text.split(' ').enumerate() {
            if index > 0 {
                escaped.push_str(SPACE);
            }
            escaped.push_str(part);
        }
        let rules = Stretches { vocabulary, scores: &self.scores, text: &escaped };
        let symbols = escaped.char_indices().map(|(at, char)| (at, at + char.len_utf8()));
        Merger::new().merge(&rules, symbols, |(begin, end)| {
            let part = &escaped[begin..end];
            match vocabulary.id(part) {
                Some(id) => tokens.push(id),
                None => {
                    tokens.extend(part.bytes().filter_map(|byte| {
                        self.byte_tokens[usize::from(byte)].or(vocabulary.special.unknown)
                    }))
                }
            }
        });
    }
}

impl Rules for Stretches<'_> {
    type Symbol = (usize, usize);
    type Urgency = Score;

    fn join(&self, left: (usize, usize), right: (usize, usize)) -> Option<(Score, (usize, usize))> {
        if right.1 - left.0 > PIECE_BYTES_MAX {
            return None;
        }
        let id = self.vocabulary.id(&self.text[left.0..right.1])?;
        Some((Score(self.scores[id as usize]), (left.0, right.1)))
    }
}

/// Bytes that a token stands for.
pub(super) fn piece(text: &str, kind: TokenKind, bytes: &mut Vec<u8>) {
    let hexadecimal = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    let byte =
        hexadecimal.filter(|digits| digits.len() == 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match byte.filter(|_| kind == TokenKind::Byte) {
        Some(byte) => bytes.push(byte),
        None => bytes.extend_from_slice(text.replace(SPACE, " ").as_bytes()),
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        // -0 and +0 are the same score, so that position decides between them.
        if self.0 == other.0 { Ordering::Equal } else { self.0.total_cmp(&other.0) }
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Score) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_in_order_and_both_zeros_are_one() {
        let ascending = [f32::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-30, 7.0, f32::INFINITY, f32::NAN];
        for (at, one) in ascending.into_iter().enumerate() {
            for (beside, other) in ascending.into_iter().enumerate() {
                let wanted = if one == 0.0 && other == 0.0 { Ordering::Equal } else { at.cmp(&beside) };
                let (one, other) = (Score(one), Score(other));
                assert_eq!(
                    (one.cmp(&other), one.partial_cmp(&other)),
                    (wanted, Some(wanted)),
                    "{at} {beside}"
                );
                assert_eq!(one == other, wanted.is_eq(), "{at} {beside}");
            }
        }
    }
}
