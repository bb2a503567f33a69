//! Every operation of gfx1201 that LLVM 19 knows: name, encoding, opcode number, operands.
//!
//! Contract: one [`Opcode`] variant per operation, named after the mnemonic in camel case. The promoted forms
//! (`_e64`, `_dpp`, `v_dual_`) share the variant of the plain operation; flat, scratch and global are separate
//! operations. The numbers come from disassembling every opcode number of every encoding with llvm-mc 19 (gfx1201);
//! the encodings are those of the instruction set reference §1. Operand types beyond their width follow the
//! mnemonic.
//!
//! Row format: `Variant "mnemonic" Encoding number [destinations] [sources] FORM [properties];` with operands by
//! position as in [`crate::Instruction`]. `any` is a VALU source: vector, scalar, inline constant or literal.
//! `register` is a scalar register and nothing else. FORM is present if the operation has a 64-bit VALU encoding,
//! and says which modifiers that encoding has.

#[macro_use]
mod scalar;
#[macro_use]
mod vector;
#[macro_use]
mod memory;
mod form;
mod operand;
mod wave64;

pub use form::ModifierForm;
pub use operand::{DataType, OperandInfo, OperandKind, Properties, RegisterFile};

use crate::encoding::Encoding;
use crate::resources::WaveSize;
use DataType::*;
use form::*;
use operand::{EXEC, MASK, NONE, any, matrix, register, scalar, vector};

/// The table entry of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Assembler name, without encoding suffix.
    pub mnemonic: &'static str,
    /// The shortest encoding of the operation.
    pub encoding: Encoding,
    /// Opcode number in that encoding.
    pub number: u16,
    /// Operand types.
    pub operands: OperandInfo,
}

macro_rules! define_operations {
    ($($variant:ident $mnemonic:literal $encoding:ident $number:literal
       [$($destination:expr),*] [$($source:expr),*] $($form:ident)? [$($property:ident)|*];)*) => {
        /// One gfx12 operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Opcode {
            $(#[doc = concat!("`", $mnemonic, "`")] $variant,)*
        }

        /// All operations, in the order of the tables.
        pub const OPCODES: &[Opcode] = &[$(Opcode::$variant,)*];

        static OPERATIONS: [Operation; OPCODES.len()] = [$(Operation {
            mnemonic: $mnemonic,
            encoding: Encoding::$encoding,
            number: $number,
            operands: OperandInfo::new(
                &[$($destination),*],
                &[$($source),*],
                &[$($form)?],
                Properties::empty()$(.union(Properties::$property))*,
            ),
        },)*];
    };
}

scalar_operations! { vector_operations memory_operations define_operations }

impl Opcode {
    /// The operation's table row.
    #[inline]
    pub const fn operation(self) -> &'static Operation {
        &OPERATIONS[self as usize]
    }

    /// Assembler name, without `_e32`, `_e64` or `_dpp`.
    #[inline]
    pub fn mnemonic(self) -> &'static str {
        self.operation().mnemonic
    }

    /// The shortest encoding of the operation. VOP1, VOP2 and VOPC operations also exist as VOP3, DPP or VOPD.
    #[inline]
    pub fn encoding(self) -> Encoding {
        self.operation().encoding
    }

    /// Opcode number in [`Opcode::encoding`].
    #[inline]
    pub fn number(self) -> u16 {
        self.operation().number
    }

    /// Types of the operands, by the positions of [`crate::Instruction`].
    #[inline]
    pub fn operands(self) -> &'static OperandInfo {
        &self.operation().operands
    }

    /// Types of the operands in a wave of `wave_size`. Matrix operations and transposing loads spread the same
    /// matrix over twice the lanes in wave64, and so have narrower operands; every other operation has the types of
    /// [`Opcode::operands`].
    #[inline]
    pub fn operands_for(self, wave_size: WaveSize) -> &'static OperandInfo {
        match wave_size {
            WaveSize::Wave32 => self.operands(),
            WaveSize::Wave64 => wave64::operands(self),
        }
    }
}
