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
        // The host may poll what is written: words are written whole, after everything before.
        fence(Ordering::Release);
        let mut done = 0;
        while done < source.len() {
            let at = va.wrapping_add(done as u64);
            let Some(range) = self.table.find_near(at, &mut self.hint) else { return };
            let count = ((range.end - at) as usize).min(source.len() - done);
            range.view.write_bytes((at - range.va) as usize, &source[done..done + count]);
            done += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_table::tests::mapping;
    use super::super::page_table::{AddressSpace, Backing, Defects, GPU_PAGE_BYTES, Rights};
    use super::*;
    use zrt_mem::{ByteLen, GpuVa};

    const PAGE: u64 = GPU_PAGE_BYTES;
    const VA: u64 = 0x10_0000;

    /// Three ranges of a page each, with the last two next to each other, and their memory types.
    fn table() -> std::sync::Arc<PageTable> {
        let space = AddressSpace::default();
        for (page, is_local, is_uncached) in [(0, true, false), (2, true, true), (3, false, true)] {
            let memory_type = MemoryType { is_local, is_uncached };
            let (rights, defects) = (Rights::READ | Rights::WRITE, Defects::empty());
            let backing = Backing { rights, memory_type, mapping: mapping(1), fill: None, defects };
            space.map_backing(GpuVa(VA + page * PAGE), ByteLen(PAGE), backing).unwrap();
        }
        space.snapshot()
    }

    #[test]
    fn what_is_written_is_read_across_ranges_and_ends_with_them() {
        let table = table();
        let mut memory = Mapped::new(&table);
        // At each alignment across the border of two ranges, and over their end.
        for at in (3 * PAGE - 9..3 * PAGE + 1).chain(4 * PAGE - 7..4 * PAGE + 1) {
            let source: [u8; 23] = std::array::from_fn(|index| (at as u8) ^ (index as u8 + 1) << 3);
            memory.write(VA + at, &source);
            let mut back = [0xEE; 23];
            memory.read(VA + at, &mut back);
            let mapped = ((4 * PAGE - at) as usize).min(23);
            assert_eq!(
                (&back[..mapped], &back[mapped..]),
                (&source[..mapped], &[0; 23][mapped..]),
                "{at:#x}"
            );
        }
        let mut hole = [0xEE; 4];
        memory.read(VA + PAGE - 2, &mut hole);
        assert_eq!(hole, [0; 4]);
        let mut before = [0xEE; 4];
        memory.write(VA - 4, &[1; 4]);
        memory.read(VA - 4, &mut before);
        assert_eq!(before, [0; 4]);
    }

    #[test]
    fn the_page_at_address_0_is_one_like_all_others() {
        let space = AddressSpace::default();
        space.map(GpuVa(0), ByteLen(PAGE), Rights::READ | Rights::WRITE, mapping(1)).unwrap();
        let table = space.snapshot();
        let mut memory = Mapped::new(&table);
        for at in 0..9 {
            let source: [u8; 11] = std::array::from_fn(|index| at as u8 ^ (index as u8 + 1) << 4);
            memory.write(at, &source);
            let mut back = [0xEE; 11];
            memory.read(at, &mut back);
            assert_eq!(back, source, "{at}");
        }
    }

    /// [`HostMemory::read_line`] as it is for memory that has only bytes.
    struct Bytes<'a>(Mapped<'a>);

    impl HostMemory for Bytes<'_> {
        fn read(&mut self, va: u64, destination: &mut [u8]) {
            self.0.read(va, destination);
        }

        fn write(&mut self, va: u64, source: &[u8]) {
            self.0.write(va, source);
        }
    }

    #[test]
    fn a_line_is_64_dwords_of_little_endian_bytes() {
        let table = table();
        let mut memory = Bytes(Mapped::new(&table));
        memory.write(VA + 0x100, &[1, 2, 3, 4]);
        memory.write(VA + 0x1FC, &[5, 6, 7, 8]);
        let mut expected = [0; 64];
        (expected[0], expected[63]) = (0x0403_0201, 0x0807_0605);
        for (va, expected) in [(VA + 0x100, expected), (VA + PAGE, [0; 64])] {
            let mut words = [[0xEE; 64]; 2];
            memory.read_line(va, &mut words[0]);
            memory.0.read_line(va, &mut words[1]);
            assert_eq!(words, [expected; 2]);
        }
        assert_eq!(memory.memory_type(VA), MemoryType::default(), "nothing is known of it");
    }

    #[test]
    fn pages_have_the_type_that_they_are_mapped_with() {
        let table = table();
        let mut memory = Mapped::new(&table);
        let types = [VA, VA + PAGE, VA + 2 * PAGE, VA + 4 * PAGE - 1, VA + 4 * PAGE].map(|va| {
            let MemoryType { is_local, is_uncached } = memory.memory_type(va);
            (is_local, is_uncached)
        });
        assert_eq!(types, [(true, false), (false, false), (true, true), (false, true), (false, false)]);
    }
}
