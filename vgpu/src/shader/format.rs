//! Buffer formats of gfx12: how the typed loads and stores interpret texels.
//!
//! Contract: pure functions. Format numbers and names are those of LLVM 19 for gfx12 (`BUF_FMT_…`); a name lists
//! its components from the most significant bits down, so that X is the last. All formats are covered except the
//! two with packed small floats (`10_11_11_FLOAT`, `11_11_10_FLOAT`). A normalised load returns the nearest f32 of
//! the fraction. Stores are a **model**, because the card's rounding is not documented: normalised to nearest even,
//! scaled toward zero, both saturated, NaN as 0; integers keep what their range allows.

use crate::shader::float::{half_to_single, single_to_half};

/// Components of a texel.
pub(crate) const COMPONENTS: usize = 4;
/// Bytes of the longest texel.
pub(crate) const TEXEL_BYTES_MAX: usize = 16;
/// 1.0 as f32.
const ONE: u32 = 0x3F80_0000;

/// The interpretation of a component's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// 0 to 1.
    UnsignedNorm,
    /// -1 to 1.
    SignedNorm,
    /// An integer converted to a float.
    UnsignedScaled,
    SignedScaled,
    Unsigned,
    Signed,
    /// f16 or f32 by width.
    Float,
}

/// A format: the bits of X, Y, Z and W, and their interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    bits: [u8; COMPONENTS],
    number: Number,
}

/// The number formats of a group of widths, in the order of their numbers.
const ALL_BUT_FLOAT: [Number; 6] = [
    Number::UnsignedNorm,
    Number::SignedNorm,
    Number::UnsignedScaled,
    Number::SignedScaled,
    Number::Unsigned,
    Number::Signed,
];

/// First format number of a group of widths, the widths, and how many of the number formats follow each other: 6
/// without float, 7 with, 3 for those without normalised and scaled forms, 4 for those without scaled forms and
/// float.
const GROUPS: [(u8, [u8; COMPONENTS], u8); 12] = [
    (1, [8, 0, 0, 0], 6),
    (7, [16, 0, 0, 0], 7),
    (14, [8, 8, 0, 0], 6),
    (20, [32, 0, 0, 0], 3),
    (23, [16, 16, 0, 0], 7),
    (32, [2, 10, 10, 10], 4),
    (36, [10, 10, 10, 2], 6),
    (42, [8, 8, 8, 8], 6),
    (48, [32, 32, 0, 0], 3),
    (51, [16, 16, 16, 16], 7),
    (58, [32, 32, 32, 0], 3),
    (61, [32, 32, 32, 32], 3),
];

impl Format {
    /// The format with a number; `None` for invalid ones and packed small floats.
    pub fn new(number: u32) -> Option<Format> {
        let (first, bits, count) =
            GROUPS.into_iter().find(|(first, _, count)| (*first..first + count).contains(&(number as u8)))?;
        if number > 63 {
            return None;
        }
        let at = (number as u8 - first) as usize;
        let number = match count {
            3 => [Number::Unsigned, Number::Signed, Number::Float][at],
            4 => [Number::UnsignedNorm, Number::SignedNorm, Number::Unsigned, Number::Signed][at],
            _ => ALL_BUT_FLOAT.get(at).copied().unwrap_or(Number::Float),
        };
        Some(Format { bits, number })
    }

    /// Bytes of a texel.
    pub fn bytes(self) -> usize {
        self.bits.iter().map(|bits| *bits as usize).sum::<usize>() / 8
    }

    /// True if registers hold integers.
    pub fn is_integer(self) -> bool {
        matches!(self.number, Number::Unsigned | Number::Signed)
    }

    /// The value 1 in register form: the value of a missing W.
    pub fn one(self) -> u32 {
        if self.is_integer() { 1 } else { ONE }
    }

    /// The components of a texel in register form: f32 or 32-bit integers; missing ones are 0, 0, 0, 1.
    pub fn load(self, texel: &[u8]) -> [u32; COMPONENTS] {
        let mut word = [0; TEXEL_BYTES_MAX];
        word[..texel.len().min(TEXEL_BYTES_MAX)].copy_from_slice(&texel[..texel.len().min(TEXEL_BYTES_MAX)]);
        let word = u128::from_le_bytes(word);
        let mut components = [0, 0, 0, self.one()];
        let mut at = 0;
        for (component, bits) in components.iter_mut().zip(self.bits) {
            let bits = u32::from(bits);
            if bits > 0 {
                *component = self.widen((word >> at) as u32 & (u32::MAX >> (32 - bits)), bits);
            }
            at += bits;
        }
        components
    }

    /// The texel for components in register form.
    pub fn store(self, components: [u32; COMPONENTS]) -> [u8; TEXEL_BYTES_MAX] {
        let (mut word, mut at) = (0u128, 0);
        for (component, bits) in components.into_iter().zip(self.bits) {
            let bits = u32::from(bits);
            if bits > 0 {
                word |= u128::from(self.narrow(component, bits) & (u32::MAX >> (32 - bits))) << at;
            }
            at += bits;
        }
        word.to_le_bytes()
    }

    fn widen(self, raw: u32, bits: u32) -> u32 {
        let signed = (raw << (32 - bits)) as i32 >> (32 - bits);
        let float = |value: f64| (value as f32).to_bits();
        match self.number {
            Number::UnsignedNorm => float(f64::from(raw) / unsigned_limit(bits)),
            Number::SignedNorm => float((f64::from(signed) / signed_limit(bits)).max(-1.0)),
            Number::UnsignedScaled => float(raw.into()),
            Number::SignedScaled => float(signed.into()),
            Number::Unsigned => raw,
            Number::Signed => signed as u32,
            Number::Float if bits == 16 => half_to_single(raw),
            Number::Float => raw,
        }
    }

    fn narrow(self, value: u32, bits: u32) -> u32 {
        let number = f64::from(f32::from_bits(value));
        // A conversion from float to integer saturates, and converts NaN to 0.
        let rounded = |scale: f64| (number * scale).round_ties_even();
        let (unsigned, signed) = (unsigned_limit(bits), signed_limit(bits));
        match self.number {
            Number::UnsignedNorm => rounded(unsigned).clamp(0.0, unsigned) as u32,
            Number::SignedNorm => rounded(signed).clamp(-signed, signed) as i32 as u32,
            Number::UnsignedScaled => number.trunc().clamp(0.0, unsigned) as u32,
            Number::SignedScaled => number.trunc().clamp(-signed - 1.0, signed) as i32 as u32,
            Number::Unsigned => value.min(u32::MAX >> (32 - bits)),
            Number::Signed => (value as i32).clamp(i32::MIN >> (32 - bits), i32::MAX >> (32 - bits)) as u32,
            Number::Float if bits == 16 => single_to_half(value),
            Number::Float => value,
        }
    }

    /// A component in a 16-bit register half: f16 to nearest, or the low half of an integer.
    pub fn component_to_half(self, component: u32) -> u32 {
        if self.is_integer() { component & 0xFFFF } else { single_to_half(component) }
    }

    /// The inverse of [`Format::component_to_half`]: integers are sign-extended.
    pub fn half_to_component(self, half: u32) -> u32 {
        match self.number {
            Number::Unsigned => half & 0xFFFF,
            Number::Signed => half as u16 as i16 as i32 as u32,
            _ => half_to_single(half & 0xFFFF),
        }
    }
}

fn unsigned_limit(bits: u32) -> f64 {
    f64::from(u32::MAX >> (32 - bits))
}

fn signed_limit(bits: u32) -> f64 {
    f64::from(i32::MAX >> (32 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as llvm-mc 19 spells them, with the numbers that it encodes.
    #[test]
    fn numbers_and_widths_are_those_of_the_assembler() {
        use Number::*;
        let cases: [(u32, &str, usize, Number); 16] = [
            (1, "BUF_FMT_8_UNORM", 1, UnsignedNorm),
            (6, "BUF_FMT_8_SINT", 1, Signed),
            (13, "BUF_FMT_16_FLOAT", 2, Float),
            (16, "BUF_FMT_8_8_USCALED", 2, UnsignedScaled),
            (20, "BUF_FMT_32_UINT", 4, Unsigned),
            (22, "BUF_FMT_32_FLOAT", 4, Float),
            (24, "BUF_FMT_16_16_SNORM", 4, SignedNorm),
            (29, "BUF_FMT_16_16_FLOAT", 4, Float),
            (34, "BUF_FMT_10_10_10_2_UINT", 4, Unsigned),
            (39, "BUF_FMT_2_10_10_10_SSCALED", 4, SignedScaled),
            (46, "BUF_FMT_8_8_8_8_UINT", 4, Unsigned),
            (50, "BUF_FMT_32_32_FLOAT", 8, Float),
            (51, "BUF_FMT_16_16_16_16_UNORM", 8, UnsignedNorm),
            (57, "BUF_FMT_16_16_16_16_FLOAT", 8, Float),
            (59, "BUF_FMT_32_32_32_SINT", 12, Signed),
            (63, "BUF_FMT_32_32_32_32_FLOAT", 16, Float),
        ];
        for (number, name, bytes, meaning) in cases {
            let format = Format::new(number).unwrap();
            assert_eq!((format.bytes(), format.number), (bytes, meaning), "{name}");
        }
        let missing: Vec<u32> = (0..300).filter(|number| Format::new(*number).is_none()).collect();
        let expected: Vec<u32> = [0, 30, 31].into_iter().chain(64..300).collect();
        assert_eq!(
            missing, expected,
            "the invalid one, packed small floats, and what is not a number of six bits"
        );
    }

    /// All names, by number.
    const NAMES: [&str; 64] = [
        "",
        "8_UNORM",
        "8_SNORM",
        "8_USCALED",
        "8_SSCALED",
        "8_UINT",
        "8_SINT", //
        "16_UNORM",
        "16_SNORM",
        "16_USCALED",
        "16_SSCALED",
        "16_UINT",
        "16_SINT",
        "16_FLOAT", //
        "8_8_UNORM",
        "8_8_SNORM",
        "8_8_USCALED",
        "8_8_SSCALED",
        "8_8_UINT",
        "8_8_SINT", //
        "32_UINT",
        "32_SINT",
        "32_FLOAT", //
        "16_16_UNORM",
        "16_16_SNORM",
        "16_16_USCALED",
        "16_16_SSCALED",
        "16_16_UINT",
        "16_16_SINT",
        "16_16_FLOAT", //
        "",
        "", //
        "10_10_10_2_UNORM",
        "10_10_10_2_SNORM",
        "10_10_10_2_UINT",
        "10_10_10_2_SINT", //
        "2_10_10_10_UNORM",
        "2_10_10_10_SNORM",
        "2_10_10_10_USCALED",
        "2_10_10_10_SSCALED",
        "2_10_10_10_UINT",
        "2_10_10_10_SINT", //
        "8_8_8_8_UNORM",
        "8_8_8_8_SNORM",
        "8_8_8_8_USCALED",
        "8_8_8_8_SSCALED",
        "8_8_8_8_UINT",
        "8_8_8_8_SINT", //
        "32_32_UINT",
        "32_32_SINT",
        "32_32_FLOAT", //
        "16_16_16_16_UNORM",
        "16_16_16_16_SNORM",
        "16_16_16_16_USCALED",
        "16_16_16_16_SSCALED",
        "16_16_16_16_UINT",
        "16_16_16_16_SINT",
        "16_16_16_16_FLOAT", //
        "32_32_32_UINT",
        "32_32_32_SINT",
        "32_32_32_FLOAT", //
        "32_32_32_32_UINT",
        "32_32_32_32_SINT",
        "32_32_32_32_FLOAT",
    ];

    /// Widths from X up, and what the components are.
    fn parse(name: &str) -> (Vec<u32>, &str) {
        let (widths, kind) = name.rsplit_once('_').unwrap();
        (widths.split('_').rev().map(|bits| bits.parse().unwrap()).collect(), kind)
    }

    /// Patterns at the ends and in the middle of a width.
    fn patterns(bits: u32) -> Vec<u32> {
        let most = u32::MAX >> (32 - bits);
        let half = most / 2;
        [0, 1, 2, most / 3, half - half / 4, half, half + 1, half + 2, most - most / 5, most - 1, most]
            .into_iter()
            .map(|pattern| pattern & most)
            .collect()
    }

    fn signed(pattern: u32, bits: u32) -> i64 {
        let value = i64::from(pattern);
        if pattern >> (bits - 1) != 0 { value - (1 << bits) } else { value }
    }

    /// Whether an f32 is the one nearest to a fraction of integers; of 16 bits at most, so that f64 is exact.
    fn is_nearest(found: u32, numerator: i64, denominator: i64) -> bool {
        let distance = |value: f32| (f64::from(value) * denominator as f64 - numerator as f64).abs();
        let value = f32::from_bits(found);
        [value.next_up(), value.next_down()].into_iter().all(|other| distance(value) <= distance(other))
    }

    #[test]
    fn every_component_of_every_format_is_loaded_and_stored() {
        for (number, name) in NAMES.into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let format = Format::new(number as u32).unwrap();
            let (widths, kind) = parse(name);
            assert_eq!(format.bytes() as u32, widths.iter().sum::<u32>() / 8, "{name}");
            let is_integer = matches!(kind, "UINT" | "SINT");
            let one = if is_integer { 1 } else { 0x3F80_0000 };
            assert_eq!((format.is_integer(), format.one()), (is_integer, one), "{name}");
            let mut at = 0;
            for (component, bits) in widths.iter().copied().enumerate() {
                for (pattern, others) in patterns(bits).into_iter().flat_map(|p| [(p, 0), (p, u128::MAX)]) {
                    let mask = u128::from(u32::MAX >> (32 - bits)) << at;
                    let texel = (others & !mask | u128::from(pattern) << at).to_le_bytes();
                    let loaded = format.load(&texel[..format.bytes()]);
                    let (found, value) = (loaded[component], signed(pattern, bits));
                    let (largest, half) = ((1i64 << bits) - 1, (1i64 << (bits - 1)) - 1);
                    let right = match kind {
                        "UNORM" => is_nearest(found, pattern.into(), largest),
                        "SNORM" => is_nearest(found, value.max(-half), half),
                        "USCALED" => found == (pattern as f32).to_bits(),
                        "SSCALED" => found == (value as f32).to_bits(),
                        "UINT" => found == pattern,
                        "SINT" => found == value as u32,
                        "FLOAT" if bits == 32 => found == pattern,
                        _ => {
                            let expected = crate::shader::valu::testing::half_value(pattern as u16);
                            let found = f64::from(f32::from_bits(found));
                            found == expected || found.is_nan() && expected.is_nan()
                        }
                    };
                    assert!(right, "{name} {component}: {pattern:#x} is {found:#x}");
                    let missing = widths.len()..;
                    assert_eq!(loaded[missing.clone()], [0, 0, 0, one][missing], "{name}");
                    // Stored again beside components that are 0. The least SNORM has two codes; NaN is not kept.
                    let mut components = [0; COMPONENTS];
                    components[component] = found;
                    let again = match kind {
                        "SNORM" if value < -half => -half as u32 & (u32::MAX >> (32 - bits)),
                        "FLOAT" if bits == 16 && pattern & 0x7FFF > 0x7C00 => 0x7E00,
                        _ => pattern,
                    };
                    let stored = u128::from_le_bytes(format.store(components));
                    assert_eq!(stored, u128::from(again) << at, "{name} {component}: {pattern:#x}");
                }
                at += bits;
            }
        }
    }

    /// Numbers between those of a format, beyond them, and none.
    #[test]
    fn stores_choose_the_number_by_its_distance() {
        let store = |name: &str, value: u32| {
            let number = NAMES.iter().position(|other| *other == name).unwrap();
            u128::from_le_bytes(Format::new(number as u32).unwrap().store([value, 0, 0, 0])) as u32
        };
        for (name, cases) in [
            // 0.5 / 255 is no f32; half of 255 lies between 127 and 128, of which 128 is even.
            (
                "8_UNORM",
                [
                    (0.5, 128),
                    (0.001_9, 0),
                    (0.002, 1),
                    (1.1, 255),
                    (-0.3, 0),
                    (f32::INFINITY, 255),
                    (f32::NAN, 0),
                ],
            ),
            (
                "8_SNORM",
                [
                    (0.5, 64),
                    (-0.5, 0xC0),
                    (0.003_9, 0),
                    (-0.004, 0xFF),
                    (1.1, 0x7F),
                    (-1.1, 0x81),
                    (f32::NAN, 0),
                ],
            ),
            (
                "16_UNORM",
                [
                    (0.5, 0x8000),
                    (0.000_007, 0),
                    (0.000_008, 1),
                    (2.0, 0xFFFF),
                    (-1.0, 0),
                    (1.0, 0xFFFF),
                    (f32::NAN, 0),
                ],
            ),
            (
                "16_SNORM",
                [
                    (0.5, 0x4000),
                    (-0.5, 0xC000),
                    (1.0, 0x7FFF),
                    (-1.0, 0x8001),
                    (9.0, 0x7FFF),
                    (-9.0, 0x8001),
                    (f32::NAN, 0),
                ],
            ),
            (
                "8_USCALED",
                [(0.99, 0), (1.0, 1), (254.99, 254), (255.0, 255), (256.0, 255), (-0.5, 0), (f32::NAN, 0)],
            ),
            (
                "8_SSCALED",
                [
                    (-0.99, 0),
                    (-1.5, 0xFF),
                    (127.9, 127),
                    (128.0, 127),
                    (-128.0, 0x80),
                    (-129.0, 0x80),
                    (f32::NAN, 0),
                ],
            ),
            (
                "16_USCALED",
                [
                    (65534.5, 0xFFFE),
                    (65535.0, 0xFFFF),
                    (65536.0, 0xFFFF),
                    (-7.0, 0),
                    (7.5, 7),
                    (f32::INFINITY, 0xFFFF),
                    (f32::NAN, 0),
                ],
            ),
            (
                "16_SSCALED",
                [
                    (-32768.5, 0x8000),
                    (-32767.5, 0x8001),
                    (32767.0, 0x7FFF),
                    (32768.0, 0x7FFF),
                    (-1.0, 0xFFFF),
                    (f32::NEG_INFINITY, 0x8000),
                    (f32::NAN, 0),
                ],
            ),
            (
                "16_FLOAT",
                [
                    (1.0, 0x3C00),
                    (65520.0, 0x7C00),
                    (65519.0, 0x7BFF),
                    (-2.0, 0xC000),
                    (1e-9, 0),
                    (2049.0, 0x6800),
                    (f32::NAN, 0x7E00),
                ],
            ),
        ] {
            for (value, expected) in cases {
                assert_eq!(store(name, value.to_bits()), expected, "{name} of {value}");
            }
        }
        for (name, cases) in [
            ("8_UINT", [(254, 254), (255, 255), (256, 255), (u32::MAX, 255)]),
            ("8_SINT", [(127, 127), (128, 127), (-128i32 as u32, 0x80), (-129i32 as u32, 0x80)]),
            ("16_UINT", [(65534, 65534), (65535, 65535), (65536, 65535), (u32::MAX, 65535)]),
            (
                "16_SINT",
                [(32767, 32767), (32768, 32767), (-32768i32 as u32, 0x8000), (i32::MIN as u32, 0x8000)],
            ),
            ("2_10_10_10_UINT", [(1022, 1022), (1023, 1023), (1024, 1023), (u32::MAX, 1023)]),
            ("10_10_10_2_SINT", [(1, 1), (2, 1), (-2i32 as u32, 2), (-3i32 as u32, 2)]),
            ("32_SINT", [(1, 1), (u32::MAX, u32::MAX), (i32::MIN as u32, 1 << 31), (0, 0)]),
        ] {
            for (value, expected) in cases {
                assert_eq!(store(name, value), expected, "{name} of {value:#x}");
            }
        }
    }

    /// Halves of registers: floats as f16, integers as they are; signed ones are extended.
    #[test]
    fn halves_hold_components() {
        for (number, name) in NAMES.into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let format = Format::new(number as u32).unwrap();
            let kind = parse(name).1;
            for half in [0, 1, 0x3C00, 0x7FFF, 0x8000, 0xBC01, 0xFBFF] {
                let noise = 0xABCD_0000 | half;
                let (component, back) = (format.half_to_component(noise), format.component_to_half(noise));
                match kind {
                    "UINT" => assert_eq!((component, back), (half, half), "{name}"),
                    "SINT" => assert_eq!((component, back), (half as u16 as i16 as u32, half), "{name}"),
                    _ => {
                        let value = crate::shader::valu::testing::half_value(half as u16);
                        let found = f64::from(f32::from_bits(component));
                        assert!(found == value || found.is_nan() && value.is_nan(), "{name} {half:#x}");
                        let kept = if value.is_nan() { 0x7E00 } else { half };
                        assert_eq!(format.component_to_half(component), kept, "{name} {half:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn loads_widen() {
        let load = |number, texel: &[u8]| Format::new(number).unwrap().load(texel);
        let floats = |values: [f32; 4]| values.map(f32::to_bits);
        assert_eq!(load(42, &[0, 51, 255, 102]), floats([0.0, 0.2, 1.0, 0.4]));
        // -128 and -127 both mean -1.
        assert_eq!(load(43, &[0x80, 0x81, 0x7F, 0]), floats([-1.0, -1.0, 1.0, 0.0]));
        assert_eq!(load(15, &[0x80, 64]), floats([-1.0, 64.0 / 127.0, 0.0, 1.0]));
        assert_eq!(load(5, &[200]), [200, 0, 0, 1]);
        assert_eq!(load(6, &[200]), [-56i32 as u32, 0, 0, 1]);
        assert_eq!(load(4, &[200]), floats([-56.0, 0.0, 0.0, 1.0]));
        assert_eq!(load(13, &[0x00, 0xC2]), floats([-3.0, 0.0, 0.0, 1.0]));
        // From the top down W has 2 bits, Z, Y, X 10 bits each: X = 1, Y = 2, Z = 3, W = 2.
        let word = 2u32 << 30 | 3 << 20 | 2 << 10 | 1;
        assert_eq!(load(40, &word.to_le_bytes()), [1, 2, 3, 2]);
        assert_eq!(load(61, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]), [1, 2, 3, 4]);
    }

    #[test]
    fn stores_saturate_and_round_to_even() {
        let store = |number, components: [u32; 4]| {
            let format = Format::new(number).unwrap();
            format.store(components)[..format.bytes()].to_vec()
        };
        let floats = |values: [f32; 4]| values.map(f32::to_bits);
        assert_eq!(store(42, floats([2.0, -1.0, f32::NAN, 0.5])), [255, 0, 0, 128]);
        assert_eq!(store(43, floats([2.0, -2.0, 0.0, 0.5])), [0x7F, 0x81, 0, 64]);
        assert_eq!(store(46, [1, 300, 0, 255]), [1, 255, 0, 255]);
        assert_eq!(store(47, [-1i32 as u32, -200i32 as u32, 200, 5]), [0xFF, 0x80, 0x7F, 5]);
        assert_eq!(store(29, floats([1.0, -3.0, 9.0, 9.0])), [0x00, 0x3C, 0x00, 0xC2]);
        assert_eq!(store(40, [1, 2, 3, 2]), (2u32 << 30 | 3 << 20 | 2 << 10 | 1).to_le_bytes());
    }

    #[test]
    fn every_texel_survives_a_load_and_a_store() {
        for number in (0..64).filter(|number| Format::new(*number).is_some()) {
            let format = Format::new(number).unwrap();
            let texel: Vec<u8> = (0..format.bytes() as u8).map(|byte| byte * 13 + 1).collect();
            let back = format.store(format.load(&texel));
            assert_eq!(&back[..format.bytes()], texel, "{number}");
        }
    }
}
