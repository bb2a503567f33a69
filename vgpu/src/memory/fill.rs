//! The initial contents of memory.
//!
//! Contract: a [`Fill`] writes its pattern before anybody can see the object: at the first mapping on the host, or
//! the first access by the device. Objects that are never accessed take no host memory.
//! Cost: the time to write the object, once; then one load of a flag for each look-up in the page table.

use std::sync::{Arc, Once};
use zrt_kmd::Mapping;

/// Bytes of an object that are filled; the rest holds zeros. Allows a card of 32 GB on a small host.
const FILLED_BYTES_MAX: usize = 256 << 20;

/// The pattern of one object, and whether it has been written.
#[derive(Debug)]
pub(crate) struct Fill {
    pattern: u32,
    once: Once,
    mapping: Arc<Mapping>,
}

impl Fill {
    pub fn new(pattern: u32, mapping: Arc<Mapping>) -> Fill {
        Fill { pattern, once: Once::new(), mapping }
    }

    /// Writes the pattern if that has not been done yet.
    #[inline]
    pub fn ensure(&self) {
        if !self.once.is_completed() {
            self.write();
        }
    }

    #[cold]
    fn write(&self) {
        self.once.call_once(|| {
            let view = self.mapping.view();
            let wide = u64::from(self.pattern) << 32 | u64::from(self.pattern);
            // Objects are whole pages.
            for offset in (0..view.len().min(FILLED_BYTES_MAX)).step_by(8) {
                view.store_u64(offset, wide);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_kmd::{MemoryFile, Protection};

    #[test]
    fn nothing_is_written_before_it_is_asked_for_and_then_once() {
        let len = 3 * 4096;
        let file = MemoryFile::new("fill", len).unwrap();
        let mapping = Arc::new(file.map(0, len, Protection::ReadWrite, None).unwrap());
        let fill = Fill::new(0x0102_0304, mapping.clone());
        assert_eq!(file.resident_bytes(), Ok(0));
        fill.ensure();
        assert_eq!([0, 4096, len - 4].map(|at| mapping.view().load_u32(at)), [0x0102_0304; 3]);
        mapping.view().store_u32(8, 7);
        fill.ensure();
        assert_eq!(mapping.view().load_u32(8), 7);
    }
}
