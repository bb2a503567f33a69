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
