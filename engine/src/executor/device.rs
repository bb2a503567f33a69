//! Runs a plan on a device: uploads once, records once, and replays the recorded step with one submission per token.
//!
//! Contract: after [`DeviceExecutor::new`], [`Executor::step`] touches mapped memory only: it submits the recorded
//! indirect buffer, polls the fence and reads the choice. It allocates nothing, takes no lock and makes no system
//! call of its own. Validation ([`Executor::step_instruction`]) records one more graph per instruction on first use.

use super::lowering::{Addresses, Dispatch, lower};
use super::{Cache, Executor, ExecutorError, StepSnapshot, check_prompt};
use crate::graph::ValueId;
use crate::memory_plan::{AllocationId, MemoryPlan};
use crate::model::{Model, WeightId};
use crate::plan::{ExecutionPlan, Place};
use crate::rope_table::rope_table;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::time::Duration;
use zerocopy::IntoBytes;
use zrt_asm::params::{PARAMETER_BYTES_MAX, StepState};
use zrt_device::{Buffer, Counters, Device, Graph, Kernel};
use zrt_mem::ByteLen;

/// Called while weights are uploaded: bytes done, bytes in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// A model resident on a device, with one sequence.
pub struct DeviceExecutor {
    device: Device,
    plan: ExecutionPlan,
    memory: MemoryPlan,
    buffers: BTreeMap<AllocationId, Buffer>,
    kernels: BTreeMap<&'static str, Kernel>,
    dispatches: Vec<Dispatch>,
    step_graph: Graph,
    instruction_graphs: Vec<Option<Graph>>,
    step_deadline: Duration,
    position: u32,
}

/// Longest that one step may take before it counts as hung. Generous, because a virtual device on a loaded host is
/// slow; a fault is reported at once, not at the deadline.
const STEP_DEADLINE: Duration = Duration::from_secs(60);

impl DeviceExecutor {
    /// Makes the model resident: allocates by the memory plan, uploads weights, records the step.
    pub fn new(
        mut device: Device,
        model: &Model,
        context: u32,
        progress: Progress<'_>,
    ) -> Result<DeviceExecutor, ExecutorError> {
        let plan = ExecutionPlan::decode_step(model, context)?;
        let memory = MemoryPlan::new(model, &plan)?;
        let mut buffers = BTreeMap::new();
        for allocation in &memory.allocations {
            let label = allocation.id.name();
            buffers.insert(allocation.id, device.allocate(allocation.heap, allocation.len, &label)?);
        }
        upload_weights(&mut device, model, &memory, &buffers, progress)?;
        let config = &plan.config;
        let table = rope_table(context, config.rotary_dimensions, config.rope_base);
        device.upload(&buffers[&AllocationId::RopeTable], ByteLen(0), table.as_bytes())?;

        let bases = buffers.iter().map(|(id, buffer)| (*id, buffer.va)).collect();
        let addresses = Addresses { model, plan: &plan, memory: &memory, bases: &bases };
        let lowered = plan.instructions.iter().map(|one| lower(&addresses, &one.node.operation));
        let dispatches = lowered.collect::<Result<Vec<Dispatch>, ExecutorError>>()?;
        let mut kernels = BTreeMap::new();
        for (index, dispatch) in dispatches.iter().enumerate() {
            let offset = ByteLen((index * PARAMETER_BYTES_MAX) as u64);
            device.upload(&buffers[&AllocationId::Parameters], offset, &dispatch.parameters)?;
            if !kernels.contains_key(dispatch.kernel) {
                kernels.insert(dispatch.kernel, load_kernel(&mut device, dispatch.kernel)?);
            }
        }
        let mut executor = DeviceExecutor {
            step_graph: Graph::default(),
            instruction_graphs: plan.instructions.iter().map(|_| None).collect(),
            step_deadline: STEP_DEADLINE,
            position: 0,
            device,
            plan,
            memory,
            buffers,
            kernels,
            dispatches,
        };
        executor.step_graph = executor.record(0..executor.dispatches.len())?;
        Ok(executor)
    }

    fn record(&mut self, range: std::ops::Range<usize>) -> Result<Graph, ExecutorError> {
        let parameters = self.buffers[&AllocationId::Parameters].va;
        let mut recorder = self.device.recorder(range.len())?;
        for index in range.clone() {
            let dispatch = &self.dispatches[index];
            if self.plan.instructions[index].barrier_before && index != range.start {
                recorder.barrier()?;
            }
            let offset = ByteLen((index * PARAMETER_BYTES_MAX) as u64);
            let block =
                parameters.offset(offset).ok_or(ExecutorError::Overflow { what: "parameter blocks" })?;
            recorder.dispatch(&self.kernels[dispatch.kernel], block, dispatch.groups)?;
        }
        Ok(recorder.finish()?)
    }

    /// The device's own counts since it was opened.
    pub fn counters(&self) -> Result<Counters, ExecutorError> {
        Ok(self.device.counters()?)
    }

    /// The device.
    pub fn device(&mut self) -> &mut Device {
        &mut self.device
    }

    /// What was allocated.
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// The buffer of an allocation: for tests that look at or change device memory.
    pub fn buffer(&self, id: AllocationId) -> Option<&Buffer> {
        self.buffers.get(&id)
    }

    /// A kernel of this plan and the device that holds it: for tests that change code in device memory.
    pub fn kernel(&mut self, name: &str) -> Option<(&Kernel, &mut Device)> {
        Some((self.kernels.get(name)?, &mut self.device))
    }

    /// Kernels of this plan, by instruction.
    pub fn kernel_names(&self) -> impl Iterator<Item = &'static str> {
        self.dispatches.iter().map(|dispatch| dispatch.kernel)
    }

    /// Dispatches of one step.
    pub fn dispatch_count(&self) -> usize {
        self.dispatches.len()
    }

    fn run(&mut self, which: Option<usize>) -> Result<(), ExecutorError> {
        let graph = match which {
            None => &self.step_graph,
            Some(index) => match &self.instruction_graphs[index] {
                Some(graph) => graph,
                None => {
                    let graph = self.record(index..index + 1)?;
                    self.instruction_graphs[index].insert(graph)
                }
            },
        };
        let ticket = self.device.submit(graph)?;
        Ok(self.device.wait(ticket, self.step_deadline)?)
    }

    fn read(&mut self, id: AllocationId, offset: u64, elements: usize) -> Result<Vec<f32>, ExecutorError> {
        let mut values = vec![0f32; elements];
        self.device.download(&self.buffers[&id], ByteLen(offset), values.as_mut_bytes())?;
        Ok(values)
    }

    fn read_state_field(&mut self, field: usize) -> Result<u32, ExecutorError> {
        let mut bytes = [0; 4];
        let offset = ByteLen(self.memory.step.state.offset.0 + field as u64);
        self.device.download(&self.buffers[&AllocationId::Step], offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

fn upload_weights(
    device: &mut Device,
    model: &Model,
    memory: &MemoryPlan,
    buffers: &BTreeMap<AllocationId, Buffer>,
    progress: Progress<'_>,
) -> Result<(), ExecutorError> {
    let total = memory.weights.values().map(|(_, layout)| layout.len.0).sum();
    let mut done = 0;
    for (id, (offset, layout)) in &memory.weights {
        let packed = packed_weight(model, *id, layout)?;
        device.upload(&buffers[&AllocationId::Weights(id.class)], *offset, &packed)?;
        done += layout.len.0;
        progress(done, total);
    }
    Ok(())
}

fn packed_weight(
    model: &Model,
    id: WeightId,
    layout: &super::layout::WeightLayout,
) -> Result<Vec<u8>, ExecutorError> {
    let tensor = &model.weight(id).tensor;
    let file = model.gguf.read_tensor(tensor, 0..tensor.bytes);
    let file = file.map_err(|source| ExecutorError::Weight { weight: id, source })?;
    Ok(layout.pack(tensor.kind, &file))
}

fn load_kernel(device: &mut Device, name: &'static str) -> Result<Kernel, ExecutorError> {
    let blob = zrt_asm::blob(name)
        .ok_or_else(|| ExecutorError::Kernel { kernel: name, reason: "it is not among the blobs".into() })?;
    Ok(device.load_kernel(blob)?)
}

impl Executor for DeviceExecutor {
    fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
        check_prompt(&self.plan, prompt)?;
        let state = StepState { prompt_length: prompt.len() as u32, ..StepState::default() };
        let step = &self.buffers[&AllocationId::Step];
        self.device.upload(step, self.memory.step.tokens.offset, prompt.as_bytes())?;
        self.device.upload(step, self.memory.step.state.offset, state.as_bytes())?;
        self.position = 0;
        Ok(())
    }

    fn step(&mut self) -> Result<u32, ExecutorError> {
        if self.position >= self.plan.context {
            return Err(ExecutorError::Context {
                tokens: self.position as usize + 1,
                context: self.plan.context,
            });
        }
        self.run(None)?;
        self.position += 1;
        self.read_state_field(offset_of!(StepState, last_token))
    }

    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError> {
        self.run(Some(index))?;
        self.position += u32::from(index + 1 == self.dispatches.len());
        Ok(())
    }

    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError> {
        let elements = self.plan.value(id).elements as usize;
        match self.plan.place(id) {
            Place::Activations(region) => self.read(AllocationId::Activations, region.offset.0, elements),
            Place::Logits => self.read(AllocationId::Step, self.memory.step.logits.offset.0, elements),
        }
    }

    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
        let step = &self.buffers[&AllocationId::Step];
        Ok(self.device.download(step, self.memory.step.logits.offset, logits.as_mut_bytes())?)
    }

    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError> {
        let row = self.plan.config.kv_elements();
        let offset =
            self.plan.cache_layer_len().0 * u64::from(layer) + u64::from(position) * u64::from(row) * 4;
        let id = match cache {
            Cache::Key => AllocationId::KeyCache,
            Cache::Value => AllocationId::ValueCache,
        };
        self.read(id, offset, row as usize)
    }

    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
        Ok(StepSnapshot {
            position: self.read_state_field(offset_of!(StepState, position))?,
            last_token: self.read_state_field(offset_of!(StepState, last_token))?,
            step_count: self.read_state_field(offset_of!(StepState, step_count))?,
        })
    }

    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError> {
        let mut bytes = [0; 4];
        let offset = ByteLen(self.memory.step.tokens.offset.0 + u64::from(position) * 4);
        self.device.download(&self.buffers[&AllocationId::Step], offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}
