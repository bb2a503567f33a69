//! Kernels of 64 lanes. The expected results are computed here, lane by lane.

use super::*;
use crate::shader::dispatch::DispatchError;
use crate::shader::fault::WaveFaultKind;
use wave64_code as code64;

/// RSRC1 of 64 vector registers in blocks of 4, denormals kept, WGP mode, MEM_ORDERED.
const RSRC1_WAVE64: u32 = 0x600F_000F;
/// Bytes of a row of 64 dwords.
const ROW_BYTES: usize = 256;

fn on_all(test: impl Fn(Device)) {
    configs().into_iter().for_each(|config| test(Device::new(config)));
}

fn wave64(dispatch: Dispatch) -> Dispatch {
    Dispatch { rsrc1: RSRC1_WAVE64, is_wave64: true, ..dispatch }
}

fn check_rows(out: &Buffer, expected: &[&dyn Fn(u32) -> u32]) {
    for (row, value) in expected.iter().enumerate() {
        let expected: Vec<u32> = (0..64).map(value).collect();
        assert_eq!(out.words(ROW_BYTES * row, 64), expected, "row {row}");
    }
}

#[test]
fn the_words_are_what_the_assembler_makes_of_the_sources() {
    for Code { name, source, words } in code64::ALL {
        let Some(assembled) = assembled::assemble_for(source, "-mattr=+wavefrontsize64,-wavefrontsize32")
        else {
            return;
        };
        assert_eq!(assembled, *words, "{name}");
    }
}

#[test]
fn masks_are_pairs_and_may_overwrite_what_the_comparison_reads() {
    on_all(|mut device| {
        let code = device.code(&code64::MASKS);
        let out = device.buffer(4096);
        device.run(wave64(device.dispatch(&code, 1, 64, &[out.va])));
        let carry = |lane: u32| 0x600_0000u32.wrapping_mul(lane).checked_add(0x8000_0000).is_none();
        check_rows(
            &out,
            &[
                &|lane| u32::from((21..=39).contains(&lane)),
                &|lane| u32::from(lane > 10),
                &|lane| u32::from(lane > 45),
                &|lane| 2 * lane + u32::from(carry(lane)),
                &|lane| if carry(lane) { 0 } else { u32::MAX },
            ],
        );
    });
}

#[test]
fn exec_is_a_pair_for_both_halves() {
    on_all(|mut device| {
        let code = device.code(&code64::EXEC);
        let out = device.buffer(4096);
        device.run(wave64(device.dispatch(&code, 1, 64, &[out.va])));
        let middle = |lane: u32| (21..=39).contains(&lane);
        check_rows(
            &out,
            &[
                &|lane| if middle(lane) { 2 } else { u32::from(lane < 40) },
                &|lane| if middle(lane) { 0xFFE0_0000 } else { 0 },
                &|lane| if middle(lane) { 0xFF } else { 0 },
                &|lane| if lane >= 38 { 0xFFFF_FFC0 } else { 0 },
            ],
        );
    });
}

#[test]
fn values_move_between_any_two_lanes() {
    on_all(|mut device| {
        let code = device.code(&code64::LANES);
        let out = device.buffer(4096);
        device.run(wave64(device.dispatch(&code, 1, 64, &[out.va])));
        let exec = 0x0000_FFFF_F0F0_F0F0u64;
        let active = |lane: u32| exec >> lane & 1 != 0;
        // The value sent by the one lane that sends to this lane.
        let sent = |lane: u32| if active(lane ^ 39) { 3 * (lane ^ 39) } else { 0 };
        let fetched = |lane: u32| {
            let source = ((lane ^ 39) + 1) % 64;
            if active(source) { 3 * source } else { 0 }
        };
        let mirrored = |lane: u32| 3 * (lane / 16 * 16 + 15 - lane % 16);
        check_rows(
            &out,
            &[
                &|lane| match lane {
                    63 => 3 * 50,
                    5 => 7,
                    _ => 3 * 45,
                },
                &|lane| if active(lane) { 3 * (lane ^ 32) } else { 7 },
                &|lane| (exec & ((1 << lane) - 1)).count_ones(),
                &|lane| if active(lane) { fetched(lane) } else { 7 },
                &|lane| if active(lane) { sent(lane) } else { 7 },
                &|lane| 3 * (lane ^ 31),
                &|lane| if (33..48).contains(&lane) { 3 * (lane - 1) } else { 7 },
                &|lane| if lane / 16 % 2 == 1 && lane % 16 < 8 { mirrored(lane) } else { 7 },
            ],
        );
    });
}

#[test]
fn branches_and_status_look_at_64_bits() {
    on_all(|mut device| {
        let code = device.code(&code64::BRANCHES);
        let out = device.buffer(4096);
        device.run(wave64(device.dispatch(&code, 1, 64, &[out.va])));
        check_rows(&out, &[&|lane| lane.max(1)]);
        // WAVE64 and EXECZ; 64 registers in granules of 4.
        assert_eq!(out.words(ROW_BYTES, 7), [1, 2, 2, 0, 1 << 29 | 1 << 9, 0, 15 << 12]);
    });
}

#[test]
fn lane_numbers_scratch_and_order_span_64_lanes() {
    on_all(|mut device| {
        let code = device.code(&code64::MEMORY);
        let [out, input, scratch] = [4096, 4096, 8192].map(|bytes| device.buffer(bytes));
        input.fill(0, (0..64).map(|at| 1000 + at));
        input.view.store_u32(256, 77);
        let mut dispatch = wave64(device.dispatch(&code, 1, 64, &[out.va, input.va]));
        // 2 KB of LDS; scratch of 16 bytes per lane for 32 waves per engine.
        dispatch.rsrc2 |= 1 | 4 << 15;
        (dispatch.scratch_base_va, dispatch.tmpring_size) = (scratch.va, 4 << 12 | 32);
        // Only one wave is resident, in the first slot.
        device.run(dispatch);
        let second = |lane: u32| 0x1000 + 5 * lane;
        check_rows(
            &out,
            &[
                &|lane| if lane % 2 == 0 { 5 * lane } else { second(lane) },
                &|lane| second(lane) >> 8,
                &|lane| 5 * (63 - lane),
                &|lane| 1000 + lane,
                &|lane| if lane == 0 { 77 } else { lane - 1 },
                &|lane| if lane == 0 { 0x400 } else { lane - 1 },
            ],
        );
        assert_eq!(input.view.load_u32(256), 63, "the last lane is the last");
        let expected: Vec<u32> = (0..64).map(|lane| 5 * lane).chain((0..64).map(second)).collect();
        assert_eq!(scratch.words(ROW_BYTES, 128), expected, "dwords of a lane are 256 bytes apart");
    });
}

#[test]
fn division_scales_back_by_the_mask_of_the_right_half() {
    on_all(|mut device| {
        let code = device.code(&code64::DIVIDE);
        let [x, y, out] = [4096; 3].map(|bytes| device.buffer(bytes));
        // Every other quotient of the high half is near overflow; only those are scaled.
        let values = |lane: u32| {
            let (far, part) = (lane > 32 && lane % 2 == 1, lane as f32 / 64.0);
            let (up, down) = if far { (2f32.powi(100), 2f32.powi(-20)) } else { (1.0, 1.0) };
            ((1.0 + part) * up, (2.0 - part) * down)
        };
        x.fill(0, (0..64).map(|lane| values(lane).0.to_bits()));
        y.fill(0, (0..64).map(|lane| values(lane).1.to_bits()));
        device.run(wave64(device.dispatch(&code, 1, 64, &[x.va, y.va, out.va])));
        check_rows(&out, &[&|lane| (values(lane).0 / values(lane).1).to_bits()]);
    });
}

#[test]
fn groups_have_waves_of_64_and_the_last_is_partial() {
    on_all(|mut device| {
        let code = device.code(&code64::GROUP_SUM);
        for (round, size) in [1u32, 32, 33, 64, 100, 257, 1024].into_iter().enumerate() {
            let [out, counts] = [4096; 2].map(|bytes| device.buffer(bytes));
            let before = device.counters.snapshot();
            let mut dispatch = wave64(device.dispatch(&code, 5, size, &[out.va, counts.va]));
            dispatch.rsrc2 |= 1 << 15;
            device.run(dispatch);
            assert_eq!(out.words(0, 6)[..], [&[size * (size - 1) / 2; 5][..], &[0]].concat(), "{round}");
            let expected: Vec<u32> = (0..17).map(|wave| 5 * size.saturating_sub(64 * wave).min(64)).collect();
            assert_eq!(counts.words(0, 17), expected, "size {size}");
            let waves = u64::from(size.div_ceil(64)) * 5;
            let instructions = device.counters.snapshot().wave_instructions - before.wave_instructions;
            let per_wave = code64::GROUP_SUM.source.lines().count() as u64;
            assert_eq!(instructions, waves * per_wave, "an instruction counts once");
        }
    });
}

#[test]
fn faults_name_the_lane_of_64_and_what_is_wave32_only() {
    on_all(|mut device| {
        let data = device.buffer(4096);
        let code = device.code(&code64::BAD_LANE);
        let fault = device.run_to_fault(wave64(device.dispatch(&code, 1, 64, &[data.va])));
        assert_eq!((fault.wave, fault.lane, fault.instruction_va), (0, Some(45), code.va + 24));
        assert!(matches!(fault.kind, WaveFaultKind::Page(page) if page.va == 16), "{}", fault.kind);
    });
    on_all(|mut device| {
        // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v2
        let words = [0xCA10_0101, 0x0000_0102];
        let code = device.code_words(&words);
        let fault = device.run_to_fault(wave64(device.dispatch(&code, 1, 64, &[])));
        let WaveFaultKind::DualInWave64(found) = fault.kind else { panic!("{}", fault.kind) };
        assert_eq!(found, [words[0], words[1], 0, 0]);
        let text = fault.kind.to_string();
        assert!(text.contains("VOPD [ca100101") && text.contains("does not exist in wave64"), "{text}");
    });
}

#[test]
fn a_register_takes_twice_the_room_of_wave32() {
    let mut device = Device::new(parallel(0));
    let code = device.code(&code64::GROUP_SUM);
    let [out, counts] = [4096; 2].map(|bytes| device.buffer(bytes));
    // 256 registers in WGP mode: four SIMDs of two waves each can hold 512 work-items.
    let dispatch = |size| {
        let dispatch = wave64(device.dispatch(&code, 1, size, &[out.va, counts.va]));
        Dispatch { rsrc1: 0x600F_003F, rsrc2: dispatch.rsrc2 | 1 << 15, ..dispatch }
    };
    device.run(dispatch(512));
    assert_eq!(out.words(0, 1), [512 * 511 / 2]);
    let refused = device.engine.submit(dispatch(576));
    assert!(matches!(refused, Err(DispatchError::FitsNowhere { waves: 9, .. })));
}

/// Programs of both sizes from the same words, one after the other: neither receives the other's.
#[test]
fn the_same_code_runs_at_both_sizes() {
    on_all(|mut device| {
        let code = device.code(&code64::BRANCHES);
        for _ in 0..3 {
            let out = device.buffer(4096);
            device.run(wave64(device.dispatch(&code, 1, 64, &[out.va])));
            check_rows(&out, &[&|lane| lane.max(1)]);
            let out = device.buffer(4096);
            device.run(device.dispatch(&code, 1, 32, &[out.va]));
            let expected: Vec<u32> = (0..32u32).map(|lane| lane.max(1)).collect();
            assert_eq!(out.words(0, 32), expected);
            // Bits in vcc_hi and exec_hi alone do not count in wave32; STATUS has VCCZ and EXECZ.
            assert_eq!(out.words(ROW_BYTES, 5), [0, 1, 1, 1, 1 << 10 | 1 << 9]);
        }
    });
}
