//! For each rule, small programs of two waves: a correct one without findings, and a wrong twin that breaks exactly
//! one rule. Expected values follow from the memory model (instruction set reference §9, hardware reference §6).

use super::rig::{BASE, Rig};
use crate::check::memory::{
    AccessKind, AllocationUse, CacheActions, CacheControl, Defect, Path, Scope, WaveId,
};

const DATA: u64 = BASE;
const FLAG: u64 = BASE + 0x200;
const EVERY: CacheActions = CacheActions::all();

/// Runs the right or the wrong program. Returns what the consumer reads.
pub type Program = fn(&mut Rig, bool) -> u32;

/// One pair of programs.
pub struct Pair {
    pub name: &'static str,
    pub defect: Defect,
    /// What the consumer reads in the right and in the wrong program.
    values: (u32, u32),
    pub program: Program,
}

const fn pair(name: &'static str, defect: Defect, values: (u32, u32), program: Program) -> Pair {
    Pair { name, defect, values, program }
}

/// Message passing between two groups, with one step that may be left out or replaced.
#[derive(Default)]
struct Passing {
    no_release_wait: bool,
    no_acquire_wait: bool,
    no_invalidate: bool,
    early_invalidate: bool,
    producer: Option<Scope>,
    consumer: Option<Scope>,
    invalidate: Option<Scope>,
}

fn pass(rig: &mut Rig, passing: &Passing) -> u32 {
    rig.store(0, Scope::Cu, DATA, 7);
    if !passing.no_release_wait {
        rig.wait_stores(0);
    }
    rig.store(0, passing.producer.unwrap_or(Scope::Device), FLAG, 1);
    rig.load(1, passing.consumer.unwrap_or(Scope::Device), FLAG);
    if passing.early_invalidate {
        rig.invalidate(1, Scope::Device);
    }
    if !passing.no_acquire_wait {
        rig.wait_loads(1);
    }
    if !passing.no_invalidate && !passing.early_invalidate {
        rig.invalidate(1, passing.invalidate.unwrap_or(Scope::Device));
    }
    rig.load(1, Scope::Cu, DATA)
}

pub const PAIRS: &[Pair] = &[
    pair("flag without release wait", Defect::UnwaitedStore, (7, 7), |rig, right| {
        pass(rig, &Passing { no_release_wait: !right, ..Passing::default() })
    }),
    pair("flag without acquire wait", Defect::Race, (7, 0), |rig, right| {
        pass(rig, &Passing { no_acquire_wait: !right, ..Passing::default() })
    }),
    pair("flag without invalidation", Defect::StaleVectorCache, (7, 0), |rig, right| {
        pass(rig, &Passing { no_invalidate: !right, ..Passing::default() })
    }),
    pair("invalidation before the flag has arrived", Defect::StaleVectorCache, (7, 0), |rig, right| {
        pass(rig, &Passing { early_invalidate: !right, ..Passing::default() })
    }),
    pair("invalidation of too small a scope", Defect::StaleVectorCache, (7, 0), |rig, right| {
        let invalidate = if right { Scope::System } else { Scope::Se };
        pass(rig, &Passing { invalidate: Some(invalidate), ..Passing::default() })
    }),
    pair("flag without scope at the producer", Defect::Race, (7, 7), |rig, right| {
        let producer = if right { Scope::Device } else { Scope::Cu };
        pass(rig, &Passing { producer: Some(producer), ..Passing::default() })
    }),
    pair("shader engine scope between two WGPs", Defect::Race, (7, 7), |rig, right| {
        rig.place(1, if right { 1 } else { 2 });
        let scope = Some(Scope::Se);
        pass(rig, &Passing { producer: scope, consumer: scope, ..Passing::default() })
    }),
    pair("flag atomic without release wait", Defect::UnwaitedStore, (7, 7), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        if right {
            rig.wait_stores(0);
        }
        rig.atomic(0, false, Scope::Device, FLAG);
        rig.load(1, Scope::Device, FLAG);
        rig.wait_loads(1);
        rig.invalidate(1, Scope::Device);
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("last group by a counter that is not returned", Defect::Race, (7, 7), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.wait_stores(0);
        rig.atomic(0, true, Scope::Device, FLAG);
        rig.atomic(1, right, Scope::Device, FLAG);
        rig.wait(1, true, true, false);
        // The last one resets the counter by a plain store; nobody else reads it any more.
        if right {
            rig.store(1, Scope::Cu, FLAG, 0);
        }
        rig.load(1, Scope::Device, DATA)
    }),
    pair("overwriting what another wave still loads", Defect::UnwaitedLoad, (0, 0), |rig, right| {
        let value = rig.load(0, Scope::Cu, DATA);
        if right {
            rig.wait_loads(0);
        }
        rig.store(0, Scope::Device, FLAG, 1);
        rig.load(1, Scope::Device, FLAG);
        rig.wait_loads(1);
        rig.store(1, Scope::Cu, DATA, 9);
        value
    }),
    pair("overwriting what a scalar load still reads", Defect::UnwaitedScalarLoad, (0, 0), |rig, right| {
        let value = rig.scalar_load(0, DATA);
        if right {
            rig.wait_scalar_loads(0);
        }
        rig.store(0, Scope::Device, FLAG, 1);
        rig.load(1, Scope::Device, FLAG);
        rig.wait_loads(1);
        rig.store(1, Scope::Cu, DATA, 9);
        value
    }),
    pair("two stores without order", Defect::Race, (2, 2), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 1);
        rig.store(1, Scope::Cu, if right { DATA + 4 } else { DATA }, 2);
        rig.load(1, Scope::Cu, if right { DATA + 4 } else { DATA })
    }),
    pair("a reader that a store forgets, among many", Defect::Race, (0, 0), |rig, right| {
        let value = rig.load(0, Scope::Cu, DATA);
        rig.load(1, Scope::Cu, DATA);
        rig.store(1, Scope::Cu, if right { DATA + 4 } else { DATA }, 2);
        value
    }),
    pair("halves of a dword", Defect::Race, (0, 0), |rig, right| {
        rig.store_bytes(0, Scope::Cu, DATA, &[1, 2]);
        rig.store_bytes(1, Scope::Cu, if right { DATA + 2 } else { DATA + 1 }, &[3]);
        0
    }),
    pair("halves of a dword, loaded", Defect::Race, (0, 0), |rig, right| {
        rig.store_bytes(0, Scope::Cu, DATA, &[1, 2]);
        rig.begin(1, AccessKind::Load, Scope::Cu);
        let mut out = [0; 2];
        rig.checker.load(0, if right { DATA + 2 } else { DATA }, &mut rig.host, &mut out);
        0
    }),
    pair("an atomic and a plain access", Defect::Race, (1, 1), |rig, right| {
        rig.atomic(0, false, Scope::Device, DATA);
        if right {
            rig.atomic(1, true, Scope::Device, DATA)
        } else {
            rig.begin(1, AccessKind::Load, Scope::Cu);
            let mut out = [0; 4];
            rig.checker.load(0, DATA, &mut rig.host, &mut out);
            1
        }
    }),
    pair("atomics whose scope does not cover both", Defect::Race, (1, 1), |rig, right| {
        let scope = if right { Scope::Device } else { Scope::Cu };
        rig.atomic(0, false, Scope::Device, DATA);
        rig.atomic(1, true, scope, DATA)
    }),
    pair("barrier without store wait", Defect::UnwaitedStore, (7, 7), |rig, right| {
        rig.place(1, 0);
        rig.store(0, Scope::Cu, DATA, 7);
        if right {
            rig.wait_stores(0);
        }
        rig.barrier(&[0, 1]);
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("a store after the signal", Defect::Race, (7, 7), |rig, right| {
        rig.place(1, 0);
        if right {
            rig.store(0, Scope::Cu, DATA, 7);
            rig.wait_stores(0);
        }
        rig.barrier(&[0, 1]);
        if !right {
            rig.store(0, Scope::Cu, DATA, 7);
            rig.wait_stores(0);
        }
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("a flag that a barrier must order", Defect::UnwaitedStore, (1, 1), |rig, right| {
        rig.place(1, 0);
        rig.atomic(0, false, Scope::Device, DATA);
        if right {
            rig.wait_stores(0);
        }
        rig.barrier(&[0, 1]);
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("WGP mode without invalidation", Defect::StaleVectorCache, (7, 0), |rig, right| {
        rig.place(1, 1);
        rig.store(0, Scope::Cu, DATA, 7);
        rig.wait(0, true, true, true);
        rig.barrier(&[0, 1]);
        if right {
            rig.invalidate(1, Scope::Se);
        }
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("LDS barrier without wait", Defect::UnwaitedLds, (0, 0), |rig, right| {
        rig.lds(0, AccessKind::LdsStore, 16, 4);
        rig.wait(0, true, true, right);
        rig.barrier(&[0, 1]);
        rig.lds(1, AccessKind::LdsLoad, 16, 4);
        0
    }),
    pair("LDS without barrier", Defect::Race, (0, 0), |rig, right| {
        rig.lds(0, AccessKind::LdsStore, 16, 4);
        rig.wait(0, false, false, true);
        if right {
            rig.barrier(&[0, 1]);
        }
        rig.lds(1, AccessKind::LdsLoad, 16, 4);
        0
    }),
    pair("LDS flag that is not returned", Defect::Race, (0, 0), |rig, right| {
        rig.lds(0, AccessKind::LdsStore, 0, 4);
        rig.lds(0, AccessKind::LdsStore, 16, 4);
        rig.wait(0, false, false, true);
        rig.lds(0, AccessKind::LdsAtomic { returns: false }, 0, 4);
        // The counter itself was set up before the waves diverged.
        rig.barrier(&[0, 1]);
        rig.lds(0, AccessKind::LdsStore, 32, 4);
        rig.wait(0, false, false, true);
        rig.lds(0, AccessKind::LdsAtomic { returns: false }, 0, 4);
        rig.lds(1, AccessKind::LdsAtomic { returns: right }, 0, 4);
        rig.wait(1, false, false, true);
        rig.lds(1, AccessKind::LdsLoad, 32, 4);
        0
    }),
    pair("uninitialised LDS", Defect::UninitialisedLds, (0, 0), |rig, right| {
        rig.lds(0, AccessKind::LdsStore, 8, if right { 8 } else { 4 });
        rig.lds(0, AccessKind::LdsLoad, 8, 8);
        0
    }),
    pair("LDS out of bounds", Defect::LdsOutOfBounds, (1, 0), |rig, right| {
        u32::from(rig.lds(0, AccessKind::LdsStore, if right { 1016 } else { 1024 }, 8))
    }),
    pair("misaligned LDS", Defect::MisalignedLds, (1, 1), |rig, right| {
        u32::from(rig.lds(0, AccessKind::LdsStore, if right { 16 } else { 8 }, 16))
    }),
    pair("misaligned atomic on LDS", Defect::MisalignedAtomic, (1, 1), |rig, right| {
        rig.lds(0, AccessKind::LdsStore, 4, 4);
        rig.lds(0, AccessKind::LdsStore, 8, 4);
        let kind = AccessKind::LdsAtomic { returns: false };
        u32::from(rig.lds(0, kind, if right { 4 } else { 6 }, 4))
    }),
    pair("misaligned global", Defect::MisalignedGlobal, (7, 7), |rig, right| {
        let va = if right { DATA } else { DATA + 2 };
        rig.store(0, Scope::Cu, va, 7);
        rig.load(0, Scope::Cu, va)
    }),
    pair("outside the allocations", Defect::OutsideAllocations, (0, 0), |rig, right| {
        rig.checker.add_allocation("x", DATA, 64, AllocationUse::Written);
        rig.load(0, Scope::Cu, if right { DATA + 60 } else { DATA + 64 })
    }),
    pair("a prefetch outside the allocations", Defect::PrefetchOutsideAllocations, (0, 0), |rig, right| {
        rig.checker.add_allocation("x", DATA, 64, AllocationUse::Written);
        // Every line of a page with at least one byte of an allocation may be prefetched.
        rig.prefetch(0, if right { DATA + 0xF80 } else { DATA + 0x1000 });
        rig.load(0, Scope::Cu, DATA)
    }),
    pair("a store to what is for reads", Defect::WriteToReadOnly, (0, 7), |rig, right| {
        rig.checker.add_allocation("code", DATA, 64, AllocationUse::ReadOnly);
        if !right {
            rig.store(0, Scope::Cu, DATA, 7);
        }
        rig.load(0, Scope::Cu, DATA)
    }),
    pair("a dispatch that was not waited for", Defect::Race, (7, 7), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.acquire(EVERY);
        rig.second_dispatch(if right { 2 } else { 0 });
        rig.load(2, Scope::Cu, DATA)
    }),
    pair("ACQUIRE_MEM without GLV_INV", Defect::StaleVectorCache, (7, 0), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::VECTOR_INVALIDATE });
        rig.second_dispatch(2);
        rig.load(2, Scope::Cu, DATA)
    }),
    pair("ACQUIRE_MEM without GLK_INV", Defect::StaleScalarCache, (7, 0), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::SCALAR_INVALIDATE });
        rig.second_dispatch(2);
        rig.scalar_load(2, DATA)
    }),
    pair("ACQUIRE_MEM without GLI_INV", Defect::StaleInstructionCache, (0, 0), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::INSTRUCTION_INVALIDATE });
        rig.checker.fetch_instructions(DATA - DATA % 4096, 4096);
        0
    }),
    pair("a scalar load of data of the dispatch", Defect::ScalarLoadOfStoredData, (7, 7), |rig, right| {
        rig.place(1, 0);
        rig.store(0, Scope::Cu, DATA, 7);
        rig.wait(0, true, true, true);
        rig.barrier(&[0, 1]);
        rig.checker.scalar_cache_invalidate(0);
        if right { rig.load(1, Scope::Cu, DATA) } else { rig.scalar_load(1, DATA) }
    }),
    pair("a fence without GL2_WB", Defect::FenceWithoutWriteBack, (7, 0), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        assert_eq!(rig.host.dword(DATA), 0, "nothing has been written back");
        let actions = if right { EVERY } else { EVERY - CacheActions::LEVEL_TWO_WRITE_BACK };
        rig.checker.release_mem(actions, Some(FLAG), &mut rig.host);
        rig.checker.cp_write(FLAG, &1_u32.to_le_bytes(), Path::Memory, &mut rig.host);
        assert_eq!(rig.host.dword(FLAG), 1);
        rig.host.dword(DATA)
    }),
    pair("the host writes what GL2 has cached", Defect::StaleLevelTwo, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        assert_eq!(rig.load(0, Scope::Cu, DATA), 5);
        rig.host.set(DATA, 9);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::LEVEL_TWO_INVALIDATE });
        rig.second_dispatch(2);
        rig.load(2, Scope::Cu, DATA)
    }),
    pair("the host writes what a vector cache has", Defect::StaleVectorCache, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.load(0, Scope::Cu, DATA);
        rig.host.set(DATA, 9);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::VECTOR_INVALIDATE });
        rig.second_dispatch(2);
        rig.load(2, Scope::Cu, DATA)
    }),
    pair("the host writes what a scalar cache has", Defect::StaleScalarCache, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.scalar_load(0, DATA);
        rig.host.set(DATA, 9);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::SCALAR_INVALIDATE });
        rig.second_dispatch(2);
        rig.scalar_load(2, DATA)
    }),
    pair("the host writes what was prefetched", Defect::StaleScalarCache, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.prefetch(0, DATA);
        rig.host.set(DATA, 9);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::SCALAR_INVALIDATE });
        rig.second_dispatch(2);
        rig.scalar_load(2, DATA)
    }),
    pair("a prefetch fills GL2 on its way", Defect::StaleLevelTwo, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.prefetch(0, DATA);
        rig.host.set(DATA, 9);
        rig.acquire(if right { EVERY } else { EVERY - CacheActions::LEVEL_TWO_INVALIDATE });
        rig.second_dispatch(2);
        rig.load(2, Scope::Cu, DATA)
    }),
    pair("a prefetch before the flag", Defect::ScalarLoadOfStoredData, (7, 0), |rig, right| {
        rig.place(1, 0);
        rig.prefetch(1, DATA);
        rig.store(0, Scope::Cu, DATA, 7);
        rig.wait(0, true, true, true);
        rig.barrier(&[0, 1]);
        if right { rig.load(1, Scope::Cu, DATA) } else { rig.scalar_load(1, DATA) }
    }),
    pair("a mailbox of the host", Defect::StaleLevelTwo, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.load(1, Scope::Cu, DATA);
        rig.host.set(DATA, 9);
        rig.host.set(FLAG, 1);
        assert_eq!(rig.load(1, Scope::System, FLAG), 1);
        rig.wait_loads(1);
        rig.invalidate(1, if right { Scope::System } else { Scope::Device });
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("a message to the host", Defect::UnwaitedWriteBack, (7, 7), |rig, right| {
        rig.store(0, Scope::Cu, DATA, 7);
        rig.wait_stores(0);
        rig.cache(0, CacheControl::WriteBack, Scope::System);
        if right {
            rig.wait_stores(0);
        }
        rig.store(0, Scope::System, FLAG, 1);
        assert_eq!(rig.host.dword(FLAG), 1, "system scope writes through");
        rig.host.dword(DATA)
    }),
    pair("a load past GL2 does not mend what is in it", Defect::StaleLevelTwo, (9, 5), |rig, right| {
        rig.host.set(DATA, 5);
        rig.load(1, Scope::Cu, DATA);
        rig.host.set(DATA, 9);
        assert_eq!(rig.load(1, Scope::System, DATA), 9);
        rig.wait_loads(1);
        rig.invalidate(1, if right { Scope::System } else { Scope::Device });
        rig.load(1, Scope::Cu, DATA)
    }),
    pair("a line for the host that is not written back", Defect::UnreleasedLine, (7, 0), |rig, right| {
        rig.store(0, Scope::Cu, DATA + 60, 7);
        rig.wait_stores(0);
        if right {
            rig.cache(0, CacheControl::WriteBack, Scope::System);
            rig.wait_stores(0);
        }
        rig.store(0, Scope::System, DATA, 1);
        assert_eq!(rig.host.dword(DATA), 1, "system scope writes through");
        rig.host.dword(DATA + 60)
    }),
    pair("another wave's part of a line for the host", Defect::UnreleasedLine, (7, 0), |rig, right| {
        rig.place(1, 0);
        rig.store(0, Scope::Cu, DATA + 60, 7);
        rig.wait_stores(0);
        rig.barrier(&[0, 1]);
        if right {
            rig.cache(1, CacheControl::WriteBack, Scope::System);
            rig.wait_stores(1);
        }
        rig.store(1, Scope::System, DATA, 1);
        rig.host.dword(DATA + 60)
    }),
    pair("what the command processor has written", Defect::StaleVectorCache, (7, 0), |rig, right| {
        rig.checker.cp_write(DATA, &7_u32.to_le_bytes(), Path::LevelTwo, &mut rig.host);
        if right {
            rig.acquire(CacheActions::VECTOR_INVALIDATE);
        }
        rig.load(0, Scope::Cu, DATA)
    }),
];

#[test]
fn right_programs_pass_and_their_wrong_twins_break_one_rule() {
    for pair in PAIRS {
        let mut rig = Rig::new();
        let value = (pair.program)(&mut rig, true);
        let findings: Vec<_> = rig.checker.findings().iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{}, right: {findings:#?}", pair.name);
        assert_eq!(value, pair.values.0, "{}, right", pair.name);

        let mut rig = Rig::new();
        let value = (pair.program)(&mut rig, false);
        assert_eq!(rig.defects(), [pair.defect], "{}, wrong: {:#?}", pair.name, rig.checker.findings());
        assert_eq!(value, pair.values.1, "{}, wrong", pair.name);
    }
}

#[test]
fn a_finding_names_both_sides_and_counts_repetitions() {
    let mut rig = Rig::new();
    let mut pcs = [0; 2];
    for (wave, pc) in pcs.iter_mut().enumerate() {
        *pc = rig.begin(wave as u32, AccessKind::Store, Scope::Cu);
        for lane in 0..32 {
            rig.checker.store(lane, DATA + 4 * u64::from(lane), &[0; 4], &mut rig.host);
        }
    }
    let [finding] = rig.checker.findings() else { panic!("one finding: {:#?}", rig.checker.findings()) };
    assert_eq!((finding.pc, finding.lane, finding.address, finding.count), (pcs[1], Some(0), DATA, 32));
    assert_eq!(finding.other.map(|other| other.pc), Some(pcs[0]));
    let text = finding.to_string();
    for part in ["rule 4", "wave 1 of group 1", "wave 0 of group 0", "remedy: order them", "32 times"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    rig.checker.end_of_wave(WaveId(0));
    assert_eq!(rig.checker.take_findings().len(), 1);
    assert!(rig.checker.findings().is_empty());
}
