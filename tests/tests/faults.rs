//! Planted faults of sessions, each of which is detected; hangs, and requests that continue after one.
//!
//! Two more faults are planted where their parts are tested: an entry that is published header first
//! (`each_fault_is_seen_in_both_directions` in ring/tests/token_ring_order.rs), and a sampler that misses the share of
//! top-p (`a_share_that_is_missed_by_one_unit_is_seen` in asm/tests/sampling.rs).

use std::mem::offset_of;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, Inspect, OpenError, OpenOptions, VirtualOptions};
use zrt_device::{Attachment, Device};
use zrt_engine::activations::Activations;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::session::{Event, Handle, Mode, Session, SessionError, SessionOptions, Unfinished};
use zrt_mem::ByteLen;
use zrt_protocol::{EventKind, FinishReason, TapeEntry, TapeWait};
use zrt_ring::token_ring::LINE_DWORDS;
use zrt_tests::serving::{Asked, Told, checked_session, expected};
use zrt_tests::{load, repository_model};

const CONTEXT: u32 = 64;
/// When a session of these cases counts as hung: more than any of their tasks takes.
const HANG_AFTER: Duration = Duration::from_millis(1500);
/// Longest that a device may take to leave.
const LEAVE: Duration = Duration::from_secs(30);
/// Longest that dropping a hung session may take.
const DROP_MAX: Duration = Duration::from_secs(5);
/// `global_atomic_add_u32 v1, v2, s[8:9] scope:SCOPE_DEV` as llvm-mc writes it: the signal of a task.
const SIGNAL_CODE: [u8; 12] = [0x08, 0x40, 0x0d, 0xee, 0x00, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x00];
/// `s_nop 0`.
const NOP: u32 = 0xbf80_0000;
/// A dword between the count of ended steps and the first task's counter, which nobody reads.
const SPARE: u32 = 128;

fn model() -> Model {
    load(&repository_model("tales-qwen3-Q4_0.gguf"))
}

fn options() -> SessionOptions {
    SessionOptions {
        mode: Mode::Mega,
        groups: Some(3),
        slots: 2,
        waiting_max: 4,
        context: CONTEXT,
        chunk_rows: 16,
        output_entries: 128,
        hang_after: HANG_AFTER,
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

fn prepare(model: &Model, virtual_device: VirtualOptions) -> Session {
    let open = OpenOptions { virtual_device, ..OpenOptions::default() };
    let device = zrt_bringup::open(DeviceChoice::Virtual, &open).expect("the virtual device opens");
    Session::prepare(device, model, &options(), &mut |_, _| {}).expect("the model becomes resident")
}

/// The process that a session's device is open in.
fn process_of(session: &mut Session) -> Arc<Attachment> {
    session.resident().device.attachment().clone()
}

/// Another device of the process: what a server opens after a session was lost.
fn reopen(process: &Arc<Attachment>) -> Result<Device, OpenError> {
    zrt_bringup::open_over(process, &OpenOptions::default())
}

/// Greedy and sampled ones; the last waits for a slot.
fn asked() -> [Asked; 3] {
    [Asked::greedy([1, 261, 17], 6), Asked::sampled(1..10, 6, 7), Asked::sampled([5], 3, 8)]
}

/// Writes to a field of a task's entry in the tape.
fn change_tape(session: &mut Session, task: usize, field: usize, bytes: &[u8]) {
    let parts = session.mega_parts().expect("the megakernel runs");
    let at = ByteLen(((task - 1) * size_of::<TapeEntry>() + field) as u64);
    parts.device.upload(parts.tape, at, bytes).expect("the tape is writable");
}

fn task_of(session: &mut Session, kernel: &str, nth: usize) -> usize {
    let tasks = session.resident().tasks.iter().enumerate();
    tasks.filter(|(_, task)| task.kernel == kernel).nth(nth).expect("there is such a task").0
}

/// Drops a session whose megakernel does not end.
fn drop_hung(session: Session) {
    let start = Instant::now();
    drop(session);
    assert!(start.elapsed() < DROP_MAX, "dropping took {:?}", start.elapsed());
}

#[test]
fn a_kernel_without_signals_hangs_and_says_where() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions::default());
    let parts = session.mega_parts().expect("the megakernel runs");
    let mut code = vec![0; parts.kernel.code_len().0 as usize];
    parts.device.download(parts.kernel.code(), ByteLen(0), &mut code).expect("readable");
    let places: Vec<usize> = (0..code.len() - SIGNAL_CODE.len())
        .step_by(4)
        .filter(|at| code[*at..*at + SIGNAL_CODE.len()] == SIGNAL_CODE)
        .collect();
    assert_eq!(places.len(), 1, "the signal stands once in the code");
    let nops: Vec<u8> = [NOP; 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = ByteLen(places[0] as u64);
    parts.device.upload(parts.kernel.code(), at, &nops).expect("writable");

    let asked = asked();
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.start().expect("starts");
    let mut told = Told::new(asked.len());
    let error = told.run(&mut session, &handles).expect_err("nothing signals");
    let SessionError::Hang { waited, active, groups } = &error else { panic!("{error}") };
    assert!(*waited >= HANG_AFTER && *active == 2, "{error}");
    assert!(groups.iter().any(|one| one.group == 0 && one.epoch == 1), "{error}");
    assert!(groups.iter().all(|one| one.task > 0 && one.task < 8), "they stand at the first waits: {error}");
    assert!(error.to_string().contains("workgroup 0 in task"), "{error}");
    assert_eq!(told.tokens, vec![Vec::<u32>::new(); 3]);
    assert_eq!(session.unfinished().len(), 3);
    drop_hung(session);
}

#[test]
fn every_request_of_a_hung_session_goes_on_in_the_next_one() {
    let model = model();
    let asked = asked();
    let mut session = prepare(&model, VirtualOptions::default());
    session.start().expect("starts");
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(asked.len());
    while told.tokens[..2].iter().any(|tokens| tokens.len() < 2) {
        told.poll(&mut session, &handles).expect("the session runs");
    }
    // The attention of layer 1 no longer signals to anybody.
    let task = task_of(&mut session, "attention_f32", 1);
    change_tape(&mut session, task, offset_of!(TapeEntry, signal), &SPARE.to_le_bytes());
    let error = told.run(&mut session, &handles).expect_err("a signal is missing");
    let SessionError::Hang { groups, .. } = &error else { panic!("{error}") };
    let at_wait = |one: &zrt_engine::session::Standing| one.task as usize > task;
    assert!(groups.iter().any(at_wait), "somebody stands behind task {task}: {error}");
    let left = session.unfinished();
    assert!(!left.is_empty() && told.ends.iter().sum::<u32>() as usize + left.len() == 3, "{left:?}");
    for one in &left {
        let at = handles.iter().position(|handle| *handle == one.handle).expect("a known handle");
        assert_eq!(one.tokens[one.prompt_length..], told.tokens[at], "all that is known was told");
    }
    // In the same process: its queue is destroyed, nothing was reset.
    let process = process_of(&mut session);
    drop_hung(session);
    let device = reopen(&process).expect("a hang takes no more than its queue");
    let mut session =
        Session::prepare(device, &model, &options(), &mut |_, _| {}).expect("the model becomes resident");
    session.start().expect("starts");
    // In the place of the old handles, so that the events continue where they stopped.
    let mut places: Vec<Option<Handle>> = vec![None; 3];
    for one in &left {
        let at = handles.iter().position(|handle| *handle == one.handle).expect("a known handle");
        places[at] = Some(session.resubmit(one).expect("there is room"));
    }
    let live: Vec<usize> = (0..3).filter(|at| places[*at].is_some()).collect();
    let again: Vec<Handle> = places.iter().flatten().copied().collect();
    let mut rest = Told::new(again.len());
    rest.run(&mut session, &again).expect("the session runs");
    for (at, tokens) in live.iter().zip(&rest.tokens) {
        told.tokens[*at].extend(tokens);
        told.ends[*at] += 1;
    }
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    assert_eq!(told.ends, [1; 3]);
    session.close(LEAVE).expect("the device leaves");
}

/// Waves that cannot be stopped cost a reset when the session goes, and with it the process: its requests can continue
/// only in another one, and opening says so.
#[test]
fn after_a_reset_no_session_opens_in_the_process() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions::default());
    let parts = session.mega_parts().expect("the megakernel runs");
    parts.device.upload(parts.kernel.code(), ByteLen(0), &u32::MAX.to_le_bytes()).expect("writable");
    let asked = asked();
    for one in &asked {
        one.submit(&mut session);
    }
    let error = session.start().expect_err("no wave goes on");
    assert!(matches!(error, SessionError::NotStarted { .. }), "{error}");
    let left = session.unfinished();
    let process = process_of(&mut session);
    drop_hung(session);
    let error = reopen(&process).expect_err("the process is lost").to_string();
    assert!(
        error.starts_with("the GPU was reset") && error.ends_with("end it and start a new one"),
        "{error}"
    );
    // Another process.
    let mut session = prepare(&model, VirtualOptions::default());
    session.start().expect("starts");
    let handles: Vec<_> = left.iter().map(|one| session.resubmit(one).expect("there is room")).collect();
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    session.close(LEAVE).expect("the device leaves");
}

/// On a small BAR the host reaches the weights through the queue, which the megakernel holds.
#[test]
fn what_the_host_does_not_see_is_out_of_reach_while_the_megakernel_runs() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions { small_bar: true, ..VirtualOptions::default() });
    let mut byte = [0];
    session.resident().download(AllocationId::KvPool, 0, &mut byte).expect("nothing runs yet");
    session.start().expect("starts");
    let start = Instant::now();
    let error = session.resident().download(AllocationId::KvPool, 0, &mut byte).expect_err("it runs");
    assert!(error.to_string().contains("wait behind the resident kernel on this queue"), "{error}");
    assert!(start.elapsed() < HANG_AFTER, "{:?}", start.elapsed());
    let handles = [Asked::greedy([1, 261], 1).submit(&mut session)];
    Told::new(1).run(&mut session, &handles).expect("the session runs");
    session.close(LEAVE).expect("the device leaves");
}

/// One request is held, one parked, and the session lost: in the next one they stay stopped until they are released.
#[test]
fn held_and_parked_requests_of_a_lost_session_stay_so() {
    let model = model();
    let asked = [Asked::greedy([1, 261, 17], 4), Asked::sampled(1..10, 6, 7), Asked::greedy([5], 2)];
    let mut session = prepare(&model, VirtualOptions::default());
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.hold(handles[0], true).expect("it is known");
    session.park(handles[1]).expect("it is known");
    let left = session.unfinished();
    let flags: Vec<_> = left.iter().map(|one| (one.is_held, one.is_parked)).collect();
    assert_eq!(flags, [(true, false), (false, true), (false, false)]);
    drop(session);

    let mut session = prepare(&model, VirtualOptions::default());
    session.start().expect("starts");
    let handles: Vec<_> = left.iter().map(|one| session.resubmit(one).expect("there is room")).collect();
    let mut events = [Event::default(); 4];
    let start = Instant::now();
    let mut count = 0;
    while count == 0 {
        count = session.poll(&mut events).expect("the session runs");
        assert!(start.elapsed() < LEAVE, "it is not parked");
    }
    assert_eq!(events[..count], [Event::Parked { handle: handles[1] }]);
    // Both slots are taken by requests that are stopped: the third gets none.
    while start.elapsed() < HANG_AFTER {
        assert_eq!(session.poll(&mut events).expect("the session runs"), 0, "{events:?}");
    }
    let flags: Vec<_> = session.unfinished().iter().map(|one| (one.is_held, one.is_parked)).collect();
    assert_eq!(flags, [(true, false), (false, true), (false, false)]);
    session.hold(handles[0], false).expect("it is known");
    session.resume(handles[1]).expect("it is known");
    let mut told = Told::new(3);
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    session.close(LEAVE).expect("the device leaves");
}

/// A token, followed by an entry of a request that does not exist: the token is reported, and then the error.
#[test]
fn events_before_an_error_are_told() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions::default());
    let handle = Asked::greedy([1, 261, 17], 6).submit(&mut session);
    let entry = |tag: u32, serial: u32| {
        let mut entry = [0u32; LINE_DWORDS];
        // Kind and slot, serial, token, index.
        entry[..5].copy_from_slice(&[tag, EventKind::Token as u32, serial, 42, 3]);
        entry[LINE_DWORDS - 1] = !tag;
        entry
    };
    let lines = [entry(1, 1), entry(2, 99)];
    session.resident().upload(AllocationId::OutputRing, 0, lines.as_bytes()).expect("writable");
    let mut events = [Event::default(); 4];
    assert_eq!(session.poll(&mut events).expect("the token comes first"), 1);
    assert_eq!(events[0], Event::Token { handle, token: 42, index: 3 });
    let error = session.poll(&mut events).expect_err("nobody has the serial");
    assert!(matches!(error, SessionError::Protocol { slot: 0, serial: 99 }), "{error}");
}

/// The session was lost between the last token and the end: the next one reports the end, and no token.
#[test]
fn requests_that_were_complete_get_their_end() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions::default());
    let handle = Asked::greedy([1, 261, 17], 4).submit(&mut session);
    let left = session.unfinished().pop().expect("it has not ended");
    assert_eq!((left.handle, left.tokens_left, left.prompt_length), (handle, 4, 3));
    session.cancel(handle).expect("it is known");
    let cancelled = session.unfinished().pop().expect("its end was not told");
    assert!(cancelled.is_cancelled);
    drop(session);

    let mut session = prepare(&model, VirtualOptions::default());
    session.start().expect("starts");
    let full: Vec<u32> = (1..=CONTEXT).collect();
    let lost = [
        (cancelled, FinishReason::Cancelled),
        (Unfinished { tokens_left: 0, tokens: vec![1, 261, 17, 4], ..left.clone() }, FinishReason::Length),
        (Unfinished { tokens_left: 0, tokens: full, ..left.clone() }, FinishReason::Length),
        (Unfinished { stops: vec![9], tokens: vec![1, 261, 17, 9], ..left.clone() }, FinishReason::Stop),
    ];
    for (left, reason) in &lost {
        let handle = session.resubmit(left).expect("there is room");
        let mut events = [Event::default(); 4];
        let count = session.poll(&mut events).expect("the session runs");
        assert_eq!(events[..count], [Event::Finished { handle, reason: *reason }], "{left:?}");
        assert_eq!(session.unfinished_count(), 0);
    }
    // A stop token of the prompt ends nothing.
    let open = Unfinished { stops: vec![17], tokens_left: 1, ..left };
    let handles = [session.resubmit(&open).expect("there is room")];
    let mut told = Told::new(1);
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!((told.tokens[0].len(), told.ends[0]), (1, 1));
    session.close(LEAVE).expect("the device leaves");
}

#[test]
fn idleness_and_a_held_request_are_no_hang() {
    let model = model();
    let mut session = prepare(&model, VirtualOptions::default());
    session.start().expect("starts");
    let mut told = Told::new(1);
    let mut stay = |session: &mut Session, handles: &[Handle]| {
        let before = session.status().expect("readable").heartbeat;
        let start = Instant::now();
        while start.elapsed() < 5 * HANG_AFTER / 2 {
            told.poll(session, handles).expect("an idle session does not hang");
        }
        assert!(session.status().expect("readable").heartbeat > before, "the heartbeat goes on");
    };
    stay(&mut session, &[]);
    let asked = Asked::greedy([1, 261, 17], 3);
    let handles = [asked.submit(&mut session)];
    session.hold(handles[0], true).expect("it is known");
    stay(&mut session, &handles);
    session.hold(handles[0], false).expect("it is known");
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &[asked]));
    session.close(LEAVE).expect("the device leaves");
}

#[test]
fn a_wait_that_is_skipped_is_a_race() {
    let model = model();
    // A wait of each kind: for the cache, and for a row that another workgroup makes. The wait of a norm that runs
    // where its row was made would be no use as a fault: program order stands in for it.
    for (kernel, nth) in [("attention_f32", 1), ("matmul_q4_0", 0)] {
        let mut session = checked_session(&model, &options(), 5);
        let task = task_of(&mut session, kernel, nth);
        let nothing = [0; 3 * size_of::<TapeWait>()];
        change_tape(&mut session, task, offset_of!(TapeEntry, wait), &nothing);
        session.start().expect("starts");
        let handles = [Asked::greedy([1, 261], 1).submit(&mut session)];
        Told::new(1).run(&mut session, &handles).expect("the session runs");
        let device = session.close(LEAVE).expect("the device leaves");
        let findings = device.findings().expect("readable");
        let is_seen =
            |finding: &zrt_bringup::Finding| ["race", "visibility"].contains(&finding.rule.as_str());
        assert!(findings.iter().any(is_seen), "{kernel}: {findings:?}");
    }
}

#[test]
fn a_wrong_page_changes_tokens() {
    let model = model();
    let asked = [Asked::greedy(1..13, 4), Asked::greedy(200..212, 4)];
    let expected = expected(&model, CONTEXT, &asked);
    for is_planted in [false, true] {
        let seeded = VirtualOptions { scheduler_seed: Some(1), ..VirtualOptions::default() };
        let mut session = prepare(&model, seeded);
        let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
        if is_planted {
            // The page of slot 0 is slot 1's too.
            let resident = session.resident();
            let stride = u64::from(resident.memory.pages_per_slot) * 4;
            let mut page = [0; 4];
            resident.download(AllocationId::HostPages, 0, &mut page).expect("readable");
            resident.upload(AllocationId::HostPages, stride, &page).expect("writable");
        }
        session.start().expect("starts");
        let mut told = Told::new(2);
        told.run(&mut session, &handles).expect("the session runs");
        assert_eq!(told.tokens != expected, is_planted, "{:?} and {expected:?}", told.tokens);
        session.close(LEAVE).expect("the device leaves");
    }
}
