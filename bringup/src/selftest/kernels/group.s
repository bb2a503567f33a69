// out[g] = g of workgroup g, by lane 0. User data: the address of out. One wave a group.
	s_lshl_b32 s48, ttmp9, 2
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v2, ttmp9
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v1, s48
	global_store_b32 v1, v2, s[0:1]
	s_endpgm
