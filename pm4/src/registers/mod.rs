//! The compute registers of GC 12.0: their offsets, their names, and who may write them.
//!
//! Offsets are dwords relative to 0x2C00, the start of the shader range that SET_SH_REG writes. The absolute dword
//! offset is 0x2C00 more, and the byte offset is four times that (hardware reference §5). [`WriteClass`] says which
//! registers a dispatch may write. The others belong to the queue or the kernel driver: a stream that writes them
//! breaks the next user of the queue rather than itself (hardware reference §9).

mod launch;
mod queue;
pub(crate) mod register;
mod reserved;
mod rsrc;

pub use launch::{
    DispatchInitiator, InitiatorFlags, NumThread, PGM_ADDRESS_ALIGNMENT, ResourceFlags, ResourceLimits,
    program_address_words, scratch_base_words,
};
pub use queue::{SE_COUNT_MAX, StaticThreadMgmt, TmpringSize};
pub use register::{REGISTER_COUNT, Register, SHADER_RANGE_START, USER_DATA_COUNT};
pub use rsrc::WaveSize;

pub(crate) use launch::WORKGROUP_THREADS_MAX;
pub(crate) use rsrc::{check_words, rsrc2};

use crate::field::Field;
use core::fmt;

/// Who may write a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteClass {
    /// Part of every dispatch; a recorder writes it.
    PerDispatch,
    /// Written by the dispatch packet itself; writing it with SET_SH_REG starts or disturbs a dispatch.
    DispatchPacket,
    /// Set when the queue is made (by its memory queue descriptor); belongs to the queue from then on.
    QueueOwned,
    /// Belongs to the kernel driver, or to the context save and restore.
    Privileged,
}

/// What is known about a register.
#[derive(Clone, Copy, Debug)]
pub struct RegisterInfo {
    /// The register.
    pub register: Register,
    /// The manual's name.
    pub name: &'static str,
    /// Who may write it.
    pub class: WriteClass,
    /// Its bit fields; empty if the whole dword is one value or the fields are not used here.
    pub fields: &'static [Field],
    /// Source of offset, fields and class.
    pub source: &'static str,
}

/// Source of offsets and fields: the table of the hardware reference. Source of the class: its recipe and its
/// warnings.
const RECIPE: &str = "hardware reference §5, §5.3";
const PACKET: &str = "hardware reference §5, §5.1";
const QUEUE: &str = "hardware reference §5; queue-owned by hardware reference §5.3 and §9";
const QUEUE_UNUSED: &str =
    "hardware reference §5; not in the recipe of hardware reference §5.3, so left to the queue";
const DRIVER: &str = "hardware reference §5; written by the driver or by context restore";
const PLAIN: &[Field] = &[];

macro_rules! registers {
    ($($name:ident = $offset:literal $class:ident $source:ident $fields:expr;)*) => {
        impl Register {
            $(#[doc = concat!("COMPUTE_", stringify!($name), ".")] pub const $name: Register = Register($offset);)*
        }

        /// Every compute register that the hardware reference §5 lists, in ascending order.
        pub const COMPUTE_REGISTERS: &[RegisterInfo] = &[$(RegisterInfo {
            register: Register($offset),
            name: concat!("COMPUTE_", stringify!($name)),
            class: WriteClass::$class,
            fields: $fields,
            source: $source,
        },)*];
    };
}

registers! {
    DISPATCH_INITIATOR = 0x200 DispatchPacket PACKET launch::initiator::ALL;
    DIM_X = 0x201 DispatchPacket PACKET PLAIN;
    DIM_Y = 0x202 DispatchPacket PACKET PLAIN;
    DIM_Z = 0x203 DispatchPacket PACKET PLAIN;
    START_X = 0x204 PerDispatch RECIPE PLAIN;
    START_Y = 0x205 PerDispatch RECIPE PLAIN;
    START_Z = 0x206 PerDispatch RECIPE PLAIN;
    NUM_THREAD_X = 0x207 PerDispatch RECIPE launch::num_thread::ALL;
    NUM_THREAD_Y = 0x208 PerDispatch RECIPE launch::num_thread::ALL;
    NUM_THREAD_Z = 0x209 PerDispatch RECIPE launch::num_thread_z::ALL;
    PIPELINESTAT_ENABLE = 0x20a PerDispatch RECIPE PLAIN;
    PERFCOUNT_ENABLE = 0x20b PerDispatch RECIPE PLAIN;
    PGM_LO = 0x20c PerDispatch RECIPE PLAIN;
    PGM_HI = 0x20d PerDispatch RECIPE launch::pgm_hi::ALL;
    DISPATCH_PKT_ADDR_LO = 0x20e QueueOwned QUEUE_UNUSED PLAIN;
    DISPATCH_PKT_ADDR_HI = 0x20f QueueOwned QUEUE_UNUSED PLAIN;
    DISPATCH_SCRATCH_BASE_LO = 0x210 PerDispatch RECIPE PLAIN;
    DISPATCH_SCRATCH_BASE_HI = 0x211 PerDispatch RECIPE PLAIN;
    PGM_RSRC1 = 0x212 PerDispatch RECIPE rsrc::rsrc1::ALL;
    PGM_RSRC2 = 0x213 PerDispatch RECIPE rsrc::rsrc2::ALL;
    VMID = 0x214 Privileged DRIVER PLAIN;
    RESOURCE_LIMITS = 0x215 PerDispatch RECIPE launch::resource_limits::ALL;
    STATIC_THREAD_MGMT_SE0 = 0x216 QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    STATIC_THREAD_MGMT_SE1 = 0x217 QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    TMPRING_SIZE = 0x218 QueueOwned QUEUE queue::tmpring_size::ALL;
    STATIC_THREAD_MGMT_SE2 = 0x219 QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    STATIC_THREAD_MGMT_SE3 = 0x21a QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    RESTART_X = 0x21b PerDispatch RECIPE PLAIN;
    RESTART_Y = 0x21c PerDispatch RECIPE PLAIN;
    RESTART_Z = 0x21d PerDispatch RECIPE PLAIN;
    THREAD_TRACE_ENABLE = 0x21e QueueOwned QUEUE_UNUSED PLAIN;
    MISC_RESERVED = 0x21f QueueOwned QUEUE_UNUSED PLAIN;
    DISPATCH_ID = 0x220 QueueOwned QUEUE_UNUSED PLAIN;
    THREADGROUP_ID = 0x221 QueueOwned QUEUE_UNUSED PLAIN;
    REQ_CTRL = 0x222 QueueOwned QUEUE_UNUSED PLAIN;
    STATIC_THREAD_MGMT_SE8 = 0x223 QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    USER_ACCUM_0 = 0x224 QueueOwned QUEUE_UNUSED PLAIN;
    USER_ACCUM_1 = 0x225 QueueOwned QUEUE_UNUSED PLAIN;
    USER_ACCUM_2 = 0x226 QueueOwned QUEUE_UNUSED PLAIN;
    USER_ACCUM_3 = 0x227 QueueOwned QUEUE_UNUSED PLAIN;
    PGM_RSRC3 = 0x228 PerDispatch RECIPE rsrc::rsrc3::ALL;
    DDID_INDEX = 0x229 QueueOwned QUEUE_UNUSED PLAIN;
    SHADER_CHKSUM = 0x22a QueueOwned QUEUE_UNUSED PLAIN;
    STATIC_THREAD_MGMT_SE4 = 0x22b QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    STATIC_THREAD_MGMT_SE5 = 0x22c QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    STATIC_THREAD_MGMT_SE6 = 0x22d QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    STATIC_THREAD_MGMT_SE7 = 0x22e QueueOwned QUEUE queue::static_thread_mgmt::ALL;
    DISPATCH_INTERLEAVE = 0x22f QueueOwned QUEUE_UNUSED queue::dispatch_interleave::ALL;
    RELAUNCH = 0x230 Privileged DRIVER PLAIN;
    WAVE_RESTORE_ADDR_LO = 0x231 Privileged DRIVER PLAIN;
    WAVE_RESTORE_ADDR_HI = 0x232 Privileged DRIVER PLAIN;
    RELAUNCH2 = 0x233 Privileged DRIVER PLAIN;
    PRESCALED_DIM_X = 0x235 QueueOwned QUEUE_UNUSED PLAIN;
    PRESCALED_DIM_Y = 0x236 QueueOwned QUEUE_UNUSED PLAIN;
    PRESCALED_DIM_Z = 0x237 QueueOwned QUEUE_UNUSED PLAIN;
    USER_DATA_0 = 0x240 PerDispatch RECIPE PLAIN;
    USER_DATA_1 = 0x241 PerDispatch RECIPE PLAIN;
    USER_DATA_2 = 0x242 PerDispatch RECIPE PLAIN;
    USER_DATA_3 = 0x243 PerDispatch RECIPE PLAIN;
    USER_DATA_4 = 0x244 PerDispatch RECIPE PLAIN;
    USER_DATA_5 = 0x245 PerDispatch RECIPE PLAIN;
    USER_DATA_6 = 0x246 PerDispatch RECIPE PLAIN;
    USER_DATA_7 = 0x247 PerDispatch RECIPE PLAIN;
    USER_DATA_8 = 0x248 PerDispatch RECIPE PLAIN;
    USER_DATA_9 = 0x249 PerDispatch RECIPE PLAIN;
    USER_DATA_10 = 0x24a PerDispatch RECIPE PLAIN;
    USER_DATA_11 = 0x24b PerDispatch RECIPE PLAIN;
    USER_DATA_12 = 0x24c PerDispatch RECIPE PLAIN;
    USER_DATA_13 = 0x24d PerDispatch RECIPE PLAIN;
    USER_DATA_14 = 0x24e PerDispatch RECIPE PLAIN;
    USER_DATA_15 = 0x24f PerDispatch RECIPE PLAIN;
    DISPATCH_TUNNEL = 0x27d QueueOwned QUEUE_UNUSED PLAIN;
    DISPATCH_END = 0x27e QueueOwned QUEUE_UNUSED PLAIN;
    NOWHERE = 0x27f QueueOwned QUEUE_UNUSED PLAIN;
}

impl Register {
    /// What is known about it; `None` for a register that is no compute register.
    pub fn info(self) -> Option<&'static RegisterInfo> {
        let at = COMPUTE_REGISTERS.binary_search_by_key(&self, |info| info.register).ok()?;
        COMPUTE_REGISTERS.get(at)
    }

    /// Who may write it; `None` for a register that is no compute register.
    pub fn class(self) -> Option<WriteClass> {
        self.info().map(|info| info.class)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => formatter.write_str(info.name),
            None => write!(formatter, "SH+{:#x}", self.0),
        }
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_called_as_in_the_manual_or_by_its_offset() {
        let texts = |register: Register| [register.to_string(), format!("{register:?}")];
        assert_eq!(texts(Register::PGM_RSRC1), ["COMPUTE_PGM_RSRC1"; 2]);
        assert_eq!(texts(Register(0x234)), ["SH+0x234"; 2]);
    }

    #[test]
    fn offsets_are_those_of_the_reference() {
        // Absolute dword offsets, typed from hardware reference §5.
        for (register, absolute) in [
            (Register::DISPATCH_INITIATOR, 0x2e00),
            (Register::DIM_X, 0x2e01),
            (Register::START_X, 0x2e04),
            (Register::NUM_THREAD_X, 0x2e07),
            (Register::NUM_THREAD_Z, 0x2e09),
            (Register::PIPELINESTAT_ENABLE, 0x2e0a),
            (Register::PERFCOUNT_ENABLE, 0x2e0b),
            (Register::PGM_LO, 0x2e0c),
            (Register::PGM_HI, 0x2e0d),
            (Register::DISPATCH_PKT_ADDR_LO, 0x2e0e),
            (Register::DISPATCH_SCRATCH_BASE_LO, 0x2e10),
            (Register::PGM_RSRC1, 0x2e12),
            (Register::PGM_RSRC2, 0x2e13),
            (Register::VMID, 0x2e14),
            (Register::RESOURCE_LIMITS, 0x2e15),
            (Register::STATIC_THREAD_MGMT_SE0, 0x2e16),
            (Register::STATIC_THREAD_MGMT_SE1, 0x2e17),
            (Register::TMPRING_SIZE, 0x2e18),
            (Register::STATIC_THREAD_MGMT_SE2, 0x2e19),
            (Register::STATIC_THREAD_MGMT_SE3, 0x2e1a),
            (Register::RESTART_X, 0x2e1b),
            (Register::THREAD_TRACE_ENABLE, 0x2e1e),
            (Register::REQ_CTRL, 0x2e22),
            (Register::STATIC_THREAD_MGMT_SE8, 0x2e23),
            (Register::USER_ACCUM_0, 0x2e24),
            (Register::PGM_RSRC3, 0x2e28),
            (Register::DDID_INDEX, 0x2e29),
            (Register::SHADER_CHKSUM, 0x2e2a),
            (Register::STATIC_THREAD_MGMT_SE4, 0x2e2b),
            (Register::STATIC_THREAD_MGMT_SE7, 0x2e2e),
            (Register::DISPATCH_INTERLEAVE, 0x2e2f),
            (Register::RELAUNCH, 0x2e30),
            (Register::RELAUNCH2, 0x2e33),
            (Register::PRESCALED_DIM_X, 0x2e35),
            (Register::USER_DATA_0, 0x2e40),
            (Register::USER_DATA_15, 0x2e4f),
            (Register::DISPATCH_TUNNEL, 0x2e7d),
            (Register::DISPATCH_END, 0x2e7e),
            (Register::NOWHERE, 0x2e7f),
        ] {
            assert_eq!(register.absolute(), absolute, "{register}");
        }
        assert_eq!(Register::DISPATCH_INITIATOR.absolute() * 4, 0xb800);
    }

    #[test]
    fn the_table_is_ordered_without_doubles_and_each_entry_has_fields_that_fit() {
        for pair in COMPUTE_REGISTERS.windows(2) {
            assert!(pair[0].register < pair[1].register, "{} before {}", pair[0].name, pair[1].name);
        }
        for info in COMPUTE_REGISTERS {
            assert_eq!(info.register.info().map(|found| found.name), Some(info.name));
            assert!(info.source.starts_with("hardware reference §5"));
            let _: [u32; 1] = crate::field::reserved_masks(info.fields);
        }
        assert_eq!(Register::new(0x234).and_then(Register::class), None);
        assert_eq!(Register::new(0x400), None);
    }

    #[test]
    fn classes_follow_the_warnings_of_the_reference() {
        for (register, class) in [
            (Register::PGM_RSRC3, WriteClass::PerDispatch),
            (Register::STATIC_THREAD_MGMT_SE8, WriteClass::QueueOwned),
            (Register::TMPRING_SIZE, WriteClass::QueueOwned),
            (Register::VMID, WriteClass::Privileged),
            (Register::DISPATCH_INITIATOR, WriteClass::DispatchPacket),
        ] {
            assert_eq!(register.class(), Some(class), "{register}");
        }
    }
}
