//! What packets and the driver do, to the byte: fences, accesses of the command processor, code, unmapped ranges.

use super::rig::{BASE, Rig};
use crate::check::memory::{AccessKind, CacheActions, Defect, Path, Scope};

const FENCE: u64 = BASE + 0x3000;
const NO_WRITE_BACK: CacheActions = CacheActions::all().difference(CacheActions::LEVEL_TWO_WRITE_BACK);

fn texts(rig: &mut Rig) -> Vec<String> {
    rig.checker.take_findings().iter().map(ToString::to_string).collect()
}

#[test]
fn a_fence_without_a_write_back_names_the_first_four_ranges() {
    let mut rig = Rig::new();
    rig.store_bytes(0, Scope::Cu, BASE + 1, &[1, 2]);
    rig.checker.take_findings();
    rig.checker.release_mem(NO_WRITE_BACK, None, &mut rig.host);
    assert_eq!(texts(&mut rig), [""; 0], "no fence is written");
    let fence = |rig: &mut Rig| {
        rig.checker.take_findings();
        rig.checker.release_mem(NO_WRITE_BACK, Some(FENCE), &mut rig.host);
        texts(rig)
    };
    let text = |pc: u64, ranges: &str| {
        [format!(
            "rule 5: the command processor, pc 0x0, address 0x13000: a fence is written while GL2 holds data that the \
             host cannot see; other side: store by wave 0 of group 0, pc {pc:#x}; {ranges}; remedy: RELEASE_MEM with \
             GL2_WB"
        )]
    };
    assert_eq!(fence(&mut rig), text(0x1008, "2 bytes in 1 ranges: 0x10001..0x10003"));
    // Neighbours are one range, across pages too.
    rig.store_bytes(0, Scope::Cu, BASE + 3, &[3]);
    rig.store(0, Scope::Cu, BASE + 0x10, 1);
    rig.store(0, Scope::Cu, BASE + 0x20, 1);
    rig.store_bytes(0, Scope::Cu, BASE + 0xffe, &[1; 4]);
    let four = "0x10001..0x10004, 0x10010..0x10014, 0x10020..0x10024, 0x10ffe..0x11002";
    assert_eq!(fence(&mut rig), text(0x1010, &format!("15 bytes in 4 ranges: {four}")));
    rig.store_bytes(1, Scope::Cu, BASE + 0x2003, &[1]);
    assert_eq!(fence(&mut rig), text(0x1010, &format!("16 bytes in 5 ranges: {four}, …")));
    rig.acquire(CacheActions::LEVEL_TWO_WRITE_BACK);
    assert_eq!(fence(&mut rig), [""; 0]);
}

#[test]
fn fences_are_counted_and_the_last_dword_of_a_page_has_its_writer() {
    let mut rig = Rig::new();
    rig.store(1, Scope::Cu, BASE + 0xffc, 1);
    rig.checker.release_mem(NO_WRITE_BACK, Some(FENCE), &mut rig.host);
    rig.checker.release_mem(NO_WRITE_BACK, Some(FENCE), &mut rig.host);
    assert_eq!(
        texts(&mut rig),
        [
            "rule 5: the command processor, pc 0x0, address 0x13000: a fence is written while GL2 holds data that the \
          host cannot see; other side: store by wave 1 of group 1, pc 0x1008; 4 bytes in 1 ranges: \
          0x10ffc..0x11000; remedy: RELEASE_MEM with GL2_WB (seen 2 times)"
        ]
    );
}

#[test]
fn the_command_processor_reads_and_writes_bytes_at_any_place() {
    for path in [Path::Memory, Path::LevelTwo] {
        let mut rig = Rig::new();
        rig.store(0, Scope::Cu, BASE + 0x1000, 0x1111_1111);
        rig.checker.cp_write(BASE + 0xffd, &[1, 2, 3, 4, 5, 6], path, &mut rig.host);
        for from in [Path::Memory, Path::LevelTwo] {
            let mut bytes = [0xee; 8];
            rig.checker.cp_read(BASE + 0xffc, &mut bytes, from, &mut rig.host);
            assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 0x11], "{path:?}, {from:?}");
            let mut bytes = [0xee; 2];
            rig.checker.cp_read(BASE + 0xfff, &mut bytes, from, &mut rig.host);
            assert_eq!(bytes, [3, 4], "{path:?}, {from:?}");
        }
        let (host, dirty) = match path {
            Path::Memory => ([0x0302_0100, 0x0006_0504], (BASE + 0x1003, 1)),
            Path::LevelTwo => ([0, 0], (BASE + 0xffd, 7)),
        };
        assert_eq!([rig.host.dword(BASE + 0xffc), rig.host.dword(BASE + 0x1000)], host, "{path:?}");
        assert_eq!(rig.checker.dirty_ranges(), [dirty], "{path:?}");
        rig.acquire(CacheActions::all());
        assert_eq!(rig.host.dword(BASE + 0x1000), 0x1106_0504, "{path:?}");
        assert_eq!(rig.load(1, Scope::Cu, BASE + 0xffc), 0x0302_0100, "{path:?}");
    }
}

#[test]
fn code_is_judged_from_its_first_to_its_last_dword() {
    let told = |stored: &[u64], va, len| {
        let mut rig = Rig::new();
        stored.iter().for_each(|va| rig.store(0, Scope::Cu, *va, 7));
        rig.checker.fetch_instructions(va, len);
        texts(&mut rig)
    };
    let text = |pc: u64, address: u64, store_pc: u64| {
        [format!(
            "rule 5: the command processor, pc {pc:#x}, address {address:#x}: the instruction cache may hold the code \
             that was here before; other side: store by wave 0 of group 0, pc {store_pc:#x}; remedy: ACQUIRE_MEM with \
             GLI_INV, or s_icache_inv, after the write"
        )]
    };
    let stored = BASE + 0x100;
    assert_eq!(told(&[stored], stored, 4), text(stored, stored, 0x1008));
    assert_eq!(told(&[stored], stored + 2, 1), text(stored + 2, stored, 0x1008));
    assert_eq!(told(&[stored], stored + 4, 64), [""; 0], "after it");
    assert_eq!(told(&[stored], stored - 4, 4), [""; 0], "before it");
    assert_eq!(told(&[stored], stored - 4, 5), text(stored - 4, stored, 0x1008));
    // The page between them is not known, nor is the one before.
    let (first, second) = (BASE + 0x1000, BASE + 0x3000);
    assert_eq!(told(&[second], first + 0xff8, 0x1008), [""; 0]);
    assert_eq!(told(&[second], first + 0xff8, 0x100c), text(first + 0xff8, second, 0x1008));
    assert_eq!(told(&[first, second], first + 4, 0x2000), text(first + 4, second, 0x1010));
    assert_eq!(told(&[first, second], first + 4, 0x1ffc), [""; 0]);
    assert_eq!(told(&[second, first], first, 0x3000), text(first, first, 0x1010), "the first one is told");
}

#[test]
fn an_invalidation_by_a_wave_makes_code_fresh() {
    let mut rig = Rig::new();
    rig.store(0, Scope::Cu, BASE, 7);
    rig.checker.instruction_cache_invalidate();
    rig.checker.fetch_instructions(BASE, 64);
    assert_eq!(rig.defects(), []);
    rig.store(0, Scope::Cu, BASE + 4, 7);
    rig.checker.fetch_instructions(BASE, 64);
    assert_eq!(rig.defects(), [Defect::StaleInstructionCache]);
    assert_eq!(rig.checker.findings()[0].address, BASE + 4);
}

/// Flags of two pages, at both of their ends; one page is unmapped.
#[test]
fn flags_end_with_their_page_and_others_stay() {
    for (va, expected) in [
        (BASE + 0xffc, vec![Defect::Race]),
        (BASE + 0x1000, vec![]),
        (BASE + 0x1ffc, vec![]),
        (BASE + 0x2000, vec![Defect::Race]),
    ] {
        let mut rig = Rig::new();
        rig.atomic(0, false, Scope::Device, va);
        rig.checker.forget(BASE + 0x1000, 0x1000, &mut rig.host);
        assert_eq!(rig.host.dword(va), u32::from(expected.is_empty()), "what is unmapped is written back");
        // Its scope does not cover the other wave.
        rig.atomic(1, true, Scope::Cu, va);
        assert_eq!(rig.defects(), expected, "{va:#x}");
    }
}

/// A page that takes the place of an unmapped one has nothing from it.
#[test]
fn the_place_of_an_unmapped_page_is_used_again() {
    let mut rig = Rig::new();
    rig.store(0, Scope::Cu, BASE, 1);
    rig.checker.forget(BASE, 0x1000, &mut rig.host);
    rig.store(1, Scope::Cu, BASE + 0x2000, 2);
    rig.store(1, Scope::Cu, BASE, 3);
    assert_eq!(rig.defects(), []);
    assert_eq!(rig.checker.dirty_ranges(), [(BASE, 4), (BASE + 0x2000, 4)]);
    rig.begin(0, AccessKind::Load, Scope::Cu);
    let mut bytes = [0; 8];
    rig.checker.load(0, BASE + 0x1ffc, &mut rig.host, &mut bytes);
    assert_eq!(rig.defects(), [Defect::Race]);
    assert_eq!(rig.checker.findings()[0].other.map(|other| other.pc), Some(0x1010));
}
