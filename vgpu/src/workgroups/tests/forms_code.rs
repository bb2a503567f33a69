//! Machine code for the tests of rare memory forms: sources, and the words that llvm-mc 19 assembles from them for
//! gfx1201.

use super::code::Code;

/// Typed loads and stores of a buffer. s[0:1]: input, s[2:3]: loaded registers, s[4:5]: stored texels.
pub const TYPED_BUFFERS: Code = Code {
    name: "typed_buffers",
    source: "\
s_mov_b32 s8, s0
s_and_b32 s9, s1, 0xffff
s_movk_i32 s10, 0x7c
s_mov_b32 s11, 0x3002a9af
s_mov_b32 s12, s4
s_and_b32 s13, s5, 0xffff
s_movk_i32 s14, 0x7c
s_mov_b32 s15, 0x30000000
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v11, 0x12345678
v_mov_b32_e32 v12, 0x12345678
buffer_load_format_xyzw v[4:7], v1, s[8:11], null offen
tbuffer_load_format_xy v[8:9], v1, s[8:11], null format:[BUF_FMT_16_16_SNORM] offen
tbuffer_load_d16_format_xyz v[10:11], v1, s[8:11], null format:[BUF_FMT_8_8_8_8_UNORM] offen
buffer_load_d16_hi_format_x v12, v1, s[8:11], null offen
s_wait_loadcnt 0x0
v_lshlrev_b32_e32 v2, 6, v0
global_store_b128 v2, v[4:7], s[2:3]
global_store_b128 v2, v[8:11], s[2:3] offset:16
global_store_b32 v2, v12, s[2:3] offset:32
tbuffer_store_format_xyzw v[4:7], v1, s[12:15], null format:[BUF_FMT_8_8_8_8_UNORM] offen
tbuffer_store_d16_format_xy v10, v1, s[12:15], null format:[BUF_FMT_16_16_FLOAT] offen offset:128
s_movk_i32 s14, 0xfc
tbuffer_store_d16_format_xy v10, v1, s[12:15], null format:[BUF_FMT_16_16_FLOAT] offen offset:128
s_endpgm
",
    words: &[
        0xBE88_0000, 0x8B09_FF01, 0x0000_FFFF, 0xB00A_007C, 0xBE8B_00FF, 0x3002_A9AF, 0xBE8C_0004,
        0x8B0D_FF05, 0x0000_FFFF, 0xB00E_007C, 0xBE8F_00FF, 0x3000_0000, 0x3002_0082, 0x7E16_02FF,
        0x1234_5678, 0x7E18_02FF, 0x1234_5678, 0xC400_C07C, 0x4080_1004, 0x0000_0001, 0xC420_407C,
        0x4C00_1008, 0x0000_0001, 0xC422_807C, 0x5500_100A, 0x0000_0001, 0xC409_807C, 0x4080_100C,
        0x0000_0001, 0xBFC0_0000, 0x3004_0086, 0xEE07_4002, 0x0200_0000, 0x0000_0002, 0xEE07_4002,
        0x0400_0000, 0x0000_1002, 0xEE06_8002, 0x0600_0000, 0x0000_2002, 0xC421_C07C, 0x5500_1804,
        0x0000_0001, 0xC423_407C, 0x4E80_180A, 0x0000_8001, 0xB00E_00FC, 0xC423_407C, 0x4E80_180A,
        0x0000_8001, 0xBFB0_0000,
    ],
};

/// Matrix products with tiles that are loaded directly and transposed, and blocks of registers. s[0:1]: tiles;
/// s[2:3]: results.
pub const MATRIX_TILES: Code = Code {
    name: "matrix_tiles",
    source: "\
v_and_b32_e32 v3, 15, v0
v_lshrrev_b32_e32 v4, 4, v0
v_lshlrev_b32_e32 v5, 3, v4
v_lshl_add_u32 v1, v3, 4, v5
global_load_b64 v[8:9], v1, s[0:1]
global_load_tr_b64 v[10:11], v1, s[0:1] offset:256
v_lshlrev_b32_e32 v2, 5, v3
v_lshl_add_u32 v6, v4, 3, v2
global_load_b64 v[12:13], v6, s[0:1] offset:512
global_load_b64 v[14:15], v6, s[0:1] offset:528
v_lshl_add_u32 v6, v4, 4, v2
global_load_tr_b128 v[16:19], v6, s[0:1] offset:1024
s_wait_loadcnt 0x0
v_wmma_i32_16x16x16_iu8 v[24:31], v[8:9], v[10:11], 0 neg_lo:[1,1,0]
v_wmma_f32_16x16x16_f16 v[32:39], v[12:15], v[16:19], 0
v_lshlrev_b32_e32 v2, 5, v0
s_movk_i32 m0, 0xff
global_store_block v2, v[24:55], s[2:3]
global_store_block v2, v[32:63], s[2:3] offset:1024
s_movk_i32 m0, 0x25
global_load_block v[32:63], v2, s[0:1]
s_wait_loadcnt 0x0
s_movk_i32 m0, 0xff
global_store_block v2, v[32:63], s[2:3] offset:2048
s_endpgm
",
    words: &[
        0x3606_008F, 0x3208_0084, 0x300A_0883, 0xD646_0001, 0x0415_0903, 0xEE05_4000, 0x0000_0008,
        0x0000_0001, 0xEE16_0000, 0x0000_000A, 0x0001_0001, 0x3004_0685, 0xD646_0006, 0x0409_0704,
        0xEE05_4000, 0x0000_000C, 0x0002_0006, 0xEE05_4000, 0x0000_000E, 0x0002_1006, 0xD646_0006,
        0x0409_0904, 0xEE15_C000, 0x0000_0010, 0x0004_0006, 0xBFC0_0000, 0xCC44_4018, 0x7A02_1508,
        0xCC40_4020, 0x1A02_210C, 0x3004_0085, 0xB07D_00FF, 0xEE15_0002, 0x0C00_0000, 0x0000_0002,
        0xEE15_0002, 0x1000_0000, 0x0004_0002, 0xB07D_0025, 0xEE14_C000, 0x0000_0020, 0x0000_0002,
        0xBFC0_0000, 0xB07D_00FF, 0xEE15_0002, 0x1000_0000, 0x0008_0002, 0xBFB0_0000,
    ],
};

/// Counters of active lanes and exchanges under a mark in LDS. s[0:1]: results.
pub const LDS_COUNTERS: Code = Code {
    name: "lds_counters",
    source: "\
s_movk_i32 m0, 0x40
v_mov_b32_e32 v1, 0x44
v_mov_b32_e32 v2, 0x64
v_mov_b32_e32 v3, 1
v_mov_b32_e32 v4, 2
ds_store_b32 v1, v2
s_movk_i32 exec_lo, 0xff0
ds_append v3 offset:4
ds_consume v4 offset:4
s_mov_b32 exec_lo, -1
ds_append v5 offset:4
v_lshlrev_b32_e32 v6, 3, v0
ds_store_b64 v6, v[0:1] offset:256
v_lshlrev_b32_e32 v8, 31, v0
v_or_b32_e32 v8, 0x4d, v8
v_or_b32_e32 v9, 0x80000000, v0
ds_condxchg32_rtn_b64 v[10:11], v6, v[8:9] offset:256
ds_load_b64 v[12:13], v6 offset:256
s_wait_dscnt 0x0
v_lshlrev_b32_e32 v2, 5, v0
global_store_b128 v2, v[10:13], s[0:1]
global_store_b96 v2, v[3:5], s[0:1] offset:16
s_endpgm
",
    words: &[
        0xB07D_0040, 0x7E02_02FF, 0x0000_0044, 0x7E04_02FF, 0x0000_0064, 0x7E06_0281, 0x7E08_0282,
        0xD834_0000, 0x0000_0201, 0xB07E_0FF0, 0xD8F8_0004, 0x0300_0000, 0xD8F4_0004, 0x0400_0000,
        0xBEFE_00C1, 0xD8F8_0004, 0x0500_0000, 0x300C_0083, 0xD934_0100, 0x0000_0006, 0x3010_009F,
        0x3810_10FF, 0x0000_004D, 0x3812_00FF, 0x8000_0000, 0xD9F8_0100, 0x0A00_0806, 0xD9D8_0100,
        0x0C00_0006, 0xBFC6_0000, 0x3004_0085, 0xEE07_4000, 0x0500_0000, 0x0000_0002, 0xEE07_0000,
        0x0180_0000, 0x0000_1002, 0xBFB0_0000,
    ],
};

/// All of this code.
pub const ALL: &[Code] = &[TYPED_BUFFERS, MATRIX_TILES, LDS_COUNTERS];
