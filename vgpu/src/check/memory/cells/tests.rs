//! The records of single dwords and lines: who is met, what is missed, and when a record may be forgotten.

use super::*;
use crate::check::memory::access::COMMAND_PROCESSOR;
use crate::check::memory::finding::AccessKind;

#[test]
fn bytes_of_a_mask_become_bits() {
    assert_eq!(byte_bits(0b1010), 0xff00_ff00);
    assert_eq!(byte_bits(0b0101), 0x00ff_00ff);
    assert_eq!(byte_bits(0), 0);
}

#[test]
fn an_access_is_cut_at_dwords() {
    for (address, len, expected) in [
        (8, 4, (2, 0b1111, 4)),
        (8, 16, (2, 0b1111, 4)),
        (8, 1, (2, 0b0001, 1)),
        (9, 1, (2, 0b0010, 1)),
        (9, 8, (2, 0b1110, 3)),
        (10, 2, (2, 0b1100, 2)),
        (11, 2, (2, 0b1000, 1)),
        (u64::MAX, 1, (u64::MAX / 4, 0b1000, 1)),
    ] {
        assert_eq!(piece(address, len), expected, "{len} bytes at {address}");
    }
}

/// Two lines of dwords, and the instruction that accesses them.
struct Bench {
    cells: Cells,
    current: Current,
    sites: Sites,
    readers: ReaderSets,
    settled: Settled,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            cells: Cells::new(2 * LINE_DWORDS),
            current: Current::default(),
            sites: Sites::default(),
            readers: ReaderSets::default(),
            settled: Settled::default(),
        }
    }

    /// A store by a wave at a time.
    fn store(&mut self, wave: u32, time: u32, index: usize, mask: u8, old: u32) -> Stored {
        self.current.renew();
        (self.current.wave, self.current.time, self.current.kind) = (wave, time, AccessKind::Store);
        self.current.sequence = time;
        let Bench { cells, current, sites, readers, settled } = self;
        cells.store(index, mask, &mut Context { current, sites, readers, settled: *settled }, old)
    }

    /// The bytes of a dword of which a wave sees nothing that was stored after a time, and what it sees there.
    fn unseen(&mut self, wave: u32, index: usize, since: u32) -> (u8, u32) {
        self.current.renew();
        (self.current.wave, self.current.kind) = (wave, AccessKind::Load);
        let Bench { cells, current, sites, readers, settled } = self;
        let mut context = Context { current, sites, readers, settled: *settled };
        let loaded = cells.load(index, WHOLE, &mut context, |write| write.time > since);
        (loaded.unseen, loaded.previous)
    }
}

#[test]
fn a_line_is_settled_by_wave_time_and_flags() {
    let is_settled = |cells: &Cells, index, wave, time| cells.is_settled(index, Settled { wave, time });
    let (first, second) = (5, LINE_DWORDS);
    let mut bench = Bench::new();
    assert!(is_settled(&bench.cells, first, 0, 0), "nothing has happened");
    bench.cells.set_flag(second + 2, true);
    assert!(is_settled(&bench.cells, first, 0, 0) && !is_settled(&bench.cells, second, 9, 9));
    assert!(bench.cells.has_flag(second + 2) && !bench.cells.has_flag(second));
    bench.cells.set_flag(second + 2, false);
    assert!(is_settled(&bench.cells, second, 0, 0) && !bench.cells.has_flag(second + 2));
    bench.store(3, 7, first, WHOLE, 0);
    for (wave, time, expected) in [(4, 7, true), (5, 8, true), (3, 7, false), (4, 6, false)] {
        assert_eq!(is_settled(&bench.cells, 0, wave, time), expected, "wave {wave}, time {time}");
    }
    assert!(is_settled(&bench.cells, second, 0, 0), "the other line is not written");
    // Older writes, and lower waves, change nothing.
    bench.store(1, 2, first + 1, WHOLE, 0);
    assert!(is_settled(&bench.cells, 0, 4, 7) && !is_settled(&bench.cells, 0, 3, 7));
    assert!(!is_settled(&bench.cells, 0, 4, 6));
    // What comes from outside is ordered; a write before all times is one nevertheless.
    bench.cells.store_from_outside(second, COMMAND_PROCESSOR, 0, 0);
    assert!(is_settled(&bench.cells, second, 0, 1) && !is_settled(&bench.cells, second, 0, 0));
    bench.cells.store_from_outside(second + 1, COMMAND_PROCESSOR, 9, 0);
    assert!(is_settled(&bench.cells, second, 0, 9) && !is_settled(&bench.cells, second, 0, 8));
}

#[test]
fn the_newest_write_is_that_of_any_byte() {
    let mut bench = Bench::new();
    assert!(bench.cells.newest(3).is_none());
    bench.store(1, 5, 3, 0b0011, 0);
    assert_eq!(bench.cells.newest(3).map(|write| (write.seen_wave, write.time)), Some((1, 5)));
    bench.store(2, 6, 3, 0b0010, 0);
    bench.store(0, 7, 3, 0b1000, 0);
    assert_eq!(bench.cells.newest(3).map(|write| (write.seen_wave, write.time)), Some((0, 7)));
    bench.store(4, 8, 3, 0b0001, 0);
    assert_eq!(bench.cells.newest(3).map(|write| (write.seen_wave, write.time)), Some((4, 8)));
    assert!(bench.cells.newest(2).is_none() && bench.cells.newest(4).is_none());
    bench.cells.store_from_outside(3, COMMAND_PROCESSOR, 9, 0);
    let newest = bench.cells.newest(3).unwrap();
    assert_eq!((newest.seen_wave, newest.time, newest.plain.wave), (COMMAND_PROCESSOR, 9, NOBODY));
}

/// Each byte has the value from before the last write of its own.
#[test]
fn bytes_that_a_load_misses_are_those_written_since() {
    let mut bench = Bench::new();
    bench.store(1, 5, 3, WHOLE, 0x0302_0100);
    assert_eq!(bench.unseen(2, 3, 4), (0b1111, 0x0302_0100));
    assert_eq!(bench.unseen(2, 3, 5), (0, 0));
    bench.store(2, 6, 3, 0b0110, 0x1312_1110);
    assert_eq!(bench.unseen(0, 3, 5), (0b0110, 0x0012_1100));
    assert_eq!(bench.unseen(0, 3, 4), (0b1111, 0x0312_1100));
    bench.store(1, 7, 3, 0b0011, 0x2322_2120);
    assert_eq!(bench.unseen(0, 3, 4), (0b1111, 0x0312_2120));
    assert_eq!(bench.unseen(0, 3, 6), (0b0011, 0x2120));
    // Another lane of the same instruction does not make what was before it old.
    bench.store(1, 7, 3, 0b0001, 0xffff_ffff);
    assert_eq!(bench.unseen(0, 3, 6), (0b0011, 0x2120));
    bench.store(1, 8, 3, WHOLE, 0x3332_3130);
    assert_eq!(bench.unseen(0, 3, 7), (0b1111, 0x3332_3130));
}

/// One lane stores a part of what the next one stores as a whole.
#[test]
fn what_was_before_an_instruction_was_before_all_of_its_lanes() {
    let mut bench = Bench::new();
    bench.store(1, 5, 3, 0b0011, 0);
    bench.store(2, 6, 3, 0b0010, 0);
    bench.store(1, 7, 3, 0b1110, 0x0302_0100);
    bench.store(1, 7, 3, WHOLE, 0xffff_ff00);
    assert_eq!(bench.unseen(0, 3, 6), (WHOLE, 0x0302_0100));
}

#[test]
fn bytes_stored_by_two_lanes_are_told() {
    for split in [false, true] {
        let mut bench = Bench::new();
        if split {
            bench.store(1, 5, 3, 0b0011, 0);
            bench.store(2, 6, 3, 0b0010, 0);
        }
        assert_eq!(bench.store(1, 7, 3, 0b0110, 0).again, 0, "{split}");
        assert_eq!(bench.store(1, 7, 3, 0b1100, 0).again, 0b0100, "{split}");
        assert_eq!(bench.store(1, 7, 3, 0b1001, 0).again, 0b1000, "{split}");
        assert_eq!(bench.store(1, 7, 3, WHOLE, 0).again, 0b1111, "{split}");
        assert_eq!(bench.store(1, 8, 3, WHOLE, 0).again, 0, "{split}: another instruction");
        assert_eq!(bench.store(2, 8, 3, WHOLE, 0).again, 0, "{split}: another wave");
    }
}

/// A line that nobody has to be told of needs one record again.
#[test]
fn records_of_bytes_end_when_all_of_them_are_settled() {
    for (settled, is_kept) in [((3, 6), false), ((2, 6), true), ((3, 5), true)] {
        let mut bench = Bench::new();
        bench.store(1, 5, 3, 0b0011, 0);
        bench.store(2, 6, 3, 0b0010, 0);
        bench.settled = Settled { wave: settled.0, time: settled.1 };
        bench.store(4, 9, 3, 0b1000, 0);
        assert_eq!(bench.cells.split.contains_key(&3), is_kept, "{settled:?}");
        // Byte 0 and byte 1 are remembered where they must be.
        assert_eq!(bench.unseen(5, 3, 4).0, if is_kept { 0b1011 } else { 0b1000 }, "{settled:?}");
    }
    // Likewise where the records are one.
    for (settled, unseen) in [((2, 5), 0b1000), ((1, 5), 0b1011), ((2, 4), 0b1011)] {
        let mut bench = Bench::new();
        bench.store(1, 5, 3, 0b0011, 0);
        bench.settled = Settled { wave: settled.0, time: settled.1 };
        bench.store(4, 9, 3, 0b1000, 0);
        assert_eq!(bench.unseen(5, 3, 4).0, unseen, "{settled:?}");
    }
}

/// Waves 2 and 3 store bytes that wave 1 has stored with and without a flag above.
#[test]
fn a_flag_leaves_the_plain_records_below_it() {
    let mut bench = Bench::new();
    bench.store(1, 5, 3, 0b0011, 0);
    bench.current.is_flag = true;
    bench.store(1, 6, 3, WHOLE, 0);
    bench.current.is_flag = false;
    let mut meets =
        |wave, time, mask| bench.store(wave, time, 3, mask, 0).conflict.map(|met| met.earlier.wave);
    assert_eq!(meets(2, 7, 0b0001), Some(1));
    assert_eq!(meets(3, 8, 0b0100), None, "only a flag was there");
    assert_eq!(meets(3, 9, 0b0010), Some(1));
    assert_eq!(meets(2, 10, 0b0100), Some(3));
    // A flag over all of the dword keeps its bytes apart, a plain store does not.
    bench.current.is_flag = true;
    bench.store(4, 11, 3, WHOLE, 0);
    assert!(bench.cells.split.contains_key(&3));
    assert_eq!(bench.unseen(0, 3, 10).0, WHOLE);
    bench.current.is_flag = false;
    bench.store(4, 12, 3, WHOLE, 0);
    assert!(!bench.cells.split.contains_key(&3));
    let met = bench.store(5, 13, 3, 0b1000, 0).conflict.map(|met| met.earlier.wave);
    assert_eq!(met, Some(4));
}

#[test]
fn a_plain_store_forgets_the_readers_of_its_bytes_and_a_flag_forgets_none() {
    for (is_flag, mask, is_forgotten) in
        [(false, WHOLE, true), (false, 0b0001, false), (true, WHOLE, false), (true, 0b0001, false)]
    {
        let mut bench = Bench::new();
        bench.unseen(1, 3, 0);
        bench.current.is_flag = is_flag;
        bench.store(2, 5, 3, mask, 0);
        assert_eq!(bench.cells.readers[3] == 0, is_forgotten, "{is_flag}, {mask:#b}");
        bench.current.is_flag = false;
        let met = bench.store(2, 6, 3, WHOLE, 0).conflict.map(|met| met.earlier.wave);
        assert_eq!(met, (!is_forgotten).then_some(1), "{is_flag}, {mask:#b}");
    }
}

#[test]
fn cells_begin_again_with_nothing() {
    for (dwords, written, is_split) in [
        (2 * LINE_DWORDS, LINE_DWORDS, true),
        (2 * LINE_DWORDS, LINE_DWORDS, false),
        (LINE_DWORDS + 3, LINE_DWORDS + 2, true),
        (LINE_DWORDS + 3, LINE_DWORDS + 2, false),
        (5, 4, true),
    ] {
        let mut bench = Bench::new();
        bench.cells.begin(dwords);
        bench.store(1, 5, written, 0b0011, 0);
        if is_split {
            bench.store(2, 6, written, 0b0010, 0);
        }
        bench.unseen(3, written, 9);
        bench.cells.set_flag(written, true);
        bench.cells.begin(dwords);
        assert!(bench.cells.newest(written).is_none() && !bench.cells.has_flag(written));
        assert!(bench.cells.is_settled(written, Settled::default()));
        assert!(bench.cells.reader_sets().all(|set| *set == 0));
        assert_eq!(bench.cells.reader_sets().count(), dwords);
    }
}

#[test]
fn one_record_is_enough_while_each_store_covers_the_one_before() {
    let mut bench = Bench::new();
    for (wave, time, mask, is_split) in [
        (1, 5, 0b0011, false),
        (2, 6, 0b0111, false),
        (2, 6, 0b1000, false),
        (3, 7, 0b1111, false),
        (1, 8, 1, true),
    ] {
        bench.store(wave, time, 3, mask, 0);
        assert_eq!(bench.cells.split.contains_key(&3), is_split, "{mask:#b} at {time}");
    }
}

/// Lanes of a flag store have records of their own bytes.
#[test]
fn bytes_of_a_flag_stored_by_two_lanes_are_told() {
    let mut bench = Bench::new();
    bench.current.is_flag = true;
    assert_eq!(bench.store(1, 5, 3, 0b0011, 0).again, 0);
    assert_eq!(bench.store(1, 5, 3, 0b0110, 0).again, 0b0010);
    assert_eq!(bench.store(1, 5, 3, 0b1100, 0).again, 0b0100);
}
