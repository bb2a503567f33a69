//! Examines a group that is not running: the positions of its waves, and whether any can make progress.
//!
//! Contract: reads only.

use super::{Group, Slot, WaveState};
use crate::check::circles::SeenLoad;
use crate::shader::fault::{WaveFault, WaveFaultKind};
use crate::workgroups::positions::{Position, PositionState};

impl Group {
    /// Reports the position of the first wave that can run but never makes progress.
    pub fn explain_standstill(&self, kind: WaveFaultKind, report: &mut dyn FnMut(WaveFault)) {
        let Some(dispatch) = &self.dispatch else { return };
        let is_live = |slot: &Slot| matches!(slot.state, WaveState::Ready | WaveState::Waiting);
        let ready = self.slots.iter().position(|slot| slot.state == WaveState::Ready);
        let Some(at) = ready.or_else(|| self.slots.iter().position(is_live)) else { return };
        let instruction_va = self.slots[at].position(dispatch);
        report(WaveFault {
            origin: dispatch.dispatch.origin,
            code_va: dispatch.dispatch.code_va,
            instruction_va,
            workgroup: self.id,
            wave: at as u32,
            lane: None,
            kind,
            code: self.slots[at].code_at(dispatch, instruction_va),
        });
    }

    /// Number of waves that go in circles and of waves at the barrier; `None` if any may still make progress.
    pub fn standstill(&self, is_closed: &dyn Fn(u32) -> bool) -> Option<[u64; 2]> {
        let mut counts = [0; 2];
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.state {
                WaveState::Ready if slot.shadow.as_ref().is_some_and(|shadow| is_closed(shadow.number())) => {
                    counts[0] += 1;
                }
                WaveState::Waiting if !self.barrier.is_open_for(at as u32) => counts[1] += 1,
                WaveState::Fresh | WaveState::Ready | WaveState::Waiting => return None,
                WaveState::Ended | WaveState::Halted => {}
            }
        }
        Some(counts)
    }

    /// Positions of its waves that have not ended.
    pub fn positions(&self, loads: &dyn Fn(u32) -> Vec<SeenLoad>) -> Vec<Position> {
        let Some(dispatch) = &self.dispatch else { return Vec::new() };
        let position = |(at, slot): (usize, &Slot)| {
            let state = match slot.state {
                WaveState::Ended => return None,
                WaveState::Fresh => PositionState::NotBegun,
                WaveState::Ready => PositionState::Running,
                WaveState::Waiting if self.barrier.is_open_for(at as u32) => PositionState::Running,
                WaveState::Waiting => PositionState::Barrier {
                    signalled_waves: self.barrier.signals,
                    member_waves: self.barrier.members.count_ones(),
                },
                WaveState::Halted => PositionState::Halted,
            };
            let pc = slot.position(dispatch);
            Some(Position {
                workgroup: self.id,
                wave: at as u32,
                state,
                pc,
                code_va: dispatch.dispatch.code_va,
                instruction: slot.code_at(dispatch, pc).to_string(),
                loads: slot.shadow.as_ref().map_or_else(Vec::new, |shadow| loads(shadow.number())),
            })
        };
        self.slots.iter().enumerate().filter_map(position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::WaveState::{Ended, Fresh, Halted, Ready, Waiting};
    use super::*;
    use crate::shader::machine::Barrier;
    use crate::workgroups::tests::{Device, parallel};

    /// A group of waves in these states, with a barrier.
    fn group(states: &[WaveState], barrier: Barrier) -> Group {
        let slots = states.iter().map(|state| Slot { state: *state, ..Slot::default() }).collect();
        Group { slots, barrier, ..Group::new() }
    }

    #[test]
    fn a_group_stands_still_if_each_wave_has_ended_has_stopped_or_waits_in_vain() {
        let standstill = |states: &[WaveState], complete: u32, is_closed: bool| {
            let mut group = group(states, Barrier { complete, ..Barrier::new(states.len() as u32) });
            group.slots.iter_mut().for_each(|slot| slot.shadow = Some(Box::default()));
            group.standstill(&|_| is_closed)
        };
        assert_eq!(standstill(&[Ended, Halted], 0, false), Some([0, 0]));
        assert_eq!(standstill(&[Ready, Waiting, Ready, Ended], 0, true), Some([2, 1]));
        assert_eq!(standstill(&[Waiting, Waiting], 0, false), Some([0, 2]));
        assert_eq!(standstill(&[Waiting, Waiting], 0b10, false), None, "the barrier is open for the second");
        assert_eq!(standstill(&[Ready, Waiting], 0, false), None);
        assert_eq!(standstill(&[Fresh, Halted], 0, true), None);
        assert_eq!(group(&[Ready], Barrier::new(1)).standstill(&|_| true), None, "nobody looks at it");
    }

    #[test]
    fn positions_tell_waves_at_a_barrier_from_those_for_which_it_is_open() {
        let mut device = Device::new(parallel(0));
        let code = device.code_words(&[0xBF94_FFFF, 0xBFB0_0000]); // s_barrier_wait 0xffff; s_endpgm
        let ticket = device.submit(device.dispatch(&code, 1, 192, &[]));
        let barrier = Barrier { members: 0b11_1110, signals: 2, complete: 0b1000, ..Barrier::new(6) };
        let mut group = group(&[Ended, Fresh, Ready, Waiting, Waiting, Halted], barrier);
        group.dispatch = Some(ticket.0.clone());
        let positions = group.positions(&|_| Vec::new());
        let found: Vec<_> = positions.into_iter().map(|position| (position.wave, position.state)).collect();
        let expected = [
            (1, PositionState::NotBegun),
            (2, PositionState::Running),
            (3, PositionState::Running),
            (4, PositionState::Barrier { signalled_waves: 2, member_waves: 5 }),
            (5, PositionState::Halted),
        ];
        assert_eq!(found, expected);
    }
}
