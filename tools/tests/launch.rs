//! `zrt launch` as its users run it, on the virtual device: code objects, `.zrt`, raw code, and every bad input.
//!
//! clang-22 is used if it is installed; `ZRT_REQUIRE_LLVM` makes its absence a failure.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile};
use serde_json::Value as Json;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Command, Output};
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_loader::{ArgumentValue, DynamicLds, Geometry, Program, RawOptions};
use zrt_tools::launch::{self, LaunchArgument, LaunchRequest};

const KERNELS: &str = include_str!("../../loader/tests/data/kernels.cl");
/// The code of `double.s`: 13 dwords at 0x100 of the object.
const DOUBLE_CODE: std::ops::Range<usize> = 0x40..0x40 + 13;

fn little_endian(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}

fn double() -> Vec<u8> {
    little_endian(&DOUBLE_OBJECT)
}

fn zrt(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.arg("launch").args(arguments).env("ZRT_DEVICE", "virtual").output().unwrap()
}

/// Runs a launch that must succeed; returns its JSON.
fn launch(arguments: &[&str]) -> Json {
    let output = zrt(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a launch that must be refused with exit code 2 and one line that contains `parts`.
#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    failed(arguments, 2, parts);
}

#[track_caller]
fn failed(arguments: &[&str], code: i32, parts: &[&str]) {
    let output = zrt(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
    if code == 2 {
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    }
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[test]
fn an_assembled_object_changes_a_file_in_place() {
    let folder = Folder::new("launch-object");
    let object = folder.write("double.o", &double());
    let data: Vec<u32> = (0..32).map(|index| index * 1000 + 7).collect();
    let file = folder.write("data", &little_endian(&data));
    let report =
        launch(&[&object, "--grid", "1,1,1", "--block", "32,1,1", "--arg", &format!("inout:{file}")]);
    let doubled: Vec<u32> = data.iter().map(|value| value * 2).collect();
    assert_eq!(words(&std::fs::read(&file).unwrap()), doubled);
    assert_eq!(report["device"], "Virtual R9700 (gfx1201)");
    assert_eq!((&report["kernel"], &report["dispatches"]), (&"double".into(), &1.into()));
    // One indirect buffer; its dispatch takes eight packets, and the ring has its own.
    assert_eq!(report["submissions"], 1);
    assert!(report["packets"].as_u64().unwrap() >= 8, "{report}");
    // Eight instructions of one wave.
    assert_eq!(report["wave_instructions"], 8);
    let output = &report["outputs"][0];
    assert_eq!((&output["argument"], &output["bytes"]), (&0.into(), &128.into()));
    assert_eq!(output["path"], file.as_str());
    assert_eq!(folder.names(), ["data", "double.o"], "no temporary file stays");
}

#[test]
fn raw_code_takes_its_registers_from_the_flags() {
    let folder = Folder::new("launch-raw");
    let code = folder.write("double.bin", &little_endian(&DOUBLE_OBJECT[DOUBLE_CODE]));
    let file = folder.write("data", &little_endian(&[5; 32]));
    let argument = format!("inout:{file}");
    let flags = ["--wave", "32", "--vgprs", "3", "--user-sgprs", "2"];
    launch(&[&[code.as_str(), "--grid", "1", "--block", "32", "--arg", &argument][..], &flags].concat());
    assert_eq!(words(&std::fs::read(&file).unwrap()), [10; 32]);
}

#[test]
fn a_container_gets_its_parameter_block() {
    let folder = Folder::new("launch-zrt");
    let blob = folder.write("copy.zrt", zrt_asm::blob("copy").unwrap());
    let source: Vec<u8> = (0..4096u32).map(|index| ((index * 31) >> 3) as u8).collect();
    let input = folder.write("source", &source);
    let output = folder.path("destination");
    // 4096 bytes are 256 units of 16; the workgroup's size is the container's.
    let arguments = [format!("in:{input}"), format!("out:4096:{output}")];
    // The rest of the header: no step, one unit, once.
    let header = ["--arg", "u64:0", "--arg", "u32:1", "--arg", "u32:0"];
    let buffers = ["--arg", &arguments[0], "--arg", &arguments[1]];
    let short = [&[blob.as_str(), "--grid", "1"][..], &header, &buffers].concat();
    let whole = [&short[..], &["--arg", "u32:256", "--arg", "u32:0"]].concat();
    launch(&whole);
    assert_eq!(std::fs::read(&output).unwrap(), source);
    refused(&short, &["parameter block of kernel copy has 40 bytes", "make 32"]);
    let block = [&whole[..], &["--block", "64"]].concat();
    refused(&block, &["block of 64,1,1 is not 256,1,1", "copy requires"]);
}

#[test]
fn compiled_kernels_run_with_their_hidden_arguments() {
    let folder = Folder::new("launch-compiled");
    let Some(object) = compile(&folder, KERNELS) else { return };
    let count = 300usize;
    let floats = |scale: f32| -> Vec<f32> { (0..count).map(|index| index as f32 * scale + 0.25).collect() };
    let bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let (a, b) = (floats(0.5), floats(-1.25));
    let (a_file, b_file) = (folder.write("a", &bytes(&a)), folder.write("b", &bytes(&b)));
    let c_file = folder.path("c");
    let arguments = [format!("in:{a_file}"), format!("in:{b_file}"), format!("out:1280:{c_file}")];
    launch(&[
        &object,
        "--kernel",
        "add",
        "--grid",
        "5,1,1",
        "--block",
        "64,1,1",
        "--arg",
        &arguments[0],
        "--arg",
        &arguments[1],
        "--arg",
        &arguments[2],
        "--arg",
        "u32:300",
        "--arg",
        "f32:3.0",
    ]);
    let sums = std::fs::read(&c_file).unwrap();
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| b.mul_add(3.0, *a)).collect();
    assert_eq!(sums[..4 * count], bytes(&expected));
    assert_eq!(sums[4 * count..], [0; 80], "beyond n nothing is written");
}

#[test]
fn the_library_runs_kernels_on_one_device() {
    let folder = Folder::new("launch-library");
    let Some(object) = compile(&folder, KERNELS) else { return };
    let program = Program::parse(&std::fs::read(object).unwrap()).unwrap();
    let mut device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).unwrap();
    let mut run = |kernel: &str, geometry: Geometry, arguments: &[LaunchArgument]| {
        let request =
            LaunchRequest { kernel: Some(kernel), arguments, ..LaunchRequest::new(&program, geometry) };
        let report = launch::run_on(&mut device, &request, None).unwrap();
        assert_eq!((report.counters.dispatches, report.outputs.len()), (1, 1));
        words(&report.outputs[0].bytes)
    };

    let table = run("lookup", Geometry::new([2, 1, 1], [32, 1, 1]), &[LaunchArgument::Out(256)]);
    let expected: Vec<u32> = [3, 1, 4, 1, 5, 9, 2, 6].into_iter().cycle().take(64).collect();
    assert_eq!(table, expected);

    let geometry = Geometry { dynamic_lds: DynamicLds::of(256), ..Geometry::new([3, 1, 1], [64, 1, 1]) };
    let local = run("local_memory", geometry, &[LaunchArgument::Out(3 * 256)]);
    let expected: Vec<u32> = (0..192).map(|index| index % 64).map(|l| (63 - l) * 3 + (l ^ 1)).collect();
    assert_eq!(local, expected);

    let n = 50;
    let arguments = [LaunchArgument::Out(4 * 256), LaunchArgument::Value(ArgumentValue::U32(n))];
    let scratch = run("scratch", Geometry::new([4, 1, 1], [64, 1, 1]), &arguments);
    let expected: Vec<u32> = (0..256).map(|id| (0..n).map(|i| ((i * 7 + id % 64) & 31) * n).sum()).collect();
    assert_eq!(scratch, expected);
}

#[test]
fn a_program_can_be_checked_without_a_device() {
    let program = Program::parse(&double()).unwrap();
    let arguments = [LaunchArgument::Out(4)];
    let request = LaunchRequest {
        arguments: &arguments,
        ..LaunchRequest::new(&program, Geometry::new([1; 3], [1; 3]))
    };
    assert_eq!(launch::check(&request).unwrap().name, "double");
    let empty = LaunchRequest { arguments: &[LaunchArgument::In(Vec::new())], ..request.clone() };
    assert!(launch::check(&empty).unwrap_err().is_bad_input());
    let raw = Program::raw(&[0, 0, 0xB0, 0xBF], &RawOptions::default()).unwrap();
    assert!(launch::check(&LaunchRequest { program: &raw, arguments: &[], ..request }).is_ok());
}

/// What must be refused, each with exit code 2, one sentence and no file written or changed.
#[test]
fn bad_input_is_one_sentence() {
    let folder = Folder::new("launch-bad");
    let object = folder.write("double.o", &double());
    let data = folder.write("data", &[1; 128]);
    let inout = format!("inout:{data}");
    let launch = |changed: &[&'static str], rest: &[&str], parts: &[&str]| {
        let mut arguments = [object.as_str(), "--grid", "1,1,1", "--block", "32,1,1", "--arg", &inout];
        for pair in changed.chunks(2) {
            let at = arguments.iter().position(|argument| *argument == pair[0]).unwrap();
            arguments[at + 1] = pair[1];
        }
        refused(&[&arguments[..], rest].concat(), parts);
    };
    launch(&["--grid", "0,1,1"], &[], &["--grid is \"0,1,1\"", "from 1"]);
    launch(&["--grid", "-1,1,1"], &[], &["--grid is \"-1,1,1\""]);
    launch(&["--grid", "1,2,3,4"], &[], &["--grid is \"1,2,3,4\""]);
    let too_many = ["at most 65536 workgroups in y and in z"];
    launch(&["--grid", "1,65537,1"], &[], &[&["grid of 1,65537,1"], &too_many[..]].concat());
    launch(&["--grid", "1,1,65537"], &[], &[&["grid of 1,1,65537"], &too_many[..]].concat());
    launch(&["--block", "65"], &[], &["block of 65,1,1", "1 to 64 work-items"]);
    launch(&["--block", "0"], &[], &["--block is \"0\""]);
    launch(&[], &["--kernel", "triple"], &["no kernel \"triple\"", "the kernels are double"]);
    launch(&[], &["--arg", "u32:1"], &["takes 1 arguments (data: buffer), but 2 were given"]);
    launch(&["--arg", "u32:1"], &[], &["argument 0", "the address of a buffer", "a value of 32 bits"]);
    launch(&["--arg", "in:absent"], &[], &["absent cannot be read"]);
    launch(&["--arg", "bytes:7"], &[], &["argument 0 is \"bytes:7\"", "bytes:HEX"]);
    launch(&["--arg", "out:128:nowhere/file"], &[], &["nowhere/file cannot be written"]);
    launch(&[], &["--lds", "65537"], &["LDS of 65537 bytes", "at most 65536"]);
    launch(&[], &["--lds", "-1"], &["--lds is \"-1\""]);
    launch(&[], &["--wave", "64"], &["wave32, not wave64"]);
    launch(&[], &["--wave", "16"], &["--wave is \"16\""]);
    launch(&[], &["--vgprs", "8"], &["--vgprs is for raw code"]);
    launch(&[], &["--seeds", "0"], &["--seeds is \"0\""]);

    let with = |file: &str, parts: &[&str]| {
        refused(&[file, "--grid", "1", "--block", "32", "--arg", &inout], parts);
    };
    with(&folder.path("absent.co"), &["absent.co cannot be read"]);
    with(&folder.write("cut.o", &double()[..700]), &["cut.o cannot be loaded", "damaged or cut off"]);
    let mut other = double();
    other[48] = 0x41;
    with(&folder.write("other.o", &other), &["other.o cannot be loaded", "gfx1100", "-mcpu=gfx1201"]);
    with(&folder.write("text.co", b"hello"), &["neither an ELF code object nor a .zrt"]);
    with(&folder.write("odd.bin", &[1, 2, 3]), &["3 bytes are not one or more whole dwords"]);
    let twice = format!("out:4:{}", folder.path("data"));
    let code = folder.write("double.bin", &little_endian(&DOUBLE_OBJECT[DOUBLE_CODE]));
    refused(
        &[&code, "--grid", "1", "--block", "32", "--arg", &inout, "--arg", &twice],
        &["data is written twice: give each output a name of its own"],
    );
    refused(&[&code, "--grid", "1", "--arg", &inout], &["--block is needed"]);
    let flag = [&code, "--grid", "1", "--block", "32", "--user-sgprs", "17"];
    refused(&flag, &["--user-sgprs is \"17\"", "2 to 16"]);

    assert_eq!(std::fs::read(&data).unwrap(), [1; 128], "the file was not touched");
    let names = ["cut.o", "data", "double.bin", "double.o", "odd.bin", "other.o", "text.co"];
    assert_eq!(folder.names(), names);
    if let Some(object) = compile(&folder, KERNELS) {
        let several = [object.as_str(), "--grid", "1", "--block", "64"];
        refused(
            &several,
            &["--kernel is needed where there are 4 kernels", "add, local_memory, scratch, lookup"],
        );
    }
}

/// A file that has no length, or a false one, is read as far as its limit.
#[test]
fn files_without_an_end_are_refused() {
    let folder = Folder::new("launch-endless");
    let object = folder.write("double.o", &double());
    let large = folder.path("large");
    std::fs::File::create(&large).unwrap().set_len((4 << 30) + 1).unwrap();
    refused(
        &["/dev/zero", "--grid", "1", "--block", "32"],
        &["/dev/zero has more than the ", "bytes that a program may have"],
    );
    for kind in ["in", "inout"] {
        let argument = format!("{kind}:{large}");
        let launch = [object.as_str(), "--grid", "1", "--block", "32", "--arg", &argument];
        refused(&launch, &["large has more than the 4294967296 bytes that a buffer may have"]);
    }
    for command in ["lint", "disasm"] {
        let output = Command::new(env!("CARGO_BIN_EXE_zrt")).args([command, "/dev/zero"]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}: {text}");
        assert!(text.contains("it has more than the 268435456 bytes that are read"), "{command}: {text}");
    }
}

#[test]
fn only_regular_files_are_replaced() {
    let folder = Folder::new("launch-kinds");
    let object = folder.write("double.o", &double());
    let target = folder.write("target", b"of an earlier run");
    let refuse = |path: &str, parts: &[&str]| {
        let argument = format!("out:128:{path}");
        refused(&[&object, "--grid", "1", "--block", "32", "--arg", &argument], parts);
    };
    let link = |name: &str, target: &str| {
        symlink(target, folder.path(name)).unwrap();
        folder.path(name)
    };
    // Not a node of /dev: if the guard were missing, running the tests as root would destroy it.
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refuse(&pipe, &["pipe cannot be written: it is not a regular file"]);
    refuse(&link("to-pipe", &pipe), &["to-pipe cannot be written: it is not a regular file"]);
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    refuse(&folder.path(""), &["it is a folder"]);
    refuse(&link("to-nothing", "absent"), &["to-nothing cannot be written: it is a dangling link"]);

    // A link stays, and the file that it leads to is written; two names of one file are one file.
    let to_target = link("to-target", "target");
    let code = folder.write("double.bin", &little_endian(&DOUBLE_OBJECT[DOUBLE_CODE]));
    let both = [format!("out:128:{target}"), format!("out:128:{to_target}")];
    let twice = [&code, "--grid", "1", "--block", "32", "--arg", &both[0], "--arg", &both[1]];
    refused(&twice, &["to-target is written twice"]);
    assert_eq!(std::fs::read(&target).unwrap(), b"of an earlier run");
    let report = launch(&[&object, "--grid", "1", "--block", "32", "--arg", &both[1]]);
    assert_eq!(report["outputs"][0]["path"], to_target.as_str());
    assert_eq!(std::fs::read_link(&to_target).unwrap().to_str(), Some("target"));
    assert_eq!(std::fs::read(&target).unwrap(), [0; 128]);
    let names = ["double.bin", "double.o", "pipe", "target", "to-nothing", "to-pipe", "to-target"];
    assert_eq!(folder.names(), names, "no temporary file stays");
}

/// A kernel that stores through a null pointer: exit code 1, and the file of an earlier run stays whole.
#[test]
fn a_kernel_that_fails_writes_nothing() {
    let folder = Folder::new("launch-fault");
    let code = folder.write("double.bin", &little_endian(&DOUBLE_OBJECT[DOUBLE_CODE]));
    let before = folder.write("result", b"of an earlier run");
    let out = format!("out:64:{before}");
    let arguments = [code.as_str(), "--grid", "1", "--block", "32", "--arg", "u64:0", "--arg", &out];
    failed(&arguments, 1, &["kernel raw did not run to its end"]);
    assert_eq!(std::fs::read(&before).unwrap(), b"of an earlier run");
    assert_eq!(folder.names(), ["double.bin", "result"]);
}
