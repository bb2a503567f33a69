//! The private segment: dword `d` of lane `l` is `d` rows of all lanes and `l` dwords after the wave's scratch.

use super::*;
use crate::shader::machine::Scratch;

/// Where the wave's scratch begins in the memory, and the bytes of a lane.
const SCRATCH_AT: u32 = 0x100;
const LANE_BYTES: u32 = 32;

/// `scratch_load_b32 v20, v10, s12 offset:8` and `scratch_store_b32 v10, v4, s12 offset:8`.
const LOAD: [u32; 3] = [0xED05000C, 0x00020014, 0x0000080A];
const STORE: [u32; 3] = [0xED06800C, 0x02020000, 0x0000080A];

fn run(memory: &Memory, start: &Wave, words: &[u32], name: &str, lanes_log2: u32) -> Result<Wave, Stop> {
    let instruction = with_datum(words, "scratch", name);
    let mut outcome = None;
    let before = memory.bytes();
    for level in Level::supported() {
        memory.set(&before);
        let op = translate(&instruction, level).unwrap();
        let mut wave = start.clone();
        let stop = memory.with(|machine| {
            let wave_va = BASE + u64::from(SCRATCH_AT);
            machine.scratch = Scratch { wave_va, lane_bytes: LANE_BYTES, lanes_log2 };
            op.executor.call(&mut wave, &op, machine);
            machine.stop
        });
        outcome = Some(stop.map_or(Ok(wave), Err));
    }
    outcome.unwrap()
}

/// Place in the memory of a byte of a lane's segment.
fn place(lane: usize, offset: u32, lanes_log2: u32) -> usize {
    (SCRATCH_AT + (offset / 4) * (4 << lanes_log2) + 4 * lane as u32 + offset % 4) as usize
}

/// Offsets of the lanes; the instruction adds 8, and s12 adds 4.
fn starts(width: u32) -> Vec<(u32, [u32; LANES])> {
    let last = LANE_BYTES - width;
    let all: [fn(u32, u32) -> u32; 4] = [
        |_, _| 12,
        |lane, last| (4 * lane).min(last / 4 * 4),
        |lane, last| lane.min(last),
        |lane, last| last - lane % 2,
    ];
    let exec = [u32::MAX, u32::MAX, 0x8F00_0001, 0x7FFF_FFFF];
    let rows = all.map(|of| std::array::from_fn(|lane| of(lane as u32, last)));
    exec.into_iter().zip(rows).collect()
}

fn started_at(exec: u32, offsets: &[u32; LANES]) -> Wave {
    let mut start = wave();
    (start.scalar[126], start.scalar[12]) = (exec, 4);
    // Offsets wrap at 32 bits. Inactive lanes are far outside.
    start.vector[ADDRESS] = Row(std::array::from_fn(|lane| {
        if exec >> lane & 1 != 0 { offsets[lane].wrapping_sub(12) } else { 0x7000_0000 }
    }));
    start
}

#[test]
fn every_lane_has_bytes_of_its_own() {
    let memory = Memory::new();
    let before = memory.bytes();
    for lanes_log2 in [5, 6] {
        for (name, width) in [
            ("load_b32", 4),
            ("load_b64", 8),
            ("load_b96", 12),
            ("load_b128", 16),
            ("load_u8", 1),
            ("load_u16", 2),
        ] {
            for (exec, offsets) in starts(width) {
                let start = started_at(exec, &offsets);
                let (mut loaded, mut stored) = (start.clone(), before.clone());
                for lane in active(exec) {
                    let places = (0..width).map(|byte| place(lane, offsets[lane] + byte, lanes_log2));
                    let bytes: Vec<u8> = places.clone().map(|at| before[at]).collect();
                    for (index, word) in bytes.chunks(4).enumerate() {
                        loaded.vector[RESULT + index].0[lane] = little_endian(word);
                    }
                    let data = (0..4).flat_map(|index| start.vector[DATA + index].0[lane].to_le_bytes());
                    places.zip(data).for_each(|(at, byte)| stored[at] = byte);
                }
                let what = format!("{name} of lanes {exec:#x} at {offsets:?}");
                assert_same(&run(&memory, &start, &LOAD, name, lanes_log2).unwrap(), &loaded, &what);
                let store = name.replace("load_u", "store_b").replace("load", "store");
                run(&memory, &start, &STORE, &store, lanes_log2).unwrap();
                assert!(memory.bytes() == stored, "{what}, stored");
                memory.set(&before);
            }
        }
    }
}

#[test]
fn a_segment_ends_after_its_bytes() {
    let memory = Memory::new();
    for (name, width) in [("load_b32", 4), ("load_b128", 16), ("load_u8", 1), ("load_u16", 2)] {
        for beyond in [LANE_BYTES - width + 1, LANE_BYTES - width + 4, LANE_BYTES, 0xFFFF_FFFC] {
            let offsets = std::array::from_fn(|lane| if lane == 21 { beyond } else { LANE_BYTES - width });
            let start = started_at(u32::MAX, &offsets);
            let kind = WaveFaultKind::Scratch { offset: beyond.into(), allocated: LANE_BYTES };
            let stop = Some(Stop { kind, lane: Some(21) });
            assert_eq!(run(&memory, &start, &LOAD, name, 5).err(), stop, "{name} at {beyond:#x}");
            let store = name.replace("load_u", "store_b").replace("load", "store");
            assert_eq!(run(&memory, &start, &STORE, &store, 5).err(), stop, "{store} at {beyond:#x}");
        }
    }
}

/// A flat address in the aperture names the same bytes, and an atomic of 32 bits has one address there.
#[test]
fn flat_accesses_reach_the_segment() {
    let memory = Memory::new();
    let before = memory.bytes();
    // flat_load_b32 v20, v[10:11] offset:8
    let load = decode(&[0xEC05007C, 0x00000014, 0x0000080A]).unwrap();
    let mut start = wave();
    start.vector[ADDRESS] = Row(std::array::from_fn(|lane| lane as u32 % 21));
    start.vector[ADDRESS + 1] = Row([0x2_0000; LANES]);
    let mut expected = start.clone();
    for lane in 0..LANES {
        let offset = lane as u32 % 21 + 8;
        let bytes = [0, 1, 2, 3].map(|byte| before[place(lane, offset + byte, 5)]);
        expected.vector[RESULT].0[lane] = u32::from_le_bytes(bytes);
    }
    let op = translate(&load, Level::BASELINE).unwrap();
    let with_scratch = |wave: &mut Wave, op: &crate::shader::micro::MicroOp| {
        memory.with(|machine| {
            let wave_va = BASE + u64::from(SCRATCH_AT);
            machine.scratch = Scratch { wave_va, lane_bytes: LANE_BYTES, lanes_log2: 5 };
            op.executor.call(wave, op, machine);
            machine.stop
        })
    };
    let mut end = start.clone();
    assert_eq!(with_scratch(&mut end, &op), None);
    assert_same(&end, &expected, "flat_load_b32");
    // flat_atomic_add_u32 v[10:11], v4
    for (offset, stop) in [
        (28, None),
        (26, Some(WaveFaultKind::Misaligned { va: 26, width: 4 })),
        (32, Some(WaveFaultKind::Scratch { offset: 32, allocated: LANE_BYTES })),
    ] {
        let add = decode(&[0xEC0D407C, 0x02000000, 0x0000000A]).unwrap();
        let op = translate(&add, Level::BASELINE).unwrap();
        start.scalar[126] = 1 << 5;
        start.vector[ADDRESS] = Row([offset; LANES]);
        let reported = with_scratch(&mut start.clone(), &op);
        assert_eq!(reported, stop.map(|kind| Stop { kind, lane: Some(5) }), "{offset}");
    }
    let at = place(5, 28, 5);
    let sum = little_endian(&before[at..at + 4]).wrapping_add(start.vector[DATA].0[5]);
    let mut stored = before.clone();
    stored[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    assert!(memory.bytes() == stored);
}
