//! Decoding token by token: text comes out as soon as its characters are complete.
//!
//! Contract: the texts of all calls together are exactly what [`Tokenizer::decode`] returns for all ids; at most three
//! bytes are held back.

use super::{TokenKind, Tokenizer};

/// Holds the bytes of a character that is not complete yet.
#[derive(Clone, Debug, Default)]
pub struct StreamDecoder {
    pending: Vec<u8>,
}

impl StreamDecoder {
    /// A decoder at the start of a text.
    pub fn new() -> StreamDecoder {
        StreamDecoder::default()
    }

    /// Takes the next token and returns the text that is complete now.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        match tokenizer.kind(id) {
            Some(TokenKind::Control) => return String::new(),
            Some(_) => self.pending.extend_from_slice(tokenizer.piece(id).unwrap_or(&[])),
            // An impossible byte: it ends any incomplete character and becomes U+FFFD.
            None => self.pending.push(0xff),
        }
        self.take()
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        let rest = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        rest
    }

    fn take(&mut self) -> String {
        let mut text = String::new();
        let mut incomplete = 0;
        let mut chunks = self.pending.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete(invalid) {
                incomplete = invalid.len();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending.drain(..self.pending.len() - incomplete);
        text
    }
}

/// True if `bytes` could become a character when more bytes follow.
fn is_incomplete(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
}
