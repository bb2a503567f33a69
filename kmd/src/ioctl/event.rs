//! Commands about events.

use super::{Command, CommandError, GROUP, MemoryHandle, common_remedy, issue, request};
use crate::bindings::kfd::*;
use crate::errno::Errno;
use crate::syscalls::{Fd, Nested, Syscalls};
use core::mem::offset_of;
use rustix::ioctl::opcode;
use zerocopy::{FromZeros, IntoBytes};

/// What an event signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A write by the GPU into a slot of the signal page, followed by an interrupt.
    Signal = KFD_IOC_EVENT_SIGNAL,
    /// The GPU was reset or failed.
    HardwareException = KFD_IOC_EVENT_HW_EXCEPTION,
    /// A memory access by the GPU failed.
    Memory = KFD_IOC_EVENT_MEMORY,
}

/// CREATE_EVENT.
#[derive(Clone, Copy, Debug)]
pub struct CreateEvent {
    /// What it signals.
    pub kind: EventKind,
    /// The signal page, with the first signal event of the process.
    pub page: Option<MemoryHandle>,
    /// Whether a wait resets it on return.
    pub auto_reset: bool,
}

/// An event of this process. Zero means no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId(pub u32);

/// What CREATE_EVENT returns.
#[derive(Clone, Copy, Debug)]
pub struct CreatedEvent {
    /// Identifies the event in later calls; also the value that the GPU sends with its interrupt.
    pub id: EventId,
    /// Its 8-byte slot in the signal page.
    pub slot_index: u32,
}

impl Command for CreateEvent {
    type Structure = kfd_ioctl_create_event_args;
    type Output = CreatedEvent;
    const NAME: &'static str = "CREATE_EVENT";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x08));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            event_page_offset: self.page.map_or(0, |handle| handle.0),
            event_type: self.kind as u32,
            auto_reset: u32::from(self.auto_reset),
            ..Default::default()
        }
    }

    fn output(structure: Self::Structure) -> CreatedEvent {
        CreatedEvent { id: EventId(structure.event_id), slot_index: structure.event_slot_index }
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::ENOSPC => "the process has no event slot left; close other devices of this process",
            Errno::EINVAL => {
                "the process has a signal page already; open every device over the process's one attachment"
            }
            other => common_remedy(other),
        }
    }
}

/// DESTROY_EVENT.
#[derive(Clone, Copy, Debug)]
pub struct DestroyEvent {
    /// The event.
    pub id: EventId,
}

impl Command for DestroyEvent {
    type Structure = kfd_ioctl_destroy_event_args;
    type Output = ();
    const NAME: &'static str = "DESTROY_EVENT";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x09));

    fn structure(&self) -> Self::Structure {
        Self::Structure { event_id: self.id.0, ..Default::default() }
    }

    fn output(_: Self::Structure) {}
}

/// WAIT_EVENTS: blocks until one of the events is signalled or the timeout expires.
#[derive(Clone, Copy, Debug)]
pub struct WaitEvents<'a> {
    /// The events to wait for.
    pub events: &'a [EventId],
    /// Timeout; 0 polls.
    pub timeout_ms: u32,
}

/// The result of WAIT_EVENTS: whether any event was signalled, and each one's payload as the driver left it.
#[derive(Clone, Debug, Default)]
pub struct WaitedEvents {
    /// False if the timeout expired.
    pub signalled: bool,
    /// One per event, in the order of the events.
    pub payloads: Vec<kfd_event_data_plain>,
}

impl Command for WaitEvents<'_> {
    type Structure = kfd_ioctl_wait_events_args;
    type Output = WaitedEvents;
    const NAME: &'static str = "WAIT_EVENTS";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x0C));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            num_events: self.events.len() as u32,
            timeout: self.timeout_ms,
            ..Default::default()
        }
    }

    fn output(structure: Self::Structure) -> WaitedEvents {
        let signalled = structure.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE;
        WaitedEvents { signalled, payloads: Vec::new() }
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EINTR => "interrupted by a signal; wait again",
            other => common_remedy(other),
        }
    }

    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<WaitedEvents, CommandError> {
        let mut payloads = vec![kfd_event_data_plain::new_zeroed(); self.events.len()];
        for (payload, event) in payloads.iter_mut().zip(self.events) {
            payload.event_id = event.0;
        }
        let mut structure = self.structure();
        let bytes = payloads.as_mut_slice().as_mut_bytes();
        let field_offset = offset_of!(Self::Structure, events_ptr);
        issue::<Self>(syscalls, fd, &mut structure, &mut [Nested { field_offset, bytes }])?;
        Ok(WaitedEvents { payloads, ..Self::output(structure) })
    }
}

/// SET_EVENT: signals a signal event from the CPU.
#[derive(Clone, Copy, Debug)]
pub struct SetEvent {
    /// The event.
    pub id: EventId,
}

impl Command for SetEvent {
    type Structure = kfd_ioctl_set_event_args;
    type Output = ();
    const NAME: &'static str = "SET_EVENT";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x0A));

    fn structure(&self) -> Self::Structure {
        Self::Structure { event_id: self.id.0, ..Default::default() }
    }

    fn output(_: Self::Structure) {}
}

/// RESET_EVENT: resets a signal event.
#[derive(Clone, Copy, Debug)]
pub struct ResetEvent {
    /// The event.
    pub id: EventId,
}

impl Command for ResetEvent {
    type Structure = kfd_ioctl_reset_event_args;
    type Output = ();
    const NAME: &'static str = "RESET_EVENT";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x0B));

    fn structure(&self) -> Self::Structure {
        Self::Structure { event_id: self.id.0, ..Default::default() }
    }

    fn output(_: Self::Structure) {}
}
