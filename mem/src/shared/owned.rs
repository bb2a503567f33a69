//! Shared memory of our own: zero bytes that nobody but views reaches.
//!
//! Contract: the memory is zero at first and is given back with its owner. It comes from the allocator, and is handed over
//! to the world outside of Rust before the first access and taken back after the last: what [`access`](super::access) does
//! is defined outside of Rust's allocations only. Cost: one allocation; set-up and tests.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::any::Any;
use core::ptr::NonNull;

/// What came from the allocator, on loan to the world outside.
struct Lent {
    words: NonNull<[u64]>,
}

// SAFETY: the words are a number about memory here; they are touched by `drop` alone, after the last view.
unsafe impl Send for Lent {}
// SAFETY: as for `Send`; nothing can be done with a reference.
unsafe impl Sync for Lent {}

/// Memory of at least `len` zero bytes and its owner.
pub(super) fn zeroed(len: usize) -> (NonNull<u8>, Arc<dyn Any + Send + Sync>) {
    let words: &mut [u64] = Box::leak(vec![0; len.div_ceil(8)].into_boxed_slice());
    let words = hand_over(NonNull::from(words));
    (words.cast(), Arc::new(Lent { words }))
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
        // SAFETY: the memory is that of the box which `zeroed` gave up, as words that any bytes are, and this is the only
        // owner; views, which count it, are gone.
        drop(unsafe { Box::from_raw(hand_over(self.words).as_ptr()) });
    }
}
