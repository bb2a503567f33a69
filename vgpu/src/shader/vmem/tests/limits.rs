//! What stops an access: the rights and the end of a mapping, and the end of the group's memory. And rare forms.

use super::*;
use crate::memory::{Cause, Fault};

/// Loads need the right to read, stores the right to write, and atomics both.
#[test]
fn a_mapping_permits_what_its_rights_say() {
    let memory = Memory::permitting([Rights::READ, Rights::WRITE]);
    // global_atomic_add_u32 v10, v4, s[8:9] offset:8
    let add = &[0xEE0D4008, 0x02000000, 0x0000080A];
    let both = Rights::READ | Rights::WRITE;
    for (words, access, at, refused) in [
        (MODES[0].load, Rights::READ, 64, None),
        (MODES[0].load, Rights::READ, SPLIT + 64, Some(Cause::NotPresent)),
        (MODES[0].store, Rights::WRITE, 64, Some(Cause::ReadOnly)),
        (MODES[0].store, Rights::WRITE, SPLIT + 64, None),
        (add, both, 64, Some(Cause::ReadOnly)),
        (add, both, SPLIT + 64, Some(Cause::NotPresent)),
    ] {
        let instruction = decode(words).unwrap();
        let start = started(&MODES[0], u32::MAX, &std::array::from_fn(|lane| at + 4 * lane as u32));
        let expected = refused.map(|cause| {
            let fault = Fault { va: BASE + u64::from(at), cause, access };
            Stop { kind: WaveFaultKind::Page(fault), lane: Some(0) }
        });
        let stop = memory.run(&start, &instruction).err();
        assert_eq!(stop, expected, "{} at {at:#x}", instruction.opcode.mnemonic());
    }
}

/// The first dwords are the last of one mapping, the others the first of the next one.
#[test]
fn accesses_cross_a_mapping_s_end_from_a_base_before_it() {
    let memory = Memory::new();
    let before = memory.bytes();
    for (words, width) in [(2, 8), (3, 12), (4, 16)] {
        let datum = format!("b{}", 32 * words);
        let load = with_datum(MODES[0].load, "global", &format!("load_{datum}"));
        let store = with_datum(MODES[0].store, "global", &format!("store_{datum}"));
        for at in (SPLIT - width + 4..SPLIT).step_by(4) {
            let mut start = wave();
            start.set_scalar_pair(8, BASE + u64::from(at) - 8);
            start.vector[ADDRESS] = Row([0; LANES]);
            let (mut loaded, mut stored) = (start.clone(), before.clone());
            for index in 0..words {
                let place = at as usize + 4 * index;
                loaded.vector[RESULT + index] = Row([little_endian(&before[place..place + 4]); LANES]);
                // All lanes store there, and what the last one stores stays.
                let data = start.vector[DATA + index].0[LANES - 1];
                stored[place..place + 4].copy_from_slice(&data.to_le_bytes());
            }
            assert_same(&memory.run(&start, &load).unwrap(), &loaded, &format!("{datum} at {at:#x}"));
            memory.run(&start, &store).unwrap();
            assert!(memory.bytes() == stored, "{datum} stored at {at:#x}");
            memory.set(&before);
        }
    }
}

/// Runs an instruction in a group whose memory has `bytes`, the first `len` of which are allocated. Returns the wave
/// and all the bytes afterwards.
fn in_group(
    level: Level,
    bytes: &[u8],
    len: u32,
    start: &Wave,
    instruction: &Instruction,
) -> (Wave, Vec<u8>, Option<Stop>) {
    let op = translate(instruction, level).unwrap();
    let mut wave = start.clone();
    with_machine(|machine| {
        machine.lds.bytes = len;
        for (word, bytes) in machine.lds.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = little_endian(bytes);
        }
        op.executor.call(&mut wave, &op, machine);
        let after = machine.lds.words.iter().flat_map(|word| word.to_le_bytes()).take(bytes.len()).collect();
        (wave, after, machine.stop)
    })
}

/// A flat address in LDS's aperture names a byte of the group's memory, up to the last one.
#[test]
fn flat_accesses_reach_the_group_s_memory() {
    const ALLOCATED: u32 = 64;
    let before: Vec<u8> = (100..200).collect();
    // flat_atomic_add_u32 v[10:11], v4 offset:8
    let add = decode(&[0xEC0D407C, 0x02000000, 0x0000080A]).unwrap();
    let named = |example: &[u32], name: &str| with_datum(example, "flat", name);
    for (instruction, width) in [
        (named(MODES[2].load, "load_u8"), 1),
        (named(MODES[2].load, "load_b32"), 4),
        (named(MODES[2].load, "load_b128"), 16),
        (named(MODES[2].store, "store_b16"), 2),
        (named(MODES[2].store, "store_b96"), 12),
        (add, 4),
    ] {
        let name = instruction.opcode.mnemonic();
        for at in [8, ALLOCATED - width, ALLOCATED - width + 1, ALLOCATED] {
            let mut start = wave();
            start.scalar[126] = 1 << 5;
            (start.vector[ADDRESS].0[5], start.vector[ADDRESS + 1].0[5]) = (at - 8, 0x1_0000);
            let (mut expected, mut bytes) = (start.clone(), before.clone());
            let place = at as usize..(at + width) as usize;
            let is_inside = at + width <= ALLOCATED;
            if is_inside && name.contains("load") {
                for (index, word) in before[place].chunks(4).enumerate() {
                    expected.vector[RESULT + index].0[5] = little_endian(word);
                }
            } else if is_inside {
                let old = if name.contains("add") { little_endian(&before[place.clone()]) } else { 0 };
                let data = [0, 1, 2].map(|index| start.vector[DATA + index].0[5]);
                let [first, second, third] =
                    [data[0].wrapping_add(old), data[1], data[2]].map(u32::to_le_bytes);
                let data = [first, second, third].concat();
                bytes[place].copy_from_slice(&data[..width as usize]);
            }
            for level in Level::supported() {
                let (end, after, stop) = in_group(level, &before, ALLOCATED, &start, &instruction);
                let what = format!("{name} at {at}, {level:?}");
                let kind = WaveFaultKind::LdsOutOfRange { address: at, width, allocated: ALLOCATED };
                assert_eq!(stop, (!is_inside).then_some(Stop { kind, lane: Some(5) }), "{what}");
                assert_same(&end, &expected, &what);
                assert!(after == bytes, "{what}, stored");
            }
        }
    }
}

/// The address is the sum of the scalar base, the offset and four bytes per lane; vector registers do not count.
#[test]
fn the_lane_number_is_an_address() {
    let memory = Memory::new();
    let before = memory.bytes();
    // global_load_addtid_b32 v20, s[8:9] offset:8; global_store_addtid_b32 v4, s[8:9] offset:8
    let [load, store] = [[0xEE0A0008, 0x14, 0x800], [0xEE0A4008, 0x02000000, 0x800]];
    for exec in [u32::MAX, 0x8421_0F00] {
        let mut start = wave();
        start.scalar[126] = exec;
        start.set_scalar_pair(8, BASE + 64 - 8);
        let (mut loaded, mut stored) = (start.clone(), before.clone());
        for lane in active(exec) {
            let place = 64 + 4 * lane..68 + 4 * lane;
            loaded.vector[RESULT].0[lane] = little_endian(&before[place.clone()]);
            stored[place].copy_from_slice(&start.vector[DATA].0[lane].to_le_bytes());
        }
        let end = memory.run(&start, &decode(&load).unwrap()).unwrap();
        assert_same(&end, &loaded, "global_load_addtid_b32");
        let end = memory.run(&start, &decode(&store).unwrap()).unwrap();
        assert_same(&end, &start, "global_store_addtid_b32");
        assert!(memory.bytes() == stored, "global_store_addtid_b32 of {exec:#x}");
        memory.set(&before);
    }
}

/// A load that reports failed texels (bit 22, "tfe") writes one more register.
#[test]
fn reports_of_failed_texels_are_not_modelled() {
    let [first, second, third] = *MODES[3].load else { panic!("three words") };
    let is_translated = |first: u32| {
        let instruction = decode(&[first, second, third]).unwrap();
        translate(&instruction, Level::BASELINE).is_some()
    };
    assert!(is_translated(first) && !is_translated(first | 1 << 22));
}
