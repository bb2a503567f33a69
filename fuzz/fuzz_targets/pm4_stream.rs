//! Any words as a stream of packets: walked, printed, linted; what parses is emitted again and must be the same words.
#![no_main]

use core::fmt::Write;
use libfuzzer_sys::fuzz_target;
use zrt_pm4::registers::{DispatchInitiator, ResourceLimits, TmpringSize};
use zrt_pm4::{Listing, Reader, lint};

/// Takes text and throws it away.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _: &str) -> core::fmt::Result {
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let words: Vec<u32> =
        data.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();

    write!(Nowhere, "{}", Listing(&words)).expect("printing does not fail");
    lint(&words, &mut |finding| write!(Nowhere, "{finding}").expect("printing does not fail"));

    let mut walked = 0;
    for item in Reader::new(&words) {
        let Ok(item) = item else { break };
        assert_eq!(item.offset, walked, "items follow each other");
        walked += item.words.len();
        let Ok(Some(packet)) = item.parse() else { continue };
        let mut again = vec![0xa5a5_a5a5; packet.dword_len()];
        packet.emit(&mut again).expect("what was parsed can be emitted");
        assert_eq!(again, item.words);
    }
    assert!(walked <= words.len());

    for word in words {
        if let Ok(value) = TmpringSize::from_word(word) {
            assert_eq!(value.to_word(), Ok(word));
        }
        if let Ok(value) = ResourceLimits::from_word(word) {
            assert_eq!(value.to_word(), Ok(word));
        }
        if let Ok(value) = DispatchInitiator::from_word(word) {
            assert_eq!(value.to_word(), Ok(word));
        }
    }
});
