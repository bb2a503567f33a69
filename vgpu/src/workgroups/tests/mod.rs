//! Whole kernels through the engine, on both schedulers.

mod assembled;
#[rustfmt::skip]
pub(super) mod code;
mod compiled;
mod faults;
mod findings;
mod forms;
#[rustfmt::skip]
mod forms_code;
mod kernels;
mod prefetch;
mod schedules;
mod standstill;
mod wave64;
#[rustfmt::skip]
mod wave64_code;

use std::sync::Arc;
use std::time::{Duration, Instant};

use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};

use crate::config::{Config, Scheduler};
use crate::counters::ShaderCounters;
use crate::memory::{AddressSpace, GPU_PAGE_BYTES, Rights};
use crate::shader::dispatch::{Dispatch, PacketOrigin};
use crate::shader::fault::WaveFault;
use crate::workgroups::{DispatchTicket, ShaderEngine};
use code::Code;

/// How long a test waits for anything before it fails.
const DEADLINE: Duration = Duration::from_secs(20);
/// RSRC1 of 64 vector registers, denormals kept, WGP mode, MEM_ORDERED.
const RSRC1: u32 = 0x600F_0007;
/// RSRC2 of six user SGPRs, all group ids, all work-item ids.
pub(super) const RSRC2: u32 = 6 << 1 | 7 << 7 | 2 << 11;
/// The same with 512 bytes of LDS.
const RSRC2_LDS: u32 = RSRC2 | 1 << 15;
/// The same with all the LDS that a group may have, which is that of one compute unit.
pub(super) const RSRC2_LDS_ALL: u32 = RSRC2 | 128 << 15;

/// An engine with memory.
pub(super) struct Device {
    pub engine: ShaderEngine,
    pub counters: Arc<ShaderCounters>,
    space: Arc<AddressSpace>,
    next_va: u64,
}

/// Mapped memory.
#[derive(Clone)]
pub(super) struct Buffer {
    pub va: u64,
    pub view: SharedView,
}

impl Buffer {
    fn words(&self, at: usize, count: usize) -> Vec<u32> {
        (0..count).map(|index| self.view.load_u32(at + 4 * index)).collect()
    }

    fn fill(&self, at: usize, words: impl IntoIterator<Item = u32>) {
        words.into_iter().enumerate().for_each(|(index, word)| self.view.store_u32(at + 4 * index, word));
    }
}

pub(super) fn parallel(worker_count: usize) -> Config {
    Config { scheduler: Scheduler::Parallel { worker_count: Some(worker_count) }, ..Config::default() }
}

pub(super) fn deterministic(seed: u64) -> Config {
    Config { scheduler: Scheduler::Deterministic, seed, ..Config::default() }
}

/// The schedules under which every kernel must produce the same results.
fn configs() -> Vec<Config> {
    vec![parallel(2), parallel(0), deterministic(1), deterministic(99)]
}

impl Device {
    pub fn new(config: Config) -> Device {
        let counters = Arc::new(ShaderCounters::default());
        let engine = ShaderEngine::new(&config, counters.clone()).unwrap();
        Device { engine, counters, space: Arc::new(AddressSpace::default()), next_va: 0x10_0000 }
    }

    fn map(&mut self, bytes: u64, rights: Rights) -> Buffer {
        let len = bytes.next_multiple_of(GPU_PAGE_BYTES);
        let file = MemoryFile::new("test", len as usize).unwrap();
        let mapping = Arc::new(file.map(0, len as usize, Protection::ReadWrite, None).unwrap());
        let (va, view) = (self.next_va, mapping.view().clone());
        self.space.map(GpuVa(va), ByteLen(len), rights, mapping).unwrap();
        // A page between any two buffers: the memory after a buffer is not mapped.
        self.next_va += len + GPU_PAGE_BYTES;
        Buffer { va, view }
    }

    pub fn buffer(&mut self, bytes: u64) -> Buffer {
        self.map(bytes, Rights::READ | Rights::WRITE)
    }

    pub fn code(&mut self, code: &Code) -> Buffer {
        self.code_words(code.words)
    }

    pub fn code_words(&mut self, words: &[u32]) -> Buffer {
        let buffer = self.map(4 * words.len() as u64 + 256, Rights::all());
        buffer.fill(0, words.iter().copied().chain([0xBF9F_0000; 64]));
        buffer
    }

    /// A dispatch of `groups` groups of `group` work-items, all in X, with up to three pointers as user data.
    pub fn dispatch(&self, code: &Buffer, groups: u32, group: u32, pointers: &[u64]) -> Dispatch {
        let mut user_data = [0; 16];
        for (index, pointer) in pointers.iter().enumerate() {
            user_data[2 * index] = *pointer as u32;
            user_data[2 * index + 1] = (*pointer >> 32) as u32;
        }
        Dispatch {
            code_va: code.va,
            rsrc1: RSRC1,
            rsrc2: RSRC2,
            rsrc3: 0,
            user_data,
            first: [0; 3],
            count: [groups, 1, 1],
            group: [group, 1, 1],
            last_group: [group, 1, 1],
            scratch_base_va: 0,
            tmpring_size: 0,
            is_wave64: false,
            address_space: self.space.clone(),
            origin: PacketOrigin { queue_id: 1, packet_va: 0x7000 },
        }
    }

    pub fn submit(&self, dispatch: Dispatch) -> DispatchTicket {
        self.engine.submit(dispatch).unwrap()
    }

    /// Helps until the condition is true.
    pub fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition() {
            assert!(Instant::now() < deadline, "{what}; fault: {:?}", self.engine.take_fault());
            if !self.engine.help() {
                std::thread::yield_now();
            }
        }
    }

    fn run(&self, dispatch: Dispatch) {
        let ticket = self.submit(dispatch);
        self.until("the dispatch is done", || ticket.is_done());
        assert_eq!(self.engine.take_fault(), None);
    }

    /// Runs a dispatch that does not complete, up to its fault.
    fn run_to_fault(&self, dispatch: Dispatch) -> WaveFault {
        let ticket = self.submit(dispatch);
        self.until("a fault", || self.engine.has_fault());
        assert!(!ticket.is_done());
        self.engine.take_fault().unwrap()
    }
}
