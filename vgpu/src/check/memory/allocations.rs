//! Named allocations: what a kernel may access; everything else is a red zone.
//!
//! Contract: until an allocation is named, all mapped memory may be accessed. From then on, an access must lie in
//! one allocation, and a write in a writable one; otherwise it is a finding. Cost: the last allocation is cached;
//! else a binary search.

use std::ops::Range;

use super::level_two::PAGE_BYTES;

/// The use of a named allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationUse {
    /// Readable and writable; counts as written.
    Written,
    /// Readable and writable; holds zeros that count as unwritten.
    Unwritten,
    /// Readable only.
    ReadOnly,
    /// Private memory: accessible through its aperture, but not by a global address.
    Private,
}

/// One allocation.
#[derive(Clone, Debug)]
struct Allocation {
    va: u64,
    end: u64,
    usage: AllocationUse,
    name: String,
    /// Bytes that lanes have loaded.
    read_bytes: u64,
}

impl Allocation {
    #[inline]
    fn holds(&self, va: u64, len: u64) -> bool {
        va >= self.va && va < self.end && len <= self.end - va
    }

    #[inline]
    fn allows(&self, va: u64, len: u64, is_write: bool) -> bool {
        self.holds(va, len)
            && match self.usage {
                AllocationUse::Written | AllocationUse::Unwritten => true,
                AllocationUse::ReadOnly => !is_write,
                AllocationUse::Private => false,
            }
    }
}

/// All named allocations of a device.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    /// Sorted by address.
    list: Vec<Allocation>,
    last: usize,
    /// True once any has been named, whether or not it still exists.
    is_restricted: bool,
}

impl Allocations {
    pub(super) fn add(&mut self, name: &str, va: u64, len: u64, usage: AllocationUse) {
        let at = self.list.partition_point(|allocation| allocation.va <= va);
        self.is_restricted = true;
        let end = va.saturating_add(len);
        self.list.insert(at, Allocation { va, end, usage, name: name.to_owned(), read_bytes: 0 });
    }

    /// Removes the allocations in a range.
    pub(super) fn remove(&mut self, va: u64, len: u64) {
        let end = va.saturating_add(len);
        self.list.retain(|allocation| !(va..end).contains(&allocation.va));
        self.last = 0;
    }

    /// True if the bytes may be read, or written. Reads are counted.
    #[inline]
    pub(super) fn allow(&mut self, va: u64, len: u64, is_write: bool) -> bool {
        let is_allowed = self.list.get(self.last).is_some_and(|one| one.allows(va, len, is_write))
            || self.allow_elsewhere(va, len, is_write);
        if let (true, false, Some(allocation)) = (is_allowed, is_write, self.list.get_mut(self.last)) {
            allocation.read_bytes += len;
        }
        is_allowed
    }

    /// Bytes that lanes have loaded from each, by name.
    pub(super) fn read_bytes(&self) -> Vec<(String, u64)> {
        self.list.iter().map(|one| (one.name.clone(), one.read_bytes)).collect()
    }

    #[inline(never)]
    fn allow_elsewhere(&mut self, va: u64, len: u64, is_write: bool) -> bool {
        if !self.is_restricted {
            return true;
        }
        let after = self.list.partition_point(|allocation| allocation.va <= va);
        match after.checked_sub(1) {
            Some(index) if self.list[index].allows(va, len, is_write) => {
                self.last = index;
                true
            }
            _ => false,
        }
    }

    /// True if every page of the bytes contains a byte of an allocation: then the owner of the allocation has
    /// mapped the page.
    pub(super) fn hold_pages_of(&self, va: u64, len: u64) -> bool {
        let pages = va / PAGE_BYTES..=va.saturating_add(len.max(1) - 1) / PAGE_BYTES;
        let holds = |page: u64| {
            let (first, last) = (page * PAGE_BYTES, page * PAGE_BYTES + (PAGE_BYTES - 1));
            self.list.iter().any(|allocation| allocation.va <= last && allocation.end > first)
        };
        !self.is_restricted || pages.into_iter().all(holds)
    }

    /// The use of the allocation that contains the bytes, whether or not it allows the access.
    pub(super) fn use_of(&self, va: u64, len: u64) -> Option<AllocationUse> {
        self.list.iter().find(|allocation| allocation.holds(va, len)).map(|allocation| allocation.usage)
    }

    /// The bytes of a page that are unwritten according to their allocation.
    pub(super) fn unwritten_of(&self, page_va: u64) -> impl Iterator<Item = Range<u64>> {
        let page = page_va..page_va + PAGE_BYTES;
        let unwritten = self.list.iter().filter(|allocation| allocation.usage == AllocationUse::Unwritten);
        unwritten
            .map(move |allocation| allocation.va.max(page.start)..allocation.end.min(page.end))
            .filter(|range| !range.is_empty())
    }

    /// The position of the bytes relative to the nearest allocation.
    pub(super) fn describe(&self, va: u64, len: u64) -> String {
        let distance = |allocation: &Allocation| {
            allocation.va.saturating_sub(va).max(va.saturating_add(1).saturating_sub(allocation.end))
        };
        let Some(nearest) = self.list.iter().min_by_key(|allocation| distance(allocation)) else {
            return String::new();
        };
        let size = nearest.end - nearest.va;
        let place = if va < nearest.va {
            format!("{} bytes before", nearest.va - va)
        } else if va >= nearest.end {
            format!("{} bytes past the end of", va - nearest.end)
        } else if nearest.holds(va, len) {
            format!("{} bytes into", va - nearest.va)
        } else {
            format!("{} bytes across the end of", va.saturating_add(len) - nearest.end)
        };
        format!("{len} bytes, {place} {} ({size} bytes at {:#x})", nearest.name, nearest.va)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_allocation_is_named() {
        let mut allocations = Allocations::default();
        assert!(allocations.allow(5, 4, true), "nothing is named");
        allocations.add("y", 0x3000, 64, AllocationUse::Written);
        allocations.add("x", 0x1000, 64, AllocationUse::Written);
        for (va, len) in [(0x1000, 64), (0x303c, 4), (0x1010, 16)] {
            assert!(allocations.allow(va, len, true), "{va:#x}");
        }
        for (va, len, place) in [
            (0x1040, 4, "4 bytes, 0 bytes past the end of x (64 bytes at 0x1000)"),
            (0x103c, 8, "8 bytes, 4 bytes across the end of x (64 bytes at 0x1000)"),
            (0x2ff0, 4, "4 bytes, 16 bytes before y (64 bytes at 0x3000)"),
            (0x10, 1, "1 bytes, 4080 bytes before x (64 bytes at 0x1000)"),
        ] {
            assert!(!allocations.allow(va, len, false) && allocations.use_of(va, len).is_none());
            assert_eq!(allocations.describe(va, len), place);
        }
        assert_eq!(
            allocations.read_bytes(),
            [("x".to_owned(), 0), ("y".to_owned(), 0)],
            "writes do not count"
        );
        assert!(allocations.allow(0x3000, 16, false) && allocations.allow(0x3010, 16, false));
        assert_eq!(allocations.read_bytes()[1].1, 32);
        allocations.remove(0x1000, 0x1000);
        assert!(!allocations.allow(0x1000, 4, false) && allocations.allow(0x3000, 4, false));
        allocations.remove(0x3000, 0x1000);
        assert!(!allocations.allow(0x3000, 4, false), "none is left: nothing may be touched");
    }

    #[test]
    fn pages_are_held_by_any_byte_of_theirs() {
        let mut allocations = Allocations::default();
        assert!(allocations.hold_pages_of(0x9000, 4096), "nothing is named");
        allocations.add("x", 0x1040, 64, AllocationUse::ReadOnly);
        allocations.add("y", 0x2000, 0x1001, AllocationUse::Written);
        for (va, len) in [(0x1000, 128), (0x1f80, 256), (0x3f80, 128), (0x1000, 0x3000)] {
            assert!(allocations.hold_pages_of(va, len), "{va:#x}");
        }
        for (va, len) in [(0xf80, 256), (0x3f80, 256), (0x4000, 128), (u64::MAX - 127, 4096)] {
            assert!(!allocations.hold_pages_of(va, len), "{va:#x}");
        }
    }

    #[test]
    fn what_is_for_reads_is_not_written() {
        let mut allocations = Allocations::default();
        allocations.add("code", 0x1000, 64, AllocationUse::ReadOnly);
        allocations.add("x", 0x1040, 64, AllocationUse::Written);
        for va in [0x1000, 0x103c] {
            assert!(allocations.allow(va, 4, false) && !allocations.allow(va, 4, true), "{va:#x}");
            assert_eq!(allocations.use_of(va, 4), Some(AllocationUse::ReadOnly));
        }
        assert!(allocations.allow(0x1040, 4, true));
        assert_eq!(allocations.describe(0x1004, 4), "4 bytes, 4 bytes into code (64 bytes at 0x1000)");
    }

    /// x ends at 0x1040, y begins at 0x1060, z is a page.
    #[test]
    fn distances_are_to_the_nearest_byte() {
        let mut allocations = Allocations::default();
        allocations.add("x", 0x1000, 64, AllocationUse::Written);
        allocations.add("y", 0x1060, 32, AllocationUse::Written);
        allocations.add("z", 0x5000, 0x1000, AllocationUse::Written);
        for (va, len, place) in [
            (0x104f, 1, "1 bytes, 15 bytes past the end of x (64 bytes at 0x1000)"),
            (0x1050, 1, "1 bytes, 16 bytes before y (32 bytes at 0x1060)"),
            (0x1090, 1, "1 bytes, 16 bytes past the end of y (32 bytes at 0x1060)"),
            (0x1000, 80, "80 bytes, 16 bytes across the end of x (64 bytes at 0x1000)"),
            (0x1000, 64, "64 bytes, 0 bytes into x (64 bytes at 0x1000)"),
            (0x4fff, 4, "4 bytes, 1 bytes before z (4096 bytes at 0x5000)"),
            (0x6000, 4, "4 bytes, 0 bytes past the end of z (4096 bytes at 0x5000)"),
        ] {
            assert_eq!(allocations.describe(va, len), place);
        }
        assert_eq!(allocations.use_of(0x1040, 0), None, "its end is not in it");
        assert!(allocations.hold_pages_of(0x5f80, 128) && !allocations.hold_pages_of(0x6000, 128));
        assert!(allocations.hold_pages_of(0x5000, 128) && !allocations.hold_pages_of(0x4f80, 128));
    }

    #[test]
    fn what_is_unwritten_is_cut_to_its_page() {
        let mut allocations = Allocations::default();
        allocations.add("x", 0x1040, 64, AllocationUse::Unwritten);
        allocations.add("y", 0x1f00, 0x1200, AllocationUse::Unwritten);
        allocations.add("z", 0x3200, 64, AllocationUse::Written);
        let of = |page_va| allocations.unwritten_of(page_va).collect::<Vec<_>>();
        assert_eq!(of(0x1000), [0x1040..0x1080, 0x1f00..0x2000]);
        assert_eq!(of(0x2000).first(), Some(&(0x2000..0x3000)));
        assert_eq!(of(0x3000).first(), Some(&(0x3000..0x3100)));
        assert_eq!(of(0x4000), []);
        assert_eq!(of(0), []);
    }
}
