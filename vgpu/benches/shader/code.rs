//! Machine code of the benchmark: the words that llvm-mc 19 assembles from the sources above them, for gfx1201.

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


/// Matrix and dot operations, with v_fma_f32 for comparison: A at v0, B at v8, C and D at v16, index at v7.
pub const OPERATIONS: [(&str, [u32; 2]); 23] = [
    ("v_fma_f32 v16, v0, v8, v16", [0xD613_0010, 0x0442_1100]),
    ("v_dot4_i32_iu8 v16, v0, v8, v16 neg_lo:[1,1,0]", [0xCC16_4010, 0x7C42_1100]),
    ("v_dot4_u32_u8 v16, v0, v8, v16", [0xCC17_4010, 0x1C42_1100]),
    ("v_dot8_i32_iu4 v16, v0, v8, v16", [0xCC18_4010, 0x1C42_1100]),
    ("v_dot2_f32_f16 v16, v0, v8, v16", [0xCC13_4010, 0x1C42_1100]),
    ("v_dot2_f32_bf16 v16, v0, v8, v16", [0xCC1A_4010, 0x1C42_1100]),
    ("v_dot2_f16_f16 v16, v0, v8, v16", [0xD666_0010, 0x0442_1100]),
    ("v_dot2_bf16_bf16 v16, v0, v8, v16", [0xD667_0010, 0x0442_1100]),
    ("v_dot4_f32_fp8_bf8 v16, v0, v8, v16", [0xCC24_4010, 0x1C42_1100]),
    ("v_wmma_i32_16x16x16_iu8 v[16:23], v[0:1], v[8:9], v[16:23] neg_lo:[1,1,0]", [0xCC44_4010, 0x7C42_1100]),
    ("v_wmma_i32_16x16x16_iu8 v[16:23], v[0:1], v[8:9], v[16:23] neg_lo:[1,0,0] clamp", [0xCC44_C010, 0x3C42_1100]),
    ("v_wmma_i32_16x16x16_iu4 v[16:23], v0, v8, v[16:23]", [0xCC45_4010, 0x1C42_1100]),
    ("v_wmma_i32_16x16x32_iu4 v[16:23], v[0:1], v[8:9], v[16:23]", [0xCC4A_4010, 0x1C42_1100]),
    ("v_swmmac_i32_16x16x32_iu8 v[16:23], v[0:1], v[8:11], v7", [0xCC54_4010, 0x1C1E_1100]),
    ("v_swmmac_i32_16x16x64_iu4 v[16:23], v[0:1], v[8:11], v7", [0xCC56_4010, 0x1C1E_1100]),
    ("v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[8:11], v[16:23]", [0xCC40_4010, 0x1C42_1100]),
    ("v_wmma_f32_16x16x16_bf16 v[16:23], v[0:3], v[8:11], v[16:23]", [0xCC41_4010, 0x1C42_1100]),
    ("v_wmma_f16_16x16x16_f16 v[16:19], v[0:3], v[8:11], v[16:19]", [0xCC42_4010, 0x1C42_1100]),
    ("v_wmma_bf16_16x16x16_bf16 v[16:19], v[0:3], v[8:11], v[16:19]", [0xCC43_4010, 0x1C42_1100]),
    ("v_wmma_f32_16x16x16_fp8_fp8 v[16:23], v[0:1], v[8:9], v[16:23]", [0xCC46_4010, 0x1C42_1100]),
    ("v_wmma_f32_16x16x16_bf8_bf8 v[16:23], v[0:1], v[8:9], v[16:23]", [0xCC49_4010, 0x1C42_1100]),
    ("v_swmmac_f32_16x16x32_f16 v[16:23], v[0:3], v[8:15], v7", [0xCC50_4010, 0x1C1E_1100]),
    ("v_swmmac_f32_16x16x32_fp8_bf8 v[16:23], v[0:1], v[8:11], v7", [0xCC58_4010, 0x1C1E_1100]),
];

/// 8 times one of [`OPERATIONS`] and 3 SALU instructions.
///
/// ```text
/// v_mov_b32_e32 v0, 0x3c3a3e38 ; v1 to v15 likewise: numbers of moderate size in every format
/// v_mov_b32_e32 v16, 0 ; v17 to v23 likewise
/// v_mov_b32_e32 v7, 0x4e4e4e4e ; elements 2 and 3, 0 and 1
/// loop:
/// ; 8 times the operation
/// s_sub_co_i32 s2, s2, 1
/// s_cmp_lg_u32 s2, 0
/// s_cbranch_scc1 loop
/// s_endpgm
/// ```
pub fn repeated(operation: [u32; 2]) -> Vec<u32> {
    let mut words = Vec::new();
    (0..16).for_each(|register| words.extend([0x7E00_02FF + (register << 17), 0x3C3A_3E38]));
    (16..24).for_each(|register| words.push(0x7E00_0280 + (register << 17)));
    words.extend([0x7E0E_02FF, 0x4E4E_4E4E]);
    (0..8).for_each(|_| words.extend(operation));
    // 16 words of operations and 3 of the loop itself to branch back over.
    words.extend([0x8182_8102, 0xBF07_8002, 0xBFA2_0000 | (-19i16 as u16 as u32), 0xBFB0_0000]);
    words
}
