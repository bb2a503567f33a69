//! Elements of matrices as f32, and back.

use super::shape::Element;
use crate::shader::float::{bf8_to_single, fp8_to_single, half_to_single};

/// Canonical quiet NaN of bfloat16.
const BFLOAT_NAN: u32 = 0x7FC0;

/// f32 of an element; exact.
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
