//! Random weight matrices: their values by `docs/arithmetic.md`, their planes by `docs/kernels.md`.

use half::{bf16, f16};
pub use zrt_needs::RandomXorshift as Random;

macro_rules! formats {
    ($($format:ident $block:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types)]
        pub enum Format {
            $($format),*
        }

        impl Format {
            pub const ALL: &[Format] = &[$(Format::$format),*];

            /// A row's length is a multiple of this.
            pub fn block(self) -> usize {
                match self {
                    $(Format::$format => $block),*
                }
            }
        }
    };
}

formats!(
    F32 4, F16 4, BF16 4, Q8_0 32, Q4_0 32, Q4_K 256, Q6_K 256, Q4_1 32, Q5_0 32, Q5_1 32, Q2_K 256, Q3_K 256, Q5_K 256,
    IQ4_NL 32, IQ4_XS 256, MXFP4 32, IQ_CODES 256, INT8 32, FP8 32,
);

impl Format {
    /// Ending of the kernels' names.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether weights are integers with scales.
    pub fn is_integer(self) -> bool {
        !matches!(self, Format::F32 | Format::F16 | Format::BF16 | Format::FP8)
    }
}

/// A matrix.
#[derive(Default)]
pub struct Weights {
    /// Bytes of each plane.
    pub planes: [Vec<u8>; 4],
    /// Values, row by row.
    pub values: Vec<f32>,
    /// Quantised formats: the same as integers and scales, row by row.
    pub blocks: Vec<Block>,
}

/// 32 columns of a weight row as integers, and what makes values of them.
pub struct Block {
    pub integers: Vec<i64>,
    pub scale: Scale,
}

pub enum Scale {
    /// d.
    One(f32),
    /// d · sc and dmin · m.
    WithMinimum(f32, f32),
    /// d, and the scales of the two halves.
    Halves(f32, [i64; 2]),
    /// d and the scales of the two halves, dmin and their minima.
    HalvesWithMinima(f32, [i64; 2], f32, [i64; 2]),
}

impl Block {
    fn value(&self, column: usize) -> f32 {
        let (q, half) = (self.integers[column] as f32, column / 16);
        match self.scale {
            Scale::One(d) => d * q,
            Scale::WithMinimum(d, m) => d.mul_add(q, -m),
            Scale::Halves(d, sc) => d * sc[half] as f32 * q,
            Scale::HalvesWithMinima(d, sc, dmin, m) => {
                (d * sc[half] as f32).mul_add(q, -(dmin * m[half] as f32))
            }
        }
    }
}

/// A random matrix of `rows` × `columns`.
pub fn random(format: Format, rows: usize, columns: usize, random: &mut Random) -> Weights {
    assert!(columns.is_multiple_of(format.block()));
    let mut weights = Weights::default();
    let count = rows * columns / format.block().max(32);
    match format.block() {
        4 => (0..rows * columns).for_each(|_| dense(format, random.real(), &mut weights)),
        32 if format == Format::FP8 => (0..count).for_each(|_| float_block(random, &mut weights)),
        32 => (0..count).for_each(|_| simple_block(format, random, &mut weights)),
        _ => (0..count).for_each(|_| superblock(format, random, &mut weights)),
    }
    if format == Format::IQ_CODES {
        weights.planes[3].extend(CODES.map(|value| value as u8));
        weights.planes[3].extend(CODES_SCALE.to_le_bytes());
    }
    weights.values.extend(weights.blocks.iter().flat_map(|block| (0..32).map(|column| block.value(column))));
    if format.block() == 4 {
        weights.planes[0] = in_pieces(rows, columns, &weights.planes[0]);
    }
    for (plane, order) in weights.planes.iter_mut().zip(orders(format)) {
        *plane = in_tiles(*order, rows, columns, plane);
    }
    weights
}

/// What a plane has in units of so many bytes, and so how these lie.
#[derive(Clone, Copy)]
enum Order {
    /// Of each chunk: its 16 rows.
    Values(usize),
    /// Of each 8 chunks: 16 rows, of each the 8 chunks.
    Scales(usize),
    /// Of each 8 chunks: 16 rows.
    Superblocks(usize),
}

fn orders(format: Format) -> &'static [Order] {
    use Order::{Scales, Superblocks, Values};
    match format {
        Format::F32 | Format::F16 | Format::BF16 => &[],
        Format::Q8_0 => &[Values(32), Scales(2)],
        Format::Q4_0 | Format::IQ4_NL => &[Values(16), Scales(2)],
        Format::Q4_1 => &[Values(16), Scales(4)],
        Format::Q4_K => &[Values(16), Superblocks(4), Scales(1), Superblocks(4)],
        Format::Q6_K => &[Values(16), Values(8), Scales(2), Superblocks(2)],
        Format::Q5_0 => &[Values(16), Values(4), Scales(2)],
        Format::Q5_1 => &[Values(16), Values(4), Scales(4)],
        Format::Q2_K => &[Values(8), Scales(2), Superblocks(4)],
        Format::Q3_K => &[Values(8), Values(4), Scales(1), Superblocks(8)],
        Format::Q5_K => &[Values(16), Values(4), Scales(1), Superblocks(8)],
        Format::IQ4_XS => &[Values(16), Superblocks(8)],
        Format::MXFP4 => &[Values(16), Scales(1)],
        Format::IQ_CODES => &[Values(16), Scales(1), Superblocks(2)],
        Format::INT8 | Format::FP8 => &[Values(32), Scales(4)],
    }
}

/// A plane of rows one after the other in tiles of 16 rows; what is missing of the last tile is 0, and so are scales
/// that the last 8 chunks of a row lack. Behind values of rows whose last 8 chunks are not whole there is as much as
/// would make them so.
fn in_tiles(order: Order, rows: usize, columns: usize, plane: &[u8]) -> Vec<u8> {
    let chunks = columns / 32;
    let eights = chunks.div_ceil(8);
    let (unit, row_units) = match order {
        Order::Values(bytes) | Order::Scales(bytes) => (bytes, chunks),
        Order::Superblocks(bytes) => (bytes, eights),
    };
    let tiles = rows.div_ceil(16);
    let behind = (eights * 8 - chunks) * 16;
    let units = match order {
        Order::Values(_) => tiles * 16 * chunks + behind,
        Order::Scales(_) => tiles * 16 * eights * 8,
        Order::Superblocks(_) => tiles * 16 * eights,
    };
    let mut packed = vec![0; units * unit];
    for (index, bytes) in plane.chunks(unit).enumerate() {
        let (row, of) = (index / row_units, index % row_units);
        let (tile, row) = (row / 16, row % 16);
        let at = match order {
            Order::Values(_) => (tile * chunks + of) * 16 + row,
            Order::Scales(_) => ((tile * eights + of / 8) * 16 + row) * 8 + of % 8,
            Order::Superblocks(_) => (tile * eights + of) * 16 + row,
        };
        packed[at * unit..][..unit].copy_from_slice(bytes);
    }
    packed
}

/// Rows of floats one after the other. Of 256 columns the first 32 bytes of each of the 8 chunks come first, then the
/// next 32 bytes of each; what is left of a row is as it was.
fn in_pieces(rows: usize, columns: usize, plane: &[u8]) -> Vec<u8> {
    let row_bytes = plane.len() / rows;
    let chunk_bytes = row_bytes * 32 / columns;
    let mut packed = Vec::with_capacity(plane.len());
    for row in plane.chunks(row_bytes) {
        let (whole, rest) = row.split_at(columns / 256 * 8 * chunk_bytes);
        for eight in whole.chunks(8 * chunk_bytes) {
            for from in (0..chunk_bytes).step_by(32) {
                eight.chunks(chunk_bytes).for_each(|chunk| packed.extend(&chunk[from..from + 32]));
            }
        }
        packed.extend(rest);
    }
    packed
}

fn dense(format: Format, value: f32, weights: &mut Weights) {
    let plane = &mut weights.planes[0];
    let stored = match format {
        Format::F16 => {
            plane.extend(f16::from_f32(value).to_le_bytes());
            f16::from_f32(value).to_f32()
        }
        Format::BF16 => {
            plane.extend(bf16::from_f32(value).to_le_bytes());
            bf16::from_f32(value).to_f32()
        }
        _ => {
            plane.extend(value.to_le_bytes());
            value
        }
    };
    weights.values.push(stored);
}

/// ggml's table of IQ4_NL.
const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// Twice the values of E2M1.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
/// Any table and power of two will do; no codebook has larger values.
const CODES: [i8; 16] = [62, -62, 4, -4, 8, -8, 25, -25, 43, -43, 1, -1, 15, -15, 0, 7];
const CODES_SCALE: f32 = 0.125;

/// Byte j = q[j] | q[j + 16] << 4.
fn pack_nibbles(q: &[u32], plane: &mut Vec<u8>) {
    plane.extend((0..16).map(|j| (q[j] & 15 | (q[j + 16] & 15) << 4) as u8));
}

/// Bit j of byte b = the bit of q[4j + b].
fn pack_bits(q: &[u32], bit: u32, plane: &mut Vec<u8>) {
    plane.extend((0..4).map(|b| (0..8).fold(0, |byte, j| byte | ((q[4 * j + b] >> bit & 1) << j) as u8)));
}

/// Bits 2k+1:2k of byte b of dword h = two bits of q[16h + 4k + b].
fn pack_pairs(q: &[u32], bit: u32, plane: &mut Vec<u8>) {
    for h in 0..2 {
        for b in 0..4 {
            let byte = (0..4).fold(0, |byte, k| byte | (q[16 * h + 4 * k + b] >> bit & 3) << (2 * k));
            plane.push(byte as u8);
        }
    }
}

/// A scale of either sign, now and then a denormal.
fn scale(random: &mut Random) -> f16 {
    match random.below(16) {
        0 => f16::from_bits(random.below(0x400) as u16),
        _ => f16::from_f32(random.real() / 16.0),
    }
}

/// The same in f32, with all its bits; now and then so small that products are denormal.
fn single(random: &mut Random) -> f32 {
    match random.below(16) {
        0 => random.real() * 2f32.powi(-124),
        _ => random.real() / 300.0,
    }
}

/// A scale and 32 floats of E4M3: a sign, 4 exponent bits with a bias of 7, 3 fraction bits. NaN does not occur in
/// files.
fn float_block(random: &mut Random, weights: &mut Weights) {
    let d = single(random);
    weights.planes[1].extend(d.to_le_bytes());
    for code in values(random) {
        let code = if code & 0x7f == 0x7f { code - 1 } else { code };
        let (exponent, fraction) = ((code >> 3 & 15) as i32, (code & 7) as f32);
        // In steps of 2^-9.
        let steps = if exponent == 0 { fraction } else { (8.0 + fraction) * 2f32.powi(exponent - 1) };
        let value = steps / 512.0 * if code & 0x80 == 0 { 1.0 } else { -1.0 };
        weights.planes[0].push(code as u8);
        weights.values.push(d * value);
    }
}

/// What 32 weights are made of, 8 bits each; now and then all the same: 0, or every bit set.
fn values(random: &mut Random) -> Vec<u32> {
    match random.below(8) {
        0 => vec![0; 32],
        1 => vec![0xff; 32],
        _ => (0..32).map(|_| random.word() & 0xff).collect(),
    }
}

fn simple_block(format: Format, random: &mut Random, weights: &mut Weights) {
    let (d, m) = (scale(random), scale(random));
    let q = values(random);
    let planes = &mut weights.planes;
    let less = |bits: u32, zero: i64| q.iter().map(|q| i64::from(q & bits) - zero).collect();
    let coded = |table: [i8; 16]| q.iter().map(|q| i64::from(table[*q as usize & 15])).collect();
    match format {
        Format::Q8_0 | Format::INT8 => planes[0].extend(q.iter().map(|q| *q as u8)),
        _ => pack_nibbles(&q, &mut planes[0]),
    }
    if matches!(format, Format::Q5_0 | Format::Q5_1) {
        pack_bits(&q, 4, &mut planes[1]);
    }
    let scales = match format {
        Format::Q5_0 | Format::Q5_1 => &mut planes[2],
        _ => &mut planes[1],
    };
    let mut one = Scale::One(d.to_f32());
    match format {
        Format::MXFP4 => {
            // Within what products with activations can hold, and the smallest there are.
            let exponent = if random.below(8) == 0 { random.below(3) } else { 118 + random.below(12) };
            scales.push(exponent as u8);
            one = Scale::One(2f64.powi(exponent as i32 - 128) as f32);
        }
        Format::INT8 => {
            let d = single(random);
            scales.extend(d.to_le_bytes());
            one = Scale::One(d);
        }
        Format::Q4_1 | Format::Q5_1 => {
            scales.extend([d, m].map(f16::to_le_bytes).concat());
            one = Scale::WithMinimum(d.to_f32(), -m.to_f32());
        }
        _ => scales.extend(d.to_le_bytes()),
    }
    let integers = match format {
        Format::Q8_0 | Format::INT8 => q.iter().map(|q| i64::from(*q as i8)).collect(),
        Format::Q4_0 => less(15, 8),
        Format::Q4_1 => less(15, 0),
        Format::Q5_0 => less(31, 16),
        Format::Q5_1 => less(31, 0),
        Format::IQ4_NL => coded(IQ4),
        _ => coded(E2M1),
    };
    weights.blocks.push(Block { integers, scale: one });
}

/// Eight chunks that share d, and what else the format has.
fn superblock(format: Format, random: &mut Random, weights: &mut Weights) {
    let (d, dmin) = (scale(random), scale(random));
    let (mut high, mut low) = (0u32, 0u32);
    for chunk in 0..8 {
        let q = values(random);
        // Now and then the largest scales.
        let [a, b] = match random.below(4) {
            0 => [0xff; 2],
            _ => [random.word(), random.word()].map(|word| word & 0xff),
        };
        let planes = &mut weights.planes;
        let less = |bits: u32, zero: i64| q.iter().map(|q| i64::from(q & bits) - zero).collect();
        let coded = |table: [i8; 16]| q.iter().map(|q| i64::from(table[*q as usize & 15])).collect();
        match format {
            Format::Q2_K | Format::Q3_K => pack_pairs(&q, 0, &mut planes[0]),
            _ => pack_nibbles(&q, &mut planes[0]),
        }
        match format {
            Format::Q3_K => pack_bits(&q, 2, &mut planes[1]),
            Format::Q5_K => pack_bits(&q, 4, &mut planes[1]),
            Format::Q6_K => pack_pairs(&q, 4, &mut planes[1]),
            _ => {}
        }
        let pair_of_6_bits = (a & 15 | (b & 15) << 4) as u8;
        let upper = (a >> 4 & 3 | (b >> 4 & 3) << 2) << (4 * chunk);
        let d = d.to_f32();
        let (integers, scale) = match format {
            Format::Q4_K | Format::Q5_K => {
                planes[2].push(pair_of_6_bits);
                high |= upper;
                let [factor, base] = [d * (a & 63) as f32, dmin.to_f32() * (b & 63) as f32];
                let bits = if format == Format::Q4_K { 15 } else { 31 };
                (less(bits, 0), Scale::WithMinimum(factor, base))
            }
            Format::Q3_K => {
                planes[2].push(pair_of_6_bits);
                high |= upper;
                (less(7, 4), Scale::Halves(d, [a, b].map(|scale| i64::from(scale & 63) - 32)))
            }
            Format::Q2_K => {
                planes[1].extend([a as u8, b as u8]);
                let [sc, m] = [0, 4].map(|shift| [a, b].map(|byte| i64::from(byte >> shift & 15)));
                (less(3, 0), Scale::HalvesWithMinima(d, sc, dmin.to_f32(), m))
            }
            Format::Q6_K => {
                planes[2].extend([a as u8, b as u8]);
                (less(63, 32), Scale::Halves(d, [a, b].map(|scale| i64::from(scale as u8 as i8))))
            }
            Format::IQ4_XS => {
                low |= (a & 15) << (4 * chunk);
                high |= (a >> 4 & 3) << (2 * chunk);
                (coded(IQ4), Scale::One(d * ((a & 63) as f32 - 32.0)))
            }
            _ => {
                planes[1].push(pair_of_6_bits);
                let scales = [a, b].map(|scale| i64::from(scale & 15) * 2 + 1);
                (coded(CODES), Scale::Halves(d * CODES_SCALE, scales))
            }
        };
        weights.blocks.push(Block { integers, scale });
    }
    let (d, dmin) = (d.to_le_bytes(), dmin.to_le_bytes());
    let planes = &mut weights.planes;
    match format {
        Format::Q4_K => {
            planes[1].extend([d, dmin].concat());
            planes[3].extend(high.to_le_bytes());
        }
        Format::Q6_K => planes[3].extend(d),
        Format::Q2_K => planes[2].extend([d, dmin].concat()),
        Format::Q5_K => {
            planes[3].extend([d, dmin].concat());
            planes[3].extend(high.to_le_bytes());
        }
        Format::Q3_K => {
            // Two bytes that nobody reads.
            planes[3].extend([d, [0xff, 0x7f]].concat());
            planes[3].extend(high.to_le_bytes());
        }
        Format::IQ4_XS => {
            planes[1].extend(d);
            planes[1].extend((high as u16).to_le_bytes());
            planes[1].extend(low.to_le_bytes());
        }
        _ => planes[2].extend(d),
    }
}
