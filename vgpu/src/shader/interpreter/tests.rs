//! Turns of one wave: why they end, where, and after how many instructions.

use zrt_mem::SharedView;

use super::*;
use crate::memory::AddressSpace;
use crate::shader::machine::{Barrier, with_machine};
use crate::shader::program::tests::{CODE_VA, Nothing, cache, get, space, store};

/// A wave, its code, and the barrier of its group.
struct Rig {
    space: AddressSpace,
    view: SharedView,
    cache: ProgramCache<Nothing>,
    main: Arc<Program<Nothing>>,
    far: Option<Arc<Program<Nothing>>>,
    wave: Wave,
    barrier: Barrier,
}

impl Rig {
    /// The code is at the first address, and the padding after it is `s_code_end`.
    fn new(words: &[u32]) -> Rig {
        let (space, view) = space();
        store(&view, 0, words);
        store(&view, 4 * words.len(), &[0xBF9F_0000; 8]);
        let cache = cache();
        let main = get(&cache, &space, CODE_VA);
        let mut wave = Wave { next: main.entry, vector_count: 8, ..Wave::new() };
        wave.scalar[126] = u32::MAX;
        Rig { space, view, cache, main, far: None, wave, barrier: Barrier::new(2) }
    }

    fn run(&mut self, budget: u64) -> (Turn, u64) {
        let Rig { space, cache, main, far, wave, barrier, .. } = self;
        with_machine(|machine| {
            machine.memory.refresh(space);
            std::mem::swap(machine.barrier, barrier);
            let outcome = run(wave, Code { main, far, cache }, machine, budget, &mut Uninspected);
            std::mem::swap(machine.barrier, barrier);
            machine.memory.release();
            outcome
        })
    }
}

fn fault(kind: WaveFaultKind, instruction_va: u64) -> Turn {
    Turn::Fault { stop: Stop { kind, lane: None }, instruction_va }
}

#[test]
fn a_turn_ends_where_the_wave_cannot_go_on() {
    // s_nop, s_mov_b32 s0, 5, s_endpgm
    let mut rig = Rig::new(&[0xBF80_0000, 0xBE80_0085, 0xBFB0_0000]);
    assert_eq!((rig.run(100), rig.wave.scalar[0], rig.wave.executed), ((Turn::End, 3), 5, 3));
    // s_sleep 1, s_endpgm: it goes on after the sleep.
    let mut rig = Rig::new(&[0xBF83_0001, 0xBFB0_0000]);
    assert_eq!([rig.run(100), rig.run(100)], [(Turn::Yield, 1), (Turn::End, 1)]);
    assert_eq!(rig.wave.executed, 2);
    // s_nop, s_trap 3
    let mut rig = Rig::new(&[0xBF80_0000, 0xBF90_0003]);
    assert_eq!(rig.run(100).0, fault(WaveFaultKind::Trap(3), CODE_VA + 4));
    // s_nop, and then the padding; a word that is no instruction
    let mut rig = Rig::new(&[0xBF80_0000]);
    assert_eq!(rig.run(100).0, fault(WaveFaultKind::PastEnd, CODE_VA + 4));
    let mut rig = Rig::new(&[0xBE80_0085, 0xC9FF_FFFF]);
    let (Turn::Fault { stop, instruction_va }, _) = rig.run(100) else { panic!() };
    assert!(matches!(stop.kind, WaveFaultKind::UnknownInstruction([0xC9FF_FFFF, ..])), "{}", stop.kind);
    assert_eq!(instruction_va, CODE_VA + 4);
}

/// The wait is not counted until it passes.
#[test]
fn a_wave_waits_at_the_barrier_and_tries_again() {
    // s_barrier_signal -1, s_barrier_wait -1, s_mov_b32 s0, 5, s_endpgm
    let mut rig = Rig::new(&[0xBE80_4EC1, 0xBF94_FFFF, 0xBE80_0085, 0xBFB0_0000]);
    assert_eq!([rig.run(100), rig.run(100)], [(Turn::Barrier, 1), (Turn::Barrier, 0)]);
    assert_eq!((rig.wave.next, rig.wave.scalar[0]), (1, 0));
    rig.barrier.signal();
    assert_eq!((rig.run(100), rig.wave.scalar[0], rig.wave.executed), ((Turn::End, 3), 5, 4));
}

/// Loops within a program and by jumps through addresses end at the budget, and not before it.
#[test]
fn a_budget_is_used_up() {
    // s_branch -1; s_getpc_b64 s[4:5], s_setpc_b64 s[4:5]: each jumps to itself.
    for words in [&[0xBFA0_FFFF][..], &[0xBE84_4700, 0xBE80_4804]] {
        let mut rig = Rig::new(words);
        for budget in [1, 2, 10, 1000] {
            assert_eq!(rig.run(budget), (Turn::Budget, budget), "{words:x?}");
        }
        assert_eq!(rig.wave.executed, 1013);
    }
    // Three s_nop count as one operation: they are not divided. s_mov_b32 s0, 5 and s_endpgm remain.
    let mut rig = Rig::new(&[0xBF80_0000, 0xBF80_0000, 0xBF80_0000, 0xBE80_0085, 0xBFB0_0000]);
    assert_eq!((rig.run(1), rig.wave.scalar[0]), ((Turn::Budget, 3), 0));
    assert_eq!((rig.run(1), rig.wave.scalar[0]), ((Turn::Budget, 1), 5));
    assert_eq!(rig.run(1), (Turn::End, 1));
}

/// s_mov_b32 s4, (the low dword of an address); s_mov_b32 s5, 0.
fn load_address(va: u64) -> [u32; 3] {
    [0xBE84_00FF, va as u32, 0xBE85_0080]
}

#[test]
fn jumps_leave_the_program_and_return_to_it() {
    // The address of the callee; s_swappc_b64 s[6:7], s[4:5]; s_mov_b32 s1, 5; s_endpgm
    let callee = CODE_VA + 0x100;
    let words = [&load_address(callee)[..], &[0xBE86_4904, 0xBE81_0085, 0xBFB0_0000]].concat();
    let mut rig = Rig::new(&words);
    // s_mov_b32 s0, 5; s_branch over one; s_endpgm; s_setpc_b64 s[6:7]
    store(&rig.view, 0x100, &[0xBE80_0085, 0xBFA0_0001, 0xBFB0_0000, 0xBE80_4806]);
    assert_eq!(rig.run(4), (Turn::Budget, 4));
    assert_eq!(rig.far.as_ref().map(|program| program.base_va), Some(callee));
    assert_eq!(rig.wave.scalar_pair(6), CODE_VA + 16);
    assert_eq!((rig.run(100), rig.far.is_none()), ((Turn::End, 4), true), "back in the main program");
    assert_eq!((rig.wave.scalar[0], rig.wave.scalar[1]), (5, 5));
    // An address within the callee's program is looked for there first.
    let words = [&load_address(callee)[..], &[0xBE80_4804]].concat();
    let mut rig = Rig::new(&words);
    // s_getpc_b64 s[4:5]; s_setpc_b64 s[4:5], to itself
    store(&rig.view, 0x100, &[0xBE84_4700, 0xBE80_4804]);
    assert_eq!(rig.run(10), (Turn::Budget, 10));
    assert_eq!(rig.far.as_ref().map(|program| program.base_va), Some(callee), "no program of its own");
    for (misaligned, va) in [(1, callee + 1), (2, callee + 2), (3, callee + 3)] {
        let mut rig = Rig::new(&[&load_address(callee + misaligned)[..], &[0xBE80_4804]].concat());
        assert_eq!(rig.run(100), (fault(WaveFaultKind::MisalignedJump(va), va), 3));
    }
}

/// What follows `s_icache_inv` is looked at again.
#[test]
fn an_invalidation_fetches_what_follows() {
    // s_sleep 1, s_icache_inv, s_mov_b32 s0, 5, s_endpgm
    let mut rig = Rig::new(&[0xBF83_0001, 0xBFBC_0000, 0xBE80_0085, 0xBFB0_0000]);
    assert_eq!(rig.run(100), (Turn::Yield, 1));
    // s_mov_b32 s0, 1
    store(&rig.view, 8, &[0xBE80_0081]);
    assert_eq!((rig.run(100), rig.wave.scalar[0]), ((Turn::End, 3), 1));
    assert_eq!(rig.far.as_ref().map(|program| program.base_va), Some(CODE_VA + 8));
}
