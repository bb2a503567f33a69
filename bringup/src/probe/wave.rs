//! How a wave begins and where: MODE, and the compute units of a grid.
//!
//! Contract: the model of placement is one workgroup on each compute unit. Which SIMDs of a WGP make a compute unit is
//! not assumed: groups are distinguished by WGP and by the set of SIMDs that their waves report.

use super::bench::{Bench, POISON, Parameters, Stop};
use super::finding::Finding;
use super::kernels::{MODE, PLACEMENT};
use std::collections::{BTreeMap, BTreeSet};

/// MODE.SCALAR_PREFETCH_EN (instruction set reference §4.2).
const SCALAR_PREFETCH_EN: u32 = 1 << 24;
/// MODE's float mode, from RSRC1: rounding to nearest, denormals kept (instruction set reference §3).
const FLOAT_MODE: u32 = 0xf0;

/// Workgroups of the placement question: as many as an R9700 has compute units.
const GROUPS: usize = 64;
/// Waves of each.
const WAVES: usize = 8;
/// Dwords that a wave stores.
const WAVE_DWORDS: usize = 4;
/// How long a group waits for the others, in ticks of the reference clock: 200 ms.
const RENDEZVOUS_TICKS: u32 = 20_000_000;
/// HW_ID1 without the wave's place and SIMD: WGP 13:10, shader array 16, shader engine 20:18.
const WGP_MASK: u32 = 0xf << 10 | 1 << 16 | 7 << 18;

pub(super) fn mode_at_launch(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let page = bench.page(4096, "probe mode")?;
    bench.run(&MODE, Parameters { first: page.va, ..Parameters::default() }, 1)?;
    let mode = page.view()?.load_u32_acquire(0);
    if mode == POISON {
        return Err(Stop::Question("the kernel ended without storing MODE".into()));
    }
    let prefetches = mode & SCALAR_PREFETCH_EN != 0;
    let state =
        if prefetches { "set: s_prefetch_data is armed" } else { "clear: s_prefetch_data does nothing" };
    let summary = format!("MODE is {mode:#010x}; SCALAR_PREFETCH_EN is {state}");
    let mut finding = Finding::of_model(mode == FLOAT_MODE, summary);
    finding.text("mode", format!("{mode:#010x}"), "hex");
    finding.number("scalar_prefetch_en", f64::from(u8::from(prefetches)), "flag");
    Ok(finding)
}

pub(super) fn placement(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let bytes = GROUPS * WAVES * WAVE_DWORDS * 4;
    let page = bench.page(bytes, "probe placement")?;
    let counter = bench.upload(&[0; 64], "probe counter")?;
    let numbers = [RENDEZVOUS_TICKS, GROUPS as u32];
    bench.run(&PLACEMENT, Parameters { first: page.va, second: counter.va, numbers }, GROUPS as u32)?;
    let words = bench.download(&page, bytes / 4)?;
    let waves: Vec<&[u32]> = words.chunks_exact(WAVE_DWORDS).collect();
    if waves.iter().any(|wave| wave[0] == POISON) {
        return Err(Stop::Question("a wave ended without storing where it was".into()));
    }
    let groups: Vec<&[&[u32]]> = waves.chunks_exact(WAVES).collect();
    let mut units: BTreeMap<(u32, BTreeSet<u32>), usize> = BTreeMap::new();
    for group in &groups {
        let simds = group.iter().map(|wave| wave[0] >> 8 & 3).collect();
        *units.entry((group[0][0] & WGP_MASK, simds)).or_default() += 1;
    }
    let wgps: BTreeSet<u32> = units.keys().map(|(wgp, _)| *wgp).collect();
    let crowd = units.values().copied().max().unwrap_or(0);
    let together = groups.iter().filter(|group| group[0][2] >= GROUPS as u32).count();
    let summary = format!(
        "{GROUPS} groups ran on {} compute units of {} WGPs, at most {crowd} on one; {together} of them saw all others",
        units.len(),
        wgps.len(),
    );
    let mut finding = Finding::of_model(units.len() == GROUPS && together == GROUPS, summary);
    finding.number("compute_units", units.len() as f64, "count");
    finding.number("wgps", wgps.len() as f64, "count");
    finding.number("groups_on_one_unit_most", crowd as f64, "count");
    finding.number("groups_that_saw_all", together as f64, "count");
    for (name, at) in [("hw_id1_of_group", 0), ("hw_id2_of_group", 1)] {
        let ids: Vec<String> = groups.iter().map(|group| format!("{:08x}", group[0][at])).collect();
        finding.text(name, ids.join(" "), "hex");
    }
    Ok(finding)
}
