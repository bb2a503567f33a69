//! What pointers and a fence, observed over time, say about the device.
//!
//! The kernel driver never times out a running compute queue (hardware reference §8), so the waiting side must
//! distinguish a long computation from a dead queue. Contract: pure arithmetic on the caller's observations; no
//! clock, no memory access.

use core::fmt;

/// The state of a queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The time, by the caller's clock.
    pub time_ns: u64,
    /// Dwords submitted.
    pub write_pointer: u64,
    /// Dwords read, as far as the device has reported.
    pub read_pointer: u64,
    /// The fence's value.
    pub fence_value: u64,
    /// The value that the last submission will write.
    pub fence_target: u64,
}

/// How much of the outstanding ring contents the device has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProgress {
    /// Nothing: the doorbell was not seen, the queue is not mapped, or its first packet hangs.
    None,
    /// A part: a packet in the middle hangs, or the device reports its read pointer lazily.
    Part,
    /// All: the packets were consumed, but the work they started does not end.
    All,
}

/// The meaning of an observation, given those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// All submitted work is done.
    Idle,
    /// Work is outstanding and something moved less than the limit ago.
    Running {
        /// Nanoseconds since something moved.
        quiet_ns: u64,
    },
    /// Work is outstanding and nothing moved for longer than the limit.
    Stuck {
        /// Nanoseconds since something moved.
        quiet_ns: u64,
        /// How much of the ring was read since the work became outstanding.
        read: ReadProgress,
        /// The fence's value.
        fence_value: u64,
        /// The value it should reach.
        fence_target: u64,
    },
    /// The observation is impossible: a pointer or the fence is beyond what was submitted.
    Impossible {
        /// The observation.
        observation: Observation,
    },
}

/// Follows one queue.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog {
    quiet_limit_ns: u64,
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    moved_ns: u64,
    last: Observation,
    /// The read pointer at the time the current work became outstanding.
    read_at_start: u64,
    idle: bool,
}

impl Watchdog {
    /// A watchdog that calls a queue stuck after `quiet_limit_ns` without any movement.
    pub const fn new(quiet_limit_ns: u64) -> Watchdog {
        Watchdog { quiet_limit_ns, state: None }
    }

    /// Takes an observation; times must not decrease.
    pub fn observe(&mut self, now: Observation) -> Diagnosis {
        if now.read_pointer > now.write_pointer || now.fence_value > now.fence_target {
            return Diagnosis::Impossible { observation: now };
        }
        let idle = now.fence_value == now.fence_target;
        let state = match self.state {
            None => State { moved_ns: now.time_ns, last: now, read_at_start: now.read_pointer, idle },
            Some(before) => {
                let moved = before.last.read_pointer != now.read_pointer
                    || before.last.fence_value != now.fence_value
                    || before.last.write_pointer != now.write_pointer;
                let read_at_start = if before.idle { before.last.read_pointer } else { before.read_at_start };
                let moved_ns = if moved { now.time_ns } else { before.moved_ns };
                State { moved_ns, last: now, read_at_start, idle }
            }
        };
        self.state = Some(state);
        let quiet_ns = now.time_ns.saturating_sub(state.moved_ns);
        if idle {
            return Diagnosis::Idle;
        }
        if quiet_ns < self.quiet_limit_ns {
            return Diagnosis::Running { quiet_ns };
        }
        let read = if now.read_pointer == now.write_pointer {
            ReadProgress::All
        } else if now.read_pointer == state.read_at_start {
            ReadProgress::None
        } else {
            ReadProgress::Part
        };
        Diagnosis::Stuck { quiet_ns, read, fence_value: now.fence_value, fence_target: now.fence_target }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Diagnosis::Idle => write!(formatter, "the queue is idle"),
            Diagnosis::Running { quiet_ns } => {
                write!(formatter, "the queue is running; something moved {quiet_ns} ns ago")
            }
            Diagnosis::Stuck { quiet_ns, read, fence_value, fence_target } => {
                write!(
                    formatter,
                    "the queue is stuck: for {quiet_ns} ns the fence reads {fence_value} and should reach \
                     {fence_target}, and "
                )?;
                formatter.write_str(match read {
                    ReadProgress::None => {
                        "the read pointer has not moved: the doorbell was not seen, the queue is not mapped, or its \
                         first packet hangs"
                    }
                    ReadProgress::Part => "the ring was read in part: a packet in it hangs",
                    ReadProgress::All => "the ring was read to its end: a kernel does not end, or faulted",
                })
            }
            Diagnosis::Impossible { observation } => write!(
                formatter,
                "the device reports what cannot be: read pointer {:#x} of {:#x}, fence {} of {}",
                observation.read_pointer,
                observation.write_pointer,
                observation.fence_value,
                observation.fence_target
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, write: u64, read: u64, fence: u64, target: u64) -> Observation {
        Observation {
            time_ns,
            write_pointer: write,
            read_pointer: read,
            fence_value: fence,
            fence_target: target,
        }
    }

    fn stuck(quiet_ns: u64, read: ReadProgress, fence_value: u64, fence_target: u64) -> Diagnosis {
        Diagnosis::Stuck { quiet_ns, read, fence_value, fence_target }
    }

    #[test]
    fn a_queue_that_runs_and_ends() {
        let mut watchdog = Watchdog::new(100);
        assert_eq!(watchdog.observe(at(0, 0, 0, 0, 0)), Diagnosis::Idle);
        assert_eq!(watchdog.observe(at(10, 20, 0, 0, 1)), Diagnosis::Running { quiet_ns: 0 });
        assert_eq!(watchdog.observe(at(90, 20, 0, 0, 1)), Diagnosis::Running { quiet_ns: 80 });
        assert_eq!(watchdog.observe(at(100, 20, 12, 0, 1)), Diagnosis::Running { quiet_ns: 0 });
        assert_eq!(watchdog.observe(at(199, 20, 12, 0, 1)), Diagnosis::Running { quiet_ns: 99 });
        assert_eq!(watchdog.observe(at(900, 20, 20, 1, 1)), Diagnosis::Idle);
        assert_eq!(watchdog.observe(at(9_000, 20, 20, 1, 1)), Diagnosis::Idle);
    }

    #[test]
    fn how_far_a_stuck_queue_came() {
        for (read, progress) in [(20, ReadProgress::None), (28, ReadProgress::Part), (40, ReadProgress::All)]
        {
            let mut watchdog = Watchdog::new(100);
            assert_eq!(watchdog.observe(at(0, 20, 20, 1, 1)), Diagnosis::Idle);
            assert_eq!(watchdog.observe(at(10, 40, 20, 1, 2)), Diagnosis::Running { quiet_ns: 0 });
            assert!(watchdog.observe(at(20, 40, read, 1, 2)).is_running());
            let quiet = if read == 20 { 190 } else { 180 };
            assert_eq!(watchdog.observe(at(200, 40, read, 1, 2)), stuck(quiet, progress, 1, 2));
        }
    }

    #[test]
    fn a_second_submission_does_not_hide_the_first() {
        let mut watchdog = Watchdog::new(100);
        watchdog.observe(at(0, 0, 0, 0, 0));
        watchdog.observe(at(10, 20, 8, 0, 1));
        watchdog.observe(at(50, 40, 8, 0, 2));
        assert_eq!(watchdog.observe(at(150, 40, 8, 0, 2)), stuck(100, ReadProgress::Part, 0, 2));
    }

    /// A device that completes several submissions one by one makes progress, even if its read pointer does not
    /// move.
    #[test]
    fn a_fence_that_advances_is_movement() {
        let mut watchdog = Watchdog::new(100);
        watchdog.observe(at(0, 40, 40, 0, 2));
        assert_eq!(watchdog.observe(at(90, 40, 40, 1, 2)), Diagnosis::Running { quiet_ns: 0 });
        assert_eq!(watchdog.observe(at(180, 40, 40, 1, 2)), Diagnosis::Running { quiet_ns: 90 });
        assert_eq!(watchdog.observe(at(190, 40, 40, 1, 2)), stuck(100, ReadProgress::All, 1, 2));
    }

    /// What the last of `history` means, by a search through all of it.
    fn naive(history: &[Observation], limit_ns: u64) -> Diagnosis {
        let now = *history.last().expect("at least one");
        let can_be =
            |one: &&Observation| one.read_pointer <= one.write_pointer && one.fence_value <= one.fence_target;
        if !can_be(&&now) {
            return Diagnosis::Impossible { observation: now };
        }
        if now.fence_value == now.fence_target {
            return Diagnosis::Idle;
        }
        let seen: Vec<Observation> = history.iter().filter(can_be).copied().collect();
        let place = |one: &Observation| [one.write_pointer, one.read_pointer, one.fence_value];
        let stands_since =
            seen.iter().rposition(|one| place(one) != place(&now)).map_or(0, |before| before + 1);
        let quiet_ns = now.time_ns - seen[stands_since].time_ns;
        if quiet_ns < limit_ns {
            return Diagnosis::Running { quiet_ns };
        }
        let begin = seen.iter().rposition(|one| one.fence_value == one.fence_target).unwrap_or(0);
        let read = match now.read_pointer {
            read if read == now.write_pointer => ReadProgress::All,
            read if read == seen[begin].read_pointer => ReadProgress::None,
            _ => ReadProgress::Part,
        };
        stuck(quiet_ns, read, now.fence_value, now.fence_target)
    }

    /// Extends `history` by each of `all`, after half a limit and after a whole one, recursively. Returns how many
    /// there were.
    fn search(watchdog: Watchdog, history: &mut Vec<Observation>, all: &[Observation]) -> u32 {
        if history.len() == 4 {
            return 0;
        }
        let mut diagnoses = 0;
        for (pause_ns, one) in [50, 100].into_iter().flat_map(|pause| all.iter().map(move |one| (pause, one)))
        {
            let time_ns = history.last().map_or(0, |last| last.time_ns + pause_ns);
            let now = Observation { time_ns, ..*one };
            history.push(now);
            let mut watchdog = watchdog;
            assert_eq!(watchdog.observe(now), naive(history, 100), "{history:?}");
            diagnoses += 1 + search(watchdog, history, all);
            history.pop();
        }
        diagnoses
    }

    /// Every sequence of four observations of a queue of two dwords and two fences, including many that could not
    /// follow one another. A diagnosis depends on the previous observation, the last that differed and the last
    /// that was idle, so on no more than four.
    #[test]
    #[cfg_attr(miri, ignore = "millions of sequences of plain numbers")]
    fn every_short_history_means_what_a_search_through_it_says() {
        let fences = [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2)];
        let pointers = [(0, 0), (2, 0), (2, 1), (2, 2)];
        let mut all = vec![at(0, 1, 2, 0, 1), at(0, 2, 1, 2, 1)];
        for (write, read) in pointers {
            all.extend(fences.map(|(fence, target)| at(0, write, read, fence, target)));
        }
        let diagnoses = search(Watchdog::new(100), &mut Vec::new(), &all);
        assert!(diagnoses > 3_000_000, "{diagnoses}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let mut watchdog = Watchdog::new(100);
        for observation in [at(0, 10, 11, 0, 1), at(0, 10, 0, 2, 1)] {
            assert_eq!(watchdog.observe(observation), Diagnosis::Impossible { observation });
        }
    }

    impl Diagnosis {
        fn is_running(&self) -> bool {
            matches!(self, Diagnosis::Running { .. })
        }
    }
}
