//! How fast the shader engine runs on this host: wave instructions per second, memory operations, dispatches.
//!
//! Figures of the virtual device; they say nothing about a card.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};
use zrt_vgpu::config::{Config, Scheduler};
use zrt_vgpu::counters::ShaderCounters;
use zrt_vgpu::memory::{AddressSpace, Rights};
use zrt_vgpu::shader::dispatch::{Dispatch, PacketOrigin};
use zrt_vgpu::shader::engine::ShaderEngine;
use zrt_vgpu::simd::Level;

const CODE_VA: u64 = 0x10_0000;
const DATA_VA: [u64; 2] = [0x1000_0000, 0x2000_0000];
const CODE_BYTES: usize = 1 << 16;
const DATA_BYTES: usize = 1 << 20;
/// How long one figure is measured.
const MEASURE: Duration = Duration::from_millis(300);

struct Device {
    engine: ShaderEngine,
    counters: Arc<ShaderCounters>,
    space: Arc<AddressSpace>,
    code: SharedView,
}

impl Device {
    fn new(worker_count: usize, level: Level) -> Device {
        let scheduler = Scheduler::Parallel { worker_count: Some(worker_count) };
        let config = Config { scheduler, ..Config::default() };
        let counters = Arc::new(ShaderCounters::default());
        let engine = ShaderEngine::with_level(&config, counters.clone(), level).expect("threads start");
        let space = Arc::new(AddressSpace::default());
        let map = |va, bytes| {
            let file = MemoryFile::new("bench", bytes).expect("memory");
            let mapping = Arc::new(file.map(0, bytes, Protection::ReadWrite, None).expect("memory"));
            let view = mapping.view();
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

    /// Wave instructions per second of processor time of this thread, of the dispatch repeated.
    fn rate(&self, dispatch: &Dispatch) -> f64 {
        self.run(dispatch.clone());
        let before = self.counters.snapshot().wave_instructions;
        let (start, start_ns) = (Instant::now(), thread_ns());
        while start.elapsed() < MEASURE {
            self.run(dispatch.clone());
        }
        (self.counters.snapshot().wave_instructions - before) as f64 * 1e9 / (thread_ns() - start_ns)
    }
}

/// Processor time of this thread, so that other work of the host does not count; else the time of day.
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
        while start.elapsed() < MEASURE {
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

fn main() {
    instructions();
    memory();
    dispatches();
}

/// 6 VALU and 3 SALU instructions.
///
/// ```text
/// loop:
/// v_fmac_f32_e32 v1, v2, v3
/// v_add_f32_e32 v4, v1, v2
/// v_mul_f32_e32 v5, v4, v3
/// v_lshlrev_b32_e32 v6, 2, v7
/// v_and_b32_e32 v7, v6, v8
/// v_xor_b32_e32 v8, v7, v9
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const MIX: &[u32] = &[
    0x5602_0702,
    0x0608_0501,
    0x100A_0704,
    0x300C_0E82,
    0x360E_1106,
    0x3A10_1307,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFF7,
    0xBFB0_0000,
];

/// 3 SALU instructions.
///
/// ```text
/// loop:
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const SCALAR: &[u32] = &[0x8182_8102, 0xBF07_8002, 0xBFA2_FFFD, 0xBFB0_0000];

/// 8 contiguous loads of four dwords.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b128 v[4:7], v1, s[0:1] offset:0
/// global_load_b128 v[8:11], v1, s[0:1] offset:512
/// global_load_b128 v[12:15], v1, s[0:1] offset:1024
/// global_load_b128 v[16:19], v1, s[0:1] offset:1536
/// global_load_b128 v[20:23], v1, s[0:1] offset:2048
/// global_load_b128 v[24:27], v1, s[0:1] offset:2560
/// global_load_b128 v[28:31], v1, s[0:1] offset:3072
/// global_load_b128 v[32:35], v1, s[0:1] offset:3584
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LOAD_B128: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE05_C000,
    0x0000_0004,
    0x0000_0001,
    0xEE05_C000,
    0x0000_0008,
    0x0002_0001,
    0xEE05_C000,
    0x0000_000C,
    0x0004_0001,
    0xEE05_C000,
    0x0000_0010,
    0x0006_0001,
    0xEE05_C000,
    0x0000_0014,
    0x0008_0001,
    0xEE05_C000,
    0x0000_0018,
    0x000A_0001,
    0xEE05_C000,
    0x0000_001C,
    0x000C_0001,
    0xEE05_C000,
    0x0000_0020,
    0x000E_0001,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 contiguous loads of a dword.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b32 v4, v2, s[0:1] offset:0
/// global_load_b32 v5, v2, s[0:1] offset:128
/// global_load_b32 v6, v2, s[0:1] offset:256
/// global_load_b32 v7, v2, s[0:1] offset:384
/// global_load_b32 v8, v2, s[0:1] offset:512
/// global_load_b32 v9, v2, s[0:1] offset:640
/// global_load_b32 v10, v2, s[0:1] offset:768
/// global_load_b32 v11, v2, s[0:1] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LOAD_B32: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE05_0000,
    0x0000_0004,
    0x0000_0002,
    0xEE05_0000,
    0x0000_0005,
    0x0000_8002,
    0xEE05_0000,
    0x0000_0006,
    0x0001_0002,
    0xEE05_0000,
    0x0000_0007,
    0x0001_8002,
    0xEE05_0000,
    0x0000_0008,
    0x0002_0002,
    0xEE05_0000,
    0x0000_0009,
    0x0002_8002,
    0xEE05_0000,
    0x0000_000A,
    0x0003_0002,
    0xEE05_0000,
    0x0000_000B,
    0x0003_8002,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 loads of a dword, 64 bytes apart.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// v_lshlrev_b32_e32 v3, 6, v0
/// loop:
/// global_load_b32 v4, v3, s[0:1] offset:0
/// global_load_b32 v5, v3, s[0:1] offset:4
/// global_load_b32 v6, v3, s[0:1] offset:8
/// global_load_b32 v7, v3, s[0:1] offset:12
/// global_load_b32 v8, v3, s[0:1] offset:16
/// global_load_b32 v9, v3, s[0:1] offset:20
/// global_load_b32 v10, v3, s[0:1] offset:24
/// global_load_b32 v11, v3, s[0:1] offset:28
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LOAD_B32_STRIDED: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0x3006_0086,
    0xEE05_0000,
    0x0000_0004,
    0x0000_0003,
    0xEE05_0000,
    0x0000_0005,
    0x0000_0403,
    0xEE05_0000,
    0x0000_0006,
    0x0000_0803,
    0xEE05_0000,
    0x0000_0007,
    0x0000_0C03,
    0xEE05_0000,
    0x0000_0008,
    0x0000_1003,
    0xEE05_0000,
    0x0000_0009,
    0x0000_1403,
    0xEE05_0000,
    0x0000_000A,
    0x0000_1803,
    0xEE05_0000,
    0x0000_000B,
    0x0000_1C03,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 loads of a dword from two buffers in turn.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b32 v4, v2, s[0:1] offset:0
/// global_load_b32 v5, v2, s[4:5] offset:128
/// global_load_b32 v6, v2, s[0:1] offset:256
/// global_load_b32 v7, v2, s[4:5] offset:384
/// global_load_b32 v8, v2, s[0:1] offset:512
/// global_load_b32 v9, v2, s[4:5] offset:640
/// global_load_b32 v10, v2, s[0:1] offset:768
/// global_load_b32 v11, v2, s[4:5] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LOAD_TWO_BUFFERS: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE05_0000,
    0x0000_0004,
    0x0000_0002,
    0xEE05_0004,
    0x0000_0005,
    0x0000_8002,
    0xEE05_0000,
    0x0000_0006,
    0x0001_0002,
    0xEE05_0004,
    0x0000_0007,
    0x0001_8002,
    0xEE05_0000,
    0x0000_0008,
    0x0002_0002,
    0xEE05_0004,
    0x0000_0009,
    0x0002_8002,
    0xEE05_0000,
    0x0000_000A,
    0x0003_0002,
    0xEE05_0004,
    0x0000_000B,
    0x0003_8002,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 contiguous stores of four dwords.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_store_b128 v1, v[4:7], s[0:1] offset:0
/// global_store_b128 v1, v[4:7], s[0:1] offset:512
/// global_store_b128 v1, v[4:7], s[0:1] offset:1024
/// global_store_b128 v1, v[4:7], s[0:1] offset:1536
/// global_store_b128 v1, v[4:7], s[0:1] offset:2048
/// global_store_b128 v1, v[4:7], s[0:1] offset:2560
/// global_store_b128 v1, v[4:7], s[0:1] offset:3072
/// global_store_b128 v1, v[4:7], s[0:1] offset:3584
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const STORE_B128: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE07_4000,
    0x0200_0000,
    0x0000_0001,
    0xEE07_4000,
    0x0200_0000,
    0x0002_0001,
    0xEE07_4000,
    0x0200_0000,
    0x0004_0001,
    0xEE07_4000,
    0x0200_0000,
    0x0006_0001,
    0xEE07_4000,
    0x0200_0000,
    0x0008_0001,
    0xEE07_4000,
    0x0200_0000,
    0x000A_0001,
    0xEE07_4000,
    0x0200_0000,
    0x000C_0001,
    0xEE07_4000,
    0x0200_0000,
    0x000E_0001,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 contiguous loads of a byte.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_u8 v4, v0, s[0:1] offset:0
/// global_load_u8 v5, v0, s[0:1] offset:32
/// global_load_u8 v6, v0, s[0:1] offset:64
/// global_load_u8 v7, v0, s[0:1] offset:96
/// global_load_u8 v8, v0, s[0:1] offset:128
/// global_load_u8 v9, v0, s[0:1] offset:160
/// global_load_u8 v10, v0, s[0:1] offset:192
/// global_load_u8 v11, v0, s[0:1] offset:224
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LOAD_U8: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE04_0000,
    0x0000_0004,
    0x0000_0000,
    0xEE04_0000,
    0x0000_0005,
    0x0000_2000,
    0xEE04_0000,
    0x0000_0006,
    0x0000_4000,
    0xEE04_0000,
    0x0000_0007,
    0x0000_6000,
    0xEE04_0000,
    0x0000_0008,
    0x0000_8000,
    0xEE04_0000,
    0x0000_0009,
    0x0000_A000,
    0xEE04_0000,
    0x0000_000A,
    0x0000_C000,
    0xEE04_0000,
    0x0000_000B,
    0x0000_E000,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];

/// 8 scalar loads of four dwords.
///
/// ```text
/// loop:
/// s_load_b128 s[8:11], s[0:1], 0
/// s_load_b128 s[12:15], s[0:1], 16
/// s_load_b128 s[16:19], s[0:1], 32
/// s_load_b128 s[20:23], s[0:1], 48
/// s_load_b128 s[24:27], s[0:1], 64
/// s_load_b128 s[28:31], s[0:1], 80
/// s_load_b128 s[32:35], s[0:1], 96
/// s_load_b128 s[36:39], s[0:1], 112
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const SCALAR_B128: &[u32] = &[
    0xF400_4200,
    0xF800_0000,
    0xF400_4300,
    0xF800_0010,
    0xF400_4400,
    0xF800_0020,
    0xF400_4500,
    0xF800_0030,
    0xF400_4600,
    0xF800_0040,
    0xF400_4700,
    0xF800_0050,
    0xF400_4800,
    0xF800_0060,
    0xF400_4900,
    0xF800_0070,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFED,
    0xBFB0_0000,
];

/// 4 LDS stores and 4 loads of a dword.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// ds_store_b32 v2, v4 offset:0
/// ds_load_b32 v4, v2 offset:0
/// ds_store_b32 v2, v5 offset:128
/// ds_load_b32 v5, v2 offset:128
/// ds_store_b32 v2, v6 offset:256
/// ds_load_b32 v6, v2 offset:256
/// ds_store_b32 v2, v7 offset:384
/// ds_load_b32 v7, v2 offset:384
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const LDS_B32: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xD834_0000,
    0x0000_0402,
    0xD8D8_0000,
    0x0400_0002,
    0xD834_0080,
    0x0000_0502,
    0xD8D8_0080,
    0x0500_0002,
    0xD834_0100,
    0x0000_0602,
    0xD8D8_0100,
    0x0600_0002,
    0xD834_0180,
    0x0000_0702,
    0xD8D8_0180,
    0x0700_0002,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFED,
    0xBFB0_0000,
];

/// 8 atomic additions to a dword per lane.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_atomic_add_u32 v2, v0, s[0:1] offset:0
/// global_atomic_add_u32 v2, v0, s[0:1] offset:128
/// global_atomic_add_u32 v2, v0, s[0:1] offset:256
/// global_atomic_add_u32 v2, v0, s[0:1] offset:384
/// global_atomic_add_u32 v2, v0, s[0:1] offset:512
/// global_atomic_add_u32 v2, v0, s[0:1] offset:640
/// global_atomic_add_u32 v2, v0, s[0:1] offset:768
/// global_atomic_add_u32 v2, v0, s[0:1] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
const ATOMIC: &[u32] = &[
    0x3002_0084,
    0x3004_0082,
    0xEE0D_4000,
    0x0000_0000,
    0x0000_0002,
    0xEE0D_4000,
    0x0000_0000,
    0x0000_8002,
    0xEE0D_4000,
    0x0000_0000,
    0x0001_0002,
    0xEE0D_4000,
    0x0000_0000,
    0x0001_8002,
    0xEE0D_4000,
    0x0000_0000,
    0x0002_0002,
    0xEE0D_4000,
    0x0000_0000,
    0x0002_8002,
    0xEE0D_4000,
    0x0000_0000,
    0x0003_0002,
    0xEE0D_4000,
    0x0000_0000,
    0x0003_8002,
    0x8182_8102,
    0xBF07_8002,
    0xBFA2_FFE5,
    0xBFB0_0000,
];
