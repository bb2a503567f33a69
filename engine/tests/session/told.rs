//! What a session tells its user of what its device has told.

use crate::played::{Played, finished, options, request, token};
use zrt_engine::memory_plan::AllocationId::{Control, OutputRing, OutputTops, Status};
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, FinishReason, Request, SessionError, SessionOptions};

/// Dwords of what comes beside an entry of the output ring.
const TOPS: usize = 192 / 4;

#[test]
fn events_come_in_order_as_many_as_fit() {
    let mut played = Played::new(&SessionOptions { slots: 2, ..options() });
    let handles = [0; 3].map(|_| played.submit(&[5, 6], 3));
    // It waits, so the device has no part in its end.
    played.session.cancel(handles[2]).unwrap();
    played.tell(token(1, 2, 9, 2));
    played.tell(token(0, 1, 8, 2));
    played.tell(token(1, 2, 7, 3));
    let mut events = [Event::default(); 2];
    assert_eq!(played.session.poll(&mut events).unwrap(), 2);
    let told = |which: usize, token, index| Event::Token { handle: handles[which], token, index };
    assert_eq!(events, [told(1, 9, 2), told(0, 8, 2)]);
    assert_eq!(played.session.poll(&mut events).unwrap(), 2);
    let ended = Event::Finished { handle: handles[2], reason: FinishReason::Cancelled };
    assert_eq!(events, [told(1, 7, 3), ended]);
    assert_eq!(played.session.tokens(handles[1]).unwrap(), [5, 6, 9, 7]);
    assert_eq!(played.session.tokens(handles[0]).unwrap(), [5, 6, 8]);
    played.tell(finished(0, 1, 1, 3));
    assert_eq!(played.poll().unwrap(), [Event::Finished { handle: handles[0], reason: FinishReason::Stop }]);
    assert!(matches!(played.session.tokens(handles[0]), Err(SessionError::NoSuchRequest)));
    assert_eq!(played.session.unfinished_count(), 1);
    let left = played.session.unfinished();
    assert_eq!(left.iter().map(|one| one.handle).collect::<Vec<_>>(), [handles[1]]);
    assert_eq!((left[0].tokens_left, &left[0].tokens), (1, &vec![5, 6, 9, 7]));
}

/// Natural logarithms: of the sum of the weights, 1 + 2^-9, it is 0.001951220.
#[test]
fn log_probabilities_are_those_beside_the_token_until_the_next_poll() {
    let mut played = Played::new(&options());
    let sampling = SamplingOptions { log_probabilities: Some(2), ..SamplingOptions::default() };
    let handle = played.session.submit(&Request { sampling, ..request(&[5], 9) }).unwrap();
    let bits = f32::to_bits;
    // Count, difference of the choice, sum in units of 2^-40 (low, high), then tokens with their differences.
    let certain = [0, 0, 0, 256];
    let beside = [2, bits(-1.0), 1 << 31, 256, 4, 0, 6, bits(-2.0), 7, bits(-3.0)];
    played.put(OutputTops, 0, &certain);
    played.put(OutputTops, TOPS, &beside);
    played.tell_with(token(0, 1, 3, 1), 1);
    played.tell_with(token(0, 1, 9, 2), 1);
    played.tell(token(0, 1, 8, 3));
    assert_eq!(played.poll().unwrap().len(), 3);
    let first = played.session.log_probabilities(handle, 1).unwrap();
    assert_eq!((first.chosen().token, first.chosen().value, first.top().len()), (3, 0.0, 0));
    let second = played.session.log_probabilities(handle, 2).unwrap();
    let found: Vec<_> =
        [second.chosen()].iter().chain(second.top()).map(|one| (one.token, one.value)).collect();
    let tokens: Vec<u32> = found.iter().map(|(token, _)| *token).collect();
    assert_eq!(tokens, [9, 4, 6]);
    for ((_, value), expected) in found.iter().zip([-1.001_951_2, -0.001_951_22, -2.001_951_2]) {
        assert!((value - expected).abs() < 3e-7, "{found:?}");
    }
    assert_eq!(played.session.log_probabilities(handle, 3), None, "the third came without");
    assert_eq!(played.poll().unwrap(), []);
    assert_eq!(played.session.log_probabilities(handle, 2), None);
}

/// The choice would be more likely than the most likely token.
#[test]
fn tops_that_no_kernel_records_are_an_error_after_their_token() {
    let mut played = Played::new(&options());
    let handle = played.submit(&[5], 9);
    played.put(OutputTops, 0, &[0, f32::to_bits(1.0), 0, 256]);
    played.tell_with(token(0, 1, 3, 1), 1);
    assert_eq!(played.poll().unwrap(), [Event::Token { handle, token: 3, index: 1 }]);
    let error = played.poll().unwrap_err();
    assert_eq!(error.to_string(), "the device reported slot 0 and request 1, which the host does not have");
}

#[test]
fn an_error_is_told_at_once_or_after_the_events_before_it() {
    let mut played = Played::new(&options());
    let handle = played.submit(&[5], 9);
    played.tell(token(2, 1, 3, 1));
    let error = played.poll().unwrap_err();
    assert_eq!(error.to_string(), "the device reported slot 2 and request 1, which the host does not have");
    // What the line says is no event: nothing after it counts.
    played.tell(token(0, 1, 3, 1));
    played.tell([9, 1, 3, 2, 0]);
    assert_eq!(played.poll().unwrap(), [Event::Token { handle, token: 3, index: 1 }]);
    for _ in 0..2 {
        let error = played.poll().unwrap_err();
        assert_eq!(error.to_string(), "entry 2 of the output ring: there is no event of kind 9");
    }
}

#[test]
fn the_status_is_what_plan_last_said() {
    let mut played = Played::new(&options());
    let said = |played: &Played| {
        let status = played.session.status().unwrap();
        [status.input_consumed, status.heartbeat, status.epoch, status.flags]
    };
    assert_eq!(said(&played), [0; 4]);
    played.put(Status, 0, &[11, 12, 13, 14]);
    assert_eq!(said(&played), [11, 12, 13, 14]);
}

/// Whatever a ring held before it is made is cleared.
#[test]
fn a_request_that_ended_is_kept_for_one_that_begins_alike() {
    let mut played = Played::new(&SessionOptions { kept: 1, ..options() });
    assert!(played.all(OutputRing).iter().all(|dword| *dword == 0));
    played.submit(&[5, 6, 7], 2);
    played.tell_tokens((0, 1), 3..5);
    played.tell(finished(0, 1, 2, 5));
    assert_eq!(played.poll().unwrap().len(), 1);
    // Of its tokens 5, 6, 7, 3, 4 the last has no position yet.
    let again = played.submit(&[5, 6, 7, 3, 9], 2);
    assert_eq!(played.session.found_positions(again).unwrap(), 4);
    assert_eq!(played.sent(1)[..6], [2, 0x0001, 2, 5, 7, 4]);
    played.tell_tokens((0, 2), 5..7);
    played.tell(finished(0, 2, 2, 7));
    assert_eq!(played.poll().unwrap().len(), 1);
    assert_eq!(played.session.audit().held, 1);
    played.session.forget_kept();
    assert!(played.session.audit().is_clean());
    let other = played.submit(&[5, 6, 7, 3, 9], 2);
    assert_eq!(played.session.found_positions(other).unwrap(), 0);
}

/// The last that came gives back its pages and waits; as soon as it is told of, the device cancels it.
#[test]
fn who_gives_its_pages_back_goes_on_later() {
    let mut played = Played::new(&SessionOptions { slots: 2, pages: Some(4), ..options() });
    let handles = [0; 2].map(|_| played.submit(&[5], 63));
    played.tell_tokens((0, 1), 1..33);
    assert_eq!(played.dwords(Control, 16, 1), [0]);
    played.tell_tokens((1, 2), 1..33);
    assert_eq!(played.dwords(Control, 16, 1), [2], "cancelled");
    played.tell(finished(1, 2, 3, 33));
    assert_eq!(played.poll().unwrap(), [], "its user is told nothing");
    assert_eq!(played.session.tokens(handles[1]).unwrap().len(), 33);
}
