//! Whatever a caller passes to a public constructor, and to its result: a value or a typed error with the value in
//! it, never a panic, a wrap, an endless wait or more memory than the named limit.

#[path = "model/said.rs"]
mod said;

use proptest::prelude::*;
use said::Said;
use std::num::NonZeroU32;
use zrt_mem::{DwordLen, GpuVa, SharedView};
use zrt_pm4::packet::{Repr, dispatch_direct};
use zrt_ring::token_ring::{
    ControlDwords, ControlError, ControlLines, ENTRIES_MAX, ENTRIES_MIN, FIRST_ENTRY_MAX, InputRing,
    OutputRing, TokenRingError,
};
use zrt_ring::{
    CommandRing, EventSlot, Fence, FenceError, FenceSignal, GRAPH_DWORDS_MAX, GraphError, GraphRecorder,
    RING_BYTES_MIN, RingError, START_POINTER_MAX, Timeline, Watchdog,
};

/// Numbers of all sizes: arbitrary, small, the greatest, and next to powers of two.
fn number() -> impl Strategy<Value = u64> {
    let beside = (0u32..64, -2i64..3).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by));
    prop_oneof![any::<u64>(), 0u64..70, u64::MAX - 9..=u64::MAX, beside]
}

fn short() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

/// Lengths of views in bytes: those that fit, and others.
fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..32, 0usize..20_000, (0u32..20).prop_map(|bit| 1usize << bit)]
}

/// A clock that is past every deadline at the second read.
fn impatient() -> impl Fn() -> u64 {
    let looks = std::cell::Cell::new(0u64);
    move || looks.replace(looks.get().saturating_add(u64::MAX / 2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_recorder_has_the_room_that_was_asked_for_or_says_what_it_can_have(capacity in short()) {
        match GraphRecorder::new(DwordLen(capacity)) {
            Ok(recorder) => prop_assert!((10..=GRAPH_DWORDS_MAX).contains(&capacity) && recorder.is_empty()),
            Err(GraphError::Capacity { dwords, most }) => {
                prop_assert!(capacity > GRAPH_DWORDS_MAX);
                prop_assert_eq!((dwords, most), (capacity, GRAPH_DWORDS_MAX));
            }
            Err(error) => prop_assert!(matches!(error, GraphError::Emit(_)) && capacity < 10, "{}", error),
        }
    }

    #[test]
    fn a_recording_lies_anywhere_or_nowhere(
        memory in bytes(),
        address in number(),
        groups in any::<[u32; 3]>(),
        dispatches in 0usize..3,
        fence in number(),
        value in number(),
        event in proptest::option::of((number(), short())),
    ) {
        let mut recorder = GraphRecorder::new(DwordLen(64)).unwrap();
        let dispatch = Repr::DispatchDirect(dispatch_direct::Repr::wave32(groups));
        for _ in 0..dispatches {
            let _ = recorder.packet(&dispatch);
        }
        let graph = recorder.finish(&SharedView::zeroed(memory).expect("memory"), GpuVa(address));
        let fits = |length: u64| memory as u64 >= length && address.checked_add(length).is_some();
        prop_assert!(graph.is_err() || (fits(recorder.len().bytes().0) && address % 4 == 0 && dispatches > 0));
        let Ok(graph) = graph else { return Ok(()) };
        let words = [4096, 8, 8, 8].map(|bytes| SharedView::zeroed(bytes).expect("memory"));
        let [ring, write, read, doorbell] = words.clone();
        let mut ring = CommandRing::new(ring, write, read, doorbell).unwrap();
        let signal = FenceSignal::new(GpuVa(fence), value);
        let signal = match event {
            Some((address, event_id)) => signal.with_event(EventSlot { address: GpuVa(address), event_id }),
            None => signal,
        };
        let submitted = ring.submit_graph(&graph, signal);
        prop_assert!(submitted.is_ok() || words[3].load_u64(0) == 0, "what is refused rings no doorbell");
        let is_aligned = fence % 8 == 0 && event.is_none_or(|(address, _)| address % 4 == 0);
        prop_assert!(submitted.is_err() || is_aligned);
    }

    #[test]
    fn a_ring_goes_on_from_any_pointers_or_names_them(
        lengths in [bytes(), bytes(), bytes(), bytes()],
        is_usual in any::<bool>(),
        write in number(),
        behind in number(),
        later in number(),
        position in number(),
        timeout_ns in number(),
    ) {
        let lengths = if is_usual { [4096, 8, 8, 8] } else { lengths };
        let [ring, write_pointer, read_pointer, doorbell] = lengths.map(|bytes| SharedView::zeroed(bytes).expect("memory"));
        let read = write.wrapping_sub(behind);
        if lengths[1] >= 8 && lengths[2] >= 8 {
            write_pointer.store_u64(0, write);
            read_pointer.store_u64(0, read);
        }
        let mut ring = match CommandRing::new(ring, write_pointer, read_pointer.clone(), doorbell) {
            Ok(ring) => ring,
            Err(RingError::RingLength { bytes, least }) => {
                prop_assert_eq!((bytes, least), (lengths[0], RING_BYTES_MIN));
                return Ok(());
            }
            Err(RingError::ViewLength { bytes, .. }) => {
                prop_assert!(lengths[1..].contains(&bytes) && bytes < 8);
                return Ok(());
            }
            Err(error) => {
                prop_assert_eq!(error, RingError::StartPointers { read, write });
                let dwords = lengths[0] as u64 / 4;
                prop_assert!(read > write || write - read >= dwords || write > START_POINTER_MAX);
                return Ok(());
            }
        };
        prop_assert!(write <= START_POINTER_MAX);
        // NOPs of one dword: as many as fit and one more.
        const NOP: u32 = 0xffff_1000;
        let free = ring.free_dwords().unwrap();
        let submission = ring.submit(&vec![NOP; free]);
        prop_assert!(submission.is_ok() || free == 0);
        prop_assert!(ring.submit_within(&[NOP], &impatient(), timeout_ns).is_err());
        ring.note_fence(later);
        ring.fence_reached(later);
        prop_assert_eq!(ring.free_dwords().unwrap(), ring.capacity_dwords());
        let mut words = [0; 9];
        ring.peek(position, &mut words);
        read_pointer.store_u64(0, later);
        prop_assert!(ring.read_pointer().is_ok() || later > ring.write_pointer());
        let fence = Fence::new(SharedView::zeroed(8).expect("memory"), GpuVa(0)).unwrap();
        let _ = Watchdog::new(timeout_ns).observe(ring.observe(position, &fence, later));
    }

    #[test]
    fn a_fence_lies_at_any_multiple_of_eight(
        length in bytes(),
        address in number(),
        held in number(),
        value in number(),
        timeout_ns in number(),
    ) {
        let view = SharedView::zeroed(length).expect("memory");
        let fence = match Fence::new(view.clone(), GpuVa(address)) {
            Ok(fence) => fence,
            Err(FenceError::ViewLength { bytes }) => {
                prop_assert!(bytes == length && length < 8);
                return Ok(());
            }
            Err(error) => {
                prop_assert_eq!(error, FenceError::Misaligned(GpuVa(address)));
                prop_assert!(address % 8 != 0);
                return Ok(());
            }
        };
        view.store_u64(0, held);
        prop_assert_eq!(fence.wait(value, &impatient(), timeout_ns).is_ok(), held >= value);
        let mut timeline = Timeline::new(fence);
        let _ = timeline.advance();
        prop_assert_eq!(timeline.wait(value, &impatient(), timeout_ns).is_ok(), held >= value);
        prop_assert_eq!(timeline.completed(), Ok(held));
    }

    #[test]
    fn a_token_ring_starts_with_any_entry_that_has_others_behind_it(
        dwords in prop_oneof![0usize..20_000, (0u32..18).prop_map(|bit| 1usize << bit)],
        words in [0usize..3, 0usize..3],
        flush in proptest::option::of(0usize..3),
        first in number(),
        every in short(),
        told in any::<u32>(),
        entry in any::<[u32; 14]>(),
        timeout_ns in number(),
    ) {
        let views = || (SharedView::zeroed(4 * dwords).expect("memory"), flush.map(|dwords| SharedView::zeroed(4 * dwords).expect("memory")));
        let entries = dwords / 16;
        let is_ring = dwords % 16 == 0
            && entries.is_power_of_two()
            && (ENTRIES_MIN as usize..=ENTRIES_MAX as usize).contains(&entries);
        let may_be = |word: usize| is_ring && first <= FIRST_ENTRY_MAX && word > 0 && flush != Some(0);
        let explains = |error: TokenRingError, word: usize| match error {
            TokenRingError::Length { dwords: found } => !is_ring && found == dwords,
            TokenRingError::FirstEntry { first: found } => found == first && first > FIRST_ENTRY_MAX,
            TokenRingError::NoWord { .. } => word == 0 || flush == Some(0),
            TokenRingError::PublishEvery { every: found, capacity } => {
                found == every && !(1..=capacity).contains(&every)
            }
            _ => false,
        };
        let count = SharedView::zeroed(4 * words[0]).expect("memory");
        let (ring, flush_word) = views();
        match InputRing::<Said>::starting_at(ring, count.clone(), flush_word, first) {
            Ok(mut ring) => {
                prop_assert!(may_be(words[0]));
                let asked = Said(entry);
                while ring.push(&asked).is_ok() {}
                prop_assert!(ring.push_within(&asked, &impatient(), timeout_ns).is_err());
                prop_assert_eq!(ring.produced(), first + entries as u64);
                count.store_u32(0, told);
                let is_possible = (ring.produced() as u32).wrapping_sub(told) <= entries as u32;
                prop_assert_eq!(ring.free().is_ok(), is_possible);
            }
            Err(error) => prop_assert!(!may_be(words[0]) && explains(error, words[0]), "{}", error),
        }
        let (ring, flush_word) = views();
        match OutputRing::<Said>::starting_at(ring.clone(), SharedView::zeroed(4 * words[1]).expect("memory"), flush_word, every, first) {
            Ok(mut output) => {
                prop_assert!(may_be(words[1]) && (1..=entries as u32).contains(&every));
                ring.fill(0, ring.len(), told as u8);
                let polled = output.poll();
                prop_assert!(polled.is_err() || polled == Ok(None), "{:?}", polled);
                prop_assert!(output.wait(&impatient(), timeout_ns).is_err());
            }
            Err(error) => prop_assert!(explains(error, words[1]), "{}", error),
        }
    }

    #[test]
    fn lines_of_slots_take_any_word(
        dwords in prop_oneof![0usize..1100, Just(1024usize)],
        flush in proptest::option::of(0usize..3),
        slot in short(),
        serials in [1u32.., 1u32..],
        pages in [short(), short()],
        at in [0usize..18, 0usize..18, 0usize..18, 0usize..18, 0usize..18],
    ) {
        let [cancel_serial, preempt_serial, hold_serial, granted_pages, granted_serial] = at;
        let words = ControlDwords { cancel_serial, preempt_serial, hold_serial, granted_pages, granted_serial };
        let are_words = at.iter().enumerate().all(|(place, dword)| *dword < 16 && !at[..place].contains(dword));
        let lines = SharedView::zeroed(4 * dwords).expect("memory");
        let mut lines = match ControlLines::new(lines, words, flush.map(|dwords| SharedView::zeroed(4 * dwords).expect("memory"))) {
            Ok(lines) => lines,
            Err(ControlError::Length { dwords: found }) => {
                prop_assert!(found == dwords && (dwords == 0 || dwords % 16 != 0));
                return Ok(());
            }
            Err(ControlError::Dword { dword }) => {
                prop_assert!(!are_words && at.contains(&dword));
                return Ok(());
            }
            Err(error) => {
                prop_assert!(flush == Some(0), "{}", error);
                return Ok(());
            }
        };
        let mut line = match lines.slot(slot) {
            Ok(line) => line,
            Err(error) => {
                let slots = dwords as u32 / 16;
                prop_assert_eq!(error, ControlError::Slot { slot, last: slots - 1 });
                prop_assert!(slot >= slots);
                return Ok(());
            }
        };
        let serials = serials.map(|serial| NonZeroU32::new(serial).unwrap());
        prop_assert_eq!(line.grant(serials[0], pages[0]), Ok(()));
        let again = line.grant(serials[1], pages[1]);
        prop_assert_eq!(again.is_ok(), serials[0] != serials[1] || pages[1] >= pages[0]);
        line.cancel(serials[1]);
        line.preempt(serials[0]);
        line.hold(serials[1]);
        line.renew();
    }

    #[test]
    fn a_watchdog_takes_any_pointers_and_times(
        limit_ns in number(),
        looks in proptest::collection::vec([number(), number(), number(), number(), number()], 0..6),
    ) {
        let mut watchdog = Watchdog::new(limit_ns);
        for [time_ns, write_pointer, read_pointer, fence_value, fence_target] in looks {
            let look = zrt_ring::Observation { time_ns, write_pointer, read_pointer, fence_value, fence_target };
            prop_assert!(!watchdog.observe(look).to_string().is_empty());
        }
    }
}
