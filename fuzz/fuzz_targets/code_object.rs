//! Arbitrary bytes as the metadata, the line program and the strings of an otherwise valid code object: a file of
//! arbitrary bytes seldom gets that far.
#![no_main]

#[allow(dead_code)]
#[path = "../../loader/tests/data/elf_file.rs"]
mod elf_file;

use elf_file::{Content, ElfFile, PROGBITS};
use libfuzzer_sys::fuzz_target;
use zrt_loader::Program;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_first() else { return };
    let mut file = ElfFile::with_kernel();
    match choice % 2 {
        0 => {
            file.metadata(content);
        }
        _ => {
            let (line, strings) = content.split_at(content.len() / 2);
            file.section(".debug_line", PROGBITS, 0, Content::Own(line.into()));
            file.section(".debug_line_str", PROGBITS, 0, Content::Own(strings.into()));
            file.section(".debug_str", PROGBITS, 0, Content::Own(strings.into()));
        }
    }
    match Program::parse(&file.bytes()) {
        Ok(program) => {
            let _ = program.kernel("k").map(|kernel| program.lines().lookup(kernel.entry_offset));
        }
        // Lines are a convenience: only metadata can be refused.
        Err(error) => assert!(choice % 2 == 0 && !error.to_string().is_empty(), "{error}"),
    }
});
