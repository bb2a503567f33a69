//! Operations that return one of their sources or take a float apart: minima, maxima and medians of every format found
//! by their names, division fixups, mantissas and exponents, cube maps.

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Encoding, Opcode};

use super::arithmetic::{f, result, with};
use super::example;
use crate::shader::valu::testing::{MODE_USUAL, code, run_all, run_one, translate, wave};
use crate::shader::wave::{LANES, Wave};
use crate::simd::Level;

/// The numbers of a format from the smallest up, then a quiet and a signalling NaN.
fn values(data: &str) -> Vec<u64> {
    match data {
        "f16" => vec![0xFC00, 0xBC00, 0x8001, 0x8000, 0, 1, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x7C01],
        "f32" => vec![
            0xFF80_0000,
            0xBF80_0000,
            0x8000_0001,
            0x8000_0000,
            0,
            1,
            0x3F80_0000,
            0x7F7F_FFFF,
            0x7F80_0000,
            0x7FC0_0000,
            0x7F80_0001,
        ],
        "f64" => {
            let (sign, infinity) = (1 << 63, 0x7FF << 52);
            let numbers =
                [sign | infinity, 0xBFF << 52, sign | 1, sign, 0, 1, 0x3FF << 52, infinity - 1, infinity];
            numbers.into_iter().chain([0xFFF << 51, infinity | 1]).collect()
        }
        _ => panic!("{data}"),
    }
}

/// The places of the two denormals and, next to them, the zeros that take their place.
const FLUSHED: [(usize, usize); 2] = [(2, 3), (5, 4)];
const FIRST_NAN: usize = 9;

/// The place of the result among the values; `None` for a NaN.
fn selected(name: &str, [a, b, c]: [Option<usize>; 3]) -> Option<usize> {
    // The number, if only one is; or NaN, if one is.
    let number = |choose: fn(usize, usize) -> usize, a: Option<usize>, b: Option<usize>| match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    };
    let strict = |choose: fn(usize, usize) -> usize, a: Option<usize>, b: Option<usize>| {
        a.zip(b).map(|(a, b)| choose(a, b))
    };
    let (min, max) = (usize::min as fn(usize, usize) -> usize, usize::max as fn(usize, usize) -> usize);
    match name {
        "min_num" => number(min, a, b),
        "max_num" => number(max, a, b),
        "minimum" => strict(min, a, b),
        "maximum" => strict(max, a, b),
        "min3_num" => number(min, number(min, a, b), c),
        "max3_num" => number(max, number(max, a, b), c),
        "minimum3" => strict(min, strict(min, a, b), c),
        "maximum3" => strict(max, strict(max, a, b), c),
        "minmax_num" => number(max, number(min, a, b), c),
        "maxmin_num" => number(min, number(max, a, b), c),
        "minimummaximum" => strict(max, strict(min, a, b), c),
        "maximumminimum" => strict(min, strict(max, a, b), c),
        "med3_num" => match (a, b, c) {
            (Some(a), Some(b), Some(c)) => Some(a.min(b).max(a.max(b).min(c))),
            // The smallest of the numbers.
            _ => number(min, number(min, a, b), c),
        },
        _ => panic!("{name}"),
    }
}

/// Name and format of an operation that [`selected`] defines.
fn parse(opcode: Opcode) -> Option<(&'static str, &'static str)> {
    let (name, data) =
        opcode.mnemonic().strip_prefix("v_").or(opcode.mnemonic().strip_prefix("s_"))?.rsplit_once('_')?;
    let known = ["min_num", "max_num", "minimum", "maximum", "min3_num", "max3_num", "minimum3", "maximum3"]
        .into_iter()
        .chain(["minmax_num", "maxmin_num", "minimummaximum", "maximumminimum", "med3_num"]);
    (known.into_iter().any(|known| known == name) && data.starts_with('f')).then_some((name, data))
}

/// Sources of all lanes (scalars: of one) in registers 4, 8 and 12 (scalars: 4 and 6); results. What a format of 16
/// bits does not use is noise, and the destination's upper half keeps it.
fn run(start: &mut Wave, opcode: Opcode, data: &str, triples: &[[u64; 3]]) -> Vec<u64> {
    let noise = if data == "f16" { 0xA5A5_0000 } else { 0 };
    if opcode.encoding() == Encoding::Sop2 {
        return triples
            .iter()
            .map(|[a, b, _]| {
                (start.scalar[4], start.scalar[6]) = (*a as u32, *b as u32);
                run_one(start, &translate(&example(opcode, Encoding::Sop2), Level::BASELINE).unwrap());
                start.scalar[20].into()
            })
            .collect();
    }
    for (lane, triple) in triples.iter().enumerate() {
        for (register, value) in [4, 8, 12].into_iter().zip(triple) {
            start.vector[register].0[lane] = *value as u32 | noise;
            if data == "f64" {
                start.vector[register + 1].0[lane] = (value >> 32) as u32;
            }
        }
    }
    let mut results = Level::supported().into_iter().map(|level| {
        let before: [u32; 2] = [0x5A5A_1234 ^ noise, 0x7E57_7E57];
        (0..2).for_each(|register| start.vector[register].0.fill(before[register]));
        run_one(start, &translate(&example(opcode, Encoding::Vop3), level).unwrap());
        let result = |lane: usize| {
            let [low, high] = [0, 1].map(|register| start.vector[register].0[lane]);
            if data == "f64" {
                return u64::from(low) | u64::from(high) << 32;
            }
            assert_eq!(high, before[1], "{}", opcode.mnemonic());
            if data == "f16" {
                assert_eq!(low >> 16, before[0] >> 16, "{}", opcode.mnemonic());
                return u64::from(low & 0xFFFF);
            }
            u64::from(low)
        };
        (0..triples.len()).map(result).collect::<Vec<_>>()
    });
    let first = results.next().unwrap();
    assert!(results.all(|other| other == first), "{}", opcode.mnemonic());
    first
}

#[test]
fn selections_return_the_source_that_their_name_says() {
    let mut start = wave();
    let mut seen = 0;
    for &opcode in OPCODES {
        let Some((name, data)) = parse(opcode) else { continue };
        seen += 1;
        let values = values(data);
        let all: Vec<[usize; 3]> = (0..values.len().pow(3)).map(|n| [n / 121, n / 11 % 11, n % 11]).collect();
        // Denormals of both widths: kept, flushed, of results only, of sources only. A selected denormal is no result
        // that is flushed.
        for (mode, places) in
            [MODE_USUAL, 0, 0x50, 0xA0].into_iter().flat_map(|mode| all.chunks(LANES).map(move |p| (mode, p)))
        {
            let flushes = mode & 0x50 == 0;
            start.mode = mode;
            let triples: Vec<[u64; 3]> =
                places.iter().map(|places| places.map(|place| values[place])).collect();
            for (places, result) in places.iter().zip(run(&mut start, opcode, data, &triples)) {
                let seen_as = |place: usize| {
                    let zero = FLUSHED.into_iter().find(|(denormal, _)| flushes && *denormal == place);
                    zero.map_or(place, |(_, zero)| zero)
                };
                let numbers = places.map(|place| (place < FIRST_NAN).then(|| seen_as(place)));
                // Which zero is the median of both is not said, if there is no NaN.
                let has_both_zeros = numbers.contains(&Some(3)) && numbers.contains(&Some(4));
                if name == "med3_num" && has_both_zeros && !numbers.contains(&None) {
                    continue;
                }
                let what = (opcode.mnemonic(), mode, places.map(|place| values[place]));
                match selected(name, numbers) {
                    Some(place) => assert_eq!(result, values[place], "{what:x?}"),
                    // Either NaN, quiet.
                    None => assert_eq!(result & !1, values[FIRST_NAN], "{what:x?}"),
                }
            }
        }
    }
    // Thirteen of two formats and four of f64; four scalar ones of two formats.
    assert_eq!(seen, 2 * 13 + 4 + 2 * 4);
}

/// Of two NaN, min_num and max_num return the first; minimum and maximum the first that signals, or else the first. The
/// result is quiet, and has the sign and the other bits of its source.
#[test]
fn of_two_nans_one_is_returned_quiet() {
    let mut start = wave();
    for &opcode in OPCODES {
        let Some((name, data)) =
            parse(opcode).filter(|(name, _)| ["min_num", "max_num", "minimum", "maximum"].contains(name))
        else {
            continue;
        };
        let (infinity, quiet) = match data {
            "f16" => (0x7C00, 0x0200),
            "f32" => (0x7F80_0000, 0x0040_0000),
            _ => (0x7FF0_0000_0000_0000, 0x0008_0000_0000_0000),
        };
        let sign = infinity + (infinity & !(infinity << 1));
        let nans = [
            infinity | 1,
            infinity | quiet,
            infinity | quiet | 3,
            sign | infinity | 2,
            sign | infinity | quiet | 4,
        ];
        let triples: Vec<[u64; 3]> = nans.iter().flat_map(|a| nans.iter().map(|b| [*a, *b, 0])).collect();
        for ([a, b, _], result) in triples.iter().zip(run(&mut start, opcode, data, &triples)) {
            let signals = |bits: u64| bits & quiet == 0;
            let takes_second = !name.ends_with("num") && signals(*b) && !signals(*a);
            let source = if takes_second { b } else { a };
            assert_eq!(result, source | quiet, "{} of {a:#x} and {b:#x}", opcode.mnemonic());
        }
        let number = infinity >> 1;
        for (pair, result) in nans
            .iter()
            .flat_map(|nan| [[*nan, number, 0], [number, *nan, 0]])
            .map(|pair| (pair, run(&mut start, opcode, data, &[pair])[0]))
        {
            let nan = pair[0].max(pair[1]);
            let expected = if name.ends_with("num") { number } else { nan | quiet };
            assert_eq!(result, expected, "{} of {pair:x?}", opcode.mnemonic());
        }
    }
}

/// Quotient, denominator, numerator and result, of positive numbers; the sign is that of the exact quotient.
#[test]
fn division_fixup_restores_special_cases_and_signs() {
    let single = |[quotient, denominator, numerator]: [u32; 3]| {
        let words = code("v_div_fixup_f32 v0, v1, v2, v3", &[0xD6270000, 0x040E0501]);
        u64::from(result(&[quotient, denominator, numerator], MODE_USUAL, words))
    };
    let half = |[quotient, denominator, numerator]: [u32; 3]| {
        let words = code("v_div_fixup_f16 v0, v1, v2, v3", &[0xD6540000, 0x040E0501]);
        u64::from(result(&[quotient, denominator, numerator], MODE_USUAL, words) & 0xFFFF)
    };
    let double = |sources: [u64; 3]| {
        let mut start = with(&[]);
        for (register, value) in [2, 4, 6].into_iter().zip(sources) {
            start.vector[register].0[0] = value as u32;
            start.vector[register + 1].0[0] = (value >> 32) as u32;
        }
        let words = code("v_div_fixup_f64 v[0:1], v[2:3], v[4:5], v[6:7]", &[0xD6280000, 0x041A0902]);
        let end = run_all(&start, words);
        u64::from(end.vector[0].0[0]) | u64::from(end.vector[1].0[0]) << 32
    };
    // 1, 2, 3, infinity, and two NaN of each format: a signalling one and the same, quiet.
    let words =
        |one, two, three, infinity, signalling, quiet| [0u64, one, two, three, infinity, signalling, quiet];
    let formats = [
        (15, words(0x3C00, 0x4000, 0x4200, 0x7C00, 0x7C05, 0x7E05)),
        (31, words(f(1.0).into(), f(2.0).into(), f(3.0).into(), 0x7F80_0000, 0x7F80_0005, 0x7FC0_0005)),
        (63, words(0x3FF << 52, 1 << 62, 0x4008 << 48, 0x7FF << 52, 0x7FF << 52 | 5, 0xFFF << 51 | 5)),
    ];
    for (top, [zero, one, two, three, infinity, signalling, quiet]) in formats {
        let sign = 1u64 << top;
        let fixup = |sources: [u64; 3]| match top {
            15 => half(sources.map(|bits| bits as u32)),
            31 => single(sources.map(|bits| bits as u32)),
            _ => double(sources),
        };
        for (denominator, numerator) in [(0, 0), (0, sign), (sign, 0), (sign, sign)] {
            let quotient_sign = denominator ^ numerator;
            for (quotient, d, n, expected) in [
                (two, two, three, two),
                // The sign of the quotient before does not matter.
                (two | sign, two, three, two),
                (three, zero, one, infinity),
                (three, infinity, one, zero),
                (three, one, zero, zero),
                (three, one, infinity, infinity),
                (three, infinity, zero, zero),
                (three, zero, infinity, infinity),
            ] {
                let result = fixup([quotient, d | denominator, n | numerator]);
                assert_eq!(result, expected | quotient_sign, "{quotient:#x} {d:#x} {n:#x}");
            }
            // 0 / 0 and infinity / infinity: the default NaN, which is negative.
            let undefined = sign | (quiet & !5);
            for both in [zero, infinity] {
                assert_eq!(fixup([three, both | denominator, both | numerator]), undefined);
            }
        }
        // The numerator's NaN first, then the denominator's, quiet.
        assert_eq!(fixup([one, two, signalling]), quiet);
        assert_eq!(fixup([one, signalling, two]), quiet);
        assert_eq!(fixup([one, signalling, quiet | 8]), quiet | 8);
        assert_eq!(fixup([one, quiet | 8, two]), quiet | 8);
        // A quotient that is a NaN is one that overflowed (not for f16, whose quotients are computed in f32).
        if top != 15 {
            assert_eq!(fixup([quiet, one | sign, infinity - 1]), infinity | sign);
        }
    }
    // Exponents more than 150 (1075) apart: the quotient is less than half the smallest number.
    assert_eq!(single([f(1.0), f(2f32.powi(101)), f(2f32.powi(-50))]), 0);
    assert_eq!(single([f(1.0), f(2f32.powi(100)), f(2f32.powi(-50))]), u64::from(f(1.0)));
    let bits = |exponent| f64::to_bits(2f64.powi(exponent));
    assert_eq!(double([bits(0), bits(1000), bits(-76)]), 0);
    assert_eq!(double([bits(0), bits(999), bits(-76)]), bits(0));
}

/// 0.5 <= |mantissa| < 1; zeros, infinities and NaN have the exponent 0, and are their own mantissas.
#[test]
fn mantissas_and_exponents_of_halves_and_special_values() {
    let low = |words: &[u32], value: u32| result(&[value], MODE_USUAL, words);
    let (mantissa16, exponent16) =
        (code("v_frexp_mant_f16 v0, v1", &[0x7E00B301]), code("v_frexp_exp_i16_f16 v0, v1", &[0x7E00B501]));
    // 3 is 0.75 · 2^2; the smallest denormal 0.5 · 2^-23, the largest 1023 / 1024 · 2^-14.
    for (value, mantissa, exponent) in [
        (0x4200, 0x3A00, 2),
        (0xC200, 0xBA00, 2),
        (0x0001, 0x3800, -23),
        (0x83FF, 0xBBFE, -14),
        (0x7BFF, 0x3BFF, 16),
        (0x8000, 0x8000, 0),
        (0x0000, 0x0000, 0),
        (0xFC00, 0xFC00, 0),
        (0x7C01, 0x7E01, 0),
        (0xFE05, 0xFE05, 0),
    ] {
        assert_eq!(low(mantissa16, value) & 0xFFFF, mantissa, "{value:#x}");
        assert_eq!(low(exponent16, value) as i16, exponent, "{value:#x}");
    }
    let (mantissa32, exponent32) =
        (code("v_frexp_mant_f32 v0, v1", &[0x7E008101]), code("v_frexp_exp_i32_f32 v0, v1", &[0x7E007F01]));
    for (value, mantissa, exponent) in [
        (0x8000_0001, 0xBF00_0000, -148),
        (0x007F_FFFF, 0x3F7F_FFFE, -126),
        (0x0080_0000, 0x3F00_0000, -125),
        (0x7F7F_FFFF, 0x3F7F_FFFF, 128),
        (0xFF80_0000, 0xFF80_0000, 0),
        (0x7F80_0001, 0x7FC0_0001, 0),
        (0xFFC0_0005, 0xFFC0_0005, 0),
        (0x8000_0000, 0x8000_0000, 0),
    ] {
        assert_eq!(low(mantissa32, value), mantissa, "{value:#x}");
        assert_eq!(low(exponent32, value) as i32, exponent, "{value:#x}");
        // A flushed denormal is a zero.
        let is_denormal = value & 0x7F80_0000 == 0;
        let expected = if is_denormal { (value & 1 << 31, 0) } else { (mantissa, exponent) };
        assert_eq!((result(&[value], 0xC0, mantissa32), result(&[value], 0xC0, exponent32) as i32), expected);
    }
    let doubles =
        code("v_frexp_mant_f64 v[0:1], v[2:3]; v_frexp_exp_i32_f64 v4, v[2:3]", &[0x7E007B02, 0x7E087902]);
    for (value, mantissa, exponent) in [
        (0x8000_0000_0000_0001u64, 0xBFE0_0000_0000_0000u64, -1073),
        (0x000F_FFFF_FFFF_FFFF, 0x3FEF_FFFF_FFFF_FFFE, -1022),
        (0x0010_0000_0000_0000, 0x3FE0_0000_0000_0000, -1021),
        (0xFFEF_FFFF_FFFF_FFFF, 0xBFEF_FFFF_FFFF_FFFF, 1024),
        (0xFFF0_0000_0000_0000, 0xFFF0_0000_0000_0000, 0),
        (0x7FF0_0000_0000_0001, 0x7FF8_0000_0000_0001, 0),
        (0xFFF8_0000_0000_0005, 0xFFF8_0000_0000_0005, 0),
        (0x8000_0000_0000_0000, 0x8000_0000_0000_0000, 0),
    ] {
        let start = with(&[0, value as u32, (value >> 32) as u32]);
        let end = run_all(&start, doubles);
        let result = u64::from(end.vector[0].0[0]) | u64::from(end.vector[1].0[0]) << 32;
        assert_eq!((result, end.vector[4].0[0] as i32), (mantissa, exponent), "{value:#x}");
    }
}

/// Faces of a cube map: number, coordinates on the face, twice the major axis.
#[test]
fn cube_map_coordinates() {
    for (vector, face, [s, t], axis) in [
        ([3.0, 1.0, 2.0], 0.0, [-2.0, -1.0], 6.0),
        ([-3.0, 1.0, 2.0], 1.0, [2.0, -1.0], -6.0),
        ([1.0, 3.0, 2.0], 2.0, [1.0, 2.0], 6.0),
        ([1.0, -3.0, 2.0], 3.0, [1.0, -2.0], -6.0),
        ([1.0, 2.0, 3.0], 4.0, [1.0, -2.0], 6.0),
        ([1.0, 2.0, -3.0], 5.0, [-1.0, -2.0], -6.0),
        // Of equal magnitudes z comes before y, and y before x.
        ([-1.0, 1.0, 1.0], 4.0, [-1.0, -1.0], 2.0),
        ([1.0, 0.5, -1.0], 5.0, [-1.0, -0.5], -2.0),
        ([0.5, 1.0, -1.0], 5.0, [-0.5, -1.0], -2.0),
        ([1.0, -1.0, 0.5], 3.0, [1.0, -0.5], -2.0),
        // A zero is not below zero, whatever its sign.
        ([0.0, 0.0, 0.0], 4.0, [0.0, 0.0], 0.0),
        ([-0.0, -0.0, -0.0], 4.0, [0.0, 0.0], 0.0),
    ] {
        let of = |words: &[u32]| f32::from_bits(result(&vector.map(f), MODE_USUAL, words));
        assert_eq!(of(code("v_cubeid_f32 v0, v1, v2, v3", &[0xD60C0000, 0x040E0501])), face, "{vector:?}");
        assert_eq!(of(code("v_cubesc_f32 v0, v1, v2, v3", &[0xD60D0000, 0x040E0501])), s, "{vector:?}");
        assert_eq!(of(code("v_cubetc_f32 v0, v1, v2, v3", &[0xD60E0000, 0x040E0501])), t, "{vector:?}");
        assert_eq!(of(code("v_cubema_f32 v0, v1, v2, v3", &[0xD60F0000, 0x040E0501])), axis, "{vector:?}");
    }
}

/// A zero factor makes the product +0, even of infinity or NaN; v_mullit has the lowest number for what is dark.
#[test]
fn products_with_rules_for_zeros() {
    let nan = f32::NAN;
    for mode in [MODE_USUAL, 0xC0] {
        let tiny = f32::from_bits(1);
        let flushed = |value: f32| if mode == 0xC0 { 0.0 } else { value };
        let of = |sources: [f32; 3], words: &[u32]| f32::from_bits(result(&sources.map(f), mode, words));
        let multiply = code("v_mul_dx9_zero_f32_e32 v0, v1, v2", &[0x0E000501]);
        let add = code("v_fma_dx9_zero_f32 v0, v1, v2, v3", &[0xD6090000, 0x040E0501]);
        for (a, b, c, product, sum) in [
            (2.0, 3.0, 1.0, 6.0, 7.0),
            (-0.0, 3.0, 5.0, 0.0, 5.0),
            (0.0, f32::INFINITY, 5.0, 0.0, 5.0),
            (nan, -0.0, 5.0, 0.0, 5.0),
            // 2^-149 · 2^149; a denormal factor may count as zero.
            (tiny, 2f32.powi(100), 1.0, flushed(2f32.powi(-49)), 1.0),
            (0.0, 1.0, tiny, 0.0, flushed(tiny)),
        ] {
            assert_eq!(of([a, b, 0.0], multiply).to_bits(), f(product), "{a} {b} {mode:#x}");
            assert_eq!(of([b, a, 0.0], multiply).to_bits(), f(product), "{b} {a} {mode:#x}");
            assert_eq!(of([a, b, c], add).to_bits(), f(sum), "{a} {b} {c} {mode:#x}");
            assert_eq!(of([b, a, c], add).to_bits(), f(sum), "{b} {a} {c} {mode:#x}");
        }
        let lit = code("v_mullit_f32 v0, v1, v2, v3", &[0xD6180000, 0x040E0501]);
        for (a, b, c, product) in [
            (2.0, 3.0, 1.0, 6.0),
            (-2.0, 3.0, f32::INFINITY, -6.0),
            (2.0, 3.0, 0.0, f32::MIN),
            (2.0, 3.0, -0.0, f32::MIN),
            (2.0, 3.0, -1.0, f32::MIN),
            (2.0, 3.0, nan, f32::MIN),
            (2.0, f32::MIN, 1.0, f32::MIN),
            (2.0, f32::NEG_INFINITY, 1.0, f32::MIN),
            (2.0, nan, 1.0, f32::MIN),
            (2.0, f32::MAX, 1.0, f32::INFINITY),
            (2.0, 3.0, tiny, if mode == 0xC0 { f32::MIN } else { 6.0 }),
        ] {
            assert_eq!(of([a, b, c], lit).to_bits(), f(product), "{a} {b} {c} {mode:#x}");
        }
    }
}
