//! Accesses of a wave: 32 lanes at a time, and runs of consecutive words.
//!
//! Contract: as for single-word accesses. An access outside the view or misaligned panics before anything is
//! accessed. Row counts come from the caller's slice and are multiplied with overflow checks, since rows may be
//! zero-sized. Cost: one vector check, then one move per dword, or per two where the offset permits.

use super::SharedView;

/// The panic message for a lane that the caller should have checked.
const OUTSIDE: &str = "a lane's access is outside or misaligned in a shared view";
/// Lanes of the group operations: those of one wave32.
pub const LANES: usize = 32;

/// Keeps the compiler from merging the uses before and after. The check of all lanes is vector code and the
/// accesses use them one by one; merged, both would run one by one.
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
        // Comparing without a branch lets all lanes be compared at once.
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
                // SAFETY: `check_lanes` has seen that the lane's dwords lie in the view and that `base` and `delta` are
                // multiples of 4.
                row[lane] = unsafe { self.get(base + *delta as usize + 4 * word) };
            }
        }
    }

    /// Relaxed dword stores for the lanes whose bit is set in `lanes`, in ascending order: the reverse of
    /// [`SharedView::gather_u32`]. Panics if the place of any lane, storing or not, lies outside the view or is
    /// misaligned.
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
                unsafe { self.put(base + *delta as usize + 4 * word, row[lane]) };
            }
        }
    }

    /// Relaxed byte loads for 32 lanes, zero-extended. Panics if any lies outside the view.
    #[inline(always)]
    pub fn gather_u8(&self, base: usize, deltas: &[u32; LANES], row: &mut [u32; LANES]) {
        self.check_lanes(base, deltas, 1, 1);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            // SAFETY: `check_lanes` has seen that the byte lies in the view.
            let byte: u8 = unsafe { self.get(base + *delta as usize) };
            row[lane] = u32::from(byte);
        }
    }

    /// Relaxed 16-bit loads for 32 lanes, zero-extended. Panics if any lies outside the view or is misaligned.
    #[inline(always)]
    pub fn gather_u16(&self, base: usize, deltas: &[u32; LANES], row: &mut [u32; LANES]) {
        self.check_lanes(base, deltas, 2, 2);
        let deltas = apart(deltas);
        for (lane, delta) in deltas.iter().enumerate() {
            // SAFETY: `check_lanes` has seen that the two bytes lie in the view and that `base` and `delta` are even.
            let half: u16 = unsafe { self.get(base + *delta as usize) };
            row[lane] = u32::from(half);
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

    /// Relaxed loads of 32 consecutive 16-bit values, zero-extended, as 64-bit loads where the offset permits.
    /// Panics if any lies outside the view or `offset` is odd.
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
            // SAFETY: `check_words` has seen that all these dwords lie in the view and that `offset` is a multiple of
            // 4.
            *word = unsafe { self.get(offset + 4 * index) };
        }
    }

    /// True if the dwords from `offset` on equal `words`, by relaxed loads. Panics if any lies outside the view or
    /// `offset` is misaligned.
    pub fn equals_words(&self, offset: usize, words: &[u32]) -> bool {
        self.check_words(offset, words.len());
        words.iter().enumerate().all(|(index, word)| self.load_u32(offset + 4 * index) == *word)
    }

    /// Relaxed loads of `32 * rows.len()` consecutive dwords, dealt out to the rows in turn: lane `i`'s dword `j`
    /// is at `offset + 4 (rows.len() i + j)`. Where the offset permits, one 64-bit load covers two dwords. Panics
    /// if any lies outside the view or `offset` is misaligned.
    #[inline(always)]
    pub fn load_interleaved<R: AsMut<[u32; LANES]>>(&self, offset: usize, rows: &mut [R]) {
        let count = rows.len();
        self.check_rows(offset, count);
        if offset % 8 != 0 || count % 2 != 0 && count != 1 {
            for (word, row) in rows.iter_mut().enumerate() {
                for (lane, value) in row.as_mut().iter_mut().enumerate() {
                    // SAFETY: `check_rows` has verified that all `LANES * count` dwords lie in the view, so nothing
                    // overflows, and that `offset` is a multiple of 4.
                    *value = unsafe { self.get(offset + 4 * (count * lane + word)) };
                }
            }
            return;
        }
        let wide = |pair: usize| -> u64 {
            // SAFETY: every pair requested below is one of the `LANES * count / 2` that `check_rows` has verified
            // to lie in the view; `offset` is a multiple of 8 here.
            unsafe { self.get(offset + 8 * pair) }
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
        self.check_rows(offset, count);
        if offset % 8 != 0 || count % 2 != 0 && count != 1 {
            for lane in 0..LANES {
                for (word, row) in rows.iter().enumerate() {
                    // SAFETY: as in `load_interleaved`.
                    unsafe { self.put(offset + 4 * (count * lane + word), row.as_ref()[lane]) };
                }
            }
            return;
        }
        let store = |pair: usize, low: u32, high: u32| {
            // SAFETY: as in `load_interleaved`.
            unsafe { self.put(offset + 8 * pair, u64::from(low) | u64::from(high) << 32) };
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

    /// Panics unless `LANES` dwords for each of `count` rows lie in the view from `offset` on.
    #[inline(always)]
    fn check_rows(&self, offset: usize, count: usize) {
        // Zero-sized rows can outnumber the dwords of the address space; the product then saturates, and no view is
        // that long.
        self.check_words(offset, count.saturating_mul(LANES));
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

    /// A view that contains these words.
    fn words(words: impl Iterator<Item = u64>) -> SharedView {
        let words: Vec<u64> = words.collect();
        let view = SharedView::zeroed(8 * words.len()).expect("memory");
        words.iter().enumerate().for_each(|(index, word)| view.store_u64(8 * index, *word));
        view
    }

    /// An access that is wide says so where it fails.
    #[test]
    #[should_panic = "access of 8 bytes at 16 outside"]
    fn a_run_of_bytes_is_loaded_by_quadwords() {
        words(0..2).load_u8_run(0, &mut [0; LANES]);
    }

    #[test]
    #[should_panic = "access of 8 bytes at 16 outside"]
    fn a_run_of_halfwords_is_loaded_by_quadwords() {
        words(0..2).load_u16_run(0, &mut [0; LANES]);
    }

    #[test]
    fn lanes_gather_and_scatter_what_the_plain_accessors_see() {
        let view = words((0..64).map(|index| 0x0123_4567_89ab_cdef * (index + 1)));
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
        let view = SharedView::zeroed(640).expect("memory");
        fn check<const ROWS: usize>(view: &SharedView, offset: usize) {
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
            check::<1>(&view, offset);
            check::<2>(&view, offset);
            check::<3>(&view, offset);
            check::<4>(&view, offset);
        }
    }

    #[test]
    fn runs_of_narrow_values_are_zero_extended() {
        let view = words((3..19).map(|index: u64| index.wrapping_mul(0xfedc_ba98_7654_3210)));
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
        SharedView::zeroed(256).expect("memory").load_interleaved(8, &mut [Row([0; LANES]); 2]);
    }

    #[test]
    #[should_panic(expected = "outside or misaligned")]
    fn a_lane_outside_is_our_mistake() {
        let mut deltas = [0; LANES];
        deltas[31] = 28;
        SharedView::zeroed(32).expect("memory").gather_u32(0, &deltas, &mut [[0; LANES]; 2]);
    }

    /// True if every lane access with these offsets panics and leaves the view unchanged.
    fn all_refuse(view: &SharedView, base: usize, deltas: &[u32; LANES], alignments: &[usize]) -> bool {
        let refuses =
            |access: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(access)).is_err();
        alignments.iter().all(|alignment| match alignment {
            1 => refuses(&|| view.gather_u8(base, deltas, &mut [0; LANES])),
            2 => refuses(&|| view.gather_u16(base, deltas, &mut [0; LANES])),
            _ => {
                refuses(&|| view.gather_u32(base, deltas, &mut [[0; LANES]]))
                    && refuses(&|| view.scatter_u32(base, deltas, u32::MAX, &[[1; LANES]]))
                    && refuses(&|| view.scatter_u32(base, deltas, 0, &[[1; LANES]]))
            }
        }) && (0..view.len()).all(|at| view.load_u8(at) == 0)
    }

    #[test]
    fn one_misaligned_lane_is_refused_whichever_it_is() {
        let view = SharedView::zeroed(256).expect("memory");
        // Each refusal is a panic, which is slow under Miri.
        let step = if cfg!(miri) { 31 } else { 1 };
        for lane in (0..LANES).step_by(step) {
            let deltas = |delta| {
                let mut deltas: [u32; LANES] = core::array::from_fn(|lane| 4 * lane as u32);
                deltas[lane] = delta;
                deltas
            };
            // The last offset is outside as well.
            for delta in [1, 3, 125, 1001] {
                assert!(all_refuse(&view, 0, &deltas(delta), &[2, 4]), "lane {lane} at {delta}");
            }
            assert!(all_refuse(&view, 0, &deltas(2), &[4]), "lane {lane} at 2");
        }
        let none = [0; LANES];
        assert!(all_refuse(&view, 1, &none, &[2, 4]) && all_refuse(&view, 2, &none, &[4]), "the base");
    }

    #[test]
    fn lanes_are_held_against_the_last_byte() {
        let view = SharedView::zeroed(256).expect("memory").slice(0, 132);
        let (mut row, mut wide) = ([0; LANES], [[0; LANES]; 2]);
        let at = |last| {
            let mut deltas = [0; LANES];
            deltas[17] = last;
            deltas
        };
        view.gather_u8(4, &at(127), &mut row);
        view.gather_u16(4, &at(126), &mut row);
        view.gather_u32(4, &at(120), &mut wide);
        assert!(all_refuse(&view, 4, &at(128), &[1, 2, 4]));
        assert!(all_refuse(&view, 136, &[0; LANES], &[1, 2, 4]), "the base");
        assert!(all_refuse(&view, usize::MAX - 3, &[0; LANES], &[1, 2, 4]), "the base");
        let refused = std::panic::catch_unwind(|| {
            SharedView::zeroed(256).expect("memory").slice(0, 132).gather_u32(
                4,
                &at(124),
                &mut [[0; LANES]; 2],
            );
        });
        assert!(refused.is_err(), "the second dword of a lane");
    }

    /// Lanes of one to four dwords in a view of any length: the last place inside is accepted, the next is refused.
    #[test]
    fn lanes_of_several_dwords_are_held_against_the_last_byte() {
        fn check<const ROWS: usize>(len: usize) {
            let view = SharedView::zeroed(256).expect("memory").slice(0, len);
            let last = (len - 4 - 4 * ROWS) as u32 & !3;
            let refuses = |delta: u32, stores: bool| {
                let access = || match stores {
                    true => view.scatter_u32(4, &[delta; LANES], u32::MAX, &[[1; LANES]; ROWS]),
                    false => view.gather_u32(4, &[delta; LANES], &mut [[0; LANES]; ROWS]),
                };
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(access)).is_err()
            };
            for stores in [false, true] {
                assert!(!refuses(last, stores), "{ROWS} dwords at {last} of {len} bytes");
                assert!(refuses(last + 4, stores), "{ROWS} dwords at {} of {len} bytes", last + 4);
            }
        }
        let step = if cfg!(miri) { 3 } else { 1 };
        for len in (128..136).step_by(step) {
            check::<1>(len);
            check::<2>(len);
            check::<3>(len);
            check::<4>(len);
        }
    }

    #[test]
    fn words_are_held_against_the_last_dword() {
        let whole = SharedView::zeroed(64).expect("memory");
        whole.fill(0, 64, 0xee);
        let view = whole.slice(0, 40);
        let mut words = [0; 11];
        view.load_words(0, &mut words[..10]);
        assert_eq!(words, [[0xeeee_eeee; 10].as_slice(), &[0]].concat()[..]);
        view.load_words(40, &mut []);
        assert!(view.equals_words(36, &[0xeeee_eeee]));
        let refuses =
            |access: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(access)).is_err();
        for (offset, count) in [(0, 11), (4, 10), (40, 1), (44, 0), (2, 1), (usize::MAX - 3, 1)] {
            assert!(refuses(&|| view.load_words(offset, &mut vec![0; count])), "{count} at {offset}");
            assert!(refuses(&|| _ = view.equals_words(offset, &vec![0; count])), "{count} at {offset}");
        }
    }

    /// A zero-sized row: a slice can hold more of them than there are bytes.
    #[derive(Clone, Copy)]
    struct NoSize;

    impl AsRef<[u32; LANES]> for NoSize {
        fn as_ref(&self) -> &[u32; LANES] {
            &[0; LANES]
        }
    }

    impl AsMut<[u32; LANES]> for NoSize {
        fn as_mut(&mut self) -> &mut [u32; LANES] {
            unreachable!("refused before any row is asked for")
        }
    }

    /// 32 times this is 2^64.
    const ROWS_THAT_WRAP: usize = 1 << 59;

    #[test]
    #[cfg_attr(miri, ignore = "the interpreter looks at every row, of which there are 2^59")]
    #[should_panic(expected = "outside or misaligned")]
    fn more_rows_than_dwords_of_the_address_space_are_not_loaded() {
        SharedView::zeroed(8).expect("memory").load_interleaved(4, &mut [NoSize; ROWS_THAT_WRAP]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the interpreter looks at every row, of which there are 2^59")]
    #[should_panic(expected = "outside or misaligned")]
    fn more_rows_than_dwords_of_the_address_space_are_not_stored() {
        SharedView::zeroed(8).expect("memory").store_interleaved(4, &[NoSize; ROWS_THAT_WRAP]);
    }
}
