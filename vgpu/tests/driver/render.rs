//! The render node's requests: DRM's rules of dispatch, and every answer of AMDGPU_INFO as a whole
//! (`amdgpu_drm.h`; hardware reference §1 and §3).

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Syscalls, UserPointer};
use zrt_vgpu::Config;
use zrt_vgpu::config::KernelRelease;

const IP_INFO: u32 = 0x02;
const IP_COUNT: u32 = 0x03;
const READ_REGISTERS: u32 = 0x15;

/// The answer of a query, in dwords.
fn dwords<const COUNT: usize>(client: &Client, query: u32, argument: &[u32]) -> Result<[u32; COUNT], Errno> {
    let mut bytes = vec![0xFF; COUNT * 4];
    client.info(query, argument, &mut bytes)?;
    Ok(core::array::from_fn(|index| get32(&bytes, index * 4)))
}

/// The same in quadwords.
fn quadwords<const COUNT: usize>(client: &Client, query: u32) -> [u64; COUNT] {
    let mut bytes = vec![0xFF; COUNT * 8];
    client.info(query, &[], &mut bytes).unwrap();
    core::array::from_fn(|index| get64(&bytes, index * 8))
}

#[test]
fn requests_are_told_apart_by_magic_and_number() {
    let client = Client::open();
    let request = |request: u32| ioctl_bytes(&*client.gpu, client.render, request, &mut [0; 72], &mut []);
    for (word, expected) in [
        // Another magic, whatever the number.
        (0x8008_4B01, Errno::ENOTTY),
        (0xC040_6500, Errno::ENOTTY),
        // USERQ, its signals and its waits: no firmware for them.
        (0xC048_6456, Errno::ENOTSUPP),
        (0xC020_6457, Errno::ENOTSUPP),
        (0xC020_6458, Errno::ENOTSUPP),
        // GET_CLIENT is not for render nodes; the others do not exist.
        (0xC028_6405, Errno::EACCES),
        (0xC008_6477, Errno::EINVAL),
        (0xC008_64FF, Errno::EINVAL),
    ] {
        assert_eq!(request(word), Err(expected), "{word:#x}");
    }
    assert_eq!(client.info(0x77, &[], &mut [0; 4]), Err(Errno::EINVAL));
}

#[test]
fn an_answer_is_as_long_as_both_sides_allow() {
    let client = Client::open();
    let mut long = [0xEE; 12];
    client.info(0x00, &[], &mut long).unwrap();
    assert_eq!(long, [1, 0, 0, 0, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE]);
    let mut short = [0xEE; 3];
    client.info(0x16, &[], &mut short).unwrap();
    assert_eq!(short, [0x51, 0x75, 0]);
    // Nothing to write, or nowhere.
    assert_eq!(client.info(0x00, &[], &mut []), Err(Errno::EINVAL));
    let to = |pointer: u64, size: u32| {
        let mut bytes = [0; 32];
        put64(&mut bytes, 0, pointer);
        put32(&mut bytes, 8, size);
        ioctl_bytes(&*client.gpu, client.render, 0x4020_6445, &mut bytes, &mut [])
    };
    assert_eq!((to(0, 4), to(8, 0), to(8, 4)), (Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::EFAULT)));
    // The size of the request is the caller's own: what is missing counts as zero.
    for (request, len) in [(0x4010_6445, 16), (0x4040_6445, 64)] {
        let (mut bytes, mut answer) = (vec![0; len], [0xEE; 4]);
        put32(&mut bytes, 8, 4);
        let nested = &mut [Nested { field_offset: 0, bytes: &mut answer }];
        ioctl_bytes(&*client.gpu, client.render, request, &mut bytes, nested).unwrap();
        assert_eq!(answer, [1, 0, 0, 0], "{len}");
    }
    for request in [0x4020_6445, 0xC040_6400] {
        let invalid = client.gpu.ioctl(client.render, request, UserPointer::invalid());
        assert_eq!(invalid, Err(Errno::EFAULT), "{request:#x}");
    }
}

#[test]
fn the_driver_names_itself() {
    let client = Client::open_under(KernelRelease::V6_17);
    let mut bytes = [0; 64];
    let (mut name, mut date, mut description) = ([b'.'; 3], [b'.'; 10], [b'.'; 7]);
    for (at, len) in [(16, 3), (32, 10), (48, 7)] {
        put64(&mut bytes, at, len);
    }
    let nested = &mut [
        Nested { field_offset: 24, bytes: &mut name },
        Nested { field_offset: 40, bytes: &mut date },
        Nested { field_offset: 56, bytes: &mut description },
    ];
    ioctl_bytes(&*client.gpu, client.render, 0xC040_6400, &mut bytes, nested).unwrap();
    assert_eq!([0, 4, 8].map(|at| get32(&bytes, at)), [3, 64, 0]);
    assert_eq!([16, 32, 48].map(|at| get64(&bytes, at)), [6, 8, 7], "lengths of the whole texts");
    assert_eq!((&name, &date, &description), (b"amd", b"20150101..", b"AMD GPU"));
    // A pointer without room is not followed, and a room without a pointer is not used.
    put64(&mut bytes, 16, 0);
    put64(&mut bytes, 24, 8);
    put64(&mut bytes, 40, 0);
    put64(&mut bytes, 48, 0);
    assert_eq!(ioctl_bytes(&*client.gpu, client.render, 0xC040_6400, &mut bytes, &mut []), Ok(0));
    put64(&mut bytes, 16, 1);
    let outcome = ioctl_bytes(&*client.gpu, client.render, 0xC040_6400, &mut bytes, &mut []);
    assert_eq!((outcome, get32(&bytes, 0)), (Err(Errno::EFAULT), 3), "copied back after an error too");
}

#[test]
fn blocks_with_queues_are_graphics_compute_and_copies() {
    let client = Client::open();
    let info = |kind: u32, instance: u32| dwords::<10>(&client, IP_INFO, &[kind, instance]);
    // Version, capabilities, alignments of indirect buffers, rings, version again, user queues.
    assert_eq!(info(0, 0), Ok([12, 0, 0, 0, 32, 32, 1, 0x0C_0001, 0, 0]));
    assert_eq!(info(1, 0), Ok([12, 0, 0, 0, 32, 32, 15, 0x0C_0001, 0, 0]));
    assert_eq!(info(2, 0), Ok([7, 0, 0, 0, 32, 32, 3, 0x07_0001, 0, 0]));
    for kind in 3..10 {
        assert_eq!(info(kind, 0), Ok([0; 10]), "{kind}");
    }
    // AMDGPU_HW_IP_NUM is 10, and only instance 0 is described.
    assert_eq!((info(10, 0), info(1, 1)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    let count = |kind: u32| dwords::<1>(&client, IP_COUNT, &[kind]);
    // Navi 48 has two engines that copy, as the topology says.
    assert_eq!([0, 1, 2].map(count), [Ok([1]), Ok([1]), Ok([2])]);
    assert_eq!([3, 9, 10, u32::MAX].map(count), [Err(Errno::EINVAL); 4]);
    // The structure before `userq_num_slots`.
    assert_eq!(dwords(&client, IP_INFO, &[2, 0]), Ok([7, 0, 0, 0, 32, 32, 3, 0x07_0001]));
}

#[test]
fn the_device_is_described_field_by_field() {
    let client = Client::open();
    let mut expected = [0; 440];
    for (at, value) in [
        (0, 0x7551),     // device_id
        (8, 0x50),       // external_rev
        (12, 0xC0),      // pci_rev
        (16, 152),       // family: AMDGPU_FAMILY_GC_12_0_0
        (20, 4),         // num_shader_engines
        (24, 2),         // num_shader_arrays_per_engine
        (28, 100_000),   // gpu_counter_freq in kHz
        (48, 64),        // cu_active_number
        (132, 5),        // pcie_gen
        (160, 4096),     // virtual_address_alignment
        (164, 2 << 20),  // pte_fragment_size
        (168, 4096),     // gart_page_size
        (176, 9),        // vram_type: AMDGPU_VRAM_TYPE_GDDR6
        (180, 256),      // vram_bit_width
        (240, 32),       // wave_front_size
        (244, 1536),     // num_shader_visible_vgprs
        (248, 8),        // num_cu_per_sh
        (268, 16),       // pcie_num_lanes
        (384, 32),       // tcp_cache_size in KiB
        (404, 8 << 20),  // gl2c_cache_size
        (408, 64 << 20), // mall_size, low half
    ] {
        put32(&mut expected, at, value);
    }
    for (at, value) in [
        (32, 2_350_000),         // max_engine_clock in kHz
        (40, 1_258_000),         // max_memory_clock
        (144, 0x100_0000),       // virtual_address_offset
        (152, 0x7FFF_FFFF_FFFF), // virtual_address_max
    ] {
        put64(&mut expected, at, value);
    }
    // cu_bitmap[4][4]: eight units in both arrays of each engine.
    for at in [56, 60, 72, 76, 88, 92, 104, 108] {
        put32(&mut expected, at, 0xFF);
    }
    let mut device = [0xEE; 440];
    client.info(0x16, &[], &mut device).unwrap();
    let different = (0..440).step_by(4).find(|at| get32(&device, *at) != get32(&expected, *at));
    assert_eq!(different, None, "the first dword that is not as expected");
}

#[test]
fn one_register_can_be_read() {
    let client = Client::open();
    let read = |first: u32, count: u32| dwords::<1>(&client, READ_REGISTERS, &[first, count, u32::MAX, 0]);
    assert_eq!(read(0x263E, 1), Ok([0x545]));
    assert_eq!(read(0x263E, 0), Ok([u32::MAX]), "nothing asked for, nothing written");
    assert_eq!((read(0x263D, 1), read(0x263E, 2)), (Err(Errno::EFAULT), Err(Errno::EFAULT)));
    // At most 128 at a time.
    assert_eq!((read(0x263E, 128), read(0x263E, 129)), (Err(Errno::EFAULT), Err(Errno::EINVAL)));
}

#[test]
fn memory_is_told_by_heap_with_what_is_used() {
    let config = Config {
        large_bar: false,
        vram_bytes: Some(1 << 30),
        gtt_bytes: Some(100 << 20),
        ..Config::default()
    };
    let client = Client::open_with(config);
    client.acquire(client.render, client.gpu_id).unwrap();
    const MIB: u64 = 1 << 20;
    // Total, usable, used, largest allocation (three quarters) of VRAM, of what the CPU sees, of system memory.
    let memory = || quadwords::<12>(&client, 0x19).map(|bytes| bytes / MIB);
    assert_eq!(memory(), [1024, 1024, 0, 768, 256, 256, 0, 192, 100, 100, 0, 75]);
    let va = 0x20_0000_0000;
    client.alloc(va, 200 * MIB, VRAM).unwrap();
    client.alloc(va, 8 * MIB, GTT).unwrap();
    assert_eq!(memory(), [1024, 1024, 200, 768, 256, 256, 200, 192, 100, 100, 8, 75]);
    // More than the CPU sees cannot be in use there.
    let (second, _) = client.alloc(va, 100 * MIB, VRAM).unwrap();
    assert_eq!(memory(), [1024, 1024, 300, 768, 256, 256, 256, 192, 100, 100, 8, 75]);
    assert_eq!((quadwords(&client, 0x10), quadwords(&client, 0x11)), ([300 * MIB], [8 * MIB]));
    client.free(second).unwrap();
    assert_eq!(quadwords(&client, 0x10), [200 * MIB]);
    // With a large BAR all of it is visible.
    let large = Client::open_with(Config { large_bar: true, ..config });
    assert_eq!(quadwords::<12>(&large, 0x19).map(|bytes| bytes / MIB)[4..8], [1024, 1024, 0, 768]);
}

#[test]
fn the_clock_is_that_of_the_clock_counters() {
    let client = Client::open();
    let counter = || {
        let mut clocks = [0; 40];
        put32(&mut clocks, 32, client.gpu_id);
        client.ioctl(0xC028_4B05, &mut clocks).unwrap();
        get64(&clocks, 0)
    };
    let before = counter();
    let [between] = quadwords(&client, 0x05);
    let after = counter();
    assert!(0 < before && before <= between && between <= after, "{before} {between} {after}");
}

#[test]
fn the_last_page_fault_is_remembered() {
    let client = Client::open();
    // Address and status; nothing is known of the hub.
    let fault = || dwords::<4>(&client, 0x23, &[]);
    assert_eq!(fault(), Ok([0; 4]));
    let memory = client.create_event(0, 8, false).unwrap();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(0x45_0000_1234, 1));
    assert_eq!(client.wait_events(&[memory], true, 5000).unwrap().0, 0);
    assert_eq!(fault(), Ok([0x1000, 0x45, 1, 0]));
    assert_eq!(dwords::<1>(&client, 0x1F, &[]), Ok([0]), "no memory was lost");
}
