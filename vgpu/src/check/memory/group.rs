//! The LDS and the barrier of one group.
//!
//! Contract: the LDS data stays in the engine; this records who wrote and read it. One shadow per group; it may be
//! reused after [`GroupShadow::begin`]. Cost: 41 bytes per dword of LDS; `begin` clears the used part.

use super::MemoryChecker;
use super::cells::{Cells, Context, Settled, Stored, piece};
use super::clock::Clock;
use super::finding::{AccessKind, Defect, LaneClash, WaveId};
use super::flags::Flags;
use super::readers::{ReaderSets, worse};
use super::undefined_bits::UndefinedLds;
use std::sync::Arc;

/// What is known about one group.
#[derive(Debug)]
pub struct GroupShadow {
    bytes: u32,
    cells: Cells,
    readers: ReaderSets,
    flags: Flags,
    /// Bytes written so far: one nibble per dword.
    written: Box<[u8]>,
    /// Undefined data that was stored.
    pub(super) undefined: UndefinedLds,
    /// What the waves that have signalled the current phase of the barrier have published.
    arriving: Arc<Clock>,
    /// The same for all completed phases.
    complete: Arc<Clock>,
}

/// A lane and the index of its element in 2addr forms.
#[derive(Clone, Copy, Debug)]
pub struct LaneElement {
    /// The lane.
    pub lane: u32,
    /// Number of the element.
    pub element: u32,
}

impl From<u32> for LaneElement {
    /// Its only element.
    fn from(lane: u32) -> LaneElement {
        LaneElement { lane, element: 0 }
    }
}

impl GroupShadow {
    /// The shadow of a group with `bytes` of LDS.
    pub fn new(bytes: u32) -> GroupShadow {
        let dwords = bytes.div_ceil(4) as usize;
        GroupShadow {
            bytes,
            cells: Cells::new(dwords),
            readers: ReaderSets::default(),
            flags: Flags::default(),
            written: vec![0; dwords].into_boxed_slice(),
            undefined: UndefinedLds::default(),
            arriving: Arc::default(),
            complete: Arc::default(),
        }
    }

    /// Resets it to the shadow of a new group with `bytes` of LDS.
    pub fn begin(&mut self, bytes: u32) {
        self.bytes = bytes;
        let dwords = bytes.div_ceil(4) as usize;
        self.cells.begin(dwords);
        self.readers.clear();
        self.flags.clear();
        if self.written.len() == dwords {
            self.written.fill(0);
        } else {
            self.written = vec![0; dwords].into_boxed_slice();
        }
        self.undefined.clear();
        self.arriving = Arc::default();
        self.complete = Arc::default();
    }

    /// All waves of the group have signalled or ended: waiting waves may continue. A wave that has not waited for
    /// an earlier phase has passed that one too.
    pub fn barrier_completed(&mut self) {
        Clock::join_shared(&mut self.complete, &std::mem::take(&mut self.arriving));
    }
}

impl MemoryChecker {
    /// A wave signals the barrier: it publishes its operations and its knowledge.
    pub fn barrier_signal(&mut self, group: &mut GroupShadow, wave: WaveId) {
        let published = self.wave(wave).publish();
        Clock::join_shared(&mut group.arriving, &published);
    }

    /// A wave passes its barrier wait: it learns what all waves had published when the last one signalled.
    pub fn barrier_wait(&mut self, group: &GroupShadow, wave: WaveId) {
        self.wave(wave).join(&group.complete);
    }

    /// Whether stores of several lanes have overlapped in LDS since the last call; the caller compares their data.
    #[inline]
    pub fn take_lanes_in_lds(&mut self) -> bool {
        std::mem::take(&mut self.has_lanes_in_lds)
    }

    /// Two lanes of the current instruction store different values.
    #[cold]
    pub fn report_lanes(&mut self, lanes: &LaneClash) {
        self.report_at(Defect::LanesClash, lanes.lanes[1], lanes.address, None, || lanes.to_string());
    }

    /// A lane accesses LDS as the current instruction does. `element_bytes`: its alignment. Returns false if the access
    /// is not inside the allocation: what is loaded there is zero, and what is stored is dropped.
    pub fn lds_access(
        &mut self,
        group: &mut GroupShadow,
        lane: impl Into<LaneElement>,
        address: u32,
        len: u32,
        element_bytes: u32,
    ) -> bool {
        let LaneElement { lane, element } = lane.into();
        assert_ne!(element_bytes, 0, "an element has a byte at least");
        let end = u64::from(address) + u64::from(len);
        if end > u64::from(group.bytes) {
            self.report_at(Defect::LdsOutOfBounds, lane, u64::from(address), None, || {
                format!("{len} bytes at {address} of {} bytes", group.bytes)
            });
            return false;
        }
        if address % element_bytes != 0 {
            let is_atomic = self.current.kind.is_atomic();
            let defect = if is_atomic { Defect::MisalignedAtomic } else { Defect::MisalignedLds };
            self.report_at(defect, lane, u64::from(address), None, || {
                format!("address {address}, {element_bytes} bytes expected")
            });
        }
        if group.readers.is_full() {
            group.readers.collect(group.cells.reader_sets());
        }
        let kind = self.current.kind;
        let (mut at, mut left) = (u64::from(address), len as usize);
        let (mut worst, mut is_uninitialised) = (None, false);
        while left > 0 {
            let (index, mask, count) = piece(at, left);
            let dword = index as usize;
            if kind.is_atomic() || !kind.is_write() {
                is_uninitialised |= mask & !group.written[dword] != 0;
            }
            let met = self.lds_dword(group, dword, mask);
            worst = worse(worst, met.conflict);
            self.has_lanes_in_lds |= met.again != 0 && kind == AccessKind::LdsStore;
            if kind.is_write() {
                group.written[dword] |= mask;
            }
            at += count as u64;
            left -= count;
        }
        if is_uninitialised {
            self.report_at(Defect::UninitialisedLds, lane, u64::from(address), None, String::new);
        }
        if !group.undefined.is_empty() || self.undefined_data.is_some() {
            self.follow_lds(group, (lane, element), address, len);
        }
        if let Some(conflict) = worst {
            self.report_conflict(conflict, lane, u64::from(address));
        }
        true
    }

    fn lds_dword(&mut self, group: &mut GroupShadow, dword: usize, mask: u8) -> Stored {
        let key = dword as u64;
        let is_write = self.current.kind.is_write();
        let is_flag = self.current.is_flag;
        let mut worst = None;
        if is_flag {
            let Some(wave) = self.waves.get_mut(&self.current.wave) else { return Stored::default() };
            worst = group.flags.access(key, mask, &mut self.current, &self.sites, wave);
            group.cells.set_flag(dword, true);
        } else if group.cells.has_flag(dword) {
            worst = group.flags.conflict_with_plain(key, mask, &mut self.current, &self.sites);
            if is_write && group.flags.replace(key, mask) {
                group.cells.set_flag(dword, false);
            }
        }
        let mut context = Context {
            current: &mut self.current,
            sites: &self.sites,
            readers: &mut group.readers,
            settled: Settled::default(),
        };
        let met = if is_write {
            group.cells.store(dword, mask, &mut context, 0)
        } else {
            let loaded = group.cells.load(dword, mask, &mut context, |_| false);
            Stored { conflict: loaded.conflict, again: 0 }
        };
        Stored { conflict: worse(worst, met.conflict), ..met }
    }
}

impl AccessKind {
    /// The width that an LDS access of `len` bytes must be aligned to (instruction set reference §9): 8 for 8, 16 for
    /// 12 and 16. A 2addr form is aligned to its element.
    pub fn lds_alignment_bytes(len: u32) -> u32 {
        match len {
            12 => 16,
            other => other,
        }
    }
}
