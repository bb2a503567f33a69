//! Layout of weights in device memory, and the repacking of GGUF blocks into it (`docs/kernels.md`, weight layouts).
//!
//! Contract: bytes are moved, never computed with: the device sees the same scales and quants as the file. Planes start
//! on 256-byte boundaries. Repacking runs once at load and allocates the packed tensor.

use crate::gguf::TensorKind;
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
        TensorKind::Q4_0 => &[(32, 16), (32, 2)],
        TensorKind::Q4_K => &[(32, 16), (256, 4), (32, 1), (256, 4)],
        TensorKind::Q6_K => &[(32, 16), (32, 8), (32, 2), (256, 2)],
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
        Some(WeightLayout { planes, len: planner.len()? })
    }

    /// Repacks a tensor's file bytes into this layout.
    pub fn pack(&self, kind: TensorKind, file: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; self.len.0 as usize];
        let starts = self.planes.map(|plane| plane.map_or(0, |region| region.offset.0 as usize));
        match kind {
            TensorKind::Q8_0 => pack_blocks(file, 34, |index, block| {
                put(&mut packed, starts[0] + index * 32, &block[2..]);
                put(&mut packed, starts[1] + index * 2, &block[..2]);
            }),
            TensorKind::Q4_0 => pack_blocks(file, 18, |index, block| {
                put(&mut packed, starts[0] + index * 16, &block[2..]);
                put(&mut packed, starts[1] + index * 2, &block[..2]);
            }),
            TensorKind::Q4_K => {
                pack_blocks(file, 144, |index, block| pack_q4_k(&mut packed, starts, index, block))
            }
            TensorKind::Q6_K => {
                pack_blocks(file, 210, |index, block| pack_q6_k(&mut packed, starts, index, block))
            }
            _ => packed[..file.len()].copy_from_slice(file),
        }
        packed
    }
}

fn pack_blocks(file: &[u8], block_bytes: usize, mut pack: impl FnMut(usize, &[u8])) {
    for (index, block) in file.chunks_exact(block_bytes).enumerate() {
        pack(index, block);
    }
}

fn put(packed: &mut [u8], at: usize, bytes: &[u8]) {
    packed[at..at + bytes.len()].copy_from_slice(bytes);
}

/// 32 four-bit values as the chunk's 16 bytes: element j low, element j + 16 high.
fn nibbles(quants: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|j| (quants[j] & 15) | (quants[j + 16] & 15) << 4)
}

fn pack_q4_k(packed: &mut [u8], starts: [usize; PLANES_MAX], index: usize, block: &[u8]) {
    put(packed, starts[1] + index * 4, &block[..4]);
    let scales = &block[4..16];
    let mut high = [0u8; 4];
    for chunk in 0..8 {
        let shift = 4 * (chunk & 1);
        let quants: [u8; 32] = std::array::from_fn(|j| (block[16 + chunk / 2 * 32 + j] >> shift) & 15);
        put(packed, starts[0] + (index * 8 + chunk) * 16, &nibbles(&quants));
        // The file keeps 6-bit scale and minimum of chunks 0..4 whole, of chunks 4..8 split into 4 + 2 bits.
        let (low, upper) = match chunk {
            0..4 => (
                (scales[chunk] & 15) | scales[chunk + 4] << 4,
                (scales[chunk] >> 4 & 3) | (scales[chunk + 4] >> 4 & 3) << 2,
            ),
            _ => (scales[chunk + 4], (scales[chunk - 4] >> 6) | (scales[chunk] >> 6) << 2),
        };
        packed[starts[2] + index * 8 + chunk] = low;
        high[chunk / 2] |= upper << shift;
    }
    put(packed, starts[3] + index * 4, &high);
}

fn pack_q6_k(packed: &mut [u8], starts: [usize; PLANES_MAX], index: usize, block: &[u8]) {
    for chunk in 0..8 {
        let (half, run) = (chunk / 4, chunk % 4);
        let low = &block[half * 64 + (run & 1) * 32..][..32];
        let high = &block[128 + half * 32..][..32];
        let quants: [u8; 32] =
            std::array::from_fn(|j| (low[j] >> (run / 2 * 4) & 15) | (high[j] >> (run * 2) & 3) << 4);
        let mut top = [0u8; 8];
        for (element, quant) in quants.iter().enumerate() {
            let (dword, bits, byte) = (element / 16, element % 16 / 4 * 2, element % 4);
            top[dword * 4 + byte] |= (quant >> 4) << bits;
        }
        let at = index * 8 + chunk;
        put(packed, starts[0] + at * 16, &nibbles(&quants));
        put(packed, starts[1] + at * 8, &top);
        put(packed, starts[2] + at * 2, &block[192 + chunk * 2..][..2]);
    }
    put(packed, starts[3] + index * 2, &block[208..210]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::dequantise::dequantise;
    use half::f16;

    /// Reads the device layout back as the kernels do, from the description in `docs/kernels.md` alone.
    fn device_weight(kind: TensorKind, layout: &WeightLayout, packed: &[u8], element: usize) -> f32 {
        let plane = |number: usize| &packed[layout.planes[number].expect("used plane").offset.0 as usize..];
        let half = |bytes: &[u8], at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();
        let (chunk, lane) = (element / 32, element % 32);
        let (block, sub) = (chunk / 8, chunk % 8);
        let nibble = || (plane(0)[chunk * 16 + lane % 16] >> (lane / 16 * 4)) & 15;
        match kind {
            TensorKind::Q8_0 => half(plane(1), chunk * 2) * f32::from(plane(0)[chunk * 32 + lane] as i8),
            TensorKind::Q4_0 => half(plane(1), chunk * 2) * (f32::from(nibble()) - 8.0),
            TensorKind::Q4_K => {
                let (low, high) = (plane(2)[chunk], plane(3)[block * 4 + sub / 2] >> (sub % 2 * 4));
                let scale = half(plane(1), block * 4) * f32::from((low & 15) | (high & 3) << 4);
                let minimum = half(plane(1), block * 4 + 2) * f32::from((low >> 4) | (high >> 2 & 3) << 4);
                scale.mul_add(f32::from(nibble()), -minimum)
            }
            TensorKind::Q6_K => {
                let top = plane(1)[chunk * 8 + lane / 16 * 4 + lane % 4] >> (lane % 16 / 4 * 2);
                let quant = nibble() | (top & 3) << 4;
                let scale = half(plane(3), block * 2) * f32::from(plane(2)[chunk * 2 + lane / 16] as i8);
                scale * (f32::from(quant) - 32.0)
            }
            _ => unreachable!("float types are copied"),
        }
    }

    #[test]
    fn packed_weights_are_the_files_weights() {
        let mut random = zrt_needs::Random::new(1);
        for kind in [TensorKind::Q8_0, TensorKind::Q4_0, TensorKind::Q4_K, TensorKind::Q6_K] {
            let elements = 256 * 5;
            let block_bytes = kind.block_bytes() as usize;
            let mut file: Vec<u8> = (0..elements / kind.block_elements() as usize * block_bytes)
                .map(|_| random.word() as u8)
                .collect();
            // Scales must be finite: clear the top exponent bit of each f16.
            let scale_bytes: &[usize] = match kind {
                TensorKind::Q4_K => &[1, 3],
                TensorKind::Q6_K => &[209],
                _ => &[1],
            };
            for block in file.chunks_exact_mut(block_bytes) {
                scale_bytes.iter().for_each(|at| block[*at] &= 0xbf);
            }
            let layout = WeightLayout::new(kind, elements as u64).expect("packed type");
            let packed = layout.pack(kind, &file);
            let expected = dequantise(kind, &file).expect("known type");
            assert_eq!(expected.len(), elements);
            for (element, expected) in expected.iter().enumerate() {
                let found = device_weight(kind, &layout, &packed, element);
                assert_eq!(found.to_bits(), expected.to_bits(), "{kind} element {element}");
            }
        }
    }

    #[test]
    fn repacking_adds_no_bytes_but_alignment() {
        for kind in [TensorKind::Q8_0, TensorKind::Q4_0, TensorKind::Q4_K, TensorKind::Q6_K] {
            let elements = 1u64 << 20;
            let layout = WeightLayout::new(kind, elements).expect("packed type");
            assert_eq!(layout.len.0, elements / kind.block_elements() * kind.block_bytes());
        }
    }
}
