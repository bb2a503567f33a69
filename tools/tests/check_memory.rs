//! `zrt launch --check` on what compilers make of memory: lanes that store to one place, memory that nobody has
//! written, private memory and its end.
//!
//! Each case is OpenCL C, wrong and right, compiled at the levels of `kernel_files::checked`.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::checked::{findings_by_level, told};

/// Two lanes in one place: of memory, and of LDS.
const PLACES: &str = "
kernel void place(global uint *data) {
    volatile local uint slots[32];
    uint i = __builtin_amdgcn_workitem_id_x();
    slots[i] = 0;
    slots[LDS] = VALUE;
    data[GLOBAL] = VALUE;
    data[32 + i] = slots[i];
}";

#[test]
fn two_lanes_store_different_values_to_one_place() {
    for lanes in ["-mno-wavefrontsize64", "-mwavefrontsize64"] {
        let races = |lds: &str, global: &str, value: &str| {
            let defines = [lds, global, value].map(|define| format!("-D{define}"));
            let flags = [lanes, &defines[0], &defines[1], &defines[2]];
            findings_by_level("lanes", PLACES, "race", &flags, &["zero:256"])
        };
        let Some(right) = races("LDS=i", "GLOBAL=i/2", "VALUE=(i/2)") else { return };
        assert!(right.iter().all(|findings| findings.is_empty()), "{right:?}");
        for (lds, global, address) in [("LDS=(i/2)", "GLOBAL=i", Some(0)), ("LDS=i", "GLOBAL=i/2", None)] {
            for findings in races(lds, global, "VALUE=i").unwrap() {
                let [finding] = &findings[..] else { panic!("{findings:?}") };
                assert!(told(finding).contains("lane 0 stores 0x0, lane 1 stores 0x1"), "{finding}");
                assert_eq!(finding["lane"], 1, "{finding}");
                assert!(address.is_none_or(|address: u64| finding["address"] == address), "{finding}");
            }
        }
    }
}

/// A structure of which only the flag is written, and what is made of the rest by way of private or global memory.
const PASSED: &str = "
struct pair { uint flag, rest; };
kernel void pass(global uint *data, global struct pair *passed) {
    struct pair own;
    uint i = __builtin_amdgcn_workitem_id_x();
    volatile private uint slots[8];
    slots[data[i] & 7] = 1;
    own.flag = i;
    if (ALL) own.rest = i;
    uint read = PRIVATE ? slots[(data[i] + !ALL) & 7] : own.flag;
    if (GLOBAL) {
        passed[i] = own;
        __asm volatile(\"\" ::: \"memory\");
        read = passed[i].rest;
    }
    data[32 + i] = read + 1;
}";

#[test]
fn what_is_undefined_stays_so_in_memory() {
    for way in ["-DPRIVATE=1 -DGLOBAL=0", "-DPRIVATE=0 -DGLOBAL=1"] {
        let told_of = |all: &str| {
            let flags: Vec<&str> = way.split(' ').chain([all]).collect();
            findings_by_level("passed", PASSED, "uninitialised", &flags, &["zero:256", "zero:256"])
        };
        let Some(right) = told_of("-DALL=1") else { return };
        assert!(right.iter().all(|findings| findings.is_empty()), "{way}: {right:?}");
        for (findings, level) in told_of("-DALL=0").unwrap().iter().zip(kernel_files::checked::LEVELS) {
            let is_told = |finding| {
                let what = told(finding);
                what.contains("which nothing has written") || what.contains("nothing has written it")
            };
            // From -O2 on the compiler sees that the rest of the structure is undefined, and stores nothing there.
            let is_left = way.ends_with("GLOBAL=0") || level == "-O0";
            assert!(!is_left || !findings.is_empty(), "{way} {level}");
            assert!(findings.iter().all(is_told), "{way} {level}: {findings:?}");
        }
    }
}

/// Reads of a buffer: before it is written, after, and of bytes beside the written ones, without and with use.
const READS: &str = "
kernel void read(global uint *data, global uint *result) {
    uint i = __builtin_amdgcn_workitem_id_x();
    global uchar *bytes = (global uchar *)data;
    if (HOW == 0) result[i] = data[i] + 1;
    if (HOW == 1) { data[i] = i; result[i] = data[i] + 1; }
    if (HOW == 2) { bytes[4 * i] = i; result[i] = *(volatile global uint *)&data[i] & 0xff; }
    if (HOW == 3) { bytes[4 * i] = i; result[i] = (*(volatile global uint *)&data[i] & 0xffff) == 1 ? 5 : 6; }
}";

#[test]
fn an_output_that_nobody_has_written_is_not_read() {
    for (how, expected) in [(0, Some("0 bytes into")), (1, None), (2, None), (3, Some("1 bytes into"))] {
        let define = format!("-DHOW={how}");
        let told_of =
            |data: &str| findings_by_level("reads", READS, "uninitialised", &[&define], &[data, "zero:128"]);
        let Some(with_zeros) = told_of("zero:128") else { return };
        assert!(with_zeros.iter().all(|findings| findings.is_empty()), "{how}: {with_zeros:?}");
        for findings in told_of("out:128:@").unwrap() {
            let Some(place) = expected else {
                assert!(findings.is_empty(), "{how}: {findings:?}");
                continue;
            };
            let [finding] = &findings[..] else { panic!("{how}: {findings:?}") };
            for part in ["which nothing has written", place, "(128 bytes at"] {
                assert!(told(finding).contains(part), "{how}: {part:?} in {finding}");
            }
        }
    }
}

/// An array of three in private memory.
const ARRAY: &str = "
kernel void array(global uint *data) {
    volatile private uint slots[3];
    uint i = __builtin_amdgcn_workitem_id_x();
    for (uint j = 0; j < 3; j++) slots[j] = j;
    slots[data[i] + (i == 7 ? INDEX : 0)] = i;
    data[i] = slots[2];
}";

#[test]
fn private_memory_ends_where_the_kernel_says() {
    let mut overruns = [0; 3];
    for index in [0, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24] {
        let define = format!("-DINDEX={index}");
        let Some(levels) = findings_by_level("array", ARRAY, "bounds", &[&define], &["zero:128"]) else {
            return;
        };
        for (findings, overruns) in levels.iter().zip(&mut overruns) {
            assert!(index >= 3 || findings.is_empty(), "{index}: {findings:?}");
            let beyond =
                |finding: &&serde_json::Value| told(finding).contains("of which the kernel declares");
            for finding in findings.iter().filter(beyond) {
                assert_eq!(finding["lane"], 7, "{finding}");
                *overruns += 1;
            }
        }
    }
    assert!(overruns.iter().all(|count| *count > 0), "{overruns:?}");
}
