//! Times inside a kernel: loads by footprint, copies, flags, barriers, clocks.
//!
//! Contract: numbers to know, without a model. A kernel's own clock is read around many repetitions; the host checks
//! that the work was really done.

use super::bench::{Bench, PATIENCE_TICKS, POISON, Parameters, Stop, TICK_NS};
use super::finding::{Finding, Verdict};
use super::kernels::{BARRIER, CHAIN, CHASE, COPY, HANDOVER, SPIN};
use crate::times::each_ns;
use zrt_mem::{ByteLen, Heap};

/// Footprints of the pointer chase: within L0 (32 KiB), GL2 (8 MiB), MALL (64 MiB), and beyond (hardware reference
/// §1.4).
const FOOTPRINTS: [(&str, u32); 4] =
    [("16_kib", 16 << 10), ("2_mib", 2 << 20), ("32_mib", 32 << 20), ("256_mib", 256 << 20)];
/// Distance between two nodes.
const NODE_BYTES: u32 = 128;
/// Nodes that one workgroup of the kernel that makes the chain writes.
const CHAIN_GROUP_NODES: u32 = 256;
/// Maximum number of steps of a chase, before the clock starts and while it runs.
const STEPS_MAX: u32 = 16_384;
/// The chain's step, as the kernel has it: Knuth's multiplier of full period with an odd addend (Numerical Recipes'
/// "quick" generator).
const CHAIN_FACTOR: u32 = 1_664_525;
const CHAIN_ADDEND: u32 = 1_013_904_223;
/// Bytes of the copy, those of one group, and repetitions.
const COPY_BYTES: u32 = 64 << 20;
const COPY_GROUP_BYTES: u32 = 16 << 10;
const COPIES: usize = 4;
/// Turns of each group of the hand-over, and most polls of each.
const TURNS: u32 = 500;
const POLLS_MAX: u32 = 4_000_000;
/// Barriers in a row.
const BARRIERS: u32 = 2000;
/// Windows of the clock question, and ticks of each: 4 ms.
const WINDOWS: u32 = 8;
const WINDOW_TICKS: u32 = 400_000;

/// What each of `count` repetitions took by a kernel's two clocks, in nanoseconds and in shader cycles.
fn each(cycles: u32, ticks: u32, count: u32) -> (f64, f64) {
    let share = |total: u32| f64::from(total) / f64::from(count);
    (share(ticks) * TICK_NS, share(cycles))
}

pub(super) fn pointer_chase(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut finding = Finding::new(Verdict::Measured, String::new());
    let mut told = Vec::new();
    for (name, bytes) in FOOTPRINTS {
        let (ns, cycles) = chase(bench, name, bytes)?;
        told.push(format!("{name} {ns:.0} ns"));
        finding.number(format!("load_{name}"), ns, "ns");
        finding.number(format!("load_{name}_cycles"), cycles, "cycles");
    }
    finding.summary = format!("one dependent load: {}", told.join(", "));
    Ok(finding)
}

/// What a load costs in a chain of so many bytes, in nanoseconds and in shader cycles.
fn chase(bench: &mut Bench<'_>, name: &str, bytes: u32) -> Result<(f64, f64), Stop> {
    let nodes = bytes / NODE_BYTES;
    let groups = nodes.div_ceil(CHAIN_GROUP_NODES);
    // A group writes all its nodes: those after the last are never visited.
    let written = ByteLen(u64::from(groups * CHAIN_GROUP_NODES) * u64::from(NODE_BYTES));
    let chain = bench.allocate(Heap::DeviceLocal, written, "probe chain")?;
    let numbers = [nodes - 1, 0];
    bench.run(&CHAIN, Parameters { first: chain.va, numbers, ..Parameters::default() }, groups)?;
    // One less than once round: a chase that does not walk ends elsewhere.
    let steps = (nodes - 1).min(STEPS_MAX);
    let page = bench.page(4096, "probe chase")?;
    // One step more than is timed, so that the walk that is timed comes by no node for the first time.
    let parameters = Parameters { first: chain.va, second: page.va, numbers: [steps + 1, steps] };
    bench.run(&CHASE, parameters, 1)?;
    let words = bench.download(&page, 3)?;
    let expected = (0..=2 * steps)
        .fold(0u32, |node, _| node.wrapping_mul(CHAIN_FACTOR).wrapping_add(CHAIN_ADDEND) & (nodes - 1));
    if words[0] != expected * NODE_BYTES {
        let seen = words[0];
        return Err(Stop::Question(format!("the chase of {name} ended at byte {seen}, not at its node")));
    }
    Ok(each(words[1], words[2], steps))
}

pub(super) fn copy(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    copy_of(bench, COPY_BYTES)
}

fn copy_of(bench: &mut Bench<'_>, bytes: u32) -> Result<Finding, Stop> {
    let len = ByteLen(bytes.into());
    let from = bench.allocate(Heap::DeviceLocal, len, "probe copy from")?;
    let to = bench.allocate(Heap::DeviceLocal, len, "probe copy to")?;
    let (mark, at) = (0x5a5a_1234u32.to_le_bytes(), ByteLen(u64::from(bytes) - 4));
    bench.device.upload(&from, at, &mark)?;
    let parameters = Parameters { first: from.va, second: to.va, ..Parameters::default() };
    let groups = bytes / COPY_GROUP_BYTES;
    let one = bench.record(&COPY, parameters, groups, 1, true)?;
    let many = bench.record(&COPY, parameters, groups, COPIES + 1, true)?;
    bench.time(&one)?;
    let (alone, all) = (bench.time(&one)?, bench.time(&many)?);
    let mut arrived = [0; 4];
    bench.device.download(&to, at, &mut arrived)?;
    if arrived != mark {
        return Err(Stop::Question(format!("the copy's last bytes are {arrived:02x?}, not {mark:02x?}")));
    }
    Ok(copied(bytes, each_ns(all, alone, COPIES)))
}

/// The rate at which so many bytes take so many nanoseconds; no copy takes less than one.
fn copied(bytes: u32, ns: f64) -> Finding {
    let rate = f64::from(bytes) / ns.max(1.0);
    let mut finding = Finding::new(Verdict::Measured, format!("{rate:.1} GB/s copied, twice that moved"));
    finding.number("copied", rate * 1e9, "bytes/s");
    finding
}

pub(super) fn hand_over(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let page = bench.page(4096, "probe hand-over")?;
    let flag = bench.upload(&[0; 64], "probe flag")?;
    let parameters = Parameters { first: page.va, second: flag.va, numbers: [TURNS, POLLS_MAX] };
    bench.run(&HANDOVER, parameters, 2)?;
    let words = bench.download(&page, 8)?;
    let (last, hands) = (words[0].max(words[4]), 2 * TURNS);
    if last != hands {
        return Err(Stop::Question(format!("the number reached {last} of {hands}: no room for both?")));
    }
    let (ns, cycles) = each(words[5], words[6], hands);
    let mut finding =
        Finding::new(Verdict::Measured, format!("{ns:.0} ns, {cycles:.0} shader cycles from hand to hand"));
    finding.number("hand_over", ns, "ns");
    finding.number("hand_over_cycles", cycles, "cycles");
    Ok(finding)
}

pub(super) fn barrier(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let page = bench.page(4096, "probe barrier")?;
    let numbers = [BARRIERS, 0];
    bench.run(&BARRIER, Parameters { first: page.va, numbers, ..Parameters::default() }, 1)?;
    let words = bench.download(&page, 2)?;
    if words[0] == POISON {
        return Err(Stop::Question("the kernel ended without storing its times".into()));
    }
    let (ns, cycles) = each(words[0], words[1], BARRIERS);
    let mut finding = Finding::new(Verdict::Measured, format!("{ns:.1} ns, {cycles:.1} shader cycles"));
    finding.number("barrier", ns, "ns");
    finding.number("barrier_cycles", cycles, "cycles");
    Ok(finding)
}

pub(super) fn clocks(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    const _: () = assert!(WINDOWS * WINDOW_TICKS < PATIENCE_TICKS);
    let page = bench.page(4096, "probe clocks")?;
    let numbers = [WINDOW_TICKS, WINDOWS];
    bench.run(&SPIN, Parameters { first: page.va, numbers, ..Parameters::default() }, 1)?;
    Ok(rates(&bench.download(&page, 2 * WINDOWS as usize)?))
}

/// The clock's rates from the shader cycles and the ticks of each window.
fn rates(words: &[u32]) -> Finding {
    let rates: Vec<f64> = words
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[cycles, ticks]| f64::from(*cycles) / f64::from(*ticks))
        .collect();
    let (first, last) = (rates[0], rates[rates.len() - 1]);
    let mhz = |rate: f64| rate * 1e3 / TICK_NS;
    let summary = format!(
        "{first:.2} shader cycles per tick at first ({:.0} MHz), {last:.2} after {} ms ({:.0} MHz)",
        mhz(first),
        WINDOWS * WINDOW_TICKS / 100_000,
        mhz(last)
    );
    let mut finding = Finding::new(Verdict::Measured, summary);
    finding.number("cycles_per_tick_first", first, "cycles");
    finding.number("cycles_per_tick_last", last, "cycles");
    let list: Vec<String> = rates.iter().map(|rate| format!("{:.0}", mhz(*rate))).collect();
    finding.text("shader_clock_by_window", list.join(" "), "MHz");
    finding
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::super::tests::{DEADLINE, device_of};
    use super::*;
    use zrt_vgpu::config::{Config, VramFill};
    use zrt_vgpu::{FaultInjection, Misreading};

    #[test]
    fn a_cost_is_a_share_of_both_clocks() {
        // The reference clock of 100 MHz has ticks of 10 ns.
        assert_eq!(each(2300, 100, 50), (20.0, 46.0));
        assert_eq!(each(1, 3, 4), (7.5, 0.25));
    }

    /// The chain of 64 KiB has 512 nodes, of which the two workgroups that make it write 256 each.
    #[test]
    fn a_chase_walks_its_chain() {
        let chase = |misreads: Option<Misreading>| {
            let config = Config { vram_fill: Some(VramFill::Pattern(0)), ..Config::default() };
            let mut device = device_of(config, FaultInjection { misreads, ..FaultInjection::default() });
            let before = device.counters().unwrap();
            let cost = chase(&mut Bench::new(&mut device, DEADLINE), "64_kib", 64 << 10);
            (cost, device.counters().unwrap().dispatches - before.dispatches)
        };
        let (cost, dispatches) = chase(None);
        let (ns, cycles) = cost.unwrap();
        assert!(
            ns > 0.0 && cycles > 0.0 && dispatches == 2,
            "{ns} ns, {cycles} cycles, {dispatches} dispatches"
        );
        // A chain that nobody made leads from its first node to itself.
        let (cost, _) = chase(Some(|opcode, body| {
            if *opcode == 0x15 && body[0] == 2 {
                body[0] = 0;
            }
        }));
        let Err(Stop::Question(reason)) = cost else { panic!("{cost:?}") };
        assert_eq!(reason, "the chase of 64_kib ended at byte 0, not at its node");
    }

    #[test]
    fn a_rate_is_bytes_by_time() {
        let told = |bytes, ns| lines(&copied(bytes, ns));
        assert_eq!(
            told(64 << 20, 1e6),
            "Measured: 67.1 GB/s copied, twice that moved\ncopied 67108900000 bytes/s"
        );
        let least = "Measured: 5.0 GB/s copied, twice that moved\ncopied 5000000000 bytes/s";
        assert_eq!((told(5, 1.0), told(5, 0.0)), (least.into(), least.into()));
    }

    #[test]
    fn clocks_are_told_by_window() {
        assert_eq!(
            lines(&rates(&[230_000, 10_000, 92_000, 4000, 115_000, 10_000])),
            "Measured: 23.00 shader cycles per tick at first (2300 MHz), 11.50 after 32 ms (1150 MHz)\n\
             cycles_per_tick_first 23 cycles\n\
             cycles_per_tick_last 11.5 cycles\n\
             shader_clock_by_window \"2300 2300 1150\" MHz"
        );
    }

    /// 64 KiB are copied by four workgroups of 16 KiB: once, and once more beside the five of the long recording.
    #[test]
    fn a_copy_is_looked_at_where_its_last_workgroup_writes() {
        let copy = |misreads: Option<Misreading>| {
            let config = Config { vram_fill: Some(VramFill::Pattern(0x7fc0_dead)), ..Config::default() };
            let mut device = device_of(config, FaultInjection { misreads, ..FaultInjection::default() });
            let before = device.counters().unwrap();
            let outcome = copy_of(&mut Bench::new(&mut device, DEADLINE), 64 << 10);
            let after = device.counters().unwrap();
            (outcome.map(|finding| finding.measures.len()), after.dispatches - before.dispatches)
        };
        let (outcome, dispatches) = copy(None);
        assert_eq!((outcome.unwrap(), dispatches), (1, 1 + 1 + 5));
        let (outcome, _) = copy(Some(|_, body| {
            if body.first() == Some(&4) {
                body[0] = 3;
            }
        }));
        let Err(Stop::Question(reason)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "the copy's last bytes are [ad, de, c0, 7f], not [34, 12, 5a, 5a]");
    }
}
