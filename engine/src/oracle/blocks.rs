//! Weights of integer types as stored: small integers and their scales.
//!
//! Contract: straight from the file's layout, 32 columns at a time, independent of the device's weight layout and of the
//! kernels. The caller has checked that a row's bytes are whole blocks of the file.

use crate::gguf::TensorKind;
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
    /// `(d·sc) · q - dmin·m`: the two products.
    WithMinimum(f32, f32),
    /// `(d · sc) · q`, with a scale for each half of the block.
    Halves(f32, [i32; 2]),
}

/// A tensor of an integer type.
pub struct IntegerWeights {
    /// Unpacks block `part` of a block of the file.
    unpack: fn(&[u8], usize) -> Block,
    kind: TensorKind,
    bytes: Vec<u8>,
}

impl IntegerWeights {
    /// A tensor from these bytes; `None` if the type is not an integer type.
    pub fn new(kind: TensorKind, bytes: Vec<u8>) -> Option<IntegerWeights> {
        let unpack = match kind {
            TensorKind::Q8_0 => q8_0,
            TensorKind::Q4_0 => q4_0,
            TensorKind::Q4_K => q4_k,
            TensorKind::Q6_K => q6_k,
            _ => return None,
        };
        Some(IntegerWeights { unpack, kind, bytes })
    }

    /// Blocks of all rows together.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.kind.block_bytes() as usize * self.parts()
    }

    /// Block `index` from the beginning of the tensor.
    pub fn block(&self, index: usize) -> Block {
        let bytes = self.kind.block_bytes() as usize;
        (self.unpack)(&self.bytes[index / self.parts() * bytes..][..bytes], index % self.parts())
    }

    /// Number of our blocks in one block of the file.
    fn parts(&self) -> usize {
        self.kind.block_elements() as usize / COLUMNS
    }
}

impl Block {
    /// The weights, in f32.
    pub fn weights(&self) -> [f32; COLUMNS] {
        std::array::from_fn(|column| {
            let integer = self.integers[column] as f32;
            match self.scale {
                Scale::One(scale) => scale * integer,
                Scale::WithMinimum(scale, minimum) => scale.mul_add(integer, -minimum),
                Scale::Halves(scale, factors) => (scale * factors[column / (COLUMNS / 2)] as f32) * integer,
            }
        })
    }
}

fn half_at(stored: &[u8], offset: usize) -> f32 {
    f16::from_le_bytes([stored[offset], stored[offset + 1]]).to_f32()
}

/// d (f16), 32 × int8.
fn q8_0(stored: &[u8], _: usize) -> Block {
    let integers = std::array::from_fn(|column| i32::from(stored[2 + column] as i8));
    Block { integers, scale: Scale::One(half_at(stored, 0)) }
}

/// d (f16), 16 bytes: element j in the low nibble of byte j, element j + 16 in the high one; 8 is zero.
fn q4_0(stored: &[u8], _: usize) -> Block {
    let nibble = |column: usize| stored[2 + column % 16] >> (column / 16 * 4) & 15;
    let integers = std::array::from_fn(|column| i32::from(nibble(column)) - 8);
    Block { integers, scale: Scale::One(half_at(stored, 0)) }
}

/// d, dmin (f16), 12 bytes of 6-bit scales and minima, 128 bytes of nibbles: parts 2j and 2j + 1 are the low and high
/// nibbles of bytes 32j..32j + 32.
fn q4_k(stored: &[u8], part: usize) -> Block {
    let packed = &stored[4..16];
    let (factor, offset) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        (
            (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4,
            (packed[part + 4] >> 4) | (packed[part] >> 6) << 4,
        )
    };
    let nibbles = &stored[16 + part / 2 * 32..][..32];
    let integers = std::array::from_fn(|column| i32::from(nibbles[column] >> (part % 2 * 4) & 15));
    let (scale, minimum) = (half_at(stored, 0) * f32::from(factor), half_at(stored, 2) * f32::from(offset));
    Block { integers, scale: Scale::WithMinimum(scale, minimum) }
}

/// 128 bytes of low nibbles, 64 bytes of 2-bit high parts, 16 int8 scales, d (f16). Each half of 128 elements has four
/// runs of 32: low nibbles of 64 bytes, then their high nibbles; run r takes bits 2r of the half's 32 high bytes. 32 is
/// zero.
fn q6_k(stored: &[u8], part: usize) -> Block {
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
