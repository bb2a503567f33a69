//! Random stores and loads of partly undefined data, in memory and in LDS, against a model that keeps the undefined
//! bits of each byte and, for each dword, who stored some last.

use super::rig::{BASE, Rig};
use crate::check::memory::{AccessKind, AllocationUse, CacheActions, LaneElement, Path, Scope};
use crate::check::undefined::{Origin, Source, Stored};
use zrt_needs::Random;

/// Bytes in use; in memory they are around the start of a page.
const BYTES: usize = 48;
const FIRST: u64 = BASE + 0x1000 - 20;
/// Bytes that count as unwritten at first, and one of them that is not zero: the host has written it.
const UNWRITTEN: std::ops::Range<usize> = 10..39;
const WRITTEN_BY_HOST: usize = 17;
const PROGRAMS: u64 = 1_000;
const STEPS: usize = 40;

struct Model {
    bits: [u8; BYTES],
    origins: [Option<Origin>; BYTES / 4],
}

impl Model {
    /// Bytes are stored, with these undefined bits if there are any.
    fn store(&mut self, at: usize, len: usize, data: Option<([u32; 4], Origin)>) {
        for dword in at / 4..(at + len).div_ceil(4) {
            let bytes = (4 * dword).max(at)..(4 * dword + 4).min(at + len);
            let mut is_undefined = false;
            for byte in bytes {
                let of_data = byte - at;
                let bits = data.map_or(0, |(bits, _)| bits[of_data / 4] >> (8 * (of_data % 4)));
                self.bits[byte] = bits as u8;
                is_undefined |= self.bits[byte] != 0;
            }
            match data {
                Some((_, origin)) if is_undefined => self.origins[dword] = Some(origin),
                _ if self.bits[4 * dword..4 * dword + 4] == [0; 4] => self.origins[dword] = None,
                _ => {}
            }
        }
    }

    /// The undefined bits of a load from its first byte on, and their origin: who stored them, else the first
    /// undefined byte.
    fn load(&self, at: usize, len: usize, pc: u64) -> Option<([u32; 16], Origin)> {
        let first = (at..at + len).find(|byte| self.bits[*byte] != 0)?;
        let mut bits = [0; 16];
        for byte in 0..len {
            bits[byte / 4] |= u32::from(self.bits[at + byte]) << (8 * (byte % 4));
        }
        let unwritten = Origin { source: Source::Memory(FIRST + first as u64), pc };
        Some((bits, self.origins[first / 4].unwrap_or(unwritten)))
    }
}

/// What is stored: undefined bits of every lane and element, or nothing undefined.
fn data(random: &mut Random, origin: Origin) -> Option<Stored> {
    let bits = |random: &mut Random| if random.one_in(2) { 0 } else { random.word() };
    random.one_in(2).then(|| {
        let mut element = || std::array::from_fn(|_| std::array::from_fn(|_| bits(random)));
        Stored { elements: vec![element(), element()], origin }
    })
}

fn compare(rig: &mut Rig, expected: Option<([u32; 16], Origin)>, of: LaneElement, seed: u64) {
    let loads = rig.checker.take_undefined_loads();
    let found: Vec<_> = loads.iter().map(|load| (load.lane, load.element, load.bits, load.origin)).collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(bits, origin)| (of.lane, of.element, bits, origin)).collect();
    assert_eq!(found, expected, "seed {seed}");
}

/// A place for an access: offset and length.
fn place(random: &mut Random, len_max: u32) -> (usize, usize) {
    let len = random.range(1, len_max) as usize;
    (random.below((BYTES - len) as u32 + 1) as usize, len)
}

#[test]
fn memory_remembers_undefined_bits_at_any_offset_and_length() {
    for seed in 1..=PROGRAMS {
        let mut random = Random::new(seed);
        let mut rig = Rig::new();
        let mut model = Model { bits: [0; BYTES], origins: [None; BYTES / 4] };
        model.bits[UNWRITTEN].fill(0xff);
        if seed % 2 == 0 {
            // What the device knows already was cleared before it is named.
            for va in [FIRST, FIRST + BYTES as u64 - 4] {
                rig.load(0, Scope::Cu, va);
            }
        } else {
            model.bits[WRITTEN_BY_HOST] = 0;
            rig.host.0[(FIRST - BASE) as usize + WRITTEN_BY_HOST] = 1;
        }
        let len = UNWRITTEN.len() as u64;
        rig.checker.add_allocation("x", FIRST + UNWRITTEN.start as u64, len, AllocationUse::Unwritten);
        for step in 0..STEPS {
            let lane = random.below(64);
            let of = LaneElement { lane, element: 0 };
            match random.below(4) {
                0 => {
                    let (at, len) = place(&mut random, 16);
                    let source = Source::Register(step as u16);
                    let stored = data(&mut random, Origin { source, pc: step as u64 });
                    let own = stored.as_ref().map(|data| (data.elements[0][lane as usize], data.origin));
                    model.store(at, len, own);
                    rig.checker.set_undefined_data(stored);
                    rig.begin(0, AccessKind::Store, Scope::Cu);
                    rig.checker.store(lane, FIRST + at as u64, &vec![3; len], &mut rig.host);
                }
                1 if random.one_in(3) => {
                    let (at, len) = place(&mut random, 8);
                    model.store(at, len, None);
                    rig.checker.cp_write(FIRST + at as u64, &vec![4; len], Path::LevelTwo, &mut rig.host);
                }
                _ => {
                    let (at, len) = place(&mut random, 32);
                    let scope = if random.one_in(2) { Scope::Cu } else { Scope::System };
                    let pc = rig.begin(0, AccessKind::Load, scope);
                    rig.checker.load(lane, FIRST + at as u64, &mut rig.host, &mut vec![0; len]);
                    compare(&mut rig, model.load(at, len, pc), of, seed);
                }
            }
        }
    }
}

/// The device has seen other contents, which are no longer cached, before the host clears a region and names it.
#[test]
fn what_was_seen_before_a_region_was_cleared_defines_nothing_in_it() {
    for scope in [Scope::Cu, Scope::System] {
        let mut rig = Rig::new();
        let dwords = [FIRST, FIRST + 4, FIRST + 8].map(|va| va & !3);
        for va in dwords {
            rig.host.set(va, 7);
            rig.load(0, Scope::Cu, va);
        }
        rig.acquire(CacheActions::VECTOR_INVALIDATE | CacheActions::LEVEL_TWO_INVALIDATE);
        dwords.iter().for_each(|va| rig.host.set(*va, 0));
        rig.checker.add_allocation("x", dwords[0], 12, AllocationUse::Unwritten);
        // The host writes one of them: that is seen.
        rig.host.set(dwords[1], 5);
        let undefined = dwords.map(|va| {
            rig.load(0, scope, va);
            rig.checker.take_undefined_loads().first().map(|load| load.bits[0])
        });
        assert_eq!(undefined, [Some(u32::MAX), None, Some(u32::MAX)], "{scope:?}");
    }
}

#[test]
fn lds_remembers_undefined_bits_at_any_offset_and_length() {
    for seed in 1..=PROGRAMS {
        let mut random = Random::new(seed);
        let mut rig = Rig::new();
        let mut model = Model { bits: [0; BYTES], origins: [None; BYTES / 4] };
        for step in 0..STEPS {
            let of = LaneElement { lane: random.below(64), element: random.below(2) };
            let (at, len) = place(&mut random, 16);
            match random.below(4) {
                0 => {
                    let source = Source::Register(step as u16);
                    let stored = data(&mut random, Origin { source, pc: step as u64 });
                    let element = |data: &Stored| data.elements[of.element as usize][of.lane as usize];
                    let own = stored.as_ref().map(|data| (element(data), data.origin));
                    model.store(at, len, own);
                    rig.checker.set_undefined_data(stored);
                    rig.begin(0, AccessKind::LdsStore, Scope::Cu);
                    assert!(rig.checker.lds_access(&mut rig.group, of, at as u32, len as u32, 1));
                }
                1 if random.one_in(3) => {
                    model.store(at, len, None);
                    rig.checker.define_lds(&mut rig.group, at as u32, len as u32);
                }
                _ => {
                    rig.begin(0, AccessKind::LdsLoad, Scope::Cu);
                    assert!(rig.checker.lds_access(&mut rig.group, of, at as u32, len as u32, 1));
                    compare(&mut rig, model.load(at, len, 0), of, seed);
                }
            }
        }
    }
}

/// Even if the host writes to a line that the device has never accessed, in a page that it has.
#[test]
fn what_the_host_writes_after_a_region_is_named_is_defined() {
    for (is_seen_before, scope) in
        [(false, Scope::Cu), (false, Scope::System), (true, Scope::Cu), (true, Scope::System)]
    {
        let mut rig = Rig::new();
        if is_seen_before {
            rig.load(0, Scope::Cu, BASE);
        }
        rig.checker.add_allocation("x", BASE, 0x200, AllocationUse::Unwritten);
        rig.load(0, scope, BASE);
        assert_eq!(rig.checker.take_undefined_loads().len(), 1);
        rig.host.set(BASE + 0x104, 5);
        let loaded = [0x100, 0x104, 0x108].map(|offset| {
            let value = rig.load(0, scope, BASE + offset);
            (value, rig.checker.take_undefined_loads().first().map(|load| load.bits[0]))
        });
        assert_eq!(
            loaded,
            [(0, Some(u32::MAX)), (5, None), (0, Some(u32::MAX))],
            "{is_seen_before}, {scope:?}"
        );
        assert_eq!(rig.defects(), []);
    }
}

/// What is beside the region is as it was, and so is what the caches hold of it.
#[test]
fn naming_a_region_leaves_its_neighbours() {
    for (offset, len) in [(0x1000, 0x1000), (0x1010, 0x40)] {
        let mut rig = Rig::new();
        let neighbours = [BASE + offset - 4, BASE + offset + len];
        neighbours.iter().for_each(|va| rig.host.set(*va, 0x0707_0707));
        neighbours.iter().for_each(|va| assert_eq!(rig.load(0, Scope::Cu, *va), 0x0707_0707));
        rig.load(0, Scope::Cu, BASE + offset);
        rig.acquire(CacheActions::LEVEL_TWO_INVALIDATE);
        rig.checker.add_allocation("x", BASE + offset, len, AllocationUse::Unwritten);
        let pages = rig.checker.pages.iter().filter(|page| page.undefined.is_some()).map(|page| page.va);
        assert_eq!(pages.collect::<Vec<_>>(), [BASE + 0x1000]);
        rig.checker.add_allocation("before", BASE, offset, AllocationUse::Written);
        rig.checker.add_allocation("after", BASE + offset + len, 0x1000, AllocationUse::Written);
        neighbours.iter().for_each(|va| assert_eq!(rig.load(0, Scope::Cu, *va), 0x0707_0707));
        assert!(!rig.checker.has_undefined_loads());
        assert_eq!(rig.defects(), []);
    }
}

/// One byte of a dword of which the device has seen nothing, in a page with another undefined region.
#[test]
fn an_undefined_byte_beside_bytes_that_the_host_wrote_stays_undefined() {
    let mut rig = Rig::new();
    rig.load(0, Scope::Cu, BASE);
    rig.checker.add_allocation("x", BASE, 64, AllocationUse::Unwritten);
    rig.checker.add_allocation("y", BASE + 64, 0x400, AllocationUse::Written);
    rig.host.set(BASE + 0x204, 0x4433_2211);
    let origin = Origin { source: Source::Register(300), pc: 8 };
    rig.checker.set_undefined_data(Some(Stored { elements: vec![[[0xf0, 0, 0, 0]; 64]], origin }));
    rig.store_bytes(0, Scope::System, BASE + 0x204, &[9]);
    rig.checker.set_undefined_data(None);
    assert_eq!(rig.load(0, Scope::System, BASE + 0x204), 0x4433_2209);
    let loads = rig.checker.take_undefined_loads();
    assert_eq!(loads.iter().map(|load| (load.bits[0], load.origin)).collect::<Vec<_>>(), [(0xf0, origin)]);
}
