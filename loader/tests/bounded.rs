//! The cost of hostile files: memory at most eight times the file plus 16 MiB, work in proportion to the file.
//!
//! Every count, length and nesting depth that a file can state has a case, generated in two sizes. Memory is the
//! peak of a counting allocator. Work is the CPU time of the thread: a file of twice the size takes at most three
//! times as long.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;
#[path = "data/line_program.rs"]
mod line_program;

use elf_file::{ALLOC, Content, ElfFile, Load, NOBITS, NOTE, PROGBITS, RELA, RODATA, Section, TEXT};
use line_program::{BLOCK1, DATA1, END, FLAG, LINE_STRP, NEXT_LINE, STRING, UDATA, set_address, table, unit};
use std::time::Duration;
use zrt_loader::{LoadError, Program};

/// Bytes of memory per byte of file, and the constant part.
const BYTES_PER_BYTE: u64 = 8;
const BYTES_MORE: u64 = 16 << 20;
/// Below this, the times of two sizes of one file are too short to compare.
const TIME_MIN: Duration = Duration::from_millis(100);

const MIB: usize = 1 << 20;

/// CPU time of this thread so far, if the kernel reports it.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// The cost of parsing: peak bytes, CPU time, and the result.
fn cost(bytes: &[u8]) -> (u64, Duration, Result<Program, LoadError>) {
    let mut result = None;
    let start = thread_time();
    let counted = allocation_counter::measure(|| result = Some(Program::parse(bytes)));
    (counted.bytes_max, thread_time() - start, result.unwrap())
}

/// Parses a file of about `size` bytes, and one twice as large. Returns the result of the larger one.
fn bounded(name: &str, size: usize, make: impl Fn(usize) -> Vec<u8>) -> Result<Program, LoadError> {
    let mut times = Vec::new();
    let mut last = None;
    for size in [size, 2 * size] {
        let bytes = make(size);
        let (peak, time, result) = cost(&bytes);
        let outcome = match &result {
            Ok(_) => "a program".into(),
            Err(error) => error.to_string(),
        };
        println!(
            "{name}: {:.1} MiB of file, {:.1} MiB of memory, {time:.1?}: {outcome:.90}",
            bytes.len() as f64 / MIB as f64,
            peak as f64 / MIB as f64,
        );
        let limit = BYTES_PER_BYTE * bytes.len() as u64 + BYTES_MORE;
        assert!(peak <= limit, "{name}: {peak} bytes for a file of {}, at most {limit}", bytes.len());
        times.push(time);
        last = Some(result);
    }
    assert!(times[1] <= 3 * times[0] + TIME_MIN, "{name}: {times:?} for twice the file");
    last.unwrap()
}

/// A file with one kernel and these debug sections.
fn with_lines(line: Vec<u8>, line_str: Vec<u8>) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    file.section(".debug_line", PROGBITS, 0, Content::Own(line));
    file.section(".debug_line_str", PROGBITS, 0, Content::Own(line_str));
    file.bytes()
}

/// A file with one kernel and this metadata.
fn with_metadata(content: &[u8]) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    file.metadata(content);
    file.bytes()
}

/// One name in each table of DWARF 5.
fn one_name() -> Vec<u8> {
    table(STRING, 1, b"a\0")
}

#[test]
fn tables_of_files_and_folders_are_not_built() {
    let forms = [(STRING, 0), (FLAG, 1), (UDATA, 1), (DATA1, 1), (BLOCK1, 0)];
    for (form, byte) in forms {
        let names = |size| table(form, size as u64, &vec![byte; size]);
        let program = [&set_address(0)[..], &[NEXT_LINE], &END].concat();
        let files = |size| with_lines(line_program::unit_5(&one_name(), &names(size), &program), Vec::new());
        bounded(&format!("files of form {form:#x}"), 4 * MIB, files).unwrap();
        let folders =
            |size| with_lines(line_program::unit_5(&names(size), &one_name(), &program), Vec::new());
        bounded(&format!("folders of form {form:#x}"), 4 * MIB, folders).unwrap();
    }
    let referred = |size| {
        let names = table(LINE_STRP, size as u64 / 4, &vec![0; size]);
        with_lines(line_program::unit_5(&names, &names, &[]), vec![0])
    };
    bounded("files in the section of strings", 4 * MIB, referred).unwrap();
    let lie = |size| {
        let names = table(STRING, u64::MAX >> 1, &vec![0; size]);
        with_lines(line_program::unit_5(&names, &one_name(), &[]), Vec::new())
    };
    bounded("a count of folders that lies", 4 * MIB, lie).unwrap();
}

/// Empty entries of a bundle, and one whose name is the rest of the file.
#[test]
fn bundles_are_read_where_they_stand() {
    let magic = b"__CLANG_OFFLOAD_BUNDLE__";
    let empty = |size: usize| {
        let count = size as u64 / 24;
        [&magic[..], &count.to_le_bytes(), &vec![0; size]].concat()
    };
    assert!(matches!(bounded("empty entries", 4 * MIB, empty), Err(LoadError::Bundle { .. })));
    let named = |size: usize| {
        let numbers = [1, 0, 0, size as u64].map(u64::to_le_bytes).concat();
        [&magic[..], &numbers, &vec![b'a'; size]].concat()
    };
    assert!(matches!(bounded("a long name", 4 * MIB, named), Err(LoadError::Bundle { .. })));
    let lie = |size: usize| [&magic[..], &u64::MAX.to_le_bytes(), &vec![0; size]].concat();
    assert!(matches!(bounded("a count of entries that lies", 4 * MIB, lie), Err(LoadError::Damaged { .. })));
}

/// The size from the bug report: 12.6 MB, which took 1.1 GB.
#[test]
fn the_reported_table_of_files() {
    let make = |size| {
        let names = table(FLAG, size as u64, &vec![1; size]);
        with_lines(line_program::unit_5(&one_name(), &names, &[]), Vec::new())
    };
    bounded("12 MiB of files", 12 * MIB, make).unwrap();
}

#[test]
fn older_tables_of_files_and_folders_are_not_built() {
    for version in [2, 3, 4] {
        let folders = |size| {
            let tables = [&b"a\0".repeat(size / 2)[..], b"\0a\0\0\0\0\0"].concat();
            with_lines(unit(version, &tables, &[]), Vec::new())
        };
        bounded(&format!("folders of version {version}"), 4 * MIB, folders).unwrap();
        let files = |size| {
            let tables = [&b"\0"[..], &b"a\0\0\0\0".repeat(size / 5), b"\0"].concat();
            with_lines(unit(version, &tables, &[]), Vec::new())
        };
        bounded(&format!("files of version {version}"), 4 * MIB, files).unwrap();
        let defined = |size: usize| {
            let program = b"\x00\x05\x03\0\0\0\0".repeat(size / 7);
            with_lines(unit(version, b"\0a\0\0\0\0\0", &program), Vec::new())
        };
        bounded(&format!("DW_LNE_define_file of version {version}"), 4 * MIB, defined).unwrap();
    }
}

/// A row for each byte of the program.
#[test]
fn rows_are_counted() {
    let make = |size: usize| {
        // Code with an address for each row.
        let mut file = ElfFile::with_kernel();
        let code = vec![0; size];
        file.section(".text.more", PROGBITS, ALLOC | elf_file::EXECUTE, Content::Own(code));
        let program = [&set_address(0)[..], &vec![NEXT_LINE; size], &END].concat();
        let line = line_program::unit_5(&one_name(), &one_name(), &program);
        file.section(".debug_line", PROGBITS, 0, Content::Own(line));
        file.bytes()
    };
    let program = bounded("rows", 4 * MIB, make).unwrap();
    assert!(program.lines().rows().len() > 1 << 20, "{}", program.lines().rows().len());
    // Sequences that return to the start of the previous one.
    let make = |size| {
        let sequence = [&set_address(0)[..], &[NEXT_LINE; 20], &END].concat();
        let program = sequence.repeat(size / sequence.len());
        with_lines(line_program::unit_5(&one_name(), &one_name(), &program), Vec::new())
    };
    bounded("rows of one place", 4 * MIB, make).unwrap();
    let make = |size| with_lines(line_program::unit_5(&one_name(), &one_name(), &vec![1; size]), Vec::new());
    bounded("rows without an address", 4 * MIB, make).unwrap();
}

#[test]
fn units_are_walked_in_place() {
    let make = |size: usize| {
        let program = [&set_address(0)[..], &[NEXT_LINE], &END].concat();
        let small = line_program::unit_5(&one_name(), &one_name(), &program);
        // The first unit is large, so that anything kept between units is large.
        let names = table(STRING, 60_000, &[0; 60_000]);
        let every_file = (0..20_000).flat_map(|file| [&[4][..], &line_program::uleb(file), &[1]].concat());
        let program = [set_address(0), every_file.collect()].concat();
        let large = line_program::unit_5(&one_name(), &names, &program);
        with_lines([large, small.repeat(size / small.len())].concat(), Vec::new())
    };
    bounded("units", 4 * MIB, make).unwrap();
}

/// Long names and overlapping names, each of which takes only a few bytes of the file.
#[test]
fn paths_are_counted() {
    let rows = |files: usize| {
        let every_file =
            (0..files).flat_map(|file| [&[4][..], &line_program::uleb(file as u64), &[1]].concat());
        [set_address(0), every_file.collect()].concat()
    };
    let make = |size: usize| {
        let count = size / 8;
        let offsets = (0..count as u32).flat_map(|file| (file % 20_000).to_le_bytes());
        let names = table(LINE_STRP, count as u64, &offsets.collect::<Vec<u8>>());
        let line = line_program::unit_5(&one_name(), &names, &rows(count));
        let text = [&[b'a'; 4000][..], b"\0"].concat().repeat(6);
        with_lines(line, text)
    };
    bounded("long paths", MIB, make).unwrap();
    let make = |size: usize| {
        let count = 10_000;
        let offsets = (0..count as u32).flat_map(u32::to_le_bytes);
        let names = table(LINE_STRP, count as u64, &offsets.collect::<Vec<u8>>());
        let line = line_program::unit_5(&one_name(), &names, &rows(count));
        with_lines(line, [&vec![b'a'; size][..], b"\0"].concat())
    };
    bounded("paths that end far off", 16 * MIB, make).unwrap();
}

/// Nothing is inflated.
#[test]
fn compressed_lines_are_left_out() {
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        // Elf64_Chdr: ELFCOMPRESS_ZLIB, a false length, an alignment.
        let mut content: Vec<u8> = [1u64, 1 << 40, 1].iter().flat_map(|wide| wide.to_le_bytes()).collect();
        content.resize(size, 0);
        file.section(".debug_line", PROGBITS, elf_file::COMPRESSED, Content::Own(content));
        file.bytes()
    };
    let program = bounded("compressed lines", 4 * MIB, make).unwrap();
    assert!(program.lines().is_empty());
}

/// Key and value of a map in MessagePack: a list of `count` values.
fn list(count: usize, values: &[u8]) -> Vec<u8> {
    [b"\x81\xA1x\xDD", &(count as u32).to_be_bytes()[..], values].concat()
}

#[test]
fn values_of_metadata_are_not_built() {
    let nested = |size: usize| {
        let unit = [&[0x91; 13][..], &[0]].concat();
        with_metadata(&list(size / unit.len(), &unit.repeat(size / unit.len())))
    };
    bounded("nested lists", 7 * MIB, nested).unwrap();
    let maps = |size: usize| {
        let unit = [&[0x81, 0][..]].concat().repeat(12);
        let unit = [&unit[..], &[0]].concat();
        with_metadata(&list(size / unit.len(), &unit.repeat(size / unit.len())))
    };
    bounded("nested maps", 7 * MIB, maps).unwrap();
    let flat = |size| with_metadata(&list(size, &vec![0; size]));
    bounded("a flat list", 7 * MIB, flat).unwrap();
    let flat = |size: usize| {
        let map = [b"\x81\xA1x\xDF", &(size as u32 / 2).to_be_bytes()[..], &vec![0; size]].concat();
        with_metadata(&map)
    };
    bounded("a flat map", 7 * MIB, flat).unwrap();
    let texts = |size: usize| {
        let text = [b"\xDB", &(size as u32).to_be_bytes()[..], &vec![b'a'; size]].concat();
        with_metadata(&list(1, &text))
    };
    bounded("a long text", 7 * MIB, texts).unwrap();
    for tag in [0xDD, 0xDF, 0xDB, 0xC6, 0xC9] {
        let lie = |size| {
            let values = [&[tag, 0xFF, 0xFF, 0xFF, 0xFF][..], &vec![0; size]].concat();
            with_metadata(&list(1, &values))
        };
        let error = bounded(&format!("a count that lies behind {tag:#x}"), 7 * MIB, lie).unwrap_err();
        assert!(matches!(error, LoadError::Metadata { .. }), "{error}");
    }
    let deep = |size| with_metadata(&list(1, &vec![0x91; size]));
    assert!(matches!(bounded("endless nesting", 7 * MIB, deep), Err(LoadError::Metadata { .. })));
}

fn text(text: &str) -> Vec<u8> {
    [&[0xD9, text.len() as u8][..], text.as_bytes()].concat()
}

/// One kernel's metadata, with arguments of as few bytes as possible.
fn kernel_metadata(symbol: &str, arguments: usize) -> Vec<u8> {
    let argument =
        [&[0x83][..], &text(".offset"), &[0], &text(".size"), &[0], &text(".value_kind"), &text("x")]
            .concat();
    let mut bytes = vec![0x83];
    bytes.extend([text(".symbol"), text(symbol), text(".kernarg_segment_size"), vec![0]].concat());
    bytes.extend([text(".args"), vec![0xDD], (arguments as u32).to_be_bytes().into()].concat());
    bytes.extend(argument.repeat(arguments));
    bytes
}

fn kernels_metadata(kernels: &[Vec<u8>]) -> Vec<u8> {
    let count = (kernels.len() as u32).to_be_bytes();
    [&[0x81][..], &text("amdhsa.kernels"), &[0xDD], &count, &kernels.concat()].concat()
}

#[test]
fn kernels_and_arguments_are_counted() {
    let arguments = |size: usize| {
        let count = size / 40 / 4096;
        let kernels: Vec<_> = (0..count).map(|one| kernel_metadata(&format!("{one}.kd"), 4096)).collect();
        with_metadata(&kernels_metadata(&kernels))
    };
    bounded("arguments", 6 * MIB, arguments).unwrap();
    let kernels =
        |size: usize| with_metadata(&kernels_metadata(&vec![kernel_metadata("k.kd", 0); size / 45]));
    let error = bounded("kernels of the metadata", 6 * MIB, kernels).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the list of kernels", .. }), "{error}");
    // Many descriptors of one name, each of which would take a copy of the arguments.
    let copies = |size: usize| {
        let mut file = ElfFile::with_kernel();
        (0..size / 1024).for_each(|_| file.symbol_at(3, RODATA, 0, 1));
        file.metadata(&kernels_metadata(&[kernel_metadata("k.kd", 4096)]));
        file.bytes()
    };
    let error = bounded("kernels of one name", MIB, copies).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ELF file is damaged or cut off: two kernel descriptors are called \"k.kd\""
    );
}

/// A file of code symbols with names of one byte each.
#[test]
fn symbols_are_counted() {
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        (0..size / 24).for_each(|_| file.symbol_at(1, TEXT, 0, 2));
        file.bytes()
    };
    let program = bounded("symbols", 8 * MIB, make).unwrap();
    assert!(program.symbols().len() > 600_000);
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        let name = file.strings.len() as u32;
        file.strings.extend(vec![b'a'; 4000]);
        file.strings.push(0);
        (0..size / 24).for_each(|_| file.symbol_at(name, TEXT, 0, 2));
        file.bytes()
    };
    let error = bounded("symbols that share a long name", 2 * MIB, make).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the list of symbol names", .. }), "{error}");
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        let name = file.strings.len() as u32;
        file.strings.extend(vec![b'a'; size / 2]);
        file.strings.push(0);
        (0..size / 48).for_each(|_| file.symbol_at(name, TEXT, 0, 2));
        file.bytes()
    };
    let error = bounded("symbols whose name ends far off", 4 * MIB, make).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the list of symbol names", .. }), "{error}");
}

#[test]
fn sections_are_counted() {
    let many = |size: usize, name: u32| {
        let mut file = ElfFile::with_kernel();
        let section = Section { name, alignment: 1, ..file.sections[0].clone() };
        file.sections.extend(vec![section; size / 64]);
        file
    };
    let error = bounded("sections", 4 * MIB, |size| many(size, 0).bytes()).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the section table", .. }), "{error}");
    let make = |size: usize| {
        let mut file = many(16_000 * 64, 15);
        file.names.extend(vec![b'a'; size]);
        file.names.push(0);
        file.bytes()
    };
    bounded("sections whose name ends far off", 16 * MIB, make).unwrap();
}

#[test]
fn relocations_are_counted() {
    // Four bytes that hold the distance to themselves: R_AMDGPU_REL32 to the first symbol.
    let relocation: Vec<u8> = [0u64, 1 << 32 | 4, 0].iter().flat_map(|wide| wide.to_le_bytes()).collect();
    let shared = |size: usize, place: usize, name: &str| {
        let mut file = ElfFile::with_kernel();
        file.section(".debug_line", PROGBITS, 0, Content::Own(vec![0; 64]));
        let first = file.section(name, RELA, 0, Content::Own(relocation.repeat(size / 2 / 24)));
        (file.sections[first].info, file.sections[first].link) = (place as u32, 0);
        for _ in 0..(size / 2 / 64).min(4000) {
            let section = Section { content: Content::Shared(first), ..file.sections[first].clone() };
            file.sections.push(section);
        }
        // The symbol table is the second to last section.
        let table = file.sections.len() as u32 + 1;
        file.sections[first..].iter_mut().for_each(|section| section.link = table);
        file.bytes()
    };
    for (what, place) in [("relocations of code", TEXT), ("relocations of lines", 3)] {
        let error = bounded(what, MIB, |size| shared(size, place, ".rela")).unwrap_err();
        assert!(matches!(error, LoadError::TooLarge { what: "the list of relocations", .. }), "{error}");
    }
}

#[test]
fn notes_are_counted() {
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        // Notes without names and contents.
        let first = file.section(".note.more", NOTE, 0, Content::Own(vec![0; size / 2]));
        for _ in 0..(size / 2 / 64).min(8000) {
            let section = Section { content: Content::Shared(first), ..file.sections[first].clone() };
            file.sections.push(section);
        }
        file.bytes()
    };
    let error = bounded("notes", 2 * MIB, make).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the sum of the notes", .. }), "{error}");
}

/// Memory that a file requests beyond its own bytes.
#[test]
fn the_image_follows_the_file() {
    let make = |size: usize| {
        let mut file = ElfFile::with_kernel();
        let section = file.section(".data", PROGBITS, ALLOC, Content::Own(vec![1; size]));
        for _ in 0..(48 * MIB).div_ceil(size) {
            let again = Section { content: Content::Shared(section), ..file.sections[section].clone() };
            file.sections.push(again);
        }
        file.bytes()
    };
    let error = bounded("sections of the same bytes", MIB, make).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the program in memory", .. }), "{error}");
    let zeros = |bytes: usize| {
        let mut file = ElfFile::with_kernel();
        file.section(".bss", NOBITS, ALLOC | elf_file::WRITE, Content::Zeros(bytes as u64));
        file.bytes()
    };
    let error = bounded("zeros", 30 * MIB, zeros).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the program in memory", .. }), "{error}");
    assert_eq!(Program::parse(&zeros(7 * MIB)).unwrap().image().bytes().len(), CODE_AND_DESCRIPTOR + 7 * MIB);
    let loads = |count: usize| {
        let mut file = ElfFile::with_kernel();
        file.is_linked = true;
        let load = |index| Load { flags: 4, section: RODATA, address: index as u64 * 64, memory_bytes: 64 };
        file.loads = (0..count / 56).map(load).collect();
        file.bytes()
    };
    let error = bounded("segments", MIB, loads).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { what: "the program header table", .. }), "{error}");
}

/// Length of the image of a file with one kernel.
const CODE_AND_DESCRIPTOR: usize = elf_file::CODE_BYTES + 64;

/// A container with `code_bytes` of code, and tables (offset, entries) of files, lines and constants; `more` is
/// placed at byte 128.
fn container(code_bytes: usize, tables: [(u32, u32); 3], more: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    let code_offset = (128 + more.len()).next_multiple_of(256);
    let file_bytes = code_offset + code_bytes;
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    // The fields of docs/zrt-format.md; the name is the first byte after the header.
    let head =
        [u32::from_le_bytes(*b"ZRT\0"), 2 | 128 << 16, file_bytes as u32, 12 | 1 << 16, code_offset as u32];
    head.into_iter().enumerate().for_each(|(index, value)| put(4 * index, value));
    put(20, code_bytes as u32);
    [
        0x400F_0001,
        2 << 1,
        0,
        32 | 2 << 8 | 10 << 16,
        40 | 32 << 16,
        1 | 1 << 16,
        0,
        0,
        1 | 4 << 16,
        8,
        128,
        1,
    ]
    .into_iter()
    .enumerate()
    .for_each(|(index, value)| put(28 + 4 * index, value));
    for (index, (offset, count)) in tables.into_iter().enumerate() {
        put(76 + 8 * index, offset);
        put(80 + 8 * index, count);
    }
    bytes.extend_from_slice(more);
    bytes.resize(file_bytes, 0);
    bytes
}

#[test]
fn tables_of_containers_are_counted() {
    assert!(Program::parse(&container(1024, [(128, 0); 3], b"k")).is_ok());
    let dwords = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    // Every path is the same 255 bytes.
    let files = |size: usize| {
        let count = size / 8;
        let more = [&[b'k'; 256][..], &dwords(&[128, 255]).repeat(count)].concat();
        container(1024, [(384, count as u32), (128, 0), (128, 0)], &more)
    };
    let error = bounded("files of a container", 4 * MIB, files).unwrap_err();
    assert!(error.to_string().starts_with("file table is"), "{error}");
    let lines = |size: usize| {
        let count = size / 16;
        let lines = (0..count as u32).flat_map(|one| dwords(&[4 * one, 0, 1]));
        let more = [&[b'k'; 256][..], &dwords(&[128, 255]), &lines.collect::<Vec<u8>>()].concat();
        container(4 * count, [(384, 1), (392, count as u32), (128, 0)], &more)
    };
    let program = bounded("lines of a container", 4 * MIB, lines).unwrap();
    assert_eq!(program.lines().rows().len(), 8 * MIB / 16);
    let constants = |size: usize| {
        let count = size / 20;
        let more = [&[b'k'; 256][..], &dwords(&[128, 255, 0, 0]).repeat(count)].concat();
        container(4 * count, [(128, 0), (128, 0), (384, count as u32)], &more)
    };
    bounded("constants of a container", 4 * MIB, constants).unwrap();
    for table in 0..3 {
        let lie = |size: usize| {
            let mut tables = [(128, 0); 3];
            tables[table] = (128, u32::MAX);
            container(size / 4 * 4, tables, b"k")
        };
        assert!(matches!(bounded("a count that lies", 4 * MIB, lie), Err(LoadError::Zrt(_))));
    }
}
