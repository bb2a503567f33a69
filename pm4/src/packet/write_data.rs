//! WRITE_DATA: writes dwords to memory or to a register (hardware reference §4.8).

use super::temporal_hint::TemporalHint;
use super::words::{check_aligned, emit_words, join, parse_aligned, print_header, split};
use crate::error::{EmitError, ParseError};
use crate::header::{Header, HeaderFlags};
use core::fmt;

packet_view!(WRITE_DATA, least 3);

/// Fields of the body (hardware reference §4.8).
pub mod field {
    fields! {
        /// 0 register, 2 GL2, 5 memory.
        DST_SEL = 0 [11 : 8];
        /// Write every dword to the same address.
        NO_INCREMENT = 0 [16 : 16];
        /// Wait until the write is confirmed.
        WRITE_CONFIRM = 0 [20 : 20];
        /// Temporal hint of the store.
        TEMPORAL = 0 [26 : 25];
        /// Which engine; 0 on a compute ring.
        ENGINE = 0 [31 : 30];
        /// Address, low dword, or a register.
        ADDRESS_LO = 1 [31 : 0];
        /// Address, high dword.
        ADDRESS_HI = 2 [31 : 0];
    }
}

/// The destination of the dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A register, by absolute dword offset.
    Register(u32),
    /// Memory through GL2; the address is a multiple of 4.
    Gl2(u64),
    /// Memory; the address is a multiple of 4.
    Memory(u64),
}

const SELECT_REGISTER: u32 = 0;
const SELECT_GL2: u32 = 2;
const SELECT_MEMORY: u32 = 5;

impl<T: AsRef<[u32]>> Packet<T> {
    /// The destination, as the raw field value.
    pub fn destination_select(&self) -> u32 {
        self.get(field::DST_SEL)
    }

    /// Whether every dword goes to the same address.
    pub fn no_increment(&self) -> bool {
        self.get(field::NO_INCREMENT) != 0
    }

    /// Whether to wait until the write is confirmed.
    pub fn write_confirm(&self) -> bool {
        self.get(field::WRITE_CONFIRM) != 0
    }

    /// Temporal hint of the store.
    pub fn temporal(&self) -> TemporalHint {
        TemporalHint::from_bits(self.get(field::TEMPORAL)).unwrap_or_default()
    }

    /// Which engine.
    pub fn engine(&self) -> u8 {
        self.get(field::ENGINE) as u8
    }

    /// Address or register.
    pub fn address(&self) -> u64 {
        join(self.get(field::ADDRESS_LO), self.get(field::ADDRESS_HI))
    }
}

impl<'a> Packet<&'a [u32]> {
    /// The dwords to write.
    pub fn data(&self) -> &'a [u32] {
        &self.words[4..1 + self.header().body_dwords().unwrap_or(3)]
    }
}

/// A write as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// The destination of the dwords.
    pub destination: Destination,
    /// Whether every dword goes to the same address.
    pub no_increment: bool,
    /// Whether to wait until the write is confirmed.
    pub write_confirm: bool,
    /// Temporal hint of the store.
    pub temporal: TemporalHint,
    /// Which engine, 2 bits; 0 on a compute ring.
    pub engine: u8,
    /// The dwords; at least one.
    pub data: &'a [u32],
}

impl<'a> Repr<'a> {
    /// Writes to memory and waits until the write is confirmed.
    pub const fn memory(address: u64, data: &'a [u32]) -> Repr<'a> {
        Repr {
            header_flags: HeaderFlags::empty(),
            destination: Destination::Memory(address),
            no_increment: false,
            write_confirm: true,
            temporal: TemporalHint::Regular,
            engine: 0,
            data,
        }
    }

    /// Reads the packet.
    pub fn parse(packet: &Packet<&'a [u32]>) -> Result<Repr<'a>, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        let address = packet.address();
        let (low, high) = split(address);
        let destination = match packet.destination_select() {
            SELECT_REGISTER if high == 0 => Destination::Register(low),
            SELECT_REGISTER => return Err(ParseError::Value { field: field::ADDRESS_HI, value: high }),
            SELECT_GL2 => Destination::Gl2(parse_aligned(address, 4)?),
            SELECT_MEMORY => Destination::Memory(parse_aligned(address, 4)?),
            value => return Err(ParseError::Value { field: field::DST_SEL, value }),
        };
        if packet.data().is_empty() {
            return Err(ParseError::BodyLength { opcode: OPCODE, least: 4, found: 3 });
        }
        Ok(Repr {
            header_flags: packet.header().flags(),
            destination,
            no_increment: packet.no_increment(),
            write_confirm: packet.write_confirm(),
            temporal: packet.temporal(),
            engine: packet.engine(),
            data: packet.data(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        4 + self.data.len()
    }

    /// The packet's first four words: header, control, address.
    #[inline(always)]
    pub(crate) fn prefix(&self) -> Result<[u32; 4], EmitError> {
        if self.data.is_empty() {
            return Err(EmitError::NoValues { opcode: OPCODE });
        }
        let (select, address) = match self.destination {
            Destination::Register(register) => (SELECT_REGISTER, u64::from(register)),
            Destination::Gl2(address) => (SELECT_GL2, address),
            Destination::Memory(address) => (SELECT_MEMORY, address),
        };
        if select != SELECT_REGISTER {
            check_aligned(address, 4)?;
        }
        let (low, high) = split(address);
        let control = field::DST_SEL.put(select)?
            | field::NO_INCREMENT.flag(self.no_increment)
            | field::WRITE_CONFIRM.flag(self.write_confirm)
            | field::TEMPORAL.put(self.temporal.bits())?
            | field::ENGINE.put(u32::from(self.engine))?;
        Ok([Header::type3(OPCODE, 3 + self.data.len(), self.header_flags)?.0, control, low, high])
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        let prefix = self.prefix()?;
        if words.len() != self.dword_len() {
            return Err(EmitError::Length { needed: self.dword_len(), given: words.len() });
        }
        emit_words(&prefix, &mut words[..4])?;
        emit_words(self.data, &mut words[4..])
    }
}

impl<T: AsRef<[u32]>> fmt::Display for Packet<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = self.check_len() {
            return write!(formatter, "{OPCODE} ({error})");
        }
        print_header(formatter, self.header())?;
        crate::field::print_fields(formatter, field::ALL, &RESERVED, self.body())?;
        for value in &self.body()[3..] {
            write!(formatter, " {value:#x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_fields, check_golden, check_reserved_bits};
    use super::*;

    const TWO_WORDS: [u32; 6] = [0xc004_3700, 0x0010_0500, 0x89ab_cdec, 0x7f, 11, 12];

    fn two_words() -> Repr<'static> {
        Repr::memory(0x7f_89ab_cdec, &[11, 12])
    }

    fn check(repr: Repr<'_>, golden: &[u32]) {
        check_golden(super::super::Repr::WriteData(repr), golden);
    }

    #[test]
    fn both_directions() {
        check(two_words(), &TWO_WORDS);
        check(Repr::memory(0x1000, &[9]), &[0xc003_3700, 0x0010_0500, 0x1000, 0, 9]);
        let bare = Repr { write_confirm: false, ..Repr::memory(0x1000, &[9]) };
        for (repr, control) in [
            (bare, 0x500),
            (Repr { no_increment: true, ..bare }, 0x1_0500),
            (Repr { temporal: TemporalHint::LastUse, ..bare }, 0x600_0500),
            (Repr { engine: 3, ..bare }, 0xc000_0500),
            (Repr { destination: Destination::Gl2(0x1000), ..bare }, 0x200),
            (Repr { destination: Destination::Register(0x1000), ..bare }, 0),
        ] {
            check(repr, &[0xc003_3700, control, 0x1000, 0, 9]);
        }
        check_reserved_bits(&TWO_WORDS, &[0x39ee_f0ff, 0, 0]);
        check_fields(
            field::ALL,
            &[
                ("DST_SEL", 0, 0xf00),
                ("NO_INCREMENT", 0, 1 << 16),
                ("WRITE_CONFIRM", 0, 1 << 20),
                ("TEMPORAL", 0, 0x600_0000),
                ("ENGINE", 0, 0xc000_0000),
                ("ADDRESS_LO", 1, u32::MAX),
                ("ADDRESS_HI", 2, u32::MAX),
            ],
        );
    }

    #[test]
    fn what_does_not_fit_or_means_nothing_is_an_error() {
        assert!(matches!(Repr { engine: 4, ..two_words() }.prefix(), Err(EmitError::Field(_))));
        assert_eq!(
            Repr::memory(0x1002, &[1]).prefix(),
            Err(EmitError::Misaligned { address: 0x1002, alignment: 4 })
        );
        assert_eq!(Repr::memory(0x1000, &[]).prefix(), Err(EmitError::NoValues { opcode: OPCODE }));
        let parse = |words: [u32; 5]| Repr::parse(&Packet::new_checked(&words[..]).unwrap()).map(|_| ());
        assert_eq!(
            parse([0xc003_3700, 0x100, 0, 0, 0]),
            Err(ParseError::Value { field: field::DST_SEL, value: 1 })
        );
        assert_eq!(
            parse([0xc003_3700, 0, 0x2e00, 1, 0]),
            Err(ParseError::Value { field: field::ADDRESS_HI, value: 1 })
        );
        assert_eq!(
            parse([0xc003_3700, 0x500, 3, 0, 0]),
            Err(ParseError::Misaligned { address: 3, alignment: 4 })
        );
        assert_eq!(
            parse([0xc002_3700, 0x500, 0, 0, 0]),
            Err(ParseError::BodyLength { opcode: OPCODE, least: 4, found: 3 })
        );
        assert_eq!(
            Packet::new_unchecked(TWO_WORDS).to_string(),
            "WRITE_DATA DST_SEL=0x5 WRITE_CONFIRM ADDRESS_LO=0x89abcdec ADDRESS_HI=0x7f 0xb 0xc"
        );
    }
}
