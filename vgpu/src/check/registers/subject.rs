//! What the register rules ask of the wave that they judge.
//!
//! Contract: the rules stay apart from whoever executes instructions; this is all that they need of it.

use zrt_isa::effects::Registers;

/// Lanes of the widest wave.
pub const LANES_MAX: usize = 64;

/// What of one register is undefined.
#[derive(Clone, Debug)]
pub struct Undefined {
    /// Its number in the effects table.
    pub register: usize,
    /// The undefined bits, by lane; of a scalar register and the condition code in the first.
    pub bits: [u32; LANES_MAX],
}

/// What becomes of undefined bits in one instruction.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of the registers that it writes, all of them in order.
    pub results: Vec<Undefined>,
    /// EXEC or the way on depends on them.
    pub steers: bool,
}

/// The wave as it is before the instruction at hand.
pub trait Subject {
    /// EXEC; bits beyond the wave are ignored.
    fn exec(&self) -> u64;

    /// Scalar registers by operand code, at least up to m0 (125).
    fn scalar(&self) -> &[u32];

    /// A lane of a vector register.
    fn vector(&self, register: u8, lane: u32) -> u32;

    /// Runs the instruction several times with other values in the undefined bits, and leaves everything as it was: what
    /// differs among the results is undefined. What never differs counts as defined, so a rare mistake is a miss and no
    /// false alarm. `None` where the instruction cannot be run so.
    fn vary(&mut self, undefined: &[Undefined], written: &[Registers]) -> Option<Outcome>;
}
