//! Undefined bytes of memory and LDS: bytes never written, and bytes stored from undefined data.
//!
//! Contract: tracked in bits, since a register's undefined bits may be stored. Cost: nothing for a page or group
//! without them; otherwise 4 KiB, and a lookup for each dword of an access.

use crate::check::undefined::{LANE_DWORDS_MAX, LOAD_DWORDS_MAX, Loaded, Origin, Source, Stored};
use crate::memory::HostMemory;

use std::collections::hash_map::Entry;

use super::cells::{byte_bits, piece};
use super::level_two::PAGE_BYTES;
use super::undefined_bits::UndefinedPage;
use super::{GroupShadow, MemoryChecker};

impl MemoryChecker {
    /// The bytes of a newly accessed page that were never written.
    pub(super) fn unwritten_of_page(
        &self,
        page_va: u64,
        host: &mut dyn HostMemory,
    ) -> Option<Box<UndefinedPage>> {
        let mut page = None;
        for range in self.allocations.unwritten_of(page_va) {
            let page = page.get_or_insert_with(|| Box::new(UndefinedPage::new()));
            page.forget(range.start - page_va..range.end - page_va);
            // It was filled with zeros: anything else was written by the host.
            let mut bytes = vec![0; (range.end - range.start) as usize];
            host.read(range.start, &mut bytes);
            for (byte, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                let at = range.start - page_va + byte as u64;
                page.set((at / 4) as usize, 1 << (at % 4), 0, None);
            }
        }
        page
    }

    /// Marks a range of zeros as unwritten from now on.
    pub(super) fn forget_what_was_written(&mut self, va: u64, len: u64) {
        let range = va..va.saturating_add(len);
        let invalidations = self.level_two_invalidations;
        for page in
            self.pages.iter_mut().filter(|page| self.page_indices.contains_key(&(page.va / PAGE_BYTES)))
        {
            let (first, end) = (range.start.max(page.va), range.end.min(page.va + PAGE_BYTES));
            if first < end {
                let undefined = page.undefined.get_or_insert_with(|| Box::new(UndefinedPage::new()));
                undefined.forget(first - page.va..end - page.va);
                page.cache.follow(invalidations);
                page.cache.forget(first - page.va..end - page.va);
            }
        }
        self.last_line = Default::default();
    }

    /// Sets the undefined bits of the data of the next store; `None` if all are defined.
    #[inline]
    pub fn set_undefined_data(&mut self, data: Option<Stored>) {
        if data.is_some() || self.undefined_data.is_some() {
            self.undefined_data = data;
        }
    }

    /// Whether any loaded data is undefined.
    #[inline]
    pub fn has_undefined_loads(&self) -> bool {
        !self.undefined_loads.is_empty()
    }

    /// Takes the undefined loads since the last call.
    pub fn take_undefined_loads(&mut self) -> Vec<Loaded> {
        std::mem::take(&mut self.undefined_loads)
    }

    /// Records what is undefined in a lane's load from memory.
    #[cold]
    pub(super) fn load_undefined(&mut self, lane: u32, va: u64, len: usize, host: &mut dyn HostMemory) {
        if let Some((bits, origin)) = self.undefined_at(va, len, host) {
            self.undefined_loads.push(Loaded { lane, element: 0, bits, origin });
        }
    }

    /// The undefined bits of some bytes, if any, and their origin.
    pub(super) fn undefined_at(
        &mut self,
        va: u64,
        len: usize,
        host: &mut dyn HostMemory,
    ) -> Option<([u32; LOAD_DWORDS_MAX], Origin)> {
        let (mut bits, mut origin) = ([0; LOAD_DWORDS_MAX], None);
        let mut done = 0;
        while done < len {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, len - done);
            let index = self.page(at, host);
            let dword = (at % PAGE_BYTES / 4) as usize;
            if let Some(page) = &self.pages[index].undefined {
                let own = page.bits(dword) & byte_bits(mask);
                if own != 0 && origin.is_none() {
                    let byte = (at & !3) + u64::from(own.trailing_zeros() / 8);
                    let unwritten = Origin { source: Source::Memory(byte), pc: self.current.pc };
                    origin = Some(page.origins.get(&(dword as u32)).copied().unwrap_or(unwritten));
                }
                spread(&mut bits, done, own >> (8 * (at & 3)));
            }
            done += count;
        }
        origin.map(|origin| (bits, origin))
    }

    /// Marks what is undefined in a lane's store to memory.
    #[cold]
    pub(super) fn store_undefined(&mut self, lane: u32, va: u64, len: usize, host: &mut dyn HostMemory) {
        if let Some((bits, origin)) = self.undefined_data_of(lane, 0) {
            self.mark_undefined(va, len, bits, origin, host);
        }
    }

    /// Marks bits of some bytes, in addition to those already undefined.
    pub(super) fn mark_undefined(
        &mut self,
        va: u64,
        len: usize,
        bits: [u32; LANE_DWORDS_MAX],
        origin: Origin,
        host: &mut dyn HostMemory,
    ) {
        let mut done = 0;
        while done < len {
            let at = va.wrapping_add(done as u64);
            let (_, mask, count) = piece(at, len - done);
            let own = gather(&bits, done) << (8 * (at & 3)) & byte_bits(mask);
            if own != 0 {
                let index = self.page(at, host);
                let page = &mut self.pages[index];
                page.cache.look(page.va, host);
                let undefined = page.undefined.get_or_insert_with(|| Box::new(UndefinedPage::new()));
                undefined.set((at % PAGE_BYTES / 4) as usize, mask, own, Some(origin));
            }
            done += count;
        }
    }

    /// Tracks a lane's access to LDS.
    #[cold]
    pub(super) fn follow_lds(
        &mut self,
        group: &mut GroupShadow,
        (lane, element): (u32, u32),
        address: u32,
        len: u32,
    ) {
        let kind = self.current.kind;
        let is_store = kind.is_write() && !kind.is_atomic();
        let data = if is_store { self.undefined_data_of(lane, element) } else { None };
        let (mut bits, mut origin) = ([0; LOAD_DWORDS_MAX], None);
        let (mut done, len) = (0, len as usize);
        while done < len {
            let at = u64::from(address) + done as u64;
            let (dword, mask, count) = piece(at, len - done);
            let known = group.undefined.get(&(dword as u32)).copied();
            let (before, mask) = (known.map_or(0, |(bits, _)| bits), byte_bits(mask));
            if is_store {
                let own = data.map_or(0, |(bits, _)| gather(&bits, done) << (8 * (at & 3)) & mask);
                let source = data.filter(|_| own != 0).map(|(_, origin)| origin);
                match (before & !mask | own, source.or(known.map(|(_, origin)| origin))) {
                    (0, _) | (_, None) => drop(group.undefined.remove(&(dword as u32))),
                    (bits, Some(origin)) => drop(group.undefined.insert(dword as u32, (bits, origin))),
                }
            } else if before & mask != 0 {
                origin = origin.or(known.map(|(_, origin)| origin));
                spread(&mut bits, done, (before & mask) >> (8 * (at & 3)));
            }
            done += count;
        }
        if let Some(origin) = origin {
            self.undefined_loads.push(Loaded { lane, element, bits, origin });
        }
    }

    /// Marks bytes of LDS as defined from now on.
    pub fn define_lds(&mut self, group: &mut GroupShadow, address: u32, len: u32) {
        let (mut done, len) = (0, len as usize);
        while done < len && !group.undefined.is_empty() {
            let (dword, mask, count) = piece(u64::from(address) + done as u64, len - done);
            if let Entry::Occupied(mut entry) = group.undefined.entry(dword as u32) {
                entry.get_mut().0 &= !byte_bits(mask);
                if entry.get().0 == 0 {
                    entry.remove();
                }
            }
            done += count;
        }
    }

    fn undefined_data_of(&self, lane: u32, element: u32) -> Option<([u32; 4], Origin)> {
        let data = self.undefined_data.as_ref()?;
        Some((*data.elements.get(element as usize)?.get(lane as usize)?, data.origin))
    }
}

/// The bits from a byte of an element on, at most a dword.
fn gather(bits: &[u32; 4], byte: usize) -> u32 {
    let at = |index: usize| bits.get(index).copied().unwrap_or_default();
    let both = u64::from(at(byte / 4)) | u64::from(at(byte / 4 + 1)) << 32;
    (both >> (8 * (byte % 4))) as u32
}

/// Adds bits at a byte of an element.
fn spread(bits: &mut [u32; LOAD_DWORDS_MAX], byte: usize, own: u32) {
    let both = u64::from(own) << (8 * (byte % 4));
    for (index, own) in [both as u32, (both >> 32) as u32].into_iter().enumerate() {
        if let Some(bits) = bits.get_mut(byte / 4 + index) {
            *bits |= own;
        }
    }
}
