//! Resource words of a compute program (PGM_RSRC1, 2, 3), allocation granules and occupancy of gfx1201.
//!
//! Contract: plain values, no allocation. A field value that does not fit is an error, never masked. Bit positions:
//! hardware reference §5.2; limits and granules: hardware reference §7, instruction set reference §2.

use thiserror::Error;

/// Vector registers that one wave can name.
pub const VGPRS_PER_WAVE_MAX: u32 = 256;
/// Scalar registers that a program may use; the allocation is fixed at 128 (hardware reference §7).
pub const SGPRS_PER_WAVE_MAX: u32 = 106;
/// Unit of RSRC1's VGPR field in wave32.
pub const VGPR_FIELD_GRANULE_WAVE32: u32 = 8;
/// Unit of RSRC1's VGPR field in wave64.
pub const VGPR_FIELD_GRANULE_WAVE64: u32 = 4;
/// Vector registers of one SIMD, counted as wave32 registers.
pub const VGPR_FILE_WAVE32: u32 = 1536;
/// Unit in which a SIMD allocates vector registers to a wave32.
pub const VGPR_ALLOCATION_GRANULE_WAVE32: u32 = 24;
/// Unit in which a SIMD allocates vector registers to a wave64.
pub const VGPR_ALLOCATION_GRANULE_WAVE64: u32 = 12;
/// Resident waves of one SIMD.
pub const WAVES_PER_SIMD_MAX: u32 = 16;
/// SIMDs of one compute unit.
pub const SIMDS_PER_CU: u32 = 2;
/// Resident waves of one compute unit.
pub const WAVES_PER_CU_MAX: u32 = 32;
/// Work-items of one workgroup.
pub const WORKGROUP_ITEMS_MAX: u32 = 1024;
/// Bytes of LDS that one workgroup may request.
pub const LDS_BYTES_PER_GROUP_MAX: u32 = 64 * 1024;
/// Physical LDS of a pair of compute units (a WGP).
pub const LDS_BYTES_PER_WGP: u32 = 128 * 1024;
/// Unit of RSRC2's LDS field in bytes.
pub const LDS_FIELD_GRANULE_BYTES: u32 = 512;
/// Unit in which LDS is allocated, in bytes.
pub const LDS_ALLOCATION_GRANULE_BYTES: u32 = 1024;
/// User SGPRs that a dispatch can preload (USER_DATA_0..15).
pub const USER_SGPRS_MAX: u32 = 16;
/// Unit of RSRC3's instruction prefetch field in bytes.
pub const INSTRUCTION_PREFETCH_GRANULE_BYTES: u32 = 128;

/// Why resources cannot be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResourceError {
    /// A field does not fit.
    #[error("{field} is {value}, but at most {max} fits")]
    FieldTooLarge {
        /// Field by its name in the hardware reference.
        field: &'static str,
        /// Value given.
        value: u32,
        /// Largest value.
        max: u32,
    },
    /// A count that must not be zero is zero.
    #[error("{field} is 0, but at least 1 is needed")]
    FieldZero {
        /// Field by its name in the hardware reference.
        field: &'static str,
    },
    /// Bits that the hardware reserves are set.
    #[error("{word} has reserved bits {bits:#010x} set")]
    ReservedBits {
        /// The word's name.
        word: &'static str,
        /// The bits set that must be zero.
        bits: u32,
    },
}

/// Lanes of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaveSize {
    /// 32 lanes: native on gfx12.
    Wave32,
    /// 64 lanes.
    Wave64,
}

impl WaveSize {
    /// Number of lanes.
    pub const fn lanes(self) -> u32 {
        match self {
            WaveSize::Wave32 => 32,
            WaveSize::Wave64 => 64,
        }
    }

    /// Unit of RSRC1's VGPR field.
    pub const fn vgpr_field_granule(self) -> u32 {
        match self {
            WaveSize::Wave32 => VGPR_FIELD_GRANULE_WAVE32,
            WaveSize::Wave64 => VGPR_FIELD_GRANULE_WAVE64,
        }
    }
}

/// Rounding of float results: the two bits of MODE (instruction set reference §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RoundMode {
    #[default]
    NearestEven,
    TowardsPositive,
    TowardsNegative,
    TowardsZero,
}

/// Handling of denormal floats: the two bits of MODE (instruction set reference §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DenormalMode {
    FlushInputsAndOutputs,
    FlushOutputs,
    FlushInputs,
    #[default]
    Keep,
}

/// PGM_RSRC1 by field. The default matches our kernels: nearest-even, denormals kept, CU mode, ordered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rsrc1 {
    /// Field 5:0: VGPR blocks minus one, 0..=63 (see [`vgpr_field`]).
    pub vgpr_blocks_minus_one: u32,
    /// Field 11:10, 0..=3.
    pub priority: u32,
    /// f32 rounding.
    pub round_f32: RoundMode,
    /// f16 and f64 rounding.
    pub round_f16_f64: RoundMode,
    /// f32 denormals.
    pub denormal_f32: DenormalMode,
    /// f16 and f64 denormals.
    pub denormal_f16_f64: DenormalMode,
    /// PRIV: not allowed for user code.
    pub privileged: bool,
    /// WG_RR_EN.
    pub workgroup_round_robin: bool,
    /// DEBUG_MODE.
    pub debug_mode: bool,
    /// DISABLE_PERF.
    pub disable_performance_counters: bool,
    /// BULKY.
    pub bulky: bool,
    /// CDBG_USER.
    pub debug_user: bool,
    /// FP16_OVFL: an f16 overflow returns the largest number instead of infinity.
    pub f16_overflow_clamps: bool,
    /// WGP_MODE: a workgroup may span both compute units of a WGP.
    pub wgp_mode: bool,
    /// MEM_ORDERED.
    pub memory_ordered: bool,
    /// FWD_PROGRESS: waves of a SIMD get their turn whatever their age. Set as compilers do
    /// (`.amdhsa_forward_progress`, default 1 from gfx10 on): a wave that spins must not starve the wave it waits
    /// for.
    pub forward_progress: bool,
}

impl Default for Rsrc1 {
    fn default() -> Self {
        Rsrc1 {
            vgpr_blocks_minus_one: 0,
            priority: 0,
            round_f32: RoundMode::NearestEven,
            round_f16_f64: RoundMode::NearestEven,
            denormal_f32: DenormalMode::Keep,
            denormal_f16_f64: DenormalMode::Keep,
            privileged: false,
            workgroup_round_robin: false,
            debug_mode: false,
            disable_performance_counters: false,
            bulky: false,
            debug_user: false,
            f16_overflow_clamps: false,
            wgp_mode: false,
            memory_ordered: true,
            forward_progress: true,
        }
    }
}

/// PGM_RSRC2 by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rsrc2 {
    /// SCRATCH_EN.
    pub scratch: bool,
    /// USER_SGPR, 0..=16.
    pub user_sgprs: u32,
    /// DYNAMIC_VGPR.
    pub dynamic_vgpr: bool,
    /// TGID_X_EN, Y, Z.
    pub workgroup_id: [bool; 3],
    /// TG_SIZE_EN.
    pub workgroup_size: bool,
    /// TIDIG_COMP_CNT: 0 X, 1 XY, 2 XYZ.
    pub work_item_components: u32,
    /// Exceptions 14:13: bit 0 address watch, bit 1 memory violation.
    pub exceptions_high: u32,
    /// LDS_SIZE in 512-byte units, 0..=511 (see [`lds_field`]).
    pub lds_blocks: u32,
    /// Exceptions 30:24: invalid, denormal, division by zero, overflow, underflow, inexact, integer division by zero.
    pub exceptions: u32,
    /// WGP_TAKEOVER.
    pub wgp_takeover: bool,
}

/// PGM_RSRC3 by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rsrc3 {
    /// Field 3:0; 0 in wave32.
    pub shared_vgpr_blocks: u32,
    /// INST_PREF_SIZE in 128-byte units, 0..=255 (see [`instruction_prefetch_field`]).
    pub instruction_prefetch: u32,
    /// GLG_EN.
    pub group_launch_guarantee: bool,
    /// IMAGE_OP.
    pub image_operations: bool,
}

/// RSRC1's field for `vgprs` registers.
pub const fn vgpr_field(vgprs: u32, wave_size: WaveSize) -> Result<u32, ResourceError> {
    if vgprs == 0 {
        return Err(ResourceError::FieldZero { field: "VGPRs" });
    }
    if vgprs > VGPRS_PER_WAVE_MAX {
        return Err(ResourceError::FieldTooLarge { field: "VGPRs", value: vgprs, max: VGPRS_PER_WAVE_MAX });
    }
    Ok(vgprs.div_ceil(wave_size.vgpr_field_granule()) - 1)
}

/// RSRC2's LDS field for `bytes`.
pub const fn lds_field(bytes: u32) -> Result<u32, ResourceError> {
    if bytes > LDS_BYTES_PER_GROUP_MAX {
        return Err(ResourceError::FieldTooLarge {
            field: "LDS bytes",
            value: bytes,
            max: LDS_BYTES_PER_GROUP_MAX,
        });
    }
    Ok(bytes.div_ceil(LDS_FIELD_GRANULE_BYTES))
}

/// RSRC3's prefetch field for code of `bytes`: the whole code, or the largest amount that the field can express.
pub const fn instruction_prefetch_field(bytes: u32) -> u32 {
    let lines = bytes.div_ceil(INSTRUCTION_PREFETCH_GRANULE_BYTES);
    if lines > 255 { 255 } else { lines }
}

impl Rsrc1 {
    /// Bits that are reserved or always zero on gfx12: 9:6 (SGPRs) and 28:27.
    const RESERVED: u32 = 0x3C0 | 0x1800_0000;

    /// The register's word, encoded.
    pub fn word(&self) -> Result<u32, ResourceError> {
        let flag = |set: bool, bit: u32| (set as u32) << bit;
        Ok(field("VGPRs", self.vgpr_blocks_minus_one, 0, 6)?
            | field("PRIORITY", self.priority, 10, 2)?
            | (self.round_f32 as u32) << 12
            | (self.round_f16_f64 as u32) << 14
            | (self.denormal_f32 as u32) << 16
            | (self.denormal_f16_f64 as u32) << 18
            | flag(self.privileged, 20)
            | flag(self.workgroup_round_robin, 21)
            | flag(self.debug_mode, 22)
            | flag(self.disable_performance_counters, 23)
            | flag(self.bulky, 24)
            | flag(self.debug_user, 25)
            | flag(self.f16_overflow_clamps, 26)
            | flag(self.wgp_mode, 29)
            | flag(self.memory_ordered, 30)
            | flag(self.forward_progress, 31))
    }

    /// Reads a word back.
    pub fn parse(word: u32) -> Result<Rsrc1, ResourceError> {
        reserved("PGM_RSRC1", word, Self::RESERVED)?;
        let flag = |bit: u32| word >> bit & 1 != 0;
        Ok(Rsrc1 {
            vgpr_blocks_minus_one: word & 0x3F,
            priority: word >> 10 & 3,
            round_f32: round_mode(word >> 12),
            round_f16_f64: round_mode(word >> 14),
            denormal_f32: denormal_mode(word >> 16),
            denormal_f16_f64: denormal_mode(word >> 18),
            privileged: flag(20),
            workgroup_round_robin: flag(21),
            debug_mode: flag(22),
            disable_performance_counters: flag(23),
            bulky: flag(24),
            debug_user: flag(25),
            f16_overflow_clamps: flag(26),
            wgp_mode: flag(29),
            memory_ordered: flag(30),
            forward_progress: flag(31),
        })
    }

    /// Vector registers that the wave may name.
    pub const fn vgprs(&self, wave_size: WaveSize) -> u32 {
        (self.vgpr_blocks_minus_one + 1) * wave_size.vgpr_field_granule()
    }
}

impl Rsrc2 {
    /// The register's word.
    pub fn word(&self) -> Result<u32, ResourceError> {
        let flag = |set: bool, bit: u32| (set as u32) << bit;
        if self.user_sgprs > USER_SGPRS_MAX {
            return Err(ResourceError::FieldTooLarge {
                field: "USER_SGPR",
                value: self.user_sgprs,
                max: USER_SGPRS_MAX,
            });
        }
        if self.work_item_components > 2 {
            return Err(ResourceError::FieldTooLarge {
                field: "TIDIG_COMP_CNT",
                value: self.work_item_components,
                max: 2,
            });
        }
        Ok(flag(self.scratch, 0)
            | field("USER_SGPR", self.user_sgprs, 1, 5)?
            | flag(self.dynamic_vgpr, 6)
            | flag(self.workgroup_id[0], 7)
            | flag(self.workgroup_id[1], 8)
            | flag(self.workgroup_id[2], 9)
            | flag(self.workgroup_size, 10)
            | field("TIDIG_COMP_CNT", self.work_item_components, 11, 2)?
            | field("EXCP_EN_MSB", self.exceptions_high, 13, 2)?
            | field("LDS_SIZE", self.lds_blocks, 15, 9)?
            | field("EXCP_EN", self.exceptions, 24, 7)?
            | flag(self.wgp_takeover, 31))
    }

    /// Reads a word back. Every bit has a meaning; out-of-range counts are errors.
    pub fn parse(word: u32) -> Result<Rsrc2, ResourceError> {
        let flag = |bit: u32| word >> bit & 1 != 0;
        let parsed = Rsrc2 {
            scratch: flag(0),
            user_sgprs: word >> 1 & 0x1F,
            dynamic_vgpr: flag(6),
            workgroup_id: [flag(7), flag(8), flag(9)],
            workgroup_size: flag(10),
            work_item_components: word >> 11 & 3,
            exceptions_high: word >> 13 & 3,
            lds_blocks: word >> 15 & 0x1FF,
            exceptions: word >> 24 & 0x7F,
            wgp_takeover: flag(31),
        };
        parsed.word().map(|_| parsed)
    }

    /// Bytes of LDS that the group is allocated.
    pub const fn lds_bytes(&self) -> u32 {
        self.lds_blocks * LDS_FIELD_GRANULE_BYTES
    }
}

impl Rsrc3 {
    /// Bits that are reserved on gfx12: 12, 30:14.
    const RESERVED: u32 = 0x1000 | 0x7FFF_C000;

    /// The register's word.
    pub fn word(&self) -> Result<u32, ResourceError> {
        Ok(field("SHARED_VGPR_CNT", self.shared_vgpr_blocks, 0, 4)?
            | field("INST_PREF_SIZE", self.instruction_prefetch, 4, 8)?
            | (self.group_launch_guarantee as u32) << 13
            | (self.image_operations as u32) << 31)
    }

    /// Reads a word back.
    pub fn parse(word: u32) -> Result<Rsrc3, ResourceError> {
        reserved("PGM_RSRC3", word, Self::RESERVED)?;
        Ok(Rsrc3 {
            shared_vgpr_blocks: word & 0xF,
            instruction_prefetch: word >> 4 & 0xFF,
            group_launch_guarantee: word >> 13 & 1 != 0,
            image_operations: word >> 31 != 0,
        })
    }
}

/// The resources that one workgroup takes from a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupNeeds {
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Vector registers of each wave, 1..=256.
    pub vgprs: u32,
    /// Bytes of LDS of the group.
    pub lds_bytes: u32,
    /// Work-items of the group, 1..=1024.
    pub work_items: u32,
}

/// How many waves and groups of a kernel can be resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupancy {
    /// Waves of one SIMD, as limited by vector registers.
    pub waves_per_simd: u32,
    /// Waves of one workgroup.
    pub waves_per_group: u32,
    /// Groups of one compute unit in CU mode (LDS, registers and wave slots together). 0: a group fits in no CU.
    pub groups_per_cu: u32,
}

impl GroupNeeds {
    /// Occupancy in CU mode: a group lives on the two SIMDs of one compute unit and shares half of the WGP's LDS.
    pub fn occupancy(&self) -> Result<Occupancy, ResourceError> {
        vgpr_field(self.vgprs, self.wave_size)?;
        lds_field(self.lds_bytes)?;
        if self.work_items == 0 {
            return Err(ResourceError::FieldZero { field: "work-items" });
        }
        if self.work_items > WORKGROUP_ITEMS_MAX {
            return Err(ResourceError::FieldTooLarge {
                field: "work-items",
                value: self.work_items,
                max: WORKGROUP_ITEMS_MAX,
            });
        }
        let waves_per_simd = waves_per_simd(self.vgprs, self.wave_size);
        let waves_per_group = self.work_items.div_ceil(self.wave_size.lanes());
        let by_waves = (waves_per_simd * SIMDS_PER_CU).min(WAVES_PER_CU_MAX) / waves_per_group;
        let lds_taken = self
            .lds_bytes
            .div_ceil(LDS_ALLOCATION_GRANULE_BYTES)
            .saturating_mul(LDS_ALLOCATION_GRANULE_BYTES);
        let by_lds = (LDS_BYTES_PER_WGP / 2).checked_div(lds_taken).unwrap_or(u32::MAX);
        Ok(Occupancy { waves_per_simd, waves_per_group, groups_per_cu: by_waves.min(by_lds) })
    }
}

/// Waves of one SIMD for which there are vector registers: min(16, file / allocation). `vgprs` is 1..=256.
pub const fn waves_per_simd(vgprs: u32, wave_size: WaveSize) -> u32 {
    let (file, granule) = match wave_size {
        WaveSize::Wave32 => (VGPR_FILE_WAVE32, VGPR_ALLOCATION_GRANULE_WAVE32),
        WaveSize::Wave64 => (VGPR_FILE_WAVE32 / 2, VGPR_ALLOCATION_GRANULE_WAVE64),
    };
    let allocated = if vgprs == 0 { granule } else { vgprs.div_ceil(granule) * granule };
    let waves = file / allocated;
    if waves > WAVES_PER_SIMD_MAX { WAVES_PER_SIMD_MAX } else { waves }
}

fn field(name: &'static str, value: u32, shift: u32, bits: u32) -> Result<u32, ResourceError> {
    let max = (1 << bits) - 1;
    if value > max {
        return Err(ResourceError::FieldTooLarge { field: name, value, max });
    }
    Ok(value << shift)
}

fn reserved(name: &'static str, word: u32, mask: u32) -> Result<(), ResourceError> {
    match word & mask {
        0 => Ok(()),
        bits => Err(ResourceError::ReservedBits { word: name, bits }),
    }
}

fn round_mode(bits: u32) -> RoundMode {
    match bits & 3 {
        0 => RoundMode::NearestEven,
        1 => RoundMode::TowardsPositive,
        2 => RoundMode::TowardsNegative,
        _ => RoundMode::TowardsZero,
    }
}

fn denormal_mode(bits: u32) -> DenormalMode {
    match bits & 3 {
        0 => DenormalMode::FlushInputsAndOutputs,
        1 => DenormalMode::FlushOutputs,
        2 => DenormalMode::FlushInputs,
        _ => DenormalMode::Keep,
    }
}

#[cfg(test)]
mod tests;
