//! What memory instructions do lane by lane: the active lanes, the target of a lane's access, and reading and writing
//! it.
//!
//! Contract: any alignment. An access outside of its target returns why the wave stops, and has changed nothing but
//! private bytes, and dwords of a buffer, before the first refused one.

use std::ops::Range;

use crate::memory::Rights;
use crate::shader::address::{AddressMode, Target};
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::Machine;
use crate::shader::micro::MicroOp;
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::blend;

/// The active lanes, ascending.
#[inline(always)]
pub(crate) fn active(exec: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| exec >> lane & 1 != 0)
}

/// Writes a row to the active lanes of a register.
#[inline(always)]
pub(crate) fn write_lanes(wave: &mut Wave, register: usize, exec: u32, values: &[u32; LANES]) {
    let target = &mut wave.vector[register & 255];
    if exec == u32::MAX {
        target.0 = *values;
    } else {
        *target = blend(exec, &Row(*values), target);
    }
}

/// The target of a lane's access, checked against the private segment and LDS.
pub(crate) fn target<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &Machine<'_>,
    lane: usize,
    bytes: usize,
) -> Result<Target, WaveFaultKind> {
    checked(A::lane(wave, op, lane, bytes as u32), machine, bytes)
}

/// A target of so many bytes, checked against the private segment and LDS.
fn checked(target: Target, machine: &Machine<'_>, bytes: usize) -> Result<Target, WaveFaultKind> {
    match target {
        Target::Private(offset) => {
            let allocated = machine.scratch.lane_bytes;
            match offset.checked_add(bytes as u64) {
                Some(end) if end <= u64::from(allocated) => Ok(target),
                _ => Err(WaveFaultKind::Scratch { offset, allocated }),
            }
        }
        Target::Lds(address) => {
            let (width, allocated) = (bytes as u32, machine.lds.bytes);
            match address.checked_add(width) {
                Some(end) if end <= allocated => Ok(target),
                _ => Err(WaveFaultKind::LdsOutOfRange { address, width, allocated }),
            }
        }
        Target::Global(_) | Target::Outside => Ok(target),
    }
}

/// Address of a byte of a lane's private segment.
pub(crate) fn private_va(machine: &Machine<'_>, lane: usize, offset: u64) -> u64 {
    let scratch = &machine.scratch;
    scratch.wave_va.wrapping_add(offset / 4 * scratch.dword_stride() + 4 * lane as u64 + offset % 4)
}

/// Whether a lane's access is outside: loads return zero, stores are dropped.
pub(crate) fn is_outside<A: AddressMode>(wave: &Wave, op: &MicroOp, lane: usize, bytes: usize) -> bool {
    A::lane(wave, op, lane, bytes as u32) == Target::Outside
}

/// The same access `4 · index` bytes further.
pub(crate) fn moved(op: &MicroOp, index: usize) -> MicroOp {
    MicroOp { immediate: op.immediate.wrapping_add(4 * index as i32), ..*op }
}

/// The parts of a lane's access to dwords, with their targets: all bytes, or each dword if they are not all inside of a
/// buffer. Each dword is inside or outside by itself (RDNA4 instruction set guide §9.4.1).
fn parts<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    lane: usize,
    bytes: usize,
) -> impl Iterator<Item = (Range<usize>, Target)> {
    let whole = A::lane(wave, op, lane, bytes as u32);
    let size = if whole == Target::Outside { 4 } else { bytes };
    (0..bytes).step_by(size).map(move |first| {
        let target = if size == bytes { whole } else { A::dword(wave, op, lane, first / 4) };
        (first..first + size, target)
    })
}

/// Reads a lane's dwords; those outside of a buffer are zero.
pub(crate) fn read_dwords<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &mut [u8],
) -> Result<(), WaveFaultKind> {
    parts::<A>(wave, op, lane, bytes.len())
        .try_for_each(|(part, target)| read_target(machine, lane, target, &mut bytes[part]))
}

/// Writes a lane's dwords; those outside of a buffer are dropped.
pub(crate) fn write_dwords<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &[u8],
) -> Result<(), WaveFaultKind> {
    parts::<A>(wave, op, lane, bytes.len())
        .try_for_each(|(part, target)| write_target(machine, lane, target, &bytes[part]))
}

/// Reads the target of a lane's access.
pub(crate) fn read_lane<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &mut [u8],
) -> Result<(), WaveFaultKind> {
    read_target(machine, lane, A::lane(wave, op, lane, bytes.len() as u32), bytes)
}

/// Writes the target of a lane's access.
pub(crate) fn write_lane<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &[u8],
) -> Result<(), WaveFaultKind> {
    write_target(machine, lane, A::lane(wave, op, lane, bytes.len() as u32), bytes)
}

fn read_target(
    machine: &mut Machine<'_>,
    lane: usize,
    target: Target,
    bytes: &mut [u8],
) -> Result<(), WaveFaultKind> {
    machine.memory.set_lane(lane);
    match checked(target, machine, bytes.len())? {
        Target::Outside => bytes.fill(0),
        Target::Global(va) => {
            machine.memory.read_bytes(va, bytes, Rights::READ).map_err(WaveFaultKind::Page)?;
        }
        Target::Lds(address) => machine.lds.read_bytes(address, bytes),
        Target::Private(offset) => {
            for (index, byte) in bytes.iter_mut().enumerate() {
                let va = private_va(machine, lane, offset + index as u64);
                let byte = std::slice::from_mut(byte);
                machine.memory.read_unwatched(va, byte, Rights::READ).map_err(WaveFaultKind::Page)?;
            }
        }
    }
    Ok(())
}

fn write_target(
    machine: &mut Machine<'_>,
    lane: usize,
    target: Target,
    bytes: &[u8],
) -> Result<(), WaveFaultKind> {
    machine.memory.set_lane(lane);
    match checked(target, machine, bytes.len())? {
        Target::Outside => {}
        Target::Global(va) => machine.memory.write_bytes(va, bytes).map_err(WaveFaultKind::Page)?,
        Target::Lds(address) => machine.lds.write_bytes(address, bytes),
        Target::Private(offset) => {
            for (index, byte) in bytes.iter().enumerate() {
                let va = private_va(machine, lane, offset + index as u64);
                machine.memory.write_unwatched(va, &[*byte]).map_err(WaveFaultKind::Page)?;
            }
        }
    }
    Ok(())
}
