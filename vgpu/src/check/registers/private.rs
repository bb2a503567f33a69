//! Undefined data in the private memory of one wave.
//!
//! Contract: a byte is undefined until its lane has stored a defined value to it; data stored as undefined stays
//! undefined. There is one row for each dword, covering all lanes. Nothing is tracked beyond the segment. Cost: 280
//! bytes for each stored dword; an access with one offset for all lanes takes some nanoseconds if everything is
//! defined.

use crate::check::undefined::{LANE_DWORDS_MAX, Origin, Source};

use super::subject::LANES_MAX;

/// The private segments of a wave's lanes.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivateMemory {
    /// One past the index of a dword's row; 0 if nothing was stored.
    places: Vec<u32>,
    rows: Vec<Row>,
    /// Bytes per lane.
    bytes: u32,
    /// The part of them that the kernel declares.
    declared: u32,
}

/// One dword of all lanes.
#[derive(Clone, Debug)]
struct Row {
    /// Lanes in which all bits are defined.
    defined: u64,
    /// Undefined bits of the other lanes.
    bits: [u32; LANES_MAX],
    /// Lanes that have ever stored undefined bits, and the origin of those. In a lane whose bits are all defined,
    /// bits become undefined by such a store only.
    stored: u64,
    origin: Option<Origin>,
    /// Lanes whose last store had another origin than `origin`.
    others: Vec<(usize, Origin)>,
}

impl Row {
    const UNWRITTEN: Row =
        Row { defined: 0, bits: [u32::MAX; LANES_MAX], stored: 0, origin: None, others: Vec::new() };

    /// Origin of a lane's undefined stored bits; `None` if it has stored none of them.
    fn origin(&self, lane: usize) -> Option<Origin> {
        let other = self.others.iter().find(|(other, _)| *other == lane).map(|(_, origin)| *origin);
        other.or(self.origin).filter(|_| self.stored >> lane & 1 != 0)
    }

    fn bits(&self, lane: usize) -> u32 {
        if self.defined >> lane & 1 != 0 { 0 } else { self.bits[lane] }
    }

    fn set(&mut self, lane: usize, mask: u32, bits: u32, origin: Option<Origin>) {
        let bits = self.bits(lane) & !mask | bits & mask;
        self.bits[lane] = bits;
        self.defined = self.defined & !(1 << lane) | u64::from(bits == 0) << lane;
        if let Some(origin) = origin {
            self.stored |= 1 << lane;
            self.others.retain(|(other, _)| *other != lane);
            if *self.origin.get_or_insert(origin) != origin {
                self.others.push((lane, origin));
            }
        }
    }
}

impl PrivateMemory {
    /// Begins a wave with `bytes` for each lane, of which the kernel declares `declared`.
    pub(super) fn begin(&mut self, bytes: u32, declared: u32) {
        self.declared = declared;
        self.places.clear();
        self.rows.clear();
        self.bytes = bytes;
    }

    /// The declared bytes, if an access goes beyond them. An access beyond the segment is a fault, and is reported
    /// as one.
    #[inline]
    pub(super) fn overrun(&self, offset: u32, len: u32) -> Option<u32> {
        let end = u64::from(offset) + u64::from(len);
        (end > u64::from(self.declared) && end <= u64::from(self.bytes)).then_some(self.declared)
    }

    /// True if the dwords that all of `lanes` have at one offset are fully defined.
    #[inline]
    pub(super) fn is_defined(&self, lanes: u64, offset: u32, len: u32) -> bool {
        let is_whole = offset.is_multiple_of(4) && len.is_multiple_of(4);
        is_whole
            && (0..len / 4).all(|index| {
                let row = self.row((offset / 4).wrapping_add(index));
                row.is_some_and(|row| lanes & !row.defined == 0)
            })
    }

    /// All of `lanes` store defined dwords at one offset. Returns false if that must be done lane by lane.
    #[inline]
    pub(super) fn define(&mut self, lanes: u64, offset: u32, len: u32) -> bool {
        if !offset.is_multiple_of(4) || !len.is_multiple_of(4) {
            return false;
        }
        for index in 0..len / 4 {
            if let Some(row) = self.row_mut((offset / 4).wrapping_add(index)) {
                row.defined |= lanes;
            }
        }
        true
    }

    /// The undefined bits of a lane's data at an offset, if any, and their origin.
    pub(super) fn load(
        &self,
        lane: usize,
        offset: u32,
        len: u32,
        pc: u64,
    ) -> Option<([u32; LANE_DWORDS_MAX], Origin)> {
        let (mut bits, mut origin) = ([0; LANE_DWORDS_MAX], None);
        for byte in (0..len).filter(|byte| offset.checked_add(*byte).is_some_and(|at| at < self.bytes)) {
            let at = offset + byte;
            let row = self.row(at / 4);
            let own = row.map_or(u32::MAX, |row| row.bits(lane)) >> (8 * (at % 4)) & 0xff;
            bits[byte as usize / 4] |= own << (8 * (byte % 4));
            if own != 0 && origin.is_none() {
                let stored = row.and_then(|row| row.origin(lane));
                origin = Some(stored.unwrap_or(Origin { source: Source::Private(at), pc }));
            }
        }
        origin.map(|origin| (bits, origin))
    }

    /// Records a lane's store at an offset; `bits` of the data are undefined.
    pub(super) fn store(
        &mut self,
        lane: usize,
        offset: u32,
        len: u32,
        bits: [u32; LANE_DWORDS_MAX],
        origin: Option<Origin>,
    ) {
        for byte in 0..len {
            let own = bits[byte as usize / 4] >> (8 * (byte % 4)) & 0xff;
            let Some(at) = offset.checked_add(byte) else { return };
            if let Some(row) = self.row_mut(at / 4) {
                let shift = 8 * (at % 4);
                row.set(lane, 0xff << shift, own << shift, origin.filter(|_| own != 0));
            }
        }
    }

    fn row(&self, dword: u32) -> Option<&Row> {
        let place = self.places.get(dword as usize)?.checked_sub(1)?;
        self.rows.get(place as usize)
    }

    fn row_mut(&mut self, dword: u32) -> Option<&mut Row> {
        if dword >= self.bytes.div_ceil(4) {
            return None;
        }
        let dword = dword as usize;
        if self.places.len() <= dword {
            self.places.resize(dword + 1, 0);
        }
        if self.places[dword] == 0 {
            self.rows.push(Row::UNWRITTEN);
            self.places[dword] = self.rows.len() as u32;
        }
        self.rows.get_mut(self.places[dword] as usize - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    const STORED: Origin = Origin { source: Source::Register(300), pc: 8 };

    fn memory() -> PrivateMemory {
        let mut memory = PrivateMemory::default();
        memory.begin(64, 64);
        memory
    }

    #[test]
    fn each_lane_knows_where_its_own_comes_from() {
        let mut memory = memory();
        let other = Origin { source: Source::Register(301), pc: 24 };
        memory.store(0, 4, 4, [u32::MAX; 4], Some(STORED));
        memory.store(1, 4, 4, [u32::MAX; 4], Some(other));
        let origin = |memory: &PrivateMemory, lane| memory.load(lane, 4, 4, 16).map(|(_, origin)| origin);
        assert_eq!((origin(&memory, 0), origin(&memory, 1)), (Some(STORED), Some(other)));
        memory.store(1, 4, 4, [u32::MAX; 4], Some(STORED));
        memory.store(0, 4, 4, [0; 4], None);
        assert_eq!((origin(&memory, 0), origin(&memory, 1)), (None, Some(STORED)));
    }

    #[test]
    fn bytes_are_undefined_until_their_lane_has_stored() {
        let mut memory = memory();
        memory.store(3, 5, 2, [0; 4], None);
        let unwritten = |offset| Some(Origin { source: Source::Private(offset), pc: 16 });
        let load = |memory: &PrivateMemory, lane, offset, len| {
            let loaded = memory.load(lane, offset, len, 16);
            (loaded.map_or(0, |(bits, _)| bits[0]), loaded.map(|(_, origin)| origin))
        };
        assert_eq!(load(&memory, 3, 4, 4), (0xff00_00ff, unwritten(4)));
        assert_eq!(load(&memory, 3, 5, 2), (0, None));
        assert_eq!(load(&memory, 3, 6, 4), (0xffff_ff00, unwritten(7)), "across dwords");
        assert_eq!(load(&memory, 4, 5, 2), (0xffff, unwritten(5)), "another lane");
        assert_eq!(load(&memory, 3, 64, 4), (0, None), "beyond the segment nothing is known");
        memory.begin(64, 64);
        assert_eq!(load(&memory, 3, 5, 1), (0xff, unwritten(5)), "a new wave");
    }

    #[test]
    fn what_is_not_declared_is_an_overrun_as_far_as_it_is_there() {
        let mut memory = PrivateMemory::default();
        memory.begin(64, 20);
        let overruns = [(16, 4), (17, 4), (20, 1), (60, 4), (61, 4), (u32::MAX, 16)];
        let told = overruns.map(|(offset, len)| memory.overrun(offset, len).is_some());
        assert_eq!(told, [false, true, true, true, false, false]);
    }

    #[test]
    fn what_was_stored_undefined_is_so_until_it_is_stored_over() {
        let mut memory = memory();
        assert!(memory.define(0xff, 8, 8) && memory.is_defined(0xff, 8, 8));
        assert!(!memory.is_defined(0x1ff, 8, 8) && !memory.is_defined(0xff, 4, 8));
        memory.store(2, 8, 8, [0, 0xf0, 0, 0], Some(STORED));
        assert!(!memory.is_defined(0xff, 8, 8) && memory.is_defined(0xfb, 8, 8));
        assert_eq!(memory.load(2, 8, 8, 16), Some(([0, 0xf0, 0, 0], STORED)));
        assert!(memory.define(0x4, 12, 4) && memory.is_defined(0xff, 8, 8));
        assert!(!memory.define(0xff, 2, 4), "not a whole dword");
    }

    /// Bytes of a segment that ends in the middle of a dword.
    const LEN: u32 = 62;
    const LANES: [usize; 4] = [0, 1, 31, 63];

    proptest! {
        /// Against one array of undefined bits, by byte and lane.
        #[test]
        fn each_lane_has_its_own_bytes(
            steps in vec(
                (any::<bool>(), 0..4usize, 0..70u32, select(vec![1, 2, 3, 4, 8, 12, 16]), kinds_of_bits(), any::<u64>()),
                1..20,
            ),
        ) {
            let mut memory = PrivateMemory::default();
            memory.begin(LEN, LEN);
            let mut model = [[0xffu8; 64]; 64];
            for (is_whole, at, offset, len, bits, lanes) in steps {
                if is_whole {
                    let is_possible = offset % 4 == 0 && len % 4 == 0;
                    prop_assert_eq!(memory.define(lanes, offset, len), is_possible);
                    let written = (offset..offset + len).filter(|at| is_possible && *at < 64);
                    written.for_each(|at| {
                        (0..64).filter(|lane| lanes >> lane & 1 != 0).for_each(|lane| model[at as usize][lane] = 0);
                    });
                } else {
                    let origin = Some(STORED).filter(|_| bits != [0; 4]);
                    memory.store(LANES[at], offset, len, bits, origin);
                    for byte in (0..len).filter(|byte| offset + byte < 64) {
                        let own = bits[byte as usize / 4].to_le_bytes()[byte as usize % 4];
                        model[(offset + byte) as usize][LANES[at]] = own;
                    }
                }
            }
            for (offset, len) in (0..66).flat_map(|offset| [1, 2, 4, 8, 16].map(|len| (offset, len))) {
                let is_whole = offset % 4 == 0 && len % 4 == 0 && offset + len <= 64;
                for lane in LANES {
                    let mut expected = [0; LANE_DWORDS_MAX];
                    for byte in (0..len).filter(|byte| offset + byte < LEN) {
                        let own = u32::from(model[(offset + byte) as usize][lane]);
                        expected[byte as usize / 4] |= own << (8 * (byte % 4));
                    }
                    let found = memory.load(lane, offset, len, 16).map(|(bits, _)| bits);
                    prop_assert_eq!(found, Some(expected).filter(|bits| *bits != [0; 4]));
                    let is_zero = |at: u32| model[at as usize][lane] == 0;
                    let is_defined = is_whole && (offset..offset + len).all(is_zero);
                    prop_assert_eq!(memory.is_defined(1 << lane, offset, len), is_defined, "{} {} {}", lane, offset, len);
                }
            }
        }
    }

    /// All, none, some.
    fn kinds_of_bits() -> impl Strategy<Value = [u32; LANE_DWORDS_MAX]> {
        prop_oneof![
            Just([0; 4]),
            Just([u32::MAX; 4]),
            any::<[u32; 4]>(),
            any::<u32>().prop_map(|bits| [0, bits & 0xff, 0, 0])
        ]
    }

    #[test]
    fn data_at_the_end_of_all_addresses_is_none() {
        let mut memory = PrivateMemory::default();
        memory.begin(64, 64);
        memory.store(0, u32::MAX - 1, 4, [0; 4], None);
        assert!(memory.define(1, 0xffff_fffc, 8));
        assert_eq!(memory.load(0, u32::MAX - 1, 4, 16), None);
        assert!(!memory.is_defined(1, 0, 4) && !memory.is_defined(1, 60, 8));
        assert_eq!(memory.load(0, 0, 2, 16).map(|(bits, _)| bits), Some([0xffff, 0, 0, 0]), "nothing wraps");
    }
}
