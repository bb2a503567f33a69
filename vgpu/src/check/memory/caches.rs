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

#[cfg(test)]
mod tests {
    use super::super::access::COMMAND_PROCESSOR;
    use super::super::cells::Cells;
    use super::*;

    const SCOPES: [Scope; 4] = [Scope::Cu, Scope::Se, Scope::Device, Scope::System];
    /// When the writes of these tests happen.
    const TIME: u32 = 10;

    /// A write by a compute unit, or by somebody else.
    fn write(cu: u16) -> Write {
        let mut cells = Cells::new(1);
        cells.store_from_outside(0, COMMAND_PROCESSOR, TIME, 0);
        let mut write = cells.newest(0).unwrap();
        write.cu = cu;
        write
    }

    /// Compute units 4 and 5 are one WGP. A cache is as new as its last invalidation that reaches as far as the writer.
    #[test]
    fn a_vector_load_sees_own_writes_and_others_by_scope_or_invalidation() {
        let (all, near, far) = ([true; 4], [false, true, true, true], [false, false, true, true]);
        for (writer, invalidation, reader, sees) in [
            (4, None, 4, all),
            (4, None, 5, near),
            (4, None, 6, far),
            (NO_CU, None, 4, far),
            (NO_CU, None, NO_CU - 1, far),
            (4, Some((5, Scope::Cu, 11)), 5, near),
            (4, Some((5, Scope::Se, 11)), 5, all),
            (4, Some((5, Scope::Se, 10)), 5, all),
            (4, Some((5, Scope::Se, 9)), 5, near),
            (4, Some((4, Scope::Se, 11)), 5, near),
            (4, Some((6, Scope::Se, 11)), 6, far),
            (NO_CU, Some((4, Scope::Se, 11)), 4, far),
            (4, Some((5, Scope::Device, 11)), 5, all),
            (4, Some((6, Scope::Device, 11)), 6, all),
            (4, Some((6, Scope::Device, 10)), 6, all),
            (4, Some((6, Scope::Device, 9)), 6, far),
            (4, Some((6, Scope::System, 11)), 6, all),
            (4, Some((6, Scope::System, 11)), 7, far),
            (NO_CU, Some((0, Scope::Device, 11)), 0, all),
            (NO_CU, Some((0, Scope::Device, 11)), 1, far),
        ] {
            let mut times = CacheTimes::default();
            if let Some((cu, scope, time)) = invalidation {
                times.invalidate_vector(cu, scope, time);
            }
            let seen = SCOPES.map(|scope| !times.misses(&write(writer), scope, reader));
            assert_eq!(seen, sees, "{writer}, {invalidation:?}, {reader}");
        }
    }

    #[test]
    fn what_the_host_wrote_is_seen_with_system_scope_alone() {
        let no = [false, false, false, true];
        for (scope, time, reader, sees) in [
            (Scope::Device, 11, 4, no),
            (Scope::System, 9, 4, no),
            (Scope::System, 10, 4, [true; 4]),
            (Scope::System, 11, 4, [true; 4]),
            (Scope::System, 11, 5, no),
        ] {
            let mut times = CacheTimes::default();
            times.invalidate_vector(4, scope, time);
            let seen = SCOPES.map(|scope| !times.misses_host(&write(NO_CU), scope, reader));
            assert_eq!(seen, sees, "{scope:?} at {time}, by {reader}");
        }
    }

    #[test]
    fn a_scalar_cache_belongs_to_a_wgp_and_even_own_writes_pass_it_by() {
        let no = [false, false, true, true];
        for (cu, time, reader, sees) in
            [(4, 11, 5, [true; 4]), (5, 10, 4, [true; 4]), (4, 9, 4, no), (4, 11, 6, no), (0, 11, 2, no)]
        {
            let mut times = CacheTimes::default();
            times.invalidate_scalar(cu, time);
            let seen = SCOPES.map(|scope| !times.scalar_misses(&write(4), scope, reader));
            assert_eq!(seen, sees, "{cu} at {time}, by {reader}");
        }
    }

    /// A packet invalidates all caches of a kind. The settled times are the last ones of which everything is seen.
    #[test]
    fn packets_reach_every_compute_unit() {
        let sees = |act: fn(&mut CacheTimes, u32), time| {
            let mut times = CacheTimes::default();
            act(&mut times, time);
            let settled = [times.vector_settled_time(), times.scalar_settled_time(), times.settled_time()];
            let write = write(NO_CU);
            let vector = !times.misses(&write, Scope::Cu, 7) && !times.misses_host(&write, Scope::Cu, 7);
            let scalar = !times.scalar_misses(&write, Scope::Cu, 7);
            ([vector, scalar, !times.fetch_misses(&write)], settled)
        };
        for time in [10, 11] {
            let vector = sees(CacheTimes::invalidate_all_vector, time);
            assert_eq!(vector, ([true, false, false], [time, 0, 0]));
            let scalar = sees(CacheTimes::invalidate_all_scalar, time);
            assert_eq!(scalar, ([false, true, false], [0, time, 0]));
            let both = |times: &mut CacheTimes, time| {
                times.invalidate_all_vector(time);
                times.invalidate_all_scalar(time + 1);
            };
            assert_eq!(sees(both, time), ([true, true, false], [time, time + 1, time]));
            let fetches = sees(CacheTimes::invalidate_instructions, time);
            assert_eq!(fetches, ([false, false, true], [0; 3]));
        }
        assert_eq!(sees(CacheTimes::invalidate_all_vector, 9).0, [false; 3]);
        assert_eq!(sees(CacheTimes::invalidate_all_scalar, 9).0, [false; 3]);
        assert_eq!(sees(CacheTimes::invalidate_instructions, 9).0, [false; 3]);
    }
}
