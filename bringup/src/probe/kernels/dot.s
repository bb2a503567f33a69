// Three dot products of the same bits. Parameters: 0 in (16 bytes an element: a, b, c, 0), 8 out (16 bytes: with f16, bf16,
// E4M3 factors, 0). One wave a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s8, ttmp9, 9
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v0, 4, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v0, s8, v0
	global_load_b128 v[4:7], v0, s[4:5]
	s_wait_loadcnt 0x0
	v_dot2_f32_f16 v8, v4, v5, v6
	v_dot2_f32_bf16 v9, v4, v5, v6
	v_dot4_f32_fp8_fp8 v10, v4, v5, v6
	v_mov_b32_e32 v11, 0
	global_store_b128 v0, v[8:11], s[6:7]
	s_endpgm
