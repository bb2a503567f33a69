//! Rows of integers as they lie in device memory, by docs/kernels.md: room for them, what is there and what should be.

use super::harness::{Device, FRESH};
use super::reference as cpu;
use zrt_protocol::{
    TILED_ROWS_MIN, quantised_factors_offset, quantised_row_bytes, quantised_rows_held, quantised_segments,
};

/// Rows of a step as integers of `limbs` bytes; with 0 there are none.
pub struct IntegerRows {
    pub va: u64,
    pub stride: u32,
    pub limbs: u32,
    columns: u32,
    rows: usize,
}

impl IntegerRows {
    /// Room for this many rows, further apart than they are long.
    pub fn allocate(device: &mut Device, rows: usize, columns: usize, limbs: u32) -> IntegerRows {
        let columns = columns as u32;
        if limbs == 0 {
            return IntegerRows { va: 0, stride: 0, limbs, columns, rows: 0 };
        }
        let stride = quantised_row_bytes(columns, limbs).next_multiple_of(256) + 256;
        let va = device.allocate((quantised_rows_held(rows.max(1) as u32) * stride) as usize);
        IntegerRows { va, stride, limbs, columns, rows }
    }

    pub fn factors_offset(&self) -> u32 {
        quantised_factors_offset(self.columns, self.limbs)
    }

    /// Elements of all segments.
    pub fn elements(&self) -> usize {
        if self.limbs == 0 { 0 } else { quantised_segments(self.columns) as usize * 256 }
    }

    /// The bytes of a row, in the order of a row by itself.
    pub fn row(&self, device: &Device, row: usize) -> Vec<u8> {
        let row_bytes = quantised_row_bytes(self.columns, self.limbs) as usize;
        let at = |row: usize| self.va + row as u64 * u64::from(self.stride);
        if self.rows < TILED_ROWS_MIN as usize {
            return device.bytes_at(at(row), row_bytes);
        }
        let tile = device.bytes_at(at(row / 16 * 16), 16 * row_bytes);
        row_of_tile(&tile, row % 16, self.columns, self.limbs)
    }

    /// What lies behind each row, or behind all rows of each tile.
    fn gaps(&self, device: &Device) -> Vec<u8> {
        let row_bytes = quantised_row_bytes(self.columns, self.limbs) as usize;
        let rows = if self.rows < TILED_ROWS_MIN as usize { 1 } else { 16 };
        let (len, stride) = (rows * row_bytes, rows * self.stride as usize);
        let starts = (0..self.rows).step_by(rows).map(|row| self.va + (row / rows * stride) as u64);
        starts.flat_map(|start| device.bytes_at(start, stride).split_off(len)).collect()
    }

    /// All words that there are, and what they should be: of these elements, or as they were at first.
    pub fn words(&self, device: &Device, elements: &[Option<Vec<f32>>]) -> (Vec<u32>, Vec<u32>) {
        let words = |bytes: Vec<u8>| -> Vec<u32> {
            bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
        };
        if self.rows == 0 {
            return (Vec::new(), Vec::new());
        }
        let held = quantised_rows_held(self.rows as u32) as usize;
        let mut found: Vec<u32> = (0..held).flat_map(|row| words(self.row(device, row))).collect();
        let row_words = found.len() / held;
        let expected = (0..held).flat_map(|row| match elements.get(row) {
            Some(Some(elements)) => words(stored(elements, self.limbs)),
            _ => vec![FRESH; row_words],
        });
        let mut expected: Vec<u32> = expected.collect();
        found.extend(words(self.gaps(device)));
        expected.resize(found.len(), FRESH);
        (found, expected)
    }
}

/// The bytes of a row by itself.
pub fn stored(x: &[f32], limbs: u32) -> Vec<u8> {
    let blocks = cpu::quantise_row(x, limbs);
    let columns = x.len() as u32;
    let factors_offset = quantised_factors_offset(columns, limbs) as usize;
    let mut bytes = vec![0; quantised_row_bytes(columns, limbs) as usize];
    for index in 0..quantised_segments(columns) as usize * 8 {
        let empty = cpu::quantise(&[], limbs);
        let block = blocks.get(index).unwrap_or(&empty);
        for (at, integer) in block.integers.iter().enumerate() {
            let low = index * 32 * limbs as usize + at;
            if limbs == 2 {
                bytes[low] = ((integer + 128) >> 8) as u8;
                bytes[low + 32] = *integer as u8;
            } else {
                bytes[low] = *integer as u8;
            }
        }
        let at = factors_offset + index / 8 * 64 + index % 8 * 4;
        bytes[at..at + 4].copy_from_slice(&block.factor.to_le_bytes());
        bytes[at + 32..at + 36].copy_from_slice(&block.negative_sum.to_le_bytes());
    }
    bytes
}

/// A row of a tile, which starts at `bytes`, as it would lie by itself.
fn row_of_tile(bytes: &[u8], row: usize, columns: u32, limbs: u32) -> Vec<u8> {
    let (factors, blocks) =
        (quantised_factors_offset(columns, limbs) as usize, quantised_segments(columns) * 8);
    let limbs = limbs as usize;
    let mut row_bytes = vec![0; factors + blocks as usize * 8];
    for block in 0..blocks as usize {
        for limb in 0..limbs {
            for (part, from) in [0, 16, 8, 24].into_iter().enumerate() {
                let at = (block * limbs + limb) * 512 + row * 32 + part * 8;
                row_bytes[(block * limbs + limb) * 32 + from..][..8].copy_from_slice(&bytes[at..at + 8]);
            }
        }
        let (pair, to) = (factors * 16 + block * 128 + row * 8, factors + block / 8 * 64 + block % 8 * 4);
        row_bytes[to..to + 4].copy_from_slice(&bytes[pair..pair + 4]);
        row_bytes[to + 32..to + 36].copy_from_slice(&bytes[pair + 4..pair + 8]);
    }
    row_bytes
}
