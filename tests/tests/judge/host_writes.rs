//! What the host writes while a kernel runs: where it must be, and how it is read.
//!
//! The kernel reads dwords of `output` and `other`, signals the host in `flag`, and waits until the host has written
//! them anew and then `other`. What it then reads it stores to `other`.

use crate::case::{Case, PAIR, WAVE};
use crate::launch::{DEADLINE, Launch, Outcome, code_of, source_of};
use crate::mark::Mark;
use crate::{SEEDS, judge};
use std::time::Instant;
use zrt_device::Buffer;
use zrt_tests::assembly::has_tools;

/// What the host writes to dword 1 of `output`.
const WRITTEN: u32 = 101;

/// One read, the host's turn, then the case's own code.
macro_rules! handed {
    ($acquire:literal, $load:literal) => {
        concat!(
            "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    global_load_b32 v7, v1, s[6:7]
    global_load_b32 v6, v4, s[10:11] scope:SCOPE_SYS
    s_wait_loadcnt 0x0
    global_store_b32 v4, v5, s[8:9] scope:SCOPE_SYS
.Lwait:
    global_load_b32 v6, v4, s[10:11] scope:SCOPE_SYS
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lwait
",
            $acquire,
            $load,
            "
    s_wait_loadcnt 0x0
    global_store_b32 v1, v7, s[10:11]"
        )
    };
}

/// The same with a second group, which reads too, and which the first notifies through dword 32 of `flag`.
macro_rules! told {
    ($acquire:literal, $load:literal) => {
        concat!(
            "
    global_load_b32 v7, v1, s[6:7]
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_wait_loadcnt 0x0
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] offset:256 scope:SCOPE_DEV
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc0 .Lsecond
.Lboth:
    global_load_b32 v6, v4, s[8:9] offset:256 scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 2
    s_cbranch_scc0 .Lboth
    s_wait_storecnt 0x0
    global_store_b32 v4, v5, s[8:9] scope:SCOPE_SYS
.Lwait:
    global_load_b32 v6, v4, s[10:11] scope:SCOPE_SYS
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lwait
    global_inv scope:SCOPE_SYS
    s_wait_loadcnt 0x0
    global_load_b32 v7, v1, s[6:7]
    s_wait_loadcnt 0x0
    global_atomic_add_u32 v4, v5, s[8:9] offset:512 scope:SCOPE_DEV
    s_endpgm
.Lsecond:
    global_load_b32 v6, v4, s[8:9] offset:512 scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lsecond
    s_mov_b32 exec_lo, -1
",
            $acquire,
            $load,
            "
    s_wait_loadcnt 0x0
    global_store_b32 v1, v7, s[10:11]"
        )
    };
}

const SHARED: &[&str] = &["output", "flag", "other"];

const CASES: &[Case] = &[
    Case {
        name: "host_writes_what_the_vector_cache_has",
        rule: "visibility",
        received: Some([0, WRITTEN]),
        shared: SHARED,
        wrong: handed!("", "    global_load_b32 v7, v1, s[6:7]  // caught lane 0 at output+0x0"),
        right: handed!("", "    global_load_b32 v7, v1, s[6:7] scope:SCOPE_SYS"),
        ..WAVE
    },
    Case {
        name: "host_writes_behind_an_invalidation_for_the_device",
        rule: "visibility",
        received: Some([0, WRITTEN]),
        shared: SHARED,
        wrong: handed!(
            "    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0
",
            "    global_load_b32 v7, v1, s[6:7]  // caught lane 0 at output+0x0"
        ),
        right: handed!(
            "    global_inv scope:SCOPE_SYS
    s_wait_loadcnt 0x0
",
            "    global_load_b32 v7, v1, s[6:7]"
        ),
        ..WAVE
    },
    Case {
        name: "host_writes_that_another_group_has_acquired",
        rule: "visibility",
        received: Some([0, WRITTEN]),
        shared: SHARED,
        wrong: told!(
            "    global_inv scope:SCOPE_DEV
    s_wait_loadcnt 0x0
",
            "    global_load_b32 v7, v1, s[6:7]  // caught group 1 lane 0 at output+0x0"
        ),
        right: told!("", "    global_load_b32 v7, v1, s[6:7] scope:SCOPE_SYS"),
        ..PAIR
    },
];

fn view(buffer: &Buffer) -> &zrt_mem::SharedView {
    buffer.view().expect("visible")
}

/// Plays the host's part.
fn play(case: &Case, body: &str, seed: u64) -> Outcome {
    let launch = Launch::new(case, &code_of(body), seed);
    let [_, output, flag, other] = &launch.buffers;
    let start = Instant::now();
    while view(flag).load_u32(0) == 0 {
        assert!(start.elapsed() < DEADLINE, "{}: the kernel does not ask", case.name);
        std::thread::yield_now();
    }
    for dword in 0..32 {
        view(output).store_u32(4 * dword, WRITTEN - 1 + dword as u32);
    }
    launch.device.flush();
    view(other).store_u32(0, 1);
    launch.device.flush();
    launch.finish()
}

#[test]
fn what_the_host_writes_is_read_with_system_scope() {
    if !has_tools() {
        return;
    }
    for case in CASES {
        let source = source_of(case.wrong);
        let marks = Mark::all(&source);
        for seed in 0..SEEDS {
            let [wrong, right] = [case.wrong, case.right].map(|body| play(case, body, seed));
            let told =
                |outcome: &Outcome| outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert!(right.findings.is_empty(), "{}, right, seed {seed}: {:?}", case.name, told(&right));
            assert_eq!(judge(case, &marks, &wrong, seed).len(), 1, "{}, seed {seed}", case.name);
            assert!(wrong.has_ended && right.has_ended, "{}, seed {seed}", case.name);
            let received = [wrong.received, right.received];
            assert_eq!(Some(received), case.received, "{}, seed {seed}", case.name);
        }
    }
}

/// The same right kernel, with the buffer that it waits for in VRAM that GL2 keeps: it never sees the host's write.
#[test]
fn a_message_in_vram_that_gl2_keeps_does_not_arrive() {
    if !has_tools() {
        return;
    }
    let case = Case { name: "message_in_kept_vram", rule: "visibility", shared: &["flag"], ..WAVE };
    let body = handed!("", "    global_load_b32 v7, v1, s[6:7] scope:SCOPE_SYS");
    let outcome = play(&case, body, 0);
    let [finding] = &outcome.findings[..] else { panic!("{} findings", outcome.findings.len()) };
    assert!(!outcome.has_ended, "the wait goes on");
    assert_eq!(finding.rule, "visibility", "{finding}");
    assert_eq!(finding.address, Some(outcome.buffers[3].va.0), "{finding}");
    assert!(finding.remedy.contains("shared VRAM"), "{finding}");
}
