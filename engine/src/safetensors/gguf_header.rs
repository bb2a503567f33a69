//! The header of the GGUF file that a folder stands for.
//!
//! Contract: what is written here is read by [`crate::gguf`] like any file's header, and checked there.

use crate::gguf::TensorKind;

/// Alignment of tensor data: GGUF's default.
pub(super) const ALIGNMENT: u64 = 32;
/// GGUF's numbers of value types.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// A header under construction.
#[derive(Default)]
pub(super) struct GgufHeader {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data_bytes: u64,
}

/// Texts one after another as GGUF writes those of an array.
#[derive(Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    count: u64,
}

impl Texts {
    pub(super) fn push(&mut self, text: &str) {
        put_text(&mut self.bytes, text);
        self.count += 1;
    }
}

impl GgufHeader {
    pub(super) fn number(&mut self, key: &str, value: u32) {
        self.pair(key, U32, &value.to_le_bytes());
    }

    pub(super) fn float(&mut self, key: &str, value: f32) {
        self.pair(key, F32, &value.to_le_bytes());
    }

    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.pair(key, BOOL, &[u8::from(value)]);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        put_text(&mut bytes, value);
        self.pair(key, TEXT, &bytes);
    }

    pub(super) fn texts(&mut self, key: &str, texts: &Texts) {
        self.array(key, TEXT, texts.count);
        self.pairs.extend_from_slice(&texts.bytes);
    }

    pub(super) fn integers(&mut self, key: &str, values: &[i32]) {
        self.array(key, I32, values.len() as u64);
        self.pairs.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// Appends a tensor of `rows` (1 of a vector) of `columns`; returns its offset from the start of the data.
    pub(super) fn tensor(&mut self, name: &str, kind: TensorKind, dimensions: &[u64], bytes: u64) -> u64 {
        let offset = self.data_bytes;
        put_text(&mut self.tensors, name);
        self.tensors.extend((dimensions.len() as u32).to_le_bytes());
        self.tensors.extend(dimensions.iter().flat_map(|dimension| dimension.to_le_bytes()));
        self.tensors.extend(kind.id().to_le_bytes());
        self.tensors.extend(offset.to_le_bytes());
        self.tensor_count += 1;
        self.data_bytes = (offset + bytes).next_multiple_of(ALIGNMENT);
        offset
    }

    /// The header, up to where the data begins, and the length of the data.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.reserve_exact(16 + self.pairs.len() + self.tensors.len() + ALIGNMENT as usize);
        bytes.extend(self.tensor_count.to_le_bytes());
        bytes.extend(self.pair_count.to_le_bytes());
        bytes.extend_from_slice(&self.pairs);
        bytes.extend_from_slice(&self.tensors);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        (bytes, self.data_bytes)
    }

    fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        put_text(&mut self.pairs, key);
        self.pairs.extend(kind.to_le_bytes());
        self.pairs.extend_from_slice(value);
        self.pair_count += 1;
    }

    fn array(&mut self, key: &str, kind: u32, count: u64) {
        let head = [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
        self.pair(key, ARRAY, &head);
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_nothing_is_whole() {
        let expected = [&b"GGUF\x03\0\0\0"[..], &[0; 24]].concat();
        assert_eq!(GgufHeader::default().finish(), (expected, 0));
    }
}
