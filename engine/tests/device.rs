//! One sequence on the virtual device, against the oracle; what is uploaded, recorded and reset, byte for byte.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;
mod textbook;

use textbook::{TOKENS, Textbook, gemma3, llama, qwen2};
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, OpenOptions, VirtualOptions};
use zrt_device::Device;
use zrt_engine::activations::Activations;
use zrt_engine::executor::alone::{self, StepRows};
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::executor::lowering::{Planning, task_count};
use zrt_engine::executor::resident::Resident;
use zrt_engine::executor::upload::Loading;
use zrt_engine::executor::{Cache, Executor, StepSnapshot};
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::layout::{FloatOrder, WeightLayout};
use zrt_engine::memory_plan::{AllocationId, Capacity, MemoryPlan};
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::validate::validate;
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::PlanState;

/// Two pages of positions, the second of which has two.
const CONTEXT: u32 = 18;

fn open(virtual_device: VirtualOptions) -> Device {
    let options = OpenOptions { self_test: false, virtual_device, ..OpenOptions::default() };
    zrt_bringup::open(DeviceChoice::Virtual, &options).unwrap()
}

fn executor(model: &Model, activations: Activations) -> DeviceExecutor {
    let device = open(VirtualOptions::default());
    DeviceExecutor::new(device, model, CONTEXT, activations, &mut |_, _| {}).unwrap()
}

fn oracle(model: &Model, activations: Activations) -> Oracle {
    Oracle::new_with(model, CONTEXT, KvFormat::F32, activations).unwrap()
}

fn logits(executor: &mut impl Executor) -> Vec<f32> {
    let mut logits = vec![f32::NAN; 16];
    executor.read_logits(&mut logits).unwrap();
    logits
}

fn resident(model: &Model, options: VirtualOptions) -> Resident {
    let plan = ExecutionPlan::step(model, CONTEXT, 1, Activations::F32).unwrap();
    let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32);
    resident_in(model, options, plan, capacity).unwrap()
}

fn resident_in(
    model: &Model,
    options: VirtualOptions,
    plan: ExecutionPlan,
    capacity: Capacity,
) -> Result<Resident, ExecutorError> {
    let planning = Planning { input_entries: 4, output_entries: 4, chunk_rows: 1, waits: false };
    Resident::new(open(options), model, plan, capacity, &planning, Loading::new(&mut |_, _| {}))
}

fn agree(textbook: &Textbook, activations: Activations) {
    let model = textbook.made.load().unwrap();
    let (mut oracle, mut device) = (oracle(&model, activations), executor(&model, activations));
    let agreement = validate(&mut oracle, &mut device, &TOKENS[..2], 2, |_| ()).unwrap();
    assert_eq!(agreement.steps, 3);
}

#[test]
fn floats_agree_at_every_instruction() {
    agree(&gemma3(TensorKind::F32), Activations::F32);
}

#[test]
fn integers_and_biases_agree_at_every_instruction() {
    agree(&llama(TensorKind::Q8_0), Activations::A8);
    agree(&qwen2(), Activations::A16);
}

/// Over both pages and to the end of the context: choices, logits, tokens, caches, and what is said of them.
#[test]
fn a_sequence_agrees_to_the_end_of_its_context() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let (mut oracle, mut device) = (oracle(&model, Activations::F32), executor(&model, Activations::F32));
    for prompt in [&TOKENS[..], &TOKENS[5..7]] {
        oracle.begin(prompt).unwrap();
        device.begin(prompt).unwrap();
        let state = device.read_state().unwrap();
        assert_eq!((state.position, state.step_count), (0, 0));
        for position in 0..CONTEXT {
            let choice = oracle.step().unwrap();
            assert_eq!(device.step().unwrap(), choice, "position {position}");
            assert_eq!(logits(&mut device), logits(&mut oracle), "position {position}");
            let state = StepSnapshot { position: position + 1, last_token: choice, step_count: position + 1 };
            assert_eq!(device.read_state().unwrap(), state);
        }
        for position in 0..CONTEXT {
            assert_eq!(
                device.read_token(position).unwrap(),
                oracle.read_token(position).unwrap(),
                "{position}"
            );
            for (cache, layer) in [(Cache::Key, 0), (Cache::Key, 1), (Cache::Value, 0), (Cache::Value, 1)] {
                let expected = oracle.read_cache_row(cache, layer, position).unwrap();
                let found = device.read_cache_row(cache, layer, position).unwrap();
                assert_eq!(found, expected, "{cache:?} of layer {layer} at {position}");
            }
        }
        let mut bytes = [0xa5; 8];
        device.download(AllocationId::Tokens, 4, &mut bytes).unwrap();
        let tokens = [1, 2].map(|position| oracle.read_token(position).unwrap());
        assert_eq!(bytes, tokens.as_bytes());
        let full =
            "a sequence of 19 tokens does not fit the context of 18; ask for a larger context or less text";
        assert_eq!(device.step().unwrap_err().to_string(), full);
        assert_eq!(device.step_instruction(0).unwrap_err().to_string(), full);
    }
    assert_eq!(device.begin(&[]).unwrap_err().to_string(), "the prompt is empty; give at least one token");
    assert!(matches!(device.begin(&[16]), Err(ExecutorError::Token { token: 16, vocabulary: 16 })));
}

/// An instruction is one task; PLAN comes before the first, and BOUNDARY behind the first of the first layer, the
/// embedding being in none.
#[test]
fn steps_and_instructions_launch_their_tasks() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let mut device = executor(&model, Activations::F32);
    // The embedding, twice 14 of a layer, norm, logits, choice; PLAN and BOUNDARY besides.
    assert_eq!(device.plan().instructions.len(), 32);
    assert_eq!((device.dispatch_count(), device.kernel_names().count()), (34, 34));
    assert_eq!(device.kernels_of_instructions().count(), 32);
    let mut launched = {
        let mut before = device.counters().unwrap();
        move |device: &DeviceExecutor| {
            let now = device.counters().unwrap();
            let more = (now.dispatches - before.dispatches, now.submissions - before.submissions);
            before = now;
            more
        }
    };
    device.begin(&[3, 1]).unwrap();
    device.step().unwrap();
    assert_eq!(launched(&device), (34, 1));
    for index in 0..32 {
        device.step_instruction(index).unwrap();
        assert_eq!(launched(&device), (if index < 2 { 2 } else { 1 }, 1), "instruction {index}");
    }
    assert_eq!(device.read_state().unwrap().step_count, 2);
}

/// A graph has a barrier before its first task, unless that is the first of all, and before each other task that waits.
#[test]
fn graphs_have_the_barriers_of_their_tasks() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let mut resident = resident(&model, VirtualOptions::default());
    let mut packets = |range| resident.record(range, 4).unwrap().packets();
    let first = packets(0..1);
    let barrier = packets(1..2) - first;
    assert!(first > 0 && barrier > 0);
    for task in 1..34 {
        assert_eq!(packets(task..task + 1), first + barrier, "task {task}");
    }
    // Key and value, after the query, do not wait for it.
    let task = packets(5..7) - packets(5..6);
    assert!(task > 0);
    // PLAN, embedding, norm, BOUNDARY, query, key, value.
    assert_eq!(packets(0..7), first + 6 * task + 3 * barrier);
    assert_eq!(packets(3..7), first + 3 * task + 2 * barrier);
    // Of a layer wait: norm, query, a rotation, cache, attention, output, norm, gate, their product, down. Besides: the
    // embedding for PLAN, and the last norm, logits and choice.
    assert_eq!(packets(0..34), first + 33 * task + (1 + 2 * 10 + 3) * barrier);
}

/// What steps change is zeros, but for the tags of the rings; whatever was there before.
#[test]
fn a_reset_leaves_no_request_no_step_and_empty_rings() {
    use AllocationId::{Consumed, Control, HostPages, InputRing, OutputRing, OutputTops, Pages, Slots};
    use AllocationId::{Extras, Status, Step, Tops};
    let model = llama(TensorKind::F32).made.load().unwrap();
    let mut resident = resident(&model, VirtualOptions::default());
    let zeroed = [
        Consumed, Control, HostPages, InputRing, OutputRing, OutputTops, Pages, Slots, Extras, Status, Step,
        Tops,
    ];
    for _ in 0..2 {
        for id in zeroed {
            let mut bytes = vec![0xa5; resident.buffer(id).len.0 as usize];
            resident.download(id, 0, &mut bytes).unwrap();
            assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0), "{id:?}");
        }
        let mut state = [0xa5u8; 48];
        resident.download(AllocationId::PlanState, 0, &mut state).unwrap();
        // Words 2 and 4 are the tags of the next entries of both rings; an entry of zeros has the tag 0.
        let mut expected = [0u32; 12];
        (expected[2], expected[4]) = (1, 1);
        assert_eq!(state, expected.as_bytes());
        for id in zeroed.into_iter().chain([AllocationId::PlanState]) {
            let garbage = vec![0x5a; resident.buffer(id).len.0 as usize];
            resident.upload(id, 0, &garbage).unwrap();
        }
        resident.reset().unwrap();
    }
    assert_eq!(size_of::<PlanState>(), 48);
}

/// The bytes of each weight as one piece, whatever the pieces, the threads and the way: through the host's mapping, or
/// by copies of the device where the BAR shows little. Progress ends with all of them.
#[test]
fn weights_lie_in_memory_as_their_layout_says() {
    let model = gemma3(TensorKind::Q8_0).made.load().unwrap();
    let plan = ExecutionPlan::step(&model, CONTEXT, 1, Activations::F32).unwrap();
    let planning = Planning { input_entries: 4, output_entries: 4, chunk_rows: 1, waits: false };
    for (small_bar, threads, piece_bytes, pieces) in [
        (false, Some(1), u64::MAX, 28),
        (false, Some(3), 1, 42),
        (true, Some(2), 1, 42),
        (true, None, 1 << 20, 28),
    ] {
        let (mut told, mut written) = (Vec::new(), 0);
        let mut progress = |done, total| told.push((done, total));
        let loading = Loading { threads, piece_bytes, progress: &mut progress };
        let device = open(VirtualOptions { small_bar, ..VirtualOptions::default() });
        let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32);
        let mut resident = Resident::new(device, &model, plan.clone(), capacity, &planning, loading).unwrap();
        for (id, weight) in model.weights() {
            let tensor = &weight.tensor;
            let file = model.gguf.read_tensor(tensor, 0..tensor.bytes).unwrap();
            let (rows, columns) = (tensor.rows(), tensor.columns());
            let layout =
                WeightLayout::in_order(tensor.kind, rows, columns, FloatOrder::of(id.class)).unwrap();
            let expected = layout.pack(tensor.kind, columns, &file);
            let place = resident.memory.weights[&id];
            let mut found = vec![0xa5; expected.len()];
            resident.download(place.allocation, place.offset.0, &mut found).unwrap();
            assert!(found == expected, "{id} in pieces of {piece_bytes}");
            written += expected.len() as u64;
        }
        assert!(told.is_sorted() && told[0].0 > 0, "{told:?}");
        assert!(told.iter().all(|(_, total)| *total == written));
        assert_eq!((told.len(), told.last().unwrap().0), (pieces, written), "pieces of {piece_bytes}");
    }
}

#[test]
fn weights_are_loaded_by_one_to_sixty_four_threads() {
    let model = made::Made::new("llama", TensorKind::F32).load().unwrap();
    let load = |threads| {
        let mut progress = |_, _| {};
        let loading = Loading { threads: Some(threads), ..Loading::new(&mut progress) };
        let device = open(VirtualOptions::default());
        DeviceExecutor::within(device, &model, 4, Activations::F32, (None, loading)).map(drop)
    };
    assert!(load(64).is_ok());
    for threads in [0, 65, usize::MAX] {
        let said = format!("{threads} threads cannot load weights: it takes 1 to 64");
        assert_eq!(load(threads).unwrap_err().to_string(), said);
    }
}

/// The allocation is named, with what the whole session needs of the same memory: all of VRAM, or without a BAR that
/// shows it what the host does not share.
#[test]
fn too_little_vram_is_told_with_what_is_needed() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let plan = ExecutionPlan::step(&model, CONTEXT, 1, Activations::F32).unwrap();
    for small_bar in [false, true] {
        let capacity = Capacity { pages: 1 << 16, ..DeviceExecutor::capacity(&plan, KvFormat::F32) };
        let options = VirtualOptions { small_bar, vram_bytes: Some(512 << 20), ..VirtualOptions::default() };
        let found = match resident_in(&model, options, plan.clone(), capacity) {
            Err(ExecutorError::OutOfMemory(found)) => found,
            other => panic!("{:?}", other.err()),
        };
        assert_eq!(
            (found.allocation.as_str(), found.heap, found.is_vram),
            ("kv_pool", Heap::DeviceLocal, true)
        );
        // A page: of two layers and two sides 16 rows of 128 floats.
        assert_eq!(found.len, ByteLen(65536 * 2 * 2 * 16 * 512));
        let memory = MemoryPlan::new(&model, &plan, &capacity).unwrap();
        let shared = if small_bar { 0 } else { memory.heap_len(Heap::HostShared).0 };
        assert!(small_bar || shared > 0);
        assert_eq!(found.planned.0, memory.heap_len(Heap::DeviceLocal).0 + shared);
        assert!(found.available.is_some_and(|free| free < found.planned));
    }
}

/// What is wrong with an allocation other than that there is no room is the device's to say.
#[test]
fn an_allocation_of_nothing_is_no_lack_of_memory() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let plan = ExecutionPlan::step(&model, CONTEXT, 1, Activations::F32).unwrap();
    let capacity = Capacity { pages: 0, ..DeviceExecutor::capacity(&plan, KvFormat::F32) };
    let error = resident_in(&model, VirtualOptions::default(), plan, capacity).err().unwrap();
    assert!(matches!(error, ExecutorError::Device(_)), "{error:?}");
}

#[test]
fn kernels_of_the_plan_are_loaded_and_no_others() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let mut device = executor(&model, Activations::F32);
    for name in ["plan", "boundary", "embed_f32", "matmul_f32", "sample"] {
        assert!(device.kernel(name).is_some_and(|(kernel, _)| kernel.name() == name), "{name}");
        assert!(device.kernel_names().any(|one| one == name), "{name}");
    }
    assert!(device.kernel("matmul_q8_0").is_none() && device.kernel("").is_none());
}

/// One dispatch of one workgroup, whose waves do as much as units are asked for.
#[test]
fn a_task_runs_alone() {
    let model = llama(TensorKind::F32).made.load().unwrap();
    let rows = StepRows::Prompt { rows: 3, position: 5 };
    let plan = ExecutionPlan::step(&model, 8, 3, Activations::F32).unwrap();
    let tasks = alone::tasks(&model, &plan, rows, KvFormat::F32).unwrap();
    assert_eq!(tasks.len(), task_count(&plan) as usize);
    let gate = tasks.iter().position(|task| task.kernel == "swiglu").unwrap();
    let mut instructions = Vec::new();
    for (index, units) in [(gate, 1), (gate, 2), (gate, 9)] {
        let mut device = open(VirtualOptions::default());
        let before = device.counters().unwrap();
        alone::run(&mut device, &model, &plan, rows, KvFormat::F32, (index, units, 0)).unwrap();
        let after = device.counters().unwrap();
        assert_eq!(after.dispatches - before.dispatches, 1);
        instructions.push(after.wave_instructions.unwrap() - before.wave_instructions.unwrap());
    }
    // 288 elements are two units for each of the rows.
    assert!(instructions[0] < instructions[1], "{instructions:?}");
    assert_eq!(instructions[1], instructions[2]);
    let mut device = open(VirtualOptions::default());
    let error = alone::run(&mut device, &model, &plan, rows, KvFormat::F32, (99, 1, 0)).unwrap_err();
    assert_eq!(error.to_string(), "kernel `task` is not usable: there is no task 99");
}
