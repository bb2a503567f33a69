//! The order of the cases and the stop rule, over a virtual device of which one part does not work.

mod texts;
mod wrong;

use super::{CaseReport, Extent, Outcome, case_count, refusal, run, run_each, run_within};
use crate::{DeviceChoice, Inspect, OpenOptions, PlantedFault, VirtualOptions};
use std::time::{Duration, Instant};
use zrt_device::{Attachment, Device};
use zrt_kmd::{MemoryKind, Syscalls};
use zrt_mem::{ByteLen, Heap};
use zrt_vgpu::kernel::OBJECTS_PATH;
use zrt_vgpu::{Config, FaultInjection, VirtualGpu};

/// A whole run, however dead the device, ends within this.
const RUN_SECONDS_MAX: u64 = 15;

fn open(planted: Option<PlantedFault>) -> Device {
    let virtual_device = VirtualOptions { planted, ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, self_test: false, ..OpenOptions::default() };
    crate::open(DeviceChoice::Virtual, &options).unwrap()
}

/// With everything in system memory, in a run over VRAM that no fetch sees.
#[test]
fn a_run_in_system_memory_uses_no_vram() {
    let gpu = VirtualGpu::with_injection(
        Config::default(),
        FaultInjection { planted: Some(PlantedFault::CodeNotVisible), ..FaultInjection::default() },
    )
    .unwrap();
    let options = OpenOptions { gtt_only: true, self_test: false, ..OpenOptions::default() };
    let process = Attachment::over(gpu.clone()).unwrap();
    let mut device = crate::open_over(&process, &options).unwrap();
    let in_vram = || {
        let text = String::from_utf8(gpu.read_file(OBJECTS_PATH).unwrap()).unwrap();
        text.lines().filter(|line| is_vram(line)).count()
    };
    for heap in [Heap::DeviceLocal, Heap::HostVisible, Heap::Host] {
        assert_eq!(device.allocate(heap, ByteLen(4096), "anywhere").unwrap().kind(), MemoryKind::Gtt);
    }
    let reports = run(&mut device, Extent::Full);
    let skipped = ["write-data-vram", "indirect-buffer-vram", "dispatch-code-vram", "global-atomics"];
    for report in &reports {
        let is_expected = match report.outcome {
            Outcome::Skipped(_) => skipped.contains(&report.case),
            Outcome::Passed(_) => !skipped.contains(&report.case),
            _ => false,
        };
        assert!(is_expected, "{report:?}");
    }
    // The end-of-pipe buffer and the context save area: the driver's, not ours.
    assert_eq!(in_vram(), 2);
    device.close().unwrap();
}

/// Whether a line of the virtual driver's list of objects is of one in VRAM (`KFD_IOC_ALLOC_MEM_FLAGS_VRAM`).
fn is_vram(line: &str) -> bool {
    let flags = line.split_once("flags 0x").and_then(|(_, rest)| rest.split(' ').next());
    flags.is_some_and(|flags| u32::from_str_radix(flags, 16).unwrap() & 1 != 0)
}

fn failures(reports: &[CaseReport]) -> Vec<&'static str> {
    reports.iter().filter(|report| report.outcome.failure().is_some()).map(|report| report.case).collect()
}

/// Runs everything on a device with a planted fault, with the deadlines that a user meets.
fn run_planted(planted: PlantedFault) -> Vec<CaseReport> {
    let mut device = open(Some(planted));
    let start = Instant::now();
    let reports = run(&mut device, Extent::Full);
    // A queue that hangs may be reported as such when it is destroyed.
    let _ = device.close();
    assert!(start.elapsed() < Duration::from_secs(RUN_SECONDS_MAX), "{planted}: {:?}", start.elapsed());
    assert_eq!(reports.len(), case_count(Extent::Full));
    reports
}

/// The run of a planted fault: checks which case fails first, and that nothing is run after a hang.
fn check_planted(planted: PlantedFault, first: &str, says: &[&str]) {
    let reports = run_planted(planted);
    assert_eq!(failures(&reports).first(), Some(&first), "{planted}");
    let at = reports.iter().position(|report| report.case == first).unwrap();
    let text = reports[at].outcome.failure().unwrap();
    for part in says {
        assert!(text.contains(part), "{planted}: {text}");
    }
    for report in &reports[..at] {
        assert!(matches!(report.outcome, Outcome::Passed(_)), "{planted}: {report:?}");
    }
    if text.contains("did not finish within") {
        assert_eq!(failures(&reports), [first], "{planted}");
        assert!(reports[at + 1..].iter().all(|report| report.outcome == Outcome::NotRun), "{planted}");
    }
}

#[test]
fn each_planted_fault_fails_the_case_that_names_it() {
    let expected: [(PlantedFault, &str, &[&str]); 5] = [
        (
            PlantedFault::QueueNeverReads,
            "fence",
            &["ring read to 0 of 8 dwords", "the doorbell was not seen", "00000: c0064900 RELEASE_MEM"],
        ),
        (
            PlantedFault::EndOfPipeNeverWrites,
            "fence",
            &["ring read to 8 of 8 dwords", "begins, all read", "00000: c0064900 RELEASE_MEM"],
        ),
        (
            PlantedFault::IndirectBufferRefused,
            "indirect-buffer-gtt",
            &["did not finish within", "00008: c0023f00 INDIRECT_BUFFER"],
        ),
        (PlantedFault::CodeNotVisible, "dispatch-code-vram", &["did not finish within"]),
        (PlantedFault::ScalarLoadsZero, "dispatch-s-load", &["is 0x00000000, expected 0x10aded01"]),
    ];
    std::thread::scope(|scope| {
        for (planted, first, says) in expected {
            scope.spawn(move || check_planted(planted, first, says));
        }
    });
}

#[test]
fn a_root_port_without_atomics_is_noted_and_fails_nothing() {
    let mut device = open(Some(PlantedFault::NoPcieAtomics));
    let reports = run(&mut device, Extent::Full);
    assert_eq!(failures(&reports), [""; 0]);
    let noted: Vec<&CaseReport> =
        reports.iter().filter(|report| matches!(report.outcome, Outcome::Noted(_))).collect();
    assert_eq!(noted.iter().map(|report| report.case).collect::<Vec<_>>(), ["global-atomics-gtt"]);
    assert!(noted[0].outcome.text().starts_with("0 of 32000 additions"), "{}", noted[0].outcome.text());
    device.close().unwrap();
}

#[test]
fn the_short_extent_stops_at_any_failure_and_its_refusal_names_the_suspect() {
    let mut device = open(Some(PlantedFault::ScalarLoadsZero));
    let reports = run_within(&mut device, Extent::Short, Duration::from_secs(5), &mut |_| {});
    assert_eq!(failures(&reports), ["dispatch-s-load"]);
    assert_eq!(reports.last().unwrap().outcome, Outcome::NotRun);
    let text = refusal(&device, &reports).unwrap().to_string();
    assert!(
        text.starts_with(
            "Virtual R9700 (gfx1201) failed the self-test case \"dispatch-s-load\" (new in it: a scalar load from system \
             memory) and is refused: the dword that a scalar load read is 0x00000000"
        ),
        "{text}"
    );
    assert!(text.ends_with("; `zrt pm4-test` on this device runs every case"), "{text}");
}

#[test]
fn every_case_says_what_is_new_in_it() {
    let mut device = open(None);
    let mut told = Vec::new();
    let reports = run_each(&mut device, Extent::Full, &mut |report| told.push(report.case));
    assert_eq!(told, reports.iter().map(|report| report.case).collect::<Vec<_>>());
    let mut names: Vec<&str> = reports.iter().map(|report| report.case).collect();
    assert_eq!(names.last(), Some(&"ring-wrap"));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), reports.len());
    let mut suspects: Vec<&str> = reports.iter().map(|report| report.suspect).collect();
    suspects.sort_unstable();
    suspects.dedup();
    assert_eq!(suspects.len(), reports.len());
    for report in &reports {
        assert!(matches!(report.outcome, Outcome::Passed(_)), "{report:?}");
    }
}

#[test]
fn the_checking_mode_finds_nothing_in_the_self_test() {
    let virtual_device = VirtualOptions { check: true, ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, self_test: false, ..OpenOptions::default() };
    let mut device = crate::open(DeviceChoice::Virtual, &options).unwrap();
    let reports = run(&mut device, Extent::Full);
    assert_eq!(failures(&reports), [""; 0]);
    let findings: Vec<String> =
        device.findings().unwrap().iter().map(|finding| format!("{finding:?}")).collect();
    assert_eq!(findings, [""; 0]);
}
