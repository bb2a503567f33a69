//! The token list of a model: texts, kinds, special ids, and the bytes each token stands for.
//!
//! Contract: built once from metadata; look-ups afterwards do not allocate. Ids are positions in the list.

use super::TokenizerError;
use super::special_tokens::SpecialTokens;
use super::text_index::TextIndex;
use crate::gguf::{Metadata, StringList, vec_of};

/// What a token is, by GGUF's numbers in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// Stands for text that cannot be expressed.
    Unknown,
    /// Steers the model and has no text of its own.
    Control,
    /// Text that is always taken as one token.
    UserDefined,
    /// A place holder.
    Unused,
    /// One byte, written `<0xNN>`.
    Byte,
}

pub(super) struct Vocabulary {
    texts: StringList,
    kinds: Vec<TokenKind>,
    ids: TextIndex,
    /// Bytes of all tokens one after another, and the end of each.
    pieces: Vec<u8>,
    piece_ends: Vec<u32>,
    pub(super) special: SpecialIds,
    /// Control, unknown and user-defined tokens that have a text.
    special_tokens: SpecialTokens,
}

/// Ids with a meaning. A missing one is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Beginning of a text.
    pub bos: Option<u32>,
    /// End of a text.
    pub eos: Option<u32>,
    /// End of a turn in a conversation.
    pub eot: Option<u32>,
    /// End of a message.
    pub eom: Option<u32>,
    /// Stands for text that cannot be expressed.
    pub unknown: Option<u32>,
}

/// A part of a text to be encoded.
#[derive(Clone, Copy)]
pub(super) enum Fragment<'a> {
    Text(&'a str),
    Token(u32),
}

impl Vocabulary {
    /// Reads the list. `piece` appends the bytes that a token of some text and kind stands for; `defaults` are used for
    /// special ids that the file does not name.
    pub(super) fn from_metadata(
        metadata: &Metadata,
        defaults: SpecialIds,
        piece: impl Fn(&str, TokenKind, &mut Vec<u8>),
    ) -> Result<Vocabulary, TokenizerError> {
        let texts = metadata.strings("tokenizer.ggml.tokens")?.clone();
        if texts.is_empty() {
            return Err(TokenizerError::Empty);
        }
        let kinds = read_kinds(metadata, texts.len())?;
        let mut ids = TextIndex::with_capacity(texts.len())?;
        // No piece is longer than the text of its token.
        let mut pieces = vec_of("the pieces of a vocabulary", texts.text_bytes() as u64)?;
        let mut piece_ends = vec_of("the pieces of a vocabulary", texts.len() as u64)?;
        let mut special_tokens: Vec<u32> = Vec::new();
        for (id, (text, kind)) in texts.iter().zip(&kinds).enumerate() {
            let id = id as u32; // The reader's limit on array elements is below 2^32.
            ids.insert(&texts, id);
            piece(text, *kind, &mut pieces);
            piece_ends.push(pieces.len() as u32); // Texts have fewer than 2^32 bytes together.
            let is_special = matches!(kind, TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined);
            if is_special && !text.is_empty() {
                special_tokens.push(id);
            }
        }
        let is_always = |id: u32| kinds[id as usize] == TokenKind::UserDefined;
        let special_tokens = SpecialTokens::new(&texts, special_tokens, is_always)?;
        let special = read_special_ids(metadata, defaults, texts.len())?;
        Ok(Vocabulary { texts, kinds, ids, pieces, piece_ends, special, special_tokens })
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn texts(&self) -> &StringList {
        &self.texts
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(&self.texts, text)
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(super) fn piece(&self, id: u32) -> Option<&[u8]> {
        let index = id as usize;
        let end = *self.piece_ends.get(index)?;
        let begin = if index == 0 { 0 } else { self.piece_ends[index - 1] };
        Some(&self.pieces[begin as usize..end as usize])
    }

    /// Cuts special tokens out of `text`: user-defined ones always, others with `parse_special` only. A longer token
    /// wins over a shorter one wherever they compete.
    pub(super) fn fragments<'a>(&self, text: &'a str, parse_special: bool) -> Vec<Fragment<'a>> {
        let is_taken = |id| parse_special || self.kind(id) == Some(TokenKind::UserDefined);
        let mut fragments = Vec::new();
        let mut done = 0;
        for (at, id) in self.special_tokens.find(&self.texts, text, is_taken).tokens {
            if done < at {
                fragments.push(Fragment::Text(&text[done..at]));
            }
            fragments.push(Fragment::Token(id));
            done = at + self.texts.get(id as usize).map_or(0, str::len);
        }
        if done < text.len() {
            fragments.push(Fragment::Text(&text[done..]));
        }
        fragments
    }
}

fn read_kinds(metadata: &Metadata, tokens: usize) -> Result<Vec<TokenKind>, TokenizerError> {
    const KEY: &str = "tokenizer.ggml.token_type";
    if metadata.get(KEY).is_none() {
        return Ok(vec![TokenKind::Normal; tokens]);
    }
    let numbers = metadata.i32s(KEY)?;
    if numbers.len() != tokens {
        return Err(TokenizerError::Length { key: KEY, found: numbers.len(), tokens });
    }
    let kind = |number: &i32| match number {
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        _ => TokenKind::Normal,
    };
    Ok(numbers.iter().map(kind).collect())
}

fn read_special_ids(
    metadata: &Metadata,
    defaults: SpecialIds,
    tokens: usize,
) -> Result<SpecialIds, TokenizerError> {
    let read = |key: &'static str, default: Option<u32>| match metadata.get(key) {
        None => Ok(default.filter(|id| (*id as usize) < tokens)),
        Some(_) => match metadata.u32(key)? {
            id if (id as usize) < tokens => Ok(Some(id)),
            found => Err(TokenizerError::TokenId { key, found, tokens }),
        },
    };
    Ok(SpecialIds {
        bos: read("tokenizer.ggml.bos_token_id", defaults.bos)?,
        eos: read("tokenizer.ggml.eos_token_id", defaults.eos)?,
        eot: read("tokenizer.ggml.eot_token_id", defaults.eot)?,
        eom: read("tokenizer.ggml.eom_token_id", defaults.eom)?,
        unknown: read("tokenizer.ggml.unknown_token_id", defaults.unknown)?,
    })
}
