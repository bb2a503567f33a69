//! The other side of a command ring, as a model of the command processor's rules, for tests here and in crates above.
//!
//! It reads the ring as a command processor does (hardware reference §6.4, §2.7): it wakes on the doorbell, reads
//! up to the write pointer and no further, accepts packets that straddle the ring's end, and reports its read
//! pointer lazily. Any breach of the rules by the producer is a [`Violation`]. It executes no kernel: the caller
//! inspects the packets.

use alloc::vec::Vec;
use core::fmt;
use zrt_mem::{GpuVa, SharedView};
use zrt_pm4::packet::{Repr, indirect_buffer, release_mem};
use zrt_pm4::{DataSelect, Item, ParseError, Reader, StreamError};

/// How the read pointer is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// All 64 bits.
    Full,
    /// The low 32 bits.
    Low32,
    /// Modulo the ring's length.
    Wrapped,
}

/// How the producer broke the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The doorbell went backwards.
    DoorbellBackwards {
        /// Its value before.
        before: u64,
        /// Its value now.
        now: u64,
    },
    /// The doorbell differs from the write pointer.
    DoorbellWithoutPointer {
        /// The doorbell.
        doorbell: u64,
        /// The write pointer in memory.
        write_pointer: u64,
    },
    /// The producer is a whole ring ahead: it overwrote unread dwords.
    Overrun {
        /// Our read pointer.
        read: u64,
        /// Its write pointer.
        write: u64,
    },
    /// The dwords between read and write pointer are no sequence of packets.
    NotPackets(StreamError),
    /// A packet has no meaning.
    Malformed(ParseError),
    /// A packet names memory that is not mapped.
    Unmapped(GpuVa),
    /// Indirect buffers are nested more deeply than the model follows.
    TooDeep,
}

/// Memory that packets may name: a view and the address the device knows it by.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Address on the device.
    pub address: GpuVa,
    /// The host's view.
    pub view: SharedView,
}

/// Levels of nested calls that the model follows.
const INDIRECT_DEPTH_MAX: usize = 2;

/// The other side.
#[derive(Debug)]
pub struct CommandProcessor {
    ring: SharedView,
    write_pointer: SharedView,
    read_pointer: SharedView,
    doorbell: SharedView,
    mappings: Vec<Mapping>,
    read: u64,
    told: u64,
    doorbell_seen: u64,
    /// How the read pointer is reported.
    pub report_form: ReportForm,
    /// Dwords between two reports; 1 reports every packet, more is lazy. An empty ring is always reported.
    pub report_block: u64,
}

impl CommandProcessor {
    /// A model over the same memory as the producer, at the read pointer found in memory.
    pub fn new(
        ring: SharedView,
        write_pointer: SharedView,
        read_pointer: SharedView,
        doorbell: SharedView,
    ) -> CommandProcessor {
        let read = read_pointer.load_u64_acquire(0);
        let doorbell_seen = doorbell.load_u64_acquire(0);
        CommandProcessor {
            ring,
            write_pointer,
            read_pointer,
            doorbell,
            mappings: Vec::new(),
            read,
            told: read,
            doorbell_seen,
            report_form: ReportForm::Full,
            report_block: 1,
        }
    }

    /// Makes memory known to packets.
    pub fn map(&mut self, mapping: Mapping) {
        self.mappings.push(mapping);
    }

    /// Dwords read.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// Dwords reported to the producer: at most [`read`](CommandProcessor::read).
    pub const fn told(&self) -> u64 {
        self.told
    }

    /// Consumes at most `packets_max` packets if the doorbell was rung: passes each to `see` (those of indirect
    /// buffers too, after their call), executes fences, and reports the read pointer. Returns how many packets of
    /// the ring it consumed.
    pub fn step(&mut self, packets_max: usize, see: &mut dyn FnMut(&[u32])) -> Result<usize, Violation> {
        let doorbell = self.doorbell.load_u64_acquire(0);
        if doorbell < self.doorbell_seen {
            return Err(Violation::DoorbellBackwards { before: self.doorbell_seen, now: doorbell });
        }
        self.doorbell_seen = doorbell;
        let write = self.write_pointer.load_u64_acquire(0);
        if doorbell > write {
            return Err(Violation::DoorbellWithoutPointer { doorbell, write_pointer: write });
        }
        // A resumed queue has not rung yet: there is nothing to read.
        let end = doorbell.max(self.read);
        let ring_dwords = self.ring.len() as u64 / 4;
        if end - self.read >= ring_dwords {
            return Err(Violation::Overrun { read: self.read, write: end });
        }
        let words: Vec<u32> =
            (self.read..end).map(|at| self.ring.load_u32((at % ring_dwords) as usize * 4)).collect();
        let mut taken = 0;
        for item in Reader::new(&words).take(packets_max) {
            let item = item.map_err(Violation::NotPackets)?;
            self.execute(&item, 0, see)?;
            taken += 1;
            self.read += item.words.len() as u64;
            if self.read == end || self.read % self.report_block < item.words.len() as u64 {
                self.report();
            }
        }
        Ok(taken)
    }

    /// What a reader that ignores the write pointer sees there: the packet, if there is one.
    pub fn peek_beyond(&self, at: u64, dwords: usize) -> Option<Vec<u32>> {
        let ring_dwords = self.ring.len() as u64 / 4;
        let slot = |at: u64| (at % ring_dwords) as usize * 4;
        let first = self.ring.load_u32_acquire(slot(at));
        let mut words = alloc::vec![first];
        words.extend((at + 1..at + dwords as u64).map(|at| self.ring.load_u32(slot(at))));
        match Reader::new(&words).next() {
            Some(Ok(_)) => Some(words),
            _ => None,
        }
    }

    fn report(&mut self) {
        self.told = self.read;
        let ring_dwords = self.ring.len() as u64 / 4;
        let told = match self.report_form {
            ReportForm::Full => self.read,
            ReportForm::Low32 => self.read & u64::from(u32::MAX),
            ReportForm::Wrapped => self.read % ring_dwords,
        };
        self.read_pointer.store_u64_release(0, told);
    }

    fn execute(&self, item: &Item<'_>, depth: usize, see: &mut dyn FnMut(&[u32])) -> Result<(), Violation> {
        see(item.words);
        match item.parse().map_err(Violation::Malformed)? {
            Some(Repr::ReleaseMem(release)) => self.release(&release),
            Some(Repr::IndirectBuffer(call)) => self.call(&call, depth, see),
            _ => Ok(()),
        }
    }

    fn release(&self, release: &release_mem::Repr) -> Result<(), Violation> {
        let bytes = match release.data {
            DataSelect::Low32 => 4,
            DataSelect::Full64 => 8,
            DataSelect::None | DataSelect::GpuClock | DataSelect::SystemClock | DataSelect::Gds => {
                return Ok(());
            }
        };
        let (view, offset) = self.find(GpuVa(release.address), bytes)?;
        match release.data {
            DataSelect::Low32 => view.store_u32_release(offset, release.value as u32),
            _ => view.store_u64_release(offset, release.value),
        }
        Ok(())
    }

    fn call(
        &self,
        call: &indirect_buffer::Repr,
        depth: usize,
        see: &mut dyn FnMut(&[u32]),
    ) -> Result<(), Violation> {
        if depth == INDIRECT_DEPTH_MAX {
            return Err(Violation::TooDeep);
        }
        let dwords = call.buffer_dwords as usize;
        let (view, offset) = self.find(GpuVa(call.address), dwords * 4)?;
        let words: Vec<u32> = (0..dwords).map(|at| view.load_u32(offset + at * 4)).collect();
        for item in Reader::new(&words) {
            self.execute(&item.map_err(Violation::NotPackets)?, depth + 1, see)?;
        }
        Ok(())
    }

    fn find(&self, address: GpuVa, bytes: usize) -> Result<(&SharedView, usize), Violation> {
        self.mappings
            .iter()
            .find_map(|mapping| {
                let offset = usize::try_from(address.0.checked_sub(mapping.address.0)?).ok()?;
                let fits = offset <= mapping.view.len() && bytes <= mapping.view.len() - offset;
                fits.then_some((&mapping.view, offset))
            })
            .ok_or(Violation::Unmapped(address))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::DoorbellBackwards { before, now } => {
                write!(formatter, "the doorbell went from {before:#x} back to {now:#x}")
            }
            Violation::DoorbellWithoutPointer { doorbell, write_pointer } => {
                write!(formatter, "the doorbell says {doorbell:#x} and the write pointer {write_pointer:#x}")
            }
            Violation::Overrun { read, write } => {
                write!(
                    formatter,
                    "the write pointer {write:#x} is a ring ahead of the read pointer {read:#x}"
                )
            }
            Violation::NotPackets(error) => write!(formatter, "the ring holds no packets: {error}"),
            Violation::Malformed(error) => write!(formatter, "a packet has no meaning: {error}"),
            Violation::Unmapped(address) => write!(formatter, "a packet names unmapped memory at {address}"),
            Violation::TooDeep => write!(formatter, "indirect buffers call each other too deeply"),
        }
    }
}

impl core::error::Error for Violation {}
