//! What the register checker reports.
//!
//! Contract: plain values, not formatted until they are printed. Sections are those of the instruction set
//! reference.

use std::fmt;

use zrt_isa::effects::{Counter, Registers};

use crate::check::undefined::Source;

/// The rules of the checking mode that this component checks, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    /// Results used before the wait that guarantees them (instruction set reference §4.1).
    Counters = 1,
    /// The scalar register hazard and the other hazards (instruction set reference §5.1, §5.2), and operations that
    /// cannot issue as a pair (instruction set reference §6).
    Hazards = 2,
    /// Values that were never written, where they matter (instruction set reference §3), and disabled lanes in a
    /// matrix operation (instruction set reference §7.2).
    Uninitialised = 3,
    /// Correct, but perhaps unintended.
    Advice = 4,
    /// Private memory accessed beyond what the kernel declares.
    Bounds = 5,
}

/// The kind of defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// A register is read while its result is outstanding.
    ReadOutstanding(Counter),
    /// A register is overwritten while its result is outstanding.
    OverwriteOutstanding(Counter),
    /// A wait for only some of several scalar loads, which return in any order.
    PartialScalarWait,
    /// A scalar register that a VALU instruction once read was written by the SALU and is read now.
    ScalarWrite,
    /// The same, but written by the VALU.
    VectorWrite,
    /// The same, but followed by a jump to another function instead of a read.
    OpenAtJump,
    /// The matrix result is an input of the next matrix operation.
    MatrixChain,
    /// `v_permlane*` is the first VALU instruction after `v_cmpx`.
    LaneExchange,
    /// A store of system scope while earlier accesses are outstanding.
    SystemStore,
    /// Sources of a dual operation come from the same register bank.
    DualBanks,
    /// The halves of a dual operation add to registers that are both even or both odd.
    DualAddends,
    /// A dual operation reads more than two scalar values.
    DualScalars,
    /// Read where it matters, but never written.
    Unwritten,
    /// The same for a value computed from this source, which was never written.
    Undefined(Source),
    /// Stored, but partly never written.
    PartlyUndefined,
    /// A matrix operation with disabled lanes.
    MatrixLanes,
    /// A lane's access beyond the private memory that the kernel declares.
    PrivateBounds {
        /// Offset in the private segment.
        offset: u32,
        /// Bytes of the access.
        len: u32,
        /// Bytes that the kernel declares.
        declared: u32,
    },
    /// A scratch access in a launch without scratch memory.
    NoScratch,
}

/// What would satisfy the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Wait until the counter is at most this value.
    Wait(Counter, u8),
    /// `s_wait_alu depctr_sa_sdst(0)`.
    ScalarWrites,
    /// `s_wait_alu depctr_va_sdst(0)`.
    VectorWrites,
    /// `s_wait_alu depctr_va_vcc(0)`.
    VectorWritesOfVcc,
    /// A VALU instruction in between.
    VectorInstruction,
    /// A VALU instruction other than `v_nop` in between.
    RealVectorInstruction,
    /// Complete all loads and stores before the store.
    AllWaits,
    /// Use other registers.
    OtherBanks,
    /// Use one even and one odd register.
    OtherParity,
    /// Use two instructions.
    TwoInstructions,
    /// Write the register first.
    Write,
    /// Enable all lanes.
    AllLanes,
    /// Launch with scratch memory.
    Scratch,
    /// Use an index inside the array.
    Index,
}

/// One broken rule at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterFinding {
    /// The defect; the rule follows from it.
    pub defect: Defect,
    /// Address of the instruction.
    pub pc: u64,
    /// Address of the write, load or operation that it conflicts with.
    pub cause_pc: Option<u64>,
    /// The first lane concerned, for findings about lanes.
    pub lane: Option<u32>,
    /// The registers concerned.
    pub registers: Option<Registers>,
    /// What would satisfy the rule.
    pub remedy: Remedy,
}

impl RegisterFinding {
    /// A finding that concerns only the instruction.
    pub(super) fn at(pc: u64, defect: Defect, remedy: Remedy) -> Self {
        Self { defect, pc, cause_pc: None, lane: None, registers: None, remedy }
    }

    /// The rule that is broken.
    pub fn rule(&self) -> Rule {
        self.defect.rule()
    }
}

impl Rule {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Hazards => "hazards",
            Self::Uninitialised => "uninitialised",
            Self::Advice => "advice",
            Self::Bounds => "bounds",
        }
    }
}

impl Defect {
    /// The rule that it breaks.
    pub fn rule(self) -> Rule {
        match self {
            Self::ReadOutstanding(_) | Self::OverwriteOutstanding(_) | Self::PartialScalarWait => {
                Rule::Counters
            }
            Self::Unwritten | Self::Undefined(_) | Self::MatrixLanes | Self::NoScratch => Rule::Uninitialised,
            Self::PartlyUndefined => Rule::Advice,
            Self::PrivateBounds { .. } => Rule::Bounds,
            _ => Rule::Hazards,
        }
    }

    /// Short name, for tests.
    #[cfg(test)]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOutstanding(_) => "read-outstanding",
            Self::OverwriteOutstanding(_) => "overwrite-outstanding",
            Self::PartialScalarWait => "partial-scalar-wait",
            Self::ScalarWrite => "scalar-write",
            Self::VectorWrite => "vector-write",
            Self::OpenAtJump => "open-at-jump",
            Self::MatrixChain => "matrix-chain",
            Self::LaneExchange => "lane-exchange",
            Self::SystemStore => "system-store",
            Self::DualBanks => "dual-banks",
            Self::DualAddends => "dual-addends",
            Self::DualScalars => "dual-scalars",
            Self::Unwritten => "unwritten",
            Self::Undefined(_) => "undefined",
            Self::PartlyUndefined => "partly-undefined",
            Self::MatrixLanes => "matrix-lanes",
            Self::NoScratch => "no-scratch",
            Self::PrivateBounds { .. } => "private-bounds",
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ReadOutstanding(_) => "is read while its result may still be under way",
            Self::OverwriteOutstanding(_) => "is overwritten while an earlier result may still arrive",
            Self::PartialScalarWait => {
                "the wait covers only some of several scalar loads, which return in any order: it guarantees none of them"
            }
            Self::ScalarWrite => {
                "was read by the VALU, then written by the SALU; this read may return the old value"
            }
            Self::VectorWrite => {
                "was read by the VALU, then written by the VALU; this read may return the old value"
            }
            Self::OpenAtJump => "has a write open at a jump to other code",
            Self::MatrixChain => "is the result of a matrix operation and input A, B or index of the next",
            Self::LaneExchange => "lanes are exchanged right after v_cmpx wrote EXEC",
            Self::SystemStore => "a store of system scope while earlier accesses are outstanding",
            Self::DualBanks => "both halves of a dual operation read the same register bank",
            Self::DualAddends => "both halves of a dual operation add to registers of the same parity",
            Self::DualScalars => "a dual operation reads more than two scalar values",
            Self::Unwritten => "is read, but nothing has written it",
            Self::Undefined(origin) => {
                return write!(out, "is used, but was computed from {origin}, which nothing has written");
            }
            Self::PartlyUndefined => "is stored, but nothing has written part of it: is that padding?",
            Self::MatrixLanes => "a matrix operation with lanes off",
            Self::PrivateBounds { offset, len, declared } => {
                return write!(
                    out,
                    "{len} bytes at offset {offset} of private memory, of which the kernel declares {declared} bytes for a lane"
                );
            }
            Self::NoScratch => "a scratch access in a launch without scratch memory",
        })
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Wait(counter, count) => {
                return write!(out, "needs {} {count:#x} before it", counter.wait());
            }
            Self::ScalarWrites => "needs s_wait_alu depctr_sa_sdst(0) before it",
            Self::VectorWrites => "needs s_wait_alu depctr_va_sdst(0) before it",
            Self::VectorWritesOfVcc => "needs s_wait_alu depctr_va_vcc(0) before it",
            Self::VectorInstruction => "needs a VALU instruction, such as v_nop, in between",
            Self::RealVectorInstruction => "needs a VALU instruction other than v_nop in between",
            Self::AllWaits => "needs s_wait_loadcnt 0x0, s_wait_kmcnt 0x0 and s_wait_storecnt 0x0 before it",
            Self::OtherBanks => "use vector registers whose numbers differ modulo 4",
            Self::OtherParity => "add to one register of even and one of odd number",
            Self::TwoInstructions => "use two instructions, or fewer scalar registers and literals",
            Self::Write => "write it first",
            Self::AllLanes => "set all bits of EXEC first",
            Self::Scratch => "launch it with scratch memory",
            Self::Index => "check the index into the array, and the stack that calls need",
        })
    }
}

impl fmt::Display for RegisterFinding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: pc {:#x}: ", self.rule().name(), self.pc)?;
        if let Some(registers) = self.registers {
            write!(out, "{registers} ")?;
        }
        if let Some(lane) = self.lane {
            write!(out, "(lane {lane}) ")?;
        }
        write!(out, "{}", self.defect)?;
        if let Some(cause) = self.cause_pc {
            write!(out, ", from pc {cause:#x}")?;
        }
        write!(out, "; {}", self.remedy)
    }
}
