//! `zrt launch` with `--check`, `--seeds` and `--profile` as its users run it: findings, exit codes, counts.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, compile, compile_with, read_words};
use serde_json::{Value as Json, json};
use std::process::{Command, Output};

/// A kernel that uses what it loads without a wait. Words of llvm-mc 19.
const WRONG: [u32; 12] = [
    0xF400_2000,
    0xF800_0000, // +0x00 s_load_b64 s[0:1], s[0:1], 0x0
    0x3002_0082, // +0x08 v_lshlrev_b32_e32 v1, 2, v0
    0xBFC7_0000, // +0x0c s_wait_kmcnt 0x0
    0xEE05_0000,
    0x0000_0002,
    0x0000_0001, // +0x10 global_load_b32 v2, v1, s[0:1]
    0x3004_0481, // +0x1c v_lshlrev_b32_e32 v2, 1, v2
    0xEE06_8000,
    0x0100_0000,
    0x0000_0001, // +0x20 global_store_b32 v1, v2, s[0:1]
    0xBFB0_0000, // +0x2c s_endpgm
];
/// `s_wait_loadcnt 0x0`, and where [`WRONG`] lacks it.
const MISSING_WAIT: (usize, u32) = (7, 0xBFC0_0000);

/// A kernel that stores over its own code.
const OVERWRITE: [u32; 7] = [
    0xBE82_4700, // +0x00 s_getpc_b64 s[2:3]
    0x7E02_0280, // +0x04 v_mov_b32_e32 v1, 0
    0x7E04_0280, // +0x08 v_mov_b32_e32 v2, 0
    0xEE06_8002,
    0x0100_0000,
    0x0000_0001, // +0x0c global_store_b32 v1, v2, s[2:3]
    0xBFB0_0000, // +0x18 s_endpgm
];
/// A kernel that stores over its arguments.
const OVERWRITE_ARGUMENTS: [u32; 6] = [
    0x7E02_0280, // +0x00 v_mov_b32_e32 v1, 0
    0x7E04_0280, // +0x04 v_mov_b32_e32 v2, 0
    0xEE06_8000,
    0x0100_0000,
    0x0000_0001, // +0x08 global_store_b32 v1, v2, s[0:1]
    0xBFB0_0000, // +0x14 s_endpgm
];
/// Constants that are read, and a variable of the program that is written: both are part of its image.
const PROGRAM_MEMORY: &str = "
__constant uint table[4] = {3, 1, 4, 1};
__global uint last[4] = {7, 7, 7, 7};
kernel void remember(global uint *data) {
    uint i = __builtin_amdgcn_workitem_id_x();
    uint before = last[i & 3];
    if (i < 4) last[i] = i;
    if (i < 4) data[i] = table[(data[i] + i) & 3] + before;
}";

fn launch(file: &str, data: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(["launch", file, "--arg", &format!("inout:{data}")]).args(flags);
    if !flags.contains(&"--block") {
        command.args(["--block", "32"]);
    }
    if !flags.contains(&"--grid") {
        command.args(["--grid", "1"]);
    }
    if file.ends_with(".bin") {
        command.args(["--vgprs", "3", "--user-sgprs", "2"]);
    }
    command.env("ZRT_DEVICE", "virtual").output().unwrap()
}

/// The JSON document of a launch that must end with an exit code.
#[track_caller]
fn report(file: &str, data: &str, flags: &[&str], code: i32) -> Json {
    let output = launch(file, data, &[flags, &["--json"]].concat());
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{flags:?}: {complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn data() -> Vec<u32> {
    (0..32).map(|index| 3 * index + 1).collect()
}

fn doubled() -> Vec<u32> {
    data().iter().map(|value| 2 * value).collect()
}

#[test]
fn a_right_kernel_is_clean() {
    let folder = Folder::new("check-right");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let mut right = WRONG.to_vec();
    right.insert(MISSING_WAIT.0, MISSING_WAIT.1);
    let raw = folder.words("right.bin", &right);
    for file in [object, raw] {
        let buffer = folder.words("data", &data());
        let report = report(&file, &buffer, &["--check"], 0);
        assert_eq!(report["findings"], json!([]), "{file}");
        assert_eq!((&report["schedules"], &report["failed_schedules"]), (&json!(1), &json!(0)));
        assert_eq!((&report["failure"], &report["differing_seed"]), (&Json::Null, &Json::Null));
        assert_eq!(report["profile"], Json::Null);
        assert_eq!(read_words(&buffer), doubled(), "{file}");
    }
}

#[test]
fn a_missing_wait_is_a_finding_and_exit_code_1() {
    let folder = Folder::new("check-wrong");
    let code = folder.words("wrong.bin", &WRONG);
    let buffer = folder.words("data", &data());
    let report = report(&code, &buffer, &["--check", "--seed", "7"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding["rule"] == "counters"), "{report}");
    let first = &findings[0];
    assert_eq!(first["instruction"], "v_lshlrev_b32_e32 v2, 1, v2");
    let in_code = |place: &str| first[place]["offset"].as_u64();
    assert_eq!((in_code("place"), in_code("other")), (Some(0x1c), Some(0x10)), "the use, and the load");
    assert!(first["place"]["kernel"].is_string(), "{first}");
    assert_eq!(first["register"], "v2");
    assert_eq!((&first["workgroup"], &first["wave"]), (&json!([0, 0, 0]), &json!(0)));
    assert_eq!(first["seed"], 7);
    assert!(first["remedy"].as_str().unwrap().contains("s_wait_loadcnt"), "{first}");

    let output = launch(&code, &buffer, &["--check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["counters: ", ": v_lshlrev_b32_e32 v2, 1, v2\n", "finding(s)", "seed 0"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn code_and_arguments_are_not_written() {
    let folder = Folder::new("check-overwrite");
    let buffer = folder.words("data", &data());
    for (name, code, offset, region) in [
        ("code.bin", &OVERWRITE[..], 0x0c, "4 bytes into the code of raw"),
        ("arguments.bin", &OVERWRITE_ARGUMENTS, 0x08, "0 bytes into the arguments"),
    ] {
        let code = folder.words(name, code);
        let report = report(&code, &buffer, &["--check", "--block", "1"], 1);
        let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
        assert_eq!(
            (&finding["rule"], &finding["place"]["offset"]),
            (&json!("bounds"), &json!(offset)),
            "{report}"
        );
        let what = finding["what"].as_str().unwrap();
        assert!(what.contains("may only read") && what.contains(region), "{what}");
    }
}

/// A program may read its own memory, and write it where it declares it writable.
#[test]
fn a_program_uses_its_own_constants_and_variables() {
    let folder = Folder::new("check-program");
    let Some(object) = compile(&folder, PROGRAM_MEMORY) else { return };
    let buffer = folder.words("data", &data());
    let report = report(&object, &buffer, &["--check"], 0);
    assert_eq!(report["findings"], json!([]));
    let table = [3, 1, 4, 1];
    let expected: Vec<u32> = (0..4).map(|i| table[(3 * i + 1 + i) % 4] + 7).collect();
    assert_eq!(read_words(&buffer)[..4], expected);
}

/// Stores `data[i]` at a place in 32 dwords of LDS.
const LDS_PLACES: &str = "
kernel void place(global uint *data) {
    volatile local uint places[32];
    uint i = __builtin_amdgcn_workitem_id_x();
    places[data[i]] = i;
    data[i] = places[data[i]];
}";

/// Hardware allocates LDS in units of 512 bytes; a kernel of 128 bytes has 128.
#[test]
fn lds_ends_where_the_kernel_says() {
    let folder = Folder::new("check-lds");
    let Some(object) = compile(&folder, LDS_PLACES) else { return };
    let buffer = folder.words("data", &(0..32).collect::<Vec<u32>>());
    assert_eq!(report(&object, &buffer, &["--check"], 0)["findings"], json!([]));
    let buffer = folder.words("data", &(1..33).collect::<Vec<u32>>());
    let report = report(&object, &buffer, &["--check"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding["rule"] == "bounds"), "{report}");
    assert_eq!((&findings[0]["lane"], &findings[0]["address"]), (&json!(31), &json!(128)), "{report}");
}

/// A user who takes `in:` for `out:` gets a finding.
#[test]
fn inputs_are_not_written() {
    let folder = Folder::new("check-inputs");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let buffer = folder.words("data", &data());
    let check = |argument: String| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["launch", &object, "--grid", "1", "--block", "32", "--check", "--json", "--arg"]);
        let output = command.arg(argument).env("ZRT_DEVICE", "virtual").output().unwrap();
        let report: Json = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report["findings"].as_array().unwrap().clone())
    };
    assert_eq!(check(format!("inout:{buffer}")), (Some(0), Vec::new()));
    assert_eq!(check("rand:32*u32:1".to_string()), (Some(0), Vec::new()));
    let (code, findings) = check(format!("in:{buffer}"));
    assert_eq!(code, Some(1));
    assert!(
        findings[0]["rule"] == "bounds" && findings[0]["what"].as_str().unwrap().contains("read"),
        "{findings:?}"
    );
}

/// Without the mode the same kernel runs, and nothing is reported.
#[test]
fn nothing_is_found_unless_asked() {
    let folder = Folder::new("check-off");
    let code = folder.words("wrong.bin", &WRONG);
    let buffer = folder.words("data", &data());
    let report = report(&code, &buffer, &[], 0);
    assert_eq!((&report["findings"], &report["profile"]), (&json!([]), &Json::Null));
}

#[test]
fn every_seed_is_a_schedule() {
    let folder = Folder::new("check-seeds");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let wrong = folder.words("wrong.bin", &WRONG);
    let buffer = folder.words("data", &data());
    let clean = report(&object, &buffer, &["--seeds", "3"], 0);
    assert_eq!((&clean["schedules"], &clean["findings"]), (&json!(3), &json!([])));
    assert_eq!(read_words(&buffer), doubled(), "each schedule begins with the file's bytes");

    // A finding is reported once, with the first seed that shows it, and counted on every schedule.
    let once = report(&wrong, &buffer, &["--check", "--seed", "5"], 1);
    let thrice = report(&wrong, &buffer, &["--seeds", "3", "--seed", "5"], 1);
    assert_eq!(thrice["schedules"], 3);
    let of = |report: &Json, key: &str| report["findings"][0][key].as_u64().unwrap();
    assert_eq!(of(&thrice, "seed"), 5);
    assert_eq!(of(&thrice, "count"), 3 * of(&once, "count"));
    let length = |report: &Json| report["findings"].as_array().unwrap().len();
    assert_eq!(length(&thrice), length(&once));
}

#[test]
fn the_profile_counts_what_waves_did() {
    let folder = Folder::new("check-profile");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let buffer = folder.words("data", &data());
    // Two workgroups of one wave, each on the same 32 dwords.
    let report = report(&object, &buffer, &["--profile", "--grid", "2"], 0);
    let profile = &report["profile"];
    assert_eq!(profile["wave_instructions"], 16);
    assert_eq!(
        profile["opcodes"],
        json!({
            "s_load_b64": 2, "v_lshlrev_b32": 4, "s_wait_kmcnt": 2, "global_load_b32": 2,
            "s_wait_loadcnt": 2, "global_store_b32": 2, "s_endpgm": 2,
        })
    );
    // Eight instructions, each by two waves of 32 lanes; those executed equally often are in code order.
    let instructions = profile["instructions"].as_array().unwrap();
    let told = |index: usize| {
        let of = &instructions[index];
        (of["place"]["offset"].as_u64().unwrap(), of["count"].as_u64(), of["lanes"].as_u64())
    };
    let offsets = [0, 8, 0xc, 0x10, 0x1c, 0x20, 0x24, 0x30];
    assert_eq!((0..8).map(told).collect::<Vec<_>>(), offsets.map(|offset| (offset, Some(2), Some(64))));
    assert_eq!((instructions.len(), &instructions[7]["instruction"]), (8, &json!("s_endpgm")));
    assert_eq!(profile["lines"], json!([]), "assembled without lines");
    let bytes = json!({
        "vector_load": 256, "vector_store": 256, "atomic": 0, "scalar_load": 16,
        "scratch": 0, "lds_load": 0, "lds_store": 0,
    });
    assert_eq!(profile["bytes"], bytes);
    assert_eq!(profile["lds"], json!({"accesses": 0, "cycles": 0, "cycles_without_conflict": 0}));
    let prediction = &profile["prediction"];
    let number = |name: &str| prediction[name].as_f64().unwrap();
    // The 128 bytes of the buffer at 612 GB/s are less than the start and end of a dispatch: 0.5, 0.9 and 2 µs.
    assert!((prediction["bounds"]["bandwidth_us"].as_f64().unwrap() - 128.0 / 612e3).abs() < 1e-9);
    assert!(number("predicted_us_low") > 0.5 && number("predicted_us_high") < 6.0, "{prediction}");
    assert!((number("predicted_us_low")..number("predicted_us_high")).contains(&number("predicted_us")));
    assert!(prediction["bound"].is_string());
    assert!(profile["prediction_formula"].as_str().unwrap().contains("docs/prediction.md"));
    assert_eq!(report["findings"], json!([]));
}

#[test]
fn the_profile_as_text_predicts_and_says_so() {
    let folder = Folder::new("check-profile-text");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let buffer = folder.words("data", &data());
    let output = launch(&object, &buffer, &["--profile"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at =
        lines.iter().position(|line| line.starts_with("predicted for an R9700, not measured: ")).unwrap();
    // A launch of one wave is its start and end.
    assert!(lines[at].contains(" .. ") && lines[at].ends_with("bound by hand-over"), "{text}");
    assert!(lines[at + 1].contains("latency") && lines[at + 2].contains("docs/prediction.md"), "{text}");
}

/// A loop with fewer and fewer lanes: lane i runs it i times.
const TRIANGLE: &str = "
kernel void triangle(global uint *data) {
    uint i = __builtin_amdgcn_workitem_id_x(), x = 0;
    for (uint turn = 0; turn < i; turn++)
        x = x * 3 + data[i - turn];
    data[i + 32] = x;
}";

#[test]
fn the_profile_counts_lines_and_their_lanes() {
    let folder = Folder::new("check-profile-lines");
    let flags = ["-mcpu=gfx1201", "-O1", "-g", "-fno-unroll-loops"];
    let Some(object) = compile_with(&folder, TRIANGLE, &flags) else { return };
    let buffer = folder.words("data", &[1; 64]);
    let report = report(&object, &buffer, &["--profile"], 0);
    let instructions = report["profile"]["instructions"].as_array().unwrap();
    let load =
        instructions.iter().find(|of| of["instruction"].as_str().unwrap().contains("_load_b32 v")).unwrap();
    // 31 turns, with 31, 30, ... 1 lanes on: the first lane is in none.
    assert_eq!((&load["count"], &load["lanes"]), (&json!(31), &json!(31 * 32 / 2)), "{load}");
    let lines = report["profile"]["lines"].as_array().unwrap();
    let sum = |key: &str, of: &[Json]| of.iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    let with_line: Vec<Json> =
        instructions.iter().filter(|of| !of["place"]["source"].is_null()).cloned().collect();
    assert!(!lines.is_empty() && sum("count", lines) == sum("count", &with_line));
    let inner = lines.iter().find(|line| line["source"][1] == 5).unwrap();
    assert_eq!(inner["source_text"], "x = x * 3 + data[i - turn];");
    assert!(inner["count"].as_u64() >= Some(31), "{inner}");
    let text = launch(&object, &buffer, &["--profile"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("| place ") && text.contains("kernel.cl:5"), "{text}");
}

/// Three access patterns in memory, and two in LDS, each on a line of its own.
const WAYS: &str = "
kernel void ways(global uint *data) {
    volatile local uint places[64];
    volatile global uint *all = data;
    uint i = __builtin_amdgcn_workitem_id_x();
    uint near = all[i];
    uint apart = all[(i & 7) * 32];
    uint across = all[i + 16];
    places[i] = near + apart;
    places[2 * i] = across;
    data[i] = near + 1;
}";

#[test]
fn the_profile_counts_sectors_and_bank_conflicts() {
    let folder = Folder::new("check-profile-traffic");
    let Some(object) = compile_with(&folder, WAYS, &["-mcpu=gfx1201", "-O1", "-g"]) else { return };
    let buffer = folder.words("data", &[1; 256]);
    let report = report(&object, &buffer, &["--profile"], 0);
    let profile = &report["profile"];
    let line = |number: u64| {
        let lines = profile["lines"].as_array().unwrap();
        lines.iter().find(|line| line["source"][1] == number).unwrap_or_else(|| panic!("{number}: {lines:?}"))
    };
    // One wave of 32 lanes: 128 bytes, 8 dwords that lie 128 bytes apart, 128 bytes from the middle of a sector on.
    for (number, sectors) in [(6, 1), (7, 8), (8, 2), (11, 1)] {
        let counts = line(number);
        assert_eq!(counts["memory"], json!({"instructions": 1, "sectors": sectors}), "{counts}");
        assert_eq!(counts["lds"], Json::Null, "{counts}");
    }
    // Every other dword: two lanes in each of 16 banks.
    for (number, passes, conflicts) in [(9, 1, 0), (10, 2, 1)] {
        let counts = line(number);
        assert_eq!(
            counts["lds"],
            json!({"instructions": 1, "passes": passes, "conflicts": conflicts}),
            "{counts}"
        );
        assert_eq!(counts["memory"], Json::Null, "{counts}");
    }
    let instructions = profile["instructions"].as_array().unwrap();
    let sum = |key: &str| instructions.iter().filter_map(|of| of[key].as_u64()).sum::<u64>();
    assert_eq!((sum("sectors"), sum("lds_passes"), sum("lds_conflicts")), (12, 3, 1));
    let text = String::from_utf8(launch(&object, &buffer, &["--profile"]).stdout).unwrap();
    let row = text.lines().find(|line| line.contains("kernel.cl:7 ")).unwrap();
    assert!(row.contains(" 8.0 |"), "{text}");
}

#[test]
fn a_card_cannot_be_looked_into() {
    let folder = Folder::new("check-card");
    let object = folder.words("double.o", &DOUBLE_OBJECT);
    let buffer = folder.words("data", &data());
    for flag in [&["--check"][..], &["--profile"], &["--seeds", "2"]] {
        let output = launch(&object, &buffer, &[flag, &["--device", "kfd"]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag:?}: {text}");
        assert!(output.stdout.is_empty(), "{flag:?} wrote to standard output");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        assert!(text.contains("--device kfd cannot be inspected"), "{text}");
    }
    assert_eq!(read_words(&buffer), data(), "the file was not touched");
}
