//! What a kernel printed, as the commands show it.
//!
//! Contract: bytes that are not UTF-8 become U+FFFD; both of a kernel's streams go to standard output, in the order of
//! arrival. Text of hostcalls is written while the kernel runs, each piece as soon as the host has it; a printf buffer
//! is read after the kernel has ended.

use crate::commands::output::write_text;
use crate::error::ToolError;
use crate::launch::{LaunchError, Report};
use zrt_loader::print::{PRINTED_BYTES_MAX, Printed};

/// Standard output while a kernel prints.
#[derive(Debug, Default)]
pub(in crate::commands) struct Live {
    is_on: bool,
    /// The beginning of a character whose other bytes have not arrived.
    held: Vec<u8>,
    /// True if the text so far ends within a line.
    is_within_line: bool,
    /// Why nothing can be written any more.
    trouble: Option<ToolError>,
}

impl Live {
    /// The text is shown if `is_on`, and dropped otherwise.
    pub fn new(is_on: bool) -> Live {
        Live { is_on, ..Live::default() }
    }

    /// Writes a piece, except for an incomplete character at its end. Errors are reported at the end.
    pub fn write(&mut self, piece: &[u8]) {
        if self.is_on && self.trouble.is_none() {
            let text = self.whole_characters(piece);
            self.put(&text);
        }
    }

    /// Ends the last line, after a note on what was printed beyond the limit.
    ///
    /// # Errors
    /// The error of whatever could not be written, earlier text included.
    pub fn finish(mut self, result: &Result<Report, LaunchError>) -> Result<(), ToolError> {
        let printed = match result {
            Ok(report) => Some(&report.printed),
            Err(LaunchError::Device { printed, .. }) => Some(&**printed),
            Err(_) => None,
        };
        let ending = self.ending(printed.map(note).unwrap_or_default());
        self.put(&ending);
        self.trouble.map_or(Ok(()), Err)
    }

    /// What was held back, a note, and the end of the line.
    fn ending(&mut self, note: String) -> String {
        if !self.is_on || self.trouble.is_some() {
            return String::new();
        }
        let held = std::mem::take(&mut self.held);
        let mut text = String::from_utf8_lossy(&held).into_owned() + &note;
        if text.chars().next_back().map_or(self.is_within_line, |last| last != '\n') {
            text.push('\n');
        }
        text
    }

    /// What was held back and the piece, without what is held back now.
    fn whole_characters(&mut self, piece: &[u8]) -> String {
        self.held.extend_from_slice(piece);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, behind) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(wrong) = error.error_len() else {
                        rest = behind;
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &behind[wrong..];
                }
            }
        }
        self.held = rest.to_vec();
        text
    }

    fn put(&mut self, text: &str) {
        if let Some(last) = text.chars().next_back() {
            self.is_within_line = last != '\n';
            self.trouble = write_text(text).err();
        }
    }
}

/// The text, as documents have it.
pub(in crate::commands) fn text(printed: &Printed) -> String {
    String::from_utf8_lossy(printed.text()).into_owned() + &note(printed)
}

/// The note that more was printed than is kept, if so.
fn note(printed: &Printed) -> String {
    note_of(printed.dropped_bytes(), printed.dropped_messages())
}

fn note_of(bytes: u64, messages: u64) -> String {
    let mut note = String::new();
    if bytes > 0 {
        note.push_str(&format!("\n[{bytes} more bytes were printed; {PRINTED_BYTES_MAX} are kept]\n"));
    }
    if messages > 0 {
        note.push_str(&format!("\n[{messages} more messages were printed, and only counted]\n"));
    }
    note
}

/// What was printed before an error, as its document has it; `None` if no kernel printed.
pub(in crate::commands) fn before(error: &ToolError) -> Option<String> {
    match error.untold() {
        ToolError::Launch(LaunchError::Device { printed, .. }) => {
            Some(text(printed)).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zrt_loader::print::hostcall::Services;

    /// All that is written, of pieces.
    fn shown(pieces: &[&[u8]]) -> String {
        let mut live = Live::default();
        let mut text: String = pieces.iter().map(|piece| live.whole_characters(piece)).collect();
        text.push_str(&String::from_utf8_lossy(&live.held));
        text
    }

    #[test]
    fn characters_are_not_torn() {
        let euro = "\u{20ac}".as_bytes();
        let mut live = Live::default();
        assert_eq!(live.whole_characters(&[b"1 ", &euro[..1]].concat()), "1 ");
        assert_eq!(live.whole_characters(&euro[1..2]), "");
        assert_eq!(live.whole_characters(&[&euro[2..], b"\n"].concat()), "\u{20ac}\n");
        assert_eq!(shown(&[&euro[..2], b"x"]), "\u{fffd}x", "what never comes is replaced");
    }

    #[test]
    fn what_is_shown_ends_with_a_line() {
        let ending = |is_within_line, held: &[u8], note: &str| {
            let mut live = Live { is_on: true, is_within_line, held: held.to_vec(), trouble: None };
            live.ending(note.to_owned())
        };
        assert_eq!(ending(false, b"", ""), "");
        assert_eq!(ending(true, b"", ""), "\n");
        assert_eq!(ending(true, b"\xe2", ""), "\u{fffd}\n");
        assert_eq!(ending(true, b"", "\n[more]\n"), "\n[more]\n");
        let note = || "note".to_owned();
        assert_eq!(Live { is_within_line: true, ..Live::default() }.ending(note()), "", "nothing is shown");
        let trouble = || Some(ToolError::NoToken);
        assert_eq!(Live { is_on: true, trouble: trouble(), ..Live::default() }.ending(note()), "");
        let failed = Live { trouble: trouble(), ..Live::default() }
            .finish(&Err(LaunchError::BufferLength { buffer: String::new(), bytes: 0 }));
        assert!(matches!(failed, Err(ToolError::NoToken)), "{failed:?}");
    }

    /// Of each kind of loss there is a line, if there was one.
    #[test]
    fn what_was_dropped_is_counted() {
        let bytes = format!("\n[3 more bytes were printed; {PRINTED_BYTES_MAX} are kept]\n");
        let messages = "\n[2 more messages were printed, and only counted]\n".to_owned();
        for (dropped, expected) in [
            ((0, 0), String::new()),
            ((3, 0), bytes.clone()),
            ((0, 2), messages.clone()),
            ((3, 2), bytes + &messages),
        ] {
            assert_eq!(note_of(dropped.0, dropped.1), expected);
        }
    }

    /// By hostcalls of the service that prints (2): one begins a message, the other has its only slot.
    #[test]
    fn the_text_of_a_document_ends_with_what_is_not_in_it() {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        let [format, rest] = [b"%4096d%4", b"096d\0\0\0\0"].map(|text| u64::from_le_bytes(*text));
        for _ in 0..=PRINTED_BYTES_MAX / (2 * 4096) {
            let begin = services.answer(2, [1 | 1 << 5, 0, 0, 0, 0, 0, 0, 0], &mut printed).unwrap();
            let only = begin[0] & !0xFF | 4 << 5 | 1 << 1;
            services.answer(2, [only, format, rest, 0, 0, 0, 0, 0], &mut printed).unwrap();
        }
        let note = format!("\n[8192 more bytes were printed; {PRINTED_BYTES_MAX} are kept]\n");
        assert_eq!(text(&printed)[PRINTED_BYTES_MAX..], note);
    }

    proptest! {
        /// Cutting the text into pieces changes nothing.
        #[test]
        fn pieces_are_shown_as_the_whole(bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(), Just(b'a'), Just(0xE2), Just(0x82), Just(0xAC), Just(0xF0), Just(0x9F)
        ], 0..40), at in any::<[prop::sample::Index; 3]>()) {
            let mut cuts = at.map(|at| at.index(bytes.len() + 1));
            cuts.sort_unstable();
            let [first, second, third] = cuts;
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..third], &bytes[third..]];
            prop_assert_eq!(shown(&pieces), String::from_utf8_lossy(&bytes));
        }
    }
}
