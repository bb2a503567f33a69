//! How often instructions are passed over.

use super::*;
use crate::lint::addresses::Addresses;
use crate::lint::counters::{Counters, State};
use crate::lint::effects::Registers;
use crate::lint::entry::Entry;
use crate::lint::finding::Finding;
use crate::lint::graph::Surroundings;
use crate::lint::matrix_overlap::MatrixOverlap;
use core::cell::Cell;

/// s_cbranch_scc0 and s_branch to the next dword.
const BRANCH: u32 = 0xbfa1_0000;
const JUMP: u32 = 0xbfa0_0000;
/// ds_load_b32 v0, v0, without the result's number in bits 63:56 of it.
const LOAD: u32 = 0xd8d8_0000;
/// s_nop 0.
const NOP: u32 = 0xbf80_0000;
/// s_endpgm.
const END: u32 = 0xbfb0_0000;

/// Counts the steps of the rule of waits.
struct Counted {
    inner: Counters,
    steps: Cell<usize>,
}

impl Analysis for Counted {
    type State = State;

    fn entry_state(&self) -> State {
        self.inner.entry_state()
    }

    fn is_kept_at_end(&self) -> bool {
        self.inner.is_kept_at_end()
    }

    fn after_call(&self, state: &mut State, call: &Call) {
        self.inner.after_call(state, call);
    }

    fn step(&self, state: &mut State, step: &Step, report: &mut dyn FnMut(Finding)) {
        self.steps.set(self.steps.get() + 1);
        self.inner.step(state, step, report);
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        self.inner.join(state, other)
    }

    fn bytes(&self, state: &State) -> usize {
        self.inner.bytes(state)
    }
}

/// The steps of the fixed point, in thousandths of the instructions; the places where states are kept.
fn passes(code: &[u32]) -> (usize, usize) {
    let surroundings =
        Surroundings { is_function: &|_| false, end: code.len(), has_convention: false, has_addresses: true };
    let (graph, _) = Graph::build(code, &Entry::at(0), &surroundings);
    let counted = Counted { inner: Counters { is_called: false }, steps: Cell::new(0) };
    assert!(graph.fixed_point(&counted).is_ok());
    (counted.steps.get() * 1000 / graph.steps.len(), graph.places.blocks.len())
}

/// `opcode` from one dword to another.
fn jump(opcode: u32, from: usize, to: usize) -> u32 {
    opcode | (to.wrapping_sub(from + 1) & 0xffff) as u32
}

/// Branches to blocks that each load to a register of their own, then do so many other loads, and go back to the first
/// branch.
fn facts(branches: usize, registers: usize, loads: usize) -> Vec<u32> {
    let blocks: Vec<(usize, usize)> =
        (0..loads).rev().flat_map(|more| (0..registers).map(move |register| (more, register))).collect();
    let ends = blocks.iter().scan(branches, |at, (more, _)| {
        *at += 2 * more + 3;
        Some(*at)
    });
    let starts: Vec<usize> = core::iter::once(branches).chain(ends).collect();
    let mut code: Vec<u32> =
        (0..branches).map(|branch| jump(BRANCH, branch, starts[branch % blocks.len()])).collect();
    for (more, register) in blocks {
        code.extend([LOAD, (register as u32 + 2) << 24]);
        code.extend([LOAD, 254 << 24].repeat(more));
        code.push(jump(JUMP, code.len(), 0));
    }
    code
}

/// One after the other they would take as many passes as there are blocks.
#[test]
#[cfg_attr(miri, ignore = "thousands of instructions")]
fn what_many_paths_bring_to_one_place_goes_on_at_once() {
    // 32,000 bytes, as many facts as there are registers and four distances, took two minutes.
    let code = facts(2000, 250, 4);
    assert_eq!(code.len(), 8000);
    assert_eq!(passes(&code), (2000, 1001));
    assert_eq!(passes(&facts(400, 6, 62)).0, 2000);
}

/// Blocks in the reverse order of their addresses: each goes to the one before it, or to the one before that. In the
/// order of addresses what the later path brings would be followed to the end each time.
#[test]
#[cfg_attr(miri, ignore = "thousands of instructions")]
fn blocks_are_passed_over_in_the_order_of_paths_and_not_of_addresses() {
    let blocks = 500;
    let start = |block: usize| 2 + 4 * block;
    let mut code = vec![jump(JUMP, 0, start(blocks - 1)), END];
    for block in 0..blocks {
        let before = |distance: usize| block.checked_sub(distance).map_or(1, start);
        code.extend([LOAD, (block as u32 % 200 + 2) << 24]);
        code.push(jump(BRANCH, code.len(), before(2)));
        code.push(jump(JUMP, code.len(), before(1)));
    }
    // The launch, the end, and all blocks but the last two, to which one path leads.
    assert_eq!(passes(&code), (1000, 500));
}

/// A branch to the next instruction is one path, and a block that only one other leads to keeps nothing.
#[test]
#[cfg_attr(miri, ignore = "thousands of instructions")]
fn states_are_kept_where_paths_meet() {
    assert_eq!(passes(&[&[BRANCH; 5000][..], &[END]].concat()), (1000, 1));
    assert_eq!(passes(&[&[BRANCH + 1, NOP].repeat(7)[..], &[END]].concat()), (1000, 8));
    // All branch to the end.
    let all: Vec<u32> = (0..3000).map(|index| BRANCH + 2999 - index).collect();
    assert_eq!(passes(&[&all[..], &[END]].concat()), (1000, 2));
}

/// What states take beside their own size: a number for each scalar register, what a caller may have left outstanding
/// (1242 halves of registers), and each matrix operation.
#[test]
fn states_count_with_what_they_point_to() {
    let of_entry = Addresses.bytes(&Addresses.entry_state());
    assert!((8 * 108..9 * 108).contains(&of_entry), "{of_entry}");
    let counters = |is_called| {
        let analysis = Counters { is_called };
        analysis.bytes(&analysis.entry_state())
    };
    assert_eq!(counters(true) - counters(false), 24 * 1242);
    assert!(counters(false) >= 4 * size_of::<usize>(), "{}", counters(false));
    let operation = |dword| (dword, Registers::new(300 + dword, 8));
    let overlap = |count: usize| MatrixOverlap.bytes(&(0..count).map(operation).collect());
    assert_eq!(overlap(5) - overlap(2), 3 * size_of::<(usize, Registers)>());
    assert!(overlap(0) > 1);
}
