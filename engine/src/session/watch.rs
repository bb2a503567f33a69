//! The watchdog: distinguishes a hang from idleness, and a broken ring from an empty one.
//!
//! Contract: reads mapped memory, and allocates only if nothing has moved for `hang_after`. A step that takes
//! long is not a hang as long as a workgroup goes from task to task.

use super::drive::Drive;
use super::error::{SessionError, Standing};
use super::link::Link;
use crate::executor::resident::Resident;
use std::time::{Duration, Instant};
use zrt_protocol::STATUS_LOOKS;
use zrt_ring::token_ring::TokenRingError;

/// How long to wait for the driver's report on a hung or faulted device.
const DIAGNOSIS_DEADLINE: Duration = Duration::from_millis(10);
/// PLAN polls that may miss a fresh entry of the input ring: one poll may have started before the entry was written,
/// and the heartbeat may be reported late.
const LOOKS_MAX: u32 = 2 + STATUS_LOOKS as u32;

/// What moves while a device is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// PLAN's heartbeat.
    heartbeat: u32,
    /// The newest step.
    epoch: u32,
    /// The submissions that are done.
    submissions: u64,
}

/// What was last seen to move, and when.
#[derive(Debug)]
pub(super) struct Watch {
    hang_after: Duration,
    steps_moved: Instant,
    steps_seen: Seen,
    standings: Vec<Standing>,
    ring: Option<RingWait>,
}

/// A ring that holds an entry that was not consumed.
#[derive(Clone, Copy, Debug)]
struct RingWait {
    since: Instant,
    /// The oldest entry that the device has not consumed, and the next that the host will consume.
    entries: (Option<u64>, u64),
    /// PLAN's heartbeat at that time.
    heartbeat: u32,
}

impl Watch {
    /// A watch that begins now. No progress for `hang_after` is an error.
    pub fn new(hang_after: Duration) -> Watch {
        Watch {
            hang_after,
            steps_moved: Instant::now(),
            steps_seen: Seen::default(),
            standings: Vec::new(),
            ring: None,
        }
    }

    /// A step was submitted.
    pub fn note_submission(&mut self) {
        self.steps_moved = Instant::now();
    }

    /// Checks rings and steps. `active`: slots that a request holds. `has_events`: this poll returned some.
    pub fn look(
        &mut self,
        link: &mut Link,
        drive: &Drive,
        resident: &mut Resident,
        active: u32,
        has_events: bool,
    ) -> Result<(), SessionError> {
        let seen = seen(link, resident);
        if !has_events {
            self.look_at_rings(link, seen.heartbeat)?;
        }
        if has_events || active == 0 || seen != self.steps_seen {
            self.steps_seen = seen;
            self.steps_moved = Instant::now();
            return Ok(());
        }
        if self.steps_moved.elapsed() < self.hang_after {
            return Ok(());
        }
        self.diagnose(link, drive, resident, active)
    }

    /// Detects a ring that does not move although PLAN polls it.
    fn look_at_rings(&mut self, link: &mut Link, heartbeat: u32) -> Result<(), SessionError> {
        let entries = link.standing()?;
        let is_quiet = entries.0.is_none() && link.broken(0).is_none();
        let Some(wait) = self.ring.filter(|wait| !is_quiet && wait.entries == entries) else {
            let begin = || RingWait { since: Instant::now(), entries, heartbeat };
            self.ring = (!is_quiet).then(begin);
            return Ok(());
        };
        let waited = wait.since.elapsed();
        if waited < self.hang_after {
            return Ok(());
        }
        let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        if let Some(error) = link.broken(waited_ns) {
            return Err(error.into());
        }
        match entries.0 {
            Some(number) if heartbeat.wrapping_sub(wait.heartbeat) > LOOKS_MAX => {
                Err(TokenRingError::NotConsumed { number, waited_ns }.into())
            }
            _ => Ok(()),
        }
    }

    /// Requests run, and neither events nor steps nor PLAN's heartbeat nor submissions have moved for `hang_after`.
    fn diagnose(
        &mut self,
        link: &Link,
        drive: &Drive,
        resident: &mut Resident,
        active: u32,
    ) -> Result<(), SessionError> {
        let waited = self.steps_moved.elapsed();
        if let Some(ticket) = drive.ticket()
            && let Err(error) = resident.device.wait(ticket, DIAGNOSIS_DEADLINE)
            && resident.device.is_lost()
        {
            return Err(error.into());
        }
        // A long step is not a hang: its workgroups move from task to task.
        let groups = drive.standings(resident)?;
        if groups != self.standings || seen(link, resident) != self.steps_seen {
            self.standings = groups;
            self.steps_moved = Instant::now();
            return Ok(());
        }
        Err(SessionError::Hang { waited, active, groups })
    }
}

fn seen(link: &Link, resident: &Resident) -> Seen {
    let status = link.status();
    Seen { heartbeat: status.heartbeat, epoch: status.epoch, submissions: resident.device.progress() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_submitted_begins_the_time_anew() {
        let mut watch = Watch::new(Duration::MAX);
        let earlier = watch.steps_moved - Duration::from_secs(1);
        watch.steps_moved = earlier;
        watch.note_submission();
        assert!(watch.steps_moved > earlier);
    }
}
