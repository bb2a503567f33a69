//! The memory behind the caches.
//!
//! Contract: a component that models caches reads and writes back lines through [`HostMemory`]. [`Mapped`]
//! implements it for a page table. Cost: a look-up per call, which begins at the range found last.

use super::page_table::{MemoryType, PageTable};
use std::sync::atomic::{Ordering, fence};

/// Dwords of a line of GL2 (hardware reference §1.4).
pub const LINE_DWORDS: usize = 64;

/// Memory behind the caches, as the host sees it.
///
/// Contract: the caller has checked that everything an instruction or packet accesses is mapped; the rest of an
/// accessed page is then mapped too.
pub trait HostMemory {
    /// Copies bytes out.
    fn read(&mut self, va: u64, destination: &mut [u8]);
    /// Copies a line of GL2 out.
    fn read_line(&mut self, va: u64, words: &mut [u32; LINE_DWORDS]) {
        let mut bytes = [0; 4 * LINE_DWORDS];
        self.read(va, &mut bytes);
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
    }
    /// Copies bytes in.
    fn write(&mut self, va: u64, source: &[u8]);
    /// How the page of an address is mapped.
    fn memory_type(&mut self, _va: u64) -> MemoryType {
        MemoryType::default()
    }
}

/// The memory that a page table maps. Unmapped bytes read as zero and are not written.
pub(crate) struct Mapped<'a> {
    table: &'a PageTable,
    /// Index of the range found last.
    hint: usize,
}

impl<'a> Mapped<'a> {
    /// The memory that the table maps.
    pub fn new(table: &'a PageTable) -> Mapped<'a> {
        Mapped::near(table, 0)
    }

    /// The same, with the index of the range that is likely found first.
    pub(super) fn near(table: &'a PageTable, hint: usize) -> Mapped<'a> {
        Mapped { table, hint }
    }
}

impl HostMemory for Mapped<'_> {
    fn read(&mut self, va: u64, destination: &mut [u8]) {
        let mut done = 0;
        while done < destination.len() {
            let at = va.wrapping_add(done as u64);
            let Some(range) = self.table.find_near(at, &mut self.hint) else {
                destination[done..].fill(0);
                return;
            };
            let count = ((range.end - at) as usize).min(destination.len() - done);
            range.view.read_bytes((at - range.va) as usize, &mut destination[done..done + count]);
            done += count;
        }
    }

    #[inline]
    fn read_line(&mut self, va: u64, words: &mut [u32; LINE_DWORDS]) {
        // Ranges are whole pages, so they contain whole lines.
        match self.table.find_near(va, &mut self.hint) {
            Some(range) => range.view.load_words((va - range.va) as usize, words),
            None => words.fill(0),
        }
    }

    fn memory_type(&mut self, va: u64) -> MemoryType {
        self.table
            .find_near(va, &mut self.hint)
            .map_or_else(MemoryType::default, |range| range.backing.memory_type)
    }

    fn write(&mut self, va: u64, source: &[u8]) {
        // The host may poll what is written: dwords are written whole, after everything before.
        fence(Ordering::Release);
        let mut done = 0;
        while done < source.len() {
            let at = va.wrapping_add(done as u64);
            let Some(range) = self.table.find_near(at, &mut self.hint) else { return };
            let offset = (at - range.va) as usize;
            let left = ((range.end - at) as usize).min(source.len() - done);
            match source[done..].first_chunk::<4>() {
                Some(dword) if left >= 4 && at % 4 == 0 => {
                    range.view.store_u32(offset, u32::from_le_bytes(*dword));
                    done += 4;
                }
                _ => {
                    range.view.store_u8(offset, source[done]);
                    done += 1;
                }
            }
        }
    }
}
