// The approximate operations on one number. Parameters: 0 in (4 bytes an element), 8 out (32 bytes: rcp, rsq, sqrt, exp, log,
// sin, cos, the number itself). One wave a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s8, ttmp9, 5
	v_and_b32_e32 v0, 0x3ff, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v0, s8, v0
	v_lshlrev_b32_e32 v1, 2, v0
	v_lshlrev_b32_e32 v2, 5, v0
	global_load_b32 v15, v1, s[4:5]
	s_wait_loadcnt 0x0
	v_rcp_f32_e32 v8, v15
	v_rsq_f32_e32 v9, v15
	v_sqrt_f32_e32 v10, v15
	v_exp_f32_e32 v11, v15
	v_log_f32_e32 v12, v15
	v_sin_f32_e32 v13, v15
	v_cos_f32_e32 v14, v15
	global_store_b128 v2, v[8:11], s[6:7]
	global_store_b128 v2, v[12:15], s[6:7] offset:16
	s_endpgm
