//! Field positions of the PM4 packets and compute registers, as this decoder reads them.
//!
//! Contract: written by hand from hardware reference §4 and §5. Nothing is shared with the packet encoder of the
//! client side, so the two cannot agree on an error.

/// Bits `high:low` of a dword.
pub(crate) const fn bits(dword: u32, high: u32, low: u32) -> u32 {
    dword >> low & (u32::MAX >> (31 - (high - low)))
}

/// One bit of a dword.
pub(crate) const fn bit(dword: u32, at: u32) -> bool {
    dword >> at & 1 == 1
}

/// Packet header (hardware reference §4.1).
pub(crate) mod header {
    pub const TYPE_HIGH: u32 = 31;
    pub const TYPE_LOW: u32 = 30;
    pub const COUNT_HIGH: u32 = 29;
    pub const COUNT_LOW: u32 = 16;
    pub const OPCODE_HIGH: u32 = 15;
    pub const OPCODE_LOW: u32 = 8;
    pub const PREDICATE: u32 = 0;
    pub const TYPE_3: u32 = 3;
    /// The count that means "no body" on a NOP.
    pub const COUNT_NO_BODY: u32 = 0x3FFF;
}

/// Opcodes (hardware reference §4.2).
pub(crate) mod opcode {
    pub const NOP: u32 = 0x10;
    pub const DISPATCH_DIRECT: u32 = 0x15;
    pub const WRITE_DATA: u32 = 0x37;
    pub const WAIT_REG_MEM: u32 = 0x3C;
    pub const INDIRECT_BUFFER: u32 = 0x3F;
    pub const COPY_DATA: u32 = 0x40;
    pub const EVENT_WRITE: u32 = 0x46;
    pub const RELEASE_MEM: u32 = 0x49;
    pub const ACQUIRE_MEM: u32 = 0x58;
    pub const SET_SH_REG: u32 = 0x76;
}

/// Compute registers relative to 0x2C00 (hardware reference §5).
pub(crate) mod register {
    /// Registers that SET_SH_REG reaches: 0x2C00..0x3000.
    pub const COUNT: usize = 0x400;
    pub const START_X: usize = 0x204;
    pub const NUM_THREAD_X: usize = 0x207;
    /// Followed by PGM_HI.
    pub const PGM_LO: usize = 0x20C;
    /// Followed by SCRATCH_BASE_HI.
    pub const SCRATCH_BASE_LO: usize = 0x210;
    pub const PGM_RSRC1: usize = 0x212;
    pub const PGM_RSRC2: usize = 0x213;
    pub const VMID: usize = 0x214;
    pub const STATIC_THREAD_MGMT_SE0: usize = 0x216;
    pub const STATIC_THREAD_MGMT_SE1: usize = 0x217;
    pub const TMPRING_SIZE: usize = 0x218;
    pub const STATIC_THREAD_MGMT_SE2: usize = 0x219;
    pub const STATIC_THREAD_MGMT_SE3: usize = 0x21A;
    pub const STATIC_THREAD_MGMT_SE8: usize = 0x223;
    pub const PGM_RSRC3: usize = 0x228;
    pub const STATIC_THREAD_MGMT_SE4: usize = 0x22B;
    pub const STATIC_THREAD_MGMT_SE7: usize = 0x22E;
    pub const USER_DATA_0: usize = 0x240;
    pub const USER_DATA_COUNT: usize = 16;
}

/// DISPATCH_INITIATOR (hardware reference §5.1).
pub(crate) mod initiator {
    pub const COMPUTE_SHADER_EN: u32 = 0;
    pub const PARTIAL_TG_EN: u32 = 1;
    pub const FORCE_START_AT_000: u32 = 2;
    pub const ORDERED_APPEND_EN: u32 = 3;
    pub const USE_THREAD_DIMENSIONS: u32 = 5;
    pub const RESTORE: u32 = 14;
    pub const CS_W32_EN: u32 = 15;
    pub const AMP_SHADER_EN: u32 = 16;
    pub const INTERLEAVE_2D_EN: u32 = 18;
}

/// NUM_THREAD_X/Y/Z (hardware reference §5): full group size and size of the partial last group.
pub(crate) mod num_thread {
    pub const FULL_XY_HIGH: u32 = 12;
    pub const FULL_Z_HIGH: u32 = 15;
    pub const INTERLEAVE_HIGH: u32 = 15;
    pub const INTERLEAVE_LOW: u32 = 13;
    pub const PARTIAL_HIGH: u32 = 31;
    pub const PARTIAL_LOW: u32 = 16;
}

/// GCR_CNTL of ACQUIRE_MEM (hardware reference §4.5).
pub(crate) mod gcr {
    pub const GLI_INV_HIGH: u32 = 1;
    pub const GLI_INV_LOW: u32 = 0;
    pub const GLK_INV: u32 = 7;
    pub const GLV_INV: u32 = 8;
    pub const GL2_INV: u32 = 14;
    pub const GL2_WB: u32 = 15;
    pub const RESERVED_LOW: u32 = 19;
}

/// RELEASE_MEM (hardware reference §4.6).
pub(crate) mod release {
    pub const EVENT_TYPE_HIGH: u32 = 5;
    pub const EVENT_INDEX_HIGH: u32 = 11;
    pub const EVENT_INDEX_LOW: u32 = 8;
    pub const GLV_INV: u32 = 14;
    pub const GL2_INV: u32 = 20;
    pub const GL2_WB: u32 = 21;
    pub const GLK_INV: u32 = 30;
    pub const DST_SEL_HIGH: u32 = 17;
    pub const DST_SEL_LOW: u32 = 16;
    pub const INT_SEL_HIGH: u32 = 26;
    pub const INT_SEL_LOW: u32 = 24;
    pub const DATA_SEL_HIGH: u32 = 31;
    pub const DATA_SEL_LOW: u32 = 29;

    pub const INDEX_END_OF_PIPE: u32 = 5;
    pub const INDEX_SHADER_DONE: u32 = 6;
    pub const EVENT_CACHE_FLUSH_AND_INV_TS: u32 = 0x14;
    pub const EVENT_BOTTOM_OF_PIPE_TS: u32 = 0x28;
    pub const EVENT_CACHE_FLUSH_TS: u32 = 0x04;
    pub const EVENT_CS_DONE: u32 = 0x2F;

    pub const DATA_NONE: u32 = 0;
    pub const DATA_LOW_32: u32 = 1;
    pub const DATA_64: u32 = 2;
    pub const DATA_GPU_CLOCK: u32 = 3;
    pub const DATA_SYSTEM_CLOCK: u32 = 4;

    pub const INTERRUPT_ONLY: u32 = 1;
    pub const INTERRUPT_AFTER_CONFIRM: u32 = 2;
    pub const INTERRUPT_LAST_KNOWN: u32 = 3;
    pub const DST_LAST_MEMORY: u32 = 1;
}

/// WAIT_REG_MEM (hardware reference §4.7) and the HDP flush registers that it may write and poll (hardware reference
/// §4.8).
pub(crate) mod wait {
    pub const FUNCTION_HIGH: u32 = 2;
    pub const SPACE_HIGH: u32 = 5;
    pub const SPACE_LOW: u32 = 4;
    pub const OPERATION_HIGH: u32 = 7;
    pub const OPERATION_LOW: u32 = 6;

    pub const SPACE_REGISTER: u32 = 0;
    pub const SPACE_MEMORY: u32 = 1;
    pub const OPERATION_WAIT: u32 = 0;
    pub const OPERATION_WRITE_WAIT: u32 = 1;
    pub const OPERATION_PREEMPTABLE: u32 = 3;
    pub const FUNCTION_ALWAYS: u32 = 0;
    pub const FUNCTION_LESS: u32 = 1;
    pub const FUNCTION_LESS_OR_EQUAL: u32 = 2;
    pub const FUNCTION_EQUAL: u32 = 3;
    pub const FUNCTION_NOT_EQUAL: u32 = 4;
    pub const FUNCTION_GREATER_OR_EQUAL: u32 = 5;
    pub const FUNCTION_GREATER: u32 = 6;

    pub const HDP_FLUSH_REQUEST: u32 = 0xE26;
    pub const HDP_FLUSH_DONE: u32 = 0xE27;
}

/// WRITE_DATA (hardware reference §4.8).
pub(crate) mod write_data {
    pub const DST_HIGH: u32 = 11;
    pub const DST_LOW: u32 = 8;
    pub const NO_INCREMENT: u32 = 16;
    pub const DST_GL2: u32 = 2;
    pub const DST_MEMORY: u32 = 5;
}

/// COPY_DATA (hardware reference §4.8).
pub(crate) mod copy_data {
    pub const SRC_HIGH: u32 = 3;
    pub const DST_HIGH: u32 = 11;
    pub const DST_LOW: u32 = 8;
    pub const WIDE: u32 = 16;
    /// `tc_l2_obsolete` in the kernel's `nvd.h`.
    pub const SRC_GL2_OBSOLETE: u32 = 1;
    pub const SRC_GL2: u32 = 2;
    pub const SRC_IMMEDIATE: u32 = 5;
    pub const SRC_GPU_CLOCK: u32 = 9;
    pub const DST_GL2: u32 = 2;
    /// Also `tc_l2_obsolete`.
    pub const DST_GL2_OBSOLETE: u32 = 5;
}

/// EVENT_WRITE (hardware reference §4.8).
pub(crate) mod event_write {
    pub const TYPE_HIGH: u32 = 5;
    pub const INDEX_HIGH: u32 = 11;
    pub const INDEX_LOW: u32 = 8;
    pub const TYPE_CS_PARTIAL_FLUSH: u32 = 7;
    pub const INDEX_FLUSH: u32 = 4;
}

/// INDIRECT_BUFFER (hardware reference §4.8).
pub(crate) mod indirect {
    pub const LENGTH_HIGH: u32 = 19;
    pub const CHAIN: u32 = 20;
    pub const VALID: u32 = 23;
    pub const VMID_HIGH: u32 = 27;
    pub const VMID_LOW: u32 = 24;
    pub const INHERIT_VMID: u32 = 30;
    pub const PRIVILEGED: u32 = 31;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_out_at_both_ends() {
        assert_eq!(bits(0xC003_1502, 31, 30), 3);
        assert_eq!(bits(0xFFFF_1000, 29, 16), 0x3FFF);
        assert_eq!(bits(0x1234_5678, 31, 0), 0x1234_5678);
        assert!(bit(0x8000, 15) && !bit(0x8000, 14));
    }
}
