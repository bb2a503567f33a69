//! From `.debug_line` to rows of the image: paths, addresses, relocations, and each limit at its edge.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;
#[path = "data/line_program.rs"]
#[allow(dead_code)]
mod line_program;

use elf_file::{ALLOC, COMPRESSED, Content, EXECUTE, ElfFile, Load, NOBITS, PROGBITS, RELA, RODATA, TEXT};
use line_program::{END, LINE_STRP, NEXT_LINE, STRING, set_address, table, uleb, unit, unit_5};
use zrt_loader::{LineRow, Program};

/// DW_LNS_copy: a row.
const ROW: u8 = 1;
/// The special opcode that advances the address by one byte, keeps the line, and makes a row.
const NEXT_BYTE: u8 = 13 + 14 + 5;
/// The image of [`ElfFile::with_kernel`]: the code and the descriptor.
const IMAGE_BYTES: u64 = 256 + 64;
/// DW_FORM_strp.
const STRP: u8 = 0x0E;

/// The program of a file with one kernel and these debug sections.
fn loaded(line: &[u8], line_strings: &[u8], strings: &[u8]) -> Program {
    let mut file = ElfFile::with_kernel();
    for (name, bytes) in [(".debug_line", line), (".debug_line_str", line_strings), (".debug_str", strings)] {
        file.section(name, PROGBITS, 0, Content::Own(bytes.into()));
    }
    Program::parse(&file.bytes()).unwrap()
}

/// The same with a longer image; also returns the file's length.
fn loaded_long(line: Vec<u8>) -> (Program, usize) {
    let mut file = ElfFile::with_kernel();
    file.section(".bss", NOBITS, ALLOC, Content::Zeros(100_000));
    file.section(".debug_line", PROGBITS, 0, Content::Own(line));
    let bytes = file.bytes();
    (Program::parse(&bytes).unwrap(), bytes.len())
}

/// Offset, path and line of each row; an end has neither, nor has a row of an unknown file.
fn rows(program: &Program) -> Vec<(u64, Option<(&str, u32)>)> {
    let lines = program.lines();
    let place = |row: &LineRow| Some((lines.files().get(row.file as usize)?.as_str(), row.line));
    lines.rows().iter().map(|row| (row.offset, place(row))).collect()
}

/// A row for each of these files, a byte apart, from the image's start; the last goes on.
fn row_of_each(files: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let row = |file| [&[4][..], &uleb(file), &[ROW, 2, 1]].concat();
    [set_address(0), files.into_iter().flat_map(row).collect()].concat()
}

/// One folder and one file.
fn one_name() -> Vec<u8> {
    table(STRING, 1, b"a\0")
}

#[test]
fn a_path_has_the_folder_of_its_number_unless_that_is_the_units_own() {
    // Up to version 4 files and folders are counted from 1, and 0 is the unit's folder.
    let tables = b"inc\0sys\0\0a.c\0\0\0\0b.h\0\x01\0\0c.h\0\x02\0\0d.h\0\x03\0\0/e.h\0\x01\0\0\0";
    let expected = [
        (0, None),
        (1, Some(("a.c", 1))),
        (2, Some(("inc/b.h", 1))),
        (3, Some(("sys/c.h", 1))),
        (4, Some(("d.h", 1))),
        (5, Some(("/e.h", 1))),
        (6, None),
    ];
    for version in [2, 3, 4] {
        let program = loaded(&unit(version, tables, &row_of_each([0, 1, 2, 3, 4, 5, 6])), b"", b"");
        assert_eq!(rows(&program), expected, "version {version}");
    }
    // In version 5 they are counted from 0. A field for the path, one for the folder.
    let folders = table(STRING, 3, b"/unit\0inc\0sys\0");
    let fields = [2, 1, STRING, 2, line_program::UDATA];
    let files = [&fields[..], &[5], b"a.c\0\0b.h\0\x01c.h\0\x02d.h\0\x03/e.h\0\x01"].concat();
    let program = loaded(&unit_5(&folders, &files, &row_of_each([0, 1, 2, 3, 4, 5])), b"", b"");
    let expected: Vec<_> = expected[1..].iter().map(|(offset, place)| (offset - 1, *place)).collect();
    assert_eq!(rows(&program), expected);
}

/// The longest name has 2048 bytes.
#[test]
fn names_end_at_their_nul_within_2048_bytes() {
    let longest = [&[b'n'; 2048][..], b"\0"].concat();
    let longer = [&b"n"[..], &longest].concat();
    let path = "n".repeat(2048);
    let paths = |form: u8, entries: &[u8], line_strings: &[u8], strings: &[u8]| {
        let count = if form == STRING { 1 } else { entries.len() as u64 / 4 };
        let unit = unit_5(&one_name(), &table(form, count, entries), &row_of_each(0..count));
        let program = loaded(&unit, line_strings, strings);
        rows(&program).iter().map(|(_, place)| place.map(|(path, _)| path.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(paths(STRING, &longest, b"", b""), [Some(path.clone())]);
    assert_eq!(paths(STRING, &longer, b"", b""), [None]);
    for form in [LINE_STRP, STRP] {
        let read = |offsets: &[u32], section: &[u8]| {
            let entries: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            // The other section has another text at each offset.
            let other = [&vec![b'x'; section.len()][..], b"\0"].concat();
            match form {
                STRP => paths(form, &entries, &other, section),
                _ => paths(form, &entries, section, &other),
            }
        };
        // Texts may overlap; the first is one byte too long.
        assert_eq!(read(&[0, 1, 2047], &longer), [None, Some(path.clone()), Some("nn".into())], "{form:#x}");
        // The last byte is an empty text, and after it there is none.
        let texts = b"ab\0\xFFc\0";
        let expected = [Some("ab".into()), Some("b".into()), Some(String::new()), Some("\u{FFFD}c".into())];
        assert_eq!(read(&[0, 1, 2, 3], texts), expected, "{form:#x}");
        assert_eq!(read(&[5, 6, 7, u32::MAX], texts), [Some(String::new()), None, None, None], "{form:#x}");
        // A text without its NUL.
        for text in [&b"a"[..], b"abc", b"\0abc"] {
            assert_eq!(read(&[text.len() as u32 - 1], text), [None], "{form:#x} {text:?}");
        }
    }
    // A form whose text is elsewhere: DW_FORM_strx1.
    assert_eq!(paths(0x25, &[0; 4], b"a\0", b"a\0"), [None]);
}

/// An address beyond the image has no row; its end is the last that has.
#[test]
fn rows_lie_in_the_image() {
    let row = |address| [&set_address(address)[..], &[ROW]].concat();
    let addresses = [0, IMAGE_BYTES - 1, IMAGE_BYTES, IMAGE_BYTES + 1, u64::MAX, 7];
    let program = addresses.map(row).concat();
    let found = loaded(&unit_5(&one_name(), &one_name(), &[&program[..], &END].concat()), b"", b"");
    let expected = [0, 7, IMAGE_BYTES - 1, IMAGE_BYTES].map(|offset| (offset, None));
    // File 1, which the program begins with, is not there: the table has file 0 only.
    assert_eq!(rows(&found), expected);
    // In a linked file addresses count from the first segment's page.
    let mut file = ElfFile::with_kernel();
    file.is_linked = true;
    file.sections[RODATA].content = Content::Own(elf_file::descriptor(-0x200).into());
    let value = file.symbols.len() - 16;
    file.symbols[value..value + 8].copy_from_slice(&0x2200u64.to_le_bytes());
    file.loads = vec![
        Load { flags: 5, section: TEXT, address: 0x2000, memory_bytes: 0x100 },
        Load { flags: 4, section: RODATA, address: 0x2200, memory_bytes: 64 },
    ];
    let names = b"\0a.c\0\0\0\0\0";
    let program = [0x1FFF, 0x2000, 0x2010, 0x2240, 0x2241].map(row).concat();
    file.section(".debug_line", PROGBITS, 0, Content::Own(unit(4, names, &program)));
    let found = Program::parse(&file.bytes()).unwrap();
    assert_eq!(rows(&found), [0, 0x10, 0x240].map(|offset| (offset, Some(("a.c", 1)))));
}

#[test]
fn of_several_rows_for_one_offset_the_last_counts_and_lines_beyond_32_bits_are_none() {
    let names = b"\0a.c\0\0\0\0\0";
    // Lines 1, 3 and, four bytes on, 2^32 - 1, which is a line, and one more, which is none.
    let advance = |lines: &[u8]| [&[3][..], lines, &[ROW]].concat();
    let most = advance(&[0xFC, 0xFF, 0xFF, 0xFF, 0x0F]);
    let program =
        [&[ROW][..], &advance(&[2]), &[2, 4], &most, &[2, 4], &advance(&[1]), &[2, 4], &END].concat();
    let found = loaded(&unit(4, names, &program), b"", b"");
    assert_eq!(rows(&found), [(0, Some(("a.c", 3))), (4, Some(("a.c", u32::MAX))), (12, None)]);
    assert_eq!(found.lines().lookup(11), Some(("a.c", u32::MAX)));
    assert!(!found.lines().is_empty());
}

/// Names of files, with one NUL each, that differ from file to file.
fn numbered(files: std::ops::Range<u64>) -> Vec<u8> {
    files.flat_map(|file| format!("{file}\0").into_bytes()).collect()
}

#[test]
fn the_first_16384_files_and_folders_of_a_unit_are_kept() {
    let folders = table(STRING, 16_385, &numbered(0..16_385));
    let fields = [2, 1, STRING, 2, line_program::UDATA];
    let entry = |file: u64| [format!("f{file}\0").as_bytes(), &uleb(file.min(16_384))].concat();
    let entries: Vec<u8> = (0..16_385).flat_map(entry).collect();
    let files = [&fields[..], &uleb(16_385), &entries].concat();
    let found = loaded(&unit_5(&folders, &files, &row_of_each([1, 16_383, 16_384])), b"", b"");
    assert_eq!(rows(&found), [(0, Some(("1/f1", 1))), (1, Some(("16383/f16383", 1))), (2, None)]);
    // The folder after the last that is kept leaves the bare name.
    let files = [&fields[..], &[2], b"a\0", &uleb(16_383), b"b\0", &uleb(16_384)].concat();
    let found = loaded(&unit_5(&folders, &files, &row_of_each([0, 1])), b"", b"");
    assert_eq!(rows(&found), [(0, Some(("16383/a", 1))), (1, Some(("b", 1)))]);
    // The next unit begins with no names.
    let first = unit_5(&folders, &table(STRING, 3, b"a\0b\0c\0"), &[]);
    let next = unit_5(&one_name(), &[&fields[..], &[1], b"d\0\x01"].concat(), &row_of_each([0, 1]));
    assert_eq!(rows(&loaded(&[first, next].concat(), b"", b"")), [(0, Some(("d", 1))), (1, None)]);
}

#[test]
fn the_first_16384_files_of_all_units_are_kept() {
    let unit = |files: std::ops::Range<u64>| {
        let count = files.end - files.start;
        unit_5(&one_name(), &table(STRING, count, &numbered(files)), &row_of_each(0..count))
    };
    // Files 5 to 9 of the second unit are known already; of those of the fourth, two are the last that are kept.
    let units =
        [unit(0..10_000), unit(5..10), unit(10_000..16_382), unit(16_382..16_385), unit(0..3)].concat();
    let (found, _) = loaded_long(units);
    let expected: Vec<String> = (0..16_384).map(|file| file.to_string()).collect();
    assert_eq!(found.lines().files(), expected);
    // The last unit's rows count for its three bytes, and its files are known.
    assert_eq!(
        rows(&found)[..4],
        [(0, Some(("0", 1))), (1, Some(("1", 1))), (2, Some(("2", 1))), (3, Some(("10003", 1)))]
    );
}

#[test]
fn paths_of_two_mib_in_all_are_kept() {
    // Paths of 2048 bytes: a folder of 2000, a slash, and names of 47.
    let folders = table(STRING, 2, &[b"\0", &[b'f'; 2000][..], b"\0"].concat());
    let fields = [2, 1, STRING, 2, line_program::UDATA];
    let files = |full: u64, last: &[u8]| {
        let entries: Vec<u8> = (0..full).flat_map(|file| format!("{file:047}\0\u{1}").into_bytes()).collect();
        [&fields[..], &uleb(full + 1), &entries, last, b"\0\0"].concat()
    };
    let paths = |full: u64, last: &[u8]| {
        let unit = unit_5(&folders, &files(full, last), &row_of_each(0..full + 1));
        loaded_long(unit).0.lines().files().iter().map(String::len).collect::<Vec<_>>()
    };
    for (full, last, expected) in [
        (1024, &b"l"[..], [2048; 1024].to_vec()),
        (1023, &[b'l'; 2048], [2048; 1024].to_vec()),
        (1023, b"l", [&[2048; 1023][..], &[1]].concat()),
    ] {
        let found = paths(full, last);
        assert!(found == expected, "{full}: {} paths of {} bytes", found.len(), found.iter().sum::<usize>());
    }
}

/// A path that is known already is assembled again for each unit's file. Folders count like names, and so does what is
/// read of a name that is too long.
#[test]
fn paths_are_assembled_up_to_64_mib_and_one_more() {
    let folders = table(STRING, 2, &[b"\0", &[b'f'; 1000][..], b"\0"].concat());
    let fields = [2, 1, LINE_STRP, 2, line_program::UDATA];
    let unit = |files: &[[u8; 5]]| {
        let files_table = [&fields[..], &uleb(files.len() as u64), &files.concat()].concat();
        unit_5(&folders, &files_table, &row_of_each(0..files.len() as u64))
    };
    // Names of 1048 bytes in the folder: 2048 bytes for each of 2 * 16,384 files. Then single letters.
    let same = unit(&[[0, 0, 0, 0, 1]; 16_384]);
    let letter = |at: u32, folder| [&at.to_le_bytes()[..], &[folder]].concat().try_into().unwrap();
    let letters = unit(&[letter(1049, 0), letter(1051, 0)]);
    // 2049 bytes are read of a name that has more.
    let nameless = unit(&[letter(1053, 0); 16_384]);
    let strings = [&[b'n'; 1048][..], b"\0b\0c\0", &[b'n'; 3000]].concat();
    let read = |units: &[&[u8]]| {
        let mut file = ElfFile::with_kernel();
        file.section(".bss", NOBITS, ALLOC, Content::Zeros(20_000));
        file.section(".debug_line", PROGBITS, 0, Content::Own(units.concat()));
        file.section(".debug_line_str", PROGBITS, 0, Content::Own(strings.clone()));
        Program::parse(&file.bytes()).unwrap().lines().files().to_vec()
    };
    let long = format!("{}/{}", "f".repeat(1000), "n".repeat(1048));
    assert_eq!(read(&[&same, &letters]), [long.as_str(), "b", "c"]);
    assert_eq!(read(&[&same, &same, &letters]), [long.as_str(), "b"]);
    assert_eq!(read(&[&nameless, &letters]), ["b", "c"]);
    assert_eq!(read(&[&nameless, &nameless, &letters]), [""; 0]);
}

/// A row for each eight bytes of the file and 65,536 more.
#[test]
fn rows_are_kept_up_to_the_limit_of_the_files_length() {
    let parse = |program: Vec<u8>| loaded_long(unit_5(&one_name(), &one_name(), &program));
    let (program, file_bytes) = parse([&set_address(0)[..], &[4, 0], &[NEXT_BYTE; 90_000]].concat());
    let limit = file_bytes / 8 + 65_536;
    assert!(limit < 80_000, "{limit}");
    let expected: Vec<_> = (1..=limit as u64).map(|offset| (offset, Some(("a", 1)))).collect();
    assert_eq!(rows(&program), expected);
    // Rows for the offset of the one before are no further rows.
    let again = [&set_address(0)[..], &[4, 0], &[ROW; 90_000], &[NEXT_LINE; 2]].concat();
    assert_eq!(rows(&parse(again).0), [(0, Some(("a", 1))), (4, Some(("a", 2))), (8, Some(("a", 3)))]);
}

#[test]
fn of_the_sections_flags_only_compression_leaves_the_lines_out() {
    let line = unit_5(&one_name(), &one_name(), &row_of_each([0]));
    let parse = |flags| {
        let mut file = ElfFile::with_kernel();
        file.section(".debug_line", PROGBITS, flags, Content::Own(line.clone()));
        Program::parse(&file.bytes()).unwrap()
    };
    // SHF_MERGE and SHF_STRINGS.
    for flags in [0, 0x10, 0x20, 0x30] {
        assert_eq!(rows(&parse(flags)), [(0, Some(("a", 1)))], "{flags:#x}");
        assert!(parse(flags | COMPRESSED).lines().is_empty(), "{flags:#x}");
    }
}

/// R_AMDGPU_ABS64, _REL32 and _ABS32.
const ABS64: u64 = 3;
const REL32: u64 = 4;
const ABS32: u64 = 6;

/// The program of an object whose `.debug_line` has these relocations: place, symbol, kind, addend. Symbol 1 is the
/// second byte of the second section of code, which is at offset 0x200; 2 is the start of a section that is not
/// loaded; 3 is undefined.
fn relocated(line: &[u8], relocations: &[(u64, u64, u64, i64)]) -> Program {
    let kernel = ElfFile::with_kernel();
    let mut file = ElfFile { sections: kernel.sections, names: kernel.names, ..ElfFile::new() };
    let more = file.section(".text.more", PROGBITS, ALLOC | EXECUTE, Content::Own(vec![0; 256]));
    let lines = file.section(".debug_line", PROGBITS, 0, Content::Own(line.into()));
    let strings = file.section(".debug_line_str", PROGBITS, 0, Content::Own(b"a.c\0b.c\0".into()));
    file.symbol("more", more, 1, 0);
    file.symbol("strings", strings, 0, 0);
    file.symbol("undefined", 0, 0x40, 0);
    file.symbol("k", TEXT, 0, 2);
    file.symbol("k.kd", RODATA, 0, 1);
    let entry = |(place, symbol, kind, addend): &(u64, u64, u64, i64)| {
        [*place, symbol << 32 | kind, *addend as u64].map(u64::to_le_bytes).concat()
    };
    let list = relocations.iter().flat_map(entry).collect();
    let list = file.section(".rela.debug_line", RELA, 0, Content::Own(list));
    // The table of symbols comes after the next section.
    (file.sections[list].info, file.sections[list].link) = (lines as u32, list as u32 + 2);
    Program::parse(&file.bytes()).unwrap()
}

#[test]
fn relocations_write_addresses_of_eight_bytes_and_of_four() {
    let files = table(LINE_STRP, 1, &[0xEE; 4]);
    let wide = [&[4, 0][..], &set_address(0xEEEE_EEEE_EEEE_EEEE), &[ROW]].concat();
    // DW_LNE_set_address of four bytes.
    let narrow = [0, 5, 2, 0xEE, 0xEE, 0xEE, 0xEE, ROW];
    let line = unit_5(&one_name(), &files, &[&wide[..], &narrow].concat());
    let end = line.len() as u64;
    // The address of eight bytes follows the file's text and the program's first five bytes.
    let (name_at, wide_at, narrow_at) = (end - 26, end - 17, end - 5);
    for (at, bytes) in [(name_at, 4), (wide_at, 8), (narrow_at, 4)] {
        assert!(line[at as usize..][..bytes].iter().all(|byte| *byte == 0xEE), "{at}");
    }
    let name = (name_at, 2, ABS32, 4);
    let both = [name, (wide_at, 1, ABS64, 0x1F), (narrow_at, 1, ABS32, -1)];
    assert_eq!(rows(&relocated(&line, &both)), [(0x200, Some(("b.c", 1))), (0x220, Some(("b.c", 1)))]);
    // An undefined symbol counts as 0, whatever its value; other kinds write nothing.
    let other = [name, (wide_at, 3, ABS64, 0x21), (narrow_at, 1, REL32, 0)];
    assert_eq!(rows(&relocated(&line, &other)), [(0x21, Some(("b.c", 1)))]);
    // One that is malformed takes the whole table with it.
    let bad = [
        (end - 3, 1, ABS32, 0),
        (end - 7, 1, ABS64, 0),
        (u64::MAX - 3, 1, ABS64, 0),
        (wide_at, 99, ABS64, 0),
    ];
    for bad in bad {
        assert!(relocated(&line, &[name, (wide_at, 1, ABS64, 0), bad]).lines().is_empty(), "{bad:?}");
    }
}
