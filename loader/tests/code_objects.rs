//! Code objects from clang 22 and llvm-mc: their contents, and that damage to them does no harm.
//!
//! clang-22 is used if it is installed; `ZRT_REQUIRE_LLVM` makes its absence a failure.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/double_object.rs"]
mod double_object;

use double_object::DOUBLE_OBJECT;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use zrt_isa::resources::{Rsrc1, WaveSize};
use zrt_loader::{
    AddressSpace, ArgumentError, ArgumentValue, Arguments, DynamicLds, Format, Geometry, LaunchAddresses,
    LoadError, Program, UserSgpr, ValueKind,
};
use zrt_mem::GpuVa;

const KERNELS: &str = include_str!("data/kernels.cl");

fn double_object() -> Vec<u8> {
    DOUBLE_OBJECT.iter().flat_map(|dword| dword.to_le_bytes()).collect()
}

/// Compiles the kernels with extra options.
fn compile(name: &str, options: &[&str]) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("{name}.cl"));
    let object = folder.join(format!("{name}.co"));
    std::fs::write(&source, KERNELS).unwrap();
    let mut command = Command::new("clang-22");
    command.args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-O2", "-g", "-w", "-x", "cl"]);
    command.arg("-cl-std=CL2.0").args(options).arg(&source).arg("-o").arg(&object);
    let output = command.output().expect("clang-22 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(object).unwrap()
}

/// The kernels as a linked object; `None` if clang-22 is not installed.
fn linked() -> Option<&'static [u8]> {
    static OBJECT: OnceLock<Vec<u8>> = OnceLock::new();
    zrt_needs::programs(&["clang-22"])
        .then(|| OBJECT.get_or_init(|| compile("linked", &["-mcpu=gfx1201"])).as_slice())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn dword(program: &Program, offset: u64) -> u32 {
    u32_at(program.image().bytes(), offset as usize)
}

#[test]
fn an_assembled_object_is_loaded_without_a_linker() {
    let program = Program::parse(&double_object()).unwrap();
    assert_eq!(program.format(), Format::Object);
    assert_eq!(program.kernels().len(), 1);
    let kernel = program.kernel("double").unwrap();
    assert_eq!((kernel.entry_offset, kernel.code_bytes), (0, 52));
    // s_load_b64 s[0:1], s[0:1], 0 at the entry, s_endpgm at the label.
    assert_eq!(dword(&program, 0), 0xF400_2000);
    let done = program.symbols().iter().find(|symbol| symbol.name == "done").unwrap();
    assert_eq!((done.offset, done.is_code, dword(&program, 0x30)), (0x30, true, 0xBFB0_0000));
    assert_eq!((kernel.wave_size, kernel.vgprs()), (WaveSize::Wave32, Ok(8)));
    assert_eq!(kernel.user_sgprs, [UserSgpr::Arguments]);
    assert_eq!(kernel.workgroup_items_max, 64);
    let addresses = LaunchAddresses { arguments_va: 0x12_3456_7800, ..LaunchAddresses::default() };
    assert_eq!(kernel.user_data(&addresses), [0x3456_7800, 0x12]);
    let names: Vec<&str> = program.image().segments().iter().map(|segment| segment.name.as_str()).collect();
    assert_eq!(names, [".text", ".rodata"]);
    let value = ArgumentValue::Buffer(GpuVa(0x1122_3344_5566));
    let segment = kernel.pack(&[value], Geometry::new([1; 3], [32, 1, 1])).unwrap();
    assert_eq!(segment, 0x1122_3344_5566u64.to_le_bytes());
}

#[test]
fn a_linked_code_object_has_everything_that_a_launch_needs() {
    let Some(bytes) = linked() else { return };
    let program = Program::parse(bytes).unwrap();
    assert_eq!(program.format(), Format::CodeObject);
    let mut names: Vec<&str> = program.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
    names.sort();
    assert_eq!(names, ["add", "local_memory", "lookup", "scratch"]);

    let add = program.kernel("add").unwrap();
    let explicit = add.explicit_arguments().unwrap();
    let layout: Vec<(u32, u32)> = explicit.iter().map(|argument| (argument.offset, argument.bytes)).collect();
    assert_eq!(layout, [(0, 8), (8, 8), (16, 8), (24, 4), (28, 4)]);
    assert_eq!(explicit[0].kind, ValueKind::GlobalBuffer);
    assert_eq!(explicit[0].address_space, Some(AddressSpace::Global));
    assert_eq!(explicit[3].kind, ValueKind::ByValue);
    assert!(matches!(&add.arguments, Arguments::Described { bytes: 288, alignment: 8, .. }));
    assert_eq!((add.scratch_bytes, add.lds_bytes, add.required_workgroup), (0, 0, None));

    let local = program.kernel("local_memory").unwrap();
    assert_eq!((local.lds_bytes, local.required_workgroup), (256, Some([64, 1, 1])));
    // RSRC2.LDS_SIZE (23:15) in units of 512 bytes: 256 + 300 bytes are two.
    assert_eq!(local.resource_words(0).unwrap().rsrc2 >> 15 & 0x1FF, 1);
    assert_eq!(local.resource_words(300).unwrap().rsrc2 >> 15 & 0x1FF, 2);
    assert!(local.resource_words(65_536).is_err());

    let scratch = program.kernel("scratch").unwrap();
    assert!(scratch.scratch_bytes >= 128, "{}", scratch.scratch_bytes);
    assert_eq!(scratch.rsrc2 & 1, 1, "SCRATCH_EN");
}

/// The default register words equal what a compiler requests: the scheduling of waves, and the order in which
/// memory answers.
#[test]
fn default_register_words_order_waves_and_memory_as_a_compiler_does() {
    let Some(bytes) = linked() else { return };
    let program = Program::parse(bytes).unwrap();
    let ours = Rsrc1::default();
    for kernel in program.kernels() {
        let compiled = Rsrc1::parse(kernel.rsrc1).unwrap();
        assert_eq!(
            (ours.forward_progress, ours.memory_ordered),
            (compiled.forward_progress, compiled.memory_ordered),
            "{}",
            kernel.name
        );
    }
}

#[test]
fn lines_are_found_in_linked_and_unlinked_files() {
    let Some(bytes) = linked() else { return };
    let object = compile("lines", &["-mcpu=gfx1201", "-c"]);
    let expected = 1 + KERNELS.lines().position(|line| line.contains("c[i] = a[i]")).unwrap() as u32;
    for bytes in [bytes, &object] {
        let program = Program::parse(bytes).unwrap();
        let add = program.kernel("add").unwrap();
        let mut seen = Vec::new();
        for offset in (add.entry_offset..add.entry_offset + add.code_bytes).step_by(4) {
            if let Some((file, line)) = program.lines().lookup(offset) {
                assert!(file.ends_with(".cl"), "{file}");
                seen.push(line);
            }
        }
        assert!(seen.contains(&expected) && seen.contains(&(expected - 1)), "{seen:?}");
        assert!(seen.iter().all(|line| expected - 2 <= *line && *line <= expected + 1), "{seen:?}");
    }
}

/// gimli's reading of a linked file's line table, as an independent check (the loader uses only gimli's constants):
/// file and line by address, the last row of an address, and an end only if nothing begins there.
fn lines_by_gimli(bytes: &[u8]) -> BTreeMap<u64, Option<(String, u64)>> {
    use object::{Object, ObjectSection};
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes).unwrap();
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let section = file.section_by_name(id.name());
        let data = section.map_or(&[][..], |section| section.data().unwrap());
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(load).unwrap();
    let mut lines = BTreeMap::new();
    let mut offset = 0;
    while let Ok(program) = dwarf.debug_line.program(gimli::DebugLineOffset(offset), 8, None, None) {
        offset += program.header().unit_length() + 4;
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row().unwrap() {
            if row.end_sequence() {
                lines.entry(row.address()).or_insert(None);
                continue;
            }
            let text = |value: gimli::AttributeValue<gimli::EndianSlice<'_, gimli::LittleEndian>>| match value
            {
                gimli::AttributeValue::String(text) => text.to_string_lossy().into_owned(),
                gimli::AttributeValue::DebugLineStrRef(offset) => {
                    dwarf.debug_line_str.get_str(offset).unwrap().to_string_lossy().into_owned()
                }
                other => panic!("{other:?}"),
            };
            let entry = header.file(row.file_index()).unwrap();
            let name = text(entry.path_name());
            let path = match entry.directory_index() {
                0 => name,
                _ if name.starts_with('/') => name,
                _ => format!("{}/{name}", text(entry.directory(header).unwrap())),
            };
            lines.insert(row.address(), Some((path, row.line().map_or(0, |line| line.get()))));
        }
    }
    lines
}

#[test]
fn lines_are_those_of_another_reader() {
    if !zrt_needs::programs(&["clang-22"]) {
        return;
    }
    for version in 2..=5 {
        let bytes = compile(&format!("dwarf{version}"), &["-mcpu=gfx1201", &format!("-gdwarf-{version}")]);
        let program = Program::parse(&bytes).unwrap();
        let rows = program.lines().rows();
        let mut expected = lines_by_gimli(&bytes);
        // Compiler-generated code counts as part of the line before it.
        expected.retain(|_, line| line.as_ref().is_none_or(|(_, number)| *number != 0));
        assert!(rows.len() > 20, "{}", rows.len());
        assert_eq!(rows.len(), expected.len(), "version {version}");
        for (row, (address, line)) in rows.iter().zip(&expected) {
            let file = program.lines().files().get(row.file as usize);
            let found = file.map(|file| (file.clone(), u64::from(row.line)));
            assert_eq!((row.offset, &found), (*address, line), "version {version}");
        }
    }
}

#[test]
fn unlinked_code_is_the_same_as_linked_code() {
    let Some(bytes) = linked() else { return };
    let object = compile("unlinked", &["-mcpu=gfx1201", "-c"]);
    let (linked, unlinked) = (Program::parse(bytes).unwrap(), Program::parse(&object).unwrap());
    assert_eq!(unlinked.format(), Format::Object);
    for kernel in linked.kernels() {
        let other = unlinked.kernel(&kernel.name).unwrap();
        assert_eq!(other.arguments, kernel.arguments);
        assert_eq!((other.rsrc1, other.rsrc2, other.rsrc3), (kernel.rsrc1, kernel.rsrc2, kernel.rsrc3));
        let code = |program: &Program, start: u64| {
            program.image().bytes()[start as usize..][..kernel.code_bytes as usize].to_vec()
        };
        let differing = code(&linked, kernel.entry_offset)
            .chunks(4)
            .zip(code(&unlinked, other.entry_offset).chunks(4))
            .filter(|(first, second)| first != second)
            .count();
        // Only the two halves of the distance from the code to the table may differ.
        assert!(differing <= 2 * usize::from(kernel.name == "lookup"), "{}: {differing}", kernel.name);
    }
    // The literals of the distance must differ by as much as the distances do; the linker's output is the
    // reference.
    let parts = |program: &Program| {
        let table = program.symbols().iter().find(|symbol| symbol.name == "table").unwrap().offset;
        assert_eq!((dword(program, table), dword(program, table + 4)), (3, 1));
        let kernel = program.kernel("lookup").unwrap();
        let (start, end) = (kernel.entry_offset, kernel.entry_offset + kernel.code_bytes);
        let code: Vec<u32> = (start..end).step_by(4).map(|offset| dword(program, offset)).collect();
        (table as u32, start as u32, code)
    };
    let ((table, start, code), (other_table, other_start, other_code)) = (parts(&linked), parts(&unlinked));
    let (low, other_low) = code.iter().zip(&other_code).find(|(first, second)| first != second).unwrap();
    let distance = table.wrapping_sub(start).wrapping_sub(other_table.wrapping_sub(other_start));
    assert_eq!(low.wrapping_sub(*other_low), distance);
}

#[test]
fn hidden_arguments_say_the_shape_of_the_launch() {
    let Some(bytes) = linked() else { return };
    let program = Program::parse(bytes).unwrap();
    let add = program.kernel("add").unwrap();
    let values = [
        ArgumentValue::Buffer(GpuVa(0xA000)),
        ArgumentValue::Buffer(GpuVa(0xB000)),
        ArgumentValue::Buffer(GpuVa(0xC000)),
        ArgumentValue::U32(1000),
        ArgumentValue::F32(1.5),
    ];
    let segment = add.pack(&values, Geometry::new([7, 2, 3], [16, 4, 2])).unwrap();
    assert_eq!(segment.len(), 288);
    assert_eq!(u32_at(&segment, 8), 0xB000);
    assert_eq!((u32_at(&segment, 24), u32_at(&segment, 28)), (1000, 0x3FC0_0000));
    // Code object version 5: block counts, then group sizes, remainders, offsets and dimensions, at offsets from
    // the first hidden argument, which is at 32 here.
    assert_eq!([32, 36, 40].map(|at| u32_at(&segment, at)), [7, 2, 3]);
    assert_eq!([44, 46, 48].map(|at| u16_at(&segment, at)), [16, 4, 2]);
    assert_eq!([50, 52, 54].map(|at| u16_at(&segment, at)), [0, 0, 0]);
    assert_eq!(segment[72..96], [0; 24]);
    assert_eq!(u16_at(&segment, 96), 3);

    // The dynamic LDS begins after the kernel's own 256 bytes.
    let local = program.kernel("local_memory").unwrap();
    let geometry = Geometry { dynamic_lds: DynamicLds::of(256), ..Geometry::new([1; 3], [64, 1, 1]) };
    let segment = local.pack(&[ArgumentValue::Buffer(GpuVa(0xD000))], geometry).unwrap();
    assert_eq!((u32_at(&segment, 0), u32_at(&segment, 8)), (0xD000, 256));
}

#[test]
fn wrong_arguments_are_refused() {
    let program = Program::parse(&double_object()).unwrap();
    let kernel = program.kernel("double").unwrap();
    let one = Geometry::new([1; 3], [32, 1, 1]);
    let buffer = ArgumentValue::Buffer(GpuVa(0x1000));
    assert!(matches!(kernel.pack(&[], one), Err(ArgumentError::Count { expected: 1, given: 0, .. })));
    let two = [buffer.clone(), buffer.clone()];
    let error = kernel.pack(&two, one).unwrap_err();
    assert_eq!(error.to_string(), "kernel double takes 1 arguments (data: buffer), but 2 were given");
    let number = kernel.pack(&[ArgumentValue::U32(5)], one);
    assert!(matches!(number, Err(ArgumentError::Kind { given: "a value of 32 bits", .. })));
    let geometry = |groups, group| kernel.pack(std::slice::from_ref(&buffer), Geometry::new(groups, group));
    assert!(matches!(geometry([1, 0, 1], [32, 1, 1]), Err(ArgumentError::Geometry { what: "grid", .. })));
    assert!(matches!(geometry([1; 3], [0, 1, 1]), Err(ArgumentError::Geometry { what: "block", .. })));
    assert!(matches!(geometry([1; 3], [65, 1, 1]), Err(ArgumentError::Geometry { what: "block", .. })));
    assert!(matches!(geometry([1; 3], [u32::MAX; 3]), Err(ArgumentError::Geometry { what: "block", .. })));
    let lds = Geometry { dynamic_lds: DynamicLds::of(65_537), ..one };
    for groups in [[1, 65_537, 1], [1, 1, 65_537], [1, u32::MAX, u32::MAX]] {
        let error = geometry(groups, [32, 1, 1]).unwrap_err();
        assert!(matches!(error, ArgumentError::Geometry { what: "grid", .. }), "{groups:?}");
        assert!(error.to_string().contains("at most 65536 workgroups in y and in z"), "{error}");
    }
    assert!(geometry([u32::MAX, 65_536, 65_536], [32, 1, 1]).is_ok(), "the last id is 65,535");
    assert!(matches!(kernel.pack(&[buffer], lds), Err(ArgumentError::Geometry { what: "LDS", .. })));
}

#[test]
fn other_targets_are_refused_by_name() {
    let changed = |at: usize, value: u8| {
        let mut bytes = double_object();
        bytes[at] = value;
        match Program::parse(&bytes) {
            Err(LoadError::Target { found }) => found,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(changed(48, 0x48), "gfx1200 (e_flags 0x48)");
    assert_eq!(changed(48, 0x41), "gfx1100 (e_flags 0x41)");
    assert_eq!(changed(18, 62), "machine 62, which is not an AMD GPU");
    assert_eq!(changed(7, 0), "OS ABI 0, which is not HSA");
    assert_eq!(changed(4, 1), "a machine that is not 64-bit little-endian");
    assert!(matches!(Program::parse(b"\x7fELF"), Err(LoadError::Damaged { .. })));
    assert!(matches!(Program::parse(b"GGUF"), Err(LoadError::Unknown { .. })));
    if linked().is_some() {
        let other = compile("other", &["-mcpu=gfx1100"]);
        assert!(matches!(Program::parse(&other), Err(LoadError::Target { .. })));
    }
}

/// An undefined function, and LDS that only a linker can place.
#[test]
fn what_cannot_be_resolved_is_refused_with_its_symbol() {
    let mut bytes = double_object();
    // The relocation's symbol (upper half of r_info at 0x338 + 8): 0 is the undefined one.
    bytes[0x338 + 12] = 0;
    let error = Program::parse(&bytes).unwrap_err();
    assert!(matches!(&error, LoadError::Relocation { kind, .. } if kind == "R_AMDGPU_REL64"), "{error}");
    let mut bytes = double_object();
    bytes[0x338 + 8] = 8;
    let error = Program::parse(&bytes).unwrap_err().to_string();
    assert!(error.contains("R_AMDGPU_GOTPCREL32_LO") && error.contains("\"double\""), "{error}");
}

/// Parses, and uses the result.
fn exercise(bytes: &[u8]) {
    let Ok(program) = Program::parse(bytes) else { return };
    let image = program.image().placed_at(0x1_0000_0000);
    for kernel in program.kernels() {
        assert!((kernel.entry_offset as usize) < image.len());
        assert!(kernel.user_data(&LaunchAddresses::default()).len() <= 16);
        let given = kernel.explicit_arguments().map_or(0, |arguments| arguments.len());
        let values = vec![ArgumentValue::U64(7); given];
        let _ = kernel.pack(&values, Geometry::new([1; 3], [1; 3]));
        let _ = program.lines().lookup(kernel.entry_offset);
        let _ = kernel.resource_words(100);
    }
}

#[test]
fn every_truncation_is_an_error_or_a_program() {
    let object = double_object();
    (0..object.len()).for_each(|length| exercise(&object[..length]));
    if let Some(bytes) = linked() {
        (0..bytes.len()).step_by(97).for_each(|length| exercise(&bytes[..length]));
    }
}

#[test]
fn every_byte_of_a_small_object_may_be_anything() {
    let object = double_object();
    for at in 0..object.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bytes = object.clone();
            bytes[at] = value;
            exercise(&bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn changes_do_no_harm(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        length in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
    ) {
        for object in [Some(double_object()), linked().map(<[u8]>::to_vec)].into_iter().flatten() {
            let mut bytes = object;
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            if truncate {
                bytes.truncate(length.index(bytes.len()));
            }
            exercise(&bytes);
        }
    }

    #[test]
    fn raw_code_is_bytes(code in proptest::collection::vec(any::<u8>(), 0..64), user_sgprs in 0u32..20) {
        let options = zrt_loader::RawOptions { user_sgprs, ..zrt_loader::RawOptions::default() };
        let accepted = Program::raw(&code, &options).is_ok();
        prop_assert_eq!(accepted, !code.is_empty() && code.len() % 4 == 0 && (2..=16).contains(&user_sgprs));
    }
}
