//! Arbitrary bytes as a file that is listed and checked: reading ends in a value or an error, the listing has every
//! byte of the code once and in order, and the lint ends.
#![no_main]

// Their crate would bring the virtual card with it.
#[allow(dead_code)]
#[path = "../../tools/src/bounded_read.rs"]
mod bounded_read;
#[allow(dead_code)]
#[path = "../../tools/src/listing.rs"]
mod listing;
#[allow(dead_code, unused_imports)]
#[path = "../../tools/src/machine_code/mod.rs"]
mod machine_code;

use libfuzzer_sys::fuzz_target;
use listing::{Lines, Listing};
use machine_code::{Entry, MachineCode, Section};
use std::fmt::{Result, Write};
use zrt_isa::lint::{self, Function};
use zrt_isa::resources::WaveSize;

/// Takes text and keeps none.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _text: &str) -> Result {
        Ok(())
    }
}

fn function(entry: &Entry, is_called: bool) -> Function {
    let wave_size = entry.wave_size;
    let entered = lint::Entry { is_called, wave_size, ..lint::Entry::at(entry.dword) };
    Function { entry: entered, end: entry.end }
}

fn check(section: &Section) {
    let mut address = section.address;
    for line in Lines::of(section) {
        assert!(line.offset == address && !line.words.is_empty() && !line.text.is_empty());
        address = address.wrapping_add(4 * line.words.len() as u64);
    }
    assert_eq!(address, section.address_of(section.words.len()));
    write!(Nowhere, "{}", Listing(section)).expect("printing does not fail");
    let entries = section.entries.iter().map(|entry| function(entry, false));
    let functions: Vec<Function> =
        entries.chain(section.called.iter().map(|entry| function(entry, true))).collect();
    let program = lint::Program::new(&section.words, &functions, section.is_linked);
    for function in &functions {
        assert!(function.entry.dword < section.words.len() && function.end <= section.words.len());
        let _ = section.place(function.entry.dword);
        let _ = section.source_line(function.entry.dword);
        for finding in program.check(function.entry.dword) {
            assert!(!finding.to_string().is_empty());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    match MachineCode::parse(bytes, WaveSize::Wave32) {
        Ok(code) => {
            assert!(!code.sections.is_empty());
            code.sections.iter().for_each(check);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
