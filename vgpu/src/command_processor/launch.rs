//! From compute registers and a dispatch packet to the work of the shader engine.
//!
//! Contract: pure; the checks are those for which the hardware, or this device, would fail a launch (hardware
//! reference §4.4, §5, §7).

use crate::command_processor::bits::{bit, bits, initiator, num_thread, register};
use crate::shader::dispatch::DispatchError;
use thiserror::Error;

/// The compute registers of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Registers(Box<[u32; register::COUNT]>);

/// One dispatch, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Address of the first instruction.
    pub code_va: u64,
    pub rsrc1: u32,
    pub rsrc2: u32,
    pub rsrc3: u32,
    pub user_data: [u32; register::USER_DATA_COUNT],
    /// First workgroup id per dimension.
    pub first: [u32; 3],
    /// Workgroups per dimension; never 0.
    pub count: [u32; 3],
    /// Work-items of a full group per dimension.
    pub group: [u32; 3],
    /// Work-items of the last group per dimension; equal to `group` if no group is partial.
    pub last_group: [u32; 3],
    /// Address of the scratch buffer.
    pub scratch_base_va: u64,
    pub tmpring_size: u32,
    /// CS_W32_EN is clear.
    pub is_wave64: bool,
}

impl Launch {
    /// Bytes from the entry that the instruction prefetcher fetches: INST_PREF_SIZE lines of 128 bytes (hardware
    /// reference §5.2).
    pub fn prefetch_bytes(&self) -> u64 {
        u64::from(bits(self.rsrc3, RSRC3_PREFETCH_HIGH, RSRC3_PREFETCH_LOW)) * PREFETCH_LINE_BYTES
    }
}

/// Why a dispatch is not launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// The initiator does not enable the compute shader.
    #[error("COMPUTE_SHADER_EN is clear in initiator {0:#x}")]
    ShaderDisabled(u32),
    /// An initiator bit that this device does not have.
    #[error("initiator {0:#x} has a bit that is not modelled")]
    Initiator(u32),
    /// NUM_THREAD specifies no work-items, more than 1024, or a last group larger than a full one.
    #[error("workgroups of {group:?} work-items, the last of {last:?}")]
    GroupSize {
        /// Full group.
        group: [u32; 3],
        /// Last group.
        last: [u32; 3],
    },
    /// Interleaved dispatch.
    #[error("NUM_THREAD has interleave bits {0:#x}, which are not modelled")]
    Interleave(u32),
    /// The dimensions are end values, because START is in use, and lie before START.
    #[error("the end {end:?} lies before the start {start:?}")]
    EndBeforeStart {
        /// START_X..Z.
        start: [u32; 3],
        /// Dimensions of the packet.
        end: [u32; 3],
    },
    /// Thread dimensions that need a partial group without PARTIAL_TG_EN.
    #[error("{threads:?} threads in groups of {group:?} need PARTIAL_TG_EN")]
    PartialNotEnabled {
        /// Threads requested.
        threads: [u32; 3],
        /// Full group.
        group: [u32; 3],
    },
    /// The shader engine refuses the resource words.
    #[error(transparent)]
    Resources(#[from] DispatchError),
    /// RSRC1.PRIV set by user code.
    #[error("RSRC1 {0:#x} asks for a privileged wave")]
    Privileged(u32),
    /// Every compute unit of the queue is masked.
    #[error("STATIC_THREAD_MGMT leaves no compute unit to run on")]
    NoComputeUnit,
}

/// Work-items of a workgroup (hardware reference §7).
const GROUP_WORK_ITEMS_MAX: u64 = 1024;
/// INST_PREF_SIZE of RSRC3 and its unit (hardware reference §5.2).
const RSRC3_PREFETCH_HIGH: u32 = 11;
const RSRC3_PREFETCH_LOW: u32 = 4;
const PREFETCH_LINE_BYTES: u64 = 128;
/// Bit of RSRC1 (hardware reference §5.2).
const RSRC1_PRIV: u32 = 20;

/// The compute-unit masks that the kernel sets up when it makes a queue (hardware reference §2.6).
const MASK_REGISTERS: [usize; 8] = [
    register::STATIC_THREAD_MGMT_SE0,
    register::STATIC_THREAD_MGMT_SE1,
    register::STATIC_THREAD_MGMT_SE2,
    register::STATIC_THREAD_MGMT_SE3,
    register::STATIC_THREAD_MGMT_SE4,
    register::STATIC_THREAD_MGMT_SE4 + 1,
    register::STATIC_THREAD_MGMT_SE4 + 2,
    register::STATIC_THREAD_MGMT_SE7,
];
/// Shader engines of this board, and so the masks that apply.
const SHADER_ENGINES: usize = 4;

impl Registers {
    /// Registers as the kernel's queue descriptor leaves them: zero, all compute units enabled.
    pub fn new() -> Registers {
        let mut registers = Registers(Box::new([0; register::COUNT]));
        for mask in MASK_REGISTERS {
            registers.0[mask] = u32::MAX;
        }
        registers
    }

    /// Stores consecutive registers. The range was checked when the packet was parsed.
    pub fn store(&mut self, first: usize, values: &[u32]) {
        self.0[first..first + values.len()].copy_from_slice(values);
    }

    fn three(&self, first: usize) -> [u32; 3] {
        [self.0[first], self.0[first + 1], self.0[first + 2]]
    }

    /// The address in a register pair that holds it in units of 256 bytes.
    fn address(&self, low: usize, high_mask: u32) -> u64 {
        (u64::from(self.0[low]) | u64::from(self.0[low + 1] & high_mask) << 32) << 8
    }

    /// The launch for a DISPATCH_DIRECT; `None` if it has no workgroups.
    pub fn launch(&self, dimensions: [u32; 3], control: u32) -> Result<Option<Launch>, LaunchError> {
        check_initiator(control)?;
        let (group, partial) = self.group_sizes()?;
        let rsrc1 = self.0[register::PGM_RSRC1];
        if bit(rsrc1, RSRC1_PRIV) {
            return Err(LaunchError::Privileged(rsrc1));
        }
        if MASK_REGISTERS[..SHADER_ENGINES].iter().all(|mask| self.0[*mask] == 0) {
            return Err(LaunchError::NoComputeUnit);
        }
        let partial_enabled = bit(control, initiator::PARTIAL_TG_EN);
        let (dimensions, mut last_group) = if bit(control, initiator::USE_THREAD_DIMENSIONS) {
            groups_of_threads(dimensions, group, partial_enabled)?
        } else {
            (dimensions, if partial_enabled { partial } else { group })
        };
        for axis in 0..3 {
            // A partial size of 0 means that the last group is full.
            if last_group[axis] == 0 {
                last_group[axis] = group[axis];
            }
        }
        if (0..3).any(|axis| last_group[axis] > group[axis]) {
            return Err(LaunchError::GroupSize { group, last: last_group });
        }
        let first = match bit(control, initiator::FORCE_START_AT_000) {
            true => [0; 3],
            false => self.three(register::START_X),
        };
        if (0..3).any(|axis| dimensions[axis] < first[axis]) {
            return Err(LaunchError::EndBeforeStart { start: first, end: dimensions });
        }
        let count = [0, 1, 2].map(|axis| dimensions[axis] - first[axis]);
        if count.contains(&0) {
            return Ok(None);
        }
        let mut user_data = [0; register::USER_DATA_COUNT];
        user_data.copy_from_slice(&self.0[register::USER_DATA_0..][..register::USER_DATA_COUNT]);
        Ok(Some(Launch {
            code_va: self.address(register::PGM_LO, 0xFF),
            rsrc1,
            rsrc2: self.0[register::PGM_RSRC2],
            rsrc3: self.0[register::PGM_RSRC3],
            user_data,
            first,
            count,
            group,
            last_group,
            scratch_base_va: self.address(register::SCRATCH_BASE_LO, u32::MAX),
            tmpring_size: self.0[register::TMPRING_SIZE],
            is_wave64: !bit(control, initiator::CS_W32_EN),
        }))
    }

    /// Full and partial group sizes from NUM_THREAD_X/Y/Z.
    fn group_sizes(&self) -> Result<([u32; 3], [u32; 3]), LaunchError> {
        let words = self.three(register::NUM_THREAD_X);
        for word in &words[..2] {
            let interleave = bits(*word, num_thread::INTERLEAVE_HIGH, num_thread::INTERLEAVE_LOW);
            if interleave != 0 {
                return Err(LaunchError::Interleave(interleave));
            }
        }
        let group = [
            bits(words[0], num_thread::FULL_XY_HIGH, 0),
            bits(words[1], num_thread::FULL_XY_HIGH, 0),
            bits(words[2], num_thread::FULL_Z_HIGH, 0),
        ];
        let partial = words.map(|word| bits(word, num_thread::PARTIAL_HIGH, num_thread::PARTIAL_LOW));
        let work_items: u64 = group.iter().map(|size| u64::from(*size)).product();
        if work_items == 0 || work_items > GROUP_WORK_ITEMS_MAX {
            return Err(LaunchError::GroupSize { group, last: group });
        }
        Ok((group, partial))
    }
}

/// Whether SET_SH_REG of these registers touches one that the kernel's queue descriptor owns (hardware reference
/// §5.3).
pub(crate) fn touches_queue_register(first: usize, count: usize) -> bool {
    let range = first..first + count;
    MASK_REGISTERS.iter().chain([&register::STATIC_THREAD_MGMT_SE8]).any(|mask| range.contains(mask))
}

fn check_initiator(control: u32) -> Result<(), LaunchError> {
    if !bit(control, initiator::COMPUTE_SHADER_EN) {
        return Err(LaunchError::ShaderDisabled(control));
    }
    let unmodelled = [
        initiator::ORDERED_APPEND_EN,
        initiator::RESTORE,
        initiator::AMP_SHADER_EN,
        initiator::INTERLEAVE_2D_EN,
    ];
    if unmodelled.iter().any(|at| bit(control, *at)) {
        return Err(LaunchError::Initiator(control));
    }
    Ok(())
}

/// The number of groups for that many threads, and the size of the last ones.
fn groups_of_threads(
    threads: [u32; 3],
    group: [u32; 3],
    partial_enabled: bool,
) -> Result<([u32; 3], [u32; 3]), LaunchError> {
    let last = [0, 1, 2].map(|axis| threads[axis] % group[axis]);
    if last != [0; 3] && !partial_enabled {
        return Err(LaunchError::PartialNotEnabled { threads, group });
    }
    Ok(([0, 1, 2].map(|axis| threads[axis].div_ceil(group[axis])), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tinygrad's initiator (hardware reference §4.4).
    const PLAIN: u32 = 0x8005;

    fn registers() -> Registers {
        let mut registers = Registers::new();
        registers.store(0x207, &[64, 2, 1]);
        registers.store(0x20C, &[0x1234_5678, 0x9A]);
        registers.store(0x212, &[0x60C0_0000, 4 << 1]);
        registers.store(0x240, &[7, 8]);
        registers.store(0x210, &[0x10, 1]);
        registers.store(0x218, &[0x0001_0200]);
        registers
    }

    #[test]
    fn registers_become_a_launch() {
        let mut registers = registers();
        // PGM_HI has 8 bits, and INST_PREF_SIZE is bits 11:4 (hardware reference §5).
        registers.store(0x20C, &[0x1234_5678, 0xFF9A]);
        registers.store(0x228, &[0x8000_203F]);
        registers.store(0x24F, &[15]);
        registers.store(0x204, &[1, 0, 2]);
        let mut user_data = [0; 16];
        (user_data[0], user_data[1], user_data[15]) = (7, 8, 15);
        let expected = Launch {
            code_va: 0x9A12_3456_7800,
            rsrc1: 0x60C0_0000,
            rsrc2: 8,
            rsrc3: 0x8000_203F,
            user_data,
            first: [0; 3],
            count: [3, 1, 4],
            group: [64, 2, 1],
            last_group: [64, 2, 1],
            scratch_base_va: 0x100_0000_1000,
            tmpring_size: 0x0001_0200,
            is_wave64: false,
        };
        let launch = |control| registers.launch([3, 1, 4], control).unwrap().unwrap();
        assert_eq!(launch(PLAIN), expected);
        assert_eq!(launch(PLAIN).prefetch_bytes(), 3 * 128);
        assert_eq!(launch(0x5), Launch { is_wave64: true, ..expected });
        // Without FORCE_START_AT_000 the dimensions are ends.
        assert_eq!(launch(0x8001), Launch { first: [1, 0, 2], count: [2, 1, 2], ..expected });
        // Bits of the reference that change nothing here: modes of order, pairing, tunnels, volatile lines, traces.
        assert_eq!(launch(PLAIN | 0xE002_3C50), expected);
        for dimensions in [[0, 1, 1], [1, 0, 1], [1, 1, 0]] {
            assert_eq!(registers.launch(dimensions, PLAIN), Ok(None));
        }
        assert_eq!(registers.launch([1, 1, 3], 0x8001), Ok(None), "the end is the start");
    }

    #[test]
    fn partial_groups_and_starts() {
        let mut registers = registers();
        registers.store(0x207, &[64 | 10 << 16, 2 | 2 << 16, 1]);
        let launch = |dimensions, control| {
            let launch = registers.launch(dimensions, PLAIN | control).unwrap().unwrap();
            (launch.count, launch.last_group)
        };
        assert_eq!(launch([2, 1, 1], 0), ([2, 1, 1], [64, 2, 1]));
        assert_eq!(launch([2, 1, 1], 2), ([2, 1, 1], [10, 2, 1]), "as large as a whole one, or 0 for whole");
        assert_eq!(launch([130, 3, 5], 2 | 1 << 5), ([3, 2, 5], [2, 1, 1]));
        assert_eq!(launch([128, 4, 5], 2 | 1 << 5), ([2, 2, 5], [64, 2, 1]));
        assert_eq!(launch([128, 4, 5], 1 << 5), ([2, 2, 5], [64, 2, 1]));
    }

    #[test]
    fn workgroups_hold_up_to_1024_work_items() {
        let launch = |x, y, z| {
            let mut registers = registers();
            registers.store(0x207, &[x, y, z]);
            registers.launch([1, 1, 1], PLAIN).is_ok()
        };
        assert!(launch(1024, 1, 1) && launch(32, 32, 1) && launch(1, 1, 1024) && launch(4, 16, 16));
        assert!(
            !launch(1025, 1, 1)
                && !launch(32, 33, 1)
                && !launch(1, 1, 1025)
                && !launch(0x1FFF, 0x1FFF, 0xFFFF)
        );
        assert!(!launch(0, 1, 1) && !launch(1, 0, 1) && !launch(1, 1, 0));
    }

    #[test]
    fn what_cannot_be_launched_says_why() {
        let refused = |first: usize, values: &[u32], control| {
            let mut registers = registers();
            registers.store(first, values);
            registers.launch([1, 3, 1], control).unwrap_err().to_string()
        };
        let cases: [(usize, &[u32], u32, &str); 14] = [
            (0x240, &[7], 0x8004, "COMPUTE_SHADER_EN is clear in initiator 0x8004"),
            (0x240, &[7], 0x800D, "initiator 0x800d has a bit that is not modelled"),
            (0x240, &[7], 0xC005, "initiator 0xc005 has a bit that is not modelled"),
            (0x240, &[7], 0x1_8005, "initiator 0x18005 has a bit that is not modelled"),
            (0x240, &[7], 0x4_8005, "initiator 0x48005 has a bit that is not modelled"),
            (0x207, &[1025, 1, 1], PLAIN, "workgroups of [1025, 1, 1] work-items, the last of [1025, 1, 1]"),
            (0x207, &[64, 0, 1], PLAIN, "workgroups of [64, 0, 1] work-items, the last of [64, 0, 1]"),
            (
                0x207,
                &[64, 1, 1 | 2 << 16],
                PLAIN | 2,
                "workgroups of [64, 1, 1] work-items, the last of [64, 1, 2]",
            ),
            (0x207, &[64 | 1 << 13], PLAIN, "NUM_THREAD has interleave bits 0x1, which are not modelled"),
            (0x208, &[1 | 7 << 13], PLAIN, "NUM_THREAD has interleave bits 0x7, which are not modelled"),
            (0x204, &[2, 0, 0], 0x8001, "the end [1, 3, 1] lies before the start [2, 0, 0]"),
            (0x204, &[0, 4, 0], 0x8001, "the end [1, 3, 1] lies before the start [0, 4, 0]"),
            (0x207, &[1, 2, 1], 0x8025, "[1, 3, 1] threads in groups of [1, 2, 1] need PARTIAL_TG_EN"),
            (0x212, &[1 << 20], PLAIN, "RSRC1 0x100000 asks for a privileged wave"),
        ];
        for (first, values, control, text) in cases {
            assert_eq!(refused(first, values, control), text);
        }
    }

    #[test]
    fn a_compute_unit_of_any_shader_engine_suffices() {
        // Hardware reference §5: masks of shader engines 0 to 3; the board has no others.
        const MASKS: [usize; 4] = [0x216, 0x217, 0x219, 0x21A];
        let launch = |enabled: Option<usize>| {
            let mut registers = registers();
            MASKS.iter().for_each(|&at| registers.store(at, &[u32::from(enabled == Some(at)) << 31]));
            registers.launch([1, 1, 1], PLAIN)
        };
        assert_eq!(launch(None), Err(LaunchError::NoComputeUnit));
        MASKS.iter().for_each(|&at| assert!(launch(Some(at)).is_ok(), "{at:#x}"));
    }

    #[test]
    fn a_new_queue_has_the_compute_units_of_eight_engines_and_zeros() {
        // Hardware reference §2.6 and §5: the kernel sets the masks of shader engines 0 to 7, not that of SE8.
        let set: Vec<(usize, u32)> =
            Registers::new().0.iter().copied().enumerate().filter(|(_, value)| *value != 0).collect();
        let masks = [0x216, 0x217, 0x219, 0x21A, 0x22B, 0x22C, 0x22D, 0x22E];
        assert_eq!(set, masks.map(|at| (at, u32::MAX)));
    }

    #[test]
    fn queue_owned_registers_are_recognised() {
        // Hardware reference §5: STATIC_THREAD_MGMT_SE0 to SE3, SE8, SE4 to SE7.
        let owned = [0x216, 0x217, 0x219, 0x21A, 0x223, 0x22B, 0x22C, 0x22D, 0x22E];
        let told: Vec<usize> = (0..0x400).filter(|at| touches_queue_register(*at, 1)).collect();
        assert_eq!(told, owned);
        assert!(touches_queue_register(0x215, 2) && touches_queue_register(0x200, 0x17));
        assert!(!touches_queue_register(0x200, 0x16) && !touches_queue_register(0x21B, 8));
    }
}
