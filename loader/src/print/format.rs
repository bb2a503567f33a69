//! Format strings: what `printf` produces from a format and its arguments.
//!
//! Contract: the format and the arguments come from a kernel and are untrusted. Nothing panics, a width or
//! precision is at most [`AMOUNT_MAX`], a message is at most [`TEXT_BYTES_MAX`] long, and no argument is read
//! outside of the given bytes. Time is proportional to format, arguments and text. Supported are
//! `d i u o x X c s p f F e E g G a A %`, all flags, `*`, the lengths `hh h hl l ll j z t L`, and vectors (`%v4f`).
//! Sources: ISO C11, clause 7.21.6.1; OpenCL C 3.0, clause 6.15.14.
//!
//! An integer without a length has 32 bits if the arguments are slots, and its field's size if they are fields,
//! since OpenCL's fields have the argument's own size.

use super::error::PrintError;
use super::number::{AMOUNT_MAX, Shape};

/// Longest text of one message in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Unit in which arguments of HIP are laid out, in bytes.
const SLOT_BYTES: usize = 8;
/// Unit in which arguments of OpenCL are laid out, in bytes.
const FIELD_UNIT_BYTES: usize = 4;

/// The arguments that have not been printed yet.
#[derive(Clone, Debug)]
pub(super) enum Values<'a> {
    /// HIP: 8 bytes each; strings with their NUL, padded to 8 bytes.
    Slots(&'a [u8]),
    /// OpenCL: the sizes in the metadata, padded to 4.
    Fields { bytes: &'a [u8], sizes: &'a [u32] },
}

/// One conversion of a format.
#[derive(Clone, Copy, Debug, Default)]
struct Directive {
    shape: Shape,
    /// Elements of a vector; `None` for a scalar.
    elements: Option<usize>,
    /// Bytes that the length modifier stands for; `None` without one.
    length_bytes: Option<usize>,
    conversion: u8,
}

impl<'a> Values<'a> {
    /// The bytes of the next number.
    fn number(&mut self) -> Option<&'a [u8]> {
        match self {
            Values::Slots(bytes) => {
                let (slot, rest) = bytes.split_at_checked(SLOT_BYTES)?;
                *bytes = rest;
                Some(slot)
            }
            Values::Fields { bytes, sizes } => {
                let (size, others) = sizes.split_first()?;
                let field = bytes.get(..*size as usize)?;
                let whole = field.len().next_multiple_of(FIELD_UNIT_BYTES).min(bytes.len());
                (*bytes, *sizes) = (&bytes[whole..], others);
                Some(field)
            }
        }
    }

    /// The next string, without its NUL.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let until_nul = |bytes: &'a [u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        match self {
            Values::Slots([]) => None,
            Values::Slots(bytes) => {
                let string = until_nul(bytes);
                let whole = (string.len() + 1).next_multiple_of(SLOT_BYTES).min(bytes.len());
                *bytes = &bytes[whole..];
                Some(string)
            }
            // A string that fills its field has no NUL.
            Values::Fields { .. } => self.number().map(until_nul),
        }
    }

    /// The next argument for a `*`.
    fn amount(&mut self) -> Option<i32> {
        self.number().map(|bytes| signed(bytes, 4) as i32)
    }

    /// Bytes of an integer without a length.
    fn integer_bytes(&self, element: &[u8]) -> usize {
        match self {
            Values::Slots(_) => 4,
            Values::Fields { .. } => element.len(),
        }
    }
}

/// Appends the text of a format and its arguments. The text before an error stays.
pub(super) fn render(format: &[u8], mut values: Values<'_>, text: &mut Vec<u8>) -> Result<(), PrintError> {
    let start = text.len();
    let wrong = |what: String| PrintError::Format { format: String::from_utf8_lossy(format).into(), what };
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        text.extend_from_slice(&rest[..at]);
        let mut reader = Reader { rest: &rest[at + 1..] };
        if reader.takes(b'%') {
            text.push(b'%');
        } else {
            let directive = reader.directive(&mut values).map_err(wrong)?;
            directive.print(&mut values, text).map_err(wrong)?;
        }
        if text.len() - start > TEXT_BYTES_MAX {
            return Err(wrong(format!("gives more than {TEXT_BYTES_MAX} bytes")));
        }
        rest = reader.rest;
    }
    text.extend_from_slice(rest);
    match text.len() - start > TEXT_BYTES_MAX {
        true => Err(wrong(format!("gives more than {TEXT_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// For each `%s` of a format, the index of the argument that it takes.
pub(super) fn string_arguments(format: &[u8]) -> Vec<usize> {
    let (mut rest, mut argument, mut strings) = (format, 0, Vec::new());
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let mut reader = Reader { rest: &rest[at + 1..] };
        if !reader.takes(b'%') {
            let stars = Stars::Counted(&mut argument);
            let Ok(directive) = reader.read(stars) else { break };
            if directive.conversion == b's' {
                strings.push(argument);
            }
            argument += 1;
        }
        rest = reader.rest;
    }
    strings
}

/// Source of the numbers for `*`.
enum Stars<'s, 'a> {
    Values(&'s mut Values<'a>),
    /// None: they are only counted.
    Counted(&'s mut usize),
}

impl Stars<'_, '_> {
    fn next(&mut self) -> Result<i32, String> {
        match self {
            Stars::Values(values) => values.amount().ok_or_else(missing),
            Stars::Counted(count) => {
                **count += 1;
                Ok(0)
            }
        }
    }
}

fn missing() -> String {
    "has more conversions than the kernel gave arguments".into()
}

struct Reader<'f> {
    rest: &'f [u8],
}

impl Reader<'_> {
    fn takes(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Decimal digits; 0 if there are none.
    fn amount(&mut self) -> Result<usize, String> {
        let mut amount = 0;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            amount = amount * 10 + usize::from(digit - b'0');
            if amount > AMOUNT_MAX {
                return Err(format!("has a width or precision of more than {AMOUNT_MAX}"));
            }
            self.rest = &self.rest[1..];
        }
        Ok(amount)
    }

    fn directive(&mut self, values: &mut Values<'_>) -> Result<Directive, String> {
        self.read(Stars::Values(values))
    }

    /// Reads the part after a `%`.
    fn read(&mut self, mut stars: Stars<'_, '_>) -> Result<Directive, String> {
        let mut directive = Directive::default();
        self.flags(&mut directive.shape);
        let amount = |number: i32| match number.unsigned_abs() as usize {
            amount @ 0..=AMOUNT_MAX => Ok(amount),
            _ => Err(format!("is given a width or precision of {number}, more than {AMOUNT_MAX}")),
        };
        directive.shape.width = match self.takes(b'*') {
            true => {
                let width = stars.next()?;
                directive.shape.left |= width < 0;
                amount(width)?
            }
            false => self.amount()?,
        };
        if self.takes(b'.') {
            directive.shape.precision = match self.takes(b'*') {
                // A negative precision counts as none.
                true => Some(stars.next()?).filter(|number| *number >= 0).map(amount).transpose()?,
                false => Some(self.amount()?),
            };
        }
        if self.takes(b'v') {
            directive.elements = match self.amount()? {
                count @ (2 | 3 | 4 | 8 | 16) => Some(count),
                other => {
                    return Err(format!("has a vector of {other} elements; there are 2, 3, 4, 8 and 16"));
                }
            };
        }
        directive.length_bytes = self.length();
        let Some((conversion, rest)) = self.rest.split_first() else {
            return Err("ends inside a conversion".into());
        };
        directive.conversion = *conversion;
        self.rest = rest;
        match directive.conversion {
            b'n' => Err("has %n, which would write into the kernel's memory and is refused".into()),
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => Ok(directive),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => Ok(directive),
            b'c' | b's' | b'p' if directive.elements.is_none() => Ok(directive),
            b'c' | b's' | b'p' => {
                Err(format!("has a vector with %{}, which numbers alone may be", char::from(*conversion)))
            }
            other => Err(format!("has the unknown conversion %{}", char::from(other).escape_default())),
        }
    }

    fn flags(&mut self, shape: &mut Shape) {
        loop {
            match self.rest.first() {
                Some(b'-') => shape.left = true,
                Some(b'+') => shape.plus = true,
                Some(b' ') => shape.blank = true,
                Some(b'#') => shape.alternate = true,
                Some(b'0') => shape.zero = true,
                _ => return,
            }
            self.rest = &self.rest[1..];
        }
    }

    fn length(&mut self) -> Option<usize> {
        for (name, bytes) in [(&b"hh"[..], 1), (b"hl", 4), (b"h", 2), (b"ll", 8), (b"l", 8)] {
            if let Some(rest) = self.rest.strip_prefix(name) {
                self.rest = rest;
                return Some(bytes);
            }
        }
        let wide = [b'j', b'z', b't', b'L'].iter().any(|byte| self.takes(*byte));
        wide.then_some(8)
    }
}

impl Directive {
    fn print(&self, values: &mut Values<'_>, text: &mut Vec<u8>) -> Result<(), String> {
        if self.conversion == b's' {
            let string = values.string().ok_or_else(missing)?;
            let shown = self.shape.precision.map_or(string, |most| &string[..most.min(string.len())]);
            self.shape.fill(text, b"", shown, false);
            return Ok(());
        }
        let field = values.number().ok_or_else(missing)?;
        let Some(count) = self.elements else { return self.element(values, field, text) };
        // A vector of three takes the space of four.
        let places = if count == 3 { 4 } else { count };
        let element_bytes = field.len() / places;
        if element_bytes == 0 {
            return Err(format!(
                "has a vector of {count} elements where the kernel gave {} bytes",
                field.len()
            ));
        }
        for (index, element) in field.chunks_exact(element_bytes).take(count).enumerate() {
            if index > 0 {
                text.push(b',');
            }
            self.element(values, element, text)?;
        }
        Ok(())
    }

    fn element(&self, values: &Values<'_>, bytes: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        let width = self.length_bytes.unwrap_or_else(|| values.integer_bytes(bytes)).min(bytes.len());
        match self.conversion {
            b'd' | b'i' => self.shape.signed(text, signed(bytes, width)),
            b'u' | b'o' | b'x' | b'X' => {
                self.shape.unsigned(text, unsigned(bytes, width), self.conversion);
            }
            b'c' => self.shape.fill(text, b"", &bytes[..bytes.len().min(1)], false),
            b'p' => self.shape.pointer(text, unsigned(bytes, SLOT_BYTES)),
            _ => self.shape.float(text, float(bytes)?, self.conversion),
        }
        Ok(())
    }
}

/// The low `width` bytes, at most 8, without a sign.
fn unsigned(bytes: &[u8], width: usize) -> u64 {
    bytes.iter().take(width.min(8)).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The low `width` bytes with a sign.
fn signed(bytes: &[u8], width: usize) -> i64 {
    let bits = 8 * width.min(8).min(bytes.len()) as u32;
    match 64 - bits {
        64 => 0,
        above => (unsigned(bytes, width) << above) as i64 >> above,
    }
}

/// A number of 16, 32 or 64 bits.
fn float(bytes: &[u8]) -> Result<f64, String> {
    match bytes.len() {
        2 => Ok(half(unsigned(bytes, 2) as u16)),
        4 => Ok(f32::from_bits(unsigned(bytes, 4) as u32).into()),
        8 => Ok(f64::from_bits(unsigned(bytes, 8))),
        other => Err(format!("has a floating-point conversion where the kernel gave {other} bytes")),
    }
}

/// An IEEE number of 16 bits: sign, 5 bits of exponent with bias 15, 10 of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    magnitude.copysign(if bits >> 15 == 1 { -1.0 } else { 1.0 })
}

#[cfg(test)]
mod tests;
