//! A random workload for a session, as a server's clients would make it, and the checks of what each client receives.
//!
//! Contract: everything is drawn from the seed. Expected tokens come from the oracle, which runs each shape of a
//! request alone. [`drive`] panics at the first thing that a client must not see, and when the deadline passes, with
//! the standings of the megakernel.

mod crowd;
mod shape;

pub use crowd::{Clients, Report};
pub use shape::{Shape, shape};

use crowd::{Crowd, PLACES_MAX};
use std::time::{Duration, Instant};
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::session::{Event, Session};
use zrt_protocol::Control;

/// How long a client waits when there is nothing for it: the virtual device needs the host's cores.
const PAUSE: Duration = Duration::from_micros(100);

/// Runs requests of these shapes until all have ended.
pub fn drive(session: &mut Session, shapes: &[Shape], clients: Clients, seed: u64) -> Report {
    let mut crowd = Crowd::new(shapes, clients, seed);
    let mut events = [Event::default(); PLACES_MAX];
    let start = Instant::now();
    while !crowd.is_done() {
        // Time is counted in PLAN's looks for work: about the same as steps while there are any.
        let looks = u64::from(session.status().expect("the status is mapped").heartbeat);
        if start.elapsed() > clients.deadline {
            let standings = session.standings();
            panic!("seed {seed}: {crowd}: {:?}, {standings:?}", session.status());
        }
        if crowd.advance_to(looks) {
            crowd.submit(session);
            crowd.act(session);
            crowd.go_deaf();
        }
        let mut count = 0;
        if let Some(places) = crowd.places_to_poll() {
            let polled = session.poll(&mut events[..places]);
            count = polled.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            crowd.hear(&events[..count]);
        }
        if count == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    let mut report = crowd.report();
    report.took = start.elapsed();
    settle(session, &mut events);
    report.steps = session.status().expect("the status is mapped").epoch;
    report.spins = session.spins().expect("breadcrumbs are read");
    report.requeued = u64::from(admissions(session)).saturating_sub(report.requests as u64);
    report
}

/// After the last end: no event, no page, no request.
fn settle(session: &mut Session, events: &mut [Event]) {
    for _ in 0..20 {
        assert_eq!(
            session.poll(events).expect("an idle session is polled"),
            0,
            "an event after the last end"
        );
        std::thread::yield_now();
    }
    assert_eq!(session.unfinished_count(), 0, "requests that have not ended");
    session.forget_kept();
    assert!(session.audit().is_clean(), "pages leak: {:?}", session.audit());
}

/// Slots that were taken: each time takes the next serial number, and gets its first page under it.
pub fn admissions(session: &mut Session) -> u32 {
    let mut lines = vec![0u8; zrt_protocol::SLOTS_MAX * size_of::<Control>()];
    session.resident().download(AllocationId::Control, 0, &mut lines).expect("control lines are read");
    let at = std::mem::offset_of!(Control, granted_serial);
    let serial = |line: &[u8]| line[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    lines.chunks_exact(size_of::<Control>()).map(serial).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::{Asked, checked_session};
    use crate::{load, repository_model};
    use zrt_engine::sampling::SamplingOptions;
    use zrt_engine::session::{Mode, SessionOptions};

    #[test]
    #[should_panic = "requests that have not ended"]
    fn a_session_with_a_request_in_it_is_not_settled() {
        let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
        let options = SessionOptions { mode: Mode::Dispatch, context: 16, ..SessionOptions::default() };
        let mut session = checked_session(&model, &options, 1);
        Asked::greedy([1], 1).submit(&mut session);
        settle(&mut session, &mut [Event::default(); PLACES_MAX]);
    }

    #[test]
    #[should_panic = "0 live after"]
    fn a_session_that_does_nothing_is_left_after_the_deadline() {
        let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
        let mut session =
            checked_session(&model, &SessionOptions { context: 16, ..SessionOptions::default() }, 1);
        let shape = Shape {
            prompt: vec![1],
            tokens_max: 1,
            sampling: SamplingOptions::default(),
            stops: vec![],
            expected: vec![1],
        };
        let clients = Clients { requests: 1, at_once: 1, whim_looks: 0, deadline: Duration::from_millis(1) };
        drive(&mut session, &[shape], clients, 1);
    }
}
