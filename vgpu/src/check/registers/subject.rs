//! What the register rules need from the wave that they check.
//!
//! Contract: keeps the rules separate from the code that executes instructions; this is all they need from it.

use zrt_isa::effects::Registers;

/// Lanes of the widest wave.
pub const LANES_MAX: usize = 64;

/// The undefined bits of one register.
#[derive(Clone, Debug)]
pub struct Undefined {
    /// Its number in the effects table.
    pub register: usize,
    /// The undefined bits by lane; for a scalar register or the condition code, in the first entry.
    pub bits: [u32; LANES_MAX],
}

/// The effect of undefined bits in one instruction.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The undefined bits of the registers that it writes, all of them in order.
    pub results: Vec<Undefined>,
    /// Whether EXEC or the next address depends on them.
    pub steers: bool,
}

/// The wave as it is before the current instruction.
pub trait Subject {
    /// EXEC; bits beyond the wave are ignored.
    fn exec(&self) -> u64;

    /// Scalar registers by operand code, at least up to m0 (125).
    fn scalar(&self) -> &[u32];

    /// A lane of a vector register.
    fn vector(&self, register: u8, lane: u32) -> u32;

    /// Runs the instruction several times with different values in the undefined bits, and restores everything.
    /// Results that differ are undefined. A result that never differs counts as defined, so a rare error means a
    /// missed finding, not a false alarm. `None` if the instruction cannot be run this way.
    fn vary(&mut self, undefined: &[Undefined], written: &[Registers]) -> Option<Outcome>;
}
