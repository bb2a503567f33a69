//! Events by themselves: what signals them, what a wait returns, what is left of them.

use super::*;
use zrt_kmd::{MemoryFile, Protection};

fn events_with_page() -> (Events, Arc<Mapping>) {
    let file = MemoryFile::new("signal-page", 32768).unwrap();
    let mapping = Arc::new(file.map(0, 32768, Protection::ReadWrite, None).unwrap());
    let events = Events::default();
    events.set_page(mapping.clone(), Some(7)).unwrap();
    (events, mapping)
}

const NOW: Option<Duration> = Some(Duration::ZERO);

fn on(event_id: u32) -> [WaitFor; 1] {
    [WaitFor { event_id, last_age: 0 }]
}

#[test]
fn slots_are_ids_and_zero_is_reserved() {
    let (events, mapping) = events_with_page();
    assert_eq!(events.create(TYPE_SIGNAL, false), Ok(1));
    assert_eq!(events.create(TYPE_SIGNAL, false), Ok(2));
    assert_eq!(events.create(TYPE_MEMORY, false), Ok(0x4000_0000));
    assert_eq!(mapping.view().load_u64(8), u64::MAX);
    assert_eq!(events.set_page(mapping, None), Err(Errno::EINVAL));
    for expected in 3..4096 {
        assert_eq!(events.create(TYPE_SIGNAL, false), Ok(expected));
    }
    assert_eq!(events.create(TYPE_SIGNAL, false), Err(Errno::ENOSPC));
}

#[test]
fn an_interrupt_needs_a_written_slot_and_rearms_it() {
    let (events, mapping) = events_with_page();
    let id = events.create(TYPE_SIGNAL, false).unwrap();
    events.interrupt(id);
    assert_eq!(events.wait(&on(id), true, NOW), Ok(WaitOutcome::Timeout));
    mapping.view().store_u64(id as usize * 8, id as u64);
    events.interrupt(id);
    assert_eq!(mapping.view().load_u64(id as usize * 8), u64::MAX);
    assert_eq!(events.wait(&on(id), true, NOW), Ok(WaitOutcome::Complete(vec![EventData::None])));
    events.reset(id).unwrap();
    assert_eq!(events.wait(&on(id), true, NOW), Ok(WaitOutcome::Timeout));
}

#[test]
fn auto_reset_events_wake_once() {
    let (events, _) = events_with_page();
    let id = events.create(TYPE_SIGNAL, true).unwrap();
    events.set(id).unwrap();
    assert!(matches!(events.wait(&on(id), false, NOW), Ok(WaitOutcome::Complete(_))));
    assert_eq!(events.wait(&on(id), false, NOW), Ok(WaitOutcome::Timeout));
}

#[test]
fn ages_tell_what_was_missed() {
    let (events, _) = events_with_page();
    let id = events.create(TYPE_SIGNAL, true).unwrap();
    events.set(id).unwrap();
    events.wait(&on(id), false, NOW).unwrap();
    let entry = [WaitFor { event_id: id, last_age: 1 }];
    assert_eq!(events.wait(&entry, true, NOW), Ok(WaitOutcome::Complete(vec![EventData::Age(2)])));
    let seen = [WaitFor { event_id: id, last_age: 2 }];
    assert_eq!(events.wait(&seen, true, NOW), Ok(WaitOutcome::Timeout));
}

#[test]
fn one_of_several_wakes_and_tells_which() {
    let (events, _) = events_with_page();
    let signal = events.create(TYPE_SIGNAL, false).unwrap();
    let memory = events.create(TYPE_MEMORY, false).unwrap();
    let hardware = events.create(TYPE_HW_EXCEPTION, false).unwrap();
    let entries = [on(signal)[0], on(memory)[0], on(hardware)[0]];
    assert_eq!(events.set(memory), Err(Errno::EINVAL));
    let exception = MemoryException { not_present: true, page_va: 0x5000, gpu_id: 9, ..Default::default() };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| events.wait(&entries, false, Some(Duration::from_secs(10))));
        while events.lock().waits.is_empty() {
            std::thread::yield_now();
        }
        events.memory_exception(exception);
        let expected = vec![EventData::None, EventData::Memory(exception), EventData::None];
        assert_eq!(waiter.join().unwrap(), Ok(WaitOutcome::Complete(expected)));
    });
    assert_eq!(events.wait(&entries, true, Some(Duration::from_millis(1))), Ok(WaitOutcome::Timeout));
}

#[test]
fn destroyed_and_unknown_events_fail_the_wait() {
    let (events, _) = events_with_page();
    let id = events.create(TYPE_SIGNAL, false).unwrap();
    assert_eq!(events.wait(&on(99), true, NOW), Err(Errno::EINVAL));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| events.wait(&on(id), true, None));
        while events.lock().waits.is_empty() {
            std::thread::yield_now();
        }
        events.destroy(id).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(WaitOutcome::Destroyed));
    });
    assert_eq!(events.destroy(id), Err(Errno::EINVAL));
    assert!(events.lock().waits.is_empty());
}

#[test]
fn the_kernels_own_page_has_256_slots_until_it_is_mapped() {
    let file = MemoryFile::new("signal-page", 32768).unwrap();
    let mapping = Arc::new(file.map(0, 32768, Protection::ReadWrite, None).unwrap());
    let events = Events::default();
    let create = || events.create(TYPE_SIGNAL, false);
    assert_eq!((events.has_page(), events.page_handle(), create()), (false, None, Err(Errno::ENOSPC)));
    events.set_page(mapping.clone(), None).unwrap();
    assert_eq!((events.has_page(), events.page_handle()), (true, None));
    (1..256).for_each(|id| assert_eq!(create(), Ok(id)));
    assert_eq!(create(), Err(Errno::ENOSPC));
    events.page_is_mapped(8192);
    (256..1024).for_each(|id| assert_eq!(create(), Ok(id)));
    assert_eq!((create(), events.count()), (Err(Errno::ENOSPC), 1023));
    // A slot that is free again is the next one given.
    events.destroy(300).unwrap();
    assert_eq!((events.count(), create()), (1022, Ok(300)));
    // The page is the kernel's own, and all of it is unsignalled.
    assert!((0..4096).all(|slot| mapping.view().load_u64(slot * 8) == u64::MAX));
}

#[test]
fn a_page_of_the_process_is_unsignalled_as_far_as_slots_reach() {
    for (bytes, last) in [(4096, 511), (32768, 4095), (36864, 4095)] {
        let file = MemoryFile::new("signal-page", bytes).unwrap();
        let mapping = Arc::new(file.map(0, bytes, Protection::ReadWrite, None).unwrap());
        let events = Events::default();
        events.set_page(mapping.clone(), Some(7)).unwrap();
        assert_eq!(events.page_handle(), Some(7));
        (1..=last).for_each(|id| assert_eq!(events.create(TYPE_DEBUG, false), Ok(id)));
        assert_eq!(events.create(TYPE_SIGNAL, false), Err(Errno::ENOSPC), "{bytes}");
        let is_unsignalled = |slot: usize| mapping.view().load_u64(slot * 8) == u64::MAX;
        assert!((0..=last as usize).all(is_unsignalled));
        assert!((last as usize + 1..bytes / 8).all(|slot| mapping.view().load_u64(slot * 8) == 0));
        // Exceptions need no slot.
        assert_eq!(events.create(TYPE_MEMORY, false), Ok(0x4000_0000));
        assert_eq!(events.create(TYPE_HW_EXCEPTION, false), Ok(0x4000_0001));
    }
}

/// Ids whose event a wait would find signalled. Looking takes an auto-reset event's signal.
fn signalled(events: &Events, ids: &[u32]) -> Vec<u32> {
    let is_signalled = |id: &u32| events.wait(&on(*id), true, NOW) != Ok(WaitOutcome::Timeout);
    ids.iter().copied().filter(is_signalled).collect()
}

#[test]
fn an_interrupt_signals_the_event_it_names_or_else_all_whose_slots_are_written() {
    let (events, mapping) = events_with_page();
    let signals = [TYPE_SIGNAL, TYPE_DEBUG, TYPE_SIGNAL].map(|kind| events.create(kind, true).unwrap());
    let memory = events.create(TYPE_MEMORY, true).unwrap();
    let ids = [1, 2, 3, memory];
    assert_eq!(signals[..], ids[..3]);
    let write = |slots: &[usize]| slots.iter().for_each(|slot| mapping.view().store_u64(slot * 8, 1));
    let left =
        || (0..8usize).filter(|slot| mapping.view().load_u64(slot * 8) != u64::MAX).collect::<Vec<_>>();
    for (written, context, expected, remain) in [
        // The named one, and no other.
        (vec![1, 2], 2, vec![2], vec![1]),
        // Named, but its own slot is not written: all that are.
        (vec![3], 2, vec![1, 3], vec![]),
        // Without a name, and with the name of no event.
        (vec![2, 3], 0, vec![2, 3], vec![]),
        (vec![1, 5], 5, vec![1], vec![5]),
        (vec![0, 2], 0, vec![2], vec![0, 5]),
        (vec![3], memory, vec![3], vec![0, 5]),
        (vec![], 3, vec![], vec![0, 5]),
    ] {
        write(&written);
        events.interrupt(context);
        assert_eq!((signalled(&events, &ids), left()), (expected, remain), "{written:?} {context}");
    }
}

#[test]
fn only_events_of_type_signal_are_set_and_reset_by_the_process() {
    let (events, _) = events_with_page();
    let kinds = [TYPE_SIGNAL, TYPE_DEBUG, TYPE_MEMORY, TYPE_HW_EXCEPTION];
    let ids = kinds.map(|kind| events.create(kind, false).unwrap());
    let refused = Err(Errno::EINVAL);
    assert_eq!(ids.map(|id| events.set(id)), [Ok(()), refused, refused, refused]);
    assert_eq!(signalled(&events, &ids), [ids[0]]);
    assert_eq!(ids.map(|id| events.reset(id)), [Ok(()), refused, refused, refused]);
    assert_eq!(signalled(&events, &ids), Vec::<u32>::new());
    assert_eq!((events.set(0), events.reset(99), events.destroy(99)), (refused, refused, refused));
}

#[test]
fn exceptions_reach_the_events_of_their_kind_with_what_happened_last() {
    let (events, _) = events_with_page();
    let kinds = [TYPE_MEMORY, TYPE_HW_EXCEPTION, TYPE_MEMORY, TYPE_SIGNAL];
    let ids = kinds.map(|kind| events.create(kind, false).unwrap());
    let memory = MemoryException { read_only: true, page_va: 0x7000, gpu_id: 3, ..Default::default() };
    events.memory_exception(MemoryException { not_present: true, ..memory });
    assert_eq!(signalled(&events, &ids), [ids[0], ids[2]]);
    events.memory_exception(memory);
    let hardware = HardwareException { memory_lost: true, gpu_id: 3 };
    events.hardware_exception(hardware);
    assert_eq!(signalled(&events, &ids), [ids[0], ids[1], ids[2]]);
    let all = ids.map(|event_id| WaitFor { event_id, last_age: 0 });
    let [first, second, third] =
        [EventData::Memory(memory), EventData::Hardware(hardware), EventData::Memory(memory)];
    let complete = |data: &[EventData]| Ok(WaitOutcome::Complete(data.to_vec()));
    assert_eq!(events.wait(&all[..3], true, NOW), complete(&[first, second, third]));
    assert_eq!(events.wait(&all, true, NOW), Ok(WaitOutcome::Timeout));
    assert_eq!(events.wait(&all, false, NOW), complete(&[first, second, third, EventData::None]));
    // An age is for signal events only.
    let aged = [WaitFor { event_id: ids[3], last_age: 9 }, WaitFor { event_id: ids[0], last_age: 9 }];
    assert_eq!(events.wait(&aged, true, NOW), complete(&[EventData::Age(1), first]));
    let fresh = events.create(TYPE_MEMORY, false).unwrap();
    assert_eq!(events.wait(&[WaitFor { event_id: fresh, last_age: 9 }], true, NOW), Ok(WaitOutcome::Timeout));
}

/// What a wait would return now, of one that stays registered.
fn outcome(events: &Events, wait: u64, all: bool) -> Option<WaitOutcome> {
    events.lock().outcome(wait, all)
}

#[test]
fn an_auto_reset_event_keeps_a_signal_that_nobody_waited_for() {
    let (events, _) = events_with_page();
    let [auto, manual] = [true, false].map(|auto| events.create(TYPE_SIGNAL, auto).unwrap());
    let enter = |ids: &[u32]| {
        let entries: Vec<_> = ids.iter().map(|id| on(*id)[0]).collect();
        events.lock().enter(&entries).unwrap()
    };
    let done = |count: usize| Some(WaitOutcome::Complete(vec![EventData::None; count]));
    // One that waits takes the signal; all that wait are woken.
    let waits = [enter(&[auto]), enter(&[auto]), enter(&[manual])];
    events.set(auto).unwrap();
    assert_eq!(waits.map(|wait| outcome(&events, wait, true)), [done(1), done(1), None]);
    assert_eq!(signalled(&events, &[auto, manual]), Vec::<u32>::new());
    for wait in waits {
        events.lock().waits.remove(&wait);
    }
    // One that found the event signalled when it began is in no queue: the next signal is not for it.
    events.set(auto).unwrap();
    let both = enter(&[auto, manual]);
    assert_eq!((outcome(&events, both, true), outcome(&events, both, false)), (None, done(2)));
    events.set(auto).unwrap();
    assert_eq!(signalled(&events, &[auto]), [auto]);
    events.set(manual).unwrap();
    assert_eq!(outcome(&events, both, true), done(2));
    assert_eq!(signalled(&events, &[auto, manual]), [manual]);
}

#[test]
fn ages_skip_those_that_mean_something_else() {
    let (events, _) = events_with_page();
    let id = events.create(TYPE_SIGNAL, false).unwrap();
    let age = |last_age: u64| events.wait(&[WaitFor { event_id: id, last_age }], true, NOW);
    assert_eq!(age(1), Ok(WaitOutcome::Timeout));
    events.lock().events.get_mut(&id).unwrap().age = u64::MAX;
    events.set(id).unwrap();
    assert_eq!(age(u64::MAX), Ok(WaitOutcome::Complete(vec![EventData::Age(2)])));
}

#[test]
fn a_wait_for_nothing_is_complete_when_it_waits_for_all() {
    let (events, _) = events_with_page();
    assert_eq!(events.wait(&[], true, NOW), Ok(WaitOutcome::Complete(vec![])));
}

#[test]
fn at_the_end_of_the_process_nothing_is_left_and_waits_fail() {
    let (events, mapping) = events_with_page();
    let id = events.create(TYPE_SIGNAL, false).unwrap();
    let wait = events.lock().enter(&on(id)).unwrap();
    events.release_all();
    assert_eq!(outcome(&events, wait, false), Some(WaitOutcome::Destroyed));
    assert_eq!((events.count(), events.has_page()), (0, false));
    assert_eq!(events.wait(&on(id), true, NOW), Err(Errno::EINVAL));
    // The next process has a page of its own, and ids from the first on.
    events.set_page(mapping, None).unwrap();
    assert_eq!(events.create(TYPE_SIGNAL, false), Ok(1));
}
