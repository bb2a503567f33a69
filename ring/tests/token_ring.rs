//! The token rings against the model of the device's side: order, wrap-around, refusal, back-pressure, false
//! reports.

#[path = "model/said.rs"]
mod said;

use crossbeam_utils::Backoff;
use proptest::prelude::*;
use said::{NONSENSE, Nonsense, Said, line, said};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use zrt_mem::SharedView;
use zrt_ring::token_ring::mock::{DeviceInput, DeviceOutput};
use zrt_ring::token_ring::{LINE_BYTES, LINE_DWORDS, LineState, RingMemory};
use zrt_ring::{TakeError, TokenRingError};

type InputRing<M = SharedView> = zrt_ring::InputRing<Said, M>;
type OutputRing<M = SharedView> = zrt_ring::OutputRing<Said, M>;

/// Numbers of a first entry with its tag, worked out by hand: the tag is the number + 1 in 32 bits, skipping 0.
const STARTS: [(u64, u32); 5] = [
    (0, 1),
    ((1 << 32) - 5, 0xffff_fffc),
    ((1 << 32) - 2, 0xffff_ffff),
    ((1 << 32) - 1, 1),
    // 3 * (2^32 - 1) - 2: twice round the tags, two before the end.
    (3 * ((1 << 32) - 1) - 2, 0xffff_fffe),
];

fn view(dwords: usize) -> SharedView {
    let view = SharedView::zeroed(dwords * 4).expect("memory");
    view.fill(0, view.len(), 0xa5); // the other side must not find old bytes
    view
}

fn input_pair(entries: usize, (first, tag): (u64, u32)) -> (InputRing, DeviceInput<SharedView>, SharedView) {
    let (ring, consumed) = (view(entries * 16), view(2));
    let host = InputRing::starting_at(ring.clone(), consumed.clone(), None, first).expect("valid");
    (host, DeviceInput::new(ring, consumed.clone(), first as u32, tag), consumed)
}

struct OutputPair {
    host: OutputRing,
    device: DeviceOutput<SharedView>,
    ring: SharedView,
    consumed: SharedView,
}

fn output_pair(entries: usize, every: u32, (first, tag): (u64, u32)) -> OutputPair {
    let (ring, consumed) = (view(entries * 16), view(2));
    let host = OutputRing::starting_at(ring.clone(), consumed.clone(), None, every, first).expect("valid");
    OutputPair {
        host,
        device: DeviceOutput::new(ring.clone(), consumed.clone(), first as u32, tag),
        ring,
        consumed,
    }
}

impl OutputPair {
    fn put(&mut self, mark: u32) -> bool {
        self.device.put(&line(mark), 0)
    }
}

#[test]
fn memory_that_is_no_ring_is_refused() {
    assert_eq!((LINE_BYTES, LINE_DWORDS), (64, 16), "an entry is a line of 64 bytes");
    let word = view(1);
    for dwords in [0, 8, 16, 3 * 16, 32 + 8, 8192 * 16] {
        let refused = TokenRingError::Length { dwords };
        assert_eq!(InputRing::new(view(dwords), word.clone(), None).unwrap_err(), refused);
        assert_eq!(OutputRing::new(view(dwords), word.clone(), None, 1).unwrap_err(), refused);
    }
    for entries in [2, 4096] {
        assert_eq!(
            InputRing::new(view(entries * 16), word.clone(), None).unwrap().capacity() as usize,
            entries
        );
        assert_eq!(
            OutputRing::new(view(entries * 16), word.clone(), None, 1).unwrap().capacity() as usize,
            entries
        );
    }
    let ring = view(64);
    let count = TokenRingError::NoWord { name: "count of consumed entries" };
    assert_eq!(InputRing::new(ring.clone(), view(0), None).unwrap_err(), count);
    assert_eq!(OutputRing::new(ring.clone(), view(0), None, 1).unwrap_err(), count);
    let flush = TokenRingError::NoWord { name: "flush" };
    assert_eq!(InputRing::new(ring.clone(), word.clone(), Some(view(0))).unwrap_err(), flush);
    assert_eq!(OutputRing::new(ring.clone(), word.clone(), Some(view(0)), 1).unwrap_err(), flush);
    for every in [0, 5] {
        let refused = TokenRingError::PublishEvery { every, capacity: 4 };
        assert_eq!(OutputRing::new(ring.clone(), word.clone(), None, every).unwrap_err(), refused);
    }
}

/// 2^63 entries are left after the last number that a ring may begin with.
#[test]
fn a_ring_begins_with_any_entry_up_to_2_to_the_63() {
    const LAST: u64 = 0x8000_0000_0000_0000;
    let input = |first| InputRing::starting_at(view(64), view(1), None, first).map(|ring| ring.produced());
    let output = |first| OutputRing::starting_at(view(64), view(1), None, 1, first).map(|_| ());
    assert_eq!((input(LAST), output(LAST)), (Ok(LAST), Ok(())));
    let refused = TokenRingError::FirstEntry { first: LAST + 1 };
    assert_eq!((input(LAST + 1), output(LAST + 1)), (Err(refused), Err(refused)));
}

#[test]
fn every_entry_comes_once_and_in_order_past_the_end_of_the_tags() {
    for start in STARTS {
        for entries in [2, 4, 8] {
            let (mut host, mut device, _) = input_pair(entries, start);
            let mut pair = output_pair(entries, 1, start);
            for mark in 0..40u32 {
                assert_eq!(device.take(), None, "nothing comes before it was pushed");
                host.push(&said(mark)).expect("valid");
                let found = device.take().unwrap_or_else(|| panic!("entry {mark} from {start:x?}"));
                assert_eq!(found[1..15], line(mark)[1..15]);
                device.tell();

                assert_eq!(pair.host.poll(), Ok(None));
                assert!(pair.put(mark));
                assert_eq!(pair.host.poll(), Ok(Some(said(mark))), "entry {mark} from {start:x?}");
            }
            assert_eq!((host.produced(), pair.host.taken()), (start.0 + 40, start.0 + 40));
        }
    }
}

#[test]
fn a_full_input_ring_refuses_and_is_left_alone() {
    for start in STARTS {
        let (ring, consumed, flush) = (view(4 * 16), view(1), view(1));
        let mut host = InputRing::starting_at(ring.clone(), consumed.clone(), Some(flush.clone()), start.0)
            .expect("valid");
        let mut device = DeviceInput::new(ring.clone(), consumed, start.0 as u32, start.1);
        (0..4).for_each(|mark| host.push(&said(mark)).unwrap());
        let image = || -> Vec<u32> { (0..64).map(|dword| ring.load_u32(dword * 4)).collect() };
        let before = image();
        flush.store_u32(0, 77);
        assert_eq!(host.push(&said(4)), Err(TokenRingError::Full { capacity: 4 }));
        assert_eq!((image(), flush.load_u32(0)), (before, 77), "nothing is written");
        // Taking an entry is not enough; the count frees the space.
        assert_eq!(device.take().unwrap()[2], 0);
        assert_eq!(device.take().unwrap()[2], 1);
        assert_eq!(host.free(), Ok(0));
        device.tell();
        assert_eq!(host.free(), Ok(2));
        host.push(&said(4)).expect("valid");
        assert_eq!(flush.load_u32(0), 0, "a push ends in a flush");
        host.push(&said(5)).expect("valid");
        assert_eq!(host.push(&said(6)), Err(TokenRingError::Full { capacity: 4 }));
        assert_eq!((2..6).map(|_| device.take().unwrap()[2]).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }
}

#[test]
fn a_wait_for_room_ends_by_the_clock_or_with_room() {
    let (mut host, mut device, _) = input_pair(2, STARTS[1]);
    let time = Cell::new(0);
    let clock = || {
        time.set(time.get() + 10);
        time.get()
    };
    (0..2).for_each(|mark| host.push_within(&said(mark), &clock, 0).unwrap());
    let refused = TokenRingError::FullTimeout { capacity: 2, waited_ns: 100 };
    assert_eq!(host.push_within(&said(2), &clock, 100), Err(refused));
    let device = Cell::new(Some(&mut device));
    let helping = || {
        if let Some(device) = device.take() {
            assert_eq!(device.take().map(|line| line[2]), Some(0));
            device.tell();
        }
        clock()
    };
    assert_eq!(host.push_within(&said(2), &helping, 1000), Ok(()));
}

#[test]
fn a_count_that_cannot_be_is_an_error() {
    for (first, tag) in STARTS {
        let (mut host, mut device, consumed) = input_pair(4, (first, tag));
        let low = first as u32;
        (0..3).for_each(|mark| host.push(&said(mark)).unwrap());
        device.take();
        device.take();
        device.tell();
        assert_eq!(host.free(), Ok(3));
        // Beyond what was produced, before what was reported earlier, and far away.
        for lie in [4, 1, 0, 0u32.wrapping_sub(1), 1 << 31] {
            let consumed_told = low.wrapping_add(lie);
            consumed.store_u32(0, consumed_told);
            let (least, most) = (low.wrapping_add(2), low.wrapping_add(3));
            let refused = TokenRingError::Consumed { consumed: consumed_told, least, most };
            assert_eq!(host.free(), Err(refused), "from {first:#x} the device says {lie}");
        }
        consumed.store_u32(0, low.wrapping_add(3));
        assert_eq!(host.free(), Ok(4));
    }
}

#[test]
fn the_device_is_told_every_few_entries_and_when_nothing_is_left() {
    let first = STARTS[1].0 as u32;
    let flush = view(1);
    let mut pair = output_pair(8, 3, STARTS[1]);
    pair.host = OutputRing::starting_at(
        pair.ring.clone(),
        pair.consumed.clone(),
        Some(flush.clone()),
        3,
        STARTS[1].0,
    )
    .expect("valid");
    flush.store_u32(0, 77);
    let told = |pair: &OutputPair| pair.consumed.load_u32(0).wrapping_sub(first);
    (0..8).for_each(|mark| assert!(pair.put(mark)));
    assert!(!pair.put(8), "the device does not write over what was not taken");
    for (mark, expected) in (0..8).zip([0, 0, 3, 3, 3, 6, 6, 6]) {
        assert_eq!(pair.host.poll(), Ok(Some(said(mark))));
        assert_eq!(told(&pair), expected, "after {} entries", mark + 1);
        assert_eq!(flush.load_u32(0), if expected == 0 { 77 } else { 0 });
    }
    assert_eq!(pair.host.poll(), Ok(None));
    assert_eq!(told(&pair), 8);
    // An idle host stores nothing through the BAR.
    pair.consumed.store_u32(0, 0xdead_beef);
    assert_eq!(pair.host.poll(), Ok(None));
    assert_eq!(pair.consumed.load_u32(0), 0xdead_beef);
    pair.host.publish_consumed();
    assert_eq!(told(&pair), 8);
}

#[test]
fn lines_kept_for_the_ends_of_requests_are_kept() {
    let mut pair = output_pair(8, 1, (0, 1));
    let one = line(1);
    for _ in 0..5 {
        assert!(pair.device.put(&one, 3));
    }
    assert!(!pair.device.put(&one, 3));
    for _ in 0..3 {
        assert!(pair.device.put(&one, 0));
    }
    assert!(!pair.device.put(&one, 0));
}

#[test]
fn what_does_not_come_is_an_error_after_the_deadline_that_says_what_lies_there() {
    let mut pair = output_pair(2, 1, (0, 1));
    let time = Cell::new(0);
    let clock = || {
        time.set(time.get() + 50);
        time.get()
    };
    let nothing = |number| TakeError::Ring(TokenRingError::Nothing { number, waited_ns: 100 });
    assert_eq!(pair.host.wait(&clock, 100), Err(nothing(0)));
    for mark in 0..3 {
        assert!(pair.put(mark));
        assert_eq!(pair.host.wait(&clock, 100), Ok(said(mark)));
    }
    // Entry 3, tag 4, in line 1, where entry 1, tag 2, was before.
    assert_eq!(pair.host.state(), LineState::Empty);
    assert_eq!(pair.host.wait(&clock, 100), Err(nothing(3)));
    pair.ring.store_u32(64, 4);
    let torn = TakeError::Ring(TokenRingError::Torn { number: 3, trailer: !2, waited_ns: 100 });
    assert_eq!((pair.host.poll(), pair.host.wait(&clock, 100)), (Ok(None), Err(torn)));
    for found in [6, 3, 0xffff_ffff] {
        pair.ring.store_u32(64, found);
        let foreign = TokenRingError::Foreign { number: 3, expected: 4, found, waited_ns: 100 };
        let foreign = TakeError::Ring(foreign);
        assert_eq!((pair.host.poll(), pair.host.wait(&clock, 100)), (Ok(None), Err(foreign)));
    }
    // A late entry is still delivered.
    pair.ring.store_u32(64, 2);
    assert!(pair.put(3));
    assert_eq!(pair.host.wait(&clock, 100), Ok(said(3)));
}

/// A line whose header takes these values, one per read, and keeps the last.
#[derive(Clone)]
struct Changing {
    words: Rc<[Cell<u32>]>,
    headers: Rc<RefCell<Vec<u32>>>,
}

impl Changing {
    fn new(dwords: usize) -> Changing {
        Changing { words: (0..dwords).map(|_| Cell::new(0)).collect(), headers: Rc::default() }
    }

    /// An output ring over the line of entry 0, which holds that entry except for its header.
    fn ring(headers: &[u32]) -> OutputRing<Changing> {
        let memory = Changing::new(32);
        let host = OutputRing::new(memory.clone(), Changing::new(1), None, 1).expect("valid");
        let whole = line(7);
        (1..15).for_each(|dword| memory.store(dword, whole[dword]));
        memory.store(15, !1);
        memory.headers.borrow_mut().extend(headers);
        host
    }
}

impl RingMemory for Changing {
    fn dwords(&self) -> usize {
        self.words.len()
    }
    fn load(&self, dword: usize) -> u32 {
        let mut headers = self.headers.borrow_mut();
        match headers.first().copied().filter(|_| dword == 0) {
            Some(_) if headers.len() > 1 => headers.remove(0),
            Some(last) => last,
            None => self.words[dword].get(),
        }
    }
    fn store(&self, dword: usize, value: u32) {
        self.words[dword].set(value);
    }
    fn fence_loads(&self) {}
    fn fence_stores(&self) {}
}

/// A wait with zero timeout polls twice, then reports the state. An entry that arrives in between is still taken.
#[test]
fn an_entry_that_comes_after_the_last_poll_is_taken() {
    for (headers, comes) in [(&[1][..], true), (&[0, 1], true), (&[0, 0, 1], true), (&[0, 0, 0, 0], false)] {
        let nothing = TokenRingError::Nothing { number: 0, waited_ns: 0 };
        let expected = if comes { Ok(said(7)) } else { Err(TakeError::Ring(nothing)) };
        assert_eq!(Changing::ring(headers).wait(&|| 5, 0), expected, "{headers:?}");
    }
}

/// The header changes after the rest was copied: the copy may be of either entry.
#[test]
fn a_line_that_is_written_over_meanwhile_is_not_taken() {
    assert_eq!(Changing::ring(&[1, 3]).poll(), Ok(None));
    assert_eq!(Changing::ring(&[1, 3]).state(), LineState::Foreign { found: 3 });
    assert_eq!(Changing::ring(&[1, 1]).poll(), Ok(Some(said(7))));
}

#[test]
fn a_line_that_is_no_entry_stays_an_error() {
    let mut pair = output_pair(2, 1, (0, 1));
    let mut nonsense = line(0);
    nonsense[14] = NONSENSE;
    assert!(pair.device.put(&nonsense, 0) && pair.put(1));
    let refused = TakeError::Entry { number: 0, error: Nonsense };
    assert_eq!(refused.to_string(), "entry 0: nonsense");
    assert_eq!((pair.host.poll(), pair.host.poll()), (Err(refused), Err(refused)));
    assert_eq!(pair.host.wait(&|| 0, 0), Err(refused));
    assert_eq!(pair.consumed.load_u32(0), 0, "what was not taken is not counted");
}

#[test]
fn two_threads_lose_nothing() {
    const ENTRIES: u32 = 20_000;
    let (mut host_in, mut device_in, _) = input_pair(16, STARTS[2]);
    let OutputPair { mut host, mut device, .. } = output_pair(16, 5, STARTS[2]);
    // The device echoes what it receives.
    let echo = std::thread::spawn(move || {
        for _ in 0..ENTRIES {
            let backoff = Backoff::new();
            let came = loop {
                match device_in.take() {
                    Some(came) => break came,
                    None => backoff.snooze(),
                }
            };
            device_in.tell();
            let entry = line(came[2]);
            backoff.reset();
            while !device.put(&entry, 0) {
                backoff.snooze();
            }
        }
    });
    let backoff = Backoff::new();
    let (mut pushed, mut taken) = (0, 0);
    while taken < ENTRIES {
        if pushed < ENTRIES && host_in.push(&said(pushed)).is_ok() {
            pushed += 1;
        }
        match host.poll().expect("entries are sound") {
            Some(entry) => {
                assert_eq!(entry, said(taken));
                taken += 1;
                backoff.reset();
            }
            None => backoff.snooze(),
        }
    }
    echo.join().expect("the device's side ends");
}

/// A call by either side.
#[derive(Clone, Copy, Debug)]
enum Call {
    Write,
    Take,
    Tell,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![3 => Just(Call::Write), 3 => Just(Call::Take), 1 => Just(Call::Tell)];
    prop::collection::vec(call, 1..200)
}

proptest! {
    #[test]
    fn any_calls_give_what_a_queue_gives(
        calls in calls(), bits in 1u32..5, every in 1u32..17, start in 0..STARTS.len(),
    ) {
        let (entries, every) = (1usize << bits, every.min(1 << bits));
        let (mut host, mut device, _) = input_pair(entries, STARTS[start]);
        let mut pair = output_pair(entries, every, STARTS[start]);
        // The naive queues: waiting entries, and the number of entries taken that the writer does not know of.
        let (mut to_device, mut device_untold) = (VecDeque::new(), 0);
        let (mut to_host, mut host_untold) = (VecDeque::new(), 0);
        for (mark, call) in (0u32..).zip(calls) {
            match call {
                Call::Write => {
                    let room = to_device.len() + device_untold < entries;
                    prop_assert_eq!(host.push(&said(mark)).is_ok(), room);
                    to_device.extend(room.then_some(mark));
                    let room = to_host.len() + host_untold < entries;
                    prop_assert_eq!(pair.put(mark), room);
                    to_host.extend(room.then_some(mark));
                }
                Call::Take => {
                    let came = device.take();
                    let expected = to_device.pop_front();
                    device_untold += usize::from(expected.is_some());
                    let body = came.map(|came| came[1..15].to_vec());
                    let expected = expected.map(|mark| line(mark)[1..15].to_vec());
                    prop_assert_eq!(body, expected);

                    let expected = to_host.pop_front();
                    prop_assert_eq!(pair.host.poll(), Ok(expected.map(said)));
                    host_untold = match expected {
                        Some(_) if host_untold + 1 < every as usize => host_untold + 1,
                        _ => 0,
                    };
                }
                Call::Tell => {
                    device.tell();
                    device_untold = 0;
                    pair.host.publish_consumed();
                    host_untold = 0;
                }
            }
        }
    }

    #[test]
    fn any_bytes_give_an_answer(dwords in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..6, Just(NONSENSE)], 32)) {
        let mut pair = output_pair(2, 1, (0, 1));
        for (at, value) in dwords.iter().enumerate() {
            pair.ring.store_u32(at * 4, *value);
        }
        let whole = dwords[0] == 1 && dwords[15] == !1;
        prop_assert_eq!(pair.host.poll() == Ok(None), !whole);
        pair.ring.store_u32(0, 1);
        pair.ring.store_u32(60, !1);
        prop_assert_eq!(pair.host.poll().is_ok(), dwords[14] != NONSENSE);
    }
}
