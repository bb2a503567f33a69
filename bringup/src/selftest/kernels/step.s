// data[i] = data[i] * 5 + key for i = workgroup * 32 + lane. Parameters: 0 data, 8 key. One wave a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s48, ttmp9, 5
	v_and_b32_e32 v0, 0x3ff, v0
	s_wait_kmcnt 0x0
	s_mov_b32 s50, s6
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v1, s48, v0
	v_lshlrev_b32_e32 v1, 2, v1
	global_load_b32 v2, v1, s[4:5]
	s_wait_loadcnt 0x0
	v_mul_lo_u32 v2, v2, 5
	v_add_nc_u32_e32 v2, s50, v2
	global_store_b32 v1, v2, s[4:5]
	s_endpgm
