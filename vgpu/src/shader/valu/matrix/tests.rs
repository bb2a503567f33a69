//! The layouts are restated here independently, in the form of the reference's tables (register, element → k).

mod definition;
mod places;

use super::shape::{Element, operand_place, sum_place};
use super::*;
use crate::shader::valu::testing::{MODE_USUAL, Random, code, run_all, run_one, translate, wave};
use crate::shader::wave::{EXEC_LO, Row};
use zrt_isa::resources::WaveSize;
use zrt_isa::{Opcode, decode, decode_for};

const SIDES: std::ops::Range<usize> = 0..16;

/// Index k of element `e` of register `g` of half `h` (and, in wave64, part `q`): instruction set
/// reference §7.3 and §7.4.
fn table(bits: usize, inner: usize, is_wave64: bool, g: usize, e: usize, h: usize, q: usize) -> usize {
    match (bits, inner, is_wave64) {
        (16, 16, false) => 8 * (g / 2) + 4 * h + 2 * (g % 2) + e,
        (8, 16, false) => 8 * h + 4 * g + e,
        (4, 16, _) => 8 * h + e,
        (4, 32, false) => 16 * h + 8 * g + e,
        (16, 32, false) => 16 * (g / 4) + 8 * h + 2 * (g % 4) + e,
        (8, 32, false) => 16 * h + 4 * g + e,
        (16, 16, true) => 8 * q + 4 * h + 2 * g + e,
        (8, 16, true) => 4 * q + 8 * h + e,
        (4, 32, true) => 8 * q + 16 * h + e,
        // The upper half of a wave32 lane's registers is in lanes 32 to 63, as in all rows of the instruction set
        // reference §7.4.
        (16, 32, true) => 16 * q + 8 * h + 2 * g + e,
        (8, 32, true) => 8 * q + 16 * h + 4 * g + e,
        // The reference's rule for 4-bit operands, continued.
        (4, 64, false) => 32 * h + 8 * g + e,
        (4, 64, true) => 16 * q + 32 * h + 8 * g + e,
        other => panic!("no table for {other:?}"),
    }
}

/// Registers of 64 lanes: bank 0 and bank 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Banks([Box<[Row; 256]>; 2]);

impl Banks {
    fn new() -> Banks {
        let random = wave().vector;
        Banks([random.clone(), random])
    }

    fn set(&mut self, register: usize, lane: usize, bits: usize, e: usize, value: u32) {
        let target = &mut self.0[lane / 32][register].0[lane % 32];
        let mask = (u32::MAX >> (32 - bits)) << (bits * e);
        *target = *target & !mask | value << (bits * e) & mask;
    }

    fn get(&self, register: usize, lane: usize, bits: usize, e: usize) -> u32 {
        self.0[lane / 32][register].0[lane % 32] >> (bits * e) & (u32::MAX >> (32 - bits))
    }

    /// Fills registers of A or B with `value(line, k)`.
    fn fill(
        &mut self,
        first: usize,
        bits: usize,
        inner: usize,
        is_wave64: bool,
        value: impl Fn(usize, usize) -> u32,
    ) {
        for line in SIDES {
            for (g, e, h, q) in operand_places(bits, inner, is_wave64) {
                let k = table(bits, inner, is_wave64, g, e, h, q);
                self.set(first + g, 32 * q + 16 * h + line, bits, e, value(line, k));
            }
        }
    }

    /// Runs one instruction, assembled for wave32, on 32 or 64 lanes.
    fn run(&mut self, words: &[u32], is_wave64: bool) {
        self.run_with(words, is_wave64, u64::MAX, MODE_USUAL);
    }

    /// Runs it at every level and asserts that they agree.
    fn run_with(&mut self, words: &[u32], is_wave64: bool, exec: u64, mode: u32) {
        let wave_size = if is_wave64 { WaveSize::Wave64 } else { WaveSize::Wave32 };
        let instruction = decode_for(words, wave_size).unwrap();
        let start = self.0.clone();
        for (number, level) in Level::supported().into_iter().enumerate() {
            let op = translate(&instruction, level).unwrap();
            let [low, high] = start.clone();
            let other_half = is_wave64.then(|| high.clone());
            let mut wave = Wave { vector: low, other_half, mode, ..Wave::new() };
            wave.set_scalar_pair(EXEC_LO, exec);
            run_one(&mut wave, &op);
            let end = [wave.vector, wave.other_half.unwrap_or(high)];
            assert!(number == 0 || end == self.0, "{} differs", level.name());
            self.0 = end;
        }
    }
}

/// Register, element, half and part of all elements of a line of A or B.
fn operand_places(bits: usize, inner: usize, is_wave64: bool) -> Vec<(usize, usize, usize, usize)> {
    let all = inner / 2 * bits / 32;
    let (registers, parts) = if is_wave64 && all > 1 { (all / 2, 2) } else { (all, 1) };
    places(registers, 32 / bits, parts)
}

fn places(registers: usize, elements: usize, parts: usize) -> Vec<(usize, usize, usize, usize)> {
    let mut places = Vec::new();
    for g in 0..registers {
        for e in 0..elements {
            places.extend([(g, e, 0, 0), (g, e, 1, 0)]);
            if parts == 2 {
                places.extend([(g, e, 0, 1), (g, e, 1, 1)]);
            }
        }
    }
    places
}

/// Lane, register and element of D[i][j] by the tables.
fn result_place(bits: usize, i: usize, j: usize, is_wave64: bool) -> (usize, usize, usize) {
    for h in 0..2 {
        for q in 0..if is_wave64 { 2 } else { 1 } {
            for g in 0..8 {
                for e in 0..32 / bits {
                    let row = match (bits, is_wave64) {
                        (32, false) => 8 * h + g,
                        (32, true) => 8 * h + 4 * q + g,
                        (_, false) => 8 * h + 2 * g + e,
                        (_, true) => 8 * h + 4 * q + 2 * g + e,
                    };
                    let registers = 8 * bits / 32 / if is_wave64 { 2 } else { 1 };
                    if row == i && g < registers {
                        return (32 * q + 16 * h + j, g, e);
                    }
                }
            }
        }
    }
    panic!("no place for {i}");
}

#[test]
fn the_worked_example_of_the_reference() {
    // instruction set reference §7.3: A row 0, k = 0..15, as (register, lane, half).
    let row = [
        (0, 0, 0),
        (0, 0, 1),
        (1, 0, 0),
        (1, 0, 1),
        (0, 16, 0),
        (0, 16, 1),
        (1, 16, 0),
        (1, 16, 1),
        (2, 0, 0),
        (2, 0, 1),
        (3, 0, 0),
        (3, 0, 1),
        (2, 16, 0),
        (2, 16, 1),
        (3, 16, 0),
        (3, 16, 1),
    ];
    for (k, (register, lane, half)) in row.into_iter().enumerate() {
        let place = operand_place(16, 16, 0, k, false);
        assert_eq!((place.register(16), place.lane, place.shift(16)), (register, lane, 16 * half), "k = {k}");
    }
    // D[0][5] = v0{5}, D[7][5] = v7{5}, D[8][5] = v0{21}, D[15][0] = v7{16}.
    for (i, j, register, lane) in [(0, 5, 0, 5), (7, 5, 7, 5), (8, 5, 0, 21), (15, 0, 7, 16)] {
        let place = sum_place(32, i, j, false);
        assert_eq!((place.register(32), place.lane), (register, lane));
    }
}

fn sign_extended(value: u32, bits: usize, is_signed: bool) -> i64 {
    if is_signed && value >> (bits - 1) & 1 != 0 { i64::from(value) - (1 << bits) } else { value.into() }
}

/// `words`: A at v0, B at v8, C and D at v32. `signs`: which of A and B are signed.
fn integers(words: &[u32], bits: usize, inner: usize, signs: (bool, bool), clamp: bool) {
    let mut random = Random::new(3);
    let mut element = || random.next() & (u32::MAX >> (32 - bits));
    let a: Vec<Vec<u32>> = SIDES.map(|_| (0..inner).map(|_| element()).collect()).collect();
    let b: Vec<Vec<u32>> = SIDES.map(|_| (0..inner).map(|_| element()).collect()).collect();
    for is_wave64 in [false, true] {
        let mut banks = Banks::new();
        banks.fill(0, bits, inner, is_wave64, |row, k| a[row][k]);
        banks.fill(8, bits, inner, is_wave64, |column, k| b[column][k]);
        let start = Banks(banks.0.clone());
        banks.run(words, is_wave64);
        for i in SIDES {
            for j in SIDES {
                let (lane, g, e) = result_place(32, i, j, is_wave64);
                let c = start.get(32 + g, lane, 32, e) as i32;
                let product: i64 = (0..inner)
                    .map(|k| sign_extended(a[i][k], bits, signs.0) * sign_extended(b[j][k], bits, signs.1))
                    .sum();
                let exact = product + i64::from(c);
                let expected = if clamp { exact.clamp(i32::MIN.into(), i32::MAX.into()) } else { exact };
                assert_eq!(banks.get(32 + g, lane, 32, e), expected as u32, "{i} {j} wave64 {is_wave64}");
            }
        }
    }
}

#[test]
fn integer_products_are_exact() {
    let bytes = code(
        "v_wmma_i32_16x16x16_iu8 v[32:39], v[0:1], v[8:9], v[32:39] neg_lo:[1,0,0]",
        &[0xCC44_4020, 0x3C82_1100],
    );
    integers(bytes, 8, 16, (true, false), false);
    let saturated = code(
        "v_wmma_i32_16x16x16_iu8 v[32:39], v[0:1], v[8:9], v[32:39] neg_lo:[1,1,0] clamp",
        &[0xCC44_C020, 0x7C82_1100],
    );
    integers(saturated, 8, 16, (true, true), true);
    let nibbles = code(
        "v_wmma_i32_16x16x16_iu4 v[32:39], v0, v8, v[32:39] neg_lo:[0,1,0]",
        &[0xCC45_4020, 0x5C82_1100],
    );
    integers(nibbles, 4, 16, (false, true), false);
    let deep =
        code("v_wmma_i32_16x16x32_iu4 v[32:39], v[0:1], v[8:9], v[32:39]", &[0xCC4A_4020, 0x1C82_1100]);
    integers(deep, 4, 32, (false, false), false);
}

#[test]
fn a_saturated_sum_stays_at_the_end_of_the_range() {
    let mut start = wave();
    for register in 0..10 {
        start.vector[register].0 = [0x7F7F_7F7F; 32];
    }
    for register in 32..40 {
        start.vector[register].0 = [0x7FFF_FF00; 32];
    }
    let words = [0xCC44_C020, 0x7C82_1100];
    assert_eq!(run_all(&start, &words).vector[35].0[9], 0x7FFF_FFFF);
    let wrapping = [0xCC44_4020, 0x7C82_1100];
    assert_eq!(run_all(&start, &wrapping).vector[35].0[9], 0x7FFF_FF00 + 16 * 127 * 127);
}

/// Small integers and quarters, as f16, bfloat16, fp8 and bf8: every sum of a test is exact, whatever the order.
fn small(format: Element, value: i32) -> u32 {
    let sign = if value < 0 { 1 } else { 0 };
    let codes = |zero: u32, table: [u32; 4], sign_bit: u32| match value.unsigned_abs() {
        0 => zero | sign << sign_bit,
        n => table[n as usize - 1] | sign << sign_bit,
    };
    // 1, 2, 3 and 4.
    match format {
        Element::F16 => codes(0, [0x3C00, 0x4000, 0x4200, 0x4400], 15),
        Element::Bf16 => codes(0, [0x3F80, 0x4000, 0x4040, 0x4080], 15),
        Element::Fp8 => codes(0, [0x38, 0x40, 0x44, 0x48], 7),
        Element::Bf8 => codes(0, [0x3C, 0x40, 0x42, 0x44], 7),
        Element::Byte | Element::Nibble => value as u32,
    }
}

/// Exact value of a float result.
fn value_of(sum: Sum, bits: u32) -> f64 {
    match sum {
        Sum::F32 => f32::from_bits(bits).into(),
        Sum::Bf16 => f32::from_bits(bits << 16).into(),
        Sum::F16 => {
            let (sign, exponent, fraction) = (bits >> 15, (bits >> 10 & 31) as i32, f64::from(bits & 0x3FF));
            let magnitude = if exponent == 0 {
                fraction * 2f64.powi(-24)
            } else {
                (1024.0 + fraction) * 2f64.powi(exponent - 25)
            };
            if sign == 1 { -magnitude } else { magnitude }
        }
        Sum::I32 => f64::from(bits as i32),
    }
}

/// A at v0, B at v8, index at v24, D (and C unless the addend is `constant`) at v32.
fn tiles(opcode: Opcode, words: &[u32], constant: Option<f64>, key: usize) {
    let (_, shape) = SHAPES.into_iter().find(|(of, _)| *of == opcode).unwrap();
    assert_eq!(decode(words).unwrap().opcode, opcode);
    let mut random = Random::new(11);
    let mut number = |limit: u32| (random.next() % (2 * limit + 1)) as i32 - limit as i32;
    let limit = if shape.sum == Sum::Bf16 { 1 } else { 4 };
    let is_integer = shape.sum == Sum::I32;
    for is_wave64 in [false, true] {
        let depth = shape.depth();
        let a: Vec<Vec<i32>> = SIDES.map(|_| (0..depth).map(|_| number(limit)).collect()).collect();
        let b: Vec<Vec<i32>> = SIDES.map(|_| (0..shape.inner).map(|_| number(limit)).collect()).collect();
        // For every group of four, which two are kept: 0..6 numbers the pairs in order.
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        let kept: Vec<Vec<(usize, usize)>> = SIDES
            .map(|_| (0..depth / 2).map(|_| pairs[number(100).unsigned_abs() as usize % 6]).collect())
            .collect();
        let mut banks = Banks::new();
        let bits = shape.a.bits();
        banks.fill(0, bits, depth, is_wave64, |row, k| small(shape.a, a[row][k]));
        banks.fill(8, bits, shape.inner, is_wave64, |column, k| small(shape.b, b[column][k]));
        let sum_bits = shape.sum.bits();
        let zero_or = |i: usize, j: usize| if (i + j) % 3 == 0 { 2 } else { 0 };
        for i in SIDES {
            for j in SIDES {
                let (lane, g, e) = result_place(sum_bits, i, j, is_wave64);
                let bits = match shape.sum {
                    Sum::F32 => (zero_or(i, j) as f32).to_bits(),
                    Sum::F16 => small(Element::F16, zero_or(i, j)),
                    Sum::Bf16 => small(Element::Bf16, zero_or(i, j)),
                    Sum::I32 => zero_or(i, j) as u32,
                };
                banks.set(32 + g, lane, sum_bits, e, bits);
            }
            if shape.is_sparse {
                set_index(&mut banks, i, &kept[i], bits, depth, is_wave64, key);
            }
        }
        banks.run(words, is_wave64);
        for i in SIDES {
            for j in SIDES {
                let mut expected = constant.unwrap_or(f64::from(zero_or(i, j)));
                for k in 0..depth {
                    let pair = kept[i][k / 2];
                    let place = if k % 2 == 0 { pair.0 } else { pair.1 };
                    let at = if shape.is_sparse { 4 * (k / 2) + place } else { k };
                    expected += f64::from(a[i][k]) * f64::from(b[j][at]);
                }
                let (lane, g, e) = result_place(sum_bits, i, j, is_wave64);
                let found = value_of(shape.sum, banks.get(32 + g, lane, sum_bits, e));
                assert_eq!(found, expected, "{opcode:?} {i} {j} wave64 {is_wave64} integer {is_integer}");
            }
        }
    }
}

/// Writes the index of a row.
fn set_index(
    banks: &mut Banks,
    row: usize,
    kept: &[(usize, usize)],
    bits: usize,
    depth: usize,
    is_wave64: bool,
    key: usize,
) {
    for (group, (first, second)) in kept.iter().enumerate() {
        let (lane, nibble) = index_place(row, group, bits, depth, is_wave64, key);
        banks.set(24, lane, 4, nibble, (first | second << 2) as u32);
    }
}

/// Lane and nibble of a group's index: for 16-bit data by the reference's formula, else four bits per group in order.
fn index_place(
    row: usize,
    group: usize,
    bits: usize,
    depth: usize,
    is_wave64: bool,
    key: usize,
) -> (usize, usize) {
    let base = 4 * group;
    let (h, offset) = if bits == 16 {
        // base = 16·b8 + 8·h + 4·b4, offset = 8·b8 + 4·b4.
        (base / 8 % 2, 8 * (base / 16) + 4 * (base / 4 % 2))
    } else {
        (base / depth, base % depth)
    };
    // A wave64 has the upper half of a lane's groups in lanes 32 to 63 if the same is true of A.
    let is_split = is_wave64 && depth / 2 * bits > 32;
    let field = if is_split { depth / 2 } else { depth };
    let (q, offset) = if is_split { (offset / field, offset % field) } else { (0, offset) };
    (32 * q + 16 * h + row, (key * field + offset) / 4)
}

#[test]
fn dense_float_products() {
    use Opcode::*;
    let cases: [(Opcode, &str, [u32; 2], Option<f64>); 9] = [
        (
            VWmmaF3216x16x16F16,
            "v_wmma_f32_16x16x16_f16 v[32:39], v[0:3], v[8:11], v[32:39]",
            [0xCC40_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF3216x16x16Bf16,
            "v_wmma_f32_16x16x16_bf16 v[32:39], v[0:3], v[8:11], 0.5",
            [0xCC41_4020, 0x1BC2_1100],
            Some(0.5),
        ),
        (
            VWmmaF1616x16x16F16,
            "v_wmma_f16_16x16x16_f16 v[32:35], v[0:3], v[8:11], v[32:35]",
            [0xCC42_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF1616x16x16F16,
            "v_wmma_f16_16x16x16_f16 v[32:35], v[0:3], v[8:11], 1.0",
            [0xCC42_4020, 0x1BCA_1100],
            Some(1.0),
        ),
        (
            VWmmaBf1616x16x16Bf16,
            "v_wmma_bf16_16x16x16_bf16 v[32:35], v[0:3], v[8:11], v[32:35]",
            [0xCC43_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF3216x16x16Fp8Fp8,
            "v_wmma_f32_16x16x16_fp8_fp8 v[32:39], v[0:1], v[8:9], v[32:39]",
            [0xCC46_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF3216x16x16Fp8Bf8,
            "v_wmma_f32_16x16x16_fp8_bf8 v[32:39], v[0:1], v[8:9], v[32:39]",
            [0xCC47_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF3216x16x16Bf8Fp8,
            "v_wmma_f32_16x16x16_bf8_fp8 v[32:39], v[0:1], v[8:9], v[32:39]",
            [0xCC48_4020, 0x1C82_1100],
            None,
        ),
        (
            VWmmaF3216x16x16Bf8Bf8,
            "v_wmma_f32_16x16x16_bf8_bf8 v[32:39], v[0:1], v[8:9], v[32:39]",
            [0xCC49_4020, 0x1C82_1100],
            None,
        ),
    ];
    for (opcode, text, words, constant) in cases {
        tiles(opcode, code(text, &words), constant, 0);
    }
}

#[test]
fn sparse_products() {
    use Opcode::*;
    // A at v0, B at v8, index at v24, D at v32.
    let cases: [(Opcode, &str, u32); 11] = [
        (VSwmmacF3216x16x32F16, "v_swmmac_f32_16x16x32_f16 v[32:39], v[0:3], v[8:15], v24", 0xCC50_4020),
        (VSwmmacF3216x16x32Bf16, "v_swmmac_f32_16x16x32_bf16 v[32:39], v[0:3], v[8:15], v24", 0xCC51_4020),
        (VSwmmacF1616x16x32F16, "v_swmmac_f16_16x16x32_f16 v[32:35], v[0:3], v[8:15], v24", 0xCC52_4020),
        (VSwmmacBf1616x16x32Bf16, "v_swmmac_bf16_16x16x32_bf16 v[32:35], v[0:3], v[8:15], v24", 0xCC53_4020),
        (
            VSwmmacI3216x16x32Iu8,
            "v_swmmac_i32_16x16x32_iu8 v[32:39], v[0:1], v[8:11], v24 neg_lo:[1,1,0]",
            0xCC54_4020,
        ),
        (
            VSwmmacI3216x16x32Iu4,
            "v_swmmac_i32_16x16x32_iu4 v[32:39], v0, v[8:9], v24 neg_lo:[1,1,0]",
            0xCC55_4020,
        ),
        (
            VSwmmacI3216x16x64Iu4,
            "v_swmmac_i32_16x16x64_iu4 v[32:39], v[0:1], v[8:11], v24 neg_lo:[1,1,0]",
            0xCC56_4020,
        ),
        (
            VSwmmacF3216x16x32Fp8Fp8,
            "v_swmmac_f32_16x16x32_fp8_fp8 v[32:39], v[0:1], v[8:11], v24",
            0xCC57_4020,
        ),
        (
            VSwmmacF3216x16x32Fp8Bf8,
            "v_swmmac_f32_16x16x32_fp8_bf8 v[32:39], v[0:1], v[8:11], v24",
            0xCC58_4020,
        ),
        (
            VSwmmacF3216x16x32Bf8Fp8,
            "v_swmmac_f32_16x16x32_bf8_fp8 v[32:39], v[0:1], v[8:11], v24",
            0xCC59_4020,
        ),
        (
            VSwmmacF3216x16x32Bf8Bf8,
            "v_swmmac_f32_16x16x32_bf8_bf8 v[32:39], v[0:1], v[8:11], v24",
            0xCC5A_4020,
        ),
    ];
    for (opcode, text, first) in cases {
        let second = if text.contains("_i32_") { 0x7C62_1100 } else { 0x1C62_1100 };
        tiles(opcode, code(text, &[first, second]), None, 0);
        // index_key:1 is bit 11; the deepest operation has no key.
        if opcode != VSwmmacI3216x16x64Iu4 {
            tiles(opcode, code(text, &[first | 1 << 11, second]), None, 1);
        }
    }
}

#[test]
fn float_sums_follow_the_model() {
    // Only one row of A and one column of B matter: all others hold the same. A's row is 2^12, 1, 1, ...; B's
    // column 2^12, 1, 1.
    let mut banks = Banks::new();
    banks.fill(0, 16, 16, false, |_, k| if k == 0 { 0x6C00 } else { 0x3C00 });
    banks.fill(8, 16, 16, false, |_, k| if k == 0 { 0x6C00 } else { 0x3C00 });
    for register in 32..40 {
        banks.0[0][register].0 = [0; 32];
    }
    // Ascending: 2^24, then every +1 is a tie that rounds to even. Any other order would keep some of the ones.
    banks.run(
        code("v_wmma_f32_16x16x16_f16 v[32:39], v[0:3], v[8:11], v[32:39]", &[0xCC40_4020, 0x1C82_1100]),
        false,
    );
    assert_eq!(banks.0[0][33].0[20], 16_777_216f32.to_bits());
    // Rounded to f16 only at the end: 2048 + 15 · 1 is 2063, which rounds to 2064.
    banks.fill(0, 16, 16, false, |_, k| if k == 0 { 0x6800 } else { 0x3C00 });
    banks.fill(8, 16, 16, false, |_, _| 0x3C00);
    banks.run(
        code("v_wmma_f16_16x16x16_f16 v[32:35], v[0:3], v[8:11], 0", &[0xCC42_4020, 0x1A02_1100]),
        false,
    );
    assert_eq!(banks.0[0][32].0[20] & 0xFFFF, 0x6808);
}

#[test]
fn signs_belong_to_even_and_odd_elements_and_to_the_addend() {
    let mut banks = Banks::new();
    // Row sums: 8 even elements of 1 and 8 odd elements of 2.
    banks.fill(0, 16, 16, false, |_, k| if k % 2 == 0 { 0x3C00 } else { 0x4000 });
    banks.fill(8, 16, 16, false, |_, _| 0x3C00);
    let mut result = |words: &[u32]| {
        for register in 32..40 {
            banks.0[0][register].0 = [(-0.5f32).to_bits(); 32];
        }
        banks.run(words, false);
        f32::from_bits(banks.0[0][36].0[3])
    };
    let text = "v_wmma_f32_16x16x16_f16 v[32:39], v[0:3], v[8:11], v[32:39]";
    assert_eq!(result(code(text, &[0xCC40_4020, 0x1C82_1100])), 23.5, "{text}");
    assert_eq!(result(code("... neg_lo:[1,0,0]", &[0xCC40_4020, 0x3C82_1100])), 7.5);
    assert_eq!(result(code("... neg_hi:[0,1,0]", &[0xCC40_4220, 0x1C82_1100])), -8.5);
    assert_eq!(result(code("... neg_hi:[0,0,1]", &[0xCC40_4420, 0x1C82_1100])), 24.5);
    assert_eq!(result(code("... neg_lo:[0,0,1]", &[0xCC40_4020, 0x9C82_1100])), 24.5);
    assert_eq!(result(code("... neg_lo:[0,0,1] neg_hi:[0,0,1]", &[0xCC40_4420, 0x9C82_1100])), 23.5);
}

/// Negative elements become positive, in both formats that have signs: -1 with even k, -2 with odd k, times 1.
#[test]
fn signs_of_negative_elements_are_flipped() {
    for (opcode, [minus_one, minus_two, one]) in
        [(0xCC40_4020, [0xBC00, 0xC000, 0x3C00]), (0xCC41_4020, [0xBF80, 0xC000, 0x3F80])]
    {
        let mut banks = Banks::new();
        banks.fill(0, 16, 16, false, |_, k| if k % 2 == 0 { minus_one } else { minus_two });
        banks.fill(8, 16, 16, false, |_, _| one);
        // Bits 29 and 30 of the second word are neg_lo of A and B, bits 8 and 9 of the first neg_hi.
        for (low, high, sum) in
            [(0, 0, -24.0), (1, 0, -8.0), (0, 1, 8.0), (1, 1, 24.0), (2, 0, -8.0), (0, 2, 8.0), (3, 3, -24.0)]
        {
            banks.run(&[opcode | high << 8, 0x1A02_1100 | low << 29], false);
            assert_eq!(f32::from_bits(banks.0[0][36].0[3]), sum, "{opcode:#x} {low} {high}");
        }
    }
}

#[test]
fn a_destination_may_overlap_the_sources_and_inactive_lanes_keep_theirs() {
    let mut start = wave();
    for register in 0..12 {
        start.vector[register].0 = [0x3C00_3C00; 32];
    }
    start.scalar[126] = 0xFFFF_FFFE;
    let words = code("v_wmma_f32_16x16x16_f16 v[0:7], v[0:3], v[8:11], 0", &[0xCC40_4000, 0x1A02_1100]);
    let end = run_all(&start, words);
    for register in 0..8 {
        assert_eq!(end.vector[register].0[0], 0x3C00_3C00);
        assert!(end.vector[register].0[1..].iter().all(|bits| *bits == 16f32.to_bits()));
    }
}
