//! Weights of integer types as stored: small integers and their scales.
//!
//! Contract: straight from the file's layout, 32 columns at a time, independent of the device's weight layout and of the
//! kernels. The caller has checked that a row's bytes are whole blocks of the file.

mod codebooks;
mod simple;
mod superblocks;

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
    /// `(d·sc) · q - dmin·m`, with a scale and a minimum for each half: d, sc, dmin, m.
    HalvesWithMinima(f32, [i32; 2], f32, [i32; 2]),
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
            TensorKind::Q8_0 => simple::q8_0,
            TensorKind::Q4_0 => simple::q4_0,
            TensorKind::Q4_1 => simple::q4_1,
            TensorKind::Q5_0 => simple::q5_0,
            TensorKind::Q5_1 => simple::q5_1,
            TensorKind::IQ4_NL => simple::iq4_nl,
            TensorKind::MXFP4 => simple::mxfp4,
            TensorKind::Q2_K => superblocks::q2_k,
            TensorKind::Q3_K => superblocks::q3_k,
            TensorKind::Q4_K => superblocks::q4_k,
            TensorKind::Q5_K => superblocks::q5_k,
            TensorKind::Q6_K => superblocks::q6_k,
            TensorKind::IQ4_XS => superblocks::iq4_xs,
            TensorKind::IQ2_XXS => codebooks::iq2_xxs,
            TensorKind::IQ2_XS => codebooks::iq2_xs,
            TensorKind::IQ2_S => codebooks::iq2_s,
            TensorKind::IQ3_XXS => codebooks::iq3_xxs,
            TensorKind::IQ3_S => codebooks::iq3_s,
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

fn half_at(stored: &[u8], offset: usize) -> f32 {
    f16::from_le_bytes([stored[offset], stored[offset + 1]]).to_f32()
}

fn word_at(stored: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| stored[offset + byte]))
}

/// Element j in the low nibble of byte j, element j + 16 in the high one.
fn nibble(packed: &[u8], column: usize) -> u8 {
    packed[column % 16] >> (column / 16 * 4) & 15
}
