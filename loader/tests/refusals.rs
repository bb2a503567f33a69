//! What the loader refuses, rule by rule: each file here breaks one rule, and a file that just keeps it is
//! accepted.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;
#[path = "data/line_program.rs"]
#[allow(dead_code)]
mod line_program;

use elf_file::{ALLOC, CODE_BYTES, Content, EXECUTE, ElfFile, Load, PROGBITS, RODATA, TEXT};
use line_program::{END, NEXT_LINE, STRING, set_address, table, unit_5};
use zrt_loader::{LoadError, Program};

/// A file whose descriptor states this distance to its code.
fn with_entry(entry: i64) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    file.sections[RODATA].content = Content::Own(elf_file::descriptor(entry).into());
    file.bytes()
}

#[test]
fn code_begins_at_a_multiple_of_256_bytes() {
    let program = Program::parse(&with_entry(-(CODE_BYTES as i64))).unwrap();
    assert_eq!(program.kernel("k").unwrap().entry_offset, 0);
    for distance in [4, 128, 252] {
        let error = Program::parse(&with_entry(distance - CODE_BYTES as i64)).unwrap_err();
        let expected = format!("its code at {distance:#x} is not at a multiple of 256 bytes");
        assert!(matches!(&error, LoadError::Descriptor { what, .. } if *what == expected), "{error}");
    }
}

/// A linked file: code at address 0, data at another.
fn linked(data_address: u64, code_memory_bytes: u64) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    file.is_linked = true;
    let descriptor = elf_file::descriptor(-(data_address as i64));
    file.sections[RODATA].content = Content::Own(descriptor.into());
    // The value of a symbol of a linked file is an address.
    let value = file.symbols.len() - 16;
    file.symbols[value..value + 8].copy_from_slice(&data_address.to_le_bytes());
    file.loads = vec![
        Load { flags: 5, section: TEXT, address: 0, memory_bytes: code_memory_bytes },
        Load { flags: 4, section: RODATA, address: data_address, memory_bytes: 64 },
    ];
    file.bytes()
}

#[test]
fn segments_do_not_overlap() {
    let program = Program::parse(&linked(0x200, 0x200)).unwrap();
    assert_eq!(program.image().segments().len(), 2);
    for (address, code_bytes) in [(0x200, 0x201), (0x200, 0x400), (0x1FF, 0x200), (0, 0x100)] {
        let error = Program::parse(&linked(address, code_bytes)).unwrap_err();
        let expected = "LOAD 1 overlaps the one before it";
        assert!(matches!(&error, LoadError::Damaged { what } if what == expected), "{error}");
    }
}

#[test]
fn metadata_has_16_mib_at_most() {
    let file = |bytes: usize| {
        let mut file = ElfFile::with_kernel();
        // An empty map, and the bytes after it.
        let mut content = vec![0x80];
        content.resize(bytes, 0);
        file.metadata(&content);
        file.bytes()
    };
    assert!(Program::parse(&file(16 << 20)).is_ok());
    let error = Program::parse(&file((16 << 20) + 1)).unwrap_err();
    let expected = LoadError::TooLarge { what: "the metadata note", bytes: (16 << 20) + 1, limit: 16 << 20 };
    assert_eq!(error, expected);
}

/// A file with one row per instruction for `rows` instructions, and `padding_bytes` of padding.
fn with_rows(rows: usize, padding_bytes: usize) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    file.section(".text.more", PROGBITS, ALLOC | EXECUTE, Content::Own(vec![0; 4 * rows]));
    let name = table(STRING, 1, b"a\0");
    let program = [&set_address(0)[..], &vec![NEXT_LINE; rows], &END].concat();
    file.section(".debug_line", PROGBITS, 0, Content::Own(unit_5(&name, &name, &program)));
    file.section(".padding", PROGBITS, 0, Content::Own(vec![0; padding_bytes]));
    file.bytes()
}

#[test]
fn rows_follow_the_file_up_to_a_limit() {
    let few = with_rows(10_000, 0);
    // The last row is the end of the sequence.
    assert_eq!(Program::parse(&few).unwrap().lines().rows().len(), 10_000);
    let many = with_rows(300_000, 0);
    assert_eq!(Program::parse(&many).unwrap().lines().rows().len(), many.len() / 8 + 65_536);
    let most = with_rows(4_200_000, 16 << 20);
    assert!(most.len() / 8 > 1 << 22);
    assert_eq!(Program::parse(&most).unwrap().lines().rows().len(), 1 << 22);
}

#[test]
fn versions_of_the_abi_are_those_of_code_objects_4_to_6() {
    let parse = |abi_version| {
        let mut file = ElfFile::with_kernel();
        file.abi_version = abi_version;
        Program::parse(&file.bytes())
    };
    for version in 0..=255 {
        match parse(version) {
            Ok(_) => assert!((2..=4).contains(&version), "{version}"),
            Err(LoadError::Target { found }) => {
                assert!(!(2..=4).contains(&version), "{version}");
                assert!(found.starts_with(&format!("HSA with ABI version {version};")), "{found}");
            }
            Err(other) => panic!("{version}: {other}"),
        }
    }
}

/// EF_AMDGPU_FEATURE_XNACK and _SRAMECC of version 4, and the version of a generic target (LLVM's "User Guide for
/// AMDGPU Backend", ELF header flags): gfx1201 has none of them.
#[test]
fn flags_that_the_target_does_not_have_are_refused() {
    let parse = |flags| {
        let mut file = ElfFile::with_kernel();
        file.flags = flags;
        Program::parse(&file.bytes())
    };
    assert!(parse(0x4E).is_ok());
    for bit in 8..32 {
        let flags = 0x4E | 1 << bit;
        let expected = LoadError::Target { found: format!("gfx1201 (e_flags {flags:#x})") };
        assert_eq!(parse(flags), Err(expected));
    }
    assert!(matches!(parse(0x34E), Err(LoadError::Target { .. })), "XNACK on");
}

/// A descriptor that occurs twice in the file would take its arguments twice.
#[test]
fn names_of_kernels_are_unique() {
    let mut file = ElfFile::with_kernel();
    file.symbol("k.kd", RODATA, 0, 1);
    let error = Program::parse(&file.bytes()).unwrap_err();
    assert!(
        matches!(&error, LoadError::Damaged { what } if what == "two kernel descriptors are called \"k.kd\"")
    );
}

/// Bytes of the ELF header that differ from those of a file that is accepted: offset, bytes, and what is said.
#[test]
fn every_field_of_the_header_is_looked_at() {
    let whole = ElfFile::with_kernel().bytes();
    assert!(Program::parse(&whole).is_ok());
    let target = |found: &str| LoadError::Target { found: found.into() };
    let damaged = |what: &str| LoadError::Damaged { what: what.into() };
    let other_machine = "a machine that is not 64-bit little-endian";
    let cases: [(usize, &[u8], LoadError); 20] = [
        (0, &[0x7E], LoadError::Unknown { found: b"\x7EELF".into() }),
        (3, b"G", LoadError::Unknown { found: b"\x7FELG".into() }),
        (4, &[1], target(other_machine)),
        (4, &[0], target(other_machine)),
        (5, &[2], target(other_machine)),
        (6, &[0], damaged("Unsupported ELF header")),
        (7, &[0], target("OS ABI 0, which is not HSA")),
        (7, &[65], target("OS ABI 65, which is not HSA")),
        (8, &[1], target("HSA with ABI version 1; 2 to 4 (code objects 4 to 6) are read")),
        (8, &[5], target("HSA with ABI version 5; 2 to 4 (code objects 4 to 6) are read")),
        (16, &[0, 0], damaged("its type is 0, not REL or DYN")),
        (16, &[2, 0], damaged("its type is 2, not REL or DYN")),
        (16, &[1, 1], damaged("its type is 257, not REL or DYN")),
        (18, &[62, 0], target("machine 62, which is not an AMD GPU")),
        (18, &[0xE0, 1], target("machine 480, which is not an AMD GPU")),
        (40, &[0; 8], damaged("it has no section table")),
        (48, &[0x4D, 0, 0, 0], target("an AMD GPU (e_flags 0x4d)")),
        (48, &[0x36, 0, 0, 0], target("gfx1030 (e_flags 0x36)")),
        (48, &[0x3F, 5, 0, 0], target("gfx90a (e_flags 0x53f)")),
        (48, &[0x4C, 0, 0, 0], target("gfx942 (e_flags 0x4c)")),
    ];
    for (at, changed, expected) in cases {
        let mut bytes = whole.clone();
        bytes[at..at + changed.len()].copy_from_slice(changed);
        assert_eq!(Program::parse(&bytes), Err(expected), "{changed:?} at {at}");
    }
    for length in 4..9 {
        let expected = damaged(&format!("{length} bytes are no header"));
        assert_eq!(Program::parse(&whole[..length]), Err(expected));
    }
}

/// Sections are found by their whole name.
#[test]
fn lines_are_read_from_the_section_of_that_name() {
    let name = table(STRING, 1, b"a\0");
    let unit =
        |lines: usize| unit_5(&name, &name, &[&set_address(0)[..], &vec![NEXT_LINE; lines], &END].concat());
    let rows = |sections: &[(&str, usize)]| {
        let mut file = ElfFile::with_kernel();
        for (section, lines) in sections {
            file.section(section, PROGBITS, 0, Content::Own(unit(*lines)));
        }
        Program::parse(&file.bytes()).unwrap().lines().rows().len()
    };
    assert_eq!(rows(&[(".debug_line", 3)]), 3);
    let others = [(".debug_line_str", 4), ("debug_line", 5), (".debug_lin", 6), (".debug_line.dwo", 7)];
    assert_eq!(rows(&others), 0);
    assert_eq!(rows(&[&others[..], &[(".debug_line", 3)]].concat()), 3);
}
