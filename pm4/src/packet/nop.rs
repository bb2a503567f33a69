//! NOP: does nothing; carries dwords that are ignored (hardware reference §4.1).
//!
//! With no payload it is the header alone, 0xFFFF1000.

use super::words::{emit_words, print_header};
use crate::error::{EmitError, ParseError};
use crate::header::{Header, HeaderFlags};
use core::fmt;

packet_view!(NOP, least 0);

/// A NOP has no fields.
mod field {
    fields! {}
}

impl<'a> Packet<&'a [u32]> {
    /// The skipped dwords.
    pub fn payload(&self) -> &'a [u32] {
        &self.words[1..1 + self.header().body_dwords().unwrap_or(0)]
    }
}

/// A NOP as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Dwords to skip, at most [`BODY_DWORDS_MAX`](crate::header::BODY_DWORDS_MAX); an empty payload makes the
    /// one-dword NOP.
    pub payload: &'a [u32],
}

impl<'a> Repr<'a> {
    /// Reads the packet.
    pub fn parse(packet: &Packet<&'a [u32]>) -> Result<Repr<'a>, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        Ok(Repr { header_flags: packet.header().flags(), payload: packet.payload() })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        1 + self.payload.len()
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        let header = Header::type3(OPCODE, self.payload.len(), self.header_flags)?;
        if words.len() != self.dword_len() {
            return Err(EmitError::Length { needed: self.dword_len(), given: words.len() });
        }
        words[0] = header.0;
        emit_words(self.payload, &mut words[1..])
    }
}

impl<T: AsRef<[u32]>> fmt::Display for Packet<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = self.check_len() {
            return write!(formatter, "{OPCODE} ({error})");
        }
        print_header(formatter, self.header())?;
        match self.body().len() {
            0 => Ok(()),
            dwords => write!(formatter, " dwords={dwords:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DIRTY, check_golden};
    use super::*;
    use crate::header::BODY_DWORDS_MAX;
    use crate::opcode::Opcode;

    #[test]
    fn both_directions() {
        let empty = Repr { header_flags: HeaderFlags::empty(), payload: &[] };
        check_golden(super::super::Repr::Nop(empty), &[0xffff_1000]);
        let three = Repr { payload: &[1, 2, 0xc003_1500], ..empty };
        check_golden(super::super::Repr::Nop(three), &[0xc002_1000, 1, 2, 0xc003_1500]);
    }

    #[test]
    fn the_longest_body_and_one_more() {
        let payload = [7; BODY_DWORDS_MAX + 1];
        let longest = Repr { header_flags: HeaderFlags::empty(), payload: &payload[1..] };
        let mut words = vec![DIRTY; 1 + BODY_DWORDS_MAX];
        longest.emit(&mut words).unwrap();
        assert_eq!(words[0], 0xfffe_1000);
        assert_eq!(Repr::parse(&Packet::new_checked(&words[..]).unwrap()), Ok(longest));
        let longer = Repr { header_flags: HeaderFlags::empty(), payload: &payload };
        assert_eq!(
            longer.emit(&mut vec![DIRTY; 2 + BODY_DWORDS_MAX]),
            Err(EmitError::BodyTooLong { opcode: Opcode::NOP, body_dwords: BODY_DWORDS_MAX + 1 })
        );
    }

    #[test]
    fn prints() {
        assert_eq!(Packet::new_unchecked([0xffff_1000]).to_string(), "NOP");
        assert_eq!(Packet::new_unchecked([0xc001_1002, 5, 6]).to_string(), "NOP COMPUTE dwords=0x2");
        assert_eq!(
            Packet::new_unchecked([0xc001_1000, 5]).to_string(),
            "NOP (the packet needs 3 dwords and 2 are there)"
        );
    }
}
