//! Every limit of a code object at its edge: what just keeps it is loaded, one more is refused with its numbers.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;

use elf_file::{ALLOC, Content, ElfFile, Load, NOBITS, NOTE, PROGBITS, RODATA, Section, TEXT, WRITE};
use zrt_loader::{LoadError, Program};

const MIB: u64 = 1 << 20;

fn too_large(what: &'static str, bytes: u64, limit: u64) -> Result<Program, LoadError> {
    Err(LoadError::TooLarge { what, bytes, limit })
}

/// A header has 64 bytes.
#[test]
fn a_file_has_16384_sections_at_most() {
    let with = |count: usize| {
        let mut file = ElfFile::with_kernel();
        // Three more are added: the symbols, their names and the sections' names.
        file.sections.resize(count - 3, file.sections[0].clone());
        Program::parse(&file.bytes())
    };
    assert!(with(16_384).is_ok());
    assert_eq!(with(16_385), too_large("the section table", 16_385 * 64, 16_384 * 64));
    assert_eq!(with(20_000), too_large("the section table", 20_000 * 64, 16_384 * 64));
}

/// A header has 56 bytes.
#[test]
fn a_file_has_1024_program_headers_at_most() {
    let with = |count: u64| {
        let mut file = ElfFile::with_kernel();
        file.is_linked = true;
        // The code, then the descriptor again and again.
        file.loads = vec![Load { flags: 5, section: TEXT, address: 0, memory_bytes: 256 }];
        let data = |index| Load { flags: 4, section: RODATA, address: 192 + 64 * index, memory_bytes: 64 };
        file.loads.extend((1..count).map(data));
        // The value of a symbol of a linked file is an address.
        let value = file.symbols.len() - 16;
        file.symbols[value..value + 8].copy_from_slice(&256u64.to_le_bytes());
        Program::parse(&file.bytes())
    };
    assert_eq!(with(1024).unwrap().image().segments().len(), 1024);
    assert_eq!(with(1025), too_large("the program header table", 1025 * 56, 1024 * 56));
    assert_eq!(with(3000), too_large("the program header table", 3000 * 56, 1024 * 56));
}

#[test]
fn an_image_has_8_mib_more_than_its_file_at_most() {
    let object = |zeros| {
        let mut file = ElfFile::with_kernel();
        file.section(".bss", NOBITS, ALLOC | WRITE, Content::Zeros(zeros));
        file.bytes()
    };
    let linked = |zeros| {
        let mut file = ElfFile::with_kernel();
        file.is_linked = true;
        file.loads = vec![
            Load { flags: 5, section: TEXT, address: 0, memory_bytes: 256 },
            Load { flags: 6, section: RODATA, address: 256, memory_bytes: 64 + zeros },
        ];
        let value = file.symbols.len() - 16;
        file.symbols[value..value + 8].copy_from_slice(&256u64.to_le_bytes());
        file.bytes()
    };
    for make in [&object as &dyn Fn(u64) -> Vec<u8>, &linked] {
        // The zeros do not lengthen the file. Before them are the code and the descriptor.
        let limit = make(0).len() as u64 + 8 * MIB;
        let program = Program::parse(&make(limit - 320)).unwrap();
        assert_eq!(program.image().bytes().len() as u64, limit);
        let refused = Program::parse(&make(limit - 319));
        assert_eq!(refused, too_large("the program in memory", limit + 1, limit));
    }
}

/// Names may share their bytes, so their sum may exceed the file.
#[test]
fn names_of_symbols_have_a_mebibyte_more_than_the_file_at_most() {
    let with = |last_bytes: u32| {
        let mut file = ElfFile::with_kernel();
        let name = file.strings.len() as u32;
        file.strings.resize(file.strings.len() + 4096, b'n');
        file.strings.push(0);
        (0..258).for_each(|_| file.symbol_at(name, TEXT, 0, 0));
        file.symbol_at(name + 4096 - last_bytes, TEXT, 0, 0);
        file.bytes()
    };
    let limit = with(1).len() as u64 + MIB;
    // The names of the kernel and its descriptor, those of the others, and what is left for the last one.
    let last = (limit - 5 - 258 * 4096) as u32;
    assert!((1..4096).contains(&last), "{last}");
    assert_eq!(Program::parse(&with(last)).unwrap().symbols().len(), 261);
    let refused = Program::parse(&with(last + 1));
    assert_eq!(refused, too_large("the list of symbol names", limit + 1, limit));
}

/// Of a name that is too long 4097 bytes are read; the symbol is none, and the bytes count.
#[test]
fn names_of_symbols_that_are_too_long_count_too() {
    let with = |symbols: u32| {
        let mut file = ElfFile::with_kernel();
        let name = file.strings.len() as u32;
        file.strings.resize(file.strings.len() + 5000, b'n');
        file.strings.push(0);
        (0..symbols).for_each(|_| file.symbol_at(name, TEXT, 0, 0));
        file.bytes()
    };
    assert_eq!(Program::parse(&with(250)).unwrap().symbols().len(), 2);
    let file = with(300);
    let limit = file.len() as u64 + MIB;
    // The names of the kernel and its descriptor, and the first of the others that is too much.
    let read = 5 + 260 * 4097;
    assert!((read - 4097..read).contains(&limit), "{limit}");
    assert_eq!(Program::parse(&file), too_large("the list of symbol names", read, limit));
}

/// Sections may share their bytes, so the sum of the notes may exceed the file.
#[test]
fn notes_are_as_long_as_the_file_at_most() {
    // Four sections of the same bytes, a note of `more` bytes, and what makes the file as long as it must be.
    let with = |more: usize, padding: usize| {
        let mut file = ElfFile::with_kernel();
        let first = file.section(".note", NOTE, 0, Content::Own(vec![0; 4096]));
        for _ in 0..3 {
            let section = Section { content: Content::Shared(first), ..file.sections[first].clone() };
            file.sections.push(section);
        }
        file.section(".note.more", NOTE, 0, Content::Own(vec![0; more]));
        file.section(".padding", PROGBITS, 0, Content::Own(vec![0; padding]));
        file.bytes()
    };
    let padding = 4 * 4096 + 8 - with(8, 0).len();
    let equal = with(8, padding);
    assert_eq!(equal.len(), 4 * 4096 + 8);
    assert!(Program::parse(&equal).is_ok());
    let longer = with(1, padding - 8);
    assert_eq!(longer.len(), 4 * 4096);
    assert_eq!(Program::parse(&longer), too_large("the sum of the notes", 4 * 4096 + 1, 4 * 4096));
}

#[test]
fn a_file_has_4096_kernels_at_most() {
    let with = |count: usize| {
        let mut file = ElfFile::with_kernel();
        for index in 1..count {
            file.symbol(&format!("{index}.kd"), RODATA, 0, 1);
        }
        Program::parse(&file.bytes())
    };
    assert_eq!(with(4096).unwrap().kernels().len(), 4096);
    assert_eq!(with(4097), too_large("the list of kernels", 4097, 4096));
}

#[test]
fn a_descriptor_states_64_kib_of_arguments_at_most() {
    let with = |bytes: u32| {
        let mut file = ElfFile::with_kernel();
        let mut descriptor = elf_file::descriptor(-256);
        descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
        file.sections[RODATA].content = Content::Own(descriptor.into());
        Program::parse(&file.bytes())
    };
    assert!(with(65_536).is_ok());
    assert_eq!(with(65_537), too_large("the argument segment", 65_537, 65_536));
}
