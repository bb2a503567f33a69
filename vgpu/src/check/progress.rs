//! Detects waves that wait for something that can never come.
//!
//! Contract: receives every change that a wave may wait for, and every load, and is queried after each run of a
//! group. Waves count as waiting forever if some groups cannot become resident, and the resident ones execute for
//! long and load often, but nothing changes and no wave loads from a line that it has not loaded from since. That
//! is polling, by whatever kind of load. Productive work moves on to new lines. A loop that computes for that long
//! from the same few lines, without a store, would be mistaken for a wait. A load of system scope may wait for the
//! host, which is not seen to store: it counts as a change, unless the host is declared silent.
//! Cost: a test of one flag per loading lane; a hash look-up only after a long time without changes.
//!
//! The proof of livelocks ([`Circles`]) receives the same changes and loads.

use std::collections::HashSet;

use crate::check::circles::Circles;

/// Instructions without any change after which waves count as waiting forever: per resident group, and in total.
const GROUP_INSTRUCTIONS: u64 = 100_000;
const INSTRUCTIONS_MIN: u64 = 1_000_000;
/// Loads and atomics among them, per resident group.
const GROUP_POLLS: u64 = 1_000;
/// Instructions without any change after which loaded lines are recorded.
const WATCHED_AFTER_INSTRUCTIONS: u64 = INSTRUCTIONS_MIN / 4;
/// Bytes that count as one location. Larger ones would hide slow progress; smaller ones cost more.
const LINE_BYTES: u64 = 128;

/// Activity since the last change.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_changed: bool,
    instructions: u64,
    polls: u64,
    /// The wave that is loading, numbered over the device.
    wave: u32,
    is_watching: bool,
    /// Lines that each wave has loaded from while recording.
    lines: HashSet<(u32, u64)>,
    has_new_line: bool,
    /// The exact part: waves that repeat the same steps.
    pub circles: Circles,
}

impl Progress {
    /// Reports something that others may wait for: a store, an atomic with effect, a barrier signal, the end of a
    /// wave.
    #[inline]
    pub fn change(&mut self) {
        self.has_changed = true;
        self.circles.change();
    }

    /// Reports that a wave executes a load or an atomic at `pc`; its lanes follow. `is_system`: of system scope.
    #[inline]
    pub fn poll(&mut self, wave: u32, pc: u64, is_system: bool) {
        self.polls += 1;
        self.has_changed |= is_system && !self.circles.is_host_silent();
        self.wave = wave;
        if self.circles.is_looking() {
            self.circles.poll(wave, pc);
        }
    }

    /// Reports that a lane loads these bytes.
    #[inline(always)]
    pub fn load(&mut self, va: u64, bytes: &[u8]) {
        if self.is_watching || self.circles.is_looking() {
            self.note_load(va, bytes);
        }
    }

    #[inline(never)]
    fn note_load(&mut self, va: u64, bytes: &[u8]) {
        self.circles.load(self.wave, va, false, bytes);
        if self.is_watching {
            self.has_new_line |= self.lines.insert((self.wave, va / LINE_BYTES));
        }
    }

    /// Reports that a group has executed this many instructions and can continue. Returns whether the resident
    /// groups wait for groups that do not fit on the device.
    pub fn is_waiting_for_ever(
        &mut self,
        instructions: u64,
        resident_groups: u64,
        waiting_groups: u64,
    ) -> bool {
        if std::mem::take(&mut self.has_changed) || waiting_groups == 0 {
            self.reset();
        }
        if std::mem::take(&mut self.has_new_line) {
            self.instructions = WATCHED_AFTER_INSTRUCTIONS;
            self.polls = 0;
        }
        self.instructions += instructions;
        self.is_watching = waiting_groups > 0 && self.instructions >= WATCHED_AFTER_INSTRUCTIONS;
        let limit = (GROUP_INSTRUCTIONS * resident_groups).max(INSTRUCTIONS_MIN);
        waiting_groups > 0 && self.instructions >= limit && self.polls >= GROUP_POLLS * resident_groups
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        let circles = std::mem::take(&mut self.circles);
        *self = Progress { wave: self.wave, circles, ..Progress::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 10,000 instructions and 1,000 loads until a wait is reported; `address` maps a load's number to its
    /// address.
    fn runs_until_told(
        waiting_groups: u64,
        address: impl FnMut(u64) -> u64,
        act: impl FnMut(&mut Progress),
    ) -> Option<u64> {
        runs_of(Progress::default(), false, waiting_groups, address, act)
    }

    fn runs_of(
        mut progress: Progress,
        is_system: bool,
        waiting_groups: u64,
        mut address: impl FnMut(u64) -> u64,
        mut act: impl FnMut(&mut Progress),
    ) -> Option<u64> {
        (0..1000).find(|run| {
            for load in 0..1000 {
                progress.poll(0, 0x1000, is_system);
                (0..32).for_each(|lane| progress.load(address(run * 1000 + load) + 4 * lane, &[0; 4]));
            }
            act(&mut progress);
            progress.is_waiting_for_ever(10_000, 1, waiting_groups)
        })
    }

    #[test]
    fn polling_one_line_or_several_is_told() {
        assert_eq!(runs_until_told(1, |_| 0x1000, |_| ()), Some(99));
        assert_eq!(runs_until_told(1, |load| load % 50 * 4096, |_| ()), Some(99));
    }

    #[test]
    fn work_on_new_lines_and_changes_are_not() {
        assert_eq!(runs_until_told(1, |load| load / 500 * LINE_BYTES, |_| ()), None);
        assert_eq!(runs_until_told(1, |_| 0x1000, Progress::change), None);
        assert_eq!(runs_until_told(0, |_| 0x1000, |_| ()), None, "all groups are resident");
    }

    #[test]
    fn polling_for_the_host_is_told_if_it_is_silent() {
        assert_eq!(runs_of(Progress::default(), true, 1, |_| 0x1000, |_| ()), None);
        let mut silent = Progress::default();
        silent.circles.silence_host(true);
        assert_eq!(runs_of(silent, true, 1, |_| 0x1000, |_| ()), Some(99));
    }

    #[test]
    fn instructions_alone_are_not() {
        let mut progress = Progress::default();
        assert!((0..1000).all(|_| !progress.is_waiting_for_ever(10_000, 1, 1)));
    }
}
