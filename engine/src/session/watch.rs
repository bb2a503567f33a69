//! The watchdog: tells a hang from idleness, and a ring that is broken from one that is empty.
//!
//! Contract: looks at mapped memory, and allocates only where something has stood still for `hang_after`. A step that takes
//! long is no hang as long as a workgroup comes from task to task.

use super::ending::Ending;
use super::{Session, SessionError, Standing, mapped};
use crate::memory_plan::AllocationId;
use std::mem::offset_of;
use std::time::{Duration, Instant};
use zrt_protocol::{STATUS_LOOKS, Status};
use zrt_ring::token_ring::TokenRingError;

/// How long a hung or faulted device is asked for what the driver knows.
const DIAGNOSIS_DEADLINE: Duration = Duration::from_millis(10);
/// PLAN polls that may miss a fresh entry of the input ring: one poll may have started before the entry was written, and
/// the heartbeat may be reported late.
const LOOKS_MAX: u32 = 2 + STATUS_LOOKS as u32;

/// PLAN's heartbeat, the newest step, and the submissions that are done.
type Seen = (u32, u32, u64);

/// What was last seen to move, and when.
pub(super) struct Watch {
    steps_moved: Instant,
    steps_seen: Seen,
    standings: Vec<Standing>,
    ring: Option<RingWait>,
}

/// A ring with something in it that was not taken.
#[derive(Clone, Copy)]
struct RingWait {
    since: Instant,
    /// The oldest entry that the device has not taken, and the next that the host takes.
    entries: (Option<u64>, u64),
    /// PLAN's heartbeat then.
    heartbeat: u32,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { steps_moved: Instant::now(), steps_seen: (0, 0, 0), standings: Vec::new(), ring: None }
    }

    /// A step was submitted.
    pub(super) fn note_submission(&mut self) {
        self.steps_moved = Instant::now();
    }
}

impl Session {
    /// Both watches. `has_events`: this poll took some.
    pub(super) fn watch(&mut self, has_events: bool) -> Result<(), SessionError> {
        if self.ending == Ending::Stopped {
            return Ok(());
        }
        let seen = self.seen()?;
        if !has_events {
            self.watch_rings(seen.0)?;
        }
        self.watch_steps(has_events, seen)
    }

    fn seen(&self) -> Result<Seen, SessionError> {
        let view = mapped(self.resident.buffer(AllocationId::Status))?;
        let (heartbeat, epoch) = (offset_of!(Status, heartbeat), offset_of!(Status, epoch));
        Ok((view.load_u32(heartbeat), view.load_u32(epoch), self.resident.device.progress()))
    }

    /// A ring stands still though PLAN looks at it.
    fn watch_rings(&mut self, heartbeat: u32) -> Result<(), SessionError> {
        let oldest = self.input.oldest_waiting()?;
        let is_quiet = oldest.is_none() && self.output.broken(0).is_none();
        let entries = (oldest, self.output.taken());
        let Some(wait) = self.watch.ring.filter(|wait| !is_quiet && wait.entries == entries) else {
            let begin = || RingWait { since: Instant::now(), entries, heartbeat };
            self.watch.ring = (!is_quiet).then(begin);
            return Ok(());
        };
        let waited = wait.since.elapsed();
        if waited < self.options.hang_after {
            return Ok(());
        }
        let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        if let Some(error) = self.output.broken(waited_ns) {
            return Err(error.into());
        }
        match oldest {
            Some(number) if heartbeat.wrapping_sub(wait.heartbeat) > LOOKS_MAX => {
                Err(TokenRingError::NotConsumed { number, waited_ns }.into())
            }
            _ => Ok(()),
        }
    }

    /// Requests run, and neither events nor steps nor PLAN's looks nor workgroups go on.
    fn watch_steps(&mut self, has_events: bool, seen: Seen) -> Result<(), SessionError> {
        let active = self.slots.iter().filter(|slot| slot.is_some()).count() as u32;
        if has_events || active == 0 || seen != self.watch.steps_seen {
            self.watch.steps_seen = seen;
            self.watch.steps_moved = Instant::now();
            return Ok(());
        }
        let waited = self.watch.steps_moved.elapsed();
        if waited < self.options.hang_after {
            return Ok(());
        }
        if let Some(ticket) = self.ticket()
            && let Err(error) = self.resident.device.wait(ticket, DIAGNOSIS_DEADLINE)
            && self.resident.device.is_lost()
        {
            return Err(error.into());
        }
        // A long step is no hang: its workgroups come from task to task.
        let groups = self.standings()?;
        if groups != self.watch.standings || self.seen()? != seen {
            self.watch.standings = groups;
            self.watch.steps_moved = Instant::now();
            return Ok(());
        }
        Err(SessionError::Hang { waited, active, groups })
    }
}
