//! Examines all groups at once: whether any can make progress, and the positions of their waves.
//!
//! Contract: groups are examined while no worker runs them. A standstill is checked after each run of a group of an
//! inspected device, which has one thread. Positions are requested by whoever reads them, and the workers pause for
//! that.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Shared, State};
use crate::check::inspector::Inspection;
use crate::shader::fault::WaveFaultKind;
use crate::workgroups::group::Group;
use crate::workgroups::positions::{self, Rest};

/// How long an examination of all groups waits for workers that hold some. A run of a group takes about a
/// millisecond.
const PAUSE_MS_MAX: u64 = 1_000;

impl Shared {
    /// Whether neither this group nor any other ever makes progress, though it can run; reported as a fault then.
    pub(super) fn stands_still(&self, group: &Group, executed: u64) -> bool {
        let Some(inspection) = &self.inspection else { return false };
        let (resident, waiting) = {
            let state = self.lock();
            let held: u64 = state.held.iter().map(|(_, count)| *count).sum();
            let waiting =
                state.pending.iter().map(|pending| pending.dispatch.group_count - pending.next).sum();
            (state.preempted.len() as u64 + held, if state.is_full { waiting } else { 0 })
        };
        let kind = if inspection.is_spinning(executed, resident, waiting) {
            WaveFaultKind::SpinsForever { waiting_groups: waiting }
        } else if let Some([circling_waves, waiting_waves]) = self.circles(inspection, group) {
            match waiting {
                0 => WaveFaultKind::GoesInCircles { circling_waves, waiting_waves },
                _ => WaveFaultKind::SpinsForever { waiting_groups: waiting },
            }
        } else {
            return false;
        };
        group.explain_standstill(kind, &mut |fault| self.report(fault));
        true
    }

    /// Number of waves that go in circles and of waves at barriers, if no wave of any group ever does anything
    /// else. `group`: the one that is held; an inspected device has one thread.
    fn circles(&self, inspection: &Inspection, group: &Group) -> Option<[u64; 2]> {
        let mut counts = [0; 2];
        let are_all_closed = |is_closed: &dyn Fn(u32) -> bool| {
            let state = self.lock();
            let can_begin = !state.pending.is_empty() && !state.is_full;
            let groups = state.preempted.iter().map(|other| &**other).chain([group]);
            let each: Option<Vec<[u64; 2]>> = groups.map(|group| group.standstill(is_closed)).collect();
            for count in each.iter().flatten() {
                counts = [counts[0] + count[0], counts[1] + count[1]];
            }
            each.is_some() && !can_begin
        };
        inspection.go_in_circles(are_all_closed).then_some(counts)
    }

    /// Positions of all waves, as lines ([`positions`]). Nothing runs meanwhile; groups held by workers are waited
    /// for.
    pub fn positions(&self) -> String {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        let deadline = Instant::now() + Duration::from_millis(PAUSE_MS_MAX);
        let text = loop {
            let state = self.lock();
            let held: u64 = state.held.iter().map(|(_, count)| *count).sum();
            if held == 0 || Instant::now() >= deadline {
                break self.positions_in(&state, held);
            }
            drop(state);
            std::thread::yield_now();
        };
        self.pauses.fetch_sub(1, Ordering::AcqRel);
        // A worker that is about to sleep has checked under the lock.
        drop(self.lock());
        self.wake.notify_all();
        text
    }

    fn positions_in(&self, state: &State, held_groups: u64) -> String {
        // A worker that holds a group may also hold the inspection.
        let inspection = self.inspection.as_ref().filter(|_| held_groups == 0);
        let loads = |wave: u32| inspection.map_or_else(Vec::new, |inspection| inspection.circle_loads(wave));
        let mut listed = Vec::new();
        let mut rest = Rest { held_groups, ..Rest::default() };
        for group in state.stuck.iter().chain(&state.preempted) {
            listed.extend(group.positions(&loads));
        }
        let waiting = state.pending.iter().map(|pending| pending.dispatch.group_count - pending.next);
        rest.waiting_groups = waiting.sum();
        positions::text(&listed, rest)
    }
}

#[cfg(test)]
mod tests {
    use crate::workgroups::tests::{Device, parallel};

    #[test]
    fn groups_that_are_held_are_counted() {
        let device = Device::new(parallel(0));
        let shared = &device.engine.shared;
        let text = shared.positions_in(&shared.lock(), 2);
        assert_eq!(text, "{\"more_waves\":0,\"waiting_groups\":0,\"held_groups\":2}\n");
    }
}
