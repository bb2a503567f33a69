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
    /// Dwords that are no longer in the cache, or never are; `data` holds them as last seen.
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

    /// Dwords of the line of dword `index` that have bytes which the host cannot see.
    pub(super) fn dirty_dwords(&self, index: usize) -> impl Iterator<Item = usize> {
        let line = index / LINE_DWORDS;
        let is_dirty = self.dirty_lines >> line & 1 != 0;
        let dwords = if is_dirty { line * LINE_DWORDS..(line + 1) * LINE_DWORDS } else { 0..0 };
        dwords.filter(move |dword| self.dirty[*dword] != 0)
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
    /// The instruction is a plain load that meets nothing in this line: no flag, no write that is unordered or that
    /// it may miss, and nothing that the host has replaced.
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
