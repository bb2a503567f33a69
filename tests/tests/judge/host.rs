//! Handing data to the host while the kernel runs: what the host gets if the release is missing.
//!
//! The host's own reads cannot be watched: a missing write-back is not reported here; the host gets the old value.

use crate::case::{Case, WAVE};
use crate::launch::{DEADLINE, Launch, code_of};
use std::time::Instant;
use zrt_tests::assembly::has_tools;

/// Stores 7 to `output`, then 1 to `flag` with system scope, and waits until the host has written to `other`.
macro_rules! handover {
    ($scope:literal, $write_back:literal) => {
        concat!(
            "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 7
    v_mov_b32_e32 v6, 1
    s_mov_b32 exec_lo, 1
    global_store_b32 v4, v5, s[6:7]",
            $scope,
            $write_back,
            "
    s_wait_storecnt 0x0
    global_store_b32 v4, v6, s[8:9] scope:SCOPE_SYS
.Lwait:
    global_load_b32 v7, v4, s[10:11] scope:SCOPE_SYS
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v7
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lwait"
        )
    };
}

#[test]
fn the_host_gets_old_bytes_unless_they_are_released() {
    if !has_tools() {
        return;
    }
    for (body, expected) in [
        (handover!("", ""), 0),
        (handover!("", "\n    global_wb scope:SCOPE_SYS"), 7),
        (handover!(" scope:SCOPE_SYS", ""), 7),
    ] {
        let case = Case { name: "message_to_the_host", shared: &["flag", "other"], ..WAVE };
        let launch = Launch::new(&case, &code_of(body), 0);
        let [_, output, flag, other] = &launch.buffers;
        let start = Instant::now();
        while view(flag).load_u32(0) == 0 {
            assert!(start.elapsed() < DEADLINE, "the flag does not come");
            std::thread::yield_now();
        }
        assert_eq!(view(output).load_u32(0), expected, "{body}");
        view(other).store_u32(0, 1);
        launch.device.flush();
        let outcome = launch.finish();
        assert!(outcome.has_ended && outcome.findings.is_empty(), "{body}");
        assert_eq!(view(&outcome.buffers[1]).load_u32(0), 7, "the end of the submission writes back");
    }
}

fn view(buffer: &zrt_device::Buffer) -> &zrt_mem::SharedView {
    buffer.view().expect("visible")
}
