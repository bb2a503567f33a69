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
    Ok(of_mode(mode))
}

fn of_mode(mode: u32) -> Finding {
    let prefetches = mode & SCALAR_PREFETCH_EN != 0;
    let state =
        if prefetches { "set: s_prefetch_data is armed" } else { "clear: s_prefetch_data does nothing" };
    let summary = format!("MODE is {mode:#010x}; SCALAR_PREFETCH_EN is {state}");
    let mut finding = Finding::of_model(mode == FLOAT_MODE, summary);
    finding.text("mode", format!("{mode:#010x}"), "hex");
    finding.number("scalar_prefetch_en", f64::from(u8::from(prefetches)), "flag");
    finding
}

pub(super) fn placement(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let bytes = GROUPS * WAVES * WAVE_DWORDS * 4;
    let page = bench.page(bytes, "probe placement")?;
    let counter = bench.upload(&[0; 64], "probe counter")?;
    let numbers = [RENDEZVOUS_TICKS, GROUPS as u32];
    bench.run(&PLACEMENT, Parameters { first: page.va, second: counter.va, numbers }, GROUPS as u32)?;
    placed(&bench.download(&page, bytes / 4)?)
}

/// What the waves' words say: HW_ID1, HW_ID2, and how many groups had arrived.
fn placed(words: &[u32]) -> Result<Finding, Stop> {
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

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;

    #[test]
    fn mode_is_told_with_its_prefetch_bit() {
        assert_eq!(
            lines(&of_mode(0xf0)),
            "Confirms: MODE is 0x000000f0; SCALAR_PREFETCH_EN is clear: s_prefetch_data does nothing\n\
             mode \"0x000000f0\" hex\n\
             scalar_prefetch_en 0 flag"
        );
        assert_eq!(
            lines(&of_mode(0x0100_00f0)),
            "Contradicts: MODE is 0x010000f0; SCALAR_PREFETCH_EN is set: s_prefetch_data is armed\n\
             mode \"0x010000f0\" hex\n\
             scalar_prefetch_en 1 flag"
        );
    }

    /// The words of a chip of 4 engines of 2 arrays of 4 WGPs: group g is on compute unit g. The fields are those of
    /// HW_ID1 (instruction set reference §3): wave slot 4:0, SIMD 9:8, WGP 13:10, array 16, engine 20:18.
    fn words() -> Vec<u32> {
        let mut words = Vec::new();
        for group in 0..64 {
            for wave in 0..8 {
                let simd = 2 * (group % 2) + wave % 2;
                let (wgp, array, engine) = (group / 2 % 4, group / 8 % 2, group / 16);
                let place = wave + (simd << 8) + (wgp << 10) + (array << 16) + (engine << 18);
                words.extend([place, 0x100 + group, if wave == 0 { 64 } else { 0 }, 0]);
            }
        }
        words
    }

    /// The first six lines of what is told, without the ids of all groups.
    fn told(words: &[u32]) -> String {
        let lines = lines(&placed(words).unwrap());
        let (told, ids) = lines.split_once("\nhw_id1_of_group \"00000000 00000200 00000400 ").unwrap();
        let (_, ids) = ids.split_once(" 00000").unwrap();
        assert!(ids.contains("\" hex\nhw_id2_of_group \"00000100 00000101 00000102 "), "{ids}");
        told.to_owned()
    }

    #[test]
    fn groups_are_counted_by_compute_unit() {
        let sound = words();
        assert_eq!(
            told(&sound),
            "Confirms: 64 groups ran on 64 compute units of 32 WGPs, at most 1 on one; 64 of them saw all others\n\
             compute_units 64 count\n\
             wgps 32 count\n\
             groups_on_one_unit_most 1 count\n\
             groups_that_saw_all 64 count"
        );
        // The last group is where the one before it is; other bits of the word are not of the place.
        let mut crowded = sound.clone();
        crowded.copy_within(62 * 32..63 * 32, 63 * 32);
        crowded[63 * 32..].iter_mut().step_by(4).for_each(|word| *word |= 1 << 29);
        assert_eq!(
            told(&crowded),
            "Contradicts: 64 groups ran on 63 compute units of 32 WGPs, at most 2 on one; 64 of them saw all others\n\
             compute_units 63 count\n\
             wgps 32 count\n\
             groups_on_one_unit_most 2 count\n\
             groups_that_saw_all 64 count"
        );
        let mut alone = sound.clone();
        alone[63 * 32 + 2] = 63;
        assert!(told(&alone).starts_with(
            "Contradicts: 64 groups ran on 64 compute units of 32 WGPs, at most 1 on one; 63 of them saw all others\n"
        ));
        let mut lost = sound;
        lost[63 * 32 + 28] = POISON;
        let Err(Stop::Question(reason)) = placed(&lost) else { panic!("it ended without a place") };
        assert_eq!(reason, "a wave ended without storing where it was");
    }
}
