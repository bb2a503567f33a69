//! An observer below the seam that sees more of a device than its driver reports.
//!
//! Contract: whoever opens a device knows whether there is one ([`DeviceOptions::witness`](crate::DeviceOptions)); the
//! device asks it for evidence and for the reasons of a failed wait, and sends it nothing. A card has none. An answer
//! may read files and allocate: never on the path of a token.

use crate::counters::Counters;
use crate::error::DeviceError;
use crate::registry::Registry;
use crate::waves::Waves;
use zrt_kmd::Syscalls;

/// What a device can ask it.
pub trait Witness: Send + Sync {
    /// What the device has done since it was opened.
    fn counters(&self, syscalls: &dyn Syscalls) -> Result<Counters, DeviceError>;

    /// Its log, oldest line first; numbers that begin with `0x` are addresses.
    fn log(&self, syscalls: &dyn Syscalls) -> Vec<String>;

    /// Where the waves that have not ended are, with places named by `registry`.
    fn waves(&self, syscalls: &dyn Syscalls, registry: &Registry) -> Result<Waves, DeviceError>;
}
