//! Every comparison of both ALUs, found by its name, on all pairs of values at the edges of its type.

use core::cmp::Ordering;

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Encoding, Opcode, Operand};

use super::example;
use crate::shader::valu::testing::{MODE_USUAL, Random, run_one, translate, wave};
use crate::shader::wave::{LANES, Wave};
use crate::simd::Level;

/// Whether a relation, as a mnemonic names it, holds between values in this order; `None` is unordered.
fn holds(relation: &str, order: Option<Ordering>) -> bool {
    match relation {
        "lt" => order == Some(Ordering::Less),
        "eq" => order == Some(Ordering::Equal),
        "gt" => order == Some(Ordering::Greater),
        "le" => holds("lt", order) || holds("eq", order),
        "ge" => holds("gt", order) || holds("eq", order),
        "lg" | "ne" => holds("lt", order) || holds("gt", order),
        "o" => order.is_some(),
        "u" => order.is_none(),
        // The others negate one of these, so that they hold for unordered values.
        _ => !holds(relation.strip_prefix('n').unwrap(), order),
    }
}

/// A value, its place among the others (`None`: a NaN), and its class if it is a float.
type Value = (u64, Option<i32>, u32);

/// Values of a type.
fn values(data: &str) -> Vec<Value> {
    let ascending =
        |bits: &[u64]| bits.iter().copied().zip((0..).map(Some)).map(|(b, r)| (b, r, 0)).collect();
    match data {
        "i16" => ascending(&[0x8000, 0x8001, 0xFFFF, 0, 1, 0x7FFF]),
        "u16" => ascending(&[0, 1, 0x7FFF, 0x8000, 0xFFFF]),
        "i32" => ascending(&[0x8000_0000, 0x8000_0001, 0xFFFF_FFFF, 0, 1, 0x1_0000, 0x7FFF_FFFF]),
        "u32" => ascending(&[0, 1, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]),
        "i64" => ascending(&[1 << 63, 1 << 63 | 1, u64::MAX, 0, 1, 1 << 32, u64::MAX >> 1]),
        "u64" => ascending(&[0, 1, 0xFFFF_FFFF, 1 << 32, u64::MAX >> 1, 1 << 63, u64::MAX]),
        "f16" => floats(15, [1, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00], [0x7C01, 0x7E00]),
        "f32" => floats(
            31,
            [1, 0x007F_FFFF, 0x0080_0000, 0x3F80_0000, 0x7F7F_FFFF, 0x7F80_0000],
            [0x7F80_0001, 0x7FC0_0000],
        ),
        "f64" => floats(
            63,
            [1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, (0x7FF << 52) - 1, 0x7FF << 52],
            [0x7FF << 52 | 1, 0xFFF << 51],
        ),
        _ => panic!("{data}"),
    }
}

/// Two denormals, three normal numbers, infinity; a signalling and a quiet NaN; all with both signs.
fn floats(sign: u32, numbers: [u64; 6], nans: [u64; 2]) -> Vec<Value> {
    let mut all = vec![(0, Some(0), 6), (1 << sign, Some(0), 5)];
    for (index, (bits, class)) in numbers.into_iter().zip([7, 7, 8, 8, 8, 9]).enumerate() {
        let rank = index as i32 + 1;
        // The classes of negative numbers mirror those of positive ones: 2 to 5, and 6 to 9.
        all.extend([(bits, Some(rank), class), (bits | 1 << sign, Some(-rank), 11 - class)]);
    }
    for (bits, class) in nans.into_iter().zip([0, 1]) {
        all.extend([(bits, None, class), (bits | 1 << sign, None, class)]);
    }
    all
}

/// The place of a value if denormals, which are the two next to zero, count as zeros.
fn flushed(rank: i32) -> i32 {
    if rank.abs() <= 2 { 0 } else { rank }
}

/// Prefix, relation and type of a comparison.
fn parse(opcode: Opcode) -> Option<(&'static str, &'static str, &'static str)> {
    let mnemonic = opcode.mnemonic();
    let prefix = ["v_cmp_", "v_cmpx_", "s_cmp_"].into_iter().find(|prefix| mnemonic.starts_with(prefix))?;
    let (relation, data) = mnemonic.strip_prefix(prefix)?.split_once('_')?;
    Some((prefix, relation, data))
}

/// Runs a vector comparison on up to 32 pairs in v4 and v8 at every level, with lanes of EXEC active. 16-bit values
/// have something else above them. Returns the result.
fn compare(start: &mut Wave, opcode: Opcode, exec: u32, pairs: &[(u64, u64)], noise: u32) -> u32 {
    let is_half = opcode.mnemonic().ends_with("16");
    for (lane, (a, b)) in pairs.iter().enumerate() {
        for (register, value) in [(4, *a), (8, *b)] {
            let above = if is_half { noise << 16 } else { 0 };
            start.vector[register].0[lane] = value as u32 | above;
            start.vector[register + 1].0[lane] = (value >> 32) as u32;
        }
    }
    let instruction = example(opcode, Encoding::Vop3);
    let Operand::Scalar(destination) = instruction.destination else { panic!("{instruction:?}") };
    let mut results = Level::supported().into_iter().map(|level| {
        start.scalar[126] = exec;
        start.scalar[usize::from(destination)] = if destination == 126 { exec } else { noise };
        run_one(start, &translate(&instruction, level).unwrap());
        start.scalar[usize::from(destination)]
    });
    let first = results.next().unwrap();
    assert!(results.all(|result| result == first), "{}", opcode.mnemonic());
    first
}

#[test]
fn every_relation_holds_for_the_pairs_that_its_name_says() {
    let mut random = Random::new(53);
    let mut start = wave();
    let mut seen = 0;
    for &opcode in OPCODES {
        let Some((prefix, relation, data)) = parse(opcode).filter(|(_, relation, _)| *relation != "class")
        else {
            continue;
        };
        seen += 1;
        for mode in [MODE_USUAL, 0] {
            start.mode = mode;
            let is_flushed = mode == 0 && data.starts_with('f');
            let place = |rank: i32| if is_flushed { flushed(rank) } else { rank };
            let all = values(data);
            let pairs: Vec<(Value, Value)> = all.iter().flat_map(|a| all.iter().map(|b| (*a, *b))).collect();
            for pairs in pairs.chunks(LANES) {
                let exec = random.next() | 1;
                let bits: Vec<(u64, u64)> = pairs.iter().map(|((a, ..), (b, ..))| (*a, *b)).collect();
                let expected: Vec<bool> = pairs
                    .iter()
                    .map(|((_, a, _), (_, b, _))| {
                        holds(relation, a.zip(*b).map(|(a, b)| place(a).cmp(&place(b))))
                    })
                    .collect();
                if prefix == "s_cmp_" {
                    for (pair, expected) in bits.iter().zip(expected) {
                        assert_eq!(
                            compare_scalars(&mut start, opcode, *pair, random.next()),
                            expected,
                            "{opcode:?}"
                        );
                    }
                    continue;
                }
                let result = compare(&mut start, opcode, exec, &bits, random.next());
                for (lane, expected) in expected.into_iter().enumerate() {
                    let is_active = exec >> lane & 1 != 0;
                    let what = (opcode.mnemonic(), mode, bits[lane]);
                    assert_eq!(result >> lane & 1 != 0, expected && is_active, "{what:x?}");
                }
                assert_eq!(result & !exec, 0, "{} in inactive lanes", opcode.mnemonic());
            }
        }
    }
    // 14 relations of three types and 6 of six, to a mask and to EXEC; 14 of two, 6 of two and 2 of one to SCC.
    assert_eq!(seen, 2 * (14 * 3 + 6 * 6) + 14 * 2 + 6 * 2 + 2);
}

/// SCC after a comparison of s[4:5] and s[8:9].
fn compare_scalars(start: &mut Wave, opcode: Opcode, (a, b): (u64, u64), noise: u32) -> bool {
    let above = if opcode.mnemonic().ends_with("16") { noise << 16 } else { 0 };
    for (register, value) in [(4, a), (6, b)] {
        start.scalar[register] = value as u32 | above;
        start.scalar[register + 1] = (value >> 32) as u32;
    }
    let instruction = example(opcode, Encoding::Sopc);
    start.scc = noise >> 31 != 0;
    run_one(start, &translate(&instruction, Level::BASELINE).unwrap());
    start.scc
}

/// The class of a value is one of ten, whatever MODE says about denormals; the mask may have other bits above.
#[test]
fn every_value_is_of_one_class() {
    use Opcode::{VCmpClassF16, VCmpClassF32, VCmpClassF64, VCmpxClassF16, VCmpxClassF32, VCmpxClassF64};
    let mut start = wave();
    for (opcode, data) in [
        (VCmpClassF16, "f16"),
        (VCmpClassF32, "f32"),
        (VCmpClassF64, "f64"),
        (VCmpxClassF16, "f16"),
        (VCmpxClassF32, "f32"),
        (VCmpxClassF64, "f64"),
    ] {
        let all = values(data);
        let lanes = (1u32 << all.len()) - 1;
        for class in 0..10u32 {
            let expected = all
                .iter()
                .enumerate()
                .fold(0, |mask, (lane, (.., of))| mask | u32::from(*of == class) << lane);
            for mode in [MODE_USUAL, 0] {
                start.mode = mode;
                let only: Vec<(u64, u64)> =
                    all.iter().map(|(bits, ..)| (*bits, 0xFC00 | 1 << class)).collect();
                let others: Vec<(u64, u64)> =
                    all.iter().map(|(bits, ..)| (*bits, 0x3FF & !(1 << class))).collect();
                assert_eq!(compare(&mut start, opcode, lanes, &only, 0xABCD), expected, "{opcode:?} {class}");
                assert_eq!(
                    compare(&mut start, opcode, lanes, &others, 0xABCD),
                    lanes & !expected,
                    "{opcode:?} {class}"
                );
            }
        }
    }
}
