//! VDS, VDSDIR, VFLAT, VSCRATCH, VGLOBAL, VBUFFER (instruction set reference §1).

use super::lookup;
use super::operand::{EXEC_HI, NULL};
use super::words::{Reason, Result, Words, blank, field, signed24};
use crate::encoding::Encoding;
use crate::instruction::{Instruction, Operand};
use crate::opcode::{DataType, Opcode, OperandKind, Properties};

/// Temporal hint bit that requests the old value from an atomic.
const HINT_RETURN: u8 = 1;
/// First of the typed buffer operations.
const TYPED_BUFFER_FIRST: u16 = 128;

pub(super) fn vds(stream: &Words<'_>) -> Result<Instruction> {
    let second = stream.dword(1)?;
    stream.require(stream.field(17, 17) == 0, Reason::Reserved)?;
    let opcode = lookup::VDS.get(stream.field(25, 18)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Vds, opcode, 2);
    instruction.destination = vector_or_zero(stream, field(second, 31, 24), info.destination)?;
    let codes = [field(second, 7, 0), field(second, 15, 8), field(second, 23, 16)];
    for (index, code) in codes.into_iter().enumerate() {
        instruction.sources[index] = vector_or_zero(stream, code, info.sources[index])?;
    }
    instruction.immediate = stream.field(15, 0) as i32;
    let none_expected = info.properties.contains(Properties::NO_IMMEDIATE);
    stream.require(instruction.immediate == 0 || !none_expected, Reason::Reserved)?;
    Ok(instruction)
}

/// A vector operand, or a field that must be zero if the operation has none.
fn vector_or_zero(stream: &Words<'_>, code: u32, kind: OperandKind) -> Result<Operand> {
    if kind.is_present() {
        return stream.vector(code, kind.data.dwords());
    }
    stream.require(code == 0, Reason::Reserved)?;
    Ok(Operand::None)
}

pub(super) fn vdsdir(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = match stream.field(22, 20) {
        0 => Opcode::DsParamLoad,
        1 => Opcode::DsDirectLoad,
        _ => return Err(stream.unknown(Reason::Opcode)),
    };
    let mut instruction = blank(Encoding::Vdsdir, opcode, 1);
    instruction.destination = Operand::Vector(stream.field(7, 0) as u8);
    // wait_vm_vsrc, wait_va_vdst, attribute and channel, if the word has them (bits 23:8).
    instruction.immediate = stream.field(23, 8) as i32;
    Ok(instruction)
}

pub(super) fn flat(stream: &Words<'_>, encoding: Encoding) -> Result<Instruction> {
    let (second, third) = (stream.dword(1)?, stream.dword(2)?);
    let number = stream.field(21, 14);
    let opcode = match encoding {
        Encoding::Vflat => lookup::VFLAT.get(number),
        Encoding::Vscratch => lookup::VSCRATCH.get(number),
        _ => lookup::VGLOBAL.get(number),
    }
    .ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(encoding, opcode, 3);
    instruction.scope = field(second, 19, 18) as u8;
    instruction.temporal_hint = field(second, 22, 20) as u8;
    let uses_vector_address = field(second, 17, 17) != 0;
    stream.require(!uses_vector_address || encoding == Encoding::Vscratch, Reason::Reserved)?;

    let saddr = stream.field(6, 0);
    if info.sources[2].is_present() {
        stream.require(!(encoding == Encoding::Vscratch && saddr == EXEC_HI), Reason::Operand)?;
        if saddr != NULL {
            instruction.sources[2] = stream.scalar(saddr, info.sources[2].data.dwords())?;
        }
    } else {
        stream.require(saddr == NULL, Reason::Reserved)?;
    }

    let returns =
        !info.properties.contains(Properties::ATOMIC) || instruction.temporal_hint & HINT_RETURN != 0;
    if info.destination.is_present() && returns {
        instruction.destination = stream.vector(field(second, 7, 0), info.destination.data.dwords())?;
    }
    if info.sources[1].is_present() {
        instruction.sources[1] = stream.vector(field(second, 30, 23), info.sources[1].data.dwords())?;
    }
    if encoding == Encoding::Vscratch {
        instruction.address_flags = u16::from(uses_vector_address);
    }
    let has_address = info.sources[0].is_present() && (encoding != Encoding::Vscratch || uses_vector_address);
    if has_address {
        // With a scalar base, global addresses are 32-bit offsets.
        let offset_only = encoding == Encoding::Vscratch || instruction.sources[2] != Operand::None;
        let dwords = if offset_only { 1 } else { 2 };
        instruction.sources[0] = stream.vector(field(third, 7, 0), dwords)?;
    }
    if info.sources.iter().any(|kind| kind.is_present()) {
        instruction.immediate = signed24(third >> 8);
    }
    Ok(instruction)
}

pub(super) fn vbuffer(stream: &Words<'_>) -> Result<Instruction> {
    let (second, third) = (stream.dword(1)?, stream.dword(2)?);
    let opcode = lookup::VBUFFER.get(stream.field(21, 14)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Vbuffer, opcode, 3);
    instruction.scope = field(second, 19, 18) as u8;
    instruction.temporal_hint = field(second, 22, 20) as u8;
    instruction.soffset = stream.scalar(stream.field(6, 0), 1)?;
    instruction.sources[2] = stream.scalar(field(second, 17, 9), 4)?;

    let offset_enable = field(second, 30, 30);
    let index_enable = second >> 31;
    let fail_flag = stream.field(22, 22);
    instruction.address_flags = (offset_enable | index_enable << 1 | fail_flag << 2) as u16;
    if opcode.number() >= TYPED_BUFFER_FIRST {
        stream.require(fail_flag == 0, Reason::Reserved)?;
        instruction.address_flags |= (field(second, 29, 23) << 8) as u16;
    }
    if offset_enable + index_enable > 0 {
        instruction.sources[0] = stream.vector(field(third, 7, 0), offset_enable + index_enable)?;
    }

    let data = field(second, 7, 0);
    let is_atomic = info.properties.contains(Properties::ATOMIC);
    stream.require(fail_flag == 0 || !is_atomic, Reason::Reserved)?;
    if info.sources[1].is_present() {
        instruction.sources[1] = stream.vector(data, info.sources[1].data.dwords() + fail_flag)?;
    }
    let returns = !is_atomic || instruction.temporal_hint & HINT_RETURN != 0;
    if info.destination.data != DataType::Absent && returns {
        instruction.destination = stream.vector(data, info.destination.data.dwords() + fail_flag)?;
    }
    instruction.immediate = signed24(third >> 8);
    Ok(instruction)
}
