//! Files made from one object by changing single fields; what they say is in `loader/tests/data/double.s`.

use super::*;
use crate::double_object::DOUBLE_OBJECT;
use crate::elf_file::{self, ElfFile};
use std::ops::Range;

/// Dwords of the object: e_type and e_machine, e_flags; the first of RSRC2 and properties of the descriptor.
const TYPE_AND_MACHINE: usize = 4;
const FLAGS: usize = 12;
const RSRC2: usize = 93;
const PROPERTIES: usize = 94;
/// Dwords of the symbols' info, value and length: label `done`, function `double`, descriptor `double.kd`.
const DONE: [usize; 3] = [189, 190, 192];
const DOUBLE: [usize; 3] = [195, 196, 198];
const DESCRIPTOR: [usize; 3] = [201, 202, 204];
/// Dwords of flags, address and length in the headers of `.text` and `.rodata`.
const TEXT: [usize; 3] = [262, 264, 268];
const RODATA: [usize; 3] = [278, 280, 284];

/// The object with other dwords in some places.
fn changed(changes: &[(usize, u32)]) -> Vec<u8> {
    let mut words = DOUBLE_OBJECT;
    changes.iter().for_each(|(at, word)| words[*at] = *word);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn parse(bytes: &[u8]) -> Result<MachineCode, CodeError> {
    MachineCode::parse(bytes, WaveSize::Wave32)
}

/// The only section of the changed object.
#[track_caller]
fn section(changes: &[(usize, u32)]) -> Section {
    let mut code = parse(&changed(changes)).unwrap();
    assert_eq!((code.format, code.sections.len()), (Format::Elf, 1));
    code.sections.remove(0)
}

fn entry_of(name: &str, dwords: Range<usize>, wave_size: WaveSize, user_sgprs: u8) -> Entry {
    Entry { name: name.into(), dword: dwords.start, end: dwords.end, wave_size, user_sgprs }
}

fn error(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

#[test]
fn an_object_has_its_kernel_and_its_labels() {
    let names = |list: &[&str]| list.iter().map(|name| Name::from(*name)).collect::<Vec<_>>();
    let expected = Section {
        name: ".text".into(),
        address: 0,
        words: DOUBLE_OBJECT[0x40..0x4d].to_vec(),
        symbols: BTreeMap::from([(0, names(&["double"])), (12, names(&["done"]))]),
        entries: vec![entry_of("double", 0..13, WaveSize::Wave32, 2)],
        called: Vec::new(),
        is_linked: false,
        functions: BTreeMap::from([(0, "double".into())]),
        lines: Vec::new(),
    };
    assert_eq!(section(&[]), expected);
    // A shared object is linked.
    assert_eq!(section(&[(TYPE_AND_MACHINE, 0x00e0_0003)]), Section { is_linked: true, ..expected });
}

/// Bits 5:1 of RSRC2 are the user SGPRs, bit 10 of the properties is wave32.
#[test]
fn a_kernels_descriptor_says_its_waves_and_registers() {
    for (rsrc2, properties, wave_size, user_sgprs) in [
        (0x84, 0x0408, WaveSize::Wave32, 2),
        (0x3f, 0x0400, WaveSize::Wave32, 31),
        (0xc1, 0xfbff, WaveSize::Wave64, 0),
        (0x20, 0x0000, WaveSize::Wave64, 16),
    ] {
        let section = section(&[(RSRC2, rsrc2), (PROPERTIES, properties)]);
        assert_eq!(section.entries, [entry_of("double", 0..13, wave_size, user_sgprs)], "{rsrc2:#x}");
        assert_eq!(section.wave_size(0), wave_size);
    }
}

#[test]
fn a_kernel_is_where_its_symbol_is_and_as_long() {
    let kernel = |value, bytes| {
        let entries = section(&[(DOUBLE[1], value), (DOUBLE[2], bytes)]).entries;
        entries.first().map(|entry| (entry.dword, entry.end))
    };
    assert_eq!(kernel(0x10, 0x10), Some((4, 8)));
    assert_eq!(kernel(0x10, 0x24), Some((4, 13)));
    // No longer than the section; without a length as long as that.
    assert_eq!(kernel(0x10, 0x28), Some((4, 13)));
    assert_eq!(kernel(0x10, 0), Some((4, 13)));
    // The last dword is in it, the next one is not.
    assert_eq!(kernel(0x30, 4), Some((12, 13)));
    assert_eq!(kernel(0x34, 4), None);
}

/// The addresses of sections and symbols grow together; what lies before its section is in none.
#[test]
fn places_count_from_the_sections_address() {
    let moved = [
        (TEXT[1], 0x1000),
        (DOUBLE[1], 0x1010),
        (DONE[1], 0x1030),
        (RODATA[1], 0x2000),
        (DESCRIPTOR[1], 0x2000),
    ];
    let found = section(&moved);
    assert_eq!((found.address, found.entries[0].dword), (0x1000, 4));
    assert_eq!(found.symbols.keys().collect::<Vec<_>>(), [&4, &12]);
    assert_eq!(found.place(12), CodePlace { function: "double".into(), offset: 0x20, address: 0x1030 });
    // Before the first function places count from the section's start.
    assert_eq!(found.place(3), CodePlace { function: ".text".into(), offset: 12, address: 0x100c });
    let before = section(&[(TEXT[1], 0x1000), (DONE[1], 0x1004)]);
    assert_eq!(before.symbols.keys().collect::<Vec<_>>(), [&1]);
    assert!(before.entries.is_empty());
    // Half a descriptor is none, nor is one before its section; the function is called by others then.
    for changes in [[(DESCRIPTOR[1], 1), (RODATA[1], 0)], [(DESCRIPTOR[1], 0), (RODATA[1], 0x2000)]] {
        let found = section(&changes);
        assert!(found.entries.is_empty(), "{changes:?}");
        assert_eq!(found.called, [entry_of("double", 0..13, WaveSize::Wave32, 0)], "{changes:?}");
    }
}

/// A function that is no kernel is called; its waves are those of the kernel before it.
#[test]
fn functions_with_a_length_are_called() {
    let function = |bytes| section(&[(DONE[0], 0x0002_0002), (DONE[2], bytes), (PROPERTIES, 0)]);
    let found = function(4);
    assert_eq!(found.called, [entry_of("done", 12..13, WaveSize::Wave64, 0)]);
    assert_eq!(found.functions, BTreeMap::from([(0, "double".into()), (12, "done".into())]));
    assert_eq!((function(0).called, function(0).functions.len()), (vec![], 1));
    // Data with a length counts as a place, and is not called.
    let data = section(&[(DONE[0], 0x0002_0001), (DONE[2], 4)]);
    assert_eq!((data.called, data.functions.len()), (vec![], 2));
    // A second name of the kernel's place is no function of its own.
    let same = section(&[(DONE[0], 0x0002_0002), (DONE[1], 0), (DONE[2], 52)]);
    assert_eq!((same.called, same.functions), (vec![], BTreeMap::from([(0, "double".into())])));
    assert_eq!(same.symbols[&0], ["done", "double"].map(Name::from));
    // Symbols of files and sections name no place.
    for kind in [0x0002_0003, 0x0002_0004] {
        assert_eq!(section(&[(DONE[0], kind)]).symbols.len(), 1);
    }
}

/// Two descriptors of one kernel, in either order of their symbols; none lies in code.
#[test]
fn of_several_descriptors_the_first_place_counts() {
    let wave_sizes = |places: &[(usize, u64)]| {
        let mut file = ElfFile::with_kernel();
        // Zeros are one of wave64.
        let descriptors = [elf_file::descriptor(0), [0; 64]].concat();
        file.sections[elf_file::RODATA].content = elf_file::Content::Own(descriptors);
        // The null symbol and the kernel stay.
        file.symbols.truncate(2 * 24);
        for (section, address) in places {
            file.symbol("k.kd", *section, *address, 1);
        }
        let code = parse(&file.bytes()).unwrap();
        code.sections[0].entries.iter().map(|entry| entry.wave_size).collect::<Vec<_>>()
    };
    let (text, rodata) = (elf_file::TEXT, elf_file::RODATA);
    assert_eq!(wave_sizes(&[(rodata, 0), (rodata, 64)]), [WaveSize::Wave32]);
    assert_eq!(wave_sizes(&[(rodata, 64), (rodata, 0)]), [WaveSize::Wave32]);
    assert_eq!(wave_sizes(&[(rodata, 64), (text, 0)]), [WaveSize::Wave64]);
    assert_eq!(wave_sizes(&[(text, 0)]), []);
}

#[test]
fn all_waves_of_a_file_can_be_given_another_size() {
    let mut code = parse(&changed(&[(DONE[0], 0x0002_0002), (DONE[2], 4)])).unwrap();
    code.set_wave_size(WaveSize::Wave64);
    let section = &code.sections[0];
    assert_eq!(
        (section.entries[0].wave_size, section.called[0].wave_size),
        (WaveSize::Wave64, WaveSize::Wave64)
    );
}

/// Dwords from a kernel on are its own; those before the first one are the first one's.
#[test]
fn waves_are_those_of_the_kernel_before() {
    let mut section = section(&[]);
    section.entries =
        vec![entry_of("a", 2..4, WaveSize::Wave64, 0), entry_of("b", 5..9, WaveSize::Wave32, 0)];
    let sizes = [0, 2, 4, 5, 12].map(|dword| section.wave_size(dword).lanes());
    assert_eq!(sizes, [64, 64, 64, 32, 32]);
    section.entries.clear();
    assert_eq!(section.wave_size(5), WaveSize::Wave32);
}

#[test]
fn a_source_line_holds_from_its_row_to_the_next() {
    let mut section = section(&[]);
    let rows = [(8, 0, 7), (20, LineRow::NONE, 0), (32, 0, 9)];
    let rows = rows.map(|(offset, file, line)| LineRow { offset, file, line }).to_vec();
    section.lines = vec![SourceLines::new(vec!["k.cl".into()], rows)];
    let lines = [1, 2, 4, 5, 7, 8, 12].map(|dword| section.source_line(dword).map(|(_, line)| line));
    assert_eq!(lines, [None, Some(7), Some(7), None, None, Some(9), Some(9)]);
    assert_eq!(section.source_line(4), Some(("k.cl", 7)));
}

/// s_nop, a load of three dwords, a word that is no instruction, s_endpgm.
const RAW: [u32; 6] = [0xbf80_0000, 0xee05_0000, 0x0000_0002, 0x0000_0001, 0xffff_ffff, 0xbfb0_0000];

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn raw_words_are_one_kernel_without_a_name() {
    let code = MachineCode::parse(&bytes_of(&RAW), WaveSize::Wave64).unwrap();
    let expected = Section {
        name: Name::default(),
        address: 0,
        words: RAW.to_vec(),
        symbols: BTreeMap::new(),
        entries: vec![entry_of("", 0..6, WaveSize::Wave64, 16)],
        called: Vec::new(),
        is_linked: true,
        functions: BTreeMap::new(),
        lines: Vec::new(),
    };
    assert_eq!(code, MachineCode { format: Format::Raw, sections: vec![expected] });
    // It has the name under which it is launched.
    let place = CodePlace { function: "raw".into(), offset: 0x14, address: 0x14 };
    assert_eq!(code.sections[0].place(5), place);
}

#[test]
fn a_container_has_its_kernel_and_its_lines() {
    let code = bytes_of(&[RAW[0]; 80]);
    let kernel = Kernel {
        name: "k",
        code: &code,
        entry: 256,
        rsrc1: 0,
        rsrc2: 0,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 5,
        vgprs: 8,
        sgprs: 8,
        workgroup: [32, 1, 1],
        lds_bytes: 0,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 1,
        parameter_bytes: 8,
        files: vec!["a.s", "b.s"],
        lines: vec![
            zrt::Line { code_offset: 0, file: 1, line: 3 },
            zrt::Line { code_offset: 264, file: 2, line: 9 },
            zrt::Line { code_offset: 272, file: 0, line: 4 },
        ],
        constants: Vec::new(),
    };
    let code = MachineCode::from_kernel(&kernel);
    let section = &code.sections[0];
    assert_eq!((code.format, section.words.len(), section.is_linked), (Format::Zrt, 80, true));
    assert_eq!(section.entries, [entry_of("k", 64..80, WaveSize::Wave32, 5)]);
    assert_eq!(section.symbols, BTreeMap::from([(64, vec!["k".into()])]));
    assert_eq!(section.place(66), CodePlace { function: "k".into(), offset: 8, address: 0x108 });
    // A line of a file that is not there has none.
    let lines = [0, 65, 66, 68].map(|dword| section.source_line(dword));
    assert_eq!(lines, [Some(("b.s", 3)), Some(("b.s", 3)), None, Some(("a.s", 4))]);
    assert_eq!(parse(zrt_asm::blob("mega").unwrap()).unwrap().format, Format::Zrt);
}

/// Every way in which a file has no code for us, and what is said then.
#[test]
fn what_is_wrong_with_a_file_is_said() {
    for target in [0x48, 0x4e, 0x59, 0x54e] {
        assert!(parse(&changed(&[(FLAGS, target)])).is_ok(), "{target:#x}");
    }
    assert_eq!(
        error(&changed(&[(FLAGS, 0x54c)])),
        "it is code for the GPU with ELF number 0x4c, not gfx1201 (0x4e); compile it with -mcpu=gfx1201"
    );
    assert_eq!(
        error(&changed(&[(TYPE_AND_MACHINE, 0x003e_0001)])),
        "it is an ELF file for machine 62, not for AMD GPUs (224); compile it for amdgcn and gfx1201"
    );
    let no_code = "it is an ELF file without code; give the one that has the kernels";
    for change in [(TEXT[0], 2), (TEXT[2], 0)] {
        assert_eq!(error(&changed(&[change])), no_code);
    }
    let cut = error(&changed(&[])[..0x60]);
    assert!(
        cut.starts_with("it is not a complete ELF file: ") && cut.ends_with("; compile or copy it again"),
        "{cut}"
    );
    assert_eq!(error(&[]), "it is empty; give a .zrt file, an ELF code object or raw gfx1201 code");
    assert_eq!(
        error(&[1; 6]),
        "it is neither .zrt nor ELF, and raw code of 6 bytes is cut: instructions are words of 4 bytes"
    );
    let start = error(&bytes_of(&RAW[4..]));
    assert!(start.starts_with("it is neither .zrt nor ELF nor raw gfx1201 code: "), "{start}");
    let end = error(&bytes_of(&[RAW[0], RAW[4], RAW[1], RAW[2]]));
    assert!(
        end.starts_with("it is raw code that ends inside of its last instruction, at byte 0x8: "),
        "{end}"
    );
    // An instruction that is cut at once has begun.
    let first = error(&bytes_of(&RAW[1..3]));
    assert!(
        first.starts_with("it is raw code that ends inside of its last instruction, at byte 0x0: "),
        "{first}"
    );
    let container = error(b"ZRT");
    assert!(container.starts_with("it is neither .zrt nor ELF, and raw code of 3 bytes"), "{container}");
    let mut magic = zrt_isa::zrt::MAGIC.to_vec();
    magic.extend([0; 4]);
    let container = error(&magic);
    assert!(container.starts_with("it is not a complete .zrt container: "), "{container}");
}
