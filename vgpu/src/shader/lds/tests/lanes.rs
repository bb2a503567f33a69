//! Instructions of LDS's class that count lanes or move values between them.

use super::*;
use crate::shader::lds::swizzle_source;

#[test]
fn active_lanes_are_counted_up_and_down() {
    for (words, sign) in [([0xD8F80008, 0x14000000], 1i64), ([0xD8F40008, 0x14000000], -1)] {
        for exec in [ALL, 1, 0x8000_0F00, 0] {
            let mut start = Group::new().only(exec);
            // Only the low half of m0 counts.
            start.wave.scalar[125] = 0x5555_0100;
            let mut expected = start.clone();
            let old = start.bytes(0x108, 4) as u32;
            if exec != 0 {
                let count = sign * i64::from(exec.count_ones());
                expected.set_bytes(0x108, 4, (i64::from(old) + count) as u64);
            }
            for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
                expected.wave.vector[RESULT].0[lane] = old;
            }
            assert_groups_equal(&start.run(&words).unwrap(), &expected, "ds_append or ds_consume");
        }
        let mut start = Group::new();
        start.wave.scalar[125] = BYTES - 12;
        assert!(start.run(&words).is_ok());
        start.wave.scalar[125] += 4;
        let kind = WaveFaultKind::LdsOutOfRange { address: BYTES, width: 4, allocated: BYTES };
        assert_eq!(start.run(&words).err(), Some(Stop { kind, lane: None }));
    }
}

/// A byte address names a lane: a quarter of it, modulo 32. The highest of several senders wins; a lane without a
/// sender, or whose source is inactive, receives zero.
#[test]
fn lanes_push_to_lanes_and_pull_from_them() {
    let (push, pull) = ([0xDAC80008, 0x1400040A], [0xDACC0008, 0x1400040A]);
    for exec in [ALL, 0x0FF0_F00F] {
        let mut start = Group::new().at(|lane| 4 * (lane * 5 % 13) + lane % 4 + 128 * lane);
        start.wave.scalar[126] = exec;
        let target = |lane: usize| (start.address(lane) + 8) as usize / 4 % LANES;
        let (mut pushed, mut pulled) = (start.clone(), start.clone());
        for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
            let sender = (0..LANES).rev().find(|other| start.is_active(*other) && target(*other) == lane);
            pushed.wave.vector[RESULT].0[lane] = sender.map_or(0, |sender| start.register(4, sender));
            let source = target(lane);
            let value = if start.is_active(source) { start.register(4, source) } else { 0 };
            pulled.wave.vector[RESULT].0[lane] = value;
        }
        assert_groups_equal(&start.run(&push).unwrap(), &pushed, "ds_permute_b32");
        assert_groups_equal(&start.run(&pull).unwrap(), &pulled, "ds_bpermute_b32");
    }
}

/// The four ways of `ds_swizzle_b32` to name a lane's source (instruction set reference §9).
#[test]
fn swizzles_name_the_source_of_every_lane() {
    for lane in 0..32 {
        let check =
            |offset: u32, source: u32| assert_eq!(swizzle_source(offset, lane), source, "{offset:#x} {lane}");
        // Below 0x8000: and, or, exclusive or.
        for (and, or, xor) in
            [(31, 0, 0), (0, 5, 0), (31, 0, 16), (0x1C, 3, 0), (0x15, 0x0A, 0x1F), (7, 8, 3), (31, 9, 0)]
        {
            check(and | or << 5 | xor << 10, ((lane & and) | or) ^ xor);
        }
        // Within four lanes: two bits for each.
        for places in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 0, 1]] {
            let offset = (0..4).fold(0x8000, |offset, place| offset | places[place] << (2 * place));
            check(offset, lane / 4 * 4 + places[lane as usize % 4]);
        }
        // Rotations; bits of the mask stay.
        check(0xC000 | 1 << 5, (lane + 1) % 32);
        check(0xC000 | 31 << 5, (lane + 31) % 32);
        check(0xC000 | 1 << 10 | 3 << 5, (lane + 29) % 32);
        check(0xC000 | 3 << 5 | 0x18, lane / 8 * 8 + (lane + 3) % 8);
        check(0xDFFF, lane);
        // Butterflies: as many of the reversed bits as the mask has not, and what of the lane the mask has.
        for mask in 0..32_u32 {
            let is_set = |bit: u32| {
                let from = 4_u32.checked_sub(bit + mask.count_ones());
                lane & mask & 1 << bit != 0 || from.is_some_and(|from| lane & 1 << from != 0)
            };
            check(0xE000 | mask, (0..5).filter(|bit| is_set(*bit)).fold(0, |source, bit| source | 1 << bit));
        }
        // With a mask of high bits the bits below it are reversed.
        for (mask, bits) in [(0, 5), (0x10, 4), (0x18, 3), (0x1C, 2), (0x1E, 1), (0x1F, 0)] {
            let reversed =
                (0..bits).fold(0, |reversed, bit| reversed | (lane >> bit & 1) << (bits - 1 - bit));
            check(0xE000 | mask, lane & mask | reversed);
        }
    }
    // ds_swizzle_b32 v20, v4 offset:swizzle(SWAP,1); an inactive source is zero.
    let swap = [0xD8D4041F, 0x14000004];
    for exec in [ALL, 0xFFFF_7FFD] {
        let start = Group::new().only(exec);
        let mut expected = start.clone();
        for lane in (0..LANES).filter(|lane| start.is_active(*lane)) {
            let value = if start.is_active(lane ^ 1) { start.register(4, lane ^ 1) } else { 0 };
            expected.wave.vector[RESULT].0[lane] = value;
        }
        assert_groups_equal(&start.run(&swap).unwrap(), &expected, "ds_swizzle_b32");
    }
}
