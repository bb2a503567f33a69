//! The field positions of PGM_RSRC1, PGM_RSRC2 and PGM_RSRC3: what a kernel's waves need (hardware reference §5.2).
//!
//! Contract: for printing, and so that a recorder refuses bits that the registers do not have. A kernel comes with
//! its finished words: its assembler or loader makes them.

use super::register::{Register, USER_DATA_COUNT};
use super::reserved::check_reserved;
use crate::error::{EmitError, ParseError};

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

/// Checks the three words of a launch: no bits outside the fields, and no more user SGPRs than exist.
pub(crate) fn check_words(rsrc1: u32, rsrc2: u32, rsrc3: u32) -> Result<(), EmitError> {
    let words = [
        (Register::PGM_RSRC1, rsrc1::ALL, rsrc1),
        (Register::PGM_RSRC2, rsrc2::ALL, rsrc2),
        (Register::PGM_RSRC3, rsrc3::ALL, rsrc3),
    ];
    for (register, fields, word) in words {
        if let Err(ParseError::RegisterReserved { register, bits }) = check_reserved(register, fields, word) {
            return Err(EmitError::RegisterReserved { register, bits });
        }
    }
    let (value, greatest) = (rsrc2::USER_SGPR.get(rsrc2), USER_DATA_COUNT as u32);
    match value > greatest {
        true => Err(EmitError::OutOfRange { name: "USER_SGPR", value, least: 0, greatest }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::check_fields;

    #[test]
    fn fields_are_where_the_reference_puts_them() {
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
        check_fields(
            rsrc3::ALL,
            &[
                ("SHARED_VGPR_CNT", 0, 0xf),
                ("INST_PREF_SIZE", 0, 0xff0),
                ("GLG_EN", 0, 1 << 13),
                ("IMAGE_OP", 0, 1 << 31),
            ],
        );
    }

    #[test]
    fn words_with_other_bits_are_refused() {
        assert_eq!(check_words(0xe7ff_ffff, 16 << 1, 0x8000_2fff), Ok(()));
        let reserved = |register, bits| Err(EmitError::RegisterReserved { register, bits });
        assert_eq!(check_words(3 << 27, 0, 0), reserved(Register::PGM_RSRC1, 3 << 27));
        assert_eq!(check_words(0, 0, 1 << 12), reserved(Register::PGM_RSRC3, 1 << 12));
        let (value, greatest) = (17, 16);
        let many = EmitError::OutOfRange { name: "USER_SGPR", value, least: 0, greatest };
        assert_eq!(check_words(0, 17 << 1, 0), Err(many));
    }
}
