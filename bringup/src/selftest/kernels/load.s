// out[16] = out[0], read by a scalar load. User data: the address of out. One wave, one group.
	s_load_b32 s48, s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 64
	s_wait_kmcnt 0x0
	v_mov_b32_e32 v2, s48
	global_store_b32 v1, v2, s[0:1]
	s_endpgm
