//! How a matmul takes its activations: the modes of MATMUL in `docs/arithmetic.md`.
//!
//! Contract: names and sizes; what a mode computes is the executor's.

use crate::gguf::TensorKind;
use zrt_protocol::quantised_row_bytes;

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

    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Activations> {
        Activations::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether a matmul with weights of this type takes its activations as integers.
    pub const fn apply_to(self, kind: TensorKind) -> bool {
        kind.has_integers() && !matches!(self, Activations::F32)
    }

    /// Bytes of an integer; 0 where there are none.
    pub const fn integer_bytes(self) -> u32 {
        match self {
            Activations::F32 => 0,
            Activations::A8 => 1,
            Activations::A16 => 2,
        }
    }

    /// Words of 4 bytes of a row of `columns` activations: f32, or a quantised row (`docs/kernels.md`).
    pub const fn row_words(self, columns: u32) -> u32 {
        match self {
            Activations::F32 => columns,
            Activations::A8 | Activations::A16 => quantised_row_bytes(columns, self.integer_bytes()) / 4,
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
