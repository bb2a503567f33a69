//! Waits, their ends, and what is told of work that does not end.

use super::seam::Seam;
use super::{END, ENDLESS, PATIENCE, STORE, board, one_dispatch, open, open_over, options, stopped};
use crate::memory::Space;
use crate::submit::SubmissionQueue;
use crate::{Attachment, Device, DeviceError, DeviceOptions, Heap, StopCause, Ticket};
use std::time::Duration;
use zrt_kmd::{Queue, Topology};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::{Config, FaultInjection, READ_POINTER_NEVER_DWORDS, VirtualGpu};

/// How often a long wait asks the driver.
const POLL: Duration = Duration::from_millis(50);
/// A wait that the driver would be asked in more than once.
const LONG: Duration = Duration::from_millis(120);
/// A packet of two dwords that does nothing (hardware reference §4.2).
const NOP: [u32; 2] = [0xc000_1000, 0];

/// Submits a kernel that writes behind a buffer of one page.
fn fault(device: &mut Device) -> Ticket {
    let data = device.allocate(Heap::Host, ByteLen(4096), "data").unwrap();
    let (graph, kernel) = one_dispatch(device, "store", STORE, GpuVa(data.va.0 + 4096));
    let ticket = device.submit(&graph).unwrap();
    device.keep(vec![Box::new((data, graph, kernel))]);
    ticket
}

#[test]
fn the_driver_is_asked_now_and_then_and_not_while_a_wait_spins() {
    let asked = |spin_us| {
        let seam = Seam::new(("", ""));
        let mut device = open_over(seam.clone(), &DeviceOptions { spin_us, ..options() });
        let (graph, _kernel) = one_dispatch(&mut device, "endless", ENDLESS, GpuVa(0));
        let ticket = device.submit(&graph).unwrap();
        let before = seam.waits();
        let diagnosis = stopped(device.wait(ticket, LONG).unwrap_err());
        assert!(diagnosis.cause == StopCause::Deadline && diagnosis.waited >= LONG, "{diagnosis}");
        (seam.waits() - before, diagnosis.waited)
    };
    let (waits, waited) = asked(0);
    let most = waited.as_millis() / POLL.as_millis() + 1;
    assert!(waits >= 1 && waits as u128 <= most, "{waits} times in {waited:?}");
    let (waits, _) = asked(LONG.as_micros() as u64);
    assert_eq!(waits, 1, "at the deadline");
}

#[test]
fn a_fault_ends_a_wait_and_is_told_with_its_place() {
    let mut device = open_over(board(true), &DeviceOptions { spin_us: 0, ..options() });
    let ticket = fault(&mut device);
    let diagnosis = stopped(device.wait(ticket, PATIENCE).unwrap_err());
    assert!(matches!(diagnosis.cause, StopCause::MemoryFault(_)), "{diagnosis}");
    assert!(diagnosis.waited >= POLL, "the driver is not asked before");
    assert_eq!(diagnosis.place.as_deref(), Some("0 bytes past the end of data"));
    assert!(device.is_lost() && !device.is_done(ticket));
}

#[test]
fn the_end_of_a_slice_is_no_failure_and_a_fault_is() {
    let mut device = open(true);
    let (graph, _kernel) = one_dispatch(&mut device, "end", END, GpuVa(0));
    let ticket = device.submit(&graph).unwrap();
    assert!(device.wait_at_most(ticket, PATIENCE).unwrap());
    assert!(device.wait_at_most(ticket, Duration::ZERO).unwrap(), "it stays done");
    let (graph, _endless) = one_dispatch(&mut device, "endless", ENDLESS, GpuVa(0));
    let ticket = device.submit(&graph).unwrap();
    for _ in 0..2 {
        assert!(!device.wait_at_most(ticket, Duration::from_millis(1)).unwrap());
    }
    assert!(!device.is_lost());

    let mut device = open(true);
    let ticket = fault(&mut device);
    // The first slices may end before the fault.
    let mut slices = (0..2_000).map(|_| device.wait_at_most(ticket, Duration::from_millis(5)));
    let error = slices.find_map(|slice| slice.map(|is_done| assert!(!is_done)).err());
    let error = error.expect("a fault within ten seconds of slices");
    assert!(matches!(stopped(error).cause, StopCause::MemoryFault(_)) && device.is_lost());
}

/// Submissions behind a fault wait for room that never comes; the last one is what is waited for.
#[test]
fn a_full_ring_of_a_faulted_device_ends_at_the_last_submission() {
    let mut device = open(true);
    let _ = fault(&mut device);
    let mut submitted = 1;
    let error = loop {
        match device.submit_words(&[NOP; 16].concat()) {
            Ok(_) => submitted += 1,
            Err(error) => break error,
        }
        assert!(submitted < 1024, "a page holds 1024 dwords");
    };
    assert!(submitted > 2, "{submitted}");
    let diagnosis = stopped(error);
    assert_eq!(diagnosis.fence_expected, submitted);
    assert_eq!(diagnosis.work, format!("submission {submitted}, 17 packets in the ring"));
}

/// Three times what a page of ring holds.
#[test]
fn a_full_ring_is_waited_for() {
    let mut device = open(true);
    let words = NOP.repeat(16);
    for count in 1..=100 {
        let ticket = device.submit_words(&words).unwrap();
        assert_eq!(device.counters().unwrap().submissions, count);
        if count == 100 {
            device.wait(ticket, PATIENCE).unwrap();
        }
    }
    assert_eq!(device.progress(), 100);
}

fn queue(read_pointer_block_dwords: Option<u64>) -> (SubmissionQueue, std::sync::Arc<Attachment>) {
    let injection = FaultInjection { read_pointer_block_dwords, ..FaultInjection::default() };
    let gpu = VirtualGpu::with_injection(Config::default(), injection).unwrap();
    let process = Attachment::over(gpu).unwrap();
    let topology = Topology::read(process.process().syscalls()).unwrap();
    let vm = process.vm(topology.first_supported().unwrap()).unwrap();
    let space = Space::new(&vm, false).unwrap();
    let queue = SubmissionQueue::new(&space, Queue::create(&vm, ByteLen(4096)).unwrap()).unwrap();
    (queue, process)
}

/// Waits until something is so, and no longer than what is waited for anywhere here.
fn until(is_so: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it is not so yet");
        std::thread::yield_now();
    }
}

/// The last 64 submissions are remembered.
#[test]
fn old_submissions_are_forgotten_and_said_by_number() {
    let (mut queue, _process) = queue(None);
    assert_eq!(queue.describe(0), "submission 0");
    let mut starts = vec![0];
    for value in 1..=66 {
        starts.push(queue.observe(0).write_pointer);
        let nops = NOP.repeat(1 + value as usize % 3);
        assert_eq!(queue.submit_words(&nops).unwrap(), value);
        assert_eq!(queue.last_fence(), value);
        until(|| queue.is_done(value) && queue.observe(0).read_pointer == queue.observe(0).write_pointer);
    }
    assert_eq!(queue.describe(66), "submission 66, 2 packets in the ring", "with the fence's");
    assert_eq!(queue.describe(65), "submission 65, 4 packets in the ring");
    assert_eq!(queue.describe(3), "submission 3, 2 packets in the ring");
    for forgotten in [0, 1, 2, 67] {
        assert_eq!(queue.describe(forgotten), format!("submission {forgotten}"));
    }
    let end = queue.observe(0).write_pointer;
    for (value, position) in [(66, starts[66]), (40, starts[40]), (3, starts[3])] {
        let ring = queue.excerpt(value);
        assert_eq!((ring.position, ring.is_all_read), (position, true), "{value}");
        assert_eq!(ring.published as u64, (end - position).min(16));
    }
    // The end of the ring is shown instead.
    for forgotten in [1, 2, 67] {
        let ring = queue.excerpt(forgotten);
        assert_eq!((ring.position, ring.is_all_read, ring.published), (end - 16, true, 16), "{forgotten}");
    }
}

#[test]
fn a_ring_that_is_not_all_read_is_shown_from_the_read_pointer() {
    let (mut queue, _process) = queue(Some(READ_POINTER_NEVER_DWORDS));
    let _ = queue.submit_words(&[0xc000_1000, 0x1234]).unwrap();
    let last = queue.submit_words(&NOP.repeat(10)).unwrap();
    let ring = queue.excerpt(last);
    assert_eq!((ring.position, ring.is_all_read, ring.published), (0, false, 16));
    assert_eq!(ring.words[..2], [0xc000_1000, 0x1234]);
    until(|| queue.is_done(last));
}

/// A wave that cannot be stopped: destroying its queue resets the GPU, and the driver says so.
#[test]
fn closing_says_what_was_not_released() {
    let mut device = open(true);
    let (graph, _kernel) = one_dispatch(&mut device, "illegal", &[0xffff_ffff], GpuVa(0));
    let ticket = device.submit(&graph).unwrap();
    // Long enough for the wave to have begun on a busy machine.
    let _ = device.wait(ticket, Duration::from_secs(1)).unwrap_err();
    let error = device.close().unwrap_err();
    assert!(matches!(error, DeviceError::Teardown(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("closing the device failed: ") && text.contains("DESTROY_QUEUE"), "{text}");
    open(true).close().unwrap();
}
