//! Contents of buffers that do not come from a file: zeros, a pattern, random numbers.
//!
//! Contract: pure, and the same forever: a seed gives the same bytes in every version. Numbers with a fraction are
//! uniform from -1 up to 1, others and bytes without a type uniform over all bits.

use crate::element::ElementType;
use crate::size::Size;
use zrt_mem::Random;

/// A buffer that repeats a pattern; the last repetition may be cut.
pub fn pattern(size: Size, pattern: &[u8]) -> Vec<u8> {
    pattern.iter().copied().cycle().take(size.bytes as usize).collect()
}

/// A buffer of random numbers.
pub fn random(size: Size, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(size.bytes as usize + 8);
    while (bytes.len() as u64) < size.bytes {
        let bits = random.bits();
        match size.element.filter(|element| element.is_float()) {
            Some(element) => bytes.extend(element.encode_float(fraction(bits)).unwrap_or_default()),
            None => bytes.extend_from_slice(&bits.to_le_bytes()),
        }
    }
    bytes.truncate(size.bytes as usize);
    bytes
}

/// A pattern: `fill:SIZE:VALUE` holds a number of the size's type, or bytes as hexadecimal digits.
pub(crate) fn pattern_of(element: Option<ElementType>, text: &str) -> Option<Vec<u8>> {
    match element {
        Some(element) => element.encode(text),
        None => hexadecimal(text.strip_prefix("0x").unwrap_or(text)),
    }
}

/// Bytes of pairs of hexadecimal digits, at least one.
pub(crate) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() || text.len() % 2 != 0 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// From -1 up to 1, by the upper 53 bits.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Size {
        Size::parse(text).unwrap()
    }

    #[test]
    fn patterns_repeat_and_are_cut() {
        assert_eq!(pattern(size("5"), &[1, 2]), [1, 2, 1, 2, 1]);
        assert_eq!(pattern_of(Some(ElementType::F32), "1"), Some(vec![0, 0, 0x80, 0x3F]));
        assert_eq!(pattern_of(None, "0xdeAD"), Some(vec![0xDE, 0xAD]));
        for text in ["", "0x", "abc", "xy", "0xü"] {
            assert_eq!(pattern_of(None, text), None, "{text}");
        }
    }

    #[test]
    fn random_bytes_are_the_published_sequence() {
        // SplitMix64 of seed 0, its first two values.
        let expected = [0xE220_A839_7B1D_CDAF_u64, 0x6E78_9E6A_A1B9_65F4].map(u64::to_le_bytes).concat();
        assert_eq!(random(size("16"), 0), expected);
        assert_eq!(random(size("3"), 0), expected[..3]);
    }

    /// The upper 53 bits of the same two values, over 2^52, less 1: 0.76662... and -0.13694...
    #[test]
    fn random_fractions_are_the_published_sequence() {
        let expected = [0x3FE8_882A_0E5E_C772_u64, 0xBFC1_8761_955E_46A0].map(u64::to_le_bytes).concat();
        assert_eq!(random(size("2*f64"), 0), expected);
        assert_eq!(random(size("2*f32"), 0), [0x3F44_4150_u32, 0xBE0C_3B0D].map(u32::to_le_bytes).concat());
    }

    #[test]
    fn random_fractions_lie_around_zero() {
        for element in ["f16", "bf16", "f32", "f64"] {
            let size = size(&format!("1000*{element}"));
            let bytes = random(size, 7);
            let element = size.element.unwrap();
            let numbers: Vec<f64> =
                bytes.chunks(element.bytes()).map(|bytes| element.decode(bytes)).collect();
            assert!(numbers.iter().all(|number| (-1.0..=1.0).contains(number)));
            let mean = numbers.iter().sum::<f64>() / 1000.0;
            // Four standard deviations of such a mean: 4 * sqrt(1 / 3 / 1000).
            assert!(mean.abs() < 0.073, "{mean}");
        }
    }
}
