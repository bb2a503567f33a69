//! How a device is opened, and what only its opener knows about it.
//!
//! Contract: the default is right for a card.

use crate::witness::Witness;
use core::fmt;
use zrt_mem::ByteLen;

/// Default length of the ring: room for hundreds of submissions, and one page of the host's L2 cache.
pub const RING_BYTES_DEFAULT: ByteLen = ByteLen(64 << 10);
/// Default time that a wait spins before it sleeps: about the shortest step of a small model.
pub const SPIN_US_DEFAULT: u64 = 200;
/// What precedes a card's board name.
const BRAND_DEFAULT: &str = "Radeon";

/// How to open a device.
#[derive(Clone, Copy)]
pub struct DeviceOptions {
    /// Length of the command ring in bytes: a power of two from 4096.
    pub ring_bytes: ByteLen,
    /// Everything that this crate allocates lies in system memory: code, indirect buffers, parameters, data. What the
    /// driver asks for in VRAM stays there (end-of-pipe buffer, context save area). For a first boot: nothing depends
    /// on the BAR, its flush, or fetches from VRAM.
    pub gtt_only: bool,
    /// How long a wait spins before it sleeps.
    pub spin_us: u64,
    /// What precedes the board's name.
    pub brand: &'static str,
    /// False if the GPU's clock counts the device's own work instead of time.
    pub has_real_clock: bool,
    /// An observer that sees more of the device than its driver reports.
    pub witness: Option<&'static dyn Witness>,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions {
            ring_bytes: RING_BYTES_DEFAULT,
            gtt_only: false,
            spin_us: SPIN_US_DEFAULT,
            brand: BRAND_DEFAULT,
            has_real_clock: true,
            witness: None,
        }
    }
}

impl fmt::Debug for DeviceOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceOptions { ring_bytes, gtt_only, spin_us, brand, has_real_clock, witness } = self;
        let mut fields = formatter.debug_struct("DeviceOptions");
        fields.field("ring_bytes", ring_bytes).field("gtt_only", gtt_only).field("spin_us", spin_us);
        fields.field("brand", brand).field("has_real_clock", has_real_clock);
        fields.field("has_witness", &witness.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_ring_has_a_length_that_a_ring_may_have_and_room_for_hundreds_of_submissions() {
        let bytes = DeviceOptions::default().ring_bytes.0;
        // Two hundred of 64 dwords each.
        assert!(bytes.is_power_of_two() && bytes >= 4096 && bytes >= 200 * 64 * 4, "{bytes}");
    }
}
