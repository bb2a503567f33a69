//! What is undefined, on its way between registers and memory.
//!
//! Contract: plain values, handed from the register rules to whoever keeps memory and back. Bits that are set are
//! undefined. Cost: nothing where everything is defined, for then there is no such value.

use std::fmt;

use zrt_isa::effects::Registers;

/// Dwords of the widest vector access of a lane.
pub const LANE_DWORDS_MAX: usize = 4;
/// Dwords of the widest scalar load.
pub const LOAD_DWORDS_MAX: usize = 16;

/// What nothing has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A register, by its number in the effects table.
    Register(u16),
    /// A byte of the lane's private segment, by its offset.
    Private(u32),
    /// A byte of device memory, by its address.
    Memory(u64),
}

/// Where something undefined comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What nothing has written.
    pub source: Source,
    /// The instruction that first read it.
    pub pc: u64,
}

/// Undefined data of a store.
#[derive(Clone, Debug)]
pub struct Stored {
    /// By element, of which 2addr forms have two, and lane.
    pub elements: Vec<[[u32; LANE_DWORDS_MAX]; 64]>,
    /// Where it comes from.
    pub origin: Origin,
}

/// What a lane has loaded from memory or LDS that is undefined.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The lane; of a scalar load 0.
    pub lane: u32,
    /// Number of the element.
    pub element: u32,
    /// The bits, from the first byte of the element on.
    pub bits: [u32; LOAD_DWORDS_MAX],
    /// Where they come from.
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
