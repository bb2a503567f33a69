//! `zrt lint` on compilers' code, on several files, with suppressions and baselines; its JSON is in the form of
//! `docs/lint.schema.json`.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod json_schema;
mod kernel_files;

use json_schema::trouble;
use kernel_files::{DOUBLE_OBJECT, Folder, compile_with, read_words};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

const SCHEMA: &str = include_str!("../../docs/lint.schema.json");

/// A kernel, two functions after it, and a jump from one of them to the other.
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
/// Index of the word of the object that is the wait for the load in `double`.
const WAIT_WORD: usize = 0x47;
/// `double`'s finding without it, as a suppression names it and as a baseline has it.
const FINDING: &str = "memory-wait double +0x20";
const IN_BASELINE: &str = "zrt-baseline 1\n\
                           # Findings that --baseline silences: count, rule, function, instruction.\n\
                           1 memory-wait double v_lshlrev_b32_e32 v2, 1, v2\n";

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
    let document = serde_json::from_slice(&output.stdout).unwrap();
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(trouble(&schema, &schema, &document, "document"), None, "{document}");
    document
}

#[track_caller]
fn text(arguments: &[&str], code: i32) -> String {
    let output = zrt(&[&["lint"], arguments].concat());
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// `double` without its wait for the load.
fn without_wait(folder: &Folder, name: &str) -> String {
    let mut object = DOUBLE_OBJECT;
    object[WAIT_WORD] = NOP;
    folder.words(name, &object)
}

/// Functions are clean as compilers make them, and a wait that is removed from any of them is reported missing there.
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
    }
}

/// What a pointer's callee returns passes through a function that does not touch it: somebody has written it.
#[test]
fn what_a_pointers_callee_returns_is_written() {
    let source = |behind: &str| {
        format!(
            "#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
            typedef int int4v __attribute__((ext_vector_type(4)));
            typedef int4v (*fn)(void);
            __attribute__((noinline)) int4v f(global ulong *table) {{
                int4v r = ((fn)table[1])(); {behind} return r;
            }}
            kernel void k(global int *out, global ulong *table) {{ int4v r = f(table); *out = r.z; }}"
        )
    };
    let folder = Folder::new("lint-pointers");
    // A call, and a jump for good.
    for behind in ["*table = 1;", ""] {
        for level in ["-O1", "-O2", "-O3"] {
            let object = compile_with(&folder, &source(behind), &["-mcpu=gfx1201", level]);
            let Some(object) = object else { return };
            let clean = report(&[&object], 0);
            assert_eq!(clean["findings"], json!([]), "{level} {behind}");
        }
    }
}

/// `--kernel` includes what is called, and nothing else: a wait that is removed is reported if, and only if, the named
/// kernel or function leads to it.
#[test]
fn a_name_stands_for_all_that_it_calls() {
    let source = format!(
        "{CALLS}APART static uint alone(uint x, global const uint *from) {{ return from[x & 63] ^ x; }}
        kernel void other(global const uint *from, global uint *to) {{ to[0] = alone(from[1], from); }}"
    );
    let folder = Folder::new("lint-callees");
    for level in ["-O0", "-O2"] {
        let Some(object) = compile_with(&folder, &source, &["-mcpu=gfx1201", level]) else { return };
        let words = read_words(&object);
        let mut told_in = std::collections::BTreeSet::new();
        for at in (0..words.len()).filter(|at| WAITS.contains(&words[*at])) {
            let mut without = words.clone();
            without[at] = NOP;
            let path = folder.words("without.co", &without);
            let findings = report(&[&path], 1)["findings"].as_array().unwrap().clone();
            let function = findings[0]["function"].as_str().unwrap();
            // If a kernel's body was inlined into the kernel, a second copy of it exists that nobody calls.
            if function.contains("__clang_ocl_kern_imp_") {
                continue;
            }
            told_in.insert(function.to_owned());
            for (name, reached) in [
                ("calls", &["calls", "twice", "leaf", "last", "put"][..]),
                ("twice", &["twice", "leaf"]),
                ("last", &["last", "put"]),
                ("leaf", &["leaf"]),
                ("other", &["other", "alone"]),
            ] {
                let code = i32::from(reached.contains(&function));
                let found = report(&[&path, "--kernel", name], code);
                assert_eq!(
                    found["findings"].as_array().unwrap().len(),
                    code as usize * findings.len(),
                    "{name}"
                );
            }
        }
        assert!(["leaf", "put", "alone"].iter().all(|name| told_in.contains(*name)), "{level}: {told_in:?}");
        let twice = report(&[&object, "--kernel", "twice"], 0);
        assert_eq!((&twice["kernels"], &twice["functions"]), (&json!(0), &json!(2)), "{level}: {twice}");
    }
}

/// With lines in the object every finding has one that is there, and its text; never the line 0 of code that no line
/// made.
#[test]
fn findings_have_their_source_lines() {
    let folder = Folder::new("lint-lines");
    for level in ["-O0", "-O2"] {
        let Some(object) = compile_with(&folder, CALLS, &["-mcpu=gfx1201", "-g", level]) else { return };
        let mut words = read_words(&object);
        words.iter_mut().filter(|word| WAITS.contains(word)).for_each(|word| *word = NOP);
        let found = report(&[&folder.words("without.co", &words)], 1);
        let findings = found["findings"].as_array().unwrap();
        assert!(findings.len() > 10, "{level}: {found}");
        for finding in findings {
            let (file, line) = (&finding["source"][0], finding["source"][1].as_u64());
            assert!(file.as_str().is_some_and(|file| file.ends_with("kernel.cl")), "{level}: {finding}");
            let line = line.and_then(|line| CALLS.lines().nth(line as usize - 1));
            assert_eq!(line.map(str::trim), finding["source_text"].as_str(), "{level}: {finding}");
            // Its functions have a line each.
            let function = finding["function"].as_str().unwrap();
            assert!(function.ends_with("calls") || line.unwrap().contains(function), "{level}: {finding}");
        }
    }
}

#[test]
fn several_files_are_one_document() {
    let folder = Folder::new("lint-files");
    let (right, wrong) = (folder.words("right.o", &DOUBLE_OBJECT), without_wait(&folder, "wrong.o"));
    let both = report(&[&right, &wrong, &right], 1);
    assert_eq!((&both["file"], &both["kernels"]), (&Json::Null, &json!(2)), "{both}");
    let rows = both["files"].as_array().unwrap();
    let row = |index: usize| (rows[index]["file"].clone(), rows[index]["findings"].clone());
    assert_eq!((row(0), row(1), rows.len()), ((json!(right), json!(0)), (json!(wrong), json!(1)), 2));
    assert_eq!(
        (both["findings"].as_array().unwrap().len(), &both["findings"][0]["file"]),
        (1, &json!(wrong))
    );
    assert_eq!(report(&[&right], 0)["file"], json!(right));

    let table = text(&[&right, &wrong], 1);
    assert!(table.starts_with(&format!("{wrong}:\n| rule")), "{table}");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = table.lines().map(cells).filter(|cells| cells.len() == 7).collect();
    assert_eq!(rows[2][1..6], [right.as_str(), "1", "0", "0", "clean"].map(str::to_owned), "{table}");
    assert_eq!(rows[3][1..6], [wrong.as_str(), "1", "0", "1", "findings"].map(str::to_owned), "{table}");
    assert!(table.ends_with("2 files, 2 kernels, 1 finding\n"), "{table}");

    // A file that cannot be read hides no other.
    let damaged = folder.write("damaged.o", b"\x7fELF");
    let all = report(&[&damaged, &wrong], 2);
    assert_eq!(all["findings"].as_array().unwrap().len(), 1);
    assert!(
        all["files"][0]["error"]["message"].as_str().unwrap().contains("not a complete ELF file"),
        "{all}"
    );
    let output = zrt(&["lint", &damaged, &wrong]);
    let (table, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(table.contains("not checked") && table.contains("memory-wait"), "{table}");
    assert!(error.contains("not a complete ELF file"), "{error}");
    let alone = report(&[&damaged], 2);
    assert_eq!(alone["error"]["kind"], "input", "{alone}");
}

#[test]
fn suppressions_silence_what_they_name() {
    let folder = Folder::new("lint-suppress");
    let wrong = without_wait(&folder, "wrong.o");
    let lines = format!("# known\n{FINDING} -- the data is constant\nend double * -- no such finding\n");
    let file = folder.write("known.txt", lines.as_bytes());
    let found = report(&[&wrong, "--suppress", &file], 0);
    let silenced = &found["silenced"];
    assert_eq!((&found["findings"], &silenced["suppressed"]), (&json!([]), &json!(1)), "{found}");
    let unused = json!([{"file": file, "line": 3, "text": "end double * -- no such finding"}]);
    assert_eq!(silenced["unused_suppressions"], unused);
    let told = text(&[&wrong, "--suppress", &file], 0);
    assert!(told.contains(&format!("{file}:3: this suppression covers nothing")), "{told}");
    assert!(told.contains("1 suppressed\n") && told.ends_with("1 kernel, 0 findings\n"), "{told}");
    // Another place, and a file that is not a suppression file.
    let other = folder.write("other.txt", b"memory-wait double +0x24 -- elsewhere");
    assert_eq!(report(&[&wrong, "--suppress", &other], 1)["findings"].as_array().unwrap().len(), 1);
    let bad = folder.write("bad.txt", b"memory-wait double");
    let error = report(&[&wrong, "--suppress", &bad], 2);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("{bad}:1: a line is RULE FUNCTION PLACE -- REASON")), "{message}");
}

#[test]
fn a_baseline_lets_new_findings_through() {
    let folder = Folder::new("lint-baseline");
    let (right, wrong) = (folder.words("right.o", &DOUBLE_OBJECT), without_wait(&folder, "wrong.o"));
    let file = folder.path("base.txt");
    let made = report(&[&wrong, "--write-baseline", &file], 0);
    assert_eq!((&made["findings"], &made["silenced"]["in_baseline"]), (&json!([]), &json!(1)), "{made}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), IN_BASELINE);
    assert_eq!(report(&[&wrong, "--baseline", &file], 0)["silenced"]["in_baseline"], 1);
    // The same finding a second time is a new one; one that is gone is reported.
    let again = without_wait(&folder, "again.o");
    assert_eq!(report(&[&wrong, &again, "--baseline", &file], 1)["findings"][0]["file"], json!(again));
    assert_eq!(report(&[&right, "--baseline", &file], 0)["silenced"]["gone_from_baseline"], 1);
    let told = text(&[&right, "--baseline", &file], 0);
    assert!(told.contains("1 of the baseline gone"), "{told}");
    // The same fault one instruction further on.
    let mut moved = DOUBLE_OBJECT;
    moved[WAIT_WORD] = moved[WAIT_WORD + 1];
    moved[WAIT_WORD + 1] = NOP;
    let moved = report(&[&folder.words("moved.o", &moved), "--baseline", &file], 0);
    assert_eq!(moved["silenced"]["in_baseline"], 1, "{moved}");
    // Both at once make no sense, and a baseline is not a suppression file.
    assert_eq!(zrt(&["lint", &wrong, "--baseline", &file, "--write-baseline", &file]).status.code(), Some(2));
    assert_eq!(zrt(&["lint", &wrong, "--suppress", &file]).status.code(), Some(2));
}

/// The same files for `zrt launch --check`.
#[test]
fn launch_takes_suppressions_and_baselines() {
    let folder = Folder::new("launch-suppress");
    let (wrong, data) = (without_wait(&folder, "wrong.o"), folder.words("data", &[7; 32]));
    let launch = |options: &[&str], code| {
        let data = format!("inout:{data}");
        let fixed = ["launch", &wrong, "--grid", "1", "--block", "32", "--arg", &data, "--json"];
        let output = Command::new(env!("CARGO_BIN_EXE_zrt"))
            .args([&fixed[..], options].concat())
            .env("ZRT_DEVICE", "virtual")
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{options:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice::<Json>(&output.stdout).unwrap()
    };
    let found = launch(&["--check"], 1)["findings"].as_array().unwrap().len();
    assert_eq!(found, 1);
    let known = folder.write("known.txt", b"counters double +0x20 -- the data is constant\nrace * * -- none");
    let silent = launch(&["--suppress", &known, "--seeds", "3"], 0);
    assert_eq!((&silent["findings"], &silent["silenced"]["suppressed"]), (&json!([]), &json!(1)), "{silent}");
    assert_eq!(silent["silenced"]["unused_suppressions"][0]["line"], 2);
    let base = folder.path("base.txt");
    assert_eq!(launch(&["--check", "--write-baseline", &base], 0)["silenced"]["in_baseline"], 1);
    assert_eq!(launch(&["--check", "--baseline", &base], 0)["findings"], json!([]));
    let other = folder.write("other.txt", b"hazard double * -- another rule");
    assert_eq!(launch(&["--suppress", &other], 1)["findings"].as_array().unwrap().len(), 1);
}
