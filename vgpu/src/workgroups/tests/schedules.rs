//! Scheduling: residency, preemption, order, code that changes.

use super::code;
use super::*;
use crate::simd::Level;

#[test]
fn resident_groups_that_wait_for_each_other_make_progress() {
    for config in [parallel(2), parallel(1), parallel(0), deterministic(3), deterministic(4)] {
        let mut device = Device::new(config);
        let code = device.code(&code::PING_PONG);
        let word = device.buffer(4096);
        device.run(device.dispatch(&code, 2, 32, &[word.va]));
        assert_eq!(word.view.load_u32(0), 200, "{config:?}");
    }
}

#[test]
fn dispatches_of_two_queues_run_side_by_side() {
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code(&code::PING_PONG);
        let word = device.buffer(4096);
        // One group in each of two dispatches; the second has id 1.
        let first = device.dispatch(&code, 1, 32, &[word.va]);
        let mut second = first.clone();
        second.first = [1, 0, 0];
        second.origin.queue_id = 2;
        let (first, second) = (device.submit(first), device.submit(second));
        device.until("both are done", || first.is_done() && second.is_done());
        assert_eq!(word.view.load_u32(0), 200);
    }
}

#[test]
fn more_groups_than_fit_all_run() {
    for config in configs() {
        // One compute unit: 32 waves; groups of 8 waves and much LDS, so one at a time.
        let mut device = Device::new(Config { compute_units: 1, ..config });
        let code = device.code(&code::SLOW_COUNT);
        let word = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 300, 256, &[word.va, 20]);
        dispatch.rsrc1 &= !(1 << 29);
        dispatch.rsrc2 |= 80 << 15;
        device.run(dispatch);
        assert_eq!(word.view.load_u32(0), 300 * 8);
        let counts = device.counters.snapshot();
        assert_eq!((counts.workgroups, counts.waves), (300, 2400));
        assert_eq!(counts.wave_instructions, 2400 * (3 * 20 + 5));
    }
}

#[test]
fn long_waves_are_preempted_and_go_on() {
    for config in [parallel(1), parallel(0), deterministic(5)] {
        let mut device = Device::new(config);
        let code = device.code(&code::SLOW_COUNT);
        let word = device.buffer(4096);
        device.run(device.dispatch(&code, 5, 96, &[word.va, 40_000]));
        assert_eq!(word.view.load_u32(0), 15);
        assert_eq!(device.counters.snapshot().wave_instructions, 15 * (3 * 40_000 + 5));
    }
}

#[test]
fn dispatches_of_one_queue_do_not_wait_for_each_other() {
    let mut device = Device::new(parallel(1));
    let code = device.code(&code::SLOW_COUNT);
    let word = device.buffer(4096);
    let tickets: Vec<DispatchTicket> =
        (0..200).map(|_| device.submit(device.dispatch(&code, 3, 64, &[word.va, 3]))).collect();
    device.until("all are done", || tickets.iter().all(DispatchTicket::is_done));
    assert_eq!(word.view.load_u32(0), 200 * 6);
    assert!(device.engine.wait_idle(Instant::now()));
}

#[test]
fn changed_code_is_seen_after_an_invalidation() {
    let mut device = Device::new(parallel(1));
    let code = device.code(&code::ONE_STORE);
    let out = device.buffer(4096);
    let run = |expected: u32| {
        device.run(device.dispatch(&code, 1, 32, &[out.va]));
        assert_eq!(out.view.load_u32(0), expected);
    };
    run(0x11);
    // v_mov_b32_e32 v1, 0x12 (inline constant 18).
    let at = code::ONE_STORE.words.iter().position(|word| *word == 0x7E02_0291).unwrap();
    code.view.store_u32(4 * at, 0x7E02_0292);
    run(0x11);
    device.engine.invalidate_instruction_cache();
    run(0x12);
    // Nor is anything left of a space that is forgotten.
    code.view.store_u32(4 * at, 0x7E02_0293);
    run(0x12);
    device.engine.forget_address_space(device.space.id());
    run(0x13);
}

#[test]
fn a_wave_sees_code_that_it_wrote_after_an_icache_invalidation() {
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code(&code::REFETCH);
        let out = device.buffer(4096);
        // v_mov_b32_e32 v3, 1 → 2.
        let at = code::REFETCH.words.iter().position(|word| *word == 0x7E06_0281).unwrap();
        let patched = code.va + 4 * at as u64;
        device.run(device.dispatch(&code, 1, 32, &[patched, 0x7E06_0282, out.va]));
        assert_eq!(out.view.load_u32(0), 2);
    }
}

#[test]
fn one_seed_gives_one_history() {
    let history = |seed| {
        let mut device = Device::new(deterministic(seed));
        let code = device.code(&code::TAKE_TICKETS);
        let out = device.buffer(64 + 4 * 64 * 32);
        let clock = device.engine.gpu_clock();
        device.run(device.dispatch(&code, 16, 96, &[out.va]));
        // The kernel does not record who took which ticket, so the clock of instructions and a second kernel's race
        // are compared.
        let race = device.code(&code::PING_PONG);
        let word = device.buffer(4096);
        device.run(device.dispatch(&race, 2, 32, &[word.va]));
        (device.engine.gpu_clock() - clock, device.counters.snapshot())
    };
    assert_eq!(history(11), history(11));
    assert_ne!(
        history(11).1.wave_instructions,
        history(12).1.wave_instructions,
        "spinning depends on the order"
    );
}

#[test]
fn results_are_the_same_bits_at_every_vector_level() {
    let result = |level| {
        let mut device = Device::new(parallel(1));
        device.engine = ShaderEngine::with_level(&parallel(1), device.counters.clone(), level).unwrap();
        let code = device.code(&code::WIDTHS);
        let (source, out) = (device.buffer(4096), device.buffer(8192));
        (0..4096).for_each(|at| source.view.store_u8(at, (at * 89 + 7) as u8));
        device.run(device.dispatch(&code, 1, 23, &[source.va, out.va]));
        out.words(0, 2048)
    };
    let results: Vec<Vec<u32>> = Level::supported().into_iter().map(result).collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn unmapped_memory_is_given_back_when_the_engine_is_idle() {
    let mut device = Device::new(parallel(2));
    let code = device.code(&code::ONE_STORE);
    let file = MemoryFile::new("watched", 4096).unwrap();
    let mapping = Arc::new(file.map(0, 4096, Protection::ReadWrite, None).unwrap());
    let watch = Arc::downgrade(&mapping);
    let va = GpuVa(0x8000_0000);
    device.space.map(va, ByteLen(4096), Rights::READ | Rights::WRITE, mapping).unwrap();
    device.run(device.dispatch(&code, 64, 32, &[va.0]));
    device.space.unmap(va, ByteLen(4096)).unwrap();
    device.until("nobody refers to the mapping", || watch.strong_count() == 0);
}

#[test]
fn a_cancelled_queue_takes_its_own_dispatches_with_it_and_no_other() {
    for config in configs() {
        let mut device = Device::new(config);
        let (endless, store) = (device.code(&code::ENDLESS), device.code(&code::ONE_STORE));
        let out = device.buffer(4096);
        let of_queue = |queue_id: u32, code: &Buffer| {
            let mut dispatch = device.dispatch(code, 3, 64, &[out.va]);
            dispatch.origin.queue_id = queue_id;
            device.submit(dispatch)
        };
        let tickets =
            [of_queue(5, &endless), of_queue(5, &store), of_queue(6, &endless), of_queue(7, &store)];
        assert_eq!(tickets.each_ref().map(DispatchTicket::queue_id), [5, 5, 6, 7]);
        let mut ids = tickets.each_ref().map(DispatchTicket::id).to_vec();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
        device.until("the last is done", || tickets[3].is_done());
        assert!(device.engine.cancel_queue(5));
        let cancelled = tickets.each_ref().map(DispatchTicket::is_cancelled);
        assert!(cancelled[0] && !cancelled[2] && !cancelled[3], "{cancelled:?}");
        // What was done before is done; what was not never is.
        assert_eq!(tickets[1].is_cancelled(), !tickets[1].is_done());
        assert!(!tickets[0].is_done() && !device.engine.wait_idle(Instant::now()));
        assert!(device.engine.cancel_all() && tickets[2].is_cancelled());
        assert!(device.engine.wait_idle(Instant::now()) && !device.engine.help());
        // Everything is free again.
        device.run(device.dispatch(&store, 64, 1024, &[out.va]));
    }
}

#[test]
fn a_dispatch_without_groups_is_done_at_once() {
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code(&code::ONE_STORE);
        let ticket = device.submit(device.dispatch(&code, 0, 64, &[0]));
        assert!(ticket.is_done() && !ticket.is_cancelled() && device.engine.wait_idle(Instant::now()));
        let counts = device.counters.snapshot();
        assert_eq!((counts.dispatches, counts.workgroups, counts.waves), (1, 0, 0));
    }
}

#[test]
fn faults_are_taken_oldest_first_and_not_all_are_kept() {
    let mut device = Device::new(parallel(0));
    let code = device.code(&code::ONE_STORE);
    device.submit(device.dispatch(&code, 300, 32, &[0]));
    while device.engine.help() {}
    let faults: Vec<u32> = std::iter::from_fn(|| {
        let fault = device.engine.has_fault().then(|| device.engine.take_fault().unwrap());
        fault.map(|fault| fault.workgroup[0])
    })
    .collect();
    assert_eq!(faults, (0..256).collect::<Vec<u32>>());
    assert_eq!(device.engine.take_fault(), None);
}

#[test]
fn an_engine_tells_how_many_threads_it_has() {
    for (config, threads) in [(parallel(2), 2), (parallel(0), 0), (deterministic(1), 0)] {
        let device = Device::new(config);
        assert_eq!(format!("{:?}", device.engine), format!("ShaderEngine {{ threads: {threads}, .. }}"));
    }
}

#[test]
fn an_engine_that_is_dropped_ends_its_threads() {
    let mut device = Device::new(parallel(2));
    let endless = device.code(&code::ENDLESS);
    device.submit(device.dispatch(&endless, 3, 64, &[]));
    device.engine.help();
    let shared = Arc::downgrade(&device.engine.shared);
    drop(device);
    assert_eq!(shared.strong_count(), 0, "no thread has it");
}

#[test]
fn threads_run_groups_without_help() {
    let mut device = Device::new(parallel(2));
    let code = device.code(&code::ONE_STORE);
    let out = device.buffer(4096);
    let ticket = device.submit(device.dispatch(&code, 3, 32, &[out.va]));
    let deadline = Instant::now() + DEADLINE;
    while !ticket.is_done() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert_eq!(out.view.load_u32(0), 0x11);
}

#[test]
fn a_ticket_tells_which_program_it_is_for() {
    let mut device = Device::new(parallel(0));
    let code = device.code(&code::ONE_STORE);
    let text = format!("{:?}", device.submit(device.dispatch(&code, 1, 32, &[0])));
    assert!(text.contains(&format!("program: Program({:#x}, 4 operations)", code.va)), "{text}");
}

/// A group of sleeping waves gives up its turn at once; one that works keeps it for many of its waves' turns.
#[test]
fn a_group_that_only_sleeps_yields_to_others() {
    let mut device = Device::new(parallel(0));
    // s_sleep 1, s_branch -2; s_branch -1
    let [sleeping, working] =
        [&[0xBF83_0001, 0xBFA0_FFFE][..], &[0xBFA0_FFFF]].map(|words| device.code_words(words));
    let executed = |device: &Device, code: &Buffer, runs: usize| {
        let before = device.counters.snapshot().wave_instructions;
        device.submit(device.dispatch(code, 1, 96, &[]));
        (0..runs).for_each(|_| assert!(device.engine.help()));
        assert!(device.engine.cancel_all());
        device.counters.snapshot().wave_instructions - before
    };
    // Three waves: first each sleeps, then each branches and sleeps.
    assert_eq!(executed(&device, &sleeping, 1), 3);
    assert_eq!(executed(&device, &sleeping, 2), 3 + 6);
    let many = executed(&device, &working, 1);
    assert!(many > 3 * 4096 && many.is_multiple_of(4096), "{many}");
}

/// The last group of a dispatch may be smaller: its barrier is for the waves that it has.
#[test]
fn each_group_has_a_barrier_for_its_own_waves() {
    for config in configs() {
        let mut device = Device::new(config);
        // s_barrier_signal -1; s_barrier_wait -1; s_get_barrier_state s4, -1; v_mov_b32 v1, s4;
        // s_lshl_b32 s5, ttmp9, 2; v_mov_b32 v2, s5; global_store_b32 v2, v1, s[0:1]; s_endpgm
        let words = [
            0xBE80_4EC1,
            0xBF94_FFFF,
            0xBE84_50C1,
            0x7E02_0204,
            0x8405_8275,
            0x7E04_0205,
            0xEE06_8000,
            0x0080_0000,
            0x0000_0002,
            0xBFB0_0000,
        ];
        let (code, out) = (device.code_words(&words), device.buffer(4096));
        let mut dispatch = device.dispatch(&code, 3, 32, &[out.va]);
        dispatch.group = [32, 1, 1];
        device.run(dispatch.clone());
        // A group of one wave: a member, and no signal that is left.
        assert_eq!(out.words(0, 3), [0x11; 3]);
        dispatch.group = [1024, 1, 1];
        dispatch.last_group = [70, 1, 1];
        device.run(dispatch);
        // The waves that have ended before the last one looks are no members.
        let members = out.words(0, 3).into_iter().map(|state| state >> 4 & 0x7F).collect::<Vec<_>>();
        assert!(members[..2].iter().all(|count| (1..=32).contains(count)), "{members:?}");
        assert!((1..=3).contains(&members[2]), "{members:?}");
    }
}
