//! NumPy's array files, versions 1 to 3: a header with type and shape, then the numbers.
//!
//! Contract: little-endian numbers in C order; another order, type or a length that does not fit is an error in words.
//! bf16, which NumPy does not have, is written as u16. Source: numpy.lib.format, "Format Version 1.0" to "3.0". The
//! input is hostile: lengths are checked before they are used, and nothing is allocated.

use zrt_script::ElementType;

/// The first bytes of a file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of magic, version and, in version 1, header length.
const PREFIX_BYTES: usize = 10;
/// What the data is aligned to.
const ALIGNMENT: usize = 64;

/// The numbers of a file, and where they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    /// Type of each.
    pub element: ElementType,
    /// Everything before the numbers, as it is in the file.
    pub header: Vec<u8>,
}

impl Array {
    /// Reads the header of a file. The numbers are the bytes after [`Array::header`].
    pub fn parse(file: &[u8]) -> Result<Array, String> {
        let cut = || "it ends within its header".to_owned();
        if !file.starts_with(MAGIC) {
            return Err("it does not begin as a .npy does".to_owned());
        }
        let behind = file.get(8..).unwrap_or_default();
        let (start, length) = match file.get(MAGIC.len()) {
            Some(1) => (10, u16::from_le_bytes(*behind.first_chunk().ok_or_else(cut)?).into()),
            Some(2 | 3) => (12, u32::from_le_bytes(*behind.first_chunk().ok_or_else(cut)?) as usize),
            Some(other) => return Err(format!("its version is {other}, but only 1 to 3 are supported")),
            None => return Err(cut()),
        };
        let text = file.get(start..start + length).ok_or_else(cut)?;
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text".to_owned())?;
        let description = quoted(field(text, "descr")?).ok_or("its type has fields")?;
        let element =
            element_of(description).ok_or_else(|| format!("its type {description:?} is not supported"))?;
        if !field(text, "fortran_order")?.starts_with("False") {
            return Err("it is in Fortran order: save it with np.ascontiguousarray".to_owned());
        }
        let count = shape(field(text, "shape")?).ok_or("its shape cannot be read")?;
        let header_bytes = start + length;
        let expected = count.checked_mul(element.bytes() as u64);
        let found = (file.len() - header_bytes) as u64;
        if expected != Some(found) {
            return Err(format!(
                "its shape has {count} numbers of {}, but {found} bytes follow",
                element.name()
            ));
        }
        Ok(Array { element, header: file[..header_bytes].to_vec() })
    }
}

/// The header of one row of `count` numbers.
pub(super) fn header(element: ElementType, count: u64) -> Vec<u8> {
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({count},), }}", description(element));
    // Blanks and a line end up to the alignment.
    let padding = ALIGNMENT - (PREFIX_BYTES + text.len() + 1) % ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut header = [MAGIC, &[1, 0], &(text.len() as u16).to_le_bytes()].concat();
    header.extend_from_slice(text.as_bytes());
    header
}

/// NumPy's name of a type.
fn description(element: ElementType) -> &'static str {
    match element {
        ElementType::I8 => "|i1",
        ElementType::U8 => "|u1",
        ElementType::I16 => "<i2",
        ElementType::U16 | ElementType::Bf16 => "<u2",
        ElementType::I32 => "<i4",
        ElementType::U32 => "<u4",
        ElementType::I64 => "<i8",
        ElementType::U64 => "<u8",
        ElementType::F16 => "<f2",
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
    }
}

/// The type of NumPy's name.
fn element_of(name: &str) -> Option<ElementType> {
    if name == "|b1" {
        return Some(ElementType::U8);
    }
    ElementType::ALL.into_iter().find(|element| description(*element) == name)
}

/// What follows a key of the header's dictionary.
fn field<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let behind = text.split_once(&format!("'{key}'")).map(|(_, rest)| rest.trim_start());
    let value = behind.and_then(|rest| rest.strip_prefix(':')).map(str::trim_start);
    value.ok_or_else(|| format!("its header has no {key}"))
}

/// The text between two quotes at the start.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.split('\'').next()
}

/// How many numbers a shape such as `(2, 3)` has.
fn shape(text: &str) -> Option<u64> {
    let (inside, _) = text.strip_prefix('(')?.split_once(')')?;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse::<u64>().ok()).try_fold(1, |count: u64, size| count.checked_mul(size?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `np.save` of `np.arange(3, dtype=np.float32)`, as NumPy 2.4 writes it.
    fn saved() -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend_from_slice(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
        file.resize(127, b' ');
        file.push(b'\n');
        for number in [0f32, 1.0, 2.0] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file
    }

    #[test]
    fn a_file_of_numpy_is_read() {
        let array = Array::parse(&saved()).unwrap();
        assert_eq!((array.element, array.header.len()), (ElementType::F32, 128));
    }

    #[test]
    fn what_is_written_is_what_numpy_writes() {
        assert_eq!(header(ElementType::F32, 3), saved()[..128]);
        for element in ElementType::ALL {
            let mut file = header(element, 5);
            assert_eq!(file.len() % ALIGNMENT, 0);
            file.resize(file.len() + 5 * element.bytes(), 0);
            let expected = if element == ElementType::Bf16 { ElementType::U16 } else { element };
            assert_eq!(Array::parse(&file).unwrap().element, expected);
        }
    }

    #[test]
    fn other_files_are_refused_in_words() {
        let change = |from: &str, to: &str| {
            let file = saved();
            let at = file.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
            let mut changed = file.clone();
            changed[at..at + from.len()].copy_from_slice(to.as_bytes());
            Array::parse(&changed).unwrap_err()
        };
        assert!(change("False", "True ").contains("Fortran"));
        assert!(change("<f4", "<c8").contains("<c8"));
        assert!(change("<f4", ">f4").contains(">f4"));
        assert!(change("(3,)", "(4,)").contains("12 bytes follow"));
        assert!(change("shape", "shaqe").contains("no shape"));
        assert!(change("NUMPY", "NUMPX").contains("does not begin"));
        // Every beginning of the file, and every byte changed: an error or an array, no panic.
        for end in 0..saved().len() {
            assert!(Array::parse(&saved()[..end]).is_err(), "{end}");
            for value in [0, 0x80, 0xFF, b'(', b'9'] {
                let mut file = saved();
                file[end] = value;
                let _ = Array::parse(&file);
            }
        }
    }

    /// The length of version 1 has two bytes, little-endian, and counts from byte 10.
    #[test]
    fn the_first_version_has_a_length_of_two_bytes() {
        for text_bytes in [0x00ff_u16, 0x0100, 0x0203, 0xfffe] {
            let mut text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}".to_vec();
            text.resize(text_bytes.into(), b' ');
            let file = [MAGIC, &[1, 0], &text_bytes.to_le_bytes(), &text, &[7; 2]].concat();
            let array = Array::parse(&file).unwrap();
            assert_eq!((array.element, array.header.len()), (ElementType::U8, 10 + text.len()));
        }
    }

    /// Versions 2 and 3 have a length of four bytes, little-endian; a header of more than 65,535 bytes needs it.
    #[test]
    fn later_versions_have_longer_lengths() {
        let of = |version, text_bytes: usize| {
            let mut text = b"{'shape': ( 2 , 3 ), 'fortran_order': False, 'descr': '<i2'}".to_vec();
            text.resize(text_bytes, b' ');
            let length = (text_bytes as u32).to_le_bytes();
            [MAGIC, &[version, 0], &length, &text, &[0; 12]].concat()
        };
        for (version, text_bytes) in [(2, 100), (3, 0x0001_0203)] {
            let array = Array::parse(&of(version, text_bytes)).unwrap();
            assert_eq!((array.element, array.header.len()), (ElementType::I16, 12 + text_bytes));
        }
        let complaint = |file: &[u8]| Array::parse(file).unwrap_err();
        assert_eq!(complaint(&of(4, 100)), "its version is 4, but only 1 to 3 are supported");
        assert_eq!(complaint(&of(0, 100)), "its version is 0, but only 1 to 3 are supported");
        assert_eq!(complaint(MAGIC), "it ends within its header");
        assert_eq!(complaint(&of(2, 100)[..13]), "it ends within its header");
        let mut torn = of(2, 100);
        torn[20] = 0xff;
        assert_eq!(complaint(&torn), "its header is not text");
    }

    #[test]
    fn a_shape_is_the_product_of_its_sizes() {
        for (text, count) in [
            ("()", Some(1)),
            ("(5,)", Some(5)),
            ("( 2, 3 ), }", Some(6)),
            ("(2, 0)", Some(0)),
            ("(4294967296, 4294967296)", None),
            ("(-1,)", None),
            ("(x)", None),
            ("5", None),
            ("(5", None),
        ] {
            assert_eq!(shape(text), count, "{text}");
        }
        assert_eq!((element_of("|b1"), element_of("<f8")), (Some(ElementType::U8), Some(ElementType::F64)));
    }

    /// The numbers begin at a multiple of 64, and a header is not padded by more than it needs.
    #[test]
    fn headers_end_at_the_alignment() {
        for count in [1, 10, 1000, u64::MAX] {
            let file = header(ElementType::U16, count);
            assert_eq!((file.len(), file.ends_with(b" \n")), (128, true), "{count}");
        }
    }
}
