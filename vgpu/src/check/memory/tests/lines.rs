//! Which bytes, lines and waves an access concerns: alignment, prefetches, releases of lines, dispatches, atomics.

use super::rig::{BASE, Rig};
use crate::check::memory::{
    Access, AccessKind, AllocationUse, CacheActions, CacheControl, Completed, Defect, Scope, WaveId,
};
use crate::check::undefined::{Origin, Source, Stored};

/// Bytes of a line of GL2 (hardware reference §1.4).
const LINE: u64 = 256;

#[test]
fn an_access_is_aligned_to_its_element_and_to_four_bytes_at_most() {
    for (len, offset, expected) in [
        (1, 3, None),
        (2, 2, None),
        (2, 1, Some(2)),
        (4, 4, None),
        (4, 2, Some(4)),
        (8, 4, None),
        (8, 6, Some(4)),
        (12, 8, None),
        (12, 2, Some(4)),
        (16, 12, None),
        (16, 1, Some(4)),
    ] {
        let text = |access: &str, pc: u64| {
            expected.map(|bytes| {
                format!(
                    "rule 7: wave 0 of group 0, pc {pc:#x}, lane {access}, address {:#x}: the address is not a multiple \
                     of the element, at most 4 bytes: the access is split; {bytes} bytes expected; remedy: align the \
                     address",
                    BASE + offset
                )
            })
        };
        let mut rig = Rig::new();
        rig.begin(0, AccessKind::Load, Scope::Cu);
        rig.checker.load(7, BASE + offset, &mut rig.host, &mut vec![0; len]);
        rig.begin(0, AccessKind::Store, Scope::Cu);
        rig.checker.store(9, BASE + offset, &vec![0; len], &mut rig.host);
        let found: Vec<_> = rig.checker.findings().iter().map(ToString::to_string).collect();
        let expected: Vec<_> = [text("7", 0x1008), text("9", 0x1010)].into_iter().flatten().collect();
        assert_eq!(found, expected, "{len} bytes at {offset}");
    }
}

/// A line that was filled keeps what it had when the host writes.
#[test]
fn a_data_prefetch_fills_the_lines_that_it_touches() {
    for (offset, len, is_data, filled) in [
        (128, 128, true, [true, false, false]),
        (128, 129, true, [true, true, false]),
        (255, 1, true, [true, false, false]),
        (256, 256, true, [false, true, false]),
        (0, 768, true, [true; 3]),
        (0, 768, false, [false; 3]),
    ] {
        let mut rig = Rig::new();
        rig.begin(0, AccessKind::Prefetch, Scope::Cu);
        rig.checker.prefetch(BASE + offset, len, is_data, &mut rig.host);
        let found = [0, 1, 2].map(|line| {
            rig.host.set(BASE + line * LINE, 9);
            rig.load(0, Scope::Cu, BASE + line * LINE) == 0
        });
        assert_eq!(found, filled, "{len} bytes at {offset}, data: {is_data}");
    }
}

#[test]
fn a_prefetch_outside_says_where() {
    let mut rig = Rig::new();
    rig.checker.add_allocation("weights", BASE, 64, AllocationUse::ReadOnly);
    rig.begin(1, AccessKind::Prefetch, Scope::Cu);
    rig.checker.prefetch(BASE + 0x1000, 128, true, &mut rig.host);
    assert_eq!(
        rig.checker.findings()[0].to_string(),
        "rule 6: wave 1 of group 1, pc 0x1008, address 0x11000: the prefetch leaves the pages of all allocations; 128 \
         bytes, 4032 bytes past the end of weights (64 bytes at 0x10000); remedy: prefetch no line past the end: where \
         it is not mapped, the fault may end the process"
    );
}

/// A write of system scope announces the line, as far as stores of the own dispatch come before it.
#[test]
fn a_release_concerns_the_line_and_what_comes_before_it() {
    for (offset, writer, is_ordered, expected) in [
        (0, 0, true, true),
        (LINE - 4, 0, true, true),
        (LINE, 0, true, false),
        (8, 1, true, true),
        (8, 1, false, false),
    ] {
        let mut rig = Rig::new();
        rig.place(1, 0);
        rig.store(writer, Scope::Cu, BASE + LINE + offset, 7);
        rig.wait_stores(writer);
        if is_ordered {
            rig.barrier(&[0, 1]);
        }
        rig.store(0, Scope::System, BASE + LINE + 128, 1);
        let expected = if expected { vec![Defect::UnreleasedLine] } else { vec![] };
        assert_eq!(rig.defects(), expected, "{offset}, wave {writer}, {is_ordered}");
    }
    // An earlier dispatch is flushed by packets.
    let mut rig = Rig::new();
    rig.store(0, Scope::Cu, BASE, 7);
    rig.acquire(CacheActions::VECTOR_INVALIDATE);
    rig.second_dispatch(2);
    rig.store(2, Scope::System, BASE + 4, 1);
    assert_eq!(rig.defects(), []);
}

/// Bytes of a dword that several waves have written count one by one, whichever was written last.
#[test]
fn each_byte_of_a_line_for_the_host_counts() {
    for (writers, expected) in [([0, 1], true), ([1, 0], true), ([1, 1], false)] {
        let mut rig = Rig::new();
        for (place, writer) in (0..).zip(writers) {
            rig.store_bytes(writer, Scope::Cu, BASE + place, &[7]);
        }
        rig.store(0, Scope::System, BASE + 8, 1);
        let expected = if expected { vec![Defect::UnreleasedLine] } else { vec![] };
        assert_eq!(rig.defects(), expected, "{writers:?}");
    }
    // A flag beside it does not hide it, either, and what an earlier dispatch wrote does not.
    for flag in [Scope::Cu, Scope::Device] {
        let mut rig = Rig::new();
        rig.store_bytes(0, Scope::Cu, BASE + 3, &[7]);
        rig.acquire(CacheActions::VECTOR_INVALIDATE | CacheActions::SCALAR_INVALIDATE);
        rig.second_dispatch(2);
        rig.store_bytes(2, Scope::Cu, BASE, &[7]);
        rig.store_bytes(2, flag, BASE, &[1, 0]);
        rig.store(2, Scope::System, BASE + 8, 1);
        assert_eq!(rig.defects(), [Defect::UnreleasedLine], "{flag:?}");
    }
}

#[test]
fn each_announced_line_is_judged_once() {
    for (places, count) in [(vec![0, 4], 1), (vec![0, LINE], 2), (vec![0, LINE, 4], 3), (vec![2 * LINE], 0)] {
        let mut rig = Rig::new();
        rig.begin(0, AccessKind::Store, Scope::Cu);
        for line in 0..2 {
            rig.checker.store(line, BASE + u64::from(line) * LINE + 64, &[1; 4], &mut rig.host);
        }
        rig.checker.end_access();
        rig.begin(0, AccessKind::Store, Scope::System);
        for (lane, place) in (5..).zip(&places) {
            rig.checker.store(lane, BASE + place, &[1; 4], &mut rig.host);
        }
        rig.checker.end_access();
        let found: u64 = rig.checker.findings().iter().map(|finding| finding.count).sum();
        assert_eq!(found, count, "{places:?}");
        if let [finding] = rig.checker.findings() {
            let text = "rule 5: wave 0 of group 0, pc 0x1010, lane 5, address 0x10000: a write of system scope goes to a \
                        line of which GL2 holds older stores that the host cannot see; other side: store by wave 0 of \
                        group 0, pc 0x1008; remedy: global_wb scope:SCOPE_SYS and s_wait_storecnt 0 before it, or \
                        system scope for all of the line";
            let times = if count > 1 { format!(" (seen {count} times)") } else { String::new() };
            assert_eq!(finding.to_string(), format!("{text}{times}"));
        }
    }
}

/// Only a write of system scope is a message to the host.
#[test]
fn a_write_back_is_waited_for_before_the_flag_alone() {
    let begun = |act: fn(&mut Rig)| {
        let mut rig = Rig::new();
        rig.cache(0, CacheControl::WriteBack, Scope::System);
        act(&mut rig);
        rig.checker.findings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let text = "rule 1: wave 0 of group 0, pc 0x1008, lane 0, address 0x10000: a flag of system scope is written before \
                global_wb has completed; remedy: put s_wait_storecnt 0 between global_wb and the flag";
    assert_eq!(begun(|rig| rig.store(0, Scope::System, BASE, 1)), [text]);
    let atomic = |rig: &mut Rig| assert_eq!(rig.atomic(0, true, Scope::System, BASE), 0);
    assert_eq!(begun(atomic), [text]);
    let load = |rig: &mut Rig| assert_eq!(rig.load(0, Scope::System, BASE), 0);
    assert_eq!(begun(load), [""; 0]);
    assert_eq!(begun(|rig| rig.store(0, Scope::Device, BASE, 1)), [""; 0]);
    assert_eq!(begun(|rig| rig.store(1, Scope::System, BASE, 1)), [""; 0], "another wave");
    let waited = |rig: &mut Rig| {
        rig.wait_stores(0);
        rig.store(0, Scope::System, BASE, 1);
    };
    assert_eq!(begun(waited), [""; 0]);
}

/// Waves 0 and 1, then 2 and 3, then 4 are dispatches that run together.
#[test]
fn a_scalar_load_meets_stores_of_its_own_dispatch_alone() {
    for (writer, reader, expected) in [
        (1, 2, Defect::Race),
        (2, 2, Defect::ScalarLoadOfStoredData),
        (2, 3, Defect::ScalarLoadOfStoredData),
        (3, 2, Defect::ScalarLoadOfStoredData),
        (4, 2, Defect::Race),
    ] {
        let mut rig = Rig::new();
        rig.checker.begin_dispatch(2, 1, WaveId(0));
        rig.checker.begin_dispatch(1, 1, WaveId(0));
        (2..5).for_each(|wave| rig.place(wave, 0));
        rig.store(writer, Scope::Cu, BASE, 7);
        rig.scalar_load(reader, BASE);
        assert_eq!(rig.defects(), [expected], "stored by {writer}, loaded by {reader}");
    }
}

/// A byte that a wave of another dispatch has written later hides none.
#[test]
fn a_scalar_load_meets_each_byte_of_its_own_dispatch() {
    for (writers, expected) in [
        ([2, 4], Some(Defect::ScalarLoadOfStoredData)),
        ([4, 2], Some(Defect::ScalarLoadOfStoredData)),
        ([4, 1], Some(Defect::Race)),
        ([1, 4], Some(Defect::Race)),
    ] {
        let mut rig = Rig::new();
        rig.checker.begin_dispatch(2, 1, WaveId(0));
        rig.checker.begin_dispatch(1, 1, WaveId(0));
        (2..5).for_each(|wave| rig.place(wave, 0));
        for (place, writer) in (0..).zip(writers) {
            rig.store_bytes(writer, Scope::Cu, BASE + place, &[7]);
        }
        rig.begin(2, AccessKind::ScalarLoad, Scope::Cu);
        rig.checker.load(0, BASE, &mut rig.host, &mut [0]);
        assert_eq!(rig.defects().into_iter().next(), expected, "{writers:?}");
    }
}

/// A line that was not cached shows what the host writes later.
#[test]
fn a_scalar_load_of_system_scope_caches_no_line() {
    for (scope, expected) in [(Scope::System, 9), (Scope::Cu, 5)] {
        let mut rig = Rig::new();
        rig.host.set(BASE, 5);
        rig.begin(0, AccessKind::ScalarLoad, scope);
        let mut out = [0; 4];
        rig.checker.load(0, BASE, &mut rig.host, &mut out);
        assert_eq!(u32::from_le_bytes(out), 5);
        rig.host.set(BASE, 9);
        assert_eq!(rig.load(1, Scope::Cu, BASE), expected, "{scope:?}");
        assert_eq!(rig.defects().is_empty(), scope == Scope::System, "{scope:?}");
    }
}

#[test]
fn a_wave_of_an_ended_dispatch_is_told_with_its_group() {
    let mut rig = Rig::new();
    rig.store(1, Scope::Cu, BASE, 7);
    rig.acquire(CacheActions::all().difference(CacheActions::SCALAR_INVALIDATE));
    rig.second_dispatch(2);
    rig.scalar_load(2, BASE);
    let finding = &rig.checker.findings()[0];
    let actor = finding.other.map(|other| other.actor.to_string());
    assert_eq!((finding.defect, actor), (Defect::StaleScalarCache, Some("wave 1 of group 1".to_owned())));
}

#[test]
fn what_is_known_of_a_wave_is_dropped_at_its_end() {
    let mut rig = Rig::new();
    (0..2).for_each(|wave| assert_eq!(rig.load(wave, Scope::Cu, BASE), 0));
    rig.checker.end_of_wave(WaveId(0));
    assert_eq!(rig.checker.waves.keys().collect::<Vec<_>>(), [&1]);
}

/// A flat instruction accesses LDS and memory, with one address of its own.
#[test]
fn accesses_of_one_instruction_are_told_apart_by_kind_and_scope() {
    let access = |rig: &mut Rig, sequence, kind, scope| {
        rig.checker.begin_access(Access { wave: WaveId(0), sequence, pc: 0x2000, cu: 0, scope, kind });
    };
    let mut rig = Rig::new();
    access(&mut rig, 1, AccessKind::LdsStore, Scope::Cu);
    assert!(rig.checker.lds_access(&mut rig.group, 0, 0, 4, 4));
    access(&mut rig, 1, AccessKind::Store, Scope::Cu);
    rig.checker.store(1, BASE, &[1; 4], &mut rig.host);
    rig.load(1, Scope::Cu, BASE);
    let told = rig.checker.take_findings().remove(0);
    assert_eq!(told.other.map(|other| (other.pc, other.kind)), Some((0x2000, Some(AccessKind::Store))));
    access(&mut rig, 2, AccessKind::Store, Scope::Se);
    access(&mut rig, 3, AccessKind::Store, Scope::Device);
    rig.checker.store(1, BASE + 64, &[1; 4], &mut rig.host);
    rig.store(1, Scope::Device, BASE + 64, 1);
    assert_eq!(rig.defects(), [], "the scope covers both");
}

#[test]
fn groups_are_counted_within_their_dispatch() {
    let mut rig = Rig::new();
    // Waves 2 to 7 in groups of three, 8 to 11 in groups of two.
    rig.checker.begin_dispatch(6, 3, WaveId(0));
    rig.checker.begin_dispatch(4, 2, WaveId(0));
    for (wave, group) in [(0, 0), (1, 1), (2, 0), (4, 0), (5, 1), (7, 1), (8, 0), (9, 0), (10, 1), (11, 1)] {
        rig.place(wave, 0);
        rig.load(wave, Scope::Cu, BASE + 2);
        let finding = rig.checker.take_findings().remove(0);
        assert_eq!(finding.actor.to_string(), format!("wave {wave} of group {group}"));
    }
}

const ORIGIN: Origin = Origin { source: Source::Register(300), pc: 8 };

/// What an atomic leaves is undefined if it depends on what was; what it returns is so anyway.
#[test]
fn an_atomic_keeps_what_its_result_depends_on() {
    type Operation = fn(&mut [u8]);
    let replace: Operation = |bytes| bytes.fill(5);
    let replace_low: Operation = |bytes| bytes[..4].fill(5);
    let clear_byte_five: Operation = |bytes| bytes[5] = 0;
    let invert: Operation = |bytes| bytes.iter_mut().for_each(|byte| *byte = !*byte);
    let minimum: Operation = |bytes| {
        let value = i64::from_le_bytes(bytes.try_into().unwrap());
        bytes.copy_from_slice(&value.min(-1).to_le_bytes());
    };
    let maximum_of_high: Operation = |bytes| {
        let value = i32::from_le_bytes(bytes[4..].try_into().unwrap());
        bytes[4..].copy_from_slice(&value.max(0).to_le_bytes());
    };
    let replace_unless_three: Operation = |bytes| {
        if bytes[0] != 3 {
            bytes.fill(5);
        }
    };
    for (bits, operation, is_kept) in [
        ([u32::MAX, u32::MAX], replace, false),
        ([u32::MAX, 0], replace_low, false),
        ([0, 0xff00], clear_byte_five, false),
        ([0, 0xff_0000], clear_byte_five, true),
        ([0x100, 0], invert, true),
        ([0, 0x8000_0000], invert, true),
        ([u32::MAX, u32::MAX], minimum, true),
        ([0, u32::MAX], maximum_of_high, true),
        ([0, 0xff], replace_unless_three, true),
    ] {
        let mut rig = Rig::new();
        let elements = vec![[[bits[0], bits[1], 0, 0]; 64]];
        rig.checker.set_undefined_data(Some(Stored { elements, origin: ORIGIN }));
        rig.begin(0, AccessKind::Store, Scope::Cu);
        rig.checker.store(3, BASE, &[3; 8], &mut rig.host);
        rig.checker.set_undefined_data(None);
        let undefined = |rig: &mut Rig| -> Vec<_> {
            let loads = rig.checker.take_undefined_loads();
            loads.iter().map(|load| (load.lane, load.bits[0], load.bits[1], load.origin)).collect()
        };
        rig.begin(0, AccessKind::Atomic { returns: true }, Scope::Device);
        rig.checker.atomic(4, BASE, &mut rig.host, &mut [0; 8], operation);
        assert_eq!(undefined(&mut rig), [(4, bits[0], bits[1], ORIGIN)], "{bits:x?}");
        rig.begin(0, AccessKind::Load, Scope::Cu);
        rig.checker.load(6, BASE, &mut rig.host, &mut [0; 8]);
        let left = if is_kept { vec![(6, bits[0], bits[1], ORIGIN)] } else { vec![] };
        assert_eq!(undefined(&mut rig), left, "{bits:x?}");
    }
}

#[test]
fn cache_instructions_write_back_with_system_scope_alone() {
    for (control, scope, is_written) in [
        (CacheControl::Invalidate, Scope::System, false),
        (CacheControl::WriteBack, Scope::Device, false),
        (CacheControl::WriteBack, Scope::System, true),
        (CacheControl::WriteBackInvalidate, Scope::Device, false),
        (CacheControl::WriteBackInvalidate, Scope::System, true),
    ] {
        let mut rig = Rig::new();
        rig.store(0, Scope::Cu, BASE, 7);
        rig.cache(0, control, scope);
        assert_eq!(rig.host.dword(BASE), if is_written { 7 } else { 0 }, "{control:?}, {scope:?}");
        // Only what writes back is waited for, and only where something is written.
        rig.begin(0, AccessKind::Store, Scope::System);
        rig.checker.end_access();
        rig.store(0, Scope::System, BASE + 2 * LINE, 1);
        let told: Vec<_> =
            rig.checker.findings().iter().map(|one| (one.defect, one.lane, one.address)).collect();
        let expected =
            if is_written { vec![(Defect::UnwaitedWriteBack, Some(0), BASE + 2 * LINE)] } else { vec![] };
        assert_eq!(told, expected, "{control:?}, {scope:?}");
    }
    for (control, expected) in
        [(CacheControl::Invalidate, 7), (CacheControl::WriteBackInvalidate, 7), (CacheControl::WriteBack, 0)]
    {
        let mut rig = Rig::new();
        rig.load(1, Scope::Cu, BASE);
        rig.store(0, Scope::Cu, BASE, 7);
        rig.cache(1, control, Scope::Device);
        assert_eq!(rig.load(1, Scope::Cu, BASE), expected, "{control:?}");
    }
}

/// What a flag announced is known from its first load on.
#[test]
fn an_invalidation_is_early_only_for_what_is_new() {
    let pass = |between: fn(&mut Rig)| {
        let mut rig = Rig::new();
        rig.store(0, Scope::Cu, BASE, 7);
        rig.wait_stores(0);
        rig.store(0, Scope::Device, BASE + LINE, 1);
        rig.load(1, Scope::Device, BASE + LINE);
        between(&mut rig);
        rig.invalidate(1, Scope::Device);
        rig.wait_loads(1);
        let value = rig.load(1, Scope::Cu, BASE);
        (value, rig.defects())
    };
    assert_eq!(pass(|_| {}), (0, vec![Defect::StaleVectorCache]));
    assert_eq!(pass(|rig| rig.wait_loads(1)), (7, vec![]));
    let polled_again = |rig: &mut Rig| {
        rig.wait_loads(1);
        rig.load(1, Scope::Device, BASE + LINE);
    };
    assert_eq!(pass(polled_again), (7, vec![]));
    // Two loads under way, of which the first has arrived: operation 1 of the wave.
    let the_first_of_two = |rig: &mut Rig| {
        rig.load(1, Scope::Device, BASE + LINE);
        rig.checker.waited(WaveId(1), Completed { loads: 1, ..Completed::default() });
    };
    assert_eq!(pass(the_first_of_two), (7, vec![]));
}

/// Lanes of one instruction; the caller compares what they store.
#[test]
fn lanes_that_overlap_in_lds_are_told_of_stores_alone() {
    for (kind, addresses, expected) in [
        (AccessKind::LdsStore, [0, 0], true),
        (AccessKind::LdsStore, [0, 3], true),
        (AccessKind::LdsStore, [0, 4], false),
        (AccessKind::LdsLoad, [0, 0], false),
        (AccessKind::LdsAtomic { returns: true }, [0, 0], false),
    ] {
        let mut rig = Rig::new();
        rig.lds(0, AccessKind::LdsStore, 0, 8);
        rig.lds(0, AccessKind::LdsStore, 0, 8);
        assert!(!rig.checker.take_lanes_in_lds(), "two instructions");
        rig.begin(0, kind, Scope::Cu);
        for (lane, address) in (0..).zip(addresses) {
            assert!(rig.checker.lds_access(&mut rig.group, lane, address, 4, 1));
        }
        assert_eq!(rig.checker.take_lanes_in_lds(), expected, "{kind:?}, {addresses:?}");
        assert!(!rig.checker.take_lanes_in_lds(), "it is told once");
    }
}

/// A whole page of zeros that count as unwritten, and one that is stored undefined, written, and named anew.
#[test]
fn unwritten_memory_is_so_wherever_it_is_and_whatever_was_there() {
    let mut rig = Rig::new();
    rig.checker.add_allocation("x", BASE, 0x2000, AllocationUse::Unwritten);
    for va in [BASE, BASE + LINE, BASE + 0xffc, BASE + 0x1000, BASE + 0x1100] {
        let pc = rig.begin(0, AccessKind::Load, Scope::Cu);
        rig.checker.load(0, va, &mut rig.host, &mut [0; 4]);
        let loads = rig.checker.take_undefined_loads();
        let found: Vec<_> = loads.iter().map(|load| (load.bits[0], load.origin)).collect();
        assert_eq!(found, [(u32::MAX, Origin { source: Source::Memory(va), pc })]);
    }
    let mut rig = Rig::new();
    let elements = vec![[[0xff00, 0, 0, 0]; 64]];
    rig.checker.set_undefined_data(Some(Stored { elements, origin: ORIGIN }));
    rig.store(0, Scope::Cu, BASE, 0);
    rig.checker.set_undefined_data(None);
    assert!(!rig.checker.has_undefined_loads());
    rig.load(0, Scope::Cu, BASE);
    assert!(rig.checker.has_undefined_loads());
    assert_eq!(rig.checker.take_undefined_loads()[0].origin, ORIGIN);
    rig.store(0, Scope::Cu, BASE, 0);
    rig.checker.add_allocation("x", BASE, 64, AllocationUse::Unwritten);
    rig.load(0, Scope::Cu, BASE);
    assert_eq!(rig.checker.take_undefined_loads()[0].origin.source, Source::Memory(BASE));
}
