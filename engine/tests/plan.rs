//! The plan of a real model: length, barriers, and that no stretch between barriers contains a dependency.

use std::path::Path;
use std::sync::Arc;
use zrt_engine::activations::Activations;
use zrt_engine::executor::alone::{self, StepRows};
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::gguf::Gguf;
use zrt_engine::graph::{Node, Operation, Use};
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::{AllocationId, MemoryPlan};
use zrt_engine::model::Model;
use zrt_engine::plan::{ExecutionPlan, Instruction, Place};
use zrt_engine::weights::WeightClass;
use zrt_mem::Heap;
use zrt_protocol::TAPE_WAITS_MAX;

fn model(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(name);
    Model::load(Arc::new(Gguf::open(&path).expect("in the repository"))).expect("sound")
}

/// Start and end of byte ranges.
type Ranges = Vec<(u64, u64)>;

/// Byte ranges of one memory that an instruction reads and writes; caches, logits and state are ranges of their own.
fn touched(plan: &ExecutionPlan, instruction: &Instruction) -> (Ranges, Ranges) {
    let (reads, writes): (Vec<_>, Vec<_>) =
        instruction.nodes().map(|node| touched_by(plan, &node.operation)).unzip();
    (reads.concat(), writes.concat())
}

fn touched_by(plan: &ExecutionPlan, operation: &Operation) -> (Ranges, Ranges) {
    const LOGITS: u64 = 1 << 40;
    const STATE: u64 = 1 << 41;
    const CACHE: u64 = 1 << 42;
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (value, how) in operation.uses() {
        let range = match plan.place(value) {
            Place::Activations(region) => (region.offset.0, region.offset.0 + region.len.0),
            Place::Logits => (LOGITS, LOGITS + 1),
        };
        if how != Use::Define {
            reads.push(range);
        }
        if how != Use::Read {
            writes.push(range);
        }
    }
    match operation {
        Operation::KvWrite { layer, .. } => {
            writes.push((CACHE + u64::from(*layer), CACHE + u64::from(*layer) + 1))
        }
        Operation::Attention { layer, .. } => {
            reads.push((CACHE + u64::from(*layer), CACHE + u64::from(*layer) + 1))
        }
        Operation::Sample { .. } => writes.push((STATE, STATE + 1)),
        _ => {}
    }
    if matches!(
        operation,
        Operation::Embed { .. }
            | Operation::Rope { .. }
            | Operation::KvWrite { .. }
            | Operation::Attention { .. }
    ) {
        reads.push((STATE, STATE + 1));
    }
    (reads, writes)
}

fn meet(one: &[(u64, u64)], other: &[(u64, u64)]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.0 < b.1 && b.0 < a.1))
}

/// Plans of steps with up to `rows` rows: two models with weights of one type and of several, in every mode.
fn plans(rows: u32) -> Vec<(String, ExecutionPlan)> {
    let names = ["tales-qwen3-Q4_0.gguf", "tales-llama-Q4_K_M.gguf"];
    let plans = names.into_iter().flat_map(|name| {
        let model = model(name);
        Activations::ALL.map(|activations| {
            let plan = ExecutionPlan::step(&model, 128, rows, activations).expect("planned");
            (format!("{name} {}", activations.name()), plan)
        })
    });
    plans.collect()
}

#[test]
fn no_stretch_between_barriers_has_a_dependency() {
    for (name, plan) in plans(1) {
        let mut stretch: Vec<(usize, &Instruction)> = Vec::new();
        for (index, instruction) in plan.instructions.iter().enumerate() {
            if instruction.barrier_before {
                stretch.clear();
            }
            let (reads, writes) = touched(&plan, instruction);
            for (earlier, before) in &stretch {
                let (earlier_reads, earlier_writes) = touched(&plan, before);
                let free = !meet(&earlier_writes, &reads)
                    && !meet(&earlier_writes, &writes)
                    && !meet(&earlier_reads, &writes);
                assert!(free, "{name}: {instruction} (at {index}) depends on {before} (at {earlier})");
            }
            stretch.push((index, instruction));
        }
    }
}

/// A kernel still reads, when it stores its first results: what an instruction defines lies apart from all else that it
/// touches.
#[test]
fn what_an_instruction_defines_lies_apart_from_what_it_reads() {
    for (name, plan) in plans(4) {
        for instruction in &plan.instructions {
            let uses: Vec<_> = instruction.nodes().flat_map(|node| node.operation.uses()).collect();
            let range = |value| match plan.place(value) {
                Place::Activations(region) => Some((region.offset.0, region.offset.0 + region.len.0)),
                Place::Logits => None,
            };
            for (defined, _) in uses.iter().filter(|(_, how)| *how == Use::Define) {
                for (other, _) in uses.iter().filter(|(other, _)| other != defined) {
                    let (Some(one), Some(other)) = (range(*defined), range(*other)) else { continue };
                    assert!(!meet(&[one], &[other]), "{name}: {instruction}");
                }
            }
        }
    }
}

/// Following the waits of the tape backwards from an operation reaches everything that it depends on.
#[test]
fn every_dependency_is_waited_for_at_some_remove() {
    for (name, plan) in plans(4) {
        let waits = plan.dependencies();
        assert_eq!(waits.len(), plan.instructions.len(), "{name}");
        let most = waits.iter().map(Vec::len).max();
        assert!(most <= Some(TAPE_WAITS_MAX), "{name}: {most:?} waits of one operation");
        let mut reached: Vec<Vec<bool>> = Vec::new();
        for (index, direct) in waits.iter().enumerate() {
            let mut all = vec![false; waits.len()];
            for earlier in direct {
                all[*earlier] = true;
                all.iter_mut().zip(&reached[*earlier]).for_each(|(one, other)| *one |= *other);
            }
            let (reads, writes) = touched(&plan, &plan.instructions[index]);
            for (earlier, is_reached) in all[..index].iter().enumerate() {
                let (earlier_reads, earlier_writes) = touched(&plan, &plan.instructions[earlier]);
                let depends = meet(&earlier_writes, &reads)
                    || meet(&earlier_writes, &writes)
                    || meet(&earlier_reads, &writes);
                assert!(!depends || *is_reached, "{name}: {index} does not wait for {earlier}");
            }
            reached.push(all);
        }
    }
}

/// Whatever operation it is put after.
#[test]
fn an_epilogue_that_a_kernel_does_not_have_is_refused() {
    let model = model("tales-qwen3-Q4_0.gguf");
    let plan = ExecutionPlan::step(&model, 128, 1, Activations::A8).expect("planned");
    let is_quantise = |operation: &Operation| matches!(operation, Operation::Quantise { .. });
    let epilogues: Vec<Node> =
        plan.instructions.iter().filter_map(|instruction| instruction.epilogue).collect();
    let [quantise, add] = [true, false].map(|wanted| {
        *epilogues.iter().find(|node| is_quantise(&node.operation) == wanted).expect("in every layer")
    });
    let rows = StepRows::Decode { slots: 1, position: 0 };
    for index in 0..plan.instructions.len() {
        let mut plan = plan.clone();
        for epilogue in [quantise, add] {
            plan.instructions[index].epilogue = Some(epilogue);
            let is_known = match plan.instructions[index].node.operation {
                Operation::Matmul { .. } => !is_quantise(&epilogue.operation),
                Operation::RmsNorm { .. } | Operation::SwiGlu { .. } | Operation::Attention { .. } => {
                    is_quantise(&epilogue.operation)
                }
                _ => false,
            };
            let tasks = alone::tasks(&model, &plan, rows, KvFormat::F32);
            assert_eq!(tasks.is_ok(), is_known, "{}", plan.instructions[index]);
        }
    }
}

#[test]
fn a_step_has_the_expected_operations_and_barriers() {
    let plan =
        ExecutionPlan::step(&model("tales-qwen3-Q4_0.gguf"), 128, 1, Activations::F32).expect("planned");
    // Embedding, 8 layers of 18 operations, norm, output, SAMPLE. Two products of a layer add to the residual stream.
    assert_eq!(plan.instructions.len(), 1 + 8 * (18 - 2) + 3);
    // Per layer 11: of query, key, value; the two norms; the two rotations; gate and up only the first waits.
    assert_eq!(plan.barrier_count(), 8 * 11 + 3);
    let llama =
        ExecutionPlan::step(&model("tales-llama-Q4_K_M.gguf"), 128, 1, Activations::F32).expect("planned");
    assert_eq!(llama.instructions.len(), 1 + 8 * (16 - 2) + 3);
}

/// Of 256 and of 4096 elements of 4 bytes.
#[test]
fn rows_of_a_value_follow_each_other() {
    let plan = plans(4).swap_remove(0).1;
    let stride = |name: &str| {
        let results = plan.instructions.iter().flat_map(Instruction::results);
        let mut strides = results.filter(|id| plan.value(*id).name == name).map(|id| plan.stride(id).0);
        strides.next().expect("in every plan")
    };
    assert_eq!((stride("hidden"), stride("logits")), (1024, 16384));
}

#[test]
fn weights_of_a_class_share_one_allocation() {
    let model = model("tales-qwen3-Q4_0.gguf");
    let plan = ExecutionPlan::step(&model, 128, 1, Activations::F32).expect("planned");
    let memory =
        MemoryPlan::new(&model, &plan, &DeviceExecutor::capacity(&plan, KvFormat::F32)).expect("planned");
    let gate = AllocationId::Weights(WeightClass::Gate);
    let gates: Vec<_> = memory.allocations.iter().filter(|allocation| allocation.id == gate).collect();
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].regions.len(), 8);
    let weights: u64 = memory.weights.values().map(|place| place.layout.len.0).sum();
    let file = model.weight_bytes();
    assert!(
        weights >= file && weights < file + file / 50,
        "{weights} bytes on the device, {file} in the file"
    );
    assert!(memory.heap_len(Heap::HostVisible).0 + memory.heap_len(Heap::HostShared).0 < 1 << 20);
}
