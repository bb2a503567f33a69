//! Layout of weights in device memory, and the repacking of GGUF blocks into it (`docs/kernels.md`, weight layouts).
//!
//! Contract: bits are moved, never computed with: the device sees the same scales and quants as the file, but for
//! types with a codebook, which become codes of 4 bits. Planes start on 256-byte boundaries. Quantised rows lie in
//! tiles of [`TILE_ROWS`], so that lanes with a weight row each load what lies side by side; rows, chunks and scales
//! that a tile or segment lacks are zeros. Rows of floats lie one after the other, of each whole segment the pieces of
//! [`FLOAT_PIECE_BYTES`] in the order in which lanes with a chunk each load them. Vectors stay as in the file.
//! Repacking runs once at load and allocates the packed tensor.

mod repack;

use crate::gguf::{TensorKind, codebooks};
use crate::weights::WeightClass;
use zrt_mem::ByteLen;
use zrt_mem::heap::{Region, RegionPlanner};
use zrt_protocol::{FLOAT_PIECE_BYTES, SEGMENT_BLOCKS, TILE_ROWS};

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
    /// In which order its floats lie.
    pub order: FloatOrder,
}

/// The order of floats in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOrder {
    /// As in the file: of vectors.
    File,
    /// As products load them: of matrices.
    Loads,
}

impl FloatOrder {
    /// That of a weight.
    pub const fn of(class: WeightClass) -> FloatOrder {
        if class.is_vector() { FloatOrder::File } else { FloatOrder::Loads }
    }
}

/// Rows of a tile.
const ROWS: u64 = TILE_ROWS as u64;
/// Chunks of a segment, and of a superblock.
const SEGMENT_CHUNKS: u64 = SEGMENT_BLOCKS as u64;

/// What a plane holds, in units of so many bytes, and so the order in which these lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plane {
    /// Rows one after the other, in elements: of each whole segment its pieces, then the rest as in the file.
    Rows(u64),
    /// Values of each chunk: a tile's chunks one after the other, of each its 16 rows.
    Values(u64),
    /// Scales of each chunk: a tile's segments one after the other, of each its 16 rows, of each 8 chunks.
    Scales(u64),
    /// What 8 chunks share: a tile's superblocks one after the other, of each its 16 rows.
    Superblocks(u64),
}

/// The planes of a type.
fn planes_of(kind: TensorKind) -> Option<&'static [Plane]> {
    use Plane::{Rows, Scales, Superblocks, Values};
    Some(match kind {
        TensorKind::F32 => &[Rows(4)],
        TensorKind::F16 | TensorKind::BF16 => &[Rows(2)],
        TensorKind::Q8_0 => &[Values(32), Scales(2)],
        TensorKind::Q4_0 | TensorKind::IQ4_NL => &[Values(16), Scales(2)],
        TensorKind::Q4_1 => &[Values(16), Scales(4)],
        TensorKind::Q5_0 => &[Values(16), Values(4), Scales(2)],
        TensorKind::Q5_1 => &[Values(16), Values(4), Scales(4)],
        TensorKind::Q2_K => &[Values(8), Scales(2), Superblocks(4)],
        TensorKind::Q3_K => &[Values(8), Values(4), Scales(1), Superblocks(8)],
        TensorKind::Q4_K => &[Values(16), Superblocks(4), Scales(1), Superblocks(4)],
        TensorKind::Q5_K => &[Values(16), Values(4), Scales(1), Superblocks(8)],
        TensorKind::Q6_K => &[Values(16), Values(8), Scales(2), Superblocks(2)],
        TensorKind::IQ4_XS => &[Values(16), Superblocks(8)],
        TensorKind::MXFP4 => &[Values(16), Scales(1)],
        TensorKind::INT8 | TensorKind::FP8 => &[Values(32), Scales(4)],
        _ if code_table(kind).is_some() => &[Values(16), Scales(1), Superblocks(2)],
        _ => return None,
    })
}

/// A matrix in tiles.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    /// Chunks of a row.
    chunks: u64,
    /// Segments of a row, the last of which may lack chunks.
    segments: u64,
}

impl Tiles {
    fn new(columns: u64) -> Tiles {
        let chunks = columns.div_ceil(CHUNK_COLUMNS);
        Tiles { chunks, segments: chunks.div_ceil(SEGMENT_CHUNKS) }
    }

    /// Number of the unit of a plane that has chunk `chunk` of row `row`.
    fn unit(self, plane: Plane, row: u64, chunk: u64) -> u64 {
        let (tile, row) = (row / ROWS, row % ROWS);
        let segment = (tile * self.segments + chunk / SEGMENT_CHUNKS) * ROWS + row;
        match plane {
            Plane::Rows(_) => 0,
            Plane::Values(_) => (tile * self.chunks + chunk) * ROWS + row,
            Plane::Scales(_) => segment * SEGMENT_CHUNKS + chunk % SEGMENT_CHUNKS,
            Plane::Superblocks(_) => segment,
        }
    }
}

impl Plane {
    fn unit_bytes(self) -> u64 {
        match self {
            Plane::Rows(bytes) | Plane::Values(bytes) | Plane::Scales(bytes) | Plane::Superblocks(bytes) => {
                bytes
            }
        }
    }

    /// Bytes of a plane of a matrix; `None` on overflow.
    fn bytes(self, rows: u64, columns: u64) -> Option<u64> {
        let tiles = Tiles::new(columns);
        let rows_held = rows.checked_next_multiple_of(ROWS)?;
        let units = match self {
            Plane::Rows(_) => rows.checked_mul(columns),
            Plane::Values(_) => rows_held.checked_mul(tiles.chunks),
            Plane::Scales(_) => rows_held.checked_mul(tiles.segments)?.checked_mul(SEGMENT_CHUNKS),
            Plane::Superblocks(_) => rows_held.checked_mul(tiles.segments),
        };
        units?.checked_mul(self.unit_bytes())
    }

    /// Bytes behind a plane that a kernel may load and takes nothing from: of a last segment that lacks chunks it loads
    /// as many as of a whole one.
    fn bytes_behind(self, columns: u64) -> u64 {
        let chunks = Tiles::new(columns).chunks;
        match self {
            Plane::Values(bytes) => (chunks.next_multiple_of(SEGMENT_CHUNKS) - chunks) * ROWS * bytes,
            _ => 0,
        }
    }
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
    /// The layout of a matrix of `rows` rows of `columns` columns of `kind`; `None` for a type without a kernel, for
    /// columns that are no whole blocks, or on overflow.
    pub fn new(kind: TensorKind, rows: u64, columns: u64) -> Option<WeightLayout> {
        WeightLayout::in_order(kind, rows, columns, FloatOrder::Loads)
    }

    /// The same of a weight whose floats, if it has any, lie in this order.
    pub fn in_order(kind: TensorKind, rows: u64, columns: u64, order: FloatOrder) -> Option<WeightLayout> {
        if !columns.is_multiple_of(kind.block_elements()) {
            return None;
        }
        let mut planner = RegionPlanner::new();
        let mut planes = [None; PLANES_MAX];
        for (region, plane) in planes.iter_mut().zip(planes_of(kind)?) {
            let len = ByteLen(plane.bytes(rows, columns)?);
            let placed = planner.push(ByteLen(len.0.checked_add(plane.bytes_behind(columns))?))?;
            *region = Some(Region { len, ..placed });
        }
        if code_table(kind).is_some() {
            planes[PLANES_MAX - 1] = Some(planner.push(ByteLen(CODE_TABLE_BYTES))?);
        }
        Some(WeightLayout { planes, len: planner.len()?, order })
    }

    /// Bytes of the planes, without what aligns them.
    pub fn used_bytes(&self) -> u64 {
        self.planes.iter().flatten().map(|plane| plane.len.0).sum()
    }

    /// Repacks the file's bytes of a matrix of `columns` columns into its layout.
    pub fn pack(&self, kind: TensorKind, columns: u64, file: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; self.len.0 as usize];
        if !kind.is_quantised() {
            let chunk = CHUNK_COLUMNS * kind.block_bytes();
            match self.order {
                FloatOrder::File => put(&mut packed, 0, file),
                FloatOrder::Loads => rows_of_pieces(&mut packed, file, columns, chunk as usize),
            }
            return packed;
        }
        let starts = self.planes.map(|plane| plane.map_or(0, |region| region.offset.0));
        if let Some((values, scale)) = code_table(kind) {
            let start = starts[PLANES_MAX - 1] as usize;
            put(&mut packed, start, &values.map(|value| value as u8));
            put(&mut packed, start + values.len(), &scale.to_le_bytes());
        }
        let (tiles, planes) = (Tiles::new(columns), planes_of(kind).unwrap_or_default());
        let row_blocks = columns / kind.block_elements();
        let block_chunks = kind.block_elements() / CHUNK_COLUMNS;
        for (index, block) in file.chunks_exact(kind.block_bytes() as usize).enumerate() {
            let (row, first) = (index as u64 / row_blocks, index as u64 % row_blocks * block_chunks);
            repack::block(kind, block, |plane, chunk, at, bytes| {
                let of = planes[plane];
                let unit = tiles.unit(of, row, first + chunk as u64);
                put(&mut packed, (starts[plane] + unit * of.unit_bytes()) as usize + at, bytes);
            });
        }
        packed
    }
}

/// Rows of floats, of which a chunk has `chunk` bytes: the pieces of whole segments in their order, then the rest.
fn rows_of_pieces(packed: &mut [u8], file: &[u8], columns: u64, chunk: usize) {
    const PIECE: usize = FLOAT_PIECE_BYTES as usize;
    let segment = chunk * SEGMENT_CHUNKS as usize;
    let row = columns as usize * chunk / CHUNK_COLUMNS as usize;
    if row == 0 {
        return;
    }
    for (packed, file) in packed.chunks_exact_mut(row).zip(file.chunks_exact(row)) {
        let (mut to, mut from) = (packed.chunks_exact_mut(segment), file.chunks_exact(segment));
        for (packed, file) in to.by_ref().zip(from.by_ref()) {
            for (number, piece) in file.chunks_exact(PIECE).enumerate() {
                let (of_segment, of_chunk) = (number * PIECE / chunk, number % (chunk / PIECE));
                put(packed, (of_chunk * SEGMENT_CHUNKS as usize + of_segment) * PIECE, piece);
            }
        }
        to.into_remainder().copy_from_slice(from.remainder());
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
        columns: usize,
    }

    /// An element of it, by the numbers of its chunk in planes of values and of scales, and of its superblock.
    struct Place {
        chunk: usize,
        scale: usize,
        block: usize,
        /// Number in the superblock.
        number: usize,
        lane: usize,
    }

    impl Packed<'_> {
        fn place(&self, element: usize) -> Place {
            let (row, column) = (element / self.columns, element % self.columns);
            let (tile, row) = (row / 16, row % 16);
            let (chunks, chunk) = (self.columns.div_ceil(32), column / 32);
            let block = (tile * chunks.div_ceil(8) + chunk / 8) * 16 + row;
            Place {
                chunk: (tile * chunks + chunk) * 16 + row,
                scale: block * 8 + chunk % 8,
                block,
                number: chunk % 8,
                lane: column % 32,
            }
        }

        fn plane(&self, number: usize) -> &[u8] {
            &self.bytes[self.layout.planes[number].expect("used plane").offset.0 as usize..]
        }

        fn half(&self, plane: usize, at: usize) -> f32 {
            f16::from_le_bytes([self.plane(plane)[at], self.plane(plane)[at + 1]]).to_f32()
        }

        fn single(&self, plane: usize, at: usize) -> f32 {
            f32::from_le_bytes(std::array::from_fn(|byte| self.plane(plane)[at + byte]))
        }

        /// First byte of an element of a row of floats, of `bytes` each.
        fn float_at(&self, element: usize, bytes: usize) -> usize {
            let (row, column) = (element / self.columns, element % self.columns);
            let (segment, chunk, in_chunk) = (column / 256, column / 32 % 8, column % 32 * bytes);
            let in_row = match segment < self.columns / 256 {
                true => segment * 256 * bytes + (in_chunk / 32 * 8 + chunk) * 32 + in_chunk % 32,
                false => column * bytes,
            };
            row * self.columns * bytes + in_row
        }

        fn nibble(&self, of: &Place) -> u8 {
            (self.plane(0)[of.chunk * 16 + of.lane % 16] >> (of.lane / 16 * 4)) & 15
        }

        /// Two bits of an element, from 8 bytes for each chunk.
        fn pair(&self, plane: usize, of: &Place) -> u8 {
            let byte = of.chunk * 8 + of.lane / 16 * 4 + of.lane % 4;
            self.plane(plane)[byte] >> (of.lane % 16 / 4 * 2) & 3
        }

        /// One bit of an element, from 4 bytes of plane 1 for each chunk.
        fn bit(&self, of: &Place) -> u8 {
            self.plane(1)[of.chunk * 4 + of.lane % 4] >> (of.lane / 4) & 1
        }

        /// The two 6-bit numbers of a chunk: low nibbles in plane 2, upper bits in the nibbles at `high` of plane 3.
        fn six_bits(&self, of: &Place, high: usize) -> [u8; 2] {
            let upper = self.plane(3)[high + of.number / 2] >> (of.number % 2 * 4);
            let low = self.plane(2)[of.scale];
            [(low & 15) | (upper & 3) << 4, (low >> 4) | (upper >> 2 & 3) << 4]
        }

        fn value(&self, kind: TensorKind, element: usize) -> f32 {
            const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
            const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
            let of = &self.place(element);
            let (scale, block, half) = (of.scale, of.block, of.lane / 16);
            let nibble = || self.nibble(of);
            let byte = || self.plane(0)[of.chunk * 32 + of.lane];
            let five = || f32::from(nibble() | self.bit(of) << 4);
            let of_table = |table: [i8; 16]| f32::from(table[usize::from(nibble())]);
            match kind {
                TensorKind::F32 => self.single(0, self.float_at(element, 4)),
                TensorKind::F16 => self.half(0, self.float_at(element, 2)),
                TensorKind::BF16 => {
                    let at = self.float_at(element, 2);
                    f32::from_bits(u32::from_le_bytes([0, 0, self.plane(0)[at], self.plane(0)[at + 1]]))
                }
                TensorKind::Q8_0 => self.half(1, scale * 2) * f32::from(byte() as i8),
                TensorKind::INT8 => self.single(1, scale * 4) * f32::from(byte() as i8),
                TensorKind::FP8 => self.single(1, scale * 4) * e4m3::value(byte()),
                TensorKind::Q4_0 => self.half(1, scale * 2) * (f32::from(nibble()) - 8.0),
                TensorKind::Q4_1 => {
                    self.half(1, scale * 4).mul_add(f32::from(nibble()), self.half(1, scale * 4 + 2))
                }
                TensorKind::Q5_0 => self.half(2, scale * 2) * (five() - 16.0),
                TensorKind::Q5_1 => self.half(2, scale * 4).mul_add(five(), self.half(2, scale * 4 + 2)),
                TensorKind::IQ4_NL => self.half(1, scale * 2) * of_table(IQ4),
                TensorKind::MXFP4 => {
                    let exponent = i32::from(self.plane(1)[scale]) - 128;
                    (2f64.powi(exponent) * f64::from(of_table(E2M1))) as f32
                }
                TensorKind::Q2_K => {
                    let scales = self.plane(1)[scale * 2 + half];
                    let factor = self.half(2, block * 4) * f32::from(scales & 15);
                    let minimum = self.half(2, block * 4 + 2) * f32::from(scales >> 4);
                    factor.mul_add(f32::from(self.pair(0, of)), -minimum)
                }
                TensorKind::Q3_K => {
                    let factor = f32::from(self.six_bits(of, block * 8 + 4)[half]) - 32.0;
                    let quant = self.pair(0, of) | self.bit(of) << 2;
                    (self.half(3, block * 8) * factor) * (f32::from(quant) - 4.0)
                }
                TensorKind::Q4_K | TensorKind::Q5_K => {
                    let (superblock, at, high, quant) = match kind {
                        TensorKind::Q4_K => (1, block * 4, block * 4, f32::from(nibble())),
                        _ => (3, block * 8, block * 8 + 4, five()),
                    };
                    let [factor, minimum] = self.six_bits(of, high).map(f32::from);
                    let (d, dmin) = (self.half(superblock, at), self.half(superblock, at + 2));
                    (d * factor).mul_add(quant, -(dmin * minimum))
                }
                TensorKind::Q6_K => {
                    let quant = nibble() | self.pair(1, of) << 4;
                    let factor = self.half(3, block * 2) * f32::from(self.plane(2)[scale * 2 + half] as i8);
                    factor * (f32::from(quant) - 32.0)
                }
                TensorKind::IQ4_XS => {
                    let bytes = &self.plane(1)[block * 8..];
                    let high = u16::from_le_bytes([bytes[2], bytes[3]]) >> (of.number * 2) & 3;
                    let low = bytes[4 + of.number / 2] >> (of.number % 2 * 4) & 15;
                    let factor = f32::from(low) + f32::from(high) * 16.0 - 32.0;
                    (self.half(1, block * 8) * factor) * of_table(IQ4)
                }
                _ => {
                    let table: [u8; 20] = self.plane(3)[..20].try_into().expect("a table");
                    let power = f32::from_le_bytes(std::array::from_fn(|byte| table[16 + byte]));
                    let factor = f32::from(self.plane(1)[scale] >> (half * 4) & 15) * 2.0 + 1.0;
                    let value = f32::from(table[usize::from(nibble())] as i8);
                    (self.half(2, block * 2) * power * factor) * value
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

    /// A file's bytes of a matrix whose scales are finite.
    fn random_file(kind: TensorKind, elements: usize, random: &mut zrt_needs::Random) -> Vec<u8> {
        let block_bytes = kind.block_bytes() as usize;
        let bytes = elements / kind.block_elements() as usize * block_bytes;
        let mut file: Vec<u8> = (0..bytes).map(|_| random.word() as u8).collect();
        // Clear the top exponent bit of each f16.
        for block in file.chunks_exact_mut(block_bytes) {
            halves_of(kind).iter().for_each(|at| block[at + 1] &= 0xbf);
            if matches!(kind, TensorKind::INT8 | TensorKind::FP8) {
                block[3] &= 0xbf;
                block[4..].iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|nan| *nan &= 0xfe);
            }
        }
        file
    }

    /// Tiles of 16 rows and one of fewer, several segments, and where a type can a last one of two chunks.
    #[test]
    fn packed_weights_are_the_files_weights() {
        let mut random = zrt_needs::Random::new(1);
        for kind in WEIGHT_KINDS {
            for columns in [768, 320, 300].into_iter().filter(|columns| columns % kind.block_elements() == 0)
            {
                let elements = 21 * columns as usize;
                let file = random_file(kind, elements, &mut random);
                let layout = WeightLayout::new(kind, 21, columns).expect("packed type");
                let bytes = &layout.pack(kind, columns, &file);
                let packed = Packed { layout: &layout, bytes, columns: columns as usize };
                let expected = dequantise(kind, &file).expect("known type");
                assert_eq!(expected.len(), elements);
                for (element, expected) in expected.iter().enumerate() {
                    let found = packed.value(kind, element);
                    assert_eq!(found.to_bits(), expected.to_bits(), "{kind} {columns} element {element}");
                }
            }
        }
    }

    #[test]
    fn a_vector_stays_as_in_the_file() {
        let file: Vec<u8> = (0..4 * 320).map(|byte| (byte % 251) as u8).collect();
        let layout = WeightLayout::in_order(TensorKind::F32, 1, 320, FloatOrder::File).expect("packed type");
        assert_eq!(layout.pack(TensorKind::F32, 320, &file), file);
        let matrix = WeightLayout::new(TensorKind::F32, 1, 320).expect("packed type");
        assert_ne!(matrix.pack(TensorKind::F32, 320, &file), file);
    }

    /// Q3_K has two bytes more in a superblock, so that its scales are aligned; types with a codebook have codes of 4
    /// bits instead.
    #[test]
    fn repacking_adds_no_bytes_but_these() {
        for kind in WEIGHT_KINDS {
            let (rows, columns) = (256, 4096);
            let layout = WeightLayout::new(kind, rows, columns).expect("packed type");
            let superblock = match kind {
                TensorKind::Q3_K => 112,
                _ if code_table(kind).is_some() => 138,
                _ => 256 / kind.block_elements() * kind.block_bytes(),
            };
            let table = if code_table(kind).is_some() { CODE_TABLE_BYTES } else { 0 };
            let expected = rows * columns / 256 * superblock + table;
            assert_eq!(layout.len.0, expected.next_multiple_of(256), "{kind}");
        }
    }

    /// A last segment of 2 chunks: 16 rows of scales for 8, and behind the values 6 chunks that a kernel may load.
    #[test]
    fn what_a_segment_lacks_is_there() {
        let layout = WeightLayout::new(TensorKind::Q8_0, 3, 320).expect("packed type");
        let planes: Vec<_> =
            layout.planes.iter().flatten().map(|plane| (plane.offset.0, plane.len.0)).collect();
        assert_eq!(planes, [(0, 16 * 320), (16 * 512, 16 * 2 * 16)]);
        assert_eq!(layout.used_bytes(), 16 * 320 + 16 * 2 * 16);
        assert!(WeightLayout::new(TensorKind::Q8_0, 3, 300).is_none());
    }

    #[test]
    fn only_weights_that_kernels_read_have_a_layout() {
        for kind in TensorKind::ALL {
            let layout = WeightLayout::new(*kind, 16, 256);
            assert_eq!(layout.is_some(), WEIGHT_KINDS.contains(kind), "{kind}");
        }
    }
}
