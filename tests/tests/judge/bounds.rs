//! Cases of addresses: outside of buffers and of LDS, misaligned, past the end of the code, through the wrong cache.

use crate::case::{Case, GROUP, PAIR, WAVE};

/// A dword before or after a buffer of whole pages, with other buffers on both sides; the right twin's is the first or
/// last one.
macro_rules! beside {
    ($name:literal, $bytes:literal, $wrong:literal, $right:literal, $place:literal) => {
        Case {
            name: $name,
            rule: "bounds",
            buffer_bytes: $bytes,
            wrong: concat!(
                "
    v_mov_b32_e32 v2, ",
                $wrong,
                "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v2, s[6:7] offset:-4  // caught lane 0 at ",
                $place,
                "
    s_wait_loadcnt 0x0"
            ),
            right: concat!(
                "
    v_mov_b32_e32 v2, ",
                $right,
                "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v2, s[6:7] offset:-4
    s_wait_loadcnt 0x0"
            ),
            ..WAVE
        }
    };
}

pub const CASES: &[Case] = &[
    beside!("behind_a_page", 4096, "0x1004", "0x1000", "output+0x1000"),
    beside!("before_a_page", 4096, "0", "4", "output-0x4"),
    beside!("behind_a_large_buffer", 0x20_0000, "0x200004", "0x200000", "output+0x200000"),
    beside!("before_a_large_buffer", 0x20_0000, "0", "4", "output-0x4"),
    Case {
        name: "stored_behind_a_page",
        rule: "bounds",
        buffer_bytes: 4096,
        wrong: "
    v_mov_b32_e32 v2, 0xffc
    s_mov_b32 exec_lo, 1
    global_store_b64 v2, v[0:1], s[6:7]  // caught lane 0 at output+0x1000",
        right: "
    v_mov_b32_e32 v2, 0xff8
    s_mov_b32 exec_lo, 1
    global_store_b64 v2, v[0:1], s[6:7]",
        ..WAVE
    },
    Case {
        name: "not_mapped",
        rule: "bounds",
        wrong: "
    v_mov_b32_e32 v2, 0x40000000
    global_load_b32 v3, v2, s[4:5]  // caught lane 0 group 0|1 at elsewhere
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v3, v1, s[4:5]
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "past_the_buffer",
        rule: "bounds",
        wrong: "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v1, s[4:5] offset:4000  // caught lane 0 group 0|1 at input+0xfa0
    s_wait_loadcnt 0x0",
        right: "
    s_mov_b32 exec_lo, 1
    global_load_b32 v3, v1, s[4:5] offset:3996
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "lds_beyond_the_allocation",
        rule: "bounds",
        wrong: "
    ds_store_b32 v1, v1 offset:1024  // caught wave 0|1 lane 0 at lds+0x400|lds+0x480",
        right: "
    ds_store_b32 v1, v1 offset:512",
        ..GROUP
    },
    Case {
        name: "misaligned_load",
        rule: "advice",
        wrong: "
    global_load_b32 v2, v1, s[4:5] offset:2  // caught lane 0 group 0|1 at input+0x2
    s_wait_loadcnt 0x0",
        right: "
    global_load_b32 v2, v1, s[4:5] offset:4
    s_wait_loadcnt 0x0",
        ..PAIR
    },
    Case {
        name: "misaligned_lds",
        rule: "advice",
        wrong: "
    v_lshlrev_b32_e32 v2, 3, v0
    ds_store_b64 v2, v[0:1] offset:4  // caught wave 0|1 lane 0 at lds+0x4|lds+0x104",
        right: "
    v_lshlrev_b32_e32 v2, 3, v0
    ds_store_b64 v2, v[0:1] offset:8",
        lds_bytes: 2048,
        ..GROUP
    },
    Case {
        name: "misaligned_lds_atomic",
        rule: "bounds",
        wrong: "
    v_lshlrev_b32_e32 v2, 3, v0
    v_mov_b32_e32 v3, 0
    v_mov_b32_e32 v4, 0
    ds_store_b64 v2, v[3:4]
    s_wait_dscnt 0x0
    ds_add_u32 v2, v0 offset:2  // caught wave 0|1 lane 0 at lds+0x2|lds+0x102",
        right: "
    v_lshlrev_b32_e32 v2, 3, v0
    v_mov_b32_e32 v3, 0
    v_mov_b32_e32 v4, 0
    ds_store_b64 v2, v[3:4]
    s_wait_dscnt 0x0
    ds_add_u32 v2, v0 offset:4",
        lds_bytes: 2048,
        ..GROUP
    },
    Case {
        name: "past_the_end",
        rule: "bounds",
        wrong: "
    s_branch .Lend
    s_endpgm
.Lend:
    .long 0xbf9f0000  // caught group 0|1",
        right: "
    s_branch .Lend
    .long 0xbf9f0000
.Lend:",
        ..PAIR
    },
    Case {
        name: "scalar_load_of_stored_data",
        rule: "bounds",
        groups: 1,
        wrong: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_load_b32 s20, s[6:7], 0x0  // caught lane 0 at output+0x0
    s_wait_kmcnt 0x0",
        right: "
    global_store_b32 v1, v1, s[6:7]
    s_wait_storecnt 0x0
    s_load_b32 s20, s[4:5], 0x0
    s_wait_kmcnt 0x0",
        ..PAIR
    },
];
