//! The crowd is told what a session might tell it, right and wrong.

use super::*;
use crate::serving::checked_session;
use crate::{load, repository_model};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Mode, SessionOptions};

const CLIENTS: Clients = Clients { requests: 1, at_once: 1, whim_looks: 0, deadline: Duration::from_secs(1) };
const UNRULY: Clients = Clients { requests: 10, at_once: 10, whim_looks: 3, ..CLIENTS };

/// Two known tokens; the answer, and what ends it early.
fn shape(expected: &[u32], stops: &[u32]) -> Shape {
    Shape {
        prompt: vec![1, 2],
        tokens_max: 3,
        sampling: SamplingOptions::default(),
        stops: stops.to_vec(),
        expected: expected.to_vec(),
    }
}

fn handle() -> Handle {
    match Event::default() {
        Event::Parked { handle } => handle,
        other => panic!("{other:?}"),
    }
}

fn token(token: u32, index: u32) -> Event {
    Event::Token { handle: handle(), token, index }
}

fn end(reason: FinishReason) -> Event {
    Event::Finished { handle: handle(), reason }
}

fn parked() -> Event {
    Event::Parked { handle: handle() }
}

/// A crowd whose one request has been accepted.
fn crowd(shapes: &[Shape]) -> Crowd<'_> {
    let mut crowd = Crowd::new(shapes, CLIENTS, 1);
    crowd.enter(handle());
    crowd
}

fn client<'a>(crowd: &'a mut Crowd<'_>) -> &'a mut Client {
    crowd.live.get_mut(&handle()).expect("it lives")
}

/// What a crowd says of a wrong event.
fn complaint(crowd: &mut Crowd<'_>, event: Event) -> String {
    complaint_of(|| crowd.hear(&[event]))
}

fn complaint_of(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it complains");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
    }
}

#[test]
fn right_events_are_counted() {
    let shapes = [shape(&[7, 8, 9], &[])];
    let mut crowd = crowd(&shapes);
    assert!(!crowd.is_done());
    crowd.hear(&[token(7, 2), token(8, 3), parked()]);
    client(&mut crowd).is_parked = false;
    assert!(!crowd.is_done());
    assert_eq!(crowd.to_string(), format!("1 live after {:?}", crowd.report()));
    crowd.hear(&[token(9, 4), end(FinishReason::Length)]);
    let Report { requests, tokens, stopped, full, cancelled, parked, .. } = crowd.report();
    assert_eq!((requests, tokens, stopped, full, cancelled, parked), (1, 3, 0, 1, 0, 1));
    assert!(crowd.is_done());
}

#[test]
fn ends_by_a_stop_token_and_by_a_cancel_are_counted() {
    let shapes = [shape(&[7, 8], &[8])];
    let mut stopped = crowd(&shapes);
    stopped.hear(&[token(7, 2), token(8, 3), end(FinishReason::Stop)]);
    assert_eq!((stopped.report().stopped, stopped.report().requests), (1, 1));
    let mut cancelled = crowd(&shapes);
    client(&mut cancelled).cancelled = Some(Quiet::Asked(0));
    cancelled.hear(&[token(7, 2), end(FinishReason::Cancelled)]);
    assert_eq!((cancelled.report().cancelled, cancelled.report().requests), (1, 1));
}

#[test]
fn wrong_tokens_are_noticed() {
    let shapes = [shape(&[7, 8], &[])];
    for (event, words) in [
        (token(6, 2), "token 0 of"),
        (token(7, 1), "a gap, or told twice"),
        (token(7, 3), "a gap, or told twice"),
        (end(FinishReason::Length), "tokens are missing"),
        (end(FinishReason::Stop), "no stop token"),
        (end(FinishReason::Cancelled), "nobody has cancelled it"),
    ] {
        assert!(complaint(&mut crowd(&shapes), event).contains(words), "{event:?}");
    }
    let mut after_one = crowd(&shapes);
    after_one.hear(&[token(7, 2)]);
    for (event, words) in [(token(8, 2), "a gap, or told twice"), (token(9, 3), "token 1 of")] {
        assert!(complaint(&mut after_one, event).contains(words), "{event:?}");
    }
    after_one.hear(&[token(8, 3)]);
    assert!(complaint(&mut after_one, token(9, 4)).contains("token 2 of"), "beyond the last");
    let stops = [shape(&[7], &[7])];
    let mut stopped = crowd(&stops);
    stopped.hear(&[token(7, 2)]);
    assert!(complaint(&mut stopped, end(FinishReason::Length)).contains("a stop token ends"));
    let mut cut_short = crowd(&stops);
    assert!(complaint(&mut cut_short, end(FinishReason::Stop)).contains("tokens are missing"));
}

#[test]
fn events_of_a_request_that_has_ended_or_never_was_are_noticed() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = crowd(&shapes);
    assert!(complaint_of(|| crowd.enter(handle())).contains("a handle was used twice"));
    crowd.hear(&[token(7, 2), end(FinishReason::Length)]);
    for (event, words) in [
        (token(7, 2), "a token of a request that has not ended"),
        (parked(), "a request that has not ended is parked"),
        (end(FinishReason::Length), "one end of each request"),
    ] {
        assert!(complaint(&mut crowd, event).contains(words), "{event:?}");
    }
}

#[test]
fn a_parked_request_says_nothing_and_comes_back() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = crowd(&shapes);
    crowd.advance_to(100);
    crowd.hear(&[parked()]);
    let until = client(&mut crowd).parked_until.expect("it comes back");
    assert!((101..=100 + u64::from(PARKED_LOOKS_MAX)).contains(&until), "{until}");
    assert!(complaint(&mut crowd, parked()).contains("parked twice"));
    assert!(complaint(&mut crowd, token(7, 2)).contains("a token while it is parked"));
}

#[test]
fn quiet_takes_two_empty_rings_some_looks_apart() {
    let mut quiet = Quiet::Asked(10);
    for (round, then) in [
        (12, Quiet::Asked(10)),
        (13, Quiet::Empty(13)),
        (15, Quiet::Empty(13)),
        (16, Quiet::Yes),
        (20, Quiet::Yes),
    ] {
        quiet.note_empty(round);
        assert_eq!(quiet, then, "in round {round}");
    }
}

#[test]
fn a_held_request_says_nothing_once_it_is_quiet() {
    let shapes = [shape(&[7, 8], &[])];
    let mut crowd = crowd(&shapes);
    client(&mut crowd).held = Some(Quiet::Asked(0));
    crowd.advance_to(20);
    // What was on its way may still come, and no ring was empty.
    crowd.hear(&[token(7, 2)]);
    assert_eq!(client(&mut crowd).held, Some(Quiet::Asked(0)));
    for (round, quiet) in [(21, 0), (24, 1), (27, 1)] {
        assert!(crowd.advance_to(round));
        crowd.hear(&[]);
        assert_eq!(crowd.report().quiet, quiet, "in round {round}");
    }
    assert!(complaint(&mut crowd, token(8, 3)).contains("a token while it is held"));
}

#[test]
fn a_cancelled_request_must_end() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = crowd(&shapes);
    client(&mut crowd).cancelled = Some(Quiet::Asked(0));
    crowd.advance_to(3);
    crowd.hear(&[]);
    crowd.advance_to(6);
    assert!(complaint_of(|| crowd.hear(&[])).contains("no end after a cancel"));
}

#[test]
fn rounds_are_news_once() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = Crowd::new(&shapes, CLIENTS, 1);
    assert!(!crowd.advance_to(0));
    assert!(crowd.advance_to(4));
    assert!(!crowd.advance_to(4));
}

#[test]
fn every_shape_is_asked_for_and_answers_are_those_of_its_shape() {
    let shapes: Vec<Shape> = (0..4).map(|shape_number| shape(&[shape_number], &[])).collect();
    let mut seen = [0; 4];
    let mut crowd = Crowd::new(&shapes, Clients { requests: 200, ..CLIENTS }, 1);
    for _ in 0..200 {
        let chosen = crowd.next_shape;
        seen[chosen] += 1;
        crowd.enter(handle());
        crowd.hear(&[token(chosen as u32, 2), end(FinishReason::Length)]);
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    assert!(crowd.is_done());
}

#[test]
fn whoever_is_orderly_takes_what_there_is_and_others_take_their_time() {
    let shapes = [shape(&[7], &[])];
    let mut orderly = Crowd::new(&shapes, CLIENTS, 1);
    let mut unruly = Crowd::new(&shapes, UNRULY, 1);
    let (mut all, mut one, mut deaf) = (0, 0, 0);
    for round in 1..=4000 {
        orderly.advance_to(round);
        orderly.go_deaf();
        assert_eq!(orderly.places_to_poll(), Some(PLACES_MAX));
        unruly.advance_to(round);
        unruly.go_deaf();
        assert!(unruly.deaf_until <= round + u64::from(DEAF_LOOKS_MAX));
        let places = unruly.places_to_poll();
        assert_eq!(places.is_none(), round < unruly.deaf_until, "in round {round}");
        match places {
            None => deaf += 1,
            Some(1) => one += 1,
            Some(places) => {
                assert_eq!(places, PLACES_MAX);
                all += 1;
            }
        }
    }
    // After 19 rounds with a poll comes a silence of 30, both on average. Of the polls three in four take one event.
    assert!((1000..1500).contains(&one), "{one} rounds with one event");
    assert!((300..500).contains(&all), "{all} rounds with all");
    assert!((2000..2800).contains(&deaf), "{deaf} rounds without");
}

/// What an unruly client does in so many rounds that is not due, and the crowd afterwards.
fn whims<'a>(shapes: &'a [Shape], clients: Clients, told: usize) -> (Vec<Deed>, Crowd<'a>) {
    let mut crowd = Crowd::new(shapes, clients, 1);
    crowd.enter(handle());
    let mut whims = Vec::new();
    for round in 1..=3000 {
        crowd.advance_to(round);
        client(&mut crowd).told = told;
        let deeds = crowd.deeds();
        assert!(deeds.iter().all(|(of, _)| *of == handle()));
        whims.extend(deeds.iter().map(|(_, deed)| *deed).filter(|deed| *deed != Deed::Release));
    }
    (whims, crowd)
}

#[test]
fn whims_come_as_often_as_asked_and_of_every_kind() {
    let shapes = [shape(&[7], &[])];
    let count = |whims: &[Deed], of| whims.iter().filter(|deed| **deed == of).count();
    let (rare, crowd) = whims(&shapes, UNRULY, 0);
    assert!((900..1100).contains(&rare.len()), "{}", rare.len());
    assert_eq!(count(&rare, Deed::Cancel), 0, "it has had no slot");
    assert!((400..600).contains(&count(&rare, Deed::Park)), "{}", count(&rare, Deed::Park));
    assert_eq!(crowd.report().held, count(&rare, Deed::Hold) as u64);
    let (told, mut crowd) = whims(&shapes, UNRULY, 1);
    assert!((60..140).contains(&count(&told, Deed::Cancel)), "{}", count(&told, Deed::Cancel));
    assert!(matches!(client(&mut crowd).cancelled, Some(Quiet::Asked(first)) if first < 300));
    let frequent = Clients { whim_looks: WHIM_LOOKS_FREQUENT, ..UNRULY };
    assert!(count(&whims(&shapes, frequent, 0).0, Deed::Cancel) > 90);
    assert!(whims(&shapes, CLIENTS, 1).0.is_empty(), "whoever is orderly has none");
    assert!(
        Crowd::new(&shapes, Clients { whim_looks: 1, ..UNRULY }, 1).deeds().is_empty(),
        "nobody is there"
    );
}

#[test]
fn a_held_request_is_released_when_its_time_has_come() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = Crowd::new(&shapes, UNRULY, 1);
    crowd.enter(handle());
    let held = (1..=1000).find(|round| {
        crowd.advance_to(*round);
        crowd.deeds() == [(handle(), Deed::Hold)]
    });
    let held = held.expect("at some time");
    assert_eq!(client(&mut crowd).held, Some(Quiet::Asked(held)));
    let until = client(&mut crowd).held_until.expect("it is released");
    assert!((held + 1..=held + u64::from(HELD_LOOKS_MAX)).contains(&until), "{until}");
    crowd.clients.whim_looks = 0;
    for (round, deeds) in [(until - 1, vec![]), (until, vec![(handle(), Deed::Release)]), (until + 1, vec![])]
    {
        crowd.advance_to(round);
        assert_eq!(crowd.deeds(), deeds);
    }
    assert_eq!(client(&mut crowd).held, None);
}

#[test]
fn a_parked_request_is_resumed_when_its_time_has_come() {
    let shapes = [shape(&[7], &[])];
    let mut crowd = crowd(&shapes);
    crowd.hear(&[parked()]);
    let until = client(&mut crowd).parked_until.expect("it comes back");
    for (round, deeds) in [(until - 1, vec![]), (until, vec![(handle(), Deed::Resume)]), (until + 1, vec![])]
    {
        crowd.advance_to(round);
        assert_eq!(crowd.deeds(), deeds);
    }
    assert!(!client(&mut crowd).is_parked);
}

#[test]
fn as_many_come_as_may_be_there_at_once_and_as_there_is_room_for() {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let options = SessionOptions { context: 16, slots: 8, waiting_max: 0, ..SessionOptions::default() };
    let shapes = [shape(&[7], &[])];
    let after_one_look = |clients| {
        let mut session = checked_session(&model, &options, 1);
        let mut crowd = Crowd::new(&shapes, clients, 1);
        crowd.submit(&mut session);
        (crowd.live.len(), crowd.submitted, crowd.report().refused)
    };
    let orderly = |requests, at_once| after_one_look(Clients { requests, at_once, ..CLIENTS });
    assert_eq!(orderly(5, 8), (5, 5, 0));
    assert_eq!(orderly(9, 6), (6, 6, 0));
    assert_eq!(orderly(9, 9), (8, 8, 1));
    let (unruly, ..) = after_one_look(Clients { requests: 8, at_once: 8, ..UNRULY });
    assert!((2..8).contains(&unruly), "{unruly} of 8");
}

#[test]
fn what_they_do_reaches_the_session() {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let options = SessionOptions { mode: Mode::Dispatch, context: 16, ..SessionOptions::default() };
    let mut session = checked_session(&model, &options, 1);
    let shapes = [shape(&[7], &[])];
    let mut crowd = Crowd::new(&shapes, Clients { requests: 1, whim_looks: 1, ..UNRULY }, 1);
    crowd.submit(&mut session);
    for round in 1..=100 {
        crowd.advance_to(round);
        crowd.act(&mut session);
    }
    assert!(crowd.live.values().all(|client| client.cancelled.is_some()), "nobody has had this whim");
    session.start().expect("starts");
    let mut events = [Event::default(); PLACES_MAX];
    let start = Instant::now();
    while !crowd.is_done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{crowd}: {:?}", session.standings());
        let count = session.poll(&mut events).expect("the session runs");
        crowd.hear(&events[..count]);
    }
    assert_eq!((crowd.report().cancelled, crowd.report().requests), (1, 1));
}
