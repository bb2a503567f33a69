//! From a decoded instruction to a micro operation.
//!
//! Contract: [`translate`] finds the family that executes the instruction; `None` if there is none. The program
//! fills offset, length, weight and branch target.

use zrt_isa::opcode::OperandKind;
use zrt_isa::resources::WaveSize;
use zrt_isa::{Encoding, Instruction, Operand};

use crate::shader::micro::MicroOp;
use crate::shader::{control, lds, prefetch, salu, smem, valu, vmem};
use crate::simd::Level;

/// The micro operation of an instruction.
pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    match instruction.encoding {
        Encoding::Smem => smem::translate(instruction)
            .or_else(|| prefetch::translate(instruction))
            .or_else(|| control::translate(instruction)),
        Encoding::Vds => lds::translate(instruction, level).or_else(|| control::translate(instruction)),
        Encoding::Vflat | Encoding::Vscratch | Encoding::Vglobal | Encoding::Vbuffer => {
            vmem::translate(instruction, level)
        }
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk => {
            control::translate(instruction).or_else(|| salu::translate(instruction, level))
        }
        _ => control::translate(instruction).or_else(|| valu::translate(instruction, level)),
    }
}

/// The highest vector register that the instruction uses, including all registers of wide operands.
pub(crate) fn highest_vector_register(instruction: &Instruction, wave_size: WaveSize) -> Option<u32> {
    let info = instruction.opcode.operands_for(wave_size);
    let mut highest = None;
    let mut see = |operand: Operand, kind: OperandKind| {
        if let Operand::Vector(register) = operand {
            // Also where the table has no operand: that of an operation viewed through another encoding.
            let dwords = kind.bits().div_ceil(32).max(1);
            highest = highest.max(Some(u32::from(register) + dwords - 1));
        }
    };
    see(instruction.destination, info.destination);
    see(instruction.destination2, info.destination2);
    for (index, source) in instruction.sources.into_iter().enumerate() {
        let mut kind = info.sources[index];
        let is_address = index == 0 && matches!(instruction.encoding, Encoding::Vglobal | Encoding::Vbuffer);
        if is_address && address_dwords(instruction) == 1 {
            kind.data = zrt_isa::opcode::DataType::B32;
        }
        see(source, kind);
    }
    if let Some(dual) = &instruction.dual {
        let info = dual.opcode.operands();
        see(dual.destination, info.destination);
        for (source, kind) in dual.sources.into_iter().zip(info.sources) {
            see(source, kind);
        }
    }
    highest
}

/// Vector registers of the address of a VGLOBAL or VBUFFER instruction, for which the table row has the widest
/// form.
fn address_dwords(instruction: &Instruction) -> u32 {
    match instruction.encoding {
        Encoding::Vglobal => {
            if instruction.sources[2] == Operand::None {
                2
            } else {
                1
            }
        }
        _ => (instruction.address_flags & 3).count_ones(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::opcode::{OPCODES, RegisterFile};
    use zrt_isa::{LaneSelect, Modifiers, Opcode};

    fn instruction(opcode: Opcode) -> Instruction {
        let info = opcode.operands();
        let operand = |kind: OperandKind, at: u8| match kind.file {
            RegisterFile::Absent => Operand::None,
            RegisterFile::Vector => Operand::Vector(at),
            _ => Operand::Scalar(at),
        };
        Instruction {
            encoding: opcode.encoding(),
            opcode,
            dword_count: 2,
            destination: operand(info.destination, 16),
            destination2: Operand::None,
            sources: [operand(info.sources[0], 0), operand(info.sources[1], 4), operand(info.sources[2], 8)],
            soffset: Operand::None,
            modifiers: Modifiers::default(),
            lanes: LaneSelect::None,
            immediate: 0,
            scope: 0,
            temporal_hint: 1,
            // An offset, and for typed buffers BUF_FMT_32_FLOAT.
            address_flags: 1 | 22 << 8,
            dual: None,
        }
    }

    /// Unsupported memory operations: one whose rule is not documented, and address probes.
    const NOT_EXECUTED: &[&str] = &["global_atomic_ordered_add_b64", "s_atc_probe", "s_atc_probe_buffer"];

    #[test]
    fn all_memory_operations_are_executed_but_the_listed() {
        use Encoding::*;
        let mut missing: Vec<&str> = OPCODES
            .iter()
            .filter(|opcode| matches!(opcode.encoding(), Smem | Vds | Vflat | Vscratch | Vglobal | Vbuffer))
            .filter(|opcode| translate(&instruction(**opcode), Level::BASELINE).is_none())
            .map(|opcode| opcode.mnemonic())
            .collect();
        missing.sort_unstable();
        assert_eq!(missing, NOT_EXECUTED);
    }

    #[test]
    fn wide_operands_reach_beyond_their_first_register() {
        let highest = |opcode| highest_vector_register(&instruction(opcode), WaveSize::Wave32);
        assert_eq!(highest(Opcode::GlobalLoadB128), Some(19));
        assert_eq!(highest(Opcode::DsStoreB64), Some(5));
        assert_eq!(highest(Opcode::GlobalStoreB8), Some(4));
        assert_eq!(highest(Opcode::SLoadB64), None);
        let pair = Instruction {
            sources: [Operand::Vector(9), Operand::None, Operand::None],
            ..instruction(Opcode::GlobalLoadB32)
        };
        let pair = Instruction { destination: Operand::Vector(0), ..pair };
        assert_eq!(
            highest_vector_register(&pair, WaveSize::Wave32),
            Some(10),
            "without a scalar base the address is a pair"
        );
    }

    #[test]
    fn an_address_has_as_many_registers_as_its_form_says() {
        let highest = |words: &[u32]| {
            let mut instruction = zrt_isa::decode(words).unwrap();
            if instruction.sources[0] == Operand::Vector(10) {
                instruction.sources[0] = Operand::Vector(200);
            }
            highest_vector_register(&instruction, WaveSize::Wave32)
        };
        for (words, expected) in [
            // global_load_b32 v20, v10, s[8:9]; v20, v[10:11], off; flat_load_b32 v20, v[10:11]
            ([0xEE05_0008, 0x14, 0x080A], 200),
            ([0xEE05_007C, 0x14, 0x080A], 201),
            ([0xEC05_007C, 0x14, 0x080A], 201),
            // buffer_load_b32 v20, off, s[8:11], s12; v10 offen; v10 idxen; v[10:11] idxen offen
            ([0xC405_000C, 0x0080_1014, 0x0800], 20),
            ([0xC405_000C, 0x4080_1014, 0x080A], 200),
            ([0xC405_000C, 0x8080_1014, 0x080A], 200),
            ([0xC405_000C, 0xC080_1014, 0x080A], 201),
            // buffer_store_b128 v[4:7], off, s[8:11], s12; scratch_load_b128 v[20:23], v10, s12
            ([0xC407_400C, 0x0080_1004, 0x0800], 7),
            ([0xED05_C00C, 0x0002_0014, 0x080A], 200),
            // global_store_b128 v0, v[4:7], s[8:9]; v[0:1], v[4:7], off
            ([0xEE07_4008, 0x0200_0000, 0x0800], 7),
            ([0xEE07_407C, 0x0200_0000, 0x0800], 7),
            // tbuffer_load_format_x v20, v10, s[8:11], s12 format:[BUF_FMT_32_FLOAT] offen; v[10:11] idxen offen
            ([0xC420_000C, 0x4B00_1014, 0x080A], 200),
            ([0xC420_000C, 0xCB00_1014, 0x080A], 201),
        ] {
            assert_eq!(highest(&words), Some(expected), "{words:x?}");
        }
        // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v2
        assert_eq!(highest(&[0xCA10_0101, 0x0002_0102]), Some(3));
    }
}
