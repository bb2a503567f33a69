//! Reading sources and writing destinations of the scalar ALU.

use crate::shader::micro::{MicroOp, Source};
use crate::shader::valu::access::read_scalar_high;
use crate::shader::valu::operand::read_scalar;
use crate::shader::wave::Wave;

/// Reads a source. `SPECIAL`: it may be a code whose value is computed when read.
#[inline(always)]
pub(super) fn read<const SPECIAL: bool>(wave: &Wave, op: &MicroOp, index: usize, is_wide: bool) -> u64 {
    let (low, high) = match op.sources[index] {
        Source::Constant(value) => (value, op.wide[index]),
        Source::Scalar(code) if SPECIAL => (read_scalar(wave, code), read_scalar_high(wave, code)),
        Source::Scalar(code) if is_wide => (wave.scalar[code as usize], read_scalar_high(wave, code)),
        Source::Scalar(code) => (wave.scalar[code as usize], 0),
        Source::Vector(_) => (0, 0),
    };
    if is_wide { low as u64 | (high as u64) << 32 } else { low as u64 }
}

/// The old value of the destination.
#[inline(always)]
pub(super) fn old(wave: &Wave, op: &MicroOp, is_wide: bool) -> u64 {
    if is_wide { wave.scalar_pair(op.destination) } else { wave.scalar[op.destination as usize] as u64 }
}

/// Writes the destination.
#[inline(always)]
pub(super) fn write(wave: &mut Wave, op: &MicroOp, is_wide: bool, value: u64) {
    if is_wide {
        wave.set_scalar_pair(op.destination, value);
    } else {
        wave.scalar[op.destination as usize] = value as u32;
    }
}
