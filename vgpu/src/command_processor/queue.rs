//! One hardware queue: its description, its state, and how it stops.
//!
//! Contract: kernel side and command processor share it behind one lock, which is held for one slice of service.
//! The work of a slice is in `stream` and `execute`.

use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::injection::PlantedFault;
use crate::command_processor::launch::{LaunchError, Registers};
use crate::command_processor::packet::PacketError;
use crate::command_processor::stream::Worker;
use crate::memory::{Fault, MemoryPort};
use crate::workgroups::DispatchTicket;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use zrt_kmd::Mapping;

/// Initial value of a doorbell slot, until it is rung (hardware reference §6.4).
pub(crate) const DOORBELL_SENTINEL: u64 = u64::MAX;
/// The unchanging properties of a queue, as the kernel sets them.
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

/// The state of the queue.
#[derive(Debug)]
pub(super) struct QueueState {
    pub ring_va: u64,
    pub ring_dwords: u64,
    pub is_enabled: bool,
    pub health: Health,
    /// Dwords consumed, monotonic.
    pub read_pointer: u64,
    /// The read pointer as last written to memory.
    pub reported_read_pointer: u64,
    /// Dwords that may be executed, from the doorbell.
    pub write_limit: u64,
    /// The doorbell's bytes at the last poll.
    pub doorbell_seen: u64,
    /// When a new doorbell value takes effect (injected delay).
    pub doorbell_due: Option<Instant>,
    /// A torn packet was recorded for this write limit.
    pub torn_at: Option<u64>,
    pub indirect: Option<IndirectBuffer>,
    pub registers: Registers,
    /// Dispatches not known to be done.
    pub launches: Vec<DispatchTicket>,
    pub body: Vec<u32>,
    /// The queue's access to memory.
    pub port: MemoryPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Running,
    /// A packet could not be executed: the kernel would suspend the queue.
    Stopped,
    /// A wave cannot continue: packets that wait for it wait forever.
    Hung,
    /// The kernel removed the queue.
    Removed,
}

/// Position in an indirect buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndirectBuffer {
    pub va: u64,
    pub dwords: usize,
    pub at: usize,
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
    /// A new queue. Its doorbell slot is re-armed, so that a ring by an earlier owner has no effect.
    pub fn new(
        description: QueueDescription,
        ring_va: u64,
        ring_bytes: u32,
        is_enabled: bool,
    ) -> HardwareQueue {
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

    /// UPDATE_QUEUE: another ring, or disable and enable.
    pub fn update(&self, ring_va: u64, ring_bytes: u32, is_scheduled: bool) {
        let mut state = self.lock();
        state.is_enabled = is_scheduled && ring_va != 0 && ring_bytes != 0;
        if state.is_enabled {
            state.ring_va = ring_va;
            state.ring_dwords = u64::from(ring_bytes / 4);
        }
    }

    /// Takes the queue out of service. Returns its previous health.
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

    /// Polls the doorbell and executes packets.
    pub fn service(&self, hardware: &Hardware) -> Slice {
        let mut state = self.lock();
        let is_deaf = hardware.injector().has(PlantedFault::QueueNeverReads);
        if state.health != Health::Running || !state.is_enabled || hardware.is_evicted() || is_deaf {
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

/// Records why the queue halted; a bad access is reported to the process and stops all its queues.
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
    /// Address of a dword of the monotonic count.
    pub fn ring_address(&self, dword: u64) -> u64 {
        self.ring_va + 4 * (dword & (self.ring_dwords - 1))
    }

    /// Address of the packet at the current position.
    pub fn packet_va(&self) -> u64 {
        match &self.indirect {
            Some(buffer) => buffer.va.wrapping_add(4 * buffer.at as u64),
            None => self.ring_address(self.read_pointer),
        }
    }
}
