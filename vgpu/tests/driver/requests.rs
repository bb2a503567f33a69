//! Dispatch, descriptors, sizes, versions, apertures, the VM, and the render node's answers.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Fd, Protection, Syscalls, UserPointer};
use zrt_vgpu::Config;
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

fn info(client: &Client, query: u32, ip_type: u32, answer: &mut [u8]) -> Result<i32, Errno> {
    let mut bytes = [0; 32];
    put32(&mut bytes, 8, answer.len() as u32);
    put32(&mut bytes, 12, query);
    put32(&mut bytes, 16, ip_type);
    let nested = &mut [Nested { field_offset: 0, bytes: answer }];
    ioctl_bytes(&*client.gpu, client.render, 0x4020_6445, &mut bytes, nested)
}

#[test]
fn the_render_node_says_that_user_queues_are_absent() {
    let client = Client::open();
    let mut ip = [0xFF; 40];
    info(&client, 0x02, 1, &mut ip).unwrap();
    // Major and minor version; userq_num_slots.
    assert_eq!((get32(&ip, 0), get32(&ip, 4), get32(&ip, 32)), (12, 0, 0));
    let mut old = [0xFF; 32];
    info(&client, 0x02, 1, &mut old).unwrap();
    assert_eq!(old[..], ip[..32]);
    let mut device = [0xFF; 440];
    info(&client, 0x16, 0, &mut device).unwrap();
    // device_id, family, engines, arrays, active CUs, wave size, userq_ip_mask.
    let words = [0, 16, 20, 24, 48, 240, 436].map(|at| get32(&device, at));
    assert_eq!(words, [0x7551, 152, 4, 2, 64, 32, 0]);
    let mut userq = [0; 72];
    let create = ioctl_bytes(&*client.gpu, client.render, 0xC048_6456, &mut userq, &mut []);
    assert_eq!(create, Err(Errno::ENOTSUPP));
    assert_eq!(info(&client, 0x77, 0, &mut [0; 4]), Err(Errno::EINVAL));
    assert_eq!(
        ioctl_bytes(&*client.gpu, client.render, 0xC008_6477, &mut [0; 8], &mut []),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        ioctl_bytes(&*client.gpu, client.render, 0x8008_4B01, &mut [0; 8], &mut []),
        Err(Errno::ENOTTY)
    );
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
