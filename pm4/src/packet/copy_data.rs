//! COPY_DATA: copies one or two dwords between registers, memory, an immediate and the clock (hardware reference §4.8).
//!
//! Memory is source 2 and destination 2, `tc_l2` in the kernel's `nvd.h`. That header, and the header of AMD's own
//! driver library for gfx12, call source 1 and destination 5 `tc_l2_obsolete`: these are never written, and no
//! value here stands for them.

use super::temporal_hint::TemporalHint;
use super::words::{check_aligned, emit_words, fixed_header, join, parse_aligned, split};
use crate::error::{EmitError, ParseError};
use crate::field::Field;
use crate::header::HeaderFlags;

packet_view!(COPY_DATA, exact 5);

/// Fields of the body (hardware reference §4.8).
pub mod field {
    fields! {
        /// 0 register, 2 GL2, 4 performance counter, 5 immediate, 9 GPU clock. 1 is GL2 too, and obsolete.
        SRC_SEL = 0 [3 : 0];
        /// 0 register, 2 GL2. 5 is GL2 too, and obsolete.
        DST_SEL = 0 [11 : 8];
        /// Temporal hint of the load.
        SRC_TEMPORAL = 0 [14 : 13];
        /// Copy two dwords.
        COUNT_SEL = 0 [16 : 16];
        /// Wait until the write is confirmed.
        WRITE_CONFIRM = 0 [20 : 20];
        /// Temporal hint of the store.
        DST_TEMPORAL = 0 [26 : 25];
        /// Source address, low dword, or register or immediate.
        SRC_LO = 1 [31 : 0];
        /// Source address, high dword, or immediate.
        SRC_HI = 2 [31 : 0];
        /// Destination address, low dword, or register.
        DST_LO = 3 [31 : 0];
        /// Destination address, high dword.
        DST_HI = 4 [31 : 0];
    }
}

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A register, by absolute dword offset.
    Register(u32),
    /// Memory through GL2.
    Gl2(u64),
    /// A performance counter, by absolute dword offset.
    PerformanceCounter(u32),
    /// A value; it must fit 32 bits if one dword is copied.
    Immediate(u64),
    /// The GPU's clock counter, 100 MHz.
    GpuClock,
}

/// The destination of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A register, by absolute dword offset.
    Register(u32),
    /// Memory through GL2.
    Gl2(u64),
}

const SELECT_REGISTER: u32 = 0;
const SELECT_GL2: u32 = 2;
const SOURCE_PERFORMANCE_COUNTER: u32 = 4;
const SOURCE_IMMEDIATE: u32 = 5;
const SOURCE_GPU_CLOCK: u32 = 9;

impl<T: AsRef<[u32]>> Packet<T> {
    /// The source, as the raw field value.
    pub fn source_select(&self) -> u32 {
        self.get(field::SRC_SEL)
    }

    /// The destination, as the raw field value.
    pub fn destination_select(&self) -> u32 {
        self.get(field::DST_SEL)
    }

    /// Temporal hint of the load.
    pub fn source_temporal(&self) -> TemporalHint {
        TemporalHint::from_bits(self.get(field::SRC_TEMPORAL)).unwrap_or_default()
    }

    /// Temporal hint of the store.
    pub fn destination_temporal(&self) -> TemporalHint {
        TemporalHint::from_bits(self.get(field::DST_TEMPORAL)).unwrap_or_default()
    }

    /// Whether two dwords are copied.
    pub fn wide(&self) -> bool {
        self.get(field::COUNT_SEL) != 0
    }

    /// Whether to wait until the write is confirmed.
    pub fn write_confirm(&self) -> bool {
        self.get(field::WRITE_CONFIRM) != 0
    }

    /// Source address, register or immediate.
    pub fn source_bits(&self) -> u64 {
        join(self.get(field::SRC_LO), self.get(field::SRC_HI))
    }

    /// Destination address or register.
    pub fn destination_bits(&self) -> u64 {
        join(self.get(field::DST_LO), self.get(field::DST_HI))
    }
}

/// A copy as a value. Addresses are multiples of 4, or of 8 if two dwords are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// The source.
    pub source: Source,
    /// The destination.
    pub destination: Destination,
    /// Temporal hint of the load.
    pub source_temporal: TemporalHint,
    /// Temporal hint of the store.
    pub destination_temporal: TemporalHint,
    /// Whether two dwords are copied.
    pub wide: bool,
    /// Whether to wait until the write is confirmed.
    pub write_confirm: bool,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 6;

    /// Copies two dwords of `source` to memory and waits until the write is confirmed.
    pub const fn to_memory(source: Source, address: u64) -> Repr {
        Repr {
            header_flags: HeaderFlags::empty(),
            source,
            destination: Destination::Gl2(address),
            source_temporal: TemporalHint::Regular,
            destination_temporal: TemporalHint::Regular,
            wide: true,
            write_confirm: true,
        }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        let wide = packet.wide();
        let alignment = if wide { 8 } else { 4 };
        let from = packet.source_bits();
        let source = match packet.source_select() {
            SELECT_REGISTER => Source::Register(parse_low(field::SRC_HI, from)?),
            SELECT_GL2 => Source::Gl2(parse_aligned(from, alignment)?),
            SOURCE_PERFORMANCE_COUNTER => Source::PerformanceCounter(parse_low(field::SRC_HI, from)?),
            SOURCE_IMMEDIATE if wide => Source::Immediate(from),
            SOURCE_IMMEDIATE => Source::Immediate(u64::from(parse_low(field::SRC_HI, from)?)),
            SOURCE_GPU_CLOCK if parse_low(field::SRC_HI, from)? != 0 => {
                return Err(ParseError::Value { field: field::SRC_LO, value: split(from).0 });
            }
            SOURCE_GPU_CLOCK => Source::GpuClock,
            value => return Err(ParseError::Value { field: field::SRC_SEL, value }),
        };
        let to = packet.destination_bits();
        let destination = match packet.destination_select() {
            SELECT_REGISTER => Destination::Register(parse_low(field::DST_HI, to)?),
            SELECT_GL2 => Destination::Gl2(parse_aligned(to, alignment)?),
            value => return Err(ParseError::Value { field: field::DST_SEL, value }),
        };
        Ok(Repr {
            header_flags: packet.header().flags(),
            source,
            destination,
            source_temporal: packet.source_temporal(),
            destination_temporal: packet.destination_temporal(),
            wide,
            write_confirm: packet.write_confirm(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        let alignment = if self.wide { 8 } else { 4 };
        let (source_select, source) = match self.source {
            Source::Register(register) => (SELECT_REGISTER, u64::from(register)),
            Source::Gl2(address) => (SELECT_GL2, address),
            Source::PerformanceCounter(register) => (SOURCE_PERFORMANCE_COUNTER, u64::from(register)),
            Source::Immediate(value) if !self.wide && value > u64::from(u32::MAX) => {
                return Err(EmitError::Unused { name: field::SRC_HI.name });
            }
            Source::Immediate(value) => (SOURCE_IMMEDIATE, value),
            Source::GpuClock => (SOURCE_GPU_CLOCK, 0),
        };
        if matches!(self.source, Source::Gl2(_)) {
            check_aligned(source, alignment)?;
        }
        let (destination_select, destination) = match self.destination {
            Destination::Register(register) => (SELECT_REGISTER, u64::from(register)),
            Destination::Gl2(address) => (SELECT_GL2, address),
        };
        if !matches!(self.destination, Destination::Register(_)) {
            check_aligned(destination, alignment)?;
        }
        let control = field::SRC_SEL.put(source_select)?
            | field::DST_SEL.put(destination_select)?
            | field::SRC_TEMPORAL.put(self.source_temporal.bits())?
            | field::COUNT_SEL.flag(self.wide)
            | field::WRITE_CONFIRM.flag(self.write_confirm)
            | field::DST_TEMPORAL.put(self.destination_temporal.bits())?;
        let (source_low, source_high) = split(source);
        let (destination_low, destination_high) = split(destination);
        let header = fixed_header(OPCODE, 5, self.header_flags);
        Ok([header, control, source_low, source_high, destination_low, destination_high])
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        emit_words(&self.words()?, words)
    }
}

/// The low dword of a pair whose high dword must be zero.
fn parse_low(high_field: Field, pair: u64) -> Result<u32, ParseError> {
    match split(pair) {
        (low, 0) => Ok(low),
        (_, value) => Err(ParseError::Value { field: high_field, value }),
    }
}

super::words::display_fields!();

#[cfg(test)]
mod tests {
    use super::super::testing::{check_fields, check_golden, check_reserved_bits};
    use super::*;

    /// Copies the clock into memory (hardware reference §4.9).
    const CLOCK: [u32; 6] = [0xc004_4000, 0x0011_0209, 0, 0, 0x89ab_cde8, 0x7f];

    fn check(repr: Repr, golden: &[u32]) {
        check_golden(super::super::Repr::CopyData(repr), golden);
    }

    #[test]
    fn both_directions() {
        let clock = Repr::to_memory(Source::GpuClock, 0x7f_89ab_cde8);
        check(clock, &CLOCK);
        let bare =
            Repr { wide: false, write_confirm: false, ..Repr::to_memory(Source::Register(0x2e00), 0x1000) };
        for (repr, control, low, high) in [
            (bare, 0x200, 0x2e00, 0),
            (Repr { wide: true, ..bare }, 0x1_0200, 0x2e00, 0),
            (Repr { write_confirm: true, ..bare }, 0x10_0200, 0x2e00, 0),
            (Repr { source_temporal: TemporalHint::LastUse, ..bare }, 0x6200, 0x2e00, 0),
            (Repr { destination_temporal: TemporalHint::LastUse, ..bare }, 0x600_0200, 0x2e00, 0),
            (Repr { source: Source::Gl2(0x7_0000_0004), ..bare }, 0x202, 4, 7),
            (Repr { source: Source::PerformanceCounter(5), ..bare }, 0x204, 5, 0),
            (Repr { source: Source::Immediate(0xffff_ffff), ..bare }, 0x205, 0xffff_ffff, 0),
            (Repr { source: Source::Immediate(u64::MAX), wide: true, ..bare }, 0x1_0205, u32::MAX, u32::MAX),
            (Repr { destination: Destination::Register(0x1000), ..bare }, 0, 0x2e00, 0),
        ] {
            check(repr, &[0xc004_4000, control, low, high, 0x1000, 0]);
        }
        check_reserved_bits(&CLOCK, &[0xf9ee_90f0, 0, 0, 0, 0]);
        check_fields(
            field::ALL,
            &[
                ("SRC_SEL", 0, 0xf),
                ("DST_SEL", 0, 0xf00),
                ("SRC_TEMPORAL", 0, 0x6000),
                ("COUNT_SEL", 0, 1 << 16),
                ("WRITE_CONFIRM", 0, 1 << 20),
                ("DST_TEMPORAL", 0, 0x600_0000),
                ("SRC_LO", 1, u32::MAX),
                ("SRC_HI", 2, u32::MAX),
                ("DST_LO", 3, u32::MAX),
                ("DST_HI", 4, u32::MAX),
            ],
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let odd = Repr::to_memory(Source::Gl2(0x1004), 0x2000);
        assert_eq!(odd.words(), Err(EmitError::Misaligned { address: 0x1004, alignment: 8 }));
        let odd = Repr::to_memory(Source::Gl2(0x1000), 0x2004);
        assert_eq!(odd.words(), Err(EmitError::Misaligned { address: 0x2004, alignment: 8 }));
        let narrow = Repr { wide: false, ..Repr::to_memory(Source::Immediate(1 << 32), 0x2000) };
        assert_eq!(narrow.words(), Err(EmitError::Unused { name: "SRC_HI" }));
    }

    #[test]
    fn what_means_nothing_is_an_error() {
        let parse = |words: [u32; 6]| Repr::parse(&Packet::new_checked(words).unwrap());
        let value = |field, value| Err(ParseError::Value { field, value });
        assert_eq!(parse([0xc004_4000, 0x203, 0, 0, 0, 0]), value(field::SRC_SEL, 3));
        // The obsolete selects are refused: GL2 has one number.
        assert_eq!(parse([0xc004_4000, 0x201, 0, 0, 0, 0]), value(field::SRC_SEL, 1));
        assert_eq!(parse([0xc004_4000, 0x505, 0, 0, 0, 0]), value(field::DST_SEL, 5));
        assert_eq!(parse([0xc004_4000, 0x305, 0, 0, 0, 0]), value(field::DST_SEL, 3));
        assert_eq!(parse([0xc004_4000, 0x209, 1, 0, 0, 0]), value(field::SRC_LO, 1));
        assert_eq!(parse([0xc004_4000, 0x209, 0, 1, 0, 0]), value(field::SRC_HI, 1));
        assert_eq!(parse([0xc004_4000, 0x205, 7, 1, 0, 0]), value(field::SRC_HI, 1));
        assert_eq!(parse([0xc004_4000, 0x005, 0, 0, 0, 1]), value(field::DST_HI, 1));
        assert_eq!(
            parse([0xc004_4000, 0x1_0202, 4, 0, 0, 0]),
            Err(ParseError::Misaligned { address: 4, alignment: 8 })
        );
        assert_eq!(
            Packet::new_unchecked(CLOCK).to_string(),
            "COPY_DATA SRC_SEL=0x9 DST_SEL=0x2 COUNT_SEL WRITE_CONFIRM DST_LO=0x89abcde8 DST_HI=0x7f"
        );
    }
}
