//! Buffer objects: hardware reference §2.8, rows ALLOC, FREE, MAP, UNMAP.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Protection, Syscalls};
use zrt_vgpu::Config;
use zrt_vgpu::config::KernelRelease;

const VA: u64 = 0x20_0000_0000;

#[test]
fn alloc_errors() {
    let client = Client::open();
    for (size, flags) in [
        (0, RING_FLAGS),
        (4096, WRITABLE),          // no domain
        (4096, 1 << 2 | WRITABLE), // USERPTR without an address
        (4096, 1 << 3 | WRITABLE), // doorbell slice of another size
        (8192, 1 << 4 | WRITABLE), // remap page of another size
        (8192, GTT | 1 << 27),     // AQL ring
    ] {
        assert_eq!(client.alloc(VA, size, flags), Err(Errno::EINVAL), "{size} {flags:#x}");
    }
    assert_eq!(client.alloc(VA, 40 << 30, VRAM), Err(Errno::ENOMEM));
    assert_eq!(client.alloc(VA, u64::MAX, GTT), Err(Errno::ENOMEM));
    let wrong = Client { gpu: client.gpu.clone(), kfd: client.kfd, render: client.render, gpu_id: 1 };
    assert_eq!(wrong.alloc(VA, 4096, RING_FLAGS), Err(Errno::EINVAL));
}

#[test]
fn vram_is_budgeted_and_sparse() {
    let client = Client::open();
    let available = || {
        let mut bytes = [0; 16];
        put32(&mut bytes, 8, client.gpu_id);
        client.ioctl(0xC010_4B23, &mut bytes).unwrap();
        get64(&bytes, 0)
    };
    let all = available();
    // All of it except 8 MiB for page tables.
    assert_eq!(all, 34_200_354_816);
    let (small, _) = client.alloc(VA, 4096, VRAM).unwrap();
    assert_eq!(available(), all - (2 << 20));
    client.free(small).unwrap();
    let (large, _) = client.alloc(VA, 30 << 30, VRAM | PUBLIC).unwrap();
    assert_eq!(available(), all - (30 << 30));
    assert_eq!(client.alloc(VA, 2 << 30, VRAM), Err(Errno::ENOMEM));
    client.free(large).unwrap();
    assert_eq!(available(), all);
}

/// Sizes that the configuration says hold in every place that states them, and for both memories.
#[test]
fn a_board_has_the_sizes_that_are_asked_for() {
    let config = Config { vram_bytes: Some(64 << 20), gtt_bytes: Some(16 << 20), ..Config::default() };
    let client = Client::open_with(config);
    client.acquire(client.render, client.gpu_id).unwrap();
    let mut bytes = [0; 16];
    put32(&mut bytes, 8, client.gpu_id);
    client.ioctl(0xC010_4B23, &mut bytes).unwrap();
    // All of it except 8 MiB for page tables.
    assert_eq!(get64(&bytes, 0), 56 << 20);
    assert_eq!(client.alloc(VA, (56 << 20) + 4096, VRAM), Err(Errno::ENOMEM));
    assert!(client.alloc(VA, 56 << 20, VRAM).is_ok());
    let system = VA + (1 << 30);
    assert_eq!(client.alloc(system, (16 << 20) + 4096, GTT), Err(Errno::ENOMEM));
    assert!(client.alloc(system, 16 << 20, GTT).is_ok());
    let file = |path: &str| String::from_utf8(client.gpu.read_file(path).unwrap()).unwrap();
    let device = "/sys/class/drm/card0/device";
    assert_eq!(file(&format!("{device}/mem_info_vram_total")), "67108864\n");
    assert_eq!(file(&format!("{device}/mem_info_gtt_total")), "16777216\n");
    let bank = file("/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties");
    assert!(bank.contains("size_in_bytes 67108864\n"), "{bank}");
}

#[test]
fn small_bar_has_no_public_vram() {
    let client = Client::open_with(Config { large_bar: false, ..Config::default() });
    client.acquire(client.render, client.gpu_id).unwrap();
    assert_eq!(client.alloc(VA, 4096, VRAM | PUBLIC), Err(Errno::EINVAL));
    let (_, offset) = client.alloc(VA, 4096, VRAM).unwrap();
    // Mapped nevertheless: its pages move into the window when they are accessed.
    client.gpu.map(client.render, offset, 4096, Protection::ReadWrite, None).unwrap();
    client.alloc(VA, 4096, GTT | PUBLIC).unwrap();
    let bank = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties";
    assert!(client.gpu.read_file(bank).unwrap().starts_with(b"heap_type 2\n"));
}

#[test]
fn map_and_free_errors() {
    let client = Client::open();
    let (handle, _) = client.alloc(VA, 4096, RING_FLAGS).unwrap();
    assert_eq!(handle >> 32, client.gpu_id as u64);
    assert_eq!(client.map_on(handle, 1), Err(Errno::EINVAL));
    assert_eq!(client.map(handle + 77), Err(Errno::ENOMEM));
    assert_eq!(client.map(handle & 0xFFFF_FFFF), Err(Errno::EINVAL));
    assert_eq!(client.unmap(handle), Err(Errno::EINVAL));
    assert_eq!(client.map(handle), Ok(1));
    assert_eq!(client.map(handle), Err(Errno::EINVAL));
    assert_eq!(client.free(handle), Err(Errno::EBUSY));
    assert_eq!(client.unmap(handle), Ok(1));
    assert_eq!(client.free(handle), Ok(0));
    assert_eq!(client.free(handle), Err(Errno::EINVAL));
    // Counts and pointers of the device list.
    let (handle, _) = client.alloc(VA, 4096, RING_FLAGS).unwrap();
    let raw = |count: u32, success: u32| {
        let mut bytes = [0; 24];
        put64(&mut bytes, 0, handle);
        put64(&mut bytes, 8, 8);
        put32(&mut bytes, 16, count);
        put32(&mut bytes, 20, success);
        client.ioctl(0xC018_4B18, &mut bytes)
    };
    assert_eq!((raw(0, 0), raw(1, 2)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!(raw(1, 0), Err(Errno::EFAULT));
    assert_eq!(raw(u32::MAX, 0), Err(Errno::ENOMEM));
}

#[test]
fn addresses_must_be_legal_and_free() {
    let client = Client::open();
    for va in [VA + 1, VA + 2048, 0, 0xFF_F000, 0x7FFF_FFFF_F000 + 4096, 1 << 48, u64::MAX - 4095] {
        let (handle, _) = client.alloc(va, 4096, RING_FLAGS).unwrap();
        assert_eq!(client.map(handle), Err(Errno::EINVAL), "{va:#x}");
        client.free(handle).unwrap();
    }
    let (first, _) = client.alloc(VA, 8192, RING_FLAGS).unwrap();
    let (second, _) = client.alloc(VA + 4096, 8192, RING_FLAGS).unwrap();
    client.map(first).unwrap();
    assert_eq!(client.map(second), Err(Errno::EINVAL));
    client.unmap(first).unwrap();
    client.map(second).unwrap();
}

#[test]
fn cpu_mappings_follow_the_rules_of_the_render_node() {
    let client = Client::open();
    let map = |offset, len| client.gpu.map(client.render, offset, len, Protection::ReadWrite, None);
    let (_, private) = client.alloc(VA, 4096, VRAM | WRITABLE).unwrap();
    map(private, 4096).unwrap().view().store_u32(0, 5);
    assert_eq!(map(private, 4096).unwrap().view().load_u32(0), 5);
    let (_, offset) = client.alloc(VA, 8192, VRAM | PUBLIC | WRITABLE).unwrap();
    assert_eq!(map(offset, 12288).err(), Some(Errno::EINVAL));
    assert_eq!(map(offset, 8193).err(), Some(Errno::EINVAL));
    // More than whole pages can express: here a length like any other that is wrong; `do_mmap` of Linux gives ENOMEM,
    // before it asks the driver.
    assert_eq!(map(offset, usize::MAX).err(), Some(Errno::EINVAL));
    assert_eq!(map(offset + 4096, 4096).err(), Some(Errno::EINVAL));
    assert_eq!(map(offset + 8, 4096).err(), Some(Errno::EINVAL));
    let (one, two) = (map(offset, 8192).unwrap(), map(offset, 4096).unwrap());
    one.view().store_u32(4092, 77);
    assert_eq!(two.view().load_u32(4092), 77);
    let other = client.gpu.open("/dev/dri/renderD128").unwrap();
    let refused = client.gpu.map(other, offset, 4096, Protection::Read, None);
    assert_eq!(refused.err(), Some(Errno::EACCES));
}

#[test]
fn kfd_offsets_name_doorbells_and_pages() {
    let client = Client::open();
    let gpu = (client.gpu_id as u64) << 46;
    let map = |offset, len| client.gpu.map(client.kfd, offset, len, Protection::ReadWrite, None).err();
    assert_eq!(map(3 << 62 | gpu, 8192), None);
    assert_eq!(map(3 << 62 | gpu, 4096), Some(Errno::EINVAL));
    assert_eq!(map(3 << 62 | gpu, 16384), Some(Errno::EINVAL));
    assert_eq!(map(3 << 62 | 7 << 46, 8192), Some(Errno::ENODEV));
    assert_eq!(map(gpu, 4096), None);
    assert_eq!(map(gpu, 8192), Some(Errno::EINVAL));
    assert_eq!(map(7 << 46, 4096), Some(Errno::ENODEV));
    // No other type exists.
    assert_eq!(map(1 << 62 | gpu, 4096), Some(Errno::EFAULT));
    // No kernel-owned event page yet.
    assert_eq!(map(2 << 62, 32768), Some(Errno::EINVAL));
    client.create_event(0, 0, false).unwrap();
    assert_eq!((map(2 << 62, 32768), map(2 << 62, 65536)), (None, Some(Errno::EINVAL)));
}

#[test]
fn memory_of_either_kind_can_be_all_that_there_is_of_it() {
    const MIB: u64 = 1 << 20;
    let client = |vram: u64, gtt: u64| {
        let config = Config { vram_bytes: Some(vram), gtt_bytes: Some(gtt), ..Config::default() };
        let client = Client::open_with(config);
        client.acquire(client.render, client.gpu_id).unwrap();
        client
    };
    // More system memory than VRAM, in one object and in two.
    let board = client(16 * MIB, 64 * MIB);
    let (all, _) = board.alloc(VA, 64 * MIB, GTT).unwrap();
    assert_eq!(board.alloc(VA, 1, GTT), Err(Errno::ENOMEM));
    board.free(all).unwrap();
    assert_eq!(board.alloc(VA, 64 * MIB + 1, GTT), Err(Errno::ENOMEM));
    board.alloc(VA, 40 * MIB, GTT).unwrap();
    assert_eq!(board.alloc(VA, 24 * MIB + 1, GTT), Err(Errno::ENOMEM));
    board.alloc(VA, 24 * MIB, GTT).unwrap();
    // VRAM is counted for itself, without the page tables' 8 MiB.
    assert_eq!(board.alloc(VA, 8 * MIB + 1, VRAM), Err(Errno::ENOMEM));
    board.alloc(VA, 8 * MIB, VRAM).unwrap();
    // What is told to be available is counted in pieces of 2 MiB, of each object and of the whole.
    let available = |board: &Client| {
        let mut bytes = [0; 16];
        put32(&mut bytes, 8, board.gpu_id);
        board.ioctl(0xC010_4B23, &mut bytes).unwrap();
        get64(&bytes, 0) / MIB
    };
    assert_eq!(available(&board), 0);
    let board = client(63 * MIB, 16 * MIB);
    assert_eq!(available(&board), 54);
    let small = [(); 3].map(|()| board.alloc(VA, 4096, VRAM).unwrap().0);
    assert_eq!(available(&board), 48);
    board.alloc(VA, 2 * MIB + 1, VRAM).unwrap();
    board.alloc(VA, 2 * MIB, GTT).unwrap();
    assert_eq!(available(&board), 44);
    for handle in small {
        board.free(handle).unwrap();
    }
    assert_eq!(available(&board), 50);
    assert_eq!(available(&client(4 * MIB, 16 * MIB)), 0);
    let mut bytes = [0; 16];
    put32(&mut bytes, 8, 1);
    assert_eq!(board.ioctl(0xC010_4B23, &mut bytes), Err(Errno::EINVAL), "of another device");
}

#[test]
fn objects_lie_between_the_first_and_the_last_user_address() {
    let client = Client::open();
    let map = |va: u64, size: u64| {
        let (handle, _) = client.alloc(va, size, RING_FLAGS).unwrap();
        client.map(handle).and_then(|_| client.unmap(handle))
    };
    let last = 0x7FFF_FFFF_F000;
    assert_eq!((map(0x100_0000, 4096), map(last, 4096), map(last, 1)), (Ok(1), Ok(1), Ok(1)));
    for (va, size) in [(0xFF_F000, 8192), (last, 8192), (last, 4097), (last + 1, 1)] {
        assert_eq!(map(va, size), Err(Errno::EINVAL), "{va:#x} {size}");
    }
}

/// Neither the doorbells nor the remap page, and nothing between two objects, is mapped through the render node.
#[test]
fn special_objects_are_mapped_through_the_kfd_file_alone() {
    let client = Client::open();
    let gpu = (client.gpu_id as u64) << 46;
    let (_, before) = client.alloc(VA, 4096, VRAM).unwrap();
    let (doorbells, slice) = client.alloc(VA, 8192, 1 << 3 | WRITABLE).unwrap();
    let (remap, page) = client.alloc(VA + 8192, 4096, 1 << 4 | WRITABLE).unwrap();
    let (_, after) = client.alloc(VA, 4096, GTT).unwrap();
    assert_eq!((slice, page), (3 << 62 | gpu, gpu));
    let map = |fd, offset, len| client.gpu.map(fd, offset, len, Protection::ReadWrite, None).err();
    assert_eq!((map(client.kfd, slice, 8192), map(client.kfd, page, 4096)), (None, None));
    assert_eq!((map(client.render, before, 4096), map(client.render, after, 4096)), (None, None));
    let offsets: Vec<u64> = (before + 4096..after).step_by(4096).collect();
    assert!(before % 4096 == 0 && offsets.len() > 3, "objects do not overlap: {before:#x} {after:#x}");
    for offset in offsets.into_iter().chain([slice, page, 0, before - 4096, after + 4096]) {
        let refused = map(client.render, offset, 4096);
        assert!(matches!(refused, Some(Errno::EINVAL | Errno::EPERM)), "{offset:#x} {refused:?}");
    }
    // The GPU has them where they were placed.
    assert_eq!((client.map(doorbells), client.map(remap)), (Ok(1), Ok(1)));
    assert_eq!((client.free(doorbells), client.unmap(doorbells)), (Err(Errno::EBUSY), Ok(1)));
    // Neither counts as memory.
    let used = client.gpu.read_file("/sys/class/drm/card0/device/mem_info_gtt_used");
    assert_eq!(used, Ok(b"4096\n".to_vec()));
}

#[test]
fn mapping_goes_on_where_it_ended() {
    let client = Client::open();
    let (handle, _) = client.alloc(VA, 4096, RING_FLAGS).unwrap();
    let request = |number: u32, devices: &[u32], done: u32| {
        let mut bytes = [0; 24];
        put64(&mut bytes, 0, handle);
        put32(&mut bytes, 16, devices.len() as u32);
        put32(&mut bytes, 20, done);
        let mut ids: Vec<u8> = devices.iter().flat_map(|id| id.to_le_bytes()).collect();
        let nested = &mut [Nested { field_offset: 8, bytes: &mut ids }];
        let outcome = ioctl_bytes(&*client.gpu, client.kfd, 0xC018_4B00 | number, &mut bytes, nested);
        (outcome, get32(&bytes, 20))
    };
    let (map, unmap, own) = (0x18, 0x19, client.gpu_id);
    let refused = Err(Errno::EINVAL);
    // The devices before the count are not looked at; after the first success the second is the same device.
    assert_eq!(request(map, &[5, own], 0), (refused, 0));
    assert_eq!(request(map, &[5, own, own], 1), (refused, 2));
    assert_eq!(request(map, &[own, own], 2), (Ok(0), 2));
    assert_eq!(request(unmap, &[own, 5], 0), (refused, 1));
    assert_eq!(request(unmap, &[own], 0), (refused, 0));
    // As many devices as a request may name, and one more.
    assert_eq!(request(map, &[own; 1024], 0), (refused, 1));
    assert_eq!(request(unmap, &[own; 1025], 0), (Err(Errno::ENOMEM), 0));
    assert_eq!(request(unmap, &[own], 0), (Ok(0), 1));
}

#[test]
fn what_the_process_has_is_listed() {
    // Kernels before 6.12 do not hold what a queue names (hardware reference §2.8, UNMAP).
    let client = Client::open_under(KernelRelease::Newest);
    assert_eq!(client.text("objects"), "");
    let (first, offset) = client.alloc(VA, 5000, VRAM | WRITABLE).unwrap();
    let (second, _) = client.alloc(VA + 8192, 4096, GTT).unwrap();
    client.map(second).unwrap();
    let line = "object 0 va 0x2000000000 bytes 8192 flags 0x80000001 mapped 0 queues 0\n";
    let other = "object 1 va 0x2000002000 bytes 4096 flags 0x2 mapped 1 queues 0\n";
    assert_eq!(client.text("objects"), format!("{line}{other}gpu_mappings 1\n"));
    client.create_event(0, 8, false).unwrap();
    let mapping = client.gpu.map(client.render, offset, 8192, Protection::Read, None).unwrap();
    let counts = "events 1\nclient_mappings 1\ngpu_mappings 1\n";
    assert_eq!(client.text("objects"), format!("{line}{other}{counts}"));
    drop(mapping);
    client.unmap(second).unwrap();
    client.free(first).unwrap();
    // The lowest free index is the next object's.
    let (next, _) = client.alloc(VA, 4096, GTT).unwrap();
    assert_eq!((next as u32, client.free(next)), (0, Ok(0)));
    let other = "object 1 va 0x2000002000 bytes 4096 flags 0x2 mapped 0 queues 0\n";
    assert_eq!(client.text("objects"), format!("{other}events 1\n"));
    // A queue with its slot, and what it holds: ring, both pointers, end-of-pipe buffer, save area.
    let (fields, _buffers) = Queue::fields(&client, 4096);
    client.create_queue(&fields).unwrap();
    client.create_queue(&fields).unwrap();
    let text = client.text("objects");
    let rest = "queue 0 slot 0\nqueue 1 slot 1\nevents 1\nclient_mappings 3\ngpu_mappings 5\n";
    assert!(text.ends_with(rest), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with(" mapped 1 queues 2")).count(), 5, "{text}");
}

#[test]
fn the_pointers_of_a_queue_may_lie_anywhere_in_their_page() {
    let client = Client::open_under(KernelRelease::Newest);
    let (fields, _buffers) = Queue::fields(&client, 4096);
    let (page, _) = client.alloc(VA, 4096, RING_FLAGS).unwrap();
    client.map(page).unwrap();
    let create =
        |wptr: u64, rptr: u64| client.create_queue(&CreateQueue { wptr, rptr, ..fields }).map(|_| ());
    assert_eq!((create(VA, VA + 4088), create(VA + 4088, VA)), (Ok(()), Ok(())));
    let refused = Err(Errno::EINVAL);
    assert_eq!((create(VA + 4096, VA), create(VA - 8, VA)), (refused, refused));
    assert_eq!((create(VA, VA + 4096), create(VA, VA - 8)), (refused, refused));
}
