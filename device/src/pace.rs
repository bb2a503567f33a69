//! How a wait spends its time: spin, one long nap, then short naps.
//!
//! Contract: pure arithmetic on durations; the caller sleeps. A decode loop waits for steps of nearly the same length,
//! so the first nap lasts until seven eighths of the last wait's time, and a host core is free meanwhile. A nap that
//! turns out too long halves the expectation, so a shorter kind of work is not made to wait twice.

use std::time::Duration;

/// First short nap; it doubles up to the longest.
const NAP_FIRST: Duration = Duration::from_micros(20);
/// Longest short nap.
const NAP_MAX: Duration = Duration::from_micros(100);
/// Longest first nap: the driver is asked for faults after it.
const LONG_NAP_MAX: Duration = Duration::from_millis(50);

/// What was learned from earlier waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    expected: Duration,
}

/// The naps of one wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naps {
    long: Option<Duration>,
    next: Duration,
    /// True if the last nap was the long one.
    after_long: bool,
}

impl Pace {
    /// The naps of a wait that has lasted `waited` already.
    pub(crate) fn naps(&self, waited: Duration) -> Naps {
        let long = (self.expected * 7 / 8).saturating_sub(waited).min(LONG_NAP_MAX);
        Naps { long: (long > NAP_FIRST).then_some(long), next: NAP_FIRST, after_long: false }
    }

    /// The wait ended after `waited`.
    pub(crate) fn learn(&mut self, naps: &Naps, waited: Duration) {
        self.expected = if naps.after_long { self.expected / 2 } else { waited };
    }
}

impl Naps {
    /// How long to sleep now, at most `left`.
    pub(crate) fn next(&mut self, left: Duration) -> Duration {
        let long = self.long.take();
        self.after_long = long.is_some();
        let nap = long.unwrap_or_else(|| {
            let nap = self.next;
            self.next = (nap * 2).min(NAP_MAX);
            nap
        });
        nap.min(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// A wait for work of `length`, sleeping exactly; returns how long it took and how often it slept.
    fn wait(pace: &mut Pace, length: Duration) -> (Duration, usize) {
        let (mut waited, mut sleeps) = (us(3), 0);
        let mut naps = pace.naps(waited);
        while waited < length {
            waited += naps.next(us(1_000_000));
            sleeps += 1;
        }
        pace.learn(&naps, waited);
        (waited, sleeps)
    }

    #[test]
    fn equal_steps_are_slept_through() {
        let mut pace = Pace::default();
        let (_, at_first) = wait(&mut pace, us(8000));
        let (waited, later) = wait(&mut pace, us(8000));
        assert!(at_first > 70 && later < 20, "{at_first} sleeps, then {later}");
        assert!(waited < us(8100), "{waited:?}");
    }

    #[test]
    fn shorter_work_is_found_quickly() {
        let mut pace = Pace::default();
        wait(&mut pace, us(8000));
        let waits: Vec<Duration> = (0..8).map(|_| wait(&mut pace, us(500)).0).collect();
        assert!(waits[0] > us(6900) && waits[0] < us(7100), "the first one is slept over");
        assert!(waits[5..].iter().all(|waited| *waited < us(900)), "{waits:?}");
    }

    /// Seven eighths of 22,858 ns are 20 µs, and of 22,860 ns two nanoseconds more.
    #[test]
    fn a_nap_as_short_as_the_first_short_one_is_no_long_one() {
        for (expected, naps) in [(22_858, [20, 40, 80, 100]), (22_860, [20, 20, 40, 80])] {
            let mut pace = Pace::default();
            pace.learn(&pace.naps(us(0)), Duration::from_nanos(expected));
            let mut next = pace.naps(us(0));
            assert_eq!(naps, [(); 4].map(|()| next.next(us(1_000_000)).as_micros() as u64), "{expected}");
        }
    }

    #[test]
    fn a_nap_never_passes_the_deadline_nor_the_limit() {
        let mut pace = Pace::default();
        pace.learn(&pace.naps(us(0)), Duration::from_secs(100));
        let mut naps = pace.naps(us(0));
        assert_eq!(naps.next(us(10)), us(10));
        let mut naps = pace.naps(us(0));
        assert_eq!(naps.next(us(1_000_000)), LONG_NAP_MAX);
        assert_eq!(naps.next(us(1_000_000)), NAP_FIRST);
    }
}
