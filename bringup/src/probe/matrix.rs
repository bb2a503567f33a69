//! Matrix and dot operations: integers against the host, and the order and rounding of float sums.
//!
//! Contract: inputs repeat from run to run. Float results are fitted against [`super::sums::family`]; the answer is
//! which models survive, and whether the project's (docs/arithmetic.md) is one of them.

use super::bench::{Bench, Stop};
use super::finding::Finding;
use super::kernels::{BYTES, DOT, MATRIX_BF16, MATRIX_F16, MATRIX_FP8, MATRIX_I8, MATRIX_U8, ProbeKernel};
use super::sums::{Case, Model, PROJECT, Product, family, survivors};
use super::tile::{Format, RESULT_DWORDS, SIDE, TILE_DWORDS, pack, result_place};
use zrt_mem::Random;

/// Tiles of a float question: ordinary ones, then small ones, then ones with denormal factors.
const TILES: usize = 16;
const SMALL_TILES: usize = 4;
/// Zero rows of A in the small tiles, so that the addend stays unchanged.
const ZERO_ROWS: usize = 4;
/// Tiles of the integer question.
const INTEGER_TILES: usize = 8;
/// Elements of a dot question: a multiple of a wave's 32.
const DOTS: usize = 4096;
/// Of these, the last ones are small, the last half of them with denormal factors.
const SMALL_DOTS: usize = 512;
/// Survivors that are reported by name.
const NAMES_MAX: usize = 12;

type Lines = [[u32; SIDE]; SIDE];

/// How inputs of a format are drawn: exponents of factors around 0, and around where sums or factors are denormal.
#[derive(Clone, Copy)]
struct Draw {
    format: Format,
    /// Exponents of ordinary factors are in -spread..=spread.
    spread: i32,
    /// Exponent of small factors: their products are denormals of binary32 if the format reaches that far.
    small: i32,
}

const F16: Draw = Draw { format: Format::F16, spread: 6, small: -14 };
const BF16: Draw = Draw { format: Format::Bf16, spread: 6, small: -69 };
const FP8: Draw = Draw { format: Format::Fp8, spread: 6, small: -6 };

/// Which numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Ordinary,
    /// Zeros, denormals, and numbers of [`Draw::small`].
    Small,
    Denormal,
}

/// Sizes of A, B and C of number `at`, of which the last `small_count` are small.
fn sizes(at: usize, count: usize, small_count: usize) -> [Size; 3] {
    match count - at {
        left if left > small_count => [Size::Ordinary; 3],
        left if left > small_count / 2 => [Size::Small; 3],
        _ => [Size::Denormal, Size::Ordinary, Size::Small],
    }
}

impl Draw {
    fn factor(self, random: &mut Random, size: Size) -> u32 {
        let (negative, fraction) = (random.below(2) == 1, random.word());
        let format = self.format;
        let denormal = || format.bits_of(negative, 0, fraction) & !format.bits_of(false, 0, 0);
        match (size, random.below(4)) {
            (Size::Ordinary, _) => {
                let exponent = random.below(2 * self.spread as u32 + 1) as i32 - self.spread;
                format.bits_of(negative, exponent, fraction)
            }
            (Size::Small, 0) => 0,
            (Size::Small, 1) | (Size::Denormal, _) => denormal(),
            (Size::Small, _) => format.bits_of(negative, self.small, fraction),
        }
    }

    fn addend(self, random: &mut Random, size: Size) -> f32 {
        let fraction = random.word() & 0x807f_ffff;
        if size != Size::Ordinary {
            // A denormal, or a number near the products.
            let field = if random.below(2) == 0 { 0 } else { (2 * self.small + 127).max(1) as u32 };
            return f32::from_bits(fraction | field << 23);
        }
        let field = 127 + 2 * self.spread as u32 - random.below(3 * self.spread as u32);
        f32::from_bits(fraction | field << 23)
    }

    fn product(self, a: u32, b: u32) -> Product {
        let ((a, a_is_denormal), (b, b_is_denormal)) = (self.format.value(a), self.format.value(b));
        Product { value: a * b, has_denormal: a_is_denormal || b_is_denormal }
    }
}

fn lines(mut element: impl FnMut() -> u32) -> Lines {
    std::array::from_fn(|_| std::array::from_fn(|_| element()))
}

/// Runs tiles; A, B, C and D of each.
fn run_tiles(
    bench: &mut Bench<'_>,
    kernel: &ProbeKernel,
    format: Format,
    tiles: &[[Lines; 3]],
) -> Result<Vec<Lines>, Stop> {
    let mut input = Vec::with_capacity(tiles.len() * TILE_DWORDS);
    tiles.iter().for_each(|[a, b, c]| input.extend(pack(format, a, b, c)));
    let output = bench.map(kernel, &input, tiles.len() * RESULT_DWORDS, tiles.len() as u32)?;
    let line = |words: &[u32], row| std::array::from_fn(|column| words[result_place(row, column)]);
    Ok(output.chunks_exact(RESULT_DWORDS).map(|words| std::array::from_fn(|row| line(words, row))).collect())
}

/// A, B and C of the integer question.
fn integer_tiles() -> Vec<[Lines; 3]> {
    let mut random = Random::new(8);
    (0..INTEGER_TILES)
        .map(|number| {
            // The first tile is all extremes; the last one's addend makes sums wrap.
            let byte = |random: &mut Random| match number {
                0 => [0x80, 0x7f, 0xff][random.below(3) as usize],
                _ => random.word() & 0xff,
            };
            let [a, b] = [(); 2].map(|()| lines(|| byte(&mut random)));
            let wraps = number == INTEGER_TILES - 1;
            [a, b, lines(|| if wraps { 0x7fff_ffff } else { random.word() >> 8 })]
        })
        .collect()
}

pub(super) fn integers(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let tiles = integer_tiles();
    let signed = run_tiles(bench, &MATRIX_I8, Format::Byte, &tiles)?;
    let unsigned = run_tiles(bench, &MATRIX_U8, Format::Byte, &tiles)?;
    let mut input = Vec::new();
    for [a, b, c] in &tiles {
        for (row, a) in a.iter().enumerate() {
            for (column, b) in b.iter().enumerate() {
                let dwords = |line: &[u32; SIDE]| -> [u32; 4] {
                    std::array::from_fn(|at| {
                        (0..4).fold(0, |word, byte| word | line[4 * at + byte] << (8 * byte))
                    })
                };
                input.extend(dwords(a));
                input.extend(dwords(b));
                input.extend([c[row][column], 0, 0, 0]);
            }
        }
    }
    let sums = tiles.len() * SIDE * SIDE;
    let dots = bench.map(&BYTES, &input, 2 * sums, (sums / 32) as u32)?;
    Ok(compared(&tiles, [&signed, &unsigned], &dots))
}

/// What matrix and dot operations gave, signed and unsigned, beside the host's sums.
fn compared(tiles: &[[Lines; 3]], [signed, unsigned]: [&[Lines]; 2], dots: &[u32]) -> Finding {
    let sums = tiles.len() * SIDE * SIDE;
    let mut differences = [0usize; 4];
    for at in 0..sums {
        let (tile, row, column) = (at / (SIDE * SIDE), at / SIDE % SIDE, at % SIDE);
        let [a, b, c] = &tiles[tile];
        let sum = |widen: fn(u32) -> i64| {
            let products = a[row].iter().zip(&b[column]).map(|(a, b)| widen(*a) * widen(*b));
            (i64::from(c[row][column] as i32) + products.sum::<i64>()) as u32
        };
        let (as_signed, as_unsigned) = (sum(|byte| i64::from(byte as u8 as i8)), sum(i64::from));
        differences[0] += usize::from(signed[tile][row][column] != as_signed);
        differences[1] += usize::from(unsigned[tile][row][column] != as_unsigned);
        differences[2] += usize::from(dots[2 * at] != as_signed);
        differences[3] += usize::from(dots[2 * at + 1] != as_unsigned);
    }
    let all: usize = differences.iter().sum();
    let mut finding =
        Finding::of_model(all == 0, format!("{all} of {} sums differ from the host's", 4 * sums));
    for (name, count) in
        ["matrix_signed", "matrix_unsigned", "dot_signed", "dot_unsigned"].iter().zip(differences)
    {
        finding.number(format!("{name}_differences"), count as f64, "count");
    }
    finding
}

pub(super) fn tiles(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut fits = Vec::new();
    for (name, kernel, draw) in
        [("wmma_f16", MATRIX_F16, F16), ("wmma_bf16", MATRIX_BF16, BF16), ("wmma_fp8", MATRIX_FP8, FP8)]
    {
        let mut random = Random::new(16);
        let tiles: Vec<[Lines; 3]> = (0..TILES)
            .map(|number| {
                let [a_size, b_size, c_size] = sizes(number, TILES, SMALL_TILES);
                let [mut a, b] = [a_size, b_size].map(|size| lines(|| draw.factor(&mut random, size)));
                if c_size == Size::Small {
                    a[..ZERO_ROWS].fill([0; SIDE]);
                }
                [a, b, lines(|| draw.addend(&mut random, c_size).to_bits())]
            })
            .collect();
        let results = run_tiles(bench, &kernel, draw.format, &tiles)?;
        let mut cases = Vec::with_capacity(TILES * SIDE * SIDE);
        for ([a, b, c], d) in tiles.iter().zip(&results) {
            for (row, column) in (0..SIDE * SIDE).map(|at| (at / SIDE, at % SIDE)) {
                let products = a[row].iter().zip(&b[column]).map(|(a, b)| draw.product(*a, *b)).collect();
                let addend = f32::from_bits(c[row][column]);
                cases.push(Case { products, addend, seen: d[row][column] });
            }
        }
        fits.push((name, PROJECT, fit(SIDE, &cases)));
    }
    Ok(told(&fits))
}

pub(super) fn dots(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut fits = Vec::new();
    let operations = [("dot2_f16", 0, F16, 2), ("dot2_bf16", 1, BF16, 2), ("dot4_fp8", 2, FP8, 4)];
    for (name, column, draw, terms) in operations {
        let bits = draw.format.bits();
        let mut random = Random::new(2);
        let mut input = Vec::with_capacity(4 * DOTS);
        for number in 0..DOTS {
            let [a_size, b_size, c_size] = sizes(number, DOTS, SMALL_DOTS);
            let mut vector =
                |size| (0..terms).fold(0, |word, at| word | draw.factor(&mut random, size) << (bits * at));
            let (a, b) = (vector(a_size), vector(b_size));
            input.extend([a, b, draw.addend(&mut random, c_size).to_bits(), 0]);
        }
        let output = bench.map(&DOT, &input, 4 * DOTS, (DOTS / 32) as u32)?;
        // Of a part its format looks at its own bits.
        let part = |word: u32, at: usize| word >> (bits * at);
        let cases: Vec<Case> = input
            .chunks_exact(4)
            .zip(output.chunks_exact(4))
            .map(|(words, results)| Case {
                products: (0..terms).map(|at| draw.product(part(words[0], at), part(words[1], at))).collect(),
                addend: f32::from_bits(words[2]),
                seen: results[column],
            })
            .collect();
        // docs/arithmetic.md: this one flushes denormals of binary32.
        let model = Model { flushes_sums: column == 0, ..PROJECT };
        fits.push((name, model, fit(terms, &cases)));
    }
    Ok(told(&fits))
}

fn fit(terms: usize, cases: &[Case]) -> Vec<Model> {
    survivors(family(terms), cases)
}

/// The answer of several fits: operation, the project's model of it, and what survived.
fn told(fits: &[(&str, Model, Vec<Model>)]) -> Finding {
    let holds = fits.iter().all(|(_, model, found)| found.contains(model));
    let words = |(name, model, found): &(&str, Model, Vec<Model>)| match found.len() {
        0 => format!("{name}: no model fits"),
        count => {
            let ours = if found.contains(model) { "ours among them" } else { "ours not" };
            format!("{name}: {count} models fit, {ours}")
        }
    };
    let mut finding = Finding::of_model(holds, fits.iter().map(words).collect::<Vec<_>>().join("; "));
    for (name, model, found) in fits {
        finding.number(format!("{name}.survivors"), found.len() as f64, "count");
        let ours = if found.contains(model) { "yes" } else { "no" };
        finding.text(format!("{name}.our_model_survives"), ours.into(), "text");
        for (at, model) in found.iter().take(NAMES_MAX).enumerate() {
            finding.text(format!("{name}.survivor_{at}"), model.name(), "text");
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_last_ones_are_small_and_of_those_the_last_half_has_denormal_factors() {
        use Size::{Denormal, Ordinary, Small};
        let last = [Denormal, Ordinary, Small];
        let expected = [[Ordinary; 3], [Ordinary; 3], [Small; 3], [Small; 3], last, last];
        assert_eq!([0, 11, 12, 13, 14, 15].map(|at| sizes(at, 16, 4)), expected);
    }

    /// Sign, exponent field and fraction of a number of so many bits of exponent and fraction.
    fn parts(bits: u32, exponent_bits: u32, fraction_bits: u32) -> (bool, u32, u32) {
        assert!(
            bits.checked_shr(1 + exponent_bits + fraction_bits).unwrap_or(0) == 0,
            "{bits:#x} is too long"
        );
        let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        (bits >> (exponent_bits + fraction_bits) == 1, field, bits & ((1 << fraction_bits) - 1))
    }

    /// What 4000 draws give: the exponent fields, whether both signs occur in each, and whether fractions differ.
    fn drawn(
        exponent_bits: u32,
        fraction_bits: u32,
        mut draw: impl FnMut(&mut Random) -> u32,
    ) -> BTreeSet<u32> {
        let mut random = Random::new(1);
        let drawn: BTreeSet<(bool, u32, u32)> =
            (0..4000).map(|_| parts(draw(&mut random), exponent_bits, fraction_bits)).collect();
        let fields: BTreeSet<u32> = drawn.iter().map(|(_, field, _)| *field).collect();
        for field in &fields {
            let of = |negative| drawn.iter().filter(|(sign, f, _)| *sign == negative && f == field).count();
            assert!(of(true) > 3 && of(false) > 3, "{field}: {} negative, {} not", of(true), of(false));
        }
        fields
    }

    /// The formats' fields are IEEE's of binary16, those of binary32 cut off, and OCP's of E4M3.
    #[test]
    fn factors_have_the_exponents_of_their_size() {
        for (draw, exponent_bits, fraction_bits, bias, small) in
            [(F16, 5, 10, 15, 1), (BF16, 8, 7, 127, 127 - 69), (FP8, 4, 3, 7, 1)]
        {
            let fields = |size| drawn(exponent_bits, fraction_bits, |random| draw.factor(random, size));
            assert!(fields(Size::Ordinary).into_iter().eq(bias - 6..=bias + 6), "{:?}", draw.format);
            assert!(fields(Size::Small).into_iter().eq([0, small]), "{:?}", draw.format);
            assert!(fields(Size::Denormal).into_iter().eq([0]), "{:?}", draw.format);
            // A quarter of the small ones is zero.
            let mut random = Random::new(2);
            let zeros = (0..4000).filter(|_| draw.factor(&mut random, Size::Small) == 0).count();
            assert!((800..1700).contains(&zeros), "{:?}: {zeros} of 4000", draw.format);
        }
    }

    /// In units of binary32's exponent: ordinary addends reach from below the products to the largest of them; small
    /// ones are denormal or near the products, or have the least exponent.
    #[test]
    fn addends_are_near_the_products() {
        for (draw, near) in [(F16, 127 - 28), (BF16, 1), (FP8, 127 - 12)] {
            let fields = |size| drawn(8, 23, |random| draw.addend(random, size).to_bits());
            assert!(fields(Size::Ordinary).into_iter().eq(127 - 5..=127 + 12), "{:?}", draw.format);
            for size in [Size::Small, Size::Denormal] {
                assert!(fields(size).into_iter().eq([0, near]), "{:?}", draw.format);
            }
        }
    }

    #[test]
    fn a_product_knows_whether_a_factor_was_denormal() {
        // 1, -2 and the least denormal of binary16.
        let product = |a, b| {
            let Product { value, has_denormal } = F16.product(a, b);
            (value, has_denormal)
        };
        assert_eq!(product(0x3c00, 0xc000), (-2.0, false));
        assert_eq!(product(0x3c00, 0x0001), (2f64.powi(-24), true));
        assert_eq!(product(0x0001, 0x3c00), (2f64.powi(-24), true));
    }

    #[test]
    fn integers_are_extremes_first_and_wrap_at_last() {
        let tiles = integer_tiles();
        assert_eq!(tiles.len(), 8);
        let values = |lines: &Lines| lines.as_flattened().iter().copied().collect::<BTreeSet<u32>>();
        for (at, [a, b, c]) in tiles.iter().enumerate() {
            for factors in [a, b].map(values) {
                match at {
                    0 => assert!(factors.into_iter().eq([0x7f, 0x80, 0xff])),
                    _ => assert!(factors.len() > 100 && factors.iter().all(|byte| *byte <= 0xff), "{at}"),
                }
            }
            let addends = values(c);
            match at {
                7 => assert!(addends.into_iter().eq([0x7fff_ffff])),
                _ => assert!(addends.len() > 200 && addends.iter().all(|word| *word < 1 << 24), "{at}"),
            }
        }
    }

    /// Two tiles of rows of -1 (or 255) and columns of 2: 16 products of -2, or of 510, beside an addend that says
    /// where.
    #[test]
    fn each_difference_from_the_host_is_counted() {
        let c = |tile: usize| -> Lines {
            std::array::from_fn(|row| std::array::from_fn(|column| (1000 * tile + 16 * row + column) as u32))
        };
        let tiles = [0, 1].map(|tile| [[[0xff; SIDE]; SIDE], [[2; SIDE]; SIDE], c(tile)]);
        let sums = |more: u32| [0, 1].map(|tile| c(tile).map(|row| row.map(|word| word.wrapping_add(more))));
        let (mut signed, mut unsigned) = (sums(32_u32.wrapping_neg()), sums(8160));
        let mut dots: Vec<u32> = signed
            .as_flattened()
            .as_flattened()
            .iter()
            .zip(unsigned.as_flattened().as_flattened())
            .flat_map(|(signed, unsigned)| [*signed, *unsigned])
            .collect();
        let told = |signed: &[Lines], unsigned: &[Lines], dots: &[u32]| {
            lines(&compared(&tiles, [signed, unsigned], dots))
        };
        let text = |verdict, all, [a, b, c, d]: [u32; 4]| {
            format!(
                "{verdict}: {all} of 2048 sums differ from the host's\nmatrix_signed_differences {a} count\n\
                 matrix_unsigned_differences {b} count\ndot_signed_differences {c} count\n\
                 dot_unsigned_differences {d} count"
            )
        };
        assert_eq!(told(&signed, &unsigned, &dots), text("Confirms", 0, [0; 4]));
        signed[1][3][4] += 1;
        unsigned[0][15][0] += 1;
        unsigned[1][0][15] += 1;
        [0, 2, 1022].iter().for_each(|at| dots[*at] += 1);
        [1, 513, 515, 1023].iter().for_each(|at| dots[*at] += 1);
        assert_eq!(told(&signed, &unsigned, &dots), text("Contradicts", 10, [1, 2, 3, 4]));
    }

    #[test]
    fn what_survives_is_told_beside_our_model() {
        let other = Model { flushes_sums: true, ..PROJECT };
        let name = "1 at a time, ascending, exact, to nearest even, addend first, denormal sums kept, denormal factors kept";
        let fits = [("one", PROJECT, vec![other, PROJECT]), ("two", other, vec![other])];
        let flushed = name.replace("sums kept", "sums flushed");
        assert_eq!(
            lines(&told(&fits)),
            format!(
                "Confirms: one: 2 models fit, ours among them; two: 1 models fit, ours among them\n\
                 one.survivors 2 count\none.our_model_survives \"yes\" text\n\
                 one.survivor_0 \"{flushed}\" text\none.survivor_1 \"{name}\" text\n\
                 two.survivors 1 count\ntwo.our_model_survives \"yes\" text\ntwo.survivor_0 \"{flushed}\" text"
            )
        );
        let fits =
            [("one", PROJECT, vec![PROJECT]), ("two", PROJECT, vec![other]), ("three", PROJECT, vec![])];
        assert_eq!(
            lines(&told(&fits)),
            format!(
                "Contradicts: one: 1 models fit, ours among them; two: 1 models fit, ours not; three: no model fits\n\
                 one.survivors 1 count\none.our_model_survives \"yes\" text\none.survivor_0 \"{name}\" text\n\
                 two.survivors 1 count\ntwo.our_model_survives \"no\" text\ntwo.survivor_0 \"{flushed}\" text\n\
                 three.survivors 0 count\nthree.our_model_survives \"no\" text"
            )
        );
    }
}
