//! VOP1, VOP2, VOPC, VOP3, VOP3SD, VOP3P, VOPD (instruction set reference §1 and §6).

use super::lookup;
use super::operand::{EXEC, EXEC_HI, EXEC_LO, VCC};
use super::words::{Dialect, Reason, Result, Words, blank, field};
use crate::encoding::Encoding;
use crate::instruction::{DualHalf, Instruction, LaneSelect, Operand};
use crate::opcode::{DataType, ModifierForm, Opcode, OperandInfo, OperandKind, Properties, RegisterFile};
use crate::resources::WaveSize;

/// Source 0 codes that announce a lane-select dword after the instruction.
const DPP8: u32 = 233;
const DPP8_FETCH_INACTIVE: u32 = 234;
const DPP16: u32 = 250;

pub(super) fn vop1(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::VOP1.get(stream.field(16, 9)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    // llvm-mc 19 does not know this operation.
    stream.require(stream.dialect == Dialect::Hardware || opcode != Opcode::VSwapB16, Reason::Opcode)?;
    short(stream, Encoding::Vop1, opcode, Some(stream.field(24, 17)), None)
}

pub(super) fn vop2(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::VOP2.get(stream.field(30, 25)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let mut instruction =
        short(stream, Encoding::Vop2, opcode, Some(stream.field(24, 17)), Some(stream.field(16, 9)))?;
    match opcode {
        Opcode::VFmaakF32 | Opcode::VFmaakF16 => {
            instruction.sources[2] = Operand::Literal(stream.dword(1)?);
            instruction.dword_count = 2;
        }
        Opcode::VFmamkF32 | Opcode::VFmamkF16 => {
            instruction.sources[2] = instruction.sources[1];
            instruction.sources[1] = Operand::Literal(stream.dword(1)?);
            instruction.dword_count = 2;
            // The half select of vsrc1 moves with it to its position as source 2.
            let op_sel = instruction.modifiers.op_sel;
            instruction.modifiers.op_sel = op_sel & 0b1001 | (op_sel & 0b0010) << 1;
        }
        _ => {}
    }
    Ok(instruction)
}

pub(super) fn vopc(stream: &Words<'_>) -> Result<Instruction> {
    let opcode = lookup::VOPC.get(stream.field(24, 17)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    short(stream, Encoding::Vopc, opcode, None, Some(stream.field(16, 9)))
}

/// The 32-bit encodings: source 0 in bits 8:0, the other fields passed as codes.
fn short(
    stream: &Words<'_>,
    encoding: Encoding,
    opcode: Opcode,
    destination: Option<u32>,
    second: Option<u32>,
) -> Result<Instruction> {
    let info = stream.operands(opcode);
    let mut instruction = blank(encoding, opcode, 1);
    let mut code = stream.field(8, 0);
    if matches!(code, DPP8 | DPP8_FETCH_INACTIVE | DPP16) && info.sources[0].is_present() {
        let lane_dword = stream.dword(1)?;
        instruction.dword_count = 2;
        instruction.lanes = lane_select(stream, info, code, lane_dword)?;
        if code == DPP16 {
            lane_modifiers(stream, info, lane_dword, &mut instruction)?;
        }
        code = 256 + (lane_dword & 0xff);
    }
    // v_nop has no operands and leaves the field unspecified.
    if info.sources[0].is_present() {
        let code = half_register(stream, code, info.sources[0], 0, &mut instruction)?;
        instruction.sources[0] = stream.source(code, info.sources[0], 1, &mut instruction.dword_count)?;
    }
    if let Some(second) = second {
        let kind = info.sources[1];
        let code = half_register(stream, 256 + second, kind, 1, &mut instruction)?;
        instruction.sources[1] = stream.vector(code - 256, kind.data.dwords())?;
    }
    instruction.destination = match destination {
        Some(code) if info.destination.file == RegisterFile::Vector => {
            let code = half_register(stream, 256 + code, info.destination, 3, &mut instruction)?;
            stream.vector(code - 256, info.destination.data.dwords())?
        }
        Some(code) => stream.destination(code, info.destination)?,
        None if info.destination.file == RegisterFile::Exec => EXEC,
        None => VCC,
    };
    if info.destination2.is_present() {
        instruction.destination2 = VCC;
    }
    if info.sources[2].data == DataType::Mask {
        instruction.sources[2] = VCC;
    }
    Ok(instruction)
}

/// Moves bit 7 of a 16-bit operand's vector register into the half select `bit` (instruction set reference §6, 16-bit).
#[inline]
fn half_register(
    stream: &Words<'_>,
    code: u32,
    kind: OperandKind,
    bit: u32,
    instruction: &mut Instruction,
) -> Result<u32> {
    if code < 256 || kind.bits() != 16 {
        return Ok(code);
    }
    // llvm-mc 19 knows the halves of only one operation in its 32-bit form.
    let is_known = stream.dialect == Dialect::Hardware || instruction.opcode == Opcode::VMovB16;
    stream.require(code & 0x80 == 0 || is_known, Reason::Operand)?;
    instruction.modifiers.op_sel |= ((code >> 7 & 1) << bit) as u8;
    Ok(code & !0x80)
}

fn lane_select(stream: &Words<'_>, info: &OperandInfo, code: u32, dword: u32) -> Result<LaneSelect> {
    stream.require(info.properties.contains(Properties::DPP), Reason::Lanes)?;
    if code != DPP16 {
        return Ok(LaneSelect::Dpp8 { selectors: dword >> 8, fetch_inactive: code == DPP8_FETCH_INACTIVE });
    }
    let control = field(dword, 16, 8) as u16;
    // quad_perm, row_shl, row_shr, row_ror, mirrors, row_share, row_xmask (instruction set reference §1).
    let exists = matches!(
        control,
        0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x140 | 0x141 | 0x150..=0x16f
    );
    stream.require(exists, Reason::Lanes)?;
    Ok(LaneSelect::Dpp16 {
        control,
        fetch_inactive: dword >> 18 & 1 != 0,
        bound_control: dword >> 19 & 1 != 0,
        bank_mask: field(dword, 27, 24) as u8,
        row_mask: field(dword, 31, 28) as u8,
    })
}

/// Negate and absolute bits of a DPP16 dword; only the 32-bit encodings use them.
fn lane_modifiers(
    stream: &Words<'_>,
    info: &OperandInfo,
    dword: u32,
    instruction: &mut Instruction,
) -> Result<()> {
    let negate = (dword >> 20 & 1 | dword >> 21 & 2) as u8;
    let absolute = (dword >> 21 & 1 | dword >> 22 & 2) as u8;
    let (mut may_negate, mut may_absolute, mut inert) = match (&info.form, instruction.opcode) {
        (Some(form), _) => (form.negate, form.absolute, form.inert),
        (None, Opcode::VPkFmacF16) => (0b11, 0b11, 0),
        (None, _) => (0, 0, 0),
    };
    // The exponent of v_ldexp_f16 is an integer: its modifier bits exist but have no effect.
    if info.sources[1].data == DataType::I16 {
        inert |= may_negate & 0b10;
        may_negate &= !0b10;
        may_absolute &= !0b10;
    }
    stream.require(negate & !(may_negate | inert) == 0, Reason::Modifier)?;
    stream.require(absolute & !(may_absolute | inert) == 0, Reason::Modifier)?;
    instruction.modifiers.negate = negate & may_negate;
    instruction.modifiers.absolute = absolute & may_absolute;
    Ok(())
}

pub(super) fn vop3(stream: &Words<'_>) -> Result<Instruction> {
    let second = stream.dword(1)?;
    let opcode = lookup::VOP3.get(stream.field(25, 16)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let is_known = stream.dialect == Dialect::Hardware || opcode != Opcode::VMovB16;
    let Some(form) = info.form.as_ref().filter(|_| is_known) else {
        return Err(stream.unknown(Reason::Opcode));
    };
    let has_mask_result = info.destination2.is_present();
    let encoding = if has_mask_result { Encoding::Vop3sd } else { Encoding::Vop3 };
    let mut instruction = blank(encoding, opcode, 2);
    if has_mask_result {
        let dwords = stream.dwords(info.destination2);
        instruction.destination2 = stream.scalar(stream.field(14, 8), dwords)?;
    } else {
        vop3_selects(stream, info, form, &mut instruction)?;
    }
    instruction.modifiers.negate = allowed(stream, field(second, 31, 29), form.negate, form.inert)?;
    clamp_and_omod(stream, form, second, &mut instruction)?;
    let destination = stream.field(7, 0);
    let scalar_only = matches!(opcode.encoding(), Encoding::Vop3)
        && info.destination.file == RegisterFile::Scalar
        && info.sources[0].file == RegisterFile::Scalar;
    // The scalar transcendental operations cannot write exec.
    stream.require(!(scalar_only && matches!(destination, EXEC_LO | EXEC_HI)), Reason::Operand)?;
    instruction.destination = stream.destination(destination, info.destination)?;
    long_sources(stream, info, second, &mut instruction)?;
    Ok(instruction)
}

/// abs and op_sel of a VOP3 encoding without scalar result.
fn vop3_selects(
    stream: &Words<'_>,
    info: &OperandInfo,
    form: &ModifierForm,
    instruction: &mut Instruction,
) -> Result<()> {
    instruction.modifiers.absolute = allowed(stream, stream.field(10, 8), form.absolute, form.inert)?;
    let op_sel = stream.field(14, 11) as u8;
    stream.require(op_sel & !(form.op_sel | form.op_sel_inert) == 0, Reason::Modifier)?;
    let mut meaningful = form.op_sel;
    // llvm-mc 19 does not print the halves of most operations.
    if stream.dialect == Dialect::Hardware {
        for (index, kind) in info.sources.iter().enumerate() {
            meaningful |= u8::from(kind.bits() == 16) << index;
        }
        meaningful |= u8::from(info.destination.bits() == 16) << 3;
    }
    instruction.modifiers.op_sel = op_sel & meaningful;
    Ok(())
}

/// The bits that have an effect; an error if there are others.
fn allowed(stream: &Words<'_>, bits: u32, used: u8, inert: u8) -> Result<u8> {
    stream.require(bits as u8 & !(used | inert) == 0, Reason::Modifier)?;
    Ok(bits as u8 & used)
}

fn clamp_and_omod(
    stream: &Words<'_>,
    form: &ModifierForm,
    second: u32,
    instruction: &mut Instruction,
) -> Result<()> {
    instruction.modifiers.clamp = stream.field(15, 15) != 0;
    instruction.modifiers.omod = field(second, 28, 27) as u8;
    stream.require(form.clamp || !instruction.modifiers.clamp, Reason::Modifier)?;
    stream.require(form.omod || instruction.modifiers.omod == 0, Reason::Modifier)
}

/// The three 9-bit sources of the 64-bit encodings, with the lane-select dword or literal after them. The field of
/// a source that the operation does not have is ignored, as in LLVM 22, whose assembler puts an inline 0 there
/// (llvm-project pull requests 175182 and 175753); llvm-mc 19 requires zero.
fn long_sources(
    stream: &Words<'_>,
    info: &OperandInfo,
    second: u32,
    instruction: &mut Instruction,
) -> Result<()> {
    let mut codes = [field(second, 8, 0), field(second, 17, 9), field(second, 26, 18)];
    let mut kinds = info.sources;
    if stream.dialect == Dialect::Hardware {
        for (code, kind) in codes.iter_mut().zip(kinds) {
            *code = if kind.is_present() { *code } else { 0 };
        }
    }
    if matches!(codes[0], DPP8 | DPP8_FETCH_INACTIVE | DPP16) {
        let lane_dword = stream.dword(2)?;
        instruction.dword_count = 3;
        instruction.lanes = lane_select(stream, info, codes[0], lane_dword)?;
        codes[0] = 256 + (lane_dword & 0xff);
        // The dword after the instruction is in use, so there is no literal. Most VOP3P operations also require
        // vector registers.
        stream.require(!codes.contains(&255), Reason::Operand)?;
        let is_mixed = matches!(info.sources[1].data, DataType::F32);
        if instruction.encoding == Encoding::Vop3p && instruction.opcode != Opcode::VDot2F32F16 {
            kinds[1].file = RegisterFile::Vector;
            if !is_mixed {
                kinds[2].file = RegisterFile::Vector;
            }
        }
    }
    for index in 0..3 {
        if kinds[index].data == DataType::Mask {
            stream.require(codes[index] < EXEC_LO, Reason::Operand)?;
        }
        instruction.sources[index] =
            stream.source(codes[index], kinds[index], 2, &mut instruction.dword_count)?;
    }
    Ok(())
}

pub(super) fn vop3p(stream: &Words<'_>) -> Result<Instruction> {
    let second = stream.dword(1)?;
    stream.require(stream.field(23, 23) == 0, Reason::Opcode)?;
    let opcode = lookup::VOP3P.get(stream.field(22, 16)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let info = stream.operands(opcode);
    let Some(form) = &info.form else {
        return Err(stream.unknown(Reason::Opcode));
    };
    let mut instruction = blank(Encoding::Vop3p, opcode, 2);
    let modifiers = &mut instruction.modifiers;
    modifiers.negate = allowed(stream, field(second, 31, 29), form.negate, 0)?;
    modifiers.absolute = allowed(stream, stream.field(10, 8), form.absolute, 0)?;
    modifiers.op_sel = allowed(stream, stream.field(13, 11), form.op_sel, 0)?;
    let op_sel_hi = (field(second, 28, 27) | stream.field(14, 14) << 2) as u8;
    let fixed = !(form.op_sel_hi | form.op_sel_hi_inert) & 0b111;
    stream.require(op_sel_hi & fixed == fixed, Reason::Modifier)?;
    modifiers.op_sel_hi = op_sel_hi & form.op_sel_hi;
    modifiers.clamp = stream.field(15, 15) != 0;
    stream.require(form.clamp || !modifiers.clamp, Reason::Modifier)?;
    instruction.destination = stream.destination(stream.field(7, 0), info.destination)?;
    long_sources(stream, info, second, &mut instruction)?;
    Ok(instruction)
}

pub(super) fn vopd(stream: &Words<'_>) -> Result<Instruction> {
    stream.require(stream.wave_size == WaveSize::Wave32, Reason::Class)?;
    let second = stream.dword(1)?;
    let x = lookup::dual_x(stream.field(25, 22)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let y = lookup::dual_y(stream.field(21, 17)).ok_or_else(|| stream.unknown(Reason::Opcode))?;
    let mut instruction = blank(Encoding::Vopd, x, 2);
    let destination_x = field(second, 31, 24);
    // The pair's destinations differ in parity, so the low bit of the second is not stored.
    let destination_y = field(second, 23, 17) << 1 | (destination_x & 1 ^ 1);
    instruction.destination = Operand::Vector(destination_x as u8);
    let dword_count = &mut instruction.dword_count;
    instruction.sources = dual_sources(stream, x, stream.field(8, 0), stream.field(16, 9), dword_count)?;
    instruction.dual = Some(DualHalf {
        opcode: y,
        destination: Operand::Vector(destination_y as u8),
        sources: dual_sources(stream, y, field(second, 8, 0), field(second, 16, 9), dword_count)?,
    });
    Ok(instruction)
}

fn dual_sources(
    stream: &Words<'_>,
    opcode: Opcode,
    code: u32,
    second: u32,
    dword_count: &mut u8,
) -> Result<[Operand; 3]> {
    let first = stream.source(code, opcode.operands().sources[0], 2, dword_count)?;
    let vector = Operand::Vector(second as u8);
    Ok(match opcode {
        Opcode::VMovB32 => {
            stream.require(second == 0, Reason::Reserved)?;
            [first, Operand::None, Operand::None]
        }
        Opcode::VCndmaskB32 => [first, vector, VCC],
        Opcode::VFmaakF32 => {
            *dword_count = 3;
            [first, vector, Operand::Literal(stream.dword(2)?)]
        }
        Opcode::VFmamkF32 => {
            *dword_count = 3;
            [first, Operand::Literal(stream.dword(2)?), vector]
        }
        _ => [first, vector, Operand::None],
    })
}
