//! What device code prints and asserts, as users of `zrt launch` see it.
//!
//! The kernels include the device's side (`kernel_files/device_text.hip`), so that nothing but clang 22 is needed. They
//! run under the checking mode, which must find nothing: the communication between host and waves is ordered.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{Folder, compile_hip, compile_with};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DEVICE_TEXT: &str = include_str!("kernel_files/device_text.hip");
/// `__printf_alloc` for OpenCL: the same as in [`DEVICE_TEXT`].
const ALLOCATE: &str = "__attribute__((used)) global char *__printf_alloc(uint bytes) {
    global uint *buffer = ((global uint *constant *)__builtin_amdgcn_implicitarg_ptr())[9];
    uint at = __opencl_atomic_fetch_add((global atomic_uint *)buffer, bytes, memory_order_relaxed, memory_scope_device);
    return at + bytes > buffer[1] ? 0 : (global char *)(buffer + 2) + at;
}";
/// Ways to compile; each must give the same.
const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// Runs `zrt launch`; returns its document.
#[track_caller]
fn launch(arguments: &[&str], code: i32) -> Json {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.arg("launch").args(arguments).arg("--json").env("ZRT_DEVICE", "virtual");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.into()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same for a kernel that ends and breaks no rule; returns its lines.
#[track_caller]
fn lines(arguments: &[&str]) -> Vec<String> {
    let document = launch(&[arguments, &["--check"]].concat(), 0);
    let printed = document["printed"].as_str().unwrap();
    assert!(printed.is_empty() || printed.ends_with('\n'), "{printed:?}");
    printed.lines().map(str::to_owned).collect()
}

/// HIP after the device's side of printf.
fn compile(folder: &Folder, source: &str, flags: &[&str]) -> Option<String> {
    // Line 1 of the source is line 1 of the file for messages.
    let whole = format!("{DEVICE_TEXT}\n#line 1 \"kernel.hip\"\n{source}");
    compile_hip(folder, &whole, flags)
}

/// Every kind of argument, in both ways of HIP.
#[test]
fn hip_prints_in_both_ways() {
    let source = r#"
    KERNEL void print(int const *data) {
        u32 t = __builtin_amdgcn_workitem_id_x();
        printf("%u: %d %5.2f|%-6s|%c %x %lld %p %%\n", t, data[t], t / 2.0, t % 2 ? "odd" : "even", 'a' + t, 255, -1ll << 40,
               (void *)0x1000);
    }"#;
    for kind in ["hostcall", "buffered"] {
        for level in LEVELS {
            let folder = Folder::new(&format!("printing-{kind}{level}"));
            let flags = [level, &format!("-mprintf-kind={kind}")];
            let Some(object) = compile(&folder, source, &flags) else { return };
            let data = format!("in:{}", folder.words("data", &[7, -8_i32 as u32, 9, 1 << 31]));
            let text = lines(&[&object, "--grid", "1", "--block", "4", "--arg", &data]);
            let expected = [
                "0: 7  0.00|even  |a ff -1099511627776 0x1000 %",
                "1: -8  0.50|odd   |b ff -1099511627776 0x1000 %",
                "2: 9  1.00|even  |c ff -1099511627776 0x1000 %",
                "3: -2147483648  1.50|odd   |d ff -1099511627776 0x1000 %",
            ];
            // The lanes of a wave come in their order where each call is answered, else as the buffer was taken.
            let mut text = text;
            text.sort();
            assert_eq!(text, expected, "{kind} {level}");
        }
    }
}

/// LLVM up to 22 writes a string of 4, 8, … bytes shorter than it says: what follows must be right.
#[test]
fn opencl_prints_fields() {
    let source = format!(
        "{ALLOCATE}\nkernel void print(global int *data) {{
            printf(\"%d %s %v4f|%s %hhd:%v3hd %lu %s\\n\", data[0], \"four\", (float4)(1, -2.5f, 3, 4), \"abc\", (char)-3,
                   (short3)(1, -2, 3), 1ul << 40, \"eight ch\");
            printf(\"nothing\\n\");
        }}"
    );
    for level in LEVELS {
        let folder = Folder::new(&format!("printing-opencl{level}"));
        let Some(object) = compile_with(&folder, &source, &["-mcpu=gfx1201", level]) else { return };
        let data = format!("in:{}", folder.words("data", &[42]));
        let text = lines(&[&object, "--grid", "1", "--block", "1", "--arg", &data]);
        let expected = "42 four 1.000000,-2.500000,3.000000,4.000000|abc -3:1,-2,3 1099511627776 eight ch";
        assert_eq!(text, [expected, "nothing"], "{level}");
    }
}

/// Many waves ask at a time, over several schedules.
#[test]
fn many_waves_are_answered() {
    let source = r#"
    KERNEL void print(u32 *data) {
        u32 at = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
        if (at % 3 == 0) data[at] = printf("line %u\n", at);
    }"#;
    let folder = Folder::new("printing-many");
    let Some(object) = compile(&folder, source, &["-O2"]) else { return };
    let path = folder.path("data");
    let out = format!("out:{}:{path}", 4 * 64 * 20);
    let shape = ["--grid", "20", "--block", "64", "--arg", &out];
    let mut text = lines(&[&[object.as_str()], &shape[..], &["--seeds", "3"]].concat());
    text.sort();
    let mut expected: Vec<String> =
        (0..64 * 20).filter(|at| at % 3 == 0).map(|at| format!("line {at}")).collect();
    expected.sort();
    assert_eq!(text, expected);
    // printf returns how many bytes it wrote.
    for (at, word) in kernel_files::read_words(&path).into_iter().enumerate() {
        let length = if at % 3 == 0 { format!("line {at}\n").len() as u32 } else { 0 };
        assert_eq!(word, length, "work-item {at}");
    }
    // Without the checking mode waves run on several threads.
    let document = launch(&[&[object.as_str()], &shape[..]].concat(), 0);
    assert_eq!(document["printed"].as_str().unwrap().lines().count(), expected.len());
}

/// A kernel that says where it is and runs forever: the text is there while it runs.
#[test]
fn text_comes_while_the_kernel_runs() {
    let source = "KERNEL void print(u32 volatile *data) {
        printf(\"begun\\n\");
        while (data[0] == 0) {}
    }";
    let folder = Folder::new("printing-live");
    let Some(object) = compile(&folder, source, &["-O2", "-mprintf-kind=hostcall"]) else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(["launch", &object, "--grid", "1", "--block", "1", "--arg", "zero:4", "--timeout", "100"]);
    let mut child = command.env("ZRT_DEVICE", "virtual").stdout(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (came_after, is_running) = (start.elapsed(), child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((line.as_str(), is_running), ("begun\n", true));
    assert!(came_after < Duration::from_secs(90), "after {came_after:?}: when the time was over");
}

/// In text output, too, every line occurs once, those of a wave in order, and before everything else.
#[test]
fn lines_of_a_wave_stay_in_order() {
    let source = "KERNEL void print(u32 *data) {
        for (u32 turn = 0; turn < 5; ++turn) printf(\"%u %u\\n\", __builtin_amdgcn_workgroup_id_x(), turn);
    }";
    for kind in ["hostcall", "buffered"] {
        let folder = Folder::new(&format!("printing-order-{kind}"));
        let flag = format!("-mprintf-kind={kind}");
        let Some(object) = compile(&folder, source, &["-O2", &flag]) else { return };
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["launch", &object, "--grid", "6", "--block", "1", "--arg", "zero:4"]);
        let output = command.env("ZRT_DEVICE", "virtual").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 31, "{text}");
        assert!(lines[30].starts_with("print ran on "), "{text}");
        for group in 0..6 {
            let prefix = format!("{group} ");
            let of_group: Vec<&&str> = lines.iter().filter(|line| line.starts_with(&prefix)).collect();
            let expected: Vec<String> = (0..5).map(|turn| format!("{group} {turn}")).collect();
            assert_eq!(of_group, expected.iter().collect::<Vec<_>>(), "{kind}: {text}");
        }
    }
}

#[test]
fn a_failed_assertion_ends_the_run_and_says_where() {
    let source = "KERNEL void check(u32 const *data) {
        u32 t = __builtin_amdgcn_workitem_id_x();
        if (t == 0) printf(\"begun\\n\");
        assert(data[t] < 50);
    }";
    for kind in ["-mprintf-kind=hostcall", "-mprintf-kind=buffered"] {
        let folder = Folder::new(&format!("printing-assert{kind}"));
        let Some(object) = compile(&folder, source, &["-O2", kind]) else { return };
        let right = format!("in:{}", folder.words("right", &[49; 64]));
        let shape = [object.as_str(), "--grid", "1", "--block", "64", "--arg"];
        assert_eq!(lines(&[&shape[..], &[&right]].concat()), ["begun"]);

        let mut data = [0; 64];
        data[40] = 50;
        let wrong = format!("in:{}", folder.words("wrong", &data));
        let document = launch(&[&shape[..], &[&wrong]].concat(), 1);
        let said = "kernel.hip:4: void check(const u32 *): the assertion `data[t] < 50' failed";
        assert!(document["printed"].as_str().unwrap().contains(said), "{document}");
        let message = document["error"]["message"].as_str().unwrap();
        for part in [said, "s_trap 2", "in workgroup 0,0,0 wave 1"] {
            assert!(message.contains(part), "{part:?} in {message:?}");
        }
        assert_eq!(document["error"]["fault"]["wave"], 1);
        // On the terminal: the text, then the sentence.
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.arg("launch").args([&shape[..], &[&wrong]].concat()).env("ZRT_DEVICE", "virtual");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stdout).unwrap().contains(&format!("{said}\n")));
        assert!(
            String::from_utf8(output.stderr).unwrap().contains("the kernel printed before: kernel.hip:4")
        );
    }
}

/// Requests that are not served, and damage: one sentence, soon, and what was printed before.
#[test]
fn what_is_not_served_is_refused_by_name() {
    let cases = [
        ("hostcall(1, 0x1234, 0, 0, 0, 0, 0, 0, 0);", "the host function at 0x1234"),
        ("hostcall(3, 0, 4096, 0, 0, 0, 0, 0, 0);", "asks for 4096 bytes of device memory"),
        ("hostcall(4, 0, 0, 0, 0, 0, 0, 0, 0);", "address sanitizer"),
        ("hostcall(77, 0, 0, 0, 0, 0, 0, 0, 0);", "unknown host service 77"),
        ("hostcall(2, 9ul << 8, 0, 0, 0, 0, 0, 0, 0);", "message 9, which it has not begun"),
        ("printf(\"%d%n\\n\", 1, (int *)0);", "%n, which would write into the kernel's memory"),
        ("printf(\"%9999d\\n\", 1);", "a width or precision of more than 4096"),
        (
            "calls()->headers[0].next = calls()->mask + 1;
             __hip_atomic_store(&calls()->ready_stack, calls()->mask + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
             for (;;) __builtin_amdgcn_s_sleep(1);",
            "damaged the hostcall buffer",
        ),
    ];
    let folder = Folder::new("printing-refused");
    for (statement, part) in cases {
        let source = format!("KERNEL void ask() {{ printf(\"before\\n\"); {statement} }}");
        let Some(object) = compile(&folder, &source, &["-O2"]) else { return };
        let document = launch(&[&object, "--grid", "1", "--block", "1", "--timeout", "60"], 1);
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{part:?} in {message:?}");
        assert!(document["printed"].as_str().unwrap().starts_with("before\n"), "{document}");
    }
}

#[test]
fn a_full_printf_buffer_is_told() {
    let source = r#"KERNEL void fill() {
        for (int i = 0; i < 400; ++i) printf("%d %d %d %d %d %d\n", i, 0, 0, 0, 0, 0);
    }"#;
    let folder = Folder::new("printing-full");
    let Some(object) = compile(&folder, source, &["-O2", "-mprintf-kind=buffered"]) else { return };
    let document = launch(&[&object, "--grid", "1", "--block", "64"], 0);
    assert_eq!(document["printed"].as_str().unwrap().lines().count(), 64 * 400);
    let document = launch(&[&object, "--grid", "16", "--block", "64"], 1);
    let message = document["unexpected"][0].as_str().unwrap();
    assert!(message.contains("more than the 4194296 bytes that the printf buffer holds"), "{message}");
    // 60 bytes of a message: control word, hash, six numbers.
    assert_eq!(document["printed"].as_str().unwrap().lines().count(), 4_194_296 / 60);
}

/// Services that do not exist: null, and named where a kernel stops at one.
#[test]
fn absent_services_are_named_where_they_are_missed() {
    // Quadwords of the implicit arguments, code object version 5.
    let services = [
        (11, "hidden_multigrid_sync_arg"),
        (12, "hidden_heap_v1"),
        (13, "hidden_default_queue"),
        (14, "hidden_completion_action"),
        (25, "hidden_queue_ptr"),
    ];
    let folder = Folder::new("printing-absent");
    for (quadword, name) in services {
        let source = format!(
            "extern \"C\" __attribute__((global)) void touch(unsigned *to) {{
                *to = *((unsigned *const *)__builtin_amdgcn_implicitarg_ptr())[{quadword}];
            }}"
        );
        let Some(object) = compile_hip(&folder, &source, &["-O2"]) else { return };
        let document = launch(&[&object, "--grid", "1", "--block", "1", "--arg", "zero:4"], 1);
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.contains("null pointer") && message.contains(name), "{name}: {message}");
        assert!(
            !message.contains("hidden_printf_buffer") && !message.contains("hidden_hostcall"),
            "{message}"
        );
    }
}

/// A kernel that ends, and whose messages cannot be read to the end: what it computed is written all the same.
#[test]
fn outputs_stay_where_messages_do_not() {
    let source = format!(
        "{ALLOCATE}
        int printf(constant const char *format, ...) __attribute__((format(printf, 1, 2)));
        kernel void print(global uint *data) {{
            printf(\"%u\\n\", 7);
            ((global uint *constant *)__builtin_amdgcn_implicitarg_ptr())[9][0] = 0x7fffffff;
            data[0] = 42;
        }}"
    );
    let folder = Folder::new("printing-kept");
    let Some(object) = compile_with(&folder, &source, &["-mcpu=gfx1201", "-O2"]) else { return };
    let out = format!("out:4:{}", folder.path("data"));
    let document = launch(&[&object, "--grid", "1", "--block", "1", "--arg", &out], 1);
    assert_eq!(kernel_files::read_words(&folder.path("data")), [42]);
    assert_eq!((&document["printed"], &document["error"]), (&Json::from("7\n"), &Json::Null));
    let told = document["unexpected"][0].as_str().unwrap();
    assert!(
        told.starts_with("what the kernels printed is not whole: the kernel printed more than"),
        "{told}"
    );
}
