//! Any bytes: decoding and printing neither panic nor hang, and lengths stay within the words.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|chunk| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).collect();
    let mut rest = words.as_slice();
    while !rest.is_empty() {
        let length = match zrt_isa::decode(rest) {
            Ok(instruction) => {
                assert!(!instruction.to_string().is_empty());
                instruction.dword_count as usize
            }
            Err(_) => 1,
        };
        rest = &rest[length..];
    }
});
