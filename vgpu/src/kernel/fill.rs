//! What VRAM holds before anything is written to it.
//!
//! Contract: the kernel clears VRAM of KFD when it is freed and, in most releases, not when it is allocated
//! (`amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu` asks for VRAM_WIPE_ON_RELEASE; VRAM_CLEARED came later, by a stable patch), so
//! after a boot or another driver it holds anything. System memory comes zeroed (`ttm_tt_create` with
//! TTM_TT_FLAG_ZERO_ALLOC for objects of user space). A `Fill` writes its pattern before anybody can see the object: at
//! the first mapping on the host, or the first access by the device. What nobody looks at stays without host memory.
//! Cost: the time to write the object, once; then one load of a flag for each look-up in the page table.

use std::sync::{Arc, Once};
use zrt_kmd::{Errno, Mapping};

/// The pattern unless something else is asked for: a quiet NaN as f32, and no number that anything of ours would write.
pub const FILL_DEFAULT: u32 = 0x7fc0_dead;
/// The environment variable that sets the pattern where the configuration leaves it open: eight hexadecimal digits.
pub const FILL_VARIABLE: &str = "ZRT_VIRTUAL_FILL";
/// Bytes of an object that are filled; behind them it holds zeros. Keeps a card of 32 GB on a small host.
pub const FILLED_BYTES_MAX: usize = 256 << 20;

/// The pattern of one object, and whether it has been written.
#[derive(Debug)]
pub(crate) struct Fill {
    pattern: u32,
    once: Once,
    mapping: Arc<Mapping>,
}

/// The pattern that a configuration asks for, or the environment. `EINVAL` where the variable holds no such number.
pub(crate) fn pattern(asked: Option<u32>) -> Result<u32, Errno> {
    match (asked, std::env::var_os(FILL_VARIABLE)) {
        (Some(pattern), _) => Ok(pattern),
        (None, None) => Ok(FILL_DEFAULT),
        (None, Some(text)) => parse(&text.to_string_lossy()).ok_or(Errno::EINVAL),
    }
}

fn parse(text: &str) -> Option<u32> {
    let is_eight_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_eight_digits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

impl Fill {
    pub fn new(pattern: u32, mapping: Arc<Mapping>) -> Fill {
        Fill { pattern, once: Once::new(), mapping }
    }

    /// Writes the pattern where that has not been done.
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

    #[test]
    fn a_pattern_is_eight_hexadecimal_digits() {
        assert_eq!(parse("7fc0dead"), Some(FILL_DEFAULT));
        assert_eq!(parse("00000001"), Some(1));
        for text in ["", "1", "0x000001", "7fc0deadd", "+7fc0dea", "nan pattern"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(pattern(Some(5)), Ok(5));
    }
}
