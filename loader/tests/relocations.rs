//! Relocations of each kind, and where the parts of a file are placed. What is written was computed by hand with the
//! formulas of LLVM's "User Guide for AMDGPU Backend", relocation records.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;

use elf_file::{ALLOC, Content, EXECUTE, ElfFile, KERNEL, Load, NOBITS, PROGBITS, RELA, RODATA, TEXT, WRITE};
use zrt_loader::{BaseRelocation, LoadError, Program};

/// Section index of absolute symbols.
const ABSOLUTE: usize = 0xFFF1;
/// Symbols of [`object`].
const TARGET: u64 = 3;
const NUMBER: u64 = 4;
const UNDEFINED: u64 = 5;
const END: u64 = 6;
/// Offset of `.data` in the image of [`object`].
const DATA: usize = 320;

/// Offset, kind, symbol and addend.
type Relocation = (u64, u64, u64, i64);

fn entries(relocations: &[Relocation]) -> Vec<u8> {
    let wide = relocations
        .iter()
        .flat_map(|(offset, kind, symbol, addend)| [*offset, symbol << 32 | kind, *addend as u64]);
    wide.flat_map(u64::to_le_bytes).collect()
}

/// An object of code (bytes 0 to 255 of the image), a descriptor (to 319) and data (to 383) with relocations.
fn object(relocations: &[Relocation]) -> Result<Program, LoadError> {
    let mut file = ElfFile::with_kernel();
    let data = file.section(".data", PROGBITS, ALLOC | WRITE, Content::Own(vec![0xDD; 64]));
    file.symbol("target", RODATA, 8, 1);
    file.symbol("number", ABSOLUTE, 0x1_2345_6000, 0);
    file.symbol("undefined", 0, 0, 0);
    file.symbol("end", data, 64, 0);
    let rela = file.section(".rela.data", RELA, 0, Content::Own(entries(relocations)));
    // The symbols come after their names.
    (file.sections[rela].info, file.sections[rela].link) = (data as u32, rela as u32 + 2);
    Program::parse(&file.bytes())
}

#[test]
fn each_kind_writes_what_its_formula_says() {
    // The target is at 256 + 8, the place at 320 and its offset.
    let cases: [(Relocation, &[u8]); 12] = [
        ((0, 4, TARGET, 0), &[0xC8, 0xFF, 0xFF, 0xFF]),
        ((4, 5, TARGET, 0x100), &[0xC4, 0, 0, 0, 0, 0, 0, 0]),
        ((12, 10, TARGET, -4), &[0xB8, 0xFF, 0xFF, 0xFF]),
        ((16, 11, TARGET, 0), &[0xFF, 0xFF, 0xFF, 0xFF]),
        ((20, 11, TARGET, 0x3_0000_0000), &[2, 0, 0, 0]),
        ((24, 14, TARGET, 0), &[0xEB, 0xFF]),
        ((28, 6, NUMBER, 0x789), &[0x89, 0x67, 0x45, 0x23]),
        ((32, 1, NUMBER, 1), &[1, 0x60, 0x45, 0x23]),
        ((36, 2, NUMBER, 0), &[1, 0, 0, 0]),
        ((40, 3, NUMBER, -0x6000), &[0, 0, 0x45, 0x23, 1, 0, 0, 0]),
        ((48, 3, TARGET, 2), &[0x0A, 1, 0, 0, 0, 0, 0, 0]),
        ((56, 13, 0, 0x17F), &[0x7F, 1, 0, 0, 0, 0, 0, 0]),
    ];
    let program = object(&cases.map(|(relocation, _)| relocation)).unwrap();
    let mut expected = vec![0xDD; 64];
    for ((offset, ..), bytes) in cases {
        expected[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    assert_eq!(program.image().bytes()[DATA..], expected);
    // Addresses follow the image.
    let addresses =
        [BaseRelocation { offset: 368, target: 0x10A }, BaseRelocation { offset: 376, target: 0x17F }];
    assert_eq!(program.image().base_relocations(), addresses);
    let placed = program.image().placed_at(0x7_0000_1000);
    assert_eq!(placed[368..376], [0x0A, 0x11, 0, 0, 7, 0, 0, 0]);
    assert_eq!(placed[376..384], [0x7F, 0x11, 0, 0, 7, 0, 0, 0]);
    assert_eq!(placed[..368], program.image().bytes()[..368]);
}

/// Kind 0 has neither a symbol nor a place.
#[test]
fn a_relocation_of_no_kind_changes_nothing() {
    let nothing = object(&[]).unwrap();
    assert_eq!(object(&[(0, 0, 0, 0), (4000, 0, TARGET, 7)]), Ok(nothing));
}

#[test]
fn what_needs_a_linker_is_refused_by_name() {
    for (kind, symbol, kind_name, symbol_name) in [
        (3, UNDEFINED, "ABS64", "undefined"),
        (6, UNDEFINED, "ABS32", "undefined"),
        (4, UNDEFINED, "REL32", "undefined"),
        (3, 0, "ABS64", ""),
        (1, TARGET, "ABS32_LO", "target"),
        (2, TARGET, "ABS32_HI", "target"),
        (6, TARGET, "ABS32", "target"),
        (4, NUMBER, "REL32", "number"),
        (5, NUMBER, "REL64", "number"),
        (10, NUMBER, "REL32_LO", "number"),
        (11, NUMBER, "REL32_HI", "number"),
        (14, NUMBER, "REL16", "number"),
        (7, TARGET, "GOTPCREL", "target"),
        (8, TARGET, "GOTPCREL32_LO", "target"),
        (9, TARGET, "GOTPCREL32_HI", "target"),
        (12, TARGET, "12", "target"),
    ] {
        let expected = LoadError::Relocation {
            kind: format!("R_AMDGPU_{kind_name}"),
            symbol: symbol_name.into(),
            section: ".rela.data".into(),
            offset: 0x18,
        };
        assert_eq!(object(&[(0x18, kind, symbol, 0)]), Err(expected));
    }
    let text = object(&[(0x18, 15, TARGET, 0)]).unwrap_err().to_string();
    let expected = "the relocation number 15 to \"target\" at .rela.data+0x18 cannot be resolved: link the object \
                    with ld.lld";
    assert_eq!(text, expected);
}

#[test]
fn relocations_stay_inside_the_program() {
    let damaged = |what: &str| Err(LoadError::Damaged { what: what.into() });
    // The last eight, four and two bytes.
    for (kind, offset) in [(5, 56), (4, 60), (14, 62)] {
        assert!(object(&[(offset, kind, TARGET, 0)]).is_ok(), "kind {kind}");
        let outside = format!("the relocation at {:#x} lies outside of the program", offset + 1);
        assert_eq!(object(&[(offset + 1, kind, TARGET, 0)]), damaged(&outside));
    }
    assert!(object(&[(0, 3, END, 0)]).is_ok(), "the end is an address");
    assert_eq!(object(&[(0, 3, END, 1)]), damaged("the relocation at 0x0 lies outside of the program"));
    assert_eq!(object(&[(0, 3, TARGET, -265)]), damaged("the relocation at 0x0 lies outside of the program"));
    assert!(object(&[(8, 3, TARGET, 0), (0, 3, END, 0)]).is_ok(), "in any order");
    assert_eq!(object(&[(7, 3, TARGET, 0), (0, 3, END, 0)]), damaged("two of its relocations overlap"));
}

/// A linked file: code at address 0x1200, descriptor and data at 0x1300, each with the access of its segment.
fn linked(relocations: &[Relocation], rela_flags: u64) -> Result<Program, LoadError> {
    let mut file = ElfFile::new();
    file.is_linked = true;
    let code = vec![0; 0x100];
    file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(code));
    let data = [&elf_file::descriptor(-0x100)[..], &[0xDD; 16]].concat();
    file.section(".rodata", PROGBITS, ALLOC, Content::Own(data));
    file.symbol("k", TEXT, 0x1200, 2);
    file.symbol("k.kd", RODATA, 0x1300, 1);
    file.symbol("target", RODATA, 0x1348, 1);
    file.symbol("number", ABSOLUTE, 0x1200, 0);
    file.symbol("undefined", 0, 0x1300, 0);
    file.symbol("below", TEXT, 0xFFF, 0);
    let rela = file.section(".rela.dyn", RELA, rela_flags, Content::Own(entries(relocations)));
    file.sections[rela].link = rela as u32 + 2;
    file.loads = vec![
        Load { flags: 5, section: TEXT, address: 0x1200, memory_bytes: 0x100 },
        Load { flags: 6, section: RODATA, address: 0x1300, memory_bytes: 0x60 },
    ];
    Program::parse(&file.bytes())
}

/// The image of a linked file begins at the page of its first segment.
#[test]
fn a_linked_file_keeps_its_distances() {
    let program = linked(&[], ALLOC).unwrap();
    let segments: Vec<_> = program
        .image()
        .segments()
        .iter()
        .map(|segment| {
            (segment.name.as_str(), segment.offset, segment.bytes, segment.executable, segment.writable)
        })
        .collect();
    let expected = [("LOAD 0", 0x200, 0x100, true, false), ("LOAD 1", 0x300, 0x60, false, true)];
    assert_eq!(segments, expected);
    assert_eq!(program.kernel("k").unwrap().entry_offset, 0x200);
    let bytes = program.image().bytes();
    assert_eq!(bytes.len(), 0x360);
    assert_eq!((&bytes[..0x200], &bytes[0x350..]), (&[0; 0x200][..], &[0; 16][..]), "filled with zeros");
    let last = &program.image().segments()[1];
    assert_eq!(program.image().segment_bytes(last), &bytes[0x300..]);
    let symbols: Vec<_> = program
        .symbols()
        .iter()
        .map(|symbol| (symbol.name.as_str(), symbol.offset, symbol.is_code))
        .collect();
    assert_eq!(symbols, [("k", 0x200, true), ("k.kd", 0x300, false), ("target", 0x348, false)]);
}

/// Those that a loader must apply are in a section that is loaded.
#[test]
fn a_linked_file_has_its_relocations_at_addresses() {
    let relocations = [(0x1340, 13, 0, 0x1348), (0x1348, 3, 3, 4)];
    let program = linked(&relocations, ALLOC).unwrap();
    let expected =
        [BaseRelocation { offset: 0x340, target: 0x348 }, BaseRelocation { offset: 0x348, target: 0x34C }];
    assert_eq!(program.image().base_relocations(), expected);
    assert_eq!(program.image().placed_at(0x10_0000)[0x340..0x348], [0x48, 3, 0x10, 0, 0, 0, 0, 0]);
    for flags in [0, WRITE] {
        let program = linked(&relocations, flags).unwrap();
        assert_eq!(program.image().base_relocations(), []);
        assert_eq!(program.image().bytes()[0x340..0x350], [0xDD; 16]);
    }
}

/// Each access with and without the others: PF_X, PF_W and PF_R; SHF_EXECINSTR and SHF_WRITE.
#[test]
fn segments_have_the_access_that_their_flags_say() {
    for flags in 0..8 {
        let mut file = ElfFile::with_kernel();
        file.is_linked = true;
        file.loads = vec![
            Load { flags: 5, section: TEXT, address: 0, memory_bytes: 256 },
            Load { flags: 4, section: RODATA, address: 256, memory_bytes: 64 },
            Load { flags, section: RODATA, address: 320, memory_bytes: 64 },
        ];
        let value = file.symbols.len() - 16;
        file.symbols[value..value + 8].copy_from_slice(&256u64.to_le_bytes());
        let program = Program::parse(&file.bytes()).unwrap();
        let segment = &program.image().segments()[2];
        assert_eq!((segment.executable, segment.writable), (flags & 1 != 0, flags & 2 != 0), "{flags}");
    }
    for (flags, expected) in [
        (ALLOC, Some((false, false))),
        (ALLOC | WRITE, Some((false, true))),
        (ALLOC | EXECUTE, Some((true, false))),
        (ALLOC | EXECUTE | WRITE, Some((true, true))),
        (0, None),
        (WRITE | EXECUTE, None),
    ] {
        let mut file = ElfFile::with_kernel();
        file.section(".more", PROGBITS, flags, Content::Own(vec![1; 8]));
        let program = Program::parse(&file.bytes()).unwrap();
        let access = program.image().segments().get(2).map(|segment| (segment.executable, segment.writable));
        assert_eq!(access, expected, "{flags}");
    }
}

#[test]
fn sections_of_an_object_follow_each_other_at_their_alignment() {
    let with = |flags, alignment| {
        let mut file = ElfFile::with_kernel();
        let odd = file.section(".odd", PROGBITS, ALLOC, Content::Own(vec![1]));
        file.sections[odd].alignment = 1;
        let aligned = file.section(".aligned", PROGBITS, flags, Content::Own(vec![2; 4]));
        file.sections[aligned].alignment = alignment;
        Program::parse(&file.bytes()).map(|program| program.image().segments()[3].offset)
    };
    // The section before it ends at 321. Code begins at a multiple of 256 bytes.
    for (alignment, data, code) in [
        (0, 321, 512),
        (1, 321, 512),
        (2, 322, 512),
        (64, 384, 512),
        (256, 512, 512),
        (512, 512, 512),
        (4096, 4096, 4096),
    ] {
        assert_eq!(with(ALLOC, alignment), Ok(data), "{alignment}");
        assert_eq!(with(ALLOC | EXECUTE, alignment), Ok(code), "{alignment}");
    }
    for alignment in [3, 24, 4095, 4097, 8192, 1 << 63] {
        let what = format!(".aligned is aligned to {alignment}");
        assert_eq!(with(ALLOC, alignment), Err(LoadError::Damaged { what }));
    }
}

/// Symbols inside the image or at its end have names of 1 to 4,096 bytes. Those of sections and files (types 3 and
/// 4) are none.
#[test]
fn symbols_are_named_places_in_the_image() {
    let mut file = ElfFile::with_kernel();
    let debug = file.section(".debug", PROGBITS, 0, Content::Own(vec![0; 8]));
    let apart = file.section(".apart", NOBITS, ALLOC | WRITE, Content::Zeros(16));
    file.sections[apart].alignment = 4096;
    let (longest, too_long) = ("l".repeat(4096), "t".repeat(4097));
    for (name, section, value, kind) in [
        ("label", TEXT, 252, 0),
        ("section", TEXT, 0, 3),
        ("file", TEXT, 0, 4),
        ("behind", RODATA, 64, 0),
        ("end", apart, 16, 0),
        ("beyond", apart, 17, 0),
        ("undefined", 0, 0, 0),
        ("absolute", ABSOLUTE, 0, 0),
        ("not loaded", debug, 0, 0),
        (&longest, RODATA, 4, 1),
        (&too_long, RODATA, 4, 1),
    ] {
        file.symbol(name, section, value, kind);
    }
    file.symbol_at(0, TEXT, 0, 0);
    // The code of the kernel as far as it reaches, and more.
    file.place_symbol(KERNEL, 0, 1000);
    let program = Program::parse(&file.bytes()).unwrap();
    let symbols: Vec<_> = program
        .symbols()
        .iter()
        .map(|symbol| (symbol.name.as_str(), symbol.offset, symbol.is_code))
        .collect();
    let expected = [
        ("k", 0, true),
        ("label", 252, true),
        ("k.kd", 256, false),
        (&longest, 260, false),
        ("behind", 320, false),
        ("end", 4112, false),
    ];
    assert_eq!(symbols, expected);
    assert_eq!(program.kernel("k").unwrap().code_bytes, 256);
}

/// Code that ends before the next segment begins.
#[test]
fn what_is_behind_the_code_is_no_code() {
    let mut file = ElfFile::with_kernel();
    file.sections[RODATA].alignment = 1024;
    file.sections[RODATA].content = Content::Own(elf_file::descriptor(-1024).into());
    file.symbol("last", TEXT, 255, 0);
    file.symbol("behind", TEXT, 256, 0);
    let program = Program::parse(&file.bytes()).unwrap();
    let is_code = |name| program.symbols().iter().find(|symbol| symbol.name == name).unwrap().is_code;
    assert_eq!((is_code("last"), is_code("behind")), (true, false));
}

/// The second of two blocks of code: its length is what is left of the segment.
#[test]
fn the_length_of_code_ends_with_its_segment() {
    for (stated, expected) in [(0, 0), (4, 4), (256, 256), (257, 256), (u64::MAX, 256)] {
        let mut file = ElfFile::with_kernel();
        file.sections[TEXT].content = Content::Own(vec![0; 512]);
        // The descriptor follows the code, whose second half it names.
        file.place_symbol(KERNEL, 256, stated);
        let program = Program::parse(&file.bytes()).unwrap();
        let kernel = program.kernel("k").unwrap();
        assert_eq!((kernel.entry_offset, kernel.code_bytes), (256, expected), "{stated}");
    }
}
