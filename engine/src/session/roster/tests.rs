//! The roster without a device: single cases, and random calls against a naive model with a made-up device.

use super::*;
use proptest::prelude::*;
use zrt_protocol::Event as Told;

mod naive;

use naive::{Call, World};

fn roster(slots: u32, waiting_max: u32, pages: u32) -> Roster {
    keeping([slots, waiting_max, 0], pages)
}

fn keeping(counts: [u32; 3], pages: u32) -> Roster {
    Roster::new(counts, 64, 4, PageAllocator::new(pages).expect("a small number"))
}

fn newcomer(tokens: &[u32], limit: u32) -> Newcomer<'_> {
    Newcomer {
        tokens,
        prompt_length: tokens.len() as u32,
        limit,
        sampling: Sampling::default(),
        stops: &[],
        is_held: false,
        stage: Stage::Waiting { parks: false },
    }
}

fn admit(roster: &mut Roster) -> Option<(Seat, usize)> {
    let next = roster.next_admission()?;
    let admission = roster.admit(next);
    Some((admission.seat, admission.grant.map_or(0, |grant| grant.pages.len())))
}

fn slot(number: u32) -> Slot {
    Slot::new(number).expect("below 64")
}

#[test]
fn the_oldest_is_admitted_first_and_never_without_pages_for_its_tokens() {
    let mut roster = roster(2, 2, 5);
    let long = [7; 40];
    roster.enqueue(&newcomer(&long, 48)).expect("room");
    roster.enqueue(&newcomer(&long, 48)).expect("room");
    roster.enqueue(&newcomer(&[1], 2)).expect("room");
    let (first, pages) = admit(&mut roster).expect("five pages are free");
    assert_eq!((first.slot, pages), (slot(0), 3));
    // The second needs three, and nobody overtakes it.
    assert!(admit(&mut roster).is_none());
    assert_eq!((roster.active_count(), roster.unfinished_count()), (1, 3));
    let (serial, reason) = (first.serial.get(), FinishReason::Stop);
    let told = Told::Finished { slot: first.slot, serial, reason, known: 40 };
    roster.take(&told).expect("it runs").expect("its end is told");
    let (second, pages) = admit(&mut roster).expect("all pages are free");
    assert_eq!((second.slot, second.serial.get(), pages), (slot(0), 2, 3));
    let (third, pages) = admit(&mut roster).expect("two pages are left");
    assert_eq!((third.slot, third.serial.get(), pages), (slot(1), 3, 1));
}

#[test]
fn the_youngest_gives_its_pages_back_where_all_stand_still() {
    let mut roster = roster(2, 0, 4);
    let handles = [1, 2].map(|_| roster.enqueue(&newcomer(&[3; 16], 64)).expect("room"));
    let seats = [1, 2].map(|_| admit(&mut roster).expect("two pages each").0);
    assert_eq!(roster.evict(), None, "nobody lacks a page for what it knows");
    for seat in seats {
        for index in 16..33 {
            let told =
                Told::Token { slot: seat.slot, serial: seat.serial.get(), token: 5, index, has_tops: false };
            roster.take(&told).expect("it runs");
        }
        assert_eq!(roster.grant(seat.slot), None);
    }
    assert_eq!(roster.evict(), Some(seats[1]));
    assert_eq!(roster.evict(), None, "one at a time");
    let told = Told::Finished {
        slot: seats[1].slot,
        serial: seats[1].serial.get(),
        reason: FinishReason::Cancelled,
        known: 33,
    };
    assert_eq!(roster.take(&told).expect("it was asked"), None, "the user is told nothing");
    assert_eq!(roster.tokens(handles[1]).expect("it waits").len(), 33);
    let grant = roster.grant(seats[0].slot).expect("pages are free");
    assert_eq!((grant.first, grant.pages.len()), (2, 2));
    assert!(admit(&mut roster).is_none(), "its three pages are not free");
}

/// A request that runs alone has all pages that there are, unless a parked one holds some: that one can continue only
/// in the pages that the other gives back.
#[test]
fn one_that_runs_alone_gives_its_pages_back_only_to_a_parked_one() {
    for has_parked in [false, true] {
        let mut roster = roster(2, 0, 3);
        assert_eq!(roster.page_count(), 3);
        let long = roster.enqueue(&newcomer(&[3; 16], 64)).expect("room");
        let (seat, _) = admit(&mut roster).expect("two pages");
        let other = roster.enqueue(&newcomer(&[1; 3], 5)).expect("room");
        let (parked, _) = admit(&mut roster).expect("one page");
        let (slot, serial) = (parked.slot, parked.serial.get());
        if has_parked {
            roster.park(other).expect("it runs");
            roster.take(&Told::Preempted { slot, serial, position: 2, index: 2 }).expect("it was asked");
        } else {
            roster.cancel(other).expect("it runs");
            let reason = FinishReason::Cancelled;
            roster.take(&Told::Finished { slot, serial, reason, known: 3 }).expect("it was asked");
        }
        let pages = if has_parked { 2 } else { 3 };
        for index in 16..=pages * 16 {
            assert_eq!(roster.evict(), None, "{index} tokens have pages");
            let (slot, serial) = (seat.slot, seat.serial.get());
            roster.take(&Told::Token { slot, serial, token: 5, index, has_tops: false }).expect("it runs");
            roster.grant(slot);
        }
        assert_eq!(roster.tokens(long).expect("it runs").len() as u32, pages * 16 + 1);
        assert_eq!(roster.evict(), has_parked.then_some(seat));
    }
}

#[test]
fn what_is_left_of_a_request_has_the_stops_that_it_was_given() {
    let mut roster = roster(1, 0, 4);
    let stops = [0, 9, 0xffff_fffe];
    roster.enqueue(&Newcomer { stops: &stops, ..newcomer(&[1, 2], 5) }).expect("room");
    let left = roster.unfinished().pop().expect("it waits");
    assert_eq!((left.stops, left.tokens, left.tokens_left), (stops.to_vec(), vec![1, 2], 3));
}

#[test]
fn what_no_request_can_have_done_is_refused() {
    let mut roster = roster(2, 0, 8);
    roster.enqueue(&newcomer(&[1, 2, 3], 5)).expect("room");
    let Seat { slot: seat_slot, serial } = admit(&mut roster).expect("room").0;
    let serial = serial.get();
    let before = format!("{roster:?}");
    for told in [
        Told::Token { slot: seat_slot, serial: serial + 1, token: 1, index: 3, has_tops: false },
        Told::Token { slot: slot(1), serial, token: 1, index: 3, has_tops: false },
        Told::Token { slot: slot(63), serial, token: 1, index: 3, has_tops: false },
        Told::Token { slot: seat_slot, serial, token: 1, index: 2, has_tops: false },
        Told::Token { slot: seat_slot, serial, token: 1, index: 4, has_tops: false },
        // Nobody asked for it.
        Told::Preempted { slot: seat_slot, serial, position: 2, index: 2 },
        Told::Finished { slot: slot(1), serial, reason: FinishReason::Stop, known: 3 },
        Told::Finished { slot: seat_slot, serial, reason: FinishReason::Stop, known: 4 },
        Told::Finished { slot: seat_slot, serial, reason: FinishReason::Cancelled, known: 2 },
        Told::Finished { slot: seat_slot, serial, reason: FinishReason::Length, known: 3 },
    ] {
        let error = roster.take(&told).expect_err("nobody did that");
        let (slot, serial) = told.request();
        let is_it = matches!(error, SessionError::Protocol { slot: found, serial: number }
            if (found, number) == (slot.number(), serial));
        assert!(is_it, "{told:?}: {error}");
        assert_eq!(format!("{roster:?}"), before, "{told:?} changed something");
    }
    for index in [3, 4] {
        roster
            .take(&Told::Token { slot: seat_slot, serial, token: 9, index, has_tops: false })
            .expect("it runs");
    }
    let past = Told::Token { slot: seat_slot, serial, token: 9, index: 5, has_tops: false };
    roster.take(&past).expect_err("it is as long as it may be");
}

/// PLAN counts a token as known when it is chosen, and drops it if the slot is cancelled before the ring has room for
/// it.
#[test]
fn a_cancelled_request_may_have_a_token_that_was_never_delivered() {
    let cancelled =
        |slot: Slot, serial, known| Told::Finished { slot, serial, reason: FinishReason::Cancelled, known };
    let mut roster = roster(1, 0, 4);
    let handle = roster.enqueue(&newcomer(&[3; 3], 8)).expect("room");
    let (seat, _) = admit(&mut roster).expect("pages are free");
    let serial = seat.serial.get();
    roster.cancel(handle).expect("it runs");
    roster.take(&cancelled(seat.slot, serial, 5)).expect_err("one token at most waits in a slot");
    let event = roster.take(&cancelled(seat.slot, serial, 4)).expect("it was cancelled");
    assert_eq!(event, Some(Event::Finished { handle, reason: FinishReason::Cancelled }));
    assert_eq!(roster.unfinished_count(), 0);
}

#[test]
fn a_park_at_a_place_that_the_request_has_not_is_refused() {
    let mut roster = roster(1, 0, 8);
    let handle = roster.enqueue(&newcomer(&[1, 2, 3], 5)).expect("room");
    let Seat { slot, serial } = admit(&mut roster).expect("room").0;
    roster.park(handle).expect("it runs");
    for (position, index) in [(3, 2), (1000, 2), (2, 3), (2, 1)] {
        let told = Told::Preempted { slot, serial: serial.get(), position, index };
        roster.take(&told).expect_err("no row of it is there");
    }
    let told = Told::Preempted { slot, serial: serial.get(), position: 2, index: 2 };
    assert_eq!(roster.take(&told).expect("it was asked"), Some(Event::Parked { handle }));
}

/// A cancel whose end was not reported is not lost with the session; nor is that of a resubmitted request.
#[test]
fn a_request_that_ended_without_a_slot_is_told_once() {
    let mut roster = roster(1, 2, 4);
    let ended = Newcomer { stage: Stage::Ended(FinishReason::Cancelled), ..newcomer(&[1], 2) };
    let handles = [ended, newcomer(&[1], 2)].map(|one| roster.enqueue(&one).expect("room"));
    roster.cancel(handles[1]).expect("it waits");
    assert!(roster.unfinished().iter().all(|left| left.is_cancelled));
    assert!(roster.next_admission().is_none());
    let mut events = [Event::default(); 1];
    for handle in handles {
        assert_eq!(roster.tell_ended(&mut events), 1);
        assert_eq!(events[0], Event::Finished { handle, reason: FinishReason::Cancelled });
    }
    assert_eq!((roster.tell_ended(&mut events), roster.unfinished_count()), (0, 0));
    assert!(matches!(roster.cancel(handles[0]), Err(SessionError::NoSuchRequest)));
}

/// Runs a request to its end, `more` tokens later; returns the position that it was admitted at.
fn run(roster: &mut Roster, tokens: &[u32], more: u32) -> u32 {
    let handle = roster.enqueue(&newcomer(tokens, tokens.len() as u32 + more)).expect("room");
    let next = roster.next_admission().expect("a slot and pages");
    let admission = roster.admit(next);
    let (Seat { slot, serial }, position) = (admission.seat, admission.position);
    let covered = admission.grant.map_or(0, |grant| grant.pages.len() as u32 * PAGE_TOKENS);
    assert!(position <= covered, "its pages hold what is not computed");
    assert_eq!(roster.found_positions(handle).expect("it runs"), position);
    let serial = serial.get();
    let known = tokens.len() as u32 + more;
    for index in tokens.len() as u32..known {
        roster.grant(slot);
        roster
            .take(&Told::Token { slot, serial, token: 900 + index, index, has_tops: false })
            .expect("it runs");
    }
    roster.take(&Told::Finished { slot, serial, reason: FinishReason::Length, known }).expect("it ends");
    position
}

#[test]
fn a_conversation_goes_on_where_its_last_answer_was_computed() {
    let mut roster = keeping([1, 0, 1], 4);
    assert_eq!(run(&mut roster, &[1, 2, 3], 4), 0);
    assert_eq!((roster.audit().held, roster.unfinished_count(), roster.active_count()), (1, 0, 0));
    // Three tokens and four choices, the last of which no row has consumed.
    assert_eq!(run(&mut roster, &[1, 2, 3, 903, 904, 905, 906, 8, 9], 4), 6);
    // Another answer to the same question: the last row of the prompt is computed again, for its logits.
    assert_eq!(run(&mut roster, &[1, 2, 3, 903, 904, 905, 906, 8, 9], 4), 8);
    // Too little in common to give up what is there; it needs no page of it, so both are kept as long as one may be.
    assert_eq!(run(&mut roster, &[1, 2, 4], 4), 0);
    roster.forget_kept();
    assert!(roster.audit().is_clean());
}

/// A long conversation that begins alike does not hide a short one that may be given up.
#[test]
fn what_is_not_worth_it_hides_nothing() {
    let mut roster = keeping([2, 0, 2], 12);
    // Both run at once, so neither finds the other.
    let both = [[&[1; 10][..], &[2; 2]].concat(), [&[1; 10][..], &[3; 30]].concat()];
    let seats = both.each_ref().map(|tokens| {
        roster.enqueue(&newcomer(tokens, tokens.len() as u32 + 1)).expect("room");
        admit(&mut roster).expect("a slot and pages").0
    });
    for (Seat { slot, serial }, tokens) in seats.into_iter().zip(&both) {
        let (serial, index) = (serial.get(), tokens.len() as u32);
        roster.take(&Told::Token { slot, serial, token: 9, index, has_tops: false }).expect("it runs");
        let told = Told::Finished { slot, serial, reason: FinishReason::Length, known: index + 1 };
        roster.take(&told).expect("it ends");
    }
    assert_eq!(run(&mut roster, &[&[1; 10][..], &[4; 3]].concat(), 1), 10);
}

#[test]
fn a_cancelled_prompt_is_kept_as_far_as_it_was_found() {
    let mut roster = keeping([1, 0, 1], 4);
    run(&mut roster, &[7; 20], 2);
    let handle = roster.enqueue(&newcomer(&[7; 40], 48)).expect("room");
    let (seat, pages) = admit(&mut roster).expect("a slot and pages");
    assert_eq!((roster.found_positions(handle).expect("it runs"), pages), (20, 3));
    roster.cancel(handle).expect("it runs");
    let (slot, serial) = (seat.slot, seat.serial.get());
    let reason = FinishReason::Cancelled;
    roster.take(&Told::Finished { slot, serial, reason, known: 40 }).expect("it was asked");
    assert_eq!(roster.audit().held, 2, "pages of 20 positions");
    assert_eq!(run(&mut roster, &[7; 40], 1), 20);
}

#[test]
fn pages_of_kept_requests_are_given_to_whoever_needs_them_the_oldest_first() {
    let mut roster = keeping([1, 0, 3], 4);
    run(&mut roster, &[1; 17], 1);
    run(&mut roster, &[2; 10], 1);
    assert_eq!((roster.audit().free, roster.audit().held), (1, 3));
    // Two pages are needed, one is free.
    run(&mut roster, &[3; 17], 1);
    assert_eq!((roster.audit().free, roster.audit().held), (1, 3));
    assert_eq!(run(&mut roster, &[2; 10], 1), 9, "the second was kept");
    assert_eq!(run(&mut roster, &[1; 17], 1), 0, "the first was not");
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (1u32..40, 1u32..24, any::<[bool; 2]>(), 0u32..8).prop_map(|(tokens, more, [holds, parks], ended)| {
            Call::Submit { tokens, more, holds, parks: parks && ended < 4, ended: ended == 0 }
        }),
        1 => (0usize..6).prop_map(Call::Cancel),
        2 => (0usize..6).prop_map(Call::Park),
        2 => (0usize..6).prop_map(Call::Resume),
        1 => (0usize..6, any::<bool>()).prop_map(|(which, is_held)| Call::Hold(which, is_held)),
        12 => (0u32..4).prop_map(Call::Device),
        6 => (0u32..4).prop_map(Call::Serve),
        1 => (0usize..3).prop_map(Call::TellEnded),
    ]
}

proptest! {
    /// Whatever is called in whatever order, roster and model agree; afterwards every request comes to its end, and no
    /// page is held.
    #[test]
    fn any_calls_agree_with_the_model(
        calls in prop::collection::vec(call(), 1..200),
        slots in 1u32..4,
        waiting_max in 0u32..4,
        kept in 0u32..4,
        pages in 4u32..12,
    ) {
        let mut world = World::new([slots, waiting_max, kept], pages);
        for call in calls {
            world.call(&call);
            world.compare();
        }
        world.end();
    }
}
