//! Types with blocks of 32 columns.
//!
//! Contract: as the parent's. Layouts: ggml-common.h, `block_q4_0` and the others.

use super::block::{Block, COLUMNS, Scale, half_at, nibble, word_at};

/// The values of IQ4_NL and IQ4_XS (ggml-common.h, `kvalues_iq4nl`).
pub(super) const IQ4_VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// Twice the values of E2M1 (OCP Microscaling Formats 1.0, E2M1).
const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// d (f16), 32 × int8.
pub(super) fn q8_0(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| i32::from(stored[2 + column] as i8));
    Block { integers, scale: Scale::One(half_at(stored, 0)) }
}

/// d (f32), 32 × int8.
pub(super) fn int8(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| i32::from(stored[4 + column] as i8));
    Block { integers, scale: Scale::One(f32::from_bits(word_at(stored, 0))) }
}

/// d (f16), 16 bytes: element j in the low nibble of byte j, element j + 16 in the high one; 8 is zero.
pub(super) fn q4_0(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| i32::from(nibble(&stored[2..], column)) - 8);
    Block { integers, scale: Scale::One(half_at(stored, 0)) }
}

/// d, m (f16), 16 bytes of nibbles: `d · q + m`.
pub(super) fn q4_1(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| i32::from(nibble(&stored[4..], column)));
    Block { integers, scale: Scale::WithMinimum(half_at(stored, 0), -half_at(stored, 2)) }
}

/// The value whose low bits are a nibble of `packed` and whose fifth bit is bit `column` of `fifths`.
fn five_bits(packed: &[u8], fifths: u32, column: usize) -> i32 {
    i32::from(nibble(packed, column)) + (fifths >> column & 1) as i32 * 16
}

/// d (f16), 32 fifth bits, 16 bytes of nibbles; 16 is zero.
pub(super) fn q5_0(stored: &[u8], _: usize) -> Block {
    let integers: [i32; COLUMNS] =
        std::array::from_fn(|column| five_bits(&stored[6..], word_at(stored, 2), column) - 16);
    Block { integers, scale: Scale::One(half_at(stored, 0)) }
}

/// d, m (f16), 32 fifth bits, 16 bytes of nibbles: `d · q + m`.
pub(super) fn q5_1(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| five_bits(&stored[8..], word_at(stored, 4), column));
    Block { integers, scale: Scale::WithMinimum(half_at(stored, 0), -half_at(stored, 2)) }
}

/// d (f16), 16 bytes of nibbles that number values.
pub(super) fn iq4_nl(stored: &[u8], _: usize) -> Block {
    let value = |column| i32::from(IQ4_VALUES[usize::from(nibble(&stored[2..], column))]);
    Block { integers: std::array::from_fn(value), scale: Scale::One(half_at(stored, 0)) }
}

/// e (E8M0), 16 bytes of nibbles of E2M1. The integers are doubled, so the scale is half of `2^(e - 127)`.
pub(super) fn mxfp4(stored: &[u8], _: usize) -> Block {
    let value = |column| i32::from(E2M1_DOUBLED[usize::from(nibble(&stored[1..], column))]);
    // The two smallest are denormal.
    let scale = match u32::from(stored[0]) {
        0 => f32::from_bits(1 << 21),
        1 => f32::from_bits(1 << 22),
        exponent => f32::from_bits((exponent - 1) << 23),
    };
    Block { integers: std::array::from_fn(value), scale: Scale::One(scale) }
}
