//! When a session counts as hung, and a ring as broken. Where nothing may stand still for any time, the second poll of
//! the same state reports it: no case waits.

use crate::played::{LINE, Played, finished, options, token};
use std::time::Duration;
use zerocopy::IntoBytes;
use zrt_engine::memory_plan::AllocationId::OutputRing;
use zrt_engine::session::{SessionError, SessionOptions};
use zrt_mem::ByteLen;
use zrt_protocol::Breadcrumb;
use zrt_ring::token_ring::TokenRingError;

/// Whatever stands still at two polls has stood still for too long.
fn impatient() -> Played {
    Played::new(&SessionOptions { hang_after: Duration::ZERO, ..options() })
}

/// A device that has taken the first command.
fn with_a_request() -> Played {
    let mut played = impatient();
    played.submit(&[5], 9);
    played.status([1, 7, 1, 0]);
    played.poll().unwrap();
    played
}

fn crumb(played: &mut Played, group: u64, epoch: u32, task: u32) {
    let crumb = Breadcrumb { epoch, task, ..Breadcrumb::default() };
    let parts = played.session.mega_parts().unwrap();
    parts.device.upload(parts.breadcrumbs, ByteLen(group * 64), crumb.as_bytes()).unwrap();
}

#[test]
fn nothing_moves_while_a_request_runs() {
    let mut played = with_a_request();
    let error = played.poll().unwrap_err();
    let SessionError::Hang { active: 1, groups, .. } = &error else { panic!("{error}") };
    assert_eq!(groups, &[]);
}

#[test]
fn an_idle_session_may_stand_still() {
    let mut played = impatient();
    for _ in 0..3 {
        assert_eq!(played.poll().unwrap(), []);
    }
}

#[test]
fn nothing_has_stood_still_for_long() {
    let mut played = Played::new(&options());
    played.submit(&[5], 9);
    for _ in 0..3 {
        assert_eq!(played.poll().unwrap(), []);
    }
}

#[test]
fn events_or_a_heartbeat_or_a_step_are_progress() {
    let mut played = with_a_request();
    for index in 1..4 {
        played.tell(token(0, 1, 3, index));
        assert_eq!(played.poll().unwrap().len(), 1);
    }
    for (heartbeat, epoch) in [(8, 1), (8, 2), (9, 2)] {
        played.status([1, heartbeat, epoch, 0]);
        assert_eq!(played.poll().unwrap(), []);
    }
    assert!(matches!(played.poll(), Err(SessionError::Hang { .. })));
}

/// A long step: PLAN does not run, but workgroups go from task to task.
#[test]
fn workgroups_that_move_are_progress() {
    let mut played = with_a_request();
    for (group, epoch, task) in [(1, 3, 2), (1, 3, 4), (0, 3, 1), (1, 4, 4)] {
        crumb(&mut played, group, epoch, task);
        assert_eq!(played.poll().unwrap(), [], "{group} {epoch} {task}");
    }
    let error = played.poll().unwrap_err();
    let SessionError::Hang { groups, .. } = &error else { panic!("{error}") };
    let found: Vec<_> = groups.iter().map(|one| (one.group, one.epoch, one.task, one.kernel)).collect();
    assert_eq!(found, [(0, 3, 1, "embed_f32"), (1, 4, 4, "matmul_f32")]);
    assert_eq!(played.session.standings().unwrap(), *groups);
    // One that has begun no step has left no trace, nor has one at a task that there is not.
    crumb(&mut played, 0, 0, 1);
    crumb(&mut played, 1, 4, 4000);
    assert_eq!(played.session.standings().unwrap(), []);
}

/// PLAN's status may be 32 looks late, and one look may have begun before the entry was written.
#[test]
fn a_command_that_plan_passes_over_is_told() {
    let mut played = impatient();
    played.submit(&[5], 9);
    for heartbeat in [100, 133, 134] {
        played.status([0, heartbeat, 0, 0]);
        assert_eq!(played.poll().unwrap(), [], "{heartbeat}");
    }
    played.status([0, 135, 0, 0]);
    let error = played.poll().unwrap_err();
    let SessionError::Ring(TokenRingError::NotConsumed { number: 0, .. }) = error else { panic!("{error}") };
    // Another is the oldest now: the count begins anew.
    played.submit(&[5], 9);
    for heartbeat in [200, 234] {
        played.status([1, heartbeat, 0, 0]);
        assert_eq!(played.poll().unwrap(), [], "{heartbeat}");
    }
    played.status([1, 235, 0, 0]);
    let error = played.poll().unwrap_err();
    let SessionError::Ring(TokenRingError::NotConsumed { number: 1, .. }) = error else { panic!("{error}") };
    // All were taken.
    for heartbeat in [300, 400] {
        played.status([2, heartbeat, 0, 0]);
        assert_eq!(played.poll().unwrap(), [], "{heartbeat}");
    }
}

/// A device that does nothing at all has no broken ring.
#[test]
fn an_ended_session_whose_command_was_not_read_is_not_hung() {
    let mut played = impatient();
    played.submit(&[5], 9);
    played.tell(finished(0, 1, 1, 1));
    assert_eq!(played.poll().unwrap().len(), 1);
    for _ in 0..3 {
        assert_eq!(played.poll().unwrap(), []);
    }
}

/// The line that is to be the next event has a header without its trailer, or one of another entry.
#[test]
fn an_event_that_does_not_come_whole_is_told_at_the_second_look() {
    let line = |header: u32, trailer: u32| {
        let mut line = [0; LINE];
        (line[0], line[LINE - 1]) = (header, trailer);
        line
    };
    let mut played = impatient();
    for _ in 0..2 {
        played.put(OutputRing, 0, &line(1, 5));
        assert_eq!(played.poll().unwrap(), [], "it may be on its way");
        let error = played.poll().unwrap_err();
        let SessionError::Ring(TokenRingError::Torn { number: 0, trailer: 5, .. }) = error else {
            panic!("{error}")
        };
        // It is gone, and what comes after it is new.
        played.put(OutputRing, 0, &line(0, 0));
        assert_eq!(played.poll().unwrap(), []);
    }
    played.put(OutputRing, 0, &line(77, 5));
    assert_eq!(played.poll().unwrap(), []);
    let error = played.poll().unwrap_err();
    let SessionError::Ring(TokenRingError::Foreign { number: 0, found: 77, .. }) = error else {
        panic!("{error}")
    };
    let mut patient = Played::new(&options());
    patient.put(OutputRing, 0, &line(1, 5));
    for _ in 0..3 {
        assert_eq!(patient.poll().unwrap(), []);
    }
}
