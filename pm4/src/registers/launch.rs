//! Values of the registers that say what a dispatch launches: initiator, workgroup size, limits, code address (hardware
//! reference §5, §5.1).
//!
//! `to_word` refuses a value that does not fit its field; `from_word` refuses bits that belong to no field.

use super::register::Register;
use super::reserved::check_reserved;
use crate::error::{EmitError, ParseError};
use crate::field::FieldOverflow;

/// Required alignment of a code address (hardware reference §5: the registers hold address >> 8).
pub const PGM_ADDRESS_ALIGNMENT: u32 = 256;

/// Most work-items of a workgroup (hardware reference §7).
pub(crate) const WORKGROUP_THREADS_MAX: u32 = 1024;

/// Fields of DISPATCH_INITIATOR (hardware reference §5.1).
#[allow(missing_docs)]
pub mod initiator {
    fields! {
        /// Launch a compute shader.
        COMPUTE_SHADER_EN = 0 [0 : 0];
        /// The last workgroup of a dimension may be partial.
        PARTIAL_TG_EN = 0 [1 : 1];
        /// Start at workgroup 0, 0, 0: x, y, z are counts.
        FORCE_START_AT_000 = 0 [2 : 2];
        /// Ordered append.
        ORDERED_APPEND_ENBL = 0 [3 : 3];
        /// Mode of ordered append.
        ORDERED_APPEND_MODE = 0 [4 : 4];
        /// x, y, z count threads.
        USE_THREAD_DIMENSIONS = 0 [5 : 5];
        /// Order of workgroups.
        ORDER_MODE = 0 [6 : 6];
        /// Invalidate volatile lines of the scalar cache.
        SCALAR_L1_INV_VOL = 0 [10 : 10];
        /// Invalidate volatile lines of the vector cache.
        VECTOR_L1_INV_VOL = 0 [11 : 11];
        /// Alternate the direction; reserved on gfx11.
        PING_PONG_EN = 0 [12 : 12];
        /// Enable tunnelling.
        TUNNEL_ENABLE = 0 [13 : 13];
        /// Restore saved waves.
        RESTORE = 0 [14 : 14];
        /// Waves of 32 lanes.
        CS_W32_EN = 0 [15 : 15];
        /// Amplification shader.
        AMP_SHADER_EN = 0 [16 : 16];
        /// No preemption inside the dispatch.
        DISABLE_DISP_PREMPT_EN = 0 [17 : 17];
        /// Two-dimensional interleave; new on gfx12.
        INTERLEAVE_2D_EN = 0 [18 : 18];
        TTRACE_QUEUE_ID = 0 [31 : 29];
    }
}

flags_of_fields! {
    /// The single bits of DISPATCH_INITIATOR, in place (hardware reference §5.1).
    InitiatorFlags of initiator {
        COMPUTE_SHADER_EN
        PARTIAL_TG_EN
        FORCE_START_AT_000
        ORDERED_APPEND_ENBL
        ORDERED_APPEND_MODE
        USE_THREAD_DIMENSIONS
        ORDER_MODE
        SCALAR_L1_INV_VOL
        VECTOR_L1_INV_VOL
        PING_PONG_EN
        TUNNEL_ENABLE
        RESTORE
        CS_W32_EN
        AMP_SHADER_EN
        DISABLE_DISP_PREMPT_EN
        INTERLEAVE_2D_EN
    }
}

/// DISPATCH_INITIATOR (hardware reference §5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DispatchInitiator {
    /// The single bits.
    pub flags: InitiatorFlags,
    /// TTRACE_QUEUE_ID, 3 bits.
    pub trace_queue: u8,
}

impl DispatchInitiator {
    /// A compute shader in waves of 32 lanes, x, y, z counting workgroups: 0x8005 (hardware reference §4.4).
    pub const WAVE32: DispatchInitiator = DispatchInitiator {
        flags: InitiatorFlags::COMPUTE_SHADER_EN
            .union(InitiatorFlags::FORCE_START_AT_000)
            .union(InitiatorFlags::CS_W32_EN),
        trace_queue: 0,
    };

    /// The same in waves of 64 lanes: 0x5.
    pub const WAVE64: DispatchInitiator = DispatchInitiator {
        flags: InitiatorFlags::COMPUTE_SHADER_EN.union(InitiatorFlags::FORCE_START_AT_000),
        trace_queue: 0,
    };

    /// The register's value.
    #[inline(always)]
    pub const fn to_word(&self) -> Result<u32, FieldOverflow> {
        match initiator::TTRACE_QUEUE_ID.put(self.trace_queue as u32) {
            Ok(bits) => Ok(self.flags.bits() | bits),
            Err(overflow) => Err(overflow),
        }
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<DispatchInitiator, ParseError> {
        check_reserved(Register::DISPATCH_INITIATOR, initiator::ALL, word)?;
        Ok(DispatchInitiator {
            flags: InitiatorFlags::from_bits_truncate(word),
            trace_queue: initiator::TTRACE_QUEUE_ID.get(word) as u8,
        })
    }
}

/// Fields of NUM_THREAD_X and NUM_THREAD_Y (hardware reference §5).
#[allow(missing_docs)]
pub mod num_thread {
    fields! {
        NUM_THREAD_FULL = 0 [12 : 0];
        INTERLEAVE_BITS = 0 [15 : 13];
        NUM_THREAD_PARTIAL = 0 [31 : 16];
    }
}

/// Fields of NUM_THREAD_Z (hardware reference §5).
#[allow(missing_docs)]
pub mod num_thread_z {
    fields! {
        NUM_THREAD_FULL = 0 [15 : 0];
        NUM_THREAD_PARTIAL = 0 [31 : 16];
    }
}

/// One of NUM_THREAD_X, _Y and _Z: threads of a workgroup in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumThread {
    /// Threads of a full workgroup: 13 bits in x and y, 16 in z.
    pub full: u16,
    /// Interleave, 3 bits; x and y only, new on gfx12.
    pub interleave: u8,
    /// Threads of the last workgroup if it is partial.
    pub partial: u16,
}

impl NumThread {
    /// Full workgroups of `threads`, 1..=1024 (hardware reference §7).
    pub const fn full(threads: u32) -> Result<NumThread, EmitError> {
        if threads == 0 || threads > WORKGROUP_THREADS_MAX {
            return Err(EmitError::OutOfRange {
                name: "workgroup threads",
                value: threads,
                least: 1,
                greatest: WORKGROUP_THREADS_MAX,
            });
        }
        Ok(NumThread { full: threads as u16, interleave: 0, partial: 0 })
    }

    /// The value for NUM_THREAD_X or NUM_THREAD_Y.
    pub fn to_word_xy(&self) -> Result<u32, FieldOverflow> {
        Ok(num_thread::NUM_THREAD_FULL.put(self.full.into())?
            | num_thread::INTERLEAVE_BITS.put(self.interleave.into())?
            | num_thread::NUM_THREAD_PARTIAL.put(self.partial.into())?)
    }

    /// The value for NUM_THREAD_Z, which has no interleave.
    pub fn to_word_z(&self) -> Result<u32, EmitError> {
        if self.interleave != 0 {
            return Err(EmitError::Unused { name: num_thread::INTERLEAVE_BITS.name });
        }
        Ok(num_thread_z::NUM_THREAD_FULL.put(self.full.into())?
            | num_thread_z::NUM_THREAD_PARTIAL.put(self.partial.into())?)
    }

    /// The meaning of a value of NUM_THREAD_X or NUM_THREAD_Y.
    pub const fn from_word_xy(word: u32) -> NumThread {
        NumThread {
            full: num_thread::NUM_THREAD_FULL.get(word) as u16,
            interleave: num_thread::INTERLEAVE_BITS.get(word) as u8,
            partial: num_thread::NUM_THREAD_PARTIAL.get(word) as u16,
        }
    }

    /// The meaning of a value of NUM_THREAD_Z.
    pub const fn from_word_z(word: u32) -> NumThread {
        NumThread {
            full: num_thread_z::NUM_THREAD_FULL.get(word) as u16,
            interleave: 0,
            partial: num_thread_z::NUM_THREAD_PARTIAL.get(word) as u16,
        }
    }
}

/// Fields of RESOURCE_LIMITS (hardware reference §5).
#[allow(missing_docs)]
pub mod resource_limits {
    fields! {
        WAVES_PER_SH = 0 [9 : 0];
        TG_PER_CU = 0 [15 : 12];
        LOCK_THRESHOLD = 0 [21 : 16];
        /// Destination of the first wave.
        SIMD_DEST_CNTL = 0 [22 : 22];
        /// Force the distribution over SIMDs.
        FORCE_SIMD_DIST = 0 [23 : 23];
        CU_GROUP_COUNT = 0 [26 : 24];
    }
}

flags_of_fields! {
    /// The single bits of RESOURCE_LIMITS, in place (hardware reference §5).
    ResourceFlags of resource_limits {
        SIMD_DEST_CNTL
        FORCE_SIMD_DIST
    }
}

/// RESOURCE_LIMITS; all zero limits nothing (hardware reference §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Waves per shader array, 10 bits; 0 is the maximum.
    pub waves_per_sh: u16,
    /// Workgroups per compute unit, 4 bits.
    pub workgroups_per_cu: u8,
    /// Lock threshold, 6 bits.
    pub lock_threshold: u8,
    /// Compute unit group, 3 bits.
    pub cu_group: u8,
    /// The single bits.
    pub flags: ResourceFlags,
}

impl ResourceLimits {
    /// The register's value.
    pub fn to_word(&self) -> Result<u32, FieldOverflow> {
        Ok(resource_limits::WAVES_PER_SH.put(self.waves_per_sh.into())?
            | resource_limits::TG_PER_CU.put(self.workgroups_per_cu.into())?
            | resource_limits::LOCK_THRESHOLD.put(self.lock_threshold.into())?
            | resource_limits::CU_GROUP_COUNT.put(self.cu_group.into())?
            | self.flags.bits())
    }

    /// The meaning of the register's value.
    pub fn from_word(word: u32) -> Result<ResourceLimits, ParseError> {
        check_reserved(Register::RESOURCE_LIMITS, resource_limits::ALL, word)?;
        Ok(ResourceLimits {
            waves_per_sh: resource_limits::WAVES_PER_SH.get(word) as u16,
            workgroups_per_cu: resource_limits::TG_PER_CU.get(word) as u8,
            lock_threshold: resource_limits::LOCK_THRESHOLD.get(word) as u8,
            cu_group: resource_limits::CU_GROUP_COUNT.get(word) as u8,
            flags: ResourceFlags::from_bits_truncate(word),
        })
    }
}

/// Fields of PGM_HI (hardware reference §5).
#[allow(missing_docs)]
pub mod pgm_hi {
    fields! {
        DATA = 0 [7 : 0];
    }
}

/// PGM_LO and PGM_HI for code at `address`: a multiple of 256, below 2^48 (hardware reference §5).
pub const fn program_address_words(address: u64) -> Result<[u32; 2], EmitError> {
    if address & (PGM_ADDRESS_ALIGNMENT as u64 - 1) != 0 {
        return Err(EmitError::Misaligned { address, alignment: PGM_ADDRESS_ALIGNMENT });
    }
    if address >> 48 != 0 {
        return Err(EmitError::AddressTooHigh { address, bits: 48 });
    }
    Ok([(address >> 8) as u32, (address >> 40) as u32])
}

/// DISPATCH_SCRATCH_BASE_LO and _HI: address >> 8 (hardware reference §5).
pub const fn scratch_base_words(address: u64) -> Result<[u32; 2], EmitError> {
    program_address_words(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::check_fields;

    #[test]
    fn initiator_fields() {
        assert_eq!(DispatchInitiator::WAVE32.to_word(), Ok(0x8005));
        assert_eq!(DispatchInitiator::WAVE64.to_word(), Ok(0x5));
        assert_eq!(DispatchInitiator::from_word(0x8005), Ok(DispatchInitiator::WAVE32));
        let bits: Vec<u32> = initiator::ALL[..16].iter().map(|field| u32::from(field.low)).collect();
        assert_eq!(bits, [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
        let named: Vec<_> =
            InitiatorFlags::all().iter_names().map(|(name, flag)| (name, flag.bits())).collect();
        let fields: Vec<_> = initiator::ALL[..16].iter().map(|field| (field.name, field.mask())).collect();
        assert_eq!(named, fields);
        for reserved in [7, 8, 9].into_iter().chain(19..29) {
            assert_eq!(
                DispatchInitiator::from_word(1 << reserved),
                Err(ParseError::RegisterReserved {
                    register: Register::DISPATCH_INITIATOR,
                    bits: 1 << reserved
                })
            );
        }
    }

    #[test]
    fn thread_fields() {
        check_fields(
            num_thread::ALL,
            &[
                ("NUM_THREAD_FULL", 0, 0x1fff),
                ("INTERLEAVE_BITS", 0, 0xe000),
                ("NUM_THREAD_PARTIAL", 0, 0xffff_0000),
            ],
        );
        check_fields(
            num_thread_z::ALL,
            &[("NUM_THREAD_FULL", 0, 0xffff), ("NUM_THREAD_PARTIAL", 0, 0xffff_0000)],
        );
        for threads in [1, 32, 1024] {
            let full = NumThread::full(threads).unwrap();
            assert_eq!((full.to_word_xy(), full.to_word_z()), (Ok(threads), Ok(threads)));
        }
        assert!(NumThread::full(0).is_err());
        assert!(NumThread::full(1025).is_err());
        let all = NumThread { full: 0x1fff, interleave: 5, partial: 0x1234 };
        assert_eq!(all.to_word_xy(), Ok(0x1234_bfff));
        assert_eq!(NumThread::from_word_xy(0x1234_bfff), all);
        assert_eq!(
            NumThread::from_word_z(0x1234_bfff),
            NumThread { full: 0xbfff, interleave: 0, partial: 0x1234 }
        );
        assert!(NumThread { full: 0x2000, interleave: 0, partial: 0 }.to_word_xy().is_err());
        assert!(NumThread { interleave: 8, ..all }.to_word_xy().is_err());
        assert_eq!(all.to_word_z(), Err(EmitError::Unused { name: "INTERLEAVE_BITS" }));
    }

    #[test]
    fn limit_fields() {
        check_fields(
            resource_limits::ALL,
            &[
                ("WAVES_PER_SH", 0, 0x3ff),
                ("TG_PER_CU", 0, 0xf000),
                ("LOCK_THRESHOLD", 0, 0x3f_0000),
                ("SIMD_DEST_CNTL", 0, 1 << 22),
                ("FORCE_SIMD_DIST", 0, 1 << 23),
                ("CU_GROUP_COUNT", 0, 0x700_0000),
            ],
        );
        let none = ResourceLimits::default();
        for (value, word) in [
            (none, 0),
            (ResourceLimits { waves_per_sh: 0x3ff, ..none }, 0x3ff),
            (ResourceLimits { workgroups_per_cu: 15, ..none }, 0xf000),
            (ResourceLimits { lock_threshold: 63, ..none }, 0x3f_0000),
            (ResourceLimits { cu_group: 7, ..none }, 0x700_0000),
            (ResourceLimits { flags: ResourceFlags::all(), ..none }, 0xc0_0000),
        ] {
            assert_eq!(value.to_word(), Ok(word));
            assert_eq!(ResourceLimits::from_word(word), Ok(value));
        }
        for value in [
            ResourceLimits { waves_per_sh: 0x400, ..none },
            ResourceLimits { workgroups_per_cu: 16, ..none },
            ResourceLimits { lock_threshold: 64, ..none },
            ResourceLimits { cu_group: 8, ..none },
        ] {
            assert!(value.to_word().is_err(), "{value:?}");
        }
        assert!(ResourceLimits::from_word(1 << 10).is_err());
    }

    #[test]
    fn code_addresses() {
        assert_eq!(program_address_words(0x7f12_3456_7800), Ok([0x1234_5678, 0x7f]));
        assert_eq!(
            program_address_words(0x1080),
            Err(EmitError::Misaligned { address: 0x1080, alignment: 256 })
        );
        assert_eq!(
            program_address_words(1 << 48),
            Err(EmitError::AddressTooHigh { address: 1 << 48, bits: 48 })
        );
    }
}
