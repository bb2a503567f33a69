//! What the command processor passes to the shader engine, and how the engine interprets the resource words.
//!
//! Contract: pure values. The registers of the dispatch itself (sizes, START, partial groups, initiator) are resolved
//! by the command processor; the resource words are parsed here, with constants of this module (hardware reference
//! §5.2, §7). Nothing panics on any value.

use std::sync::Arc;

use thiserror::Error;
use zrt_isa::resources::WaveSize;

use crate::memory::AddressSpace;
use crate::shader::wave::LANES;

/// The packet that started a dispatch; named in every fault of its waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketOrigin {
    /// The queue.
    pub queue_id: u32,
    /// Address of the packet's header, in a ring or an indirect buffer.
    pub packet_va: u64,
}

/// One dispatch, resolved from registers and packet.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Address of the first instruction.
    pub code_va: u64,
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC2.
    pub rsrc2: u32,
    /// COMPUTE_PGM_RSRC3.
    pub rsrc3: u32,
    /// COMPUTE_USER_DATA_0..15.
    pub user_data: [u32; 16],
    /// First workgroup id per dimension.
    pub first: [u32; 3],
    /// Workgroups per dimension. With a zero, the dispatch is done at once.
    pub count: [u32; 3],
    /// Work-items of a full group per dimension.
    pub group: [u32; 3],
    /// Work-items of the last group per dimension (equal to `group` if it is full).
    pub last_group: [u32; 3],
    /// COMPUTE_DISPATCH_SCRATCH_BASE_LO/HI, as an address (registers << 8). Used if SCRATCH_EN is set.
    pub scratch_base_va: u64,
    /// COMPUTE_TMPRING_SIZE.
    pub tmpring_size: u32,
    /// Whether waves have 64 lanes: the initiator's CS_W32_EN is clear.
    pub is_wave64: bool,
    /// The memory that the waves see.
    pub address_space: Arc<AddressSpace>,
    /// The packet.
    pub origin: PacketOrigin,
}

/// Why a dispatch cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DispatchError {
    /// RSRC1 requests more than 256 vector registers.
    #[error("{0} vector registers; a wave has at most 256")]
    VectorRegisters(u32),
    /// RSRC2.USER_SGPR beyond 16.
    #[error("{0} user SGPRs; there are 16")]
    UserSgprs(u32),
    /// RSRC2.LDS_SIZE beyond 64 KB.
    #[error("{0} bytes of LDS; the limit of a workgroup is 65536")]
    Lds(u32),
    /// RSRC2.DYNAMIC_VGPR, which is not modelled.
    #[error("RSRC2 {0:#x} asks for dynamic vector registers, which are not modelled")]
    DynamicVectorRegisters(u32),
    /// RSRC2.TIDIG_COMP_CNT of 3.
    #[error("RSRC2 {0:#x} has the reserved TIDIG_COMP_CNT 3")]
    WorkItemIdComponents(u32),
    /// No work-items, or more than 1024, or a last group larger than a full one.
    #[error("workgroups of {group:?} work-items, the last of {last:?}")]
    GroupSize {
        /// Full group.
        group: [u32; 3],
        /// Last group.
        last: [u32; 3],
    },
    /// SCRATCH_EN is set and TMPRING_SIZE has no space for the waves of one group.
    #[error("SCRATCH_EN with TMPRING_SIZE {0:#x}: no scratch for a group's waves")]
    Scratch(u32),
    /// One group needs more than an empty compute unit or WGP has.
    #[error(
        "a group of {waves} waves, {vector_registers} vector registers each and {lds_bytes} bytes of LDS fits nowhere"
    )]
    FitsNowhere {
        /// Waves of a full group.
        waves: u32,
        /// Vector registers of a wave.
        vector_registers: u32,
        /// LDS of a group.
        lds_bytes: u32,
    },
}

/// Most work-items of a group (hardware reference §7).
const GROUP_WORK_ITEMS_MAX: u64 = 1024;
/// Most LDS of a compute group in bytes, and the units of RSRC2.LDS_SIZE and of allocation (hardware reference §7).
const LDS_BYTES_MAX: u32 = 65_536;
const LDS_UNIT_BYTES: u32 = 512;
const LDS_GRANULE_BYTES: u32 = 1024;
/// Vector registers of a wave, and the units of RSRC1's field in wave32 and wave64 (instruction set reference §2).
const VECTOR_REGISTERS_MAX: u32 = 256;
const VECTOR_REGISTERS_UNIT: u32 = 8;
const VECTOR_REGISTERS_UNIT_WAVE64: u32 = 4;
/// TMPRING_SIZE.WAVESIZE counts 256 bytes (hardware reference §5).
const SCRATCH_UNIT_BYTES: u32 = 256;

/// The resource words, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Vector registers of a wave, 4..=256.
    pub vector_registers: u32,
    /// Number of USER_DATA dwords that become s0 and the following registers.
    pub user_sgprs: u32,
    /// LDS of a group in bytes, as accessible to it.
    pub lds_bytes: u32,
    /// Initial MODE: round 3:0, denormals 7:4, FP16_OVFL 23 (hardware reference §5.2; instruction set reference §3).
    pub mode: u32,
    /// 0: v0 holds X; 1: X and Y; 2: X, Y and Z.
    pub work_item_id_components: u32,
    /// TGID_X/Y/Z_EN.
    pub has_group_id: [bool; 3],
    /// Whether a group spans both compute units of a WGP.
    pub is_wgp_mode: bool,
    /// Scratch of a wave in bytes; 0 without SCRATCH_EN.
    pub scratch_wave_bytes: u32,
    /// Waves of one shader engine that may have scratch.
    pub scratch_waves: u32,
}

fn field(word: u32, high: u32, low: u32) -> u32 {
    word >> low & (u32::MAX >> (31 - (high - low)))
}

impl Resources {
    /// Parses the words of a dispatch.
    pub fn parse(dispatch: &Dispatch) -> Result<Resources, DispatchError> {
        let (rsrc1, rsrc2) = (dispatch.rsrc1, dispatch.rsrc2);
        let unit = if dispatch.is_wave64 { VECTOR_REGISTERS_UNIT_WAVE64 } else { VECTOR_REGISTERS_UNIT };
        let vector_registers = (field(rsrc1, 5, 0) + 1) * unit;
        if vector_registers > VECTOR_REGISTERS_MAX {
            return Err(DispatchError::VectorRegisters(vector_registers));
        }
        let user_sgprs = field(rsrc2, 5, 1);
        if user_sgprs as usize > dispatch.user_data.len() {
            return Err(DispatchError::UserSgprs(user_sgprs));
        }
        let lds_bytes = field(rsrc2, 23, 15) * LDS_UNIT_BYTES;
        if lds_bytes > LDS_BYTES_MAX {
            return Err(DispatchError::Lds(lds_bytes));
        }
        if field(rsrc2, 6, 6) != 0 {
            return Err(DispatchError::DynamicVectorRegisters(rsrc2));
        }
        let work_item_id_components = field(rsrc2, 12, 11);
        if work_item_id_components > 2 {
            return Err(DispatchError::WorkItemIdComponents(rsrc2));
        }
        let has_scratch = field(rsrc2, 0, 0) != 0;
        let scratch_wave_bytes = field(dispatch.tmpring_size, 29, 12) * SCRATCH_UNIT_BYTES;
        Ok(Resources {
            vector_registers,
            user_sgprs,
            lds_bytes,
            mode: field(rsrc1, 19, 12) | field(rsrc1, 26, 26) << 23,
            work_item_id_components,
            has_group_id: [7, 8, 9].map(|at| field(rsrc2, at, at) != 0),
            is_wgp_mode: field(rsrc1, 29, 29) != 0,
            scratch_wave_bytes: if has_scratch { scratch_wave_bytes } else { 0 },
            scratch_waves: if has_scratch { field(dispatch.tmpring_size, 11, 0) } else { 0 },
        })
        .and_then(|resources| match has_scratch && scratch_wave_bytes == 0 {
            true => Err(DispatchError::Scratch(dispatch.tmpring_size)),
            false => Ok(resources),
        })
    }

    /// LDS that the group takes from its compute unit, in bytes.
    pub fn lds_allocation(&self) -> u32 {
        self.lds_bytes.next_multiple_of(LDS_GRANULE_BYTES)
    }
}

impl Dispatch {
    /// Lanes of a wave.
    pub(crate) fn lanes(&self) -> u32 {
        if self.is_wave64 { 2 * LANES as u32 } else { LANES as u32 }
    }

    /// The wave size.
    pub(crate) fn wave_size(&self) -> WaveSize {
        if self.is_wave64 { WaveSize::Wave64 } else { WaveSize::Wave32 }
    }

    /// Number of workgroups.
    pub(crate) fn group_count(&self) -> u128 {
        self.count.iter().map(|count| u128::from(*count)).product()
    }

    /// Checks the group sizes. Returns the waves of a full group.
    pub(crate) fn waves_per_group(&self) -> Result<u32, DispatchError> {
        let (group, last) = (self.group, self.last_group);
        let work_items: u64 =
            group.iter().try_fold(1u64, |all, size| all.checked_mul(u64::from(*size))).unwrap_or(0);
        let last_fits = (0..3).all(|axis| last[axis] > 0 && last[axis] <= group[axis]);
        if work_items == 0 || work_items > GROUP_WORK_ITEMS_MAX || !last_fits {
            return Err(DispatchError::GroupSize { group, last });
        }
        Ok(work_items.div_ceil(u64::from(self.lanes())) as u32)
    }

    /// Id and size of the workgroup with a linear index, X fastest. Ids wrap at 2^32 as the registers do.
    pub(crate) fn workgroup(&self, index: u64) -> ([u32; 3], [u32; 3]) {
        let (x, y) = (u64::from(self.count[0]), u64::from(self.count[1]));
        let at = [index % x, index / x % y, index / x / y];
        let id = [0, 1, 2].map(|axis| self.first[axis].wrapping_add(at[axis] as u32));
        let size = [0, 1, 2].map(|axis| {
            if at[axis] + 1 == u64::from(self.count[axis]) { self.last_group[axis] } else { self.group[axis] }
        });
        (id, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch() -> Dispatch {
        Dispatch {
            code_va: 0x10_0000,
            rsrc1: 0x600F_0000,
            rsrc2: 0x84,
            rsrc3: 0,
            user_data: [0; 16],
            first: [0; 3],
            count: [3, 2, 2],
            group: [64, 2, 1],
            last_group: [10, 2, 1],
            scratch_base_va: 0,
            tmpring_size: 0,
            is_wave64: false,
            address_space: Arc::new(AddressSpace::default()),
            origin: PacketOrigin::default(),
        }
    }

    #[test]
    fn resource_words_are_taken_apart() {
        // The words of instruction set reference §10: 8 VGPRs, denormals kept, WGP mode, 2 user SGPRs, TGID_X.
        let resources = Resources::parse(&dispatch()).unwrap();
        assert_eq!(resources.vector_registers, 8);
        assert_eq!(resources.user_sgprs, 2);
        assert_eq!(resources.mode, 0xF0);
        assert_eq!(resources.has_group_id, [true, false, false]);
        assert!(resources.is_wgp_mode);
        assert_eq!((resources.lds_bytes, resources.scratch_wave_bytes), (0, 0));
        let parse = |rsrc1, rsrc2, tmpring_size| {
            Resources::parse(&Dispatch { rsrc1, rsrc2, tmpring_size, ..dispatch() })
        };
        assert_eq!(parse(31, 0, 0).unwrap().vector_registers, 256);
        assert_eq!(parse(32, 0, 0), Err(DispatchError::VectorRegisters(264)));
        let wide = |rsrc1| Resources::parse(&Dispatch { rsrc1, is_wave64: true, ..dispatch() }).unwrap();
        assert_eq!([0, 31, 63].map(|blocks| wide(blocks).vector_registers), [4, 128, 256], "blocks of 4");
        assert_eq!(parse(0, 17 << 1, 0), Err(DispatchError::UserSgprs(17)));
        assert_eq!(parse(0, 128 << 15, 0).unwrap().lds_bytes, 65_536);
        assert_eq!(parse(0, 129 << 15, 0), Err(DispatchError::Lds(66_048)));
        assert_eq!(parse(0, 3 << 11, 0), Err(DispatchError::WorkItemIdComponents(3 << 11)));
        assert_eq!(parse(0, 1, 0), Err(DispatchError::Scratch(0)));
        // Hardware reference §7: 64 bytes per thread are WAVES 512, WAVESIZE 16.
        let scratch = parse(0, 1, 0x0001_0200).unwrap();
        assert_eq!((scratch.scratch_waves, scratch.scratch_wave_bytes), (512, 4096));
    }

    #[test]
    fn groups_are_numbered_x_first_and_the_last_is_partial() {
        let dispatch = Dispatch { first: [5, 0, 1], ..dispatch() };
        assert_eq!(dispatch.waves_per_group(), Ok(4));
        assert_eq!(dispatch.group_count(), 12);
        assert_eq!(dispatch.workgroup(0), ([5, 0, 1], [64, 2, 1]));
        assert_eq!(dispatch.workgroup(2), ([7, 0, 1], [10, 2, 1]));
        assert_eq!(dispatch.workgroup(3), ([5, 1, 1], [64, 2, 1]));
        assert_eq!(dispatch.workgroup(11), ([7, 1, 2], [10, 2, 1]));
        let rows = [(0, 1), (1, 1), (0, 2), (1, 2)];
        let ids = rows.iter().flat_map(|(y, z)| [5u32, 6, 7].map(|x| [x, *y, *z]));
        assert!(ids.eq((0..12).map(|index| dispatch.workgroup(index).0)));
        let sized = |group, last_group| Dispatch { group, last_group, ..dispatch.clone() }.waves_per_group();
        assert_eq!(sized([33, 1, 1], [33, 1, 1]), Ok(2));
        let wide = |group| Dispatch { group, last_group: group, is_wave64: true, ..dispatch.clone() };
        let waves = |x| wide([x, 1, 1]).waves_per_group();
        assert_eq!([33, 64, 65, 1024].map(waves), [Ok(1), Ok(1), Ok(2), Ok(16)]);
        assert!(sized([1025, 1, 1], [1, 1, 1]).is_err());
        assert!(sized([0, 1, 1], [0, 1, 1]).is_err());
        assert!(sized([32, 1, 1], [33, 1, 1]).is_err());
        assert!(sized([u32::MAX, u32::MAX, u32::MAX], [1, 1, 1]).is_err());
    }

    /// A bit of every field at a time, from hardware reference §5.2.
    #[test]
    fn a_field_has_its_bits_and_no_others() {
        let parse = |rsrc1, rsrc2| Resources::parse(&Dispatch { rsrc1, rsrc2, ..dispatch() });
        let none = parse(0, 0).unwrap();
        let is_plain = |rsrc1, rsrc2| assert_eq!(parse(rsrc1, rsrc2), Ok(none), "{rsrc1:#x} {rsrc2:#x}");
        for bit in (6..12).chain(20..26).chain([27, 28, 30, 31]) {
            is_plain(1 << bit, 0);
        }
        for bit in [10, 13, 14].into_iter().chain(24..32) {
            is_plain(0, 1 << bit);
        }
        for bit in 12..20 {
            assert_eq!(parse(1 << bit, 0), Ok(Resources { mode: 1 << (bit - 12), ..none }));
        }
        assert_eq!(parse(1 << 26, 0), Ok(Resources { mode: 1 << 23, ..none }), "FP16_OVFL");
        assert_eq!(parse(1 << 29, 0), Ok(Resources { is_wgp_mode: true, ..none }));
        for (axis, has_group_id) in
            [[true, false, false], [false, true, false], [false, false, true]].into_iter().enumerate()
        {
            assert_eq!(parse(0, 1 << (7 + axis)), Ok(Resources { has_group_id, ..none }));
        }
        for work_item_id_components in 0..3 {
            assert_eq!(
                parse(0, work_item_id_components << 11),
                Ok(Resources { work_item_id_components, ..none })
            );
        }
        for user_sgprs in 0..=16 {
            assert_eq!(parse(0, user_sgprs << 1), Ok(Resources { user_sgprs, ..none }));
        }
        for units in [1, 2, 3, 127, 128] {
            assert_eq!(parse(0, units << 15), Ok(Resources { lds_bytes: 512 * units, ..none }));
        }
        assert_eq!(parse(0, 1 << 6), Err(DispatchError::DynamicVectorRegisters(1 << 6)));
        assert_eq!(parse(0, 31 << 1), Err(DispatchError::UserSgprs(31)));
        // TMPRING_SIZE: waves 11:0, size of a wave 29:12 in units of 256 bytes.
        let scratch = |rsrc2, tmpring_size| {
            let resources = Resources::parse(&Dispatch { rsrc1: 0, rsrc2, tmpring_size, ..dispatch() })?;
            Ok((resources.scratch_waves, resources.scratch_wave_bytes))
        };
        assert_eq!(scratch(1, 0x3FFF_FFFF), Ok((0xFFF, 0x3_FFFF * 256)));
        assert_eq!(scratch(1, 0xC000_1001), Ok((1, 256)));
        assert_eq!(scratch(1, 0x0000_1000), Ok((0, 256)));
        assert_eq!(scratch(1, 0xC000_0FFF), Err(DispatchError::Scratch(0xC000_0FFF)));
        assert_eq!(scratch(0, 0x3FFF_FFFF), Ok((0, 0)), "not enabled");
        let allocation = |lds_bytes| Resources { lds_bytes, ..none }.lds_allocation();
        assert_eq!([0, 512, 1024, 1536, 65_536].map(allocation), [0, 1024, 1024, 2048, 65_536]);
    }

    #[test]
    fn a_group_has_1_to_1024_work_items_and_the_last_one_no_more() {
        let waves = |is_wave64, group: [u32; 3], last_group: [u32; 3]| {
            Dispatch { group, last_group, is_wave64, ..dispatch() }.waves_per_group().ok()
        };
        for (group, narrow, wide) in [
            ([1, 1, 1], Some(1), Some(1)),
            ([32, 1, 1], Some(1), Some(1)),
            ([1, 33, 1], Some(2), Some(1)),
            ([5, 5, 5], Some(4), Some(2)),
            ([8, 8, 16], Some(32), Some(16)),
            ([1, 1, 1024], Some(32), Some(16)),
            ([1, 1025, 1], None, None),
            ([1, 1, 0], None, None),
            ([1 << 31, 1 << 31, 4], None, None),
        ] {
            assert_eq!((waves(false, group, group), waves(true, group, group)), (narrow, wide), "{group:?}");
        }
        for axis in 0..3 {
            let [fewer, more, none] = [3, 5, 0].map(|size| {
                let mut last = [4; 3];
                last[axis] = size;
                waves(false, [4; 3], last)
            });
            assert_eq!((fewer, more, none), (Some(2), None, None), "axis {axis}");
        }
    }

    #[test]
    fn ids_begin_at_the_first_and_wrap() {
        let dispatch = Dispatch {
            first: [u32::MAX, 7, 1],
            count: [2, 1, 3],
            group: [8, 4, 2],
            last_group: [5, 3, 1],
            ..dispatch()
        };
        let groups: Vec<_> = (0..6).map(|index| dispatch.workgroup(index)).collect();
        assert_eq!(
            groups,
            [
                ([u32::MAX, 7, 1], [8, 3, 2]),
                ([0, 7, 1], [5, 3, 2]),
                ([u32::MAX, 7, 2], [8, 3, 2]),
                ([0, 7, 2], [5, 3, 2]),
                ([u32::MAX, 7, 3], [8, 3, 1]),
                ([0, 7, 3], [5, 3, 1]),
            ]
        );
        let all = Dispatch { count: [u32::MAX; 3], ..dispatch };
        assert_eq!(all.group_count(), 0xFFFF_FFFF * 0xFFFF_FFFF * 0xFFFF_FFFF);
    }
}
