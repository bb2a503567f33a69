//! Floats of 8 bits: E4M3 of the OCP 8-bit floating point specification (revision 1.0, table 1).
//!
//! Contract: a sign, four bits of exponent with a bias of 7, three of fraction; exponent 0 is denormal. There are no
//! infinities. The two codes with all other bits set are NaN: the largest magnitude is 448.

use crate::gguf::TensorKind;

/// Bytes before the codes of a block: its scale.
const SCALE_BYTES: usize = 4;

/// What a code stands for; exact.
pub fn value(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction / 8.0 * 2f32.powi(-6),
        _ => (1.0 + fraction / 8.0) * 2f32.powi(exponent - 7),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Whether a code stands for no number.
pub const fn is_nan(code: u8) -> bool {
    code & 0x7f == 0x7f
}

/// The weights of whole blocks: `scale * value`, one rounding.
pub(in crate::oracle) fn weights(bytes: &[u8]) -> Vec<f32> {
    let blocks = bytes.chunks_exact(TensorKind::FP8.block_bytes() as usize);
    let of_block = |block: &[u8]| -> Vec<f32> {
        let (scale, codes) = block.split_at(SCALE_BYTES);
        let scale = f32::from_le_bytes(std::array::from_fn(|byte| scale[byte]));
        codes.iter().map(|code| scale * value(*code)).collect()
    };
    blocks.flat_map(of_block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: (-1)^s * 2^(e - 7) * (1 + m / 8), and (-1)^s * 2^-6 * m / 8 for e = 0, in steps of 2^-9,
    /// which every value is a whole number of.
    #[test]
    fn all_codes_have_the_value_of_the_definition() {
        for code in 0..=255u8 {
            let (sign, exponent, fraction) = (code / 128, code / 8 % 16, code % 8);
            let steps = match exponent {
                0 => u32::from(fraction),
                _ => (8 + u32::from(fraction)) << (exponent - 1),
            };
            let expected = f64::from(steps) / 512.0 * if sign == 1 { -1.0 } else { 1.0 };
            let found = value(code);
            if exponent == 15 && fraction == 7 {
                assert!(found.is_nan() && is_nan(code), "{code:#04x}");
            } else {
                let found = f64::from(found);
                assert_eq!((found, found.is_sign_negative()), (expected, sign == 1), "{code:#04x}");
                assert!(!is_nan(code));
            }
        }
    }

    /// Values that the specification lists by name.
    #[test]
    fn the_named_codes_are_those_of_the_specification() {
        let named =
            [(0x7e, 448.0), (0x08, 2f32.powi(-6)), (0x07, 0.875 * 2f32.powi(-6)), (0x01, 2f32.powi(-9))];
        for (code, expected) in named {
            assert_eq!((value(code), value(code | 0x80)), (expected, -expected));
        }
    }
}
