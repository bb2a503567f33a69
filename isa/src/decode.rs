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
mod words;

pub use words::{DecodeError, Reason};

use crate::encoding::Encoding;
use crate::instruction::Instruction;
use crate::opcode::Opcode;
use crate::resources::WaveSize;
use words::{Dialect, Result, Words, blank};

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
