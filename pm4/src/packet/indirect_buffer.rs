//! INDIRECT_BUFFER: executes a contiguous run of packets elsewhere in memory (hardware reference §4.8).
//!
//! At most 2^20 − 1 dwords, in memory mapped for the queue's VM.

use super::words::{check_aligned, emit_words, fixed_header, join, parse_aligned, split};
use crate::error::{EmitError, ParseError};
use crate::header::HeaderFlags;

packet_view!(INDIRECT_BUFFER, exact 3);

/// Most dwords of an indirect buffer (hardware reference §4.8).
pub const INDIRECT_DWORDS_MAX: u32 = 0xf_ffff;

/// Fields of the body (hardware reference §4.8).
pub mod field {
    fields! {
        /// Address, low dword; a multiple of 4.
        IB_BASE_LO = 0 [31 : 0];
        /// Address, high dword.
        IB_BASE_HI = 1 [31 : 0];
        /// Length in dwords.
        IB_SIZE = 2 [19 : 0];
        /// Continue there and do not return.
        CHAIN = 2 [20 : 20];
        /// The buffer is valid; the KFD path sets it.
        VALID = 2 [23 : 23];
        /// Address space to use.
        VMID = 2 [27 : 24];
        /// Cache policy of the fetch.
        CACHE_POLICY = 2 [29 : 28];
        /// Use the queue's address space; user queues set it.
        INHERIT_VMID = 2 [30 : 30];
        /// Privileged; never from user code.
        PRIV = 2 [31 : 31];
    }
}

flags_of_fields! {
    /// The single bits of the control dword, in place.
    IndirectFlags of field {
        CHAIN
        VALID
        INHERIT_VMID
        PRIV
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// Address of the buffer.
    pub fn address(&self) -> u64 {
        join(self.get(field::IB_BASE_LO), self.get(field::IB_BASE_HI))
    }

    /// Length of the buffer in dwords.
    pub fn buffer_dwords(&self) -> u32 {
        self.get(field::IB_SIZE)
    }

    /// The single bits.
    pub fn flags(&self) -> IndirectFlags {
        IndirectFlags::from_bits_truncate(self.body()[2])
    }

    /// Address space to use.
    pub fn vmid(&self) -> u8 {
        self.get(field::VMID) as u8
    }

    /// Cache policy of the fetch.
    pub fn cache_policy(&self) -> u8 {
        self.get(field::CACHE_POLICY) as u8
    }
}

/// A call of, or jump to, a buffer as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Address of the buffer, a multiple of 4.
    pub address: u64,
    /// Length in dwords, at most [`INDIRECT_DWORDS_MAX`].
    pub buffer_dwords: u32,
    /// The single bits.
    pub flags: IndirectFlags,
    /// Address space, 4 bits; 0 from user code.
    pub vmid: u8,
    /// Cache policy of the fetch, 2 bits.
    pub cache_policy: u8,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 4;

    /// A call of a buffer from a KFD queue: VALID set, nothing else.
    pub const fn call(address: u64, buffer_dwords: u32) -> Repr {
        Repr {
            header_flags: HeaderFlags::empty(),
            address,
            buffer_dwords,
            flags: IndirectFlags::VALID,
            vmid: 0,
            cache_policy: 0,
        }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        Ok(Repr {
            header_flags: packet.header().flags(),
            address: parse_aligned(packet.address(), 4)?,
            buffer_dwords: packet.buffer_dwords(),
            flags: packet.flags(),
            vmid: packet.vmid(),
            cache_policy: packet.cache_policy(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        check_aligned(self.address, 4)?;
        let (low, high) = split(self.address);
        let control = field::IB_SIZE.put(self.buffer_dwords)?
            | self.flags.bits()
            | field::VMID.put(u32::from(self.vmid))?
            | field::CACHE_POLICY.put(u32::from(self.cache_policy))?;
        Ok([fixed_header(OPCODE, 3, self.header_flags), low, high, control])
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

    const GOLDEN: [u32; 4] = [0xc002_3f00, 0x1234_5678, 0x7f, 0x0080_0123];

    #[test]
    fn both_directions() {
        let repr = Repr::call(0x7f_1234_5678, 0x123);
        check_golden(super::super::Repr::IndirectBuffer(repr), &GOLDEN);
        let full = Repr {
            header_flags: HeaderFlags::empty(),
            address: 0xffff_ffff_ffff_fffc,
            buffer_dwords: INDIRECT_DWORDS_MAX,
            flags: IndirectFlags::all(),
            vmid: 15,
            cache_policy: 3,
        };
        check_golden(
            super::super::Repr::IndirectBuffer(full),
            &[0xc002_3f00, 0xffff_fffc, 0xffff_ffff, 0xff9f_ffff],
        );
        check_fields(
            field::ALL,
            &[
                ("IB_BASE_LO", 0, u32::MAX),
                ("IB_BASE_HI", 1, u32::MAX),
                ("IB_SIZE", 2, 0x000f_ffff),
                ("CHAIN", 2, 1 << 20),
                ("VALID", 2, 1 << 23),
                ("VMID", 2, 0x0f00_0000),
                ("CACHE_POLICY", 2, 0x3000_0000),
                ("INHERIT_VMID", 2, 1 << 30),
                ("PRIV", 2, 1 << 31),
            ],
        );
        check_reserved_bits(&GOLDEN, &[0, 0, 0x0060_0000]);
    }

    #[test]
    fn each_field_lies_alone() {
        let bare = Repr { flags: IndirectFlags::empty(), ..Repr::call(0, 0) };
        for (repr, control) in [
            (Repr { vmid: 9, ..bare }, 0x0900_0000),
            (Repr { cache_policy: 2, ..bare }, 0x2000_0000),
            (Repr { flags: IndirectFlags::CHAIN, ..bare }, 0x0010_0000),
            (Repr { flags: IndirectFlags::INHERIT_VMID, ..bare }, 0x4000_0000),
            (Repr { flags: IndirectFlags::PRIV, ..bare }, 0x8000_0000),
        ] {
            check_golden(super::super::Repr::IndirectBuffer(repr), &[0xc002_3f00, 0, 0, control]);
        }
    }

    #[test]
    fn overflow_and_misalignment_are_errors() {
        let longer = Repr::call(0, INDIRECT_DWORDS_MAX + 1);
        let expected = FieldOverflow { field: field::IB_SIZE, value: 0x10_0000 };
        assert_eq!(longer.words(), Err(EmitError::Field(expected)));
        assert!(matches!(Repr { vmid: 16, ..Repr::call(0, 1) }.words(), Err(EmitError::Field(_))));
        assert!(matches!(Repr { cache_policy: 4, ..Repr::call(0, 1) }.words(), Err(EmitError::Field(_))));
        assert_eq!(Repr::call(2, 1).words(), Err(EmitError::Misaligned { address: 2, alignment: 4 }));
        assert_eq!(
            Repr::parse(&Packet::new_checked([0xc002_3f00, 1, 0, 0]).unwrap()),
            Err(ParseError::Misaligned { address: 1, alignment: 4 })
        );
        assert_eq!(
            Packet::new_unchecked(GOLDEN).to_string(),
            "INDIRECT_BUFFER IB_BASE_LO=0x12345678 IB_BASE_HI=0x7f IB_SIZE=0x123 VALID"
        );
    }
}
