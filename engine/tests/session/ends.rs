//! How a session ends whose device does not run.

use crate::played::{LINE, Played, finished, options, request};
use std::time::Duration;
use zrt_engine::memory_plan::AllocationId::InputRing;
use zrt_engine::session::{NotClosed, Session, SessionError, SessionOptions};

fn not_closed(session: Session) -> NotClosed {
    session.close(Duration::ZERO).err().unwrap()
}

#[test]
fn a_draining_session_takes_no_more_and_keeps_what_it_has() {
    let mut played = Played::new(&options());
    played.submit(&[5], 1);
    let left = played.session.unfinished().pop().unwrap();
    played.session.drain();
    let text = "the session is draining or stopped: it accepts no further requests";
    assert_eq!(played.session.submit(&request(&[5], 1)).unwrap_err().to_string(), text);
    assert_eq!(played.session.resubmit(&left).unwrap_err().to_string(), text);
    assert_eq!(played.session.unfinished_count(), 1);
    let NotClosed { session, .. } = not_closed(played.session);
    let mut session = *session;
    session.stop().unwrap();
    // A stopped session stays stopped.
    session.drain();
    assert!(session.close(Duration::ZERO).is_ok());
}

#[test]
fn a_session_with_requests_is_closed_only_after_it_was_stopped() {
    let mut played = Played::new(&options());
    played.submit(&[5], 1);
    played.submit(&[6], 1);
    let refused = not_closed(played.session);
    assert_eq!(
        refused.to_string(),
        "2 requests have not ended; poll until they have, or stop the session first"
    );
    assert_eq!(format!("{refused:?}"), "Live { live: 2 }");
    let mut session = *refused.session;
    assert_eq!(session.unfinished_count(), 2);
    session.stop().unwrap();
    assert!(session.close(Duration::ZERO).is_ok());
    let error = SessionError::from(not_closed({
        let mut played = Played::new(&options());
        played.submit(&[5], 1);
        played.session
    }));
    assert!(matches!(error, SessionError::Live { live: 1 }), "{error}");
}

/// No kernel runs: nobody is told to leave, and nobody is waited for.
#[test]
fn a_session_that_was_not_started_says_nothing_at_its_end() {
    for stops in [false, true] {
        let mut played = Played::new(&options());
        assert!(played.session.has_left());
        let ring = played.session.resident().buffer(InputRing).view().unwrap().clone();
        if stops {
            played.session.stop().unwrap();
        }
        assert!(played.session.close(Duration::ZERO).is_ok());
        assert!((0..8 * LINE).all(|dword| ring.load_u32(dword * 4) == 0), "stopped: {stops}");
    }
}

#[test]
fn a_stopped_session_still_tells_and_admits_nobody() {
    let mut played = Played::new(&SessionOptions { slots: 1, ..options() });
    played.submit(&[5], 1);
    played.submit(&[6], 1);
    played.session.stop().unwrap();
    assert!(matches!(played.session.submit(&request(&[5], 1)), Err(SessionError::Leaving)));
    played.tell(finished(0, 1, 1, 1));
    assert_eq!(played.poll().unwrap().len(), 1);
    assert_eq!(played.sent(1), [0; 16], "the slot stays free");
    assert_eq!(played.session.unfinished_count(), 1);
    assert!(played.session.close(Duration::ZERO).is_ok());
}
