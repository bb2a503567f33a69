//! `zrt launch --check` on what compilers make of memory: lanes that store to one place.
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
