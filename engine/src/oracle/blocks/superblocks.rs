//! Types with blocks of 256 columns, eight of ours each, called parts.
//!
//! Contract: as the parent's. Layouts: ggml-common.h, `block_q4_K` and the others.

use super::block::{Block, Scale, half_at, nibble};
use super::simple::IQ4_VALUES;

/// d, dmin (f16), 12 bytes of 6-bit scales and minima, 128 bytes of nibbles: parts 2j and 2j + 1 are the low and high
/// nibbles of bytes 32j..32j + 32.
pub(super) fn q4_k(stored: &[u8], part: usize) -> Block {
    let nibbles = &stored[16 + part / 2 * 32..][..32];
    let integers = std::array::from_fn(|column| i32::from(nibbles[column] >> (part % 2 * 4) & 15));
    Block { integers, scale: scale_and_minimum(stored, part) }
}

/// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit `part` of byte j belongs to element j of the part.
pub(super) fn q5_k(stored: &[u8], part: usize) -> Block {
    let (fifths, nibbles) = (&stored[16..48], &stored[48 + part / 2 * 32..][..32]);
    let integers = std::array::from_fn(|column| {
        let low = nibbles[column] >> (part % 2 * 4) & 15;
        i32::from(low | (fifths[column] >> part & 1) << 4)
    });
    Block { integers, scale: scale_and_minimum(stored, part) }
}

/// Of Q4_K and Q5_K: d, dmin and 12 bytes at the beginning.
fn scale_and_minimum(stored: &[u8], part: usize) -> Scale {
    let packed = &stored[4..16];
    let (factor, offset) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        (
            (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4,
            (packed[part + 4] >> 4) | (packed[part] >> 6) << 4,
        )
    };
    Scale::WithMinimum(half_at(stored, 0) * f32::from(factor), half_at(stored, 2) * f32::from(offset))
}

/// 128 bytes of low nibbles, 64 bytes of 2-bit high parts, 16 int8 scales, d (f16). Each half of 128 elements has four
/// runs of 32: low nibbles of 64 bytes, then their high nibbles; run r takes bits 2r of the half's 32 high bytes. 32 is
/// zero.
pub(super) fn q6_k(stored: &[u8], part: usize) -> Block {
    let (half, run) = (part / 4, part % 4);
    let low = &stored[half * 64 + run % 2 * 32..][..32];
    let high = &stored[128 + half * 32..][..32];
    let scales = &stored[192 + half * 8 + run * 2..][..2];
    let integers = std::array::from_fn(|column| {
        let nibble = low[column] >> (run / 2 * 4) & 15;
        i32::from(nibble | (high[column] >> (run * 2) & 3) << 4) - 32
    });
    let factors = [i32::from(scales[0] as i8), i32::from(scales[1] as i8)];
    Block { integers, scale: Scale::Halves(half_at(stored, 208), factors) }
}

/// 16 bytes of scales (low nibble) and minima (high nibble) of 16 elements each, 64 bytes of 2-bit values, d, dmin
/// (f16). Each half of 128 elements has four runs of 32: bits 2r and up of the half's 32 bytes.
pub(super) fn q2_k(stored: &[u8], part: usize) -> Block {
    let (half, run) = (part / 4, part % 4);
    let values = &stored[16 + half * 32..][..32];
    let scales = &stored[part * 2..][..2];
    let integers = std::array::from_fn(|column| i32::from(values[column] >> (run * 2) & 3));
    let of_halves = |shift: u32| [0, 1].map(|half: usize| i32::from(scales[half] >> shift & 15));
    let scale = Scale::HalvesWithMinima(half_at(stored, 80), of_halves(0), half_at(stored, 82), of_halves(4));
    Block { integers, scale }
}

/// 32 bytes of third bits, 64 bytes of 2-bit values as those of Q2_K, 12 bytes of 6-bit scales, d (f16). Third bit
/// `part` of byte j belongs to element j of the part. 4 is zero, of the scales 32.
pub(super) fn q3_k(stored: &[u8], part: usize) -> Block {
    let (half, run) = (part / 4, part % 4);
    let (thirds, values) = (&stored[..32], &stored[32 + half * 32..][..32]);
    let integers = std::array::from_fn(|column| {
        let low = values[column] >> (run * 2) & 3;
        i32::from(low | (thirds[column] >> part & 1) << 2) - 4
    });
    // Low nibbles of scales 0..8, then in the high nibbles 8..16; the upper two bits are in the last four bytes.
    let packed = &stored[96..108];
    let scale = |number: usize| {
        let low = packed[number % 8] >> (number / 8 * 4) & 15;
        let high = packed[8 + number % 4] >> (number / 4 * 2) & 3;
        i32::from(low | high << 4) - 32
    };
    Block { integers, scale: Scale::Halves(half_at(stored, 108), [scale(2 * part), scale(2 * part + 1)]) }
}

/// d (f16), 2 bytes of the upper two bits of the scales, 4 bytes of their low nibbles, 128 bytes of nibbles that number
/// values. 32 is zero of the scales.
pub(super) fn iq4_xs(stored: &[u8], part: usize) -> Block {
    let value = |column| i32::from(IQ4_VALUES[usize::from(nibble(&stored[8 + part * 16..], column))]);
    let high = u16::from_le_bytes([stored[2], stored[3]]) >> (2 * part) & 3;
    let low = stored[4 + part / 2] >> (part % 2 * 4) & 15;
    let factor = f32::from(low) + 16.0 * f32::from(high) - 32.0;
    Block { integers: std::array::from_fn(value), scale: Scale::One(half_at(stored, 0) * factor) }
}
