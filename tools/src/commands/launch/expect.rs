//! What a buffer is expected to hold.
//!
//! Contract: without a tolerance every bit counts. With one, two numbers are equal if they differ by no more than it,
//! or if both are NaN; the type comes from the `.npy`. Integers are compared and shown exactly, including those of 64
//! bits. Pure.

use std::fmt;
use std::sync::Arc;
use zrt_script::ElementType;

/// The numbers that are expected.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct Expectation {
    /// The numbers, repeated as far as the buffer goes.
    pub bytes: Arc<Vec<u8>>,
    /// The type of the numbers, if the file states it.
    pub element: Option<ElementType>,
    /// Largest difference of two numbers that count as equal.
    pub tolerance: Option<f64>,
}

/// Where a buffer differs.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct Difference {
    /// Elements that differ, or bytes if there is no type.
    pub count: usize,
    /// Elements, or bytes.
    pub of: usize,
    /// The first that differs.
    pub first: usize,
    /// What it is.
    pub actual: String,
    /// What it should be.
    pub expected: String,
}

impl Expectation {
    /// Where `actual` differs; `None` if it does not.
    pub fn compare(&self, actual: &[u8]) -> Option<Difference> {
        let width = self.element.map_or(1, ElementType::bytes);
        let pairs = || actual.chunks(width).zip(self.bytes.chunks(width).cycle());
        let (first, (have, want)) =
            pairs().enumerate().find(|(_, (have, want))| !self.is_equal(have, want))?;
        let count = pairs().filter(|(have, want)| !self.is_equal(have, want)).count();
        let text = |bytes: &[u8]| match self.element {
            Some(element) => element.text(bytes),
            None => format!("{:#04x}", bytes[0]),
        };
        Some(Difference { count, of: pairs().count(), first, actual: text(have), expected: text(want) })
    }

    fn is_equal(&self, actual: &[u8], expected: &[u8]) -> bool {
        let (Some(element), Some(tolerance)) = (self.element, self.tolerance) else {
            return actual == expected;
        };
        if let (Some(actual), Some(expected)) = (element.integer(actual), element.integer(expected)) {
            // Whole numbers differ by no more than a tolerance exactly if they differ by no more than its whole part.
            return (actual - expected).abs() <= tolerance.floor() as i128;
        }
        let (actual, expected) = (element.decode(actual), element.decode(expected));
        // Equal infinities have no difference.
        actual == expected || (actual - expected).abs() <= tolerance || actual.is_nan() && expected.is_nan()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { count, of, first, actual, expected } = self;
        write!(out, "{count} of {of} differ, first [{first}]: {actual} where {expected} is expected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn bits_count_unless_there_is_a_tolerance() {
        let numbers = [1.0, f32::NAN, f32::INFINITY, 0.0];
        let bytes = floats(&numbers);
        let with = |tolerance| Expectation {
            bytes: bytes.clone().into(),
            element: Some(ElementType::F32),
            tolerance,
        };
        let actual = floats(&[1.25, -f32::NAN, f32::INFINITY, -0.0]);
        assert_eq!(with(Some(0.25)).compare(&actual), None);
        assert_eq!(with(None).compare(&bytes), None);
        let close = with(Some(0.125)).compare(&actual).unwrap();
        assert_eq!(close.to_string(), "1 of 4 differ, first [0]: 1.25 where 1 is expected");
        assert_eq!(with(None).compare(&actual).unwrap().count, 3);
        let infinite = with(Some(1e300)).compare(&floats(&[1.0, 0.0, 3.0, 0.0])).unwrap();
        assert_eq!((infinite.count, infinite.first), (2, 1));
    }

    /// Neighbours that are the same number as an `f64`, and the ends of the range.
    #[test]
    fn integers_are_compared_exactly() {
        let large = (1_u64 << 53) + 1;
        let of = |value: u64, element, tolerance| {
            let bytes = Arc::new(value.to_le_bytes().to_vec());
            Expectation { bytes, element: Some(element), tolerance: Some(tolerance) }
        };
        let unsigned = |expected: u64, actual: u64, tolerance| {
            of(expected, ElementType::U64, tolerance).compare(&actual.to_le_bytes())
        };
        assert_eq!(
            unsigned(large, large - 1, 0.5).unwrap().to_string(),
            "1 of 1 differ, first [0]: 9007199254740992 where 9007199254740993 is expected"
        );
        assert_eq!(unsigned(large, large - 1, 1.0), None);
        assert_eq!(unsigned(u64::MAX, 0, u64::MAX as f64), None);
        assert_eq!(unsigned(u64::MAX, u64::MAX - 2, 1.9).unwrap().actual, "18446744073709551613");
        let signed = |actual: i64, tolerance| {
            of(i64::MAX as u64, ElementType::I64, tolerance).compare(&actual.to_le_bytes())
        };
        assert_eq!(signed(i64::MIN, 1e18).unwrap().actual, "-9223372036854775808");
        assert_eq!(signed(i64::MIN, f64::INFINITY), None);
        assert_eq!(of(0xFF, ElementType::I8, 1.0).compare(&[0]), None, "-1 and 0");
    }

    #[test]
    fn without_a_type_bytes_are_compared() {
        let expectation = Expectation { bytes: vec![1, 2, 3].into(), element: None, tolerance: None };
        let difference = expectation.compare(&[1, 2, 4]).unwrap();
        assert_eq!(difference.to_string(), "1 of 3 differ, first [2]: 0x04 where 0x03 is expected");
    }
}
