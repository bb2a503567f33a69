//! Decoder and printer against a corpus of words with llvm-mc's text.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod corpus;

use zrt_isa::resources::WaveSize::{self, Wave32, Wave64};
use zrt_isa::{DecodeError, decode, decode_for};

#[test]
fn text_and_length_match() {
    assert!(check(Wave32) > 600);
}

#[test]
fn text_and_length_match_in_wave64() {
    assert!(check(Wave64) > 20);
}

/// Returns how many lines there are.
fn check(wave_size: WaveSize) -> usize {
    let corpus = corpus::lines(wave_size);
    let count = corpus.len();
    for (words, text) in corpus {
        match decode_for(&words, wave_size) {
            Ok(instruction) => {
                assert_eq!(instruction.text(wave_size).to_string(), text, "{words:08x?}");
                assert_eq!(instruction.dword_count as usize, words.len(), "{words:08x?} is {text}");
            }
            Err(DecodeError::Unknown { word, .. }) => {
                assert_eq!(text, "-", "{words:08x?}");
                assert_eq!(word, words[0]);
            }
            Err(error) => panic!("{words:08x?} is {text}, not {error}"),
        }
    }
    count
}

#[test]
fn cut_words_are_truncated() {
    for (words, text) in corpus::lines(Wave32).into_iter().filter(|(_, text)| *text != "-") {
        for available in 0..words.len() {
            match decode(&words[..available]) {
                Err(DecodeError::Truncated { needed, available: reported }) => {
                    assert_eq!(reported as usize, available);
                    assert!((available + 1..=words.len()).contains(&(needed as usize)), "{text}: {needed}");
                }
                other => panic!("{available} dwords of {text} give {other:?}"),
            }
        }
    }
}

#[test]
fn words_behind_do_not_matter() {
    for (words, text) in corpus::lines(Wave32).into_iter().filter(|(_, text)| *text != "-") {
        let mut longer = words.clone();
        longer.extend([0xffff_ffff, 0, 0xbf80_0000]);
        assert_eq!(decode(&longer), decode(&words), "{text}");
    }
}
