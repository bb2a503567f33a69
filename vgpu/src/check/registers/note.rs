//! What is known about an instruction before it runs.
//!
//! Contract: made once per instruction of a program, from the effects table that the static lint also uses. Only
//! registers selected by m0 are resolved at run time. Cost: about a microsecond to make; some 300 bytes and two or
//! three allocations.

use zrt_isa::effects::{
    Counter, Effects, LDS, Part, Read, Registers, Relative, Role, Unit, VCC_LO, VECTOR_FIRST,
};
use zrt_isa::opcode::{Properties, RegisterFile};
use zrt_isa::resources::WaveSize;
use zrt_isa::{Encoding, Instruction, LaneSelect, Opcode, Operand};

use super::bits::Bits;
use super::finding::{Defect, Remedy};
use super::transfer::Transfer;

/// Queues of outstanding operations: one per counter that guards registers, and the stores.
pub(super) const QUEUES: usize = 5;
pub(super) const STORE_QUEUE: usize = 4;
/// In a list of waits: no wait for this queue.
pub(super) const NO_WAIT: u8 = u8::MAX;
/// Registers covered by the scalar hazard: s0..s105 and vcc.
pub(super) const HAZARD_REGISTERS: usize = 108;
/// Scope SYS (instruction set reference §4.3).
const SCOPE_SYSTEM: u8 = 3;
/// Scalar values that a dual operation may read, including a shared literal (instruction set reference §6).
const DUAL_SCALARS_MAX: usize = 2;
const DUAL_BANKS: u8 = 4;
/// The halves of a register.
const LOW_BITS: u32 = 0xffff;
const HIGH_BITS: u32 = 0xffff_0000;
/// Scalar registers that m0 can reach.
const SCALAR_INDEX_END: usize = 106;

/// Class of an instruction for the scalar hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HazardClass {
    Valu,
    /// `counts`: whether it is among the instructions that let a write age.
    Salu {
        counts: bool,
    },
    /// `s_wait_alu` with this immediate.
    Wait(u16),
    /// A SALU jump to a target outside the known program.
    Leave,
    /// SMEM and buffer instructions end all hazards.
    Clear,
    /// `ds_nop`.
    Idle,
    Other,
}

/// Operands of a matrix operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub(super) destination: Registers,
    /// A, B and the index of a sparse operation.
    pub(super) inputs: [Option<Registers>; 3],
}

/// Class of an instruction for the other hazards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    None,
    /// An ordinary VALU instruction.
    Valu,
    /// A VALU instruction that the hardware drops.
    Nop,
    /// Writes EXEC.
    Compare,
    /// Exchanges lanes.
    Exchange,
    Matrix,
    /// A non-atomic store of system scope.
    SystemStore,
    Scratch,
}

/// What is known about an instruction before it runs.
#[derive(Clone, Debug)]
pub struct Note {
    pub(super) reads: Bits,
    pub(super) writes: Bits,
    /// Registers read or written.
    pub(super) touched: Bits,
    pub(super) hazard_reads: u128,
    pub(super) hazard_writes: u128,
    /// The register pairs that it reads.
    pub(super) hazard_pairs: u128,
    pub(super) hazard: HazardClass,
    pub(super) special: Special,
    /// Queues that it raises.
    pub(super) raises: u8,
    pub(super) has_waits: bool,
    pub(super) is_relative: bool,
    /// True if only the touched registers and the scalar hazard can cause a finding.
    pub(super) is_plain: bool,
    /// True if it writes one lane, whichever lanes are active.
    pub(super) writes_lane: bool,
    pub(super) lane_count: u8,
    /// True if a source may come from inactive lanes, or a result may go to them.
    pub(super) crosses_lanes: bool,
    /// True if part of the destination may be preserved in active lanes: a half, or lanes that the instruction
    /// selects.
    pub(super) keeps: bool,
    /// True if its data goes to private memory.
    pub(super) is_private: bool,
    /// Low register and immediate of the address that decides whether its data goes to private memory.
    pub(super) flat_address: Option<(u8, i32)>,
    /// The part of each data register that a load or store moves.
    pub(super) moved: Part,
    /// Bits of each dword that a load writes.
    pub(super) loaded_bits: u32,
    /// Bytes that it moves.
    pub(super) transfer: Option<Box<Transfer>>,
    /// Bits of each dword that a store reads.
    pub(super) stored_bits: u32,
    /// The counter whose outstanding results it may overwrite.
    pub(super) ordered: Option<Counter>,
    pub(super) waits: [u8; QUEUES],
    pub(super) read_list: Box<[Read]>,
    pub(super) write_list: Box<[Registers]>,
    pub(super) matrix: Option<Box<Matrix>>,
    pub(super) relative: Option<Box<Relative>>,
    /// Defects that occur whenever it executes.
    pub(super) dual_defects: Box<[(Defect, Remedy)]>,
}

impl Note {
    /// The note of `instruction`, decoded for `wave_size`.
    pub fn new(instruction: &Instruction, wave_size: WaveSize) -> Self {
        let effects = Effects::of(instruction, wave_size);
        let matrix = matrix(instruction, &effects);
        let raises = effects.counters.iter().fold(0, |raises, &counter| raises | 1 << counter as u8)
            | u8::from(effects.is_store) << STORE_QUEUE;
        let waits = waits(instruction);
        let mut note = Self {
            reads: Bits::default(),
            writes: Bits::default(),
            touched: Bits::default(),
            hazard_reads: 0,
            hazard_writes: 0,
            hazard_pairs: 0,
            hazard: hazard_class(instruction, effects.unit),
            special: special(instruction, effects.unit, matrix.is_some()),
            raises,
            has_waits: waits != [NO_WAIT; QUEUES],
            is_relative: effects.relative.is_some(),
            is_plain: false,
            writes_lane: instruction.opcode == Opcode::VWritelaneB32,
            lane_count: wave_size.lanes() as u8,
            crosses_lanes: crosses_lanes(instruction),
            keeps: keeps(instruction, &effects),
            is_private: instruction.encoding == Encoding::Vscratch,
            flat_address: match (instruction.encoding, instruction.sources[0]) {
                (Encoding::Vflat, Operand::Vector(register)) => Some((register, instruction.immediate)),
                _ => None,
            },
            moved: effects.moved,
            loaded_bits: part_bits(effects.moved),
            transfer: Transfer::of(instruction).map(Box::new),
            stored_bits: stored_bits(instruction, effects.moved),
            ordered: effects.in_order_counter(),
            waits,
            read_list: reads(instruction, &effects),
            write_list: effects.writes.iter().filter(|writes| writes.range().start != LDS).copied().collect(),
            matrix: matrix.map(Box::new),
            relative: effects.relative.map(Box::new),
            dual_defects: dual_defects(instruction),
        };
        note.summarise();
        note.is_plain = !note.is_relative
            && !note.moves_counters()
            && !note.writes_lane
            && matches!(note.special, Special::None | Special::Nop | Special::Valu)
            && matches!(note.hazard, HazardClass::Valu | HazardClass::Salu { .. } | HazardClass::Other)
            && note.dual_defects.is_empty();
        note
    }

    /// The instruction with the registers that `m0` selects. Numbers beyond the register file select nothing; that
    /// is a separate fault.
    #[cold]
    pub(super) fn resolved(&self, m0: u32) -> Self {
        let mut note = self.clone();
        let Some(relative) = self.relative.as_deref().copied() else { return note };
        let (source_offset, destination_offset) = match relative.is_split {
            true => (m0 & 0x3ff, m0 >> 16 & 0x3ff),
            false => (m0, m0),
        };
        let source = relative.source.and_then(|registers| shifted(registers, source_offset));
        let destination = relative.destination.and_then(|registers| shifted(registers, destination_offset));
        let (mut reads, mut writes) = (self.read_list.to_vec(), self.write_list.to_vec());
        let as_read = |registers| Read { registers, role: Role::Value };
        reads.extend(source.map(as_read));
        writes.extend(destination);
        if relative.exchanges {
            reads.extend(destination.map(as_read));
            writes.extend(source);
        }
        (note.read_list, note.write_list) = (reads.into(), writes.into());
        note.summarise();
        note
    }

    /// Whether it may change a counter.
    pub fn moves_counters(&self) -> bool {
        self.has_waits || self.raises != 0
    }

    /// Computes the sets from the lists.
    fn summarise(&mut self) {
        for read in &self.read_list {
            self.reads.insert_all(read.registers);
            self.hazard_reads |= hazard_registers(read.registers);
        }
        for &registers in &self.write_list {
            self.writes.insert_all(registers);
            self.hazard_writes |= hazard_registers(registers);
        }
        self.touched = self.reads;
        self.touched.add(&self.writes);
        self.hazard_pairs = pairs(self.hazard_reads);
    }
}

/// `registers` moved up by `offset`, if that stays in the same file.
fn shifted(registers: Registers, offset: u32) -> Option<Registers> {
    let range = registers.range();
    let end = if range.start >= VECTOR_FIRST { VECTOR_FIRST + 256 } else { SCALAR_INDEX_END };
    let first = range.start.checked_add(offset as usize)?;
    (first.checked_add(range.len())? <= end).then(|| Registers::new(first, range.len()))
}

/// Sets both halves of each pair.
fn pairs(registers: u128) -> u128 {
    const EVEN: u128 = u128::MAX / 3;
    let low = (registers | registers >> 1) & EVEN;
    low | low << 1
}

/// The part of a read or write covered by the scalar hazard; vcc counts as one register.
fn hazard_registers(registers: Registers) -> u128 {
    let mask = registers
        .range()
        .filter(|&register| register < HAZARD_REGISTERS)
        .fold(0, |mask: u128, register| mask | 1 << register);
    if mask >> VCC_LO != 0 { pairs(mask) } else { mask }
}

/// The registers read. A branch condition counts as a value here, since the branch may go the same way for every
/// value.
fn reads(instruction: &Instruction, effects: &Effects) -> Box<[Read]> {
    let is_branch = instruction.opcode.mnemonic().starts_with("s_cbranch");
    let reads = effects.reads.iter().filter(|read| read.registers.range().start != LDS);
    reads.map(|&read| if is_branch { Read { role: Role::Value, ..read } } else { read }).collect()
}

fn crosses_lanes(instruction: &Instruction) -> bool {
    use Opcode::{DsBpermuteB32, DsPermuteB32, DsSwizzleB32, VReadfirstlaneB32, VReadlaneB32, VWritelaneB32};
    instruction.lanes != LaneSelect::None
        || instruction.opcode.mnemonic().starts_with("v_permlane")
        || matches!(
            instruction.opcode,
            VReadlaneB32 | VReadfirstlaneB32 | VWritelaneB32 | DsSwizzleB32 | DsPermuteB32 | DsBpermuteB32
        )
}

fn keeps(instruction: &Instruction, effects: &Effects) -> bool {
    let info = instruction.opcode.operands();
    let is_read = || {
        effects
            .writes
            .first()
            .is_some_and(|writes| effects.reads.iter().any(|read| read.registers == *writes))
    };
    effects.unit == Unit::Valu
        && (crosses_lanes(instruction)
            || info.destination.data.bits() == 16
            || info.properties.contains(Properties::ACCUMULATES) && !is_read())
}

fn part_bits(part: Part) -> u32 {
    match part {
        Part::Low => LOW_BITS,
        Part::High => HIGH_BITS,
        Part::Whole => u32::MAX,
    }
}

/// The bits of each dword that a store reads.
fn stored_bits(instruction: &Instruction, moved: Part) -> u32 {
    let bits = part_bits(moved);
    let is_byte = instruction.opcode.mnemonic().contains("_b8");
    if is_byte && moved != Part::Whole { 0xff << bits.trailing_zeros() } else { bits }
}

fn hazard_class(instruction: &Instruction, unit: Unit) -> HazardClass {
    use Opcode::*;
    match (unit, instruction.opcode) {
        (_, DsNop) => HazardClass::Idle,
        (_, SWaitAlu) => HazardClass::Wait(instruction.immediate as u16),
        (_, SSetpcB64 | SSwappcB64 | SCallB64 | SRfeB64) => HazardClass::Leave,
        (Unit::Valu, _) => HazardClass::Valu,
        (Unit::Salu, _) => HazardClass::Salu { counts: instruction.encoding != Encoding::Sopp },
        (Unit::ScalarMemory | Unit::Buffer, _) => HazardClass::Clear,
        _ => HazardClass::Other,
    }
}

fn special(instruction: &Instruction, unit: Unit, is_matrix: bool) -> Special {
    let opcode = instruction.opcode;
    let info = opcode.operands();
    match instruction.encoding {
        _ if is_matrix => Special::Matrix,
        Encoding::Vscratch => Special::Scratch,
        Encoding::Vflat | Encoding::Vglobal | Encoding::Vbuffer => {
            let is_store = info.sources[1].is_present() && !info.properties.contains(Properties::ATOMIC);
            match is_store && instruction.scope == SCOPE_SYSTEM {
                true => Special::SystemStore,
                false => Special::None,
            }
        }
        _ if unit != Unit::Valu => Special::None,
        _ if opcode == Opcode::VNop => Special::Nop,
        _ if info.destination.file == RegisterFile::Exec => Special::Compare,
        _ if opcode.mnemonic().starts_with("v_permlane") => Special::Exchange,
        _ => Special::Valu,
    }
}

fn matrix(instruction: &Instruction, effects: &Effects) -> Option<Matrix> {
    let mnemonic = instruction.opcode.mnemonic();
    let is_sparse = mnemonic.starts_with("v_swmmac");
    if !is_sparse && !mnemonic.starts_with("v_wmma") {
        return None;
    }
    // A and B are always registers; the addend may be a constant and does not matter here.
    let read = |at: usize| effects.reads.get(at).map(|read| read.registers);
    let index = if is_sparse { read(2) } else { None };
    Some(Matrix { destination: effects.writes.first().copied()?, inputs: [read(0), read(1), index] })
}

/// By queue: the count that the instruction waits for.
fn waits(instruction: &Instruction) -> [u8; QUEUES] {
    use Opcode::*;
    let (low, high) = ((instruction.immediate & 0x3f) as u8, (instruction.immediate >> 8 & 0x3f) as u8);
    let mut waits = [NO_WAIT; QUEUES];
    let (load, ds) = (Counter::Load as usize, Counter::Ds as usize);
    match instruction.opcode {
        SWaitLoadcnt => waits[load] = low,
        SWaitStorecnt => waits[STORE_QUEUE] = low,
        SWaitDscnt => waits[ds] = low,
        SWaitKmcnt => waits[Counter::Km as usize] = low,
        SWaitExpcnt => waits[Counter::Exp as usize] = low,
        SWaitLoadcntDscnt => (waits[load], waits[ds]) = (high, low),
        SWaitStorecntDscnt => (waits[STORE_QUEUE], waits[ds]) = (high, low),
        SWaitIdle => waits = [0; QUEUES],
        _ => {}
    }
    waits
}

/// What one half of a dual operation reads through the port of third sources (instruction set reference §6): the
/// addend of FMAMK, which the assembler writes last, and the accumulator of FMAC and DOT2ACC.
fn dual_addend(opcode: Opcode, sources: &[Operand; 3], destination: Operand) -> Operand {
    match opcode.operands().properties.contains(Properties::ACCUMULATES) {
        true => destination,
        false => sources[2],
    }
}

/// Pairs that the decoder accepts but the hardware cannot issue together (instruction set reference §6).
fn dual_defects(instruction: &Instruction) -> Box<[(Defect, Remedy)]> {
    let Some(second) = instruction.dual else { return Box::default() };
    let mut defects = Vec::new();
    // The first and the second source each have a port with four banks; the third has two banks.
    let is_same_bank = |one: Operand, other: Operand| match (one, other) {
        (Operand::Vector(one), Operand::Vector(other)) => one % DUAL_BANKS == other % DUAL_BANKS,
        _ => false,
    };
    // In a pair of moves, the second may read through another port.
    let are_moves = instruction.opcode == Opcode::VMovB32 && second.opcode == Opcode::VMovB32;
    if is_same_bank(instruction.sources[0], second.sources[0]) && !are_moves
        || is_same_bank(instruction.sources[1], second.sources[1])
    {
        defects.push((Defect::DualBanks, Remedy::OtherBanks));
    }
    let first_addend = dual_addend(instruction.opcode, &instruction.sources, instruction.destination);
    let second_addend = dual_addend(second.opcode, &second.sources, second.destination);
    if let (Operand::Vector(one), Operand::Vector(other)) = (first_addend, second_addend)
        && one % 2 == other % 2
    {
        defects.push((Defect::DualAddends, Remedy::OtherParity));
    }
    let mut scalars: Vec<Operand> = Vec::new();
    for &source in instruction.sources.iter().chain(&second.sources) {
        let is_scalar = matches!(source, Operand::Scalar(_) | Operand::Special(_) | Operand::Literal(_));
        if is_scalar && !scalars.contains(&source) {
            scalars.push(source);
        }
    }
    if scalars.len() > DUAL_SCALARS_MAX {
        defects.push((Defect::DualScalars, Remedy::TwoInstructions));
    }
    defects.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair that is moved by what m0 says ends with s105 or v255.
    #[test]
    fn registers_are_moved_as_long_as_they_stay_in_their_file() {
        let moved = |first, offset| {
            shifted(Registers::new(first, 2), offset)
                .map(|registers| (registers.range().start, registers.range().len()))
        };
        for (first, end) in [(0, 106), (VECTOR_FIRST, VECTOR_FIRST + 256)] {
            let last = end - 2 - first;
            assert_eq!(
                [0, last].map(|offset| moved(first, offset as u32)),
                [0, last].map(|at| Some((first + at, 2)))
            );
            assert_eq!([last as u32 + 1, 300, u32::MAX].map(|offset| moved(first, offset)), [None; 3]);
        }
    }
}
