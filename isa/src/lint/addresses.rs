//! The targets of computed jumps and calls, as far as the code shows them.
//!
//! Contract: numbers are followed through scalar registers as far as compilers use them for code addresses:
//! `s_getpc`, copies, sums with carry, the sign of 16 bits. Anything else is unknown, and so are values that differ
//! at a join. Code begins at address 0, which is correct for differences, the only ones used. Calls change nothing
//! here: if a caller jumps by a register after a call, either the callee keeps that register, or its use is a
//! mistake that another rule reports.

use super::analysis::{Analysis, Call};
use super::effects::{SCC, TRACKED_REGISTERS};
use super::finding::Finding;
use super::step::Step;
use crate::encoding::Encoding;
use crate::instruction::{Instruction, Operand};
use crate::opcode::Opcode;
use alloc::boxed::Box;

/// The contents of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unknown,
    Number(u32),
    /// A lane's value: a pointer of the program, which no compiler knows.
    Lane,
}

/// The target of a computed jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A dword of the code, or a position outside of it.
    Dword(i64),
    /// The target of a pointer of the program.
    Pointer,
}

pub(super) struct Addresses;

#[derive(Clone)]
pub(super) struct State {
    registers: Box<[Value; TRACKED_REGISTERS]>,
    carry: Option<bool>,
}

impl State {
    /// The target of the jump of `step`, if it is a computed one and the target is known.
    pub(super) fn goal(&self, step: &Step) -> Option<Goal> {
        if !matches!(step.instruction.opcode, Opcode::SSetpcB64 | Opcode::SSwappcB64) {
            return None;
        }
        let source = step.instruction.sources[0];
        match (self.value(source, 0), self.value(source, 1)) {
            (Value::Number(low), Value::Number(high)) if low % 4 == 0 => {
                let bytes = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                Some(Goal::Dword(bytes / 4))
            }
            (Value::Lane, Value::Lane) => Some(Goal::Pointer),
            _ => None,
        }
    }

    /// Dword `half` of an operand.
    fn value(&self, operand: Operand, half: usize) -> Value {
        match operand {
            Operand::Scalar(code) => {
                self.registers.get(usize::from(code) + half).copied().unwrap_or(Value::Unknown)
            }
            // In 64-bit operands an inline constant is extended; the extension of a literal is not needed here.
            Operand::Literal(number) if half == 0 => Value::Number(number),
            _ => match operand.inline_integer() {
                Some(number) if half == 0 => Value::Number(number.cast_unsigned()),
                Some(number) => Value::Number((number >> 31).cast_unsigned()),
                None => Value::Unknown,
            },
        }
    }

    fn set(&mut self, register: usize, value: Value) {
        if let Some(slot) = self.registers.get_mut(register) {
            *slot = value;
        }
    }

    /// The values of the first destination, if this analysis knows the operation; and the carry.
    fn results(&self, step: &Step) -> ([Value; 2], Option<bool>) {
        let Instruction { opcode, sources, .. } = step.instruction;
        let unknown = ([Value::Unknown; 2], None);
        let one = |value| ([value, Value::Unknown], self.carry);
        match opcode {
            Opcode::SGetpcB64 => {
                let bytes = (step.dword as u64 + 1) * 4;
                ([Value::Number(bytes as u32), Value::Number((bytes >> 32) as u32)], self.carry)
            }
            Opcode::SMovB32 => one(self.value(sources[0], 0)),
            Opcode::SMovB64 => ([self.value(sources[0], 0), self.value(sources[0], 1)], self.carry),
            Opcode::VReadfirstlaneB32 => one(Value::Lane),
            Opcode::SSextI32I16 => match self.value(sources[0], 0) {
                Value::Number(number) => one(Value::Number(number as i16 as u32)),
                _ => one(Value::Unknown),
            },
            Opcode::SAddCoU32 | Opcode::SAddCoCiU32 => {
                let carry = if opcode == Opcode::SAddCoU32 { Some(false) } else { self.carry };
                match (self.value(sources[0], 0), self.value(sources[1], 0), carry) {
                    (Value::Number(first), Value::Number(second), Some(carry)) => {
                        let sum = u64::from(first) + u64::from(second) + u64::from(carry);
                        ([Value::Number(sum as u32), Value::Unknown], Some(sum >> 32 != 0))
                    }
                    _ => unknown,
                }
            }
            _ => ([Value::Unknown; 2], self.carry),
        }
    }
}

impl Analysis for Addresses {
    type State = State;

    fn entry_state(&self) -> State {
        State { registers: Box::new([Value::Unknown; TRACKED_REGISTERS]), carry: None }
    }

    fn is_kept_at_end(&self) -> bool {
        true
    }

    fn after_call(&self, state: &mut State, _call: &Call) {
        state.carry = None;
    }

    fn step(&self, state: &mut State, step: &Step, _report: &mut dyn FnMut(Finding)) {
        let (values, carry) = state.results(step);
        for (index, registers) in step.effects.writes.iter().enumerate() {
            let values = values.iter().copied().filter(|_| index == 0);
            let values = values.chain(core::iter::repeat(Value::Unknown));
            registers.range().zip(values).for_each(|(register, value)| state.set(register, value));
        }
        let is_relative = step.effects.relative.is_some_and(|relative| relative.destination.is_some());
        if is_relative && matches!(step.instruction.encoding, Encoding::Sop1) {
            state.registers.fill(Value::Unknown);
        }
        let writes_condition = step.effects.writes.iter().any(|registers| registers.range().start == SCC);
        if writes_condition {
            let is_sum = matches!(step.instruction.opcode, Opcode::SAddCoU32 | Opcode::SAddCoCiU32);
            state.carry = carry.filter(|_| is_sum);
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let mut has_grown = false;
        for (slot, other) in state.registers.iter_mut().zip(other.registers.iter()) {
            if *slot != Value::Unknown && slot != other {
                *slot = Value::Unknown;
                has_grown = true;
            }
        }
        if state.carry.is_some() && state.carry != other.carry {
            state.carry = None;
            has_grown = true;
        }
        has_grown
    }

    fn bytes(&self, state: &State) -> usize {
        size_of::<State>() + size_of_val(&*state.registers)
    }
}
