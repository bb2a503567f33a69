//! Flags and readers, byte by byte and class by class.

use super::rig::{BASE, Rig};
use crate::check::memory::{Access, AccessKind, CacheActions, Defect, FINDINGS_MAX, Path, Scope, WaveId};

type Program = fn(&mut Rig);

/// Bytes of a flag, and plain accesses beside and over it; the place of the store that is met.
const PROGRAMS: &[(&str, Program, Option<u64>)] = &[
    (
        "a plain store beside it",
        |rig| {
            rig.store_bytes(0, Scope::Device, BASE, &[1, 2]);
            rig.store_bytes(1, Scope::Cu, BASE + 2, &[3, 4]);
        },
        None,
    ),
    (
        "a plain store over it",
        |rig| {
            rig.store_bytes(0, Scope::Device, BASE, &[1, 2]);
            rig.store_bytes(1, Scope::Cu, BASE + 1, &[3]);
        },
        Some(0x1008),
    ),
    (
        "flags of too small a scope, beside each other",
        |rig| {
            rig.store_bytes(0, Scope::Se, BASE, &[1, 2]);
            rig.store_bytes(1, Scope::Se, BASE + 2, &[3, 4]);
        },
        None,
    ),
    (
        "flags of too small a scope",
        |rig| {
            rig.store_bytes(0, Scope::Se, BASE, &[1, 2]);
            rig.store_bytes(1, Scope::Se, BASE, &[3, 4]);
        },
        Some(0x1008),
    ),
    (
        "two flag loads",
        |rig| {
            rig.load(0, Scope::Se, BASE);
            rig.load(1, Scope::Se, BASE);
        },
        None,
    ),
    (
        "a flag load and a plain load",
        |rig| {
            rig.load(0, Scope::Device, BASE);
            rig.load(1, Scope::Cu, BASE);
        },
        None,
    ),
    (
        "half of a flag, replaced by a plain store",
        |rig| {
            rig.store(0, Scope::Device, BASE, 1);
            rig.store_bytes(0, Scope::Cu, BASE, &[1, 2]);
            rig.begin(1, AccessKind::Load, Scope::Cu);
            rig.checker.load(0, BASE, &mut rig.host, &mut [0; 2]);
        },
        Some(0x1010),
    ),
    (
        "the other half",
        |rig| {
            rig.store(0, Scope::Device, BASE, 1);
            rig.store_bytes(0, Scope::Cu, BASE, &[1, 2]);
            rig.begin(1, AccessKind::Load, Scope::Cu);
            rig.checker.load(0, BASE + 2, &mut rig.host, &mut [0; 2]);
        },
        Some(0x1008),
    ),
    (
        "both halves, one after the other",
        |rig| {
            rig.store_bytes(0, Scope::Device, BASE, &[1, 2]);
            rig.store_bytes(0, Scope::Device, BASE + 2, &[1, 2]);
            rig.begin(1, AccessKind::Load, Scope::Cu);
            rig.checker.load(0, BASE, &mut rig.host, &mut [0; 2]);
        },
        Some(0x1010),
    ),
    (
        "one half, twice",
        |rig| {
            rig.store_bytes(0, Scope::Device, BASE, &[1, 2]);
            rig.store_bytes(0, Scope::Device, BASE, &[1, 2]);
            rig.begin(1, AccessKind::Load, Scope::Cu);
            rig.checker.load(0, BASE, &mut rig.host, &mut [0; 2]);
        },
        Some(0x1010),
    ),
    (
        "a store and a load of one wave are two",
        |rig| {
            rig.store(0, Scope::Device, BASE, 1);
            rig.load(0, Scope::Device, BASE);
            rig.load(1, Scope::Cu, BASE);
        },
        Some(0x1008),
    ),
];

#[test]
fn flags_are_bytes_too() {
    for (name, program, expected) in PROGRAMS {
        let mut rig = Rig::new();
        program(&mut rig);
        let others = rig.checker.findings().iter().map(|finding| finding.other.map_or(0, |other| other.pc));
        assert_eq!(others.collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>(), "{name}");
        assert_eq!(rig.defects(), if expected.is_some() { vec![Defect::Race] } else { vec![] }, "{name}");
    }
}

/// A plain load, or an atomic of its own, leaves what others meet.
#[test]
fn a_plain_load_meets_atomics_and_leaves_them() {
    for is_lds in [false, true] {
        let load = |rig: &mut Rig, wave| {
            if is_lds {
                assert!(rig.lds(wave, AccessKind::LdsLoad, 0, 4));
            } else {
                rig.load(wave, Scope::Cu, BASE);
            }
        };
        let mut rig = Rig::new();
        match is_lds {
            true => assert!(rig.lds(0, AccessKind::LdsAtomic { returns: false }, 0, 4)),
            false => assert_eq!(rig.atomic(0, false, Scope::Device, BASE), 0),
        }
        rig.checker.take_findings();
        load(&mut rig, 0);
        rig.checker.take_findings();
        load(&mut rig, 1);
        assert_eq!(rig.defects(), [Defect::Race], "{is_lds}");
        assert_eq!(rig.checker.findings()[0].other.map(|other| other.pc), Some(0x1008));
    }
}

/// Loads of two classes complete in their own order: the later one does not vouch for the earlier one.
#[test]
fn a_vector_load_does_not_vouch_for_a_scalar_load() {
    for (is_waited, expected) in [(false, vec![Defect::UnwaitedScalarLoad]), (true, vec![])] {
        let mut rig = Rig::new();
        rig.place(1, 0);
        rig.scalar_load(0, BASE);
        if is_waited {
            rig.wait_scalar_loads(0);
        }
        rig.load(0, Scope::Cu, BASE);
        rig.wait_loads(0);
        rig.barrier(&[0, 1]);
        rig.store(1, Scope::Cu, BASE, 1);
        assert_eq!(rig.defects(), expected);
    }
}

/// Bytes that a wave of the next dispatch reads from a settled line, and one that a concurrent wave stores.
#[test]
fn readers_of_a_settled_line_are_known_by_their_bytes() {
    for (at, len) in [(5, 1), (6, 2), (4, 4), (4, 8), (7, 1)] {
        for stored in 0..16 {
            let mut rig = Rig::new();
            rig.store(0, Scope::Cu, BASE + 64, 1);
            rig.acquire(CacheActions::all());
            rig.second_dispatch(1);
            rig.begin(2, AccessKind::Load, Scope::Cu);
            rig.checker.load(0, BASE + at, &mut rig.host, &mut vec![0; len]);
            rig.store_bytes(1, Scope::Cu, BASE + stored, &[1]);
            let is_read = (at..at + len as u64).contains(&stored);
            let expected = if is_read { vec![Defect::Race] } else { vec![] };
            assert_eq!(rig.defects(), expected, "{len} bytes at {at}, one stored at {stored}");
        }
    }
}

/// Only what has system scope announces its line.
#[test]
fn a_narrower_atomic_announces_nothing() {
    for (scope, expected) in [(Scope::Device, vec![]), (Scope::System, vec![Defect::UnreleasedLine])] {
        let mut rig = Rig::new();
        rig.store(0, Scope::Cu, BASE, 7);
        rig.wait_stores(0);
        rig.atomic(0, true, scope, BASE + 4);
        assert_eq!(rig.defects(), expected, "{scope:?}");
    }
}

#[test]
fn what_is_too_much_is_counted() {
    let mut rig = Rig::new();
    for _ in 0..FINDINGS_MAX {
        rig.load(0, Scope::Cu, BASE + 2);
    }
    assert_eq!((rig.checker.findings().len(), rig.checker.dropped_findings()), (FINDINGS_MAX, 0));
    (0..3).for_each(|_| assert_eq!(rig.load(0, Scope::Cu, BASE + 2), 0));
    assert_eq!((rig.checker.findings().len(), rig.checker.dropped_findings()), (FINDINGS_MAX, 3));
    assert_eq!(rig.checker.take_findings().len(), FINDINGS_MAX);
    assert_eq!(rig.checker.dropped_findings(), 0);
}

/// Accesses of a wave to one flag complete in order: a **model**.
#[test]
fn a_later_access_vouches_for_an_earlier_one_of_its_own_wave() {
    type Accesses = fn(&mut Rig);
    let cases: [(Accesses, Vec<Defect>); 5] = [
        (
            |rig| {
                rig.load(0, Scope::Device, BASE);
                rig.store(0, Scope::Device, BASE, 1);
                rig.wait_stores(0);
            },
            vec![],
        ),
        (
            |rig| {
                rig.store(0, Scope::Device, BASE, 1);
                rig.wait_stores(0);
                rig.load(0, Scope::Device, BASE);
            },
            vec![Defect::UnwaitedLoad],
        ),
        (
            |rig| {
                rig.store(0, Scope::Device, BASE, 1);
                rig.load(0, Scope::Device, BASE);
                rig.wait_loads(0);
            },
            vec![],
        ),
        (
            |rig| {
                rig.load(0, Scope::Device, BASE);
                rig.wait_loads(0);
                rig.store(0, Scope::Device, BASE, 1);
            },
            vec![Defect::UnwaitedStore],
        ),
        (
            |rig| {
                rig.store(0, Scope::Device, BASE, 1);
                rig.load(1, Scope::Device, BASE);
                rig.load(1, Scope::Device, BASE);
            },
            vec![Defect::UnwaitedStore],
        ),
    ];
    for (index, (accesses, expected)) in cases.into_iter().enumerate() {
        let mut rig = Rig::new();
        accesses(&mut rig);
        rig.barrier(&[0, 1]);
        rig.store(1, Scope::Cu, BASE, 2);
        assert_eq!(rig.defects(), expected, "{index}");
    }
}

/// A page that was read by a dispatch which is over, and one that is read now.
#[test]
fn readers_that_are_still_needed_survive_the_reclaiming_of_others() {
    let mut rig = Rig::new();
    (0..8).for_each(|dword| assert_eq!(rig.load(0, Scope::Cu, BASE + 4 * dword), 0));
    rig.acquire(CacheActions::all());
    rig.checker.begin_dispatch(2, 1, WaveId(2));
    rig.place(2, 0);
    rig.place(3, 2);
    // What the second load leaves of the first one is not needed.
    (0..2).for_each(|_| assert_eq!(rig.load(2, Scope::Cu, BASE + 0x1000), 0));
    rig.checker.readers.collect_at = 0;
    rig.store(3, Scope::Cu, BASE + 0x1000, 1);
    let told = rig.checker.findings().iter().map(|told| (told.defect, told.other.map(|other| other.pc)));
    assert_eq!(told.collect::<Vec<_>>(), [(Defect::Race, Some(0x1050))]);
}

/// Waves 0 and 1 signal, one after the other, and wave 2 looks.
#[test]
fn a_store_replaces_what_was_published_and_an_atomic_adds_to_it() {
    for (is_atomic, expected) in [(true, vec![]), (false, vec![Defect::Race])] {
        let mut rig = Rig::new();
        rig.second_dispatch(0);
        rig.store(0, Scope::Cu, BASE + 0x100, 7);
        rig.wait_stores(0);
        rig.atomic(0, false, Scope::Device, BASE);
        if is_atomic {
            rig.atomic(1, false, Scope::Device, BASE);
        } else {
            rig.store(1, Scope::Device, BASE, 2);
        }
        assert_eq!(rig.load(2, Scope::Device, BASE), 2);
        rig.wait_loads(2);
        rig.invalidate(2, Scope::Device);
        rig.load(2, Scope::Cu, BASE + 0x100);
        assert_eq!(rig.defects(), expected, "{is_atomic}");
    }
}

/// Compute units 0 and 1 are one WGP.
#[test]
fn a_flag_orders_waves_that_both_scopes_cover() {
    for (release, acquire, cu, is_ordered) in [
        (Scope::Device, Scope::Device, 2, true),
        (Scope::Device, Scope::Se, 2, false),
        (Scope::Se, Scope::Device, 2, false),
        (Scope::Device, Scope::Se, 1, true),
        (Scope::Se, Scope::Device, 1, true),
        (Scope::Se, Scope::Se, 0, true),
    ] {
        let mut rig = Rig::new();
        rig.place(1, cu);
        rig.store(0, Scope::Cu, BASE + 0x100, 7);
        rig.wait_stores(0);
        rig.store(0, release, BASE, 1);
        rig.load(1, acquire, BASE);
        rig.wait_loads(1);
        rig.invalidate(1, Scope::Device);
        // The flags themselves race where the scopes are too small.
        rig.checker.take_findings();
        rig.load(1, Scope::Cu, BASE + 0x100);
        let expected = if is_ordered { vec![] } else { vec![Defect::Race] };
        assert_eq!(rig.defects(), expected, "{release:?}, {acquire:?}, {cu}");
    }
}

/// A barrier says that it was issued, STOREcnt that it has arrived. Nobody who polls waits longer than for one look.
#[test]
fn a_write_that_is_not_waited_for_arrives_after_the_first_look_of_another_wave() {
    let writes: [fn(&mut Rig); 2] = [
        |rig| rig.store(0, Scope::Device, BASE, 6),
        |rig| assert_eq!(rig.atomic(0, false, Scope::Device, BASE), 5),
    ];
    for write in writes {
        let looks = |between: fn(&mut Rig)| {
            let mut rig = Rig::new();
            rig.host.set(BASE, 5);
            write(&mut rig);
            between(&mut rig);
            let looks = [(); 3].map(|()| rig.load(1, Scope::Device, BASE));
            assert_eq!((rig.load(0, Scope::Device, BASE), rig.defects()), (6, vec![]));
            looks
        };
        assert_eq!(looks(|rig| rig.barrier(&[0, 1])), [5, 6, 6]);
        let waited = |rig: &mut Rig| {
            rig.wait_stores(0);
            rig.barrier(&[0, 1]);
        };
        assert_eq!(looks(waited), [6; 3]);
        // Its own wave sees it, which is no look of another.
        let own = |rig: &mut Rig| {
            assert_eq!(rig.load(0, Scope::Device, BASE), 6);
            rig.barrier(&[0, 1]);
        };
        assert_eq!(looks(own), [5, 6, 6]);
        // Who has completed a load of the new value vouches for it.
        let vouched = |rig: &mut Rig| {
            assert_eq!(rig.load(0, Scope::Device, BASE), 6);
            rig.wait_loads(0);
            rig.barrier(&[0, 1]);
        };
        assert_eq!(looks(vouched), [6; 3]);
        // Nothing tells when two waves that nobody orders meet.
        assert_eq!(looks(|_| ()), [6; 3]);
    }
}

/// All lanes of an instruction look at once; bytes beside those that were written are what they are.
#[test]
fn one_instruction_comes_before_a_write_on_its_way() {
    let mut rig = Rig::new();
    rig.host.set(BASE, 0x0403_0201);
    rig.store_bytes(0, Scope::Device, BASE + 1, &[7, 8]);
    rig.barrier(&[0, 1]);
    // Who looks beside it has not looked at it.
    rig.begin(1, AccessKind::Load, Scope::Device);
    rig.checker.load(0, BASE, &mut rig.host, &mut [0]);
    rig.begin(1, AccessKind::Load, Scope::Device);
    let lane = |rig: &mut Rig, at: u64| {
        let mut byte = [0];
        rig.checker.load(0, BASE + at, &mut rig.host, &mut byte);
        byte[0]
    };
    assert_eq!([0, 1, 1, 2, 3].map(|at| lane(&mut rig, at)), [1, 2, 2, 3, 4]);
    assert_eq!(rig.load(1, Scope::Device, BASE), 0x0408_0701);
    // What another wave has written since is what counts.
    rig.store(0, Scope::Device, BASE, 9);
    rig.barrier(&[0, 1]);
    rig.store(1, Scope::Device, BASE, 10);
    assert_eq!(rig.load(0, Scope::Device, BASE), 10);
    assert_eq!(rig.load(1, Scope::Device, BASE), 10);
    rig.store(0, Scope::Device, BASE, 11);
    rig.barrier(&[0, 1]);
    rig.checker.cp_write(BASE, &[12, 0, 0, 0], Path::LevelTwo, &mut rig.host);
    assert_eq!(rig.load(1, Scope::Device, BASE), 12);
    // And so is what was stored over it.
    rig.store(0, Scope::Device, BASE, 13);
    rig.store(0, Scope::Cu, BASE, 14);
    rig.wait_stores(0);
    rig.barrier(&[0, 1]);
    assert_eq!(rig.load(1, Scope::Device, BASE), 14);
}

/// Even if nothing tells it from an access that has not been.
#[test]
fn the_first_access_of_all_is_told_by_its_own_place() {
    let mut rig = Rig::new();
    let access =
        Access { wave: WaveId(0), sequence: 1, pc: 0, cu: 0, scope: Scope::Cu, kind: AccessKind::Load };
    rig.checker.begin_access(access);
    rig.checker.load(0, BASE, &mut rig.host, &mut [0; 4]);
    rig.store(1, Scope::Cu, BASE, 1);
    let others = rig.checker.findings().iter().map(|finding| finding.other.map(|other| other.pc));
    assert_eq!(others.collect::<Vec<_>>(), [Some(0)]);
}
