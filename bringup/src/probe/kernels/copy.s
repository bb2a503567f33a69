// Copies 16 KiB a group, 64 bytes an item. Parameters: 0 in, 8 out. Eight waves a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s8, ttmp9, 14
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v0, 4, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v0, s8, v0
	global_load_b128 v[4:7], v0, s[4:5]
	global_load_b128 v[8:11], v0, s[4:5] offset:4096
	global_load_b128 v[12:15], v0, s[4:5] offset:8192
	global_load_b128 v[16:19], v0, s[4:5] offset:12288
	s_wait_loadcnt 0x0
	global_store_b128 v0, v[4:7], s[6:7]
	global_store_b128 v0, v[8:11], s[6:7] offset:4096
	global_store_b128 v0, v[12:15], s[6:7] offset:8192
	global_store_b128 v0, v[16:19], s[6:7] offset:12288
	s_endpgm
