//! The control-flow graph of a kernel, and the fixed point of an analysis over it.
//!
//! Contract: only reachable dwords are decoded, each at most once per round; rounds follow computed jumps. Calls of
//! other functions are not followed. [`Graph::solve`] terminates because joins only add and the states are finite.
//!
//! Cost: an instruction takes some hundred bytes. What is known at the beginning of each block takes some kilobytes for
//! as long as an analysis runs, and each instruction is stepped over [`PASSES_MAX`] times on average at most. Code that
//! exceeds a limit has a finding of [`Rule::NotAnalysed`] at its entry: it is not checked whole.

use super::addresses::{Addresses, Goal};
use super::analysis::{Analysis, Call};
use super::convention::RETURN_ADDRESS;
use super::effects::Effects;
use super::entry::Entry;
use super::finding::{Finding, Rule};
use super::step::{Callee, Flow, Step};
use crate::decode::decode_for;
use crate::instruction::{Instruction, Operand};
use crate::opcode::Opcode;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Most rounds of following computed jumps: the targets found in one round may reveal more in the next.
const ROUNDS_MAX: usize = 6;
/// Most instructions that are followed from one entry. Of the 92 kernels of this repository the largest has 9017
/// (measured, as are those below).
const STEPS_MAX: usize = 131_072;
/// Most blocks of one entry; a kernel here has 608 at most.
const BLOCKS_MAX: usize = 8192;
/// Most times that an instruction is stepped over in one analysis, on average; a kernel here needs 3.3 at most.
const PASSES_MAX: usize = 64;

/// What is known about the code around an entry.
pub(super) struct Surroundings<'a> {
    /// Whether a function that calls may target begins at a dword.
    pub(super) is_function: &'a dyn Fn(usize) -> bool,
    /// The dword after the entry's function.
    pub(super) end: usize,
    /// Whether calls follow the convention of compiled functions.
    pub(super) has_convention: bool,
    /// Whether address differences are already in the code, as after linking.
    pub(super) has_addresses: bool,
}

/// How one block is reached from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Plain,
    /// After a call that this code makes.
    Return(Callee),
    /// From an end of the program to its entry.
    Again,
}

struct Block {
    steps: Range<usize>,
    successors: Vec<(usize, Edge)>,
}

/// Reachable code.
pub(super) struct Graph {
    entry_dword: usize,
    steps: Vec<Step>,
    blocks: Vec<Block>,
    /// Instructions that were decoded. They are more than its steps if it exceeds a limit: it has none then.
    pub(super) decoded: usize,
}

impl Graph {
    /// Follows `code` from the entry. Findings are those of the flow itself.
    pub(super) fn build(
        code: &[u32],
        entry: &Entry,
        surroundings: &Surroundings<'_>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut goals = BTreeMap::new();
        let mut round = 1;
        loop {
            let mut found = Vec::new();
            let graph = Self::explore(code, entry, surroundings, &goals, &mut found);
            let next = match surroundings.has_addresses {
                true => graph.goals(&mut found),
                false => BTreeMap::new(),
            };
            if next == goals || round == ROUNDS_MAX {
                if next != goals {
                    let what = format!("computed jumps that {ROUNDS_MAX} rounds do not follow to their end");
                    found.push(not_analysed(entry.dword, &what));
                }
                findings.append(&mut found);
                return graph;
            }
            goals = next;
            round += 1;
        }
    }

    fn explore(
        code: &[u32],
        entry: &Entry,
        surroundings: &Surroundings<'_>,
        goals: &BTreeMap<usize, Goal>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let (steps, leaders, pending) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut explorer = Explorer { code, entry, surroundings, goals, steps, leaders, pending, findings };
        explorer.reach(entry.dword as i64, None);
        explorer.run();
        let Explorer { steps, mut leaders, .. } = explorer;
        let steps: Vec<Step> = steps.into_values().collect();
        overlaps(&steps, &mut leaders, findings);
        let blocks = blocks(&steps, &leaders, entry);
        let decoded = steps.len();
        if decoded > STEPS_MAX || blocks.len() > BLOCKS_MAX {
            let what = format!("more than {STEPS_MAX} instructions, or {BLOCKS_MAX} blocks between jumps");
            findings.push(not_analysed(entry.dword, &what));
            return Self { entry_dword: entry.dword, steps: Vec::new(), blocks: Vec::new(), decoded };
        }
        Self { entry_dword: entry.dword, steps, blocks, decoded }
    }

    /// Whether it exceeds a limit.
    pub(super) fn is_cut(&self) -> bool {
        self.decoded > self.steps.len()
    }

    /// The targets of its computed jumps, as far as they are known.
    fn goals(&self, findings: &mut Vec<Finding>) -> BTreeMap<usize, Goal> {
        let is_computed =
            |step: &Step| matches!(step.instruction.opcode, Opcode::SSetpcB64 | Opcode::SSwappcB64);
        let mut goals = BTreeMap::new();
        if !self.steps.iter().any(is_computed) {
            return goals;
        }
        let states = self.fixed_point(&Addresses, findings);
        for (block, state) in self.blocks.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for step in &self.steps[block.steps.clone()] {
                goals.extend(state.goal(step).map(|goal| (step.dword, goal)));
                Addresses.step(&mut state, step, &mut |_| {});
            }
        }
        goals
    }

    /// Its instructions, in code order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Runs `analysis` to its fixed point, then collects its findings.
    pub(super) fn solve<A: Analysis>(&self, analysis: &A, findings: &mut Vec<Finding>) {
        let states = self.fixed_point(analysis, findings);
        for (block, state) in self.blocks.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for step in &self.steps[block.steps.clone()] {
                analysis.step(&mut state, step, &mut |finding| findings.push(finding));
            }
        }
    }

    /// The state at the beginning of each block; `None` for a block that is not reached. Nothing, and a finding, if
    /// paths meet too often.
    fn fixed_point<A: Analysis>(&self, analysis: &A, findings: &mut Vec<Finding>) -> Vec<Option<A::State>> {
        let mut states: Vec<Option<A::State>> = vec![None; self.blocks.len()];
        // The entry's block is the first.
        let Some(first) = states.first_mut() else { return states };
        *first = Some(analysis.entry_state());
        let mut work = BTreeSet::from([0]);
        let mut left = self.steps.len() * PASSES_MAX;
        while let Some(index) = work.pop_first() {
            let Some(less) = left.checked_sub(self.blocks[index].steps.len()) else {
                let what =
                    format!("paths that meet so often that {PASSES_MAX} passes do not follow them all");
                findings.push(not_analysed(self.entry_dword, &what));
                return Vec::new();
            };
            left = less;
            let Some(mut state) = states[index].clone() else { continue };
            for step in &self.steps[self.blocks[index].steps.clone()] {
                analysis.step(&mut state, step, &mut |_| {});
            }
            for &(successor, edge) in &self.blocks[index].successors {
                if edge == Edge::Again && !analysis.is_kept_at_end() {
                    continue;
                }
                let mut state = state.clone();
                if let Edge::Return(callee) = edge {
                    let dword = self.steps[self.blocks[index].steps.end - 1].dword;
                    analysis.after_call(&mut state, &Call { dword, callee });
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
        states
    }
}

fn not_analysed(dword: usize, what: &str) -> Finding {
    Finding::at(Rule::NotAnalysed, dword, format!("the code has {what}: not everything is checked"))
}

/// Finds the reachable instructions.
struct Explorer<'a> {
    code: &'a [u32],
    entry: &'a Entry,
    surroundings: &'a Surroundings<'a>,
    /// Targets of computed jumps, by the dword of the jump.
    goals: &'a BTreeMap<usize, Goal>,
    steps: BTreeMap<usize, Step>,
    /// Dwords that something jumps to.
    leaders: BTreeSet<usize>,
    /// Leaders still to be followed.
    pending: Vec<usize>,
    findings: &'a mut Vec<Finding>,
}

impl Explorer<'_> {
    /// Records a dword that `from` jumps to.
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
                    None => Finding::at(Rule::Target, self.entry.dword, remedy),
                });
            }
        }
    }

    /// Follows each dword once: it is in `steps` afterwards, or undecodable. Ends one instruction after the limit.
    fn run(&mut self) {
        while let Some(dword) = self.pending.pop() {
            self.follow(dword);
        }
    }

    /// Decodes from `dword` up to where execution cannot continue, or up to known code.
    fn follow(&mut self, mut dword: usize) {
        while !self.steps.contains_key(&dword) {
            if self.steps.len() > STEPS_MAX {
                return;
            }
            let Some(step) = self.decode(dword) else { return };
            let (flow, end) = (step.flow, step.end());
            if let Flow::Jump(target) | Flow::Branch(target) | Flow::Subroutine(target) = flow {
                self.reach(target, Some(&step));
            }
            let goes_on = matches!(flow, Flow::Next | Flow::Branch(_) | Flow::Subroutine(_) | Flow::Call(_));
            let is_last = dword < self.surroundings.end && end >= self.surroundings.end;
            // After a call that does not return, and after a trap, there need not be any code.
            let stops = matches!(flow, Flow::Call(_)) || step.instruction.opcode == Opcode::STrap;
            if goes_on && is_last && !stops {
                let remedy = "execution runs off the function: end it with s_endpgm or a return".into();
                self.findings.push(step.finding(Rule::End, None, None, remedy));
            }
            self.steps.insert(dword, step);
            if !goes_on || is_last {
                return;
            }
            dword = end;
        }
    }

    fn flow(&self, dword: usize, instruction: &Instruction) -> Flow {
        use Opcode::*;
        let target = dword as i64 + 1 + i64::from(instruction.immediate as i16);
        let function = |target: i64| {
            usize::try_from(target).ok().filter(|dword| (self.surroundings.is_function)(*dword))
        };
        let goal = self.goals.get(&dword).copied();
        let known = match goal {
            Some(Goal::Dword(target)) => function(target),
            _ => None,
        };
        match instruction.opcode {
            SBranch if function(target).is_some_and(|dword| dword != self.entry.dword) => {
                Flow::Leave(function(target))
            }
            SBranch => Flow::Jump(target),
            SCbranchScc0 | SCbranchScc1 | SCbranchVccz | SCbranchVccnz | SCbranchExecz | SCbranchExecnz => {
                Flow::Branch(target)
            }
            SCallB64 => match function(target) {
                Some(dword) => Flow::Call(Callee::Function(dword)),
                None => Flow::Subroutine(target),
            },
            SSwappcB64 => Flow::Call(match (known, goal) {
                (Some(dword), _) => Callee::Function(dword),
                _ if !self.surroundings.has_convention => Callee::Free,
                (None, Some(Goal::Pointer)) => Callee::Pointer,
                _ => Callee::Unknown,
            }),
            SSetpcB64 => match goal {
                _ if known.is_some() => Flow::Leave(known),
                Some(Goal::Dword(target)) if self.is_own(target) => Flow::Jump(target),
                None if self.entry.is_called && instruction.sources[0] == Operand::Scalar(RETURN_ADDRESS) => {
                    Flow::Return
                }
                _ => Flow::Leave(None),
            },
            SRfeB64 => Flow::Leave(None),
            SEndpgm | SEndpgmSaved | SCodeEnd => Flow::End,
            _ => Flow::Next,
        }
    }

    /// Whether a dword is in the entry's function.
    fn is_own(&self, target: i64) -> bool {
        let end = self.surroundings.end.min(self.code.len());
        usize::try_from(target).is_ok_and(|dword| (self.entry.dword..end).contains(&dword))
    }

    fn decode(&mut self, dword: usize) -> Option<Step> {
        let words = self.code.get(dword..).unwrap_or_default();
        if words.is_empty() {
            self.findings.push(Finding::at(
                Rule::End,
                dword,
                "end the program before the end of its code".into(),
            ));
            return None;
        }
        let instruction = match decode_for(words, self.entry.wave_size) {
            Ok(instruction) => instruction,
            Err(error) => {
                self.findings.push(Finding::at(Rule::Undecodable, dword, error.to_string()));
                return None;
            }
        };
        let wave_size = self.entry.wave_size;
        let effects = Effects::of(&instruction, wave_size);
        let flow = self.flow(dword, &instruction);
        let step = Step { dword, instruction, effects, flow, wave_size };
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

/// Finds instructions that begin inside another one. The code after the other one then begins a block of its own.
fn overlaps(steps: &[Step], leaders: &mut BTreeSet<usize>, findings: &mut Vec<Finding>) {
    for pair in steps.windows(2) {
        if pair[0].end() > pair[1].dword {
            let remedy = format!("it begins inside of the instruction at dword {:#x}", pair[0].dword);
            findings.push(pair[1].finding(Rule::Target, None, None, remedy));
            leaders.insert(pair[0].end());
        }
    }
}

/// Cuts `steps` (in code order) into blocks. The entry's block is first.
fn blocks(steps: &[Step], leaders: &BTreeSet<usize>, entry: &Entry) -> Vec<Block> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for index in 0..steps.len() {
        // What is no leader was reached from the step before it: `overlaps` makes a leader of what follows a step
        // that has others inside of it.
        let goes_on = steps[index].flow == Flow::Next
            && steps.get(index + 1).is_some_and(|next| !leaders.contains(&next.dword));
        if !goes_on {
            ranges.push(start..index + 1);
            start = index + 1;
        }
    }
    if let Some(index) = ranges.iter().position(|range| steps[range.start].dword == entry.dword) {
        ranges.swap(0, index);
    }
    // The step at a dword begins a block if anything but the step before it leads there.
    let starts: BTreeMap<usize, usize> =
        ranges.iter().enumerate().map(|(index, range)| (steps[range.start].dword, index)).collect();
    let find = |dword: i64| usize::try_from(dword).ok().and_then(|dword| starts.get(&dword).copied());
    let edges = |range: &Range<usize>| {
        let last = &steps[range.end - 1];
        let next = find(last.end() as i64);
        let (target, next, kind) = match last.flow {
            Flow::Next => (None, next, Edge::Plain),
            Flow::Jump(target) => (find(target), None, Edge::Plain),
            Flow::Branch(target) => (find(target), next, Edge::Plain),
            Flow::Subroutine(target) => (find(target), next, Edge::Return(Callee::Free)),
            Flow::Call(callee) => (None, next, Edge::Return(callee)),
            Flow::Return | Flow::Leave(_) => (None, None, Edge::Plain),
            Flow::End if entry.runs_again => return vec![(0, Edge::Again)],
            Flow::End => (None, None, Edge::Plain),
        };
        let target = target.map(|block| (block, Edge::Plain));
        target.into_iter().chain(next.map(|block| (block, kind))).collect()
    };
    let successors: Vec<Vec<(usize, Edge)>> = ranges.iter().map(edges).collect();
    ranges.into_iter().zip(successors).map(|(steps, successors)| Block { steps, successors }).collect()
}
