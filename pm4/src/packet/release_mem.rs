//! RELEASE_MEM: waits for the end of the pipe, performs cache operations, then writes a value (hardware reference
//! §4.6).
//!
//! Exactly seven body dwords. The cache bits are in other positions than in ACQUIRE_MEM. A queue without an
//! end-of-pipe buffer faults at address 0. A fence that the host polls needs GL2_WB, whatever the mapping promises
//! (hardware reference §6.3).

use super::event::Event;
use super::temporal_hint::TemporalHint;
use super::words::{check_aligned, emit_words, fixed_header, join, parse_aligned, split, value_of};
use crate::error::{EmitError, ParseError};
use crate::header::HeaderFlags;

packet_view!(RELEASE_MEM, exact 7);

/// Fields of the body (hardware reference §4.6).
pub mod field {
    fields! {
        /// Event type.
        EVENT_TYPE = 0 [5 : 0];
        /// Wait for the synchronisation.
        WAIT_SYNC = 0 [7 : 7];
        /// How the command processor handles the event.
        EVENT_INDEX = 0 [11 : 8];
        /// Write back the metadata cache.
        GLM_WB = 0 [12 : 12];
        /// Invalidate the metadata cache.
        GLM_INV = 0 [13 : 13];
        /// Invalidate the vector L0.
        GLV_INV = 0 [14 : 14];
        /// Invalidate GL1.
        GL1_INV = 0 [15 : 15];
        /// GL2 operation without synchronisation.
        GL2_US = 0 [16 : 16];
        /// Range of the GL2 operation.
        GL2_RANGE = 0 [18 : 17];
        /// Discard GL2 lines.
        GL2_DISCARD = 0 [19 : 19];
        /// Invalidate GL2.
        GL2_INV = 0 [20 : 20];
        /// Write back GL2.
        GL2_WB = 0 [21 : 21];
        /// Order of the operations.
        SEQ = 0 [23 : 22];
        /// Write back the scalar cache.
        GLK_WB = 0 [24 : 24];
        /// Temporal hint of the store.
        TEMPORAL = 0 [26 : 25];
        /// When to execute.
        EXECUTE = 0 [29 : 28];
        /// Invalidate the scalar cache.
        GLK_INV = 0 [30 : 30];
        /// Pixel wait synchronisation.
        PWS_ENABLE = 0 [31 : 31];
        /// Destination of the value.
        DST_SEL = 1 [17 : 16];
        /// Interrupt mode.
        INT_SEL = 1 [26 : 24];
        /// Kind of value written.
        DATA_SEL = 1 [31 : 29];
        /// Address, low dword.
        ADDRESS_LO = 2 [31 : 0];
        /// Address, high dword.
        ADDRESS_HI = 3 [31 : 0];
        /// Value, low dword.
        DATA_LO = 4 [31 : 0];
        /// Value, high dword.
        DATA_HI = 5 [31 : 0];
        /// Context id that an interrupt carries.
        INT_CTXID = 6 [31 : 0];
    }
}

flags_of_fields! {
    /// The single bits of body dword 0, in place.
    ReleaseFlags of field {
        WAIT_SYNC
        GLM_WB
        GLM_INV
        GLV_INV
        GL1_INV
        GL2_US
        GL2_DISCARD
        GL2_INV
        GL2_WB
        GLK_WB
        GLK_INV
        PWS_ENABLE
    }
}

field_values! {
    /// Destination of the value.
    DestinationSelect {
        /// The memory controller.
        #[default]
        MemoryController = 0,
        /// GL2.
        Gl2 = 1,
        /// A queue's write pointer, first form.
        QueueWritePointer = 2,
        /// A queue's write pointer, second form.
        QueueWritePointerMasked = 3,
    }
}

field_values! {
    /// Interrupt mode.
    InterruptSelect {
        /// No interrupt.
        #[default]
        None = 0,
        /// Interrupt, without writing a value.
        InterruptOnly = 1,
        /// Interrupt once the write is confirmed.
        AfterWriteConfirm = 2,
        /// No interrupt; the value is written once earlier writes are confirmed.
        DataAfterWriteConfirm = 3,
        /// A form that writes the context id.
        ContextId4 = 4,
        /// A form that writes the context id.
        ContextId5 = 5,
        /// A form that writes the context id.
        ContextId6 = 6,
    }
}

field_values! {
    /// Kind of value written.
    DataSelect {
        /// No value.
        #[default]
        None = 0,
        /// The low dword of the value.
        Low32 = 1,
        /// The whole value.
        Full64 = 2,
        /// The GPU's clock counter, 64 bits at 100 MHz.
        GpuClock = 3,
        /// The system clock or performance counter, 64 bits.
        SystemClock = 4,
        /// Global data share.
        Gds = 5,
    }
}

impl DataSelect {
    /// The required alignment of the address.
    const fn alignment(self) -> u32 {
        match self {
            DataSelect::None | DataSelect::Low32 | DataSelect::Gds => 4,
            DataSelect::Full64 | DataSelect::GpuClock | DataSelect::SystemClock => 8,
        }
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// Event type and index.
    pub fn event(&self) -> Event {
        Event { kind: self.get(field::EVENT_TYPE) as u8, index: self.get(field::EVENT_INDEX) as u8 }
    }

    /// The single bits of body dword 0.
    pub fn flags(&self) -> ReleaseFlags {
        ReleaseFlags::from_bits_truncate(self.body()[0])
    }

    /// Range of the GL2 operation.
    pub fn gl2_range(&self) -> u8 {
        self.get(field::GL2_RANGE) as u8
    }

    /// Order of the cache operations.
    pub fn sequence(&self) -> u8 {
        self.get(field::SEQ) as u8
    }

    /// Temporal hint of the store.
    pub fn temporal(&self) -> TemporalHint {
        TemporalHint::from_bits(self.get(field::TEMPORAL)).unwrap_or_default()
    }

    /// When to execute.
    pub fn execute(&self) -> u8 {
        self.get(field::EXECUTE) as u8
    }

    /// Destination of the value.
    pub fn destination(&self) -> DestinationSelect {
        DestinationSelect::from_bits(self.get(field::DST_SEL)).unwrap_or_default()
    }

    /// Interrupt mode, as the raw field value.
    pub fn interrupt_select(&self) -> u32 {
        self.get(field::INT_SEL)
    }

    /// Kind of value, as the raw field value.
    pub fn data_select(&self) -> u32 {
        self.get(field::DATA_SEL)
    }

    /// Address of the value.
    pub fn address(&self) -> u64 {
        join(self.get(field::ADDRESS_LO), self.get(field::ADDRESS_HI))
    }

    /// The value.
    pub fn value(&self) -> u64 {
        join(self.get(field::DATA_LO), self.get(field::DATA_HI))
    }

    /// Context id that an interrupt carries.
    pub fn context_id(&self) -> u32 {
        self.get(field::INT_CTXID)
    }
}

/// A release as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Event type and index.
    pub event: Event,
    /// The single bits of body dword 0.
    pub flags: ReleaseFlags,
    /// Range of the GL2 operation, 2 bits; 0 is everything.
    pub gl2_range: u8,
    /// Order of the cache operations, 2 bits.
    pub sequence: u8,
    /// Temporal hint of the store.
    pub temporal: TemporalHint,
    /// When to execute, 2 bits.
    pub execute: u8,
    /// Destination of the value.
    pub destination: DestinationSelect,
    /// Interrupt mode.
    pub interrupt: InterruptSelect,
    /// Kind of value written.
    pub data: DataSelect,
    /// Address of the value: a multiple of 4, or of 8 if 64 bits are written.
    pub address: u64,
    /// The value. For [`DataSelect::Low32`] it must fit 32 bits.
    pub value: u64,
    /// Context id that an interrupt carries.
    pub context_id: u32,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 8;

    /// A 64-bit fence at the end of the pipe with a GL2 write-back: body dword 0 is 0x00600514. The kernel's own
    /// fence (0x06600514; hardware reference §4.6) differs by a temporal hint that meant bypass on gfx11 only.
    pub const fn fence(address: u64, value: u64) -> Repr {
        Repr {
            header_flags: HeaderFlags::empty(),
            event: Event::CACHE_FLUSH_AND_INV_TS,
            flags: ReleaseFlags::GL2_WB,
            gl2_range: 0,
            sequence: 1,
            temporal: TemporalHint::Regular,
            execute: 0,
            destination: DestinationSelect::MemoryController,
            interrupt: InterruptSelect::None,
            data: DataSelect::Full64,
            address,
            value,
            context_id: 0,
        }
    }

    /// The interrupt that follows a fence: writes the event's id into its slot of the event page, then sends an
    /// interrupt that carries it (hardware reference §2.8, §4.6).
    pub const fn event_interrupt(slot_address: u64, event_id: u32) -> Repr {
        Repr {
            flags: ReleaseFlags::empty(),
            sequence: 0,
            interrupt: InterruptSelect::AfterWriteConfirm,
            data: DataSelect::Low32,
            context_id: event_id,
            ..Repr::fence(slot_address, event_id as u64)
        }
    }

    /// The GPU's clock at the end of the pipe, 64 bits (hardware reference §4.9).
    pub const fn timestamp(address: u64) -> Repr {
        Repr {
            flags: ReleaseFlags::empty(),
            sequence: 0,
            data: DataSelect::GpuClock,
            ..Repr::fence(address, 0)
        }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        let data = value_of(field::DATA_SEL, packet.data_select(), DataSelect::from_bits)?;
        let value = packet.value();
        if data == DataSelect::Low32 && value > u64::from(u32::MAX) {
            return Err(ParseError::Value { field: field::DATA_HI, value: split(value).1 });
        }
        Ok(Repr {
            header_flags: packet.header().flags(),
            event: packet.event(),
            flags: packet.flags(),
            gl2_range: packet.gl2_range(),
            sequence: packet.sequence(),
            temporal: packet.temporal(),
            execute: packet.execute(),
            destination: packet.destination(),
            interrupt: value_of(field::INT_SEL, packet.interrupt_select(), InterruptSelect::from_bits)?,
            data,
            address: parse_aligned(packet.address(), data.alignment())?,
            value,
            context_id: packet.context_id(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        check_aligned(self.address, self.data.alignment())?;
        let (address_low, address_high) = split(self.address);
        let (data_low, data_high) = split(self.value);
        if matches!(self.data, DataSelect::Low32) && data_high != 0 {
            return Err(EmitError::Unused { name: field::DATA_HI.name });
        }
        let control = field::EVENT_TYPE.put(u32::from(self.event.kind))?
            | field::EVENT_INDEX.put(u32::from(self.event.index))?
            | self.flags.bits()
            | field::GL2_RANGE.put(u32::from(self.gl2_range))?
            | field::SEQ.put(u32::from(self.sequence))?
            | field::TEMPORAL.put(self.temporal.bits())?
            | field::EXECUTE.put(u32::from(self.execute))?;
        let select = field::DST_SEL.put(self.destination.bits())?
            | field::INT_SEL.put(self.interrupt.bits())?
            | field::DATA_SEL.put(self.data.bits())?;
        let header = fixed_header(OPCODE, 7, self.header_flags);
        Ok([header, control, select, address_low, address_high, data_low, data_high, self.context_id])
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

    const FENCE: [u32; 8] =
        [0xc006_4900, 0x0060_0514, 0x4000_0000, 0x89ab_cde8, 0x7f, 0x1111_2222, 0x3333_4444, 0];

    fn fence() -> Repr {
        Repr::fence(0x7f_89ab_cde8, 0x3333_4444_1111_2222)
    }

    fn check(repr: Repr, golden: &[u32]) {
        check_golden(super::super::Repr::ReleaseMem(repr), golden);
    }

    #[test]
    fn both_directions() {
        check(fence(), &FENCE);
        // The kernel's fence: 64-bit data and an interrupt (hardware reference §4.6).
        check(
            Repr {
                temporal: TemporalHint::LastUse,
                interrupt: InterruptSelect::AfterWriteConfirm,
                context_id: 9,
                ..fence()
            },
            &[0xc006_4900, 0x0660_0514, 0x4200_0000, 0x89ab_cde8, 0x7f, 0x1111_2222, 0x3333_4444, 9],
        );
        // The signal of hardware reference §4.6 with all caches invalidated.
        let flags = ReleaseFlags::GLM_WB
            | ReleaseFlags::GLM_INV
            | ReleaseFlags::GLV_INV
            | ReleaseFlags::GL1_INV
            | ReleaseFlags::GL2_INV
            | ReleaseFlags::GL2_WB;
        check(
            Repr { flags, data: DataSelect::Low32, ..Repr::fence(0x1004, 5) },
            &[0xc006_4900, 0x0070_f514, 0x2000_0000, 0x1004, 0, 5, 0, 0],
        );
        check(
            Repr { data: DataSelect::Low32, ..Repr::fence(0x1004, 0xffff_ffff) },
            &[0xc006_4900, 0x0060_0514, 0x2000_0000, 0x1004, 0, u32::MAX, 0, 0],
        );
        check(Repr::event_interrupt(0x2008, 3), &[0xc006_4900, 0x514, 0x2200_0000, 0x2008, 0, 3, 0, 3]);
        check(Repr::timestamp(0x3000), &[0xc006_4900, 0x514, 0x6000_0000, 0x3000, 0, 0, 0, 0]);
        check_reserved_bits(&FENCE, &[0x0800_0040, 0x18fc_ffff, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn fields_are_where_the_reference_puts_them() {
        check_fields(
            field::ALL,
            &[
                ("EVENT_TYPE", 0, 0x3f),
                ("WAIT_SYNC", 0, 1 << 7),
                ("EVENT_INDEX", 0, 0xf00),
                ("GLM_WB", 0, 1 << 12),
                ("GLM_INV", 0, 1 << 13),
                ("GLV_INV", 0, 1 << 14),
                ("GL1_INV", 0, 1 << 15),
                ("GL2_US", 0, 1 << 16),
                ("GL2_RANGE", 0, 0x6_0000),
                ("GL2_DISCARD", 0, 1 << 19),
                ("GL2_INV", 0, 1 << 20),
                ("GL2_WB", 0, 1 << 21),
                ("SEQ", 0, 0xc0_0000),
                ("GLK_WB", 0, 1 << 24),
                ("TEMPORAL", 0, 0x600_0000),
                ("EXECUTE", 0, 0x3000_0000),
                ("GLK_INV", 0, 1 << 30),
                ("PWS_ENABLE", 0, 1 << 31),
                ("DST_SEL", 1, 0x3_0000),
                ("INT_SEL", 1, 0x700_0000),
                ("DATA_SEL", 1, 0xe000_0000),
                ("ADDRESS_LO", 2, u32::MAX),
                ("ADDRESS_HI", 3, u32::MAX),
                ("DATA_LO", 4, u32::MAX),
                ("DATA_HI", 5, u32::MAX),
                ("INT_CTXID", 6, u32::MAX),
            ],
        );
        let bare = Repr {
            event: Event { kind: 0, index: 0 },
            flags: ReleaseFlags::empty(),
            sequence: 0,
            data: DataSelect::None,
            ..Repr::fence(0, 0)
        };
        let flag = |flags| Repr { flags, ..bare };
        for (repr, control) in [
            (Repr { event: Event { kind: 0x3f, index: 0 }, ..bare }, 0x3f),
            (Repr { event: Event { kind: 0, index: 0xf }, ..bare }, 0xf00),
            (Repr { gl2_range: 3, ..bare }, 0x6_0000),
            (Repr { sequence: 3, ..bare }, 0xc0_0000),
            (Repr { temporal: TemporalHint::NonTemporal, ..bare }, 0x200_0000),
            (Repr { temporal: TemporalHint::HighTemporal, ..bare }, 0x400_0000),
            (Repr { execute: 3, ..bare }, 0x3000_0000),
            (flag(ReleaseFlags::WAIT_SYNC), 1 << 7),
            (flag(ReleaseFlags::GLM_WB), 1 << 12),
            (flag(ReleaseFlags::GLM_INV), 1 << 13),
            (flag(ReleaseFlags::GLV_INV), 1 << 14),
            (flag(ReleaseFlags::GL1_INV), 1 << 15),
            (flag(ReleaseFlags::GL2_US), 1 << 16),
            (flag(ReleaseFlags::GL2_DISCARD), 1 << 19),
            (flag(ReleaseFlags::GL2_INV), 1 << 20),
            (flag(ReleaseFlags::GL2_WB), 1 << 21),
            (flag(ReleaseFlags::GLK_WB), 1 << 24),
            (flag(ReleaseFlags::GLK_INV), 1 << 30),
            (flag(ReleaseFlags::PWS_ENABLE), 1 << 31),
        ] {
            check(repr, &[0xc006_4900, control, 0, 0, 0, 0, 0, 0]);
        }
        for (value, destination) in (0..).zip(DestinationSelect::ALL) {
            let repr = Repr { destination: *destination, ..bare };
            check(repr, &[0xc006_4900, 0, value << 16, 0, 0, 0, 0, 0]);
        }
        for (value, interrupt) in (0..).zip(InterruptSelect::ALL) {
            let repr = Repr { interrupt: *interrupt, ..bare };
            check(repr, &[0xc006_4900, 0, value << 24, 0, 0, 0, 0, 0]);
        }
        for (value, data) in (0..).zip(DataSelect::ALL) {
            check(Repr { data: *data, ..bare }, &[0xc006_4900, 0, value << 29, 0, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for repr in [
            Repr { event: Event { kind: 0x40, index: 0 }, ..fence() },
            Repr { event: Event { kind: 0, index: 0x10 }, ..fence() },
            Repr { gl2_range: 4, ..fence() },
            Repr { sequence: 4, ..fence() },
            Repr { execute: 4, ..fence() },
        ] {
            assert!(matches!(repr.words(), Err(EmitError::Field(_))), "{repr:?}");
        }
        assert_eq!(
            Repr::fence(0x1004, 1).words(),
            Err(EmitError::Misaligned { address: 0x1004, alignment: 8 })
        );
        let low = Repr { data: DataSelect::Low32, ..Repr::fence(0x1004, 1 << 32) };
        assert_eq!(low.words(), Err(EmitError::Unused { name: "DATA_HI" }));
    }

    #[test]
    fn what_means_nothing_is_an_error() {
        let parse = |dword: usize, word| {
            let mut words = FENCE;
            words[dword] = word;
            Repr::parse(&Packet::new_checked(words).unwrap())
        };
        assert_eq!(parse(2, 0x4700_0000), Err(ParseError::Value { field: field::INT_SEL, value: 7 }));
        assert_eq!(parse(2, 0xc000_0000), Err(ParseError::Value { field: field::DATA_SEL, value: 6 }));
        assert_eq!(parse(3, 4), Err(ParseError::Misaligned { address: 0x7f_0000_0004, alignment: 8 }));
        assert_eq!(
            parse(2, 0x2000_0000),
            Err(ParseError::Value { field: field::DATA_HI, value: 0x3333_4444 })
        );
        let mut longer = FENCE.to_vec();
        longer[0] = 0xc007_4900;
        longer.push(0);
        assert_eq!(
            Packet::new_checked(longer),
            Err(ParseError::BodyLength { opcode: OPCODE, least: 7, found: 8 })
        );
    }

    #[test]
    fn prints() {
        assert_eq!(
            Packet::new_unchecked(FENCE).to_string(),
            "RELEASE_MEM EVENT_TYPE=0x14 EVENT_INDEX=0x5 GL2_WB SEQ=0x1 DATA_SEL=0x2 ADDRESS_LO=0x89abcde8 \
             ADDRESS_HI=0x7f DATA_LO=0x11112222 DATA_HI=0x33334444"
        );
    }
}
