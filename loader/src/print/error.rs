//! Why what a kernel prints has no text.
//!
//! Contract: one sentence.

use thiserror::Error;

/// Why a kernel's output cannot be converted to text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The format string is not valid.
    #[error("the format string {format:?} of a printf {what}")]
    Format {
        /// The string.
        format: String,
        /// What is wrong, as the end of a sentence.
        what: String,
    },
    /// The printf buffer contains something other than messages.
    #[error(
        "the printf buffer is damaged at byte {offset}: {what}; did the kernel write past a buffer of its own?"
    )]
    Record {
        /// Offset from the first message.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// The buffer was too small.
    #[error(
        "the kernel printed more than the {bytes} bytes that the printf buffer holds: print less, or of fewer work-items"
    )]
    Full {
        /// Bytes available for messages.
        bytes: usize,
    },
}
