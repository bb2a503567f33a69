//! What the memory checker reports: rules, defects, findings, and the table of code sites.
//!
//! Contract: one finding per defect, code address and code address of the other side; repetitions are counted.
//! Nothing is formatted for a repetition. Cost: one hash look-up per reported event, none without.

use super::hash::FastMap;
use std::fmt;

/// Most findings that are kept. Repetitions of kept findings are still counted.
pub const FINDINGS_MAX: usize = 4096;

/// The rules of the checking mode that this component checks, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MemoryRule {
    /// Data of another wave used without the wait that the memory model requires.
    Waits = 1,
    /// A read of data that was never written.
    Uninitialised = 3,
    /// Two unordered accesses by two waves to the same byte.
    Races = 4,
    /// A cache between producer and consumer that was not written back or not invalidated.
    Visibility = 5,
    /// An access outside an allocation, or through a forbidden path.
    Bounds = 6,
    /// Correct, but slower than necessary.
    Advice = 7,
}

/// The kind of defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Defect {
    /// Conflicting accesses by two waves with nothing to order them.
    Race,
    /// Two lanes of one wave store different values to the same bytes in one instruction.
    LanesClash,
    /// The other side signalled before its own load had completed.
    UnwaitedLoad,
    /// The other side signalled before its own store had completed.
    UnwaitedStore,
    /// The other side signalled before its own LDS operation had completed.
    UnwaitedLds,
    /// The other side signalled before its own scalar load had completed.
    UnwaitedScalarLoad,
    /// A flag with system scope was written while a write-back of the same wave was outstanding.
    UnwaitedWriteBack,
    /// LDS bytes that no wave of the group has written.
    UninitialisedLds,
    /// The vector cache of the compute unit may hold an older value.
    StaleVectorCache,
    /// The scalar cache may hold an older value.
    StaleScalarCache,
    /// The instruction cache may hold older code.
    StaleInstructionCache,
    /// GL2 holds a value that the host has replaced.
    StaleLevelTwo,
    /// GL2 holds such a value of VRAM that is not mapped uncached.
    StaleVram,
    /// A load below system scope reads what the host wrote to uncached memory while the dispatch runs, and the
    /// compute unit has not invalidated with system scope since.
    HostWriteBelowSystem,
    /// A fence was written while GL2 held data that the host cannot see.
    FenceWithoutWriteBack,
    /// A wave wrote with system scope to a line that has earlier stores which the host cannot see.
    UnreleasedLine,
    /// A scalar load of data that the same dispatch stores.
    ScalarLoadOfStoredData,
    /// An access outside all allocations, or across the end of one.
    OutsideAllocations,
    /// A prefetch of lines in pages without any allocation.
    PrefetchOutsideAllocations,
    /// A global access to private memory.
    PrivateByAddress,
    /// A write inside a read-only allocation.
    WriteToReadOnly,
    /// A global load or store not aligned to its element, at most four bytes.
    MisalignedGlobal,
    /// An LDS load or store not aligned to its width.
    MisalignedLds,
    /// An atomic not aligned to its width.
    MisalignedAtomic,
    /// An access beyond the LDS allocation of the group.
    LdsOutOfBounds,
}

/// How an instruction accesses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A vector load from global memory.
    #[default]
    Load,
    /// A scalar load.
    ScalarLoad,
    /// A scalar prefetch, which returns no value.
    Prefetch,
    /// A vector store to global memory.
    Store,
    /// A vector atomic on global memory.
    Atomic {
        /// Whether it returns the old value, and so counts in LOADcnt.
        returns: bool,
    },
    /// An LDS load, a flat one included.
    LdsLoad,
    /// An LDS store.
    LdsStore,
    /// An LDS atomic.
    LdsAtomic {
        /// Whether it returns the old value.
        returns: bool,
    },
}

/// The scope field of an instruction (instruction set reference §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Compute unit.
    #[default]
    Cu,
    /// Shader engine; treated here as sufficient only within one WGP.
    Se,
    /// Device.
    Device,
    /// System.
    System,
}

/// The counter class that shows when an operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Load,
    Store,
    Lds,
    Scalar,
}

/// An instruction of a program that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) pc: u64,
    pub(super) kind: AccessKind,
    pub(super) scope: Scope,
}

/// All sites seen so far; a cell names its site by index.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sites: Vec<Site>,
    indices: FastMap<Site, u32>,
}

/// The other side of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSide {
    /// The actor.
    pub actor: Actor,
    /// Address of the instruction; 0 if the actor is not a wave.
    pub pc: u64,
    /// Its kind of access; [`None`] if the actor is not a wave.
    pub kind: Option<AccessKind>,
}

/// Who accessed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A wave, by its global number, with the number of its group in its dispatch.
    Wave {
        /// Global number.
        wave: WaveId,
        /// Number of the group in the dispatch, in launch order.
        group: u32,
    },
    /// The command processor.
    CommandProcessor,
    /// The host.
    Host,
}

/// A wave, counted over all dispatches of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaveId(
    /// The number. Dispatches have contiguous ranges.
    pub u32,
);

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFinding {
    /// The defect.
    pub defect: Defect,
    /// The actor of the access that showed it.
    pub actor: Actor,
    /// Address of the instruction; 0 for packets.
    pub pc: u64,
    /// Lane, for vector accesses.
    pub lane: Option<u32>,
    /// Byte address: global virtual address, or offset in LDS.
    pub address: u64,
    /// The other side, if there is one.
    pub other: Option<OtherSide>,
    /// Figures of this case; may be empty.
    pub detail: String,
    /// Number of occurrences, the first included.
    pub count: u64,
}

/// Different values that two lanes of one instruction store to the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneClash {
    /// The earlier and the later lane.
    pub lanes: [u32; 2],
    /// First of the bytes, as in [`MemoryFinding::address`].
    pub address: u64,
    /// The value that each lane stores there, at most four bytes.
    pub values: [u32; 2],
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    findings: Vec<MemoryFinding>,
    indices: FastMap<(Defect, u64, u64), u32>,
    /// New findings beyond [`FINDINGS_MAX`].
    dropped: u64,
}

impl AccessKind {
    pub(super) fn is_write(self) -> bool {
        !matches!(
            self,
            AccessKind::Load | AccessKind::ScalarLoad | AccessKind::Prefetch | AccessKind::LdsLoad
        )
    }

    pub(super) fn is_atomic(self) -> bool {
        matches!(self, AccessKind::Atomic { .. } | AccessKind::LdsAtomic { .. })
    }

    /// The counter class that shows its completion (instruction set reference §4.1).
    pub(super) fn class(self) -> Class {
        match self {
            AccessKind::Load | AccessKind::Atomic { returns: true } => Class::Load,
            AccessKind::Store | AccessKind::Atomic { returns: false } => Class::Store,
            // No counter covers a prefetch, and no cell records one.
            AccessKind::ScalarLoad | AccessKind::Prefetch => Class::Scalar,
            AccessKind::LdsLoad | AccessKind::LdsStore | AccessKind::LdsAtomic { .. } => Class::Lds,
        }
    }

    /// In words, for a finding.
    pub fn name(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::ScalarLoad => "scalar load",
            AccessKind::Prefetch => "scalar prefetch",
            AccessKind::Store => "store",
            AccessKind::Atomic { .. } => "atomic",
            AccessKind::LdsLoad => "LDS load",
            AccessKind::LdsStore => "LDS store",
            AccessKind::LdsAtomic { .. } => "LDS atomic",
        }
    }
}

impl Site {
    /// True for flags: atomics, and global accesses with a scope wider than the compute unit.
    pub(super) fn is_flag(&self) -> bool {
        self.kind.is_atomic()
            || (self.scope > Scope::Cu && matches!(self.kind, AccessKind::Load | AccessKind::Store))
    }
}

impl Sites {
    /// Returns the index of a site.
    pub(super) fn intern(&mut self, site: Site) -> u32 {
        if let Some(index) = self.indices.get(&site) {
            return *index;
        }
        let index = self.sites.len() as u32;
        self.sites.push(site);
        self.indices.insert(site, index);
        index
    }

    /// The site with an index returned by [`Sites::intern`].
    pub(super) fn get(&self, index: u32) -> Site {
        self.sites.get(index as usize).copied().unwrap_or(Site {
            pc: 0,
            kind: AccessKind::Load,
            scope: Scope::Cu,
        })
    }
}

impl MemoryRule {
    /// The number of the rule.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl Defect {
    /// The rule that it breaks.
    pub fn rule(self) -> MemoryRule {
        match self {
            Defect::Race | Defect::LanesClash => MemoryRule::Races,
            Defect::UnwaitedLoad
            | Defect::UnwaitedStore
            | Defect::UnwaitedLds
            | Defect::UnwaitedScalarLoad
            | Defect::UnwaitedWriteBack => MemoryRule::Waits,
            Defect::UninitialisedLds => MemoryRule::Uninitialised,
            Defect::StaleVectorCache
            | Defect::StaleScalarCache
            | Defect::StaleInstructionCache
            | Defect::StaleLevelTwo
            | Defect::StaleVram
            | Defect::HostWriteBelowSystem
            | Defect::FenceWithoutWriteBack
            | Defect::UnreleasedLine => MemoryRule::Visibility,
            Defect::ScalarLoadOfStoredData
            | Defect::OutsideAllocations
            | Defect::PrefetchOutsideAllocations
            | Defect::PrivateByAddress
            | Defect::WriteToReadOnly
            | Defect::MisalignedAtomic
            | Defect::LdsOutOfBounds => MemoryRule::Bounds,
            Defect::MisalignedGlobal | Defect::MisalignedLds => MemoryRule::Advice,
        }
    }

    /// What happened.
    pub fn what(self) -> &'static str {
        match self {
            Defect::Race => "two waves access the same bytes and nothing orders them",
            Defect::LanesClash => {
                "two lanes of one instruction store different values to the same bytes; which one remains is undefined"
            }
            Defect::UnwaitedLoad => "the other wave signalled before its load had completed",
            Defect::UnwaitedStore => "the other wave signalled before its store had completed",
            Defect::UnwaitedLds => "the other wave signalled before its LDS operation had completed",
            Defect::UnwaitedScalarLoad => "the other wave signalled before its scalar load had completed",
            Defect::UnwaitedWriteBack => "a flag of system scope is written before global_wb has completed",
            Defect::UninitialisedLds => "the access reads LDS that no wave of the group has written",
            Defect::StaleVectorCache => "the vector cache may hold an older value, which this load returns",
            Defect::StaleScalarCache => "the scalar cache may hold an older value, which this load returns",
            Defect::StaleInstructionCache => "the instruction cache may hold the code that was here before",
            Defect::StaleLevelTwo => {
                "the host wrote after GL2 had cached the line; the load returns the older value"
            }
            Defect::StaleVram => {
                "the host wrote to VRAM after GL2 had cached the line; a load of any scope returns the older value"
            }
            Defect::HostWriteBelowSystem => {
                "a load below system scope reads what the host wrote while the dispatch runs; it returns the older value"
            }
            Defect::FenceWithoutWriteBack => {
                "a fence is written while GL2 holds data that the host cannot see"
            }
            Defect::UnreleasedLine => {
                "a write of system scope goes to a line of which GL2 holds older stores that the host cannot see"
            }
            Defect::ScalarLoadOfStoredData => "a scalar load reads data that the same dispatch stores",
            Defect::OutsideAllocations => "the access is not inside an allocation",
            Defect::PrefetchOutsideAllocations => "the prefetch leaves the pages of all allocations",
            Defect::PrivateByAddress => {
                "a global address reaches private memory, which may be that of another lane"
            }
            Defect::WriteToReadOnly => "the kernel writes to memory that it may only read",
            Defect::MisalignedGlobal => {
                "the address is not a multiple of the element, at most 4 bytes: the access is split"
            }
            Defect::MisalignedLds => {
                "the LDS address is not a multiple of the access width: the access is split"
            }
            Defect::MisalignedAtomic => "the address of an atomic is not a multiple of its width",
            Defect::LdsOutOfBounds => "the access is beyond the LDS allocation of the group",
        }
    }

    /// What would satisfy the rule.
    pub fn remedy(self) -> &'static str {
        match self {
            Defect::Race => {
                "order them: a barrier, or a flag with scope (release by the producer, acquire by the \
                 consumer), or make both atomic with a scope that covers both"
            }
            Defect::LanesClash => "let one lane store, give each lane its own place, or use an atomic",
            Defect::UnwaitedLoad => "the other wave needs s_wait_loadcnt 0 before its signal or flag",
            Defect::UnwaitedStore => "the other wave needs s_wait_storecnt 0 before its signal or flag",
            Defect::UnwaitedLds => "the other wave needs s_wait_dscnt 0 before its signal or flag",
            Defect::UnwaitedScalarLoad => "the other wave needs s_wait_kmcnt 0 before its signal or flag",
            Defect::UnwaitedWriteBack => "put s_wait_storecnt 0 between global_wb and the flag",
            Defect::UninitialisedLds => "store to the bytes first, and order the store before the load",
            Defect::StaleVectorCache => {
                "inside a dispatch: global_inv with a scope that covers both waves, after the wait for the \
                 flag or barrier; between dispatches: ACQUIRE_MEM with GLV_INV"
            }
            Defect::StaleScalarCache => "ACQUIRE_MEM with GLK_INV before the dispatch",
            Defect::StaleInstructionCache => "ACQUIRE_MEM with GLI_INV, or s_icache_inv, after the write",
            Defect::StaleLevelTwo => {
                "ACQUIRE_MEM with GL2_INV after the host's write; inside a dispatch a load of system \
                 scope, or global_inv scope:SCOPE_SYS after the flag"
            }
            Defect::StaleVram => {
                "allocate what the host writes while kernels run as shared VRAM (uncached) or system memory; \
                 between dispatches: ACQUIRE_MEM with GL2_INV"
            }
            Defect::HostWriteBelowSystem => {
                "a load of system scope, or global_inv scope:SCOPE_SYS by the same workgroup after the host's write"
            }
            Defect::FenceWithoutWriteBack => "RELEASE_MEM with GL2_WB",
            Defect::UnreleasedLine => {
                "global_wb scope:SCOPE_SYS and s_wait_storecnt 0 before it, or system scope for all of the line"
            }
            Defect::ScalarLoadOfStoredData => "use a vector load, or move the load to a later dispatch",
            Defect::OutsideAllocations => "check the address computation and the guard of the last group",
            Defect::PrefetchOutsideAllocations => {
                "prefetch no line past the end: where it is not mapped, the fault may end the process"
            }
            Defect::PrivateByAddress => "use scratch instructions, or flat ones with the private aperture",
            Defect::WriteToReadOnly => {
                "check the address computation: write to buffers, not to code or arguments"
            }
            Defect::MisalignedGlobal => "align the address",
            Defect::MisalignedLds => {
                "align the address: 8 for b64, 16 for b96 and b128, the element for 2addr"
            }
            Defect::MisalignedAtomic => "align the address: an atomic is never split",
            Defect::LdsOutOfBounds => "ask for more LDS, or check the address computation",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Wave { wave, group } => write!(formatter, "wave {} of group {group}", wave.0),
            Actor::CommandProcessor => formatter.write_str("the command processor"),
            Actor::Host => formatter.write_str("the host"),
        }
    }
}

impl fmt::Display for LaneClash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([first, second], [earlier, later]) = (self.lanes, self.values);
        write!(formatter, "lane {first} stores {earlier:#x}, lane {second} stores {later:#x}")
    }
}

impl MemoryFinding {
    /// The rule that is broken.
    pub fn rule(&self) -> MemoryRule {
        self.defect.rule()
    }
}

impl fmt::Display for MemoryFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.rule().number();
        write!(formatter, "rule {number}: {}, pc {:#x}", self.actor, self.pc)?;
        if let Some(lane) = self.lane {
            write!(formatter, ", lane {lane}")?;
        }
        write!(formatter, ", address {:#x}: {}", self.address, self.defect.what())?;
        if let Some(other) = &self.other {
            let kind = other.kind.map_or("write", AccessKind::name);
            write!(formatter, "; other side: {kind} by {}, pc {:#x}", other.actor, other.pc)?;
        }
        if !self.detail.is_empty() {
            write!(formatter, "; {}", self.detail)?;
        }
        write!(formatter, "; remedy: {}", self.defect.remedy())?;
        if self.count > 1 {
            write!(formatter, " (seen {} times)", self.count)?;
        }
        Ok(())
    }
}

impl Report {
    /// Counts a repetition. Returns true if the finding is new and must be added.
    pub(super) fn is_new(&mut self, defect: Defect, pc: u64, other_pc: u64) -> bool {
        #[cfg(test)]
        if crate::check::switch::is_off(&defect) {
            return false;
        }
        match self.indices.get(&(defect, pc, other_pc)) {
            Some(index) => {
                self.findings[*index as usize].count += 1;
                false
            }
            None if self.findings.len() >= FINDINGS_MAX => {
                self.dropped += 1;
                false
            }
            None => true,
        }
    }

    /// Adds a finding for which [`Report::is_new`] returned true.
    pub(super) fn add(&mut self, finding: MemoryFinding) {
        let other_pc = finding.other.map_or(0, |other| other.pc);
        let index = self.findings.len() as u32;
        self.indices.insert((finding.defect, finding.pc, other_pc), index);
        self.findings.push(finding);
    }

    pub(super) fn findings(&self) -> &[MemoryFinding] {
        &self.findings
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn take(&mut self) -> Vec<MemoryFinding> {
        self.indices.clear();
        self.dropped = 0;
        std::mem::take(&mut self.findings)
    }
}
