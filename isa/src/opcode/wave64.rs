//! Operand types in wave64 that differ from wave32: matrix operations and transposing loads.
//!
//! Contract: constant data. A matrix has the same elements for both wave sizes, so 64 lanes hold half as much each; the
//! 4-bit matrices that need one register in wave32 keep it. Widths: llvm-mc 19 (gfx1201, wave64).

use super::{DataType, ModifierForm, Opcode, OperandInfo, OperandKind};

/// First and last matrix operation; their rows are contiguous.
const FIRST: Opcode = Opcode::VWmmaF3216x16x16F16;
const LAST: Opcode = Opcode::VSwmmacF3216x16x32Bf8Bf8;
/// The sparse ones are the last of them.
const FIRST_SPARSE: Opcode = Opcode::VSwmmacF3216x16x32F16;
const COUNT: usize = LAST as usize - FIRST as usize + 1;

/// By opcode from [`FIRST`].
static MATRIX: [OperandInfo; COUNT] = {
    let mut rows = [FIRST.operation().operands; COUNT];
    let mut index = 0;
    while index < COUNT {
        let opcode = super::OPCODES[FIRST as usize + index];
        let mut row = halved(opcode.operation().operands);
        if opcode as usize >= FIRST_SPARSE as usize {
            row.form = finer_index(opcode, row.form);
        }
        rows[index] = row;
        index += 1;
    }
    rows
};

static LOAD_TR_B128: OperandInfo = transposed(Opcode::GlobalLoadTrB128);
static LOAD_TR_B64: OperandInfo = transposed(Opcode::GlobalLoadTrB64);

/// The operand types of `opcode` in wave64.
#[inline]
pub(super) fn operands(opcode: Opcode) -> &'static OperandInfo {
    match opcode {
        Opcode::GlobalLoadTrB128 => &LOAD_TR_B128,
        Opcode::GlobalLoadTrB64 => &LOAD_TR_B64,
        _ => MATRIX.get((opcode as usize).wrapping_sub(FIRST as usize)).unwrap_or(opcode.operands()),
    }
}

/// A matrix operation's operands with half the registers; the index of a sparse operation keeps one.
const fn halved(mut info: OperandInfo) -> OperandInfo {
    info.destination = half(info.destination);
    let mut index = 0;
    while index < info.sources.len() {
        info.sources[index] = half(info.sources[index]);
        index += 1;
    }
    info
}

/// A lane's index set is half as long, so the index register holds twice as many: `index_key` has one bit more.
const fn finer_index(opcode: Opcode, form: Option<ModifierForm>) -> Option<ModifierForm> {
    match form {
        // The narrowest matrix does not use all lanes, and its index is that of wave32.
        Some(form) if matches!(opcode, Opcode::VSwmmacI3216x16x32Iu4) => Some(form),
        Some(mut form) => {
            form.op_sel = form.op_sel << 1 | 1;
            Some(form)
        }
        None => None,
    }
}

/// A load's operands with half the result.
const fn transposed(opcode: Opcode) -> OperandInfo {
    let mut info = opcode.operation().operands;
    info.destination = half(info.destination);
    info
}

const fn half(kind: OperandKind) -> OperandKind {
    let data = match kind.data {
        DataType::B256 => DataType::B128,
        DataType::B128 => DataType::B64,
        DataType::B64 => DataType::B32,
        data => data,
    };
    OperandKind { data, file: kind.file }
}
