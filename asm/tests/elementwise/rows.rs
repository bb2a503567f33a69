//! The rows of a step as the cases lay them out, and what they compare.

use super::support::assert_same;
use super::support::harness::Device;
use super::support::integers::IntegerRows;
use super::support::weights::Random;
use zrt_protocol::params::Header;
use zrt_protocol::{Output, ROWS_MAX, Row, Step};

/// What lies between rows and in results before the run: a quiet NaN that no kernel produces.
pub const PADDING: f32 = f32::from_bits(0x7FC1_2345);
/// The flag of a header's `rows` that selects the odd snapshot.
const ODD_SNAPSHOT: u32 = 256;

/// The rows of a step: which of them do not count any more (by snapshot), which have an output.
#[derive(Clone, Debug)]
pub struct Scene {
    pub rows: usize,
    pub dead: [&'static [usize]; 2],
    pub is_odd: bool,
    pub outputs: &'static [usize],
}

pub const SCENE: Scene = Scene { rows: 7, dead: [&[1, 4], &[0, 4, 6]], is_odd: false, outputs: &[0, 4, 5] };
pub const ALL_ROWS: Scene = Scene { rows: 3, dead: [&[], &[]], is_odd: false, outputs: &[2] };
pub const NO_ROWS: Scene = Scene { rows: 0, dead: [&[], &[]], is_odd: false, outputs: &[] };
/// More rows than one 64-bit mask holds.
pub const MANY_ROWS: Scene = Scene {
    rows: 128,
    dead: [&[3, 31, 32, 63, 64, 100, 127], &[0, 67]],
    is_odd: false,
    outputs: &[0, 66, 127],
};

/// Outputs that make more than a tile.
pub const MANY_OUTPUTS: Scene = Scene {
    rows: 30,
    dead: [&[], &[]],
    is_odd: false,
    outputs: &[0, 2, 3, 5, 7, 8, 9, 11, 12, 13, 17, 19, 20, 21, 22, 25, 28, 29],
};

impl Scene {
    pub fn odd(self) -> Scene {
        Scene { is_odd: true, ..self }
    }

    /// All different, and none the row's number or slot.
    pub fn position(row: usize) -> usize {
        (row * 5 + 3) % 11
    }

    pub fn counts(&self, row: usize) -> bool {
        !self.dead[usize::from(self.is_odd)].contains(&row)
    }

    pub fn step(&self, device: &mut Device) -> u64 {
        let mut step = Step {
            epoch: 1,
            rows: self.rows as u32,
            outputs: self.outputs.len() as u32,
            // Rows that do not exist do not count, whatever their bit says.
            alive: [[u32::MAX; ROWS_MAX / 32]; 2],
            ..Step::default()
        };
        for (mask, dead) in step.alive.iter_mut().zip(self.dead) {
            dead.iter().for_each(|row| mask[row / 32] &= !(1 << (row % 32)));
        }
        for (number, row) in step.row.iter_mut().enumerate().take(self.rows) {
            let position = Scene::position(number) as u32;
            *row = Row { slot: 63 - number as u32 % 64, position, token: 9999, output: u32::MAX };
        }
        for (number, row) in self.outputs.iter().enumerate() {
            step.row[*row].output = number as u32;
            step.output[number] = Output { row: *row as u32, slot: step.row[*row].slot };
        }
        device.upload(&[step])
    }

    /// The header that selects this scene's snapshot.
    pub fn header(&self, header: Header) -> Header {
        Header { rows: header.rows | if self.is_odd { ODD_SNAPSHOT } else { 0 }, ..header }
    }

    /// `old` with the rows that count recomputed.
    pub fn expected(&self, old: &[Vec<f32>], new: impl Fn(usize) -> Vec<f32>) -> Vec<Vec<f32>> {
        old.iter()
            .enumerate()
            .map(|(row, values)| if self.counts(row) { new(row) } else { values.clone() })
            .collect()
    }
}

/// Rows in memory, `stride` elements apart; nothing after the last, so that the page ends there. If there is no row:
/// some padding.
pub fn lay_out(rows: &[Vec<f32>], stride: usize) -> Vec<f32> {
    if rows.is_empty() {
        return vec![PADDING; stride];
    }
    let mut all = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        all.resize(number * stride, PADDING);
        all.extend(row);
    }
    all
}

pub fn random_rows(random: &mut Random, rows: usize, count: usize) -> Vec<Vec<f32>> {
    (0..rows).map(|_| random.reals(count)).collect()
}

/// One workgroup, a few, and more than there are units.
fn grids(units: usize) -> [u32; 3] {
    [1, 3, units as u32 + 2]
}

pub fn run(device: &mut Device, name: &str, change: Option<[u32; 2]>, block: &[u8], groups: u32) {
    match change {
        None => device.run(name, block, groups),
        Some(change) => device.run_changed(name, change, block, groups),
    }
}

/// Runs a case on every grid: the same results, and those expected.
pub fn on_every_grid(what: &str, units: usize, case: impl Fn(u32) -> (Vec<f32>, Vec<f32>)) {
    for groups in grids(units) {
        let (found, expected) = case(groups);
        assert_same(&format!("{what}, {groups} workgroups"), &found, &expected);
    }
}

/// Found and expected floats, and behind them the words of integers.
pub fn with_integers(
    device: &Device,
    integers: &IntegerRows,
    results: &[Option<Vec<f32>>],
    (mut found, mut expected): (Vec<f32>, Vec<f32>),
) -> (Vec<f32>, Vec<f32>) {
    let (found_words, expected_words) = integers.words(device, results);
    found.extend(found_words.into_iter().map(f32::from_bits));
    expected.extend(expected_words.into_iter().map(f32::from_bits));
    (found, expected)
}
