//! Machine code for the tests of wave64: sources, and the words that llvm-mc 19 assembles from them for gfx1201
//! with `-mattr=+wavefrontsize64,-wavefrontsize32`.

use super::code::Code;

/// Stores per lane: 21..39, > 10 by s10 into s[10:11], > 45 by s13 into s[12:13], and the carry of a 64-bit sum.
/// s[0:1]: out, 5 rows of 64.
pub const MASKS: Code = Code {
    name: "wave64_masks",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
v_cmp_lt_u32_e32 vcc, 20, v0
s_mov_b64 s[4:5], vcc
v_cmp_gt_u32_e64 s[6:7], 40, v0
s_and_b64 s[8:9], s[4:5], s[6:7]
v_cndmask_b32_e64 v2, 0, 1, s[8:9]
global_store_b32 v9, v2, s[0:1]
s_mov_b32 s10, 10
s_mov_b32 s13, 45
v_cmp_lt_u32_e64 s[10:11], s10, v0
v_cndmask_b32_e64 v2, 0, 1, s[10:11]
global_store_b32 v9, v2, s[0:1] offset:256
v_cmp_lt_u32_e64 s[12:13], s13, v0
v_cndmask_b32_e64 v2, 0, 1, s[12:13]
global_store_b32 v9, v2, s[0:1] offset:512
v_mul_lo_u32 v2, 0x6000000, v0
v_add_co_u32 v3, vcc, v2, 0x80000000
v_add_co_ci_u32_e64 v4, s[14:15], v0, v0, vcc
v_mov_b32_e32 v5, -1
v_add_co_ci_u32_e32 v5, vcc, 0, v5, vcc
global_store_b32 v9, v4, s[0:1] offset:768
global_store_b32 v9, v5, s[0:1] offset:1024
s_endpgm
",
    words: &[
        0x3012_0082, 0x7C92_0094, 0xBE84_016A, 0xD44C_0006, 0x0002_00A8, 0x8B88_0604, 0xD501_0002, 0x0021_0280,
        0xEE06_8000, 0x0100_0000, 0x0000_0009, 0xBE8A_008A, 0xBE8D_00AD, 0xD449_000A, 0x0002_000A, 0xD501_0002,
        0x0029_0280, 0xEE06_8000, 0x0100_0000, 0x0001_0009, 0xD449_000C, 0x0002_000D, 0xD501_0002, 0x0031_0280,
        0xEE06_8000, 0x0100_0000, 0x0002_0009, 0xD72C_0002, 0x0002_00FF, 0x0600_0000, 0xD700_6A03, 0x0001_FF02,
        0x8000_0000, 0xD520_0E04, 0x01AA_0100, 0x7E0A_02C1, 0x400A_0A80, 0xEE06_8000, 0x0200_0000, 0x0003_0009,
        0xEE06_8000, 0x0280_0000, 0x0004_0009, 0xBFB0_0000,
    ],
};

/// The value of exec in v_cmpx, read as data by both halves, and lanes written under it. s[0:1]: out, 4 rows of 64.
pub const EXEC: Code = Code {
    name: "wave64_exec",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
v_mov_b32_e32 v1, 0
v_mov_b32_e32 v2, 0
v_mov_b32_e32 v3, 0
v_mov_b32_e32 v5, 0
v_cmpx_gt_u32_e32 40, v0
v_mov_b32_e32 v1, 1
v_cmpx_lt_u32_e32 20, v0
v_mov_b32_e32 v1, 2
v_mov_b32_e32 v2, exec_lo
v_mov_b32_e32 v3, exec_hi
s_mov_b32 exec_lo, 37
s_mov_b32 exec_hi, -1
v_cmpx_lt_u32_e64 exec_lo, v0
v_lshlrev_b64_e64 v[4:5], 0, exec
s_mov_b64 exec, -1
global_store_b32 v9, v1, s[0:1]
global_store_b32 v9, v2, s[0:1] offset:256
global_store_b32 v9, v3, s[0:1] offset:512
global_store_b32 v9, v5, s[0:1] offset:768
s_endpgm
",
    words: &[
        0x3012_0082, 0x7E02_0280, 0x7E04_0280, 0x7E06_0280, 0x7E0A_0280, 0x7D98_00A8, 0x7E02_0281, 0x7D92_0094,
        0x7E02_0282, 0x7E04_027E, 0x7E06_027F, 0xBEFE_00A5, 0xBEFF_00C1, 0xD4C9_007E, 0x0002_007E, 0xD51F_0004,
        0x0000_FC80, 0xBEFE_01C1, 0xEE06_8000, 0x0080_0000, 0x0000_0009, 0xEE06_8000, 0x0100_0000, 0x0001_0009,
        0xEE06_8000, 0x0180_0000, 0x0002_0009, 0xEE06_8000, 0x0280_0000, 0x0003_0009, 0xBFB0_0000,
    ],
};

/// v_readfirstlane, v_readlane, v_writelane, v_permlane64, v_mbcnt, ds_bpermute, ds_permute, ds_swizzle, DPP.
/// s[0:1]: out, 8 rows of 64.
pub const LANES: Code = Code {
    name: "wave64_lanes",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
v_mul_u32_u24_e32 v1, 3, v0
v_add_nc_u32_e32 v10, 7, v1
s_mov_b64 s[4:5], exec
s_mov_b32 exec_lo, 0
s_movk_i32 exec_hi, 0x2000
v_readfirstlane_b32 s6, v1
s_mov_b64 exec, 0
v_readfirstlane_b32 s7, v10
s_mov_b64 exec, s[4:5]
s_movk_i32 s8, 114
v_readlane_b32 s9, v1, s8
v_mov_b32_e32 v2, s6
v_writelane_b32 v2, s9, 63
v_writelane_b32 v2, s7, 5
global_store_b32 v9, v2, s[0:1]
s_mov_b32 s10, 0xf0f0f0f0
s_mov_b32 s11, 0x0000ffff
v_mov_b32_e32 v3, 7
s_mov_b64 exec, s[10:11]
v_permlane64_b32 v3, v1
s_mov_b64 exec, s[4:5]
global_store_b32 v9, v3, s[0:1] offset:256
v_mbcnt_lo_u32_b32 v4, s10, 0
v_mbcnt_hi_u32_b32 v4, s11, v4
global_store_b32 v9, v4, s[0:1] offset:512
v_mov_b32_e32 v3, 7
v_mov_b32_e32 v4, 7
v_xor_b32_e32 v5, 0x9c, v9
s_mov_b64 exec, s[10:11]
ds_bpermute_b32 v3, v5, v1 offset:4
ds_permute_b32 v4, v5, v1
s_wait_dscnt 0x0
s_mov_b64 exec, s[4:5]
global_store_b32 v9, v3, s[0:1] offset:768
global_store_b32 v9, v4, s[0:1] offset:1024
ds_swizzle_b32 v3, v1 offset:0x7c1f
s_wait_dscnt 0x0
global_store_b32 v9, v3, s[0:1] offset:1280
v_mov_b32_e32 v4, 7
v_mov_b32_dpp v4, v1 row_shr:1 row_mask:0x4 bank_mask:0xf
global_store_b32 v9, v4, s[0:1] offset:1536
v_mov_b32_e32 v5, 7
v_mov_b32_dpp v5, v1 row_mirror row_mask:0xa bank_mask:0x3
global_store_b32 v9, v5, s[0:1] offset:1792
s_endpgm
",
    words: &[
        0x3012_0082, 0x1602_0083, 0x4A14_0287, 0xBE84_017E, 0xBEFE_0080, 0xB07F_2000, 0x7E0C_0501, 0xBEFE_0180,
        0x7E0E_050A, 0xBEFE_0104, 0xB008_0072, 0xD760_0009, 0x0000_1101, 0x7E04_0206, 0xD761_0002, 0x0001_7E09,
        0xD761_0002, 0x0001_0A07, 0xEE06_8000, 0x0100_0000, 0x0000_0009, 0xBE8A_00FF, 0xF0F0_F0F0, 0xBE8B_00FF,
        0x0000_FFFF, 0x7E06_0287, 0xBEFE_010A, 0x7E06_CF01, 0xBEFE_0104, 0xEE06_8000, 0x0180_0000, 0x0001_0009,
        0xD71F_0004, 0x0001_000A, 0xD720_0004, 0x0002_080B, 0xEE06_8000, 0x0200_0000, 0x0002_0009, 0x7E06_0287,
        0x7E08_0287, 0x3A0A_12FF, 0x0000_009C, 0xBEFE_010A, 0xDACC_0004, 0x0300_0105, 0xDAC8_0000, 0x0400_0105,
        0xBFC6_0000, 0xBEFE_0104, 0xEE06_8000, 0x0180_0000, 0x0003_0009, 0xEE06_8000, 0x0200_0000, 0x0004_0009,
        0xD8D4_7C1F, 0x0300_0001, 0xBFC6_0000, 0xEE06_8000, 0x0180_0000, 0x0005_0009, 0x7E08_0287, 0x7E08_02FA,
        0x4F01_1101, 0xEE06_8000, 0x0200_0000, 0x0006_0009, 0x7E0A_0287, 0x7E0A_02FA, 0xA301_4001, 0xEE06_8000,
        0x0280_0000, 0x0007_0009, 0xBFB0_0000,
    ],
};

/// Per lane the iterations of a loop that the last lanes leave last; then vccz, execz and STATUS with bits of the
/// high half only. s[0:1]: out, 64 iteration counts and 7 words.
pub const BRANCHES: Code = Code {
    name: "wave64_branches",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
v_mov_b32_e32 v1, 0
loop:
v_add_nc_u32_e32 v1, 1, v1
v_cmp_lt_u32_e32 vcc, v1, v0
s_and_b64 exec, exec, vcc
s_cbranch_execnz loop
s_mov_b64 exec, -1
global_store_b32 v9, v1, s[0:1]
s_mov_b32 vcc_lo, 0
s_mov_b32 vcc_hi, 1
s_mov_b32 s4, 1
s_cbranch_vccnz taken
s_mov_b32 s4, 0
taken:
s_mov_b32 s5, 1
s_cbranch_vccz missed
s_mov_b32 s5, 2
missed:
s_mov_b32 exec_lo, 0
s_mov_b32 s6, 1
s_cbranch_execz empty
s_mov_b32 s6, 2
empty:
.long 0xbe8700fc
.long 0x7e0402fb
s_mov_b64 exec, 0
s_getreg_b32 s8, hwreg(2)
s_mov_b64 exec, -1
v_readlane_b32 s9, v2, 63
v_mov_b32_e32 v3, 0
v_mov_b32_e32 v4, s4
v_mov_b32_e32 v5, s5
v_mov_b32_e32 v6, s6
v_mov_b32_e32 v7, s7
v_mov_b32_e32 v8, s8
s_mov_b64 exec, 1
global_store_b128 v3, v[4:7], s[0:1] offset:256
global_store_b32 v3, v8, s[0:1] offset:272
v_mov_b32_e32 v4, s9
global_store_b32 v3, v4, s[0:1] offset:276
s_getreg_b32 s8, hwreg(5)
v_mov_b32_e32 v4, s8
global_store_b32 v3, v4, s[0:1] offset:280
s_endpgm
",
    words: &[
        0x3012_0082, 0x7E02_0280, 0x4A02_0281, 0x7C92_0101, 0x8BFE_6A7E, 0xBFA6_FFFC, 0xBEFE_01C1, 0xEE06_8000,
        0x0080_0000, 0x0000_0009, 0xBEEA_0080, 0xBEEB_0081, 0xBE84_0081, 0xBFA4_0001, 0xBE84_0080, 0xBE85_0081,
        0xBFA3_0001, 0xBE85_0082, 0xBEFE_0080, 0xBE86_0081, 0xBFA5_0001, 0xBE86_0082, 0xBE87_00FC, 0x7E04_02FB,
        0xBEFE_0180, 0xB888_F802, 0xBEFE_01C1, 0xD760_0009, 0x0001_7F02, 0x7E06_0280, 0x7E08_0204, 0x7E0A_0205,
        0x7E0C_0206, 0x7E0E_0207, 0x7E10_0208, 0xBEFE_0181, 0xEE07_4000, 0x0200_0000, 0x0001_0003, 0xEE06_8000,
        0x0400_0000, 0x0001_1003, 0x7E08_0209, 0xEE06_8000, 0x0200_0000, 0x0001_1403, 0xB888_F805, 0x7E08_0208,
        0xEE06_8000, 0x0200_0000, 0x0001_1803, 0xBFB0_0000,
    ],
};

/// Scratch, flat scratch, LDS and memory by lane number, exchanges with one address. s[0:1]: out, 6 rows of 64;
/// s[2:3]: 64 words, then one more.
pub const MEMORY: Code = Code {
    name: "wave64_memory",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
v_mul_u32_u24_e32 v1, 5, v0
v_add_nc_u32_e32 v2, 0x1000, v1
scratch_store_b64 off, v[1:2], off offset:4
v_and_b32_e32 v3, 4, v9
scratch_load_b32 v4, v3, off offset:4
s_wait_loadcnt 0x0
global_store_b32 v9, v4, s[0:1]
s_mov_b64 s[6:7], src_private_base
v_mov_b32_e32 v10, 9
v_mov_b32_e32 v11, s7
flat_load_u16 v4, v[10:11]
s_wait_loadcnt_dscnt 0x0
global_store_b32 v9, v4, s[0:1] offset:256
s_mov_b32 m0, 16
ds_store_addtid_b32 v1 offset:4
s_wait_dscnt 0x0
v_sub_nc_u32_e32 v5, 272, v9
ds_load_b32 v4, v5
s_wait_dscnt 0x0
global_store_b32 v9, v4, s[0:1] offset:512
global_load_addtid_b32 v4, s[2:3]
s_wait_loadcnt 0x0
global_store_b32 v9, v4, s[0:1] offset:768
v_mov_b32_e32 v6, 0
global_atomic_swap_b32 v4, v6, v0, s[2:3] offset:256 th:TH_ATOMIC_RETURN
s_wait_loadcnt 0x0
global_store_b32 v9, v4, s[0:1] offset:1024
v_mov_b32_e32 v7, 0x400
ds_store_b32 v7, v7
ds_storexchg_rtn_b32 v4, v7, v0
s_wait_dscnt 0x0
global_store_b32 v9, v4, s[0:1] offset:1280
s_endpgm
",
    words: &[
        0x3012_0082, 0x1602_0085, 0x4A04_02FF, 0x0000_1000, 0xED06_C07C, 0x0080_0000, 0x0000_0400, 0x3606_1284,
        0xED05_007C, 0x0002_0004, 0x0000_0403, 0xBFC0_0000, 0xEE06_8000, 0x0200_0000, 0x0000_0009, 0xBE86_01ED,
        0x7E14_0289, 0x7E16_0207, 0xEC04_807C, 0x0000_0004, 0x0000_000A, 0xBFC8_0000, 0xEE06_8000, 0x0200_0000,
        0x0001_0009, 0xBEFD_0090, 0xDAC0_0004, 0x0000_0100, 0xBFC6_0000, 0x4C0A_12FF, 0x0000_0110, 0xD8D8_0000,
        0x0400_0005, 0xBFC6_0000, 0xEE06_8000, 0x0200_0000, 0x0002_0009, 0xEE0A_0002, 0x0000_0004, 0x0000_0000,
        0xBFC0_0000, 0xEE06_8000, 0x0200_0000, 0x0003_0009, 0x7E0C_0280, 0xEE0C_C002, 0x0010_0004, 0x0001_0006,
        0xBFC0_0000, 0xEE06_8000, 0x0200_0000, 0x0004_0009, 0x7E0E_02FF, 0x0000_0400, 0xD834_0000, 0x0000_0707,
        0xD8B4_0000, 0x0400_0007, 0xBFC6_0000, 0xEE06_8000, 0x0200_0000, 0x0005_0009, 0xBFB0_0000,
    ],
};

/// x / y, correctly rounded. s[0:1]: x, s[2:3]: y, s[4:5]: out, 64 each.
pub const DIVIDE: Code = Code {
    name: "wave64_divide",
    source: "\
v_lshlrev_b32_e32 v9, 2, v0
global_load_b32 v1, v9, s[0:1]
global_load_b32 v2, v9, s[2:3]
s_wait_loadcnt 0x0
v_div_scale_f32 v3, null, v2, v2, v1
v_div_scale_f32 v4, vcc, v1, v2, v1
v_rcp_f32_e32 v5, v3
v_fma_f32 v6, -v3, v5, 1.0
v_fma_f32 v5, v6, v5, v5
v_mul_f32_e32 v6, v4, v5
v_fma_f32 v7, -v3, v6, v4
v_fma_f32 v6, v7, v5, v6
v_fma_f32 v7, -v3, v6, v4
v_div_fmas_f32 v5, v7, v5, v6
v_div_fixup_f32 v5, v5, v2, v1
global_store_b32 v9, v5, s[4:5]
s_endpgm
",
    words: &[
        0x3012_0082, 0xEE05_0000, 0x0000_0001, 0x0000_0009, 0xEE05_0002, 0x0000_0002, 0x0000_0009, 0xBFC0_0000,
        0xD6FC_7C03, 0x0406_0502, 0xD6FC_6A04, 0x0406_0501, 0x7E0A_5503, 0xD613_0006, 0x23CA_0B03, 0xD613_0005,
        0x0416_0B06, 0x100C_0B04, 0xD613_0007, 0x2412_0D03, 0xD613_0006, 0x041A_0B07, 0xD613_0007, 0x2412_0D03,
        0xD637_0005, 0x041A_0B07, 0xD627_0005, 0x0406_0505, 0xEE06_8004, 0x0280_0000, 0x0000_0009, 0xBFB0_0000,
    ],
};

/// out[group] = sum of the ids of a group of any size, by atomics in LDS around barriers; then each item adds 1 to
/// counts[wave]. s[0:1]: out, s[2:3]: counts.
pub const GROUP_SUM: Code = Code {
    name: "wave64_group_sum",
    source: "\
v_mov_b32_e32 v1, 0
v_cmp_eq_u32_e32 vcc, 0, v0
s_and_saveexec_b64 s[4:5], vcc
ds_store_b32 v1, v1
s_mov_b64 exec, s[4:5]
s_wait_dscnt 0x0
s_barrier_signal -1
s_barrier_wait -1
v_and_b32_e32 v2, 0x3ff, v0
ds_add_u32 v1, v2
s_wait_dscnt 0x0
s_barrier_signal -1
s_barrier_wait -1
ds_load_b32 v3, v1
s_bfe_u32 s6, ttmp8, 0x50019
s_lshl_b32 s6, s6, 2
v_mov_b32_e32 v4, s6
v_mov_b32_e32 v5, 1
global_atomic_add_u32 v4, v5, s[2:3]
s_wait_dscnt 0x0
s_lshl_b32 s7, ttmp9, 2
v_mov_b32_e32 v4, s7
s_and_saveexec_b64 s[4:5], vcc
global_store_b32 v4, v3, s[0:1]
s_endpgm
",
    words: &[
        0x7E02_0280, 0x7C94_0080, 0xBE84_216A, 0xD834_0000, 0x0000_0101, 0xBEFE_0104, 0xBFC6_0000, 0xBE80_4EC1,
        0xBF94_FFFF, 0x3604_00FF, 0x0000_03FF, 0xD800_0000, 0x0000_0201, 0xBFC6_0000, 0xBE80_4EC1, 0xBF94_FFFF,
        0xD8D8_0000, 0x0300_0001, 0x9306_FF74, 0x0005_0019, 0x8406_8206, 0x7E08_0206, 0x7E0A_0281, 0xEE0D_4002,
        0x0280_0000, 0x0000_0004, 0xBFC6_0000, 0x8407_8275, 0x7E08_0207, 0xBE84_216A, 0xEE06_8000, 0x0180_0000,
        0x0000_0004, 0xBFB0_0000,
    ],
};

/// Lane 45 loads from address 16.
pub const BAD_LANE: Code = Code {
    name: "wave64_bad_lane",
    source: "\
v_mov_b32_e32 v1, s0
v_mov_b32_e32 v2, s1
v_writelane_b32 v1, 16, 45
v_writelane_b32 v2, 0, 45
global_load_b32 v3, v[1:2], off
s_endpgm
",
    words: &[
        0x7E02_0200, 0x7E04_0201, 0xD761_0001, 0x0001_5A90, 0xD761_0002, 0x0001_5A80, 0xEE05_007C, 0x0000_0003,
        0x0000_0001, 0xBFB0_0000,
    ],
};

/// All of this code.
pub const ALL: &[&Code] = &[&MASKS, &EXEC, &LANES, &BRANCHES, &MEMORY, &DIVIDE, &GROUP_SUM, &BAD_LANE];
