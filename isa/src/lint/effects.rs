//! Which registers an instruction reads and writes, on which unit, and which counter covers its result.
//!
//! Contract: derived from the decoded form and the operand tables. Implicit registers (vcc, scc, m0) are included;
//! exec and null are left out (exec is outside every rule here). A register that m0 selects is in
//! [`Effects::relative`] only. A result that preserves a lane or a half of its register does not count as a read of
//! it. Counters: instruction set reference §4.1. Cost: some allocations; meant to be computed once per instruction
//! of a program.

use crate::encoding::Encoding;
use crate::instruction::{Instruction, Operand};
use crate::opcode::{Opcode, OperandKind, Properties};
use crate::resources::WaveSize;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Result};
use core::ops::Range;

/// Number of vcc_lo.
pub const VCC_LO: usize = 106;
const NULL: u8 = 124;
/// Number of scalar registers followed by analyses of values and hazards: s0..s105 and vcc.
pub(super) const TRACKED_REGISTERS: usize = 108;
/// Number of m0.
pub const M0: usize = 125;
const EXEC_LO: u8 = 126;
/// Number of v0.
pub const VECTOR_FIRST: usize = 128;
/// The condition code.
pub const SCC: usize = VECTOR_FIRST + 256;
/// A pseudo-register for what LDS stores write.
pub const LDS: usize = SCC + 1;
/// Number of all registers.
pub const REGISTER_COUNT: usize = LDS + 1;
/// `vccz` and `scc` as source codes (instruction set reference §2).
const SPECIAL_VCCZ: u8 = 251;
const SPECIAL_SCC: u8 = 253;

/// Messages of `s_sendmsg` that carry m0: interrupt, and tessellation factors. Others (3: release the VGPRs) have no
/// payload.
const MESSAGES_WITH_PAYLOAD: core::ops::RangeInclusive<i32> = 1..=2;
/// The message within the immediate of `s_sendmsg`.
const MESSAGE_MASK: i32 = 0xff;

/// Consecutive registers of one file: scalar by operand code, vector from [`VECTOR_FIRST`], then [`SCC`] and
/// [`LDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Registers {
    first: u16,
    count: u16,
}

impl Registers {
    /// `count` registers from number `first`, both below [`REGISTER_COUNT`].
    pub fn new(first: usize, count: usize) -> Self {
        Self { first: first as u16, count: count as u16 }
    }

    /// Their numbers.
    pub fn range(self) -> Range<usize> {
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

/// Calls `found` for each run of adjacent `registers` for which `is_hit` is true.
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

/// The unit that executes an instruction, as far as the rules distinguish units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Vector arithmetic.
    Valu,
    /// Scalar arithmetic and control.
    Salu,
    /// SMEM.
    ScalarMemory,
    /// Buffer, image and sample instructions.
    Buffer,
    /// Flat, global and scratch instructions.
    Flat,
    /// LDS and direct loads.
    Lds,
    /// Exports.
    Other,
}

/// Counters that guard registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// LOADcnt.
    Load = 0,
    /// DScnt.
    Ds = 1,
    /// KMcnt.
    Km = 2,
    /// EXPcnt.
    Exp = 3,
}

/// Registers selected by adding m0 to their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relative {
    /// The source registers.
    pub source: Option<Registers>,
    /// The destination registers.
    pub destination: Option<Registers>,
    /// The destination is also read: `v_swaprel` exchanges the two.
    pub exchanges: bool,
    /// m0\[9:0\] is added to the source and m0\[25:16\] to the destination; otherwise all of m0 is added to both.
    pub is_split: bool,
}

impl Counter {
    /// All counters, by number.
    pub const ALL: [Self; 4] = [Self::Load, Self::Ds, Self::Km, Self::Exp];

    /// The instruction that waits for it.
    pub fn wait(self) -> &'static str {
        match self {
            Self::Load => "s_wait_loadcnt",
            Self::Ds => "s_wait_dscnt",
            Self::Km => "s_wait_kmcnt",
            Self::Exp => "s_wait_expcnt",
        }
    }
}

/// The purpose of registers that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its results are computed from them.
    Value,
    /// They control what it does: an address, a lane, a register number, a message, a jump.
    Control,
    /// They go to memory or LDS.
    Data,
}

/// The part of a register that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bits 15 to 0, or some of them.
    Low,
    /// Bits 31 to 16, or some of them.
    High,
    /// All of it.
    Whole,
}

impl Part {
    /// The halves in this part: 0 is the low one.
    pub fn halves(self) -> Range<usize> {
        match self {
            Self::Low => 0..1,
            Self::High => 1..2,
            Self::Whole => 0..2,
        }
    }
}

/// Registers that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The registers.
    pub registers: Registers,
    /// Their purpose.
    pub role: Role,
}

/// The effects of an instruction on registers.
#[derive(Clone, Debug)]
pub struct Effects {
    /// The unit that executes it.
    pub unit: Unit,
    /// Registers that it reads, by operand: source 0 first, if it is a register.
    pub reads: Vec<Read>,
    /// Registers that it writes.
    pub writes: Vec<Registers>,
    /// Registers that m0 selects.
    pub relative: Option<Relative>,
    /// Counters that the instruction raises; its writes have arrived when all of them have come down.
    pub counters: Vec<Counter>,
    /// The part of each data register that a load or store moves.
    pub moved: Part,
    /// Whether it raises STOREcnt, which guards no register.
    pub is_store: bool,
    /// False if the registers cannot be determined from the words.
    pub is_analysed: bool,
}

impl Effects {
    /// The effects of `instruction`, decoded for `wave_size`.
    pub fn of(instruction: &Instruction, wave_size: WaveSize) -> Self {
        let mut effects = Self {
            unit: unit(instruction.encoding),
            reads: Vec::new(),
            writes: Vec::new(),
            relative: None,
            counters: Vec::new(),
            moved: moved(instruction),
            is_store: false,
            is_analysed: is_analysed(instruction),
        };
        if effects.is_relative(instruction) {
            effects.read_implicit(M0, 1, Role::Control);
        } else {
            effects.explicit(instruction, wave_size);
        }
        effects.implicit(instruction, wave_size);
        effects.count(instruction);
        effects
    }

    /// The counter whose outstanding results the writes may overwrite without a wait. Only LDS writes its registers
    /// in the order of its counter: on gfx12, memory loads write theirs in any order, though the counter comes down
    /// in order (instruction set reference §4.1).
    pub fn in_order_counter(&self) -> Option<Counter> {
        (self.counters == [Counter::Ds]).then_some(Counter::Ds)
    }

    /// Enters the operands of a relative move. Returns whether it is one.
    fn is_relative(&mut self, instruction: &Instruction) -> bool {
        use Opcode::*;
        let opcode = instruction.opcode;
        let (has_source, has_destination) = match opcode {
            SMovrelsB32 | SMovrelsB64 | VMovrelsB32 => (true, false),
            SMovreldB32 | SMovreldB64 | VMovreldB32 => (false, true),
            SMovrelsd2B32 | VMovrelsdB32 | VMovrelsd2B32 | VSwaprelB32 => (true, true),
            _ => return false,
        };
        let info = opcode.operands();
        let source = registers(instruction.sources[0], info.sources[0].data.dwords() as usize);
        let destination = registers(instruction.destination, info.destination.data.dwords() as usize);
        if !has_source {
            self.reads.extend(source.map(|registers| Read { registers, role: Role::Value }));
        }
        if !has_destination {
            self.writes.extend(destination);
        }
        self.relative = Some(Relative {
            source: source.filter(|_| has_source),
            destination: destination.filter(|_| has_destination),
            exchanges: opcode == VSwaprelB32,
            is_split: matches!(opcode, SMovrelsd2B32 | VMovrelsd2B32 | VSwaprelB32),
        });
        true
    }

    /// Explicit operands.
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
            self.read(*source, count, role(instruction, index), wave_size);
        }
        self.read(instruction.soffset, 1, Role::Control, wave_size);
        let fail_flag = match instruction.encoding {
            Encoding::Vbuffer => flags >> 2 & 1,
            _ => 0,
        };
        self.write(instruction.destination, width(info.destination, wave_size) + fail_flag);
        self.write(instruction.destination2, width(info.destination2, wave_size));
        if info.properties.contains(Properties::ACCUMULATES) && reads_destination(instruction) {
            self.read(instruction.destination, width(info.destination, wave_size), Role::Value, wave_size);
        }
        if let Some(dual) = &instruction.dual {
            let info = dual.opcode.operands();
            for (source, kind) in dual.sources.iter().zip(&info.sources) {
                self.read(*source, width(*kind, wave_size), Role::Value, wave_size);
            }
            if info.properties.contains(Properties::ACCUMULATES) {
                self.read(dual.destination, 1, Role::Value, wave_size);
            }
            self.write(dual.destination, 1);
        }
    }

    /// Implicit operands.
    fn implicit(&mut self, instruction: &Instruction, wave_size: WaveSize) {
        use Opcode::*;
        let opcode = instruction.opcode;
        match opcode {
            VDivFmasF32 | VDivFmasF64 => {
                self.read_implicit(VCC_LO, wave_size.lanes() as usize / 32, Role::Value);
            }
            SCbranchVccz | SCbranchVccnz => {
                self.read_implicit(VCC_LO, wave_size.lanes() as usize / 32, Role::Control);
            }
            VSwapB32 | VSwapB16 => self.write(instruction.sources[0], 1),
            SCbranchScc0 | SCbranchScc1 => self.read_implicit(SCC, 1, Role::Control),
            SCselectB32 | SCselectB64 | SCmovB32 | SCmovB64 | SCmovkI32 | SAddCoCiU32 | SSubCoCiU32 => {
                self.read_implicit(SCC, 1, Role::Value);
            }
            // m0 holds their address, or what they send.
            DsStoreAddtidB32 | DsLoadAddtidB32 | DsAppend | DsConsume | DsParamLoad | DsDirectLoad
            | STtracedata => self.read_implicit(M0, 1, Role::Control),
            SSendmsg | SSendmsghalt
                if MESSAGES_WITH_PAYLOAD.contains(&(instruction.immediate & MESSAGE_MASK)) =>
            {
                self.read_implicit(M0, 1, Role::Control);
            }
            SBarrierSignal | SBarrierSignalIsfirst => self.read_implicit(LDS, 1, Role::Control),
            _ => {}
        }
        if writes_condition(instruction) {
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
                self.counters.push(Counter::Ds);
                match returns {
                    true => self.counters.push(Counter::Load),
                    false => self.is_store = true,
                }
            }
            Encoding::Vglobal | Encoding::Vscratch | Encoding::Vbuffer => self.is_store = true,
            // Whether ds_nop counts is not documented; assuming that it does not is the conservative choice.
            Encoding::Vds if instruction.opcode != DsNop => self.counters.push(Counter::Ds),
            Encoding::Vdsdir => self.counters.push(Counter::Exp),
            Encoding::Smem if returns => self.counters.push(Counter::Km),
            _ => {}
        }
        if matches!(
            instruction.opcode,
            SSendmsg
                | SSendmsgRtnB32
                | SSendmsgRtnB64
                | SGetBarrierState
                | SBarrierSignalIsfirst
                | SBarrierLeave
        ) {
            self.counters.push(Counter::Km);
        }
    }

    fn read(&mut self, operand: Operand, count: usize, role: Role, wave_size: WaveSize) {
        let registers = match operand {
            Operand::Special(SPECIAL_VCCZ) => Some(Registers::new(VCC_LO, wave_size.lanes() as usize / 32)),
            Operand::Special(SPECIAL_SCC) => Some(Registers::new(SCC, 1)),
            operand => registers(operand, count),
        };
        self.reads.extend(registers.map(|registers| Read { registers, role }));
    }

    fn read_implicit(&mut self, first: usize, count: usize, role: Role) {
        self.reads.push(Read { registers: Registers::new(first, count), role });
    }

    fn write(&mut self, operand: Operand, count: usize) {
        self.writes.extend(registers(operand, count));
    }
}

/// The registers of an operand; the decoder gives none to what has no width.
fn registers(operand: Operand, count: usize) -> Option<Registers> {
    match operand {
        Operand::Scalar(NULL | EXEC_LO..) => None,
        Operand::Scalar(code) => Some(Registers::new(code.into(), count)),
        Operand::Vector(number) => Some(Registers::new(VECTOR_FIRST + number as usize, count)),
        _ => None,
    }
}

/// Loads in the d16 forms preserve the other half of their register. Narrow stores use the low half, or the high
/// one in their `d16_hi` forms.
fn moved(instruction: &Instruction) -> Part {
    if matches!(unit(instruction.encoding), Unit::Valu | Unit::Salu) {
        return Part::Whole;
    }
    let mnemonic = instruction.opcode.mnemonic();
    let is_narrow_store =
        mnemonic.contains("_store_") && (mnemonic.contains("_b8") || mnemonic.contains("_b16"));
    let has_fail_flag = instruction.encoding == Encoding::Vbuffer && instruction.address_flags >> 2 & 1 != 0;
    match mnemonic {
        _ if has_fail_flag || !is_narrow_store && !mnemonic.contains("d16") => Part::Whole,
        _ if mnemonic.contains("d16_hi") => Part::High,
        // Each register holds two halves.
        _ if mnemonic.contains("_format_") && !mnemonic.ends_with("_x") => Part::Whole,
        _ => Part::Low,
    }
}

/// The role of the source at `index`.
fn role(instruction: &Instruction, index: usize) -> Role {
    use Opcode::*;
    let opcode = instruction.opcode;
    match (instruction.encoding, index) {
        // Exchanges between lanes through LDS hardware, without memory: the data exchanged, and its target lane.
        (Encoding::Vds, 0) if opcode == DsSwizzleB32 => Role::Value,
        (Encoding::Vds, 1) if matches!(opcode, DsPermuteB32 | DsBpermuteB32) => Role::Value,
        (Encoding::Vds, 1 | 2) => Role::Data,
        (Encoding::Vflat | Encoding::Vscratch | Encoding::Vglobal | Encoding::Vbuffer, 1) => Role::Data,
        (Encoding::Vop3, 1) if matches!(opcode, VReadlaneB32 | VWritelaneB32) => Role::Control,
        (encoding, _) if unit(encoding) == Unit::Valu => Role::Value,
        (Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk, _)
            if !has_side_effect(opcode) =>
        {
            Role::Value
        }
        _ => Role::Control,
    }
}

/// Scalar operations with effects beyond registers: jumps, messages, barriers, sleep, hardware registers.
fn has_side_effect(opcode: Opcode) -> bool {
    use Opcode::*;
    let mnemonic = opcode.mnemonic();
    let starts = ["s_sendmsg", "s_barrier", "s_get_barrier", "s_wakeup", "s_sleep", "s_setreg"];
    matches!(opcode, SSetpcB64 | SSwappcB64 | SRfeB64 | SCallB64)
        || starts.iter().any(|start| mnemonic.starts_with(start))
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

/// Graphics instructions are decoded by class only.
fn is_analysed(instruction: &Instruction) -> bool {
    use Encoding::*;
    !matches!(instruction.encoding, Vinterp | Vimage | Vsample | Vexport)
}

/// Of the operations that preserve something of the destination, those that compute with it. The others replace a
/// lane or a half, which does not use the old value.
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

/// Whether scc is written. Moves, bit searches, multiplications without carry, packing and float arithmetic
/// preserve it.
fn writes_condition(instruction: &Instruction) -> bool {
    use Opcode::*;
    let opcode = instruction.opcode;
    let mnemonic = opcode.mnemonic();
    match instruction.encoding {
        Encoding::Sopc => true,
        Encoding::Sop2 => {
            let keeps = matches!(
                opcode,
                SMulI32
                    | SMulHiU32
                    | SMulHiI32
                    | SMulU64
                    | SAddNcU64
                    | SSubNcU64
                    | SCselectB32
                    | SCselectB64
                    | SBfmB32
                    | SBfmB64
            );
            !keeps
                && !mnemonic.starts_with("s_pack")
                && !mnemonic.ends_with("_f32")
                && !mnemonic.ends_with("_f16")
        }
        Encoding::Sop1 => {
            let starts = ["s_abs", "s_bcnt", "s_quadmask", "s_wqm", "s_not"];
            starts.iter().any(|start| mnemonic.starts_with(start))
                || mnemonic.contains("_saveexec")
                || mnemonic.contains("_wrexec")
                || opcode == SBarrierSignalIsfirst
        }
        _ => matches!(opcode, SAddkCoI32 | SBarrierLeave),
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
