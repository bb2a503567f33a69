//! Code objects as other compilers' users have them: the generic processor, bundles, implicit arguments.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{Folder, compile_with, read_words};
use std::process::Command;

const ADD: &str = "kernel void add(global uint *data, uint more) {
    data[__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()] += more;
}";
/// Copies the first 17 dwords of the implicit arguments.
const IMPLICIT: &str = "kernel void copy(global uint *to) {
    constant uint *from = (constant uint *)__builtin_amdgcn_implicitarg_ptr();
    uint i = __builtin_amdgcn_workitem_id_x();
    if (__builtin_amdgcn_workitem_id_y() == 0 && i < 17) to[i] = from[i];
}";

/// Runs `zrt`; returns standard output and error.
#[track_caller]
fn zrt(arguments: &[&str], code: i32) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    let output = command.args(arguments).env("ZRT_DEVICE", "virtual").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{error}");
    (out, error)
}

#[test]
fn generic_code_and_bundles_run() {
    let folder = Folder::new("code-objects-generic");
    let flags = ["-mcpu=gfx12-generic", "-mcode-object-version=6", "-O2"];
    let Some(generic) = compile_with(&folder, ADD, &flags) else { return };
    let object = std::fs::read(&generic).unwrap();
    let name = b"hipv4-amdgcn-amd-amdhsa--gfx12-generic";
    let offset = 24 + 4 * 8 + name.len();
    let numbers = [1, offset, object.len(), name.len()].map(|number| (number as u64).to_le_bytes());
    let bundle = [b"__CLANG_OFFLOAD_BUNDLE__", &numbers.concat()[..], name, &object].concat();
    for file in [generic, folder.write("add.hipfb", &bundle)] {
        let data: Vec<u32> = (0..128).collect();
        let path = folder.words("data", &data);
        let argument = format!("inout:{path}");
        let launch = ["launch", &file, "--grid", "2", "--block", "64", "--arg", &argument, "--arg", "u32:5"];
        zrt(&launch, 0);
        assert_eq!(read_words(&path), data.iter().map(|word| word + 5).collect::<Vec<u32>>(), "{file}");
        assert!(zrt(&["disasm", &file], 0).0.contains("add:"), "{file}");
        assert!(zrt(&["lint", &file, "--json"], 0).0.contains("\"kernels\":1"), "{file}");
    }
    let compressed = folder.write("compressed.hipfb", b"CCOB\x02\0\x01\0");
    for arguments in
        [&["launch", compressed.as_str(), "--grid", "1", "--block", "1"][..], &["lint", &compressed]]
    {
        let (_, error) = zrt(arguments, 2);
        assert!(error.contains("compressed") && error.contains("--no-offload-compress"), "{error}");
    }
}

/// The places of LLVM's "User Guide for AMDGPU Backend", implicit arguments of code object version 5.
#[test]
fn implicit_arguments_say_the_shape_of_the_launch() {
    let folder = Folder::new("code-objects-implicit");
    let Some(object) = compile_with(&folder, IMPLICIT, &["-mcpu=gfx1201", "-O2"]) else { return };
    let path = folder.path("implicit");
    let argument = format!("out:68:{path}");
    zrt(&["launch", &object, "--grid", "3,2,1", "--block", "32,2,1", "--arg", &argument], 0);
    let words = read_words(&path);
    // Workgroups as dwords, their size and what is left over as halves of dwords, then padding.
    assert_eq!(words[..3], [3, 2, 1]);
    assert_eq!(words[3..6], [2 << 16 | 32, 1, 0]);
    // The offset of the global id, three numbers of 64 bits at 40, and the dimensions at 64.
    assert_eq!(words[10..16], [0; 6]);
    assert_eq!(words[16] & 0xFFFF, 2);
}
