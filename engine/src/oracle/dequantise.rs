//! GGUF blocks → f32 weights, straight from the file's layout.
//!
//! Contract: independent of the device's weight layout and of the kernels; element values are those of the table in
//! `docs/arithmetic.md`. The caller has checked that the bytes are whole blocks.

use crate::gguf::TensorKind;
use half::{bf16, f16};

/// All elements of `bytes`, or `None` for a type without a kernel.
pub fn dequantise(kind: TensorKind, bytes: &[u8]) -> Option<Vec<f32>> {
    let values = match kind {
        TensorKind::F32 => words::<4>(bytes).map(f32::from_le_bytes).collect(),
        TensorKind::F16 => words::<2>(bytes).map(|word| f16::from_le_bytes(word).to_f32()).collect(),
        TensorKind::BF16 => words::<2>(bytes).map(|word| bf16::from_le_bytes(word).to_f32()).collect(),
        TensorKind::Q8_0 => blocks(bytes, 34, q8_0),
        TensorKind::Q4_0 => blocks(bytes, 18, q4_0),
        TensorKind::Q4_K => blocks(bytes, 144, q4_k),
        TensorKind::Q6_K => blocks(bytes, 210, q6_k),
        _ => return None,
    };
    Some(values)
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

fn blocks(bytes: &[u8], block_bytes: usize, decode: fn(&[u8], &mut Vec<f32>)) -> Vec<f32> {
    let mut values = Vec::new();
    for block in bytes.chunks_exact(block_bytes) {
        decode(block, &mut values);
    }
    values
}

fn half_at(block: &[u8], offset: usize) -> f32 {
    f16::from_le_bytes([block[offset], block[offset + 1]]).to_f32()
}

/// d (f16), 32 × int8.
fn q8_0(block: &[u8], values: &mut Vec<f32>) {
    let scale = half_at(block, 0);
    values.extend(block[2..34].iter().map(|quant| scale * f32::from(*quant as i8)));
}

/// d (f16), 16 bytes: element j in the low nibble of byte j, element j + 16 in the high one.
fn q4_0(block: &[u8], values: &mut Vec<f32>) {
    let scale = half_at(block, 0);
    let weight = |quant: u8| scale * (f32::from(quant) - 8.0);
    values.extend(block[2..18].iter().map(|byte| weight(byte & 15)));
    values.extend(block[2..18].iter().map(|byte| weight(byte >> 4)));
}

/// d, dmin (f16), 12 bytes of 6-bit scales and minima, 128 bytes of nibbles: sub-blocks 2j and 2j + 1 are the low and
/// high nibbles of bytes 32j..32j + 32.
fn q4_k(block: &[u8], values: &mut Vec<f32>) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    let packed = &block[4..16];
    for sub_block in 0..8 {
        let (factor, offset) = if sub_block < 4 {
            (packed[sub_block] & 63, packed[sub_block + 4] & 63)
        } else {
            (
                (packed[sub_block + 4] & 15) | (packed[sub_block - 4] >> 6) << 4,
                (packed[sub_block + 4] >> 4) | (packed[sub_block] >> 6) << 4,
            )
        };
        let (factor, offset) = (scale * f32::from(factor), minimum * f32::from(offset));
        let quants = &block[16 + sub_block / 2 * 32..][..32];
        let shift = (sub_block % 2) * 4;
        values.extend(quants.iter().map(|byte| factor.mul_add(f32::from((byte >> shift) & 15), -offset)));
    }
}

/// 128 bytes of low nibbles, 64 bytes of 2-bit high parts, 16 int8 scales, d (f16). Each half of 128 elements has
/// four runs of 32: low nibbles of 64 bytes, then their high nibbles; run r takes bits 2r of the half's 32 high bytes.
fn q6_k(block: &[u8], values: &mut Vec<f32>) {
    let scale = half_at(block, 208);
    for half in 0..2 {
        let low = &block[half * 64..][..64];
        let high = &block[128 + half * 32..][..32];
        let scales = &block[192 + half * 8..][..8];
        for run in 0..4 {
            for column in 0..32 {
                let nibble = (low[(run % 2) * 32 + column] >> (run / 2 * 4)) & 15;
                let quant = nibble | ((high[column] >> (run * 2)) & 3) << 4;
                let factor = scale * f32::from(scales[run * 2 + column / 16] as i8);
                values.push(factor * (f32::from(quant) - 32.0));
            }
        }
    }
}
