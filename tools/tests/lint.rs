//! `zrt lint` on compilers' code.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{Folder, compile_with, read_words};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

/// A kernel, two functions behind it, and a jump from one of them to the other.
const CALLS: &str = "#define APART __attribute__((noinline))
APART static uint leaf(uint x, global const uint *from) { return from[x & 255] + x; }
APART static uint twice(uint x, global const uint *from) { return leaf(x, from) * 3 + leaf(x + 1, from); }
APART static void put(global uint *to, uint x, global const uint *from) { to[0] = x + from[1]; }
APART static void last(global uint *to, uint x, global const uint *from) { put(to + 1, x * from[3], from); }
kernel void calls(global const uint *from, global uint *to) {
    uint i = __builtin_amdgcn_workitem_id_x();
    last(to + i, twice(from[i], from), from);
}
";
/// s_wait_loadcnt 0x0, s_wait_loadcnt_dscnt 0x0, s_wait_kmcnt 0x0; s_nop 0.
const WAITS: [u32; 3] = [0xBFC0_0000, 0xBFC8_0000, 0xBFC7_0000];
const NOP: u32 = 0xBF80_0000;

fn zrt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zrt")).args(arguments).output().unwrap()
}

#[track_caller]
fn report(arguments: &[&str], code: i32) -> Json {
    let output = zrt(&[&["lint"], arguments, &["--json"]].concat());
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Functions are clean as compilers make them, and a wait that is taken out of any of them is missed in it.
#[test]
fn functions_are_checked_each_by_itself() {
    let folder = Folder::new("lint-functions");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let Some(object) = compile_with(&folder, CALLS, &["-mcpu=gfx1201", level]) else { return };
        let clean = report(&[&object], 0);
        // The kernel's body is there as a function too.
        assert_eq!((&clean["kernels"], &clean["functions"]), (&json!(1), &json!(5)), "{level}: {clean}");
        let words = read_words(&object);
        let waits = (0..words.len()).filter(|at| WAITS.contains(&words[*at]));
        let mut told_in = std::collections::BTreeSet::new();
        for at in waits {
            let mut without = words.clone();
            without[at] = NOP;
            let found = report(&[&folder.words("without.co", &without)], 1);
            let findings = found["findings"].as_array().unwrap();
            let is_here = |one: &Json| one["function"] == findings[0]["function"];
            assert!(findings.iter().all(is_here), "{level} {at:#x}: {found}");
            assert!(findings[0]["rule"] == "memory-wait", "{level} {at:#x}: {found}");
            told_in.insert(findings[0]["function"].as_str().unwrap().to_owned());
        }
        for function in ["leaf", "twice", "put", "last", "calls"] {
            assert!(told_in.iter().any(|name| name.ends_with(function)), "{level} {function}: {told_in:?}");
        }
        let one = report(&[&object, "--kernel", "twice"], 0);
        assert_eq!((&one["kernels"], &one["functions"]), (&json!(0), &json!(1)), "{one}");
    }
}
