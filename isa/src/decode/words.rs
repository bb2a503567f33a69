//! The words that are decoded, their fields, and why they are not an instruction.
//!
//! Contract: nothing is read beyond the given words.

use crate::encoding::Encoding;
use crate::instruction::{Instruction, LaneSelect, Modifiers, Operand};
use crate::opcode::{Opcode, OperandInfo, OperandKind};
use crate::resources::WaveSize;
use thiserror::Error;

/// Why words are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The words end before the instruction does.
    #[error("the instruction needs {needed} dwords and {available} are left")]
    Truncated {
        /// Least dwords that the instruction has.
        needed: u8,
        /// Dwords available.
        available: u8,
    },
    /// No gfx1201 instruction looks like this.
    #[error("{word:#010x} begins no gfx1201 instruction: {reason}")]
    Unknown {
        /// The first dword.
        word: u32,
        /// What is wrong with it or the dwords after it.
        reason: Reason,
    },
}

/// Why words are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// No encoding class has these leading bits.
    #[error("no encoding class")]
    Class,
    /// The class has no operation with this number.
    #[error("no such operation")]
    Opcode,
    /// An operand code does not exist, is too wide for its position, or is of the wrong kind.
    #[error("impossible operand")]
    Operand,
    /// A modifier bit that the operation does not have.
    #[error("modifier without meaning")]
    Modifier,
    /// A field that must be zero is not.
    #[error("reserved field is not zero")]
    Reserved,
    /// The operation cannot fetch across lanes, or the control value does not exist.
    #[error("impossible lane selection")]
    Lanes,
}

pub(super) type Result<T> = core::result::Result<T, DecodeError>;

/// Whose definition of an instruction applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Hardware,
    Llvm,
}

/// The words being decoded.
pub(super) struct Words<'a> {
    pub(super) words: &'a [u32],
    /// The first dword.
    pub(super) word: u32,
    pub(super) wave_size: WaveSize,
    pub(super) dialect: Dialect,
}

impl Words<'_> {
    /// Dword `index`, or an error that states how many the instruction needs.
    #[inline]
    pub(super) fn dword(&self, index: usize) -> Result<u32> {
        match self.words.get(index) {
            Some(&word) => Ok(word),
            None => {
                Err(DecodeError::Truncated { needed: index as u8 + 1, available: self.words.len() as u8 })
            }
        }
    }

    /// Bits `low..=high` of the first dword.
    #[inline]
    pub(super) fn field(&self, high: u32, low: u32) -> u32 {
        field(self.word, high, low)
    }

    /// The operand types of `opcode` for the wave's size.
    #[inline]
    pub(super) fn operands(&self, opcode: Opcode) -> &'static OperandInfo {
        opcode.operands_for(self.wave_size)
    }

    /// Registers of an operand for the wave's size.
    #[inline]
    pub(super) fn dwords(&self, kind: OperandKind) -> u32 {
        kind.dwords_for(self.wave_size)
    }

    #[cold]
    pub(super) fn unknown(&self, reason: Reason) -> DecodeError {
        DecodeError::Unknown { word: self.word, reason }
    }

    /// Returns an error with `reason` unless `condition` is true.
    #[inline]
    pub(super) fn require(&self, condition: bool, reason: Reason) -> Result<()> {
        if condition { Ok(()) } else { Err(self.unknown(reason)) }
    }
}

/// Bits `low..=high` of `word`; `high - low < 31`.
#[inline]
pub(super) fn field(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// The low 24 bits of `value`, sign-extended.
#[inline]
pub(super) fn signed24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

/// An instruction with no operands.
pub(super) fn blank(encoding: Encoding, opcode: Opcode, dword_count: u8) -> Instruction {
    Instruction {
        encoding,
        opcode,
        dword_count,
        destination: Operand::None,
        destination2: Operand::None,
        sources: [Operand::None; 3],
        soffset: Operand::None,
        modifiers: Modifiers::default(),
        lanes: LaneSelect::None,
        immediate: 0,
        scope: 0,
        temporal_hint: 0,
        address_flags: 0,
        dual: None,
    }
}
