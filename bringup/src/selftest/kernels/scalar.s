// out = in, read by the scalar cache. Parameters: 0 out, 8 in. One wave, one group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_wait_kmcnt 0x0
	s_load_b32 s48, s[6:7], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	s_wait_kmcnt 0x0
	v_mov_b32_e32 v2, s48
	global_store_b32 v1, v2, s[4:5]
	s_endpgm
