//! What `zrt launch`, `zrt lint` and `zrt step` say about a kernel that is wrong: where, in which line, next to which
//! buffer, and each thing once.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile_with};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

/// `double` without its wait for the load, and with loads from 4 bytes before its buffer: words of the object that
/// change.
const NO_WAIT: (usize, u32) = (0x47, 0xBF80_0000); // s_nop 0
const BEFORE: (usize, u32) = (0x46, 0xFFFF_FC01); // global_load_b32 v2, v1, s[0:1] offset:-4
/// The changed instruction, as llvm-mc 19 writes it.
const BEFORE_TEXT: &str = "global_load_b32 v2, v1, s[0:1] offset:-4";

/// Raw kernels, words of llvm-mc 19: a wait at a barrier that nobody signals.
const DEADLOCK: [u32; 2] = [0xBF94_FFFF, 0xBFB0_0000];
/// An LDS load from a group that has none.
const LDS: [u32; 4] = [0x7E02_0280, 0xD8D8_FFFC, 0x0200_0001, 0xBFB0_0000];
/// A scratch load in a kernel that has none.
const SCRATCH: [u32; 4] = [0xED05_007C, 0x0000_0002, 0x0000_4000, 0xBFB0_0000];
/// A word that does not begin an instruction.
const UNKNOWN: [u32; 2] = [0xBF80_0000, 0xFFFF_FFFF];
/// Words about the host's side of a queue, about which nothing is in doubt on a virtual device.
const GUESSES: [&str; 6] = ["doorbell", "fence", "ring ", "queue", "cable", "packet"];

/// Two kernels, so that offsets in the second are not those in the image; the second reads past the end of its buffer.
const TWO: &str = "kernel void first(global uint *a) { a[__builtin_amdgcn_workitem_id_x()] = 1; }
kernel void second(global uint *from, global uint *to) {
    uint i = __builtin_amdgcn_workitem_id_x();
    to[i] = from[i + 1]; // one too far
}
";

fn zrt(command: &str, file: &str, rest: &[&str]) -> Output {
    let mut zrt = Command::new(env!("CARGO_BIN_EXE_zrt"));
    zrt.args([command, file]).args(rest).env("ZRT_DEVICE", "virtual").output().unwrap()
}

/// Launches one group of a kernel, by default of one wave, that must end with exit code 1; returns what it wrote to
/// both streams.
#[track_caller]
fn wrong(file: &str, rest: &[&str]) -> (String, String) {
    let block = if rest.contains(&"--block") { &[][..] } else { &["--block", "32"] };
    let output = zrt("launch", file, &[&["--grid", "1"], block, rest].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{error}");
    (out, error)
}

#[track_caller]
fn finding_of(file: &str, rest: &[&str]) -> Json {
    let (out, _) = wrong(file, &[rest, &["--check", "--json"]].concat());
    let report: Json = serde_json::from_str(&out).unwrap();
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
    finding.clone()
}

fn double_with(folder: &Folder, name: &str, (at, word): (usize, u32)) -> String {
    let mut object = DOUBLE_OBJECT;
    object[at] = word;
    folder.words(name, &object)
}

#[test]
fn launch_lint_and_step_count_from_the_same_instruction() {
    let folder = Folder::new("findings-offsets");
    let object = double_with(&folder, "double.o", NO_WAIT);
    let data = format!("inout:{}", folder.words("data", &[7; 32]));
    let (out, _) = wrong(&object, &["--arg", &data, "--check", "--json"]);
    let report: Json = serde_json::from_str(&out).unwrap();
    let finding = &report["findings"][0];
    let place = |finding: &Json, key: &str| (finding[key]["kernel"].clone(), finding[key]["offset"].clone());
    assert_eq!(place(finding, "place"), (json!("double"), json!(0x20)));
    assert_eq!(place(finding, "other"), (json!("double"), json!(0x10)));

    let lint = zrt("lint", &object, &["--json"]);
    let report: Json = serde_json::from_slice(&lint.stdout).unwrap();
    let finding = &report["findings"][0];
    assert_eq!((&finding["function"], &finding["offset"]), (&json!("double"), &json!(0x20)));
    assert_eq!(
        (&finding["cause"]["function"], &finding["cause"]["offset"]),
        (&json!("double"), &json!(0x10))
    );
    let table = String::from_utf8(zrt("lint", &object, &[]).stdout).unwrap();
    assert!(table.contains("double+0x20") && table.contains("from double+0x10"), "{table}");
}

/// The offset that another disassembler has, and the text of the line.
#[test]
fn a_kernel_behind_another_has_its_own_offsets_and_lines() {
    let folder = Folder::new("findings-second");
    let flags = ["-mcpu=gfx1201", "-O2", "-g", "-cl-kernel-arg-info"];
    let Some(object) = compile_with(&folder, TWO, &flags) else { return };
    if !zrt_needs::programs(&["llvm-objdump-22"]) {
        return;
    }
    let listing = Command::new("llvm-objdump-22").args(["-d", &object]).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let address = |line: &str| u64::from_str_radix(line.split("// ").nth(1)?.split(':').next()?, 16).ok();
    let (_, code) = listing.split_once("<second>:\n").unwrap();
    let start = code.lines().find_map(address).unwrap();
    let load = code.lines().find(|line| line.contains("global_load_b32")).unwrap();
    let offset = address(load).unwrap() - start;
    assert!(start > 0x100, "it lies behind the first: {listing}");

    let arguments = ["--kernel", "second", "--arg", "zero:128", "--arg", "zero:128"];
    let finding = finding_of(&object, &arguments);
    let place = &finding["place"];
    assert_eq!((&place["kernel"], &place["offset"]), (&json!("second"), &json!(offset)), "{listing}");
    assert_eq!(place["source"][1], 4, "{finding}");
    assert_eq!(place["source_text"], "to[i] = from[i + 1]; // one too far");
    let (out, _) = wrong(&object, &[&arguments[..], &["--check"]].concat());
    let told = format!("at second+{offset:#x} (");
    assert!(
        out.contains(&told) && out.contains("\n    source: to[i] = from[i + 1]; // one too far\n"),
        "{out}"
    );
    let edge = "0 bytes past the end of argument 0 (from)";
    assert_eq!(out.matches(edge).count(), 1, "{out}");

    // What needs no line needs no file.
    std::fs::remove_file(folder.path("kernel.cl")).unwrap();
    let place = &finding_of(&object, &arguments)["place"];
    assert_eq!((&place["source"][1], &place["source_text"]), (&json!(4), &Json::Null));
}

/// A fault is reported once, by its code and the nearest buffer on either side; without the checking mode, and with it.
#[test]
fn a_fault_is_one_sentence_about_the_kernel() {
    let folder = Folder::new("findings-fault");
    let object = double_with(&folder, "double.o", BEFORE);
    let data = format!("inout:{}", folder.words("data", &[7; 32]));
    let near = "4 bytes before the beginning of argument 0 (data)";
    let code = format!("at double+0x10: {BEFORE_TEXT}");
    let (out, error) = wrong(&object, &["--arg", &data]);
    assert_eq!(out, "");
    assert!(error.starts_with("error: kernel double did not run to its end: page fault at 0x"), "{error}");
    assert!(error.contains(&code) && error.ends_with(", in workgroup 0,0,0 wave 0 lane 0\n"), "{error}");
    for once in ["page fault", near, "double+0x10"] {
        assert_eq!(error.matches(once).count(), 1, "{once}: {error}");
    }

    let (out, error) = wrong(&object, &["--arg", &data, "--check"]);
    assert_eq!(error, "");
    assert!(out.contains(&code), "{out}");
    for once in ["page fault", near, BEFORE_TEXT, "bounds: "] {
        assert_eq!(out.matches(once).count(), 1, "{once}: {out}");
    }
    let end = "1 schedule(s) did not end, first that of --seed 0: the bounds finding at double+0x10\n";
    assert!(out.contains(end), "{out}");

    let endless = folder.words("loop.bin", &[0xBFA0_FFFF]);
    let (_, late) = wrong(&endless, &["--timeout", "1"]);
    assert!(
        late.contains("did not finish within 1") && late.contains("--timeout gives it more time"),
        "{late}"
    );
    for guess in GUESSES {
        assert!(
            !out.contains(guess) && !error.contains(guess) && !late.contains(guess),
            "{guess}: {out}{late}"
        );
    }
}

#[test]
fn every_fault_has_its_instruction() {
    let folder = Folder::new("findings-instruction");
    for (name, code, rule, offset, instruction) in [
        ("deadlock", &DEADLOCK[..], "progress", 0, "s_barrier_wait 0xffff"),
        ("lds", &LDS, "bounds", 4, "ds_load_b32 v2, v1 offset:65532"),
        ("scratch", &SCRATCH, "uninitialised", 0, "scratch_load_b32 v2, off, off offset:64"),
        ("unknown", &UNKNOWN, "bounds", 4, ".long 0xffffffff"),
    ] {
        let code = folder.words(&format!("{name}.bin"), code);
        let two_waves = ["--block", "64"];
        let finding = finding_of(&code, &two_waves);
        assert_eq!(
            (&finding["rule"], &finding["instruction"]),
            (&json!(rule), &json!(instruction)),
            "{name}"
        );
        assert_eq!(finding["place"]["offset"], offset, "{name}");
        let (_, error) = wrong(&code, &two_waves);
        assert!(error.contains(&format!("at raw+{offset:#x}: {instruction}")), "{error}");
    }
}

/// Without optimisation a compiler lists services that do not exist; they are named only for a kernel that runs into
/// their null.
#[test]
fn a_null_pointer_names_the_services_that_are_not_there() {
    let folder = Folder::new("findings-null");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let (_, error) = wrong(&object, &["--arg", "u64:0x10"]);
    assert!(
        error.contains("page fault at 0x10") && error.ends_with("; the address is a null pointer's\n"),
        "{error}"
    );
    let Some(object) = compile_with(&folder, TWO, &["-mcpu=gfx1201", "-O0"]) else { return };
    let (_, error) = wrong(&object, &["--kernel", "first", "--arg", "u64:0"]);
    for part in ["hidden_default_queue", "hidden_heap_v1", "compile without malloc and device-side launches"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let right =
        zrt("launch", &object, &["--kernel", "first", "--grid", "1", "--block", "32", "--arg", "zero:128"]);
    assert_eq!((right.status.code(), right.stderr), (Some(0), Vec::new()));
}
