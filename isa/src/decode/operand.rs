//! Operand codes → [`Operand`], checked against their position.
//!
//! Contract: register tuples are aligned down as the hardware's narrower fields imply (pairs to 2, wider to 4) and lie
//! wholly inside their file. Codes: instruction set reference §2.

use super::words::{Dialect, Reason, Result, Words};
use crate::instruction::Operand;
use crate::opcode::{OperandKind, RegisterFile};

/// Highest SGPR code that is not vcc.
const SGPR_LAST: u32 = 105;
const VCC_LO: u32 = 106;
const TTMP_FIRST: u32 = 108;
const TTMP_LAST: u32 = 123;
/// Code of `null`.
pub(super) const NULL: u32 = 124;
pub(super) const M0: u32 = 125;
pub(super) const EXEC_LO: u32 = 126;
pub(super) const EXEC_HI: u32 = 127;

/// Sources of other chips.
const POPS_EXITING_WAVE_ID: u32 = 239;
pub(super) const LDS_DIRECT: u32 = 254;

/// Implicit vcc.
pub(super) const VCC: Operand = Operand::Scalar(VCC_LO as u8);
/// Implicit exec.
pub(super) const EXEC: Operand = Operand::Scalar(EXEC_LO as u8);

impl Words<'_> {
    /// Scalar register(s) `code` of `dwords` registers.
    #[inline]
    pub(super) fn scalar(&self, code: u32, dwords: u32) -> Result<Operand> {
        if dwords == 1 && code <= EXEC_HI {
            return Ok(Operand::Scalar(code as u8));
        }
        self.scalar_tuple(code, dwords)
    }

    fn scalar_tuple(&self, code: u32, dwords: u32) -> Result<Operand> {
        let aligned = if dwords == 2 { code & !1 } else { code & !3 };
        let last = aligned + dwords - 1;
        let exists = match code {
            0..=SGPR_LAST => last <= SGPR_LAST,
            VCC_LO | EXEC_LO => dwords == 2,
            TTMP_FIRST..=TTMP_LAST => last <= TTMP_LAST && dwords != 3,
            NULL => true,
            // vcc_hi, m0 and exec_hi begin nothing.
            _ => false,
        };
        self.require(exists, Reason::Operand)?;
        Ok(Operand::Scalar(aligned as u8))
    }

    /// Vector register(s) from `code` (0..=255).
    #[inline]
    pub(super) fn vector(&self, code: u32, dwords: u32) -> Result<Operand> {
        self.require(code + dwords <= 256, Reason::Operand)?;
        Ok(Operand::Vector(code as u8))
    }

    /// A destination of `kind` in an 8-bit field.
    #[inline]
    pub(super) fn destination(&self, code: u32, kind: OperandKind) -> Result<Operand> {
        match kind.file {
            RegisterFile::Vector => self.vector(code, self.dwords(kind)),
            RegisterFile::Scalar => self.scalar(code, self.dwords(kind)),
            RegisterFile::Exec => Ok(EXEC),
            _ => {
                self.require(code == 0, Reason::Reserved)?;
                Ok(Operand::None)
            }
        }
    }

    /// A source of `kind` in an 8- or 9-bit field. The literal, if requested, is dword `literal_index`, and
    /// `dword_count` grows to cover it.
    #[inline]
    pub(super) fn source(
        &self,
        code: u32,
        kind: OperandKind,
        literal_index: usize,
        dword_count: &mut u8,
    ) -> Result<Operand> {
        let dwords = self.dwords(kind);
        if code >= 256 {
            let vector_allowed =
                matches!(kind.file, RegisterFile::Vector | RegisterFile::Any | RegisterFile::VectorOrInline);
            self.require(vector_allowed, Reason::Operand)?;
            return self.vector(code - 256, dwords);
        }
        match kind.file {
            RegisterFile::Absent => {
                self.require(code == 0, Reason::Reserved)?;
                return Ok(Operand::None);
            }
            RegisterFile::Vector | RegisterFile::Exec => return Err(self.unknown(Reason::Operand)),
            RegisterFile::ScalarRegister => return self.scalar(code, dwords),
            RegisterFile::VectorOrInline => {
                self.require(matches!(code, 128..=208 | 240..=248), Reason::Operand)?;
            }
            RegisterFile::Scalar | RegisterFile::Any => {}
        }
        match code {
            0..=127 => self.scalar(code, dwords),
            128..=208 | 240..=248 => Ok(Operand::Inline(code as u8)),
            235..=238 | 251..=253 => Ok(Operand::Special(code as u8)),
            255 => {
                let literal = self.dword(literal_index)?;
                *dword_count = literal_index as u8 + 1;
                Ok(Operand::Literal(literal))
            }
            POPS_EXITING_WAVE_ID if self.dialect == Dialect::Llvm => Ok(Operand::Special(code as u8)),
            LDS_DIRECT if self.dialect == Dialect::Llvm && kind.file == RegisterFile::Any && dwords == 1 => {
                Ok(Operand::Special(code as u8))
            }
            _ => Err(self.unknown(Reason::Operand)),
        }
    }
}
