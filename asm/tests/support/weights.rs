//! Random weight matrices: their values by `docs/arithmetic.md`, their planes by `docs/kernels.md`.

use half::{bf16, f16};
pub use zrt_needs::RandomXorshift as Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub enum Format {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_K,
    Q6_K,
}

impl Format {
    pub const ALL: [Format; 7] =
        [Format::F32, Format::F16, Format::BF16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q6_K];

    /// Ending of the kernels' names.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// A row's length is a multiple of this.
    pub fn block(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::BF16 => 4,
            Format::Q8_0 | Format::Q4_0 => 32,
            Format::Q4_K | Format::Q6_K => 256,
        }
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
}

/// A random matrix of `rows` × `columns`.
pub fn random(format: Format, rows: usize, columns: usize, random: &mut Random) -> Weights {
    assert!(columns.is_multiple_of(format.block()));
    let mut weights = Weights::default();
    match format {
        Format::F32 | Format::F16 | Format::BF16 => {
            for _ in 0..rows * columns {
                dense(format, random.real(), &mut weights);
            }
        }
        Format::Q8_0 | Format::Q4_0 => {
            for _ in 0..rows * columns / 32 {
                simple_block(format, random, &mut weights);
            }
        }
        Format::Q4_K | Format::Q6_K => {
            for _ in 0..rows * columns / 256 {
                superblock(format, random, &mut weights);
            }
        }
    }
    weights
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

/// Byte j = q[j] | q[j + 16] << 4.
fn pack_nibbles(q: &[u32], plane: &mut Vec<u8>) {
    plane.extend((0..16).map(|j| (q[j] & 15 | (q[j + 16] & 15) << 4) as u8));
}

/// A scale of either sign, now and then a denormal.
fn scale(random: &mut Random) -> f16 {
    match random.below(16) {
        0 => f16::from_bits(random.below(0x400) as u16),
        _ => f16::from_f32(random.real() / 16.0),
    }
}

fn simple_block(format: Format, random: &mut Random, weights: &mut Weights) {
    let d = scale(random);
    let q: Vec<u32> = (0..32).map(|_| random.word()).collect();
    if format == Format::Q8_0 {
        weights.planes[0].extend(q.iter().map(|q| *q as u8));
        weights.values.extend(q.iter().map(|q| d.to_f32() * f32::from(*q as i8)));
        let integers = q.iter().map(|q| i64::from(*q as i8)).collect();
        weights.blocks.push(Block { integers, scale: Scale::One(d.to_f32()) });
    } else {
        pack_nibbles(&q, &mut weights.planes[0]);
        weights.values.extend(q.iter().map(|q| d.to_f32() * ((q & 15) as f32 - 8.0)));
        let integers = q.iter().map(|q| i64::from(q & 15) - 8).collect();
        weights.blocks.push(Block { integers, scale: Scale::One(d.to_f32()) });
    }
    weights.planes[1].extend(d.to_le_bytes());
}

fn superblock(format: Format, random: &mut Random, weights: &mut Weights) {
    let d = scale(random);
    if format == Format::Q4_K {
        let dmin = scale(random);
        let mut high = 0u32;
        for chunk in 0..8 {
            let q: Vec<u32> = (0..32).map(|_| random.below(16)).collect();
            let (sc, m) = (random.below(64), random.below(64));
            pack_nibbles(&q, &mut weights.planes[0]);
            weights.planes[2].push((sc & 15 | (m & 15) << 4) as u8);
            high |= (sc >> 4 | (m >> 4) << 2) << (4 * chunk);
            let (factor, base) = (d.to_f32() * sc as f32, dmin.to_f32() * m as f32);
            weights.values.extend(q.iter().map(|q| factor.mul_add(*q as f32, -base)));
            let integers = q.iter().map(|q| i64::from(*q)).collect();
            weights.blocks.push(Block { integers, scale: Scale::WithMinimum(factor, base) });
        }
        weights.planes[1].extend(d.to_le_bytes());
        weights.planes[1].extend(dmin.to_le_bytes());
        weights.planes[3].extend(high.to_le_bytes());
    } else {
        let mut blocks = Vec::new();
        for _ in 0..8 {
            let q: Vec<u32> = (0..32).map(|_| random.below(64)).collect();
            let scales = [random.word() as i8, random.word() as i8];
            pack_nibbles(&q, &mut weights.planes[0]);
            for h in 0..2 {
                for b in 0..4 {
                    let byte = (0..4).fold(0, |byte, k| byte | (q[16 * h + 4 * k + b] >> 4) << (2 * k));
                    weights.planes[1].push(byte as u8);
                }
            }
            weights.planes[2].extend(scales.map(|scale| scale as u8));
            for (i, q) in q.iter().enumerate() {
                let factor = d.to_f32() * f32::from(scales[i / 16]);
                weights.values.push(factor * (*q as f32 - 32.0));
            }
            let integers = q.iter().map(|q| i64::from(*q) - 32).collect();
            blocks.push((integers, scales.map(i64::from)));
        }
        weights.planes[3].extend(d.to_le_bytes());
        let d = d.to_f32();
        let blocks = blocks.into_iter();
        weights
            .blocks
            .extend(blocks.map(|(integers, scales)| Block { integers, scale: Scale::Halves(d, scales) }));
    }
}
