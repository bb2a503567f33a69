//! Waves that never make progress: the checking mode reports them, and every mode reports their positions.

use super::code;
use super::*;
use crate::check::circles::SeenLoad;
use crate::config::Inspection;
use crate::shader::fault::WaveFaultKind;

fn checked(seed: u64) -> Config {
    let inspection = Inspection { check: true, ..Inspection::default() };
    Config { inspection, seed, ..Config::default() }
}

/// A device whose host declares itself silent.
fn silent(config: Config) -> Device {
    let device = Device::new(config);
    device.engine.inspection().unwrap().silence_host(true);
    device
}

fn fault_of(device: &Device) -> WaveFault {
    device.until("a fault is told", || device.engine.has_fault());
    device.engine.take_fault().unwrap()
}

/// The list of waves, without its last line if that counts omitted ones.
fn positions(device: &Device) -> Vec<serde_json::Value> {
    let text = device.engine.waves_text();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|line| line.get("wave").is_some()).collect()
}

#[test]
fn a_wait_for_a_word_that_nobody_stores_is_told_with_what_it_looks_at() {
    for seed in [1, 2] {
        let mut device = silent(checked(seed));
        let code = device.code(&code::WAIT_FOR_WORD);
        let word = device.buffer(4096);
        device.submit(device.dispatch(&code, 3, 64, &[word.va]));
        let fault = fault_of(&device);
        let kind = WaveFaultKind::GoesInCircles { circling_waves: 6, waiting_waves: 0 };
        assert_eq!(fault.kind, kind);
        let findings = device.engine.findings_text();
        assert_eq!(findings.matches("\"rule\":\"progress\"").count(), 1, "{findings}");
        let waves = positions(&device);
        assert_eq!(waves.len(), 6, "{waves:?}");
        let load = SeenLoad { pc: code.va + 4, address: word.va, is_lds: false, value: 0 };
        for wave in &waves {
            assert_eq!((&wave["state"], &wave["loads"]), (&"running".into(), &serde_json::json!([load])));
        }
    }
}

/// A turn rarely ends by chance at one given instruction of a long loop, and the turns of many waves never all do.
#[test]
fn many_waves_in_a_long_loop_are_told_at_once() {
    let mut device = silent(checked(2));
    let [loop_words, rest] = code::WAIT_FOR_WORD.words.split_at(8).into();
    let nops = 100;
    // The branch back to the loop, and the end.
    let rest = [rest[0] - nops, rest[1]];
    let words = [loop_words, &[0xBF80_0000; 100], &rest].concat();
    let code = device.code_words(&words);
    let word = device.buffer(4096);
    device.submit(device.dispatch(&code, 32, 512, &[word.va]));
    let kind = WaveFaultKind::GoesInCircles { circling_waves: 512, waiting_waves: 0 };
    assert_eq!(fault_of(&device).kind, kind);
    // A million before the first search, a turn to begin in, and two rounds.
    let instructions = device.counters.snapshot().wave_instructions;
    assert!(instructions < 3_000_000, "{instructions}");
}

/// A wave comes by the place where its circle began in every round of the delay, but only once as it was.
#[test]
fn many_waves_with_a_delay_in_their_loop_are_told_at_once() {
    let mut device = silent(checked(2));
    let [loop_words, rest] = code::WAIT_FOR_WORD.words.split_at(8).into();
    let delay = [
        0xB008_03E8, // s_movk_i32 s8, 1000
        0x8188_8108, // s_sub_co_i32 s8, s8, 1
        0xBF07_8008, // s_cmp_lg_u32 s8, 0
        0xBFA2_FFFD, // s_cbranch_scc1, back to the subtraction
    ];
    let rest = [rest[0] - delay.len() as u32, rest[1]];
    let words = [&loop_words[..1], &delay, &loop_words[1..], &rest].concat();
    let code = device.code_words(&words);
    let word = device.buffer(4096);
    device.submit(device.dispatch(&code, 32, 32, &[word.va]));
    let kind = WaveFaultKind::GoesInCircles { circling_waves: 32, waiting_waves: 0 };
    assert_eq!(fault_of(&device).kind, kind);
    let instructions = device.counters.snapshot().wave_instructions;
    assert!(instructions < 4_000_000, "{instructions}");
}

/// The waves count, so they are in no circle; other groups might store the word if they fitted on the device.
#[test]
fn a_wait_for_groups_that_have_no_room_is_told() {
    let mut device = silent(Config { compute_units: 2, ..checked(5) });
    let [loop_words, rest] = code::WAIT_FOR_WORD.words.split_at(8).into();
    let count = 0x4A04_0481; // v_add_nc_u32_e32 v2, 1, v2
    let words = [loop_words, &[count, rest[0] - 1, rest[1]]].concat();
    let code = device.code_words(&words);
    let word = device.buffer(4096);
    let mut dispatch = device.dispatch(&code, 3, 32, &[word.va]);
    dispatch.rsrc2 = RSRC2_LDS_ALL;
    device.submit(dispatch);
    let kind = fault_of(&device).kind;
    assert!(matches!(kind, WaveFaultKind::SpinsForever { waiting_groups: 1.. }), "{kind:?}");
}

/// Many groups may take long to find a circle, but once they are in one nothing else is waited for.
#[test]
fn circles_are_told_where_others_have_no_room() {
    let mut device = silent(Config { compute_units: 2, ..checked(6) });
    let code = device.code(&code::WAIT_FOR_WORD);
    let word = device.buffer(4096);
    // A WGP has room for 64 waves.
    device.submit(device.dispatch(&code, 70, 32, &[word.va]));
    assert_eq!(fault_of(&device).kind, WaveFaultKind::SpinsForever { waiting_groups: 6 });
    let instructions = device.counters.snapshot().wave_instructions;
    assert!(instructions < 3_000_000, "{instructions}");
}

/// A WGP has LDS for two such groups; of five, three wait.
#[test]
fn groups_without_room_are_counted() {
    for config in [parallel(0), deterministic(2), checked(3)] {
        let mut device = Device::new(Config { compute_units: 2, ..config });
        let is_checked = device.engine.inspection().is_some();
        if let Some(inspection) = device.engine.inspection() {
            inspection.silence_host(true);
        }
        let code = device.code(&code::WAIT_FOR_WORD);
        let word = device.buffer(4096);
        let mut dispatch = device.dispatch(&code, 5, 64, &[word.va]);
        dispatch.rsrc2 = RSRC2_LDS_ALL;
        let ticket = device.submit(dispatch);
        let all_but = |waves: usize| {
            device.engine.help();
            positions(&device).len() == waves
        };
        device.until("two groups are resident", || all_but(4));
        let text = device.engine.waves_text();
        let rest = "{\"more_waves\":0,\"waiting_groups\":3,\"held_groups\":0}";
        assert_eq!(text.lines().last(), Some(rest), "{text}");
        if is_checked {
            assert_eq!(fault_of(&device).kind, WaveFaultKind::SpinsForever { waiting_groups: 3 });
            assert!(device.engine.cancel_queue(1));
            continue;
        }
        word.view.store_u32(0, 1);
        device.until("all have ended", || ticket.is_done());
        let counted = device.counters.snapshot();
        assert_eq!((counted.workgroups, counted.waves, counted.dispatches), (5, 10, 1));
    }
}

#[test]
fn a_wave_at_a_barrier_and_one_that_spins_are_told_together() {
    let mut device = silent(checked(7));
    let code = device.code(&code::BARRIER_AND_SPIN);
    let mut dispatch = device.dispatch(&code, 1, 64, &[]);
    dispatch.rsrc2 = RSRC2_LDS;
    device.submit(dispatch);
    let kind = WaveFaultKind::GoesInCircles { circling_waves: 1, waiting_waves: 1 };
    let fault = fault_of(&device);
    assert_eq!((fault.kind, fault.wave), (kind, 1), "that of the wave that can run");
    let waves = positions(&device);
    assert_eq!(waves[0]["state"], serde_json::json!({"barrier": {"signalled_waves": 1, "member_waves": 2}}));
    assert_eq!(waves[0]["instruction"], "s_barrier_wait 0xffff");
    let load = &waves[1]["loads"][0];
    assert_eq!((&load["is_lds"], &load["address"], &load["value"]), (&true.into(), &0.into(), &0.into()));
}

/// The host may store the word at any time, and a clock advances by itself: neither is an endless wait.
#[test]
fn a_host_that_may_write_and_a_clock_end_waits() {
    let mut device = Device::new(checked(3));
    let code = device.code(&code::WAIT_FOR_WORD);
    let word = device.buffer(4096);
    let ticket = device.submit(device.dispatch(&code, 1, 32, &[word.va]));
    while device.counters.snapshot().wave_instructions < 20_000_000 {
        assert!(device.engine.help());
    }
    word.view.store_u32(0, 1);
    device.until("the wave has ended", || ticket.is_done());
    assert!(!device.engine.has_fault());

    let mut device = silent(checked(3));
    let code = device.code(&code::WAIT_FOR_CLOCK);
    device.run(device.dispatch(&code, 1, 64, &[]));
    assert!(device.counters.snapshot().wave_instructions > 2_000_000, "it goes on after the first look");
    assert!(!device.engine.has_fault());
}

/// A long loop without loads or stores, and waves that answer each other for a long time.
#[test]
fn work_is_no_circle() {
    let mut device = silent(checked(5));
    let code = device.code(&code::SLOW_COUNT);
    let word = device.buffer(4096);
    device.run(device.dispatch(&code, 2, 64, &[word.va, 1_000_000]));
    device.engine.synchronise(&device.space);
    assert_eq!(word.view.load_u32(0), 4);
    let code = device.code(&code::PING_PONG);
    let word = device.buffer(4096);
    device.run(device.dispatch(&code, 2, 32, &[word.va]));
    assert!(!device.engine.has_fault());
}

/// The group that has begun counts too, although it looks at nothing.
#[test]
fn a_group_that_works_while_another_has_no_room_is_no_wait() {
    let mut device = silent(Config { compute_units: 1, ..checked(5) });
    let code = device.code(&code::SLOW_COUNT);
    let word = device.buffer(4096);
    let mut dispatch = device.dispatch(&code, 2, 32, &[word.va, 1_000_000]);
    dispatch.rsrc2 = RSRC2_LDS_ALL;
    device.run(dispatch);
    device.engine.synchronise(&device.space);
    assert_eq!(word.view.load_u32(0), 2);
    assert!(!device.engine.has_fault());
}

/// Only LDS distinguishes one turn from another.
#[test]
fn what_changes_in_lds_is_a_change() {
    let mut device = silent(checked(4));
    let code = device.code(&code::COUNT_IN_LDS);
    let mut dispatch = device.dispatch(&code, 1, 64, &[0, 200_000]);
    dispatch.rsrc2 = RSRC2_LDS;
    device.run(dispatch);
    assert!(device.counters.snapshot().wave_instructions > 1_500_000, "a look was taken");
    assert!(!device.engine.has_fault());
}

#[test]
fn waves_are_listed_in_every_mode_while_they_run() {
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code(&code::WAIT_FOR_WORD);
        let word = device.buffer(4096);
        let ticket = device.submit(device.dispatch(&code, 2, 64, &[word.va]));
        let begun = || {
            device.engine.help();
            let waves = positions(&device);
            waves.len() == 4 && waves.iter().all(|wave| wave["state"] == "running")
        };
        device.until("all waves run", begun);
        let waves = positions(&device);
        let end = code.va + 4 * code::WAIT_FOR_WORD.words.len() as u64;
        for wave in &waves {
            let pc = wave["pc"].as_u64().unwrap();
            assert!((code.va + 4..end).contains(&pc), "{wave}");
            assert_eq!(wave["loads"], serde_json::json!([]), "what they look at is not known");
        }
        word.view.store_u32(0, 1);
        device.until("all have ended", || ticket.is_done());
        assert_eq!(device.engine.waves_text(), "");
    }
}

#[test]
fn a_stopped_wave_stays_in_the_list() {
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code(&code::UNEVEN_BARRIER);
        device.submit(device.dispatch(&code, 1, 64, &[]));
        let fault = fault_of(&device);
        let waves = positions(&device);
        assert!(waves.iter().any(|wave| wave["pc"] == fault.instruction_va), "{waves:?}");
        assert!(waves.iter().any(|wave| wave["state"].get("barrier").is_some()), "{waves:?}");
        assert!(device.engine.cancel_queue(1));
        assert_eq!(device.engine.waves_text(), "");
    }
}

/// Of ten groups of 32 waves the list has eight; the others are counted.
#[test]
fn waves_beyond_those_that_are_listed_are_counted() {
    let mut device = Device::new(parallel(0));
    let code = device.code_words(&[0xBF90_0001]); // s_trap 1
    device.submit(device.dispatch(&code, 10, 1024, &[]));
    while device.engine.help() {}
    let text = device.engine.waves_text();
    let rest = "{\"more_waves\":64,\"waiting_groups\":0,\"held_groups\":0}";
    assert_eq!((positions(&device).len(), text.lines().last()), (256, Some(rest)));
}
