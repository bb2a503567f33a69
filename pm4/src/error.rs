//! Errors in words that are read, and in values that are to be written.

use crate::field::{Field, FieldOverflow};
use crate::opcode::Opcode;
use crate::registers::register::Register;
use core::fmt;

/// Why words are not the requested packet (or register value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// There are no words, not even a header.
    Empty,
    /// The header's type, bits 31:30, is not 3.
    PacketType {
        /// The type found, 0..=2.
        packet_type: u8,
    },
    /// The packet is a different one.
    Opcode {
        /// The opcode of the view.
        expected: Opcode,
        /// The opcode in the header.
        found: Opcode,
    },
    /// The header's bits 7:3 are set.
    HeaderReserved {
        /// The bits.
        bits: u32,
    },
    /// The words end before the packet does.
    Truncated {
        /// Dwords that the header requires, itself included.
        needed: usize,
        /// Dwords available.
        given: usize,
    },
    /// The body's length is not valid for this packet.
    BodyLength {
        /// The packet.
        opcode: Opcode,
        /// Least body dwords (the exact number, for most packets).
        least: usize,
        /// Body dwords by the header.
        found: usize,
    },
    /// Undefined bits are set.
    Reserved {
        /// The packet.
        opcode: Opcode,
        /// Index of the body dword.
        dword: usize,
        /// The bits.
        bits: u32,
    },
    /// A field holds an undefined value.
    Value {
        /// The field.
        field: Field,
        /// Its value.
        value: u32,
    },
    /// An address is not a multiple of the required alignment.
    Misaligned {
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        alignment: u32,
    },
    /// A run of registers leaves the range 0x2C00..0x3000 (hardware reference §4.3).
    RegisterRange {
        /// First register, relative to 0x2C00.
        first: u32,
        /// Registers in the run.
        count: usize,
    },
    /// Register bits outside any field are set.
    RegisterReserved {
        /// The register.
        register: Register,
        /// The bits.
        bits: u32,
    },
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitError {
    /// A value does not fit its field.
    Field(FieldOverflow),
    /// The slice given to `emit` is not exactly as long as the packet.
    Length {
        /// Dwords of the packet.
        needed: usize,
        /// Dwords of the slice.
        given: usize,
    },
    /// The writer's buffer has no space for the packet.
    Full {
        /// Dwords of the packet.
        needed: usize,
        /// Dwords left.
        left: usize,
    },
    /// The body has more dwords than a header can count (0x3FFF; hardware reference §4.1).
    BodyTooLong {
        /// The packet.
        opcode: Opcode,
        /// Dwords requested.
        body_dwords: usize,
    },
    /// A packet that carries values was given none.
    NoValues {
        /// The packet.
        opcode: Opcode,
    },
    /// An address is not a multiple of the required alignment.
    Misaligned {
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        alignment: u32,
    },
    /// An address has more bits than its registers hold.
    AddressTooHigh {
        /// The address.
        address: u64,
        /// Bits available.
        bits: u8,
    },
    /// A run of registers leaves the range 0x2C00..0x3000 (hardware reference §4.3).
    RegisterRange {
        /// First register, relative to 0x2C00.
        first: u32,
        /// Registers in the run.
        count: usize,
    },
    /// A count lies outside the hardware's range.
    OutOfRange {
        /// What is counted.
        name: &'static str,
        /// The value given.
        value: u32,
        /// Least value.
        least: u32,
        /// Greatest value.
        greatest: u32,
    },
    /// A packet carries data that its own selection ignores, so that a reader could not recover it.
    Unused {
        /// The field that should be zero.
        name: &'static str,
    },
    /// Register bits outside any field are set.
    RegisterReserved {
        /// The register.
        register: Register,
        /// The bits.
        bits: u32,
    },
}

impl From<FieldOverflow> for EmitError {
    fn from(overflow: FieldOverflow) -> EmitError {
        EmitError::Field(overflow)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ParseError::Empty => write!(formatter, "there are no words to read a packet from"),
            ParseError::PacketType { packet_type } => {
                write!(formatter, "the header has packet type {packet_type} where type 3 is expected")
            }
            ParseError::Opcode { expected, found } => {
                write!(formatter, "the packet is {found} where {expected} is expected")
            }
            ParseError::HeaderReserved { bits } => {
                write!(formatter, "the header has reserved bits {bits:#x} set")
            }
            ParseError::Truncated { needed, given } => {
                write!(formatter, "the packet needs {needed} dwords and {given} are there")
            }
            ParseError::BodyLength { opcode, least, found } => {
                write!(formatter, "the body of {opcode} has {found} dwords where {least} are needed")
            }
            ParseError::Reserved { opcode, dword, bits } => {
                write!(formatter, "body dword {dword} of {opcode} has reserved bits {bits:#x} set")
            }
            ParseError::Value { field, value } => {
                write!(formatter, "field {} has the value {value:#x}, which has no meaning", field.name)
            }
            ParseError::Misaligned { address, alignment } => {
                write!(formatter, "address {address:#x} is not a multiple of {alignment}")
            }
            ParseError::RegisterRange { first, count } => write!(
                formatter,
                "a run of {count} registers from {first:#x} leaves the 0x400 registers of the shader range"
            ),
            ParseError::RegisterReserved { register, bits } => {
                write!(formatter, "register {register} has reserved bits {bits:#x} set")
            }
        }
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EmitError::Field(overflow) => overflow.fmt(formatter),
            EmitError::Length { needed, given } => {
                write!(formatter, "the packet has {needed} dwords and the slice for it {given}")
            }
            EmitError::Full { needed, left } => {
                write!(formatter, "the packet needs {needed} dwords and the buffer has {left} left")
            }
            EmitError::BodyTooLong { opcode, body_dwords } => {
                write!(formatter, "a body of {body_dwords} dwords is too long for {opcode}")
            }
            EmitError::NoValues { opcode } => write!(formatter, "{opcode} was given no values to carry"),
            EmitError::Misaligned { address, alignment } => {
                write!(formatter, "address {address:#x} is not a multiple of {alignment}")
            }
            EmitError::AddressTooHigh { address, bits } => {
                write!(formatter, "address {address:#x} has more than {bits} bits")
            }
            EmitError::RegisterRange { first, count } => write!(
                formatter,
                "a run of {count} registers from {first:#x} leaves the 0x400 registers of the shader range"
            ),
            EmitError::OutOfRange { name, value, least, greatest } => {
                write!(formatter, "{name} is {value} and must lie in {least}..={greatest}")
            }
            EmitError::Unused { name } => {
                write!(formatter, "{name} is set although the packet's selection does not use it")
            }
            EmitError::RegisterReserved { register, bits } => {
                write!(formatter, "register {register} has reserved bits {bits:#x} set")
            }
        }
    }
}

impl core::error::Error for ParseError {}

impl core::error::Error for EmitError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        None
    }
}
