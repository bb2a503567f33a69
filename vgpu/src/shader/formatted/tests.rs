//! Which components of a texel reach which registers, and the way back. The formats themselves are tested in `format`.
//! Addresses are in v10, data in v4 to v7, results in v20 and up; the words are llvm-mc 19's.

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Instruction, decode};

use crate::shader::fault::WaveFaultKind;
use crate::shader::valu::testing::{assert_same, wave};
use crate::shader::vmem::tests::{BASE, Memory};
use crate::shader::wave::{LANES, Wave};

/// tbuffer_load_format_x v20, v10, s[8:11], s12 offen offset:8, and the store of v4, with a format.
const TYPED: [[u32; 3]; 2] =
    [[0xC420_000C, 0x4080_1014, 0x0000_080A], [0xC421_000C, 0x4080_1004, 0x0000_080A]];
/// buffer_load_format_x v20, v10, s[8:11], s12 offen offset:8, and the store of v4.
const UNTYPED: [[u32; 3]; 2] =
    [[0xC400_000C, 0x4080_1014, 0x0000_080A], [0xC401_000C, 0x4080_1004, 0x0000_080A]];
/// Bytes of a texel of four bytes; of one of 16 bits in each component.
const UINT_8: u32 = 46;
const FLOAT_16: u32 = 57;
const SINT_16: u32 = 56;
/// Component selects that leave X, Y, Z and W in their places.
const IN_ORDER: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;

fn named(name: &str, example: &[u32], format: u32) -> Instruction {
    let opcode = *OPCODES.iter().find(|opcode| opcode.mnemonic() == name).unwrap();
    let example = decode(example).unwrap();
    // The format is a field of seven bits above the flags of addresses.
    Instruction { opcode, address_flags: example.address_flags & 0xFF | (format as u16) << 8, ..example }
}

/// Texels of lanes lie 16 bytes apart; the buffer has `records` bytes.
fn started(records: u32, descriptor: u32, exec: u32) -> Wave {
    let mut start = wave();
    start.set_scalar_pair(8, BASE);
    (start.scalar[10], start.scalar[11], start.scalar[12]) = (records, 3 << 28 | descriptor, 0x20);
    for (lane, offset) in start.vector[10].0.iter_mut().enumerate() {
        *offset = 16 * lane as u32;
    }
    start.scalar[126] = exec;
    start
}

/// Where the texel of a lane begins.
fn place(lane: usize) -> usize {
    0x28 + 16 * lane
}

/// The name's suffix, the number of components, and where they lie in registers: a register each, halves from the low
/// one up, or the high half.
const FORMS: [(&str, usize, &str); 9] = [
    ("format_x", 1, "words"),
    ("format_xy", 2, "words"),
    ("format_xyz", 3, "words"),
    ("format_xyzw", 4, "words"),
    ("d16_format_x", 1, "halves"),
    ("d16_format_xy", 2, "halves"),
    ("d16_format_xyz", 3, "halves"),
    ("d16_format_xyzw", 4, "halves"),
    ("d16_hi_format_x", 1, "high"),
];

/// Register and shift of a component.
fn home(layout: &str, component: usize) -> (usize, u32) {
    match layout {
        "words" => (component, 0),
        "halves" => (component / 2, 16 * (component as u32 % 2)),
        _ => (0, 16),
    }
}

fn put(wave: &mut Wave, layout: &str, component: usize, first: usize, lane: usize, value: u32) {
    let (register, shift) = home(layout, component);
    let target = &mut wave.vector[first + register].0[lane];
    *target =
        if layout == "words" { value } else { *target & !(0xFFFF << shift) | (value & 0xFFFF) << shift };
}

/// The forms of typed and untyped accesses; only the latter have one for the high half.
fn forms(index: usize) -> impl Iterator<Item = (String, usize, &'static str, bool)> {
    let direction = ["load", "store"][index];
    FORMS.into_iter().flat_map(move |(suffix, count, layout)| {
        [("tbuffer", true), ("buffer", false)]
            .into_iter()
            .filter(move |(_, is_typed)| !is_typed || layout != "high")
            .map(move |(family, is_typed)| {
                let (width, rest) = suffix.split_once("format").unwrap();
                (format!("{family}_{direction}_{width}format{rest}"), count, layout, is_typed)
            })
    })
}

#[test]
fn loads_write_the_components_that_they_name() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    for (name, count, layout, is_typed) in forms(0) {
        let example = if is_typed { &TYPED[0] } else { &UNTYPED[0] };
        let instruction = named(&name, example, if is_typed { UINT_8 } else { 0 });
        for (exec, records) in
            [(u32::MAX, 0x400), (0x8421_00F1, 0x400), (u32::MAX, 0x28 + 16 * 20 + 3), (0, 0x400)]
        {
            let start = started(records, UINT_8 << 12 | IN_ORDER, exec);
            let end = memory.run(&start, &instruction).unwrap();
            let mut expected = start.clone();
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
                for component in 0..count {
                    // Outside of the buffer all components are zero, also where a texel is partly inside.
                    let is_inside = place(lane) + 4 <= records as usize;
                    let value = if is_inside { bytes[place(lane) + component].into() } else { 0 };
                    put(&mut expected, layout, component, 20, lane, value);
                }
            }
            assert_same(&end, &expected, &format!("{name}, lanes {exec:#x} of {records:#x}"));
        }
    }
    assert!(memory.bytes() == bytes, "loads change nothing");
}

#[test]
fn stores_write_whole_texels() {
    let memory = Memory::new();
    let before = memory.bytes();
    for (name, count, layout, is_typed) in forms(1) {
        let example = if is_typed { &TYPED[1] } else { &UNTYPED[1] };
        let instruction = named(&name, example, if is_typed { UINT_8 } else { 0 });
        for (exec, records) in
            [(u32::MAX, 0x400), (0x8421_00F1, 0x400), (u32::MAX, 0x28 + 16 * 20 + 3), (0, 0x400)]
        {
            memory.set(&before);
            // Selects of components have no meaning for stores.
            let mut start = started(records, UINT_8 << 12 | 0x249, exec);
            for lane in 0..LANES {
                for component in 0..4 {
                    let value = (lane * 5 + component * 31) as u32 & 0x7F | 0x80;
                    put(&mut start, layout, component % count, 4, lane, value);
                }
            }
            let end = memory.run(&start, &instruction).unwrap();
            let mut expected = before.clone();
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
                if place(lane) + 4 > records as usize {
                    continue;
                }
                for component in 0..4 {
                    let (register, shift) = home(layout, component.min(count - 1));
                    let value = start.vector[4 + register].0[lane] >> shift & 0xFF;
                    expected[place(lane) + component] = if component < count { value as u8 } else { 0 };
                }
            }
            assert!(memory.bytes() == expected, "{name}, lanes {exec:#x} of {records:#x}");
            assert_same(&end, &start, &name);
        }
    }
}

/// Registers' halves hold f16 and integers of 16 bits, as texels of 16 bits do: the bits stay.
#[test]
fn halves_pass_between_texels_and_registers() {
    let memory = Memory::new();
    for format in [FLOAT_16, SINT_16] {
        let load = named("tbuffer_load_d16_format_xyzw", &TYPED[0], format);
        let store = named("tbuffer_store_d16_format_xyzw", &TYPED[1], format);
        let halves = [0x3C00, 0xBC01, 0x0001, 0x7BFFu32];
        let mut start = started(0x400, 0, u32::MAX);
        for (component, half) in halves.into_iter().enumerate() {
            (0..LANES).for_each(|lane| put(&mut start, "halves", component, 4, lane, half));
        }
        memory.run(&start, &store).unwrap();
        let bytes = memory.bytes();
        for (component, half) in halves.into_iter().enumerate() {
            let at = place(7) + 2 * component;
            assert_eq!(u32::from(bytes[at]) | u32::from(bytes[at + 1]) << 8, half, "{format}");
        }
        let end = memory.run(&start, &load).unwrap();
        assert_eq!([end.vector[20].0[7], end.vector[21].0[7]], [0xBC01_3C00, 0x7BFF_0001], "{format}");
    }
}

/// Each select of an untyped load names 0, 1 or a component; typed loads have none.
#[test]
fn untyped_loads_select_components() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    for format in [UINT_8, UINT_8 - 4] {
        let one = if format == UINT_8 { 1 } else { 0x3F80_0000 };
        for target in 0..4 {
            for (select, component) in
                [(0, None), (1, None), (4, Some(0)), (5, Some(1)), (6, Some(2)), (7, Some(3))]
            {
                let selects = IN_ORDER & !(7 << (3 * target)) | select << (3 * target);
                let start = started(0x400, format << 12 | selects, u32::MAX);
                let found = |instruction: &Instruction| {
                    memory.run(&start, instruction).unwrap().vector[20 + target].0[3]
                };
                let untyped = found(&named("buffer_load_format_xyzw", &UNTYPED[0], 0));
                let typed = found(&named("tbuffer_load_format_xyzw", &TYPED[0], format));
                let value = |component: usize| {
                    let byte = bytes[place(3) + component];
                    let fraction = (f64::from(byte) / 255.0) as f32;
                    if format == UINT_8 { byte.into() } else { fraction.to_bits() }
                };
                let expected = component.map_or(if select == 0 { 0 } else { one }, value);
                assert_eq!((untyped, typed), (expected, value(target)), "{target} {select}");
            }
        }
    }
}

/// Outside of the buffer all components are zero, also those that the format does not have, but a select of 1 is 1.
#[test]
fn outside_of_the_buffer_only_a_select_of_one_is_not_zero() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    // 8_UINT and 8_UNORM have an X. The selects are X, 1, 0 and W.
    for (format, one) in [(5, 1), (1, 0x3F80_0000)] {
        for records in [0x400, 0x28] {
            let start = started(records, format << 12 | 4 | 1 << 3 | 7 << 9, u32::MAX);
            let found = |instruction: &Instruction| {
                let end = memory.run(&start, instruction).unwrap();
                [20, 21, 22, 23].map(|register: usize| end.vector[register].0[3])
            };
            let untyped = found(&named("buffer_load_format_xyzw", &UNTYPED[0], 0));
            let typed = found(&named("tbuffer_load_format_xyzw", &TYPED[0], format));
            let byte = bytes[place(3)];
            let [x, w] = match records {
                0x28 => [0, 0],
                _ if format == 5 => [byte.into(), one],
                _ => [((f64::from(byte) / 255.0) as f32).to_bits(), one],
            };
            assert_eq!((untyped, typed), ([x, one, 0, w], [x, 0, 0, w]), "format {format} of {records:#x}");
        }
    }
}

/// A descriptor's format is a field of six bits; one that is not modelled stops the wave, unless no lane is active.
#[test]
fn formats_that_are_not_modelled_stop_the_wave() {
    let memory = Memory::new();
    for (name, example) in [("buffer_load_format_x", &UNTYPED[0]), ("buffer_store_format_x", &UNTYPED[1])] {
        let instruction = named(name, example, 0);
        for format in [0, 30, 31] {
            let start = started(0x400, format << 12 | IN_ORDER, 1);
            let stop = memory.run(&start, &instruction).err().unwrap();
            let words = [8, 9, 10, 11].map(|register: usize| start.scalar[register]);
            assert_eq!(
                (stop.kind, stop.lane),
                (WaveFaultKind::BufferDescriptor(words), None),
                "{name} {format}"
            );
            assert!(memory.run(&started(0x400, format << 12, 0), &instruction).is_ok());
        }
        // What lies beside the field does not count.
        let start = started(0x400, UINT_8 << 12 | IN_ORDER | 1 << 18, 1);
        assert!(memory.run(&start, &instruction).is_ok());
    }
    for (name, example) in [("tbuffer_load_format_x", &TYPED[0]), ("tbuffer_store_format_x", &TYPED[1])] {
        for format in [0, 30, 31, 64, 127] {
            assert!(super::function(&named(name, example, format)).is_none(), "{name} {format}");
        }
    }
}
