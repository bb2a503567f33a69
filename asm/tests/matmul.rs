//! Matrix products and EMBED of every weight format on the virtual device's shader engine against a separate computation, bit for bit.

mod support;

use support::harness::Device;
use support::reference as cpu;
use support::weights::{self, Format, Random};
use support::{BIASES, assert_same, planes, step};
use zerocopy::IntoBytes;
use zrt_asm::params::{self, RowSet};

// ------------------------------------------------------------------------------------------------------------ matvec

/// Compares a product, and gives the wave instructions per byte of weights that it took.
fn check_matvec(format: Format, rows: usize, columns: usize) -> f64 {
    let mut random = Random::new((rows * 7919 + columns) as u64);
    let matrix = weights::random(format, rows, columns, &mut random);
    let x = random.reals(columns);
    let expected: Vec<f32> = matrix.values.chunks(columns).map(|row| cpu::dot(row, &x)).collect();

    let mut device = Device::new(0);
    let lanes_per_row_log2 = cpu::lanes_per_row(columns).ilog2();
    let output_va = device.allocate(rows * 4);
    let block = params::Matvec {
        header: params::Matvec::HEADER,
        plane_va: planes(&mut device, &matrix),
        input_va: device.upload(&x),
        output_va,
        rows: rows as u32,
        columns: columns as u32,
        chunks: columns.div_ceil(32) as u32,
        lanes_per_row_log2,
    };
    let groups = (rows as u32).div_ceil(zrt_asm::matvec_rows_per_group(lanes_per_row_log2));
    device.run(&format!("matvec_{}", format.name()), block.as_bytes(), groups);
    assert_same(&format!("{format:?} {rows} x {columns}"), &device.floats(output_va, rows), &expected);
    let weight_bytes: usize = matrix.planes.iter().map(Vec::len).sum();
    device.wave_instructions() as f64 / weight_bytes as f64
}

#[test]
fn matvec_of_every_format_and_shape() {
    for format in Format::ALL {
        for columns in [4, 12, 32, 64, 96, 172, 256, 512, 768, 1056, 1100, 2048, 2304] {
            if columns % format.block() == 0 {
                for rows in [1, 5, 37, 130] {
                    check_matvec(format, rows, columns);
                }
            }
        }
    }
}

/// More rows than one group has with 2 lanes per row (256), so that grids of several groups are covered there too.
#[test]
fn matvec_with_many_rows() {
    check_matvec(Format::F32, 700, 64);
    check_matvec(Format::Q8_0, 700, 64);
    check_matvec(Format::Q4_0, 513, 32);
    check_matvec(Format::Q4_K, 257, 256);
}

/// The table of docs/kernels.md, and the budget of 0.4 wave instructions per byte of weights.
#[test]
fn matvec_stays_within_its_budget() {
    let expected = [
        (Format::F32, [0.014, 0.020, 0.009]),
        (Format::F16, [0.035, 0.049, 0.024]),
        (Format::BF16, [0.042, 0.059, 0.032]),
        (Format::Q8_0, [0.119, 0.163, 0.099]),
        (Format::Q4_0, [0.231, 0.317, 0.192]),
        (Format::Q4_K, [0.257, 0.350, 0.214]),
        (Format::Q6_K, [0.191, 0.260, 0.163]),
    ];
    for (format, ratios) in expected {
        for ((rows, columns), expected) in [(256, 256), (256, 768), (64, 4096)].into_iter().zip(ratios) {
            let ratio = check_matvec(format, rows, columns);
            assert!(ratio <= 0.4, "{format:?} {rows} x {columns}: {ratio:.3}");
            assert_eq!(format!("{ratio:.3}"), format!("{expected:.3}"), "{format:?} {rows} x {columns}");
        }
    }
}

// ------------------------------------------------------------------------------------------------------------- embed

fn check_embed(format: Format, columns: usize, token: u32) {
    let rows = 9;
    let mut random = Random::new(columns as u64);
    let matrix = weights::random(format, rows, columns, &mut random);
    let row = if (token as usize) < rows { token as usize } else { 0 };
    let mut device = Device::new(0);
    let mut tokens = [u32::MAX; 8];
    tokens[5] = token;
    let output_va = device.allocate(columns * 4);
    let chunks = columns.div_ceil(32) as u32;
    let block = params::Embed {
        header: params::Embed::HEADER,
        state_va: state(&mut device, 5),
        tokens_va: device.upload(&tokens),
        plane_va: planes(&mut device, &matrix),
        output_va,
        columns: columns as u32,
        chunks,
        rows: rows as u32,
        reserved: 0,
    };
    device.run(&format!("embed_{}", format.name()), block.as_bytes(), chunks.div_ceil(32));
    let expected = &matrix.values[row * columns..(row + 1) * columns];
    assert_same(
        &format!("{format:?} row {token} of {columns}"),
        &device.floats(output_va, columns),
        expected,
    );
}

#[test]
fn embed_of_every_format() {
    for format in Format::ALL {
        for columns in [4, 64, 172, 256, 768, 1100, 2304] {
            if columns % format.block() == 0 {
                for token in [0, 3, 8, 9, u32::MAX] {
                    check_embed(format, columns, token);
                }
            }
        }
    }
}
