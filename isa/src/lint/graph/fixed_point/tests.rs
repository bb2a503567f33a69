//! How often instructions are passed over.

use super::*;
use crate::lint::counters::{Counters, State};
use crate::lint::entry::Entry;
use crate::lint::finding::Finding;
use crate::lint::graph::Surroundings;
use core::cell::Cell;

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
    let to = |opcode: u32, from: usize, to: usize| opcode | (to.wrapping_sub(from + 1) & 0xffff) as u32;
    let mut code: Vec<u32> =
        (0..branches).map(|branch| to(0xbfa1_0000, branch, starts[branch % blocks.len()])).collect();
    for (more, register) in blocks {
        // ds_load_b32, and those to v254.
        code.extend([0xd8d8_0000, (register as u32 + 2) << 24]);
        code.extend([0xd8d8_0000, 254 << 24].repeat(more));
        code.push(to(0xbfa0_0000, code.len(), 0));
    }
    code
}

/// One after the other they would take as many passes as there are blocks.
#[test]
fn what_many_paths_bring_to_one_place_goes_on_at_once() {
    // 32,000 bytes, as many facts as there are registers and four distances, took two minutes.
    let code = facts(2000, 250, 4);
    assert_eq!(code.len(), 8000);
    assert_eq!(passes(&code), (2000, 1001));
    assert_eq!(passes(&facts(400, 6, 62)).0, 2000);
}

/// Blocks in the reverse order of their addresses: each jumps to the one before it.
#[test]
fn blocks_are_passed_over_in_the_order_of_paths_and_not_of_addresses() {
    let blocks = 500;
    // s_branch to the last but one block; s_endpgm; blocks of a load, a branch to the end, a jump to the block before.
    let mut code = vec![0xbfa0_0000 | (4 * blocks - 3) as u32, 0xbfb0_0000];
    for block in 0..blocks {
        let target: usize = if block == 0 { 1 } else { 4 * block - 2 };
        code.extend([0xd8d8_0000, (block as u32 % 200 + 2) << 24]);
        code.push(0xbfa1_0000 | (1usize.wrapping_sub(code.len() + 1) & 0xffff) as u32);
        code.push(0xbfa0_0000 | (target.wrapping_sub(code.len() + 1) & 0xffff) as u32);
    }
    // All lead to the end alone.
    let (passes, places) = passes(&code);
    assert!(passes < 1100 && places == 2, "{passes} {places}");
}

/// A branch to the next instruction is one path, and a block that only one other leads to keeps nothing.
#[test]
fn states_are_kept_where_paths_meet() {
    let (nop, branch, end) = (0xbf80_0000, 0xbfa1_0000, 0xbfb0_0000);
    assert_eq!(passes(&[&[branch; 5000][..], &[end]].concat()), (1000, 1));
    assert_eq!(passes(&[&[branch + 1, nop].repeat(7)[..], &[end]].concat()), (1000, 8));
    // All branch to the end.
    let all: Vec<u32> = (0..3000).map(|index| branch + 2999 - index).collect();
    assert_eq!(passes(&[&all[..], &[end]].concat()), (1000, 2));
}
