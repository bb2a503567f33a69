//! Why a conversation has no tokens.

use thiserror::Error;

/// A template that is refused, or a conversation that it cannot render.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The template is longer than any known one.
    #[error("the chat template has {bytes} bytes, and at most {limit} are accepted")]
    Length {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The template is not in the language.
    #[error("line {line} of the chat template: {detail}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        detail: String,
    },
    /// The template has something that is not accepted here.
    #[error("line {line} of the chat template has {what}, which is not accepted")]
    Refused {
        /// The line, from 1.
        line: usize,
        /// What it has.
        what: &'static str,
    },
    /// The template took more than any known one needs.
    #[error("the chat template took more than its {fuel} units of work; it may never end")]
    Fuel {
        /// The limit for this conversation.
        fuel: u64,
    },
    /// The template itself refuses the conversation.
    #[error("the chat template refuses this conversation: {message}")]
    Raised {
        /// Its words.
        message: String,
    },
    /// The template fails on this conversation.
    #[error("line {line} of the chat template failed: {detail}")]
    Render {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        detail: String,
    },
    /// The conversation is too long for any model.
    #[error("the conversation has {bytes} bytes, and at most {limit} are accepted")]
    Conversation {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Contents cannot be kept apart from control tokens.
    #[error("control tokens begin with {found} different characters, and at most {limit} are accepted")]
    Beginnings {
        /// Characters.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The conversation uses every private character that could stand in for another.
    #[error("the conversation or the template has private-use characters of every block of plane 16")]
    StandIns,
    /// A tool's description or arguments are no JSON.
    #[error("no JSON: {detail}")]
    Json {
        /// What is wrong.
        detail: String,
    },
    /// The template's key holds no text.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// No thread could be started, or the renderer failed within itself.
    #[error("the chat template could not be rendered: {detail}")]
    Internal {
        /// What happened.
        detail: String,
    },
}

/// `tokenizer.chat_template` is of another type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MetadataError(pub(super) String);
