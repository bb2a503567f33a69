//! The kinds of packets by their numbers and names (hardware reference §4.2).
//!
//! Contract: any 8 bits are an [`Opcode`]; not every one has a name.

use core::fmt;

/// The kind of packet: bits 15:8 of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

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
