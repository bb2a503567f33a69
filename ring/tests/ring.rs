//! The producer against the model of the other side: wrap, 2^32, lag, refusal, random sequences of calls.

use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use zrt_mem::{DwordLen, GpuVa, SharedView};
use zrt_pm4::packet::{dispatch_direct, event_write, nop, release_mem, write_data};
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{KernelParameters, KernelState, Opcode, Register};
use zrt_ring::mock::{CommandProcessor, Mapping, ReportForm, Violation};
use zrt_ring::{
    CommandRing, Diagnosis, EventSlot, Fence, FenceSignal, Graph, GraphError, GraphRecorder, ReadProgress,
    RingError, Timeline, Watchdog,
};

const RING_BYTES: usize = 4096;
const RING_DWORDS: usize = RING_BYTES / 4;
const FENCE: GpuVa = GpuVa(0x7f00_0000_1000);
const GRAPH: GpuVa = GpuVa(0x7f00_0010_0000);

/// Both sides over the same memory.
struct Pair {
    ring: SharedView,
    pointers: [SharedView; 3],
    producer: CommandRing,
    consumer: CommandProcessor,
}

/// A pair whose pointers begin at `start`.
fn pair(start: u64) -> Pair {
    let ring = SharedView::zeroed(RING_BYTES).expect("memory");
    // Old one-dword NOPs everywhere: valid packets for a reader that reads unwritten slots.
    for slot in 0..RING_DWORDS {
        ring.store_u32(slot * 4, 0xffff_1000);
    }
    let [write, read, doorbell] = [
        SharedView::zeroed(8).expect("memory"),
        SharedView::zeroed(8).expect("memory"),
        SharedView::zeroed(8).expect("memory"),
    ];
    write.store_u64(0, start);
    read.store_u64(0, start);
    doorbell.store_u64(0, start);
    let producer = CommandRing::new(ring.clone(), write.clone(), read.clone(), doorbell.clone())
        .expect("a ring of one page");
    let consumer = CommandProcessor::new(ring.clone(), write.clone(), read.clone(), doorbell.clone());
    Pair { ring, pointers: [write, read, doorbell], producer, consumer }
}

/// A NOP of `dwords` that carries `mark`.
fn marked_nop(dwords: usize, mark: u32) -> Vec<u32> {
    let payload = vec![mark; dwords - 1];
    let mut words = vec![0; dwords];
    let packet = nop::Repr { header_flags: zrt_pm4::HeaderFlags::empty(), payload: &payload };
    packet.emit(&mut words).expect("a short packet");
    words
}

fn kernel() -> KernelState {
    KernelState::new(&KernelParameters {
        code_address: 0x7f00_0020_0000,
        rsrc1: 0,
        rsrc2: 3 << 1,
        rsrc3: 0,
        workgroup: [32, 1, 1],
        limits: ResourceLimits::default(),
        wave: WaveSize::Wave32,
    })
    .expect("a launchable kernel")
}

/// A graph of `dispatches`, in memory that `consumer` knows.
fn graph(dispatches: usize, consumer: &mut CommandProcessor) -> Graph {
    let mut recorder = GraphRecorder::new(DwordLen(10 + 49 * dispatches as u32)).expect("room");
    for at in 0..dispatches as u64 {
        recorder.dispatch(&kernel(), GpuVa(0x1000 + at), [1, 1, 1]).expect("room");
        recorder.barrier().expect("room");
    }
    let view = SharedView::zeroed(recorder.len().bytes().0 as usize).expect("memory");
    consumer.map(Mapping { address: GRAPH, view: view.clone() });
    recorder.finish(&view, GRAPH).expect("a sound graph")
}

fn fence(consumer: &mut CommandProcessor) -> Fence {
    let view = SharedView::zeroed(256).expect("memory");
    consumer.map(Mapping { address: FENCE, view: view.clone() });
    Fence::new(view, FENCE).expect("an aligned fence")
}

#[test]
fn a_ring_that_no_queue_can_have_is_refused() {
    let word = SharedView::zeroed(8).expect("memory");
    let refused = |ring, write, read, doorbell| CommandRing::new(ring, write, read, doorbell).unwrap_err();
    for bytes in [0, 2048, 4096 + 256, 12288] {
        let ring = SharedView::zeroed(bytes).expect("memory");
        assert_eq!(
            refused(ring, word.clone(), word.clone(), word.clone()),
            RingError::RingLength { bytes, least: 4096 }
        );
    }
    let ring = SharedView::zeroed(4096).expect("memory");
    let short = SharedView::zeroed(4).expect("memory");
    assert_eq!(
        refused(ring.clone(), word.clone(), word.clone(), short),
        RingError::ViewLength { name: "doorbell", bytes: 4 }
    );
    let ahead = SharedView::zeroed(8).expect("memory");
    ahead.store_u64(0, 1);
    assert_eq!(
        refused(ring.clone(), word.clone(), ahead.clone(), word.clone()),
        RingError::StartPointers { read: 1, write: 0 }
    );
    ahead.store_u64(0, 1024);
    assert_eq!(refused(ring, ahead, word.clone(), word), RingError::StartPointers { read: 0, write: 1024 });
}

#[test]
fn a_ring_starts_where_2_to_the_62_dwords_are_left() {
    const LAST: u64 = 0xbfff_ffff_ffff_ffff;
    let start = |pointer: u64| {
        let ring = SharedView::zeroed(RING_BYTES).expect("memory");
        let word = SharedView::zeroed(8).expect("memory");
        word.store_u64(0, pointer);
        CommandRing::new(ring, word.clone(), word.clone(), word).map(|ring| ring.write_pointer())
    };
    assert_eq!(start(LAST), Ok(LAST));
    assert_eq!(start(LAST + 1), Err(RingError::StartPointers { read: LAST + 1, write: LAST + 1 }));
}

/// A full ring of one-dword packets, each with a fence, and a read pointer that is never reported. A fence proves all
/// that came before it, but for less than a share of 16 dwords.
#[test]
fn a_fence_anywhere_in_a_full_ring_proves_what_came_before_it() {
    let mut pair = pair(0);
    for value in 1..RING_DWORDS as u64 {
        pair.producer.submit(&marked_nop(1, 0)).expect("one dword stays free");
        pair.producer.note_fence(value);
    }
    for value in 1..RING_DWORDS as u64 {
        pair.producer.fence_reached(value);
        let proved = pair.producer.read_pointer().expect("nothing is reported");
        assert!(proved <= value && value - proved < 16, "{proved} of {value}");
    }
}

#[test]
fn what_was_submitted_is_what_the_other_side_sees() {
    let mut pair = pair(0);
    let submission = pair.producer.submit(&marked_nop(5, 7)).unwrap();
    assert_eq!((submission.start, submission.end), (0, 5));
    let [write, _, doorbell] = pair.pointers;
    assert_eq!((write.load_u64(0), doorbell.load_u64(0)), (5, 5));
    assert_eq!(pair.ring.load_u32(5 * 4), 0, "the next header slot holds no packet");
    let mut seen = Vec::new();
    assert_eq!(pair.consumer.step(9, &mut |packet| seen.push(packet.to_vec())), Ok(1));
    assert_eq!(seen, [marked_nop(5, 7)]);
    assert_eq!(pair.producer.read_pointer(), Ok(5));
    assert_eq!(pair.producer.free_dwords(), Ok(RING_DWORDS - 1));
}

#[test]
fn one_dword_stays_free_and_a_full_ring_is_left_alone() {
    let mut pair = pair(0);
    assert_eq!(pair.producer.capacity_dwords(), 1023);
    let too_long = RingError::TooLong { dwords: 1024, capacity: 1023 };
    assert_eq!(pair.producer.submit(&marked_nop(1024, 1)), Err(too_long));
    assert_eq!(pair.producer.submit(&[]), Err(RingError::Empty));
    pair.producer.submit(&marked_nop(1023, 1)).unwrap();
    let before: Vec<u32> = (0..RING_DWORDS).map(|slot| pair.ring.load_u32(slot * 4)).collect();
    assert_eq!(pair.producer.submit(&[0xffff_1000]), Err(RingError::Full { needed: 1, free: 0 }));
    let after: Vec<u32> = (0..RING_DWORDS).map(|slot| pair.ring.load_u32(slot * 4)).collect();
    assert_eq!(before, after);
    assert_eq!(pair.pointers[2].load_u64(0), 1023, "no doorbell for what was refused");
    assert_eq!(pair.consumer.step(1, &mut |_| {}), Ok(1));
    pair.producer.submit(&[0xffff_1000]).unwrap();
    assert_eq!(pair.producer.counters().submissions, 2);
}

#[test]
fn what_was_submitted_can_be_looked_at_and_is_counted() {
    let mut pair = pair(1022);
    let packets = [marked_nop(3, 1), vec![0xc000_4600, 0x407], marked_nop(4, 2)];
    let words = packets.concat();
    let submission = pair.producer.submit(&words).unwrap();
    // Across the ring's end, from the first dword and from one inside.
    for from in 0..words.len() {
        let mut seen = vec![7; words.len() - from];
        pair.producer.peek(submission.start + from as u64, &mut seen);
        assert_eq!(seen, words[from..]);
    }
    let mut launch = [0; 5];
    dispatch_direct::Repr::wave32([1, 1, 1]).emit(&mut launch).expect("five dwords");
    pair.producer.submit(&launch).unwrap();
    let counters = pair.producer.counters();
    assert_eq!((counters.submissions, counters.packets, counters.dispatches), (2, 4, 1));
    assert_eq!((counters.ring_dwords, counters.indirect_dwords), (9 + 5, 0));
}

#[test]
fn torn_words_are_not_submitted() {
    let mut pair = pair(0);
    let error = pair.producer.submit(&[0xc000_4600]).unwrap_err();
    assert!(matches!(error, RingError::NotPackets(_)), "{error}");
    assert_eq!(pair.producer.write_pointer(), 0);
}

#[test]
fn packets_straddle_the_end_and_pointers_pass_2_to_the_32() {
    for start in [0, (1 << 32) - 3000, u64::from(u32::MAX), 1 << 40] {
        for form in [ReportForm::Full, ReportForm::Low32, ReportForm::Wrapped] {
            if form != ReportForm::Full && start >= 1 << 40 {
                continue; // the word in memory at the start is already beyond what these forms can report
            }
            let mut pair = pair(start);
            pair.consumer.report_form = form;
            let mut straddled = 0;
            for at in 0..2000u32 {
                let packet = marked_nop(1 + at as usize % 37, at);
                let submission = pair.producer.submit(&packet).unwrap();
                pair.producer.note_fence(u64::from(at) + 1);
                straddled += u32::from(submission.start / 1024 != (submission.end - 1) / 1024);
                let mut seen = Vec::new();
                assert_eq!(pair.consumer.step(1, &mut |packet| seen.push(packet.to_vec())), Ok(1));
                assert_eq!(seen, [packet]);
                // What the shorter forms do not report.
                pair.producer.fence_reached(u64::from(at) + 1);
            }
            assert!(straddled > 20, "only {straddled} packets straddled the end");
            assert!(pair.producer.write_pointer() > start + 36_000);
        }
    }
}

#[test]
fn a_read_pointer_that_lags_only_delays() {
    let mut pair = pair(0);
    pair.consumer.report_block = 512;
    let mut refused = 0;
    for at in 0..500u32 {
        let packet = marked_nop(100, at);
        while let Err(error) = pair.producer.submit(&packet) {
            assert!(matches!(error, RingError::Full { .. }), "{error}");
            refused += 1;
            assert_eq!(pair.consumer.step(1, &mut |_| {}), Ok(1));
        }
    }
    assert!(refused > 100);
}

/// The word in memory stays unchanged, or lags by more than two rings. The proof frees space, and no more than it
/// proves.
#[test]
fn fences_prove_what_the_read_pointer_does_not_tell() {
    for lag in [2500, u64::MAX] {
        let mut pair = pair(0);
        let mut ends = Vec::new();
        let (mut reached, mut refused) = (0, 0);
        for at in 0..1000u32 {
            let packet = marked_nop(1 + at as usize % 90, at);
            loop {
                pair.pointers[1].store_u64(0, pair.consumer.read().saturating_sub(lag));
                match pair.producer.submit(&packet) {
                    Ok(submission) => {
                        ends.push(submission.end);
                        pair.producer.note_fence(ends.len() as u64);
                        break;
                    }
                    Err(error) => assert!(matches!(error, RingError::Full { .. }), "{error}"),
                }
                // The same state of the fence twice: it proves nothing the second time.
                refused += 1;
                pair.producer.fence_reached(reached);
                assert!(pair.producer.read_pointer().unwrap() <= pair.consumer.read());
                assert_eq!(pair.consumer.step(7, &mut |_| {}), Ok(7));
                reached = ends.iter().filter(|end| **end <= pair.consumer.read()).count() as u64;
                pair.producer.fence_reached(reached);
            }
        }
        assert!(refused > 100, "{refused}");
        // All done: the latest fence is exact.
        pair.consumer.step(usize::MAX, &mut |_| {}).unwrap();
        pair.pointers[1].store_u64(0, 0);
        pair.producer.fence_reached(ends.len() as u64);
        assert_eq!(pair.producer.free_dwords(), Ok(RING_DWORDS - 1));
        // A false value stays an error.
        pair.pointers[1].store_u64(0, u64::MAX);
        assert!(matches!(pair.producer.free_dwords(), Err(RingError::ReadPointerAhead { .. })));
    }
}

#[test]
fn a_read_pointer_ahead_of_the_write_pointer_is_an_error() {
    let mut pair = pair(0);
    pair.producer.submit(&marked_nop(1000, 1)).unwrap();
    pair.pointers[1].store_u64(0, 1001);
    let ahead = RingError::ReadPointerAhead { read: 1001, write: 1000 };
    assert_eq!(pair.producer.submit(&marked_nop(100, 1)), Err(ahead));
    assert_eq!(pair.producer.read_pointer(), Err(ahead));
    let view = SharedView::zeroed(8).expect("memory");
    let observation = pair.producer.observe(0, &Fence::new(view, FENCE).unwrap(), 1);
    assert_eq!(Watchdog::new(1).observe(observation), Diagnosis::Impossible { observation });
}

#[test]
fn waits_for_room_end_by_the_clock() {
    let mut pair = pair(0);
    pair.producer.submit(&marked_nop(1000, 1)).unwrap();
    let time = Cell::new(0u64);
    let clock = || {
        time.set(time.get() + 1000);
        time.get()
    };
    let error = pair.producer.submit_within(&marked_nop(24, 2), &clock, 5000).unwrap_err();
    assert_eq!(error, RingError::Timeout { needed: 24, free: 23, waited_ns: 5000 });

    let consumer = Cell::new(Some(pair.consumer));
    let consuming = || {
        if let Some(mut consumer) = consumer.take() {
            consumer.step(1, &mut |_| {}).unwrap();
        }
        clock()
    };
    pair.producer.submit_within(&marked_nop(24, 2), &consuming, 5000).unwrap();
    let too_long = RingError::TooLong { dwords: 5000, capacity: 1023 };
    assert_eq!(pair.producer.wait_for_room(5000, &clock, u64::MAX), Err(too_long));
}

#[test]
fn a_graph_is_one_submission_and_its_fence_comes_after_its_packets() {
    let mut pair = pair(0);
    let fence = fence(&mut pair.consumer);
    let mut timeline = Timeline::new(fence.clone());
    let graph = graph(3, &mut pair.consumer);
    assert_eq!((graph.dispatches(), graph.part_count()), (3, 1));
    assert_eq!(graph.packets(), 2 + 3 * (8 + 2));
    for replay in 1..=500u64 {
        let value = timeline.advance().unwrap();
        let doorbell_before = pair.pointers[2].load_u64(0);
        let submission =
            pair.producer.submit_graph(&graph, FenceSignal::new(fence.address(), value)).unwrap();
        assert_eq!(pair.pointers[2].load_u64(0), submission.end);
        assert_eq!(doorbell_before, submission.start);
        let first = replay == 1;
        assert_eq!(submission.end - submission.start, if first { 20 } else { 12 });
        let mut opcodes = Vec::new();
        let mut see = |packet: &[u32]| opcodes.push(zrt_pm4::Header(packet[0]).opcode());
        // Everything except the fence: the value must not be there yet.
        assert_eq!(pair.consumer.step(if first { 2 } else { 1 }, &mut see), Ok(if first { 2 } else { 1 }));
        assert_eq!(timeline.completed(), Ok(value - 1));
        assert_eq!(pair.consumer.step(9, &mut see), Ok(1));
        assert_eq!(timeline.completed(), Ok(value));
        let count = |opcode| opcodes.iter().filter(|found| **found == opcode).count();
        assert_eq!(count(Opcode::DISPATCH_DIRECT), 3);
        assert_eq!(count(Opcode::INDIRECT_BUFFER), 1);
        assert_eq!(count(Opcode::RELEASE_MEM), 1);
        assert_eq!(opcodes.last(), Some(&Opcode::RELEASE_MEM));
        assert_eq!(opcodes.len() as u64, graph.packets() + if first { 3 } else { 2 });
    }
    let counters = pair.producer.counters();
    assert_eq!(counters.submissions, 500);
    assert_eq!(counters.dispatches, 1500);
    assert_eq!(counters.packets, 500 * (graph.packets() + 2) + 1);
    assert_eq!(counters.ring_dwords, 500 * 12 + 8);
    assert_eq!(counters.indirect_dwords, 500 * (10 + 3 * 49));
}

#[test]
fn a_graph_in_memory_is_the_recipe() {
    let mut recorder = GraphRecorder::new(DwordLen(64)).unwrap();
    recorder.dispatch(&kernel(), GpuVa(0x7f_1234_5678), [40, 2, 1]).unwrap();
    let view = SharedView::zeroed(64 * 4).expect("memory");
    view.fill(0, 64 * 4, 0xa5);
    recorder.finish(&view, GRAPH).unwrap();
    let words: Vec<u32> = (0..49).map(|at| view.load_u32(at * 4)).collect();
    // Flush, full acquire (hardware reference §4.5, §4.8).
    assert_eq!(words[..10], [0xc000_4600, 0x407, 0xc006_5800, 0, 0xffff_ffff, 0xff_ffff, 0, 0, 0xa, 0xc3b1]);
    // User data and launch (hardware reference §4.3, §4.4).
    let user_data = [0xc003_7600, 0x240, 0x1234_5678, 0x7f, 40];
    assert_eq!(words[39..44], user_data);
    assert_eq!(words[44..], [0xc003_1502, 40, 2, 1, 0x8005]);
    assert_eq!(view.load_u32(49 * 4), 0xa5a5_a5a5, "nothing behind the graph is touched");
}

#[test]
fn graphs_that_would_harm_are_refused() {
    let memory = SharedView::zeroed(4096).expect("memory");
    let recorder = GraphRecorder::new(DwordLen(256)).unwrap();
    assert_eq!(recorder.finish(&memory, GRAPH).unwrap_err(), GraphError::Empty);
    assert!(matches!(GraphRecorder::new(DwordLen(9)), Err(GraphError::Emit(_))));

    let mut recorder = GraphRecorder::new(DwordLen(256)).unwrap();
    recorder.dispatch(&kernel(), GpuVa(0), [1, 1, 1]).unwrap();
    let short = SharedView::zeroed(8).expect("memory");
    assert_eq!(
        recorder.finish(&short, GRAPH).unwrap_err(),
        GraphError::MemoryLength { needed: 49 * 4, given: 8 }
    );
    assert_eq!(recorder.finish(&memory, GpuVa(2)).unwrap_err(), GraphError::Misaligned(GpuVa(2)));
    let end = GpuVa(u64::MAX - 3);
    assert_eq!(
        recorder.finish(&memory, end).unwrap_err(),
        GraphError::AddressRange { address: end, bytes: 49 * 4 }
    );
    let scratch = zrt_pm4::packet::set_sh_reg::Repr {
        header_flags: zrt_pm4::HeaderFlags::empty(),
        first: Register::TMPRING_SIZE,
        values: &[0],
    };
    recorder.packet(&zrt_pm4::packet::Repr::SetShReg(scratch)).unwrap();
    assert!(matches!(recorder.finish(&memory, GRAPH), Err(GraphError::Lint(_))));
    recorder.clear().unwrap();
    let bare = dispatch_direct::Repr::wave32([1, 1, 1]);
    recorder.packet(&zrt_pm4::packet::Repr::DispatchDirect(bare)).unwrap();
    assert!(matches!(recorder.finish(&memory, GRAPH), Err(GraphError::Lint(_))));
}

#[test]
fn an_event_follows_the_fence() {
    let mut pair = pair(0);
    let fence = fence(&mut pair.consumer);
    let page = SharedView::zeroed(4096).expect("memory");
    pair.consumer.map(Mapping { address: GpuVa(0x7f00_0000_8000), view: page.clone() });
    let graph = graph(1, &mut pair.consumer);
    let event = EventSlot { address: GpuVa(0x7f00_0000_8018), event_id: 3 };
    let signal = FenceSignal::new(fence.address(), 1).with_event(event);
    pair.producer.submit_graph(&graph, signal).unwrap();
    assert_eq!(pair.consumer.step(3, &mut |_| {}), Ok(3));
    assert_eq!((fence.value(), page.load_u32(0x18)), (1, 0));
    assert_eq!(pair.consumer.step(1, &mut |_| {}), Ok(1));
    assert_eq!(page.load_u32(0x18), 3);
    let counters = pair.producer.counters();
    assert_eq!(counters.packets, graph.packets() + 4, "acquire, call, fence and event");
}

#[test]
fn a_watchdog_over_a_queue_that_stops() {
    let mut pair = pair(0);
    let fence = fence(&mut pair.consumer);
    let graph = graph(1, &mut pair.consumer);
    let mut watchdog = Watchdog::new(1000);
    assert_eq!(watchdog.observe(pair.producer.observe(0, &fence, 0)), Diagnosis::Idle);
    pair.producer.submit_graph(&graph, FenceSignal::new(fence.address(), 1)).unwrap();
    assert_eq!(watchdog.observe(pair.producer.observe(10, &fence, 1)), Diagnosis::Running { quiet_ns: 0 });
    let stuck = watchdog.observe(pair.producer.observe(2000, &fence, 1));
    assert!(matches!(stuck, Diagnosis::Stuck { read: ReadProgress::None, quiet_ns: 1990, .. }), "{stuck}");
    pair.consumer.step(2, &mut |_| {}).unwrap();
    watchdog.observe(pair.producer.observe(3000, &fence, 1));
    let stuck = watchdog.observe(pair.producer.observe(5000, &fence, 1));
    assert!(matches!(stuck, Diagnosis::Stuck { read: ReadProgress::Part, .. }), "{stuck}");
    pair.consumer.step(1, &mut |_| {}).unwrap();
    assert_eq!(watchdog.observe(pair.producer.observe(5010, &fence, 1)), Diagnosis::Idle);
}

#[test]
fn the_model_notices_a_producer_that_breaks_the_rules() {
    let mut pair = pair(100);
    let [write, _, doorbell] = pair.pointers;
    doorbell.store_u64(0, 105);
    assert_eq!(
        pair.consumer.step(1, &mut |_| {}),
        Err(Violation::DoorbellWithoutPointer { doorbell: 105, write_pointer: 100 })
    );
    write.store_u64(0, 105);
    pair.ring.store_u32(400, 0);
    assert!(matches!(pair.consumer.step(1, &mut |_| {}), Err(Violation::NotPackets(_))));
    doorbell.store_u64(0, 104);
    assert_eq!(
        pair.consumer.step(1, &mut |_| {}),
        Err(Violation::DoorbellBackwards { before: 105, now: 104 })
    );
    write.store_u64(0, 1124);
    doorbell.store_u64(0, 1124);
    assert_eq!(pair.consumer.step(1, &mut |_| {}), Err(Violation::Overrun { read: 100, write: 1124 }));
}

#[test]
fn a_second_thread_that_runs_ahead_of_the_write_pointer_sees_no_torn_packet() {
    let Pair { mut producer, mut consumer, .. } = pair((1 << 32) - 500);
    // Packets of equal length in which every body dword is the packet's number: a torn one mixes two numbers.
    const DWORDS: usize = 9;
    const PACKETS: u32 = 200_000;
    let reader = std::thread::spawn(move || {
        let (mut early, mut taken) = (0u32, 0u32);
        while taken < PACKETS {
            if let Some(packet) = consumer.peek_beyond(consumer.read(), DWORDS) {
                assert_eq!(packet, marked_nop(DWORDS, taken), "torn packet {taken}");
                early += 1;
            }
            consumer
                .step(usize::MAX, &mut |packet| {
                    assert_eq!(packet, marked_nop(DWORDS, taken));
                    taken += 1;
                })
                .expect("the producer keeps the rules");
        }
        early
    });
    let start = std::time::Instant::now();
    let clock = || start.elapsed().as_nanos() as u64;
    for mark in 0..PACKETS {
        producer.submit_within(&marked_nop(DWORDS, mark), &clock, 20_000_000_000).expect("room in time");
    }
    let early = reader.join().expect("no torn packet");
    assert!(early > 0, "the reader never looked ahead");
}

/// One call of a random sequence.
#[derive(Clone, Debug)]
enum Call {
    Packets(Vec<usize>),
    Graph,
    Step(usize),
    Lag(u64),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => proptest::collection::vec(1..200usize, 1..5).prop_map(Call::Packets),
        2 => Just(Call::Graph),
        4 => (0..6usize).prop_map(Call::Step),
        1 => prop_oneof![Just(1u64), 1..2000u64].prop_map(Call::Lag),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_sequence_of_calls_keeps_order_and_never_overruns(
        start in prop_oneof![Just(0u64), 0..5000u64, (1u64 << 32) - 3000..(1u64 << 32) + 100],
        form in prop_oneof![Just(ReportForm::Full), Just(ReportForm::Low32), Just(ReportForm::Wrapped)],
        calls in proptest::collection::vec(call(), 1..120),
    ) {
        let mut pair = pair(start);
        pair.consumer.report_form = form;
        let fence = fence(&mut pair.consumer);
        let mut timeline = Timeline::new(fence.clone());
        let graph = graph(1, &mut pair.consumer);
        let mut expected: VecDeque<Vec<u32>> = VecDeque::new();
        let mut fresh = true;
        // The shorter forms report too little after their first wrap: a fence after every submission proves the
        // rest.
        let proves = form != ReportForm::Full;
        let mut ends = Vec::new();
        let reach = |pair: &mut Pair, ends: &[u64]| {
            let reached = ends.iter().filter(|end| **end <= pair.consumer.read()).count();
            pair.producer.fence_reached(reached as u64);
            1023 - (pair.producer.write_pointer() - pair.producer.read_pointer().expect("no lie")) as usize
        };
        for (mark, call) in (0u32..).zip(calls) {
            let free = match proves {
                true => reach(&mut pair, &ends),
                false => 1023 - (pair.producer.write_pointer() - pair.consumer.told()) as usize,
            };
            let truly_free = 1023 - (pair.producer.write_pointer() - pair.consumer.read()) as usize;
            prop_assert!(free <= truly_free);
            prop_assert!(truly_free < 1023 || !proves || free == 1023);
            match call {
                Call::Packets(lengths) => {
                    let packets: Vec<_> = lengths.iter().map(|dwords| marked_nop(*dwords, mark)).collect();
                    let words = packets.concat();
                    let submitted = pair.producer.submit(&words);
                    if words.len() <= free {
                        let submission = submitted.expect("there is room");
                        ends.push(submission.end);
                        pair.producer.note_fence(ends.len() as u64);
                        prop_assert_eq!(submission.end - submission.start, words.len() as u64);
                        expected.extend(packets);
                    } else {
                        prop_assert_eq!(submitted, Err(RingError::Full { needed: words.len(), free }));
                    }
                }
                Call::Graph => {
                    let signal = FenceSignal::new(fence.address(), timeline.last() + 1);
                    let submitted = pair.producer.submit_graph(&graph, signal);
                    let needed = if fresh { 20 } else { 12 };
                    if needed <= free {
                        ends.push(submitted.expect("there is room").end);
                        pair.producer.note_fence(ends.len() as u64);
                        timeline.advance().expect("values left");
                        if fresh {
                            expected.push_back(vec![0xc006_5800]);
                        }
                        expected.push_back(vec![0xc002_3f00]);
                        expected.push_back(vec![0xc006_4900]);
                        fresh = false;
                    } else {
                        prop_assert_eq!(submitted, Err(RingError::Full { needed, free }));
                    }
                }
                Call::Step(packets) => {
                    let mut inside_graph = 0;
                    let taken = pair.consumer.step(packets, &mut |packet| {
                        if inside_graph > 0 {
                            inside_graph -= 1;
                            return;
                        }
                        let wanted = expected.pop_front().expect("nothing is read that was not submitted");
                        assert_eq!(packet[..wanted.len()], wanted[..]);
                        if packet[0] == 0xc002_3f00 {
                            inside_graph = graph.packets();
                        }
                    });
                    prop_assert!(taken.is_ok(), "{:?}", taken);
                }
                Call::Lag(block) => pair.consumer.report_block = block,
            }
            prop_assert!(timeline.completed().is_ok());
        }
        pair.consumer.report_block = 1;
        pair.consumer.step(usize::MAX, &mut |_| {}).expect("the rest is packets");
        prop_assert_eq!(timeline.completed(), Ok(timeline.last()));
        if proves {
            reach(&mut pair, &ends);
        }
        prop_assert_eq!(pair.producer.free_dwords(), Ok(1023));
    }
}

#[test]
fn any_packet_of_the_lower_crate_passes_through() {
    let mut pair = pair(1020);
    let view = SharedView::zeroed(64).expect("memory");
    pair.consumer.map(Mapping { address: GpuVa(0x1000), view: view.clone() });
    let mut words = [0; 15];
    let mut writer = zrt_pm4::Writer::new(&mut words);
    writer.write_data(&write_data::Repr::memory(0x1000, &[1])).unwrap();
    writer.event_write(&event_write::Repr::CS_PARTIAL_FLUSH).unwrap();
    writer.release_mem(&release_mem::Repr::fence(0x1008, 77)).unwrap();
    assert_eq!(writer.left(), 0);
    pair.producer.submit(&words).unwrap();
    assert_eq!(pair.consumer.step(3, &mut |_| {}), Ok(3));
    assert_eq!(view.load_u64(8), 77);
    assert_eq!(pair.producer.counters().packets, 3);
}
