//! How long a model takes to load, and how much memory of the process: serial loading of whole weights against pieces
//! by threads. A measurement, which no run of the suite makes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_device::Device;
use zrt_engine::activations::Activations;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::executor::upload::Loading;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::MemoryPlan;
use zrt_engine::model::Model;
use zrt_engine::plan::ExecutionPlan;
use zrt_tests::load;
use zrt_tests::mixed_model::mixed_file;

const CONTEXT: u32 = 64;
/// Rows and layers of the file: some 1.3 GB with every type of weight.
const WIDTH: u64 = 4096;
const LAYERS: u64 = 16;
/// Runs of each way, of which the fastest counts.
const RUNS: usize = 3;

/// Bytes of the process that are neither a file's nor shared.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux 4.5 or later");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
}

fn device() -> Device {
    zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens")
}

/// One weight after another: read, packed and written in whole.
fn serial(model: &Model) -> (Duration, u64) {
    let plan = ExecutionPlan::step(model, CONTEXT, 1, Activations::F32).expect("planned");
    let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32);
    let memory = MemoryPlan::new(model, &plan, &capacity).expect("planned");
    let mut device = device();
    let start = Instant::now();
    let mut buffers = BTreeMap::new();
    for allocation in &memory.allocations {
        let buffer = device.allocate(allocation.heap, allocation.len, &allocation.id.name()).expect("room");
        buffers.insert(allocation.id, buffer);
    }
    let (before, mut most) = (anonymous_bytes(), 0);
    for (id, place) in &memory.weights {
        let tensor = &model.weight(*id).tensor;
        let file = model.gguf.read_tensor(tensor, 0..tensor.bytes).expect("readable");
        let packed = place.layout.pack(tensor.kind, tensor.columns(), &file);
        most = most.max(anonymous_bytes());
        device.upload(&buffers[&place.allocation], place.offset, &packed).expect("room");
    }
    (start.elapsed(), most.saturating_sub(before))
}

/// As a session loads, with everything else that makes a model resident.
fn threaded(model: &Model, threads: usize) -> (Duration, u64) {
    let device = device();
    let (before, mut most, mut calls) = (anonymous_bytes(), 0, 0);
    let start = Instant::now();
    let mut end = start;
    let mut progress = |done, total| {
        calls += 1;
        // Reading the file of the kernel takes longer than packing a piece.
        if calls % 64 == 0 {
            most = most.max(anonymous_bytes());
        }
        if done == total {
            end = Instant::now();
        }
    };
    let loading = Loading { threads: Some(threads), ..Loading::new(&mut progress) };
    let executor = DeviceExecutor::within(device, model, CONTEXT, Activations::F32, (None, loading));
    drop(executor.expect("loads"));
    (end - start, most.saturating_sub(before))
}

#[test]
#[ignore = "a measurement; run it alone, with --nocapture"]
fn loading_a_large_file() {
    let folder = zrt_needs::TemporaryFolder::new("loading");
    let path: PathBuf = folder.join("mixed.gguf");
    std::fs::write(&path, mixed_file(0, WIDTH, LAYERS)).expect("room for the file");
    let model = load(&path);
    let bytes = model.weight_bytes();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    eprintln!("{bytes} bytes of weights, {cores} cores, file in the page cache, virtual device");
    let best = |name: String, run: &dyn Fn() -> (Duration, u64)| {
        let runs: Vec<_> = (0..RUNS).map(|_| run()).collect();
        let time = runs.iter().map(|run| run.0).min().expect("some");
        let memory = runs.iter().map(|run| run.1).max().expect("some");
        let rate = bytes as f64 / time.as_secs_f64() / 1e9;
        eprintln!("{name}: {:.2} s, {rate:.2} GB/s, {} MiB of the process", time.as_secs_f64(), memory >> 20);
    };
    best("serial, whole weights".into(), &|| serial(&model));
    for threads in [1, 2, 4, cores].into_iter().collect::<std::collections::BTreeSet<_>>() {
        best(format!("{threads} threads"), &|| threaded(&model, threads));
    }
}
