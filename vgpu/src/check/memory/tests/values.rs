//! GL2 as a copy: what the host, the command processor and the waves read, and what is remembered from old
//! dispatches.

use super::rig::{BASE, Rig};
use crate::check::memory::{
    Access, AccessKind, AllocationUse, CacheActions, Defect, MemoryChecker, Path, Scope, WaveId,
};
use crate::check::undefined::{Origin, Source, Stored};
use crate::memory::{HostMemory, MemoryType};

#[test]
fn dirty_bytes_are_listed_and_reach_the_host_alone() {
    let mut rig = Rig::new();
    rig.host.set(BASE, 0x4433_2211);
    rig.host.set(BASE + 0x1000, 5);
    rig.store_bytes(0, Scope::Cu, BASE + 1, &[0xaa]);
    rig.store_bytes(0, Scope::Cu, BASE + 2, &[0xbb]);
    rig.store(0, Scope::Cu, BASE + 0x1ffc, 1);
    rig.store(0, Scope::Cu, BASE + 0x2000, 2);
    assert_eq!(rig.checker.dirty_ranges(), [(BASE + 1, 2), (BASE + 0x1ffc, 8)]);
    assert_eq!(rig.load(0, Scope::Cu, BASE), 0x44bb_aa11);
    // The host writes another byte of the same dword meanwhile: both survive.
    rig.host.0[0] = 0x99;
    rig.acquire(CacheActions::LEVEL_TWO_WRITE_BACK);
    assert_eq!(rig.host.dword(BASE), 0x44bb_aa99);
    assert_eq!(rig.host.dword(BASE + 0x2000), 2);
    assert_eq!(rig.host.dword(BASE + 0x1000), 5);
    assert!(rig.checker.dirty_ranges().is_empty());
    // An invalidation does not lose dirty data.
    rig.store(0, Scope::Cu, BASE, 3);
    rig.acquire(CacheActions::LEVEL_TWO_INVALIDATE);
    assert_eq!(rig.load(0, Scope::Cu, BASE), 3);
}

#[test]
fn the_command_processor_polls_memory_and_not_a_clean_copy() {
    let mut rig = Rig::new();
    rig.load(0, Scope::Cu, BASE);
    rig.host.set(BASE, 8);
    rig.store(0, Scope::Cu, BASE + 4, 6);
    let read = |rig: &mut Rig, va, path| {
        let mut out = [0; 4];
        rig.checker.cp_read(va, &mut out, path, &mut rig.host);
        u32::from_le_bytes(out)
    };
    assert_eq!(read(&mut rig, BASE, Path::Memory), 8);
    assert_eq!(read(&mut rig, BASE, Path::LevelTwo), 0);
    assert_eq!(read(&mut rig, BASE + 4, Path::Memory), 6);
    rig.checker.cp_write(BASE, &[1, 0, 0, 0], Path::Memory, &mut rig.host);
    assert_eq!((read(&mut rig, BASE, Path::LevelTwo), rig.host.dword(BASE)), (1, 1));
    assert!(rig.checker.findings().is_empty());
}

#[test]
fn an_unmapped_range_is_written_back_and_forgotten() {
    let mut rig = Rig::new();
    rig.store(0, Scope::Cu, BASE, 7);
    rig.store(0, Scope::Device, BASE + 8, 7);
    rig.store(0, Scope::Cu, BASE + 0x1000, 7);
    rig.checker.forget(BASE, 0x1000, &mut rig.host);
    assert_eq!((rig.host.dword(BASE), rig.host.dword(BASE + 0x1000)), (7, 0));
    rig.host.set(BASE, 1);
    // The other wave does not race on the new pages.
    assert_eq!(rig.load(1, Scope::Cu, BASE), 1);
    rig.store(1, Scope::Cu, BASE + 8, 2);
    rig.store(1, Scope::Cu, BASE + 0x3000, 2);
    assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
    rig.load(1, Scope::Cu, BASE + 0x1000);
    assert_eq!(rig.defects(), [Defect::Race]);
}

#[test]
fn readers_of_an_ended_dispatch_are_forgotten_and_those_of_a_running_one_not() {
    for (ordered_before, expected) in [(2, 0), (1, 1)] {
        let mut rig = Rig::new();
        rig.load(0, Scope::Cu, BASE);
        rig.load(1, Scope::Cu, BASE);
        rig.acquire(CacheActions::all());
        rig.second_dispatch(ordered_before);
        rig.store(2, Scope::Cu, BASE, 1);
        assert_eq!(rig.checker.findings().len(), expected);
    }
}

#[test]
fn wide_accesses_reach_across_pages_and_64_bit_atomics_work() {
    let mut rig = Rig::new();
    let bytes: Vec<u8> = (1..=16).collect();
    rig.store_bytes(0, Scope::Cu, BASE + 0xff8, &bytes);
    rig.begin(0, AccessKind::Load, Scope::Cu);
    let mut out = [0; 16];
    rig.checker.load(0, BASE + 0xff8, &mut rig.host, &mut out);
    assert_eq!(out[..], bytes);
    rig.begin(0, AccessKind::Atomic { returns: true }, Scope::System);
    let mut old = [0; 8];
    rig.checker.atomic(0, BASE + 0x1000, &mut rig.host, &mut old, |bytes| bytes[7] = 0xff);
    assert_eq!(old[..], bytes[8..]);
    assert_eq!(rig.host.dword(BASE + 0x1004), 0xff0f_0e0d);
    assert!(rig.checker.findings().is_empty());
}

/// A misaligned atomic is advice, and is split like other accesses.
#[test]
fn an_atomic_acts_on_its_own_bytes_at_any_alignment() {
    for (offset, len) in [(0, 4), (2, 4), (3, 4), (4, 8), (6, 8), (0xffd, 8)] {
        let mut rig = Rig::new();
        let before: Vec<u8> = (0..0x1010_u32).map(|at| (at % 251) as u8).collect();
        rig.host.0[..before.len()].copy_from_slice(&before);
        rig.begin(0, AccessKind::Atomic { returns: true }, Scope::System);
        let mut old = vec![0; len];
        let add = |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(100));
        rig.checker.atomic(0, BASE + offset as u64, &mut rig.host, &mut old, add);
        assert_eq!(old, before[offset..offset + len], "{len} bytes at {offset}");
        let expected: Vec<u8> =
            (0..before.len())
                .map(|at| {
                    if (offset..offset + len).contains(&at) {
                        before[at].wrapping_add(100)
                    } else {
                        before[at]
                    }
                })
                .collect();
        assert!(rig.host.0[..before.len()] == expected, "{len} bytes at {offset}");
    }
}

/// In other lines, in other pages, and in the first one again.
#[test]
fn lanes_of_one_instruction_load_from_places_of_their_own() {
    let mut rig = Rig::new();
    let places = [BASE, BASE + 0x100, BASE + 0x1000, BASE + 0x1100, BASE + 4, BASE];
    (1..).zip(&places[..5]).for_each(|(value, va)| rig.host.set(*va, value));
    rig.begin(0, AccessKind::Load, Scope::Cu);
    let loaded = [0, 1, 2, 3, 4, 5].map(|lane| {
        let mut out = [0; 4];
        rig.checker.load(lane, places[lane as usize], &mut rig.host, &mut out);
        u32::from_le_bytes(out)
    });
    assert_eq!(loaded, [1, 2, 3, 4, 5, 1]);
    assert_eq!(rig.defects(), []);
}

/// Stores to the same dword by two lanes of one instruction.
fn store_twice(rig: &mut Rig, scope: Scope, stores: [(u64, &[u8]); 2]) {
    rig.begin(0, AccessKind::Store, scope);
    for (lane, (va, bytes)) in [(5, stores[0]), (9, stores[1])] {
        rig.checker.store(lane, va, bytes, &mut rig.host);
    }
    rig.checker.end_access();
}

#[test]
fn lanes_of_one_instruction_agree_on_what_they_store() {
    let told = |rig: &Rig| match rig.checker.findings() {
        [finding] => (finding.defect, finding.lane, finding.address, finding.detail.clone()),
        others => panic!("{others:?}"),
    };
    for memory_type in [MemoryType::default(), MemoryType { is_local: true, is_uncached: true }] {
        let mut rig = Rig::on(memory_type);
        store_twice(&mut rig, Scope::Cu, [(BASE, &[1, 2, 3, 4]), (BASE, &[1, 2, 3, 4])]);
        store_twice(&mut rig, Scope::Cu, [(BASE, &[1, 2]), (BASE + 2, &[1, 2])]);
        rig.store(0, Scope::Cu, BASE, 7);
        rig.store(0, Scope::Cu, BASE, 8);
        // A store with a scope may be an atomic one: any of the values is correct.
        store_twice(&mut rig, Scope::Device, [(BASE + 64, &[1, 2, 3, 4]), (BASE + 64, &[4, 3, 2, 1])]);
        assert_eq!(rig.defects(), []);
        store_twice(&mut rig, Scope::Cu, [(BASE + 8, &[1, 2, 3, 4]), (BASE + 9, &[9])]);
        let detail = "lane 5 stores 0x2, lane 9 stores 0x9".to_owned();
        assert_eq!(told(&rig), (Defect::LanesClash, Some(9), BASE + 9, detail));
        assert_eq!(rig.host.dword(BASE + 8) & 0xff, if memory_type.is_uncached { 1 } else { 0 });
    }
}

/// The lane that is named did store the byte.
#[test]
fn of_lanes_that_store_beside_each_other_the_right_one_is_named() {
    let mut rig = Rig::new();
    rig.begin(0, AccessKind::Store, Scope::Cu);
    for (lane, va, value) in [(0, BASE + 8, 1_u32), (1, BASE + 4, 2), (2, BASE + 8, 3)] {
        rig.checker.store(lane, va, &value.to_le_bytes(), &mut rig.host);
    }
    rig.checker.end_access();
    assert_eq!(rig.checker.findings()[0].detail, "lane 0 stores 0x1, lane 2 stores 0x3");
}

/// Records of single bytes, after stores by two waves to one dword.
#[test]
fn lanes_agree_on_single_bytes_of_a_dword_that_others_store_to() {
    let mut rig = Rig::new();
    rig.store_bytes(1, Scope::Cu, BASE, &[1, 1]);
    rig.store_bytes(0, Scope::Cu, BASE + 2, &[2]);
    store_twice(&mut rig, Scope::Cu, [(BASE + 3, &[3]), (BASE + 3, &[3])]);
    assert_eq!(rig.defects(), []);
    store_twice(&mut rig, Scope::Cu, [(BASE + 3, &[3]), (BASE + 3, &[4])]);
    assert_eq!(rig.defects(), [Defect::LanesClash]);
    assert_eq!(rig.checker.findings()[0].address, BASE + 3);
}

/// The release of a line is judged after the whole instruction.
#[test]
fn a_line_that_is_stored_again_as_a_whole_for_the_host_is_released() {
    let mut rig = Rig::new();
    rig.store_bytes(0, Scope::Cu, BASE, &[1; 16]);
    rig.begin(0, AccessKind::Store, Scope::System);
    for lane in 0..2 {
        rig.checker.store(lane, BASE + 8 * u64::from(lane), &[2; 8], &mut rig.host);
    }
    rig.checker.end_access();
    assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
    rig.store_bytes(0, Scope::Cu, BASE + 16, &[1]);
    rig.store(0, Scope::System, BASE, 3);
    assert_eq!(rig.defects(), [Defect::UnreleasedLine]);
}

#[test]
fn many_readers_are_kept_and_a_later_barrier_clears_them() {
    let mut rig = Rig::new();
    rig.checker.begin_dispatch(100, 100, WaveId(2));
    for wave in 2..102 {
        rig.place(wave, 0);
        rig.load(wave, Scope::Cu, BASE);
        rig.wait_loads(wave);
    }
    rig.barrier(&(2..102).collect::<Vec<_>>());
    rig.store(50, Scope::Cu, BASE, 1);
    assert!(rig.checker.findings().is_empty());
    for wave in 2..102 {
        rig.load(wave, Scope::Cu, BASE + 4);
    }
    rig.store(101, Scope::Cu, BASE + 4, 1);
    assert_eq!(rig.defects(), [Defect::Race]);
}

#[test]
#[ignore = "a measurement; run it alone, optimised, with --nocapture"]
fn cost_of_neighbouring_lanes() {
    const ROUNDS: u32 = 20_000;
    let mut rig = Rig::new();
    let kinds =
        [(AccessKind::Load, 0), (AccessKind::Load, 0), (AccessKind::Store, 0), (AccessKind::LdsLoad, 0)];
    for (round, (kind, first_wave)) in kinds.into_iter().enumerate() {
        let start = std::time::Instant::now();
        for step in 0..ROUNDS {
            rig.begin(first_wave + step % if round == 1 { 2 } else { 1 }, kind, Scope::Cu);
            for lane in 0..32 {
                let va = BASE + u64::from(step % 64 * 128 + lane * 4);
                match kind {
                    AccessKind::Load => rig.checker.load(lane, va, &mut rig.host, &mut [0; 4]),
                    AccessKind::Store => rig.checker.store(lane, va, &[1; 4], &mut rig.host),
                    _ => assert!(rig.checker.lds_access(&mut rig.group, lane, lane * 4, 4, 4)),
                }
            }
        }
        let each = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS * 32);
        println!("{kind:?}, variant {round}: {each:.1} ns per lane and dword");
    }
}

/// Loads of bytes `at..at + len` of a line by the wave of a second dispatch.
fn load_bytes(rig: &mut Rig, va: u64, len: usize) -> Vec<u8> {
    rig.begin(2, AccessKind::Load, Scope::Cu);
    let mut out = vec![0; len];
    rig.checker.load(0, va, &mut rig.host, &mut out);
    out
}

#[test]
fn loads_of_a_line_that_an_ended_dispatch_wrote_are_whole_and_leave_readers() {
    for (is_acquired, expected) in [(true, vec![]), (false, vec![Defect::StaleVectorCache])] {
        let mut rig = Rig::new();
        rig.host.set(BASE + 8, 0x0c0b_0a09);
        rig.store(0, Scope::Cu, BASE, 0x0403_0201);
        rig.store(1, Scope::Cu, BASE + 4, 0x0807_0605);
        let mut actions = CacheActions::all();
        actions.set(CacheActions::VECTOR_INVALIDATE, is_acquired);
        rig.acquire(actions);
        rig.second_dispatch(2);
        if is_acquired {
            assert_eq!(load_bytes(&mut rig, BASE, 12), (1..=12).collect::<Vec<u8>>());
            assert_eq!(load_bytes(&mut rig, BASE + 6, 2), [7, 8]);
            assert_eq!(load_bytes(&mut rig, BASE + 9, 1), [10]);
        } else {
            // The contents from before the other compute unit's write.
            assert_eq!(load_bytes(&mut rig, BASE, 12), [0, 0, 0, 0, 5, 6, 7, 8, 9, 10, 11, 12]);
        }
        assert_eq!(rig.defects(), expected);
    }
}

/// A wave of a concurrent dispatch writes what was read, or what is read next.
#[test]
fn a_settled_line_is_so_for_one_dispatch_only() {
    for (written, read_again, expected) in
        [(BASE + 6, None, 1), (BASE + 4, Some(BASE + 4), 2), (BASE + 12, Some(BASE + 8), 0)]
    {
        let mut rig = Rig::new();
        rig.store(0, Scope::Cu, BASE, 1);
        rig.acquire(CacheActions::all());
        rig.second_dispatch(1);
        load_bytes(&mut rig, BASE + 4, 4);
        rig.store_bytes(1, Scope::Cu, written, &[5, 5]);
        if let Some(va) = read_again {
            load_bytes(&mut rig, va, 4);
        }
        assert_eq!(rig.checker.findings().len(), expected, "{:#?}", rig.checker.findings());
    }
}

#[test]
fn the_shadow_of_a_group_forgets_the_group_before() {
    let mut rig = Rig::new();
    let again = |rig: &mut Rig, bytes: u32, expected: &[Defect]| {
        rig.checker.take_findings();
        rig.group.begin(bytes);
        rig.lds(1, AccessKind::LdsStore, 64, 4);
        rig.lds(1, AccessKind::LdsStore, bytes - 4, 4);
        // An atomic and a store of its own where the group before had an atomic.
        rig.lds(1, AccessKind::LdsStore, 72, 4);
        rig.lds(1, AccessKind::LdsAtomic { returns: false }, 72, 4);
        rig.lds(1, AccessKind::LdsStore, 72, 4);
        assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
        rig.lds(0, AccessKind::LdsLoad, 8, 4);
        assert_eq!(rig.defects(), expected);
    };
    for bytes in [1024, 1024, 512, 2048] {
        rig.lds(0, AccessKind::LdsStore, 8, 4);
        rig.lds(0, AccessKind::LdsLoad, 64, 4);
        rig.lds(0, AccessKind::LdsAtomic { returns: false }, 72, 4);
        again(&mut rig, bytes, &[Defect::UninitialisedLds]);
    }
}

const ORIGIN: Origin = Origin { source: Source::Register(300), pc: 8 };

/// The undefined bits of the first dword of a load, and their origin.
fn undefined_load(rig: &mut Rig, va: u64) -> Option<(u32, Origin)> {
    rig.load(0, Scope::Cu, va);
    let loads = rig.checker.take_undefined_loads();
    assert!(loads.len() <= 1, "one lane");
    loads.first().map(|loaded| (loaded.bits[0], loaded.origin))
}

/// Stores a dword of which some bits are undefined.
fn store_undefined(rig: &mut Rig, va: u64, bits: u32) {
    let elements = vec![[[bits, 0, 0, 0]; 64]];
    rig.checker.set_undefined_data(Some(Stored { elements, origin: ORIGIN }));
    rig.store(0, Scope::Cu, va, 5);
    rig.checker.set_undefined_data(None);
}

#[test]
fn what_was_stored_undefined_is_so_until_it_is_written_over() {
    type Over = fn(&mut Rig);
    let over: [(Over, Option<u32>); 5] = [
        (|_| {}, Some(0xff00)),
        (|rig| rig.store(1, Scope::Cu, BASE + 64, 5), None),
        (|rig| rig.store_bytes(1, Scope::Cu, BASE + 64, &[5]), Some(0xff00)),
        (|rig| rig.checker.cp_write(BASE + 65, &[5], Path::Memory, &mut rig.host), None),
        (
            |rig| {
                rig.acquire(CacheActions::all());
                rig.load(1, Scope::Cu, BASE + 64);
                rig.acquire(CacheActions::all());
                rig.host.set(BASE + 64, 0x99);
            },
            None,
        ),
    ];
    for (index, (write, expected)) in over.into_iter().enumerate() {
        let mut rig = Rig::new();
        store_undefined(&mut rig, BASE + 64, 0xff00);
        assert_eq!(undefined_load(&mut rig, BASE + 60), None, "a neighbour");
        write(&mut rig);
        rig.checker.take_undefined_loads();
        assert_eq!(undefined_load(&mut rig, BASE + 64), expected.map(|bits| (bits, ORIGIN)), "{index}");
    }
}

/// LDS forgets the undefinedness of the bytes that are exchanged.
#[test]
fn lds_is_undefined_until_it_is_written_over() {
    let mut rig = Rig::new();
    let undefined = |rig: &mut Rig| {
        rig.lds(0, AccessKind::LdsLoad, 64, 4);
        rig.checker.take_undefined_loads().first().map(|loaded| loaded.bits[0])
    };
    let elements = vec![[[0xffff_ffff, 0, 0, 0]; 64]];
    rig.checker.set_undefined_data(Some(Stored { elements, origin: ORIGIN }));
    rig.lds(0, AccessKind::LdsStore, 64, 4);
    rig.checker.set_undefined_data(None);
    rig.lds(0, AccessKind::LdsAtomic { returns: true }, 64, 4);
    assert_eq!(rig.checker.take_undefined_loads().len(), 1, "what it returns is undefined");
    assert_eq!(undefined(&mut rig), Some(0xffff_ffff), "an atomic that adds");
    rig.checker.define_lds(&mut rig.group, 65, 1);
    assert_eq!(undefined(&mut rig), Some(0xffff_00ff));
    rig.checker.define_lds(&mut rig.group, 64, 4);
    assert_eq!(undefined(&mut rig), None);
}

#[test]
fn zeros_that_count_as_unwritten_are_undefined_until_somebody_writes() {
    for is_known_before in [false, true] {
        let mut rig = Rig::new();
        if is_known_before {
            rig.load(0, Scope::Cu, BASE);
        }
        rig.host.set(BASE + 32, 7);
        rig.checker.add_allocation("x", BASE, 64, AllocationUse::Unwritten);
        rig.checker.add_allocation("y", BASE + 64, 64, AllocationUse::Written);
        let unwritten =
            |rig: &mut Rig, va| undefined_load(rig, va).map(|(bits, origin)| (bits, origin.source));
        assert_eq!(unwritten(&mut rig, BASE + 4), Some((u32::MAX, Source::Memory(BASE + 4))));
        assert_eq!(unwritten(&mut rig, BASE + 64), None);
        rig.store_bytes(0, Scope::Cu, BASE + 4, &[1, 2]);
        assert_eq!(unwritten(&mut rig, BASE + 4), Some((0xffff_0000, Source::Memory(BASE + 6))));
        rig.store(0, Scope::Cu, BASE + 4, 1);
        assert_eq!(unwritten(&mut rig, BASE + 4), None);
        if !is_known_before {
            assert_eq!(unwritten(&mut rig, BASE + 32), Some((0xffff_ff00, Source::Memory(BASE + 33))));
        }
        // An atomic that adds cannot tell what it leaves; one that replaces can.
        rig.atomic(0, true, Scope::Device, BASE + 8);
        assert_eq!(rig.checker.take_undefined_loads().len(), 1);
        assert_eq!(unwritten(&mut rig, BASE + 8), Some((u32::MAX, Source::Memory(BASE + 8))));
        rig.begin(0, AccessKind::Atomic { returns: true }, Scope::Device);
        rig.checker.atomic(0, BASE + 8, &mut rig.host, &mut [0; 4], |bytes| bytes.fill(9));
        assert_eq!(rig.checker.take_undefined_loads().len(), 1, "what it returns is undefined");
        assert_eq!(unwritten(&mut rig, BASE + 8), None);
    }
}

#[test]
fn private_memory_is_reached_by_no_global_address() {
    let mut rig = Rig::new();
    rig.checker.add_allocation("the scratch of k", BASE, 64, AllocationUse::Private);
    rig.load(0, Scope::Cu, BASE + 4);
    assert_eq!(rig.defects(), [Defect::PrivateByAddress]);
    rig.checker.take_findings();
    rig.store(0, Scope::Cu, BASE + 64, 1);
    assert_eq!(rig.defects(), [Defect::OutsideAllocations]);
}

/// Memory at all addresses, which tells them.
struct Everywhere;

impl Everywhere {
    fn byte(va: u64) -> u8 {
        (va % 251) as u8 + 1
    }
}

impl HostMemory for Everywhere {
    fn read(&mut self, va: u64, destination: &mut [u8]) {
        (va..).zip(destination).for_each(|(at, byte)| *byte = Everywhere::byte(at));
    }

    fn write(&mut self, _va: u64, _source: &[u8]) {}
}

/// Loads `len` bytes at an address of each lane in one instruction, and nothing before it.
fn load_everywhere(addresses: &[u64], len: usize) -> Vec<Vec<u8>> {
    let mut checker = MemoryChecker::new();
    let wave = checker.begin_dispatch(1, 1, WaveId(0));
    checker.begin_access(Access {
        wave,
        sequence: 1,
        pc: 0,
        cu: 0,
        scope: Scope::Cu,
        kind: AccessKind::Load,
    });
    let load = |(lane, va): (u32, &u64)| {
        let mut bytes = vec![0; len];
        checker.load(lane, *va, &mut Everywhere, &mut bytes);
        bytes
    };
    (0..).zip(addresses).map(load).collect()
}

/// At both ends of a line, too, and beyond.
#[test]
fn a_load_of_any_length_and_place_gets_what_is_there() {
    let short = (0..8).chain(0xf8..0x104).flat_map(|va| (1..=8).map(move |len| (va, len)));
    for (va, len) in short.chain([(0, 260)]) {
        let expected: Vec<u8> = (va..).take(len).map(Everywhere::byte).collect();
        assert_eq!(load_everywhere(&[va], len), [expected], "{len} bytes at {va:#x}");
    }
}

/// The first of each pair has a line whose number is like the address of the second.
#[test]
fn lanes_in_different_lines_get_what_is_there() {
    for lanes in [[0x400, 0x504], [0x1000_0000, 0x1000]] {
        let expected = lanes.map(|va| (va..).take(4).map(Everywhere::byte).collect::<Vec<u8>>());
        assert_eq!(load_everywhere(&lanes, 4), expected, "{lanes:x?}");
    }
}

/// A line is compared with the host's memory once for an instruction.
#[test]
fn what_the_host_writes_between_two_lanes_is_met_by_the_next_instruction() {
    for scope in [Scope::Cu, Scope::Device] {
        let mut rig = Rig::new();
        let lane = |rig: &mut Rig, lane: u32| {
            let mut bytes = [0; 4];
            rig.checker.load(lane, BASE, &mut rig.host, &mut bytes);
            u32::from_le_bytes(bytes)
        };
        rig.host.set(BASE, 1);
        rig.begin(0, AccessKind::Load, scope);
        assert_eq!(lane(&mut rig, 0), 1);
        rig.host.set(BASE, 2);
        assert_eq!((lane(&mut rig, 1), rig.defects()), (1, vec![]), "{scope:?}");
        assert_eq!((rig.load(0, scope, BASE), rig.defects()), (1, vec![Defect::StaleLevelTwo]), "{scope:?}");
    }
}
