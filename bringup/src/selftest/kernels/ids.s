// out[n] = (ttmp9, ttmp7) of workgroup (x, y, z), n = x + X * (y + Y * z). Parameters: 0 out, 8 X, 12 Y. One wave a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshr_b32 s8, ttmp7, 16
	s_and_b32 s9, ttmp7, 0xffff
	s_wait_kmcnt 0x0
	s_mul_i32 s8, s8, s7
	s_add_co_u32 s8, s8, s9
	s_mul_i32 s8, s8, s6
	s_add_co_u32 s8, s8, ttmp9
	s_lshl_b32 s48, s8, 3
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v2, ttmp9
	v_mov_b32_e32 v3, ttmp7
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v1, s48
	global_store_b64 v1, v[2:3], s[4:5]
	s_endpgm
