//! What memory instructions do lane by lane: the active lanes, the target of a lane's access, and reading and writing
//! it.
//!
//! Contract: any alignment. An access outside of its target returns why the wave stops, and has changed nothing but
//! private bytes before the first refused one.

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
    match A::lane(wave, op, lane, bytes as u32) {
        Target::Private(offset) => {
            let allocated = machine.scratch.lane_bytes;
            match offset.checked_add(bytes as u64) {
                Some(end) if end <= u64::from(allocated) => Ok(Target::Private(offset)),
                _ => Err(WaveFaultKind::Scratch { offset, allocated }),
            }
        }
        Target::Lds(address) => {
            let (width, allocated) = (bytes as u32, machine.lds.bytes);
            match address.checked_add(width) {
                Some(end) if end <= allocated => Ok(Target::Lds(address)),
                _ => Err(WaveFaultKind::LdsOutOfRange { address, width, allocated }),
            }
        }
        other => Ok(other),
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

/// Reads the target of a lane's access.
pub(crate) fn read_lane<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &mut [u8],
) -> Result<(), WaveFaultKind> {
    machine.memory.set_lane(lane);
    match target::<A>(wave, op, machine, lane, bytes.len())? {
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

/// The same access `4 · index` bytes further.
pub(crate) fn moved(op: &MicroOp, index: usize) -> MicroOp {
    MicroOp { immediate: op.immediate.wrapping_add(4 * index as i32), ..*op }
}

/// Reads a lane's dwords. Each dword of a buffer is inside or outside by itself. That is a **model**: texts about RDNA
/// and a draft of LLVM's user guide (its change 134734, on buffers that are not relaxed) say so, none about this chip.
pub(crate) fn read_dwords<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &mut [u8],
) -> Result<(), WaveFaultKind> {
    if !is_outside::<A>(wave, op, lane, bytes.len()) {
        return read_lane::<A>(wave, op, machine, lane, bytes);
    }
    let mut dwords = bytes.chunks_exact_mut(4).enumerate();
    dwords.try_for_each(|(index, dword)| read_lane::<A>(wave, &moved(op, index), machine, lane, dword))
}

/// Writes a lane's dwords; those outside of a buffer are dropped.
pub(crate) fn write_dwords<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &[u8],
) -> Result<(), WaveFaultKind> {
    if !is_outside::<A>(wave, op, lane, bytes.len()) {
        return write_lane::<A>(wave, op, machine, lane, bytes);
    }
    let mut dwords = bytes.chunks_exact(4).enumerate();
    dwords.try_for_each(|(index, dword)| write_lane::<A>(wave, &moved(op, index), machine, lane, dword))
}

/// Writes the target of a lane's access.
pub(crate) fn write_lane<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    bytes: &[u8],
) -> Result<(), WaveFaultKind> {
    machine.memory.set_lane(lane);
    match target::<A>(wave, op, machine, lane, bytes.len())? {
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
