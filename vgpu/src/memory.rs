//! The GPU's page table: which host memory stands behind a GPU virtual address, and with which rights.
//!
//! Contract: an [`AddressSpace`] is a sorted list of disjoint ranges of whole pages, replaced as a whole by each
//! change. Readers hold a snapshot ([`PageTable`]), which keeps the mappings behind it alive, so an access through
//! a stale snapshot is never to unmapped host memory. Nothing here panics on any address.
//! Cost: a change copies the list; a look-up is a binary search; [`MemoryPort`] remembers the last ranges, so that
//! a wave's access costs one range check, and looks at the generation (one atomic load) when it is refreshed.

use crate::check::memory::{CacheControl, HostMemory, LINE_DWORDS, MemoryChecker, MemoryType, Scope, WaveId};
use crate::check::progress::Progress;
use crate::command_processor::injection::Defects;
use crate::kernel::fill::Fill;
use bitflags::bitflags;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;
use zrt_kmd::Mapping;
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// The GPU's page (hardware reference §2.4).
pub const GPU_PAGE_BYTES: u64 = 4096;
/// Most ranges of one address space.
pub const RANGES_MAX: usize = 1 << 16;
/// Ranges that a port remembers.
const PORT_ENTRIES: usize = 4;

bitflags! {
    /// What a range permits, or an access needs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rights: u8 {
        /// Loads.
        const READ = 1;
        /// Stores and atomics.
        const WRITE = 2;
        /// Instruction fetch.
        const EXECUTE = 4;
    }
}

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// No range holds the address.
    NotPresent,
    /// A store to a range without [`Rights::WRITE`].
    ReadOnly,
    /// An instruction fetch from a range without [`Rights::EXECUTE`].
    NoExecute,
}

/// An access that the page table refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("page fault at {va:#x}: {cause}")]
pub struct Fault {
    /// The first byte that cannot be reached.
    pub va: u64,
    /// Why.
    pub cause: Cause,
    /// What was tried.
    pub access: Rights,
}

/// A change of the page table that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// Address or length is not a whole number of pages, the length is zero, or the range wraps.
    #[error("{va:?} and {len:?} are not whole pages of the address space")]
    NotPages {
        /// First byte.
        va: GpuVa,
        /// Length.
        len: ByteLen,
    },
    /// The backing is shorter than the range.
    #[error("a range of {len:?} on a backing of {backing:?}")]
    ShortBacking {
        /// Length of the range.
        len: ByteLen,
        /// Length of the backing.
        backing: ByteLen,
    },
    /// Another range is there.
    #[error("{va:?} + {len:?} overlaps the range at {other:?}")]
    Overlap {
        /// First byte.
        va: GpuVa,
        /// Length.
        len: ByteLen,
        /// The range that is there.
        other: GpuVa,
    },
    /// No range starts there with that length.
    #[error("no range of {len:?} starts at {va:?}")]
    NoSuchRange {
        /// First byte.
        va: GpuVa,
        /// Length.
        len: ByteLen,
    },
    /// [`RANGES_MAX`] reached.
    #[error("more than {RANGES_MAX} ranges")]
    TooManyRanges,
}

/// One mapped range.
#[derive(Clone, Debug)]
struct Range {
    va: u64,
    /// One past the last byte.
    end: u64,
    view: SharedView,
    backing: Backing,
}

/// What stands behind a range.
#[derive(Clone, Debug)]
pub(crate) struct Backing {
    /// What may be done.
    pub rights: Rights,
    /// What GL2 makes of it.
    pub memory_type: MemoryType,
    /// The bytes, whole pages.
    pub mapping: Arc<Mapping>,
    /// What they are before anything is written.
    pub fill: Option<Arc<Fill>>,
    /// What is wrong with them on purpose.
    pub defects: Defects,
}

/// A snapshot of an address space.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    /// Sorted by address, disjoint.
    ranges: Vec<Range>,
    generation: u64,
}

/// One GPU virtual address space.
#[derive(Debug)]
pub struct AddressSpace {
    /// Never given twice in a process: tells address spaces apart in caches.
    id: u64,
    generation: AtomicU64,
    table: RwLock<Arc<PageTable>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Cause::NotPresent => "not mapped",
            Cause::ReadOnly => "mapped read-only",
            Cause::NoExecute => "not mapped executable",
        })
    }
}

impl Fault {
    /// The page of the address, as the driver reports it.
    pub fn page_va(&self) -> u64 {
        self.va & !(GPU_PAGE_BYTES - 1)
    }
}

impl Default for AddressSpace {
    fn default() -> AddressSpace {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        AddressSpace {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            generation: AtomicU64::new(0),
            table: RwLock::default(),
        }
    }
}

impl Range {
    /// The range, for somebody who is about to look at it.
    #[inline]
    fn filled(&self) -> &Range {
        if let Some(fill) = &self.backing.fill {
            fill.ensure();
        }
        self
    }
}

impl PageTable {
    /// The number of the change that made this snapshot.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The range that holds `va`; `hint` is the place of the one that was found last, wherever that was.
    #[inline]
    fn find_near(&self, va: u64, hint: &mut usize) -> Option<&Range> {
        if let Some(range) = self.ranges.get(*hint)
            && va >= range.va
            && va < range.end
        {
            return Some(range.filled());
        }
        let after = self.ranges.partition_point(|range| range.va <= va);
        let at = after.checked_sub(1)?;
        let range = self.ranges.get(at)?;
        if va >= range.end {
            return None;
        }
        *hint = at;
        Some(range.filled())
    }

    /// The range that holds `va` and permits `access`.
    fn locate(&self, va: u64, access: Rights) -> Result<&Range, Fault> {
        self.locate_near(va, access, &mut 0)
    }

    #[inline]
    fn locate_near(&self, va: u64, access: Rights, hint: &mut usize) -> Result<&Range, Fault> {
        let range = self.find_near(va, hint).ok_or(Fault { va, cause: Cause::NotPresent, access })?;
        if range.backing.rights.contains(access) {
            return Ok(range);
        }
        let missing = access - range.backing.rights;
        let cause = if missing.contains(Rights::EXECUTE) {
            Cause::NoExecute
        } else if missing.contains(Rights::WRITE) {
            Cause::ReadOnly
        } else {
            Cause::NotPresent
        };
        Err(Fault { va, cause, access })
    }

    /// Whether every byte of `[va, va + len)` is mapped and permits `access`; `hint` as for `find_near`.
    #[inline]
    fn covers(&self, va: u64, len: usize, access: Rights, hint: &mut usize) -> Result<(), Fault> {
        let mut checked = 0;
        while checked < len {
            let at = va.wrapping_add(checked as u64);
            let range = self.locate_near(at, access, hint)?;
            checked += ((range.end - at) as usize).min(len - checked);
        }
        Ok(())
    }

    /// Host memory of the bytes `[va, va + len)`, which must lie in one range, and their offset in it.
    pub fn translate(&self, va: u64, len: usize, access: Rights) -> Result<(&SharedView, usize), Fault> {
        let range = self.locate(va, access)?;
        if len as u64 > range.end - va {
            return Err(Fault { va: range.end, cause: Cause::NotPresent, access });
        }
        Ok((&range.view, (va - range.va) as usize))
    }

    /// What is wrong on purpose with the range that holds `va`.
    pub(crate) fn defects(&self, va: u64) -> Defects {
        self.find_near(va, &mut 0).map_or(Defects::empty(), |range| range.backing.defects)
    }
}

impl AddressSpace {
    /// Never given twice in a process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of changes so far.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The ranges as they are now.
    pub fn snapshot(&self) -> Arc<PageTable> {
        // The table is replaced by one assignment, so it is whole after any panic.
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As [`PageTable::translate`], with a view to keep.
    pub fn translate(&self, va: u64, len: usize, access: Rights) -> Result<(SharedView, usize), Fault> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let (view, offset) = table.translate(va, len, access)?;
        Ok((view.clone(), offset))
    }

    /// Maps the first `len` bytes of `mapping` at `va`, as system memory. Both are whole pages.
    pub fn map(
        &self,
        va: GpuVa,
        len: ByteLen,
        rights: Rights,
        mapping: Arc<Mapping>,
    ) -> Result<(), MapError> {
        let (memory_type, defects) = (MemoryType::default(), Defects::empty());
        self.map_backing(va, len, Backing { rights, memory_type, mapping, fill: None, defects })
    }

    /// Maps the first `len` bytes of what stands behind at `va`. Both are whole pages.
    pub(crate) fn map_backing(&self, va: GpuVa, len: ByteLen, backing: Backing) -> Result<(), MapError> {
        let end = va.0.checked_add(len.0).ok_or(MapError::NotPages { va, len })?;
        if len.0 == 0 || [va.0, len.0].iter().any(|value| value % GPU_PAGE_BYTES != 0) {
            return Err(MapError::NotPages { va, len });
        }
        let view = backing.mapping.view();
        if len.0 > view.len() as u64 {
            return Err(MapError::ShortBacking { len, backing: ByteLen(view.len() as u64) });
        }
        let view = view.slice(0, len.0 as usize);
        self.change(|ranges| {
            if ranges.len() >= RANGES_MAX {
                return Err(MapError::TooManyRanges);
            }
            let at = ranges.partition_point(|range| range.va < va.0);
            let before =
                at.checked_sub(1).and_then(|index| ranges.get(index)).filter(|range| range.end > va.0);
            let after = ranges.get(at).filter(|range| range.va < end);
            if let Some(other) = before.or(after) {
                return Err(MapError::Overlap { va, len, other: GpuVa(other.va) });
            }
            ranges.insert(at, Range { va: va.0, end, view, backing });
            Ok(())
        })
    }

    /// Takes the range away that [`AddressSpace::map`] made with this address and length. Snapshots taken before
    /// still reach it.
    pub fn unmap(&self, va: GpuVa, len: ByteLen) -> Result<(), MapError> {
        self.change(|ranges| {
            let found = ranges.binary_search_by_key(&va.0, |range| range.va).ok();
            let at = found
                .filter(|at| ranges[*at].end - va.0 == len.0)
                .ok_or(MapError::NoSuchRange { va, len })?;
            ranges.remove(at);
            Ok(())
        })
    }

    fn change(&self, apply: impl FnOnce(&mut Vec<Range>) -> Result<(), MapError>) -> Result<(), MapError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut ranges = table.ranges.clone();
        apply(&mut ranges)?;
        let generation = table.generation + 1;
        *table = Arc::new(PageTable { ranges, generation });
        self.generation.store(generation, Ordering::Release);
        Ok(())
    }
}

/// One worker's way to memory: a snapshot and the ranges used last.
#[derive(Debug, Default)]
pub struct MemoryPort {
    table: Option<Arc<PageTable>>,
    /// Address space of the snapshot; 0 before the first.
    space_id: u64,
    entries: [Option<Entry>; PORT_ENTRIES],
    /// The entry that is replaced next.
    victim: usize,
    /// Sees every access, in the checking mode.
    watch: Option<Box<Watch>>,
    /// The lane that accesses next, for the watcher.
    lane: u32,
    first_lane: u32,
    /// Place of the range that a watched access has met last.
    watched_range: usize,
}

/// The checking mode's eye on a port.
#[derive(Debug)]
pub(crate) struct Watch {
    pub checker: Box<MemoryChecker>,
    pub progress: Progress,
}

/// Memory behind the caches: what a page table maps. Bytes that are not mapped read as zero and are not written.
pub(crate) struct Mapped<'a> {
    table: &'a PageTable,
    /// Place of the range that was met last.
    hint: usize,
}

impl<'a> Mapped<'a> {
    /// What the table maps.
    pub fn new(table: &'a PageTable) -> Mapped<'a> {
        Mapped { table, hint: 0 }
    }
}

/// A remembered range.
#[derive(Debug)]
struct Entry {
    va: u64,
    len: u64,
    rights: Rights,
    view: SharedView,
}

impl HostMemory for Mapped<'_> {
    fn read(&mut self, va: u64, destination: &mut [u8]) {
        let mut done = 0;
        while done < destination.len() {
            let at = va.wrapping_add(done as u64);
            let Some(range) = self.table.find_near(at, &mut self.hint) else {
                destination[done..].fill(0);
                return;
            };
            let count = ((range.end - at) as usize).min(destination.len() - done);
            range.view.read_bytes((at - range.va) as usize, &mut destination[done..done + count]);
            done += count;
        }
    }

    #[inline]
    fn read_line(&mut self, va: u64, words: &mut [u32; LINE_DWORDS]) {
        // Ranges are whole pages, so they hold lines as a whole.
        match self.table.find_near(va, &mut self.hint) {
            Some(range) => range.view.load_words((va - range.va) as usize, words),
            None => words.fill(0),
        }
    }

    fn memory_type(&mut self, va: u64) -> MemoryType {
        self.table
            .find_near(va, &mut self.hint)
            .map_or_else(MemoryType::default, |range| range.backing.memory_type)
    }

    fn write(&mut self, va: u64, source: &[u8]) {
        // The host may poll what is written: dwords in one piece, after everything before.
        fence(Ordering::Release);
        let mut done = 0;
        while done < source.len() {
            let at = va.wrapping_add(done as u64);
            let Some(range) = self.table.find_near(at, &mut self.hint) else { return };
            let offset = (at - range.va) as usize;
            let left = ((range.end - at) as usize).min(source.len() - done);
            match source[done..].first_chunk::<4>() {
                Some(dword) if left >= 4 && at % 4 == 0 => {
                    range.view.store_u32(offset, u32::from_le_bytes(*dword));
                    done += 4;
                }
                _ => {
                    range.view.store_u8(offset, source[done]);
                    done += 1;
                }
            }
        }
    }
}

impl MemoryPort {
    /// Takes the newest snapshot, where the port has an older one or that of another space.
    #[inline]
    pub fn refresh(&mut self, space: &AddressSpace) {
        if self.space_id != space.id || self.table().generation != space.generation() {
            self.table = Some(space.snapshot());
            self.space_id = space.id;
            self.entries = Default::default();
        }
    }

    /// The snapshot.
    pub fn table(&self) -> &PageTable {
        static EMPTY: PageTable = PageTable { ranges: Vec::new(), generation: 0 };
        self.table.as_deref().unwrap_or(&EMPTY)
    }

    /// Address space of the snapshot; 0 before the first.
    pub fn space_id(&self) -> u64 {
        self.space_id
    }

    /// Lets go of the snapshot, and so of the mappings behind it.
    pub fn release(&mut self) {
        *self = MemoryPort::default();
    }

    /// Puts a watcher on the port, or takes it off. With one, nothing is reached but through the watched functions.
    pub(crate) fn set_watch(&mut self, watch: Option<Box<Watch>>) -> Option<Box<Watch>> {
        self.entries = Default::default();
        std::mem::replace(&mut self.watch, watch)
    }

    /// Lets the watcher, where there is one, act with the port as nobody watches it.
    pub(crate) fn with_watch(&mut self, act: impl FnOnce(&mut Watch, &mut MemoryPort)) {
        if let Some(mut watch) = self.watch.take() {
            act(&mut watch, self);
            self.watch = Some(watch);
        }
    }

    /// The watcher.
    pub(crate) fn watch(&mut self) -> Option<&mut Watch> {
        self.watch.as_deref_mut()
    }

    /// Tells which lane the next access is of, counted from the first.
    #[inline(always)]
    pub(crate) fn set_lane(&mut self, lane: usize) {
        self.lane = self.first_lane + lane as u32;
    }

    /// Tells the first lane of the half of a wave64 that accesses next.
    pub(crate) fn set_first_lane(&mut self, lane: usize) {
        self.first_lane = lane as u32;
        self.lane = lane as u32;
    }

    /// The range that holds `first..=last`, where one does and permits `access`: its view and the offset of `first`.
    #[inline(always)]
    pub fn range(&mut self, first: u64, last: u64, access: Rights) -> Option<(&SharedView, u64)> {
        let (at, offset) = self.place(first, last, access)?;
        Some((self.placed(at)?, offset))
    }

    /// The same, with the place in the port instead of the view, for [`MemoryPort::placed`]; it holds until another range is
    /// looked for.
    #[inline(always)]
    pub(crate) fn place(&mut self, first: u64, last: u64, access: Rights) -> Option<(usize, u64)> {
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            // What lies below the entry wraps to a large offset.
            let offset = first.wrapping_sub(entry.va);
            if offset < entry.len && last.wrapping_sub(entry.va) < entry.len && entry.rights.contains(access)
            {
                return Some((at, offset));
            }
        }
        self.find(first, last, access)
    }

    /// The view of the range at a place that [`MemoryPort::place`] has told.
    #[inline(always)]
    pub(crate) fn placed(&self, at: usize) -> Option<&SharedView> {
        self.entries.get(at)?.as_ref().map(|entry| &entry.view)
    }

    /// The range that holds `va`, where one does and permits `access`: its view, its first address, its length.
    #[inline(always)]
    pub fn around(&mut self, va: u64, access: Rights) -> Option<(&SharedView, u64, u64)> {
        let (at, _) = self.place(va, va, access)?;
        let entry = self.entries.get(at)?.as_ref()?;
        Some((&entry.view, entry.va, entry.len))
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, first: u64, last: u64, access: Rights) -> Option<(usize, u64)> {
        if self.watch.is_some() {
            return None;
        }
        let range = self.table().locate(first, access).ok()?;
        // What is wrong on purpose is seen on the slow way only, so that the fast one has no test for it.
        if last >= range.end || !range.backing.defects.is_empty() {
            return None;
        }
        let (va, len, rights) = (range.va, range.end - range.va, range.backing.rights);
        let view = range.view.clone();
        let at = self.victim;
        self.entries[at] = Some(Entry { va, len, rights, view });
        self.victim = (at + 1) % PORT_ENTRIES;
        Some((at, first - va))
    }

    /// Host memory of `len` bytes at `va` in one range; why not, otherwise.
    #[inline]
    pub fn translate(&mut self, va: u64, len: usize, access: Rights) -> Result<(&SharedView, usize), Fault> {
        let refused = Fault { va, cause: Cause::NotPresent, access };
        let last = va.checked_add(len as u64 - 1).ok_or(refused)?;
        match self.place(va, last, access) {
            Some((at, offset)) => Ok((self.placed(at).ok_or(refused)?, offset as usize)),
            None => self.table().translate(va, len, access),
        }
    }

    /// Copies bytes out, across adjacent ranges and at any alignment.
    pub fn read_bytes(&mut self, va: u64, destination: &mut [u8], access: Rights) -> Result<(), Fault> {
        match self.watch.take() {
            None => self.read_unwatched(va, destination, access),
            Some(mut watch) => {
                let mut hint = self.watched_range;
                let outcome = self.table().covers(va, destination.len(), access, &mut hint);
                self.watched_range = hint;
                if outcome.is_ok() {
                    let mut host = Mapped { table: self.table(), hint };
                    watch.checker.load(self.lane, va, &mut host, destination);
                    watch.progress.load(va, destination);
                }
                self.watch = Some(watch);
                outcome
            }
        }
    }

    /// Brings lines into the caches that a watcher keeps; why not, where one of them is not mapped.
    pub(crate) fn prefetch(&mut self, va: u64, len: u64, access: Rights) -> Result<(), Fault> {
        self.table().covers(va, len as usize, access, &mut 0)?;
        if let Some(mut watch) = self.watch.take() {
            watch.checker.prefetch(va, len, access == Rights::READ, &mut Mapped::new(self.table()));
            self.watch = Some(watch);
        }
        Ok(())
    }

    /// As [`MemoryPort::read_bytes`], past any watcher.
    pub fn read_unwatched(&mut self, va: u64, destination: &mut [u8], access: Rights) -> Result<(), Fault> {
        let mut done = 0;
        while done < destination.len() {
            let at = va.wrapping_add(done as u64);
            let range = self.table().locate(at, access)?;
            let count = ((range.end - at) as usize).min(destination.len() - done);
            range.view.read_bytes((at - range.va) as usize, &mut destination[done..done + count]);
            done += count;
        }
        Ok(())
    }

    /// Copies bytes in, likewise. Nothing is written where any byte cannot be.
    pub fn write_bytes(&mut self, va: u64, source: &[u8]) -> Result<(), Fault> {
        let Some(mut watch) = self.watch.take() else { return self.write_unwatched(va, source) };
        let mut hint = self.watched_range;
        let outcome = self.table().covers(va, source.len(), Rights::WRITE, &mut hint);
        self.watched_range = hint;
        if outcome.is_ok() {
            watch.checker.store(self.lane, va, source, &mut Mapped { table: self.table(), hint });
            watch.progress.change();
        }
        self.watch = Some(watch);
        outcome
    }

    /// A watched read-modify-write of 4 or 8 bytes; the old value. `None` without a watcher.
    pub(crate) fn watched_atomic(
        &mut self,
        va: u64,
        width: usize,
        next: impl Fn(u64) -> u64,
    ) -> Option<Result<u64, Fault>> {
        let mut watch = self.watch.take()?;
        let outcome = self.table().covers(va, width, Rights::READ | Rights::WRITE, &mut 0).map(|()| {
            let mut old = [0; 8];
            let mut is_change = false;
            watch.checker.atomic(self.lane, va, &mut Mapped::new(self.table()), &mut old[..width], |bytes| {
                let mut value = [0; 8];
                value[..width].copy_from_slice(bytes);
                let before = u64::from_le_bytes(value);
                let after = next(before);
                is_change = after != before;
                bytes.copy_from_slice(&after.to_le_bytes()[..width]);
            });
            if is_change {
                watch.progress.change();
            }
            watch.progress.load(va, &old[..width]);
            u64::from_le_bytes(old)
        });
        self.watch = Some(watch);
        Some(outcome)
    }

    /// A cache instruction, told to the watcher.
    pub(crate) fn watched_cache_control(
        &mut self,
        wave: WaveId,
        sequence: u32,
        cu: u16,
        control: CacheControl,
        scope: Scope,
    ) {
        if let Some(mut watch) = self.watch.take() {
            watch.checker.cache_control(wave, sequence, cu, control, scope, &mut Mapped::new(self.table()));
            self.watch = Some(watch);
        }
    }

    /// As [`MemoryPort::write_bytes`], past any watcher.
    pub fn write_unwatched(&mut self, va: u64, source: &[u8]) -> Result<(), Fault> {
        self.table().covers(va, source.len(), Rights::WRITE, &mut 0)?;
        let mut done = 0;
        while done < source.len() {
            let at = va.wrapping_add(done as u64);
            let range = self.table().locate(at, Rights::WRITE)?;
            let count = ((range.end - at) as usize).min(source.len() - done);
            range.view.write_bytes((at - range.va) as usize, &source[done..done + count]);
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_kmd::{MemoryFile, Protection};

    const PAGE: u64 = GPU_PAGE_BYTES;

    fn mapping(pages: u64) -> Arc<Mapping> {
        let len = (pages * PAGE) as usize;
        Arc::new(MemoryFile::new("test", len).unwrap().map(0, len, Protection::ReadWrite, None).unwrap())
    }

    fn space() -> AddressSpace {
        let space = AddressSpace::default();
        space.map(GpuVa(0x10_0000), ByteLen(2 * PAGE), Rights::READ | Rights::WRITE, mapping(2)).unwrap();
        space.map(GpuVa(0x10_2000), ByteLen(PAGE), Rights::READ | Rights::EXECUTE, mapping(1)).unwrap();
        space
    }

    #[test]
    fn addresses_are_found_and_refused() {
        let space = space();
        let cause =
            |va, len, access| space.translate(va, len, access).err().map(|fault| (fault.va, fault.cause));
        assert_eq!(space.translate(0x10_1ffc, 4, Rights::READ).unwrap().1, 0x1ffc);
        assert_eq!(cause(0x10_1ffc, 8, Rights::READ), Some((0x10_2000, Cause::NotPresent)));
        assert_eq!(cause(0xf_ffff, 1, Rights::READ), Some((0xf_ffff, Cause::NotPresent)));
        assert_eq!(cause(0x10_3000, 1, Rights::READ), Some((0x10_3000, Cause::NotPresent)));
        assert_eq!(cause(0x10_2000, 4, Rights::WRITE), Some((0x10_2000, Cause::ReadOnly)));
        assert_eq!(cause(0x10_0000, 4, Rights::EXECUTE), Some((0x10_0000, Cause::NoExecute)));
        assert_eq!(cause(u64::MAX, 1, Rights::READ), Some((u64::MAX, Cause::NotPresent)));
    }

    #[test]
    fn changes_are_checked() {
        let space = space();
        let map = |va, len, backing| space.map(GpuVa(va), ByteLen(len), Rights::READ, mapping(backing));
        assert!(matches!(map(0x10_1000, PAGE, 1), Err(MapError::Overlap { .. })));
        assert!(matches!(map(0xf_f000, 2 * PAGE, 2), Err(MapError::Overlap { .. })));
        assert!(matches!(map(0x20_0000, 2 * PAGE, 1), Err(MapError::ShortBacking { .. })));
        assert!(matches!(map(0x20_0001, PAGE, 1), Err(MapError::NotPages { .. })));
        assert!(matches!(map(0x20_0000, 0, 1), Err(MapError::NotPages { .. })));
        assert!(matches!(map(!(PAGE - 1), PAGE, 1), Err(MapError::NotPages { .. })));
        assert!(matches!(space.unmap(GpuVa(0x10_0000), ByteLen(PAGE)), Err(MapError::NoSuchRange { .. })));
        assert_eq!(space.unmap(GpuVa(0x10_0000), ByteLen(2 * PAGE)), Ok(()));
        assert!(space.translate(0x10_0000, 1, Rights::READ).is_err());
        assert_eq!(map(0x10_0000, PAGE, 1), Ok(()));
    }

    #[test]
    fn a_port_sees_changes_after_a_refresh_and_keeps_memory_alive_until_then() {
        let space = space();
        let mut port = MemoryPort::default();
        assert!(port.range(0x10_0000, 0x10_0003, Rights::READ).is_none());
        port.refresh(&space);
        let (view, offset) = port.range(0x10_0ffc, 0x10_0fff, Rights::READ).unwrap();
        let view = view.clone();
        assert_eq!(offset, 0xffc);
        space.unmap(GpuVa(0x10_0000), ByteLen(2 * PAGE)).unwrap();
        view.store_u32(0, 7);
        assert_eq!(view.load_u32(0), 7);
        assert!(port.range(0x10_0000, 0x10_0003, Rights::READ).is_some());
        port.refresh(&space);
        assert!(port.range(0x10_0000, 0x10_0003, Rights::READ).is_none());
    }

    #[test]
    fn ranges_are_checked_at_both_ends_and_copies_cross_them() {
        let space = AddressSpace::default();
        let both = Rights::READ | Rights::WRITE;
        for page in 0..8 {
            space.map(GpuVa(0x10_0000 + page * PAGE), ByteLen(PAGE), both, mapping(1)).unwrap();
        }
        let mut port = MemoryPort::default();
        port.refresh(&space);
        for page in 0..8 {
            let va = 0x10_0000 + page * PAGE;
            assert!(port.range(va, va + PAGE - 1, both).is_some());
            assert!(port.range(va, va + PAGE, both).is_none());
            assert!(port.range(va - 1, va, both).is_none());
            assert!(port.range(va, va, Rights::EXECUTE).is_none());
        }
        let source: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        port.write_bytes(0x10_0123, &source).unwrap();
        let mut back = vec![0; source.len()];
        port.read_bytes(0x10_0123, &mut back, Rights::READ).unwrap();
        assert_eq!(back, source);
        let fault = port.write_bytes(0x10_7ff0, &[1; 32]).unwrap_err();
        assert_eq!((fault.va, fault.cause), (0x10_8000, Cause::NotPresent));
        port.read_bytes(0x10_7ff0, &mut back[..16], Rights::READ).unwrap();
        assert_eq!(back[..16], [0; 16], "a refused write leaves nothing behind");
    }
}
