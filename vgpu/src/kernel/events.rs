//! Events: the signal page, signalling by interrupt and by exception, waiting.
//!
//! Contract: the rules of hardware reference §2.3 and §2.8. Waiting blocks the calling thread up to its timeout;
//! everything else takes one short lock. At most [`EVENTS_MAX`] non-signal events and 4095 signal events (id 0 is
//! reserved) can exist.

use crate::kernel::board::{EVENT_SLOT_BYTES, EVENT_SLOT_UNSIGNALLED, EVENT_SLOTS};
use crate::kernel::requests::event::{TYPE_DEBUG, TYPE_HW_EXCEPTION, TYPE_MEMORY, TYPE_SIGNAL};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zrt_kmd::{Errno, Mapping};

/// Events without a slot have ids from here on: the upper half of a positive `int` (`kfd_events.h`).
const FIRST_OTHER_ID: u32 = 1 << 30;
/// Slots of the kernel's own page until the process has mapped it (`allocate_event_notification_slot`).
const UNMAPPED_SLOTS: u32 = 256;
/// Most events without a slot.
const EVENTS_MAX: u32 = 4096;

/// The payload of a MEMORY event (hardware reference §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryException {
    pub not_present: bool,
    pub read_only: bool,
    pub no_execute: bool,
    /// Address of the page.
    pub page_va: u64,
    pub gpu_id: u32,
}

/// The payload of a HW_EXCEPTION event: here always a whole-GPU reset after a hang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HardwareException {
    pub memory_lost: bool,
    pub gpu_id: u32,
}

/// One entry of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitFor {
    pub event_id: u32,
    /// The age last seen by the waiter; 0 if it does not use ages.
    pub last_age: u64,
}

/// The result for an entry of a completed wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventData {
    /// Not activated, or no data.
    None,
    /// A signal event whose waiter uses ages.
    Age(u64),
    Memory(MemoryException),
    Hardware(HardwareException),
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    Complete(Vec<EventData>),
    Timeout,
    /// An event was destroyed during the wait.
    Destroyed,
}

/// All events of the process.
#[derive(Debug, Default)]
pub(crate) struct Events {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    page: Option<SignalPage>,
    events: BTreeMap<u32, Event>,
    waits: BTreeMap<u64, Vec<Waiter>>,
    next_wait: u64,
}

/// The page of slots, kept mapped while it is in use.
#[derive(Debug)]
struct SignalPage {
    mapping: Arc<Mapping>,
    /// The buffer object that holds it, if the process supplied one.
    handle: Option<u64>,
    /// Slots that the process can see: events have only these.
    slots: u32,
}

#[derive(Debug)]
struct Event {
    kind: u32,
    auto_reset: bool,
    signalled: bool,
    age: u64,
    memory: MemoryException,
    hardware: HardwareException,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    event_id: u32,
    activated: bool,
    /// In the event's queue: it was not activated when the wait began (`init_event_waiter`).
    is_queued: bool,
    uses_age: bool,
    destroyed: bool,
}

impl Event {
    fn has_slot(&self) -> bool {
        kind_has_slot(self.kind)
    }
}

fn kind_has_slot(kind: u32) -> bool {
    kind == TYPE_SIGNAL || kind == TYPE_DEBUG
}

/// Slots in `len` bytes of a page.
fn slots_of(len: usize) -> u32 {
    (len / EVENT_SLOT_BYTES).min(EVENT_SLOTS as usize) as u32
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a signal page is set.
    pub fn has_page(&self) -> bool {
        self.lock().page.is_some()
    }

    /// The buffer object that serves as signal page.
    pub fn page_handle(&self) -> Option<u64> {
        self.lock().page.as_ref().and_then(|page| page.handle)
    }

    /// Live events, for teardown checks.
    pub fn count(&self) -> usize {
        self.lock().events.len()
    }

    /// Makes `mapping` the signal page, with all slots unsignalled: as many slots as fit, at most [`EVENT_SLOTS`].
    /// `EINVAL` if one is set already.
    pub fn set_page(&self, mapping: Arc<Mapping>, handle: Option<u64>) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.page.is_some() {
            return Err(Errno::EINVAL);
        }
        let slots = slots_of(mapping.len());
        mapping.view().fill(0, slots as usize * EVENT_SLOT_BYTES, EVENT_SLOT_UNSIGNALLED as u8);
        let slots = if handle.is_some() { slots } else { slots.min(UNMAPPED_SLOTS) };
        state.page = Some(SignalPage { mapping, handle, slots });
        Ok(())
    }

    /// The process has mapped `len` bytes of the page: events have slots there (`kfd_event_mmap`).
    pub fn page_is_mapped(&self, len: usize) {
        if let Some(page) = &mut self.lock().page {
            page.slots = slots_of(len);
        }
    }

    /// Makes an event. Returns its id. For signal events the id is the slot's index.
    pub fn create(&self, kind: u32, auto_reset: bool) -> Result<u32, Errno> {
        let mut state = self.lock();
        let ids = if kind_has_slot(kind) {
            // Id 0 is reserved for interrupts without context (hardware reference §2.8).
            1..state.slot_count()
        } else {
            FIRST_OTHER_ID..FIRST_OTHER_ID + EVENTS_MAX
        };
        let id = ids.into_iter().find(|id| !state.events.contains_key(id)).ok_or(Errno::ENOSPC)?;
        let event = Event {
            kind,
            auto_reset,
            signalled: false,
            age: 1,
            memory: MemoryException::default(),
            hardware: HardwareException::default(),
        };
        if kind_has_slot(kind) {
            state.set_slot(id, EVENT_SLOT_UNSIGNALLED);
        }
        state.events.insert(id, event);
        Ok(id)
    }

    /// Destroys an event; waits on it fail.
    pub fn destroy(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.lock();
        state.events.remove(&id).ok_or(Errno::EINVAL)?;
        for waiter in state.waits.values_mut().flatten().filter(|waiter| waiter.event_id == id) {
            waiter.destroyed = true;
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Signals a signal event from the CPU.
    pub fn set(&self, id: u32) -> Result<(), Errno> {
        self.signal_type_only(id)?.activate(id);
        self.changed.notify_all();
        Ok(())
    }

    /// Resets a signal event.
    pub fn reset(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.signal_type_only(id)?;
        if let Some(event) = state.events.get_mut(&id) {
            event.signalled = false;
        }
        Ok(())
    }

    /// SET and RESET are only for events of type SIGNAL (hardware reference §2.8).
    fn signal_type_only(&self, id: u32) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.lock();
        match state.events.get(&id) {
            Some(event) if event.kind == TYPE_SIGNAL => Ok(state),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Handles an end-of-pipe interrupt with its context id. The event with that id is signalled if its slot was
    /// written; otherwise every event whose slot was written. The kernel re-arms the slots that it consumes.
    pub fn interrupt(&self, context_id: u32) {
        let mut state = self.lock();
        let written = |state: &State, id: u32| {
            state.events.get(&id).is_some_and(Event::has_slot) && state.slot(id) != EVENT_SLOT_UNSIGNALLED
        };
        let ids: Vec<u32> = if context_id != 0 && written(&state, context_id) {
            vec![context_id]
        } else {
            state.events.keys().copied().filter(|id| written(&state, *id)).collect()
        };
        for id in ids {
            state.set_slot(id, EVENT_SLOT_UNSIGNALLED);
            state.activate(id);
        }
        self.changed.notify_all();
    }

    /// Signals every MEMORY event of the process.
    pub fn memory_exception(&self, exception: MemoryException) {
        self.exception(TYPE_MEMORY, |event| event.memory = exception);
    }

    /// Signals every HW_EXCEPTION event of the process.
    pub fn hardware_exception(&self, exception: HardwareException) {
        self.exception(TYPE_HW_EXCEPTION, |event| event.hardware = exception);
    }

    fn exception(&self, kind: u32, mut describe: impl FnMut(&mut Event)) {
        let mut state = self.lock();
        let events = state.events.iter().filter(|(_, event)| event.kind == kind);
        let ids: Vec<u32> = events.map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(event) = state.events.get_mut(&id) {
                describe(event);
            }
            state.activate(id);
        }
        self.changed.notify_all();
    }

    /// Waits for one or all of the entries. `EINVAL` if an id is unknown. A timeout of `None` waits forever.
    pub fn wait(
        &self,
        entries: &[WaitFor],
        all: bool,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, Errno> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        let wait = state.enter(entries)?;
        let outcome = loop {
            if let Some(outcome) = state.outcome(wait, all) {
                break outcome;
            }
            let now = Instant::now();
            state = match (timeout, deadline) {
                (Some(_), Some(deadline)) if now >= deadline => break WaitOutcome::Timeout,
                (Some(_), Some(deadline)) => {
                    let slept = self.changed.wait_timeout(state, deadline - now);
                    slept.unwrap_or_else(PoisonError::into_inner).0
                }
                _ => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        };
        state.waits.remove(&wait);
        Ok(outcome)
    }

    /// Drops everything; pending waits fail.
    pub fn release_all(&self) {
        let mut state = self.lock();
        state.events.clear();
        state.page = None;
        for waiter in state.waits.values_mut().flatten() {
            waiter.destroyed = true;
        }
        self.changed.notify_all();
    }
}

impl State {
    /// Without a page nobody can make an event that needs a slot.
    fn slot_count(&self) -> u32 {
        self.page.as_ref().map_or(0, |page| page.slots)
    }

    fn slot(&self, id: u32) -> u64 {
        match &self.page {
            Some(page) => page.mapping.view().load_u64_acquire(id as usize * EVENT_SLOT_BYTES),
            None => EVENT_SLOT_UNSIGNALLED,
        }
    }

    fn set_slot(&self, id: u32, value: u64) {
        if let Some(page) = &self.page {
            page.mapping.view().store_u64_release(id as usize * EVENT_SLOT_BYTES, value);
        }
    }

    /// Signals an event: waiters are activated; an auto-reset event stays signalled only if nobody waited.
    fn activate(&mut self, id: u32) {
        let Some(event) = self.events.get_mut(&id) else { return };
        let mut waited = false;
        let waiters = self.waits.values_mut().flatten();
        for waiter in waiters.filter(|waiter| waiter.event_id == id && waiter.is_queued) {
            waiter.activated = true;
            waited = true;
        }
        event.signalled = !event.auto_reset || !waited;
        // Age 0 means "does not use ages", and 1 is that of a new event: the kernel skips both (`set_event`).
        event.age = event.age.checked_add(1).unwrap_or(2);
    }

    /// Registers a wait. Returns its key.
    fn enter(&mut self, entries: &[WaitFor]) -> Result<u64, Errno> {
        if entries.iter().any(|entry| !self.events.contains_key(&entry.event_id)) {
            return Err(Errno::EINVAL);
        }
        let mut waiters = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(event) = self.events.get_mut(&entry.event_id) else { return Err(Errno::EINVAL) };
            let uses_age = event.kind == TYPE_SIGNAL && entry.last_age != 0;
            let aged = uses_age && event.age != entry.last_age;
            let activated = event.signalled || aged;
            event.signalled = event.signalled && !event.auto_reset;
            let (event_id, is_queued) = (entry.event_id, !activated);
            waiters.push(Waiter { event_id, activated, is_queued, uses_age, destroyed: false });
        }
        let key = self.next_wait;
        self.next_wait += 1;
        self.waits.insert(key, waiters);
        Ok(key)
    }

    fn outcome(&self, wait: u64, all: bool) -> Option<WaitOutcome> {
        let waiters = self.waits.get(&wait).map_or(&[][..], |waiters| waiters);
        if waiters.iter().any(|waiter| waiter.destroyed) {
            return Some(WaitOutcome::Destroyed);
        }
        let activated = waiters.iter().filter(|waiter| waiter.activated).count();
        let complete = activated == waiters.len() || !all && activated > 0;
        complete.then(|| WaitOutcome::Complete(waiters.iter().map(|waiter| self.data(waiter)).collect()))
    }

    fn data(&self, waiter: &Waiter) -> EventData {
        match self.events.get(&waiter.event_id) {
            Some(event) if waiter.activated => match event.kind {
                TYPE_MEMORY => EventData::Memory(event.memory),
                TYPE_HW_EXCEPTION => EventData::Hardware(event.hardware),
                TYPE_SIGNAL if waiter.uses_age => EventData::Age(event.age),
                _ => EventData::None,
            },
            _ => EventData::None,
        }
    }
}

#[cfg(test)]
mod tests;
