//! The queue: round trips, the reported read pointer, the reference clock, dispatches in an indirect buffer.

use super::bench::{Bench, Parameters, Stop};
use super::finding::Finding;
use super::kernels::EMPTY;
use std::time::{Duration, Instant};
use zrt_pm4::Writer;
use zrt_pm4::packet::release_mem;

/// Round trips measured.
const ROUND_TRIPS: usize = 200;
/// Submissions whose read pointer is checked.
const SUBMISSIONS: usize = 64;
/// Dwords of the NOP of each: with the fence's 8, not a divisor of a report's block.
const NOP_DWORDS: usize = 15;
/// How long to wait for a late report.
const REPORT_WAIT: Duration = Duration::from_millis(5);
/// Block of the model in dwords: the MQD's RPTR_BLOCK_SIZE 5 (hardware reference §2.6).
const BLOCK_DWORDS: u64 = 64;
/// Time between the two timestamps of the reference clock.
const CLOCK_WINDOW: Duration = Duration::from_millis(50);
/// The model's rate (hardware reference §4.9) and its tolerance.
const CLOCK_MHZ: f64 = 100.0;
const CLOCK_ERROR_MAX: f64 = 0.01;
/// Dispatches of one recorded buffer.
const DISPATCHES: usize = 200;

/// A submission of a NOP, waited for.
fn nop(bench: &mut Bench<'_>, dwords: usize) -> Result<(), Stop> {
    let mut words = [0; 16];
    let mut writer = Writer::new(&mut words);
    writer.nop(dwords).map_err(|error| Stop::Question(error.to_string()))?;
    let ticket = bench.device.submit_words(&words[..dwords])?;
    bench.wait(ticket)
}

pub(super) fn round_trip(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        nop(bench, 1)?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    let (least, median) = (times[0], times[ROUND_TRIPS / 2]);
    let mut finding = Finding::new(
        super::Verdict::Measured,
        format!("doorbell to fence: {:.1} µs at least, {:.1} µs median", least / 1e3, median / 1e3),
    );
    finding.number("least", least, "ns");
    finding.number("median", median, "ns");
    Ok(finding)
}

pub(super) fn read_pointer(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let (mut late, mut never) = (0, 0);
    let (mut lag_at_fence_most, mut lag_most, mut wait_most) = (0, 0, Duration::ZERO);
    let mut reports = Vec::new();
    for _ in 0..SUBMISSIONS {
        nop(bench, NOP_DWORDS)?;
        let start = Instant::now();
        let lag = |bench: &Bench<'_>| {
            let seen = bench.device.observe();
            (seen.write_pointer.saturating_sub(seen.read_pointer), seen.read_pointer)
        };
        let (first, _) = lag(bench);
        lag_at_fence_most = lag_at_fence_most.max(first);
        let mut last = lag(bench);
        while last.0 > 0 && start.elapsed() < REPORT_WAIT {
            std::hint::spin_loop();
            last = lag(bench);
        }
        late += usize::from(first > 0 && last.0 == 0);
        never += usize::from(last.0 > 0);
        if first > 0 && last.0 == 0 {
            wait_most = wait_most.max(start.elapsed());
        }
        lag_most = lag_most.max(last.0);
        if reports.last() != Some(&last.1) {
            reports.push(last.1);
        }
    }
    let steps: Vec<u64> = reports.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let summary = format!(
        "after {SUBMISSIONS} fences the pointer was up to date at once {} times, late {late} times, and behind by up to \
         {lag_most} dwords for good {never} times",
        SUBMISSIONS - late - never
    );
    let mut finding = Finding::of_model(never == 0, summary);
    finding.number("model_block", BLOCK_DWORDS as f64, "dwords");
    finding.number("lag_at_fence_most", lag_at_fence_most as f64, "dwords");
    finding.number("lag_after_wait_most", lag_most as f64, "dwords");
    finding.number("late", late as f64, "count");
    finding.number("never", never as f64, "count");
    finding.number("report_delay_most", wait_most.as_nanos() as f64, "ns");
    finding.number("step_least", steps.iter().copied().min().unwrap_or(0) as f64, "dwords");
    finding.number("step_most", steps.iter().copied().max().unwrap_or(0) as f64, "dwords");
    Ok(finding)
}

pub(super) fn reference_clock(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let page = bench.page(4096, "probe timestamps")?;
    let view = page.view()?;
    // A timestamp, and the host's times before and after it.
    let mut stamp = |offset: usize| -> Result<(u64, [Instant; 2]), Stop> {
        let mut words = [0; 8];
        let mut writer = Writer::new(&mut words);
        let packet = release_mem::Repr::timestamp(page.va.0 + offset as u64);
        writer.release_mem(&packet).map_err(|error| Stop::Question(error.to_string()))?;
        let used = writer.len();
        let before = Instant::now();
        let ticket = bench.device.submit_words(&words[..used])?;
        bench.wait(ticket)?;
        Ok((view.load_u64_acquire(offset), [before, Instant::now()]))
    };
    let (first, start) = stamp(0)?;
    std::thread::sleep(CLOCK_WINDOW);
    let (second, end) = stamp(8)?;
    let ticks = second.wrapping_sub(first) as f64;
    let mhz = |from: Instant, to: Instant| ticks * 1e3 / to.duration_since(from).as_nanos() as f64;
    let (least, most) = (mhz(start[0], end[1]), mhz(start[1], end[0]));
    let allowed = CLOCK_MHZ * CLOCK_ERROR_MAX;
    let holds = least < CLOCK_MHZ + allowed && most > CLOCK_MHZ - allowed;
    let mut finding = Finding::of_model(holds, format!("{least:.3} to {most:.3} MHz by the host's clock"));
    finding.number("rate_least", least, "MHz");
    finding.number("rate_most", most, "MHz");
    Ok(finding)
}

pub(super) fn indirect_dispatch(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut finding = Finding::new(super::Verdict::Measured, String::new());
    let mut told = Vec::new();
    for (name, has_barriers) in [("plain", false), ("with_barrier", true)] {
        let one = bench.record(&EMPTY, Parameters::default(), 1, 1, has_barriers)?;
        let many = bench.record(&EMPTY, Parameters::default(), 1, DISPATCHES + 1, has_barriers)?;
        // The first run of each finds its code and packets in no cache.
        bench.time(&one)?;
        bench.time(&many)?;
        let (alone, all) = (bench.time(&one)?, bench.time(&many)?);
        let ns = all.saturating_sub(alone).as_nanos() as f64 / DISPATCHES as f64;
        told.push(format!("{name} {:.2} µs", ns / 1e3));
        finding.number(format!("dispatch_{name}"), ns, "ns");
        finding.number(format!("submission_{name}"), alone.as_nanos() as f64, "ns");
    }
    finding.summary = format!("each further dispatch of an empty kernel: {}", told.join(", "));
    Ok(finding)
}
