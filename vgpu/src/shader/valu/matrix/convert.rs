//! Elements of matrices as f32, and back.

use super::shape::Element;
use crate::shader::float::{bf8_to_single, fp8_to_single, half_to_single};

/// Canonical quiet NaN of bfloat16.
const BFLOAT_NAN: u32 = 0x7FC0;

/// f32 of an element; exact. What lies above the bits of a float does not count.
#[inline(always)]
pub(in crate::shader::valu) fn widen(element: Element, bits: u32) -> u32 {
    match element {
        Element::F16 => half_to_single(bits),
        Element::Bf16 => bits << 16,
        Element::Fp8 => fp8_to_single(bits),
        Element::Bf8 => bf8_to_single(bits),
        Element::Byte | Element::Nibble => (bits as f32).to_bits(),
    }
}

/// bfloat16 of an f32, to nearest even.
#[inline(always)]
pub(in crate::shader::valu) fn single_to_bfloat(bits: u32) -> u32 {
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { BFLOAT_NAN } else { (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloats_are_the_nearest_with_ties_to_even() {
        for (single, bfloat) in [
            (0x3F80_0000, 0x3F80),
            (0x3F80_7FFF, 0x3F80),
            // Halfway, above an even one and above an odd one.
            (0x3F80_8000, 0x3F80),
            (0x3F81_8000, 0x3F82),
            (0x3F80_8001, 0x3F81),
            (0x3FFF_8000, 0x4000),
            (0x0000_8000, 0x0000),
            (0x0000_8001, 0x0001),
            (0x7F7F_7FFF, 0x7F7F),
            (0x7F7F_8000, 0x7F80),
            (0x7F80_0000, 0x7F80),
        ] {
            assert_eq!(single_to_bfloat(single), bfloat, "{single:#x}");
            assert_eq!(single_to_bfloat(single | 1 << 31), bfloat | 1 << 15, "-{single:#x}");
        }
        for nan in [0x7F80_0001, 0x7FFF_FFFF, 0xFF80_0001, 0xFFC0_0000] {
            assert_eq!(single_to_bfloat(nan), 0x7FC0, "{nan:#x}");
        }
    }
}
