//! Registers that are read though no path from the entry writes them (instruction set reference §3).
//!
//! Contract: only what is certain. The launch writes the user SGPRs, ttmp and v0; exec is outside. A write of any width or
//! lane counts, and so does one still under way.

use super::Entry;
use super::effects::{LDS, REGISTER_COUNT, Registers, VECTOR_FIRST, runs};
use super::finding::{Finding, Rule};
use super::graph::{Analysis, Step};

/// Codes of ttmp0 to ttmp15.
const TRAP_TEMPORARIES: core::ops::RangeInclusive<usize> = 108..=123;

pub(super) struct Unwritten {
    pub(super) entry: Entry,
}

impl Analysis for Unwritten {
    /// What may be written, by register.
    type State = [bool; REGISTER_COUNT];

    fn entry_state(&self) -> Self::State {
        let mut written = [false; REGISTER_COUNT];
        written[..self.entry.user_sgprs.min(super::USER_SGPRS_MAX).into()].fill(true);
        written[TRAP_TEMPORARIES].fill(true);
        written[VECTOR_FIRST] = true;
        written[LDS] = true;
        written
    }

    fn is_kept_at_end(&self) -> bool {
        // The first run is the one that finds nothing written.
        false
    }

    fn after_call(&self, state: &mut Self::State) {
        state.fill(true);
    }

    fn step(&self, state: &mut Self::State, step: &Step, report: &mut dyn FnMut(Finding)) {
        for &registers in &step.effects.reads {
            let missing = |register: usize| !state[register];
            runs(registers, missing, |hit: Registers| {
                let remedy = "nothing on any path has written it".into();
                report(step.finding(Rule::Unwritten, Some(hit), None, remedy));
            });
        }
        for &registers in &step.effects.writes {
            state[registers.range()].fill(true);
        }
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let mut has_grown = false;
        for (written, &other) in state.iter_mut().zip(other) {
            has_grown |= other && !*written;
            *written |= other;
        }
        has_grown
    }
}
