//! Buffer objects: hardware reference §2.8, rows ALLOC, FREE, MAP, UNMAP.

use crate::client::*;
use zrt_kmd::{Errno, Protection, Syscalls};
use zrt_vgpu::Config;

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
    // No kernel-owned event page yet.
    assert_eq!(map(2 << 62, 32768), Some(Errno::EINVAL));
    client.create_event(0, 0, false).unwrap();
    assert_eq!((map(2 << 62, 32768), map(2 << 62, 65536)), (None, Some(Errno::EINVAL)));
}
