//! What the model knows about the card: every number with its range, its unit and its source.
//!
//! Contract: data only. `low <= typical <= high` of every parameter; a source is a public document or measurement, or
//! says that the number is an estimate, and why. `docs/prediction.md` prints the same table (a test compares them).

use serde::Serialize;

/// Which end of every parameter's range counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimate {
    /// The end that makes the card faster.
    Fast,
    /// The value that is thought likeliest.
    Typical,
    /// The end that makes the card slower.
    Slow,
}

impl Estimate {
    /// All of them, the fastest first.
    pub const ALL: [Estimate; 3] = [Estimate::Fast, Estimate::Typical, Estimate::Slow];
}

/// A time by the likeliest numbers, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// By the likeliest numbers.
    pub typical: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// The range of a time above 0. The parameters are taken to err independently of each other: each alone is moved to
    /// an end of its range, and the logarithms of the factors by which the time changes are added as squares.
    pub fn of(time: impl Fn(&Card) -> f64) -> Range {
        let typical = time(&Card::at(Estimate::Typical));
        let factor = |end: Estimate| {
            let squares = (0..PARAMETERS.len()).filter(|index| PARAMETERS[*index].is_range()).map(|moved| {
                let card = Card::of(|index| if index == moved { end } else { Estimate::Typical });
                (time(&card) / typical).ln().powi(2)
            });
            squares.sum::<f64>().sqrt().exp()
        };
        Range { low: typical / factor(Estimate::Fast), typical, high: typical * factor(Estimate::Slow) }
    }
}

/// One number of the card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Smallest value that is thought possible.
    pub low: f64,
    /// Likeliest value.
    pub typical: f64,
    /// Largest value that is thought possible.
    pub high: f64,
    /// Unit.
    pub unit: &'static str,
    /// Who says so.
    pub source: &'static str,
    /// True if the card is the faster, the larger the number is.
    pub is_speed: bool,
}

impl Parameter {
    fn is_range(&self) -> bool {
        self.low < self.high
    }

    fn at(&self, estimate: Estimate) -> f64 {
        match (estimate, self.is_speed) {
            (Estimate::Typical, _) => self.typical,
            (Estimate::Fast, true) | (Estimate::Slow, false) => self.high,
            (Estimate::Fast, false) | (Estimate::Slow, true) => self.low,
        }
    }
}

macro_rules! card {
    ($(
        $(#[$meta:meta])*
        $name:ident: [$low:expr, $typical:expr, $high:expr] $unit:literal, $kind:ident, $source:literal;
    )*) => {
        /// The card's numbers at one end of their ranges.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Card {
            $($(#[$meta])* pub $name: f64,)*
        }

        /// Every parameter, in the order of [`Card`].
        pub const PARAMETERS: &[Parameter] = &[$(Parameter {
            name: stringify!($name),
            low: $low,
            typical: $typical,
            high: $high,
            unit: $unit,
            source: $source,
            is_speed: card!(@ $kind),
        }),*];

        impl Card {
            /// The numbers of an estimate.
            pub fn at(estimate: Estimate) -> Card {
                Card::of(|_| estimate)
            }

            /// Each parameter, by its index, at the end that `estimate` says.
            fn of(estimate: impl Fn(usize) -> Estimate) -> Card {
                let mut values =
                    PARAMETERS.iter().enumerate().map(|(index, parameter)| parameter.at(estimate(index)));
                let mut next = || values.next().unwrap_or_default();
                Card { $($name: next(),)* }
            }
        }
    };
    (@ speed) => { true };
    (@ cost) => { false };
}

card! {
    /// Compute units.
    compute_units: [64.0, 64.0, 64.0] "", speed, "hardware reference §1.4";
    /// SIMD units of a compute unit.
    simds_per_compute_unit: [2.0, 2.0, 2.0] "", speed, "hardware reference §1.4: 128 SIMDs of 64 compute units";
    /// Clock under load.
    clock_ghz: [2.35, 2.6, 2.92] "GHz", speed,
        "2.35 to 2.57 in two logs of an R9700 (hipfire issue 57, legacy-rocm-build issue 6521); \
         boost of 2.92 by AMD's product page";
    /// Bandwidth of memory, reading.
    memory_gb_per_s: [576.0, 612.0, 633.0] "GB/s", speed,
        "640 by AMD's product page; measured 612 (hipfire PR 488) and 619 to 633 (rdna4-infer, RX \
         9070 XT); low: estimate, 90 % of the peak";
    /// Bandwidth of memory by its clock: what no kernel exceeds.
    memory_peak_gb_per_s: [640.0, 640.0, 640.0] "GB/s", speed, "AMD's product page: 256 bits at 20 Gbit/s";
    /// Bandwidth of the host's memory over PCIe 5.0 x16, reading.
    pcie_gb_per_s: [40.0, 50.0, 57.0] "GB/s", speed,
        "63 by the rate; typical: 47 GiB/s of another card (alexanderhoughton.co.uk); high: 90 %, \
         legacy-rocm-build 2253; low: estimate";
    /// Bandwidth of the memory-side cache.
    mall_gb_per_s: [1000.0, 1600.0, 2400.0] "GB/s", speed,
        "estimate: two to four times memory, as published for the same cache of earlier cards";
    /// Bandwidth of GL2.
    gl2_gb_per_s: [2500.0, 4000.0, 6000.0] "GB/s", speed,
        "estimate: 16 to 36 bytes in a clock for each compute unit; no public measurement of gfx1201 found";
    /// Bytes that GL2 holds.
    gl2_bytes: [8388608.0, 8388608.0, 8388608.0] "B", speed, "hardware reference §1.4";
    /// Bytes that the memory-side cache holds.
    mall_bytes: [67108864.0, 67108864.0, 67108864.0] "B", speed, "hardware reference §1.4";
    /// Share of a cache that a working set may fill and still be found there in the next step.
    cache_share: [0.5, 0.75, 1.0] "", speed, "estimate: replacement is not documented";
    /// Latency of a load from memory.
    memory_latency_ns: [400.0, 600.0, 900.0] "ns", cost,
        "estimate: no trustworthy public measurement of gfx1201 (hipfire issue 490 says why one is \
         wrong); loaded above idle";
    /// Latency of a load from GL2.
    gl2_latency_ns: [90.0, 140.0, 220.0] "ns", cost,
        "estimate: 250 to 500 clocks, the range of published RDNA measurements";
    /// Latency of a scalar load.
    scalar_latency_ns: [30.0, 100.0, 220.0] "ns", cost, "estimate: from the scalar cache to GL2";
    /// Latency of an LDS access.
    lds_latency_clocks: [20.0, 40.0, 64.0] "clocks", cost,
        "low: LLVM SISchedule.td, GFX12SpeedModel, WriteLDS; the rest: estimate, queueing behind other waves";
    /// Cycles that an integer WMMA of 16 × 16 × 16 occupies its SIMD.
    wmma_integer_clocks: [8.0, 8.0, 8.0] "clocks", cost,
        "AMD: 2048 operations in a clock and compute unit on 8-bit integers; 198 T-MAC/s measured (rdna4-infer)";
    /// Cycles of a WMMA of 16-bit floats.
    wmma_float_clocks: [15.0, 16.0, 16.0] "clocks", cost,
        "AMD: 1024 operations in a clock and compute unit; measured 1.9 times an integer WMMA (rdna4-infer)";
    /// Cycles of a transcendental operation or a full 32-bit integer product.
    quarter_rate_clocks: [4.0, 4.0, 4.0] "clocks", cost,
        "LLVM SISchedule.td, GFX12SpeedModel: WriteTrans32 has 4 clocks more than Write32Bit, WriteIntMul 3";
    /// Cycles of an operation on 64 bits that is no product.
    wide_clocks: [1.0, 2.0, 2.0] "clocks", cost,
        "LLVM SISchedule.td, GFX12SpeedModel: Write64Bit has a clock more than Write32Bit; \
         low: estimate, one pass";
    /// Cycles of an operation on binary64.
    double_clocks: [32.0, 32.0, 38.0] "clocks", cost,
        "1.5 TFLOPS of binary64 by AMD's product page, 1/32 of binary32 without pairs; high: LLVM \
         SISchedule.td, GFX12SpeedModel, WriteDouble";
    /// Cycles from one instruction of a wave to its next one, if no other wave issues.
    dependency_clocks: [1.0, 2.0, 5.0] "clocks", cost,
        "high: LLVM SISchedule.td, GFX12SpeedModel, latency of Write32Bit; low: independent \
         instructions; typical: estimate";
    /// Cycles that a wave loses at a branch.
    branch_clocks: [4.0, 10.0, 32.0] "clocks", cost,
        "high: LLVM SISchedule.td, GFX12SpeedModel, WriteBranch; the rest: estimate, most are not taken";
    /// Lines of 128 bytes that a compute unit's vector cache looks up in a clock.
    lines_per_clock: [0.5, 1.0, 2.0] "", speed, "estimate: one tag look-up in a clock";
    /// Bytes that the vector cache returns in a clock.
    l0_bytes_per_clock: [64.0, 96.0, 128.0] "B", speed, "estimate: half a line to a line";
    /// Share of bytes that several waves load and that L0 has for the first of them only.
    l0_miss_share: [0.0, 0.5, 1.0] "", cost, "estimate: depends on how waves meet in 32 KiB";
    /// Share of lines that a wave touches again and that L0 no longer has.
    l0_thrash_share: [0.0, 0.1, 0.5] "", cost,
        "estimate: eight waves with 32 lines each under way fill 32 KiB";
    /// Loads of a wave's round that come from memory, for each byte's share that does.
    round_mixing: [1.0, 2.0, 3.0] "", cost, "estimate: a wait ends with the slowest of the loads before it";
    /// Share of the shorter of two resources' times that is hidden behind the longer.
    overlap_share: [0.5, 0.8, 1.0] "", speed,
        "estimate: bodies wait for their loads before they compute, and groups that meet in a barrier do so together";
    /// A barrier of a workgroup.
    barrier_ns: [10.0, 25.0, 60.0] "ns", cost, "estimate: 25 to 150 clocks, the waves' spread not counted";
    /// Walking to a task and telling its end: tape, header, parameters, atomic.
    task_walk_us: [0.7, 1.1, 1.4] "µs", cost,
        "estimate: 5 to 6 of the 8 to 10 dependent round trips counted in asm/gfx1201/mega.s";
    /// From the last unit of a task to a workgroup that waits for it.
    hand_over_us: [0.8, 1.2, 1.5] "µs", cost,
        "estimate: an atomic, up to three polls and an invalidation, a round trip to GL2 each";
    /// PLAN: from the end of a step to the next one's first task, rings of the host included.
    plan_us: [8.0, 14.0, 20.0] "µs", cost,
        "estimate: some 15 dependent waits counted in asm/gfx1201/body/plan.inc, several behind stores over PCIe";
    /// Start and end of a dispatch that depends on the one before.
    dispatch_us: [0.5, 0.9, 2.0] "µs", cost,
        "estimate: the order of what is published for dependent dispatches in one indirect buffer of RDNA cards";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Alignment, Table};

    /// `docs/prediction.md` has this table.
    #[test]
    fn the_page_has_the_parameters() {
        use Alignment::{Left, Right};
        let columns = [
            ("parameter", Left),
            ("low", Right),
            ("typical", Right),
            ("high", Right),
            ("unit", Left),
            ("source", Left),
        ];
        let mut table = Table::new(&columns);
        for one in PARAMETERS {
            table.row(vec![
                format!("`{}`", one.name),
                one.low.to_string(),
                one.typical.to_string(),
                one.high.to_string(),
                one.unit.to_owned(),
                one.source.to_owned(),
            ]);
        }
        let page = include_str!("../../../docs/prediction.md");
        assert!(page.contains(&table.to_string()), "docs/prediction.md must have:\n{table}");
    }

    #[test]
    fn every_parameter_has_a_range_and_a_source() {
        for parameter in PARAMETERS {
            let Parameter { name, low, typical, high, source, .. } = *parameter;
            assert!(low <= typical && typical <= high && low >= 0.0, "{name}");
            assert_eq!(parameter.is_range(), low != high, "{name}");
            assert!(source.len() > 10, "{name} has no source");
            let is_estimate = source.contains("estimate");
            assert!(is_estimate || source.chars().any(char::is_uppercase) || source.contains('§'), "{name}");
            assert!(low == high || is_estimate || source.len() > 40, "{name}: a range needs two sources");
        }
    }

    #[test]
    fn fields_are_in_the_order_of_the_table() {
        let card = Card::at(Estimate::Typical);
        assert_eq!((card.compute_units, card.clock_ghz, card.dispatch_us), (64.0, 2.6, 0.9));
        // A higher clock is faster, a higher latency is slower.
        assert_eq!(Card::at(Estimate::Fast).clock_ghz, 2.92);
        assert_eq!(Card::at(Estimate::Fast).memory_latency_ns, 400.0);
        assert_eq!(Card::at(Estimate::Slow).memory_latency_ns, 900.0);
    }

    /// By hand: one parameter moves the time by its own factor; two by the root of the squares of their logarithms.
    #[test]
    fn a_range_adds_squares() {
        let one = Range::of(|card| 1.0 / card.clock_ghz);
        assert!((one.low - 1.0 / 2.92).abs() < 1e-12 && (one.high - 1.0 / 2.35).abs() < 1e-12, "{one:?}");
        let two = Range::of(|card| card.memory_latency_ns * card.task_walk_us);
        let high = 600.0 * 1.1 * (1.5f64.ln().powi(2) + (1.4f64 / 1.1).ln().powi(2)).sqrt().exp();
        assert!((two.high - high).abs() < 1e-9, "{two:?}");
        assert_eq!(Range::of(|_| 3.0), Range { low: 3.0, typical: 3.0, high: 3.0 });
    }

    /// By hand: 64 CUs × 2048 × 2.92 GHz are 382.7 T operations, the 383 TOPS of the data sheet.
    #[test]
    fn matrix_cycles_follow_from_the_published_rates() {
        let card = Card::at(Estimate::Fast);
        let simds = card.compute_units * card.simds_per_compute_unit;
        let operations = 2.0 * 16.0 * 16.0 * 16.0;
        let tops = simds * card.clock_ghz * operations / card.wmma_integer_clocks / 1000.0;
        assert!((tops - 382.7).abs() < 0.1, "{tops}");
    }
}
