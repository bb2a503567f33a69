//! What a kernel's counts would mean on an R9700: a prediction, never a measurement.
//!
//! Contract: pure arithmetic over counts of the virtual device. The formula is printed with every result.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Memory bandwidth in bytes per second (hardware reference §1.4: 256 bits at 20 Gbit/s).
const MEMORY_BYTES_PER_SECOND: f64 = 640e9;
/// SIMD32 units, and their clock in hertz: boost clock of the board, rounded down.
const SIMD_COUNT: f64 = 128.0;
const CLOCK_HZ: f64 = 2.6e9;
/// Compute units, each with one LDS.
const COMPUTE_UNITS: f64 = 64.0;
const MICROSECONDS: f64 = 1e6;

/// The formula, as it is printed.
pub const FORMULA: &str = "time >= max(bytes / 640 GB/s, wave instructions / (128 SIMDs x 2.6 GHz), \
                           LDS cycles / (64 CUs x 2.6 GHz)); bytes: all vector, scalar and atomic accesses, no cache";

/// Counts of the virtual device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Profile {
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// By mnemonic.
    pub opcodes: BTreeMap<String, u64>,
    /// By class of memory.
    pub bytes: Bytes,
    /// LDS accesses.
    pub lds: Lds,
}

/// Bytes that lanes asked for, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Bytes {
    pub vector_load: u64,
    pub vector_store: u64,
    pub atomic: u64,
    pub scalar_load: u64,
    pub scratch: u64,
    pub lds_load: u64,
    pub lds_store: u64,
}

/// LDS accesses and their cycles in the model of the virtual device's profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Lds {
    pub accesses: u64,
    pub cycles: u64,
    pub cycles_without_conflict: u64,
}

/// Lower bounds of the time of a launch on the card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// By memory, in microseconds.
    pub memory_us: f64,
    /// By instruction issue, in microseconds.
    pub issue_us: f64,
    /// By LDS, in microseconds.
    pub lds_us: f64,
    /// Wave instructions per byte of memory: above 0.5 the card is busier with instructions than with memory.
    pub instructions_per_byte: f64,
}

impl Profile {
    /// Bytes that go to memory, were there no cache.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = &self.bytes;
        bytes.vector_load + bytes.vector_store + bytes.atomic + bytes.scalar_load + bytes.scratch
    }

    /// The bounds.
    pub fn predict(&self) -> Prediction {
        let (bytes, instructions) = (self.memory_bytes() as f64, self.wave_instructions as f64);
        Prediction {
            memory_us: bytes / MEMORY_BYTES_PER_SECOND * MICROSECONDS,
            issue_us: instructions / (SIMD_COUNT * CLOCK_HZ) * MICROSECONDS,
            lds_us: self.lds.cycles as f64 / (COMPUTE_UNITS * CLOCK_HZ) * MICROSECONDS,
            instructions_per_byte: if bytes > 0.0 { instructions / bytes } else { f64::INFINITY },
        }
    }
}

impl Prediction {
    /// What the time is bound by.
    pub fn bound(&self) -> &'static str {
        if self.memory_us >= self.issue_us.max(self.lds_us) {
            "memory"
        } else if self.issue_us >= self.lds_us {
            "instruction issue"
        } else {
            "LDS"
        }
    }

    /// The largest bound in microseconds.
    pub fn time_us(&self) -> f64 {
        self.memory_us.max(self.issue_us).max(self.lds_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(wave_instructions: u64, vector_load: u64, cycles: u64) -> Profile {
        Profile {
            wave_instructions,
            opcodes: BTreeMap::new(),
            bytes: Bytes { vector_load, ..Bytes::default() },
            lds: Lds { accesses: 1, cycles, cycles_without_conflict: 1 },
        }
    }

    #[test]
    fn the_largest_bound_counts() {
        // 640 MB take a millisecond; 332.8 million instructions too.
        let memory = profile(332_800, 640_000_000, 0).predict();
        assert_eq!((memory.memory_us, memory.issue_us, memory.bound()), (1000.0, 1.0, "memory"));
        let issue = profile(332_800_000, 64_000_000, 0).predict();
        assert_eq!((issue.time_us(), issue.bound()), (1000.0, "instruction issue"));
        assert_eq!(profile(1, 1, 1_000_000).predict().bound(), "LDS");
    }
}
