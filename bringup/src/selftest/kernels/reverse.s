// out[w * 256 + i] = in[w * 256 + 255 - i] through LDS. Parameters: 0 in, 8 out. Eight waves a group, 1024 bytes of LDS.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s48, ttmp9, 8
	v_and_b32_e32 v0, 0x3ff, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v1, s48, v0
	v_lshlrev_b32_e32 v1, 2, v1
	global_load_b32 v2, v1, s[4:5]
	v_lshlrev_b32_e32 v3, 2, v0
	s_wait_loadcnt 0x0
	ds_store_b32 v3, v2
	s_wait_dscnt 0x0
	s_barrier_signal -1
	s_barrier_wait -1
	v_sub_nc_u32_e32 v3, 0x3fc, v3
	ds_load_b32 v2, v3
	s_wait_dscnt 0x0
	global_store_b32 v1, v2, s[6:7]
	s_endpgm
