//! Limits at their edges, what is passed to the driver and what comes back, and texts.

use super::*;
use crate::ioctl::{CommandError, DestroyQueue};
use crate::scripted::{AVAILABLE_BYTES, QUEUE_ID};

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn the_gpus_range_is_held_to_its_first_and_last_byte() {
    let place = Reservation::new(8192, 4096).unwrap();
    let (first, last) = (place.address(), place.address() + 8191);
    let allocate = |base, limit| {
        let (_, vm) = open(ScriptedSyscalls::new().aperture(base, limit).reserving(place.clone()));
        Buffer::allocate(&vm.unwrap(), gtt(8192)).map(|buffer| buffer.va())
    };
    assert_eq!(allocate(first, last).unwrap(), GpuVa(first));
    let outside = [(first + 1, last), (first + 4096, last), (last + 1, u64::MAX), (first, last - 1), (0, 1)];
    for (base, limit) in outside {
        let error = allocate(base, limit).unwrap_err();
        assert!(matches!(error, KmdError::OutsideAperture { va, .. } if va == GpuVa(first)), "{error}");
        assert!(error.to_string().contains("raise vm.mmap_min_addr"), "{error}");
    }
}

/// Hardware reference §2.6: the length is a power of two in 32 bits.
#[test]
fn the_longest_ring_has_two_to_the_31_bytes() {
    let create = |len| {
        let (_, vm) = open(ScriptedSyscalls::new().failing("reserve", 0, Errno::ENOMEM));
        Queue::create(&vm.unwrap(), ByteLen(len)).err().unwrap()
    };
    // It is asked for, and this system has no room for it.
    let asked = create(1 << 31);
    assert!(matches!(asked, KmdError::Map { len: ByteLen(0x8000_0000), .. }), "{asked}");
    let refused = create(1 << 32).to_string();
    assert!(refused.contains("a power of two from 4096 to 2^31 bytes"), "{refused}");
}

/// Hardware reference §2.6: pointers in one page, lengths of a node of 64 compute units.
#[test]
fn a_queue_is_created_of_its_buffers() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let queue = Queue::create(&vm.unwrap(), ByteLen(16384)).unwrap();
    let (allocations, request) = (system.allocations(), system.queue());
    let [ring, pointers, eop, save_area] = allocations[..] else { panic!("{allocations:x?}") };
    assert_eq!((request.ring_base_address, request.ring_size), (ring.0, 16384));
    assert_eq!(request.read_pointer_address, pointers.0);
    assert_eq!(request.write_pointer_address, pointers.0 + 256, "another line of the GPU's cache");
    assert_eq!((request.eop_buffer_address, request.eop_buffer_size), (eop.0, 4096));
    assert_eq!((request.ctx_save_restore_address, request.ctx_save_restore_size), (save_area.0, 30_699_520));
    assert_eq!((request.ctl_stack_size, request.gpu_id), (28_672, GPU_ID));
    assert_eq!([ring.1, pointers.1, eop.1, save_area.1], [16384, 4096, 4096, 30_765_056]);

    assert_eq!(queue.id(), QUEUE_ID);
    assert_eq!((queue.ring_va(), queue.ring_len()), (GpuVa(ring.0), ByteLen(16384)));
    assert_eq!(queue.pointers_va(), GpuVa(pointers.0));
    let addresses = [queue.ring(), queue.read_pointer(), queue.write_pointer()];
    let addresses = addresses.map(|view| (view.host_address() as u64, view.len()));
    assert_eq!(addresses, [(ring.0, 16384), (pointers.0, 8), (pointers.0 + 256, 8)]);
}

/// Hardware reference §2.5: gpu_id in bits 61:46, type 3 for doorbells and 0 for the remap page in bits 63:62.
#[test]
fn mappings_are_of_the_right_file_at_the_right_offset() {
    let (system, vm) = open(ScriptedSyscalls::new());
    let _queue = Queue::create(&vm.unwrap(), ByteLen(16384)).unwrap();
    let (kfd, render_node, gpu) = (Fd(4), Fd(5), u64::from(GPU_ID) << 46);
    let expected = [
        (kfd, gpu, 4096),
        // Objects 1 and 2, where the driver said: the ring and the page with the pointers.
        (render_node, 0x1000, 16384),
        (render_node, 0x2000, 4096),
        (kfd, 0xc000_0000_0000_0000 | gpu, 8192),
    ];
    assert_eq!(system.mappings(), expected);
}

/// Hardware reference §2.3 and §2.6: VRAM bit 0, GTT bit 1, uncached bit 25, coherent bit 26, no substitute bit 28,
/// public bit 29, executable bit 30, writable bit 31.
#[test]
fn each_kind_of_memory_asks_for_its_flags() {
    for (kind, flags) in [
        (MemoryKind::Vram, "0x90000001"),
        (MemoryKind::VramPublic, "0xb0000001"),
        (MemoryKind::VramShared, "0xb6000001"),
        (MemoryKind::Gtt, "0x96000002"),
        (MemoryKind::GttCached, "0x90000002"),
    ] {
        let (system, vm) = open(ScriptedSyscalls::new());
        let vm = vm.unwrap();
        let request = AllocationRequest { kind, len: ByteLen(4096), executable: false };
        let buffer = Buffer::allocate(&vm, request).unwrap();
        assert_eq!((buffer.kind(), buffer.is_empty()), (kind, false));
        let _ = Buffer::allocate(&vm, AllocationRequest { executable: true, ..request }).unwrap();
        let log = system.log();
        let asked: Vec<&str> =
            log.iter().filter_map(|line| line.strip_prefix("ALLOC 0x1000 flags ")).collect();
        assert_eq!(asked, [flags, &flags.replace("0x9", "0xd").replace("0xb", "0xf")], "{kind:?}");
    }
}

#[test]
fn available_memory_is_what_the_driver_says_of_this_gpu() {
    let (_, vm) = open(ScriptedSyscalls::new());
    assert_eq!(vm.unwrap().available_memory().unwrap(), ByteLen(AVAILABLE_BYTES));
    let (_, vm) = open(ScriptedSyscalls::new().failing("AVAILABLE", 0, Errno::ENOTTY));
    assert_eq!(vm.unwrap().available_memory().unwrap_err().errno(), Some(Errno::ENOTTY));
}

#[test]
fn without_a_remap_page_there_is_no_flush() {
    let (_, vm) = open(ScriptedSyscalls::new());
    assert!(vm.unwrap().has_hdp_flush());
    let (_, vm) = open(ScriptedSyscalls::new().failing("map remap page", 0, Errno::EINVAL));
    let vm = vm.unwrap();
    assert!(!vm.has_hdp_flush());
    let buffer = Buffer::allocate(&vm, gtt(4096)).unwrap();
    let bytes = buffer.view().unwrap();
    bytes.store_u64(0, u64::MAX);
    vm.flush_hdp(bytes);
    assert_eq!(bytes.load_u64(0), u64::MAX, "nothing is stored");
}

/// Hardware reference §2.3: 0xFFFFFFFF waits without end.
#[test]
fn no_wait_is_endless() {
    let (system, attachment, vm) = attach(ScriptedSyscalls::new());
    let events = attachment.events(&vm).unwrap();
    assert_eq!(events.wait(Duration::MAX).unwrap(), EventReport::default());
    assert_eq!(system.log().last().unwrap(), "WAIT_EVENTS 4294967294 ms");
}

#[test]
fn a_report_tells_a_fault_and_an_interrupt_apart() {
    let engine_reset = [1, u64::from(GPU_ID) << 32, 0, 0];
    for (memory, hardware, has_fault) in
        [([0; 4], [0; 4], false), (FAULT, [0; 4], true), ([0; 4], RESET, true), ([0; 4], engine_reset, true)]
    {
        let (_, attachment, vm) = attach(ScriptedSyscalls::new().payloads(payloads(memory, hardware)));
        let report = attachment.events(&vm).unwrap().wait(Duration::ZERO).unwrap();
        assert!(report.signalled);
        assert_eq!(report.has_fault(), has_fault, "{report:?}");
    }
}

/// A reset of one engine affects only that engine's queues, unless memory is lost with it.
#[test]
fn a_reset_of_the_whole_gpu_or_of_memory_ends_the_process() {
    for (reset_type, memory_lost, loss) in [
        (0, 0, Some(ProcessLoss::Reset)),
        (0, 1, Some(ProcessLoss::Reset)),
        (1, 1, Some(ProcessLoss::Reset)),
        (1, 0, None),
    ] {
        let reset = [reset_type, memory_lost | u64::from(GPU_ID) << 32, 0, 0];
        let (_, attachment, vm) = attach(ScriptedSyscalls::new().payloads(payloads([0; 4], reset)));
        attachment.events(&vm).unwrap().wait(Duration::ZERO).unwrap();
        assert_eq!(attachment.process().loss(), loss, "type {reset_type}, lost {memory_lost}");
    }
}

#[test]
fn the_first_failures_of_teardown_are_kept_and_no_more() {
    let (_, vm) = open(ScriptedSyscalls::new().failing("DESTROY_QUEUE", 0, Errno::ETIME));
    let vm = vm.unwrap();
    for (failed, kept) in [(63, 63), (64, 64), (65, 64)] {
        (0..failed).for_each(|_| vm.process().tear_down(&DestroyQueue { queue_id: 1 }));
        assert_eq!(vm.process().take_teardown_failures().len(), kept, "{failed} failed");
    }
}

#[test]
fn each_reason_not_to_open_a_file_has_its_remedy() {
    for (errno, remedy) in [
        (Errno::ENOENT, "load the amdgpu driver"),
        (Errno::ENODEV, "load the amdgpu driver"),
        (Errno::ENXIO, "load the amdgpu driver"),
        (Errno::EACCES, "the groups render and video"),
        (Errno::EPERM, "the groups render and video"),
        (Errno::EMFILE, "raise the limit of open files"),
        (Errno::EBUSY, "is being reset; try again"),
        (Errno::EIO, "see the kernel log"),
    ] {
        let (_, vm) = open(ScriptedSyscalls::new().failing("open", 0, errno));
        let text = vm.err().unwrap().to_string();
        assert!(text.starts_with(&format!("cannot open /dev/kfd: {errno}; ")), "{text}");
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn an_error_has_the_systems_number_if_the_system_gave_one() {
    let (path, errno, remedy) = ("/dev/kfd".to_owned(), Errno::EIO, "");
    let unreadable = TopologyError::Read { path: path.clone(), errno };
    for error in [
        KmdError::from(CommandError { ioctl: "GET_VERSION", errno, remedy }),
        KmdError::Open { path, errno, remedy },
        KmdError::Map { what: "", len: ByteLen(1), errno, remedy },
        KmdError::from(unreadable),
    ] {
        assert_eq!(error.errno(), Some(errno), "{error:?}");
    }
    for error in [KmdError::from(TopologyError::Unstable), KmdError::SmallBar] {
        assert_eq!(error.errno(), None, "{error:?}");
    }
    let (_, vm) = open(ScriptedSyscalls::new().failing("CREATE_QUEUE", 0, Errno::EINVAL));
    let refused = Queue::create(&vm.unwrap(), ByteLen(4096)).err().unwrap();
    assert!(
        matches!(refused, KmdError::QueueRefused(_)) && refused.errno() == Some(Errno::EINVAL),
        "{refused}"
    );
}

#[test]
fn what_is_printed_for_debugging_names_the_thing() {
    let (system, attachment, vm) = attach(ScriptedSyscalls::new());
    assert_eq!(format!("{attachment:?}"), "Attachment");
    let buffer = Buffer::allocate(&vm, gtt(5000)).unwrap();
    let printed = format!("{buffer:?}");
    let address = format!("{:x}", system.allocations()[0].0);
    assert!(printed.starts_with("Buffer {") && printed.ends_with(", Gtt }"), "{printed}");
    assert!(printed.contains(&address) && printed.contains("5000"), "{printed}");
}
