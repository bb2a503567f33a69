//! What the command processor and the driver do to memory and caches.
//!
//! Contract: packets take effect at once, in order; the command processor has completed the packet's waits. The
//! command processor's own accesses go through GL2, so that it and the waves see the same copy.

use super::access::COMMAND_PROCESSOR;
use super::cells::piece;
use super::finding::{Actor, Defect, MemoryFinding, OtherSide};
use super::level_two::PAGE_BYTES;
use super::{MemoryChecker, Source};
use crate::memory::HostMemory;
use bitflags::bitflags;

/// Ranges listed in a finding.
const RANGES_NAMED: usize = 4;

bitflags! {
    /// Cache actions of ACQUIRE_MEM and RELEASE_MEM (hardware reference §4.5 and §4.6). Actions on caches that
    /// gfx12 does not have, or that write through, have no effect and are left out.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct CacheActions: u8 {
        /// GLV_INV: the vector caches of all compute units.
        const VECTOR_INVALIDATE = 1;
        /// GLK_INV: all scalar caches.
        const SCALAR_INVALIDATE = 2;
        /// GLI_INV: all instruction caches.
        const INSTRUCTION_INVALIDATE = 4;
        /// GL2_INV: clean lines in GL2.
        const LEVEL_TWO_INVALIDATE = 8;
        /// GL2_WB: dirty lines in GL2.
        const LEVEL_TWO_WRITE_BACK = 16;
    }
}

/// The path of the command processor's own accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// To memory: the host sees a write at once, and a read is not served from a clean copy in GL2.
    Memory,
    /// To GL2 only.
    LevelTwo,
}

impl MemoryChecker {
    /// ACQUIRE_MEM.
    pub fn acquire_mem(&mut self, actions: CacheActions, host: &mut dyn HostMemory) {
        self.act(actions, host);
    }

    /// RELEASE_MEM: the cache actions, and a fence at `fence_va` if it also writes a value. The write itself is
    /// [`MemoryChecker::cp_write`], afterwards.
    pub fn release_mem(&mut self, actions: CacheActions, fence_va: Option<u64>, host: &mut dyn HostMemory) {
        self.act(actions, host);
        let Some(address) = fence_va else { return };
        let ranges = self.dirty_ranges();
        let Some((first, _)) = ranges.first().copied() else { return };
        let other = self.newest_write(first);
        if self.report.is_new(Defect::FenceWithoutWriteBack, 0, other.map_or(0, |other| other.pc)) {
            let total: u64 = ranges.iter().map(|(_, len)| len).sum();
            let named: Vec<_> = ranges
                .iter()
                .take(RANGES_NAMED)
                .map(|(va, len)| format!("{va:#x}..{:#x}", va + len))
                .collect();
            let more = if ranges.len() > RANGES_NAMED { ", …" } else { "" };
            self.report.add(MemoryFinding {
                defect: Defect::FenceWithoutWriteBack,
                actor: Actor::CommandProcessor,
                pc: 0,
                lane: None,
                address,
                other,
                detail: format!("{total} bytes in {} ranges: {}{more}", ranges.len(), named.join(", ")),
                count: 1,
            });
        }
    }

    /// Ranges (address, length in bytes) that the GPU has written and the host cannot see yet, by address.
    pub fn dirty_ranges(&self) -> Vec<(u64, u64)> {
        let mut pages: Vec<_> =
            self.dirty_pages.iter().filter_map(|index| self.pages.get(*index as usize)).collect();
        pages.sort_unstable_by_key(|page| page.va);
        let mut ranges = Vec::new();
        for page in pages {
            page.cache.dirty_ranges(page.va, &mut ranges);
        }
        ranges
    }

    /// The command processor writes: fences, WRITE_DATA, timestamps, atomics.
    pub fn cp_write(&mut self, va: u64, bytes: &[u8], path: Path, host: &mut dyn HostMemory) {
        self.now = self.now.saturating_add(1);
        let mut done = 0;
        while done < bytes.len() {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, bytes.len() - done);
            let first = (at & 3) as usize;
            let mut dword = [0; 4];
            dword[first..first + count].copy_from_slice(&bytes[done..done + count]);
            let value = u32::from_le_bytes(dword);
            let index = self.page(at, host);
            let place = (at % PAGE_BYTES / 4) as usize;
            let page = &mut self.pages[index];
            let path = if page.cache.memory_type().is_uncached { Path::Memory } else { path };
            let old = page.cache.peek(page.va, place, host);
            page.cells.store_from_outside(place, COMMAND_PROCESSOR, self.now, old);
            if let Some(undefined) = &mut page.undefined {
                undefined.set(place, mask, 0, None);
            }
            match path {
                Path::Memory => page.cache.store_through(page.va, place, mask, value, host),
                Path::LevelTwo => {
                    if page.cache.store(place, mask, value) {
                        self.dirty_pages.push(index as u32);
                    }
                }
            }
            done += count;
        }
    }

    /// The command processor reads: polls, COPY_DATA, packets in memory. Its reads are not cached.
    pub fn cp_read(&mut self, va: u64, out: &mut [u8], path: Path, host: &mut dyn HostMemory) {
        let mut done = 0;
        while done < out.len() {
            let at = va.wrapping_add(done as u64);
            let (_, _, count) = piece(at, out.len() - done);
            let index = self.page(at, host);
            let place = (at % PAGE_BYTES / 4) as usize;
            let page = &self.pages[index];
            let value = match path {
                Path::Memory => page.cache.uncached(page.va, place, host),
                Path::LevelTwo => page.cache.peek(page.va, place, host),
            };
            let first = (at & 3) as usize;
            out[done..done + count].copy_from_slice(&value.to_le_bytes()[first..first + count]);
            done += count;
        }
    }

    /// Code of `len` bytes at `va` is about to run. Reports a finding if the GPU wrote it after the last
    /// invalidation of the instruction caches.
    pub fn fetch_instructions(&mut self, va: u64, len: u64) {
        let end = va.saturating_add(len);
        let mut at = va & !3;
        while at < end {
            let Some(index) = self.page_indices.get(&(at / PAGE_BYTES)) else {
                at = (at / PAGE_BYTES + 1) * PAGE_BYTES;
                continue;
            };
            let write = self.pages[*index as usize].cells.newest((at % PAGE_BYTES / 4) as usize);
            if let Some(write) = write.filter(|write| self.caches.fetch_misses(write)) {
                let other = self.other_side(write.seen_wave, write.seen_site);
                if self.report.is_new(Defect::StaleInstructionCache, va, other.pc) {
                    self.report.add(MemoryFinding {
                        defect: Defect::StaleInstructionCache,
                        actor: Actor::CommandProcessor,
                        pc: va,
                        lane: None,
                        address: at,
                        other: Some(other),
                        detail: String::new(),
                        count: 1,
                    });
                }
                return;
            }
            at += 4;
        }
    }

    /// The driver unmaps a range: dirty bytes reach the host, and everything known about the range is forgotten.
    /// The range must still be mapped.
    pub fn forget(&mut self, va: u64, len: u64, host: &mut dyn HostMemory) {
        let end = va.saturating_add(len);
        let pages: Vec<(u64, u32)> = self
            .page_indices
            .iter()
            .filter(|(number, _)| (va..end).contains(&(**number * PAGE_BYTES)))
            .map(|(number, index)| (*number, *index))
            .collect();
        for (number, index) in pages {
            let page = &mut self.pages[index as usize];
            page.cache.write_back(page.va, host);
            self.page_indices.remove(&number);
            self.free_pages.push(index);
            self.dirty_pages.retain(|dirty| *dirty != index);
        }
        self.last_page = None;
        self.last_line = Default::default();
        self.flags.forget(va, end);
    }

    /// Writes all dirty bytes of GL2 to the host.
    pub(super) fn write_back(&mut self, host: &mut dyn HostMemory) {
        for index in std::mem::take(&mut self.dirty_pages) {
            let page = &mut self.pages[index as usize];
            page.cache.write_back(page.va, host);
        }
    }

    /// Drops the clean lines of GL2.
    pub(super) fn invalidate_level_two(&mut self, source: Source) {
        self.level_two_invalidations.all += 1;
        self.level_two_invalidations.by_packets += u32::from(source == Source::Packet);
        self.last_page = None;
    }

    fn act(&mut self, actions: CacheActions, host: &mut dyn HostMemory) {
        self.now = self.now.saturating_add(1);
        let time = self.now;
        if actions.contains(CacheActions::LEVEL_TWO_WRITE_BACK) {
            self.write_back(host);
        }
        if actions.contains(CacheActions::LEVEL_TWO_INVALIDATE) {
            self.invalidate_level_two(Source::Packet);
        }
        if actions.contains(CacheActions::VECTOR_INVALIDATE) {
            self.caches.invalidate_all_vector(time);
        }
        if actions.contains(CacheActions::SCALAR_INVALIDATE) {
            self.caches.invalidate_all_scalar(time);
        }
        if actions.contains(CacheActions::INSTRUCTION_INVALIDATE) {
            self.caches.invalidate_instructions(time);
        }
    }

    fn newest_write(&self, va: u64) -> Option<OtherSide> {
        let index = self.page_indices.get(&(va / PAGE_BYTES))?;
        let place = (va % PAGE_BYTES / 4) as usize;
        let write = self.pages[*index as usize].cells.newest(place)?;
        Some(self.other_side(write.seen_wave, write.seen_site))
    }
}
