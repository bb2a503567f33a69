//! When the vector, scalar and instruction caches were invalidated, in logical time.
//!
//! Contract: a cache may hold the value from before any write by somebody else that is newer than the cache's last
//! invalidation (hardware reference §6.1). Whether it does is chance, so a load through it returns that value. The
//! vector cache writes through: a compute unit sees its own writes. Cost: a few comparisons.

use super::access::{NO_CU, wgp};
use super::cells::Write;
use super::finding::Scope;

/// Logical times of invalidations.
#[derive(Debug, Default)]
pub(super) struct CacheTimes {
    /// Per compute unit, for writes from its own WGP.
    vector_near: Vec<u32>,
    /// Per compute unit, for all writes.
    vector: Vec<u32>,
    /// Per compute unit with system scope, which includes the host's writes.
    vector_system: Vec<u32>,
    /// Per WGP.
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
    /// True if a vector load may miss the write.
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

    /// True if a vector load may miss what the host wrote to VRAM that it shares with running kernels. Any load
    /// below system scope may, unless the compute unit itself has since invalidated with system scope.
    pub(super) fn misses_host(&self, write: &Write, scope: Scope, cu: u16) -> bool {
        scope < Scope::System && write.time > self.vector_all.max(at(&self.vector_system, cu))
    }

    /// True if a scalar load may miss the write.
    pub(super) fn scalar_misses(&self, write: &Write, scope: Scope, cu: u16) -> bool {
        scope < Scope::Device && write.time > self.scalar_all.max(at(&self.scalar, wgp(cu)))
    }

    /// True if instruction fetch may miss the write.
    pub(super) fn fetch_misses(&self, write: &Write) -> bool {
        write.time > self.instruction
    }

    /// `global_inv` by a wave on a compute unit.
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

    /// `s_dcache_inv` by a wave on a compute unit.
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

    /// All vector loads see writes up to this time.
    pub(super) fn vector_settled_time(&self) -> u32 {
        self.vector_all
    }

    /// All scalar loads see writes up to this time.
    pub(super) fn scalar_settled_time(&self) -> u32 {
        self.scalar_all
    }

    /// All loads see writes up to this time.
    pub(super) fn settled_time(&self) -> u32 {
        self.vector_all.min(self.scalar_all)
    }
}
