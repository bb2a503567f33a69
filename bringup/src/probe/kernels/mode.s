// out = MODE as the wave began. Parameters: 0 out. One wave.
	s_getreg_b32 s8, hwreg(HW_REG_MODE)
	s_load_b64 s[4:5], s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v0, 0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v1, s8
	global_store_b32 v0, v1, s[4:5]
	s_endpgm
