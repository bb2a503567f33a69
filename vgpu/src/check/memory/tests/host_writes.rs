//! Host writes while a dispatch runs, by how the memory is mapped: system memory, VRAM, shared VRAM.
//!
//! Expected values follow from hardware reference §6.3 and the project's rule that kernels read host writes with
//! system scope. Wave 0 runs on one WGP, wave 1 on another.

use super::rig::{BASE, Rig};
use crate::check::memory::{CacheActions, CacheControl, Defect, Path, Scope};
use crate::memory::MemoryType;

const SYSTEM: MemoryType = MemoryType { is_local: false, is_uncached: false };
const UNCACHED_SYSTEM: MemoryType = MemoryType { is_local: false, is_uncached: true };
const VRAM: MemoryType = MemoryType { is_local: true, is_uncached: false };
const SHARED: MemoryType = MemoryType { is_local: true, is_uncached: true };

/// The device has seen 5, then the host writes 9.
fn replaced(memory_type: MemoryType) -> Rig {
    let mut rig = Rig::on(memory_type);
    rig.host.set(BASE, 5);
    assert_eq!(rig.load(0, Scope::System, BASE), 5);
    assert_eq!(rig.load(1, Scope::Cu, BASE), 5);
    rig.host.set(BASE, 9);
    rig
}

#[test]
fn a_load_of_system_scope_is_fresh_but_in_vram_that_gl2_keeps() {
    for (memory_type, value, defects) in [
        (SYSTEM, 9, vec![]),
        (UNCACHED_SYSTEM, 9, vec![]),
        (SHARED, 9, vec![]),
        (VRAM, 5, vec![Defect::StaleVram]),
    ] {
        let mut rig = replaced(memory_type);
        assert_eq!(rig.load(0, Scope::System, BASE), value, "{memory_type:?}");
        assert_eq!(rig.defects(), defects, "{memory_type:?}");
    }
}

#[test]
fn packets_alone_make_vram_fresh() {
    let mut rig = replaced(VRAM);
    rig.invalidate(0, Scope::System);
    assert_eq!(rig.load(0, Scope::System, BASE), 5);
    assert_eq!(rig.defects(), [Defect::StaleVram]);
    rig.checker.take_findings();
    rig.acquire(CacheActions::all());
    assert_eq!(rig.load(0, Scope::Cu, BASE), 9);
    assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
}

/// One group receives the message and signals another, which drops only its vector cache.
#[test]
fn uncached_memory_is_read_with_system_scope_or_behind_the_groups_own_invalidation() {
    for memory_type in [SHARED, UNCACHED_SYSTEM] {
        read_by_a_follower(memory_type);
    }
}

fn read_by_a_follower(memory_type: MemoryType) {
    let follower = |read: fn(&mut Rig) -> u32| {
        let mut rig = replaced(memory_type);
        assert_eq!(rig.load(0, Scope::System, BASE), 9);
        rig.wait_loads(0);
        rig.invalidate(0, Scope::System);
        assert_eq!(rig.load(0, Scope::Cu, BASE), 9, "the group's own");
        let value = read(&mut rig);
        (value, rig.defects())
    };
    let below = |rig: &mut Rig| {
        rig.invalidate(1, Scope::Device);
        rig.load(1, Scope::Cu, BASE)
    };
    assert_eq!(follower(below), (5, vec![Defect::HostWriteBelowSystem]));
    let past_the_vector_cache = |rig: &mut Rig| rig.load(1, Scope::Device, BASE);
    assert_eq!(follower(past_the_vector_cache), (5, vec![Defect::HostWriteBelowSystem]));
    let system = |rig: &mut Rig| rig.load(1, Scope::System, BASE);
    assert_eq!(follower(system), (9, vec![]));
    let own = |rig: &mut Rig| {
        rig.invalidate(1, Scope::System);
        rig.load(1, Scope::Cu, BASE)
    };
    assert_eq!(follower(own), (9, vec![]));
}

#[test]
fn an_invalidation_counts_where_it_stands_between_the_hosts_write_and_the_first_look() {
    let mut rig = replaced(SHARED);
    rig.invalidate(1, Scope::System);
    assert_eq!(rig.load(1, Scope::Cu, BASE), 9);
    assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
    rig.host.set(BASE, 11);
    assert_eq!(rig.load(1, Scope::Cu, BASE), 9, "once more, and no invalidation since");
    assert_eq!(rig.defects(), [Defect::HostWriteBelowSystem]);
}

#[test]
fn what_the_host_writes_between_dispatches_or_before_any_look_is_no_message() {
    for memory_type in [SYSTEM, UNCACHED_SYSTEM, VRAM, SHARED] {
        let mut rig = replaced(memory_type);
        rig.host.set(BASE + 0x1000, 3);
        rig.acquire(CacheActions::all());
        rig.second_dispatch(2);
        assert_eq!(rig.load(2, Scope::Cu, BASE), 9, "{memory_type:?}");
        assert_eq!(rig.load(2, Scope::Cu, BASE + 0x1000), 3, "{memory_type:?}");
        // The other dwords of the line are unchanged.
        rig.host.set(BASE + 4, 1);
        assert_eq!(rig.load(2, Scope::Cu, BASE + 8), 0, "{memory_type:?}");
        assert!(rig.checker.findings().is_empty(), "{memory_type:?}: {:#?}", rig.checker.findings());
    }
}

#[test]
fn what_waves_write_to_uncached_memory_is_handed_over_as_elsewhere_and_seen_by_the_host_at_once() {
    for memory_type in [SHARED, UNCACHED_SYSTEM] {
        write_by_waves(memory_type);
    }
}

fn write_by_waves(memory_type: MemoryType) {
    let mut rig = Rig::on(memory_type);
    rig.host.set(BASE, 9);
    rig.store(0, Scope::Cu, BASE, 7);
    assert_eq!(rig.host.dword(BASE), 7);
    rig.wait_stores(0);
    rig.store(0, Scope::Device, BASE + 0x200, 1);
    rig.load(1, Scope::Device, BASE + 0x200);
    rig.wait_loads(1);
    assert_eq!(rig.load(1, Scope::Cu, BASE), 9, "the vector cache keeps lines of uncached memory, too");
    assert_eq!(rig.defects(), [Defect::StaleVectorCache]);
    rig.checker.take_findings();
    rig.invalidate(1, Scope::Device);
    assert_eq!(rig.load(1, Scope::Cu, BASE), 7);
    rig.cache(1, CacheControl::WriteBack, Scope::System);
    rig.checker.cp_write(BASE, &[8, 0, 0, 0], Path::LevelTwo, &mut rig.host);
    assert_eq!(rig.host.dword(BASE), 8);
    assert!(rig.checker.dirty_ranges().is_empty());
    assert!(rig.checker.findings().is_empty(), "{:#?}", rig.checker.findings());
}

/// An atomic of system scope acts on memory, except on VRAM that GL2 keeps; a narrower one acts on GL2's copy.
#[test]
fn atomics_meet_the_hosts_write_by_scope_and_memory() {
    for (memory_type, device, system) in
        [(SYSTEM, 5, 9), (UNCACHED_SYSTEM, 9, 9), (SHARED, 9, 9), (VRAM, 5, 5)]
    {
        for (scope, expected) in [(Scope::Device, device), (Scope::System, system)] {
            let mut rig = replaced(memory_type);
            assert_eq!(rig.atomic(0, true, scope, BASE), expected, "{memory_type:?}, {scope:?}");
            let is_seen = scope == Scope::System || memory_type.is_uncached;
            assert_eq!(
                rig.host.dword(BASE),
                if is_seen { expected + 1 } else { 9 },
                "{memory_type:?}, {scope:?}"
            );
        }
    }
}

/// A look at one dword of a line shows what the host has replaced in all of it.
#[test]
fn a_host_write_is_met_in_the_line_that_another_dword_brings_in() {
    for (at, looked_at) in [(0x314, 0x340), (0x300, 0x3fc), (0x3fc, 0x300), (0x0, 0x4)] {
        let mut rig = Rig::on(SHARED);
        rig.host.set(BASE + at, 5);
        assert_eq!(rig.load(1, Scope::Cu, BASE + at), 5);
        rig.host.set(BASE + at, 9);
        assert_eq!(rig.load(0, Scope::System, BASE + looked_at), 0);
        assert_eq!(rig.load(1, Scope::Cu, BASE + at), 5);
        let told: Vec<_> =
            rig.checker.take_findings().iter().map(|told| (told.defect, told.address)).collect();
        assert_eq!(told, [(Defect::HostWriteBelowSystem, BASE + at)]);
        assert_eq!(rig.load(1, Scope::Cu, BASE + looked_at), 0);
        assert_eq!(rig.load(1, Scope::Cu, BASE + 0x20), 0);
        assert_eq!(rig.defects(), [], "the others are as they were");
    }
}

#[test]
fn a_stale_dword_of_gl2_is_told_of_itself_alone() {
    let mut rig = Rig::on(SYSTEM);
    rig.host.set(BASE + 0x114, 5);
    assert_eq!(rig.load(0, Scope::Cu, BASE + 0x114), 5);
    rig.host.set(BASE + 0x114, 9);
    for va in [BASE + 0x100, BASE + 0x110, BASE + 0x118] {
        assert_eq!(rig.load(0, Scope::Cu, va), 0);
    }
    assert_eq!(rig.defects(), []);
    assert_eq!(rig.load(0, Scope::Cu, BASE + 0x114), 5);
    let [finding] = rig.checker.findings() else { panic!("{:#?}", rig.checker.findings()) };
    assert_eq!((finding.defect, finding.address), (Defect::StaleLevelTwo, BASE + 0x114));
}
