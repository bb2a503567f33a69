//! What device code prints: text of `printf` and of failed assertions.
//!
//! Contract: bytes in, text out. Everything that a kernel wrote is untrusted: nothing panics, text and messages are
//! bounded ([`PRINTED_BYTES_MAX`] and the limits next to it), and invalid input is an error that says so. For
//! set-up and services only, never on the path of a token. There are two ways to print; a kernel's implicit
//! arguments select one:
//!
//! | way | implicit argument | compilers use it for | read |
//! |---|---|---|---|
//! | [`buffer`] | `hidden_printf_buffer` | OpenCL; HIP with `-mprintf-kind=buffered` | when the kernel has ended |
//! | [`hostcall`] | `hidden_hostcall_buffer` | HIP with `-mprintf-kind=hostcall`; `assert` of HIP | while it runs, and it waits |
//!
//! Never run on a card.

pub mod buffer;
mod error;
mod format;
mod formats;
pub mod hostcall;
mod number;

pub use error::PrintError;
pub use formats::PrintFormats;
pub(crate) use formats::parse as parse_formats;

/// Most text that is kept for one launch, in bytes.
pub const PRINTED_BYTES_MAX: usize = 16 << 20;

/// Most bytes of formats and text that are processed for messages of a printf buffer; later messages are only
/// counted.
const WORK_BYTES_MAX: usize = 8 * PRINTED_BYTES_MAX;

/// The output of a launch, in the order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    text: Vec<u8>,
    dropped_bytes: u64,
    dropped_messages: u64,
    /// Bytes of formats and text processed so far.
    work_bytes: usize,
    /// The last message to standard error: its range in the text.
    complaint: Option<(usize, usize)>,
}

impl Printed {
    /// The text, whatever stream it was meant for.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes beyond [`PRINTED_BYTES_MAX`], of messages that were processed.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// Messages that were not processed, because too much came before them.
    pub fn dropped_messages(&self) -> u64 {
        self.dropped_messages
    }

    /// Whether there is no space for text, or the allowed work is used up.
    fn is_full(&self) -> bool {
        self.text.len() == PRINTED_BYTES_MAX || self.work_bytes >= WORK_BYTES_MAX
    }

    /// Counts an unprocessed message.
    fn drop_message(&mut self) {
        self.dropped_messages += 1;
    }

    /// The last message to standard error, where failed assertions print.
    pub fn complaint(&self) -> Option<&[u8]> {
        let (start, end) = self.complaint?;
        self.text.get(start..end)
    }

    /// Appends a message from a format and its arguments. Returns its length in bytes, whether it was kept or not.
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
