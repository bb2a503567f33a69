//! Functions that lie in one piece of code and call each other.
//!
//! Contract: a function is checked by itself, from its first instruction to its last, as the launch or the convention of
//! calls ([`super::convention`]) enters it; of its callees it is known which registers they write. Cost: each function is
//! decoded twice, and where functions jump into each other's code, [`SHARED_MAX`] times at most on average.

use super::Entry;
use super::convention::{self, RegisterSet};
use super::counters::Counters;
use super::effects::REGISTER_COUNT;
use super::exchange::Exchange;
use super::finding::{Finding, Rule};
use super::graph::{Graph, Surroundings, at};
use super::matrix_overlap::MatrixOverlap;
use super::scalar_hazard::ScalarHazard;
use super::unwritten::Unwritten;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Times that an instruction is looked at for different functions, on average: code from outside may have many functions
/// that all jump to the same place.
const SHARED_MAX: usize = 16;

/// A kernel or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// How it is entered.
    pub entry: Entry,
    /// Dword behind its last instruction.
    pub end: usize,
}

/// Code with its functions.
#[derive(Debug)]
pub struct Program<'a> {
    code: &'a [u32],
    /// By their first dword.
    functions: BTreeMap<usize, Function>,
    changes: Changes,
    callees: Callees,
    has_addresses: bool,
}

/// Which functions each function calls or goes to for good, by the first dwords of both.
type Callees = BTreeMap<usize, BTreeSet<usize>>;

/// The registers that each function writes, with its callees.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<usize, RegisterSet>);

impl Changes {
    /// Those of the function at a dword.
    pub(super) fn of(&self, dword: usize) -> Option<&RegisterSet> {
        self.0.get(&dword)
    }
}

impl<'a> Program<'a> {
    /// Functions of `code`, each by its own first dword; of several with the same one the last counts, and none goes beyond
    /// the beginning of the next. `has_addresses`: whether a linker has put in the distances of functions; without them it
    /// is not known which one a call goes to.
    pub fn new(code: &'a [u32], functions: &[Function], has_addresses: bool) -> Self {
        let mut functions: BTreeMap<usize, Function> =
            functions.iter().map(|function| (function.entry.dword, *function)).collect();
        let mut next = code.len();
        for (start, function) in functions.iter_mut().rev() {
            function.end = function.end.clamp(start + 1, next.max(start + 1));
            next = *start;
        }
        let (changes, callees) = (Changes::default(), Callees::new());
        let mut program = Self { code, functions, changes, callees, has_addresses };
        (program.changes, program.callees) = program.follow();
        program
    }

    /// The functions, in order of the code.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// The functions that begin at dwords of `from`, and all that they call or go to for good, and those in turn, by their first
    /// dwords. A call by a pointer of the program's leads nowhere.
    pub fn reached_from(&self, from: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut work: Vec<usize> =
            from.into_iter().filter(|dword| self.functions.contains_key(dword)).collect();
        let mut reached = BTreeSet::new();
        while let Some(function) = work.pop() {
            if reached.insert(function) {
                work.extend(self.callees.get(&function).into_iter().flatten());
            }
        }
        reached
    }

    /// Checks the function that begins at a dword; nothing where none does.
    pub fn check(&self, dword: usize) -> Vec<Finding> {
        let Some(function) = self.functions.get(&dword) else { return Vec::new() };
        if !self.changes.0.contains_key(&dword) {
            let remedy =
                "the functions before it share too much code to check them all: check this one alone";
            return Vec::from([at(Rule::NotAnalysed, dword, remedy.into())]);
        }
        let mut findings = Vec::new();
        let graph = self.graph(function, &mut findings);
        solve(&graph, &function.entry, &self.changes, findings)
    }

    fn graph(&self, function: &Function, findings: &mut Vec<Finding>) -> Graph {
        let surroundings = Surroundings {
            is_function: &|dword| self.functions.contains_key(&dword),
            end: function.end,
            has_convention: true,
            has_addresses: self.has_addresses,
        };
        Graph::build(self.code, &function.entry, &surroundings, findings)
    }

    /// What each function writes, and what it calls. Functions that would go over the limit are left out.
    fn follow(&self) -> (Changes, Callees) {
        let mut changes = BTreeMap::new();
        let mut callers = BTreeMap::<usize, Vec<usize>>::new();
        let mut callees = Callees::new();
        let mut seen = 0;
        for (&start, function) in &self.functions {
            if seen > self.code.len().saturating_mul(SHARED_MAX) {
                break;
            }
            let graph = self.graph(function, &mut Vec::new());
            let mut set = RegisterSet::default();
            for step in graph.steps() {
                step.effects.writes.iter().for_each(|registers| set.insert(registers.range()));
                let relative = step.effects.relative.and_then(|relative| relative.destination);
                relative.into_iter().for_each(|first| set.insert(convention::file_from(first.range().start)));
                if step.calls_pointer() {
                    (0..REGISTER_COUNT).filter(|register| convention::is_changed(*register)).for_each(
                        |register| {
                            set.insert(register..register + 1);
                        },
                    );
                }
                if step.reaches_unseen() {
                    // What it may return, this function returns where it leaves it alone.
                    set.insert(convention::VECTOR_ARGUMENTS);
                }
                if let Some(callee) = step.callee() {
                    callers.entry(callee).or_default().push(start);
                    callees.entry(start).or_default().insert(callee);
                }
            }
            seen += graph.steps().len();
            changes.insert(start, set);
        }
        // To a fixed point: a caller writes what its callees do.
        let mut work: BTreeSet<usize> = changes.keys().copied().collect();
        while let Some(callee) = work.pop_last() {
            let Some(set) = changes.get(&callee).cloned() else { continue };
            for caller in callers.get(&callee).into_iter().flatten() {
                if changes.get_mut(caller).is_some_and(|known| known.merge(&set)) {
                    work.insert(*caller);
                }
            }
        }
        (Changes(changes), callees)
    }
}

/// Checks code of which nothing is known but its entry.
pub(super) fn check_alone(code: &[u32], entry: &Entry) -> Vec<Finding> {
    let surroundings =
        Surroundings { is_function: &|_| false, end: usize::MAX, has_convention: false, has_addresses: true };
    let mut findings = Vec::new();
    let graph = Graph::build(code, entry, &surroundings, &mut findings);
    solve(&graph, entry, &Changes::default(), findings)
}

/// All rules over one function; in order of the code, each finding once.
fn solve(graph: &Graph, entry: &Entry, changes: &Changes, mut findings: Vec<Finding>) -> Vec<Finding> {
    graph.solve(&ScalarHazard { entry: *entry }, &mut findings);
    graph.solve(&Counters { is_called: entry.is_called }, &mut findings);
    graph.solve(&Exchange, &mut findings);
    graph.solve(&MatrixOverlap, &mut findings);
    graph.solve(&Unwritten { entry: *entry, changes }, &mut findings);
    findings.sort_by_key(|finding| (finding.dword, finding.rule, finding.registers));
    findings.dedup();
    findings
}
