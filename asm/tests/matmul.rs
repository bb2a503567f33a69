//! Matrix products and EMBED of every weight format on the virtual device's shader engine against a separate
//! computation, bit for bit: rows of the step that count and rows that do not, any number of workgroups.

mod support;

use support::harness::Device;
use support::planes;
use support::product::{Addend, Sums, rows_of, step_of};
use support::reference as cpu;
use support::weights::{self, Format, Random, Weights};
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{BAND_ROWS, ROWS_MAX, Row};

/// Bytes from one row of a buffer to the next: more than the row has.
fn stride_of(elements: usize) -> usize {
    (elements * 4 + 16).next_multiple_of(128)
}

// ---------------------------------------------------------------------------------------------------- matmul

/// A step's part in a product.
#[derive(Clone, Copy, Debug)]
struct Case {
    set: RowSet,
    /// Rows of the set.
    rows: usize,
    /// Which of them count; all with output rows.
    alive: u128,
    addend: Addend,
    /// `None`: one for each unit.
    groups: Option<u32>,
}

impl Case {
    /// Active rows, all alive.
    fn active(rows: usize) -> Case {
        let alive = support::all_alive(rows);
        Case { set: RowSet::AllActive, rows, alive, addend: Addend::None, groups: None }
    }
}

/// A matrix, and the products that it should produce.
struct Product {
    format: Format,
    weight_rows: usize,
    columns: usize,
    matrix: Weights,
    x: Vec<Vec<f32>>,
}

/// A product on the device.
struct Run {
    device: Device,
    block: params::Matmul,
    groups: u32,
    output_va: u64,
    /// What the output buffer should hold.
    expected: Vec<u32>,
}

impl Product {
    fn new(format: Format, weight_rows: usize, columns: usize, rows: usize) -> Product {
        let mut random = Random::new((weight_rows * 7919 + columns) as u64);
        let matrix = weights::random(format, weight_rows, columns, &mut random);
        let x = (0..rows).map(|_| random.reals(columns)).collect();
        Product { format, weight_rows, columns, matrix, x }
    }

    fn kernel(&self) -> String {
        format!("matmul_{}", self.format.name())
    }

    /// The buffers of a run. Inputs of rows that do not count are NaN.
    fn prepare(&self, case: Case) -> Run {
        let mut device = Device::new(0);
        let (input_stride, output_stride) = (stride_of(self.columns), stride_of(self.weight_rows) + 256);
        let mut input = vec![f32::NAN; (case.rows - 1) * input_stride / 4 + self.columns];
        let output_words = (case.rows - 1) * output_stride / 4 + self.weight_rows;
        let counts = |row: usize| case.set == RowSet::AllOutputs || support::is_alive(case.alive, row);

        let sums = Sums::new(&mut device, case.addend, output_words);
        let mut expected = sums.words(&device);
        for row in (0..case.rows).filter(|row| counts(*row)) {
            input[row * input_stride / 4..][..self.columns].copy_from_slice(&self.x[row]);
            let at = row * output_stride / 4;
            for (number, weights) in self.matrix.values.chunks(self.columns).enumerate() {
                expected[at + number] = sums.sum(at + number, cpu::dot(weights, &self.x[row])).to_bits();
            }
        }

        let lanes_per_row_log2 = cpu::lanes_per_row(self.columns).ilog2();
        let units =
            (self.weight_rows as u32).div_ceil(zrt_protocol::matmul_rows_per_unit(lanes_per_row_log2));
        let rows = rows_of(case.rows);
        let step = match case.set {
            RowSet::AllOutputs => step_of(&rows, 0, case.rows),
            _ => step_of(&rows, case.alive, 0),
        };
        let block = params::Matmul {
            header: params::Matmul::header(device.upload(&[step]), units, case.set),
            plane_va: planes(&mut device, &self.matrix),
            input_va: device.upload(&input),
            output_va: sums.output_va,
            addend_va: sums.addend_va,
            weight_rows: self.weight_rows as u32,
            columns: self.columns as u32,
            chunks: self.columns.div_ceil(32) as u32,
            lanes_per_row_log2,
            input_stride: input_stride as u32,
            output_stride: output_stride as u32,
            factors_offset: 0,
            tile_parts_log2: 0,
        };
        Run { device, block, groups: case.groups.unwrap_or(units), output_va: sums.output_va, expected }
    }

    /// Runs the kernel, compares the whole output buffer, and returns the wave instructions that it took.
    fn check(&self, case: Case) -> u64 {
        let mut run = self.prepare(case);
        run.device.run(&self.kernel(), run.block.as_bytes(), run.groups);
        let what = format!("{:?} {} x {}, {case:?}", self.format, self.weight_rows, self.columns);
        run.assert_expected(&what);
        run.device.wave_instructions()
    }

    fn weight_bytes(&self) -> usize {
        self.matrix.planes.iter().map(Vec::len).sum()
    }
}

impl Run {
    fn assert_expected(&self, what: &str) {
        let stride = self.block.output_stride as usize / 4;
        let found = self.device.words(self.output_va, self.expected.len());
        for (at, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            let (row, element) = (at / stride, at % stride);
            assert_eq!(found, expected, "{what}: row {row}, element {element}");
        }
    }
}

/// The formats that have rows of this length.
fn formats_of(columns: usize) -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(move |format| columns.is_multiple_of(format.block()))
}

#[test]
fn matmul_of_every_format_and_shape() {
    for columns in [4, 12, 32, 64, 96, 172, 256, 300, 512, 576, 768, 1056, 1100, 1356, 2048, 2304] {
        for format in formats_of(columns) {
            for weight_rows in [1, 37, 130] {
                let product = Product::new(format, weight_rows, columns, 3);
                product.check(Case::active(1));
                product.check(Case { alive: 0b101, addend: Addend::Output, ..Case::active(3) });
            }
        }
    }
}

/// Both row sets, holes in the mask and in both halves of it, every kind of addend, fewer and more workgroups
/// than units.
#[test]
fn matmul_of_any_rows_by_any_workgroups() {
    let masks = [
        (5, 0b10110),
        (128, u128::MAX),
        (128, 1 << 127 | 1 << 64 | 1 << 63 | 1),
        (100, 0x9_0000_0000_0000_0000_0000_0000),
        (70, 1 << 3),
    ];
    for (format, columns) in
        [(Format::F16, 44), (Format::F32, 172), (Format::Q8_0, 64), (Format::Q4_K, 256), (Format::BF16, 1036)]
    {
        let product = Product::new(format, 70, columns, BAND_ROWS);
        for (index, (rows, alive)) in masks.into_iter().enumerate() {
            let addend = [Addend::None, Addend::Separate, Addend::Output][index % 3];
            let groups = Some([1, 3, 9][(index + columns / 4) % 3]);
            product.check(Case { set: RowSet::AllActive, rows, alive, addend, groups });
        }
        for (rows, addend, groups) in [(1, Addend::None, 3), (9, Addend::Separate, 1), (64, Addend::None, 3)]
        {
            let groups = Some(groups);
            product.check(Case { set: RowSet::AllOutputs, rows, alive: 0, addend, groups });
        }
    }
}

/// Steps of several bands: whole ones and a short last one, three of them, bands without a row that counts, workgroups
/// that have units of several.
#[test]
fn matmul_of_several_bands_of_rows() {
    for (format, columns) in [(Format::F32, 44), (Format::Q4_K, 256), (Format::Q8_0, 1056)] {
        let product = Product::new(format, 70, columns, ROWS_MAX);
        for (index, (rows, alive)) in
            [(129, u128::MAX), (256, 1 << 127 | 1), (300, u128::MAX << 91), (512, 0x1F), (400, 0)]
                .into_iter()
                .enumerate()
        {
            let addend = [Addend::None, Addend::Separate, Addend::Output][index % 3];
            let groups = [Some(1), Some(3), Some(8), None][(index + columns / 4) % 4];
            product.check(Case { set: RowSet::AllActive, rows, alive, addend, groups });
        }
    }
}

/// Three stretches with LDS between them, all formats, on grids of 1, 3 and more workgroups than there are
/// units.
#[test]
fn matmul_of_long_rows_by_any_workgroups() {
    for format in Format::ALL.iter().copied() {
        let columns = if format.block() > 4 { 2304 } else { 2060 };
        let product = Product::new(format, 130, columns, 12);
        for (groups, addend) in [(1, Addend::Separate), (3, Addend::None), (7, Addend::Output)] {
            let case = Case { alive: 0xD6F, addend, groups: Some(groups), ..Case::active(12) };
            product.check(case);
        }
    }
}

/// A step of rows of which none counts any more, and a step without output rows: nothing is touched.
#[test]
fn matmul_without_rows_does_nothing() {
    let product = Product::new(Format::Q4_0, 40, 64, 2);
    product.check(Case { alive: 0, ..Case::active(2) });
    let mut run = product.prepare(Case { alive: 0, ..Case::active(2) });
    let none = run.device.upload(&[step_of(&[], 0, 0)]);
    run.block.header = params::Matmul::header(none, run.block.header.units, RowSet::AllOutputs);
    run.device.run(&product.kernel(), run.block.as_bytes(), 2);
    run.assert_expected("no output rows");
}

/// More weight rows than one unit has with 2 lanes per row (512), so that grids of several groups are covered
/// there too.
#[test]
fn matmul_with_many_weight_rows() {
    for (format, weight_rows, columns) in
        [(Format::F32, 1100, 64), (Format::Q8_0, 700, 64), (Format::Q4_0, 1030, 32), (Format::Q6_K, 257, 256)]
    {
        Product::new(format, weight_rows, columns, 2).check(Case::active(2));
    }
}

/// The rows that count may be those of the odd snapshot.
#[test]
fn matmul_takes_the_snapshot_that_it_is_told() {
    let product = Product::new(Format::F32, 40, 44, 5);
    let mut run = product.prepare(Case { alive: 0b10010, ..Case::active(5) });
    let mut step = step_of(&[Row::default(); 5], 0b10010, 0);
    step.alive[0] = support::snapshot(0b01101, 5);
    run.block.header.step_va = run.device.upload(&[step]);
    run.block.header.rows |= 256;
    run.device.run(&product.kernel(), run.block.as_bytes(), 2);
    run.assert_expected("odd snapshot");
}

/// The same where there are several bands.
#[test]
fn matmul_takes_the_snapshot_in_all_bands() {
    let (rows, alive) = (300, 0b10010 << 40);
    let product = Product::new(Format::F32, 40, 44, rows);
    let mut run = product.prepare(Case { alive, ..Case::active(rows) });
    let mut step = step_of(&vec![Row::default(); rows], alive, 0);
    step.alive[0] = support::snapshot(!alive, rows);
    run.block.header.step_va = run.device.upload(&[step]);
    run.block.header.rows |= 256;
    run.device.run(&product.kernel(), run.block.as_bytes(), 2);
    run.assert_expected("odd snapshot of bands");
}

/// Faults planted in the code are differences: the comparison detects them.
#[test]
fn a_fault_in_the_product_is_seen() {
    /// `v_mov_b32_e32 v2, v2`
    const KEEP: u32 = 0x7E04_0302;
    let faults = [
        0x0604_1702, // v_add_f32_e32 v2, v2, v11: the two halves of a wave
        0x0604_0509, // v_add_f32_e32 v2, v9, v2: the stretches before
        0x0604_050A, // v_add_f32_e32 v2, v10, v2: the addend
    ];
    let product = Product::new(Format::Q8_0, 40, 2048, 3);
    for fault in faults {
        let mut run = product.prepare(Case { addend: Addend::Separate, ..Case::active(3) });
        run.device.run_changed(&product.kernel(), [fault, KEEP], run.block.as_bytes(), run.groups);
        assert!(run.device.words(run.output_va, run.expected.len()) != run.expected, "{fault:#x}");
    }
}

/// The tables of docs/kernels.md, and the budget of 0.42 wave instructions per byte of weights with one row. Formats
/// with few bytes or a table of values have budgets of their own.
#[test]
fn matmul_stays_within_its_budget() {
    let expected = [
        (Format::F32, [[0.025, 0.011], [0.033, 0.015], [0.018, 0.011]]),
        (Format::F16, [[0.072, 0.025], [0.097, 0.035], [0.058, 0.024]]),
        (Format::BF16, [[0.064, 0.024], [0.086, 0.033], [0.050, 0.023]]),
        (Format::Q8_0, [[0.148, 0.047], [0.199, 0.064], [0.121, 0.044]]),
        (Format::Q4_0, [[0.281, 0.088], [0.377, 0.121], [0.228, 0.083]]),
        (Format::Q4_K, [[0.305, 0.091], [0.410, 0.125], [0.249, 0.085]]),
        (Format::Q6_K, [[0.227, 0.065], [0.305, 0.088], [0.188, 0.061]]),
        (Format::Q4_1, [[0.259, 0.080], [0.348, 0.110], [0.214, 0.076]]),
        (Format::Q5_0, [[0.261, 0.076], [0.350, 0.104], [0.219, 0.072]]),
        (Format::Q5_1, [[0.241, 0.070], [0.323, 0.095], [0.202, 0.066]]),
        (Format::Q2_K, [[0.547, 0.160], [0.734, 0.218], [0.460, 0.150]]),
        (Format::Q3_K, [[0.450, 0.125], [0.603, 0.170], [0.384, 0.118]]),
        (Format::Q5_K, [[0.276, 0.078], [0.371, 0.106], [0.234, 0.074]]),
        (Format::IQ4_NL, [[0.399, 0.103], [0.535, 0.140], [0.348, 0.098]]),
        (Format::IQ4_XS, [[0.439, 0.111], [0.589, 0.151], [0.385, 0.105]]),
        (Format::MXFP4, [[0.423, 0.109], [0.567, 0.149], [0.368, 0.103]]),
        (Format::IQ_CODES, [[0.444, 0.111], [0.595, 0.151], [0.389, 0.105]]),
        (Format::INT8, [[0.148, 0.045], [0.199, 0.062], [0.123, 0.043]]),
        (Format::FP8, [[0.120, 0.042], [0.161, 0.057], [0.095, 0.039]]),
    ];
    let (mut table, mut expected_table) = (String::new(), String::new());
    for (format, ratios) in expected {
        let budget = match format {
            Format::Q2_K => 0.75,
            Format::Q3_K | Format::IQ4_NL | Format::IQ4_XS | Format::MXFP4 | Format::IQ_CODES => 0.61,
            _ => 0.42,
        };
        for ((weight_rows, columns), expected) in [(256, 256), (256, 768), (64, 4096)].into_iter().zip(ratios)
        {
            let product = Product::new(format, weight_rows, columns, 8);
            let ratio =
                |rows| product.check(Case::active(rows)) as f64 / (rows * product.weight_bytes()) as f64;
            let found = [1, 8].map(ratio);
            assert!(found[0] <= budget, "{format:?} {weight_rows} x {columns}: {found:?}");
            let line = |[one, eight]: [f64; 2]| {
                format!("{format:?} {weight_rows} x {columns}: {one:.3} {eight:.3}\n")
            };
            table += &line(found);
            expected_table += &line(expected);
        }
    }
    assert!(table == expected_table, "found\n{table}expected\n{expected_table}");
}

/// Weights are read once, whatever the number of rows: each further row costs the same number of
/// instructions, with all quantised formats and with all dense ones, though a chunk of a weight row takes 2
/// (Q4_0), 3 (Q8_0), 4 (F16, BF16, Q4_K, Q6_K) or 8 (F32) loads.
#[test]
fn matmul_reads_weights_once() {
    let slope = |format, columns| {
        let product = Product::new(format, 32, columns, 6);
        let counts: Vec<u64> = (1..=6).map(|rows| product.check(Case::active(rows))).collect();
        let steps: Vec<u64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| *step == steps[0]), "{format:?} {columns}: {steps:?}");
        steps[0]
    };
    for columns in [256, 1024, 3072] {
        let quantised =
            [Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q6_K].map(|format| slope(format, columns));
        let dense = [Format::F32, Format::F16, Format::BF16].map(|format| slope(format, columns));
        assert!(quantised.iter().all(|slope| *slope == quantised[0]), "{columns}: {quantised:?}");
        assert!(dense.iter().all(|slope| *slope == dense[0]), "{columns}: {dense:?}");
    }
}

// ----------------------------------------------------------------------------------------------------- embed

/// EMBED on the device.
struct Embedding {
    device: Device,
    block: params::Embed,
    output_va: u64,
    /// What the output buffer should hold.
    expected: Vec<u32>,
}

impl Embedding {
    /// The buffers of a run. The table has 9 rows.
    fn prepare(format: Format, columns: usize, tokens: &[u32], alive: u128) -> Embedding {
        let vocabulary = 9;
        let mut random = Random::new(columns as u64);
        let matrix = weights::random(format, vocabulary, columns, &mut random);
        let mut device = Device::new(0);
        let row = |token: &u32| Row { slot: 5, position: 77, token: *token, output: u32::MAX };
        let rows: Vec<Row> = tokens.iter().map(row).collect();
        let stride = stride_of(columns);
        let output_words = (rows.len() - 1) * stride / 4 + columns;
        let output_va = device.allocate(output_words * 4);
        let mut expected = device.words(output_va, output_words);
        for (number, token) in
            tokens.iter().enumerate().filter(|(number, _)| support::is_alive(alive, *number))
        {
            let table_row = if (*token as usize) < vocabulary { *token as usize } else { 0 };
            let values = &matrix.values[table_row * columns..(table_row + 1) * columns];
            for (word, value) in expected[number * stride / 4..].iter_mut().zip(values) {
                *word = value.to_bits();
            }
        }
        let chunks = columns.div_ceil(32) as u32;
        let step_va = device.upload(&[step_of(&rows, alive, 0)]);
        let block = params::Embed {
            header: params::Embed::header(step_va, chunks.div_ceil(256), RowSet::EachActive),
            plane_va: planes(&mut device, &matrix),
            output_va,
            columns: columns as u32,
            chunks,
            vocabulary: vocabulary as u32,
            output_stride: stride as u32,
        };
        Embedding { device, block, output_va, expected }
    }
}

/// `groups`: `None`, one for each unit.
fn check_embed(format: Format, columns: usize, tokens: &[u32], alive: u128, groups: Option<u32>) {
    let Embedding { mut device, block, output_va, expected } =
        Embedding::prepare(format, columns, tokens, alive);
    let groups = groups.unwrap_or(block.header.units * tokens.len() as u32);
    device.run(&format!("embed_{}", format.name()), block.as_bytes(), groups);
    let stride = block.output_stride as usize / 4;
    for (at, (found, expected)) in device.words(output_va, expected.len()).iter().zip(&expected).enumerate() {
        let (row, element) = (at / stride, at % stride);
        assert_eq!(found, expected, "{format:?} {columns} by {groups}: row {row}, element {element}");
    }
}

#[test]
fn embed_of_every_format() {
    for columns in [4, 64, 172, 256, 300, 576, 768, 1100, 2304, 8448] {
        for format in formats_of(columns) {
            check_embed(format, columns, &[0, 8, 3, 9, u32::MAX], 0b11101, None);
        }
    }
}

/// The row of the step, and the row of the output, are those of the unit.
#[test]
fn a_fault_in_embed_is_seen() {
    let faults = [
        [0x8404_8403, 0x8404_8303], // s_lshl_b32 s4, s3, 4 to 3: another row's token
        [0x961A_1703, 0xBE9A_0080], // s_mul_i32 s26, s3, s23 to s_mov_b32 s26, 0: another row's output
    ];
    let tokens = [4, 7, 1, 0, 2];
    for fault in faults {
        let embed = Embedding::prepare(Format::Q8_0, 64, &tokens, 0b11111);
        let Embedding { mut device, block, output_va, expected } = embed;
        device.run_changed("embed_q8_0", fault, block.as_bytes(), 1);
        assert!(device.words(output_va, expected.len()) != expected, "{fault:x?}");
    }
}

#[test]
fn embed_of_many_rows_by_any_workgroups() {
    let tokens: Vec<u32> = (0..ROWS_MAX as u32).map(|row| row * 5 % 11).collect();
    for groups in [1, 3, 300] {
        check_embed(Format::Q4_0, 64, &tokens, u128::MAX, Some(groups));
        check_embed(Format::F16, 8448, &tokens[..7], 0b101_1011, Some(groups));
    }
    check_embed(Format::Q8_0, 64, &tokens, 1 << 127 | 1 << 64 | 1 << 31, Some(3));
    check_embed(Format::F32, 12, &tokens[..2], 0, Some(1));
}
