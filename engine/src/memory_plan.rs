//! What a session allocates, decided before anything is allocated: heaps, allocations, regions.
//!
//! Contract: made from the model's metadata and the execution plan alone; nothing is added while a session runs.
//! Weights of one class lie in one allocation of each memory that they lie in, layer after layer. Offsets and lengths
//! are bytes.

use crate::executor_error::ExecutorError;
use crate::kv_format::KvFormat;
use crate::layout::{FloatOrder, WeightLayout};
use crate::model::Model;
use crate::placement::Placement;
use crate::plan::ExecutionPlan;
use crate::rope_table::rope_table_bytes;
use crate::weights::{WeightClass, WeightId};
use std::collections::BTreeMap;
use zrt_mem::heap::{REGION_ALIGNMENT, Region, RegionPlanner};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::params::PARAMETER_BYTES_MAX;
use zrt_protocol::{
    self as protocol, CommandLine, EventLine, Extras, PAGE_TOKENS, SLOTS_MAX, STOP_TOKENS_MAX, SlotState,
    TopTokens,
};
use zrt_ring::token_ring::LINE_BYTES;

/// Size of the cache line in which the host counts the events that it has consumed.
const CONSUMED_BYTES: u64 = LINE_BYTES as u64;

/// An allocation's role; the key by which executors find its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationId {
    /// Weights of a class in VRAM.
    Weights(WeightClass),
    /// Weights of a class in host memory.
    HostWeights(WeightClass),
    /// The rotary tables, one after the other.
    RopeTable,
    /// Intermediate values of a step.
    Activations,
    /// Pages of keys and values.
    KvPool,
    /// One parameter block per task.
    Parameters,
    /// Working data of the current step.
    Step,
    /// Logits of each output row.
    Logits,
    /// The slot table, which the device keeps.
    Slots,
    /// What the host tells the device about each slot.
    Control,
    /// Prompt and choices of each slot.
    Tokens,
    /// Stop tokens of each slot.
    Stops,
    /// Page numbers of each slot, as the host wrote them.
    HostPages,
    /// Page numbers of each slot, the device's copy.
    Pages,
    /// PLAN's state between steps.
    PlanState,
    /// Commands to the device.
    InputRing,
    /// Events from the device.
    OutputRing,
    /// How many events the host has consumed.
    Consumed,
    /// How far the device has come.
    Status,
    /// Logits of each output row after penalties, biases and typical-p.
    AdjustedLogits,
    /// What few requests ask of SAMPLE, of each slot.
    Extras,
    /// The most likely tokens with each slot's choice.
    Tops,
    /// The same beside each entry of the output ring.
    OutputTops,
}

/// One allocation with its named parts.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Role.
    pub id: AllocationId,
    /// Where it lives.
    pub heap: Heap,
    /// Total length.
    pub len: ByteLen,
    /// Parts in ascending order.
    pub regions: Vec<(String, Region)>,
}

/// What a session is sized for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Slots, 1..=[`SLOTS_MAX`].
    pub slots: u32,
    /// Pages of the cache.
    pub pages: u32,
    /// How keys and values are stored.
    pub kv_format: KvFormat,
    /// Maximum number of tasks of a step.
    pub tasks: u32,
    /// Entries of the input ring.
    pub input_entries: u32,
    /// Entries of the output ring.
    pub output_entries: u32,
    /// Where the output ring lies.
    pub output_heap: Heap,
    /// Which weights lie in host memory.
    pub placement: Placement,
}

/// Where a weight lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightPlace {
    /// The allocation.
    pub allocation: AllocationId,
    /// The weight's first byte in it.
    pub offset: ByteLen,
    /// Its planes.
    pub layout: WeightLayout,
}

/// Weight bytes that a step reads, by the memory that they lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepWeightBytes {
    /// In VRAM.
    pub vram: u64,
    /// In host memory, over the bus.
    pub host: u64,
}

impl StepWeightBytes {
    /// In both.
    pub fn total(&self) -> u64 {
        self.vram + self.host
    }
}

/// Everything that a session allocates.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// In order of allocation.
    pub allocations: Vec<Allocation>,
    /// Where each weight lies.
    pub weights: BTreeMap<WeightId, WeightPlace>,
    /// Entries of a slot in the page tables.
    pub pages_per_slot: u32,
    /// Bytes of a page: [`PAGE_TOKENS`] tokens of all layers.
    pub page_bytes: u64,
}

impl AllocationId {
    /// Its name in plans and reports.
    pub fn name(self) -> String {
        match self {
            AllocationId::Weights(class) if class.is_bias() => format!("weights.{}.bias", class.name()),
            AllocationId::Weights(class) => format!("weights.{}", class.name()),
            AllocationId::HostWeights(class) => format!("host_weights.{}", class.name()),
            AllocationId::RopeTable => "rope_table".into(),
            AllocationId::Activations => "activations".into(),
            AllocationId::KvPool => "kv_pool".into(),
            AllocationId::Parameters => "parameters".into(),
            AllocationId::Step => "step".into(),
            AllocationId::Logits => "logits".into(),
            AllocationId::Slots => "slots".into(),
            AllocationId::Control => "control".into(),
            AllocationId::Tokens => "tokens".into(),
            AllocationId::Stops => "stops".into(),
            AllocationId::HostPages => "host_pages".into(),
            AllocationId::Pages => "pages".into(),
            AllocationId::PlanState => "plan_state".into(),
            AllocationId::InputRing => "input_ring".into(),
            AllocationId::OutputRing => "output_ring".into(),
            AllocationId::Consumed => "consumed".into(),
            AllocationId::Status => "status".into(),
            AllocationId::AdjustedLogits => "adjusted_logits".into(),
            AllocationId::Extras => "extras".into(),
            AllocationId::Tops => "tops".into(),
            AllocationId::OutputTops => "output_tops".into(),
        }
    }
}

impl Capacity {
    /// The same with the placement that keeps as much in VRAM as `limit` bytes have room for; without a limit,
    /// everything. Costs the memory plan of some ten placements.
    ///
    /// # Errors
    /// [`ExecutorError::VramLimit`] if even the rest, with every matrix in host memory, needs more.
    pub fn within(
        self,
        limit: Option<ByteLen>,
        model: &Model,
        plan: &ExecutionPlan,
    ) -> Result<Capacity, ExecutorError> {
        let at = |stage: u32| Capacity { placement: Placement::stage(model, stage), ..self };
        let Some(limit) = limit else { return Ok(Capacity { placement: Placement::default(), ..self }) };
        let needed = |stage: u32| MemoryPlan::new(model, plan, &at(stage)).map(|memory| memory.vram_len());
        // A later stage never needs more: the lowest one that fits lies in `low..=high`.
        let (mut low, mut high) = (0, Placement::last_stage(model));
        let least = needed(high)?;
        if least > limit {
            return Err(ExecutorError::VramLimit { limit, whole: needed(0)?, least });
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if needed(middle)? <= limit {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(at(high))
    }
}

impl MemoryPlan {
    /// Plans the memory of a model, its plan, and a session over it.
    pub fn new(
        model: &Model,
        plan: &ExecutionPlan,
        capacity: &Capacity,
    ) -> Result<MemoryPlan, ExecutorError> {
        if !(1..=SLOTS_MAX as u32).contains(&capacity.slots) {
            return Err(ExecutorError::Overflow { what: "slots" });
        }
        let mut allocations = Vec::new();
        let mut weights = BTreeMap::new();
        let placement = &capacity.placement;
        for heap in [Heap::DeviceLocal, Heap::HostCached] {
            for class in WeightClass::ALL {
                allocations.extend(plan_class(model, (class, heap), placement, &mut weights)?);
            }
        }
        let config = &plan.config;
        let tables: u64 = config.ropes().map(|rope| rope_table_bytes(plan.context, rope)).sum();
        let page_bytes = capacity.kv_format.page_bytes(config.layers, config.kv_elements());
        let pages_per_slot = plan.context.div_ceil(PAGE_TOKENS);
        let pool_bytes = page_bytes.checked_mul(capacity.pages.into());
        let pool_bytes = pool_bytes.ok_or(ExecutorError::Overflow { what: "pages of the cache" })?;
        let (slots, all_slots) = (u64::from(capacity.slots), SLOTS_MAX as u64);
        let logits = u64::from(plan.config.vocabulary) * 4;
        let logits = logits.next_multiple_of(REGION_ALIGNMENT) * slots;
        use AllocationId::{
            Activations, AdjustedLogits, Consumed, Control, HostPages, InputRing, KvPool, Logits, OutputRing,
            OutputTops, Pages, Parameters, PlanState, RopeTable, Slots, Status, Step, Stops, Tokens, Tops,
        };
        let wholes = [
            (RopeTable, Heap::DeviceLocal, tables),
            (Activations, Heap::DeviceLocal, plan.activations_len().0),
            (KvPool, Heap::DeviceLocal, pool_bytes),
            (Parameters, Heap::DeviceLocal, u64::from(capacity.tasks) * PARAMETER_BYTES_MAX as u64),
            (Step, Heap::DeviceLocal, size_of::<protocol::Step>() as u64),
            (Logits, Heap::DeviceLocal, logits),
            (Slots, Heap::DeviceLocal, all_slots * size_of::<SlotState>() as u64),
            (Pages, Heap::DeviceLocal, slots * u64::from(pages_per_slot) * 4),
            (PlanState, Heap::DeviceLocal, size_of::<protocol::PlanState>() as u64),
            (Control, Heap::HostShared, all_slots * size_of::<protocol::Control>() as u64),
            (Tokens, Heap::HostShared, slots * u64::from(plan.context) * 4),
            (Stops, Heap::HostShared, all_slots * STOP_TOKENS_MAX as u64 * 4),
            (HostPages, Heap::HostShared, slots * u64::from(pages_per_slot) * 4),
            (
                InputRing,
                Heap::HostShared,
                u64::from(capacity.input_entries) * size_of::<CommandLine>() as u64,
            ),
            (
                OutputRing,
                capacity.output_heap,
                u64::from(capacity.output_entries) * size_of::<EventLine>() as u64,
            ),
            (Consumed, Heap::HostShared, CONSUMED_BYTES),
            (Status, Heap::Host, size_of::<protocol::Status>() as u64),
            (AdjustedLogits, Heap::DeviceLocal, logits),
            (AllocationId::Extras, Heap::HostShared, all_slots * size_of::<Extras>() as u64),
            (Tops, Heap::DeviceLocal, all_slots * size_of::<TopTokens>() as u64),
            (
                OutputTops,
                capacity.output_heap,
                u64::from(capacity.output_entries) * size_of::<TopTokens>() as u64,
            ),
        ];
        allocations.extend(wholes.map(|(id, heap, len)| whole(id, heap, ByteLen(len))));
        Ok(MemoryPlan { allocations, weights, pages_per_slot, page_bytes })
    }

    /// Bytes of VRAM, where the BAR shows all of it; a smaller one has what the host shares in system memory.
    pub fn vram_len(&self) -> ByteLen {
        ByteLen(Heap::ALL.into_iter().filter(|heap| heap.is_vram()).map(|heap| self.heap_len(heap).0).sum())
    }

    /// Bytes in one heap.
    pub fn heap_len(&self, heap: Heap) -> ByteLen {
        ByteLen(self.allocations.iter().filter(|one| one.heap == heap).map(|one| one.len.0).sum())
    }
}

/// Weight bytes that one decode step reads, as they lie on the device: every matrix once, but only one row of an untied
/// embedding.
pub fn step_weight_bytes(model: &Model) -> u64 {
    step_weight_bytes_of(model, &Placement::default()).vram
}

/// The same by the memory that they are read from.
pub fn step_weight_bytes_of(model: &Model, placement: &Placement) -> StepWeightBytes {
    let output = model.output();
    let embedding = WeightId::new(WeightClass::Embedding, 0);
    let bytes = |id: &WeightId| {
        let weight = model.weight(*id);
        let (rows, columns) = (u64::from(weight.rows), u64::from(weight.columns));
        let whole =
            WeightLayout::new(weight.tensor.kind, rows, columns).map_or(0, |layout| layout.used_bytes());
        let row = whole / rows;
        match *id == embedding {
            true if *id != output => row,
            true => whole + row,
            false => whole,
        }
    };
    let mut read = StepWeightBytes::default();
    for (id, _) in model.weights() {
        match placement.heap(model, id) {
            Heap::HostCached => read.host += bytes(&id),
            _ => read.vram += bytes(&id),
        }
    }
    read
}

fn whole(id: AllocationId, heap: Heap, len: ByteLen) -> Allocation {
    let regions = vec![(id.name(), Region { offset: ByteLen(0), len })];
    Allocation { id, heap, len, regions }
}

fn plan_class(
    model: &Model,
    (class, heap): (WeightClass, Heap),
    placement: &Placement,
    weights: &mut BTreeMap<WeightId, WeightPlace>,
) -> Result<Option<Allocation>, ExecutorError> {
    let allocation = match heap {
        Heap::HostCached => AllocationId::HostWeights(class),
        _ => AllocationId::Weights(class),
    };
    let mut planner = RegionPlanner::new();
    let mut regions = Vec::new();
    let here = |id: WeightId| id.class == class && placement.heap(model, id) == heap;
    for (id, weight) in model.weights().filter(|(id, _)| here(*id)) {
        let (rows, columns) = (weight.rows.into(), weight.columns.into());
        let layout = WeightLayout::in_order(weight.tensor.kind, rows, columns, FloatOrder::of(class));
        let layout = layout.ok_or_else(|| ExecutorError::NoAdapter {
            executor: "device",
            operation: "weight layout",
            detail: weight.tensor.kind.to_string(),
        })?;
        let region = planner.push(layout.len).ok_or(ExecutorError::Overflow { what: "weights" })?;
        weights.insert(id, WeightPlace { allocation, offset: region.offset, layout });
        regions.push((id.tensor_name(), region));
    }
    let len = planner.len().ok_or(ExecutorError::Overflow { what: "weights" })?;
    Ok((!regions.is_empty()).then_some(Allocation { id: allocation, heap, len, regions }))
}
