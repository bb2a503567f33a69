//! The fixed point of an analysis over the graph.
//!
//! Contract: what is known is kept at the beginnings of blocks that several paths lead to, and computed again from
//! there for the others. It is complete or refused: time and memory have limits, for code that was made to exceed
//! what any compiler writes ([`Excess`]).
//!
//! Cost: blocks are passed over in the order of their first paths, again and again from the top while anything is new,
//! so that what many paths bring to one place goes on from there at once. Loops in loops take one pass for each level.

use super::{Block, Edge, Graph};
use crate::lint::analysis::{Analysis, Call};
use crate::lint::finding::Findings;
use crate::lint::step::{Callee, Flow, Step};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Result as FormatResult};

/// Most work of one analysis for each instruction, on average; the most that was measured is 9.8. An instruction that
/// is passed over counts as one, and a state that is copied or joined as one for each [`STATE_BYTES_PER_WORK`].
const WORK_MAX: usize = 512;
/// Bytes of a state that are copied or joined in the time of an instruction, roughly.
const STATE_BYTES_PER_WORK: usize = 256;
/// Most memory of what one analysis keeps; the most that was measured is 917,136. A state has 3 KiB at most, or 30 KiB
/// in a called function that has waited for nothing.
const STATES_BYTES_MAX: usize = 16_777_216;

/// Why an analysis was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Work,
    States,
}

impl Display for Excess {
    fn fmt(&self, out: &mut Formatter<'_>) -> FormatResult {
        match self {
            Self::Work => {
                write!(out, "paths that meet so often that following them takes {WORK_MAX} times the code")
            }
            Self::States => write!(
                out,
                "paths that meet in so many places that what is known there takes more than {STATES_BYTES_MAX} bytes"
            ),
        }
    }
}

/// What is known at each of the places; `None` for one that is not reached. Few are, where there is a limit.
type States<A> = Vec<Option<Box<<A as Analysis>::State>>>;

/// Where states are kept.
pub(super) struct Places {
    /// The blocks at whose beginning one is, in the order in which they are passed over.
    blocks: Vec<usize>,
    /// The position in `blocks` by block.
    positions: Vec<Option<usize>>,
    /// By block: which of its successors has no other predecessor and goes on with its state.
    onward: Vec<Option<usize>>,
}

impl Places {
    pub(super) fn of(blocks: &[Block], entry: usize) -> Self {
        let mut predecessors = vec![0; blocks.len()];
        let ends = blocks.iter().flat_map(|block| block.successors()).map(|(successor, _)| successor);
        // The launch or the caller is one.
        ends.chain((!blocks.is_empty()).then_some(entry)).for_each(|block| predecessors[block] += 1);
        let has_this_alone =
            |(block, _): (usize, Edge)| Some(block).filter(|block| predecessors[*block] == 1);
        let onward: Vec<Option<usize>> =
            blocks.iter().map(|block| block.successors().rev().find_map(has_this_alone)).collect();
        let mut is_kept = vec![true; blocks.len()];
        onward.iter().flatten().for_each(|&block| is_kept[block] = false);
        let mut order = order(blocks, entry);
        order.retain(|&block| is_kept[block]);
        let mut positions = vec![None; blocks.len()];
        order.iter().enumerate().for_each(|(position, &block)| positions[block] = Some(position));
        Self { blocks: order, positions, onward }
    }
}

/// Blocks so that each comes before its successors, except where a loop leads back.
fn order(blocks: &[Block], entry: usize) -> Vec<usize> {
    let mut left = Vec::new();
    let mut is_seen = vec![false; blocks.len()];
    let mut path = Vec::new();
    if let Some(first) = blocks.get(entry) {
        is_seen[entry] = true;
        path.push((entry, first.successors()));
    }
    while let Some((block, successors)) = path.last_mut() {
        match successors.next() {
            Some((next, _)) if !is_seen[next] => {
                is_seen[next] = true;
                path.push((next, blocks[next].successors()));
            }
            Some(_) => {}
            None => {
                left.push(*block);
                path.pop();
            }
        }
    }
    left.reverse();
    left
}

impl Graph {
    /// Runs `analysis` to its fixed point, then collects its findings.
    pub(in crate::lint) fn solve<A: Analysis>(&self, analysis: &A, findings: &mut Findings) {
        findings.begin_analysis();
        let visit = &mut |state: &mut A::State, step: &Step| {
            analysis.step(state, step, &mut |finding| findings.push(finding));
        };
        if let Err(excess) = self.visit_solved(analysis, visit) {
            findings.push(self.not_analysed(&excess));
        }
    }

    /// Calls `visit` for each instruction, with what is known before it; `visit` then does the step.
    pub(super) fn visit_solved<A: Analysis>(
        &self,
        analysis: &A,
        visit: &mut dyn FnMut(&mut A::State, &Step),
    ) -> Result<(), Excess> {
        let states = self.fixed_point(analysis)?;
        for (&block, state) in self.places.blocks.iter().zip(states) {
            if let Some(state) = state {
                self.walk(analysis, block, *state, visit, &mut |_, _| ());
            }
        }
        Ok(())
    }

    /// What is known once nothing is new.
    fn fixed_point<A: Analysis>(&self, analysis: &A) -> Result<States<A>, Excess> {
        let mut states: States<A> = vec![None; self.places.blocks.len()];
        // The entry is the first.
        let Some(first) = states.first_mut() else { return Ok(states) };
        *first = Some(Box::new(analysis.entry_state()));
        let mut pending = BTreeSet::from([0]);
        let mut work_left = self.steps.len() * WORK_MAX;
        let state_work = |state: &A::State| analysis.bytes(state).div_ceil(STATE_BYTES_PER_WORK);
        let mut bytes_left = Some(STATES_BYTES_MAX);
        let mut position = 0;
        loop {
            let Some(next) = pending.range(position..).next().or(pending.first()).copied() else {
                return Ok(states);
            };
            pending.remove(&next);
            position = next;
            let Some(state) = states[next].as_deref().cloned() else { continue };
            let mut work = state_work(&state);
            let mut visit = |state: &mut A::State, step: &Step| analysis.step(state, step, &mut |_| {});
            let mut reach = |block: usize, state: &A::State| {
                work += state_work(state);
                let (Some(place), Some(left)) = (self.places.positions[block], bytes_left) else { return };
                let grown = match &mut states[place] {
                    Some(known) => {
                        let before = analysis.bytes(known);
                        analysis.join(known, state).then(|| analysis.bytes(known) - before)
                    }
                    unknown => Some(analysis.bytes(unknown.insert(Box::new(state.clone())))),
                };
                if let Some(more) = grown {
                    bytes_left = left.checked_sub(more);
                    pending.insert(place);
                }
            };
            work += self.walk(analysis, self.places.blocks[next], state, &mut visit, &mut reach);
            work_left = work_left.checked_sub(work).ok_or(Excess::Work)?;
            // Beyond it nothing is added to them.
            if bytes_left.is_none() {
                return Err(Excess::States);
            }
        }
    }

    /// Visits the steps from the beginning of a block to where the state is kept again. `reach` gets the state at the
    /// beginning of each block that is reached there. Returns the number of steps.
    fn walk<A: Analysis>(
        &self,
        analysis: &A,
        mut block: usize,
        mut state: A::State,
        visit: &mut dyn FnMut(&mut A::State, &Step),
        reach: &mut dyn FnMut(usize, &A::State),
    ) -> usize {
        let mut count = 0;
        loop {
            let steps = &self.steps[self.blocks[block].steps.clone()];
            steps.iter().for_each(|step| visit(&mut state, step));
            count += steps.len();
            let onward = self.places.onward[block];
            let mut edge_onward = None;
            for (successor, edge) in self.blocks[block].successors() {
                if onward == Some(successor) {
                    edge_onward = Some(edge);
                } else if edge == Edge::Return {
                    let mut after = state.clone();
                    return_from(analysis, steps, &mut after);
                    reach(successor, &after);
                } else if edge == Edge::Plain || analysis.is_kept_at_end() {
                    reach(successor, &state);
                }
            }
            let (Some(next), Some(edge)) = (onward, edge_onward) else { return count };
            if edge == Edge::Return {
                return_from(analysis, steps, &mut state);
            }
            block = next;
        }
    }
}

/// Applies the return from the call at the end of `steps`.
fn return_from<A: Analysis>(analysis: &A, steps: &[Step], state: &mut A::State) {
    let Some(last) = steps.last() else { return };
    let callee = match last.flow {
        Flow::Call(callee) => callee,
        _ => Callee::Free,
    };
    analysis.after_call(state, &Call { dword: last.dword, callee });
}

#[cfg(test)]
mod tests;
