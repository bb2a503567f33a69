//! How a matmul takes its activations: the modes of MATMUL in `docs/arithmetic.md`.
//!
//! Contract: names and sizes; what a mode computes is the executor's.

use crate::gguf::TensorKind;
use zrt_protocol::quantised_row_bytes;

/// Activation mode of matmuls. The integer modes change those with integer weights, [`Activations::F16`] those with
/// weights in F16 and BF16; others use the activations unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activations {
    /// As computed.
    F32,
    /// Blocks of 32 integers of at most 127 with a common factor.
    A8,
    /// Blocks of 32 integers of at most 32512 with a common factor: two signed bytes each. The default: as close to
    /// [`Activations::F32`] as sums in another order are, at the speed of integers (decision 35).
    #[default]
    A16,
    /// Rounded to the type of the weights, for matrix instructions of 16-bit floats, in steps of
    /// [`TILED_ROWS_MIN`](zrt_protocol::TILED_ROWS_MIN) rows or more. The bits are the chip's own and may depend on the
    /// rows of a step.
    F16,
}

impl Activations {
    /// Every mode.
    pub const ALL: [Activations; 4] = [Activations::F32, Activations::A8, Activations::A16, Activations::F16];

    /// Modes whose results `docs/arithmetic.md` defines to the bit, whatever the weights and the rows of a step.
    pub const DEFINED: [Activations; 3] = [Activations::F32, Activations::A8, Activations::A16];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Activations::F32 => "f32",
            Activations::A8 => "a8",
            Activations::A16 => "a16",
            Activations::F16 => "f16",
        }
    }

    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Activations> {
        Activations::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether a matmul with weights of this type takes its activations as integers.
    pub const fn apply_to(self, kind: TensorKind) -> bool {
        kind.has_integers() && self.integer_bytes() > 0
    }

    /// The mode of a matmul with weights of this type that does not take its activations as integers.
    pub const fn of_floats(self, kind: TensorKind) -> Activations {
        match (self, kind) {
            (Activations::F16, TensorKind::F16 | TensorKind::BF16) => Activations::F16,
            _ => Activations::F32,
        }
    }

    /// Bytes of an integer; 0 where there are none.
    pub const fn integer_bytes(self) -> u32 {
        match self {
            Activations::F32 | Activations::F16 => 0,
            Activations::A8 => 1,
            Activations::A16 => 2,
        }
    }

    /// Words of 4 bytes of a row of `columns` activations: f32, or a quantised row (`docs/kernels.md`).
    pub const fn row_words(self, columns: u32) -> u32 {
        match self {
            Activations::F32 | Activations::F16 => columns,
            Activations::A8 | Activations::A16 => quantised_row_bytes(columns, self.integer_bytes()) / 4,
        }
    }

    /// The largest integer of a block; `None` if the mode has no integers.
    pub const fn integer_max(self) -> Option<i32> {
        match self {
            Activations::F32 | Activations::F16 => None,
            Activations::A8 => Some(127),
            // 127 · 256: the low byte is signed too.
            Activations::A16 => Some(127 * 256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Activations::{A8, A16, F16, F32};

    /// FP8 has scales, but its elements are floats.
    #[test]
    fn modes_of_integers_apply_to_weights_of_integers_only() {
        for (mode, applies) in [(F32, false), (F16, false), (A8, true), (A16, true)] {
            for kind in [TensorKind::Q8_0, TensorKind::Q4_K, TensorKind::MXFP4] {
                assert_eq!(mode.apply_to(kind), applies, "{mode:?}, {kind}");
            }
            for kind in [TensorKind::F32, TensorKind::F16, TensorKind::BF16, TensorKind::FP8] {
                assert!(!mode.apply_to(kind), "{mode:?}, {kind}");
            }
        }
    }

    /// Rounding is asked for of weights of 16 bits only; other floats are used as they are, whatever the mode.
    #[test]
    fn floats_are_rounded_to_the_weights_type_where_that_has_16_bits() {
        for mode in Activations::ALL {
            for kind in [TensorKind::F16, TensorKind::BF16] {
                let wanted = if mode == F16 { F16 } else { F32 };
                assert_eq!(mode.of_floats(kind), wanted, "{mode:?}, {kind}");
            }
            for kind in [TensorKind::F32, TensorKind::FP8, TensorKind::Q4_0] {
                assert_eq!(mode.of_floats(kind), F32, "{mode:?}, {kind}");
            }
        }
    }

    #[test]
    fn names_are_those_of_command_lines_and_are_read_back() {
        assert_eq!(Activations::ALL.map(Activations::name), ["f32", "a8", "a16", "f16"]);
        assert_eq!(
            Activations::ALL.map(|mode| Activations::parse(mode.name())),
            [F32, A8, A16, F16].map(Some)
        );
        assert_eq!(Activations::parse("A8"), None);
    }
}
