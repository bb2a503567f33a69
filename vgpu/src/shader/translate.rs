//! From a decoded instruction to a micro operation.
//!
//! Contract: [`translate`] finds the family that executes the instruction; `None` where none does. Offset, length,
//! weight and branch target are the program's to fill.

use zrt_isa::opcode::{OperandKind, RegisterFile};
use zrt_isa::{Encoding, Instruction, Operand};

use crate::shader::micro::MicroOp;
use crate::shader::{control, lds, salu, smem, valu, vmem};
use crate::simd::Level;

/// The micro operation of an instruction.
pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    match instruction.encoding {
        Encoding::Smem => smem::translate(instruction).or_else(|| control::translate(instruction)),
        Encoding::Vds => lds::translate(instruction, level).or_else(|| control::translate(instruction)),
        Encoding::Vflat | Encoding::Vscratch | Encoding::Vglobal | Encoding::Vbuffer => {
            vmem::translate(instruction, level)
        }
        Encoding::Sopp => control::translate(instruction),
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk => {
            control::translate(instruction).or_else(|| salu::translate(instruction, level))
        }
        _ => control::translate(instruction).or_else(|| valu::translate(instruction, level)),
    }
}

/// The highest vector register that the instruction names, with all registers of wide operands.
pub(crate) fn highest_vector_register(instruction: &Instruction) -> Option<u32> {
    let info = instruction.opcode.operands();
    let mut highest = None;
    let mut see = |operand: Operand, kind: OperandKind| {
        if let Operand::Vector(register) = operand {
            let dwords = match kind.file {
                // The operand of an operation seen through another encoding.
                RegisterFile::Absent => 1,
                _ => kind.bits().div_ceil(32).max(1),
            };
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

/// Vector registers of the address of a VGLOBAL or VBUFFER instruction, whose table row has the widest.
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
