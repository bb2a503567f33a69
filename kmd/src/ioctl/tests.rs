//! The bytes of each request and of its answer, and the text of each refusal. Numbers, offsets and error numbers are
//! those of `linux/kfd_ioctl.h` and of hardware reference §2.1, §2.3, §2.6 and §2.8.

use super::*;
use crate::bindings::kfd::*;
use crate::scripted::Driver;
use crate::syscalls::UserPointer;
use zrt_mem::{ByteLen, GpuVa};

/// The file that every command is issued on.
const FD: Fd = Fd(77);
const GPU_ID: u32 = 0xc822;

/// A field: its offset, and its bytes.
type Field = (usize, Vec<u8>);

fn word(at: usize, value: u32) -> Field {
    (at, value.to_le_bytes().to_vec())
}

fn long(at: usize, value: u64) -> Field {
    (at, value.to_le_bytes().to_vec())
}

/// `len` bytes with these fields; zeros elsewhere.
fn bytes_of(len: usize, fields: &[Field]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

/// One request as the driver sees it, and what the driver answers.
#[derive(Default)]
struct Exchange {
    /// Direction, bytes of the structure, group and number.
    request: u32,
    /// Every field that is not zero, but for the array's address.
    sent: Vec<Field>,
    /// Where the array's address is, the array as sent and as answered.
    array: Option<(usize, Vec<u8>, Vec<u8>)>,
    /// The fields that the driver changes.
    answered: Vec<Field>,
}

impl Exchange {
    /// Checks what was sent, to the last byte, and answers.
    fn answer(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        assert_eq!((fd, request), (FD, self.request), "{request:#x}");
        let len = (request >> 16 & 0x3fff) as usize;
        let mut structure = read_whole(argument, len);
        let answer = bytes_of(len, &self.answered);
        if let Some((address_at, sent, answered)) = &self.array {
            let address = &mut structure[*address_at..address_at + 8];
            let array = argument.nested(u64::from_le_bytes(address.as_ref().try_into().unwrap()));
            address.fill(0);
            assert_eq!(read_whole(array, sent.len()), *sent, "array of {request:#x}");
            array.write(answered)?;
        }
        assert_eq!(structure, bytes_of(len, &self.sent), "{request:#x}");
        for (at, field) in &self.answered {
            argument.offset(*at as u64).write(&answer[*at..at + field.len()])?;
        }
        Ok(0)
    }
}

/// What was lent there, which is `len` bytes and not one more.
fn read_whole(pointer: UserPointer<'_>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len + 1];
    assert_eq!(pointer.read(&mut bytes), Err(Errno::EFAULT), "more than {len} bytes");
    bytes.truncate(len);
    pointer.read(&mut bytes).unwrap();
    bytes
}

/// Issues a command to a driver that expects `exchanges`, in this order.
fn issue_all<C: Command>(command: &C, exchanges: &[Exchange]) -> C::Output {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let driver = Driver(|fd, request, argument: UserPointer<'_>| {
        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        exchanges[at].answer(fd, request, argument)
    });
    let output = command.call(&driver, FD).unwrap();
    assert_eq!(next.into_inner(), exchanges.len(), "{}: system calls", C::NAME);
    output
}

fn issue_one<C: Command>(command: &C, request: u32, sent: Vec<Field>, answered: Vec<Field>) -> C::Output {
    issue_all(command, &[Exchange { request, sent, array: None, answered }])
}

#[test]
fn requests_about_the_process_and_their_answers_have_the_bytes_of_the_header() {
    let version = issue_one(&GetVersion, 0x8008_4b01, vec![], vec![word(0, 1), word(4, 23)]);
    assert_eq!((version.major, version.minor), (1, 23));

    let acquire = AcquireVm { drm_fd: Fd(9), gpu_id: GPU_ID };
    issue_one(&acquire, 0x4008_4b15, vec![word(0, 9), word(4, GPU_ID)], vec![]);

    // Mode 0: nothing is set. What the driver says of its capabilities is of no use to us.
    issue_one(&RuntimeDisable, 0xc010_4b25, vec![], vec![word(12, 3)]);

    let clocks = issue_one(
        &GetClockCounters { gpu_id: GPU_ID },
        0xc028_4b05,
        vec![word(32, GPU_ID)],
        vec![long(0, 1 << 40), long(8, 2 << 40), long(16, 3 << 40), long(24, 1_000_000_000)],
    );
    assert_eq!((clocks.gpu_clock_counter, clocks.cpu_clock_counter), (1 << 40, 2 << 40));
    assert_eq!((clocks.system_clock_counter, clocks.system_clock_freq), (3 << 40, 1_000_000_000));

    let query = vec![word(0, 0xffff_ffff)];
    for (mode, answer) in [(0, 0), (1, 1), (0xffff_ffff, -1), (5, 5)] {
        let said = issue_one(&SetXnackMode { mode: -1 }, 0xc004_4b21, query.clone(), vec![word(0, mode)]);
        assert_eq!(said, answer, "{mode:#x}");
    }
    issue_one(&SetXnackMode { mode: 1 }, 0xc004_4b21, vec![word(0, 1)], vec![]);

    let handler =
        SetTrapHandler { gpu_id: GPU_ID, code_va: GpuVa(0x7f11_2200), memory_va: GpuVa(0x7f33_4400) };
    let sent = vec![long(0, 0x7f11_2200), long(8, 0x7f33_4400), word(16, GPU_ID)];
    issue_one(&handler, 0x4018_4b13, sent, vec![]);
}

/// An entry of GET_PROCESS_APERTURES_NEW: six 64-bit addresses, gpu_id, padding.
fn aperture(addresses: [u64; 6], gpu_id: u32) -> Vec<u8> {
    let mut entry: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
    entry.extend(gpu_id.to_le_bytes());
    entry.extend([0; 4]);
    entry
}

/// A count of zero asks for the number of entries (hardware reference §2.3).
#[test]
fn apertures_are_counted_and_then_read() {
    let counted =
        |count| Exchange { request: 0xc010_4b14, answered: vec![word(8, count)], ..Exchange::default() };
    let read = |asked: usize, entries: Vec<u8>, filled| Exchange {
        request: 0xc010_4b14,
        sent: vec![word(8, asked as u32)],
        array: Some((0, vec![0; asked * 56], entries)),
        answered: vec![word(8, filled)],
    };
    assert_eq!(issue_all(&GetProcessApertures, &[counted(0)]), []);

    let entries = [aperture([1, 2, 3, 4, 5 << 40, 6 << 40], 7), aperture([8; 6], 9)].concat();
    let apertures = issue_all(&GetProcessApertures, &[counted(2), read(2, entries.clone(), 2)]);
    assert_eq!(apertures.len(), 2);
    let kfd_process_device_apertures { lds_base, lds_limit, scratch_base, scratch_limit, .. } = apertures[0];
    assert_eq!([lds_base, lds_limit, scratch_base, scratch_limit], [1, 2, 3, 4]);
    assert_eq!((apertures[0].gpuvm_base, apertures[0].gpuvm_limit), (5 << 40, 6 << 40));
    assert_eq!([apertures[0].gpu_id, apertures[1].gpu_id], [7, 9]);

    // A GPU is gone since they were counted, or there are more than there is room for.
    let fewer = issue_all(&GetProcessApertures, &[counted(2), read(2, entries.clone(), 1)]);
    assert_eq!(fewer.iter().map(|aperture| aperture.gpu_id).collect::<Vec<_>>(), [7]);
    assert_eq!(issue_all(&GetProcessApertures, &[counted(2), read(2, entries.clone(), 3)]).len(), 2);
    assert_eq!(issue_all(&GetProcessApertures, &[counted(256), read(256, entries.clone(), 256)]).len(), 256);
    assert_eq!(issue_all(&GetProcessApertures, &[counted(257), read(256, entries, 257)]).len(), 256);
}

#[test]
fn requests_about_memory_and_their_answers_have_the_bytes_of_the_header() {
    let (va, len) = (GpuVa(0x7f12_3456_7000), ByteLen(0x1_2345_6000));
    for (flags, bit) in [
        (AllocationFlags::VRAM, 0),
        (AllocationFlags::GTT, 1),
        (AllocationFlags::MMIO_REMAP, 4),
        (AllocationFlags::UNCACHED, 25),
        (AllocationFlags::COHERENT, 26),
        (AllocationFlags::NO_SUBSTITUTE, 28),
        (AllocationFlags::PUBLIC, 29),
        (AllocationFlags::EXECUTABLE, 30),
        (AllocationFlags::WRITABLE, 31),
    ] {
        let sent = vec![long(0, va.0), long(8, len.0), word(32, GPU_ID), word(36, 1 << bit)];
        let answered = vec![long(16, 0xc822_0000_0005), long(24, 0x1_0000_3000)];
        let command = AllocateMemory { va, len, gpu_id: GPU_ID, flags };
        let allocated = issue_one(&command, 0xc028_4b16, sent, answered);
        assert_eq!(
            (allocated.handle, allocated.mmap_offset),
            (MemoryHandle(0xc822_0000_0005), 0x1_0000_3000)
        );
    }

    let handle = MemoryHandle(0xc822_0000_0006);
    issue_one(&FreeMemory { handle }, 0x4008_4b17, vec![long(0, handle.0)], vec![]);

    // One GPU. How many are mapped starts at 0 and is the answer.
    let devices = |request, mapped| Exchange {
        request,
        sent: vec![long(0, handle.0), word(16, 1)],
        array: Some((8, GPU_ID.to_le_bytes().to_vec(), vec![])),
        answered: vec![word(20, mapped)],
    };
    for mapped in [0, 1, 2] {
        let map = MapMemory { handle, gpu_id: GPU_ID };
        assert_eq!(issue_all(&map, &[devices(0xc018_4b18, mapped)]), mapped);
        let unmap = UnmapMemory { handle, gpu_id: GPU_ID };
        assert_eq!(issue_all(&unmap, &[devices(0xc018_4b19, mapped)]), mapped);
    }

    let available = AvailableMemory { gpu_id: GPU_ID };
    let left = issue_one(&available, 0xc010_4b23, vec![word(8, GPU_ID)], vec![long(0, 31 << 30)]);
    assert_eq!(left, ByteLen(31 << 30));
}

#[test]
fn requests_about_queues_and_their_answers_have_the_bytes_of_the_header() {
    let create = CreateQueue {
        gpu_id: GPU_ID,
        ring_va: GpuVa(0x7f00_0001_0000),
        ring_bytes: 0x1_0000,
        write_pointer_va: GpuVa(0x7f00_0002_0100),
        read_pointer_va: GpuVa(0x7f00_0002_0000),
        eop_va: GpuVa(0x7f00_0003_0000),
        eop_bytes: 4096,
        save_area_va: GpuVa(0x7f00_0004_0000),
        save_area_bytes: 30_699_520,
        control_stack_bytes: 28_672,
    };
    let sent = vec![
        long(0, 0x7f00_0001_0000),
        long(8, 0x7f00_0002_0100),
        long(16, 0x7f00_0002_0000),
        word(32, 0x1_0000),
        word(36, GPU_ID),
        // Raw PM4, the whole share, normal priority.
        word(40, 0),
        word(44, 100),
        word(48, 7),
        long(56, 0x7f00_0003_0000),
        long(64, 4096),
        long(72, 0x7f00_0004_0000),
        word(80, 30_699_520),
        word(84, 28_672),
    ];
    let doorbell = 3 << 62 | u64::from(GPU_ID) << 46 | 0x18;
    let created = issue_one(&create, 0xc060_4b02, sent, vec![long(24, doorbell), word(52, 6)]);
    assert_eq!((created.queue_id, created.doorbell_offset), (6, doorbell));

    issue_one(&DestroyQueue { queue_id: 6 }, 0xc008_4b03, vec![word(0, 6)], vec![]);

    let update =
        UpdateQueue { queue_id: 6, ring_va: GpuVa(1 << 44), ring_bytes: 8192, percentage: 50, priority: 15 };
    let sent = vec![long(0, 1 << 44), word(8, 6), word(12, 8192), word(16, 50), word(20, 15)];
    issue_one(&update, 0x4018_4b07, sent, vec![]);

    // The count is in bits.
    let mask = [0xffff_fffc, 0x3000_0003];
    let sent = vec![word(0, 6), word(4, 64)];
    let array = Some((8, vec![0xfc, 0xff, 0xff, 0xff, 0x03, 0x00, 0x00, 0x30], vec![]));
    let exchange = Exchange { request: 0x4010_4b1a, sent, array, answered: vec![] };
    issue_all(&SetCuMask { queue_id: 6, mask: &mask }, &[exchange]);
}

#[test]
fn requests_about_events_and_their_answers_have_the_bytes_of_the_header() {
    let page = MemoryHandle(0xc822_0000_0007);
    for (kind, number) in [(EventKind::Signal, 0), (EventKind::HardwareException, 3), (EventKind::Memory, 8)]
    {
        let alone = CreateEvent { kind, page: None, auto_reset: false };
        let answered = vec![word(8, 21), word(24, 22), word(28, 23)];
        let created = issue_one(&alone, 0xc020_4b08, vec![word(12, number)], answered.clone());
        assert_eq!((created.id, created.slot_index), (EventId(22), 23));
        let with_page = CreateEvent { kind, page: Some(page), auto_reset: true };
        let sent = vec![long(0, page.0), word(12, number), word(16, 1)];
        issue_one(&with_page, 0xc020_4b08, sent, answered);
    }
    let id = EventId(22);
    issue_one(&DestroyEvent { id }, 0x4008_4b09, vec![word(0, 22)], vec![]);
    issue_one(&SetEvent { id }, 0x4008_4b0a, vec![word(0, 22)], vec![]);
    issue_one(&ResetEvent { id }, 0x4008_4b0b, vec![word(0, 22)], vec![]);
}

#[test]
fn a_wait_names_its_events_and_returns_what_each_holds() {
    let entry = |id, payload: [u64; 4]| {
        let payload = payload.iter().enumerate().map(|(index, value)| long(8 * index, *value));
        bytes_of(48, &payload.chain([word(40, id)]).collect::<Vec<_>>())
    };
    let events = [EventId(5), EventId(6)];
    let sent = [entry(5, [0; 4]), entry(6, [0; 4])].concat();
    let answered = [entry(5, [1, 2, 3, 4]), entry(6, [5, 6, 7, 8])].concat();
    for (result, signalled) in [(0, true), (1, false), (2, false)] {
        let exchange = Exchange {
            request: 0xc018_4b0c,
            // Any of them: wait_for_all is 0.
            sent: vec![word(8, 2), word(16, 250)],
            array: Some((0, sent.clone(), answered.clone())),
            answered: vec![word(20, result)],
        };
        let waited = issue_all(&WaitEvents { events: &events, timeout_ms: 250 }, &[exchange]);
        assert_eq!(waited.signalled, signalled, "{result}");
        let payloads: Vec<_> = waited.payloads.iter().map(|event| (event.event_id, event.payload)).collect();
        assert_eq!(payloads, [(5, [1, 2, 3, 4]), (6, [5, 6, 7, 8])]);
    }
}

#[test]
fn composed_numbers_equal_the_headers() {
    fn check<C: Command>(header: u32) {
        assert_eq!(C::REQUEST, header, "{}", C::NAME);
        assert!(crate::syscalls::passes_on(header), "{} would not leave the process", C::NAME);
    }
    check::<GetVersion>(REQUEST_GET_VERSION);
    check::<GetProcessApertures>(REQUEST_GET_PROCESS_APERTURES_NEW);
    check::<AcquireVm>(REQUEST_ACQUIRE_VM);
    check::<RuntimeDisable>(REQUEST_RUNTIME_ENABLE);
    check::<AllocateMemory>(REQUEST_ALLOC_MEMORY_OF_GPU);
    check::<FreeMemory>(REQUEST_FREE_MEMORY_OF_GPU);
    check::<MapMemory>(REQUEST_MAP_MEMORY_TO_GPU);
    check::<UnmapMemory>(REQUEST_UNMAP_MEMORY_FROM_GPU);
    check::<CreateQueue>(REQUEST_CREATE_QUEUE);
    check::<DestroyQueue>(REQUEST_DESTROY_QUEUE);
    check::<CreateEvent>(REQUEST_CREATE_EVENT);
    check::<DestroyEvent>(REQUEST_DESTROY_EVENT);
    check::<WaitEvents<'_>>(REQUEST_WAIT_EVENTS);
    check::<AvailableMemory>(REQUEST_AVAILABLE_MEMORY);
    check::<GetClockCounters>(REQUEST_GET_CLOCK_COUNTERS);
    check::<SetXnackMode>(REQUEST_SET_XNACK_MODE);
    check::<SetTrapHandler>(REQUEST_SET_TRAP_HANDLER);
    check::<UpdateQueue>(REQUEST_UPDATE_QUEUE);
    check::<SetCuMask<'_>>(REQUEST_SET_CU_MASK);
    check::<SetEvent>(REQUEST_SET_EVENT);
    check::<ResetEvent>(REQUEST_RESET_EVENT);
}

/// The text of a refusal with `errno`, after "NAME failed with ERRNO (number): ".
fn refusal<C: Command>(command: &C, errno: Errno) -> String {
    let error =
        command.call(&Driver(|_, _, _: UserPointer<'_>| Err(errno)), FD).err().expect("it is refused");
    assert_eq!((error.ioctl, error.errno), (C::NAME, errno));
    let text = error.to_string();
    let start = format!("{} failed with {errno}: ", C::NAME);
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// What each errno means for a command that has no meaning of its own for it, and what to do.
#[test]
fn errors_that_every_request_can_get_say_what_to_do() {
    fn check<C: Command>(command: &C) {
        for (errno, words) in [
            (Errno::ENOTTY, ["does not know the request", "use a newer kernel"]),
            (Errno::EBADF, ["after a fork", "open the device again"]),
            (Errno::ENODEV, ["VM is not acquired", "open it again"]),
            (Errno::EACCES, ["not permitted", "check the render group"]),
            (Errno(18), ["see the kernel log"; 2]),
        ] {
            let text = refusal(command, errno);
            assert!(words.iter().all(|word| text.contains(word)), "{} {errno}: {text}", C::NAME);
        }
    }
    let (id, handle, gpu_id, queue_id) = (EventId(1), MemoryHandle(1), 1, 1);
    check(&GetVersion);
    check(&GetProcessApertures);
    check(&AcquireVm { drm_fd: FD, gpu_id });
    check(&RuntimeDisable);
    check(&GetClockCounters { gpu_id });
    check(&SetXnackMode { mode: 0 });
    check(&SetTrapHandler { gpu_id, code_va: GpuVa(0), memory_va: GpuVa(0) });
    check(&some_memory());
    check(&FreeMemory { handle });
    check(&MapMemory { handle, gpu_id });
    check(&UnmapMemory { handle, gpu_id });
    check(&AvailableMemory { gpu_id });
    check(&some_queue());
    check(&DestroyQueue { queue_id });
    check(&some_update());
    check(&SetCuMask { queue_id, mask: &[3] });
    check(&CreateEvent { kind: EventKind::Signal, page: None, auto_reset: true });
    check(&DestroyEvent { id });
    check(&WaitEvents { events: &[id], timeout_ms: 0 });
    check(&SetEvent { id });
    check(&ResetEvent { id });

    for (errno, words) in [
        (Errno::EFAULT, ["could not read or write the structure", "bug of zrt"]),
        (Errno::ENOMEM, ["out of memory", "ask for less"]),
        (Errno::EPERM, ["not permitted", "check the render group"]),
        (Errno::EIO, ["the GPU was reset or does not answer", "end it and start a new one"]),
        (Errno::EINVAL, ["refused an argument", "bug of zrt"]),
    ] {
        let text = refusal(&MapMemory { handle, gpu_id }, errno);
        assert!(words.iter().all(|word| text.contains(word)), "{errno}: {text}");
    }
}

fn some_memory() -> AllocateMemory {
    AllocateMemory { va: GpuVa(4096), len: ByteLen(4096), gpu_id: 1, flags: AllocationFlags::VRAM }
}

fn some_queue() -> CreateQueue {
    let va = GpuVa(4096);
    CreateQueue {
        gpu_id: 1,
        ring_va: va,
        ring_bytes: 4096,
        write_pointer_va: va,
        read_pointer_va: va,
        eop_va: va,
        eop_bytes: 4096,
        save_area_va: va,
        save_area_bytes: 4096,
        control_stack_bytes: 4096,
    }
}

fn some_update() -> UpdateQueue {
    UpdateQueue { queue_id: 1, ring_va: GpuVa(4096), ring_bytes: 4096, percentage: 100, priority: 7 }
}

/// Hardware reference §2.6 and §2.8: conditions of errors that mean something else for one request than for others.
#[test]
fn errors_of_one_request_say_what_happened_and_what_to_do() {
    let (handle, gpu_id, queue_id) = (MemoryHandle(1), 1, 1);
    let acquire = |errno| refusal(&AcquireVm { drm_fd: FD, gpu_id }, errno);
    let xnack = |errno| refusal(&SetXnackMode { mode: 1 }, errno);
    let allocate = |errno| refusal(&some_memory(), errno);
    let create = |errno| refusal(&some_queue(), errno);
    let destroy = |errno| refusal(&DestroyQueue { queue_id }, errno);
    let event = |errno| {
        refusal(&CreateEvent { kind: EventKind::Signal, page: Some(handle), auto_reset: true }, errno)
    };
    let wait = |errno| refusal(&WaitEvents { events: &[EventId(1)], timeout_ms: 0 }, errno);
    for (text, words) in [
        (acquire(Errno::EBUSY), ["already bound another file", "the process's one attachment"]),
        (acquire(Errno::EINVAL), ["does not belong to this GPU", "check drm_render_minor"]),
        (xnack(Errno::EPERM), ["no XNACK", "leave it off"]),
        (xnack(Errno::EBUSY), ["a queue is active", "before creating queues"]),
        (allocate(Errno::ENOMEM), ["not enough VRAM or system memory", "ask for less"]),
        (allocate(Errno::EADDRINUSE), ["used by shared virtual memory", "bug of zrt"]),
        (allocate(Errno::EINVAL), ["refused size or flags", "large BAR"]),
        (refusal(&FreeMemory { handle }, Errno::EBUSY), ["still mapped on a GPU", "bug of zrt"]),
        (
            refusal(&UnmapMemory { handle, gpu_id }, Errno::EBUSY),
            ["a live queue uses", "destroy the queue first"],
        ),
        (create(Errno::EFAULT), ["cannot reach a queue buffer", "bug of zrt"]),
        (create(Errno::ENOTSUPP), ["does not know compute queues", "use a newer kernel"]),
        (create(Errno::ESRCH), ["cannot bind to the GPU", "close other compute processes"]),
        (create(Errno::ENOSPC), ["has 127 queues already", "close some"]),
        (create(Errno::EPERM), ["hardware queues are all taken", "close other compute processes"]),
        (destroy(Errno::ETIME), ["was hung", "it is gone"]),
        (destroy(Errno::EIO), ["was hung", "it is gone"]),
        (refusal(&some_update(), Errno::EFAULT), ["no such queue", "bug of zrt"]),
        (refusal(&SetCuMask { queue_id, mask: &[1] }, Errno::EINVAL), ["go in pairs", "whole words"]),
        (event(Errno::ENOSPC), ["no event slot left", "close other devices"]),
        (event(Errno::EINVAL), ["has a signal page already", "the process's one attachment"]),
        (wait(Errno::EINTR), ["interrupted by a signal", "wait again"]),
    ] {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}
