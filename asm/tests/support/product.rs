//! The surroundings of a product on the device: its step, what it is added to, and where the result goes.

use super::harness::Device;
use super::snapshot;
use super::weights::Random;
use zrt_protocol::{Output, Row, Step};

/// What is added to a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Addend {
    None,
    Separate,
    /// The output buffer's own contents.
    Output,
}

/// The output buffer of a product, and its addend.
pub struct Sums {
    addend: Addend,
    addends: Vec<f32>,
    pub output_va: u64,
    /// 0: there is none.
    pub addend_va: u64,
}

impl Sums {
    /// Buffers of so many words.
    pub fn new(device: &mut Device, addend: Addend, words: usize) -> Sums {
        let addends = Random::new(words as u64).reals(words);
        let output_va = match addend {
            Addend::Output => device.upload(&addends),
            _ => device.allocate(words * 4),
        };
        let addend_va = match addend {
            Addend::None => 0,
            Addend::Separate => device.upload(&addends),
            Addend::Output => output_va,
        };
        Sums { addend, addends, output_va, addend_va }
    }

    /// What is in the output buffer now.
    pub fn words(&self, device: &Device) -> Vec<u32> {
        device.words(self.output_va, self.addends.len())
    }

    /// What is added to the word at `at`, if anything is.
    pub fn addend(&self, at: usize) -> Option<f32> {
        (self.addend != Addend::None).then_some(self.addends[at])
    }

    /// The product that belongs at `at`, with its addend.
    pub fn sum(&self, at: usize, product: f32) -> f32 {
        self.addend(at).map_or(product, |addend| addend + product)
    }
}

/// So many rows without an output.
pub fn rows_of(count: usize) -> Vec<Row> {
    vec![Row { output: u32::MAX, ..Row::default() }; count]
}

/// A step with these active rows, of which those of the pattern count in both snapshots; its first `outputs` rows are
/// the rows of its outputs.
pub fn step_of(rows: &[Row], alive: u128, outputs: usize) -> Step {
    let mut step = Step { epoch: 1, rows: rows.len() as u32, outputs: outputs as u32, ..Step::default() };
    step.row[..rows.len()].copy_from_slice(rows);
    step.alive = [snapshot(alive, rows.len()); 2];
    for (number, output) in step.output[..outputs].iter_mut().enumerate() {
        *output = Output { row: number as u32, slot: number as u32 };
    }
    step
}
