//! Values of registers that belong to the queue: scratch space, masks of compute units, interleave (hardware
//! reference §5).
//!
//! A dispatch does not write them (hardware reference §9); they are defined here to be read, printed and compared.

use super::register::Register;
use super::reserved::check_reserved;
use crate::error::ParseError;
use crate::field::FieldOverflow;

/// Shader engines that STATIC_THREAD_MGMT has registers for (hardware reference §5: SE0 to SE8).
pub const SE_COUNT_MAX: usize = 9;

/// Fields of TMPRING_SIZE (hardware reference §5).
#[allow(missing_docs)]
pub mod tmpring_size {
    fields! {
        WAVES = 0 [11 : 0];
        WAVESIZE = 0 [29 : 12];
    }
}

/// TMPRING_SIZE: scratch space. Belongs to the queue, not to a dispatch (hardware reference §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TmpringSize {
    /// Waves per shader engine, 12 bits.
    pub waves: u16,
    /// Scratch of a wave in units of 256 bytes, 18 bits.
    pub wave_size: u32,
}

impl TmpringSize {
    /// The register's value.
    pub fn to_word(&self) -> Result<u32, FieldOverflow> {
        Ok(tmpring_size::WAVES.put(self.waves.into())? | tmpring_size::WAVESIZE.put(self.wave_size)?)
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<TmpringSize, ParseError> {
        check_reserved(Register::TMPRING_SIZE, tmpring_size::ALL, word)?;
        Ok(TmpringSize {
            waves: tmpring_size::WAVES.get(word) as u16,
            wave_size: tmpring_size::WAVESIZE.get(word),
        })
    }
}

/// Fields of STATIC_THREAD_MGMT_SEn (hardware reference §5).
#[allow(missing_docs)]
pub mod static_thread_mgmt {
    fields! {
        SA0_CU_EN = 0 [15 : 0];
        SA1_CU_EN = 0 [31 : 16];
    }
}

/// STATIC_THREAD_MGMT of one shader engine: which compute units accept waves. Belongs to the queue (hardware
/// reference §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticThreadMgmt {
    /// Compute units of shader array 0, one bit each.
    pub sa0: u16,
    /// Compute units of shader array 1.
    pub sa1: u16,
}

impl StaticThreadMgmt {
    /// The register's value. Both fields are as wide as their types.
    pub const fn to_word(&self) -> u32 {
        self.sa0 as u32 | (self.sa1 as u32) << 16
    }

    /// The meaning of the register's value.
    pub const fn from_word(word: u32) -> StaticThreadMgmt {
        StaticThreadMgmt {
            sa0: static_thread_mgmt::SA0_CU_EN.get(word) as u16,
            sa1: static_thread_mgmt::SA1_CU_EN.get(word) as u16,
        }
    }
}

/// Fields of DISPATCH_INTERLEAVE (hardware reference §5).
#[allow(missing_docs)]
pub mod dispatch_interleave {
    fields! {
        INTERLEAVE_1D = 0 [9 : 0];
        INTERLEAVE_2D_X_SIZE = 0 [19 : 16];
        INTERLEAVE_2D_Y_SIZE = 0 [27 : 24];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::check_fields;

    #[test]
    fn scratch_fields() {
        // The R9700 with 64 bytes per thread (hardware reference §7).
        let tmpring = TmpringSize { waves: 512, wave_size: 16 };
        assert_eq!(tmpring.to_word(), Ok(0x0001_0200));
        assert_eq!(TmpringSize::from_word(0x0001_0200), Ok(tmpring));
        assert_eq!(TmpringSize { waves: 0, wave_size: 0x3_ffff }.to_word(), Ok(0x3fff_f000));
        assert!(TmpringSize { waves: 4096, wave_size: 0 }.to_word().is_err());
        assert!(TmpringSize { waves: 0, wave_size: 1 << 18 }.to_word().is_err());
        assert!(TmpringSize::from_word(1 << 30).is_err());
    }

    #[test]
    fn masks_and_interleave() {
        assert_eq!(StaticThreadMgmt { sa0: 0x00ff, sa1: 0xff00 }.to_word(), 0xff00_00ff);
        assert_eq!(StaticThreadMgmt::from_word(0xff00_00ff), StaticThreadMgmt { sa0: 0xff, sa1: 0xff00 });
        check_fields(
            dispatch_interleave::ALL,
            &[
                ("INTERLEAVE_1D", 0, 0x3ff),
                ("INTERLEAVE_2D_X_SIZE", 0, 0xf_0000),
                ("INTERLEAVE_2D_Y_SIZE", 0, 0xf00_0000),
            ],
        );
    }
}
