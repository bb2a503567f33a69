//! Recorded work: dispatches and barriers in one indirect buffer.
//!
//! Contract: recording is set-up; a finished [`Graph`] is replayed any number of times and is never changed. It names
//! kernels and parameter blocks by address: keep both alive as long as it is submitted. Inside a graph, a dispatch may
//! overlap with earlier ones; one that reads what an earlier one wrote needs [`Recorder::barrier`] between them. A
//! replay begins with a full acquire, so it sees what the host wrote before it was submitted.

use crate::code::LaunchKernel;
use crate::error::DeviceError;
use crate::kernel::Kernel;
use crate::memory::{Buffer, Space};
use zrt_mem::{ByteLen, DwordLen, GpuVa, Heap};
use zrt_pm4::EmitError;
use zrt_ring::{GRAPH_DWORDS_MAX, GraphError, GraphRecorder};

/// Dwords of one dispatch (39) and one barrier (10), as `GraphRecorder` states them.
const DWORDS_PER_DISPATCH: usize = 49;
/// Kernels that a graph's label names.
const LABEL_NAMES_MAX: usize = 12;
/// Dwords of the start of a recording.
const DWORDS_OF_START: usize = 10;
/// Maximum number of dispatches that a recorder can be made for.
const CAPACITY_MAX: usize = (GRAPH_DWORDS_MAX as usize - DWORDS_OF_START) / DWORDS_PER_DISPATCH;

/// Collects a graph. Made by [`crate::Device::recorder`].
pub struct Recorder {
    space: Space,
    recorder: GraphRecorder,
    capacity: usize,
    /// Kernels in the order of their first dispatch, for reports.
    names: Vec<String>,
}

/// A recorded indirect buffer. The default one is empty and cannot be submitted.
#[derive(Debug, Default)]
pub struct Graph {
    pub(crate) recorded: Option<zrt_ring::Graph>,
    pub(crate) buffer: Option<Buffer>,
}

impl Recorder {
    pub(crate) fn new(space: Space, capacity: usize) -> Result<Recorder, DeviceError> {
        if capacity > CAPACITY_MAX {
            return Err(DeviceError::RecorderCapacity { capacity, most: CAPACITY_MAX });
        }
        // Fits, as `CAPACITY_MAX` does.
        let dwords = DwordLen((capacity * DWORDS_PER_DISPATCH + DWORDS_OF_START) as u32);
        Ok(Recorder { space, recorder: GraphRecorder::new(dwords)?, capacity, names: Vec::new() })
    }

    /// Launches `groups` workgroups of a kernel with the parameter block at `parameters`.
    pub fn dispatch(
        &mut self,
        kernel: &Kernel,
        parameters: GpuVa,
        groups: [u32; 3],
    ) -> Result<(), DeviceError> {
        let outcome = self.recorder.dispatch(&kernel.state, parameters, groups);
        self.check(outcome)?;
        if !self.names.iter().any(|name| name == kernel.name()) {
            self.names.push(kernel.name().into());
        }
        Ok(())
    }

    /// Launches `groups` workgroups of a kernel with explicit registers. `user_data` has a dword for each user SGPR, at
    /// most 16. It takes the room of two dispatches.
    pub fn launch(
        &mut self,
        kernel: &LaunchKernel,
        user_data: &[u32],
        groups: [u32; 3],
    ) -> Result<(), DeviceError> {
        if let Some(scratch) = &kernel.scratch {
            let outcome = self.recorder.scratch(&scratch.size, scratch.buffer.va);
            self.check(outcome)?;
        }
        // The packet writes one register at least; without user SGPRs no wave loads it.
        let user_data = if user_data.is_empty() { &[0] } else { user_data };
        let outcome = self.recorder.dispatch_with(&kernel.state, user_data, groups);
        self.check(outcome)?;
        if !self.names.contains(&kernel.name) {
            self.names.push(kernel.name.clone());
        }
        Ok(())
    }

    /// Length of what is recorded so far. The packets of the next launch begin at this distance from the graph's first
    /// one; every graph is one piece of memory.
    pub fn len(&self) -> DwordLen {
        self.recorder.len()
    }

    /// True if no dispatch is recorded.
    pub fn is_empty(&self) -> bool {
        self.recorder.is_empty()
    }

    /// Later dispatches start after all earlier ones have ended, and see what they wrote.
    pub fn barrier(&mut self) -> Result<(), DeviceError> {
        let outcome = self.recorder.barrier();
        self.check(outcome)
    }

    fn check(&self, outcome: Result<(), GraphError>) -> Result<(), DeviceError> {
        match outcome {
            Err(GraphError::Emit(EmitError::Full { .. })) => {
                Err(DeviceError::RecorderFull { capacity: self.capacity })
            }
            outcome => Ok(outcome?),
        }
    }

    /// The buffer's name in reports: its kernels, as many as fit on a line.
    fn label(&self) -> String {
        let told: Vec<&str> = self.names.iter().take(LABEL_NAMES_MAX).map(String::as_str).collect();
        let more = if self.names.len() > LABEL_NAMES_MAX { " and others" } else { "" };
        format!("graph of {}{more}", told.join(", "))
    }

    /// Puts the recorded packets into device memory.
    pub fn finish(self) -> Result<Graph, DeviceError> {
        if self.recorder.is_empty() {
            return Err(DeviceError::EmptyGraph);
        }
        let len = self.recorder.len().bytes();
        let label = self.label();
        let buffer = self.space.allocate(Heap::HostVisible, ByteLen(len.0), &label, true)?;
        self.space.registry.set_own(buffer.entry());
        let recorded = self.recorder.finish(buffer.view()?, buffer.va)?;
        self.space.flush_writes(&buffer);
        Ok(Graph { recorded: Some(recorded), buffer: Some(buffer) })
    }
}

impl Graph {
    /// Packets in it.
    pub fn packets(&self) -> u64 {
        self.recorded.as_ref().map_or(0, zrt_ring::Graph::packets)
    }

    /// The memory that holds it, for tests and listings.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }
}
