//! The device over the virtual R9700: every promise of `zrt-device`'s documentation and of this crate's.

mod seams;

use crate::open::card_or_virtual;
use crate::selftest::kernels::{ENDLESS, PATTERN, STEP, TestKernel};
use crate::selftest::{self, Extent, Outcome};
use crate::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_device::{
    Attachment, Buffer, Device, DeviceError, DeviceOptions, Diagnosis, Graph, Heap, Kernel, ProcessLoss,
    StopCause,
};
use zrt_kmd::{KmdError, MemoryKind, Syscalls};
use zrt_mem::{ByteLen, GpuVa};
use zrt_pm4::Writer;
use zrt_vgpu::kernel::OBJECTS_PATH;
use zrt_vgpu::{Config, FaultInjection, READ_POINTER_NEVER_DWORDS, VirtualGpu};

const SECOND: Duration = Duration::from_secs(1);
/// Deadline of work that must finish on a loaded host.
const PATIENCE: Duration = Duration::from_secs(30);

fn open_virtual(options: &OpenOptions) -> Device {
    open(DeviceChoice::Virtual, options).unwrap()
}

fn untested(options: &OpenOptions) -> OpenOptions {
    OpenOptions { self_test: false, ..options.clone() }
}

fn small_ring() -> OpenOptions {
    OpenOptions { ring_bytes: ByteLen(4096), ..OpenOptions::default() }
}

fn with_virtual(virtual_device: VirtualOptions) -> OpenOptions {
    OpenOptions { virtual_device, ring_bytes: ByteLen(4096), ..OpenOptions::default() }
}

/// A graph of one dispatch with a parameter block (address, key), and what it names.
fn one_dispatch(
    device: &mut Device,
    test_kernel: TestKernel,
    address: GpuVa,
    groups: u32,
) -> (Graph, Kernel, Buffer) {
    let kernel = test_kernel.load(device).unwrap();
    let parameters = device.allocate(Heap::HostVisible, ByteLen(16), "parameters").unwrap();
    device.upload(&parameters, ByteLen(0), &address.0.to_le_bytes()).unwrap();
    device.upload(&parameters, ByteLen(8), &[1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut recorder = device.recorder(1).unwrap();
    recorder.dispatch(&kernel, parameters.va, [groups, 1, 1]).unwrap();
    (recorder.finish().unwrap(), kernel, parameters)
}

fn stopped(outcome: Result<(), DeviceError>) -> Box<Diagnosis> {
    match outcome {
        Err(DeviceError::Stopped(diagnosis)) => diagnosis,
        other => panic!("expected a stopped device, got {other:?}"),
    }
}

#[test]
fn the_whole_self_test_passes_on_every_kind_of_virtual_device() {
    let kinds = [
        OpenOptions::default(),
        small_ring(),
        with_virtual(VirtualOptions { small_bar: true, ..VirtualOptions::default() }),
        with_virtual(VirtualOptions { scheduler_seed: Some(7), ..VirtualOptions::default() }),
        with_virtual(VirtualOptions { threads: Some(1), small_bar: true, ..VirtualOptions::default() }),
    ];
    for options in kinds {
        let mut device = open(DeviceChoice::Virtual, &untested(&options)).unwrap();
        let reports = selftest::run(&mut device, Extent::Full);
        for report in &reports {
            let small_bar = options.virtual_device.small_bar;
            let is_expected = match report.outcome {
                Outcome::Passed(_) => true,
                Outcome::Skipped(_) => small_bar && report.case.ends_with("-vram"),
                _ => false,
            };
            assert!(is_expected, "{options:?}: {}: {:?}", report.case, report.outcome);
        }
        assert_eq!(reports.len(), selftest::case_count(Extent::Full));
        assert_eq!(device.faults(), [], "{options:?}");
        device.close().unwrap();
    }
}

#[test]
fn a_device_says_what_it_is() {
    let device = open_virtual(&OpenOptions::default());
    assert_eq!(device.name(), "Virtual R9700 (gfx1201)");
    assert!(device.is_virtual() && !device.is_lost());
    let info = device.info();
    assert_eq!((info.compute_units, info.pci_id), (64, (0x1002, 0x7551)));
    assert_eq!(info.render_node, "/dev/dri/renderD128");
    assert!(info.has_large_bar);
}

/// Everything from the tier is passed in with the options: without them a device over the same driver is like any
/// card's.
#[test]
fn a_device_opened_without_a_tier_knows_none() {
    let process = Attachment::over(VirtualGpu::new(Config::default()).unwrap()).unwrap();
    let mut device = Device::open(&process, &DeviceOptions::default()).unwrap();
    assert_eq!(device.name(), "Radeon R9700 (gfx1201)");
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, ENDLESS, GpuVa(0), 1);
    let ticket = device.submit(&graph).unwrap();
    let diagnosis = stopped(device.wait(ticket, Duration::from_millis(50)));
    assert!(diagnosis.device_log.is_empty() && diagnosis.waves.is_empty(), "{diagnosis}");
    assert!(diagnosis.to_string().contains("no event was reported"), "{diagnosis}");
    let counters = device.counters().unwrap();
    assert_eq!((counters.submissions, counters.wave_instructions), (1, None));
    // Asked through the seam, the same driver reports it.
    assert_eq!(device.waves().unwrap().list.len(), 1);
    // A witness is asked if the opener names one.
    let mut seen = open_over(&process, &small_ring()).unwrap();
    assert_eq!(seen.name(), "Virtual R9700 (gfx1201)");
    let (graph, _kernel, _parameters) = one_dispatch(&mut seen, ENDLESS, GpuVa(0), 1);
    let ticket = seen.submit(&graph).unwrap();
    let diagnosis = stopped(seen.wait(ticket, Duration::from_millis(50)));
    assert!(!diagnosis.waves.is_empty() && seen.counters().unwrap().wave_instructions.is_some());
}

/// No case opens the machine's own card: its self-test would run on the card that drives somebody's screen.
#[test]
fn auto_is_the_card_or_says_why_there_is_none() {
    let options = OpenOptions::default();
    let Opened { device, no_card } = card_or_virtual(Ok(open_virtual(&options)), &options).unwrap();
    assert!(device.is_virtual() && no_card.is_none(), "what was opened, here a stand-in for the card");
    let none = || OpenError::NotOpenable { choice: "kfd", reason: "there is none" };
    let Opened { device, no_card } = card_or_virtual(Err(none()), &options).unwrap();
    assert!(device.is_virtual());
    assert_eq!(no_card.unwrap().to_string(), none().to_string());
    let lost = OpenError::from(DeviceError::Kmd(KmdError::ProcessLost { loss: ProcessLoss::Reset }));
    let refused = card_or_virtual(Err(lost), &options).unwrap_err().to_string();
    assert!(refused.contains("reset"), "{refused}");
}

#[test]
fn choices_that_are_no_device_say_so() {
    let refused = |choice| open(choice, &OpenOptions::default()).unwrap_err().to_string();
    assert_eq!(
        refused(DeviceChoice::Cpu),
        "the device \"cpu\" cannot be opened: it is the oracle of the engine, not a device; choose auto, virtual or kfd"
    );
    assert!(refused(DeviceChoice::Userq).contains("user queues are not driven yet"));
}

#[test]
fn heaps_lie_where_the_bar_allows() {
    let mut large = open_virtual(&OpenOptions::default());
    let kind = |device: &mut Device, heap| device.allocate(heap, ByteLen(4096), "heap").unwrap().kind();
    assert_eq!(kind(&mut large, Heap::HostVisible), MemoryKind::VramPublic);
    assert_eq!(kind(&mut large, Heap::HostShared), MemoryKind::VramShared);
    assert_eq!(kind(&mut large, Heap::Host), MemoryKind::Gtt);
    assert_eq!(kind(&mut large, Heap::HostCached), MemoryKind::GttCached);
    let mut small =
        open_virtual(&with_virtual(VirtualOptions { small_bar: true, ..VirtualOptions::default() }));
    assert_eq!(kind(&mut small, Heap::DeviceLocal), MemoryKind::Vram);
    assert_eq!(kind(&mut small, Heap::HostVisible), MemoryKind::Gtt);
    assert_eq!(kind(&mut small, Heap::HostShared), MemoryKind::Gtt);
    assert_eq!(kind(&mut small, Heap::HostCached), MemoryKind::GttCached);
    let hidden = small.allocate(Heap::DeviceLocal, ByteLen(4096), "hidden").unwrap();
    assert!(hidden.view.is_none());
}

#[test]
fn a_view_outlives_its_buffer_and_its_device() {
    for heap in [Heap::HostVisible, Heap::HostShared, Heap::Host] {
        let mut device = open_virtual(&small_ring());
        let buffer = device.allocate(heap, ByteLen(8192), "kept").unwrap();
        let view = buffer.view().unwrap().clone();
        view.fill(0, 8192, 0x5a);
        drop(buffer);
        assert_eq!(view.load_u64(4096), 0x5a5a_5a5a_5a5a_5a5a, "the old bytes");
        drop(device);
        assert_eq!(view.load_u64(8184), 0x5a5a_5a5a_5a5a_5a5a);
        view.store_u32(0, 7);
        assert_eq!(view.load_u32(0), 7);
    }
}

/// VRAM holds anything at first: a pattern on the virtual device. System memory from the kernel is zero.
#[test]
fn vram_is_not_zero_before_it_is_written() {
    let first = |options: &OpenOptions, heap| {
        let mut device = open_virtual(options);
        let buffer = device.allocate(heap, ByteLen(5000), "fresh").unwrap();
        let mut dwords = [[0; 4]; 2];
        device.download(&buffer, ByteLen(0), &mut dwords[0]).unwrap();
        device.download(&buffer, ByteLen(4996), &mut dwords[1]).unwrap();
        assert_eq!(dwords[0], dwords[1]);
        u32::from_le_bytes(dwords[0])
    };
    let nan = VirtualOptions { vram_fill: Some(0x7fc0_dead), ..VirtualOptions::default() };
    let one = VirtualOptions { vram_fill: Some(1), ..VirtualOptions::default() };
    for heap in [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared] {
        assert_eq!(first(&with_virtual(nan), heap), 0x7fc0_dead, "{heap}");
        assert_eq!(first(&with_virtual(one), heap), 1, "{heap}");
    }
    assert_eq!(first(&with_virtual(nan), Heap::Host), 0);
    // Without a mapping on the host: what the device itself sees.
    assert_eq!(first(&with_virtual(VirtualOptions { small_bar: true, ..one }), Heap::DeviceLocal), 1);
}

#[test]
fn ranges_outside_a_buffer_are_refused() {
    let mut device = open_virtual(&OpenOptions::default());
    let buffer = device.allocate(Heap::Host, ByteLen(100), "hundred").unwrap();
    for (offset, len) in [(100, 1), (0, 101), (u64::MAX, 2)] {
        let error = device.upload(&buffer, ByteLen(offset), &vec![0; len]).unwrap_err();
        assert!(matches!(error, DeviceError::Range { .. }), "{error}");
        let error = device.download(&buffer, ByteLen(offset), &mut vec![0; len]).unwrap_err();
        assert!(error.to_string().ends_with("outside the buffer hundred of 100 B"), "{error}");
    }
}

#[test]
fn empty_and_overfull_recordings_are_refused() {
    let mut device = open_virtual(&OpenOptions::default());
    assert!(matches!(device.submit(&Graph::default()), Err(DeviceError::EmptyGraph)));
    assert!(matches!(device.recorder(4).unwrap().finish(), Err(DeviceError::EmptyGraph)));
    let kernel = PATTERN.load(&mut device).unwrap();
    let mut recorder = device.recorder(2).unwrap();
    let outcomes: Vec<bool> =
        (0..4).map(|_| recorder.dispatch(&kernel, GpuVa(0x1000), [1, 1, 1]).is_ok()).collect();
    assert_eq!(outcomes[..2], [true, true]);
    let error = recorder.dispatch(&kernel, GpuVa(0x1000), [1, 1, 1]).unwrap_err();
    assert!(matches!(error, DeviceError::RecorderFull { capacity: 2 }), "{error}");
}

#[test]
fn bytes_that_are_no_kernel_are_refused() {
    let mut device = open_virtual(&OpenOptions::default());
    assert!(matches!(device.load_kernel(b"no kernel"), Err(DeviceError::Kernel(_))));
}

/// One page of ring, thousands of submissions, several in flight at a time.
#[test]
fn a_page_of_ring_takes_thousands_of_submissions() {
    const SUBMISSIONS: u32 = 3000;
    let mut device = open_virtual(&small_ring());
    let data = device.allocate(Heap::HostVisible, ByteLen(128), "data").unwrap();
    device.upload(&data, ByteLen(0), &[0; 128]).unwrap();
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, STEP, data.va, 1);
    let before = device.counters().unwrap();
    let mut tickets = Vec::new();
    for submission in 0..SUBMISSIONS {
        tickets.push(device.submit(&graph).unwrap());
        if submission % 97 == 0 {
            device.wait(tickets[tickets.len() / 2], PATIENCE).unwrap();
        }
    }
    let last = tickets[SUBMISSIONS as usize - 1];
    device.wait(last, PATIENCE).unwrap();
    assert!(tickets.iter().all(|ticket| device.is_done(*ticket)));
    let mut bytes = [0; 4];
    device.download(&data, ByteLen(124), &mut bytes).unwrap();
    let expected = (0..SUBMISSIONS).fold(0u32, |value, _| value.wrapping_mul(5).wrapping_add(1));
    assert_eq!(u32::from_le_bytes(bytes), expected);
    let after = device.counters().unwrap();
    // The device polls its doorbells: of several stores between two polls it sees the last.
    assert!(after.doorbells - before.doorbells <= u64::from(SUBMISSIONS));
    assert_eq!(after.dispatches - before.dispatches, u64::from(SUBMISSIONS));
    assert_eq!(after.submissions - before.submissions, u64::from(SUBMISSIONS));
    let waves = after.wave_instructions.unwrap() - before.wave_instructions.unwrap();
    // 14 instructions in the source of the kernel, all of them executed once per submission.
    assert_eq!(waves, 14 * u64::from(SUBMISSIONS));
}

/// The command processor reports its read pointer late, by more than a ring, or never: the fences are enough.
#[test]
fn a_read_pointer_that_is_told_late_or_never_does_not_stall_the_ring() {
    const SUBMISSIONS: u32 = 1000;
    for block in [512, 2048, READ_POINTER_NEVER_DWORDS] {
        let injection =
            FaultInjection { read_pointer_block_dwords: Some(block), ..FaultInjection::default() };
        let gpu = VirtualGpu::with_injection(Config::default(), injection).unwrap();
        let process = Attachment::over(gpu).unwrap();
        let mut device = open_over(&process, &small_ring()).unwrap();
        let data = device.allocate(Heap::HostVisible, ByteLen(128), "data").unwrap();
        device.upload(&data, ByteLen(0), &[0; 128]).unwrap();
        let (graph, _kernel, _parameters) = one_dispatch(&mut device, STEP, data.va, 1);
        let start = Instant::now();
        for _ in 0..SUBMISSIONS {
            let _ = device.submit(&graph).unwrap_or_else(|error| panic!("block {block}: {error}"));
        }
        let last = device.submit_words(&[]).unwrap();
        device.wait(last, PATIENCE).unwrap();
        assert!(start.elapsed() < SECOND * 20, "block {block}: {:?}", start.elapsed());
        let mut bytes = [0; 4];
        device.download(&data, ByteLen(124), &mut bytes).unwrap();
        let expected = (0..SUBMISSIONS).fold(0u32, |value, _| value.wrapping_mul(5).wrapping_add(1));
        assert_eq!(
            u32::from_le_bytes(bytes),
            expected,
            "block {block}: a submission was lost or overwritten"
        );
    }
}

/// A changed instruction in device memory changes the result: the code in memory is the code that runs.
#[test]
fn code_in_memory_is_what_runs() {
    let mut device = open_virtual(&small_ring());
    let data = device.allocate(Heap::HostVisible, ByteLen(128), "data").unwrap();
    let (graph, kernel, _parameters) = one_dispatch(&mut device, PATTERN, data.va, 1);
    let run = |device: &mut Device| {
        let ticket = device.submit(&graph).unwrap();
        device.wait(ticket, PATIENCE).unwrap();
        let mut bytes = [0; 4];
        device.download(&data, ByteLen(4), &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    assert_eq!(run(&mut device), 0);
    // v_xor_b32_e32 v2, s50, v1 becomes v_or_b32_e32 v2, s50, v1: opcode 0x1d becomes 0x1c in bits 30:25.
    let mut code = vec![0; kernel.code_len().0 as usize];
    device.download(kernel.code(), ByteLen(0), &mut code).unwrap();
    let at = code.windows(4).position(|word| word == 0x3a04_0232_u32.to_le_bytes()).unwrap();
    device.upload(kernel.code(), ByteLen(at as u64), &0x3804_0232_u32.to_le_bytes()).unwrap();
    assert_eq!(run(&mut device), 1);
}

#[test]
fn a_page_fault_names_place_and_kernel_and_loses_the_device() {
    let mut device = open_virtual(&OpenOptions::default());
    let data = device.allocate(Heap::Host, ByteLen(4096), "data").unwrap();
    // 64 groups write 8 KiB into 4.
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, PATTERN, data.va, 64);
    let ticket = device.submit(&graph).unwrap();
    let start = Instant::now();
    let diagnosis = stopped(device.wait(ticket, PATIENCE));
    assert!(start.elapsed() < SECOND * 5, "a fault ends the wait at once, not at the deadline");
    let StopCause::MemoryFault(fault) = diagnosis.cause else { panic!("{diagnosis}") };
    assert!(fault.not_present);
    assert_eq!(fault.va, GpuVa(data.va.0 + 4096), "the address is that of the page");
    let text = diagnosis.to_string();
    assert!(text.contains("bytes past the end of data"), "{text}");
    assert!(text.contains("kernel pattern+0x"), "{text}");
    assert!(text.contains("indirect buffer at"), "{text}");
    assert!(device.is_lost());
    let error = device.submit(&graph).unwrap_err();
    assert!(
        matches!(error, DeviceError::Kmd(KmdError::ProcessLost { loss: ProcessLoss::PageFault })),
        "{error}"
    );
}

#[test]
fn a_deadline_is_honoured_and_a_hang_is_told() {
    let mut device = open_virtual(&OpenOptions::default());
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, ENDLESS, GpuVa(0), 1);
    let ticket = device.submit(&graph).unwrap();
    let start = Instant::now();
    let diagnosis = stopped(device.wait(ticket, Duration::from_millis(120)));
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(120) && waited < SECOND, "waited {waited:?}");
    assert_eq!(diagnosis.cause, StopCause::Deadline);
    let text = diagnosis.to_string();
    assert!(text.starts_with("the device did not finish within 12"), "{text}");
    // The virtual device knows where the wave is; nothing is guessed.
    assert!(text.contains("1 wave has not ended: wave 0 of workgroup 0,0,0 runs at endless+0x"), "{text}");
    assert!(!text.contains("the queue is stuck"), "{text}");
    assert!(text.contains("(graph of endless+0x0) with 1 dispatches"), "{text}");
    assert!(text.contains("00008: c0023f00 INDIRECT_BUFFER IB_BASE_LO=0x"), "{text}");
    assert!(!device.is_done(ticket));
    // The device may be waited for again; it is not lost.
    assert!(!device.is_lost());
    let start = Instant::now();
    let closed = device.close();
    assert!(start.elapsed() < SECOND * 10, "closing a hung device ends");
    // The driver may report that the queue did not drain; it is gone all the same (hardware reference §2.8).
    if let Err(error) = closed {
        assert!(error.to_string().contains("DESTROY_QUEUE"), "{error}");
    }
}

/// On a small BAR copies go through the queue, and after a kernel that does not end they would never run.
#[test]
fn a_copy_behind_a_resident_kernel_is_refused_at_once() {
    let small_bar = VirtualOptions { small_bar: true, ..VirtualOptions::default() };
    let mut device = open_virtual(&with_virtual(small_bar));
    let hidden = device.allocate(Heap::DeviceLocal, ByteLen(64), "hidden").unwrap();
    let seen = device.allocate(Heap::Host, ByteLen(64), "seen").unwrap();
    device.upload(&hidden, ByteLen(0), &[7; 64]).unwrap();
    let (short, _kernel, _parameters) = one_dispatch(&mut device, PATTERN, seen.va, 1);
    let (graph, _endless, _block) = one_dispatch(&mut device, ENDLESS, GpuVa(0), 1);
    // One that has ended blocks nothing.
    let ticket = device.submit_resident(&short).unwrap();
    device.wait(ticket, PATIENCE).unwrap();
    let mut bytes = [0; 64];
    device.download(&hidden, ByteLen(0), &mut bytes).unwrap();
    assert_eq!(bytes, [7; 64]);
    let _ = device.submit_resident(&graph).unwrap();
    let start = Instant::now();
    for error in [
        device.upload(&hidden, ByteLen(0), &[1]).unwrap_err(),
        device.download(&hidden, ByteLen(0), &mut bytes).unwrap_err(),
    ] {
        assert!(matches!(&error, DeviceError::Occupied { label } if label == "hidden"), "{error}");
        assert!(error.to_string().contains("behind the resident kernel on this queue"), "{error}");
    }
    // Access to what the host can map still works.
    device.upload(&seen, ByteLen(0), &[1]).unwrap();
    device.download(&seen, ByteLen(0), &mut bytes).unwrap();
    assert!(start.elapsed() < SECOND * 5, "{:?}", start.elapsed());
}

#[test]
fn a_bad_packet_is_told() {
    let mut device = open_virtual(&OpenOptions::default());
    // Opcode 0xff with one body dword.
    let ticket = device.submit_words(&[0xc000_ff00, 0]).unwrap();
    let text = stopped(device.wait(ticket, Duration::from_millis(200))).to_string();
    assert!(text.contains("device log: kind=packet"), "{text}");
    assert!(text.to_lowercase().contains("ff"), "{text}");
}

#[test]
fn an_illegal_instruction_is_named_with_its_kernel() {
    let mut device = open_virtual(&OpenOptions::default());
    let data = device.allocate(Heap::Host, ByteLen(4096), "data").unwrap();
    let (graph, kernel, _parameters) = one_dispatch(&mut device, PATTERN, data.va, 1);
    device.upload(kernel.code(), ByteLen(0), &0xffff_ffff_u32.to_le_bytes()).unwrap();
    let ticket = device.submit(&graph).unwrap();
    let text = stopped(device.wait(ticket, Duration::from_millis(300))).to_string();
    assert!(text.contains("kind=wave") && text.contains("kernel pattern+0x0"), "{text}");
    let faults = device.faults();
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    let wave = fault.wave.as_ref().unwrap();
    assert_eq!((fault.is_final, wave.workgroup, wave.wave), (true, [0; 3], 0), "{fault}");
    assert!(fault.to_string().contains(", at pattern+0x0: "), "{fault}");
}

/// The file of the virtual driver that lists what lives.
fn objects(gpu: &VirtualGpu) -> String {
    String::from_utf8(gpu.read_file(OBJECTS_PATH).unwrap()).unwrap()
}

fn has_queue(gpu: &VirtualGpu) -> bool {
    objects(gpu).lines().any(|line| line.starts_with("queue "))
}

/// Uses a device in every way that allocates; what it made, still alive.
fn use_up(device: &mut Device) -> (Buffer, Graph, Kernel, Buffer) {
    let data = device.allocate(Heap::DeviceLocal, ByteLen(1 << 20), "data").unwrap();
    device.upload(&data, ByteLen(3), &[1, 2, 3]).unwrap();
    let (graph, kernel, parameters) = one_dispatch(device, PATTERN, data.va, 4);
    let ticket = device.submit(&graph).unwrap();
    device.wait(ticket, PATIENCE).unwrap();
    (data, graph, kernel, parameters)
}

/// The driver frees nothing before the process ends, so what is gone was released by call.
#[test]
fn everything_that_a_device_made_is_freed_by_call() {
    for small_bar in [false, true] {
        let gpu = VirtualGpu::new(Config { large_bar: !small_bar, ..Config::default() }).unwrap();
        let process = Attachment::over(gpu.clone()).unwrap();
        assert_eq!(objects(&gpu), "");
        let mut device = open_over(&process, &small_ring()).unwrap();
        let made = use_up(&mut device);
        assert!(has_queue(&gpu), "an open device shows in the driver");
        device.close().unwrap();
        assert!(!has_queue(&gpu) && objects(&gpu).lines().count() > 5, "buffers outlive it");
        drop(made);
        // These belong to the process: the signal page, and the mappings of it, of the doorbells and of the remap page.
        let stays = objects(&gpu);
        let lines: Vec<&str> = stays.lines().collect();
        assert!(lines[0].starts_with("object 0 ") && lines[0].contains("bytes 32768 "), "{stays}");
        assert_eq!(lines[1..], ["client_mappings 3", "gpu_mappings 1"]);
        // Further devices, opened again and again and two at a time, add nothing to it.
        for _ in 0..3 {
            let mut pair = [(); 2].map(|()| open_over(&process, &small_ring()).unwrap());
            let made = pair.each_mut().map(use_up);
            drop(made);
            for device in pair {
                device.close().unwrap();
            }
            assert_eq!(objects(&gpu), stays);
        }
        // Closing the files releases nothing, and a process that attaches a second time is refused.
        drop(process);
        assert_eq!(objects(&gpu).lines().next(), Some(lines[0]));
        let again = Attachment::over(gpu.clone()).unwrap();
        let error = open_over(&again, &small_ring()).unwrap_err();
        assert!(error.to_string().starts_with("ACQUIRE_VM failed with EBUSY (16): "), "{error}");
        drop(again);
        gpu.replace_process();
        assert_eq!(objects(&gpu), "", "small BAR: {small_bar}");
    }
}

/// A kernel that does not end blocks its own queue. The next device of the process runs.
#[test]
fn after_a_hang_the_process_opens_another_device() {
    let gpu = VirtualGpu::new(Config::default()).unwrap();
    let process = Attachment::over(gpu.clone()).unwrap();
    let mut hung = open_over(&process, &small_ring()).unwrap();
    let (graph, kernel, parameters) = one_dispatch(&mut hung, ENDLESS, GpuVa(0), 1);
    let ticket = hung.submit(&graph).unwrap();
    let diagnosis = stopped(hung.wait(ticket, Duration::from_millis(50)));
    assert_eq!(diagnosis.cause, StopCause::Deadline);
    // Beside it, and after it.
    use_up(&mut open_over(&process, &small_ring()).unwrap());
    let of_process = hung.attachment().clone();
    hung.close().unwrap();
    drop((graph, kernel, parameters));
    use_up(&mut open_over(&of_process, &small_ring()).unwrap());
    assert!(!has_queue(&gpu));
}

/// A wave that cannot be stopped costs a reset when its queue is destroyed; a bad access costs the process's queues.
#[test]
fn after_a_reset_or_a_page_fault_the_process_has_to_be_replaced() {
    let gpu = VirtualGpu::new(Config::default()).unwrap();
    let refused = |process: &Arc<Attachment>, start: &str| {
        for _ in 0..2 {
            let error = open_over(process, &small_ring()).unwrap_err().to_string();
            assert!(error.starts_with(start) && error.ends_with("end it and start a new one"), "{error}");
        }
    };
    let process = Attachment::over(gpu.clone()).unwrap();
    let mut device = open_over(&process, &small_ring()).unwrap();
    let mut other = open_over(&process, &small_ring()).unwrap();
    let (graph, kernel, parameters) = one_dispatch(&mut device, PATTERN, GpuVa(0), 1);
    device.upload(kernel.code(), ByteLen(0), &0xffff_ffff_u32.to_le_bytes()).unwrap();
    let ticket = device.submit(&graph).unwrap();
    let cause = stopped(device.wait(ticket, Duration::from_millis(100))).cause;
    assert_eq!(cause, StopCause::Deadline, "no event tells of it");
    let error = device.close().unwrap_err();
    assert!(error.to_string().contains("DESTROY_QUEUE failed with ETIME"), "{error}");
    refused(&process, "the GPU was reset, its memory is lost, and the driver no longer serves this process");
    // The other device of the process is lost with it.
    let ticket = other.submit_words(&[]).unwrap();
    let cause = stopped(other.wait(ticket, PATIENCE)).cause;
    assert!(matches!(cause, StopCause::HardwareException(_)), "{cause:?}");
    assert_eq!(process.process().loss(), Some(ProcessLoss::Reset));
    drop((graph, kernel, parameters, other, process));

    gpu.replace_process();
    let process = Attachment::over(gpu.clone()).unwrap();
    let mut device = open_over(&process, &small_ring()).unwrap();
    let data = device.allocate(Heap::Host, ByteLen(4096), "data").unwrap();
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, PATTERN, data.va, 64);
    let ticket = device.submit(&graph).unwrap();
    let cause = stopped(device.wait(ticket, PATIENCE)).cause;
    assert!(matches!(cause, StopCause::MemoryFault(_)), "{cause:?}");
    refused(&process, "after a page fault the driver runs no further queue of this process");
    gpu.replace_process();
    let process = Attachment::over(gpu.clone()).unwrap();
    use_up(&mut open_over(&process, &small_ring()).unwrap());
}

/// The short self-test refuses a device whose writes do not arrive, and names the case.
#[test]
fn a_device_that_fails_its_self_test_is_refused_by_case() {
    let mut device = open(DeviceChoice::Virtual, &untested(&OpenOptions::default())).unwrap();
    // An endless kernel in front of the self-test: its fence cannot come.
    let (graph, _kernel, _parameters) = one_dispatch(&mut device, ENDLESS, GpuVa(0), 1);
    let _ = device.submit(&graph).unwrap();
    let reports = selftest::run_within(&mut device, Extent::Short, Duration::from_millis(100), &mut |_| {});
    assert!(reports[2..].iter().all(|report| report.outcome == Outcome::NotRun), "the first failure ends it");
    let refusal = selftest::refusal(&device, &reports).unwrap();
    let text = refusal.to_string();
    assert!(
        text.starts_with(
            "Virtual R9700 (gfx1201) failed the self-test case \"fence\" (new in it: the queue: "
        ),
        "{text}"
    );
}

#[test]
fn packets_of_the_largest_size_fit_and_larger_ones_are_refused() {
    let mut device = open_virtual(&small_ring());
    let mut words = [0; 300];
    let mut writer = Writer::new(&mut words);
    writer.nop(248).unwrap();
    let ticket = device.submit_words(&words[..248]).unwrap();
    device.wait(ticket, PATIENCE).unwrap();
    assert!(matches!(device.submit_words(&words[..249]), Err(DeviceError::Emit(_))));
}
