//! Waves that cannot continue stop and report their position.

use super::code;
use super::*;
use crate::memory::{Cause, Fault};
use crate::shader::dispatch::DispatchError;
use crate::shader::fault::WaveFaultKind;

fn on_all(test: impl Fn(Device)) {
    configs().into_iter().for_each(|config| test(Device::new(config)));
}

#[test]
fn a_page_fault_names_packet_instruction_wave_and_lane() {
    on_all(|mut device| {
        let code = device.code(&code::STORE_IDS);
        let out = device.buffer(4096);
        // 256 bytes per group: group 16 of one wave is the first beyond the page, groups 0..16 are not.
        let fault = device.run_to_fault(device.dispatch(&code, 17, 32, &[out.va]));
        assert_eq!((fault.origin.queue_id, fault.origin.packet_va), (1, 0x7000));
        assert_eq!(
            (fault.code_va, fault.workgroup, fault.wave, fault.lane),
            (code.va, [16, 0, 0], 0, Some(0))
        );
        // The store is the second to last instruction: three dwords before s_endpgm.
        assert_eq!(fault.instruction_va, code.va + 4 * (code::STORE_IDS.words.len() as u64 - 4));
        let expected = Fault { va: out.va + 4096, cause: Cause::NotPresent, access: Rights::WRITE };
        assert_eq!(fault.kind, WaveFaultKind::Page(expected));
        assert!(fault.to_string().contains("workgroup=16,0,0 wave=0 lane=0"), "{fault}");
    });
}

#[test]
fn stores_need_the_right_to_write_and_code_the_right_to_execute() {
    let mut device = Device::new(parallel(1));
    let code = device.code(&code::ONE_STORE);
    let read_only = device.map(4096, Rights::READ);
    let fault = device.run_to_fault(device.dispatch(&code, 1, 1, &[read_only.va]));
    assert!(
        matches!(fault.kind, WaveFaultKind::Page(Fault { cause: Cause::ReadOnly, va, .. }) if va == read_only.va)
    );
    let data = device.buffer(4096);
    data.fill(0, code::ONE_STORE.words.iter().copied());
    let fault = device.run_to_fault(device.dispatch(&data, 1, 1, &[data.va]));
    assert!(
        matches!(fault.kind, WaveFaultKind::Page(Fault { cause: Cause::NoExecute, va, .. }) if va == data.va)
    );
}

#[test]
fn a_wave_that_cannot_go_on_hangs_its_dispatch_only() {
    on_all(|mut device| {
        let good = device.code(&code::ONE_STORE);
        let out = device.buffer(4096);
        let bad = [0xBF80_0000, 0xC9FF_FFFF, 0xBFB0_0000];
        let bad = device.code_words(&bad);
        let fault = device.run_to_fault(device.dispatch(&bad, 1, 32, &[]));
        assert_eq!(fault.instruction_va, bad.va + 4);
        assert!(
            matches!(fault.kind, WaveFaultKind::UnknownInstruction(words) if words[..2] == [0xC9FF_FFFF, 0xBFB0_0000])
        );
        device.run(device.dispatch(&good, 1, 32, &[out.va]));
        assert_eq!(out.view.load_u32(0), 0x11);
        assert!(!device.engine.wait_idle(Instant::now()), "the hung dispatch is still there");
        assert!(device.engine.cancel_queue(1));
        assert!(device.engine.wait_idle(Instant::now() + DEADLINE));
    });
}

#[test]
fn other_stops() {
    let mut device = Device::new(parallel(0));
    let mut kind = |words: &[u32]| {
        let code = device.code_words(words);
        device.run_to_fault(device.dispatch(&code, 1, 1, &[])).kind
    };
    // s_nop 0, and then the padding.
    assert_eq!(kind(&[0xBF80_0000]), WaveFaultKind::PastEnd);
    // s_trap 2; s_sethalt 1.
    assert_eq!(kind(&[0xBF90_0002]), WaveFaultKind::Trap(2));
    assert_eq!(kind(&[0xBF82_0001]), WaveFaultKind::Halted);
    // v_mov_b32_e32 v64, v0 with 64 registers.
    assert_eq!(kind(&[0x7E80_0300]), WaveFaultKind::VectorRegister { register: 64, allocated: 64 });
    // s_barrier_init m0 (named barriers do not exist here).
    assert!(matches!(kind(&[0xBE80_517D]), WaveFaultKind::NotExecuted { .. }));
    // ds_store_b32 v1, v1 without LDS; v1 is undefined, hence far outside.
    let outside = kind(&[0xD834_0000, 0x0000_0101]);
    assert!(matches!(outside, WaveFaultKind::LdsOutOfRange { width: 4, allocated: 0, .. }), "{outside}");
    // s_setpc_b64 s[6:7], undefined: odd.
    assert!(matches!(kind(&[0xBE80_4806]), WaveFaultKind::MisalignedJump(_)));
    // scratch_load_b32 v1, off, off without scratch.
    assert_eq!(kind(&[0xED05_007C, 1, 0]), WaveFaultKind::Scratch { offset: 0, allocated: 0 });
    // v_mov_b32_e32 v1, 1; v_mov_b32_e32 v2, 0; global_atomic_add_u32 v[1:2], v2, off.
    let misaligned = kind(&[0x7E02_0281, 0x7E04_0280, 0xEE0D_407C, 0x0100_0000, 0x0000_0001]);
    assert_eq!(misaligned, WaveFaultKind::Misaligned { va: 1, width: 4 });
    let code = device.code(&code::UNEVEN_BARRIER);
    let fault = device.run_to_fault(device.dispatch(&code, 1, 64, &[]));
    assert_eq!((fault.kind, fault.wave), (WaveFaultKind::BarrierNeverCompletes, 1));
}

#[test]
fn what_cannot_be_launched_is_refused() {
    let mut device = Device::new(parallel(0));
    let code = device.code(&code::ENDLESS);
    let plain = device.dispatch(&code, 1, 32, &[]);
    let submit = |dispatch: Dispatch| device.engine.submit(dispatch).unwrap_err();
    assert_eq!(submit(Dispatch { rsrc1: 63, ..plain.clone() }), DispatchError::VectorRegisters(512));
    assert!(matches!(
        submit(Dispatch { group: [0, 1, 1], ..plain.clone() }),
        DispatchError::GroupSize { .. }
    ));
    assert!(matches!(submit(Dispatch { rsrc2: 1, ..plain.clone() }), DispatchError::Scratch(0)));
    // 32 waves of 256 registers: a WGP can hold 20.
    let wide =
        Dispatch { rsrc1: 0x2000_001F, group: [1024, 1, 1], last_group: [1024, 1, 1], ..plain.clone() };
    assert!(matches!(submit(wide), DispatchError::FitsNowhere { waves: 32, .. }));
    let empty = device.submit(Dispatch { count: [5, 0, 5], ..plain });
    assert!(empty.is_done());
}

/// TMPRING_SIZE.WAVES counts the waves of one of four shader engines (hardware reference §5).
#[test]
fn a_group_has_no_more_waves_than_there_is_scratch_for() {
    let mut device = Device::new(parallel(0));
    let code = device.code(&code::ENDLESS);
    for (waves, limit) in [(1, 4), (2, 8), (5, 20)] {
        let tmpring_size = 1 << 12 | waves;
        let submit = |count: u32| {
            let dispatch = device.dispatch(&code, 1, 32 * count, &[]);
            let ticket = device.engine.submit(Dispatch { rsrc2: RSRC2 | 1, tmpring_size, ..dispatch });
            ticket.map(|ticket| ticket.is_done())
        };
        assert_eq!(submit(limit), Ok(false));
        assert_eq!(submit(limit + 1), Err(DispatchError::Scratch(tmpring_size)));
    }
    assert!(device.engine.cancel_all());
}

/// A wave has 1024 bytes: 32 of each of its lanes, or 16.
#[test]
fn a_lane_has_its_share_of_the_scratch_of_its_wave() {
    on_all(|mut device| {
        let scratch = device.buffer(4 * 1024);
        for (is_wave64, share) in [(false, 32), (true, 16)] {
            // v_mov_b32 v1, 7; scratch_store_b32 off, v1, off offset:...; s_endpgm
            let [last, beyond] = [share - 4, share].map(|offset: u32| {
                device.code_words(&[0x7E02_0287, 0xED06_807C, 0x0080_0000, offset << 8, 0xBFB0_0000])
            });
            let dispatch = |code: &Buffer| Dispatch {
                rsrc2: RSRC2 | 1,
                tmpring_size: 4 << 12 | 1,
                scratch_base_va: scratch.va,
                is_wave64,
                ..device.dispatch(code, 1, 32, &[])
            };
            device.run(dispatch(&last));
            let kind = WaveFaultKind::Scratch { offset: u64::from(share), allocated: share };
            assert_eq!(device.run_to_fault(dispatch(&beyond)).kind, kind);
            assert!(device.engine.cancel_all());
        }
    });
}

#[test]
fn endless_waves_are_cancelled() {
    on_all(|mut device| {
        let (endless, good) = (device.code(&code::ENDLESS), device.code(&code::ONE_STORE));
        let out = device.buffer(4096);
        let tickets: Vec<DispatchTicket> =
            (0..3).map(|_| device.submit(device.dispatch(&endless, 500, 64, &[]))).collect();
        (0..50).for_each(|_| _ = device.engine.help());
        let mut other = device.dispatch(&good, 1, 32, &[out.va]);
        other.origin.queue_id = 2;
        let other = device.submit(other);
        assert!(device.engine.cancel_queue(1));
        device.until("the other queue is done", || other.is_done());
        assert!(tickets.iter().all(|ticket| ticket.is_cancelled() && !ticket.is_done()));
        assert!(device.engine.wait_idle(Instant::now() + DEADLINE));
        // Their resources are free again.
        device.run(device.dispatch(&good, 4000, 64, &[out.va]));
    });
}
