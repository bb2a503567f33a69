//! Functions in one piece of code that call each other.
//!
//! Contract: a function is checked by itself, from its first instruction to its last, as entered by the launch or
//! by the calling convention ([`super::convention`]). Of its callees only the registers that they write are known.
//! Cost: each function is decoded twice, and again for each round of computed jumps; if functions jump into each
//! other's code, an instruction is decoded [`SHARED_MAX`] times on average at most, twice.

use super::changes::Changes;
use super::convention::{self, RegisterSet};
use super::counters::Counters;
use super::effects::REGISTER_COUNT;
use super::entry::Entry;
use super::exchange::Exchange;
use super::finding::{Finding, Findings, Rule};
use super::graph::{Graph, Surroundings};
use super::matrix_overlap::MatrixOverlap;
use super::scalar_hazard::ScalarHazard;
use super::unwritten::Unwritten;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Times that an instruction is analysed for different functions, on average. Untrusted code may have many
/// functions that all jump to the same place.
const SHARED_MAX: usize = 16;

/// A kernel or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// How it is entered.
    pub entry: Entry,
    /// The dword after its last instruction.
    pub end: usize,
}

/// Code with its functions.
#[derive(Debug)]
pub struct Program<'a> {
    code: &'a [u32],
    /// Functions by their first dword.
    functions: BTreeMap<usize, Function>,
    changes: Changes,
    callees: Callees,
    has_addresses: bool,
}

/// The functions that each function calls or tail-calls, by the first dwords of both.
type Callees = BTreeMap<usize, BTreeSet<usize>>;

impl<'a> Program<'a> {
    /// Functions of `code`, each keyed by its first dword. Of several with the same one the last counts, and none
    /// extends past the beginning of the next. `has_addresses`: whether a linker has inserted the distances between
    /// functions; without them it is unknown which function a call targets.
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

    /// The functions, in code order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// The functions that begin at dwords of `from`, and everything that they call or tail-call, transitively, by
    /// their first dwords. Calls by a pointer of the program are not followed.
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

    /// Checks the function that begins at a dword. Returns nothing if none does.
    pub fn check(&self, dword: usize) -> Vec<Finding> {
        let Some(function) = self.functions.get(&dword) else { return Vec::new() };
        if self.changes.of(dword).is_none() {
            let remedy = "it is too large, or the functions before it share too much code to check them all: check \
                          this one alone";
            return Vec::from([Finding::at(Rule::NotAnalysed, dword, remedy.into())]);
        }
        let (graph, findings) = self.graph(function);
        solve(&graph, &function.entry, &self.changes, findings)
    }

    fn graph(&self, function: &Function) -> (Graph, Findings) {
        let surroundings = Surroundings {
            is_function: &|dword| self.functions.contains_key(&dword),
            end: function.end,
            has_convention: true,
            has_addresses: self.has_addresses,
        };
        Graph::build(self.code, &function.entry, &surroundings)
    }

    /// What each function writes, and what it calls. Functions over the limit are left out.
    fn follow(&self) -> (Changes, Callees) {
        let mut changes = BTreeMap::new();
        let mut callers = BTreeMap::<usize, Vec<usize>>::new();
        let mut callees = Callees::new();
        let mut seen = 0;
        for (&start, function) in &self.functions {
            if seen > self.code.len().saturating_mul(SHARED_MAX) {
                break;
            }
            let (graph, _) = self.graph(function);
            seen += graph.decoded;
            if graph.is_cut {
                continue;
            }
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
                    // Results of the unseen code can be results of this function, unless it overwrites them.
                    set.insert(convention::VECTOR_ARGUMENTS);
                }
                if let Some(callee) = step.callee() {
                    callers.entry(callee).or_default().push(start);
                    callees.entry(start).or_default().insert(callee);
                }
            }
            changes.insert(start, set);
        }
        // Iterates to a fixed point: a caller writes what its callees do.
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

/// Checks code of which only the entry is known.
pub(super) fn check_alone(code: &[u32], entry: &Entry) -> Vec<Finding> {
    let surroundings =
        Surroundings { is_function: &|_| false, end: usize::MAX, has_convention: false, has_addresses: true };
    let (graph, findings) = Graph::build(code, entry, &surroundings);
    solve(&graph, entry, &Changes::default(), findings)
}

/// Applies all rules to one function; findings in code order, each once.
fn solve(graph: &Graph, entry: &Entry, changes: &Changes, mut findings: Findings) -> Vec<Finding> {
    graph.solve(&ScalarHazard { entry: *entry }, &mut findings);
    graph.solve(&Counters { is_called: entry.is_called }, &mut findings);
    graph.solve(&Exchange, &mut findings);
    graph.solve(&MatrixOverlap, &mut findings);
    graph.solve(&Unwritten { entry: *entry, changes }, &mut findings);
    findings.finish(entry.dword)
}
