//! A block of 32 weights, and how files store its parts.

use half::f16;

/// Columns of a block.
pub const COLUMNS: usize = 32;

/// 32 consecutive columns of a weight row.
pub struct Block {
    /// The integers.
    pub integers: [i32; COLUMNS],
    /// What turns the integers into weights.
    pub scale: Scale,
}

/// What a block's integers are multiplied by. Products of two of these numbers are exact.
pub enum Scale {
    /// `d · q`.
    One(f32),
    /// `(d·sc) · q - dmin·m`: the two products; of types that store `d · q + m`, d and -m.
    WithMinimum(f32, f32),
    /// `(d · sc) · q`, with a scale for each half of the block.
    Halves(f32, [i32; 2]),
    /// `(d·sc) · q - dmin·m`, with a scale and a minimum for each half: d, sc, dmin, m.
    HalvesWithMinima(f32, [i32; 2], f32, [i32; 2]),
}

impl Block {
    /// The weights, in f32.
    pub fn weights(&self) -> [f32; COLUMNS] {
        std::array::from_fn(|column| {
            let (integer, half) = (self.integers[column] as f32, column / (COLUMNS / 2));
            match self.scale {
                Scale::One(scale) => scale * integer,
                Scale::WithMinimum(scale, minimum) => scale.mul_add(integer, -minimum),
                Scale::Halves(scale, factors) => (scale * factors[half] as f32) * integer,
                Scale::HalvesWithMinima(scale, factors, minimum, offsets) => {
                    let (scale, minimum) = (scale * factors[half] as f32, minimum * offsets[half] as f32);
                    scale.mul_add(integer, -minimum)
                }
            }
        })
    }
}

pub(super) fn half_at(stored: &[u8], offset: usize) -> f32 {
    f16::from_le_bytes([stored[offset], stored[offset + 1]]).to_f32()
}

pub(super) fn word_at(stored: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| stored[offset + byte]))
}

/// Element j in the low nibble of byte j, element j + 16 in the high one.
pub(super) fn nibble(packed: &[u8], column: usize) -> u8 {
    packed[column % 16] >> (column / 16 * 4) & 15
}
