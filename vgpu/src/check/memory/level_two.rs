//! GL2 as a separate copy: what the GPU has written or loaded, apart from what the host sees.
//!
//! Contract: stores stay in the copy, byte by byte, until a write-back. Loads fill whole lines, which stay until an
//! invalidation, whatever the host writes meanwhile. Lines are never evicted: a program must not depend on luck.
//! The [`MemoryType`] modifies this:
//!
//! * System memory: a load of system scope bypasses the copy and leaves it unchanged; `global_inv scope:SCOPE_SYS`
//!   and packets drop lines.
//! * VRAM: a load of system scope may hit a line like any other, and only packets drop lines. That a wave's load or
//!   invalidation of system scope reaches VRAM behind GL2 follows from the compilers' memory model; no card has
//!   confirmed it.
//! * Uncached: no line and no store is kept. The copy then holds what the device last saw.
//!
//! Cost: a line is read from host memory and compared once per instruction that loads from it, as a whole if the
//! two are equal.

use super::cells::byte_bits;
use super::hash::FastMap;
use super::readers::WHOLE;
use crate::memory::{HostMemory, LINE_DWORDS, MemoryType};

/// Bytes of a page of the checker.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Dwords of a page.
pub(super) const PAGE_DWORDS: usize = 1024;
/// Bytes that a load brings in: one line of GL2 (hardware reference §1.4).
pub(super) const LINE_BYTES: u64 = 4 * LINE_DWORDS as u64;
/// Lines of a page.
const PAGE_LINES: usize = PAGE_DWORDS / LINE_DWORDS;

/// Invalidations of GL2 so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Invalidations {
    /// By packets and waves.
    pub(super) all: u32,
    /// By packets alone.
    pub(super) by_packets: u32,
}

/// One page of GL2.
#[derive(Debug)]
pub(super) struct CachePage {
    data: Box<[u32; PAGE_DWORDS]>,
    /// Dwords in the cache; one word per line. Partly dirty dwords are not included.
    valid: [u64; PAGE_LINES],
    /// Dwords that are no longer in the cache, or never are; `data` holds them as last seen, or as the host is known to
    /// have left them.
    known: [u64; PAGE_LINES],
    /// Logical time of each line's last comparison with host memory.
    compared: [u32; PAGE_LINES],
    /// Bytes that the host cannot see.
    dirty: Box<[u8; PAGE_DWORDS]>,
    /// Lines with such bytes.
    dirty_lines: u32,
    /// Invalidations already applied to this page.
    generation: u32,
    memory_type: MemoryType,
}

/// The result of comparing a line with host memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineState {
    /// Dwords that the host has replaced since they were cached.
    pub(super) replaced: u64,
    /// Dwords seen before, and not cached since, that the host has replaced.
    pub(super) changed: u64,
    /// Logical time of the previous comparison: the host's writes came later.
    pub(super) compared_before: u32,
}

impl CachePage {
    /// A page about which nothing is known.
    pub(super) fn new(memory_type: MemoryType) -> CachePage {
        CachePage {
            data: Box::new([0; PAGE_DWORDS]),
            valid: [0; PAGE_LINES],
            known: [0; PAGE_LINES],
            compared: [0; PAGE_LINES],
            dirty: Box::new([0; PAGE_DWORDS]),
            dirty_lines: 0,
            generation: 0,
            memory_type,
        }
    }

    /// How the page is mapped.
    #[inline]
    pub(super) fn memory_type(&self) -> MemoryType {
        self.memory_type
    }

    /// Applies the invalidations that have happened since the last call.
    pub(super) fn follow(&mut self, invalidations: Invalidations) {
        let generation = if self.memory_type.is_local { invalidations.by_packets } else { invalidations.all };
        if self.generation != generation {
            self.generation = generation;
            for (known, valid) in self.known.iter_mut().zip(&mut self.valid) {
                *known |= std::mem::take(valid);
            }
        }
    }

    /// The dword as the GPU sees it; its line must have been brought in.
    #[inline]
    pub(super) fn dword(&self, index: usize) -> u32 {
        self.data[index]
    }

    /// Several dwords of one line, likewise.
    #[inline]
    pub(super) fn dwords(&self, indices: std::ops::Range<usize>) -> &[u32] {
        &self.data[indices]
    }

    /// Brings in the line of dword `index` at logical time `time`, and compares it with host memory. `old` receives
    /// the previous contents if any were known and have changed.
    pub(super) fn bring_in(
        &mut self,
        page_va: u64,
        index: usize,
        time: u32,
        host: &mut dyn HostMemory,
        old: &mut [u32; LINE_DWORDS],
    ) -> LineState {
        let line = index / LINE_DWORDS;
        let first = line * LINE_DWORDS;
        let mut words = [0; LINE_DWORDS];
        host.read_line(page_va + 4 * first as u64, &mut words);
        let data = &mut self.data[first..first + LINE_DWORDS];
        if self.dirty_lines >> line & 1 != 0 {
            let dirty = &self.dirty[first..first + LINE_DWORDS];
            for ((word, data), dirty) in words.iter_mut().zip(&*data).zip(dirty) {
                let dirty = byte_bits(*dirty);
                *word = *data & dirty | *word & !dirty;
            }
        }
        let compared_before = std::mem::replace(&mut self.compared[line], time);
        let mut state = LineState { compared_before, ..LineState::default() };
        let (valid, known) = (self.valid[line], self.known[line]);
        self.valid[line] = if self.memory_type.is_uncached { 0 } else { u64::MAX };
        self.known[line] = u64::MAX;
        if *data == words {
            return state;
        }
        for (offset, (data, merged)) in data.iter_mut().zip(words).enumerate() {
            let bit = 1 << offset;
            old[offset] = *data;
            if merged == *data {
                continue;
            }
            if valid & bit != 0 {
                state.replaced |= bit;
                continue;
            }
            state.changed |= known & bit;
            *data = merged;
        }
        state
    }

    /// The dword as the GPU would see it, without caching anything.
    pub(super) fn peek(&self, page_va: u64, index: usize, host: &mut dyn HostMemory) -> u32 {
        let dirty = self.dirty[index];
        let is_valid = self.valid[index / LINE_DWORDS] >> (index % LINE_DWORDS) & 1 != 0;
        if is_valid || dirty == WHOLE {
            return self.data[index];
        }
        self.uncached(page_va, index, host)
    }

    /// The dword as the host sees it, merged with bytes that the host cannot see yet.
    pub(super) fn uncached(&self, page_va: u64, index: usize, host: &mut dyn HostMemory) -> u32 {
        let mut bytes = [0; 4];
        host.read(page_va + 4 * index as u64, &mut bytes);
        let dirty = byte_bits(self.dirty[index]);
        self.data[index] & dirty | u32::from_le_bytes(bytes) & !dirty
    }

    /// Looks at the dwords that nobody has looked at yet, so that what the host writes from now on differs from them.
    pub(super) fn look(&mut self, page_va: u64, host: &mut dyn HostMemory) {
        let mut words = [0; LINE_DWORDS];
        for line in 0..PAGE_LINES {
            let (first, seen) = (line * LINE_DWORDS, self.valid[line] | self.known[line]);
            if seen == u64::MAX {
                continue;
            }
            host.read_line(page_va + 4 * first as u64, &mut words);
            for (offset, word) in words.iter().enumerate().filter(|(offset, _)| seen >> offset & 1 == 0) {
                let dirty = byte_bits(self.dirty[first + offset]);
                self.data[first + offset] = self.data[first + offset] & dirty | word & !dirty;
            }
            self.known[line] = u64::MAX;
        }
    }

    /// The host has cleared these bytes: what was seen there before, and is not cached, is zero by now, and so is what
    /// nobody has looked at.
    pub(super) fn forget(&mut self, bytes: std::ops::Range<u64>) {
        for index in bytes.start.div_ceil(4) as usize..(bytes.end / 4) as usize {
            self.known[index / LINE_DWORDS] |= 1 << (index % LINE_DWORDS);
        }
        for byte in bytes {
            let (index, mask) = ((byte / 4) as usize, 1 << (byte % 4));
            let is_valid = self.valid[index / LINE_DWORDS] >> (index % LINE_DWORDS) & 1 != 0;
            if !is_valid && self.dirty[index] & mask == 0 {
                self.data[index] &= !byte_bits(mask);
            }
        }
    }

    /// Dwords of the line of dword `index` that have bytes which the host cannot see.
    pub(super) fn dirty_dwords(&self, index: usize) -> impl Iterator<Item = usize> {
        let first = index - LastLine::offset(index);
        (first..first + LINE_DWORDS).filter(|dword| self.dirty[*dword] != 0)
    }

    /// Writes the bytes in `mask` of a dword into the copy. Returns true if the page was clean before.
    pub(super) fn store(&mut self, index: usize, mask: u8, value: u32) -> bool {
        let bits = byte_bits(mask);
        let was_clean = self.dirty_lines == 0;
        self.data[index] = self.data[index] & !bits | value & bits;
        self.dirty[index] |= mask;
        self.dirty_lines |= 1 << (index / LINE_DWORDS);
        was_clean
    }

    /// Writes the bytes in `mask` of a dword through to the host.
    pub(super) fn store_through(
        &mut self,
        page_va: u64,
        index: usize,
        mask: u8,
        value: u32,
        host: &mut dyn HostMemory,
    ) {
        let bits = byte_bits(mask);
        self.data[index] = self.data[index] & !bits | value & bits;
        self.dirty[index] &= !mask;
        write_masked(page_va + 4 * index as u64, mask, value, host);
    }

    /// Writes all dirty bytes to the host. They stay cached.
    pub(super) fn write_back(&mut self, page_va: u64, host: &mut dyn HostMemory) {
        let lines = std::mem::take(&mut self.dirty_lines);
        for line in (0..PAGE_LINES).filter(|line| lines >> line & 1 != 0) {
            for index in line * LINE_DWORDS..(line + 1) * LINE_DWORDS {
                let mask = std::mem::take(&mut self.dirty[index]);
                write_masked(page_va + 4 * index as u64, mask, self.data[index], host);
                if mask == WHOLE {
                    self.valid[line] |= 1 << (index % LINE_DWORDS);
                }
            }
        }
    }

    /// Adds the ranges of dirty dwords to a list of (address, length in bytes), merging neighbours.
    pub(super) fn dirty_ranges(&self, page_va: u64, ranges: &mut Vec<(u64, u64)>) {
        for (index, mask) in self.dirty.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            let first = page_va + 4 * index as u64 + u64::from(mask.trailing_zeros());
            let end = page_va + 4 * index as u64 + u64::from(8 - mask.leading_zeros());
            match ranges.last_mut() {
                Some((va, len)) if *va + *len == first => *len = end - *va,
                _ => ranges.push((first, end - first)),
            }
        }
    }
}

/// Writes the bytes in `mask` of a dword.
fn write_masked(va: u64, mask: u8, value: u32, host: &mut dyn HostMemory) {
    let bytes = value.to_le_bytes();
    if mask == WHOLE {
        host.write(va, &bytes);
        return;
    }
    for (byte, value) in bytes.iter().enumerate().filter(|(byte, _)| mask >> byte & 1 != 0) {
        host.write(va + byte as u64, std::slice::from_ref(value));
    }
}

/// The line brought in last, and the instruction that did so.
#[derive(Debug)]
pub(super) struct LastLine {
    pub(super) stamp: u32,
    pub(super) line: u64,
    pub(super) state: LineState,
    pub(super) old: [u32; LINE_DWORDS],
    /// Index of its page.
    pub(super) page: u32,
    /// A plain load meets nothing in this line: no flag, no write that is unordered or that it may miss, and nothing
    /// that the host has replaced.
    pub(super) is_settled: bool,
}

impl Default for LastLine {
    fn default() -> LastLine {
        LastLine {
            stamp: 0,
            line: 0,
            state: LineState::default(),
            old: [0; LINE_DWORDS],
            page: 0,
            is_settled: false,
        }
    }
}

impl LastLine {
    /// The position of a dword of a page in its line.
    pub(super) fn offset(index: usize) -> usize {
        index % LINE_DWORDS
    }
}

/// Page number to page index.
pub(super) type PageIndices = FastMap<u64, u32>;

#[cfg(test)]
mod tests {
    use super::*;

    const VA: u64 = 0x4000;

    /// One page of memory, by dword.
    struct Host(Vec<u32>);

    impl HostMemory for Host {
        fn read(&mut self, va: u64, destination: &mut [u8]) {
            let bytes: Vec<u8> = self.0.iter().flat_map(|dword| dword.to_le_bytes()).collect();
            let at = (va - VA) as usize;
            destination.copy_from_slice(&bytes[at..at + destination.len()]);
        }

        fn write(&mut self, va: u64, source: &[u8]) {
            for (at, byte) in (va - VA..).zip(source) {
                let shift = 8 * (at % 4);
                let dword = &mut self.0[at as usize / 4];
                *dword = *dword & !(0xff << shift) | u32::from(*byte) << shift;
            }
        }
    }

    /// Dword n holds n.
    fn host() -> Host {
        Host((0..PAGE_DWORDS as u32).collect())
    }

    const SYSTEM: MemoryType = MemoryType { is_local: false, is_uncached: false };
    const VRAM: MemoryType = MemoryType { is_local: true, is_uncached: false };
    const UNCACHED: MemoryType = MemoryType { is_local: false, is_uncached: true };

    fn bring_in(page: &mut CachePage, index: usize, time: u32, host: &mut Host) -> (LineState, u32) {
        let mut old = [0xee; LINE_DWORDS];
        let state = page.bring_in(VA, index, time, host, &mut old);
        (state, old[index % LINE_DWORDS])
    }

    fn bits(state: LineState) -> (u64, u64, u32) {
        (state.replaced, state.changed, state.compared_before)
    }

    /// The second line, and its neighbours, which are not touched.
    #[test]
    fn a_line_is_filled_and_compared_as_a_whole() {
        let (mut page, mut host) = (CachePage::new(SYSTEM), host());
        assert_eq!(bits(bring_in(&mut page, 70, 5, &mut host).0), (0, 0, 0), "nothing was known");
        assert_eq!(page.dwords(62..66), [0, 0, 64, 65]);
        assert_eq!((page.dword(127), page.dword(128)), (127, 0));
        // The host replaces a dword of the line: the copy stays.
        host.0[70] = 7;
        assert_eq!(bits(bring_in(&mut page, 64, 6, &mut host).0), (1 << 6, 0, 5));
        assert_eq!(
            (page.dword(70), page.peek(VA, 70, &mut host), page.uncached(VA, 70, &mut host)),
            (70, 70, 7)
        );
        assert_eq!(page.peek(VA, 128, &mut host), 128, "not cached");
        // After an invalidation it is fetched anew, and the old contents are known.
        page.follow(Invalidations { all: 1, by_packets: 0 });
        assert_eq!(page.peek(VA, 70, &mut host), 7);
        let (state, old) = bring_in(&mut page, 70, 9, &mut host);
        assert_eq!((bits(state), old, page.dword(70)), ((0, 1 << 6, 6), 70, 7));
        assert_eq!(bits(bring_in(&mut page, 70, 10, &mut host).0), (0, 0, 9));
    }

    #[test]
    fn memory_types_differ_in_what_drops_lines() {
        for (memory_type, invalidations, expected) in [
            (SYSTEM, (1, 0), (0, 1, true)),
            (SYSTEM, (1, 1), (0, 1, true)),
            (SYSTEM, (0, 0), (1, 0, false)),
            (VRAM, (1, 0), (1, 0, false)),
            (VRAM, (1, 1), (0, 1, true)),
            (UNCACHED, (0, 0), (0, 1, true)),
        ] {
            let (mut page, mut host) = (CachePage::new(memory_type), host());
            assert_eq!(page.memory_type(), memory_type);
            bring_in(&mut page, 0, 5, &mut host);
            host.0[0] = 99;
            page.follow(Invalidations { all: invalidations.0, by_packets: invalidations.1 });
            let state = bring_in(&mut page, 0, 6, &mut host).0;
            let found = (state.replaced, state.changed, page.dword(0) == 99);
            assert_eq!(found, expected, "{memory_type:?}, {invalidations:?}");
        }
    }

    #[test]
    fn stores_stay_in_the_copy_byte_by_byte_until_they_are_written_back() {
        let (mut page, mut host) = (CachePage::new(SYSTEM), host());
        assert!(page.store(70, 0b0110, 0xaabb_ccdd), "the page was clean");
        assert!(!page.store(130, WHOLE, 0x1122_3344) && !page.store(131, WHOLE, 5));
        assert_eq!(page.dirty_dwords(127).collect::<Vec<_>>(), [70]);
        assert_eq!(page.dirty_dwords(128).collect::<Vec<_>>(), [130, 131]);
        assert_eq!(page.dirty_dwords(0).count() + page.dirty_dwords(192).count(), 0);
        host.0[70] = 0x0102_0304;
        assert_eq!(page.peek(VA, 70, &mut host), 0x01bb_cc04);
        bring_in(&mut page, 70, 5, &mut host);
        assert_eq!(page.dword(70), 0x01bb_cc04);
        let mut ranges = vec![(VA + 276, 5)];
        page.dirty_ranges(VA, &mut ranges);
        assert_eq!(ranges, [(VA + 276, 7), (VA + 520, 8)], "neighbours are merged");
        assert_eq!((host.0[70], host.0[130]), (0x0102_0304, 130));
        page.write_back(VA, &mut host);
        assert_eq!((host.0[70], host.0[130], host.0[129]), (0x01bb_cc04, 0x1122_3344, 129));
        assert_eq!(page.dirty_dwords(70).count() + page.dirty_dwords(130).count(), 0);
        // A dword that was written whole stays cached, with no other of its line.
        (host.0[129], host.0[130], host.0[131]) = (2, 1, 1);
        assert_eq!([129, 130, 131].map(|index| page.peek(VA, index, &mut host)), [2, 0x1122_3344, 5]);
        page.follow(Invalidations { all: 1, by_packets: 1 });
        assert_eq!(bits(bring_in(&mut page, 130, 6, &mut host).0), (0, 0b1100, 0), "known since then");
        assert!(page.store(0, 1, 1), "it is clean again");
    }

    #[test]
    fn stores_of_system_scope_go_through_and_leave_other_bytes_dirty() {
        let (mut page, mut host) = (CachePage::new(SYSTEM), host());
        page.store(3, WHOLE, 0x1111_1111);
        page.store_through(VA, 3, 0b0011, 0x2222_2222, &mut host);
        assert_eq!((page.dword(3), host.0[3]), (0x1111_2222, 0x0000_2222));
        let mut ranges = Vec::new();
        page.dirty_ranges(VA, &mut ranges);
        assert_eq!(ranges, [(VA + 14, 2)]);
        page.store_through(VA, 4, WHOLE, 0x3333_3333, &mut host);
        assert_eq!((host.0[4], host.0[5]), (0x3333_3333, 5));
    }

    /// What was stored, or seen, is kept; the rest is taken from the host.
    #[test]
    fn a_look_takes_what_nobody_has_looked_at() {
        let (mut page, mut host) = (CachePage::new(SYSTEM), host());
        bring_in(&mut page, 0, 5, &mut host);
        page.store(70, 0b0011, 0xffff_ffff);
        page.store(130, WHOLE, 7);
        page.write_back(VA, &mut host);
        page.store(140, WHOLE, 7);
        (host.0[1], host.0[130], host.0[140]) = (99, 99, 99);
        page.look(VA, &mut host);
        let seen = [0, 1, 69, 70, 129, 130, 131, 140, 1023].map(|index| page.dword(index));
        assert_eq!(seen, [0, 1, 69, 0xffff, 129, 7, 131, 7, 1023]);
        page.follow(Invalidations { all: 1, by_packets: 1 });
        host.0[1] = 98;
        page.look(VA, &mut host);
        assert_eq!(page.dword(1), 1, "known since it was cached");
        // What it has seen is known: a later write of the host differs from it.
        host.0[200] = 5;
        let (state, old) = bring_in(&mut page, 200, 6, &mut host);
        assert_eq!((bits(state), old), ((0, 1 << 8, 0), 200));
    }

    /// What is cached, or what the host cannot see yet, stays.
    #[test]
    fn what_the_host_has_cleared_is_zero_where_it_is_not_held() {
        let (mut page, mut host) = (CachePage::new(SYSTEM), Host(vec![u32::MAX; PAGE_DWORDS]));
        bring_in(&mut page, 0, 5, &mut host);
        bring_in(&mut page, 128, 5, &mut host);
        page.follow(Invalidations { all: 1, by_packets: 1 });
        page.store(133, WHOLE, 0x5555_5555);
        page.write_back(VA, &mut host);
        page.store(5, 0b0100, 0x00aa_0000);
        page.forget(5..27);
        assert_eq!(page.dwords(0..8), [u32::MAX, 0xff, 0, 0, 0, 0x00aa_0000, 0xff00_0000, u32::MAX]);
        page.forget(4 * 128..4 * 192);
        assert_eq!(page.dwords(131..136), [0, 0, 0x5555_5555, 0, 0]);
        // In a line that nobody has looked at, of which the rest is not known.
        page.forget(4 * 65 - 1..4 * 67 + 1);
        (host.0[65], host.0[66]) = (0, 9);
        assert_eq!(bits(bring_in(&mut page, 64, 6, &mut host).0), (0, 1 << 2, 0));
    }
}
