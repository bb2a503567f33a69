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
