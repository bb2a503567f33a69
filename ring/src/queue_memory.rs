//! The memory operations that a command ring and a fence need, so that the same code runs over a mapping and under
//! a model checker.
//!
//! Contract: each word is loaded and stored as a whole. There is no order except what a name states. Offsets are
//! bytes. Cost over a [`SharedView`]: a bounds check and a plain move per access on x86-64;
//! [`QueueMemory::fence_stores`] is a store fence.

use zrt_mem::SharedView;
use zrt_mem::shared::fence_stores;

/// Memory that the device reads and writes concurrently.
pub trait QueueMemory {
    /// Length in bytes.
    fn len(&self) -> usize;

    /// True if the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Loads a dword, in no order with other accesses.
    fn load_u32(&self, offset: usize) -> u32;

    /// Stores a dword, in no order with other accesses.
    fn store_u32(&self, offset: usize, value: u32);

    /// Stores a dword. A reader that sees it also sees what was stored before it.
    fn store_u32_release(&self, offset: usize, value: u32);

    /// Loads a quadword. Loads after it see what was stored before the value.
    fn load_u64_acquire(&self, offset: usize) -> u64;

    /// Stores a quadword at once. A reader that sees it also sees what was stored before it in memory of the same
    /// kind.
    fn store_u64_release(&self, offset: usize, value: u64);

    /// Orders stores: those before it are visible before any store after it, in memory of any kind.
    fn fence_stores(&self);
}

impl QueueMemory for SharedView {
    #[inline(always)]
    fn len(&self) -> usize {
        SharedView::len(self)
    }

    #[inline(always)]
    fn load_u32(&self, offset: usize) -> u32 {
        SharedView::load_u32(self, offset)
    }

    #[inline(always)]
    fn store_u32(&self, offset: usize, value: u32) {
        SharedView::store_u32(self, offset, value);
    }

    #[inline(always)]
    fn store_u32_release(&self, offset: usize, value: u32) {
        SharedView::store_u32_release(self, offset, value);
    }

    #[inline(always)]
    fn load_u64_acquire(&self, offset: usize) -> u64 {
        SharedView::load_u64_acquire(self, offset)
    }

    #[inline(always)]
    fn store_u64_release(&self, offset: usize, value: u64) {
        SharedView::store_u64_release(self, offset, value);
    }

    #[inline(always)]
    fn fence_stores(&self) {
        fence_stores();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_empty_without_bytes() {
        let view = SharedView::zeroed(8).expect("memory");
        assert!(!QueueMemory::is_empty(&view) && QueueMemory::is_empty(&view.slice(8, 0)));
    }
}
