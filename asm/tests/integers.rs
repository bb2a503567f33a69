//! QUANTISE, and matrix products with activations as integers, on the virtual device's shader engine against a separate
//! computation, bit for bit: every format, shape and mode, alone and among other rows, by any number of workgroups.

mod support;

use support::harness::Device;
use support::integers::{IntegerRows, stored};
use support::planes;
use support::product::{Addend, Sums, rows_of, step_of};
use support::reference as cpu;
use support::weights::{self, Format, Random, Weights};
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{
    BAND_ROWS, ROWS_MAX, integer_lanes_per_row_log2, matmul_rows_per_unit, quantised_segments,
};

/// Integer formats whose rows may have so many columns.
fn formats(columns: usize) -> impl Iterator<Item = Format> {
    let fits = move |format: &Format| format.is_integer() && columns.is_multiple_of(format.block());
    Format::ALL.iter().copied().filter(fits)
}

fn mode(limbs: u32) -> &'static str {
    ["a8", "a16"][limbs as usize - 1]
}

/// Rows of activations that cover what may be special: zeros, blocks at and below the least amplitude, ties of the
/// rounding with their neighbours. Ordinary blocks are the most, and none is so large that it would hide them.
fn activations(columns: usize, limbs: u32, random: &mut Random) -> Vec<f32> {
    const LEAST: f32 = f32::from_bits((127 - 100) << 23);
    let mut x = random.reals(columns);
    for block in x.chunks_mut(32) {
        match random.below(12) {
            0 => block.fill(0.0),
            // Integers of any size with the smallest factor that there is; a block of zeros.
            1 | 2 => {
                block.iter_mut().for_each(|x| *x *= LEAST);
                block[1] = -LEAST;
            }
            3 => {
                block.iter_mut().for_each(|x| *x *= LEAST * 0.5);
                block[1] = LEAST.next_down();
            }
            4 => block.iter_mut().for_each(|x| *x *= 30.0),
            5 => block.iter_mut().for_each(|x| *x *= 1e-6),
            6 | 7 => ties(block, if limbs == 1 { 1.0 } else { 1.0 / 256.0 }),
            // The largest sums that there are.
            8 => block.fill(if random.below(2) == 0 { 0.25 } else { -0.25 }),
            _ => {}
        }
    }
    x
}

/// A block whose factor is `factor`: halves of it between two integers, and the numbers beside them.
fn ties(block: &mut [f32], factor: f32) {
    for (at, x) in block.iter_mut().enumerate() {
        let tie = (at as f32 - 15.5) * factor;
        *x = match at % 3 {
            0 => tie,
            1 => tie.next_up(),
            _ => tie.next_down(),
        };
    }
    block[0] = 127.0;
}

struct Product {
    format: Format,
    weight_rows: usize,
    columns: usize,
    limbs: u32,
    matrix: Weights,
    x: Vec<Vec<f32>>,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    /// The rows are those of outputs, of a step with one active row.
    of_outputs: bool,
    rows: usize,
    alive: u128,
    addend: Addend,
    groups: u32,
    /// Of v_rcp_f32, in units in the last place.
    bias: i32,
    /// Whether steps of three tiles or more deal out segments to two parts of the waves.
    has_parts: bool,
}

impl Case {
    fn active(rows: usize) -> Case {
        Case {
            of_outputs: false,
            rows,
            alive: support::all_alive(rows),
            addend: Addend::None,
            groups: 2,
            bias: 0,
            has_parts: true,
        }
    }
}

impl Product {
    fn new(format: Format, limbs: u32, weight_rows: usize, columns: usize, rows: usize) -> Product {
        let mut random = Random::new((weight_rows * 7919 + columns) as u64);
        let matrix = weights::random(format, weight_rows, columns, &mut random);
        let x = (0..rows).map(|_| activations(columns, limbs, &mut random)).collect();
        Product { format, weight_rows, columns, limbs, matrix, x }
    }

    fn kernel(&self) -> String {
        format!("matmul_{}_{}", self.format.name(), mode(self.limbs))
    }

    /// Runs QUANTISE and the product; returns whether both are as expected, and the wave instructions of the product.
    /// `change`: the beginning of a kernel's name, a word of its code and what stands there instead.
    fn run(&self, case: Case, change: Option<(&str, [u32; 2])>) -> (bool, u64) {
        let mut device = Device::new(case.bias);
        let (columns, limbs) = (self.columns as u32, self.limbs);
        let input_stride = self.columns * 4 + 256;
        let output_stride = self.weight_rows * 4 + 260;
        let mut input = vec![f32::NAN; case.rows * input_stride / 4];
        let output_words = case.rows * output_stride / 4;
        for (row, x) in self.x[..case.rows].iter().enumerate() {
            input[row * input_stride / 4..][..self.columns].copy_from_slice(x);
        }
        let (step, each, all) = match case.of_outputs {
            true => (step_of(&rows_of(1), 1, case.rows), RowSet::EachOutput, RowSet::AllOutputs),
            false => (step_of(&rows_of(case.rows), case.alive, 0), RowSet::EachActive, RowSet::AllActive),
        };
        let step_va = device.upload(&[step]);
        let integers = IntegerRows::allocate(&mut device, case.rows, self.columns, limbs);
        let quantise = params::Quantise {
            header: params::Quantise::header(step_va, quantised_segments(columns), each),
            input_va: device.upload(&input),
            count: columns,
            input_stride: input_stride as u32,
            integers_va: integers.va,
            integers_stride: integers.stride,
            factors_offset: integers.factors_offset(),
        };
        let run = |device: &mut Device, kernel: &str, block: &[u8]| match change {
            Some((beginning, change)) if kernel.starts_with(beginning) => {
                device.run_changed(kernel, change, block, case.groups);
            }
            _ => device.run(kernel, block, case.groups),
        };
        run(&mut device, &format!("quantise_{}", mode(limbs)), quantise.as_bytes());
        let mut is_expected = true;
        let sums = Sums::new(&mut device, case.addend, output_words);
        let mut expected = sums.words(&device);
        for row in (0..case.rows).filter(|row| support::is_alive(case.alive, *row)) {
            is_expected &= integers.row(&device, row) == stored(&self.x[row], limbs);
            let at = row * output_stride / 4;
            let activations = cpu::quantise_row(&self.x[row], limbs);
            for (number, blocks) in self.matrix.blocks.chunks(self.columns / 32).enumerate() {
                let product = cpu::integer_dot(blocks, &activations);
                expected[at + number] = sums.sum(at + number, product).to_bits();
            }
        }
        let lanes_per_row_log2 = integer_lanes_per_row_log2(columns);
        let units = (self.weight_rows as u32).div_ceil(matmul_rows_per_unit(lanes_per_row_log2));
        let block = params::Matmul {
            header: params::Matmul::header(step_va, units, all),
            plane_va: planes(&mut device, &self.matrix),
            input_va: integers.va,
            output_va: sums.output_va,
            addend_va: sums.addend_va,
            weight_rows: self.weight_rows as u32,
            columns,
            chunks: columns.div_ceil(32),
            lanes_per_row_log2,
            input_stride: integers.stride,
            output_stride: output_stride as u32,
            factors_offset: quantise.factors_offset,
            tile_parts_log2: case.has_parts.into(),
        };
        let before = device.wave_instructions();
        run(&mut device, &self.kernel(), block.as_bytes());
        is_expected &= sums.words(&device) == expected;
        (is_expected, device.wave_instructions() - before)
    }

    fn check(&self, case: Case) -> u64 {
        let (is_expected, instructions) = self.run(case, None);
        assert!(is_expected, "{} {} x {}, {case:?}", self.kernel(), self.weight_rows, self.columns);
        instructions
    }

    fn weight_bytes(&self) -> usize {
        self.matrix.planes.iter().map(Vec::len).sum()
    }
}

/// Units of eight, four and two tiles, a last segment that is cut, in every format.
#[test]
fn products_of_every_format_and_mode() {
    check_columns(&[64, 768, 1056]);
}

/// A last segment of every number of chunks, of one row or of two that lanes have.
#[test]
fn products_of_every_format_shape_and_mode() {
    check_columns(&[32, 256, 288, 512, 544, 704, 928, 1024, 1248, 2304]);
}

/// Weight rows of less than a tile, a unit, and of more.
fn check_columns(all: &[usize]) {
    for columns in all.iter().copied() {
        for format in formats(columns) {
            for (limbs, weight_rows) in [(1, 1), (1, 131), (2, 37)] {
                let product = Product::new(format, limbs, weight_rows, columns, 3);
                product.check(Case::active(1));
                product.check(Case { alive: 0b101, addend: Addend::Output, ..Case::active(3) });
            }
        }
    }
}

/// Rows of more segments than LDS has room for at once: rounds, the last of which is whole, short, or of one segment.
#[test]
fn products_of_several_rounds() {
    for (rows, segments) in [(8, 24), (8, 25), (5, 49), (3, 49), (2, 105), (1, 193)] {
        for (format, limbs) in [(Format::Q4_K, 1), (Format::Q8_0, 2)] {
            let product = Product::new(format, limbs, 37, 256 * segments, rows);
            product.check(Case { addend: Addend::Separate, ..Case::active(rows) });
        }
    }
}

/// Steps of one tile and of more, up to those that two waves share, by matrix instructions.
#[test]
fn products_of_tiles_of_every_format_shape_and_mode() {
    for (columns, rows) in
        [(32_usize, 9), (256, 16), (288, 17), (512, 33), (768, 49), (1056, 65), (1280, 20), (2304, 128)]
    {
        for format in formats(columns) {
            for (limbs, weight_rows) in [(1, 1), (1, 150), (2, 37)] {
                let product = Product::new(format, limbs, weight_rows, columns, rows);
                product.check(Case::active(rows));
                let alive = support::all_alive(rows) & !(0b101 << 7);
                product.check(Case { alive, addend: Addend::Separate, ..Case::active(rows) });
                if rows > 32 {
                    product.check(Case { has_parts: false, alive, ..Case::active(rows) });
                }
            }
        }
    }
}

/// Every number of segments up to two rounds of four parts and more, whole and with a short last one; in the last round
/// only some of the parts have a segment.
#[test]
fn products_of_tiles_whatever_the_parts_have() {
    for segments in 1..=9 {
        for columns in [256 * segments, 256 * segments - 224] {
            for (limbs, rows) in [(1, 16), (2, 30), (1, 40), (1, 100)] {
                Product::new(Format::Q8_0, limbs, 37, columns, rows).check(Case::active(rows));
            }
        }
    }
}

/// Tiles without a row that counts, of one half of the waves and of both; every row count at which the halves change.
#[test]
fn products_of_tiles_of_which_few_rows_count() {
    let product = Product::new(Format::Q4_K, 1, 70, 512, BAND_ROWS);
    let alone = |row: u32| 1 << row;
    for alive in
        [0, alone(0), alone(63), alone(64), alone(127), 0xFFFF << 32, 0xFFFF << 96, 1 << 16 | 1 << 80]
    {
        product.check(Case { alive, addend: Addend::Output, ..Case::active(BAND_ROWS) });
    }
    for rows in [10, 16, 17, 32, 33, 48, 64, 80, 81, 96, 112, 113, 127] {
        product.check(Case { addend: Addend::Separate, ..Case::active(rows) });
        product.check(Case { alive: 1 << (rows - 1), ..Case::active(rows) });
    }
}

/// Steps of several bands of rows: a last one of two rows and of any number, three bands, bands of which no row
/// counts.
#[test]
fn products_of_several_bands_of_rows() {
    for (format, limbs, columns) in [(Format::Q4_K, 1, 512), (Format::Q6_K, 2, 256), (Format::Q8_0, 1, 96)] {
        let product = Product::new(format, limbs, 37, columns, ROWS_MAX);
        for (index, (rows, alive)) in
            [(130, u128::MAX), (300, u128::MAX << 91), (512, 0x1F << 40), (400, 0)].into_iter().enumerate()
        {
            let addend = [Addend::None, Addend::Separate, Addend::Output][index % 3];
            let has_parts = index % 2 == 0;
            product.check(Case {
                alive,
                addend,
                has_parts,
                groups: [1, 3, 8][index % 3],
                ..Case::active(rows)
            });
        }
    }
}

/// The logits of many slots: rows of outputs, however many rows the step has.
#[test]
fn products_of_outputs() {
    for (format, limbs) in [(Format::Q6_K, 1), (Format::Q8_0, 2)] {
        let product = Product::new(format, limbs, 70, 256, 64);
        for rows in [1, 8, 9, 33, 64] {
            product.check(Case { of_outputs: true, ..Case::active(rows) });
        }
    }
}

/// The same bits for a row, whichever rows are beside it.
#[test]
fn products_of_any_rows_by_any_workgroups() {
    for (format, limbs, columns) in
        [(Format::Q4_K, 1, 1280), (Format::Q8_0, 2, 96), (Format::Q6_K, 2, 512), (Format::Q4_0, 1, 1056)]
    {
        let product = Product::new(format, limbs, 70, columns, BAND_ROWS);
        for (index, (rows, alive)) in
            [(128, u128::MAX), (128, 1 << 127 | 1 << 64 | 1 << 63 | 1), (5, 0b10110), (3, 0)]
                .into_iter()
                .enumerate()
        {
            let addend = [Addend::None, Addend::Output][index % 2];
            product.check(Case { alive, addend, groups: [1, 3, 9][index % 3], ..Case::active(rows) });
        }
    }
}

/// No result depends on the last bit of v_rcp_f32.
#[test]
fn rows_are_quantised_whatever_the_reciprocal_is() {
    for bias in support::BIASES {
        for limbs in [1, 2] {
            Product::new(Format::Q8_0, limbs, 3, 2048, 4).check(Case { bias, ..Case::active(4) });
        }
    }
}

/// Faults planted in the code are differences: the comparison sees them.
#[test]
fn a_fault_is_seen() {
    /// `v_mov_b32_e32 v10, v10` and of v11.
    const KEEP: [u32; 2] = [0x7E14_030A, 0x7E16_030B];
    for (what, format, limbs, rows, kernel, fault) in [
        // The second dword of v_dot4_i32_iu8 v20, v66, v130, v20 neg_lo:[1,1,0].
        ("weights of one dot product without sign", Format::Q8_0, 1, 3, "matmul", [0x7C53_0542, 0x5C53_0542]),
        // v_fmac_f32_e32 v10, v52, v35
        ("a minimum left out", Format::Q4_K, 1, 3, "matmul", [0x5614_4734, KEEP[0]]),
        // The first dword of ds_load_2addr_b32 v[22:23], v14 offset0:32 offset1:48
        ("segments of another order", Format::Q4_0, 1, 3, "matmul", [0xD8DC_3020, 0xD8DC_2030]),
        // v_add_f32_e32 v11, v11, v23
        ("a segment left out", Format::Q8_0, 1, 3, "matmul", [0x0616_2F0B, KEEP[1]]),
        // v_add_f32_e32 v11, v14, v11
        ("the addend left out", Format::Q8_0, 1, 3, "matmul", [0x0616_170E, KEEP[1]]),
        // The second dword of v_wmma_i32_16x16x16_iu8 v[96:103], v[128:129], v[136:137], v[24:31] neg_lo:[1,1,0].
        (
            "weights of a matrix product without sign",
            Format::Q8_0,
            1,
            20,
            "matmul",
            [0x7C63_1180, 0x5C63_1180],
        ),
        // v_dual_fmac_f32 v32, v176, v19 :: ...: v177 instead
        ("the minimum of another weight row", Format::Q4_K, 1, 20, "matmul", [0xC800_27B0, 0xC800_27B1]),
        // v_dual_add_f32 v64, v32, v64 :: ...: v32 twice
        ("the segments before left out of a tile", Format::Q4_0, 1, 20, "matmul", [0xC908_8120, 0xC908_4120]),
        ("a high byte that counts 128", Format::Q8_0, 2, 20, "matmul", [0x4380_0000, 0x4300_0000]),
        ("halves rounded down", Format::Q8_0, 1, 3, "quantise", [0x3EFF_FFFF, 0x3EFF_FFFE]),
        ("another least amplitude", Format::Q8_0, 1, 3, "quantise", [0x0D80_0000, 0x0D80_0001]),
    ] {
        let product = Product::new(format, limbs, 40, 2048, rows);
        let case = Case { addend: Addend::Output, ..Case::active(rows) };
        assert!(product.run(case, None).0 && !product.run(case, Some((kernel, fault))).0, "{what}");
    }
}

/// The table of docs/kernels.md.
#[test]
fn products_stay_within_their_budget() {
    let expected = [
        (Format::Q8_0, [[0.028, 0.017], [0.038, 0.027]]),
        (Format::Q4_0, [[0.080, 0.035], [0.100, 0.054]]),
        (Format::Q4_K, [[0.079, 0.038], [0.100, 0.059]]),
        (Format::Q6_K, [[0.092, 0.031], [0.108, 0.047]]),
        (Format::Q4_1, [[0.075, 0.033], [0.093, 0.051]]),
        (Format::Q5_0, [[0.111, 0.034], [0.127, 0.050]]),
        (Format::Q5_1, [[0.085, 0.031], [0.100, 0.045]]),
        (Format::Q2_K, [[0.230, 0.097], [0.289, 0.157]]),
        (Format::Q3_K, [[0.206, 0.062], [0.238, 0.093]]),
        (Format::Q5_K, [[0.106, 0.035], [0.122, 0.051]]),
        (Format::IQ4_NL, [[0.176, 0.047], [0.195, 0.066]]),
        (Format::IQ4_XS, [[0.203, 0.052], [0.223, 0.072]]),
        (Format::MXFP4, [[0.186, 0.050], [0.206, 0.070]]),
        (Format::IQ_CODES, [[0.204, 0.055], [0.229, 0.080]]),
        (Format::INT8, [[0.026, 0.016], [0.035, 0.025]]),
    ];
    let (mut table, mut expected_table) = (String::new(), String::new());
    for (format, ratios) in expected {
        for (limbs, expected) in [1, 2].into_iter().zip(ratios) {
            let product = Product::new(format, limbs, 64, 4096, 8);
            let ratio =
                |rows| product.check(Case::active(rows)) as f64 / (rows * product.weight_bytes()) as f64;
            let line = |[one, eight]: [f64; 2]| format!("{format:?} {}: {one:.3} {eight:.3}\n", mode(limbs));
            table += &line([1, 8].map(ratio));
            expected_table += &line(expected);
        }
    }
    assert!(table == expected_table, "found\n{table}expected\n{expected_table}");
}

/// Wave slots of a product for each multiply-add: an instruction takes one, `v_wmma_i32_16x16x16_iu8` 8 (instruction
/// set reference §7.2). The table of docs/kernels.md; the budget for Q4_K in A8 is 0.006.
#[test]
fn products_of_tiles_stay_within_their_budget() {
    let expected = [
        (Format::Q8_0, [[0.0090, 0.0050], [0.0121, 0.0081]]),
        (Format::Q4_0, [[0.0099, 0.0052], [0.0130, 0.0083]]),
        (Format::Q4_K, [[0.0111, 0.0059], [0.0142, 0.0089]]),
        (Format::Q6_K, [[0.0141, 0.0074], [0.0188, 0.0120]]),
        (Format::Q4_1, [[0.0108, 0.0058], [0.0139, 0.0089]]),
        (Format::Q5_0, [[0.0123, 0.0058], [0.0154, 0.0089]]),
        (Format::Q5_1, [[0.0122, 0.0062], [0.0153, 0.0092]]),
        (Format::Q2_K, [[0.0146, 0.0086], [0.0206, 0.0146]]),
        (Format::Q3_K, [[0.0151, 0.0076], [0.0198, 0.0123]]),
        (Format::Q5_K, [[0.0127, 0.0063], [0.0158, 0.0094]]),
        (Format::IQ4_NL, [[0.0134, 0.0061], [0.0165, 0.0092]]),
        (Format::IQ4_XS, [[0.0139, 0.0062], [0.0169, 0.0093]]),
        (Format::MXFP4, [[0.0134, 0.0061], [0.0165, 0.0092]]),
        (Format::IQ_CODES, [[0.0158, 0.0078], [0.0204, 0.0124]]),
        (Format::INT8, [[0.0094, 0.0051], [0.0124, 0.0082]]),
    ];
    let (mut table, mut expected_table) = (String::new(), String::new());
    for (format, slots) in expected {
        for (limbs, expected) in [1, 2].into_iter().zip(slots) {
            let product = Product::new(format, limbs, 128, 4096, 128);
            let slots = |rows| {
                let multiply_adds = (rows * product.weight_rows * product.columns) as u64;
                // The minima of Q2_K are a second matrix.
                let matrices = if format == Format::Q2_K { 2 } else { 1 };
                let matrix_instructions = matrices * multiply_adds * u64::from(limbs) / (16 * 16 * 16);
                (product.check(Case::active(rows)) + 7 * matrix_instructions) as f64 / multiply_adds as f64
            };
            let line = |[few, many]: [f64; 2]| format!("{format:?} {}: {few:.4} {many:.4}\n", mode(limbs));
            table += &line([16, 128].map(slots));
            expected_table += &line(expected);
        }
    }
    assert!(table == expected_table, "found\n{table}expected\n{expected_table}");
}
