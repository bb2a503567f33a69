//! The GPU's page table: the host memory behind each GPU virtual address, and its access rights.
//!
//! Contract: an [`AddressSpace`] is a sorted list of disjoint ranges of whole pages, replaced as a whole by each
//! change. Readers hold a snapshot ([`PageTable`]), which keeps its mappings alive, so an access through a stale
//! snapshot never reaches unmapped host memory. Nothing here panics on any address.
//! Cost: a change copies the list; a look-up is a binary search.

use super::fill::Fill;
use bitflags::bitflags;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;
use zrt_kmd::Mapping;
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// The GPU's page size (hardware reference §2.4).
pub const GPU_PAGE_BYTES: u64 = 4096;
/// Most ranges of one address space.
pub const RANGES_MAX: usize = 1 << 16;

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

bitflags! {
    /// Deliberate defects of a mapped range.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Defects: u8 {
        /// Instruction fetch does not see its contents.
        const HIDES_CODE = 1;
        /// Atomics do nothing and return zero.
        const LOSES_ATOMICS = 2;
        /// Scalar loads return zero.
        const ZERO_TO_SCALARS = 4;
    }
}

/// The memory type of a page: how GL2 treats it (hardware reference §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryType {
    /// Whether it is VRAM of this card rather than system memory.
    pub is_local: bool,
    /// MTYPE UC instead of NC: GL2 passes accesses through and caches nothing. Suitable for what the host writes
    /// while kernels run.
    pub is_uncached: bool,
}

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// No range contains the address.
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
    /// The first byte that cannot be accessed.
    pub va: u64,
    /// The cause.
    pub cause: Cause,
    /// The attempted access.
    pub access: Rights,
}

/// Why a change of the page table is refused.
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
    /// Another range overlaps.
    #[error("{va:?} + {len:?} overlaps the range at {other:?}")]
    Overlap {
        /// First byte.
        va: GpuVa,
        /// Length.
        len: ByteLen,
        /// The existing range.
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
pub(super) struct Range {
    pub(super) va: u64,
    /// One past the last byte.
    pub(super) end: u64,
    pub(super) view: SharedView,
    pub(super) backing: Backing,
}

/// The memory behind a range.
#[derive(Clone, Debug)]
pub(crate) struct Backing {
    /// The access rights.
    pub rights: Rights,
    /// How GL2 treats it.
    pub memory_type: MemoryType,
    /// The bytes, whole pages.
    pub mapping: Arc<Mapping>,
    /// Its initial contents.
    pub fill: Option<Arc<Fill>>,
    /// Deliberate defects.
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
    /// Never reused in a process: distinguishes address spaces in caches.
    id: u64,
    generation: AtomicU64,
    table: RwLock<Arc<PageTable>>,
}

impl MemoryType {
    /// Whether it is VRAM whose lines GL2 caches.
    pub(crate) fn is_cached_vram(self) -> bool {
        self.is_local && !self.is_uncached
    }
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
    /// The range, filled, for a caller that is about to access it.
    #[inline]
    fn filled(&self) -> &Range {
        if let Some(fill) = &self.backing.fill {
            fill.ensure();
        }
        self
    }
}

impl PageTable {
    /// The table of an address space without any range.
    pub(super) fn empty() -> &'static PageTable {
        static EMPTY: PageTable = PageTable { ranges: Vec::new(), generation: 0 };
        &EMPTY
    }

    /// The sequence number of the change that made this snapshot.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The range that contains `va`; `hint` is the index of the range found last, in any table.
    #[inline]
    pub(super) fn find_near(&self, va: u64, hint: &mut usize) -> Option<&Range> {
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

    /// The range that contains `va` and permits `access`.
    pub(super) fn locate(&self, va: u64, access: Rights) -> Result<&Range, Fault> {
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

    /// Checks that every byte of `[va, va + len)` is mapped and permits `access`; `hint` as for `find_near`.
    #[inline]
    pub(super) fn covers(&self, va: u64, len: usize, access: Rights, hint: &mut usize) -> Result<(), Fault> {
        let mut checked = 0;
        while checked < len {
            let at = va.wrapping_add(checked as u64);
            let range = self.locate_near(at, access, hint)?;
            checked += (range.end - at) as usize;
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

    /// Copies bytes out, across adjacent ranges and at any alignment.
    pub fn read_bytes(&self, va: u64, destination: &mut [u8], access: Rights) -> Result<(), Fault> {
        let mut done = 0;
        while done < destination.len() {
            let at = va.wrapping_add(done as u64);
            let range = self.locate(at, access)?;
            let count = ((range.end - at) as usize).min(destination.len() - done);
            range.view.read_bytes((at - range.va) as usize, &mut destination[done..done + count]);
            done += count;
        }
        Ok(())
    }

    /// Copies bytes in, likewise. Nothing is written if any byte cannot be.
    pub fn write_bytes(&self, va: u64, source: &[u8]) -> Result<(), Fault> {
        self.covers(va, source.len(), Rights::WRITE, &mut 0)?;
        let mut done = 0;
        while done < source.len() {
            let at = va.wrapping_add(done as u64);
            let range = self.locate(at, Rights::WRITE)?;
            let count = ((range.end - at) as usize).min(source.len() - done);
            range.view.write_bytes((at - range.va) as usize, &source[done..done + count]);
            done += count;
        }
        Ok(())
    }

    /// The deliberate defects of the range that contains `va`.
    pub(crate) fn defects(&self, va: u64) -> Defects {
        self.find_near(va, &mut 0).map_or(Defects::empty(), |range| range.backing.defects)
    }
}

impl AddressSpace {
    /// The id, never reused in a process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of changes so far.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The current ranges.
    pub fn snapshot(&self) -> Arc<PageTable> {
        // The table is replaced by one assignment, so it is consistent after any panic.
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Like [`PageTable::translate`], but returns a view to keep.
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

    /// Maps the first `len` bytes of a backing at `va`. Both are whole pages.
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

    /// Removes the range that [`AddressSpace::map`] made with this address and length. Older snapshots can still
    /// access it.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use zrt_kmd::{MemoryFile, Protection};

    const PAGE: u64 = GPU_PAGE_BYTES;

    pub(in crate::memory) fn mapping(pages: u64) -> Arc<Mapping> {
        let len = (pages * PAGE) as usize;
        Arc::new(MemoryFile::new("test", len).unwrap().map(0, len, Protection::ReadWrite, None).unwrap())
    }

    /// Two readable and writable pages, and one readable and executable page.
    pub(in crate::memory) fn space() -> AddressSpace {
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
        let overlap =
            |va, len, other| Err(MapError::Overlap { va: GpuVa(va), len: ByteLen(len), other: GpuVa(other) });
        let not_pages = |va, len| Err(MapError::NotPages { va: GpuVa(va), len: ByteLen(len) });
        for (va, len, other) in [
            (0x10_1000, PAGE, 0x10_0000),
            (0xf_f000, 2 * PAGE, 0x10_0000),
            (0xf_f000, 4 * PAGE, 0x10_0000),
            (0x10_0000, PAGE, 0x10_0000),
            (0x10_2000, PAGE, 0x10_2000),
            (0x10_1000, 3 * PAGE, 0x10_0000),
        ] {
            assert_eq!(map(va, len, 4), overlap(va, len, other));
        }
        let (len, backing) = (ByteLen(2 * PAGE), ByteLen(PAGE));
        assert_eq!(map(0x20_0000, 2 * PAGE, 1), Err(MapError::ShortBacking { len, backing }));
        assert_eq!(map(0x20_0001, PAGE, 1), not_pages(0x20_0001, PAGE));
        assert_eq!(map(0x20_0000, PAGE - 1, 1), not_pages(0x20_0000, PAGE - 1));
        assert_eq!(map(0x20_0000, 0, 1), not_pages(0x20_0000, 0));
        assert_eq!(map(!(PAGE - 1), PAGE, 1), not_pages(!(PAGE - 1), PAGE), "the end wraps");
        for (va, len) in [(0x10_0000, PAGE), (0x10_1000, PAGE), (0x20_0000, PAGE)] {
            let (va, len) = (GpuVa(va), ByteLen(len));
            assert_eq!(space.unmap(va, len), Err(MapError::NoSuchRange { va, len }));
        }
        assert_eq!(
            (space.generation(), space.snapshot().generation()),
            (2, 2),
            "what is refused is no change"
        );
        assert_eq!(space.unmap(GpuVa(0x10_0000), ByteLen(2 * PAGE)), Ok(()));
        assert!(space.translate(0x10_0000, 1, Rights::READ).is_err());
        // On both sides of the range that is left, of a longer backing, and the last page of all.
        assert_eq!(map(0x10_1000, PAGE, 2), Ok(()));
        assert_eq!(map(0x10_3000, PAGE, 1), Ok(()));
        assert_eq!(map(0x10_0000, PAGE, 1), Ok(()));
        assert_eq!(map(!(2 * PAGE - 1), PAGE, 1), Ok(()));
        assert_eq!((space.generation(), space.snapshot().generation()), (7, 7));
    }

    #[test]
    fn refusals_say_what_they_are_about() {
        let fault = |cause| Fault { va: 0x1234_5fff, cause, access: Rights::READ };
        let texts =
            [Cause::NotPresent, Cause::ReadOnly, Cause::NoExecute].map(|cause| fault(cause).to_string());
        let expected = ["not mapped", "mapped read-only", "not mapped executable"];
        assert_eq!(texts, expected.map(|cause| format!("page fault at 0x12345fff: {cause}")));
        let pages = [0, 0xfff, 0x1000, 0x1234_5fff, u64::MAX]
            .map(|va| Fault { va, ..fault(Cause::ReadOnly) }.page_va());
        assert_eq!(pages, [0, 0, 0x1000, 0x1234_5000, 0xffff_ffff_ffff_f000]);
    }

    #[test]
    fn the_page_at_address_0_is_one_like_all_others() {
        let space = AddressSpace::default();
        let both = Rights::READ | Rights::WRITE;
        for (page, count) in [(0, 2), (2, 1)] {
            space.map(GpuVa(page * PAGE), ByteLen(count * PAGE), both, mapping(count)).unwrap();
        }
        let table = space.snapshot();
        for at in [0, 1, PAGE - 9, 2 * PAGE - 9, 3 * PAGE - 23] {
            let source: [u8; 23] = std::array::from_fn(|index| at as u8 ^ (index as u8 + 1) << 3);
            let mut back = [0xEE; 23];
            assert_eq!(table.write_bytes(at, &source), Ok(()));
            assert_eq!((table.read_bytes(at, &mut back, Rights::READ), back), (Ok(()), source), "{at:#x}");
        }
        let all = 3 * PAGE as usize;
        let refused = Fault { va: 3 * PAGE, cause: Cause::NotPresent, access: both };
        assert_eq!(table.covers(0, all, both, &mut 0), Ok(()));
        assert_eq!(table.covers(0, all + 1, both, &mut 0), Err(refused));
    }

    #[test]
    fn a_range_has_the_defects_that_it_was_mapped_with() {
        let space = AddressSpace::default();
        let others = Defects::LOSES_ATOMICS | Defects::ZERO_TO_SCALARS;
        for (page, defects) in [(1, Defects::HIDES_CODE), (2, Defects::empty()), (4, others)] {
            let (memory_type, mapping) = (MemoryType::default(), mapping(1));
            let backing = Backing { rights: Rights::READ, memory_type, mapping, fill: None, defects };
            space.map_backing(GpuVa(page * PAGE), ByteLen(PAGE), backing).unwrap();
        }
        let table = space.snapshot();
        let found = [1, 2, 3, 4, 5].map(|page| [0, PAGE - 1].map(|at| table.defects(page * PAGE + at)));
        let none = Defects::empty();
        assert_eq!(found, [Defects::HIDES_CODE, none, none, others, none].map(|defects| [defects; 2]));
    }

    #[test]
    fn only_vram_that_is_not_uncached_is_cached() {
        let of = |is_local, is_uncached| MemoryType { is_local, is_uncached }.is_cached_vram();
        assert_eq!(
            [of(false, false), of(false, true), of(true, false), of(true, true)],
            [false, false, true, false]
        );
    }
}
