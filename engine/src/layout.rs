//! Layout of weights in device memory, and the repacking of GGUF blocks into it (`docs/kernels.md`, weight layouts).
//!
//! Contract: bits are moved, never computed with: the device sees the same scales and quants as the file, but for types
//! with a codebook, which become codes of 4 bits. Planes start on 256-byte boundaries. Repacking runs once at load and
//! allocates the packed tensor.

mod repack;

use crate::gguf::{TensorKind, codebooks};
use zrt_mem::ByteLen;
use zrt_mem::heap::{Region, RegionPlanner};

/// Maximum number of planes of a weight.
pub const PLANES_MAX: usize = 4;
/// Columns of a chunk.
pub const CHUNK_COLUMNS: u64 = zrt_protocol::CHUNK_COLUMNS as u64;

/// Offsets of a weight's planes from the start of the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightLayout {
    /// Used planes first; unused ones are `None`.
    pub planes: [Option<Region>; PLANES_MAX],
    /// Length of the whole weight.
    pub len: ByteLen,
}

/// Bytes of each plane per unit of elements: (elements, bytes).
fn plane_units(kind: TensorKind) -> Option<&'static [(u64, u64)]> {
    Some(match kind {
        TensorKind::F32 => &[(1, 4)],
        TensorKind::F16 | TensorKind::BF16 => &[(1, 2)],
        TensorKind::Q8_0 => &[(32, 32), (32, 2)],
        TensorKind::Q4_0 | TensorKind::IQ4_NL => &[(32, 16), (32, 2)],
        TensorKind::Q4_1 => &[(32, 16), (32, 4)],
        TensorKind::Q5_0 => &[(32, 16), (32, 4), (32, 2)],
        TensorKind::Q5_1 => &[(32, 16), (32, 4), (32, 4)],
        TensorKind::Q2_K => &[(32, 8), (32, 2), (256, 4)],
        TensorKind::Q3_K => &[(32, 8), (32, 4), (32, 1), (256, 8)],
        TensorKind::Q4_K => &[(32, 16), (256, 4), (32, 1), (256, 4)],
        TensorKind::Q5_K => &[(32, 16), (32, 4), (32, 1), (256, 8)],
        TensorKind::Q6_K => &[(32, 16), (32, 8), (32, 2), (256, 2)],
        TensorKind::IQ4_XS => &[(32, 16), (256, 8)],
        TensorKind::MXFP4 => &[(32, 16), (32, 1)],
        TensorKind::INT8 | TensorKind::FP8 => &[(32, 32), (32, 4)],
        _ if code_table(kind).is_some() => &[(32, 16), (32, 1), (256, 2)],
        _ => return None,
    })
}

/// What is the same for all weights of a codebook type: the values of the 16 codes and a power of two for the scales.
type CodeTable = ([i8; 16], f32);

/// Bytes of such a table: a plane of its own.
const CODE_TABLE_BYTES: u64 = 20;

/// Codes are the number of a magnitude, plus 8 for a negative weight.
fn code_table(kind: TensorKind) -> Option<CodeTable> {
    let signed = |levels: &[u8]| {
        std::array::from_fn(|code| {
            let magnitude = levels.get(code & 7).copied().unwrap_or_default() as i8;
            if code < 8 { magnitude } else { -magnitude }
        })
    };
    Some(match kind {
        TensorKind::IQ2_XXS | TensorKind::IQ2_XS | TensorKind::IQ2_S => {
            (signed(&codebooks::IQ2_LEVELS), 0.125)
        }
        TensorKind::IQ3_XXS => (signed(&codebooks::IQ3_XXS_LEVELS), 0.25),
        TensorKind::IQ3_S => (signed(&codebooks::IQ3_S_LEVELS), 1.0),
        _ => return None,
    })
}

impl WeightLayout {
    /// The layout of `elements` elements of `kind`; `None` for a type without a kernel or on overflow.
    pub fn new(kind: TensorKind, elements: u64) -> Option<WeightLayout> {
        let mut planner = RegionPlanner::new();
        let mut planes = [None; PLANES_MAX];
        for (plane, (unit_elements, unit_bytes)) in planes.iter_mut().zip(plane_units(kind)?) {
            let bytes = (elements / unit_elements).checked_mul(*unit_bytes)?;
            *plane = Some(planner.push(ByteLen(bytes))?);
        }
        if code_table(kind).is_some() {
            planes[PLANES_MAX - 1] = Some(planner.push(ByteLen(CODE_TABLE_BYTES))?);
        }
        Some(WeightLayout { planes, len: planner.len()? })
    }

    /// Bytes of the planes, without what aligns them.
    pub fn used_bytes(&self) -> u64 {
        self.planes.iter().flatten().map(|plane| plane.len.0).sum()
    }

    /// Repacks a tensor's file bytes into this layout.
    pub fn pack(&self, kind: TensorKind, file: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; self.len.0 as usize];
        if !kind.is_quantised() {
            packed[..file.len()].copy_from_slice(file);
            return packed;
        }
        let starts = self.planes.map(|plane| plane.map_or(0, |region| region.offset.0 as usize));
        if let Some((values, scale)) = code_table(kind) {
            put(&mut packed, starts[PLANES_MAX - 1], &values.map(|value| value as u8));
            put(&mut packed, starts[PLANES_MAX - 1] + values.len(), &scale.to_le_bytes());
        }
        for (index, block) in file.chunks_exact(kind.block_bytes() as usize).enumerate() {
            repack::block(kind, block, index, |plane, offset, bytes| {
                put(&mut packed, starts[plane] + offset, bytes);
            });
        }
        packed
    }
}

fn put(packed: &mut [u8], at: usize, bytes: &[u8]) {
    packed[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::blocks::e4m3;
    use crate::oracle::dequantise::dequantise;
    use crate::weights::WEIGHT_KINDS;
    use half::f16;

    /// A packed tensor, read as the kernels read it, from the description in `docs/kernels.md` alone.
    struct Packed<'a> {
        layout: &'a WeightLayout,
        bytes: &'a [u8],
    }

    impl Packed<'_> {
        fn plane(&self, number: usize) -> &[u8] {
            &self.bytes[self.layout.planes[number].expect("used plane").offset.0 as usize..]
        }

        fn half(&self, plane: usize, at: usize) -> f32 {
            f16::from_le_bytes([self.plane(plane)[at], self.plane(plane)[at + 1]]).to_f32()
        }

        fn single(&self, plane: usize, at: usize) -> f32 {
            f32::from_le_bytes(std::array::from_fn(|byte| self.plane(plane)[at + byte]))
        }

        fn nibble(&self, chunk: usize, lane: usize) -> u8 {
            (self.plane(0)[chunk * 16 + lane % 16] >> (lane / 16 * 4)) & 15
        }

        /// Two bits of an element, from 8 bytes for each chunk.
        fn pair(&self, plane: usize, chunk: usize, lane: usize) -> u8 {
            self.plane(plane)[chunk * 8 + lane / 16 * 4 + lane % 4] >> (lane % 16 / 4 * 2) & 3
        }

        /// One bit of an element, from 4 bytes of plane 1 for each chunk.
        fn bit(&self, chunk: usize, lane: usize) -> u8 {
            self.plane(1)[chunk * 4 + lane % 4] >> (lane / 4) & 1
        }

        /// The two 6-bit numbers of a chunk: low nibbles in plane 2, upper bits in the nibbles at `high` of plane 3.
        fn six_bits(&self, chunk: usize, high: usize) -> [u8; 2] {
            let (low, upper) = (self.plane(2)[chunk], self.plane(3)[high + chunk % 8 / 2] >> (chunk % 2 * 4));
            [(low & 15) | (upper & 3) << 4, (low >> 4) | (upper >> 2 & 3) << 4]
        }

        fn value(&self, kind: TensorKind, element: usize) -> f32 {
            const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
            const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
            let (chunk, lane) = (element / 32, element % 32);
            let (block, half) = (chunk / 8, lane / 16);
            let nibble = || self.nibble(chunk, lane);
            let five = || f32::from(nibble() | self.bit(chunk, lane) << 4);
            let of_table = |table: [i8; 16]| f32::from(table[usize::from(nibble())]);
            match kind {
                TensorKind::Q8_0 => self.half(1, chunk * 2) * f32::from(self.plane(0)[element] as i8),
                TensorKind::INT8 => self.single(1, chunk * 4) * f32::from(self.plane(0)[element] as i8),
                TensorKind::FP8 => self.single(1, chunk * 4) * e4m3::value(self.plane(0)[element]),
                TensorKind::Q4_0 => self.half(1, chunk * 2) * (f32::from(nibble()) - 8.0),
                TensorKind::Q4_1 => {
                    self.half(1, chunk * 4).mul_add(f32::from(nibble()), self.half(1, chunk * 4 + 2))
                }
                TensorKind::Q5_0 => self.half(2, chunk * 2) * (five() - 16.0),
                TensorKind::Q5_1 => self.half(2, chunk * 4).mul_add(five(), self.half(2, chunk * 4 + 2)),
                TensorKind::IQ4_NL => self.half(1, chunk * 2) * of_table(IQ4),
                TensorKind::MXFP4 => {
                    let exponent = i32::from(self.plane(1)[chunk]) - 128;
                    (2f64.powi(exponent) * f64::from(of_table(E2M1))) as f32
                }
                TensorKind::Q2_K => {
                    let scales = self.plane(1)[chunk * 2 + half];
                    let scale = self.half(2, block * 4) * f32::from(scales & 15);
                    let minimum = self.half(2, block * 4 + 2) * f32::from(scales >> 4);
                    scale.mul_add(f32::from(self.pair(0, chunk, lane)), -minimum)
                }
                TensorKind::Q3_K => {
                    let scale = f32::from(self.six_bits(chunk, block * 8 + 4)[half]) - 32.0;
                    let quant = self.pair(0, chunk, lane) | self.bit(chunk, lane) << 2;
                    (self.half(3, block * 8) * scale) * (f32::from(quant) - 4.0)
                }
                TensorKind::Q4_K | TensorKind::Q5_K => {
                    let (superblock, at, high, quant) = match kind {
                        TensorKind::Q4_K => (1, block * 4, block * 4, f32::from(nibble())),
                        _ => (3, block * 8, block * 8 + 4, five()),
                    };
                    let [scale, minimum] = self.six_bits(chunk, high).map(f32::from);
                    let (d, dmin) = (self.half(superblock, at), self.half(superblock, at + 2));
                    (d * scale).mul_add(quant, -(dmin * minimum))
                }
                TensorKind::Q6_K => {
                    let quant = nibble() | self.pair(1, chunk, lane) << 4;
                    let scale = self.half(3, block * 2) * f32::from(self.plane(2)[chunk * 2 + half] as i8);
                    scale * (f32::from(quant) - 32.0)
                }
                TensorKind::IQ4_XS => {
                    let of = &self.plane(1)[block * 8..];
                    let high = u16::from_le_bytes([of[2], of[3]]) >> (chunk % 8 * 2) & 3;
                    let low = of[4 + chunk % 8 / 2] >> (chunk % 2 * 4) & 15;
                    let scale = f32::from(low) + f32::from(high) * 16.0 - 32.0;
                    (self.half(1, block * 8) * scale) * of_table(IQ4)
                }
                _ => {
                    let table: [u8; 20] = self.plane(3)[..20].try_into().expect("a table");
                    let power = f32::from_le_bytes(std::array::from_fn(|byte| table[16 + byte]));
                    let scale = f32::from(self.plane(1)[chunk] >> (half * 4) & 15) * 2.0 + 1.0;
                    let value = f32::from(table[usize::from(nibble())] as i8);
                    (self.half(2, block * 2) * power * scale) * value
                }
            }
        }
    }

    /// Offsets of the f16 numbers in a block; E8M0 needs no care.
    fn halves_of(kind: TensorKind) -> &'static [usize] {
        match kind {
            TensorKind::MXFP4 | TensorKind::INT8 | TensorKind::FP8 => &[],
            TensorKind::Q4_1 | TensorKind::Q5_1 | TensorKind::Q4_K | TensorKind::Q5_K => &[0, 2],
            TensorKind::Q2_K => &[80, 82],
            TensorKind::Q3_K => &[108],
            TensorKind::Q6_K => &[208],
            _ => &[0],
        }
    }

    #[test]
    fn packed_weights_are_the_files_weights() {
        let mut random = zrt_needs::Random::new(1);
        for kind in WEIGHT_KINDS.into_iter().filter(|kind| kind.is_quantised()) {
            let elements = 256 * 5;
            let block_bytes = kind.block_bytes() as usize;
            let mut file: Vec<u8> = (0..elements / kind.block_elements() as usize * block_bytes)
                .map(|_| random.word() as u8)
                .collect();
            // Scales must be finite: clear the top exponent bit of each f16.
            for block in file.chunks_exact_mut(block_bytes) {
                halves_of(kind).iter().for_each(|at| block[at + 1] &= 0xbf);
                if matches!(kind, TensorKind::INT8 | TensorKind::FP8) {
                    block[3] &= 0xbf;
                    block[4..].iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|nan| *nan &= 0xfe);
                }
            }
            let layout = WeightLayout::new(kind, elements as u64).expect("packed type");
            let packed = Packed { layout: &layout, bytes: &layout.pack(kind, &file) };
            let expected = dequantise(kind, &file).expect("known type");
            assert_eq!(expected.len(), elements);
            for (element, expected) in expected.iter().enumerate() {
                let found = packed.value(kind, element);
                assert_eq!(found.to_bits(), expected.to_bits(), "{kind} element {element}");
            }
        }
    }

    /// Q3_K has two bytes more in a superblock, so that its scales are aligned; types with a codebook have codes of 4
    /// bits instead.
    #[test]
    fn repacking_adds_no_bytes_but_these() {
        for kind in WEIGHT_KINDS {
            let elements = 1u64 << 20;
            let layout = WeightLayout::new(kind, elements).expect("packed type");
            let superblock = match kind {
                TensorKind::Q3_K => 112,
                _ if code_table(kind).is_some() => 138,
                _ => 256 / kind.block_elements() * kind.block_bytes(),
            };
            let table = if code_table(kind).is_some() { CODE_TABLE_BYTES } else { 0 };
            assert_eq!(layout.len.0, (elements / 256 * superblock + table).next_multiple_of(256), "{kind}");
        }
    }
}
