//! The control-flow graph of a kernel, and the fixed point of an analysis over it.
//!
//! Contract: every dword is decoded at most once, reachable ones only. [`Graph::solve`] ends because joins only add and
//! the states are finite.

use super::Entry;
use super::effects::{Effects, Registers};
use super::finding::{Finding, Rule};
use crate::decode::decode_for;
use crate::instruction::Instruction;
use crate::opcode::{Opcode, OperandInfo};
use crate::resources::WaveSize;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// One instruction at its place.
pub(super) struct Step {
    pub(super) dword: usize,
    pub(super) instruction: Instruction,
    pub(super) effects: Effects,
    wave_size: WaveSize,
}

impl Step {
    /// A finding at this instruction.
    pub(super) fn finding(
        &self,
        rule: Rule,
        registers: Option<Registers>,
        cause: Option<usize>,
        remedy: String,
    ) -> Finding {
        let instruction = self.instruction.text(self.wave_size).to_string();
        Finding { rule, dword: self.dword, instruction, registers, cause, remedy, source: None }
    }

    /// Types of its operands.
    pub(super) fn operands(&self) -> &'static OperandInfo {
        self.instruction.opcode.operands_for(self.wave_size)
    }

    /// Dword after it.
    fn end(&self) -> usize {
        self.dword + self.instruction.dword_count as usize
    }
}

/// Where execution goes after an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// To a target, given as a dword that may lie outside of the code.
    Jump(i64),
    /// To a target or on.
    Branch(i64),
    /// To a target (`None`: unknown) and, from there, back.
    Call(Option<i64>),
    /// Out of the code: return or computed jump.
    Leave,
    End,
}

fn flow(step: &Step) -> Flow {
    use Opcode::*;
    let target = step.dword as i64 + 1 + i64::from(step.instruction.immediate as i16);
    match step.instruction.opcode {
        SBranch => Flow::Jump(target),
        SCbranchScc0 | SCbranchScc1 | SCbranchVccz | SCbranchVccnz | SCbranchExecz | SCbranchExecnz => {
            Flow::Branch(target)
        }
        SCallB64 => Flow::Call(Some(target)),
        SSwappcB64 => Flow::Call(None),
        SSetpcB64 | SRfeB64 => Flow::Leave,
        SEndpgm | SEndpgmSaved | SCodeEnd => Flow::End,
        _ => Flow::Next,
    }
}

/// How a block is reached from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Plain,
    /// After a call that this code makes.
    Return,
    /// From an end of the program to its entry.
    Again,
}

struct Block {
    steps: Range<usize>,
    successors: Vec<(usize, Edge)>,
}

/// What an analysis needs to be solved.
pub(super) trait Analysis {
    /// What is known at a point.
    type State: Clone;
    /// At the entry.
    fn entry_state(&self) -> Self::State;
    /// Whether what holds at the end of the program holds at its entry when it is run again.
    fn is_kept_at_end(&self) -> bool;
    /// What an unknown callee leaves behind.
    fn after_call(&self, state: &mut Self::State);
    /// Over one instruction, with findings.
    fn step(&self, state: &mut Self::State, step: &Step, report: &mut dyn FnMut(Finding));
    /// Adds `other` to `state`, where two paths meet. Whether `state` has grown.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;
}

/// Reachable code.
pub(super) struct Graph {
    steps: Vec<Step>,
    blocks: Vec<Block>,
}

impl Graph {
    /// Follows `code` from the entry. Findings are those of the flow itself.
    pub(super) fn build(code: &[u32], entry: &Entry, findings: &mut Vec<Finding>) -> Self {
        let (steps, leaders, pending) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut explorer = Explorer { code, entry, steps, leaders, pending, findings };
        explorer.reach(entry.dword as i64, None);
        explorer.run();
        let Explorer { steps, mut leaders, .. } = explorer;
        let steps: Vec<Step> = steps.into_values().collect();
        overlaps(&steps, &mut leaders, findings);
        let blocks = blocks(&steps, &leaders, entry);
        Self { steps, blocks }
    }

    /// Runs `analysis` to its fixed point, then collects its findings.
    pub(super) fn solve<A: Analysis>(&self, analysis: &A, findings: &mut Vec<Finding>) {
        let mut states: Vec<Option<A::State>> = vec![None; self.blocks.len()];
        // The entry's block is the first.
        let Some(first) = states.first_mut() else { return };
        *first = Some(analysis.entry_state());
        let mut work = BTreeSet::from([0]);
        while let Some(index) = work.pop_first() {
            let Some(mut state) = states[index].clone() else { continue };
            for step in &self.steps[self.blocks[index].steps.clone()] {
                analysis.step(&mut state, step, &mut |_| {});
            }
            for &(successor, edge) in &self.blocks[index].successors {
                if edge == Edge::Again && !analysis.is_kept_at_end() {
                    continue;
                }
                let mut state = state.clone();
                if edge == Edge::Return {
                    analysis.after_call(&mut state);
                }
                let has_grown = match &mut states[successor] {
                    Some(known) => analysis.join(known, &state),
                    unknown => {
                        *unknown = Some(state);
                        true
                    }
                };
                if has_grown {
                    work.insert(successor);
                }
            }
        }
        for (block, state) in self.blocks.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for step in &self.steps[block.steps.clone()] {
                analysis.step(&mut state, step, &mut |finding| findings.push(finding));
            }
        }
    }
}

/// Finds the reachable instructions.
struct Explorer<'a> {
    code: &'a [u32],
    entry: &'a Entry,
    steps: BTreeMap<usize, Step>,
    /// Dwords that something jumps to.
    leaders: BTreeSet<usize>,
    /// Those still to be followed.
    pending: Vec<usize>,
    findings: &'a mut Vec<Finding>,
}

impl Explorer<'_> {
    /// Notes a place that `from` jumps to.
    fn reach(&mut self, target: i64, from: Option<&Step>) {
        match usize::try_from(target) {
            Ok(dword) if dword < self.code.len() => {
                if self.leaders.insert(dword) {
                    self.pending.push(dword);
                }
            }
            _ => {
                let remedy = format!("dword {target} is outside of the code's {} dwords", self.code.len());
                self.findings.push(match from {
                    Some(step) => step.finding(Rule::Target, None, None, remedy),
                    None => at(Rule::Target, self.entry.dword, remedy),
                });
            }
        }
    }

    /// Each place is followed once: it is in `steps` afterwards, or undecodable.
    fn run(&mut self) {
        while let Some(dword) = self.pending.pop() {
            self.follow(dword);
        }
    }

    /// Decodes from `dword` up to where execution cannot go on, or code that is known already.
    fn follow(&mut self, mut dword: usize) {
        while !self.steps.contains_key(&dword) {
            let Some(step) = self.decode(dword) else { return };
            let (flow, end) = (flow(&step), step.end());
            if let Flow::Jump(target) | Flow::Branch(target) | Flow::Call(Some(target)) = flow {
                self.reach(target, Some(&step));
            }
            self.steps.insert(dword, step);
            match flow {
                Flow::Next | Flow::Branch(_) | Flow::Call(_) => {}
                Flow::Jump(_) | Flow::Leave | Flow::End => return,
            }
            dword = end;
        }
    }

    fn decode(&mut self, dword: usize) -> Option<Step> {
        let words = self.code.get(dword..).unwrap_or_default();
        if words.is_empty() {
            self.findings.push(at(Rule::End, dword, "end the program before the end of its code".into()));
            return None;
        }
        let instruction = match decode_for(words, self.entry.wave_size) {
            Ok(instruction) => instruction,
            Err(error) => {
                self.findings.push(at(Rule::Undecodable, dword, error.to_string()));
                return None;
            }
        };
        let wave_size = self.entry.wave_size;
        let effects = Effects::of(&instruction, wave_size);
        let step = Step { dword, instruction, effects, wave_size };
        if instruction.opcode == Opcode::SCodeEnd {
            let remedy = "end the program before its padding".into();
            self.findings.push(step.finding(Rule::End, None, None, remedy));
        }
        if !step.effects.is_analysed {
            let remedy = "its registers are not known to this lint".into();
            self.findings.push(step.finding(Rule::NotAnalysed, None, None, remedy));
        }
        Some(step)
    }
}

fn at(rule: Rule, dword: usize, remedy: String) -> Finding {
    let instruction = String::new();
    Finding { rule, dword, instruction, registers: None, cause: None, remedy, source: None }
}

/// Instructions that begin inside another one. What follows the other then begins a block of its own.
fn overlaps(steps: &[Step], leaders: &mut BTreeSet<usize>, findings: &mut Vec<Finding>) {
    for pair in steps.windows(2) {
        if pair[0].end() > pair[1].dword {
            let remedy = format!("it begins inside of the instruction at dword {:#x}", pair[0].dword);
            findings.push(pair[1].finding(Rule::Target, None, None, remedy));
            leaders.insert(pair[0].end());
        }
    }
}

/// Cuts `steps` (in order of code) into blocks. The entry's is first.
fn blocks(steps: &[Step], leaders: &BTreeSet<usize>, entry: &Entry) -> Vec<Block> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for index in 0..steps.len() {
        let goes_on = flow(&steps[index]) == Flow::Next
            && steps
                .get(index + 1)
                .is_some_and(|next| next.dword == steps[index].end() && !leaders.contains(&next.dword));
        if !goes_on {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    if let Some(index) = ranges.iter().position(|range| steps[range.start].dword == entry.dword) {
        ranges.swap(0, index);
    }
    // The step at a dword begins a block wherever anything but the step before it leads there.
    let starts: BTreeMap<usize, usize> =
        ranges.iter().enumerate().map(|(index, range)| (steps[range.start].dword, index)).collect();
    let find = |dword: i64| usize::try_from(dword).ok().and_then(|dword| starts.get(&dword).copied());
    let edges = |range: &Range<usize>| {
        let last = &steps[range.end - 1];
        let next = find(last.end() as i64);
        let (target, next, kind) = match flow(last) {
            Flow::Next => (None, next, Edge::Plain),
            Flow::Jump(target) => (find(target), None, Edge::Plain),
            Flow::Branch(target) => (find(target), next, Edge::Plain),
            Flow::Call(target) => (target.and_then(find), next, Edge::Return),
            Flow::Leave => (None, None, Edge::Plain),
            Flow::End if entry.runs_again => return vec![(0, Edge::Again)],
            Flow::End => (None, None, Edge::Plain),
        };
        let target = target.map(|block| (block, Edge::Plain));
        target.into_iter().chain(next.map(|block| (block, kind))).collect()
    };
    let successors: Vec<Vec<(usize, Edge)>> = ranges.iter().map(edges).collect();
    ranges.into_iter().zip(successors).map(|(steps, successors)| Block { steps, successors }).collect()
}
