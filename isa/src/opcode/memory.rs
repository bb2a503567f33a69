//! Memory: LDS, flat, scratch, global, buffer; image and export by class. Row format: see the parent module.

macro_rules! memory_operations {
    ($next:ident $($rest:tt)*) => { $next! { $($rest)*
        // VDS
        DsAddU32 "ds_add_u32" Vds 0 [] [vector(B32), vector(B32)] [];
        DsSubU32 "ds_sub_u32" Vds 1 [] [vector(B32), vector(B32)] [];
        DsRsubU32 "ds_rsub_u32" Vds 2 [] [vector(B32), vector(B32)] [];
        DsIncU32 "ds_inc_u32" Vds 3 [] [vector(B32), vector(B32)] [];
        DsDecU32 "ds_dec_u32" Vds 4 [] [vector(B32), vector(B32)] [];
        DsMinI32 "ds_min_i32" Vds 5 [] [vector(B32), vector(B32)] [];
        DsMaxI32 "ds_max_i32" Vds 6 [] [vector(B32), vector(B32)] [];
        DsMinU32 "ds_min_u32" Vds 7 [] [vector(B32), vector(B32)] [];
        DsMaxU32 "ds_max_u32" Vds 8 [] [vector(B32), vector(B32)] [];
        DsAndB32 "ds_and_b32" Vds 9 [] [vector(B32), vector(B32)] [];
        DsOrB32 "ds_or_b32" Vds 10 [] [vector(B32), vector(B32)] [];
        DsXorB32 "ds_xor_b32" Vds 11 [] [vector(B32), vector(B32)] [];
        DsMskorB32 "ds_mskor_b32" Vds 12 [] [vector(B32), vector(B32), vector(B32)] [];
        DsStoreB32 "ds_store_b32" Vds 13 [] [vector(B32), vector(B32)] [];
        DsStore2addrB32 "ds_store_2addr_b32" Vds 14 [] [vector(B32), vector(B32), vector(B32)] [];
        DsStore2addrStride64B32 "ds_store_2addr_stride64_b32" Vds 15
            [] [vector(B32), vector(B32), vector(B32)] [];
        DsCmpstoreB32 "ds_cmpstore_b32" Vds 16 [] [vector(B32), vector(B32), vector(B32)] [];
        DsMinNumF32 "ds_min_num_f32" Vds 18 [] [vector(B32), vector(B32)] [];
        DsMaxNumF32 "ds_max_num_f32" Vds 19 [] [vector(B32), vector(B32)] [];
        DsNop "ds_nop" Vds 20 [] [] [NO_IMMEDIATE];
        DsAddF32 "ds_add_f32" Vds 21 [] [vector(B32), vector(B32)] [];
        DsStoreB8 "ds_store_b8" Vds 30 [] [vector(B32), vector(B32)] [];
        DsStoreB16 "ds_store_b16" Vds 31 [] [vector(B32), vector(B32)] [];
        DsAddRtnU32 "ds_add_rtn_u32" Vds 32 [vector(B32)] [vector(B32), vector(B32)] [];
        DsSubRtnU32 "ds_sub_rtn_u32" Vds 33 [vector(B32)] [vector(B32), vector(B32)] [];
        DsRsubRtnU32 "ds_rsub_rtn_u32" Vds 34 [vector(B32)] [vector(B32), vector(B32)] [];
        DsIncRtnU32 "ds_inc_rtn_u32" Vds 35 [vector(B32)] [vector(B32), vector(B32)] [];
        DsDecRtnU32 "ds_dec_rtn_u32" Vds 36 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMinRtnI32 "ds_min_rtn_i32" Vds 37 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMaxRtnI32 "ds_max_rtn_i32" Vds 38 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMinRtnU32 "ds_min_rtn_u32" Vds 39 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMaxRtnU32 "ds_max_rtn_u32" Vds 40 [vector(B32)] [vector(B32), vector(B32)] [];
        DsAndRtnB32 "ds_and_rtn_b32" Vds 41 [vector(B32)] [vector(B32), vector(B32)] [];
        DsOrRtnB32 "ds_or_rtn_b32" Vds 42 [vector(B32)] [vector(B32), vector(B32)] [];
        DsXorRtnB32 "ds_xor_rtn_b32" Vds 43 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMskorRtnB32 "ds_mskor_rtn_b32" Vds 44 [vector(B32)] [vector(B32), vector(B32), vector(B32)] [];
        DsStorexchgRtnB32 "ds_storexchg_rtn_b32" Vds 45 [vector(B32)] [vector(B32), vector(B32)] [];
        DsStorexchg2addrRtnB32 "ds_storexchg_2addr_rtn_b32" Vds 46
            [vector(B64)] [vector(B32), vector(B32), vector(B32)] [];
        DsStorexchg2addrStride64RtnB32 "ds_storexchg_2addr_stride64_rtn_b32" Vds 47
            [vector(B64)] [vector(B32), vector(B32), vector(B32)] [];
        DsCmpstoreRtnB32 "ds_cmpstore_rtn_b32" Vds 48
            [vector(B32)] [vector(B32), vector(B32), vector(B32)] [];
        DsMinNumRtnF32 "ds_min_num_rtn_f32" Vds 50 [vector(B32)] [vector(B32), vector(B32)] [];
        DsMaxNumRtnF32 "ds_max_num_rtn_f32" Vds 51 [vector(B32)] [vector(B32), vector(B32)] [];
        DsSwizzleB32 "ds_swizzle_b32" Vds 53 [vector(B32)] [vector(B32)] [];
        DsLoadB32 "ds_load_b32" Vds 54 [vector(B32)] [vector(B32)] [];
        DsLoad2addrB32 "ds_load_2addr_b32" Vds 55 [vector(B64)] [vector(B32)] [];
        DsLoad2addrStride64B32 "ds_load_2addr_stride64_b32" Vds 56 [vector(B64)] [vector(B32)] [];
        DsLoadI8 "ds_load_i8" Vds 57 [vector(B32)] [vector(B32)] [];
        DsLoadU8 "ds_load_u8" Vds 58 [vector(B32)] [vector(B32)] [];
        DsLoadI16 "ds_load_i16" Vds 59 [vector(B32)] [vector(B32)] [];
        DsLoadU16 "ds_load_u16" Vds 60 [vector(B32)] [vector(B32)] [];
        DsConsume "ds_consume" Vds 61 [vector(B32)] [] [];
        DsAppend "ds_append" Vds 62 [vector(B32)] [] [];
        DsAddU64 "ds_add_u64" Vds 64 [] [vector(B32), vector(B64)] [];
        DsSubU64 "ds_sub_u64" Vds 65 [] [vector(B32), vector(B64)] [];
        DsRsubU64 "ds_rsub_u64" Vds 66 [] [vector(B32), vector(B64)] [];
        DsIncU64 "ds_inc_u64" Vds 67 [] [vector(B32), vector(B64)] [];
        DsDecU64 "ds_dec_u64" Vds 68 [] [vector(B32), vector(B64)] [];
        DsMinI64 "ds_min_i64" Vds 69 [] [vector(B32), vector(B64)] [];
        DsMaxI64 "ds_max_i64" Vds 70 [] [vector(B32), vector(B64)] [];
        DsMinU64 "ds_min_u64" Vds 71 [] [vector(B32), vector(B64)] [];
        DsMaxU64 "ds_max_u64" Vds 72 [] [vector(B32), vector(B64)] [];
        DsAndB64 "ds_and_b64" Vds 73 [] [vector(B32), vector(B64)] [];
        DsOrB64 "ds_or_b64" Vds 74 [] [vector(B32), vector(B64)] [];
        DsXorB64 "ds_xor_b64" Vds 75 [] [vector(B32), vector(B64)] [];
        DsMskorB64 "ds_mskor_b64" Vds 76 [] [vector(B32), vector(B64), vector(B64)] [];
        DsStoreB64 "ds_store_b64" Vds 77 [] [vector(B32), vector(B64)] [];
        DsStore2addrB64 "ds_store_2addr_b64" Vds 78 [] [vector(B32), vector(B64), vector(B64)] [];
        DsStore2addrStride64B64 "ds_store_2addr_stride64_b64" Vds 79
            [] [vector(B32), vector(B64), vector(B64)] [];
        DsCmpstoreB64 "ds_cmpstore_b64" Vds 80 [] [vector(B32), vector(B64), vector(B64)] [];
        DsMinNumF64 "ds_min_num_f64" Vds 82 [] [vector(B32), vector(B64)] [];
        DsMaxNumF64 "ds_max_num_f64" Vds 83 [] [vector(B32), vector(B64)] [];
        DsAddRtnU64 "ds_add_rtn_u64" Vds 96 [vector(B64)] [vector(B32), vector(B64)] [];
        DsSubRtnU64 "ds_sub_rtn_u64" Vds 97 [vector(B64)] [vector(B32), vector(B64)] [];
        DsRsubRtnU64 "ds_rsub_rtn_u64" Vds 98 [vector(B64)] [vector(B32), vector(B64)] [];
        DsIncRtnU64 "ds_inc_rtn_u64" Vds 99 [vector(B64)] [vector(B32), vector(B64)] [];
        DsDecRtnU64 "ds_dec_rtn_u64" Vds 100 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMinRtnI64 "ds_min_rtn_i64" Vds 101 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMaxRtnI64 "ds_max_rtn_i64" Vds 102 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMinRtnU64 "ds_min_rtn_u64" Vds 103 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMaxRtnU64 "ds_max_rtn_u64" Vds 104 [vector(B64)] [vector(B32), vector(B64)] [];
        DsAndRtnB64 "ds_and_rtn_b64" Vds 105 [vector(B64)] [vector(B32), vector(B64)] [];
        DsOrRtnB64 "ds_or_rtn_b64" Vds 106 [vector(B64)] [vector(B32), vector(B64)] [];
        DsXorRtnB64 "ds_xor_rtn_b64" Vds 107 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMskorRtnB64 "ds_mskor_rtn_b64" Vds 108 [vector(B64)] [vector(B32), vector(B64), vector(B64)] [];
        DsStorexchgRtnB64 "ds_storexchg_rtn_b64" Vds 109 [vector(B64)] [vector(B32), vector(B64)] [];
        DsStorexchg2addrRtnB64 "ds_storexchg_2addr_rtn_b64" Vds 110
            [vector(B128)] [vector(B32), vector(B64), vector(B64)] [];
        DsStorexchg2addrStride64RtnB64 "ds_storexchg_2addr_stride64_rtn_b64" Vds 111
            [vector(B128)] [vector(B32), vector(B64), vector(B64)] [];
        DsCmpstoreRtnB64 "ds_cmpstore_rtn_b64" Vds 112
            [vector(B64)] [vector(B32), vector(B64), vector(B64)] [];
        DsMinNumRtnF64 "ds_min_num_rtn_f64" Vds 114 [vector(B64)] [vector(B32), vector(B64)] [];
        DsMaxNumRtnF64 "ds_max_num_rtn_f64" Vds 115 [vector(B64)] [vector(B32), vector(B64)] [];
        DsLoadB64 "ds_load_b64" Vds 118 [vector(B64)] [vector(B32)] [];
        DsLoad2addrB64 "ds_load_2addr_b64" Vds 119 [vector(B128)] [vector(B32)] [];
        DsLoad2addrStride64B64 "ds_load_2addr_stride64_b64" Vds 120 [vector(B128)] [vector(B32)] [];
        DsAddRtnF32 "ds_add_rtn_f32" Vds 121 [vector(B32)] [vector(B32), vector(B32)] [];
        DsCondxchg32RtnB64 "ds_condxchg32_rtn_b64" Vds 126 [vector(B64)] [vector(B32), vector(B64)] [];
        DsCondSubU32 "ds_cond_sub_u32" Vds 152 [] [vector(B32), vector(B32)] [];
        DsSubClampU32 "ds_sub_clamp_u32" Vds 153 [] [vector(B32), vector(B32)] [];
        DsPkAddF16 "ds_pk_add_f16" Vds 154 [] [vector(B32), vector(B32)] [];
        DsPkAddBf16 "ds_pk_add_bf16" Vds 155 [] [vector(B32), vector(B32)] [];
        DsStoreB8D16Hi "ds_store_b8_d16_hi" Vds 160 [] [vector(B32), vector(B32)] [];
        DsStoreB16D16Hi "ds_store_b16_d16_hi" Vds 161 [] [vector(B32), vector(B32)] [];
        DsLoadU8D16 "ds_load_u8_d16" Vds 162 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsLoadU8D16Hi "ds_load_u8_d16_hi" Vds 163 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsLoadI8D16 "ds_load_i8_d16" Vds 164 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsLoadI8D16Hi "ds_load_i8_d16_hi" Vds 165 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsLoadU16D16 "ds_load_u16_d16" Vds 166 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsLoadU16D16Hi "ds_load_u16_d16_hi" Vds 167 [vector(B32)] [vector(B32)] [ACCUMULATES];
        DsCondSubRtnU32 "ds_cond_sub_rtn_u32" Vds 168 [vector(B32)] [vector(B32), vector(B32)] [];
        DsSubClampRtnU32 "ds_sub_clamp_rtn_u32" Vds 169 [vector(B32)] [vector(B32), vector(B32)] [];
        DsPkAddRtnF16 "ds_pk_add_rtn_f16" Vds 170 [vector(B32)] [vector(B32), vector(B32)] [];
        DsPkAddRtnBf16 "ds_pk_add_rtn_bf16" Vds 171 [vector(B32)] [vector(B32), vector(B32)] [];
        DsStoreAddtidB32 "ds_store_addtid_b32" Vds 176 [] [NONE, vector(B32)] [];
        DsLoadAddtidB32 "ds_load_addtid_b32" Vds 177 [vector(B32)] [] [];
        DsPermuteB32 "ds_permute_b32" Vds 178 [vector(B32)] [vector(B32), vector(B32)] [];
        DsBpermuteB32 "ds_bpermute_b32" Vds 179 [vector(B32)] [vector(B32), vector(B32)] [];
        DsStoreB96 "ds_store_b96" Vds 222 [] [vector(B32), vector(B96)] [];
        DsStoreB128 "ds_store_b128" Vds 223 [] [vector(B32), vector(B128)] [];
        DsLoadB96 "ds_load_b96" Vds 254 [vector(B96)] [vector(B32)] [];
        DsLoadB128 "ds_load_b128" Vds 255 [vector(B128)] [vector(B32)] [];

        // VDSDIR
        DsParamLoad "ds_param_load" Vdsdir 0 [vector(B32)] [] [];
        DsDirectLoad "ds_direct_load" Vdsdir 1 [vector(B32)] [] [];

        // VFLAT
        FlatLoadU8 "flat_load_u8" Vflat 16 [vector(B32)] [vector(B64), NONE, NONE] [];
        FlatLoadI8 "flat_load_i8" Vflat 17 [vector(B32)] [vector(B64), NONE, NONE] [];
        FlatLoadU16 "flat_load_u16" Vflat 18 [vector(B32)] [vector(B64), NONE, NONE] [];
        FlatLoadI16 "flat_load_i16" Vflat 19 [vector(B32)] [vector(B64), NONE, NONE] [];
        FlatLoadB32 "flat_load_b32" Vflat 20 [vector(B32)] [vector(B64), NONE, NONE] [];
        FlatLoadB64 "flat_load_b64" Vflat 21 [vector(B64)] [vector(B64), NONE, NONE] [];
        FlatLoadB96 "flat_load_b96" Vflat 22 [vector(B96)] [vector(B64), NONE, NONE] [];
        FlatLoadB128 "flat_load_b128" Vflat 23 [vector(B128)] [vector(B64), NONE, NONE] [];
        FlatStoreB8 "flat_store_b8" Vflat 24 [] [vector(B64), vector(B32), NONE] [];
        FlatStoreB16 "flat_store_b16" Vflat 25 [] [vector(B64), vector(B32), NONE] [];
        FlatStoreB32 "flat_store_b32" Vflat 26 [] [vector(B64), vector(B32), NONE] [];
        FlatStoreB64 "flat_store_b64" Vflat 27 [] [vector(B64), vector(B64), NONE] [];
        FlatStoreB96 "flat_store_b96" Vflat 28 [] [vector(B64), vector(B96), NONE] [];
        FlatStoreB128 "flat_store_b128" Vflat 29 [] [vector(B64), vector(B128), NONE] [];
        FlatLoadD16U8 "flat_load_d16_u8" Vflat 30 [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatLoadD16I8 "flat_load_d16_i8" Vflat 31 [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatLoadD16B16 "flat_load_d16_b16" Vflat 32 [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatLoadD16HiU8 "flat_load_d16_hi_u8" Vflat 33 [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatLoadD16HiI8 "flat_load_d16_hi_i8" Vflat 34 [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatLoadD16HiB16 "flat_load_d16_hi_b16" Vflat 35
            [vector(B32)] [vector(B64), NONE, NONE] [ACCUMULATES];
        FlatStoreD16HiB8 "flat_store_d16_hi_b8" Vflat 36 [] [vector(B64), vector(B32), NONE] [];
        FlatStoreD16HiB16 "flat_store_d16_hi_b16" Vflat 37 [] [vector(B64), vector(B32), NONE] [];
        FlatAtomicSwapB32 "flat_atomic_swap_b32" Vflat 51
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicCmpswapB32 "flat_atomic_cmpswap_b32" Vflat 52
            [vector(B32)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicAddU32 "flat_atomic_add_u32" Vflat 53
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicSubU32 "flat_atomic_sub_u32" Vflat 54
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicSubClampU32 "flat_atomic_sub_clamp_u32" Vflat 55
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMinI32 "flat_atomic_min_i32" Vflat 56
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMinU32 "flat_atomic_min_u32" Vflat 57
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMaxI32 "flat_atomic_max_i32" Vflat 58
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMaxU32 "flat_atomic_max_u32" Vflat 59
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicAndB32 "flat_atomic_and_b32" Vflat 60
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicOrB32 "flat_atomic_or_b32" Vflat 61 [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicXorB32 "flat_atomic_xor_b32" Vflat 62
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicIncU32 "flat_atomic_inc_u32" Vflat 63
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicDecU32 "flat_atomic_dec_u32" Vflat 64
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicSwapB64 "flat_atomic_swap_b64" Vflat 65
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicCmpswapB64 "flat_atomic_cmpswap_b64" Vflat 66
            [vector(B64)] [vector(B64), vector(B128), NONE] [ATOMIC];
        FlatAtomicAddU64 "flat_atomic_add_u64" Vflat 67
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicSubU64 "flat_atomic_sub_u64" Vflat 68
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicMinI64 "flat_atomic_min_i64" Vflat 69
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicMinU64 "flat_atomic_min_u64" Vflat 70
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicMaxI64 "flat_atomic_max_i64" Vflat 71
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicMaxU64 "flat_atomic_max_u64" Vflat 72
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicAndB64 "flat_atomic_and_b64" Vflat 73
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicOrB64 "flat_atomic_or_b64" Vflat 74 [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicXorB64 "flat_atomic_xor_b64" Vflat 75
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicIncU64 "flat_atomic_inc_u64" Vflat 76
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicDecU64 "flat_atomic_dec_u64" Vflat 77
            [vector(B64)] [vector(B64), vector(B64), NONE] [ATOMIC];
        FlatAtomicCondSubU32 "flat_atomic_cond_sub_u32" Vflat 80
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMinNumF32 "flat_atomic_min_num_f32" Vflat 81
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicMaxNumF32 "flat_atomic_max_num_f32" Vflat 82
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicAddF32 "flat_atomic_add_f32" Vflat 86
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicPkAddF16 "flat_atomic_pk_add_f16" Vflat 89
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];
        FlatAtomicPkAddBf16 "flat_atomic_pk_add_bf16" Vflat 90
            [vector(B32)] [vector(B64), vector(B32), NONE] [ATOMIC];

        // VSCRATCH
        ScratchLoadU8 "scratch_load_u8" Vscratch 16 [vector(B32)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadI8 "scratch_load_i8" Vscratch 17 [vector(B32)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadU16 "scratch_load_u16" Vscratch 18 [vector(B32)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadI16 "scratch_load_i16" Vscratch 19 [vector(B32)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadB32 "scratch_load_b32" Vscratch 20 [vector(B32)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadB64 "scratch_load_b64" Vscratch 21 [vector(B64)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadB96 "scratch_load_b96" Vscratch 22 [vector(B96)] [vector(B32), NONE, register(B32)] [];
        ScratchLoadB128 "scratch_load_b128" Vscratch 23 [vector(B128)] [vector(B32), NONE, register(B32)] [];
        ScratchStoreB8 "scratch_store_b8" Vscratch 24 [] [vector(B32), vector(B32), register(B32)] [];
        ScratchStoreB16 "scratch_store_b16" Vscratch 25 [] [vector(B32), vector(B32), register(B32)] [];
        ScratchStoreB32 "scratch_store_b32" Vscratch 26 [] [vector(B32), vector(B32), register(B32)] [];
        ScratchStoreB64 "scratch_store_b64" Vscratch 27 [] [vector(B32), vector(B64), register(B32)] [];
        ScratchStoreB96 "scratch_store_b96" Vscratch 28 [] [vector(B32), vector(B96), register(B32)] [];
        ScratchStoreB128 "scratch_store_b128" Vscratch 29 [] [vector(B32), vector(B128), register(B32)] [];
        ScratchLoadD16U8 "scratch_load_d16_u8" Vscratch 30
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchLoadD16I8 "scratch_load_d16_i8" Vscratch 31
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchLoadD16B16 "scratch_load_d16_b16" Vscratch 32
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchLoadD16HiU8 "scratch_load_d16_hi_u8" Vscratch 33
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchLoadD16HiI8 "scratch_load_d16_hi_i8" Vscratch 34
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchLoadD16HiB16 "scratch_load_d16_hi_b16" Vscratch 35
            [vector(B32)] [vector(B32), NONE, register(B32)] [ACCUMULATES];
        ScratchStoreD16HiB8 "scratch_store_d16_hi_b8" Vscratch 36
            [] [vector(B32), vector(B32), register(B32)] [];
        ScratchStoreD16HiB16 "scratch_store_d16_hi_b16" Vscratch 37
            [] [vector(B32), vector(B32), register(B32)] [];
        ScratchLoadBlock "scratch_load_block" Vscratch 83
            [vector(B1024)] [vector(B32), NONE, register(B32)] [];
        ScratchStoreBlock "scratch_store_block" Vscratch 84 [] [vector(B32), vector(B1024), register(B32)] [];

        // VGLOBAL
        GlobalLoadU8 "global_load_u8" Vglobal 16 [vector(B32)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadI8 "global_load_i8" Vglobal 17 [vector(B32)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadU16 "global_load_u16" Vglobal 18 [vector(B32)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadI16 "global_load_i16" Vglobal 19 [vector(B32)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadB32 "global_load_b32" Vglobal 20 [vector(B32)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadB64 "global_load_b64" Vglobal 21 [vector(B64)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadB96 "global_load_b96" Vglobal 22 [vector(B96)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadB128 "global_load_b128" Vglobal 23 [vector(B128)] [vector(B64), NONE, register(B64)] [];
        GlobalStoreB8 "global_store_b8" Vglobal 24 [] [vector(B64), vector(B32), register(B64)] [];
        GlobalStoreB16 "global_store_b16" Vglobal 25 [] [vector(B64), vector(B32), register(B64)] [];
        GlobalStoreB32 "global_store_b32" Vglobal 26 [] [vector(B64), vector(B32), register(B64)] [];
        GlobalStoreB64 "global_store_b64" Vglobal 27 [] [vector(B64), vector(B64), register(B64)] [];
        GlobalStoreB96 "global_store_b96" Vglobal 28 [] [vector(B64), vector(B96), register(B64)] [];
        GlobalStoreB128 "global_store_b128" Vglobal 29 [] [vector(B64), vector(B128), register(B64)] [];
        GlobalLoadD16U8 "global_load_d16_u8" Vglobal 30
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalLoadD16I8 "global_load_d16_i8" Vglobal 31
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalLoadD16B16 "global_load_d16_b16" Vglobal 32
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalLoadD16HiU8 "global_load_d16_hi_u8" Vglobal 33
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalLoadD16HiI8 "global_load_d16_hi_i8" Vglobal 34
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalLoadD16HiB16 "global_load_d16_hi_b16" Vglobal 35
            [vector(B32)] [vector(B64), NONE, register(B64)] [ACCUMULATES];
        GlobalStoreD16HiB8 "global_store_d16_hi_b8" Vglobal 36
            [] [vector(B64), vector(B32), register(B64)] [];
        GlobalStoreD16HiB16 "global_store_d16_hi_b16" Vglobal 37
            [] [vector(B64), vector(B32), register(B64)] [];
        GlobalLoadAddtidB32 "global_load_addtid_b32" Vglobal 40 [vector(B32)] [NONE, NONE, register(B64)] [];
        GlobalStoreAddtidB32 "global_store_addtid_b32" Vglobal 41 [] [NONE, vector(B32), register(B64)] [];
        GlobalInv "global_inv" Vglobal 43 [] [] [];
        GlobalWb "global_wb" Vglobal 44 [] [] [];
        GlobalAtomicSwapB32 "global_atomic_swap_b32" Vglobal 51
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicCmpswapB32 "global_atomic_cmpswap_b32" Vglobal 52
            [vector(B32)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicAddU32 "global_atomic_add_u32" Vglobal 53
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicSubU32 "global_atomic_sub_u32" Vglobal 54
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicSubClampU32 "global_atomic_sub_clamp_u32" Vglobal 55
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMinI32 "global_atomic_min_i32" Vglobal 56
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMinU32 "global_atomic_min_u32" Vglobal 57
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMaxI32 "global_atomic_max_i32" Vglobal 58
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMaxU32 "global_atomic_max_u32" Vglobal 59
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicAndB32 "global_atomic_and_b32" Vglobal 60
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicOrB32 "global_atomic_or_b32" Vglobal 61
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicXorB32 "global_atomic_xor_b32" Vglobal 62
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicIncU32 "global_atomic_inc_u32" Vglobal 63
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicDecU32 "global_atomic_dec_u32" Vglobal 64
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicSwapB64 "global_atomic_swap_b64" Vglobal 65
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicCmpswapB64 "global_atomic_cmpswap_b64" Vglobal 66
            [vector(B64)] [vector(B64), vector(B128), register(B64)] [ATOMIC];
        GlobalAtomicAddU64 "global_atomic_add_u64" Vglobal 67
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicSubU64 "global_atomic_sub_u64" Vglobal 68
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicMinI64 "global_atomic_min_i64" Vglobal 69
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicMinU64 "global_atomic_min_u64" Vglobal 70
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicMaxI64 "global_atomic_max_i64" Vglobal 71
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicMaxU64 "global_atomic_max_u64" Vglobal 72
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicAndB64 "global_atomic_and_b64" Vglobal 73
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicOrB64 "global_atomic_or_b64" Vglobal 74
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicXorB64 "global_atomic_xor_b64" Vglobal 75
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicIncU64 "global_atomic_inc_u64" Vglobal 76
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalAtomicDecU64 "global_atomic_dec_u64" Vglobal 77
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];
        GlobalWbinv "global_wbinv" Vglobal 79 [] [] [];
        GlobalAtomicCondSubU32 "global_atomic_cond_sub_u32" Vglobal 80
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMinNumF32 "global_atomic_min_num_f32" Vglobal 81
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicMaxNumF32 "global_atomic_max_num_f32" Vglobal 82
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalLoadBlock "global_load_block" Vglobal 83 [vector(B1024)] [vector(B64), NONE, register(B64)] [];
        GlobalStoreBlock "global_store_block" Vglobal 84 [] [vector(B64), vector(B1024), register(B64)] [];
        GlobalAtomicAddF32 "global_atomic_add_f32" Vglobal 86
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalLoadTrB128 "global_load_tr_b128" Vglobal 87
            [vector(B128)] [vector(B64), NONE, register(B64)] [];
        GlobalLoadTrB64 "global_load_tr_b64" Vglobal 88 [vector(B64)] [vector(B64), NONE, register(B64)] [];
        GlobalAtomicPkAddF16 "global_atomic_pk_add_f16" Vglobal 89
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicPkAddBf16 "global_atomic_pk_add_bf16" Vglobal 90
            [vector(B32)] [vector(B64), vector(B32), register(B64)] [ATOMIC];
        GlobalAtomicOrderedAddB64 "global_atomic_ordered_add_b64" Vglobal 115
            [vector(B64)] [vector(B64), vector(B64), register(B64)] [ATOMIC];

        // VBUFFER
        BufferLoadFormatX "buffer_load_format_x" Vbuffer 0
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadFormatXy "buffer_load_format_xy" Vbuffer 1
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        BufferLoadFormatXyz "buffer_load_format_xyz" Vbuffer 2
            [vector(B96)] [vector(B64), NONE, register(B128)] [];
        BufferLoadFormatXyzw "buffer_load_format_xyzw" Vbuffer 3
            [vector(B128)] [vector(B64), NONE, register(B128)] [];
        BufferStoreFormatX "buffer_store_format_x" Vbuffer 4 [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreFormatXy "buffer_store_format_xy" Vbuffer 5
            [] [vector(B64), vector(B64), register(B128)] [];
        BufferStoreFormatXyz "buffer_store_format_xyz" Vbuffer 6
            [] [vector(B64), vector(B96), register(B128)] [];
        BufferStoreFormatXyzw "buffer_store_format_xyzw" Vbuffer 7
            [] [vector(B64), vector(B128), register(B128)] [];
        BufferLoadD16FormatX "buffer_load_d16_format_x" Vbuffer 8
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadD16FormatXy "buffer_load_d16_format_xy" Vbuffer 9
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadD16FormatXyz "buffer_load_d16_format_xyz" Vbuffer 10
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        BufferLoadD16FormatXyzw "buffer_load_d16_format_xyzw" Vbuffer 11
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        BufferStoreD16FormatX "buffer_store_d16_format_x" Vbuffer 12
            [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreD16FormatXy "buffer_store_d16_format_xy" Vbuffer 13
            [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreD16FormatXyz "buffer_store_d16_format_xyz" Vbuffer 14
            [] [vector(B64), vector(B64), register(B128)] [];
        BufferStoreD16FormatXyzw "buffer_store_d16_format_xyzw" Vbuffer 15
            [] [vector(B64), vector(B64), register(B128)] [];
        BufferLoadU8 "buffer_load_u8" Vbuffer 16 [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadI8 "buffer_load_i8" Vbuffer 17 [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadU16 "buffer_load_u16" Vbuffer 18 [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadI16 "buffer_load_i16" Vbuffer 19 [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadB32 "buffer_load_b32" Vbuffer 20 [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferLoadB64 "buffer_load_b64" Vbuffer 21 [vector(B64)] [vector(B64), NONE, register(B128)] [];
        BufferLoadB96 "buffer_load_b96" Vbuffer 22 [vector(B96)] [vector(B64), NONE, register(B128)] [];
        BufferLoadB128 "buffer_load_b128" Vbuffer 23 [vector(B128)] [vector(B64), NONE, register(B128)] [];
        BufferStoreB8 "buffer_store_b8" Vbuffer 24 [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreB16 "buffer_store_b16" Vbuffer 25 [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreB32 "buffer_store_b32" Vbuffer 26 [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreB64 "buffer_store_b64" Vbuffer 27 [] [vector(B64), vector(B64), register(B128)] [];
        BufferStoreB96 "buffer_store_b96" Vbuffer 28 [] [vector(B64), vector(B96), register(B128)] [];
        BufferStoreB128 "buffer_store_b128" Vbuffer 29 [] [vector(B64), vector(B128), register(B128)] [];
        BufferLoadD16U8 "buffer_load_d16_u8" Vbuffer 30
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferLoadD16I8 "buffer_load_d16_i8" Vbuffer 31
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferLoadD16B16 "buffer_load_d16_b16" Vbuffer 32
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferLoadD16HiU8 "buffer_load_d16_hi_u8" Vbuffer 33
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferLoadD16HiI8 "buffer_load_d16_hi_i8" Vbuffer 34
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferLoadD16HiB16 "buffer_load_d16_hi_b16" Vbuffer 35
            [vector(B32)] [vector(B64), NONE, register(B128)] [ACCUMULATES];
        BufferStoreD16HiB8 "buffer_store_d16_hi_b8" Vbuffer 36
            [] [vector(B64), vector(B32), register(B128)] [];
        BufferStoreD16HiB16 "buffer_store_d16_hi_b16" Vbuffer 37
            [] [vector(B64), vector(B32), register(B128)] [];
        BufferLoadD16HiFormatX "buffer_load_d16_hi_format_x" Vbuffer 38
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        BufferStoreD16HiFormatX "buffer_store_d16_hi_format_x" Vbuffer 39
            [] [vector(B64), vector(B32), register(B128)] [];
        BufferAtomicSwapB32 "buffer_atomic_swap_b32" Vbuffer 51
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicCmpswapB32 "buffer_atomic_cmpswap_b32" Vbuffer 52
            [vector(B32)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicAddU32 "buffer_atomic_add_u32" Vbuffer 53
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicSubU32 "buffer_atomic_sub_u32" Vbuffer 54
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicSubClampU32 "buffer_atomic_sub_clamp_u32" Vbuffer 55
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMinI32 "buffer_atomic_min_i32" Vbuffer 56
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMinU32 "buffer_atomic_min_u32" Vbuffer 57
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMaxI32 "buffer_atomic_max_i32" Vbuffer 58
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMaxU32 "buffer_atomic_max_u32" Vbuffer 59
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicAndB32 "buffer_atomic_and_b32" Vbuffer 60
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicOrB32 "buffer_atomic_or_b32" Vbuffer 61
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicXorB32 "buffer_atomic_xor_b32" Vbuffer 62
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicIncU32 "buffer_atomic_inc_u32" Vbuffer 63
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicDecU32 "buffer_atomic_dec_u32" Vbuffer 64
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicSwapB64 "buffer_atomic_swap_b64" Vbuffer 65
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicCmpswapB64 "buffer_atomic_cmpswap_b64" Vbuffer 66
            [vector(B64)] [vector(B64), vector(B128), register(B128)] [ATOMIC];
        BufferAtomicAddU64 "buffer_atomic_add_u64" Vbuffer 67
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicSubU64 "buffer_atomic_sub_u64" Vbuffer 68
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicMinI64 "buffer_atomic_min_i64" Vbuffer 69
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicMinU64 "buffer_atomic_min_u64" Vbuffer 70
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicMaxI64 "buffer_atomic_max_i64" Vbuffer 71
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicMaxU64 "buffer_atomic_max_u64" Vbuffer 72
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicAndB64 "buffer_atomic_and_b64" Vbuffer 73
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicOrB64 "buffer_atomic_or_b64" Vbuffer 74
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicXorB64 "buffer_atomic_xor_b64" Vbuffer 75
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicIncU64 "buffer_atomic_inc_u64" Vbuffer 76
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicDecU64 "buffer_atomic_dec_u64" Vbuffer 77
            [vector(B64)] [vector(B64), vector(B64), register(B128)] [ATOMIC];
        BufferAtomicCondSubU32 "buffer_atomic_cond_sub_u32" Vbuffer 80
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMinNumF32 "buffer_atomic_min_num_f32" Vbuffer 81
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicMaxNumF32 "buffer_atomic_max_num_f32" Vbuffer 82
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicAddF32 "buffer_atomic_add_f32" Vbuffer 86
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicPkAddF16 "buffer_atomic_pk_add_f16" Vbuffer 89
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        BufferAtomicPkAddBf16 "buffer_atomic_pk_add_bf16" Vbuffer 90
            [vector(B32)] [vector(B64), vector(B32), register(B128)] [ATOMIC];
        TbufferLoadFormatX "tbuffer_load_format_x" Vbuffer 128
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadFormatXy "tbuffer_load_format_xy" Vbuffer 129
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadFormatXyz "tbuffer_load_format_xyz" Vbuffer 130
            [vector(B96)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadFormatXyzw "tbuffer_load_format_xyzw" Vbuffer 131
            [vector(B128)] [vector(B64), NONE, register(B128)] [];
        TbufferStoreFormatX "tbuffer_store_format_x" Vbuffer 132
            [] [vector(B64), vector(B32), register(B128)] [];
        TbufferStoreFormatXy "tbuffer_store_format_xy" Vbuffer 133
            [] [vector(B64), vector(B64), register(B128)] [];
        TbufferStoreFormatXyz "tbuffer_store_format_xyz" Vbuffer 134
            [] [vector(B64), vector(B96), register(B128)] [];
        TbufferStoreFormatXyzw "tbuffer_store_format_xyzw" Vbuffer 135
            [] [vector(B64), vector(B128), register(B128)] [];
        TbufferLoadD16FormatX "tbuffer_load_d16_format_x" Vbuffer 136
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadD16FormatXy "tbuffer_load_d16_format_xy" Vbuffer 137
            [vector(B32)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadD16FormatXyz "tbuffer_load_d16_format_xyz" Vbuffer 138
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        TbufferLoadD16FormatXyzw "tbuffer_load_d16_format_xyzw" Vbuffer 139
            [vector(B64)] [vector(B64), NONE, register(B128)] [];
        TbufferStoreD16FormatX "tbuffer_store_d16_format_x" Vbuffer 140
            [] [vector(B64), vector(B32), register(B128)] [];
        TbufferStoreD16FormatXy "tbuffer_store_d16_format_xy" Vbuffer 141
            [] [vector(B64), vector(B32), register(B128)] [];
        TbufferStoreD16FormatXyz "tbuffer_store_d16_format_xyz" Vbuffer 142
            [] [vector(B64), vector(B64), register(B128)] [];
        TbufferStoreD16FormatXyzw "tbuffer_store_d16_format_xyzw" Vbuffer 143
            [] [vector(B64), vector(B64), register(B128)] [];

        // VIMAGE
        ImageAccess "image_access" Vimage 0 [] [] [];

        // VSAMPLE
        ImageSample "image_sample" Vsample 0 [] [] [];

        // VEXPORT
        Export "export" Vexport 0 [] [] [];
    } };
}
