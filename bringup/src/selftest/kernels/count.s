// counter += lanes, one atomic per lane. Parameters: 0 counter. One wave a group.
	s_load_b64 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 1
	s_wait_kmcnt 0x0
	global_atomic_add_u32 v1, v2, s[4:5] scope:SCOPE_DEV
	s_endpgm
