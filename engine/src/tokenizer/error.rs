//! Why a model's tokenizer was refused.

use crate::gguf::GgufError;
use thiserror::Error;

/// A tokenizer that cannot be built from the metadata of a model file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A key is missing or holds another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// `tokenizer.ggml.model` is of an unknown kind.
    #[error("the tokenizer kind {found:?} is not supported; \"gemma4\", \"gpt2\", \"llama\" and \"t5\" are")]
    Kind {
        /// The value of the key.
        found: Box<str>,
    },
    /// `tokenizer.ggml.pre` is of an unknown kind.
    #[error("the pre-tokenizer {found:?} is not supported; known are {known}")]
    PreTokenizer {
        /// The value of the key.
        found: Box<str>,
        /// The known names.
        known: &'static str,
    },
    /// The vocabulary has no token.
    #[error("the vocabulary is empty")]
    Empty,
    /// A list that goes with the vocabulary has a different length.
    #[error("{key} has {found} entries for a vocabulary of {tokens}")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Its length.
        found: usize,
        /// Tokens in the vocabulary.
        tokens: usize,
    },
    /// A merge rule is not two texts with a space between.
    #[error("merge rule {index} is {text:?}, not two symbols separated by a space")]
    Merge {
        /// Its number.
        index: usize,
        /// Its text.
        text: Box<str>,
    },
    /// The merge rules name too many symbols that are not tokens.
    #[error("more than {limit} symbols of the merge rules are no tokens of the vocabulary")]
    Symbols {
        /// The limit.
        limit: usize,
    },
    /// A special token is too long to be searched for in texts.
    #[error("special token {id} has a text of {bytes} bytes, and at most {limit} are accepted")]
    SpecialLength {
        /// Its id.
        id: u32,
        /// Bytes of its text.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A piece is too long to be searched for in texts.
    #[error("piece {id} has {bytes} bytes, and at most {limit} are accepted")]
    PieceLength {
        /// Its id.
        id: u32,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The map that normalises texts cannot be read.
    #[error("tokenizer.ggml.precompiled_charsmap cannot be read: {why}")]
    Charsmap {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A special token's number is outside the vocabulary.
    #[error("{key} is {found}, but the vocabulary has {tokens} tokens")]
    TokenId {
        /// The metadata key.
        key: &'static str,
        /// The number.
        found: u32,
        /// Tokens in the vocabulary.
        tokens: usize,
    },
}
