//! Dispatch, descriptors, sizes, versions, apertures, the VM, and the render node's answers.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Fd, Protection, Syscalls, UserPointer};
use zrt_vgpu::Config;
use zrt_vgpu::VirtualGpu;
use zrt_vgpu::config::KernelRelease;

#[test]
fn numbers_pointers_and_descriptors_are_checked_as_the_kernel_does() {
    let client = Client::open();
    for number in [0x00, 0x29, 0x7F, 0xFF] {
        assert_eq!(client.ioctl(0xC008_4B00 | number, &mut [0; 8]), Err(Errno::ENOTTY), "{number:#x}");
    }
    for request in [0x8008_4B01u32, 0xC060_4B02, 0xC028_4B16, 0x4008_4B17, 0xC018_4B0C] {
        let bad = client.gpu.ioctl(client.kfd, request, UserPointer::invalid());
        assert_eq!(bad, Err(Errno::EFAULT), "{request:#x}");
    }
    let nobody = Fd(client.kfd.0 + 500);
    assert_eq!(ioctl_bytes(&*client.gpu, nobody, 0x8008_4B01, &mut [0; 8], &mut []), Err(Errno::EBADF));
    assert_eq!(client.gpu.map(nobody, 0, 4096, Protection::Read, None).err(), Some(Errno::EBADF));
    assert_eq!(client.gpu.open("/dev/dri/renderD129").err(), Some(Errno::ENOENT));
    // Numbers that the kernel has and this device does not are distinguished from unknown ones.
    assert_eq!(client.ioctl(0xC018_4B20, &mut [0; 24]), Err(Errno::EINVAL));
    assert!(client.text("faults").contains("kind=unmodelled-request"));
}

#[test]
fn the_size_in_the_request_is_the_callers_own() {
    let client = Client::open_under(KernelRelease::V6_12);
    // Full, truncated to the major version, and longer than the kernel's structure; another magic does not matter.
    let mut exact = [0xAA; 8];
    client.ioctl(0x8008_4B01, &mut exact).unwrap();
    assert_eq!((get32(&exact, 0), get32(&exact, 4)), (1, 17));
    let mut short = [0xAA; 8];
    client.ioctl(0x8004_4B01, &mut short).unwrap();
    assert_eq!((get32(&short, 0), get32(&short, 4)), (1, 0xAAAA_AAAA));
    let mut long = [0xAA; 16];
    client.ioctl(0x8010_0001, &mut long).unwrap();
    assert_eq!((get32(&long, 0), get64(&long, 8)), (1, 0));
}

#[test]
fn an_older_header_creates_queues_too() {
    // 88 bytes without the last two words (hardware reference §2.1).
    let client = Client::open();
    let (fields, _buffers) = Queue::fields(&client, 4096);
    let mut bytes = fields.bytes();
    bytes[88..].fill(0xFF);
    assert_eq!(client.ioctl(0xC058_4B02, &mut bytes), Ok(0));
    assert_eq!(get32(&bytes, 88), u32::MAX);
    assert_eq!(get64(&bytes, 24) >> 62, 3);
}

#[test]
fn apertures_are_counted_and_filled() {
    let client = Client::open();
    let mut bytes = [0; 16];
    client.ioctl(0xC010_4B14, &mut bytes).unwrap();
    assert_eq!(get32(&bytes, 8), 1);
    let mut entry = [0; 56];
    let nested = &mut [Nested { field_offset: 0, bytes: &mut entry }];
    ioctl_bytes(&*client.gpu, client.kfd, 0xC010_4B14, &mut bytes, nested).unwrap();
    let value = |at| get64(&entry, at);
    assert_eq!((value(0), value(8)), (1 << 48, (1 << 48) + 0xFFFF_FFFF));
    assert_eq!((value(16), value(24)), (2 << 48, (2 << 48) + 0xFFFF_FFFF));
    assert_eq!((value(32), value(40)), (0x100_0000, 0x7FFF_FFFF_FFFF));
    assert_eq!(get32(&entry, 48), client.gpu_id);
    put64(&mut bytes, 0, 8);
    assert_eq!(client.ioctl(0xC010_4B14, &mut bytes), Err(Errno::EFAULT));
}

#[test]
fn a_vm_is_acquired_once_and_everything_needs_it() {
    let client = Client::open_with(Config::default());
    assert_eq!(client.alloc(0x10_0000_0000, 4096, RING_FLAGS), Err(Errno::ENODEV));
    let fields = CreateQueue {
        ring: 0x10_0000_0000,
        wptr: 0x10_0001_0000,
        rptr: 0x10_0002_0000,
        ring_size: 4096,
        gpu_id: client.gpu_id,
        kind: 0,
        percentage: 100,
        priority: 7,
        eop: 0,
        eop_size: 0,
        cwsr: 0,
        cwsr_size: 0,
        ctl_stack: 0,
    };
    assert_eq!(client.create_queue(&fields), Err(Errno::ESRCH));
    assert_eq!(client.acquire(client.kfd, client.gpu_id), Err(Errno::EINVAL));
    assert_eq!(client.acquire(Fd(-1), client.gpu_id), Err(Errno::EINVAL));
    assert_eq!(client.acquire(client.render, 0), Err(Errno::EINVAL));
    assert_eq!(client.acquire(client.render, client.gpu_id), Ok(0));
    assert_eq!(client.acquire(client.render, client.gpu_id), Ok(0));
    let second = client.gpu.open("/dev/dri/renderD128").unwrap();
    assert_eq!(client.acquire(second, client.gpu_id), Err(Errno::EBUSY));
    client.alloc(0x10_0000_0000, 4096, RING_FLAGS).unwrap();
}

#[test]
fn small_switches_answer_as_on_gfx12() {
    let client = Client::open();
    let xnack = |mode: i32| {
        let mut bytes = mode.to_le_bytes();
        client.ioctl(0xC004_4B21, &mut bytes).map(|_| i32::from_le_bytes(bytes))
    };
    assert_eq!((xnack(-1), xnack(0), xnack(1)), (Ok(0), Ok(0), Err(Errno::EPERM)));
    let runtime = |mode: u32| {
        let mut bytes = [0; 16];
        put32(&mut bytes, 8, mode);
        client.ioctl(0xC010_4B25, &mut bytes)
    };
    assert_eq!((runtime(0), runtime(1), runtime(1), runtime(0)), (Ok(0), Ok(0), Err(Errno::EBUSY), Ok(0)));
    let trap = |gpu_id: u32| {
        let mut bytes = [0; 24];
        put32(&mut bytes, 16, gpu_id);
        client.ioctl(0x4018_4B13, &mut bytes)
    };
    assert_eq!((trap(client.gpu_id), trap(1)), (Ok(0), Err(Errno::EINVAL)));
    let policy = |default: u32| {
        let mut bytes = [0; 32];
        put32(&mut bytes, 16, client.gpu_id);
        put32(&mut bytes, 20, default);
        client.ioctl(0x4020_4B04, &mut bytes)
    };
    assert_eq!((policy(0), policy(1), policy(2)), (Ok(0), Ok(0), Err(Errno::EINVAL)));
    let mut clocks = [0; 40];
    put32(&mut clocks, 32, client.gpu_id);
    client.ioctl(0xC028_4B05, &mut clocks).unwrap();
    let first = get64(&clocks, 0);
    std::thread::sleep(std::time::Duration::from_millis(2));
    client.ioctl(0xC028_4B05, &mut clocks).unwrap();
    // 100 MHz: 2 ms are at least 200,000 ticks.
    assert!(get64(&clocks, 0) - first >= 200_000);
    assert_eq!(get64(&clocks, 24), 1_000_000_000);
    let queue = Queue::new(&client, 4096);
    assert_eq!((xnack(-1), xnack(0)), (Ok(0), Err(Errno::EBUSY)));
    assert_eq!(runtime(1), Err(Errno::EEXIST));
    queue.destroy(&client).unwrap();
}

#[test]
fn closing_files_takes_nothing_down() {
    let client = Client::open_under(KernelRelease::Newest);
    assert_eq!(client.acquire(client.render, client.gpu_id), Ok(0), "the same file again");
    let page = client.buffer(32_768);
    let event = client.create_event(page.handle, 0, true).unwrap();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    queue.submit(&fence(target.va, 5));
    wait_value(target.view(), 0, 5);
    let before = client.text("objects");
    for file in [client.kfd, client.render] {
        client.gpu.close(file).unwrap();
        assert_eq!(client.gpu.close(file), Err(Errno::EBADF));
    }
    assert_eq!(client.text("objects"), before);
    // The queue continues to run.
    queue.submit(&fence(target.va, 6));
    wait_value(target.view(), 0, 6);

    // New files find the state of the process: VM bound, signal page set; objects, events and queues still exist.
    let again = Client::on(client.gpu.clone());
    assert_eq!(again.acquire(again.render, again.gpu_id), Err(Errno::EBUSY));
    let place = again.gpu.reserve(32_768, 4096).unwrap();
    let (second, offset) = again.alloc(place.address(), 32_768, RING_FLAGS).unwrap();
    let mapped = again.gpu.map(again.render, offset, 32_768, Protection::ReadWrite, None);
    assert_eq!(
        mapped.err(),
        Some(Errno::EACCES),
        "the file whose VM was acquired maps objects, and no other"
    );
    assert_eq!(again.create_event(second, 0, true), Err(Errno::EINVAL));
    assert_eq!(again.create_event(0, 0, true), Ok(event + 1));
    assert_eq!(again.wait_events(&[event], true, 0).unwrap().0, 1);
    again.free(second).unwrap();
    assert_eq!(again.unmap(queue.ring.handle), Err(Errno::EBUSY));
    queue.destroy(&again).unwrap();
    again.release(target);
    again.unmap(page.handle).unwrap();
    assert_eq!(again.free(page.handle), Err(Errno::EPERM));
}

#[test]
fn a_process_that_ends_gives_everything_back() {
    let client = Client::open();
    let page = client.buffer(32_768);
    client.create_event(page.handle, 0, true).unwrap();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    queue.submit(&fence(target.va, 5));
    wait_value(target.view(), 0, 5);
    client.gpu.replace_process();
    for file in [client.kfd, client.render] {
        assert_eq!(client.gpu.close(file), Err(Errno::EBADF));
    }
    // Memory that this host process has mapped stays readable until it drops the mapping.
    assert_eq!(target.view().load_u32(0), 5);
    let left = client.text("objects");
    assert!(left.lines().all(|line| line.starts_with("client_mappings ")), "{left}");
    drop((queue, target, page));
    assert_eq!(client.text("objects"), "");
    let used = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/used_memory";
    assert_eq!(client.gpu.read_file(used), Ok(b"0\n".to_vec()));
    // The next process binds its VM and sets its signal page.
    let again = Client::on(client.gpu.clone());
    again.acquire(again.render, again.gpu_id).unwrap();
    let page = again.buffer(32_768);
    again.create_event(page.handle, 0, true).unwrap();
    let mut queue = Queue::new(&again, 4096);
    let target = again.buffer(4096);
    queue.submit(&fence(target.va, 6));
    wait_value(target.view(), 0, 6);
}

/// A page fault stops the queues of the process for good: a queue made afterwards does not run either (Linux
/// `create_queue_cpsch` marks it evicted like the others).
#[test]
fn after_a_page_fault_no_new_queue_runs() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(0x40_0000_0000, 1));
    assert_eq!(client.wait_events(&[memory], true, 5000).unwrap().0, 0);
    queue.destroy(&client).unwrap();
    let mut next = Queue::new(&client, 4096);
    next.submit(&fence(target.va, 1));
    pause();
    assert_eq!(target.view().load_u32(0), 0);
    client.gpu.replace_process();
    let again = Client::on(client.gpu.clone());
    again.acquire(again.render, again.gpu_id).unwrap();
    let target = again.buffer(4096);
    let mut queue = Queue::new(&again, 4096);
    queue.submit(&fence(target.va, 2));
    wait_value(target.view(), 0, 2);
}

/// Numbers that the kernel has and this device does not, each with its line in the log.
#[test]
fn requests_that_are_not_modelled_are_refused_and_named() {
    let client = Client::open_under(KernelRelease::Newest);
    let mut expected = String::new();
    for number in [0x06, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x22, 0x24, 0x26, 0x27, 0x28] {
        assert_eq!(client.ioctl(0xC000_4B00 | number, &mut []), Err(Errno::EINVAL), "{number:#x}");
        let what = "the kernel has it, this device does not";
        expected += &format!("kind=unmodelled-request request={number:#04x} : {what}\n");
        assert_eq!(client.text("faults"), expected);
    }
    // The kernel itself refuses the requests of the old debugger.
    for number in 0x0D..=0x10 {
        assert_eq!(client.ioctl(0x4000_4B00 | number, &mut []), Err(Errno::EPERM), "{number:#x}");
    }
    assert_eq!(client.text("faults"), expected);
}

#[test]
fn an_error_is_answered_too_and_what_is_past_the_structure_comes_back() {
    let client = Client::open();
    let mut wait = [0; 32];
    put32(&mut wait, 8, 1);
    put64(&mut wait, 24, u64::MAX);
    assert_eq!(client.ioctl(0xC020_4B0C, &mut wait), Err(Errno::EFAULT));
    assert_eq!((get32(&wait, 20), get64(&wait, 24)), (2, u64::MAX));
}

#[test]
fn switches_without_effect_are_checked_nevertheless() {
    let client = Client::open_with(Config::default());
    let own = client.gpu_id;
    // Memory policy, trap handler, scratch: the device, then the VM.
    let policy = |gpu_id: u32, default: u32, alternate: u32| {
        let mut bytes = [0; 32];
        for (at, value) in [(16, gpu_id), (20, default), (24, alternate)] {
            put32(&mut bytes, at, value);
        }
        client.ioctl(0x4020_4B04, &mut bytes)
    };
    let with_device = |request: u32, at: usize, gpu_id: u32| {
        let mut bytes = [0; 24];
        put32(&mut bytes, at, gpu_id);
        client.ioctl(request, &mut bytes)
    };
    let trap = |gpu_id: u32| with_device(0x4018_4B13, 16, gpu_id);
    let scratch = |gpu_id: u32| with_device(0xC010_4B11, 8, gpu_id);
    let (unbound, invalid) = (Err(Errno::ESRCH), Err(Errno::EINVAL));
    assert_eq!([policy(own, 0, 0), trap(own), scratch(own)], [unbound; 3]);
    assert_eq!([policy(1, 0, 0), trap(1), scratch(1)], [invalid; 3]);
    client.acquire(client.render, own).unwrap();
    assert_eq!([policy(own, 1, 1), policy(own, 0, 1), trap(own), scratch(own)], [Ok(0); 4]);
    assert_eq!([policy(own, 2, 0), policy(own, 0, 2), policy(1, 1, 1)], [invalid; 3]);
    // Without the enable bit it is the way to disable, which asks for nothing.
    let runtime = |mode: u32| {
        let mut bytes = [0; 16];
        put32(&mut bytes, 8, mode);
        put32(&mut bytes, 12, 0xEE);
        client.ioctl(0xC010_4B25, &mut bytes).map(|_| get32(&bytes, 12))
    };
    assert_eq!([runtime(2), runtime(3), runtime(2), runtime(1)], [Ok(0); 4]);
    assert_eq!(runtime(3), Err(Errno::EBUSY));
    let xnack = |mode: i32| {
        let mut bytes = mode.to_le_bytes();
        (client.ioctl(0xC004_4B21, &mut bytes), i32::from_le_bytes(bytes))
    };
    assert_eq!((xnack(-5), xnack(0)), ((Ok(0), 0), (Ok(0), 0)));
    assert_eq!((xnack(1), xnack(7)), ((Err(Errno::EPERM), 1), (Err(Errno::EPERM), 7)));
}

#[test]
fn clocks_of_the_system_go_on_and_those_of_another_device_are_zero() {
    let client = Client::open();
    let clocks = |gpu_id: u32| {
        let mut bytes = [0xEE; 40];
        put32(&mut bytes, 32, gpu_id);
        client.ioctl(0xC028_4B05, &mut bytes).unwrap();
        [0, 8, 16, 24].map(|at| get64(&bytes, at))
    };
    let [[gpu, cpu, system, frequency], [other, later, ..]] = [clocks(client.gpu_id), clocks(0)];
    assert!(gpu > 1 && cpu > 1 && later >= cpu, "{gpu} {cpu} {later}");
    assert_eq!((cpu, frequency, other), (system, 1_000_000_000, 0));
}

#[test]
fn tiling_tables_are_zeros_as_far_as_the_callers_reach() {
    let client = Client::open();
    let mut bytes = [0xEE; 40];
    let (mut table, mut macro_table) = ([0xFF; 4], [0xFF; 80]);
    for (at, value) in [(16, 1), (20, 20), (24, client.gpu_id)] {
        put32(&mut bytes, at, value);
    }
    let nested = &mut [
        Nested { field_offset: 0, bytes: &mut table },
        Nested { field_offset: 8, bytes: &mut macro_table },
    ];
    ioctl_bytes(&*client.gpu, client.kfd, 0xC028_4B12, &mut bytes, nested).unwrap();
    // The counts of what was written, at most 32 and 16; GB_ADDR_CONFIG, banks, ranks.
    assert_eq!([16, 20, 28, 32, 36].map(|at| get32(&bytes, at)), [1, 16, 0x545, 0, 0]);
    assert_eq!((table, &macro_table[..64], &macro_table[64..]), ([0; 4], &[0; 64][..], &[0xFF; 16][..]));
    // A table that cannot be written has none.
    put64(&mut bytes, 8, 8);
    put32(&mut bytes, 16, 0);
    assert_eq!(client.ioctl(0xC028_4B12, &mut bytes), Err(Errno::EFAULT));
    assert_eq!([16, 20].map(|at| get32(&bytes, at)), [0, 0]);
    put32(&mut bytes, 24, 1);
    assert_eq!(client.ioctl(0xC028_4B12, &mut bytes), Err(Errno::EINVAL));
}

#[test]
fn descriptors_are_this_processs_own_and_limited() {
    let gpu = VirtualGpu::new(Config::default()).unwrap();
    assert_eq!(format!("{gpu:?}"), "VirtualGpu");
    let first = gpu.open("/dev/kfd").unwrap();
    let files: Vec<Fd> = (1..1024).map(|_| gpu.open("/dev/dri/renderD128").unwrap()).collect();
    let mut numbers: Vec<i32> = files.iter().chain([&first]).map(|file| file.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 1024, "each has its own");
    assert!(numbers[0] >= 1 << 20, "and none that the system could give");
    assert_eq!(gpu.open("/dev/kfd"), Err(Errno::EMFILE));
    gpu.close(files[0]).unwrap();
    let next = gpu.open("/dev/kfd").unwrap();
    assert!(!numbers.contains(&next.0), "not even one that was closed");
    for (offset, len) in [(1, 4096), (2048, 4096), (0, 0)] {
        for file in [next, files[1]] {
            let mapped = gpu.map(file, offset, len, Protection::Read, None).err();
            assert_eq!(mapped, Some(Errno::EINVAL), "{offset} {len}");
        }
    }
}
