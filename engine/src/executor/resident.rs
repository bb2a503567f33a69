//! A model on a device: memory by the plan, weights uploaded, tasks with their parameter blocks, kernels loaded.
//!
//! Contract: [`Resident::new`] allocates and uploads everything; [`Resident::record`] allocates an indirect buffer. All
//! drivers of steps share this; it drives none itself.

use super::lowering::{Addresses, Planning, Task, lower};
use super::upload::{Loading, upload_weights};
use crate::executor_error::{ExecutorError, OutOfMemory};
use crate::memory_plan::{AllocationId, Capacity, MemoryPlan};
use crate::model::Model;
use crate::plan::ExecutionPlan;
use crate::rope_table::rope_tables;
use std::collections::BTreeMap;
use std::ops::Range;
use zerocopy::IntoBytes;
use zrt_device::{Buffer, Device, DeviceError, Graph, Kernel};
use zrt_kmd::Errno;
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::PlanState;
use zrt_protocol::params::PARAMETER_BYTES_MAX;

/// A model resident on a device.
pub struct Resident {
    /// The device.
    pub device: Device,
    /// The plan of a step.
    pub plan: ExecutionPlan,
    /// What was allocated.
    pub memory: MemoryPlan,
    /// What it was allocated for.
    pub capacity: Capacity,
    /// The tasks of a step, in order.
    pub tasks: Vec<Task>,
    buffers: BTreeMap<AllocationId, Buffer>,
    kernels: BTreeMap<&'static str, Kernel>,
}

impl Resident {
    /// Allocates by the memory plan, uploads weights and parameter blocks, loads kernels.
    ///
    /// # Errors
    /// [`ExecutorError::OutOfMemory`] names the first allocation for which there is no room.
    pub fn new(
        mut device: Device,
        model: &Model,
        plan: ExecutionPlan,
        capacity: Capacity,
        planning: &Planning,
        loading: Loading<'_>,
    ) -> Result<Resident, ExecutorError> {
        let memory = MemoryPlan::new(model, &plan, &capacity)?;
        let buffers = allocate(&mut device, &memory)?;
        upload_weights(&mut device, model, &memory, &buffers, loading)?;
        let tables = rope_tables(model, plan.context)?;
        device.upload(&buffers[&AllocationId::RopeTable], ByteLen(0), tables.as_bytes())?;

        let bases = buffers.iter().map(|(id, buffer)| (*id, buffer.va)).collect();
        let kv_format = capacity.kv_format;
        let addresses = Addresses { model, plan: &plan, memory: &memory, bases: &bases, kv_format };
        let tasks = lower(&addresses, planning)?;
        let mut kernels = BTreeMap::new();
        for (index, task) in tasks.iter().enumerate() {
            let parameters = &buffers[&AllocationId::Parameters];
            device.upload(parameters, parameters_offset(index), &task.parameters)?;
            if !kernels.contains_key(task.kernel) {
                kernels.insert(task.kernel, load_kernel(&mut device, task.kernel)?);
            }
        }
        let mut resident = Resident { device, plan, memory, capacity, tasks, buffers, kernels };
        resident.reset()?;
        Ok(resident)
    }

    /// Resets everything that steps change: no request, no step, empty rings. The caches keep their contents, which are
    /// never read before they are written again.
    pub fn reset(&mut self) -> Result<(), ExecutorError> {
        use AllocationId::{Consumed, Control, HostPages, InputRing, OutputRing, OutputTops, Pages, Slots};
        use AllocationId::{Extras, Status, Step, Tops};
        let rings = [InputRing, OutputRing, OutputTops, Consumed];
        for id in [Step, Slots, Control, Pages, HostPages, Extras, Tops, Status].into_iter().chain(rings) {
            let zeros = vec![0u8; self.buffers[&id].len.0 as usize];
            self.upload(id, 0, &zeros)?;
        }
        let start = PlanState { input_tag: 1, output_tag: 1, ..PlanState::default() };
        self.upload(AllocationId::PlanState, 0, start.as_bytes())
    }

    /// Records tasks into an indirect buffer, each with at most `groups_max` workgroups.
    pub fn record(&mut self, range: Range<usize>, groups_max: u32) -> Result<Graph, ExecutorError> {
        let parameters = self.buffers[&AllocationId::Parameters].va;
        let mut recorder = self.device.recorder(range.len())?;
        for index in range.clone() {
            let task = &self.tasks[index];
            // Earlier work may still be running, whatever it is.
            let waits = if index == range.start { index > 0 } else { task.barrier_before };
            if waits {
                recorder.barrier()?;
            }
            let block = parameters.offset(parameters_offset(index));
            let block = block.ok_or(ExecutorError::Overflow { what: "parameter blocks" })?;
            let groups = task.units_max.clamp(1, groups_max);
            recorder.dispatch(&self.kernels[task.kernel], block, [groups, 1, 1])?;
        }
        Ok(recorder.finish()?)
    }

    /// The buffer of an allocation.
    pub fn buffer(&self, id: AllocationId) -> &Buffer {
        &self.buffers[&id]
    }

    /// A loaded kernel and the device that holds it: for tests that change code in device memory.
    pub fn kernel(&mut self, name: &str) -> Option<(&Kernel, &mut Device)> {
        Some((self.kernels.get(name)?, &mut self.device))
    }

    /// Writes to an allocation.
    pub fn upload(&mut self, id: AllocationId, offset: u64, bytes: &[u8]) -> Result<(), ExecutorError> {
        Ok(self.device.upload(&self.buffers[&id], ByteLen(offset), bytes)?)
    }

    /// Reads from an allocation.
    pub fn download(&mut self, id: AllocationId, offset: u64, bytes: &mut [u8]) -> Result<(), ExecutorError> {
        Ok(self.device.download(&self.buffers[&id], ByteLen(offset), bytes)?)
    }
}

fn parameters_offset(task: usize) -> ByteLen {
    ByteLen((task * PARAMETER_BYTES_MAX) as u64)
}

/// Allocates what the plan says.
fn allocate(
    device: &mut Device,
    memory: &MemoryPlan,
) -> Result<BTreeMap<AllocationId, Buffer>, ExecutorError> {
    let available = device.available_vram();
    let mut buffers = BTreeMap::new();
    for allocation in &memory.allocations {
        let (heap, len, label) = (allocation.heap, allocation.len, allocation.id.name());
        let buffer = device.allocate(heap, len, &label).map_err(|source| match source {
            DeviceError::Kmd(ref error) if error.errno() == Some(Errno::ENOMEM) => {
                let is_vram = device.is_vram(heap);
                let heaps = Heap::ALL.into_iter().filter(|heap| device.is_vram(*heap) == is_vram);
                let planned = ByteLen(heaps.map(|heap| memory.heap_len(heap).0).sum());
                let allocation = label.clone();
                let found = OutOfMemory { allocation, len, heap, is_vram, planned, available, source };
                ExecutorError::OutOfMemory(Box::new(found))
            }
            source => ExecutorError::Device(source),
        })?;
        buffers.insert(allocation.id, buffer);
    }
    Ok(buffers)
}

fn load_kernel(device: &mut Device, name: &'static str) -> Result<Kernel, ExecutorError> {
    let blob = zrt_asm::blob(name)
        .ok_or_else(|| ExecutorError::Kernel { kernel: name, reason: "it is not among the blobs".into() })?;
    Ok(device.load_kernel(blob)?)
}
