//! The checking mode judged: small wrong kernels that break one rule each, and right twins that break none.
//!
//! Every case runs under several schedules. The wrong kernel must be caught by exactly its rule in at least one of
//! them; the right twin must not be flagged in any.

mod registers;
mod shared;

use std::time::{Duration, Instant};
use zrt_device::{Device, Finding, OpenOptions};
use zrt_mem::{ByteLen, Heap};
use zrt_tests::assembly::{Shape, assemble, container, has_tools};
use zrt_vgpu::config::Inspection;
use zrt_vgpu::{Config, VirtualGpu};

/// Schedules of a case.
const SEEDS: u64 = 8;
/// How long a launch may take that neither ends nor is found wrong.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a launch that was found wrong may go on, for further findings.
const GRACE: Duration = Duration::from_millis(20);
/// Bytes of each of the four buffers that a case has.
const BUFFER_BYTES: u64 = 4000;

/// One rule broken once.
struct Case {
    name: &'static str,
    rule: &'static str,
    /// Work-items per group and groups.
    work_items: u16,
    groups: u32,
    lds_bytes: u32,
    compute_units: u32,
    wrong: &'static str,
    right: &'static str,
}

/// Loads the addresses of the buffers: s[4:5] input, s[6:7] output, s[8:9] flag, s[10:11] another; v1 is the byte
/// offset of the work-item's dword; s13 is the first work-item of the wave.
const BEGIN: &str = "
    s_load_b256 s[4:11], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_readfirstlane_b32 s13, v0
    s_wait_kmcnt 0x0
";
const END: &str = "
    s_endpgm
    .fill 64, 4, 0xbf9f0000
";

/// What a launch came to.
struct Outcome {
    findings: Vec<Finding>,
    has_ended: bool,
}

fn code_of(body: &str) -> Vec<u8> {
    assemble(&format!("{BEGIN}{body}{END}"))
}

fn launch(case: &Case, code: &[u8], seed: u64) -> Outcome {
    let shape = Shape { name: case.name, work_items: case.work_items, lds_bytes: case.lds_bytes };
    // Small enough that a group with all of the LDS keeps every other out.
    let inspection = Inspection { check: true, ..Inspection::default() };
    let config = Config { compute_units: case.compute_units, seed, inspection, ..Config::default() };
    let gpu = VirtualGpu::new(config).expect("powers up");
    let mut device = Device::open_over(gpu.clone(), true, &OpenOptions::default()).expect("opens");
    let kernel = device.load_kernel(&container(&shape, code)).expect("loads");
    let labels = ["input", "output", "flag", "other"];
    let buffers = labels
        .map(|label| device.allocate(Heap::HostVisible, ByteLen(BUFFER_BYTES), label).expect("allocates"));
    for buffer in &buffers {
        let zeros = vec![0; BUFFER_BYTES as usize];
        device.upload(buffer, ByteLen(0), &zeros).expect("uploads");
    }
    let parameters = device.allocate(Heap::HostVisible, ByteLen(32), "parameters").expect("allocates");
    let block: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.va.0.to_le_bytes()).collect();
    device.upload(&parameters, ByteLen(0), &block).expect("uploads");
    let mut recorder = device.recorder(1).expect("records");
    recorder.dispatch(&kernel, parameters.va, [case.groups, 1, 1]).expect("records");
    let graph = recorder.finish().expect("records");
    for (name, va, len) in device.allocations() {
        gpu.watch_region(&name, va.0, len.0);
    }
    let ticket = device.submit(&graph).expect("submits");
    let (start, mut found) = (Instant::now(), None);
    while !device.is_done(ticket) && start.elapsed() < DEADLINE {
        // A wrong kernel may hang: what matters is that it was found.
        if found.is_none() && !device.findings().expect("readable").is_empty() {
            found = Some(Instant::now());
        }
        if found.is_some_and(|found| found.elapsed() > GRACE) {
            break;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Outcome { has_ended: device.is_done(ticket), findings: device.findings().expect("readable") }
}

fn check(case: &Case) {
    let mut is_caught = false;
    let [wrong_code, right_code] = [case.wrong, case.right].map(code_of);
    for seed in 0..SEEDS {
        let wrong = launch(case, &wrong_code, seed);
        for finding in &wrong.findings {
            assert_eq!(finding.rule, case.rule, "{}, wrong, seed {seed}: {finding}", case.name);
            assert_eq!(finding.seed, seed, "{}: a finding names the seed that repeats it", case.name);
            let place = finding.place.as_ref().expect("an instruction is to blame");
            assert_eq!(place.kernel.as_deref(), Some(case.name));
            assert!(!finding.remedy.is_empty() && !finding.what.is_empty());
        }
        is_caught |= !wrong.findings.is_empty();
        let right = launch(case, &right_code, seed);
        assert!(right.findings.is_empty(), "{}, right, seed {seed}: {}", case.name, right.findings[0]);
        assert!(right.has_ended, "{}, right, seed {seed}: does not end", case.name);
    }
    assert!(is_caught, "{}: not caught in {SEEDS} schedules", case.name);
}

fn check_all(cases: &[Case]) {
    if has_tools() {
        cases.iter().for_each(check);
    }
}

#[test]
fn counters() {
    check_all(registers::COUNTERS);
    check_all(shared::COUNTERS);
}

#[test]
fn hazards() {
    check_all(registers::HAZARDS);
}

#[test]
fn uninitialised() {
    check_all(registers::UNINITIALISED);
    check_all(shared::UNINITIALISED);
}

#[test]
fn races() {
    check_all(shared::RACES);
}

#[test]
fn visibility() {
    check_all(shared::VISIBILITY);
}

#[test]
fn bounds() {
    check_all(shared::BOUNDS);
}

#[test]
fn progress() {
    check_all(shared::PROGRESS);
}

/// A schedule that shows a race is found by its seed again, with the same findings.
#[test]
fn a_seed_repeats_its_findings() {
    if !has_tools() {
        return;
    }
    let case = &shared::RACES[0];
    let code = code_of(case.wrong);
    for seed in 0..4 {
        let [first, second] = [(); 2].map(|()| launch(case, &code, seed).findings);
        let shape = |findings: &[Finding]| {
            let key = |finding: &Finding| {
                let place = finding.place.as_ref().map(|place| place.offset);
                (finding.rule.clone(), place, finding.workgroup, finding.wave, finding.lane, finding.count)
            };
            findings.iter().map(key).collect::<Vec<_>>()
        };
        assert_eq!(shape(&first), shape(&second), "seed {seed}");
    }
}
