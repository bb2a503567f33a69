//! The decoded, ready-to-run form of an instruction.
//!
//! Contract: made once per instruction by `translate`. Execution uses only this value, the wave and the machine.
//! Everything that can be resolved at decode time (constants by operand width, register numbers, which specialised
//! function applies) is resolved there.

use crate::simd::Executor;

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A vector register: one value per lane.
    Vector(u8),
    /// A scalar register by operand code: the same value in every lane.
    Scalar(u8),
    /// A constant, already in the operand's width (64-bit constants: low dword here, high dword in
    /// `MicroOp::wide`).
    Constant(u32),
}

/// What happens after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flow {
    /// Continue with the next instruction.
    Next,
    /// `Wave::next` was set by the instruction.
    Jump,
    /// The wave waits at the workgroup barrier.
    Barrier,
    /// The wave yields its turn (`s_sleep`); it continues with the next instruction later.
    Yield,
    /// The wave has ended.
    End,
    /// The machine's `stop` says why the wave cannot continue.
    Fault,
    /// Continue at the address in the machine's `jump_va`.
    Indirect,
    /// The instruction cache was invalidated: check the code again, then continue with the next instruction.
    Refetch,
}

/// One instruction, ready to run.
#[derive(Clone, Copy)]
pub struct MicroOp {
    /// The function, bound to the host's vector level.
    pub executor: Executor,
    /// First destination: vector register number or scalar code (the function knows which).
    pub destination: u8,
    /// Second destination (mask of carry and div_scale forms); the mask that v_div_fmas reads.
    pub destination2: u8,
    /// Sources.
    pub sources: [Source; 3],
    /// High dwords of 64-bit constant sources.
    pub wide: [u32; 3],
    /// Modifiers packed by the translator for the general functions.
    pub modifiers: u32,
    /// Immediate, depending on the function: branch target as micro-op index, memory offset, simm16, DPP control.
    pub immediate: i32,
    /// Second immediate.
    pub immediate2: u32,
    /// Offset of the instruction from the start of the code, in dwords: for reports and `s_getpc`.
    pub code_dword: u32,
    /// Length of the instruction in dwords.
    pub dword_count: u8,
    /// Instructions that this operation counts as: itself and the effectless ones that follow it. Set by the
    /// program.
    pub weight: u8,
}
