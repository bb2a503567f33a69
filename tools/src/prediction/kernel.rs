//! From what a kernel's units do to how long it takes: bounds, what the largest of them is, and a range.
//!
//! Contract: pure. A kernel is so many equal units, each done by a workgroup of equal waves. The bounds of one compute
//! unit with its share of the units: issue, lines, LDS, the latency of one wave; and of the whole card: GL2 and memory.
//! The time is the largest bound and what is not hidden behind it of the second largest. More of anything never takes
//! less time, but for bytes of vector loads: of the same lines, more bytes are fewer that come from far.
//! `docs/prediction.md` describes the model.

use super::card::{Card, Estimate, Range};
use super::work::{LINE_BYTES, Work};
use serde::Serialize;

/// What a time is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Instruction issue.
    Issue,
    /// Lines of vector memory instructions.
    Lines,
    /// LDS.
    Lds,
    /// Waits of each wave.
    Latency,
    /// GL2.
    Gl2,
    /// Memory, or the cache that has the weights.
    Bandwidth,
    /// Hand-over between tasks, PLAN, launch.
    HandOver,
}

/// Where weights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// GL2.
    Gl2,
    /// The memory-side cache.
    Mall,
    /// Memory.
    Memory,
}

/// Units of a kernel and the groups that share them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Units of work.
    pub units: f64,
    /// Workgroups that were launched.
    pub groups: f64,
    /// Workgroups that a compute unit holds at once.
    pub groups_per_compute_unit: f64,
    /// Waves of a group.
    pub waves_per_group: f64,
}

/// Bounds of a kernel in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Instruction issue of the busiest SIMD.
    pub issue_us: f64,
    /// Lines and bytes of the busiest compute unit's vector cache.
    pub lines_us: f64,
    /// LDS of the busiest compute unit.
    pub lds_us: f64,
    /// One wave's own instructions and waits, unit after unit.
    pub latency_us: f64,
    /// GL2, all compute units together.
    pub gl2_us: f64,
    /// Memory, all compute units together.
    pub bandwidth_us: f64,
    /// The time that follows.
    pub time_us: f64,
    /// The largest of the bounds.
    pub bound: Bound,
}

/// The prediction of a kernel: a range, never a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelPrediction {
    /// Lower end of the range.
    pub predicted_us_low: f64,
    /// With every parameter at its likeliest value.
    pub predicted_us: f64,
    /// Upper end of the range.
    pub predicted_us_high: f64,
    /// What the likeliest time is bound by.
    pub bound: Bound,
    /// The bounds of the likeliest time.
    pub bounds: Bounds,
    /// Waves of a SIMD at once.
    pub waves_per_simd: f64,
    /// Vector loads of a compute unit under way between two waits, in bytes, on average.
    pub bytes_in_flight: f64,
}

impl Bound {
    /// In a table.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Issue => "issue",
            Bound::Lines => "lines",
            Bound::Lds => "LDS",
            Bound::Latency => "latency",
            Bound::Gl2 => "GL2",
            Bound::Bandwidth => "bandwidth",
            Bound::HandOver => "hand-over",
        }
    }
}

impl Level {
    /// Where a working set of so many bytes lies when it is read again and again.
    pub fn of(bytes: f64, card: &Card) -> Level {
        if bytes <= card.gl2_bytes * card.cache_share {
            Level::Gl2
        } else if bytes <= card.mall_bytes * card.cache_share {
            Level::Mall
        } else {
            Level::Memory
        }
    }

    /// Bytes per microsecond.
    pub fn bytes_per_us(self, card: &Card) -> f64 {
        1000.0
            * match self {
                Level::Gl2 => card.gl2_gb_per_s,
                Level::Mall => card.mall_gb_per_s,
                Level::Memory => card.memory_gb_per_s,
            }
    }

    /// Latency in microseconds: the memory-side cache lies between its neighbours.
    fn latency_us(self, card: &Card) -> f64 {
        match self {
            Level::Gl2 => card.gl2_latency_ns / 1000.0,
            Level::Mall => (card.gl2_latency_ns + card.memory_latency_ns) / 2000.0,
            Level::Memory => card.memory_latency_ns / 1000.0,
        }
    }
}

impl Spread {
    /// Groups that work at the same time.
    fn active(&self, card: &Card) -> f64 {
        let places = card.compute_units * self.groups_per_compute_unit.max(1.0);
        self.units.min(self.groups).min(places).max(1.0)
    }

    /// Units of the group that has most.
    fn turns(&self, card: &Card) -> f64 {
        (self.units / self.active(card)).ceil()
    }

    /// Groups of the compute unit that has most.
    fn groups_together(&self, card: &Card) -> f64 {
        (self.active(card) / card.compute_units).ceil()
    }
}

/// The bounds of `spread.units` units of `unit` each, at one end of the card's numbers.
pub fn bounds(unit: &Work, spread: &Spread, level: Level, card: &Card) -> Bounds {
    let (turns, together) = (spread.turns(card), spread.groups_together(card));
    let waves_together = spread.waves_per_group * together;
    let of_compute_unit = *unit * (turns * together);
    let clocks_per_us = card.clock_ghz * 1000.0;

    let lines = of_compute_unit.lines / card.lines_per_clock;
    let bytes = of_compute_unit.vector_bytes / card.l0_bytes_per_clock;
    let all = *unit * spread.units;
    // Lanes that load the same bytes bring their line once.
    let brought = all.vector_bytes.min(all.lines * LINE_BYTES);
    let first = all.stream_bytes + all.repeated_bytes;
    let shared = (brought - first).max(0.0) * card.l0_miss_share;
    let again = (all.lines * LINE_BYTES - all.vector_bytes).max(0.0) * card.l0_thrash_share;
    let mut bounds = Bounds {
        issue_us: issue_clocks(&of_compute_unit, waves_together, card) / clocks_per_us,
        lines_us: lines.max(bytes) / clocks_per_us,
        lds_us: of_compute_unit.lds_clocks / clocks_per_us,
        latency_us: turns * latency_us(unit, spread.waves_per_group, level, card),
        gl2_us: (first + shared + again) / Level::Gl2.bytes_per_us(card),
        bandwidth_us: all.stream_bytes / level.bytes_per_us(card),
        time_us: 0.0,
        bound: Bound::Issue,
    };
    let mut sorted = bounds.each();
    sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
    let [(bound, largest), (_, second), ..] = sorted;
    bounds.time_us = largest + (1.0 - card.overlap_share) * second;
    bounds.bound = bound;
    bounds
}

impl Bounds {
    fn each(&self) -> [(Bound, f64); 6] {
        [
            (Bound::Issue, self.issue_us),
            (Bound::Lines, self.lines_us),
            (Bound::Lds, self.lds_us),
            (Bound::Latency, self.latency_us),
            (Bound::Gl2, self.gl2_us),
            (Bound::Bandwidth, self.bandwidth_us),
        ]
    }
}

/// Cycles of the busiest SIMD: its vector unit, and of what the other units issue beside it as much as does not
/// overlap.
fn issue_clocks(work: &Work, waves: f64, card: &Card) -> f64 {
    let simds = waves.clamp(1.0, card.simds_per_compute_unit);
    let vector = work.vector_clocks(card);
    let beside = [work.scalar, work.branches, work.memory, work.lds, work.other + work.barriers];
    let largest = beside.iter().copied().fold(vector, f64::max);
    let sum = vector + beside.iter().sum::<f64>();
    (largest + (1.0 - card.overlap_share) * (sum - largest)) / simds
}

/// One wave's time for a unit, if no other wave were there.
fn latency_us(unit: &Work, waves: f64, level: Level, card: &Card) -> f64 {
    let beside = unit.instructions() - unit.vector.iter().sum::<f64>();
    // An instruction of several cycles hides the latency of the one before it.
    let dependent = unit.vector.iter().sum::<f64>() * card.dependency_clocks;
    let clocks = unit.vector_clocks(card).max(dependent) + beside + unit.branches * card.branch_clocks;
    let clocks = clocks + unit.lds_rounds * card.lds_latency_clocks;
    // A covered round counts as far as its latency is not hidden.
    let rounds = unit.rounds + unit.covered_rounds * (1.0 - card.overlap_share);
    let far = if unit.vector_bytes > 0.0 { unit.stream_bytes / unit.vector_bytes } else { 0.0 };
    let far = (far * card.round_mixing).min(1.0);
    let near_us = Level::Gl2.latency_us(card);
    let round_us = near_us + far * (level.latency_us(card) - near_us).max(0.0);
    let waits = rounds * round_us
        + unit.scalar_rounds * card.scalar_latency_ns / 1000.0
        + unit.barriers * card.barrier_ns / 1000.0;
    (clocks / (card.clock_ghz * 1000.0) + waits) / waves.max(1.0)
}

/// The prediction of so many launches together, start and end of each included.
pub fn predict(unit: &Work, spread: &Spread, resident_bytes: f64, dispatches: f64) -> KernelPrediction {
    let at = |card: &Card| bounds(unit, spread, Level::of(resident_bytes, card), card);
    let range = Range::of(|card| at(card).time_us + card.dispatch_us * dispatches);
    let card = Card::at(Estimate::Typical);
    let waves = spread.waves_per_group * spread.groups_together(&card);
    let rounds = unit.rounds + unit.covered_rounds;
    let typical = at(&card);
    let is_start = card.dispatch_us * dispatches > typical.time_us;
    KernelPrediction {
        predicted_us_low: range.low,
        predicted_us: range.typical,
        predicted_us_high: range.high,
        bound: if is_start { Bound::HandOver } else { typical.bound },
        bounds: typical,
        waves_per_simd: waves / card.simds_per_compute_unit,
        bytes_in_flight: if rounds > 0.0 { unit.vector_bytes / rounds * waves } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A card whose numbers are easy to divide by.
    fn card() -> Card {
        Card {
            clock_ghz: 2.0,
            memory_gb_per_s: 600.0,
            gl2_gb_per_s: 3000.0,
            overlap_share: 1.0,
            dependency_clocks: 1.0,
            memory_latency_ns: 500.0,
            gl2_latency_ns: 100.0,
            lines_per_clock: 1.0,
            l0_bytes_per_clock: 64.0,
            l0_miss_share: 0.0,
            l0_thrash_share: 0.0,
            round_mixing: 1.0,
            ..Card::at(Estimate::Typical)
        }
    }

    fn spread(units: f64, groups_per_compute_unit: f64) -> Spread {
        Spread { units, groups: units, groups_per_compute_unit, waves_per_group: 8.0 }
    }

    /// By hand: 64 groups, one on each of 64 compute units; 160,000 instructions of one cycle each on two SIMDs are
    /// 80,000 cycles of 0.5 ns.
    #[test]
    fn issue_alone_takes_cycles_of_a_simd() {
        let unit = Work { vector: [160_000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Work::default() };
        let found = bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card());
        assert_eq!((found.time_us, found.bound), (40.0, Bound::Issue));
        // One wave of the eight has 20,000 of them.
        assert_eq!(found.latency_us, 10.0);
        // The same as matrices of 8 cycles.
        let unit = Work { vector: [0.0, 0.0, 0.0, 0.0, 0.0, 20_000.0, 0.0], ..Work::default() };
        assert_eq!(bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card()).time_us, 40.0);
    }

    /// What does nothing, and is not launched either, is not bound by its launch.
    #[test]
    fn a_launch_binds_what_is_shorter_than_it() {
        let of = |dispatches| predict(&Work::default(), &spread(64.0, 1.0), 0.0, dispatches).bound;
        assert_eq!((of(0.0) == Bound::HandOver, of(1.0)), (false, Bound::HandOver));
    }

    /// By hand: 64 units of 6 MB at 600 GB/s are 640 µs; each unit loads 48,000 lines in 24 µs.
    #[test]
    fn bandwidth_alone_takes_the_bytes() {
        let unit =
            Work { stream_bytes: 6_000_000.0, vector_bytes: 6_000_000.0, lines: 46_875.0, ..Work::default() };
        let found = bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card());
        assert_eq!((found.time_us, found.bound), (640.0, Bound::Bandwidth));
        assert!((found.lines_us - 46.875).abs() < 1e-9, "64 bytes in a clock: {}", found.lines_us);
        assert!((found.gl2_us - 128.0).abs() < 1e-9);
    }

    /// By hand: 8 waves, 80 rounds together, so 10 for each; all of their bytes come from memory: 10 × 0.5 µs. In four
    /// turns, because each of 64 groups has 4 units: 20 µs.
    #[test]
    fn latency_alone_takes_the_rounds_of_one_wave() {
        let unit = Work { rounds: 80.0, vector_bytes: 1000.0, stream_bytes: 1000.0, ..Work::default() };
        let place = Spread { groups: 64.0, ..spread(256.0, 1.0) };
        let found = bounds(&unit, &place, Level::Memory, &card());
        assert_eq!((found.time_us, found.bound), (20.0, Bound::Latency));
        // From GL2 it is 0.1 µs a round.
        let near = Work { stream_bytes: 0.0, ..unit };
        assert!((bounds(&near, &place, Level::Memory, &card()).time_us - 4.0).abs() < 1e-9);
        // Twice the groups on a compute unit: half the turns.
        let twice = Spread { groups: 256.0, ..spread(256.0, 2.0) };
        assert_eq!(bounds(&unit, &twice, Level::Memory, &card()).time_us, 10.0);
    }

    /// By hand: of 1 MB each, a quarter from memory, three quarters from GL2 because other rows have brought them: 64
    /// units bring 16 MB at 600 GB/s, and 64 MB at 3000 GB/s through GL2.
    #[test]
    fn weights_that_other_rows_have_brought_come_from_gl2() {
        let unit = Work {
            stream_bytes: 250_000.0,
            repeated_bytes: 750_000.0,
            vector_bytes: 1_000_000.0,
            lines: 7812.5,
            ..Work::default()
        };
        let found = bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card());
        assert!((found.bandwidth_us - 16_000.0 / 600.0).abs() < 1e-9, "{}", found.bandwidth_us);
        assert!((found.gl2_us - 64_000.0 / 3000.0).abs() < 1e-9, "{}", found.gl2_us);
    }

    /// By hand: 65 units on 64 groups take two turns, 64 take one.
    #[test]
    fn a_unit_more_than_groups_is_a_turn_more() {
        let unit = Work { vector: [4000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Work::default() };
        let time = |units| bounds(&unit, &spread(units, 1.0), Level::Memory, &card()).time_us;
        assert_eq!([1.0, 64.0, 65.0, 128.0, 129.0].map(time), [1.0, 1.0, 2.0, 2.0, 3.0]);
    }

    /// 16 lanes each with the same 16 bytes, of two lines: GL2 brings two lines, as to lanes that load all of them.
    #[test]
    fn lanes_that_share_bytes_bring_their_line_once() {
        let card = Card { l0_miss_share: 0.5, ..card() };
        let gl2_us = |vector_bytes| {
            let unit = Work { lines: 2000.0, vector_bytes, ..Work::default() };
            bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card).gl2_us
        };
        assert!(gl2_us(512_000.0) > 0.0);
        assert_eq!(gl2_us(512_000.0), gl2_us(256_000.0));
    }

    /// 32 lines of 16 bytes each: the look-up counts, not the bytes.
    #[test]
    fn scattered_lanes_cost_lines() {
        let unit = Work { lines: 32_000.0, vector_bytes: 512_000.0, ..Work::default() };
        let found = bounds(&unit, &spread(64.0, 1.0), Level::Memory, &card());
        assert_eq!((found.time_us, found.bound), (16.0, Bound::Lines));
    }

    /// By hand: rdna4-infer measured 37 T-MAC/s of a product with two matrix instructions and 56 instructions of
    /// scaling for each tile of 16 × 16 × 32, at 2.93 GHz on 128 SIMDs, and 84 without scaling.
    #[test]
    fn scaling_is_not_hidden_behind_matrices() {
        let card = Card { clock_ghz: 2.93, ..Card::at(Estimate::Fast) };
        let tile = |scaling| Work { vector: [scaling, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0], ..Work::default() };
        let rate = |scaling| {
            let tiles = 100_000.0;
            let found = bounds(&(tile(scaling) * tiles), &spread(64.0, 1.0), Level::Memory, &card);
            64.0 * tiles * 16.0 * 16.0 * 32.0 / found.time_us / 1e6
        };
        assert!((rate(56.0) / 37.0 - 1.0).abs() < 0.2, "{}", rate(56.0));
        assert!((rate(0.0) / 198.0 - 1.0).abs() < 0.05, "{}", rate(0.0));
    }

    proptest! {
        /// Whatever there is more of, no estimate becomes less; and the range is in order.
        #[test]
        fn more_work_never_takes_less_time(
            counts in proptest::collection::vec(0.0f64..1e6, 20),
            (which, more) in (0usize..15, 1.0f64..1e5),
            (units, per) in (1u32..400, 1u32..8),
        ) {
            let make = |counts: &[f64]| Work {
                vector: std::array::from_fn(|index| counts[index]),
                scalar: counts[7],
                branches: counts[8],
                memory: counts[9],
                lds: counts[10],
                rounds: counts[11],
                scalar_rounds: counts[12],
                lines: counts[13],
                lds_clocks: counts[14],
                vector_bytes: counts[15],
                stream_bytes: counts[16],
                ..Work::default()
            };
            let place = spread(f64::from(units), f64::from(per));
            let before = predict(&make(&counts), &place, 1e9, 1.0);
            let mut grown = counts.clone();
            grown[which] += more;
            let after = predict(&make(&grown), &place, 1e9, 1.0);
            prop_assert!(after.predicted_us >= before.predicted_us);
            for estimate in Estimate::ALL {
                let card = Card::at(estimate);
                let time = |counts: &[f64]| bounds(&make(counts), &place, Level::Memory, &card).time_us;
                prop_assert!(time(&grown) >= time(&counts));
            }
            prop_assert!(before.predicted_us_low <= before.predicted_us);
            prop_assert!(before.predicted_us <= before.predicted_us_high);
        }
    }

    /// A card of four compute units on which every number of the model counts.
    fn small_card() -> Card {
        Card {
            compute_units: 4.0,
            simds_per_compute_unit: 2.0,
            clock_ghz: 2.0,
            memory_gb_per_s: 500.0,
            mall_gb_per_s: 1000.0,
            gl2_gb_per_s: 2000.0,
            memory_latency_ns: 800.0,
            gl2_latency_ns: 200.0,
            scalar_latency_ns: 100.0,
            lds_latency_clocks: 50.0,
            wmma_integer_clocks: 8.0,
            wmma_float_clocks: 16.0,
            quarter_rate_clocks: 4.0,
            wide_clocks: 2.0,
            double_clocks: 32.0,
            dependency_clocks: 3.0,
            branch_clocks: 10.0,
            lines_per_clock: 0.5,
            l0_bytes_per_clock: 64.0,
            l0_miss_share: 0.25,
            l0_thrash_share: 0.5,
            round_mixing: 2.0,
            overlap_share: 0.75,
            barrier_ns: 20.0,
            ..Card::at(Estimate::Typical)
        }
    }

    /// A unit that does some of everything: 122 instructions of the vector unit take 220 cycles, 76 others one each.
    fn mixed_unit() -> Work {
        Work {
            vector: [100.0, 10.0, 5.0, 1.0, 2.0, 3.0, 1.0],
            scalar: 30.0,
            branches: 4.0,
            memory: 12.0,
            lds: 20.0,
            other: 8.0,
            barriers: 2.0,
            rounds: 5.0,
            covered_rounds: 4.0,
            scalar_rounds: 6.0,
            lds_rounds: 7.0,
            lines: 64.0,
            vector_bytes: 6400.0,
            lds_clocks: 150.0,
            stream_bytes: 1600.0,
            repeated_bytes: 800.0,
            ..Work::default()
        }
    }

    /// 10 units of 6 groups: 6 at once in 2 turns, 2 groups on the compute unit that has most, so 4 units and 4 waves.
    const TWO_TURNS: Spread =
        Spread { units: 10.0, groups: 6.0, groups_per_compute_unit: 2.0, waves_per_group: 2.0 };

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    /// By hand, at 2000 cycles in a microsecond; the formulas are those of docs/prediction.md.
    #[test]
    fn each_bound_of_a_mixed_unit_is_the_one_worked_by_hand() {
        let found = bounds(&mixed_unit(), &TWO_TURNS, Level::Memory, &small_card());
        // Vector 880, beside it 120, 16, 48, 80, 40 of which a quarter does not overlap; two SIMDs.
        assert!(near(found.issue_us, (880.0 + 304.0 / 4.0) / 2.0 / 2000.0), "{found:?}");
        // 256 lines, two cycles each; 25,600 bytes would take 400.
        assert!(near(found.lines_us, 512.0 / 2000.0), "{found:?}");
        assert!(near(found.lds_us, 600.0 / 2000.0), "{found:?}");
        // A wave's cycles: 122 dependent instructions of 3, 76 others, 4 branches of 10 more, 7 waits for LDS of 50.
        // Its waits: 5 rounds and a quarter of 4, half of each round's loads from memory; 0.6 µs for scalar loads, 0.04
        // for barriers. Of two waves, in two turns.
        let waits = 6.0 * (0.2 + 0.5 * 0.6) + 0.6 + 0.04;
        assert!(near(found.latency_us, (832.0 / 2000.0 + waits) / 2.0 * 2.0), "{found:?}");
        // 24,000 bytes first; a quarter of the other 40,000; half of 81,920 - 64,000 touched again.
        assert!(near(found.gl2_us, (24_000.0 + 10_000.0 + 8_960.0) / 2e6), "{found:?}");
        assert!(near(found.bandwidth_us, 16_000.0 / 5e5), "{found:?}");
        // A quarter of LDS, the second largest, is not hidden.
        assert!(near(found.time_us, 4.056 + 0.3 / 4.0), "{found:?}");
        assert_eq!(found.bound, Bound::Latency);
    }

    /// The nearer the weights, the shorter the waits and the more bytes in a microsecond.
    #[test]
    fn caches_have_rates_and_latencies_of_their_own() {
        let of = |level| bounds(&mixed_unit(), &TWO_TURNS, level, &small_card());
        let latency_us = |round_us: f64| 832.0 / 2000.0 + 6.0 * round_us + 0.64;
        let (mall, gl2) = (of(Level::Mall), of(Level::Gl2));
        assert!(near(mall.bandwidth_us, 0.016) && near(gl2.bandwidth_us, 0.008), "{mall:?} {gl2:?}");
        // Half of the loads at 0.2 µs, the other half from the memory-side cache: halfway between 0.2 and 0.8.
        assert!(near(mall.latency_us, latency_us(0.35)), "{mall:?}");
        assert!(near(gl2.latency_us, latency_us(0.2)), "{gl2:?}");
        // Loads that all come from far are no more than all.
        let far = Work { stream_bytes: 6000.0, ..mixed_unit() };
        let far = bounds(&far, &TWO_TURNS, Level::Memory, &small_card());
        assert!(near(far.latency_us, latency_us(0.8)), "{far:?}");
        // Without vector loads there is nothing to wait for far away.
        let scalar = Work { vector_bytes: 0.0, ..mixed_unit() };
        let scalar = bounds(&scalar, &TWO_TURNS, Level::Memory, &small_card());
        assert!(near(scalar.latency_us, latency_us(0.2)), "{scalar:?}");
    }

    /// By hand: 400 lines are 51,200 bytes, fewer than lanes ask for; 100 lines fewer than come first.
    #[test]
    fn gl2_brings_no_more_than_lines_and_no_less_than_what_comes_first() {
        let gl2_us = |lines| {
            let unit = Work { lines, ..mixed_unit() };
            bounds(&unit, &TWO_TURNS, Level::Memory, &small_card()).gl2_us
        };
        assert!(near(gl2_us(40.0), (24_000.0 + 27_200.0 / 4.0) / 2e6), "{}", gl2_us(40.0));
        assert!(near(gl2_us(10.0), 24_000.0 / 2e6), "{}", gl2_us(10.0));
    }

    /// An instruction of many cycles hides the latency of the one before it: 16 matrices of 16 cycles, not of 3.
    #[test]
    fn long_instructions_hide_what_depends_on_them() {
        let unit = Work { vector: [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 16.0], ..Work::default() };
        let found = bounds(&unit, &TWO_TURNS, Level::Memory, &small_card());
        assert!(near(found.latency_us, 256.0 / 2000.0), "{found:?}");
        // One wave alone has one SIMD.
        let alone = Spread { units: 1.0, groups: 1.0, groups_per_compute_unit: 1.0, waves_per_group: 1.0 };
        assert!(near(bounds(&unit, &alone, Level::Memory, &small_card()).issue_us, 0.128));
    }

    /// Three quarters of 8 MiB and of 64 MiB, the shares that a working set may fill.
    #[test]
    fn a_working_set_lies_in_the_nearest_cache_that_holds_it() {
        let card = Card::at(Estimate::Typical);
        let level = |bytes: u32| Level::of(f64::from(bytes), &card);
        assert_eq!([6 << 20, 48 << 20].map(level), [Level::Gl2, Level::Mall]);
        assert_eq!([(6 << 20) + 1, (48 << 20) + 1].map(level), [Level::Mall, Level::Memory]);
    }

    #[test]
    fn bounds_are_called_what_tables_say() {
        use Bound::{Bandwidth, Gl2, HandOver, Issue, Latency, Lds, Lines};
        let names = [Issue, Lines, Lds, Latency, Gl2, Bandwidth, HandOver].map(Bound::name);
        assert_eq!(names, ["issue", "lines", "LDS", "latency", "GL2", "bandwidth", "hand-over"]);
    }

    /// By hand, of the likeliest numbers: 26,000 cycles of each SIMD at 2.6 GHz, and a fifth of a wave's 5 µs; 0.9 µs
    /// for each dispatch. Each of 128 groups has a unit, two of 8 waves on each of 64 compute units.
    #[test]
    fn a_prediction_has_a_start_for_each_dispatch() {
        let unit = Work { vector: [26_000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Work::default() };
        let place = spread(128.0, 2.0);
        let found = predict(&unit, &place, 1e9, 2.0);
        assert!(near(found.predicted_us, 10.0 + 0.2 * 2.5 + 1.8), "{found:?}");
        assert_eq!((found.bound, found.waves_per_simd), (Bound::Issue, 8.0));
        assert_eq!(found.bytes_in_flight, 0.0, "without rounds");
        let many = predict(&unit, &place, 1e9, 20.0);
        assert!(near(many.predicted_us, 10.5 + 18.0), "{many:?}");
        assert_eq!((many.bound, many.bounds.bound), (Bound::HandOver, Bound::Issue));
        // Ten starts take 9 µs, less than 10.5; twelve take 10.8.
        assert_eq!(
            [10.0, 12.0].map(|count| predict(&unit, &place, 1e9, count).bound),
            [Bound::Issue, Bound::HandOver]
        );
        // 1000 bytes in 10 rounds of a unit's waves; 16 waves are on a compute unit.
        let loads = Work { rounds: 8.0, covered_rounds: 2.0, vector_bytes: 1000.0, ..Work::default() };
        assert_eq!(predict(&loads, &place, 1e9, 1.0).bytes_in_flight, 1600.0);
    }
}
