//! Values of PGM_RSRC1, PGM_RSRC2 and PGM_RSRC3: what a kernel's waves need (hardware reference §5.2).
//!
//! `to_word` refuses a value that does not fit its field; `from_word` refuses bits that belong to no field.

use super::{Register, check_reserved};
use crate::error::{EmitError, ParseError};
use crate::field::FieldOverflow;
use bitflags::bitflags;

/// Lanes of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveSize {
    /// 32 lanes.
    Wave32,
    /// 64 lanes.
    Wave64,
}

/// Fields of PGM_RSRC1 (hardware reference §5.2).
#[allow(missing_docs)]
pub mod rsrc1 {
    fields! {
        VGPRS = 0 [5 : 0];
        SGPRS = 0 [9 : 6];
        PRIORITY = 0 [11 : 10];
        ROUND_F32 = 0 [13 : 12];
        ROUND_F16_F64 = 0 [15 : 14];
        DENORM_F32 = 0 [17 : 16];
        DENORM_F16_F64 = 0 [19 : 18];
        PRIV = 0 [20 : 20];
        WG_RR_EN = 0 [21 : 21];
        DEBUG_MODE = 0 [22 : 22];
        DISABLE_PERF = 0 [23 : 23];
        BULKY = 0 [24 : 24];
        CDBG_USER = 0 [25 : 25];
        FP16_OVFL = 0 [26 : 26];
        WGP_MODE = 0 [29 : 29];
        MEM_ORDERED = 0 [30 : 30];
        FWD_PROGRESS = 0 [31 : 31];
    }
}

bitflags! {
    /// The single bits of PGM_RSRC1, in place (hardware reference §5.2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Rsrc1Flags: u32 {
        /// Privileged wave; 0 for user code.
        const PRIV = 1 << 20;
        /// Round-robin between workgroups (DX10_CLAMP up to gfx11).
        const WG_RR_EN = 1 << 21;
        /// Debug mode.
        const DEBUG_MODE = 1 << 22;
        /// No performance counters (IEEE up to gfx11).
        const DISABLE_PERF = 1 << 23;
        /// Bulky.
        const BULKY = 1 << 24;
        /// User's conditional debug.
        const CDBG_USER = 1 << 25;
        /// f16 overflow gives the largest finite value.
        const FP16_OVFL = 1 << 26;
        /// A workgroup spans the two compute units of a WGP.
        const WGP_MODE = 1 << 29;
        /// Memory operations return in order.
        const MEM_ORDERED = 1 << 30;
        /// Forward progress between waves.
        const FWD_PROGRESS = 1 << 31;
    }
}

/// PGM_RSRC1 (hardware reference §5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rsrc1 {
    /// VGPR granules less one, 6 bits; [`Rsrc1::vgpr_granules`] computes it.
    pub vgprs: u8,
    /// SGPR granules; 0 from gfx10 on. 4 bits.
    pub sgprs: u8,
    /// Wave priority, 2 bits.
    pub priority: u8,
    /// f32 rounding: 0 nearest even, 1 up, 2 down, 3 to zero.
    pub round_f32: u8,
    /// f16 and f64 rounding, likewise.
    pub round_f16_f64: u8,
    /// f32 denormals: 0 flushed, 3 kept.
    pub denorm_f32: u8,
    /// f16 and f64 denormals, likewise.
    pub denorm_f16_f64: u8,
    /// The single bits.
    pub flags: Rsrc1Flags,
}

impl Rsrc1 {
    /// The VGPRS field for a kernel that uses `vgprs` registers, 1..=256: granules of 8 in wave32, of 4 in wave64, less
    /// one (hardware reference §7).
    pub const fn vgpr_granules(vgprs: u32, wave: WaveSize) -> Result<u8, EmitError> {
        if vgprs == 0 || vgprs > 256 {
            return Err(EmitError::OutOfRange { name: "VGPRs", value: vgprs, least: 1, greatest: 256 });
        }
        let granule = match wave {
            WaveSize::Wave32 => 8,
            WaveSize::Wave64 => 4,
        };
        Ok((vgprs.div_ceil(granule) - 1) as u8)
    }

    /// The register's value.
    pub fn to_word(&self) -> Result<u32, FieldOverflow> {
        Ok(rsrc1::VGPRS.put(self.vgprs.into())?
            | rsrc1::SGPRS.put(self.sgprs.into())?
            | rsrc1::PRIORITY.put(self.priority.into())?
            | rsrc1::ROUND_F32.put(self.round_f32.into())?
            | rsrc1::ROUND_F16_F64.put(self.round_f16_f64.into())?
            | rsrc1::DENORM_F32.put(self.denorm_f32.into())?
            | rsrc1::DENORM_F16_F64.put(self.denorm_f16_f64.into())?
            | self.flags.bits())
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<Rsrc1, ParseError> {
        check_reserved(Register::PGM_RSRC1, rsrc1::ALL, word)?;
        Ok(Rsrc1 {
            vgprs: rsrc1::VGPRS.get(word) as u8,
            sgprs: rsrc1::SGPRS.get(word) as u8,
            priority: rsrc1::PRIORITY.get(word) as u8,
            round_f32: rsrc1::ROUND_F32.get(word) as u8,
            round_f16_f64: rsrc1::ROUND_F16_F64.get(word) as u8,
            denorm_f32: rsrc1::DENORM_F32.get(word) as u8,
            denorm_f16_f64: rsrc1::DENORM_F16_F64.get(word) as u8,
            flags: Rsrc1Flags::from_bits_truncate(word),
        })
    }
}

/// Fields of PGM_RSRC2 (hardware reference §5.2).
#[allow(missing_docs)]
pub mod rsrc2 {
    fields! {
        SCRATCH_EN = 0 [0 : 0];
        USER_SGPR = 0 [5 : 1];
        DYNAMIC_VGPR = 0 [6 : 6];
        TGID_X_EN = 0 [7 : 7];
        TGID_Y_EN = 0 [8 : 8];
        TGID_Z_EN = 0 [9 : 9];
        TG_SIZE_EN = 0 [10 : 10];
        TIDIG_COMP_CNT = 0 [12 : 11];
        EXCP_EN_MSB = 0 [14 : 13];
        LDS_SIZE = 0 [23 : 15];
        EXCP_EN = 0 [30 : 24];
        WGP_TAKEOVER = 0 [31 : 31];
    }
}

bitflags! {
    /// The single bits of PGM_RSRC2, in place (hardware reference §5.2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Rsrc2Flags: u32 {
        /// The kernel uses scratch.
        const SCRATCH_EN = 1 << 0;
        /// The kernel changes its VGPR count.
        const DYNAMIC_VGPR = 1 << 6;
        /// Workgroup id x is wanted.
        const TGID_X_EN = 1 << 7;
        /// Workgroup id y is wanted.
        const TGID_Y_EN = 1 << 8;
        /// Workgroup id z is wanted.
        const TGID_Z_EN = 1 << 9;
        /// Workgroup size is wanted.
        const TG_SIZE_EN = 1 << 10;
        /// Takes over a WGP.
        const WGP_TAKEOVER = 1 << 31;
    }
}

/// PGM_RSRC2 (hardware reference §5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rsrc2 {
    /// USER_DATA registers loaded into SGPRs, 0..=16.
    pub user_sgprs: u8,
    /// Components of the work-item id in VGPR0: 0 x, 1 x and y, 2 all.
    pub work_item_ids: u8,
    /// Exceptions: bit 0 address watch, bit 1 memory violation.
    pub exceptions_memory: u8,
    /// LDS in units of 512 bytes, 9 bits; [`Rsrc2::lds_units`] computes it.
    pub lds_size: u16,
    /// Exceptions: invalid, denormal, division by zero, overflow, underflow, inexact, integer division. 7 bits.
    pub exceptions: u8,
    /// The single bits.
    pub flags: Rsrc2Flags,
}

impl Rsrc2 {
    /// The LDS_SIZE field for `bytes` of LDS, at most 64 KiB per workgroup (hardware reference §7).
    pub const fn lds_units(bytes: u32) -> Result<u16, EmitError> {
        if bytes > 65536 {
            return Err(EmitError::OutOfRange { name: "LDS bytes", value: bytes, least: 0, greatest: 65536 });
        }
        Ok(bytes.div_ceil(512) as u16)
    }

    /// The register's value.
    pub fn to_word(&self) -> Result<u32, EmitError> {
        let user_sgprs = u32::from(self.user_sgprs);
        if user_sgprs > 16 {
            return Err(EmitError::OutOfRange {
                name: "USER_SGPR",
                value: user_sgprs,
                least: 0,
                greatest: 16,
            });
        }
        Ok(rsrc2::USER_SGPR.put(user_sgprs)?
            | rsrc2::TIDIG_COMP_CNT.put(self.work_item_ids.into())?
            | rsrc2::EXCP_EN_MSB.put(self.exceptions_memory.into())?
            | rsrc2::LDS_SIZE.put(self.lds_size.into())?
            | rsrc2::EXCP_EN.put(self.exceptions.into())?
            | self.flags.bits())
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<Rsrc2, ParseError> {
        check_reserved(Register::PGM_RSRC2, rsrc2::ALL, word)?;
        let user_sgprs = rsrc2::USER_SGPR.get(word);
        if user_sgprs > 16 {
            return Err(ParseError::Value { field: rsrc2::USER_SGPR, value: user_sgprs });
        }
        Ok(Rsrc2 {
            user_sgprs: user_sgprs as u8,
            work_item_ids: rsrc2::TIDIG_COMP_CNT.get(word) as u8,
            exceptions_memory: rsrc2::EXCP_EN_MSB.get(word) as u8,
            lds_size: rsrc2::LDS_SIZE.get(word) as u16,
            exceptions: rsrc2::EXCP_EN.get(word) as u8,
            flags: Rsrc2Flags::from_bits_truncate(word),
        })
    }
}

/// Fields of PGM_RSRC3 (hardware reference §5.2).
#[allow(missing_docs)]
pub mod rsrc3 {
    fields! {
        SHARED_VGPR_CNT = 0 [3 : 0];
        INST_PREF_SIZE = 0 [11 : 4];
        GLG_EN = 0 [13 : 13];
        IMAGE_OP = 0 [31 : 31];
    }
}

bitflags! {
    /// The single bits of PGM_RSRC3, in place (hardware reference §5.2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Rsrc3Flags: u32 {
        /// Group launch guarantee.
        const GLG_EN = 1 << 13;
        /// The kernel has image operations.
        const IMAGE_OP = 1 << 31;
    }
}

/// PGM_RSRC3 (hardware reference §5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rsrc3 {
    /// Shared VGPRs, 4 bits; 0 in wave32.
    pub shared_vgprs: u8,
    /// Code to prefetch, in lines of 128 bytes; all 8 bits are the field.
    pub prefetch_lines: u8,
    /// The single bits.
    pub flags: Rsrc3Flags,
}

impl Rsrc3 {
    /// The register's value.
    pub fn to_word(&self) -> Result<u32, FieldOverflow> {
        Ok(rsrc3::SHARED_VGPR_CNT.put(self.shared_vgprs.into())?
            | rsrc3::INST_PREF_SIZE.put(self.prefetch_lines.into())?
            | self.flags.bits())
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<Rsrc3, ParseError> {
        check_reserved(Register::PGM_RSRC3, rsrc3::ALL, word)?;
        Ok(Rsrc3 {
            shared_vgprs: rsrc3::SHARED_VGPR_CNT.get(word) as u8,
            prefetch_lines: rsrc3::INST_PREF_SIZE.get(word) as u8,
            flags: Rsrc3Flags::from_bits_truncate(word),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::check_fields;

    #[test]
    fn vgpr_granules_are_those_of_check_7() {
        for (vgprs, granules) in [(1, 0), (8, 0), (9, 1), (96, 11), (256, 31)] {
            assert_eq!(Rsrc1::vgpr_granules(vgprs, WaveSize::Wave32), Ok(granules));
        }
        for (vgprs, granules) in [(4, 0), (5, 1), (256, 63)] {
            assert_eq!(Rsrc1::vgpr_granules(vgprs, WaveSize::Wave64), Ok(granules));
        }
        for vgprs in [0, 257] {
            assert!(matches!(
                Rsrc1::vgpr_granules(vgprs, WaveSize::Wave32),
                Err(EmitError::OutOfRange { .. })
            ));
        }
    }

    #[test]
    fn rsrc1_fields() {
        check_fields(
            rsrc1::ALL,
            &[
                ("VGPRS", 0, 0x3f),
                ("SGPRS", 0, 0x3c0),
                ("PRIORITY", 0, 0xc00),
                ("ROUND_F32", 0, 0x3000),
                ("ROUND_F16_F64", 0, 0xc000),
                ("DENORM_F32", 0, 0x3_0000),
                ("DENORM_F16_F64", 0, 0xc_0000),
                ("PRIV", 0, 1 << 20),
                ("WG_RR_EN", 0, 1 << 21),
                ("DEBUG_MODE", 0, 1 << 22),
                ("DISABLE_PERF", 0, 1 << 23),
                ("BULKY", 0, 1 << 24),
                ("CDBG_USER", 0, 1 << 25),
                ("FP16_OVFL", 0, 1 << 26),
                ("WGP_MODE", 0, 1 << 29),
                ("MEM_ORDERED", 0, 1 << 30),
                ("FWD_PROGRESS", 0, 1 << 31),
            ],
        );
        let none = Rsrc1::default();
        for (value, word) in [
            (Rsrc1 { vgprs: 63, ..none }, 0x3f),
            (Rsrc1 { sgprs: 15, ..none }, 0x3c0),
            (Rsrc1 { priority: 3, ..none }, 0xc00),
            (Rsrc1 { round_f32: 3, ..none }, 0x3000),
            (Rsrc1 { round_f16_f64: 3, ..none }, 0xc000),
            (Rsrc1 { denorm_f32: 3, ..none }, 0x3_0000),
            (Rsrc1 { denorm_f16_f64: 3, ..none }, 0xc_0000),
            (Rsrc1 { flags: Rsrc1Flags::all(), ..none }, 0xe7f0_0000),
        ] {
            assert_eq!(value.to_word(), Ok(word));
            assert_eq!(Rsrc1::from_word(word), Ok(value));
        }
        for value in [
            Rsrc1 { vgprs: 64, ..none },
            Rsrc1 { sgprs: 16, ..none },
            Rsrc1 { priority: 4, ..none },
            Rsrc1 { round_f32: 4, ..none },
            Rsrc1 { round_f16_f64: 4, ..none },
            Rsrc1 { denorm_f32: 4, ..none },
            Rsrc1 { denorm_f16_f64: 4, ..none },
        ] {
            assert!(value.to_word().is_err(), "{value:?}");
        }
        assert!(Rsrc1::from_word(1 << 27).is_err());
        assert!(Rsrc1::from_word(1 << 28).is_err());
    }

    #[test]
    fn rsrc2_fields() {
        check_fields(
            rsrc2::ALL,
            &[
                ("SCRATCH_EN", 0, 1),
                ("USER_SGPR", 0, 0x3e),
                ("DYNAMIC_VGPR", 0, 1 << 6),
                ("TGID_X_EN", 0, 1 << 7),
                ("TGID_Y_EN", 0, 1 << 8),
                ("TGID_Z_EN", 0, 1 << 9),
                ("TG_SIZE_EN", 0, 1 << 10),
                ("TIDIG_COMP_CNT", 0, 0x1800),
                ("EXCP_EN_MSB", 0, 0x6000),
                ("LDS_SIZE", 0, 0xff_8000),
                ("EXCP_EN", 0, 0x7f00_0000),
                ("WGP_TAKEOVER", 0, 1 << 31),
            ],
        );
        let none = Rsrc2::default();
        for (value, word) in [
            (Rsrc2 { user_sgprs: 16, ..none }, 0x20),
            (Rsrc2 { work_item_ids: 3, ..none }, 0x1800),
            (Rsrc2 { exceptions_memory: 3, ..none }, 0x6000),
            (Rsrc2 { lds_size: 511, ..none }, 0xff_8000),
            (Rsrc2 { exceptions: 0x7f, ..none }, 0x7f00_0000),
            (Rsrc2 { flags: Rsrc2Flags::all(), ..none }, 0x8000_07c1),
        ] {
            assert_eq!(value.to_word(), Ok(word));
            assert_eq!(Rsrc2::from_word(word), Ok(value));
        }
        for value in [
            Rsrc2 { user_sgprs: 17, ..none },
            Rsrc2 { work_item_ids: 4, ..none },
            Rsrc2 { exceptions_memory: 4, ..none },
            Rsrc2 { lds_size: 512, ..none },
            Rsrc2 { exceptions: 0x80, ..none },
        ] {
            assert!(value.to_word().is_err(), "{value:?}");
        }
        assert_eq!(Rsrc2::from_word(17 << 1), Err(ParseError::Value { field: rsrc2::USER_SGPR, value: 17 }));
        assert_eq!([0, 1, 512, 513, 65536].map(Rsrc2::lds_units), [Ok(0), Ok(1), Ok(1), Ok(2), Ok(128)]);
        assert!(Rsrc2::lds_units(65537).is_err());
    }

    #[test]
    fn rsrc3_fields() {
        check_fields(
            rsrc3::ALL,
            &[
                ("SHARED_VGPR_CNT", 0, 0xf),
                ("INST_PREF_SIZE", 0, 0xff0),
                ("GLG_EN", 0, 1 << 13),
                ("IMAGE_OP", 0, 1 << 31),
            ],
        );
        let none = Rsrc3::default();
        for (value, word) in [
            (Rsrc3 { shared_vgprs: 15, ..none }, 0xf),
            (Rsrc3 { prefetch_lines: 255, ..none }, 0xff0),
            (Rsrc3 { flags: Rsrc3Flags::all(), ..none }, 0x8000_2000),
        ] {
            assert_eq!(value.to_word(), Ok(word));
            assert_eq!(Rsrc3::from_word(word), Ok(value));
        }
        assert!(Rsrc3 { shared_vgprs: 16, ..none }.to_word().is_err());
        assert!(Rsrc3::from_word(1 << 12).is_err());
    }
}
