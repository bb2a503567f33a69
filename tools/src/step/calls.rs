//! Who has called whom, in every wave.
//!
//! Contract: watches calls and returns from a wave's first instruction on, so it knows the return address of each
//! function that is active; no stack is read, and no convention is trusted. A jump to a call's return address is a
//! return, any other jump stays in its function. Costs a check of the opcode; memory only for waves inside calls.

use std::collections::HashMap;
use zrt_isa::{Opcode, Operand};
use zrt_vgpu::check::debug::Stop;

/// Maximum number of nested calls that are followed.
pub(super) const DEPTH_MAX: usize = 4096;

/// A wave: workgroup and number in it.
pub(super) type WaveName = ([u32; 3], u32);

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Address of the call.
    pub pc: u64,
    /// Address that it returns to.
    pub return_pc: u64,
}

/// The calls of all waves.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<WaveName, Vec<Call>>);

impl Calls {
    /// The calls that a wave is inside of, the outermost first.
    pub fn of(&self, wave: WaveName) -> &[Call] {
        self.0.get(&wave).map_or(&[], Vec::as_slice)
    }

    /// The instruction of this stop is about to be executed.
    pub fn execute(&mut self, stop: &Stop<'_>) {
        let wave = (stop.workgroup, stop.wave_index);
        match stop.instruction.opcode {
            Opcode::SSwappcB64 | Opcode::SCallB64 => {
                let calls = self.0.entry(wave).or_default();
                let return_pc = stop.pc + 4 * u64::from(stop.instruction.dword_count);
                // Deeper ones are taken for jumps: reports then show the outer ones.
                if calls.len() < DEPTH_MAX {
                    calls.push(Call { pc: stop.pc, return_pc });
                }
            }
            Opcode::SSetpcB64 => {
                let Operand::Scalar(code) = stop.instruction.sources[0] else { return };
                let target = stop.wave.scalar_pair(code);
                let Some(calls) = self.0.get_mut(&wave) else { return };
                if let Some(index) = calls.iter().rposition(|call| call.return_pc == target) {
                    calls.truncate(index);
                }
            }
            Opcode::SEndpgm | Opcode::SEndpgmSaved => {
                self.0.remove(&wave);
            }
            _ => {}
        }
    }
}
