//! Vector arithmetic: VOP1, VOP2, VOPC, VOP3, VOP3SD, VOP3P, VINTERP. Row format: see the parent module.

macro_rules! vector_operations {
    ($next:ident $($rest:tt)*) => { $next! { $($rest)*
        // VOP1
        VNop "v_nop" Vop1 0 [] [] PLAIN [];
        VMovB32 "v_mov_b32" Vop1 1 [vector(B32)] [any(B32)] PLAIN [DPP];
        VReadfirstlaneB32 "v_readfirstlane_b32" Vop1 2 [scalar(B32)] [vector(B32)] [];
        VCvtI32F64 "v_cvt_i32_f64" Vop1 3 [vector(I32)] [any(F64)] FLOAT1 [];
        VCvtF64I32 "v_cvt_f64_i32" Vop1 4 [vector(F64)] [any(I32)] CONVERT [];
        VCvtF32I32 "v_cvt_f32_i32" Vop1 5 [vector(F32)] [any(I32)] CONVERT [DPP];
        VCvtF32U32 "v_cvt_f32_u32" Vop1 6 [vector(F32)] [any(U32)] CONVERT [DPP];
        VCvtU32F32 "v_cvt_u32_f32" Vop1 7 [vector(U32)] [any(F32)] FLOAT1 [DPP];
        VCvtI32F32 "v_cvt_i32_f32" Vop1 8 [vector(I32)] [any(F32)] FLOAT1 [DPP];
        VCvtF16F32 "v_cvt_f16_f32" Vop1 10 [vector(F16)] [any(F32)] FLOAT1 [DPP];
        VCvtF32F16 "v_cvt_f32_f16" Vop1 11 [vector(F32)] [any(F16)] FLOAT1 [DPP];
        VCvtNearestI32F32 "v_cvt_nearest_i32_f32" Vop1 12 [vector(I32)] [any(F32)] FLOAT1_TO_INTEGER [DPP];
        VCvtFloorI32F32 "v_cvt_floor_i32_f32" Vop1 13 [vector(I32)] [any(F32)] FLOAT1_TO_INTEGER [DPP];
        VCvtOffF32I4 "v_cvt_off_f32_i4" Vop1 14 [vector(F32)] [any(B32)] CONVERT [DPP];
        VCvtF32F64 "v_cvt_f32_f64" Vop1 15 [vector(F32)] [any(F64)] FLOAT1 [];
        VCvtF64F32 "v_cvt_f64_f32" Vop1 16 [vector(F64)] [any(F32)] FLOAT1 [];
        VCvtF32Ubyte0 "v_cvt_f32_ubyte0" Vop1 17 [vector(F32)] [any(B32)] CONVERT [DPP];
        VCvtF32Ubyte1 "v_cvt_f32_ubyte1" Vop1 18 [vector(F32)] [any(B32)] CONVERT [DPP];
        VCvtF32Ubyte2 "v_cvt_f32_ubyte2" Vop1 19 [vector(F32)] [any(B32)] CONVERT [DPP];
        VCvtF32Ubyte3 "v_cvt_f32_ubyte3" Vop1 20 [vector(F32)] [any(B32)] CONVERT [DPP];
        VCvtU32F64 "v_cvt_u32_f64" Vop1 21 [vector(U32)] [any(F64)] FLOAT1 [];
        VCvtF64U32 "v_cvt_f64_u32" Vop1 22 [vector(F64)] [any(U32)] CONVERT [];
        VTruncF64 "v_trunc_f64" Vop1 23 [vector(F64)] [any(F64)] FLOAT1 [];
        VCeilF64 "v_ceil_f64" Vop1 24 [vector(F64)] [any(F64)] FLOAT1 [];
        VRndneF64 "v_rndne_f64" Vop1 25 [vector(F64)] [any(F64)] FLOAT1 [];
        VFloorF64 "v_floor_f64" Vop1 26 [vector(F64)] [any(F64)] FLOAT1 [];
        VPipeflush "v_pipeflush" Vop1 27 [] [] PLAIN [];
        VMovB16 "v_mov_b16" Vop1 28 [vector(B16)] [any(B16)] MOVE_HALF [DPP];
        VFractF32 "v_fract_f32" Vop1 32 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VTruncF32 "v_trunc_f32" Vop1 33 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VCeilF32 "v_ceil_f32" Vop1 34 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VRndneF32 "v_rndne_f32" Vop1 35 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VFloorF32 "v_floor_f32" Vop1 36 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VExpF32 "v_exp_f32" Vop1 37 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VLogF32 "v_log_f32" Vop1 39 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VRcpF32 "v_rcp_f32" Vop1 42 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VRcpIflagF32 "v_rcp_iflag_f32" Vop1 43 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VRsqF32 "v_rsq_f32" Vop1 46 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VRcpF64 "v_rcp_f64" Vop1 47 [vector(F64)] [any(F64)] FLOAT1 [];
        VRsqF64 "v_rsq_f64" Vop1 49 [vector(F64)] [any(F64)] FLOAT1 [];
        VSqrtF32 "v_sqrt_f32" Vop1 51 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VSqrtF64 "v_sqrt_f64" Vop1 52 [vector(F64)] [any(F64)] FLOAT1 [];
        VSinF32 "v_sin_f32" Vop1 53 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VCosF32 "v_cos_f32" Vop1 54 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VNotB32 "v_not_b32" Vop1 55 [vector(B32)] [any(B32)] PLAIN [DPP];
        VBfrevB32 "v_bfrev_b32" Vop1 56 [vector(B32)] [any(B32)] PLAIN [DPP];
        VClzI32U32 "v_clz_i32_u32" Vop1 57 [vector(I32)] [any(U32)] PLAIN [DPP];
        VCtzI32B32 "v_ctz_i32_b32" Vop1 58 [vector(I32)] [any(B32)] PLAIN [DPP];
        VClsI32 "v_cls_i32" Vop1 59 [vector(I32)] [any(I32)] PLAIN [DPP];
        VFrexpExpI32F64 "v_frexp_exp_i32_f64" Vop1 60 [vector(I32)] [any(F64)] FLOAT1 [];
        VFrexpMantF64 "v_frexp_mant_f64" Vop1 61 [vector(F64)] [any(F64)] FLOAT1 [];
        VFractF64 "v_fract_f64" Vop1 62 [vector(F64)] [any(F64)] FLOAT1 [];
        VFrexpExpI32F32 "v_frexp_exp_i32_f32" Vop1 63 [vector(I32)] [any(F32)] FLOAT1_TO_INTEGER [DPP];
        VFrexpMantF32 "v_frexp_mant_f32" Vop1 64 [vector(F32)] [any(F32)] FLOAT1 [DPP];
        VMovreldB32 "v_movreld_b32" Vop1 66 [vector(B32)] [any(B32)] PLAIN [DPP];
        VMovrelsB32 "v_movrels_b32" Vop1 67 [vector(B32)] [vector(B32)] PLAIN [DPP];
        VMovrelsdB32 "v_movrelsd_b32" Vop1 68 [vector(B32)] [vector(B32)] PLAIN [DPP];
        VMovrelsd2B32 "v_movrelsd_2_b32" Vop1 72 [vector(B32)] [vector(B32)] PLAIN [DPP];
        VCvtF16U16 "v_cvt_f16_u16" Vop1 80 [vector(F16)] [any(U16)] CONVERT [DPP];
        VCvtF16I16 "v_cvt_f16_i16" Vop1 81 [vector(F16)] [any(I16)] CONVERT [DPP];
        VCvtU16F16 "v_cvt_u16_f16" Vop1 82 [vector(U16)] [any(F16)] FLOAT1 [DPP];
        VCvtI16F16 "v_cvt_i16_f16" Vop1 83 [vector(I16)] [any(F16)] FLOAT1 [DPP];
        VRcpF16 "v_rcp_f16" Vop1 84 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VSqrtF16 "v_sqrt_f16" Vop1 85 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VRsqF16 "v_rsq_f16" Vop1 86 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VLogF16 "v_log_f16" Vop1 87 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VExpF16 "v_exp_f16" Vop1 88 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VFrexpMantF16 "v_frexp_mant_f16" Vop1 89 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VFrexpExpI16F16 "v_frexp_exp_i16_f16" Vop1 90 [vector(I16)] [any(F16)] FLOAT1 [DPP];
        VFloorF16 "v_floor_f16" Vop1 91 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VCeilF16 "v_ceil_f16" Vop1 92 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VTruncF16 "v_trunc_f16" Vop1 93 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VRndneF16 "v_rndne_f16" Vop1 94 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VFractF16 "v_fract_f16" Vop1 95 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VSinF16 "v_sin_f16" Vop1 96 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VCosF16 "v_cos_f16" Vop1 97 [vector(F16)] [any(F16)] FLOAT1 [DPP];
        VSatPkU8I16 "v_sat_pk_u8_i16" Vop1 98 [vector(B16)] [any(PkI16)] PLAIN [DPP];
        VCvtNormI16F16 "v_cvt_norm_i16_f16" Vop1 99 [vector(I16)] [any(F16)] FLOAT1 [DPP];
        VCvtNormU16F16 "v_cvt_norm_u16_f16" Vop1 100 [vector(U16)] [any(F16)] FLOAT1 [DPP];
        VSwapB32 "v_swap_b32" Vop1 101 [vector(B32)] [vector(B32)] [ACCUMULATES];
        VSwapB16 "v_swap_b16" Vop1 102 [vector(B16)] [vector(B16)] [ACCUMULATES];
        VPermlane64B32 "v_permlane64_b32" Vop1 103 [vector(B32)] [vector(B32)] [];
        VSwaprelB32 "v_swaprel_b32" Vop1 104 [vector(B32)] [vector(B32)] [ACCUMULATES];
        VNotB16 "v_not_b16" Vop1 105 [vector(B16)] [any(B16)] PLAIN [DPP];
        VCvtI32I16 "v_cvt_i32_i16" Vop1 106 [vector(I32)] [any(I16)] PLAIN [DPP];
        VCvtU32U16 "v_cvt_u32_u16" Vop1 107 [vector(U32)] [any(U16)] PLAIN [DPP];
        VCvtF32Fp8 "v_cvt_f32_fp8" Vop1 108 [vector(F32)] [any(B32)] BYTE_TO_FLOAT [DPP];
        VCvtF32Bf8 "v_cvt_f32_bf8" Vop1 109 [vector(F32)] [any(B32)] BYTE_TO_FLOAT [DPP];
        VCvtPkF32Fp8 "v_cvt_pk_f32_fp8" Vop1 110 [vector(B64)] [any(B32)] BYTES_TO_FLOATS [];
        VCvtPkF32Bf8 "v_cvt_pk_f32_bf8" Vop1 111 [vector(B64)] [any(B32)] BYTES_TO_FLOATS [];

        // VOP2
        VCndmaskB32 "v_cndmask_b32" Vop2 1 [vector(B32)] [any(B32), any(B32), MASK] SELECT [DPP];
        VAddF64 "v_add_f64" Vop2 2 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VAddF32 "v_add_f32" Vop2 3 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VSubF32 "v_sub_f32" Vop2 4 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VSubrevF32 "v_subrev_f32" Vop2 5 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMulF64 "v_mul_f64" Vop2 6 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VMulDx9ZeroF32 "v_mul_dx9_zero_f32" Vop2 7 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMulF32 "v_mul_f32" Vop2 8 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMulI32I24 "v_mul_i32_i24" Vop2 9 [vector(I32)] [any(I32), any(I32)] SATURATE [DPP];
        VMulHiI32I24 "v_mul_hi_i32_i24" Vop2 10 [vector(I32)] [any(I32), any(I32)] PLAIN [DPP];
        VMulU32U24 "v_mul_u32_u24" Vop2 11 [vector(U32)] [any(U32), any(U32)] SATURATE [DPP];
        VMulHiU32U24 "v_mul_hi_u32_u24" Vop2 12 [vector(U32)] [any(U32), any(U32)] PLAIN [DPP];
        VMinNumF64 "v_min_num_f64" Vop2 13 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VMaxNumF64 "v_max_num_f64" Vop2 14 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VMinI32 "v_min_i32" Vop2 17 [vector(I32)] [any(I32), any(I32)] PLAIN [DPP];
        VMaxI32 "v_max_i32" Vop2 18 [vector(I32)] [any(I32), any(I32)] PLAIN [DPP];
        VMinU32 "v_min_u32" Vop2 19 [vector(U32)] [any(U32), any(U32)] PLAIN [DPP];
        VMaxU32 "v_max_u32" Vop2 20 [vector(U32)] [any(U32), any(U32)] PLAIN [DPP];
        VMinNumF32 "v_min_num_f32" Vop2 21 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMaxNumF32 "v_max_num_f32" Vop2 22 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VLshlrevB32 "v_lshlrev_b32" Vop2 24 [vector(B32)] [any(U32), any(B32)] PLAIN [DPP];
        VLshrrevB32 "v_lshrrev_b32" Vop2 25 [vector(B32)] [any(U32), any(B32)] PLAIN [DPP];
        VAshrrevI32 "v_ashrrev_i32" Vop2 26 [vector(I32)] [any(U32), any(I32)] PLAIN [DPP];
        VAndB32 "v_and_b32" Vop2 27 [vector(B32)] [any(B32), any(B32)] PLAIN [DPP];
        VOrB32 "v_or_b32" Vop2 28 [vector(B32)] [any(B32), any(B32)] PLAIN [DPP];
        VXorB32 "v_xor_b32" Vop2 29 [vector(B32)] [any(B32), any(B32)] PLAIN [DPP];
        VXnorB32 "v_xnor_b32" Vop2 30 [vector(B32)] [any(B32), any(B32)] PLAIN [DPP];
        VLshlrevB64 "v_lshlrev_b64" Vop2 31 [vector(B64)] [any(U32), any(B64)] PLAIN [];
        VAddCoCiU32 "v_add_co_ci_u32" Vop2 32 [vector(U32), MASK] [any(U32), any(U32), MASK] SATURATE [DPP];
        VSubCoCiU32 "v_sub_co_ci_u32" Vop2 33 [vector(U32), MASK] [any(U32), any(U32), MASK] SATURATE [DPP];
        VSubrevCoCiU32 "v_subrev_co_ci_u32" Vop2 34
            [vector(U32), MASK] [any(U32), any(U32), MASK] SATURATE [DPP];
        VAddNcU32 "v_add_nc_u32" Vop2 37 [vector(U32)] [any(U32), any(U32)] SATURATE [DPP];
        VSubNcU32 "v_sub_nc_u32" Vop2 38 [vector(U32)] [any(U32), any(U32)] SATURATE [DPP];
        VSubrevNcU32 "v_subrev_nc_u32" Vop2 39 [vector(U32)] [any(U32), any(U32)] SATURATE [DPP];
        VFmacF32 "v_fmac_f32" Vop2 43 [vector(F32)] [any(F32), any(F32)] FLOAT2 [ACCUMULATES | DPP];
        VFmamkF32 "v_fmamk_f32" Vop2 44 [vector(F32)] [any(F32), any(F32), any(F32)] [];
        VFmaakF32 "v_fmaak_f32" Vop2 45 [vector(F32)] [any(F32), any(F32), any(F32)] [];
        VCvtPkRtzF16F32 "v_cvt_pk_rtz_f16_f32" Vop2 47 [vector(PkF16)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMinNumF16 "v_min_num_f16" Vop2 48 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VMaxNumF16 "v_max_num_f16" Vop2 49 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VAddF16 "v_add_f16" Vop2 50 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VSubF16 "v_sub_f16" Vop2 51 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VSubrevF16 "v_subrev_f16" Vop2 52 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VMulF16 "v_mul_f16" Vop2 53 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VFmacF16 "v_fmac_f16" Vop2 54 [vector(F16)] [any(F16), any(F16)] FMAC_HALF [ACCUMULATES | DPP];
        VFmamkF16 "v_fmamk_f16" Vop2 55 [vector(F16)] [any(F16), any(F16), any(F16)] [];
        VFmaakF16 "v_fmaak_f16" Vop2 56 [vector(F16)] [any(F16), any(F16), any(F16)] [];
        VLdexpF16 "v_ldexp_f16" Vop2 59 [vector(F16)] [any(F16), any(I16)] FLOAT2 [DPP];
        VPkFmacF16 "v_pk_fmac_f16" Vop2 60 [vector(PkF16)] [any(PkF16), any(PkF16)] [ACCUMULATES | DPP];

        // VOPC
        VCmpLtF16 "v_cmp_lt_f16" Vopc 1 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpEqF16 "v_cmp_eq_f16" Vopc 2 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpLeF16 "v_cmp_le_f16" Vopc 3 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpGtF16 "v_cmp_gt_f16" Vopc 4 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpLgF16 "v_cmp_lg_f16" Vopc 5 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpGeF16 "v_cmp_ge_f16" Vopc 6 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpOF16 "v_cmp_o_f16" Vopc 7 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpUF16 "v_cmp_u_f16" Vopc 8 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNgeF16 "v_cmp_nge_f16" Vopc 9 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNlgF16 "v_cmp_nlg_f16" Vopc 10 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNgtF16 "v_cmp_ngt_f16" Vopc 11 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNleF16 "v_cmp_nle_f16" Vopc 12 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNeqF16 "v_cmp_neq_f16" Vopc 13 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpNltF16 "v_cmp_nlt_f16" Vopc 14 [MASK] [any(F16), any(F16)] COMPARE [DPP];
        VCmpLtF32 "v_cmp_lt_f32" Vopc 17 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpEqF32 "v_cmp_eq_f32" Vopc 18 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpLeF32 "v_cmp_le_f32" Vopc 19 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpGtF32 "v_cmp_gt_f32" Vopc 20 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpLgF32 "v_cmp_lg_f32" Vopc 21 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpGeF32 "v_cmp_ge_f32" Vopc 22 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpOF32 "v_cmp_o_f32" Vopc 23 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpUF32 "v_cmp_u_f32" Vopc 24 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNgeF32 "v_cmp_nge_f32" Vopc 25 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNlgF32 "v_cmp_nlg_f32" Vopc 26 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNgtF32 "v_cmp_ngt_f32" Vopc 27 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNleF32 "v_cmp_nle_f32" Vopc 28 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNeqF32 "v_cmp_neq_f32" Vopc 29 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpNltF32 "v_cmp_nlt_f32" Vopc 30 [MASK] [any(F32), any(F32)] COMPARE [DPP];
        VCmpLtF64 "v_cmp_lt_f64" Vopc 33 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpEqF64 "v_cmp_eq_f64" Vopc 34 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpLeF64 "v_cmp_le_f64" Vopc 35 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpGtF64 "v_cmp_gt_f64" Vopc 36 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpLgF64 "v_cmp_lg_f64" Vopc 37 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpGeF64 "v_cmp_ge_f64" Vopc 38 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpOF64 "v_cmp_o_f64" Vopc 39 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpUF64 "v_cmp_u_f64" Vopc 40 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNgeF64 "v_cmp_nge_f64" Vopc 41 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNlgF64 "v_cmp_nlg_f64" Vopc 42 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNgtF64 "v_cmp_ngt_f64" Vopc 43 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNleF64 "v_cmp_nle_f64" Vopc 44 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNeqF64 "v_cmp_neq_f64" Vopc 45 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpNltF64 "v_cmp_nlt_f64" Vopc 46 [MASK] [any(F64), any(F64)] COMPARE [];
        VCmpLtI16 "v_cmp_lt_i16" Vopc 49 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpEqI16 "v_cmp_eq_i16" Vopc 50 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpLeI16 "v_cmp_le_i16" Vopc 51 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpGtI16 "v_cmp_gt_i16" Vopc 52 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpNeI16 "v_cmp_ne_i16" Vopc 53 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpGeI16 "v_cmp_ge_i16" Vopc 54 [MASK] [any(I16), any(I16)] PLAIN [DPP];
        VCmpLtU16 "v_cmp_lt_u16" Vopc 57 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpEqU16 "v_cmp_eq_u16" Vopc 58 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpLeU16 "v_cmp_le_u16" Vopc 59 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpGtU16 "v_cmp_gt_u16" Vopc 60 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpNeU16 "v_cmp_ne_u16" Vopc 61 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpGeU16 "v_cmp_ge_u16" Vopc 62 [MASK] [any(U16), any(U16)] PLAIN [DPP];
        VCmpLtI32 "v_cmp_lt_i32" Vopc 65 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpEqI32 "v_cmp_eq_i32" Vopc 66 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpLeI32 "v_cmp_le_i32" Vopc 67 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpGtI32 "v_cmp_gt_i32" Vopc 68 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpNeI32 "v_cmp_ne_i32" Vopc 69 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpGeI32 "v_cmp_ge_i32" Vopc 70 [MASK] [any(I32), any(I32)] PLAIN [DPP];
        VCmpLtU32 "v_cmp_lt_u32" Vopc 73 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpEqU32 "v_cmp_eq_u32" Vopc 74 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpLeU32 "v_cmp_le_u32" Vopc 75 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpGtU32 "v_cmp_gt_u32" Vopc 76 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpNeU32 "v_cmp_ne_u32" Vopc 77 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpGeU32 "v_cmp_ge_u32" Vopc 78 [MASK] [any(U32), any(U32)] PLAIN [DPP];
        VCmpLtI64 "v_cmp_lt_i64" Vopc 81 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpEqI64 "v_cmp_eq_i64" Vopc 82 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpLeI64 "v_cmp_le_i64" Vopc 83 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpGtI64 "v_cmp_gt_i64" Vopc 84 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpNeI64 "v_cmp_ne_i64" Vopc 85 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpGeI64 "v_cmp_ge_i64" Vopc 86 [MASK] [any(I64), any(I64)] PLAIN [];
        VCmpLtU64 "v_cmp_lt_u64" Vopc 89 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpEqU64 "v_cmp_eq_u64" Vopc 90 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpLeU64 "v_cmp_le_u64" Vopc 91 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpGtU64 "v_cmp_gt_u64" Vopc 92 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpNeU64 "v_cmp_ne_u64" Vopc 93 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpGeU64 "v_cmp_ge_u64" Vopc 94 [MASK] [any(U64), any(U64)] PLAIN [];
        VCmpClassF16 "v_cmp_class_f16" Vopc 125 [MASK] [any(F16), any(U16)] CLASSIFY [DPP];
        VCmpClassF32 "v_cmp_class_f32" Vopc 126 [MASK] [any(F32), any(U32)] CLASSIFY [DPP];
        VCmpClassF64 "v_cmp_class_f64" Vopc 127 [MASK] [any(F64), any(U32)] CLASSIFY [];
        VCmpxLtF16 "v_cmpx_lt_f16" Vopc 129 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxEqF16 "v_cmpx_eq_f16" Vopc 130 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxLeF16 "v_cmpx_le_f16" Vopc 131 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxGtF16 "v_cmpx_gt_f16" Vopc 132 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxLgF16 "v_cmpx_lg_f16" Vopc 133 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxGeF16 "v_cmpx_ge_f16" Vopc 134 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxOF16 "v_cmpx_o_f16" Vopc 135 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxUF16 "v_cmpx_u_f16" Vopc 136 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNgeF16 "v_cmpx_nge_f16" Vopc 137 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNlgF16 "v_cmpx_nlg_f16" Vopc 138 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNgtF16 "v_cmpx_ngt_f16" Vopc 139 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNleF16 "v_cmpx_nle_f16" Vopc 140 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNeqF16 "v_cmpx_neq_f16" Vopc 141 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxNltF16 "v_cmpx_nlt_f16" Vopc 142 [EXEC] [any(F16), any(F16)] COMPARE [DPP];
        VCmpxLtF32 "v_cmpx_lt_f32" Vopc 145 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxEqF32 "v_cmpx_eq_f32" Vopc 146 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxLeF32 "v_cmpx_le_f32" Vopc 147 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxGtF32 "v_cmpx_gt_f32" Vopc 148 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxLgF32 "v_cmpx_lg_f32" Vopc 149 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxGeF32 "v_cmpx_ge_f32" Vopc 150 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxOF32 "v_cmpx_o_f32" Vopc 151 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxUF32 "v_cmpx_u_f32" Vopc 152 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNgeF32 "v_cmpx_nge_f32" Vopc 153 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNlgF32 "v_cmpx_nlg_f32" Vopc 154 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNgtF32 "v_cmpx_ngt_f32" Vopc 155 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNleF32 "v_cmpx_nle_f32" Vopc 156 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNeqF32 "v_cmpx_neq_f32" Vopc 157 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxNltF32 "v_cmpx_nlt_f32" Vopc 158 [EXEC] [any(F32), any(F32)] COMPARE [DPP];
        VCmpxLtF64 "v_cmpx_lt_f64" Vopc 161 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxEqF64 "v_cmpx_eq_f64" Vopc 162 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxLeF64 "v_cmpx_le_f64" Vopc 163 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxGtF64 "v_cmpx_gt_f64" Vopc 164 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxLgF64 "v_cmpx_lg_f64" Vopc 165 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxGeF64 "v_cmpx_ge_f64" Vopc 166 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxOF64 "v_cmpx_o_f64" Vopc 167 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxUF64 "v_cmpx_u_f64" Vopc 168 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNgeF64 "v_cmpx_nge_f64" Vopc 169 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNlgF64 "v_cmpx_nlg_f64" Vopc 170 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNgtF64 "v_cmpx_ngt_f64" Vopc 171 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNleF64 "v_cmpx_nle_f64" Vopc 172 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNeqF64 "v_cmpx_neq_f64" Vopc 173 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxNltF64 "v_cmpx_nlt_f64" Vopc 174 [EXEC] [any(F64), any(F64)] COMPARE [];
        VCmpxLtI16 "v_cmpx_lt_i16" Vopc 177 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxEqI16 "v_cmpx_eq_i16" Vopc 178 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxLeI16 "v_cmpx_le_i16" Vopc 179 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxGtI16 "v_cmpx_gt_i16" Vopc 180 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxNeI16 "v_cmpx_ne_i16" Vopc 181 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxGeI16 "v_cmpx_ge_i16" Vopc 182 [EXEC] [any(I16), any(I16)] PLAIN [DPP];
        VCmpxLtU16 "v_cmpx_lt_u16" Vopc 185 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxEqU16 "v_cmpx_eq_u16" Vopc 186 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxLeU16 "v_cmpx_le_u16" Vopc 187 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxGtU16 "v_cmpx_gt_u16" Vopc 188 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxNeU16 "v_cmpx_ne_u16" Vopc 189 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxGeU16 "v_cmpx_ge_u16" Vopc 190 [EXEC] [any(U16), any(U16)] PLAIN [DPP];
        VCmpxLtI32 "v_cmpx_lt_i32" Vopc 193 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxEqI32 "v_cmpx_eq_i32" Vopc 194 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxLeI32 "v_cmpx_le_i32" Vopc 195 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxGtI32 "v_cmpx_gt_i32" Vopc 196 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxNeI32 "v_cmpx_ne_i32" Vopc 197 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxGeI32 "v_cmpx_ge_i32" Vopc 198 [EXEC] [any(I32), any(I32)] PLAIN [DPP];
        VCmpxLtU32 "v_cmpx_lt_u32" Vopc 201 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxEqU32 "v_cmpx_eq_u32" Vopc 202 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxLeU32 "v_cmpx_le_u32" Vopc 203 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxGtU32 "v_cmpx_gt_u32" Vopc 204 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxNeU32 "v_cmpx_ne_u32" Vopc 205 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxGeU32 "v_cmpx_ge_u32" Vopc 206 [EXEC] [any(U32), any(U32)] PLAIN [DPP];
        VCmpxLtI64 "v_cmpx_lt_i64" Vopc 209 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxEqI64 "v_cmpx_eq_i64" Vopc 210 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxLeI64 "v_cmpx_le_i64" Vopc 211 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxGtI64 "v_cmpx_gt_i64" Vopc 212 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxNeI64 "v_cmpx_ne_i64" Vopc 213 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxGeI64 "v_cmpx_ge_i64" Vopc 214 [EXEC] [any(I64), any(I64)] PLAIN [];
        VCmpxLtU64 "v_cmpx_lt_u64" Vopc 217 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxEqU64 "v_cmpx_eq_u64" Vopc 218 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxLeU64 "v_cmpx_le_u64" Vopc 219 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxGtU64 "v_cmpx_gt_u64" Vopc 220 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxNeU64 "v_cmpx_ne_u64" Vopc 221 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxGeU64 "v_cmpx_ge_u64" Vopc 222 [EXEC] [any(U64), any(U64)] PLAIN [];
        VCmpxClassF16 "v_cmpx_class_f16" Vopc 253 [EXEC] [any(F16), any(U16)] CLASSIFY [DPP];
        VCmpxClassF32 "v_cmpx_class_f32" Vopc 254 [EXEC] [any(F32), any(U32)] CLASSIFY [DPP];
        VCmpxClassF64 "v_cmpx_class_f64" Vopc 255 [EXEC] [any(F64), any(U32)] CLASSIFY [];

        // VOP3
        VFmaDx9ZeroF32 "v_fma_dx9_zero_f32" Vop3 521 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [];
        VMadI32I24 "v_mad_i32_i24" Vop3 522 [vector(I32)] [any(I32), any(I32), any(I32)] SATURATE [DPP];
        VMadU32U24 "v_mad_u32_u24" Vop3 523 [vector(U32)] [any(U32), any(U32), any(U32)] SATURATE [DPP];
        VCubeidF32 "v_cubeid_f32" Vop3 524 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VCubescF32 "v_cubesc_f32" Vop3 525 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VCubetcF32 "v_cubetc_f32" Vop3 526 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VCubemaF32 "v_cubema_f32" Vop3 527 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VBfeU32 "v_bfe_u32" Vop3 528 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VBfeI32 "v_bfe_i32" Vop3 529 [vector(I32)] [any(I32), any(U32), any(U32)] PLAIN [DPP];
        VBfiB32 "v_bfi_b32" Vop3 530 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VFmaF32 "v_fma_f32" Vop3 531 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VFmaF64 "v_fma_f64" Vop3 532 [vector(F64)] [any(F64), any(F64), any(F64)] FLOAT3 [];
        VLerpU8 "v_lerp_u8" Vop3 533 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VAlignbitB32 "v_alignbit_b32" Vop3 534 [vector(B32)] [any(B32), any(B32), any(U32)] PLAIN [DPP];
        VAlignbyteB32 "v_alignbyte_b32" Vop3 535 [vector(B32)] [any(B32), any(B32), any(U32)] PLAIN [DPP];
        VMullitF32 "v_mullit_f32" Vop3 536 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMin3I32 "v_min3_i32" Vop3 538 [vector(I32)] [any(I32), any(I32), any(I32)] PLAIN [DPP];
        VMin3U32 "v_min3_u32" Vop3 539 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VMax3I32 "v_max3_i32" Vop3 541 [vector(I32)] [any(I32), any(I32), any(I32)] PLAIN [DPP];
        VMax3U32 "v_max3_u32" Vop3 542 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VMed3I32 "v_med3_i32" Vop3 544 [vector(I32)] [any(I32), any(I32), any(I32)] PLAIN [DPP];
        VMed3U32 "v_med3_u32" Vop3 545 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VSadU8 "v_sad_u8" Vop3 546 [vector(U32)] [any(B32), any(B32), any(U32)] SATURATE [DPP];
        VSadHiU8 "v_sad_hi_u8" Vop3 547 [vector(U32)] [any(B32), any(B32), any(U32)] SATURATE [DPP];
        VSadU16 "v_sad_u16" Vop3 548 [vector(U32)] [any(PkU16), any(PkU16), any(U32)] SATURATE [DPP];
        VSadU32 "v_sad_u32" Vop3 549 [vector(U32)] [any(U32), any(U32), any(U32)] SATURATE [DPP];
        VCvtPkU8F32 "v_cvt_pk_u8_f32" Vop3 550 [vector(B32)] [any(F32), any(U32), any(B32)] PACK_BYTE [DPP];
        VDivFixupF32 "v_div_fixup_f32" Vop3 551 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [];
        VDivFixupF64 "v_div_fixup_f64" Vop3 552 [vector(F64)] [any(F64), any(F64), any(F64)] FLOAT3 [];
        VMin3NumF32 "v_min3_num_f32" Vop3 553 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMax3NumF32 "v_max3_num_f32" Vop3 554 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMin3NumF16 "v_min3_num_f16" Vop3 555 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMax3NumF16 "v_max3_num_f16" Vop3 556 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMinimum3F32 "v_minimum3_f32" Vop3 557 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMaximum3F32 "v_maximum3_f32" Vop3 558 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMinimum3F16 "v_minimum3_f16" Vop3 559 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMaximum3F16 "v_maximum3_f16" Vop3 560 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMed3NumF32 "v_med3_num_f32" Vop3 561 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMed3NumF16 "v_med3_num_f16" Vop3 562 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VDivFmasF32 "v_div_fmas_f32" Vop3 567 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [];
        VDivFmasF64 "v_div_fmas_f64" Vop3 568 [vector(F64)] [any(F64), any(F64), any(F64)] FLOAT3 [];
        VMsadU8 "v_msad_u8" Vop3 569 [vector(U32)] [any(B32), any(B32), any(U32)] SATURATE [DPP];
        VQsadPkU16U8 "v_qsad_pk_u16_u8" Vop3 570 [vector(B64)] [any(B64), any(B32), any(B64)] SATURATE [];
        VMqsadPkU16U8 "v_mqsad_pk_u16_u8" Vop3 571 [vector(B64)] [any(B64), any(B32), any(B64)] SATURATE [];
        VMqsadU32U8 "v_mqsad_u32_u8" Vop3 573 [vector(B128)] [any(B64), any(B32), vector(B128)] SATURATE [];
        VXor3B32 "v_xor3_b32" Vop3 576 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VMadU16 "v_mad_u16" Vop3 577 [vector(U16)] [any(U16), any(U16), any(U16)] INTEGER_HALF3 [DPP];
        VPermB32 "v_perm_b32" Vop3 580 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VXadU32 "v_xad_u32" Vop3 581 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VLshlAddU32 "v_lshl_add_u32" Vop3 582 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VAddLshlU32 "v_add_lshl_u32" Vop3 583 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VFmaF16 "v_fma_f16" Vop3 584 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMin3I16 "v_min3_i16" Vop3 586 [vector(I16)] [any(I16), any(I16), any(I16)] INTEGER_HALF3 [DPP];
        VMin3U16 "v_min3_u16" Vop3 587 [vector(U16)] [any(U16), any(U16), any(U16)] INTEGER_HALF3 [DPP];
        VMax3I16 "v_max3_i16" Vop3 589 [vector(I16)] [any(I16), any(I16), any(I16)] INTEGER_HALF3 [DPP];
        VMax3U16 "v_max3_u16" Vop3 590 [vector(U16)] [any(U16), any(U16), any(U16)] INTEGER_HALF3 [DPP];
        VMed3I16 "v_med3_i16" Vop3 592 [vector(I16)] [any(I16), any(I16), any(I16)] INTEGER_HALF3 [DPP];
        VMed3U16 "v_med3_u16" Vop3 593 [vector(U16)] [any(U16), any(U16), any(U16)] INTEGER_HALF3 [DPP];
        VMadI16 "v_mad_i16" Vop3 595 [vector(I16)] [any(I16), any(I16), any(I16)] INTEGER_HALF3 [DPP];
        VDivFixupF16 "v_div_fixup_f16" Vop3 596 [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VAdd3U32 "v_add3_u32" Vop3 597 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VLshlOrB32 "v_lshl_or_b32" Vop3 598 [vector(B32)] [any(B32), any(U32), any(B32)] PLAIN [DPP];
        VAndOrB32 "v_and_or_b32" Vop3 599 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VOr3B32 "v_or3_b32" Vop3 600 [vector(B32)] [any(B32), any(B32), any(B32)] PLAIN [DPP];
        VMadU32U16 "v_mad_u32_u16" Vop3 601 [vector(U32)] [any(U16), any(U16), any(U32)] INTEGER_HALF3 [DPP];
        VMadI32I16 "v_mad_i32_i16" Vop3 602 [vector(I32)] [any(I16), any(I16), any(I32)] INTEGER_HALF3 [DPP];
        VPermlane16B32 "v_permlane16_b32" Vop3 603
            [vector(B32)] [vector(B32), scalar(B32), scalar(B32)] PERMLANE [];
        VPermlanex16B32 "v_permlanex16_b32" Vop3 604
            [vector(B32)] [vector(B32), scalar(B32), scalar(B32)] PERMLANE [];
        VCndmaskB16 "v_cndmask_b16" Vop3 605 [vector(B16)] [any(B16), any(B16), MASK] SELECT [DPP];
        VMaxminU32 "v_maxmin_u32" Vop3 610 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VMinmaxU32 "v_minmax_u32" Vop3 611 [vector(U32)] [any(U32), any(U32), any(U32)] PLAIN [DPP];
        VMaxminI32 "v_maxmin_i32" Vop3 612 [vector(I32)] [any(I32), any(I32), any(I32)] PLAIN [DPP];
        VMinmaxI32 "v_minmax_i32" Vop3 613 [vector(I32)] [any(I32), any(I32), any(I32)] PLAIN [DPP];
        VDot2F16F16 "v_dot2_f16_f16" Vop3 614 [vector(F16)] [any(PkF16), any(PkF16), any(F16)] DOT_HALF [DPP];
        VDot2Bf16Bf16 "v_dot2_bf16_bf16" Vop3 615
            [vector(Bf16)] [any(PkBf16), any(PkBf16), any(Bf16)] DOT_HALF [DPP];
        VMinmaxNumF32 "v_minmax_num_f32" Vop3 616 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMaxminNumF32 "v_maxmin_num_f32" Vop3 617 [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMinmaxNumF16 "v_minmax_num_f16" Vop3 618 [vector(F16)] [any(F16), any(F16), any(F16)] FLOAT3 [DPP];
        VMaxminNumF16 "v_maxmin_num_f16" Vop3 619 [vector(F16)] [any(F16), any(F16), any(F16)] FLOAT3 [DPP];
        VMinimummaximumF32 "v_minimummaximum_f32" Vop3 620
            [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMaximumminimumF32 "v_maximumminimum_f32" Vop3 621
            [vector(F32)] [any(F32), any(F32), any(F32)] FLOAT3 [DPP];
        VMinimummaximumF16 "v_minimummaximum_f16" Vop3 622
            [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VMaximumminimumF16 "v_maximumminimum_f16" Vop3 623
            [vector(F16)] [any(F16), any(F16), any(F16)] HALF3 [DPP];
        VSExpF32 "v_s_exp_f32" Vop3 640 [scalar(F32)] [scalar(F32)] FLOAT1 [];
        VSExpF16 "v_s_exp_f16" Vop3 641 [scalar(F16)] [scalar(F16)] FLOAT1 [];
        VSLogF32 "v_s_log_f32" Vop3 642 [scalar(F32)] [scalar(F32)] FLOAT1 [];
        VSLogF16 "v_s_log_f16" Vop3 643 [scalar(F16)] [scalar(F16)] FLOAT1 [];
        VSRcpF32 "v_s_rcp_f32" Vop3 644 [scalar(F32)] [scalar(F32)] FLOAT1 [];
        VSRcpF16 "v_s_rcp_f16" Vop3 645 [scalar(F16)] [scalar(F16)] FLOAT1 [];
        VSRsqF32 "v_s_rsq_f32" Vop3 646 [scalar(F32)] [scalar(F32)] FLOAT1 [];
        VSRsqF16 "v_s_rsq_f16" Vop3 647 [scalar(F16)] [scalar(F16)] FLOAT1 [];
        VSSqrtF32 "v_s_sqrt_f32" Vop3 648 [scalar(F32)] [scalar(F32)] FLOAT1 [];
        VSSqrtF16 "v_s_sqrt_f16" Vop3 649 [scalar(F16)] [scalar(F16)] FLOAT1 [];

        // VOP3SD
        VDivScaleF32 "v_div_scale_f32" Vop3sd 764
            [vector(F32), MASK] [any(F32), any(F32), any(F32)] DIVIDE_SCALE [];
        VDivScaleF64 "v_div_scale_f64" Vop3sd 765
            [vector(F64), MASK] [any(F64), any(F64), any(F64)] DIVIDE_SCALE [];
        VMadCoU64U32 "v_mad_co_u64_u32" Vop3sd 766
            [vector(U64), MASK] [any(U32), any(U32), any(U64)] SATURATE [];
        VMadCoI64I32 "v_mad_co_i64_i32" Vop3sd 767
            [vector(I64), MASK] [any(I32), any(I32), any(I64)] SATURATE [];
        VAddCoU32 "v_add_co_u32" Vop3sd 768 [vector(U32), MASK] [any(U32), any(U32)] SATURATE [DPP];
        VSubCoU32 "v_sub_co_u32" Vop3sd 769 [vector(U32), MASK] [any(U32), any(U32)] SATURATE [DPP];
        VSubrevCoU32 "v_subrev_co_u32" Vop3sd 770 [vector(U32), MASK] [any(U32), any(U32)] SATURATE [DPP];

        // VOP3
        VAddNcU16 "v_add_nc_u16" Vop3 771 [vector(U16)] [any(U16), any(U16)] INTEGER_HALF2 [DPP];
        VSubNcU16 "v_sub_nc_u16" Vop3 772 [vector(U16)] [any(U16), any(U16)] INTEGER_HALF2 [DPP];
        VMulLoU16 "v_mul_lo_u16" Vop3 773 [vector(U16)] [any(U16), any(U16)] PLAIN [DPP];
        VCvtPkI16F32 "v_cvt_pk_i16_f32" Vop3 774 [vector(PkI16)] [any(F32), any(F32)] COMPARE [DPP];
        VCvtPkU16F32 "v_cvt_pk_u16_f32" Vop3 775 [vector(PkU16)] [any(F32), any(F32)] COMPARE [DPP];
        VMaxU16 "v_max_u16" Vop3 777 [vector(U16)] [any(U16), any(U16)] PLAIN [DPP];
        VMaxI16 "v_max_i16" Vop3 778 [vector(I16)] [any(I16), any(I16)] PLAIN [DPP];
        VMinU16 "v_min_u16" Vop3 779 [vector(U16)] [any(U16), any(U16)] PLAIN [DPP];
        VMinI16 "v_min_i16" Vop3 780 [vector(I16)] [any(I16), any(I16)] PLAIN [DPP];
        VAddNcI16 "v_add_nc_i16" Vop3 781 [vector(I16)] [any(I16), any(I16)] INTEGER_HALF2 [DPP];
        VSubNcI16 "v_sub_nc_i16" Vop3 782 [vector(I16)] [any(I16), any(I16)] INTEGER_HALF2 [DPP];
        VPermlane16VarB32 "v_permlane16_var_b32" Vop3 783
            [vector(B32)] [vector(B32), vector(B32)] PERMLANE_VAR [];
        VPermlanex16VarB32 "v_permlanex16_var_b32" Vop3 784
            [vector(B32)] [vector(B32), vector(B32)] PERMLANE_VAR [];
        VPackB32F16 "v_pack_b32_f16" Vop3 785 [vector(B32)] [any(F16), any(F16)] HALF2 [DPP];
        VCvtPkNormI16F16 "v_cvt_pk_norm_i16_f16" Vop3 786 [vector(PkI16)] [any(F16), any(F16)] HALF2 [DPP];
        VCvtPkNormU16F16 "v_cvt_pk_norm_u16_f16" Vop3 787 [vector(PkU16)] [any(F16), any(F16)] HALF2 [DPP];
        VLdexpF32 "v_ldexp_f32" Vop3 796 [vector(F32)] [any(F32), any(I32)] SCALE [DPP];
        VBfmB32 "v_bfm_b32" Vop3 797 [vector(B32)] [any(U32), any(U32)] PLAIN [DPP];
        VBcntU32B32 "v_bcnt_u32_b32" Vop3 798 [vector(U32)] [any(B32), any(U32)] PLAIN [DPP];
        VMbcntLoU32B32 "v_mbcnt_lo_u32_b32" Vop3 799 [vector(U32)] [any(B32), any(U32)] PLAIN [DPP];
        VMbcntHiU32B32 "v_mbcnt_hi_u32_b32" Vop3 800 [vector(U32)] [any(B32), any(U32)] PLAIN [DPP];
        VCvtPkNormI16F32 "v_cvt_pk_norm_i16_f32" Vop3 801 [vector(PkI16)] [any(F32), any(F32)] COMPARE [DPP];
        VCvtPkNormU16F32 "v_cvt_pk_norm_u16_f32" Vop3 802 [vector(PkU16)] [any(F32), any(F32)] COMPARE [DPP];
        VCvtPkU16U32 "v_cvt_pk_u16_u32" Vop3 803 [vector(PkU16)] [any(U32), any(U32)] PLAIN [DPP];
        VCvtPkI16I32 "v_cvt_pk_i16_i32" Vop3 804 [vector(PkI16)] [any(I32), any(I32)] PLAIN [DPP];
        VSubNcI32 "v_sub_nc_i32" Vop3 805 [vector(I32)] [any(I32), any(I32)] SATURATE [DPP];
        VAddNcI32 "v_add_nc_i32" Vop3 806 [vector(I32)] [any(I32), any(I32)] SATURATE [DPP];
        VLdexpF64 "v_ldexp_f64" Vop3 811 [vector(F64)] [any(F64), any(I32)] SCALE [];
        VMulLoU32 "v_mul_lo_u32" Vop3 812 [vector(U32)] [any(U32), any(U32)] PLAIN [];
        VMulHiU32 "v_mul_hi_u32" Vop3 813 [vector(U32)] [any(U32), any(U32)] PLAIN [];
        VMulHiI32 "v_mul_hi_i32" Vop3 814 [vector(I32)] [any(I32), any(I32)] PLAIN [];
        VTrigPreopF64 "v_trig_preop_f64" Vop3 815 [vector(F64)] [any(F64), any(U32)] SCALE [];
        VLshlrevB16 "v_lshlrev_b16" Vop3 824 [vector(B16)] [any(U16), any(B16)] PLAIN [DPP];
        VLshrrevB16 "v_lshrrev_b16" Vop3 825 [vector(B16)] [any(U16), any(B16)] PLAIN [DPP];
        VAshrrevI16 "v_ashrrev_i16" Vop3 826 [vector(I16)] [any(U16), any(I16)] PLAIN [DPP];
        VLshrrevB64 "v_lshrrev_b64" Vop3 829 [vector(B64)] [any(U32), any(B64)] PLAIN [];
        VAshrrevI64 "v_ashrrev_i64" Vop3 830 [vector(I64)] [any(U32), any(I64)] PLAIN [];
        VMinimumF64 "v_minimum_f64" Vop3 833 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VMaximumF64 "v_maximum_f64" Vop3 834 [vector(F64)] [any(F64), any(F64)] FLOAT2 [];
        VReadlaneB32 "v_readlane_b32" Vop3 864 [scalar(B32)] [vector(B32), scalar(U32)] PLAIN [];
        VWritelaneB32 "v_writelane_b32" Vop3 865 [vector(B32)] [scalar(B32), scalar(U32)] PLAIN [ACCUMULATES];
        VAndB16 "v_and_b16" Vop3 866 [vector(B16)] [any(B16), any(B16)] PLAIN [DPP];
        VOrB16 "v_or_b16" Vop3 867 [vector(B16)] [any(B16), any(B16)] PLAIN [DPP];
        VXorB16 "v_xor_b16" Vop3 868 [vector(B16)] [any(B16), any(B16)] PLAIN [DPP];
        VMinimumF32 "v_minimum_f32" Vop3 869 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMaximumF32 "v_maximum_f32" Vop3 870 [vector(F32)] [any(F32), any(F32)] FLOAT2 [DPP];
        VMinimumF16 "v_minimum_f16" Vop3 871 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VMaximumF16 "v_maximum_f16" Vop3 872 [vector(F16)] [any(F16), any(F16)] FLOAT2 [DPP];
        VCvtPkFp8F32 "v_cvt_pk_fp8_f32" Vop3 873
            [vector(B16)] [any(F32), any(F32)] FLOATS_TO_BYTES [ACCUMULATES | DPP];
        VCvtPkBf8F32 "v_cvt_pk_bf8_f32" Vop3 874
            [vector(B16)] [any(F32), any(F32)] FLOATS_TO_BYTES [ACCUMULATES | DPP];
        VCvtSrFp8F32 "v_cvt_sr_fp8_f32" Vop3 875
            [vector(B32)] [any(F32), any(B32)] FLOAT_TO_BYTE [ACCUMULATES | DPP];
        VCvtSrBf8F32 "v_cvt_sr_bf8_f32" Vop3 876
            [vector(B32)] [any(F32), any(B32)] FLOAT_TO_BYTE [ACCUMULATES | DPP];

        // VOP3P
        VPkMadI16 "v_pk_mad_i16" Vop3p 0 [vector(PkI16)] [any(PkI16), any(PkI16), any(PkI16)] PACKED3 [];
        VPkMulLoU16 "v_pk_mul_lo_u16" Vop3p 1 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkAddI16 "v_pk_add_i16" Vop3p 2 [vector(PkI16)] [any(PkI16), any(PkI16)] PACKED2 [];
        VPkSubI16 "v_pk_sub_i16" Vop3p 3 [vector(PkI16)] [any(PkI16), any(PkI16)] PACKED2 [];
        VPkLshlrevB16 "v_pk_lshlrev_b16" Vop3p 4 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkLshrrevB16 "v_pk_lshrrev_b16" Vop3p 5 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkAshrrevI16 "v_pk_ashrrev_i16" Vop3p 6 [vector(PkI16)] [any(PkU16), any(PkI16)] PACKED2 [];
        VPkMaxI16 "v_pk_max_i16" Vop3p 7 [vector(PkI16)] [any(PkI16), any(PkI16)] PACKED2 [];
        VPkMinI16 "v_pk_min_i16" Vop3p 8 [vector(PkI16)] [any(PkI16), any(PkI16)] PACKED2 [];
        VPkMadU16 "v_pk_mad_u16" Vop3p 9 [vector(PkU16)] [any(PkU16), any(PkU16), any(PkU16)] PACKED3 [];
        VPkAddU16 "v_pk_add_u16" Vop3p 10 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkSubU16 "v_pk_sub_u16" Vop3p 11 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkMaxU16 "v_pk_max_u16" Vop3p 12 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkMinU16 "v_pk_min_u16" Vop3p 13 [vector(PkU16)] [any(PkU16), any(PkU16)] PACKED2 [];
        VPkFmaF16 "v_pk_fma_f16" Vop3p 14 [vector(PkF16)] [any(PkF16), any(PkF16), any(PkF16)] PACKED3 [];
        VPkAddF16 "v_pk_add_f16" Vop3p 15 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VPkMulF16 "v_pk_mul_f16" Vop3p 16 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VDot2F32F16 "v_dot2_f32_f16" Vop3p 19 [vector(F32)] [any(PkF16), any(PkF16), any(F32)] PACKED3 [DPP];
        VDot4I32Iu8 "v_dot4_i32_iu8" Vop3p 22 [vector(I32)] [any(B32), any(B32), any(I32)] PACKED3 [];
        VDot4U32U8 "v_dot4_u32_u8" Vop3p 23 [vector(U32)] [any(B32), any(B32), any(U32)] PACKED3 [];
        VDot8I32Iu4 "v_dot8_i32_iu4" Vop3p 24 [vector(I32)] [any(B32), any(B32), any(I32)] PACKED3 [];
        VDot8U32U4 "v_dot8_u32_u4" Vop3p 25 [vector(U32)] [any(B32), any(B32), any(U32)] PACKED3 [];
        VDot2F32Bf16 "v_dot2_f32_bf16" Vop3p 26 [vector(F32)] [any(PkBf16), any(PkBf16), any(F32)] PACKED3 [];
        VPkMinNumF16 "v_pk_min_num_f16" Vop3p 27 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VPkMaxNumF16 "v_pk_max_num_f16" Vop3p 28 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VPkMinimumF16 "v_pk_minimum_f16" Vop3p 29 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VPkMaximumF16 "v_pk_maximum_f16" Vop3p 30 [vector(PkF16)] [any(PkF16), any(PkF16)] PACKED2 [];
        VFmaMixF32 "v_fma_mix_f32" Vop3p 32 [vector(F32)] [any(F32), any(F32), any(F32)] PACKED3 [DPP];
        VFmaMixloF16 "v_fma_mixlo_f16" Vop3p 33
            [vector(F16)] [any(F32), any(F32), any(F32)] PACKED3 [ACCUMULATES | DPP];
        VFmaMixhiF16 "v_fma_mixhi_f16" Vop3p 34
            [vector(F16)] [any(F32), any(F32), any(F32)] PACKED3 [ACCUMULATES | DPP];
        VDot4F32Fp8Bf8 "v_dot4_f32_fp8_bf8" Vop3p 36
            [vector(F32)] [any(B32), any(B32), any(F32)] MATRIX_BYTE [DPP];
        VDot4F32Bf8Fp8 "v_dot4_f32_bf8_fp8" Vop3p 37
            [vector(F32)] [any(B32), any(B32), any(F32)] MATRIX_BYTE [DPP];
        VDot4F32Fp8Fp8 "v_dot4_f32_fp8_fp8" Vop3p 38
            [vector(F32)] [any(B32), any(B32), any(F32)] MATRIX_BYTE [DPP];
        VDot4F32Bf8Bf8 "v_dot4_f32_bf8_bf8" Vop3p 39
            [vector(F32)] [any(B32), any(B32), any(F32)] MATRIX_BYTE [DPP];
        VWmmaF3216x16x16F16 "v_wmma_f32_16x16x16_f16" Vop3p 64
            [vector(B256)] [vector(B128), vector(B128), matrix(B256)] MATRIX_FLOAT [];
        VWmmaF3216x16x16Bf16 "v_wmma_f32_16x16x16_bf16" Vop3p 65
            [vector(B256)] [vector(B128), vector(B128), matrix(B256)] MATRIX_FLOAT [];
        VWmmaF1616x16x16F16 "v_wmma_f16_16x16x16_f16" Vop3p 66
            [vector(B128)] [vector(B128), vector(B128), matrix(B128)] MATRIX_FLOAT [];
        VWmmaBf1616x16x16Bf16 "v_wmma_bf16_16x16x16_bf16" Vop3p 67
            [vector(B128)] [vector(B128), vector(B128), matrix(B128)] MATRIX_FLOAT [];
        VWmmaI3216x16x16Iu8 "v_wmma_i32_16x16x16_iu8" Vop3p 68
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_INTEGER [];
        VWmmaI3216x16x16Iu4 "v_wmma_i32_16x16x16_iu4" Vop3p 69
            [vector(B256)] [vector(B32), vector(B32), matrix(B256)] MATRIX_INTEGER [];
        VWmmaF3216x16x16Fp8Fp8 "v_wmma_f32_16x16x16_fp8_fp8" Vop3p 70
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_BYTE [];
        VWmmaF3216x16x16Fp8Bf8 "v_wmma_f32_16x16x16_fp8_bf8" Vop3p 71
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_BYTE [];
        VWmmaF3216x16x16Bf8Fp8 "v_wmma_f32_16x16x16_bf8_fp8" Vop3p 72
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_BYTE [];
        VWmmaF3216x16x16Bf8Bf8 "v_wmma_f32_16x16x16_bf8_bf8" Vop3p 73
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_BYTE [];
        VWmmaI3216x16x32Iu4 "v_wmma_i32_16x16x32_iu4" Vop3p 74
            [vector(B256)] [vector(B64), vector(B64), matrix(B256)] MATRIX_INTEGER [];
        VSwmmacF3216x16x32F16 "v_swmmac_f32_16x16x32_f16" Vop3p 80
            [vector(B256)] [vector(B128), vector(B256), vector(B32)] SPARSE_FLOAT [ACCUMULATES];
        VSwmmacF3216x16x32Bf16 "v_swmmac_f32_16x16x32_bf16" Vop3p 81
            [vector(B256)] [vector(B128), vector(B256), vector(B32)] SPARSE_FLOAT [ACCUMULATES];
        VSwmmacF1616x16x32F16 "v_swmmac_f16_16x16x32_f16" Vop3p 82
            [vector(B128)] [vector(B128), vector(B256), vector(B32)] SPARSE_FLOAT [ACCUMULATES];
        VSwmmacBf1616x16x32Bf16 "v_swmmac_bf16_16x16x32_bf16" Vop3p 83
            [vector(B128)] [vector(B128), vector(B256), vector(B32)] SPARSE_FLOAT [ACCUMULATES];
        VSwmmacI3216x16x32Iu8 "v_swmmac_i32_16x16x32_iu8" Vop3p 84
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] SPARSE_INTEGER [ACCUMULATES];
        VSwmmacI3216x16x32Iu4 "v_swmmac_i32_16x16x32_iu4" Vop3p 85
            [vector(B256)] [vector(B32), vector(B64), vector(B32)] SPARSE_INTEGER [ACCUMULATES];
        VSwmmacI3216x16x64Iu4 "v_swmmac_i32_16x16x64_iu4" Vop3p 86
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] MATRIX_INTEGER [ACCUMULATES];
        VSwmmacF3216x16x32Fp8Fp8 "v_swmmac_f32_16x16x32_fp8_fp8" Vop3p 87
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] SPARSE_BYTE [ACCUMULATES];
        VSwmmacF3216x16x32Fp8Bf8 "v_swmmac_f32_16x16x32_fp8_bf8" Vop3p 88
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] SPARSE_BYTE [ACCUMULATES];
        VSwmmacF3216x16x32Bf8Fp8 "v_swmmac_f32_16x16x32_bf8_fp8" Vop3p 89
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] SPARSE_BYTE [ACCUMULATES];
        VSwmmacF3216x16x32Bf8Bf8 "v_swmmac_f32_16x16x32_bf8_bf8" Vop3p 90
            [vector(B256)] [vector(B64), vector(B128), vector(B32)] SPARSE_BYTE [ACCUMULATES];

        // VINTERP
        VInterpolate "v_interpolate" Vinterp 0 [] [] [];
    } };
}
