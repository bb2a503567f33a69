//! Shared memory of our own: zero bytes that are reachable through views only.
//!
//! Contract: the memory starts as zeros and is freed with its owner. It comes from the allocator, is handed over to
//! the world outside of Rust before the first access, and is taken back after the last: accesses by
//! [`access`](super::access) are defined only outside of Rust's allocations. Cost: one allocation; for set-up and
//! tests.

use alloc::alloc::alloc_zeroed;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::alloc::Layout;
use core::any::Any;
use core::ptr::NonNull;

/// The allocator has no memory for a view of that length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for a shared view of {len} bytes: ask for fewer")]
pub struct NoMemory {
    /// Bytes requested.
    pub len: usize,
}

/// Memory from the allocator, on loan to the world outside.
struct Lent {
    words: NonNull<[u64]>,
}

// SAFETY: here the words are only a number about memory; `drop` alone touches them, after the last view.
unsafe impl Send for Lent {}
// SAFETY: as for `Send`; nothing can be done with a reference.
unsafe impl Sync for Lent {}

/// At least `len` zero bytes of memory and their owner.
pub(super) fn zeroed(len: usize) -> Result<(NonNull<u8>, Arc<dyn Any + Send + Sync>), NoMemory> {
    let words = hand_over(zero_words(len.div_ceil(8)).ok_or(NoMemory { len })?);
    Ok((words.cast(), Arc::new(Lent { words })))
}

/// `count` zero words from the allocator, which a box may take back. `None` if it has no memory, or if an
/// allocation may not be that large.
fn zero_words(count: usize) -> Option<NonNull<[u64]>> {
    let layout = Layout::array::<u64>(count).ok()?;
    if layout.size() == 0 {
        return Some(NonNull::from(Box::leak(Box::<[u64]>::default())));
    }
    // SAFETY: the layout is not zero-sized.
    let first = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    Some(NonNull::slice_from_raw_parts(first.cast(), count))
}

/// Passes the memory through code that is opaque to the compiler. As far as the compiler knows, that code freed the
/// allocation and found other memory at the same place, or the reverse: inline assembly may do what a foreign
/// function may.
fn hand_over(words: NonNull<[u64]>) -> NonNull<[u64]> {
    #[cfg(not(miri))]
    let words = {
        let count = words.len();
        let mut first = words.as_ptr().cast::<u64>();
        // SAFETY: no instruction is executed; the register keeps its value, so it is not null.
        let first = unsafe {
            core::arch::asm!("/* {} */", inout(reg) first, options(nostack, preserves_flags));
            NonNull::new_unchecked(first)
        };
        NonNull::slice_from_raw_parts(first, count)
    };
    words
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the memory has the layout of a box of that many words, comes from the allocator that boxes use,
        // and holds words, as any bytes do; this is the only owner, and the views, which count it, are gone.
        drop(unsafe { Box::from_raw(hand_over(self.words).as_ptr()) });
    }
}
