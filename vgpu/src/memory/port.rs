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
    use proptest::collection::vec;
    use proptest::prelude::*;
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
    fn a_port_goes_from_one_space_to_another_of_the_same_age() {
        let spaces = [space(), space()];
        assert_eq!(spaces[0].generation(), spaces[1].generation());
        let mut port = MemoryPort::default();
        for (value, space) in (1..).zip(&spaces) {
            space.translate(0x10_0000, 4, Rights::WRITE).unwrap().0.store_u32(0, value);
            port.refresh(space);
            let (view, offset) = port.range(0x10_0000, 0x10_0003, Rights::READ).unwrap();
            assert_eq!((view.load_u32(offset as usize), port.space_id), (value, space.id()));
        }
    }

    /// Ranges are named by their pages.
    #[test]
    fn a_port_keeps_the_four_ranges_that_it_found_last() {
        let space = AddressSpace::default();
        for page in 0..6 {
            space.map(GpuVa(0x10_0000 + page * PAGE), ByteLen(PAGE), Rights::READ, mapping(1)).unwrap();
        }
        let mut port = MemoryPort::default();
        port.refresh(&space);
        let mut kept_after = |page: u64| {
            let va = 0x10_0000 + page * PAGE;
            assert!(port.range(va, va + PAGE - 1, Rights::READ).is_some());
            port.entries.each_ref().map(|entry| entry.as_ref().map(|entry| (entry.va - 0x10_0000) / PAGE))
        };
        let first = [Some(0), None, None, None];
        assert_eq!([kept_after(0), kept_after(0)], [first; 2], "what is known is not looked up again");
        assert_eq!(kept_after(1), [Some(0), Some(1), None, None]);
        assert_eq!(kept_after(2), [Some(0), Some(1), Some(2), None]);
        for page in [3, 0, 1, 2, 3] {
            assert_eq!(kept_after(page), [0, 1, 2, 3].map(Some));
        }
        assert_eq!(kept_after(4), [4, 1, 2, 3].map(Some));
        assert_eq!(kept_after(5), [4, 5, 2, 3].map(Some));
        assert_eq!(kept_after(0), [4, 5, 0, 3].map(Some));
    }

    #[test]
    fn a_port_tells_where_a_range_begins_and_what_it_refuses() {
        let mut port = MemoryPort::default();
        assert_eq!((port.space_id(), port.table().generation()), (0, 0));
        let space = space();
        port.refresh(&space);
        assert_eq!((port.space_id(), port.table().generation()), (space.id(), 2));
        for va in [0x10_0000, 0x10_0abc, 0x10_1fff] {
            let (view, first, len) = port.around(va, Rights::READ).unwrap();
            assert_eq!((view.len(), first, len), (0x2000, 0x10_0000, 0x2000));
        }
        assert!(
            port.around(0x10_2000, Rights::WRITE).is_none() && port.around(0x10_3000, Rights::READ).is_none()
        );
        let mut translate = |va, len, access| port.translate(va, len, access).map(|(_, offset)| offset);
        let fault = |va, cause, access| Err(Fault { va, cause, access });
        assert_eq!(translate(0x10_1ffc, 4, Rights::READ), Ok(0x1ffc));
        assert_eq!(translate(0x10_1ffd, 4, Rights::READ), fault(0x10_2000, Cause::NotPresent, Rights::READ));
        assert_eq!(translate(0x10_2ffe, 2, Rights::EXECUTE), Ok(0xffe));
        assert_eq!(translate(0x10_2ffe, 2, Rights::WRITE), fault(0x10_2ffe, Cause::ReadOnly, Rights::WRITE));
        assert_eq!(translate(u64::MAX, 2, Rights::READ), fault(u64::MAX, Cause::NotPresent, Rights::READ));
        port.release();
        assert_eq!((port.space_id(), port.table().generation()), (0, 0));
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

    /// Rights by page from [`FIRST`]. Ranges are of one page, but those of pages 1 and 2, which are one.
    const RIGHTS: [Option<Rights>; 8] = {
        const BOTH: Option<Rights> = Some(Rights::READ.union(Rights::WRITE));
        const CODE: Option<Rights> = Some(Rights::READ.union(Rights::EXECUTE));
        [BOTH, BOTH, BOTH, CODE, None, BOTH, BOTH, Some(Rights::WRITE)]
    };
    const FIRST: u64 = 0x10_0000;

    fn eight_pages() -> AddressSpace {
        let space = AddressSpace::default();
        for (page, count) in [(6, 1), (0, 1), (1, 2), (5, 1), (3, 1), (7, 1)] {
            let va = GpuVa(FIRST + page as u64 * PAGE);
            space.map(va, ByteLen(count * PAGE), RIGHTS[page].unwrap(), mapping(count)).unwrap();
        }
        space
    }

    /// The first byte of a range of addresses that cannot be accessed, looked for one by one.
    fn first_refused(va: u64, len: usize, access: Rights) -> Result<(), Fault> {
        let refused = |va: u64| {
            let page = va.checked_sub(FIRST).map(|offset| (offset / PAGE) as usize);
            let cause = match page.and_then(|page| RIGHTS.get(page).copied().flatten()) {
                Some(rights) if rights.contains(access) => return None,
                Some(_) if access == Rights::EXECUTE => Cause::NoExecute,
                Some(_) if access == Rights::WRITE => Cause::ReadOnly,
                _ => Cause::NotPresent,
            };
            Some(Fault { va, cause, access })
        };
        (va..va + len as u64).find_map(refused).map_or(Ok(()), Err)
    }

    proptest! {
        /// Copies at and across the ends of pages, ranges and of all that is mapped, against one array of bytes.
        #[test]
        fn copies_are_those_of_one_array_of_bytes(
            steps in vec((0..=8u64, -9..9i64, prop_oneof![0..20u64, PAGE - 9..PAGE + 9, 2 * PAGE..3 * PAGE]), 1..6),
        ) {
            let space = eight_pages();
            let (table, mut port) = (space.snapshot(), MemoryPort::default());
            port.refresh(&space);
            let mut bytes = vec![0u8; 8 * PAGE as usize];
            for (step, (page, shift, len)) in steps.into_iter().enumerate() {
                let va = (FIRST + page * PAGE).wrapping_add_signed(shift);
                let len = len as usize;
                let place = |bytes: &[u8]| bytes[(va - FIRST) as usize..][..len].to_vec();
                let source: Vec<u8> = (0..len).map(|at| (at % 251) as u8 ^ (step as u8 + 1) << 4).collect();
                let written = first_refused(va, len, Rights::WRITE);
                let outcome = if step % 2 == 0 { table.write_bytes(va, &source) } else { port.write_bytes(va, &source) };
                prop_assert_eq!(outcome, written);
                if written.is_ok() && len > 0 {
                    bytes[(va - FIRST) as usize..][..len].copy_from_slice(&source);
                }
                let mut back = vec![0xEE; len];
                let expected = first_refused(va, len, Rights::READ);
                prop_assert_eq!(table.read_bytes(va, &mut back, Rights::READ), expected);
                prop_assert!(expected.is_err() || len == 0 || back == place(&bytes));
                prop_assert_eq!(port.read_bytes(va, &mut back, Rights::READ), expected);
                prop_assert!(expected.is_err() || len == 0 || back == place(&bytes));
                for access in [Rights::READ, Rights::WRITE, Rights::EXECUTE] {
                    prop_assert_eq!(table.covers(va, len, access, &mut (step % 3)), first_refused(va, len, access));
                }
            }
        }
    }
}
