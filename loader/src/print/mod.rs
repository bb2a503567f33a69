//! What device code prints: text of `printf` and of failed assertions.
//!
//! Contract: bytes in, text out. Everything that a kernel wrote is hostile: nothing panics, text and messages are bounded
//! ([`PRINTED_BYTES_MAX`] and the limits beside), and what has no meaning is an error that says so. Set-up and service only,
//! never on the path of a token. There are two ways, which a kernel's implicit arguments ask for:
//!
//! | way | implicit argument | compilers use it for | read |
//! |---|---|---|---|
//! | [`buffer`] | `hidden_printf_buffer` | OpenCL; HIP with `-mprintf-kind=buffered` | when the kernel has ended |
//! | [`hostcall`] | `hidden_hostcall_buffer` | HIP with `-mprintf-kind=hostcall`; `assert` of HIP | while it runs, and it waits |
//!
//! Not run on a card.

pub mod buffer;
mod format;
mod formats;
pub mod hostcall;
mod number;

pub use formats::PrintFormats;
pub(crate) use formats::parse as parse_formats;

use thiserror::Error;

/// Most text that is kept of one launch, in bytes.
pub const PRINTED_BYTES_MAX: usize = 16 << 20;

/// Most bytes of formats and text that messages of a printf buffer are made from; later ones are counted.
const WORK_BYTES_MAX: usize = 8 * PRINTED_BYTES_MAX;

/// Why what a kernel printed has no text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The format string cannot be followed.
    #[error("the format string {format:?} of a printf {what}")]
    Format {
        /// The string.
        format: String,
        /// What is wrong, as the end of a sentence.
        what: String,
    },
    /// The printf buffer has something else than messages.
    #[error(
        "the printf buffer is damaged at byte {offset}: {what}; did the kernel write past a buffer of its own?"
    )]
    Record {
        /// From the first message.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// The buffer was too small.
    #[error(
        "the kernel printed more than the {bytes} bytes that the printf buffer holds: print less, or of fewer work-items"
    )]
    Full {
        /// Room for messages.
        bytes: usize,
    },
}

/// What a launch has printed, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    text: Vec<u8>,
    dropped_bytes: u64,
    dropped_messages: u64,
    /// Bytes of formats and text so far.
    work_bytes: usize,
    /// The last message to standard error: its place in the text.
    complaint: Option<(usize, usize)>,
}

impl Printed {
    /// The text, whichever stream it was meant for.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes beyond [`PRINTED_BYTES_MAX`], of messages that were made.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// Messages that were not made, because there was too much before them.
    pub fn dropped_messages(&self) -> u64 {
        self.dropped_messages
    }

    /// Whether there is no room for text, or making it has cost as much as it may.
    fn is_full(&self) -> bool {
        self.text.len() == PRINTED_BYTES_MAX || self.work_bytes >= WORK_BYTES_MAX
    }

    /// Counts a message that is not made.
    fn drop_message(&mut self) {
        self.dropped_messages += 1;
    }

    /// The last message that was meant for standard error, as failed assertions are.
    pub fn complaint(&self) -> Option<&[u8]> {
        let (start, end) = self.complaint?;
        self.text.get(start..end)
    }

    /// Appends a message: a format and its arguments. Its length in bytes, whether they were kept or not.
    fn message(
        &mut self,
        format: &[u8],
        values: format::Values<'_>,
        is_complaint: bool,
    ) -> Result<usize, PrintError> {
        let mut message = Vec::new();
        let outcome = format::render(format, values, &mut message);
        self.work_bytes = self.work_bytes.saturating_add(format.len()).saturating_add(message.len());
        let kept = message.len().min(PRINTED_BYTES_MAX - self.text.len());
        let start = self.text.len();
        self.text.extend_from_slice(&message[..kept]);
        self.dropped_bytes += (message.len() - kept) as u64;
        if is_complaint {
            self.complaint = Some((start, start + kept));
        }
        outcome.map(|()| message.len())
    }
}
