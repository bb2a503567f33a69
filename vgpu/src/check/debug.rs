//! Inspecting a wave while it is stopped before an instruction.
//!
//! Contract: a [`Debugger`] passed to the device at creation is called before every instruction of every wave, on
//! the thread that executes waves; the device does nothing else meanwhile. It may read everything and change the
//! wave's registers and memory. The checking mode does not notice register changes: a register that was never
//! written still counts as unwritten. Changed memory counts as written by the host.

use crate::check::watch::WatchedPort;
use crate::memory::{MemoryPort, Rights};
use crate::shader::wave::Wave;
use zrt_isa::Instruction;

/// Called before every instruction.
pub trait Debugger: Send {
    /// Called before an instruction. The wave continues when this returns.
    fn before(&mut self, stop: &mut Stop<'_>) -> Action;
}

/// How the wave continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Execute the instruction and call again before the next one.
    Continue,
    /// Execute the instruction and never call again.
    Detach,
}

/// A wave stopped before an instruction.
pub struct Stop<'a> {
    /// Address of the instruction.
    pub pc: u64,
    /// Address of the dispatch's first instruction.
    pub code_va: u64,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Index of the wave in the workgroup.
    pub wave_index: u32,
    /// The wave's registers.
    pub wave: &'a mut Wave,
    /// Allocated LDS of the workgroup.
    pub lds: &'a [u32],
    /// Distinct findings of the checking mode so far, over all waves.
    pub findings: usize,
    pub(crate) memory: &'a mut MemoryPort,
}

impl Stop<'_> {
    /// Copies device memory out, as of the last write-back. Returns false if any byte is not mapped.
    pub fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> bool {
        self.memory.read_unwatched(va, bytes, Rights::READ).is_ok()
    }

    /// Copies bytes into device memory, as the host does. Returns false, and writes nothing, if any byte cannot be
    /// written.
    pub fn write_memory(&mut self, va: u64, bytes: &[u8]) -> bool {
        if let Some(watch) = self.memory.watch() {
            watch.progress.change();
        }
        self.memory.write_unwatched(va, bytes).is_ok()
    }
}
