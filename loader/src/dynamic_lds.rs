//! LDS that a launch adds to what its kernel declares.
//!
//! Contract: a kernel without LDS pointers accepts at most one size: that of an array without a declared length. A
//! kernel with LDS pointers (`local` in OpenCL) accepts one size for each of them, in order, or none at all. The
//! pieces follow the kernel's own LDS in that order, each at the alignment of its pointer's type, as AMD's runtime
//! places them (clr, `rocvirtual.cpp`: `ldsAddress`). Nothing marks the end of a piece except the beginning of the
//! next. Set-up only.

use crate::error::ArgumentError;
use crate::kernel::{Argument, Arguments, Kernel, ValueKind};

/// Most sizes of a launch: no kernel with more LDS pointers than this is supported.
pub const LDS_SIZES_MAX: usize = 16;

/// Sizes in bytes, in the order of the kernel's LDS pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicLds {
    sizes: [u32; LDS_SIZES_MAX],
    count: usize,
}

/// Offsets of all pieces from the beginning of the group's LDS.
pub(crate) struct LdsPlaces {
    /// Offset that each LDS pointer points to, in order.
    pub offsets: Vec<u64>,
    /// Bytes of the group's LDS.
    pub end: u64,
}

impl DynamicLds {
    /// No sizes and no bytes.
    pub const NONE: DynamicLds = DynamicLds { sizes: [0; LDS_SIZES_MAX], count: 0 };

    /// A single size.
    pub const fn of(bytes: u32) -> DynamicLds {
        let mut sizes = [0; LDS_SIZES_MAX];
        sizes[0] = bytes;
        DynamicLds { sizes, count: 1 }
    }

    /// Several sizes; `None` for more than [`LDS_SIZES_MAX`].
    pub fn new(given: &[u32]) -> Option<DynamicLds> {
        let mut sizes = [0; LDS_SIZES_MAX];
        sizes.get_mut(..given.len())?.copy_from_slice(given);
        Some(DynamicLds { sizes, count: given.len() })
    }

    /// The sizes.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes[..self.count]
    }
}

impl Kernel {
    /// Bytes of LDS that `lds` adds to what the kernel declares, padding between the pieces included.
    ///
    /// # Errors
    /// If the number of sizes differs from the number of LDS pointers, or for more than 4 GiB.
    pub fn dynamic_lds_bytes(&self, lds: &DynamicLds) -> Result<u32, ArgumentError> {
        let bytes = self.place_lds(lds)?.end - u64::from(self.lds_bytes);
        u32::try_from(bytes).map_err(|_| ArgumentError::Geometry {
            what: "LDS",
            value: format!("{bytes} bytes"),
            wanted: format!("at most {} bytes", u32::MAX),
        })
    }

    /// The arguments that are pointers into the launch's LDS, in order.
    pub fn lds_pointers(&self) -> Vec<&Argument> {
        match &self.arguments {
            Arguments::Described { list, .. } => {
                list.iter().filter(|argument| argument.kind == ValueKind::DynamicSharedPointer).collect()
            }
            Arguments::ParameterBlock { .. } | Arguments::Natural { .. } => Vec::new(),
        }
    }

    /// Places the pieces.
    pub(crate) fn place_lds(&self, lds: &DynamicLds) -> Result<LdsPlaces, ArgumentError> {
        let pointers = self.lds_pointers();
        let sizes = lds.sizes();
        let fits = match pointers.len() {
            0 => sizes.len() <= 1,
            count => sizes.is_empty() || sizes.len() == count,
        };
        if !fits {
            let list: Vec<String> = pointers.iter().map(|pointer| pointer.describe()).collect();
            let list = if list.is_empty() { "none".into() } else { list.join(", ") };
            let (kernel, given) = (self.name.clone(), sizes.len());
            return Err(ArgumentError::LdsSizes { kernel, pointers: pointers.len(), list, given });
        }
        let mut end = u64::from(self.lds_bytes);
        let mut offsets = Vec::new();
        for (index, pointer) in pointers.iter().enumerate() {
            let offset = end.next_multiple_of(pointer.pointee_alignment.max(1).into());
            offsets.push(offset);
            end = offset + sizes.get(index).map_or(0, |size| u64::from(*size));
        }
        if pointers.is_empty() {
            end += sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
        }
        Ok(LdsPlaces { offsets, end })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn sizes_are_kept_as_given() {
        assert_eq!(DynamicLds::new(&[]), Some(DynamicLds::NONE));
        assert_eq!(DynamicLds::new(&[7]), Some(DynamicLds::of(7)));
        let most: Vec<u32> = (1..=LDS_SIZES_MAX as u32).collect();
        assert_eq!(DynamicLds::new(&most).unwrap().sizes(), most);
        assert_eq!(DynamicLds::new(&[1; LDS_SIZES_MAX + 1]), None);
    }
}
