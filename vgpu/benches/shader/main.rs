//! Speed of the shader engine on this host: wave instructions per second, memory operations, dispatches.
//!
//! The figures are for the virtual device; they say nothing about a card.

#[rustfmt::skip]
mod code;

use std::sync::Arc;
use std::time::{Duration, Instant};

use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};
use zrt_vgpu::config::{Config, Inspection, Scheduler};
use zrt_vgpu::counters::ShaderCounters;
use zrt_vgpu::memory::{AddressSpace, Rights};
use zrt_vgpu::shader::dispatch::{Dispatch, PacketOrigin};
use zrt_vgpu::simd::Level;
use zrt_vgpu::workgroups::ShaderEngine;

use code::*;

const CODE_VA: u64 = 0x10_0000;
const DATA_VA: [u64; 2] = [0x1000_0000, 0x2000_0000];
const CODE_BYTES: usize = 1 << 16;
const DATA_BYTES: usize = 1 << 20;
/// Measuring time of one figure. With `--test` the work of each is done once, and the figures are meaningless.
const MEASURE: Duration = Duration::from_millis(300);

/// [`MEASURE`], or zero if the benchmark is only tested.
fn measure() -> Duration {
    if std::env::args().any(|argument| argument == "--test") { Duration::ZERO } else { MEASURE }
}

struct Device {
    engine: ShaderEngine,
    counters: Arc<ShaderCounters>,
    space: Arc<AddressSpace>,
    code: SharedView,
}

impl Device {
    fn new(worker_count: usize, level: Level) -> Device {
        let scheduler = Scheduler::Parallel { worker_count: Some(worker_count) };
        Device::with_config(&Config { scheduler, ..Config::default() }, level)
    }

    fn with_config(config: &Config, level: Level) -> Device {
        let counters = Arc::new(ShaderCounters::default());
        let engine = ShaderEngine::with_level(config, counters.clone(), level).expect("threads start");
        let space = Arc::new(AddressSpace::default());
        let map = |va, bytes| {
            let file = MemoryFile::new("bench", bytes).expect("memory");
            let mapping = Arc::new(file.map(0, bytes, Protection::ReadWrite, None).expect("memory"));
            let view = mapping.view().clone();
            space.map(GpuVa(va), ByteLen(bytes as u64), Rights::all(), mapping).expect("free address");
            view
        };
        let code = map(CODE_VA, CODE_BYTES);
        DATA_VA.iter().for_each(|va| map(*va, DATA_BYTES).fill(0, DATA_BYTES, 1));
        Device { engine, counters, space, code }
    }

    fn load(&self, words: &[u32]) {
        words.iter().enumerate().for_each(|(index, word)| self.code.store_u32(4 * index, *word));
        self.engine.invalidate_instruction_cache();
    }

    fn dispatch(&self, groups: u32, group: u32, iterations: u32) -> Dispatch {
        let mut user_data = [0; 16];
        (user_data[0], user_data[4]) = (DATA_VA[0] as u32, DATA_VA[1] as u32);
        user_data[2] = iterations;
        Dispatch {
            code_va: CODE_VA,
            // 48 vector registers, denormals kept, WGP mode; six user SGPRs, 4 KB of LDS.
            rsrc1: 0x600F_0005,
            rsrc2: 6 << 1 | 1 << 7 | 8 << 15,
            rsrc3: 0,
            user_data,
            first: [0; 3],
            count: [groups, 1, 1],
            group: [group, 1, 1],
            last_group: [group, 1, 1],
            scratch_base_va: 0,
            tmpring_size: 0,
            is_wave64: false,
            address_space: self.space.clone(),
            origin: PacketOrigin::default(),
        }
    }

    fn run(&self, dispatch: Dispatch) {
        let ticket = self.engine.submit(dispatch).expect("a valid dispatch");
        while !ticket.is_done() {
            if !self.engine.help() {
                std::hint::spin_loop();
            }
            assert!(!self.engine.has_fault(), "{:?}", self.engine.take_fault());
        }
    }

    /// Wave instructions per second of this thread's CPU time, repeating the dispatch.
    fn rate(&self, dispatch: &Dispatch) -> f64 {
        self.run(dispatch.clone());
        let before = self.counters.snapshot().wave_instructions;
        let (start, start_ns) = (Instant::now(), thread_ns());
        self.run(dispatch.clone());
        while start.elapsed() < measure() {
            self.run(dispatch.clone());
        }
        (self.counters.snapshot().wave_instructions - before) as f64 * 1e9 / (thread_ns() - start_ns)
    }
}

/// CPU time of this thread, so that other work on the host does not count; if unavailable, wall-clock time.
fn thread_ns() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_processor = statistics.split_whitespace().next().and_then(|value| value.parse().ok());
    on_processor.unwrap_or_else(|| {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as f64
    })
}

fn instructions() {
    println!("6 VALU + 3 SALU, one wave, one thread:");
    for level in Level::supported() {
        let device = Device::new(0, level);
        device.load(MIX);
        let rate = device.rate(&device.dispatch(1, 32, 100_000));
        println!(
            "  {:<10} {:>8.1} M wave instructions/s  {:>6.2} ns each",
            level.name(),
            rate / 1e6,
            1e9 / rate
        );
    }
}

fn memory() {
    println!("memory operations, one wave, one thread (loop overhead of 3 SALU per 8 subtracted):");
    let device = Device::new(0, Level::detect());
    device.load(SCALAR);
    let scalar_ns = 1e9 / device.rate(&device.dispatch(1, 32, 100_000));
    let kernels: [(&str, &[u32]); 9] = [
        ("global_load_b128, contiguous", LOAD_B128),
        ("global_load_b32, contiguous", LOAD_B32),
        ("global_load_b32, 64 bytes apart", LOAD_B32_STRIDED),
        ("global_load_b32, two buffers", LOAD_TWO_BUFFERS),
        ("global_load_u8, contiguous", LOAD_U8),
        ("global_store_b128, contiguous", STORE_B128),
        ("global_atomic_add_u32", ATOMIC),
        ("ds_load_b32 / ds_store_b32", LDS_B32),
        ("s_load_b128", SCALAR_B128),
    ];
    for (name, words) in kernels {
        device.load(words);
        let rate = device.rate(&device.dispatch(1, 32, 20_000));
        let per_iteration_ns = 11.0 * 1e9 / rate;
        println!("  {name:<34} {:>7.1} ns", (per_iteration_ns - 3.0 * scalar_ns) / 8.0);
    }
}

/// Matrix and dot operations, each alone in a loop. The operands are initialised, so that the results are defined
/// in the checking mode.
fn products() {
    println!("matrix and dot operations, one wave, one thread (loop overhead of 3 SALU per 8 subtracted):");
    let inspection = Inspection { check: true, ..Inspection::default() };
    let plain = Device::new(0, Level::detect());
    let checked = Device::with_config(&Config { inspection, ..Config::default() }, Level::detect());
    let time_ns = |device: &Device, is_wave64: bool, iterations: u32, words: &[u32], count: f64| {
        device.load(words);
        let lanes = if is_wave64 { 64 } else { 32 };
        count * 1e9 / device.rate(&Dispatch { is_wave64, ..device.dispatch(1, lanes, iterations) })
    };
    let ways = [(&plain, false, 2000), (&plain, true, 2000), (&checked, false, 500)];
    println!("  {:>10} {:>10} {:>10} {:>10}", "wave32", "per second", "wave64", "checked");
    let loops_ns =
        ways.map(|(device, is_wave64, iterations)| time_ns(device, is_wave64, iterations, SCALAR, 3.0));
    for (name, operation) in OPERATIONS {
        let words = repeated(operation);
        let [wave32, wave64, checked] = [0, 1, 2].map(|way: usize| {
            let (device, is_wave64, iterations) = ways[way];
            (time_ns(device, is_wave64, iterations, &words, 11.0) - loops_ns[way]) / 8.0
        });
        let rate = 1e3 / wave32;
        println!("  {wave32:>7.1} ns {rate:>8.2} M {wave64:>7.1} ns {checked:>7.1} ns  {name}");
    }
}

/// The checking mode next to the same device without it.
fn checked() {
    println!("the same, checked (one thread):");
    let inspection = Inspection { check: true, ..Inspection::default() };
    let config = Config { inspection, ..Config::default() };
    let kernels: [(&str, &[u32], u32); 4] = [
        ("6 VALU + 3 SALU", MIX, 20_000),
        ("8 global_load_b128 + 3 SALU", LOAD_B128, 2000),
        ("8 global_load_b32 + 3 SALU", LOAD_B32, 2000),
        ("8 LDS + 3 SALU", LDS_B32, 2000),
    ];
    for (name, words, iterations) in kernels {
        let device = Device::with_config(&config, Level::detect());
        device.load(words);
        let rate = device.rate(&device.dispatch(1, 32, iterations));
        println!("  {name:<34} {:>7.1} M wave instructions/s", rate / 1e6);
    }
}

fn dispatches() {
    let workers = Scheduler::Parallel { worker_count: None }.worker_count();
    println!("dispatches that depend on each other ({workers} worker thread(s) and the submitting one):");
    let device = Device::new(workers, Level::detect());
    device.load(MIX);
    for (groups, group, iterations) in [(1, 32, 1), (8, 256, 1), (64, 256, 1), (64, 256, 20), (256, 256, 1)] {
        let dispatch = device.dispatch(groups, group, iterations);
        device.run(dispatch.clone());
        let before = device.counters.snapshot();
        let start = Instant::now();
        let mut count = 0u32;
        while count == 0 || start.elapsed() < measure() {
            device.run(dispatch.clone());
            count += 1;
        }
        let elapsed = start.elapsed().as_secs_f64();
        let instructions = device.counters.snapshot().wave_instructions - before.wave_instructions;
        println!(
            "  {groups:>4} groups of {group:>3}, {iterations:>2} iteration(s): {:>8.2} us each, {:>7.1} M wave instructions/s",
            elapsed * 1e6 / f64::from(count),
            instructions as f64 / elapsed / 1e6
        );
    }
    // A decode step: 150 dependent dispatches, about a million wave instructions.
    let dispatch = device.dispatch(32, 256, 3);
    let start = Instant::now();
    let before = device.counters.snapshot().wave_instructions;
    let steps = 20;
    for _ in 0..150 * steps {
        device.run(dispatch.clone());
    }
    let instructions = (device.counters.snapshot().wave_instructions - before) / steps;
    let step_ms = start.elapsed().as_secs_f64() * 1e3 / steps as f64;
    println!("  150 dispatches of 256 waves, {instructions} wave instructions: {step_ms:.2} ms");
}

/// The host CPU's name.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("an unknown processor".into(), |(_, name)| name.trim().into())
}

fn main() {
    println!("Host: {}. Rates are those of one core.", processor());
    instructions();
    memory();
    products();
    checked();
    dispatches();
}
