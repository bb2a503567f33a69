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
    let mut maps = Vec::new();
    for (name, bits, start) in [("b128", 16, 0), ("b64", 8, NARROW_START)] {
        // Element e of lane l is number 8 l + e: all of 256 fit a byte.
        let per_word = 32 / bits;
        let word =
            |at: usize| (0..per_word).fold(0u32, |word, e| word | ((at * per_word + e) as u32) << (bits * e));
        // The narrow load looks at the first half.
        let input: Vec<u32> = (0..INPUT_DWORDS).map(word).collect();
        let output = bench.map(&TRANSPOSE, &input, OUTPUT_DWORDS, 1)?;
        let received = |lane: usize, slot: usize| {
            let at = slot * bits;
            let lane_dwords = RUN * bits / 32;
            (output[start + lane * lane_dwords + at / 32] >> (at % 32) & (u32::MAX >> (32 - bits))) as usize
        };
        let map: Vec<usize> = (0..LANES * RUN).map(|at| received(at / RUN, at % RUN)).collect();
        maps.push((name, bits, map));
    }
    Ok(compared(&maps))
}

/// The maps beside the model: name of the load, bits of an element, and by receiving lane, then element, the number of
/// the memory element, 8 per naming lane.
fn compared(maps: &[(&str, usize, Vec<usize>)]) -> Finding {
    let wrong: Vec<usize> = maps
        .iter()
        .map(|(_, bits, map)| {
            map.iter().zip(model(*bits)).filter(|(seen, expected)| *seen != expected).count()
        })
        .collect();
    let words = |((name, _, map), wrong): (&(&str, usize, Vec<usize>), &usize)| {
        format!("{name}: {wrong} of {} elements are elsewhere than in the model", map.len())
    };
    let summary: Vec<String> = maps.iter().zip(&wrong).map(words).collect();
    let mut finding = Finding::of_model(wrong.iter().all(|wrong| *wrong == 0), summary.join("; "));
    for ((name, _, map), wrong) in maps.iter().zip(wrong) {
        finding.number(format!("{name}.differences"), wrong as f64, "count");
        let list: Vec<String> = map.iter().map(usize::to_string).collect();
        finding.text(format!("{name}.source_of_element"), list.join(" "), "text");
    }
    finding
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

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;

    /// Instruction set reference §7.3: of 16 bits, lane 0 has rows 0..4 and 8..12 of column 0, lane 16 the others; of
    /// 8, lane 0 has rows 0..8. Column 0 is the first element of lanes 0 to 15, and column 8 that of lanes 16 to 31.
    #[test]
    fn the_model_is_that_of_the_layout() {
        let (wide, narrow) = (model(16), model(8));
        assert_eq!((wide.len(), narrow.len()), (256, 256));
        assert_eq!(wide[..8], [0, 8, 16, 24, 64, 72, 80, 88]);
        assert_eq!(wide[128..136], [32, 40, 48, 56, 96, 104, 112, 120]);
        assert_eq!(wide[72..76], [129, 137, 145, 153]);
        assert_eq!(narrow[..8], [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(narrow[128..132], [64, 72, 80, 88]);
        for map in [wide, narrow] {
            let mut sources = map;
            sources.sort_unstable();
            assert!(sources.into_iter().eq(0..256), "each element goes somewhere");
        }
    }

    #[test]
    fn elements_that_are_elsewhere_are_counted() {
        let told = |maps: &[(&str, usize, Vec<usize>)]| lines(&compared(maps)).replace('"', "");
        let list = |map: &[usize]| map.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let (wide, narrow) = (model(16), model(8));
        let mut other = narrow.clone();
        other.swap(0, 255);
        let text = told(&[("b128", 16, wide.clone()), ("b64", 8, narrow.clone())]);
        assert_eq!(
            text,
            format!(
                "Confirms: b128: 0 of 256 elements are elsewhere than in the model; b64: 0 of 256 elements are elsewhere \
                 than in the model\nb128.differences 0 count\nb128.source_of_element {} text\nb64.differences 0 count\n\
                 b64.source_of_element {} text",
                list(&wide),
                list(&narrow)
            )
        );
        let text = told(&[("b128", 16, wide), ("b64", 8, other)]);
        assert!(
            text.starts_with(
                "Contradicts: b128: 0 of 256 elements are elsewhere than in the model; b64: 2 of 256 elements are \
                 elsewhere than in the model\n"
            ),
            "{text}"
        );
        assert!(text.contains("\nb64.differences 2 count\nb64.source_of_element 255 8 16 "), "{text}");
    }
}
