//! Queues, slice by slice: no thread serves them here, so that it can be told what one slice does.

mod dispatches;
mod faulty;
mod pace;
mod packets;
mod ring;
mod rounds;

use crate::command_processor::hardware::Hardware;
use crate::command_processor::injection::FaultInjection;
use crate::command_processor::queue::{HardwareQueue, QueueDescription};
use crate::command_processor::stream::Slice;
use crate::config::{Config, Scheduler};
use crate::memory::{GPU_PAGE_BYTES, Rights};
use std::sync::Arc;
use zrt_kmd::{Mapping, MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa};

const RING: u64 = 0x10_0000;
const POINTERS: u64 = 0x20_0000;
const WRITE_POINTER: u64 = POINTERS + 0x38;
const READ_POINTER: u64 = POINTERS + 0x80;
/// Two pages, each a range of its own.
const DATA: u64 = 0x30_0000;
/// Byte offset of the doorbell.
const SLOT: usize = 0x48;
/// A NOP without body.
const NOP: u32 = 0xFFFF_1000;

fn pages(count: u64) -> Arc<Mapping> {
    let len = (count * GPU_PAGE_BYTES) as usize;
    Arc::new(MemoryFile::new("test", len).unwrap().map(0, len, Protection::ReadWrite, None).unwrap())
}

fn description(doorbells: &Arc<Mapping>, has_eop: bool) -> QueueDescription {
    QueueDescription {
        id: 3,
        write_pointer_va: WRITE_POINTER,
        read_pointer_va: READ_POINTER,
        has_eop,
        doorbell_at: SLOT,
        doorbells: doorbells.clone(),
    }
}

/// Hardware with one queue, number 3.
struct Board {
    hardware: Arc<Hardware>,
    queue: Arc<HardwareQueue>,
    doorbells: Arc<Mapping>,
    ring_dwords: u64,
    written: u64,
}

impl Board {
    fn new() -> Board {
        Board::with(FaultInjection::default(), 1024, true)
    }

    /// A ring of this length, a multiple of 1024 dwords.
    fn with(injection: FaultInjection, ring_dwords: u64, has_eop: bool) -> Board {
        let config = Config { scheduler: Scheduler::Deterministic, ..Config::default() };
        let hardware = Arc::new(Hardware::new(&config, injection).unwrap());
        let doorbells = pages(1);
        let queue = HardwareQueue::new(description(&doorbells, has_eop), RING, 4 * ring_dwords as u32, true);
        let queue = Arc::new(queue);
        let board = Board { hardware, queue, doorbells, ring_dwords, written: 0 };
        let both = Rights::READ | Rights::WRITE;
        board.map(RING, ring_dwords / 1024, both);
        [POINTERS, DATA, DATA + GPU_PAGE_BYTES].iter().for_each(|&va| board.map(va, 1, both));
        board
    }

    fn map(&self, va: u64, count: u64, rights: Rights) {
        let len = ByteLen(count * GPU_PAGE_BYTES);
        self.hardware.memory().map(GpuVa(va), len, rights, pages(count)).unwrap();
    }

    fn store(&self, va: u64, words: &[u32]) {
        for (at, word) in (va..).step_by(4).zip(words) {
            let (view, offset) = self.hardware.memory().translate(at, 4, Rights::READ).unwrap();
            view.store_u32(offset, *word);
        }
    }

    fn words<const N: usize>(&self, va: u64) -> [u32; N] {
        std::array::from_fn(|index| {
            let at = va + 4 * index as u64;
            let (view, offset) = self.hardware.memory().translate(at, 4, Rights::READ).unwrap();
            view.load_u32(offset)
        })
    }

    /// Writes dwords into the ring, without announcing them.
    fn write(&mut self, dwords: &[u32]) {
        for dword in dwords {
            self.store(RING + 4 * (self.written % self.ring_dwords), &[*dword]);
            self.written += 1;
        }
    }

    fn store_write_pointer(&self, value: u64) {
        self.store(WRITE_POINTER, &[value as u32, (value >> 32) as u32]);
    }

    fn ring(&self, value: u64) {
        self.doorbells.view().store_u64_release(SLOT, value);
    }

    /// Announces what is written.
    fn announce(&self) {
        self.store_write_pointer(self.written);
        self.ring(self.written);
    }

    fn submit(&mut self, dwords: &[u32]) {
        self.write(dwords);
        self.announce();
    }

    fn service(&self) -> Slice {
        self.queue.service(&self.hardware)
    }

    /// Submits and serves once.
    fn run(&mut self, dwords: &[u32]) -> Slice {
        self.submit(dwords);
        self.service()
    }

    /// The read pointer as the queue has written it to memory.
    fn read_pointer(&self) -> u64 {
        let [low, high] = self.words(READ_POINTER);
        u64::from(low) | u64::from(high) << 32
    }

    fn counter(&self, name: &str) -> u64 {
        let text = self.hardware.counters_text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap().parse().unwrap()
    }

    fn faults(&self) -> String {
        self.hardware.faults().text()
    }
}

/// WRITE_DATA of consecutive dwords to memory (hardware reference §4.8).
fn write_data(va: u64, values: &[u32]) -> Vec<u32> {
    let mut packet = vec![0xC000_3700 | (values.len() as u32 + 2) << 16, 0x500, va as u32, (va >> 32) as u32];
    packet.extend(values);
    packet
}
