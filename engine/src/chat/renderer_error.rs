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

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::{Environment, ErrorKind};

    #[test]
    fn a_long_text_ends_at_a_whole_character_and_has_no_control_characters() {
        assert_eq!(shortened("a\nb\u{1b}[2Jc\u{9b}d"), "a b [2Jc d");
        assert_eq!(shortened(&"a".repeat(500)), "a".repeat(500));
        assert_eq!(shortened(&"a".repeat(501)), "a".repeat(500));
        // Byte 500 is the second of a character.
        assert_eq!(shortened(&format!("a{}", "é".repeat(300))), format!("a{}", "é".repeat(249)));
    }

    #[test]
    fn the_renderers_words_and_line_are_kept() {
        let mut environment = Environment::new();
        let error = environment.add_template("t", "a\n{% if %}").unwrap_err();
        let expected = ChatError::Syntax { line: 2, detail: "unexpected end of block".into() };
        assert_eq!(syntax(&error), expected);
        // Without words of its own it is named by its kind, and without a line it is of the first.
        let bare = minijinja::Error::from(ErrorKind::UnknownMethod);
        assert_eq!(syntax(&bare), ChatError::Syntax { line: 1, detail: "unknown method".into() });
    }
}
