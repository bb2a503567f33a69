//! What a session promises its caller besides tokens: parking in any order, draining and stopping, and an error instead
//! of an endless wait if a ring is broken. On a device that checks, where nothing depends on time.

use std::mem::size_of;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::session::{
    Event, Handle, Mode, NotClosed, Session, SessionError, SessionOptions, Unfinished,
};
use zrt_protocol::STATUS_LOOKS;
use zrt_ring::token_ring::{LINE_BYTES, LINE_DWORDS, TokenRingError};
use zrt_tests::serving::{Asked, Told, checked_session, expected};
use zrt_tests::{load, repository_model};

const CONTEXT: u32 = 48;
/// When a ring or a step counts as stuck in the cases that wait for it: more than any of their steps takes.
const HANG_AFTER: Duration = Duration::from_millis(700);
/// Longest that what is awaited may take.
const DEADLINE: Duration = Duration::from_secs(60);

fn model() -> Model {
    load(&repository_model("tales-qwen3-Q4_0.gguf"))
}

fn options(mode: Mode, slots: u32) -> SessionOptions {
    SessionOptions {
        mode,
        slots,
        groups: Some(2),
        waiting_max: 2,
        context: CONTEXT,
        output_entries: 128,
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

/// A session on a device that does not check: its steps take less time.
fn unchecked(model: &Model, options: &SessionOptions) -> Session {
    let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
    Session::prepare(device, model, options, &mut |_, _| {}).expect("the model becomes resident")
}

/// Closes it; its device has found nothing.
fn close_clean(session: Session) {
    let device = session.close(DEADLINE).expect("the device leaves");
    assert_eq!(device.findings().expect("readable"), []);
}

/// Polls until this error occurs.
fn error_of(session: &mut Session) -> SessionError {
    let start = Instant::now();
    let mut events = [Event::default(); 4];
    loop {
        if let Err(error) = session.poll(&mut events) {
            assert!(start.elapsed() >= HANG_AFTER, "too early: {error}");
            return error;
        }
        assert!(start.elapsed() < DEADLINE, "nothing is told");
        std::thread::yield_now();
    }
}

#[test]
fn a_request_may_be_let_go_before_it_is_parked_and_parked_before_it_has_a_slot() {
    let model = model();
    let asked = [Asked::greedy([1, 261, 17], 2), Asked::sampled([5, 9], 2, 8)];
    let mut session = checked_session(&model, &options(Mode::Mega, 1), 3);
    let handles: Vec<Handle> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.park(handles[0]).expect("it has the slot");
    session.resume(handles[0]).expect("it is to be parked");
    session.park(handles[1]).expect("it waits");
    session.start().expect("starts");
    let mut told = Told::new(2);
    let mut parked = Vec::new();
    let start = Instant::now();
    while told.ends != [1, 1] {
        if let Some(handle) = told.poll_parked(&mut session, &handles).expect("the session runs") {
            parked.push(handle);
            if handle == handles[1] {
                assert_eq!(told.ends, [1, 0], "it waits for the slot");
                assert!(told.tokens[1].is_empty(), "it is parked before it gets a row");
                session.resume(handle).expect("it is parked");
            }
        }
        assert!(start.elapsed() < DEADLINE, "{parked:?}, {told:?}");
    }
    assert_eq!(parked, handles, "each is told once");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    close_clean(session);
}

#[test]
fn a_draining_session_serves_what_it_has_and_takes_no_more() {
    let model = model();
    let asked = [Asked::greedy([1, 261], 2), Asked::greedy([7], 1)];
    let mut session = checked_session(&model, &options(Mode::Mega, 1), 4);
    let handles: Vec<Handle> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.start().expect("starts");
    session.drain();
    let sampling = asked[0].sampling;
    let request = zrt_engine::session::Request { prompt: &[3], tokens_max: 1, sampling, stops: &[] };
    assert!(matches!(session.submit(&request), Err(SessionError::Leaving)));
    let Err(NotClosed { session, error }) = session.close(DEADLINE) else { panic!("it was closed") };
    assert!(matches!(error, SessionError::Live { live: 2 }), "{error}");
    let mut session = *session;
    let mut told = Told::new(2);
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, CONTEXT, &asked));
    close_clean(session);
}

#[test]
fn a_view_of_a_resident_buffer_outlives_the_session() {
    let model = model();
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    let view = session.resident().buffer(AllocationId::Status).view().expect("visible").clone();
    session.start().expect("starts");
    drop(session);
    let kept = view.load_u32(0);
    view.store_u32(0, !kept);
    assert_eq!(view.load_u32(0), !kept, "nobody else writes there any more");
}

/// In each mode: the device leaves in the middle of two requests, and they continue in another session on the same
/// device.
#[test]
fn requests_of_a_stopped_session_go_on_in_the_next_one() {
    let model = model();
    let asked = [Asked::greedy([1, 261, 17], 12), Asked::sampled(1..6, 12, 7)];
    for mode in Mode::ALL {
        let mut session = unchecked(&model, &options(mode, 2));
        session.start().expect("starts");
        let handles: Vec<Handle> = asked.iter().map(|one| one.submit(&mut session)).collect();
        let mut told = Told::new(2);
        while told.tokens.iter().any(|tokens| tokens.is_empty()) {
            told.poll(&mut session, &handles).expect("the session runs");
        }
        session.stop().expect("there is room for the command");
        let start = Instant::now();
        while told.poll(&mut session, &handles).expect("the session runs") || !session.has_left() {
            assert!(start.elapsed() < DEADLINE, "{mode:?}: it does not leave");
        }
        // What came between the last poll and the end.
        while told.poll(&mut session, &handles).expect("the session runs") {}
        let left = session.unfinished();
        for one in &left {
            let at = handles.iter().position(|handle| *handle == one.handle).expect("a known handle");
            assert_eq!(
                one.tokens[one.prompt_length..],
                told.tokens[at],
                "{mode:?}: all that is known was told"
            );
        }
        let device = session.close(DEADLINE).expect("the device has left");
        let mut session =
            Session::open(device, &model, &options(mode, 2), &mut |_, _| {}).expect("it opens again");
        let at = |one: &Unfinished| {
            handles.iter().position(|handle| *handle == one.handle).expect("a known handle")
        };
        let again: Vec<Handle> =
            left.iter().map(|one| session.resubmit(one).expect("there is room")).collect();
        let mut rest = Told::new(again.len());
        rest.run(&mut session, &again).expect("the session runs");
        for (one, tokens) in left.iter().zip(&rest.tokens) {
            told.tokens[at(one)].extend(tokens);
        }
        assert_eq!(told.tokens, expected(&model, CONTEXT, &asked), "{mode:?}");
        session.close(DEADLINE).expect("the device leaves");
    }
}

/// No step runs while there is no request, and the heartbeat of a host-driven session does not move: that is not a
/// hang.
#[test]
fn a_session_that_was_idle_for_long_serves_again() {
    let model = model();
    let hang_after = 3 * HANG_AFTER;
    for mode in Mode::ALL {
        let mut session = unchecked(&model, &SessionOptions { hang_after, ..options(mode, 1) });
        session.start().expect("starts");
        for pause in [hang_after + HANG_AFTER, Duration::ZERO] {
            let handles = [Asked::greedy([1, 261], 1).submit(&mut session)];
            Told::new(1).run(&mut session, &handles).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
            // The last that is seen before the pause is a device at rest.
            while mode != Mode::Mega && !session.has_left() {
                std::thread::yield_now();
            }
            assert_eq!(session.poll(&mut [Event::default()]).expect("the session runs"), 0);
            std::thread::sleep(pause);
        }
        session.close(DEADLINE).expect("the device leaves");
    }
}

/// While PLAN waits for work its heartbeat alone moves, and goes over the bus once in [`STATUS_LOOKS`] looks.
#[test]
fn an_idle_plan_tells_its_status_now_and_then() {
    let model = model();
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    session.start().expect("starts");
    let start = Instant::now();
    let mut told: Vec<u32> = Vec::new();
    while told.len() < 20 {
        assert!(start.elapsed() < DEADLINE, "{told:?}");
        let heartbeat = session.status().expect("it is mapped").heartbeat;
        if heartbeat != 0 && told.last() != Some(&heartbeat) {
            told.push(heartbeat);
        }
        std::thread::yield_now();
    }
    let is_now_and_then = |pair: &[u32]| pair[1].wrapping_sub(pair[0]) % STATUS_LOOKS as u32 == 0;
    assert!(told.windows(2).all(is_now_and_then), "{told:?}");
    let handles = [Asked::greedy([1, 261], 1).submit(&mut session)];
    Told::new(1).run(&mut session, &handles).expect("the session runs");
    session.close(DEADLINE).expect("the device leaves");
}

#[test]
fn a_request_that_a_smaller_session_cannot_hold_is_refused() {
    let model = model();
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    Asked::greedy([1, 261, 17], 40).submit(&mut session);
    let left = session.unfinished().pop().expect("it has not ended");
    drop(session);
    let mut session = unchecked(&model, &SessionOptions { context: 32, ..options(Mode::Mega, 1) });
    let refused = session.resubmit(&left);
    assert!(matches!(refused, Err(SessionError::Context { needed: 43, context: 32 })), "{refused:?}");
    let mut session = unchecked(&model, &SessionOptions { pages: Some(2), ..options(Mode::Mega, 1) });
    let refused = session.resubmit(&left);
    assert!(matches!(refused, Err(SessionError::Pages { needed: 3, pages: 2 })), "{refused:?}");
    // Nothing is computed of one whose end alone is missing.
    let complete = Unfinished { tokens: vec![1; 100], tokens_left: 0, ..left };
    let handle = session.resubmit(&complete).expect("there is room");
    assert_eq!(session.unfinished()[0].tokens_left, 0);
    let mut events = [Event::default(); 2];
    assert_eq!(session.poll(&mut events).expect("the session runs"), 1);
    assert!(matches!(events[0], Event::Finished { handle: of, .. } if of == handle));
}

/// What no session of this model can have left behind.
#[test]
fn a_request_that_was_never_left_is_refused() {
    let model = model();
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    Asked::greedy([1, 261, 17], 4).submit(&mut session);
    let left = session.unfinished().pop().expect("it has not ended");
    drop(session);
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    let mut refused = |left: Unfinished| session.resubmit(&left).expect_err("it makes no sense");
    for prompt_length in [0, 4, usize::MAX] {
        let error = refused(Unfinished { prompt_length, ..left.clone() });
        assert!(matches!(error, SessionError::PromptLength { tokens: 3, .. }), "{error}");
    }
    let trained = model.config.context;
    let error = refused(Unfinished { tokens: vec![1; 100_000], tokens_left: 0, ..left.clone() });
    assert!(
        matches!(error, SessionError::Complete { tokens: 100_000, trained: at } if at == trained),
        "{error}"
    );
    for tokens_left in [0, 1] {
        let error = refused(Unfinished { tokens: vec![1, 2, 1 << 20], tokens_left, ..left.clone() });
        assert!(matches!(error, SessionError::Token { token: 0x10_0000, .. }), "{error}");
    }
    let error = refused(Unfinished { stops: vec![u32::MAX], ..left.clone() });
    assert!(matches!(error, SessionError::Token { token: u32::MAX, .. }), "{error}");
    let error = refused(Unfinished { stops: vec![1; 9], ..left.clone() });
    assert!(matches!(error, SessionError::Stops { count: 9, .. }), "{error}");
    let error = refused(Unfinished { tokens_left: u32::MAX, ..left });
    assert!(matches!(error, SessionError::Context { needed: u32::MAX, .. }), "{error}");
    assert_eq!(session.unfinished_count(), 0);
}

/// More positions than the model was trained for.
#[test]
fn a_context_beyond_the_models_is_refused() {
    let model = model();
    let context = model.config.context + 1;
    let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
    let asked = SessionOptions { context, ..options(Mode::Mega, 1) };
    let error = Session::open(device, &model, &asked, &mut |_, _| {}).err().expect("it is too long");
    assert!(matches!(error, SessionError::ModelContext { .. }), "{error}");
}

/// A device that was given no time to leave has only not left yet.
#[test]
fn no_kernel_is_blamed_for_a_deadline_of_nothing() {
    let model = model();
    let mut session = unchecked(&model, &options(Mode::Mega, 1));
    session.start().expect("starts");
    Asked::greedy([1, 261, 17], 12).submit(&mut session);
    session.stop().expect("there is room for the command");
    let Err(NotClosed { session, error }) = session.close(Duration::ZERO) else { return };
    assert!(matches!(error, SessionError::NotLeft { .. }), "{error}");
    session.close(DEADLINE).expect("the device leaves");
}

/// PLAN polls again and again, and never finds the trailer of the request's entry.
#[test]
fn an_entry_that_never_comes_whole_is_told() {
    let model = model();
    let options = SessionOptions { hang_after: HANG_AFTER, ..options(Mode::Mega, 1) };
    let mut session = unchecked(&model, &options);
    Asked::greedy([1, 261], 1).submit(&mut session);
    let trailer_at = (LINE_BYTES - size_of::<u32>()) as u64;
    session.resident().upload(AllocationId::InputRing, trailer_at, &[0; 4]).expect("writable");
    session.start().expect("starts");
    let error = error_of(&mut session);
    let SessionError::Ring(TokenRingError::NotConsumed { number: 0, .. }) = error else { panic!("{error}") };
}

#[test]
fn an_event_that_never_comes_whole_is_told() {
    let model = model();
    let options = SessionOptions { hang_after: HANG_AFTER, ..options(Mode::Graph, 1) };
    for (header, is_torn) in [(1u32, true), (77, false)] {
        let mut session = unchecked(&model, &options);
        let mut line = [0u32; LINE_DWORDS];
        line[0] = header;
        session.resident().upload(AllocationId::OutputRing, 0, line.as_bytes()).expect("writable");
        match error_of(&mut session) {
            SessionError::Ring(TokenRingError::Torn { number: 0, .. }) if is_torn => {}
            SessionError::Ring(TokenRingError::Foreign { number: 0, found: 77, .. }) if !is_torn => {}
            error => panic!("{error}"),
        }
    }
}
