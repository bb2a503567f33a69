//! Types of numbers that arguments and buffers hold.
//!
//! Contract: little-endian, IEEE 754 formats and bf16 (the upper half of an f32). Text that does not fit its type is
//! refused; a decimal fraction is rounded to nearest, ties to even.

use half::{bf16, f16};

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ElementType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

use ElementType::*;

impl ElementType {
    /// All of them.
    pub const ALL: [ElementType; 12] = [I8, U8, I16, U16, I32, U32, I64, U64, F16, Bf16, F32, F64];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            I8 => "i8",
            U8 => "u8",
            I16 => "i16",
            U16 => "u16",
            I32 => "i32",
            U32 => "u32",
            I64 => "i64",
            U64 => "u64",
            F16 => "f16",
            Bf16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<ElementType> {
        ElementType::ALL.into_iter().find(|element| element.name() == name)
    }

    /// Its bytes.
    pub fn bytes(self) -> usize {
        match self {
            I8 | U8 => 1,
            I16 | U16 | F16 | Bf16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// Whether it has a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, F16 | Bf16 | F32 | F64)
    }

    /// A number as it is in memory: decimal, or for integers hexadecimal after `0x`. `None` if it does not fit.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        if self.is_float() {
            return self.encode_float(text.parse().ok()?);
        }
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let size = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => digits.parse::<u64>().ok()?,
        };
        let value = if negative { -i128::from(size) } else { i128::from(size) };
        let bits = 8 * self.bytes() as u32;
        let (low, high) = match self {
            I8 | I16 | I32 | I64 => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            _ => (0, (1i128 << bits) - 1),
        };
        (low..=high).contains(&value).then(|| value.to_le_bytes()[..self.bytes()].to_vec())
    }

    /// A number of a type with a fraction; `None` for other types.
    pub fn encode_float(self, value: f64) -> Option<Vec<u8>> {
        Some(match self {
            F16 => f16::from_f64(value).to_le_bytes().into(),
            Bf16 => bf16::from_f64(value).to_le_bytes().into(),
            F32 => (value as f32).to_le_bytes().into(),
            F64 => value.to_le_bytes().into(),
            _ => return None,
        })
    }

    /// The number in [`ElementType::bytes`] bytes, if the type has no fraction; exact.
    pub fn integer(self, bytes: &[u8]) -> Option<i128> {
        let mut wide = [0; 8];
        let count = self.bytes().min(bytes.len());
        wide[..count].copy_from_slice(&bytes[..count]);
        let bits = u64::from_le_bytes(wide);
        // The sign is the highest bit of the type's own.
        let above = 64 - 8 * self.bytes() as u32;
        match self {
            I8 | I16 | I32 | I64 => Some(((bits << above) as i64 >> above).into()),
            U8 | U16 | U32 | U64 => Some(bits.into()),
            F16 | Bf16 | F32 | F64 => None,
        }
    }

    /// The number in [`ElementType::bytes`] bytes as text: exact for integers; floats with as many digits as
    /// distinguish them from their neighbours, of which f16 and bf16 have those of f32, and with an exponent if they
    /// are very small or large.
    pub fn text(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        let count = self.bytes().min(bytes.len());
        wide[..count].copy_from_slice(&bytes[..count]);
        let bits = u64::from_le_bytes(wide);
        let single = |value: f32| match is_plain(value.into()) {
            true => value.to_string(),
            false => format!("{value:e}"),
        };
        match self {
            I64 => (bits as i64).to_string(),
            U64 => bits.to_string(),
            F16 => single(f16::from_bits(bits as u16).to_f32()),
            Bf16 => single(bf16::from_bits(bits as u16).to_f32()),
            F32 => single(f32::from_bits(bits as u32)),
            F64 => match f64::from_bits(bits) {
                value if is_plain(value) => value.to_string(),
                value => format!("{value:e}"),
            },
            _ => self.decode(bytes).to_string(),
        }
    }

    /// The number in [`ElementType::bytes`] bytes; 64-bit integers lose their last bits.
    pub fn decode(self, bytes: &[u8]) -> f64 {
        let mut wide = [0; 8];
        let count = self.bytes().min(bytes.len());
        wide[..count].copy_from_slice(&bytes[..count]);
        let bits = u64::from_le_bytes(wide);
        match self {
            I8 => f64::from(bits as i8),
            U8 => f64::from(bits as u8),
            I16 => f64::from(bits as i16),
            U16 => f64::from(bits as u16),
            I32 => f64::from(bits as i32),
            U32 => f64::from(bits as u32),
            I64 => bits as i64 as f64,
            U64 => bits as f64,
            F16 => f16::from_bits(bits as u16).to_f64(),
            Bf16 => bf16::from_bits(bits as u16).to_f64(),
            F32 => f64::from(f32::from_bits(bits as u32)),
            F64 => f64::from_bits(bits),
        }
    }
}

/// Whether a number is readable without an exponent.
fn is_plain(value: f64) -> bool {
    value == 0.0 || !value.is_finite() || (1e-5..1e16).contains(&value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_in_memory_as_their_types_say() {
        let cases: [(ElementType, &str, &[u8]); 14] = [
            (I8, "-128", &[0x80]),
            (U8, "0xff", &[0xFF]),
            (I16, "-2", &[0xFE, 0xFF]),
            (U16, "65535", &[0xFF, 0xFF]),
            (I32, "-1", &[0xFF; 4]),
            (U32, "0xffffffff", &[0xFF; 4]),
            (I64, "-9223372036854775808", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            (U64, "18446744073709551615", &[0xFF; 8]),
            (F16, "1.5", &[0x00, 0x3E]),
            // Halfway between two neighbours: the even one.
            (F16, "2049", &[0x00, 0x68]),
            (Bf16, "-2", &[0x00, 0xC0]),
            (F32, "1e-45", &[1, 0, 0, 0]),
            (F32, "inf", &[0, 0, 0x80, 0x7F]),
            (F64, "0.5", &[0, 0, 0, 0, 0, 0, 0xE0, 0x3F]),
        ];
        for (element, text, bytes) in cases {
            assert_eq!(element.encode(text).as_deref(), Some(bytes), "{text}");
            assert_eq!(ElementType::named(element.name()), Some(element));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (element, text) in [
            (I8, "128"),
            (I8, "-129"),
            (U8, "-1"),
            (U8, "256"),
            (I64, "9223372036854775808"),
            (U64, "18446744073709551616"),
            (U32, "1.5"),
            (U32, ""),
            (U32, "0x"),
            (F16, "x"),
            (F32, "0x10"),
        ] {
            assert_eq!(element.encode(text), None, "{text}");
        }
    }

    #[test]
    fn decoding_reverses_encoding() {
        for element in ElementType::ALL {
            let bytes = element.encode("7").unwrap();
            assert_eq!((bytes.len(), element.decode(&bytes)), (element.bytes(), 7.0), "{}", element.name());
        }
        assert_eq!(I16.decode(&[0xFE, 0xFF]), -2.0);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for (element, text) in [
            (I8, "-128"),
            (U16, "65535"),
            (I64, "-9223372036854775807"),
            (U64, "18446744073709551615"),
            (F16, "0.1"),
            (Bf16, "0.1"),
            (F32, "0.1"),
            (F32, "-inf"),
            (F64, "0.1"),
            (F16, "65504"),
            (Bf16, "-1e-38"),
            (F32, "1e-45"),
            (F64, "-1e300"),
        ] {
            let bytes = element.encode(text).unwrap();
            assert_eq!(element.encode(&element.text(&bytes)), Some(bytes), "{text}");
        }
        assert_eq!(F32.text(&[0, 0, 0x80, 0x3F]), "1");
        assert_eq!((F32.text(&[1, 0, 0, 0]), F32.text(&[0, 0, 0x80, 0xFF])), ("1e-45".into(), "-inf".into()));
        assert_eq!(U64.text(&[0xFF; 8]), "18446744073709551615");
    }

    /// The texts of f16 and bf16 are those of the same numbers as f32: 0x2E66 is 1638 * 2^-14, 0x3DCD is 205 * 2^-11.
    #[test]
    fn texts_have_an_exponent_only_where_digits_would_be_many() {
        let cases: [(ElementType, u64, &str); 28] = [
            (F16, 0x2E66, "0.099975586"),
            (F16, 0x7BFF, "65504"),
            (F16, 0x0001, "5.9604645e-8"),
            (F16, 0x8000, "-0"),
            (F16, 0xFC00, "-inf"),
            (Bf16, 0x3DCD, "0.100097656"),
            (Bf16, 0x7F00, "1.7014118e38"),
            (Bf16, 0x7F80, "inf"),
            (F32, 0, "0"),
            (F32, 0x8000_0000, "-0"),
            (F32, 0x7FC0_0000, "NaN"),
            (F32, 0x3F00_0000, "0.5"),
            (F32, 0x7F80_0000, "inf"),
            (F64, 0, "0"),
            (F64, 0x3FE0_0000_0000_0000, "0.5"),
            (F64, 0x7FF0_0000_0000_0000, "inf"),
            // 1e-5, the number below it, and its negative.
            (F64, 0x3EE4_F8B5_88E3_68F1, "0.00001"),
            (F64, 0x3EE4_F8B5_88E3_68F0, "9.999999999999999e-6"),
            (F64, 0xBEE4_F8B5_88E3_68F1, "-0.00001"),
            // 1e16, and the number below it.
            (F64, 0x4341_C379_37E0_8000, "1e16"),
            (F64, 0x4341_C379_37E0_7FFF, "9999999999999998"),
            (I8, 0x80, "-128"),
            (U8, 0x80, "128"),
            (I16, 0xFFFE, "-2"),
            (U16, 0xFFFE, "65534"),
            (I32, 0xFFFF_FFFE, "-2"),
            (U32, 0xFFFF_FFFE, "4294967294"),
            (I64, 1 << 63, "-9223372036854775808"),
        ];
        for (element, bits, text) in cases {
            assert_eq!(
                element.text(&bits.to_le_bytes()[..element.bytes()]),
                text,
                "{} {bits:#x}",
                element.name()
            );
        }
    }

    #[test]
    fn integers_are_exact_and_fractions_are_none() {
        let cases: [(ElementType, &[u8], i128); 12] = [
            (I8, &[0x7F], 127),
            (I8, &[0x80], -128),
            (U8, &[0x80], 128),
            (I16, &[0xFE, 0xFF], -2),
            (I16, &[0x34, 0x12], 0x1234),
            (U16, &[0xFE, 0xFF], 65534),
            (I32, &[0, 0, 0, 0x80], -2_147_483_648),
            (U32, &[0, 0, 0, 0x80], 2_147_483_648),
            (I64, &[1, 0, 0, 0, 0, 0, 0, 0x80], -9_223_372_036_854_775_807),
            (U64, &[1, 0, 0, 0, 0, 0, 0, 0x80], 9_223_372_036_854_775_809),
            // More bytes than the type has are another number's, fewer are its lowest.
            (U8, &[1, 2], 1),
            (U32, &[1, 2], 0x201),
        ];
        for (element, bytes, number) in cases {
            assert_eq!(element.integer(bytes), Some(number), "{} {bytes:x?}", element.name());
        }
        for element in [F16, Bf16, F32, F64] {
            assert_eq!(element.integer(&[0; 8]), None, "{}", element.name());
        }
    }
}
