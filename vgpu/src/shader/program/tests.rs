//! Programs as they are decoded, and how long they are kept.

use super::*;
use crate::memory::AddressSpace;
use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};

pub(crate) const CODE_VA: u64 = 0x40_0000;

/// The note of every instruction here.
pub(crate) struct Nothing;

impl Note for Nothing {
    fn new(_: &Instruction, _: WaveSize) -> Nothing {
        Nothing
    }

    fn of_high_half(_: &Instruction) -> Nothing {
        Nothing
    }
}

pub(crate) fn space() -> (AddressSpace, SharedView) {
    let mapping = MemoryFile::new("code", 8192).unwrap().map(0, 8192, Protection::ReadWrite, None).unwrap();
    let view = mapping.view().clone();
    let space = AddressSpace::default();
    let rights = Rights::READ | Rights::EXECUTE;
    space.map(GpuVa(CODE_VA), ByteLen(8192), rights, Arc::new(mapping)).unwrap();
    (space, view)
}

pub(crate) fn get(cache: &ProgramCache<Nothing>, space: &AddressSpace, va: u64) -> Arc<Program<Nothing>> {
    let table = space.snapshot();
    cache.get(Fetch { space_id: space.id(), table: &table, vector_registers: 8, is_wave64: false }, va)
}

pub(crate) fn cache() -> ProgramCache<Nothing> {
    ProgramCache::new(Level::detect(), false)
}

/// llvm-mc 19: `s_nop 0`, `s_branch` over two words that are no instruction, `s_endpgm`.
const AROUND_DATA: [u32; 5] = [0xBF80_0000, 0xBFA0_0002, 0xC9FF_FFFF, 0xC9FF_FFFF, 0xBFB0_0000];

pub(crate) fn store(view: &SharedView, at: usize, words: &[u32]) {
    words.iter().enumerate().for_each(|(index, word)| view.store_u32(at + 4 * index, *word));
}

#[test]
fn only_what_is_reached_is_decoded_and_targets_are_indexes() {
    let (space, view) = space();
    store(&view, 0, &AROUND_DATA);
    let program = get(&cache(), &space, CODE_VA);
    assert_eq!(program.ops.len(), 3);
    assert_eq!(program.ops[1].immediate, 2);
    assert_eq!(program.address(&program.ops[2]), CODE_VA + 16);
    assert!(program.stops.is_empty());
    assert_eq!(program.runs.len(), 2);
}

#[test]
fn waits_and_hints_are_counted_to_the_operation_before() {
    let (space, view) = space();
    // s_mov_b32 s0, 1; s_nop 0; s_delay_alu 0; s_branch back to the nop.
    store(&view, 0, &[0xBE80_0081, 0xBF80_0000, 0xBF87_0000, 0xBFA0_FFFD]);
    let program = get(&cache(), &space, CODE_VA);
    let weights: Vec<u8> = program.ops.iter().map(|op| op.weight).collect();
    assert_eq!(weights, [1, 2, 1], "the nop is a target and stays; the delay is counted to it");
    assert_eq!(program.ops[2].immediate, 1);
}

#[test]
fn what_cannot_run_is_a_stop() {
    let (space, view) = space();
    store(&view, 0, &[0xC9FF_FFFF, 0xFFFF_FFFF]);
    let program = get(&cache(), &space, CODE_VA);
    assert!(matches!(program.stop(&program.ops[0]), Some(WaveFaultKind::UnknownInstruction(_))));
    let program = get(&cache(), &space, CODE_VA + 8192);
    assert!(
        matches!(program.stop(&program.ops[0]), Some(WaveFaultKind::Page(fault)) if fault.va == CODE_VA + 8192)
    );
    // v_mov_b32 v8, v0 with 8 registers.
    store(&view, 0, &[0x7E10_0300]);
    let program = get(&cache(), &space, CODE_VA);
    let expected = WaveFaultKind::VectorRegister { register: 8, allocated: 8 };
    assert_eq!(program.stop(&program.ops[0]), Some(expected));
}

#[test]
fn a_changed_word_is_seen_after_an_invalidation_and_not_before() {
    let (space, view) = space();
    store(&view, 0, &AROUND_DATA);
    let cache = cache();
    let first = get(&cache, &space, CODE_VA);
    assert!(Arc::ptr_eq(&first, &get(&cache, &space, CODE_VA)));
    view.store_u32(8, 0);
    cache.invalidate();
    assert!(Arc::ptr_eq(&first, &get(&cache, &space, CODE_VA)), "data between code is not code");
    view.store_u32(0, 0xBF80_0001);
    assert!(Arc::ptr_eq(&first, &get(&cache, &space, CODE_VA)), "no invalidation, no look");
    cache.invalidate();
    let second = get(&cache, &space, CODE_VA);
    assert!(!Arc::ptr_eq(&first, &second));
    space.unmap(GpuVa(CODE_VA), ByteLen(8192)).unwrap();
    let third = get(&cache, &space, CODE_VA);
    assert!(matches!(third.stop(&third.ops[0]), Some(WaveFaultKind::Page(_))), "an unmapped program is gone");
}

/// The program at an address in waves with so many registers.
fn get_for(
    cache: &ProgramCache<Nothing>,
    space: &AddressSpace,
    va: u64,
    (vector_registers, is_wave64): (u32, bool),
) -> Arc<Program<Nothing>> {
    let table = space.snapshot();
    cache.get(Fetch { space_id: space.id(), table: &table, vector_registers, is_wave64 }, va)
}

/// Maps pages one after the other, each with a mapping of its own.
fn space_of_pages(count: u64) -> (AddressSpace, Vec<SharedView>) {
    let space = AddressSpace::default();
    let views = (0..count).map(|page| {
        let mapping =
            MemoryFile::new("code", 4096).unwrap().map(0, 4096, Protection::ReadWrite, None).unwrap();
        let view = mapping.view().clone();
        let rights = Rights::READ | Rights::EXECUTE;
        space.map(GpuVa(CODE_VA + 4096 * page), ByteLen(4096), rights, Arc::new(mapping)).unwrap();
        view
    });
    let views = views.collect();
    (space, views)
}

#[test]
fn a_program_is_that_of_its_space_registers_and_lanes() {
    let [(space, view), (other, other_view)] = [space(), space()];
    for view in [&view, &other_view] {
        store(view, 0, &[0x7E10_0300, 0xBFB0_0000]);
    }
    let cache = cache();
    let kinds = [(8, false), (16, false), (8, true), (16, true)];
    let programs = kinds.map(|kind| get_for(&cache, &space, CODE_VA, kind));
    let elsewhere = get_for(&cache, &other, CODE_VA, (16, false));
    for (index, kind) in kinds.into_iter().enumerate() {
        let again = get_for(&cache, &space, CODE_VA, kind);
        for (other, program) in programs.iter().enumerate() {
            assert_eq!(Arc::ptr_eq(&again, program), index == other, "{kind:?}");
        }
    }
    assert!(!Arc::ptr_eq(&elsewhere, &programs[1]));
    // v_mov_b32 v8, v0: the ninth register is there or not; a wave64 has an operation per half and two between.
    let stops = programs.each_ref().map(|program| program.stop(&program.ops[0]).is_some());
    assert_eq!(stops, [true, false, true, false]);
    assert_eq!(programs.each_ref().map(|program| program.ops.len()), [1, 2, 1, 5]);
    cache.forget(space.id());
    assert!(Arc::ptr_eq(&elsewhere, &get_for(&cache, &other, CODE_VA, (16, false))));
    assert!(!Arc::ptr_eq(&programs[1], &get_for(&cache, &space, CODE_VA, (16, false))), "forgotten");
}

/// Stale is what changed without an invalidation of what was looked at since the last one.
#[test]
fn a_program_is_stale_until_its_cache_is_invalidated() {
    let (space, view) = space();
    store(&view, 0, &AROUND_DATA);
    let cache = cache();
    let is_stale = |vector_registers| {
        let table = space.snapshot();
        let fetch = Fetch { space_id: space.id(), table: &table, vector_registers, is_wave64: false };
        cache.is_stale(fetch, CODE_VA)
    };
    assert!(!is_stale(8), "nothing is known");
    get(&cache, &space, CODE_VA);
    assert!(!is_stale(8));
    view.store_u32(0, 0xBF80_0001);
    assert!(is_stale(8) && !is_stale(16));
    cache.invalidate();
    assert!(!is_stale(8), "it is compared before its next use");
    get(&cache, &space, CODE_VA);
    assert!(!is_stale(8));
}

/// The code is in two mappings: every word of both is compared.
#[test]
fn code_across_mappings_is_compared_word_by_word() {
    for changed in 0..8 {
        let (space, views) = space_of_pages(2);
        let entry = CODE_VA + 4096 - 16;
        // Seven s_mov_b32 s0, 1 and s_endpgm.
        let words = [
            0xBE80_0081,
            0xBE80_0081,
            0xBE80_0081,
            0xBE80_0081,
            0xBE80_0081,
            0xBE80_0081,
            0xBE80_0081,
            0xBFB0_0000,
        ];
        store(&views[0], 4096 - 16, &words[..4]);
        store(&views[1], 0, &words[4..]);
        let cache = cache();
        let first = get(&cache, &space, entry);
        assert_eq!((first.ops.len(), first.runs.len()), (8, 1));
        assert_eq!(first.parts().collect::<Vec<_>>(), [(entry, 32)]);
        cache.invalidate();
        assert!(Arc::ptr_eq(&first, &get(&cache, &space, entry)), "nothing has changed");
        let (view, at) =
            if changed < 4 { (&views[0], 4096 - 16 + 4 * changed) } else { (&views[1], 4 * changed - 16) };
        view.store_u32(at, 0xBE80_0082);
        cache.invalidate();
        assert!(!Arc::ptr_eq(&first, &get(&cache, &space, entry)), "word {changed}");
    }
}

/// A missing second dword: the instruction is none. Once its page is there, it is decoded again.
#[test]
fn what_could_not_be_fetched_is_tried_again() {
    let (space, views) = space_of_pages(1);
    // s_mov_b32 s0, 0x12345678 in the last dword; before it s_mov_b32 s0, 1.
    store(&views[0], 4096 - 8, &[0xBE80_0081, 0xBE80_00FF]);
    let cache = cache();
    let program = get(&cache, &space, CODE_VA + 4096 - 8);
    let words = [0xBE80_00FF, 0, 0, 0];
    assert_eq!(program.stop(&program.ops[1]), Some(WaveFaultKind::UnknownInstruction(words)));
    // The page after the last instruction is missing.
    store(&views[0], 4096 - 8, &[0xBE80_0081, 0xBE80_0081]);
    cache.invalidate();
    let program = get(&cache, &space, CODE_VA + 4096 - 8);
    let fault = Fault { va: CODE_VA + 4096, cause: Cause::NotPresent, access: Rights::EXECUTE };
    assert_eq!(program.stop(&program.ops[2]), Some(WaveFaultKind::Page(fault)));
    assert!(Arc::ptr_eq(&program, &get(&cache, &space, CODE_VA + 4096 - 8)), "nothing has happened since");
    let mapping = MemoryFile::new("code", 4096).unwrap().map(0, 4096, Protection::ReadWrite, None).unwrap();
    mapping.view().store_u32(0, 0xBFB0_0000);
    let rights = Rights::READ | Rights::EXECUTE;
    space.map(GpuVa(CODE_VA + 4096), ByteLen(4096), rights, Arc::new(mapping)).unwrap();
    let whole = get(&cache, &space, CODE_VA + 4096 - 8);
    assert!(!Arc::ptr_eq(&program, &whole));
    assert!((0..3).all(|at| whole.stop(&whole.ops[at]).is_none() && whole.ops.len() == 3));
}

/// From two dwords before the entry to one after it; and a branch into the middle of an instruction.
#[test]
fn branches_reach_back_and_into_instructions() {
    let (space, view) = space();
    // s_endpgm; s_nop; entry: s_cbranch_scc0 -3; s_branch 1; s_mov_b32 s0, (s_endpgm); s_code_end
    let code = [0xBFB0_0000, 0xBF80_0000, 0xBFA1_FFFD, 0xBFA0_0001, 0xBE80_00FF, 0xBFB0_0000, 0xBF9F_0000];
    store(&view, 0, &code);
    let entry = CODE_VA + 8;
    let program = get(&cache(), &space, entry);
    let addresses: Vec<u64> = program.ops.iter().map(|op| program.address(op)).collect();
    assert_eq!(addresses, [CODE_VA, entry, entry + 4, CODE_VA + 20]);
    assert_eq!((program.entry, program.base_va), (1, entry));
    assert_eq!([program.ops[1].immediate, program.ops[2].immediate], [0, 3]);
    assert_eq!(
        [CODE_VA, CODE_VA + 4, entry, entry + 12].map(|va| program.index_of(va)),
        [Some(0), None, Some(1), Some(3)]
    );
    assert_eq!(program.parts().collect::<Vec<_>>(), [(CODE_VA, 4), (entry, 8), (CODE_VA + 20, 4)]);
    let text = |va| program.code_at(va, WaveSize::Wave32).to_string();
    assert_eq!(text(entry + 4), "s_branch 1");
    assert_eq!(text(CODE_VA + 20), "s_endpgm");
    assert_eq!(text(CODE_VA + 4), "(no code is there)");
    assert_eq!(text(CODE_VA + 24), "(no code is there)");
    assert_eq!(text(CODE_VA - 4), "(no code is there)");
}

/// Control passes from one instruction into the operand of another, and from there on over it.
#[test]
fn overlapping_instructions_continue_where_they_end() {
    let (space, view) = space();
    // s_cbranch_scc0 1; s_mov_b32 s0, (s_mov_b32 s0, 1); s_endpgm: both ways go on at the last.
    store(&view, 0, &[0xBFA1_0001, 0xBE80_00FF, 0xBE80_0081, 0xBFB0_0000]);
    let program = get(&cache(), &space, CODE_VA);
    let addresses: Vec<u64> = program.ops.iter().map(|op| program.address(op)).collect();
    // Between the two instructions there is a jump over the inner one.
    assert_eq!(addresses, [CODE_VA, CODE_VA + 4, CODE_VA + 12, CODE_VA + 8, CODE_VA + 12]);
    assert_eq!(program.ops.iter().map(|op| op.weight).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
    assert_eq!(program.ops[2].wide, [(CODE_VA + 12) as u32, 0, 0]);
    assert_eq!(program.ops[0].immediate, 3);
    // s_cbranch_scc0 1; s_mov_b32 s0, (s_mov_b32 s0, (s_nop)); s_endpgm: the nop comes after the outer one only.
    store(&view, 0x100, &[0xBFA1_0001, 0xBE80_00FF, 0xBE80_00FF, 0xBF80_0000, 0xBFB0_0000]);
    let program = get(&cache(), &space, CODE_VA + 0x100);
    let places: Vec<_> = program.ops.iter().map(|op| (op.code_dword, op.weight)).collect();
    assert_eq!(places, [(0, 1), (1, 1), (3, 0), (2, 1), (4, 0), (3, 1), (4, 1)]);
}

/// Only what has no effect is counted to an operation before it that always goes on, and up to 255 of them.
#[test]
fn an_operation_counts_no_more_than_a_byte_can() {
    let (space, view) = space();
    // 300 s_nop and s_endpgm.
    store(&view, 0, &[0xBF80_0000; 300]);
    view.store_u32(1200, 0xBFB0_0000);
    let program = get(&cache(), &space, CODE_VA);
    assert_eq!(program.ops.iter().map(|op| op.weight).collect::<Vec<_>>(), [255, 45, 1]);
    for (words, weights) in [
        // s_cbranch_scc0 0, s_nop: the nop is the target. s_cbranch_scc0 1, s_nop, s_endpgm: it may not come by.
        (&[0xBFA1_0000, 0xBF80_0000, 0xBFB0_0000][..], &[1, 1, 1][..]),
        (&[0xBFA1_0001, 0xBF80_0000, 0xBFB0_0000], &[1, 1, 1]),
        // s_swappc_b64, s_icache_inv: what is after them may be reached by other ways, or be other code.
        (&[0xBE84_4906, 0xBF80_0000, 0xBFB0_0000], &[1, 1, 1]),
        (&[0xBFBC_0000, 0xBF80_0000, 0xBFB0_0000], &[1, 1, 1]),
        // s_getpc_b64, s_mov_b32 with a literal
        (&[0xBE84_4700, 0xBF80_0000, 0xBF80_0000, 0xBFB0_0000], &[3, 1]),
        (&[0xBE80_00FF, 7, 0xBF80_0000, 0xBFB0_0000], &[2, 1]),
    ] {
        store(&view, 0, words);
        let program = get(&cache(), &space, CODE_VA);
        assert_eq!(program.ops.iter().map(|op| op.weight).collect::<Vec<_>>(), weights, "{words:x?}");
    }
    // Inspected programs keep all, each with a note.
    let inspected: ProgramCache<Nothing> = ProgramCache::new(Level::BASELINE, true);
    store(&view, 0, &[0xBE80_0081, 0xBF80_0000, 0xBF88_0000, 0xBFB0_0000]);
    let program = get(&inspected, &space, CODE_VA);
    assert_eq!(program.ops.iter().map(|op| op.weight).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert!((0..4).all(|at| program.noted(at).is_some()) && program.noted(4).is_none());
    assert!(program.knows_scalar_hazard, "an s_wait_alu");
    store(&view, 0, &[0xBE80_0081, 0xBF80_0000, 0xBF80_0000, 0xBFB0_0000]);
    inspected.invalidate();
    assert!(!get(&inspected, &space, CODE_VA).knows_scalar_hazard);
    // v_mov_b32 v0, v0 in a wave64: notes of the instruction and of its high half.
    store(&view, 0, &[0x7E00_0300, 0xBFB0_0000]);
    let wide = get_for(&inspected, &space, CODE_VA, (8, true));
    assert_eq!(
        (0..5).map(|at| wide.noted(at).is_some()).collect::<Vec<_>>(),
        [true, false, true, false, true]
    );
    assert_eq!(
        wide.ops.iter().map(|op| (op.code_dword, op.dword_count)).collect::<Vec<_>>(),
        [(0, 1), (0, 1), (0, 1), (0, 1), (1, 1)]
    );
}

/// What is beyond is another program.
#[test]
fn a_program_has_no_more_instructions_than_its_limit() {
    const LIMIT: usize = 1 << 16;
    let bytes = 4 * (LIMIT + 2);
    let bytes = bytes.next_multiple_of(4096);
    let mapping = MemoryFile::new("code", bytes).unwrap().map(0, bytes, Protection::ReadWrite, None).unwrap();
    let view = mapping.view().clone();
    let space = AddressSpace::default();
    let rights = Rights::READ | Rights::EXECUTE;
    space.map(GpuVa(CODE_VA), ByteLen(bytes as u64), rights, Arc::new(mapping)).unwrap();
    // s_mov_b32 s0, 1, which no other operation can count.
    for last in [LIMIT - 1, LIMIT, LIMIT + 1] {
        (0..last).for_each(|at| view.store_u32(4 * at, 0xBE80_0081));
        view.store_u32(4 * last, 0xBFB0_0000);
        let program = get(&cache(), &space, CODE_VA);
        let words: usize = program.ops.iter().map(|op| usize::from(op.dword_count)).sum();
        assert_eq!(words, (last + 1).min(LIMIT), "s_endpgm at {last}");
    }
}

/// VOPD words are named as such in a wave64, without what follows them.
#[test]
fn a_refusal_names_the_words_of_its_instruction() {
    let (space, view) = space();
    // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v2; s_endpgm
    store(&view, 0, &[0xCA10_0101, 0x0002_0102, 0xBFB0_0000, 0xBFB0_0000]);
    let wide = get_for(&cache(), &space, CODE_VA, (8, true));
    let expected = WaveFaultKind::DualInWave64([0xCA10_0101, 0x0002_0102, 0, 0]);
    assert_eq!(wide.stop(&wide.ops[0]), Some(expected));
    let narrow = get_for(&cache(), &space, CODE_VA, (8, false));
    assert_eq!((narrow.stop(&narrow.ops[0]), narrow.ops.len()), (None, 2));
    // s_barrier_signal m0 is not executed here.
    store(&view, 0, &[0xBE80_4E7D, 0xBFB0_0000]);
    for kind in [(8, false), (8, true)] {
        let program = get_for(&cache(), &space, CODE_VA, kind);
        let Some(WaveFaultKind::NotExecuted { opcode, words }) = program.stop(&program.ops[0]) else {
            panic!()
        };
        assert_eq!((opcode, words), (Opcode::SBarrierSignal, [0xBE80_4E7D, 0, 0, 0]));
    }
}

/// Two operations in one instruction are for 32 lanes.
#[test]
fn what_only_a_wave32_can_execute_is_no_instruction_of_a_wave64() {
    let (space, view) = space();
    // v_dual_mov_b32 v0, v2 :: v_dual_mov_b32 v1, v3
    store(&view, 0, &[0xCA10_0102, 0x0000_0103, 0xBFB0_0000, 0xBFB0_0000]);
    let narrow = get_for(&cache(), &space, CODE_VA, (8, false));
    assert_eq!(narrow.stop(&narrow.ops[0]), None);
    let wide = get_for(&cache(), &space, CODE_VA, (8, true));
    let expected = WaveFaultKind::DualInWave64([0xCA10_0102, 0x0000_0103, 0, 0]);
    assert_eq!(wide.stop(&wide.ops[0]), Some(expected));
    // v_cmp_lt_u32_e64 vcc_hi, s10, v0: no pair begins at vcc_hi.
    let words = [0xD449_006B, 0x0002_000A, 0xBFB0_0000, 0xBFB0_0000];
    store(&view, 0, &words);
    let narrow = get_for(&cache(), &space, CODE_VA, (8, false));
    assert_eq!(narrow.stop(&narrow.ops[0]), None);
    let wide = get_for(&cache(), &space, CODE_VA, (8, true));
    assert_eq!(wide.stop(&wide.ops[0]), Some(WaveFaultKind::UnknownInstruction(words)));
}

/// The same words without the right to execute them are another program.
#[test]
fn a_program_needs_its_rights_as_long_as_it_runs() {
    let (space, _) = space();
    space.unmap(GpuVa(CODE_VA), ByteLen(8192)).unwrap();
    let mapping = MemoryFile::new("code", 8192).unwrap().map(0, 8192, Protection::ReadWrite, None).unwrap();
    let mapping = Arc::new(mapping);
    store(mapping.view(), 0, &AROUND_DATA);
    let map = |rights| space.map(GpuVa(CODE_VA), ByteLen(8192), rights, mapping.clone()).unwrap();
    map(Rights::READ | Rights::EXECUTE);
    let cache = cache();
    let first = get(&cache, &space, CODE_VA);
    assert_eq!(first.stop(&first.ops[0]), None);
    space.unmap(GpuVa(CODE_VA), ByteLen(8192)).unwrap();
    map(Rights::READ);
    let second = get(&cache, &space, CODE_VA);
    let Some(WaveFaultKind::Page(fault)) = second.stop(&second.ops[0]) else { panic!("it can be executed") };
    assert_eq!((fault.va, fault.cause), (CODE_VA, Cause::NoExecute));
}

#[test]
fn a_jump_over_code_has_an_address_of_64_bits() {
    const HIGH_VA: u64 = 0x7_0040_0000;
    let mapping = MemoryFile::new("code", 4096).unwrap().map(0, 4096, Protection::ReadWrite, None).unwrap();
    let space = AddressSpace::default();
    // The words of overlapping instructions above.
    store(mapping.view(), 0, &[0xBFA1_0001, 0xBE80_00FF, 0xBE80_0081, 0xBFB0_0000]);
    let rights = Rights::READ | Rights::EXECUTE;
    space.map(GpuVa(HIGH_VA), ByteLen(4096), rights, Arc::new(mapping)).unwrap();
    let program = get(&cache(), &space, HIGH_VA);
    assert_eq!(program.ops[2].wide, [0x0040_000C, 7, 0]);
}
