//! Scalar loads (instruction set reference §1, SMEM).
//!
//! Contract: addresses of loads of at least a dword ignore the low two bits; the data register may overlap the
//! address registers. Buffer loads return zero beyond the end of the buffer. Cost: about 10 ns.

use zrt_isa::{Instruction, Opcode, Operand};

use crate::memory::{Defects, Fault, Rights};
use crate::shader::control::blank;
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::valu::operand::destination;
use crate::shader::wave::{NULL, Wave};
use crate::simd::{Executor, Operation};

/// The micro operation of a scalar load.
pub(crate) fn translate(instruction: &Instruction) -> Option<MicroOp> {
    let mut op = blank(function(instruction.opcode)?);
    op.destination = destination(instruction.destination);
    let code = |operand| match operand {
        Operand::Scalar(code) => code,
        _ => NULL,
    };
    op.sources[0] = Source::Scalar(code(instruction.sources[0]));
    op.sources[1] = Source::Scalar(code(instruction.sources[1]));
    op.immediate = instruction.immediate;
    Some(op)
}

fn function(opcode: Opcode) -> Option<Executor> {
    use Opcode::*;
    Some(match opcode {
        SLoadB32 => bind::<LoadWords<1>>(),
        SLoadB64 => bind::<LoadWords<2>>(),
        SLoadB96 => bind::<LoadWords<3>>(),
        SLoadB128 => bind::<LoadWords<4>>(),
        SLoadB256 => bind::<LoadWords<8>>(),
        SLoadB512 => bind::<LoadWords<16>>(),
        SLoadI8 => bind::<LoadNarrow<false, 1, true>>(),
        SLoadU8 => bind::<LoadNarrow<false, 1, false>>(),
        SLoadI16 => bind::<LoadNarrow<false, 2, true>>(),
        SLoadU16 => bind::<LoadNarrow<false, 2, false>>(),
        SBufferLoadB32 => bind::<BufferLoadWords<1>>(),
        SBufferLoadB64 => bind::<BufferLoadWords<2>>(),
        SBufferLoadB96 => bind::<BufferLoadWords<3>>(),
        SBufferLoadB128 => bind::<BufferLoadWords<4>>(),
        SBufferLoadB256 => bind::<BufferLoadWords<8>>(),
        SBufferLoadB512 => bind::<BufferLoadWords<16>>(),
        SBufferLoadI8 => bind::<LoadNarrow<true, 1, true>>(),
        SBufferLoadU8 => bind::<LoadNarrow<true, 1, false>>(),
        SBufferLoadI16 => bind::<LoadNarrow<true, 2, true>>(),
        SBufferLoadU16 => bind::<LoadNarrow<true, 2, false>>(),
        _ => return None,
    })
}

fn bind<O: Operation>() -> Executor {
    Executor::baseline::<O>()
}

#[inline(always)]
fn code(op: &MicroOp, index: usize) -> u8 {
    match op.sources[index] {
        Source::Scalar(code) => code,
        _ => NULL,
    }
}

/// soffset and immediate.
#[inline(always)]
fn offset(wave: &Wave, op: &MicroOp) -> u64 {
    (wave.scalar[code(op, 1) as usize] as u64).wrapping_add_signed(op.immediate as i64)
}

/// Base and length in bytes of the buffer described by four scalars.
fn buffer(wave: &Wave, op: &MicroOp) -> (u64, u64) {
    let at = code(op, 0);
    let low = wave.scalar_pair(at);
    let records = wave.scalar[at as usize + 2] as u64;
    let stride = low >> 48 & 0x3FFF;
    (low & 0xFFFF_FFFF_FFFF, if stride == 0 { records } else { records * stride })
}

/// Reads what the fast path cannot.
fn read(machine: &mut Machine<'_>, va: u64, bytes: &mut [u8]) -> Result<(), Fault> {
    machine.memory.read_bytes(va, bytes, Rights::READ)?;
    if machine.memory.table().defects(va).contains(Defects::ZERO_TO_SCALARS) {
        bytes.fill(0);
    }
    Ok(())
}

#[inline(always)]
fn load<const WORDS: usize>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>, va: u64) -> Flow {
    let mut words = [0; WORDS];
    let last = va.wrapping_add(4 * WORDS as u64 - 1);
    match machine.memory.range(va, last, Rights::READ) {
        Some((view, offset)) => view.load_words(offset as usize, &mut words),
        _ => {
            let mut bytes = [0; 64];
            if let Err(fault) = read(machine, va, &mut bytes[..4 * WORDS]) {
                return machine.fail(WaveFaultKind::Page(fault));
            }
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
    }
    for (index, word) in words.into_iter().enumerate() {
        wave.scalar[op.destination as usize + index] = word;
    }
    Flow::Next
}

struct LoadWords<const WORDS: usize>;
impl<const WORDS: usize> Operation for LoadWords<WORDS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let base = wave.scalar_pair(code(op, 0));
        let va = base.wrapping_add(offset(wave, op)) & !3;
        load::<WORDS>(wave, op, machine, va)
    }
}

struct BufferLoadWords<const WORDS: usize>;
impl<const WORDS: usize> Operation for BufferLoadWords<WORDS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let (base, len) = buffer(wave, op);
        let offset = offset(wave, op) & !3;
        if offset.checked_add(4 * WORDS as u64).is_some_and(|end| end <= len) {
            return load::<WORDS>(wave, op, machine, base.wrapping_add(offset) & !3);
        }
        // Word by word: words beyond the end are zero.
        for index in 0..WORDS {
            let at = offset.wrapping_add(4 * index as u64);
            let mut bytes = [0; 4];
            if at.checked_add(4).is_some_and(|end| end <= len) {
                let va = base.wrapping_add(at) & !3;
                if let Err(fault) = read(machine, va, &mut bytes) {
                    return machine.fail(WaveFaultKind::Page(fault));
                }
            }
            wave.scalar[op.destination as usize + index] = u32::from_le_bytes(bytes);
        }
        Flow::Next
    }
}

/// Loads of 1 and 2 bytes.
struct LoadNarrow<const BUFFER: bool, const BYTES: usize, const SIGNED: bool>;
impl<const BUFFER: bool, const BYTES: usize, const SIGNED: bool> Operation
    for LoadNarrow<BUFFER, BYTES, SIGNED>
{
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let offset = offset(wave, op);
        let (base, len) = if BUFFER { buffer(wave, op) } else { (wave.scalar_pair(code(op, 0)), u64::MAX) };
        let mut bytes = [0; BYTES];
        let is_inside = offset.checked_add(BYTES as u64).is_some_and(|end| end <= len);
        if !BUFFER || is_inside {
            let va = base.wrapping_add(offset);
            if let Err(fault) = read(machine, va, &mut bytes) {
                return machine.fail(WaveFaultKind::Page(fault));
            }
        }
        let raw = if BYTES == 1 {
            bytes[0] as u32
        } else {
            u16::from_le_bytes([bytes[0], bytes[BYTES - 1]]) as u32
        };
        let unused = 32 - 8 * BYTES as u32;
        wave.scalar[op.destination as usize] =
            if SIGNED { ((raw << unused) as i32 >> unused) as u32 } else { raw };
        Flow::Next
    }
}

#[cfg(test)]
mod tests;
