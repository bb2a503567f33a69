//! The cost of hostile code objects for `zrt disasm` and `zrt lint`: reading takes memory of at most eight times the
//! file and 16 MiB and time n log n, listing hardly any; the lint has limits of its own.
//!
//! Memory is the peak of a counting allocator. Time is not measured: the files are so large that work which grows with
//! the square of a count would take minutes.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "../../loader/tests/data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;
#[path = "../../loader/tests/data/line_program.rs"]
#[allow(dead_code)]
mod line_program;

use elf_file::{ALLOC, Content, EXECUTE, ElfFile, PROGBITS, RODATA, Section, TEXT};
use line_program::{END, NEXT_LINE, STRING, set_address, table};
use std::fmt::Write;
use zrt_isa::resources::WaveSize;
use zrt_tools::listing::{Line, Lines, Listing};
use zrt_tools::machine_code::{self, CodeError, MachineCode};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// s_branch to itself, as llvm-mc 19 encodes it.
const BRANCH: u32 = 0xbfa0_ffff;
/// Types of symbols.
const DATA: u8 = 1;
const FUNCTION: u8 = 2;

/// The most that a file of `bytes` may take.
fn limit(bytes: usize) -> usize {
    8 * bytes + 16 * MIB
}

/// The code of a file, or what is wrong with it, in so much memory.
fn parse(bytes: &[u8]) -> Result<MachineCode, CodeError> {
    let mut result = None;
    let counted = allocation_counter::measure(|| result = Some(MachineCode::parse(bytes, WaveSize::Wave32)));
    let (peak, limit) = (counted.bytes_max as usize, limit(bytes.len()));
    println!("{} bytes of file, {peak} of memory, at most {limit}", bytes.len());
    assert!(peak <= limit, "{peak} bytes for a file of {}, at most {limit}", bytes.len());
    result.unwrap()
}

fn error(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

/// Takes a text and counts its bytes.
struct Counted(usize);

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// The bytes of the text of the first section, and of the memory that it takes to write it.
fn text_of(code: &MachineCode) -> (usize, usize) {
    let mut text = Counted(0);
    let counted = allocation_counter::measure(|| {
        write!(text, "{}", Listing(&code.sections[0])).unwrap();
    });
    (text.0, counted.bytes_max as usize)
}

/// The lines of the first section, and the bytes of their text.
fn listed(bytes: &[u8]) -> (Vec<Line>, usize) {
    let code = parse(bytes).unwrap();
    let (text, peak) = text_of(&code);
    println!("{} bytes of file, {peak} of memory for {text} of text", bytes.len());
    assert!(peak <= 4 * bytes.len() + 65_536, "{peak} bytes for a file of {}", bytes.len());
    (list(&code.sections[0]), text)
}

fn list(section: &machine_code::Section) -> Vec<Line> {
    Lines::of(section).collect()
}

/// A file with one kernel and so much more code, the section after the two of the kernel.
fn with_code(code: Vec<u8>) -> (ElfFile, usize) {
    let mut file = ElfFile::with_kernel();
    let section = file.section(".text.more", PROGBITS, ALLOC | EXECUTE, Content::Own(code));
    (file, section)
}

/// Adds a symbol with a length.
fn sized_symbol(file: &mut ElfFile, name_at: u32, place: (usize, u64), kind: u8, bytes: u64) {
    file.symbol_at(name_at, place.0, place.1, kind);
    let length_at = file.symbols.len() - 8;
    file.symbols[length_at..].copy_from_slice(&bytes.to_le_bytes());
}

/// Adds a name of so many letters. Returns where it is.
fn long_name(file: &mut ElfFile, bytes: usize) -> u32 {
    let name_at = file.strings.len() as u32;
    file.strings.resize(file.strings.len() + bytes, b'n');
    file.strings.push(0);
    name_at
}

/// The file with another address of a section.
fn with_address(file: ElfFile, section: usize, address: u64) -> Vec<u8> {
    let mut bytes = file.bytes();
    let table_at = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[table_at + 64 * section + 16..][..8].copy_from_slice(&address.to_le_bytes());
    bytes
}

/// 2000 sections of the same 128 KiB took 9.6 GB and 44 s.
#[test]
fn bytes_belong_to_one_section() {
    let (mut file, first) = with_code(vec![0; 128 * KIB]);
    for _ in 0..2000 {
        file.sections.push(Section { content: Content::Shared(first), ..file.sections[first].clone() });
    }
    let expected =
        "its sections 3 and 4 share bytes, and at most one section has a byte; compile or copy it again";
    assert_eq!(error(&file.bytes()), expected);
}

/// Sections may touch; one byte in common is too much, and those without bytes have none in common.
#[test]
fn sections_share_no_byte() {
    let with = |bytes: u64| {
        let mut file = ElfFile::with_kernel();
        let more = file.section(".more", PROGBITS, 0, Content::Own(vec![0; 8]));
        file.section(".bss", elf_file::NOBITS, ALLOC, Content::Zeros(1 << 40));
        let mut file = file.bytes();
        let table_at = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        // The section before ends where it begins, at a multiple of 8.
        file[table_at + 64 * (more - 1) + 32..][..8].copy_from_slice(&bytes.to_le_bytes());
        parse(&file)
    };
    assert_eq!(with(64).unwrap().sections.len(), 1);
    let error = with(65).unwrap_err();
    assert!(matches!(error, CodeError::SharedBytes { first: 2, second: 3 }), "{error}");
}

/// The second of two sections has no bytes, and its place is within those of the first.
#[test]
fn an_empty_section_may_lie_in_another_one() {
    let with = |length: u64| {
        let mut file = ElfFile::with_kernel();
        let outer = file.section(".outer", PROGBITS, 0, Content::Own(vec![0; 64]));
        let inner = file.section(".inner", PROGBITS, 0, Content::Own(vec![0; 8]));
        let mut bytes = file.bytes();
        let table_at = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        let field = |section: usize, offset: usize| table_at + 64 * section + offset;
        // Fields of a section's header: its place in the file at 24, its length at 32.
        let outer_at = u64::from_le_bytes(bytes[field(outer, 24)..][..8].try_into().unwrap());
        bytes[field(inner, 24)..][..8].copy_from_slice(&(outer_at + 16).to_le_bytes());
        bytes[field(inner, 32)..][..8].copy_from_slice(&length.to_le_bytes());
        parse(&bytes)
    };
    assert_eq!(with(0).unwrap().sections.len(), 1);
    assert!(matches!(with(1), Err(CodeError::SharedBytes { .. })));
}

/// 4000 symbols of one name of 96 KB took 386 MB.
#[test]
fn names_have_a_limit_each_and_together() {
    let with = |count: u64, name_bytes: usize| {
        let (mut file, section) = with_code(vec![0; 16 * KIB]);
        let name = long_name(&mut file, name_bytes);
        (0..count).for_each(|index| file.symbol_at(name, section, 4 * index, 0));
        file.bytes()
    };
    let expected = "the name of symbol 3 has more than 4096 bytes, and at most 4096 are read; rename it";
    assert_eq!(error(&with(4000, 96 << 10)), expected);
    assert_eq!(error(&with(1, 4097)), expected);
    assert_eq!(parse(&with(1, 4096)).unwrap().sections[1].symbols[&0][0].len(), 4096);
    let bytes = with(4000, 4096);
    let error = error(&bytes);
    let expected = format!("but at most {} are read; strip or split it", bytes.len() + MIB);
    assert!(error.starts_with("the list of symbol names has ") && error.ends_with(&expected), "{error}");
}

/// Names may share their bytes, so their sum may exceed the file; sections' names count as symbols' do.
#[test]
fn names_have_a_mebibyte_more_than_the_file_at_most() {
    let with = |last_bytes: u32| {
        let mut file = ElfFile::with_kernel();
        let name = long_name(&mut file, 4096);
        (0..258).for_each(|_| file.symbol_at(name, TEXT, 0, 0));
        file.symbol_at(name + 4096 - last_bytes, TEXT, 0, 0);
        file.bytes()
    };
    // The names of the kernel, of its section and those of the others, and what is left for the last one.
    let last = (with(1).len() + MIB - 1 - ".text".len() - 258 * 4096) as u32;
    assert!((1..4096).contains(&last), "{last}");
    // Of equal names one is kept.
    assert_eq!(parse(&with(last)).unwrap().sections[0].symbols[&0].len(), 3);
    assert!(matches!(
        parse(&with(last + 1)),
        Err(CodeError::TooLarge { what: "the list of symbol names", .. })
    ));
    let mut file = ElfFile::with_kernel();
    file.sections[TEXT].name = file.names.len() as u32;
    file.names.extend([b's'; 4097]);
    file.names.push(0);
    let expected = "the name of section 1 has more than 4096 bytes, and at most 4096 are read; rename it";
    assert_eq!(error(&file.bytes()), expected);
}

/// A symbol that names no code may have any name: it is read up to the limit, and never kept.
#[test]
fn names_of_data_are_not_read_to_their_end() {
    let mut file = ElfFile::with_kernel();
    let name = long_name(&mut file, 16 * MIB);
    (0..400_000).for_each(|_| file.symbol_at(name, RODATA, 0, DATA));
    // So may one that lies behind the code of its section.
    file.symbol_at(name, TEXT, 1 << 20, FUNCTION);
    assert_eq!(parse(&file.bytes()).unwrap().sections[0].symbols.len(), 1);
}

/// 40,000 short symbols took 15 s, since all names were searched for the descriptor of each.
#[test]
fn a_descriptor_is_not_searched_for() {
    let count = 400_000;
    let (mut file, section) = with_code(vec![0; 4 * count]);
    for index in 0..count {
        file.symbol(&format!("{index:x}"), section, 4 * index as u64, FUNCTION);
        if index % 2 == 0 {
            file.symbol(&format!("{index:x}.kd"), RODATA, 0, DATA);
        }
    }
    let code = parse(&file.bytes()).unwrap();
    let section = &code.sections[1];
    assert_eq!((section.symbols.len(), section.entries.len()), (count, count / 2));
    assert_eq!(section.wave_size(count - 1), WaveSize::Wave32);
}

/// What costs most for its bytes: a function for each word of code, whose names share their bytes.
#[test]
fn functions_fit_eight_times_the_file() {
    for count in [100_000, 600_000] {
        let (mut file, section) = with_code(vec![0; 4 * count]);
        let name = long_name(&mut file, 28);
        for index in 0..count {
            sized_symbol(&mut file, name + index as u32 % 8, (section, 4 * index as u64), FUNCTION, 4);
        }
        let code = parse(&file.bytes()).unwrap();
        assert_eq!((code.sections[1].called.len(), code.sections[1].functions.len()), (count, count));
    }
}

/// A list of lines would take the square of the kernels, if each instruction searched them for its wave size.
#[test]
fn an_instruction_does_not_search_the_kernels() {
    let count = 400_000;
    let (mut file, section) = with_code(vec![0; 4 * count]);
    (0..count as u64).for_each(|index| file.symbol_at(1, section, 4 * index, FUNCTION));
    let code = parse(&file.bytes()).unwrap();
    assert_eq!(code.sections[1].entries.len(), count);
    assert_eq!(list(&code.sections[1]).len(), count);
}

/// Branches to one place with a name of so many bytes.
fn branches(count: usize, name_bytes: usize) -> Vec<u8> {
    let mut file = ElfFile::new();
    let words = (0..count as u32).map(|index| (BRANCH - index).to_le_bytes());
    file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(words.flatten().collect()));
    let name = long_name(&mut file, name_bytes);
    file.symbol_at(name, TEXT, 0, FUNCTION);
    file.bytes()
}

/// 10,000 branches to one name of 40 KB took 1.19 GB.
#[test]
fn branches_share_the_name_of_their_target() {
    let expected = "the name of symbol 1 has more than 4096 bytes, and at most 4096 are read; rename it";
    assert_eq!(error(&branches(10_000, 40_000)), expected);
    let (lines, text) = listed(&branches(10_000, 4096));
    assert_eq!(lines[0].labels, lines[0].target.clone().into_iter().collect::<Vec<_>>());
    // Eight times the code and the label, then addresses.
    let named = lines.iter().take_while(|line| line.target == lines[0].target).count();
    assert_eq!(named, 8 * (40_000 + 4096) / 4096);
    assert!(lines[named..].iter().all(|line| line.target.as_deref() == Some("0x0")));
    assert!(text < 2 * MIB, "{text}");
    // Names of 32 bytes are always said.
    let (lines, _) = listed(&branches(10_000, 32));
    assert!(lines.iter().all(|line| line.target.as_ref() == lines[0].labels.first()));
}

/// One section at the last addresses, with a kernel.
#[test]
fn a_section_ends_at_the_last_address_at_most() {
    let expected = "its section 1 has 256 bytes at 0xfffffffffffffff0, which reach beyond the last address; compile or \
                    copy it again";
    assert_eq!(error(&with_address(ElfFile::with_kernel(), TEXT, u64::MAX - 15)), expected);
    let last = u64::MAX - 255;
    assert!(parse(&with_address(ElfFile::with_kernel(), TEXT, last + 1)).is_err());
    let mut file = ElfFile::new();
    file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(0xbfa0_7fffu32.to_le_bytes().repeat(64)));
    let code = parse(&with_address(file, TEXT, last)).unwrap();
    let section = &code.sections[0];
    assert_eq!(section.place(63).address, u64::MAX - 3);
    // A branch wraps, as the program counter does.
    let lines = list(section);
    let ends = [&lines[0], &lines[63]].map(|line| (line.offset, line.target.as_deref().unwrap()));
    let expected = [(last, "0x1ff00, outside of the code"), (u64::MAX - 3, "0x1fffc, outside of the code")];
    assert_eq!(ends, expected);
}

/// A header has 64 bytes.
#[test]
fn a_file_has_16384_sections_at_most() {
    let with = |count: usize| {
        let mut file = ElfFile::with_kernel();
        // Three more are added: the symbols, their names and the sections' names.
        file.sections.resize(count - 3, file.sections[0].clone());
        parse(&file.bytes())
    };
    assert!(with(16_384).is_ok());
    let expected = "the section table has 1048640 bytes, but at most 1048576 are read; strip or split it";
    assert_eq!(with(16_385).unwrap_err().to_string(), expected);
}

#[test]
fn a_file_has_256_mebibytes_at_most() {
    // With this magic the rest is not looked at for long.
    let refused = |bytes: usize| {
        let mut file = vec![0; bytes];
        file[..4].copy_from_slice(b"\x7fELF");
        MachineCode::parse(&file, WaveSize::Wave32).unwrap_err()
    };
    assert!(matches!(refused((256 << 20) + 1), CodeError::Size));
    assert!(matches!(refused(256 << 20), CodeError::Elf(_)));
}

/// An instruction that is followed takes a kilobyte at most, and 131,072 are; what is known where paths meet, 16 MiB.
/// Branches that all begin blocks of their own took 196 MB for 128 KiB: they are checked whole.
#[test]
fn the_lint_takes_no_more_than_its_limits() {
    const END: u32 = 0xbfb0_0000;
    let branch = |index: u32| 0xbfa1_0000 + 32_767 - index;
    let long = [vec![0xbf80_0000; 4 << 20], vec![END]].concat();
    let branches = [(0..32_767).map(branch).collect(), vec![END; 2]].concat();
    // Each branches past a no-op.
    let meetings = [[0xbfa1_0001, 0xbf80_0000].repeat(16_384), vec![END]].concat();
    for (code, is_whole) in [(long, false), (branches, true), (meetings, false)] {
        let mut found = Vec::new();
        let counted = allocation_counter::measure(|| found = zrt_isa::lint::check(&code, 0));
        let limit = 1024 * code.len().min(131_072) + 16 * MIB;
        let peak = counted.bytes_max as usize;
        println!("{} bytes of code, {peak} of memory, at most {limit}", 4 * code.len());
        assert!(peak <= limit, "{peak} bytes for {} of code, at most {limit}", 4 * code.len());
        let is_cut = found.iter().any(|one| one.rule == zrt_isa::lint::Rule::NotAnalysed);
        assert_eq!(!is_cut, is_whole);
    }
}

/// Adds so many rows, four bytes from each other, of a file with a name of so many bytes.
fn add_lines(file: &mut ElfFile, rows: usize, path_bytes: usize) {
    let program = [&set_address(0)[..], &vec![NEXT_LINE; rows], &END].concat();
    let path = [&vec![b'p'; path_bytes][..], b"\0"].concat();
    let files = table(STRING, 2, &path.repeat(2));
    let line = line_program::unit_5(&table(STRING, 1, b"a\0"), &files, &program);
    file.section(".debug_line", PROGBITS, 0, Content::Own(line));
}

/// So many kernels in sections of their own, then code with a row for each word; all rows name a file of so many bytes.
fn with_lines(kernels: usize, rows: usize, path_bytes: usize) -> Vec<u8> {
    let mut file = ElfFile::with_kernel();
    for index in 0..kernels {
        let code = Content::Own(vec![0; 4]);
        let section = file.section(".text", PROGBITS, ALLOC | EXECUTE, code);
        file.symbol(&format!("k{index}"), section, 0, FUNCTION);
        let descriptor = Content::Own(elf_file::descriptor(-4).into());
        let section = file.section(".rodata", PROGBITS, ALLOC, descriptor);
        file.symbol(&format!("k{index}.kd"), section, 0, DATA);
    }
    file.section(".text.more", PROGBITS, ALLOC | EXECUTE, Content::Own(vec![0; 4 * rows]));
    add_lines(&mut file, rows, path_bytes);
    file.bytes()
}

/// Each section had a copy of all rows from its start on.
#[test]
fn sections_share_the_rows_of_lines() {
    let code = parse(&with_lines(1000, 200_000, 8)).unwrap();
    assert_eq!(code.sections.len(), 1002);
    // The first row is that of the second dword. Kernels lie at multiples of 256 bytes, in the order of their sections.
    assert_eq!(
        (code.sections[0].source_line(0), code.sections[0].source_line(1)),
        (None, Some(("pppppppp", 2)))
    );
    for (index, section) in code.sections[1..1001].iter().enumerate() {
        let line = 1 + (index as u32 + 2) * 256 / 4;
        assert_eq!(section.source_line(0), Some(("pppppppp", line)), "{index}");
    }
}

/// Each line had a copy of its file's name: 20 MB here.
#[test]
fn lines_share_the_names_of_files() {
    let mut file = ElfFile::new();
    file.section(".text", PROGBITS, ALLOC | EXECUTE, Content::Own(vec![0; 40_000]));
    let descriptor = Content::Own(elf_file::descriptor(-40_000).into());
    file.section(".rodata", PROGBITS, ALLOC, descriptor);
    file.symbol("k", TEXT, 0, FUNCTION);
    file.symbol("k.kd", RODATA, 0, DATA);
    add_lines(&mut file, 10_000, 2000);
    let code = parse(&file.bytes()).unwrap();
    let lines = list(&code.sections[0]);
    assert!(lines[1..].iter().all(|line| line.source.as_ref().is_some_and(|(file, _)| file.len() == 2000)));
    // The text has 256 characters of the name in each line, and no line is kept.
    let (text, peak) = text_of(&code);
    assert!((10_000 * 256..10_000 * 400).contains(&text) && peak < 4096, "{peak} bytes for {text} of text");
}
