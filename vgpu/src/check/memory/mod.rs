//! The memory half of the checking mode: races, visibility, missing waits between waves, bounds.
//!
//! Contract: a pure component. The engine reports what each wave does, in order (the checking mode runs on one
//! thread), and takes loaded values from here. A consumer that skipped its acquire, or whose producer skipped its
//! release, receives the old value and a finding. Nothing here knows the page table or the instruction set.
//!
//! * Each wave has a global number and counts its memory operations; the register checker reports which are
//!   complete.
//! * Order between waves is happens-before (`clock`): barriers, flags (`flags`), dispatch boundaries.
//! * Each dword has its last write and the readers since (`cells`, `readers`).
//! * Caches are logical times (`caches`); GL2 is a separate copy (`level_two`).
//!
//! An access is reported for one rule: bounds come first, then order, then visibility. Cost: some nanoseconds per
//! lane and dword for neighbouring lanes; about 10 KiB per accessed page of 4 KiB, 42 KiB per written one.

mod access;
mod allocations;
mod caches;
mod cells;
mod clock;
mod finding;
mod flags;
mod global;
mod group;
mod hash;
mod level_two;
mod packets;
mod readers;
#[cfg(test)]
mod tests;
mod undefined;
mod undefined_bits;

pub use allocations::AllocationUse;
pub use clock::Completed;
pub use finding::{
    AccessKind, Actor, Defect, FINDINGS_MAX, LaneClash, MemoryFinding, MemoryRule, OtherSide, Scope, WaveId,
};
pub use group::{GroupShadow, LaneElement};
pub use packets::{CacheActions, Path};

use crate::check::undefined::{Loaded, Stored};
use crate::memory::HostMemory;
use access::{COMMAND_PROCESSOR, Conflict, Current, HOST, NOBODY};
use allocations::Allocations;
use caches::CacheTimes;
use cells::{Cells, Settled};
use clock::WaveState;
use finding::{Report, Site, Sites};
use flags::Flags;
use hash::FastMap;
use level_two::{CachePage, Invalidations, LastLine, PageIndices};
use readers::ReaderSets;
use std::ops::Range;
use std::sync::Arc;
use undefined_bits::UndefinedPage;

/// Ended dispatches that are remembered, so that a finding can name a wave's group.
const DISPATCHES_MAX: usize = 1 << 16;

/// Everything known about the memory of one device.
#[derive(Debug, Default)]
pub struct MemoryChecker {
    waves: FastMap<u32, WaveState>,
    dispatches: Vec<Dispatch>,
    /// Number of the first wave of the next dispatch.
    next_wave: u32,
    /// Logical time: counts writes and invalidations, and the comparisons that follow one.
    now: u32,
    current: Current,
    sites: Sites,
    pages: Vec<Page>,
    page_indices: PageIndices,
    /// The page found last.
    last_page: Option<(u64, u32)>,
    last_line: LastLine,
    /// Lanes and addresses of the current instruction's writes that the host sees at once.
    released: Vec<(u32, u64)>,
    /// Lanes and bytes of all stores of the current instruction.
    stored: Vec<(u32, Range<u64>)>,
    /// Whether lanes of a store have overlapped in LDS.
    has_lanes_in_lds: bool,
    /// Undefined bits of the data of the current store.
    undefined_data: Option<Stored>,
    /// The undefined parts of what was loaded.
    undefined_loads: Vec<Loaded>,
    /// Unused entries of `pages`.
    free_pages: Vec<u32>,
    /// Indices of pages with bytes that the host cannot see.
    dirty_pages: Vec<u32>,
    level_two_invalidations: Invalidations,
    /// Logical time at which memory was last compared.
    compared: u32,
    /// Number of times at which everything earlier became ordered; earlier readers are void.
    epoch: u32,
    settled_wave: u32,
    readers: ReaderSets,
    flags: Flags,
    caches: CacheTimes,
    allocations: Allocations,
    report: Report,
}

/// The waves of one dispatch.
#[derive(Clone, Copy, Debug)]
struct Dispatch {
    first: u32,
    waves: u32,
    waves_per_group: u32,
    ordered_before: u32,
}

/// What tells GL2 to drop its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Packet,
    Wave,
}

/// One accessed page.
#[derive(Debug)]
struct Page {
    va: u64,
    epoch: u32,
    cells: Cells,
    cache: CachePage,
    /// Its undefined bytes, if it ever had any.
    undefined: Option<Box<UndefinedPage>>,
}

/// One memory instruction of a wave.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The wave.
    pub wave: WaveId,
    /// Number of the operation among the wave's memory operations, from 1.
    pub sequence: u32,
    /// Address of the instruction.
    pub pc: u64,
    /// Compute unit on which the wave runs, counted over the device; 2n and 2n+1 are one WGP.
    pub cu: u16,
    /// Scope field; that of an access of LDS is [`Scope::Cu`].
    pub scope: Scope,
    /// The kind of access.
    pub kind: AccessKind,
}

/// A cache instruction, as a wave issues it. The fields are those of [`Access`].
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// The wave.
    pub wave: WaveId,
    /// Number of the operation.
    pub sequence: u32,
    /// Compute unit.
    pub cu: u16,
    /// Scope field.
    pub scope: Scope,
}

/// A cache instruction of a wave (instruction set reference §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// `global_inv`.
    Invalidate,
    /// `global_wb`.
    WriteBack,
    /// `global_wbinv`.
    WriteBackInvalidate,
}

impl MemoryChecker {
    /// A checker with no history.
    pub fn new() -> MemoryChecker {
        // Time 0 is before everything.
        MemoryChecker { epoch: 1, now: 1, ..MemoryChecker::default() }
    }

    /// Begins a dispatch of `waves` waves, `waves_per_group` per group. All waves below `ordered_before` have
    /// ended, and the command processor has waited for them. Returns the number of its first wave; the others
    /// follow.
    pub fn begin_dispatch(&mut self, waves: u32, waves_per_group: u32, ordered_before: WaveId) -> WaveId {
        let first = self.next_wave;
        let ordered_before = ordered_before.0.clamp(self.settled_wave, first);
        self.next_wave = first.saturating_add(waves).min(COMMAND_PROCESSOR);
        if ordered_before == first {
            self.epoch += 1;
            self.settled_wave = first;
            self.last_page = None;
            self.readers.clear();
            self.flags.clear();
            self.waves.clear();
            if self.dispatches.len() >= DISPATCHES_MAX {
                self.dispatches.clear();
            }
        }
        let waves_per_group = waves_per_group.max(1);
        self.dispatches.push(Dispatch { first, waves, waves_per_group, ordered_before });
        WaveId(first)
    }

    /// The number of the next dispatch's first wave: the value of `ordered_before` after a wait for all.
    pub fn next_wave(&self) -> WaveId {
        WaveId(self.next_wave)
    }

    /// A wave has ended.
    pub fn end_of_wave(&mut self, wave: WaveId) {
        self.waves.remove(&wave.0);
    }

    /// The memory operations of a wave up to these sequence numbers are complete; called at each wait. Flags that
    /// were loaded before take effect.
    pub fn waited(&mut self, wave: WaveId, completed: Completed) {
        self.wave(wave).complete(&completed);
    }

    /// A memory instruction begins; calls per lane follow, then [`MemoryChecker::end_access`].
    pub fn begin_access(&mut self, access: Access) {
        let site = Site { pc: access.pc, kind: access.kind, scope: access.scope };
        if access.kind.is_write() {
            self.now = self.now.saturating_add(1);
        }
        let state = self.waves.entry(access.wave.0).or_insert_with(|| WaveState::new(access.wave.0));
        state.issue(access.sequence);
        let is_before_write_back = state.write_back > state.completed().stores;
        self.released.clear();
        self.stored.clear();
        let current = &mut self.current;
        current.renew();
        if current.wave != access.wave.0 || current.stamp == 1 {
            current.wave = access.wave.0;
            let after = self.dispatches.partition_point(|dispatch| dispatch.first <= access.wave.0);
            let dispatch = after.checked_sub(1).map(|index| self.dispatches[index]);
            current.dispatch_first = dispatch.map_or(0, |dispatch| dispatch.first);
            current.dispatch_end =
                dispatch.map_or(0, |dispatch| dispatch.first.saturating_add(dispatch.waves));
            current.ordered_before = dispatch.map_or(0, |dispatch| dispatch.ordered_before);
        }
        if !Arc::ptr_eq(&current.clock, state.clock()) {
            current.clock = state.clock().clone();
        }
        if current.pc != access.pc
            || current.kind != access.kind
            || current.scope != access.scope
            || current.stamp == 1
        {
            current.site = self.sites.intern(site);
        }
        current.pc = access.pc;
        current.kind = access.kind;
        current.scope = access.scope;
        current.is_flag = site.is_flag();
        current.sequence = access.sequence;
        current.cu = access.cu;
        current.time = self.now;
        current.is_before_write_back = is_before_write_back;
        if self.readers.is_full() {
            let epoch = self.epoch;
            let pages = self.pages.iter_mut().filter(|page| page.epoch == epoch);
            self.readers.collect(pages.flat_map(|page| page.cells.reader_sets()));
        }
    }

    /// A cache instruction of a wave.
    pub fn cache_control(&mut self, issue: Issue, control: CacheControl, host: &mut dyn HostMemory) {
        let Issue { wave, sequence, cu, scope } = issue;
        self.now = self.now.saturating_add(1);
        let time = self.now;
        let state = self.wave(wave);
        state.issue(sequence);
        // An invalidation before the flag has arrived may be too early for the data that the flag announces.
        let is_early = state.has_pending_acquire();
        if control != CacheControl::Invalidate && scope == Scope::System {
            state.write_back = sequence;
            self.write_back(host);
        }
        if control != CacheControl::WriteBack && !is_early {
            self.caches.invalidate_vector(cu, scope, time);
            if scope == Scope::System {
                self.invalidate_level_two(Source::Wave);
            }
        }
    }

    /// `s_dcache_inv` by a wave on a compute unit.
    pub fn scalar_cache_invalidate(&mut self, cu: u16) {
        self.now = self.now.saturating_add(1);
        self.caches.invalidate_scalar(cu, self.now);
    }

    /// `s_icache_inv`.
    pub fn instruction_cache_invalidate(&mut self) {
        self.now = self.now.saturating_add(1);
        self.caches.invalidate_instructions(self.now);
    }

    /// Names an allocation. Once one is named, shaders may access only named ones.
    pub fn add_allocation(&mut self, name: &str, va: u64, len: u64, usage: AllocationUse) {
        self.allocations.add(name, va, len, usage);
        if usage == AllocationUse::Unwritten {
            self.forget_what_was_written(va, len);
        }
    }

    /// The position of bytes relative to the nearest allocation; empty if none is named.
    pub fn describe(&self, va: u64, len: u64) -> String {
        self.allocations.describe(va, len)
    }

    /// Bytes that lanes have loaded from each named allocation.
    pub fn read_bytes(&self) -> Vec<(String, u64)> {
        self.allocations.read_bytes()
    }

    /// Removes the allocations named in a range.
    pub fn remove_allocations(&mut self, va: u64, len: u64) {
        self.allocations.remove(va, len);
    }

    /// The findings so far, oldest first.
    pub fn findings(&self) -> &[MemoryFinding] {
        self.report.findings()
    }

    /// Takes the findings; the same defects may then be found again.
    pub fn take_findings(&mut self) -> Vec<MemoryFinding> {
        self.report.take()
    }

    /// Findings beyond [`FINDINGS_MAX`].
    pub fn dropped_findings(&self) -> u64 {
        self.report.dropped()
    }

    fn wave(&mut self, wave: WaveId) -> &mut WaveState {
        self.waves.entry(wave.0).or_insert_with(|| WaveState::new(wave.0))
    }

    fn settled(&self) -> Settled {
        Settled { wave: self.settled_wave, time: self.caches.settled_time() }
    }

    /// The actor for a number in a cell.
    fn actor(&self, wave: u32) -> Actor {
        match wave {
            HOST | NOBODY => Actor::Host,
            COMMAND_PROCESSOR => Actor::CommandProcessor,
            _ => {
                let after = self.dispatches.partition_point(|dispatch| dispatch.first <= wave);
                let group = after.checked_sub(1).map_or(0, |index| {
                    let dispatch = self.dispatches[index];
                    (wave - dispatch.first) / dispatch.waves_per_group
                });
                Actor::Wave { wave: WaveId(wave), group }
            }
        }
    }

    fn other_side(&self, wave: u32, site: u32) -> OtherSide {
        if wave >= COMMAND_PROCESSOR {
            return OtherSide { actor: self.actor(wave), pc: 0, kind: None };
        }
        let site = self.sites.get(site);
        OtherSide { actor: self.actor(wave), pc: site.pc, kind: Some(site.kind) }
    }

    /// A finding at the current instruction.
    fn report_now(
        &mut self,
        defect: Defect,
        lane: Option<u32>,
        address: u64,
        other: Option<OtherSide>,
        detail: impl FnOnce() -> String,
    ) {
        let pc = self.current.pc;
        if self.report.is_new(defect, pc, other.map_or(0, |other| other.pc)) {
            let actor = self.actor(self.current.wave);
            let detail = detail();
            self.report.add(MemoryFinding { defect, actor, pc, lane, address, other, detail, count: 1 });
        }
    }

    /// A finding at a lane of the current instruction.
    fn report_at(
        &mut self,
        defect: Defect,
        lane: u32,
        address: u64,
        other: Option<OtherSide>,
        detail: impl FnOnce() -> String,
    ) {
        self.report_now(defect, Some(lane), address, other, detail);
    }

    #[cold]
    fn report_conflict(&mut self, conflict: Conflict, lane: u32, address: u64) {
        let other = self.other_side(conflict.earlier.wave, conflict.earlier.site);
        self.report_at(conflict.defect, lane, address, Some(other), String::new);
    }
}
