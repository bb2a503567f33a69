//! Claims of workers, one by one: nobody but the test claims anything here.

use super::*;
use crate::shader::dispatch::Dispatch;
use crate::simd::Level;
use crate::workgroups::DispatchTicket;
use crate::workgroups::tests::{Buffer, Device, RSRC2, RSRC2_LDS_ALL, code, deterministic, parallel};
use std::collections::BTreeSet;

const END: [u32; 1] = [0xBFB0_0000]; // s_endpgm

/// A device with the scheduler of a configuration, but without its threads.
fn device(config: &Config) -> (Device, Arc<Shared>) {
    let mut device = Device::new(parallel(0));
    let shared = Arc::new(Shared::new(config, device.counters.clone(), Level::detect()));
    device.engine.shared = shared.clone();
    (device, shared)
}

fn submit(device: &Device, code: &Buffer, groups: u32, queue_id: u32, rsrc2: u32) -> DispatchTicket {
    let mut dispatch = Dispatch { rsrc2, ..device.dispatch(code, groups, 32, &[]) };
    dispatch.origin.queue_id = queue_id;
    device.submit(dispatch)
}

/// A device with one group, which never ends, and the worker that has claimed it.
fn with_endless_group(config: &Config) -> (Device, Arc<Shared>, Worker) {
    let (mut device, shared) = device(config);
    let endless = device.code_words(code::ENDLESS.words);
    submit(&device, &endless, 1, 1, RSRC2);
    let mut worker = Worker::new(1, 1);
    assert!(shared.claim(&mut worker));
    (device, shared, worker)
}

/// Runs all that the worker has claimed.
fn run(shared: &Shared, worker: &mut Worker) {
    while worker.has_work() {
        shared.run_one(worker);
    }
}

#[test]
fn a_claim_is_a_quarter_of_the_fair_share_of_what_is_left() {
    let claims = |config: Config, groups: u32, most: u64| {
        let (mut device, shared) = device(&config);
        let code = device.code_words(&END);
        let ticket = submit(&device, &code, groups, 1, RSRC2);
        let mut worker = Worker::new(1, most);
        let mut claims = Vec::new();
        while shared.claim(&mut worker) {
            claims.push(worker.placements.len());
            run(&shared, &mut worker);
        }
        assert!(ticket.is_done());
        assert_eq!(claims.iter().sum::<usize>(), groups as usize);
        claims
    };
    // Three threads and the one that helps: a sixteenth.
    assert_eq!(claims(parallel(3), 320, 32)[..6], [20, 18, 17, 16, 15, 14]);
    assert_eq!(claims(parallel(3), 640, 32)[..6], [32, 32, 32, 32, 32, 30]);
    assert_eq!(claims(parallel(3), 640, 8)[..6], [8; 6]);
    assert_eq!(claims(parallel(3), 20, 32), [1; 20]);
    assert_eq!(claims(parallel(0), 20, 32)[..5], [5, 3, 3, 2, 1], "a quarter");
    assert_eq!(claims(deterministic(1), 40, 32), [1; 40]);
}

#[test]
fn what_a_worker_holds_is_cancelled_once_it_is_handed_in() {
    let (mut device, shared) = device(&parallel(0));
    let code = device.code_words(&END);
    let [held, other] = [5, 6].map(|queue_id| submit(&device, &code, 1, queue_id, RSRC2));
    let mut worker = Worker::new(1, 1);
    assert!(shared.claim(&mut worker));
    let cancel = |queue_id: u32| shared.cancel(|dispatch| dispatch.dispatch.origin.queue_id == queue_id);
    assert_eq!((cancel(6), cancel(5)), (true, false));
    assert!(held.is_cancelled() && other.is_cancelled() && !shared.is_idle());
    run(&shared, &mut worker);
    assert!(!shared.claim(&mut worker) && cancel(5));
    assert!(shared.is_idle() && !held.is_done() && !other.is_done());
}

#[test]
fn nothing_is_available_unless_a_claim_may_succeed() {
    // One compute unit has LDS for one of the groups.
    let (mut device, shared) = device(&Config { compute_units: 1, ..parallel(0) });
    let code = device.code_words(&END);
    let [mut worker, mut other] = [1, 2].map(|seed| Worker::new(seed, 1));
    assert!(!shared.has_available());
    let ticket = submit(&device, &code, 2, 1, RSRC2_LDS_ALL);
    assert!(shared.has_available());
    shared.pauses.fetch_add(1, Ordering::AcqRel);
    assert!(!shared.has_available() && !shared.claim(&mut worker), "all are examined");
    shared.pauses.fetch_sub(1, Ordering::AcqRel);
    assert!(shared.claim(&mut worker));
    assert!(shared.has_available(), "nobody knows yet that the other group has no room");
    assert!(!shared.claim(&mut other) && !shared.has_available());
    run(&shared, &mut worker);
    assert!(shared.claim(&mut worker), "what has ended makes room");
    run(&shared, &mut worker);
    assert!(!shared.claim(&mut worker) && !shared.has_available() && ticket.is_done());
}

#[test]
fn a_queue_behind_one_without_room_gives_no_more_groups_than_it_has() {
    let (mut device, shared) = device(&Config { compute_units: 1, ..parallel(0) });
    let code = device.code_words(&END);
    submit(&device, &code, 320, 1, RSRC2_LDS_ALL);
    let behind = submit(&device, &code, 25, 2, RSRC2);
    let mut workers = [1, 2, 3, 4].map(|seed| Worker::new(seed, 20));
    let claims = workers.each_mut().map(|worker| (shared.claim(worker), worker.placements.len()));
    assert_eq!(claims, [(true, 1), (true, 20), (true, 5), (false, 0)]);
    for worker in &mut workers {
        run(&shared, worker);
        drop(shared.hand_over(worker));
    }
    assert!(behind.is_done());
}

#[test]
fn a_worker_takes_what_was_preempted_and_what_is_new_in_turns() {
    let (mut device, shared, mut worker) = with_endless_group(&parallel(0));
    let end = device.code_words(&END);
    run(&shared, &mut worker);
    submit(&device, &end, 8, 2, RSRC2);
    let resumed = [(); 12].map(|()| {
        assert!(shared.claim(&mut worker));
        let is_resumed = worker.resumed.is_some();
        run(&shared, &mut worker);
        is_resumed
    });
    drop(shared.hand_over(&mut worker));
    let in_turns: [bool; 12] = std::array::from_fn(|at| at % 2 == 0);
    assert_eq!(resumed, in_turns);
}

#[test]
fn a_seed_chooses_between_the_new_and_any_that_was_preempted() {
    let (mut device, shared) = device(&deterministic(3));
    let [endless, end] = [code::ENDLESS.words, &END].map(|words| device.code_words(words));
    let mut worker = Worker::new(3, 1);
    submit(&device, &endless, 4, 1, RSRC2);
    let preempted = || -> Vec<*const Group> {
        shared.lock().preempted.iter().map(|group| std::ptr::from_ref(&**group)).collect()
    };
    for _ in 0..100 {
        assert!(shared.claim(&mut worker));
        run(&shared, &mut worker);
    }
    submit(&device, &end, 1000, 2, RSRC2);
    let mut chosen = BTreeSet::new();
    for _ in 0..200 {
        let before = preempted();
        assert_eq!(before.len(), 4);
        assert!(shared.claim(&mut worker));
        let resumed = worker.resumed.as_deref().map(std::ptr::from_ref::<Group>);
        chosen.insert(resumed.and_then(|group| before.iter().position(|other| *other == group)));
        run(&shared, &mut worker);
    }
    drop(shared.hand_over(&mut worker));
    assert_eq!(chosen, BTreeSet::from([None, Some(0), Some(1), Some(2), Some(3)]));
}

#[test]
fn a_worker_keeps_eight_groups_for_reuse() {
    let (mut device, shared) = device(&parallel(0));
    let code = device.code(&code::WAIT_FOR_WORD);
    let word = device.buffer(4096);
    let ticket = device.submit(device.dispatch(&code, 10, 32, &[word.va]));
    let mut worker = Worker::new(1, 32);
    while shared.lock().preempted.len() < 10 {
        assert!(shared.claim(&mut worker));
        run(&shared, &mut worker);
    }
    assert_eq!(worker.spare.len(), 0);
    word.view.store_u32(0, 1);
    while shared.claim(&mut worker) {
        run(&shared, &mut worker);
    }
    assert!(ticket.is_done());
    assert_eq!(worker.spare.len(), 8);
}

#[test]
fn a_worker_that_sleeps_is_counted_until_work_wakes_it() {
    let (mut device, shared) = device(&parallel(0));
    let code = device.code_words(&END);
    let woken = sleep_long(&shared);
    device.until("the worker sleeps", || shared.lock().sleepers == 1);
    submit(&device, &code, 2, 1, RSRC2);
    assert_eq!(woken.recv_timeout(Duration::from_secs(60)), Ok(()));
    assert_eq!(shared.lock().sleepers, 0);
}

/// Sleeps for hours in a thread of its own, unless there is work or the end; tells when it has woken.
fn sleep_long(shared: &Arc<Shared>) -> std::sync::mpsc::Receiver<()> {
    let (sender, woken) = std::sync::mpsc::channel();
    let sleeper = shared.clone();
    std::thread::spawn(move || {
        // A wait may end without a reason.
        loop {
            sleeper.sleep(Duration::from_secs(10_000));
            if sleeper.has_available() || sleeper.stop.load(Ordering::Acquire) {
                break;
            }
        }
        sender.send(()).unwrap();
    });
    woken
}

#[test]
fn a_worker_neither_spins_on_nor_sleeps_where_there_is_work_or_the_end() {
    for is_end in [false, true] {
        let (mut device, shared) = device(&Config { worker_spin_us: 0, ..parallel(0) });
        assert!(!shared.spin_for_work(), "there is nothing yet");
        if is_end {
            shared.stop();
        } else {
            let code = device.code_words(&END);
            submit(&device, &code, 1, 1, RSRC2);
        }
        assert!(shared.spin_for_work(), "{is_end}");
        assert_eq!(sleep_long(&shared).recv_timeout(Duration::from_secs(60)), Ok(()), "{is_end}");
    }
}

#[test]
fn a_worker_without_work_sleeps_until_the_end() {
    let (device, shared) = device(&Config { worker_spin_us: 0, ..parallel(0) });
    let workers = shared.clone();
    let thread = std::thread::spawn(move || workers.run_worker(Worker::new(1, 1)));
    device.until("it sleeps", || shared.lock().sleepers == 1);
    shared.stop();
    thread.join().unwrap();
}

#[test]
fn a_group_that_is_cancelled_before_it_goes_on_is_not_counted() {
    let (device, shared, mut worker) = with_endless_group(&parallel(0));
    run(&shared, &mut worker);
    assert!(shared.claim(&mut worker) && worker.resumed.is_some());
    assert!(!shared.cancel(|_| true), "the worker has it");
    run(&shared, &mut worker);
    drop(shared.hand_over(&mut worker));
    let counts = device.counters.snapshot();
    assert_eq!((counts.workgroups, counts.waves), (0, 0));
}

/// Of turns of at most 128.
#[test]
fn a_seeded_run_goes_on_until_it_has_executed_as_many_instructions_as_are_drawn() {
    let (_device, shared, mut worker) = with_endless_group(&deterministic(1));
    let drawn = |seed: u64| mix(&mut seed.clone()) % 2048;
    worker.random = (0..).find(|seed| drawn(*seed) >= 1000).unwrap();
    let least = drawn(worker.random);
    shared.run_one(&mut worker);
    let executed = worker.tally.instructions;
    assert!((least..least + 2 * 129).contains(&executed), "{executed} of {least}");
}
