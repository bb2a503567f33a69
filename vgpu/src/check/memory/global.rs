//! Global memory accesses of waves, lane by lane.
//!
//! Contract: the caller has checked that the page of the bytes is mapped. Values come from GL2's copy, or from
//! before a write that the vector or scalar cache may miss.

use super::access::{Conflict, HOST};
use super::allocations::AllocationUse;
use super::cells::{Cells, Context, Settled, Write, byte_bits, piece};
use super::clock::Order;
use super::finding::{AccessKind, Defect, LaneClash, Scope};
use super::level_two::{CachePage, LINE_BYTES, LastLine, PAGE_BYTES, PAGE_DWORDS};
use super::readers::{WHOLE, worse};
use super::{MemoryChecker, Page};
use crate::check::undefined::Loaded;
use crate::memory::{HostMemory, LINE_DWORDS, MemoryType};

/// Replacement values for undefined bits of an atomic's operands: if its results differ, they are undefined.
const VARIANTS: [u32; 3] = [u32::MAX, 0x5a5a_a5a5, 0x8000_0001];

/// Defects of one lane's access; the most serious is reported.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    conflict: Option<Conflict>,
    missed: Option<Write>,
    /// A scalar load met a write of its own dispatch.
    stored_here: Option<Write>,
    is_replaced: bool,
    /// Address of a clash, and the values that an earlier lane and this one store there.
    clash: Option<(u64, [u32; 2])>,
    /// The page has undefined bytes.
    may_be_undefined: bool,
    memory_type: MemoryType,
}

/// Bytes of one dword that a lane stores.
#[derive(Clone, Copy, Debug)]
struct Dword {
    /// A multiple of 4.
    va: u64,
    /// A bit for each byte that is stored.
    mask: u8,
    value: u32,
}

impl MemoryChecker {
    /// The index of the page of an address.
    #[inline]
    pub(super) fn page(&mut self, va: u64, host: &mut dyn HostMemory) -> usize {
        let number = va / PAGE_BYTES;
        match self.last_page {
            Some((last, index)) if last == number => index as usize,
            _ => self.page_slow(number, host),
        }
    }

    #[inline(never)]
    fn page_slow(&mut self, number: u64, host: &mut dyn HostMemory) -> usize {
        let index = match self.page_indices.get(&number) {
            Some(index) => *index,
            None => {
                let mut page = Page {
                    va: number * PAGE_BYTES,
                    epoch: self.epoch,
                    cells: Cells::new(PAGE_DWORDS),
                    cache: CachePage::new(host.memory_type(number * PAGE_BYTES)),
                    undefined: self.unwritten_of_page(number * PAGE_BYTES, host),
                };
                if page.undefined.is_some() {
                    page.cache.look(page.va, host);
                }
                let index = match self.free_pages.pop() {
                    Some(index) => {
                        self.pages[index as usize] = page;
                        index
                    }
                    None => {
                        self.pages.push(page);
                        (self.pages.len() - 1) as u32
                    }
                };
                self.page_indices.insert(number, index);
                index
            }
        };
        let page = &mut self.pages[index as usize];
        if page.epoch != self.epoch {
            page.epoch = self.epoch;
            page.cells.forget_readers();
        }
        page.cache.follow(self.level_two_invalidations);
        self.last_page = Some((number, index));
        index as usize
    }

    /// A lane loads `out.len()` bytes; `out` receives what the wave sees.
    pub fn load(&mut self, lane: u32, va: u64, host: &mut dyn HostMemory, out: &mut [u8]) {
        self.check_bounds(lane, va, out.len());
        if !self.load_settled(va, host, out) {
            self.load_slow(lane, va, host, out);
        }
    }

    /// A load of whole dwords, or within one, in a line that has no conflicts for it. Returns false if the line may
    /// have some.
    #[inline]
    fn load_settled(&mut self, va: u64, host: &mut dyn HostMemory, out: &mut [u8]) -> bool {
        let first = (va & 3) as usize;
        let is_within = first + out.len() <= 4;
        let is_whole = first == 0 && out.len() % 4 == 0;
        if self.current.is_flag
            || self.current.scope == Scope::System
            || !(is_within || is_whole)
            || out.is_empty()
            || va % LINE_BYTES + out.len() as u64 > LINE_BYTES
        {
            return false;
        }
        if self.last_line.line != va / LINE_BYTES || self.last_line.stamp != self.current.stamp {
            let index = self.page(va, host);
            self.line(index, va, host);
        }
        if !self.last_line.is_settled {
            return false;
        }
        let page = &mut self.pages[self.last_line.page as usize];
        let dword = (va % PAGE_BYTES / 4) as usize;
        let dwords = dword..dword + out.len().div_ceil(4);
        let (current, sites, readers) = (&mut self.current, &self.sites, &mut self.readers);
        if is_whole {
            page.cells.load_settled(dwords.clone(), WHOLE, current, sites, readers);
            for (out, value) in out.chunks_exact_mut(4).zip(page.cache.dwords(dwords)) {
                out.copy_from_slice(&value.to_le_bytes());
            }
        } else {
            let mask = ((1 << out.len()) - 1) << first;
            page.cells.load_settled(dwords, mask, current, sites, readers);
            let value = page.cache.dword(dword) >> (8 * first);
            for (out, byte) in out.iter_mut().zip(value.to_le_bytes()) {
                *out = byte;
            }
        }
        true
    }

    #[inline(never)]
    fn load_slow(&mut self, lane: u32, va: u64, host: &mut dyn HostMemory, out: &mut [u8]) {
        let mut trouble = Trouble::default();
        let mut done = 0;
        while done < out.len() {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, out.len() - done);
            let value = self.load_dword(at & !3, mask, host, &mut trouble);
            let bytes = value.to_le_bytes();
            let first = (at & 3) as usize;
            out[done..done + count].copy_from_slice(&bytes[first..first + count]);
            done += count;
        }
        if trouble.may_be_undefined {
            self.load_undefined(lane, va, out.len(), host);
        }
        self.tell(trouble, lane, va);
    }

    /// A scalar prefetch of whole mapped lines. A data prefetch fills GL2. The scalar cache is modelled as if it
    /// held everything, so nothing is recorded for it.
    pub fn prefetch(&mut self, va: u64, len: u64, is_data: bool, host: &mut dyn HostMemory) {
        if !self.allocations.hold_pages_of(va, len) {
            let detail = self.allocations.describe(va, len);
            self.report_now(Defect::PrefetchOutsideAllocations, None, va, None, || detail);
        }
        let lines = va / LINE_BYTES..=(va + len - 1) / LINE_BYTES;
        for line in lines.filter(|_| is_data) {
            let va = line * LINE_BYTES;
            let index = self.page(va, host);
            self.line(index, va, host);
        }
    }

    /// A lane stores bytes.
    pub fn store(&mut self, lane: u32, va: u64, bytes: &[u8], host: &mut dyn HostMemory) {
        self.check_bounds(lane, va, bytes.len());
        let is_through = self.current.scope == Scope::System;
        let mut trouble = Trouble::default();
        let mut done = 0;
        while done < bytes.len() {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, bytes.len() - done);
            let first = (at & 3) as usize;
            let mut dword = [0; 4];
            dword[first..first + count].copy_from_slice(&bytes[done..done + count]);
            let dword = Dword { va: at & !3, mask, value: u32::from_le_bytes(dword) };
            self.store_dword(dword, host, &mut trouble);
            done += count;
        }
        self.tell(trouble, lane, va);
        if is_through {
            self.write_through(lane, va, trouble);
        }
        self.stored.push((lane, va..va.saturating_add(bytes.len() as u64)));
        if self.undefined_data.is_some() {
            self.store_undefined(lane, va, bytes.len(), host);
        }
    }

    /// A lane performs an atomic on `old.len()` bytes, 4 or 8. `operation` receives the old bytes and changes them
    /// into the new ones; `old` receives the old ones. With system scope it acts on host memory, but it is not
    /// atomic with respect to threads of the host.
    pub fn atomic(
        &mut self,
        lane: u32,
        va: u64,
        host: &mut dyn HostMemory,
        old: &mut [u8],
        mut operation: impl FnMut(&mut [u8]),
    ) {
        self.check_bounds(lane, va, old.len());
        let is_through = self.current.scope == Scope::System;
        let mut trouble = Trouble::default();
        let mut done = 0;
        while done < old.len() {
            let at = va.wrapping_add(done as u64);
            let (_, _, count) = piece(at, old.len() - done);
            let index = self.page(at, host);
            let page = &self.pages[index];
            let dword = (at % PAGE_BYTES / 4) as usize;
            let value = if is_through && !page.cache.memory_type().is_cached_vram() {
                page.cache.uncached(page.va, dword, host)
            } else {
                page.cache.peek(page.va, dword, host)
            };
            let first = (at & 3) as usize;
            old[done..done + count].copy_from_slice(&value.to_le_bytes()[first..first + count]);
            done += count;
        }
        let mut new = [0; 16];
        let new = &mut new[..old.len().min(16)];
        new.copy_from_slice(&old[..new.len()]);
        let undefined = self.undefined_at(va, old.len(), host);
        let is_kept = undefined.is_some_and(|(bits, _)| {
            let with = |value: u32, operation: &mut dyn FnMut(&mut [u8])| {
                let mut bytes = [0; 8];
                let bytes = &mut bytes[..new.len()];
                for (index, byte) in bytes.iter_mut().enumerate() {
                    let own = (bits[index / 4] >> (8 * (index % 4))) as u8;
                    *byte = new[index] & !own | (value >> (8 * (index % 4))) as u8 & own;
                }
                operation(bytes);
                bytes.to_vec()
            };
            let first = with(0, &mut operation);
            VARIANTS.into_iter().any(|value| with(value, &mut operation) != first)
        });
        operation(new);
        done = 0;
        while done < new.len() {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, new.len() - done);
            let first = (at & 3) as usize;
            let mut dword = [0; 4];
            dword[first..first + count].copy_from_slice(&new[done..done + count]);
            let dword = Dword { va: at & !3, mask, value: u32::from_le_bytes(dword) };
            self.store_dword(dword, host, &mut trouble);
            done += count;
        }
        if let Some((bits, origin)) = undefined {
            self.undefined_loads.push(Loaded { lane, element: 0, bits, origin });
            if is_kept {
                self.mark_undefined(va, new.len(), [bits[0], bits[1], 0, 0], origin, host);
            }
        }
        self.tell(trouble, lane, va);
        if is_through {
            self.write_through(lane, va, trouble);
        }
    }

    /// A lane has written with system scope: the host sees it at once, and may take it for news of what was written
    /// back.
    fn write_through(&mut self, lane: u32, va: u64, trouble: Trouble) {
        if std::mem::take(&mut self.current.is_before_write_back) {
            self.report_at(Defect::UnwaitedWriteBack, lane, va, None, String::new);
        }
        if trouble.conflict.is_none() {
            self.released.push((lane, va));
        }
    }

    /// Called after all lanes of the instruction: the host must be able to see the lines that it announced.
    #[inline]
    pub fn end_access(&mut self) {
        if !self.released.is_empty() {
            self.check_released();
        }
    }

    #[inline(never)]
    fn check_released(&mut self) {
        let mut last_line = None;
        for (lane, va) in std::mem::take(&mut self.released) {
            if last_line.replace(va / LINE_BYTES) == Some(va / LINE_BYTES) {
                continue;
            }
            let Some(page) = self.page_indices.get(&(va / PAGE_BYTES)).copied() else { continue };
            if let Some(write) = self.unreleased(page as usize, (va % PAGE_BYTES / 4) as usize) {
                let other = self.other_side(write.seen_wave, write.seen_site);
                self.report_at(Defect::UnreleasedLine, lane, va, Some(other), String::new);
            }
        }
    }

    /// Checks alignment (to the element, at most 4 bytes; otherwise the access is split, which is advice) and
    /// allocations.
    #[inline(always)]
    fn check_bounds(&mut self, lane: u32, va: u64, len: usize) {
        let alignment = len.next_power_of_two().min(4) as u64;
        if va % alignment != 0 {
            self.report_misaligned(lane, va, alignment);
        }
        if !self.allocations.allow(va, len as u64, self.current.kind.is_write()) {
            self.report_not_allowed(lane, va, len);
        }
    }

    #[cold]
    fn report_misaligned(&mut self, lane: u32, va: u64, alignment: u64) {
        self.report_at(Defect::MisalignedGlobal, lane, va, None, || format!("{alignment} bytes expected"));
    }

    #[cold]
    fn report_not_allowed(&mut self, lane: u32, va: u64, len: usize) {
        let detail = self.allocations.describe(va, len as u64);
        let defect = match self.allocations.use_of(va, len as u64) {
            Some(AllocationUse::Private) => Defect::PrivateByAddress,
            Some(_) => Defect::WriteToReadOnly,
            None => Defect::OutsideAllocations,
        };
        self.report_at(defect, lane, va, None, || detail);
    }

    /// Reports the most serious defect of one lane.
    #[inline]
    fn tell(&mut self, trouble: Trouble, lane: u32, va: u64) {
        let is_met = trouble.conflict.is_some() || trouble.stored_here.is_some();
        if is_met || trouble.missed.is_some() || trouble.is_replaced || trouble.clash.is_some() {
            self.tell_slow(trouble, lane, va);
        }
    }

    #[cold]
    fn tell_slow(&mut self, trouble: Trouble, lane: u32, va: u64) {
        if let Some(write) = trouble.stored_here {
            let other = self.other_side(write.seen_wave, write.seen_site);
            self.report_at(Defect::ScalarLoadOfStoredData, lane, va, Some(other), String::new);
        } else if let Some(conflict) = trouble.conflict {
            self.report_conflict(conflict, lane, va);
        } else if let Some((address, values)) = trouble.clash {
            let earlier = self.stored.iter().rev().find(|(_, bytes)| bytes.contains(&address));
            let lanes = [earlier.map_or(lane, |(earlier, _)| *earlier), lane];
            self.report_lanes(&LaneClash { lanes, address, values });
        } else if let Some(write) = trouble.missed {
            let other = self.other_side(write.seen_wave, write.seen_site);
            let is_scalar = self.current.kind == AccessKind::ScalarLoad;
            let is_shared = write.seen_wave == HOST && trouble.memory_type.is_uncached;
            let defect = match (is_scalar, is_shared) {
                (true, _) => Defect::StaleScalarCache,
                (false, true) => Defect::HostWriteBelowSystem,
                (false, false) => Defect::StaleVectorCache,
            };
            self.report_at(defect, lane, va, Some(other), String::new);
        } else {
            let other = self.other_side(HOST, 0);
            let is_local = trouble.memory_type.is_local;
            let defect = if is_local { Defect::StaleVram } else { Defect::StaleLevelTwo };
            self.report_at(defect, lane, va, Some(other), String::new);
        }
    }

    /// Brings a line in, unless the current instruction has done so already, and records what the host has
    /// replaced.
    #[inline]
    fn line(&mut self, page: usize, va: u64, host: &mut dyn HostMemory) {
        let line = va / LINE_BYTES;
        if self.last_line.line != line || self.last_line.stamp != self.current.stamp {
            self.line_slow(page, va, host);
        }
    }

    #[inline(never)]
    pub(super) fn line_slow(&mut self, index: usize, va: u64, host: &mut dyn HostMemory) {
        let settled = Settled {
            wave: self.current.ordered_before,
            time: match self.current.kind {
                AccessKind::ScalarLoad => self.caches.scalar_settled_time(),
                _ => self.caches.vector_settled_time(),
            },
        };
        if self.compared != self.now {
            self.now = self.now.saturating_add(1);
            self.compared = self.now;
        }
        let page = &mut self.pages[index];
        let dword = (va % PAGE_BYTES / 4) as usize;
        let last = &mut self.last_line;
        last.page = index as u32;
        last.line = va / LINE_BYTES;
        last.stamp = self.current.stamp;
        last.state = page.cache.bring_in(page.va, dword, self.now, host, &mut last.old);
        let mut changed = last.state.changed;
        while changed != 0 {
            let offset = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            // A nearer cache has had it since the last comparison at the latest.
            let time = last.state.compared_before;
            let dword = dword - LastLine::offset(dword) + offset;
            page.cells.store_from_outside(dword, HOST, time, last.old[offset]);
        }
        let mut is_defined = true;
        if let Some(undefined) = &mut page.undefined {
            let first = dword - LastLine::offset(dword);
            let written = last.state.changed | last.state.replaced;
            let written = (0..LINE_DWORDS).filter(|offset| written >> offset & 1 != 0);
            written.for_each(|offset| undefined.set(first + offset, WHOLE, 0, None));
            is_defined = undefined.is_line_defined(dword);
        }
        last.is_settled = is_defined && last.state.replaced == 0 && page.cells.is_settled(dword, settled);
    }

    #[inline]
    fn load_dword(&mut self, va: u64, mask: u8, host: &mut dyn HostMemory, trouble: &mut Trouble) -> u32 {
        let index = self.page(va, host);
        let dword = (va % PAGE_BYTES / 4) as usize;
        let memory_type = self.pages[index].cache.memory_type();
        trouble.memory_type = memory_type;
        let is_bypass = self.current.scope == Scope::System && memory_type == MemoryType::default();
        if !is_bypass {
            self.line(index, va, host);
        }
        let page = &mut self.pages[index];
        let mut value =
            if is_bypass { page.cache.uncached(page.va, dword, host) } else { page.cache.dword(dword) };
        if let Some(undefined) = &mut page.undefined {
            // What somebody else has written past GL2.
            if is_bypass && value != page.cache.dword(dword) {
                undefined.set(dword, WHOLE, 0, None);
            }
            trouble.may_be_undefined |= undefined.bits(dword) & byte_bits(mask) != 0;
        }
        let current = &mut self.current;
        if current.is_flag {
            if let Some((earlier, written)) = self.flags.on_its_way(va, mask, current, &self.sites)
                && let Some(write) = page.cells.newest(dword).filter(|write| write.is_of(earlier))
            {
                let bits = byte_bits(written);
                value = value & !bits | write.previous & bits;
            }
            if let Some(wave) = self.waves.get_mut(&current.wave) {
                let met = self.flags.access(va, mask, current, &self.sites, wave);
                trouble.conflict = worse(trouble.conflict, met);
            }
            page.cells.set_flag(dword, true);
        } else if page.cells.has_flag(dword) {
            let met = self.flags.conflict_with_plain(va, mask, current, &self.sites);
            trouble.conflict = worse(trouble.conflict, met);
        }
        let is_scalar = current.kind == AccessKind::ScalarLoad;
        let (scope, cu, caches) = (current.scope, current.cu, &self.caches);
        if is_scalar {
            let waves = current.dispatch_first..current.dispatch_end;
            let own = page.cells.recorded(dword).iter().filter(|write| waves.contains(&write.seen_wave));
            trouble.stored_here = own.max_by_key(|write| write.time).copied().or(trouble.stored_here);
        }
        let settled = Settled { wave: self.settled_wave, time: caches.settled_time() };
        let mut context =
            Context { current: &mut *current, sites: &self.sites, readers: &mut self.readers, settled };
        let loaded = if is_scalar {
            page.cells.load(dword, mask, &mut context, |write| caches.scalar_misses(write, scope, cu))
        } else {
            page.cells.load(dword, mask, &mut context, |write| {
                let is_shared = memory_type.is_uncached && write.seen_wave == HOST;
                caches.misses(write, scope, cu) || is_shared && caches.misses_host(write, scope, cu)
            })
        };
        trouble.conflict = worse(trouble.conflict, loaded.conflict);
        if loaded.unseen != 0 {
            let bits = byte_bits(loaded.unseen);
            value = value & !bits | loaded.previous & bits;
        }
        trouble.missed = trouble.missed.or(loaded.missed);
        let replaced = if is_bypass { 0 } else { self.last_line.state.replaced };
        trouble.is_replaced |= replaced >> LastLine::offset(dword) & 1 != 0;
        value
    }

    #[inline]
    fn store_dword(&mut self, stored: Dword, host: &mut dyn HostMemory, trouble: &mut Trouble) {
        let Dword { va, mask, value } = stored;
        let index = self.page(va, host);
        let dword = (va % PAGE_BYTES / 4) as usize;
        let settled = self.settled();
        let page = &mut self.pages[index];
        let old = page.cache.peek(page.va, dword, host);
        let current = &mut self.current;
        if current.is_flag {
            if let Some(wave) = self.waves.get_mut(&current.wave) {
                let met = self.flags.access(va, mask, current, &self.sites, wave);
                trouble.conflict = worse(trouble.conflict, met);
            }
            page.cells.set_flag(dword, true);
        } else if page.cells.has_flag(dword) {
            let met = self.flags.conflict_with_plain(va, mask, current, &self.sites);
            trouble.conflict = worse(trouble.conflict, met);
            if self.flags.replace(va, mask) {
                page.cells.set_flag(dword, false);
            }
        }
        let mut context = Context { current, sites: &self.sites, readers: &mut self.readers, settled };
        let met = page.cells.store(dword, mask, &mut context, old);
        trouble.conflict = worse(trouble.conflict, met.conflict);
        if met.again != 0 && self.current.kind == AccessKind::Store && !self.current.is_flag {
            let (bits, first) = (byte_bits(met.again), met.again.trailing_zeros());
            let values = [page.cache.dword(dword), value].map(|value| (value & bits) >> (8 * first));
            if values[0] != values[1] {
                trouble.clash = trouble.clash.or(Some((va + u64::from(first), values)));
            }
        }
        if let Some(undefined) = &mut page.undefined {
            undefined.set(dword, mask, 0, None);
        }
        if self.current.scope == Scope::System || page.cache.memory_type().is_uncached {
            page.cache.store_through(page.va, dword, mask, value, host);
        } else if page.cache.store(dword, mask, value) {
            self.dirty_pages.push(index as u32);
        }
    }

    /// A write of the same dispatch, ordered before the current one, in the line of a dword, that the host cannot
    /// see.
    fn unreleased(&mut self, page: usize, dword: usize) -> Option<Write> {
        let page = &self.pages[page];
        let (current, sites) = (&mut self.current, &self.sites);
        let waves = current.dispatch_first..current.dispatch_end;
        page.cache.dirty_dwords(dword).flat_map(|dirty| page.cells.recorded(dirty)).copied().find(|write| {
            waves.contains(&write.plain.wave) && current.order(write.plain, sites) == Order::Before
        })
    }
}
