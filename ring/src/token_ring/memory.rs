//! What the token rings need of memory, so that the same code runs over a mapping and under a model checker.
//!
//! Contract: dwords are loaded and stored whole, in no order but that of the two fences. Cost over a
//! [`SharedView`]: a plain move per access; [`RingMemory::fence_loads`] is free on x86-64,
//! [`RingMemory::fence_stores`] is one `sfence`.

use core::sync::atomic::{Ordering, fence};
use zrt_mem::SharedView;

/// Dwords that another party reads and writes meanwhile.
pub trait RingMemory {
    /// How many there are.
    fn dwords(&self) -> usize;

    /// One dword, in no order with other accesses.
    fn load(&self, dword: usize) -> u32;

    /// Stores one dword, in no order with other accesses.
    fn store(&self, dword: usize, value: u32);

    /// Loads before it are done before loads and stores after it.
    fn fence_loads(&self);

    /// Loads and stores before it are done, and the stores on their way to whoever watches, before any store
    /// after it. For memory behind a BAR that means: nothing stays in a write-combining buffer.
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
