//! The type-3 header: opcode, length of the body, shader type, predicate (hardware reference §4.1).
//!
//! Contract: any 32 bits are a [`Header`]; its accessors never panic.

use crate::error::EmitError;
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

/// The kind of packet: bits 15:8 of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

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

macro_rules! opcodes {
    ($($(#[$meta:meta])* $name:ident = $value:literal;)*) => {
        impl Opcode {
            $($(#[$meta])* pub const $name: Opcode = Opcode($value);)*

            /// The manual's name, if the hardware reference §4.2 lists the opcode.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Does nothing; carries dwords that are ignored.
    NOP = 0x10;
    /// Launches a grid of workgroups.
    DISPATCH_DIRECT = 0x15;
    /// Launches a grid whose size lies in memory. Known by name only.
    DISPATCH_INDIRECT = 0x16;
    /// Atomic operation on memory. Known by name only.
    ATOMIC_MEM = 0x1e;
    /// Skips dwords by a condition in memory. Known by name only.
    COND_EXEC = 0x22;
    /// Skips dwords by compute die. Known by name only.
    PRED_EXEC = 0x23;
    /// Writes dwords to memory or a register.
    WRITE_DATA = 0x37;
    /// Waits for a comparison of a register or of memory.
    WAIT_REG_MEM = 0x3c;
    /// Jumps to an indirect buffer.
    INDIRECT_BUFFER = 0x3f;
    /// Copies one or two dwords.
    COPY_DATA = 0x40;
    /// Graphics only. Known by name only.
    PFP_SYNC_ME = 0x42;
    /// Sends an event into the pipe.
    EVENT_WRITE = 0x46;
    /// Waits for the end of the pipe, flushes caches, writes a value.
    RELEASE_MEM = 0x49;
    /// Copies memory. Known by name only.
    DMA_DATA = 0x50;
    /// Invalidates or writes back caches.
    ACQUIRE_MEM = 0x58;
    /// Known by name only.
    REWIND = 0x59;
    /// Known by name only.
    LOAD_SH_REG_INDEX = 0x63;
    /// Known by name only.
    SET_CONFIG_REG = 0x68;
    /// Graphics only. Known by name only.
    SET_CONTEXT_REG = 0x69;
    /// Writes shader registers.
    SET_SH_REG = 0x76;
    /// Known by name only.
    SET_UCONFIG_REG = 0x79;
    /// Known by name only.
    SET_UCONFIG_REG_INDEX = 0x7a;
    /// Known by name only.
    WAIT_REG_MEM64 = 0x93;
    /// Known by name only.
    HDP_FLUSH = 0x95;
    /// Known by name only.
    INVALIDATE_TLBS = 0x98;
    /// Known by name only.
    SET_SH_REG_INDEX = 0x9b;
    /// Known by name only.
    DISPATCH_DIRECT_INTERLEAVED = 0xa7;
    /// Known by name only.
    DISPATCH_INDIRECT_INTERLEAVED = 0xa8;
    /// Known by name only.
    SET_SH_REG_PAIRS = 0xba;
    /// User queues only. Known by name only.
    PROTECTED_FENCE_SIGNAL = 0xd0;
    /// User queues only. Known by name only.
    FENCE_WAIT_MULTI = 0xd1;
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

impl fmt::Display for Opcode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "opcode {:#04x}", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
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
