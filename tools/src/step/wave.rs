//! A stopped wave: how many lanes it has, and the codes of its registers.

use zrt_isa::resources::WaveSize;
use zrt_vgpu::check::debug::Stop;

/// Operand codes (instruction set reference §2).
pub(super) const VCC_LO: u8 = 106;
pub(super) const M0: u8 = 125;
pub(super) const EXEC_LO: u8 = 126;
/// Lanes of a half of a wave64.
pub(super) const HALF_LANES: usize = 32;

/// How many lanes the wave has.
pub(super) fn wave_size(stop: &Stop<'_>) -> WaveSize {
    if stop.wave.is_wave64() { WaveSize::Wave64 } else { WaveSize::Wave32 }
}
