//! Small token rings: every sequence of calls up to a length, every count that can be published, every tag near a
//! wrap.
//!
//! A ring of N lines with its count is in one of few states: how many entries wait (0 to N), how many were taken
//! and not published (0 to N), and where the next line is (modulo N). Each is reached within 3 N calls. So for
//! rings of two lines, sequences of nine calls reach each state and continue from it; for rings of four lines they
//! reach a part of the states.

#[path = "model/said.rs"]
mod said;

use said::{Said, line, said};
use zrt_mem::SharedView;
use zrt_ring::TokenRingError;
use zrt_ring::token_ring::mock::{DeviceInput, DeviceOutput};

type InputRing = zrt_ring::InputRing<Said>;
type OutputRing = zrt_ring::OutputRing<Said>;

/// Numbers of a first entry whose successors pass the end of the tags or of 32 bits, each with its tag by hand.
const STARTS: [(u64, u32); 3] =
    [(0, 1), ((1 << 32) - 4, 0xffff_fffd), (2 * ((1 << 32) - 1) - 2, 0xffff_fffe)];
const CALLS: u32 = 9;

fn view(dwords: usize) -> SharedView {
    let view = SharedView::zeroed(dwords * 4).expect("memory");
    view.fill(0, view.len(), 0xa5);
    view
}

fn whole(view: &SharedView) -> SharedView {
    view.slice(0, view.len())
}

/// The digits of `number` in base 3: the order of the calls.
fn calls(number: u32) -> impl Iterator<Item = u32> {
    (0..CALLS).map(move |at| number / 3u32.pow(at) % 3)
}

/// A queue with room for `capacity`, whose writer learns late what was taken.
struct Naive {
    capacity: usize,
    written: u32,
    taken: u32,
    told: u32,
}

impl Naive {
    fn write(&mut self) -> bool {
        let room = ((self.written - self.told) as usize) < self.capacity;
        self.written += u32::from(room);
        room
    }

    fn take(&mut self) -> Option<u32> {
        (self.taken < self.written).then(|| {
            self.taken += 1;
            self.taken - 1
        })
    }
}

#[test]
fn every_short_sequence_to_the_device_is_what_a_queue_gives() {
    for (first, tag) in STARTS {
        for entries in [2, 4] {
            let (ring, count) = (view(entries * 16), view(1));
            for number in 0..3u32.pow(CALLS) {
                let mut host =
                    InputRing::starting_at(whole(&ring), whole(&count), None, first).expect("valid");
                let mut device = DeviceInput::new(whole(&ring), whole(&count), first as u32, tag);
                let mut naive = Naive { capacity: entries, written: 0, taken: 0, told: 0 };
                for call in calls(number) {
                    match call {
                        0 => {
                            let mark = naive.written;
                            let expected = match naive.write() {
                                true => Ok(()),
                                false => Err(TokenRingError::Full { capacity: entries as u32 }),
                            };
                            assert_eq!(host.push(&said(mark)), expected, "sequence {number} from {first:#x}");
                        }
                        1 => {
                            let line = device.take();
                            assert_eq!(
                                line.map(|line| line[2]),
                                naive.take(),
                                "sequence {number} from {first:#x}"
                            );
                        }
                        _ => {
                            device.tell();
                            naive.told = naive.taken;
                        }
                    }
                }
                let waiting = (naive.told < naive.written).then_some(first + u64::from(naive.told));
                assert_eq!(host.oldest_waiting(), Ok(waiting));
                assert_eq!(host.free(), Ok(entries as u32 - (naive.written - naive.told)));
            }
        }
    }
}

#[test]
fn every_short_sequence_to_the_host_is_what_a_queue_gives() {
    for (first, tag) in STARTS {
        for (entries, every) in [(2, 1), (2, 2), (4, 3)] {
            let (ring, count) = (view(entries * 16), view(1));
            for number in 0..3u32.pow(CALLS) {
                let mut host =
                    OutputRing::starting_at(whole(&ring), whole(&count), None, every, first).expect("valid");
                let mut device = DeviceOutput::new(whole(&ring), whole(&count), first as u32, tag);
                let mut naive = Naive { capacity: entries, written: 0, taken: 0, told: 0 };
                for call in calls(number) {
                    match call {
                        0 => {
                            assert_eq!(
                                device.put(&line(naive.written), 0),
                                naive.write(),
                                "sequence {number} from {first:#x}"
                            );
                        }
                        1 => {
                            let expected = naive.take();
                            let found = host.poll().expect("sound").map(|entry| entry.0[1]);
                            assert_eq!(found, expected, "sequence {number} from {first:#x}");
                            if expected.is_none() || naive.taken - naive.told == every {
                                naive.told = naive.taken;
                            }
                        }
                        _ => {
                            host.publish_consumed();
                            naive.told = naive.taken;
                        }
                    }
                    assert_eq!(count.load_u32(0), (first as u32).wrapping_add(naive.told));
                }
            }
        }
    }
}

/// In every state of a ring of four lines, every possible count is accepted, and no other.
#[test]
fn every_count_that_can_be_told_is_believed_and_no_other() {
    for (first, _) in STARTS {
        for (told, more) in (0..=4u32).flat_map(|told| (0..=4u32).map(move |more| (told, more))) {
            let near = (0..40u32).map(|at| (first as u32).wrapping_add(at).wrapping_sub(20));
            let far = (0..32).map(|bit| (first as u32).wrapping_add((told + 1) << bit));
            for lie in near.chain(far).chain([0, u32::MAX]) {
                let (ring, count) = (view(64), view(1));
                let mut host = InputRing::starting_at(ring, whole(&count), None, first).expect("valid");
                (0..told).for_each(|mark| host.push(&said(mark)).expect("room"));
                count.store_u32(0, (first as u32).wrapping_add(told));
                assert_eq!(host.free(), Ok(4));
                (0..more).for_each(|mark| host.push(&said(mark)).expect("room"));
                count.store_u32(0, lie);
                // Of 2^32 numbers, those from the last one reported to the last one produced.
                let believed = (0..=more).find(|taken| (first as u32).wrapping_add(told + taken) == lie);
                let expected = match believed {
                    Some(taken) => Ok(4 - (more - taken)),
                    None => {
                        let least = (first as u32).wrapping_add(told);
                        Err(TokenRingError::Consumed { consumed: lie, least, most: least.wrapping_add(more) })
                    }
                };
                assert_eq!(host.free(), expected, "{told} and {more} from {first:#x}: {lie:#x}");
            }
        }
    }
}
