//! The contents of device memory: all loadable segments of a program as one position-independent block.
//!
//! Contract: an image has at most [`IMAGE_BYTES_MAX`] bytes, and at most [`IMAGE_BYTES_BEYOND_FILE`] more than its
//! file. Its segments lie inside it in ascending order without overlap, and so do its base relocations. Offsets
//! count from the image's start, which must be placed at a multiple of [`IMAGE_ALIGNMENT_BYTES`].
//! [`Image::placed_at`] costs one copy.

use crate::error::LoadError;
use std::borrow::Cow;

/// Largest image in bytes. Untrusted bytes can request any length; this is what is granted.
pub const IMAGE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes that an image has beyond those of its file: gaps and zeros. Anything larger belongs in a buffer.
pub const IMAGE_BYTES_BEYOND_FILE: u64 = 8 << 20;
/// Alignment of an image in device memory: the page size of the GPU's tables, which linkers assume.
pub const IMAGE_ALIGNMENT_BYTES: u64 = 4096;

/// One block of memory with everything that a program's code refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) base_relocations: Vec<BaseRelocation>,
}

/// A part of the image with its own access rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name: the section's, or `LOAD n`.
    pub name: String,
    /// Bytes from the image's start.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether it is code.
    pub executable: bool,
    /// Whether the program may modify it.
    pub writable: bool,
}

/// Eight bytes that hold an address within the image: `base + target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseRelocation {
    /// Offset of the eight bytes from the image's start.
    pub offset: u64,
    /// The target that they point to: bytes from the image's start.
    pub target: u64,
}

/// A named offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name.
    pub name: String,
    /// Bytes from the image's start.
    pub offset: u64,
    /// Length in bytes; 0 for a label.
    pub bytes: u64,
    /// True for code (functions and labels in an executable segment).
    pub is_code: bool,
}

/// An empty vector with space for `count` values, which belong to `what`.
pub(crate) fn vec_of<T>(what: &'static str, count: usize) -> Result<Vec<T>, LoadError> {
    let mut values = Vec::new();
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    values.try_reserve_exact(count).map_err(|_| LoadError::Memory { what, bytes })?;
    Ok(values)
}

impl Image {
    /// The bytes as in the file, with gaps filled with zeros; base relocations are not applied.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Segments in ascending order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Places in the image that hold addresses.
    pub fn base_relocations(&self) -> &[BaseRelocation] {
        &self.base_relocations
    }

    /// The bytes of a segment.
    pub fn segment_bytes(&self, segment: &Segment) -> &[u8] {
        let end = segment.offset.saturating_add(segment.bytes);
        self.bytes.get(segment.offset as usize..end as usize).unwrap_or_default()
    }

    /// The bytes for an image placed at the GPU address `base_va`.
    pub fn placed_at(&self, base_va: u64) -> Cow<'_, [u8]> {
        if self.base_relocations.is_empty() {
            return Cow::Borrowed(&self.bytes);
        }
        let mut bytes = self.bytes.clone();
        for relocation in &self.base_relocations {
            let at = relocation.offset as usize;
            if let Some(place) = bytes.get_mut(at..at.saturating_add(8)) {
                place.copy_from_slice(&base_va.wrapping_add(relocation.target).to_le_bytes());
            }
        }
        Cow::Owned(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where memory does")]
    fn memory_that_is_not_there_is_an_error() {
        let error = vec_of::<u64>("the line table", usize::MAX / 16).unwrap_err();
        let bytes = (usize::MAX / 16) as u64 * 8;
        assert_eq!(error, LoadError::Memory { what: "the line table", bytes });
    }

    #[test]
    fn addresses_follow_the_base() {
        let relocation = BaseRelocation { offset: 8, target: 4 };
        let image = Image { bytes: vec![7; 20], base_relocations: vec![relocation], ..Image::default() };
        let placed = image.placed_at(0x10_0000_1000);
        assert_eq!(placed[..8], [7; 8]);
        assert_eq!(placed[8..16], [0x04, 0x10, 0, 0, 0x10, 0, 0, 0]);
        assert_eq!(placed[16..], [7; 4]);
        assert!(matches!(Image::default().placed_at(1), Cow::Borrowed(_)));
    }
}
