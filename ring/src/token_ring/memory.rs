//! The memory operations that the token rings need, so that the same code runs over a mapping and under a model
//! checker.
//!
//! Contract: each dword is loaded and stored as a whole. The two fences are the only order. Cost over a
//! [`SharedView`]: a plain move per access; [`RingMemory::fence_loads`] is free on x86-64,
//! [`RingMemory::fence_stores`] is one `sfence`.

use core::sync::atomic::{Ordering, fence};
use zrt_mem::SharedView;

/// Dwords that another party reads and writes concurrently.
pub trait RingMemory {
    /// Number of dwords.
    fn dwords(&self) -> usize;

    /// Loads one dword, in no order with other accesses.
    fn load(&self, dword: usize) -> u32;

    /// Stores one dword, in no order with other accesses.
    fn store(&self, dword: usize, value: u32);

    /// Orders loads: those before it are done before loads and stores after it.
    fn fence_loads(&self);

    /// Orders stores: loads and stores before it are done, and the stores on their way to the reader, before any
    /// store after it. For memory behind a BAR that means that nothing stays in a write-combining buffer.
    fn fence_stores(&self);
}

impl RingMemory for SharedView {
    #[inline(always)]
    fn dwords(&self) -> usize {
        self.len() / 4
    }

    #[inline(always)]
    fn load(&self, dword: usize) -> u32 {
        self.load_u32(dword * 4)
    }

    #[inline(always)]
    fn store(&self, dword: usize, value: u32) {
        self.store_u32(dword * 4, value);
    }

    #[inline(always)]
    fn fence_loads(&self) {
        fence(Ordering::Acquire);
    }

    #[inline(always)]
    fn fence_stores(&self) {
        zrt_mem::shared::fence_stores();
    }
}
