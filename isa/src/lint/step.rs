//! One reachable instruction: what it does, and where execution continues after it.
//!
//! Contract: plain values. Positions are dwords of the code; those of targets may lie outside of it.

use super::effects::{Effects, Registers};
use super::finding::{Finding, Rule};
use crate::instruction::Instruction;
use crate::opcode::OperandInfo;
use crate::resources::WaveSize;
use alloc::string::{String, ToString};

/// One instruction at its position.
pub(super) struct Step {
    pub(super) dword: usize,
    pub(super) instruction: Instruction,
    pub(super) effects: Effects,
    pub(super) flow: Flow,
    pub(super) wave_size: WaveSize,
}

/// Where execution continues after an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// To a target, given as a dword that may lie outside the code.
    Jump(i64),
    /// To a target or to the next instruction.
    Branch(i64),
    /// To a target that belongs to this code and, from there, back.
    Subroutine(i64),
    /// Out of this code and back.
    Call(Callee),
    /// Back to the caller.
    Return,
    /// Out of the code, and to this function if it is known.
    Leave(Option<usize>),
    End,
}

/// The code that a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// Code that follows no convention: a part of this function, or unknown code.
    Free,
    /// The function at a dword.
    Function(usize),
    /// An unknown function, called by a pointer of the program: no compiler knows which one.
    Pointer,
    /// An unknown function, which the compiler may have known.
    Unknown,
}

impl Step {
    /// A finding at this instruction.
    pub(super) fn finding(
        &self,
        rule: Rule,
        registers: Option<Registers>,
        cause: Option<usize>,
        remedy: String,
    ) -> Finding {
        let instruction = self.instruction.text(self.wave_size).to_string();
        Finding { rule, dword: self.dword, instruction, registers, cause, remedy, source: None }
    }

    /// Types of its operands.
    pub(super) fn operands(&self) -> &'static OperandInfo {
        self.instruction.opcode.operands_for(self.wave_size)
    }

    /// Whether it returns from a called function.
    pub(super) fn is_return(&self) -> bool {
        self.flow == Flow::Return
    }

    /// The function that it calls or tail-calls.
    pub(super) fn callee(&self) -> Option<usize> {
        match self.flow {
            Flow::Call(Callee::Function(dword)) | Flow::Leave(Some(dword)) => Some(dword),
            _ => None,
        }
    }

    /// Whether it calls a function whose address comes from memory or a caller.
    pub(super) fn calls_pointer(&self) -> bool {
        self.flow == Flow::Call(Callee::Pointer)
    }

    /// Whether it calls or tail-calls unknown code: by a pointer, or in another object.
    pub(super) fn reaches_unseen(&self) -> bool {
        matches!(self.flow, Flow::Call(Callee::Pointer | Callee::Unknown) | Flow::Leave(None))
    }

    /// The dword after it.
    pub(super) fn end(&self) -> usize {
        self.dword + self.instruction.dword_count as usize
    }
}
