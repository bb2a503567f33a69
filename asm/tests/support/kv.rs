//! A paged key-value cache for tests: pages in random order, rows encoded by exact arithmetic of their own.
//! Written from `docs/kernels.md` and `docs/arithmetic.md` for these tests alone.

use super::harness::Device;
use super::weights::Random;
use zrt_protocol::{Row, Step};

/// Tokens of a page.
const PAGE: usize = 16;
/// An entry that no row may use: its page is not mapped.
const NO_PAGE: u32 = 0x7FFF_FFF0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub enum KvFormat {
    F32,
    F16,
    Q8_0,
}

impl KvFormat {
    pub const ALL: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

    /// Ending of the kernels' names.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Bytes of a row before padding.
    fn content_bytes(self, elements: usize) -> usize {
        match self {
            KvFormat::F32 => 4 * elements,
            KvFormat::F16 => 2 * elements,
            KvFormat::Q8_0 => 34 * elements.div_ceil(32),
        }
    }

    /// Bytes of a row.
    pub fn row_bytes(self, elements: usize) -> usize {
        self.content_bytes(elements).next_multiple_of(16)
    }

    /// What is stored of a row, without padding.
    pub fn encode(self, row: &[f32]) -> Vec<u8> {
        match self {
            KvFormat::F32 => row.iter().flat_map(|x| x.to_le_bytes()).collect(),
            KvFormat::F16 => row.iter().flat_map(|x| half_bits(*x).to_le_bytes()).collect(),
            KvFormat::Q8_0 => {
                let blocks: Vec<([i8; 32], u16)> = row.chunks(32).map(quantise).collect();
                let quants = blocks.iter().flat_map(|(quants, _)| quants.map(|q| q as u8));
                quants.chain(blocks.iter().flat_map(|(_, d)| d.to_le_bytes())).collect()
            }
        }
    }

    /// The elements that are read of a stored row.
    pub fn decode(self, bytes: &[u8], elements: usize) -> Vec<f32> {
        let half = |at: usize| half_value(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let element = |i: usize| match self {
            KvFormat::F32 => f32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes")),
            KvFormat::F16 => half(2 * i) as f32,
            // At most 11 + 8 bits: exact.
            KvFormat::Q8_0 => {
                let factor = half(32 * elements.div_ceil(32) + i / 32 * 2);
                (factor * f64::from(bytes[i] as i8)) as f32
            }
        };
        (0..elements).map(element).collect()
    }
}

/// f16 to nearest, ties to even: a whole number of steps of the value's exponent, in f64, which is exact.
pub fn half_bits(x: f32) -> u16 {
    let sign = ((x.to_bits() >> 31) as u16) << 15;
    let magnitude = f64::from(x.abs());
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let steps = (magnitude / 2f64.powi(exponent - 10)).round_ties_even();
    // With the least exponent, `steps` is the encoding: the hidden bit counts as 1024, as an exponent does.
    let bits = steps + f64::from(exponent + 14) * 1024.0;
    sign | bits.min(f64::from(0x7C00)) as u16
}

pub fn half_value(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 0x3FF);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::INFINITY,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// Quotients and products of f32 numbers in f64 round to f32 as if they were exact.
fn quantise(block: &[f32]) -> ([i8; 32], u16) {
    let largest = block.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
    let d = (largest / 127.0) as f32;
    let stored = half_bits(d);
    let mut quants = [0; 32];
    if stored != 0 {
        let inverse = (1.0 / f64::from(d)) as f32;
        for (q, x) in quants.iter_mut().zip(block) {
            let scaled = f64::from((f64::from(*x) * f64::from(inverse)) as f32);
            let magnitude = (scaled.abs() + 0.5).floor() as i32;
            *q = (if scaled < 0.0 { -magnitude } else { magnitude }) as i8;
        }
    }
    (quants, stored)
}

/// Pages of a few slots, in one buffer.
pub struct Cache {
    pub format: KvFormat,
    pub elements: usize,
    /// Contents of the buffer: the second of two layers counts.
    pub bytes: Vec<u8>,
    pub table: Vec<u32>,
    pub pages_per_slot: usize,
    /// Number of the buffer's first page: far from 0, so that page times length needs 64 bits.
    first_page: u32,
    /// Length of a page.
    pub page_bytes: u64,
}

impl Cache {
    /// Room for `lengths[slot]` tokens of each slot; a dword of every byte is `fresh`.
    pub fn new(
        format: KvFormat,
        elements: usize,
        lengths: &[usize],
        fresh: u32,
        random: &mut Random,
    ) -> Cache {
        let pages_of = |length: &usize| length.div_ceil(PAGE);
        let count: usize = lengths.iter().map(pages_of).sum();
        let first_page = 3_000_000;
        let mut numbers: Vec<u32> = (first_page..).take(count).collect();
        for last in (1..count).rev() {
            numbers.swap(last, random.below(last as u32 + 1) as usize);
        }
        let pages_per_slot = lengths.iter().map(pages_of).max().unwrap_or(0) + 2;
        let mut table = vec![NO_PAGE; lengths.len() * pages_per_slot];
        for (slot, length) in lengths.iter().enumerate() {
            for entry in &mut table[slot * pages_per_slot..][..pages_of(length)] {
                *entry = numbers.pop().expect("as many as counted");
            }
        }
        let page_bytes = 2 * 2 * PAGE * format.row_bytes(elements);
        let bytes = fresh.to_le_bytes().repeat(count * page_bytes / 4);
        Cache { format, elements, bytes, table, pages_per_slot, first_page, page_bytes: page_bytes as u64 }
    }

    fn layer_bytes(&self) -> usize {
        2 * PAGE * self.format.row_bytes(self.elements)
    }

    /// Where the key row of a token lies in the buffer, or its value row.
    fn offset(&self, slot: usize, position: usize, is_value: bool) -> usize {
        let page = self.table[slot * self.pages_per_slot + position / PAGE] - self.first_page;
        let row = position % PAGE + if is_value { PAGE } else { 0 };
        page as usize * 2 * self.layer_bytes()
            + self.layer_bytes()
            + row * self.format.row_bytes(self.elements)
    }

    /// Stores a token's rows.
    pub fn put(&mut self, slot: usize, position: usize, key: &[f32], value: &[f32]) {
        for (row, is_value) in [(key, false), (value, true)] {
            let (offset, content) = (self.offset(slot, position, is_value), self.format.encode(row));
            self.bytes[offset..offset + content.len()].copy_from_slice(&content);
        }
    }

    /// What is read of a token's key row, or of its value row.
    pub fn get(&self, slot: usize, position: usize, is_value: bool) -> Vec<f32> {
        let bytes = &self.bytes[self.offset(slot, position, is_value)..];
        self.format.decode(&bytes[..self.format.content_bytes(self.elements)], self.elements)
    }

    /// The field `pool_va` for a buffer at this address.
    pub fn pool_va(&self, buffer_va: u64) -> u64 {
        let before = u64::from(self.first_page).wrapping_mul(self.page_bytes);
        buffer_va.wrapping_add(self.layer_bytes() as u64).wrapping_sub(before)
    }
}

/// A step over rows (slot, position, alive): alive as it says in one snapshot, the other way round in the
/// other.
pub fn step(device: &mut Device, rows: &[(usize, usize, bool)], snapshot: usize) -> u64 {
    let mut step = Step { epoch: 1, rows: rows.len() as u32, ..Step::default() };
    for (number, (slot, position, is_alive)) in rows.iter().copied().enumerate() {
        step.row[number] = Row { slot: slot as u32, position: position as u32, token: 0, output: u32::MAX };
        let mask = if is_alive { snapshot } else { 1 - snapshot };
        step.alive[mask][number / 32] |= 1 << (number % 32);
    }
    device.upload(&[step])
}
