//! The undefined bits of a page and of LDS.
//!
//! Contract: a page costs 4 KiB, and an entry for each dword whose undefined bits come from somewhere else.

use crate::check::undefined::Origin;
use crate::memory::LINE_DWORDS;

use std::ops::Range;

use super::cells::byte_bits;
use super::hash::FastMap;
use super::level_two::PAGE_DWORDS;

/// Undefined bits of a page.
#[derive(Debug)]
pub(super) struct UndefinedPage {
    bits: Box<[u32; PAGE_DWORDS]>,
    /// Origin by dword, if it is not the dword itself.
    pub(super) origins: FastMap<u32, Origin>,
}

/// Undefined bits of LDS, by dword.
pub(super) type UndefinedLds = FastMap<u32, (u32, Origin)>;

impl UndefinedPage {
    pub(super) fn new() -> UndefinedPage {
        UndefinedPage { bits: Box::new([0; PAGE_DWORDS]), origins: FastMap::default() }
    }

    pub(super) fn bits(&self, dword: usize) -> u32 {
        self.bits[dword]
    }

    /// Records that the bytes in `mask` are written, and are undefined in `bits`; `origin` is theirs, if it is not the
    /// dword itself.
    #[inline]
    pub(super) fn set(&mut self, dword: usize, mask: u8, bits: u32, origin: Option<Origin>) {
        let mask = byte_bits(mask);
        self.bits[dword] = self.bits[dword] & !mask | bits & mask;
        match origin {
            Some(origin) => drop(self.origins.insert(dword as u32, origin)),
            None if self.bits[dword] == 0 && !self.origins.is_empty() => {
                self.origins.remove(&(dword as u32));
            }
            None => {}
        }
    }

    /// Marks bytes of the page as never written.
    pub(super) fn forget(&mut self, bytes: Range<u64>) {
        for byte in bytes {
            self.set((byte / 4) as usize, 1 << (byte % 4), u32::MAX, None);
        }
    }

    /// Whether the line of a dword has no undefined bits.
    pub(super) fn is_line_defined(&self, dword: usize) -> bool {
        let first = dword / LINE_DWORDS * LINE_DWORDS;
        self.bits[first..first + LINE_DWORDS].iter().all(|bits| *bits == 0)
    }
}
