//! `zrt run` as its users run it: scripts of launches over shared buffers, on the virtual device.
//!
//! `double` of `loader/tests/data/double.s` doubles a buffer of 32 dwords in one wave; others are compiled where
//! clang-22 is installed.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile, read_words};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

/// A folder with `double.o`, and `data` of 32 dwords.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.words("double.o", &DOUBLE_OBJECT);
    folder.words("data", &data());
    folder
}

fn data() -> Vec<u32> {
    (0..32).map(|index| index * 1000 + 7).collect()
}

fn times(factor: u32) -> Vec<u32> {
    data().iter().map(|value| value * factor).collect()
}

fn zrt(folder: &Folder, script: &str, flags: &[&str]) -> Output {
    let path = folder.write("script.toml", script.as_bytes());
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(["run", &path]).args(flags).env("ZRT_DEVICE", "virtual").output().unwrap()
}

/// Runs a script that must end with `code`; returns its document.
#[track_caller]
fn run(folder: &Folder, script: &str, flags: &[&str], code: i32) -> Json {
    let output = zrt(folder, script, &[flags, &["--json"]].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a script that must be refused with exit code 2 and one line that contains `parts`.
#[track_caller]
fn refused(folder: &Folder, script: &str, parts: &[&str]) {
    let output = zrt(folder, script, &[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{script}: {text}");
    assert!(output.stdout.is_empty(), "it wrote to standard output");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} in {text:?}"));
}

/// The findings' rules, each with its step.
fn told(report: &Json) -> Vec<(&str, &Json)> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|finding| (finding["rule"].as_str().unwrap(), &finding["step"])).collect()
}

/// A launch of `double` over `data`.
const DOUBLE: &str = "launch = { file = \"double.o\", grid = 1, block = 32, args = [\"buffer:data\"] }\n";

#[test]
fn launches_share_a_buffer_in_their_order() {
    let folder = folder("run-order");
    let script = format!("[buffers]\ndata = \"inout:data\"\n[[step]]\n{DOUBLE}[[step]]\n{DOUBLE}");
    let report = run(&folder, &script, &["--seeds", "4"], 0);
    assert_eq!(read_words(&folder.path("data")), times(4));
    assert_eq!((&report["dispatches"], &report["submissions"]), (&json!(2), &json!(1)), "one graph");
    assert_eq!((&report["findings"], &report["differing_seed"]), (&json!([]), &Json::Null));
    assert_eq!(report["outputs"][0]["buffer"], "data");
    assert_eq!(folder.names(), ["data", "double.o", "script.toml"], "no temporary file stays");
}

/// Without the wait the second launch reads what the first one may not have written: a race, in the step that it is in.
#[test]
fn launches_that_do_not_wait_race() {
    let folder = folder("run-race");
    let racing = DOUBLE.replace("grid", "wait = false, grid");
    let script =
        |second: &str| format!("[buffers]\ndata = \"inout:data\"\n[[step]]\n{DOUBLE}\n[[step]]\n{second}");
    assert_eq!(told(&run(&folder, &script(DOUBLE), &["--seeds", "4"], 0)), []);
    folder.words("data", &data());
    let report = run(&folder, &script(&racing), &["--seeds", "4"], 1);
    let step = json!({"step": "2", "line": 6, "turns": []});
    let races: Vec<_> = told(&report).into_iter().filter(|(rule, _)| *rule == "race").collect();
    assert!(!races.is_empty(), "{report}");
    assert!(races.iter().any(|(_, at)| **at == step), "{report}");

    let text = String::from_utf8(zrt(&folder, &script(&racing), &["--check"]).stdout).unwrap();
    assert!(text.contains("\n    in step 2 (line 6)\n"), "{text}");
}

#[test]
fn loops_turn_and_their_variables_are_numbers() {
    let folder = folder("run-loop");
    // Three turns, in each of which the host writes a dword for the kernel to double, and checks the result.
    let script = r#"
[buffers]
data = "zero:32*u32"
all = "out:32*u32:all.npy"

[[step]]
[step.repeat]
times = 3
variable = "turn"
[[step.repeat.steps]]
write = { buffer = "data+turn*4", value = "u32:turn*100+1" }
[[step.repeat.steps]]
launch = { file = "double.o", grid = 1, block = 32, args = ["buffer:data"] }
[[step.repeat.steps]]
dump = { buffer = "data", file = "after-{turn}.raw" }

[[step]]
copy = { from = "data", to = "all+4", bytes = 12 }
"#;
    let report = run(&folder, script, &["--seeds", "2"], 0);
    assert_eq!(report["dispatches"], 3);
    let first = |file: &str| read_words(&folder.path(file))[..3].to_vec();
    assert_eq!(first("after-0.raw"), [2, 0, 0]);
    assert_eq!(first("after-1.raw"), [4, 202, 0]);
    assert_eq!(first("after-2.raw"), [8, 404, 402]);
    // After the header of 128 bytes.
    assert_eq!(read_words(&folder.path("all.npy"))[32..37], [0, 8, 404, 402, 0]);
    assert_eq!(report["outputs"][1]["step"], json!({"step": "1.3", "line": 14, "turns": [1]}));
}

#[test]
fn checks_tell_what_a_buffer_holds() {
    let folder = folder("run-check");
    folder.words("doubled", &times(2));
    let script = |check: &str| {
        let check = check.replace("BUFFER", "buffer = \"data\"");
        format!("[buffers]\ndata = \"inout:data\"\n[[step]]\n{DOUBLE}[[step]]\ncheck = {{ {check} }}\n")
    };
    let data = |check: &str, code| {
        folder.words("data", &self::data());
        run(&folder, &script(check), &[], code)["unexpected"].clone()
    };
    assert_eq!(data("BUFFER, expect = \"doubled\"", 0), json!([]));
    let difference =
        "step 2 (line 5): buffer data is not 14: 31 of 32 differ, first [1]: 2014 where 14 is expected";
    assert_eq!(data("BUFFER, equals = \"u32:14\"", 1), json!([difference]));
    assert_eq!(data("BUFFER, equals = \"u32:31014\", tolerance = 31000", 0), json!([]));
    assert_eq!(data("BUFFER, equals = \"bytes:00\"", 1).as_array().unwrap().len(), 1);
}

/// Two tolerances of one file, and buffers of two lengths: each check is one of its own.
#[test]
fn checks_of_one_file_are_told_apart() {
    let folder = folder("run-tolerances");
    let mut header =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<u4', 'fortran_order': False, 'shape': (32,)}".to_vec();
    header.resize(127, b' ');
    header.push(b'\n');
    let numbers: Vec<u8> = data().iter().flat_map(|value| (value + 3).to_le_bytes()).collect();
    folder.write("near.npy", &[header, numbers].concat());
    let check = |tolerance: u32| {
        format!(
            "[[step.repeat.steps]]\ncheck = {{ buffer = \"data\", expect = \"near.npy\", tolerance = {tolerance} }}\n"
        )
    };
    let script = format!(
        "[buffers]\ndata = \"inout:data\"\nhalf = \"zero:64\"\n[[step]]\n{DOUBLE}[[step]]\n\
         write = {{ buffer = \"data\", value = \"value:data\" }}\n[[step]]\nrepeat.times = 2\n{}{}",
        check(3),
        check(2)
    );
    let report = run(&folder, &script, &[], 1);
    let unexpected = report["unexpected"].as_array().unwrap();
    assert_eq!(unexpected.len(), 2, "{report}");
    assert!(unexpected.iter().all(|line| line.as_str().unwrap().starts_with("step 3.2 turn ")), "{report}");
    let other =
        "[[step.repeat.steps]]\ncheck = { buffer = \"half\", expect = \"near.npy\", tolerance = 3 }\n";
    refused(&folder, &(script + other), &["step 3.3 turn 0", "near.npy has 128 bytes, and buffer half 64"]);
}

/// A step of Jacobi's method, from one buffer into the other.
const RELAX: &str = "
kernel void relax(global const int *from, global int *to, uint n) {
    uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    int left = i == 0 ? 0 : from[i - 1], right = i + 1 == n ? 0 : from[i + 1];
    to[i] = left + right;
}
kernel void produce(global uint *data, global uint *flag) {
    uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    data[i] = i * 3;
    if (i == 0) flag[0] = 1;
}
kernel void consume(global const uint *data, global uint *sum) {
    uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    sum[i] = data[255 - i] + 1;
}";

/// Two buffers that are swapped: in one turn from `a` to `b` and back.
#[test]
fn buffers_change_places_in_a_loop() {
    let folder = folder("run-ping-pong");
    if compile(&folder, RELAX).is_none() {
        return;
    }
    let start: Vec<u32> = (0..256).map(|index| (index * 7 + 3) % 11).collect();
    folder.words("a.raw", &start);
    let launch = |from: &str, to: &str, wait: &str| {
        format!(
            "[[step.repeat.steps]]\nlaunch = {{ file = \"kernel.co\", kernel = \"relax\", grid = 4, block = 64, \
             args = [\"buffer:{from}\", \"buffer:{to}\", \"u32:256\"]{wait} }}\n"
        )
    };
    let script = |wait: &str| {
        let (there, back) = (launch("a", "b", ""), launch("b", "a", wait));
        format!(
            "[buffers]\na = \"inout:a.raw\"\nb = \"out:1k:b.raw\"\n[[step]]\nrepeat.times = 5\n{there}{back}"
        )
    };
    let mut expected = start.clone();
    let relax = |cells: &[u32]| -> Vec<u32> {
        let at = |index: Option<usize>| index.and_then(|index| cells.get(index)).copied().unwrap_or(0);
        (0..cells.len()).map(|i| at(i.checked_sub(1)).wrapping_add(at(Some(i + 1)))).collect()
    };
    (0..10).for_each(|_| expected = relax(&expected));
    let report = run(&folder, &script(""), &["--seeds", "3"], 0);
    assert_eq!(read_words(&folder.path("a.raw")), expected);
    assert_eq!((&report["dispatches"], &report["differing_seed"]), (&json!(10), &Json::Null));

    folder.words("a.raw", &start);
    let report = run(&folder, &script(", wait = false"), &["--seeds", "3"], 1);
    let races: Vec<_> = told(&report).into_iter().filter(|(rule, _)| *rule == "race").collect();
    assert!(!races.is_empty(), "{report}");
    assert!(races.iter().all(|(_, step)| step["step"].as_str().unwrap().starts_with("1.")), "{report}");
}

/// What one kernel stores another one loads: after the graph's wait, and without it.
#[test]
fn a_consumer_waits_for_its_producer() {
    let folder = folder("run-producer");
    if compile(&folder, RELAX).is_none() {
        return;
    }
    let script = |wait: bool| {
        format!(
            r#"
[buffers]
data = "zero:256*u32"
flag = "zero:4"
sum = "out:1k:sum.raw"

[[step]]
launch = {{ file = "kernel.co", kernel = "produce", grid = 4, block = 64, args = ["buffer:data", "buffer:flag"] }}

[[step]]
[step.launch]
file = "kernel.co"
kernel = "consume"
grid = [4]
block = [64, 1, 1]
args = ["buffer:data", "buffer:sum"]
wait = {wait}
"#
        )
    };
    let right = run(&folder, &script(true), &["--seeds", "8"], 0);
    assert_eq!(right["findings"], json!([]));
    let expected: Vec<u32> = (0..256).map(|i| (255 - i) * 3 + 1).collect();
    assert_eq!(read_words(&folder.path("sum.raw")), expected);
    let wrong = run(&folder, &script(false), &["--seeds", "8"], 1);
    let race =
        wrong["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "race").unwrap();
    let kernels = [&race["place"]["kernel"], &race["other"]["kernel"]].map(|name| name.as_str().unwrap());
    assert!(kernels.contains(&"produce") && kernels.contains(&"consume"), "{race}");
    assert!(["1", "2"].contains(&race["step"]["step"].as_str().unwrap()), "{race}");
    assert!(race["buffer"].as_str().unwrap().starts_with("buffer data"), "{race}");
}

/// A kernel that faults is reported with its step and turn.
#[test]
fn a_fault_is_told_with_its_step() {
    let folder = folder("run-fault");
    let mut object = DOUBLE_OBJECT;
    // A load from 4 bytes before the buffer.
    object[0x46] = 0xFFFF_FC01;
    folder.words("before.o", &object);
    let script = format!(
        "[buffers]\ndata = \"inout:data\"\n[[step]]\n{DOUBLE}[[step]]\nrepeat.times = 2\n[[step.repeat.steps]]\n{}",
        DOUBLE.replace("double.o", "before.o")
    );
    let output = zrt(&folder, &script, &[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("kernel double of step 2.1 turn 0 (line 7) did not run to its end"), "{text}");
    assert!(text.contains("4 bytes before the beginning of buffer data"), "{text}");
    assert_eq!(read_words(&folder.path("data")), data(), "nothing is written");
    let report = run(&folder, &script, &["--check"], 1);
    assert_eq!(told(&report), [("bounds", &json!({"step": "2.1", "line": 7, "turns": [0]}))]);
    assert!(report["failure"].as_str().unwrap().starts_with("kernel double of step 2.1 turn 0"), "{report}");
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let folder = folder("run-bad");
    let with = |step: &str| format!("[buffers]\ndata = \"inout:data\"\n[[step]]\n{step}\n");
    for (step, parts) in [
        ("lunch = {}", &[":4:1: there is no key \"lunch\" here", "launch, repeat, check"][..]),
        ("", &[":3:1: a step is one of launch", "this is 0"]),
        ("launch = {}", &[":4:10: file is missing"]),
        ("launch = 5", &[":4:10: launch must be a table"]),
        ("launch = { file = \"double.o\", grid = 0 }", &[":4:38: grid must be a number from 1"]),
        ("launch = { file = \"double.o\", grid = [1, 1, 1, 1] }", &["one to three numbers"]),
        (
            "launch = { file = \"double.o\", grid = 1, block = 65, args = [\"buffer:data\"] }",
            &["step 1 (line 3)"],
        ),
        ("launch = { file = \"double.o\", grid = 1 }", &[":3:1: step 1 (line 3): block is missing"]),
        ("launch = { file = \"absent.o\", grid = 1 }", &["absent.o cannot be read"]),
        (
            "launch = { file = \"double.o\", grid = 1, args = [\"buffer:dta\"] }",
            &["no buffer \"dta\"", "data"],
        ),
        (
            "launch = { file = \"double.o\", grid = 1, args = [\"zero:64\"] }",
            &["buffers are made in [buffers]"],
        ),
        (
            "launch = { file = \"double.o\", grid = 1, args = [\"u32:turn\"] }",
            &["no loop with variable \"turn\""],
        ),
        (
            "launch = { file = \"double.o\", grid = 1, block = 32, args = [\"buffer:data+128\"] }",
            &["128 bytes"],
        ),
        ("launch = { file = \"double.o\", grid = 1, vgprs = 9 }", &["vgprs is for raw code (.bin)"]),
        ("launch = { file = \"double.o\", grid = 1, wave = 64, block = 64 }", &["wave32, not wave64"]),
        ("repeat = { times = 0, steps = [] }", &[":4:20: times must be a number from 1 to 65536"]),
        ("repeat = { times = 99999, steps = [] }", &["times must be a number from 1 to 65536"]),
        ("repeat = { times = 2, steps = [] }", &["steps must be an array of steps, and is empty"]),
        ("check = { buffer = \"data\" }", &["expect = \"FILE\" and equals"]),
        ("check = { buffer = \"data\", expect = \"double.o\" }", &["and buffer data 128"]),
        (
            "copy = { from = \"data+64\", to = \"data\", bytes = 65 }",
            &["65 byte(s) from offset 64 on", "buffer data"],
        ),
        ("write = { buffer = \"data+127\", value = \"u16:1\" }", &["2 byte(s) from offset 127 on"]),
        ("dump = { buffer = \"data\", file = \"nowhere/x\" }", &[":3:1: ", "cannot be written"]),
        ("dump = { buffer = \"data\", file = \"{turn}\" }", &["only variables of loops"]),
        (
            "repeat.times = 2\n[[step.repeat.steps]]\ndump = { buffer = \"data\", file = \"x\" }",
            &[":5:1: step 1.1 turn 1 (line 5): ", "x is written twice", "by its variable"],
        ),
        (
            "write = { buffer = \"data\", value = \"u8:256\" }",
            &["\"u8:256\" is 256, which is not of type u8"],
        ),
        ("copy = = 1", &[":4:8: this is not TOML"]),
    ] {
        refused(&folder, &with(step), parts);
    }
    refused(&folder, "", &[":1:1: there is no [[step]]"]);
    refused(
        &folder,
        "[buffers]\ndata = \"out:0:x\"\n[[step]]\n",
        &[":2:8: data is \"out:0:x\", but must be out:SIZE"],
    );
    refused(&folder, "[buffers]\nd-a = \"zero:4\"\n[[step]]\n", &[":2:1: \"d-a\" is not a name"]);
    refused(&folder, "[buffers]\nd = \"u32:4\"\n[[step]]\n", &[":2:5: d must be a buffer"]);
    // Sixteen thousand turns of two steps are more than are executed; the file is not read that often before.
    let large = "repeat = { times = 65536, steps = [{ write = { buffer = \"data\", value = \"u8:1\" } }] }";
    refused(&folder, &with(large), &["more than 16384 steps are executed"]);
    let launches = format!("repeat.times = 4097\n[[step.repeat.steps]]\n{DOUBLE}");
    refused(&folder, &with(&launches), &["more than 4096 launches are executed"]);
    let deep = "repeat = { times = 1, steps = [{ ".repeat(9) + &DOUBLE.replace('\n', "") + &"}] }".repeat(9);
    refused(&folder, &with(&deep), &["more than 8 loops are inside of each other"]);
    let deepest = "repeat = { times = 1, steps = [{ ".repeat(200);
    refused(&folder, &with(&deepest), &["this is not TOML"]);
    refused(
        &folder,
        &format!("#{}", "x".repeat(256 << 10)),
        &["has more than the 262144 bytes that a script may have"],
    );
    assert_eq!(read_words(&folder.path("data")), data(), "nothing ran");
}

/// The number of a launch counts all that were there before, in whichever submission.
#[test]
fn launches_are_numbered_through_the_script() {
    let folder = folder("run-numbers");
    let source = "ulong dispatch_id(void) __asm(\"llvm.amdgcn.dispatch.id\");
    kernel void number(global ulong *out, uint at) { out[at] = dispatch_id() + 1; }";
    if compile(&folder, source).is_none() {
        return;
    }
    let launch = |at: u32| {
        format!(
            "[[step]]\nlaunch = {{ file = \"kernel.co\", grid = 1, block = 1, args = [\"buffer:out\", \"u32:{at}\"] }}\n"
        )
    };
    let write = "[[step]]\nwrite = { buffer = \"out+24\", value = \"u64:9\" }\n";
    let script = format!("[buffers]\nout = \"out:32:o\"\n{}{}{write}{}", launch(0), launch(1), launch(2));
    let report = run(&folder, &script, &[], 0);
    assert_eq!(report["submissions"], 2);
    assert_eq!(read_words(&folder.path("o")), [1, 0, 2, 0, 3, 0, 9, 0]);
}

/// All submissions share the time limit, and the reported time is that of all of them.
#[test]
fn the_time_of_all_launches_is_told() {
    let folder = folder("run-time");
    folder.words("loop.bin", &[0xBFA0_FFFF]);
    let script = format!(
        "[buffers]\ndata = \"inout:data\"\n[[step]]\nrepeat.times = 40\n[[step.repeat.steps]]\n{DOUBLE}\
         [[step.repeat.steps]]\nwrite = {{ buffer = \"data\", value = \"u32:1\" }}\n\
         [[step]]\nlaunch = {{ file = \"loop.bin\", grid = 1, block = 32 }}\n"
    );
    let output = zrt(&folder, &script, &["--timeout", "1"]);
    let text = String::from_utf8(output.stderr).unwrap();
    let (_, time) = text.split_once("did not finish within ").unwrap_or_else(|| panic!("{text}"));
    let time: u32 = time.split(' ').next().unwrap().parse().unwrap();
    assert!((1000..2000).contains(&time), "{text}");
}

/// Scratch belongs to a kernel: two of its launches at a time would share it.
#[test]
fn kernels_with_scratch_wait() {
    let folder = folder("run-scratch");
    let source = include_str!("../../loader/tests/data/kernels.cl");
    if compile(&folder, source).is_none() {
        return;
    }
    let script = |wait: bool| {
        format!(
            "[buffers]\nout = \"out:1k:o\"\n[[step]]\nlaunch = {{ file = \"kernel.co\", kernel = \"scratch\", grid = 4, \
             block = 64, args = [\"buffer:out\", \"u32:5\"], wait = {wait} }}\n"
        )
    };
    refused(&folder, &script(false), &["kernel scratch uses scratch memory"]);
    run(&folder, &script(true), &["--check"], 0);
    let expected: Vec<u32> = (0..256).map(|id| (0..5).map(|i| ((i * 7 + id % 64) & 31) * 5).sum()).collect();
    assert_eq!(read_words(&folder.path("o")), expected);
}
