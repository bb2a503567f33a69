//! A piece of virtual device: memory, and the shader engine without command processor.
//!
//! Every buffer ends at the end of a page, as far as its alignment of 256 bytes permits, and the page after it is not
//! mapped: a load or store past the end is a page fault, and any fault fails the test. Fresh memory is full of numbers
//! that no kernel writes.
//!
//! Every run is checked (`docs/checking.md`), and some runs of each kernel are repeated on [`SCHEDULES`] schedules: no
//! finding, and the same bytes in every buffer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, Immutable, IntoBytes};
use zrt_isa::zrt::Kernel;
use zrt_kmd::{Mapping, MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::config::{Config, Inspection};
use zrt_vgpu::counters::ShaderCounters;
use zrt_vgpu::memory::{AddressSpace, GPU_PAGE_BYTES, Rights};
use zrt_vgpu::shader::dispatch::{Dispatch, PacketOrigin};
use zrt_vgpu::workgroups::ShaderEngine;

/// Longest that a test's dispatch may take.
const DISPATCH_TIMEOUT: Duration = Duration::from_secs(60);
const ALIGNMENT_BYTES: usize = 256;
/// A quiet NaN with a payload: no kernel produces it.
pub const FRESH: u32 = 0x7FC5_A5A5;

/// Schedules of the runs of a kernel that are repeated.
const SCHEDULES: u64 = 32;
/// Runs of a kernel, the ones with several groups first come, that are repeated.
const REPEATED_RUNS: u32 = 2;

struct Buffer {
    va: u64,
    len: usize,
    /// Where the buffer starts in its mapping.
    offset: usize,
    mapping: Arc<Mapping>,
}

pub struct Device {
    engine: ShaderEngine,
    counters: Arc<ShaderCounters>,
    space: Arc<AddressSpace>,
    buffers: Vec<Buffer>,
    next_page_va: u64,
    bias: i32,
}

/// An engine that checks.
fn engine(seed: u64, bias: i32, counters: Arc<ShaderCounters>) -> ShaderEngine {
    let inspection = Inspection { check: true, ..Inspection::default() };
    let config = Config { seed, approximation_bias: bias, inspection, ..Config::default() };
    ShaderEngine::new(&config, counters).expect("no threads to start")
}

/// Whether this run of a kernel is one to repeat.
fn is_repeated(name: &str, group_count: u32) -> bool {
    static RUNS: Mutex<Option<HashMap<String, [u32; 2]>>> = Mutex::new(None);
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = runs.get_or_insert_default().entry(name.to_owned()).or_default();
    let count = &mut counts[usize::from(group_count > 1)];
    *count += 1;
    *count <= REPEATED_RUNS
}

impl Device {
    /// `bias`: error of the approximate instructions in units in the last place.
    pub fn new(bias: i32) -> Device {
        let counters = Arc::new(ShaderCounters::default());
        Device {
            engine: engine(Config::default().seed, bias, counters.clone()),
            counters,
            bias,
            space: Arc::new(AddressSpace::default()),
            buffers: Vec::new(),
            // Above 4 GiB, so that the high half of an address matters.
            next_page_va: 0x23_4567_8000,
        }
    }

    /// Instructions that waves have executed.
    pub fn wave_instructions(&self) -> u64 {
        self.counters.snapshot().wave_instructions
    }

    /// A fresh buffer. Returns its address.
    pub fn allocate(&mut self, len: usize) -> u64 {
        self.map(len, Rights::READ | Rights::WRITE)
    }

    /// A buffer with these contents.
    pub fn upload<T: IntoBytes + Immutable>(&mut self, contents: &[T]) -> u64 {
        let bytes = contents.as_bytes();
        let va = self.allocate(bytes.len());
        self.write(bytes);
        va
    }

    /// Code, or the parameters of a dispatch: read-only for waves.
    fn upload_constant(&mut self, bytes: &[u8]) -> u64 {
        let va = self.map(bytes.len(), Rights::READ | Rights::EXECUTE);
        self.write(bytes);
        va
    }

    fn map(&mut self, len: usize, rights: Rights) -> u64 {
        let page = GPU_PAGE_BYTES as usize;
        let whole = len.next_multiple_of(ALIGNMENT_BYTES).next_multiple_of(page);
        let file = MemoryFile::new("kernel-test", whole).expect("memory");
        let mapping = Arc::new(file.map(0, whole, Protection::ReadWrite, None).expect("a mapping"));
        for offset in (0..whole).step_by(4) {
            mapping.view().store_u32(offset, FRESH);
        }
        let page_va = self.next_page_va;
        self.next_page_va += (whole + page) as u64;
        self.space.map(GpuVa(page_va), ByteLen(whole as u64), rights, mapping.clone()).expect("free pages");
        let offset = (whole - len) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
        let va = page_va + offset as u64;
        self.buffers.push(Buffer { va, len, offset, mapping });
        va
    }

    /// Fills the newest buffer.
    fn write(&self, bytes: &[u8]) {
        let buffer = self.buffers.last().expect("allocated before");
        buffer.mapping.view().write_bytes(buffer.offset, bytes);
    }

    pub fn bytes(&self, va: u64, len: usize) -> Vec<u8> {
        let buffer = self.buffers.iter().find(|buffer| buffer.va == va).expect("an allocated buffer");
        assert!(len <= buffer.len);
        let mut bytes = vec![0; len];
        buffer.mapping.view().read_bytes(buffer.offset, &mut bytes);
        bytes
    }

    /// As [`Device::bytes`], from an address anywhere in a buffer.
    pub fn bytes_at(&self, va: u64, len: usize) -> Vec<u8> {
        let (buffer, offset) = self.place(va, len);
        let mut bytes = vec![0; len];
        buffer.mapping.view().read_bytes(buffer.offset + offset, &mut bytes);
        bytes
    }

    /// Writes to a buffer between two runs, as the host would.
    pub fn store(&self, va: u64, bytes: &[u8]) {
        let (buffer, offset) = self.place(va, bytes.len());
        buffer.mapping.view().write_bytes(buffer.offset + offset, bytes);
    }

    /// The buffer that holds this range, and where in it the range starts.
    fn place(&self, va: u64, len: usize) -> (&Buffer, usize) {
        let holds = |buffer: &&Buffer| va >= buffer.va && va + len as u64 <= buffer.va + buffer.len as u64;
        let buffer = self.buffers.iter().find(holds).expect("within an allocated buffer");
        (buffer, (va - buffer.va) as usize)
    }

    pub fn words(&self, va: u64, count: usize) -> Vec<u32> {
        let bytes = self.bytes(va, count * 4);
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    pub fn floats(&self, va: u64, count: usize) -> Vec<f32> {
        self.words(va, count).into_iter().map(f32::from_bits).collect()
    }

    pub fn read<T: FromBytes + std::fmt::Debug>(&self, va: u64) -> T {
        T::read_from_bytes(&self.bytes(va, size_of::<T>())).expect("its size")
    }

    /// Runs a kernel to its end as the command processor would: resource words, sizes and USER_DATA from its
    /// container.
    pub fn run(&mut self, name: &str, parameters: &[u8], group_count: u32) {
        let kernel = Kernel::parse(zrt_asm::blob(name).expect("a kernel of ours")).expect("a container");
        self.run_kernel(&kernel, parameters, group_count);
    }

    /// As [`Device::run`], with every dword `from` of the code replaced by `to`. There must be one.
    pub fn run_changed(&mut self, name: &str, [from, to]: [u32; 2], parameters: &[u8], group_count: u32) {
        let kernel = Kernel::parse(zrt_asm::blob(name).expect("a kernel of ours")).expect("a container");
        let change = |dword: u32| if dword == from { to } else { dword };
        let code: Vec<u8> = kernel.code_dwords().flat_map(|dword| change(dword).to_le_bytes()).collect();
        assert_ne!(code, kernel.code, "{name} has no dword {from:#x}");
        self.run_kernel(&Kernel { code: &code, ..kernel }, parameters, group_count);
    }

    /// As [`Device::run`], once, and every now and then while the kernel runs the host does its part.
    pub fn run_beside(
        &mut self,
        name: &str,
        parameters: &[u8],
        group_count: u32,
        host: &mut dyn FnMut(&Device),
    ) {
        let kernel = Kernel::parse(zrt_asm::blob(name).expect("a kernel of ours")).expect("a container");
        let dispatch = self.dispatch(&kernel, parameters, group_count);
        self.launch_beside(&self.engine, &kernel, dispatch, host);
    }

    fn run_kernel(&mut self, kernel: &Kernel<'_>, parameters: &[u8], group_count: u32) {
        let name = kernel.name;
        let dispatch = self.dispatch(kernel, parameters, group_count);
        if !is_repeated(name, group_count) {
            return self.launch(&self.engine, kernel, dispatch);
        }
        let before = self.snapshot();
        self.launch(&self.engine, kernel, dispatch.clone());
        let after = self.snapshot();
        for seed in 0..SCHEDULES {
            self.restore(&before);
            self.launch(&engine(seed, self.bias, Arc::default()), kernel, dispatch.clone());
            assert!(self.snapshot() == after, "{name}: another result on schedule {seed}");
        }
    }

    fn dispatch(&mut self, kernel: &Kernel<'_>, parameters: &[u8], group_count: u32) -> Dispatch {
        let name = kernel.name;
        assert_eq!(kernel.parameter_bytes as usize, parameters.len(), "{name}");
        assert_eq!(kernel.parameter_opcode.to_le_bytes(), parameters[2..4], "{name}");
        let parameter_va = self.upload_constant(parameters);
        let code_va = self.upload_constant(kernel.code) + u64::from(kernel.entry);
        let mut user_data = [0; 16];
        user_data[0] = parameter_va as u32;
        user_data[1] = (parameter_va >> 32) as u32;
        user_data[2] = group_count;
        let group = kernel.workgroup.map(u32::from);
        Dispatch {
            code_va,
            rsrc1: kernel.rsrc1,
            rsrc2: kernel.rsrc2,
            rsrc3: kernel.rsrc3,
            user_data,
            first: [0; 3],
            count: [group_count, 1, 1],
            group,
            last_group: group,
            scratch_base_va: 0,
            tmpring_size: 0,
            is_wave64: false,
            address_space: self.space.clone(),
            origin: PacketOrigin::default(),
        }
    }

    fn snapshot(&self) -> Vec<Vec<u8>> {
        let contents = |buffer: &Buffer| {
            let mut bytes = vec![0; buffer.len];
            buffer.mapping.view().read_bytes(buffer.offset, &mut bytes);
            bytes
        };
        self.buffers.iter().map(contents).collect()
    }

    fn restore(&self, contents: &[Vec<u8>]) {
        for (buffer, bytes) in self.buffers.iter().zip(contents) {
            buffer.mapping.view().write_bytes(buffer.offset, bytes);
        }
    }

    fn launch(&self, engine: &ShaderEngine, kernel: &Kernel<'_>, dispatch: Dispatch) {
        self.launch_beside(engine, kernel, dispatch, &mut |_| {});
    }

    fn launch_beside(
        &self,
        engine: &ShaderEngine,
        kernel: &Kernel<'_>,
        dispatch: Dispatch,
        host: &mut dyn FnMut(&Device),
    ) {
        let (name, code_va) = (kernel.name, dispatch.code_va);
        engine.synchronise(&self.space);
        let ticket = engine.submit(dispatch).expect("a legal dispatch");
        let deadline = Instant::now() + DISPATCH_TIMEOUT;
        while !ticket.is_done() {
            engine.help();
            host(self);
            if let Some(fault) = engine.take_fault() {
                let offset = u64::from(kernel.entry) + fault.instruction_va - code_va;
                panic!("{name}: {fault}, at {:?}", kernel.source_line(offset as u32));
            }
            assert!(Instant::now() < deadline, "{name} does not end");
        }
        engine.synchronise(&self.space);
        let findings = engine.findings_text();
        assert!(findings.is_empty(), "{name} at {code_va:#x}:\n{findings}");
    }
}
