//! Private memory ends where the kernel declares, even if the segment continues: after 64 bytes of 128.

use super::undefined::ALL;
use super::*;
use crate::shader::address::PRIVATE_APERTURE_HIGH;

twins! {
    after_the_end: "bounds: pc 0x0: (lane 0) 4 bytes at offset 64 of private memory, of which the kernel declares 64 \
        bytes for a lane; check the index into the array, and the stack that calls need";
    [
        0xed06807c, 0x00000000, 0x00004000, // scratch_store_b32 off, v0, off offset:64
    ]
    [
        0xed06807c, 0x00000000, 0x00003c00, // scratch_store_b32 off, v0, off offset:60
    ]

    across_the_end: "bounds: pc 0x0: (lane 0) 8 bytes at offset 60 of private memory, of which the kernel declares 64 \
        bytes for a lane; check the index into the array, and the stack that calls need";
    [
        0xed06c07c, 0x00000000, 0x00003c00, // scratch_store_b64 off, v[0:1], off offset:60
    ]
    [
        0xed06c07c, 0x00000000, 0x00003800, // scratch_store_b64 off, v[0:1], off offset:56
    ]
}

/// Sets the lanes of a vector register.
fn set_lanes(walk: &mut Walk, number: usize, value: impl Fn(u32) -> u32) {
    let value = &value;
    walk.wave.vector[number] = Row(std::array::from_fn(|lane| value(lane as u32)));
    if let Some(bank) = &mut walk.wave.other_half {
        bank[number] = Row(std::array::from_fn(|lane| value((LANES + lane) as u32)));
    }
}

fn overrun(lane: u32, offset: u32) -> String {
    format!(
        "bounds: pc 0x0: (lane {lane}) 4 bytes at offset {offset} of private memory, of which the kernel declares 64 \
         bytes for a lane; check the index into the array, and the stack that calls need"
    )
}

/// Vector offset, scalar offset and immediate add up, lane by lane; the first active lane beyond the end is told.
#[test]
fn offsets_are_sums_of_their_parts() {
    let wave32 = (WaveSize::Wave32, u64::MAX >> 32);
    let forward = [0xed068004, 0x00020000, 0x00000801]; // scratch_store_b32 v1, v0, s4 offset:8
    let backward = [0xed068004, 0x00020000, 0xfffff801]; // scratch_store_b32 v1, v0, s4 offset:-8
    for ((wave_size, exec), scalar, words, expected) in [
        // 4 * lane + 8 + 8
        (wave32, 8, &forward, Some((12, 64))),
        ((WaveSize::Wave32, 0xfff0_0000), 8, &forward, Some((20, 96))),
        ((WaveSize::Wave32, 0x0000_0fff), 8, &forward, None),
        ((WaveSize::Wave32, 0), 8, &forward, None),
        // Beyond the segment of 128 bytes it is a fault, and is reported as one.
        ((WaveSize::Wave32, 0xf800_0000), 8, &forward, Some((27, 124))),
        ((WaveSize::Wave32, 0xf000_0000), 8, &forward, None),
        (wave32, 0xffff_fff8, &forward, Some((16, 64))),
        (wave32, 8, &backward, Some((16, 64))),
        // 4 * lane - 64 + 8
        ((WaveSize::Wave64, u64::MAX), 0xffff_ffc0, &forward, Some((30, 64))),
        ((WaveSize::Wave64, u64::MAX << 40), 0xffff_ffc0, &forward, Some((40, 104))),
    ] {
        let mut walk = Walk::new(&launch(wave_size));
        walk.exec = exec;
        walk.scalar[4] = scalar;
        set_lanes(&mut walk, 1, |lane| 4 * lane);
        walk.run(words);
        let texts: Vec<String> = walk.ordered().iter().map(ToString::to_string).collect();
        let expected: Vec<String> =
            expected.into_iter().map(|(lane, offset)| overrun(lane, offset)).collect();
        assert_eq!(texts, expected, "{exec:#x} {scalar:#x} {words:x?}");
    }
}

/// The high dword of a flat address decides for each lane whether private memory is meant.
#[test]
fn flat_accesses_of_some_lanes_are_private() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    set_lanes(&mut walk, 4, |lane| 4 * lane);
    set_lanes(&mut walk, 5, |lane| if lane % 2 == 1 { PRIVATE_APERTURE_HIGH } else { 1 });
    walk.run(&[
        0xec06807c, 0x00000000, 0x00000804, // flat_store_b32 v[4:5], v0 offset:8
    ]);
    let texts: Vec<String> = walk.ordered().iter().map(ToString::to_string).collect();
    // 4 * 13 + 8 is the last offset inside.
    assert_eq!(texts, [overrun(15, 68)]);
}

/// What a wave finds unwritten that executes `words` and `global_store_b32 v0, v5, s[0:1]` in the lanes `active`. The
/// offsets in v1 are written in all lanes, and v2 in the lanes `defined`.
fn found_again([defined, active]: [u64; 2], offset: impl Fn(u32) -> u32, words: &[u32]) -> Vec<String> {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    set_lanes(&mut walk, 1, offset);
    walk.run(&[
        0x7e020300, // v_mov_b32_e32 v1, v0
    ]);
    walk.exec = defined;
    walk.run(&[
        0x7e040300, // v_mov_b32_e32 v2, v0
    ]);
    walk.exec = active;
    walk.run(words);
    walk.run(&[
        0xee068000, 0x02800000, 0x00000000, // global_store_b32 v0, v5, s[0:1]
    ]);
    let unwritten = walk.findings.iter().filter(|finding| finding.rule() == Rule::Uninitialised);
    unwritten.map(ToString::to_string).collect()
}

const STORE: [u32; 3] = [0xed06807c, 0x01020000, 0x00000001]; // scratch_store_b32 v1, v2, off
const LOAD: [u32; 3] = [0xed05007c, 0x00020005, 0x00000001]; // scratch_load_b32 v5, v1, off

fn computed(pc: u32, lane: u32, source: &str, cause: u32) -> String {
    format!(
        "uninitialised: pc {pc:#x}: v5 (lane {lane}) is used, but was computed from {source}, which nothing has \
         written, from pc {cause:#x}; write it first"
    )
}

/// Four lanes are active; only what the last one stores was never written.
#[test]
fn the_last_active_lane_finds_what_it_has_stored() {
    let words = [&STORE[..], &LOAD].concat();
    assert_eq!(found_again([0x7, 0xf], |lane| 4 * lane, &words), [computed(0x20, 3, "v2", 0x8)]);
}

#[test]
fn each_lane_finds_what_it_has_stored() {
    let next = [0xed05007c, 0x00020005, 0x00000401]; // scratch_load_b32 v5, v1, off offset:4
    let twelve = [0xed05007c, 0x00000005, 0x00000c00]; // scratch_load_b32 v5, off, off offset:12
    let lanes: fn(u32) -> u32 = |lane| lane % 8 * 4;
    let whole: fn(u32) -> u32 = |_| 12;
    let odd: fn(u32) -> u32 = |_| 13;
    let cases: [(_, &[u32], Option<String>); 7] = [
        // Lanes 0 to 7 have stored defined data, the others v2 as it was.
        (lanes, &LOAD, Some(computed(0x20, 8, "v2", 0x8))),
        // The dword after their own, where none has stored.
        (lanes, &next, Some(computed(0x20, 0, "byte 4 of private memory", 0x14))),
        // Only lanes 3, 11 and so on have stored there.
        (lanes, &twelve, Some(computed(0x20, 0, "byte 12 of private memory", 0x14))),
        (whole, &twelve, Some(computed(0x20, 8, "v2", 0x8))),
        (whole, &LOAD, Some(computed(0x20, 8, "v2", 0x8))),
        (odd, &twelve, Some(computed(0x20, 0, "byte 12 of private memory", 0x14))),
        (odd, &LOAD, Some(computed(0x20, 8, "v2", 0x8))),
    ];
    for (at, (offset, load, expected)) in cases.into_iter().enumerate() {
        let found = found_again([0xff, ALL], offset, &[&STORE[..], load].concat());
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "case {at}");
    }
}
