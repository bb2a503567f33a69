//! EVENT_WRITE: sends an event into the pipe (hardware reference §4.8).
//!
//! Only the form without an address is supported: one body dword. CS_PARTIAL_FLUSH is C0004600 00000407.

use super::event::Event;
use super::words::{emit_words, fixed_header};
use crate::error::{EmitError, ParseError};
use crate::header::HeaderFlags;

packet_view!(EVENT_WRITE, exact 1);

/// Fields of the body (hardware reference §4.8).
pub mod field {
    fields! {
        /// Event type.
        EVENT_TYPE = 0 [5 : 0];
        /// How the command processor handles it.
        EVENT_INDEX = 0 [11 : 8];
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// Event type and index.
    pub fn event(&self) -> Event {
        Event { kind: self.get(field::EVENT_TYPE) as u8, index: self.get(field::EVENT_INDEX) as u8 }
    }
}

/// An event as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Type and index.
    pub event: Event,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 2;

    /// Waits until all compute waves of the queue have ended.
    pub const CS_PARTIAL_FLUSH: Repr =
        Repr { header_flags: HeaderFlags::empty(), event: Event::CS_PARTIAL_FLUSH };

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        Ok(Repr { header_flags: packet.header().flags(), event: packet.event() })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        let event = field::EVENT_TYPE.put(u32::from(self.event.kind))?
            | field::EVENT_INDEX.put(u32::from(self.event.index))?;
        Ok([fixed_header(OPCODE, 1, self.header_flags), event])
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        emit_words(&self.words()?, words)
    }
}

super::words::display_fields!();

#[cfg(test)]
mod tests {
    use super::super::testing::{check_fields, check_golden, check_reserved_bits};
    use super::*;
    use crate::field::FieldOverflow;

    const CS_PARTIAL_FLUSH: [u32; 2] = [0xc000_4600, 0x0000_0407];

    #[test]
    fn both_directions() {
        check_golden(super::super::Repr::EventWrite(Repr::CS_PARTIAL_FLUSH), &CS_PARTIAL_FLUSH);
        let full = Repr { header_flags: HeaderFlags::all(), event: Event { kind: 0x3f, index: 0xf } };
        check_golden(super::super::Repr::EventWrite(full), &[0xc000_4607, 0xf3f]);
        check_fields(field::ALL, &[("EVENT_TYPE", 0, 0x3f), ("EVENT_INDEX", 0, 0xf00)]);
        check_reserved_bits(&CS_PARTIAL_FLUSH, &[0xffff_f0c0]);
    }

    #[test]
    fn overflow_and_other_lengths_are_errors() {
        let repr = Repr { event: Event { kind: 0x40, index: 0 }, ..Repr::CS_PARTIAL_FLUSH };
        let expected = FieldOverflow { field: field::EVENT_TYPE, value: 0x40 };
        assert_eq!(repr.words(), Err(EmitError::Field(expected)));
        let repr = Repr { event: Event { kind: 0, index: 0x10 }, ..Repr::CS_PARTIAL_FLUSH };
        let expected = FieldOverflow { field: field::EVENT_INDEX, value: 0x10 };
        assert_eq!(repr.words(), Err(EmitError::Field(expected)));
        assert_eq!(
            Packet::new_checked([0xc002_4600, 0x407, 0, 0]),
            Err(ParseError::BodyLength { opcode: OPCODE, least: 1, found: 3 })
        );
        assert_eq!(
            Packet::new_unchecked(CS_PARTIAL_FLUSH).to_string(),
            "EVENT_WRITE EVENT_TYPE=0x7 EVENT_INDEX=0x4"
        );
    }
}
