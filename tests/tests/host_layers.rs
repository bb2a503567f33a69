//! Layers in host memory: the bytes of loaded weights, cards that are too small, and sessions whose kernels read a part
//! of the weights over the bus.
//!
//! Contract: expected bytes come from `WeightLayout::pack`, whose own cases compare it with the oracle's reading;
//! expected tokens from the oracle and from a session with everything in VRAM.

use std::sync::Arc;
use std::time::Duration;
use zrt_bringup::{Inspect, OpenOptions};
use zrt_device::{Attachment, Device};
use zrt_engine::activations::Activations;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::executor::upload::Loading;
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::memory_plan::{AllocationId, MemoryPlan};
use zrt_engine::model::Model;
use zrt_engine::session::{Mode, Session, SessionError, SessionOptions};
use zrt_engine::weights::{WeightClass, WeightId};
use zrt_mem::{ByteLen, Heap};
use zrt_tests::mixed_model::mixed_model;
use zrt_tests::serving::{Asked, Told, checked_config, checked_session_over, expected};
use zrt_tests::{load, repository_model};
use zrt_vgpu::{Config, VirtualGpu};

const CONTEXT: u32 = 64;
/// Longest that the device may take to leave.
const LEAVE: Duration = Duration::from_secs(60);
/// Bytes beside the plan's: pages that are not full, code and tape, the driver's page-table reserve.
const BESIDES: u64 = (8 << 20) + (1 << 20);

fn model() -> Model {
    load(&repository_model("tales-qwen3-Q4_0.gguf"))
}

fn options(mode: Mode) -> SessionOptions {
    SessionOptions {
        mode,
        groups: Some(3),
        slots: 2,
        waiting_max: 2,
        context: CONTEXT,
        chunk_rows: 10,
        output_entries: 128,
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

/// Bytes of the matrices of a layer.
fn layer_bytes(memory: &MemoryPlan, layer: u32) -> u64 {
    let of_layer = memory
        .weights
        .iter()
        .filter(|(id, _)| id.class.is_per_layer() && !id.class.is_vector() && id.layer == layer);
    of_layer.map(|(_, place)| place.layout.len.0).sum()
}

/// A limit that keeps two of the layers in VRAM.
fn some_of(model: &Model, options: &SessionOptions) -> ByteLen {
    let memory = options.memory(model).expect("planned");
    let moved: u64 = (2..model.config.layers).map(|layer| layer_bytes(&memory, layer)).sum();
    ByteLen(memory.vram_len().0 - moved)
}

/// VRAM of a session with everything there, and with every matrix in host memory.
fn extremes(model: &Model, options: &SessionOptions) -> (ByteLen, ByteLen) {
    let all = options.memory(model).expect("planned").vram_len();
    let too_small = SessionOptions { vram_max: Some(ByteLen(0)), ..options.clone() };
    match too_small.memory(model) {
        Err(SessionError::VramLimit { limit: ByteLen(0), whole, least, slots, context, .. }) => {
            assert_eq!((whole, slots, context), (all, options.slots, options.context));
            (all, least)
        }
        other => panic!("nothing fits no memory: {other:?}"),
    }
}

fn device_on(config: Config) -> (Device, Arc<VirtualGpu>) {
    let gpu: Arc<VirtualGpu> = VirtualGpu::new(config).expect("powers up");
    let process = Attachment::over(gpu.clone()).expect("the board's one process");
    (zrt_bringup::open_over(&process, &OpenOptions::default()).expect("opens"), gpu)
}

fn used_vram(device: &Device) -> u64 {
    let path = "/sys/class/drm/card0/device/mem_info_vram_used";
    let bytes = device.syscalls().read_file(path).expect("readable");
    String::from_utf8(bytes).expect("text").trim().parse().expect("a number")
}

fn asked() -> [Asked; 2] {
    [Asked::greedy([1, 261, 17], 4), Asked::sampled(1..24, 3, 7)]
}

fn tokens(session: &mut Session) -> Vec<Vec<u32>> {
    let asked = asked();
    let handles: Vec<_> = asked.iter().map(|one| one.submit(session)).collect();
    session.start().expect("starts");
    let mut told = Told::new(asked.len());
    told.run(session, &handles).unwrap_or_else(|error| panic!("{error}"));
    told.tokens
}

/// Whatever the pieces, the threads and the way to a buffer, the device has the bytes of whole weights packed at once.
#[test]
fn threads_write_the_bytes_of_whole_weights() {
    let model = mixed_model(0);
    let cases = [
        (false, 1, 1),
        (false, 4, 1),
        (true, 3, 1),
        (false, 3, 30_000),
        (true, 1, 1 << 20),
        (false, 64, 1 << 30),
    ];
    for (small_bar, threads, piece_bytes) in cases {
        let config = Config { large_bar: !small_bar, ..Config::default() };
        let (device, _gpu) = device_on(config);
        let mut told = Vec::new();
        let mut progress = |done, total| told.push((done, total));
        let loading = Loading { threads: Some(threads), piece_bytes, progress: &mut progress };
        let options = options(Mode::Graph);
        // The plan of one sequence is smaller than that of a session; both keep the same things in VRAM.
        let plan =
            zrt_engine::plan::ExecutionPlan::step(&model, CONTEXT, 1, Activations::F32).expect("planned");
        let capacity = DeviceExecutor::capacity(&plan, options.kv_format);
        let whole = MemoryPlan::new(&model, &plan, &capacity).expect("planned");
        let limit = Some(ByteLen(whole.vram_len().0 - 700_000));
        let mut executor =
            DeviceExecutor::within(device, &model, CONTEXT, Activations::F32, (limit, loading))
                .expect("loads");
        let name = format!("small BAR {small_bar}, {threads} threads, pieces of {piece_bytes}");
        let places = executor.memory().weights.clone();
        let mut heaps = [0; 2];
        for (id, place) in places {
            let tensor = &model.weight(id).tensor;
            let file = model.gguf.read_tensor(tensor, 0..tensor.bytes).expect("in memory");
            let mut found = vec![0; place.layout.len.0 as usize];
            let (buffer, offset) = (place.allocation, place.offset.0);
            executor.download(buffer, offset, &mut found).expect("readable");
            assert!(found == place.layout.pack(tensor.kind, tensor.columns(), &file), "{name}: {id}");
            heaps[usize::from(matches!(place.allocation, AllocationId::HostWeights(_)))] += 1;
        }
        assert!(heaps.iter().all(|count| *count > 2), "{name}: {heaps:?}");
        let total = told[0].1;
        let host: u64 = executor.memory().weights.values().map(|place| place.layout.len.0).sum();
        assert!(told.is_sorted() && told.iter().all(|one| one.1 == total), "{name}: {told:?}");
        assert_eq!((told.last(), total), (Some(&(total, total)), host), "{name}");
    }
}

/// The order in which weights leave VRAM: layers from the last one, norms never, the output matrix (here the embedding
/// too) last.
#[test]
fn a_tighter_limit_moves_whole_layers_from_the_last_one() {
    let (model, options) = (model(), options(Mode::Mega));
    let (all, least) = extremes(&model, &options);
    let layers = model.config.layers;
    let mut before = 0;
    for step in (0..=40).rev() {
        let limit = ByteLen(least.0 + (all.0 - least.0) * step / 40);
        let memory =
            SessionOptions { vram_max: Some(limit), ..options.clone() }.memory(&model).expect("planned");
        assert!(memory.vram_len() <= limit, "{} of {limit:?}", memory.vram_len().0);
        assert_eq!(memory.heap_len(Heap::HostCached).0 + memory.vram_len().0, all.0);
        let is_in_host = |class, layer| {
            let place = &memory.weights[&WeightId::new(class, layer)];
            place.allocation == AllocationId::HostWeights(class)
        };
        let moved: Vec<bool> = (0..layers).map(|layer| is_in_host(WeightClass::Query, layer)).collect();
        assert!(moved.is_sorted(), "the last ones: {moved:?}");
        for (layer, moved) in (0..layers).zip(&moved) {
            assert_eq!(is_in_host(WeightClass::Down, layer), *moved, "layer {layer} is whole");
            assert!(
                !is_in_host(WeightClass::AttentionNorm, layer) && !is_in_host(WeightClass::QueryNorm, layer)
            );
        }
        let count = moved.iter().filter(|moved| **moved).count();
        assert!(count >= before && (step < 40 || count == 0), "{count} after {before}");
        let is_output_in_host = is_in_host(WeightClass::Embedding, 0);
        assert!(!is_output_in_host || count == layers as usize, "the output matrix is the last to go");
        assert!(is_output_in_host || step > 0);
        // One layer less in host memory would not fit.
        if count > before {
            let layer = layer_bytes(&memory, 0);
            assert!(memory.vram_len().0 + layer > limit.0, "step {step}");
        }
        before = count;
    }
    assert_eq!(before, layers as usize);
}

/// A card that cannot hold the model says what it was asked for; with a limit it gives the tokens of a larger card.
#[test]
fn a_card_that_is_too_small_refuses_and_runs_with_a_limit() {
    let model = model();
    let mut tokens_before = None;
    for mode in Mode::ALL {
        let options = options(mode);
        let limit = some_of(&model, &options);
        let all = options.memory(&model).expect("planned").vram_len();
        let (roomy, _gpu) = device_on(Config::default());
        let vram_bytes = used_vram(&roomy) + limit.0 + BESIDES;
        assert!(limit.0 + BESIDES - (8 << 20) < all.0, "the card must be too small");
        let mut whole = Session::prepare(roomy, &model, &options, &mut |_, _| {}).expect("it has room");
        let expected_tokens = tokens(&mut whole);
        assert_eq!(expected_tokens, expected(&model, CONTEXT, &asked()), "{mode:?}");

        let small = Config { vram_bytes: Some(vram_bytes), ..Config::default() };
        let (device, _gpu) = device_on(small);
        let free = device.available_vram();
        let Err(error) = Session::prepare(device, &model, &options, &mut |_, _| {}) else {
            panic!("{mode:?}: it has no room")
        };
        let says = error.to_string();
        let SessionError::Executor(ExecutorError::OutOfMemory(found)) = error else {
            panic!("{mode:?}: {says}")
        };
        assert_eq!((found.planned, found.available), (all, free));
        for part in [format!("{all:?}"), format!("{:?}", free.expect("told")), "--vram".into(), "VRAM".into()]
        {
            assert!(says.contains(&part), "{part}: {says}");
        }

        let (device, _gpu) = device_on(small);
        let options = SessionOptions { vram_max: Some(limit), ..options };
        let mut session = Session::prepare(device, &model, &options, &mut |_, _| {}).expect("it has room");
        assert!(session.resident().memory.heap_len(Heap::HostCached).0 > 0);
        assert_eq!(tokens(&mut session), expected_tokens, "{mode:?}");
        tokens_before.get_or_insert_with(|| expected_tokens.clone());
        assert_eq!(tokens_before.as_ref(), Some(&expected_tokens), "{mode:?}");
        session.close(LEAVE).expect("the device leaves");
    }
}

/// Host memory has a limit of its own, and the sentence is about it.
#[test]
fn host_memory_that_the_driver_does_not_lend_is_named() {
    let model = model();
    let options = options(Mode::Graph);
    let (all, least) = extremes(&model, &options);
    let options = SessionOptions { vram_max: Some(least), ..options };
    let (device, _gpu) = device_on(Config { gtt_bytes: Some((all.0 - least.0) / 2), ..Config::default() });
    let Err(error) = Session::prepare(device, &model, &options, &mut |_, _| {}) else {
        panic!("it has no room")
    };
    let says = error.to_string();
    let SessionError::Executor(ExecutorError::OutOfMemory(found)) = error else { panic!("{says}") };
    assert!(found.heap == Heap::HostCached && found.planned.0 >= all.0 - least.0, "{says}");
    assert!(
        says.contains("host memory") && says.contains("host_weights.") && !says.contains("--vram"),
        "{says}"
    );
}

/// What the host shares with the device lies in system memory where the BAR is small, and the sentence is about that.
#[test]
fn what_the_host_shares_is_named_where_it_lies() {
    let model = model();
    let options =
        SessionOptions { output_entries: 4096, output_heap: Heap::HostShared, ..options(Mode::Graph) };
    let memory = options.memory(&model).expect("planned");
    let planned = memory.heap_len(Heap::HostShared).0 + memory.heap_len(Heap::Host).0;
    assert!(planned > 1 << 20);
    // The device opens and has less than 1 MiB of system memory left.
    let opened = |mib: u64| {
        let config = Config { large_bar: false, gtt_bytes: Some(mib << 20), ..Config::default() };
        let gpu: Arc<VirtualGpu> = VirtualGpu::new(config).expect("powers up");
        let process = Attachment::over(gpu.clone()).expect("the board's one process");
        Some((zrt_bringup::open_over(&process, &OpenOptions::default()).ok()?, gpu))
    };
    let (device, _gpu) = (1..256).find_map(opened).expect("256 MiB are enough");
    assert!(device.is_vram(Heap::DeviceLocal) && !device.is_vram(Heap::HostShared));
    let Err(error) = Session::prepare(device, &model, &options, &mut |_, _| {}) else {
        panic!("it has no room")
    };
    let says = error.to_string();
    let SessionError::Executor(ExecutorError::OutOfMemory(found)) = error else { panic!("{says}") };
    assert_eq!((found.heap, found.is_vram), (Heap::HostShared, false), "{says}");
    assert_eq!(found.planned.0, planned, "{says}");
    assert!(says.contains("host memory") && !says.contains("VRAM"), "{says}");
}

#[test]
fn kernels_read_layers_in_host_memory_cleanly() {
    check_reads(&[(Mode::Graph, 2), (Mode::Mega, 3)]);
}

/// What `cargo xtask test` leaves to `--long`. Graphs run the kernels of dispatches.
#[test]
fn kernels_read_layers_in_host_memory_cleanly_in_further_ways() {
    check_reads(&[(Mode::Dispatch, 1), (Mode::Mega, 4)]);
}

/// Under the checking mode, in these ways to run: no finding, the same tokens, and every matrix in host memory is read
/// once in a step.
fn check_reads(ways: &[(Mode, u64)]) {
    let model = model();
    let expected = expected(&model, CONTEXT, &asked());
    for &(mode, seed) in ways {
        let options = options(mode);
        let options = SessionOptions { vram_max: Some(some_of(&model, &options)), ..options };
        let (mut session, gpu) = checked_session_over(&model, &options, checked_config(seed));
        assert_eq!(tokens(&mut session), expected, "{mode:?}, seed {seed}");
        let memory = &session.resident().memory;
        let host: Vec<_> = memory.allocations.iter().filter(|one| one.heap == Heap::HostCached).collect();
        let read: std::collections::BTreeMap<String, u64> = gpu.region_read_bytes().into_iter().collect();
        assert_eq!(host.len(), 7, "matrices of a layer");
        for allocation in host {
            assert!(read[&allocation.id.name()] >= allocation.len.0, "{mode:?}: {}", allocation.id.name());
        }
        let device = session.close(LEAVE).expect("the device leaves");
        let findings = device.findings().expect("readable");
        assert!(findings.is_empty(), "{mode:?}, seed {seed}: {}", findings[0]);
    }
}

/// Every type of weight over the bus, in the mode that reads them as integers.
#[test]
fn every_type_of_weight_is_read_from_host_memory() {
    let model = mixed_model(0);
    let options = SessionOptions { activations: Activations::A8, ..options(Mode::Mega) };
    let (_, least) = extremes(&model, &options);
    let mut found = Vec::new();
    for vram_max in [None, Some(least)] {
        let (device, _gpu) = device_on(Config::default());
        let options = SessionOptions { vram_max, ..options.clone() };
        let mut session = Session::prepare(device, &model, &options, &mut |_, _| {}).expect("it opens");
        found.push(tokens(&mut session));
        session.close(LEAVE).expect("the device leaves");
    }
    assert_eq!(found[0], found[1]);
}
