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
        self.instructions >= limit && self.polls >= GROUP_POLLS * resident_groups
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        let circles = std::mem::take(&mut self.circles);
        *self = Progress { circles, ..Progress::default() };
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

    /// One run of so many instructions, with so many loads of one line.
    fn is_told(instructions: u64, polls: u64, resident_groups: u64, waiting_groups: u64) -> bool {
        let mut progress = Progress::default();
        (0..polls).for_each(|_| progress.poll(0, 0x1000, false));
        progress.is_waiting_for_ever(instructions, resident_groups, waiting_groups)
    }

    /// A million instructions, 100,000 of each resident group, and a thousand loads of each.
    #[test]
    fn it_takes_instructions_and_loads_of_every_resident_group() {
        assert!(is_told(1_000_000, 1_000, 1, 1));
        assert!(!is_told(999_999, 1_000, 1, 1));
        assert!(!is_told(1_000_000, 999, 1, 1));
        assert!(!is_told(1_000_000, 1_000, 1, 0));
        assert!(is_told(1_000_000, 10_000, 10, 1));
        assert!(!is_told(1_000_000, 9_999, 10, 1));
        assert!(is_told(1_100_000, 11_000, 11, 1));
        assert!(!is_told(1_099_999, 11_000, 11, 1));
    }

    /// Lines are of 128 bytes and of a wave, and are recorded after a quarter of a million instructions.
    #[test]
    fn a_line_is_new_once_for_each_wave() {
        let mut progress = Progress::default();
        let mut is_new = |instructions, wave, va| {
            progress.is_waiting_for_ever(instructions, 1, 1);
            progress.poll(wave, 0x1000, false);
            progress.load(va, &[0; 4]);
            progress.has_new_line
        };
        assert!(!is_new(249_999, 0, 0x1000), "too early");
        assert!(is_new(1, 0, 0x1000));
        assert!(!is_new(1, 0, 0x107f));
        assert!(is_new(1, 0, 0x1080));
        assert!(is_new(1, 1, 0x1080));
        assert!(!is_new(1, 1, 0x1080));
        assert!(!is_new(1, 0, 0x1080));
    }

    #[test]
    fn no_line_is_recorded_while_all_groups_are_resident() {
        let mut progress = Progress::default();
        assert!(!progress.is_waiting_for_ever(1_000_000, 1, 0));
        progress.load(0x1000, &[0; 4]);
        assert!(!progress.has_new_line);
    }

    /// After a new line, three quarters of a million instructions and the loads are needed again.
    #[test]
    fn a_new_line_begins_the_watch_again() {
        for (instructions, polls, is_told) in
            [(750_000, 1_000, true), (749_999, 1_000, false), (750_000, 999, false)]
        {
            let mut progress = Progress::default();
            (0..1_000).for_each(|_| progress.poll(0, 0x1000, false));
            assert!(!progress.is_waiting_for_ever(999_999, 1, 1));
            progress.load(0x1000, &[0; 4]);
            assert!(!progress.is_waiting_for_ever(0, 1, 1));
            (0..polls).for_each(|_| progress.poll(0, 0x1000, false));
            assert_eq!(progress.is_waiting_for_ever(instructions, 1, 1), is_told, "{instructions}, {polls}");
        }
    }

    /// A search for circles ends with any change, and goes on when the counts begin again.
    #[test]
    fn the_search_for_circles_hears_of_changes_and_loads() {
        use crate::check::circles::Place;
        use crate::shader::wave::Wave;

        let mut progress = Progress::default();
        progress.circles.silence_host(true);
        let place = Place { program_va: 0x1000, next: 3 };
        let turn = |progress: &mut Progress, instructions| {
            progress.circles.turn_ended(5, place, instructions, &Wave::new(), || Some(Vec::new()));
        };
        turn(&mut progress, 1_000_000);
        progress.reset();
        assert!(progress.circles.is_looking());
        for is_proved in [false, true] {
            turn(&mut progress, 1);
            progress.poll(5, 0x1040, false);
            progress.load(0x9000, &[7, 0, 0, 0]);
            turn(&mut progress, 1);
            assert_eq!(progress.circles.confirm(), is_proved);
        }
        let load = progress.circles.loads(5)[0];
        assert_eq!((load.pc, load.address, load.is_lds, load.value), (0x1040, 0x9000, false, 7));

        let mut progress = Progress::default();
        progress.circles.silence_host(true);
        turn(&mut progress, 1_000_000);
        progress.change();
        assert!(!progress.circles.is_looking());
    }
}
