//! One access to shared memory: exactly the named instruction, with nothing for the compiler to reason about.
//!
//! Contract: the processor performs each access as a whole, whatever other threads or devices do to the same bytes,
//! and whatever the widths of their accesses. `std::sync::atomic` declares unsynchronised accesses of different
//! widths to the same bytes undefined, but a GPU's memory is accessed in all widths. Loads and stores are therefore
//! volatile, which is defined for memory outside of Rust allocations (`core::ptr::read_volatile`) and is one move
//! on x86-64; exchanges are a locked instruction. The memory model is the processor's, byte by byte
//! (docs/decisions, "Shared memory is not Rust's"). No access here makes anything in Rust's own memory visible to
//! another thread.
//!
//! Relaxed atomics stand in under Miri, which has no memory outside of allocations. There, concurrent accesses to the
//! same bytes must have one width. For another processor the crate does not compile: nothing is written here for one.

/// A width of access.
pub(super) trait Word: Copy {
    /// One load.
    ///
    /// # Safety
    /// `place` is aligned and lies in shared memory outside of Rust's allocations that stays readable during the
    /// load.
    unsafe fn load(place: *const Self) -> Self;

    /// One store.
    ///
    /// # Safety
    /// As for `load`, and writable.
    unsafe fn store(place: *mut Self, value: Self);
}

/// A width that supports exchanges.
pub(super) trait Exchange: Word + PartialEq {
    /// Stores `new` if the value is `current`, in one step that acquires and releases. Returns the old value.
    ///
    /// # Safety
    /// As for [`Word::store`].
    unsafe fn compare_exchange(place: *mut Self, current: Self, new: Self) -> Self;
}

#[cfg(not(target_arch = "x86_64"))]
compile_error!("shared memory is accessed by instructions of x86-64");

#[cfg(not(miri))]
mod processor {
    use super::{Exchange, Word};
    use core::arch::asm;

    macro_rules! words {
        ($($value:ty)*) => {
            $(impl Word for $value {
                #[inline(always)]
                unsafe fn load(place: *const $value) -> $value {
                    // SAFETY: aligned, and in memory outside of Rust's allocations where a read neither traps nor
                    // changes anything, as the caller promised; any bytes are a valid value.
                    unsafe { place.read_volatile() }
                }

                #[inline(always)]
                unsafe fn store(place: *mut $value, value: $value) {
                    // SAFETY: as for the load; nothing that Rust allocated is changed.
                    unsafe { place.write_volatile(value) }
                }
            })*
        };
    }

    words!(u8 u16 u32 u64);

    impl Exchange for u32 {
        #[inline(always)]
        unsafe fn compare_exchange(place: *mut u32, current: u32, new: u32) -> u32 {
            let found;
            // SAFETY: changes four bytes that belong to no Rust allocation and that the caller promised to be
            // mapped; of the registers it changes eax and the flags.
            unsafe {
                asm!(
                    "lock cmpxchg dword ptr [{place}], {new:e}",
                    place = in(reg) place,
                    new = in(reg) new,
                    inout("eax") current => found,
                    options(nostack),
                );
            }
            found
        }
    }

    impl Exchange for u64 {
        #[inline(always)]
        unsafe fn compare_exchange(place: *mut u64, current: u64, new: u64) -> u64 {
            let found;
            // SAFETY: as for 32 bits, with eight bytes and rax.
            unsafe {
                asm!(
                    "lock cmpxchg qword ptr [{place}], {new}",
                    place = in(reg) place,
                    new = in(reg) new,
                    inout("rax") current => found,
                    options(nostack),
                );
            }
            found
        }
    }
}

#[cfg(miri)]
mod stand_in {
    use super::{Exchange, Word};
    use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

    macro_rules! words {
        ($($value:ty, $atomic:ty;)*) => {
            $(impl Word for $value {
                unsafe fn load(place: *const $value) -> $value {
                    // SAFETY: aligned and readable, as the caller promised.
                    unsafe { <$atomic>::from_ptr(place.cast_mut()) }.load(Ordering::Relaxed)
                }

                unsafe fn store(place: *mut $value, value: $value) {
                    // SAFETY: aligned and writable, as the caller promised.
                    unsafe { <$atomic>::from_ptr(place) }.store(value, Ordering::Relaxed)
                }
            })*
        };
    }

    words! {
        u8, AtomicU8;
        u16, AtomicU16;
        u32, AtomicU32;
        u64, AtomicU64;
    }

    macro_rules! exchanges {
        ($($value:ty, $atomic:ty;)*) => {
            $(impl Exchange for $value {
                unsafe fn compare_exchange(place: *mut $value, current: $value, new: $value) -> $value {
                    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
                    // SAFETY: aligned and writable, as the caller promised.
                    let word = unsafe { <$atomic>::from_ptr(place) };
                    word.compare_exchange(current, new, success, failure).unwrap_or_else(|found| found)
                }
            })*
        };
    }

    exchanges! {
        u32, AtomicU32;
        u64, AtomicU64;
    }
}
