//! The effect of each packet.
//!
//! Contract: a packet either takes effect as a whole and the stream continues, or has to wait and has changed
//! nothing, or halts the queue. Stores are released in packet order.

use crate::command_processor::faults::FaultKind;
use crate::command_processor::injection::PlantedFault;
use crate::command_processor::launch::{Launch, LaunchError, touches_queue_register};
use crate::command_processor::packet::{Command, CopySource, ReleaseData};
use crate::command_processor::stream::{Halt, Worker};
use crate::memory::{Cause, Fault, GPU_PAGE_BYTES, Rights};
use crate::shader::dispatch::PacketOrigin;

/// Most dispatches of one queue in flight.
const LAUNCHES_MAX: usize = 1024;

impl Worker<'_> {
    /// Executes one command. Returns `Some` if it has to wait, with whether it waits for a dispatch.
    pub fn execute(&mut self, command: Command, body: &[u32]) -> Result<Option<bool>, Halt> {
        match command {
            Command::Nop | Command::OtherEvent | Command::FlushHdp => {}
            Command::SetShRegisters { first } => self.set_registers(first, &body[1..]),
            Command::DispatchDirect { dimensions, initiator } => {
                if self.state.launches.len() >= LAUNCHES_MAX && !self.has_room_for_launch() {
                    return Ok(Some(true));
                }
                self.dispatch(dimensions, initiator)?;
            }
            Command::AcquireMem(caches) => self.hardware.acquire(caches),
            Command::PartialFlush => {
                if !self.dispatches_are_done() {
                    return Ok(Some(true));
                }
                self.hardware.flushed();
            }
            Command::ReleaseMem { caches, address, data, interrupt, context_id } => {
                if !self.dispatches_are_done() {
                    return Ok(Some(true));
                }
                self.hardware.flushed();
                let is_fence = matches!(data, ReleaseData::Low32(_) | ReleaseData::Wide(_));
                self.hardware.release(caches, is_fence.then_some(address));
                self.release(address, data, interrupt.then_some(context_id))?;
            }
            Command::WaitMemory { address, comparison } => {
                let mut value = [0];
                self.read(address, &mut value)?;
                self.hardware.read_through_gl2(address, &mut value);
                if !comparison.holds(value[0]) {
                    return Ok(Some(false));
                }
            }
            Command::WriteData { address, increments } => self.write_data(address, increments, &body[3..])?,
            Command::CopyData { source, destination, wide, is_obsolete } => {
                self.copy_data(source, destination, wide)?;
                if is_obsolete {
                    self.note_obsolete(body[0]);
                }
            }
            // Entered before this function is called.
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

    /// The packet works on gfx12: the kernel driver itself copies registers to destination 5
    /// (`gfx_v12_0_ring_emit_rreg`). But nothing guarantees that for the future.
    fn note_obsolete(&self, control: u32) {
        self.hardware.record(
            FaultKind::ObsoleteSelector,
            Some(self.description.id),
            Some("COPY_DATA"),
            format!(
                "at={:#x} control={control:#x} : source 1 or destination 5, obsolete; GL2 is 2",
                self.state.packet_va()
            ),
        );
    }

    fn dispatch(&mut self, dimensions: [u32; 3], initiator: u32) -> Result<(), Halt> {
        if let Some(launch) = self.state.registers.launch(dimensions, initiator)? {
            self.prefetch(&launch)?;
            let origin = PacketOrigin { queue_id: self.description.id, packet_va: self.state.packet_va() };
            let ticket = self.hardware.submit(&launch, origin).map_err(LaunchError::from)?;
            self.state.launches.push(ticket);
        }
        self.hardware.count_dispatch();
        Ok(())
    }

    /// Fetches the lines that INST_PREF_SIZE names, before the first wave begins and whether or not it reaches
    /// them. Memory that is not mapped for execution faults as for any fetch. The behaviour of a card is not
    /// documented; these are the lines that it may access.
    fn prefetch(&mut self, launch: &Launch) -> Result<(), Fault> {
        let len = launch.prefetch_bytes();
        let access = Rights::READ | Rights::EXECUTE;
        let last = launch.code_va.saturating_add(len.saturating_sub(1));
        if len == 0 || self.state.port.range(launch.code_va, last, access).is_some() {
            return Ok(());
        }
        for page_va in (launch.code_va & !(GPU_PAGE_BYTES - 1)..=last).step_by(GPU_PAGE_BYTES as usize) {
            self.state.port.translate(page_va.max(launch.code_va), 1, access)?;
        }
        Ok(())
    }

    /// Drops finished dispatches. Returns whether another one may start.
    fn has_room_for_launch(&mut self) -> bool {
        self.state.launches.retain(|ticket| !ticket.is_done());
        self.state.launches.len() < LAUNCHES_MAX
    }

    /// Whether every earlier dispatch of this queue is done.
    fn dispatches_are_done(&mut self) -> bool {
        // They mostly finish in order, so the last is checked first.
        if self.state.launches.last().is_some_and(|ticket| !ticket.is_done()) {
            return false;
        }
        self.state.launches.retain(|ticket| !ticket.is_done());
        self.state.launches.is_empty()
    }

    fn release(&mut self, address: u64, data: ReleaseData, interrupt: Option<u32>) -> Result<(), Halt> {
        if !self.description.has_eop {
            // Hardware reference §4.6: the end-of-pipe block writes to the EOP buffer first, and its address is 0.
            return Err(Halt::Access(Fault { va: 0, cause: Cause::NotPresent, access: Rights::WRITE }));
        }
        if self.hardware.injector().has(PlantedFault::EndOfPipeNeverWrites) {
            return Ok(());
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
                self.hardware.read_through_gl2(address, &mut words[..count]);
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
