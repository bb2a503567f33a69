//! HIP as clang 22 compiles it, without AMD's headers and libraries: launched by `zrt launch`, at both ends of
//! optimisation.
//!
//! What is expected is computed here, from the language's rules. The fields of the implicit arguments have the places
//! of LLVM's "User Guide for AMDGPU Backend", code object version 5.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{Folder, compile_hip, read_words};
use std::process::Command;

/// Words of HIP that its headers define, and what the kernels have in common.
const PRELUDE: &str = "
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long u64;
__device__ inline u32 thread(int axis) {
    return axis == 0 ? __builtin_amdgcn_workitem_id_x() : axis == 1 ? __builtin_amdgcn_workitem_id_y()
                                                                    : __builtin_amdgcn_workitem_id_z();
}
__device__ inline u32 block(int axis) {
    return axis == 0 ? __builtin_amdgcn_workgroup_id_x() : axis == 1 ? __builtin_amdgcn_workgroup_id_y()
                                                                     : __builtin_amdgcn_workgroup_id_z();
}
__device__ inline u32 block_size(int axis) {
    return axis == 0 ? __builtin_amdgcn_workgroup_size_x() : axis == 1 ? __builtin_amdgcn_workgroup_size_y()
                                                                       : __builtin_amdgcn_workgroup_size_z();
}
__device__ inline u32 index() {
    u32 i = 0;
    u32 const *blocks = (u32 const *)__builtin_amdgcn_implicitarg_ptr();
    for (int axis = 2; axis >= 0; --axis)
        i = i * blocks[axis] * block_size(axis) + block(axis) * block_size(axis) + thread(axis);
    return i;
}
__device__ inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");
}
";

/// Ways to compile; each must give the same.
const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// Runs `zrt launch` on the virtual device under the checking mode, which must find nothing.
#[track_caller]
fn launch(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    let output =
        command.arg("launch").args(arguments).arg("--check").env("ZRT_DEVICE", "virtual").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(output.stdout), text(output.stderr));
}

/// Compiles `source` after the prelude at every level, and runs `case` with each.
fn at_every_level(name: &str, source: &str, case: impl Fn(&Folder, &str)) {
    for level in LEVELS {
        let folder = Folder::new(&format!("hip-{name}{level}"));
        let Some(object) = compile_hip(&folder, &format!("{PRELUDE}{source}"), &[level]) else { return };
        case(&folder, &object);
    }
}

#[test]
fn threads_and_blocks_have_their_numbers() {
    let source = "extern \"C\" __global__ void number(u32 *to) {
        u32 at = index();
        for (int axis = 0; axis < 3; ++axis) {
            to[at * 6 + axis] = thread(axis);
            to[at * 6 + 3 + axis] = block(axis);
        }
    }";
    at_every_level("numbers", source, |folder, object| {
        let path = folder.path("to");
        let argument = format!("out:{}:{path}", 4 * 6 * (3 * 4) * (2 * 3) * (2 * 2));
        launch(&[object, "--grid", "3,2,2", "--block", "4,3,2", "--arg", &argument]);
        let words = read_words(&path);
        for (at, six) in words.chunks_exact(6).enumerate() {
            // The grid is 12 × 6 × 4 threads, x first.
            let position = [at % 12, at / 12 % 6, at / 72].map(|number| number as u32);
            let [x, y, z] = position;
            assert_eq!(six, [x % 4, y % 3, z % 2, x / 4, y / 3, z / 2], "thread {at}");
        }
        assert_eq!(words.len(), 6 * 288);
    });
}

#[test]
fn values_of_every_kind_arrive() {
    let source = "
    struct Pair { short a; double b; char c; };
    struct Nested { Pair pairs[2]; struct { u8 x; float y; } inner; };
    enum class Colour : u16 { red = 7, blue = 60000 };
    extern \"C\" __global__ void sum(double *to, bool truth, signed char i8, u8 u8_, short i16, u16 u16_, int i32, u32 u32_,
                                   long i64, u64 u64_, _Float16 f16, float f32, double f64, Nested nested, Colour colour) {
        double all[] = {truth ? 1. : 0., (double)i8, (double)u8_, (double)i16, (double)u16_, (double)i32, (double)u32_,
                        (double)i64, (double)u64_, (double)f16, (double)f32, f64, (double)nested.pairs[0].a,
                        nested.pairs[1].b, (double)nested.pairs[1].c, (double)nested.inner.x, (double)nested.inner.y,
                        (double)(u16)colour};
        for (u32 i = 0; i < sizeof all / sizeof all[0]; ++i) to[i] = all[i];
    }";
    at_every_level("values", source, |folder, object| {
        let path = folder.path("to");
        let to = format!("out:{}:{path}", 8 * 18);
        // Two pairs of 24 bytes, then a byte, and a float at the next multiple of four.
        let mut nested = Vec::new();
        for (a, b, c) in [(-300_i16, 0.5_f64, 1_u8), (9, -1e300, 2)] {
            nested.extend_from_slice(
                &[&a.to_le_bytes()[..], &[0; 6], &b.to_le_bytes(), &[c], &[0; 7]].concat(),
            );
        }
        nested.extend_from_slice(&[&[200, 0, 0, 0][..], &2.25_f32.to_le_bytes()].concat());
        let hex: String = nested.iter().map(|byte| format!("{byte:02x}")).collect();
        let nested = format!("bytes:{hex}");
        let values = [
            &to,
            "u8:1",
            "i8:-5",
            "u8:250",
            "i16:-32768",
            "u16:65535",
            "i32:-7",
            "u32:4000000000",
            "i64:-8",
            "u64:9007199254740992",
            "f16:1.5",
            "f32:-0.25",
            "f64:1e-300",
            &nested,
            "u16:60000",
        ];
        let mut arguments = vec![object, "--grid", "1", "--block", "1"];
        for value in values {
            arguments.extend(["--arg", value]);
        }
        launch(&arguments);
        let bytes = std::fs::read(&path).unwrap();
        let numbers: Vec<f64> =
            bytes.chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect();
        let expected = [
            1.0,
            -5.0,
            250.0,
            -32768.0,
            65535.0,
            -7.0,
            4e9,
            -8.0,
            9_007_199_254_740_992.0,
            1.5,
            -0.25,
            1e-300,
            -300.0,
            -1e300,
            2.0,
            200.0,
            2.25,
            60000.0,
        ];
        assert_eq!(numbers, expected);
    });
}

#[test]
fn shared_memory_is_of_both_kinds() {
    let source = "
    extern __shared__ u32 more[];
    extern \"C\" __global__ void reverse(u32 *data) {
        __shared__ u32 fixed[64];
        u32 t = thread(0), at = block(0) * 64 + t;
        fixed[t] = data[at];
        more[t] = 1000 * t;
        barrier();
        data[at] = fixed[63 - t] + more[t ^ 1];
        if (t == 0) data[128 + block(0)] = ((u32 const *)__builtin_amdgcn_implicitarg_ptr())[30];
    }";
    at_every_level("shared", source, |folder, object| {
        let data = folder.words("data", &(0..130).collect::<Vec<u32>>());
        let argument = format!("inout:{data}");
        launch(&[object, "--grid", "2", "--block", "64", "--lds", "256", "--arg", &argument]);
        let words = read_words(&data);
        for (at, word) in words[..128].iter().enumerate() {
            let (t, base) = (at as u32 % 64, at as u32 / 64 * 64);
            assert_eq!(*word, base + 63 - t + 1000 * (t ^ 1), "element {at}");
        }
        // hidden_dynamic_lds_size is 120 bytes after the first implicit argument.
        assert_eq!(words[128..], [256, 256]);
    });
}

#[test]
fn globals_templates_and_calls_work() {
    let source = "
    __device__ u32 counter = 40;
    __attribute__((constant)) u32 table[4] = {2, 3, 5, 7};
    template <class T, int N> struct Sum {
        T values[N];
        __device__ __attribute__((noinline)) T over(T const *from) const {
            T sum = 0;
            for (int i = 0; i < N; ++i) sum += values[i] * from[i];
            return sum;
        }
    };
    template <class T> __device__ __attribute__((noinline)) T twice(T (*function)(T), T value) {
        return function(function(value));
    }
    __device__ u32 triple(u32 value) { return 3 * value; }
    template <class T> __global__ void apply(T *to, Sum<T, 4> sum) {
        u32 before = __hip_atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        to[before - 40] = sum.over(table) + twice(triple, thread(0) & 0);
        if (before == 103) to[64] = counter;
    }
    template __global__ void apply<u32>(u32 *, Sum<u32, 4>);";
    at_every_level("globals", source, |folder, object| {
        let path = folder.path("to");
        let to = format!("out:260:{path}");
        // 10, 20, 30, 40 as words.
        let sum = "bytes:0a000000140000001e00000028000000";
        launch(&[object, "--grid", "1", "--block", "64", "--arg", &to, "--arg", sum]);
        let words = read_words(&path);
        assert_eq!(words[..64], [10 * 2 + 20 * 3 + 30 * 5 + 40 * 7; 64]);
        assert_eq!(words[64], 104);
    });
}

/// No cooperative launch: the multigrid argument is null, and grid code sees that from the pointer.
#[test]
fn absent_services_are_null_and_the_shape_is_told() {
    let source = "extern \"C\" __global__ void copy(u32 *to) {
        u32 const *from = (u32 const *)__builtin_amdgcn_implicitarg_ptr();
        if (block(0) == 4) to[thread(0)] = from[thread(0)];
    }";
    at_every_level("implicit", source, |folder, object| {
        let path = folder.path("to");
        let to = format!("out:256:{path}");
        launch(&[object, "--grid", "5", "--block", "64", "--arg", &to]);
        let words = read_words(&path);
        assert_eq!(words[..4], [5, 1, 1, 1 << 16 | 64]);
        // Multigrid, heap, default queue, completion action: 88 to 120. The queue at 200.
        assert_eq!(words[22..30], [0; 8]);
        assert_eq!(words[50..52], [0, 0]);
    });
}
