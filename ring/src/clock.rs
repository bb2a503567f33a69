//! Time for waits, supplied by the caller because this crate has no clock of its own.

/// Polls before a wait gives up on a clock that does not advance. A clock that counts nanoseconds cannot stop for
/// that long; the limit keeps a broken one from hanging the caller.
pub(crate) const POLLS_WITHOUT_TIME_MAX: u64 = 1 << 28;

/// A monotonic clock. Any `Fn() -> u64` that returns nanoseconds is one.
pub trait Clock {
    /// Nanoseconds since some fixed moment, never going backwards.
    fn now_ns(&self) -> u64;

    /// Called between two polls with the duration of the wait so far. The default emits a spin hint; an
    /// implementation may yield or sleep once a wait grows long.
    fn pause(&self, waited_ns: u64) {
        let _ = waited_ns;
        core::hint::spin_loop();
    }
}

impl<F: Fn() -> u64> Clock for F {
    fn now_ns(&self) -> u64 {
        self()
    }
}

/// Polls `poll` until it answers or `timeout_ns` have passed. Polls at least once, and once more after the
/// deadline, so that an answer in time is not lost to a descheduled thread. `Err` holds the nanoseconds waited.
pub(crate) fn poll_until<C: Clock, T>(
    clock: &C,
    timeout_ns: u64,
    poll: impl FnMut() -> Option<T>,
) -> Result<T, u64> {
    poll_at_most(clock, timeout_ns, POLLS_WITHOUT_TIME_MAX, poll)
}

/// The same, accepting a stopped clock for `polls_max` polls.
fn poll_at_most<C: Clock, T>(
    clock: &C,
    timeout_ns: u64,
    polls_max: u64,
    mut poll: impl FnMut() -> Option<T>,
) -> Result<T, u64> {
    if let Some(answer) = poll() {
        return Ok(answer);
    }
    let start = clock.now_ns();
    let (mut last, mut polls_without_time) = (start, 0u64);
    loop {
        let now = clock.now_ns();
        let waited_ns = now.saturating_sub(start);
        polls_without_time = if now == last { polls_without_time + 1 } else { 0 };
        last = now;
        if let Some(answer) = poll() {
            return Ok(answer);
        }
        if waited_ns >= timeout_ns || polls_without_time >= polls_max {
            return Err(waited_ns);
        }
        clock.pause(waited_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_wait_ends_by_the_clock() {
        let time = Cell::new(0u64);
        let clock = || {
            time.set(time.get() + 10);
            time.get()
        };
        assert_eq!(poll_until(&clock, 100, || None::<()>), Err(100));
        let mut polls = 0;
        let third = poll_until(&clock, 1000, || {
            polls += 1;
            (polls == 3).then_some(polls)
        });
        assert_eq!(third, Ok(3));
    }

    #[test]
    fn an_answer_that_is_there_needs_no_clock() {
        let clock = || -> u64 { unreachable!("the first poll comes before the clock") };
        assert_eq!(poll_until(&clock, 0, || Some(7)), Ok(7));
    }

    /// Polls of a wait of 20 ns that is never answered. The clock advances by 1 ns every `looks` reads, and a
    /// stopped one is accepted for 3 polls. Also returns how long the wait reports to have lasted.
    fn polls(looks: u64) -> (u64, Result<(), u64>) {
        let (seen, polls) = (Cell::new(0), Cell::new(0u64));
        let clock = || {
            seen.set(seen.get() + 1);
            seen.get() / looks
        };
        let waited = poll_at_most(&clock, 20, 3, || {
            polls.set(polls.get() + 1);
            assert!(polls.get() < 1000, "the wait does not end");
            None
        });
        (polls.get(), waited)
    }

    #[test]
    fn a_clock_that_stands_still_ends_a_wait_and_a_slow_one_does_not() {
        assert_eq!(polls(u64::MAX), (1 + 3, Err(0)));
        assert_eq!(polls(1), (1 + 20, Err(20)));
        assert_eq!(polls(3).1, Err(20), "it never stands still for three polls");
        assert_eq!(polls(4).1, Err(1), "it stands still for three polls behind its first step");
    }

    #[test]
    fn an_answer_at_the_deadline_still_counts() {
        let time = Cell::new(0u64);
        let clock = || {
            time.set(time.get() + 1_000_000);
            time.get()
        };
        let mut polls = 0;
        let answer = poll_until(&clock, 1, || {
            polls += 1;
            (polls == 2).then_some(())
        });
        assert_eq!(answer, Ok(()), "the poll after the clock has passed the deadline counts");
    }
}
