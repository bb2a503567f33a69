//! `v_permlane*` must not be the first VALU instruction after `v_cmpx` (instruction set reference §5.2).
//!
//! Contract: `v_nop` does not count as a VALU instruction here, because the hardware drops it.

use super::analysis::{Analysis, Call};
use super::effects::Unit;
use super::finding::{Finding, Rule};
use super::step::Step;
use crate::opcode::{Opcode, RegisterFile};

pub(super) struct Exchange;

impl Analysis for Exchange {
    /// The latest `v_cmpx` not yet followed by a VALU instruction.
    type State = Option<usize>;

    fn entry_state(&self) -> Self::State {
        None
    }

    fn is_kept_at_end(&self) -> bool {
        true
    }

    fn after_call(&self, _state: &mut Self::State, _call: &Call) {}

    fn step(&self, state: &mut Self::State, step: &Step, report: &mut dyn FnMut(Finding)) {
        let opcode = step.instruction.opcode;
        if step.effects.unit != Unit::Valu || opcode == Opcode::VNop {
            return;
        }
        if state.is_some() && opcode.mnemonic().starts_with("v_permlane") {
            let remedy = "needs a VALU instruction other than v_nop in between".into();
            report(step.finding(Rule::LaneExchange, None, *state, remedy));
        }
        let writes_exec = opcode.operands().destination.file == RegisterFile::Exec;
        *state = writes_exec.then_some(step.dword);
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let has_grown = state.is_none() && other.is_some();
        *state = state.or(*other);
        has_grown
    }
}
