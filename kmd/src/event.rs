//! Events: how the driver reports an interrupt, a bad access or a reset.
//!
//! Contract: hardware reference §2.2 steps 9 and 10, §2.3, §8. One [`Events`] per opened device, made by
//! [`Attachment::events`](crate::Attachment::events): a signal event on the process's page, and the two exception
//! events, which stay signalled once they are. What they report about the process is recorded in it. Waiting is one
//! system call, made only after a fence did not arrive; nothing here is on the path of a token.

use crate::bindings::kfd::{kfd_hsa_hw_exception_data, kfd_hsa_memory_exception_data};
use crate::errno::Errno;
use crate::error::KmdError;
use crate::ioctl::{CommandError, CreateEvent, DestroyEvent, EventId, EventKind, WaitEvents};
use crate::process_loss::ProcessLoss;
use crate::vm::Vm;
use core::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};
use zrt_mem::GpuVa;

/// The events of one device.
pub struct Events {
    vm: Arc<Vm>,
    signal: EventId,
    /// Address in the signal page, which outlives every event.
    signal_slot_va: GpuVa,
    memory: EventId,
    hardware: EventId,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventReport {
    /// True if any event was signalled. If neither of the others is set, it was the signal event.
    pub signalled: bool,
    /// A faulting access by the GPU.
    pub memory_fault: Option<MemoryFault>,
    /// A reset or failure of the GPU.
    pub hardware_exception: Option<HardwareException>,
}

impl EventReport {
    /// True if something went wrong.
    pub fn has_fault(&self) -> bool {
        self.memory_fault.is_some() || self.hardware_exception.is_some()
    }
}

/// A faulting access, as the driver reports it (hardware reference §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// The page.
    pub va: GpuVa,
    /// The GPU.
    pub gpu_id: u32,
    /// No mapping exists there.
    pub not_present: bool,
    /// A write without write permission.
    pub read_only: bool,
    /// An instruction fetch without execute permission.
    pub no_execute: bool,
    /// The address is only close to the faulting one.
    pub imprecise: bool,
    /// 0 none, 1 SRAM ECC, 2 poison, 3 GPU hang.
    pub error_type: u32,
}

/// A reset, as the driver reports it (hardware reference §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareException {
    /// 0 whole GPU, 1 one engine.
    pub reset_type: u32,
    /// 0 hang, 1 ECC.
    pub reset_cause: u32,
    /// VRAM is lost.
    pub memory_lost: bool,
    /// The GPU.
    pub gpu_id: u32,
}

impl Events {
    /// Creates the two exception events to go with a signal event. Takes the signal event over even if it fails.
    pub(crate) fn around(vm: &Arc<Vm>, signal: EventId, signal_slot_va: GpuVa) -> Result<Events, KmdError> {
        let process = vm.process();
        // Each failure destroys what was created before it.
        let exception = |kind| process.call(&CreateEvent { kind, page: None, auto_reset: false });
        let memory =
            exception(EventKind::Memory).inspect_err(|_| process.tear_down(&DestroyEvent { id: signal }))?;
        let hardware = exception(EventKind::HardwareException).inspect_err(|_| {
            process.tear_down(&DestroyEvent { id: memory.id });
            process.tear_down(&DestroyEvent { id: signal });
        })?;
        Ok(Events { vm: vm.clone(), signal, signal_slot_va, memory: memory.id, hardware: hardware.id })
    }

    /// The signal event: the value that the GPU sends with an interrupt (the context id of RELEASE_MEM).
    pub fn signal(&self) -> EventId {
        self.signal
    }

    /// The address where the GPU stores the event's id before the interrupt.
    pub fn signal_slot_va(&self) -> GpuVa {
        self.signal_slot_va
    }

    /// Waits for any of the three events, at most `timeout` (whole milliseconds, rounded up). Zero polls.
    pub fn wait(&self, timeout: Duration) -> Result<EventReport, KmdError> {
        let events = [self.signal, self.memory, self.hardware];
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            // u32::MAX means forever, which we never request.
            let timeout_ms = left.as_micros().div_ceil(1000).min(u128::from(u32::MAX - 1)) as u32;
            let waited = match self.vm.process().call(&WaitEvents { events: &events, timeout_ms }) {
                Err(CommandError { errno: Errno::EINTR | Errno::EAGAIN, .. }) if !left.is_zero() => {
                    continue;
                }
                Err(CommandError { errno: Errno::EINTR | Errno::EAGAIN, .. }) => {
                    return Ok(EventReport::default());
                }
                outcome => outcome?,
            };
            if !waited.signalled {
                return Ok(EventReport::default());
            }
            // One payload for each event, in the order above.
            let payload = |at: usize| waited.payloads.get(at).map(|event| event.payload.as_bytes());
            let report = EventReport {
                signalled: true,
                memory_fault: payload(1).and_then(MemoryFault::parse),
                hardware_exception: payload(2).and_then(HardwareException::parse),
            };
            if let Some(loss) = report.process_loss() {
                self.vm.process().note_loss(loss);
            }
            return Ok(report);
        }
    }
}

impl EventReport {
    /// The consequence for the whole process. A reset of one engine affects only that engine's queues.
    fn process_loss(&self) -> Option<ProcessLoss> {
        match self.hardware_exception {
            Some(exception) if exception.reset_type == 0 || exception.memory_lost => Some(ProcessLoss::Reset),
            _ => self.memory_fault.map(|_| ProcessLoss::PageFault),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Destroying a queue just now may have hung the GPU: this is the last chance to learn of it. If the query
        // fails, the known state stays as it is.
        let _ = self.wait(Duration::ZERO);
        for id in [self.hardware, self.memory, self.signal] {
            self.vm.process().tear_down(&DestroyEvent { id });
        }
    }
}

impl MemoryFault {
    /// The payload of a memory event; `None` if the driver left it empty (a fault always has a gpu_id).
    fn parse(bytes: &[u8]) -> Option<MemoryFault> {
        let (data, _) = kfd_hsa_memory_exception_data::read_from_prefix(bytes).ok()?;
        (data.gpu_id != 0).then_some(MemoryFault {
            va: GpuVa(data.va),
            gpu_id: data.gpu_id,
            not_present: data.failure.NotPresent != 0,
            read_only: data.failure.ReadOnly != 0,
            no_execute: data.failure.NoExecute != 0,
            imprecise: data.failure.imprecise != 0,
            error_type: data.ErrorType,
        })
    }
}

impl HardwareException {
    fn parse(bytes: &[u8]) -> Option<HardwareException> {
        let (data, _) = kfd_hsa_hw_exception_data::read_from_prefix(bytes).ok()?;
        (data.gpu_id != 0).then_some(HardwareException {
            reset_type: data.reset_type,
            reset_cause: data.reset_cause,
            memory_lost: data.memory_lost != 0,
            gpu_id: data.gpu_id,
        })
    }
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = if self.imprecise { "near " } else { "" };
        write!(formatter, "page fault at {near}{}", self.va)?;
        for (set, text) in [
            (self.not_present, "not mapped"),
            (self.read_only, "not writable"),
            (self.no_execute, "not executable"),
            (self.error_type == 1, "SRAM ECC error"),
            (self.error_type == 2, "poisoned data"),
            (self.error_type == 3, "GPU hang"),
        ] {
            if set {
                write!(formatter, ", {text}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for HardwareException {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.reset_type == 0 { "the GPU was reset" } else { "an engine was reset" };
        let why = if self.reset_cause == 0 { "after a hang" } else { "after an ECC error" };
        let lost = if self.memory_lost { "; VRAM is lost" } else { "" };
        write!(formatter, "{what} {why}{lost}")
    }
}
