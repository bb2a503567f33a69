//! A kernel compiled during the test by a compiler that knows nothing about this device, if clang 22 and LLVM 19
//! are installed.

use std::process::Command;

use super::*;

/// RMS normalisation of rows and a histogram of the results: LDS, barriers, atomics, strided loops.
const SOURCE: &str = r#"
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void normalise(__global const float *x, __global float *y, __global unsigned *histogram, unsigned columns) {
    __local float partial[256];
    __local unsigned bins[16];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    unsigned long row = (unsigned long)__builtin_amdgcn_workgroup_id_x() * columns;
    if (lane < 16) bins[lane] = 0;
    float sum = 0.0f;
    for (unsigned c = lane; c < columns; c += 256) sum += x[row + c] * x[row + c];
    partial[lane] = sum;
    for (unsigned step = 128; step > 0; step >>= 1) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (lane < step) partial[lane] += partial[lane + step];
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    float scale = 1.0f / __builtin_sqrtf(partial[0] / (float)columns + 1e-5f);
    for (unsigned c = lane; c < columns; c += 256) {
        float v = x[row + c] * scale;
        y[row + c] = v;
        int bin = (int)(v * 4.0f) + 8;
        bin = bin < 0 ? 0 : bin > 15 ? 15 : bin;
        __opencl_atomic_fetch_add((__local atomic_uint *)&bins[bin], 1u, __ATOMIC_RELAXED, 1);
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (lane < 16)
        __opencl_atomic_fetch_add((__global atomic_uint *)&histogram[lane], bins[lane], __ATOMIC_RELAXED, 2);
}
"#;

/// For wave64: compaction by ballot, a private array, a loop that lanes leave at different times, lane exchanges,
/// 64-bit division of both kinds.
const SOURCE_WAVE64: &str = r#"
__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void mix(__global const int *x, __global int *kept, __global unsigned *steps, __global long *quotient,
                  __global double *ratio) {
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    unsigned group = __builtin_amdgcn_workgroup_id_x();
    unsigned at = group * 64 + lane;
    int v = x[at];
    unsigned long ballot = __builtin_amdgcn_ballot_w64(v % 3 == 0);
    unsigned rank = __builtin_amdgcn_mbcnt_hi((unsigned)(ballot >> 32), __builtin_amdgcn_mbcnt_lo((unsigned)ballot, 0));
    if (v % 3 == 0) kept[group * 64 + rank] = v;
    volatile unsigned table[40];
    for (unsigned k = 0; k < 40; k++) table[k] = k * lane;
    unsigned count = 0;
    for (unsigned n = v; n != 1; n = n & 1 ? 3 * n + 1 : n >> 1) count++;
    steps[at] = table[count % 40] + __builtin_amdgcn_ds_bpermute((63 - lane) * 4, count);
    quotient[at] = (long)v * -1000003 / (long)(lane + 1);
    ratio[at] = (double)v / (double)(lane + 3);
}
"#;

/// Code and kernel descriptor (instruction set reference §10) of an OpenCL source with one kernel.
fn compile(source: &str, wave_size: &str) -> Option<(Vec<u32>, Vec<u32>)> {
    if !zrt_needs::programs(&["clang-22", "llvm-objcopy-19"]) {
        return None;
    }
    let folder = zrt_needs::TemporaryFolder::new("compiled");
    let [text, object, binary] = ["k.cl", "k.o", "k.bin"].map(|name| folder.join(name));
    std::fs::write(&text, source).unwrap();
    let compiler = Command::new("clang-22")
        .args([
            "-x",
            "cl",
            "-cl-std=CL2.0",
            "-target",
            "amdgcn-amd-amdhsa",
            "-mcpu=gfx1201",
            "-O2",
            "-w",
            wave_size,
        ])
        .args(["-nogpulib", "-c", "-o"])
        .args([&object, &text])
        .status()
        .unwrap();
    assert!(compiler.success());
    let section = |name: &str| {
        let copier = Command::new("llvm-objcopy-19")
            .args(["-O", "binary", "-j", name])
            .args([&object, &binary])
            .status()
            .unwrap();
        assert!(copier.success());
        let bytes = std::fs::read(&binary).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    Some((section(".text"), section(".rodata")))
}

#[test]
fn a_compiled_kernel_runs() {
    for (wave_size, is_wave64) in [("-mno-wavefrontsize64", false), ("-mwavefrontsize64", true)] {
        let Some((code, descriptor)) = compile(SOURCE, wave_size) else { return };
        assert_eq!(descriptor[14] >> 10 & 1 == 0, is_wave64, "kernel_code_properties");
        runs_at_size(&code, &descriptor, is_wave64);
    }
}

fn runs_at_size(code: &[u32], descriptor: &[u32], is_wave64: bool) {
    let (rows, columns) = (13usize, 1000usize);
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code_words(code);
        let bytes = (4 * rows * columns) as u64;
        let [x, y, histogram, arguments] = [bytes, bytes, 64, 64].map(|bytes| device.buffer(bytes));
        let value = |row: usize, column: usize| ((row * 131 + column * 17) % 101) as f32 * 0.1 - 5.0;
        for at in 0..rows * columns {
            x.view.store_u32(4 * at, value(at / columns, at % columns).to_bits());
        }
        [x, y.clone(), histogram.clone()]
            .iter()
            .enumerate()
            .for_each(|(at, buffer)| arguments.view.store_u64(8 * at, buffer.va));
        arguments.view.store_u32(24, columns as u32);
        let mut dispatch = device.dispatch(&code, rows as u32, 256, &[arguments.va]);
        // Words of the descriptor: LDS bytes 0, RSRC3 11, RSRC1 12, RSRC2 13. The loader adds the LDS size.
        (dispatch.rsrc1, dispatch.rsrc3) = (descriptor[12], descriptor[11]);
        dispatch.is_wave64 = is_wave64;
        dispatch.rsrc2 = descriptor[13] | descriptor[0].div_ceil(512) << 15;
        device.run(dispatch);
        let mut expected_bins = [0; 16];
        for row in 0..rows {
            let sum: f64 = (0..columns).map(|column| f64::from(value(row, column)).powi(2)).sum();
            let scale = 1.0 / (sum / columns as f64 + 1e-5).sqrt();
            for column in 0..columns {
                let found = f32::from_bits(y.view.load_u32(4 * (row * columns + column)));
                let expected = f64::from(value(row, column)) * scale;
                assert!((f64::from(found) - expected).abs() < 1e-5, "{row},{column}: {found} for {expected}");
                expected_bins[((found * 4.0) as i32 + 8).clamp(0, 15) as usize] += 1;
            }
        }
        assert_eq!(histogram.words(0, 16), expected_bins);
    }
}

#[test]
fn a_compiled_kernel_of_64_lanes_runs() {
    let Some((code, descriptor)) = compile(SOURCE_WAVE64, "-mwavefrontsize64") else { return };
    let items = 5 * 64usize;
    let value = |at: usize| (at * 7919 % 1009 + 1) as i32;
    for config in configs() {
        let mut device = Device::new(config);
        let code = device.code_words(&code);
        let buffers = [4, 4, 4, 8, 8].map(|bytes| device.buffer((bytes * items) as u64));
        let [x, kept, steps, quotient, ratio] = &buffers;
        let (arguments, scratch) = (device.buffer(64), device.buffer(1 << 22));
        x.fill(0, (0..items).map(|at| value(at) as u32));
        buffers.iter().enumerate().for_each(|(at, buffer)| arguments.view.store_u64(8 * at, buffer.va));
        let mut dispatch = device.dispatch(&code, 5, 64, &[arguments.va]);
        (dispatch.rsrc1, dispatch.rsrc3, dispatch.is_wave64) = (descriptor[12], descriptor[11], true);
        dispatch.rsrc2 = descriptor[13] | descriptor[0].div_ceil(512) << 15;
        assert!(descriptor[1] > 160 && dispatch.rsrc2 & 1 != 0, "the array is private");
        // WAVESIZE in units of 256 bytes, for 16 waves of each engine.
        let wave_units = (64 * descriptor[1]).div_ceil(256);
        (dispatch.scratch_base_va, dispatch.tmpring_size) = (scratch.va, wave_units << 12 | 16);
        device.run(dispatch);
        let rounds = |at: usize| {
            let next = |n: &u32| (*n != 1).then(|| if n % 2 == 1 { 3 * n + 1 } else { n / 2 });
            std::iter::successors(Some(value(at) as u32), next).count() as u32 - 1
        };
        for group in 0..5 {
            let first = 64 * group;
            let expected: Vec<u32> =
                (first..first + 64).map(|at| value(at) as u32).filter(|value| value % 3 == 0).collect();
            let mut all = expected.clone();
            all.resize(64, 0);
            assert_eq!(kept.words(4 * first, 64), all, "group {group}");
        }
        for at in 0..items {
            let (lane, other) = (at % 64, at / 64 * 64 + 63 - at % 64);
            let expected = rounds(at) % 40 * lane as u32 + rounds(other);
            assert_eq!(steps.view.load_u32(4 * at), expected, "steps of {at}");
            let expected = i64::from(value(at)) * -1_000_003 / (lane as i64 + 1);
            assert_eq!(quotient.view.load_u64(8 * at) as i64, expected, "quotient of {at}");
            let expected = f64::from(value(at)) / (lane as f64 + 3.0);
            assert_eq!(f64::from_bits(ratio.view.load_u64(8 * at)), expected, "ratio of {at}");
        }
    }
}
