//! From dwords to [`Instruction`].
//!
//! Contract: [`decode`] reads at most four dwords from the start of `words`, never panics and never allocates. It
//! accepts what llvm-mc 19 disassembles for gfx1201, except for operands that llvm-mc's own printer calls invalid;
//! see the crate's README for the few further differences. Cost: some 25 ns.
//! Encodings: instruction set reference §1; register and constant codes: instruction set reference §2.

mod lookup;
mod memory;
mod operand;
mod scalar;
mod vector;

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

type Result<T> = core::result::Result<T, DecodeError>;

/// Decodes the instruction at the start of `words` for wave32; further words are ignored.
///
/// # Errors
/// [`DecodeError::Truncated`] if the words end early, [`DecodeError::Unknown`] if they are no instruction.
pub fn decode(words: &[u32]) -> Result<Instruction> {
    decode_for(words, WaveSize::Wave32)
}

/// Decodes the instruction at the start of `words` as a wave of `wave_size` executes it. In wave64, masks are pairs
/// of scalar registers, matrix operands are half as wide, and there are no dual operations.
///
/// # Errors
/// Same as for [`decode`].
pub fn decode_for(words: &[u32], wave_size: WaveSize) -> Result<Instruction> {
    decode_in(words, wave_size, Dialect::Hardware)
}

/// Decodes as llvm-mc 19 does by default, for comparing texts with it. 16-bit operands in the upper half of a
/// register (by register number) and nonzero unused source fields are refused; two scalar sources that gfx1201 does
/// not have are accepted. Not for executing.
///
/// # Errors
/// Same as for [`decode`].
pub fn decode_like_llvm(words: &[u32], wave_size: WaveSize) -> Result<Instruction> {
    decode_in(words, wave_size, Dialect::Llvm)
}

/// Whose definition of an instruction applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Hardware,
    Llvm,
}

fn decode_in(words: &[u32], wave_size: WaveSize, dialect: Dialect) -> Result<Instruction> {
    let Some(&word) = words.first() else {
        return Err(DecodeError::Truncated { needed: 1, available: 0 });
    };
    let stream = Words { words, word, wave_size, dialect };
    if word >> 31 == 0 {
        return match word >> 25 {
            0x3f => vector::vop1(&stream),
            0x3e => vector::vopc(&stream),
            _ => vector::vop2(&stream),
        };
    }
    if word >> 30 == 0b10 {
        return match word >> 23 {
            0b1_0111_1101 => scalar::sop1(&stream),
            0b1_0111_1110 => scalar::sopc(&stream),
            0b1_0111_1111 => scalar::sopp(&stream),
            _ if word >> 28 == 0b1011 => scalar::sopk(&stream),
            _ => scalar::sop2(&stream),
        };
    }
    match word >> 26 {
        0b11_0001 => memory::vbuffer(&stream),
        0b11_0010 => vector::vopd(&stream),
        0b11_0011 => match word >> 24 & 3 {
            0 => vector::vop3p(&stream),
            1 => class(&stream, Encoding::Vinterp, Opcode::VInterpolate, 2, word >> 16 & 0x7f),
            2 => memory::vdsdir(&stream),
            _ => Err(stream.unknown(Reason::Class)),
        },
        0b11_0100 => class(&stream, Encoding::Vimage, Opcode::ImageAccess, 3, word >> 14 & 0xff),
        0b11_0101 => vector::vop3(&stream),
        0b11_0110 => memory::vds(&stream),
        0b11_1001 => class(&stream, Encoding::Vsample, Opcode::ImageSample, 3, word >> 14 & 0xff),
        0b11_1011 => match word >> 24 & 3 {
            0 => memory::flat(&stream, Encoding::Vflat),
            1 => memory::flat(&stream, Encoding::Vscratch),
            2 => memory::flat(&stream, Encoding::Vglobal),
            _ => Err(stream.unknown(Reason::Class)),
        },
        0b11_1101 => scalar::smem(&stream),
        0b11_1110 => class(&stream, Encoding::Vexport, Opcode::Export, 2, word >> 4 & 0x3f),
        _ => Err(stream.unknown(Reason::Class)),
    }
}

/// The words being decoded.
struct Words<'a> {
    words: &'a [u32],
    /// The first dword.
    word: u32,
    wave_size: WaveSize,
    dialect: Dialect,
}

impl Words<'_> {
    /// Dword `index`, or an error that states how many the instruction needs.
    #[inline]
    fn dword(&self, index: usize) -> Result<u32> {
        match self.words.get(index) {
            Some(&word) => Ok(word),
            None => {
                Err(DecodeError::Truncated { needed: index as u8 + 1, available: self.words.len() as u8 })
            }
        }
    }

    /// Bits `low..=high` of the first dword.
    #[inline]
    fn field(&self, high: u32, low: u32) -> u32 {
        field(self.word, high, low)
    }

    /// The operand types of `opcode` for the wave's size.
    #[inline]
    fn operands(&self, opcode: Opcode) -> &'static OperandInfo {
        opcode.operands_for(self.wave_size)
    }

    /// Registers of an operand for the wave's size.
    #[inline]
    fn dwords(&self, kind: OperandKind) -> u32 {
        kind.dwords_for(self.wave_size)
    }

    #[cold]
    fn unknown(&self, reason: Reason) -> DecodeError {
        DecodeError::Unknown { word: self.word, reason }
    }

    /// Returns an error with `reason` unless `condition` is true.
    #[inline]
    fn require(&self, condition: bool, reason: Reason) -> Result<()> {
        if condition { Ok(()) } else { Err(self.unknown(reason)) }
    }
}

/// Bits `low..=high` of `word`; `high - low < 31`.
#[inline]
fn field(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// The low 24 bits of `value`, sign-extended.
#[inline]
fn signed24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

/// An instruction with no operands.
fn blank(encoding: Encoding, opcode: Opcode, dword_count: u8) -> Instruction {
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

/// Graphics: recognised by class and length, the opcode number kept in `immediate`.
fn class(
    stream: &Words<'_>,
    encoding: Encoding,
    opcode: Opcode,
    dword_count: u8,
    number: u32,
) -> Result<Instruction> {
    stream.dword(dword_count as usize - 1)?;
    let mut instruction = blank(encoding, opcode, dword_count);
    instruction.immediate = number as i32;
    Ok(instruction)
}
