//! The heaps of a device and a planner that lays regions into one allocation.
//!
//! Contract: a [`RegionPlanner`] only computes offsets; it owns no memory. Lengths and offsets are bytes; every
//! region starts on [`REGION_ALIGNMENT`], the GL2 line of gfx12 (hardware reference §1.4), so no two regions share a
//! line. Arithmetic is checked.

use crate::address::ByteLen;
use core::fmt;

/// Regions start on a multiple of this, in bytes: one GL2 line of gfx12 (hardware reference §1.4).
pub const REGION_ALIGNMENT: u64 = 256;

/// Where an allocation lives and who can reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Heap {
    /// VRAM. The host may have no mapping of it.
    DeviceLocal,
    /// VRAM through the BAR, or system memory if the BAR is small. The host reads and writes it in place, between
    /// dispatches.
    HostVisible,
    /// The same, but not cached by the GPU: for what the host writes, or waits for, while kernels run.
    HostShared,
    /// System memory that the device reaches over the bus.
    Host,
    /// The same, and GL2 keeps what it has read of it: for what the host writes before the kernels that read it start.
    HostCached,
}

impl Heap {
    /// All heaps, the card's memory first.
    pub const ALL: [Heap; 5] =
        [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared, Heap::Host, Heap::HostCached];

    /// True for VRAM, where the BAR is large.
    pub const fn is_vram(self) -> bool {
        matches!(self, Heap::DeviceLocal | Heap::HostVisible | Heap::HostShared)
    }

    /// Its name in plans and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Heap::DeviceLocal => "device_local",
            Heap::HostVisible => "host_visible",
            Heap::HostShared => "host_shared",
            Heap::Host => "host",
            Heap::HostCached => "host_cached",
        }
    }
}

impl fmt::Display for Heap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A part of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Offset from the allocation's start.
    pub offset: ByteLen,
    /// Length.
    pub len: ByteLen,
}

/// Lays out regions one after another in an allocation that is made later, with the planned length.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionPlanner {
    used: ByteLen,
}

impl RegionPlanner {
    /// An empty allocation.
    pub const fn new() -> RegionPlanner {
        RegionPlanner { used: ByteLen(0) }
    }

    /// Appends a region of `len` bytes; `None` if the total overflows 64 bits.
    pub fn push(&mut self, len: ByteLen) -> Option<Region> {
        let offset = self.used.align_up(REGION_ALIGNMENT)?;
        self.used = ByteLen(offset.0.checked_add(len.0)?);
        Some(Region { offset, len })
    }

    /// Length of the allocation that holds everything pushed so far, a multiple of [`REGION_ALIGNMENT`].
    pub fn len(&self) -> Option<ByteLen> {
        self.used.align_up(REGION_ALIGNMENT)
    }

    /// True if nothing was pushed.
    pub const fn is_empty(&self) -> bool {
        self.used.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_aligned_and_disjoint() {
        let mut planner = RegionPlanner::new();
        let first = planner.push(ByteLen(1)).expect("small");
        let second = planner.push(ByteLen(300)).expect("small");
        assert_eq!((first.offset.0, second.offset.0), (0, 256));
        assert_eq!(planner.len(), Some(ByteLen(768)));
        assert_eq!(planner.push(ByteLen(u64::MAX)), None);
        assert!(!planner.is_empty() && RegionPlanner::new().is_empty());
    }

    #[test]
    fn memory_of_the_card_is_told_from_that_of_the_host() {
        let vram = Heap::ALL.into_iter().filter(|heap| heap.is_vram()).map(Heap::name);
        assert!(vram.eq(["device_local", "host_visible", "host_shared"]));
    }

    #[test]
    fn heaps_are_told_apart_by_their_names() {
        let mut names = Heap::ALL.map(|heap| std::format!("{heap}"));
        assert_eq!(names, Heap::ALL.map(Heap::name));
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(names.iter().all(|name| name.ends_with("_local") || name.starts_with("host")), "{names:?}");
    }
}
