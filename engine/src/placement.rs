//! Which weights lie in the card's memory and which in the host's, from where kernels read them over the bus.
//!
//! Contract: a pure choice by size. Weights go to host memory in one order, as far as a limit asks, and results do not
//! depend on it. First an embedding that is not the output matrix too, of which a step reads only a row for each of its
//! own; then the products' matrices of whole layers, the last layer first; at the end the output matrix. Norms and
//! biases stay in VRAM. Cost of a choice: the memory plan of some ten placements.

use crate::executor::ExecutorError;
use crate::memory_plan::{Capacity, MemoryPlan};
use crate::model::{Model, WeightClass, WeightId};
use crate::plan::ExecutionPlan;
use zrt_mem::{ByteLen, Heap};

/// Which weights lie in host memory. By default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The embedding, where the file has an output matrix of its own.
    pub has_host_embedding: bool,
    /// The matrices of so many layers, counted from the last one.
    pub host_layers: u32,
    /// The output matrix, which is the embedding where the file has none of its own.
    pub has_host_output: bool,
}

impl Placement {
    /// The placement that keeps as much in VRAM as `limit` bytes have room for; without a limit, everything.
    ///
    /// # Errors
    /// [`ExecutorError::VramLimit`] if even the rest, with every matrix in host memory, needs more.
    pub fn within(
        limit: Option<ByteLen>,
        model: &Model,
        plan: &ExecutionPlan,
        capacity: &Capacity,
    ) -> Result<Placement, ExecutorError> {
        let Some(limit) = limit else { return Ok(Placement::default()) };
        let needed = |stage: u32| {
            let placement = Placement::stage(model, stage);
            let memory = MemoryPlan::new(model, plan, &Capacity { placement, ..*capacity })?;
            Ok::<ByteLen, ExecutorError>(memory.vram_len())
        };
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
        Ok(Placement::stage(model, high))
    }

    /// With every matrix in host memory.
    pub fn all_in_host(model: &Model) -> Placement {
        Placement::stage(model, Placement::last_stage(model))
    }

    /// Where a weight lies.
    pub fn heap(&self, model: &Model, id: WeightId) -> Heap {
        let is_in_host = if id.class.is_vector() {
            false
        } else if id.class.is_per_layer() {
            id.layer >= model.config.layers.saturating_sub(self.host_layers)
        } else if id == model.output() {
            self.has_host_output
        } else {
            self.has_host_embedding
        };
        if is_in_host { Heap::HostCached } else { Heap::DeviceLocal }
    }

    /// Stages of the order: nothing, the embedding if it is not the output matrix, each layer, the output matrix.
    fn stage(model: &Model, stage: u32) -> Placement {
        let before = Placement::before_layers(model);
        Placement {
            has_host_embedding: before > 0 && stage > 0,
            host_layers: stage.saturating_sub(before).min(model.config.layers),
            has_host_output: stage == Placement::last_stage(model),
        }
    }

    fn last_stage(model: &Model) -> u32 {
        Placement::before_layers(model) + model.config.layers + 1
    }

    fn before_layers(model: &Model) -> u32 {
        u32::from(model.output().class != WeightClass::Embedding)
    }
}
