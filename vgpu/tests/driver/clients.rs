//! The requests that other runtimes make when they start, one by one, as bytes: tinygrad (`KFDIface` and
//! `AMDDevice` of `ops_amd.py`), libdrm (`amdgpu_device_initialize`) and ROCr (`libhsakmt`: `fmm.c`, `topology.c`).
//! The order is theirs.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, MemoryFile, Protection, Syscalls};
use zrt_vgpu::config::KernelRelease;

const NO_SUBSTITUTE: u32 = 1 << 28;
/// Flags that tinygrad sets on every allocation.
const ALWAYS: u32 = WRITABLE | EXECUTABLE | NO_SUBSTITUTE;
const STAGING_COUNT: usize = 32;

#[test]
fn tinygrad_starts() {
    for kernel in KernelRelease::ALL {
        let client = Client::open_with(zrt_vgpu::Config { kernel: Some(kernel), ..Default::default() });
        client.ioctl(0x8008_4B01, &mut [0; 8]).unwrap();
        client.acquire(client.render, client.gpu_id).unwrap();
        // RUNTIME_ENABLE with mode 0.
        client.ioctl(0xC010_4B25, &mut [0; 16]).unwrap();
        // Every allocation except USERPTR is mapped for the CPU at its own address, VRAM too.
        let uncached = GTT | 3 << 25 | ALWAYS;
        let page = client.buffer_with(0x8000, uncached, true);
        assert_eq!(client.create_event(page.handle, 0, false), Ok(1));
        let events = [(0, true), (8, false), (3, false)]
            .map(|(kind, auto)| client.create_event(0, kind, auto).unwrap());
        let ring = client.buffer_with(16 << 20, uncached, true);
        let pointers = client.buffer_with(4096, uncached, true);
        let eop = client.buffer_with(4096, VRAM | ALWAYS, true);
        let save_area = client.buffer_with(CWSR_BUFFER, VRAM | ALWAYS, true);
        let fields = CreateQueue {
            ring: ring.va,
            wptr: pointers.va + 0x38,
            rptr: pointers.va + 0x80,
            ring_size: 16 << 20,
            gpu_id: client.gpu_id,
            kind: 0,
            percentage: 100,
            priority: 7,
            eop: eop.va,
            eop_size: 4096,
            cwsr: save_area.va,
            cwsr_size: CWSR_SIZE,
            ctl_stack: CTL_STACK,
        };
        let (queue, doorbell) = client.create_queue(&fields).unwrap();
        client.gpu.map(client.kfd, doorbell & !0x1FFF, 0x2000, Protection::ReadWrite, None).unwrap();
        // Its SDMA queue is refused, and it continues without one.
        assert_eq!(client.create_queue(&CreateQueue { kind: 1, eop: 0, ..fields }), Err(Errno::ENOTSUPP));
        let staging: Vec<_> = (0..STAGING_COUNT)
            .map(|_| {
                let file = MemoryFile::new("staging", 2 << 20).unwrap();
                let pages = file.map(0, 2 << 20, Protection::ReadWrite, None).unwrap();
                let va = pages.address();
                let (handle, _) = client.alloc_at(va, 2 << 20, USERPTR | PUBLIC | ALWAYS, va).unwrap();
                assert_eq!(client.map(handle), Ok(1));
                (handle, pages)
            })
            .collect();
        let tensor = client.buffer_with(1 << 20, VRAM | ALWAYS, true);
        tensor.view().store_u32(0, 1);
        assert_eq!(client.wait_events(&events, false, 0).unwrap().0, 1);
        // Its order of freeing: from the GPU, from the process, the object.
        for (handle, pages) in staging {
            assert_eq!(client.unmap(handle), Ok(1));
            drop(pages);
            assert_eq!(client.free(handle), Ok(0));
        }
        client.destroy_queue(queue).unwrap();
        assert_eq!(client.text("faults"), "", "{kernel}");
    }
}

#[test]
fn libdrm_knows_the_node_and_opens_it() {
    let client = Client::open();
    // drmGetNodeTypeFromFd: a DRM device has this folder, and the node's name in it says which kind it is.
    let nodes = client.gpu.read_directory("/sys/dev/char/226:128/device/drm").unwrap();
    assert!(nodes.iter().any(|name| name == "renderD128"), "{nodes:?}");
    let read = |path: &str| String::from_utf8(client.gpu.read_file(path).unwrap()).unwrap();
    assert_eq!(read("/sys/dev/char/226:128/device/drm/renderD128/dev"), "226:128\n");
    assert!(read("/sys/dev/char/226:128/device/uevent").contains("PCI_SLOT_NAME=0000:05:00.0\n"));
    // It does not make this request on a render node; a client that does is told that render nodes do not allow it.
    let drm =
        |request: u32, bytes: &mut [u8]| ioctl_bytes(&*client.gpu, client.render, request, bytes, &mut []);
    assert_eq!(drm(0xC028_6405, &mut [0; 40]), Err(Errno::EACCES));
    // drmGetVersion: once for the lengths, once for the texts.
    let mut version = [0; 64];
    drm(0xC040_6400, &mut version).unwrap();
    let lengths = [16, 32, 48].map(|at| get64(&version, at));
    assert_eq!((get32(&version, 0), lengths), (3, [6, 8, 7]));
    let (mut name, mut date, mut description) = ([0u8; 6], [0u8; 8], [0u8; 4]);
    put64(&mut version, 48, 4);
    let nested = &mut [
        Nested { field_offset: 24, bytes: &mut name },
        Nested { field_offset: 40, bytes: &mut date },
        Nested { field_offset: 56, bytes: &mut description },
    ];
    ioctl_bytes(&*client.gpu, client.render, 0xC040_6400, &mut version, nested).unwrap();
    assert_eq!((&name, &description, get64(&version, 48)), (b"amdgpu", b"AMD ", 7));
    let mut working = [0; 4];
    client.info(0x00, &[], &mut working).unwrap();
    assert_eq!(working, [1, 0, 0, 0]);
    client.info(0x16, &[], &mut [0; 440]).unwrap();
    // READ_MMR_REG of GB_ADDR_CONFIG, for every engine and array.
    let mut register = [0; 4];
    client.info(0x15, &[0x263E, 1, u32::MAX, 0], &mut register).unwrap();
    assert_eq!(get32(&register, 0), 0x545);
    let refused = |argument: &[u32]| client.info(0x15, argument, &mut [0; 4]).err();
    assert_eq!(refused(&[0x263F, 1, u32::MAX, 0]), Some(Errno::EFAULT));
    assert_eq!(refused(&[0x263E, 129, u32::MAX, 0]), Some(Errno::EINVAL));
    assert_eq!(client.text("faults"), "");
}

#[test]
fn rocr_starts_up_to_its_queues() {
    let client = Client::open_with(zrt_vgpu::Config::default());
    client.ioctl(0x8008_4B01, &mut [0; 8]).unwrap();
    let mut apertures = [0; 16];
    client.ioctl(0xC010_4B14, &mut apertures).unwrap();
    client.acquire(client.render, client.gpu_id).unwrap();
    let mut policy = [0; 32];
    put32(&mut policy, 16, client.gpu_id);
    client.ioctl(0x4020_4B04, &mut policy).unwrap();
    // The HDP page, mapped for both sides.
    let (_, offset) = client.alloc(0x20_0000_0000, 4096, 1 << 4 | WRITABLE | NO_SUBSTITUTE).unwrap();
    client.gpu.map(client.kfd, offset, 4096, Protection::ReadWrite, None).unwrap();
    let mut xnack = (-1i32).to_le_bytes();
    client.ioctl(0xC004_4B21, &mut xnack).unwrap();
    let mut scratch = [0; 16];
    put64(&mut scratch, 0, 0x30_0000_0000);
    assert_eq!(client.ioctl(0xC010_4B11, &mut scratch), Err(Errno::EINVAL));
    put32(&mut scratch, 8, client.gpu_id);
    client.ioctl(0xC010_4B11, &mut scratch).unwrap();
    // GET_TILE_CONFIG with the buffer sizes of libhsakmt's caller.
    let mut tiles = [0; 40];
    put32(&mut tiles, 16, 64);
    put32(&mut tiles, 20, 8);
    put32(&mut tiles, 24, client.gpu_id);
    let (mut table, mut macro_table) = ([0xFF; 256], [0xFF; 32]);
    let nested = &mut [
        Nested { field_offset: 0, bytes: &mut table },
        Nested { field_offset: 8, bytes: &mut macro_table },
    ];
    ioctl_bytes(&*client.gpu, client.kfd, 0xC028_4B12, &mut tiles, nested).unwrap();
    assert_eq!([16, 20, 28, 32, 36].map(|at| get32(&tiles, at)), [32, 8, 0x545, 0, 0]);
    assert!(table[..128].iter().all(|byte| *byte == 0) && table[128..].iter().all(|byte| *byte == 0xFF));
    put64(&mut tiles, 0, 8);
    assert_eq!(client.ioctl(0xC028_4B12, &mut tiles), Err(Errno::EFAULT));
    let mut available = [0; 16];
    put32(&mut available, 8, client.gpu_id);
    client.ioctl(0xC010_4B23, &mut available).unwrap();
    let page = client.buffer_with(0x8000, RING_FLAGS, true);
    client.create_event(page.handle, 0, false).unwrap();
    assert_eq!(client.text("faults"), "");
    // The doorbell type, which it reads from `capability`.
    let path = "/sys/class/kfd/kfd/topology/nodes/1/properties";
    let text = String::from_utf8(client.gpu.read_file(path).unwrap()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("capability ")).unwrap();
    let capability: u32 = line.parse().unwrap();
    assert_eq!(capability >> 12 & 3, 2, "doorbell type 2.0");
}
