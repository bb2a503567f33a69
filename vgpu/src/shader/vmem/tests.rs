//! Loads, stores and atomics of vector memory against an array of bytes; the words are llvm-mc 19's. Addresses are in
//! v10 and v11, data in v4 to v7, results in v20 and up.

mod buffers;
mod limits;
mod private;
mod tiles;

use std::sync::Arc;

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Instruction, Opcode, decode};
use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};

use super::translate;
use crate::memory::{AddressSpace, Rights};
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::{Machine, Stop, with_machine};
use crate::shader::valu::testing::{Random, assert_same, wave};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::Level;

/// First byte of the memory.
pub(crate) const BASE: u64 = 0x10_0000;
/// Its length, and where its second mapping begins.
pub(crate) const LEN: u32 = 0x3000;
const SPLIT: u32 = 0x2000;
const ADDRESS: usize = 10;
const DATA: usize = 4;
const RESULT: usize = 20;

/// Memory of two mappings, next to each other.
pub(crate) struct Memory {
    space: AddressSpace,
    views: [SharedView; 2],
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory::permitting([Rights::READ | Rights::WRITE; 2])
    }

    /// With the rights of each mapping.
    fn permitting([first, second]: [Rights; 2]) -> Memory {
        let space = AddressSpace::default();
        let views = [(0, SPLIT, first), (SPLIT, LEN - SPLIT, second)].map(|(at, len, rights)| {
            let file = MemoryFile::new("test", len as usize).unwrap();
            let mapping = Arc::new(file.map(0, len as usize, Protection::ReadWrite, None).unwrap());
            let view = mapping.view().clone();
            let (va, len) = (GpuVa(BASE + u64::from(at)), ByteLen(len.into()));
            space.map(va, len, rights, mapping).unwrap();
            view
        });
        let memory = Memory { space, views };
        let mut random = Random::new(71);
        memory.set(&(0..LEN).map(|_| random.next() as u8).collect::<Vec<_>>());
        memory
    }

    pub(crate) fn set(&self, bytes: &[u8]) {
        for (view, bytes) in self.views.iter().zip([&bytes[..SPLIT as usize], &bytes[SPLIT as usize..]]) {
            for (index, word) in bytes.chunks_exact(4).enumerate() {
                view.store_u32(4 * index, u32::from_le_bytes(word.try_into().unwrap()));
            }
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = self.views.iter().zip([SPLIT, LEN - SPLIT]);
        words
            .flat_map(|(view, len)| {
                (0..len as usize / 4).flat_map(|index| view.load_u32(4 * index).to_le_bytes())
            })
            .collect()
    }

    /// Calls the function with a machine that has this memory.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut Machine<'_>) -> T) -> T {
        with_machine(|machine| {
            machine.memory.refresh(&self.space);
            let result = run(machine);
            machine.memory.release();
            result
        })
    }

    /// Runs an instruction at every level, from the same memory; leaves what it stored.
    pub(crate) fn run(&self, start: &Wave, instruction: &Instruction) -> Result<Wave, Stop> {
        let before = self.bytes();
        let mut outcomes = Vec::new();
        for level in Level::supported() {
            self.set(&before);
            let op = translate(instruction, level).unwrap();
            let mut wave = start.clone();
            let stop = self.with(|machine| {
                op.executor.call(&mut wave, &op, machine);
                machine.stop
            });
            outcomes.push((stop.map_or(Ok(wave), Err), self.bytes()));
        }
        let (first, stored) = outcomes.remove(0);
        for (other, bytes) in outcomes {
            assert!(bytes == stored, "levels store differently");
            match (&first, &other) {
                (Ok(left), Ok(right)) => assert_same(left, right, instruction.opcode.mnemonic()),
                _ => assert_eq!(first.as_ref().err(), other.as_ref().err()),
            }
        }
        first
    }
}

/// How an instruction addresses memory: examples of a load and a store with `offset:8`, and the registers for lanes at
/// these distances from the base.
struct Mode {
    family: &'static str,
    load: &'static [u32],
    store: &'static [u32],
    set: fn(&mut Wave, &[u32; LANES]),
}

fn set_pair(wave: &mut Wave, offsets: &[u32; LANES]) {
    for (lane, offset) in offsets.iter().enumerate() {
        let va = BASE.wrapping_add_signed(i64::from(*offset as i32)) - 8;
        (wave.vector[ADDRESS].0[lane], wave.vector[ADDRESS + 1].0[lane]) = (va as u32, (va >> 32) as u32);
    }
}

const MODES: [Mode; 4] = [
    // global_load_b32 v20, v10, s[8:9] offset:8; global_store_b32 v10, v4, s[8:9] offset:8
    Mode {
        family: "global",
        load: &[0xEE050008, 0x00000014, 0x0000080A],
        store: &[0xEE068008, 0x02000000, 0x0000080A],
        set: |wave, offsets| {
            // The offset is not negative: the scalar base is below the memory.
            wave.set_scalar_pair(8, BASE - 8 - 0x100);
            wave.vector[ADDRESS] = Row(offsets.map(|offset| offset.wrapping_add(0x100)));
        },
    },
    // global_load_b32 v20, v[10:11], off offset:8; global_store_b32 v[10:11], v4, off offset:8
    Mode {
        family: "global",
        load: &[0xEE05007C, 0x00000014, 0x0000080A],
        store: &[0xEE06807C, 0x02000000, 0x0000080A],
        set: set_pair,
    },
    // flat_load_b32 v20, v[10:11] offset:8; flat_store_b32 v[10:11], v4 offset:8
    Mode {
        family: "flat",
        load: &[0xEC05007C, 0x00000014, 0x0000080A],
        store: &[0xEC06807C, 0x02000000, 0x0000080A],
        set: set_pair,
    },
    // buffer_load_b32 v20, v10, s[8:11], s12 offen offset:8; buffer_store_b32 v4, v10, s[8:11], s12 offen offset:8
    Mode {
        family: "buffer",
        load: &[0xC405000C, 0x40801014, 0x0000080A],
        store: &[0xC406800C, 0x40801004, 0x0000080A],
        set: |wave, offsets| {
            wave.set_scalar_pair(8, BASE - 8 - 0x40 - 0x100);
            (wave.scalar[10], wave.scalar[11], wave.scalar[12]) = (u32::MAX, 3 << 28, 0x40);
            wave.vector[ADDRESS] = Row(offsets.map(|offset| offset.wrapping_add(0x100)));
        },
    },
];

/// The instruction of another width than the example.
fn with_datum(example: &[u32], family: &str, rest: &str) -> Instruction {
    let name = format!("{family}_{rest}");
    let opcode = *OPCODES.iter().find(|opcode| opcode.mnemonic() == name).unwrap();
    Instruction { opcode, ..decode(example).unwrap() }
}

/// Active lanes, and the distance of each lane's access of so many bytes from the base. All are inside the memory,
/// except those of inactive lanes.
fn places(width: u32) -> Vec<(u32, [u32; LANES])> {
    let far = |lane: u32| 0x4000_0000 + lane;
    let all = |of: &dyn Fn(u32) -> u32| (u32::MAX, std::array::from_fn(|lane| of(lane as u32)));
    let some = |exec: u32, of: &dyn Fn(u32) -> u32| {
        (
            exec,
            std::array::from_fn(
                |lane| if exec >> lane & 1 != 0 { of(lane as u32) } else { far(lane as u32) },
            ),
        )
    };
    vec![
        all(&|lane| 64 + lane * width),
        all(&|lane| 65 + lane * width),
        all(&|lane| lane * 52),
        all(&|lane| 0x101 + lane * 53),
        all(&|lane| 0x800 - lane * 16),
        all(&|lane| lane / 2 * 8),
        some(0x8001_0100, &|lane| 64 + lane * width),
        some(0x7FFF_FFFE, &|lane| 66 + lane * 18),
        some(0x0000_8000, &|_| 0),
        some(0, &|_| 0),
        // From the first mapping into the second, within an access and between two lanes.
        all(&|lane| SPLIT - 16 * width + lane * width),
        all(&|lane| SPLIT - width / 2 + lane % 2),
        all(&|lane| if lane < 20 { SPLIT - 64 } else { SPLIT + 64 }),
        // The last bytes.
        all(&|lane| LEN - width * (LANES as u32 - lane)),
        all(&|lane| LEN - width - lane * 4),
    ]
}

fn started(mode: &Mode, exec: u32, offsets: &[u32; LANES]) -> Wave {
    let mut start = wave();
    start.scalar[126] = exec;
    (mode.set)(&mut start, offsets);
    start
}

fn active(exec: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| exec >> lane & 1 != 0)
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

/// Data of loads: bytes, whether the sign is extended, and the half of the register that they replace.
const LOADED: [(&str, usize, bool, Option<u32>); 14] = [
    ("load_b32", 4, false, None),
    ("load_b64", 8, false, None),
    ("load_b96", 12, false, None),
    ("load_b128", 16, false, None),
    ("load_u8", 1, false, None),
    ("load_i8", 1, true, None),
    ("load_u16", 2, false, None),
    ("load_i16", 2, true, None),
    ("load_d16_u8", 1, false, Some(0)),
    ("load_d16_i8", 1, true, Some(0)),
    ("load_d16_b16", 2, false, Some(0)),
    ("load_d16_hi_u8", 1, false, Some(16)),
    ("load_d16_hi_i8", 1, true, Some(16)),
    ("load_d16_hi_b16", 2, false, Some(16)),
];

/// Data of stores: bytes, and the bit of the register at which they begin.
const STORED: [(&str, usize, u32); 8] = [
    ("store_b32", 4, 0),
    ("store_b64", 8, 0),
    ("store_b96", 12, 0),
    ("store_b128", 16, 0),
    ("store_b8", 1, 0),
    ("store_b16", 2, 0),
    ("store_d16_hi_b8", 1, 16),
    ("store_d16_hi_b16", 2, 16),
];

#[test]
fn loads_bring_the_bytes_of_every_active_lane() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    for (mode, (datum, width, is_signed, half)) in
        MODES.iter().flat_map(|mode| LOADED.map(|load| (mode, load)))
    {
        let instruction = with_datum(mode.load, mode.family, datum);
        for (exec, offsets) in places(width as u32) {
            let start = started(mode, exec, &offsets);
            let end = memory.run(&start, &instruction).unwrap();
            let mut expected = start.clone();
            for lane in active(exec) {
                let at = &bytes[offsets[lane] as usize..][..width];
                if width >= 4 {
                    for (index, word) in at.chunks(4).enumerate() {
                        expected.vector[RESULT + index].0[lane] = little_endian(word);
                    }
                    continue;
                }
                let unused = 32 - 8 * width as u32;
                let raw = little_endian(at);
                let value = if is_signed { ((raw << unused) as i32 >> unused) as u32 } else { raw };
                let old = start.vector[RESULT].0[lane];
                expected.vector[RESULT].0[lane] = match half {
                    None => value,
                    Some(0) => old >> 16 << 16 | value & 0xFFFF,
                    Some(_) => old & 0xFFFF | value << 16,
                };
            }
            assert_same(
                &end,
                &expected,
                &format!("{}, lanes {exec:#x} at {offsets:x?}", instruction.opcode.mnemonic()),
            );
        }
    }
    assert!(memory.bytes() == bytes, "loads change nothing");
}

#[test]
fn stores_take_the_bytes_of_every_active_lane_in_order() {
    let memory = Memory::new();
    let before = memory.bytes();
    for (mode, (datum, width, shift)) in MODES.iter().flat_map(|mode| STORED.map(|store| (mode, store))) {
        let instruction = with_datum(mode.store, mode.family, datum);
        for (exec, offsets) in places(width as u32) {
            memory.set(&before);
            let start = started(mode, exec, &offsets);
            let end = memory.run(&start, &instruction).unwrap();
            let mut expected = before.clone();
            for lane in active(exec) {
                let words =
                    (0..4).flat_map(|index| (start.vector[DATA + index].0[lane] >> shift).to_le_bytes());
                let data: Vec<u8> = words.take(width).collect();
                expected[offsets[lane] as usize..][..width].copy_from_slice(&data);
            }
            let what = format!("{}, lanes {exec:#x} at {offsets:x?}", instruction.opcode.mnemonic());
            assert!(memory.bytes() == expected, "{what}");
            assert_same(&end, &start, &what);
        }
    }
}

/// The first lane whose access is not wholly inside is named, with the first byte that is not there.
#[test]
fn accesses_outside_stop_the_wave() {
    let memory = Memory::new();
    for mode in &MODES {
        for (datum, width) in [("load_b32", 4), ("load_b128", 16), ("load_u16", 2)] {
            for (outside, va) in [
                (LEN - width + 1, BASE + u64::from(LEN)),
                (LEN, BASE + u64::from(LEN)),
                (0u32.wrapping_sub(1), BASE - 1),
            ] {
                for others in [64, 65] {
                    let offsets = std::array::from_fn(|lane| if lane >= 13 { outside } else { others });
                    let start = started(mode, u32::MAX, &offsets);
                    let load = with_datum(mode.load, mode.family, datum);
                    let store = with_datum(
                        mode.store,
                        mode.family,
                        &datum.replace("load_u", "store_b").replace("load", "store"),
                    );
                    for instruction in [load, store] {
                        let Err(stop) = memory.run(&start, &instruction) else { panic!("{instruction:?}") };
                        let WaveFaultKind::Page(fault) = stop.kind else { panic!("{}", stop.kind) };
                        let what = instruction.opcode.mnemonic();
                        assert_eq!((fault.va, stop.lane), (va, Some(13)), "{what} at {outside:#x}");
                    }
                }
            }
        }
    }
}

/// Lanes at one address see what the lanes before them left.
#[test]
fn atomics_update_lane_by_lane_and_are_aligned() {
    let memory = Memory::new();
    let before = memory.bytes();
    // global_atomic_add_u32 v20, v10, v4, s[8:9] offset:8 th:TH_ATOMIC_RETURN
    let returning = decode(&[0xEE0D4008, 0x02100014, 0x0000080A]).unwrap();
    type Update = fn(old: u64, data: u64, second: u64) -> u64;
    let cases: [(Opcode, usize, Update); 4] = [
        (Opcode::GlobalAtomicAddU32, 4, |old, data, _| u64::from((old as u32).wrapping_add(data as u32))),
        (Opcode::GlobalAtomicAddU64, 8, |old, data, _| old.wrapping_add(data)),
        // The value to store is followed by the one to compare with.
        (Opcode::GlobalAtomicCmpswapB32, 4, |old, new, compare| if old == compare { new } else { old }),
        (Opcode::GlobalAtomicCmpswapB64, 8, |old, new, compare| if old == compare { new } else { old }),
    ];
    for (opcode, width, update) in cases {
        let instruction = Instruction { opcode, ..returning };
        for exec in [u32::MAX, 0x0F00_8001] {
            memory.set(&before);
            let offsets =
                std::array::from_fn(
                    |lane| if exec >> lane & 1 != 0 { 64 + 8 * (lane as u32 % 3) } else { 3 },
                );
            let mut start = started(&MODES[0], exec, &offsets);
            let mut bytes = before.clone();
            let read = |bytes: &[u8], at: usize| {
                bytes[at..][..width].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
            };
            // The first lanes compare with what is there.
            let (low, words) = (DATA + width / 4, width / 4);
            for (lane, offset) in offsets.iter().enumerate().take(3) {
                let old = read(&bytes, *offset as usize);
                for word in 0..words {
                    start.vector[low + word].0[lane] = (old >> (32 * word)) as u32;
                }
            }
            let end = memory.run(&start, &instruction).unwrap();
            let mut expected = start.clone();
            for lane in active(exec) {
                let datum = |register: usize| {
                    (0..words).fold(0, |value, word| {
                        value | u64::from(start.vector[register + word].0[lane]) << (32 * word)
                    })
                };
                let at = offsets[lane] as usize;
                let old = read(&bytes, at);
                let new = update(old, datum(DATA), datum(low));
                bytes[at..][..width].copy_from_slice(&new.to_le_bytes()[..width]);
                for word in 0..words {
                    expected.vector[RESULT + word].0[lane] = (old >> (32 * word)) as u32;
                }
            }
            assert_same(&end, &expected, opcode.mnemonic());
            assert!(memory.bytes() == bytes, "{}", opcode.mnemonic());
        }
        for unaligned in 1..width as u32 {
            let offsets = std::array::from_fn(|lane| 64 + if lane == 7 { unaligned } else { 0 });
            let stop = memory.run(&started(&MODES[0], u32::MAX, &offsets), &instruction).err();
            let kind =
                WaveFaultKind::Misaligned { va: BASE + 64 + u64::from(unaligned), width: width as u32 };
            assert_eq!(stop, Some(Stop { kind, lane: Some(7) }), "{}", opcode.mnemonic());
        }
        let offsets = std::array::from_fn(|lane| if lane == 9 { LEN } else { LEN - width as u32 });
        let stop = memory.run(&started(&MODES[0], u32::MAX, &offsets), &instruction).err().unwrap();
        let WaveFaultKind::Page(fault) = stop.kind else { panic!("{}", stop.kind) };
        assert_eq!((fault.va, stop.lane), (BASE + u64::from(LEN), Some(9)), "{}", opcode.mnemonic());
    }
}
