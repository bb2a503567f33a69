//! What a session allocates, decided before anything is allocated: heaps, allocations, regions.
//!
//! Contract: made from the model's metadata and the execution plan alone; nothing is added while a session runs.
//! Weights of one class lie in one allocation, layer after layer. Offsets and lengths are bytes.

use crate::executor::ExecutorError;
use crate::executor::layout::WeightLayout;
use crate::model::{Model, WeightClass, WeightId};
use crate::plan::ExecutionPlan;
use std::collections::BTreeMap;
use zrt_asm::params::PARAMETER_BYTES_MAX;
use zrt_mem::heap::{Region, RegionPlanner};
use zrt_mem::{ByteLen, Heap};

/// An allocation's role; the key by which executors find its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationId {
    /// All weights of a class.
    Weights(WeightClass),
    /// The rotary table.
    RopeTable,
    /// Intermediate values of a step.
    Activations,
    /// Keys of all layers.
    KeyCache,
    /// Values of all layers.
    ValueCache,
    /// One parameter block per instruction.
    Parameters,
    /// Step state, tokens and logits: what the host reads and writes.
    Step,
}

/// One allocation with its named parts.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Role.
    pub id: AllocationId,
    /// Where it lives.
    pub heap: Heap,
    /// Length of the whole.
    pub len: ByteLen,
    /// Parts in ascending order.
    pub regions: Vec<(String, Region)>,
}

/// The parts of [`AllocationId::Step`].
#[derive(Clone, Copy, Debug)]
pub struct StepRegions {
    /// [`StepState`].
    pub state: Region,
    /// u32 per position.
    pub tokens: Region,
    /// f32 per vocabulary entry.
    pub logits: Region,
}

/// Everything that a session allocates.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// In order of allocation.
    pub allocations: Vec<Allocation>,
    /// Where each weight lies in its class's allocation.
    pub weights: BTreeMap<WeightId, (ByteLen, WeightLayout)>,
    /// The parts of the step allocation.
    pub step: StepRegions,
}

impl AllocationId {
    /// Its name in plans and reports.
    pub fn name(self) -> String {
        match self {
            AllocationId::Weights(class) => format!("weights.{}", class.name()),
            AllocationId::RopeTable => "rope_table".into(),
            AllocationId::Activations => "activations".into(),
            AllocationId::KeyCache => "key_cache".into(),
            AllocationId::ValueCache => "value_cache".into(),
            AllocationId::Parameters => "parameters".into(),
            AllocationId::Step => "step".into(),
        }
    }
}

impl MemoryPlan {
    /// Plans the memory of a model and its plan.
    pub fn new(model: &Model, plan: &ExecutionPlan) -> Result<MemoryPlan, ExecutorError> {
        let mut allocations = Vec::new();
        let mut weights = BTreeMap::new();
        for class in WeightClass::ALL {
            if let Some(allocation) = plan_class(model, class, &mut weights)? {
                allocations.push(allocation);
            }
        }
        let config = &plan.config;
        let pairs = u64::from(plan.context) * u64::from(config.rotary_dimensions / 2);
        allocations.push(whole(AllocationId::RopeTable, ByteLen(pairs * 8)));
        allocations.push(whole(AllocationId::Activations, plan.activations_len()));
        for id in [AllocationId::KeyCache, AllocationId::ValueCache] {
            let layers = (0..config.layers).map(|layer| {
                let offset = ByteLen(plan.cache_layer_len().0 * u64::from(layer));
                (format!("layer {layer}"), Region { offset, len: plan.cache_layer_len() })
            });
            allocations.push(Allocation {
                id,
                heap: Heap::DeviceLocal,
                len: plan.cache_len(),
                regions: layers.collect(),
            });
        }
        let blocks = plan.instructions.len() * PARAMETER_BYTES_MAX;
        allocations.push(whole(AllocationId::Parameters, ByteLen(blocks as u64)));
        let (step, regions) = plan_step(plan)?;
        allocations.push(step);
        Ok(MemoryPlan { allocations, weights, step: regions })
    }

    /// Bytes in one heap.
    pub fn heap_len(&self, heap: Heap) -> ByteLen {
        ByteLen(self.allocations.iter().filter(|one| one.heap == heap).map(|one| one.len.0).sum())
    }
}

fn whole(id: AllocationId, len: ByteLen) -> Allocation {
    let regions = vec![(id.name(), Region { offset: ByteLen(0), len })];
    Allocation { id, heap: Heap::DeviceLocal, len, regions }
}

fn plan_class(
    model: &Model,
    class: WeightClass,
    weights: &mut BTreeMap<WeightId, (ByteLen, WeightLayout)>,
) -> Result<Option<Allocation>, ExecutorError> {
    let mut planner = RegionPlanner::new();
    let mut regions = Vec::new();
    for (id, weight) in model.weights().filter(|(id, _)| id.class == class) {
        let elements = u64::from(weight.rows) * u64::from(weight.columns);
        let layout =
            WeightLayout::new(weight.tensor.kind, elements).ok_or_else(|| ExecutorError::NoAdapter {
                executor: "device",
                operation: "weight layout",
                detail: weight.tensor.kind.to_string(),
            })?;
        let region = planner.push(layout.len).ok_or(ExecutorError::Overflow { what: "weights" })?;
        weights.insert(id, (region.offset, layout));
        regions.push((id.tensor_name(), region));
    }
    let len = planner.len().ok_or(ExecutorError::Overflow { what: "weights" })?;
    let id = AllocationId::Weights(class);
    Ok((!regions.is_empty()).then_some(Allocation { id, heap: Heap::DeviceLocal, len, regions }))
}

fn plan_step(plan: &ExecutionPlan) -> Result<(Allocation, StepRegions), ExecutorError> {
    let mut planner = RegionPlanner::new();
    let mut push =
        |len: u64| planner.push(ByteLen(len)).ok_or(ExecutorError::Overflow { what: "step buffers" });
    let state = push(64)?;
    let tokens = push(u64::from(plan.context) * 4)?;
    let logits = push(u64::from(plan.config.vocabulary) * 4)?;
    let regions = vec![("state".into(), state), ("tokens".into(), tokens), ("logits".into(), logits)];
    let len = planner.len().ok_or(ExecutorError::Overflow { what: "step buffers" })?;
    let allocation = Allocation { id: AllocationId::Step, heap: Heap::HostVisible, len, regions };
    Ok((allocation, StepRegions { state, tokens, logits }))
}
