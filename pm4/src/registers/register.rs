//! A register of the shader range by its number.
//!
//! Contract: a plain value. What is known about it is in the table of the module above, and so is its name.

/// First register of the shader range, absolute dword (hardware reference §4.3).
pub const SHADER_RANGE_START: u32 = 0x2c00;

/// Registers in the shader range: 0x2C00..0x3000 (hardware reference §4.3).
pub const REGISTER_COUNT: usize = 0x400;

/// Number of USER_DATA registers (hardware reference §5).
pub const USER_DATA_COUNT: usize = 16;

/// A register of the shader range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub(super) u16);

impl Register {
    /// The register `relative` dwords after 0x2C00, if it is within the range. It need not be a compute register.
    pub const fn new(relative: u32) -> Option<Register> {
        if (relative as usize) < REGISTER_COUNT { Some(Register(relative as u16)) } else { None }
    }

    /// Dwords after 0x2C00, as SET_SH_REG carries it.
    pub const fn relative(self) -> u32 {
        self.0 as u32
    }

    /// Absolute dword offset of the register.
    pub const fn absolute(self) -> u32 {
        SHADER_RANGE_START + self.0 as u32
    }
}
