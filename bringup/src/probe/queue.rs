//! The queue: round trips, the reported read pointer, the reference clock, dispatches in an indirect buffer.

use super::bench::{Bench, Parameters, Stop};
use super::finding::Finding;
use super::kernels::EMPTY;
use crate::times::{each_ns, least_and_median};
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
        times.push(start.elapsed());
    }
    let [least, median] = least_and_median(times).map(|time| time.as_nanos() as f64);
    let mut finding = Finding::new(
        super::Verdict::Measured,
        format!("doorbell to fence: {:.1} µs at least, {:.1} µs median", least / 1e3, median / 1e3),
    );
    finding.number("least", least, "ns");
    finding.number("median", median, "ns");
    Ok(finding)
}

/// What the host saw of the reported read pointer after a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    /// Dwords that it lagged behind at first.
    at_fence: u64,
    /// Dwords that it lagged behind at last.
    at_last: u64,
    /// The pointer at last.
    pointer: u64,
}

/// Looks at lag and pointer until there is no lag, but for `wait` at most; what was seen, and how long it took.
fn follow(mut look: impl FnMut() -> (u64, u64), wait: Duration) -> (Report, Duration) {
    let start = Instant::now();
    let (at_fence, mut pointer) = look();
    let mut at_last = at_fence;
    while at_last > 0 && start.elapsed() < wait {
        std::hint::spin_loop();
        (at_last, pointer) = look();
    }
    (Report { at_fence, at_last, pointer }, start.elapsed())
}

pub(super) fn read_pointer(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut reports = Vec::with_capacity(SUBMISSIONS);
    for _ in 0..SUBMISSIONS {
        nop(bench, NOP_DWORDS)?;
        let look = || {
            let seen = bench.device.observe();
            (seen.write_pointer.saturating_sub(seen.read_pointer), seen.read_pointer)
        };
        reports.push(follow(look, REPORT_WAIT));
    }
    Ok(lags(&reports))
}

/// What the reports say, each with the time that it took.
fn lags(reports: &[(Report, Duration)]) -> Finding {
    let most = |lag: fn(&Report) -> u64| reports.iter().map(|(report, _)| lag(report)).max().unwrap_or(0);
    let late: Vec<Duration> = reports
        .iter()
        .filter(|(report, _)| report.at_fence > 0 && report.at_last == 0)
        .map(|(_, delay)| *delay)
        .collect();
    let never = reports.iter().filter(|(report, _)| report.at_last > 0).count();
    let (lag_most, delay_most) =
        (most(|report| report.at_last), late.iter().max().copied().unwrap_or_default());
    let mut pointers: Vec<u64> = reports.iter().map(|(report, _)| report.pointer).collect();
    pointers.dedup();
    let steps = || pointers.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let (count, late) = (reports.len(), late.len());
    let summary = format!(
        "after {count} fences the pointer was up to date at once {} times, late {late} times, and behind by up to \
         {lag_most} dwords for good {never} times",
        count - late - never
    );
    let mut finding = Finding::of_model(never == 0, summary);
    finding.number("model_block", BLOCK_DWORDS as f64, "dwords");
    finding.number("lag_at_fence_most", most(|report| report.at_fence) as f64, "dwords");
    finding.number("lag_after_wait_most", lag_most as f64, "dwords");
    finding.number("late", late as f64, "count");
    finding.number("never", never as f64, "count");
    finding.number("report_delay_most", delay_most.as_nanos() as f64, "ns");
    finding.number("step_least", steps().min().unwrap_or(0) as f64, "dwords");
    finding.number("step_most", steps().max().unwrap_or(0) as f64, "dwords");
    finding
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
    Ok(rate(second.wrapping_sub(first), start, end))
}

/// The rate of a clock that advanced so many ticks, with the host's times before and after either reading.
fn rate(ticks: u64, start: [Instant; 2], end: [Instant; 2]) -> Finding {
    let mhz = |from: Instant, to: Instant| ticks as f64 * 1e3 / to.duration_since(from).as_nanos() as f64;
    let (least, most) = (mhz(start[0], end[1]), mhz(start[1], end[0]));
    let allowed = CLOCK_MHZ * CLOCK_ERROR_MAX;
    let holds = least < CLOCK_MHZ + allowed && most > CLOCK_MHZ - allowed;
    let mut finding = Finding::of_model(holds, format!("{least:.3} to {most:.3} MHz by the host's clock"));
    finding.number("rate_least", least, "MHz");
    finding.number("rate_most", most, "MHz");
    finding
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
        let ns = each_ns(all, alone, DISPATCHES);
        told.push(format!("{name} {:.2} µs", ns / 1e3));
        finding.number(format!("dispatch_{name}"), ns, "ns");
        finding.number(format!("submission_{name}"), alone.as_nanos() as f64, "ns");
    }
    finding.summary = format!("each further dispatch of an empty kernel: {}", told.join(", "));
    Ok(finding)
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// What was seen, and how often it was looked.
    fn followed(lags: &[u64], wait: Duration) -> (Report, usize) {
        let mut looks = 0;
        let look = || {
            looks += 1;
            let lag = lags[(looks - 1).min(lags.len() - 1)];
            (lag, 100 - lag)
        };
        let (report, _) = follow(look, wait);
        (report, looks)
    }

    #[test]
    fn a_late_report_is_waited_for_until_it_is_there_or_the_time_is_over() {
        let report = |at_fence, at_last| Report { at_fence, at_last, pointer: 100 - at_last };
        assert_eq!(followed(&[0, 7], LONG), (report(0, 0), 1));
        assert_eq!(followed(&[40, 40, 16, 0, 8], LONG), (report(40, 0), 4));
        assert_eq!(followed(&[40, 0], Duration::ZERO), (report(40, 40), 1));
        // In this time it is looked at least once more.
        let (report, looks) = followed(&[40], Duration::from_millis(2));
        assert!(report.at_last == 40 && looks > 1, "{report:?}, {looks}");
    }

    #[test]
    fn reports_are_counted_by_when_they_came() {
        let report = |at_fence, at_last, pointer, delay_ns| {
            (Report { at_fence, at_last, pointer }, Duration::from_nanos(delay_ns))
        };
        // In time, twice late, never twice, and in time at a pointer that was told before.
        let mut reports = vec![report(0, 0, 23, 900), report(23, 0, 46, 300), report(10, 0, 64, 200)];
        let told = lines(&lags(&reports));
        assert_eq!(
            told,
            "Confirms: after 3 fences the pointer was up to date at once 1 times, late 2 times, and behind by up to 0 \
             dwords for good 0 times\n\
             model_block 64 dwords\n\
             lag_at_fence_most 23 dwords\n\
             lag_after_wait_most 0 dwords\n\
             late 2 count\n\
             never 0 count\n\
             report_delay_most 300 ns\n\
             step_least 18 dwords\n\
             step_most 23 dwords"
        );
        reports.extend([report(51, 28, 64, 5000), report(5, 5, 64, 5001), report(0, 0, 184, 1)]);
        let told = lines(&lags(&reports));
        assert_eq!(
            told,
            "Contradicts: after 6 fences the pointer was up to date at once 2 times, late 2 times, and behind by up to \
             28 dwords for good 2 times\n\
             model_block 64 dwords\n\
             lag_at_fence_most 51 dwords\n\
             lag_after_wait_most 28 dwords\n\
             late 2 count\n\
             never 2 count\n\
             report_delay_most 300 ns\n\
             step_least 18 dwords\n\
             step_most 120 dwords"
        );
    }

    /// The readings are 50 ms apart at least, and 53 at most.
    #[test]
    fn a_rate_is_accepted_if_it_may_be_within_one_per_cent() {
        let base = Instant::now();
        let at = |ms| base + Duration::from_millis(ms);
        let told = |ticks| lines(&rate(ticks, [at(0), at(1)], [at(51), at(53)]));
        assert_eq!(
            told(5_000_000),
            "Confirms: 94.340 to 100.000 MHz by the host's clock\nrate_least 94.3396 MHz\nrate_most 100 MHz"
        );
        let verdict = |ticks| rate(ticks, [at(0), at(1)], [at(51), at(53)]).verdict;
        use super::super::Verdict::{Confirms, Contradicts};
        // 99 MHz over 50 ms, 101 MHz over 53.
        assert_eq!([4_950_000, 4_950_001].map(verdict), [Contradicts, Confirms]);
        assert_eq!([5_352_999, 5_353_000].map(verdict), [Confirms, Contradicts]);
    }
}
