//! Machine code of the benchmark: the words that llvm-mc 19 makes of the sources above them, for gfx1201.

/// 6 VALU and 3 SALU instructions.
///
/// ```text
/// loop:
/// v_fmac_f32_e32 v1, v2, v3
/// v_add_f32_e32 v4, v1, v2
/// v_mul_f32_e32 v5, v4, v3
/// v_lshlrev_b32_e32 v6, 2, v7
/// v_and_b32_e32 v7, v6, v8
/// v_xor_b32_e32 v8, v7, v9
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const MIX: &[u32] = &[
    0x5602_0702, 0x0608_0501, 0x100A_0704, 0x300C_0E82, 0x360E_1106, 0x3A10_1307, 0x8182_8102, 0xBF07_8002,
    0xBFA2_FFF7, 0xBFB0_0000,
];


/// 3 SALU instructions.
///
/// ```text
/// loop:
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const SCALAR: &[u32] = &[
    0x8182_8102, 0xBF07_8002, 0xBFA2_FFFD, 0xBFB0_0000,
];


/// 8 contiguous loads of four dwords.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b128 v[4:7], v1, s[0:1] offset:0
/// global_load_b128 v[8:11], v1, s[0:1] offset:512
/// global_load_b128 v[12:15], v1, s[0:1] offset:1024
/// global_load_b128 v[16:19], v1, s[0:1] offset:1536
/// global_load_b128 v[20:23], v1, s[0:1] offset:2048
/// global_load_b128 v[24:27], v1, s[0:1] offset:2560
/// global_load_b128 v[28:31], v1, s[0:1] offset:3072
/// global_load_b128 v[32:35], v1, s[0:1] offset:3584
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LOAD_B128: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE05_C000, 0x0000_0004, 0x0000_0001, 0xEE05_C000, 0x0000_0008, 0x0002_0001,
    0xEE05_C000, 0x0000_000C, 0x0004_0001, 0xEE05_C000, 0x0000_0010, 0x0006_0001, 0xEE05_C000, 0x0000_0014,
    0x0008_0001, 0xEE05_C000, 0x0000_0018, 0x000A_0001, 0xEE05_C000, 0x0000_001C, 0x000C_0001, 0xEE05_C000,
    0x0000_0020, 0x000E_0001, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 contiguous loads of a dword.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b32 v4, v2, s[0:1] offset:0
/// global_load_b32 v5, v2, s[0:1] offset:128
/// global_load_b32 v6, v2, s[0:1] offset:256
/// global_load_b32 v7, v2, s[0:1] offset:384
/// global_load_b32 v8, v2, s[0:1] offset:512
/// global_load_b32 v9, v2, s[0:1] offset:640
/// global_load_b32 v10, v2, s[0:1] offset:768
/// global_load_b32 v11, v2, s[0:1] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LOAD_B32: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE05_0000, 0x0000_0004, 0x0000_0002, 0xEE05_0000, 0x0000_0005, 0x0000_8002,
    0xEE05_0000, 0x0000_0006, 0x0001_0002, 0xEE05_0000, 0x0000_0007, 0x0001_8002, 0xEE05_0000, 0x0000_0008,
    0x0002_0002, 0xEE05_0000, 0x0000_0009, 0x0002_8002, 0xEE05_0000, 0x0000_000A, 0x0003_0002, 0xEE05_0000,
    0x0000_000B, 0x0003_8002, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 loads of a dword, 64 bytes apart.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// v_lshlrev_b32_e32 v3, 6, v0
/// loop:
/// global_load_b32 v4, v3, s[0:1] offset:0
/// global_load_b32 v5, v3, s[0:1] offset:4
/// global_load_b32 v6, v3, s[0:1] offset:8
/// global_load_b32 v7, v3, s[0:1] offset:12
/// global_load_b32 v8, v3, s[0:1] offset:16
/// global_load_b32 v9, v3, s[0:1] offset:20
/// global_load_b32 v10, v3, s[0:1] offset:24
/// global_load_b32 v11, v3, s[0:1] offset:28
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LOAD_B32_STRIDED: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0x3006_0086, 0xEE05_0000, 0x0000_0004, 0x0000_0003, 0xEE05_0000, 0x0000_0005,
    0x0000_0403, 0xEE05_0000, 0x0000_0006, 0x0000_0803, 0xEE05_0000, 0x0000_0007, 0x0000_0C03, 0xEE05_0000,
    0x0000_0008, 0x0000_1003, 0xEE05_0000, 0x0000_0009, 0x0000_1403, 0xEE05_0000, 0x0000_000A, 0x0000_1803,
    0xEE05_0000, 0x0000_000B, 0x0000_1C03, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 loads of a dword from two buffers in turn.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_b32 v4, v2, s[0:1] offset:0
/// global_load_b32 v5, v2, s[4:5] offset:128
/// global_load_b32 v6, v2, s[0:1] offset:256
/// global_load_b32 v7, v2, s[4:5] offset:384
/// global_load_b32 v8, v2, s[0:1] offset:512
/// global_load_b32 v9, v2, s[4:5] offset:640
/// global_load_b32 v10, v2, s[0:1] offset:768
/// global_load_b32 v11, v2, s[4:5] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LOAD_TWO_BUFFERS: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE05_0000, 0x0000_0004, 0x0000_0002, 0xEE05_0004, 0x0000_0005, 0x0000_8002,
    0xEE05_0000, 0x0000_0006, 0x0001_0002, 0xEE05_0004, 0x0000_0007, 0x0001_8002, 0xEE05_0000, 0x0000_0008,
    0x0002_0002, 0xEE05_0004, 0x0000_0009, 0x0002_8002, 0xEE05_0000, 0x0000_000A, 0x0003_0002, 0xEE05_0004,
    0x0000_000B, 0x0003_8002, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 contiguous stores of four dwords.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_store_b128 v1, v[4:7], s[0:1] offset:0
/// global_store_b128 v1, v[4:7], s[0:1] offset:512
/// global_store_b128 v1, v[4:7], s[0:1] offset:1024
/// global_store_b128 v1, v[4:7], s[0:1] offset:1536
/// global_store_b128 v1, v[4:7], s[0:1] offset:2048
/// global_store_b128 v1, v[4:7], s[0:1] offset:2560
/// global_store_b128 v1, v[4:7], s[0:1] offset:3072
/// global_store_b128 v1, v[4:7], s[0:1] offset:3584
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const STORE_B128: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE07_4000, 0x0200_0000, 0x0000_0001, 0xEE07_4000, 0x0200_0000, 0x0002_0001,
    0xEE07_4000, 0x0200_0000, 0x0004_0001, 0xEE07_4000, 0x0200_0000, 0x0006_0001, 0xEE07_4000, 0x0200_0000,
    0x0008_0001, 0xEE07_4000, 0x0200_0000, 0x000A_0001, 0xEE07_4000, 0x0200_0000, 0x000C_0001, 0xEE07_4000,
    0x0200_0000, 0x000E_0001, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 contiguous loads of a byte.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_load_u8 v4, v0, s[0:1] offset:0
/// global_load_u8 v5, v0, s[0:1] offset:32
/// global_load_u8 v6, v0, s[0:1] offset:64
/// global_load_u8 v7, v0, s[0:1] offset:96
/// global_load_u8 v8, v0, s[0:1] offset:128
/// global_load_u8 v9, v0, s[0:1] offset:160
/// global_load_u8 v10, v0, s[0:1] offset:192
/// global_load_u8 v11, v0, s[0:1] offset:224
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LOAD_U8: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE04_0000, 0x0000_0004, 0x0000_0000, 0xEE04_0000, 0x0000_0005, 0x0000_2000,
    0xEE04_0000, 0x0000_0006, 0x0000_4000, 0xEE04_0000, 0x0000_0007, 0x0000_6000, 0xEE04_0000, 0x0000_0008,
    0x0000_8000, 0xEE04_0000, 0x0000_0009, 0x0000_A000, 0xEE04_0000, 0x0000_000A, 0x0000_C000, 0xEE04_0000,
    0x0000_000B, 0x0000_E000, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];


/// 8 scalar loads of four dwords.
///
/// ```text
/// loop:
/// s_load_b128 s[8:11], s[0:1], 0
/// s_load_b128 s[12:15], s[0:1], 16
/// s_load_b128 s[16:19], s[0:1], 32
/// s_load_b128 s[20:23], s[0:1], 48
/// s_load_b128 s[24:27], s[0:1], 64
/// s_load_b128 s[28:31], s[0:1], 80
/// s_load_b128 s[32:35], s[0:1], 96
/// s_load_b128 s[36:39], s[0:1], 112
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const SCALAR_B128: &[u32] = &[
    0xF400_4200, 0xF800_0000, 0xF400_4300, 0xF800_0010, 0xF400_4400, 0xF800_0020, 0xF400_4500, 0xF800_0030,
    0xF400_4600, 0xF800_0040, 0xF400_4700, 0xF800_0050, 0xF400_4800, 0xF800_0060, 0xF400_4900, 0xF800_0070,
    0x8182_8102, 0xBF07_8002, 0xBFA2_FFED, 0xBFB0_0000,
];


/// 4 LDS stores and 4 loads of a dword.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// ds_store_b32 v2, v4 offset:0
/// ds_load_b32 v4, v2 offset:0
/// ds_store_b32 v2, v5 offset:128
/// ds_load_b32 v5, v2 offset:128
/// ds_store_b32 v2, v6 offset:256
/// ds_load_b32 v6, v2 offset:256
/// ds_store_b32 v2, v7 offset:384
/// ds_load_b32 v7, v2 offset:384
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const LDS_B32: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xD834_0000, 0x0000_0402, 0xD8D8_0000, 0x0400_0002, 0xD834_0080, 0x0000_0502,
    0xD8D8_0080, 0x0500_0002, 0xD834_0100, 0x0000_0602, 0xD8D8_0100, 0x0600_0002, 0xD834_0180, 0x0000_0702,
    0xD8D8_0180, 0x0700_0002, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFED, 0xBFB0_0000,
];


/// 8 atomic additions to a dword per lane.
///
/// ```text
/// v_lshlrev_b32_e32 v1, 4, v0
/// v_lshlrev_b32_e32 v2, 2, v0
/// loop:
/// global_atomic_add_u32 v2, v0, s[0:1] offset:0
/// global_atomic_add_u32 v2, v0, s[0:1] offset:128
/// global_atomic_add_u32 v2, v0, s[0:1] offset:256
/// global_atomic_add_u32 v2, v0, s[0:1] offset:384
/// global_atomic_add_u32 v2, v0, s[0:1] offset:512
/// global_atomic_add_u32 v2, v0, s[0:1] offset:640
/// global_atomic_add_u32 v2, v0, s[0:1] offset:768
/// global_atomic_add_u32 v2, v0, s[0:1] offset:896
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub const ATOMIC: &[u32] = &[
    0x3002_0084, 0x3004_0082, 0xEE0D_4000, 0x0000_0000, 0x0000_0002, 0xEE0D_4000, 0x0000_0000, 0x0000_8002,
    0xEE0D_4000, 0x0000_0000, 0x0001_0002, 0xEE0D_4000, 0x0000_0000, 0x0001_8002, 0xEE0D_4000, 0x0000_0000,
    0x0002_0002, 0xEE0D_4000, 0x0000_0000, 0x0002_8002, 0xEE0D_4000, 0x0000_0000, 0x0003_0002, 0xEE0D_4000,
    0x0000_0000, 0x0003_8002, 0x8182_8102, 0xBF07_8002, 0xBFA2_FFE5, 0xBFB0_0000,
];
