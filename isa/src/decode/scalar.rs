//! SOP1, SOP2, SOPC, SOPK, SOPP, SMEM (instruction set reference §1).

use super::lookup;
use super::operand::{EXEC_HI, EXEC_LO, LDS_DIRECT, M0};
use super::words::{Dialect, Reason, Result, Words, blank, field, signed24};
use crate::encoding::Encoding;
use crate::instruction::{Instruction, Operand};
use crate::opcode::{Opcode, Properties, RegisterFile};

/// First inline constant code: the integer 0.
const INLINE_ZERO: u32 = 128;

pub(super) fn sop1(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::SOP1.get(stream.field(15, 8)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Sop1, opcode, 1);
    if info.destination.is_present() {
        instruction.destination = stream.scalar(stream.field(22, 16), info.destination.data.dwords())?;
    }
    let code = stream.field(7, 0);
    if code == LDS_DIRECT && stream.dialect == Dialect::Llvm && is_of_barrier(opcode) {
        // llvm-mc does not check the operand that names a barrier.
        instruction.sources[0] = Operand::Special(LDS_DIRECT as u8);
    } else if info.sources[0].is_present() {
        instruction.sources[0] = stream.source(code, info.sources[0], 1, &mut instruction.dword_count)?;
    } else if matches!(opcode, Opcode::SSendmsgRtnB32 | Opcode::SSendmsgRtnB64) {
        instruction.immediate = code as i32;
    }
    Ok(instruction)
}

fn is_of_barrier(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        SBarrierSignal
            | SBarrierSignalIsfirst
            | SGetBarrierState
            | SBarrierInit
            | SBarrierJoin
            | SWakeupBarrier
    )
}

pub(super) fn sop2(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::SOP2.get(stream.field(29, 23)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Sop2, opcode, 1);
    instruction.destination = stream.scalar(stream.field(22, 16), info.destination.data.dwords())?;
    let codes = [stream.field(7, 0), stream.field(15, 8)];
    let mut sources = [Operand::None; 2];
    for (index, source) in sources.iter_mut().enumerate() {
        *source = stream.source(codes[index], info.sources[index], 1, &mut instruction.dword_count)?;
    }
    instruction.sources = with_constant(stream, opcode, sources, &mut instruction.dword_count)?;
    Ok(instruction)
}

/// Inserts the constant of `s_fmaak` and `s_fmamk` into its position among the sources.
fn with_constant(
    stream: &Words<'_>,
    opcode: Opcode,
    [first, second]: [Operand; 2],
    dword_count: &mut u8,
) -> Result<[Operand; 3]> {
    Ok(match opcode {
        Opcode::SFmaakF32 => {
            *dword_count = 2;
            [first, second, Operand::Literal(stream.dword(1)?)]
        }
        Opcode::SFmamkF32 => {
            *dword_count = 2;
            [first, Operand::Literal(stream.dword(1)?), second]
        }
        _ => [first, second, Operand::None],
    })
}

pub(super) fn sopc(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::SOPC.get(stream.field(22, 16)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Sopc, opcode, 1);
    let codes = [stream.field(7, 0), stream.field(15, 8)];
    for (index, code) in codes.into_iter().enumerate() {
        instruction.sources[index] =
            stream.source(code, info.sources[index], 1, &mut instruction.dword_count)?;
    }
    Ok(instruction)
}

pub(super) fn sopk(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::SOPK.get(stream.field(27, 23)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Sopk, opcode, 1);
    let code = stream.field(22, 16);
    if info.destination.is_present() {
        instruction.destination = stream.scalar(code, info.destination.data.dwords())?;
    }
    if opcode == Opcode::SSetregImm32B32 {
        instruction.sources[0] = Operand::Literal(stream.dword(1)?);
        instruction.dword_count = 2;
    } else if info.sources[0].is_present() {
        instruction.sources[0] = stream.scalar(code, info.sources[0].data.dwords())?;
    }
    instruction.immediate = stream.field(15, 0) as i32;
    Ok(instruction)
}

pub(super) fn sopp(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::SOPP.get(stream.field(22, 16)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let immediate = stream.field(15, 0);
    let none_expected = opcode.operands().properties.contains(Properties::NO_IMMEDIATE);
    stream.require(immediate == 0 || !none_expected, Reason::Reserved)?;
    let mut instruction = blank(Encoding::Sopp, opcode, 1);
    instruction.immediate = immediate as i32;
    Ok(instruction)
}

pub(super) fn smem(stream: &Words<'_>) -> Result<Instruction> {
    let second = stream.dword(1)?;
    let opcode = lookup::SMEM.get(stream.field(18, 13)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let mut instruction = blank(Encoding::Smem, opcode, 2);
    if opcode == Opcode::SDcacheInv {
        return Ok(instruction);
    }
    if info.sources[0].file != RegisterFile::Absent {
        instruction.sources[0] = stream.scalar(stream.field(5, 0) * 2, info.sources[0].data.dwords())?;
    }
    instruction.sources[1] = stream.scalar(field(second, 31, 25), 1)?;
    instruction.immediate = signed24(second);
    let data = stream.field(12, 6);
    if info.destination.is_present() {
        stream.require(!matches!(data, M0 | EXEC_LO | EXEC_HI), Reason::Operand)?;
        instruction.destination = stream.scalar(data, info.destination.data.dwords())?;
        instruction.scope = stream.field(22, 21) as u8;
        instruction.temporal_hint = stream.field(24, 23) as u8;
    } else {
        // Prefetches and probes have a 5-bit constant in the position of a load's data register.
        stream.require(data < 32, Reason::Reserved)?;
        instruction.sources[2] = Operand::Inline((INLINE_ZERO + data) as u8);
    }
    Ok(instruction)
}
