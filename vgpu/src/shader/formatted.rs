//! Typed buffer loads and stores: `tbuffer_*`, with the format in the instruction, and `buffer_*_format_*`, with the
//! format in the descriptor (bits 113:108; component selects at 107:96).
//!
//! Contract: lanes execute in ascending order. Accesses outside the buffer read as zero in all components and are
//! not stored. Loads write as many components as the instruction names; `d16` forms pack two 16-bit components into
//! a register, and an odd one preserves the other half. Stores write whole texels; components that the instruction
//! does not name are zero. Component selects apply to untyped loads; a select of 1 is 1 outside of the buffer too
//! (RDNA4 instruction set guide §9.4.1). A descriptor with a format that is not modelled stops the wave.
//! Cost: about 20 ns per active lane.

use zrt_isa::{Encoding, Instruction, Opcode};

use crate::shader::address::{Buffer, scalar_source, vector_source};
use crate::shader::fault::WaveFaultKind;
use crate::shader::format::{COMPONENTS, Format, TEXEL_BYTES_MAX};
use crate::shader::lane_access::{active, is_outside, read_lane, write_lane};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::Wave;
use crate::simd::{Executor, Operation};

/// Bits of [`MicroOp::modifiers`]: component count, 16-bit, upper half, format.
const COUNT_MASK: u32 = 7;
const IS_16_BIT: u32 = 1 << 3;
const UPPER_HALF: u32 = 1 << 4;
const FORMAT_SHIFT: u32 = 8;
/// First opcode number of the operations that have the format in the instruction.
const TYPED_FIRST: u16 = 128;
/// Position of the format in the fourth word of a descriptor.
const DESCRIPTOR_FORMAT_SHIFT: u32 = 12;
const FORMAT_MASK: u32 = 0x3F;
/// Component selects: 0, 1, and from here on X, Y, Z and W.
const SELECT_FIRST: u32 = 4;

/// Parses a typed access; `None` for any other instruction.
fn parse(opcode: Opcode) -> Option<(u32, bool)> {
    let (front, components) = opcode.mnemonic().split_once("_format_")?;
    let is_load = front.contains("_load");
    let mut bits = components.len() as u32;
    if front.contains("_d16") {
        bits |= IS_16_BIT;
    }
    if front.ends_with("_hi") {
        bits |= UPPER_HALF;
    }
    Some((bits, is_load))
}

/// The function of a typed access; `None` for other instructions, and for a format that is not modelled.
pub(crate) fn function(instruction: &Instruction) -> Option<Executor> {
    let (_, is_load) = parse(instruction.opcode)?;
    if instruction.opcode.number() >= TYPED_FIRST {
        Format::new(instruction_format(instruction))?;
    }
    Some(if is_load { Executor::baseline::<Load>() } else { Executor::baseline::<Store>() })
}

/// Fills the fields of a typed access.
pub(crate) fn describe(instruction: &Instruction, op: &mut MicroOp) {
    if instruction.encoding != Encoding::Vbuffer {
        return;
    }
    if let Some((bits, _)) = parse(instruction.opcode) {
        op.modifiers = bits | instruction_format(instruction) << FORMAT_SHIFT;
    }
}

fn instruction_format(instruction: &Instruction) -> u32 {
    if instruction.opcode.number() >= TYPED_FIRST {
        u32::from(instruction.address_flags) >> 8 & 0x7F
    } else {
        0
    }
}

/// The format of an access and, for untyped ones, the component selects.
fn format(wave: &Wave, op: &MicroOp) -> Result<(Format, Option<u32>), WaveFaultKind> {
    if let Some(format) = Format::new(op.modifiers >> FORMAT_SHIFT) {
        return Ok((format, None));
    }
    let at = scalar_source(op, 2) as usize;
    let words = [0, 1, 2, 3].map(|index| wave.scalar[at + index]);
    match Format::new(words[3] >> DESCRIPTOR_FORMAT_SHIFT & FORMAT_MASK) {
        Some(format) => Ok((format, Some(words[3]))),
        None => Err(WaveFaultKind::BufferDescriptor(words)),
    }
}

fn selected(format: Format, components: [u32; COMPONENTS], selects: u32) -> [u32; COMPONENTS] {
    let mut result = [0; COMPONENTS];
    for (index, value) in result.iter_mut().enumerate() {
        *value = match selects >> (3 * index) & 7 {
            0 => 0,
            1 => format.one(),
            select => components[select.wrapping_sub(SELECT_FIRST) as usize % COMPONENTS],
        };
    }
    result
}

struct Load;
impl Operation for Load {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        load(wave, op, machine)
    }
}

#[inline(never)]
fn load(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    let exec = wave.exec();
    if exec == 0 {
        return Flow::Next;
    }
    let (format, selects) = match format(wave, op) {
        Ok(format) => format,
        Err(kind) => return machine.fail(kind),
    };
    // Addresses are read before the destination is written, so the values of all lanes are collected first.
    let mut values = [[0; COMPONENTS]; 32];
    for lane in active(exec) {
        let mut components = [0; COMPONENTS];
        let mut texel = [0; TEXEL_BYTES_MAX];
        let texel = &mut texel[..format.bytes()];
        if !is_outside::<Buffer>(wave, op, lane, texel.len()) {
            if let Err(kind) = read_lane::<Buffer>(wave, op, machine, lane, texel) {
                return machine.fail_lane(kind, lane);
            }
            components = format.load(texel);
        }
        values[lane] = selects.map_or(components, |selects| selected(format, components, selects));
    }
    let count = (op.modifiers & COUNT_MASK) as usize;
    for lane in active(exec) {
        for (index, value) in values[lane].into_iter().enumerate().take(count) {
            if op.modifiers & IS_16_BIT == 0 {
                wave.vector[(op.destination as usize + index) & 255].0[lane] = value;
                continue;
            }
            let is_upper = index % 2 == 1 || op.modifiers & UPPER_HALF != 0;
            let target = &mut wave.vector[(op.destination as usize + index / 2) & 255].0[lane];
            let half = format.component_to_half(value);
            *target = if is_upper { *target & 0xFFFF | half << 16 } else { *target & 0xFFFF_0000 | half };
        }
    }
    Flow::Next
}

struct Store;
impl Operation for Store {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        store(wave, op, machine)
    }
}

#[inline(never)]
fn store(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    let exec = wave.exec();
    if exec == 0 {
        return Flow::Next;
    }
    let format = match format(wave, op) {
        Ok((format, _)) => format,
        Err(kind) => return machine.fail(kind),
    };
    let (data, count) = (vector_source(op, 1), (op.modifiers & COUNT_MASK) as usize);
    for lane in active(exec) {
        let mut components = [0; COMPONENTS];
        for (index, component) in components.iter_mut().enumerate().take(count) {
            *component = if op.modifiers & IS_16_BIT == 0 {
                wave.vector[(data + index) & 255].0[lane]
            } else {
                let is_upper = index % 2 == 1 || op.modifiers & UPPER_HALF != 0;
                let pair = wave.vector[(data + index / 2) & 255].0[lane];
                format.half_to_component(pair >> if is_upper { 16 } else { 0 })
            };
        }
        let texel = format.store(components);
        if let Err(kind) = write_lane::<Buffer>(wave, op, machine, lane, &texel[..format.bytes()]) {
            return machine.fail_lane(kind, lane);
        }
    }
    Flow::Next
}

#[cfg(test)]
mod tests;
