//! One GGUF block to its places in the planes of the device's layout (`docs/kernels.md`, weight layouts).
//!
//! Contract: the caller gives whole blocks and stores what `put` is called with: plane, chunk of the block, offset in
//! what the plane has of that chunk (or, chunk 0, of the superblock), bytes. Written from the layouts of ggml-common.h,
//! without the oracle's reading of them.

use crate::gguf::TensorKind;
use crate::gguf::codebooks::{self, even_signs};

/// Chunks of a superblock.
const CHUNKS: usize = 8;

/// Repacks a block of a quantised tensor.
pub(super) fn block(kind: TensorKind, block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    match kind {
        TensorKind::Q8_0 => {
            put(0, 0, 0, &block[2..]);
            put(1, 0, 0, &block[..2]);
        }
        TensorKind::INT8 | TensorKind::FP8 => {
            put(0, 0, 0, &block[4..]);
            put(1, 0, 0, &block[..4]);
        }
        TensorKind::Q4_0 | TensorKind::IQ4_NL => {
            put(0, 0, 0, &block[2..]);
            put(1, 0, 0, &block[..2]);
        }
        TensorKind::Q4_1 => {
            put(0, 0, 0, &block[4..]);
            put(1, 0, 0, &block[..4]);
        }
        TensorKind::Q5_0 => {
            put(0, 0, 0, &block[6..]);
            put(1, 0, 0, &fifths_of_word(&block[2..6]));
            put(2, 0, 0, &block[..2]);
        }
        TensorKind::Q5_1 => {
            put(0, 0, 0, &block[8..]);
            put(1, 0, 0, &fifths_of_word(&block[4..8]));
            put(2, 0, 0, &block[..4]);
        }
        TensorKind::MXFP4 => {
            put(0, 0, 0, &block[1..]);
            put(1, 0, 0, &block[..1]);
        }
        TensorKind::Q2_K => q2_k(block, put),
        TensorKind::Q3_K => q3_k(block, put),
        TensorKind::Q4_K => q4_k(block, put),
        TensorKind::Q5_K => q5_k(block, put),
        TensorKind::Q6_K => q6_k(block, put),
        TensorKind::IQ4_XS => {
            for chunk in 0..CHUNKS {
                put(0, chunk, 0, &block[8 + chunk * 16..][..16]);
            }
            put(1, 0, 0, &block[..8]);
        }
        _ => codes(kind, block, put),
    }
}

/// 32 four-bit values as the chunk's 16 bytes: element j low, element j + 16 high.
fn nibbles(quants: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|j| (quants[j] & 15) | (quants[j + 16] & 15) << 4)
}

/// 32 two-bit values: dword h of two, byte b, bits 2k+1:2k = element 16h + 4k + b.
fn pairs(quants: &[u8; 32]) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (element, quant) in quants.iter().enumerate() {
        let (dword, bits, byte) = (element / 16, element % 16 / 4 * 2, element % 4);
        bytes[dword * 4 + byte] |= (quant & 3) << bits;
    }
    bytes
}

/// 32 bits: byte b, bit j = element 4j + b.
fn bits(bit: impl Fn(usize) -> u8) -> [u8; 4] {
    std::array::from_fn(|byte| (0..8).fold(0, |sum, quad| sum | (bit(4 * quad + byte) & 1) << quad))
}

/// The same of a word whose bit j belongs to element j.
fn fifths_of_word(word: &[u8]) -> [u8; 4] {
    bits(|element| word[element / 8] >> (element % 8))
}

/// Low nibbles of a pair of 6-bit numbers as a byte, and their upper bits as a nibble.
fn pair_of_six_bits([first, second]: [u8; 2]) -> (u8, u8) {
    ((first & 15) | (second & 15) << 4, (first >> 4) | (second >> 4) << 2)
}

/// Scale and minimum of a chunk of Q4_K and Q5_K: the file keeps those of chunks 0..4 whole, of chunks 4..8 split into
/// 4 + 2 bits.
fn scale_and_minimum(scales: &[u8], chunk: usize) -> [u8; 2] {
    match chunk {
        0..4 => [scales[chunk] & 63, scales[chunk + 4] & 63],
        _ => [
            (scales[chunk + 4] & 15) | (scales[chunk - 4] >> 6) << 4,
            (scales[chunk + 4] >> 4) | (scales[chunk] >> 6) << 4,
        ],
    }
}

/// Puts the low bytes of 8 pairs of 6-bit numbers; returns their upper bits, a nibble each.
fn put_pairs(
    plane: usize,
    put: &mut impl FnMut(usize, usize, usize, &[u8]),
    pair: impl Fn(usize) -> [u8; 2],
) -> [u8; 4] {
    let mut high = [0; 4];
    for chunk in 0..CHUNKS {
        let (low, upper) = pair_of_six_bits(pair(chunk));
        put(plane, chunk, 0, &[low]);
        high[chunk / 2] |= upper << (4 * (chunk & 1));
    }
    high
}

fn q4_k(block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    put(1, 0, 0, &block[..4]);
    let high = put_pairs(2, &mut put, |chunk| scale_and_minimum(&block[4..16], chunk));
    put(3, 0, 0, &high);
    for chunk in 0..CHUNKS {
        let stored = &block[16 + chunk / 2 * 32..];
        let quants = std::array::from_fn(|j| stored[j] >> (4 * (chunk & 1)));
        put(0, chunk, 0, &nibbles(&quants));
    }
}

fn q5_k(block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    put(3, 0, 0, &block[..4]);
    let high = put_pairs(2, &mut put, |chunk| scale_and_minimum(&block[4..16], chunk));
    put(3, 0, 4, &high);
    for chunk in 0..CHUNKS {
        let stored = &block[48 + chunk / 2 * 32..];
        let quants = std::array::from_fn(|j| stored[j] >> (4 * (chunk & 1)));
        put(0, chunk, 0, &nibbles(&quants));
        put(1, chunk, 0, &bits(|element| block[16 + element] >> chunk));
    }
}

fn q6_k(block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    for chunk in 0..CHUNKS {
        let (half, run) = (chunk / 4, chunk % 4);
        let low = &block[half * 64 + (run & 1) * 32..][..32];
        let high = &block[128 + half * 32..][..32];
        put(0, chunk, 0, &nibbles(&std::array::from_fn(|j| low[j] >> (run / 2 * 4))));
        put(1, chunk, 0, &pairs(&std::array::from_fn(|j| high[j] >> (run * 2))));
        put(2, chunk, 0, &block[192 + chunk * 2..][..2]);
    }
    put(3, 0, 0, &block[208..210]);
}

/// Values of chunk `chunk` of Q2_K and Q3_K.
fn two_bits(stored: &[u8], chunk: usize) -> [u8; 8] {
    pairs(&std::array::from_fn(|j| stored[chunk / 4 * 32 + j] >> (chunk % 4 * 2)))
}

fn q2_k(block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    for chunk in 0..CHUNKS {
        put(0, chunk, 0, &two_bits(&block[16..80], chunk));
    }
    put(1, 0, 0, &block[..16]);
    put(2, 0, 0, &block[80..]);
}

fn q3_k(block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    for chunk in 0..CHUNKS {
        put(0, chunk, 0, &two_bits(&block[32..96], chunk));
        put(1, chunk, 0, &bits(|element| block[element] >> chunk));
    }
    // Sixteen scales: low nibbles of the first eight, high nibbles of the others, then two bits of every fourth in a
    // byte.
    let scales = &block[96..108];
    let scale = |number: usize| {
        let low = scales[number & 7] >> (number >> 3 << 2) & 15;
        low | (scales[8 + (number & 3)] >> (number >> 2 << 1) & 3) << 4
    };
    let high = put_pairs(2, &mut put, |chunk| [scale(2 * chunk), scale(2 * chunk + 1)]);
    put(3, 0, 0, &block[108..110]);
    put(3, 0, 4, &high);
}

/// Types with a codebook: codes of 4 bits, see `code_table`.
fn codes(kind: TensorKind, block: &[u8], mut put: impl FnMut(usize, usize, usize, &[u8])) {
    put(2, 0, 0, &block[..2]);
    for chunk in 0..CHUNKS {
        let mut quants = [0u8; 32];
        let mut scales = 0;
        for run in 0..4 {
            let (levels, signs, scale) = run_of(kind, &block[2..], chunk, run);
            scales |= scale << (run / 2 * 4);
            for (element, quant) in quants[run * 8..][..8].iter_mut().enumerate() {
                *quant = levels[element] | (signs >> element & 1) << 3;
            }
        }
        put(0, chunk, 0, &nibbles(&quants));
        put(1, chunk, 0, &[scales]);
    }
}

/// Levels and signs of the 8 weights of a run, and the scale of its half. `stored`: what follows d.
fn run_of(kind: TensorKind, stored: &[u8], chunk: usize, run: usize) -> ([u8; 8], u8, u8) {
    let number = chunk * 4 + run;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| stored[at + byte]));
    let byte = |at: usize| usize::from(stored[at]);
    let of_pair = |scales: u8, second: bool| if second { scales >> 4 } else { scales & 15 };
    let two = |entry: u16| std::array::from_fn(|at| (entry >> (2 * at) & 3) as u8);
    let three = |entries: [u16; 2]| std::array::from_fn(|at| (entries[at / 4] >> (at % 4 * 3) & 7) as u8);
    match kind {
        TensorKind::IQ2_XXS => {
            let signs = word(chunk * 8 + 4);
            let entry = codebooks::IQ2_XXS[byte(chunk * 8 + run)];
            (two(entry), even_signs((signs >> (7 * run)) as u8), (signs >> 28) as u8)
        }
        TensorKind::IQ2_XS => {
            let entry = byte(number * 2) | (byte(number * 2 + 1) & 1) << 8;
            let signs = even_signs(stored[number * 2 + 1] >> 1);
            (two(codebooks::IQ2_XS[entry]), signs, of_pair(stored[64 + chunk], run >= 2))
        }
        TensorKind::IQ2_S => {
            let entry = byte(number) | (byte(64 + chunk) >> (2 * run) & 3) << 8;
            (two(codebooks::IQ2_S[entry]), stored[32 + number], of_pair(stored[72 + chunk], run >= 2))
        }
        TensorKind::IQ3_XXS => {
            let signs = word(64 + chunk * 4);
            let entries = [0, 1].map(|at| codebooks::IQ3_XXS[byte(number * 2 + at)]);
            (three(entries), even_signs((signs >> (7 * run)) as u8), (signs >> 28) as u8)
        }
        _ => {
            let ninths = byte(64 + chunk) >> (2 * run);
            let entries = [0, 1].map(|at| codebooks::IQ3_S[byte(number * 2 + at) | (ninths >> at & 1) << 8]);
            (three(entries), stored[72 + number], of_pair(stored[104 + chunk / 2], chunk % 2 == 1))
        }
    }
}
