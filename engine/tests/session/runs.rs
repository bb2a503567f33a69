//! Sessions whose device runs: what is submitted and when, and how the megakernel begins and leaves.

use crate::played::{LINE, Played, finished, options, request};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zrt_engine::memory_plan::AllocationId::InputRing;
use zrt_engine::session::{Event, Mode, Session, SessionError, SessionOptions};
use zrt_mem::{ByteLen, SharedView};

/// Longest that what is awaited may take.
const DEADLINE: Duration = Duration::from_secs(60);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        std::thread::yield_now();
    }
}

/// Polls until every request has ended; returns the number of tokens.
fn run(session: &mut Session) -> usize {
    let mut tokens = 0;
    until("it does not end", || {
        let mut events = [Event::default(); 8];
        let count = session.poll(&mut events).unwrap();
        tokens += events[..count].iter().filter(|event| matches!(event, Event::Token { .. })).count();
        session.unfinished_count() == 0
    });
    tokens
}

fn input_ring(session: &mut Session) -> SharedView {
    session.resident().buffer(InputRing).view().unwrap().clone()
}

/// Tag and kind of the lines of the input ring.
fn kinds(ring: &SharedView) -> [[u32; 2]; 4] {
    [0, 1, 2, 3].map(|line| [ring.load_u32(line * LINE * 4), ring.load_u32(line * LINE * 4 + 4)])
}

#[test]
fn the_megakernel_runs_from_the_start_until_it_is_told_to_leave() {
    let Played { mut session, .. } = Played::new(&options());
    assert_eq!((session.groups(), session.has_left()), (None, true));
    assert_eq!(session.standings().unwrap(), []);
    assert_eq!(session.spins().unwrap(), 0);
    session.start().unwrap();
    session.start().unwrap();
    assert_eq!((session.groups(), session.has_left()), (Some(2), false));
    session.submit(&request(&[5, 6, 7], 3)).unwrap();
    assert_eq!(run(&mut session), 3);
    until("a workgroup waits for work", || session.spins().unwrap() > 2);
    let standings = session.standings().unwrap();
    assert_eq!(standings.iter().map(|one| one.group).collect::<Vec<_>>(), [0, 1]);
    assert!(standings.iter().all(|one| one.epoch > 0), "{standings:?}");
    let ring = input_ring(&mut session);
    session.close(DEADLINE).unwrap();
    assert_eq!(kinds(&ring), [[1, 1], [2, 3], [0, 0], [0, 0]], "Admit, then Drain");
}

/// The device is open for the next session.
#[test]
fn a_stopped_megakernel_leaves_and_is_told_once() {
    let Played { mut session, .. } = Played::new(&options());
    session.start().unwrap();
    let ring = input_ring(&mut session);
    session.stop().unwrap();
    session.stop().unwrap();
    until("it does not leave", || session.has_left());
    let device = session.close(DEADLINE).unwrap();
    assert_eq!(kinds(&ring), [[1, 4], [0, 0], [0, 0], [0, 0]], "Stop");
    let Played { mut session, .. } = Played::on(device, &crate::played::model(), &options());
    session.start().unwrap();
    session.submit(&request(&[5], 1)).unwrap();
    assert_eq!(run(&mut session), 1);
    session.close(DEADLINE).unwrap();
}

/// In the other modes the host submits steps, and none without a request.
#[test]
fn a_host_driven_session_submits_while_there_is_a_request() {
    for mode in [Mode::Graph, Mode::Dispatch] {
        let Played { mut session, .. } = Played::new(&SessionOptions { mode, groups: None, ..options() });
        session.start().unwrap();
        assert!(session.mega_parts().is_none());
        assert_eq!((session.groups(), session.spins().unwrap()), (None, 0));
        assert_eq!(session.standings().unwrap(), []);
        let ring = input_ring(&mut session);
        for served in [2, 4] {
            let before = session.resident().device.progress();
            for _ in 0..3 {
                assert_eq!(session.poll(&mut [Event::default()]).unwrap(), 0);
                assert!(session.has_left(), "{mode:?}: nothing was submitted");
            }
            assert_eq!(session.resident().device.progress(), before, "{mode:?}");
            session.submit(&request(&[5, 6, 7], 3)).unwrap();
            assert_eq!(run(&mut session), 3, "{mode:?}");
            until("the last step does not end", || session.has_left());
            // The next poll after the end of a step submits another.
            session.submit(&request(&[5], 2)).unwrap();
            until("it stands still", || {
                session.poll(&mut [Event::default(); 8]).unwrap();
                until("a step does not end", || session.has_left());
                session.unfinished_count() == 0
            });
            assert_eq!(kinds(&ring)[served - 1], [served as u32, 1], "{mode:?}");
        }
        session.close(DEADLINE).unwrap();
        let line = (0..8).rev().find(|line| ring.load_u32(line * LINE * 4) != 0);
        assert_eq!(line, Some(3), "{mode:?}: nobody is told to leave");
    }
}

#[test]
fn groups_that_cannot_be_resident_are_refused() {
    let open = |mode, groups| {
        let options = SessionOptions { mode, groups: Some(groups), ..options() };
        let device = crate::played::device();
        Session::prepare(device, &crate::played::model(), &options, &mut |_, _| {})
            .err()
            .map(|error| error.to_string())
    };
    for mode in Mode::ALL {
        assert_eq!(open(mode, 0).as_deref(), Some("groups is 0, and must be at least 1"));
        assert_eq!(open(mode, 1), None);
    }
    assert_eq!(
        open(Mode::Mega, 129).as_deref(),
        Some(
            "129 workgroups of the megakernel are more than the 128 that are resident at once (2 on each of 64 compute \
             units); the others would take no part"
        )
    );
}

/// As many dwords as the kernel's workgroups and tasks use (protocol/src/tape.rs), and none of another's.
#[test]
fn the_megakernels_buffers_hold_what_it_uses() {
    let Played { mut session, .. } = Played::new(&SessionOptions { groups: Some(5), ..options() });
    let tasks = session.resident().tasks.len() as u64;
    let allocations = session.resident().device.allocations();
    let len = |label: &str| {
        let found: Vec<u64> =
            allocations.iter().filter(|(name, ..)| name == label).map(|(_, _, len)| len.0).collect();
        assert_eq!(found.len(), 1, "{label}");
        found[0]
    };
    // An entry for each task but PLAN, and the end.
    assert_eq!(len("tape"), tasks * 64);
    assert_eq!(len("counters"), 256 + tasks * 4);
    assert_eq!(len("breadcrumbs"), 5 * 64);
    assert_eq!(len("start"), 256 + 5 * 4);
}

/// A megakernel whose first instruction is none: no workgroup begins.
#[test]
fn a_kernel_that_does_not_begin_is_told_once_and_for_all() {
    let Played { mut session, .. } = Played::new(&SessionOptions { hang_after: Duration::ZERO, ..options() });
    let parts = session.mega_parts().unwrap();
    parts.device.upload(parts.kernel.code(), ByteLen(0), &u32::MAX.to_le_bytes()).unwrap();
    let error = session.start().unwrap_err();
    assert!(matches!(error, SessionError::NotStarted { groups: 2, .. }), "{error}");
    assert_eq!(session.groups(), Some(0));
    let error = session.start().unwrap_err();
    assert_eq!(error.to_string(), "none of the megakernel's 2 workgroups has begun within 0ns");
    // It counts as hung: its time is over.
    let error = session.close(Duration::ZERO).err().unwrap().error;
    assert!(matches!(error, SessionError::Device(_)), "{error}");
}

/// The trailer of the first command is missing, so that PLAN takes none.
fn with_a_command_that_is_not_read(options: &SessionOptions, requests: usize) -> Played {
    let mut played = Played::new(options);
    for _ in 0..requests {
        played.submit(&[5], 1);
    }
    played.put(InputRing, LINE - 1, &[0]);
    played.session.start().unwrap();
    played
}

/// PLAN goes on when the trailer is there.
fn repair(session: &mut Session) {
    session.resident().upload(InputRing, 60, (!1u32).as_bytes()).unwrap();
}

/// A deadline that has passed is no hang.
#[test]
fn a_device_that_has_not_left_yet_is_closed_later() {
    let mut played = with_a_command_that_is_not_read(&options(), 1);
    played.session.stop().unwrap();
    let refused = played.session.close(Duration::ZERO).err().unwrap();
    assert!(matches!(refused.error, SessionError::NotLeft { .. }), "{refused}");
    let mut session = *refused.session;
    assert!(!session.has_left());
    repair(&mut session);
    session.close(DEADLINE).unwrap();
}

/// The host believes that both requests have ended; there is no room for the command to leave.
#[test]
fn a_device_that_reads_nothing_is_closed_when_it_does() {
    let mut played = with_a_command_that_is_not_read(&SessionOptions { input_entries: 2, ..options() }, 2);
    played.tell(finished(0, 1, 1, 1));
    played.tell(finished(1, 2, 1, 1));
    assert_eq!(played.poll().unwrap().len(), 2);
    let refused = played.session.close(Duration::ZERO).err().unwrap();
    assert!(matches!(refused.error, SessionError::NotLeft { .. }), "{refused}");
    let mut session = *refused.session;
    assert!(session.stop().is_err(), "there is no room");
    repair(&mut session);
    session.close(DEADLINE).unwrap();
}
