//! Times inside a kernel: loads by footprint, copies, flags, barriers, clocks.
//!
//! Contract: numbers to know, without a model. A kernel's own clock is read around many repetitions; the host checks
//! that the work was really done.

use super::bench::{Bench, PATIENCE_TICKS, POISON, Parameters, Stop, TICK_NS};
use super::finding::{Finding, Verdict};
use super::kernels::{BARRIER, CHAIN, CHASE, COPY, HANDOVER, SPIN};
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

pub(super) fn pointer_chase(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut finding = Finding::new(Verdict::Measured, String::new());
    let mut told = Vec::new();
    for (name, bytes) in FOOTPRINTS {
        let nodes = bytes / NODE_BYTES;
        let groups = nodes.div_ceil(CHAIN_GROUP_NODES);
        // A group writes all its nodes: those after the last are never visited.
        let written = ByteLen(u64::from(groups * CHAIN_GROUP_NODES) * u64::from(NODE_BYTES));
        let chain = bench.allocate(Heap::DeviceLocal, written, "probe chain")?;
        let numbers = [nodes - 1, 0];
        bench.run(&CHAIN, Parameters { first: chain.va, numbers, ..Parameters::default() }, groups)?;
        let steps = nodes.min(STEPS_MAX);
        let page = bench.page(4096, "probe chase")?;
        let parameters = Parameters { first: chain.va, second: page.va, numbers: [steps, steps] };
        bench.run(&CHASE, parameters, 1)?;
        let words = bench.download(&page, 3)?;
        let expected = (0..2 * steps)
            .fold(0u32, |node, _| node.wrapping_mul(CHAIN_FACTOR).wrapping_add(CHAIN_ADDEND) & (nodes - 1));
        if words[0] != expected * NODE_BYTES {
            let seen = words[0];
            return Err(Stop::Question(format!("the chase of {name} ended at byte {seen}, not at its node")));
        }
        let cycles = f64::from(words[1]) / f64::from(steps);
        let ns = f64::from(words[2]) * TICK_NS / f64::from(steps);
        told.push(format!("{name} {ns:.0} ns"));
        finding.number(format!("load_{name}"), ns, "ns");
        finding.number(format!("load_{name}_cycles"), cycles, "cycles");
    }
    finding.summary = format!("one dependent load: {}", told.join(", "));
    Ok(finding)
}

pub(super) fn copy(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let len = ByteLen(COPY_BYTES.into());
    let from = bench.allocate(Heap::DeviceLocal, len, "probe copy from")?;
    let to = bench.allocate(Heap::DeviceLocal, len, "probe copy to")?;
    let (mark, at) = (0x5a5a_1234u32.to_le_bytes(), ByteLen(u64::from(COPY_BYTES) - 4));
    bench.device.upload(&from, at, &mark)?;
    let parameters = Parameters { first: from.va, second: to.va, ..Parameters::default() };
    let groups = COPY_BYTES / COPY_GROUP_BYTES;
    let one = bench.record(&COPY, parameters, groups, 1, true)?;
    let many = bench.record(&COPY, parameters, groups, COPIES + 1, true)?;
    bench.time(&one)?;
    let (alone, all) = (bench.time(&one)?, bench.time(&many)?);
    let mut arrived = [0; 4];
    bench.device.download(&to, at, &mut arrived)?;
    if arrived != mark {
        return Err(Stop::Question(format!("the copy's last bytes are {arrived:02x?}, not {mark:02x?}")));
    }
    let seconds = all.saturating_sub(alone).as_secs_f64().max(1e-9) / COPIES as f64;
    let rate = f64::from(COPY_BYTES) / seconds;
    let mut finding =
        Finding::new(Verdict::Measured, format!("{:.1} GB/s copied, twice that moved", rate / 1e9));
    finding.number("copied", rate, "bytes/s");
    Ok(finding)
}

pub(super) fn hand_over(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let page = bench.page(4096, "probe hand-over")?;
    let flag = bench.upload(&[0; 64], "probe flag")?;
    let parameters = Parameters { first: page.va, second: flag.va, numbers: [TURNS, POLLS_MAX] };
    bench.run(&HANDOVER, parameters, 2)?;
    let words = bench.download(&page, 8)?;
    let last = words[0].max(words[4]);
    if last != 2 * TURNS {
        return Err(Stop::Question(format!("the number reached {last} of {}: no room for both?", 2 * TURNS)));
    }
    let hands = f64::from(2 * TURNS);
    let (cycles, ns) = (f64::from(words[5]) / hands, f64::from(words[6]) * TICK_NS / hands);
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
    let cycles = f64::from(words[0]) / f64::from(BARRIERS);
    let ns = f64::from(words[1]) * TICK_NS / f64::from(BARRIERS);
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
    let words = bench.download(&page, 2 * WINDOWS as usize)?;
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
    Ok(finding)
}
