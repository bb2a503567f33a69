//! The header of a file of tensors: which tensors it has, and where.
//!
//! Contract: the bytes are untrusted. After `read` every tensor's bytes are known to lie inside the file, to be of
//! the size that type and shape ask for, and to be disjoint from those of every other. Memory is proportional to the
//! header, which is at most [`HEADER_BYTES_MAX`] long and lies inside the file.
//!
//! Layout, from the description of the format in the safetensors project: the length of the header, u64 little endian;
//! the header, JSON: an object from names to `dtype`, `shape` (row by row) and `data_offsets`, and `__metadata__`; the
//! data.

use super::SafetensorsError;
use super::folder::Content;
use super::json::{Json, JsonError};

/// Longest header accepted, in bytes: the limit of the format's own library.
pub const HEADER_BYTES_MAX: u64 = 100_000_000;
/// Tensors of a file; far above any known model.
pub const TENSORS_MAX: u64 = 1 << 20;
/// Dimensions of a tensor.
const DIMENSIONS_MAX: usize = 8;
/// Bytes of the header's length.
const LENGTH_BYTES: u64 = 8;

/// Types of elements, by the format's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub name: String,
    /// Number of the file.
    pub file: usize,
    pub dtype: Dtype,
    /// Dimensions, the contiguous one last. None of a tensor with one element.
    pub shape: Vec<u64>,
    /// First byte, from the start of the file.
    pub begin: u64,
}

impl Dtype {
    const ALL: [Dtype; 16] = [
        Dtype::F64,
        Dtype::F32,
        Dtype::F16,
        Dtype::BF16,
        Dtype::F8E4M3,
        Dtype::F8E5M2,
        Dtype::F8E8M0,
        Dtype::I64,
        Dtype::I32,
        Dtype::I16,
        Dtype::I8,
        Dtype::U64,
        Dtype::U32,
        Dtype::U16,
        Dtype::U8,
        Dtype::Bool,
    ];

    /// The name in a header.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F64 => "F64",
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
            Dtype::BF16 => "BF16",
            Dtype::F8E4M3 => "F8_E4M3",
            Dtype::F8E5M2 => "F8_E5M2",
            Dtype::F8E8M0 => "F8_E8M0",
            Dtype::I64 => "I64",
            Dtype::I32 => "I32",
            Dtype::I16 => "I16",
            Dtype::I8 => "I8",
            Dtype::U64 => "U64",
            Dtype::U32 => "U32",
            Dtype::U16 => "U16",
            Dtype::U8 => "U8",
            Dtype::Bool => "BOOL",
        }
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 | Dtype::U16 => 2,
            Dtype::F8E4M3 | Dtype::F8E5M2 | Dtype::F8E8M0 | Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
        }
    }
}

/// The parts of an entry, as they are found.
#[derive(Default)]
struct Entry {
    dtype: Option<String>,
    shape: Option<Vec<u64>>,
    offsets: Option<Vec<u64>>,
}

/// Appends the tensors of file number `number`.
pub(super) fn read(
    content: &Content,
    number: usize,
    tensors: &mut Vec<Stored>,
) -> Result<(), SafetensorsError> {
    let bytes = content.len();
    let mut length = [0; LENGTH_BYTES as usize];
    let is_there = content.read_at(0, &mut length);
    let header = u64::from_le_bytes(length);
    if is_there && header > HEADER_BYTES_MAX {
        return Err(SafetensorsError::HeaderLimit { header, limit: HEADER_BYTES_MAX });
    }
    let data_begin = LENGTH_BYTES + header;
    if !is_there || data_begin > bytes {
        return Err(SafetensorsError::Header { header, bytes });
    }
    let mut text = vec![0; header as usize]; // At most HEADER_BYTES_MAX.
    if !content.read_at(LENGTH_BYTES, &mut text) {
        return Err(SafetensorsError::Header { header, bytes });
    }
    let first = tensors.len();
    let mut json = Json::new(&text)?;
    json.object(|json, name| {
        if name == "__metadata__" {
            return Ok(json.skip()?);
        }
        if tensors[first..].len() as u64 == TENSORS_MAX {
            return Err(SafetensorsError::Limit { what: "tensors in a file", limit: TENSORS_MAX });
        }
        let entry = read_entry(json)?;
        tensors.push(placed(number, name, entry, data_begin, bytes - data_begin)?);
        Ok::<(), SafetensorsError>(())
    })?;
    json.end()?;
    check_disjoint(&tensors[first..])
}

fn read_entry(json: &mut Json<'_>) -> Result<Entry, JsonError> {
    let mut entry = Entry::default();
    json.object(|json, key| {
        match key {
            "dtype" => entry.dtype = Some(json.text()?.into_owned()),
            "shape" => entry.shape = Some(numbers(json)?),
            "data_offsets" => entry.offsets = Some(numbers(json)?),
            _ => json.skip()?,
        }
        Ok::<(), JsonError>(())
    })?;
    Ok(entry)
}

/// At most one number more than a shape may have.
fn numbers(json: &mut Json<'_>) -> Result<Vec<u64>, JsonError> {
    let mut numbers = Vec::new();
    json.array(|json| {
        let number = json.whole()?;
        if numbers.len() <= DIMENSIONS_MAX {
            numbers.push(number);
        }
        Ok::<(), JsonError>(())
    })?;
    Ok(numbers)
}

/// An entry whose parts fit each other and the file.
fn placed(
    number: usize,
    name: &str,
    entry: Entry,
    data_begin: u64,
    data_bytes: u64,
) -> Result<Stored, SafetensorsError> {
    let name = || name.to_owned();
    let part = |part| SafetensorsError::EntryPart { name: name(), part };
    let found = entry.dtype.ok_or_else(|| part("`dtype`"))?;
    let shape = entry.shape.ok_or_else(|| part("`shape`"))?;
    let offsets = entry.offsets.ok_or_else(|| part("`data_offsets`"))?;
    let [begin, end] = offsets[..] else { return Err(part("two `data_offsets`")) };
    let Some(dtype) = Dtype::ALL.into_iter().find(|dtype| dtype.name() == found) else {
        return Err(SafetensorsError::Dtype { name: name(), found });
    };
    let bytes = shape.iter().try_fold(dtype.bytes(), |bytes, length| bytes.checked_mul(*length));
    if shape.len() > DIMENSIONS_MAX || bytes.is_none() || end.checked_sub(begin) != bytes {
        return Err(SafetensorsError::Size { name: name(), shape, begin, end });
    }
    if end > data_bytes {
        return Err(SafetensorsError::Outside { name: name(), end, bytes: data_bytes });
    }
    Ok(Stored { name: name(), file: number, dtype, shape, begin: data_begin + begin })
}

impl Stored {
    /// Elements.
    pub(super) fn element_count(&self) -> u64 {
        self.shape.iter().product() // Checked by `placed`.
    }

    /// Bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.element_count() * self.dtype.bytes()
    }
}

fn check_disjoint(tensors: &[Stored]) -> Result<(), SafetensorsError> {
    let mut by_begin: Vec<&Stored> = tensors.iter().filter(|tensor| tensor.bytes() > 0).collect();
    by_begin.sort_by_key(|tensor| tensor.begin);
    for pair in by_begin.windows(2) {
        if pair[0].begin + pair[0].bytes() > pair[1].begin {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(SafetensorsError::Overlap { first, second });
        }
    }
    Ok(())
}
