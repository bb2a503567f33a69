//! Kernels that never end, as users of `zrt launch` and `zrt step` meet them: reported soon, by name, with the results
//! of the others.
//!
//! Every program here has [`PATIENCE`] of real time. Words of llvm-mc 19.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::{DOUBLE_OBJECT, Folder, read_words};
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far less than the time that a kernel may run by default.
const PATIENCE: Duration = Duration::from_secs(30);

/// A wait at a barrier that nobody signals.
const DEADLOCK: [u32; 2] = [
    0xBF94_FFFF, // s_barrier_wait -1
    0xBFB0_0000, // s_endpgm
];
/// A trap after one instruction.
const TRAP: [u32; 3] = [
    0xBF80_0000, // s_nop 0
    0xBF90_0002, // s_trap 2
    0xBFB0_0000, // s_endpgm
];
/// A loop that the device cannot tell from work.
const LOOP: [u32; 1] = [0xBFA0_FFFF]; // s_branch -1
/// Every group waits for a flag that nobody sets.
const SPIN: [u32; 13] = [
    0xF400_2000,
    0xF800_0000, // s_load_b64 s[0:1], s[0:1], 0x0
    0x7E02_0280, // v_mov_b32_e32 v1, 0
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0xEE05_0000,
    0x0008_0002,
    0x0000_0001, // again: global_load_b32 v2, v1, s[0:1] scope:SCOPE_DEV
    0xBFC0_0000, // s_wait_loadcnt 0x0
    0x7C94_0480, // v_cmp_eq_u32_e32 vcc_lo, 0, v2
    0xBF88_0000, // s_wait_alu 0
    0xBFA4_FFF9, // s_cbranch_vccnz again
    0xBFB0_0000, // s_endpgm
    0xBF9F_0000, // s_code_end
];
/// Two waves count up; both count forever unless wave 0 meets an even number, and so wave 1 an odd one.
const ORDER: [u32; 19] = [
    0xF400_2000,
    0xF800_0000, // s_load_b64 s[0:1], s[0:1], 0x0
    0xBEFE_0081, // s_mov_b32 exec_lo, 1
    0x3208_0085, // v_lshrrev_b32_e32 v4, 5, v0
    0x7E02_0280, // v_mov_b32_e32 v1, 0
    0x7E04_0281, // v_mov_b32_e32 v2, 1
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0xEE0D_4000,
    0x0118_0003,
    0x0000_0001, // global_atomic_add_u32 v3, v1, v2, s[0:1] th:TH_ATOMIC_RETURN scope:SCOPE_DEV
    0xBFC0_0000, // s_wait_loadcnt 0x0
    0x3606_0681, // v_and_b32_e32 v3, 1, v3
    0x3A06_0704, // v_xor_b32_e32 v3, v4, v3
    0x7C9A_0680, // v_cmp_ne_u32_e32 vcc_lo, 0, v3
    0xBF88_0000, // s_wait_alu 0
    0xBE84_0080, // s_mov_b32 s4, 0
    0x8104_8104, // here: s_add_co_i32 s4, s4, 1
    0xBFA4_FFFE, // s_cbranch_vccnz here
    0xBFB0_0000, // s_endpgm
];

/// Runs `zrt` with this input, and fails if it takes longer than [`PATIENCE`].
#[track_caller]
fn zrt(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(arguments).env("ZRT_DEVICE", "virtual");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    // Input stays in the pipe if nobody reads it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            let mut text = String::new();
            child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            panic!("{arguments:?} still runs after {PATIENCE:?}; it wrote {text:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Runs a launch that must end with exit code 1 and write a JSON document.
#[track_caller]
fn report(arguments: &[&str]) -> Json {
    let output = zrt(&[&["launch"], arguments, &["--json"]].concat(), "");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a command that must end with exit code 1 and one sentence that has all `parts`; returns what it wrote before
/// that.
#[track_caller]
fn fails(arguments: &[&str], input: &str, parts: &[&str]) -> String {
    let output = zrt(arguments, input);
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {sentence}");
    assert_eq!(sentence.trim_end().lines().count(), 1, "{sentence}");
    for part in parts {
        assert!(sentence.contains(part), "{part:?} in {sentence:?}");
    }
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_barrier_that_cannot_complete_is_told_at_once() {
    let folder = Folder::new("unfinished-barrier");
    let code = folder.words("deadlock.bin", &DEADLOCK);
    let launch = [code.as_str(), "--grid", "1", "--block", "64"];
    let checked = report(&[&launch[..], &["--check"]].concat());
    let rules: Vec<&Json> =
        checked["findings"].as_array().unwrap().iter().map(|finding| &finding["rule"]).collect();
    assert!(!rules.is_empty() && rules.iter().all(|rule| **rule == "progress"), "{checked}");
    assert_eq!((&checked["failed_schedules"], &checked["failed_seed"]), (&json!(1), &json!(0)));
    let failure = checked["failure"].as_str().unwrap();
    let told = "the waves left wait at a barrier that cannot complete, at raw+0x0: s_barrier_wait 0xffff, in workgroup \
                0,0,0 wave ";
    assert!(failure.starts_with(told), "{failure}");

    let named = "kernel raw did not run to its end: the waves left wait at a barrier that cannot complete";
    fails(&[&["launch"], &launch[..]].concat(), "", &[named, "in workgroup 0,0,0"]);
}

/// Many schedules of it take no longer than their work.
#[test]
fn every_schedule_of_a_deadlock_is_short() {
    let folder = Folder::new("unfinished-seeds");
    let code = folder.words("deadlock.bin", &DEADLOCK);
    let report = report(&[&code, "--grid", "1", "--block", "64", "--seeds", "32", "--seed", "7"]);
    assert_eq!((&report["failed_schedules"], &report["failed_seed"]), (&json!(32), &json!(7)));
    assert_eq!(report["findings"][0]["seed"], 7);
}

#[test]
fn a_spin_for_a_group_without_room_is_told() {
    let folder = Folder::new("unfinished-spin");
    let code = folder.words("spin.bin", &SPIN);
    let flag = format!("inout:{}", folder.words("flag", &[0]));
    // One group fills a compute unit's LDS, so that the last of them have no room.
    let shape = ["--grid", "200", "--block", "1", "--lds", "65536", "--vgprs", "8", "--user-sgprs", "2"];
    let report = report(&[&[code.as_str()], &shape[..], &["--arg", &flag, "--check"]].concat());
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["rule"] == "progress"), "{report}");
    assert!(report["failure"].as_str().unwrap().contains("cannot become resident"), "{report}");
}

/// Everything is resident, and no wave ever does anything else: reported long before the time is up, with what each
/// polls.
#[test]
fn waves_that_wait_for_each_other_for_ever_are_told_at_once() {
    let folder = Folder::new("unfinished-circles");
    let code = folder.words("spin.bin", &SPIN);
    let flag = format!("inout:{}", folder.words("flag", &[0; 4]));
    let launch = [code.as_str(), "--grid", "2", "--block", "64", "--vgprs", "8", "--user-sgprs", "2"];
    let launch = [&launch[..], &["--arg", &flag, "--check", "--timeout", "600"]].concat();
    let report = report(&launch);
    let findings = report["findings"].as_array().unwrap();
    let told: Vec<&Json> = findings.iter().filter(|finding| finding["rule"] == "progress").collect();
    let [finding] = told[..] else { panic!("{report}") };
    assert!(finding["what"].as_str().unwrap().starts_with("4 waves loop forever"), "{finding}");
    let waves = report["error"]["waves"]["list"].as_array().unwrap();
    assert_eq!(waves.len(), 4, "{report}");
    for wave in waves {
        let [load] = &wave["loads"].as_array().unwrap()[..] else { panic!("{wave}") };
        assert_eq!((&wave["state"], &load["value"]), (&json!("running"), &json!(0)));
        assert_eq!(load["place"]["offset"], 0x10, "the load of the flag");
        assert!(load["buffer"].as_str().unwrap().contains("argument 0"), "{load}");
    }

    let text = zrt(&[&["launch"], &launch[..]].concat(), "");
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["waves that had not ended:", "looks at", "argument 0+0x0 = 0x0"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn a_loop_ends_with_the_time_that_it_was_given() {
    let folder = Folder::new("unfinished-loop");
    let code = folder.words("loop.bin", &LOOP);
    let launch = ["launch", &code, "--grid", "1", "--block", "32", "--timeout"];
    let start = Instant::now();
    let parts =
        ["kernel raw did not run to its end", "did not finish within", "--timeout gives it more time"];
    let text = fails(&[&launch[..], &["1"]].concat(), "", &parts);
    assert!(text.contains("waves that had not ended:") && text.contains("s_branch"), "{text}");
    assert!(start.elapsed() >= Duration::from_secs(1));

    let double = folder.words("double.o", &DOUBLE_OBJECT);
    let data = format!("inout:{}", folder.words("data", &[1; 32]));
    let most =
        zrt(&["launch", &double, "--grid", "1", "--block", "32", "--arg", &data, "--timeout", "604800"], "");
    assert!(most.status.success(), "a kernel that ends is not made to wait");
    for wrong in ["0", "-1", "604801", "soon"] {
        let output = zrt(&[&launch[..], &[wrong]].concat(), "");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("--timeout is {wrong:?}, but must be a number from 1")), "{text}");
    }
}

/// Schedules that fail without a finding: the seed and the reason are reported, and the outputs of the first are kept.
#[test]
fn a_schedule_that_fails_leaves_what_others_gave() {
    let folder = Folder::new("unfinished-order");
    let code = folder.words("order.bin", &ORDER);
    let run = |first: u32, flags: &[&str]| {
        let counter = folder.words("counter", &[first]);
        let argument = format!("inout:{counter}");
        let shape = ["--grid", "1", "--block", "64", "--vgprs", "8", "--user-sgprs", "2", "--timeout", "1"];
        let whole = [&["launch", &code], &shape[..], &["--arg", &argument], flags].concat();
        (zrt(&whole, ""), read_words(&counter))
    };
    // Which wave counts first on schedule 0 is the device's choice: this is the number with which it ends.
    let (alone, _) = run(0, &["--seed", "0"]);
    let first = u32::from(!alone.status.success());

    let (output, counter) = run(first, &["--seeds", "32", "--json"]);
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["findings"], json!([]), "no rule is broken");
    let seed = report["failed_seed"].as_u64().unwrap();
    assert!(report["failure"].as_str().unwrap().contains("did not finish within"), "{report}");
    // After the first that takes all its time no more are run.
    let keys = ["schedules", "failed_schedules", "skipped_schedules"];
    assert_eq!(keys.map(|key| report[key].as_u64().unwrap()), [seed + 1, 1, 31 - seed]);
    assert_eq!((&report["kernel"], &report["outputs"][0]["bytes"]), (&json!("raw"), &json!(4)));
    assert_eq!(counter, [first + 2], "the output of the first schedule is written");

    let (output, counter) = run(first, &["--seed", &seed.to_string()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let told = format!("1 schedule(s) did not end, first that of --seed {seed}: the device did not finish");
    assert!(text.contains(&told), "{text}");
    assert_eq!(counter, [first], "nothing is written where no schedule ends");
}

#[test]
fn a_trap_under_step_is_one_sentence() {
    let folder = Folder::new("unfinished-step");
    let code = folder.words("trap.bin", &TRAP);
    let step = ["step", &code, "--grid", "1", "--block", "32"];
    let trap = ["kernel raw did not run to its end: s_trap 2 without a trap handler"];
    let text = fails(&step, "step\nstep\nstep\n", &trap);
    assert!(text.contains("raw+0x4  s_trap 2\n"), "{text}");
    fails(&step, "", &trap);

    let code = folder.words("loop.bin", &LOOP);
    let endless = ["step", &code, "--grid", "1", "--block", "32", "--timeout", "1"];
    for input in ["", "continue\n", "break +0x40\ncontinue\nwhere\n"] {
        fails(&endless, input, &["did not finish within", "--timeout"]);
    }
}
