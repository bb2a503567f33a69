//! The control-flow graph of a kernel, and the fixed point of an analysis over it.
//!
//! Contract: only reachable dwords are decoded, each at most once per round; rounds follow computed jumps. Calls of
//! other functions are not followed. [`Graph::solve`] terminates because joins only add and the states are finite.
//! Code beyond a limit has a finding of [`Rule::NotAnalysed`] at its entry: the others are not all then.
//!
//! Cost: some hundred bytes for an instruction, and what `graph/fixed_point.rs` says.

mod fixed_point;

use super::addresses::{Addresses, Goal};
use super::analysis::Analysis;
use super::convention::RETURN_ADDRESS;
use super::effects::Effects;
use super::entry::Entry;
use super::finding::{Finding, Findings, Rule};
use super::step::{Callee, Flow, Step};
use crate::decode::decode_for;
use crate::instruction::{Instruction, Operand};
use crate::opcode::Opcode;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Range;
use fixed_point::{Excess, Places};

/// Most rounds of following computed jumps: the targets found in one round may reveal more in the next.
const ROUNDS_MAX: usize = 6;
/// Most instructions that are followed from one entry. Of the 92 kernels of this repository the largest has 9017
/// (measured).
const STEPS_MAX: usize = 131_072;

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
    Return,
    /// From an end of the program to its entry.
    Again,
}

struct Block {
    steps: Range<usize>,
    successors: [Option<(usize, Edge)>; 2],
}

impl Block {
    fn successors(&self) -> impl DoubleEndedIterator<Item = (usize, Edge)> {
        self.successors.into_iter().flatten()
    }
}

/// Reachable code.
pub(super) struct Graph {
    entry_dword: usize,
    steps: Vec<Step>,
    blocks: Vec<Block>,
    places: Places,
    /// Instructions that were decoded, in all rounds.
    pub(super) decoded: usize,
    /// Whether it has more of them than are followed. It has no steps then.
    pub(super) is_cut: bool,
}

impl Graph {
    /// Follows `code` from the entry. The findings are those of the flow itself.
    pub(super) fn build(code: &[u32], entry: &Entry, surroundings: &Surroundings<'_>) -> (Self, Findings) {
        let mut goals = BTreeMap::new();
        let mut round = 1;
        let mut decoded = 0;
        loop {
            let (mut graph, mut findings) = Self::explore(code, entry, surroundings, &goals);
            decoded += graph.decoded;
            graph.decoded = decoded;
            if graph.is_cut || !surroundings.has_addresses {
                return (graph, findings);
            }
            match graph.goals() {
                Ok(next) if next == goals => return (graph, findings),
                Ok(next) if round < ROUNDS_MAX => goals = next,
                Ok(_) => {
                    let what = format!("computed jumps that {ROUNDS_MAX} rounds do not follow to their end");
                    findings.push(graph.not_analysed(&what));
                    return (graph, findings);
                }
                Err(excess) => {
                    findings.push(graph.not_analysed(&excess));
                    return (graph, findings);
                }
            }
            round += 1;
        }
    }

    fn explore(
        code: &[u32],
        entry: &Entry,
        surroundings: &Surroundings<'_>,
        goals: &BTreeMap<usize, Goal>,
    ) -> (Self, Findings) {
        let mut explorer = Explorer {
            code,
            entry,
            surroundings,
            goals,
            steps: Vec::new(),
            known: BTreeSet::new(),
            leaders: BTreeSet::new(),
            pending: Vec::new(),
            findings: Findings::new(),
            is_cut: false,
        };
        explorer.reach(entry.dword as i64, None);
        explorer.run();
        let Explorer { mut steps, mut leaders, mut findings, is_cut, .. } = explorer;
        let decoded = steps.len();
        if is_cut {
            (steps, leaders) = Default::default();
        }
        steps.sort_unstable_by_key(|step| step.dword);
        overlaps(&steps, &mut leaders, &mut findings);
        let (blocks, first) = blocks(&steps, &leaders, entry);
        let places = Places::of(&blocks, first);
        let graph = Self { entry_dword: entry.dword, steps, blocks, places, decoded, is_cut };
        if is_cut {
            findings.push(graph.not_analysed(&format_args!("more than {STEPS_MAX} instructions")));
        }
        (graph, findings)
    }

    /// The targets of its computed jumps, as far as they are known.
    fn goals(&self) -> Result<BTreeMap<usize, Goal>, Excess> {
        let is_computed =
            |step: &Step| matches!(step.instruction.opcode, Opcode::SSetpcB64 | Opcode::SSwappcB64);
        let mut goals = BTreeMap::new();
        if self.steps.iter().any(is_computed) {
            self.visit_solved(&Addresses, &mut |state, step| {
                goals.extend(state.goal(step).map(|goal| (step.dword, goal)));
                Addresses.step(state, step, &mut |_| {});
            })?;
        }
        Ok(goals)
    }

    /// Its instructions, in code order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn not_analysed(&self, what: &dyn Display) -> Finding {
        let remedy = format!("the code has {what}: not everything is checked");
        Finding::at(Rule::NotAnalysed, self.entry_dword, remedy)
    }
}

/// Finds the reachable instructions.
struct Explorer<'a> {
    code: &'a [u32],
    entry: &'a Entry,
    surroundings: &'a Surroundings<'a>,
    /// Targets of computed jumps, by the dword of the jump.
    goals: &'a BTreeMap<usize, Goal>,
    /// In no order.
    steps: Vec<Step>,
    /// The dwords of `steps`.
    known: BTreeSet<usize>,
    /// Dwords that something jumps to.
    leaders: BTreeSet<usize>,
    /// Leaders still to be followed.
    pending: Vec<usize>,
    findings: Findings,
    is_cut: bool,
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

    /// Follows each dword once: it is in `steps` afterwards, or undecodable, or there are too many.
    fn run(&mut self) {
        while let Some(dword) = self.pending.pop().filter(|_| !self.is_cut) {
            self.follow(dword);
        }
    }

    /// Decodes from `dword` up to where execution cannot continue, or up to known code.
    fn follow(&mut self, mut dword: usize) {
        while !self.known.contains(&dword) {
            if self.steps.len() == STEPS_MAX {
                self.is_cut = true;
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
            self.known.insert(dword);
            self.steps.push(step);
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
fn overlaps(steps: &[Step], leaders: &mut BTreeSet<usize>, findings: &mut Findings) {
    for pair in steps.windows(2) {
        if pair[0].end() > pair[1].dword {
            let remedy = format!("it begins inside of the instruction at dword {:#x}", pair[0].dword);
            findings.push(pair[1].finding(Rule::Target, None, None, remedy));
            leaders.insert(pair[0].end());
        }
    }
}

/// Cuts `steps` (in code order) into blocks. Returns the number of the entry's, too.
fn blocks(steps: &[Step], leaders: &BTreeSet<usize>, entry: &Entry) -> (Vec<Block>, usize) {
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
    // The step at a dword begins a block if anything but the step before it leads there.
    let find = |dword: i64| {
        let dword = usize::try_from(dword).ok()?;
        ranges.binary_search_by_key(&dword, |range| steps[range.start].dword).ok()
    };
    let first = find(entry.dword as i64).unwrap_or(0);
    let edges = |range: &Range<usize>| {
        let last = &steps[range.end - 1];
        let next = find(last.end() as i64);
        let (target, next, kind) = match last.flow {
            Flow::Next => (None, next, Edge::Plain),
            Flow::Jump(target) => (find(target), None, Edge::Plain),
            // To the next instruction in any case: one path.
            Flow::Branch(target) if target == last.end() as i64 => (None, next, Edge::Plain),
            Flow::Branch(target) => (find(target), next, Edge::Plain),
            Flow::Subroutine(target) => (find(target), next, Edge::Return),
            Flow::Call(_) => (None, next, Edge::Return),
            Flow::Return | Flow::Leave(_) => (None, None, Edge::Plain),
            Flow::End if entry.runs_again => return [Some((first, Edge::Again)), None],
            Flow::End => (None, None, Edge::Plain),
        };
        [target.map(|block| (block, Edge::Plain)), next.map(|block| (block, kind))]
    };
    let successors: Vec<_> = ranges.iter().map(edges).collect();
    let blocks = ranges.into_iter().zip(successors).map(|(steps, successors)| Block { steps, successors });
    (blocks.collect(), first)
}
