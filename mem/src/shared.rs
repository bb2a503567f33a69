//! The one view of memory that another party (the GPU, the virtual GPU, the kernel) reads and writes meanwhile.
//!
//! Contract: a [`SharedView`] never yields a reference to the memory; every access is an atomic load or store of the
//! width named (relaxed unless the name says otherwise), so a concurrent writer is a stale or new value, never
//! undefined behaviour. Offsets are bytes from the start of the view and are checked: an offset outside the view or
//! misaligned for its width panics, because the caller computes it (our mistake); code that takes offsets from
//! outside bytes must check with [`SharedView::len`] first. No allocation, no system call. Cost: a bounds check and
//! a plain move per access on x86-64.
//!
//! This is one of the three places of the workspace where `unsafe` is permitted.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// Whatever this thread loaded or stored before is done before anything that it stores after, and what it stored has left
/// the processor's write-combining buffers: the order that memory behind a BAR needs (hardware reference §6.4).
///
/// `fence(SeqCst)` does not promise that. It orders ordinary memory, and the compiler is free to make a locked instruction
/// on the stack of it. On x86-64 the processor holds ordinary stores in order by itself; `sfence` is for the combined ones.
#[inline(always)]
pub fn fence_stores() {
    fence(Ordering::Release);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction needs SSE, which every x86-64 processor has, and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
}

/// A bounds-checked window on shared memory. Copyable like a pointer; it does not own the mapping.
#[derive(Clone, Copy, Debug)]
pub struct SharedView {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: every access through the view is an atomic operation on memory that `SharedView::new`'s caller promised
// stays mapped for as long as any copy of the view is used, on any thread.
unsafe impl Send for SharedView {}
// SAFETY: as for `Send`; the view has no interior state of its own.
unsafe impl Sync for SharedView {}

impl SharedView {
    /// Makes a view of `len` bytes at `base`.
    ///
    /// # Safety
    /// For as long as the view or any copy of it is used: the range is mapped readable and writable (or the caller
    /// only reads, where it is mapped read-only), and no Rust reference to any byte of it exists. `base` is aligned
    /// to 8 bytes.
    pub unsafe fn new(base: NonNull<u8>, len: usize) -> SharedView {
        assert!(base.as_ptr() as usize % 8 == 0, "a shared view starts on an 8-byte boundary");
        SharedView { base, len }
    }

    /// A view of `len` zero bytes of its own, which are never freed: for tests and for models of the other side.
    pub fn leaked(len: usize) -> SharedView {
        let words = alloc::vec![0u64; len.div_ceil(8)].leak();
        let base = NonNull::from(words).cast::<u8>();
        // SAFETY: leaked memory is mapped for ever, `u64`s are aligned to 8 bytes, and the one reference to them has
        // just been given up.
        unsafe { SharedView::new(base, len) }
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True where the view has no bytes.
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
        // SAFETY: the offset is within the mapping that `new` was promised.
        let base = unsafe { self.base.add(offset) };
        SharedView { base, len }
    }

    #[inline(always)]
    fn check(&self, offset: usize, width: usize) {
        assert!(
            offset <= self.len && width <= self.len - offset && offset % width == 0,
            "access of {width} bytes at {offset} outside or misaligned in a view of {} bytes",
            self.len
        );
    }
}

macro_rules! accessors {
    ($load:ident, $store:ident, $atomic:ty, $value:ty) => {
        impl SharedView {
            /// Relaxed load. Panics if the offset is misaligned or outside the view.
            #[inline(always)]
            pub fn $load(&self, offset: usize) -> $value {
                self.check(offset, size_of::<$value>());
                // SAFETY: checked to lie inside the mapped range and to be aligned; atomics permit other writers.
                unsafe { &*self.base.as_ptr().add(offset).cast::<$atomic>() }.load(Ordering::Relaxed)
            }

            /// Relaxed store. Panics if the offset is misaligned or outside the view.
            #[inline(always)]
            pub fn $store(&self, offset: usize, value: $value) {
                self.check(offset, size_of::<$value>());
                // SAFETY: as for the load.
                unsafe { &*self.base.as_ptr().add(offset).cast::<$atomic>() }.store(value, Ordering::Relaxed)
            }
        }
    };
}

accessors!(load_u8, store_u8, AtomicU8, u8);
accessors!(load_u16, store_u16, AtomicU16, u16);
accessors!(load_u32, store_u32, AtomicU32, u32);
accessors!(load_u64, store_u64, AtomicU64, u64);

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

    /// The dword as an atomic, for read-modify-write operations. Panics if misaligned or outside.
    #[inline(always)]
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4);
        // SAFETY: checked to lie inside the mapped range and to be aligned; an atomic permits other writers.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU32>() }
    }

    /// The quadword as an atomic, for read-modify-write operations. Panics if misaligned or outside.
    #[inline(always)]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        // SAFETY: as for `atomic_u32`.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Copies out of the view, in ascending order, quadwords where both sides allow it.
    pub fn read_bytes(&self, offset: usize, destination: &mut [u8]) {
        assert!(offset <= self.len && destination.len() <= self.len - offset, "read outside the view");
        let mut at = 0;
        while at < destination.len() {
            let here = offset + at;
            if here % 8 == 0 && destination.len() - at >= 8 {
                destination[at..at + 8].copy_from_slice(&self.load_u64(here).to_ne_bytes());
                at += 8;
            } else {
                destination[at] = self.load_u8(here);
                at += 1;
            }
        }
    }

    /// Copies into the view, in ascending order, quadwords where both sides allow it.
    pub fn write_bytes(&self, offset: usize, source: &[u8]) {
        assert!(offset <= self.len && source.len() <= self.len - offset, "write outside the view");
        let mut at = 0;
        while at < source.len() {
            let here = offset + at;
            if here % 8 == 0 && source.len() - at >= 8 {
                let mut bytes = [0u8; 8];
                bytes.copy_from_slice(&source[at..at + 8]);
                self.store_u64(here, u64::from_ne_bytes(bytes));
                at += 8;
            } else {
                self.store_u8(here, source[at]);
                at += 1;
            }
        }
    }

    /// Sets `len` bytes from `offset` to `value`.
    pub fn fill(&self, offset: usize, len: usize, value: u8) {
        assert!(offset <= self.len && len <= self.len - offset, "fill outside the view");
        let wide = u64::from_ne_bytes([value; 8]);
        let mut at = offset;
        let end = offset + len;
        while at < end {
            if at % 8 == 0 && end - at >= 8 {
                self.store_u64(at, wide);
                at += 8;
            } else {
                self.store_u8(at, value);
                at += 1;
            }
        }
    }
}

/// What is said of a lane that the caller should have checked.
const OUTSIDE: &str = "a lane's access is outside or misaligned in a shared view";
/// Lanes of the group operations: those of one wave32.
pub const LANES: usize = 32;

/// Keeps the compiler from merging the uses before and after: a check of all lanes is vector code, the accesses use
/// them one by one, and merged both would be done one by one.
#[inline(always)]
fn apart(deltas: &[u32; LANES]) -> &[u32; LANES] {
    core::hint::black_box(deltas)
}

impl SharedView {
    /// Panics unless every lane's `width` bytes from `base + deltas[lane]` lie in the view and are aligned.
    #[inline(always)]
    fn check_lanes(&self, base: usize, deltas: &[u32; LANES], width: usize, alignment: usize) {
        assert!(base % alignment == 0 && base <= self.len && width <= self.len - base, "{OUTSIDE}");
        let limit = u32::try_from(self.len - base - width).unwrap_or(u32::MAX);
        // Compared without a branch, so that all lanes are compared at once.
        let mut is_wrong = false;
        for delta in deltas {
            is_wrong |= (*delta > limit) | (*delta % alignment as u32 != 0);
        }
        assert!(!is_wrong, "{OUTSIDE}");
    }

    /// Relaxed dword loads for 32 lanes: lane `i`'s dword `j` at `base + deltas[i] + 4 j` goes to `rows[j][i]`.
    /// Panics if any lies outside the view or is misaligned.
    #[inline(always)]
    pub fn gather_u32<const ROWS: usize>(
        &self,
        base: usize,
        deltas: &[u32; LANES],
        rows: &mut [[u32; LANES]; ROWS],
    ) {
        self.check_lanes(base, deltas, 4 * ROWS, 4);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            for (word, row) in rows.iter_mut().enumerate() {
                // SAFETY: `check_lanes` has seen that these four bytes lie in the mapped range and that the offset is
                // a multiple of 4 (the base of a view is one of 8); atomics permit other writers.
                let source = unsafe {
                    &*self.base.as_ptr().add(base + *delta as usize + 4 * word).cast::<AtomicU32>()
                };
                row[lane] = source.load(Ordering::Relaxed);
            }
        }
    }

    /// Relaxed dword stores for the lanes whose bit is set in `lanes`, in ascending order, the reverse of
    /// [`SharedView::gather_u32`]. Panics if any lane's place, also of a lane that does not store, lies outside the
    /// view or is misaligned.
    #[inline(always)]
    pub fn scatter_u32<const ROWS: usize>(
        &self,
        base: usize,
        deltas: &[u32; LANES],
        lanes: u32,
        rows: &[[u32; LANES]; ROWS],
    ) {
        self.check_lanes(base, deltas, 4 * ROWS, 4);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            if lanes >> lane & 1 == 0 {
                continue;
            }
            for (word, row) in rows.iter().enumerate() {
                // SAFETY: as in `gather_u32`.
                let place = unsafe {
                    &*self.base.as_ptr().add(base + *delta as usize + 4 * word).cast::<AtomicU32>()
                };
                place.store(row[lane], Ordering::Relaxed);
            }
        }
    }

    /// Relaxed byte loads for 32 lanes, zero-extended. Panics if any lies outside the view.
    #[inline(always)]
    pub fn gather_u8(&self, base: usize, deltas: &[u32; LANES], row: &mut [u32; LANES]) {
        self.check_lanes(base, deltas, 1, 1);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            // SAFETY: `check_lanes` has seen that the byte lies in the mapped range; atomics permit other writers.
            let source = unsafe { &*self.base.as_ptr().add(base + *delta as usize).cast::<AtomicU8>() };
            row[lane] = u32::from(source.load(Ordering::Relaxed));
        }
    }

    /// Relaxed 16-bit loads for 32 lanes, zero-extended. Panics if any lies outside the view or is misaligned.
    #[inline(always)]
    pub fn gather_u16(&self, base: usize, deltas: &[u32; LANES], row: &mut [u32; LANES]) {
        self.check_lanes(base, deltas, 2, 2);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            // SAFETY: `check_lanes` has seen that the two bytes lie in the mapped range and that the offset is even;
            // atomics permit other writers.
            let source = unsafe { &*self.base.as_ptr().add(base + *delta as usize).cast::<AtomicU16>() };
            row[lane] = u32::from(source.load(Ordering::Relaxed));
        }
    }

    /// Relaxed loads of 32 consecutive bytes, zero-extended, as 64-bit loads where the offset permits. Panics if any
    /// lies outside the view.
    #[inline(always)]
    pub fn load_u8_run(&self, offset: usize, row: &mut [u32; LANES]) {
        if offset % 8 != 0 {
            return self.gather_u8(offset, &core::array::from_fn(|lane| lane as u32), row);
        }
        for (index, values) in row.chunks_exact_mut(8).enumerate() {
            let bytes = self.load_u64(offset + 8 * index).to_le_bytes();
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value = u32::from(byte);
            }
        }
    }

    /// Relaxed loads of 32 consecutive 16-bit values, likewise. Panics if any lies outside the view or `offset` is
    /// odd.
    #[inline(always)]
    pub fn load_u16_run(&self, offset: usize, row: &mut [u32; LANES]) {
        if offset % 8 != 0 {
            return self.gather_u16(offset, &core::array::from_fn(|lane| 2 * lane as u32), row);
        }
        for (index, values) in row.chunks_exact_mut(4).enumerate() {
            let wide = self.load_u64(offset + 8 * index);
            for (half, value) in values.iter_mut().enumerate() {
                *value = (wide >> (16 * half)) as u32 & 0xFFFF;
            }
        }
    }

    /// Relaxed dword loads of consecutive dwords. Panics if any lies outside the view or `offset` is misaligned.
    #[inline(always)]
    pub fn load_words(&self, offset: usize, words: &mut [u32]) {
        self.check_words(offset, words.len());
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: `check_words` has seen that all these dwords lie in the mapped range and are aligned; atomics
            // permit other writers.
            let source = unsafe { &*self.base.as_ptr().add(offset + 4 * index).cast::<AtomicU32>() };
            *word = source.load(Ordering::Relaxed);
        }
    }

    /// Whether the dwords from `offset` on are those of `words`, by relaxed loads. Panics if any lies outside the view
    /// or `offset` is misaligned.
    pub fn equals_words(&self, offset: usize, words: &[u32]) -> bool {
        self.check_words(offset, words.len());
        words.iter().enumerate().all(|(index, word)| self.load_u32(offset + 4 * index) == *word)
    }

    /// Relaxed loads of `32 * rows.len()` consecutive dwords, dealt out to the rows in turn: lane `i`'s dword `j` is
    /// at `offset + 4 (rows.len() i + j)`. Where the offset permits, two dwords are one 64-bit load. Panics if any
    /// lies outside the view or `offset` is misaligned.
    #[inline(always)]
    pub fn load_interleaved<R: AsMut<[u32; LANES]>>(&self, offset: usize, rows: &mut [R]) {
        let count = rows.len();
        self.check_words(offset, count * LANES);
        if offset % 8 != 0 || count % 2 != 0 && count != 1 {
            for (word, row) in rows.iter_mut().enumerate() {
                for (lane, value) in row.as_mut().iter_mut().enumerate() {
                    let at = offset + 4 * (count * lane + word);
                    // SAFETY: as in `load_words`.
                    let source = unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() };
                    *value = source.load(Ordering::Relaxed);
                }
            }
            return;
        }
        let wide = |pair: usize| {
            // SAFETY: as in `load_words`, for both dwords of the pair; the offset is a multiple of 8.
            let source = unsafe { &*self.base.as_ptr().add(offset + 8 * pair).cast::<AtomicU64>() };
            source.load(Ordering::Relaxed)
        };
        if let [row] = rows {
            for (pair, values) in row.as_mut().chunks_exact_mut(2).enumerate() {
                let value = wide(pair);
                (values[0], values[1]) = (value as u32, (value >> 32) as u32);
            }
            return;
        }
        for (pair, rows) in rows.chunks_exact_mut(2).enumerate() {
            if let [low, high] = rows {
                let (low, high) = (low.as_mut(), high.as_mut());
                for lane in 0..LANES {
                    let value = wide(count / 2 * lane + pair);
                    (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
                }
            }
        }
    }

    /// Relaxed stores of `32 * rows.len()` consecutive dwords, the reverse of [`SharedView::load_interleaved`].
    #[inline(always)]
    pub fn store_interleaved<R: AsRef<[u32; LANES]>>(&self, offset: usize, rows: &[R]) {
        let count = rows.len();
        self.check_words(offset, count * LANES);
        if offset % 8 != 0 || count % 2 != 0 && count != 1 {
            for lane in 0..LANES {
                for (word, row) in rows.iter().enumerate() {
                    let at = offset + 4 * (count * lane + word);
                    // SAFETY: as in `load_words`.
                    let place = unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() };
                    place.store(row.as_ref()[lane], Ordering::Relaxed);
                }
            }
            return;
        }
        let store = |pair: usize, low: u32, high: u32| {
            // SAFETY: as in `load_words`, for both dwords of the pair; the offset is a multiple of 8.
            let place = unsafe { &*self.base.as_ptr().add(offset + 8 * pair).cast::<AtomicU64>() };
            place.store(u64::from(low) | u64::from(high) << 32, Ordering::Relaxed);
        };
        if let [row] = rows {
            for (pair, values) in row.as_ref().chunks_exact(2).enumerate() {
                store(pair, values[0], values[1]);
            }
            return;
        }
        for (pair, rows) in rows.chunks_exact(2).enumerate() {
            if let [low, high] = rows {
                for lane in 0..LANES {
                    store(count / 2 * lane + pair, low.as_ref()[lane], high.as_ref()[lane]);
                }
            }
        }
    }

    #[inline(always)]
    fn check_words(&self, offset: usize, count: usize) {
        assert!(
            offset % 4 == 0 && offset <= self.len && count <= (self.len - offset) / 4,
            "{count} dwords at {offset} outside or misaligned in a view of {} bytes",
            self.len
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn view(words: &mut Vec<u64>) -> SharedView {
        let len = words.len() * 8;
        let base = NonNull::new(words.as_mut_ptr().cast::<u8>()).expect("a vector's pointer is not null");
        // SAFETY: the vector outlives the view in each test and is not touched meanwhile.
        unsafe { SharedView::new(base, len) }
    }

    #[test]
    fn copies_keep_every_byte_at_every_alignment() {
        let mut words = vec![0u64; 8];
        let view = view(&mut words);
        for offset in 0..9 {
            for len in 0..40 {
                view.fill(0, 64, 0xa5);
                let source: Vec<u8> = (0..len as u8).collect();
                view.write_bytes(offset, &source);
                let mut all = [0u8; 64];
                view.read_bytes(0, &mut all);
                assert_eq!(&all[offset..offset + len], &source[..]);
                assert!(all[..offset].iter().chain(&all[offset + len..]).all(|byte| *byte == 0xa5));
            }
        }
    }

    #[test]
    fn lanes_gather_and_scatter_what_the_plain_accessors_see() {
        let mut words: Vec<u64> = (0..64).map(|index| 0x0123_4567_89ab_cdef * (index + 1)).collect();
        let view = view(&mut words);
        let deltas: [u32; LANES] = core::array::from_fn(|lane| (lane as u32 * 13 % 32) * 12);
        let mut rows = [[0; LANES]; 3];
        view.gather_u32(4, &deltas, &mut rows);
        let (mut bytes, mut halves) = ([0; LANES], [0; LANES]);
        view.gather_u8(5, &deltas, &mut bytes);
        view.gather_u16(6, &deltas, &mut halves);
        for lane in 0..LANES {
            let at = deltas[lane] as usize;
            assert_eq!(rows.map(|row| row[lane]), [4, 8, 12].map(|word| view.load_u32(at + word)));
            assert_eq!(bytes[lane], u32::from(view.load_u8(at + 5)));
            assert_eq!(halves[lane], u32::from(view.load_u16(at + 6)));
        }
        let before: Vec<u32> = (0..128).map(|word| view.load_u32(4 * word)).collect();
        view.scatter_u32(4, &deltas, 0x8000_0005, &[[1; LANES], [2; LANES], [3; LANES]]);
        for (word, old) in before.iter().enumerate() {
            let written = [0, 2, 31].iter().find_map(|lane| {
                let first = (4 + deltas[*lane]) as usize / 4;
                (first..first + 3).contains(&word).then(|| (word - first + 1) as u32)
            });
            assert_eq!(view.load_u32(4 * word), written.unwrap_or(*old));
        }
        let mut run = [0; 5];
        view.load_words(492, &mut run);
        assert!(view.equals_words(492, &run));
        run[4] ^= 1;
        assert!(!view.equals_words(492, &run));
        run[4] ^= 1;
        assert_eq!(run, core::array::from_fn(|index| view.load_u32(492 + 4 * index)));
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Row([u32; LANES]);

    impl AsRef<[u32; LANES]> for Row {
        fn as_ref(&self) -> &[u32; LANES] {
            &self.0
        }
    }

    impl AsMut<[u32; LANES]> for Row {
        fn as_mut(&mut self) -> &mut [u32; LANES] {
            &mut self.0
        }
    }

    #[test]
    fn interleaved_rows_are_consecutive_dwords() {
        let mut words = vec![0u64; 80];
        let view = view(&mut words);
        fn check<const ROWS: usize>(view: SharedView, offset: usize) {
            let row = |row| Row(core::array::from_fn(|lane| (row * 1000 + lane) as u32));
            let rows: [Row; ROWS] = core::array::from_fn(row);
            view.fill(0, 640, 0);
            view.store_interleaved(offset, &rows);
            for (row, values) in rows.iter().enumerate() {
                for (lane, value) in values.0.iter().enumerate() {
                    assert_eq!(view.load_u32(offset + 4 * (ROWS * lane + row)), *value);
                }
            }
            let mut back = [Row([0; LANES]); ROWS];
            view.load_interleaved(offset, &mut back);
            assert_eq!(back, rows);
        }
        for offset in [0, 4, 8, 12] {
            check::<1>(view, offset);
            check::<2>(view, offset);
            check::<3>(view, offset);
            check::<4>(view, offset);
        }
    }

    #[test]
    fn runs_of_narrow_values_are_zero_extended() {
        let mut words: Vec<u64> =
            (3..19).map(|index: u64| index.wrapping_mul(0xfedc_ba98_7654_3210)).collect();
        let view = view(&mut words);
        for offset in 0..16 {
            let mut row = [0; LANES];
            view.load_u8_run(offset, &mut row);
            assert_eq!(row, core::array::from_fn(|lane| u32::from(view.load_u8(offset + lane))));
            view.load_u16_run(2 * offset, &mut row);
            assert_eq!(row, core::array::from_fn(|lane| u32::from(view.load_u16(2 * offset + 2 * lane))));
        }
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn interleaved_rows_outside_are_our_mistake() {
        let mut words = vec![0u64; 32];
        view(&mut words).load_interleaved(8, &mut [Row([0; LANES]); 2]);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn a_lane_outside_is_our_mistake() {
        let mut words = vec![0u64; 4];
        let mut deltas = [0; LANES];
        deltas[31] = 28;
        view(&mut words).gather_u32(0, &deltas, &mut [[0; LANES]; 2]);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn outside_is_our_mistake() {
        let mut words = vec![0u64; 2];
        view(&mut words).load_u32(16);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn misaligned_is_our_mistake() {
        let mut words = vec![0u64; 2];
        view(&mut words).load_u32(2);
    }
}
