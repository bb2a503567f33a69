//! The packet stream of a queue: doorbell, ring, indirect buffers, one packet after another.
//!
//! Contract: a slice of service executes at most [`PACKETS_PER_SLICE`] packets and never blocks. A packet that has
//! to wait leaves the queue where it is and is retried in the next slice, so queues do not block each other.
//! Nothing is read beyond the write pointer in the doorbell. All memory goes through the device's address space. No
//! allocation after the first packets.

use crate::command_processor::bits::opcode;
use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::injection::PlantedFault;
use crate::command_processor::launch::LaunchError;
use crate::command_processor::packet::{Command, PacketError, PacketHeader, body_dwords_max, name};
use crate::command_processor::queue::{IndirectBuffer, QueueDescription, QueueState};
use crate::memory::{Fault, Rights};
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Packets of one queue in a row, before the other queues get their turn.
const PACKETS_PER_SLICE: usize = 64;
/// The read pointer in memory is updated each time this many dwords were consumed, and when the ring is empty
/// (hardware reference §2.6: block size 5, that is 2^(5+1) dwords).
const READ_POINTER_BLOCK_DWORDS: u64 = 64;

/// A slice of service: the queue's state and everything that a packet can access.
pub(super) struct Worker<'a> {
    pub state: &'a mut QueueState,
    pub description: &'a QueueDescription,
    pub hardware: &'a Hardware,
}

/// The result of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// Nothing to do until the doorbell rings.
    Idle,
    /// A packet waits: for memory, or for a dispatch.
    Waiting { for_dispatch: bool },
    /// Packets were executed.
    Progress,
}

/// Why the queue cannot continue.
pub(super) enum Halt {
    Packet(PacketError),
    Launch(LaunchError),
    Access(Fault),
}

/// The result of one packet.
enum Step {
    Done,
    Empty,
    Wait { for_dispatch: bool },
}

impl From<PacketError> for Halt {
    fn from(error: PacketError) -> Halt {
        Halt::Packet(error)
    }
}

impl From<LaunchError> for Halt {
    fn from(error: LaunchError) -> Halt {
        Halt::Launch(error)
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Halt {
        Halt::Access(fault)
    }
}

impl Worker<'_> {
    /// Polls the doorbell, then executes packets.
    pub fn slice(&mut self) -> Result<Slice, Halt> {
        self.look_at_doorbell()?;
        let mut slice = Slice::Idle;
        for _ in 0..PACKETS_PER_SLICE {
            // After the doorbell or the awaited value was seen: mappings made before it was stored must be visible.
            self.state.port.refresh(self.hardware.memory());
            match self.step()? {
                Step::Done => slice = Slice::Progress,
                Step::Empty => {
                    self.report_read_pointer(true)?;
                    return Ok(slice);
                }
                Step::Wait { .. } if slice == Slice::Progress => return Ok(slice),
                Step::Wait { for_dispatch } => return Ok(Slice::Waiting { for_dispatch }),
            }
            self.report_read_pointer(false)?;
        }
        Ok(slice)
    }

    /// The name of the packet at the current position, for reports only.
    pub fn packet_name(&mut self) -> Option<&'static str> {
        let mut word = [0];
        self.read(self.state.packet_va(), &mut word).ok()?;
        PacketHeader::parse(word[0]).ok().map(|header| name(header.opcode))
    }

    /// Reads a new doorbell value, checked as strictly as hardware reference §6.4 requires.
    fn look_at_doorbell(&mut self) -> Result<(), Halt> {
        let view = self.description.doorbells.view();
        let value = view.load_u64_acquire(self.description.doorbell_at);
        if value == self.state.doorbell_seen {
            return Ok(());
        }
        if self.is_delayed() {
            return Ok(());
        }
        self.state.doorbell_seen = value;
        if self.hardware.injector().drops_doorbell() {
            return Ok(());
        }
        let note = |kind, text: String| {
            self.hardware.record(kind, Some(self.description.id), None, text);
        };
        if value >> 32 == u64::from(u32::MAX) {
            note(FaultKind::Doorbell, format!("doorbell={value:#x} : only 32 bits of the slot were stored"));
            return Ok(());
        }
        if value < self.state.write_limit {
            let limit = self.state.write_limit;
            note(FaultKind::Doorbell, format!("doorbell={value} last={limit} : the doorbell went backwards"));
            return Ok(());
        }
        self.hardware.count_doorbell();
        self.hardware.follow_process();
        self.state.port.refresh(self.hardware.memory());
        let mut pointer = [0; 2];
        self.read(self.description.write_pointer_va, &mut pointer)?;
        let in_memory = u64::from(pointer[0]) | u64::from(pointer[1]) << 32;
        if in_memory < value {
            note(
                FaultKind::WritePointer,
                format!("doorbell={value} wptr={in_memory} : write pointer memory is behind the doorbell"),
            );
        }
        self.state.write_limit = value;
        let (pending, ring) = (value - self.state.read_pointer, self.state.ring_dwords);
        if pending > ring {
            return Err(PacketError::RingOverrun { pending, ring }.into());
        }
        Ok(())
    }

    /// Injected delay: whether the new doorbell value must not take effect yet.
    fn is_delayed(&mut self) -> bool {
        let delay_us = self.hardware.injector().settings().doorbell_delay_us;
        if delay_us == 0 {
            return false;
        }
        let due =
            *self.state.doorbell_due.get_or_insert_with(|| Instant::now() + Duration::from_micros(delay_us));
        if Instant::now() < due {
            return true;
        }
        self.state.doorbell_due = None;
        false
    }

    /// Writes the read pointer to memory if a block was completed, or always if the ring is empty.
    fn report_read_pointer(&mut self, is_empty: bool) -> Result<(), Halt> {
        let (now, reported) = (self.state.read_pointer, self.state.reported_read_pointer);
        let (block_dwords, when_empty) = match self.hardware.injector().settings().read_pointer_block_dwords {
            Some(dwords) => (dwords.max(1), false),
            None => (READ_POINTER_BLOCK_DWORDS, true),
        };
        let block = now / block_dwords != reported / block_dwords;
        if now != reported && (block || is_empty && when_empty) {
            self.write_u64(self.description.read_pointer_va, now)?;
            self.state.reported_read_pointer = now;
        }
        Ok(())
    }

    /// Executes the packet at the current position.
    fn step(&mut self) -> Result<Step, Halt> {
        if self.state.indirect.is_some_and(|buffer| buffer.at == buffer.dwords) {
            self.state.indirect = None;
        }
        let left = match &self.state.indirect {
            Some(buffer) => (buffer.dwords - buffer.at) as u64,
            None => self.state.write_limit - self.state.read_pointer,
        };
        if left == 0 {
            return Ok(Step::Empty);
        }
        let mut word = [0];
        self.read_stream(0, &mut word)?;
        let header = PacketHeader::parse(word[0])?;
        if header.body_dwords as u64 > left - 1 {
            return self.incomplete(header, left - 1);
        }
        let mut body = std::mem::take(&mut self.state.body);
        let outcome = self.packet(header, &mut body);
        self.state.body = body;
        outcome
    }

    /// Handles a packet whose body is incomplete.
    fn incomplete(&mut self, header: PacketHeader, left: u64) -> Result<Step, Halt> {
        if self.state.indirect.is_some() {
            let error = PacketError::PastEndOfBuffer { body_dwords: header.body_dwords, left: left as usize };
            return Err(error.into());
        }
        if self.state.torn_at != Some(self.state.write_limit) {
            self.state.torn_at = Some(self.state.write_limit);
            self.hardware.record(
                FaultKind::TornPacket,
                Some(self.description.id),
                Some(name(header.opcode)),
                format!("{} body dwords, {left} before the write pointer", header.body_dwords),
            );
        }
        Ok(Step::Empty)
    }

    fn packet(&mut self, header: PacketHeader, body: &mut Vec<u32>) -> Result<Step, Halt> {
        body.clear();
        if header.opcode != opcode::NOP {
            if header.body_dwords > body_dwords_max(header.opcode) {
                let error = PacketError::BodyLength { name: name(header.opcode), found: header.body_dwords };
                return Err(if name(header.opcode) == "unknown" {
                    PacketError::UnknownOpcode(header.opcode).into()
                } else {
                    error.into()
                });
            }
            body.resize(header.body_dwords, 0);
            self.read_stream(1, body)?;
        }
        let mut opcode = header.opcode;
        if let Some(misread) = self.hardware.injector().settings().misreads {
            misread(&mut opcode, body);
        }
        let command = Command::parse(opcode, body)?;
        let was_indirect = self.state.indirect.is_some();
        if let Command::IndirectBuffer { address, dwords, chain } = command {
            if self.hardware.injector().has(PlantedFault::IndirectBufferRefused) {
                return Ok(Step::Wait { for_dispatch: false });
            }
            if was_indirect != chain {
                let error =
                    if was_indirect { PacketError::NestedIndirectBuffer } else { PacketError::ChainInRing };
                return Err(error.into());
            }
            if !was_indirect {
                self.advance(1 + header.body_dwords);
            }
            self.state.indirect = Some(IndirectBuffer { va: address, dwords: dwords as usize, at: 0 });
            self.hardware.count_packet();
            self.hardware.count_submission();
            return Ok(Step::Done);
        }
        if let Some(for_dispatch) = self.execute(command, body)? {
            return Ok(Step::Wait { for_dispatch });
        }
        self.hardware.count_packet();
        self.advance(1 + header.body_dwords);
        Ok(Step::Done)
    }

    /// Reads consecutive dwords at a 4-byte aligned address.
    pub fn read(&mut self, va: u64, destination: &mut [u32]) -> Result<(), Fault> {
        if destination.is_empty() {
            return Ok(());
        }
        let len = 4 * destination.len() as u64;
        if let Some((view, offset)) = self.state.port.range(va, va.saturating_add(len - 1), Rights::READ) {
            for (index, word) in destination.iter_mut().enumerate() {
                *word = view.load_u32(offset as usize + 4 * index);
            }
        } else {
            // Across ranges, or not mapped at all.
            for (index, word) in destination.iter_mut().enumerate() {
                let at = va.wrapping_add(4 * index as u64);
                let (view, offset) = self.state.port.translate(at, 4, Rights::READ)?;
                *word = view.load_u32(offset);
            }
        }
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Stores a dword at a 4-byte aligned address, after everything before.
    pub fn write_u32(&mut self, va: u64, value: u32) -> Result<(), Fault> {
        let (view, offset) = self.state.port.translate(va, 4, Rights::WRITE)?;
        self.hardware.packet_wrote(va, &value.to_le_bytes());
        view.store_u32_release(offset, value);
        Ok(())
    }

    /// Stores a quadword at an 8-byte aligned address, after everything before.
    pub fn write_u64(&mut self, va: u64, value: u64) -> Result<(), Fault> {
        let (view, offset) = self.state.port.translate(va, 8, Rights::WRITE)?;
        self.hardware.packet_wrote(va, &value.to_le_bytes());
        view.store_u64_release(offset, value);
        Ok(())
    }

    fn advance(&mut self, dwords: usize) {
        match &mut self.state.indirect {
            Some(buffer) => buffer.at += dwords,
            None => self.state.read_pointer += dwords as u64,
        }
    }

    /// Reads dwords of the packet stream, starting `skip` dwords after the current position.
    fn read_stream(&mut self, skip: u64, destination: &mut [u32]) -> Result<(), Fault> {
        if let Some(buffer) = self.state.indirect {
            return self.read(buffer.va.wrapping_add(4 * (buffer.at as u64 + skip)), destination);
        }
        // A packet may straddle the end of the ring.
        let start = self.state.read_pointer + skip;
        let before_end = self.state.ring_dwords - (start & (self.state.ring_dwords - 1));
        let cut = destination.len().min(before_end as usize);
        let (head, tail) = destination.split_at_mut(cut);
        self.read(self.state.ring_address(start), head)?;
        if !tail.is_empty() {
            self.read(self.state.ring_va, tail)?;
        }
        Ok(())
    }
}
