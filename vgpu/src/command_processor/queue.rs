//! One hardware queue: its description and its state.
//!
//! Contract: kernel side and command processor share it behind one lock, which is held for one slice of service
//! (`service`).

use crate::command_processor::launch::Registers;
use crate::memory::MemoryPort;
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

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
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
