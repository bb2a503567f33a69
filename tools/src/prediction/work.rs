//! What waves do, in sums that can be added and scaled: from the virtual device's profile to the model's input.
//!
//! Contract: pure. All sums are over waves. A round is a wait for loads or stores that follow the wait before it: what
//! comes after it waits for memory. Of several waits for the same loads the first counts. A round is covered if its
//! wait leaves all of these under way, so that it is for earlier ones, or if many instructions lie between. Rounds are
//! told by the order of the code, not by the path through it; what is under way at the end of a loop is so at its
//! start.

use super::card::Card;
use super::issue::{Class, Vector};
use crate::profile::{PlaceCounts, Profile};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::{Add, Mul, Sub};

/// Bytes of a line between a compute unit and GL2 (hardware reference §1.4).
pub const LINE_BYTES: f64 = 128.0;
/// Instructions between a load and its wait from which on the wait counts as covered: with the three other waves of a
/// SIMD in the megakernel some 256 clocks, the latency of GL2.
const COVER_INSTRUCTIONS: f64 = 64.0;
/// Rates of the vector unit, in the order of [`Work::vector`].
const RATES: [Vector; 7] = [
    Vector::Full,
    Vector::Wide,
    Vector::Quarter,
    Vector::Double,
    Vector::MatrixInteger { halves: 1 },
    Vector::MatrixInteger { halves: 2 },
    Vector::MatrixFloat,
];
/// Index of the integer matrices of 8 bits in [`RATES`]: others are multiples of them or of their halves.
const MATRIX_HALF: usize = 4;

/// Sums over waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Instructions of the vector unit: full rate, wide, quarter rate, binary64, integer matrices by half and whole
    /// products of 16 × 16 × 16, float matrices.
    pub vector: [f64; 7],
    /// Scalar instructions, scalar loads included.
    pub scalar: f64,
    /// Branches.
    pub branches: f64,
    /// Vector memory instructions.
    pub memory: f64,
    /// LDS instructions.
    pub lds: f64,
    /// Waits, hints and whatever else only takes the wave's time.
    pub other: f64,
    /// Waits at a barrier.
    pub barriers: f64,
    /// Waits for vector loads or stores that nothing covers.
    pub rounds: f64,
    /// Waits that later loads or many instructions cover.
    pub covered_rounds: f64,
    /// Waits for scalar loads.
    pub scalar_rounds: f64,
    /// Waits for LDS.
    pub lds_rounds: f64,
    /// Lines of 128 bytes touched, each counted once for each instruction that touches it.
    pub lines: f64,
    /// Bytes of lanes' loads, stores and atomics.
    pub vector_bytes: f64,
    /// Bytes of scalar loads.
    pub scalar_bytes: f64,
    /// Cycles of LDS.
    pub lds_clocks: f64,
    /// Bytes that no cache of a compute unit can hold yet: weights, keys, values. Told by whoever knows the buffers.
    pub stream_bytes: f64,
    /// Weights that units of other rows bring from memory at about the same time, so that they come from GL2.
    pub repeated_bytes: f64,
}

/// Vector loads and stores since the last wait for some, and instructions since the last of them, over waves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pending {
    loads: u32,
    since: f64,
}

impl Work {
    /// The counts of a profile of waves with `lanes` lanes, without [`Work::stream_bytes`] and
    /// [`Work::repeated_bytes`].
    pub fn of(profile: &Profile, lanes: u32) -> Work {
        // The vector unit takes a wave64 in two passes.
        let passes = f64::from(lanes.div_ceil(32).max(1));
        let mut work = Work::default();
        for (mnemonic, count) in &profile.opcodes {
            work.count(Class::of(mnemonic), *count as f64, passes);
        }
        work.count_rounds(&profile.places);
        let bytes = &profile.bytes;
        work.lines = profile.places.iter().filter_map(|place| place.sectors).sum::<u64>() as f64
            + bytes.scratch as f64 / LINE_BYTES;
        work.vector_bytes = (bytes.vector_load + bytes.vector_store + bytes.atomic + bytes.scratch) as f64;
        work.scalar_bytes = bytes.scalar_load as f64;
        work.lds_clocks = profile.lds.cycles as f64;
        work
    }

    fn count(&mut self, class: Class, count: f64, passes: f64) {
        match class {
            Class::Vector(Vector::MatrixInteger { halves }) => {
                let (index, times) = if halves % 2 == 0 { (1, halves / 2) } else { (0, halves) };
                self.vector[MATRIX_HALF + index] += count * f64::from(times);
            }
            Class::Vector(rate) => {
                let index = RATES.iter().position(|one| *one == rate).unwrap_or(0);
                // A matrix of floats takes a wave64 once.
                let passes = if rate == Vector::MatrixFloat { 1.0 } else { passes };
                self.vector[index] += count * passes;
            }
            Class::Scalar => self.scalar += count,
            Class::Branch => self.branches += count,
            Class::VectorMemory => self.memory += count,
            Class::Lds => self.lds += count,
            Class::Barrier => self.barriers += count,
            Class::Other => self.other += count,
        }
    }

    /// Counts waits that something precedes, in the order of the code. The first walk finds what loops end with.
    fn count_rounds(&mut self, places: &[PlaceCounts]) {
        let mut places: Vec<&PlaceCounts> = places.iter().collect();
        places.sort_by_key(|place| place.pc);
        let at_loops = Work::default().walk(&places, &BTreeMap::new());
        self.walk(&places, &at_loops);
    }

    /// One walk over places in the order of the code, with what is under way where a loop begins again; returns that.
    fn walk(&mut self, places: &[&PlaceCounts], at_loops: &BTreeMap<u64, Pending>) -> BTreeMap<u64, Pending> {
        let mut at_ends: BTreeMap<u64, Pending> = BTreeMap::new();
        let [mut scalar, mut lds] = [false; 2];
        let Pending { mut loads, mut since } = Pending::default();
        for place in places {
            let (name, operand) = place.instruction.split_once(' ').unwrap_or((&place.instruction, ""));
            let count = place.count as f64;
            if let Some(pending) = at_loops.get(&place.pc).filter(|pending| pending.loads > loads) {
                Pending { loads, since } = *pending;
            }
            since += count;
            match Class::of(name) {
                Class::VectorMemory => (loads, since) = (loads + 1, 0.0),
                Class::Lds => lds = true,
                Class::Branch => {
                    if let Some(start) = loop_start(place.pc, operand) {
                        let end = at_ends.entry(start).or_default();
                        if loads > end.loads {
                            *end = Pending { loads, since };
                        }
                    }
                }
                Class::Scalar if name.starts_with("s_load") || name.starts_with("s_buffer_load") => {
                    scalar = true;
                }
                // No other instruction's name has a counter in it.
                Class::Other => {
                    let is_vector = ["loadcnt", "storecnt", "samplecnt"].iter().any(|of| name.contains(of));
                    let new_loads = if is_vector { std::mem::take(&mut loads) } else { 0 };
                    if new_loads > 0 {
                        let is_covered =
                            left_under_way(name, operand) >= new_loads || since > COVER_INSTRUCTIONS * count;
                        let sum = if is_covered { &mut self.covered_rounds } else { &mut self.rounds };
                        *sum += count;
                    }
                    if name.contains("kmcnt") && std::mem::take(&mut scalar) {
                        self.scalar_rounds += count;
                    }
                    if name.contains("dscnt") && std::mem::take(&mut lds) {
                        self.lds_rounds += count;
                    }
                }
                _ => {}
            }
        }
        at_ends
    }

    /// Cycles of the vector unit.
    pub fn vector_clocks(&self, card: &Card) -> f64 {
        self.vector.iter().zip(RATES).map(|(count, rate)| count * rate.clocks(card)).sum()
    }

    /// All instructions.
    pub fn instructions(&self) -> f64 {
        self.vector.iter().sum::<f64>()
            + self.scalar
            + self.branches
            + self.memory
            + self.lds
            + self.other
            + self.barriers
    }

    fn zip(self, other: Work, of: impl Fn(f64, f64) -> f64) -> Work {
        Work {
            vector: std::array::from_fn(|index| of(self.vector[index], other.vector[index])),
            scalar: of(self.scalar, other.scalar),
            branches: of(self.branches, other.branches),
            memory: of(self.memory, other.memory),
            lds: of(self.lds, other.lds),
            other: of(self.other, other.other),
            barriers: of(self.barriers, other.barriers),
            rounds: of(self.rounds, other.rounds),
            covered_rounds: of(self.covered_rounds, other.covered_rounds),
            scalar_rounds: of(self.scalar_rounds, other.scalar_rounds),
            lds_rounds: of(self.lds_rounds, other.lds_rounds),
            lines: of(self.lines, other.lines),
            vector_bytes: of(self.vector_bytes, other.vector_bytes),
            scalar_bytes: of(self.scalar_bytes, other.scalar_bytes),
            lds_clocks: of(self.lds_clocks, other.lds_clocks),
            stream_bytes: of(self.stream_bytes, other.stream_bytes),
            repeated_bytes: of(self.repeated_bytes, other.repeated_bytes),
        }
    }
}

/// Where a branch at `pc` goes if it goes back: by dwords from the next instruction, 16 bits with sign (instruction set
/// reference §1).
fn loop_start(pc: u64, operand: &str) -> Option<u64> {
    let dwords: u16 = operand.split_whitespace().next()?.parse().ok()?;
    let offset = i64::from(dwords as i16) * 4 + 4;
    (offset <= 0).then(|| pc.checked_add_signed(offset)).flatten()
}

/// How many loads or stores a wait leaves under way, from its operand as the assembler writes it; a wait for two
/// counters has that of loads in bits 13:8 (instruction set reference §4.1).
fn left_under_way(name: &str, operand: &str) -> u32 {
    let operand = operand.trim();
    let value = match operand.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or(0),
        None => operand.parse().unwrap_or(0),
    };
    if name.ends_with("_dscnt") { value >> 8 & 0x3f } else { value }
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        self.zip(other, |one, other| one + other)
    }
}

impl Sub for Work {
    type Output = Work;

    /// The difference; no count is below zero.
    fn sub(self, other: Work) -> Work {
        self.zip(other, |one, other| (one - other).max(0.0))
    }
}

impl Mul<f64> for Work {
    type Output = Work;

    fn mul(self, factor: f64) -> Work {
        self.zip(Work::default(), |one, _| one * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::card::Estimate;
    use crate::profile::Bytes;

    fn place(pc: u64, instruction: &str, count: u64, sectors: Option<u64>) -> PlaceCounts {
        let instruction = instruction.to_owned();
        PlaceCounts {
            pc,
            place: None,
            instruction,
            count,
            lanes: 32 * count,
            sectors,
            lds_passes: None,
            lds_conflicts: None,
        }
    }

    /// Two loads and two waits for them are one round; a wait that leaves the load before it under way is covered.
    #[test]
    fn rounds_are_waits_that_loads_precede() {
        let places = vec![
            place(24, "s_wait_loadcnt 0x0", 5, None),
            place(0, "global_load_b128 v[4:7], v0, s[4:5]", 5, Some(20)),
            place(8, "global_load_b128 v[8:11], v0, s[4:5] offset:512", 5, Some(20)),
            place(16, "s_wait_loadcnt 0x1", 5, None),
            place(28, "s_wait_loadcnt 0x0", 5, None),
            place(32, "s_wait_kmcnt 0x0", 7, None),
            place(36, "ds_load_b32 v1, v2", 3, None),
            place(40, "s_wait_dscnt 0x0", 3, None),
            place(48, "global_load_b32 v4, v0, s[4:5]", 2, None),
            place(56, "s_wait_loadcnt_dscnt 0x100", 2, None),
        ];
        let bytes = Bytes { vector_load: 5 * 1024, scratch: 256, ..Bytes::default() };
        let work = Work::of(&Profile { places, bytes, ..Profile::default() }, 32);
        assert_eq!((work.rounds, work.covered_rounds), (5.0, 2.0));
        assert_eq!((work.scalar_rounds, work.lds_rounds), (0.0, 3.0));
        // 20 lines of each load, and 2 of scratch.
        assert_eq!((work.lines, work.vector_bytes), (42.0, 5376.0));
    }

    /// A loop that asks at its end for what its next turn waits for at its start has a round in each turn.
    #[test]
    fn rounds_go_around_loops() {
        let places = |end: &str| {
            vec![
                place(0, "global_load_b32 v1, v0, s[4:5]", 1, Some(1)),
                place(8, "s_wait_loadcnt 0x0", 1, None),
                place(12, "s_wait_loadcnt 0x0", 10, None),
                place(16, end, 10, None),
                // To 12: 5 dwords back from 32.
                place(28, "s_cbranch_scc1 65531", 10, None),
            ]
        };
        let rounds = |end| Work::of(&Profile { places: places(end), ..Profile::default() }, 32).rounds;
        assert_eq!(rounds("global_load_b32 v1, v0, s[4:5]"), 11.0);
        assert_eq!(rounds("v_mov_b32_e32 v2, 0"), 1.0);
        assert_eq!((loop_start(28, "65531 ; L_000c"), loop_start(28, "5")), (Some(12), None));
    }

    /// 64 instructions between a load and its wait cover it, 63 do not: the wait itself is counted too.
    #[test]
    fn many_instructions_cover_a_round() {
        let covered = |instructions: u64| {
            let mut places = vec![place(0, "global_load_b32 v1, v0, s[4:5]", 4, Some(1))];
            places.extend((1..=instructions).map(|at| place(8 * at, "v_mov_b32_e32 v2, 0", 4, None)));
            places.push(place(8 * (instructions + 1), "s_wait_loadcnt 0x0", 4, None));
            Work::of(&Profile { places, ..Profile::default() }, 32).covered_rounds
        };
        assert_eq!([covered(63), covered(64)], [0.0, 4.0]);
    }

    /// By hand: 10 of one cycle, 3 of four, 2 matrices of eight.
    #[test]
    fn cycles_of_the_vector_unit_are_those_of_its_instructions() {
        let opcodes = [("v_fma_f32", 10), ("v_rcp_f32_e32", 3), ("v_wmma_i32_16x16x16_iu8", 2), ("s_nop", 9)];
        let opcodes = opcodes.map(|(name, count)| (name.to_owned(), count)).into();
        let profile = Profile { opcodes, ..Profile::default() };
        let card = Card::at(Estimate::Typical);
        assert_eq!(Work::of(&profile, 32).vector_clocks(&card), 10.0 + 12.0 + 16.0);
        // A wave64 takes vector instructions twice; its matrices are counted by their elements.
        assert_eq!(Work::of(&profile, 64).vector_clocks(&card), 20.0 + 24.0 + 16.0);
        assert_eq!(Work::of(&profile, 32).instructions(), 24.0);
    }

    #[test]
    fn work_is_added_and_scaled() {
        let one = Work { scalar: 3.0, lines: 4.0, ..Work::default() };
        let sum = (one + one) * 2.0 - one;
        assert_eq!((sum.scalar, sum.lines, (one - one * 2.0).scalar), (9.0, 12.0, 0.0));
    }

    /// Every sum has the instructions of its class, and the bytes that the profile counts for it.
    #[test]
    fn each_count_of_a_profile_has_its_sum() {
        let opcodes = [
            ("v_mov_b32_e32", 1),
            ("v_lshlrev_b64_e32", 2),
            ("v_rcp_f32_e32", 3),
            ("v_fma_f64", 4),
            ("v_wmma_i32_16x16x16_iu4", 5),
            ("v_wmma_i32_16x16x16_iu8", 6),
            ("v_wmma_i32_16x16x32_iu4", 60),
            ("v_swmmac_i32_16x16x64_iu4", 600),
            // Four products each, as newer chips have them.
            ("v_wmma_f32_16x16x64_fp8_fp8", 1000),
            ("v_wmma_f32_16x16x16_f16", 7),
            ("s_add_co_u32", 8),
            ("s_cbranch_scc1", 9),
            ("global_load_b32", 10),
            ("ds_load_b32", 11),
            ("s_barrier_wait", 12),
            ("s_nop", 13),
        ];
        let bytes = Bytes {
            vector_load: 1,
            vector_store: 20,
            atomic: 300,
            scalar_load: 4000,
            scratch: 51_200,
            lds_load: 600_000,
            lds_store: 7_000_000,
        };
        let profile = Profile {
            opcodes: opcodes.map(|(name, count)| (name.to_owned(), count)).into(),
            bytes,
            lds: crate::profile::Lds { accesses: 1, cycles: 17, cycles_without_conflict: 2 },
            ..Profile::default()
        };
        let expected = Work {
            vector: [1.0, 2.0, 3.0, 4.0, 5.0, 4666.0, 7.0],
            scalar: 8.0,
            branches: 9.0,
            memory: 10.0,
            lds: 11.0,
            barriers: 12.0,
            other: 13.0,
            lines: 400.0,
            vector_bytes: 51_521.0,
            scalar_bytes: 4000.0,
            lds_clocks: 17.0,
            ..Work::default()
        };
        assert_eq!(Work::of(&profile, 32), expected);
        // A wave64 takes two passes, but for matrices.
        let vector = [2.0, 4.0, 6.0, 8.0, 5.0, 4666.0, 7.0];
        assert_eq!(Work::of(&profile, 64), Work { vector, ..expected });
        assert_eq!(Work::of(&profile, 0), expected);
        // 4688 of the vector unit, 63 others.
        assert_eq!(expected.instructions(), 4751.0);
    }

    #[test]
    fn every_sum_is_added_subtracted_and_scaled() {
        let of = |unit: f64| Work {
            vector: std::array::from_fn(|index| unit * (index + 1) as f64),
            scalar: 8.0 * unit,
            branches: 9.0 * unit,
            memory: 10.0 * unit,
            lds: 11.0 * unit,
            other: 12.0 * unit,
            barriers: 13.0 * unit,
            rounds: 14.0 * unit,
            covered_rounds: 15.0 * unit,
            scalar_rounds: 16.0 * unit,
            lds_rounds: 17.0 * unit,
            lines: 18.0 * unit,
            vector_bytes: 19.0 * unit,
            scalar_bytes: 20.0 * unit,
            lds_clocks: 21.0 * unit,
            stream_bytes: 22.0 * unit,
            repeated_bytes: 23.0 * unit,
        };
        assert_eq!(of(1.0) + of(2.0), of(3.0));
        assert_eq!(of(5.0) - of(3.0), of(2.0));
        assert_eq!(of(2.0) * 1.5, of(3.0));
        assert_eq!(of(2.0) - of(3.0), Work::default());
    }

    fn work_of(places: Vec<PlaceCounts>) -> Work {
        Work::of(&Profile { places, ..Profile::default() }, 32)
    }

    /// Stores and samples are waited for as loads are; a wait for another counter is no round, and each kind of wait
    /// counts once for what it is for.
    #[test]
    fn waits_count_for_what_they_are_for() {
        for wait in ["s_wait_loadcnt", "s_wait_storecnt", "s_wait_samplecnt", "s_wait_loadcnt_dscnt"] {
            let of_wait = vec![
                place(0, "global_store_b32 v0, v1, s[4:5]", 2, Some(1)),
                place(8, &format!("{wait} 0x0"), 2, None),
            ];
            assert_eq!(work_of(of_wait).rounds, 2.0, "{wait}");
        }
        let others = vec![
            place(0, "global_load_b32 v0, v1, s[4:5]", 2, Some(1)),
            place(8, "s_wait_kmcnt 0x0", 2, None),
            place(12, "s_wait_dscnt 0x0", 2, None),
            place(16, "s_wait_alu 0xfffe", 2, None),
            place(20, "s_load_b64 s[0:1], s[2:3], 0x0", 3, None),
            place(28, "s_buffer_load_b32 s0, s[4:7], 0x0", 3, None),
            place(36, "s_wait_kmcnt 0x0", 3, None),
            place(40, "s_wait_kmcnt 0x0", 5, None),
            place(44, "s_add_co_u32 s0, s0, s1", 1, None),
            place(48, "s_wait_kmcnt 0x0", 7, None),
            place(52, "s_buffer_load_b32 s0, s[4:7], 0x0", 11, None),
            place(60, "s_wait_kmcnt 0x0", 11, None),
        ];
        let work = work_of(others);
        assert_eq!((work.rounds, work.covered_rounds, work.lds_rounds), (0.0, 0.0, 0.0));
        assert_eq!(work.scalar_rounds, 14.0);
    }

    /// A wait for two counters says how many loads it leaves in bits 13:8; with as many as are under way it waits for
    /// none of them.
    #[test]
    fn a_wait_leaves_as_many_loads_under_way_as_its_operand_says() {
        for (name, operand, left) in [
            ("s_wait_loadcnt", "0x2", 2),
            ("s_wait_loadcnt", " 17 ", 17),
            ("s_wait_loadcnt", "0xz", 0),
            ("s_wait_loadcnt", "", 0),
            ("s_wait_loadcnt_dscnt", "0x3f05", 63),
            ("s_wait_loadcnt_dscnt", "0x4103", 1),
            ("s_wait_loadcnt_dscnt", "0x2a", 0),
        ] {
            assert_eq!(left_under_way(name, operand), left, "{name} {operand}");
        }
        let rounds = |left: u32| {
            let load = |pc| place(pc, "global_load_b32 v4, v0, s[4:5]", 3, Some(1));
            let wait = format!("s_wait_loadcnt {left:#x}");
            let work = work_of(vec![load(0), load(8), place(16, &wait, 3, None)]);
            (work.rounds, work.covered_rounds)
        };
        assert_eq!([0, 1, 2, 3].map(rounds), [(3.0, 0.0), (3.0, 0.0), (0.0, 3.0), (0.0, 3.0)]);
    }

    /// By dwords from the next instruction, 16 bits with sign.
    #[test]
    fn a_branch_back_is_told_by_its_sign() {
        for (pc, operand, start) in [
            (0x100, "65535 ; L_0100", Some(0x100)),
            (0x100, "65534", Some(0xfc)),
            (0x20100, "32768", Some(0x104)),
            (0x100, "32767", None),
            (0x100, "0", None),
            (0x100, "65536", None),
            (0x100, "L_0100", None),
            (0x100, "", None),
            (4, "65533", None),
        ] {
            assert_eq!(loop_start(pc, operand), start, "{pc:#x} {operand}");
        }
    }

    /// Loads that come before a loop and as many that its end leaves under way: those before it count, as the code has
    /// them first. Of two ends that leave as many, the first one's count.
    #[test]
    fn as_many_loads_of_a_loop_do_not_take_the_place_of_others() {
        let load = |pc| place(pc, "global_load_b32 v1, v0, s[4:5]", 1, Some(1));
        let wait = |pc| place(pc, "s_wait_loadcnt 0x0", 1, None);
        let many = |pc| place(pc, "v_mov_b32_e32 v2, 0", 100, None);
        let rounds = |places| {
            let work = work_of(places);
            (work.rounds, work.covered_rounds)
        };
        // The load before the loop is 100 instructions away, the one at its end none.
        let places = vec![load(0), many(8), wait(12), load(16), place(24, "s_branch 65532", 1, None)];
        assert_eq!(rounds(places), (0.0, 1.0));
        // The other way round.
        let places = vec![load(0), wait(8), load(12), many(24), place(28, "s_branch 65530", 1, None)];
        assert_eq!(rounds(places), (1.0, 0.0));
        // Nothing is under way before these loops. Their first ends are near the load, and the last ones far from it.
        let ends = |first, second| {
            let branch = |pc, operand| place(pc, operand, 1, None);
            let middle = [load(4), first, branch(16, "s_cbranch_scc0 65531"), second];
            let last = branch(24, "s_cbranch_scc1 65529");
            rounds([vec![wait(0)], middle.into(), vec![last]].concat())
        };
        let few = |pc| place(pc, "v_nop", 1, None);
        assert_eq!(ends(few(12), many(20)), (1.0, 0.0));
        assert_eq!(ends(many(12), few(20)), (0.0, 1.0));
    }

    /// Of two branches back to one place the one with more loads under way counts; loads that are under way already are
    /// no fewer for a loop. What is under way at a branch that goes on is no matter of a loop.
    #[test]
    fn a_loop_begins_with_the_most_that_its_ends_leave_under_way() {
        let load = |pc, count| place(pc, "global_load_b32 v1, v0, s[4:5]", count, Some(1));
        let wait = |pc, operand: &str, count| place(pc, &format!("s_wait_loadcnt {operand}"), count, None);
        // Dword 1 is where the branches at 16 and 32 go; the wait there leaves one load under way.
        let covered = |first_operand: &str| {
            let places = vec![
                place(0, "v_mov_b32_e32 v2, 0", 1, None),
                wait(4, first_operand, 10),
                load(8, 10),
                place(16, "s_cbranch_scc0 65532", 10, None),
                load(20, 10),
                place(32, "s_cbranch_scc1 65528", 10, None),
            ];
            let work = work_of(places);
            (work.rounds, work.covered_rounds)
        };
        assert_eq!(covered("0x1"), (10.0, 0.0), "of two loads one is waited for");
        assert_eq!(covered("0x2"), (0.0, 10.0));
        // A branch forward leaves nothing where it goes.
        let forward = vec![load(0, 1), place(8, "s_cbranch_scc1 1", 1, None), wait(12, "0x0", 1)];
        assert_eq!(work_of(forward).rounds, 1.0);
        let none = vec![place(0, "v_nop", 1, None), place(4, "s_branch 65534", 1, None), wait(8, "0x0", 1)];
        assert_eq!(work_of(none).rounds, 0.0);
    }
}
