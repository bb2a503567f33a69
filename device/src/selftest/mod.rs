//! The self-test: does this device do what its packets say?
//!
//! Contract: [`run`] with [`Extent::Short`] is what every open does (a few milliseconds); [`Extent::Full`] is
//! `cargo xtask pm4-test`, one case per packet variant and per promise that the layers above rely on. A case says what
//! it observed, whether it passed or failed; expected values are computed here, never by the device. Every wait has a
//! deadline, so a dead device fails the first case and not the caller. Nothing is left allocated.

mod bench;
mod dispatch_cases;
pub(crate) mod kernels;
mod packet_cases;
mod queue_cases;

use crate::device::Device;
use crate::error::DeviceError;
use bench::{Bench, CASE_DEADLINE, Failure};
use std::time::{Duration, Instant};

/// How much to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What a device must pass to be opened.
    Short,
    /// Everything.
    Full,
}

/// One case's outcome.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// The case.
    pub case: &'static str,
    /// What was observed: `Err` where it is not what should be.
    pub outcome: Result<String, String>,
    /// How long the case took.
    pub duration: Duration,
    /// What was measured, where a time means something.
    pub timings: Vec<Timing>,
}

/// A measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was measured.
    pub name: &'static str,
    /// How long it took, in nanoseconds.
    pub nanoseconds: f64,
}

type Case = (&'static str, fn(&mut Bench<'_>) -> Result<String, Failure>);

/// What every open runs.
const SHORT: [Case; 3] = [
    ("fence", packet_cases::fence),
    ("write-data", packet_cases::write_data),
    ("dispatch-indirect-buffer", dispatch_cases::dispatch),
];

/// What `pm4-test` runs besides.
const REST: [Case; 22] = [
    ("nop", packet_cases::nop),
    ("write-data-no-increment", packet_cases::write_data_no_increment),
    ("copy-data-immediate", packet_cases::copy_data_immediate),
    ("copy-data-memory", packet_cases::copy_data_memory),
    ("copy-data-clock", packet_cases::copy_data_clock),
    ("release-mem-low-32", packet_cases::release_mem_low_32),
    ("release-mem-timestamp", packet_cases::release_mem_timestamp),
    ("release-mem-interrupt", packet_cases::release_mem_interrupt),
    ("wait-reg-mem", packet_cases::wait_reg_mem),
    ("wait-reg-mem-host", packet_cases::wait_reg_mem_host),
    ("set-sh-reg-dispatch-direct", dispatch_cases::dispatch_in_ring),
    ("event-write-partial-flush", dispatch_cases::partial_flush),
    ("acquire-mem", dispatch_cases::acquire),
    ("dispatch-chain-barrier", dispatch_cases::chain),
    ("workgroup-ids", dispatch_cases::workgroup_ids),
    ("lds-workgroup-barrier", dispatch_cases::reverse),
    ("global-atomics", dispatch_cases::atomics),
    ("graph-replay", dispatch_cases::replay),
    ("device-local-transfers", queue_cases::transfers),
    ("ring-wrap", queue_cases::ring_wrap),
    ("submissions-in-flight", queue_cases::in_flight),
    ("round-trip", queue_cases::round_trip),
];

/// Runs the cases in order. Stops after the first failure where the device is then lost, or the extent is short.
pub fn run(device: &mut Device, extent: Extent) -> Vec<CaseReport> {
    run_within(device, extent, CASE_DEADLINE)
}

/// The same with another deadline for every wait.
pub(crate) fn run_within(device: &mut Device, extent: Extent, deadline: Duration) -> Vec<CaseReport> {
    let rest: &[Case] = if extent == Extent::Full { &REST } else { &[] };
    let mut reports = Vec::new();
    for (case, test) in SHORT.iter().chain(rest) {
        let start = Instant::now();
        let mut timings = Vec::new();
        let outcome = Bench::new(device, &mut timings, deadline).and_then(|mut bench| test(&mut bench));
        let outcome = outcome.map_err(|failure| failure.0);
        let failed = outcome.is_err();
        reports.push(CaseReport { case, outcome, duration: start.elapsed(), timings });
        if failed && (extent == Extent::Short || device.is_lost()) {
            break;
        }
    }
    reports
}

/// The error of a device that failed a case.
pub(crate) fn refusal(device: &Device, reports: &[CaseReport]) -> Option<DeviceError> {
    reports.iter().find_map(|report| {
        let observed = report.outcome.as_ref().err()?.clone();
        Some(DeviceError::SelfTest { device: device.name().into(), case: report.case, observed })
    })
}

/// Cases of an extent, in order: a report with fewer was cut short.
pub fn case_count(extent: Extent) -> usize {
    if extent == Extent::Full { SHORT.len() + REST.len() } else { SHORT.len() }
}
