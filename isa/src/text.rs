//! Assembly text of an instruction, as llvm-mc 19 disassembles it for gfx1201.
//!
//! Contract: `Display` of [`Instruction`]; no allocation. For everything that [`crate::decode()`] accepts outside
//! the graphics classes, the text equals llvm-mc's, except that 16-bit operands in the upper half of a register are
//! written `v1.h`, which llvm-mc 19 cannot print by default. Graphics classes print only their name and opcode
//! number.

mod hint;
mod immediate;
mod operand;

use crate::encoding::Encoding;
use crate::instruction::{Instruction, LaneSelect, Operand};
use crate::opcode::{DataType, Opcode, OperandInfo, OperandKind, Properties, RegisterFile};
use crate::resources::WaveSize;
use core::fmt::{Display, Formatter, Result};
use operand::{Registers, Value};

/// An instruction as a wave of `wave_size` lanes would execute it, for printing ([`Instruction::text`]).
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    instruction: &'a Instruction,
    wave_size: WaveSize,
}

impl Instruction {
    /// The text for waves of `wave_size`: a mask of lanes is one scalar register in wave32 and a pair in wave64. The
    /// instruction should come from [`crate::decode_for`] with the same size.
    pub fn text(&self, wave_size: WaveSize) -> Text<'_> {
        Text { instruction: self, wave_size }
    }
}

/// The text for wave32.
impl Display for Instruction {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.text(WaveSize::Wave32).fmt(out)
    }
}

impl Display for Text<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self.instruction.encoding {
            Encoding::Sopp | Encoding::Sopk => self.write_immediate_form(out),
            Encoding::Smem => self.write_scalar_memory(out),
            Encoding::Vds | Encoding::Vdsdir => self.write_local(out),
            Encoding::Vflat | Encoding::Vscratch | Encoding::Vglobal => self.write_flat(out),
            Encoding::Vbuffer => self.write_buffer(out),
            Encoding::Vopd => self.write_dual(out),
            Encoding::Vinterp | Encoding::Vimage | Encoding::Vsample | Encoding::Vexport => {
                write!(out, "{} {}", self.instruction.opcode.mnemonic(), self.instruction.immediate)
            }
            _ => self.write_arithmetic(out),
        }
    }
}

struct Separator(&'static str);

impl Separator {
    fn new() -> Self {
        Self(" ")
    }

    fn next(&mut self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.0)?;
        self.0 = ", ";
        Ok(())
    }
}

impl Text<'_> {
    fn operands(&self) -> &'static OperandInfo {
        self.instruction.opcode.operands_for(self.wave_size)
    }

    fn value(&self, operand: Operand, kind: OperandKind) -> Value {
        Value { operand, kind, wave_size: self.wave_size }
    }

    /// SOP1, SOP2, SOPC and the single-operation VALU encodings.
    fn write_arithmetic(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.instruction.opcode.mnemonic())?;
        out.write_str(self.suffix())?;
        let info = self.operands();
        let mut separator = Separator::new();
        if self.instruction.destination != Operand::None && info.destination.file != RegisterFile::Exec {
            separator.next(out)?;
            self.write_register(out, self.instruction.destination, info.destination, 3)?;
        }
        if self.instruction.destination2 != Operand::None {
            separator.next(out)?;
            self.write_register(out, self.instruction.destination2, info.destination2, 4)?;
        }
        for (index, source) in self.instruction.sources.iter().enumerate() {
            if *source == Operand::None {
                continue;
            }
            separator.next(out)?;
            self.write_source(out, index)?;
        }
        if matches!(self.instruction.opcode, Opcode::SSendmsgRtnB32 | Opcode::SSendmsgRtnB64) {
            separator.next(out)?;
            immediate::message(out, self.instruction.immediate as u32)?;
        }
        self.write_modifiers(out)?;
        self.write_lanes(out)
    }

    /// The suffix that distinguishes the encodings of an operation that has several.
    fn suffix(&self) -> &'static str {
        let crosses_lanes = self.instruction.lanes != LaneSelect::None;
        let has_long_form = self.operands().form.is_some();
        if matches!(self.instruction.opcode, Opcode::VNop | Opcode::VPipeflush) {
            return "";
        }
        match (self.instruction.encoding, self.instruction.opcode.encoding()) {
            (Encoding::Vop1 | Encoding::Vop2, _) if crosses_lanes => "_dpp",
            (Encoding::Vopc, _) if crosses_lanes => "",
            (Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc, _) if has_long_form => "_e32",
            (Encoding::Vop3 | Encoding::Vop3sd | Encoding::Vop3p, _) if crosses_lanes => "_e64_dpp",
            (Encoding::Vop3 | Encoding::Vop3sd, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc) => "_e64",
            _ => "",
        }
    }

    /// Whether 16-bit registers are written with their half: if the encoding selects the half by register number.
    fn shows_halves(&self) -> bool {
        let is_short = matches!(self.instruction.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc);
        let is_half_move = matches!(self.instruction.opcode, Opcode::VMovB16 | Opcode::VSwapB16);
        is_short && (self.instruction.modifiers.op_sel != 0 || is_half_move)
    }

    /// A register, with its half (bit `half` of op_sel) if halves are shown.
    fn write_register(
        &self,
        out: &mut Formatter<'_>,
        operand: Operand,
        kind: OperandKind,
        half: u32,
    ) -> Result {
        write!(out, "{}", self.value(operand, kind))?;
        if self.shows_halves() && kind.bits() == 16 && matches!(operand, Operand::Vector(_)) {
            out.write_str(if self.instruction.modifiers.op_sel >> half & 1 != 0 { ".h" } else { ".l" })?;
        }
        Ok(())
    }

    fn write_source(&self, out: &mut Formatter<'_>, index: usize) -> Result {
        let operand = self.instruction.sources[index];
        let mut kind = self.operands().sources[index];
        if is_mandatory_constant(self.instruction.opcode, index)
            && let Operand::Literal(value) = operand
        {
            return write!(out, "{value:#x}");
        }
        kind.data = self.spelling(index, kind.data);
        let is_packed = self.instruction.encoding == Encoding::Vop3p && !self.is_mixed();
        let negate = !is_packed && self.instruction.modifiers.negate >> index & 1 != 0;
        let absolute = !is_packed && self.instruction.modifiers.absolute >> index & 1 != 0;
        let is_constant = matches!(operand, Operand::Inline(_) | Operand::Literal(_));
        // "-1" is a different constant from the negation of 1.
        let spelled_out = negate && !absolute && is_constant;
        if negate {
            out.write_str(if spelled_out { "neg(" } else { "-" })?;
        }
        if absolute {
            out.write_str("|")?;
        }
        self.write_register(out, operand, kind, index as u32)?;
        if absolute {
            out.write_str("|")?;
        }
        if spelled_out {
            out.write_str(")")?;
        }
        Ok(())
    }

    /// The type for which llvm-mc writes a constant, if it is not the operand's own.
    fn spelling(&self, index: usize, data: DataType) -> DataType {
        match (self.instruction.encoding, self.instruction.opcode, data) {
            (Encoding::Sopc, _, DataType::F16) => DataType::B16,
            (Encoding::Sop1, _, DataType::F16) => DataType::B32,
            (_, Opcode::VLdexpF16, DataType::I16) => DataType::F16,
            (_, Opcode::VCmpClassF16 | Opcode::VCmpxClassF16, _) if index == 1 => DataType::B32,
            _ if self.is_mixed() => DataType::F16,
            _ => data,
        }
    }

    /// The mixed-precision fma operations: VOP3P in which neg_hi is an absolute value and op_sel_hi is off by
    /// default.
    fn is_mixed(&self) -> bool {
        matches!(self.instruction.opcode, Opcode::VFmaMixF32 | Opcode::VFmaMixloF16 | Opcode::VFmaMixhiF16)
    }

    fn write_modifiers(&self, out: &mut Formatter<'_>) -> Result {
        let Some(form) = &self.operands().form else {
            return Ok(());
        };
        let modifiers = &self.instruction.modifiers;
        let source_count = self.operands().source_count() as u32;
        match self.instruction.encoding {
            Encoding::Vop3p => {
                if form.op_sel_hi == 0 && form.op_sel != 0 {
                    if modifiers.op_sel != 0 {
                        write!(out, " index_key:{}", modifiers.op_sel)?;
                    }
                } else if modifiers.op_sel != 0 {
                    write_bits(out, "op_sel", modifiers.op_sel.into(), source_count)?;
                }
                let default = if self.is_mixed() { 0 } else { form.op_sel_hi & ((1 << source_count) - 1) };
                if modifiers.op_sel_hi != default {
                    write_bits(out, "op_sel_hi", modifiers.op_sel_hi.into(), source_count)?;
                }
                if !self.is_mixed() {
                    if modifiers.negate != 0 {
                        write_bits(out, "neg_lo", modifiers.negate.into(), source_count)?;
                    }
                    if modifiers.absolute != 0 {
                        write_bits(out, "neg_hi", modifiers.absolute.into(), source_count)?;
                    }
                }
            }
            Encoding::Vop3 => self.write_half_selects(out, modifiers.op_sel, source_count)?,
            _ => {}
        }
        if modifiers.clamp {
            out.write_str(" clamp")?;
        }
        out.write_str(["", " mul:2", " mul:4", " div:2"][usize::from(modifiers.omod & 3)])
    }

    /// op_sel of VOP3: halves of the sources and the destination, a byte, or the flags of permlane.
    fn write_half_selects(&self, out: &mut Formatter<'_>, op_sel: u8, source_count: u32) -> Result {
        if op_sel == 0 {
            return Ok(());
        }
        match self.instruction.opcode {
            // The two bits of the byte number are swapped.
            Opcode::VCvtF32Fp8 | Opcode::VCvtF32Bf8 => {
                write!(out, " byte_sel:{}", op_sel >> 1 & 1 | (op_sel & 1) << 1)
            }
            Opcode::VCvtSrFp8F32 | Opcode::VCvtSrBf8F32 => write!(out, " byte_sel:{}", op_sel >> 2),
            Opcode::VPermlane16B32
            | Opcode::VPermlanex16B32
            | Opcode::VPermlane16VarB32
            | Opcode::VPermlanex16VarB32 => write_bits(out, "op_sel", op_sel.into(), 2),
            // The accumulator counts as a source.
            Opcode::VFmacF16 => write_bits(out, "op_sel", op_sel.into(), 4),
            _ => {
                let bits = op_sel & ((1 << source_count) - 1) | (op_sel >> 3) << source_count;
                write_bits(out, "op_sel", bits.into(), source_count + 1)
            }
        }
    }

    fn write_lanes(&self, out: &mut Formatter<'_>) -> Result {
        match self.instruction.lanes {
            LaneSelect::None => Ok(()),
            LaneSelect::Dpp8 { selectors, fetch_inactive } => {
                out.write_str(" dpp8:[")?;
                for lane in 0..8 {
                    if lane > 0 {
                        out.write_str(",")?;
                    }
                    write!(out, "{}", selectors >> (3 * lane) & 7)?;
                }
                out.write_str(if fetch_inactive { "] fi:1" } else { "]" })
            }
            LaneSelect::Dpp16 { control, fetch_inactive, bound_control, bank_mask, row_mask } => {
                immediate::dpp_control(out, control)?;
                write!(out, " row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}")?;
                out.write_str(if bound_control { " bound_ctrl:1" } else { "" })?;
                out.write_str(if fetch_inactive { " fi:1" } else { "" })
            }
        }
    }

    fn write_dual(&self, out: &mut Formatter<'_>) -> Result {
        write_dual_half(
            out,
            self.instruction.opcode,
            self.instruction.destination,
            &self.instruction.sources,
        )?;
        let Some(second) = &self.instruction.dual else {
            return Ok(());
        };
        out.write_str(" :: ")?;
        write_dual_half(out, second.opcode, second.destination, &second.sources)
    }

    /// SOPP and SOPK: an immediate whose spelling depends on the operation.
    fn write_immediate_form(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.instruction.opcode.mnemonic())?;
        let info = self.operands();
        if info.properties.contains(Properties::NO_IMMEDIATE) {
            return Ok(());
        }
        let mut separator = Separator::new();
        if self.instruction.destination != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(self.instruction.destination, info.destination))?;
        }
        if self.instruction.opcode != Opcode::SEndpgm || self.instruction.immediate != 0 {
            separator.next(out)?;
            immediate::immediate(out, self.instruction.opcode, self.instruction.immediate as u32)?;
        }
        match self.instruction.sources[0] {
            Operand::None => Ok(()),
            operand => write!(out, ", {}", self.value(operand, info.sources[0])),
        }
    }

    fn write_scalar_memory(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.instruction.opcode.mnemonic())?;
        if self.instruction.opcode == Opcode::SDcacheInv {
            return Ok(());
        }
        let info = self.operands();
        let [base, offset, length] = self.instruction.sources;
        let length = match length {
            Operand::Inline(code) => Some(code.saturating_sub(128)),
            _ => None,
        };
        let is_probe = matches!(self.instruction.opcode, Opcode::SAtcProbe | Opcode::SAtcProbeBuffer);
        let mut separator = Separator::new();
        if self.instruction.destination != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(self.instruction.destination, info.destination))?;
        }
        if let Some(length) = length.filter(|_| is_probe) {
            separator.next(out)?;
            write!(out, "{length}")?;
        }
        if base != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(base, info.sources[0]))?;
        }
        let offset = self.value(offset, info.sources[1]);
        separator.next(out)?;
        match length.filter(|_| !is_probe) {
            Some(length) => {
                immediate::signed_hexadecimal(out, self.instruction.immediate)?;
                write!(out, ", {offset}, {length}")?;
            }
            None if offset.is_null() => immediate::signed_hexadecimal(out, self.instruction.immediate)?,
            None => {
                write!(out, "{offset} offset:")?;
                immediate::signed_hexadecimal(out, self.instruction.immediate)?;
            }
        }
        hint::write(self.instruction, out)
    }

    fn write_local(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.instruction.opcode.mnemonic())?;
        let info = self.operands();
        let mut separator = Separator::new();
        if self.instruction.destination != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(self.instruction.destination, info.destination))?;
        }
        for (source, kind) in self.instruction.sources.iter().zip(info.sources) {
            if *source != Operand::None {
                separator.next(out)?;
                write!(out, "{}", self.value(*source, kind))?;
            }
        }
        match self.instruction.encoding {
            Encoding::Vdsdir => {
                immediate::direct_load(out, self.instruction.opcode, self.instruction.immediate as u32)
            }
            _ => immediate::local_offset(out, self.instruction.opcode, self.instruction.immediate as u32),
        }
    }

    fn write_flat(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.instruction.opcode.mnemonic())?;
        let info = self.operands();
        let [address, data, base] = self.instruction.sources;
        let mut separator = Separator::new();
        if self.instruction.destination != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(self.instruction.destination, info.destination))?;
        }
        if info.sources[0].is_present() {
            separator.next(out)?;
            match address {
                Operand::Vector(first) => {
                    let offset_only = self.instruction.encoding == Encoding::Vscratch
                        || (self.instruction.encoding == Encoding::Vglobal && base != Operand::None);
                    let dwords = if offset_only { 1 } else { 2 };
                    write!(out, "{}", Registers { file: "v", first: first.into(), dwords })?;
                }
                _ => out.write_str("off")?,
            }
        }
        if data != Operand::None {
            separator.next(out)?;
            write!(out, "{}", self.value(data, info.sources[1]))?;
        }
        if info.sources[2].is_present() {
            separator.next(out)?;
            match base {
                Operand::None => out.write_str("off")?,
                _ => write!(out, "{}", self.value(base, info.sources[2]))?,
            }
        }
        if self.instruction.immediate != 0 {
            write!(out, " offset:{}", self.instruction.immediate)?;
        }
        hint::write(self.instruction, out)
    }

    fn write_buffer(&self, out: &mut Formatter<'_>) -> Result {
        let info = self.operands();
        let [address, data, resource] = self.instruction.sources;
        let offset_enable = self.instruction.address_flags & 1 != 0;
        let index_enable = self.instruction.address_flags & 2 != 0;
        let fail_flag = self.instruction.address_flags & 4 != 0;
        let (data, kind) = match data {
            Operand::None => (self.instruction.destination, info.destination),
            data => (data, info.sources[1]),
        };
        out.write_str(self.instruction.opcode.mnemonic())?;
        if let Operand::Vector(first) = data {
            let dwords = kind.data.dwords() + u32::from(fail_flag);
            write!(out, " {}, ", Registers { file: "v", first: first.into(), dwords })?;
        }
        match address {
            Operand::Vector(first) => {
                let dwords = u32::from(offset_enable) + u32::from(index_enable);
                write!(out, "{}", Registers { file: "v", first: first.into(), dwords })?;
            }
            _ => out.write_str("off")?,
        }
        let soffset = self.value(self.instruction.soffset, OperandKind { data: DataType::U32, ..kind });
        write!(out, ", {}, {soffset}", self.value(resource, info.sources[2]))?;
        immediate::buffer_format(
            out,
            self.instruction.opcode,
            u32::from(self.instruction.address_flags >> 8),
        )?;
        out.write_str(if index_enable { " idxen" } else { "" })?;
        out.write_str(if offset_enable { " offen" } else { "" })?;
        if self.instruction.immediate != 0 {
            write!(out, " offset:{}", self.instruction.immediate)?;
        }
        hint::write(self.instruction, out)?;
        out.write_str(if fail_flag { " tfe" } else { "" })
    }
}

/// ` name:[b0,b1,…]`, low bit first.
fn write_bits(out: &mut Formatter<'_>, name: &str, bits: u32, count: u32) -> Result {
    write!(out, " {name}:[")?;
    for index in 0..count {
        write!(out, "{}{}", if index > 0 { "," } else { "" }, bits >> index & 1)?;
    }
    out.write_str("]")
}

fn write_dual_half(
    out: &mut Formatter<'_>,
    opcode: Opcode,
    destination: Operand,
    sources: &[Operand; 3],
) -> Result {
    let info = opcode.operands();
    let name = opcode.mnemonic().trim_start_matches("v_");
    write!(out, "v_dual_{name} {}", dual_value(destination, info.destination))?;
    for (index, (source, kind)) in sources.iter().zip(info.sources).enumerate() {
        match *source {
            Operand::Literal(value) if is_mandatory_constant(opcode, index) => write!(out, ", {value:#x}")?,
            // The implicit vcc of cndmask is not written.
            operand if operand != Operand::None && kind.data != DataType::Mask => {
                write!(out, ", {}", dual_value(operand, kind))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether source `index` is the constant that fmaak and fmamk always carry; it is written in hexadecimal.
fn is_mandatory_constant(opcode: Opcode, index: usize) -> bool {
    match opcode {
        Opcode::VFmaakF32 | Opcode::VFmaakF16 | Opcode::SFmaakF32 => index == 2,
        Opcode::VFmamkF32 | Opcode::VFmamkF16 | Opcode::SFmamkF32 => index == 1,
        _ => false,
    }
}

/// An operand of a dual operation, which only wave32 has.
fn dual_value(operand: Operand, kind: OperandKind) -> Value {
    Value { operand, kind, wave_size: WaveSize::Wave32 }
}
