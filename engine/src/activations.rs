//! How a matmul takes its activations: the modes of MATMUL in `docs/arithmetic.md`.
//!
//! Contract: names only; the executor computes a mode. The CPU oracle implements all of them, a device only
//! [`Activations::F32`].

/// Activation mode of a matmul with integer weights; other matmuls use the activations unchanged in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activations {
    /// As computed.
    #[default]
    F32,
    /// Blocks of 32 integers of at most 127 with a common factor.
    A8,
    /// Blocks of 32 integers of at most 32512 with a common factor: two signed bytes each.
    A16,
}

impl Activations {
    /// Every mode.
    pub const ALL: [Activations; 3] = [Activations::F32, Activations::A8, Activations::A16];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Activations::F32 => "f32",
            Activations::A8 => "a8",
            Activations::A16 => "a16",
        }
    }

    /// The largest integer of a block; `None` if the mode has no integers.
    pub const fn integer_max(self) -> Option<i32> {
        match self {
            Activations::F32 => None,
            Activations::A8 => Some(127),
            // 127 · 256: the low byte is signed too.
            Activations::A16 => Some(127 * 256),
        }
    }
}
