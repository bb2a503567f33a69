//! A small client of the seam: raw structures by hand, with its own constants, taken from hardware reference §2.

use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Fd, Mapping, Protection, Reservation, Syscalls};
use zrt_mem::SharedView;
use zrt_vgpu::Config;
use zrt_vgpu::FaultInjection;
use zrt_vgpu::VirtualGpu;
use zrt_vgpu::config::KernelRelease;

pub const VRAM: u32 = 1;
pub const GTT: u32 = 2;
pub const USERPTR: u32 = 4;
pub const PUBLIC: u32 = 1 << 29;
pub const EXECUTABLE: u32 = 1 << 30;
pub const WRITABLE: u32 = 1 << 31;
/// The flags that tinygrad uses for its rings.
pub const RING_FLAGS: u32 = GTT | 3 << 25 | 1 << 28 | PUBLIC | EXECUTABLE | WRITABLE;
pub const PRIVATE_FLAGS: u32 = VRAM | 1 << 28 | EXECUTABLE | WRITABLE;

pub const CWSR_SIZE: u32 = 30_699_520;
pub const CWSR_BUFFER: u64 = 30_765_056;
pub const CTL_STACK: u32 = 28_672;

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub struct Client {
    pub gpu: Arc<VirtualGpu>,
    pub kfd: Fd,
    pub render: Fd,
    pub gpu_id: u32,
}

/// A buffer object at an address that the client reserved for it.
pub struct Buffer {
    pub va: u64,
    pub handle: u64,
    pub mapping: Option<Mapping>,
    place: Reservation,
}

impl Buffer {
    pub fn view(&self) -> &SharedView {
        self.mapping.as_ref().unwrap().view()
    }

    /// Stores words at its beginning.
    pub fn fill(&self, words: &[u32]) {
        words.iter().enumerate().for_each(|(index, word)| self.view().store_u32(index * 4, *word));
    }
}

/// Fields of CREATE_QUEUE as the client fills them.
#[derive(Clone, Copy)]
pub struct CreateQueue {
    pub ring: u64,
    pub wptr: u64,
    pub rptr: u64,
    pub ring_size: u32,
    pub gpu_id: u32,
    pub kind: u32,
    pub percentage: u32,
    pub priority: u32,
    pub eop: u64,
    pub eop_size: u64,
    pub cwsr: u64,
    pub cwsr_size: u32,
    pub ctl_stack: u32,
}

impl CreateQueue {
    pub fn bytes(&self) -> [u8; 96] {
        let mut bytes = [0; 96];
        for (at, value) in [
            (0, self.ring),
            (8, self.wptr),
            (16, self.rptr),
            (56, self.eop),
            (64, self.eop_size),
            (72, self.cwsr),
        ] {
            put64(&mut bytes, at, value);
        }
        for (at, value) in [
            (32, self.ring_size),
            (36, self.gpu_id),
            (40, self.kind),
            (44, self.percentage),
            (48, self.priority),
            (80, self.cwsr_size),
            (84, self.ctl_stack),
        ] {
            put32(&mut bytes, at, value);
        }
        bytes
    }
}

impl Client {
    pub fn open_with(config: Config) -> Client {
        Client::on(VirtualGpu::new(config).unwrap())
    }

    /// A client of a misbehaving board, with its VM acquired.
    pub fn open_injected(injection: FaultInjection) -> Client {
        let client = Client::on(VirtualGpu::with_injection(Config::default(), injection).unwrap());
        client.acquire(client.render, client.gpu_id).unwrap();
        client
    }

    /// New files of the board's process that have acquired nothing.
    pub fn on(gpu: Arc<VirtualGpu>) -> Client {
        let path = "/sys/class/kfd/kfd/topology/nodes/1/gpu_id";
        let text = String::from_utf8(gpu.read_file(path).unwrap()).unwrap();
        let kfd = gpu.open("/dev/kfd").unwrap();
        let render = gpu.open("/dev/dri/renderD128").unwrap();
        Client { gpu, kfd, render, gpu_id: text.trim().parse().unwrap() }
    }

    /// A client under a kernel release, with its VM acquired.
    pub fn open_under(kernel: KernelRelease) -> Client {
        let client = Client::open_with(Config { kernel: Some(kernel), ..Config::default() });
        client.acquire(client.render, client.gpu_id).unwrap();
        client
    }

    /// A client with its VM acquired.
    pub fn open() -> Client {
        let client = Client::open_with(Config::default());
        client.acquire(client.render, client.gpu_id).unwrap();
        client
    }

    pub fn ioctl(&self, request: u32, bytes: &mut [u8]) -> Result<i32, Errno> {
        ioctl_bytes(&*self.gpu, self.kfd, request, bytes, &mut [])
    }

    pub fn acquire(&self, render: Fd, gpu_id: u32) -> Result<i32, Errno> {
        let mut bytes = [0; 8];
        put32(&mut bytes, 0, render.0 as u32);
        put32(&mut bytes, 4, gpu_id);
        self.ioctl(0x4008_4B15, &mut bytes)
    }

    /// Returns handle and mmap offset.
    pub fn alloc(&self, va: u64, size: u64, flags: u32) -> Result<(u64, u64), Errno> {
        self.alloc_at(va, size, flags, 0)
    }

    /// The same with an address of the process's own pages (USERPTR).
    pub fn alloc_at(&self, va: u64, size: u64, flags: u32, user: u64) -> Result<(u64, u64), Errno> {
        let mut bytes = [0; 40];
        put64(&mut bytes, 24, user);
        put64(&mut bytes, 0, va);
        put64(&mut bytes, 8, size);
        put32(&mut bytes, 32, self.gpu_id);
        put32(&mut bytes, 36, flags);
        self.ioctl(0xC028_4B16, &mut bytes)?;
        Ok((get64(&bytes, 16), get64(&bytes, 24)))
    }

    pub fn free(&self, handle: u64) -> Result<i32, Errno> {
        self.ioctl(0x4008_4B17, &mut handle.to_le_bytes())
    }

    fn map_request(&self, request: u32, handle: u64, gpu_id: u32) -> Result<u32, Errno> {
        let mut bytes = [0; 24];
        put64(&mut bytes, 0, handle);
        put32(&mut bytes, 16, 1);
        let mut ids = gpu_id.to_le_bytes();
        let nested = &mut [Nested { field_offset: 8, bytes: &mut ids }];
        ioctl_bytes(&*self.gpu, self.kfd, request, &mut bytes, nested)?;
        Ok(get32(&bytes, 20))
    }

    pub fn map_on(&self, handle: u64, gpu_id: u32) -> Result<u32, Errno> {
        self.map_request(0xC018_4B18, handle, gpu_id)
    }

    pub fn map(&self, handle: u64) -> Result<u32, Errno> {
        self.map_on(handle, self.gpu_id)
    }

    pub fn unmap(&self, handle: u64) -> Result<u32, Errno> {
        self.map_request(0xC018_4B19, handle, self.gpu_id)
    }

    /// Reserves address space, allocates there, maps for the CPU (if `cpu`) and for the GPU.
    pub fn buffer_with(&self, size: u64, flags: u32, cpu: bool) -> Buffer {
        let place = self.gpu.reserve(size as usize, 4096).unwrap();
        self.buffer_in(place, size, flags, cpu)
    }

    /// The same in address space that is reserved.
    pub fn buffer_in(&self, place: Reservation, size: u64, flags: u32, cpu: bool) -> Buffer {
        let va = place.address();
        let (handle, mmap_offset) = self.alloc(va, size, flags).unwrap();
        let map = || {
            self.gpu.map(self.render, mmap_offset, size as usize, Protection::ReadWrite, Some((&place, 0)))
        };
        let mapping = cpu.then(|| map().unwrap());
        assert_eq!(self.map(handle), Ok(1));
        Buffer { va, handle, mapping, place }
    }

    pub fn buffer(&self, size: u64) -> Buffer {
        self.buffer_with(size, RING_FLAGS, true)
    }

    pub fn private(&self, size: u64) -> Buffer {
        self.buffer_with(size, PRIVATE_FLAGS, false)
    }

    /// Frees a buffer. Its address space stays reserved as long as what is returned lives.
    pub fn release(&self, buffer: Buffer) -> Reservation {
        self.unmap(buffer.handle).unwrap();
        self.free(buffer.handle).unwrap();
        buffer.place
    }

    pub fn create_queue(&self, fields: &CreateQueue) -> Result<(u32, u64), Errno> {
        let mut bytes = fields.bytes();
        self.ioctl(0xC060_4B02, &mut bytes)?;
        Ok((get32(&bytes, 52), get64(&bytes, 24)))
    }

    pub fn destroy_queue(&self, id: u32) -> Result<i32, Errno> {
        let mut bytes = [0; 8];
        put32(&mut bytes, 0, id);
        self.ioctl(0xC008_4B03, &mut bytes)
    }

    pub fn create_event(&self, page: u64, kind: u32, auto_reset: bool) -> Result<u32, Errno> {
        let mut bytes = [0; 32];
        put64(&mut bytes, 0, page);
        put32(&mut bytes, 12, kind);
        put32(&mut bytes, 16, auto_reset as u32);
        self.ioctl(0xC020_4B08, &mut bytes)?;
        assert_eq!(get32(&bytes, 8), get32(&bytes, 24));
        Ok(get32(&bytes, 24))
    }

    /// Returns the result word and the entries afterwards.
    pub fn wait_events(&self, ids: &[u32], all: bool, timeout_ms: u32) -> Result<(u32, Vec<u8>), Errno> {
        let mut entries = vec![0; ids.len() * 48];
        for (index, id) in ids.iter().enumerate() {
            put32(&mut entries, index * 48 + 40, *id);
        }
        let mut bytes = [0; 24];
        put32(&mut bytes, 8, ids.len() as u32);
        put32(&mut bytes, 12, all as u32);
        put32(&mut bytes, 16, timeout_ms);
        put32(&mut bytes, 20, 0xEEEE);
        let nested = &mut [Nested { field_offset: 0, bytes: &mut entries }];
        ioctl_bytes(&*self.gpu, self.kfd, 0xC018_4B0C, &mut bytes, nested)?;
        Ok((get32(&bytes, 20), entries))
    }

    /// AMDGPU_INFO of the render node, with the union's first dwords.
    pub fn info(&self, query: u32, argument: &[u32], answer: &mut [u8]) -> Result<i32, Errno> {
        let mut bytes = [0; 32];
        put32(&mut bytes, 8, answer.len() as u32);
        put32(&mut bytes, 12, query);
        for (index, value) in argument.iter().enumerate() {
            put32(&mut bytes, 16 + index * 4, *value);
        }
        let nested = &mut [Nested { field_offset: 0, bytes: answer }];
        ioctl_bytes(&*self.gpu, self.render, 0x4020_6445, &mut bytes, nested)
    }

    pub fn text(&self, name: &str) -> String {
        let path = format!("/sys/kernel/debug/zrt-vgpu/{name}");
        String::from_utf8(self.gpu.read_file(&path).unwrap()).unwrap()
    }

    pub fn counter(&self, name: &str) -> u64 {
        let text = self.text("counters");
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.unwrap_or_else(|| panic!("no counter {name} in {text}")).parse().unwrap()
    }

    /// Waits until the fault log has a line with every one of the parts.
    pub fn wait_for_fault(&self, parts: &[&str]) -> String {
        eventually(&format!("a fault line with {parts:?}"), || {
            let text = self.text("faults");
            text.lines().find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned)
        })
    }
}

/// Waits for something that must happen.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Waits for a dword to have a value.
pub fn wait_value(view: &SharedView, at: usize, value: u32) {
    eventually(&format!("value {value} at {at}"), || (view.load_u32_acquire(at) == value).then_some(()));
}

/// How long to wait when nothing must happen.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// A queue with everything that it needs.
pub struct Queue {
    pub ring: Buffer,
    pub wptr: Buffer,
    pub rptr: Buffer,
    pub eop: Option<Buffer>,
    pub cwsr: Buffer,
    pub doorbells: Mapping,
    pub slot: usize,
    pub id: u32,
    pub written: u64,
    pub fields: CreateQueue,
}

impl Queue {
    pub fn fields(client: &Client, ring_size: u32) -> (CreateQueue, [Buffer; 5]) {
        let ring = client.buffer(ring_size as u64);
        let (wptr, rptr) = (client.buffer(4096), client.buffer(4096));
        let eop = client.private(4096);
        let cwsr = client.private(CWSR_BUFFER);
        let fields = CreateQueue {
            ring: ring.va,
            wptr: wptr.va + 0x38,
            rptr: rptr.va + 0x80,
            ring_size,
            gpu_id: client.gpu_id,
            kind: 0,
            percentage: 100,
            priority: 7,
            eop: eop.va,
            eop_size: 4096,
            cwsr: cwsr.va,
            cwsr_size: CWSR_SIZE,
            ctl_stack: CTL_STACK,
        };
        (fields, [ring, wptr, rptr, eop, cwsr])
    }

    pub fn new(client: &Client, ring_size: u32) -> Queue {
        let (fields, buffers) = Queue::fields(client, ring_size);
        Queue::from_parts(client, fields, buffers)
    }

    pub fn from_parts(client: &Client, fields: CreateQueue, buffers: [Buffer; 5]) -> Queue {
        let [ring, wptr, rptr, eop, cwsr] = buffers;
        let (id, doorbell) = client.create_queue(&fields).unwrap();
        let slice = doorbell & !0x1FFF;
        let doorbells = client.gpu.map(client.kfd, slice, 8192, Protection::ReadWrite, None).unwrap();
        let slot = (doorbell & 0x1FFF) as usize;
        Queue { ring, wptr, rptr, eop: Some(eop), cwsr, doorbells, slot, id, written: 0, fields }
    }

    /// Writes dwords into the ring, without announcing them.
    pub fn write(&mut self, dwords: &[u32]) {
        let ring = self.ring.view();
        for dword in dwords {
            ring.store_u32((self.written as usize * 4) & (self.fields.ring_size as usize - 1), *dword);
            self.written += 1;
        }
    }

    pub fn store_wptr(&self, value: u64) {
        self.wptr.view().store_u64_release(0x38, value);
    }

    pub fn ring(&self, value: u64) {
        self.doorbells.view().store_u64_release(self.slot, value);
    }

    /// A complete submission, in order.
    pub fn submit(&mut self, dwords: &[u32]) {
        self.write(dwords);
        self.store_wptr(self.written);
        self.ring(self.written);
    }

    pub fn rptr(&self) -> u64 {
        self.rptr.view().load_u64_acquire(0x80)
    }

    pub fn wait_idle(&self) {
        eventually("the ring being empty", || (self.rptr() == self.written).then_some(()));
    }

    pub fn destroy(self, client: &Client) -> Result<i32, Errno> {
        let outcome = client.destroy_queue(self.id);
        for buffer in [self.ring, self.wptr, self.rptr, self.cwsr].into_iter().chain(self.eop) {
            client.release(buffer);
        }
        outcome
    }
}

/// RELEASE_MEM with the kernel's cache action, low 32 bits, no interrupt.
pub fn fence(va: u64, value: u32) -> [u32; 8] {
    [0xC006_4900, 0x0660_0514, 0x2000_0000, va as u32, (va >> 32) as u32, value, 0, 0]
}

/// RELEASE_MEM that writes a slot and interrupts with the event's id.
pub fn interrupt(slot_va: u64, event_id: u32) -> [u32; 8] {
    [0xC006_4900, 0x514, 0x2200_0000, slot_va as u32, (slot_va >> 32) as u32, event_id, 0, event_id]
}

/// WRITE_DATA of one dword to memory with confirmation.
pub fn write_data(va: u64, value: u32) -> [u32; 5] {
    [0xC003_3700, 0x0010_0500, va as u32, (va >> 32) as u32, value]
}

/// INDIRECT_BUFFER as tinygrad writes it.
pub fn indirect(va: u64, dwords: u32) -> [u32; 4] {
    [0xC002_3F00, va as u32, (va >> 32) as u32, dwords | 1 << 23]
}
