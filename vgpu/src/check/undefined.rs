//! Undefined data in transit between registers and memory.
//!
//! Contract: plain values, passed between the register rules and the owner of memory. Set bits are undefined. Cost:
//! nothing if everything is defined, since then no such value exists.

use std::fmt;

use zrt_isa::effects::Registers;

/// Dwords of the widest vector access of a lane.
pub const LANE_DWORDS_MAX: usize = 4;
/// Dwords of the widest scalar load.
pub const LOAD_DWORDS_MAX: usize = 16;

/// The location that was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A register, by its number in the effects table.
    Register(u16),
    /// A byte of the lane's private segment, by its offset.
    Private(u32),
    /// A byte of device memory, by its address.
    Memory(u64),
}

/// The origin of undefined data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The location that was never written.
    pub source: Source,
    /// The instruction that first read it.
    pub pc: u64,
}

/// Undefined data of a store.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Undefined bits by element, of which 2addr forms have two, and lane. Those of a lane that does not store mean
    /// nothing.
    pub elements: Vec<[[u32; LANE_DWORDS_MAX]; 64]>,
    /// Its origin.
    pub origin: Origin,
}

/// Undefined data that a lane has loaded from memory or LDS.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The lane; 0 for a scalar load.
    pub lane: u32,
    /// Number of the element.
    pub element: u32,
    /// The undefined bits, from the first byte of the element on.
    pub bits: [u32; LOAD_DWORDS_MAX],
    /// Their origin.
    pub origin: Origin,
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Register(register) => write!(out, "{}", Registers::new(register.into(), 1)),
            Self::Private(offset) => write!(out, "byte {offset} of private memory"),
            Self::Memory(va) => write!(out, "memory at {va:#x}"),
        }
    }
}
