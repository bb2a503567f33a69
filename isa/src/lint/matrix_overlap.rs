//! A matrix operation must not read as A, B or index what the matrix operation directly before it wrote, unless a
//! VALU instruction is between them (instruction set reference §5.2).
//!
//! Contract: `v_nop` counts as a VALU instruction here. The addend may be the previous result: the hardware waits
//! for it.

use super::analysis::{Analysis, Call};
use super::effects::{Registers, Unit, VECTOR_FIRST};
use super::finding::{Finding, Rule};
use super::step::Step;
use crate::instruction::Operand;
use crate::opcode::Opcode;
use alloc::vec::Vec;

/// First and last operation of this kind, and the first that has an index.
const FIRST: Opcode = Opcode::VWmmaF3216x16x16F16;
const FIRST_SPARSE: Opcode = Opcode::VSwmmacF3216x16x32F16;
const LAST: Opcode = Opcode::VSwmmacF3216x16x32Bf8Bf8;

pub(super) struct MatrixOverlap;

impl Analysis for MatrixOverlap {
    /// The matrix operations not yet followed by a VALU instruction, one for what each wrote: several if paths meet.
    type State = Vec<(usize, Registers)>;

    fn entry_state(&self) -> Self::State {
        Vec::new()
    }

    fn is_kept_at_end(&self) -> bool {
        true
    }

    fn after_call(&self, _state: &mut Self::State, _call: &Call) {}

    fn step(&self, state: &mut Self::State, step: &Step, report: &mut dyn FnMut(Finding)) {
        if step.effects.unit != Unit::Valu {
            return;
        }
        let opcode = step.instruction.opcode;
        if !(FIRST..=LAST).contains(&opcode) {
            state.clear();
            return;
        }
        let info = step.operands();
        let count = if opcode >= FIRST_SPARSE { 3 } else { 2 };
        for (source, kind) in step.instruction.sources.iter().zip(info.sources).take(count) {
            let Some(read) = vector(*source, kind.data.dwords()) else { continue };
            let (first, end) = (read.range().start, read.range().end);
            if let Some((cause, _)) =
                state.iter().find(|(_, written)| written.range().start < end && first < written.range().end)
            {
                let remedy =
                    "needs a VALU instruction, such as v_nop, between the two matrix operations".into();
                report(step.finding(Rule::MatrixOverlap, Some(read), Some(*cause), remedy));
            }
        }
        *state = vector(step.instruction.destination, info.destination.data.dwords())
            .map(|written| (step.dword, written))
            .into_iter()
            .collect();
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let before = state.len();
        for one in other {
            // One cause is enough, and code can bring together as many as it has matrix operations.
            if state.iter().all(|(_, written)| *written != one.1) {
                state.push(*one);
            }
        }
        state.len() > before
    }

    fn bytes(&self, state: &Self::State) -> usize {
        size_of::<Self::State>() + size_of_val(&state[..])
    }
}

fn vector(operand: Operand, count: u32) -> Option<Registers> {
    match operand {
        Operand::Vector(first) => Some(Registers::new(VECTOR_FIRST + usize::from(first), count as usize)),
        _ => None,
    }
}
