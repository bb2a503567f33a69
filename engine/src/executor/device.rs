//! One sequence on a device, step by step: for validation, and wherever every position's logits are needed.
//!
//! Contract: the same resident model, tasks and kernels as a session; a step is one submission of the recorded step.
//! Before each step the host sets slot 0 so that the current token is the last known one; every step therefore has one
//! row and one output. [`Executor::step_instruction`] records one more graph per instruction on first use. Many users'
//! requests, sampling and batching belong to [`crate::session`].

use super::lowering::{Planning, task_count};
use super::resident::Resident;
use super::upload::{Loading, Progress};
use super::{Cache, Executor, StepSnapshot, check_prompt};
use crate::activations::Activations;
use crate::executor_error::ExecutorError;
use crate::graph::ValueId;
use crate::kv_format::KvFormat;
use crate::memory_plan::{AllocationId, Capacity, MemoryPlan};
use crate::model::Model;
use crate::placement::Placement;
use crate::plan::{ExecutionPlan, Place};
use std::ops::Range;
use std::time::Duration;
use zerocopy::IntoBytes;
use zrt_device::{Buffer, Counters, Device, Graph, Kernel};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::{PAGE_TOKENS, SlotPhase, SlotState};

/// A model resident on a device, with one sequence.
pub struct DeviceExecutor {
    resident: Resident,
    step_graph: Graph,
    instruction_graphs: Vec<Option<Graph>>,
    position: u32,
    prompt_length: u32,
    step_count: u32,
    choice: u32,
}

/// Longest time that one step may take before it counts as hung. Generous, because a virtual device on a loaded host is
/// slow; a fault is reported at once, not at the deadline.
const STEP_DEADLINE: Duration = Duration::from_secs(60);
/// Entries of the rings, which are unused here.
const RING_ENTRIES: u32 = 4;
/// The request that holds slot 0.
const SERIAL: u32 = 1;

impl DeviceExecutor {
    /// Makes the model resident in VRAM: allocates by the memory plan, uploads weights, records the step.
    pub fn new(
        device: Device,
        model: &Model,
        context: u32,
        activations: Activations,
        progress: Progress<'_>,
    ) -> Result<DeviceExecutor, ExecutorError> {
        DeviceExecutor::within(device, model, context, activations, (None, Loading::new(progress)))
    }

    /// The same, with at most `vram_max` of VRAM: what does not fit lies in host memory.
    ///
    /// # Errors
    /// [`ExecutorError::VramLimit`] if that is too little for what must lie in VRAM.
    pub fn within(
        device: Device,
        model: &Model,
        context: u32,
        activations: Activations,
        (vram_max, loading): (Option<ByteLen>, Loading<'_>),
    ) -> Result<DeviceExecutor, ExecutorError> {
        let plan = ExecutionPlan::step(model, context, 1, activations)?;
        let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32).within(vram_max, model, &plan)?;
        let planning = Planning {
            input_entries: RING_ENTRIES,
            output_entries: RING_ENTRIES,
            chunk_rows: 1,
            waits: false,
        };
        let mut resident = Resident::new(device, model, plan, capacity, &planning, loading)?;
        let tasks = resident.tasks.len();
        let groups_max = resident.device.info().compute_units;
        let step_graph = resident.record(0..tasks, groups_max)?;
        let instruction_graphs = resident.plan.instructions.iter().map(|_| None).collect();
        Ok(DeviceExecutor {
            resident,
            step_graph,
            instruction_graphs,
            position: 0,
            prompt_length: 0,
            step_count: 0,
            choice: 0,
        })
    }

    /// What one sequence needs, with all weights in VRAM.
    pub fn capacity(plan: &ExecutionPlan, kv_format: KvFormat) -> Capacity {
        Capacity {
            slots: 1,
            pages: plan.context.div_ceil(PAGE_TOKENS),
            kv_format,
            tasks: task_count(plan),
            input_entries: RING_ENTRIES,
            output_entries: RING_ENTRIES,
            output_heap: Heap::Host,
            placement: Placement::default(),
        }
    }

    /// The device's own counters since it was opened.
    pub fn counters(&self) -> Result<Counters, ExecutorError> {
        Ok(self.resident.device.counters()?)
    }

    /// The device.
    pub fn device(&mut self) -> &mut Device {
        &mut self.resident.device
    }

    /// What was allocated.
    pub fn memory(&self) -> &MemoryPlan {
        &self.resident.memory
    }

    /// The buffer of an allocation: for tests that read or change device memory.
    pub fn buffer(&self, id: AllocationId) -> &Buffer {
        self.resident.buffer(id)
    }

    /// Reads from an allocation: for tests.
    pub fn download(&mut self, id: AllocationId, offset: u64, bytes: &mut [u8]) -> Result<(), ExecutorError> {
        self.resident.download(id, offset, bytes)
    }

    /// A kernel of this plan and the device that holds it: for tests that change code in device memory.
    pub fn kernel(&mut self, name: &str) -> Option<(&Kernel, &mut Device)> {
        self.resident.kernel(name)
    }

    /// The kernel name of each task of this plan.
    pub fn kernel_names(&self) -> impl Iterator<Item = &'static str> {
        self.resident.tasks.iter().map(|task| task.kernel)
    }

    /// The kernel name and index of each instruction of the plan.
    pub fn kernels_of_instructions(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.resident.tasks.iter().filter_map(|task| Some((task.kernel, task.instruction?)))
    }

    /// Dispatches of one step.
    pub fn dispatch_count(&self) -> usize {
        self.resident.tasks.len()
    }

    /// The tasks of an instruction: its own, the BOUNDARY after it if any, and PLAN before the first instruction.
    fn tasks_of(&self, index: usize) -> Range<usize> {
        let tasks = &self.resident.tasks;
        let is = |wanted: usize| move |task: &super::lowering::Task| task.instruction == Some(wanted);
        let start = if index == 0 { Some(0) } else { tasks.iter().position(is(index)) };
        let end = tasks.iter().position(is(index + 1)).unwrap_or(tasks.len());
        start.unwrap_or(end)..end
    }

    fn run(&mut self, which: Option<usize>) -> Result<(), ExecutorError> {
        if let Some(index) = which
            && self.instruction_graphs[index].is_none()
        {
            let range = self.tasks_of(index);
            let groups_max = self.resident.device.info().compute_units;
            self.instruction_graphs[index] = Some(self.resident.record(range, groups_max)?);
        }
        let graph =
            which.and_then(|index| self.instruction_graphs[index].as_ref()).unwrap_or(&self.step_graph);
        let ticket = self.resident.device.submit(graph)?;
        Ok(self.resident.device.wait(ticket, STEP_DEADLINE)?)
    }

    /// Sets slot 0 so that the token at the current position is the last known one.
    fn set_slot(&mut self) -> Result<(), ExecutorError> {
        let state = SlotState {
            phase: SlotPhase::Active as u32,
            serial: SERIAL,
            position: self.position,
            known: self.position + 1,
            limit: u32::MAX,
            pages: self.resident.memory.pages_per_slot,
            ..SlotState::default()
        };
        self.resident.upload(AllocationId::Slots, 0, state.as_bytes())
    }

    /// Fetches the step's choice and advances the position.
    fn finish_step(&mut self) -> Result<(), ExecutorError> {
        let mut bytes = [0; 4];
        let offset = std::mem::offset_of!(SlotState, sampled) as u64;
        self.resident.download(AllocationId::Slots, offset, &mut bytes)?;
        self.choice = u32::from_le_bytes(bytes);
        self.position += 1;
        self.step_count += 1;
        if self.position >= self.prompt_length && self.position < self.resident.plan.context {
            let offset = u64::from(self.position) * 4;
            self.resident.upload(AllocationId::Tokens, offset, &bytes)?;
        }
        Ok(())
    }

    fn check_position(&self) -> Result<(), ExecutorError> {
        let context = self.resident.plan.context;
        if self.position < context {
            return Ok(());
        }
        Err(ExecutorError::Context { tokens: self.position as usize + 1, context })
    }

    fn read(&mut self, id: AllocationId, offset: u64, elements: usize) -> Result<Vec<f32>, ExecutorError> {
        let mut values = vec![0f32; elements];
        self.resident.download(id, offset, values.as_mut_bytes())?;
        Ok(values)
    }
}

impl Executor for DeviceExecutor {
    fn plan(&self) -> &ExecutionPlan {
        &self.resident.plan
    }

    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
        check_prompt(&self.resident.plan, prompt)?;
        self.resident.upload(AllocationId::Tokens, 0, prompt.as_bytes())?;
        let pages: Vec<u32> = (0..self.resident.memory.pages_per_slot).collect();
        self.resident.upload(AllocationId::Pages, 0, pages.as_bytes())?;
        self.position = 0;
        self.prompt_length = prompt.len() as u32;
        self.step_count = 0;
        Ok(())
    }

    fn step(&mut self) -> Result<u32, ExecutorError> {
        self.check_position()?;
        self.set_slot()?;
        self.run(None)?;
        self.finish_step()?;
        Ok(self.choice)
    }

    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError> {
        self.check_position()?;
        if index == 0 {
            self.set_slot()?;
        }
        self.run(Some(index))?;
        if index + 1 == self.resident.plan.instructions.len() {
            self.finish_step()?;
        }
        Ok(())
    }

    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError> {
        let elements = self.resident.plan.value(id).elements as usize;
        match self.resident.plan.place(id) {
            Place::Activations(region) => self.read(AllocationId::Activations, region.offset.0, elements),
            Place::Logits => self.read(AllocationId::Logits, 0, elements),
        }
    }

    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
        self.resident.download(AllocationId::Logits, 0, logits.as_mut_bytes())
    }

    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError> {
        // Page n of the sequence is page n of the pool, and the format is F32.
        let row = u64::from(self.resident.plan.config.kv_elements());
        let (page, token) = (u64::from(position / PAGE_TOKENS), u64::from(position % PAGE_TOKENS));
        let side = 2 * u64::from(layer) + u64::from(cache == Cache::Value);
        let offset =
            page * self.resident.memory.page_bytes + (side * u64::from(PAGE_TOKENS) + token) * row * 4;
        self.read(AllocationId::KvPool, offset, row as usize)
    }

    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
        Ok(StepSnapshot { position: self.position, last_token: self.choice, step_count: self.step_count })
    }

    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError> {
        let mut bytes = [0; 4];
        self.resident.download(AllocationId::Tokens, u64::from(position) * 4, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}
