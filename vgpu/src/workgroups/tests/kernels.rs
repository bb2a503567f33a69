//! Kernels compute the expected results.

use super::code::{self, Code};
use super::*;

fn on_all(test: impl Fn(Device)) {
    configs().into_iter().for_each(|config| test(Device::new(config)));
}

#[test]
fn vectors_are_added_and_the_last_group_is_cut_by_the_kernel() {
    on_all(|mut device| {
        let code = device.code(&code::ADD_VECTORS);
        let count = 5000;
        let buffers = [0, 1, 2].map(|_| device.buffer(4 * 5120));
        let arguments = device.buffer(4096);
        for index in 0..5120 {
            buffers[0].view.store_u32(4 * index, (index as f32).to_bits());
            buffers[1].view.store_u32(4 * index, (0.5f32 * index as f32).to_bits());
        }
        for (index, buffer) in buffers.iter().enumerate() {
            arguments.view.store_u64(8 * index, buffer.va);
        }
        arguments.view.store_u32(24, count);
        device.run(device.dispatch(&code, 20, 256, &[arguments.va]));
        for index in 0..5120u32 {
            let expected = if index < count { 1.5 * index as f32 } else { 0.0 };
            assert_eq!(f32::from_bits(buffers[2].view.load_u32(4 * index as usize)), expected, "{index}");
        }
        let counts = device.counters.snapshot();
        assert_eq!((counts.dispatches, counts.workgroups, counts.waves), (1, 20, 160));
        // 156 waves run all 16 instructions; one of them is partial but not empty; the last three branch over
        // seven.
        assert_eq!(counts.wave_instructions, 157 * 16 + 3 * 9);
    });
}

#[test]
fn a_tree_in_lds_with_barriers_sums() {
    on_all(|mut device| {
        let code = device.code(&code::REDUCE_IN_LDS);
        let out = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 37, 256, &[out.va]);
        dispatch.rsrc2 |= 2 << 15;
        device.run(dispatch);
        let expected: u32 = (0..256).map(|id| id * id).sum();
        assert_eq!(out.words(0, 37), [expected; 37]);
    });
}

#[test]
fn every_lane_of_every_group_gets_its_own_ticket() {
    on_all(|mut device| {
        let code = device.code(&code::TAKE_TICKETS);
        let out = device.buffer(64 + 4 * 64 * 128);
        device.run(device.dispatch(&code, 64, 128, &[out.va]));
        assert_eq!(out.view.load_u32(0), 64 * 128);
        assert_eq!(out.words(64, 64 * 128), vec![1; 64 * 128]);
    });
}

#[test]
fn ids_of_groups_and_work_items_are_those_of_the_dispatch() {
    on_all(|mut device| {
        let code = device.code(&code::STORE_IDS);
        let out = device.buffer(8 * 256);
        let mut dispatch = device.dispatch(&code, 1, 32, &[out.va]);
        (dispatch.first, dispatch.count) = ([5, 1, 2], [3, 1, 1]);
        (dispatch.group, dispatch.last_group) = ([4, 4, 2], [3, 4, 2]);
        device.run(dispatch);
        for group in 5..8u32 {
            let width = if group == 7 { 3 } else { 4 };
            for item in 0..8 * width {
                let (x, y, z) = (item % width, item / width % 4, item / width / 4);
                // Only X determines the address: in a wave, the last lane with that X wins, which is the one with
                // the highest y, z.
                if y == 3 && z == 1 {
                    let at = (256 * group + 8 * x) as usize;
                    let found = out.words(at, 2);
                    assert_eq!(found, [x | y << 10 | z << 20, (1 | 2 << 16) << 8 | group]);
                }
            }
        }
        let beyond = out.words(256 * 7 + 8 * 3, 1);
        assert_eq!(beyond, [0], "the last group is partial");
    });
}

/// The bytes of the source of [`code::WIDTHS`].
fn source_byte(at: usize) -> u8 {
    (at * 37 + 129) as u8
}

fn source_word(at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| source_byte(at + byte)))
}

#[test]
fn memory_is_accessed_at_every_width_and_alignment() {
    on_all(|mut device| {
        let code = device.code(&code::WIDTHS);
        let (source, out) = (device.buffer(4096), device.buffer(8192));
        (0..4096).for_each(|at| source.view.store_u8(at, source_byte(at)));
        device.run(device.dispatch(&code, 1, 32, &[source.va, out.va]));
        for lane in 0..32 {
            let at = 4 * lane;
            let half = |at: usize| source_word(at) & 0xFFFF;
            let signed = |at: usize| source_byte(at) as i8 as u32;
            let expected = [
                source_byte(at + 1).into(),
                signed(at + 2),
                half(at + 2),
                half(at + 1) as u16 as i16 as u32,
                0x1111_0000 | u32::from(source_byte(at)),
                signed(at) << 16 | 0x2222,
                0x1111_0000 | half(at),
                half(at) << 16 | 0x2222,
                source_word(at + 3),
                source_word(at + 4),
                source_word(at + 8),
            ];
            for (row, expected) in expected.into_iter().enumerate() {
                assert_eq!(out.view.load_u32(256 * row + at), expected, "lane {lane} row {row}");
            }
            let wide: Vec<u32> = (0..4).map(|word| source_word(at + 4 * word)).collect();
            assert_eq!(out.words(2816 + 16 * lane, 4), wide);
            let byte = |offset: usize| out.view.load_u8(at + offset);
            let bytes = wide[0].to_le_bytes();
            let later = |offset: usize, own: u8| if offset < 3584 { own } else { byte(offset) };
            assert_eq!(byte(3328), later(3328, bytes[0]), "lane {lane}");
            assert_eq!(byte(3329), bytes[2]);
            assert_eq!((byte(3330), byte(3331)), (bytes[0], bytes[1]));
            assert_eq!((byte(3585), byte(3586)), (bytes[2], bytes[3]), "an unaligned half");
            assert_eq!(out.words(3840 + 16 * lane, 3), wide[..3]);
        }
    });
}

#[test]
fn scalar_loads_of_every_width() {
    on_all(|mut device| {
        let code = device.code(&code::SCALAR_LOADS);
        let (source, out) = (device.buffer(4096), device.buffer(4096));
        (0..4096).for_each(|at| source.view.store_u8(at, source_byte(at)));
        device.run(device.dispatch(&code, 1, 1, &[source.va, out.va]));
        let expected = [
            source_word(4),
            source_word(12),
            source_word(24),
            source_word(44),
            source_word(60),
            source_word(124),
            u32::from(source_byte(3)),
            source_byte(3) as i8 as u32,
            source_word(2) & 0xFFFF,
            source_word(2) as u16 as i16 as u32,
            source_word(0x14), // 0x10 + 7, low bits ignored
            source_word(0x14),
            0, // beyond the 24 bytes of the buffer
            0,
        ];
        assert_eq!(out.words(0, 14), expected);
    });
}

#[test]
fn calls_leave_the_program_and_come_back() {
    on_all(|mut device| {
        let (code, callee) = (device.code(&code::FAR_CALLS), device.code(&code::CALLEE));
        let out = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 3, 32, &[out.va, 0, callee.va]);
        dispatch.count = [3, 2, 1];
        device.run(dispatch);
        // The address after s_getpc: v_mov e32, two s_swappc, s_nop, s_call, s_getpc are one dword each.
        assert_eq!(out.words(0, 2), [102, (code.va + 24) as u32]);
    });
}

#[test]
fn the_private_segment_is_each_lane_its_own() {
    on_all(|mut device| {
        let code = device.code(&code::SCRATCH);
        let (scratch, out) = (device.buffer(64 * 2048), device.buffer(64 * 64 * 16));
        let mut dispatch = device.dispatch(&code, 64, 64, &[out.va]);
        dispatch.rsrc2 |= 1;
        dispatch.scratch_base_va = scratch.va;
        // 16 waves per engine, 2048 bytes per wave: 64 bytes per lane.
        dispatch.tmpring_size = 8 << 12 | 16;
        device.run(dispatch);
        for item in 0..64 * 64u32 {
            let words = [item, 0x1000 + item, 0x2000 + item, 0x3000 + item];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            // At 4 + 16 is the second word; at 9 + 16 a half that straddles nothing; at 24 the third word.
            let half = u32::from(u16::from_le_bytes([bytes[9], bytes[10]]));
            let found = out.words(16 * item as usize, 4);
            assert_eq!(found, [words[1], words[2], half, words[2]], "work-item {item}");
        }
    });
}

#[test]
fn lds_and_cross_lane_forms() {
    on_all(|mut device| {
        let code = device.code(&code::LDS_FORMS);
        let out = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 1, 32, &[out.va]);
        dispatch.rsrc2 |= 4 << 15;
        device.run(dispatch);
        for lane in 0..32u32 {
            let words = [lane, 0x100 + lane, 0x200 + lane, lane.wrapping_sub(0x7D00)];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let word =
                |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            // v14: the sign-extended half, then a byte in its high half.
            let v14 = (words[3] & 0xFFFF) | u32::from(bytes[4]) << 16;
            // Stores 64 elements apart overlap those of other lanes: lane + 16 stored its v2 16 bytes * 16 on.
            let found = out.words(64 * lane as usize, 12);
            let (v15, v16, v17) = (found[5], found[6], found[7]);
            assert_eq!(found[..5], [words[1], words[3], word(6), word(10), v14], "lane {lane}");
            assert_eq!((v15, v16), (lane + overlap(lane), 0x100 + lane), "lane {lane}");
            assert_eq!((v17, found[8]), (lane, lane + 1), "flat reads what the atomic left");
            assert_eq!(found[9..], [31 - lane, 0x100 + (31 - lane), lane ^ 4], "lane {lane}");
        }
    });
}

/// `ds_store_2addr` executes its second store after the first: at 512 + 16 lane all lanes store v2; at 768 + 16
/// lane all lanes store v3, which for lane l is where the first store of lane l + 16 went.
fn overlap(lane: u32) -> u32 {
    if lane >= 16 { 0x100 - 16 } else { 0 }
}

#[test]
fn buffers_are_clipped() {
    on_all(|mut device| {
        let code = device.code(&code::BUFFER);
        let (source, out) = (device.buffer(4096), device.buffer(4096));
        (0..64).for_each(|word| source.view.store_u32(4 * word, 100 + word as u32));
        let mut dispatch = device.dispatch(&code, 1, 32, &[out.va, 0, source.va]);
        // Base, no stride, 64 records of one byte, raw.
        (dispatch.user_data[6], dispatch.user_data[7]) = (64, 0x3000_0000);
        dispatch.rsrc2 = 8 << 1;
        device.run(dispatch);
        for lane in 0..32u32 {
            let first = if lane < 16 { 100 + lane } else { 0 };
            assert_eq!(out.words(16 * lane as usize, 3), [first, 102, 103]);
        }
        let words = source.words(0, 64);
        assert_eq!(words[7..16], [107, 7, 7, 7, 7, 7, 7, 7, 7], "stored at 32.. within 64 bytes");
        assert_eq!(words[16..20], [116, 117, 118, 119], "dropped beyond");
    });
}

#[test]
fn the_constants_are_what_the_assembler_makes_of_the_sources() {
    for Code { name, source, words } in code::ALL.iter().chain(forms_code::ALL) {
        let Some(assembled) = assembled::assemble(source) else { return };
        assert_eq!(assembled, *words, "{name}");
    }
}
