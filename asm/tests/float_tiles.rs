//! Matrix products of mode f16: from 9 rows on by matrix instructions of 16-bit floats, on the virtual device's shader
//! engine, against sums in f64 of the products of what was rounded. No bits are claimed (docs/arithmetic.md), so a
//! result is compared within the bound that follows from how often it is rounded; steps of fewer rows have the bits of
//! f32.

mod support;

use half::{bf16, f16};
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::harness::Device;
use support::planes;
use support::product::{Addend, Sums, rows_of, step_of};
use support::reference as cpu;
use support::weights::{self, Format, Random, Weights};
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{BAND_ROWS, ROWS_MAX, TILED_ROWS_MIN, lanes_per_row_log2, matmul_rows_per_unit};

const FORMATS: [Format; 2] = [Format::F16, Format::BF16];

#[derive(Clone, Copy, Debug)]
struct Case {
    /// The rows are those of outputs, of a step with one active row.
    of_outputs: bool,
    rows: usize,
    alive: u128,
    addend: Addend,
    groups: u32,
}

impl Case {
    fn active(rows: usize) -> Case {
        let alive = support::all_alive(rows);
        Case { of_outputs: false, rows, alive, addend: Addend::None, groups: 2 }
    }

    fn counts(&self, row: usize) -> bool {
        self.of_outputs || support::is_alive(self.alive, row)
    }
}

struct Product {
    format: Format,
    weight_rows: usize,
    columns: usize,
    matrix: Weights,
    x: Vec<Vec<f32>>,
}

/// An element of the output buffer.
enum Expected {
    Bits(u32),
    Near { value: f64, within: f64 },
}

/// A result, and whether it is as expected: `None`, or where not.
struct Found {
    difference: Option<String>,
    instructions: u64,
}

impl Product {
    fn new(format: Format, weight_rows: usize, columns: usize, rows: usize) -> Product {
        let mut random = Random::new((weight_rows * 7919 + columns) as u64);
        let matrix = weights::random(format, weight_rows, columns, &mut random);
        let x = (0..rows).map(|_| random.reals(columns)).collect();
        Product { format, weight_rows, columns, matrix, x }
    }

    fn kernel(&self) -> String {
        format!("matmul_{}_w16", self.format.name())
    }

    /// x as the matrix instructions have it: to nearest even; F16 beyond its range is its largest number.
    fn rounded(&self, x: f32) -> f64 {
        match self.format {
            Format::F16 => f16::from_f32(x).to_f64().clamp(f16::MIN.to_f64(), f16::MAX.to_f64()),
            _ => bf16::from_f32(x).to_f64(),
        }
    }

    /// With the addend, if there is one. A product is exact in f32, but for its denormals. Of K products and the zeros
    /// beyond them, whatever the order, each passes at most K + 64 additions, and each of these adds a relative 2^-24.
    fn expected(&self, weights: &[f32], x: &[f32], addend: Option<f32>) -> Expected {
        if self.x.len() < TILED_ROWS_MIN as usize {
            let product = cpu::dot(weights, x);
            return Expected::Bits(addend.map_or(product, |addend| addend + product).to_bits());
        }
        let products = weights.iter().zip(x).map(|(w, x)| f64::from(*w) * self.rounded(*x));
        let (sum, size) = products.fold((0.0, 0.0), |(sum, size), one| (sum + one, size + one.abs()));
        let addend = addend.map_or(0.0, f64::from);
        let value = addend + sum;
        let roundings = (self.columns + 64) as f64;
        let denormals = roundings * f64::from(f32::MIN_POSITIVE);
        Expected::Near { value, within: (roundings * size + value.abs()) / f64::from(1 << 24) + denormals }
    }

    /// `change`: a word of the kernel's code and what stands there instead.
    fn run(&self, case: Case, change: Option<[u32; 2]>) -> Found {
        let mut device = Device::new(0);
        // Behind a row there is NaN, and so there is in a row that does not count.
        let (input_stride, output_stride) = (self.columns * 4 + 256, self.weight_rows * 4 + 260);
        let mut input = vec![f32::NAN; (case.rows - 1) * input_stride / 4 + self.columns];
        let output_words = (case.rows - 1) * output_stride / 4 + self.weight_rows;
        let sums = Sums::new(&mut device, case.addend, output_words);
        let mut expected: Vec<_> = sums.words(&device).into_iter().map(Expected::Bits).collect();
        for row in (0..case.rows).filter(|row| case.counts(*row)) {
            input[row * input_stride / 4..][..self.columns].copy_from_slice(&self.x[row]);
            for (number, weights) in self.matrix.values.chunks(self.columns).enumerate() {
                let at = row * output_stride / 4 + number;
                expected[at] = self.expected(weights, &self.x[row], sums.addend(at));
            }
        }
        let (rows, outputs, set) = match case.of_outputs {
            true => (1, case.rows, RowSet::AllOutputs),
            false => (case.rows, 0, RowSet::AllActive),
        };
        let step = step_of(&rows_of(rows), case.alive, outputs);
        let lanes_per_row_log2 = lanes_per_row_log2(self.columns as u32);
        let units = (self.weight_rows as u32).div_ceil(matmul_rows_per_unit(lanes_per_row_log2));
        let block = params::Matmul {
            header: params::Matmul::header(device.upload(&[step]), units, set),
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
        match change {
            None => device.run(&self.kernel(), block.as_bytes(), case.groups),
            Some(change) => device.run_changed(&self.kernel(), change, block.as_bytes(), case.groups),
        }
        let difference =
            sums.words(&device).into_iter().zip(expected).enumerate().find_map(|(at, (found, expected))| {
                let (row, element) = (at / (output_stride / 4), at % (output_stride / 4));
                let number = f32::from_bits(found);
                match expected {
                    Expected::Bits(bits) if found == bits => None,
                    Expected::Bits(bits) => {
                        Some(format!("row {row}, element {element}: {found:#x}, not {bits:#x}"))
                    }
                    Expected::Near { value, within } => {
                        let is_near = (f64::from(number) - value).abs() <= within;
                        (!is_near).then(|| {
                            format!("row {row}, element {element}: {number}, not {value} within {within:e}")
                        })
                    }
                }
            });
        Found { difference, instructions: device.wave_instructions() }
    }

    fn check(&self, case: Case) -> u64 {
        let Found { difference, instructions } = self.run(case, None);
        let what = format!("{} {} x {}, {case:?}", self.kernel(), self.weight_rows, self.columns);
        assert!(difference.is_none(), "{what}: {}", difference.unwrap_or_default());
        instructions
    }
}

/// Rows of K that end within a quad of columns, a half of a chunk, a chunk, a round, and with them; every number of
/// tiles.
#[test]
fn products_of_every_shape() {
    for format in FORMATS {
        for columns in [4, 20, 32, 60, 256, 300, 428, 508, 1056] {
            for (weight_rows, rows) in [(1, 9), (17, 16), (150, 17), (17, 33), (1, 64), (150, 128)] {
                let product = Product::new(format, weight_rows, columns, rows);
                product.check(Case::active(rows));
                let alive = support::all_alive(rows) & !(0b101 << 6);
                product.check(Case { alive, addend: Addend::Separate, groups: 1, ..Case::active(rows) });
                product.check(Case { alive, addend: Addend::Output, groups: 3, ..Case::active(rows) });
            }
        }
    }
}

/// Every row count at which the waves divide themselves another way, with all rows and with the last alone.
#[test]
fn products_of_every_number_of_tiles() {
    for rows in [9, 15, 16, 17, 32, 33, 48, 49, 64, 65, 80, 81, 96, 97, 112, 113, 127, 128] {
        let product = Product::new(FORMATS[rows % 2], 70, 172, rows);
        product.check(Case { addend: Addend::Separate, ..Case::active(rows) });
        product.check(Case { alive: 1 << (rows - 1), ..Case::active(rows) });
    }
}

/// Rows that count in one tile only, in each half of the waves, and nowhere.
#[test]
fn products_of_which_few_rows_count() {
    let product = Product::new(Format::F16, 70, 64, BAND_ROWS);
    for alive in [0, 1, 1 << 63, 1 << 64, 1 << 127, 0xFFFF << 32, 0xFFFF << 96, 1 << 16 | 1 << 80] {
        product.check(Case { alive, addend: Addend::Output, ..Case::active(BAND_ROWS) });
    }
}

/// Steps of several bands of rows: a last one of two rows and of any number, three bands, bands of which no row
/// counts.
#[test]
fn products_of_several_bands_of_rows() {
    for format in FORMATS {
        let product = Product::new(format, 70, 60, ROWS_MAX);
        for (index, (rows, alive)) in
            [(130, u128::MAX), (256, 1 << 127 | 1), (300, u128::MAX << 91), (512, u128::MAX << 5), (400, 0)]
                .into_iter()
                .enumerate()
        {
            let addend = [Addend::None, Addend::Separate, Addend::Output][index % 3];
            product.check(Case { alive, addend, groups: [1, 3, 8][index % 3], ..Case::active(rows) });
        }
    }
}

/// More weight rows than a turn of all units has, where few lanes share a row; the logits of many slots.
#[test]
fn products_of_several_turns_and_of_outputs() {
    for (format, rows) in [(Format::F16, 16), (Format::BF16, 40), (Format::F16, 128)] {
        Product::new(format, 700, 64, rows).check(Case::active(rows));
        Product::new(format, 1040, 12, rows).check(Case::active(rows));
    }
    let product = Product::new(Format::BF16, 70, 256, 64);
    for rows in [9, 33, 64] {
        product.check(Case { of_outputs: true, ..Case::active(rows) });
    }
}

/// Steps of fewer rows have the bits of f32.
#[test]
fn products_of_few_rows_are_those_of_f32() {
    for format in FORMATS {
        let product = Product::new(format, 37, 300, 8);
        product.check(Case { addend: Addend::Output, alive: 0b1010_1101, ..Case::active(8) });
    }
}

/// x that F16 cannot hold as it is: beyond its range, among its denormals and below them; ties of the rounding.
#[test]
fn x_is_rounded_to_nearest_even_and_stays_in_range() {
    let special = [
        65504.0,
        65519.9,
        65520.0,
        -70000.0,
        3e38,
        6e-5,
        -3e-6,
        5.96e-8,
        2.98e-8,
        2.9e-8,
        1e-30,
        1.0 + 1.0 / 2048.0,
        1.0 + 3.0 / 2048.0,
        -1.0 - 1.0 / 2048.0,
        1.0 + 1.0 / 256.0,
        1.0 + 3.0 / 256.0,
        1.0 + 1.0 / 256.0 + 1.0 / 65536.0,
        0.0,
        -0.0,
        2049.0,
    ];
    for format in FORMATS {
        let mut product = Product::new(format, 16, 32, 16);
        // A matrix of one: y is what became of x.
        let one = [f16::ONE.to_bits(), bf16::ONE.to_bits()][usize::from(format == Format::BF16)];
        for (at, value) in product.matrix.values.iter_mut().enumerate() {
            *value = f32::from(u8::from(at / 32 == at % 32));
            product.matrix.planes[0][2 * at..2 * at + 2]
                .copy_from_slice(&(if *value == 1.0 { one } else { 0 }).to_le_bytes());
        }
        for (at, x) in product.x.iter_mut().flatten().enumerate() {
            *x = special[(at + at / 32) % special.len()];
        }
        let found = product.run(Case::active(16), None);
        assert!(found.difference.is_none(), "{format:?}: {:?}", found.difference);
    }
}

/// Faults planted in the code are differences, or findings of the checking mode: the tests see them.
#[test]
fn a_fault_is_seen() {
    /// `s_nop 0`
    const NOTHING: u32 = 0xBF80_0000;
    for (what, format, rows, fault, seen) in [
        // v_or_b32_e32 v18, 2, v17: 0 instead
        ("columns 0..15 of x twice", Format::F16, 20, [0x3824_2282, 0x3824_2280], "within"),
        // The second dword of v_lshl_add_u32 v7, v17, 3, s58: 2 instead
        ("the upper half of weights out of place", Format::F16, 20, [0x00E9_0711, 0x00E9_0511], "within"),
        // The second dword of v_wmma_f32_16x16x16_f16 v[96:103], v[48:51], v[64:67], v[96:103]: v[56:59] instead
        ("the first tile's x for the second", Format::F16, 20, [0x1D82_8130, 0x1D82_7130], "within"),
        // v_cmpx_gt_u32_e32 s50, v13
        ("columns of x beyond the last", Format::F16, 20, [0x7D98_1A32, NOTHING], "page fault"),
        // v_cmpx_gt_u32_e32 s50, v16
        ("columns of weights beyond the last", Format::BF16, 20, [0x7D98_2032, NOTHING], "page fault"),
        // v_min_u32_e32 v20, s51, v20
        ("rows beyond the step's", Format::F16, 20, [0x2628_2833, NOTHING], "page fault"),
        // The literal of s_mov_b32 s49
        ("BF16 cut off", Format::BF16, 20, [0x0000_7FFF, 0], "within"),
        // v_add_nc_u32_e32 v16, s62, v16
        ("the second part's sums for the third's", Format::F16, 20, [0x4A20_203E, NOTHING], "within"),
        // v_add_f32_e32 v88, v56, v88
        ("the addend left out", Format::F16, 20, [0x06B0_B138, NOTHING], "within"),
        // s_pack_ll_b32_b16 exec_lo, s4, s4
        ("rows that do not count stored", Format::F16, 32, [0x997E_0404, NOTHING], "not 0x"),
        // The literal of v_xor_b32_e32: all rounds in one buffer
        ("x overwritten while it is read", Format::F16, 20, [0x0000_2000, 0], "race"),
        // s_wait_dscnt 0x7
        ("no wait for the first tile's x", Format::F16, 128, [0xBFC6_0007, NOTHING], "counters"),
        // s_wait_dscnt 0x0, before barriers too
        ("x read before it is there", Format::F16, 128, [0xBFC6_0000, NOTHING], "counters"),
    ] {
        let product = Product::new(format, 40, 300, rows);
        let alive = support::all_alive(rows) & !0b100;
        let case = Case { alive, addend: Addend::Output, ..Case::active(rows) };
        assert!(product.run(case, None).difference.is_none(), "{what}");
        let text = match catch_unwind(AssertUnwindSafe(|| product.run(case, Some(fault)))) {
            Ok(found) => found.difference.unwrap_or_default(),
            Err(told) => told.downcast_ref::<String>().cloned().unwrap_or_default(),
        };
        assert!(text.contains(seen), "{what}: {text}");
    }
}

/// Wave slots of a product for each multiply-add: an instruction takes one, a matrix instruction of 16-bit floats 16
/// (instruction set reference §7.2). The table of docs/kernels.md; the budget with 128 rows is 0.008, half of what the
/// f32 body takes.
#[test]
fn products_stay_within_their_budget() {
    let expected = [(Format::F16, [0.0146, 0.0075, 0.0074]), (Format::BF16, [0.0156, 0.0080, 0.0079])];
    let (mut table, mut expected_table) = (String::new(), String::new());
    for (format, expected) in expected {
        let product = Product::new(format, 128, 4096, 128);
        let slots = |rows| {
            let multiply_adds = (rows * product.weight_rows * product.columns) as u64;
            let matrix_instructions = multiply_adds / (16 * 16 * 16);
            (product.check(Case::active(rows)) + 15 * matrix_instructions) as f64 / multiply_adds as f64
        };
        let line = |slots: [f64; 3]| format!("{format:?}: {:.4} {:.4} {:.4}\n", slots[0], slots[1], slots[2]);
        let found = [16, 64, 128].map(slots);
        assert!(found[2] < 0.008, "{format:?}: {found:?}");
        table += &line(found);
        expected_table += &line(expected);
    }
    assert!(table == expected_table, "found\n{table}expected\n{expected_table}");
}
