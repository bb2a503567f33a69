//! Types with blocks of 256 columns whose weights are entries of a codebook with signs.
//!
//! Contract: as the parent's. Layouts: ggml-common.h, `block_iq2_xxs` and the others; what they mean: ggml-quants.c,
//! `dequantize_row_iq2_xxs` and the others. Scales are d, a power of two and an odd number, multiplied.

use super::block::{Block, COLUMNS, Scale, half_at, word_at};
use crate::gguf::codebooks::{self, even_signs};

/// Runs of 8 weights in a part.
const RUNS: usize = COLUMNS / 8;

/// Weights from runs: of each the signs as bits, and the magnitudes.
fn signed(runs: [(u8, [u8; 8]); RUNS]) -> [i32; COLUMNS] {
    std::array::from_fn(|column| {
        let (signs, magnitudes) = runs[column / 8];
        let magnitude = i32::from(magnitudes[column % 8]);
        if signs >> (column % 8) & 1 == 1 { -magnitude } else { magnitude }
    })
}

/// 8 weights of an entry of 2-bit levels.
fn eight(entry: u16) -> [u8; 8] {
    std::array::from_fn(|at| codebooks::IQ2_LEVELS[usize::from(entry >> (2 * at) & 3)])
}

/// 8 weights of two entries of 3-bit levels.
fn four_and_four(entries: [u16; 2], levels: [u8; 8]) -> [u8; 8] {
    std::array::from_fn(|at| levels[usize::from(entries[at / 4] >> (3 * (at % 4)) & 7)])
}

/// 2s + 1 of scales s of 4 bits: of both halves, or of each.
fn odd(scales: [u32; 2]) -> [i32; 2] {
    scales.map(|scale| (scale & 15) as i32 * 2 + 1)
}

/// d (f16); for each part 4 entries of 8 bits, then 4 times 7 bits of signs and 4 bits of scale.
pub(super) fn iq2_xxs(stored: &[u8], part: usize) -> Block {
    let entries = &stored[2 + part * 8..][..4];
    let signs = word_at(stored, 6 + part * 8);
    let runs = std::array::from_fn(|run| {
        let entry = codebooks::IQ2_XXS[usize::from(entries[run])];
        (even_signs((signs >> (7 * run)) as u8), eight(entry))
    });
    let scale = Scale::Halves(half_at(stored, 0) * 0.125, odd([signs >> 28; 2]));
    Block { integers: signed(runs), scale }
}

/// d (f16), 32 times 9 bits of entry and 7 bits of signs, 8 bytes of scales of halves.
pub(super) fn iq2_xs(stored: &[u8], part: usize) -> Block {
    let runs = std::array::from_fn(|run| {
        let at = 2 + (part * RUNS + run) * 2;
        let word = u16::from_le_bytes([stored[at], stored[at + 1]]);
        (even_signs((word >> 9) as u8), eight(codebooks::IQ2_XS[usize::from(word & 511)]))
    });
    let scales = u32::from(stored[66 + part]);
    let scale = Scale::Halves(half_at(stored, 0) * 0.125, odd([scales, scales >> 4]));
    Block { integers: signed(runs), scale }
}

/// d (f16), 32 bytes of entries, 32 bytes of signs, 8 bytes of upper bits of entries, 8 bytes of scales of halves.
pub(super) fn iq2_s(stored: &[u8], part: usize) -> Block {
    let runs = std::array::from_fn(|run| {
        let high = usize::from(stored[66 + part] >> (2 * run) & 3);
        let entry = usize::from(stored[2 + part * RUNS + run]) | high << 8;
        (stored[34 + part * RUNS + run], eight(codebooks::IQ2_S[entry]))
    });
    let scales = u32::from(stored[74 + part]);
    let scale = Scale::Halves(half_at(stored, 0) * 0.125, odd([scales, scales >> 4]));
    Block { integers: signed(runs), scale }
}

/// d (f16), 64 bytes of entries of 4 weights, for each part 4 times 7 bits of signs and 4 bits of scale.
pub(super) fn iq3_xxs(stored: &[u8], part: usize) -> Block {
    let signs = word_at(stored, 66 + part * 4);
    let runs = std::array::from_fn(|run| {
        let at = 2 + (part * RUNS + run) * 2;
        let entries = [0, 1].map(|entry| codebooks::IQ3_XXS[usize::from(stored[at + entry])]);
        (even_signs((signs >> (7 * run)) as u8), four_and_four(entries, codebooks::IQ3_XXS_LEVELS))
    });
    let scale = Scale::Halves(half_at(stored, 0) * 0.25, odd([signs >> 28; 2]));
    Block { integers: signed(runs), scale }
}

/// d (f16), 64 bytes of entries of 4 weights, 8 bytes of their ninth bits, 32 bytes of signs, 4 bytes of scales.
pub(super) fn iq3_s(stored: &[u8], part: usize) -> Block {
    let runs = std::array::from_fn(|run| {
        let entries = [0, 1].map(|entry| {
            let number = run * 2 + entry;
            let ninth = usize::from(stored[66 + part] >> number & 1);
            codebooks::IQ3_S[usize::from(stored[2 + part * 8 + number]) | ninth << 8]
        });
        (stored[74 + part * RUNS + run], four_and_four(entries, codebooks::IQ3_S_LEVELS))
    });
    let scales = u32::from(stored[106 + part / 2]) >> (part % 2 * 4);
    Block { integers: signed(runs), scale: Scale::Halves(half_at(stored, 0), odd([scales; 2])) }
}
