//! One hardware queue: doorbell, ring, indirect buffer, and the execution of its packets in order.
//!
//! Contract: a slice of service executes at most [`PACKETS_PER_SLICE`] packets and never waits for anything: a packet
//! that has to wait leaves the queue where it is and is looked at again in the next slice, so queues do not hold
//! each other up. Nothing is read beyond the write pointer that the doorbell told. All memory goes through the
//! device's address space. One lock per slice; no allocation after the first packets.

use crate::command_processor::bits::opcode;
use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::launch::{LaunchError, Registers, touches_queue_register};
use crate::command_processor::packet::{
    Command, CopySource, PacketError, PacketHeader, ReleaseData, body_dwords_max, name,
};
use crate::memory::{Cause, Fault, MemoryPort, Rights};
use crate::shader::dispatch::PacketOrigin;
use crate::shader::engine::DispatchTicket;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zrt_kmd::Mapping;

/// Packets of one queue in a row, before the other queues get their turn.
const PACKETS_PER_SLICE: usize = 64;
/// Dispatches of one queue in flight at a time.
const LAUNCHES_MAX: usize = 1024;
/// What a doorbell slot holds until it is rung (hardware reference §6.4).
pub(crate) const DOORBELL_SENTINEL: u64 = u64::MAX;
/// The read pointer in memory is brought up to date each time that so many dwords were consumed, and when the ring
/// is empty (§2.6: block size 5, that is 2^(5+1) dwords).
const READ_POINTER_BLOCK_DWORDS: u64 = 64;

/// What the kernel tells about a queue and never changes.
#[derive(Debug)]
pub(crate) struct QueueDescription {
    pub id: u32,
    pub write_pointer_va: u64,
    pub read_pointer_va: u64,
    pub has_eop: bool,
    /// Byte offset of the doorbell in the slice.
    pub doorbell_at: usize,
    pub doorbells: Arc<Mapping>,
}

/// A queue as kernel and command processor share it.
#[derive(Debug)]
pub(crate) struct HardwareQueue {
    description: QueueDescription,
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    ring_va: u64,
    ring_dwords: u64,
    is_enabled: bool,
    health: Health,
    /// Dwords consumed, monotonic.
    read_pointer: u64,
    /// The read pointer as memory has it.
    reported_read_pointer: u64,
    /// Dwords that may be executed, from the doorbell.
    write_limit: u64,
    /// The doorbell's bytes when last looked at.
    doorbell_seen: u64,
    /// When a new doorbell value will be heard (injected delay).
    doorbell_due: Option<Instant>,
    /// A torn packet was recorded for this write limit.
    torn_at: Option<u64>,
    indirect: Option<IndirectBuffer>,
    registers: Registers,
    /// Dispatches that are not known to be done.
    launches: Vec<DispatchTicket>,
    body: Vec<u32>,
    /// The queue's way to memory.
    port: MemoryPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Running,
    /// A packet could not be executed: the kernel would suspend the queue.
    Stopped,
    /// A wave cannot go on: packets that wait for it wait forever.
    Hung,
    /// The kernel took the queue away.
    Removed,
}

/// Position in an indirect buffer.
#[derive(Clone, Copy, Debug)]
struct IndirectBuffer {
    va: u64,
    dwords: usize,
    at: usize,
}

/// What a slice did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// Nothing to do until the doorbell rings.
    Idle,
    /// A packet waits: for memory, or for a dispatch.
    Waiting { for_dispatch: bool },
    /// Packets were executed.
    Progress,
}

/// What one packet did.
enum Step {
    Done,
    Empty,
    Wait { for_dispatch: bool },
}

/// Why the queue cannot go on.
enum Halt {
    Packet(PacketError),
    Launch(LaunchError),
    Access(Fault),
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

impl HardwareQueue {
    /// A new queue; its doorbell slot is re-armed, so that what an earlier owner rang is not heard.
    pub fn new(description: QueueDescription, ring_va: u64, ring_bytes: u32, is_enabled: bool) -> HardwareQueue {
        description.doorbells.view().store_u64_release(description.doorbell_at, DOORBELL_SENTINEL);
        let state = QueueState {
            ring_va,
            ring_dwords: u64::from(ring_bytes / 4),
            is_enabled: is_enabled && ring_va != 0 && ring_bytes != 0,
            health: Health::Running,
            read_pointer: 0,
            reported_read_pointer: 0,
            write_limit: 0,
            doorbell_seen: DOORBELL_SENTINEL,
            doorbell_due: None,
            torn_at: None,
            indirect: None,
            registers: Registers::new(),
            launches: Vec::new(),
            body: Vec::new(),
            port: MemoryPort::default(),
        };
        HardwareQueue { description, state: Mutex::new(state) }
    }

    pub fn description(&self) -> &QueueDescription {
        &self.description
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// UPDATE_QUEUE: another ring, or off and on.
    pub fn update(&self, ring_va: u64, ring_bytes: u32, is_scheduled: bool) {
        let mut state = self.lock();
        state.is_enabled = is_scheduled && ring_va != 0 && ring_bytes != 0;
        if state.is_enabled {
            state.ring_va = ring_va;
            state.ring_dwords = u64::from(ring_bytes / 4);
        }
    }

    /// Takes the queue out of service; its health before.
    pub fn remove(&self) -> Health {
        let mut state = self.lock();
        state.indirect = None;
        state.launches.clear();
        state.port.release();
        std::mem::replace(&mut state.health, Health::Removed)
    }

    /// Marks the queue as waiting for a wave that will never end.
    pub fn hang(&self) {
        let mut state = self.lock();
        if state.health == Health::Running {
            state.health = Health::Hung;
        }
    }

    /// Looks at the doorbell and executes packets.
    pub fn service(&self, hardware: &Hardware) -> Slice {
        let mut state = self.lock();
        if state.health != Health::Running || !state.is_enabled || hardware.is_evicted() {
            return Slice::Idle;
        }
        let mut worker = Worker { state: &mut state, description: &self.description, hardware };
        match worker.slice() {
            Ok(slice) => slice,
            Err(halt) => {
                let packet = worker.packet_name();
                state.health = Health::Stopped;
                state.port.release();
                report(halt, packet, &state, &self.description, hardware);
                Slice::Idle
            }
        }
    }
}

/// Records why the queue halted; a bad access is told to the process and stops all its queues.
fn report(
    halt: Halt,
    packet: Option<&'static str>,
    state: &QueueState,
    description: &QueueDescription,
    hardware: &Hardware,
) {
    let va = state.packet_va();
    let position = match &state.indirect {
        Some(buffer) => format!("at={va:#x} (indirect buffer {:#x} dword {})", buffer.va, buffer.at),
        None => format!("at={va:#x} (ring dword {})", state.read_pointer),
    };
    let record = |kind, text: String| {
        hardware.record(kind, Some(description.id), packet, format!("{position} : {text}"));
    };
    match halt {
        Halt::Packet(error) => record(FaultKind::Packet, error.to_string()),
        Halt::Launch(error) => record(FaultKind::Launch, error.to_string()),
        Halt::Access(fault) => {
            record(FaultKind::PageFault, format!("va={:#x} {}", fault.va, fault.cause));
            hardware.page_fault(fault);
        }
    }
}

impl QueueState {
    fn ring_address(&self, dword: u64) -> u64 {
        self.ring_va + 4 * (dword & (self.ring_dwords - 1))
    }

    /// Address of the packet at the current position.
    fn packet_va(&self) -> u64 {
        match &self.indirect {
            Some(buffer) => buffer.va.wrapping_add(4 * buffer.at as u64),
            None => self.ring_address(self.read_pointer),
        }
    }
}

/// A slice of service: the queue's state with everything that a packet can reach.
struct Worker<'a> {
    state: &'a mut QueueState,
    description: &'a QueueDescription,
    hardware: &'a Hardware,
}

impl Worker<'_> {
    fn slice(&mut self) -> Result<Slice, Halt> {
        self.look_at_doorbell()?;
        let mut slice = Slice::Idle;
        for _ in 0..PACKETS_PER_SLICE {
            // After the doorbell or the awaited value was seen: what was mapped before it was stored is visible.
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
    fn packet_name(&mut self) -> Option<&'static str> {
        let mut word = [0];
        self.read(self.state.packet_va(), &mut word).ok()?;
        PacketHeader::parse(word[0]).ok().map(|header| name(header.opcode))
    }

    /// Takes a new doorbell value, checked as strictly as §6.4 and §10 (check 12) say.
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

    /// Injected delay: whether the new doorbell value is not to be heard yet.
    fn is_delayed(&mut self) -> bool {
        let delay_us = self.hardware.injector().settings().doorbell_delay_us;
        if delay_us == 0 {
            return false;
        }
        let due = *self.state.doorbell_due.get_or_insert_with(|| Instant::now() + Duration::from_micros(delay_us));
        if Instant::now() < due {
            return true;
        }
        self.state.doorbell_due = None;
        false
    }

    /// Writes the read pointer to memory where a block was completed, or always where the ring is empty.
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

    /// The packet's body is not all there.
    fn incomplete(&mut self, header: PacketHeader, left: u64) -> Result<Step, Halt> {
        if self.state.indirect.is_some() {
            let error =
                PacketError::PastEndOfBuffer { body_dwords: header.body_dwords, left: left as usize };
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
                let error =
                    PacketError::BodyLength { name: name(header.opcode), found: header.body_dwords };
                return Err(if name(header.opcode) == "unknown" {
                    PacketError::UnknownOpcode(header.opcode).into()
                } else {
                    error.into()
                });
            }
            body.resize(header.body_dwords, 0);
            self.read_stream(1, body)?;
        }
        let command = Command::parse(header.opcode, body)?;
        let was_indirect = self.state.indirect.is_some();
        if let Command::IndirectBuffer { address, dwords, chain } = command {
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
    fn read(&mut self, va: u64, destination: &mut [u32]) -> Result<(), Fault> {
        if destination.is_empty() {
            return Ok(());
        }
        let len = 4 * destination.len() as u64;
        if let Some((view, offset)) = self.state.port.range(va, va.saturating_add(len - 1), Rights::READ) {
            for (index, word) in destination.iter_mut().enumerate() {
                *word = view.load_u32(offset as usize + 4 * index);
            }
        } else {
            // Across ranges, or not there at all.
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
    fn write_u32(&mut self, va: u64, value: u32) -> Result<(), Fault> {
        let (view, offset) = self.state.port.translate(va, 4, Rights::WRITE)?;
        view.store_u32_release(offset, value);
        Ok(())
    }

    /// Stores a quadword at an 8-byte aligned address, after everything before.
    fn write_u64(&mut self, va: u64, value: u64) -> Result<(), Fault> {
        let (view, offset) = self.state.port.translate(va, 8, Rights::WRITE)?;
        view.store_u64_release(offset, value);
        Ok(())
    }

    fn advance(&mut self, dwords: usize) {
        match &mut self.state.indirect {
            Some(buffer) => buffer.at += dwords,
            None => self.state.read_pointer += dwords as u64,
        }
    }

    /// Reads dwords of the packet stream, `skip` dwords on from the current position.
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

    /// Executes one command; `Some` where it has to wait, and whether for a dispatch.
    fn execute(&mut self, command: Command, body: &[u32]) -> Result<Option<bool>, Halt> {
        match command {
            Command::Nop | Command::OtherEvent | Command::FlushHdp => {}
            Command::SetShRegisters { first } => self.set_registers(first, &body[1..]),
            Command::DispatchDirect { dimensions, initiator } => {
                if self.state.launches.len() >= LAUNCHES_MAX && !self.has_room_for_launch() {
                    return Ok(Some(true));
                }
                self.dispatch(dimensions, initiator)?;
            }
            Command::AcquireMem { invalidates_instructions } => {
                if invalidates_instructions {
                    self.hardware.invalidate_instructions();
                }
            }
            Command::PartialFlush => {
                if !self.dispatches_are_done() {
                    return Ok(Some(true));
                }
            }
            Command::ReleaseMem { address, data, interrupt, context_id, .. } => {
                if !self.dispatches_are_done() {
                    return Ok(Some(true));
                }
                self.release(address, data, interrupt.then_some(context_id))?;
            }
            Command::WaitMemory { address, comparison } => {
                let mut value = [0];
                self.read(address, &mut value)?;
                if !comparison.holds(value[0]) {
                    return Ok(Some(false));
                }
            }
            Command::WriteData { address, increments } => self.write_data(address, increments, &body[3..])?,
            Command::CopyData { source, destination, wide } => self.copy_data(source, destination, wide)?,
            // Entered before this is called.
            Command::IndirectBuffer { .. } => {}
        }
        Ok(None)
    }

    fn set_registers(&mut self, first: usize, values: &[u32]) {
        if touches_queue_register(first, values.len()) {
            self.hardware.record(
                FaultKind::QueueRegister,
                Some(self.description.id),
                Some("SET_SH_REG"),
                format!("register={first:#x} count={} : a compute-unit mask of the queue", values.len()),
            );
        }
        self.state.registers.store(first, values);
    }

    fn dispatch(&mut self, dimensions: [u32; 3], initiator: u32) -> Result<(), Halt> {
        if let Some(launch) = self.state.registers.launch(dimensions, initiator)? {
            let origin = PacketOrigin { queue_id: self.description.id, packet_va: self.state.packet_va() };
            let ticket = self.hardware.submit(&launch, origin).map_err(LaunchError::from)?;
            self.state.launches.push(ticket);
        }
        self.hardware.count_dispatch();
        Ok(())
    }

    /// Forgets dispatches that are done; whether another may be started.
    fn has_room_for_launch(&mut self) -> bool {
        self.state.launches.retain(|ticket| !ticket.is_done());
        self.state.launches.len() < LAUNCHES_MAX
    }

    /// Whether every earlier dispatch of this queue is done.
    fn dispatches_are_done(&mut self) -> bool {
        // They mostly end in order: the last is the one to look at first.
        if self.state.launches.last().is_some_and(|ticket| !ticket.is_done()) {
            return false;
        }
        self.state.launches.retain(|ticket| !ticket.is_done());
        self.state.launches.is_empty()
    }

    fn release(&mut self, address: u64, data: ReleaseData, interrupt: Option<u32>) -> Result<(), Halt> {
        if !self.description.has_eop {
            // §4.6: the end-of-pipe block writes to the EOP buffer first, and its address is 0.
            return Err(Halt::Access(Fault { va: 0, cause: Cause::NotPresent, access: Rights::WRITE }));
        }
        match data {
            ReleaseData::Nothing => {}
            ReleaseData::Low32(value) => self.write_u32(address, value)?,
            ReleaseData::Wide(value) => self.write_u64(address, value)?,
            ReleaseData::GpuClock => self.write_u64(address, self.hardware.gpu_clock())?,
            ReleaseData::SystemClock => self.write_u64(address, self.hardware.system_clock_ns())?,
        }
        if let Some(context_id) = interrupt {
            self.hardware.interrupt(context_id);
        }
        Ok(())
    }

    fn write_data(&mut self, address: u64, increments: bool, values: &[u32]) -> Result<(), Halt> {
        for (index, value) in values.iter().enumerate() {
            let step = if increments { 4 * index as u64 } else { 0 };
            self.write_u32(address.wrapping_add(step), *value)?;
        }
        Ok(())
    }

    fn copy_data(&mut self, source: CopySource, destination: u64, wide: bool) -> Result<(), Halt> {
        let value = match source {
            CopySource::Immediate(value) => value,
            CopySource::GpuClock => self.hardware.gpu_clock(),
            CopySource::Memory(address) => {
                let mut words = [0; 2];
                let count = if wide { 2 } else { 1 };
                self.read(address, &mut words[..count])?;
                u64::from(words[0]) | u64::from(words[1]) << 32
            }
        };
        if wide {
            self.write_u64(destination, value)?;
        } else {
            self.write_u32(destination, value as u32)?;
        }
        Ok(())
    }
}
