//! Arbitrary bytes as what a kernel and its code object leave for printf: hostcalls, printf buffers and format strings
//! end in text within its limits or in an error.
#![no_main]

#[allow(dead_code)]
#[path = "../../loader/tests/data/elf_file.rs"]
mod elf_file;
#[path = "../../loader/tests/data/printed_input.rs"]
mod printed_input;

use libfuzzer_sys::fuzz_target;
use zrt_loader::print::PRINTED_BYTES_MAX;

fuzz_target!(|bytes: &[u8]| {
    let Some(printed) = printed_input::printed(bytes) else { return };
    assert!(printed.text().len() <= PRINTED_BYTES_MAX);
    assert!(printed.dropped_bytes() == 0 || printed.text().len() == PRINTED_BYTES_MAX);
    assert!(printed.complaint().is_none_or(|complaint| complaint.len() <= printed.text().len()));
});
