//! Launching a case on a device that checks.

use crate::case::Case;
use std::time::{Duration, Instant};
use zrt_bringup::{Finding, Inspect, OpenOptions};
use zrt_device::{Attachment, Buffer, Device, Ticket};
use zrt_mem::{ByteLen, Heap};
use zrt_tests::assembly::{Code, Shape, assemble, container};
use zrt_vgpu::config::Inspection;
use zrt_vgpu::{Config, VirtualGpu};

/// How long a launch may take that neither ends nor is found wrong.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// How long a launch that was found wrong may go on, for further findings.
const GRACE: Duration = Duration::from_millis(20);

/// Loads the addresses of the buffers: s[4:5] input, s[6:7] output, s[8:9] flag, s[10:11] other; v1 is the byte
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

/// The whole source of a kernel.
pub fn source_of(body: &str) -> String {
    format!("{BEGIN}{body}{END}")
}

/// The code of a body.
pub fn code_of(body: &str) -> Code {
    assemble(&source_of(body))
}

/// A launch in progress.
pub struct Launch {
    pub device: Device,
    /// Input, output, flag, other.
    pub buffers: [Buffer; 4],
    ticket: Ticket,
    /// Kept as long as the kernel may run.
    _kept: (Buffer, zrt_device::Kernel, zrt_device::Graph),
}

/// The outcome of a launch.
pub struct Outcome {
    pub findings: Vec<Finding>,
    pub has_ended: bool,
    pub buffers: [Buffer; 4],
    /// Dword 1 of the buffer `other`.
    pub received: u32,
}

impl Launch {
    pub fn new(case: &Case, code: &Code, seed: u64) -> Launch {
        let shape = Shape { name: case.name, work_items: case.work_items, lds_bytes: case.lds_bytes };
        // Small enough that a group with all of the LDS keeps every other out.
        let inspection = Inspection { check: true, ..Inspection::default() };
        let config = Config { compute_units: case.compute_units, seed, inspection, ..Config::default() };
        let gpu = VirtualGpu::new(config).expect("powers up");
        let process = Attachment::over(gpu.clone()).expect("the board's one process");
        let mut device = zrt_bringup::open_over(&process, &OpenOptions::default()).expect("opens");
        let kernel = device.load_kernel(&container(&shape, code)).expect("loads");
        let len = ByteLen(case.buffer_bytes);
        let buffers = ["input", "output", "flag", "other"].map(|label| {
            let heap = if case.shared.contains(&label) { Heap::HostShared } else { Heap::HostVisible };
            device.allocate(heap, len, label).expect("allocates")
        });
        for buffer in &buffers {
            device.upload(buffer, ByteLen(0), &vec![0; len.0 as usize]).expect("uploads");
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
        Launch { device, buffers, ticket, _kept: (parameters, kernel, graph) }
    }

    /// Waits for its end, or until it was found wrong and hangs.
    pub fn finish(self) -> Outcome {
        let (start, mut found) = (Instant::now(), None);
        while !self.device.is_done(self.ticket) && start.elapsed() < DEADLINE {
            // A wrong kernel may hang: what matters is that it was found.
            if found.is_none() && !self.device.findings().expect("readable").is_empty() {
                found = Some(Instant::now());
            }
            if found.is_some_and(|found| found.elapsed() > GRACE) {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let has_ended = self.device.is_done(self.ticket);
        let received = self.buffers[3].view().expect("visible").load_u32(4);
        let findings = self.device.findings().expect("readable");
        Outcome { has_ended, findings, buffers: self.buffers, received }
    }
}
