//! One slice of service of a queue, and how the queue stops.
//!
//! Contract: the queue's lock is held for the slice. The work is in `stream` and `execute`.

use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::injection::PlantedFault;
use crate::command_processor::queue::{HardwareQueue, Health, QueueDescription, QueueState};
use crate::command_processor::stream::{Halt, Slice, Worker};

impl HardwareQueue {
    /// Polls the doorbell and executes packets.
    pub fn service(&self, hardware: &Hardware) -> Slice {
        let mut state = self.lock();
        let is_deaf = hardware.injector().has(PlantedFault::QueueNeverReads);
        if state.health != Health::Running || !state.is_enabled || hardware.is_evicted() || is_deaf {
            return Slice::Idle;
        }
        let mut worker = Worker { state: &mut state, description: self.description(), hardware };
        match worker.slice() {
            Ok(slice) => slice,
            Err(halt) => {
                let packet = worker.packet_name();
                state.health = Health::Stopped;
                state.port.release();
                report(halt, packet, &state, self.description(), hardware);
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
