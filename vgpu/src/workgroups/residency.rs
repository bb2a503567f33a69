//! Residency of workgroups: waves, vector registers and LDS of every compute unit (hardware reference §7).
//!
//! Contract: a group is placed as a whole on one compute unit (CU mode) or one WGP (WGP mode), or not at all. A
//! group that fits an empty unit can always be placed once enough others have left. Cost: some tens of nanoseconds.

use std::ops::Range;

/// SIMDs of a WGP: two of each compute unit.
const SIMDS: usize = 4;
/// Waves of one SIMD.
const SIMD_WAVES: u32 = 16;
/// Vector register rows of one SIMD, and the unit that they are allocated in (wave32).
const SIMD_ROWS: u32 = 1536;
const ROW_GRANULE: u32 = 24;
/// LDS of one compute unit in bytes; a WGP has twice that.
const LDS_BYTES: u32 = 65_536;
/// Shader engines, and shader arrays of each (hardware reference §1.2: `array_count` 8, `simd_arrays_per_engine` 2).
const SHADER_ENGINES: u32 = 4;
const SHADER_ARRAYS: u32 = 2;

/// The resources that one group takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub waves: u32,
    /// Vector registers of each wave in rows of 32 lanes. A register of a wave64 is two rows, so 768 of them, in
    /// units of 12, fill the file.
    pub rows: u32,
    pub lds_bytes: u32,
    pub is_wgp_mode: bool,
    /// Scratch slots: one per wave if the dispatch has scratch.
    pub scratch_waves: u32,
    /// Scratch slots in the dispatch's buffer.
    pub scratch_limit: u32,
}

/// The placement of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    wgp: u32,
    spread: Spread,
    /// LDS taken from each compute unit.
    lds_bytes: [u32; 2],
    /// Scratch slot of each wave.
    pub scratch_slots: Box<[u32]>,
}

/// SIMDs among which the waves of a group are dealt out in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spread {
    /// First of the SIMDs, and how many.
    base: u8,
    simds: u8,
    /// The SIMD of the first wave, counted from `base`.
    start: u8,
}

#[derive(Clone, Debug)]
struct Wgp {
    waves: [u32; SIMDS],
    rows: [u32; SIMDS],
    lds_bytes: [u32; 2],
}

/// All compute units.
#[derive(Clone, Debug)]
pub(crate) struct Residency {
    wgps: Vec<Wgp>,
    /// Where the search continues, so that groups spread over the chip.
    next: usize,
    /// Scratch slots that were returned.
    free_slots: Vec<u32>,
    /// Scratch slots from here on were never used.
    first_unused_slot: u32,
}

impl Residency {
    pub fn new(compute_units: u32) -> Residency {
        let full = Wgp { waves: [SIMD_WAVES; SIMDS], rows: [SIMD_ROWS; SIMDS], lds_bytes: [LDS_BYTES; 2] };
        let mut wgps = vec![full; compute_units.max(1).div_ceil(2) as usize];
        if compute_units % 2 == 1 {
            // The last WGP has only one compute unit.
            if let Some(last) = wgps.last_mut() {
                (last.waves[2], last.waves[3], last.lds_bytes[1]) = (0, 0, 0);
            }
        }
        Residency { wgps, next: 0, free_slots: Vec::new(), first_unused_slot: 0 }
    }

    /// Reserves resources for a group, if there are enough.
    pub fn place(&mut self, need: &Need) -> Option<Placement> {
        let unused = need.scratch_limit.saturating_sub(self.first_unused_slot);
        let reusable = self.free_slots.iter().filter(|slot| **slot < need.scratch_limit).count() as u32;
        if need.scratch_waves > unused + reusable {
            return None;
        }
        for step in 0..self.wgps.len() {
            let at = (self.next + step) % self.wgps.len();
            if let Some(mut placement) = self.wgps[at].place(need) {
                placement.wgp = at as u32;
                placement.scratch_slots = self.take_slots(need);
                self.next = at + 1;
                return Some(placement);
            }
        }
        None
    }

    /// Releases the resources.
    pub fn release(&mut self, need: &Need, placement: &Placement) {
        self.free_slots.extend(&placement.scratch_slots);
        let wgp = &mut self.wgps[placement.wgp as usize];
        for (simd, waves) in placement.spread.shares(need.waves) {
            wgp.waves[simd] += waves;
            wgp.rows[simd] += waves * need.rows.next_multiple_of(ROW_GRANULE);
        }
        wgp.lds_bytes[0] += placement.lds_bytes[0];
        wgp.lds_bytes[1] += placement.lds_bytes[1];
    }

    fn take_slots(&mut self, need: &Need) -> Box<[u32]> {
        let mut slots = Vec::with_capacity(need.scratch_waves as usize);
        while slots.len() < need.scratch_waves as usize {
            match self.free_slots.iter().position(|slot| *slot < need.scratch_limit) {
                Some(at) => slots.push(self.free_slots.swap_remove(at)),
                None => {
                    slots.push(self.first_unused_slot);
                    self.first_unused_slot += 1;
                }
            }
        }
        slots.into_boxed_slice()
    }
}

impl Placement {
    /// The compute unit that a wave of the group is on.
    pub fn compute_unit(&self, wave: u32) -> u32 {
        2 * self.wgp + self.simd(wave) / 2
    }

    /// HW_ID1 of a wave of the group: the wave's place on its SIMD 4:0, SIMD 9:8, WGP 13:10, shader array 16,
    /// shader engine 20:18 (fields as `umr` and public code for RDNA read them; not in the instruction set's text
    /// for gfx12). A **model**, because it is not documented: WGPs are numbered over the engines first, the place
    /// counts only this group's waves, and the SIMDs of a compute unit are neighbours.
    pub fn hardware_id(&self, wave: u32) -> u32 {
        let engine = self.wgp % SHADER_ENGINES;
        let array = self.wgp / SHADER_ENGINES % SHADER_ARRAYS;
        let wgp = self.wgp / (SHADER_ENGINES * SHADER_ARRAYS);
        let place = wave / u32::from(self.spread.simds).max(1);
        place & 31 | self.simd(wave) << 8 | (wgp & 15) << 10 | array << 16 | engine << 18
    }

    /// The SIMD of its WGP that a wave of the group is on.
    fn simd(&self, wave: u32) -> u32 {
        let turn = (u32::from(self.spread.start) + wave) % u32::from(self.spread.simds).max(1);
        u32::from(self.spread.base) + turn
    }
}

impl Spread {
    /// Number of waves on each SIMD.
    fn shares(self, waves: u32) -> impl Iterator<Item = (usize, u32)> {
        let count = u32::from(self.simds);
        (0..count).map(move |turn| {
            let simd = (u32::from(self.start) + turn) % count + u32::from(self.base);
            (simd as usize, (waves + count - 1 - turn) / count)
        })
    }
}

impl Wgp {
    fn place(&mut self, need: &Need) -> Option<Placement> {
        let lds = need.lds_bytes;
        if need.is_wgp_mode {
            if self.lds_bytes[0] + self.lds_bytes[1] < lds {
                return None;
            }
            let of_first = lds.min(self.lds_bytes[0]);
            return self.take(need, 0..4, [of_first, lds - of_first]);
        }
        // The compute unit with more free waves, then the other.
        let free = |unit: usize| self.waves[2 * unit] + self.waves[2 * unit + 1];
        let order = if free(1) > free(0) { [1, 0] } else { [0, 1] };
        order.into_iter().find_map(|unit| {
            let mut taken = [0; 2];
            taken[unit] = lds;
            (self.lds_bytes[unit] >= lds).then(|| self.take(need, 2 * unit..2 * unit + 2, taken)).flatten()
        })
    }

    fn take(&mut self, need: &Need, simds: Range<usize>, lds_bytes: [u32; 2]) -> Option<Placement> {
        let rows = need.rows.next_multiple_of(ROW_GRANULE);
        let room = |simd: usize| self.waves[simd].min(self.rows[simd] / rows);
        // The emptiest SIMD takes the first wave; the lowest among equals.
        let start = simds.clone().rev().max_by_key(|simd| room(*simd))? - simds.start;
        let spread = Spread { base: simds.start as u8, simds: simds.len() as u8, start: start as u8 };
        if !spread.shares(need.waves).all(|(simd, waves)| room(simd) >= waves) {
            return None;
        }
        for (simd, waves) in spread.shares(need.waves) {
            self.waves[simd] -= waves;
            self.rows[simd] -= waves * rows;
        }
        self.lds_bytes[0] -= lds_bytes[0];
        self.lds_bytes[1] -= lds_bytes[1];
        Some(Placement { wgp: 0, spread, lds_bytes, scratch_slots: Box::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(waves: u32, rows: u32, lds_bytes: u32, is_wgp_mode: bool) -> Need {
        Need { waves, rows, lds_bytes, is_wgp_mode, scratch_waves: 0, scratch_limit: 0 }
    }

    fn capacity(compute_units: u32, need: Need) -> usize {
        let mut residency = Residency::new(compute_units);
        std::iter::from_fn(|| residency.place(&need)).take(100_000).count()
    }

    #[test]
    fn limits_are_those_of_the_reference() {
        // 64 compute units of 32 waves; by vector registers: 96 → 16 per SIMD, 192 → 8, 256 → 5.
        assert_eq!(capacity(64, need(1, 96, 0, true)), 2048);
        assert_eq!(capacity(64, need(1, 192, 0, true)), 1024);
        assert_eq!(capacity(64, need(1, 256, 0, false)), 640);
        assert_eq!(capacity(64, need(8, 96, 0, true)), 256);
        // Wave64: 768 registers in granules of 12.
        assert_eq!(capacity(64, need(1, 2 * 48, 0, true)), 2048);
        assert_eq!(capacity(64, need(1, 2 * 49, 0, true)), 128 * (768 / 60));
        assert_eq!(capacity(64, need(1, 2 * 256, 0, true)), 128 * 2);
        // LDS: 128 KB per WGP.
        assert_eq!(capacity(64, need(1, 8, 65_536, false)), 64);
        assert_eq!(capacity(64, need(1, 8, 65_536, true)), 64);
        assert_eq!(capacity(2, need(1, 8, 40_960, false)), 2);
        assert_eq!(capacity(2, need(1, 8, 40_960, true)), 3);
        assert_eq!(capacity(1, need(32, 96, 0, false)), 1);
        assert_eq!(capacity(1, need(32, 97, 0, false)), 0);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut residency = Residency::new(4);
        let kinds = [need(8, 64, 4096, true), need(3, 200, 1024, false), need(1, 256, 65_536, false)];
        let mut held = Vec::new();
        let mut random = zrt_needs::Random::new(7);
        for _ in 0..10_000 {
            let kind = &kinds[random.below(kinds.len() as u32) as usize];
            match residency.place(kind) {
                Some(placement) if !random.one_in(3) => held.push((kind, placement)),
                Some(placement) => residency.release(kind, &placement),
                None => held.drain(..).for_each(|(kind, placement)| residency.release(kind, &placement)),
            }
        }
        held.drain(..).for_each(|(kind, placement)| residency.release(kind, &placement));
        assert_eq!(format!("{:?}", residency.wgps), format!("{:?}", Residency::new(4).wgps));
    }

    /// Compute unit and HW_ID1 of each wave of the group that is placed next.
    fn next(residency: &mut Residency, need: &Need) -> Option<Vec<(u32, u32)>> {
        let placement = residency.place(need)?;
        Some(
            (0..need.waves).map(|wave| (placement.compute_unit(wave), placement.hardware_id(wave))).collect(),
        )
    }

    #[test]
    fn a_group_begins_on_the_emptiest_simd_of_the_emptier_unit() {
        let mut residency = Residency::new(2);
        let one = need(1, 8, 0, false);
        let places: Vec<_> = (0..6).flat_map(|_| next(&mut residency, &one).unwrap()).collect();
        assert_eq!(places, [(0, 0x000), (1, 0x200), (0, 0x100), (1, 0x300), (0, 0x000), (1, 0x200)]);
        // Registers count too: a SIMD with room for fewer such waves is the fuller one.
        let mut residency = Residency::new(1);
        assert_eq!(next(&mut residency, &need(1, 256, 0, false)), Some(vec![(0, 0x000)]));
        assert_eq!(next(&mut residency, &need(1, 8, 0, false)), Some(vec![(0, 0x100)]));
        assert_eq!(next(&mut residency, &need(1, 256, 0, false)), Some(vec![(0, 0x100)]), "5 waves, and 4");
        let mut residency = Residency::new(2);
        let five = next(&mut residency, &need(5, 8, 0, true));
        assert_eq!(five, Some(vec![(0, 0x000), (0, 0x100), (1, 0x200), (1, 0x300), (0, 0x001)]));
        assert_eq!(next(&mut residency, &need(2, 8, 0, true)), Some(vec![(0, 0x100), (1, 0x200)]));
        assert_eq!(
            next(&mut residency, &need(3, 8, 0, true)),
            Some(vec![(1, 0x300), (0, 0x000), (0, 0x100)])
        );
        let mut residency = Residency::new(2);
        let four = next(&mut residency, &need(4, 8, 0, false));
        assert_eq!(four, Some(vec![(0, 0x000), (0, 0x100), (0, 0x001), (0, 0x101)]));
    }

    /// The search goes on behind the WGP of the group before, and ends at the first with room.
    #[test]
    fn a_group_goes_to_the_next_wgp_with_room() {
        let mut residency = Residency::new(6);
        let whole = need(1, 8, 131_072, true);
        let place = |residency: &mut Residency| residency.place(&whole).unwrap();
        let [first, _, third] = [(); 3].map(|()| place(&mut residency));
        assert_eq!([&first, &third].map(|placement| placement.compute_unit(0)), [0, 4]);
        residency.release(&whole, &first);
        assert_eq!(place(&mut residency).compute_unit(0), 0);
        residency.release(&whole, &third);
        assert_eq!(place(&mut residency).compute_unit(0), 4);
        assert_eq!(residency.place(&whole), None);
    }

    #[test]
    fn the_emptier_unit_is_the_one_with_more_waves_in_all() {
        let mut residency = Residency::new(2);
        residency.wgps[0].waves = [16, 8, 12, 11];
        assert_eq!(next(&mut residency, &need(1, 8, 0, false)), Some(vec![(0, 0x000)]), "24 and 23");
        residency.wgps[0].waves = [16, 7, 12, 12];
        assert_eq!(next(&mut residency, &need(1, 8, 0, false)), Some(vec![(1, 0x200)]), "23 and 24");
    }

    #[test]
    fn a_group_of_a_whole_wgp_takes_lds_of_both_units() {
        let mut residency = Residency::new(2);
        let of = |kib: u32, is_wgp_mode: bool| need(1, 8, kib << 10, is_wgp_mode);
        // What is left of 64 KiB in each: 24 and 64, 0 and 48, 0 and 32, 0 and 23, nothing.
        for (kib, is_wgp_mode, fits) in [
            (40, true, true),
            (40, true, true),
            (16, false, true),
            (40, true, false),
            (9, true, true),
            (24, false, false),
            (23, true, true),
            (1, true, false),
        ] {
            assert_eq!(residency.place(&of(kib, is_wgp_mode)).is_some(), fits, "{kib} KiB");
        }
        let mut residency = Residency::new(1);
        assert_eq!(residency.place(&of(65, true)), None, "half a WGP has half of it");
        assert_eq!(residency.place(&need(1, 8, (64 << 10) + 1, false)), None);
        assert!(residency.place(&of(64, true)).is_some());
    }

    #[test]
    fn waves_of_a_group_are_on_one_compute_unit_or_alternate_between_two() {
        let mut residency = Residency::new(64);
        let units =
            |placement: &Placement| (0..4).map(|wave| placement.compute_unit(wave)).collect::<Vec<_>>();
        let narrow = residency.place(&need(4, 8, 0, false)).unwrap();
        assert!(units(&narrow).iter().all(|unit| *unit == units(&narrow)[0]));
        let wide = residency.place(&need(4, 8, 0, true)).unwrap();
        assert_eq!(units(&wide).iter().filter(|unit| **unit == units(&wide)[0]).count(), 2);
        assert_eq!(units(&wide)[0] / 2, units(&wide)[2] / 2);
    }

    #[test]
    fn hardware_ids_tell_simds_and_wgps_apart() {
        let mut residency = Residency::new(64);
        let full = need(2, 8, LDS_BYTES, false);
        let ids: Vec<[u32; 2]> = (0..64)
            .map(|_| residency.place(&full).unwrap())
            .map(|at| [at.hardware_id(0), at.hardware_id(1)])
            .collect();
        assert_eq!(ids[0], [0x000, 0x100], "SIMDs 0 and 1 of WGP 0, array 0, engine 0");
        assert_eq!(ids[1][0], 1 << 18, "the next WGP is on the next engine");
        assert_eq!(ids[4][0], 1 << 16, "then come the second arrays");
        assert_eq!(ids[31], [3 << 18 | 1 << 16 | 3 << 10, 3 << 18 | 1 << 16 | 3 << 10 | 1 << 8]);
        assert_eq!(ids[32], [0x200, 0x300], "then the second compute units");
        let mut all: Vec<u32> = ids.into_iter().flatten().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 128);
    }

    #[test]
    fn scratch_slots_are_not_shared_and_stay_below_the_limit() {
        let mut residency = Residency::new(64);
        let need = Need { scratch_waves: 2, scratch_limit: 5, ..need(2, 8, 0, true) };
        let first = residency.place(&need).unwrap();
        let second = residency.place(&need).unwrap();
        let mut slots: Vec<u32> = first.scratch_slots.iter().chain(&second.scratch_slots).copied().collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2, 3]);
        assert_eq!(residency.place(&need), None);
        residency.release(&need, &first);
        assert_eq!(residency.place(&need).unwrap().scratch_slots.len(), 2);
    }

    #[test]
    fn a_scratch_slot_is_below_the_limit_of_its_dispatch() {
        let mut residency = Residency::new(64);
        let waves = |count: u32, limit: u32| Need {
            scratch_waves: count,
            scratch_limit: limit,
            ..need(count, 8, 0, true)
        };
        let slots = |placement: &Option<Placement>| {
            let mut slots = placement.as_ref().map(|placement| placement.scratch_slots.to_vec())?;
            slots.sort_unstable();
            Some(slots)
        };
        let two = waves(2, 4);
        let [first, second, third] = [(); 3].map(|()| residency.place(&two));
        assert_eq!(
            (slots(&first), slots(&second), slots(&third)),
            (Some(vec![0, 1]), Some(vec![2, 3]), None)
        );
        residency.release(&two, &second.unwrap());
        // Two slots are free, and only one of them is below 3.
        assert_eq!(residency.place(&waves(2, 3)), None);
        assert_eq!(slots(&residency.place(&waves(1, 3))), Some(vec![2]));
        // The other free one, and one that was never used.
        assert_eq!(residency.place(&waves(3, 5)), None);
        assert_eq!(slots(&residency.place(&waves(2, 5))), Some(vec![3, 4]));
        // Of those that are free the first is not below 3.
        let mut residency = Residency::new(64);
        let one = [(); 4].map(|()| residency.place(&waves(1, 4)).unwrap());
        assert_eq!(one.each_ref().map(|placement| placement.scratch_slots[0]), [0, 1, 2, 3]);
        [3, 2].iter().for_each(|at: &usize| residency.release(&waves(1, 4), &one[*at]));
        assert_eq!(slots(&residency.place(&waves(1, 3))), Some(vec![2]));
        // Without scratch there is no limit.
        assert_eq!(slots(&residency.place(&need(1, 8, 0, true))), Some(vec![]));
    }
}
