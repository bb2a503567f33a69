//! Machine code for the tests: sources, and the words that llvm-mc 19 assembles from them for gfx1201.
//!
//! The words are stored so that the tests need no assembler; one test reassembles the sources if LLVM 19 is
//! installed.

/// A piece of code.
#[derive(Clone, Copy)]
pub struct Code {
    /// Its name.
    pub name: &'static str,
    /// The source that was assembled.
    pub source: &'static str,
    /// The words.
    pub words: &'static [u32],
}

/// c[i] = a[i] + b[i]; s[0:1]: a, b, c (u64), n (u32). Instruction set reference §10.
pub const ADD_VECTORS: Code = Code {
    name: "add_vectors",
    source: "\
s_load_b128 s[4:7], s[0:1], 0x0
s_load_b96 s[8:10], s[0:1], 0x10
v_and_b32_e32 v0, 0x3ff, v0
v_lshl_add_u32 v0, ttmp9, 8, v0
s_wait_kmcnt 0x0
v_cmp_gt_u32_e32 vcc_lo, s10, v0
s_and_b32 exec_lo, exec_lo, vcc_lo
s_cbranch_execz done
v_lshlrev_b32_e32 v0, 2, v0
s_clause 0x1
global_load_b32 v1, v0, s[4:5]
global_load_b32 v2, v0, s[6:7]
s_wait_loadcnt 0x0
v_add_f32_e32 v1, v1, v2
global_store_b32 v0, v1, s[8:9]
done:
s_endpgm
",
    words: &[
        0xF400_4100, 0xF800_0000, 0xF400_A200, 0xF800_0010, 0x3600_00FF, 0x0000_03FF, 0xD646_0000, 0x0401_1075,
        0xBFC7_0000, 0x7C98_000A, 0x8B7E_6A7E, 0xBFA5_000D, 0x3000_0082, 0xBF85_0001, 0xEE05_0004, 0x0000_0001,
        0x0000_0000, 0xEE05_0006, 0x0000_0002, 0x0000_0000, 0xBFC0_0000, 0x0602_0501, 0xEE06_8008, 0x0080_0000,
        0x0000_0000, 0xBFB0_0000,
    ],
};

/// out[group] = sum of (id * id) over 256 work-items, by a tree in LDS. s[0:1]: out.
pub const REDUCE_IN_LDS: Code = Code {
    name: "reduce_in_lds",
    source: "\
v_mul_u32_u24_e32 v1, v0, v0
v_lshlrev_b32_e32 v2, 2, v0
ds_store_b32 v2, v1
s_movk_i32 s2, 0x80
loop:
s_wait_dscnt 0x0
s_barrier_signal -1
s_barrier_wait -1
v_cmp_gt_u32_e32 vcc_lo, s2, v0
s_and_saveexec_b32 s3, vcc_lo
s_cbranch_execz skip
s_lshl_b32 s4, s2, 2
v_add_nc_u32_e32 v3, s4, v2
ds_load_b32 v4, v3
ds_load_b32 v1, v2
s_wait_dscnt 0x0
v_add_nc_u32_e32 v1, v1, v4
ds_store_b32 v2, v1
skip:
s_mov_b32 exec_lo, s3
s_lshr_b32 s2, s2, 1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 loop
v_cmp_eq_u32_e32 vcc_lo, 0, v0
s_and_saveexec_b32 s3, vcc_lo
s_cbranch_execz done
s_lshl_b32 s4, ttmp9, 2
v_mov_b32_e32 v3, s4
global_store_b32 v3, v1, s[0:1]
done:
s_endpgm
",
    words: &[
        0x1602_0100, 0x3004_0082, 0xD834_0000, 0x0000_0102, 0xB002_0080, 0xBFC6_0000, 0xBE80_4EC1, 0xBF94_FFFF,
        0x7C98_0002, 0xBE83_206A, 0xBFA5_000A, 0x8404_8202, 0x4A06_0404, 0xD8D8_0000, 0x0400_0003, 0xD8D8_0000,
        0x0100_0002, 0xBFC6_0000, 0x4A02_0901, 0xD834_0000, 0x0000_0102, 0xBEFE_0003, 0x8502_8102, 0xBF07_8002,
        0xBFA2_FFEC, 0x7C94_0080, 0xBE83_206A, 0xBFA5_0005, 0x8404_8275, 0x7E06_0204, 0xEE06_8000, 0x0080_0000,
        0x0000_0003, 0xBFB0_0000,
    ],
};

/// Every lane takes a ticket and marks it: marks[atomic_add(counter, 1)] += 1. s[0:1]: counter, marks from byte 64.
pub const TAKE_TICKETS: Code = Code {
    name: "take_tickets",
    source: "\
v_mov_b32_e32 v1, 0
v_mov_b32_e32 v2, 1
global_atomic_add_u32 v3, v1, v2, s[0:1] th:TH_ATOMIC_RETURN
s_wait_loadcnt 0x0
v_lshlrev_b32_e32 v3, 2, v3
global_atomic_add_u32 v3, v2, s[0:1] offset:64
s_endpgm
",
    words: &[
        0x7E02_0280, 0x7E04_0281, 0xEE0D_4000, 0x0110_0003, 0x0000_0001, 0xBFC0_0000, 0x3006_0682, 0xEE0D_4000,
        0x0100_0000, 0x0000_4003, 0xBFB0_0000,
    ],
};

/// Two workgroups: group g waits until the word is odd (g = 1) or even (g = 0), adds 1, 100 times. s[0:1]: the word.
pub const PING_PONG: Code = Code {
    name: "ping_pong",
    source: "\
v_mov_b32_e32 v0, 0
s_movk_i32 s2, 0x64
turn:
global_load_b32 v1, v0, s[0:1] scope:SCOPE_DEV
s_wait_loadcnt 0x0
v_and_b32_e32 v1, 1, v1
s_nop 0
v_readfirstlane_b32 s3, v1
s_cmp_eq_u32 s3, ttmp9
s_cbranch_scc1 mine
s_sleep 1
s_branch turn
mine:
v_mov_b32_e32 v2, 1
s_mov_b32 s4, exec_lo
s_mov_b32 exec_lo, 1
global_atomic_add_u32 v0, v2, s[0:1] scope:SCOPE_DEV
s_wait_storecnt 0x0
s_mov_b32 exec_lo, s4
s_sub_co_i32 s2, s2, 1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 turn
s_endpgm
",
    words: &[
        0x7E00_0280, 0xB002_0064, 0xEE05_0000, 0x0008_0001, 0x0000_0000, 0xBFC0_0000, 0x3602_0281, 0xBF80_0000,
        0x7E06_0501, 0xBF06_7503, 0xBFA2_0002, 0xBF83_0001, 0xBFA0_FFF5, 0x7E04_0281, 0xBE84_007E, 0xBEFE_0081,
        0xEE0D_4000, 0x0108_0000, 0x0000_0000, 0xBFC1_0000, 0xBEFE_0004, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFEA,
        0xBFB0_0000,
    ],
};

/// out[group * 64 + 2 i] = v0, [.. + 1] = ttmp7 << 8 | ttmp9 for 32 work-items. s[0:1]: out.
pub const STORE_IDS: Code = Code {
    name: "store_ids",
    source: "\
v_mov_b32_e32 v1, v0
s_lshl_b32 s2, ttmp7, 8
s_or_b32 s2, s2, ttmp9
v_mov_b32_e32 v2, s2
v_and_b32_e32 v0, 0x3ff, v0
v_lshlrev_b32_e32 v0, 3, v0
s_lshl_b32 s3, ttmp9, 8
v_add_nc_u32_e32 v0, s3, v0
global_store_b64 v0, v[1:2], s[0:1]
s_endpgm
",
    words: &[
        0x7E02_0300, 0x8402_8873, 0x8C02_7502, 0x7E04_0202, 0x3600_00FF, 0x0000_03FF, 0x3000_0083, 0x8403_8875,
        0x4A00_0003, 0xEE06_C000, 0x0080_0000, 0x0000_0000, 0xBFB0_0000,
    ],
};

/// Loads at every width from s[0:1] + 4 * lane (+ 1024 for stores), results stored 256 bytes apart from s[2:3].
pub const WIDTHS: Code = Code {
    name: "widths",
    source: "\
v_lshlrev_b32_e32 v0, 2, v0
v_lshlrev_b32_e32 v30, 2, v0
global_load_u8 v1, v0, s[0:1] offset:1
global_load_i8 v2, v0, s[0:1] offset:2
global_load_u16 v3, v0, s[0:1] offset:2
global_load_i16 v4, v0, s[0:1] offset:1
v_mov_b32_e32 v5, 0x11112222
v_mov_b32_e32 v6, v5
v_mov_b32_e32 v7, v5
v_mov_b32_e32 v8, v5
global_load_d16_u8 v5, v0, s[0:1]
global_load_d16_hi_i8 v6, v0, s[0:1]
global_load_d16_b16 v7, v0, s[0:1]
global_load_d16_hi_b16 v8, v0, s[0:1]
global_load_b32 v9, v0, s[0:1] offset:3
global_load_b64 v[10:11], v0, s[0:1]
global_load_b96 v[12:14], v0, s[0:1]
global_load_b128 v[16:19], v0, s[0:1]
s_wait_loadcnt 0x0
global_store_b32 v0, v1, s[2:3]
global_store_b32 v0, v2, s[2:3] offset:256
global_store_b32 v0, v3, s[2:3] offset:512
global_store_b32 v0, v4, s[2:3] offset:768
global_store_b32 v0, v5, s[2:3] offset:1024
global_store_b32 v0, v6, s[2:3] offset:1280
global_store_b32 v0, v7, s[2:3] offset:1536
global_store_b32 v0, v8, s[2:3] offset:1792
global_store_b32 v0, v9, s[2:3] offset:2048
global_store_b32 v0, v11, s[2:3] offset:2304
global_store_b32 v0, v14, s[2:3] offset:2560
global_store_b128 v30, v[16:19], s[2:3] offset:2816
global_store_b8 v0, v16, s[2:3] offset:3328
global_store_d16_hi_b8 v0, v16, s[2:3] offset:3329
global_store_b16 v0, v16, s[2:3] offset:3330
global_store_d16_hi_b16 v0, v16, s[2:3] offset:3585
global_store_b96 v30, v[12:14], s[2:3] offset:3840
s_endpgm
",
    words: &[
        0x3000_0082, 0x303C_0082, 0xEE04_0000, 0x0000_0001, 0x0000_0100, 0xEE04_4000, 0x0000_0002, 0x0000_0200,
        0xEE04_8000, 0x0000_0003, 0x0000_0200, 0xEE04_C000, 0x0000_0004, 0x0000_0100, 0x7E0A_02FF, 0x1111_2222,
        0x7E0C_0305, 0x7E0E_0305, 0x7E10_0305, 0xEE07_8000, 0x0000_0005, 0x0000_0000, 0xEE08_8000, 0x0000_0006,
        0x0000_0000, 0xEE08_0000, 0x0000_0007, 0x0000_0000, 0xEE08_C000, 0x0000_0008, 0x0000_0000, 0xEE05_0000,
        0x0000_0009, 0x0000_0300, 0xEE05_4000, 0x0000_000A, 0x0000_0000, 0xEE05_8000, 0x0000_000C, 0x0000_0000,
        0xEE05_C000, 0x0000_0010, 0x0000_0000, 0xBFC0_0000, 0xEE06_8002, 0x0080_0000, 0x0000_0000, 0xEE06_8002,
        0x0100_0000, 0x0001_0000, 0xEE06_8002, 0x0180_0000, 0x0002_0000, 0xEE06_8002, 0x0200_0000, 0x0003_0000,
        0xEE06_8002, 0x0280_0000, 0x0004_0000, 0xEE06_8002, 0x0300_0000, 0x0005_0000, 0xEE06_8002, 0x0380_0000,
        0x0006_0000, 0xEE06_8002, 0x0400_0000, 0x0007_0000, 0xEE06_8002, 0x0480_0000, 0x0008_0000, 0xEE06_8002,
        0x0580_0000, 0x0009_0000, 0xEE06_8002, 0x0700_0000, 0x000A_0000, 0xEE07_4002, 0x0800_0000, 0x000B_001E,
        0xEE06_0002, 0x0800_0000, 0x000D_0000, 0xEE09_0002, 0x0800_0000, 0x000D_0100, 0xEE06_4002, 0x0800_0000,
        0x000D_0200, 0xEE09_4002, 0x0800_0000, 0x000E_0100, 0xEE07_0002, 0x0600_0000, 0x000F_001E, 0xBFB0_0000,
    ],
};

/// Scalar loads at every width from s[0:1], stored as dwords from s[2:3] by lane 0.
pub const SCALAR_LOADS: Code = Code {
    name: "scalar_loads",
    source: "\
s_load_b32 s4, s[0:1], 0x4
s_load_b64 s[6:7], s[0:1], 0x8
s_load_b96 s[8:10], s[0:1], 0x10
s_load_b128 s[12:15], s[0:1], 0x20
s_load_b256 s[16:23], s[0:1], 0x20
s_load_b512 s[24:39], s[0:1], 0x40
s_load_u8 s40, s[0:1], 0x3
s_load_i8 s41, s[0:1], 0x3
s_load_u16 s42, s[0:1], 0x2
s_load_i16 s43, s[0:1], 0x2
s_movk_i32 s44, 0x10
s_load_b32 s45, s[0:1], s44 offset:0x7
s_mov_b32 s48, s0
s_and_b32 s49, s1, 0xffff
s_movk_i32 s50, 0x18
s_mov_b32 s51, 0x30000000
s_buffer_load_b128 s[52:55], s[48:51], 0x10
s_wait_kmcnt 0x0
v_mov_b32_e32 v0, 0
v_mov_b32_e32 v1, s4
v_mov_b32_e32 v2, s7
v_mov_b32_e32 v3, s10
v_mov_b32_e32 v4, s15
global_store_b128 v0, v[1:4], s[2:3]
v_mov_b32_e32 v1, s23
v_mov_b32_e32 v2, s39
v_mov_b32_e32 v3, s40
v_mov_b32_e32 v4, s41
global_store_b128 v0, v[1:4], s[2:3] offset:16
v_mov_b32_e32 v1, s42
v_mov_b32_e32 v2, s43
v_mov_b32_e32 v3, s45
v_mov_b32_e32 v4, s53
global_store_b128 v0, v[1:4], s[2:3] offset:32
v_mov_b32_e32 v1, s54
v_mov_b32_e32 v2, s55
global_store_b64 v0, v[1:2], s[2:3] offset:48
s_endpgm
",
    words: &[
        0xF400_0100, 0xF800_0004, 0xF400_2180, 0xF800_0008, 0xF400_A200, 0xF800_0010, 0xF400_4300, 0xF800_0020,
        0xF400_6400, 0xF800_0020, 0xF400_8600, 0xF800_0040, 0xF401_2A00, 0xF800_0003, 0xF401_0A40, 0xF800_0003,
        0xF401_6A80, 0xF800_0002, 0xF401_4AC0, 0xF800_0002, 0xB02C_0010, 0xF400_0B40, 0x5800_0007, 0xBEB0_0000,
        0x8B31_FF01, 0x0000_FFFF, 0xB032_0018, 0xBEB3_00FF, 0x3000_0000, 0xF402_4D18, 0xF800_0010, 0xBFC7_0000,
        0x7E00_0280, 0x7E02_0204, 0x7E04_0207, 0x7E06_020A, 0x7E08_020F, 0xEE07_4002, 0x0080_0000, 0x0000_0000,
        0x7E02_0217, 0x7E04_0227, 0x7E06_0228, 0x7E08_0229, 0xEE07_4002, 0x0080_0000, 0x0000_1000, 0x7E02_022A,
        0x7E04_022B, 0x7E06_022D, 0x7E08_0235, 0xEE07_4002, 0x0080_0000, 0x0000_2000, 0x7E02_0236, 0x7E04_0237,
        0xEE06_C002, 0x0080_0000, 0x0000_3000, 0xBFB0_0000,
    ],
};

/// Calls a function at s[4:5] twice and one by s_call; s[0:1]: out. v1 counts.
pub const FAR_CALLS: Code = Code {
    name: "far_calls",
    source: "\
v_mov_b32_e32 v1, 0
s_swappc_b64 s[6:7], s[4:5]
s_swappc_b64 s[6:7], s[4:5]
s_nop 0
s_call_b64 s[6:7], near
s_getpc_b64 s[8:9]
v_mov_b32_e32 v2, s8
v_mov_b32_e32 v0, 0
global_store_b64 v0, v[1:2], s[0:1]
s_endpgm
near:
v_add_nc_u32_e32 v1, 0x64, v1
s_setpc_b64 s[6:7]
",
    words: &[
        0x7E02_0280, 0xBE86_4904, 0xBE86_4904, 0xBF80_0000, 0xBA06_0007, 0xBE88_4700, 0x7E04_0208, 0x7E00_0280,
        0xEE06_C000, 0x0080_0000, 0x0000_0000, 0xBFB0_0000, 0x4A02_02FF, 0x0000_0064, 0xBE80_4806,
    ],
};

/// Adds 1 to v1 and returns to s[6:7].
pub const CALLEE: Code = Code {
    name: "callee",
    source: "\
v_add_nc_u32_e32 v1, 1, v1
s_setpc_b64 s[6:7]
",
    words: &[
        0x4A02_0281, 0xBE80_4806,
    ],
};

/// Stores to and loads from the private segment; s[0:1]: out.
pub const SCRATCH: Code = Code {
    name: "scratch",
    source: "\
v_and_b32_e32 v0, 0x3ff, v0
v_lshl_add_u32 v0, ttmp9, 6, v0
v_mov_b32_e32 v1, v0
v_add_nc_u32_e32 v2, 0x1000, v0
v_add_nc_u32_e32 v3, 0x2000, v0
v_add_nc_u32_e32 v4, 0x3000, v0
scratch_store_b128 off, v[1:4], off offset:16
v_mov_b32_e32 v5, 4
s_movk_i32 s2, 0x10
scratch_load_b64 v[6:7], v5, s2
scratch_load_u16 v8, off, s2 offset:9
s_mov_b64 s[4:5], src_private_base
v_mov_b32_e32 v10, 24
v_mov_b32_e32 v11, s5
flat_load_b32 v9, v[10:11]
s_wait_loadcnt_dscnt 0x0
v_lshlrev_b32_e32 v0, 4, v0
global_store_b128 v0, v[6:9], s[0:1]
s_endpgm
",
    words: &[
        0x3600_00FF, 0x0000_03FF, 0xD646_0000, 0x0401_0C75, 0x7E02_0300, 0x4A04_00FF, 0x0000_1000, 0x4A06_00FF,
        0x0000_2000, 0x4A08_00FF, 0x0000_3000, 0xED07_407C, 0x0080_0000, 0x0000_1000, 0x7E0A_0284, 0xB002_0010,
        0xED05_4002, 0x0002_0006, 0x0000_0005, 0xED04_8002, 0x0000_0008, 0x0000_0900, 0xBE84_01ED, 0x7E14_0298,
        0x7E16_0205, 0xEC05_007C, 0x0000_0009, 0x0000_000A, 0xBFC8_0000, 0x3000_0084, 0xEE07_4000, 0x0300_0000,
        0x0000_0000, 0xBFB0_0000,
    ],
};

/// LDS at every width; s[0:1]: out, 16 dwords per lane, 32 lanes.
pub const LDS_FORMS: Code = Code {
    name: "lds_forms",
    source: "\
s_mov_b64 s[4:5], src_shared_base
v_lshlrev_b32_e32 v1, 4, v0
v_mov_b32_e32 v2, v0
v_add_nc_u32_e32 v3, 0x100, v0
v_add_nc_u32_e32 v4, 0x200, v0
v_add_nc_u32_e32 v5, 0xffff8300, v0
ds_store_b128 v1, v[2:5]
ds_load_2addr_b32 v[10:11], v1 offset0:1 offset1:3
ds_load_b64 v[12:13], v1 offset:6
ds_load_i16 v14, v1 offset:12
ds_load_u8_d16_hi v14, v1 offset:4
ds_store_2addr_stride64_b32 v1, v2, v3 offset0:2 offset1:3
ds_load_b32 v15, v1 offset:512
ds_load_b32 v16, v1 offset:768
v_mov_b32_e32 v6, 1
ds_add_rtn_u32 v17, v1, v6
v_mov_b32_e32 v18, v1
v_mov_b32_e32 v19, s5
flat_load_b32 v20, v[18:19]
v_xor_b32_e32 v7, 31, v0
v_lshlrev_b32_e32 v7, 2, v7
ds_bpermute_b32 v21, v7, v2
ds_permute_b32 v22, v7, v3
ds_swizzle_b32 v23, v2 offset:swizzle(SWAP,4)
s_wait_loadcnt_dscnt 0x0
v_lshlrev_b32_e32 v0, 6, v0
global_store_b128 v0, v[10:13], s[0:1]
global_store_b128 v0, v[14:17], s[0:1] offset:16
global_store_b128 v0, v[20:23], s[0:1] offset:32
s_endpgm
",
    words: &[
        0xBE84_01EB, 0x3002_0084, 0x7E04_0300, 0x4A06_00FF, 0x0000_0100, 0x4A08_00FF, 0x0000_0200, 0x4A0A_00FF,
        0xFFFF_8300, 0xDB7C_0000, 0x0000_0201, 0xD8DC_0301, 0x0A00_0001, 0xD9D8_0006, 0x0C00_0001, 0xD8EC_000C,
        0x0E00_0001, 0xDA8C_0004, 0x0E00_0001, 0xD83C_0302, 0x0003_0201, 0xD8D8_0200, 0x0F00_0001, 0xD8D8_0300,
        0x1000_0001, 0x7E0C_0281, 0xD880_0000, 0x1100_0601, 0x7E24_0301, 0x7E26_0205, 0xEC05_007C, 0x0000_0014,
        0x0000_0012, 0x3A0E_009F, 0x300E_0E82, 0xDACC_0000, 0x1500_0207, 0xDAC8_0000, 0x1600_0307, 0xD8D4_101F,
        0x1700_0002, 0xBFC8_0000, 0x3000_0086, 0xEE07_4000, 0x0500_0000, 0x0000_0000, 0xEE07_4000, 0x0700_0000,
        0x0000_1000, 0xEE07_4000, 0x0A00_0000, 0x0000_2000, 0xBFB0_0000,
    ],
};

/// Buffer loads and stores through a raw descriptor of 64 bytes at s[4:7]; s[0:1]: out.
pub const BUFFER: Code = Code {
    name: "buffer",
    source: "\
v_lshlrev_b32_e32 v0, 2, v0
buffer_load_b32 v1, v0, s[4:7], null offen
buffer_load_b64 v[2:3], off, s[4:7], null offset:8
s_wait_loadcnt 0x0
v_mov_b32_e32 v4, 7
buffer_atomic_add_u32 v4, off, s[4:7], null offset:60
buffer_store_b32 v4, v0, s[4:7], null offen offset:32
v_lshlrev_b32_e32 v5, 2, v0
global_store_b96 v5, v[1:3], s[0:1]
s_endpgm
",
    words: &[
        0x3000_0082, 0xC405_007C, 0x4080_0801, 0x0000_0000, 0xC405_407C, 0x0080_0802, 0x0000_0800, 0xBFC0_0000,
        0x7E08_0287, 0xC40D_407C, 0x0080_0804, 0x0000_3C00, 0xC406_807C, 0x4080_0804, 0x0000_2000, 0x300A_0082,
        0xEE07_0000, 0x0080_0000, 0x0000_0005, 0xBFB0_0000,
    ],
};

/// Lane 0 stores 0x11 to s[0:1].
pub const ONE_STORE: Code = Code {
    name: "one_store",
    source: "\
v_mov_b32_e32 v0, 0
v_mov_b32_e32 v1, 0x11
global_store_b32 v0, v1, s[0:1]
s_endpgm
",
    words: &[
        0x7E00_0280, 0x7E02_0291, 0xEE06_8000, 0x0080_0000, 0x0000_0000, 0xBFB0_0000,
    ],
};

/// Spins forever.
pub const ENDLESS: Code = Code {
    name: "endless",
    source: "\
loop:
s_nop 0
s_branch loop
",
    words: &[
        0xBF80_0000, 0xBFA0_FFFE,
    ],
};

/// Wave 0 ends at once; wave 1 waits twice and signals once.
pub const UNEVEN_BARRIER: Code = Code {
    name: "uneven_barrier",
    source: "\
v_readfirstlane_b32 s2, v0
s_cmp_eq_u32 s2, 0
s_cbranch_scc1 done
s_barrier_signal -1
s_barrier_wait -1
s_barrier_wait -1
done:
s_endpgm
",
    words: &[
        0x7E04_0500, 0xBF06_8002, 0xBFA2_0003, 0xBE80_4EC1, 0xBF94_FFFF, 0xBF94_FFFF, 0xBFB0_0000,
    ],
};

/// Counts s2 down, then adds 1 to the word at s[0:1].
pub const SLOW_COUNT: Code = Code {
    name: "slow_count",
    source: "\
loop:
s_sub_co_i32 s2, s2, 1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 loop
s_mov_b32 exec_lo, 1
v_mov_b32_e32 v0, 0
v_mov_b32_e32 v1, 1
global_atomic_add_u32 v0, v1, s[0:1]
s_endpgm
",
    words: &[
        0x8182_8102, 0xBF07_8002, 0xBFA2_FFFD, 0xBEFE_0081, 0x7E00_0280, 0x7E02_0281, 0xEE0D_4000, 0x0080_0000,
        0x0000_0000, 0xBFB0_0000,
    ],
};

/// Overwrites the word at 'patched' (s[0:1]) with v1 = s2, invalidates, runs it, stores v3 to s[4:5].
pub const REFETCH: Code = Code {
    name: "refetch",
    source: "\
v_mov_b32_e32 v0, 0
v_mov_b32_e32 v1, s2
global_store_b32 v0, v1, s[0:1]
s_wait_storecnt 0x0
s_icache_inv
s_nop 0
patched:
v_mov_b32_e32 v3, 1
global_store_b32 v0, v3, s[4:5]
s_endpgm
",
    words: &[
        0x7E00_0280, 0x7E02_0202, 0xEE06_8000, 0x0080_0000, 0x0000_0000, 0xBFC1_0000, 0xBFBC_0000, 0xBF80_0000,
        0x7E06_0281, 0xEE06_8004, 0x0180_0000, 0x0000_0000, 0xBFB0_0000,
    ],
};

/// Spins until the word at s[0:1] is not 0.
pub const WAIT_FOR_WORD: Code = Code {
    name: "wait_for_word",
    source: "\
v_mov_b32_e32 v0, 0
loop:
global_load_b32 v1, v0, s[0:1] scope:SCOPE_SYS
s_wait_loadcnt 0x0
v_readfirstlane_b32 s4, v1
s_wait_alu 0xf1ff
s_cmp_eq_u32 s4, 0
s_cbranch_scc1 loop
s_endpgm
",
    words: &[
        0x7E00_0280, 0xEE05_0000, 0x000C_0001, 0x0000_0000, 0xBFC0_0000, 0x7E08_0501, 0xBF88_F1FF, 0xBF06_8004,
        0xBFA2_FFF8, 0xBFB0_0000,
    ],
};

/// Wave 0 waits at the barrier, wave 1 until another stores 7 to the first dword of LDS.
pub const BARRIER_AND_SPIN: Code = Code {
    name: "barrier_and_spin",
    source: "\
v_and_b32_e32 v1, 0x3ff, v0
v_mov_b32_e32 v2, 0
v_readfirstlane_b32 s2, v1
s_wait_alu 0xf1ff
s_cmp_lt_u32 s2, 32
s_cbranch_scc1 first
ds_store_b32 v2, v2
loop:
ds_load_b32 v4, v2
s_wait_dscnt 0x0
v_readfirstlane_b32 s4, v4
s_wait_alu 0xf1ff
s_cmp_eq_u32 s4, 7
s_cbranch_scc0 loop
first:
s_barrier_signal -1
s_barrier_wait 0xffff
s_endpgm
",
    words: &[
        0x3602_00FF, 0x0000_03FF, 0x7E04_0280, 0x7E04_0501, 0xBF88_F1FF, 0xBF0A_A002, 0xBFA2_0009, 0xD834_0000,
        0x0000_0202, 0xD8D8_0000, 0x0400_0002, 0xBFC6_0000, 0x7E08_0504, 0xBF88_F1FF, 0xBF06_8704, 0xBFA1_FFF9,
        0xBE80_4EC1, 0xBF94_FFFF, 0xBFB0_0000,
    ],
};

/// Spins for 3 million ticks of the reference clock; no register keeps any of it.
pub const WAIT_FOR_CLOCK: Code = Code {
    name: "wait_for_clock",
    source: "\
s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
s_wait_kmcnt 0x0
s_add_co_u32 s6, s4, 0x2dc6c0
loop:
s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
s_wait_kmcnt 0x0
s_cmp_lt_u32 s4, s6
s_mov_b32 s4, 0
s_cbranch_scc1 loop
s_endpgm
",
    words: &[
        0xBE84_4D83, 0xBFC7_0000, 0x8006_FF04, 0x002D_C6C0, 0xBE84_4D83, 0xBFC7_0000, 0xBF0A_0604, 0xBE84_0080,
        0xBFA2_FFFB, 0xBFB0_0000,
    ],
};

/// Wave 0 counts in the first dword of LDS until the second is set; wave 1 sets it at s2. No register keeps a count.
pub const COUNT_IN_LDS: Code = Code {
    name: "count_in_lds",
    source: "\
v_and_b32_e32 v1, 0x3ff, v0
v_mov_b32_e32 v2, 0
v_mov_b32_e32 v3, 1
v_mov_b32_e32 v5, 4
v_readfirstlane_b32 s3, v1
s_mov_b32 exec_lo, 1
ds_store_b32 v2, v2
ds_store_b32 v5, v2
s_wait_dscnt 0x0
s_barrier_signal -1
s_barrier_wait 0xffff
s_cmp_lt_u32 s3, 32
s_cbranch_scc1 count
look:
ds_load_b32 v4, v2
s_wait_dscnt 0x0
v_readfirstlane_b32 s4, v4
v_mov_b32_e32 v4, 0
s_wait_alu 0xf1ff
s_cmp_lt_u32 s4, s2
s_mov_b32 s4, 0
s_cbranch_scc1 look
ds_store_b32 v5, v3
s_endpgm
count:
ds_add_u32 v2, v3
ds_load_b32 v4, v5
s_wait_dscnt 0x0
v_readfirstlane_b32 s4, v4
s_wait_alu 0xf1ff
s_cmp_eq_u32 s4, 0
s_cbranch_scc1 count
s_endpgm
",
    words: &[
        0x3602_00FF, 0x0000_03FF, 0x7E04_0280, 0x7E06_0281, 0x7E0A_0284, 0x7E06_0501, 0xBEFE_0081, 0xD834_0000,
        0x0000_0202, 0xD834_0000, 0x0000_0205, 0xBFC6_0000, 0xBE80_4EC1, 0xBF94_FFFF, 0xBF0A_A003, 0xBFA2_000C,
        0xD8D8_0000, 0x0400_0002, 0xBFC6_0000, 0x7E08_0504, 0x7E08_0280, 0xBF88_F1FF, 0xBF0A_0204, 0xBE84_0080,
        0xBFA2_FFF7, 0xD834_0000, 0x0000_0305, 0xBFB0_0000, 0xD800_0000, 0x0000_0302, 0xD8D8_0000, 0x0400_0005,
        0xBFC6_0000, 0x7E08_0504, 0xBF88_F1FF, 0xBF06_8004, 0xBFA2_FFF7, 0xBFB0_0000,
    ],
};

/// All of this code.
pub const ALL: &[Code] = &[ADD_VECTORS, REDUCE_IN_LDS, TAKE_TICKETS, PING_PONG, STORE_IDS, WIDTHS, SCALAR_LOADS, FAR_CALLS, CALLEE, SCRATCH, LDS_FORMS, BUFFER, ONE_STORE, ENDLESS, UNEVEN_BARRIER, SLOW_COUNT, REFETCH, WAIT_FOR_WORD, BARRIER_AND_SPIN, WAIT_FOR_CLOCK, COUNT_IN_LDS];
