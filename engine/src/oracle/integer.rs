//! MATMUL with activations as integers: A8 and A16 of `docs/arithmetic.md`.
//!
//! Contract: plain loops in the written order. Integer sums are exact; each float operation rounds once. Cost: a row's
//! blocks are unpacked for each product.

use super::arithmetic::reciprocal;
use super::blocks::{Block, COLUMNS, IntegerWeights, Scale};
use crate::activations::Activations;

/// Blocks of a segment: 256 columns.
const SEGMENT_BLOCKS: usize = 8;
/// A block whose amplitude is below this counts as zeros: the quotient of its factor would not be exact.
const AMPLITUDE_MIN: f32 = f32::from_bits((127 - 100) << 23);

/// A block of an activation vector.
struct Activation {
    integers: [i32; COLUMNS],
    factor: f32,
    /// Minus the sum of the values that the integers represent.
    negative_sum: f32,
}

/// QUANT of at most 32 elements; missing ones count as 0.
fn quantise(elements: &[f32], integer_max: i32) -> Activation {
    let amplitude = elements.iter().fold(0f32, |amplitude, x| amplitude.max(x.abs()));
    if amplitude < AMPLITUDE_MIN {
        return Activation { integers: [0; COLUMNS], factor: 0.0, negative_sum: -0.0 };
    }
    let factor = amplitude / integer_max as f32;
    let inverse = reciprocal(factor);
    let mut integers = [0; COLUMNS];
    for (integer, x) in integers.iter_mut().zip(elements) {
        // Rust's `round` takes halves away from zero.
        *integer = (x * inverse).round() as i32;
    }
    let sum: i32 = integers.iter().sum();
    Activation { integers, factor, negative_sum: -(factor * sum as f32) }
}

/// The activations of one row.
pub struct QuantisedRow {
    blocks: Vec<Activation>,
    activations: Activations,
}

impl QuantisedRow {
    /// QUANT of a vector.
    pub fn new(input: &[f32], activations: Activations) -> QuantisedRow {
        let integer_max = activations.integer_max().unwrap_or_default();
        let blocks = input.chunks(COLUMNS).map(|elements| quantise(elements, integer_max)).collect();
        QuantisedRow { blocks, activations }
    }

    /// As it lies in memory (`docs/kernels.md`), as bit patterns of words.
    pub fn words(&self) -> Vec<f32> {
        let columns = (self.blocks.len() * COLUMNS) as u32;
        let word_count = self.activations.row_words(columns) as usize;
        let factors = word_count / (self.integer_words() + 2) * self.integer_words();
        let mut words = vec![0; word_count];
        let none = quantise(&[], 1);
        for index in 0..factors / self.integer_words() {
            let block = self.blocks.get(index).unwrap_or(&none);
            let [factor, sum] = places(factors, index);
            (words[factor], words[sum]) = (block.factor.to_bits(), block.negative_sum.to_bits());
            for (column, integer) in block.integers.iter().enumerate() {
                for (limb, byte) in self.bytes(*integer).enumerate() {
                    let at = index * self.integer_words() + limb * COLUMNS / 4 + column / 4;
                    words[at] |= u32::from(byte) << (column % 4 * 8);
                }
            }
        }
        words.into_iter().map(f32::from_bits).collect()
    }

    /// The reverse, of a row of `columns`.
    pub fn from_words(words: &[f32], columns: u32, activations: Activations) -> QuantisedRow {
        let mut row = QuantisedRow { blocks: Vec::new(), activations };
        let word = |at: usize| words[at].to_bits();
        let factors = words.len() / (row.integer_words() + 2) * row.integer_words();
        for index in 0..columns as usize / COLUMNS {
            let integers = std::array::from_fn(|column| {
                let limb = |limb: usize| {
                    let at = index * row.integer_words() + limb * COLUMNS / 4 + column / 4;
                    i32::from((word(at) >> (column % 4 * 8)) as i8)
                };
                (0..activations.integer_bytes() as usize).fold(0, |value, byte| value * 256 + limb(byte))
            });
            let [factor, sum] = places(factors, index).map(|at| words[at]);
            row.blocks.push(Activation { integers, factor, negative_sum: sum });
        }
        row
    }

    /// Words of a block's integers.
    fn integer_words(&self) -> usize {
        COLUMNS / 4 * self.activations.integer_bytes() as usize
    }

    /// The signed bytes of an integer, high byte first: 256 * h + l.
    fn bytes(&self, integer: i32) -> impl Iterator<Item = u8> {
        let high = (integer + 128) >> 8;
        let both = [high as u8, integer as u8];
        both.into_iter().skip(2 - self.activations.integer_bytes() as usize)
    }
}

/// Words of a block's factor and sum: of each segment first the factors, then the sums.
fn places(factors: usize, index: usize) -> [usize; 2] {
    let factor = factors + index / SEGMENT_BLOCKS * 2 * SEGMENT_BLOCKS + index % SEGMENT_BLOCKS;
    [factor, factor + SEGMENT_BLOCKS]
}

/// MATMUL with the activations of one row: weight rows of as many blocks.
pub fn matmul(weights: &IntegerWeights, input: &QuantisedRow, output: &mut [f32]) {
    for (row, y) in output.iter_mut().enumerate() {
        *y = dot(weights, row * input.blocks.len(), &input.blocks);
    }
}

/// The sum over the segments of a row that begins at block `first`.
fn dot(weights: &IntegerWeights, first: usize, activations: &[Activation]) -> f32 {
    let segments = activations.chunks(SEGMENT_BLOCKS).enumerate();
    let mut sums = segments.map(|(segment, activations)| {
        activations.iter().enumerate().fold(0f32, |sum, (index, activation)| {
            add(&weights.block(first + segment * SEGMENT_BLOCKS + index), activation, sum)
        })
    });
    let total = sums.next().unwrap_or(0.0);
    sums.fold(total, |total, sum| total + sum)
}

/// Adds the term of a block to `sum`.
fn add(block: &Block, activation: &Activation, sum: f32) -> f32 {
    let product = |columns: std::ops::Range<usize>| -> i64 {
        let pairs = block.integers[columns.clone()].iter().zip(&activation.integers[columns]);
        pairs.map(|(w, q)| i64::from(*w) * i64::from(*q)).sum()
    };
    let half = COLUMNS / 2;
    match block.scale {
        Scale::One(scale) => {
            let term = product(0..COLUMNS) as f32 * scale;
            term.mul_add(activation.factor, sum)
        }
        Scale::WithMinimum(scale, minimum) => {
            let term = product(0..COLUMNS) as f32 * scale;
            minimum.mul_add(activation.negative_sum, term.mul_add(activation.factor, sum))
        }
        Scale::Halves(scale, [first, second]) => {
            let both = i64::from(first) * product(0..half) + i64::from(second) * product(half..COLUMNS);
            (both as f32 * scale).mul_add(activation.factor, sum)
        }
        Scale::HalvesWithMinima(scale, factors, minimum, offsets) => {
            let total = |columns: std::ops::Range<usize>| -> i64 {
                activation.integers[columns].iter().map(|q| i64::from(*q)).sum()
            };
            let of_halves = |[first, second]: [i32; 2], lower: i64, upper: i64| {
                (i64::from(first) * lower + i64::from(second) * upper) as f32
            };
            let products = of_halves(factors, product(0..half), product(half..COLUMNS));
            let minima = of_halves(offsets, total(0..half), total(half..COLUMNS));
            let term = (-minima).mul_add(minimum, products * scale);
            term.mul_add(activation.factor, sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::TensorKind;
    use crate::oracle::dequantise::dequantise;
    use crate::weights::WEIGHT_KINDS;
    use half::f16;

    fn product(weights: &IntegerWeights, input: &[f32], activations: Activations, output: &mut [f32]) {
        let row = QuantisedRow::new(input, activations);
        let words = row.words();
        assert_eq!(words.len(), activations.row_words(input.len() as u32) as usize);
        let read = QuantisedRow::from_words(&words, input.len() as u32, activations);
        matmul(weights, &read, output);
    }

    fn weights(kind: TensorKind, bytes: Vec<u8>) -> IntegerWeights {
        IntegerWeights::new(kind, bytes).unwrap()
    }

    fn q8_0(scale: f32, integers: [i8; 32]) -> Vec<u8> {
        let mut bytes = f16::from_f32(scale).to_le_bytes().to_vec();
        bytes.extend(integers.map(|integer| integer as u8));
        bytes
    }

    /// By hand: the largest element is 127 · 2^-7, so the factor is 2^-7 and integers are elements times 128.
    #[test]
    fn integers_are_elements_over_the_factor_halves_away_from_zero() {
        let activation = quantise(&[127.0 / 128.0, -0.5, 2.5 / 128.0, -2.5 / 128.0, 0.0], 127);
        assert_eq!(activation.factor, 1.0 / 128.0);
        assert_eq!(activation.integers[..6], [127, -64, 3, -3, 0, 0]);
        assert_eq!(activation.negative_sum, -63.0 / 128.0);
        let wide = quantise(&[-127.0, 63.5], 127 * 256);
        assert_eq!((wide.factor, &wide.integers[..2]), (1.0 / 256.0, &[-32512, 16256][..]));
    }

    #[test]
    fn a_block_of_almost_nothing_is_zeros() {
        let least = 2f32.powi(-100);
        let below = quantise(&[f32::from_bits(least.to_bits() - 1)], 127);
        assert_eq!((below.factor, below.integers[0]), (0.0, 0));
        // As of any block whose integers add up to 0: minus 0.
        assert_eq!(below.negative_sum.to_bits(), 0x8000_0000);
        assert_eq!(quantise(&[least], 127).integers[0], 127);
    }

    /// By hand: h and l of -32512, 255 and -129 are (-127, 0), (1, -1) and (-1, 127).
    #[test]
    fn integers_of_two_bytes_are_signed_halves() {
        let row = QuantisedRow::new(&[-32512.0, 255.0, -129.0], Activations::A16);
        let words: Vec<u32> = row.words().into_iter().map(f32::to_bits).collect();
        assert_eq!((words[0], words[8]), (0x00ff_0181, 0x007f_ff00));
        // Eight blocks of 16 words, then factors, then sums.
        assert_eq!((words[128], words[136]), (1f32.to_bits(), 32386f32.to_bits()));
        let read = QuantisedRow::from_words(&row.words(), 32, Activations::A16);
        assert_eq!(read.blocks[0].integers[..4], [-32512, 255, -129, 0]);
    }

    /// Block n has 127 at its column n and a factor of n + 1. First come the 32 bytes of each block, and then, for
    /// each segment, eight factors and eight sums; blocks that the vector lacks are zeros with a sum of minus 0.
    #[test]
    fn a_row_lies_in_memory_as_documented() {
        let mut input = [0f32; 288];
        for block in 0..9 {
            input[block * 32 + block] = 127.0 * (block + 1) as f32;
        }
        let row = QuantisedRow::new(&input, Activations::A8);
        let words: Vec<u32> = row.words().into_iter().map(f32::to_bits).collect();
        // 9 chunks take 16 lanes, and so two segments of 8 blocks.
        let (blocks, factors) = (16, 128);
        assert_eq!(words.len(), 160);
        for block in 0..blocks {
            let mut expected = [0; 8];
            let (mut factor, mut sum) = (0.0, -0.0);
            if block < 9 {
                expected[block / 4] = 127 << (block % 4 * 8);
                (factor, sum) = ((block + 1) as f32, -127.0 * (block + 1) as f32);
            }
            assert_eq!(words[block * 8..][..8], expected, "block {block}");
            let at = factors + block / 8 * 16 + block % 8;
            assert_eq!([words[at], words[at + 8]], [factor, sum].map(f32::to_bits), "block {block}");
        }
    }

    /// Rows of two blocks: row n has the weight n + 1 in the first column of its first, and 10 (n + 1) in its second.
    #[test]
    fn each_output_has_its_own_row_of_weights() {
        let block =
            |weight: i8| q8_0(1.0, std::array::from_fn(|column| if column == 0 { weight } else { 0 }));
        let rows: Vec<u8> = (1..4).flat_map(|row| [block(row), block(10 * row)].concat()).collect();
        let mut input = [0f32; 64];
        (input[0], input[32]) = (127.0, 254.0);
        let mut output = [0f32; 3];
        product(&weights(TensorKind::Q8_0, rows), &input, Activations::A8, &mut output);
        assert_eq!(output, [2667.0, 5334.0, 8001.0]);
    }

    /// Integers of a block are added before they become a float: in f32 the 1 would be lost after the first 15.
    #[test]
    fn a_blocks_sum_is_exact() {
        let integers = std::array::from_fn(|column| match column {
            0..15 => 127,
            15 => 1,
            16..31 => -127,
            _ => 0,
        });
        let input: [f32; 32] = std::array::from_fn(|column| if column == 15 { 1.0 } else { 32512.0 });
        let mut output = [0f32];
        product(&weights(TensorKind::Q8_0, q8_0(1.0, integers)), &input, Activations::A16, &mut output);
        assert_eq!(output, [1.0]);
    }

    /// The first block is 127 · 2^24, whose neighbours are 128 away. The two of 63.5 in the second segment add up to
    /// 127, which rounds up to the neighbour; added one after the other, they would be lost.
    #[test]
    fn segments_of_256_columns_have_sums_of_their_own() {
        let mut row = Vec::new();
        let mut input = vec![0f32; 512];
        for block in 0..16 {
            let mut integers = [0i8; 32];
            (integers[0], input[block * 32]) = match block {
                0 => (1, 127.0 * 16_777_216.0),
                8 | 9 => (1, 63.5),
                _ => (0, 0.0),
            };
            row.extend(q8_0(1.0, integers));
        }
        let mut output = [0f32];
        product(&weights(TensorKind::Q8_0, row), &input, Activations::A8, &mut output);
        assert_eq!(output, [127.0 * 16_777_216.0 + 128.0]);
    }

    /// Activations that are whole multiples of their factor lose nothing: the only error left is the rounding of f32.
    #[test]
    fn exact_activations_give_the_product_with_the_dequantised_weights() {
        for kind in WEIGHT_KINDS.into_iter().filter(|kind| kind.has_integers()) {
            let scales: &[usize] = match kind {
                TensorKind::MXFP4 | TensorKind::INT8 => &[],
                TensorKind::Q4_1 | TensorKind::Q5_1 | TensorKind::Q4_K | TensorKind::Q5_K => &[0, 2],
                TensorKind::Q2_K => &[80, 82],
                TensorKind::Q3_K => &[108],
                TensorKind::Q6_K => &[208],
                _ => &[0],
            };
            let mut row: Vec<u8> = (0..kind.block_bytes()).map(|byte| (byte * 37 + 11) as u8).collect();
            match kind {
                TensorKind::MXFP4 => row[0] = 120,
                TensorKind::INT8 => row[..4].copy_from_slice(&0.3f32.to_le_bytes()),
                _ => {}
            }
            for &offset in scales {
                row[offset..offset + 2].copy_from_slice(&f16::from_f32(0.5).to_le_bytes());
            }
            // Multiples of 1/16; the largest of each block is 127/16.
            let element = |column: u64| if column % 32 == 7 { 127.0 } else { (column % 100) as f32 - 50.0 };
            let input: Vec<f32> = (0..kind.block_elements()).map(|column| element(column) / 16.0).collect();
            let dequantised = dequantise(kind, &row).unwrap();
            let products = || dequantised.iter().zip(&input).map(|(w, x)| f64::from(*w) * f64::from(*x));
            let (exact, size): (f64, f64) = (products().sum(), products().map(f64::abs).sum());
            for mode in [Activations::A8, Activations::A16] {
                let mut output = [0f32];
                product(&weights(kind, row.clone()), &input, mode, &mut output);
                assert!((f64::from(output[0]) - exact).abs() <= size * 1e-6, "{kind}: {output:?}, {exact}");
            }
        }
    }
}
