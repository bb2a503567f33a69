//! Transposing loads: which lane's bytes go to which element of which lane.
//!
//! Contract: memory holds distinct values, so that the permutation is read off. The model is that of
//! docs/arithmetic.md.

use super::bench::{Bench, Stop};
use super::finding::Finding;
use super::kernels::TRANSPOSE;
use super::tile::{SIDE, place};

/// Elements that one lane names, and receives.
const RUN: usize = 8;
const LANES: usize = 32;
/// Dwords of the input and output; where the results of the narrow load start.
const INPUT_DWORDS: usize = 128;
const OUTPUT_DWORDS: usize = 192;
const NARROW_START: usize = 128;

pub(super) fn lanes(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut holds = true;
    let mut told = Vec::new();
    let mut maps = Vec::new();
    for (name, bits, start) in [("b128", 16, 0), ("b64", 8, NARROW_START)] {
        // Element e of lane l is number 8 l + e: all of 256 fit a byte.
        let per_word = 32 / bits;
        let word =
            |at: usize| (0..per_word).fold(0u32, |word, e| word | ((at * per_word + e) as u32) << (bits * e));
        let input: Vec<u32> =
            (0..INPUT_DWORDS).map(|at| if at < LANES * RUN / per_word { word(at) } else { 0 }).collect();
        let output = bench.map(&TRANSPOSE, &input, OUTPUT_DWORDS, 1)?;
        let received = |lane: usize, slot: usize| {
            let at = slot * bits;
            let lane_dwords = RUN * bits / 32;
            (output[start + lane * lane_dwords + at / 32] >> (at % 32) & (u32::MAX >> (32 - bits))) as usize
        };
        let map: Vec<usize> = (0..LANES * RUN).map(|at| received(at / RUN, at % RUN)).collect();
        let model = model(bits);
        let wrong = map.iter().zip(&model).filter(|(seen, expected)| seen != expected).count();
        holds &= wrong == 0;
        told.push(format!("{name}: {wrong} of {} elements are elsewhere than in the model", map.len()));
        maps.push((name, wrong, map));
    }
    let mut finding = Finding::of_model(holds, told.join("; "));
    for (name, wrong, map) in maps {
        finding.number(format!("{name}.differences"), wrong as f64, "count");
        // By receiving lane, then element: number of the memory element, 8 per naming lane.
        let list: Vec<String> = map.iter().map(usize::to_string).collect();
        finding.text(format!("{name}.source_of_element"), list.join(" "), "text");
    }
    Ok(finding)
}

/// The memory element that each element of each lane receives.
fn model(bits: usize) -> Vec<usize> {
    let mut sources = vec![0; LANES * RUN];
    for (row, column) in (0..SIDE * SIDE).map(|at| (at / SIDE, at % SIDE)) {
        let (lane, slot) = place(bits, column, row);
        let namer = row + SIDE * (column / RUN);
        sources[lane * RUN + slot] = namer * RUN + column % RUN;
    }
    sources
}
