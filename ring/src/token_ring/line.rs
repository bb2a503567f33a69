//! One line of 64 bytes of a token ring: the one place where an entry is published, and where one is taken.
//!
//! Writing: dwords 1 to 15, a fence, the header, a fence. The header is the entry's tag and dword 15 is the tag's
//! complement. The first fence makes an entry whole: without it the stores of a write-combined line may reach the
//! device in any order. The trailer is a second guard: a line that travels as two halves is not taken before both
//! have arrived, whatever their order. The last fence sends the header now rather than when the buffer happens to
//! be evicted.
//!
//! Reading: header and trailer, a fence, the other dwords, a fence, the header again. Cost: 16 stores and 2
//! fences, or 17 loads.

use super::memory::RingMemory;

/// Dwords of a line.
pub const LINE_DWORDS: usize = 16;
/// Bytes of a line: a cache line, and what a write-combining buffer holds.
pub const LINE_BYTES: usize = LINE_DWORDS * 4;

/// A line. Dword 0 is the tag and dword 15 the trailer, which belong to the ring; the others are the entry's.
pub type Line = [u32; LINE_DWORDS];

/// Place of the trailer.
const TRAILER: usize = LINE_DWORDS - 1;

/// The tag of entry `number`, counted from 0: `number` + 1 in 32 bits, without 0, which is what an unused
/// line holds.
#[inline]
pub(crate) const fn tag(number: u64) -> u32 {
    (number % u32::MAX as u64) as u32 + 1
}

/// What a line holds, seen by a reader that waits for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// The previous entry in this line, or none ever: nothing has arrived.
    Empty,
    /// The entry, whole.
    Ready,
    /// The entry's header without its trailer: half of it is still in flight, or its writer broke the order.
    Torn {
        /// Dword 15 as found.
        trailer: u32,
    },
    /// A header of neither this entry nor the previous one in this line.
    Foreign {
        /// Dword 0 as found.
        found: u32,
    },
}

/// Writes `line` as entry `number` into the line that begins at dword `first`. Dwords 0 and 15 of `line` are
/// ignored.
#[inline]
pub(crate) fn write_line<M: RingMemory>(ring: &M, first: usize, number: u64, line: &Line) {
    let tag = tag(number);
    for (at, value) in line.iter().enumerate().take(TRAILER).skip(1) {
        ring.store(first + at, *value);
    }
    ring.store(first + TRAILER, !tag);
    ring.fence_stores();
    ring.store(first, tag);
    ring.fence_stores();
}

/// Reads the line that begins at dword `first`, for entry `number` of a ring of `lines` lines. The dwords are valid
/// only if the state is [`LineState::Ready`].
#[inline]
pub(crate) fn read_line<M: RingMemory>(ring: &M, first: usize, number: u64, lines: u64) -> (LineState, Line) {
    let mut line = [0; LINE_DWORDS];
    let expected = tag(number);
    let header = ring.load(first);
    if header != expected {
        let before = number.checked_sub(lines).map_or(0, tag);
        let nothing = header == 0 || header == before;
        return (if nothing { LineState::Empty } else { LineState::Foreign { found: header } }, line);
    }
    // The trailer is loaded before the rest. Loaded after it, the trailer of a half that arrived meanwhile would
    // vouch for dwords already copied.
    let trailer = ring.load(first + TRAILER);
    if trailer != !expected {
        return (LineState::Torn { trailer }, line);
    }
    ring.fence_loads();
    (line[0], line[TRAILER]) = (header, trailer);
    for (at, value) in line.iter_mut().enumerate().take(TRAILER).skip(1) {
        *value = ring.load(first + at);
    }
    // A writer that laps the reader changes the header, so the copy cannot be trusted until the header is read
    // again.
    ring.fence_loads();
    match ring.load(first) {
        again if again == expected => (LineState::Ready, line),
        found => (LineState::Foreign { found }, line),
    }
}

/// Empties all lines.
pub(crate) fn clear<M: RingMemory>(ring: &M) {
    for dword in 0..ring.dwords() {
        ring.store(dword, 0);
    }
    ring.fence_stores();
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_mem::SharedView;

    #[test]
    fn tags_count_from_one_and_leave_out_zero() {
        let two_32 = 1u64 << 32;
        let cases = [
            (0, 1),
            (1, 2),
            (two_32 - 3, 0xffff_fffe),
            (two_32 - 2, 0xffff_ffff),
            (two_32 - 1, 1),
            (two_32, 2),
            (2 * two_32 - 3, 0xffff_ffff),
            (2 * two_32 - 2, 1),
        ];
        for (number, expected) in cases {
            assert_eq!(tag(number), expected, "entry {number}");
        }
    }

    /// Near every wrap of the tags, for every length that a ring can have and the lengths between: a line that is
    /// one ring old, or was never written, does not pass for the awaited entry.
    #[test]
    #[cfg_attr(miri, ignore = "compares a hundred million plain numbers")]
    fn a_tag_differs_from_those_of_the_ring_before() {
        const LINES_MAX: u64 = 4096;
        for wrap in [LINES_MAX, u64::from(u32::MAX), 1 << 32, 2 * u64::from(u32::MAX)] {
            let tags: Vec<u32> = (wrap - LINES_MAX..=wrap + LINES_MAX).map(tag).collect();
            assert!(tags.iter().all(|tag| *tag != 0));
            for window in tags.windows(LINES_MAX as usize + 1) {
                let (last, before) = window.split_last().expect("not empty");
                assert!(!before.contains(last), "tag {last:#x} comes again within {LINES_MAX} entries");
            }
        }
    }

    #[test]
    fn a_line_is_taken_only_whole() {
        let ring = SharedView::zeroed(128).expect("memory");
        let line: Line = core::array::from_fn(|at| 100 + at as u32);
        write_line(&ring, 16, 1, &line);
        let written: Vec<u32> = (0..32).map(|dword| ring.load(dword)).collect();
        let mut expected = [0; 32];
        expected[16..].copy_from_slice(&line);
        (expected[16], expected[31]) = (2, !2);
        assert_eq!(written, expected);
        assert_eq!(read_line(&ring, 16, 1, 2).0, LineState::Ready);
        assert_eq!(read_line(&ring, 16, 1, 2).1[..], expected[16..]);
        // The line of entry 1 holds nothing for entry 3 of a ring of two lines, and is foreign to entry 5.
        assert_eq!(read_line(&ring, 16, 3, 2).0, LineState::Empty);
        assert_eq!(read_line(&ring, 16, 5, 2).0, LineState::Foreign { found: 2 });
        ring.store(31, !4);
        assert_eq!(read_line(&ring, 16, 1, 2).0, LineState::Torn { trailer: !4 });
    }
}
