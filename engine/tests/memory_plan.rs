//! Where weights lie under a limit of VRAM, and what a step reads of them, against bytes counted by hand.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;

use made::{Made, WIDTH};
use zrt_engine::activations::Activations;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::{
    AllocationId, Capacity, MemoryPlan, StepWeightBytes, step_weight_bytes, step_weight_bytes_of,
};
use zrt_engine::model::Model;
use zrt_engine::placement::Placement;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::weights::{WeightClass, WeightId};
use zrt_mem::{ByteLen, Heap};

/// Bytes of a row of a matrix, of the norms of a layer, and of its matrices: five of 256 rows, and two of 128 for the
/// heads of keys and values.
const ROW: u64 = 256 * 4;
const NORMS: u64 = 2 * ROW;
const MATRICES: u64 = (5 * 256 + 2 * 128) * ROW;
/// The embedding, and the output matrix too: 16 rows.
const TABLE: u64 = 16 * ROW;

/// Three layers of F32; with an output matrix of its own, or with the embedding as its output matrix.
fn model(is_tied: bool) -> Model {
    let made = Made::new("llama", TensorKind::F32).with_layers(3);
    if is_tied { made.load().unwrap() } else { made.with_matrix("output.weight", WIDTH, 16).load().unwrap() }
}

fn plan(model: &Model) -> (ExecutionPlan, Capacity) {
    let plan = ExecutionPlan::step(model, 64, 1, Activations::F32).unwrap();
    let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32);
    (plan, capacity)
}

fn placed(has_host_embedding: bool, host_layers: u32, has_host_output: bool) -> Placement {
    Placement { has_host_embedding, host_layers, has_host_output }
}

/// Embedding, layers from the last one on, output matrix: each leaves VRAM only when those before it do not suffice.
#[test]
fn a_limit_moves_no_more_than_it_must() {
    let untied = [
        (0, placed(false, 0, false)),
        (TABLE, placed(true, 0, false)),
        (MATRICES, placed(true, 1, false)),
        (MATRICES, placed(true, 2, false)),
        (MATRICES, placed(true, 3, false)),
        (TABLE, placed(true, 3, true)),
    ];
    let tied = [
        (0, placed(false, 0, false)),
        (MATRICES, placed(false, 1, false)),
        (MATRICES, placed(false, 2, false)),
        (MATRICES, placed(false, 3, false)),
        (TABLE, placed(false, 3, true)),
    ];
    for (is_tied, stages) in [(false, &untied[..]), (true, &tied[..])] {
        let model = model(is_tied);
        let (plan, capacity) = plan(&model);
        let whole = MemoryPlan::new(&model, &plan, &capacity).unwrap().vram_len().0;
        // Whatever the placement was before.
        let capacity = Capacity { placement: placed(true, 2, true), ..capacity };
        let within = |limit: u64| capacity.within(Some(ByteLen(limit)), &model, &plan);
        assert_eq!(capacity.within(None, &model, &plan).unwrap().placement, Placement::default());
        let mut needed = whole;
        for (index, (bytes, expected)) in stages.iter().enumerate() {
            needed -= bytes;
            let found = within(needed).unwrap();
            assert_eq!(
                found,
                Capacity { placement: *expected, ..capacity },
                "stage {index}, tied: {is_tied}"
            );
            let memory = MemoryPlan::new(&model, &plan, &found).unwrap();
            assert_eq!(memory.vram_len(), ByteLen(needed), "stage {index}, tied: {is_tied}");
            if let Some((_, after)) = stages.get(index + 1) {
                assert_eq!(within(needed - 1).unwrap().placement, *after, "below stage {index}");
            }
        }
        assert_eq!(Placement::all_in_host(&model), stages[stages.len() - 1].1);
        assert_eq!(within(u64::MAX).unwrap().placement, Placement::default());
        for limit in [needed - 1, 0] {
            let Err(ExecutorError::VramLimit { limit: asked, whole: of_all, least }) = within(limit) else {
                panic!("{limit} bytes suffice")
            };
            assert_eq!((asked, of_all, least), (ByteLen(limit), ByteLen(whole), ByteLen(needed)));
        }
    }
}

/// Of three layers the last one, which is in host memory, lies in allocations of its own.
#[test]
fn weights_of_a_class_lie_in_one_allocation_of_each_memory() {
    let model = model(false);
    let (plan, capacity) = plan(&model);
    let capacity = Capacity { placement: placed(true, 1, false), ..capacity };
    let memory = MemoryPlan::new(&model, &plan, &capacity).unwrap();
    let found = |id: AllocationId| {
        let one = memory.allocations.iter().find(|one| one.id == id)?;
        Some((one.heap, one.len.0, one.regions.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()))
    };
    let gate = WeightClass::Gate;
    let names = vec!["blk.0.ffn_gate.weight", "blk.1.ffn_gate.weight"];
    assert_eq!(found(AllocationId::Weights(gate)), Some((Heap::DeviceLocal, 2 * 256 * ROW, names)));
    let names = vec!["blk.2.ffn_gate.weight"];
    assert_eq!(found(AllocationId::HostWeights(gate)), Some((Heap::HostCached, 256 * ROW, names)));
    let names = vec!["token_embd.weight"];
    assert_eq!(
        found(AllocationId::HostWeights(WeightClass::Embedding)),
        Some((Heap::HostCached, TABLE, names))
    );
    assert_eq!(found(AllocationId::Weights(WeightClass::Embedding)), None);
    assert_eq!(found(AllocationId::HostWeights(WeightClass::Output)), None);
    assert_eq!(found(AllocationId::HostWeights(WeightClass::AttentionNorm)), None);
    let place = |layer| {
        let place = memory.weights[&WeightId::new(gate, layer)];
        (place.allocation, place.offset.0)
    };
    assert_eq!(place(0), (AllocationId::Weights(gate), 0));
    assert_eq!(place(1), (AllocationId::Weights(gate), 256 * ROW));
    assert_eq!(place(2), (AllocationId::HostWeights(gate), 0));
}

/// Every matrix once; of the embedding a row, and the whole besides where it is the output matrix.
#[test]
fn a_step_reads_every_matrix_and_a_row_of_the_embedding() {
    let all = 3 * (MATRICES + NORMS) + ROW + TABLE + ROW;
    let bytes = |vram, host| StepWeightBytes { vram, host };
    for is_tied in [false, true] {
        let model = model(is_tied);
        assert_eq!(step_weight_bytes(&model), all, "tied: {is_tied}");
        let read = |placement| step_weight_bytes_of(&model, &placement);
        assert_eq!(read(Placement::default()), bytes(all, 0));
        assert_eq!(read(Placement::all_in_host(&model)), bytes(3 * NORMS + ROW, all - 3 * NORMS - ROW));
        assert_eq!(read(placed(false, 2, false)), bytes(all - 2 * MATRICES, 2 * MATRICES));
        assert_eq!(read(placed(false, 2, false)).total(), all);
        let of_embedding = if is_tied { 0 } else { ROW };
        assert_eq!(read(placed(true, 0, false)), bytes(all - of_embedding, of_embedding), "tied: {is_tied}");
        let of_output = if is_tied { TABLE + ROW } else { TABLE };
        assert_eq!(read(placed(false, 0, true)), bytes(all - of_output, of_output), "tied: {is_tied}");
    }
}

/// Names are what reports and faults show: each its own, a bias beside its matrix.
#[test]
fn allocations_are_named_after_what_is_in_them() {
    let model = Made::new("qwen2", TensorKind::F32).load().unwrap();
    let (plan, capacity) = plan(&model);
    let names = |placement| -> Vec<String> {
        let memory = MemoryPlan::new(&model, &plan, &Capacity { placement, ..capacity }).unwrap();
        let names: Vec<String> = memory.allocations.iter().map(|one| one.id.name()).collect();
        // Those of one part have its name.
        for (one, name) in
            memory.allocations.iter().zip(&names).filter(|(_, name)| !name.contains("weights."))
        {
            assert_eq!(one.regions[0].0, *name);
        }
        names
    };
    let rest = [
        "rope_table",
        "activations",
        "kv_pool",
        "parameters",
        "step",
        "logits",
        "slots",
        "pages",
        "plan_state",
        "control",
        "tokens",
        "stops",
        "host_pages",
        "input_ring",
        "output_ring",
        "consumed",
        "status",
        "adjusted_logits",
        "extras",
        "tops",
        "output_tops",
    ];
    let in_vram = [
        "weights.token_embd",
        "weights.attn_norm",
        "weights.attn_q",
        "weights.attn_k",
        "weights.attn_v",
        "weights.attn_q.bias",
        "weights.attn_k.bias",
        "weights.attn_v.bias",
        "weights.attn_output",
        "weights.ffn_norm",
        "weights.ffn_gate",
        "weights.ffn_up",
        "weights.ffn_down",
        "weights.output_norm",
    ];
    assert_eq!(names(Placement::default()), [&in_vram[..], &rest].concat());
    let split = [
        "weights.attn_norm",
        "weights.attn_q.bias",
        "weights.attn_k.bias",
        "weights.attn_v.bias",
        "weights.ffn_norm",
        "weights.output_norm",
        "host_weights.token_embd",
        "host_weights.attn_q",
        "host_weights.attn_k",
        "host_weights.attn_v",
        "host_weights.attn_output",
        "host_weights.ffn_gate",
        "host_weights.ffn_up",
        "host_weights.ffn_down",
    ];
    assert_eq!(names(Placement::all_in_host(&model)), [&split[..], &rest].concat());
}
