//! The one view of memory that another party (the GPU, the virtual GPU, the kernel) reads and writes concurrently.
//!
//! Contract: a [`SharedView`] never yields a reference to the memory. Every access is one load or store of the
//! named width, which the processor performs as a whole (relaxed unless the name says otherwise). A concurrent
//! writer, of whatever width, causes a stale or new value, never undefined behaviour: see `access`. A view counts
//! the owner of its memory: the memory stays for as long as any view of it does. Offsets are bytes from the start
//! of the view and are checked. An offset outside the view, or misaligned for its width, panics, because the caller
//! computes it (our mistake); code that takes offsets from outside bytes must check with [`SharedView::len`] first.
//! No allocation, no system call. Cost: a bounds check and a plain move per access on x86-64; a clone or a slice is
//! one atomic count, so hot paths borrow.
//!
//! This is one of the three places of the workspace where `unsafe` is permitted; all of it is in the files of this
//! module: `access` (one load, store or exchange), `lanes` (those of a wave), `owned` (memory of our own).
#![allow(unsafe_code)]

mod access;
mod lanes;
mod owned;

pub use lanes::LANES;
pub use owned::NoMemory;

use access::{Exchange, Word};
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

/// Orders everything that this thread loaded or stored before it ahead of any later store, and empties the
/// processor's write-combining buffers. Memory behind a BAR needs this order (hardware reference §6.4).
///
/// `fence(SeqCst)` does not promise that. It orders ordinary memory, and the compiler may implement it as a locked
/// instruction on the stack. On x86-64 the processor keeps ordinary stores in order by itself; `sfence` is for the
/// write-combined ones.
#[inline(always)]
pub fn fence_stores() {
    fence(Ordering::Release);
    #[cfg(not(miri))]
    // SAFETY: the instruction needs SSE, which every x86-64 processor has, and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
    #[cfg(miri)]
    fence(Ordering::SeqCst);
}

/// Orders everything that this thread loaded or stored before it ahead of any later load or store, in memory of
/// every kind. No load of write-combined memory overtakes a store to another place, as it may after an ordinary
/// full fence.
#[inline(always)]
pub fn fence_all() {
    fence(Ordering::SeqCst);
    #[cfg(not(miri))]
    // SAFETY: the instruction needs SSE2, which every x86-64 processor has, and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_mfence();
    }
}

/// A bounds-checked window on shared memory. The memory stays for as long as the window or any clone or slice of it
/// does.
#[derive(Clone)]
pub struct SharedView {
    base: NonNull<u8>,
    len: usize,
    /// Releases the memory when it is dropped.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory may be read and written by any thread at any time (`SharedView::new`'s caller promised it), and
// stays for as long as `owner`, which may be dropped on any thread.
unsafe impl Send for SharedView {}
// SAFETY: as for `Send`; the view has no interior state of its own.
unsafe impl Sync for SharedView {}

impl SharedView {
    /// Makes a view of `len` bytes at `base`, which `owner` releases when it is dropped.
    ///
    /// # Safety
    /// Until `owner` is dropped, the range is mapped readable and writable (or read-only, if every holder of the
    /// view only reads) and lies outside every Rust allocation: the program accesses it through views only. `base`
    /// is aligned to 8 bytes.
    pub unsafe fn new(base: NonNull<u8>, len: usize, owner: Arc<dyn Any + Send + Sync>) -> SharedView {
        assert!(base.as_ptr() as usize % 8 == 0, "a shared view starts on an 8-byte boundary");
        SharedView { base, len, owner }
    }

    /// A view of `len` zero bytes of its own, for tests and for models of the other side.
    ///
    /// # Errors
    /// [`NoMemory`] if the allocator cannot provide that length; no length panics.
    pub fn zeroed(len: usize) -> Result<SharedView, NoMemory> {
        let (base, owner) = owned::zeroed(len)?;
        // SAFETY: `owner` keeps the range, which consists of `u64`s of at least `len` bytes in all and belongs to
        // nobody else.
        Ok(unsafe { SharedView::new(base, len, owner) })
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if the view has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first byte as the host sees it, for reports and fixed mappings.
    pub fn host_address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// The part `[offset, offset + len)`; `offset` must be a multiple of 8. Panics outside the view.
    pub fn slice(&self, offset: usize, len: usize) -> SharedView {
        assert!(offset % 8 == 0, "a shared view starts on an 8-byte boundary");
        assert!(offset <= self.len && len <= self.len - offset, "slice outside the view");
        // SAFETY: the offset is within the range that `new` was promised, and the part keeps its owner.
        let base = unsafe { self.base.add(offset) };
        SharedView { base, len, owner: self.owner.clone() }
    }

    #[inline(always)]
    fn check(&self, offset: usize, width: usize) {
        assert!(
            offset <= self.len && width <= self.len - offset && offset % width == 0,
            "access of {width} bytes at {offset} outside or misaligned in a view of {} bytes",
            self.len
        );
    }

    /// One load.
    ///
    /// # Safety
    /// The bytes of a `W` from `offset` on lie in the view, and `offset` is a multiple of the size of `W`.
    #[inline(always)]
    unsafe fn get<W: Word>(&self, offset: usize) -> W {
        // SAFETY: in the view, so in memory that `owner` keeps mapped; aligned, as the base is to 8.
        unsafe { W::load(self.base.as_ptr().add(offset).cast()) }
    }

    /// One store.
    ///
    /// # Safety
    /// As for `get`.
    #[inline(always)]
    unsafe fn put<W: Word>(&self, offset: usize, value: W) {
        // SAFETY: as in `get`.
        unsafe { W::store(self.base.as_ptr().add(offset).cast(), value) }
    }

    /// Replaces the word by `next` of it, in one step. Returns the old value. Panics if misaligned or outside.
    #[inline(always)]
    fn update<W: Exchange>(&self, offset: usize, next: impl Fn(W) -> W) -> W {
        self.check(offset, size_of::<W>());
        // SAFETY: just checked.
        let mut seen: W = unsafe { self.get(offset) };
        loop {
            // SAFETY: checked as for the load.
            let found =
                unsafe { W::compare_exchange(self.base.as_ptr().add(offset).cast(), seen, next(seen)) };
            if found == seen {
                return seen;
            }
            seen = found;
        }
    }
}

impl fmt::Debug for SharedView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedView({:#x} + {:#x})", self.host_address(), self.len)
    }
}

macro_rules! accessors {
    ($load:ident, $store:ident, $value:ty) => {
        impl SharedView {
            /// Relaxed load. Panics if the offset is misaligned or outside the view.
            #[inline(always)]
            pub fn $load(&self, offset: usize) -> $value {
                self.check(offset, size_of::<$value>());
                // SAFETY: just checked.
                unsafe { self.get(offset) }
            }

            /// Relaxed store. Panics if the offset is misaligned or outside the view.
            #[inline(always)]
            pub fn $store(&self, offset: usize, value: $value) {
                self.check(offset, size_of::<$value>());
                // SAFETY: just checked.
                unsafe { self.put(offset, value) }
            }
        }
    };
}

accessors!(load_u8, store_u8, u8);
accessors!(load_u16, store_u16, u16);
accessors!(load_u32, store_u32, u32);
accessors!(load_u64, store_u64, u64);

impl SharedView {
    /// Acquire load of a dword: what was published before the matching release store is visible after it.
    #[inline(always)]
    pub fn load_u32_acquire(&self, offset: usize) -> u32 {
        let value = self.load_u32(offset);
        fence(Ordering::Acquire);
        value
    }

    /// Release store of a dword.
    #[inline(always)]
    pub fn store_u32_release(&self, offset: usize, value: u32) {
        fence(Ordering::Release);
        self.store_u32(offset, value);
    }

    /// Acquire load of a quadword.
    #[inline(always)]
    pub fn load_u64_acquire(&self, offset: usize) -> u64 {
        let value = self.load_u64(offset);
        fence(Ordering::Acquire);
        value
    }

    /// Release store of a quadword: one aligned 64-bit store, as a doorbell requires.
    #[inline(always)]
    pub fn store_u64_release(&self, offset: usize, value: u64) {
        fence(Ordering::Release);
        self.store_u64(offset, value);
    }

    /// Replaces a dword by `next` of it, in one step that acquires and releases. Returns the old value. `next` runs
    /// again if another writer came first. Panics if misaligned or outside.
    #[inline(always)]
    pub fn update_u32(&self, offset: usize, next: impl Fn(u32) -> u32) -> u32 {
        self.update(offset, next)
    }

    /// Replaces a quadword, likewise.
    #[inline(always)]
    pub fn update_u64(&self, offset: usize, next: impl Fn(u64) -> u64) -> u64 {
        self.update(offset, next)
    }

    /// Copies out of the view, in ascending order. Each aligned halfword, dword and quadword of the copy is read at
    /// once.
    pub fn read_bytes(&self, offset: usize, destination: &mut [u8]) {
        assert!(offset <= self.len && destination.len() <= self.len - offset, "read outside the view");
        let mut at = 0;
        while at < destination.len() {
            let here = offset + at;
            let width = widest(here, destination.len() - at);
            let bytes = &mut destination[at..at + width];
            match width {
                8 => bytes.copy_from_slice(&self.load_u64(here).to_ne_bytes()),
                4 => bytes.copy_from_slice(&self.load_u32(here).to_ne_bytes()),
                2 => bytes.copy_from_slice(&self.load_u16(here).to_ne_bytes()),
                _ => bytes[0] = self.load_u8(here),
            }
            at += width;
        }
    }

    /// Copies into the view, in ascending order. Another side sees aligned halfwords, dwords and quadwords of the copy
    /// whole.
    pub fn write_bytes(&self, offset: usize, source: &[u8]) {
        assert!(offset <= self.len && source.len() <= self.len - offset, "write outside the view");
        let mut at = 0;
        while at < source.len() {
            let here = offset + at;
            let width = widest(here, source.len() - at);
            let source = &source[at..];
            match width {
                8 => self.store_u64(here, u64::from_ne_bytes(first(source))),
                4 => self.store_u32(here, u32::from_ne_bytes(first(source))),
                2 => self.store_u16(here, u16::from_ne_bytes(first(source))),
                _ => self.store_u8(here, source[0]),
            }
            at += width;
        }
    }

    /// Sets `len` bytes from `offset` to `value`. Another side sees aligned halfwords, dwords and quadwords of them
    /// whole.
    pub fn fill(&self, offset: usize, len: usize, value: u8) {
        assert!(offset <= self.len && len <= self.len - offset, "fill outside the view");
        let wide = u64::from_ne_bytes([value; 8]);
        let end = offset + len;
        let mut at = offset;
        while at < end {
            let width = widest(at, end - at);
            match width {
                8 => self.store_u64(at, wide),
                4 => self.store_u32(at, wide as u32),
                2 => self.store_u16(at, wide as u16),
                _ => self.store_u8(at, value),
            }
            at += width;
        }
    }
}

/// Bytes of the widest aligned access at `offset` that takes no more than `left` bytes, of which there is one or more.
#[inline(always)]
fn widest(offset: usize, left: usize) -> usize {
    [8, 4, 2].into_iter().find(|width| offset.is_multiple_of(*width) && *width <= left).unwrap_or(1)
}

/// The first bytes of a slice that has as many.
#[inline(always)]
fn first<const LEN: usize>(source: &[u8]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(&source[..LEN]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A copy has one access for each of these, so no other side sees an aligned word of it torn.
    #[test]
    fn an_access_is_as_wide_as_alignment_and_what_is_left_allow() {
        for offset in 0..16 {
            for left in 1..20 {
                let width = widest(offset, left);
                let fits = |width: usize| offset % width == 0 && width <= left;
                assert!([1, 2, 4, 8].contains(&width) && fits(width), "{offset} {left}: {width}");
                assert!(width == 8 || !fits(2 * width), "{offset} {left}: {width}");
            }
        }
    }

    #[test]
    fn copies_keep_every_byte_at_every_alignment() {
        let view = SharedView::zeroed(64).expect("memory");
        let step = if cfg!(miri) { 7 } else { 1 };
        for offset in 0..9 {
            for len in (0..40).step_by(step) {
                view.fill(0, 64, 0xa5);
                let source: Vec<u8> = (0..len as u8).collect();
                view.write_bytes(offset, &source);
                let mut all = [0u8; 64];
                view.read_bytes(0, &mut all);
                assert_eq!(&all[offset..offset + len], &source[..]);
                assert!(all[..offset].iter().chain(&all[offset + len..]).all(|byte| *byte == 0xa5));
                let mut part = [0x5a; 64];
                view.read_bytes(offset, &mut part[..len]);
                assert_eq!(&part[..len], &source[..]);
                assert!(part[len..].iter().all(|byte| *byte == 0x5a));
                view.fill(offset, len, 0x3c);
                view.read_bytes(0, &mut all);
                assert!(all[offset..offset + len].iter().all(|byte| *byte == 0x3c));
                assert!(all[..offset].iter().chain(&all[offset + len..]).all(|byte| *byte == 0xa5));
            }
        }
    }

    /// Keeps this thread on the processor of this number, of those that it may use. On a busy machine two threads can
    /// otherwise share one for long, and then they never run at the same time.
    fn stay_on(number: usize) {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        // Where this is refused, the test sees less, but what it sees is as true.
        let Ok(all) = sched_getaffinity(None) else { return };
        if let Some(processor) = (0..CpuSet::MAX_CPU).filter(|one| all.is_set(*one)).nth(number) {
            let mut own = CpuSet::new();
            own.set(processor);
            let _ = sched_setaffinity(None, &own);
        }
    }

    /// Each of two threads stores and then looks for the other's store. With a full fence between, at least one sees
    /// it: without the fence, a processor that lets loads overtake stores, as x86-64 does, shows that neither does.
    #[test]
    fn no_load_overtakes_a_store_before_a_full_fence() {
        let rounds = if cfg!(miri) { 20 } else { 100_000 };
        let view = SharedView::zeroed(256).expect("memory");
        // Whether this side has seen the other's store, by round.
        let side = &|number: usize, fence: &dyn Fn()| -> Vec<bool> {
            if !cfg!(miri) {
                stay_on(number);
            }
            let (own, other) = (number * 128, (1 - number) * 128);
            let in_round = |round: u32| {
                // Both begin at once: the last to come lets the other go on.
                view.store_u32_release(own + 8, round);
                let mut polls = 0;
                while view.load_u32_acquire(other + 8) < round {
                    polls += 1;
                    if polls % 1000 == 0 { std::thread::yield_now() } else { core::hint::spin_loop() }
                }
                // Which of them comes first, and by how much, differs from round to round.
                (0..round >> (5 * number) & 31).for_each(|step| _ = core::hint::black_box(step));
                view.store_u32(own, round);
                fence();
                view.load_u32(other) >= round
            };
            (1..=rounds).map(in_round).collect()
        };
        let fences: [&(dyn Fn() + Sync); 2] = [&fence_all, &|| crate::hdp::HostPath::fence_all(&view)];
        for (number, fence) in fences.into_iter().enumerate() {
            view.fill(0, 256, 0);
            let seen = std::thread::scope(|scope| {
                let sides = [0, 1].map(|number| scope.spawn(move || side(number, fence)));
                sides.map(|side| side.join().expect("no side fails"))
            });
            let neither = seen[0].iter().zip(&seen[1]).filter(|(one, other)| !*one && !*other).count();
            assert_eq!(neither, 0, "of {rounds} rounds with fence {number}");
        }
    }

    #[test]
    fn accesses_that_order_reach_the_same_words() {
        let view = SharedView::zeroed(32).expect("memory");
        view.store_u32_release(4, 0x0123_4567);
        view.store_u64_release(8, 0x89ab_cdef_0011_2233);
        assert_eq!((view.load_u32(4), view.load_u64(8)), (0x0123_4567, 0x89ab_cdef_0011_2233));
        view.store_u32(16, 0x5566_7788);
        view.store_u64(24, 0x99aa_bbcc_ddee_ff00);
        assert_eq!(view.load_u32_acquire(16), 0x5566_7788);
        assert_eq!(view.load_u64_acquire(24), 0x99aa_bbcc_ddee_ff00);
        assert_eq!((view.load_u32(0), view.load_u32(20)), (0, 0), "the neighbours are left alone");
    }

    #[test]
    fn a_slice_lies_where_it_was_cut() {
        let view = SharedView::zeroed(64).expect("memory");
        let part = view.slice(24, 8);
        assert_eq!(part.host_address(), view.host_address() + 24);
        assert!(view.host_address() != 0 && view.host_address() % 8 == 0);
    }

    #[test]
    fn a_view_says_where_it_lies_and_whether_it_has_bytes() {
        let view = SharedView::zeroed(64).expect("memory");
        let (part, none) = (view.slice(16, 24), view.slice(64, 0));
        assert!(!part.is_empty() && none.is_empty());
        let first = view.host_address() + 16;
        assert_eq!(format!("{part:?}"), format!("SharedView(0x{first:x} + 0x18)"));
    }

    #[test]
    fn a_length_that_no_memory_has_is_an_error() {
        let absurd = [usize::MAX, usize::MAX - 7, isize::MAX as usize, isize::MAX as usize - 7, 1 << 62];
        // Miri never returns null; the first three exceed the largest possible allocation.
        for &len in if cfg!(miri) { &absurd[..3] } else { &absurd[..] } {
            assert_eq!(SharedView::zeroed(len).err(), Some(NoMemory { len }));
        }
        assert_eq!(
            NoMemory { len: 9 }.to_string(),
            "there is no memory for a shared view of 9 bytes: ask for fewer"
        );
        for len in [0, 1, 8, 9] {
            assert_eq!(SharedView::zeroed(len).map(|view| view.len()), Ok(len));
        }
    }

    /// Untouched, a view of the length of this one takes addresses and no memory; they are given back with it.
    #[test]
    #[cfg_attr(miri, ignore = "there is no process to look at")]
    fn memory_of_a_view_is_given_back() {
        let pages = || -> u64 {
            let text = std::fs::read_to_string("/proc/self/statm").expect("the process");
            text.split(' ').next().and_then(|number| number.parse().ok()).expect("its pages")
        };
        let before = pages();
        for _ in 0..64 {
            SharedView::zeroed(1 << 30).expect("memory");
        }
        assert!(pages() < before + (8 << 30) / 4096, "{before} pages before, {} after", pages());
    }

    /// Sends a message when it is dropped.
    struct Owner(std::sync::mpsc::Sender<()>);

    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.send(()).expect("the test listens");
        }
    }

    #[test]
    fn the_owner_stays_for_as_long_as_any_clone_or_slice() {
        let memory = SharedView::zeroed(64).expect("memory");
        let (told, dropped) = std::sync::mpsc::channel();
        // SAFETY: `memory` outlives the views of this test.
        let view = unsafe { SharedView::new(memory.base, memory.len(), Arc::new(Owner(told))) };
        let (clone, part) = (view.clone(), view.slice(8, 16));
        drop(view);
        drop(clone);
        assert!(dropped.try_recv().is_err(), "a part is left");
        part.store_u32(0, 7);
        assert_eq!(memory.load_u32(8), 7);
        drop(part);
        assert_eq!(dropped.try_recv(), Ok(()));
    }

    #[test]
    fn a_slice_outlives_the_view_it_was_cut_from() {
        let part = {
            let whole = SharedView::zeroed(256).expect("memory");
            whole.store_u64(128, 0x0123_4567_89ab_cdef);
            whole.slice(128, 64)
        };
        assert_eq!((part.load_u64(0), part.load_u64(8)), (0x0123_4567_89ab_cdef, 0));
    }

    #[test]
    fn updates_of_several_threads_are_all_counted() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };
        let view = SharedView::zeroed(16).expect("memory");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        view.update_u32(4, |value| value + 1);
                        view.update_u64(8, |value| value + (1 << 32));
                    }
                });
            }
        });
        assert_eq!(view.load_u32(4), 2 * ROUNDS);
        assert_eq!(view.load_u64(8), u64::from(2 * ROUNDS) << 32);
        assert_eq!(view.update_u32(4, |_| 9), 2 * ROUNDS, "the old value comes back");
        assert_eq!((view.load_u32(0), view.load_u32(4)), (0, 9), "the neighbour is left alone");
    }

    /// A kernel's accesses with atomics next to those of a copying host: different widths, same bytes.
    #[test]
    #[cfg_attr(
        miri,
        ignore = "accesses of different widths meet, which Miri's memory model has no place for"
    )]
    fn accesses_of_all_widths_meet_and_no_width_tears() {
        let view = SharedView::zeroed(64).expect("memory");
        std::thread::scope(|scope| {
            scope.spawn(|| (0..20_000).for_each(|round| view.fill(0, 64, round as u8)));
            scope.spawn(|| (0..20_000).for_each(|round| view.store_u8(round % 64, 7)));
            for _ in 0..20_000 {
                view.update_u32(60, |value| value);
                let half = view.load_u64(0);
                // All bytes of a fill are equal, except those that were stored separately.
                let bytes = half.to_le_bytes();
                let others: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 7).collect();
                assert!(others.windows(2).all(|pair| pair[0] == pair[1]), "{bytes:?}");
            }
        });
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn outside_is_our_mistake() {
        SharedView::zeroed(16).expect("memory").load_u32(16);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn misaligned_is_our_mistake() {
        SharedView::zeroed(16).expect("memory").load_u32(2);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn a_misaligned_update_is_our_mistake() {
        SharedView::zeroed(16).expect("memory").update_u64(4, |value| value);
    }

    #[test]
    #[should_panic(expected = "slice outside the view")]
    fn a_slice_outside_is_our_mistake() {
        SharedView::zeroed(16).expect("memory").slice(8, 16);
    }

    #[test]
    fn copies_outside_are_our_mistake_and_touch_nothing() {
        let view = SharedView::zeroed(16).expect("memory").slice(0, 12);
        let panics =
            |access: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(access)).is_err();
        for (offset, len) in [(0, 13), (8, 5), (13, 0), (usize::MAX, 1), (usize::MAX - 7, 16)] {
            assert!(panics(&|| view.fill(offset, len, 1)), "fill {offset} {len}");
            assert!(panics(&|| view.write_bytes(offset, &[1; 16][..len])), "write {offset} {len}");
            assert!(panics(&|| view.read_bytes(offset, &mut [1; 16][..len])), "read {offset} {len}");
        }
        assert_eq!((view.load_u64(0), view.load_u32(8)), (0, 0));
    }
}
