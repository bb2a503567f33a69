// out = 0x600df00d, by lane 0. User data: the address of out. One wave, one group.
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 0x600df00d
	global_store_b32 v1, v2, s[0:1]
	s_endpgm
