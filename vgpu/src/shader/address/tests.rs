//! Targets of lanes, and the two ways to express them.

use super::*;
use crate::shader::control::{Nothing, blank};
use crate::simd::Executor;

/// The target of lane 5 of `buffer_load_b32 v0, v[4:5], s[8:11], s12 idxen offen offset:…`.
fn target(words: [u32; 4], index: u32, offset: u32, scalar_offset: u32, immediate: i32) -> Target {
    let mut wave = Wave::new();
    wave.vector[4].0 = [index; LANES];
    wave.vector[5].0 = [offset; LANES];
    wave.scalar[8..12].copy_from_slice(&words);
    wave.scalar[12] = scalar_offset;
    let mut op = blank(Executor::baseline::<Nothing>());
    op.sources = [Source::Vector(4), Source::Vector(0), Source::Scalar(8)];
    op.immediate = immediate;
    op.immediate2 = BUFFER_OFFSET_ENABLE | BUFFER_INDEX_ENABLE;
    op.wide[0] = 12;
    assert_eq!(Buffer::near(&wave, &op, u32::MAX, 4), None);
    Buffer::lane(&wave, &op, 5, 4)
}

#[test]
fn records_of_a_linear_buffer_follow_each_other() {
    // Base 0x1000, stride 48, 100 records, structured rule 0.
    let words = [0x1000, 48 << 16, 100, 0];
    assert_eq!(target(words, 3, 8, 0, 4), Target::Global(0x1000 + 3 * 48 + 12));
    assert_eq!(target(words, 100, 8, 0, 4), Target::Outside);
    assert_eq!(target(words, 3, 44, 0, 4), Target::Outside, "beyond the record");
    let with_lane = [0x1000, 48 << 16, 100, 1 << 23];
    assert_eq!(target(with_lane, 3, 8, 0, 4), Target::Global(0x1000 + 8 * 48 + 12));
}

#[test]
fn elements_of_a_swizzled_buffer_are_interleaved() {
    // Elements of 4 bytes, 16 records interleaved, rule 1. Record 35 is the fourth of the third group; its byte
    // 9 is in the third element: after two groups of 16 records and two rows of 16 elements.
    let words = [0x1000, 48 << 16 | 1 << 30, 100, 1 << 28 | 1 << 21];
    let expected = 0x1000 + 2 * 16 * 48 + 2 * 16 * 4 + 3 * 4 + 1;
    assert_eq!(target(words, 35, 5, 0, 4), Target::Global(expected));
    // With soffset it is byte 265 of the record, in its element 66.
    let expected = 0x1000 + 2 * 16 * 48 + 66 * 16 * 4 + 3 * 4 + 1;
    assert_eq!(target(words, 35, 5, 0x100, 4), Target::Global(expected));
    // The sum of all offsets has 32 bits.
    assert_eq!(target(words, 35, 5, u32::MAX, 4), target(words, 35, 4, 0, 4));
    // Elements of 16 bytes, 8 records: byte 20 is byte 4 of the second element.
    let words = [0x1000, 48 << 16 | 3 << 30, 100, 1 << 28];
    assert_eq!(target(words, 1, 20, 0, 0), Target::Global(0x1000 + 8 * 16 + 16 + 4));
}

/// Each rule at its edges, of four dwords from an offset on: without a stride, with one, and swizzled.
#[test]
fn a_dword_is_outside_by_the_rule_of_its_buffer() {
    let is_inside = |words: [u32; 4], index: u32, offset: u32| -> [bool; 4] {
        let mut wave = Wave::new();
        (wave.vector[4].0, wave.vector[5].0) = ([index; LANES], [offset; LANES]);
        wave.scalar[8..12].copy_from_slice(&words);
        let op = buffer_op(BUFFER_OFFSET_ENABLE | BUFFER_INDEX_ENABLE);
        std::array::from_fn(|dword| Buffer::dword(&wave, &op, 5, dword) != Target::Outside)
    };
    let [all, none, two] = [[true; 4], [false; 4], [true, true, false, false]];
    let (linear, swizzled) = (48 << 16, 48 << 16 | 1 << 30);
    for (rule, stride, records, index, offset, expected) in [
        // Records, and bytes of a record: without a stride it has none.
        (0, linear, 20, 19, 32, all),
        (0, linear, 20, 19, 40, two),
        (0, linear, 20, 20, 0, none),
        (0, swizzled, 20, 19, 40, two),
        (0, 0, 20, 0, 0, none),
        // Records alone.
        (1, linear, 20, 19, 400, all),
        (1, linear, 20, 20, 0, none),
        (1, 0, 1, 0, 400, all),
        // Whether there is anything.
        (2, linear, 1, 400, 400, all),
        (2, linear, 0, 0, 0, none),
        // Bytes; of a swizzled buffer as the first rule.
        (3, 0, 48, 0, 32, all),
        (3, 0, 48, 0, 40, two),
        (3, swizzled, 20, 19, 40, two),
        (3, swizzled, 20, 20, 0, none),
    ] {
        let words = [0x1000, stride, records, rule << 28];
        assert_eq!(is_inside(words, index, offset), expected, "rule {rule}, {stride:#x}, {index}, {offset}");
    }
}

/// Dwords that leave an element follow the first one, inside of the buffer as a whole or not.
#[test]
fn further_dwords_follow_the_first_one() {
    let mut wave = Wave::new();
    (wave.vector[4].0, wave.vector[5].0) = ([3; LANES], [36; LANES]);
    let op = buffer_op(BUFFER_OFFSET_ENABLE | BUFFER_INDEX_ENABLE);
    for (stride, first) in
        [(48, 3 * 48 + 36), (48 | 1 << 14, 36 * 8 + 3 * 4), (48 | 3 << 14, 32 * 8 + 3 * 16 + 4)]
    {
        wave.scalar[8..12].copy_from_slice(&[0x1000, stride << 16, 20, 0]);
        let dwords: [Target; 4] = std::array::from_fn(|dword| Buffer::dword(&wave, &op, 5, dword));
        let at = |dword: u64| Target::Global(0x1000 + first + 4 * dword);
        assert_eq!(dwords, [at(0), at(1), at(2), Target::Outside], "stride {stride:#x}");
        assert_eq!(Buffer::lane(&wave, &op, 5, 12), at(0));
    }
}

/// A lane in the high half of a wave64 is one of lanes 32 to 63.
#[test]
fn the_lane_that_a_buffer_adds_is_that_of_the_wave() {
    let mut wave = Wave::new();
    wave.vector[4].0 = [3; LANES];
    wave.scalar[8..12].copy_from_slice(&[0x1000, 48 << 16, 100, 1 << 23]);
    let op = buffer_op(BUFFER_INDEX_ENABLE);
    assert_eq!(Buffer::lane(&wave, &op, 7, 4), Target::Global(0x1000 + 10 * 48));
    wave.is_high = true;
    assert_eq!(Buffer::lane(&wave, &op, 7, 4), Target::Global(0x1000 + 42 * 48));
    assert_eq!(Buffer::near(&wave, &op, u32::MAX, 4), None);
}

/// An access whose address is v4 (and v5), with a base or descriptor at s8 and an soffset of s12.
fn buffer_op(enables: u32) -> MicroOp {
    let mut op = blank(Executor::baseline::<Nothing>());
    op.sources = [Source::Vector(4), Source::Vector(0), Source::Scalar(8)];
    op.immediate2 = enables;
    op.wide[0] = 12;
    op
}

/// What each of the rules permits at its last byte, and refuses one byte or one record further. soffset is 0, but
/// where a rule is about the distance from the base.
#[test]
fn a_rule_says_which_accesses_are_outside() {
    const INSIDE: bool = true;
    for (rule, stride, records, index, offset, soffset, expected) in [
        // 0: the index counts records, and the access is within one.
        (0, 48, 100, 99, 44, 0, INSIDE),
        (0, 48, 100, 100, 0, 0, false),
        (0, 48, 100, 99, 45, 0, false),
        (0, 48, 0, 0, 0, 0, false),
        // 1: only the index counts.
        (1, 48, 100, 99, 45, 0, INSIDE),
        (1, 48, 100, 100, 0, 0, false),
        (1, 48, 100, 99, 4000, 64, INSIDE),
        // 2: only a buffer without records has no inside.
        (2, 48, 1, 5000, 5000, 0, INSIDE),
        (2, 0, 1, 5000, 5000, 0, INSIDE),
        (2, 48, 0, 0, 0, 0, false),
        // 3: records are bytes.
        (3, 0, 100, 0, 96, 0, INSIDE),
        (3, 0, 100, 0, 97, 0, false),
        (3, 0, 100, 0, 32, 64, INSIDE),
        (3, 0, 100, 0, 33, 64, false),
        (3, 16, 100, 6, 0, 0, INSIDE),
        (3, 16, 100, 6, 1, 0, false),
        // Without a stride, records have no bytes, and are counted all the same.
        (0, 0, 100, 7, 0, 0, false),
        (1, 0, 100, 99, 4000, 0, INSIDE),
        (1, 0, 100, 100, 0, 0, false),
        // Offsets do not wrap.
        (3, 0, 100, 0, u32::MAX, 8, false),
        (0, 48, 100, 0, u32::MAX, 0, false),
    ] {
        let words = [0x1000, stride << 16, records, rule << 28];
        let va = 0x1000 + u64::from(index) * u64::from(stride) + u64::from(offset) + u64::from(soffset);
        let expected = if expected { Target::Global(va) } else { Target::Outside };
        let what = format!("rule {rule}: {stride} x {records}, {index} and {offset} + {soffset}");
        assert_eq!(target(words, index, offset, soffset, 0), expected, "{what}");
    }
}

/// The base has 48 bits and the stride 14; the other bits of the second word say how elements are placed.
#[test]
fn a_descriptor_has_fields() {
    let words = [0x9000_1000, 0x3FFF_8765, 10, 1 << 28];
    assert_eq!(target(words, 2, 0, 0, 0), Target::Global(0x8765_9000_1000 + 2 * 0x3FFF));
    // Groups of 8, 16, 32 and 64 records with elements of 4, 8 and 16 bytes: the last record of the first group, and
    // the first one of the second.
    for (field, records) in [8, 16, 32, 64].into_iter().enumerate() {
        for (code, element) in [(1, 4), (2, 8), (3, 16)] {
            let words = [0, 48 << 16 | code << 30, 200, 1 << 28 | (field as u32) << 21];
            let last = u64::from(records - 1) * element;
            assert_eq!(
                target(words, records - 1, 3, 0, 0),
                Target::Global(last + 3),
                "{records} of {element}"
            );
            let second = 48 * u64::from(records) + u64::from(records) * element;
            assert_eq!(target(words, records, element as u32, 0, 0), Target::Global(second));
        }
    }
}

/// Both ways agree wherever the first is taken, and it is taken exactly where it may be.
fn check_near<A: AddressMode>(wave: &Wave, op: &MicroOp, exec: u32, is_near: bool, what: &str) {
    let near = A::near(wave, op, exec, 4);
    assert_eq!(near.is_some(), is_near, "{what}");
    let Some((base, offsets)) = near else { return };
    for lane in 0..LANES {
        let same = if exec >> lane & 1 != 0 { lane } else { exec.trailing_zeros() as usize };
        let target = Target::Global(base.wrapping_add(offsets.0[lane].into()));
        assert_eq!(target, A::lane(wave, op, same, 4), "{what}, lane {lane}");
    }
}

#[test]
fn lanes_with_one_high_dword_are_near_each_other() {
    let mut op = blank(Executor::baseline::<Nothing>());
    op.sources = [Source::Vector(4), Source::Vector(0), Source::Scalar(124)];
    for immediate in [0, 8, -8] {
        op.immediate = immediate;
        let mut wave = Wave::new();
        wave.vector[4].0 = std::array::from_fn(|lane| 0x0700_0000 * lane as u32);
        wave.vector[5].0 = [7; LANES];
        check_near::<VectorPair>(&wave, &op, u32::MAX, true, "one high dword");
        check_near::<Flat>(&wave, &op, u32::MAX, true, "one high dword, flat");
        wave.vector[5].0[9] = 8;
        check_near::<VectorPair>(&wave, &op, u32::MAX, false, "two high dwords");
        check_near::<Flat>(&wave, &op, u32::MAX, false, "two high dwords, flat");
        check_near::<VectorPair>(&wave, &op, 0xFFFF_F0F0, true, "the other one is inactive");
        // The highest register is followed by the lowest.
        wave.vector[255].0 = [0x100; LANES];
        wave.vector[0].0 = [3; LANES];
        let last = MicroOp { sources: [Source::Vector(255), Source::Vector(0), Source::Scalar(124)], ..op };
        check_near::<VectorPair>(&wave, &last, u32::MAX, true, "v255 and v0");
        assert_eq!(
            VectorPair::lane(&wave, &last, 0, 4),
            Target::Global((0x3_0000_0100u64).wrapping_add_signed(immediate.into()))
        );
    }
}

/// The apertures are 4 GiB each: LDS from 0x10000 << 32 on, private memory from 0x20000 << 32 on. The immediate counts
/// before the aperture is looked for.
#[test]
fn flat_addresses_reach_the_apertures_after_the_immediate_was_added() {
    let target = |high: u32, low: u32, immediate: i32| {
        let mut op = blank(Executor::baseline::<Nothing>());
        op.sources = [Source::Vector(4), Source::Vector(0), Source::Scalar(124)];
        op.immediate = immediate;
        let mut wave = Wave::new();
        (wave.vector[4].0, wave.vector[5].0) = ([low; LANES], [high; LANES]);
        let target = Flat::lane(&wave, &op, 3, 4);
        let is_far = [0xFFFF, 0x1_0000, 0x1_0001, 0x1_FFFF, 0x2_0000, 0x2_0001].contains(&high);
        check_near::<Flat>(&wave, &op, u32::MAX, !is_far, &format!("{high:#x} {low:#x} {immediate}"));
        target
    };
    assert_eq!(target(0x1_0000, 0x40, 8), Target::Lds(0x48));
    assert_eq!(target(0xFFFF, 0xFFFF_FFFC, 8), Target::Lds(4));
    assert_eq!(target(0xFFFF, 0xFFFF_FFF0, 8), Target::Global(0xFFFF_FFFF_FFF8));
    assert_eq!(target(0x1_0000, 4, -8), Target::Global(0xFFFF_FFFF_FFFC));
    assert_eq!(target(0x1_0001, 4, -8), Target::Lds(0xFFFF_FFFC));
    assert_eq!(target(0x1_0001, 4, 0), Target::Global(0x1_0001_0000_0004));
    assert_eq!(target(0x2_0000, 0x40, 8), Target::Private(0x48));
    assert_eq!(target(0x1_FFFF, 0xFFFF_FFFC, 8), Target::Private(4));
    assert_eq!(target(0x2_0000, 4, -8), Target::Global(0x1_FFFF_FFFF_FFFC));
    assert_eq!(target(0x2_0001, 4, -8), Target::Private(0xFFFF_FFFC));
    assert_eq!(target(0xFFFE, u32::MAX, 1), Target::Global(0xFFFF_0000_0000));
    assert_eq!(target(0x1_0002, 0, -1), Target::Global(0x1_0001_FFFF_FFFF));
    assert_eq!(target(0x2_0002, 0, -1), Target::Global(0x2_0001_FFFF_FFFF));
    assert_eq!(target(0, 0, 0), Target::Global(0));
}

/// Only a raw buffer without an index is near, if every active lane is inside.
#[test]
fn lanes_inside_a_raw_buffer_are_near_each_other() {
    let start = |words: [u32; 4], soffset: u32| {
        let mut wave = Wave::new();
        wave.vector[4].0 = std::array::from_fn(|lane| 4 * lane as u32);
        wave.vector[5].0 = [64; LANES];
        wave.scalar[8..12].copy_from_slice(&words);
        wave.scalar[12] = soffset;
        wave
    };
    let (raw, with_offset) = (3 << 28, buffer_op(BUFFER_OFFSET_ENABLE));
    for (records, soffset, exec, is_near) in [
        (128, 0, u32::MAX, true),
        (127, 0, u32::MAX, false),
        (127, 0, u32::MAX >> 1, true),
        (160, 32, u32::MAX, true),
        (159, 32, u32::MAX, false),
        (3, 0, 1, false),
        (4, 0, 1, true),
        (40, 64, 1, false),
    ] {
        let wave = start([0x1000, 0, records, raw], soffset);
        let what = format!("{records} bytes, soffset {soffset}");
        check_near::<Buffer>(&wave, &with_offset, exec, is_near, &what);
    }
    let immediate = MicroOp { immediate: 8, ..buffer_op(0) };
    check_near::<Buffer>(&start([0x1000, 0, 12, raw], 0), &immediate, u32::MAX, true, "all at 8");
    check_near::<Buffer>(&start([0x1000, 0, 11, raw], 0), &immediate, u32::MAX, false, "beyond the end");
    for (words, enables, what) in [
        ([0x1000, 0, 1000, raw], BUFFER_INDEX_ENABLE, "an index"),
        ([0x1000, 4 << 16, 1000, raw], BUFFER_OFFSET_ENABLE, "a stride"),
        ([0x1000, 0, 1000, raw | 1 << 23], BUFFER_OFFSET_ENABLE, "the lane"),
        ([0x1000, 1 << 30, 1000, raw], BUFFER_OFFSET_ENABLE, "elements"),
    ] {
        check_near::<Buffer>(&start(words, 0), &buffer_op(enables), u32::MAX, false, what);
    }
}

#[test]
fn other_modes_add_one_base() {
    let mut wave = Wave::new();
    wave.set_scalar_pair(8, 0xFFFF_FFF0);
    wave.vector[4].0 = std::array::from_fn(|lane| 0xFFFF_FFFF - 3 * lane as u32);
    let op = MicroOp { immediate: 24, ..buffer_op(0) };
    for exec in [u32::MAX, 0x8000_0100] {
        check_near::<ScalarBase>(&wave, &op, exec, true, "a scalar base");
        check_near::<LaneIndex>(&wave, &op, exec, true, "the lane");
    }
    assert_eq!(ScalarBase::lane(&wave, &op, 2, 4), Target::Global(0xFFFF_FFF0 + 24 + 0xFFFF_FFF9));
    assert_eq!(LaneIndex::lane(&wave, &op, 31, 4), Target::Global(0xFFFF_FFF0 + 24 + 124));
    // Private memory: the sum of three has 32 bits, and without a vector offset it is one of two.
    let private = MicroOp { immediate2: SCRATCH_VECTOR_OFFSET, ..op };
    assert_eq!(Scratch::lane(&wave, &private, 2, 4), Target::Private(1));
    assert_eq!(Scratch::lane(&wave, &op, 2, 4), Target::Private(8));
    assert_eq!(Scratch::near(&wave, &private, u32::MAX, 4), None);
}

#[test]
fn a_range_of_lanes_has_both_ends_and_an_alignment() {
    let row = |low: u32, high: u32| Row(std::array::from_fn(|lane| if lane == 17 { high } else { low }));
    assert!(all_within(&row(8, 40), 8, 40, 4));
    assert!(!all_within(&row(8, 40), 9, 40, 1) && !all_within(&row(8, 40), 8, 39, 1));
    assert!(!all_within(&row(8, 42), 8, 44, 4) && all_within(&row(8, 42), 8, 44, 2));
    assert!(all_within(&row(0, u32::MAX), 0, u32::MAX, 1));
    assert!(!all_within(&row(4, 4), 5, 3, 1), "nothing is between");
    let run =
        |start: u32, stride: u32| Row(std::array::from_fn(|lane| start.wrapping_add(lane as u32 * stride)));
    assert!(are_consecutive(&run(5, 4), 4) && are_consecutive(&run(0, 16), 16));
    assert!(!are_consecutive(&run(5, 4), 8) && !are_consecutive(&run(5, 0), 4));
    assert!(are_consecutive(&run(u32::MAX - 128, 4), 4) && !are_consecutive(&run(u32::MAX - 127, 4), 4));
    let mut one_off = run(64, 4);
    one_off.0[31] -= 4;
    assert!(!are_consecutive(&one_off, 4));
}
