//! Sizes of buffers as people write them: `4096`, `0x1000`, `4k`, `2M`, `1024*f32`.
//!
//! Contract: `k`, `M` and `G` are powers of 1024; a number times a type counts elements. 0, and what is larger than a
//! buffer may be, is refused.

use crate::element::ElementType;

/// Largest buffer.
pub const BUFFER_BYTES_MAX: u64 = 4 << 30;
/// What a size is written as, for messages.
pub(crate) const SIZE_FORMS: &str = "a size such as 4096, 4k, 2M or 1024*f32";

/// A size, and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Length in bytes.
    pub bytes: u64,
    /// The type, if it counts elements.
    pub element: Option<ElementType>,
}

impl Size {
    /// Parses a size; `None` if it is not one, or is too large.
    pub fn parse(text: &str) -> Option<Size> {
        let (count, element) = match text.split_once('*') {
            Some((count, name)) => (count, Some(ElementType::named(name)?)),
            None => (text, None),
        };
        let width = element.map_or(1, |element| element.bytes() as u64);
        let bytes = number(count)?.checked_mul(width)?;
        (1..=BUFFER_BYTES_MAX).contains(&bytes).then_some(Size { bytes, element })
    }
}

/// A number, perhaps with a unit.
fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_types() {
        let bytes = |text| Size::parse(text).map(|size| size.bytes);
        assert_eq!([bytes("16"), bytes("0x10"), bytes("4k"), bytes("4K")], [16, 16, 4096, 4096].map(Some));
        assert_eq!([bytes("2M"), bytes("4G")], [2 << 20, 4 << 30].map(Some));
        assert_eq!(Size::parse("3*f16"), Some(Size { bytes: 6, element: Some(ElementType::F16) }));
        assert_eq!(bytes("1k*f64"), Some(8192));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "0",
            "k",
            "-1",
            "1.5",
            "5G",
            "4 k",
            "x",
            "1*",
            "1*x",
            "*f32",
            "99999999999999999999",
            "1G*f64",
        ] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
