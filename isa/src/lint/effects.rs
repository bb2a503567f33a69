//! Which registers an instruction reads and writes, on which unit, and which counter tells that a result is there.
//!
//! Contract: derived from the decoded form and the operand tables; implicit registers (vcc, scc, m0) included, exec and
//! null left out (exec is outside every rule here). Counters: instruction set reference §4.1.

use crate::instruction::{Encoding, Instruction, Operand};
use crate::opcode::{Opcode, OperandKind, Properties};
use crate::resources::WaveSize;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Result};
use core::ops::Range;

pub(super) const VCC_LO: usize = 106;
const NULL: u8 = 124;
pub(super) const M0: usize = 125;
const EXEC_LO: u8 = 126;
/// Number of v0.
pub(super) const VECTOR_FIRST: usize = 128;
/// The condition code.
pub(super) const SCC: usize = VECTOR_FIRST + 256;
/// Stands for what LDS stores write.
pub(super) const LDS: usize = SCC + 1;
/// All of them.
pub(super) const REGISTER_COUNT: usize = LDS + 1;
/// `vccz` and `scc` as source codes (reference §2).
const SPECIAL_VCCZ: u8 = 251;
const SPECIAL_SCC: u8 = 253;

/// Registers in sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registers {
    first: u16,
    count: u16,
}

impl Registers {
    pub(super) fn new(first: usize, count: usize) -> Self {
        Self { first: first as u16, count: count as u16 }
    }

    pub(super) fn range(self) -> Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

impl Display for Registers {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let first = self.first as usize;
        let last = first + self.count as usize - 1;
        match (first, last) {
            (106, 106) => out.write_str("vcc_lo"),
            (107, 107) => out.write_str("vcc_hi"),
            (106, 107) => out.write_str("vcc"),
            (M0, _) => out.write_str("m0"),
            (SCC, _) => out.write_str("scc"),
            (LDS, _) => out.write_str("LDS"),
            (first, last) => {
                let (letter, base) = match first {
                    VECTOR_FIRST.. => ("v", VECTOR_FIRST),
                    108..=123 => ("ttmp", 108),
                    _ => ("s", 0),
                };
                match first == last {
                    true => write!(out, "{letter}{}", first - base),
                    false => write!(out, "{letter}[{}:{}]", first - base, last - base),
                }
            }
        }
    }
}

/// Calls `found` for each run of neighbours in `registers` for which `is_hit` holds.
pub(super) fn runs(registers: Registers, is_hit: impl Fn(usize) -> bool, mut found: impl FnMut(Registers)) {
    let mut start = None;
    for register in registers.range() {
        match (is_hit(register), start) {
            (true, None) => start = Some(register),
            (false, Some(first)) => {
                found(Registers::new(first, register - first));
                start = None;
            }
            _ => {}
        }
    }
    if let Some(first) = start {
        found(Registers::new(first, registers.range().end - first));
    }
}

/// Where an instruction executes, as far as the rules tell units apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Valu,
    Salu,
    ScalarMemory,
    /// Buffer, image and sample instructions.
    Buffer,
    /// Flat, global and scratch instructions.
    Flat,
    /// LDS and direct loads.
    Lds,
    Other,
}

/// Counters that guard registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Load = 0,
    Ds = 1,
    Km = 2,
    Exp = 3,
}

impl Counter {
    pub(super) const ALL: [Self; 4] = [Self::Load, Self::Ds, Self::Km, Self::Exp];

    /// The instruction that waits for it.
    pub(super) fn wait(self) -> &'static str {
        match self {
            Self::Load => "s_wait_loadcnt",
            Self::Ds => "s_wait_dscnt",
            Self::Km => "s_wait_kmcnt",
            Self::Exp => "s_wait_expcnt",
        }
    }
}

/// What an instruction does to registers.
#[derive(Clone, Debug)]
pub(super) struct Effects {
    pub(super) unit: Unit,
    pub(super) reads: Vec<Registers>,
    pub(super) writes: Vec<Registers>,
    /// Counters that the instruction raises; its writes arrive when all of them have come down.
    pub(super) counters: Vec<Counter>,
    /// Returns out of order with everything of its counters.
    pub(super) is_unordered: bool,
    /// False where the registers cannot be told from the words.
    pub(super) is_analysed: bool,
}

impl Effects {
    pub(super) fn of(instruction: &Instruction, wave_size: WaveSize) -> Self {
        let mut effects = Self {
            unit: unit(instruction.encoding),
            reads: Vec::new(),
            writes: Vec::new(),
            counters: Vec::new(),
            is_unordered: false,
            is_analysed: is_analysed(instruction),
        };
        effects.explicit(instruction, wave_size);
        effects.implicit(instruction, wave_size);
        effects.count(instruction);
        effects
    }

    /// The operands.
    fn explicit(&mut self, instruction: &Instruction, wave_size: WaveSize) {
        let info = instruction.opcode.operands_for(wave_size);
        let flags = instruction.address_flags as usize;
        for (index, source) in instruction.sources.iter().enumerate() {
            let count = match (instruction.encoding, index) {
                // With a scalar base the address is one register.
                (Encoding::Vglobal, 0) if instruction.sources[2] != Operand::None => 1,
                (Encoding::Vbuffer, 0) => (flags & 1) + (flags >> 1 & 1),
                _ => width(info.sources[index], wave_size),
            };
            self.read(*source, count);
        }
        self.read(instruction.soffset, 1);
        let fail_flag = match instruction.encoding {
            Encoding::Vbuffer => flags >> 2 & 1,
            _ => 0,
        };
        self.write(instruction.destination, width(info.destination, wave_size) + fail_flag);
        self.write(instruction.destination2, width(info.destination2, wave_size));
        if info.properties.contains(Properties::ACCUMULATES) && reads_destination(instruction) {
            self.read(instruction.destination, width(info.destination, wave_size));
        }
        if let Some(dual) = &instruction.dual {
            let info = dual.opcode.operands();
            for (source, kind) in dual.sources.iter().zip(&info.sources) {
                self.read(*source, width(*kind, wave_size));
            }
            if info.properties.contains(Properties::ACCUMULATES) {
                self.read(dual.destination, 1);
            }
            self.write(dual.destination, 1);
        }
    }

    /// What the operands do not say.
    fn implicit(&mut self, instruction: &Instruction, wave_size: WaveSize) {
        use Opcode::*;
        let opcode = instruction.opcode;
        match opcode {
            VDivFmasF32 | VDivFmasF64 | SCbranchVccz | SCbranchVccnz => {
                self.reads.push(Registers::new(VCC_LO, wave_size.lanes() as usize / 32));
            }
            VSwapB32 => self.write(instruction.sources[0], 1),
            // Sparse operations add to the destination.
            _ if opcode.mnemonic().starts_with("v_swmmac") => {
                let count = opcode.operands_for(wave_size).destination.data.dwords() as usize;
                self.read(instruction.destination, count);
            }
            SCbranchScc0 | SCbranchScc1 | SCselectB32 | SCselectB64 | SCmovB32 | SCmovB64 | SCmovkI32
            | SAddCoCiU32 | SSubCoCiU32 => self.reads.push(Registers::new(SCC, 1)),
            SBarrierSignal | SBarrierSignalIsfirst => self.reads.push(Registers::new(LDS, 1)),
            _ => {}
        }
        if may_write_condition(instruction) {
            self.writes.push(Registers::new(SCC, 1));
        }
        if stores_to_lds(instruction) {
            self.writes.push(Registers::new(LDS, 1));
        }
    }

    /// The counters.
    fn count(&mut self, instruction: &Instruction) {
        use Opcode::*;
        let returns = instruction.destination != Operand::None;
        match instruction.encoding {
            Encoding::Vglobal | Encoding::Vscratch | Encoding::Vbuffer
                if returns || instruction.opcode == GlobalInv =>
            {
                self.counters.push(Counter::Load);
            }
            Encoding::Vflat => {
                self.is_unordered = true;
                self.counters.push(Counter::Ds);
                if returns {
                    self.counters.push(Counter::Load);
                }
            }
            // Whether ds_nop counts is not documented; that it does not is the careful assumption.
            Encoding::Vds if instruction.opcode != DsNop => self.counters.push(Counter::Ds),
            Encoding::Vdsdir => self.counters.push(Counter::Exp),
            Encoding::Smem if returns => self.counters.push(Counter::Km),
            _ => {}
        }
        if matches!(
            instruction.opcode,
            SSendmsgRtnB32 | SSendmsgRtnB64 | SGetBarrierState | SBarrierSignalIsfirst | SBarrierLeave
        ) {
            self.counters.push(Counter::Km);
        }
    }

    fn read(&mut self, operand: Operand, count: usize) {
        match operand {
            Operand::Special(SPECIAL_VCCZ) => self.reads.push(Registers::new(VCC_LO, 1)),
            Operand::Special(SPECIAL_SCC) => self.reads.push(Registers::new(SCC, 1)),
            operand => self.reads.extend(registers(operand, count)),
        }
    }

    fn write(&mut self, operand: Operand, count: usize) {
        self.writes.extend(registers(operand, count));
    }
}

fn registers(operand: Operand, count: usize) -> Option<Registers> {
    match operand {
        _ if count == 0 => None,
        Operand::Scalar(NULL | EXEC_LO..) => None,
        Operand::Scalar(code) => Some(Registers::new(code.into(), count)),
        Operand::Vector(number) => Some(Registers::new(VECTOR_FIRST + number as usize, count)),
        _ => None,
    }
}

/// Registers of an operand.
fn width(kind: OperandKind, wave_size: WaveSize) -> usize {
    kind.dwords_for(wave_size) as usize
}

fn unit(encoding: Encoding) -> Unit {
    use Encoding::*;
    match encoding {
        Sop1 | Sop2 | Sopk | Sopc | Sopp => Unit::Salu,
        Smem => Unit::ScalarMemory,
        Vop1 | Vop2 | Vopc | Vop3 | Vop3sd | Vop3p | Vopd | Vinterp => Unit::Valu,
        Vds | Vdsdir => Unit::Lds,
        Vflat | Vscratch | Vglobal => Unit::Flat,
        Vbuffer | Vimage | Vsample => Unit::Buffer,
        Vexport => Unit::Other,
    }
}

/// Relative moves name a register by m0; graphics instructions are decoded by class only.
fn is_analysed(instruction: &Instruction) -> bool {
    use Encoding::*;
    let mnemonic = instruction.opcode.mnemonic();
    let is_relative = mnemonic.contains("_movrel") || mnemonic.contains("_swaprel");
    !is_relative && !matches!(instruction.encoding, Vinterp | Vimage | Vsample | Vexport)
}

/// Of the operations that keep something of the destination: those that compute with it. The others replace a lane or a
/// half, which is no use of what is there.
fn reads_destination(instruction: &Instruction) -> bool {
    use Opcode::*;
    match instruction.encoding {
        Encoding::Vds | Encoding::Vflat | Encoding::Vscratch | Encoding::Vglobal | Encoding::Vbuffer => false,
        _ => !matches!(
            instruction.opcode,
            VWritelaneB32
                | VCvtPkFp8F32
                | VCvtPkBf8F32
                | VCvtSrFp8F32
                | VCvtSrBf8F32
                | VFmaMixloF16
                | VFmaMixhiF16
        ),
    }
}

/// Whether scc may be written. Only used to tell that nothing wrote it, so operations in doubt are counted in.
fn may_write_condition(instruction: &Instruction) -> bool {
    use Opcode::*;
    match instruction.encoding {
        Encoding::Sopc => true,
        Encoding::Sop2 => !matches!(instruction.opcode, SCselectB32 | SCselectB64),
        Encoding::Sop1 => {
            let is_move = matches!(instruction.opcode, SMovB32 | SMovB64 | SCmovB32 | SCmovB64);
            !is_move && !matches!(instruction.opcode, SBarrierSignal | SGetpcB64 | SSetpcB64)
        }
        _ => matches!(instruction.opcode, SAddkCoI32 | SMulkI32 | SBarrierLeave),
    }
}

fn stores_to_lds(instruction: &Instruction) -> bool {
    let mnemonic = instruction.opcode.mnemonic();
    match instruction.encoding {
        Encoding::Vds => {
            let reads_only = ["ds_load", "ds_nop", "ds_swizzle", "ds_permute", "ds_bpermute"];
            !reads_only.iter().any(|start| mnemonic.starts_with(start))
        }
        Encoding::Vflat => !mnemonic.starts_with("flat_load"),
        _ => false,
    }
}
