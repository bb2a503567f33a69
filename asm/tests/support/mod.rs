//! What the kernel tests share: a piece of virtual device, separate computations, weights, comparisons.
#![allow(dead_code, reason = "each family of kernels uses its part")]

pub mod harness;
pub mod integers;
pub mod kv;
pub mod product;
pub mod reference;
pub mod weights;

use harness::Device;
use weights::Weights;
use zrt_protocol::{BAND_ROWS, Output, ROWS_MAX, Row, SLOTS_MAX, Step};

/// Errors of `v_rcp_f32` and `v_sqrt_f32`, in units in the last place.
pub const BIASES: [i32; 3] = [-1, 0, 1];

/// Compares bits, and says where the first difference is.
pub fn assert_same(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "{what}: element {index} is {found:e}, expected {expected:e}"
        );
    }
}

/// Whether a row counts. The pattern has a bit for each row of a band, and is turned by 37 bits for each further band.
pub fn is_alive(pattern: u128, row: usize) -> bool {
    pattern.rotate_left(37 * (row / BAND_ROWS) as u32) >> (row % BAND_ROWS) & 1 == 1
}

/// The pattern of so many rows of which all count.
pub fn all_alive(rows: usize) -> u128 {
    u128::MAX >> BAND_ROWS.saturating_sub(rows)
}

/// The snapshot of a step with so many rows and this pattern.
pub fn snapshot(pattern: u128, rows: usize) -> [u32; ROWS_MAX / 32] {
    let mut words = [0; ROWS_MAX / 32];
    for row in (0..rows).filter(|row| is_alive(pattern, *row)) {
        words[row / 32] |= 1 << (row % 32);
    }
    words
}

pub fn planes(device: &mut Device, weights: &Weights) -> [u64; 4] {
    let mut addresses = [0; 4];
    for (address, plane) in addresses.iter_mut().zip(&weights.planes) {
        if !plane.is_empty() {
            *address = device.upload(plane);
        }
    }
    addresses
}

/// A step over these rows (slot, position, token): all alive in both snapshots. `outputs` are numbers of rows.
pub fn step(device: &mut Device, rows: &[[u32; 3]], outputs: &[u32]) -> u64 {
    let mut step =
        Step { epoch: 1, rows: rows.len() as u32, outputs: outputs.len() as u32, ..Step::default() };
    for (number, [slot, position, token]) in rows.iter().copied().enumerate() {
        step.row[number] = Row { slot, position, token, output: u32::MAX };
        step.alive.iter_mut().for_each(|mask| mask[number / 32] |= 1 << (number % 32));
    }
    assert!(outputs.len() <= SLOTS_MAX);
    for (number, row) in outputs.iter().enumerate() {
        step.output[number] = Output { row: *row, slot: rows[*row as usize][0] };
        step.row[*row as usize].output = number as u32;
    }
    device.upload(&[step])
}
