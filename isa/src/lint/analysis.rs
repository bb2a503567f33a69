//! What an analysis of code says about itself, so that it can be solved over the graph.
//!
//! Contract: states are finite, and a join only adds; otherwise no fixed point would be reached.

use super::finding::Finding;
use super::step::{Callee, Step};

/// A call that has returned.
pub(super) struct Call {
    /// Dword of the call.
    pub(super) dword: usize,
    pub(super) callee: Callee,
}

/// An analysis that can be solved over the graph.
pub(super) trait Analysis {
    /// What is known at one point of the code.
    type State: Clone;
    /// The state at the entry.
    fn entry_state(&self) -> Self::State;
    /// Whether the state at the end of the program applies at its entry when it runs again.
    fn is_kept_at_end(&self) -> bool;
    /// Applies what a callee leaves behind.
    fn after_call(&self, state: &mut Self::State, call: &Call);
    /// Applies one instruction and reports findings.
    fn step(&self, state: &mut Self::State, step: &Step, report: &mut dyn FnMut(Finding));
    /// Merges `other` into `state` at a join. Returns whether `state` has grown.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;
}
