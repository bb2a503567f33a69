//! Numbers as C's `printf` writes them.
//!
//! Contract: pure; the result is appended to the text. Widths and precisions are at most [`AMOUNT_MAX`], which the
//! parser of directives ensures. Source: ISO C11, clause 7.21.6.1. If C leaves a choice, this follows glibc:
//! `0x1.8p+0`, `(nil)`, at least two digits in a decimal exponent.

/// Largest width and precision.
pub(super) const AMOUNT_MAX: usize = 4096;
/// Digits after the point by default.
const PRECISION_DEFAULT: usize = 6;
/// Bits of a double after its leading one, and their hexadecimal digits.
const FRACTION_BITS: u32 = 52;
const FRACTION_DIGITS: usize = 13;
/// Exponent field of a double: bias, and the value of infinities.
const EXPONENT_BIAS: i64 = 1023;
const EXPONENT_SPECIAL: u64 = 0x7FF;

/// Flags, width and precision of a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// `-`: pad with blanks on the right.
    pub left: bool,
    /// `+`: always print a sign.
    pub plus: bool,
    /// Blank: a blank in place of a missing sign.
    pub blank: bool,
    /// `#`: the alternative form.
    pub alternate: bool,
    /// `0`: pad the width with zeros.
    pub zero: bool,
    pub width: usize,
    pub precision: Option<usize>,
}

impl Shape {
    /// Appends `content` after `prefix`, padded to the width; with zeros between them if `may_be_zeros`.
    pub fn fill(&self, text: &mut Vec<u8>, prefix: &[u8], content: &[u8], may_be_zeros: bool) {
        let missing = self.width.saturating_sub(prefix.len() + content.len());
        let zeros = self.zero && !self.left && may_be_zeros;
        let pad = |text: &mut Vec<u8>, byte| text.resize(text.len() + missing, byte);
        if !self.left && !zeros {
            pad(text, b' ');
        }
        text.extend_from_slice(prefix);
        if zeros {
            pad(text, b'0');
        }
        text.extend_from_slice(content);
        if self.left {
            pad(text, b' ');
        }
    }

    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.plus, self.blank) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    /// Appends `%d`.
    pub fn signed(&self, text: &mut Vec<u8>, value: i64) {
        self.digits(text, self.sign(value < 0), value.unsigned_abs().to_string());
    }

    /// Appends `%u`, `%o`, `%x` or `%X`.
    pub fn unsigned(&self, text: &mut Vec<u8>, value: u64, conversion: u8) {
        let (mut prefix, mut digits) = match conversion {
            b'o' => ("", format!("{value:o}")),
            b'x' => ("0x", format!("{value:x}")),
            b'X' => ("0X", format!("{value:X}")),
            _ => ("", value.to_string()),
        };
        if !self.alternate || value == 0 {
            prefix = "";
        }
        // The alternative form of octal numbers begins with a zero, which may already come from the precision.
        if conversion == b'o' && self.alternate && self.precision.is_none_or(|least| least <= digits.len()) {
            if value != 0 {
                digits.insert(0, '0');
            } else if self.precision == Some(0) {
                return self.fill(text, b"", b"0", false);
            }
        }
        self.digits(text, prefix, digits);
    }

    /// Appends `%p`.
    pub fn pointer(&self, text: &mut Vec<u8>, value: u64) {
        match value {
            0 => self.fill(text, b"", b"(nil)", false),
            _ => Shape { alternate: true, ..*self }.unsigned(text, value, b'x'),
        }
    }

    fn digits(&self, text: &mut Vec<u8>, prefix: &str, digits: String) {
        let digits = match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(least) => format!("{digits:0>least$}"),
            None => digits,
        };
        self.fill(text, prefix.as_bytes(), digits.as_bytes(), self.precision.is_none());
    }

    /// Appends `%f`, `%e`, `%g`, `%a` or one of their capitals.
    pub fn float(&self, text: &mut Vec<u8>, value: f64, conversion: u8) {
        let magnitude = value.abs();
        let mut prefix = self.sign(value.is_sign_negative()).to_owned();
        let mut content = match conversion.to_ascii_lowercase() {
            _ if value.is_nan() => "nan".to_owned(),
            _ if value.is_infinite() => "inf".to_owned(),
            b'f' => self.fixed(magnitude, self.precision.unwrap_or(PRECISION_DEFAULT)),
            b'e' => self.scientific(magnitude, self.precision.unwrap_or(PRECISION_DEFAULT)),
            b'g' => self.shortest(magnitude),
            _ => {
                prefix.push_str("0x");
                self.hexadecimal(magnitude)
            }
        };
        if conversion.is_ascii_uppercase() {
            prefix.make_ascii_uppercase();
            content.make_ascii_uppercase();
        }
        self.fill(text, prefix.as_bytes(), content.as_bytes(), value.is_finite());
    }

    fn fixed(&self, magnitude: f64, precision: usize) -> String {
        let mut text = format!("{magnitude:.precision$}");
        if precision == 0 && self.alternate {
            text.push('.');
        }
        text
    }

    fn scientific(&self, magnitude: f64, precision: usize) -> String {
        let text = format!("{magnitude:.precision$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if precision == 0 && self.alternate { "." } else { "" };
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{digits}{point}e{sign}{exponent:0>2}")
    }

    fn shortest(&self, magnitude: f64) -> String {
        /// Least exponent that is printed in fixed notation.
        const FIXED_EXPONENT_MIN: i64 = -4;
        let digits = self.precision.unwrap_or(PRECISION_DEFAULT).max(1);
        let rounded = format!("{magnitude:.*e}", digits - 1);
        let exponent =
            rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0_i64);
        let is_fixed = exponent >= FIXED_EXPONENT_MIN && exponent < digits as i64;
        let text = match is_fixed {
            // Between 0 and the digits + 3: the exponent is in its range.
            true => self.fixed(magnitude, (digits as i64 - 1 - exponent) as usize),
            false => self.scientific(magnitude, digits - 1),
        };
        if self.alternate {
            return text;
        }
        let (mantissa, rest) = text.split_at(text.find('e').unwrap_or(text.len()));
        match mantissa.contains('.') {
            true => format!("{}{rest}", mantissa.trim_end_matches('0').trim_end_matches('.')),
            false => text,
        }
    }

    /// Formats the number without the `0x`.
    fn hexadecimal(&self, magnitude: f64) -> String {
        let bits = magnitude.to_bits();
        let (field, fraction) = (bits >> FRACTION_BITS & EXPONENT_SPECIAL, bits & ((1 << FRACTION_BITS) - 1));
        let (lead, exponent) = match (field, fraction) {
            (0, 0) => (0, 0),
            (0, _) => (0, 1 - EXPONENT_BIAS),
            _ => (1, field as i64 - EXPONENT_BIAS),
        };
        let mut whole = lead << FRACTION_BITS | fraction;
        let shown = self.precision.unwrap_or(FRACTION_DIGITS).min(FRACTION_DIGITS);
        let dropped = 4 * (FRACTION_DIGITS - shown) as u32;
        if dropped > 0 {
            // Round to nearest, ties to even.
            let (half, rest) = (1 << (dropped - 1), whole & ((1 << dropped) - 1));
            whole >>= dropped;
            whole += u64::from(rest > half || rest == half && whole & 1 == 1);
            whole <<= dropped;
        }
        let fraction = format!("{:013x}", whole & ((1 << FRACTION_BITS) - 1));
        let mut digits = match self.precision {
            None => fraction.trim_end_matches('0').to_owned(),
            Some(precision) => format!("{:0<precision$}", &fraction[..shown]),
        };
        if !digits.is_empty() || self.alternate {
            digits.insert(0, '.');
        }
        format!("{}{digits}p{exponent:+}", whole >> FRACTION_BITS)
    }
}
