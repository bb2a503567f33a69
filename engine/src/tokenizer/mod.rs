//! Text to tokens and back, as the model file describes it.
//!
//! Four kinds: `gpt2`, byte-level byte-pair encoding with a named pre-tokenizer; `llama`, SentencePiece with scores
//! and byte fallback; `gemma4`, byte-pair encoding of characters with byte fallback; and `t5`, SentencePiece's unigram
//! model. Results are those of llama.cpp, against whose results all kinds are tested; in particular no Unicode
//! normalisation is done but what a file of the kind `t5` brings with it.
//!
//! Contract: encoding and decoding never fail and never panic, whatever the text and the ids; building one from a
//! hostile file is an error at worst. Encoding n bytes takes O(n log n), with `t5` O(n × bytes of the longest piece). A
//! tokenizer is immutable and `Sync`.

mod byte_pair;
mod charsmap;
mod error;
mod merge;
mod sentence_piece;
mod special_tokens;
mod split;
mod stream;
mod text_index;
mod unicode;
mod unigram;
mod vocabulary;

pub use error::TokenizerError;
pub use stream::StreamDecoder;
pub use vocabulary::{SpecialIds, TokenKind};

use crate::gguf::Gguf;
use byte_pair::BytePair;
use sentence_piece::SentencePiece;
use split::Splitter;
use std::borrow::Cow;
use unigram::Unigram;
use vocabulary::{Fragment, Vocabulary};

/// The tokenizer of one model.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    algorithm: Algorithm,
    add_bos: bool,
}

enum Algorithm {
    BytePair(Box<BytePair>),
    SentencePiece(Box<SentencePiece>),
    Unigram(Box<Unigram>),
}

/// Special ids that a SentencePiece file need not name: those of the original Llama vocabulary.
const SENTENCE_PIECE_DEFAULTS: SpecialIds =
    SpecialIds { bos: Some(1), eos: Some(2), eot: None, eom: None, unknown: Some(0) };

/// Likewise of a unigram file: those of the original T5 vocabulary.
const UNIGRAM_DEFAULTS: SpecialIds =
    SpecialIds { bos: None, eos: Some(1), eot: None, eom: None, unknown: Some(2) };

impl Tokenizer {
    /// Builds the tokenizer that the model's metadata describes.
    pub fn from_gguf(gguf: &Gguf) -> Result<Tokenizer, TokenizerError> {
        let metadata = &gguf.metadata;
        let (vocabulary, algorithm, add_bos_default) = match metadata.str("tokenizer.ggml.model")? {
            "gpt2" => {
                let splitter = Splitter::from_name(metadata.str_or("tokenizer.ggml.pre", "default")?)?;
                let vocabulary =
                    Vocabulary::from_metadata(metadata, SpecialIds::default(), byte_pair::piece)?;
                let bpe = BytePair::of_bytes(metadata, &vocabulary, splitter)?;
                (vocabulary, Algorithm::BytePair(Box::new(bpe)), splitter.add_bos_default)
            }
            "llama" => {
                let vocabulary =
                    Vocabulary::from_metadata(metadata, SENTENCE_PIECE_DEFAULTS, sentence_piece::piece)?;
                let sentence_piece = SentencePiece::new(metadata, &vocabulary)?;
                (vocabulary, Algorithm::SentencePiece(Box::new(sentence_piece)), true)
            }
            "t5" => {
                let vocabulary =
                    Vocabulary::from_metadata(metadata, UNIGRAM_DEFAULTS, sentence_piece::piece)?;
                let unigram = Unigram::new(metadata, &vocabulary)?;
                (vocabulary, Algorithm::Unigram(Box::new(unigram)), false)
            }
            "gemma4" => {
                let vocabulary =
                    Vocabulary::from_metadata(metadata, SpecialIds::default(), sentence_piece::piece)?;
                let bpe = BytePair::of_characters(metadata, &vocabulary)?;
                (vocabulary, Algorithm::BytePair(Box::new(bpe)), Splitter::LINES.add_bos_default)
            }
            found => return Err(TokenizerError::Kind { found: found.into() }),
        };
        let add_bos = metadata.bool_or("tokenizer.ggml.add_bos_token", add_bos_default)?;
        Ok(Tokenizer { vocabulary, algorithm, add_bos })
    }

    /// Tokens in the vocabulary.
    pub fn token_count(&self) -> usize {
        self.vocabulary.len()
    }

    /// Ids with a meaning.
    pub fn special_ids(&self) -> SpecialIds {
        self.vocabulary.special
    }

    /// True if [`Tokenizer::encode`] puts the beginning-of-text token in front.
    pub fn adds_bos(&self) -> bool {
        self.add_bos && self.vocabulary.special.bos.is_some()
    }

    /// True if generation ends with `id`: end of text, of a turn or of a message.
    pub fn is_end(&self, id: u32) -> bool {
        let SpecialIds { eos, eot, eom, .. } = self.vocabulary.special;
        [eos, eot, eom].contains(&Some(id))
    }

    /// What kind of token `id` is; `None` outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.vocabulary.kind(id)
    }

    /// The token's text as the file writes it (with `Ġ` or `▁` for spaces); `None` outside the vocabulary.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocabulary.texts().get(id as usize)
    }

    /// The bytes that the token stands for, which need not be whole characters; `None` outside the vocabulary.
    pub fn piece(&self, id: u32) -> Option<&[u8]> {
        self.vocabulary.piece(id)
    }

    /// A prompt as the model expects it: with the beginning-of-text token in front if it asks for one, and with special
    /// tokens such as `<|im_start|>` recognised in the text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.vocabulary.special.bos.filter(|_| self.add_bos).into_iter().collect();
        self.append(text, true, &mut tokens);
        tokens
    }

    /// The text and nothing else: no beginning-of-text token, and what looks like a control token is plain text.
    pub fn encode_plain(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.append(text, false, &mut tokens);
        tokens
    }

    /// A prompt of which some characters stand for others: special tokens are recognised in `text` as it is, and what
    /// lies between them is encoded after `plain` has put the characters back. The beginning-of-text token comes in
    /// front if the model asks for one and the text does not begin with it.
    pub(crate) fn encode_covered<'t>(
        &self,
        text: &'t str,
        plain: impl Fn(&'t str) -> Cow<'t, str>,
    ) -> Vec<u32> {
        let bos = self.vocabulary.special.bos.filter(|_| self.add_bos);
        let mut tokens = Vec::new();
        let mut leads = true;
        for fragment in self.vocabulary.fragments(text, true) {
            match fragment {
                Fragment::Token(id) => tokens.push(id),
                Fragment::Text(part) => self.append_text(&plain(part), leads, &mut tokens),
            }
            leads = matches!(fragment, Fragment::Token(_));
        }
        if let Some(bos) = bos.filter(|bos| tokens.first() != Some(bos)) {
            tokens.insert(0, bos);
        }
        tokens
    }

    fn append(&self, text: &str, parse_special: bool, tokens: &mut Vec<u32>) {
        let mut leads = true;
        for fragment in self.vocabulary.fragments(text, parse_special) {
            match fragment {
                Fragment::Token(id) => tokens.push(id),
                Fragment::Text(part) => self.append_text(part, leads, tokens),
            }
            leads = matches!(fragment, Fragment::Token(_));
        }
    }

    /// Appends the tokens of a text without special tokens; `leads` if nothing or a special token precedes it.
    fn append_text(&self, text: &str, leads: bool, tokens: &mut Vec<u32>) {
        match &self.algorithm {
            Algorithm::BytePair(bpe) => bpe.encode(&self.vocabulary, text, leads, tokens),
            Algorithm::SentencePiece(sentence_piece) => {
                sentence_piece.encode(&self.vocabulary, text, leads, tokens);
            }
            Algorithm::Unigram(unigram) => unigram.encode(&self.vocabulary, text, tokens),
        }
    }

    /// The text of `ids`: the pieces one after another, without control tokens. Bytes that are not UTF-8, and ids
    /// outside the vocabulary, become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut decoder = StreamDecoder::new();
        let mut text: String = ids.iter().map(|id| decoder.push(self, *id)).collect();
        text.push_str(&decoder.finish());
        text
    }
}
