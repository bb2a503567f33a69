//! The shader engine's counters.
//!
//! Contract: monotonic, relaxed; a value is exact once the dispatches it counts are done.

use std::sync::atomic::{AtomicU64, Ordering};

/// The engine's counters.
#[derive(Debug, Default)]
pub struct ShaderCounters {
    pub(crate) dispatches: AtomicU64,
    pub(crate) workgroups: AtomicU64,
    pub(crate) waves: AtomicU64,
    pub(crate) wave_instructions: AtomicU64,
}

/// A snapshot of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShaderCounts {
    /// Dispatches accepted.
    pub dispatches: u64,
    /// Workgroups that have ended.
    pub workgroups: u64,
    /// Waves of those workgroups.
    pub waves: u64,
    /// Instructions executed, including those of waves that have not ended.
    pub wave_instructions: u64,
}

impl ShaderCounters {
    /// The current values.
    pub fn snapshot(&self) -> ShaderCounts {
        ShaderCounts {
            dispatches: self.dispatches.load(Ordering::Relaxed),
            workgroups: self.workgroups.load(Ordering::Relaxed),
            waves: self.waves.load(Ordering::Relaxed),
            wave_instructions: self.wave_instructions.load(Ordering::Relaxed),
        }
    }
}
