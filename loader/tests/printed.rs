//! Arbitrary bytes in place of what kernels print: nothing panics, and the text stays within its limits.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use proptest::prelude::*;
use zrt_loader::print::hostcall::{SLOT_QUADWORDS, Services};
use zrt_loader::print::{PRINTED_BYTES_MAX, PrintFormats, Printed, buffer};

/// One message by hostcalls: a format and slots of arguments.
fn message(services: &mut Services, printed: &mut Printed, content: &[u8]) -> bool {
    let mut desc = services.answer(2, [1 | 1 << 5, 0, 0, 0, 0, 0, 0, 0], printed).unwrap()[0] & !0xFF;
    let pieces: Vec<&[u8]> = content.chunks(56).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let mut slot = [0; SLOT_QUADWORDS];
        for (place, eight) in slot[1..].iter_mut().zip(piece.chunks(8)) {
            *place = eight.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        let ends = u64::from(index + 1 == pieces.len()) << 1;
        slot[0] = desc | (piece.len().div_ceil(8) as u64) << 5 | ends;
        match services.answer(2, slot, printed) {
            Ok([answer, _]) if ends == 0 => desc = answer & !0xFF,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

proptest! {
    #[test]
    fn formats_never_panic(format in "(%[-+ #0]{0,2}([0-9]{0,5}|\\*)(\\.([0-9]{0,5}|\\*))?(v[0-9]{1,2})?[hljztL]{0,2}[a-zA-Z%]|[ -~]){0,12}",
                           arguments in proptest::collection::vec(any::<u8>(), 0..120)) {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        let content = [format.as_bytes(), &[0; 8][format.len() % 8..], &arguments].concat();
        message(&mut services, &mut printed, &content);
        prop_assert!(printed.text().len() <= PRINTED_BYTES_MAX);
    }

    #[test]
    fn slots_never_panic(requests in proptest::collection::vec((0_u32..6, any::<[u64; SLOT_QUADWORDS]>()), 0..40)) {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        for (service, slot) in requests {
            let _ = services.answer(service, slot, &mut printed);
        }
    }

    #[test]
    fn buffers_never_panic(used in any::<u32>(), content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [&used.to_le_bytes()[..], &[0; 4], &content].concat();
        let mut printed = Printed::default();
        let _ = buffer::read(&bytes, &PrintFormats::default(), &mut printed);
        prop_assert!(printed.text().len() <= PRINTED_BYTES_MAX);
    }
}

/// A kernel that prints forever does not exhaust memory.
#[test]
fn text_beyond_the_limit_is_counted() {
    let (mut services, mut printed) = (Services::default(), Printed::default());
    let content = [&b"%4096d%4096d%4096d%4096d\0"[..], &[0; 7 + 32]].concat();
    let messages = PRINTED_BYTES_MAX / (4 * 4096) + 3;
    for _ in 0..messages {
        assert!(message(&mut services, &mut printed, &content));
    }
    assert_eq!(printed.text().len(), PRINTED_BYTES_MAX);
    assert_eq!(printed.dropped_bytes(), 3 * 4 * 4096);
}
