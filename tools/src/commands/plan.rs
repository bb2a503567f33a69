//! `zrt plan`: what a session would allocate and launch, without opening a device.

use super::{write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::table::{Alignment, Table};
use crate::units;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use zrt_engine::activations::Activations;
use zrt_engine::executor::ExecutorError;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::MemoryPlan;
use zrt_engine::plan::ExecutionPlan;
use zrt_mem::Heap;

/// Shows what a session allocates and launches, without opening a device
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Context length in tokens [default: the length that the model was trained for]
    #[arg(short, long)]
    pub context: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Write JSON, with every region of every allocation and every instruction
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Plan {
    model_filename: String,
    model_type: String,
    context: u32,
    activations: &'static str,
    weight_bytes: u64,
    step_weight_bytes: u64,
    heaps: Vec<HeapSize>,
    allocations: Vec<AllocationEntry>,
    instructions: Vec<InstructionEntry>,
    barriers: usize,
}

#[derive(Debug, Serialize)]
struct HeapSize {
    heap: &'static str,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct AllocationEntry {
    name: String,
    heap: &'static str,
    bytes: u64,
    regions: Vec<RegionEntry>,
}

#[derive(Debug, Serialize)]
struct RegionEntry {
    name: String,
    offset: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct InstructionEntry {
    operation: String,
    layer: Option<u32>,
    barrier_before: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let trained = loaded.model.config.context;
    let context = arguments.context.unwrap_or(trained);
    if context == 0 {
        return Err(ToolError::Option { option: "--context", value: "0".into(), wanted: "at least 1" });
    }
    if context > trained {
        return Err(ToolError::Context { needed: u64::from(context), context: trained });
    }
    let plan = describe(&loaded, context, arguments.activations.activations)?;
    if arguments.json {
        write_document(&plan)?;
    } else {
        write_text(&text(&plan))?;
    }
    Ok(true)
}

fn describe(loaded: &LoadedModel, context: u32, activations: Activations) -> Result<Plan, ToolError> {
    let execution =
        ExecutionPlan::step(&loaded.model, context, 1, activations).map_err(ExecutorError::from)?;
    let memory =
        MemoryPlan::new(&loaded.model, &execution, &DeviceExecutor::capacity(&execution, KvFormat::F32))?;
    let region = |(name, region): &(String, zrt_mem::heap::Region)| RegionEntry {
        name: name.clone(),
        offset: region.offset.0,
        bytes: region.len.0,
    };
    let allocations = memory.allocations.iter().map(|allocation| AllocationEntry {
        name: allocation.id.name(),
        heap: allocation.heap.name(),
        bytes: allocation.len.0,
        regions: allocation.regions.iter().map(region).collect(),
    });
    let instructions = execution.instructions.iter().map(|instruction| InstructionEntry {
        operation: instruction.node.to_string(),
        layer: instruction.node.layer,
        barrier_before: instruction.barrier_before,
    });
    let heaps = [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared, Heap::Host];
    let heaps = heaps.map(|heap| HeapSize { heap: heap.name(), bytes: memory.heap_len(heap).0 });
    Ok(Plan {
        model_filename: loaded.filename.clone(),
        model_type: loaded.description(),
        context,
        activations: activations.name(),
        weight_bytes: loaded.model.weight_bytes(),
        step_weight_bytes: loaded.model.step_weight_bytes(),
        heaps: heaps.into(),
        allocations: allocations.collect(),
        instructions: instructions.collect(),
        barriers: execution.barrier_count(),
    })
}

fn text(plan: &Plan) -> String {
    let mut table = Table::new(&[
        ("allocation", Alignment::Left),
        ("heap", Alignment::Left),
        ("parts", Alignment::Right),
        ("size", Alignment::Right),
    ]);
    for allocation in &plan.allocations {
        let parts = allocation.regions.len().to_string();
        table.row(vec![
            allocation.name.clone(),
            allocation.heap.to_owned(),
            parts,
            units::bytes(allocation.bytes),
        ]);
    }
    let heaps = plan
        .heaps
        .iter()
        .filter(|heap| heap.bytes > 0)
        .map(|heap| format!("{} {}", units::bytes(heap.bytes), heap.heap));
    format!(
        "{} ({}), context {}, activations {}\n\n{table}\nin all {}\none step: {} dispatches, {} barriers, {} of weights read\n",
        plan.model_filename,
        plan.model_type,
        plan.context,
        plan.activations,
        heaps.collect::<Vec<String>>().join(", "),
        plan.instructions.len(),
        plan.barriers,
        units::bytes(plan.step_weight_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_is_planned_in_whole() {
        let loaded = LoadedModel::open(None).unwrap();
        let plan = describe(&loaded, 64, Activations::F32).unwrap();
        let allocation = |name: &str| plan.allocations.iter().find(|one| one.name == name).unwrap();
        // Keys and values: 8 layers × 64 positions × 2 heads × 64 elements × 4 bytes.
        assert_eq!(allocation("kv_pool").bytes, 2 * 8 * 64 * 2 * 64 * 4);
        assert_eq!(allocation("weights.ffn_down").regions.len(), 8);
        let total: u64 = plan.allocations.iter().map(|one| one.bytes).sum();
        assert_eq!(plan.heaps.iter().map(|heap| heap.bytes).sum::<u64>(), total);
        assert!(total > plan.weight_bytes);
        let shown = text(&plan);
        assert!(shown.contains("kv_pool") && shown.contains("context 64"), "{shown}");
    }
}
