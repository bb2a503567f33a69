//! What VRAM holds before anything is written to it.
//!
//! Contract: the kernel overwrites VRAM of KFD when it is freed and, in most releases, does not clear it when it is
//! allocated ([`KernelRelease::clears_vram`]), so after a boot or another driver it holds anything. System memory comes
//! zeroed (`ttm_tt_create` with TTM_TT_FLAG_ZERO_ALLOC for objects of user space). A `Fill` writes its pattern before anybody
//! can see the object: at the first mapping on the host, or the first access by the device. What nobody looks at stays
//! without host memory.
//! Cost: the time to write the object, once; then one load of a flag for each look-up in the page table.

use crate::config::{KernelRelease, VramFill};
use std::sync::{Arc, Once};
use zrt_kmd::{Errno, Mapping};

/// The pattern unless something else is asked for: a quiet NaN as f32, and no number that anything of ours would write.
pub const FILL_DEFAULT: u32 = 0x7fc0_dead;
/// The environment variable that sets the fill where the configuration leaves it open: eight hexadecimal digits, or
/// `kernel` for [`VramFill::AsKernel`].
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

/// The pattern that a configuration asks for, or the environment, under a kernel. `EINVAL` where the variable holds
/// nothing of the kind.
pub(crate) fn pattern(asked: Option<VramFill>, kernel: KernelRelease) -> Result<u32, Errno> {
    let asked = match (asked, std::env::var_os(FILL_VARIABLE)) {
        (Some(asked), _) => asked,
        (None, None) => VramFill::Pattern(FILL_DEFAULT),
        (None, Some(text)) => parse(&text.to_string_lossy()).ok_or(Errno::EINVAL)?,
    };
    Ok(match asked {
        VramFill::Pattern(pattern) => pattern,
        VramFill::AsKernel if kernel.clears_vram() => 0,
        VramFill::AsKernel => FILL_DEFAULT,
    })
}

fn parse(text: &str) -> Option<VramFill> {
    if text == "kernel" {
        return Some(VramFill::AsKernel);
    }
    let is_eight_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_eight_digits.then(|| u32::from_str_radix(text, 16).ok()).flatten().map(VramFill::Pattern)
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
    fn a_fill_is_eight_hexadecimal_digits_or_the_kernels() {
        assert_eq!(parse("7fc0dead"), Some(VramFill::Pattern(0x7fc0_dead)));
        assert_eq!(parse("00000001"), Some(VramFill::Pattern(1)));
        assert_eq!(parse("kernel"), Some(VramFill::AsKernel));
        for text in ["", "1", "0x000001", "7fc0deadd", "+7fc0dea", "nan pattern", "Kernel"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let under = |fill| KernelRelease::ALL.map(|kernel| pattern(Some(fill), kernel));
        assert_eq!(under(VramFill::Pattern(5)), [Ok(5); 4]);
        let stale = Ok(FILL_DEFAULT);
        assert_eq!(under(VramFill::AsKernel), [stale, stale, stale, Ok(0)]);
    }
}
