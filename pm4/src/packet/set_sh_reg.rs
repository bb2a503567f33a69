//! SET_SH_REG: writes consecutive shader registers (hardware reference §4.3).
//!
//! The run must stay inside 0x2C00..0x3000. [`Register::class`](crate::Register::class) says which of those
//! registers a dispatch may write.

use super::words::{emit_words, print_header};
use crate::error::{EmitError, ParseError};
use crate::header::{Header, HeaderFlags};
use crate::registers::{REGISTER_COUNT, Register};
use core::fmt;

packet_view!(SET_SH_REG, least 1);

/// Fields of the body (hardware reference §4.2, §4.3). The index in bits 31:28 belongs to SET_SH_REG_INDEX and must be
/// 0.
pub mod field {
    fields! {
        /// First register, relative to 0x2C00.
        REG_OFFSET = 0 [15 : 0];
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// First register, relative to 0x2C00; may lie outside the range.
    pub fn register_offset(&self) -> u32 {
        self.get(field::REG_OFFSET)
    }
}

impl<'a> Packet<&'a [u32]> {
    /// The values, for ascending registers.
    pub fn values(&self) -> &'a [u32] {
        &self.words[2..1 + self.header().body_dwords().unwrap_or(1)]
    }
}

/// A run of register writes as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// The first register.
    pub first: Register,
    /// Values for the first register and those after it; at least one.
    pub values: &'a [u32],
}

impl<'a> Repr<'a> {
    /// Reads the packet.
    pub fn parse(packet: &Packet<&'a [u32]>) -> Result<Repr<'a>, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        let (offset, values) = (packet.register_offset(), packet.values());
        if values.is_empty() {
            return Err(ParseError::BodyLength { opcode: OPCODE, least: 2, found: 1 });
        }
        match Register::new(offset) {
            Some(first) if offset as usize + values.len() <= REGISTER_COUNT => {
                Ok(Repr { header_flags: packet.header().flags(), first, values })
            }
            _ => Err(ParseError::RegisterRange { first: offset, count: values.len() }),
        }
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        2 + self.values.len()
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        let header = header(self.first, self.values.len(), self.header_flags)?;
        if words.len() != self.dword_len() {
            return Err(EmitError::Length { needed: self.dword_len(), given: words.len() });
        }
        words[0] = header.0;
        words[1] = self.first.relative();
        emit_words(self.values, &mut words[2..])
    }
}

/// The header of a run, after checking the run.
#[inline(always)]
pub(crate) const fn header(first: Register, count: usize, flags: HeaderFlags) -> Result<Header, EmitError> {
    if count == 0 {
        return Err(EmitError::NoValues { opcode: OPCODE });
    }
    if first.relative() as usize + count > REGISTER_COUNT {
        return Err(EmitError::RegisterRange { first: first.relative(), count });
    }
    Ok(Header::fixed(OPCODE, 1 + count, flags))
}

impl<T: AsRef<[u32]>> fmt::Display for Packet<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = self.check_len() {
            return write!(formatter, "{OPCODE} ({error})");
        }
        print_header(formatter, self.header())?;
        for (offset, value) in (self.register_offset()..).zip(&self.body()[1..]) {
            match Register::new(offset) {
                Some(register) => write!(formatter, " {register}={value:#x}")?,
                None => write!(formatter, " ?{offset:#x}={value:#x}")?,
            }
        }
        if self.body()[0] & RESERVED[0] != 0 {
            write!(formatter, " reserved[0]={:#x}", self.body()[0] & RESERVED[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DIRTY, check_fields, check_golden, check_reserved_bits};
    use super::*;
    use crate::opcode::Opcode;

    const USER_DATA: [u32; 4] = [0xc002_7600, 0x240, 0x1234_5000, 0x7f];

    #[test]
    fn both_directions() {
        let repr = Repr {
            header_flags: HeaderFlags::empty(),
            first: Register::USER_DATA_0,
            values: &[0x1234_5000, 0x7f],
        };
        check_golden(super::super::Repr::SetShReg(repr), &USER_DATA);
        let one = Repr { header_flags: HeaderFlags::COMPUTE, first: Register::PGM_RSRC3, values: &[0x30] };
        check_golden(super::super::Repr::SetShReg(one), &[0xc001_7602, 0x228, 0x30]);
        let last = Repr { first: Register::new(0x3fe).unwrap(), values: &[1, 2], ..repr };
        check_golden(super::super::Repr::SetShReg(last), &[0xc002_7600, 0x3fe, 1, 2]);
        check_fields(field::ALL, &[("REG_OFFSET", 0, 0xffff)]);
        check_reserved_bits(&USER_DATA, &[0xffff_0000]);
    }

    #[test]
    fn a_run_stays_in_the_range() {
        let last = Register::new(0x3ff).unwrap();
        let mut words = [DIRTY; 4];
        let repr = Repr { header_flags: HeaderFlags::empty(), first: last, values: &[1, 2] };
        assert_eq!(repr.emit(&mut words), Err(EmitError::RegisterRange { first: 0x3ff, count: 2 }));
        assert_eq!(words, [DIRTY; 4]);
        let beyond = [0xc002_7600, 0x3ff, 1, 2];
        assert_eq!(
            Repr::parse(&Packet::new_checked(&beyond[..]).unwrap()),
            Err(ParseError::RegisterRange { first: 0x3ff, count: 2 })
        );
        let nothing = Repr { values: &[], ..repr };
        assert_eq!(nothing.emit(&mut words[..2]), Err(EmitError::NoValues { opcode: Opcode::SET_SH_REG }));
        // The count that only a NOP may have.
        assert_eq!(
            Packet::new_checked(&[0xffff_7600, 0x240][..]),
            Err(ParseError::BodyLength { opcode: Opcode::SET_SH_REG, least: 1, found: 0x4000 })
        );
        assert_eq!(
            Repr::parse(&Packet::new_checked(&[0xc000_7600, 0x240][..]).unwrap()),
            Err(ParseError::BodyLength { opcode: Opcode::SET_SH_REG, least: 2, found: 1 })
        );
    }

    #[test]
    fn prints_names() {
        assert_eq!(
            Packet::new_unchecked(USER_DATA).to_string(),
            "SET_SH_REG COMPUTE_USER_DATA_0=0x12345000 COMPUTE_USER_DATA_1=0x7f"
        );
        assert_eq!(
            Packet::new_unchecked([0xc002_7600, 0x3ff, 1, 2]).to_string(),
            "SET_SH_REG SH+0x3ff=0x1 ?0x400=0x2"
        );
    }
}
