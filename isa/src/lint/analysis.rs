//! What an analysis of code says about itself, so that it can be solved over the graph.
//!
//! Contract: states are finite, and a join only adds; otherwise no fixed point would be reached.

use super::finding::Finding;
use super::step::{Callee, Step};
use core::num::NonZeroU32;

/// A dword of the code. States hold many that may be absent, and one that is absent takes no room of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dword(NonZeroU32);

impl Dword {
    pub(super) fn new(dword: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(u32::try_from(dword).unwrap_or(u32::MAX)))
    }

    pub(super) fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

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
    /// The memory that a state takes, of which there is a limit.
    fn bytes(&self, _state: &Self::State) -> usize {
        size_of::<Self::State>()
    }
}
