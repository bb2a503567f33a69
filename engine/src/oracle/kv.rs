//! What the key-value cache holds for a row, and what is read back: KV_WRITE of `docs/arithmetic.md`, with the layout
//! of `docs/kernels.md`.
//!
//! Contract: scalar code from the two pages alone. [`store`] returns a whole row with zero padding; [`load`] takes one.

use crate::kv_format::KvFormat;
use half::f16;

/// Elements of a Q8_0 block.
const BLOCK: usize = 32;

/// The bytes of a row.
pub fn store(format: KvFormat, row: &[f32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = match format {
        KvFormat::F32 => row.iter().flat_map(|x| x.to_le_bytes()).collect(),
        KvFormat::F16 => row.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        KvFormat::Q8_0 => {
            let mut factors = Vec::new();
            let mut bytes = Vec::new();
            for block in row.chunks(BLOCK) {
                let (quants, factor) = quantise(block);
                bytes.extend(quants.map(|q| q as u8));
                factors.extend(factor.to_le_bytes());
            }
            bytes.extend(factors);
            bytes
        }
    };
    bytes.resize(format.row_bytes(row.len() as u32) as usize, 0);
    bytes
}

/// The elements of a stored row.
pub fn load(format: KvFormat, bytes: &[u8], row_elements: usize) -> Vec<f32> {
    let half = |offset: usize| f16::from_le_bytes([bytes[offset], bytes[offset + 1]]).to_f32();
    match format {
        KvFormat::F32 => {
            bytes.as_chunks::<4>().0[..row_elements].iter().map(|word| f32::from_le_bytes(*word)).collect()
        }
        KvFormat::F16 => (0..row_elements).map(|element| half(2 * element)).collect(),
        KvFormat::Q8_0 => {
            let factors = row_elements.next_multiple_of(BLOCK);
            let value =
                |element: usize| half(factors + 2 * (element / BLOCK)) * f32::from(bytes[element] as i8);
            (0..row_elements).map(value).collect()
        }
    }
}

/// A block of at most 32 elements; missing ones count as 0.
fn quantise(block: &[f32]) -> ([i8; BLOCK], f16) {
    let largest = block.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let exact_factor = largest / 127.0;
    let factor = f16::from_f32(exact_factor);
    let mut quants = [0; BLOCK];
    if factor != f16::ZERO {
        let inverse = 1.0 / exact_factor;
        for (q, x) in quants.iter_mut().zip(block) {
            // Rust's `round` takes halves away from zero.
            *q = (x * inverse).round() as i8;
        }
    }
    (quants, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_with_largest_127_keeps_integers_and_rounds_halves_away() {
        // d = 1 exactly, so q is the rounded element.
        let mut row = vec![0f32; 40];
        row[..8].copy_from_slice(&[127.0, -3.0, 2.5, -2.5, 0.5, -0.5, 0.499_999_97, 3.499_999_8]);
        row[32..34].copy_from_slice(&[254.0, -1.0]);
        let bytes = store(KvFormat::Q8_0, &row);
        assert_eq!(bytes.len(), 80);
        let quants: Vec<i8> = bytes[..8].iter().map(|byte| *byte as i8).collect();
        assert_eq!(quants, [127, -3, 3, -3, 1, -1, 0, 3]);
        // Second block: d = 2, and -1 is a half. The elements that do not exist are 0.
        assert_eq!(bytes[32..34].iter().map(|byte| *byte as i8).collect::<Vec<_>>(), [127, -1]);
        assert!(bytes[34..64].iter().all(|byte| *byte == 0));
        // f16 1 and 2, then padding.
        assert_eq!(bytes[64..68], [0x00, 0x3C, 0x00, 0x40]);
        assert!(bytes[68..].iter().all(|byte| *byte == 0));
        let read = load(KvFormat::Q8_0, &bytes, 40);
        assert_eq!(read[..4], [127.0, -3.0, 3.0, -3.0]);
        assert_eq!(read[32..34], [254.0, -2.0]);
    }

    #[test]
    fn a_block_whose_factor_is_stored_as_zero_is_all_zero() {
        // 127 × 2^-25 gives d = 2^-25, half of f16's smallest number, which rounds to even: 0. Two steps more give
        // 2^-24.
        let limit = 127.0 * 2f32.powi(-25);
        assert!(store(KvFormat::Q8_0, &[limit, -limit]).iter().all(|byte| *byte == 0));
        let bytes = store(KvFormat::Q8_0, &[limit.next_up().next_up(), 0.0]);
        assert_eq!(bytes[0], 127);
        assert_eq!(bytes[32..34], [1, 0]);
        assert!(store(KvFormat::Q8_0, &[0.0, -0.0]).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn f16_rounds_to_even_and_f32_is_kept() {
        let row = [1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), -2f32.powi(-24), 0.1];
        let read = load(KvFormat::F16, &store(KvFormat::F16, &row), 4);
        assert_eq!(read[..3], [1.0, 1.0 + 2f32.powi(-9), -2f32.powi(-24)]);
        let read = load(KvFormat::F32, &store(KvFormat::F32, &row), 4);
        assert_eq!(read, row);
    }
}
