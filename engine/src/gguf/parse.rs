//! The pass over a header.
//!
//! Contract: as [`super`] states it. Every read goes through [`Cursor`], which knows how many bytes are left; every
//! loop consumes at least one byte per turn or is bounded by a limit; recursion is at most
//! [`limits::ARRAY_NESTING_MAX`] deep.

use super::metadata::{Array, Metadata, StringList, Value};
use super::source::Source;
use super::{Gguf, GgufError, TensorInfo, TensorKind, limits, vec_of};
use std::collections::HashMap;

/// Bytes read from the source at a time.
const WINDOW_BYTES: usize = 1 << 16;
/// Minimum size of a string in bytes: its length field.
const STRING_BYTES_MIN: u64 = 8;
/// Minimum size of an array in bytes: element type and count.
const ARRAY_BYTES_MIN: u64 = 12;
/// Minimum size of a metadata pair in bytes: key length, one byte of key, value type, one byte of value.
const PAIR_BYTES_MIN: u64 = 8 + 1 + 4 + 1;
/// Minimum size of a tensor entry in bytes: name length, one byte of name, count, one dimension, type, offset.
const TENSOR_ENTRY_BYTES_MIN: u64 = 8 + 1 + 4 + 8 + 4 + 8;
/// Alignment of tensor data if the file specifies none (GGUF specification).
const ALIGNMENT_DEFAULT: u32 = 32;

/// A position in the header, and the part of the source around it.
struct Cursor<'a> {
    source: &'a Source,
    /// Next byte to read, from the start of the file.
    position: u64,
    /// Where the header must have ended: the end of the file or the header limit.
    end: u64,
    window: Vec<u8>,
    window_start: u64,
    /// The current string.
    scratch: Vec<u8>,
}

/// A tensor entry as in the file, before its offset can be checked.
struct TensorEntry {
    info: TensorInfo,
    /// Where the entry starts in the header.
    entry_offset: u64,
}

pub(super) fn parse(source: Source) -> Result<Gguf, GgufError> {
    let mut cursor = Cursor::new(&source);
    let version = read_version(&mut cursor)?;
    let tensors_at = cursor.position;
    let tensor_count = cursor.u64("the tensor count")?;
    let pairs_at = cursor.position;
    let pair_count = cursor.u64("the metadata count")?;
    let pair_limit = limits::METADATA_PAIRS_MAX;
    cursor.check_count("the metadata count", pairs_at, pair_count, pair_limit, PAIR_BYTES_MIN)?;
    let tensor_limit = limits::TENSORS_MAX;
    cursor.check_count("the tensor count", tensors_at, tensor_count, tensor_limit, TENSOR_ENTRY_BYTES_MIN)?;

    let metadata = read_metadata(&mut cursor, pair_count)?;
    let alignment = read_alignment(&metadata)?;
    let entries = read_tensor_entries(&mut cursor, tensor_count)?;
    let data_start = cursor.position.next_multiple_of(u64::from(alignment));
    let tensors = place_tensors(entries, data_start, alignment, source.end())?;
    let tensor_index = index_by_name(&tensors)?;
    let tensors = tensors.into_iter().map(|entry| entry.info).collect();
    Ok(Gguf { version, alignment, metadata, tensors, tensor_index, source })
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    let found = cursor.bytes::<4>("the magic")?;
    if found != *b"GGUF" {
        return Err(GgufError::Magic { found });
    }
    match cursor.u32("the version")? {
        version @ (2 | 3) => Ok(version),
        found if matches!(found.swap_bytes(), 1..=3) => Err(GgufError::BigEndian { found }),
        found => Err(GgufError::Version { found }),
    }
}

fn read_metadata(cursor: &mut Cursor<'_>, count: u64) -> Result<Metadata, GgufError> {
    let mut metadata = Metadata::with_capacity(count)?;
    for _ in 0..count {
        let offset = cursor.position;
        let key = cursor.name("a metadata key", limits::KEY_BYTES_MAX)?;
        let value = read_value(cursor, &key)?;
        if !metadata.insert(key.clone(), value) {
            return Err(GgufError::DuplicateKey { key, offset });
        }
    }
    Ok(metadata)
}

fn read_value(cursor: &mut Cursor<'_>, key: &str) -> Result<Value, GgufError> {
    const WHAT: &str = "a metadata value";
    let type_at = cursor.position;
    Ok(match cursor.u32("a value type")? {
        0 => Value::U8(u8::from_le_bytes(cursor.bytes(WHAT)?)),
        1 => Value::I8(i8::from_le_bytes(cursor.bytes(WHAT)?)),
        2 => Value::U16(u16::from_le_bytes(cursor.bytes(WHAT)?)),
        3 => Value::I16(i16::from_le_bytes(cursor.bytes(WHAT)?)),
        4 => Value::U32(u32::from_le_bytes(cursor.bytes(WHAT)?)),
        5 => Value::I32(i32::from_le_bytes(cursor.bytes(WHAT)?)),
        6 => Value::F32(f32::from_le_bytes(cursor.bytes(WHAT)?)),
        7 => Value::Bool(cursor.boolean(key)?),
        8 => Value::String(cursor.string("a string value", limits::STRING_BYTES_MAX)?.into()),
        9 => Value::Array(read_array(cursor, key, 1)?),
        10 => Value::U64(u64::from_le_bytes(cursor.bytes(WHAT)?)),
        11 => Value::I64(i64::from_le_bytes(cursor.bytes(WHAT)?)),
        12 => Value::F64(f64::from_le_bytes(cursor.bytes(WHAT)?)),
        found => return Err(GgufError::ValueType { key: key.into(), found, offset: type_at }),
    })
}

fn read_array(cursor: &mut Cursor<'_>, key: &str, depth: u32) -> Result<Array, GgufError> {
    let offset = cursor.position;
    let nesting_max = limits::ARRAY_NESTING_MAX;
    if depth > nesting_max {
        let (found, limit) = (u64::from(depth), u64::from(nesting_max));
        return Err(GgufError::Limit { what: "the depth of nested arrays", offset, found, limit });
    }
    let element_type = cursor.u32("an array's element type")?;
    Ok(match element_type {
        0 => Array::U8(cursor.elements(u8::from_le_bytes)?),
        1 => Array::I8(cursor.elements(i8::from_le_bytes)?),
        2 => Array::U16(cursor.elements(u16::from_le_bytes)?),
        3 => Array::I16(cursor.elements(i16::from_le_bytes)?),
        4 => Array::U32(cursor.elements(u32::from_le_bytes)?),
        5 => Array::I32(cursor.elements(i32::from_le_bytes)?),
        6 => Array::F32(cursor.elements(f32::from_le_bytes)?),
        7 => {
            let count = cursor.element_count(1)?;
            let mut flags = vec_of("an array", count)?;
            for _ in 0..count {
                flags.push(cursor.boolean(key)?);
            }
            Array::Bool(flags)
        }
        8 => Array::String(read_strings(cursor)?),
        9 => {
            let count = cursor.element_count(ARRAY_BYTES_MIN)?;
            let mut arrays = vec_of("an array of arrays", count)?;
            for _ in 0..count {
                arrays.push(read_array(cursor, key, depth + 1)?);
            }
            Array::Array(arrays)
        }
        10 => Array::U64(cursor.elements(u64::from_le_bytes)?),
        11 => Array::I64(cursor.elements(i64::from_le_bytes)?),
        12 => Array::F64(cursor.elements(f64::from_le_bytes)?),
        found => return Err(GgufError::ValueType { key: key.into(), found, offset }),
    })
}

fn read_strings(cursor: &mut Cursor<'_>) -> Result<StringList, GgufError> {
    let count = cursor.element_count(STRING_BYTES_MIN)?;
    let mut list = StringList::with_capacity(count)?;
    for _ in 0..count {
        list.push(cursor.string("a string in an array", limits::STRING_BYTES_MAX)?)?;
    }
    list.shrink_to_fit();
    Ok(list)
}

fn read_alignment(metadata: &Metadata) -> Result<u32, GgufError> {
    let found = metadata.u32_or("general.alignment", ALIGNMENT_DEFAULT)?;
    if found.is_power_of_two() && found <= limits::ALIGNMENT_MAX {
        Ok(found)
    } else {
        Err(GgufError::Alignment { found })
    }
}

fn read_tensor_entries(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<TensorEntry>, GgufError> {
    let mut entries = vec_of("the tensor directory", count)?;
    for _ in 0..count {
        entries.push(read_tensor_entry(cursor)?);
    }
    Ok(entries)
}

/// Reads one entry; `info.offset` is still relative to the start of the tensor data.
fn read_tensor_entry(cursor: &mut Cursor<'_>) -> Result<TensorEntry, GgufError> {
    let entry_offset = cursor.position;
    let name = cursor.name("a tensor name", limits::NAME_BYTES_MAX)?;
    let count_at = cursor.position;
    let dimension_count = cursor.u32("a dimension count")?;
    if dimension_count > limits::DIMENSIONS_MAX {
        let (found, limit) = (u64::from(dimension_count), u64::from(limits::DIMENSIONS_MAX));
        return Err(GgufError::Limit { what: "a dimension count", offset: count_at, found, limit });
    }
    let mut dimensions = vec_of("a tensor's dimensions", dimension_count.into())?;
    for _ in 0..dimension_count {
        dimensions.push(cursor.u64("a dimension")?);
    }
    let kind_at = cursor.position;
    let kind_id = cursor.u32("a tensor type")?;
    let offset = cursor.u64("a tensor offset")?;

    let Some(kind) = TensorKind::from_id(kind_id) else {
        return Err(GgufError::TensorKind { name, found: kind_id, offset: kind_at });
    };
    let Some(elements) = element_product(&dimensions) else {
        return Err(GgufError::Dimensions { name, dimensions, offset: entry_offset });
    };
    let (columns, block) = (dimensions[0], kind.block_elements());
    if columns % block != 0 {
        return Err(GgufError::PartialBlock { name, kind, columns, block });
    }
    let Some(bytes) = (elements / block).checked_mul(kind.block_bytes()) else {
        return Err(GgufError::Dimensions { name, dimensions, offset: entry_offset });
    };
    Ok(TensorEntry { info: TensorInfo { name, dimensions, kind, offset, bytes }, entry_offset })
}

/// The product of all dimensions, or `None` if there are none, one is zero, or the product overflows.
fn element_product(dimensions: &[u64]) -> Option<u64> {
    if dimensions.is_empty() || dimensions.contains(&0) {
        return None;
    }
    dimensions.iter().try_fold(1u64, |product, dimension| product.checked_mul(*dimension))
}

/// Converts offsets to file positions and checks the placement of the data.
fn place_tensors(
    mut entries: Vec<TensorEntry>,
    data_start: u64,
    alignment: u32,
    file_bytes: u64,
) -> Result<Vec<TensorEntry>, GgufError> {
    for TensorEntry { info, .. } in &mut entries {
        if info.offset % u64::from(alignment) != 0 {
            return Err(GgufError::Misaligned { name: info.name.clone(), offset: info.offset, alignment });
        }
        let begin = data_start.saturating_add(info.offset);
        if begin.checked_add(info.bytes).is_none_or(|end| end > file_bytes) {
            return Err(GgufError::Outside { name: info.name.clone(), begin, bytes: info.bytes, file_bytes });
        }
        info.offset = begin;
    }
    let mut by_offset: Vec<&TensorInfo> = entries.iter().map(|entry| &entry.info).collect();
    by_offset.sort_by_key(|info| info.offset);
    for pair in by_offset.windows(2) {
        if pair[0].offset + pair[0].bytes > pair[1].offset {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(GgufError::Overlap { first, second, offset: pair[1].offset });
        }
    }
    Ok(entries)
}

fn index_by_name(entries: &[TensorEntry]) -> Result<HashMap<Box<str>, usize>, GgufError> {
    let mut index = HashMap::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        if index.insert(entry.info.name.clone(), number).is_some() {
            let (name, offset) = (entry.info.name.clone(), entry.entry_offset);
            return Err(GgufError::DuplicateTensor { name, offset });
        }
    }
    Ok(index)
}

impl<'a> Cursor<'a> {
    fn new(source: &'a Source) -> Cursor<'a> {
        let end = source.len().min(limits::HEADER_BYTES_MAX);
        Cursor { source, position: 0, end, window: Vec::new(), window_start: 0, scratch: Vec::new() }
    }

    fn remaining(&self) -> u64 {
        self.end - self.position
    }

    /// Checks that `wanted` more bytes exist.
    fn check(&self, what: &'static str, wanted: u64) -> Result<(), GgufError> {
        if wanted <= self.remaining() {
            return Ok(());
        }
        Err(GgufError::Truncated { what, offset: self.position, wanted, available: self.remaining() })
    }

    /// Checks a count that was read at `offset` against its limit and the remaining bytes.
    fn check_count(
        &self,
        what: &'static str,
        offset: u64,
        found: u64,
        limit: u64,
        element_bytes_min: u64,
    ) -> Result<(), GgufError> {
        if found > limit {
            return Err(GgufError::Limit { what, offset, found, limit });
        }
        self.check(what, found * element_bytes_min)
    }

    /// Reads the next bytes into `destination`.
    fn fill(&mut self, what: &'static str, destination: &mut [u8]) -> Result<(), GgufError> {
        let len = destination.len();
        self.check(what, len as u64)?;
        let truncated = GgufError::Truncated {
            what,
            offset: self.position,
            wanted: len as u64,
            available: self.remaining(),
        };
        if len > WINDOW_BYTES {
            if !self.source.read_at(self.position, destination) {
                return Err(truncated);
            }
        } else {
            let begin = (self.position - self.window_start) as usize;
            if begin + len > self.window.len() {
                self.window_start = self.position;
                self.window.resize(WINDOW_BYTES.min(self.remaining() as usize), 0);
                if !self.source.read_at(self.position, &mut self.window) {
                    return Err(truncated);
                }
            }
            let begin = (self.position - self.window_start) as usize;
            destination.copy_from_slice(&self.window[begin..begin + len]);
        }
        self.position += len as u64;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.bytes(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.bytes(what)?))
    }

    fn boolean(&mut self, key: &str) -> Result<bool, GgufError> {
        let offset = self.position;
        match self.bytes("a boolean")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [found] => Err(GgufError::Boolean { key: key.into(), found, offset }),
        }
    }

    /// Reads length and text of a string.
    fn string(&mut self, what: &'static str, limit: u64) -> Result<&str, GgufError> {
        let length_at = self.position;
        let length = self.u64(what)?;
        self.check_count(what, length_at, length, limit, 1)?;
        let offset = self.position;
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.try_reserve(length as usize).map_err(|_| GgufError::Memory { what, bytes: length })?;
        bytes.resize(length as usize, 0);
        self.fill(what, &mut bytes)?;
        self.scratch = bytes;
        std::str::from_utf8(&self.scratch).map_err(|_| GgufError::NotUtf8 { what, offset })
    }

    /// A key or tensor name: a string that is not empty.
    fn name(&mut self, what: &'static str, limit: u64) -> Result<Box<str>, GgufError> {
        let text: Box<str> = self.string(what, limit)?.into();
        if text.is_empty() {
            return Err(GgufError::Empty { what, offset: self.position });
        }
        Ok(text)
    }

    /// The element count of an array, checked against limit and remaining bytes.
    fn element_count(&mut self, element_bytes_min: u64) -> Result<u64, GgufError> {
        const WHAT: &str = "an array's element count";
        let offset = self.position;
        let count = self.u64(WHAT)?;
        self.check_count(WHAT, offset, count, limits::ARRAY_ELEMENTS_MAX, element_bytes_min)?;
        Ok(count)
    }

    /// The elements of an array of fixed-size numbers.
    fn elements<T, const N: usize>(&mut self, convert: fn([u8; N]) -> T) -> Result<Vec<T>, GgufError> {
        let count = self.element_count(N as u64)?;
        let mut elements = vec_of("an array", count)?;
        for _ in 0..count {
            elements.push(convert(self.bytes("an array element")?));
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Bytes;
    use super::*;

    /// Reads three windows in pieces of `piece_bytes`, and returns where windows began.
    fn window_starts(piece_bytes: usize) -> Vec<u64> {
        let source = Source::Memory(Bytes::Shared(vec![0; 3 * WINDOW_BYTES].into()));
        let mut cursor = Cursor::new(&source);
        let mut starts = Vec::new();
        while cursor.remaining() > 0 {
            cursor.fill("a piece", &mut vec![0; piece_bytes]).expect("it is there");
            starts.push(cursor.window_start);
        }
        starts.dedup();
        starts
    }

    #[test]
    fn a_window_is_read_again_only_where_it_has_ended() {
        let window = WINDOW_BYTES as u64;
        assert_eq!(window_starts(4), [0, window, 2 * window]);
        assert_eq!(window_starts(WINDOW_BYTES), [0, window, 2 * window]);
        // What is longer goes past it.
        assert_eq!(window_starts(WINDOW_BYTES * 3), [0]);
    }
}
