//! GGUF blocks → f32 weights, straight from the file's layout.
//!
//! Contract: independent of the device's weight layout and of the kernels; element values are those of the table in
//! `docs/arithmetic.md`. The caller has checked that the bytes are whole blocks.

use super::blocks::{IntegerWeights, e4m3};
use crate::gguf::TensorKind;
use half::{bf16, f16};

/// All elements of `bytes`, or `None` for a type without a kernel.
pub fn dequantise(kind: TensorKind, bytes: &[u8]) -> Option<Vec<f32>> {
    match kind {
        TensorKind::F32 => Some(words::<4>(bytes).map(f32::from_le_bytes).collect()),
        TensorKind::F16 => Some(words::<2>(bytes).map(|word| f16::from_le_bytes(word).to_f32()).collect()),
        TensorKind::BF16 => Some(words::<2>(bytes).map(|word| bf16::from_le_bytes(word).to_f32()).collect()),
        TensorKind::FP8 => Some(e4m3::weights(bytes)),
        _ => integers(kind, bytes),
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

fn integers(kind: TensorKind, bytes: &[u8]) -> Option<Vec<f32>> {
    let weights = IntegerWeights::new(kind, bytes.to_vec())?;
    Some((0..weights.count()).flat_map(|index| weights.block(index).weights()).collect())
}
