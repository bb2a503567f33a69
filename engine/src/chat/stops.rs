//! Texts that end an answer, found while the answer streams.
//!
//! Contract: what [`StopTexts::push`] and [`StopTexts::finish`] return, joined, is the answer up to the stop text that
//! is complete first, or all of it, however it is cut into pieces; of two that are complete at once, the longer one
//! counts. No part of a stop text that then completes is ever returned. What is held back is the longest
//! end of the answer with which a stop text begins, shorter than the longest stop text. Cost of a piece: its length and
//! what is held back, times the stop texts.

use thiserror::Error;

/// Maximum number of stop texts.
pub const STOPS_MAX: usize = 16;
/// Maximum number of bytes of one.
pub const STOP_BYTES_MAX: usize = 256;

/// Stop texts, and the end of the answer that may be the beginning of one.
#[derive(Clone, Debug, Default)]
pub struct StopTexts {
    stops: Vec<String>,
    held: String,
    is_found: bool,
}

/// A stop text that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum StopError {
    #[error("a stop text is empty: it would end every answer before it begins")]
    Empty,
    #[error("a stop text has {bytes} bytes, and at most {STOP_BYTES_MAX} are accepted")]
    Length { bytes: usize },
    #[error("{count} stop texts are more than the {STOPS_MAX} that are accepted")]
    Count { count: usize },
}

impl StopTexts {
    /// Checks the texts.
    pub fn new(stops: &[String]) -> Result<StopTexts, StopError> {
        if stops.len() > STOPS_MAX {
            return Err(StopError::Count { count: stops.len() });
        }
        for stop in stops {
            match stop.len() {
                0 => return Err(StopError::Empty),
                1..=STOP_BYTES_MAX => {}
                bytes => return Err(StopError::Length { bytes }),
            }
        }
        Ok(StopTexts { stops: stops.to_vec(), held: String::new(), is_found: false })
    }

    /// True if a stop text has been found: nothing more will be returned.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// Takes the next piece of the answer and returns what is certain to belong to it.
    pub fn push(&mut self, piece: &str) -> String {
        if self.is_found {
            return String::new();
        }
        self.held.push_str(piece);
        let ends = self.stops.iter().filter_map(|stop| self.held.find(stop).map(|at| (at + stop.len(), at)));
        if let Some((_, at)) = ends.min() {
            self.is_found = true;
            let mut text = std::mem::take(&mut self.held);
            text.truncate(at);
            return text;
        }
        let could_be_stop = |at: &usize| {
            self.stops.iter().any(|stop| stop.as_bytes().starts_with(&self.held.as_bytes()[*at..]))
        };
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let first = self.held.len().saturating_sub(longest);
        let kept_from = (first..self.held.len())
            .filter(|at| self.held.is_char_boundary(*at))
            .find(could_be_stop)
            .unwrap_or(self.held.len());
        let rest = self.held.split_off(kept_from);
        std::mem::replace(&mut self.held, rest)
    }

    /// Ends the answer: what was held back belongs to it, unless a stop text was found.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(stops: &[&str]) -> StopTexts {
        StopTexts::new(&stops.iter().map(|stop| (*stop).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn pieces_come_out_as_soon_as_they_cannot_be_a_stop() {
        let mut stops = of(&["\nUser:", "</end>"]);
        let parts: Vec<String> =
            ["Hel", "lo\n", "Us", "ual <", "/e", "x</", "end> never"].map(|piece| stops.push(piece)).into();
        assert_eq!(parts, ["Hel", "lo", "", "\nUsual ", "", "</ex", ""]);
        assert!(stops.is_found());
        assert_eq!((stops.push("more"), stops.finish()), (String::new(), String::new()));
    }

    #[test]
    fn what_was_held_back_belongs_to_an_answer_that_ends() {
        let mut stops = of(&["aab"]);
        assert_eq!((stops.push("xaa"), stops.push("a")), ("x".into(), "a".into()));
        assert_eq!(stops.finish(), "aa");
        assert!(!stops.is_found());
    }

    /// Waiting for the longer text would hold back an answer that has ended.
    #[test]
    fn the_text_that_is_complete_first_ends_the_answer() {
        for pieces in [&["axby"][..], &["ax", "by"], &["axb", "y"]] {
            let mut stops = of(&["b", "xby"]);
            let text: String = pieces.iter().map(|piece| stops.push(piece)).collect();
            assert_eq!(text, "ax", "{pieces:?}");
        }
        assert_eq!(of(&["b", "xb"]).push("axb"), "a");
    }

    #[test]
    fn unusable_texts_are_refused() {
        let error = |stops: &[String]| StopTexts::new(stops).unwrap_err();
        assert_eq!(error(&[String::new()]), StopError::Empty);
        assert_eq!(error(&["a".repeat(257)]), StopError::Length { bytes: 257 });
        assert_eq!(error(&vec!["a".into(); 17]), StopError::Count { count: 17 });
    }

    proptest! {
        #[test]
        fn any_pieces_give_the_text_before_the_first_stop(
            text in "[abé]{0,30}",
            stops in proptest::collection::vec("[abé]{1,4}", 0..4),
            cuts in proptest::collection::vec(0..31usize, 0..8),
        ) {
            let ends = stops.iter().filter_map(|stop| text.find(stop).map(|at| (at + stop.len(), at)));
            let expected = ends.min().map_or(&*text, |(_, at)| &text[..at]);
            let chars: Vec<char> = text.chars().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            cuts.extend([0, chars.len()]);
            cuts.sort_unstable();
            let mut matcher = StopTexts::new(&stops).unwrap();
            let mut found = String::new();
            for pair in cuts.windows(2) {
                found += &matcher.push(&chars[pair[0]..pair[1]].iter().collect::<String>());
                // No end of what came out may be completed to a stop that begins in it.
                prop_assert!(expected.starts_with(&found));
            }
            found += &matcher.finish();
            prop_assert_eq!(found, expected);
        }
    }
}
