//! Which instruction shows a finding: counted on a first run, met again on the second.
//!
//! Contract: under one seed the inspected device does the same twice, instruction by instruction. [`Recorder`] counts
//! those that it is asked about, over all waves, and notes where the number of findings grows. A finding that no
//! further instruction follows belongs to the last one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use zrt_vgpu::check::debug::{Action, Debugger, Stop};

/// Counts instructions.
#[derive(Debug, Default)]
pub struct Recorder {
    record: Arc<Record>,
}

/// What a [`Recorder`] has seen.
#[derive(Debug, Default)]
pub struct Record {
    instructions: AtomicU64,
    /// For each finding in the order of discovery, the number of its instruction.
    found: Mutex<Vec<u64>>,
}

impl Recorder {
    /// What it sees; filled while waves run.
    pub fn record(&self) -> Arc<Record> {
        self.record.clone()
    }
}

impl Record {
    /// The number of the instruction that showed a finding, counted from 1; 0 for one before all instructions.
    pub fn instruction_of(&self, finding: usize) -> u64 {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(finding).copied().unwrap_or_else(|| self.instructions.load(Ordering::Acquire))
    }
}

impl Debugger for Recorder {
    fn before(&mut self, stop: &mut Stop<'_>) -> Action {
        let mut found = self.record.found.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.record.instructions.fetch_add(1, Ordering::AcqRel);
        let count = found.len().max(stop.findings);
        found.resize(count, before);
        Action::Continue
    }
}
