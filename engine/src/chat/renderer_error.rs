//! What the renderer says about a template, in words for a [`ChatError`].
//!
//! Contract: one line without control characters, of at most [`limits::MESSAGE_BYTES_MAX`] bytes.

use super::{ChatError, limits};
use minijinja::Error;

/// An error of the renderer's own reader.
pub(super) fn syntax(error: &Error) -> ChatError {
    ChatError::Syntax { line: error.line().unwrap_or(1), detail: detail(error) }
}

/// What the renderer says, in one line that is not too long.
pub(super) fn detail(error: &Error) -> String {
    shortened(error.detail().map_or_else(|| error.kind().to_string(), str::to_owned).as_str())
}

/// A text in one line that is not too long.
pub(super) fn shortened(text: &str) -> String {
    let mut end = text.len().min(limits::MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(char::is_control, " ")
}
