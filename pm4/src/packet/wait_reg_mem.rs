//! WAIT_REG_MEM: stops the queue until a comparison is true (hardware reference §4.7).
//!
//! Compares (value & mask) with the reference, unsigned, 32 bits: a client whose values wrap must order them
//! itself.

use super::temporal_hint::TemporalHint;
use super::words::{check_aligned, emit_words, fixed_header, join, parse_aligned, split, value_of};
use crate::error::{EmitError, ParseError};
use crate::header::HeaderFlags;

packet_view!(WAIT_REG_MEM, exact 6);

/// Fields of the body (hardware reference §4.7).
pub mod field {
    fields! {
        /// The comparison.
        FUNCTION = 0 [2 : 0];
        /// 0 register, 1 memory.
        MEM_SPACE = 0 [5 : 4];
        /// 0 wait, 1 write then wait, 3 wait and allow preemption.
        OPERATION = 0 [7 : 6];
        /// Which engine; clear on a compute ring.
        ENGINE = 0 [8 : 8];
        /// Temporal hint of the load.
        TEMPORAL = 0 [26 : 25];
        /// Address, low dword, or a register.
        ADDRESS_LO = 1 [31 : 0];
        /// Address, high dword, or the register to poll after a write.
        ADDRESS_HI = 2 [31 : 0];
        /// Value to compare with.
        REFERENCE = 3 [31 : 0];
        /// Bits that are compared.
        MASK = 4 [31 : 0];
        /// Clocks between polls.
        POLL_INTERVAL = 5 [15 : 0];
        /// Let the asynchronous compute engine poll.
        OFFLOAD = 5 [31 : 31];
    }
}

field_values! {
    /// The comparison: (value & mask) against the reference, unsigned.
    Comparison {
        /// Always true.
        #[default]
        Always = 0,
        /// Less.
        Less = 1,
        /// Less or equal.
        LessEqual = 2,
        /// Equal.
        Equal = 3,
        /// Not equal.
        NotEqual = 4,
        /// Greater or equal.
        GreaterEqual = 5,
        /// Greater.
        Greater = 6,
    }
}

/// What a wait polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A dword of memory; the address is a multiple of 4.
    Memory {
        /// Its address.
        address: u64,
    },
    /// A register, by absolute dword offset.
    Register {
        /// Its offset.
        register: u32,
    },
    /// Write the reference to one register, then poll another, as for the HDP flush (hardware reference §4.8).
    WriteThenWait {
        /// Register to write.
        write: u32,
        /// Register to poll.
        poll: u32,
    },
}

const OPERATION_WAIT: u32 = 0;
const OPERATION_WRITE_THEN_WAIT: u32 = 1;
const OPERATION_PREEMPTABLE: u32 = 3;
const SPACE_REGISTER: u32 = 0;
const SPACE_MEMORY: u32 = 1;

impl<T: AsRef<[u32]>> Packet<T> {
    /// The comparison, as the raw field value.
    pub fn function(&self) -> u32 {
        self.get(field::FUNCTION)
    }

    /// Register or memory, as the raw field value.
    pub fn space(&self) -> u32 {
        self.get(field::MEM_SPACE)
    }

    /// Wait, write then wait or preemptable wait, as the raw field value.
    pub fn operation(&self) -> u32 {
        self.get(field::OPERATION)
    }

    /// Which engine; clear on a compute ring.
    pub fn engine(&self) -> bool {
        self.get(field::ENGINE) != 0
    }

    /// Temporal hint of the load.
    pub fn temporal(&self) -> TemporalHint {
        TemporalHint::from_bits(self.get(field::TEMPORAL)).unwrap_or_default()
    }

    /// Address, or one or two registers.
    pub fn address(&self) -> u64 {
        join(self.get(field::ADDRESS_LO), self.get(field::ADDRESS_HI))
    }

    /// Value to compare with.
    pub fn reference(&self) -> u32 {
        self.get(field::REFERENCE)
    }

    /// Bits that are compared.
    pub fn mask(&self) -> u32 {
        self.get(field::MASK)
    }

    /// Clocks between polls.
    pub fn poll_interval(&self) -> u16 {
        self.get(field::POLL_INTERVAL) as u16
    }

    /// Whether the asynchronous compute engine polls.
    pub fn offload(&self) -> bool {
        self.get(field::OFFLOAD) != 0
    }
}

/// A wait as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// The comparison.
    pub comparison: Comparison,
    /// What the wait polls.
    pub target: Target,
    /// Whether the queue may be preempted during the wait. Not allowed with [`Target::WriteThenWait`].
    pub preemptable: bool,
    /// Which engine; clear on a compute ring.
    pub engine: bool,
    /// Temporal hint of the load.
    pub temporal: TemporalHint,
    /// Value to compare with.
    pub reference: u32,
    /// Bits that are compared.
    pub mask: u32,
    /// Clocks between polls.
    pub poll_interval: u16,
    /// Whether the asynchronous compute engine polls.
    pub offload: bool,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 7;

    /// Waits for a dword of memory, comparing all bits, polled every 4 clocks.
    pub const fn memory(comparison: Comparison, address: u64, reference: u32) -> Repr {
        Repr {
            header_flags: HeaderFlags::empty(),
            comparison,
            target: Target::Memory { address },
            preemptable: false,
            engine: false,
            temporal: TemporalHint::Regular,
            reference,
            mask: u32::MAX,
            poll_interval: 4,
            offload: false,
        }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        let (operation, address) = (packet.operation(), packet.address());
        let (low, high) = split(address);
        let target = match (packet.space(), operation) {
            (SPACE_REGISTER, OPERATION_WRITE_THEN_WAIT) => Target::WriteThenWait { write: low, poll: high },
            (SPACE_MEMORY, OPERATION_WAIT | OPERATION_PREEMPTABLE) => {
                Target::Memory { address: parse_aligned(address, 4)? }
            }
            (SPACE_REGISTER, OPERATION_WAIT | OPERATION_PREEMPTABLE) if high == 0 => {
                Target::Register { register: low }
            }
            (SPACE_REGISTER, OPERATION_WAIT | OPERATION_PREEMPTABLE) => {
                return Err(ParseError::Value { field: field::ADDRESS_HI, value: high });
            }
            (SPACE_REGISTER | SPACE_MEMORY, _) => {
                return Err(ParseError::Value { field: field::OPERATION, value: operation });
            }
            (space, _) => return Err(ParseError::Value { field: field::MEM_SPACE, value: space }),
        };
        Ok(Repr {
            header_flags: packet.header().flags(),
            comparison: value_of(field::FUNCTION, packet.function(), Comparison::from_bits)?,
            target,
            preemptable: operation == OPERATION_PREEMPTABLE,
            engine: packet.engine(),
            temporal: packet.temporal(),
            reference: packet.reference(),
            mask: packet.mask(),
            poll_interval: packet.poll_interval(),
            offload: packet.offload(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        let wait = if self.preemptable { OPERATION_PREEMPTABLE } else { OPERATION_WAIT };
        let (space, operation, low, high) = match self.target {
            Target::Memory { address } => {
                check_aligned(address, 4)?;
                let (low, high) = split(address);
                (SPACE_MEMORY, wait, low, high)
            }
            Target::Register { register } => (SPACE_REGISTER, wait, register, 0),
            Target::WriteThenWait { .. } if self.preemptable => {
                return Err(EmitError::Unused { name: "preemptable" });
            }
            Target::WriteThenWait { write, poll } => (SPACE_REGISTER, OPERATION_WRITE_THEN_WAIT, write, poll),
        };
        let control = field::FUNCTION.put(self.comparison.bits())?
            | field::MEM_SPACE.put(space)?
            | field::OPERATION.put(operation)?
            | field::ENGINE.flag(self.engine)
            | field::TEMPORAL.put(self.temporal.bits())?;
        let interval = u32::from(self.poll_interval) | field::OFFLOAD.flag(self.offload);
        let header = fixed_header(OPCODE, 6, self.header_flags);
        Ok([header, control, low, high, self.reference, self.mask, interval])
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

    /// The fence wait of hardware reference §4.7: memory, greater or equal.
    const FENCE_WAIT: [u32; 7] = [0xc005_3c00, 0x15, 0x1234_5674, 0x7f, 42, 0xffff_ffff, 4];

    fn fence_wait() -> Repr {
        Repr::memory(Comparison::GreaterEqual, 0x7f_1234_5674, 42)
    }

    fn check(repr: Repr, golden: &[u32]) {
        check_golden(super::super::Repr::WaitRegMem(repr), golden);
    }

    #[test]
    fn both_directions() {
        check(fence_wait(), &FENCE_WAIT);
        // The HDP flush of hardware reference §4.8.
        check(
            Repr {
                comparison: Comparison::Equal,
                target: Target::WriteThenWait { write: 0xe26, poll: 0xe27 },
                reference: u32::MAX,
                ..fence_wait()
            },
            &[0xc005_3c00, 0x43, 0xe26, 0xe27, 0xffff_ffff, 0xffff_ffff, 4],
        );
        check(
            Repr { target: Target::Register { register: 0x2e00 }, ..fence_wait() },
            &[0xc005_3c00, 0x05, 0x2e00, 0, 42, 0xffff_ffff, 4],
        );
        check(
            Repr {
                preemptable: true,
                engine: true,
                temporal: TemporalHint::LastUse,
                mask: 0xff,
                poll_interval: 0xffff,
                offload: true,
                ..fence_wait()
            },
            &[0xc005_3c00, 0x0600_01d5, 0x1234_5674, 0x7f, 42, 0xff, 0x8000_ffff],
        );
        check_reserved_bits(&FENCE_WAIT, &[0xf9ff_fe08, 0, 0, 0, 0, 0x7fff_0000]);
    }

    #[test]
    fn fields_are_where_the_reference_puts_them() {
        check_fields(
            field::ALL,
            &[
                ("FUNCTION", 0, 0x7),
                ("MEM_SPACE", 0, 0x30),
                ("OPERATION", 0, 0xc0),
                ("ENGINE", 0, 0x100),
                ("TEMPORAL", 0, 0x600_0000),
                ("ADDRESS_LO", 1, u32::MAX),
                ("ADDRESS_HI", 2, u32::MAX),
                ("REFERENCE", 3, u32::MAX),
                ("MASK", 4, u32::MAX),
                ("POLL_INTERVAL", 5, 0xffff),
                ("OFFLOAD", 5, 1 << 31),
            ],
        );
        for (value, comparison) in (0..).zip(Comparison::ALL) {
            let mut golden = FENCE_WAIT;
            golden[1] = 0x10 | value;
            check(Repr { comparison: *comparison, ..fence_wait() }, &golden);
        }
        for (control, repr) in [
            (0xd5, Repr { preemptable: true, ..fence_wait() }),
            (0x115, Repr { engine: true, ..fence_wait() }),
            (0x200_0015, Repr { temporal: TemporalHint::NonTemporal, ..fence_wait() }),
        ] {
            let mut golden = FENCE_WAIT;
            golden[1] = control;
            check(repr, &golden);
        }
    }

    #[test]
    fn what_means_nothing_is_an_error() {
        let parse = |dword: usize, word| {
            let mut words = FENCE_WAIT;
            words[dword] = word;
            Repr::parse(&Packet::new_checked(words).unwrap())
        };
        assert_eq!(parse(1, 0x17), Err(ParseError::Value { field: field::FUNCTION, value: 7 }));
        assert_eq!(parse(1, 0x25), Err(ParseError::Value { field: field::MEM_SPACE, value: 2 }));
        assert_eq!(parse(1, 0x95), Err(ParseError::Value { field: field::OPERATION, value: 2 }));
        assert_eq!(parse(1, 0x55), Err(ParseError::Value { field: field::OPERATION, value: 1 }));
        assert_eq!(parse(1, 0x05), Err(ParseError::Value { field: field::ADDRESS_HI, value: 0x7f }));
        assert_eq!(parse(2, 6), Err(ParseError::Misaligned { address: 0x7f_0000_0006, alignment: 4 }));

        let both =
            Repr { target: Target::WriteThenWait { write: 1, poll: 2 }, preemptable: true, ..fence_wait() };
        assert_eq!(both.words(), Err(EmitError::Unused { name: "preemptable" }));
        let odd = Repr::memory(Comparison::Equal, 2, 0);
        assert_eq!(odd.words(), Err(EmitError::Misaligned { address: 2, alignment: 4 }));
    }

    #[test]
    fn prints() {
        assert_eq!(
            Packet::new_unchecked(FENCE_WAIT).to_string(),
            "WAIT_REG_MEM FUNCTION=0x5 MEM_SPACE=0x1 ADDRESS_LO=0x12345674 ADDRESS_HI=0x7f REFERENCE=0x2a \
             MASK=0xffffffff POLL_INTERVAL=0x4"
        );
    }
}
