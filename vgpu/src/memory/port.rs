//! One worker's access to memory.
//!
//! Contract: a [`MemoryPort`] holds a snapshot of one address space and caches the ranges used last. Its fast path
//! returns the host memory of a range; anything that the fast path cannot do, and every watched access, goes
//! through the copying functions.
//! Cost: a wave's access costs one range check; a refresh reads the generation (one atomic load).

use super::page_table::{AddressSpace, Cause, Fault, PageTable, Rights};
use super::watcher::Watched;
use std::sync::Arc;
use zrt_mem::SharedView;

/// Ranges that a port caches.
const PORT_ENTRIES: usize = 4;

/// One worker's access to memory: a snapshot and the ranges used last.
#[derive(Debug, Default)]
pub struct MemoryPort {
    table: Option<Arc<PageTable>>,
    /// Address space of the snapshot; 0 before the first.
    space_id: u64,
    entries: [Option<Entry>; PORT_ENTRIES],
    /// The entry to replace next.
    victim: usize,
    /// The watcher of every access, if there is one.
    pub(super) watched: Watched,
}

/// A cached range.
#[derive(Debug)]
struct Entry {
    va: u64,
    len: u64,
    rights: Rights,
    view: SharedView,
}

impl MemoryPort {
    /// Takes the newest snapshot if the port has an older one or one of another space.
    #[inline]
    pub fn refresh(&mut self, space: &AddressSpace) {
        if self.space_id != space.id() || self.table().generation() != space.generation() {
            self.table = Some(space.snapshot());
            self.space_id = space.id();
            self.entries = Default::default();
        }
    }

    /// The snapshot.
    pub fn table(&self) -> &PageTable {
        self.table.as_deref().unwrap_or_else(|| PageTable::empty())
    }

    /// Address space of the snapshot; 0 before the first.
    pub fn space_id(&self) -> u64 {
        self.space_id
    }

    /// Releases the snapshot, and so its mappings.
    pub fn release(&mut self) {
        *self = MemoryPort::default();
    }

    /// The snapshot, and the watcher.
    pub(super) fn split(&mut self) -> (&PageTable, &mut Watched) {
        (self.table.as_deref().unwrap_or_else(|| PageTable::empty()), &mut self.watched)
    }

    /// Forgets the ranges, not the snapshot.
    pub(super) fn forget_ranges(&mut self) {
        self.entries = Default::default();
    }

    /// The range that contains `first..=last` and permits `access`, if there is one: its view and the offset of
    /// `first`.
    #[inline(always)]
    pub fn range(&mut self, first: u64, last: u64, access: Rights) -> Option<(&SharedView, u64)> {
        let (at, offset) = self.place(first, last, access)?;
        Some((self.placed(at)?, offset))
    }

    /// The same with the index in the port instead of the view, for [`MemoryPort::placed`]; it is valid until
    /// another range is looked up.
    #[inline(always)]
    pub(crate) fn place(&mut self, first: u64, last: u64, access: Rights) -> Option<(usize, u64)> {
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            // Addresses below the entry wrap to a large offset.
            let offset = first.wrapping_sub(entry.va);
            if offset < entry.len && last.wrapping_sub(entry.va) < entry.len && entry.rights.contains(access)
            {
                return Some((at, offset));
            }
        }
        self.find(first, last, access)
    }

    /// The view of the range at an index that [`MemoryPort::place`] returned.
    #[inline(always)]
    pub(crate) fn placed(&self, at: usize) -> Option<&SharedView> {
        self.entries.get(at)?.as_ref().map(|entry| &entry.view)
    }

    /// The range that contains `va` and permits `access`, if there is one: its view, its first address, its length.
    #[inline(always)]
    pub fn around(&mut self, va: u64, access: Rights) -> Option<(&SharedView, u64, u64)> {
        let (at, _) = self.place(va, va, access)?;
        let entry = self.entries.get(at)?.as_ref()?;
        Some((&entry.view, entry.va, entry.len))
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, first: u64, last: u64, access: Rights) -> Option<(usize, u64)> {
        if self.watched.is_on() {
            return None;
        }
        let range = self.table().locate(first, access).ok()?;
        // Deliberate defects are handled on the slow path only, so that the fast one needs no test for them.
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

    /// Host memory of `len` bytes at `va` in one range, or the fault.
    #[inline]
    pub fn translate(&mut self, va: u64, len: usize, access: Rights) -> Result<(&SharedView, usize), Fault> {
        let refused = Fault { va, cause: Cause::NotPresent, access };
        let last = va.checked_add(len as u64 - 1).ok_or(refused)?;
        match self.place(va, last, access) {
            Some((at, offset)) => Ok((self.placed(at).ok_or(refused)?, offset as usize)),
            None => self.table().translate(va, len, access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_table::tests::{mapping, space};
    use super::super::{Cause, GPU_PAGE_BYTES};
    use super::*;
    use zrt_mem::{ByteLen, GpuVa};

    const PAGE: u64 = GPU_PAGE_BYTES;

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
