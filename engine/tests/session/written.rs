//! What a session writes for its device, and where.

use crate::played::{CONTEXT, LINE, PAGES_PER_SLOT, Played, device, finished, options, preempted, token};
use zrt_engine::memory_plan::AllocationId::{
    Consumed, Control, Extras, HostPages, Parameters, Stops, Tokens,
};
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Mode, Request, SessionOptions};
use zrt_kmd::syscalls::Protection;
use zrt_kmd::{Mapping, Topology};
use zrt_protocol::FinishReason;

/// f32 bits of 1.
const ONE: u32 = 0x3f80_0000;
/// A place for a stop token that none has.
const NONE: u32 = u32::MAX;

/// The control words of some slots; all other slots have none.
fn control(slots: &[(usize, [u32; 5])]) -> Vec<u32> {
    let mut lines = vec![0; 64 * LINE];
    for (slot, words) in slots {
        lines[slot * LINE..][..5].copy_from_slice(words);
    }
    lines
}

/// The device's page tables of three slots.
fn page_table(slots: [&[u32]; 3]) -> Vec<u32> {
    let slot = |pages: &[u32]| (0..PAGES_PER_SLOT).map(|at| pages.get(at).copied().unwrap_or(0)).collect();
    slots.into_iter().map(slot).collect::<Vec<Vec<u32>>>().concat()
}

/// In the third slot, so that nothing lies at its table's beginning.
#[test]
fn a_request_is_written_where_its_slot_is_read() {
    let mut played = Played::new(&options());
    for first in [4, 8] {
        played.submit(&[first], 1);
    }
    let sampling =
        SamplingOptions { log_probabilities: Some(2), seed: 0x1234_0000_5678, ..SamplingOptions::default() };
    let asked = Request { prompt: &[5, 6, 7], tokens_max: 40, sampling, stops: &[9, 11] };
    played.session.submit(&asked).unwrap();

    let tokens: Vec<u32> =
        (0..3).flat_map(|slot| played.dwords(Tokens, slot * CONTEXT as usize, 1)).collect();
    assert_eq!(tokens, [4, 8, 5]);
    assert_eq!(played.dwords(Tokens, 2 * CONTEXT as usize, 3), [5, 6, 7]);
    let stops = [[NONE; 16].as_slice(), &[9, 11, NONE, NONE, NONE, NONE, NONE, NONE]].concat();
    assert_eq!(played.dwords(Stops, 0, 24), stops);
    // 136 dwords for each slot, the fifth of which is the number of most likely tokens.
    let mut extras = vec![0; 64 * 136];
    extras[2 * 136 + 4] = 2;
    assert_eq!(played.all(Extras), extras);
    // Two tokens fill no second page; of the third request's three pages one is granted ahead.
    assert_eq!(played.all(HostPages), page_table([&[0], &[1], &[2, 3]]));
    let words = [(0, [0, 0, 0, 1, 1]), (1, [0, 0, 0, 1, 2]), (2, [0, 0, 0, 2, 3])];
    assert_eq!(played.all(Control), control(&words));
    assert_eq!(played.sent(1), [2, 0x0101, 2, 1, 2, 0, 0, 0, 0, 0, 0, ONE, ONE, 0, 0, !2]);
    assert_eq!(
        played.sent(2),
        [3, 0x0201, 3, 3, 43, 0, 0x5678, 0x1234, 0, 0, 0, ONE, ONE, 0, 4, !3],
        "3 + 40 tokens, with the most likely ones"
    );
    assert_eq!(played.sent(3), [0; 16]);
}

/// A seventeenth token is known: the page of the next sixteen is granted.
#[test]
fn pages_are_granted_a_page_ahead_of_the_tokens() {
    let mut played = Played::new(&options());
    for _ in 0..3 {
        played.submit(&[5, 6, 7], 40);
    }
    let before = page_table([&[0, 1], &[2, 3], &[4, 5]]);
    played.tell_tokens((2, 3), 3..16);
    assert_eq!(played.all(HostPages), before);
    played.tell_tokens((2, 3), 16..17);
    assert_eq!(played.all(HostPages), page_table([&[0, 1], &[2, 3], &[4, 5, 6]]));
    let words = [(0, [0, 0, 0, 2, 1]), (1, [0, 0, 0, 2, 2]), (2, [0, 0, 0, 3, 3])];
    assert_eq!(played.all(Control), control(&words));
}

/// Dwords of a control line: cancel, preempt, hold, pages, the request that they are for.
#[test]
fn each_control_word_names_the_request() {
    let mut played = Played::new(&options());
    let handles = [0; 3].map(|_| played.submit(&[5, 6, 7], 1));
    let granted = |slot: usize, [cancel, preempt, hold]: [u32; 3]| {
        let mut words = [(0, [0, 0, 0, 1, 1]), (1, [0, 0, 0, 1, 2]), (2, [0, 0, 0, 1, 3])];
        words[slot].1[..3].copy_from_slice(&[cancel, preempt, hold]);
        control(&words)
    };
    played.session.hold(handles[1], true).unwrap();
    assert_eq!(played.all(Control), granted(1, [0, 0, 2]));
    played.session.hold(handles[1], false).unwrap();
    assert_eq!(played.all(Control), granted(1, [0, 0, 0]));
    played.session.park(handles[1]).unwrap();
    assert_eq!(played.all(Control), granted(1, [0, 2, 0]));
    // It is not parked yet: the device gets no command.
    played.session.resume(handles[1]).unwrap();
    assert_eq!(played.sent(3), [0; 16]);
    played.session.park(handles[1]).unwrap();
    played.tell(preempted(1, 2, 2, 2));
    assert_eq!(played.poll().unwrap(), [Event::Parked { handle: handles[1] }]);
    assert_eq!(played.all(Control), granted(1, [0, 2, 0]));
    played.session.resume(handles[1]).unwrap();
    assert_eq!(played.all(Control), granted(1, [0, 0, 0]));
    assert_eq!(played.sent(3), [4, 0x0102, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, !4]);
    played.session.cancel(handles[1]).unwrap();
    assert_eq!(played.all(Control), granted(1, [2, 0, 0]));
    played.tell(finished(1, 2, 3, 3));
    assert_eq!(
        played.poll().unwrap(),
        [Event::Finished { handle: handles[1], reason: FinishReason::Cancelled }]
    );
}

/// Whoever waits is held or parked as soon as it has a slot, and finds nothing of what the slot's last request was
/// told.
#[test]
fn a_slot_is_handed_on_with_the_words_of_its_next_request() {
    let mut played = Played::new(&SessionOptions { slots: 1, ..options() });
    let handles = [0; 3].map(|_| played.submit(&[5], 1));
    played.session.cancel(handles[0]).unwrap();
    played.session.hold(handles[1], true).unwrap();
    played.session.park(handles[1]).unwrap();
    assert_eq!(played.all(Control), control(&[(0, [1, 0, 0, 1, 1])]));
    assert_eq!(played.sent(1), [0; 16], "it waits");
    played.tell(finished(0, 1, 3, 1));
    assert_eq!(played.poll().unwrap().len(), 1);
    assert_eq!(played.all(Control), control(&[(0, [0, 2, 2, 1, 2])]));
    assert_eq!(played.sent(1)[..5], [2, 0x0001, 2, 1, 2]);
    played.session.cancel(handles[1]).unwrap();
    played.tell(finished(0, 2, 3, 1));
    assert_eq!(played.poll().unwrap().len(), 1);
    assert_eq!(played.all(Control), control(&[(0, [0, 0, 0, 1, 3])]));
}

/// An input ring of two entries.
#[test]
fn what_finds_no_room_is_sent_when_the_device_has_read() {
    let mut played = Played::new(&SessionOptions { input_entries: 2, ..options() });
    let handles = [0; 3].map(|_| played.submit(&[5], 1));
    played.session.park(handles[0]).unwrap();
    played.tell(preempted(0, 1, 0, 0));
    assert_eq!(played.poll().unwrap().len(), 1);
    played.session.resume(handles[0]).unwrap();
    assert_eq!(played.session.unfinished_count(), 3);
    let sent = |played: &mut Played| [0, 1].map(|line| played.sent(line)[..3].to_vec());
    assert_eq!(sent(&mut played), [[1, 0x0001, 1], [2, 0x0101, 2]]);
    // One entry was read: the parked request continues first.
    played.status([1, 0, 0, 0]);
    assert_eq!(played.poll().unwrap(), []);
    assert_eq!(sent(&mut played), [[3, 0x0002, 1], [2, 0x0101, 2]]);
    played.status([2, 0, 0, 0]);
    assert_eq!(played.poll().unwrap(), []);
    assert_eq!(sent(&mut played), [[3, 0x0002, 1], [4, 0x0201, 3]]);
}

/// The device waits for room in its ring: it learns at once what the host has taken.
#[test]
fn the_device_is_told_how_much_was_taken() {
    let mut played = Played::new(&options());
    played.submit(&[5], 40);
    assert_eq!(played.all(Consumed), [0; 16]);
    for index in 1..=3 {
        played.tell(token(0, 1, 3, index));
    }
    let mut events = [Event::default(); 2];
    for (count, taken) in [(2, 2), (1, 3), (0, 3)] {
        assert_eq!(played.session.poll(&mut events).unwrap(), count);
        assert_eq!(played.dwords(Consumed, 0, 1), [taken]);
    }
}

/// Bits 63:62 of an offset are the type of mapping, 0 for the remap page, and 61:46 the GPU (hardware reference §2.5).
fn remap_page(device: &zrt_device::Device) -> Mapping {
    let seam = device.syscalls();
    let node = Topology::read(seam).unwrap();
    let gpu_id = u64::from(node.first_supported().unwrap().gpu_id);
    let fd = seam.open("/dev/kfd").unwrap();
    seam.map(fd, gpu_id << 46, 4096, Protection::ReadWrite, None).unwrap()
}

/// A store of 0 to the first dword of the remap page flushes the host data path (hardware reference §2.5).
#[test]
fn what_a_call_has_said_is_flushed_when_it_returns() {
    type Call<'a> = &'a dyn Fn(&mut Played);
    let device = device();
    let page = remap_page(&device);
    let mut played = Played::on(device, &crate::played::model(), &options());
    let handles = [0; 2].map(|_| played.submit(&[5], 20));
    let is_flushed = |played: &mut Played, call: &dyn Fn(&mut Played)| {
        page.view().store_u32(0, u32::MAX);
        call(played);
        page.view().load_u32(0) == 0
    };
    let calls: [(&str, Call<'_>); 5] = [
        ("hold", &|played| played.session.hold(handles[0], true).unwrap()),
        ("release", &|played| played.session.hold(handles[0], false).unwrap()),
        ("park", &|played| played.session.park(handles[0]).unwrap()),
        ("cancel", &|played| played.session.cancel(handles[0]).unwrap()),
        ("poll", &|played| assert_eq!(played.session.poll(&mut []).unwrap(), 0)),
    ];
    for (name, call) in calls {
        assert!(is_flushed(&mut played, call), "{name}");
    }
    assert!(!is_flushed(&mut played, &|_| {}));
    played.session.park(handles[1]).unwrap();
    played.tell(preempted(1, 2, 0, 0));
    assert_eq!(played.poll().unwrap().len(), 1);
    assert!(is_flushed(&mut played, &|played| played.session.resume(handles[1]).unwrap()), "resume");
}

/// PLAN's block has the flag at byte 132: the megakernel's polls until there is work, the others leave.
#[test]
fn plan_waits_for_work_in_the_megakernel_alone() {
    for (mode, waits) in [(Mode::Mega, 1), (Mode::Graph, 0), (Mode::Dispatch, 0)] {
        let mut played = Played::new(&SessionOptions { mode, ..options() });
        assert_eq!(played.dwords(Parameters, 132 / 4, 1), [waits], "{mode:?}");
    }
}
