//! The initial state of a wave (hardware reference §7; instruction set reference §3).
//!
//! Contract: registers that the hardware leaves undefined hold a pattern drawn from the seed: NaNs as floats, and
//! offsets far outside any buffer. MODE.SCALAR_PREFETCH_EN is set by the configuration. Only allocated vector
//! registers are touched. Cost: about 100 ns per wave.

use crate::config::Config;
use crate::shader::address::{PRIVATE_APERTURE_HIGH, SHARED_APERTURE_HIGH};
use crate::shader::dispatch::{Dispatch, Resources};
use crate::shader::machine::Lds;
use crate::shader::wave::{EXEC_LO, LANES, NULL, Row, SCALAR_PREFETCH_EN, Wave, vector_bank};

/// Scalar codes of the trap temporaries that the hardware fills.
const TTMP7: usize = 108 + 7;
const TTMP8: usize = 108 + 8;
const TTMP9: usize = 108 + 9;
/// Position of the wave's index in the workgroup, in ttmp8.
const TTMP8_WAVE_LOW: u32 = 25;
/// Codes of the apertures (instruction set reference §2). A 64-bit read takes the base's low dword, which is zero,
/// and the high dword from the code after it.
const SHARED_BASE: usize = 235;
const PRIVATE_BASE: usize = 237;
/// Codes of scalar registers; the codes after them are constants.
const REGISTER_CODES: usize = 128;
/// Bits of an id in v0.
const WORK_ITEM_ID_BITS: u32 = 10;

/// Values of undefined registers.
#[derive(Debug)]
pub(crate) struct Poison {
    scalar: [u32; REGISTER_CODES],
    vector: Box<[Row]>,
    lds: u32,
    approximation_bias: i32,
    /// Bits of MODE that no resource word sets.
    mode: u32,
}

/// The initial state common to all waves of a dispatch.
#[derive(Debug)]
pub(crate) struct Template {
    scalar: [u32; REGISTER_CODES],
    mode: u32,
    vector_count: u32,
    is_wave64: bool,
    work_item_id_components: u32,
    has_group_id: [bool; 3],
}

/// One step of a 64-bit mixing generator (splitmix).
pub(crate) fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

impl Poison {
    pub fn new(config: &Config) -> Poison {
        let mut state = config.seed;
        let mut next = || mix(&mut state) as u32 | 0xFF80_0001;
        Poison {
            scalar: std::array::from_fn(|_| next()),
            vector: (0..256).map(|_| Row([next(); LANES])).collect(),
            lds: next(),
            approximation_bias: config.approximation_bias,
            mode: if config.scalar_prefetch_at_launch { SCALAR_PREFETCH_EN } else { 0 },
        }
    }

    /// Fills the LDS of a new group.
    pub fn fill_lds(&self, lds: &mut Lds, bytes: u32) {
        lds.bytes = bytes;
        lds.words[..bytes as usize / 4].fill(self.lds);
    }
}

impl Template {
    pub fn new(dispatch: &Dispatch, resources: &Resources, poison: &Poison) -> Template {
        let mut scalar = poison.scalar;
        let user = resources.user_sgprs as usize;
        scalar[..user].copy_from_slice(&dispatch.user_data[..user]);
        scalar[NULL as usize] = 0;
        scalar[EXEC_LO as usize + 1] = 0;
        Template {
            scalar,
            mode: resources.mode | poison.mode,
            vector_count: resources.vector_registers,
            is_wave64: dispatch.is_wave64,
            work_item_id_components: resources.work_item_id_components,
            has_group_id: resources.has_group_id,
        }
    }

    /// Sets up wave `index` of a workgroup of `size` work-items.
    pub fn begin(&self, wave: &mut Wave, poison: &Poison, id: [u32; 3], size: [u32; 3], index: u32) {
        wave.scalar[..REGISTER_CODES].copy_from_slice(&self.scalar);
        wave.scalar[SHARED_BASE + 1] = SHARED_APERTURE_HIGH;
        wave.scalar[PRIVATE_BASE + 1] = PRIVATE_APERTURE_HIGH;
        if self.has_group_id[0] {
            wave.scalar[TTMP9] = id[0];
        }
        let (y, z) = (id[1] & 0xFFFF, id[2] << 16);
        wave.scalar[TTMP7] =
            if self.has_group_id[1] { y } else { 0 } | if self.has_group_id[2] { z } else { 0 };
        wave.scalar[TTMP8] = index << TTMP8_WAVE_LOW;
        let lanes = if self.is_wave64 { 2 * LANES as u32 } else { LANES as u32 };
        let first = index * lanes;
        let active = (size.iter().product::<u32>() - first).min(lanes);
        wave.set_scalar_pair(EXEC_LO, u64::MAX >> (u64::BITS - active));
        let allocated = 1..self.vector_count as usize;
        wave.vector[allocated.clone()].copy_from_slice(&poison.vector[allocated.clone()]);
        self.work_item_ids(&mut wave.vector[0], size, first);
        wave.is_high = false;
        wave.other_half = self.is_wave64.then(|| {
            let mut high = wave.other_half.take().unwrap_or_else(vector_bank);
            high[allocated.clone()].copy_from_slice(&poison.vector[allocated]);
            self.work_item_ids(&mut high[0], size, first + LANES as u32);
            high
        });
        wave.scc = poison.lds & 2 != 0;
        wave.mode = self.mode;
        wave.approximation_bias = poison.approximation_bias;
        wave.index_in_group = index;
        wave.vector_count = self.vector_count;
        wave.executed = 0;
    }

    /// v0: packed ids, X fastest. Lanes beyond the group continue counting; they are not active.
    fn work_item_ids(&self, row: &mut Row, size: [u32; 3], first: u32) {
        if size[1] == 1 && size[2] == 1 {
            for (lane, id) in row.0.iter_mut().enumerate() {
                *id = first + lane as u32;
            }
            return;
        }
        let mut at = [first % size[0], first / size[0] % size[1], first / size[0] / size[1]];
        for id in &mut row.0 {
            let y = if self.work_item_id_components >= 1 { at[1] } else { 0 };
            let z = if self.work_item_id_components >= 2 { at[2] } else { 0 };
            *id = at[0] | y << WORK_ITEM_ID_BITS | z << (2 * WORK_ITEM_ID_BITS);
            at[0] += 1;
            if at[0] == size[0] {
                at = [0, at[1] + 1, at[2]];
            }
            if at[1] == size[1] {
                at = [at[0], 0, at[2] + 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::AddressSpace;
    use crate::shader::dispatch::PacketOrigin;
    use std::sync::Arc;

    fn begin(rsrc2: u32, id: [u32; 3], size: [u32; 3], index: u32) -> Wave {
        let mut wave = Wave::new();
        begin_in(&mut wave, false, rsrc2, id, size, index);
        wave
    }

    fn begin_in(wave: &mut Wave, is_wave64: bool, rsrc2: u32, id: [u32; 3], size: [u32; 3], index: u32) {
        begin_under(&Config::default(), wave, is_wave64, rsrc2, id, size, index);
    }

    fn begin_under(
        config: &Config,
        wave: &mut Wave,
        is_wave64: bool,
        rsrc2: u32,
        id: [u32; 3],
        size: [u32; 3],
        index: u32,
    ) {
        let poison = Poison::new(config);
        let dispatch = Dispatch {
            code_va: 0,
            rsrc1: 0x600F_0001,
            rsrc2,
            rsrc3: 0,
            user_data: std::array::from_fn(|at| at as u32 + 100),
            first: [0; 3],
            count: [1; 3],
            group: size,
            last_group: size,
            scratch_base_va: 0,
            tmpring_size: 0,
            is_wave64,
            address_space: Arc::new(AddressSpace::default()),
            origin: PacketOrigin::default(),
        };
        let template = Template::new(&dispatch, &Resources::parse(&dispatch).unwrap(), &poison);
        template.begin(wave, &poison, id, size, index);
    }

    #[test]
    fn registers_hold_what_the_hardware_promises_and_poison_elsewhere() {
        let wave = begin(3 << 1 | 7 << 7, [5, 6, 7], [64, 1, 1], 1);
        assert_eq!(wave.scalar[..3], [100, 101, 102]);
        assert!(wave.scalar[3..106].iter().all(|value| f32::from_bits(*value).is_nan()));
        assert_eq!((wave.scalar[TTMP9], wave.scalar[TTMP7], wave.scalar[TTMP8]), (5, 0x0007_0006, 1 << 25));
        assert_eq!((wave.exec(), wave.scalar[NULL as usize], wave.mode), (u32::MAX, 0, 0xF0));
        assert_eq!(wave.scalar_pair(SHARED_BASE as u8), (SHARED_APERTURE_HIGH as u64) << 32);
        assert_eq!(wave.scalar_pair(PRIVATE_BASE as u8), (PRIVATE_APERTURE_HIGH as u64) << 32);
        assert_eq!((wave.vector[0].0[0], wave.vector[0].0[31]), (32, 63));
        assert!(wave.vector[1..16].iter().flat_map(|row| row.0).all(|value| f32::from_bits(value).is_nan()));
        assert_eq!(wave.vector[16].0, [0; LANES], "not allocated, not touched");
        let without_ids = begin(0, [5, 6, 7], [64, 1, 1], 0);
        assert_eq!(without_ids.scalar[TTMP7], 0);
        assert_ne!(without_ids.scalar[TTMP9], 5);
    }

    #[test]
    fn work_item_ids_are_packed_and_the_last_wave_is_ragged() {
        let wave = begin(2 << 11, [0; 3], [5, 3, 3], 1);
        assert_eq!(wave.exec(), 0x1FFF);
        // Item 32 of 45: 32 = 2 * 15 + 0 * 5 + 2.
        assert_eq!(wave.vector[0].0[0], 2 | 2 << 20);
        assert_eq!(wave.vector[0].0[12], 4 | 2 << 10 | 2 << 20);
        let only_x = begin(0, [0; 3], [5, 3, 3], 1);
        assert_eq!(only_x.vector[0].0[12], 4);
    }

    #[test]
    fn a_wave64_has_64_lanes_and_loses_its_half_when_it_is_reused() {
        let mut wave = Wave::new();
        begin_in(&mut wave, true, 2 << 11, [0; 3], [5, 3, 3], 0);
        assert_eq!(wave.scalar_pair(EXEC_LO), (1 << 45) - 1);
        assert_eq!((wave.lane(0, 31), wave.lane(0, 32)), (1 | 2 << 20, 2 | 2 << 20));
        assert_eq!(wave.lane(0, 44), 4 | 2 << 10 | 2 << 20);
        // RSRC1 says two blocks: 8 registers.
        assert!((1..8).all(|register| f32::from_bits(wave.lane(register, 63)).is_nan()));
        assert_eq!(wave.lane(8, 63), 0, "not allocated, not touched");
        begin_in(&mut wave, true, 2 << 11, [0; 3], [100, 1, 1], 1);
        assert_eq!((wave.scalar_pair(EXEC_LO), wave.lane(0, 35)), ((1 << 36) - 1, 99));
        begin_in(&mut wave, false, 2 << 11, [0; 3], [100, 1, 1], 1);
        assert_eq!((wave.scalar_pair(EXEC_LO), wave.is_wave64()), (u64::from(u32::MAX), false));
    }

    /// X counts fastest. An id has ten bits; those of components that RSRC2 does not ask for are zero.
    #[test]
    fn every_active_lane_has_the_ids_of_its_work_item() {
        for size in
            [[1, 1, 1], [7, 1, 1], [1024, 1, 1], [1, 9, 1], [1, 1, 5], [32, 2, 1], [33, 3, 2], [4, 4, 64]]
        {
            let items = size.iter().product::<u32>();
            for (is_wave64, components) in
                [false, true].into_iter().flat_map(|wide| [0, 1, 2].map(|count| (wide, count)))
            {
                let lanes = if is_wave64 { 64 } else { 32 };
                let mut wave = Wave::new();
                for item in 0..items {
                    let (index, lane) = (item / lanes, item % lanes);
                    if lane == 0 {
                        begin_in(&mut wave, is_wave64, components << 11, [0; 3], size, index);
                        let active = (items - item).min(lanes);
                        assert_eq!(wave.scalar_pair(126), (0..active).fold(0, |exec, lane| exec | 1 << lane));
                        assert_eq!((wave.scalar[116], wave.index_in_group), (index << 25, index));
                    }
                    let (x, y, z) = (item % size[0], item / size[0] % size[1], item / size[0] / size[1]);
                    let y = if components > 0 { y << 10 } else { 0 };
                    let z = if components > 1 { z << 20 } else { 0 };
                    // A group of one row counts in X whatever is asked for.
                    assert_eq!(wave.lane(0, lane as usize), x | y | z, "{item} of {size:?}, {components}");
                }
            }
        }
    }

    /// ttmp9: X; ttmp7: Y in the low half and Z in the high one, each zero if it is not enabled.
    #[test]
    fn ids_of_the_group_are_where_their_bits_enable_them() {
        for enabled in 0..8 {
            let wave = begin(enabled << 7, [0x1_2345, 0xFFFF, 0xABCD], [64, 1, 1], 0);
            let y = if enabled & 2 != 0 { 0xFFFF } else { 0 };
            let z = if enabled & 4 != 0 { 0xABCD_0000 } else { 0 };
            assert_eq!(wave.scalar[115], y | z, "{enabled}");
            assert_eq!(wave.scalar[117] == 0x1_2345, enabled & 1 != 0, "{enabled}");
        }
        // Only 16 bits of Y are there.
        assert_eq!(begin(2 << 7, [0, 0x5_0001, 0], [64, 1, 1], 0).scalar[115], 1);
    }

    #[test]
    fn apertures_and_constants_do_not_depend_on_what_the_wave_held() {
        let mut wave = Wave::new();
        wave.scalar.fill(0x5555);
        (wave.mode, wave.next, wave.executed, wave.is_high) = (1, 0, 9, true);
        wave.scalar[235] = 0;
        wave.scalar[237] = 0;
        begin_in(&mut wave, false, 16 << 1, [0; 3], [32, 1, 1], 0);
        assert_eq!(wave.scalar[..16], std::array::from_fn::<u32, 16, _>(|at| at as u32 + 100));
        assert_eq!((wave.scalar_pair(235), wave.scalar_pair(237)), (0x1_0000 << 32, 0x2_0000 << 32));
        assert_eq!((wave.scalar[124], wave.scalar[126], wave.scalar[127]), (0, u32::MAX, 0));
        assert_eq!((wave.mode, wave.executed, wave.is_high, wave.vector_count), (0xF0, 0, false, 16));
        assert_eq!(wave.approximation_bias, 0);
    }

    /// MODE bit 24 is SCALAR_PREFETCH_EN; LDS is filled as far as the group may use it.
    #[test]
    fn what_is_undefined_comes_from_the_configuration() {
        let config = Config { scalar_prefetch_at_launch: true, approximation_bias: -1, ..Config::default() };
        let poison = Poison::new(&config);
        assert_eq!((poison.mode, poison.approximation_bias), (0x0100_0000, -1));
        let mut lds = Lds::new();
        poison.fill_lds(&mut lds, 512);
        assert_eq!(lds.bytes, 512);
        assert!(lds.words[..128].iter().all(|word| *word == poison.lds && f32::from_bits(*word).is_nan()));
        assert!(lds.words[128..].iter().all(|word| *word == 0));
        let other = Poison::new(&Config { seed: config.seed + 1, ..config });
        assert!(other.scalar != poison.scalar && other.lds != poison.lds);
        // scc has a single bit.
        let scc = |seed| {
            let mut wave = Wave::new();
            begin_under(&Config { seed, ..config }, &mut wave, false, 0, [0; 3], [32, 1, 1], 0);
            wave.scc
        };
        let found: Vec<bool> = (0..16).map(scc).collect();
        assert!(found.contains(&false) && found.contains(&true), "{found:?}");
    }

    /// The first values of splitmix64 from state 0, as its authors publish them.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut state = 0;
        assert_eq!(
            [0; 3].map(|_| mix(&mut state)),
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        );
    }
}
