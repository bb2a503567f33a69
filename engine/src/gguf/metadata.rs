//! Metadata values and their typed getters.
//!
//! Contract: getters never panic; a missing key or another type is an error naming the key, and the `_or` forms return
//! a default for a missing key (never for a wrong type). Integers are converted if the value fits.

use super::{GgufError, vec_of};
use std::collections::HashMap;

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The variants are GGUF's value types by their own names.
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(Box<str>),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A metadata array: all elements are of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(StringList),
    Array(Vec<Array>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

/// Many strings (a vocabulary has hundreds of thousands) in one allocation of fewer than 2^32 bytes: a header has at
/// most 2^30.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringList {
    text: String,
    /// End of each string in `text`.
    ends: Vec<u32>,
}

/// The key-value pairs of a header.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pairs: Vec<(Box<str>, Value)>,
    index: HashMap<Box<str>, usize>,
}

impl Metadata {
    /// Empty metadata with room for `count` pairs.
    pub(super) fn with_capacity(count: u64) -> Result<Metadata, GgufError> {
        let pairs = vec_of("the metadata", count)?;
        Ok(Metadata { pairs, index: HashMap::with_capacity(count as usize) }) // At most METADATA_PAIRS_MAX.
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// All pairs in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|(key, value)| (&**key, value))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|index| &self.pairs[*index].1)
    }

    /// Appends a pair; returns false if the key already exists.
    #[must_use]
    pub(super) fn insert(&mut self, key: Box<str>, value: Value) -> bool {
        if self.index.contains_key(&key) {
            return false;
        }
        self.index.insert(key.clone(), self.pairs.len());
        self.pairs.push((key, value));
        true
    }

    fn need<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, GgufError> {
        let value = self.get(key).ok_or_else(|| GgufError::MissingKey { key: key.into() })?;
        let wrong = || GgufError::WrongType { key: key.into(), found: value.type_name(), wanted };
        convert(value).ok_or_else(wrong)
    }

    /// `key` as an unsigned 32-bit integer, from any integer type that holds one.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.need(key, "an integer from 0 to 4294967295", |value| u32::try_from(value.integer()?).ok())
    }

    /// `key` as an unsigned 64-bit integer, from any integer type that holds one.
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        self.need(key, "an integer from 0 on", |value| u64::try_from(value.integer()?).ok())
    }

    /// `key` as a 32-bit float. An F64 is rounded.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.need(key, "a float", |value| match value {
            Value::F32(float) => Some(*float),
            Value::F64(float) => Some(*float as f32),
            _ => None,
        })
    }

    /// `key` as a boolean.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        self.need(key, "a boolean", |value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
    }

    /// `key` as text.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.need(key, "a string", |value| if let Value::String(text) = value { Some(&**text) } else { None })
    }

    /// `key` as an array.
    pub fn array(&self, key: &str) -> Result<&Array, GgufError> {
        self.need(key, "an array", |value| if let Value::Array(array) = value { Some(array) } else { None })
    }

    /// `key` as an array of strings.
    pub fn strings(&self, key: &str) -> Result<&StringList, GgufError> {
        self.need(key, "an array of strings", |value| match value {
            Value::Array(Array::String(list)) => Some(list),
            _ => None,
        })
    }

    /// `key` as an array of 32-bit floats.
    pub fn f32s(&self, key: &str) -> Result<&[f32], GgufError> {
        self.need(key, "an array of F32", |value| match value {
            Value::Array(Array::F32(floats)) => Some(&**floats),
            _ => None,
        })
    }

    /// `key` as an array of signed 32-bit integers.
    pub fn i32s(&self, key: &str) -> Result<&[i32], GgufError> {
        self.need(key, "an array of I32", |value| match value {
            Value::Array(Array::I32(integers)) => Some(&**integers),
            _ => None,
        })
    }

    /// [`Metadata::u32`], or `default` if the key is absent.
    pub fn u32_or(&self, key: &str, default: u32) -> Result<u32, GgufError> {
        or(self.u32(key), default)
    }

    /// [`Metadata::f32`], or `default` if the key is absent.
    pub fn f32_or(&self, key: &str, default: f32) -> Result<f32, GgufError> {
        or(self.f32(key), default)
    }

    /// [`Metadata::bool`], or `default` if the key is absent.
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool, GgufError> {
        or(self.bool(key), default)
    }

    /// [`Metadata::str`], or `default` if the key is absent.
    pub fn str_or<'a>(&'a self, key: &str, default: &'a str) -> Result<&'a str, GgufError> {
        or(self.str(key), default)
    }
}

fn or<T>(result: Result<T, GgufError>, default: T) -> Result<T, GgufError> {
    match result {
        Err(GgufError::MissingKey { .. }) => Ok(default),
        other => other,
    }
}

impl Value {
    /// The value, if it is an integer of any width.
    pub fn integer(&self) -> Option<i128> {
        Some(match self {
            Value::U8(value) => i128::from(*value),
            Value::I8(value) => i128::from(*value),
            Value::U16(value) => i128::from(*value),
            Value::I16(value) => i128::from(*value),
            Value::U32(value) => i128::from(*value),
            Value::I32(value) => i128::from(*value),
            Value::U64(value) => i128::from(*value),
            Value::I64(value) => i128::from(*value),
            _ => return None,
        })
    }

    /// The type's name, as in messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::U8(_) => "a U8",
            Value::I8(_) => "an I8",
            Value::U16(_) => "a U16",
            Value::I16(_) => "an I16",
            Value::U32(_) => "a U32",
            Value::I32(_) => "an I32",
            Value::F32(_) => "an F32",
            Value::Bool(_) => "a boolean",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::U64(_) => "a U64",
            Value::I64(_) => "an I64",
            Value::F64(_) => "an F64",
        }
    }
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Array::U8(elements) => elements.len(),
            Array::I8(elements) => elements.len(),
            Array::U16(elements) => elements.len(),
            Array::I16(elements) => elements.len(),
            Array::U32(elements) => elements.len(),
            Array::I32(elements) => elements.len(),
            Array::F32(elements) => elements.len(),
            Array::Bool(elements) => elements.len(),
            Array::String(elements) => elements.len(),
            Array::Array(elements) => elements.len(),
            Array::U64(elements) => elements.len(),
            Array::I64(elements) => elements.len(),
            Array::F64(elements) => elements.len(),
        }
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl StringList {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String number `index`.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.text[begin as usize..end as usize])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index).unwrap_or(""))
    }

    /// Bytes of all strings together.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// An empty list with room for `count` short strings.
    pub(crate) fn with_capacity(count: u64) -> Result<StringList, GgufError> {
        Ok(StringList { text: String::new(), ends: vec_of("a list of strings", count)? })
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<(), GgufError> {
        let bytes = (self.text.len() + text.len()) as u64;
        self.text
            .try_reserve(text.len())
            .map_err(|_| GgufError::Memory { what: "a list of strings", bytes })?;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        Ok(())
    }

    /// Frees the memory that was reserved beyond the strings.
    pub(super) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
    }
}

impl<'a> FromIterator<&'a str> for StringList {
    fn from_iter<I: IntoIterator<Item = &'a str>>(strings: I) -> StringList {
        let mut list = StringList::default();
        for text in strings {
            list.text.push_str(text);
            list.ends.push(list.text.len() as u32);
        }
        list
    }
}
