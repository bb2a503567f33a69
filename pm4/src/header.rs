//! The type-3 header: opcode, length of the body, shader type, predicate (hardware reference §4.1).
//!
//! Contract: any 32 bits are a [`Header`]; its accessors never panic.

use crate::error::EmitError;
use crate::opcode::Opcode;
use bitflags::bitflags;
use core::fmt;

/// Most body dwords of a packet. The next count, 0x3FFF, is the header-only NOP (hardware reference §4.1).
pub const BODY_DWORDS_MAX: usize = 0x3fff;

/// A NOP that is its header alone (hardware reference §4.1).
pub const NOP_HEADER_ONLY: Header = Header(0xffff_1000);

/// The count that only a NOP may have: no body at all.
const COUNT_NO_BODY: u32 = 0x3fff;

/// The first dword of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header(pub u32);

bitflags! {
    /// Bits 2:0 of the header.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct HeaderFlags: u32 {
        /// Execute only if the predicate allows it. Not used on a compute ring.
        const PREDICATE = 1 << 0;
        /// Shader type: compute. Both values execute on a compute ring; it matters on a graphics ring.
        const COMPUTE = 1 << 1;
        /// Reset the register filter.
        const RESET_FILTER_CAM = 1 << 2;
    }
}

impl Header {
    /// A type-3 header for a body of `body_dwords`: 1..=[`BODY_DWORDS_MAX`], or 0 for a NOP.
    pub const fn type3(opcode: Opcode, body_dwords: usize, flags: HeaderFlags) -> Result<Header, EmitError> {
        let count = match body_dwords {
            0 if opcode.0 == Opcode::NOP.0 => COUNT_NO_BODY,
            0 => return Err(EmitError::NoValues { opcode }),
            1..=BODY_DWORDS_MAX => body_dwords as u32 - 1,
            _ => return Err(EmitError::BodyTooLong { opcode, body_dwords }),
        };
        Ok(Header(3 << 30 | count << 16 | (opcode.0 as u32) << 8 | flags.bits()))
    }

    /// Like [`type3`](Header::type3), for a length that the packet itself fixes.
    #[inline(always)]
    pub(crate) const fn fixed(opcode: Opcode, body_dwords: usize, flags: HeaderFlags) -> Header {
        assert!(body_dwords > 0 && body_dwords <= BODY_DWORDS_MAX);
        Header(3 << 30 | (body_dwords as u32 - 1) << 16 | (opcode.0 as u32) << 8 | flags.bits())
    }

    /// Bits 31:30; 3 for every packet of this crate.
    pub const fn packet_type(self) -> u8 {
        (self.0 >> 30) as u8
    }

    /// Bits 29:16, unchanged.
    pub const fn count(self) -> u32 {
        self.0 >> 16 & 0x3fff
    }

    /// Bits 15:8.
    pub const fn opcode(self) -> Opcode {
        Opcode((self.0 >> 8) as u8)
    }

    /// Bits 2:0.
    pub const fn flags(self) -> HeaderFlags {
        HeaderFlags::from_bits_truncate(self.0)
    }

    /// Bits 7:3, which must be zero.
    pub const fn reserved_bits(self) -> u32 {
        self.0 & 0xf8
    }

    /// Dwords that follow the header, or `None` for the count that only a NOP may have.
    pub const fn body_dwords(self) -> Option<usize> {
        match self.count() {
            COUNT_NO_BODY if self.opcode().0 == Opcode::NOP.0 => Some(0),
            COUNT_NO_BODY => None,
            count => Some(count as usize + 1),
        }
    }

    /// Dwords of the packet, header included; `None` as for [`body_dwords`](Header::body_dwords).
    pub const fn packet_dwords(self) -> Option<usize> {
        match self.body_dwords() {
            Some(body) => Some(body + 1),
            None => None,
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Header({:#010x} {})", self.0, self.opcode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers of the hardware reference §4.2, with the body lengths of its last column.
    const GOLDEN: [(Opcode, usize, u32); 18] = [
        (Opcode::NOP, 0, 0xffff_1000),
        (Opcode::DISPATCH_DIRECT, 4, 0xc003_1500),
        (Opcode::DISPATCH_INDIRECT, 3, 0xc002_1600),
        (Opcode::ATOMIC_MEM, 8, 0xc007_1e00),
        (Opcode::COND_EXEC, 4, 0xc003_2200),
        (Opcode::PRED_EXEC, 1, 0xc000_2300),
        (Opcode::WRITE_DATA, 4, 0xc003_3700),
        (Opcode::WAIT_REG_MEM, 6, 0xc005_3c00),
        (Opcode::INDIRECT_BUFFER, 3, 0xc002_3f00),
        (Opcode::COPY_DATA, 5, 0xc004_4000),
        (Opcode::EVENT_WRITE, 1, 0xc000_4600),
        (Opcode::RELEASE_MEM, 7, 0xc006_4900),
        (Opcode::ACQUIRE_MEM, 7, 0xc006_5800),
        (Opcode::SET_SH_REG, 2, 0xc001_7600),
        (Opcode::SET_UCONFIG_REG, 2, 0xc001_7900),
        (Opcode::WAIT_REG_MEM64, 8, 0xc007_9300),
        (Opcode::SET_SH_REG_INDEX, 2, 0xc001_9b00),
        (Opcode::PROTECTED_FENCE_SIGNAL, 1, 0xc000_d000),
    ];

    #[test]
    fn headers_are_the_golden_ones_in_both_directions() {
        for (opcode, body_dwords, word) in GOLDEN {
            let header = Header::type3(opcode, body_dwords, HeaderFlags::empty()).unwrap();
            assert_eq!(header.0, word, "{opcode}");
            let header = Header(word);
            assert_eq!(header.packet_type(), 3);
            assert_eq!(header.opcode(), opcode);
            assert_eq!(header.body_dwords(), Some(body_dwords));
            assert_eq!(header.packet_dwords(), Some(body_dwords + 1));
            assert_eq!((header.flags(), header.reserved_bits()), (HeaderFlags::empty(), 0));
        }
    }

    #[test]
    fn flags_and_reserved_bits_are_where_the_reference_puts_them() {
        let header = Header::type3(Opcode::DISPATCH_DIRECT, 4, HeaderFlags::COMPUTE).unwrap();
        assert_eq!(header.0, 0xc003_1502);
        assert_eq!(Header(0xc003_1501).flags(), HeaderFlags::PREDICATE);
        assert_eq!(Header(0xc003_1504).flags(), HeaderFlags::RESET_FILTER_CAM);
        assert_eq!(Header(0xc003_15f8).reserved_bits(), 0xf8);
    }

    #[test]
    fn a_header_shows_its_word_and_what_it_begins() {
        assert_eq!(format!("{:?}", Header(0xc003_1502)), "Header(0xc0031502 DISPATCH_DIRECT)");
        assert_eq!(format!("{:?}", Header(0xfe00)), "Header(0x0000fe00 opcode 0xfe)");
        assert_eq!(format!("{:?} {:?}", Opcode::ACQUIRE_MEM, Opcode(7)), "ACQUIRE_MEM opcode 0x07");
    }

    #[test]
    fn the_longest_count_belongs_to_nop_alone() {
        assert_eq!(Header(0xffff_1500).body_dwords(), None);
        assert_eq!(Header(0xfffe_1500).body_dwords(), Some(0x3fff));
        assert_eq!(
            Header::type3(Opcode::NOP, 0x4000, HeaderFlags::empty()),
            Err(EmitError::BodyTooLong { opcode: Opcode::NOP, body_dwords: 0x4000 })
        );
        assert_eq!(
            Header::type3(Opcode::SET_SH_REG, 0, HeaderFlags::empty()),
            Err(EmitError::NoValues { opcode: Opcode::SET_SH_REG })
        );
    }
}
