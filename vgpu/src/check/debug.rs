//! Looking into a wave while it stands before an instruction.
//!
//! Contract: a [`Debugger`] that is given to the device when it is made is asked before every instruction of every
//! wave, on the thread that executes waves; the device does nothing else meanwhile. It may read everything and change
//! the wave's registers and memory. The checking mode does not learn of what it changes: a register that nothing wrote stays
//! one, and memory counts as written by the host.

use crate::check::watch::WatchedPort;
use crate::memory::{MemoryPort, Rights};
use crate::shader::wave::Wave;
use zrt_isa::Instruction;

/// What is asked before every instruction.
pub trait Debugger: Send {
    /// Goes on when this returns.
    fn before(&mut self, stop: &mut Stop<'_>) -> Action;
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The instruction is executed; the next one is asked about.
    Continue,
    /// It is executed, and nothing is asked any more.
    Detach,
}

/// A wave before an instruction.
pub struct Stop<'a> {
    /// Address of the instruction.
    pub pc: u64,
    /// Address of the dispatch's first instruction.
    pub code_va: u64,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave_index: u32,
    /// The wave's registers.
    pub wave: &'a mut Wave,
    /// LDS of the workgroup, as far as it is allocated.
    pub lds: &'a [u32],
    /// Different findings of the checking mode so far, by all waves.
    pub findings: usize,
    pub(crate) memory: &'a mut MemoryPort,
}

impl Stop<'_> {
    /// Copies device memory out, as the last write-back left it; false where any byte is not mapped.
    pub fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> bool {
        self.memory.read_unwatched(va, bytes, Rights::READ).is_ok()
    }

    /// Copies bytes into device memory as the host does it; false, and nothing written, where any byte cannot be.
    pub fn write_memory(&mut self, va: u64, bytes: &[u8]) -> bool {
        if let Some(watch) = self.memory.watch() {
            watch.progress.change();
        }
        self.memory.write_unwatched(va, bytes).is_ok()
    }
}
