//! Weights of integer types as stored: small integers and their scales.
//!
//! Contract: straight from the file's layout, 32 columns at a time, independent of the device's weight layout and of
//! the kernels. The caller has checked that a row's bytes are whole blocks of the file.

mod block;
mod codebooks;
pub mod e4m3;
mod simple;
mod superblocks;

pub use block::{Block, COLUMNS, Scale};

use crate::gguf::TensorKind;

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
            TensorKind::INT8 => simple::int8,
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

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// Blocks whose byte i is 7i² + 73i + 41, with d = 0.5 and a second scale of 0.375, through
    /// `gguf.quants.dequantize` of the Python package gguf 0.19.0: the sum of (k + 1) · w_k, and weights 0, 1, 15, 16,
    /// 31, the middle one, the last but one and the last.
    const REFERENCE: [(TensorKind, f64, [f32; 8]); 18] = [
        (TensorKind::Q8_0, 3376.0, [-20.5, 33.5, -11.5, 19.5, 44.5, 19.5, 36.5, 44.5]),
        (TensorKind::Q4_0, 265.0, [-0.5, -2.5, 0.5, 2.5, 3.0, 2.5, 1.5, 3.0]),
        (TensorKind::Q4_1, 2393.5, [6.875, 2.875, 1.875, 5.875, 3.875, 5.875, 1.375, 3.875]),
        (TensorKind::Q5_0, 96.0, [5.5, 7.5, -5.5, 6.5, -6.5, 6.5, 6.0, -6.5]),
        (TensorKind::Q5_1, 5412.5, [8.875, 0.875, 7.875, 9.875, 1.375, 9.875, 13.375, 1.375]),
        (TensorKind::Q2_K, 90938.5, [3.75, 3.75, 12.75, 1.875, 10.875, -0.625, 7.125, 0.125]),
        (TensorKind::Q3_K, -36815.0, [-3.5, -3.5, -10.5, -3.5, -10.5, 12.0, -9.0, -18.0]),
        (TensorKind::Q4_K, 4079472.0, [256.125, 256.125, 195.125, 256.125, 195.125, 163.5, -15.375, -3.875]),
        (TensorKind::Q5_K, 9464192.0, [744.125, 744.125, 683.125, 744.125, 683.125, 459.5, 99.625, 249.125]),
        (TensorKind::Q6_K, 2605764.0, [80.5, 80.5, -264.5, 248.5, -816.5, 52.5, 266.5, 533.0]),
        (TensorKind::IQ4_NL, 4226.0, [-5.0, -32.5, 6.5, 34.5, 44.5, 34.5, 19.0, 44.5]),
        (TensorKind::IQ4_XS, 1022873.0, [-1508.0, -1508.0, 1638.5, -942.5, -1203.5, -1404.0, 157.5, -508.5]),
        // In units of 2^(41 - 128), by the block's first byte.
        (TensorKind::MXFP4, 228.0, [-1.0, 12.0, -1.0, 12.0, -3.0, 12.0, -1.0, -3.0]),
        (TensorKind::IQ2_XXS, -89535.9375, [-15.5, -48.4375, -15.5, -15.5, 15.5, -42.1875, -10.9375, 3.5]),
        (TensorKind::IQ2_XS, 80.0625, [-7.5, 7.5, 40.3125, -8.0625, 4.6875, -35.9375, 35.9375, -35.9375]),
        (TensorKind::IQ2_S, -122340.375, [-83.3125, -83.3125, -15.5, -15.5, 15.5, -18.8125, 10.5, 32.8125]),
        (TensorKind::IQ3_XXS, -79089.5, [-1.5, -3.5, 1.5, 4.5, -7.75, -240.25, -23.25, -1.5]),
        (TensorKind::IQ3_S, -30297.0, [-139.5, -108.5, 15.5, -46.5, 77.5, -27.5, 10.5, -10.5]),
    ];

    #[test]
    fn weights_are_those_of_a_public_reader() {
        for (kind, sum, some) in REFERENCE {
            let mut bytes: Vec<u8> =
                (0..kind.block_bytes()).map(|i| (i * i * 7 + i * 73 + 41) as u8).collect();
            let (scales, unit): (&[usize], f32) = match kind {
                TensorKind::MXFP4 => (&[], 2f32.powi(41 - 128)),
                TensorKind::Q4_1 | TensorKind::Q5_1 | TensorKind::Q4_K | TensorKind::Q5_K => (&[0, 2], 1.0),
                TensorKind::Q2_K => (&[80, 82], 1.0),
                TensorKind::Q3_K => (&[108], 1.0),
                TensorKind::Q6_K => (&[208], 1.0),
                _ => (&[0], 1.0),
            };
            for (offset, scale) in scales.iter().zip([0.5, 0.375]) {
                bytes[*offset..offset + 2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
            }
            let weights = IntegerWeights::new(kind, bytes).expect("an integer type");
            let weights: Vec<f32> =
                (0..weights.count()).flat_map(|block| weights.block(block).weights()).collect();
            let last = weights.len() - 1;
            let found = [0, 1, 15, 16, 31, weights.len() / 2, last - 1, last].map(|at| weights[at] / unit);
            let products =
                weights.iter().enumerate().map(|(at, weight)| (at + 1) as f64 * f64::from(weight / unit));
            assert_eq!((products.sum::<f64>(), found), (sum, some), "{kind}");
        }
    }

    /// The integers of codes 0 to 15, and back, behind a scale of so many bytes.
    fn integers_of_codes(kind: TensorKind, scale: &[u8]) -> [i32; 32] {
        let codes = (0..16u8).map(|code| code | (15 - code) << 4);
        let bytes = scale.iter().copied().chain(codes).collect();
        IntegerWeights::new(kind, bytes).expect("an integer type").block(0).integers
    }

    /// E2M1 has a sign, two bits of exponent with a bias of 1, and a bit of fraction (OCP Microscaling Formats 1.0).
    #[test]
    fn codes_of_mxfp4_are_twice_the_numbers_of_e2m1() {
        let integers = integers_of_codes(TensorKind::MXFP4, &[127]);
        for code in 0..16usize {
            let (exponent, fraction) = (code as i32 >> 1 & 3, f64::from(code as i32 & 1) / 2.0);
            let magnitude = match exponent {
                0 => fraction,
                _ => 2f64.powi(exponent - 1) * (1.0 + fraction),
            };
            let number = if code < 8 { magnitude } else { -magnitude };
            assert_eq!([integers[code], integers[31 - code]].map(f64::from), [2.0 * number; 2], "{code}");
        }
    }

    /// They are quantiles: each is above the one before it, the eighth is the last below 0.
    #[test]
    fn codes_of_iq4_nl_ascend_through_zero() {
        let integers = integers_of_codes(TensorKind::IQ4_NL, &[0, 0]);
        assert!(integers[..16].is_sorted_by(|one, next| one < next), "{integers:?}");
        assert!(integers[7] < 0 && integers[8] > 0 && integers[16..].iter().rev().eq(&integers[..16]));
    }
}
