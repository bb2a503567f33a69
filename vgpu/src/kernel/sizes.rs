//! The sizes of the board's memories: those of the captured board, or what the configuration says.
//!
//! Contract: plain values; every file and request that states a size takes it from here.

use crate::config::Config;
use crate::kernel::board;

/// The memories that the driver gives out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemorySizes {
    /// All VRAM is visible to the CPU.
    pub large_bar: bool,
    /// VRAM.
    pub vram_bytes: u64,
    /// System memory that the GPU may map.
    pub gtt_bytes: u64,
}

impl MemorySizes {
    /// The sizes of a configuration.
    pub fn new(config: &Config) -> MemorySizes {
        MemorySizes {
            large_bar: config.large_bar,
            vram_bytes: config.vram_bytes.unwrap_or(board::VRAM_BYTES),
            gtt_bytes: config.gtt_bytes.unwrap_or(board::GTT_BYTES),
        }
    }

    /// VRAM that the CPU can access.
    pub fn visible_bytes(self) -> u64 {
        if self.large_bar { self.vram_bytes } else { self.vram_bytes.min(board::SMALL_BAR_BYTES) }
    }

    /// The window of the BAR: a power of two.
    pub fn window_bytes(self) -> u64 {
        let whole = self.vram_bytes.checked_next_power_of_two().unwrap_or(1 << 63);
        if self.large_bar { whole } else { board::SMALL_BAR_BYTES }
    }

    /// VRAM that objects can have.
    pub fn objects_bytes(self) -> u64 {
        self.vram_bytes.saturating_sub(board::PAGE_TABLE_RESERVE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// All VRAM, what the processor sees of it, the window, and what objects can have, in MiB.
    fn sizes(large_bar: bool, vram_mib: u64) -> [u64; 4] {
        let config = Config { large_bar, vram_bytes: Some(vram_mib * MIB), ..Config::default() };
        let sizes = MemorySizes::new(&config);
        [sizes.vram_bytes, sizes.visible_bytes(), sizes.window_bytes(), sizes.objects_bytes()]
            .map(|bytes| bytes / MIB)
    }

    #[test]
    fn a_large_window_holds_all_vram_and_a_small_one_256_mib() {
        assert_eq!(sizes(true, 512), [512, 512, 512, 504]);
        assert_eq!(sizes(true, 513), [513, 513, 1024, 505]);
        assert_eq!(sizes(false, 513), [513, 256, 256, 505]);
        assert_eq!(sizes(false, 256), [256, 256, 256, 248]);
        assert_eq!(sizes(false, 64), [64, 64, 256, 56]);
        // Not even room for the page tables.
        assert_eq!((sizes(true, 8), sizes(true, 4)), ([8, 8, 8, 0], [4, 4, 4, 0]));
    }

    #[test]
    fn more_than_half_of_all_addresses_has_the_largest_window() {
        let config = Config { vram_bytes: Some(u64::MAX), gtt_bytes: Some(7), ..Config::default() };
        let sizes = MemorySizes::new(&config);
        assert_eq!((sizes.window_bytes(), sizes.gtt_bytes), (1 << 63, 7));
        let captured = MemorySizes::new(&Config::default());
        assert_eq!((captured.vram_bytes, captured.gtt_bytes), (34_208_743_424, 16 << 30));
    }
}
