//! Order of set-up and teardown, and every error path, against the scripted driver.

use crate::bindings::kfd::kfd_event_data_plain;
use crate::ioctl::EventId;
use crate::scripted::{GPU_ID, OTHER_GPU_ID, ScriptedSyscalls};
use crate::topology::{GpuNode, GpuProperties, HeapKind, MemoryBank};
use crate::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_mem::{ByteLen, GpuVa};

fn node(large_bar: bool) -> GpuNode {
    let heap = if large_bar { HeapKind::VramPublic } else { HeapKind::VramPrivate };
    GpuNode {
        node: 1,
        gpu_id: GPU_ID,
        name: "gfx1201".into(),
        properties: GpuProperties {
            simd_count: 128,
            simd_per_cu: 2,
            num_xcc: 1,
            drm_render_minor: 128,
            gfx_target_version: 120_001,
            ..GpuProperties::default()
        },
        memory_banks: vec![MemoryBank { heap, bytes: 32 << 30 }],
    }
}

fn open(system: ScriptedSyscalls) -> (Arc<ScriptedSyscalls>, Result<Arc<Vm>, KmdError>) {
    let system = Arc::new(system);
    let vm = Process::open(system.clone()).and_then(|process| Vm::open(&process, &node(true)));
    (system, vm)
}

fn attach(system: ScriptedSyscalls) -> (Arc<ScriptedSyscalls>, Arc<Attachment>, Arc<Vm>) {
    let system = Arc::new(system);
    let attachment = Attachment::over(system.clone()).unwrap();
    let vm = attachment.vm(&node(true)).unwrap();
    (system, attachment, vm)
}

/// NotPresent 1, ReadOnly 0, NoExecute 0, imprecise 1, va, gpu_id | ErrorType.
const FAULT: [u64; 4] = [1, 1 << 32, 0x7f00_0000_3000, GPU_ID as u64];
/// reset_type 0, reset_cause 0, memory_lost 1, gpu_id.
const RESET: [u64; 4] = [0, 1 | (GPU_ID as u64) << 32, 0, 0];

/// What a wait leaves in the entries of the signal, memory and hardware events.
fn payloads(memory: [u64; 4], hardware: [u64; 4]) -> Vec<kfd_event_data_plain> {
    let event =
        |payload: [u64; 4], event_id| kfd_event_data_plain { payload, event_id, ..Default::default() };
    vec![event([0; 4], 1), event(memory, 2), event(hardware, 3)]
}

fn gtt(bytes: u64) -> AllocationRequest {
    AllocationRequest { kind: MemoryKind::Gtt, len: ByteLen(bytes), executable: false }
}

#[test]
fn everything_is_set_up_and_taken_down_in_order() {
    let (system, attachment, vm) = attach(ScriptedSyscalls::new());
    let events = attachment.events(&vm).unwrap();
    let queue = Queue::create(&vm, ByteLen(4096)).unwrap();
    let set_up = system.log().len();
    drop(vm);
    drop(queue);
    drop(events);
    assert!(attachment.process().take_teardown_failures().is_empty());
    drop(attachment);
    let log = system.log();
    let expected = [
        "open /dev/kfd",
        "GET_VERSION",
        "open /dev/dri/renderD128",
        "APERTURES",
        "APERTURES",
        "ACQUIRE_VM",
        "RUNTIME_ENABLE",
        "map remap page",
        "reserve 0x8000",
        "ALLOC 0x8000 flags 0x96000002",
        "map object",
        "MAP 1",
        "CREATE_EVENT type 0",
        "CREATE_EVENT type 8",
        "CREATE_EVENT type 3",
    ];
    assert_eq!(log[..expected.len()], expected);
    // Ring and pointer page: GTT | COHERENT | UNCACHED | NO_SUBSTITUTE | EXECUTABLE | WRITABLE, with exact lengths.
    let allocations: Vec<&str> =
        log[expected.len()..set_up].iter().filter_map(|line| line.strip_prefix("ALLOC ")).collect();
    assert_eq!(
        allocations,
        [
            "0x1000 flags 0xd6000002",
            "0x1000 flags 0xd6000002",
            "0x1000 flags 0xd0000001",
            "0x1d57000 flags 0xd0000001"
        ]
    );
    let down: Vec<&str> = log[set_up..].iter().map(String::as_str).collect();
    assert_eq!(
        down,
        [
            "DESTROY_QUEUE",
            "UNMAP 2",
            "FREE 2",
            "UNMAP 3",
            "FREE 3",
            "UNMAP 4",
            "FREE 4",
            "UNMAP 5",
            "FREE 5",
            "WAIT_EVENTS 0 ms",
            "DESTROY_EVENT 3",
            "DESTROY_EVENT 2",
            "DESTROY_EVENT 1",
            // The signal page, object 1, belongs to the driver until the end of the process.
            "close 5",
            "close 4",
        ]
    );
}

#[test]
fn every_refused_request_is_named_and_leaves_nothing() {
    let errno = Errno::ENOMEM;
    for (request, successes, ioctl) in [
        ("GET_VERSION", 0, "GET_VERSION"),
        ("APERTURES", 0, "GET_PROCESS_APERTURES_NEW"),
        ("APERTURES", 1, "GET_PROCESS_APERTURES_NEW"),
        ("ACQUIRE_VM", 0, "ACQUIRE_VM"),
        ("ALLOC", 0, "ALLOC_MEMORY_OF_GPU"),
        ("ALLOC", 1, "ALLOC_MEMORY_OF_GPU"),
        ("ALLOC", 4, "ALLOC_MEMORY_OF_GPU"),
        ("MAP", 0, "MAP_MEMORY_TO_GPU"),
        ("MAP", 3, "MAP_MEMORY_TO_GPU"),
        ("CREATE_EVENT", 0, "CREATE_EVENT"),
        ("CREATE_EVENT", 2, "CREATE_EVENT"),
        ("CREATE_QUEUE", 0, "CREATE_QUEUE"),
    ] {
        let system = Arc::new(ScriptedSyscalls::new().failing(request, successes, errno));
        let outcome = Attachment::over(system.clone()).and_then(|attachment| {
            let vm = attachment.vm(&node(true))?;
            let events = attachment.events(&vm)?;
            Ok((events, Queue::create(&vm, ByteLen(8192))?))
        });
        let error = outcome.err().expect("the scripted refusal reaches the caller");
        assert_eq!(error.errno(), Some(errno), "{request}");
        assert!(error.to_string().starts_with(&format!("{ioctl} failed with ENOMEM (12): ")), "{error}");
        let count = |start: &str| {
            system.log().iter().filter(|line| line.starts_with(start) && !line.contains("->")).count()
        };
        assert_eq!(count("open"), count("close"), "{request} {successes}");
        assert_eq!(count("CREATE_EVENT"), count("DESTROY_EVENT"), "{request} {successes}");
        // The signal page is the one object that stays until the end of the process, once it is set.
        let page = usize::from(count("CREATE_EVENT") > 0);
        assert_eq!(count("MAP"), count("UNMAP") + page, "{request} {successes}");
        assert_eq!(count("ALLOC"), count("FREE") + page, "{request} {successes}");
    }
}

#[test]
fn files_that_do_not_open_say_what_to_do() {
    let (_, vm) = open(ScriptedSyscalls::new().failing("open", 0, Errno::ENOENT));
    assert_eq!(
        vm.err().unwrap().to_string(),
        "cannot open /dev/kfd: ENOENT (2); load the amdgpu driver with KFD support, or use --device virtual"
    );
    let (_, vm) = open(ScriptedSyscalls::new().failing("open", 1, Errno::EACCES));
    assert_eq!(
        vm.err().unwrap().to_string(),
        "cannot open /dev/dri/renderD128: EACCES (13); add the user to the groups render and video, and log in again"
    );
}

#[test]
fn another_interface_version_is_refused() {
    let (system, vm) = open(ScriptedSyscalls::new().version(2, 0));
    assert!(matches!(vm.err().unwrap(), KmdError::Version { major: 2, minor: 0 }));
    assert_eq!(system.log().last().unwrap(), "close 4");
    // An old minor of version 1 works, without RUNTIME_ENABLE.
    let (system, vm) = open(ScriptedSyscalls::new().version(1, 11));
    assert!(vm.is_ok() && !system.log().contains(&"RUNTIME_ENABLE".to_string()));
}

#[test]
fn addresses_outside_the_gpu_range_are_refused() {
    let (_, vm) = open(ScriptedSyscalls::new().aperture(0x100_0000, 0x1ff_ffff));
    let error = Buffer::allocate(&vm.unwrap(), gtt(4096)).unwrap_err();
    assert!(matches!(error, KmdError::OutsideAperture { .. }), "{error}");
}

#[test]
fn impossible_lengths_are_refused_before_any_call() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let before = system.log();
    for len in [0, 1 << 47, u64::MAX] {
        assert!(matches!(Buffer::allocate(&vm, gtt(len)), Err(KmdError::Length { .. })));
    }
    for len in [0, 2048, 4095, 12288, 1 << 32] {
        assert!(matches!(Queue::create(&vm, ByteLen(len)), Err(KmdError::RingLength { .. })));
    }
    assert_eq!(system.log(), before);
}

#[test]
fn cpu_visible_vram_needs_a_large_bar() {
    let attachment = Attachment::over(Arc::new(ScriptedSyscalls::new())).unwrap();
    let vm = attachment.vm(&node(false)).unwrap();
    for kind in [MemoryKind::VramPublic, MemoryKind::VramShared] {
        let request = AllocationRequest { kind, ..gtt(4096) };
        assert!(matches!(Buffer::allocate(&vm, request), Err(KmdError::SmallBar)));
    }
}

/// Hardware reference §2.3: GTT is bit 1, writable bit 31, no substitute bit 28; bits 25 and 26 would make it uncached.
#[test]
fn cached_system_memory_asks_for_no_coherence() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let request = AllocationRequest { kind: MemoryKind::GttCached, ..gtt(4096) };
    let buffer = Buffer::allocate(&vm.unwrap(), request).unwrap();
    assert!(buffer.view().is_some() && !buffer.kind().is_behind_bar());
    assert!(system.log().iter().any(|line| line == "ALLOC 0x1000 flags 0x90000002"), "{:?}", system.log());
}

#[test]
fn addresses_are_the_same_on_both_sides() {
    let (_, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let small = Buffer::allocate(&vm, gtt(5000)).unwrap();
    assert_eq!(small.view().unwrap().host_address() as u64, small.va().0);
    assert_eq!((small.view().unwrap().len(), small.len()), (5000, ByteLen(5000)));
    let large = Buffer::allocate(&vm, gtt(3 << 20)).unwrap();
    assert!(large.va().is_aligned_to(2 << 20));
    let hidden = Buffer::allocate(&vm, AllocationRequest { kind: MemoryKind::Vram, ..gtt(4096) }).unwrap();
    assert!(hidden.view().is_none());
}

#[test]
fn a_doorbell_of_another_device_is_refused_and_the_queue_destroyed() {
    let good = 3u64 << 62 | u64::from(GPU_ID) << 46;
    for offset in [0x10, good + (1 << 46), good + 4, good + 8192] {
        let (system, vm) = open(ScriptedSyscalls::new().doorbell_offset(offset));
        let error = Queue::create(&vm.unwrap(), ByteLen(4096)).err().unwrap();
        assert!(matches!(error, KmdError::DoorbellOffset { .. }), "{error}");
        let log = system.log();
        let position = |name: &str| log.iter().position(|line| line.starts_with(name)).unwrap();
        assert!(position("DESTROY_QUEUE") < position("UNMAP"));
    }
}

#[test]
fn doorbells_are_mapped_once() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let first = Queue::create(&vm, ByteLen(4096)).unwrap();
    let second = Queue::create(&vm, ByteLen(4096)).unwrap();
    assert_eq!(first.doorbell().host_address() % 4096, 0x10);
    assert_eq!(first.doorbell().host_address(), second.doorbell().host_address());
    assert_eq!(system.log().iter().filter(|line| *line == "map doorbells").count(), 1);
}

#[test]
fn a_failed_teardown_is_kept() {
    let (_, vm) = open(ScriptedSyscalls::new().failing("DESTROY_QUEUE", 0, Errno::ETIME));
    let vm = vm.unwrap();
    drop(Queue::create(&vm, ByteLen(4096)).unwrap());
    let failures = vm.process().take_teardown_failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(
        failures[0].to_string(),
        "DESTROY_QUEUE failed with ETIME (62): the queue was hung; it is gone, and the GPU may have been reset"
    );
    assert!(vm.process().take_teardown_failures().is_empty());
}

#[test]
fn a_buffer_that_the_gpu_does_not_take_is_given_back() {
    let (system, vm) = open(ScriptedSyscalls::new().mapping_on_no_device());
    let error = Buffer::allocate(&vm.unwrap(), gtt(4096)).unwrap_err();
    assert!(matches!(error, KmdError::MappedPartly { mapped: 0 }), "{error}");
    assert_eq!(system.log()[11..], ["MAP 1", "FREE 1", "close 5", "close 4"]);
}

#[test]
fn refused_address_space_and_mappings_leave_nothing() {
    let (_, vm) = open(ScriptedSyscalls::new().failing("reserve", 0, Errno::ENOMEM));
    let error = Buffer::allocate(&vm.unwrap(), gtt(4096)).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot map address space (4096 B): ENOMEM (12); raise"),
        "{error}"
    );
    let (system, vm) = open(ScriptedSyscalls::new().failing("map object", 0, Errno::ENOMEM));
    assert!(Buffer::allocate(&vm.unwrap(), gtt(4096)).is_err());
    assert!(system.log().contains(&"FREE 1".to_string()) && !system.log().contains(&"UNMAP 1".to_string()));
}

#[test]
fn fault_payloads_are_decoded() {
    let (_, attachment, vm) = attach(ScriptedSyscalls::new().payloads(payloads(FAULT, RESET)));
    let events = attachment.events(&vm).unwrap();
    let report = events.wait(Duration::ZERO).unwrap();
    let fault = report.memory_fault.unwrap();
    assert!(fault.not_present && !fault.read_only && !fault.no_execute && fault.imprecise);
    assert_eq!((fault.va, fault.gpu_id), (GpuVa(0x7f00_0000_3000), GPU_ID));
    assert_eq!(fault.to_string(), "page fault at near 0x7f0000003000, not mapped");
    let exception = report.hardware_exception.unwrap();
    assert_eq!(exception.to_string(), "the GPU was reset after a hang; VRAM is lost");
    assert_eq!(events.signal(), EventId(1));
    assert_eq!(events.signal_slot_va().0 % 32768 % 4096, 8);
}

#[test]
fn waits_time_out_and_survive_signals() {
    let (system, attachment, vm) = attach(ScriptedSyscalls::new());
    let events = attachment.events(&vm).unwrap();
    assert_eq!(events.wait(Duration::from_micros(1500)).unwrap(), EventReport::default());
    assert!(system.log().contains(&"WAIT_EVENTS 2 ms".to_string()));
    let (_, attachment, vm) = attach(ScriptedSyscalls::new().failing("WAIT_EVENTS", 0, Errno::EINTR));
    let events = attachment.events(&vm).unwrap();
    let start = Instant::now();
    assert_eq!(events.wait(Duration::from_millis(5)).unwrap(), EventReport::default());
    assert!(start.elapsed() >= Duration::from_millis(5));
    let (_, attachment, vm) = attach(ScriptedSyscalls::new().failing("WAIT_EVENTS", 0, Errno::EIO));
    assert!(attachment.events(&vm).unwrap().wait(Duration::ZERO).is_err());
}

#[test]
fn what_a_process_has_once_is_made_once() {
    let (system, attachment, vm) = attach(ScriptedSyscalls::new());
    for _ in 0..3 {
        let again = attachment.vm(&node(true)).unwrap();
        assert!(Arc::ptr_eq(&vm, &again));
        // The other pair is alive while this one is made, and gone before the next one.
        let pair = [attachment.events(&vm).unwrap(), attachment.events(&again).unwrap()];
        assert_ne!(pair[0].signal_slot_va(), pair[1].signal_slot_va());
        drop((Queue::create(&vm, ByteLen(4096)).unwrap(), Queue::create(&vm, ByteLen(4096)).unwrap()));
    }
    let log = system.log();
    let count = |line: &str| log.iter().filter(|one| *one == line).count();
    for once in
        ["open /dev/kfd", "ACQUIRE_VM", "map remap page", "map doorbells", "ALLOC 0x8000 flags 0x96000002"]
    {
        assert_eq!(count(once), 1, "{once}");
    }
    assert_eq!(count("CREATE_EVENT type 0"), 6);
    assert_eq!(log.iter().filter(|line| line.starts_with("DESTROY_EVENT")).count(), 18);
    assert_eq!(count("UNMAP 1"), 0);
    // A second GPU of the process: its own address space, the same page.
    let other = GpuNode { gpu_id: OTHER_GPU_ID, ..node(true) };
    let other = attachment.vm(&other).unwrap();
    for _ in 0..2 {
        attachment.events(&other).unwrap();
    }
    let log = system.log();
    let count = |line: &str| log.iter().filter(|one| *one == line).count();
    assert_eq!((count("ACQUIRE_VM"), count("MAP 1")), (2, 2));
}

#[test]
fn a_process_that_the_driver_gave_up_is_told_why_and_what_to_do() {
    // An engine's reset affects only that engine's queues.
    let engine_reset = [1, u64::from(GPU_ID) << 32, 0, 0];
    for (memory, hardware, text) in [
        (FAULT, [0; 4], Some("after a page fault the driver runs no further queue of this process")),
        (
            [0; 4],
            RESET,
            Some("the GPU was reset, its memory is lost, and the driver no longer serves this process"),
        ),
        ([0; 4], engine_reset, None),
    ] {
        let (_, attachment, vm) = attach(ScriptedSyscalls::new().payloads(payloads(memory, hardware)));
        attachment.events(&vm).unwrap().wait(Duration::ZERO).unwrap();
        match (attachment.vm(&node(true)), text) {
            (Ok(_), None) => {}
            (Err(error @ KmdError::ProcessLost { .. }), Some(text)) => {
                assert_eq!(error.to_string(), format!("{text}: end it and start a new one"));
            }
            (outcome, _) => panic!("{text:?}: {:?}", outcome.err()),
        }
    }
}

#[test]
fn a_flush_stores_in_the_remap_page() {
    let (_system, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let buffer = Buffer::allocate(&vm, gtt(4096)).unwrap();
    let bytes = buffer.view().unwrap();
    bytes.store_u64(0, u64::MAX);
    vm.flush_hdp(bytes);
    // Remap page and buffer are the same bytes here: the flush word is the first dword, and 0 is stored.
    assert_eq!(bytes.load_u64(0), 0xffff_ffff_0000_0000);
}

#[test]
fn a_view_outlives_its_buffer_and_keeps_the_address() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let buffer = Buffer::allocate(&vm, gtt(8192)).unwrap();
    let (va, part) = (buffer.va(), buffer.view().unwrap().slice(4096, 8));
    part.store_u64(0, 0x0123_4567_89ab_cdef);
    drop(buffer);
    assert_eq!(system.log().last().map(String::as_str), Some("FREE 1"), "the driver has the object back");
    assert_eq!(part.load_u64(0), 0x0123_4567_89ab_cdef, "the old bytes");
    let others: Vec<Buffer> = (0..64).map(|_| Buffer::allocate(&vm, gtt(8192)).unwrap()).collect();
    assert!(others.iter().all(|other| other.va() != va), "no other buffer has the address meanwhile");
    drop(vm);
    drop(others);
    assert_eq!(part.load_u64(0), 0x0123_4567_89ab_cdef);
}

#[test]
fn views_of_a_queue_outlive_it_and_the_address_space() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let vm = vm.unwrap();
    let queue = Queue::create(&vm, ByteLen(4096)).unwrap();
    let views = [queue.ring(), queue.read_pointer(), queue.write_pointer(), queue.doorbell()];
    drop(queue);
    drop(vm);
    assert_eq!(system.log().last().map(String::as_str), Some("close 4"), "all is given back");
    for view in views {
        view.store_u64(0, 5);
        assert_eq!(view.load_u64(0), 5);
    }
}

mod limits;
