//! The parts of LDS that matter to waves that may go in circles.
//!
//! Contract: checked only during a search for circles; costs a copy of what the instruction accesses.

use super::WaveInspector;
use crate::check::inspector::Inspector;
use crate::check::lds_access::LdsKind;
use crate::check::noted::Noted;
use crate::check::watch::WatchedPort;
use crate::shader::machine::Machine;

impl WaveInspector<'_> {
    /// Before an instruction: records what it loads from LDS, and the contents where it stores; the addresses are
    /// known.
    pub(super) fn note_lds(&mut self, noted: &Noted, pc: u64, machine: &mut Machine<'_>) {
        let Inspector { lds_addresses: addresses, lds_before: before, .. } = &mut *self.inspector;
        before.clear();
        let lds = &*machine.lds;
        let Some(watch) = machine.memory.watch().filter(|watch| watch.progress.circles.is_looking()) else {
            return;
        };
        let circles = &mut watch.progress.circles;
        let flat = noted.memory.filter(|global| global.is_flat && !addresses.is_empty());
        let (kind, width_bytes) = match (&noted.lds, flat) {
            (Some(shape), _) => (shape.kind, shape.width_bytes),
            (None, Some(global)) => (global.lds_kind(), noted.counted.width_bytes as u32),
            (None, None) => return,
        };
        let is_in_range = |address: u32| u64::from(address) + u64::from(width_bytes) <= u64::from(lds.bytes);
        // An address out of range is a fault.
        let Some(&(_, first)) = addresses.first() else { return };
        if !addresses.iter().all(|(_, address)| is_in_range(*address)) {
            return;
        }
        before.resize(width_bytes as usize * addresses.len(), 0);
        for ((_, address), bytes) in addresses.iter().zip(before.chunks_exact_mut(width_bytes as usize)) {
            lds.read_bytes(*address, bytes);
        }
        if kind != LdsKind::Store {
            circles.poll(self.shadow.wave.0, pc);
            circles.load(self.shadow.wave.0, u64::from(first), true, &before[..width_bytes as usize]);
        }
        if kind == LdsKind::Load {
            before.clear();
        }
    }

    /// After an instruction: checks whether anything has changed.
    pub(super) fn note_lds_change(&mut self, machine: &mut Machine<'_>) {
        let Inspector { lds_addresses: addresses, lds_before: before, .. } = &mut *self.inspector;
        let width_bytes = before.len() / addresses.len().max(1);
        if width_bytes == 0 {
            return;
        }
        let lds = &*machine.lds;
        let mut now = vec![0; width_bytes];
        let is_changed =
            addresses.iter().zip(before.chunks_exact(width_bytes)).any(|((_, address), before)| {
                lds.read_bytes(*address, &mut now);
                now != before
            });
        before.clear();
        if is_changed && let Some(watch) = machine.memory.watch() {
            watch.progress.circles.change();
        }
    }
}
