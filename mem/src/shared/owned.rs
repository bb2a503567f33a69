//! Shared memory of our own: zero bytes that nobody but views reaches.
//!
//! Contract: the memory is zero at first and is given back with its owner. It comes from the allocator, and is handed over
//! to the world outside of Rust before the first access and taken back after the last: what [`access`](super::access) does
//! is defined outside of Rust's allocations only. Cost: one allocation; set-up and tests.

use alloc::alloc::alloc_zeroed;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::alloc::Layout;
use core::any::Any;
use core::ptr::NonNull;

/// The allocator has no memory of a view's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for a shared view of {len} bytes: ask for fewer")]
pub struct NoMemory {
    /// Bytes that were asked for.
    pub len: usize,
}

/// What came from the allocator, on loan to the world outside.
struct Lent {
    words: NonNull<[u64]>,
}

// SAFETY: the words are a number about memory here; they are touched by `drop` alone, after the last view.
unsafe impl Send for Lent {}
// SAFETY: as for `Send`; nothing can be done with a reference.
unsafe impl Sync for Lent {}

/// Memory of at least `len` zero bytes and its owner.
pub(super) fn zeroed(len: usize) -> Result<(NonNull<u8>, Arc<dyn Any + Send + Sync>), NoMemory> {
    let words = hand_over(zero_words(len.div_ceil(8)).ok_or(NoMemory { len })?);
    Ok((words.cast(), Arc::new(Lent { words })))
}

/// `count` zero words of the allocator's, which a box of them may take back. `None` where it has none, or where they are more
/// than an allocation may have.
fn zero_words(count: usize) -> Option<NonNull<[u64]>> {
    let layout = Layout::array::<u64>(count).ok()?;
    if layout.size() == 0 {
        return Some(NonNull::from(Box::leak(Box::<[u64]>::default())));
    }
    // SAFETY: the layout has a size.
    let first = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    Some(NonNull::slice_from_raw_parts(first.cast(), count))
}

/// Passes the memory through code that the compiler sees nothing of. For all it knows that code gave the allocation back
/// and found other memory at the same place, or the reverse: inline assembly may do what a foreign function may.
fn hand_over(words: NonNull<[u64]>) -> NonNull<[u64]> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    let words = {
        let count = words.len();
        let mut first = words.as_ptr().cast::<u64>();
        // SAFETY: no instruction is executed; what was in the register stays there, so it is not null.
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
        // SAFETY: the memory has the layout of a box of so many words, comes from the allocator of boxes, and holds words, as
        // any bytes are; this is the only owner, and views, which count it, are gone.
        drop(unsafe { Box::from_raw(hand_over(self.words).as_ptr()) });
    }
}
