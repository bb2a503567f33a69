//! The forms of `--arg`, which buffers and values of scripts have too.
//!
//! Contract: pure; errors name the argument and the forms.

use crate::content;
use crate::element::ElementType;
use crate::size::{BUFFER_BYTES_MAX, SIZE_FORMS, Size};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use zrt_loader::ArgumentValue;

/// Why a text is refused: in full, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// All forms, for messages.
const FORMS: &str = "in:FILE, out:SIZE:FILE, inout:FILE, expect:FILE[,TOLERANCE], zero:SIZE, fill:SIZE:VALUE, \
                     rand:SIZE:SEED, a number such as u32:7 or bf16:0.5, bytes:HEX or value:FILE";

/// One `--arg`.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentSpec {
    /// `in:FILE`
    In(PathBuf),
    /// `out:SIZE:FILE`
    Out(Size, PathBuf),
    /// `inout:FILE`
    InOut(PathBuf),
    /// `expect:FILE[,TOLERANCE]`
    Expect(PathBuf, Option<f64>),
    /// `zero:SIZE` and `fill:SIZE:VALUE`
    Pattern(Size, Vec<u8>),
    /// `rand:SIZE:SEED`
    Random(Size, u64),
    /// A number of a type, as it is in memory
    Number(ElementType, Arc<Vec<u8>>),
    /// `bytes:HEX`
    Bytes(Arc<Vec<u8>>),
    /// `value:FILE`
    ValueFile(PathBuf),
}

impl ArgumentSpec {
    /// Reads a form; `what` has it, such as `argument 0`.
    ///
    /// # Errors
    /// What is no form, or does not fit its type.
    pub fn parse(what: &str, text: &str) -> Result<ArgumentSpec, Refused> {
        let refuse = |wanted: &str| Refused(format!("{what} is {text:?}, but must be {wanted}"));
        let (kind, rest) = text.split_once(':').ok_or_else(|| refuse(FORMS))?;
        if let Some(element) = ElementType::named(kind) {
            let wanted = format!("{kind}:NUMBER, with a number that fits");
            let bytes = element.encode(rest).ok_or_else(|| refuse(&wanted))?;
            return Ok(ArgumentSpec::Number(element, bytes.into()));
        }
        let file = |path: &str, wanted: &str| match path {
            "" => Err(refuse(wanted)),
            path => Ok(PathBuf::from(path)),
        };
        let sized = |form: &str| {
            let wanted = format!("{form} with {SIZE_FORMS}, up to {BUFFER_BYTES_MAX} bytes");
            let (size, more) = rest.split_once(':').unwrap_or((rest, ""));
            Size::parse(size).map(|size| (size, more)).ok_or_else(|| refuse(&wanted))
        };
        Ok(match kind {
            "in" => ArgumentSpec::In(file(rest, "in:FILE")?),
            "inout" => ArgumentSpec::InOut(file(rest, "inout:FILE")?),
            "value" => ArgumentSpec::ValueFile(file(rest, "value:FILE")?),
            "out" => {
                let (size, path) = sized("out:SIZE:FILE")?;
                ArgumentSpec::Out(size, file(path, "out:SIZE:FILE")?)
            }
            "expect" => {
                let (path, tolerance) = expectation(rest);
                ArgumentSpec::Expect(file(path, "expect:FILE or expect:FILE,TOLERANCE")?, tolerance)
            }
            "zero" => match sized("zero:SIZE")? {
                (size, "") => ArgumentSpec::Pattern(size, vec![0]),
                _ => return Err(refuse("zero:SIZE")),
            },
            "fill" => {
                let wanted = "fill:SIZE:VALUE with a number of the size's type, or hexadecimal bytes";
                let (size, value) = sized("fill:SIZE:VALUE")?;
                let pattern = content::pattern_of(size.element, value).ok_or_else(|| refuse(wanted))?;
                ArgumentSpec::Pattern(size, pattern)
            }
            "rand" => {
                let (size, seed) = sized("rand:SIZE:SEED")?;
                ArgumentSpec::Random(
                    size,
                    seed.parse().map_err(|_| refuse("rand:SIZE:SEED with a seed from 0"))?,
                )
            }
            "bytes" => {
                let bytes =
                    content::hexadecimal(rest).ok_or_else(|| refuse("bytes:HEX with pairs of digits"))?;
                ArgumentSpec::Bytes(bytes.into())
            }
            _ => return Err(refuse(FORMS)),
        })
    }

    /// Whether it gives the kernel a buffer.
    pub fn is_buffer(&self) -> bool {
        !matches!(self, ArgumentSpec::Number(..) | ArgumentSpec::Bytes(_) | ArgumentSpec::ValueFile(_))
    }

    /// Where its buffer is written to.
    pub fn output(&self) -> Option<&Path> {
        match self {
            ArgumentSpec::Out(_, path) | ArgumentSpec::InOut(path) => Some(path),
            _ => None,
        }
    }
}

/// A path, and the tolerance after its last comma, if there is one.
fn expectation(text: &str) -> (&str, Option<f64>) {
    let tolerance = text.rsplit_once(',').and_then(|(path, tolerance)| Some((path, tolerance.parse().ok()?)));
    match tolerance {
        Some((path, tolerance)) if tolerance >= 0.0 => (path, Some(tolerance)),
        _ => (text, None),
    }
}

/// A number as the loader takes it: aligned to its size if the kernel does not say where it goes.
pub fn value_of(bytes: &[u8]) -> ArgumentValue {
    match *bytes {
        [byte] => ArgumentValue::U8(byte),
        [a, b] => ArgumentValue::U16(u16::from_le_bytes([a, b])),
        [a, b, c, d] => ArgumentValue::U32(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => ArgumentValue::U64(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => ArgumentValue::Bytes(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let parse = |text: &str| ArgumentSpec::parse("argument 0", text).unwrap();
        let size = |text: &str| Size::parse(text).unwrap();
        assert_eq!(parse("in:a:b.raw"), ArgumentSpec::In("a:b.raw".into()));
        assert_eq!(parse("out:16:c.raw"), ArgumentSpec::Out(size("16"), "c.raw".into()));
        assert_eq!(parse("out:4*f32:c:d.npy"), ArgumentSpec::Out(size("4*f32"), "c:d.npy".into()));
        assert_eq!(parse("inout:d"), ArgumentSpec::InOut("d".into()));
        assert_eq!(parse("expect:d"), ArgumentSpec::Expect("d".into(), None));
        assert_eq!(parse("expect:a,b.npy"), ArgumentSpec::Expect("a,b.npy".into(), None));
        assert_eq!(parse("expect:a,b.npy,1e-3"), ArgumentSpec::Expect("a,b.npy".into(), Some(1e-3)));
        // What follows the last comma is a tolerance only if it is a number from 0.
        for name in ["a,-1", "a,-1e-3", "a,nan", "a,"] {
            assert_eq!(parse(&format!("expect:{name}")), ArgumentSpec::Expect(name.into(), None));
        }
        assert_eq!(parse("expect:a,0"), ArgumentSpec::Expect("a".into(), Some(0.0)));
        assert_eq!(parse("zero:4k"), ArgumentSpec::Pattern(size("4096"), vec![0]));
        assert_eq!(parse("fill:8:0x0102"), ArgumentSpec::Pattern(size("8"), vec![1, 2]));
        assert_eq!(parse("fill:2*i16:-1"), ArgumentSpec::Pattern(size("2*i16"), vec![255, 255]));
        assert_eq!(parse("rand:2*f16:7"), ArgumentSpec::Random(size("2*f16"), 7));
        assert_eq!(parse("bytes:00fF"), ArgumentSpec::Bytes(vec![0, 255].into()));
        assert_eq!(parse("value:v.bin"), ArgumentSpec::ValueFile("v.bin".into()));
        let number = |text| match parse(text) {
            ArgumentSpec::Number(_, bytes) => value_of(&bytes),
            other => panic!("{other:?}"),
        };
        assert_eq!(number("i8:-1"), ArgumentValue::U8(255));
        assert_eq!(number("bf16:1"), ArgumentValue::U16(0x3F80));
        assert_eq!(number("u32:0xffffffff"), ArgumentValue::U32(u32::MAX));
        assert_eq!(number("u64:5000000000"), ArgumentValue::U64(5_000_000_000));
        assert_eq!(number("f32:-1.5"), ArgumentValue::U32((-1.5f32).to_bits()));
        assert_eq!(number("f64:2"), ArgumentValue::U64(2f64.to_bits()));
    }

    #[test]
    fn two_forms_are_written_to_a_file_and_values_are_no_buffers() {
        for (text, output, is_buffer) in [
            ("in:a", None, true),
            ("out:16:c:d", Some("c:d"), true),
            ("inout:b", Some("b"), true),
            ("expect:e", None, true),
            ("zero:4", None, true),
            ("fill:4:00", None, true),
            ("rand:4:1", None, true),
            ("u8:1", None, false),
            ("bytes:00", None, false),
            ("value:v", None, false),
        ] {
            let spec = ArgumentSpec::parse("argument 0", text).unwrap();
            assert_eq!((spec.output(), spec.is_buffer()), (output.map(Path::new), is_buffer), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let wrong = [
            "",
            "in",
            "in:",
            "out:16",
            "out:x:f",
            "out:0:f",
            "out:99999999999:f",
            "out:4:",
            "u32:-1",
            "u32:4294967296",
            "u64:1.5",
            "f32:x",
            "i8:128",
            "expect:",
            "zero:",
            "zero:4:x",
            "fill:4",
            "fill:4:0",
            "fill:4*f32:x",
            "rand:4",
            "rand:4:-1",
            "bytes:",
            "bytes:0",
            "value:",
            "i128:1",
        ];
        for text in wrong {
            let Refused(what) = ArgumentSpec::parse("argument 0", text).unwrap_err();
            assert!(what.starts_with("argument 0 is "), "{text}: {what}");
        }
    }
}
