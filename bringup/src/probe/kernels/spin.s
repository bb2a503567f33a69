// Sleeps and looks at the clock, window after window. Parameters: 0 out (8 bytes a window: shader cycles, ticks), 24 ticks of a
// window, 28 windows, not 0. One wave.
	s_load_b256 s[4:11], s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v0, 0
	s_wait_kmcnt 0x0
.Lwindow:
	s_sendmsg_rtn_b64 s[12:13], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_getreg_b32 s16, hwreg(HW_REG_SHADER_CYCLES_LO)
.Lspin:
	s_sleep 1
	s_sendmsg_rtn_b64 s[14:15], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_getreg_b32 s17, hwreg(HW_REG_SHADER_CYCLES_LO)
	s_sub_co_u32 s22, s14, s12
	s_cmp_lt_u32 s22, s10
	s_cbranch_scc1 .Lspin
	s_sub_co_u32 s18, s17, s16
	s_mov_b32 s24, s22
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v1, s18
	v_mov_b32_e32 v2, s24
	global_store_b64 v0, v[1:2], s[4:5]
	v_add_nc_u32_e32 v0, 8, v0
	s_sub_co_u32 s11, s11, 1
	s_cmp_lg_u32 s11, 0
	s_cbranch_scc1 .Lwindow
	s_endpgm
