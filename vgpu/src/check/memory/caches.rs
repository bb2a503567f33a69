//! When the vector, scalar and instruction caches were invalidated, in logical time.
//!
//! Contract: a cache may hold the value before any write by somebody else that is newer than its last invalidation
//! (hardware reference §6.1). Whether it does is luck, so a load through it gets that value. The vector cache writes
//! through: a compute unit sees its own writes.
//! Cost: a few comparisons.

use super::access::{NO_CU, wgp};
use super::cells::Write;
use super::finding::Scope;

/// Logical times of invalidations.
#[derive(Debug, Default)]
pub(super) struct CacheTimes {
    /// By a compute unit, for writes from its own WGP.
    vector_near: Vec<u32>,
    /// By a compute unit, for all writes.
    vector: Vec<u32>,
    /// By a compute unit with system scope: for what the host writes, too.
    vector_system: Vec<u32>,
    /// By a WGP.
    scalar: Vec<u32>,
    vector_all: u32,
    scalar_all: u32,
    instruction: u32,
}

fn raise(times: &mut Vec<u32>, index: u16, time: u32) {
    let index = usize::from(index);
    if times.len() <= index {
        times.resize(index + 1, 0);
    }
    times[index] = time;
}

fn at(times: &[u32], index: u16) -> u32 {
    times.get(usize::from(index)).copied().unwrap_or(0)
}

impl CacheTimes {
    /// True where a vector load may miss the write.
    #[inline]
    pub(super) fn misses(&self, write: &Write, scope: Scope, cu: u16) -> bool {
        if write.time <= self.vector_all || write.cu == cu || scope >= Scope::Device {
            return false;
        }
        let mut invalidated = at(&self.vector, cu);
        if write.cu != NO_CU && wgp(write.cu) == wgp(cu) {
            if scope >= Scope::Se {
                return false;
            }
            invalidated = invalidated.max(at(&self.vector_near, cu));
        }
        write.time > invalidated
    }

    /// True where a vector load may miss what the host wrote to VRAM that it shares with running kernels: any below
    /// system scope, unless the compute unit itself has invalidated with system scope since.
    pub(super) fn misses_host(&self, write: &Write, scope: Scope, cu: u16) -> bool {
        scope < Scope::System && write.time > self.vector_all.max(at(&self.vector_system, cu))
    }

    /// True where a scalar load may miss the write.
    pub(super) fn scalar_misses(&self, write: &Write, scope: Scope, cu: u16) -> bool {
        scope < Scope::Device && write.time > self.scalar_all.max(at(&self.scalar, wgp(cu)))
    }

    /// True where instruction fetch may miss the write.
    pub(super) fn fetch_misses(&self, write: &Write) -> bool {
        write.time > self.instruction
    }

    /// `global_inv` by a wave of a compute unit.
    pub(super) fn invalidate_vector(&mut self, cu: u16, scope: Scope, time: u32) {
        match scope {
            Scope::Cu => {}
            Scope::Se => raise(&mut self.vector_near, cu, time),
            Scope::Device => raise(&mut self.vector, cu, time),
            Scope::System => {
                raise(&mut self.vector, cu, time);
                raise(&mut self.vector_system, cu, time);
            }
        }
    }

    /// `s_dcache_inv` by a wave of a compute unit.
    pub(super) fn invalidate_scalar(&mut self, cu: u16, time: u32) {
        raise(&mut self.scalar, wgp(cu), time);
    }

    pub(super) fn invalidate_all_vector(&mut self, time: u32) {
        self.vector_all = time;
    }

    pub(super) fn invalidate_all_scalar(&mut self, time: u32) {
        self.scalar_all = time;
    }

    pub(super) fn invalidate_instructions(&mut self, time: u32) {
        self.instruction = time;
    }

    /// Writes until then are seen by all vector loads.
    pub(super) fn vector_settled_time(&self) -> u32 {
        self.vector_all
    }

    /// Writes until then are seen by all scalar loads.
    pub(super) fn scalar_settled_time(&self) -> u32 {
        self.scalar_all
    }

    /// Writes until then are seen by all loads.
    pub(super) fn settled_time(&self) -> u32 {
        self.vector_all.min(self.scalar_all)
    }
}
